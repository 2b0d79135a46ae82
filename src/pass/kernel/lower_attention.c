/* lower_attention.c: flash attention, without a score matrix in memory.
 *
 * In: an Attention. Out: one kernel, or nothing if vectors do not fit. Rows (queries) go through
 * the keys block by block and keep the maximum score, the sum of weights and the weighted sum of
 * values (online softmax: Milakov and Gimelshein 2018, Dao 2022). When the maximum grows, both sums
 * are rescaled. Blocks start at multiples of KEYS for every row, and sums inside a block have a
 * fixed order. So the bits of a row do not depend on the rows computed with it. A masked key has
 * weight 0 and changes nothing.
 *
 * If keys may be many, blocks are grouped into segments with separate sums, which are merged in
 * order. Threads share few rows by segments and many rows by blocks of rows, with the same bits.
 *
 *   for blocks of rows           parallel, together with heads that do not share keys
 *     for blocks of keys
 *       for tiles of rows
 *         scores                 see attend_scores.c
 *         softmax                vectors along the keys
 *         weighted sums          vectors along the width of the values
 */
#include "pass/kernel/attend.h"

#include <math.h>
#include <string.h>

static BufId scratch(const Attend *x, i64 rows, i64 columns, const char *name) {
  Dim dim[2] = {rows, columns};
  return prog_add_buf(x->p, BS_local, DT_f32, dim, 2, str_of(x->p->c, name));
}

static bool is_plain(const Form *f) {
  for (u32 i = 0; i < f->naxes; i++)
    if (form_guard(f, i, NULL)) return false;
  return f->nin == 2 && f->reduce && f->acc == DT_f32 && f->with == OP_add;
}

/* Maps the dimensions of the scores to axes of both forms. */
static bool find_axes(Attend *x) {
  const Form *s = &x->s, *y = &x->y;
  u32 key = x->a->key, w = x->a->weights;
  x->dims = s->out.rank;
  if (y->in[w].rank != x->dims) return false;
  for (u32 d = 0; d < x->dims; d++) {
    const Index *a = &s->out.idx[d], *b = &y->in[w].idx[d];
    if (a->n != 1 || b->n != 1 || a->coef[0] != 1 || b->coef[0] != 1) return false;
    x->of_s[d] = a->axis[0];
    x->of_y[d] = b->axis[0];
    if (y->axis[b->axis[0]].reduce != (d == key)) return false;
  }
  x->keys = operand_moves(&s->in[1], x->of_s[key]);
  x->query = 1 - x->keys;
  if (!operand_moves(&s->in[x->keys], x->of_s[key]) ||
      operand_moves(&s->in[x->query], x->of_s[key]))
    return false;
  x->depth = x->width = FORM_AXES;
  for (u32 i = 0; i < s->naxes; i++)
    if (s->axis[i].reduce) {
      if (x->depth < FORM_AXES) return false;
      x->depth = i;
    }
  for (u32 i = 0; i < y->naxes; i++)
    if (!operand_moves(&y->in[w], i) && y->axis[i].hi != 1) {
      if (x->width < FORM_AXES) return false;
      x->width = i;
    }
  return x->depth < FORM_AXES && x->width < FORM_AXES;
}

/* Do rows along dimension d share keys and values? */
static bool shares(const Attend *x, u32 d) {
  return d != x->a->key && extent(x, d) != 1 && !operand_moves(&x->s.in[x->keys], x->of_s[d]) &&
         !operand_moves(&x->y.in[x->values], x->of_y[d]);
}

/* Blocks have rows along the last such dimension. Tiles have rows along the one before it if that
 * is short: heads that share keys. */
static bool find_rows(Attend *x) {
  i64 most = x->packed ? x->budget / 2 : x->budget / TILE_KEYS,
      rows = x->packed ? PACKED_ROWS : ROWS;
  i64 at_most = x->packed ? MAX_ROWS : FEW_ROWS;
  if (most > at_most) most = at_most;
  x->tile = x->block = MAX_RANK;
  for (u32 d = 0; d < x->dims; d++) {
    if (!shares(x, d)) continue;
    x->tile = x->block;
    x->block = d;
  }
  if (x->block == MAX_RANK) { /* a single row */
    for (u32 d = 0; d < x->dims; d++)
      if (d != x->a->key) x->block = d;
    if (x->block == MAX_RANK) return false;
    if (extent(x, x->block) != 1) return false;
  }
  bool few = x->tile < MAX_RANK && dim_is_const(extent(x, x->tile)) && extent(x, x->tile) <= rows;
  if (!few) x->tile = x->block;
  RowSplit c = {most, 0, 0};
  if (few) c = tile_cover(extent(x, x->tile), most);
  x->rows = c.size;
  x->each = few ? rows / extent(x, x->tile) : rows / most * most;
  if (dim_is_const(extent(x, x->block)) && extent(x, x->block) < x->each) {
    x->each = extent(x, x->block);
    if (!few && x->each < x->rows) x->rows = x->each;
  }
  return true;
}

/* Chooses the vector width: that of the machine, a half or a quarter, so that it divides depth and
 * width of a head. If not even TILE_KEYS lanes do, the remainder is scalar: slow, but in the same
 * order for any number of rows. */
static bool choose_lanes(Attend *x) {
  Dim depth = x->s.axis[x->depth].hi, width = x->y.axis[x->width].hi;
  if (!dim_is_const(depth) || !dim_is_const(width) || depth < 1 || width < 1) return false;
  while (x->lanes > TILE_KEYS && (depth % x->lanes || width % x->lanes)) x->lanes /= 2;
  return !x->packed || (depth % x->lanes == 0 && width % x->lanes == 0);
}

/* Are all operands contiguous where they must be? Tries it on expressions that are dropped. */
static bool is_wide(Attend *x) {
  Prog *p = x->p;
  ProgMark mark = prog_mark(p);
  for (u32 i = 0; i < x->s.naxes; i++) x->val_s[i] = ex_var(p, prog_add_var(p, DT_i64, 0));
  for (u32 i = 0; i < x->y.naxes; i++) x->val_y[i] = ex_var(p, prog_add_var(p, DT_i64, 0));
  ExprId was = x->val_s[x->depth];
  x->val_s[x->depth] = lane_index(x, ex_copy(p, was));
  x->val_y[x->width] = lane_index(x, x->val_y[x->width]);
  bool ok = attend_vector(x, &x->s, x->val_s, x->keys) &&
            attend_vector(x, &x->s, x->val_s, x->query) &&
            attend_vector(x, &x->y, x->val_y, x->values);
  Nest n = attend_nest(x, &x->y, x->val_y);
  Vectorizer w = {.p = p, .lane = x->lane, .lanes = x->lanes, .once = &x->l->once};
  ExprId idx[MAX_RANK + 1];
  BufId out;
  u32 rank = nest_address(&n, &x->y.out, &out, idx);
  ok = ok && widen_place(&w, &out, idx, &rank);
  x->val_s[x->depth] = was;
  ExprId *key = &x->val_s[x->of_s[x->a->key]];
  *key = lane_index(x, *key);
  ExprId e = attend_finished(x, ex_var(p, x->acc));
  w.acc_var = x->acc;
  w.vec = splat_of(x, number(p, 0));
  ok = ok && widen(&w, e);
  x->finish_loads = false;
  for (ExprVisit k = ex_visit(p, e); ex_next(&k);)
    if (k.e->kind == EX_load)
      for (u32 i = 0; i < k.e->narg; i++)
        x->finish_loads = x->finish_loads || ex_mentions(p, k.e->arg[i], x->lane);
  x->finish_last = x->finish_loads || x->s.axis[x->depth].hi % x->lanes;
  memset(x->val_s, 0, sizeof x->val_s);
  memset(x->val_y, 0, sizeof x->val_y);
  prog_rewind(p, mark);
  return ok;
}

static bool choose(Lower *l, const Attention *a, Attend *x) {
  Prog *p = l->p;
  const Node *root = graph_node(l->g, a->root), *last = graph_producer(l->g, a->masked);
  *x = (Attend){.l = l, .p = p, .a = a, .lanes = l->pass->target->lanes, .values = 1 - a->weights};
  x->budget = (i64)l->pass->target->cost->sums;
  x->packed = dim_is_const(graph_type(l->g, a->masked)->dim[a->key]);
  if (x->packed)
    x->budget -= x->budget / 3; /* one loop with softmax, whose constants need registers */
  x->scores = group_accumulator(l, a->masked);
  const Node *first = graph_producer(l->g, x->scores);
  lower_temp(l, a->masked); /* only the shape of both is used */
  lower_temp(l, root->in[a->weights]);
  if (!form_of(l->g, first, p, l->buf, &x->s) || !form_of(l->g, root, p, l->buf, &x->y))
    return false;
  x->s.out.buf = l->buf[a->masked];
  slot_redirect(l, &x->y);
  if (!last || !is_plain(&x->s) || !is_plain(&x->y) || !find_axes(x) || !find_rows(x)) return false;
  for (u32 k = 0; k < 2; k++)
    if (layout_of(l, x->s.in[k].buf) || layout_of(l, x->y.in[x->values].buf)) return false;
  if (layout_of(l, x->y.out.buf) || !choose_lanes(x)) return false;
  x->lane = prog_add_var(p, DT_i64, str_of(l->c, "lane"));
  x->acc = prog_add_var(p, DT_f32, str_of(l->c, "acc"));
  return is_wide(x);
}

/* End (or start) of the range of keys that a row sees, at the position val_s, clamped to this
 * block. A limit can be any integer, so it is clamped before 1 is added. */
static ExprId limit_of(Attend *x, const KeyLimit *m, ExprId from, ExprId stop) {
  Prog *p = x->p;
  ExprId idx[MAX_RANK];
  Nest n = attend_nest(x, &x->s, x->val_s);
  const Buf *b = prog_buf(p, x->l->buf[m->at]);
  u32 rank = b->rank;
  for (u32 i = 0; i < rank; i++)
    idx[i] = prog_buf(p, x->l->buf[m->at])->dim[i] == 1
                 ? ex_int(p, 0)
                 : nest_index(&n, &x->s.out, x->dims - rank + i);
  ExprId e = ex_cast(p, DT_i64, storage_load(x->l, x->l->buf[m->at], idx, &n.in), false);
  if (m->add) stop = ex_op2(p, OP_sub, stop, ex_int(p, m->add));
  e = plus(p, ex_op2(p, OP_min, e, stop), ex_int(p, m->add));
  return ex_op2(p, OP_max, e, from);
}

static bool has_low(const Attention *a) {
  for (u32 i = 0; i < a->nlimit; i++)
    if (a->limit[i].low) return true;
  return false;
}

/* Do all rows of a tile see the same keys? */
static bool is_common(const Attend *x) {
  const Index *ix = &x->s.out.idx[x->tile];
  for (u32 i = 0; i < x->a->nlimit; i++) {
    const Type *t = graph_type(x->l->g, x->a->limit[i].at);
    u32 trailing = x->dims - x->tile;
    if (t->rank >= trailing && t->dim[t->rank - trailing] != 1) return false;
  }
  return ix->n == 1;
}

/* Computes the range of keys in from..to that each row sees: variables low and high. */
static void find_seen(Attend *x, const AttendTile *t, Cursor *at, VarId from, VarId to, VarId *low,
                      VarId *high) {
  Prog *p = x->p;
  bool common = is_common(x);
  for (i64 r = 0; r < t->rows; r++) {
    low[r] = r ? low[0] : from;
    high[r] = r ? high[0] : to;
    if (!x->a->nlimit || (r && common)) continue;
    set_row(x, t, r);
    x->val_s[x->of_s[x->a->key]] = ex_int(p, 0);
    ExprId e[2] = {ex_var(p, to), ex_var(p, from)};
    for (u32 i = 0; i < x->a->nlimit; i++) {
      const KeyLimit *m = &x->a->limit[i];
      ExprId more = limit_of(x, m, ex_var(p, from), ex_var(p, to));
      e[m->low] = ex_op2(p, m->low ? OP_max : OP_min, e[m->low], more);
    }
    high[r] = let_new(p, at, "high", e[0]);
    if (has_low(x->a)) low[r] = let_new(p, at, "low", e[1]);
  }
}

/* Maximum or minimum of a variable over the rows. */
static ExprId over_rows(Prog *p, Op op, const VarId *v, i64 rows) {
  ExprId e = ex_var(p, v[0]);
  for (i64 r = 1; r < rows; r++)
    if (v[r] != v[0]) e = ex_op2(p, op, e, ex_var(p, v[r]));
  return e;
}

/* Masks the scores of keys that a row does not see. */
static void hide_keys(Attend *x, const AttendTile *t, Cursor at, const VarId *low,
                      const VarId *high) {
  Prog *p = x->p;
  for (i64 r = 0; r < t->rows; r++)
    for (u32 side = 0; side < 1 + (u32)has_low(x->a); side++) {
      ExprId a = ex_op2(p, OP_sub, ex_var(p, high[r]), ex_var(p, t->from));
      ExprId b = times(p, attend_groups(x, t), x->lanes);
      if (side) {
        a = ex_int(p, 0);
        b = ex_op2(p, OP_min, b, ex_op2(p, OP_sub, ex_var(p, low[r]), ex_var(p, t->from)));
      }
      Cursor in = at;
      VarId k = prog_for(p, &in, a, b, "k");
      reg_store(p, &in, x->score, ex_int(p, r), ex_var(p, k), number(p, -INFINITY));
    }
}

/* ---- softmax and weighted sums ---- */

/* Turns scores into weights, and rescales the sums of a row when its maximum grows. */
static void write_weights(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  BufId top = tile_registers(p, DT_f32, x->lanes, 1, 1, "top");
  BufId sum = tile_registers(p, DT_f32, x->lanes, 1, 1, "sum");
  ExprId zero = ex_int(p, 0), r = zero;
  if (t->rows > 1) r = ex_var(p, prog_for(p, &at, ex_int(p, 0), ex_int(p, t->rows), "r"));
  ExprId row = plus(p, ex_copy(p, t->row), ex_copy(p, r));
  reg_store(p, &at, top, zero, zero, splat_of(x, number(p, -INFINITY)));
  Cursor in = at;
  ExprId v =
      times(p, ex_var(p, prog_for(p, &in, ex_int(p, 0), attend_groups(x, t), "g")), x->lanes);
  ExprId e = at2(p, x->score, ex_copy(p, r), v, x->lanes);
  reg_store(p, &in, top, zero, zero, ex_op2(p, OP_max, reg_load(p, top, zero, zero), e));
  ExprId here = tile_reduce_lanes(p, &at, OP_max, reg_load(p, top, zero, zero));
  VarId old = let_new(p, &at, "old", at2(p, x->here.largest, ex_copy(p, row), zero, 1));
  VarId new = let_new(p, &at, "new", ex_op2(p, OP_max, ex_var(p, old), here));
  ExprId none = ex_op2(p, OP_eq, ex_var(p, new), number(p, -INFINITY));
  VarId base = let_new(p, &at, "base", ex_op3(p, OP_select, none, number(p, 0), ex_var(p, new)));
  VarId less =
      let_new(p, &at, "less", exp_of(x, ex_op2(p, OP_sub, ex_var(p, old), ex_var(p, base))));
  reg_store(p, &at, x->here.largest, ex_copy(p, row), zero, ex_var(p, new));
  reg_store(p, &at, x->shrink, ex_copy(p, r), zero, ex_var(p, less));
  reg_store(p, &at, sum, zero, zero, splat_of(x, number(p, 0)));
  in = at;
  v = times(p, ex_var(p, prog_for(p, &in, ex_int(p, 0), attend_groups(x, t), "g")), x->lanes);
  e = at2(p, x->score, ex_copy(p, r), ex_copy(p, v), x->lanes);
  VarId weight =
      tile_let(p, &in, exp_of(x, ex_op2(p, OP_sub, e, splat_of(x, ex_var(p, base)))), "weight");
  reg_store(p, &in, x->score, ex_copy(p, r), v, ex_var(p, weight));
  reg_store(p, &in, sum, zero, zero, plus(p, reg_load(p, sum, zero, zero), ex_var(p, weight)));
  e = tile_reduce_lanes(p, &at, OP_add, reg_load(p, sum, zero, zero));
  ExprId was = at2(p, x->here.total, ex_copy(p, row), zero, 1);
  reg_store(p, &at, x->here.total, row, zero, plus(p, ex_op2(p, OP_mul, was, ex_var(p, less)), e));
}

static VarId weight_of(const Attend *x, Cursor *in, i64 r, VarId k) {
  Prog *p = x->p;
  return tile_let(p, in, splat_of(x, at2(p, x->score, ex_int(p, r), ex_var(p, k), 1)), "w");
}

static VarId panel_of(Attend *x, Cursor *in, ExprId first, i64 v) {
  Prog *p = x->p;
  x->val_y[x->width] = lane_index(x, plus(p, ex_copy(p, first), ex_int(p, v)));
  return let_pinned(p, in, attend_vector(x, &x->y, x->val_y, x->values), "b");
}

/* acc[r, v] += weight of row r * panel first + v of the values, for one key. The smaller set of
 * operands is loaded first and stays in registers. */
static void one_key(Attend *x, const AttendTile *t, Cursor in, BufId acc, VarId k, ExprId first,
                    i64 count) {
  Prog *p = x->p;
  VarId w[MAX_ROWS], b[MAX_PANELS];
  bool by_rows = count < t->rows;
  for (i64 i = 0; i < (by_rows ? count : t->rows); i++) {
    if (by_rows) b[i] = panel_of(x, &in, first, i);
    if (!by_rows) w[i] = weight_of(x, &in, i, k);
  }
  for (i64 i = 0; i < (by_rows ? t->rows : count); i++) {
    if (by_rows) w[i] = weight_of(x, &in, i, k);
    if (!by_rows) b[i] = panel_of(x, &in, first, i);
    for (i64 j = 0; j < (by_rows ? count : t->rows); j++) {
      i64 r = by_rows ? i : j, v = by_rows ? j : i;
      ExprId a = ex_int(p, r), c = ex_int(p, v);
      reg_store(p, &in, acc, a, c,
                fma_or_mul_add(x, ex_var(p, w[r]), ex_var(p, b[v]), reg_load(p, acc, a, c)));
    }
  }
}

/* Adds the weighted values of panels first .. first + count - 1 to the sums of the rows. */
static void add_values(Attend *x, const AttendTile *t, Cursor at, ExprId first, i64 count) {
  Prog *p = x->p;
  BufId acc = tile_registers(p, DT_f32, x->lanes, t->rows, count, "acc");
  ExprId zero = ex_int(p, 0);
  for (i64 r = 0; r < t->rows; r++) {
    VarId less = let_new(p, &at, "less", at2(p, x->shrink, ex_int(p, r), zero, 1));
    for (i64 v = 0; v < count; v++) {
      ExprId place = times(p, plus(p, ex_copy(p, first), ex_int(p, v)), x->lanes);
      ExprId was = at2(p, x->here.sums, row_at(t, p, r), place, x->lanes);
      reg_store(p, &at, acc, ex_int(p, r), ex_int(p, v),
                ex_op2(p, OP_mul, was, splat_of(x, ex_var(p, less))));
    }
  }
  Cursor in = at;
  VarId k = prog_for(p, &in, ex_int(p, 0), attend_count(x, t), "k");
  x->val_y[x->of_y[x->a->key]] = plus(p, ex_var(p, t->from), ex_var(p, k));
  one_key(x, t, in, acc, k, first, count);
  for (i64 r = 0; r < t->rows; r++)
    for (i64 v = 0; v < count; v++)
      reg_store(p, &at, x->here.sums, row_at(t, p, r),
                times(p, plus(p, ex_copy(p, first), ex_int(p, v)), x->lanes),
                reg_load(p, acc, ex_int(p, r), ex_int(p, v)));
}

/* Remainder of the width after the panels, element by element. */
static void last_values(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  i64 width = x->y.axis[x->width].hi;
  for (i64 r = 0; r < t->rows; r++) {
    Cursor in = at;
    ExprId v =
        ex_var(p, prog_for(p, &in, ex_int(p, width / x->lanes * x->lanes), ex_int(p, width), "v"));
    ExprId row = row_at(t, p, r), less = at2(p, x->shrink, ex_int(p, r), ex_int(p, 0), 1);
    reg_store(p, &in, x->here.sums, row, v,
              ex_op2(p, OP_mul, at2(p, x->here.sums, row, v, 1), less));
    VarId k = prog_for(p, &in, ex_int(p, 0), attend_count(x, t), "k");
    x->val_y[x->of_y[x->a->key]] = plus(p, ex_var(p, t->from), ex_var(p, k));
    x->val_y[x->width] = v;
    Nest n = attend_nest(x, &x->y, x->val_y);
    ExprId w = at2(p, x->score, ex_int(p, r), ex_var(p, k), 1);
    ExprId e = ex_cast(p, DT_f32, nest_load(&n, x->values), false);
    reg_store(p, &in, x->here.sums, row, v,
              fma_or_mul_add(x, w, e, at2(p, x->here.sums, row, v, 1)));
  }
}

/* Writes the weighted sums of all panels of values, as many at a time as fit in registers. */
static void all_values(Attend *x, const AttendTile *t, Cursor at) {
  Prog *p = x->p;
  i64 panels = x->y.axis[x->width].hi / x->lanes, most = x->budget / t->rows;
  if (most > MAX_PANELS) most = MAX_PANELS;
  if (panels >= most) {
    Cursor in = at;
    ExprId c = ex_int(p, 0);
    if (panels >= 2 * most) c = ex_var(p, prog_for(p, &in, c, ex_int(p, panels / most), "c"));
    add_values(x, t, in, times(p, c, most), most);
  }
  if (panels % most) add_values(x, t, at, ex_int(p, panels / most * most), panels % most);
  if (x->y.axis[x->width].hi % x->lanes) last_values(x, t, at);
}

/* One tile of rows with the keys from..to of this block. */
static void one_tile(Attend *x, AttendTile t, Cursor at, VarId from, VarId to) {
  Prog *p = x->p;
  VarId low[MAX_ROWS], high[MAX_ROWS];
  t.from = from;
  t.stop = to;
  find_seen(x, &t, &at, from, to, low, high);
  if (x->a->nlimit) {
    t.stop = let_new(p, &at, "stop", over_rows(p, OP_max, high, t.rows));
    ExprId any = ex_op2(p, OP_gt, ex_var(p, t.stop), ex_var(p, from));
    if (has_low(x->a))
      any = ex_op2(p, OP_and, any,
                   ex_op2(p, OP_lt, over_rows(p, OP_min, low, t.rows), ex_var(p, to)));
    prog_if(p, &at, any);
  }
  attend_scores(x, &t, at);
  if (x->finish_last) attend_finish(x, &t, at);
  hide_keys(x, &t, at, low, high);
  write_weights(x, &t, at);
  all_values(x, &t, at);
}

/* All `count` rows of a block from l0 on, in tiles. */
static void all_tiles(Attend *x, Cursor at, VarId l0, VarId count, VarId from, VarId to) {
  Prog *p = x->p;
  if (x->tile != x->block) {
    i64 n = extent(x, x->tile);
    VarId i = prog_for(p, &at, ex_int(p, 0), ex_var(p, count), "i");
    set_axis(x, x->block, plus(p, ex_var(p, l0), ex_var(p, i)));
    RowSplit c = tile_cover(n, x->rows);
    for (i64 k = 0, done = 0; k < c.big + c.small; k++) {
      ExprId row = times(p, ex_var(p, i), n);
      AttendTile t = {.rows = c.size - (k >= c.big), .first = ex_int(p, done)};
      t.row = plus(p, row, ex_int(p, done));
      one_tile(x, t, at, from, to);
      done += t.rows;
    }
    return;
  }
  ExprId done = ex_int(p, 0);
  bool exact = dim_is_const(extent(x, x->block)) && extent(x, x->block) % x->rows == 0;
  for (i64 rows = x->rows; rows > 0; rows = rows > 1 && !exact ? 1 : 0) {
    if (rows == 1) {
      Cursor in = at;
      VarId r = prog_for(p, &in, ex_copy(p, done), ex_var(p, count), "r");
      AttendTile t = {
          .rows = 1, .first = plus(p, ex_var(p, l0), ex_var(p, r)), .row = ex_var(p, r)};
      one_tile(x, t, in, from, to);
      continue;
    }
    ExprId tiles = ex_op2(p, OP_div, ex_var(p, count), ex_int(p, rows));
    Cursor in = at;
    VarId r = prog_for(p, &in, ex_int(p, 0), ex_copy(p, tiles), "r");
    ExprId row = times(p, ex_var(p, r), rows);
    AttendTile t = {.rows = rows, .first = plus(p, ex_var(p, l0), ex_copy(p, row)), .row = row};
    one_tile(x, t, in, from, to);
    done = times(p, tiles, rows);
  }
}

/* `count` blocks of keys from `first` on, for all rows of a block. */
static void all_keys(Attend *x, Cursor at, RowBlock b, ExprId first, ExprId count) {
  Prog *p = x->p;
  ExprId keys = ex_dim(p, extent(x, x->a->key));
  VarId k = prog_for(p, &at, ex_int(p, 0), count, "k");
  VarId from = let_new(p, &at, "from", times(p, plus(p, first, ex_var(p, k)), KEYS));
  VarId to =
      let_new(p, &at, "to", ex_op2(p, OP_min, plus(p, ex_var(p, from), ex_int(p, KEYS)), keys));
  if (x->packed) attend_pack(x, at, from);
  all_tiles(x, at, b.l0, b.count, from, to);
}

/* ceil(n / each) */
static ExprId pieces_of(Prog *p, Dim n, i64 each) {
  return ex_op2(p, OP_div, plus(p, ex_dim(p, n), ex_int(p, each - 1)), ex_int(p, each));
}

static ExprId key_blocks(const Attend *x) {
  return pieces_of(x->p, extent(x, x->a->key), KEYS);
}

static ExprId segments(const Attend *x) {
  return pieces_of(x->p, extent(x, x->a->key), KEYS * SEGMENT);
}

/* Number of parts of the keys of a row block: all segments if there is a single row block, else
 * one. */
static ExprId parts_of(const Attend *x) {
  Prog *p = x->p;
  ExprId lone = minus(p, ex_int(p, 2), pieces_of(p, extent(x, x->block), x->each));
  ExprId more =
      ex_op2(p, OP_mul, minus(p, segments(x), ex_int(p, 1)), ex_op2(p, OP_max, lone, ex_int(p, 0)));
  return plus(p, ex_int(p, 1), more);
}

static ExprId is_parted(const Attend *x) {
  return ex_op2(x->p, OP_gt, parts_of(x), ex_int(x->p, 1));
}

static RowBlock rows_of_block(Attend *x, Cursor *at, ExprId b) {
  Prog *p = x->p;
  RowBlock r = {.l0 = let_new(p, at, "first", times(p, b, x->each))};
  ExprId left = minus(p, ex_dim(p, extent(x, x->block)), ex_var(p, r.l0));
  r.count = let_new(p, at, "count", ex_op2(p, OP_min, left, ex_int(p, x->each)));
  return r;
}

/* Segments from `first` on; part: single segment to store in `parts`. */
static void all_segments(Attend *x, Cursor at, RowBlock b, ExprId first, ExprId end, ExprId part) {
  Prog *p = x->p;
  VarId s = prog_for(p, &at, first, end, "m");
  ExprId from = times(p, ex_var(p, s), SEGMENT);
  attend_begin(x, at, b, x->here);
  all_keys(x, at, b, from,
           ex_op2(p, OP_min, minus(p, key_blocks(x), ex_copy(p, from)), ex_int(p, SEGMENT)));
  if (x->split) {
    StmtId which = prog_if(p, &at, is_parted(x));
    attend_keep(x, at, b, part);
    at = prog_else(which);
  }
  attend_merge(x, at, b, x->here, ex_int(p, 0));
}

/* All keys for the rows of a block. */
static void whole_block(Attend *x, Cursor at, ExprId b) {
  RowBlock r = rows_of_block(x, &at, b);
  attend_begin(x, at, r, x->cut ? x->all : x->here);
  if (x->cut)
    all_segments(x, at, r, ex_int(x->p, 0), segments(x), 0);
  else
    all_keys(x, at, r, ex_int(x->p, 0), key_blocks(x));
  attend_end(x, at, r, x->cut ? x->all : x->here);
}

static bool is_outer(const Attend *x, u32 d) {
  return d != x->a->key && d != x->tile && d != x->block;
}

/* Sets the position to head h of the heads that do not share keys. */
static void set_head(Attend *x, ExprId h) {
  Prog *p = x->p;
  for (u32 d = x->dims; d-- > 0;) {
    if (!is_outer(x, d)) continue;
    Dim n = extent(x, d);
    set_axis(x, d, n == 1 ? ex_int(p, 0) : ex_op2(p, OP_mod, ex_copy(p, h), ex_dim(p, n)));
    if (n != 1) h = ex_op2(p, OP_div, h, ex_dim(p, n));
  }
}

static Dim heads_of(const Attend *x) {
  Dim n = 1;
  for (u32 d = 0; d < x->dims; d++)
    if (is_outer(x, d)) n = dim_mul(x->p->dims, n, extent(x, d));
  return n;
}

static SoftmaxState row_scratch(const Attend *x) {
  return (SoftmaxState){scratch(x, x->most, 1, "largest"), scratch(x, x->most, 1, "total"),
                        scratch(x, x->most, x->y.axis[x->width].hi, "sums")};
}

/* One parallel loop: over blocks of rows, or over segments if there is one block. Segments of a row
 * are merged in order, independent of the thread. */
static void write_split(Attend *x, Cursor at) {
  Prog *p = x->p;
  Dim heads = heads_of(x);
  Cursor in = at;
  ExprId blocks = pieces_of(p, extent(x, x->block), x->each);
  ExprId units = ex_op2(p, OP_mul, ex_dim(p, heads), ex_op2(p, OP_max, blocks, parts_of(x)));
  VarId u = for_parallel(p, &in, ex_int(p, 0), units, "u");
  VarId h = let_new(p, &in, "h", ex_op2(p, OP_mod, ex_var(p, u), ex_dim(p, heads)));
  VarId piece = let_new(p, &in, "piece", ex_op2(p, OP_div, ex_var(p, u), ex_dim(p, heads)));
  set_head(x, ex_var(p, h));
  VarId b =
      let_new(p, &in, "b", ex_op3(p, OP_select, is_parted(x), ex_int(p, 0), ex_var(p, piece)));
  VarId s =
      let_new(p, &in, "s", ex_op3(p, OP_select, is_parted(x), ex_var(p, piece), ex_int(p, 0)));
  RowBlock r = rows_of_block(x, &in, ex_var(p, b));
  attend_begin(x, in, r, x->all);
  ExprId next = plus(p, ex_var(p, s), ex_int(p, 1));
  VarId end = let_new(p, &in, "end", ex_op3(p, OP_select, is_parted(x), next, segments(x)));
  ExprId part = plus(p, ex_op2(p, OP_mul, ex_var(p, h), segments(x)), ex_var(p, s));
  all_segments(x, in, r, ex_var(p, s), ex_var(p, end), times(p, part, x->most));
  prog_if(p, &in, ex_op2(p, OP_le, parts_of(x), ex_int(p, 1)));
  attend_end(x, in, r, x->all);

  x->all = row_scratch(x); /* scratch is per thread */
  prog_if(p, &at, is_parted(x));
  h = prog_for(p, &at, ex_int(p, 0), ex_dim(p, heads), "h");
  set_head(x, ex_var(p, h));
  r = rows_of_block(x, &at, ex_int(p, 0));
  attend_begin(x, at, r, x->all);
  in = at;
  s = prog_for(p, &in, ex_int(p, 0), segments(x), "m");
  part = plus(p, ex_op2(p, OP_mul, ex_var(p, h), segments(x)), ex_var(p, s));
  attend_merge(x, in, r, x->parts, times(p, part, x->most));
  attend_end(x, at, r, x->all);
}

static BufId part_buffer(const Attend *x, Dim rows, Dim columns, const char *name) {
  Dim dim[2] = {rows, columns};
  return prog_add_buf(x->p, BS_temp, DT_f32, dim, 2, str_of(x->p->c, name));
}

static void add_scratch(Attend *x) {
  Dims *ds = x->p->dims;
  Dim keys = extent(x, x->a->key);
  i64 lo, hi, segment = (i64)KEYS * SEGMENT;
  dim_bounds(ds, keys, &lo, &hi);
  x->cut = !x->packed && hi > segment;
  x->split = x->cut && x->p->threads > 1;
  x->most = x->each * (x->tile == x->block ? 1 : extent(x, x->tile));
  x->here = row_scratch(x);
  x->score = scratch(x, x->rows, KEYS, "score");
  x->shrink = scratch(x, x->rows, 1, "shrink");
  if (x->packed) x->panels = scratch(x, x->s.axis[x->depth].hi, KEYS, "panels");
  if (x->cut) x->all = row_scratch(x);
  if (!x->split) return;
  Dim each = dim_mul(ds, dim_div(ds, dim_add(ds, keys, segment - 1), segment), x->most);
  Dim rows = dim_mul(ds, heads_of(x), each);
  x->parts = (SoftmaxState){part_buffer(x, rows, 1, "largest"), part_buffer(x, rows, 1, "total"),
                            part_buffer(x, rows, x->y.axis[x->width].hi, "sums")};
}

static void write_kernel(Attend *x, Cursor at) {
  Prog *p = x->p;
  add_scratch(x);
  if (x->split) {
    write_split(x, at);
    return;
  }
  for (u32 d = 0; d < x->dims; d++) {
    if (!is_outer(x, d)) continue;
    ExprId e = extent(x, d) == 1
                   ? ex_int(p, 0)
                   : ex_var(p, for_parallel(p, &at, ex_int(p, 0), ex_dim(p, extent(x, d)), "h"));
    set_axis(x, d, e);
  }
  VarId b = for_parallel(p, &at, ex_int(p, 0), pieces_of(p, extent(x, x->block), x->each), "b");
  whole_block(x, at, ex_var(p, b));
}

/* ---- lowering the parts ---- */

bool attention_has_part(Lower *l, const Node *n) {
  NodeId id = graph_val(l->g, n->out[0])->def;
  u32 number = l->attentions->part[id];
  if (l->attentions->hidden[id]) return !l->attentions->plain;
  return number && l->attentions->at.at[number - 1].root != id && !l->attentions->plain;
}

/* Enables or disables converting keys and values from f16 at their loads. */
static void cast_in_place(Lower *l, const Attention *a, bool on) {
  Val both[2] = {a->keys, a->values};
  for (u32 i = 0; i < 2; i++) {
    if (!both[i]) continue;
    if (on) {
      inlined_value(l, both[i]);
      continue;
    }
    l->places.of[both[i]] = (Storage){.kind = SK_memory};
    l->buf[both[i]] = 0;
  }
}

static void note(const Attend *x) {
  Lower *l = x->l;
  KernelRecord r = {.family = FA_attention, .tile.lanes = x->lanes};
  r.size = str_fmt(l->c, "of %lld rows and %u lanes", (long long)x->rows, x->lanes);
  r.reason = x->packed ? str_fmt(l->c, "scores would take more than %.0f bytes per head",
                                 figures.score_bytes)
                       : str_of(l->c, "the number of keys is unknown");
  kernel_record(l->p, l->at.last, r);
}

bool lower_attention(Lower *l, const Node *n) {
  NodeId id = graph_val(l->g, n->out[0])->def;
  u32 number = l->attentions->part[id];
  if (!number) return false;
  const Attention *a = &l->attentions->at.at[number - 1];
  Attend x;
  cast_in_place(l, a, true);
  if (choose(l, a, &x)) {
    Cursor at = lower_kernel(l, group_label(l->g, n));
    note(&x);
    write_kernel(&x, at);
    return true;
  }
  cast_in_place(l, a, false);
  return false;
}
