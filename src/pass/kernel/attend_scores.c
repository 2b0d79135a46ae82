/* attend_scores.c: scores of a tile of rows with a block of keys; see lower_attention.c.
 *
 * Keys that are not packed: vectors along the depth of queries and keys, four keys at a time. The
 * vectors of partial sums are then reduced across into one vector of scores, as in
 * lower_dot_rows.c. A single row has the same bits as among others.
 *
 * Packed keys: if the number of keys is known, so is that of the rows, and it is large. The keys of
 * a block are transposed once for all rows. A step multiplies a vector of keys by one broadcast
 * element of a query.
 */
#include "pass/kernel/attend.h"

Nest attend_nest(const Attend *x, const Form *f, const ExprId *val) {
  Nest n = {.l = x->l, .p = x->p, .f = f, .at = prog_end(), .sub = val};
  n.in.inner = (InnerVars){1, {{x->lane, x->lanes}}};
  return n;
}

ExprId attend_vector(const Attend *x, const Form *f, const ExprId *val, u32 k) {
  Vectorizer w = {.p = x->p, .lane = x->lane, .lanes = x->lanes, .once = &x->l->once};
  Nest n = attend_nest(x, f, val);
  ExprId e = ex_cast(x->p, DT_f32, nest_load(&n, k), false);
  return ex_mentions(x->p, e, x->lane) ? widen(&w, e) : 0;
}

ExprId attend_finished(Attend *x, ExprId score) {
  Prog *p = x->p;
  if (x->a->seen == x->scores) return score;
  ExprId idx[MAX_RANK];
  Nest n = attend_nest(x, &x->s, x->val_s);
  for (u32 i = 0; i < x->dims; i++) idx[i] = nest_index(&n, &x->s.out, i);
  ExprScope in = n.in;
  in.acc = x->scores;
  in.acc_expr = score;
  ExprId e = inlined_eval(x->l, x->a->seen, idx, &in);
  return ex_cast(p, DT_f32, e, false);
}

/* Reduces the lanes of a and b to groups of `each`, alternating between a and b. */
static VarId reduce_pair(Prog *p, Cursor *at, VarId a, VarId b, u32 each) {
  return tile_let(
      p, at, plus(p, tile_lane_groups(p, a, b, each, false), tile_lane_groups(p, a, b, each, true)),
      "s");
}

static VarId held(Prog *p, Cursor *at, BufId reg, i64 i, i64 j) {
  return tile_let(p, at, reg_load(p, reg, ex_int(p, i), ex_int(p, j)), "s");
}

/* Clamps a key index to the last key. */
static ExprId clamped(const Attend *x, ExprId key) {
  Prog *p = x->p;
  ExprId last = ex_op2(p, OP_sub, ex_dim(p, extent(x, x->a->key)), ex_int(p, 1));
  return ex_op2(p, OP_min, key, last);
}

/* Scores of the c-th TILE_KEYS keys of a group, in memory order, as the hardware prefetcher needs.
 * Yields a vector per row in which every key has a quarter of the lanes. */
static void some_scores(Attend *x, const AttendTile *t, Cursor *at, ExprId first, u32 c,
                        VarId *to) {
  Prog *p = x->p;
  ExprId *key = &x->val_s[x->of_s[x->a->key]];
  VarId at_key[TILE_KEYS];
  BufId acc = tile_registers(p, DT_f32, x->lanes, t->rows, TILE_KEYS, "acc");
  for (u32 i = 0; i < TILE_KEYS; i++) { /* past the end, repeat the last key */
    ExprId e = plus(p, ex_copy(p, first), ex_int(p, c * TILE_KEYS + i));
    at_key[i] = let_new(p, at, "key", clamped(x, e));
  }
  for (i64 r = 0; r < t->rows; r++)
    for (u32 i = 0; i < TILE_KEYS; i++)
      reg_store(p, at, acc, ex_int(p, r), ex_int(p, i), splat_of(x, number(p, 0)));
  Cursor in = *at;
  ExprId v =
      ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, x->s.axis[x->depth].hi / x->lanes), "v"));
  x->val_s[x->depth] = lane_index(x, v);
  VarId q[MAX_ROWS];
  for (i64 r = 0; r < t->rows; r++) {
    set_row(x, t, r);
    q[r] = let_pinned(p, &in, attend_vector(x, &x->s, x->val_s, x->query), "q");
  }
  for (u32 i = 0; i < TILE_KEYS; i++) {
    *key = ex_var(p, at_key[i]);
    VarId k = let_pinned(p, &in, attend_vector(x, &x->s, x->val_s, x->keys), "k");
    for (i64 r = 0; r < t->rows; r++) {
      ExprId a = ex_int(p, r), b = ex_int(p, i);
      reg_store(p, &in, acc, a, b,
                fma_or_mul_add(x, ex_var(p, q[r]), ex_var(p, k), reg_load(p, acc, a, b)));
    }
  }
  for (i64 r = 0; r < t->rows; r++) {
    VarId even = reduce_pair(p, at, held(p, at, acc, r, 0), held(p, at, acc, r, 2), x->lanes / 2);
    VarId odd = reduce_pair(p, at, held(p, at, acc, r, 1), held(p, at, acc, r, 3), x->lanes / 2);
    to[r] = reduce_pair(p, at, even, odd, x->lanes / 4);
  }
}

/* Undoes the order of the reduction across: lane i * parts + c has key c * TILE_KEYS + i. */
static ExprId in_order(const Attend *x, Cursor *at, VarId reduced) {
  Prog *p = x->p;
  u32 parts = x->lanes / TILE_KEYS;
  if (parts == 1) return ex_var(p, reduced);
  u8 *pick = NEWS(&p->c->keep, u8, x->lanes);
  for (u32 k = 0; k < x->lanes; k++) pick[k] = (u8)(k % TILE_KEYS * parts + k / TILE_KEYS);
  return ex_var(p, tile_let(p, at, ex_shuffle(p, ex_var(p, reduced), 0, pick, x->lanes), "s"));
}

/* Applies the maps to a vector of scores, from key `first` on. */
static ExprId finished_vector(Attend *x, const AttendTile *t, i64 r, ExprId first, ExprId score) {
  Prog *p = x->p;
  if (x->a->seen == x->scores) return score;
  set_row(x, t, r);
  x->val_s[x->of_s[x->a->key]] = plus(p, ex_copy(p, first), ex_var(p, x->lane));
  Vectorizer w = {.p = p,
                  .lane = x->lane,
                  .lanes = x->lanes,
                  .once = &x->l->once,
                  .acc_var = x->acc,
                  .vec = score};
  return widen(&w, attend_finished(x, ex_var(p, x->acc)));
}

ExprId attend_count(const Attend *x, const AttendTile *t) {
  Prog *p = x->p;
  ExprId n = ex_op2(p, OP_sub, ex_var(p, t->stop), ex_var(p, t->from));
  return ex_op2(p, OP_min, n, ex_int(p, KEYS)); /* redundant: gives estimates an upper bound */
}

ExprId attend_groups(const Attend *x, const AttendTile *t) {
  Prog *p = x->p;
  ExprId n = plus(p, attend_count(x, t), ex_int(p, x->lanes - 1));
  return ex_op2(p, OP_div, n, ex_int(p, x->lanes));
}

void attend_pack(Attend *x, Cursor at, VarId from) {
  Prog *p = x->p;
  VarId v[MAX_LANES];
  ExprId *key = &x->val_s[x->of_s[x->a->key]], panels = ex_int(p, KEYS / x->lanes);
  ExprId g = ex_var(p, prog_for(p, &at, ex_int(p, 0), panels, "g"));
  i64 vectors = x->s.axis[x->depth].hi / x->lanes;
  ExprId d = ex_var(p, prog_for(p, &at, ex_int(p, 0), ex_int(p, vectors), "d"));
  for (u32 i = 0; i < x->lanes; i++) {
    ExprId place = plus(p, times(p, ex_copy(p, g), x->lanes), ex_int(p, i));
    *key = clamped(x, plus(p, ex_var(p, from), place));
    x->val_s[x->depth] = lane_index(x, ex_copy(p, d));
    v[i] = tile_let(p, &at, attend_vector(x, &x->s, x->val_s, x->keys), "k");
  }
  for (u32 each = x->lanes / 2; each > 0; each /= 2)
    for (u32 i = 0; i < x->lanes; i++) {
      if (i & each) continue;
      VarId a = v[i], b = v[i + each];
      v[i] = tile_let(p, &at, tile_lane_groups(p, a, b, each, false), "k");
      v[i + each] = tile_let(p, &at, tile_lane_groups(p, a, b, each, true), "k");
    }
  for (u32 i = 0; i < x->lanes; i++)
    reg_store(p, &at, x->panels, plus(p, times(p, ex_copy(p, d), x->lanes), ex_int(p, i)),
              times(p, ex_copy(p, g), x->lanes), ex_var(p, v[i]));
}

/* Scores from packed keys, `count` panels at a time. */
static void packed_scores(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  i64 all = KEYS / x->lanes, count = x->budget / t->rows;
  while (count > 1 && all % count) count--;
  if (count > all) count = all;
  BufId acc = tile_registers(p, DT_f32, x->lanes, t->rows, count, "acc");
  ExprId g = ex_int(p, 0);
  if (count < all) g = ex_var(p, prog_for(p, &at, g, ex_int(p, all / count), "g"));
  ExprId first = times(p, g, count * x->lanes);
  for (i64 r = 0; r < t->rows; r++)
    for (i64 v = 0; v < count; v++)
      reg_store(p, &at, acc, ex_int(p, r), ex_int(p, v), splat_of(x, number(p, 0)));
  Cursor in = at;
  VarId d = prog_for(p, &in, ex_int(p, 0), ex_dim(p, x->s.axis[x->depth].hi), "d"), k[KEYS];
  for (i64 v = 0; v < count; v++) {
    ExprId place = plus(p, ex_copy(p, first), ex_int(p, v * x->lanes));
    k[v] = let_pinned(p, &in, at2(p, x->panels, ex_var(p, d), place, x->lanes), "k");
  }
  x->val_s[x->depth] = ex_var(p, d);
  for (i64 r = 0; r < t->rows; r++) {
    set_row(x, t, r);
    Nest n = attend_nest(x, &x->s, x->val_s);
    ExprId e = ex_cast(p, DT_f32, nest_load(&n, x->query), false);
    VarId q = tile_let(p, &in, splat_of(x, e), "q");
    for (i64 v = 0; v < count; v++) {
      ExprId i = ex_int(p, r), j = ex_int(p, v);
      reg_store(p, &in, acc, i, j,
                fma_or_mul_add(x, ex_var(p, q), ex_var(p, k[v]), reg_load(p, acc, i, j)));
    }
  }
  for (i64 r = 0; r < t->rows; r++)
    for (i64 v = 0; v < count; v++) {
      ExprId place = plus(p, ex_copy(p, first), ex_int(p, v * x->lanes));
      ExprId e = reg_load(p, acc, ex_int(p, r), ex_int(p, v));
      if (!x->finish_last) {
        ExprId key = plus(p, ex_var(p, t->from), ex_copy(p, place));
        e = finished_vector(x, t, r, key, e);
      }
      reg_store(p, &at, x->score, ex_int(p, r), place, e);
    }
}

/* Remainder of the depth after the vectors, element by element. */
static void last_products(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  i64 depth = x->s.axis[x->depth].hi;
  if (depth % x->lanes == 0) return;
  for (i64 r = 0; r < t->rows; r++) {
    Cursor in = at;
    VarId k = prog_for(p, &in, ex_int(p, 0), attend_count(x, t), "k");
    ExprId place = ex_var(p, k), row = ex_int(p, r);
    VarId d = prog_for(p, &in, ex_int(p, depth / x->lanes * x->lanes), ex_int(p, depth), "d");
    set_row(x, t, r);
    x->val_s[x->of_s[x->a->key]] = plus(p, ex_var(p, t->from), ex_var(p, k));
    x->val_s[x->depth] = ex_var(p, d);
    Nest n = attend_nest(x, &x->s, x->val_s);
    ExprId a = ex_cast(p, DT_f32, nest_load(&n, x->query), false);
    ExprId b = ex_cast(p, DT_f32, nest_load(&n, x->keys), false);
    reg_store(p, &in, x->score, row, place,
              fma_or_mul_add(x, a, b, at2(p, x->score, row, place, 1)));
  }
}

void attend_scores(Attend *x, const AttendTile *t, Cursor at) {
  if (x->packed) {
    packed_scores(x, t, at);
    return;
  }
  Prog *p = x->p;
  Cursor all = at;
  u32 parts = x->lanes / TILE_KEYS;
  VarId z[MAX_LANES / TILE_KEYS][MAX_ROWS];
  VarId g = prog_for(p, &at, ex_int(p, 0), attend_groups(x, t), "g");
  VarId first =
      let_new(p, &at, "first", plus(p, ex_var(p, t->from), times(p, ex_var(p, g), x->lanes)));
  for (u32 c = 0; c < parts; c++) some_scores(x, t, &at, ex_var(p, first), c, z[c]);
  for (i64 r = 0; r < t->rows; r++) {
    for (u32 n = parts / 2; n > 0; n /= 2)
      for (u32 c = 0; c < n; c++) z[c][r] = reduce_pair(p, &at, z[c][r], z[c + n][r], n);
    ExprId e = in_order(x, &at, z[0][r]);
    if (!x->finish_last) e = finished_vector(x, t, r, ex_var(p, first), e);
    reg_store(p, &at, x->score, ex_int(p, r), times(p, ex_var(p, g), x->lanes), e);
  }
  last_products(x, t, all);
}

void attend_finish(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  for (i64 r = 0; r < t->rows; r++) {
    ExprId n = attend_count(x, t);
    ExprId whole = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, x->lanes));
    Cursor in = at;
    VarId g = prog_for(p, &in, ex_int(p, 0), ex_copy(p, whole), "g");
    ExprId place = times(p, ex_var(p, g), x->lanes);
    ExprId first = plus(p, ex_var(p, t->from), ex_copy(p, place));
    ExprId e = at2(p, x->score, ex_int(p, r), ex_copy(p, place), x->lanes);
    reg_store(p, &in, x->score, ex_int(p, r), place, finished_vector(x, t, r, first, e));
    in = at;
    VarId k = prog_for(p, &in, times(p, whole, x->lanes), n, "k");
    x->val_s[x->of_s[x->a->key]] = plus(p, ex_var(p, t->from), ex_var(p, k));
    e = attend_finished(x, at2(p, x->score, ex_int(p, r), ex_var(p, k), 1));
    reg_store(p, &in, x->score, ex_int(p, r), ex_var(p, k), e);
  }
}
