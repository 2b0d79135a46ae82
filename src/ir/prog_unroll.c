/* prog_unroll.c: statements with their unrolled loops written out.
 *
 * In: a list, as a rule of one kernel. Out: a copy in which a loop marked unroll is its body, once
 * for each step, with numbers for its variable; integers that become known are folded, and of an
 * `if` whose condition does the part that runs is left. Registers are then indexed by numbers: each
 * element is a variable. Others stay loops. Names that a body declares are declared anew for each
 * step.
 *
 * A network has thousands of kernels whose copies would take far more memory than all else, so one
 * is made when it is needed and goes with prog_rewind; operands lie in an arena of the caller.
 */
#include <string.h>
#include "ir/prog.h"

enum { MOST_STATEMENTS = 20000 }; /* of a list written out */

typedef struct Unroll {
  Prog *p;
  Arena *a;
  u32 nvar; /* of the program as it was */
  u32 made; /* statements */
  bool failed;
  bool *known; /* by variable: it counts an unrolled loop, and is `value` now */
  i64 *value;
  bool *declared; /* by variable: the copy has a declaration */
  VarId *to;      /* by variable: what the copy calls it; 0: the same */
} Unroll;

static bool is_known(const Expr *x) {
  return x->kind == EX_const && x->lanes == 1 && (x->dt == DT_i64 || x->dt == DT_bool);
}

/* Of numbers, which cannot be told from those that were written: or it stays as it is. */
static void fold(Unroll *o, Expr *x) {
  Scalar arg[3];
  if (x->kind != EX_op || x->lanes != 1 || (x->dt != DT_i64 && x->dt != DT_bool)) return;
  if (x->op == OP_cast || x->op == OP_bitcast) return;
  for (u32 i = 0; i < x->narg; i++) {
    const Expr *a = prog_expr(o->p, x->arg[i]);
    if (!is_known(a)) return;
    arg[i] = a->imm;
  }
  Scalar is = scalar_eval(x->op, prog_expr(o->p, x->arg[x->narg - 1])->dt, arg);
  *x = (Expr){.kind = EX_const, .dt = x->dt, .lanes = 1, .imm = is};
}

static ExprId copy_expr(Unroll *o, ExprId id) {
  if (!id) return 0;
  Expr x = *prog_expr(o->p, id);
  const ExprId *arg = x.arg;
  x.arg = x.narg ? NEWS(o->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++) x.arg[i] = copy_expr(o, arg[i]);
  if (x.kind == EX_var && o->known[x.ref])
    x = (Expr){.kind = EX_const, .dt = DT_i64, .lanes = 1, .imm.i = o->value[x.ref]};
  else if (x.kind == EX_var && o->to[x.ref])
    x.ref = o->to[x.ref];
  fold(o, &x);
  return ex_take(o->p, &x);
}

static VarId declare(Unroll *o, VarId v) {
  if (!o->declared[v]) {
    o->declared[v] = true;
    o->to[v] = 0;
    return v;
  }
  Var was = *prog_var(o->p, v);
  o->to[v] = prog_add_var(o->p, was.dt, was.name);
  prog_var(o->p, o->to[v])->lanes = was.lanes;
  return o->to[v];
}

/* Where the copy goes on: behind `last`; `first` begins it. */
typedef struct Unrolled {
  StmtId first, last;
} Unrolled;

static void copy_list(Unroll *o, StmtId first, Unrolled *to);

static void copy_steps(Unroll *o, const Stmt *s, Unrolled *to) {
  i64 lo, hi;
  if (!ex_is_int(o->p, copy_expr(o, s->a), &lo) || !ex_is_int(o->p, copy_expr(o, s->b), &hi)) {
    o->failed = true;
    return;
  }
  o->known[s->var] = true;
  for (i64 i = lo; i < hi && !o->failed; i += s->step) {
    o->value[s->var] = i;
    if (++o->made > MOST_STATEMENTS) o->failed = true;
    copy_list(o, s->body, to);
    if (i > INT64_MAX - s->step) break;
  }
  o->known[s->var] = false;
}

static void copy_stmt(Unroll *o, StmtId id, Unrolled *to) {
  Prog *p = o->p;
  Stmt s = *prog_stmt(p, id);
  const ExprId *idx = s.idx;
  s.a = copy_expr(o, s.a);
  s.b = copy_expr(o, s.b);
  const Expr *cond = s.kind == ST_if ? prog_expr(p, s.a) : NULL;
  if (cond && is_known(cond)) {
    copy_list(o, cond->imm.i ? s.body : s.other, to);
    return;
  }
  s.idx = s.nidx ? NEWS(o->a, ExprId, s.nidx) : NULL;
  for (u32 i = 0; i < s.nidx; i++) s.idx[i] = copy_expr(o, idx[i]);
  if (s.kind == ST_for || s.kind == ST_let) s.var = declare(o, s.var);
  if (s.kind == ST_set && o->to[s.var]) s.var = o->to[s.var];
  Unrolled body = {0}, other = {0};
  copy_list(o, s.body, &body);
  copy_list(o, s.other, &other);
  s.body = body.first;
  s.other = other.first;
  s.next = 0;
  *vec_push(&p->c->work, &p->stmt) = s;
  StmtId made = p->stmt.n - 1;
  if (to->last)
    prog_stmt(p, to->last)->next = made;
  else
    to->first = made;
  to->last = made;
}

static void copy_list(Unroll *o, StmtId first, Unrolled *to) {
  for (StmtId id = first; id && !o->failed; id = prog_stmt(o->p, id)->next) {
    Stmt s = *prog_stmt(o->p, id);
    if (s.kind != ST_barrier && ++o->made > MOST_STATEMENTS) o->failed = true;
    if (s.kind == ST_kernel) o->failed = true; /* which others know by its number */
    if (o->failed) return;
    if (s.kind == ST_for && s.flags & LF_unroll)
      copy_steps(o, &s, to);
    else
      copy_stmt(o, id, to);
  }
}

StmtId prog_unroll(Prog *p, StmtId first, Arena *a) {
  Unroll o = {.p = p, .a = a, .nvar = p->var.n};
  o.known = NEWS(a, bool, o.nvar);
  o.value = NEWS(a, i64, o.nvar);
  o.declared = NEWS(a, bool, o.nvar);
  o.to = NEWS(a, VarId, o.nvar);
  Unrolled all = {0};
  copy_list(&o, first, &all);
  return o.failed ? 0 : all.first;
}

ProgMark prog_mark(const Prog *p) {
  return (ProgMark){p->nexpr, p->stmt.n, p->var.n};
}

void prog_rewind(Prog *p, ProgMark m) {
  for (u32 s = 0; s < p->nsym_var; s++)
    if (p->sym_var[s] >= m.var) m.var = p->sym_var[s] + 1;
  p->nexpr = m.expr;
  memset(&p->stmt.at[m.stmt], 0, (p->stmt.n - m.stmt) * sizeof *p->stmt.at);
  p->stmt.n = m.stmt;
  if (m.var < p->var.n) {
    memset(&p->var.at[m.var], 0, (p->var.n - m.var) * sizeof *p->var.at);
    p->var.n = m.var;
  }
}
