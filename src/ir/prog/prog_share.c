/* prog_share.c: may the result of a kernel overwrite one of its operands in place?
 *
 * In: a kernel, two buffers of equal shape. Out: true if every element of the operand is read for
 * the last time before its place is written. Method: one traversal lists the loads and stores of a
 * kernel by buffer, cached until another kernel is queried. Each load of the operand is compared
 * with each store of the result. Let C be the loops around both. In one iteration of C the load
 * must come first. Different iterations of C must access different elements: each counter of C must
 * appear in an index that is the same expression in both and is injective in it. A load and a store
 * whose indices never meet are in any order: the results of a register tile. Softmax, layer norm
 * and all maps pass; transposes, products and stencils do not. */
#include "ir/prog/prog_mem.h"

typedef struct BufAccess {
  BufId buf, root;
  const ExprId *idx;
  u32 lanes;
  u32 order; /* position of its statement */
  u32 next;  /* 1 + the previous access to this root; 0: none */
  bool store;
  Nesting at;
} BufAccess;

struct KernelAccesses {
  Prog *p;
  Arena *a;
  StmtId kernel; /* 0: no query yet */
  VEC(BufAccess) touch;
  u32 *last; /* by root: 1 + its last access */
  Nesting at;
  u32 order;
  bool deep; /* nested deeper than analyzed */
};

static void add(KernelAccesses *o, BufId b, const ExprId *idx, u32 lanes, bool store) {
  BufId root = prog_root(o->p, b);
  BufAccess *t = vec_push(o->a, &o->touch);
  *t = (BufAccess){b, root, idx, lanes, o->order, o->last[root], store, o->at};
  o->last[root] = o->touch.n;
}

static void look(KernelAccesses *o, ExprId id) {
  for (ExprVisit w = ex_visit(o->p, id); ex_next(&w);)
    if (w.e->kind == EX_load) add(o, w.e->ref, w.e->arg, w.e->lanes, false);
}

static void visit(KernelAccesses *o, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    bool loop = s->kind == ST_for || s->kind == ST_while;
    o->order++;
    if (loop && o->at.n == MEM_NEST) o->deep = true;
    if (o->deep) return;
    if (s->kind == ST_while)
      o->at.loop[o->at.n++] = id; /* its condition belongs to each iteration */
    look(o, s->a);
    look(o, s->b);
    if (s->kind == ST_for) o->at.loop[o->at.n++] = id;
    for (u32 i = 0; i < s->nidx; i++) look(o, s->idx[i]);
    if (s->kind == ST_store) add(o, s->buf, s->idx, prog_expr(o->p, s->a)->lanes, true);
    visit(o, s->body);
    visit(o, s->other);
    if (loop) o->at.n--;
  }
}

/* e: an index that is the same expression in the load and in the store. Marks the loops whose
 * counters it is injective in. */
static void separate(KernelAccesses *o, const Nesting *at, ExprId e, i64 lanes, bool *distinct) {
  const Expr *ep = prog_expr(o->p, e);
  StridedIndex s;
  if (ep->kind == EX_var) { /* also with unknown bounds */
    for (u32 i = 0; i < at->n; i++) {
      const Stmt *f = prog_stmt(o->p, at->loop[i]);
      if (f->kind == ST_for && f->var == ep->ref && f->step >= lanes) distinct[i] = true;
    }
    return;
  }
  if (!mem_steps(o->p, at, e, &s)) return;
  i64 reach = lanes;
  for (u32 k = 0; k < s.n; k++) {
    if (s.coef[k] < reach) return;
    reach += s.coef[k] * (s.trip[k] - 1);
  }
  for (u32 k = 0; k < s.n; k++)
    for (u32 i = 0; i < at->n; i++)
      if (prog_stmt(o->p, at->loop[i])->var == s.var[k]) distinct[i] = true;
}

/* Does the loop run at most once? */
static bool once(Prog *p, StmtId loop) {
  const Stmt *f = prog_stmt(p, loop);
  i64 lo, hi;
  return f->kind == ST_for && ex_is_int(p, f->a, &lo) && ex_is_int(p, f->b, &hi) &&
         hi - lo <= f->step;
}

static i64 gcd(i64 a, i64 b) {
  return b ? gcd(b, a % b) : a;
}

/* Do the load and the store never access the same element, in any iterations? True if an index
 * differs by its range, or by the remainder modulo the steps of all counters. */
static bool apart(KernelAccesses *o, const BufAccess *load, const BufAccess *store) {
  for (u32 d = 0; d < prog_buf(o->p, load->buf)->rank; d++) {
    StridedIndex s[2];
    if (!mem_steps(o->p, &load->at, load->idx[d], &s[0]) ||
        !mem_steps(o->p, &store->at, store->idx[d], &s[1]))
      continue;
    i64 by = s[0].k - s[1].k, step = 0, lo[2], hi[2];
    for (u32 i = 0; i < 2; i++) {
      lo[i] = hi[i] = s[i].k;
      for (u32 k = 0; k < s[i].n; k++) {
        hi[i] += s[i].coef[k] * (s[i].trip[k] - 1);
        step = gcd(s[i].coef[k], step);
      }
    }
    if (load->lanes > 1 || store->lanes > 1) continue;
    if (hi[0] < lo[1] || hi[1] < lo[0] || (step ? by % step : by)) return true;
  }
  return false;
}

/* Is every element loaded for the last time before the store writes its place? */
static bool in_order(KernelAccesses *o, const BufAccess *load, const BufAccess *store) {
  const Buf *x = prog_buf(o->p, load->buf), *y = prog_buf(o->p, store->buf);
  bool distinct[MEM_NEST] = {0};
  if (x->rank != y->rank || x->dt != y->dt) return false;
  for (u32 d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  if (apart(o, load, store)) return true;
  if (load->order > store->order) return false;
  Nesting both = load->at;
  for (both.n = 0; both.n < load->at.n && both.n < store->at.n; both.n++)
    if (load->at.loop[both.n] != store->at.loop[both.n]) break;
  for (u32 d = 0; d < x->rank; d++) {
    u32 lanes = load->lanes > store->lanes ? load->lanes : store->lanes;
    if (ex_same(o->p, load->idx[d], store->idx[d]))
      separate(o, &both, load->idx[d], d + 1 == x->rank ? lanes : 1, distinct);
  }
  for (u32 i = 0; i < both.n; i++)
    if (!distinct[i] && !once(o->p, both.loop[i])) return false;
  return true;
}

KernelAccesses *mem_accesses(Prog *p, Arena *a) {
  KernelAccesses *o = NEW(a, KernelAccesses);
  *o = (KernelAccesses){.p = p, .a = a, .last = NEWS(a, u32, p->buf.n)};
  return o;
}

static void list_touches(KernelAccesses *o, StmtId kernel) {
  for (u32 i = 0; i < o->touch.n; i++) o->last[o->touch.at[i].root] = 0;
  o->touch.n = o->order = o->at.n = 0;
  o->deep = false;
  o->kernel = kernel;
  visit(o, prog_stmt(o->p, kernel)->body);
}

bool mem_in_place(KernelAccesses *o, StmtId kernel, BufId from, BufId to) {
  if (o->kernel != kernel) list_touches(o, kernel);
  if (o->deep) return false;
  for (u32 i = o->last[from]; i; i = o->touch.at[i - 1].next) {
    const BufAccess *x = &o->touch.at[i - 1];
    if (x->store) return false;
    for (u32 k = o->last[to]; k; k = o->touch.at[k - 1].next) {
      const BufAccess *y = &o->touch.at[k - 1];
      if (y->store && !in_order(o, x, y)) return false;
    }
  }
  return true;
}
