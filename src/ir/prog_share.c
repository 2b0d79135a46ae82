/* prog_share.c: may the result of a kernel lie where one of its operands lies?
 *
 * In: a kernel, two buffers of equal shape. Out: yes if every element of the operand is read for
 * the last time before its place is written. Method: each load of the operand is compared with each
 * store of the result. Let C be the loops around both. In one iteration of C the load must come
 * first in the text. Different iterations of C must touch different elements: each counter of C has
 * to appear in an index that is the same expression in both and takes each value only once.
 * Softmax, layer norm and all maps pass; transposes, products and stencils do not.
 */
#include "ir/prog_mem.h"

typedef struct PlaceTouch {
  BufId buf;
  const ExprId *idx;
  u32 lanes;
  u32 order; /* of its statement */
  bool store;
  Nesting at;
} PlaceTouch;

typedef struct PlaceShare {
  Prog *p;
  Arena *a;
  BufId from, to; /* roots */
  VEC(PlaceTouch) touch;
  Nesting at;
  u32 order;
  bool deep; /* more loops than are looked at */
} PlaceShare;

static void add(PlaceShare *o, BufId b, const ExprId *idx, u32 lanes, bool store) {
  BufId root = prog_root(o->p, b);
  if (root != o->from && root != o->to) return;
  *vec_push(o->a, &o->touch) = (PlaceTouch){b, idx, lanes, o->order, store, o->at};
}

static void look(PlaceShare *o, ExprId id) {
  for (ExprWalk w = ex_walk(o->p, id); ex_next(&w);)
    if (w.e->kind == EX_load) add(o, w.e->ref, w.e->arg, w.e->lanes, false);
}

static void walk(PlaceShare *o, StmtId first) {
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
    walk(o, s->body);
    walk(o, s->other);
    if (loop) o->at.n--;
  }
}

/* e: an index that is the same expression in the load and in the store. Marks the loops whose
 * iterations it tells apart: no two values of their counters give the same index. */
static void separate(PlaceShare *o, const Nesting *at, ExprId e, i64 lanes, bool *distinct) {
  const Expr *ep = prog_expr(o->p, e);
  Steps s;
  if (ep->kind == EX_var) { /* also with bounds that are not known */
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

/* Does the loop run once at most? */
static bool once(Prog *p, StmtId loop) {
  const Stmt *f = prog_stmt(p, loop);
  i64 lo, hi;
  return f->kind == ST_for && ex_is_int(p, f->a, &lo) && ex_is_int(p, f->b, &hi) &&
         hi - lo <= f->step;
}

/* Is every element loaded, for the last time, before the store writes its place? The method above.
 */
static bool in_order(PlaceShare *o, const PlaceTouch *load, const PlaceTouch *store) {
  const Buf *x = prog_buf(o->p, load->buf), *y = prog_buf(o->p, store->buf);
  bool distinct[MEM_NEST] = {0};
  if (load->order > store->order || x->rank != y->rank || x->dt != y->dt) return false;
  for (u32 d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
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

bool mem_in_place(Prog *p, StmtId kernel, BufId from, BufId to) {
  Mark mark = arena_mark(&p->c->scratch);
  PlaceShare o = {.p = p, .a = &p->c->scratch, .from = from, .to = to};
  walk(&o, prog_stmt(p, kernel)->body);
  bool ok = !o.deep;
  for (u32 i = 0; ok && i < o.touch.n; i++) {
    const PlaceTouch *x = &o.touch.at[i];
    if (prog_root(p, x->buf) != from) continue;
    if (x->store) ok = false;
    for (u32 k = 0; ok && k < o.touch.n; k++) {
      const PlaceTouch *y = &o.touch.at[k];
      if (y->store && prog_root(p, y->buf) == to) ok = in_order(&o, x, y);
    }
  }
  arena_rewind(&p->c->scratch, mark);
  return ok;
}
