/* rows_move.c: rows that move elements: views, joins, gathers, scatters; and leaves. */
#include "grow.h"

#include <string.h>

static Grain wider(Grain a, Grain b) {
  return (Grain){a.mag > b.mag ? a.mag : b.mag, a.q > b.q ? a.q : b.q};
}

/* ---- views ---- */

/* Neighbors are merged and extents split; a part of a shape that is constant is cut up anew. */
static u32 other_shape(Gen *G, const Type *t, Dim *d) {
  u32 n = 0;
  Dims *ds = G->g->dims;
  if (type_is_static(t) && chance(G, 60)) {
    i64 left = 1;
    for (u32 i = 0; i < t->rank; i++) left *= t->dim[i];
    if (!left) {
      for (u32 i = below(G, 4); i-- > 0;) d[n++] = below(G, 4);
      d[n++] = 0;
      return n;
    }
    while (left > 1 && n < 4) {
      i64 k = left;
      for (int tries = 0; tries < 6; tries++) {
        i64 try = rng_between(&G->rng, 1, left);
        if (left % try == 0) k = try;
      }
      d[n++] = k;
      left /= k;
    }
    if (left > 1) d[n - 1] *= left;
    if (chance(G, 20)) d[n++] = 1;
    return n;
  }
  for (u32 i = 0; i < t->rank; i++) {
    if (n && chance(G, 40))
      d[n - 1] = dim_mul(ds, d[n - 1], t->dim[i]);
    else
      d[n++] = t->dim[i];
    if (n < LEAST_RANK && chance(G, 15)) d[n++] = 1;
  }
  return n;
}

Val row_reshape(Gen *G, Op op) {
  Val x = some(G, "FIUB", 0, LEAST_RANK);
  Type t = type_of(G, x);
  Dim d[2 * MAX_RANK];
  u32 n = other_shape(G, &t, d);
  if (n > LEAST_RANK + 1) return 0;
  Attr at = a_list(AT_shape, d, n);
  return node(G, op, &x, 1, &at, 1, *grain_of(G, x));
}

Val row_transpose(Gen *G, Op op) {
  Val x = some(G, "FIUB", 0, LEAST_RANK);
  u32 rank = type_of(G, x).rank;
  Dim perm[MAX_RANK];
  for (u32 i = 0; i < rank; i++) perm[i] = i;
  for (u32 i = 0; i + 1 < rank; i++) {
    u32 k = i + below(G, rank - i);
    Dim tmp = perm[i];
    perm[i] = perm[k];
    perm[k] = tmp;
  }
  Attr at = a_list(AT_perm, perm, rank);
  return node(G, op, &x, 1, &at, 1, *grain_of(G, x));
}

Val row_slice(Gen *G, Op op) {
  Val x = some(G, "FIUB", 0, LEAST_RANK);
  Type t = type_of(G, x);
  Dims *ds = G->g->dims;
  Dim start[MAX_RANK], step[MAX_RANK], size[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) {
    Dim d = t.dim[i];
    i64 lo = lo_of(G, d);
    start[i] = 0, step[i] = 1, size[i] = d;
    if (chance(G, 35)) continue;
    if (!dim_is_const(d)) {
      u32 how = below(G, 3);
      if (lo < 1) continue;
      if (how == 0) { /* reversed */
        start[i] = dim_addk(ds, d, -1);
        step[i] = -1;
      } else if (how == 1) { /* all but the first */
        start[i] = 1;
        size[i] = dim_addk(ds, d, -1);
      } else {
        size[i] = rng_between(&G->rng, 0, lo);
      }
      continue;
    }
    static const i64 steps[] = {1, 1, 1, 2, 3, -1, -1, -2};
    step[i] = steps[below(G, 8)];
    start[i] = d ? below(G, (u32)d) : 0;
    i64 room = !d ? 0 : step[i] > 0 ? (d - 1 - start[i]) / step[i] + 1 : start[i] / -step[i] + 1;
    size[i] = chance(G, 60) ? room : rng_between(&G->rng, 0, room);
  }
  Attr at[3] = {a_list(AT_start, start, t.rank), a_list(AT_step, step, t.rank),
                a_list(AT_size, size, t.rank)};
  return node(G, op, &x, 1, at, 3, *grain_of(G, x));
}

Val row_broadcast(Gen *G, Op op) {
  Val x = some(G, "FIUB", 0, 4);
  Type t = type_of(G, x);
  Dim d[MAX_RANK];
  u32 more = below(G, LEAST_RANK - t.rank > 2 ? 3 : LEAST_RANK - t.rank + 1);
  for (u32 i = 0; i < more; i++) d[i] = any_dim(G, 0);
  for (u32 i = 0; i < t.rank; i++) d[more + i] = t.dim[i] == 1 ? any_dim(G, 0) : t.dim[i];
  if (!small(G, d, t.rank + more)) return 0;
  Attr at = a_list(AT_shape, d, t.rank + more);
  return node(G, op, &x, 1, &at, 1, *grain_of(G, x));
}

/* ---- joins ---- */

Val row_concat(Gen *G, Op op) {
  Val in[4] = {some(G, "FIUB", 1, LEAST_RANK)};
  Type t = type_of(G, in[0]);
  u32 n = 1 + below(G, 4), axis = below(G, t.rank);
  Grain r = *grain_of(G, in[0]);
  double sum = (double)hi_of(G, t.dim[axis]);
  for (u32 i = 1; i < n; i++) {
    Dim d[MAX_RANK];
    memcpy(d, t.dim, t.rank * sizeof *d);
    for (int tries = 0; tries < 6; tries++) { /* one that is there, of any extent on the axis */
      Val v = G->seen.at[below(G, G->seen.n)];
      Type u = type_of(G, v);
      bool fits = u.dt == t.dt && u.rank == t.rank;
      for (u32 k = 0; fits && k < t.rank; k++) fits = k == axis || u.dim[k] == t.dim[k];
      if (fits) d[axis] = u.dim[axis];
      if (fits) break;
      d[axis] = any_dim(G, 0);
    }
    in[i] = some_of(G, t.dt, d, t.rank);
    sum += (double)hi_of(G, d[axis]);
    r = wider(r, *grain_of(G, in[i]));
  }
  double rest = 1;
  for (u32 k = 0; k < t.rank; k++) rest *= k == axis ? 1 : (double)hi_of(G, t.dim[k]);
  if (rest * sum > (double)G->most) return 0;
  if (G->mode == MODE_exact && !grain_fits(t.dt, r)) return 0;
  Attr at = a_int(AT_axis, axis);
  return node(G, op, in, n, &at, 1, r);
}

Val row_pad(Gen *G, Op op) {
  Val in[2] = {some(G, "FIUB", 0, LEAST_RANK)};
  Type t = type_of(G, in[0]);
  Dim lo[MAX_RANK], hi[MAX_RANK], mid[MAX_RANK], d[MAX_RANK];
  bool spread = chance(G, 30), one_side = chance(G, 20);
  for (u32 i = 0; i < t.rank; i++) {
    lo[i] = chance(G, 40) ? below(G, 4) : 0;
    hi[i] = one_side ? 0 : chance(G, 40) ? below(G, 4) : lo[i];
    mid[i] = spread && lo_of(G, t.dim[i]) > 0 && chance(G, 50) ? 1 + below(G, 2) : 0;
    d[i] = hi_of(G, t.dim[i]) * (1 + mid[i]) + lo[i] + hi[i];
  }
  if (!small(G, d, t.rank)) return 0;
  in[1] = chance(G, 60) ? scalar_of(G, t.dt, 0) : some_of(G, t.dt, NULL, 0);
  Grain r = wider(*grain_of(G, in[0]), *grain_of(G, in[1]));
  if (G->mode == MODE_exact && !grain_fits(t.dt, r)) return 0;
  Attr at[3] = {a_list(AT_lo, lo, t.rank), a_list(AT_hi, hi, t.rank),
                a_list(AT_interior, mid, t.rank)};
  return node(G, op, in, 2, at, 3, r);
}

/* ---- gathers and scatters ---- */

Val row_gather(Gen *G, Op op) {
  Val in[2] = {some(G, "FIUB", 1, 4)};
  Type t = type_of(G, in[0]);
  u32 axis = below(G, t.rank), n = 0;
  if (lo_of(G, t.dim[axis]) < 1) return 0;
  Dim idx[MAX_RANK], d[MAX_RANK];
  u32 rank = any_shape(G, idx, 0, 2, 0);
  for (u32 i = 0; i < axis; i++) d[n++] = t.dim[i];
  for (u32 i = 0; i < rank; i++) d[n++] = idx[i];
  for (u32 i = axis + 1; i < t.rank; i++) d[n++] = t.dim[i];
  if (n > LEAST_RANK || !small(G, d, n)) return 0;
  in[1] = index_of(G, idx, rank, lo_of(G, t.dim[axis]));
  Attr at = a_int(AT_axis, axis);
  return node(G, op, in, 2, &at, 1, *grain_of(G, in[0]));
}

/* Indices of a run: larger than any that are made up, so that none is refused. */
Val row_within(Gen *G, Op op) {
  Dim d[MAX_RANK], size = 64;
  u32 rank = any_shape(G, d, 0, 3, 0);
  Val in = param_of(G, DT_i64, d, rank, (Fill){.mode = MODE_exact, .index = 1 + below(G, 8)});
  Attr at = a_list(AT_size, &size, 1);
  return node(G, op, &in, 1, &at, 1, *grain_of(G, in));
}

/* Extents of indices into x: no more than x has, but for the axis. */
static bool elems_shape(Gen *G, const Type *t, u32 axis, Dim *d) {
  if (lo_of(G, t->dim[axis]) < 1) return false;
  for (u32 i = 0; i < t->rank; i++) {
    i64 lo = lo_of(G, t->dim[i]);
    d[i] = chance(G, 50) ? t->dim[i] : rng_between(&G->rng, 0, lo);
    if (i == axis && chance(G, 50)) d[i] = any_dim(G, 0);
  }
  return small(G, d, t->rank);
}

Val row_gather_elems(Gen *G, Op op) {
  Val in[2] = {some(G, "FIUB", 1, 4)};
  Type t = type_of(G, in[0]);
  u32 axis = below(G, t.rank);
  Dim d[MAX_RANK];
  if (!elems_shape(G, &t, axis, d)) return 0;
  in[1] = index_of(G, d, t.rank, lo_of(G, t.dim[axis]));
  Attr at = a_int(AT_axis, axis);
  return node(G, op, in, 2, &at, 1, *grain_of(G, in[0]));
}

/* Least extent among axes from..from+depth: indices drawn for it are rarely out of grain. */
static i64 least(Gen *G, const Type *t, u32 from, u32 depth) {
  i64 n = 8;
  for (u32 i = from; i < from + depth; i++) n = lo_of(G, t->dim[i]) < n ? lo_of(G, t->dim[i]) : n;
  return n;
}

Val row_gather_nd(Gen *G, Op op) {
  Val in[2] = {some(G, "FIUB", 1, 4)};
  Type t = type_of(G, in[0]);
  u32 batch = chance(G, 60) ? 0 : below(G, t.rank), depth = below(G, t.rank - batch + 1), n = 0;
  if (depth && least(G, &t, batch, depth) < 1) return 0;
  Dim idx[MAX_RANK], d[MAX_RANK], more[MAX_RANK];
  for (u32 i = 0; i < batch; i++) idx[n++] = t.dim[i];
  u32 rows = any_shape(G, more, 0, 2, 0);
  for (u32 i = 0; i < rows; i++) idx[n++] = more[i];
  u32 rank = n;
  memcpy(d, idx, n * sizeof *d);
  for (u32 i = batch + depth; i < t.rank; i++) d[rank++] = t.dim[i];
  idx[n++] = depth;
  if (rank > LEAST_RANK || !small(G, d, rank) || !small(G, idx, n)) return 0;
  in[1] = index_of(G, idx, n, least(G, &t, batch, depth));
  Attr at = a_int(AT_batch, batch);
  return node(G, op, in, 2, &at, 1, *grain_of(G, in[0]));
}

static const char *const reductions[] = {"none", "add", "mul", "max", "min"};

/* What is added or multiplied may meet one place as often as there are updates. */
static bool scatter_grain(Gen *G, DType dt, u32 how, double n, Grain x, Grain u, Grain *r) {
  *r = wider(x, u);
  if (G->mode != MODE_exact) return true;
  if (how == 1) r->mag = x.mag + u.mag * n;
  if (how == 2 && dtype_is_float(dt)) return false;
  if (!dtype_is_float(dt)) *r = grain_of_type(dt);
  return grain_fits(dt, *r);
}

Val row_scatter_elems(Gen *G, Op op) {
  Val in[3] = {some(G, "FIU", 1, 4)};
  Type t = type_of(G, in[0]);
  u32 axis = below(G, t.rank), how = below(G, 5);
  Dim d[MAX_RANK];
  if (!elems_shape(G, &t, axis, d)) return 0;
  in[1] = index_of(G, d, t.rank, lo_of(G, t.dim[axis]));
  in[2] = some_of(G, t.dt, d, t.rank);
  Grain r;
  if (!scatter_grain(G, t.dt, how, count_hi(G, d, t.rank), *grain_of(G, in[0]), *grain_of(G, in[2]),
                     &r))
    return 0;
  if (how == 2) rough(G);
  Attr at[2] = {a_int(AT_axis, axis), a_str(G, AT_reduce, reductions[how])};
  return node(G, op, in, 3, at, 2, r);
}

Val row_scatter_nd(Gen *G, Op op) {
  Val in[3] = {some(G, "FIU", 1, 4)};
  Type t = type_of(G, in[0]);
  u32 depth = below(G, t.rank + 1), how = below(G, 5);
  Dim idx[MAX_RANK], d[MAX_RANK];
  u32 n = any_shape(G, idx, 0, 2, 0), rank = n;
  memcpy(d, idx, n * sizeof *d);
  for (u32 i = depth; i < t.rank; i++) d[rank++] = t.dim[i];
  idx[n++] = depth;
  if (rank > LEAST_RANK || !small(G, d, rank) || !small(G, idx, n)) return 0;
  in[1] = index_of(G, idx, n, least(G, &t, 0, depth));
  in[2] = some_of(G, t.dt, d, rank);
  Grain r;
  if (!scatter_grain(G, t.dt, how, count_hi(G, d, rank), *grain_of(G, in[0]), *grain_of(G, in[2]),
                     &r))
    return 0;
  if (how == 2) rough(G);
  Attr at = a_str(G, AT_reduce, reductions[how]);
  return node(G, op, in, 3, &at, 1, r);
}

Val row_nonzero(Gen *G, Op op) {
  Val x = some(G, "FIUB", 0, 4);
  Type t = type_of(G, x);
  if (count_hi(G, t.dim, t.rank) * (t.rank + 1) > (double)G->most) return 0;
  rough(G);
  return node(G, op, &x, 1, NULL, 0, (Grain){(double)G->most, 0});
}

/* ---- leaves ---- */

Val row_leaf(Gen *G, Op op) {
  Dim d[MAX_RANK];
  u32 rank = any_shape(G, d, 1, 4, 0);
  if (op == OP_dims) {
    u32 one = below(G, 3) ? 1 : 0;
    Attr at[3] = {a_list(AT_shape, d, one ? rank : 1), a_dtype(chance(G, 70) ? DT_i64 : DT_i32),
                  a_int(AT_rank, one)};
    return node(G, op, NULL, 0, at, 3, (Grain){mag_limit(DT_i32), 0});
  }
  if (op == OP_random) {
    static const DType to[] = {DT_f32, DT_f64, DT_f16, DT_bf16};
    DType dt = to[below(G, 4)];
    Attr at[3] = {a_list(AT_shape, d, rank), a_int(AT_seed, below(G, 100)), a_dtype(dt)};
    static const int bits[] = {24, 53, 11, 8};
    for (u32 i = 0; i < 4; i++)
      if (to[i] == dt) return node(G, op, NULL, 0, at, 3, (Grain){1, bits[i]});
  }
  u32 axis = below(G, rank);
  DType dt = any_dtype(G, "FIU");
  Grain r = {(double)hi_of(G, d[axis]), 0};
  if (G->mode == MODE_exact && !grain_fits(dt, r)) return 0;
  if (!dtype_is_float(dt) && r.mag > mag_limit(dt)) r = grain_of_type(dt);
  Attr at[3] = {a_list(AT_shape, d, rank), a_int(AT_axis, axis), a_dtype(dt)};
  return node(G, op, NULL, 0, at, 3, r);
}
