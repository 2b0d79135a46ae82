/* lower_window.c: depthwise convolution of int8 on microcontrollers (family window_tile).
 *
 * In: a form that sums products of int8 windows with constant weights, a few terms per result, such
 * that no operand is shared by several results as in a matrix product. Out: for each channel, its
 * plane as int16 with zeros around it, and register tiles of neighboring results of a row. A window
 * is unrolled: each weight and each element of the plane is loaded once per tile. On the stored
 * plane no window leaves the image, so bounds need no tests.
 *
 * Planes of microcontrollers are small; a form with larger ones is left to other families.
 */
#include "pass/kernel/i16.h"

enum { WINDOW_DIMS = 2, TILE_MOST = 5 };

typedef struct WindowPlan {
  u32 w, x;             /* operands: the constant one, the other */
  u32 n;                /* window dimensions, the last ones of x */
  u32 out[WINDOW_DIMS]; /* axes of the result */
  u32 in[WINDOW_DIMS];  /* reduction axes */
  i64 stride[WINDOW_DIMS];
  i64 shift[WINDOW_DIMS];  /* position 0 of the plane in x */
  i64 extent[WINDOW_DIMS]; /* of x */
  i64 plane[WINDOW_DIMS];  /* of the plane */
} WindowPlan;

typedef struct WindowWriter {
  Prog *p;
  const Form *f;
  const WindowPlan *s;
  Nest outer; /* loops over channels */
  BufId plane;
  VarId y; /* row of results; 0: only one */
} WindowWriter;

/* Does the index move along a reduction axis? */
static bool is_window(const Form *f, const Index *ix) {
  for (u32 k = 0; k < ix->n; k++)
    if (f->axis[ix->axis[k]].reduce && f->axis[ix->axis[k]].hi != 1) return true;
  return ix->guard != 0;
}

static bool find_window(const Lower *l, const Form *f, WindowPlan *s, u32 d) {
  const Operand *o = &f->in[s->x];
  const Index *ix = &o->idx[d];
  u32 k = ix->axis[0] < FORM_AXES && f->axis[ix->axis[0]].reduce ? 0 : 1, i = s->n++;
  const Axis *out = &f->axis[ix->axis[1 - k]], *in = &f->axis[ix->axis[k]];
  i64 extent = prog_buf(l->p, o->buf)->dim[d];
  if (ix->base || ix->stretch || ix->dilation > 1 || !in->reduce || out->reduce || in->lo ||
      out->lo || ix->coef[k] != 1 || ix->coef[1 - k] < 1 || !dim_is_const(out->hi) ||
      !dim_is_const(in->hi) || !dim_is_const(extent))
    return false;
  s->out[i] = ix->axis[1 - k];
  s->in[i] = ix->axis[k];
  s->stride[i] = ix->coef[1 - k];
  s->shift[i] = ix->shift;
  s->extent[i] = extent;
  s->plane[i] = (out->hi - 1) * s->stride[i] + in->hi;
  return out->hi > 0 && in->hi > 0;
}

/* Finds the windows of operand s->x: its last dimensions have one each, and together they are the
 * reduction. */
static bool find_windows(const Lower *l, const Form *f, WindowPlan *s) {
  const Operand *o = &f->in[s->x];
  i64 terms = 1, bytes = 2, of_x = 1;
  for (u32 d = 0; d < o->rank; d++) {
    Dim n = prog_buf(l->p, o->buf)->dim[d];
    of_x = dim_is_const(n) ? of_x * n : 0;
    if (!s->n && !is_window(f, &o->idx[d])) continue;
    if (o->idx[d].n != 2 || s->n == WINDOW_DIMS || !find_window(l, f, s, d)) return false;
  }
  for (u32 i = 0; i < f->naxes; i++) {
    bool window = false;
    for (u32 k = 0; k < s->n; k++) window = window || s->in[k] == i;
    if (!f->axis[i].reduce || (!window && f->axis[i].hi == 1)) continue;
    if (!window || (f->axis[i].hi > 1 && !operand_moves(&f->in[s->w], i))) return false;
    terms *= f->axis[i].hi;
  }
  for (u32 k = 0; k < s->n; k++) {
    if (operand_moves(&f->in[s->w], s->out[k])) return false;
    bytes *= s->plane[k];
  }
  return s->n && terms > 1 && terms <= (i64)figures.window_steps &&
         (bytes <= LIMIT_micro_row_bytes || bytes <= of_x / LIMIT_micro_plane_part);
}

static bool window_plan(const Lower *l, const Form *f, WindowPlan *s) {
  const PassCtx *u = l->pass;
  if (!u->target->micro || u->aim != AIM_time || !f->reduce || f->nin != 2 || f->body != FB_op ||
      f->op != OP_mul || f->with != OP_add || f->acc != DT_i32 || f->init.i || f->from.buf)
    return false;
  for (u32 k = 0; k < 2; k++) {
    *s = (WindowPlan){.w = k, .x = 1 - k};
    const Buf *b = prog_buf(l->p, prog_root(l->p, f->in[k].buf));
    bool bytes = b->space == BS_const && b->data && b->data->data && dtype_is_int(b->dt) &&
                 i16_byte_type(b->data) != DT_none;
    if (bytes && i16_fits(l, f, 1 - k) && find_windows(l, f, s)) return true;
  }
  return false;
}

bool window_choose(Lower *l, const Form *f, KernelChoice *r) {
  WindowPlan s;
  if (!window_plan(l, f, &s)) return false;
  r->family = FA_window_tile;
  r->reason = str_of(l->c, "windows of a padded plane need no bounds");
  return true;
}

static void zero(WindowWriter *w, Cursor at, ExprId from, i64 n) {
  Prog *p = w->p;
  if (n < 1) return;
  VarId k = prog_for(p, &at, ex_int(p, 0), ex_int(p, n), "k");
  if (n <= TILE_MOST) prog_stmt(p, at.owner)->flags |= LF_unroll;
  ExprId to = ex_op2(p, OP_add, ex_copy(p, from), ex_var(p, k));
  prog_store(p, &at, w->plane, &to, 1, ex_const(p, DT_i16, (Scalar){0}));
}

/* Positions [lo, hi) of the plane along window dimension d that are inside x. */
static void inside(const WindowPlan *s, u32 d, i64 *lo, i64 *hi) {
  *lo = s->shift[d] < 0 ? -s->shift[d] : 0;
  *hi = s->extent[d] - s->shift[d] < s->plane[d] ? s->extent[d] - s->shift[d] : s->plane[d];
  if (*lo > s->plane[d]) *lo = s->plane[d];
  if (*hi < *lo) *hi = *lo;
}

static void fill_plane(WindowWriter *w, Cursor at) {
  Prog *p = w->p;
  const WindowPlan *s = w->s;
  u32 last = s->n - 1;
  i64 width = s->plane[last], lo[WINDOW_DIMS], hi[WINDOW_DIMS];
  ExprId sub[FORM_AXES] = {0}, row = ex_int(p, 0);
  Nest x = w->outer;
  for (u32 d = 0; d < s->n; d++) {
    inside(s, d, &lo[d], &hi[d]);
    sub[s->out[d]] = ex_int(p, 0);
  }
  x.at = at;
  if (s->n > 1) {
    zero(w, at, ex_int(p, 0), lo[0] * width);
    zero(w, at, ex_int(p, hi[0] * width), (s->plane[0] - hi[0]) * width);
    VarId y = prog_for(p, &x.at, ex_int(p, lo[0]), ex_int(p, hi[0]), "y");
    sub[s->in[0]] = ex_var(p, y);
    row = ex_op2(p, OP_mul, ex_var(p, y), ex_int(p, width));
  }
  zero(w, x.at, row, lo[last]);
  zero(w, x.at, ex_op2(p, OP_add, ex_copy(p, row), ex_int(p, hi[last])), width - hi[last]);
  i64 n = hi[last] - lo[last], each = n <= 2 * TILE_MOST ? n : i16_part(n, 4);
  if (n < 1) return;
  ExprId at_x = ex_int(p, lo[last]);
  if (n > each) {
    VarId q = prog_for(p, &x.at, ex_int(p, 0), ex_int(p, n / each), "q");
    at_x = ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_var(p, q), ex_int(p, each)), at_x);
  }
  if (each > 1) {
    VarId r = prog_for(p, &x.at, ex_int(p, 0), ex_int(p, each), "r");
    prog_stmt(p, x.at.owner)->flags |= LF_unroll;
    at_x = ex_op2(p, OP_add, at_x, ex_var(p, r));
  }
  sub[s->in[last]] = at_x;
  x.sub = sub;
  ExprId to = ex_op2(p, OP_add, row, ex_copy(p, at_x));
  prog_store(p, &x.at, w->plane, &to, 1, ex_cast(p, DT_i16, nest_load(&x, s->x), false));
}

/* `count` tiles of n results from result `from` of the row on. */
static void write_tiles(WindowWriter *w, Cursor at, i64 from, i64 n, i64 count) {
  Prog *p = w->p;
  const WindowPlan *s = w->s;
  u32 last = s->n - 1;
  i64 rows = s->n > 1 ? w->f->axis[s->in[0]].hi : 1, size = w->f->axis[s->in[last]].hi;
  VarId acc[TILE_MOST], tap[64] = {0}, m = 0;
  ExprId sub[FORM_AXES] = {0};
  if (count > 1) m = prog_for(p, &at, ex_int(p, 0), ex_int(p, count), "m");
  for (i64 i = 0; i < n; i++) acc[i] = let_new(p, &at, "acc", ex_const(p, DT_i32, (Scalar){0}));
  Nest x = w->outer;
  x.sub = sub;
  for (i64 r = 0; r < rows; r++) {
    for (i64 t = 0; t < size; t++) {
      if (s->n > 1) sub[s->in[0]] = ex_int(p, r);
      sub[s->in[last]] = ex_int(p, t);
      x.at = at;
      tap[t] = let_new(p, &at, "w", ex_cast(p, DT_i32, nest_load(&x, s->w), false));
    }
    for (i64 q = 0; q < (n - 1) * s->stride[last] + size; q++) {
      ExprId to = ex_int(p, r * s->plane[last] + from * s->stride[last] + q);
      if (w->y) {
        ExprId e = ex_int(p, s->stride[0] * s->plane[last]);
        to = ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_var(p, w->y), e), to);
      }
      if (m) {
        ExprId e = ex_op2(p, OP_mul, ex_var(p, m), ex_int(p, n * s->stride[last]));
        to = ex_op2(p, OP_add, e, to);
      }
      VarId v = 0;
      for (i64 i = 0; i < n; i++) {
        i64 t = q - i * s->stride[last];
        if (t < 0 || t >= size) continue;
        if (!v) v = let_new(p, &at, "x", ex_cast(p, DT_i32, ex_load(p, w->plane, &to, 1), false));
        ExprId product = ex_op2(p, OP_mul, ex_var(p, v), ex_var(p, tap[t]));
        prog_set(p, &at, acc[i], ex_op2(p, OP_add, ex_var(p, acc[i]), product));
      }
    }
  }
  for (i64 i = 0; i < n; i++) {
    ExprId col = ex_int(p, from + i);
    if (m) col = ex_op2(p, OP_add, ex_op2(p, OP_mul, ex_var(p, m), ex_int(p, n)), col);
    sub[s->out[last]] = col;
    if (s->n > 1) sub[s->out[0]] = ex_at(p, w->y);
    x.at = at;
    nest_store(&x, nest_finish(&x, ex_finish(p, w->f->dt, ex_var(p, acc[i]))));
  }
}

void window_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Prog *p = l->p;
  WindowPlan s;
  (void)r;
  if (!window_plan(l, f, &s)) internal_error(l->c, LOC_NONE, "the form has no windows");
  WindowWriter w = {.p = p, .f = f, .s = &s, .outer = {.l = l, .p = p, .f = f, .at = at}};
  Dim all = 1;
  for (u32 d = 0; d < s.n; d++) all *= s.plane[d];
  w.plane = prog_add_buf(p, BS_local, DT_i16, &all, 1, str_of(p->c, "plane"));
  for (u32 i = 0; i < f->naxes; i++)
    if (!f->axis[i].reduce && i != s.out[0] && i != s.out[s.n - 1]) nest_loop(&w.outer, i);
  fill_plane(&w, w.outer.at);
  at = w.outer.at;
  if (s.n > 1 && f->axis[s.out[0]].hi > 1)
    w.y = prog_for(p, &at, ex_int(p, 0), ex_int(p, f->axis[s.out[0]].hi), "y");
  i64 row = f->axis[s.out[s.n - 1]].hi;
  i64 n = row <= TILE_MOST ? row : row % 4 == 0 ? 4 : row % 3 == 0 ? 3 : row % 5 == 0 ? 5 : 4;
  write_tiles(&w, at, 0, n, row / n);
  if (row % n) write_tiles(&w, at, row - row % n, row % n, 1);
}
