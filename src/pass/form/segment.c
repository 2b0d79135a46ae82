/* segment.c: splits convolutions whose windows mostly lie in padding.
 *
 * A window with a large dilation that hardly fits its operand multiplies padding most of the time.
 * In: the form of such a convolution. Out: forms of parts of the result without padding. Along one
 * dimension, a part is a run of outputs (a Segment) whose windows have the same positions inside
 * the operand, and it has only those positions. In several dimensions there is a part for each
 * combination of segments.
 *
 * Not done if most parts would have one or two outputs: multiplying zeros is faster than tiles of a
 * single result.
 */
#include "pass/form/segment.h"

u32 conv_windows(Graph *g, const Node *n, WindowDim *s) {
  NodeWindow w = node_window(g, n);
  const Dim *x = graph_type(g, n->in[0])->dim + 2, *o = graph_type(g, n->out[0])->dim + 2;
  for (u32 i = 0; i < w.n; i++)
    s[i] = (WindowDim){o[i],    w.size[i],          x[i], w.stride[i], w.dilation[i],
                       w.lo[i], w.input_dilation[i]};
  return w.n;
}

static i64 floor_div(i64 a, i64 b) {
  return a / b - (a % b < 0);
}

/* Output o as a segment: the window positions that read an element there. */
static Segment positions(const WindowDim *s, i64 o) {
  i64 at = o * s->stride - s->pad;
  i64 from = -floor_div(at, s->dilation), to = floor_div(s->extent - 1 - at, s->dilation) + 1;
  return (Segment){o, o + 1, from < 0 ? 0 : from, to > s->size ? s->size : to};
}

u32 window_segments(const WindowDim *s, Segment *out) {
  u32 n = 0;
  for (i64 o = 0; o < s->places; o++) {
    Segment here = positions(s, o);
    if (here.from >= here.to) return 0;
    if (n && out[n - 1].from == here.from && out[n - 1].to == here.to) {
      out[n - 1].hi++;
      continue;
    }
    if (n == MAX_SEGMENTS) return 0;
    out[n++] = here;
  }
  return n;
}

/* Outputs whose whole window is inside the operand; false: none. */
static bool window_interior(const WindowDim *s, Segment *out) {
  if (s->stride < 1 || s->dilation < 1) return false;
  i64 reach = (s->size - 1) * s->dilation;
  i64 lo = s->pad > 0 ? (s->pad + s->stride - 1) / s->stride : 0;
  i64 hi = floor_div(s->extent - 1 - reach + s->pad, s->stride) + 1;
  *out = (Segment){lo, hi < s->places ? hi : s->places, 0, s->size};
  return out->lo < out->hi;
}

double windows_hit_ratio(const WindowDim *s, u32 n) {
  double met = 1, all = 1;
  for (u32 i = 0; i < n; i++) {
    Segment at[MAX_SEGMENTS];
    u32 count = window_segments(&s[i], at);
    i64 sum = 0;
    if (!count || (count == s[i].places && count >= LIMIT_segment_places)) return 1;
    for (u32 k = 0; k < count; k++) sum += (at[k].hi - at[k].lo) * (at[k].to - at[k].from);
    met *= (double)sum;
    all *= (double)(s[i].places * s[i].size);
  }
  return met / all;
}

bool windows_are_sparse(const Target *t, const WindowDim *s, u32 n) {
  return windows_hit_ratio(s, n) < t->cost->sparse;
}

/* The window over dimension d of in[0], if its outputs and its operand have known extents. */
static bool window_of(Prog *p, const Form *f, u32 d, WindowDim *s) {
  const Index *ix = &f->in[0].idx[d];
  Dim extent = prog_buf(p, f->in[0].buf)->dim[d];
  if (ix->n != 2) return false;
  const Axis *place = &f->axis[ix->axis[0]], *window = &f->axis[ix->axis[1]];
  if (place->reduce || !window->reduce || place->lo || !dim_is_const(place->hi) ||
      !dim_is_const(extent))
    return false;
  *s = (WindowDim){place->hi, window->hi, extent, ix->coef[0], ix->coef[1], -ix->shift, 0};
  return true;
}

u32 form_windows(Prog *p, const Form *f, WindowDim *s, u32 *dim) {
  const Operand *o = &f->in[0];
  u32 n = 0;
  for (u32 d = 0; f->reduce && f->nin == 2 && d < o->rank; d++) {
    if (!o->idx[d].guard) continue;
    if (!window_of(p, f, d, &s[n]) || (n && *dim + n != d)) return 0;
    if (!n++) *dim = d;
  }
  return n;
}

Form form_segment(const Form *f, u32 dim, u32 n, const Segment *at) {
  Form part = *f;
  for (u32 i = 0; i < n; i++) {
    Index *ix = &part.in[0].idx[dim + i];
    Axis *place = &part.axis[ix->axis[0]], *window = &part.axis[ix->axis[1]];
    ix->guard = 0;
    place->lo = at[i].lo;
    place->hi = at[i].hi;
    window->full_hi = window->hi;
    window->lo = at[i].from;
    window->hi = at[i].to;
  }
  return part;
}

bool form_windows_interior(Prog *p, const Form *f, u32 *axis, Segment *in) {
  const Operand *x = &f->in[0], *o = &f->out;
  WindowDim s;
  if (!f->reduce || f->nin != 1 || !x->rank || !o->rank) return false;
  const Index *ix = &x->idx[x->rank - 1], *to = &o->idx[o->rank - 1];
  if (!ix->guard || ix->base || to->n != 1 || !window_of(p, f, x->rank - 1, &s)) return false;
  const Axis *window = &f->axis[ix->axis[1]];
  *axis = ix->axis[0];
  return *axis == to->axis[0] && !window->lo && dim_is_const(window->hi) && window_interior(&s, in);
}

Form form_interior(const Form *f, u32 axis, i64 from, i64 to) {
  Form part = *f;
  Index *o = &part.out.idx[f->out.rank - 1], *x = &part.in[0].idx[f->in[0].rank - 1];
  part.axis[axis].hi = to - from;
  o->shift += from * o->coef[0];
  x->shift += from * x->coef[0];
  x->guard = 0;
  return part;
}

bool form_place(Prog *p, const Form *f, i64 place, Form *part) {
  WindowDim s;
  u32 last = f->in[0].rank - 1;
  if (!window_of(p, f, last, &s)) return false;
  Segment at = positions(&s, place);
  if (at.from >= at.to) return false;
  *part = form_segment(f, last, 1, &at);
  return true;
}
