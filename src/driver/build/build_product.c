/* build_product.c: builds a model as an object file, a library or a program.
 *
 * In: a model and options for the C compiler. Out: a file, written atomically. Everything is made
 * in a temporary folder and then copied; a PGO build (pgo_steps.c) makes several variants there.
 * Weights above WEIGHTS_FILE_BYTES are assembled in from a file, because C compilers are slow on
 * long strings.
 */
#include "driver/build/build_product.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const unsigned char runner_text[], player_text[];
extern const size_t runner_text_size, player_text_size;

enum { MAX_FILES = 4 };

/* Suffixes that are refused. */
static const struct {
  const char *end, *why;
} foreign[] = {
    {".c", "is a source file: use ingot compile"},
    {".h", "is a source file: use ingot compile"},
    {".onnx", "is a model file"},
    {".js", "is written with OUT.wasm"},
    {".dll", "is a Windows library"},
    {".lib", "is a Windows library"},
    {".exe", "is a Windows program"},
    {".dylib", "is a macOS library"},
};

ProductKind product_kind(const char *path) {
  return ends_with(path, ".o")      ? PD_object
         : ends_with(path, ".a")    ? PD_archive
         : ends_with(path, ".so")   ? PD_shared
         : ends_with(path, ".wasm") ? PD_wasm
                                    : PD_program;
}

const char *build_default_level(const ProductBuild *b) {
  return b->m->codegen.aim == AIM_size ? "s" : "2";
}

/* Object files and archives contain machine code, so that any compiler can link them. */
static bool links(const ProductBuild *b) {
  return b->kind >= PD_shared;
}

static void begin(Ctx *c, ProductBuild *b, const BuildConfig *v, ArgVec *w) {
  const IngotBuild *o = b->o;
  argv_compiler(c, w, o->cc);
  argv_put(c, w, "-std=c99");
  argv_fmt(c, w, "-O%s", v->optimize);
  argv_put(c, w, "-ffp-contract=off");
  argv_target(c, w, b->m);
  argv_threads(c, w, b->m);
  if (b->preset->debug) argv_put(c, w, "-g");
  if (v->fast_math) argv_add(c, w, fast_math_flags);
  if (v->lto && links(b)) argv_add(c, w, b->chain.lto);
  argv_put_list(c, w, v->profile.at);
  /* llvm-bolt splits functions itself */
  if (v->relocs && b->chain.kind == CK_gcc) argv_put(c, w, "-fno-reorder-blocks-and-partition");
  if (o->sanitize) {
    argv_fmt(c, w, "-fsanitize=%s", o->sanitize);
    argv_put(c, w, "-fno-sanitize-recover=all");
  }
}

void build_file(Ctx *c, const char *path, FileOut f) {
  f.path = path;
  f.transient = true;
  files_write(c, &f, 1);
}

static FileOut blob_file(const Ingot *m) {
  return (FileOut){.n = m->written.blob.piece.n, .piece = m->written.blob.piece.at};
}

/* Prints a path for .incbin: escaped for the assembler, then for C. */
static void put_path(Ctx *c, StrBuf *t, const char *path) {
  StrBuf once = sb_new(&c->keep);
  emit_string(&once, path, strlen(path));
  emit_string(t, once.at + 1, once.n - 2);
}

/* Compiles one object file per part. A profile refers to source names, so these must not contain
 * the folder. */
static ArgVec compile(Ctx *c, ProductBuild *b, const BuildConfig *v, const char *file,
                      const StrBuf *text, u32 parts) {
  const char *source = tempdir_file(c, &b->folder, file);
  ArgVec w = {0};
  StrBuf named = sb_new(&c->keep);
  if (v->profile.n) {
    sb_fmt(&named, "#line 1 \"%s\"\n", file);
    sb_put(&named, text->at, text->n);
    text = &named;
  }
  build_file(c, source, (FileOut){.at = text->at, .n = text->n});
  begin(c, b, v, &w);
  if (b->kind == PD_shared) argv_put(c, &w, "-fPIC");
  if (b->m->written.blob.n) { /* absolute path: the current folder may have a file of that name */
    StrBuf upper = sb_new(&c->keep);
    sb_upper(&upper, b->name);
    StrBuf define = sb_new(&c->keep);
    sb_fmt(&define, "-D%s_WEIGHTS_FILE=", sb_cstr(&upper));
    put_path(c, &define, str_text(c, str_fmt(c, "%s.bin", tempdir_file(c, &b->folder, b->name))));
    argv_put(c, &w, sb_cstr(&define));
  }
  return parts_compile(c, &b->folder, &w, source, b->name, parts);
}

/* Makes an object file with LLVM; the C is only used for its header. */
static ArgVec assemble(Ctx *c, ProductBuild *b) {
  const char *path = tempdir_file(c, &b->folder, "model.o");
  StrBuf object = sb_new(&c->keep);
  ArgVec w = {0};
  api_object(b->m, b->o, b->name, &object);
  build_file(c, path, (FileOut){.at = object.at, .n = object.n});
  argv_put(c, &w, path);
  return w;
}

/* Joins several object files into one. */
static const char *join(Ctx *c, ProductBuild *b, const char *path, const ArgVec *object) {
  ArgVec w = {0};
  if (object->n == 1) return object->at[0];
  argv_compiler(c, &w, b->o->cc);
  argv_target(c, &w, b->m);
  argv_put(c, &w, "-nostdlib", "-r", "-o", path);
  argv_put_list(c, &w, object->at);
  spawn_run(c, &b->folder, "C compiler", w.at);
  return path;
}

static const char *archive(Ctx *c, ProductBuild *b, const char *path, const ArgVec *object) {
  const char *ar = getenv("AR");
  ArgVec w = {0};
  argv_add(c, &w, ar && *ar ? ar : "ar");
  argv_put(c, &w, "rcsD", path);
  argv_put_list(c, &w, object->at);
  spawn_run(c, &b->folder, "archiver", w.at);
  return path;
}

/* kind: of the product, or a program. */
static const char *link(Ctx *c, ProductBuild *b, const BuildConfig *v, ProductKind kind,
                        const char *path, const ArgVec *object) {
  ArgVec w = {0};
  begin(c, b, v, &w);
  if (kind == PD_shared) argv_put(c, &w, "-shared");
  if (b->preset->strip && !v->relocs) argv_put(c, &w, "-s");
  if (v->relocs) argv_put(c, &w, "-Wl,--emit-relocs");
  argv_put(c, &w, "-o", path);
  argv_put_list(c, &w, object->at);
  argv_put(c, &w, "-lm");
  spawn_run(c, &b->folder, "C compiler", w.at);
  return path;
}

const char *build_sibling_path(Ctx *c, const char *output, const char *end) {
  StrBuf path = sb_new(&c->keep);
  sb_put(&path, output, (size_t)(strrchr(output, '.') - output));
  sb_puts(&path, end);
  return sb_cstr(&path);
}

/* Sizes of loaded sections of a 64-bit object file in native byte order; zeros for other files. */
static CodeSize measure(const File *f) {
  CodeSize z = {0};
  Elf64_Ehdr h;
  if (f->n < sizeof h) return z;
  memcpy(&h, f->at, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64) return z;
  for (u32 i = 0; i < h.e_shnum; i++) {
    Elf64_Shdr s;
    u64 at = h.e_shoff + (u64)i * h.e_shentsize;
    if (at > f->n || f->n - at < sizeof s) return z;
    memcpy(&s, f->at + at, sizeof s);
    if (!(s.sh_flags & SHF_ALLOC)) continue;
    if (s.sh_flags & SHF_EXECINSTR)
      z.text += s.sh_size;
    else
      z.data += s.sh_size;
  }
  return z;
}

/* Prints the initial states and the prompt they come from. */
static void put_baked(const Ingot *m, StrBuf *t) {
  if (!m->prompt_cache.n) return;
  sb_puts(t, "  .system = ");
  emit_string(t, m->options.prompt, strlen(m->options.prompt));
  sb_fmt(t, ", .nbaked = %u, .baked = (const u32[]){", m->prompt_cache.n);
  for (u32 i = 0; i < m->prompt_cache.n; i++) sb_fmt(t, i ? ", %u" : "%u", m->prompt_cache.id[i]);
  sb_puts(t, "},\n");
}

/* Prints the table for tools/player.c. The tokenizer comes from a file, as weights do. */
static void put_player(Ctx *c, ProductBuild *b, const LmAssets *s, StrBuf *t) {
  const char *path = tempdir_file(c, &b->folder, "vocab.bin");
  build_file(c, path, (FileOut){.at = s->vocab, .n = s->nvocab});
  sb_puts(t, "\n__asm__(\".section .rodata\\n.balign 64\\n.globl ingot_vocab\\ningot_vocab:\\n\"\n"
             "        \".incbin \\\"\" ");
  put_path(c, t, path);
  sb_puts(t, " \"\\\"\\n.byte 0\\n.text\\n\");\n"
             "extern const unsigned char ingot_vocab[];\n"
             "const Player ingot_player = {\n");
  sb_fmt(t, "  .vocab = ingot_vocab, .nvocab = %zu,\n  .token_bytes = %.17g, .kv_bytes = %.17g,\n",
         s->nvocab, s->token_bytes, api_kv_bytes(b->m));
  /* baked ids were computed with a date */
  if (b->m->options.day && !b->m->prompt_cache.n)
    fail(c, ERR_usage, LOC_NONE,
         "--date: applies to --bake-prompt and to C; a program takes its own --date when it runs");
  if (b->m->prompt_cache.n) sb_fmt(t, "  .day = %lld,\n", (long long)api_chat_day(b->m));
  put_baked(b->m, t);
  const struct LmSampling *own = &s->sampling;
  sb_fmt(t, "  .sampling = {%.9g, %.9g, %.9g, %.9g, %.9g},\n", own->temperature, own->top_k,
         own->top_p, own->min_p, own->repeat);
  sb_fmt(t, "  .ring = %lld, .context = %lld};\n", (long long)api_kv_min_length(b->m),
         (long long)api_context_length(b->m));
}

/* Prints the main file of a program: a chat program, or one on arrays. */
static void put_main(Ctx *c, ProductBuild *b, bool chats, StrBuf *t) {
  const LmAssets *s = chats ? api_chat_assets(b->m) : NULL;
  u32 threads = b->m->p->threads > 1 && !b->m->codegen.openmp ? b->m->p->threads : 1;
  if (s)
    sb_put(t, player_text, player_text_size);
  else
    sb_put(t, runner_text, runner_text_size);
  emit_runner(b->m->p, b->name, api_index_limits(b->m), b->facts, threads, t);
  emit_cpu_needs(t);
  if (s) put_player(c, b, s, t);
}

/* A chat program is optimized with the model. A program on arrays is compiled once, with the first
 * and plainest configuration. */
static ArgVec compile_main(Ctx *c, ProductBuild *b, const BuildConfig *v, bool chats) {
  if (!chats && b->runner.n) return b->runner;
  StrBuf text = sb_new(&c->keep);
  BuildConfig strict = *v;
  strict.fast_math = false;
  put_main(c, b, chats, &text);
  ArgVec main = compile(c, b, &strict, chats ? "player-main.c" : "runner-main.c", &text, 1);
  if (!chats) b->runner = main;
  return main;
}

/* Compiles the CPU check, which runs before any code for the target: without target flags and
 * without a profile. */
static ArgVec compile_guard(Ctx *c, ProductBuild *b) {
  const char *source = tempdir_file(c, &b->folder, "guard-main.c");
  ArgVec flags = {0}, w = {0};
  StrBuf text = sb_new(&c->keep);
  argv_target(c, &flags, b->m);
  if (b->guard.n || !flags.n) return b->guard;
  emit_cpu_check(b->name, &text);
  build_file(c, source, (FileOut){.at = text.at, .n = text.n});
  argv_compiler(c, &w, b->o->cc);
  argv_add(c, &w, "-std=c99");
  b->guard = parts_compile(c, &b->folder, &w, source, b->name, 1);
  return b->guard;
}

/* Links the code as a program. */
static const char *make_program(Ctx *c, ProductBuild *b, const BuildConfig *v, const ArgVec *object,
                                bool chats, const char *what) {
  ArgVec main = compile_main(c, b, v, chats), guard = compile_guard(c, b), all = {0};
  argv_put_list(c, &all, object->at);
  argv_put_list(c, &all, main.at);
  argv_put_list(c, &all, guard.at);
  const char *path = tempdir_file(c, &b->folder, str_text(c, str_fmt(c, "%s-%s", v->step, what)));
  return link(c, b, v, PD_program, path, &all);
}

void build_compile(Ctx *c, ProductBuild *b, BuildConfig *v) {
  const char *source = str_text(c, str_fmt(c, "%s.c", b->name));
  u32 parts = v->lto && !links(b) ? 1 : b->parts;
  StrBuf text = v->fast_math ? fast_math_source(c, &b->source) : b->source;
  ArgVec object = b->o->backend ? assemble(c, b) : compile(c, b, v, source, &text, parts);
  const char *path = tempdir_file(c, &b->folder, str_text(c, str_fmt(c, "%s-product", v->step)));
  b->size.text = b->size.data = 0;
  for (u32 i = 0; i < object.n; i++) {
    File one = file_read_own(c, object.at[i]);
    CodeSize size = measure(&one);
    b->size.text += size.text;
    b->size.data += size.data;
  }
  v->product = b->kind == PD_object    ? join(c, b, path, &object)
               : b->kind == PD_archive ? archive(c, b, path, &object)
               : b->kind == PD_shared  ? link(c, b, v, PD_shared, path, &object)
                                       : make_program(c, b, v, &object, b->chats, "product");
  if (b->kind == PD_program) v->program = v->product;
  if (v->program && b->kind != PD_program)
    v->program = make_program(c, b, v, &object, b->chats, "program");
  if (v->arrays)
    v->arrays = b->chats ? make_program(c, b, v, &object, false, "arrays") : v->program;
}

/* Emits the C of the model for the next configurations, and other source files. */
void build_text(Ctx *c, ProductBuild *b) {
  const IngotBuild *o = b->o;
  IngotCodegen *ic = &b->ic;
  *ic = o->c;
  ic->name = b->name;
  bool measured = pgo_wanted(o) && pgo_can_measure(c, b);
  ic->caller = ic->caller || b->kind == PD_program || measured;
  if (!ic->split) ic->split = PARTS_LIMIT;
  api_compile_variants(b->m);
  if (o->backend) {
    api_need_single_variant(b->m);
    ic->selftest = -1;
  }
  if (!o->backend && !ic->weights && api_weight_bytes(b->m) > WEIGHTS_FILE_BYTES)
    ic->weights = "file";
  if (ic->weights && !strcmp(ic->weights, "pointer") && b->kind == PD_program)
    fail(c, ERR_usage, LOC_NONE,
         "--weights pointer: expected .o, .a or .so; a program contains its weights");
  b->m->compiled.linked = true;
  b->m->compiled.check_cpu = b->kind != PD_program;
  b->source = sb_new(&c->keep);
  b->header = sb_new(&c->keep);
  b->facts = api_emit(b->m, ic, b->kind != PD_program, &b->source, &b->header);
  b->size.arena = b->facts.arena_bytes;
  b->parts = ic->split == PARTS_LIMIT ? parts_wanted(b->facts.code_bytes) : 1;
  b->chats = b->kind == PD_program && !o->arrays && api_chat_assets(b->m);
  if (!b->m->written.blob.n) return;
  build_file(c, tempdir_file(c, &b->folder, str_text(c, str_fmt(c, "%s.bin", b->name))),
             blob_file(b->m));
}

/* Writes all files; baseline NULL: none. */
static void write_product(Ctx *c, ProductBuild *b, const char *product, const char *baseline) {
  const IngotBuild *o = b->o;
  const char *beside_it = baseline ? pgo_baseline_path(c, o->output) : NULL;
  File f = file_read_own(c, product), base = {0};
  FileOut out[MAX_FILES];
  u32 nout = 0;
  if (b->ic.weights && !strcmp(b->ic.weights, "pointer") && b->m->written.blob.n) {
    out[nout] = blob_file(b->m);
    out[nout++].path = build_sibling_path(c, o->output, ".bin");
  }
  if (b->kind != PD_program)
    out[nout++] = (FileOut){
        .path = build_sibling_path(c, o->output, ".h"), .at = b->header.at, .n = b->header.n};
  if (baseline) {
    base = file_read_own(c, baseline);
    out[nout++] =
        (FileOut){.path = beside_it, .at = base.at, .n = base.n, .program = b->kind >= PD_shared};
  }
  out[nout++] = (FileOut){.path = o->output, .at = f.at, .n = f.n, .program = b->kind >= PD_shared};
  files_write(c, out, nout);
}

static void build(Ctx *c, void *arg) {
  ProductBuild *b = arg;
  const IngotBuild *o = b->o;
  tempdir_make(c, &b->folder);
  if (b->aims_elsewhere) {
    api_import(b->m, false);
    if (!b->m->opened.origin) b->m->opened.origin = graph_copy(b->m->g);
  }
  build_text(c, b);
  if (pgo_wanted(o)) {
    pgo_run(c, b);
    write_product(c, b, b->step.at[b->step.n - 1].v.product, b->step.at[0].v.product);
    speedup_report(b, false, &b->m->written.report[0]);
    speedup_report(b, true, &b->m->written.report[1]);
    return;
  }
  BuildConfig v = {.step = "only"};
  v.optimize = o->optimize ? o->optimize : o->preset ? b->preset->optimize : build_default_level(b);
  build_compile(c, b, &v);
  write_product(c, b, v.product, NULL);
}

const char *build_stem(Ctx *c, const char *path, ProductKind kind) {
  const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
  if ((kind == PD_archive || kind == PD_shared) && !strncmp(from, "lib", 3)) from += 3;
  StrBuf t = sb_new(&c->keep);
  if (*from >= '0' && *from <= '9') sb_puts(&t, "m");
  for (; *from && *from != '.'; from++) {
    bool fine = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                (*from >= '0' && *from <= '9');
    sb_put(&t, fine ? from : "_", 1);
  }
  return t.n ? sb_cstr(&t) : "model";
}

void build_check_name(Ctx *c, const char *output) {
  api_need(c, output, "the name of the output");
  const char *end = strrchr(output, '.');
  if (!*output || output[strlen(output) - 1] == '/')
    fail(c, ERR_usage, LOC_NONE, "--output '%s': expected the name of a file", output);
  for (u32 i = 0; end && i < sizeof foreign / sizeof *foreign; i++)
    if (!strcmp(end, foreign[i].end))
      fail(c, ERR_usage, LOC_NONE,
           "%s %s; expected OUT.o, OUT.a, OUT.so, OUT.wasm or the name of a program", output,
           foreign[i].why);
}

static void check_build(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  build_check_name(c, o->output);
  if (api_wants_cuda(o)) {
    api_check_cuda(m, o);
    return;
  }
  if (o->target || product_kind(o->output) == PD_wasm) {
    wasm_check(m, o);
    return;
  }
  if (o->triple && !o->backend) fail(c, ERR_usage, LOC_NONE, "--triple needs --backend llvm");
  if (o->backend) api_check_backend(c, o);
  if (o->backend && product_kind(o->output) == PD_program)
    fail(c, ERR_unsupported, LOC_NONE, "--backend llvm: expected OUT.o, OUT.a or OUT.so");
  if (o->backend && (o->preset || pgo_wanted(o)))
    fail(c, ERR_unsupported, LOC_NONE,
         "--backend llvm does not use a C compiler: leave out --preset, --lto, --pgo, --bolt and "
         "--fast-math");
  if (o->optimize && (strlen(o->optimize) != 1 || !strchr("0123s", *o->optimize)))
    fail(c, ERR_usage, LOC_NONE, "-O%s: expected 0, 1, 2, 3 or s", o->optimize);
  const char *path[MAX_FILES] = {o->output};
  u32 n = 1;
  if (product_kind(o->output) != PD_program) {
    path[n++] = build_sibling_path(c, o->output, ".h");
    if (o->c.weights && !strcmp(o->c.weights, "pointer"))
      path[n++] = build_sibling_path(c, o->output, ".bin");
  }
  if (pgo_wanted(o)) path[n++] = pgo_baseline_path(c, o->output);
  preset_find(c, o->preset);
  files_plan(c, path, n);
  if (!o->backend || product_kind(o->output) == PD_shared) compiler_need(c, o->cc);
  if (pgo_wanted(o)) pgo_check(m, o);
}

/* LLVM machines without a target get scalar code. */
static void set_machine(Ingot *m, const IngotBuild *o) {
  if (o->march)
    api_march(m, o->march, o->cc);
  else if (o->backend && o->triple)
    api_march(m, "scalar", NULL);
  else if (o->backend)
    api_target_host(m);
  else
    api_target_native(m, o->cc);
}

CodeSize api_build(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  ProductBuild b = {.m = m, .o = o};
  api_need(c, o, "the build options");
  check_build(m, o);
  if (api_wants_cuda(o)) {
    api_build_cuda(m, o);
    return b.size;
  }
  if (product_kind(o->output) == PD_wasm) return wasm_build(m, o);
  b.preset = preset_find(c, o->preset);
  b.folder.on_command = o->on_command;
  b.folder.user = o->user;
  if (o->on_command) {
    StrBuf t = sb_new(&c->keep);
    sb_fmt(&t, "preset %s: ", b.preset->name);
    preset_text(b.preset, &t);
    o->on_command(o->user, sb_cstr(&t));
  }
  if (b.preset->aim != AIM_time && !m->codegen.aim_given && !m->passed) {
    b.aims_elsewhere = pgo_wanted(o) && !m->codegen.ram;
    if (!b.aims_elsewhere) m->codegen.aim = b.preset->aim;
  }
  if (o->backend) api_need_plain(m);
  set_machine(m, o);
  b.kind = product_kind(o->output);
  b.name = o->c.name ? o->c.name : build_stem(c, o->output, b.kind);
  if (b.kind == PD_program && api_entry_count(m) > 1)
    fail(c, ERR_unsupported, LOC_NONE,
         "a program runs one model; expected OUT.o, OUT.a or OUT.so for several");
  tempdir_protect(c, &b.folder, build, &b);
  return b.size;
}

static void check(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  api_need(c, o, "the build options");
  if (o->output)
    check_build(m, o);
  else
    compiler_need(c, o->cc);
  bool wasm = o->output && product_kind(o->output) == PD_wasm;
  if (o->march && !o->backend && !wasm) api_need_vectors(m, o->march, o->cc);
}

IngotStatus ingot_check_build(Ingot *m, const IngotBuild *o) {
  API_CALL(m, check(m, o));
}

IngotStatus ingot_build(Ingot *m, const IngotBuild *o) {
  API_CALL(m, api_build(m, o));
}
