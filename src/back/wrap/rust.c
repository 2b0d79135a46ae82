/* rust.c: a safe Rust wrapper around a generated file.
 *
 * In: the program, its name, the parameters of NAME_run. Out: src/lib.rs of a crate, and an example
 * program. Net owns its arena; sizes and slices are checked before the call. */
#include "back/wrap/wrap.h"
#include "ir/lexer.h"

#include <inttypes.h>
#include <string.h>

/* The Rust type of a C array element. */
static const char *rust_type(const char *c_type) {
  static const char *const names[][2] = {
      {"float", "f32"},    {"double", "f64"},   {"int8_t", "i8"},    {"int16_t", "i16"},
      {"int32_t", "i32"},  {"int64_t", "i64"},  {"uint8_t", "u8"},   {"uint16_t", "u16"},
      {"uint32_t", "u32"}, {"uint64_t", "u64"}, {"ptrdiff_t", "i64"}};
  for (u32 i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i][0], c_type)) return names[i][1];
  return "u8";
}

typedef enum RustForm { FM_extern, FM_safe, FM_call } RustForm;

static void put_params(StrBuf *t, const Prog *p, const EmitFacts *f, RustForm form) {
  bool bare = form == FM_call;
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    const char *type = rust_type(x->type);
    if (x->kind == PK_weights) continue; /* such files cannot be exported */
    sb_puts(t, ", ");
    switch (x->kind) {
    case PK_weights: break;
    case PK_size: sb_fmt(t, "%s%s", x->name, bare ? "" : ": i64"); break;
    case PK_seed: sb_fmt(t, "seed%s", bare ? "" : ": u64"); break;
    case PK_in:
      sb_fmt(t,
             bare              ? "%s.as_ptr()"
             : form == FM_safe ? "%s: &[%s]"
                               : "%s: *const %s",
             x->name, type);
      break;
    case PK_out:
      sb_fmt(t,
             bare              ? "%s.as_mut_ptr()"
             : form == FM_safe ? "%s: &mut [%s]"
                               : "%s: *mut %s",
             x->name, type);
      break;
    case PK_shape:
      sb_fmt(t,
             bare              ? "%s.as_mut_ptr()"
             : form == FM_safe ? "%s: &mut [i64; %u]"
                               : "%s: *mut i64",
             x->name, param_buf(p, x)->rank);
    }
  }
}

static const char head_text[] =
    "#![allow(non_snake_case, clippy::too_many_arguments)]\n\n"
    "use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};\n"
    "use std::ffi::CStr;\nuse std::fmt;\nuse std::os::raw::{c_char, c_int, c_void};\n\n";

static const char error_text[] =
    "/// Reason of a failed run.\n#[derive(Debug, Clone, PartialEq, Eq)]\n"
    "pub struct Error(pub String);\n\n"
    "impl fmt::Display for Error {\n"
    "    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {\n"
    "        f.write_str(&self.0)\n    }\n}\n\nimpl std::error::Error for Error {}\n\n"
    "struct Memory {\n    at: *mut u8,\n    layout: Layout,\n}\n\n"
    "impl Memory {\n    fn new(bytes: usize) -> Memory {\n"
    "        let layout = Layout::from_size_align(bytes.max(1), 64).expect(\"memory\");\n"
    "        let at = unsafe { alloc_zeroed(layout) };\n"
    "        if at.is_null() {\n            handle_alloc_error(layout);\n        }\n"
    "        Memory { at, layout }\n    }\n\n"
    "    fn pointer(&self) -> *mut c_void {\n        self.at as *mut c_void\n    }\n}\n\n"
    "impl Drop for Memory {\n    fn drop(&mut self) {\n"
    "        unsafe { dealloc(self.at, self.layout) }\n    }\n}\n\n";

static void put_extern(StrBuf *t, const Prog *p, const EmitFacts *f) {
  sb_puts(t, "extern \"C\" {\n    fn ${name}_run(arena: *mut c_void");
  put_params(t, p, f, FM_extern);
  sb_puts(t, ") -> c_int;\n    fn ${name}_why(status: c_int) -> *const c_char;\n");
  if (f->selftest_bytes) sb_puts(t, "    fn ${name}_selftest(memory: *mut c_void) -> c_int;\n");
  if (prog_has_state(p)) sb_puts(t, "    fn ${name}_reset(arena: *mut c_void);\n");
  sb_puts(t, "}\n\n");
}

static void put_checks(StrBuf *t, const Prog *p, const EmitFacts *f) {
  static const SizeSyntax sizes = {"1", "", "extent"};
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind != PK_size) continue;
    const SymInfo *s = dim_syminfo(p->dims, x->i);
    sb_fmt(t, "        within(\"%s\", %s, %" PRId64 ", %" PRId64 ")?;\n", x->name, x->name, s->lo,
           s->hi);
  }
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind != PK_in && x->kind != PK_out) continue;
    sb_fmt(t, "        need(\"%s\", %s.len(), ", x->name, x->name);
    put_elements(t, p, f, param_buf(p, x), &sizes);
    sb_puts(t, ")?;\n");
  }
}

static void put_net(StrBuf *t, const Prog *p, const EmitFacts *f) {
  bool state = prog_has_state(p);
  sb_puts(t, "/// The network with its own memory.\npub struct Net {\n    arena: Memory,\n}\n\n"
             "unsafe impl Send for Net {}\n\nimpl Default for Net {\n"
             "    fn default() -> Self {\n        Net::new()\n    }\n}\n\nimpl Net {\n"
             "    pub fn new() -> Net {\n");
  sb_fmt(t, "        let %snet = Net { arena: Memory::new(ARENA_BYTES) };\n", state ? "mut " : "");
  if (state) sb_puts(t, "        net.reset();\n");
  sb_puts(t, "        net\n    }\n\n    /// Runs the network once.\n    pub fn run(&mut self");
  put_params(t, p, f, FM_safe);
  sb_puts(t, ") -> Result<(), Error> {\n");
  put_checks(t, p, f);
  sb_puts(t, "        let status = unsafe { ${name}_run(self.arena.pointer()");
  put_params(t, p, f, FM_call);
  sb_puts(t, ") };\n        if status == 0 {\n            return Ok(());\n        }\n"
             "        let why = unsafe { CStr::from_ptr(${name}_why(status)) };\n"
             "        Err(Error(why.to_string_lossy().into_owned()))\n    }\n");
  if (state)
    sb_puts(t, "\n    /// Restores the initial state.\n    pub fn reset(&mut self) {\n"
               "        unsafe { ${name}_reset(self.arena.pointer()) }\n    }\n");
  if (f->selftest_bytes)
    sb_fmt(t,
           "\n    /// Does this build compute the same bits as ingot?\n"
           "    pub fn selftest() -> bool {\n        let memory = Memory::new(%" PRIu64 ");\n"
           "        unsafe { ${name}_selftest(memory.pointer()) == 0 }\n    }\n",
           f->selftest_bytes);
  sb_puts(t, "}\n");
}

static void put_constants(StrBuf *t, const Prog *p, const EmitFacts *f) {
  sb_fmt(t, "/// Bytes of the arena of a network.\npub const ARENA_BYTES: usize = %" PRIu64 ";\n",
         f->arena_bytes);
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    u64 n = 1;
    if (x->kind != PK_in && x->kind != PK_out) continue;
    const Buf *b = param_buf(p, x);
    for (u32 k = 0; k < b->rank; k++) {
      i64 lo, hi;
      dim_bounds(p->dims, b->dim[k], &lo, &hi);
      n *= (u64)hi; /* the C file declares an array of this size */
    }
    sb_fmt(t, "pub const %s%u_ELEMENTS: usize = %" PRIu64 ";\n", x->kind == PK_in ? "IN" : "OUT",
           x->i, n);
  }
  sb_puts(t, "\n");
}

static void put_helpers(StrBuf *t, const EmitFacts *f) {
  bool open = false;
  for (u32 i = 0; i < f->params.n; i++) open = open || f->params.at[i].kind == PK_size;
  sb_puts(t, error_text);
  if (open)
    sb_puts(t, "fn extent(n: i64) -> usize {\n    n.max(0) as usize\n}\n\n"
               "fn within(what: &str, n: i64, least: i64, most: i64) -> Result<(), Error> {\n"
               "    if n >= least && n <= most {\n        return Ok(());\n    }\n"
               "    Err(Error(format!(\"{}: {}, expected {} to {}\", what, n, least, most)))\n"
               "}\n\n");
  sb_puts(t, "fn need(what: &str, have: usize, least: usize) -> Result<(), Error> {\n"
             "    if have >= least {\n        return Ok(());\n    }\n"
             "    Err(Error(format!(\"{}: {} elements, expected {}\", what, have, least)))\n"
             "}\n\n");
}

static void put_example(StrBuf *t, const Prog *p, const EmitFacts *f) {
  StrBuf args = sb_new(&p->c->keep);
  sb_puts(t, "//! Runs the network on zeros and prints the first elements of its first output.\n"
             "fn main() -> Result<(), ${name}::Error> {\n    let mut net = ${name}::Net::new();\n");
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    const char *type = rust_type(x->type);
    if (x->kind == PK_weights) continue;
    sb_puts(&args, args.n ? ", " : "");
    switch (x->kind) {
    case PK_weights: break;
    case PK_size: sb_fmt(&args, "%" PRId64, dim_syminfo(p->dims, x->i)->hi); break;
    case PK_seed: sb_puts(&args, "0"); break;
    case PK_in:
      sb_fmt(t, "    let in%u = vec![0 as %s; ${name}::IN%u_ELEMENTS];\n", x->i, type, x->i);
      sb_fmt(&args, "&in%u", x->i);
      break;
    case PK_out:
      sb_fmt(t, "    let mut out%u = vec![0 as %s; ${name}::OUT%u_ELEMENTS];\n", x->i, type, x->i);
      sb_fmt(&args, "&mut out%u", x->i);
      break;
    case PK_shape:
      sb_fmt(t, "    let mut out%u_shape = [0i64; %u];\n", x->i, param_buf(p, x)->rank);
      sb_fmt(&args, "&mut out%u_shape", x->i);
    }
  }
  sb_fmt(t, "    net.run(%s)?;\n", sb_cstr(&args));
  if (p->out.n)
    sb_puts(t, "    for x in out0.iter().take(10) {\n        println!(\"{}\", x);\n    }\n");
  sb_puts(t, "    Ok(())\n}\n");
}

void emit_rust(const Prog *p, const char *name, const EmitFacts *f, StrBuf *library,
               StrBuf *example) {
  StrBuf t = sb_new(&p->c->keep), main = sb_new(&p->c->keep);
  const TemplateVar vars[] = {{"name", name}, {0}};
  sb_puts(&t, head_text);
  put_extern(&t, p, f);
  put_constants(&t, p, f);
  put_helpers(&t, f);
  put_net(&t, p, f);
  sb_subst(p->c, library, t.at, t.n, vars);
  put_example(&main, p, f);
  sb_subst(p->c, example, main.at, main.n, vars);
}
