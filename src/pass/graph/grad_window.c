/* grad_window.c: derivatives of convolutions and pools.
 *
 * In: a node and what its result got, v. Out: what its operands get, as convolutions, contractions
 * and pools again, which take the families of kernels that those have.
 *
 *   y[o] = sum over k of x[o s + k d - lo] w[k]        (s stride, d dilation)
 *   dx[i] = sum over k of v'[i + lo - k d] w[k]        v': v with s - 1 zeros between neighbours
 *   dw[k] = sum over o of x[o s + k d - lo] v[o]
 *
 * so x gets a convolution of v' with the mirrored weights, and w one of x with v, in which batch
 * and channels have changed places and stride and dilation too. Where that would need a batch that
 * is not known, or the window has one cell, each cell of w is a contraction of its own.
 */
#include "pass/graph/grad_own.h"

#include <string.h>

typedef struct Glide {
  u32 n; /* axes that the window slides over */
  i64 size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
  i64 spread[MAX_RANK]; /* conv: input_dilation */
} Glide;

static Glide read_slide(const Node *n, const Dim *size) {
  Glide s = {0};
  const Dim *stride = node_list(n, AT_stride, &s.n), *dil = node_list(n, AT_dilation, &s.n);
  const Dim *lo = node_list(n, AT_pad_lo, &s.n), *hi = node_list(n, AT_pad_hi, &s.n);
  u32 some;
  const Dim *spread = node_list(n, AT_input_dilation, &some);
  for (u32 i = 0; i < s.n; i++) {
    s.size[i] = size[i];
    s.stride[i] = stride[i];
    s.dilation[i] = dil[i];
    s.lo[i] = lo[i];
    s.hi[i] = hi[i];
    s.spread[i] = spread ? spread[i] : 1;
  }
  return s;
}

/* x with `inner` zeros between neighbours along its last n axes, lo in front and hi behind, where a
 * negative number cuts off. What a window op can pad by itself, a number, is left to it: out_lo,
 * out_hi. */
static Val stretched(Graph *g, Val x, u32 n, const i64 *inner, const Dim *lo, const Dim *hi,
                     const bool *less, i64 *out_lo, i64 *out_hi) {
  Type t = *graph_type(g, x);
  u32 lead = t.rank - n;
  Dim before[MAX_RANK] = {0}, behind[MAX_RANK] = {0}, start[MAX_RANK] = {0}, size[MAX_RANK];
  i64 mid[MAX_RANK] = {0};
  for (u32 i = 0; i < n; i++) {
    mid[lead + i] = inner[i];
    if (!dim_is_const(hi[i])) behind[lead + i] = hi[i];
  }
  x = mk_pad(g, x, mk_like(g, x, 0), before, behind, mid);
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

/* Pads that may be negative, as numbers without a sign and whether they cut. */
typedef struct Pads {
  Dim lo[MAX_RANK], hi[MAX_RANK];
  bool less[2 * MAX_RANK];
} Pads;

static Dim unsigned_pad(i64 x, bool *less) {
  *less = x < 0;
  return x < 0 ? -x : x;
}

/* Of v, so that a window of the same size and dilation that moves by 1 has `want` results: one for
 * each place of the operand with zeros between. */
static Pads pads_back(Graph *g, const Glide *s, const Type *tv, const Dim *want) {
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

static Dim spread_extent(Graph *g, const Glide *s, u32 i, Dim x) {
  return s->spread[i] == 1 ? x
                           : dim_addk(g->dims, dim_mul(g->dims, x, s->spread[i]), 1 - s->spread[i]);
}

static Val input_back(Graph *g, const Glide *s, i64 group, Val x, Val w, Val v) {
  Type tx = *graph_type(g, x), tv = *graph_type(g, v);
  Dim want[MAX_RANK];
  i64 inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
  for (u32 i = 0; i < s->n; i++) {
    want[i] = spread_extent(g, s, i, tx.dim[2 + i]);
    inner[i] = s->stride[i] - 1;
  }
  Pads p = pads_back(g, s, &tv, want);
  v = stretched(g, v, s->n, inner, p.lo, p.hi, p.less, lo, hi);
  return mk_conv(g, v, mk_mirror(g, w, group), group, s->spread, s->dilation, lo, hi);
}

/* Channels in groups: [N, G, C/G, ..]. */
static Val grouped(Graph *g, Val x, i64 group) {
  Type t = *graph_type(g, x);
  Dim dim[MAX_RANK + 1] = {t.dim[0], group, t.dim[1] / group};
  for (u32 i = 2; i < t.rank; i++) dim[1 + i] = t.dim[i];
  return mk_reshape(g, x, dim, t.rank + 1);
}

/* [N, G C, ..] as [C, G N, ..] */
static Val batch_to_channels(Graph *g, Val x, i64 group) {
  Type t = *graph_type(g, x);
  Dim dim[MAX_RANK] = {t.dim[1] / group, dim_mul(g->dims, group, t.dim[0])};
  i64 perm[MAX_RANK + 1] = {2, 1, 0};
  for (u32 i = 2; i < t.rank; i++) {
    dim[i] = t.dim[i];
    perm[1 + i] = 1 + i;
  }
  x = mk_transpose(g, grouped(g, x, group), perm);
  return mk_reshape(g, x, dim, t.rank);
}

static Val swapped(Graph *g, Val x) {
  i64 perm[MAX_RANK] = {1, 0};
  for (u32 i = 2; i < MAX_RANK; i++) perm[i] = i;
  return mk_transpose(g, x, perm);
}

/* A convolution of x with v. All extents are known. */
static Val weights_by_conv(Graph *g, const Glide *s, i64 group, Val x, Val v) {
  Type tx = *graph_type(g, x), tv = *graph_type(g, v);
  Pads p;
  i64 inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
  for (u32 i = 0; i < s->n; i++) {
    i64 reach = (s->size[i] - 1) * s->dilation[i] + (tv.dim[2 + i] - 1) * s->stride[i] + 1;
    i64 have = spread_extent(g, s, i, tx.dim[2 + i]) + s->lo[i];
    p.lo[i] = s->lo[i];
    p.less[2 * i] = false;
    p.hi[i] = unsigned_pad(reach - have, &p.less[2 * i + 1]);
    inner[i] = s->spread[i] - 1;
  }
  x = stretched(g, batch_to_channels(g, x, group), s->n, inner, p.lo, p.hi, p.less, lo, hi);
  return swapped(g, mk_conv(g, x, swapped(g, v), group, s->dilation, s->stride, lo, hi));
}

/* Of the cell `at` of the window: [M, C/group]. x has its padding. */
static Val one_cell(Graph *g, const Glide *s, i64 group, Val x, Val v, const i64 *at) {
  Type tx = *graph_type(g, x), tv = *graph_type(g, v);
  Dim start[MAX_RANK] = {0}, size[MAX_RANK] = {tx.dim[0], tx.dim[1]};
  i64 step[MAX_RANK] = {1, 1};
  char axes[MAX_RANK] = "";
  for (u32 i = 0; i < s->n; i++) {
    start[2 + i] = at[i] * s->dilation[i];
    step[2 + i] = s->stride[i];
    size[2 + i] = tv.dim[2 + i];
    axes[i] = (char)('p' + i);
  }
  x = mk_slice(g, x, start, size, step);
  bool one = group == 1;
  Str spec = one ? str_fmt(g->c, "nm%s,nc%s->mc", axes, axes)
                 : str_fmt(g->c, "ngm%s,ngc%s->gmc", axes, axes);
  Val r = mk_contract(g, one ? v : grouped(g, v, group), one ? x : grouped(g, x, group),
                      str_text(g->c, spec));
  Dim two[2] = {tv.dim[1], tx.dim[1] / group};
  return mk_reshape(g, r, two, 2);
}

/* All cells side by side: [M, C/group, k..]. */
static Val weights_by_cells(Graph *g, const Glide *s, i64 group, Val x, Val v, const Type *tw) {
  Dim lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  i64 inner[MAX_RANK] = {0}, at[MAX_RANK] = {0}, cells = 1;
  for (u32 i = 0; i < s->n; i++) {
    lo[2 + i] = s->lo[i];
    hi[2 + i] = s->hi[i];
    inner[2 + i] = s->spread[i] - 1;
    cells *= s->size[i];
  }
  x = mk_pad(g, x, mk_like(g, x, 0), lo, hi, inner);
  Val *part = NEWS(&g->c->work, Val, (size_t)cells);
  for (i64 k = 0; k < cells; k++) {
    i64 rest = k;
    for (u32 i = s->n; i-- > 0; rest /= s->size[i]) at[i] = rest % s->size[i];
    part[k] = mk_unsqueeze(g, one_cell(g, s, group, x, v, at), 2);
  }
  return mk_reshape(g, mk_concat(g, part, (u32)cells, 2), tw->dim, tw->rank);
}

void back_conv(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type tx = *graph_type(g, n->in[0]), tw = *graph_type(g, n->in[1]);
  i64 group = node_int(n, AT_group, 1);
  Glide s = read_slide(n, tw.dim + 2);
  if (s.n + 3 > MAX_RANK) grad_refuse(g, n, "too many axes");
  bool known = type_is_static(&tx) && dim_is_const(tx.dim[0]), many = false;
  for (u32 i = 0; i < s.n; i++) many = many || s.size[i] > 1;
  if (grad_wants(d, n->in[0]))
    grad_give(d, n->in[0], input_back(g, &s, group, n->in[0], n->in[1], v));
  if (grad_wants(d, n->in[1]))
    grad_give(d, n->in[1],
              known && many ? weights_by_conv(g, &s, group, n->in[0], v)
                            : weights_by_cells(g, &s, group, n->in[0], v, &tw));
}

/* ---- pools ---- */

/* Do windows lie side by side, without gaps and padding? */
static bool tiles(const Glide *s) {
  bool t = true;
  for (u32 i = 0; i < s->n; i++)
    t = t && s->stride[i] == s->size[i] && s->dilation[i] == 1 && !s->lo[i] && !s->hi[i];
  return t;
}

/* Each element of the last n axes as often as the window is wide, then `fill` up to the extents of
 * t. */
static Val repeated(Graph *g, const Glide *s, Val v, const Type *t, double fill) {
  Type tv = *graph_type(g, v);
  u32 lead = tv.rank - s->n, k = lead;
  Dim apart[2 * MAX_RANK], wide[2 * MAX_RANK], all[MAX_RANK], none[MAX_RANK] = {0},
                                                              hi[MAX_RANK] = {0};
  for (u32 i = 0; i < lead; i++) apart[i] = wide[i] = all[i] = tv.dim[i];
  for (u32 i = 0; i < s->n; i++) {
    apart[k] = wide[k] = tv.dim[lead + i];
    apart[k + 1] = 1;
    wide[k + 1] = s->size[i];
    k += 2;
    all[lead + i] = dim_mul(g->dims, tv.dim[lead + i], s->size[i]);
    hi[lead + i] = dim_sub(g->dims, t->dim[lead + i], all[lead + i]);
  }
  v = mk_broadcast(g, mk_reshape(g, v, apart, k), wide, k);
  return mk_pad(g, mk_reshape(g, v, all, tv.rank), mk_like(g, v, fill), none, hi, NULL);
}

static bool may_repeat(const Glide *s, u32 rank) {
  return tiles(s) && rank + s->n <= MAX_RANK;
}

static Glide read_pool(const Node *n) {
  u32 c;
  return read_slide(n, node_list(n, AT_window, &c));
}

void back_pool_sum(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), tv = *graph_type(g, v);
  Glide s = read_pool(n);
  if (may_repeat(&s, t.rank)) {
    grad_give(d, n->in[0], repeated(g, &s, v, &t, 0));
    return;
  }
  i64 inner[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK], ones[MAX_RANK];
  for (u32 i = 0; i < s.n; i++) {
    inner[i] = s.stride[i] - 1;
    ones[i] = 1;
  }
  Pads p = pads_back(g, &s, &tv, t.dim + (t.rank - s.n));
  v = stretched(g, v, s.n, inner, p.lo, p.hi, p.less, lo, hi);
  grad_give(d, n->in[0], mk_pool(g, OP_pool_sum, v, s.n, s.size, ones, s.dilation, lo, hi));
}

/* The row-major number of each element among the last n axes of t. */
static Val numbers(Graph *g, const Type *t, u32 n) {
  Dim count = dim_product(g->dims, t->dim + (t->rank - n), n);
  return mk_reshape(g, mk_iota(g, DT_i64, &count, 1, 0), t->dim + (t->rank - n), n);
}

/* To the first of the largest in each window. */
void back_pool_max(Grad *d, const Node *n, Val v) {
  Graph *g = d->g;
  Type t = *graph_type(g, n->in[0]), tv = *graph_type(g, v);
  Glide s = read_pool(n);
  u32 lead = t.rank - s.n;
  Val from = mk_pool(g, OP_pool_argmax, n->in[0], s.n, s.size, s.stride, s.dilation, s.lo, s.hi);
  if (may_repeat(&s, t.rank)) {
    Val hit = mk_map2(g, OP_eq, repeated(g, &s, from, &t, -1), numbers(g, &t, s.n));
    grad_give(d, n->in[0], mk_select(g, hit, repeated(g, &s, v, &t, 0), mk_like(g, v, 0)));
    return;
  }
  Dim flat[MAX_RANK + 1], wide[MAX_RANK + 1];
  for (u32 i = 0; i < lead; i++) flat[i] = wide[i] = t.dim[i];
  flat[lead] = dim_product(g->dims, tv.dim + lead, s.n);
  wide[lead] = dim_product(g->dims, t.dim + lead, s.n);
  Val zero = mk_broadcast(g, mk_like(g, v, 0), wide, lead + 1);
  Val sum = mk_scatter_elems(g, zero, mk_reshape(g, from, flat, lead + 1),
                             mk_reshape(g, v, flat, lead + 1), lead, "add");
  grad_give(d, n->in[0], mk_reshape(g, sum, t.dim, t.rank));
}
