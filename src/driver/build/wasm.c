/* wasm.c: builds a model as WebAssembly, with a JavaScript module.
 *
 * In: a model, and OUT.wasm. Out: OUT.wasm, OUT.mjs and OUT.d.mts. clang compiles the generated C
 * for wasm32 and wasm-ld links it without libraries: clang turns calls of <string.h> into
 * instructions. Large weights are assembled in and passed to every call. The module imports
 * nothing; it exports its memory, NAME_call and the related functions.
 */
#include "driver/build/build_product.h"

#include <string.h>

#define WASM_FLAGS "--target=wasm32 -mbulk-memory -mnontrapping-fptoint -msign-ext"

enum { NFILES = 3, STACK_SPARE = 16 << 10 };

typedef struct WasmBuild {
  Ingot *m;
  const IngotBuild *o;
  const char *name; /* prefix of C names */
  TempDir folder;
  CodeSize size;
} WasmBuild;

static const char *const ends[NFILES] = {".d.mts", ".mjs", ".wasm"};

/* ---- early checks ---- */

static void need_plain_options(Ctx *c, const IngotBuild *o) {
  const struct {
    const char *name;
    bool given;
  } foreign[] = {{"--backend", o->backend != NULL},  {"--triple", o->triple != NULL},
                 {"--sanitize", o->sanitize},        {"--weights", o->c.weights != NULL},
                 {"--preset", o->preset != NULL},    {"--lto", o->lto != 0},
                 {"--pgo", o->pgo != NULL},          {"--bolt", o->bolt != 0},
                 {"--fast-math", o->fast_math != 0}, {"--profile", o->c.profile != 0},
                 {"--debug", o->c.debug != 0}};
  for (u32 i = 0; i < sizeof foreign / sizeof *foreign; i++)
    if (foreign[i].given)
      fail(c, ERR_unsupported, LOC_NONE, "%s is not supported for OUT.wasm", foreign[i].name);
}

/* NULL: not found. */
static const char *compiler(Ctx *c, const IngotBuild *o) {
  if (!o->cc) return tool_find(c, "clang");
  spawn_check(c, "C compiler", o->cc);
  return o->cc;
}

void wasm_check(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  const char *path[NFILES];
  if (o->target && strcmp(o->target, "wasm") != 0)
    fail(c, ERR_usage, LOC_NONE, "--target %s: expected wasm or cuda[:CHIPS]; use --march for CPUs",
         o->target);
  if (product_kind(o->output) != PD_wasm)
    fail(c, ERR_usage, LOC_NONE, "--target wasm: expected OUT.wasm, found %s", o->output);
  if (o->march && strcmp(o->march, "simd128") != 0 && strcmp(o->march, "scalar") != 0)
    fail(c, ERR_usage, LOC_NONE, "--march %s: WebAssembly has simd128 (the default) and scalar",
         o->march);
  if (o->optimize && (strlen(o->optimize) != 1 || !strchr("0123s", *o->optimize)))
    fail(c, ERR_usage, LOC_NONE, "-O%s: expected 0, 1, 2, 3 or s", o->optimize);
  need_plain_options(c, o);
  for (u32 i = 0; i < NFILES; i++) path[i] = build_sibling_path(c, o->output, ends[i]);
  files_plan(c, path, NFILES);
  if (!compiler(c, o)) tool_missing(c, "clang", "WebAssembly");
  if (!tool_find(c, "wasm-ld")) tool_missing(c, "wasm-ld", "WebAssembly");
}

/* ---- objects ---- */

static void begin(Ctx *c, WasmBuild *b, ArgVec *w) {
  const IngotBuild *o = b->o;
  argv_add(c, w, compiler(c, o));
  argv_add(c, w, WASM_FLAGS " -std=c99 -ffp-contract=off -fvisibility=hidden");
  argv_target(c, w, b->m);
  const char *usual = b->m->codegen.aim == AIM_size ? "s" : "2";
  argv_fmt(c, w, "-O%s", o->optimize ? o->optimize : usual);
  argv_put(c, w, "-isystem", b->folder.path);
}

/* Writes headers without a C library: no function is called, see -mbulk-memory. */
static void put_headers(Ctx *c, const WasmBuild *b) {
  static const char text[] = "#include <stddef.h>\n"
                             "void *memcpy(void *, const void *, size_t);\n"
                             "void *memmove(void *, const void *, size_t);\n"
                             "void *memset(void *, int, size_t);\n";
  build_file(c, tempdir_file(c, &b->folder, "string.h"),
             (FileOut){.at = text, .n = sizeof text - 1});
}

/* Makes an object file of the weights. */
static const char *assemble_weights(Ctx *c, WasmBuild *b) {
  const Blob *blob = &b->m->written.blob;
  const char *data = tempdir_file(c, &b->folder, "weights.bin"),
             *source = tempdir_file(c, &b->folder, "weights.s"),
             *object = tempdir_file(c, &b->folder, "weights.o"),
             *name = fmt_text(c, "%s_weight_file", b->name);
  StrBuf t = sb_new(&c->keep);
  ArgVec w = {0};
  build_file(c, data, (FileOut){.n = blob->piece.n, .piece = blob->piece.at});
  sb_fmt(&t, "\t.section .rodata.%s,\"\",@\n\t.globl %s\n\t.p2align 6\n\t.type %s,@object\n%s:\n",
         name, name, name, name);
  sb_puts(&t, "\t.incbin ");
  emit_string(&t, data, strlen(data)); /* the assembler accepts C escapes */
  sb_fmt(&t, "\n\t.size %s, %llu\n", name, (unsigned long long)blob->n);
  build_file(c, source, (FileOut){.at = t.at, .n = t.n});
  argv_add(c, &w, compiler(c, b->o));
  argv_put(c, &w, "--target=wasm32", "-c", "-o", object, source);
  spawn_run(c, &b->folder, "C compiler", w.at);
  return object;
}

/* The stack is at address 0: an overflow traps instead of changing data. */
static const char *link(Ctx *c, WasmBuild *b, const EmitFacts *facts, const ArgVec *object) {
  const char *path = tempdir_file(c, &b->folder, "module.wasm");
  u64 stack = (facts->stack_bytes + STACK_SPARE + 63) / 64 * 64;
  ArgVec w = {0};
  const struct {
    const char *name;
    bool is_there;
  } function[] = {{"call", true},
                  {"why", true},
                  {"target", true},
                  {"reset", prog_has_state(b->m->p)},
                  {"selftest", facts->selftest_bytes},
                  {"weight_file", b->m->written.blob.n}};
  argv_put(c, &w, tool_find(c, "wasm-ld"));
  argv_add(c, &w, "--no-entry --gc-sections --strip-all --stack-first --export=__heap_base -z");
  argv_fmt(c, &w, "stack-size=%llu", (unsigned long long)stack);
  for (u32 i = 0; i < sizeof function / sizeof *function; i++)
    if (function[i].is_there) argv_fmt(c, &w, "--export=%s_%s", b->name, function[i].name);
  argv_put(c, &w, "-o", path);
  argv_put_list(c, &w, object->at);
  spawn_run(c, &b->folder, "linker", w.at);
  return path;
}

/* ---- build ---- */

/* Does a state have initial data? These are not passed by pointer. */
static bool has_beginnings(const Ingot *m) {
  for (u32 i = 0; i < (m->machine.variant_progs ? m->machine.variants.n : 1); i++) {
    const Prog *p = api_program(m, i);
    for (BufId b = 1; b < p->buf.n; b++)
      if (prog_buf(p, b)->space == BS_state && prog_buf(p, b)->data) return true;
  }
  for (u32 i = 0; i < m->entries.also.n; i++)
    if (has_beginnings(m->entries.also.at[i])) return true;
  return false;
}

static void build(Ctx *c, void *arg) {
  WasmBuild *b = arg;
  const char *output = b->o->output, *slash = strrchr(output, '/');
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep), module = sb_new(&c->keep),
         types = sb_new(&c->keep);
  IngotCodegen ic = b->o->c;
  ArgVec w = {0};
  tempdir_make(c, &b->folder);
  ic.name = b->name;
  ic.caller = 1;
  ic.split = PARTS_LIMIT;
  api_compile_variants(b->m);
  if (api_weight_bytes(b->m) > WEIGHTS_FILE_BYTES && !has_beginnings(b->m)) ic.weights = "pointer";
  b->m->compiled.linked = true;
  EmitFacts facts = api_emit(b->m, &ic, false, &source, &header);
  ModuleOptions mo = {b->name, slash ? slash + 1 : output, INGOT_VERSION, facts};
  emit_module(b->m->p, &mo, &module, &types);
  const char *path = tempdir_file(c, &b->folder, "model.c");
  build_file(c, path, (FileOut){.at = source.at, .n = source.n});
  put_headers(c, b);
  begin(c, b, &w);
  ArgVec object = parts_compile(c, &b->folder, &w, path, b->name, parts_wanted(facts.code_bytes));
  if (b->m->written.blob.n) argv_put(c, &object, assemble_weights(c, b));
  File f = file_read_own(c, link(c, b, &facts, &object));
  FileOut out[NFILES] = {
      {.at = types.at, .n = types.n}, {.at = module.at, .n = module.n}, {.at = f.at, .n = f.n}};
  for (u32 i = 0; i < NFILES; i++) out[i].path = build_sibling_path(c, output, ends[i]);
  files_write(c, out, NFILES);
  b->size = (CodeSize){.text = f.n, .arena = facts.arena_bytes};
}

CodeSize wasm_build(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  WasmBuild b = {.m = m, .o = o};
  b.folder.on_command = o->on_command;
  b.folder.user = o->user;
  b.name = o->c.name ? o->c.name : build_stem(c, o->output, PD_wasm);
  if (api_entry_count(m) > 1)
    fail(c, ERR_unsupported, LOC_NONE,
         "OUT.wasm runs one model; expected OUT.o, OUT.a or OUT.so for several");
  if (m->codegen.threads > 1)
    fail(c, ERR_unsupported, LOC_NONE, "--threads is not supported for OUT.wasm");
  api_march(m, o->march ? o->march : "simd128", o->cc);
  tempdir_protect(c, &b.folder, build, &b);
  return b.size;
}
