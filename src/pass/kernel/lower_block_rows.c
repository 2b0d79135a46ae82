/* lower_block_rows.c: products of one or a few rows with constant weights, by the threads of a GPU
 * block (family block_rows).
 *
 * In: a matmul with quantized weights and f32 x, or a product of x with a constant matrix. Out: two
 * kernels: one for whole groups of ROWS rows of x, one for the remaining rows one by one. Reading
 * the weights takes most of the time: they are read once per group, with coalesced loads, and are
 * dequantized in registers.
 *
 *   for tile of `width` columns, for group of rows       blocks
 *     load the weights of the first steps to registers   before x, which other kernels compute
 *     for chunk of k
 *       copy x of the chunk to shared memory
 *       for step: load the weights of the next step; sums += weights * x
 *     store the sums to shared memory; add those of all slices in order, finish, store
 *
 * A unit is QBLOCK_X consecutive elements of a column of weights. Thread (slice, column) multiplies
 * the units slice, slice + slices, ... of its column, so that all threads of a block load at once
 * what lies in one piece in memory. The sums of a column add up in the order of the slices, for any
 * number of rows, so a row has the same bits alone and with others.
 *
 * Products are exact: weights become f32 as in pass dequantize, except that the scale multiplies
 * the sum of a group instead of its elements.
 */
#include "ir/prog/cost.h"
#include "pass/kernel/mmq.h"
#include "pass/kernel/tile.h"

#include <string.h>

enum {
  ROWS = 8,         /* rows of x that share a read of the weights */
  FEW_ROWS = 4,     /* constant rows of plain products; more are left to block_product */
  K_MIN = 64,       /* shorter reductions are left to other families */
  COLUMNS_MIN = 16, /* fewer columns too */
  THREADS = 256,    /* of a block */
  WIDTH_MAX = 32,   /* columns of a tile */
  WIDTH_MIN = 4,
  UNITS_AHEAD = 4,     /* maximum units of a thread in a step */
  WORDS_AHEAD = 32,    /* maximum words of a thread in a step */
  LINE = QBLOCK_X + 4, /* f32 of a unit of x in shared memory: units start in different banks */
  COPIES = 8           /* elements of x that a thread loads at once */
};

struct BlockRows {
  Tile t;
  Prog *p;
  u32 row, column, depth; /* axes of the form; FORM_AXES: none */
  BufId x;                /* operand of matmul_quant; 0: operand `in` of the form */
  u32 in;
  Dim rows;
  i64 columns, k, units;
  i64 width, slices, steps; /* of a tile; a step has `group` units of each thread */
  i64 group, chunk;         /* chunk: steps whose x is in shared memory at once */
  i64 words, scales;        /* of a unit */
  MmqPanels q;              /* quantized weights; kind 0: plain ones */
  DType dt;                 /* plain weights */
  BufId plain;
  /* of the kernel being written */
  i64 each; /* rows of a group */
  BufId xs, next, acc, part;
  ExprId first; /* first row of the block */
  VarId tile;
};

static i64 threads(const BlockRows *o) {
  return o->width * o->slices;
}

/* ---- choice ---- */

/* Tiles as wide as leaves a tile for every multiprocessor. */
static void choose_size(BlockRows *o) {
  o->units = (o->k + QBLOCK_X - 1) / QBLOCK_X;
  o->width = WIDTH_MAX;
  while (o->width > WIDTH_MIN && 2 * o->columns < 3 * o->width * (i64)figures.gpu_sms)
    o->width /= 2;
  o->slices = THREADS / o->width;
  while (o->slices > 1 && o->slices > o->units) o->slices /= 2;
  i64 all = (o->units + o->slices - 1) / o->slices;
  o->group = all < UNITS_AHEAD ? all : UNITS_AHEAD;
  while (o->group > 1 && (o->group * o->words > WORDS_AHEAD || o->group * o->slices > 64))
    o->group--;
  o->steps = (all + o->group - 1) / o->group;
}

/* The constant that an operand is, or that it is a cast of; 0: it is neither. */
static BufId constant_of(const BlockRows *o, BufId b) {
  Lower *l = o->t.l;
  if (tile_is_const(&o->t, b)) return b;
  const Node *n = is_inlined(l, b) ? graph_producer(l->g, storage_of(l, b)->value) : NULL;
  if (!n || n->op != OP_cast || lower_type(l, n->in[0])->dt == DT_f32) return 0;
  BufId from = l->buf[n->in[0]];
  return from && tile_is_const(&o->t, from) ? from : 0;
}

/* Halves that hold all elements of an f32 tensor without rounding; else f32. */
static DType narrowest(const Tensor *t) {
  const u32 *bits = t->data;
  bool f16 = true, bf16 = true;
  for (u64 i = 0; i < t->n && (f16 || bf16); i++) {
    u32 x = bits[i] & 0x7fffffff;
    bf16 = bf16 && !(x & 0xffff);
    f16 =
        f16 && (!x || (!(x & 0x1fff) && x >= 0x38800000 && x < 0x47800000) ||
                (x < 0x38800000 && scalar_round(DT_f16, tensor_get(t, i).f) == tensor_get(t, i).f));
  }
  return f16 ? DT_f16 : bf16 ? DT_bf16 : DT_f32;
}

/* Weights of one element type, and x. */
static bool choose_operands(BlockRows *o) {
  const Form *f = &o->t.f;
  o->row = o->column = o->depth = FORM_AXES;
  if (!f->reduce || f->with != OP_add || f->body != FB_op || f->op != OP_mul || f->nin != 2 ||
      f->acc != DT_f32 || f->from.buf || f->init.f != 0)
    return false;
  u32 w = constant_of(o, f->in[1].buf) ? 1 : 0;
  o->in = 1 - w;
  o->plain = constant_of(o, f->in[w].buf);
  if (!o->plain || constant_of(o, f->in[1 - w].buf)) return false;
  for (u32 k = 0; k < 2; k++)
    for (u32 d = 0; d < f->in[k].rank; d++)
      if (f->in[k].idx[d].dilation > 1 || f->in[k].idx[d].stretch || f->in[k].idx[d].guard)
        return false;
  o->rows = 1;
  for (u32 i = 0; i < f->naxes; i++) {
    const Axis *a = &f->axis[i];
    if (a->lo || a->full_hi || ((a->reduce || !dim_is_const(a->hi)) && a->hi == 1)) return false;
    if (a->hi == 1) continue;
    bool of_w = operand_moves(&f->in[w], i), of_x = operand_moves(&f->in[1 - w], i);
    u32 *to = a->reduce ? &o->depth : of_w ? &o->column : &o->row;
    if (*to != FORM_AXES || (a->reduce ? !of_w || !of_x : of_w == of_x)) return false;
    *to = i;
  }
  if (o->column == FORM_AXES || o->depth == FORM_AXES) return false;
  if (o->row < FORM_AXES) o->rows = f->axis[o->row].hi;
  o->columns = f->axis[o->column].hi;
  o->k = f->axis[o->depth].hi;
  return dim_is_const(o->columns) && dim_is_const(o->k) && o->columns >= COLUMNS_MIN &&
         o->k >= K_MIN;
}

static const Tensor *weights_of(const BlockRows *o) {
  return prog_buf(o->t.p, prog_root(o->t.p, o->plain))->data;
}

/* Products of a few rows, and of any number with 16-bit weights, as in language models. */
bool block_rows_choose(Lower *l, const Form *f, KernelChoice *r) {
  i64 lo, hi;
  if (!l->pass->target->warp) return false;
  BlockRows *o = NEW(&l->c->work, BlockRows);
  o->t = tile_of(l, f);
  o->p = l->p;
  if (!choose_operands(o)) return false;
  const Tensor *w = weights_of(o);
  if (!w || !w->data || (w->dt != DT_f32 && !dtype_is_half(w->dt))) return false;
  dim_bounds(l->p->dims, o->rows, &lo, &hi);
  if (hi > FEW_ROWS && (dim_is_const(o->rows) || lo > 1)) return false;
  o->dt = w->dt == DT_f32 ? narrowest(w) : w->dt;
  if (hi > FEW_ROWS && o->dt == DT_f32) return false;
  o->words = QBLOCK_X * dtype_bytes(o->dt) / 4;
  choose_size(o);
  r->family = FA_block_rows;
  r->rows = o;
  r->reason = str_fmt(l->c, "%lld columns, %lld slices, %s weights", (long long)o->width,
                      (long long)o->slices, dtype_info[o->dt].name);
  return true;
}

/* ---- packing ---- */

/* i32[tiles, units of a thread, words, threads]: two halves or one f32 per word. */
static BufId pack_plain(BlockRows *o) {
  Prog *p = o->p;
  const Form *f = &o->t.f;
  const Operand *from = &f->in[1 - o->in];
  const Buf *b = prog_buf(p, o->plain);
  const Tensor *w = weights_of(o);
  i64 tiles = (o->columns + o->width - 1) / o->width, stride = 1, by[2] = {0}, base = 0;
  u32 size = dtype_bytes(o->dt);
  i64 dim[] = {tiles, o->steps * o->group, o->words, threads(o)};
  i64 key[] = {ON_packed, -2, o->plain, o->width, o->slices, o->group, o->column, o->depth};
  u32 *known = map_put_bytes(&o->t.l->once, key, sizeof key);
  if (*known) return *known;
  for (u32 d = from->rank; d-- > 0; stride *= b->dim[d]) {
    const Index *ix = &from->idx[d];
    base += (ix->base + ix->shift) * stride;
    for (u32 i = 0; i < ix->n; i++) {
      if (ix->axis[i] == o->column) by[0] += ix->coef[i] * stride;
      if (ix->axis[i] == o->depth) by[1] += ix->coef[i] * stride;
    }
  }
  Tensor *to = tensor_new(&p->c->keep, DT_i32, dim, 4);
  u8 *out = (u8 *)(uintptr_t)to->data;
  for (i64 c = 0; c < o->columns; c++)
    for (i64 k = 0; k < o->k; k++) {
      i64 unit = k / QBLOCK_X, e = k % QBLOCK_X * size;
      i64 step = c / o->width * dim[1] + unit / o->slices;
      i64 word = (step * o->words + e / 4) * dim[3] + unit % o->slices * o->width + c % o->width;
      u64 at = (u64)(base + c * by[0] + k * by[1]);
      if (w->dt == o->dt)
        memcpy(out + word * 4 + e % 4, (const u8 *)w->data + at * size, size);
      else
        scalar_store(o->dt, out + word * 4 + e % 4, tensor_get(w, at));
    }
  return *known = prog_add_const(p, to, b->name);
}

/* ---- writing ---- */

static ExprId i32_of(Prog *p, i64 x) {
  return ex_const(p, DT_i32, (Scalar){.i = x});
}

static ExprId float_of(Prog *p, ExprId e) {
  return ex_cast(p, DT_f32, e, false);
}

/* A loop over the threads of the block. */
static ExprId team(Prog *p, Cursor *at, i64 n) {
  VarId v = prog_for(p, at, ex_int(p, 0), ex_int(p, n), "th");
  prog_stmt(p, at->owner)->flags |= LF_thread;
  return ex_var(p, v);
}

/* a = n / by, b = n % by */
static void split(Prog *p, Cursor *at, ExprId n, i64 by, ExprId *a, ExprId *b) {
  VarId q = let_new(p, at, "q", ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, by)));
  *a = ex_var(p, q);
  *b = ex_var(p, let_new(p, at, "r", ex_op2(p, OP_mod, n, ex_int(p, by))));
}

/* Registers of a step: words of unit g, then its scales. */
static i64 held(const BlockRows *o) {
  return o->words + o->scales;
}

/* Loads the weights of a step to registers. */
static void load_step(BlockRows *o, Cursor at, ExprId th, ExprId step) {
  Prog *p = o->p;
  for (i64 g = 0; g < o->group; g++)
    for (i64 i = 0; i < held(o); i++) {
      bool word = i < o->words;
      BufId from = word ? o->q.quant : o->q.s;
      ExprId idx[] = {ex_var(p, o->tile), ex_mul_add(p, ex_copy(p, step), o->group, ex_int(p, g)),
                      ex_int(p, word ? i : i - o->words), ex_copy(p, th)};
      ExprId to[] = {ex_copy(p, th), ex_int(p, g * held(o) + i)}, e = ex_load(p, from, idx, 4);
      DType dt = prog_expr(p, e)->dt;
      if (dt == DT_f32) e = ex_bitcast(p, DT_i32, e);
      if (dt == DT_f16) e = ex_cast(p, DT_i32, ex_bitcast(p, DT_u16, e), false);
      if (dt == DT_i8) e = ex_cast(p, DT_i32, e, false);
      prog_store(p, &at, o->next, to, 2, e);
    }
}

static ExprId x_at(BlockRows *o, Cursor at, ExprId row, ExprId k) {
  Prog *p = o->p;
  Nest x = tile_nest(&o->t, at);
  if (o->x) return storage_load(o->t.l, o->x, (ExprId[]){row, k}, &x.in);
  memset(o->t.at.val, 0, sizeof o->t.at.val);
  if (o->row < FORM_AXES) o->t.at.val[o->row] = row;
  o->t.at.val[o->depth] = k;
  x = tile_nest(&o->t, at);
  ExprId e = nest_load(&x, o->in);
  return prog_expr(p, e)->dt == DT_f32 ? e : float_of(p, e);
}

/* Copies x of a chunk to shared memory, with zeros after the last k. */
static void copy_x(BlockRows *o, Cursor at, ExprId chunk) {
  Prog *p = o->p;
  i64 units = o->chunk * o->group * o->slices, all = o->each * units * QBLOCK_X, n = threads(o);
  i64 turns = (all + n - 1) / n, each = turns < COPIES ? turns : COPIES;
  Cursor in = at;
  ExprId th = team(p, &in, n), q = ex_int(p, 0), unit, e, m;
  if (turns > each) q = ex_var(p, prog_for(p, &in, q, ex_int(p, (turns + each - 1) / each), "q"));
  ExprId i = tile_unrolled(p, &in, each, "i", RO_none);
  VarId id = let_new(p, &in, "n", ex_mul_add(p, ex_mul_add(p, q, each, i), n, th));
  if (turns % each || all % n) prog_if(p, &in, ex_op2(p, OP_lt, ex_var(p, id), ex_int(p, all)));
  split(p, &in, ex_var(p, id), QBLOCK_X, &unit, &e);
  m = ex_int(p, 0);
  if (o->each > 1) split(p, &in, unit, units, &m, &unit);
  ExprId k = ex_mul_add(p, chunk, units, ex_copy(p, unit));
  VarId kv = let_new(p, &in, "k", ex_mul_add(p, k, QBLOCK_X, ex_copy(p, e)));
  k = ex_var(p, kv);
  bool ends = o->steps * o->group * o->slices * QBLOCK_X != o->k || o->steps % o->chunk;
  if (ends) k = ex_var(p, let_new(p, &in, "k", ex_op2(p, OP_min, k, ex_int(p, o->k - 1))));
  ExprId value = x_at(o, in, ex_op2(p, OP_add, ex_copy(p, o->first), ex_copy(p, m)), k);
  if (ends)
    value = ex_op3(p, OP_select, ex_op2(p, OP_lt, ex_var(p, kv), ex_int(p, o->k)), value,
                   ex_const(p, DT_f32, (Scalar){0}));
  prog_store(p, &in, o->xs, (ExprId[]){m, unit, e}, 3, value);
}

/* Word `word` of unit g, in registers. */
static ExprId word_of(BlockRows *o, ExprId th, i64 g, i64 word) {
  Prog *p = o->p;
  return ex_load(p, o->next, (ExprId[]){ex_copy(p, th), ex_int(p, g * held(o) + word)}, 2);
}

/* Scale or offset i of unit g. */
static ExprId scale_of(BlockRows *o, ExprId th, i64 g, i64 i) {
  Prog *p = o->p;
  ExprId e = word_of(o, th, g, o->words + i);
  DType dt = prog_buf(p, o->q.s)->dt;
  if (dt == DT_f32) return ex_bitcast(p, DT_f32, e);
  if (dt == DT_f16) e = ex_bitcast(p, DT_f16, ex_cast(p, DT_u16, e, false));
  return float_of(p, e);
}

/* (x >> by) & mask, in i32 */
static ExprId bits_of(Prog *p, ExprId x, i64 by, i64 mask) {
  if (by > 0) x = ex_op2(p, OP_shr, x, i32_of(p, by));
  if (by < 0) x = ex_op2(p, OP_shl, x, i32_of(p, -by));
  return mask ? ex_op2(p, OP_and, x, i32_of(p, mask)) : x;
}

/* Element e of unit g without its scale, as f32. four: the bytes of elements e / 4 * 4 and the next
 * ones if they are spread over words; 0: not computed yet. */
static ExprId element(BlockRows *o, Cursor *at, ExprId th, i64 g, u32 e, VarId *four) {
  Prog *p = o->p;
  if (!o->q.kind) {
    u32 size = dtype_bytes(o->dt);
    ExprId w = word_of(o, th, g, e * size / 4);
    if (o->dt == DT_f32) return ex_bitcast(p, DT_f32, w);
    w = ex_cast(p, DT_u16, bits_of(p, w, e % 2 * 16, 0), false);
    return float_of(p, ex_bitcast(p, o->dt, w));
  }
  MmqPiece piece[8];
  u32 n = mmq_pieces(o->q.words, e / 4, piece), byte = e % 4 * 8;
  if (o->q.is_signed)
    return float_of(
        p, bits_of(p, bits_of(p, word_of(o, th, g, piece[0].word), -(24 - (i64)byte), 0), 24, 0));
  i64 mask = ((i64)1 << o->q.bits) - 1;
  ExprId v;
  if (n == 1) {
    v = bits_of(p, word_of(o, th, g, piece[0].word), byte + piece[0].from, mask);
  } else {
    if (!*four) {
      ExprId all = 0;
      for (u32 i = 0; i < n; i++) {
        i64 here = (i32)(((1u << piece[i].bits) - 1) * 0x01010101u << piece[i].to);
        ExprId one = bits_of(p, word_of(o, th, g, piece[i].word),
                             (i64)piece[i].from - (i64)piece[i].to, here);
        all = all ? ex_op2(p, OP_or, all, one) : one;
      }
      *four = let_new(p, at, "four", all);
    }
    v = bits_of(p, ex_var(p, *four), byte, 255);
  }
  if (o->q.less) v = ex_op2(p, OP_sub, v, i32_of(p, o->q.less));
  return float_of(p, v);
}

/* Factors of the scales of the unit: f16 of its quant block; *offset may be 0. */
static void block_scales(BlockRows *o, Cursor *at, ExprId th, ExprId unit, VarId *d, VarId *m) {
  Prog *p = o->p;
  i64 per = qblock_info[o->q.kind].elems / QBLOCK_X;
  ExprId column = ex_op2(p, OP_mod, ex_copy(p, th), ex_int(p, o->width));
  ExprId block = ex_op2(p, OP_div, unit, ex_int(p, per));
  if (o->steps * o->group * o->slices > o->units)
    block = ex_op2(p, OP_min, block, ex_int(p, o->q.blocks - 1));
  for (u32 i = 0; i < 1u + o->q.offsets; i++) {
    ExprId idx[] = {ex_var(p, o->tile), ex_copy(p, block), ex_int(p, i), ex_copy(p, column)};
    *(i ? m : d) = let_new(p, at, "d", float_of(p, ex_load(p, o->q.d, idx, 4)));
  }
}

static ExprId multiply_add(Prog *p, ExprId a, ExprId b, ExprId c) {
  return ex_op3(p, OP_fma, a, b, c);
}

/* Adds the products of unit g of a step to the sums of all rows. place: unit in the chunk. */
static void add_unit(BlockRows *o, Cursor *at, ExprId th, i64 g, ExprId place, ExprId unit) {
  Prog *p = o->p;
  u32 groups = o->q.kind ? o->q.split : 1, size = QBLOCK_X / groups;
  VarId d = 0, m = 0, sum[ROWS] = {0}, all[ROWS] = {0}, four = 0;
  if (o->q.kind && o->q.d) block_scales(o, at, th, unit, &d, &m);
  for (u32 e = 0; e < QBLOCK_X; e++) {
    if (e % 4 == 0) four = 0;
    VarId w = let_new(p, at, "w", element(o, at, th, g, e, &four));
    bool last = e % size == size - 1, fresh = e % size == 0;
    for (i64 i = 0; i < o->each; i++) {
      ExprId idx[] = {ex_int(p, i), ex_copy(p, place), ex_int(p, e)};
      VarId x = let_new(p, at, "x", ex_load(p, o->xs, idx, 3));
      ExprId own[] = {ex_copy(p, th), ex_int(p, i)};
      ExprId zero = ex_const(p, DT_f32, (Scalar){0});
      ExprId before = !fresh ? ex_var(p, sum[i]) : o->q.kind ? zero : ex_load(p, o->acc, own, 2);
      sum[i] = let_new(p, at, "s", multiply_add(p, ex_var(p, w), ex_var(p, x), before));
      if (o->q.kind && o->q.offsets) {
        ExprId add = ex_var(p, x);
        if (!fresh) add = ex_op2(p, OP_add, ex_var(p, all[i]), add);
        all[i] = let_new(p, at, "a", add);
      }
    }
    if (!last) continue;
    u32 each = 1 + (o->q.kind && o->q.offsets);
    VarId scale[2] = {0};
    for (u32 i = 0; o->q.kind && i < each; i++) {
      ExprId s = scale_of(o, th, g, e / size * each + i);
      if (d) s = ex_op2(p, OP_mul, ex_var(p, i ? m : d), s);
      scale[i] = let_new(p, at, "scale", i && d ? ex_op1(p, OP_neg, s) : s);
    }
    for (i64 i = 0; i < o->each; i++) {
      ExprId own[] = {ex_copy(p, th), ex_int(p, i)}, value = ex_var(p, sum[i]);
      if (scale[0]) value = multiply_add(p, value, ex_var(p, scale[0]), ex_load(p, o->acc, own, 2));
      if (scale[1]) value = multiply_add(p, ex_var(p, all[i]), ex_var(p, scale[1]), value);
      ExprId to[] = {ex_copy(p, th), ex_int(p, i)};
      prog_store(p, at, o->acc, to, 2, value);
    }
  }
}

/* All steps of a chunk. */
static void add_chunk(BlockRows *o, Cursor at, ExprId chunk) {
  Prog *p = o->p;
  Cursor in = at;
  ExprId th = team(p, &in, threads(o)), inside = ex_int(p, 0);
  if (o->chunk > 1) inside = ex_var(p, prog_for(p, &in, inside, ex_int(p, o->chunk), "s"));
  VarId step = let_new(p, &in, "step", ex_mul_add(p, chunk, o->chunk, ex_copy(p, inside)));
  if (o->steps % o->chunk) prog_if(p, &in, ex_op2(p, OP_lt, ex_var(p, step), ex_int(p, o->steps)));
  ExprId slice = ex_op2(p, OP_div, ex_copy(p, th), ex_int(p, o->width));
  slice = ex_var(p, let_new(p, &in, "z", slice));
  for (i64 g = 0; g < o->group; g++) {
    ExprId place = ex_mul_add(p, ex_copy(p, inside), o->group, ex_int(p, g));
    place = ex_mul_add(p, place, o->slices, ex_copy(p, slice));
    ExprId unit = ex_mul_add(p, ex_var(p, step), o->group, ex_int(p, g));
    unit = ex_mul_add(p, unit, o->slices, ex_copy(p, slice));
    place = ex_var(p, let_new(p, &in, "u", place));
    add_unit(o, &in, th, g, place, unit);
  }
  if (o->steps == 1) return;
  ExprId more = ex_op2(p, OP_lt, ex_var(p, step), ex_int(p, o->steps - 1));
  prog_if(p, &in, more);
  load_step(o, in, th, ex_op2(p, OP_add, ex_var(p, step), ex_int(p, 1)));
}

/* Adds the slices in order, finishes and stores the results. */
static void put_results(BlockRows *o, Cursor at) {
  Prog *p = o->p;
  const Form *f = &o->t.f;
  Cursor in = at;
  ExprId th = team(p, &in, threads(o)), m, c;
  for (i64 i = 0; i < o->each; i++)
    prog_store(p, &in, o->part, (ExprId[]){ex_copy(p, th), ex_int(p, i)}, 2,
               ex_load(p, o->acc, (ExprId[]){ex_copy(p, th), ex_int(p, i)}, 2));
  in = at;
  th = team(p, &in, o->width * o->each);
  split(p, &in, th, o->width, &m, &c);
  ExprId column = ex_mul_add(p, ex_var(p, o->tile), o->width, ex_copy(p, c));
  column = ex_var(p, let_new(p, &in, "column", column));
  if (o->columns % o->width)
    prog_if(p, &in, ex_op2(p, OP_lt, ex_copy(p, column), ex_int(p, o->columns)));
  VarId sum = let_new(p, &in, "sum", ex_const(p, DT_f32, (Scalar){0}));
  Cursor each = in;
  ExprId z = ex_var(p, prog_for(p, &each, ex_int(p, 0), ex_int(p, o->slices), "z"));
  ExprId idx[] = {ex_mul_add(p, z, o->width, c), ex_copy(p, m)};
  prog_set(p, &each, sum, ex_op2(p, OP_add, ex_var(p, sum), ex_load(p, o->part, idx, 2)));
  prog_seek_end(p, &in);
  memset(o->t.at.val, 0, sizeof o->t.at.val);
  ExprId row = ex_var(p, let_new(p, &in, "row", ex_op2(p, OP_add, ex_copy(p, o->first), m)));
  if (o->row < FORM_AXES) o->t.at.val[o->row] = row;
  o->t.at.val[o->column] = column;
  o->t.lanes = 1;
  o->t.at.inner.n = 0;
  Nest x = tile_nest(&o->t, in);
  nest_store(&x, nest_finish(&x, ex_finish(p, f->dt, ex_var(p, sum))));
}

/* A kernel for `groups` groups of `each` rows from `first` on. */
static void put_kernel(BlockRows *o, Cursor at, ExprId groups, i64 each, ExprId first) {
  Prog *p = o->p;
  i64 n = threads(o), wide = o->group * o->slices * LINE * 4 * each, tiles;
  o->each = each;
  o->chunk = LIMIT_gpu_rows_bytes / wide < 1 ? 1 : LIMIT_gpu_rows_bytes / wide;
  if (o->chunk > o->steps) o->chunk = o->steps;
  tiles = (o->columns + o->width - 1) / o->width;
  Dim xs[] = {each, o->chunk * o->group * o->slices, LINE}, next[] = {n, o->group * held(o)},
      acc[] = {n, each}, part[] = {n, each + (each > 1)};
  o->xs = prog_add_buf(p, BS_local, DT_f32, xs, 3, str_of(p->c, "xs"));
  o->part = prog_add_buf(p, BS_local, DT_f32, part, 2, str_of(p->c, "part"));
  o->next = prog_add_buf(p, BS_reg, DT_i32, next, 2, str_of(p->c, "next"));
  o->acc = prog_add_buf(p, BS_reg, DT_f32, acc, 2, str_of(p->c, "acc"));
  ExprId count = ex_op2(p, OP_mul, ex_copy(p, groups), ex_int(p, tiles));
  ExprId t = ex_var(p, for_parallel(p, &at, ex_int(p, 0), count, "t"));
  o->tile = let_new(p, &at, "tile", ex_op2(p, OP_div, ex_copy(p, t), ex_copy(p, groups)));
  ExprId in_tile = ex_op2(p, OP_mul, ex_var(p, o->tile), groups);
  ExprId row = ex_op2(p, OP_mul, ex_op2(p, OP_sub, t, in_tile), ex_int(p, each));
  o->first = ex_var(p, let_new(p, &at, "first", ex_op2(p, OP_add, row, first)));
  Cursor in = at;
  ExprId th = team(p, &in, n);
  load_step(o, in, th, ex_int(p, 0));
  for (i64 i = 0; i < each; i++)
    prog_store(p, &in, o->acc, (ExprId[]){ex_copy(p, th), ex_int(p, i)}, 2,
               ex_const(p, DT_f32, (Scalar){0}));
  i64 chunks = (o->steps + o->chunk - 1) / o->chunk;
  ExprId chunk = ex_int(p, 0);
  in = at;
  if (chunks > 1) chunk = ex_var(p, prog_for(p, &in, chunk, ex_int(p, chunks), "chunk"));
  copy_x(o, in, ex_copy(p, chunk));
  add_chunk(o, in, chunk);
  put_results(o, at);
}

/* Writes the kernels: the open one, and another one if groups and single rows may exist. */
static void put_kernels(BlockRows *o, Cursor at, RecordId record) {
  Prog *p = o->p;
  Lower *l = o->t.l;
  i64 lo, hi;
  o->t.lane_var = prog_add_var(p, DT_i64, str_of(l->c, "lane"));
  dim_bounds(p->dims, o->rows, &lo, &hi);
  if (dim_is_const(o->rows) && o->rows <= ROWS) {
    put_kernel(o, at, ex_int(p, 1), o->rows, ex_int(p, 0));
    return;
  }
  ExprId n = ex_dim(p, o->rows), groups = ex_op2(p, OP_div, ex_copy(p, n), ex_int(p, ROWS));
  ExprId whole = ex_op2(p, OP_mul, ex_copy(p, groups), ex_int(p, ROWS));
  if (hi >= ROWS) {
    put_kernel(o, at, groups, ROWS, ex_int(p, 0));
    BufId out = prog_record(p, record)->out;
    if (dim_is_const(o->rows) && o->rows % ROWS == 0) return;
    prog_record(p, record)->out = 0;
    KernelRecord again = *prog_record(p, record);
    again.out = out;
    again.next = 0;
    at = lower_kernel(l, prog_stmt(p, l->at.last)->label);
    record = kernel_record(p, l->at.last, again);
  }
  put_kernel(o, at, ex_op2(p, OP_sub, n, ex_copy(p, whole)), 1, whole);
  if (hi >= ROWS) prog_stmt(p, at.owner)->record = record;
}

void block_rows_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  BlockRows *o = r->rows;
  (void)f;
  (void)l;
  o->q.quant = pack_plain(o);
  put_kernels(o, at, r->t.record);
}

void block_rows_mmq(Lower *l, Cursor at, const Form *f, QBlockKind kind, BufId x, BufId w) {
  BlockRows *o = NEW(&l->c->work, BlockRows);
  const Tensor *data = prog_buf(l->p, prog_root(l->p, w))->data;
  o->t = tile_of(l, f);
  o->p = l->p;
  o->x = x;
  o->row = 0;
  o->column = 1;
  o->depth = FORM_AXES;
  o->rows = f->axis[0].hi;
  o->columns = data->dim[0];
  o->k = data->dim[1] * qblock_info[kind].elems;
  o->words = qblock_bits(kind);
  choose_size(o);
  o->q = mmq_pack_slices(l, kind, w, (u32)o->width, o->slices, o->steps * o->group);
  o->scales = o->q.split * (1 + o->q.offsets);
  KernelRecord r = {.family = FA_block_rows, .out = f->out.buf};
  r.size = str_fmt(l->c, "of %s, %lld columns, %lld slices", qblock_info[kind].name,
                   (long long)o->width, (long long)o->slices);
  r.reason = str_fmt(l->c, "%lld results", (long long)o->columns);
  put_kernels(o, at, kernel_record(l->p, l->at.last, r));
}
