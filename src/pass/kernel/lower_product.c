/* lower_product.c: sums of products by the warps of a GPU block (family block_product).
 *
 * In: a form that sums products of two operands in f32: a matrix product or a convolution. Out: a
 * kernel in which a block computes a tile of rows x columns of the result. Result axes that only
 * one operand moves along are the rows, those of the other operand the columns, shared ones the
 * batch. All reduction axes are one axis k, with the axis along which memory is contiguous
 * innermost; a convolution thus multiplies an implicit matrix (implicit GEMM).
 *
 *   for tile parallel
 *     copy steps 0 .. stages - 2 of both operands to scratch      asynchronous, a group each
 *     for step
 *       await the copies of this step; start those of step + stages - 1
 *       sums += rows of the step * columns of the step
 *     store the sums to scratch, add those of the slices in order, finish and store
 *
 * The copies of `stages` steps form a ring. Slices of the threads take parts of k of each step. The
 * inner step has two forms. In f32 each thread multiplies and adds a part of the tile: exact, and
 * in the order of k within a slice. For operands that memory holds as f16 or bf16, or with
 * precision tf32, warps multiply fragments (tensor cores).
 *
 * If there are few tiles, k is split between `parts` blocks. They store partial sums, and a second
 * kernel adds these in order and finishes.
 *
 * Constants are packed at compile time, with k contiguous. Rows of scratch are padded by 16 bytes,
 * so that eight rows lie in different banks. Elements outside of an image are copied as zeros.
 */
#include "pass/kernel/tile.h"

#include "ir/prog/affine.h"
#include "ir/prog/cost.h"

#include <string.h>

enum {
  COPY_BYTES = 16,  /* of an asynchronous copy, and padding of a row */
  K_MIN = 16,       /* shorter reductions are left to other families */
  COLUMNS_MIN = 16, /* fewer columns, or rows, too */
  ROW_WORK = 256,   /* minimum of rows times k */
  COPIES = 4,       /* single elements that a thread copies at once */
  FINISH = 8,       /* results that a thread finishes at once, so that their loads overlap */
  QUAD = 4,         /* f32 of k that a thread loads at once */
  ROWS_OPEN = 512   /* rows assumed if their number is unknown */
};

/* An operand, and how it is copied to scratch. */
typedef struct Side {
  u32 in;                 /* operand of the form */
  u32 n, axis[FORM_AXES]; /* its result axes */
  bool fixed;             /* a constant, which is packed */
  bool along_k;           /* copies and rows of scratch run along k, else along the result */
  bool direct;            /* memory has the type of scratch */
  i64 vec;                /* elements of a copy */
  Dim extent;             /* of the result axes together */
  i64 tile;               /* of these, in a block */
  BufId packed, scratch;
} Side;

struct Product {
  Tile t;
  Side side[2]; /* rows, columns */
  u32 nbatch, batch[FORM_AXES];
  u32 nouter, outer[FORM_AXES]; /* reduction axes around the innermost one */
  u32 inner;                    /* reduction axis that is contiguous */
  i64 channels, k;              /* extent of `inner`; of k */
  DType dt;                     /* of scratch */
  bool mma;
  i64 depth;                 /* of k in a step, of one slice */
  i64 slices, stages, steps; /* steps: of all parts together, a multiple of parts */
  i64 parts;
  i64 warps[2];               /* of a slice, along rows and columns; mma */
  i64 threads[2];             /* the same for f32 */
  i64 each[2];                /* fragments of a warp, or sums of a thread, along both */
  VarId part, number;         /* of the block: its part, its tile */
  VarId tile_at[2];           /* first row and column of the block */
  ExprId batch_at[FORM_AXES]; /* by axis: its value in the block */
};

/* ---- the operands ---- */

static i64 extent(const Form *f, u32 axis) {
  return f->axis[axis].hi;
}

/* Does memory hold the value of a cast from a narrow float? Returns what is cast. */
static ExprId uncast(const Prog *p, ExprId id) {
  const Expr *e = prog_expr(p, id);
  bool cast = e->kind == EX_op && e->op == OP_cast && e->dt == DT_f32 &&
              dtype_is_half(prog_expr(p, e->arg[0])->dt);
  return cast ? e->arg[0] : id;
}

/* The operand at the axis values of o->t. *inside (may be NULL): condition that no guarded index
 * leaves its dimension, 0: none does; indices are clamped. */
static ExprId element(Product *o, const Side *s, ExprId *inside) {
  Prog *p = o->t.p;
  const Operand *from = &o->t.f.in[s->in];
  Nest x = tile_nest(&o->t, prog_end());
  ExprId idx[MAX_RANK];
  for (u32 d = 0; d < from->rank; d++) {
    u8 guard = from->idx[d].guard;
    Dim dim = prog_buf(p, from->buf)->dim[d];
    idx[d] = nest_index(&x, from, d);
    for (u32 high = 0; high < 2; high++) {
      if (!(guard & (high ? GUARD_high : GUARD_low))) continue;
      ExprId limit = high ? ex_op2(p, OP_sub, ex_dim(p, dim), ex_int(p, 1)) : ex_int(p, 0);
      ExprId holds = ex_op2(p, high ? OP_le : OP_ge, ex_copy(p, idx[d]), ex_copy(p, limit));
      if (inside) *inside = *inside ? ex_op2(p, OP_and, *inside, holds) : holds;
      idx[d] = ex_op2(p, high ? OP_min : OP_max, idx[d], limit);
    }
  }
  return uncast(p, storage_load(o->t.l, from->buf, idx, &x.in));
}

/* The vector that starts at this scalar load; 0: its lanes are not contiguous, or not aligned. */
static ExprId vector(Product *o, ExprId scalar, i64 vec) {
  Prog *p = o->t.p;
  const Expr *e = prog_expr(p, scalar);
  ExprId idx[MAX_RANK];
  Affine a;
  if (e->kind != EX_load) return 0;
  BufId b = e->ref;
  u32 n = e->narg;
  for (u32 i = 0; i < n; i++) idx[i] = ex_copy(p, e->arg[i]);
  o->t.lanes = (u32)vec;
  Vectorizer w = tile_widen(&o->t, 0);
  if (!widen_place(&w, &b, idx, &n) || !affine_of(p, idx[n - 1], &a) || a.k % vec) return 0;
  for (u32 i = 0; i < a.n; i++)
    if (a.t[i].coef % vec) return 0;
  const Buf *x = prog_buf(p, b);
  if (n > 1 && (!dim_is_const(x->dim[n - 1]) || x->dim[n - 1] % vec)) return 0;
  return ex_load_vec(p, b, idx, n, (u32)vec);
}

/* Starts a trial in which every axis is a variable, and `along` advances by vectors. */
static ProgMark begin(Product *o, u32 along, i64 vec) {
  Prog *p = o->t.p;
  ProgMark mark = prog_mark(p);
  o->t.lanes = (u32)vec;
  o->t.at.inner = (InnerVars){1, {{o->t.lane_var, (i64)vec}}};
  for (u32 i = 0; i < o->t.f.naxes; i++) o->t.at.val[i] = ex_var(p, prog_add_var(p, DT_i64, 0));
  if (along < FORM_AXES)
    o->t.at.val[along] = ex_op2(p, OP_add, ex_op2(p, OP_mul, o->t.at.val[along], ex_int(p, vec)),
                                ex_var(p, o->t.lane_var));
  return mark;
}

static DType type_of(Product *o, const Side *s) {
  ProgMark mark = begin(o, FORM_AXES, 1);
  DType dt = prog_expr(o->t.p, element(o, s, NULL))->dt;
  trial_end(&o->t, mark);
  return dt;
}

/* The most elements that one copy along the axis can have. */
static i64 reach(Product *o, const Side *s, u32 axis, DType dt) {
  const Operand *from = &o->t.f.in[s->in];
  for (u32 d = 0; d < from->rank; d++)
    if (from->idx[d].guard && index_moves(&from->idx[d], axis)) return 1;
  if (!dim_is_const(extent(&o->t.f, axis))) return 1;
  for (i64 vec = COPY_BYTES / dtype_bytes(dt); vec > 1; vec /= 2) {
    if (extent(&o->t.f, axis) % vec) continue;
    ProgMark mark = begin(o, axis, vec);
    ExprId e = element(o, s, NULL);
    bool fits = prog_expr(o->t.p, e)->dt == dt && vector(o, e, vec);
    trial_end(&o->t, mark);
    if (fits) return vec;
  }
  return 1;
}

/* Is every element of the constant exact in the type? */
static bool is_exact(const Tensor *t, DType dt) {
  if (t->dt == dt) return true;
  if (t->dt != DT_f32) return false;
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f;
    if (scalar_round(dt, x) != x) return false;
  }
  return true;
}

static const Tensor *data_of(const Product *o, const Side *s) {
  return prog_buf(o->t.p, prog_root(o->t.p, o->t.f.in[s->in].buf))->data;
}

/* Chooses the type of scratch, and whether warps multiply it. */
static bool choose_type(Product *o) {
  const PassCtx *u = o->t.l->pass;
  DType dt[2];
  for (u32 i = 0; i < 2; i++)
    dt[i] = o->side[i].fixed ? data_of(o, &o->side[i])->dt : type_of(o, &o->side[i]);
  if (o->side[0].fixed && o->side[1].fixed) return false;
  o->dt = DT_f32;
  for (u32 i = 0; i < 2; i++) {
    const Side *other = &o->side[1 - i];
    if (!dtype_is_half(dt[i])) continue;
    bool same = dt[1 - i] == dt[i] || (other->fixed && is_exact(data_of(o, other), dt[i]));
    if (!o->side[i].fixed && same) o->dt = dt[i];
  }
  o->mma = o->dt != DT_f32 || u->precision == PREC_tf32;
  for (u32 i = 0; i < 2; i++) o->side[i].direct = dt[i] == o->dt;
  return (dtype_is_half(dt[0]) || dt[0] == DT_f32) && (dtype_is_half(dt[1]) || dt[1] == DT_f32);
}

/* Sorts the axes. False: one has no known start or is shared in another way. */
static bool choose_axes(Product *o) {
  const Form *f = &o->t.f;
  u32 lane = tile_lane_axis(&o->t), column = 1;
  for (u32 k = 0; k < 2; k++) {
    const Operand *x = &f->in[k];
    for (u32 d = 0; d < x->rank; d++)
      if (x->idx[d].dilation > 1 || x->idx[d].stretch) return false;
  }
  if (lane < FORM_AXES && operand_moves(&f->in[0], lane) && !operand_moves(&f->in[1], lane))
    column = 0;
  o->side[0].in = 1 - column;
  o->side[1].in = column;
  o->k = 1;
  for (u32 i = 0; i < 2; i++) o->side[i].extent = 1;
  for (u32 i = 0; i < f->naxes; i++) {
    const Axis *a = &f->axis[i];
    if (a->lo || a->full_hi || (a->reduce && !dim_is_const(a->hi))) return false;
    if (dim_is_const(a->hi) && a->hi < 1) return false;
    if (a->reduce) {
      o->k *= a->hi;
      continue;
    }
    bool moves[2];
    for (u32 k = 0; k < 2; k++) moves[k] = operand_moves(&f->in[o->side[k].in], i);
    if (a->hi == 1) continue;
    if (moves[0] == moves[1]) {
      if (!moves[0] || !dim_is_const(a->hi)) return false;
      o->batch[o->nbatch++] = i;
      continue;
    }
    Side *s = &o->side[moves[1]];
    s->axis[s->n++] = i;
    s->extent = dim_mul(o->t.p->dims, s->extent, a->hi);
  }
  return true;
}

/* Chooses the innermost reduction axis and the width of copies. */
static void choose_copies(Product *o) {
  const Form *f = &o->t.f;
  i64 best = -1;
  for (u32 i = f->naxes; i-- > 0;) {
    if (!f->axis[i].reduce) continue;
    i64 vec[2], sum = 0;
    for (u32 k = 0; k < 2; k++) {
      Side *s = &o->side[k];
      vec[k] = s->fixed ? 0 : s->direct ? reach(o, s, i, o->dt) : 1;
      sum += vec[k];
    }
    if (sum <= best) continue;
    best = sum;
    o->inner = i;
    for (u32 k = 0; k < 2; k++) o->side[k].vec = vec[k];
  }
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].reduce && i != o->inner) o->outer[o->nouter++] = i;
  o->channels = extent(f, o->inner);
  for (u32 k = 0; k < 2; k++) {
    Side *s = &o->side[k];
    s->along_k = s->fixed || s->vec > 1 || !s->n;
    if (s->fixed) s->vec = COPY_BYTES / dtype_bytes(o->dt);
    if (s->along_k || !s->direct) continue;
    s->vec = reach(o, s, s->axis[s->n - 1], o->dt);
    if (o->mma && o->dt == DT_f32) s->along_k = true; /* tf32 has no transposed load */
    if (s->along_k) s->vec = 1;
  }
}

static double up(double x, double by) {
  double n = (double)(i64)(x / by);
  return n * by < x ? n + 1 : n;
}

/* Estimated time of the kernel with the sizes in o, in us. */
static double time_of(const Product *o, double rows, double columns, double batch) {
  double tiles = batch * up(rows, (double)o->side[0].tile) * up(columns, (double)o->side[1].tile) *
                 (double)o->parts,
         depth = (double)(o->depth * o->slices), steps = up((double)o->k, depth) / (double)o->parts,
         area = (double)(o->side[0].tile * o->side[1].tile),
         edge = (double)(o->side[0].tile + o->side[1].tile);
  double per_sm = tiles < 2 * figures.gpu_sms ? up(tiles, figures.gpu_sms) : 2;
  double step = area * depth * per_sm / (o->mma ? figures.gpu_mma : figures.gpu_fma),
         bytes = edge * depth * dtype_bytes(o->dt) * per_sm / figures.gpu_l2;
  double wait = figures.gpu_latency / (double)(o->stages - 1);
  if (bytes > step) step = bytes;
  if (wait > step) step = wait;
  double join = o->parts > 1 ? figures.gpu_join * (1 + (double)o->parts / 8) : 0;
  return join + up(tiles, per_sm * figures.gpu_sms) *
                    (steps * step + figures.gpu_finish * area * (double)(1 + o->slices) +
                     figures.gpu_latency);
}

static u64 scratch_bytes(const Product *o) {
  i64 pad = COPY_BYTES / dtype_bytes(o->dt), depth = o->depth * o->slices;
  i64 edge = o->side[0].tile + o->side[1].tile;
  return (u64)(o->stages * (edge * depth + edge * pad + depth * pad) * dtype_bytes(o->dt) +
               o->slices * o->side[0].tile * (o->side[1].tile + QUAD) * 4);
}

static void choose_size(Product *o) {
  static const i64 edges[] = {32, 64, 128};
  Dims *ds = o->t.p->dims;
  double rows = (double)extent_upto(ds, o->side[0].extent, ROWS_OPEN),
         columns = (double)extent_upto(ds, o->side[1].extent, ROWS_OPEN), batch = 1, least = 0;
  for (u32 i = 0; i < o->nbatch; i++) batch *= (double)extent(&o->t.f, o->batch[i]);
  Product best = *o;
  for (u32 i = 0; i < 3; i++)
    for (u32 j = 0; j < 3; j++)
      for (o->slices = 1; o->slices <= 4; o->slices *= 2)
        for (u32 v = 0; v < 8; v++) {
          o->stages = 3 + v % 2;
          o->parts = 1 << v / 2;
          o->side[0].tile = edges[i];
          o->side[1].tile = edges[j];
          o->depth = o->mma ? 2 * FRAG_BYTES / dtype_bytes(o->dt) : 16;
          i64 size = edges[i] * edges[j];
          for (u32 k = 0; k < 2; k++) {
            i64 edge = o->side[k].tile;
            o->each[k] = o->mma ? 2 : edge > 32 ? edge / 16 : 4;
            o->warps[k] = edge / 32;
            o->threads[k] = edge / o->each[k];
          }
          i64 threads = o->mma ? size / 32 * o->slices : o->threads[0] * o->threads[1] * o->slices;
          if (threads > 512 || threads < 64 || scratch_bytes(o) > LIMIT_gpu_scratch) continue;
          if (o->slices > 1 && o->depth * o->slices > o->k) continue;
          i64 steps = (o->k + o->depth * o->slices - 1) / (o->depth * o->slices);
          bool fixed = dim_is_const(o->side[0].extent) && dim_is_const(o->side[1].extent);
          if (o->parts > 1 && (!fixed || steps % o->parts || steps < 2 * o->parts)) continue;
          double t = time_of(o, rows, columns, batch);
          if (least > 0 && t >= least) continue;
          least = t;
          best = *o;
        }
  *o = best;
  o->steps = (o->k + o->depth * o->slices - 1) / (o->depth * o->slices);
}

bool product_choose(Lower *l, const Form *f, KernelChoice *r) {
  if (!l->pass->target->warp || !f->reduce || f->with != OP_add || f->body != FB_op ||
      f->op != OP_mul || f->nin != 2 || f->acc != DT_f32 || f->from.buf || f->init.f != 0)
    return false;
  Product *o = NEW(&l->c->work, Product);
  o->t = tile_of(l, f);
  o->t.lane_var = prog_add_var(l->p, DT_i64, str_of(l->c, "lane"));
  if (!choose_axes(o)) return false;
  Dims *ds = l->p->dims;
  i64 columns = extent_upto(ds, o->side[1].extent, ROWS_OPEN),
      rows = extent_upto(ds, o->side[0].extent, ROWS_OPEN);
  if (o->k < K_MIN || columns < COLUMNS_MIN || rows * o->k < ROW_WORK) return false;
  for (u32 i = 0; i < 2; i++) {
    BufId b = f->in[o->side[i].in].buf;
    o->side[i].fixed = tile_is_const(&o->t, b) && data_of(o, &o->side[i]) &&
                       data_of(o, &o->side[i])->data && dim_is_const(o->side[i].extent);
  }
  if (!choose_type(o)) return false;
  choose_copies(o);
  choose_size(o);
  r->family = FA_block_product;
  r->product = o;
  r->reason = str_fmt(l->c, "%lld x %lld sums, %lld slices, %lld stages of %lld products, %s",
                      (long long)o->side[0].tile, (long long)o->side[1].tile, (long long)o->slices,
                      (long long)o->stages, (long long)(o->depth * o->slices),
                      o->mma ? "tensor cores" : "f32");
  return true;
}

/* ---- packing ---- */

/* Values of the axes at a position of a mixed radix number, most significant axis first. */
static void digits(const Form *f, const u32 *axis, u32 n, i64 at, i64 *value) {
  while (n-- > 0) {
    value[axis[n]] = at % extent(f, axis[n]);
    at /= extent(f, axis[n]);
  }
}

/* Packs a constant as [batch, rows, k], with zeros after the last row and the last k. */
static void pack(Product *o, Side *s) {
  const Form *f = &o->t.f;
  Prog *p = o->t.p;
  const Operand *from = &f->in[s->in];
  const Buf *b = prog_buf(p, from->buf);
  const Tensor *x = data_of(o, s);
  i64 depth = o->depth * o->slices, value[FORM_AXES] = {0}, stride[MAX_RANK], batches = 1,
      rows = (s->extent + s->tile - 1) / s->tile * s->tile;
  u32 nbatch = 0, batch[FORM_AXES];
  for (u32 i = 0; i < o->nbatch; i++) {
    batch[nbatch++] = o->batch[i];
    batches *= extent(f, o->batch[i]);
  }
  i64 dim[] = {batches, rows, o->steps * depth}, key[16 + 4 * FORM_AXES];
  u32 n = 0;
  key[n++] = ON_packed;
  key[n++] = -1;
  key[n++] = from->buf;
  key[n++] = o->dt;
  for (u32 i = 0; i < 3; i++) key[n++] = dim[i];
  key[n++] = o->inner;
  for (u32 i = 0; i < s->n; i++) key[n++] = s->axis[i];
  for (u32 i = 0; i < o->nouter; i++) key[n++] = 64 + o->outer[i];
  u32 *known = map_put_bytes(&o->t.l->once, key, n * sizeof *key);
  s->packed = *known;
  if (*known) return;
  Tensor *to = tensor_new(&p->c->keep, o->dt, dim, 3);
  for (i64 d = (i64)from->rank - 1, by = 1; d >= 0; d--) {
    stride[d] = by;
    by *= b->dim[d];
  }
  u8 *out = (u8 *)(uintptr_t)to->data;
  u32 size = dtype_bytes(o->dt), was = dtype_bytes(x->dt);
  i64 outer = o->k / o->channels;
  for (i64 i = 0; i < batches; i++)
    for (i64 r = 0; r < s->extent; r++)
      for (i64 q = 0; q < outer; q++) {
        digits(f, batch, nbatch, i, value);
        digits(f, s->axis, s->n, r, value);
        digits(f, o->outer, o->nouter, q, value);
        value[o->inner] = 0;
        i64 at = 0, step = 0;
        for (u32 d = 0; d < from->rank; d++) {
          const Index *ix = &from->idx[d];
          at += (ix->base + ix->shift) * stride[d];
          for (u32 t = 0; t < ix->n; t++) {
            at += ix->coef[t] * value[ix->axis[t]] * stride[d];
            if (ix->axis[t] == o->inner) step += ix->coef[t] * stride[d];
          }
        }
        u8 *row = out + (u64)((i * rows + r) * dim[2] + q * o->channels) * size;
        for (i64 c = 0; c < o->channels; c++)
          if (x->dt == o->dt)
            memcpy(row + (u64)c * size, (const u8 *)x->data + (u64)(at + c * step) * was, size);
          else
            scalar_store(o->dt, row + (u64)c * size, tensor_get(x, (u64)(at + c * step)));
      }
  s->packed = *known = prog_add_const(p, to, b->name);
}

/* ---- writing ---- */

static ExprId over(Prog *p, ExprId a, i64 k) {
  return ex_op2(p, OP_div, a, ex_int(p, k));
}

/* a - b * k */
static ExprId rest(Prog *p, ExprId a, ExprId b, ExprId k) {
  return ex_op2(p, OP_sub, a, ex_op2(p, OP_mul, b, k));
}

static ExprId let(Prog *p, Cursor *at, const char *name, ExprId e) {
  const Expr *x = prog_expr(p, e);
  if (x->kind == EX_const || x->kind == EX_var) return e;
  return ex_var(p, let_new(p, at, name, e));
}

/* A loop over the warps or threads of the block. */
static ExprId team(Prog *p, Cursor *at, i64 n, u8 flag) {
  VarId v = prog_for(p, at, ex_int(p, 0), ex_int(p, n), flag == LF_warp ? "w" : "th");
  prog_stmt(p, at->owner)->flags |= flag;
  return ex_var(p, v);
}

static i64 thread_count(const Product *o) {
  return o->mma ? o->warps[0] * o->warps[1] * o->slices * WARP_LANES
                : o->threads[0] * o->threads[1] * o->slices;
}

/* Sets the axes to the digits of a number, most significant axis first. The last one advances by
 * vectors. */
static void set_axes(Product *o, Cursor *at, const u32 *axis, u32 n, ExprId number, i64 vec) {
  Prog *p = o->t.p;
  for (u32 i = n; i-- > 0;) {
    ExprId value = number;
    if (i) {
      ExprId by =
          vec > 1 ? ex_int(p, extent(&o->t.f, axis[i]) / vec) : ex_dim(p, o->t.f.axis[axis[i]].hi);
      ExprId q = let(p, at, "q", ex_op2(p, OP_div, ex_copy(p, number), ex_copy(p, by)));
      value = rest(p, number, q, by);
      number = ex_copy(p, q);
    }
    value = let(p, at, "i", value);
    if (vec > 1) value = ex_mul_add(p, value, vec, ex_var(p, o->t.lane_var));
    o->t.at.val[axis[i]] = value;
    vec = 1;
  }
}

static ExprId all(ExprId a, ExprId b, Prog *p) {
  return a && b ? ex_op2(p, OP_and, a, b) : a ? a : b;
}

/* A copy of one thread: copy number `id` of this operand, of step `step`. */
static void put_copy(Product *o, Cursor at, const Side *s, ExprId step, ExprId stage, ExprId id) {
  Prog *p = o->t.p;
  i64 depth = o->depth * o->slices, vec = s->vec, across = s->along_k ? depth / vec : s->tile / vec;
  bool lines = !s->fixed && vec == 1 && s->along_k && s->n; /* threads side by side take rows */
  if (lines) across = s->tile;
  ExprId major = let(p, &at, "r", over(p, ex_copy(p, id), across));
  ExprId minor = let(p, &at, "c", rest(p, id, ex_copy(p, major), ex_int(p, across)));
  bool turned = lines || !s->along_k;
  ExprId row = turned ? minor : major, k = turned ? major : minor, inside = 0;
  ExprId place[3] = {stage};
  place[s->along_k ? 1 : 2] = ex_op2(p, OP_mul, ex_copy(p, row), ex_int(p, s->along_k ? 1 : vec));
  place[s->along_k ? 2 : 1] = ex_op2(p, OP_mul, ex_copy(p, k), ex_int(p, s->along_k ? vec : 1));
  ExprId first = ex_var(p, o->tile_at[s != o->side]), value;
  i64 kvec = s->along_k ? vec : 1, rvec = s->along_k ? 1 : vec;
  if (s->fixed) {
    ExprId number = ex_int(p, 0);
    for (u32 i = 0; i < o->nbatch; i++)
      number =
          ex_mul_add(p, number, extent(&o->t.f, o->batch[i]), ex_copy(p, o->batch_at[o->batch[i]]));
    ExprId idx[] = {number, ex_op2(p, OP_add, first, row),
                    ex_mul_add(p, step, depth, ex_op2(p, OP_mul, k, ex_int(p, vec)))};
    value = ex_load_vec(p, s->packed, idx, 3, (u32)vec);
  } else {
    ExprId number = ex_op2(p, OP_add, over(p, first, rvec), row), most = ex_dim(p, s->extent);
    most = ex_op2(p, OP_sub, over(p, most, rvec), ex_int(p, 1));
    o->t.lanes = (u32)vec;
    o->t.at.inner = (InnerVars){1, {{o->t.lane_var, vec}}};
    memcpy(o->t.at.val, o->batch_at, sizeof o->batch_at);
    set_axes(o, &at, s->axis, s->n, let(p, &at, "m", ex_op2(p, OP_min, number, most)), rvec);
    ExprId outer, c;
    if (o->channels % depth == 0) { /* a step has one point of the outer axes */
      i64 each = o->channels / depth;
      outer = over(p, ex_copy(p, step), each);
      c = rest(p, ex_copy(p, step), ex_copy(p, outer), ex_int(p, each));
      c = ex_mul_add(p, c, depth / kvec, k);
    } else {
      ExprId flat = ex_mul_add(p, step, depth / kvec, k);
      i64 many = o->k / kvec;
      flat = let(p, &at, "k", flat);
      if (o->k % depth) {
        inside = ex_op2(p, OP_lt, ex_copy(p, flat), ex_int(p, many));
        flat = let(p, &at, "k", ex_op2(p, OP_min, ex_copy(p, flat), ex_int(p, many - 1)));
      }
      outer = let(p, &at, "q", over(p, ex_copy(p, flat), o->channels / kvec));
      c = rest(p, flat, ex_copy(p, outer), ex_int(p, o->channels / kvec));
    }
    set_axes(o, &at, o->outer, o->nouter, let(p, &at, "q", outer), 1);
    u32 inner[] = {o->inner};
    set_axes(o, &at, inner, 1, c, kvec);
    ExprId within = 0;
    value = element(o, s, &within);
    inside = all(inside, within, p);
    if (vec > 1) value = vector(o, value, vec);
    if (!value) internal_error(p->c, o->t.l->n->loc, "an operand of a product is not contiguous");
    if (prog_expr(p, value)->dt != o->dt) value = ex_cast(p, o->dt, value, false);
    if (inside) {
      ExprId zero = ex_const(p, o->dt, (Scalar){0});
      if (vec > 1) {
        inside = ex_splat(p, inside, (u32)vec);
        zero = ex_splat(p, zero, (u32)vec);
      }
      value = ex_op3(p, OP_select, inside, value, zero);
    }
  }
  prog_store(p, &at, s->scratch, place, 3, value);
  StmtId last = at.last ? at.last : prog_stmt(p, at.owner)->body;
  while (prog_stmt(p, last)->next) last = prog_stmt(p, last)->next;
  if (ex_copied(p, prog_expr(p, value)) && vec * dtype_bytes(o->dt) >= 4)
    prog_stmt(p, last)->flags |= SF_async;
}

/* The copies of a step, by all threads, if it comes before `end`; 0: it does. sides: bits. */
static void put_copies(Product *o, Cursor at, ExprId step, ExprId end, u32 sides) {
  Prog *p = o->t.p;
  i64 threads = thread_count(o), depth = o->depth * o->slices;
  ExprId by = ex_int(p, o->stages);
  step = let(p, &at, "s", step);
  ExprId stage =
      let(p, &at, "g", rest(p, ex_copy(p, step), over(p, ex_copy(p, step), o->stages), by));
  Cursor in = at;
  ExprId th = team(p, &in, threads, LF_thread);
  if (end) prog_if(p, &in, ex_op2(p, OP_lt, ex_copy(p, step), end));
  for (u32 k = 0; k < 2; k++) {
    const Side *s = &o->side[k];
    i64 copies = s->tile * depth / s->vec;
    if (!(sides >> k & 1)) continue;
    Cursor each = in;
    i64 n = (copies + threads - 1) / threads, group = n > COPIES && n % COPIES == 0 ? COPIES : n;
    ExprId q = ex_int(p, 0);
    if (n > group) q = ex_var(p, prog_for(p, &each, q, ex_int(p, n / group), "q"));
    ExprId i = tile_unrolled(p, &each, group, "i", RO_none);
    i = ex_mul_add(p, q, group, i);
    ExprId id = let(p, &each, "n", ex_mul_add(p, i, threads, ex_copy(p, th)));
    if (copies % threads) prog_if(p, &each, ex_op2(p, OP_lt, ex_copy(p, id), ex_int(p, copies)));
    put_copy(o, each, s, ex_copy(p, step), ex_copy(p, stage), id);
  }
}

/* Position of a warp or thread in its slice: *z, and index along rows and columns. */
static void place_of(const Product *o, Cursor *at, ExprId id, ExprId *z, ExprId *pos) {
  Prog *p = o->t.p;
  const i64 *n = o->mma ? o->warps : o->threads;
  *z = let(p, at, "z", over(p, ex_copy(p, id), n[0] * n[1]));
  ExprId in = let(p, at, "u", rest(p, id, ex_copy(p, *z), ex_int(p, n[0] * n[1])));
  pos[0] = let(p, at, "a", over(p, ex_copy(p, in), n[1]));
  pos[1] = let(p, at, "b", rest(p, in, ex_copy(p, pos[0]), ex_int(p, n[1])));
}

/* Row or column of the tile: of sum i of a thread, or of fragment i of a warp. */
static ExprId line_of(const Product *o, u32 side, const ExprId *pos, ExprId i) {
  Prog *p = o->t.p;
  if (!o->mma) return ex_mul_add(p, i, o->threads[side], ex_copy(p, pos[side]));
  return ex_mul_add(p, ex_mul_add(p, ex_copy(p, pos[side]), o->each[side], i), FRAG_ROWS,
                    ex_int(p, 0));
}

/* Loads element (line, k) of scratch, or the fragment that starts there. */
static ExprId scratch_load(const Product *o, u32 side, ExprId stage, ExprId line, ExprId k) {
  Prog *p = o->t.p;
  const Side *s = &o->side[side];
  ExprId idx[3] = {ex_copy(p, stage), s->along_k ? line : k, s->along_k ? k : line};
  u32 columns = FRAG_BYTES / dtype_bytes(o->dt);
  if (o->mma && s->along_k) return ex_fragment(p, s->scratch, idx, 3, FRAG_ROWS, columns);
  if (o->mma) return ex_turn(p, ex_fragment(p, s->scratch, idx, 3, FRAG_ROWS, columns));
  ExprId e = ex_load(p, s->scratch, idx, 3);
  return o->dt == DT_f32 ? e : ex_cast(p, DT_f32, e, false);
}

static BufId registers(const Product *o, DType dt, u32 lanes, i64 n, i64 m, const char *name) {
  Prog *p = o->t.p;
  Dim dim[] = {thread_count(o) / (o->mma ? WARP_LANES : 1), n, m};
  BufId b = prog_add_buf(p, BS_reg, dt, dim, 3, str_of(p->c, name));
  prog_buf(p, b)->lanes = lanes;
  if (lanes > 1) prog_buf(p, b)->rows = FRAG_ROWS;
  return b;
}

/* Opens a loop over the warps or the threads that hold the sums. */
static ExprId open_sums(const Product *o, Cursor *at) {
  i64 n = thread_count(o);
  return team(o->t.p, at, o->mma ? n / WARP_LANES : n, o->mma ? LF_warp : LF_thread);
}

/* sums[i, j] for all i, j; the cursor ends inside. idx: of the sum. */
static void open_tile(const Product *o, Cursor *at, ExprId id, ExprId *i, ExprId *j, ExprId *idx) {
  Prog *p = o->t.p;
  *i = tile_unrolled(p, at, o->each[0], "i", RO_none);
  *j = tile_unrolled(p, at, o->each[1], "j", RO_none);
  idx[0] = ex_copy(p, id);
  idx[1] = ex_copy(p, *i);
  idx[2] = ex_copy(p, *j);
}

static void put_products(Product *o, Cursor at, BufId sums, const BufId *held, ExprId step) {
  Prog *p = o->t.p;
  i64 each = o->mma ? FRAG_BYTES / dtype_bytes(o->dt) : QUAD;
  ExprId stage =
      rest(p, ex_copy(p, step), over(p, ex_copy(p, step), o->stages), ex_int(p, o->stages));
  stage = let(p, &at, "g", stage);
  ExprId id = open_sums(o, &at), z, pos[2], i, j, idx[3], k;
  place_of(o, &at, id, &z, pos);
  if (o->mma)
    k = tile_unrolled(p, &at, o->depth / each, "k", RO_none);
  else
    k = ex_var(p, prog_for(p, &at, ex_int(p, 0), ex_int(p, o->depth / each), "k"));
  k = ex_mul_add(p, k, each, ex_op2(p, OP_mul, z, ex_int(p, o->depth)));
  k = let(p, &at, "k", k);
  for (u32 side = 0; side < 2; side++) {
    Cursor in = at;
    i = tile_unrolled(p, &in, o->each[side], "i", RO_none);
    ExprId e = o->mma ? ex_int(p, 0) : tile_unrolled(p, &in, each, "e", RO_none);
    ExprId line = line_of(o, side, pos, ex_copy(p, i));
    ExprId to[] = {ex_copy(p, id), i, e};
    prog_store(p, &in, held[side], to, 3,
               scratch_load(o, side, stage, line, ex_op2(p, OP_add, ex_copy(p, k), ex_copy(p, e))));
  }
  ExprId e = o->mma ? ex_int(p, 0) : tile_unrolled(p, &at, each, "e", RO_none);
  open_tile(o, &at, id, &i, &j, idx);
  ExprId a[] = {ex_copy(p, id), i, ex_copy(p, e)}, b[] = {ex_copy(p, id), j, ex_copy(p, e)}, own[3];
  for (u32 q = 0; q < 3; q++) own[q] = ex_copy(p, idx[q]);
  ExprId arg[] = {ex_load(p, held[0], a, 3), ex_load(p, held[1], b, 3), ex_load(p, sums, own, 3)};
  prog_store(p, &at, sums, idx, 3,
             o->mma ? ex_mma(p, arg[0], arg[1], arg[2]) : ex_op(p, OP_fma, arg, 3));
}

/* Number of results to store along a side: the lanes of the last channel block that have no channel
 * must hold numbers, since vectors of other kernels read them. */
static Dim stored(const Product *o, const Side *s) {
  const Form *f = &o->t.f;
  const Layout *y = layout_of(o->t.l, f->out.buf);
  const Index *ix = &f->out.idx[1];
  if (!y || !y->block || s->n != 1 || ix->n != 1 || ix->axis[0] != s->axis[0] || ix->base ||
      ix->shift || s->extent != prog_buf(o->t.p, f->out.buf)->dim[1])
    return s->extent;
  return (s->extent + y->block - 1) / y->block * y->block;
}

/* The sum of n tiles of sums at (row, column), in order. second: second index, 0: none. */
static ExprId sum_of(Product *o, BufId from, i64 n, ExprId second, const ExprId *line) {
  Prog *p = o->t.p;
  ExprId sum = 0;
  for (i64 z = 0; z < n; z++) {
    ExprId idx[4] = {ex_int(p, z)};
    u32 k = 1;
    if (second) idx[k++] = ex_copy(p, second);
    idx[k++] = ex_copy(p, line[0]);
    idx[k++] = ex_copy(p, line[1]);
    ExprId one = ex_load(p, from, idx, k);
    sum = sum ? ex_op2(p, OP_add, sum, one) : one;
  }
  return sum;
}

/* Stores the sums of all slices as a part. */
static void put_part(Product *o, Cursor at, BufId tile, BufId parts) {
  Prog *p = o->t.p;
  i64 threads = thread_count(o), wide = o->side[1].tile, each = o->side[0].tile * wide / threads;
  ExprId th = team(p, &at, threads, LF_thread), line[2];
  ExprId i = tile_unrolled(p, &at, each, "i", RO_none);
  ExprId id = let(p, &at, "n", ex_mul_add(p, i, threads, th));
  line[0] = let(p, &at, "r", over(p, ex_copy(p, id), wide));
  line[1] = let(p, &at, "c", rest(p, id, ex_copy(p, line[0]), ex_int(p, wide)));
  ExprId value = sum_of(o, tile, o->slices, 0, line);
  ExprId to[] = {ex_var(p, o->part), ex_var(p, o->number), line[0], line[1]};
  prog_store(p, &at, parts, to, 4, value);
}

/* Adds the slices, or the parts, applies the epilogue and stores the results. */
static void put_results(Product *o, Cursor at, BufId tile) {
  Prog *p = o->t.p;
  const Form *f = &o->t.f;
  i64 threads = thread_count(o), wide = o->side[1].tile, each = o->side[0].tile * wide / threads,
      group = each < FINISH ? each : FINISH;
  Dim dim[] = {threads, group};
  ExprId th = team(p, &at, threads, LF_thread), q = ex_int(p, 0);
  BufId done = prog_add_buf(p, BS_reg, prog_buf(p, f->out.buf)->dt, dim, 2, str_of(p->c, "done"));
  if (each > group) q = ex_var(p, prog_for(p, &at, q, ex_int(p, each / group), "q"));
  for (u32 part = 0; part < 2; part++) {
    Cursor in = at;
    ExprId i = tile_unrolled(p, &in, group, "i", RO_none), line[2], most[2];
    ExprId id =
        ex_mul_add(p, ex_mul_add(p, ex_copy(p, q), group, ex_copy(p, i)), threads, ex_copy(p, th));
    id = let(p, &in, "n", id);
    line[0] = let(p, &in, "r", over(p, ex_copy(p, id), wide));
    line[1] = let(p, &in, "c", rest(p, id, ex_copy(p, line[0]), ex_int(p, wide)));
    o->t.lanes = 1;
    o->t.at.inner.n = 0;
    memcpy(o->t.at.val, o->batch_at, sizeof o->batch_at);
    for (u32 k = 0; k < 2; k++) {
      const Side *s = &o->side[k];
      ExprId number = ex_op2(p, OP_add, ex_var(p, o->tile_at[k]), ex_copy(p, line[k]));
      number = let(p, &in, "m", number);
      Dim n = part ? stored(o, s) : s->extent;
      most[k] = ex_dim(p, n);
      bool exact = dim_is_const(n) && n % s->tile == 0;
      if (part && !exact) prog_if(p, &in, ex_op2(p, OP_lt, ex_copy(p, number), most[k]));
      if (!part && !exact)
        number =
            let(p, &in, "m",
                ex_op2(p, OP_min, ex_copy(p, number), ex_op2(p, OP_sub, most[k], ex_int(p, 1))));
      set_axes(o, &in, s->axis, s->n, ex_copy(p, number), 1);
    }
    ExprId to[] = {ex_copy(p, th), i};
    if (part) {
      Nest x = tile_nest(&o->t, in);
      nest_store(&x, ex_load(p, done, to, 2));
      continue;
    }
    ExprId sum = o->parts > 1 ? sum_of(o, tile, o->parts, ex_var(p, o->number), line)
                              : sum_of(o, tile, o->slices, 0, line);
    sum = ex_var(p, let_new(p, &in, "sum", sum));
    Nest x = tile_nest(&o->t, in);
    ExprId value = nest_finish(&x, ex_finish(p, f->dt, sum));
    prog_store(p, &in, done, to, 2, value);
  }
}

/* Opens the loop over the blocks: tiles of all parts, columns vary fastest. */
static i64 open_block(Product *o, Cursor *at, i64 parts) {
  Prog *p = o->t.p;
  ExprId count[2], n = ex_int(p, 1);
  i64 tiles = 0;
  for (u32 k = 0; k < 2; k++) {
    const Side *s = &o->side[k];
    count[k] = over(p, ex_op2(p, OP_add, ex_dim(p, s->extent), ex_int(p, s->tile - 1)), s->tile);
    n = ex_op2(p, OP_mul, n, ex_copy(p, count[k]));
  }
  for (u32 i = 0; i < o->nbatch; i++)
    n = ex_op2(p, OP_mul, n, ex_int(p, extent(&o->t.f, o->batch[i])));
  ex_is_int(p, n, &tiles);
  ExprId t =
      ex_var(p, for_parallel(p, at, ex_int(p, 0), ex_op2(p, OP_mul, n, ex_int(p, parts)), "t"));
  if (parts > 1) {
    o->part = let_new(p, at, "part", over(p, ex_copy(p, t), tiles));
    t = rest(p, t, ex_var(p, o->part), ex_int(p, tiles));
  }
  o->number = let_new(p, at, "tile", t);
  ExprId q = let(p, at, "q", ex_op2(p, OP_div, ex_var(p, o->number), ex_copy(p, count[1])));
  ExprId column = rest(p, ex_var(p, o->number), ex_copy(p, q), ex_copy(p, count[1]));
  ExprId batch = let(p, at, "b", ex_op2(p, OP_div, ex_copy(p, q), ex_copy(p, count[0])));
  ExprId row = rest(p, q, ex_copy(p, batch), ex_copy(p, count[0]));
  o->tile_at[0] = let_new(p, at, "m", ex_op2(p, OP_mul, row, ex_int(p, o->side[0].tile)));
  o->tile_at[1] = let_new(p, at, "n", ex_op2(p, OP_mul, column, ex_int(p, o->side[1].tile)));
  memset(o->t.at.val, 0, sizeof o->t.at.val);
  set_axes(o, at, o->batch, o->nbatch, batch, 1);
  memcpy(o->batch_at, o->t.at.val, sizeof o->batch_at);
  return tiles;
}

void product_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Product *o = r->product;
  Prog *p = l->p;
  i64 depth = o->depth * o->slices, pad = COPY_BYTES / dtype_bytes(o->dt);
  u32 columns = FRAG_BYTES / dtype_bytes(o->dt);
  (void)f;
  for (u32 k = 0; k < 2; k++) {
    Side *s = &o->side[k];
    Dim dim[] = {o->stages, s->along_k ? s->tile : depth, (s->along_k ? depth : s->tile) + pad};
    s->scratch = prog_add_buf(p, BS_local, o->dt, dim, 3, str_of(p->c, k ? "bs" : "as"));
    if (s->fixed) pack(o, s);
  }
  Dim dim[] = {o->slices, o->side[0].tile, o->side[1].tile + QUAD};
  BufId tile = prog_add_buf(p, BS_local, DT_f32, dim, 3, str_of(p->c, "tile"));
  BufId sums = registers(o, DT_f32, o->mma ? FRAG_LANES : 1, o->each[0], o->each[1], "acc"),
        held[2];
  for (u32 k = 0; k < 2; k++)
    held[k] = registers(o, o->mma ? o->dt : DT_f32, o->mma ? FRAG_ROWS * columns : 1, o->each[k],
                        o->mma ? 1 : QUAD, k ? "bv" : "av");
  i64 tiles = open_block(o, &at, o->parts), each = o->steps / o->parts;
  Cursor in = at;
  ExprId id = open_sums(o, &in), i, j, idx[3], zero = ex_const(p, DT_f32, (Scalar){0});
  open_tile(o, &in, id, &i, &j, idx);
  prog_store(p, &in, sums, idx, 3,
             o->mma ? ex_splat_fragment(p, zero, FRAG_ROWS, FRAG_ROWS) : zero);
  i64 ahead = o->stages - 1 < each ? o->stages - 1 : each;
  ExprId from = ex_int(p, 0), end = ex_int(p, each);
  if (o->parts > 1) {
    from =
        ex_var(p, let_new(p, &at, "from", ex_op2(p, OP_mul, ex_var(p, o->part), ex_int(p, each))));
    end = ex_op2(p, OP_add, ex_copy(p, from), end);
  }
  /* constants first: earlier kernels may still run */
  u32 fixed = (u32)o->side[0].fixed | (u32)o->side[1].fixed << 1;
  for (u32 turn = !fixed; turn < 2; turn++) {
    in = at;
    ExprId upto = ex_op2(p, OP_add, ex_copy(p, from), ex_int(p, ahead));
    ExprId s =
        ahead > 1 ? ex_var(p, prog_for(p, &in, ex_copy(p, from), upto, "s")) : ex_copy(p, from);
    put_copies(o, in, s, 0, turn ? 3 & ~fixed : fixed);
    if (turn) prog_push(p, &in, ST_commit);
  }
  in = at;
  ExprId step = ex_var(p, prog_for(p, &in, from, ex_copy(p, end), "s"));
  Stmt *wait = prog_stmt(p, prog_push(p, &in, ST_await));
  wait->step = ahead - 1;
  if (each > ahead)
    put_copies(o, in, ex_op2(p, OP_add, ex_copy(p, step), ex_int(p, ahead)), end, 3);
  prog_push(p, &in, ST_commit);
  put_products(o, in, sums, held, step);
  in = at;
  id = open_sums(o, &in);
  ExprId z, pos[2];
  place_of(o, &in, ex_copy(p, id), &z, pos);
  open_tile(o, &in, id, &i, &j, idx);
  ExprId to[] = {z, line_of(o, 0, pos, i), line_of(o, 1, pos, j)};
  prog_store(p, &in, tile, to, 3, ex_load(p, sums, idx, 3));
  if (o->parts == 1) {
    put_results(o, at, tile);
    return;
  }
  Dim all[] = {o->parts, tiles, o->side[0].tile, o->side[1].tile};
  BufId parts = prog_add_buf(p, BS_temp, DT_f32, all, 4, str_of(p->c, "parts"));
  put_part(o, at, tile, parts);
  BufId out = prog_record(p, r->t.record)->out;
  prog_record(p, r->t.record)->out = 0;
  Cursor second = lower_kernel(l, prog_stmt(p, l->at.last)->label);
  RecordId join =
      kernel_record(p, l->at.last, (KernelRecord){.family = FA_block_product, .out = out});
  open_block(o, &second, 1);
  prog_stmt(p, second.owner)->record = join;
  put_results(o, second, parts);
}
