/* prog_unroll.c: expands unrolled loops.
 *
 * In: a list, usually of one kernel. Out: a copy in which a loop marked unroll is replaced by its
 * body, once per iteration, with constants for its variable. Integers that become known are folded,
 * and an `if` with a known condition becomes one branch. Register buffers are then indexed by
 * constants only. Other loops stay. Variables declared in a body get a new declaration per
 * iteration. prog_copy copies without unrolling.
 *
 * A network has thousands of kernels whose copies would dominate memory. So each copy is made on
 * demand and dropped by prog_rewind; operands lie in an arena of the caller. */
#include <string.h>
#include "ir/prog/prog.h"

typedef struct Copied {
  bool known;    /* counter of an unrolled loop, currently `value` */
  bool declared; /* the copy has a declaration */
  bool team;     /* counter of a warp or thread loop */
  VarId to;      /* its variable in the copy; 0: the same */
  i64 value;
} Copied;

typedef struct Unroll {
  Prog *p;
  Arena *a;
  u32 made;   /* statements created */
  bool whole; /* do not unroll */
  bool tiles; /* keep reductions as they are */
  bool failed;
  VarId from, until; /* variables declared by the list are in this range */
  Copied *var;
} Unroll;

/* NULL: the list does not declare it. */
static Copied *copied(const Unroll *o, VarId v) {
  return v >= o->from && v < o->until ? &o->var[v - o->from] : NULL;
}

static bool is_known(const Expr *x) {
  return x->kind == EX_const && x->lanes == 1 && (x->dt == DT_i64 || x->dt == DT_bool);
}

/* Folds an operation on integer constants; others stay. */
static void fold(Unroll *o, Expr *x) {
  Scalar arg[3];
  bool known = x->kind == EX_op && x->narg && x->lanes == 1;
  if (!known || (x->dt != DT_i64 && x->dt != DT_bool)) return;
  if (x->op == OP_cast || x->op == OP_bitcast) return;
  for (u32 i = 0; i < x->narg; i++) {
    const Expr *a = prog_expr(o->p, x->arg[i]);
    if (!is_known(a)) return;
    arg[i] = a->imm;
  }
  Scalar is = scalar_eval(x->op, prog_expr(o->p, x->arg[x->narg - 1])->dt, arg);
  *x = (Expr){.kind = EX_const, .dt = x->dt, .lanes = 1, .imm = is};
}

static ExprId copy_index(Unroll *o, BufId b, ExprId id);

static ExprId copy_expr(Unroll *o, ExprId id) {
  if (!id) return 0;
  Expr x = *prog_expr(o->p, id);
  const ExprId *arg = x.arg;
  x.arg = x.narg ? NEWS(o->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++)
    x.arg[i] = x.kind == EX_load ? copy_index(o, x.ref, arg[i]) : copy_expr(o, arg[i]);
  const Copied *v = x.kind == EX_var ? copied(o, x.ref) : NULL;
  if (v && v->known)
    x = (Expr){.kind = EX_const, .dt = DT_i64, .lanes = 1, .imm.i = v->value};
  else if (v && v->to)
    x.ref = v->to;
  fold(o, &x);
  return ex_take(o->p, &x);
}

/* Registers of a warp or thread are its own: the index that names it becomes 0. */
static ExprId copy_index(Unroll *o, BufId b, ExprId id) {
  const Expr *x = prog_expr(o->p, id);
  const Copied *v = x->kind == EX_var ? copied(o, x->ref) : NULL;
  if (o->whole || !v || !v->team || prog_buf(o->p, b)->space != BS_reg) return copy_expr(o, id);
  return ex_take(o->p, &(Expr){.kind = EX_const, .dt = DT_i64, .lanes = 1});
}

static VarId declare(Unroll *o, VarId v) {
  Copied *now = copied(o, v);
  if (!now->declared) {
    now->declared = true;
    return v;
  }
  Var was = *prog_var(o->p, v);
  now->to = prog_add_var(o->p, was.dt, was.name);
  prog_var(o->p, now->to)->lanes = was.lanes;
  prog_var(o->p, now->to)->rows = was.rows;
  return now->to;
}

static void copy_list(Unroll *o, StmtId first, StmtList *to);

static void copy_steps(Unroll *o, const Stmt *s, StmtList *to) {
  i64 lo, hi;
  if (!ex_is_int(o->p, copy_expr(o, s->a), &lo) || !ex_is_int(o->p, copy_expr(o, s->b), &hi)) {
    o->failed = true;
    return;
  }
  Copied *v = copied(o, s->var);
  v->known = true;
  for (i64 i = lo; i < hi && !o->failed; i += s->step) {
    v->value = i;
    if (++o->made > MOST_STATEMENTS) o->failed = true;
    copy_list(o, s->body, to);
    if (i > INT64_MAX - s->step) break;
  }
  v->known = false;
}

static void copy_stmt(Unroll *o, StmtId id, StmtList *to) {
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
  s.idx = NEWS(o->a, ExprId, s.nidx);
  for (u32 i = 0; i < s.nidx; i++) s.idx[i] = copy_index(o, s.buf, idx[i]);
  if (s.kind == ST_for) copied(o, s.var)->team = (s.flags & LF_team) != 0;
  if (s.kind == ST_for || s.kind == ST_let) s.var = declare(o, s.var);
  const Copied *v = s.kind == ST_set ? copied(o, s.var) : NULL;
  if (v && v->to) s.var = v->to;
  StmtList body = {0}, other = {0};
  copy_list(o, s.body, &body);
  copy_list(o, s.other, &other);
  s.body = body.first;
  s.other = other.first;
  stmts_add(p, to, &s);
}

static void copy_reduction(Unroll *o, StmtId id, StmtList *to) {
  o->whole = true;
  o->tiles = false;
  copy_stmt(o, id, to);
  o->tiles = true;
  o->whole = false;
}

static void copy_list(Unroll *o, StmtId first, StmtList *to) {
  for (StmtId id = first; id && !o->failed; id = prog_stmt(o->p, id)->next) {
    Stmt s = *prog_stmt(o->p, id);
    bool kernel = s.kind == ST_kernel; /* kernels are referred to by id */
    if (s.kind != ST_fence && ++o->made > MOST_STATEMENTS) o->failed = !o->whole;
    if (kernel && !o->whole) o->failed = true;
    if (o->failed) return;
    if (kernel) s.into = id;
    if (kernel)
      stmts_add(o->p, to, &s);
    else if (s.kind == ST_for && s.role == RO_reduce && o->tiles)
      copy_reduction(o, id, to);
    else if (s.kind == ST_for && s.flags & LF_unroll && !o->whole)
      copy_steps(o, &s, to);
    else
      copy_stmt(o, id, to);
  }
}

static void find_declared(Unroll *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    if (s->kind != ST_for && s->kind != ST_let) continue;
    if (!o->until || s->var < o->from) o->from = s->var;
    if (s->var >= o->until) o->until = s->var + 1;
  }
}

static StmtId copy_all(Prog *p, StmtId first, bool whole, bool tiles, Arena *a) {
  Unroll o = {.p = p, .a = a, .whole = whole, .tiles = tiles};
  find_declared(&o, first);
  o.var = NEWS(a, Copied, o.until - o.from);
  StmtList all = {0};
  copy_list(&o, first, &all);
  return o.failed ? 0 : all.first;
}

StmtId prog_unroll(Prog *p, StmtId first, Arena *a) {
  return copy_all(p, first, false, false, a);
}

/* Statements of the list with its unrolled loops expanded. Above MOST_STATEMENTS: too many, a bound
 * is not a constant, or there is a kernel. */
static i64 unrolled_size(Prog *p, StmtId first) {
  i64 n = 0, lo, hi;
  for (StmtId id = first; id && n <= MOST_STATEMENTS; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    bool again = s->kind == ST_for && s->flags & LF_unroll;
    if (s->kind == ST_kernel) return MOST_STATEMENTS + 1;
    i64 body = 1 + unrolled_size(p, s->body) + unrolled_size(p, s->other);
    if (again &&
        (!ex_is_int(p, s->a, &lo) || !ex_is_int(p, s->b, &hi) || hi - lo > MOST_STATEMENTS))
      return MOST_STATEMENTS + 1;
    n += body * (again ? (hi - lo + s->step - 1) / s->step : 1);
  }
  return n;
}

StmtId prog_unroll_tiles(Prog *p, StmtId first, Arena *a) {
  return unrolled_size(p, first) > MOST_STATEMENTS ? 0 : copy_all(p, first, false, true, a);
}

StmtId prog_unroll_loop(Prog *p, StmtId loop, Arena *a) {
  StmtList one = {0};
  Stmt s = *prog_stmt(p, loop);
  s.role = RO_none;
  s.record = 0;
  stmts_add(p, &one, &s);
  return copy_all(p, one.first, false, true, a);
}

StmtId prog_copy(Prog *p, StmtId first, Arena *a) {
  return copy_all(p, first, true, false, a);
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

bool prog_is_special(Prog *p, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    if (s->kind == ST_for && s->flags & LF_unroll) return true;
    if (s->kind == ST_store && prog_buf(p, s->buf)->space == BS_reg) return true;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->lanes > 1 || x.e->kind == EX_hreduce || x.e->kind == EX_shuffle ||
          x.e->kind == EX_splat || x.e->kind == EX_quad ||
          (x.e->kind == EX_load && prog_buf(p, x.e->ref)->space == BS_reg))
        return true;
    w.skip = s->kind == ST_kernel;
  }
  return false;
}
