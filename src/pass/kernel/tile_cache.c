/* tile_cache.c: chooses cache tiles of a contraction.
 *
 * In: a contraction whose register tile is chosen. Out: an axis and the number of its points in a
 * cache tile, or none.
 *
 * The data of the rows (image lines or matrix rows) is read again for every tile of panels. All
 * panels are read again for every cache tile. If the row data fits in L2, nothing is tiled.
 * Otherwise the cache tile is made to fit, unless that would read the panels about as often as it
 * saves reads of the rows. Panels are sequential, so the hardware prefetches them. Rows are a few
 * elements of every channel block, far apart, so it does not.
 */
#include "pass/kernel/tile.h"

/* Number of points by axis. */
typedef struct Points {
  i64 of[FORM_AXES];
} Points;

/* Bytes of operand o at these points. */
static double bytes_read(const Tile *t, const Operand *o, const Points *n) {
  double elements = 1;
  for (u32 d = 0; d < o->rank; d++) {
    const Index *ix = &o->idx[d];
    i64 span = 1;
    for (u32 i = 0; i < ix->n; i++)
      span += (ix->n > 1 ? ix->coef[i] : 1) * (n->of[ix->axis[i]] - 1);
    elements *= (double)span;
  }
  return elements * dtype_bytes(prog_buf(t->p, o->buf)->dt);
}

/* May the loop over this axis be outside of the panels as well as inside? */
static bool is_around(const Tile *t, u32 axis) {
  const Axis *a = &t->f.axis[axis];
  return !a->reduce && axis != t->axis.row && axis != t->axis.lane && !tile_is_batch(t, axis);
}

/* Counts one point of each batch axis, and all points of other axes. */
static bool count_points(const Tile *t, Points *n) {
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (!dim_is_const(a->hi) || form_guard(&t->f, i, NULL)) return false;
    n->of[i] = tile_is_batch(t, i) ? 1 : a->hi - a->lo;
  }
  return true;
}

/* Chooses the axis to tile among those along which the rows move: the first one of which a single
 * point fits in a cache tile, else the last. Axes outside of it count one point. */
static u32 axis_to_cut(const Tile *t, const Operand *rows, Points *n) {
  u32 cut = t->axis.row;
  for (u32 i = 0; i < t->f.naxes; i++) {
    if (!is_around(t, i) || n->of[i] == 1 || !operand_moves(rows, i)) continue;
    if (cut != t->axis.row) n->of[cut] = 1;
    cut = i;
    Points one = *n;
    one.of[i] = 1;
    if (bytes_read(t, rows, &one) <= figures.own_bytes) break;
  }
  return cut;
}

/* Points of a cache tile, at most `each`, in whole register tiles. Avoids a remainder, which needs
 * its own code, if that at most doubles the number of cache tiles. */
static i64 block_size(i64 points, i64 each, i64 tile) {
  i64 blocks = (points + each - 1) / each;
  for (i64 n = blocks; n <= 2 * blocks; n++)
    if (points % (n * tile) == 0) return points / n;
  return (points + blocks * tile - 1) / (blocks * tile) * tile;
}

CacheTile cache_tile(const Tile *t) {
  const Form *f = &t->f;
  CacheTile none = {.axis = FORM_AXES};
  Points all;
  if (t->axis.row == FORM_AXES || f->nin != 2 || t->sums.panels_innermost) return none;
  if (t->l->pass->target->warp) return none; /* tiles run at the same time */
  u32 moves = operand_moves(&f->in[0], t->axis.row) ? 0 : 1;
  const Operand *rows = &f->in[moves], *panels = &f->in[1 - moves];
  if (t->use[moves] != LU_splat || tile_varies(t, 1 - moves) || !count_points(t, &all)) return none;
  if (bytes_read(t, rows, &all) <= figures.rows_bytes) return none;
  Points one = all;
  u32 cut = axis_to_cut(t, rows, &one);
  i64 points = one.of[cut], tile = cut == t->axis.row ? tile_rows(t, t->sums.panels) : 1,
      vectors = (all.of[t->axis.lane] + t->lanes - 1) / t->lanes;
  one.of[cut] = 1;
  double first = bytes_read(t, rows, &one);
  one.of[cut] = 2;
  i64 each = 1 + (i64)((figures.own_bytes - first) / (bytes_read(t, rows, &one) - first));
  each = each < tile ? tile : each / tile * tile;
  if (each >= points) return none;
  i64 tiles = (vectors + t->sums.panels - 1) / t->sums.panels;
  each = block_size(points, each, tile);
  i64 blocks = (points + each - 1) / each, outer = 1;
  for (u32 i = 0; i < cut; i++)
    if (is_around(t, i)) outer *= all.of[i];
  double read_rows = (double)(tiles - 1) * bytes_read(t, rows, &all),
         read_panels = (double)(outer * blocks - 1) * bytes_read(t, panels, &all);
  if (read_rows < LIMIT_tile_cache_gain * read_panels) return none;
  return (CacheTile){.axis = cut, .each = each};
}
