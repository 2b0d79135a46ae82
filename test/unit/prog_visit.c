/* Walks visit everything once, the outer before the inner and in the order of the text, however
 * deep it nests; what is to be left out is. What is made behind a mark can be dropped. */
#include "check.h"
#include "ir/prog/prog.h"

enum { DEEP = 100 };

/* ((v + 0) + 1) + ... + DEEP - 1, never folded. */
static ExprId deep_sum(Prog *p, VarId v) {
  ExprId e = ex_var(p, v);
  for (i64 i = 0; i < DEEP; i++) e = ex_op(p, OP_add, (ExprId[]){e, ex_int(p, i)}, 2);
  return e;
}

static void expressions(Prog *p, VarId v) {
  ExprId e = deep_sum(p, v);
  u32 seen = 0;
  i64 next = 0;
  for (ExprVisit w = ex_visit(p, e); ex_next(&w); seen++) {
    if (seen == 0) CHECK(w.e == prog_expr(p, e));
    if (w.e->kind == EX_const) CHECK(w.e->imm.i == next++);
  }
  CHECK(seen == 2 * DEEP + 1 && next == DEEP);
  for (ExprVisit w = ex_visit(p, e); ex_next(&w); w.below = 0) seen++;
  CHECK(seen == 2 * DEEP + 2);
  CHECK(ex_mentions(p, e, v) && !ex_mentions(p, e, v + 1) && !ex_loads(p, e));
  CHECK(ex_same(p, e, ex_copy(p, e)) && !ex_same(p, e, ex_var(p, v)));
  CHECK(!ex_mentions(p, 0, v));
}

static void statements(Prog *p, VarId v) {
  Cursor at = prog_end();
  StmtId outer = prog_if(p, &at, ex_const(p, DT_bool, (Scalar){.i = 1}));
  for (u32 i = 1; i < DEEP; i++) {
    Cursor behind = at;
    prog_if(p, &at, ex_const(p, DT_bool, (Scalar){.i = 1}));
    prog_set(p, &behind, v, ex_int(p, i));
  }
  Cursor last = prog_end(), other = prog_else(outer);
  prog_set(p, &other, v, ex_int(p, 0));
  prog_set(p, &last, v, deep_sum(p, v));
  const Stmt *s;
  u32 count[3] = {0}, consts = 0;
  i64 value = DEEP;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w)); count[0]++)
    for (ExprVisit x = ex_visit_stmt(p, s); s->kind == ST_set && ex_next(&x); consts++)
      if (s->next || value > 0) CHECK(x.e->kind != EX_const || x.e->imm.i == --value);
  CHECK(count[0] == 2 * DEEP + 1 && value == 0 && consts == DEEP + 2 * DEEP + 1);
  for (StmtVisit w = prog_visit_one(p, outer); prog_next(&w);) count[1]++;
  CHECK(count[1] == 2 * DEEP);
  for (StmtVisit w = prog_visit(p, p->body); prog_next(&w); w.skip = true) count[2]++;
  CHECK(count[2] == 2);
  StmtVisit none = prog_visit(p, 0);
  CHECK(!prog_next(&none));
}

/* What is tried is dropped, but for variables of symbols, which others may have found by then. */
static void trials(Prog *p, VarId v) {
  Sym n = dim_sym(p->dims, SY_input, str_of(p->c, "n"), 1, 8);
  ProgMark mark = prog_mark(p);
  u32 nexpr = p->nexpr, nvar = p->var.n;
  deep_sum(p, prog_add_var(p, DT_i64, 0));
  prog_rewind(p, mark);
  CHECK(p->nexpr == nexpr && p->var.n == nvar);
  deep_sum(p, prog_add_var(p, DT_i64, 0));
  VarId sym = prog_sym_var(p, n);
  prog_add_var(p, DT_i64, 0);
  prog_rewind(p, mark);
  CHECK(p->nexpr == nexpr && p->var.n == sym + 1 && prog_sym_var(p, n) == sym);
  CHECK(ex_mentions(p, deep_sum(p, v), v));
}

static void walk(Ctx *c, void *arg) {
  (void)arg;
  Prog *p = prog_new(c, dims_new(c));
  VarId v = prog_add_var(p, DT_i64, 0);
  expressions(p, v);
  trials(p, v);
  statements(p, v);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, walk, NULL) == ERR_ok);
  ctx_free(c);
  return check_end();
}
