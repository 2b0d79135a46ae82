/* rows_math.c: rows that compute: maps, casts, reductions, contractions, windows, scans, topk,
 * suppress. */
#include "grow.h"

#include <math.h>
#include <string.h>

static bool exact(Gen *G) {
  return G->mode == MODE_exact;
}

static Grain wider(Grain a, Grain b) {
  return (Grain){a.mag > b.mag ? a.mag : b.mag, a.q > b.q ? a.q : b.q};
}

/* The grain of a result of type dt; integers wrap. False: it might round. */
static bool settle(Gen *G, DType dt, Grain *r) {
  if (!exact(G)) return true;
  if (dtype_is_float(dt)) return grain_fits(dt, *r);
  r->q = 0;
  if (!(r->mag <= mag_limit(dt))) r->mag = mag_limit(dt);
  return true;
}

/* ---- maps ---- */

static bool float_grain(Gen *G, Op op, const Grain *x, Grain *r) {
  (void)G;
  switch (op) {
  case OP_add:
  case OP_sub: *r = (Grain){x[0].mag + x[1].mag, wider(x[0], x[1]).q}; return true;
  case OP_mul: *r = (Grain){x[0].mag * x[1].mag, x[0].q + x[1].q}; return true;
  case OP_div: *r = (Grain){x[0].mag * 2, x[0].q + 2}; return true; /* by 1/2, 1, 2 or 4 */
  case OP_max:
  case OP_min: *r = wider(x[0], x[1]); return true;
  case OP_fma:
    *r = (Grain){x[0].mag * x[1].mag + x[2].mag,
                 x[0].q + x[1].q > x[2].q ? x[0].q + x[1].q : x[2].q};
    return true;
  case OP_neg:
  case OP_abs: *r = x[0]; return true;
  case OP_sign: *r = (Grain){1, 0}; return true;
  case OP_floor:
  case OP_ceil:
  case OP_round:
  case OP_trunc: *r = (Grain){ceil(x[0].mag), 0}; return true;
  case OP_eq:
  case OP_ne:
  case OP_lt:
  case OP_le:
  case OP_gt:
  case OP_ge:
  case OP_isnan:
  case OP_isinf: *r = (Grain){1, 0}; return true;
  default: return false;
  }
}

static bool int_grain(Op op, DType dt, const Grain *x, Grain *r) {
  *r = grain_of_type(dt);
  if (op_info[op].res == OR_pred) *r = (Grain){1, 0};
  if (!dtype_is_signed(dt)) return true;
  if (op == OP_add) *r = (Grain){x[0].mag + x[1].mag, 0};
  if (op == OP_mul) *r = (Grain){x[0].mag * x[1].mag, 0};
  if (op == OP_max || op == OP_min) *r = wider(x[0], x[1]);
  if (op == OP_sign) *r = (Grain){1, 0};
  return true;
}

static bool jumps(Op op) {
  switch (op) {
  case OP_mod:
  case OP_fmod:
  case OP_sign:
  case OP_floor:
  case OP_ceil:
  case OP_round:
  case OP_trunc:
  case OP_tan:
  case OP_recip:
  case OP_div:
  case OP_pow:
  case OP_log:
  case OP_asin:
  case OP_acos:
  case OP_acosh:
  case OP_atanh:
  case OP_sqrt:
  case OP_exp:
  case OP_sinh:
  case OP_cosh: return true; /* also what grows too fast for a simple bound */
  default: return op_info[op].res == OR_pred;
  }
}

/* 1/2, 1, 2 or 4 in the shape of what stands beside t. */
static Val power_of_two(Gen *G, DType dt, const Type *t) {
  static const double k[] = {0.5, 1, 2, 4};
  Dim d[MAX_RANK];
  u32 rank = chance(G, 50) ? 0 : t->rank;
  for (u32 i = 0; i < rank; i++) d[i] = dim_is_const(t->dim[i]) && chance(G, 60) ? t->dim[i] : 1;
  Tensor *x = tensor_new(G->a, dt, d, rank);
  bool one = chance(G, 50);
  double same = k[below(G, 4)];
  for (u64 i = 0; i < x->n; i++) tensor_set(x, i, (Scalar){.f = one ? same : k[below(G, 4)]});
  Attr at = {.key = AT_value, .kind = AK_const, .u.t = x};
  return node(G, OP_const, NULL, 0, &at, 1, (Grain){4, 1});
}

Val row_map(Gen *G, Op op) {
  const OpInfo *info = &op_info[op];
  const char *classes = info->cls == OC_FLT    ? "F"
                        : info->cls == OC_INT  ? "IU"
                        : info->cls == OC_I32  ? "I"
                        : info->cls == OC_BITS ? "IUB"
                        : info->cls == OC_ANY  ? "FIUB"
                                               : "FIU";
  Val in[3] = {some(G, classes, 0, LEAST_RANK)};
  Type t = type_of(G, in[0]);
  bool flt = dtype_is_float(t.dt);
  if (!op_accepts(op, t.dt)) return 0;
  if (exact(G) && flt && op == OP_div && !grain_fits(t.dt, (Grain){4, 1})) return 0;
  for (u32 i = 1; i < info->nin_max; i++) {
    in[i] = exact(G) && flt && op == OP_div ? power_of_two(G, t.dt, &t) : some_beside(G, t.dt, &t);
    Type u = type_of(G, in[i]); /* the third stands beside both */
    Dim d[MAX_RANK];
    const Type *both[2] = {&t, &u};
    u32 rank = infer_broadcast(G->g, both, 2, d);
    t = type_tensor(G->a, t.dt, d, rank);
    if (!small(G, d, rank)) return 0;
  }
  Grain x[3], r;
  for (u32 i = 0; i < info->nin_max; i++) x[i] = *grain_of(G, in[i]);
  if (exact(G) && flt ? !float_grain(G, op, x, &r) : !int_grain(op, t.dt, x, &r)) return 0;
  DType dt = info->res == OR_pred ? DT_bool : t.dt;
  if (!settle(G, dt, &r)) return 0;
  if (flt && jumps(op)) rough(G);
  return node(G, op, in, info->nin_max, NULL, 0, r);
}

Val row_select(Gen *G, Op op) {
  Val in[3];
  in[1] = some(G, "FIUB", 0, LEAST_RANK);
  Type t = type_of(G, in[1]);
  in[2] = some_beside(G, t.dt, &t);
  Type u = type_of(G, in[2]);
  Dim d[MAX_RANK];
  const Type *both[2] = {&t, &u};
  u32 rank = infer_broadcast(G->g, both, 2, d);
  t = type_tensor(G->a, t.dt, d, rank);
  in[0] = some_beside(G, DT_bool, &t);
  rough(G);
  return node(G, op, in, 3, NULL, 0, wider(*grain_of(G, in[1]), *grain_of(G, in[2])));
}

/* Bits of a float that was computed are not for sale: NaN has many, and canon may turn -0 into 0.
 */
static Val bitcast(Gen *G) {
  Val x = some(G, "IUB", 0, LEAST_RANK);
  if (chance(G, 50)) {
    Dim d[MAX_RANK];
    u32 rank = any_shape(G, d, 0, 3, 0);
    DType dt = any_dtype(G, "F");
    Fill f = fill_any(&G->rng, dt, G->mode);
    f.fixed = true;
    x = param_of(G, dt, d, rank, f);
  }
  DType from = type_of(G, x).dt, to = from;
  u32 width = from == DT_bool ? 8 : dtype_info[from].bits;
  for (int tries = 0; tries < 40; tries++) {
    DType dt = (DType)(1 + below(G, DT_COUNT - 1));
    bool flt = dtype_is_float(dt);
    if (is_class(dt, "FIU") && dtype_info[dt].bits == width && !(flt && exact(G))) to = dt;
  }
  if (to == from) return 0;
  rough(G);
  Attr at = a_dtype(to);
  return node(G, OP_bitcast, &x, 1, &at, 1, grain_of_type(to));
}

Val row_cast(Gen *G, Op op) {
  if (op == OP_bitcast) return bitcast(G);
  Val x = some(G, "FIUB", 0, LEAST_RANK);
  DType from = type_of(G, x).dt, to = any_dtype(G, "FIUB");
  Grain r = *grain_of(G, x);
  if (!dtype_is_float(to)) {
    r = (Grain){floor(r.mag), 0};
    if (!dtype_is_signed(to)) r = grain_of_type(to);
    if (dtype_is_float(from)) rough(G);
  }
  if (exact(G) && from == DT_f8e8m0) return 0;
  if (!settle(G, to, &r)) return 0;
  Attr at[2] = {a_dtype(to), a_int(AT_sat, below(G, 2))};
  return node(G, op, &x, 1, at, chance(G, 40) ? 2 : 1, r);
}

/* ---- reductions ---- */

Val row_reduce(Gen *G, Op op) {
  bool minmax = op == OP_reduce_max || op == OP_reduce_min;
  Val x = some(G, minmax ? "FIUB" : "FIU", 0, LEAST_RANK);
  Type t = type_of(G, x);
  Dim axes[MAX_RANK];
  u32 n = 0;
  double count = 1;
  for (u32 i = 0; i < t.rank; i++)
    if (chance(G, 50)) {
      axes[n++] = i;
      count *= (double)hi_of(G, t.dim[i]);
      if (lo_of(G, t.dim[i]) == 0 && minmax && exact(G) && dtype_is_float(t.dt)) return 0; /* inf */
    }
  if (n > 1 && chance(G, 30)) {
    Dim tmp = axes[0];
    axes[0] = axes[n - 1];
    axes[n - 1] = tmp;
  }
  Grain r = *grain_of(G, x);
  if (op == OP_reduce_sum || op == OP_resume_sum) r.mag *= count > 1 ? count : 1;
  if (op == OP_reduce_prod) r = (Grain){pow(r.mag > 1 ? r.mag : 1, count), r.q * (int)count};
  if (minmax && !dtype_is_float(t.dt))
    r = grain_of_type(t.dt); /* of nothing: the end of the type */
  if (op == OP_reduce_prod && exact(G) && dtype_is_float(t.dt) && count > 64) return 0;
  if (!settle(G, t.dt, &r)) return 0;
  if (op == OP_reduce_prod) rough(G);
  Attr at[2] = {a_list(AT_axes, axes, n), a_int(AT_keep, below(G, 2))};
  if (op != OP_resume_sum) return node(G, op, &x, 1, at, 2, r);
  if (!n) return 0;
  if (dtype_is_float(t.dt) && dtype_acc(t.dt) != t.dt) return 0;
  Val sum = node(G, OP_reduce_sum, &x, 1, at, 2, r), both[2] = {x, sum};
  r.mag *= 2;
  return settle(G, t.dt, &r) ? node(G, op, both, 2, at, 2, r) : sum;
}

Val row_arg(Gen *G, Op op) {
  Val x = some(G, "FIUB", 1, LEAST_RANK);
  Type t = type_of(G, x);
  u32 axis = below(G, t.rank);
  if (lo_of(G, t.dim[axis]) < 1) return 0;
  rough(G);
  Attr at[3] = {a_int(AT_axis, axis), a_int(AT_keep, below(G, 2)), a_int(AT_last, below(G, 2))};
  return node(G, op, &x, 1, at, 3, (Grain){(double)hi_of(G, t.dim[axis]), 0});
}

Val row_cum(Gen *G, Op op) {
  Val x = some(G, "FIU", 1, LEAST_RANK);
  Type t = type_of(G, x);
  u32 axis = below(G, t.rank);
  double n = (double)hi_of(G, t.dim[axis]);
  Grain r = *grain_of(G, x);
  if (op == OP_cumsum)
    r.mag *= n > 1 ? n : 1;
  else
    r = (Grain){pow(r.mag > 1 ? r.mag : 1, n), r.q * (int)n};
  if (!settle(G, t.dt, &r)) return 0;
  if (op == OP_cumprod) rough(G);
  Attr at[3] = {a_int(AT_axis, axis), a_int(AT_exclusive, below(G, 2)),
                a_int(AT_reverse, below(G, 2))};
  return node(G, op, &x, 1, at, 3, r);
}

Val row_topk(Gen *G, Op op) {
  Val x = some(G, "FIUB", 1, 4);
  Type t = type_of(G, x);
  u32 axis = below(G, t.rank);
  i64 lo = lo_of(G, t.dim[axis]);
  Dim k = chance(G, 30) ? t.dim[axis] : rng_between(&G->rng, 0, lo);
  rough(G);
  Attr at[3] = {a_int(AT_axis, axis), a_list(AT_k, &k, 1), a_int(AT_largest, below(G, 2))};
  return node(G, op, &x, 1, at, 3, *grain_of(G, x));
}

Val row_suppress(Gen *G, Op op) {
  Dim d[3] = {any_dim(G, 0), any_dim(G, 0), any_dim(G, 0)}, box[3] = {d[0], d[2], 4};
  Dim k = chance(G, 50) ? d[2] : below(G, 9);
  Dim to[3] = {d[0], d[1], k};
  if (!small(G, d, 3) || !small(G, box, 3) || !small(G, to, 3)) return 0;
  Val in[5] = {some_of(G, DT_f32, d, 3), some_of(G, DT_f32, box, 3)};
  in[2] = scalar_of(G, DT_f32, 0.25 * below(G, 4));
  in[3] = scalar_of(G, DT_f32, chance(G, 50) ? -INFINITY : 0);
  in[4] = scalar_of(G, DT_i64, below(G, 9));
  rough(G);
  Attr at[2] = {a_str(G, AT_kind, box_kind_name[below(G, BX_COUNT)]), a_list(AT_k, &k, 1)};
  return node(G, op, in, 5, at, 2, (Grain){(double)hi_of(G, d[2]), 0});
}

/* ---- contractions ---- */

/* Letters of the second operand: some of the first, some new; the usual product half of the time.
 */
static u32 letters_of_b(Gen *G, const Type *a, char *b, Dim *d, const Dim *extent) {
  u32 n = 0;
  if (a->rank && chance(G, 50)) {
    if (a->rank > 2 && chance(G, 30)) b[n++] = 'a';
    b[n++] = (char)('a' + a->rank - 1);
    b[n++] = (char)('a' + a->rank);
    if (chance(G, 30)) {
      char tmp = b[n - 1];
      b[n - 1] = b[n - 2];
      b[n - 2] = tmp;
    }
  } else {
    for (u32 i = 0; i < a->rank; i++)
      if (chance(G, 50)) b[n++] = (char)('a' + i);
    for (u32 i = 0; i < 2; i++)
      if (chance(G, 50)) b[n++] = (char)('a' + a->rank + i);
    for (u32 i = 0; i + 1 < n; i++) {
      u32 k = i + below(G, n - i);
      char tmp = b[i];
      b[i] = b[k];
      b[k] = tmp;
    }
  }
  for (u32 i = 0; i < n; i++) {
    u32 k = (u32)(b[i] - 'a');
    d[i] = extent[k];
  }
  return n;
}

Val row_contract(Gen *G, Op op) {
  Val in[2] = {some(G, "FIU", 0, 4)};
  Type a = type_of(G, in[0]);
  char b[8] = {0}, spec[32] = {0};
  Dim extent[8], d[8], out[8];
  bool open[8] = {false};
  for (u32 i = 0; i < 8; i++) open[i] = i >= a.rank;
  for (u32 i = 0; i < a.rank; i++) extent[i] = a.dim[i];
  for (u32 i = a.rank; i < 8; i++) extent[i] = any_dim(G, 0);
  u32 nb = letters_of_b(G, &a, b, d, extent);
  u32 at = 0, nout = 0;
  for (u32 i = 0; i < a.rank; i++) spec[at++] = (char)('a' + i);
  spec[at++] = ',';
  for (u32 i = 0; i < nb; i++) {
    spec[at++] = b[i];
    open[b[i] - 'a'] = false;
  }
  spec[at++] = '-';
  spec[at++] = '>';
  u32 from = at;
  double all = 1, summed = 1;
  bool usual = chance(G, 60);
  for (u32 i = 0; i < 8; i++) {
    if (open[i]) continue;
    bool shared = i < a.rank && memchr(b, 'a' + (int)i, nb);
    bool keep = usual ? !shared || (i == 0 && a.rank > 2) : chance(G, 60);
    all *= (double)hi_of(G, extent[i]);
    if (!keep) {
      summed *= (double)hi_of(G, extent[i]);
      continue;
    }
    spec[at++] = (char)('a' + i);
    out[nout++] = extent[i];
  }
  if (!usual && nout > 1 && chance(G, 50)) {
    char tmp = spec[from];
    spec[from] = spec[at - 1];
    spec[at - 1] = tmp;
    Dim dtmp = out[0];
    out[0] = out[nout - 1];
    out[nout - 1] = dtmp;
  }
  if (!small(G, d, nb) || !small(G, out, nout) || all > 40.0 * (double)G->most) return 0;
  in[1] = some_of(G, a.dt, d, nb);
  Grain x = *grain_of(G, in[0]), y = *grain_of(G, in[1]);
  Grain r = {x.mag * y.mag * (summed > 1 ? summed : 1), x.q + y.q};
  if (!settle(G, a.dt, &r)) return 0;
  if (exact(G) && dtype_is_float(a.dt) && !grain_fits(dtype_acc(a.dt), r)) return 0;
  Attr attr = a_str(G, AT_spec, spec);
  return node(G, op, in, 2, &attr, 1, r);
}

/* ---- windows ---- */

typedef struct Slide {
  Dim window[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
} Slide;

static void slide(Gen *G, const Dim *d, u32 n, Slide *s) {
  static const i64 size[] = {1, 1, 2, 3, 3, 3, 4, 5, 7}, pad[] = {0, 0, 0, 1, 1, 2, 3};
  bool same = chance(G, 60); /* as in most models */
  for (u32 i = 0; i < n; i++) {
    bool copy = same && i > 0;
    s->window[i] = copy ? s->window[0] : size[below(G, 9)];
    s->stride[i] = copy ? s->stride[0] : chance(G, 60) ? 1 : 1 + below(G, 3);
    s->dilation[i] = copy ? s->dilation[0] : chance(G, 70) ? 1 : 1 + below(G, 3);
    s->lo[i] = copy ? s->lo[0] : pad[below(G, 7)];
    s->hi[i] = copy ? s->hi[0] : chance(G, 60) ? s->lo[i] : pad[below(G, 7)];
    i64 room = lo_of(G, d[i]) + s->lo[i] + s->hi[i];
    while (s->window[i] > 1 && (s->window[i] - 1) * s->dilation[i] + 1 > room)
      s->dilation[i] > 1 ? s->dilation[i]-- : s->window[i]--;
    if (room < 1) s->lo[i]++;
  }
}

static u32 slide_attrs(const Slide *s, u32 n, Attr *at) {
  at[0] = a_list(AT_stride, s->stride, n);
  at[1] = a_list(AT_dilation, s->dilation, n);
  at[2] = a_list(AT_pad_lo, s->lo, n);
  at[3] = a_list(AT_pad_hi, s->hi, n);
  return 4;
}

static i64 extent(Gen *G, const Dim *d, const Slide *s, u32 i) {
  return (hi_of(G, d[i]) + s->lo[i] + s->hi[i] - (s->window[i] - 1) * s->dilation[i] - 1) /
             s->stride[i] +
         1;
}

/* Something a convolution may read. */
static Val image(Gen *G) {
  for (int tries = 0; tries < 6 && G->seen.n; tries++) {
    Val v = some(G, "FIU", 2, LEAST_RANK);
    Type t = type_of(G, v);
    if (dim_is_const(t.dim[1]) && t.dim[1] > 0) return v;
  }
  static const i64 channels[] = {1, 2, 3, 4, 6, 8, 8, 16, 16};
  Dim d[MAX_RANK];
  u32 rank = chance(G, 70) ? 4 : 2 + below(G, 4);
  for (u32 i = 0; i < rank; i++) d[i] = any_dim(G, i == 1);
  d[1] = channels[below(G, 9)];
  for (int tries = 0; tries < 40 && !small(G, d, rank); tries++) {
    u32 i = below(G, rank);
    if (d[i] > 1 || d[i] < 0) d[i] = d[i] < 0 ? 2 : d[i] / 2;
  }
  return small(G, d, rank) ? leaf_of(G, any_dtype(G, "FFIU"), d, rank) : 0;
}

Val row_conv(Gen *G, Op op) {
  Val in[2] = {image(G)};
  if (!in[0]) return 0;
  Type x = type_of(G, in[0]);
  if (!dim_is_const(x.dim[1])) return 0;
  static const i64 filters[] = {1, 2, 3, 4, 8, 16}, each[] = {1, 2, 3, 4, 4, 8};
  i64 c = x.dim[1], group = 1;
  if (chance(G, 40) && c)
    for (int tries = 0; tries < 6; tries++) {
      i64 k = chance(G, 40) ? c : rng_between(&G->rng, 1, c);
      if (c % k == 0) group = k;
    }
  u32 ns = x.rank - 2;
  Slide s;
  slide(G, x.dim + 2, ns, &s);
  Dim w[MAX_RANK] = {group * (group > 1 ? each : filters)[below(G, 6)], c / group};
  double out = (double)hi_of(G, x.dim[0]) * (double)w[0], k = (double)w[1];
  for (u32 i = 0; i < ns; i++) {
    w[2 + i] = s.window[i];
    k *= (double)s.window[i];
    out *= (double)extent(G, x.dim + 2, &s, i);
  }
  if (!small(G, w, x.rank) || out > (double)G->most || out * k > 60.0 * (double)G->most) return 0;
  Fill f = fill_any(&G->rng, x.dt, G->mode);
  if (exact(G)) f.grain = (Grain){f.grain.mag > 2 ? 2 : f.grain.mag, f.grain.q > 1 ? 1 : f.grain.q};
  if (dtype_is_int(x.dt)) f.grain.q = 0;
  in[1] = chance(G, 75) ? const_of(G, x.dt, w, x.rank, f) : param_of(G, x.dt, w, x.rank, f);
  Grain a = *grain_of(G, in[0]), r = {a.mag * f.grain.mag * (k > 1 ? k : 1), a.q + f.grain.q};
  if (!settle(G, x.dt, &r)) return 0;
  if (exact(G) && dtype_is_float(x.dt) && !grain_fits(dtype_acc(x.dt), r)) return 0;
  Attr at[5];
  u32 n = slide_attrs(&s, ns, at);
  at[n++] = a_int(AT_group, group);
  return node(G, op, in, 2, at, n, r);
}

Val row_pool(Gen *G, Op op) {
  Val x = some(G, "FIU", 0, LEAST_RANK);
  Type t = type_of(G, x);
  u32 ns = chance(G, 70) && t.rank > 2 ? t.rank - 2 : below(G, t.rank + 1);
  const Dim *d = t.dim + (t.rank - ns);
  Slide s;
  slide(G, d, ns, &s);
  double out = count_hi(G, t.dim, t.rank - ns), k = 1;
  for (u32 i = 0; i < ns; i++) {
    k *= (double)s.window[i];
    out *= (double)extent(G, d, &s, i);
    /* a window of nothing but padding gives -inf */
    if (op == OP_pool_max && exact(G) && dtype_is_float(t.dt) &&
        (s.lo[i] >= s.window[i] || s.hi[i] >= s.window[i] || s.dilation[i] > 1 ||
         lo_of(G, d[i]) < 1 || s.stride[i] > s.window[i]))
      return 0;
  }
  if (out > (double)G->most || out * k > 60.0 * (double)G->most) return 0;
  Grain r = *grain_of(G, x);
  if (op == OP_pool_sum) r.mag *= k;
  if (op == OP_pool_max && !dtype_is_float(t.dt)) r = grain_of_type(t.dt);
  if (op == OP_pool_argmax) {
    r = (Grain){count_hi(G, d, ns) + 1, 0};
    rough(G);
  }
  if (!settle(G, op == OP_pool_argmax ? DT_i64 : t.dt, &r)) return 0;
  Attr at[5];
  u32 n = slide_attrs(&s, ns, at);
  at[n++] = a_list(AT_window, s.window, ns);
  return node(G, op, &x, 1, at, n, r);
}
