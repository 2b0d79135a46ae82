/* module.c: what JavaScript needs to call a model that was compiled to WebAssembly.
 *
 * In: a planned program, its name and facts. Out: a module (NAME.mjs) and its types (NAME.d.mts).
 * Both are fixed texts, tools/module.mjs and tools/module.d.mts, with tables of the model behind
 * them: names, types and extents of inputs and outputs. The code itself is that of the C back end,
 * called through NAME_call. Names of the model reach the text as strings of JSON only.
 */
#include "back/back.h"
#include "ir/lexer.h"

#include <inttypes.h>
#include <string.h>

extern const unsigned char module_text[], module_types[];
extern const size_t module_text_size, module_types_size;

/* Arrays of JavaScript that hold elements of a type; NULL: there is none. */
static const char *array_of(DType dt) {
  static const char *const integers[2][4] = {
      {"Uint8Array", "Uint16Array", "Uint32Array", "BigUint64Array"},
      {"Int8Array", "Int16Array", "Int32Array", "BigInt64Array"}};
  u32 bytes = dtype_bytes(dt), log = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  if (dt == DT_f64) return "Float64Array";
  if (dt == DT_f32) return "Float32Array";
  if (dt == DT_none || dt == DT_str || dt == DT_c64 || dt == DT_c128) return NULL;
  return integers[!dtype_is_float(dt) && dtype_is_signed(dt)][log];
}

/* A name of a file as a relative URL. */
static void put_url(StrBuf *t, const char *file) {
  sb_puts(t, "\"");
  for (const char *at = file; *at; at++) {
    u8 ch = (u8)*at;
    bool fine = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                (ch && strchr("-._~", ch));
    sb_fmt(t, fine ? "%c" : "%%%02X", ch);
  }
  sb_puts(t, "\"");
}

static void put_text(StrBuf *t, const Prog *p, Str s) {
  sb_json(t, str_text(p->c, s), str_len(p->c, s));
}

/* 8, or { text: "n + 1", most: 9, base: 1, of: [[0, 1]] }; without `of`: only the run knows. */
static void put_dim(StrBuf *t, const Prog *p, Dim d) {
  i64 lo, hi;
  bool known = true;
  if (dim_is_const(d)) {
    sb_fmt(t, "%" PRId64, (i64)d);
    return;
  }
  DimTerms f = dim_terms(p->dims, d);
  StrBuf name = sb_new(&p->c->scratch);
  dim_print(p->dims, d, &name);
  dim_bounds(p->dims, d, &lo, &hi);
  sb_puts(t, "{ text: ");
  sb_json(t, name.at, name.n);
  sb_fmt(t, ", most: %" PRId64, hi);
  for (u32 i = 0; i < f.n; i++) known = known && prog_caller_knows(p, f.sym[i]);
  if (known) {
    sb_fmt(t, ", base: %" PRId64 ", of: [", f.k0);
    for (u32 i = 0; i < f.n; i++)
      sb_fmt(t, "%s[%u, %" PRId64 "]", i ? ", " : "", f.sym[i], f.coef[i]);
    sb_puts(t, "]");
  }
  sb_puts(t, " }");
}

static const Buf *array_port(const Prog *p, bool out, u32 i) {
  const Buf *b = prog_buf(p, out ? p->out.at[i] : p->in.at[i]);
  if (!array_of(b->dt))
    fail(p->c, ERR_unsupported, LOC_NONE, "%s %s: JavaScript has no arrays of %s",
         out ? "output" : "input", show(p->c, b->name), dtype_info[b->dt].name);
  return b;
}

static void put_ports(StrBuf *t, const Prog *p, bool out) {
  sb_fmt(t, "  %s: [\n", out ? "outputs" : "inputs");
  for (u32 i = 0; i < (out ? p->out.n : p->in.n); i++) {
    const Buf *b = array_port(p, out, i);
    sb_puts(t, "    { name: ");
    put_text(t, p, b->name);
    sb_fmt(t, ", type: \"%s\", dims: [", dtype_info[b->dt].name);
    for (u32 k = 0; k < b->rank; k++) {
      if (k) sb_puts(t, ", ");
      put_dim(t, p, b->dim[k]);
    }
    sb_puts(t, "] },\n");
  }
  sb_puts(t, "  ],\n");
}

/* Sizes of symbols that no input says are as large as can be; some are kept with the state. */
static void put_sizes(StrBuf *t, const Prog *p) {
  Sym sym;
  u64 at;
  bool first = true;
  sb_puts(t, "  sizes: [");
  for (Sym s = 0; s < dim_nsyms(p->dims); s++)
    sb_fmt(t, "%s%" PRId64, s ? ", " : "", dim_syminfo(p->dims, s)->hi);
  sb_puts(t, "],\n  kept: [");
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next) {
    if (!prog_is_state_size(p, id, &sym, &at)) continue;
    sb_fmt(t, "%s[%u, %" PRIu64 "]", first ? "" : ", ", sym, at);
    first = false;
  }
  sb_puts(t, "],\n");
}

static void put_interface(StrBuf *t, const Prog *p, bool out) {
  sb_fmt(t, "export interface %s {\n", out ? "Outputs" : "Inputs");
  for (u32 i = 0; i < (out ? p->out.n : p->in.n); i++) {
    const Buf *b = array_port(p, out, i);
    sb_puts(t, "  ");
    put_text(t, p, b->name);
    sb_fmt(t, ": %s<%s>; // %s[", out ? "Result" : "Given", array_of(b->dt),
           dtype_info[b->dt].name);
    for (u32 k = 0; k < b->rank; k++) {
      StrBuf one = sb_new(&p->c->scratch);
      dim_print(p->dims, b->dim[k], &one);
      sb_puts(t, k ? "," : "");
      for (size_t n = 0; n < one.n; n++) /* a name may hold ends of lines */
        sb_put(t, one.at[n] < ' ' || one.at[n] > '~' ? "?" : &one.at[n], 1);
    }
    sb_puts(t, "]\n");
  }
  sb_puts(t, "}\n");
}

void emit_module(const Prog *p, const ModuleOptions *o, StrBuf *module, StrBuf *types) {
  sb_fmt(module, "// Made by ingot %s.\n", o->version);
  sb_put(module, module_text, module_text_size);
  sb_puts(module, "const WASM = () => new URL(");
  put_url(module, o->file);
  sb_fmt(module, ", import.meta.url);\nconst MODEL = {\n  name: \"%s\",\n", o->name);
  put_ports(module, p, false);
  put_ports(module, p, true);
  put_sizes(module, p);
  sb_fmt(module, "  arena: %" PRIu64 ",\n  selftest: %" PRIu64 ",\n};\n", o->facts.arena_bytes,
         o->facts.selftest_bytes);
  sb_fmt(types, "// Made by ingot %s.\n", o->version);
  sb_put(types, module_types, module_types_size);
  put_interface(types, p, false);
  sb_puts(types, "\n");
  put_interface(types, p, true);
}
