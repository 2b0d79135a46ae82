/* touch.c: what a piece of a program does to memory and variables.
 *
 * In: a list of statements. Out: every load and store in it, in the order of the text, and which
 * variables it declares, uses and sets. Passes that move or share out loops ask this first.
 */
#include "pass/touch.h"

static void see_expr(Touched *t, ExprId id) {
  if (!id) return;
  Expr *e = prog_expr(t->p, id);
  if (e->kind == EX_var) t->used[e->ref] = true;
  if (e->kind == EX_load)
    *vec_push(&t->p->c->scratch, &t->at) =
        (Touch){e->ref, prog_root(t->p, e->ref), e->arg, e->narg, e->lanes, false};
  for (u32 i = 0; i < e->narg; i++) see_expr(t, e->arg[i]);
}

static void see_list(Touched *t, StmtId first);

static void see(Touched *t, Stmt *s) {
  t->nstmts++;
  see_expr(t, s->a);
  see_expr(t, s->b);
  for (u32 i = 0; i < s->nidx; i++) see_expr(t, s->idx[i]);
  if (s->kind == ST_store)
    *vec_push(&t->p->c->scratch, &t->at) = (Touch){s->buf,  prog_root(t->p, s->buf),      s->idx,
                                                   s->nidx, prog_expr(t->p, s->a)->lanes, true};
  if (s->kind == ST_for || s->kind == ST_let) t->declared[s->var] = true;
  if (s->kind == ST_require || (s->kind == ST_set && !t->declared[s->var])) t->ordered = true;
  if (s->kind == ST_while) t->loops = true;
  see_list(t, s->body);
  see_list(t, s->other);
}

static void see_list(Touched *t, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(t->p, id)->next) see(t, prog_stmt(t->p, id));
}

static Touched nothing(Prog *p) {
  Touched t = {.p = p, .declared = NEWS(&p->c->scratch, bool, p->var.n)};
  t.used = NEWS(&p->c->scratch, bool, p->var.n);
  return t;
}

Touched touched(Prog *p, StmtId first) {
  Touched t = nothing(p);
  see_list(&t, first);
  return t;
}

Touched touched_one(Prog *p, StmtId only) {
  Touched t = nothing(p);
  see(&t, prog_stmt(p, only));
  return t;
}
