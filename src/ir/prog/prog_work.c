/* prog_work.c: work of a kernel per call: multiply-adds, and the memory it accesses.
 *
 * In: a kernel, and the ranges of variables. Out: counts per call, and the buffers that it reads
 * and writes. Symbolic extents count with their bounds, a data-dependent loop as one iteration. */
#include "ir/prog/prog_mem.h"

typedef struct WorkCount {
  Prog *p;
  Arena *a;
  const Range *range;
  KernelWork w;
} WorkCount;

static bool has(const BufIds *list, BufId b) {
  for (u32 i = 0; i < list->n; i++)
    if (list->at[i] == b) return true;
  return false;
}

static void touch(WorkCount *n, BufId b, bool writes) {
  BufId root = prog_root(n->p, b);
  BufIds *list = writes ? &n->w.written : &n->w.read;
  u64 bytes;
  Sym sym;
  if (prog_buf(n->p, root)->space == BS_reg || has(list, root)) return;
  bool is_new = !has(writes ? &n->w.read : &n->w.written, root);
  *vec_push(n->a, list) = root;
  if (is_new && mem_bytes(n->p, root, &bytes, &sym)) n->w.bytes += (double)bytes;
}

static bool is_op(const Expr *x, Op op) {
  return x->kind == EX_op && x->op == op;
}

/* The operand under integer casts. */
static const Expr *uncast(Prog *p, ExprId id) {
  const Expr *x = prog_expr(p, id);
  while (is_op(x, OP_cast) && dtype_is_int(x->dt)) x = prog_expr(p, x->arg[0]);
  return x;
}

/* Indices are i64 too: an i64 product counts only if both operands come from memory. */
static bool is_product(Prog *p, ExprId id) {
  const Expr *x = uncast(p, id);
  if (!is_op(x, OP_mul)) return false;
  return x->dt != DT_i64 ||
         (uncast(p, x->arg[0])->kind == EX_load && uncast(p, x->arg[1])->kind == EX_load);
}

/* Is it a product added to something? */
static bool is_sum(Prog *p, const Expr *x) {
  if (x->kind != EX_op || !(dtype_is_float(x->dt) || dtype_is_int(x->dt))) return false;
  return is_op(x, OP_fma) ||
         (is_op(x, OP_add) && (is_product(p, x->arg[0]) || is_product(p, x->arg[1])));
}

static void count_expr(WorkCount *n, ExprId id, double times) {
  if (!id) return;
  const Expr *x = prog_expr(n->p, id);
  double macs = is_sum(n->p, x) ? 1 : 0;
  if (x->kind == EX_load) touch(n, x->ref, false);
  if (is_op(x, OP_dot_i16x2)) macs = 2;
  if (is_op(x, OP_dot_i8x4) || is_op(x, OP_maddubs)) macs = 4;
  if (x->kind == EX_mma) {
    const Expr *a = prog_expr(n->p, x->arg[0]);
    u32 steps = a->lanes / a->rows; /* of the reduction */
    macs = steps * (a->dt == DT_i32 ? 4.0 : 1.0);
  }
  macs *= times * x->lanes;
  n->w.macs += macs;
  if (!dtype_is_float(x->dt)) n->w.whole += macs;
  for (u32 i = 0; i < x->narg; i++) count_expr(n, x->arg[i], times);
}

static void count_list(WorkCount *n, StmtId first, double times) {
  for (StmtId id = first; id; id = prog_stmt(n->p, id)->next) {
    const Stmt *s = prog_stmt(n->p, id);
    double turns = 1;
    bool fixed;
    if (s->kind == ST_for) turns = stmt_trip_count(n->p, n->range, s, &fixed);
    if (s->kind == ST_store) touch(n, s->buf, true);
    if (s->kind != ST_for) count_expr(n, s->a, times);
    count_list(n, s->body, times * turns);
    count_list(n, s->other, times);
  }
}

KernelWork prog_work(Prog *p, const Range *range, StmtId kernel, Arena *a) {
  WorkCount n = {.p = p, .a = a, .range = range};
  count_list(&n, prog_stmt(p, kernel)->body, 1);
  return n.w;
}
