/* ref_control.c: if and loop.
 *
 * An iteration of a loop keeps only its carried values and one slice of every scan, which are
 * copied into buffers; its other memory is released. A buffer that must grow is allocated after the
 * temporaries of the iteration, which then stay. Buffers double, so that happens only a logarithmic
 * number of times. */
#include "ir/ref/ref.h"

#include <string.h>

void ref_if(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const GraphRegion *then = &r->g->region.at[n->region[0]], *other = &r->g->region.at[n->region[1]];
  bool cond = tensor_get(in[0], 0).i != 0;
  const GraphRegion *b = cond ? then : other;
  ref_region(r, n->region[cond ? 0 : 1]);
  u32 k = 0;
  for (u32 i = 0; i < n->nout; i++) {
    out[i] = ref_value(r, b->ret.at[i]);
    /* One symbol per axis on which the branches differ, in this order. */
    const Type *ty = graph_type(r->g, then->ret.at[i]), *tn = graph_type(r->g, other->ret.at[i]);
    for (u32 j = 0; j < ty->rank; j++) {
      if (ty->dim[j] == tn->dim[j]) continue;
      if (k >= n->nsym)
        internal_error(r->c, n->loc, "if sets only %u symbols, expected more", n->nsym);
      ref_set(r, n->sym[k++], out[i]->dim[j]);
    }
  }
}

/* A tensor in a growable buffer that outlives the iteration. */
typedef struct Hold {
  Tensor t;
  i64 dim[MAX_RANK];
  u8 *data;
  u64 cap; /* bytes */
} Hold;

/* Makes room; returns whether memory was allocated. */
static bool hold_room(Ref *r, Hold *h, u64 bytes) {
  if (bytes <= h->cap) return false;
  u64 cap = bytes < 2 * h->cap ? 2 * h->cap : bytes;
  u8 *p = arena_alloc(r->a, cap);
  if (h->cap) memcpy(p, h->data, h->cap);
  h->data = p;
  h->cap = cap;
  return true;
}

static bool hold_copy(Ref *r, Hold *h, const Tensor *x) {
  bool grew = hold_room(r, h, tensor_bytes(x));
  if (x->n) memcpy(h->data, x->data, tensor_bytes(x));
  h->t = *x;
  if (x->rank) memcpy(h->dim, x->dim, x->rank * sizeof *h->dim);
  h->t.dim = h->dim;
  h->t.data = h->data;
  return grew;
}

static bool hold_append(Ref *r, const Node *n, Hold *h, const Tensor *x, i64 done) {
  if (done) {
    bool same = h->t.rank == x->rank + 1 && h->t.dt == x->dt;
    if (!same || (x->rank && memcmp(h->dim + 1, x->dim, x->rank * sizeof *h->dim)))
      fail(r->c, ERR_unsupported, n->loc,
           "loop: the shape of a scan output differs between iterations");
  } else {
    h->t = (Tensor){.dt = x->dt, .rank = x->rank + 1, .dim = h->dim};
    if (x->rank) memcpy(h->dim + 1, x->dim, x->rank * sizeof *h->dim);
  }
  u64 bytes = tensor_bytes(x), at = (u64)done * bytes;
  bool grew = hold_room(r, h, at + bytes);
  if (bytes) memcpy(h->data + at, x->data, bytes);
  h->dim[0] = done + 1;
  h->t.n += x->n;
  h->t.data = h->data;
  return grew;
}

/* Type of a scan without iterations: axes that only the body determines are 0. */
static void hold_empty(Ref *r, Hold *h, const Type *t) {
  h->t = (Tensor){.dt = ref_dtype(r, t->dt), .rank = t->rank + 1, .dim = h->dim};
  h->dim[0] = 0;
  for (u32 i = 0; i < t->rank; i++)
    h->dim[1 + i] = ref_known(r, t->dim[i]) ? ref_dim(r, t->dim[i]) : 0;
  hold_room(r, h, 16);
  h->t.data = h->data;
}

/* An iteration costs as much as one stored element, so that folding also gives up on loops that
 * store nothing. */
static void charge(Ref *r, const Node *n) {
  r->spent += sizeof(i64);
  if (r->max_bytes && r->spent > r->max_bytes)
    fail(r->c, ERR_unsupported, n->loc,
         "constant folding budget: the loop has too many iterations");
}

/* State shared by the iterations of a loop. Carried values are double-buffered: one set is read
 * while the other is written. */
typedef struct LoopRun {
  const Node *n;
  const GraphRegion *b;
  u32 ncarried, nscan;
  Hold *carry[2], *scan;
  Tensor **cur; /* current carried values */
} LoopRun;

/* Runs one iteration; returns the condition. *mark moves if buffers grew. */
static bool iterate(Ref *r, LoopRun *run, i64 i, Mark *mark) {
  const GraphRegion *b = run->b;
  Hold *next = run->carry[i & 1];
  bool grew = false;
  ref_region(r, run->n->region[0]);
  const Tensor *go = ref_value(r, b->ret.at[0]);
  bool cond = tensor_get(go, 0).i != 0;
  for (u32 k = 0; k < run->ncarried; k++)
    grew |= hold_copy(r, &next[k], ref_value(r, b->ret.at[1 + k]));
  for (u32 k = 0; k < run->nscan; k++)
    grew |=
        hold_append(r, run->n, &run->scan[k], ref_value(r, b->ret.at[1 + run->ncarried + k]), i);
  for (u32 k = 0; k < run->ncarried; k++) run->cur[k] = &next[k].t;
  if (grew)
    *mark = arena_mark(r->a);
  else
    arena_rewind(r->a, *mark);
  return cond;
}

void ref_loop(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  LoopRun run = {.n = n, .b = &r->g->region.at[n->region[0]], .ncarried = n->nin - 2};
  run.nscan = n->nout - run.ncarried;
  for (u32 s = 0; s < 2; s++) run.carry[s] = NEWS(r->a, Hold, run.ncarried);
  run.scan = NEWS(r->a, Hold, run.nscan);
  run.cur = out;
  for (u32 k = 0; k < run.ncarried; k++) out[k] = in[2 + k];
  i64 trip = tensor_get(in[0], 0).i, i = 0;
  bool cond = tensor_get(in[1], 0).i != 0;
  Tensor *count = tensor_new(r->a, DT_i64, NULL, 0), *flag = tensor_new(r->a, DT_bool, NULL, 0);
  Mark mark = arena_mark(r->a);
  for (; i < trip && cond; i++) {
    charge(r, n);
    tensor_set(count, 0, (Scalar){.i = i});
    tensor_set(flag, 0, (Scalar){.i = cond});
    r->val[run.b->param.at[0]] = count;
    r->val[run.b->param.at[1]] = flag;
    for (u32 k = 0; k < run.ncarried; k++) r->val[run.b->param.at[2 + k]] = run.cur[k];
    cond = iterate(r, &run, i, &mark);
  }
  if (n->nsym) ref_set(r, n->sym[0], i);
  for (u32 k = 0; k < run.nscan; k++) {
    if (!i) hold_empty(r, &run.scan[k], graph_type(r->g, run.b->ret.at[1 + run.ncarried + k]));
    out[run.ncarried + k] = &run.scan[k].t;
  }
}
