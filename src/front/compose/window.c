/* window.c: convolutions, pools and their padding. See compose.h.
 *
 * Padding that depends on a symbolic extent becomes a pad node before the window op. A transposed
 * convolution is a convolution of the dilated operand with the mirrored kernel, cropped.
 */
#include "front/compose/compose.h"

i64 window_span(const Window *w, u32 i) {
  return (w->size[i] - 1) * w->dilation[i] + 1;
}

void window_same(Graph *g, Window *w, const Dim *in, bool upper) {
  for (u32 i = 0; i < w->n; i++) {
    i64 s = w->stride[i];
    Dim total = window_span(w, i) - 1;
    if (s > 1) {
      Dim need = dim_mul(g->dims, dim_div(g->dims, dim_addk(g->dims, in[i], s - 1), s), s);
      Dim have = dim_addk(g->dims, in[i], s);
      need = dim_addk(g->dims, need, window_span(w, i));
      if (window_span(w, i) < s) need = dim_max(g->dims, need, have);
      total = dim_sub(g->dims, need, have);
    }
    Dim half = dim_div(g->dims, total, 2), rest = dim_sub(g->dims, total, half);
    w->lo[i] = upper ? half : rest;
    w->hi[i] = upper ? rest : half;
  }
}

void window_ceil(Graph *g, Window *w, const Dim *in) {
  for (u32 i = 0; i < w->n; i++) {
    i64 s = w->stride[i], k = window_span(w, i);
    if (s == 1 && dim_is_const(w->hi[i]) && w->hi[i] < k) continue;
    Dim start = dim_add(g->dims, in[i], w->lo[i]), all = dim_add(g->dims, start, w->hi[i]);
    Dim most = dim_div(g->dims, dim_addk(g->dims, start, s - 1), s);
    Dim out = dim_addk(g->dims, dim_div(g->dims, dim_addk(g->dims, all, s - 1 - k), s), 1);
    out = dim_min(g->dims, out, most);
    Dim need = dim_addk(g->dims, dim_mul(g->dims, out, s), k - s);
    w->hi[i] = dim_sub(g->dims, dim_max(g->dims, need, start), start);
  }
}

bool window_is_fixed(const Window *w) {
  for (u32 i = 0; i < w->n; i++)
    if (!dim_is_const(w->lo[i]) || !dim_is_const(w->hi[i])) return false;
  return true;
}

/* Replaces the padding of w by a pad node, for extents known only at run time. */
static Val pad_before(Graph *g, Val x, Window *w, double fill) {
  Dim lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  for (u32 i = 0; i < w->n; i++) {
    lo[2 + i] = w->lo[i];
    hi[2 + i] = w->hi[i];
    w->lo[i] = w->hi[i] = 0;
  }
  return mk_pad(g, x, mk_like(g, x, fill), lo, hi, NULL);
}

Val window_pool(Graph *g, Op op, Val x, Window w, double fill) {
  if (!window_is_fixed(&w)) x = pad_before(g, x, &w, fill);
  return mk_pool(g, op, x, w.n, w.size, w.stride, w.dilation, w.lo, w.hi);
}

Val window_conv(Graph *g, Val x, Val weights, i64 group, Window w) {
  if (!window_is_fixed(&w)) x = pad_before(g, x, &w, 0);
  return mk_conv(g, x, weights, group, w.stride, w.dilation, w.lo, w.hi);
}

Val compose_bias(Graph *g, Val y, Val bias) {
  if (graph_type(g, bias)->rank != 1)
    fail(g->c, ERR_input, g->loc, "the bias has rank %u, expected 1", graph_type(g, bias)->rank);
  Dim have = val_dim(g, bias, 0), want = val_dim(g, y, 1);
  if (dim_is_const(have) && dim_is_const(want) && have != want)
    fail(g->c, ERR_input, g->loc, "the bias has %lld elements, expected %lld, one for each channel",
         (long long)have, (long long)want);
  return mk_add(g, y, mk_expand_tail(g, bias, graph_type(g, y)->rank - 2));
}

Val window_conv_transpose(Graph *g, Val x, Val weights, i64 group, const Window *w,
                          const i64 *cut_lo, const i64 *cut_hi) {
  i64 lo[MAX_RANK], hi[MAX_RANK], ones[MAX_RANK], spread[MAX_RANK] = {0};
  Dim none[MAX_RANK] = {0}, start[MAX_RANK] = {0}, size[MAX_RANK];
  bool crops = false;
  for (u32 i = 0; i < w->n; i++) {
    lo[i] = window_span(w, i) - 1 - cut_lo[i];
    hi[i] = window_span(w, i) - 1 - cut_hi[i];
    crops = crops || lo[i] < 0 || hi[i] < 0;
    start[2 + i] = lo[i] < 0 ? -lo[i] : 0;
    size[2 + i] = start[2 + i] + (hi[i] < 0 ? -hi[i] : 0); /* so far the number of dropped cells */
    lo[i] = lo[i] < 0 ? 0 : lo[i];
    hi[i] = hi[i] < 0 ? 0 : hi[i];
    spread[2 + i] = w->stride[i] - 1;
    ones[i] = 1;
  }
  Val y = mk_pad(g, x, mk_like(g, x, 0), none, none, spread);
  y = mk_conv(g, y, mk_mirror(g, weights, group), group, ones, w->dilation, lo, hi);
  if (!crops) return y;
  for (u32 i = 0; i < w->n + 2; i++)
    size[i] = i < 2 ? val_dim(g, y, i) : dim_sub(g->dims, val_dim(g, y, i), size[i]);
  return mk_slice(g, y, start, size, NULL);
}

/* Number of cells that each window averages: pooled ones, or a constant. */
static Val pool_count(Graph *g, Val x, Window w, bool with_pads) {
  Type t = *graph_type(g, x);
  bool plain = true;
  double cells = 1;
  for (u32 i = 0; i < w.n; i++) {
    bool same = with_pads ? w.hi[i] == w.given[i] : w.lo[i] == 0 && w.hi[i] == 0;
    plain = plain && same;
    cells *= (double)w.size[i];
  }
  if (plain) return mk_like(g, x, cells);
  Dim dim[MAX_RANK] = {1, 1};
  for (u32 i = 0; i < w.n; i++) dim[2 + i] = t.dim[2 + i];
  Val ones = mk_full(g, mk_like(g, x, 1), dim, t.rank);
  if (with_pads) {
    Window inner = w;
    for (u32 i = 0; i < w.n; i++) {
      inner.hi[i] = dim_min(g->dims, w.hi[i], w.given[i]);
      w.hi[i] = dim_sub(g->dims, w.hi[i], inner.hi[i]);
      w.lo[i] = 0;
    }
    ones = pad_before(g, ones, &inner, 1);
  }
  return window_pool(g, OP_pool_sum, ones, w, 0);
}

Val window_average(Graph *g, Val x, Window w, bool with_pads) {
  Val sum = window_pool(g, OP_pool_sum, x, w, 0);
  return mk_div(g, sum, pool_count(g, x, w, with_pads));
}
