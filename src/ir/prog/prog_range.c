/* prog_range.c: intervals of integer variables and expressions, for the checker and for engines.
 *
 * In: a program. Out: an interval for every variable that contains all its values. Method: one
 * traversal in program order. The interval of a loop variable follows from the loop bounds, that of
 * a `let` from its value. Variables that are `set`, and results that could overflow, are unknown.
 * The analysis has no fixed point and no relations between variables. */
#include "ir/prog/prog.h"

static const Range all = {INT64_MIN, INT64_MAX};

static bool known(Range r) {
  return r.lo > INT64_MIN && r.hi < INT64_MAX && r.lo <= r.hi;
}

static i64 min(i64 a, i64 b) {
  return a < b ? a : b;
}

static i64 max(i64 a, i64 b) {
  return a > b ? a : b;
}

static Range sum(Range a, Range b) {
  Range r;
  if (__builtin_add_overflow(a.lo, b.lo, &r.lo) || __builtin_add_overflow(a.hi, b.hi, &r.hi))
    return all;
  return r;
}

static Range product(Range a, Range b) {
  i64 x[4];
  if (__builtin_mul_overflow(a.lo, b.lo, &x[0]) || __builtin_mul_overflow(a.lo, b.hi, &x[1]) ||
      __builtin_mul_overflow(a.hi, b.lo, &x[2]) || __builtin_mul_overflow(a.hi, b.hi, &x[3]))
    return all;
  return (Range){min(min(x[0], x[1]), min(x[2], x[3])), max(max(x[0], x[1]), max(x[2], x[3]))};
}

static Range of_op(Op op, Range a, Range b) {
  bool ka = known(a), kb = known(b);
  switch (op) {
  case OP_add: return ka && kb ? sum(a, b) : all;
  case OP_sub: return ka && kb ? sum(a, (Range){-b.hi, -b.lo}) : all;
  case OP_mul: return ka && kb ? product(a, b) : all;
  case OP_neg: return ka ? (Range){-a.hi, -a.lo} : all;
  case OP_max: return (Range){max(a.lo, b.lo), max(a.hi, b.hi)};
  case OP_min: return (Range){min(a.lo, b.lo), min(a.hi, b.hi)};
  case OP_div:
    if (!ka || !kb || b.lo <= 0) return all;
    return (Range){min(a.lo / b.lo, a.lo / b.hi), max(a.hi / b.lo, a.hi / b.hi)};
  case OP_mod:
    if (!kb || b.lo <= 0) return all;
    if (ka && a.lo >= 0 && a.hi < b.lo) return a;
    return (Range){0, b.hi - 1};
  default: return all;
  }
}

static Range of_dtype(DType dt) {
  Range r;
  dtype_int_range(dt, &r.lo, &r.hi);
  return r;
}

Range ex_range(Prog *p, ExprId id, const Range *var) {
  const Expr *e = prog_expr(p, id);
  if (e->lanes > 1 || !dtype_is_int(e->dt)) return of_dtype(e->dt);
  switch (e->kind) {
  case EX_const: return (Range){e->imm.i, e->imm.i};
  case EX_var: return var[e->ref];
  case EX_op: break;
  default: return of_dtype(e->dt);
  }
  Range a, b = all;
  if (e->op == OP_cast) {
    DType from = prog_expr(p, e->arg[0])->dt;
    if (from == DT_bool || (dtype_is_int(from) && e->dt == DT_i64 && from != DT_u64))
      return from == DT_bool ? (Range){0, 1} : ex_range(p, e->arg[0], var);
    return of_dtype(e->dt);
  }
  if (e->op == OP_select) {
    a = ex_range(p, e->arg[1], var);
    b = ex_range(p, e->arg[2], var);
    return (Range){min(a.lo, b.lo), max(a.hi, b.hi)};
  }
  if (e->dt != DT_i64) return of_dtype(e->dt);
  a = ex_range(p, e->arg[0], var);
  if (e->narg > 1) b = ex_range(p, e->arg[1], var);
  return of_op(e->op, a, b);
}

static void visit(Prog *p, Range *var, const bool *is_set) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind == ST_for) {
      Range lo = ex_range(p, s->a, var), hi = ex_range(p, s->b, var);
      bool runs = known(lo) && known(hi) && lo.lo < hi.hi;
      var[s->var] = runs ? (Range){lo.lo, hi.hi - 1} : all;
    }
    if (s->kind == ST_let && !is_set[s->var] && dtype_is_int(prog_var(p, s->var)->dt))
      var[s->var] = ex_range(p, s->a, var);
  }
}

Range *prog_ranges(Prog *p, const i64 *env, Arena *a) {
  Range *var = NEWS(a, Range, p->var.n);
  bool *is_set = NEWS(a, bool, p->var.n);
  for (StmtId s = 1; s < p->stmt.n; s++)
    if (prog_stmt(p, s)->kind == ST_set) is_set[prog_stmt(p, s)->var] = true;
  for (VarId v = 1; v < p->var.n; v++) {
    var[v] = all;
    i32 sym = prog_var(p, v)->sym;
    if (sym < 0) continue;
    const SymInfo *si = dim_syminfo(p->dims, (Sym)sym);
    var[v] = (Range){si->lo, si->hi};
    if (env && si->kind == SY_input) var[v] = (Range){env[sym], env[sym]};
  }
  visit(p, var, is_set);
  return var;
}
