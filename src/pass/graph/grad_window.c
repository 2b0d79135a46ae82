/* grad_window.c: gradients of convolutions and pools.
 *
 * In: a node and the gradient v of its result. Out: gradients of its operands, as convolutions,
 * contractions and pools, so that these use the normal kernel families.
 *
 *   y[o] = sum over k of x[o s + k d - lo] w[k]        (s stride, d dilation)
 *   dx[i] = sum over k of v'[i + lo - k d] w[k]        v': v with s - 1 zeros between neighbors
 *   dw[k] = sum over o of x[o s + k d - lo] v[o]
 *
 * So dx is a convolution of v' with the mirrored weights. dw is a convolution of x by v, with batch
 * and channels exchanged. If extents are unknown or channels grouped, each position k of w is
 * instead a contraction of v with the elements that this position has read: a matmul that sums over
 * batch and image.
 */
#include "ir/target.h"
#include "pass/graph/grad_internal.h"

#include <string.h>

/* x with `inner` zeros between neighbors along its last n axes, and padding lo and hi, which crops
 * if negative. Constant padding is left to the window operator: out_lo, out_hi. */
static Val stretched(Graph *g, Val x, u32 n, const i64 *inner, const Dim *lo, const Dim *hi,
                     const bool *less, i64 *out_lo, i64 *out_hi) {
  Type t = *graph_type(g, x);
  u32 lead = t.rank - n;
  Dim before[MAX_RANK] = {0}, pad_after[MAX_RANK] = {0}, start[MAX_RANK] = {0}, size[MAX_RANK];
  i64 mid[MAX_RANK] = {0};
  for (u32 i = 0; i < n; i++) {
    mid[lead + i] = inner[i];
    if (!dim_is_const(hi[i])) pad_after[lead + i] = hi[i];
  }
  x = mk_pad(g, x, mk_like(g, x, 0), before, pad_after, mid);
  t = *graph_type(g, x);
  if (t.rank) memcpy(size, t.dim, t.rank * sizeof *size);
  for (u32 i = 0; i < n; i++) {
    bool open = !dim_is_const(hi[i]);
    out_lo[i] = less[2 * i] ? 0 : lo[i];
    out_hi[i] = open || less[2 * i + 1] ? 0 : hi[i];
    if (less[2 * i]) start[lead + i] = lo[i];
    Dim cut = dim_add(g->dims, less[2 * i] ? lo[i] : 0, less[2 * i + 1] ? hi[i] : 0);
    size[lead + i] = dim_sub(g->dims, t.dim[lead + i], cut);
  }
  return mk_slice(g, x, start, size, NULL);
}

/* Absolute values of the padding, with a flag if it crops. */
typedef struct Pads {
  Dim lo[MAX_RANK], hi[MAX_RANK];
  bool less[2 * MAX_RANK];
} Pads;

static Dim unsigned_pad(i64 x, bool *less) {
  *less = x < 0;
  return x < 0 ? -x : x;
}

/* Padding of v such that a window of the same size and dilation with stride 1 has `want`
 * results. */
static Pads pads_back(Graph *g, const NodeWindow *s, const Type *tv, const Dim *want) {
  Pads p;
  Dims *ds = g->dims;
  for (u32 i = 0; i < s->n; i++) {
    i64 span = (s->size[i] - 1) * s->dilation[i];
    Dim o = tv->dim[tv->rank - s->n + i];
    p.lo[i] = unsigned_pad(span - s->lo[i], &p.less[2 * i]);
    /* want + lo - ((o - 1) stride + 1) */
    p.less[2 * i + 1] = false;
    if (dim_is_const(o) && dim_is_const(want[i]))
      p.hi[i] = unsigned_pad(want[i] + s->lo[i] - (o - 1) * s->stride[i] - 1, &p.less[2 * i + 1]);
    else
      p.hi[i] = dim_sub(ds, dim_addk(ds, want[i], s->lo[i] + s->stride[i] - 1),
                        dim_mul(ds, o, s->stride[i]));
  }
  return p;
}

/* ---- conv ---- */

static bool all_known(const Type *t) {
  bool known = true;
  for (u32 i = 0; i < t->rank; i++) known = known && dim_is_const(t->dim[i]);
  return known;
}

static Dim dilated_extent(Graph *g, const NodeWindow *s, u32 i, Dim x) {
  return s->input_dilation[i] == 1 ? x
                                   : dim_addk(g->dims, dim_mul(g->dims, x, s->input_dilation[i]),
                                              1 - s->input_dilation[i]);
}

/* Outputs that are `stride` apart, from r on: the window positions that reach them, and where these
 * read v. */
typedef struct Phase {
  i64 from, cells,
      places; /* first position, number of positions in steps of the stride; elements of x */
  Dim lo, hi; /* padding of v */
} Phase;

static Phase phase_of(const NodeWindow *s, u32 i, i64 r, i64 extent, i64 given, bool *less) {
  i64 step = s->stride[i], from = (r + s->lo[i]) % step, ahead = (r + s->lo[i]) / step;
  Phase p = {.from = from,
             .cells = (s->size[i] - from + step - 1) / step,
             .places = (extent - r + step - 1) / step};
  i64 lo = p.cells - 1 - ahead;
  p.lo = unsigned_pad(lo, &less[0]);
  p.hi = unsigned_pad(p.places + p.cells - 1 - lo - given, &less[1]);
  return p;
}

/* Gradient of x at the elements of phase r, zeros elsewhere; 0: all zeros. */
static Val phase_back(Graph *g, const NodeWindow *s, i64 group, Val x, Val w, Val v, i64 r) {
  Type tx = *graph_type(g, x), tw = *graph_type(g, w), tv = *graph_type(g, v);
  Dim start[MAX_RANK] = {0}, size[MAX_RANK] = {tw.dim[0], tw.dim[1]}, front[MAX_RANK] = {0},
      pad_after[MAX_RANK] = {0};
  i64 step[MAX_RANK] = {1, 1}, gaps[MAX_RANK] = {0}, none[MAX_RANK] = {0}, ones[MAX_RANK],
      lo[MAX_RANK], hi[MAX_RANK];
  Pads p;
  for (u32 i = s->n; i-- > 0; r /= s->stride[i]) {
    i64 at = r % s->stride[i];
    Phase f = phase_of(s, i, at, tx.dim[2 + i], tv.dim[2 + i], &p.less[2 * i]);
    if (f.cells <= 0 || f.places <= 0) return 0;
    for (u32 k = 0; k < 2; k++) /* no window reaches it */
      if (p.less[2 * i + k] && (k ? f.hi : f.lo) >= tv.dim[2 + i]) return 0;
    p.lo[i] = f.lo;
    p.hi[i] = f.hi;
    ones[i] = 1;
    start[2 + i] = f.from;
    size[2 + i] = f.cells;
    step[2 + i] = s->stride[i];
    gaps[2 + i] = s->stride[i] - 1;
    front[2 + i] = at;
    pad_after[2 + i] = tx.dim[2 + i] - at - (f.places - 1) * s->stride[i] - 1;
  }
  w = mk_mirror(g, mk_slice(g, w, start, size, step), group);
  v = stretched(g, v, s->n, none, p.lo, p.hi, p.less, lo, hi);
  Val y = mk_conv(g, v, w, group, ones, ones, lo, hi);
  return mk_pad(g, y, mk_like(g, y, 0), front, pad_after, gaps);
}

/* Gradient of x without dilating v, which would multiply mostly zeros. Elements of x that are a
 * stride apart use the same window positions; they are a convolution of v with these. Returns 0 if
 * no window reads x. */
static Val input_by_phases(Graph *g, const NodeWindow *s, i64 group, Val x, Val w, Val v) {
  i64 phases = 1;
  Val all = 0;
  for (u32 i = 0; i < s->n; i++) phases *= s->stride[i];
  for (i64 r = 0; r < phases; r++) {
    Val y = phase_back(g, s, group, x, w, v, r);
    if (y) all = all ? mk_add(g, all, y) : y;
  }
  return all;
}

/* Each phase is a kernel, so their number is limited. */
enum { MAX_PHASES = 8 };

static bool has_phases(Graph *g, const NodeWindow *s, Val x, Val v) {
  i64 phases = 1;
  bool known = all_known(graph_type(g, x)) && all_known(graph_type(g, v));
  for (u32 i = 0; i < s->n; i++) {
    known = known && s->dilation[i] == 1 && s->input_dilation[i] == 1 && s->lo[i] >= 0;
    phases = phases > MAX_PHASES ? phases : phases * s->stride[i];
  }
  return known && phases > 1 && phases <= MAX_PHASES;
}

static Val input_back(Graph *g, const NodeWindow *s, i64 group, Val x, Val w, Val v) {
  Val by_phase = has_phases(g, s, x, v) ? input_by_phases(g, s, group, x, w, v) : 0;
  if (by_phase) return by_phase;
  Type tx = *graph_type(g, x), tv = *graph_type(g, v);
  Dim want[MAX_RANK];
  i64 inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
  for (u32 i = 0; i < s->n; i++) {
    want[i] = dilated_extent(g, s, i, tx.dim[2 + i]);
    inner[i] = s->stride[i] - 1;
  }
  Pads p = pads_back(g, s, &tv, want);
  v = stretched(g, v, s->n, inner, p.lo, p.hi, p.less, lo, hi);
  return mk_conv(g, v, mk_mirror(g, w, group), group, s->input_dilation, s->dilation, lo, hi);
}

/* Channels in groups: [N, G, C/G, ..]. */
static Val grouped(Graph *g, Val x, i64 group) {
  Type t = *graph_type(g, x);
  Dim dim[MAX_RANK + 1] = {t.dim[0], group, t.dim[1] / group};
  for (u32 i = 2; i < t.rank; i++) dim[1 + i] = t.dim[i];
  return mk_reshape(g, x, dim, t.rank + 1);
}

/* Elements that position `at` of the window reads: [N, C, ..], in the shape of v. x is padded. */
static Val cell_of(Graph *g, const NodeWindow *s, Val x, const Type *tv, const i64 *at) {
  Type t = *graph_type(g, x);
  Dim start[MAX_RANK] = {0}, size[MAX_RANK] = {t.dim[0], t.dim[1]};
  i64 step[MAX_RANK] = {1, 1};
  for (u32 i = 0; i < s->n; i++) {
    start[2 + i] = at[i] * s->dilation[i];
    step[2 + i] = s->stride[i];
    size[2 + i] = tv->dim[2 + i];
  }
  return mk_slice(g, x, start, size, step);
}

/* All positions of the window, in order; returns their number in *n. */
static Val *all_cells(Graph *g, const NodeWindow *s, Val x, Val v, u32 *n) {
  Type tv = *graph_type(g, v);
  Dim lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  i64 inner[MAX_RANK] = {0}, at[MAX_RANK] = {0}, count = 1;
  for (u32 i = 0; i < s->n; i++) {
    lo[2 + i] = s->lo[i];
    hi[2 + i] = s->hi[i];
    inner[2 + i] = s->input_dilation[i] - 1;
    count *= s->size[i];
  }
  x = mk_pad(g, x, mk_like(g, x, 0), lo, hi, inner);
  Val *cell = NEWS(&g->c->work, Val, (size_t)count);
  for (i64 k = 0; k < count; k++) {
    i64 rest = k;
    for (u32 i = s->n; i-- > 0; rest /= s->size[i]) at[i] = rest % s->size[i];
    cell[k] = cell_of(g, s, x, &tv, at);
  }
  *n = (u32)count;
  return cell;
}

static const char *letters(u32 n, char *axes) {
  for (u32 i = 0; i < n; i++) axes[i] = (char)('p' + i);
  axes[n] = 0;
  return axes;
}

/* Weight gradient position by position: [M, C/group] each. */
static Val weights_by_cells(Graph *g, const NodeWindow *s, i64 group, Val x, Val v,
                            const Type *tw) {
  u32 n;
  char axes[MAX_RANK];
  Val *cell = all_cells(g, s, x, v, &n);
  letters(s->n, axes);
  Str spec = group == 1 ? str_fmt(g->c, "nm%s,nc%s->mc", axes, axes)
                        : str_fmt(g->c, "ngm%s,ngc%s->gmc", axes, axes);
  Dim one[3] = {tw->dim[0], tw->dim[1], 1};
  if (group > 1) v = grouped(g, v, group);
  for (u32 k = 0; k < n; k++) {
    Val y = group > 1 ? grouped(g, cell[k], group) : cell[k];
    cell[k] = mk_reshape(g, mk_contract(g, v, y, str_text(g->c, spec)), one, 3);
  }
  return mk_reshape(g, mk_concat(g, cell, n, 2), tw->dim, tw->rank);
}

/* Weight gradient as one convolution whose window is v: batch and channels are exchanged, so that
 * it sums over the batch, has the dilation as stride and the stride as dilation. */
static Val weights_by_window(Graph *g, const NodeWindow *s, Val x, Val v, const Type *tw) {
  Type tx = *graph_type(g, x), tv = *graph_type(g, v);
  i64 perm[MAX_RANK] = {1, 0}, inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
  Pads p;
  for (u32 i = 0; i < s->n; i++) {
    perm[2 + i] = 2 + i;
    inner[i] = s->input_dilation[i] - 1;
    i64 reach = (tv.dim[2 + i] - 1) * s->stride[i] + (s->size[i] - 1) * s->dilation[i] + 1;
    p.lo[i] = unsigned_pad(s->lo[i], &p.less[2 * i]);
    p.hi[i] =
        unsigned_pad(reach - s->lo[i] - dilated_extent(g, s, i, tx.dim[2 + i]), &p.less[2 * i + 1]);
  }
  x = stretched(g, mk_transpose(g, x, perm), s->n, inner, p.lo, p.hi, p.less, lo, hi);
  Val y = mk_conv(g, x, mk_transpose(g, v, perm), 1, s->dilation, s->stride, lo, hi);
  return mk_reshape(g, mk_transpose(g, y, perm), tw->dim, tw->rank);
}

/* One convolution if the window has several positions; a single one is a matmul. Vectors run along
 * output channels there, and along channels of x in the matmul. */
static Val weights_back(Graph *g, const NodeWindow *s, i64 group, Val x, Val v, const Type *tw) {
  i64 cells = 1;
  for (u32 i = 0; i < s->n; i++) cells *= s->size[i];
  bool wide = tw->dim[0] >= LIMIT_grad_channels || tw->dim[1] <= LIMIT_grad_channels;
  bool window =
      group == 1 && cells > 1 && wide && all_known(graph_type(g, x)) && all_known(graph_type(g, v));
  return window ? weights_by_window(g, s, x, v, tw) : weights_by_cells(g, s, group, x, v, tw);
}

void back_conv(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type tw = *graph_type(g, n->in[1]);
  i64 group = node_int(n, AT_group, 1);
  NodeWindow s = node_window(g, n);
  if (s.n + 3 > MAX_RANK) grad_refuse(g, n, "its operand has too many axes");
  if (grad_needed(d, n->in[0]))
    grad_accumulate(d, n->in[0], input_back(g, &s, group, n->in[0], n->in[1], v));
  if (grad_needed(d, n->in[1]))
    grad_accumulate(d, n->in[1], weights_back(g, &s, group, n->in[0], v, &tw));
}

/* ---- pools ---- */

/* Do windows tile the operand, without gaps and padding? */
static bool tiles(const NodeWindow *s) {
  bool t = true;
  for (u32 i = 0; i < s->n; i++)
    t = t && s->stride[i] == s->size[i] && s->dilation[i] == 1 && !s->lo[i] && !s->hi[i];
  return t;
}

/* Repeats each element of the last n axes over its window, then fills with `fill` up to the extents
 * of t. */
static Val repeated(Graph *g, const NodeWindow *s, Val v, const Type *t, double fill) {
  Type tv = *graph_type(g, v);
  u32 lead = tv.rank - s->n, k = lead;
  Dim single[2 * MAX_RANK], wide[2 * MAX_RANK], all[MAX_RANK], none[MAX_RANK] = {0},
                                                               hi[MAX_RANK] = {0};
  for (u32 i = 0; i < lead; i++) single[i] = wide[i] = all[i] = tv.dim[i];
  for (u32 i = 0; i < s->n; i++) {
    single[k] = wide[k] = tv.dim[lead + i];
    single[k + 1] = 1;
    wide[k + 1] = s->size[i];
    k += 2;
    all[lead + i] = dim_mul(g->dims, tv.dim[lead + i], s->size[i]);
    hi[lead + i] = dim_sub(g->dims, t->dim[lead + i], all[lead + i]);
  }
  v = mk_broadcast(g, mk_reshape(g, v, single, k), wide, k);
  Val number = mk_like(g, v, fill);
  return mk_pad(g, mk_reshape(g, v, all, tv.rank), number, none, hi, NULL);
}

static bool may_repeat(const NodeWindow *s, u32 rank) {
  return tiles(s) && rank + s->n <= MAX_RANK;
}

void back_pool_sum(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), tv = *graph_type(g, v);
  NodeWindow s = node_window(g, n);
  if (may_repeat(&s, t.rank)) {
    grad_accumulate(d, n->in[0], repeated(g, &s, v, &t, 0));
    return;
  }
  i64 inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK], ones[MAX_RANK];
  for (u32 i = 0; i < s.n; i++) {
    inner[i] = s.stride[i] - 1;
    ones[i] = 1;
  }
  Pads p = pads_back(g, &s, &tv, t.dim + (t.rank - s.n));
  v = stretched(g, v, s.n, inner, p.lo, p.hi, p.less, lo, hi);
  grad_accumulate(d, n->in[0], mk_pool(g, OP_pool_sum, v, s.n, s.size, ones, s.dilation, lo, hi));
}

/* Numbers of the positions of tiling windows, in the type of v, from their count down to 1: [..,
 * extents of t]; 1 outside of windows too. */
static Val numbers(Graph *g, const NodeWindow *s, Val v, const Type *t) {
  Type tv = *graph_type(g, v);
  Dim count = 1, single[2 * MAX_RANK], wide[2 * MAX_RANK], all[MAX_RANK], hi[MAX_RANK];
  Dim none[MAX_RANK] = {0};
  for (u32 i = 0; i < s->n; i++) {
    Dim places = tv.dim[tv.rank - s->n + i];
    count *= s->size[i];
    single[2 * i] = 1;
    wide[2 * i] = places;
    single[2 * i + 1] = wide[2 * i + 1] = s->size[i];
    all[i] = dim_mul(g->dims, places, s->size[i]);
    hi[i] = dim_sub(g->dims, t->dim[t->rank - s->n + i], all[i]);
  }
  Val cell = mk_iota(g, graph_type(g, v)->dt, &count, 1, 0);
  cell = mk_sub(g, mk_like(g, v, (double)count), cell);
  cell = mk_broadcast(g, mk_reshape(g, cell, single, 2 * s->n), wide, 2 * s->n);
  Val one = mk_like(g, v, 1);
  return mk_pad(g, mk_reshape(g, cell, all, s->n), one, none, hi, NULL);
}

/* Marks the first maximal element of every window; windows do not overlap. Maximal elements get a
 * number that falls with the position, and the largest number wins. */
static Val first_of_largest(Graph *g, const NodeWindow *s, Val x, Val y, Val v, const Type *t) {
  Val number = numbers(g, s, v, t), zero = mk_like(g, v, 0);
  Val mark = mk_select(g, mk_eq(g, x, repeated(g, s, y, t, 0)), number, zero);
  Val best = mk_pool(g, OP_pool_max, mark, s->n, s->size, s->stride, s->dilation, s->lo, s->hi);
  return mk_eq(g, number, repeated(g, s, best, t, 0));
}

/* Passes the gradient to the first maximum of each window. */
void back_pool_max(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), tv = *graph_type(g, v);
  NodeWindow s = node_window(g, n);
  u32 lead = t.rank - s.n;
  if (may_repeat(&s, t.rank)) {
    Val hit = first_of_largest(g, &s, n->in[0], n->out[0], v, &t);
    Val zero = mk_like(g, v, 0);
    grad_accumulate(d, n->in[0], mk_select(g, hit, repeated(g, &s, v, &t, 0), zero));
    return;
  }
  Val from = mk_pool(g, OP_pool_argmax, n->in[0], s.n, s.size, s.stride, s.dilation, s.lo, s.hi);
  Dim flat[MAX_RANK + 1], wide[MAX_RANK + 1];
  for (u32 i = 0; i < lead; i++) flat[i] = wide[i] = t.dim[i];
  flat[lead] = dim_product(g->dims, tv.dim + lead, s.n);
  wide[lead] = dim_product(g->dims, t.dim + lead, s.n);
  Val zero = mk_broadcast(g, mk_like(g, v, 0), wide, lead + 1);
  Val values = mk_reshape(g, v, flat, lead + 1);
  Val sum = mk_scatter_elems(g, zero, mk_reshape(g, from, flat, lead + 1), values, lead, "add");
  grad_accumulate(d, n->in[0], mk_reshape(g, sum, t.dim, t.rank));
}
