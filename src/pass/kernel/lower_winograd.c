/* lower_winograd.c: 3x3 convolutions by Winograd's method.
 *
 * In: the form of a 3x3 convolution with stride 1, over channel blocks with a sufficient border of
 * zeros. Out: Winograd's F(m x m, 3 x 3), m = 2 or 4. Patches of (m+2)^2 inputs are transformed.
 * Each of the (m+2)^2 positions becomes a matmul [patches, channels] x [channels, results]. The
 * output transform yields m x m results. Weights are transformed at compile time, in double.
 * Patches are processed in blocks whose transforms fit in L2. F(4x4) needs a quarter of the
 * multiplications and loses about two bits compared with direct convolution. F(2x2) needs 4/9 and
 * loses none.
 *
 * Integers are exact. int8 stored as int16 (widen_i8.c) is transformed in 16 bits, since factors
 * are at most 100. G is used without its denominators, row by row, so transformed weights fit in 16
 * bits. Products are summed modulo 2^32 (dot_i16x2). AT is scaled to integers too. The result is
 * then 9 * 2^k * y modulo 2^32: the inverse of 9 and a shift give y, if 2^k * y fits in 32 bits.
 * winograd_plan.c ensures that.
 */
#include "pass/kernel/tile.h"

#include <string.h>

enum { WINO_SIDE = 6 }; /* largest patch */

/* Transforms for m = 2 and m = 4: input BT, weights G, output AT. */
static const double bt2[4][WINO_SIDE] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
static const double g2[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
static const double at2[2][WINO_SIDE] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const double bt4[6][WINO_SIDE] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0},
                                         {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0},
                                         {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const double g4[6][3] = {{1. / 4, 0, 0},
                                {-1. / 6, -1. / 6, -1. / 6},
                                {-1. / 6, 1. / 6, -1. / 6},
                                {1. / 24, 1. / 12, 1. / 6},
                                {1. / 24, -1. / 12, 1. / 6},
                                {0, 0, 1}};
static const double at4[4][WINO_SIDE] = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

/* Integer transforms: G without denominators, row by row, and AT times 2, or times 3 and a power of
 * two. */
static const double gi2[4][3] = {{1, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 1}};
static const double gi4[6][3] = {{1, 0, 0}, {-1, -1, -1}, {-1, 1, -1},
                                 {1, 2, 4}, {1, -2, 4},   {0, 0, 1}};
static const double ati2[2][WINO_SIDE] = {{2, 1, 1, 0}, {0, 1, -1, -2}};
static const double ati4[4][WINO_SIDE] = {
    {6, 4, 4, 1, 1, 0}, {0, 2, -2, 1, -1, 0}, {0, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 6}};
static const u32 shift2[2] = {1, 1}, shift4[4] = {3, 2, 1, 1};
#define INVERSE_9 0x38e38e39 /* modulo 2^32 */

struct WinogradWriter {
  Lower *l;
  Prog *p;
  Form form; /* over the types in memory */
  const Form *f;
  u32 m, side;                    /* outputs and inputs along one side of a patch */
  u32 lanes;                      /* size of a channel block */
  DType in_dt, dt;                /* types of transformed inputs and of accumulators */
  u32 batch, out, high, wide, in; /* axes: image, output channel, row, column, input channel */
  i64 nin, nout, down, across;    /* channels; patches per column and per row */
  i64 pad_y, pad_x;
  i64 last;    /* number of the last patch, if the last block may exceed it; or 0 */
  BufId v, mm; /* transforms of one block: [position, patch, channel] */
  ExprId val[FORM_AXES];
  VarId lane_var, acc_var;
};

/* Is dimension d a window of three with a border as wide as patches read? */
static bool slides(const WinogradWriter *w, u32 d, i64 patches, i64 *pad) {
  const Index *ix = &w->f->in[0].idx[d];
  const Axis *k = &w->f->axis[ix->axis[1]];
  const Layout *x = layout_of(w->l, w->f->in[0].buf);
  *pad = -ix->shift;
  return k->lo == 0 && k->hi == 3 && *pad <= x->lo[d] &&
         patches * w->m + 2 - *pad <= prog_buf(w->p, w->f->in[0].buf)->dim[d] + x->hi[d];
}

/* The form over the types in memory: int16 used as i32. */
static Form stored_form(Lower *l, const Form *f) {
  Form r = *f;
  const Storage *s = storage_of(l, f->in[0].buf);
  i64 zero;
  Val q = f->dt == DT_i32 && s->kind == SK_inlined ? graph_narrow(l->g, s->value, &zero) : 0;
  if (q && !zero && graph_type(l->g, q)->dt == DT_i16) r.in[0].buf = l->buf[q];
  return r;
}

/* Axes are as form.c orders those of a convolution: axis 1 is the groups. */
static bool match(Lower *l, const Form *given, const ConvPlan *c, WinogradWriter *w) {
  Form stored = stored_form(l, given);
  const Form *f = &stored;
  const Layout *y = layout_of(l, f->out.buf), *x = layout_of(l, f->in[0].buf);
  if (!y || !x || !y->block || y->block != x->block || f->out.idx[1].base % y->block) return false;
  DType in_dt = prog_buf(l->p, f->in[0].buf)->dt;
  if (in_dt != (f->dt == DT_f32 ? DT_f32 : DT_i16)) return false;
  *w = (WinogradWriter){
      .l = l, .p = l->p, .form = *f, .lanes = y->block, .in_dt = in_dt, .dt = f->dt};
  w->f = f = &w->form;
  w->m = c->patch;
  w->side = c->patch + 2;
  w->batch = f->axis[0].hi == 1 ? FORM_AXES : 0;
  w->out = 2;
  w->high = 3;
  w->wide = 4;
  w->in = 5;
  w->nin = f->axis[w->in].hi;
  w->nout = f->axis[w->out].hi;
  if (w->nin % w->lanes || w->nout % w->lanes) return false;
  if (c->key) tune_add_kernel(l->pass->tune, l->at.last, c->key);
  w->down = (f->axis[w->high].hi + w->m - 1) / w->m;
  w->across = (f->axis[w->wide].hi + w->m - 1) / w->m;
  return slides(w, 2, w->down, &w->pad_y) && slides(w, 3, w->across, &w->pad_x);
}

/* ---- weights ---- */

/* Transformed weights [position, output, channel] of [output, channel, 3, 3]. Computed when packed,
 * once for all convolutions that share weights and patch size. */
static BufId weights(WinogradWriter *w) {
  Prog *p = w->p;
  BufId from = w->f->in[1].buf;
  u32 *known = map_put_bytes(&w->l->once, (i64[]){ON_winograd, from, w->m}, 3 * sizeof(i64));
  i64 dim[3] = {w->side * w->side, w->nout, w->nin};
  if (*known) return *known;
  Tensor *u = tensor_wrap(&p->c->keep, w->dt, dim, 3, NULL);
  BufId made = *known = prog_add_const(p, u, prog_buf(p, from)->name);
  *map_put_bytes(&w->l->once, (i64[]){ON_weights, made}, 2 * sizeof(i64)) = from;
  return made;
}

const Tensor *winograd_weights(const Lower *l, BufId b, Arena *a) {
  BufId from = *map_get_bytes(&l->once, (i64[]){ON_weights, b}, 2 * sizeof(i64));
  const Tensor *as = prog_buf(l->p, b)->data, *k = prog_buf(l->p, from)->data;
  Tensor *u = tensor_new(a, as->dt, as->dim, 3);
  bool whole = as->dt == DT_i32;
  u32 side = as->dim[0] == 36 ? 6 : 4;
  u64 pairs = (u64)as->dim[1] * (u64)as->dim[2];
  const double(*g)[3] = side == 6 ? (whole ? gi4 : g4) : whole ? gi2 : g2;
  for (u64 o = 0; o < pairs; o++) {
    double x[3][3], t[WINO_SIDE][3];
    for (u32 i = 0; i < 9; i++) {
      Scalar s = tensor_get(k, o * 9 + i);
      x[i / 3][i % 3] = whole ? (double)s.i : s.f;
    }
    for (u32 i = 0; i < side; i++)
      for (u32 j = 0; j < 3; j++)
        t[i][j] = g[i][0] * x[0][j] + g[i][1] * x[1][j] + g[i][2] * x[2][j];
    for (u32 i = 0; i < side; i++)
      for (u32 j = 0; j < side; j++) {
        double y = t[i][0] * g[j][0] + t[i][1] * g[j][1] + t[i][2] * g[j][2];
        tensor_set(u, (i * side + j) * pairs + o, whole ? (Scalar){.i = (i64)y} : (Scalar){.f = y});
      }
  }
  return u;
}

/* ---- transforms ---- */

static BufId registers(WinogradWriter *w, DType dt, u32 rows, u32 columns, const char *name) {
  return tile_registers(w->p, dt, w->lanes, rows, columns, name);
}

static ExprId all_lanes(WinogradWriter *w, DType dt, double x) {
  Scalar s = dt == DT_f32 ? (Scalar){.f = x} : (Scalar){.i = (i64)x};
  return ex_splat(w->p, ex_const(w->p, dt, s), w->lanes);
}

static ExprId reg_at(WinogradWriter *w, BufId b, u32 i, u32 j) {
  ExprId idx[2] = {ex_int(w->p, i), ex_int(w->p, j)};
  return ex_load(w->p, b, idx, 2);
}

/* sum of coef[k] * b[k, j], or of b[j, k] if across */
static ExprId combine(WinogradWriter *w, BufId b, const double *coef, u32 n, u32 j, bool across) {
  Prog *p = w->p;
  ExprId sum = 0;
  for (u32 pass = 0; pass < 2; pass++) /* a term with a positive sign comes first */
    for (u32 k = 0; k < n; k++) {
      double c = coef[k];
      if (c == 0 || (c < 0) == (pass == 0)) continue;
      ExprId e = across ? reg_at(w, b, j, k) : reg_at(w, b, k, j);
      double size = c < 0 ? -c : c;
      if (size != 1) e = ex_op2(p, OP_mul, e, all_lanes(w, prog_buf(p, b)->dt, size));
      sum = !sum ? e : ex_op2(p, c < 0 ? OP_sub : OP_add, sum, e);
    }
  return sum;
}

/* half = coef * from, one side of a transform; `combine` across its rows is the other side. */
static void transform(WinogradWriter *w, Cursor *at, const double (*coef)[WINO_SIDE], u32 rows,
                      BufId from, BufId half) {
  Prog *p = w->p;
  for (u32 i = 0; i < rows; i++)
    for (u32 j = 0; j < w->side; j++) {
      ExprId idx[2] = {ex_int(p, i), ex_int(p, j)};
      prog_store(p, at, half, idx, 2, combine(w, from, coef[i], w->side, j, false));
    }
}

static ExprId scaled(Prog *p, ExprId e, i64 k, i64 plus) {
  e = ex_op2(p, OP_mul, ex_copy(p, e), ex_int(p, k));
  return ex_op2(p, OP_add, e, ex_int(p, plus));
}

/* Row and column of a patch. */
static void place(WinogradWriter *w, Cursor *at, ExprId patch, ExprId *y, ExprId *x) {
  Prog *p = w->p;
  VarId row = let_new(p, at, "ty", ex_op2(p, OP_div, ex_copy(p, patch), ex_int(p, w->across)));
  VarId col = let_new(p, at, "tx", ex_op2(p, OP_mod, ex_copy(p, patch), ex_int(p, w->across)));
  *y = ex_var(p, row);
  *x = ex_var(p, col);
}

static ExprId image(WinogradWriter *w) {
  return w->batch < FORM_AXES ? ex_copy(w->p, w->val[w->batch]) : ex_int(w->p, 0);
}

/* Transforms `count` patches from `first` on into v. */
static void input(WinogradWriter *w, Cursor at, ExprId first, i64 count) {
  Prog *p = w->p;
  BufId d = registers(w, w->in_dt, w->side, w->side, "d"),
        half = registers(w, w->in_dt, w->side, w->side, "h");
  VarId i = for_parallel(p, &at, ex_int(p, 0), ex_int(p, count), "t");
  ExprId y, x, patch = ex_op2(p, OP_add, ex_copy(p, first), ex_var(p, i));
  if (w->last) patch = ex_op2(p, OP_min, patch, ex_int(p, w->last));
  place(w, &at, patch, &y, &x);
  VarId cb = for_parallel(p, &at, ex_int(p, 0), ex_int(p, w->nin / w->lanes), "cb");
  for (u32 r = 0; r < w->side; r++)
    for (u32 c = 0; c < w->side; c++) {
      ExprId idx[MAX_RANK + 1] = {image(w), scaled(p, ex_var(p, cb), w->lanes, 0),
                                  scaled(p, y, w->m, (i64)r - w->pad_y),
                                  scaled(p, x, w->m, (i64)c - w->pad_x)};
      ExprId to[2] = {ex_int(p, r), ex_int(p, c)};
      BufId from = w->f->in[0].buf;
      u32 n = 4;
      storage_address(w->l, &from, idx, &n, &(InnerVars){0});
      prog_store(p, &at, d, to, 2, ex_load_vec(p, from, idx, n, w->lanes));
    }
  const double(*bt)[WINO_SIDE] = w->m == 4 ? bt4 : bt2;
  transform(w, &at, bt, w->side, d, half);
  for (u32 r = 0; r < w->side; r++)
    for (u32 c = 0; c < w->side; c++) {
      ExprId to[3] = {ex_int(p, r * w->side + c), ex_var(p, i),
                      scaled(p, ex_var(p, cb), w->lanes, 0)};
      prog_store(p, &at, w->v, to, 3, combine(w, half, bt[c], w->side, r, true));
    }
}

/* mm[position, patch, output] = sum over channels of v * u */
static void multiply(WinogradWriter *w, Cursor at, BufId u, i64 count) {
  Lower *l = w->l;
  Form f = {.naxes = 4, .nin = 2, .body = FB_op, .op = OP_mul, .reduce = true, .with = OP_add};
  f.acc = f.dt = w->dt;
  f.axis[0] = (Axis){.hi = w->side * w->side, .reduce = false};
  f.axis[1] = (Axis){.hi = count, .reduce = false};
  f.axis[2] = (Axis){.hi = w->nout, .reduce = false};
  f.axis[3] = (Axis){.hi = w->nin, .reduce = true};
  static const u32 axes[3][3] = {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}};
  Operand *o[3] = {&f.out, &f.in[0], &f.in[1]};
  BufId b[3] = {w->mm, w->v, u};
  for (u32 k = 0; k < 3; k++) {
    o[k]->buf = b[k];
    o[k]->rank = 3;
    for (u32 d = 0; d < 3; d++) o[k]->idx[d] = (Index){.n = 1, .axis = {axes[k][d]}, .coef = {1}};
  }
  if (!lower_tiles(l, at, &f)) internal_error(l->c, LOC_NONE, "a matmul of Winograd has no tile");
}

static Nest wino_nest(const WinogradWriter *w, Cursor at) {
  Nest x = {.l = w->l, .p = w->p, .f = w->f, .at = at, .sub = w->val};
  x.in.inner = (InnerVars){1, {{w->lane_var, w->lanes}}};
  return x;
}

/* Widens expressions over the lanes of a channel block; vec replaces the reduction's value. */
static Vectorizer wino_widen(const WinogradWriter *w, ExprId vec) {
  return (Vectorizer){.p = w->p,
                      .lane = w->lane_var,
                      .lanes = w->lanes,
                      .acc_var = w->acc_var,
                      .vec = vec,
                      .once = &w->l->once};
}

static const double (*back_of(const WinogradWriter *w))[WINO_SIDE] {
  if (w->dt == DT_f32) return w->m == 4 ? at4 : at2;
  return w->m == 4 ? ati4 : ati2;
}

/* Result (r, c) of a patch. Integer results are divided by their scale. */
static ExprId result_of(WinogradWriter *w, BufId half, u32 r, u32 c) {
  Prog *p = w->p;
  ExprId e = combine(w, half, back_of(w)[c], w->side, r, true);
  if (w->dt == DT_f32) return e;
  if (w->m == 4) e = ex_op2(p, OP_mul, e, all_lanes(w, DT_i32, INVERSE_9));
  const u32 *shift = w->m == 4 ? shift4 : shift2;
  return ex_op2(p, OP_shr, e, all_lanes(w, DT_i32, shift[r] + shift[c]));
}

static void store_result(WinogradWriter *w, Cursor at, BufId half, ExprId y, ExprId x, ExprId ob,
                         u32 r, u32 c) {
  Prog *p = w->p;
  const Form *f = w->f;
  if (f->axis[w->wide].hi % w->m)
    prog_if(p, &at, ex_op2(p, OP_lt, scaled(p, x, w->m, c), ex_int(p, f->axis[w->wide].hi)));
  w->val[w->high] = scaled(p, y, w->m, r);
  w->val[w->wide] = scaled(p, x, w->m, c);
  w->val[w->out] = ex_op2(p, OP_add, scaled(p, ob, w->lanes, 0), ex_var(p, w->lane_var));
  Nest nest = wino_nest(w, at);
  Vectorizer wide = wino_widen(w, result_of(w, half, r, c));
  store_wide(&nest, &wide, nest_finish(&nest, ex_var(p, w->acc_var)));
}

/* Output transform of mm, epilogue and stores. */
static void output(WinogradWriter *w, Cursor at, ExprId first, i64 count) {
  Prog *p = w->p;
  BufId d = registers(w, w->dt, w->side, w->side, "d"),
        half = registers(w, w->dt, w->m, w->side, "h");
  VarId i = for_parallel(p, &at, ex_int(p, 0), ex_int(p, count), "t");
  ExprId y, x, patch = ex_op2(p, OP_add, ex_copy(p, first), ex_var(p, i));
  if (w->last) prog_if(p, &at, ex_op2(p, OP_le, ex_copy(p, patch), ex_int(p, w->last)));
  place(w, &at, patch, &y, &x);
  VarId ob = for_parallel(p, &at, ex_int(p, 0), ex_int(p, w->nout / w->lanes), "ob");
  for (u32 r = 0; r < w->side; r++)
    for (u32 c = 0; c < w->side; c++) {
      ExprId from[3] = {ex_int(p, r * w->side + c), ex_var(p, i),
                        scaled(p, ex_var(p, ob), w->lanes, 0)};
      ExprId to[2] = {ex_int(p, r), ex_int(p, c)};
      prog_store(p, &at, d, to, 2, ex_load_vec(p, w->mm, from, 3, w->lanes));
    }
  transform(w, &at, back_of(w), w->m, d, half);
  for (u32 r = 0; r < w->m; r++) {
    Cursor row = at;
    if (w->f->axis[w->high].hi % w->m)
      prog_if(p, &row, ex_op2(p, OP_lt, scaled(p, y, w->m, r), ex_int(p, w->f->axis[w->high].hi)));
    for (u32 c = 0; c < w->m; c++) store_result(w, row, half, y, x, ex_var(p, ob), r, c);
  }
}

/* Can the epilogue be computed in vectors? Tries it on expressions that are dropped. */
static bool finishes(WinogradWriter *w) {
  Prog *p = w->p;
  ProgMark mark = prog_mark(p);
  for (u32 i = 0; i < w->f->naxes; i++)
    w->val[i] = w->f->axis[i].hi == 1 ? 0 : ex_var(p, prog_add_var(p, DT_i64, 0));
  ExprId block = scaled(p, w->val[w->out], w->lanes, 0);
  w->val[w->out] = ex_op2(p, OP_add, block, ex_var(p, w->lane_var));
  Nest nest = wino_nest(w, prog_end());
  Vectorizer wide = wino_widen(w, all_lanes(w, w->dt, 0));
  bool ok = widen(&wide, nest_finish(&nest, ex_var(p, w->acc_var))) != 0;
  memset(w->val, 0, sizeof w->val);
  prog_rewind(p, mark);
  return ok;
}

/* Patches of a block if threads take whole blocks: balances the threads. A tile of rows costs about
 * as much as two more patches. */
static i64 even_blocks(const WinogradWriter *w, i64 all, i64 most) {
  i64 best = most, least = INT64_MAX, rows = (i64)w->l->pass->target->cost->tile_rows;
  for (i64 each = most; each >= rows / 2; each--) {
    i64 count = (all + each - 1) / each, turns = (count + w->p->threads - 1) / w->p->threads;
    i64 time = turns * (each + 2 * ((each + rows - 1) / rows));
    if (time >= least) continue;
    least = time;
    best = each;
  }
  return best;
}

static void blocks(WinogradWriter *w, Cursor at, BufId u) {
  Prog *p = w->p;
  i64 all = w->down * w->across,
      each = winograd_patches(w->l->pass->target, w->m, w->nin, w->nout, all);
  /* threads share the blocks, or the positions if there is only one block */
  bool even = p->threads > 1 && !winograd_one_pass(w->l->pass->target, w->m, w->nin, w->nout, all);
  if (even) each = even_blocks(w, all, each < all ? each : all);
  i64 count = (all + each - 1) / each;
  each = (all + count - 1) / count; /* balanced */
  Dim vd[3] = {w->side * w->side, each, w->nin}, md[3] = {w->side * w->side, each, w->nout};
  w->v = prog_add_buf(p, BS_local, w->in_dt, vd, 3, str_of(p->c, "patches"));
  w->mm = prog_add_buf(p, BS_local, w->dt, md, 3, str_of(p->c, "products"));
  /* One loop over blocks whose last one may exceed the patches; or the last block separately. */
  if (even) w->last = all % each ? all - 1 : 0;
  for (u32 part = 0; part < 2; part++) {
    i64 n = part ? all % each : even ? count : all / each, size = part ? all % each : each;
    if (!n || (part && even)) continue;
    Cursor in = at;
    ExprId first = ex_int(p, all - size);
    if (!part) first = scaled(p, count_parallel(p, &in, n, "blk"), each, 0);
    input(w, in, first, size);
    multiply(w, in, u, size);
    output(w, in, first, size);
  }
}

bool winograd_choose(Lower *l, const Form *f, KernelChoice *r) {
  if (!r->conv->patch) return false;
  WinogradWriter *w = r->wino = NEW(&l->c->scratch, WinogradWriter);
  if (!match(l, f, r->conv, w)) return false;
  Prog *p = l->p;
  w->lane_var = prog_add_var(p, DT_i64, str_of(p->c, "lane"));
  w->acc_var = prog_add_var(p, w->dt, str_of(p->c, "acc"));
  if (!finishes(w)) return false;
  r->family = FA_winograd;
  r->size = str_fmt(l->c, "F(%ux%u)", w->m, w->m);
  r->reason = str_fmt(l->c, "%.2f of the time of direct convolution", r->conv->share);
  return true;
}

void winograd_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  WinogradWriter *w = r->wino;
  Prog *p = l->p;
  if (w->batch < FORM_AXES)
    w->val[w->batch] =
        ex_var(p, for_parallel(p, &at, ex_int(p, 0), ex_dim(p, f->axis[w->batch].hi), "n"));
  blocks(w, at, weights(w));
}
