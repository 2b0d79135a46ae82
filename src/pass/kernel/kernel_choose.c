/* kernel_choose.c: chooses the family of a form.
 *
 * In: a form whose operands have layouts. Out: a KernelChoice with the family, all decisions (axes,
 * lanes, tile size) and the numbers that led to them, for `opt --explain`. kernel_write then writes
 * the kernel from the choice, and attaches its record. Families are tried in the order of
 * families.def. The first that accepts the form is taken; one that refuses has written nothing.
 * Forms that are split (segments, interior) get a record for each part when the part is written.
 *
 * Decisions that layout_pass.c needs earlier (channel blocks, Winograd patches) come from family.c
 * and winograd_plan.c and are copied into the choice.
 */
#include "pass/kernel/i16.h"

#include "ir/prog/cost.h"

#include <math.h>

/* Axis of the lanes. */
typedef enum LaneRun { LR_none, LR_reduction, LR_result } LaneRun;

static LaneRun find_tiles(Lower *l, const Form *f, KernelChoice *r) {
  r->why_not = "the result is empty";
  for (u32 i = 0; i < f->naxes; i++) /* empty loops stay scalar: they need the least code */
    if (dim_is_const(f->axis[i].hi) && f->axis[i].hi <= f->axis[i].lo) return LR_none;
  if (tile_choose(l, f, &r->t)) return LR_result;
  r->why_not = r->t.why_not;
  return tile_choose_horizontal(l, f, &r->t) ? LR_reduction : LR_none;
}

/* ---- explanations ---- */

static Str extent_text(Ctx *c, Dim d) {
  return dim_is_const(d) ? str_fmt(c, "%lld", (long long)d) : str_of(c, "an unknown number");
}

/* Why a tile has this size. */
static Str tile_reason(const Tile *t) {
  Ctx *c = t->l->c;
  i64 rows = tile_rows(t, t->sums.panels);
  bool splat = t->use[0] == LU_splat || (t->f.nin > 1 && t->use[1] == LU_splat);
  if (t->axis.row == FORM_AXES)
    return str_fmt(c, "a single row, %lld panels", (long long)t->sums.panels);
  if (!splat)
    return str_fmt(c, "%lld accumulators in %lld registers", (long long)(rows * t->sums.panels),
                   (long long)t->sums.budget);
  return str_fmt(
      c,
      "%lld rows share the vectors of the other, %lld of %lld registers are accumulators, "
      "%.0f%% of the time is multiply-adds",
      (long long)rows, (long long)(rows * t->sums.panels), (long long)t->sums.budget,
      100 * tile_fma_share(t));
}

/* Sets the reason of a tile that find_tiles chose, or of a similar one. */
static void describe_tiles(KernelChoice *r) {
  const Tile *t = &r->t;
  Ctx *c = t->l->c;
  Dim n = t->f.axis[t->axis.lane].hi;
  if (r->family == FA_horizontal || r->family == FA_dot_rows) {
    r->reason = str_fmt(c, "of %s elements", str_text(c, extent_text(c, n)));
  } else if (r->family == FA_lut) {
    r->reason = str_of(c, "256 results");
  } else if (!t->f.reduce) {
    r->reason = str_fmt(c, "%s contiguous elements", str_text(c, extent_text(c, n)));
  } else {
    r->reason = tile_reason(t);
  }
}

static Family tile_family(const Tile *t, LaneRun run) {
  bool splat = t->use[0] == LU_splat || (t->f.nin > 1 && t->use[1] == LU_splat);
  return run == LR_reduction ? FA_horizontal
         : t->table          ? FA_lut
         : !t->f.reduce      ? FA_map
         : t->axis.each == 4 ? FA_dot_i8x4
         : t->axis.each == 2 ? FA_dot_i16x2
         : splat             ? FA_outer_product
                             : FA_vertical;
}

static bool choose_rows(Lower *l, const Form *f, KernelChoice *r) {
  KernelChoice x = *r;
  if (!tile_choose_dot_rows(l, f, &x.t, &x.out) || x.t.lanes > DOT_ROWS_LANES) return false;
  *r = x;
  return true;
}

static bool choose_whole(Lower *l, const Form *f, KernelChoice *r) {
  LaneRun run = find_tiles(l, f, r);
  if (run == LR_none && tile_choose_open(l, f, &r->t))
    r->family = FA_map;
  else if (run != LR_result && choose_rows(l, f, r))
    r->family = FA_dot_rows;
  else if (run == LR_none)
    return false;
  else {
    Tile *t = &r->t;
    if (run == LR_result) t->table = tile_lut(t);
    if (t->table && t->lanes > l->pass->target->lanes)
      t->lanes = l->pass->target->lanes; /* entries are loaded one by one */
    r->family = tile_family(t, run);
  }
  describe_tiles(r);
  return true;
}

bool lower_tiles(Lower *l, Cursor at, const Form *f) {
  KernelChoice r = {.axis = FORM_AXES};
  if (!choose_whole(l, f, &r)) return false;
  kernel_write(l, at, f, &r);
  return true;
}

/* ---- pools in row-major order ---- */

/* Vectors where the whole window is inside the image, scalar loops elsewhere. */
static bool choose_inside(Lower *l, const Form *f, KernelChoice *r) {
  if (layout_of(l, f->in[0].buf) || layout_of(l, f->out.buf) || is_inlined(l, f->in[0].buf) ||
      !form_windows_interior(l->p, f, &r->axis, &r->in) || r->in.hi - r->in.lo < 4)
    return false;
  Form part = form_interior(f, r->axis, r->in.lo, r->in.hi);
  if (find_tiles(l, &part, r) != LR_result) return false;
  if (tile_is_const(&r->t, f->in[0].buf))
    return false; /* it is packed as a whole, its parts are not */
  r->family = FA_interior;
  r->reason = str_fmt(l->c, "%lld of %lld positions", (long long)(r->in.hi - r->in.lo),
                      (long long)f->axis[r->axis].hi);
  return true;
}

/* Results at the edge, one by one. If they are few, each has constant window bounds. */
static void write_places(Lower *l, Cursor at, const Form *f, u32 axis, i64 from, i64 to) {
  Form part = *f;
  bool few = to - from <= LIMIT_edge_places && l->pass->aim == AIM_time;
  while (few && from < to && form_place(l->p, f, from, &part)) {
    lower_plain(l, at, &part);
    from++;
  }
  part = *f;
  part.axis[axis].lo = from;
  part.axis[axis].hi = to;
  if (from < to) lower_plain(l, at, &part);
}

/* The last vector overlaps the previous one and computes some results twice, unless an epilogue
 * might read what was stored. */
static void write_inside(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Segment in = r->in;
  u32 axis = r->axis;
  i64 n = f->axis[axis].hi, more = (in.hi - in.lo) % r->t.lanes;
  Form part = form_interior(f, axis, in.lo, in.hi);
  bool done = true;
  if (more && !f->epilogue) {
    part = form_interior(f, axis, in.lo, in.hi - more);
    done = lower_tiles(l, at, &part);
    part = form_interior(f, axis, in.hi - r->t.lanes, in.hi);
  }
  if (!lower_tiles(l, at, &part) || !done)
    internal_error(l->c, LOC_NONE, "the interior of a pool has no tile");
  write_places(l, at, f, axis, 0, in.lo);
  write_places(l, at, f, axis, in.hi, n);
}

/* ---- windows that mostly meet padding ---- */

/* Lowers all combinations of the segments of n windows; false: some part has no tile. ask: only
 * test. */
static bool each_segment(Lower *l, Cursor at, const Form *f, const KernelChoice *r, bool ask) {
  Segment seg[MAX_RANK][MAX_SEGMENTS], pick[MAX_RANK];
  u32 n = r->nslide, count[MAX_RANK], at_seg[MAX_RANK] = {0}, d = 0;
  for (u32 i = 0; i < n; i++) count[i] = window_segments(&r->slide[i], seg[i]);
  do {
    KernelChoice x = {0};
    for (u32 i = 0; i < n; i++) pick[i] = seg[i][at_seg[i]];
    Form part = form_segment(f, r->dim, n, pick);
    if (ask ? find_tiles(l, &part, &x) == LR_none : !lower_tiles(l, at, &part)) return false;
    for (d = n; d > 0 && ++at_seg[d - 1] == count[d - 1]; d--) at_seg[d - 1] = 0;
  } while (d);
  return true;
}

static bool choose_segments(Lower *l, const Form *f, KernelChoice *r) {
  r->nslide = r->conv->sparse ? form_windows(l->p, f, r->slide, &r->dim) : 0;
  if (!r->nslide || !each_segment(l, prog_end(), f, r, true)) return false;
  r->family = FA_segments;
  r->reason =
      str_fmt(l->c, "%.0f%% read an element, fewer than %.0f%%",
              100 * windows_hit_ratio(r->slide, r->nslide), 100 * l->pass->target->cost->sparse);
  return true;
}

static void write_segments(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  if (!each_segment(l, at, f, r, false))
    internal_error(l->c, LOC_NONE, "a segment of a convolution has no tile");
}

/* ---- scalar loops ---- */

/* Does the operand move along the axis in steps other than 0 and 1? */
static bool strided(Prog *p, const Operand *o, u32 axis) {
  bool last = true; /* all later dimensions are 1 */
  for (u32 i = o->rank; i-- > 0;) {
    const Index *ix = &o->idx[i];
    for (u32 k = 0; k < ix->n; k++)
      if (ix->axis[k] == axis) return !last || ix->coef[k] != 1;
    if (prog_buf(p, o->buf)->dim[i] != 1) last = false;
  }
  return false;
}

/* Cost of a step along this axis as the innermost loop. */
static double cost(Prog *p, const Form *f, u32 axis) {
  const Axis *a = &f->axis[axis];
  i64 turns = extent_upto(p->dims, a->hi, (i64)figures.open_turns) - a->lo;
  u32 strides = !a->reduce && strided(p, &f->out, axis);
  for (u32 i = 0; i < f->nin; i++) strides += strided(p, &f->in[i], axis);
  return sum_step(turns < 1 ? 1 : (double)turns, !a->reduce, strides);
}

/* Returns the axis of a row of accumulators, or FORM_AXES for a scalar accumulator. sliced: keep
 * the row inside one slice of the result, so that loop_fuse.c can fuse slice by slice. */
static u32 choose_row(Prog *p, const Form *f, bool sliced, double *sum, double *row) {
  u32 best = FORM_AXES, last = FORM_AXES;
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].reduce && f->axis[i].hi != 1) last = i;
  if (last == FORM_AXES) return FORM_AXES;
  double least = *sum = cost(p, f, last);
  *row = INFINITY;
  for (u32 i = 0; i < f->naxes; i++) {
    if (f->axis[i].reduce || f->axis[i].hi == 1) continue;
    double here = cost(p, f, i);
    if (sliced && strided(p, &f->out, i)) continue;
    *row = fmin(*row, here);
    if (here > least) continue;
    least = here;
    best = i;
  }
  return best;
}

static bool choose_loops(Lower *l, const Form *f, KernelChoice *r) {
  double sum = 0, row = INFINITY;
  r->axis = f->reduce ? choose_row(l->p, f, l->pass->aim == AIM_ram, &sum, &row) : FORM_AXES;
  r->family = r->axis == FORM_AXES ? FA_plain : FA_row_acc;
  StrBuf t = sb_new(&l->c->scratch);
  sb_puts(&t, l->pass->target->lanes < 4 ? "the target has no vectors" : r->why_not);
  if (isfinite(row))
    sb_fmt(&t, "; a step costs %.1f along the reduction, %.1f along a row", sum, row);
  r->reason = str_intern(l->c, t.at, t.n);
  return true;
}

static void write_loops(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  (void)r;
  lower_plain(l, at, f);
}

static void write_row(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  lower_row(l, at, f, r->axis);
}

/* The functions of a family. choose: fills in the choice if the form is of this family, or of one
 * of those that follow without their own function; else writes nothing. */
typedef struct FamilyFns {
  bool (*choose)(Lower *l, const Form *f, KernelChoice *c);
  void (*write)(Lower *l, Cursor at, const Form *f, KernelChoice *c);
  bool vectors; /* only for targets with vectors, and accumulators that start with a constant */
} FamilyFns;

static const FamilyFns families[FA_COUNT] = {
    [FA_block_rows] = {block_rows_choose, block_rows_write, true},
    [FA_block_product] = {product_choose, product_write, true},
    [FA_winograd] = {winograd_choose, winograd_write, true},
    [FA_segments] = {choose_segments, write_segments, true},
    [FA_interior] = {choose_inside, write_inside, true},
    [FA_outer_product] = {choose_whole, tile_write, true},
    [FA_dot_i8x4] = {NULL, tile_write, true},
    [FA_dot_i16x2] = {NULL, tile_write, true},
    [FA_vertical] = {NULL, tile_write, true},
    [FA_lut] = {NULL, tile_write, true},
    [FA_map] = {NULL, tile_write, true},
    [FA_dot_rows] = {NULL, dot_rows_write, true},
    [FA_horizontal] = {NULL, tile_write, true},
    [FA_transpose] = {transpose_choose, transpose_write, true},
    [FA_i16] = {i16_choose, i16_write, false},
    [FA_window_tile] = {window_choose, window_write, false},
    [FA_row_acc] = {choose_loops, write_row, false},
    [FA_plain] = {NULL, write_loops, false},
};

void kernel_choose(Lower *l, const Form *f, KernelChoice *c) {
  *c = (KernelChoice){.axis = FORM_AXES, .why_not = "the reduction continues an earlier one"};
  c->conv = conv_plan_of(l->pass, f->of ? graph_producer(l->g, f->of) : NULL);
  bool vectors = l->pass->target->lanes >= 4 && !f->from.buf;
  for (u32 i = 0; i < FA_COUNT; i++)
    if (families[i].choose && (vectors || !families[i].vectors) && families[i].choose(l, f, c))
      return;
}

/* The buffer that holds the elements of a value with this buffer. */
static BufId memory_of(const Lower *l, BufId b) {
  return layout_of(l, b) ? storage_of(l, b)->mem : b;
}

/* The record of a choice. one_tile (lower_tile.c) adds the size of the largest tile. */
static KernelRecord record_of(const Lower *l, const Form *f, const KernelChoice *c) {
  KernelRecord r = {.family = c->family, .size = c->size, .reason = c->reason};
  bool tile = c->family >= FA_outer_product && c->family <= FA_transpose;
  const Form *of = tile ? &c->t.f : f;
  r.out = memory_of(l, f->out.buf);
  if (tile && !(of->reduce && c->family < FA_dot_rows)) r.tile.lanes = c->t.lanes;
  if (!of->reduce || (!tile && c->family != FA_row_acc && c->family != FA_plain)) return r;
  r.sum = of->acc;
  for (u32 i = 0; i < of->nin; i++) {
    r.in[i] = prog_buf(l->p, of->in[i].buf)->dt;
    if (tile && c->t.use[i] == LU_packed) r.packed[i] = c->t.pack[i];
  }
  return r;
}

static StmtId first_of(const Prog *p, Cursor at) {
  if (!at.owner) return p->body;
  return at.other ? prog_stmt(p, at.owner)->other : prog_stmt(p, at.owner)->body;
}

/* Loops after statement `last` of the list (0: all) that have no record yet get this one. */
static void own_loops(Prog *p, Cursor at, StmtId last, RecordId r) {
  Stmt *s;
  StmtId from = last ? prog_stmt(p, last)->next : first_of(p, at);
  for (StmtVisit w = prog_visit(p, from); (s = prog_next(&w));)
    if (s->kind == ST_for && s->role && !s->record) s->record = r;
}

void kernel_write(Lower *l, Cursor at, const Form *f, KernelChoice *c) {
  StmtId kernel = l->at.last, last = at.last ? at.last : first_of(l->p, at);
  while (last && prog_stmt(l->p, last)->next) last = prog_stmt(l->p, last)->next;
  c->t.record = kernel_record(l->p, kernel, record_of(l, f, c));
  families[c->family].write(l, at, f, c);
  KernelRecord *r = prog_record(l->p, c->t.record);
  for (u32 i = 0; i < RECORD_IN; i++) /* operands that the kernel itself packs */
    if (r->in[i] && !r->packed[i] && c->t.packed_at_run[i]) r->packed[i] = c->t.pack[i];
  own_loops(l->p, at, last, c->t.record);
}
