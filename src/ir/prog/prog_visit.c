/* prog_visit.c: iterates over the statements of a list and the expressions of a tree.
 *
 * In: a list of statements, a statement or a tree. Out: one at a time, in pre-order. Method: a
 * stack of pending items, inside the iterator while it is small. Visited items may be changed in
 * place and new ones built, but a list must not be relinked while it is visited. */
#include "ir/prog/prog.h"

#include <string.h>

/* ---- expressions ---- */

void ex_suspend(ExprVisit *w) {
  u32 room = w->more ? w->room : VISIT_INLINE;
  ExprList *at = w->more ? w->more : w->small;
  if (w->n == room) {
    w->more = NEWS(&w->p->c->scratch, ExprList, 2 * room);
    memcpy(w->more, at, room * sizeof *at);
    at = w->more;
    w->room = 2 * room;
  }
  at[w->n++] = w->now;
}

ExprId ex_resume(ExprVisit *w) {
  if (w->n) {
    w->now = (w->more ? w->more : w->small)[--w->n];
  } else if (w->a) {
    ExprId id = w->a;
    w->a = w->b;
    w->b = 0;
    return id;
  } else {
    w->now = w->idx;
    w->idx.n = 0;
  }
  return w->now.n ? (w->now.n--, *w->now.at++) : 0;
}

/* ---- statements ---- */

static void push(StmtVisit *w, StmtId id) {
  u32 room = w->more ? w->room : VISIT_INLINE;
  StmtId *at = w->more ? w->more : w->small;
  if (!id) return;
  if (w->n == room) {
    w->more = NEWS(&w->p->c->scratch, StmtId, 2 * room);
    memcpy(w->more, at, room * sizeof *at);
    at = w->more;
    w->room = 2 * room;
  }
  at[w->n++] = id;
}

StmtVisit prog_visit(Prog *p, StmtId first) {
  StmtVisit w = {.p = p, .n = first != 0, .small = {first}};
  return w;
}

StmtVisit prog_visit_one(Prog *p, StmtId only) {
  StmtVisit w = prog_visit(p, only);
  w.only = only;
  return w;
}

Stmt *prog_next(StmtVisit *w) {
  const Stmt *s = prog_stmt(w->p, w->id); /* initially statement 0, which has no body */
  StmtId next = w->id == w->only ? 0 : s->next;
  if (!w->skip && (s->body || s->other)) {
    push(w, next);
    if (s->body) push(w, s->other);
    next = s->body ? s->body : s->other;
  }
  w->skip = false;
  w->id = next || !w->n ? next : (w->more ? w->more : w->small)[--w->n];
  return w->id ? prog_stmt(w->p, w->id) : NULL;
}

/* ---- queries about trees ---- */

bool ex_mentions(Prog *p, ExprId e, VarId v) {
  for (ExprVisit w = ex_visit(p, e); ex_next(&w);)
    if (w.e->kind == EX_var && w.e->ref == v) return true;
  return false;
}

bool ex_loads(Prog *p, ExprId e) {
  for (ExprVisit w = ex_visit(p, e); ex_next(&w);)
    if (w.e->kind == EX_load) return true;
  return false;
}

const Expr *ex_copied(const Prog *p, const Expr *e) {
  if (e->kind == EX_op && e->op == OP_select && e->lanes > 1) {
    const Expr *c = prog_expr(p, e->arg[0]), *zero = prog_expr(p, e->arg[2]);
    if (c->kind != EX_splat || zero->kind != EX_splat) return NULL;
    const Expr *x = prog_expr(p, zero->arg[0]);
    if (x->kind != EX_const || (dtype_is_float(x->dt) ? x->imm.f != 0 : x->imm.i != 0)) return NULL;
    e = prog_expr(p, e->arg[1]);
  }
  return e->kind == EX_load ? e : NULL;
}

bool ex_same(Prog *p, ExprId x, ExprId y) {
  const Expr *a = prog_expr(p, x), *b = prog_expr(p, y);
  if (a->kind != b->kind || a->dt != b->dt || a->lanes != b->lanes || a->rows != b->rows)
    return false;
  if (a->narg != b->narg || a->ref != b->ref) return false;
  if (a->kind == EX_const && a->imm.i != b->imm.i) return false;
  if (a->kind > EX_op || (a->kind == EX_op && (a->op != b->op || a->sat != b->sat ||
                                               a->small != b->small || a->low != b->low)))
    return false;
  for (u32 i = 0; i < a->narg; i++)
    if (!ex_same(p, a->arg[i], b->arg[i])) return false;
  return true;
}
