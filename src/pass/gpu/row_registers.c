/* row_registers.c: keeps the rows of fused kernels in registers.
 *
 * In: a program for a GPU after `parallel`. Out: the same program, the same bits, where scratch
 * that a warp accesses in whole vectors is a register buffer. Kernels that loop_fuse joined, such
 * as a softmax or a norm, hold one row of each temporary; in registers a vector is one value of
 * each thread. The loops that index such a row are unrolled.
 *
 * Method: for each scratch buffer of a kernel without warp or thread loops, test that all accesses,
 * through any view, have the same lanes and one index that is a multiple of them, made of variables
 * of short loops with constant bounds.
 *
 * needs: parallel  keeps: the order of every sum
 */
#include "ir/prog/affine.h"
#include "pass/pass.h"

enum { STEPS = 64 }; /* maximum iterations of a loop that is unrolled */

typedef struct Rows {
  Prog *p;
  StmtId kernel;
  StmtId *loop; /* by variable: its loop in the kernel; 0: none */
  u32 left;     /* registers */
} Rows;

/* One access. *at: index of the vector. False: it does not fit in registers. */
static bool fits(Rows *o, BufId b, const ExprId *idx, u32 n, u32 lanes, Affine *at) {
  Prog *p = o->p;
  const Buf *x = prog_buf(p, b);
  i64 stride = 1, k, sum = 0;
  *at = (Affine){0};
  for (u32 d = n; d-- > 0; stride *= x->dim[d]) {
    if (x->dim[d] == 1) {
      if (!ex_is_int(p, idx[d], &k) || k) return false;
      continue;
    }
    Affine a;
    if (!affine_of(p, idx[d], &a)) return false;
    sum += a.k * stride;
    for (u32 i = 0; i < a.n; i++) {
      i64 lo, hi;
      if (!a.t[i].var || !o->loop[a.t[i].var] || at->n == AFFINE_TERMS) return false;
      const Stmt *s = prog_stmt(p, o->loop[a.t[i].var]);
      if (!ex_is_int(p, s->a, &lo) || !ex_is_int(p, s->b, &hi) || hi - lo > STEPS) return false;
      if (a.t[i].coef * stride % lanes) return false;
      at->t[at->n] = a.t[i];
      at->t[at->n++].coef = a.t[i].coef * stride / (i64)lanes;
    }
  }
  at->k = sum / (i64)lanes;
  return sum % (i64)lanes == 0;
}

static bool is_view(const Prog *p, BufId b, BufId root) {
  return prog_root(p, b) == root && prog_buf(p, b)->space != BS_reg;
}

/* Moves a scratch buffer of the kernel to registers, if all accesses fit. */
static void move(Rows *o, BufId root) {
  Prog *p = o->p;
  const Stmt *s;
  u32 lanes = 0;
  i64 n = 1;
  Affine at;
  for (u32 d = 0; d < prog_buf(p, root)->rank; d++) {
    Dim dim = prog_buf(p, root)->dim[d];
    if (!dim_is_const(dim) || dim > WARP_LANES * STEPS) return;
    n *= dim;
  }
  for (u32 part = 0; part < 2; part++) { /* test, then rewrite */
    BufId to = 0;
    if (part) {
      Dim dim = n / lanes;
      Str name = prog_buf(p, root)->name;
      to = prog_add_buf(p, BS_reg, prog_buf(p, root)->dt, &dim, 1, name);
      prog_buf(p, to)->lanes = lanes;
      o->left -= (u32)dim;
    }
    for (StmtVisit w = prog_visit_one(p, o->kernel); (s = prog_next(&w));) {
      for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) {
        if (x.e->kind != EX_load || !is_view(p, x.e->ref, root)) continue;
        if (!lanes) lanes = x.e->lanes;
        if (x.e->lanes != lanes || !fits(o, x.e->ref, x.e->arg, x.e->narg, lanes, &at)) return;
        if (!part) continue;
        for (u32 i = 0; i < at.n; i++) prog_stmt(p, o->loop[at.t[i].var])->flags = LF_unroll;
        x.e->ref = to;
        x.e->arg[0] = affine_expr(p, &at);
        x.e->narg = 1;
        x.below = 0;
      }
      if (s->kind != ST_store || !is_view(p, s->buf, root)) continue;
      if (!lanes) lanes = prog_expr(p, s->a)->lanes;
      if (prog_expr(p, s->a)->lanes != lanes || !fits(o, s->buf, s->idx, s->nidx, lanes, &at))
        return;
      if (!part) continue;
      for (u32 i = 0; i < at.n; i++) prog_stmt(p, o->loop[at.t[i].var])->flags = LF_unroll;
      Stmt *to_set = prog_stmt(p, w.id);
      to_set->buf = to;
      to_set->idx[0] = affine_expr(p, &at);
      to_set->nidx = 1;
    }
    if (!lanes || lanes > WARP_LANES || n % lanes || n / lanes > o->left) return;
  }
}

void row_registers(Prog *p) {
  Stmt *s;
  if (p->threads != GPU_THREADS) return;
  VEC(StmtId) kernel = {0};
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    w.skip = true;
    *vec_push(&p->c->scratch, &kernel) = w.id;
  }
  for (u32 i = 0; i < kernel.n; i++) {
    Mark m = arena_mark(&p->c->scratch);
    Rows o = {.p = p, .kernel = kernel.at[i], .left = LIMIT_row_registers};
    if (prog_block_warps(p, prog_stmt(p, o.kernel)->body)) continue;
    o.loop = NEWS(&p->c->scratch, StmtId, p->var.n);
    bool *used = NEWS(&p->c->scratch, bool, p->buf.n);
    u32 nbuf = p->buf.n;
    for (StmtVisit w = prog_visit_one(p, o.kernel); (s = prog_next(&w));) {
      if (s->kind == ST_for && !(s->flags & LF_parallel)) o.loop[s->var] = w.id;
      if (s->kind == ST_store) used[prog_root(p, s->buf)] = true;
    }
    for (BufId b = 1; b < nbuf; b++)
      if (used[b] && prog_buf(p, b)->space == BS_local) move(&o, b);
    if (o.left < LIMIT_row_registers) record_fit(p, o.kernel);
    arena_rewind(&p->c->scratch, m);
  }
}
