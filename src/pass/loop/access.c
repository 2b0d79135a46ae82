/* access.c: memory and variables that a piece of a program accesses.
 *
 * In: a list of statements. Out: every load and store in it, in program order, and the variables it
 * declares, uses and sets. Passes that move or parallelize loops query this first.
 */
#include "pass/loop/access.h"

static void add(Accesses *t, Access x) {
  Arena *a = &t->p->c->scratch;
  u32 *slot = map_put(&t->root_at, x.root);
  if (!*slot) {
    *vec_push(a, &t->root) = (RootUse){.root = x.root};
    *slot = t->root.n;
  }
  RootUse *u = &t->root.at[*slot - 1];
  x.before = u->last;
  *vec_push(a, &t->at) = x;
  u->last = t->at.n;
  u->count++;
  u->read = u->read || !x.write;
  u->write = u->write || x.write;
}

const RootUse *access_root(const Accesses *t, BufId root) {
  const u32 *slot = map_get(&t->root_at, root);
  return slot ? &t->root.at[*slot - 1] : NULL;
}

static void declare(Accesses *t, VarId v) {
  *vec_push(&t->p->c->scratch, &t->declares) = v;
  *map_put(&t->declared, v) = 1;
}

static void see(Accesses *t, const Stmt *s) {
  t->nstmts++;
  for (ExprVisit w = ex_visit_stmt(t->p, s); ex_next(&w);) {
    const Expr *e = w.e;
    if (e->kind == EX_var) *vec_push(&t->p->c->scratch, &t->used) = e->ref;
    if (e->kind == EX_load)
      add(t, (Access){e->ref, prog_root(t->p, e->ref), e->arg, e->narg, e->lanes, false, 0});
  }
  if (s->kind == ST_store)
    add(t, (Access){s->buf, prog_root(t->p, s->buf), s->idx, s->nidx, prog_expr(t->p, s->a)->lanes,
                    true, 0});
  if (s->kind == ST_for || s->kind == ST_let) declare(t, s->var);
  if (s->kind == ST_require || (s->kind == ST_set && !access_declares(t, s->var)))
    t->ordered = true;
  if (s->kind == ST_while) t->loops = true;
}

static Accesses visit_all(Prog *p, StmtVisit w) {
  Accesses t = {.p = p, .root_at = map_new(&p->c->scratch), .declared = map_new(&p->c->scratch)};
  for (const Stmt *s; (s = prog_next(&w));) see(&t, s);
  return t;
}

void access_append(Accesses *t, const Accesses *more) {
  Arena *a = &t->p->c->scratch;
  for (u32 i = 0; i < more->at.n; i++) add(t, more->at.at[i]);
  for (u32 i = 0; i < more->used.n; i++) *vec_push(a, &t->used) = more->used.at[i];
  for (u32 i = 0; i < more->declares.n; i++) declare(t, more->declares.at[i]);
  t->ordered = t->ordered || more->ordered;
  t->loops = t->loops || more->loops;
  t->nstmts += more->nstmts;
}

bool access_declares(const Accesses *t, VarId v) {
  return map_get(&t->declared, v) != NULL;
}

Accesses accesses_list(Prog *p, StmtId first) {
  return visit_all(p, prog_visit(p, first));
}

Accesses accesses_one(Prog *p, StmtId only) {
  return visit_all(p, prog_visit_one(p, only));
}
