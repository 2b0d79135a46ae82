/* onnx_ops_index.c: Slice, Pad, Gather, Scatter, TopK, reductions and other operators with indices.
 */
#include "front/onnx/onnx_import.h"

#include <string.h>

/* ---- Slice ---- */

typedef struct SliceCut {
  Dim start, size;
  i64 step;
} SliceCut;

static i64 clamp(i64 x, i64 lo, i64 hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

/* Slice of a known extent. Unlike numpy, a start before the first element means the first element,
 * also for negative steps. */
static SliceCut cut_static(i64 d, i64 start, i64 end, i64 step) {
  if (!d) return (SliceCut){0, 0, step};
  if (start < 0) start = start < -d ? 0 : start + d;
  if (end < 0) end = end < -d ? (step < 0 ? -1 : 0) : end + d;
  start = clamp(start, 0, step < 0 ? d - 1 : d);
  end = step < 0 ? clamp(end, -1, d) : clamp(end, 0, d);
  i64 span = step < 0 ? start - end : end - start, by = step < 0 ? -step : step;
  i64 size = span > 0 ? (span - 1) / by + 1 : 0;
  return (SliceCut){size ? start : 0, size, step};
}

/* Position on a symbolic extent, where the sign of x decides. */
static Dim place(Build *b, Dim d, i64 x) {
  if (x >= 0) return dim_min(b->ds, d, x > DIM_MAX ? DIM_MAX : x);
  return dim_max(b->ds, dim_addk(b->ds, d, x < -DIM_MAX ? -DIM_MAX : x), 0);
}

static SliceCut cut_symbolic(Build *b, Dim d, i64 start, i64 end, i64 step) {
  if (step == -1 && (start == -1 || start >= DIM_MAX) && end < -DIM_MAX)
    return (SliceCut){dim_addk(b->ds, d, -1), d, -1};
  if (step < 1) on_unsupported(b, "a negative step over a symbolic dimension");
  Dim lo = place(b, d, start), hi = end > DIM_MAX ? d : place(b, d, end);
  if (dim_is_const(lo) && dim_is_const(hi))
    return (SliceCut){lo, hi > lo ? (hi - lo - 1) / step + 1 : 0, step};
  Dim span = lo == 0 ? hi : dim_sub(b->ds, hi, lo);
  if (step > 1) span = dim_div(b->ds, dim_addk(b->ds, span, step - 1), step);
  return (SliceCut){lo, span, step};
}

/* Start or end of a slice: a number or a dimension. */
typedef struct Limit {
  bool open; /* dim is valid, else k */
  i64 k;
  Dim dim;
} Limit;

/* Position of a limit, counted from the front, if the limit or the extent is symbolic. */
static Dim limit_at(Build *b, Dim d, const Limit *x) {
  if (!x->open) return x->k > DIM_MAX ? d : place(b, d, x->k);
  if (dim_sub(b->ds, d, x->dim) == 1) /* all but the last element */
    return dim_max(b->ds, x->dim, 0);
  return dim_min(b->ds, d, x->dim);
}

static SliceCut cut_open(Build *b, Dim d, const Limit *start, const Limit *end, i64 step) {
  if (step < 1) on_unsupported(b, "a negative step with computed starts or ends");
  Dim lo = limit_at(b, d, start), hi = limit_at(b, d, end);
  Dim span = lo == 0 ? hi : dim_max(b->ds, dim_sub(b->ds, hi, lo), 0);
  if (step > 1) span = dim_div(b->ds, dim_addk(b->ds, span, step - 1), step);
  return (SliceCut){lo, span, step};
}

static void slice_by(Build *b, const Limit *start, const Limit *end, const i64 *axes,
                     const i64 *step, u32 n) {
  Val x = on_in(b, 0);
  const Type *t = on_type(b, x);
  Dim s[MAX_RANK] = {0}, z[MAX_RANK];
  i64 by[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) z[i] = t->dim[i], by[i] = 1;
  for (u32 i = 0; i < n; i++) {
    u32 a = (u32)axes[i];
    Dim d = t->dim[a];
    if (step[i] == 0) on_bad(b, "the step of axis %u is 0, expected another number", a);
    i64 st = clamp(step[i], -DIM_MAX, DIM_MAX);
    SliceCut c = start[i].open || end[i].open ? cut_open(b, d, &start[i], &end[i], st)
                 : dim_is_const(d)            ? cut_static(d, start[i].k, end[i].k, st)
                                              : cut_symbolic(b, d, start[i].k, end[i].k, st);
    s[a] = c.start;
    z[a] = c.size;
    by[a] = c.step;
  }
  b->out[0] = mk_slice(b->g, x, s, z, by);
}

/* Reads numbers or symbolic dimensions; fails if an element is neither. */
static u32 read_limits(Build *b, u32 input, Limit *out) {
  i64 k[MAX_RANK];
  Dim d[MAX_RANK];
  u32 n;
  if (!on_try_ints(b, input, k, MAX_RANK, &n) &&
      graph_dim_list(b->g, on_in(b, input), d, MAX_RANK, &n)) {
    for (u32 i = 0; i < n; i++) out[i] = (Limit){!dim_is_const(d[i]), d[i], d[i]};
    return n;
  }
  n = on_known_ints(b, input, k, MAX_RANK);
  for (u32 i = 0; i < n; i++) out[i] = (Limit){false, k[i], 0};
  return n;
}

/* Normalizes a run-time limit: negative values count from the end, then clamp to the axis. */
static Val late_limit(Build *b, Val v, Dim d) {
  Graph *g = b->g;
  Val zero = mk_scalar(g, DT_i64, 0), end = mk_extent(g, d, DT_i64);
  Val k = mk_cast(g, on_scalar(b, v), DT_i64);
  Val back = mk_add(g, k, end);
  k = mk_select(g, mk_lt(g, k, zero), back, k);
  return mk_min(g, mk_max(g, k, zero), end);
}

/* x[lo:hi:step] along an axis for run-time limits that are in range and at most `span` apart.
 * Gathers the positions between them. */
static Val late_cut(Build *b, Val x, i64 axis, Val lo, Val hi, Dim span, i64 step) {
  Graph *g = b->g;
  Val k = mk_sub(g, mk_max(g, hi, lo), lo), by = mk_scalar(g, DT_i64, (double)step);
  if (step > 1) {
    k = mk_div(g, mk_addk(g, k, (double)(step - 1)), by);
    span = dim_div(b->ds, dim_addk(b->ds, span, step - 1), step);
  }
  Val at = dynamic_iota(b, k, span, NULL);
  return mk_gather(g, x, mk_add(g, step > 1 ? mk_mul(g, at, by) : at, lo), axis);
}

/* Strips reshapes, integer casts and added constants: v = result + *add. Finds the counter of a
 * one-element list. */
static Val base_of(Graph *g, Val v, i64 *add) {
  *add = 0;
  for (;;) {
    const Node *n = graph_producer(g, v);
    i64 k;
    u32 one;
    if (!n) return v;
    bool turned = n->op == OP_add && graph_ints(g, n->in[0], &k, 1, &one);
    if (turned || ((n->op == OP_add || n->op == OP_sub) && graph_ints(g, n->in[1], &k, 1, &one))) {
      if (k < -DIM_MAX || k > DIM_MAX) return v;
      *add += n->op == OP_sub ? -k : k;
    } else if (n->op != OP_reshape && !(n->op == OP_cast && dtype_is_int(graph_type(g, v)->dt))) {
      return v;
    }
    v = n->in[turned];
  }
}

/* Do k positions from base + from lie within an axis of extent d in every run? */
static bool always_in_range(Build *b, Val base, i64 from, i64 k, Dim d) {
  i64 lo, hi;
  Dim times;
  u32 one;
  const LoopCounter *c = b->im->counter;
  while (c && c->i != base) c = c->outer;
  if (c && from == 0 && k == 1 && graph_dim_list(b->g, c->trip, &times, 1, &one) && times == d)
    return true;
  value_int_range(b->g, c ? c->trip : base, &lo, &hi);
  if (c) lo = 0, hi -= 1;
  return dim_is_const(d) && lo >= -from && hi <= d - k - from;
}

/* Slice(x, i, i + k) with a run-time i: gathers k neighbors. If the axis may end before, see
 * SliceMode; the run fails if there are fewer than k. */
static bool slice_running(Build *b) {
  Graph *g = b->g;
  i64 axis = 0, step = 1, from, to;
  u32 n;
  if (on_has(b, 3) && (!on_try_ints(b, 3, &axis, 1, &n) || n != 1)) return false;
  if (on_has(b, 4) && (!on_try_ints(b, 4, &step, 1, &n) || n != 1 || step != 1)) return false;
  const Type *t = on_type(b, on_in(b, 1));
  if (t->rank != 1 || t->dim[0] != 1) return false;
  Val base = base_of(g, b->in[1], &from);
  if (base != base_of(g, on_in(b, 2), &to) || to <= from) return false;
  u32 at = on_axis(b, axis, on_rank(b, b->in[0]));
  Dim d = on_dim(b, b->in[0], at), k = to - from;
  Val start = on_scalar(b, mk_cast(g, b->in[1], DT_i64));
  if (!always_in_range(b, base, from, k, d)) {
    if (b->im->slices == SLICES_exact) {
      Val end = late_limit(b, b->in[2], d);
      b->out[0] = late_cut(b, b->in[0], at, late_limit(b, b->in[1], d), end, k, 1);
      return true;
    }
    Val zero = mk_scalar(g, DT_i64, 0), end = mk_addk(g, start, (double)k);
    Val extent = mk_extent(g, d, DT_i64), negative = mk_lt(g, start, zero);
    Val first = mk_select(g, negative, mk_add(g, start, extent), start);
    Val last = mk_select(g, negative, mk_add(g, end, extent), end);
    Val early = mk_lt(g, first, zero), wrong = mk_or(g, early, mk_gt(g, last, extent));
    wrong = mk_or(g, wrong, mk_and(g, negative, mk_ge(g, end, zero)));
    wrong = mk_assert(g, mk_cast(g, wrong, DT_i64), "a slice of fixed length leaves its axis");
    start = mk_add(g, first, wrong);
  }
  b->out[0] = mk_gather(g, b->in[0], mk_add(g, start, mk_iota(g, DT_i64, &k, 1, 0)), at);
  return true;
}

/* Slices by run-time limits, axis by axis. */
static void slice_late(Build *b, const i64 *axes, const i64 *step, u32 n) {
  Graph *g = b->g;
  Val x = b->in[0];
  for (u32 i = 0; i < n; i++) {
    Dim d = on_dim(b, x, (u32)axes[i]);
    if (step[i] < 1 || step[i] > INT32_MAX)
      on_unsupported(b, "the step is %lld, expected 1 or more where starts and ends are computed",
                     (long long)step[i]);
    i64 place = i;
    Val lo = late_limit(b, mk_gather(g, b->in[1], mk_ints(g, &place, 1), 0), d);
    Val hi = late_limit(b, mk_gather(g, b->in[2], mk_ints(g, &place, 1), 0), d);
    x = late_cut(b, x, axes[i], lo, hi, d, step[i]);
  }
  b->out[0] = x;
}

/* Are there limits known only at run time? *n is their number. A list of run-time length must be as
 * long as the other, which is checked in the run. */
static bool is_late(Build *b, u32 *n) {
  bool late = false;
  Dim count = -1;
  for (u32 i = 1; i < 3; i++) {
    i64 k[MAX_RANK];
    Dim d[MAX_RANK];
    u32 got;
    const Type *t = on_type(b, on_in(b, i));
    if (t->rank != 1) return false;
    if (dim_is_const(t->dim[0])) {
      if (count >= 0 && count != t->dim[0])
        on_bad(b, "starts and ends differ in length: %lld and %lld", (long long)count,
               (long long)t->dim[0]);
      count = t->dim[0];
    }
    late = late || (!on_try_ints(b, i, k, MAX_RANK, &got) &&
                    !graph_dim_list(b->g, b->in[i], d, MAX_RANK, &got) &&
                    (t->dt == DT_i64 || t->dt == DT_i32));
  }
  if (late && count < 0)
    on_unsupported(b, "starts and ends whose number is only known at run time");
  if (late) *n = (u32)count;
  return late;
}

void build_slice(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x), n, k;
  Limit start[MAX_RANK], end[MAX_RANK];
  i64 axes[MAX_RANK], step[MAX_RANK], old[2][MAX_RANK];
  i32 na = -1, ns = -1;
  bool late = false;
  if (b->opset < 10) {
    i32 m = on_ints(b, "starts", old[0], MAX_RANK), e = on_ints(b, "ends", old[1], MAX_RANK);
    if (m < 0 || m != e) on_bad(b, "expected attributes starts and ends of equal length");
    n = (u32)m;
    for (u32 i = 0; i < n; i++)
      start[i] = (Limit){false, old[0][i], 0}, end[i] = (Limit){false, old[1][i], 0};
    na = on_ints(b, "axes", axes, MAX_RANK);
  } else {
    if (!on_try_ints(b, 1, old[0], MAX_RANK, &k) && slice_running(b)) return;
    late = is_late(b, &n);
    if (!late) n = read_limits(b, 1, start);
    if (!late && read_limits(b, 2, end) != n)
      on_bad(b, "starts and ends differ in length, expected as many ends as starts");
    if (n > rank) on_bad(b, "there are %u starts, expected at most %u, the rank", n, rank);
    if (on_has(b, 3)) na = (i32)on_known_ints(b, 3, axes, MAX_RANK);
    if (on_has(b, 4)) ns = (i32)on_known_ints(b, 4, step, MAX_RANK);
  }
  if ((na >= 0 && (u32)na != n) || (ns >= 0 && (u32)ns != n))
    on_bad(b, "axes or steps differ in length from starts");
  for (u32 i = 0; i < n; i++) {
    if (na < 0) axes[i] = i;
    if (ns < 0) step[i] = 1;
  }
  on_axes(b, axes, n, rank);
  if (late)
    slice_late(b, axes, step, n);
  else
    slice_by(b, start, end, axes, step, n);
}

/* ---- Pad ---- */

/* Index vector of a padded axis for modes reflect, edge and wrap. */
static Val pad_index(Build *b, i64 d, i64 lo, i64 hi, const char *mode) {
  i64 n = d + lo + hi;
  if (n < 0 || n > INT32_MAX)
    on_bad(b, "the padded extent is %lld, expected 0 to 2^31-1", (long long)n);
  if (d == 0 && n > 0) on_bad(b, "axis of extent 0: expected at least one element to pad from");
  Tensor *t = tensor_new(&b->c->work, DT_i64, &n, 1);
  for (i64 i = 0; i < n; i++) {
    i64 at = i - lo;
    if (!strcmp(mode, "edge")) {
      at = clamp(at, 0, d - 1);
    } else if (!strcmp(mode, "wrap")) {
      at = (at % d + d) % d;
    } else if (d == 1) {
      at = 0;
    } else {
      i64 period = 2 * (d - 1);
      at = (at % period + period) % period;
      at = at < d ? at : period - at;
    }
    tensor_set(t, (u64)i, (Scalar){.i = at});
  }
  return mk_const(b->g, t);
}

/* pad_index for a symbolic extent. */
static Val pad_index_symbolic(Build *b, Dim d, i64 lo, i64 hi, const char *mode) {
  Graph *g = b->g;
  if (lo + hi < 0)
    on_unsupported(b, "padding of %lld and %lld shortens a symbolic dimension", (long long)lo,
                   (long long)hi);
  Dim n = dim_addk(b->ds, d, lo + hi), last = dim_addk(b->ds, d, -1);
  i64 before[1] = {lo}, zero[1] = {0};
  Val start = mk_ints(g, before, 1);
  Val at = mk_sub(g, mk_iota(g, DT_i64, &n, 1, 0), start);
  Val end = mk_dims(g, &last, 1);
  if (!strcmp(mode, "edge")) return mk_min(g, mk_max(g, at, mk_ints(g, zero, 1)), end);
  if (!strcmp(mode, "wrap")) return mk_mod(g, at, mk_dims(g, &d, 1));
  Val period = mk_add(g, end, end); /* 0 if there is one element: the remainder is 0 then */
  at = mk_mod(g, at, period);
  return mk_min(g, at, mk_sub(g, period, at));
}

static Val pad_axis(Build *b, Val x, u32 axis, i64 lo, i64 hi, const char *mode) {
  Dim d = on_dim(b, x, axis);
  Val at = dim_is_const(d) ? pad_index(b, d, lo, hi, mode) : pad_index_symbolic(b, d, lo, hi, mode);
  return mk_gather(b->g, x, at, axis);
}

static Val pad_constant(Build *b, Val x, const i64 *lo, const i64 *hi, Val value) {
  const Type *t = on_type(b, x);
  Dim start[MAX_RANK], size[MAX_RANK], plo[MAX_RANK], phi[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) { /* negative amounts crop */
    start[i] = lo[i] < 0 ? -lo[i] : 0;
    i64 cut = start[i] - (hi[i] < 0 ? hi[i] : 0);
    if (dim_is_const(t->dim[i]) && cut > t->dim[i])
      on_bad(b, "pads remove %lld elements of axis %u, which has %lld", (long long)cut, i,
             (long long)t->dim[i]);
    size[i] = cut ? dim_addk(b->ds, t->dim[i], -cut) : t->dim[i];
    plo[i] = lo[i] < 0 ? 0 : lo[i];
    phi[i] = hi[i] < 0 ? 0 : hi[i];
  }
  return mk_pad(b->g, mk_slice(b->g, x, start, size, NULL), value, plo, phi, NULL);
}

void build_pad(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x), n = rank;
  i64 pads[2 * MAX_RANK], axes[MAX_RANK], lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  i32 k = b->opset < 2 ? on_ints(b, "paddings", pads, 2 * MAX_RANK)
                       : on_ints_or_input(b, "pads", 1, pads, 2 * MAX_RANK);
  for (u32 i = 0; i < rank; i++) axes[i] = i;
  if (b->opset >= 18 && on_has(b, 3)) n = on_known_ints(b, 3, axes, MAX_RANK);
  on_axes(b, axes, n, rank);
  if (k < 0 || (u32)k != 2 * n) on_bad(b, "pads must have %u elements, found %d", 2 * n, k);
  for (u32 i = 0; i < n; i++) {
    if (pads[i] > INT32_MAX || pads[n + i] > INT32_MAX || pads[i] < -INT32_MAX ||
        pads[n + i] < -INT32_MAX)
      on_bad(b, "pads of axis %lld are %lld and %lld, expected less than 2^31", (long long)axes[i],
             (long long)pads[i], (long long)pads[n + i]);
    lo[axes[i]] = pads[i];
    hi[axes[i]] = pads[n + i];
  }
  const char *mode = str_text(b->c, on_str(b, "mode", "constant"));
  if (!strcmp(mode, "constant")) {
    Val value = mk_like(b->g, x, on_float(b, "value", 0));
    if (b->opset >= 11 && on_has(b, 2)) value = mk_reshape(b->g, on_in(b, 2), NULL, 0);
    b->out[0] = pad_constant(b, x, lo, hi, value);
    return;
  }
  if (strcmp(mode, "edge") && strcmp(mode, "reflect") && strcmp(mode, "wrap"))
    on_bad(b, "mode is '%s', expected constant, edge, reflect or wrap",
           show(b->c, on_str(b, "mode", "")));
  for (u32 i = 0; i < rank; i++)
    if (lo[i] || hi[i]) x = pad_axis(b, x, i, lo[i], hi[i], mode);
  b->out[0] = x;
}

/* Crops or pads evenly to the requested extents. */
void build_center_crop_pad(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x);
  i64 axes[MAX_RANK], want[MAX_RANK], lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  i32 n = on_ints(b, "axes", axes, MAX_RANK);
  if (n < 0) n = (i32)axes_from(b->g, x, 0, axes);
  on_axes(b, axes, (u32)n, rank);
  if (on_known_ints(b, 1, want, MAX_RANK) != (u32)n) on_bad(b, "shape must have %d elements", n);
  for (i32 i = 0; i < n; i++) {
    i64 d = on_static_dim(b, x, (u32)axes[i]), diff = want[i] - d;
    if (want[i] < 0) on_bad(b, "the shape contains %lld, expected at least 0", (long long)want[i]);
    i64 first = diff < 0 ? -((-diff) / 2) : diff / 2;
    lo[axes[i]] = first;
    hi[axes[i]] = diff - first;
  }
  b->out[0] = pad_constant(b, x, lo, hi, mk_like(b->g, x, 0));
}

/* ---- Gather and Scatter ---- */

static Val index_type(Build *b, Val v) {
  DType dt = on_dtype(b, v);
  if (!dtype_is_int(dt)) on_bad(b, "indices have type %s, expected integers", dtype_info[dt].name);
  return dt == DT_i32 || dt == DT_i64 ? v : mk_cast(b->g, v, DT_i64);
}

/* Checks constant indices: the last axis has one for each of the n extents. */
static Val check_const_index(Build *b, Val idx, const Dim *dim, u32 n) {
  idx = index_type(b, idx);
  const Tensor *t = graph_const(b->g, idx);
  for (u64 i = 0; t && i < t->n; i++) {
    i64 k = tensor_get(t, i).i;
    Dim d = dim[i % n];
    if (dim_is_const(d) && (k < -d || k >= d))
      on_bad(b, "index %lld is out of range for extent %lld", (long long)k, (long long)d);
  }
  return mk_check_index(b->g, idx, dim, n);
}

Val on_index(Build *b, Val idx, Dim d) {
  return check_const_index(b, idx, &d, 1);
}

/* Coordinates along the last axis of idx, into the axes of x from `from` on. */
static Val on_coords(Build *b, Val x, Val idx, i64 from) {
  const Type *xt = on_type(b, x), *t = on_type(b, idx);
  if (!t->rank) on_bad(b, "indices is a scalar, expected rank 1 or more");
  i64 depth = on_static_dim(b, idx, t->rank - 1);
  if (from < 0 || depth < 1 || depth > (i64)xt->rank - from)
    on_bad(b, "coordinates of length %lld exceed rank %u after %lld batch axes", (long long)depth,
           xt->rank, (long long)from);
  return check_const_index(b, idx, xt->dim + from, (u32)depth);
}

/* Argument 1: GatherElements. */
void build_gather(Build *b) {
  Val x = on_in(b, 0);
  u32 axis = on_axis_of(b, x, 0);
  Val at = on_index(b, on_in(b, 1), on_dim(b, x, axis));
  b->out[0] = (b->arg ? mk_gather_elems : mk_gather)(b->g, x, at, axis);
}

void build_gather_nd(Build *b) {
  i64 batch = on_int(b, "batch_dims", 0);
  b->out[0] = mk_gather_nd(b->g, on_in(b, 0), on_coords(b, b->in[0], on_in(b, 1), batch), batch);
}

void build_scatter_elements(Build *b) {
  Val x = on_in(b, 0);
  u32 axis = on_axis_of(b, x, 0);
  const char *how = str_text(b->c, on_str(b, "reduction", "none"));
  Val idx = on_index(b, on_in(b, 1), on_dim(b, x, axis));
  b->out[0] = mk_scatter_elems(b->g, x, idx, on_in(b, 2), axis, how);
}

void build_scatter_nd(Build *b) {
  const char *how = str_text(b->c, on_str(b, "reduction", "none"));
  Val idx = on_coords(b, on_in(b, 0), on_in(b, 1), 0);
  b->out[0] = mk_scatter_nd(b->g, b->in[0], idx, on_in(b, 2), how);
}

/* Writes update into past at write_indices along axis; circular wraps around. */
void build_tensor_scatter(Build *b) {
  Graph *g = b->g;
  Val past = on_in(b, 0), upd = on_in(b, 1);
  u32 rank = on_rank(b, past), axis = on_axis(b, on_int(b, "axis", -2), rank);
  Dim batch = on_dim(b, past, 0), room = on_dim(b, past, axis);
  Val start = on_has(b, 2) ? mk_cast(g, on_in(b, 2), DT_i64)
                           : mk_full(g, mk_scalar(g, DT_i64, 0), &batch, 1);
  const Type *u = on_type(b, upd);
  Dim shape[MAX_RANK], one[MAX_RANK];
  for (u32 i = 0; i < rank; i++) shape[i] = u->dim[i], one[i] = i ? 1 : batch;
  Val from = mk_reshape(g, start, one, rank);
  Val idx = mk_add(g, mk_iota(g, DT_i64, shape, rank, axis), from);
  if (on_str_is(b, "mode", "linear", "circular")) idx = mk_mod(g, idx, mk_extent(g, room, DT_i64));
  b->out[0] = mk_scatter_elems(g, past, idx, upd, axis, "none");
}

void build_onehot(Build *b) {
  Val idx = on_in(b, 0), values = on_in(b, 2);
  i64 depth;
  if (on_has(b, 1) && dtype_is_float(on_dtype(b, b->in[1])))
    depth = (i64)tensor_get(on_known(b, 1), 0).f;
  else
    on_known_ints(b, 1, &depth, 1);
  if (depth < 0 || depth > INT32_MAX)
    on_bad(b, "depth is %lld, expected 0 to 2^31-1", (long long)depth);
  u32 rank = on_rank(b, idx) + 1;
  if (rank > MAX_RANK)
    on_unsupported(b, "the result has rank %u, expected at most %d", rank, MAX_RANK);
  u32 axis = on_axis(b, on_int(b, "axis", -1), rank);
  if (on_rank(b, values) != 1 || (dim_is_const(on_dim(b, values, 0)) && on_dim(b, values, 0) != 2))
    on_bad(b, "expected two values, off and on, in a vector of 2 elements");
  Graph *g = b->g;
  Val at = mk_cast(g, idx, DT_i64), k = mk_scalar(g, DT_i64, (double)depth);
  Val below = mk_lt(g, at, k);
  Val in_range = mk_and(g, mk_ge(g, at, mk_neg(g, k)), below);
  Val none = mk_scalar(g, DT_i64, -1);
  at = mk_select(g, in_range, mk_mod(g, at, k), none);
  Dim shape[MAX_RANK];
  for (u32 i = 0; i < rank; i++) shape[i] = i == axis ? depth : 1;
  Val number = mk_iota(g, DT_i64, shape, rank, axis);
  Val hit = mk_eq(g, mk_unsqueeze(g, at, axis), number);
  Val off = mk_squeeze(g, mk_slice_axis(g, values, 0, 0, 1), 0);
  Val on = mk_squeeze(g, mk_slice_axis(g, values, 0, 1, 1), 0);
  b->out[0] = mk_select(g, hit, on, off);
}

/* Reverses the first seq_len elements of each row along the time axis. */
void build_reverse_sequence(Build *b) {
  Val x = on_in(b, 0), len = on_in(b, 1);
  u32 rank = on_rank(b, x);
  u32 time = on_axis(b, on_int(b, "time_axis", 0), rank),
      batch = on_axis(b, on_int(b, "batch_axis", 1), rank);
  Graph *g = b->g;
  const Type *t = on_type(b, x);
  Dim shape[MAX_RANK], one[MAX_RANK];
  for (u32 i = 0; i < rank; i++) shape[i] = t->dim[i], one[i] = i == batch ? t->dim[i] : 1;
  Val i = mk_iota(g, DT_i64, shape, rank, time),
      n = mk_reshape(g, mk_cast(g, len, DT_i64), one, rank);
  Val back = mk_addk(g, mk_sub(g, n, i), -1);
  b->out[0] = mk_gather_elems(g, x, mk_select(g, mk_lt(g, i, n), back, i), time);
}

/* ---- selection ---- */

void build_nonzero(Build *b) {
  b->out[0] = mk_nonzero(b->g, on_in(b, 0));
}

void build_compress(Build *b) {
  Val x = on_in(b, 0);
  Graph *g = b->g;
  i64 axis = 0;
  if (on_has_attr(b, "axis")) {
    axis = on_axis_of(b, x, 0);
  } else {
    Dim n = type_count(b->ds, on_type(b, x));
    x = mk_reshape(g, x, &n, 1);
  }
  Val at = mk_nonzero(g, on_in(b, 1));
  b->out[0] = mk_gather(g, x, mk_squeeze(g, at, 0), axis);
}

void build_topk(Build *b) {
  Val x = on_in(b, 0), some = 0, y[2];
  u32 axis = on_axis_of(b, x, -1), n;
  Dim all = on_dim(b, x, axis), k = -1;
  bool number = true; /* k is a number, not a dimension */
  if (b->opset < 10)
    k = on_int(b, "k", -1);
  else
    number = on_try_ints(b, 1, &k, 1, &n);
  if (number && k < 0) on_bad(b, "k is %lld, expected at least 0", (long long)k);
  if (!number && !(graph_dim_list(b->g, on_in(b, 1), &k, 1, &n) && n == 1 && k == all)) {
    some = dynamic_iota(b, mk_cast(b->g, on_scalar(b, on_in(b, 1)), DT_i64), all,
                        "k is not in the range of the axis");
    k = all;
  }
  mk_topk(b->g, x, axis, k, on_int(b, "largest", 1) != 0, &y[0], &y[1]);
  for (u32 i = 0; i < b->nout; i++) b->out[i] = some ? mk_gather(b->g, y[i], some, axis) : y[i];
}

void build_arg(Build *b) {
  Val x = on_in(b, 0);
  u32 axis = on_axis_of(b, x, 0);
  b->out[0] = mk_arg(b->g, (Op)b->arg, x, axis, on_int(b, "keepdims", 1) != 0,
                     on_int(b, "select_last_index", 0) != 0);
}

void build_cum(Build *b) {
  Val x = on_in(b, 0);
  i64 axis;
  on_known_ints(b, 1, &axis, 1);
  b->out[0] = mk_cum(b->g, (Op)b->arg, x, on_axis(b, axis, on_rank(b, x)),
                     on_int(b, "exclusive", 0) != 0, on_int(b, "reverse", 0) != 0);
}

/* ---- reductions ---- */

/* Argument of the operator row. */
enum { RD_sum, RD_mean, RD_prod, RD_max, RD_min, RD_l1, RD_l2, RD_log, RD_lse, RD_sq };

/* Axes to reduce. n = 0 with noop_with_empty_axes: only the elementwise part applies. */
static u32 reduce_axes(Build *b, Val x, i64 *axes) {
  i32 n = on_ints_or_input(b, "axes", 1, axes, MAX_RANK);
  if (n <= 0) return on_int(b, "noop_with_empty_axes", 0) ? 0 : axes_from(b->g, x, 0, axes);
  on_axes(b, axes, (u32)n, on_rank(b, x));
  return (u32)n;
}

static Val log_sum_exp(Build *b, Val x, const i64 *axes, u32 n, bool keep) {
  Graph *g = b->g;
  Val top = mk_reduce(g, OP_reduce_max, x, axes, n, true);
  /* avoids inf - inf */
  Val zero = mk_like(g, top, 0);
  Val finite = mk_select(g, mk_isinf(g, top), zero, top);
  Val s = mk_reduce(g, OP_reduce_sum, mk_exp(g, mk_sub(g, x, finite)), axes, n, true);
  Val r = mk_add(g, mk_log(g, s), finite);
  if (keep || !n) return r;
  Dim dim[MAX_RANK];
  const Type *t = on_type(b, r);
  u32 k = 0, mask = 0;
  for (u32 i = 0; i < n; i++) mask |= 1u << axes[i];
  for (u32 i = 0; i < t->rank; i++)
    if (!(mask >> i & 1)) dim[k++] = t->dim[i];
  return mk_reshape(g, r, dim, k);
}

void build_reduce(Build *b) {
  Val x = on_in(b, 0);
  Graph *g = b->g;
  i64 axes[MAX_RANK];
  u32 n = reduce_axes(b, x, axes);
  bool keep = on_int(b, "keepdims", 1) != 0;
  DType dt = on_dtype(b, x);
  bool real =
      b->arg == RD_l2 || b->arg == RD_log || b->arg == RD_lse; /* float result, also for integers */
  Val w = real && dtype_is_int(dt) ? mk_cast(g, x, DT_f64) : mk_widen(g, x), r = 0;
  switch (b->arg) {
  case RD_max: r = mk_reduce(g, OP_reduce_max, x, axes, n, keep); break;
  case RD_min: r = mk_reduce(g, OP_reduce_min, x, axes, n, keep); break;
  case RD_prod: r = mk_reduce(g, OP_reduce_prod, w, axes, n, keep); break;
  case RD_sum: r = mk_reduce(g, OP_reduce_sum, w, axes, n, keep); break;
  case RD_mean: r = mk_mean(g, w, axes, n, keep); break;
  case RD_l1: r = mk_reduce(g, OP_reduce_sum, mk_abs(g, w), axes, n, keep); break;
  case RD_sq: r = mk_reduce(g, OP_reduce_sum, mk_mul(g, w, w), axes, n, keep); break;
  case RD_l2: r = mk_sqrt(g, mk_reduce(g, OP_reduce_sum, mk_mul(g, w, w), axes, n, keep)); break;
  case RD_log: r = mk_log(g, mk_reduce(g, OP_reduce_sum, w, axes, n, keep)); break;
  case RD_lse: r = log_sum_exp(b, w, axes, n, keep); break;
  }
  b->out[0] = mk_cast(g, r, dt);
}
