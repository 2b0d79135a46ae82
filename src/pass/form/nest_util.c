/* nest_util.c: kernels, loops and expressions that all lowering needs. */
#include "pass/form/nest.h"

#include <string.h>

RecordId kernel_record(Prog *p, StmtId kernel, KernelRecord r) {
  for (RecordId id = prog_stmt(p, kernel)->record; id; id = prog_record(p, id)->next) {
    const KernelRecord *x = prog_record(p, id);
    if (x->family == r.family && x->size == r.size && x->reason == r.reason && x->out == r.out &&
        x->sum == r.sum && !memcmp(x->in, r.in, sizeof r.in) &&
        !memcmp(x->packed, r.packed, sizeof r.packed))
      return id;
  }
  return record_add(p, kernel, &r);
}

Cursor lower_kernel(Lower *l, Str label) {
  Cursor at = l->at;
  StmtId s = prog_kernel(l->p, &at, label);
  l->at.last = s;
  if (l->n) prog_stmt(l->p, s)->loc = l->n->loc;
  return at;
}

Cursor lower_small(Lower *l, const char *label, Family family) {
  Cursor at = lower_kernel(l, str_of(l->c, label));
  kernel_record(l->p, l->at.last, (KernelRecord){.family = family});
  return at;
}

void loop_set_parallel(Prog *p, StmtId loop) {
  Stmt *s = prog_stmt(p, loop);
  if (!s->role) s->role = RO_batch;
  if (p->threads > 1) s->flags |= LF_parallel;
}

VarId for_role(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name, LoopRole role) {
  VarId v = prog_for(p, at, lo, hi, name);
  prog_stmt(p, at->owner)->role = (u8)role;
  return v;
}

VarId for_parallel(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name) {
  VarId v = prog_for(p, at, lo, hi, name);
  loop_set_parallel(p, at->owner);
  return v;
}

ExprId count_parallel(Prog *p, Cursor *at, i64 n, const char *name) {
  ExprId zero = ex_int(p, 0);
  return n == 1 ? zero : ex_var(p, for_parallel(p, at, zero, ex_int(p, n), name));
}

static void open_all(Prog *p, Cursor *at, const Dim *dim, u32 rank, u32 skip, VarId *var,
                     bool free) {
  static const char *const names[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
  for (u32 i = 0; i < rank; i++) {
    var[i] = 0;
    if (i == skip || dim[i] == 1) continue;
    var[i] = prog_for(p, at, ex_int(p, 0), ex_dim(p, dim[i]), names[i < 8 ? i : 7]);
    if (free) loop_set_parallel(p, at->owner);
  }
}

void open_loops(Prog *p, Cursor *at, const Dim *dim, u32 rank, u32 skip, VarId *var) {
  open_all(p, at, dim, rank, skip, var, true);
}

void open_ordered(Prog *p, Cursor *at, const Dim *dim, u32 rank, VarId *var) {
  open_all(p, at, dim, rank, MAX_RANK, var, false);
}

ExprId ex_at(Prog *p, VarId v) {
  return v ? ex_var(p, v) : ex_int(p, 0);
}

ExprId load_at(Prog *p, BufId b, const VarId *var) {
  ExprId idx[MAX_RANK];
  u32 rank = prog_buf(p, b)->rank;
  for (u32 i = 0; i < rank; i++) idx[i] = ex_at(p, var[i]);
  return ex_load(p, b, idx, rank);
}

void store_at(Prog *p, Cursor *at, BufId b, const VarId *var, ExprId value) {
  ExprId idx[MAX_RANK];
  u32 rank = prog_buf(p, b)->rank;
  for (u32 i = 0; i < rank; i++) idx[i] = ex_at(p, var[i]);
  prog_store(p, at, b, idx, rank, value);
}

VarId let_new(Prog *p, Cursor *at, const char *name, ExprId value) {
  VarId v = prog_add_var(p, prog_expr(p, value)->dt, str_of(p->c, name));
  prog_let(p, at, v, value);
  return v;
}

ExprId ex_finish(Prog *p, DType to, ExprId acc) {
  return ex_cast(p, to, acc, to != DT_f8e5m2);
}

DType key_dtype(DType dt) {
  return dt == DT_bool ? DT_u8 : dt;
}

ExprId ex_before(Prog *p, VarId a, VarId b, bool largest) {
  ExprId e = ex_op2(p, largest ? OP_gt : OP_lt, ex_var(p, a), ex_var(p, b));
  if (!dtype_is_float(prog_var(p, a)->dt)) return e;
  ExprId nan = ex_op1(p, OP_isnan, ex_var(p, largest ? a : b));
  ExprId num = ex_op1(p, OP_not, ex_op1(p, OP_isnan, ex_var(p, largest ? b : a)));
  return ex_op2(p, OP_or, e, ex_op2(p, OP_and, nan, num));
}

ExprId key_at(Prog *p, BufId x, const VarId *var, u32 axis, VarId k) {
  VarId at[MAX_RANK];
  for (u32 i = 0; i < prog_buf(p, x)->rank; i++) at[i] = i == axis ? k : var[i];
  ExprId e = load_at(p, x, at);
  return ex_cast(p, key_dtype(prog_expr(p, e)->dt), e, false);
}
