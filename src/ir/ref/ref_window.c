/* ref_window.c: convolution and pooling.
 *
 * Both slide a window over the trailing (spatial) axes. For one row of the result along the last
 * axis, a Tap describes the contribution of one window position: where its operand row starts and
 * which results it reaches. Positions in the padding are skipped. The taps of a row are in
 * row-major order of the window and serve all channels. */
#include "ir/ref/ref.h"

typedef struct RefWindow {
  u32 rank; /* number of spatial axes, at least 1 */
  i64 in[MAX_RANK], out[MAX_RANK], size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK],
      lo[MAX_RANK];
} RefWindow;

typedef struct Tap {
  i64 x;    /* offset of the first operand element within the spatial part */
  i64 k;    /* position in the window, row-major */
  i64 from; /* first result of the row that it reaches */
  i64 n;    /* number of results */
} Tap;
typedef VEC(Tap) RefTaps;

/* Reads the attributes and computes the extents of the result. */
static void window_read(Ref *r, const Node *n, const i64 *in, const i64 *size, u32 rank,
                        RefWindow *w) {
  u32 count;
  const Dim *stride = node_list(n, AT_stride, &count),
            *dilation = node_list(n, AT_dilation, &count);
  const Dim *lo = node_list(n, AT_pad_lo, &count), *hi = node_list(n, AT_pad_hi, &count);
  w->rank = rank;
  for (u32 i = 0; i < rank; i++) {
    i64 span = (size[i] - 1) * dilation[i] + 1, room = in[i] + lo[i] + hi[i] - span;
    if (room < 0)
      REF_BAD(r, "window of %lld does not fit into extent %lld with pads %lld and %lld",
              (long long)span, (long long)in[i], (long long)lo[i], (long long)hi[i]);
    w->in[i] = in[i];
    w->size[i] = size[i];
    w->stride[i] = stride[i];
    w->dilation[i] = dilation[i];
    w->lo[i] = lo[i];
    w->out[i] = room / stride[i] + 1;
  }
}

/* Merges or adds axes without effect: pointwise windows see one long row, scalars a row of one. */
static void window_flatten(RefWindow *w) {
  bool point = true;
  for (u32 i = 0; i < w->rank; i++)
    point = point && w->size[i] == 1 && w->stride[i] == 1 && w->in[i] == w->out[i] && !w->lo[i];
  if (!point) return;
  i64 n = shape_product(w->in, w->rank);
  *w = (RefWindow){.rank = 1, .in = {n}, .out = {n}, .size = {1}, .stride = {1}, .dilation = {1}};
}

/* The results of a row that position k of the window reaches on the last axis. If none, *next is
 * the next position to try: between two strides a wide window sees only padding. */
static bool next_tap(const RefWindow *w, i64 k, Tap *t, i64 *next) {
  u32 i = w->rank - 1;
  i64 d = w->dilation[i], shift = k * d - w->lo[i], stride = w->stride[i];
  i64 from = shift < 0 ? (-shift + stride - 1) / stride : 0;
  i64 to = w->in[i] - 1 - shift < 0 ? 0 : (w->in[i] - 1 - shift) / stride + 1;
  if (to > w->out[i]) to = w->out[i];
  t->from = from;
  t->n = to - from;
  t->x = from * stride + shift;
  *next = k + 1;
  if (to > from) return true;
  if (from) *next = (w->lo[i] - (from - 1) * stride + d - 1) / d;
  return false;
}

/* Window positions on axis i that do not only read padding, for results o0 to o1. So a window much
 * larger than the operand costs no more than the operand. */
static void useful(const RefWindow *w, u32 i, i64 o0, i64 o1, i64 *k0, i64 *k1) {
  i64 d = w->dilation[i], first = w->lo[i] - o1 * w->stride[i];
  i64 end = w->in[i] + w->lo[i] - o0 * w->stride[i];
  *k0 = first <= 0 ? 0 : (first + d - 1) / d;
  *k1 = end <= 0 ? 0 : (end - 1) / d + 1;
  if (*k1 > w->size[i]) *k1 = w->size[i];
  if (*k1 < *k0) *k1 = *k0;
}

/* Taps of the result row at `row` (all spatial axes but the last). */
static void window_taps(Ref *r, const RefWindow *w, const i64 *row, RefTaps *taps) {
  u32 last = w->rank - 1;
  NdIter k = {.rank = last};
  i64 stride[MAX_RANK], kstride[MAX_RANK], k0[MAX_RANK], k1;
  shape_strides(w->in, w->rank, stride);
  shape_strides(w->size, w->rank, kstride);
  for (u32 i = 0; i < last; i++) {
    useful(w, i, row[i], row[i], &k0[i], &k1);
    k.dim[i] = k1 - k0[i];
  }
  useful(w, last, 0, w->out[last] - 1, &k0[last], &k1);
  taps->n = 0;
  if (!nditer_start(&k)) return;
  do {
    i64 x = 0;
    u64 pos = 0; /* may wrap for a window without weights, where it is not used */
    for (u32 i = 0; i < last; i++) {
      i64 at = k0[i] + k.at[i];
      pos += (u64)at * (u64)kstride[i];
      x += (row[i] * w->stride[i] + at * w->dilation[i] - w->lo[i]) * stride[i];
    }
    Tap t;
    for (i64 at = k0[last], next; at < k1; at = next) {
      if (!next_tap(w, at, &t, &next)) continue;
      t.x += x;
      t.k = (i64)(pos + (u64)at);
      *vec_push(r->tmp, taps) = t;
    }
  } while (nditer_next(&k));
}

/* x with inserted zeros. */
static const Tensor *spread_out(Ref *r, const Tensor *x, const i64 *by) {
  i64 dim[MAX_RANK], stride[MAX_RANK];
  NdIter k = {.rank = x->rank};
  u64 e = 0;
  for (u32 i = 0; i < x->rank; i++) {
    k.dim[i] = x->dim[i];
    dim[i] = i < 2 ? x->dim[i] : (x->dim[i] - 1) * by[i - 2] + 1;
  }
  Tensor *t = ref_new(r, x->dt, dim, x->rank);
  shape_strides(dim, x->rank, stride);
  if (!nditer_start(&k)) return t;
  do {
    i64 at = 0;
    for (u32 i = 0; i < x->rank; i++) at += k.at[i] * (i < 2 ? 1 : by[i - 2]) * stride[i];
    tensor_set(t, (u64)at, tensor_get(x, e++));
  } while (nditer_next(&k));
  return t;
}

void ref_conv(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Tensor *x = in[0], *wt = in[1];
  RefWindow w;
  i64 group = node_int(n, AT_group, 1), cin = wt->dim[1], m = wt->dim[0];
  if (x->dim[1] != cin * group || m % group)
    REF_BAD(r, "conv: x has %lld channels, w expects %lld in %lld groups", (long long)x->dim[1],
            (long long)cin, (long long)group);
  u32 ns;
  const Dim *dilate = node_list(n, AT_input_dilation, &ns);
  if (dilate) x = spread_out(r, x, dilate);
  window_read(r, n, x->dim + 2, wt->dim + 2, x->rank - 2, &w);
  i64 dim[MAX_RANK] = {x->dim[0], m};
  for (u32 i = 0; i < w.rank; i++) dim[2 + i] = w.out[i];
  Tensor *t = *out = ref_new(r, x->dt, dim, x->rank);
  window_flatten(&w);
  if (!t->n) return;
  const Loops *loops = acc_loops(t->dt);
  u8 *acc = acc_begin(r, t); /* zero */
  const u8 *xs = acc_read(r, x, false), *ws = acc_read(r, wt, false);
  i64 size = (i64)loops->size, plane = shape_product(w.in, w.rank);
  i64 oplane = shape_product(w.out, w.rank), kplane = shape_product(w.size, w.rank);
  i64 len = w.out[w.rank - 1], stride = w.stride[w.rank - 1];
  RefTaps taps = {0};
  NdIter row = {.rank = w.rank - 1};
  for (u32 i = 0; i < row.rank; i++) row.dim[i] = w.out[i];
  i64 at = 0;
  nditer_start(&row);
  do {
    window_taps(r, &w, row.at, &taps);
    for (i64 b = 0; b < x->dim[0]; b++) {
      for (i64 o = 0; o < m; o++) {
        u8 *to = acc + ((b * m + o) * oplane + at) * size;
        const u8 *xc = xs + (b * x->dim[1] + o / (m / group) * cin) * plane * size;
        const u8 *wc = ws + o * cin * kplane * size;
        for (i64 c = 0; c < cin; c++, xc += plane * size, wc += kplane * size)
          for (u32 i = 0; i < taps.n; i++) {
            const Tap *k = &taps.at[i];
            loops->mac(to + k->from * size, 1, xc + k->x * size, stride, wc + k->k * size, 0, k->n);
          }
      }
    }
    at += len;
  } while (nditer_next(&row));
  acc_finish(r, t, acc, false);
}

/* Allocates the result of a pool; leading axes stay. */
static Tensor *pool_new(Ref *r, const Node *n, const Tensor *x, DType dt, RefWindow *w, i64 *lead) {
  u32 ns;
  const Dim *size = node_list(n, AT_window, &ns);
  u32 rank = x->rank - ns;
  window_read(r, n, x->dim + rank, size, ns, w);
  i64 dim[MAX_RANK];
  for (u32 i = 0; i < x->rank; i++) dim[i] = i < rank ? x->dim[i] : w->out[i - rank];
  *lead = shape_product(dim, rank);
  Tensor *t = ref_new(r, dt, dim, x->rank);
  window_flatten(w);
  return t;
}

/* Calls fn for every tap of every row; `to` and `from` are element offsets of results and
 * operands. */
typedef void TapFn(void *user, i64 to, i64 from, const Tap *k, i64 stride, i64 base);
static void pool_walk(Ref *r, const RefWindow *w, i64 lead, TapFn *fn, void *user) {
  i64 plane = shape_product(w->in, w->rank), oplane = shape_product(w->out, w->rank);
  i64 stride = w->stride[w->rank - 1], at = 0;
  RefTaps taps = {0};
  NdIter row = {.rank = w->rank - 1};
  for (u32 i = 0; i < row.rank; i++) row.dim[i] = w->out[i];
  nditer_start(&row);
  do {
    window_taps(r, w, row.at, &taps);
    for (i64 b = 0; b < lead; b++)
      for (u32 i = 0; i < taps.n; i++) {
        const Tap *k = &taps.at[i];
        fn(user, b * oplane + at + k->from, b * plane + k->x, k, stride, b * plane);
      }
    at += w->out[w->rank - 1];
  } while (nditer_next(&row));
}

typedef struct WindowReduce {
  const Loops *loops;
  Op op;
  u8 *acc;
  const u8 *x;
} WindowReduce;

static void reduce_tap(void *user, i64 to, i64 from, const Tap *k, i64 stride, i64 base) {
  (void)base;
  const WindowReduce *f = user;
  i64 size = (i64)f->loops->size;
  f->loops->reduce(f->op, f->acc + to * size, 1, f->x + from * size, stride, k->n);
}

void ref_pool(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  RefWindow w;
  i64 lead;
  bool max = n->op == OP_pool_max;
  Tensor *t = *out = pool_new(r, n, in[0], in[0]->dt, &w, &lead);
  if (!t->n) return;
  WindowReduce f = {acc_loops(t->dt), op_reducer(n->op), acc_begin(r, t), acc_read(r, in[0], max)};
  if (max) acc_empty(t, f.acc, OP_max);
  pool_walk(r, &w, lead, reduce_tap, &f);
  acc_finish(r, t, f.acc, max);
}

typedef struct BestTap {
  const i64 *key;
  i64 *at; /* -1: no element yet */
} BestTap;

static void best_tap(void *user, i64 to, i64 from, const Tap *k, i64 stride, i64 base) {
  const BestTap *b = user;
  for (i64 i = 0; i < k->n; i++) {
    i64 here = from + i * stride, *at = &b->at[to + i];
    if (*at < 0 || b->key[here] > b->key[base + *at]) *at = here - base;
  }
}

void ref_pool_arg(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  RefWindow w;
  i64 lead;
  Tensor *t = *out = pool_new(r, n, in[0], DT_i64, &w, &lead);
  if (!t->n) return;
  BestTap b = {acc_keys(r, in[0]), ref_data(t)};
  for (u64 i = 0; i < t->n; i++) b.at[i] = -1;
  pool_walk(r, &w, lead, best_tap, &b);
  for (u64 i = 0; i < t->n; i++)
    if (b.at[i] < 0) b.at[i] = 0; /* a window entirely in the padding */
}
