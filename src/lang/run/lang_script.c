/* lang_script.c: runs, checks and formats program files.
 *
 * In: a path. Out: what the program prints, through a callback; errors as messages of the session.
 * If a program only has definitions and a function main without parameters, main is called.
 */
#include "driver/build/build_product.h"
#include "lang/run/lang_code.h"
#include "lang/run/lang_object.h"

#include <string.h>

/* Limit of iterations and calls in a dry run. */
#define MAX_STEPS ((u64)1 << 28)

static Script *read_script(Ctx *c, const char *path) {
  api_need(c, path, "the path of the program");
  File f = file_read(c, path);
  return script_new(c, str_of(c, path), (const char *)f.at, f.n, NULL);
}

static bool only_defines(const Ast *root) {
  for (u32 i = 0; i < root->nkid; i++) {
    AstKind k = root->kid[i]->kind;
    if (k != AST_fn && k != AST_let && k != AST_model && k != AST_import && k != AST_struct)
      return false;
  }
  return true;
}

static Ast *find_main(Script *s) {
  for (u32 i = 0; i < s->root->nkid; i++) {
    Ast *n = s->root->kid[i];
    if (n->kind == AST_fn && str_is(s->c, n->name, "main") && !n->nkid) return n;
  }
  return NULL;
}

static void eval_begin(Eval *ev, Script *s, const IngotScript *o) {
  *ev = (Eval){.c = s->c, .s = s, .o = o, .serial = 1};
  ev->stack.c = s->c;
  ev->random = o->seed;
  ev->careful = o->engine && (!strcmp(o->engine, "ref") || !strcmp(o->engine, "interp"));
  ev->root = ev->frame = NEW(&s->c->keep, Frame);
}

static void eval_end(Eval *ev) {
  heap_free_all(ev);
  prog_cache_free(ev);
  nets_free(ev);
  arena_clear(&ev->stack);
}

static const Ast *main_of(Script *s) {
  return only_defines(s->root) ? find_main(s) : NULL;
}

static void run_program(Ctx *c, void *arg) {
  Eval *ev = arg;
  (void)c;
  module_run(ev, ev->s);
  const Ast *main = main_of(ev->s);
  if (!main) return;
  LangValue *f = &ev->file[0]->at[main->slot];
  LangValue v = call_fn(ev, main, f->u.fn, NULL, 0);
  value_drop(ev, &v);
}

static void run(Ingot *m, const char *path, const IngotScript *o) {
  Eval ev;
  api_need(m->c, o, "what the program runs with");
  if (o->engine) api_engine(m->c, o->engine, 0); /* refuses unknown engines */
  Script *s = read_script(m->c, path);
  script_load(s);
  eval_begin(&ev, s, o);
  Err e = ctx_protect(m->c, run_program, &ev);
  eval_end(&ev);
  if (e) longjmp(*m->c->door, (int)e);
}

IngotStatus ingot_script_run(Ingot *m, const char *path, const IngotScript *o) {
  API_CALL(m, run(m, path, o));
}

/* ---- a function as the model of the session ---- */

typedef struct TraceJob {
  Eval ev;
  Ingot *m;
  const char *function;
} TraceJob;

static void trace(Ctx *c, void *arg) {
  TraceJob *t = arg;
  Ast *f = trace_find_function(&t->ev, t->function); /* refuse before running anything */
  run_program(c, &t->ev);
  script_trace(&t->ev, t->m, f);
}

static void open_function(Ingot *m, const char *path, const char *function, const IngotScript *o) {
  TraceJob t = {.m = m, .function = function};
  api_need(m->c, o, "what the program runs with");
  if (m->opened.source.at) fail(m->c, ERR_usage, LOC_NONE, "a model is open already");
  Script *s = read_script(m->c, path);
  m->opened.source = (Source){.at = (const u8 *)s->at, .n = s->n, .file = s->file};
  script_load(s);
  eval_begin(&t.ev, s, o);
  Err e = ctx_protect(m->c, trace, &t);
  eval_end(&t.ev);
  if (e) longjmp(*m->c->door, (int)e);
  api_graph_stats(m);
}

IngotStatus ingot_script_open(Ingot *m, const char *path, const char *function,
                              const IngotScript *o) {
  API_CALL(m, open_function(m, path, function, o));
}

/* ---- the whole program as C ---- */

typedef struct NativeBuild {
  const IngotBuild *o;
  StrBuf text;
  TempDir folder;
} NativeBuild;

typedef struct GraphsJob {
  DryRun *d;
  StrBuf text;
} GraphsJob;

static void write_graphs(Ctx *c, void *arg) {
  GraphsJob *j = arg;
  (void)c;
  native_graphs(j->d, &j->text);
}

static void compile(Ctx *c, void *arg) {
  NativeBuild *b = arg;
  const IngotBuild *o = b->o;
  ArgVec w = {0};
  tempdir_make(c, &b->folder);
  const char *source = tempdir_file(c, &b->folder, "program.c");
  const char *program = tempdir_file(c, &b->folder, "program");
  FileOut in = {.path = source, .at = b->text.at, .n = b->text.n, .transient = true};
  files_write(c, &in, 1);
  argv_compiler(c, &w, o->cc);
  argv_add(c, &w, "-std=c11 -ffp-contract=off");
  argv_add(c, &w, str_text(c, str_fmt(c, "-O%s", o->optimize ? o->optimize : "2")));
  if (o->sanitize)
    argv_add(c, &w,
             str_text(c, str_fmt(c, "-g -fsanitize=%s -fno-sanitize-recover=all", o->sanitize)));
  argv_add(c, &w, "-o");
  *vec_push(&c->keep, &w) = program;
  *vec_push(&c->keep, &w) = source;
  argv_add(c, &w, "-lm");
  *vec_push(&c->keep, &w) = NULL;
  spawn_run(c, &b->folder, "C compiler", w.at);
  File f = file_read_own(c, program);
  FileOut out = {.path = o->output, .at = f.at, .n = f.n, .program = true};
  files_write(c, &out, 1);
}

/* The C of all graphs that a program forces. A program that fails at run time is evaluated up to
 * the failure. */
static void find_graphs(Ingot *m, Script *s, u64 steps, bool no_files, StrBuf *out) {
  Ctx *c = m->c;
  Eval ev;
  IngotAlloc alloc = {c->alloc.resize, c->alloc.user};
  const IngotScript o = {.engine = "ref", .no_files = no_files};
  DryRun d = {.m = ingot_new(&alloc), .left = steps};
  const char *why;
  if (!d.m) fail(c, ERR_system, LOC_NONE, "out of memory");
  d.a.c = d.m->c;
  d.by_key = map_new(&d.m->c->keep);
  eval_begin(&ev, s, &o);
  ev.dry = &d;
  Err e = ctx_try(c, run_program, &ev, &why);
  eval_end(&ev);
  if (d.why) why = d.why;
  GraphsJob job = {.d = &d, .text = sb_new(&d.m->c->keep)};
  if (!d.why && (!e || e == ERR_input)) {
    e = (Err)api_call(d.m, write_graphs, &job);
    if (e) why = d.m->c->diags ? diag_cause(d.m->c->diags) : "out of memory";
  }
  const char *said = e ? str_text(c, str_of(c, why)) : NULL;
  if (!e) sb_put(out, job.text.at, job.text.n);
  arena_clear(&d.a);
  ingot_free(d.m);
  if (e) fail(c, e, LOC_NONE, "%s", said);
}

typedef struct NativeJob {
  Eval ev;
  const StrBuf *graphs;
  StrBuf *out;
  bool whole;
} NativeJob;

static void write_native(Ctx *c, void *arg) {
  NativeJob *j = arg;
  (void)c;
  j->whole = native_program(&j->ev, main_of(j->ev.s), j->graphs, j->out);
}

/* False if the program needs graphs. */
static bool native(Script *s, const StrBuf *graphs, StrBuf *out) {
  const IngotScript o = {.engine = NULL};
  NativeJob j = {.graphs = graphs, .out = out};
  eval_begin(&j.ev, s, &o);
  j.ev.native = true;
  Err e = ctx_protect(s->c, write_native, &j);
  eval_end(&j.ev);
  if (e) longjmp(*s->c->door, (int)e);
  return j.whole;
}

void script_native(Ingot *m, Script *s, u64 steps, bool no_files, StrBuf *out) {
  if (native(s, NULL, out)) return;
  StrBuf graphs = sb_new(&m->c->keep);
  find_graphs(m, s, steps, no_files, &graphs);
  native(s, &graphs, out);
}

static void build(Ingot *m, const char *path, const IngotBuild *o) {
  Ctx *c = m->c;
  api_need(c, o, "the description of the build");
  api_need(c, o->output, "the name of the output");
  bool source = ends_with(o->output, ".c");
  if (!source) build_check_name(m->c, o->output);
  files_plan(c, &o->output, 1);
  if (!source) compiler_need(c, o->cc);
  Script *s = read_script(c, path);
  script_load(s);
  NativeBuild b = {.o = o, .text = sb_new(&c->keep)};
  b.folder.on_command = o->on_command;
  b.folder.user = o->user;
  script_native(m, s, MAX_STEPS, o->no_files, &b.text);
  FileOut text = {.path = o->output, .at = b.text.at, .n = b.text.n};
  if (source)
    files_write(c, &text, 1);
  else
    tempdir_protect(c, &b.folder, compile, &b);
}

IngotStatus ingot_script_build(Ingot *m, const char *path, const IngotBuild *o) {
  API_CALL(m, build(m, path, o));
}

/* ---- check and format ---- */

IngotStatus ingot_script_check(Ingot *m, const char *path) {
  API_CALL(m, script_load(read_script(m->c, path)));
}

static void format(Ingot *m, const char *path, const char **text, size_t *n) {
  api_need(m->c, text && n ? text : NULL, "the place of the text");
  StrBuf out = sb_new(&m->c->keep);
  Script *s = read_script(m->c, path);
  script_parse(s);
  diag_raise(m->c);
  script_format(s, &out);
  api_return_text(&out, text, n);
}

IngotStatus ingot_script_format(Ingot *m, const char *path, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, format(m, path, text, n));
}

/* ---- register code ---- */

static void print_code(Eval *ev, const RegCode *code, StrBuf *out) {
  code_print(code, out);
  for (u32 i = 0; i < code->closure.n; i++) {
    u32 before = 0; /* a hoisted function is listed twice */
    while (code->closure.at[before] != code->closure.at[i]) before++;
    if (before < i) continue;
    sb_puts(out, "\n");
    print_code(ev, code_of_fn(ev, code->closure.at[i]->fn), out);
  }
}

static void dump(Ingot *m, const char *path, const char **text, size_t *n) {
  const IngotScript o = {.engine = NULL};
  StrBuf out = sb_new(&m->c->keep);
  Eval ev;
  api_need(m->c, text && n ? text : NULL, "the place of the text");
  Script *s = read_script(m->c, path);
  script_load(s);
  eval_begin(&ev, s, &o);
  for (u32 i = 0; i < s->all->n; i++) {
    if (i) sb_puts(&out, "\n");
    print_code(&ev, code_of_file(&ev, s->all->at[i], 0, false), &out);
  }
  eval_end(&ev);
  api_return_text(&out, text, n);
}

IngotStatus ingot_script_dump(Ingot *m, const char *path, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, dump(m, path, text, n));
}
