/* modules.c: programs of several files.
 *
 * `import "FILE.ch" as NAME` at top level makes the definitions of that file available as
 * NAME.thing. Paths are relative to the importing file. A file is loaded once, even if imported
 * through different paths. It runs at its first import. Circular imports are refused, because
 * neither file could run first.
 */
#include "lang/run/lang_code.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct ImportChain ImportChain; /* files whose imports are being loaded */
struct ImportChain {
  const ImportChain *by;
  const Script *s;
};

const char *path_relative_to(Ctx *c, Str file, const char *path) {
  const char *from = str_text(c, file), *slash = strrchr(from, '/');
  if (!slash || *path == '/') return path;
  return str_text(c, str_fmt(c, "%.*s/%s", (int)(slash - from), from, path));
}

static Script *find(const Scripts *all, Str real) {
  for (u32 i = 0; i < all->n; i++)
    if (all->at[i]->real && all->at[i]->real == real) return all->at[i];
  return NULL;
}

static bool is_waiting(const ImportChain *l, const Script *s) {
  for (; l; l = l->by)
    if (l->s == s) return true;
  return false;
}

/* a.ch -> b.ch -> a.ch */
static const char *circle(Ctx *c, const ImportChain *l, const Script *to) {
  StrBuf t = sb_new(&c->work);
  const char *part[MODULES];
  u32 n = 0;
  for (; l && n < MODULES; l = l->by) {
    part[n++] = str_text(c, l->s->file);
    if (l->s == to) break;
  }
  while (n) sb_fmt(&t, "%s -> ", part[--n]);
  sb_puts(&t, str_text(c, to->file));
  return sb_cstr(&t);
}

static void load(Script *s, const ImportChain *by);

static void import(Script *s, Ast *n, const ImportChain *l) {
  Ctx *c = s->c;
  char real[PATH_MAX];
  const char *path = path_relative_to(c, s->file, str_text(c, n->a->name));
  if (!realpath(path, real)) {
    script_error(s, n->a->at, NULL, "cannot read '%s': %s", show_text(c, str_of(c, path)),
                 strerror(errno));
    return;
  }
  n->module = find(s->all, str_of(c, real));
  if (n->module) {
    if (is_waiting(l, n->module))
      script_error(s, n->a->at, NULL, "modules import each other in a circle: %s",
                   circle(c, l, n->module));
    return;
  }
  if (s->all->n == MODULES) {
    script_error(s, n->a->at, NULL, "a program has at most %d files", MODULES);
    return;
  }
  File f = file_read(c, path);
  n->module = script_new(c, str_of(c, path), (const char *)f.at, f.n, s->all);
  n->module->real = str_of(c, real);
  load(n->module, l);
}

static void load(Script *s, const ImportChain *by) {
  const ImportChain here = {by, s};
  script_parse(s);
  for (u32 i = 0; i < s->root->nkid; i++) {
    Ast *n = s->root->kid[i];
    if (n->kind == AST_import && n->name && parse_is_module(s->c, n)) import(s, n, &here);
  }
}

void script_load(Script *s) {
  char real[PATH_MAX];
  if (realpath(str_text(s->c, s->file), real)) s->real = str_of(s->c, real);
  load(s, NULL);
  diag_raise(s->c);
  script_check(s);
  diag_raise(s->c);
}

void module_run(Eval *ev, const Script *s) {
  if (ev->file[s->number]) return;
  const RegCode *code = code_of_file(ev, s, 0, false);
  ev->file[s->number] = file_variables(ev, code, NULL);
  LangValue v = run_file(ev, code);
  value_drop(ev, &v); /* of a return, which ends the module */
}
