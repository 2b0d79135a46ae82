/* tile_tune.c: tile sizes that autotuning may choose instead of the cost model.
 *
 * In: a Tile whose size tile_choose.c has chosen. Out: that size, or another legal one that the
 * autotuning table names. Legal are all numbers of rows and panels whose accumulators fit in
 * registers, every possible row axis, and loops over other axes inside or outside of the panels.
 * Choices are offered in the order of estimated cost, the default first. Without a table nothing is
 * looked up.
 */
#include "pass/kernel/tile.h"

#include <string.h>

typedef struct Choice {
  u32 row;
  i64 rows, panels;
  bool panels_innermost, unroll;
  double cost;
} Choice;

typedef struct Choices {
  Choice at[128];
  u32 n;
} Choices;

/* ---- the key ---- */

static void put_index(const Form *f, const Index *ix, StrBuf *out) {
  u32 terms = 0;
  for (u32 i = 0; i < ix->n; i++) {
    if (f->axis[ix->axis[i]].hi == f->axis[ix->axis[i]].lo + 1) continue;
    sb_fmt(out, terms++ ? "+%u" : "%u", ix->axis[i]);
    if (ix->coef[i] != 1) sb_fmt(out, "*%lld", (long long)ix->coef[i]);
  }
  if (!terms) sb_puts(out, "_");
}

static void put_operand(const Tile *t, const Operand *o, char how, StrBuf *out) {
  const Layout *y = layout_of(t->l, o->buf);
  sb_fmt(out, " %c", how);
  if (y && y->block) sb_fmt(out, "%u", y->block);
  for (u32 d = 0; d < o->rank; d++) {
    sb_puts(out, d ? "," : "(");
    put_index(&t->f, &o->idx[d], out);
  }
  sb_puts(out, ")");
}

/* Builds the key: type and lanes; axes, reduction axes marked f; operands with their LaneUse,
 * channel block and indices; cost of the epilogue. */
static Str key_of(const Tile *t) {
  static const char *const finish[] = {"plain", "reads", "functions"};
  Ctx *c = t->l->c;
  const Form *f = &t->f;
  StrBuf out = sb_new(&c->scratch);
  sb_fmt(&out, "tile %s%s lanes %u axis %u:", dtype_info[f->acc].name,
         t->axis.each == 4   ? "/4"
         : t->axis.each == 2 ? "/2"
                             : "",
         t->lanes, t->axis.lane);
  for (u32 i = 0; i < f->naxes; i++) {
    sb_puts(&out, " ");
    if (dim_is_const(f->axis[i].hi))
      sb_fmt(&out, "%lld", (long long)(f->axis[i].hi - f->axis[i].lo));
    else
      sb_puts(&out, "n");
    sb_puts(&out, f->axis[i].reduce ? "f" : "");
  }
  for (u32 k = 0; k < f->nin; k++) put_operand(t, &f->in[k], "svp"[t->use[k]], &out);
  put_operand(t, &f->out, 'o', &out);
  sb_fmt(&out, " %s", finish[t->store.finish]);
  return str_intern(c, out.at, out.n);
}

static Str choice_text(const Tile *t, const Choice *x) {
  StrBuf out = sb_new(&t->l->c->scratch);
  sb_fmt(&out, "%lldx%lld", (long long)x->rows, (long long)x->panels);
  if (x->row < FORM_AXES) sb_fmt(&out, " axis %u", x->row);
  if (x->panels_innermost) sb_puts(&out, " panels inside");
  if (x->unroll) sb_puts(&out, " unrolled");
  return str_intern(t->l->c, out.at, out.n);
}

static Tile with_choice(const Tile *t, const Choice *x) {
  Tile to = *t;
  to.axis.row = x->row;
  to.sums.rows = x->rows;
  to.sums.panels = x->panels;
  to.sums.panels_innermost = x->panels_innermost;
  if (!x->unroll) to.unroll = 0;
  return to;
}

/* Points of all axes except rows and lanes. */
static double others(const Tile *t, u32 row) {
  double n = 1;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (a->reduce || i == t->axis.lane || i == row || !dim_is_const(a->hi)) continue;
    n *= (double)(a->hi - a->lo);
  }
  return n;
}

static void offer(Choices *all, Choice x, double cost) {
  if (all->n == sizeof all->at / sizeof *all->at) return;
  x.cost = cost;
  for (u32 i = 0; i < all->n; i++) {
    const Choice *o = &all->at[i];
    if (o->row == x.row && o->rows == x.rows && o->panels == x.panels &&
        o->panels_innermost == x.panels_innermost && o->unroll == x.unroll)
      return;
  }
  all->at[all->n++] = x;
}

/* Rows computed when tiles have `most` rows. */
static i64 rows_of(const Tile *t, u32 row, i64 most) {
  const Axis *a = &t->f.axis[row];
  return dim_is_const(a->hi) ? tile_cover(a->hi - a->lo, most).size : most;
}

/* Is there a loop that can be inside or outside of the panels? */
static bool has_others(const Tile *t, u32 row) {
  Tile x = *t;
  x.axis.row = row;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (!t->f.axis[i].reduce && i != t->axis.lane && i != row &&
        t->f.axis[i].hi != t->f.axis[i].lo + 1 && !tile_is_batch(&x, i))
      return true;
  return false;
}

/* Outer products: one operand moves along the lanes and one is broadcast. */
static void offer_products(const Tile *t, Choices *all, i64 n, i64 widest) {
  bool fixed = false; /* the number of rows decides whether packing at run time pays off */
  for (u32 k = 0; k < t->f.nin; k++)
    fixed = fixed || (t->use[k] == LU_packed && !tile_is_const(t, t->f.in[k].buf));
  i64 room = t->sums.budget >= (i64)figures.many_sums ? t->sums.budget + 2 : t->sums.budget,
      tall = (i64)t->l->pass->target->cost->tile_rows;
  for (u32 row = 0; row < t->f.naxes; row++) {
    if (row != t->axis.row && (fixed || !tile_row_fits(t, row))) continue;
    for (i64 v = 1; v <= widest && v <= n; v++) {
      i64 last = 0;
      for (i64 most = room / v > tall ? tall : room / v, sizes = 0; most > 1 && sizes < 3; most--) {
        Choice x = {.row = row, .rows = rows_of(t, row, most), .panels = v};
        if (x.rows == last) continue;
        last = x.rows;
        sizes++;
        Tile y = with_choice(t, &x);
        double cost = tile_time(&y, n) * others(t, row);
        if (x.rows * v > t->sums.budget)
          cost *= 1.02; /* among equal costs, prefer the one closest to t */
        if (row != t->axis.row) cost *= 1.04;
        offer(all, x, cost);
        x.panels_innermost = true;
        if (has_others(t, row)) offer(all, x, cost * 1.015);
      }
    }
  }
}

/* Vertical kernels, and tiles without rows. */
static void offer_vertical(const Tile *t, Choices *all, i64 n) {
  static const i64 most[] = {8, 6, 4, 12, 14, 7, 5, 10}, wide[] = {8, 4, 6, 12, 16, 3, 2, 20};
  if (t->axis.row == FORM_AXES) {
    for (u32 i = 0; i < sizeof wide / sizeof *wide; i++)
      if (wide[i] <= n && wide[i] <= t->sums.budget)
        offer(all, (Choice){.row = t->axis.row, .rows = 1, .panels = wide[i]}, i + 1);
    return;
  }
  for (u32 i = 0; i < sizeof most / sizeof *most; i++)
    for (i64 v = 1; v <= 2 && v <= n; v++) {
      Choice x = {.row = t->axis.row, .rows = rows_of(t, t->axis.row, most[i]), .panels = v};
      if (x.rows * v > t->sums.budget) continue;
      x.unroll = t->unroll != 0;
      offer(all, x, i + 2 * (double)v);
      x.panels_innermost = true;
      if (has_others(t, t->axis.row)) offer(all, x, i + 2 * (double)v + 1.5);
      x.panels_innermost = x.unroll = false;
      if (t->unroll) offer(all, x, i + 2 * (double)v + 2.5);
    }
}

static void sort(Choices *all) {
  for (u32 i = 2; i < all->n; i++) /* the default stays first */
    for (u32 k = i; k > 1 && all->at[k].cost < all->at[k - 1].cost; k--) {
      Choice x = all->at[k];
      all->at[k] = all->at[k - 1];
      all->at[k - 1] = x;
    }
}

void tile_tune(Tile *t, i64 widest) {
  TuneTable *tune = t->l->pass->tune;
  if (!tune) return;
  Choices all = {.n = 0};
  i64 n = (t->f.axis[t->axis.lane].hi + t->lanes - 1) / t->lanes;
  bool splat = false, rows = t->axis.row < FORM_AXES;
  for (u32 k = 0; k < t->f.nin; k++) splat = splat || t->use[k] == LU_splat;
  i64 first = rows ? rows_of(t, t->axis.row, tile_rows(t, t->sums.panels)) : 1;
  offer(&all,
        (Choice){
            .row = t->axis.row, .rows = first, .panels = t->sums.panels, .unroll = t->unroll != 0},
        0);
  if (rows && splat && widest)
    offer_products(t, &all, n, widest);
  else
    offer_vertical(t, &all, n);
  sort(&all);
  u32 count = all.n < TUNE_CHOICES ? all.n : TUNE_CHOICES;
  Str text[TUNE_CHOICES];
  for (u32 i = 0; i < count; i++) text[i] = choice_text(t, &all.at[i]);
  u32 taken = tune_query(tune, t->l->at.last, key_of(t), text, count);
  if (taken) *t = with_choice(t, &all.at[taken]);
}
