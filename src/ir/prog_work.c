/* prog_work.c: what a kernel does in one call: multiply-adds, and the memory it touches.
 *
 * In: a kernel, and between which values variables lie. Out: numbers of one call, and the buffers
 * that it reads and writes. Extents that are open count with their bounds; of a loop that ends by
 * its data one iteration counts.
 */
#include "ir/prog_mem.h"

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

/* A product that is added to something. */
static bool is_sum(Prog *p, const Expr *x) {
  if (x->kind != EX_op || !dtype_is_float(x->dt)) return false;
  for (u32 i = 0; x->op == OP_add && i < 2; i++) {
    const Expr *y = prog_expr(p, x->arg[i]);
    if (y->kind == EX_op && y->op == OP_mul) return true;
  }
  return x->op == OP_fma;
}

static void count_expr(WorkCount *n, ExprId id, double times) {
  if (!id) return;
  const Expr *x = prog_expr(n->p, id);
  if (x->kind == EX_load) touch(n, x->ref, false);
  if (is_sum(n->p, x)) n->w.macs += times * x->lanes;
  if (x->kind == EX_op && (x->op == OP_dot4 || x->op == OP_dot2 || x->op == OP_pairs)) {
    double whole = (x->op == OP_dot2 ? 2 : 4) * times * x->lanes;
    n->w.macs += whole;
    n->w.whole += whole;
  }
  for (u32 i = 0; i < x->narg; i++) count_expr(n, x->arg[i], times);
}

static void count_list(WorkCount *n, StmtId first, double times) {
  for (StmtId id = first; id; id = prog_stmt(n->p, id)->next) {
    const Stmt *s = prog_stmt(n->p, id);
    double turns = 1;
    bool fixed;
    if (s->kind == ST_for) turns = loop_trips(n->p, n->range, s, &fixed);
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
