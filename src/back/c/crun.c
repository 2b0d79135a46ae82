/* crun.c: support for callers that know a model only at run time.
 *
 * Writes NAME_call, an entry with the same signature for every model (engine c and tools/runner.c);
 * NAME_facts, lines that such a caller compares; and the table that describes the model to the
 * runner. */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

#define CALL_PARAMS                                                                                \
  "(void *arena, const int64_t *size, uint64_t seed, const void *const *in, void *const *out,\n"   \
  "               int64_t *const *shape)"

/* Shapes that depend on input sizes only; the entry writes those that depend on data. */
static void put_shapes(Emit *e, StrBuf *t) {
  for (Sym s = 0; s < dim_nsyms(e->p->dims); s++)
    if (dim_syminfo(e->p->dims, s)->kind == SY_input)
      e->var.at[prog_sym_var(e->p, s)] = fmt_text(e->c, "size[%u]", s);
  e->t = t;
  put_out_shapes(e, "shape[%u][%u] = ", false);
}

/* ---- facts ---- */

/* input "x" f32[n,8] */
static Str value_line(const Prog *p, const char *what, const Buf *b) {
  StrBuf t = sb_new(&p->c->scratch);
  sb_fmt(&t, "%s \"%s\" %s[", what, str_text(p->c, b->name), dtype_info[b->dt].name);
  for (u32 k = 0; k < b->rank; k++) {
    sb_puts(&t, k ? "," : "");
    dim_print(p->dims, b->dim[k], &t);
  }
  sb_puts(&t, "]");
  return c_short_text(p->c, str_intern(p->c, t.at, t.n));
}

static u64 weights_hash(const Prog *p, u64 hash) {
  for (BufId b = 1; b < p->buf.n; b++) {
    const Tensor *x = p->buf.at[b].data;
    if (x) hash = (hash ^ hash_bytes(x->data, tensor_bytes(x))) * 1099511628211u;
  }
  return hash;
}

/* "avx2-loops": the file for avx2, compiled without these vectors. */
static Str target_line(Ctx *c, const char *march) {
  const char *end = strstr(march, "-loops");
  return str_fmt(c, "target %.*s", (int)(end ? (size_t)(end - march) : strlen(march)), march);
}

StrList emit_fact_lines(const Prog *const *variant, u32 n, const char *march, u64 model,
                        u64 arena) {
  const Prog *p = variant[0];
  Ctx *c = p->c;
  StrList lines = {0};
  u64 hash = 0;
  for (u32 i = 0; i < n; i++) hash = weights_hash(variant[i], hash);
  for (u32 i = 0; i < p->in.n; i++)
    *vec_push(&c->keep, &lines) = value_line(p, "input", prog_buf(p, p->in.at[i]));
  for (u32 i = 0; i < p->out.n; i++)
    *vec_push(&c->keep, &lines) = value_line(p, "output", prog_buf(p, p->out.at[i]));
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    const SymInfo *info = dim_syminfo(p->dims, s);
    if (info->kind == SY_input)
      *vec_push(&c->keep, &lines) =
          str_fmt(c, "size \"%s\" %" PRId64 "..%" PRId64, str_text(c, c_short_text(c, info->name)),
                  info->lo, info->hi);
  }
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space == BS_state)
      *vec_push(&c->keep, &lines) = value_line(p, fmt_text(c, "state at %" PRIu64, x->offset), x);
  }
  *vec_push(&c->keep, &lines) = target_line(c, march);
  *vec_push(&c->keep, &lines) = str_fmt(c, "model %016" PRIx64, model);
  *vec_push(&c->keep, &lines) = str_fmt(c, "weights %016" PRIx64, hash);
  *vec_push(&c->keep, &lines) = str_fmt(c, "arena %" PRIu64, arena);
  return lines;
}

static void put_facts(Emit *e, StrBuf *t, const Prog *const *variant, u32 n, u64 arena) {
  StrList lines = emit_fact_lines(variant, n, e->o->march, e->o->hash, arena);
  put_template(
      e, t, "\nextern const char *const ${name}_facts[];\nconst char *const ${name}_facts[] = {\n");
  for (u32 i = 0; i < lines.n; i++) {
    sb_puts(t, "  ");
    emit_string(t, str_text(e->c, lines.at[i]), str_len(e->c, lines.at[i]));
    sb_puts(t, ",\n");
  }
  sb_puts(t, "  0};\n");
}

/* ---- NAME_call ---- */

void put_caller(Emit *e, StrBuf *t, const Prog *const *variant, u32 n, u64 arena) {
  StrBuf call = sb_new(&e->c->keep);
  put_facts(e, t, variant, n, arena);
  put_template(e, t,
               "\nint ${name}_call" CALL_PARAMS ";\nint ${name}_call" CALL_PARAMS " {\n"
               "  (void)size, (void)seed, (void)in, (void)out, (void)shape;\n");
  put_template(e, &call, "  return ${name}_run(arena");
  if (e->o->weights == WM_pointer) sb_fmt(&call, ", in[%u]", e->p->in.n);
  put_run_args(e, &call,
               &(ArgFormats){", size[%u]", ", seed", ", in[%u]", ", out[%u]", ", shape[%u]"});
  put_shapes(e, t);
  sb_put(t, call.at, call.n);
  sb_puts(t, ");\n}\n");
}

/* ---- the table of the runner ---- */

/* A row of type Value: see tools/model.h. */
static void put_value(const Prog *p, StrBuf *t, const Buf *b, u32 limit) {
  u32 bits = dtype_info[b->dt].bits, size = dtype_bytes(b->dt);
  bool known = b->dt == DT_bool ||
               (bits == 8 * size && (!dtype_is_float(b->dt) || (bits > 8 && b->dt != DT_bf16)));
  char kind = b->dt == DT_bool         ? 'b'
              : dtype_is_float(b->dt)  ? 'f'
              : dtype_is_signed(b->dt) ? 'i'
                                       : 'u';
  StrBuf max = sb_new(&p->c->scratch), base = sb_new(&p->c->scratch), coef = sb_new(&p->c->scratch);
  StrBuf syms = sb_new(&p->c->scratch), coef2 = sb_new(&p->c->scratch),
         syms2 = sb_new(&p->c->scratch);
  for (u32 k = 0; k < b->rank; k++) {
    i64 lo, hi;
    dim_bounds(p->dims, b->dim[k], &lo, &hi);
    DimTerms f = dim_terms(p->dims, b->dim[k]);
    bool linear = (f.n == 1 || f.n == 2) && prog_caller_knows(p, f.sym[0]) &&
                  prog_caller_knows(p, f.sym[f.n - 1]);
    sb_fmt(&max, "%" PRId64 ",", hi);
    sb_fmt(&base, "%" PRId64 ",", linear ? f.k0 : hi);
    sb_fmt(&coef, "%" PRId64 ",", linear ? f.coef[0] : 0);
    sb_fmt(&syms, "%d,", linear ? (int)f.sym[0] : -1);
    sb_fmt(&coef2, "%" PRId64 ",", linear && f.n > 1 ? f.coef[1] : 0);
    sb_fmt(&syms2, "%d,", linear && f.n > 1 ? (int)f.sym[1] : -1);
  }
  sb_puts(t, "  {");
  emit_string(t, str_text(p->c, b->name), str_len(p->c, b->name));
  sb_fmt(t, ", '%c', %u, %u, %u, %u, {%s0}, {%s0}, {%s0}, {%s0}, {%s0}, {%s0}},\n",
         known ? kind : 'x', size,
         b->dt == DT_bf16 ? 14 /* generated elements are below 2 */
         : bits > 1       ? bits - 1
                          : 1,
         limit, b->rank, sb_cstr(&max), sb_cstr(&base), sb_cstr(&coef), sb_cstr(&syms),
         sb_cstr(&coef2), sb_cstr(&syms2));
}

/* Writes the sizes that are kept with the state. Returns their number. */
static u32 put_kept_sizes(const Prog *p, StrBuf *t) {
  u32 n = 0;
  Sym sym;
  u64 at;
  sb_puts(t, "static const StateSlot kept[] = {");
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next)
    if (prog_is_state_size(p, id, &sym, &at)) {
      sb_fmt(t, "{%u, %" PRIu64 "}, ", sym, at);
      n++;
    }
  sb_puts(t, "{-1, 0}};\n");
  return n;
}

void emit_runner(const Prog *p, const char *name, const u32 *limit, EmitFacts facts, u32 threads,
                 StrBuf *out) {
  u64 test_bytes = facts.selftest_bytes;
  bool state = prog_has_state(p);
  const TemplateVar vars[] = {{"name", name}, {0}};
  StrBuf filled = sb_new(&p->c->scratch), *t = &filled; /* a template */
  sb_puts(t, "\nextern int ${name}_call" CALL_PARAMS
             ";\nextern const char *${name}_why(int status);\n");
  if (test_bytes) sb_puts(t, "extern int ${name}_selftest(void *memory);\n");
  if (state) sb_puts(t, "extern void ${name}_reset(void *arena);\n");
  if (threads > 1)
    sb_puts(t, "extern int ${name}_threads_start(void *arena, int threads);\n"
               "extern void ${name}_threads_stop(void *arena);\n");
  sb_subst(p->c, out, t->at, t->n, vars);
  for (u32 is_out = 0; is_out < 2; is_out++) {
    u32 n = is_out ? p->out.n : p->in.n;
    sb_fmt(out, "static const Value %s[%u] = {\n", is_out ? "outputs" : "inputs", n + 1);
    for (u32 i = 0; i < n; i++) {
      const Buf *b = prog_buf(p, is_out ? p->out.at[i] : p->in.at[i]);
      if (b->rank > 8)
        fail(p->c, ERR_unsupported, LOC_NONE,
             "building a program supports at most 8 dimensions per input or output");
      put_value(p, out, b, is_out ? 0 : limit[i]);
    }
    sb_puts(out, "  {0, 0, 0, 0, 0, 0, {0}, {0}, {0}, {0}, {0}, {0}}};\n");
  }
  u32 ns = dim_nsyms(p->dims), nkept = put_kept_sizes(p, out);
  sb_fmt(out, "static const int64_t sizes[%u] = {", ns + 1);
  for (u32 s = 0; s < ns; s++) sb_fmt(out, "%" PRId64 ", ", dim_syminfo(p->dims, s)->hi);
  t->n = 0;
  sb_fmt(
      t,
      "0};\nconst Model ingot_model = {\"${name}\", %u, %u, %u, %u, inputs, outputs, kept, sizes, "
      "%" PRIu64 ", %" PRIu64 ", ${name}_call, ${name}_why, %s, %s, %s, %u, %u};\n",
      p->in.n, p->out.n, ns, nkept, facts.arena_bytes, test_bytes,
      test_bytes ? "${name}_selftest" : "0", state ? "${name}_reset" : "0",
      threads > 1 ? "${name}_threads_start, ${name}_threads_stop" : "0, 0",
      threads > 1 ? threads : 1, facts.nprofile);
  if (facts.nprofile)
    sb_puts(t, "\nvoid ${name}_profile(int kernel);\nvoid ${name}_profile(int kernel) {\n"
               "  ingot_kernel(kernel);\n}\n");
  sb_subst(p->c, out, t->at, t->n, vars);
}
