/* script.c: programs from files: run, check, format.
 *
 * In: a path. Out: what the program prints, through the caller's function; errors as messages of
 * the session. A program that only defines things and has a function main without parameters is one
 * whose author meant it to be called.
 */
#include "lang/own.h"
#include "lang/tensor.h"

#include <string.h>

static Script *read_script(Ctx *c, const char *path) {
  File f = file_read(c, path);
  return script_new(c, str_of(c, path), (const char *)f.at, f.n);
}

static void check(Script *s) {
  script_parse(s);
  diag_leave(s->c);
  script_check(s);
  diag_leave(s->c);
}

/* ---- run ---- */

static bool only_defines(const Ast *root) {
  for (u32 i = 0; i < root->nkid; i++) {
    AstKind k = root->kid[i]->kind;
    if (k != AST_fn && k != AST_let && k != AST_model && k != AST_import) return false;
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

static void begin(Eval *ev, Script *s, const IngotScript *o) {
  *ev = (Eval){.c = s->c, .s = s, .o = o, .serial = 1};
  ev->stack.c = s->c;
  ev->random = o->seed;
  ev->global = arena_alloc(&ev->stack, sizeof *ev->global + s->main->nslot * sizeof(Worth));
  ev->global->n = s->main->nslot;
  ev->local = ev->global;
}

static void end(Eval *ev) {
  share_drop_all(ev);
  recipes_free(ev);
  arena_clear(&ev->stack);
}

static void walk(Ctx *c, void *arg) {
  Eval *ev = arg;
  (void)c;
  eval_hoist(ev, ev->s->root);
  Worth v = eval_block(ev, ev->s->root);
  worth_drop(ev, &v);
  Ast *main = only_defines(ev->s->root) ? find_main(ev->s) : NULL;
  if (!main) return;
  Worth *f = &ev->global->at[main->slot];
  v = call_fn(ev, main, f->u.fn, NULL, 0);
  worth_drop(ev, &v);
}

static void run(Ingot *m, const char *path, const IngotScript *o) {
  Eval ev;
  api_need(m->c, path, "the path of the program");
  api_need(m->c, o, "what the program runs with");
  if (o->engine) api_engine(m->c, o->engine, 0); /* refuses one that does not exist */
  Script *s = read_script(m->c, path);
  check(s);
  begin(&ev, s, o);
  Err e = ctx_protect(m->c, walk, &ev);
  end(&ev);
  if (e) longjmp(*m->c->door, (int)e);
}

IngotStatus ingot_script_run(Ingot *m, const char *path, const IngotScript *o) {
  API_CALL(m, run(m, path, o));
}

/* ---- a function as the model of the session ---- */

typedef struct Traced {
  Eval ev;
  Ingot *m;
  const char *function;
} Traced;

static void trace(Ctx *c, void *arg) {
  Traced *t = arg;
  walk(c, &t->ev);
  script_trace(&t->ev, t->m, t->function);
}

static void open_function(Ingot *m, const char *path, const char *function, const IngotScript *o) {
  Traced t = {.m = m, .function = function};
  api_need(m->c, path, "the path of the program");
  api_need(m->c, o, "what the program runs with");
  if (m->source.at) fail(m->c, ERR_usage, LOC_NONE, "a model is open already");
  Script *s = read_script(m->c, path);
  m->source = (Source){.at = (const u8 *)s->at, .n = s->n, .file = s->file};
  check(s);
  begin(&t.ev, s, o);
  Err e = ctx_protect(m->c, trace, &t);
  end(&t.ev);
  if (e) longjmp(*m->c->door, (int)e);
}

IngotStatus ingot_script_open(Ingot *m, const char *path, const char *function,
                              const IngotScript *o) {
  API_CALL(m, open_function(m, path, function, o));
}

/* ---- check and format ---- */

IngotStatus ingot_script_check(Ingot *m, const char *path) {
  API_CALL(m, check(read_script(m->c, path)));
}

static void format(Ingot *m, const char *path, const char **text, size_t *n) {
  api_need(m->c, text && n ? text : NULL, "the place of the text");
  Text out = text_new(&m->c->keep);
  Script *s = read_script(m->c, path);
  script_parse(s);
  diag_leave(m->c);
  script_format(s, &out);
  api_give(&out, text, n);
}

IngotStatus ingot_script_format(Ingot *m, const char *path, const char **text, size_t *n) {
  api_give(NULL, text, n);
  API_CALL(m, format(m, path, text, n));
}
