/* lower_scan.c: nodes that walk along one line and remember something: positions of extremes,
 * running sums.
 *
 * Elements are compared in their own type; NaN counts as larger than everything and -0 equals 0, as
 * in the reference evaluator.
 */
#include "pass/lower/lower.h"

void lower_arg(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  u32 axis = (u32)node_int(l->n, AT_axis, 0), rank = prog_buf(p, x)->rank, n = 0;
  bool keep = node_int(l->n, AT_keep, 0) != 0, last = node_int(l->n, AT_last, 0) != 0;
  bool max = l->n->op == OP_argmax;
  VarId var[MAX_RANK], to[MAX_RANK];
  open_loops(p, &at, prog_buf(p, x)->dim, rank, axis, var);
  VarId best = let_new(p, &at, "best", ex_int(p, 0));
  VarId top = let_new(p, &at, "top", key_at(p, x, var, axis, 0));
  Cursor in = at;
  VarId k = prog_for(p, &in, ex_int(p, 1), ex_dim(p, prog_buf(p, x)->dim[axis]), "k");
  VarId v = let_new(p, &in, "v", key_at(p, x, var, axis, k));
  bool flt = dtype_is_float(prog_var(p, v)->dt);
  ExprId better = ex_op2(p, max ? OP_gt : OP_lt, ex_var(p, v), ex_var(p, top));
  if (last) better = ex_op2(p, OP_or, better, ex_op2(p, OP_eq, ex_var(p, v), ex_var(p, top)));
  if (flt) { /* the first NaN wins, whichever extreme is wanted */
    ExprId first = ex_op1(p, OP_not, ex_op1(p, OP_isnan, ex_var(p, top)));
    first = ex_op2(p, OP_and, ex_op1(p, OP_isnan, ex_var(p, v)), first);
    better = ex_op2(p, OP_or, better, first);
  }
  prog_if(p, &in, better);
  prog_set(p, &in, best, ex_var(p, k));
  prog_set(p, &in, top, ex_var(p, v));
  for (u32 i = 0; i < rank; i++)
    if (i != axis || keep) to[n++] = var[i];
  store_at(p, &at, out, to, ex_var(p, best));
}

void lower_pool_arg(Lower *l, Cursor at) {
  Prog *p = l->p;
  Form f;
  form_of(l->g, l->n, p, l->buf, &f);
  Nest x = {.l = l, .p = p, .f = &f, .at = at};
  u32 ns, rank = f.in[0].rank;
  node_list(l->n, AT_window, &ns);
  DType key = key_dtype(prog_buf(p, f.in[0].buf)->dt);
  nest_loops(&x, false, FORM_AXES);
  VarId best = let_new(p, &x.at, "best", ex_int(p, -1));
  VarId top = let_new(p, &x.at, "top", ex_const(p, key, fold_init(OP_max, key)));
  Cursor after = x.at;
  nest_loops(&x, true, FORM_AXES);
  VarId v = let_new(p, &x.at, "v", ex_cast(p, key, nest_load(&x, 0), false));
  ExprId none = ex_op2(p, OP_lt, ex_var(p, best), ex_int(p, 0));
  prog_if(p, &x.at, ex_op2(p, OP_or, none, ex_before(p, v, top, true)));
  ExprId here = ex_int(p, 0);
  for (u32 i = rank - ns; i < rank; i++) {
    here = ex_op2(p, OP_mul, here, ex_dim(p, prog_buf(p, f.in[0].buf)->dim[i]));
    here = ex_op2(p, OP_add, here, nest_index(&x, &f.in[0], i));
  }
  prog_set(p, &x.at, best, here);
  prog_set(p, &x.at, top, ex_var(p, v));
  x.at = after;
  nest_store(&x, ex_op2(p, OP_max, ex_var(p, best), ex_int(p, 0)));
}

void lower_cum(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId x = lower_in(l, 0), out = lower_out(l, 0);
  DType dt = prog_buf(p, x)->dt, acc_dt = dtype_is_float(dt) ? dtype_acc(dt) : dt;
  Op op = l->n->op == OP_cumsum ? OP_add : OP_mul;
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  Dim n = prog_buf(p, x)->dim[axis];
  bool exclusive = node_int(l->n, AT_exclusive, 0) != 0,
       reverse = node_int(l->n, AT_reverse, 0) != 0;
  VarId var[MAX_RANK];
  open_loops(p, &at, prog_buf(p, x)->dim, prog_buf(p, x)->rank, axis, var);
  VarId acc = let_new(p, &at, "acc", ex_const(p, acc_dt, fold_init(op, dt)));
  var[axis] = prog_for(p, &at, ex_int(p, 0), ex_dim(p, n), "k");
  if (reverse) {
    ExprId last = ex_op2(p, OP_sub, ex_dim(p, n), ex_int(p, 1));
    var[axis] = let_new(p, &at, "r", ex_op2(p, OP_sub, last, ex_var(p, var[axis])));
  }
  ExprId next = ex_cast(p, acc_dt, load_at(p, x, var), false);
  next = ex_op2(p, fold_op(op, dt), ex_var(p, acc), next);
  if (!exclusive) prog_set(p, &at, acc, next);
  store_at(p, &at, out, var, ex_finish(p, dt, ex_var(p, acc)));
  if (exclusive) prog_set(p, &at, acc, next);
}
