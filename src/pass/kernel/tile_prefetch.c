/* tile_prefetch.c: prefetches the panels that come next.
 *
 * In: a contraction whose second factor is a large constant. Out: prefetch hints among its
 * reduction steps. Weights come from memory once per run. Without hints the first tile of a panel
 * waits for them, which takes 10 % of the time or more if tiles are few. So each tile of a panel
 * prefetches its share of the next panels, one cache line every few steps. The memory after the
 * last panel is usually what the next kernel reads.
 *
 * dot_i8x4 tiles have no hints, because a hint costs more than it saves there.
 */
#include "pass/kernel/tile.h"

i64 prefetch_steps(const Tile *t, u32 axis) {
  return t->at.fetch.lines && t->at.fetch.axis == axis ? LIMIT_prefetch_steps : 1;
}

/* The only reduction axis with a loop, if it has a known length and starts at 0; else FORM_AXES. */
static u32 only_reduction(const Tile *t) {
  u32 found = FORM_AXES;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (!a->reduce || a->hi == a->lo + 1) continue;
    if (found < FORM_AXES || a->lo || !dim_is_const(a->hi)) return FORM_AXES;
    found = i;
  }
  return found;
}

/* The constant operand in panels; FORM_IN: none. */
static u32 weights_of(const Tile *t) {
  for (u32 k = 0; k < t->f.nin; k++)
    if (t->use[k] == LU_packed && !t->packed_at_run[k] && t->pack[k]) return k;
  return FORM_IN;
}

/* Number of panels in all batches; *first: first panel of the current batch. */
static i64 panels_of(const Tile *t, u32 k, ExprId *first) {
  Prog *p = t->p;
  i64 n = 1;
  *first = ex_int(p, 0);
  for (u32 i = 0; i < t->f.naxes; i++) {
    if (!tile_is_batch(t, i) || !operand_moves(&t->f.in[k], i) || t->f.axis[i].hi == 1) continue;
    n *= t->f.axis[i].hi;
    *first = ex_op2(p, OP_mul, *first, ex_int(p, t->f.axis[i].hi));
    if (t->at.val[i]) *first = ex_op2(p, OP_add, *first, ex_copy(p, t->at.val[i]));
  }
  i64 each = (t->f.axis[t->axis.lane].hi + t->lanes - 1) / t->lanes;
  *first = ex_op2(p, OP_mul, *first, ex_int(p, each));
  return n * each;
}

void prefetch_choose(Tile *t, i64 panels, i64 tiles) {
  TilePrefetch *x = &t->at.fetch;
  u32 k = weights_of(t), reduce = only_reduction(t);
  *x = (TilePrefetch){0};
  if (k == FORM_IN || t->axis.each > 2 || t->l->pass->aim != AIM_time ||
      tiles < LIMIT_prefetch_tiles || (double)tiles > figures.prefetch_max_tiles)
    return;
  if (t->axis.split < FORM_AXES)
    reduce = FORM_AXES;
  else if (reduce == FORM_AXES || t->f.axis[reduce].hi % LIMIT_prefetch_steps ||
           t->unroll >> reduce & 1 || form_guard(&t->f, reduce, NULL))
    return;
  const Buf *b = prog_buf(t->p, t->pack[k]);
  i64 bytes = dtype_bytes(b->dt), all = bytes;
  for (u32 i = 0; i < b->rank; i++) all *= b->dim[i];
  i64 count = panels_of(t, k, &x->batch), line = (i64)figures.line_bytes;
  x->steps = (i64)tile_reduction_size(t) /
             (t->axis.split < FORM_AXES ? t->axis.block : LIMIT_prefetch_steps);
  if ((double)all < figures.prefetch_min_bytes || !x->steps) return;
  i64 lines = (panels * (all / count) + tiles * line - 1) / (tiles * line);
  if (lines > LIMIT_prefetch_lines * x->steps) return;
  x->lines = lines;
  x->axis = reduce;
  x->of = t->pack[k];
  x->panel = all / count / bytes;
  x->prefetch_step = panels * x->panel;
  x->line = line / bytes;
}

/* Number of the current reduction step, counted in channel blocks if an axis has them. */
static ExprId step_of(const Tile *t, ExprId group) {
  Prog *p = t->p;
  if (t->axis.split == FORM_AXES) return group;
  ExprId step = ex_int(p, 0);
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    bool blocks = i == t->axis.split;
    if (!a->reduce || a->hi == a->lo + 1) continue;
    i64 n = blocks ? (a->hi + t->axis.block - 1) / t->axis.block : a->hi - a->lo;
    if (n == 1) continue;
    ExprId v = blocks ? ex_copy(p, group) : ex_copy(p, t->at.val[i]);
    if (!blocks && a->lo) v = ex_op2(p, OP_sub, v, ex_int(p, a->lo));
    step = ex_op2(p, OP_add, ex_op2(p, OP_mul, step, ex_int(p, n)), v);
  }
  return step;
}

void prefetch_lines(const Tile *t, Cursor *at, ExprId group) {
  Prog *p = t->p;
  const TilePrefetch *x = &t->at.fetch;
  if (!x->lines) return;
  i64 each = (x->lines + x->steps - 1) / x->steps, apart = x->steps / x->lines;
  ExprId step = step_of(t, group),
         first = ex_op2(p, OP_mul, ex_copy(p, x->tile), ex_int(p, x->lines));
  step = apart > 1 ? ex_op2(p, OP_div, step, ex_int(p, apart))
                   : ex_op2(p, OP_mul, step, ex_int(p, each));
  ExprId line = ex_op2(p, OP_add, first, step);
  ExprId panel = ex_op2(p, OP_add, ex_copy(p, x->batch), ex_copy(p, x->first));
  panel = ex_op2(p, OP_mul, panel, ex_int(p, x->panel));
  for (i64 i = 0; i < each; i++) {
    ExprId from =
        ex_op2(p, OP_mul, ex_op2(p, OP_add, ex_copy(p, line), ex_int(p, i)), ex_int(p, x->line));
    from =
        ex_op2(p, OP_add, ex_op2(p, OP_add, ex_copy(p, panel), ex_int(p, x->prefetch_step)), from);
    Stmt *s = prog_stmt(p, prog_insert(p, at, ST_prefetch));
    s->buf = x->of;
    s->a = from;
  }
}
