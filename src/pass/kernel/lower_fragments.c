/* lower_fragments.c: int8 products by matrix registers (family fragments).
 *
 * In: a form that tile_choose computes by dot_i8x4 with constant weights: a matrix product or a
 * convolution. Out: a kernel that multiplies fragments of 16 x 16 sums (AMX: TDPBUSD).
 *
 *   for block of rows parallel, for group of columns parallel
 *     pack the rows of the block: the bytes of a row in the order of its weights
 *     for 2 panels of 16 columns
 *       for 32 rows
 *         sums[2, 2] += rows[2] * panels[2]   for every 64 bytes of a row
 *         store the sums to scratch; for every row: finish and store
 *
 * All result axes except the lanes are the rows, row-major. A convolution thus multiplies an
 * implicit matrix (implicit GEMM). Packing makes signed bytes unsigned, as dot_i8x4 takes them, and
 * repeats the last row. The weights are the panels of tile_pack.c, which are the layout of the
 * instruction (VNNI); zeros fill the last 64 bytes. Sums of integers are exact in any order.
 */
#include "pass/kernel/tile.h"

#include <string.h>

enum {
  PAIR = 2, /* fragments along rows and columns of a tile */
  ROWS = PAIR * FRAG_ROWS,
  WORDS = TILE_BYTES / 4,
  PAD = TILE_BYTES /* of a packed row, so that rows lie in different sets of the L1 cache */
};

struct Fragments {
  Tile *t;
  u32 nrow, row[FORM_AXES];  /* result axes except the lanes */
  i64 rows, steps;           /* steps: of 64 bytes of a row */
  i64 vec;                   /* bytes of a row that are contiguous in memory, in a vector */
  i64 filled;                /* bytes of a row that have weights */
  i64 pairs, blocks, groups; /* pairs of a block; blocks of rows; groups of columns */
  BufId x, w, sums;
};

static i64 up(i64 x, i64 by) {
  return (x + by - 1) / by;
}

static i64 extent(const Tile *t, u32 axis) {
  return t->f.axis[axis].hi;
}

/* ---- choice ---- */

static bool find_rows(Fragments *o) {
  const Tile *t = o->t;
  o->rows = 1;
  for (u32 i = 0; i < t->f.naxes; i++) {
    const Axis *a = &t->f.axis[i];
    if (!dim_is_const(a->hi) || a->lo || a->full_hi || a->hi < 1) return false;
    if (a->reduce || i == t->axis.lane || a->hi == 1) continue;
    if (tile_is_batch(t, i)) return false;
    o->row[o->nrow++] = i;
    o->rows *= a->hi;
  }
  return true;
}

/* The vector of `vec` bytes at the position in x->at; 0: they are not contiguous. */
static ExprId load_bytes(Tile *x, i64 vec) {
  x->lanes = (u32)vec;
  x->at.inner = (InnerVars){1, {{x->lane_var, vec}}};
  Nest n = tile_nest(x, prog_end());
  ExprId e = nest_load(&n, x->bytes.operand);
  Vectorizer w = tile_widen(x, 0);
  return widen(&w, e);
}

static u32 run_axis(const Tile *t) {
  return t->axis.split < FORM_AXES ? t->axis.split : t->axis.quad;
}

/* Chooses the longest vectors of bytes that are contiguous in memory and in the packed order. */
static bool choose_vec(Fragments *o) {
  Tile x = *o->t;
  Prog *p = x.p;
  u32 axis = run_axis(&x), last = 0;
  for (u32 i = 0; i < x.f.naxes; i++)
    if (x.f.axis[i].reduce && extent(&x, i) > 1) last = i;
  i64 run = axis == x.axis.split    ? x.axis.block
            : axis == last || !last ? up(extent(&x, axis), 4) * 4
                                    : 4;
  for (o->vec = 64; o->vec >= 4; o->vec /= 2) {
    if (run % o->vec) continue;
    ProgMark mark = trial_begin(&x);
    ExprId at = ex_var(p, prog_add_var(p, DT_i64, 0));
    x.at.val[axis] = ex_mul_add(p, at, o->vec, ex_var(p, x.lane_var));
    bool fits = load_bytes(&x, o->vec);
    trial_end(&x, mark);
    if (fits) return true;
  }
  return false;
}

/* Rows of a block stay in L2. With several threads, each gets blocks of rows, or of columns if
 * there are few rows. */
static void choose_blocks(Fragments *o, i64 panels) {
  i64 threads = o->t->p->threads > 1 ? o->t->p->threads : 1, all = up(o->rows, ROWS),
      bytes = ROWS * (o->steps * TILE_BYTES + PAD), most = (i64)figures.own_bytes / bytes;
  if (threads > 1 && most > up(all, 2 * threads)) most = up(all, 2 * threads);
  o->pairs = most < 1 ? 1 : most > all ? all : most;
  o->blocks = up(all, o->pairs);
  o->groups = o->blocks < threads ? up(threads, o->blocks) : 1;
  if (o->groups > up(panels, PAIR)) o->groups = up(panels, PAIR);
}

bool fragments_choose(Lower *l, const Form *f, KernelChoice *r) {
  enum {
    DOT = 128,
    TILE = 1024
  }; /* multiply-adds of a row by dot_i8x4 in the time of two by tiles */
  const PassCtx *u = l->pass;
  if (!(u->target->has & CAP_tiles) || !u->for_c || u->aim != AIM_time || !f->reduce ||
      f->acc != DT_i32 || f->op != OP_mul || f->nin != 2 || !tile_choose(l, f, &r->t))
    return false;
  Tile *t = &r->t;
  u32 w = 1 - t->bytes.operand;
  Fragments *o = NEW(&l->c->work, Fragments);
  *o = (Fragments){.t = t};
  if (t->axis.each != 4 || t->lanes != FRAG_ROWS || t->use[w] != LU_packed || t->packed_at_run[w] ||
      t->use[t->bytes.operand] != LU_splat || !find_rows(o) || !choose_vec(o))
    return false;
  const Tensor *packed = prog_buf(l->p, t->pack[w])->data;
  i64 n = extent(t, t->axis.lane), panels = up(n, FRAG_ROWS);
  o->filled = (i64)packed->n / (panels * FRAG_ROWS) * 4;
  o->steps = up(o->filled, TILE_BYTES);
  if (o->rows < FRAG_ROWS || packed->dt != DT_i32 ||
      1.5 / (double)o->vec + (double)n / TILE > (double)n / DOT)
    return false;
  choose_blocks(o, panels);
  r->family = FA_fragments;
  r->fragments = o;
  r->size = str_fmt(l->c, "%d x %d sums", ROWS, ROWS);
  r->reason = str_fmt(l->c, "%lld rows of %lld bytes in vectors of %lld, %lld x %lld blocks",
                      (long long)o->rows, (long long)o->filled, (long long)o->vec,
                      (long long)o->blocks, (long long)o->groups);
  return true;
}

/* ---- writing ---- */

/* The panels as [panels, words of a row, 16]. */
static BufId weights_of(Fragments *o) {
  Prog *p = o->t->p;
  BufId b = o->t->pack[1 - o->t->bytes.operand];
  const Tensor *x = prog_buf(p, b)->data;
  i64 dim[] = {up(extent(o->t, o->t->axis.lane), FRAG_ROWS), o->steps * WORDS, FRAG_ROWS},
      words = o->filled / 4 * FRAG_ROWS;
  if (o->filled == o->steps * TILE_BYTES) return form_view(p, &o->t->l->once, b, dim, 3);
  Tensor *to = tensor_new(&p->c->keep, DT_i32, dim, 3);
  for (i64 i = 0; i < dim[0]; i++)
    memcpy((i32 *)(uintptr_t)to->data + i * dim[1] * FRAG_ROWS, (const i32 *)x->data + i * words,
           (size_t)words * sizeof(i32));
  return prog_add_const(p, to, prog_buf(p, b)->name);
}

/* Sets the row axes to the digits of a number. */
static void set_row(const Fragments *o, Tile *t, Cursor *at, ExprId number) {
  Prog *p = t->p;
  for (u32 i = o->nrow; i-- > 0;) {
    i64 n = extent(t, o->row[i]);
    VarId whole = let_new(p, at, "m", number);
    ExprId value = ex_var(p, whole);
    if (i) {
      VarId q = let_new(p, at, "q", ex_op2(p, OP_div, ex_var(p, whole), ex_int(p, n)));
      value = ex_op2(p, OP_sub, value, ex_op2(p, OP_mul, ex_var(p, q), ex_int(p, n)));
      value = ex_var(p, let_new(p, at, "i", value));
      number = ex_var(p, q);
    }
    t->at.val[o->row[i]] = value;
  }
}

/* Copies the bytes of row number `row` to row `to` of scratch. */
static void pack_row(const Fragments *o, Cursor at, ExprId row, ExprId to) {
  Tile t = *o->t;
  Prog *p = t.p;
  ExprId place = ex_int(p, 0);
  u32 run = run_axis(&t);
  for (i64 k = o->filled; k < o->steps * TILE_BYTES; k += 4) {
    ExprId idx[] = {ex_copy(p, to), ex_int(p, k)},
           zero = ex_const(p, prog_buf(p, o->x)->dt, (Scalar){0});
    prog_store(p, &at, o->x, idx, 2, ex_splat(p, zero, 4));
  }
  set_row(o, &t, &at, row);
  for (u32 i = 0; i < t.f.naxes; i++) {
    if (!t.f.axis[i].reduce) continue;
    i64 n = extent(&t, i);
    if (i == run && t.axis.split < FORM_AXES) n = up(n, t.axis.block);
    if (i == run && t.axis.split == FORM_AXES) n = up(n, 4) * 4 / o->vec;
    ExprId k = ex_int(p, 0);
    if (n > 1) k = ex_var(p, for_role(p, &at, k, ex_int(p, n), "k", RO_none));
    place = ex_mul_add(p, place, n, ex_copy(p, k));
    t.at.val[i] = k;
  }
  i64 each = t.axis.split < FORM_AXES ? t.axis.block : o->vec, parts = each / o->vec;
  ExprId part = ex_int(p, 0);
  if (parts > 1) part = ex_var(p, for_role(p, &at, part, ex_int(p, parts), "k", RO_none));
  place = ex_mul_add(p, place, parts, ex_copy(p, part));
  ExprId first =
      ex_mul_add(p, ex_mul_add(p, t.at.val[run], parts, part), o->vec, ex_var(p, t.lane_var));
  t.at.val[run] = first;
  ExprId value = load_bytes(&t, o->vec);
  if (!value) internal_error(p->c, t.l->n->loc, "the bytes of a row are not contiguous");
  DType dt = prog_expr(p, value)->dt;
  if (t.bytes.bias_128) {
    ExprId high = ex_splat(p, ex_const(p, dt, (Scalar){.i = -128}), (u32)o->vec);
    value = ex_op2(p, OP_xor, value, high);
  }
  ExprId idx[] = {to, ex_op2(p, OP_mul, place, ex_int(p, o->vec))};
  prog_store(p, &at, o->x, idx, 2, value);
}

static BufId fragments(Prog *p, i64 rows, i64 columns, const char *name) {
  BufId b = tile_registers(p, DT_i32, FRAG_LANES, rows, columns, name);
  prog_buf(p, b)->rows = FRAG_ROWS;
  return b;
}

/* The sums of 32 rows and n panels, to scratch. pair: number of the rows in the block. */
static void put_sums(const Fragments *o, Cursor at, ExprId pair, ExprId panel, i64 n) {
  Prog *p = o->t->p;
  BufId acc = fragments(p, PAIR, n, "acc"), av = fragments(p, PAIR, 1, "av"),
        bv = fragments(p, 1, n, "bv");
  ExprId none = ex_int(p, 0);
  Cursor in = at;
  ExprId i = tile_unrolled(p, &in, PAIR, "i", RO_none), j = tile_unrolled(p, &in, n, "j", RO_none);
  ExprId zero = ex_const(p, DT_i32, (Scalar){0});
  reg_store(p, &in, acc, i, j, ex_splat_fragment(p, zero, FRAG_ROWS, FRAG_ROWS));
  in = at;
  ExprId step = ex_int(p, 0);
  if (o->steps > 1) step = ex_var(p, for_role(p, &in, step, ex_int(p, o->steps), "s", RO_none));
  Cursor part = in;
  i = tile_unrolled(p, &part, PAIR, "i", RO_none);
  ExprId row =
      ex_mul_add(p, ex_copy(p, pair), ROWS, ex_op2(p, OP_mul, ex_copy(p, i), ex_int(p, FRAG_ROWS)));
  ExprId x[] = {row, ex_op2(p, OP_mul, ex_copy(p, step), ex_int(p, TILE_BYTES))};
  reg_store(p, &part, av, i, none, ex_quad(p, ex_fragment(p, o->x, x, 2, FRAG_ROWS, TILE_BYTES)));
  part = in;
  j = tile_unrolled(p, &part, n, "j", RO_none);
  ExprId w[] = {ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j)),
                ex_op2(p, OP_mul, step, ex_int(p, WORDS)), ex_int(p, 0)};
  reg_store(p, &part, bv, none, j, ex_turn(p, ex_fragment(p, o->w, w, 3, FRAG_ROWS, FRAG_ROWS)));
  i = tile_unrolled(p, &in, PAIR, "i", RO_none);
  j = tile_unrolled(p, &in, n, "j", RO_none);
  ExprId a = reg_load(p, av, i, none), b = reg_load(p, bv, none, j), c = reg_load(p, acc, i, j);
  reg_store(p, &in, acc, i, j, ex_mma(p, a, b, c));
  i = tile_unrolled(p, &at, PAIR, "i", RO_none);
  j = tile_unrolled(p, &at, n, "j", RO_none);
  ExprId to[] = {ex_op2(p, OP_mul, ex_copy(p, i), ex_int(p, FRAG_ROWS)),
                 ex_op2(p, OP_mul, ex_copy(p, j), ex_int(p, FRAG_ROWS))};
  prog_store(p, &at, o->sums, to, 2, reg_load(p, acc, i, j));
}

/* Finishes and stores the sums of the rows from `first` on. */
static void put_results(const Fragments *o, Cursor at, ExprId first, ExprId panel, i64 n,
                        i64 valid) {
  Tile t = *o->t;
  Prog *p = t.p;
  ExprId left = ex_op2(p, OP_sub, ex_int(p, o->rows), ex_copy(p, first)), end = ex_int(p, ROWS);
  if (o->rows % ROWS) end = ex_op2(p, OP_min, end, left);
  ExprId r = ex_var(p, for_role(p, &at, ex_int(p, 0), end, "r", RO_none));
  set_row(o, &t, &at, ex_op2(p, OP_add, ex_copy(p, first), ex_copy(p, r)));
  BufId acc = tile_registers(p, DT_i32, FRAG_ROWS, 1, n, "out");
  Cursor in = at;
  ExprId j = tile_unrolled(p, &in, n, "v", RO_none);
  t.at.panel = ex_op2(p, OP_add, ex_copy(p, panel), ex_copy(p, j));
  ExprId idx[] = {r, ex_op2(p, OP_mul, ex_copy(p, j), ex_int(p, FRAG_ROWS))};
  ExprId sum = ex_load_vec(p, o->sums, idx, 2, FRAG_ROWS), more = 0;
  if (t.bytes.sums)
    more = sums_load(&t);
  else if (t.f.init.i)
    more = ex_splat(p, ex_const(p, DT_i32, t.f.init), FRAG_ROWS);
  reg_store(p, &in, acc, ex_int(p, 0), j, more ? ex_op2(p, OP_add, sum, more) : sum);
  ExprId row = t.axis.row < FORM_AXES ? t.at.val[t.axis.row] : 0;
  tile_store(&t, at, acc, (TileSize){1, n}, row, panel, valid);
}

/* Panels from..to - 1, n at a time; valid: lanes of a panel that the result has. */
static void put_panels(const Fragments *o, Cursor at, ExprId block, ExprId pairs, ExprId from,
                       ExprId to, i64 n, i64 valid) {
  Prog *p = o->t->p;
  VarId v = for_role(p, &at, from, to, "o", RO_none);
  prog_stmt(p, at.owner)->step = n;
  ExprId pair = ex_var(p, for_role(p, &at, ex_int(p, 0), pairs, "r", RO_none));
  put_sums(o, at, pair, ex_var(p, v), n);
  ExprId first =
      ex_op2(p, OP_mul, ex_mul_add(p, block, o->pairs, ex_copy(p, pair)), ex_int(p, ROWS));
  put_results(o, at, ex_var(p, let_new(p, &at, "m", first)), ex_var(p, v), n, valid);
}

void fragments_write(Lower *l, Cursor at, const Form *f, KernelChoice *r) {
  Fragments *o = r->fragments;
  Prog *p = l->p;
  Tile *t = o->t = &r->t;
  (void)f;
  i64 lanes = extent(t, t->axis.lane), all = up(o->rows, ROWS);
  i64 whole = t->store.pads ? up(lanes, FRAG_ROWS) : lanes / FRAG_ROWS, main = whole / PAIR * PAIR,
      each = up(up(whole, PAIR), o->groups) * PAIR;
  Dim rows[] = {o->pairs * ROWS, o->steps * TILE_BYTES + PAD}, sums[] = {ROWS, ROWS};
  o->w = weights_of(o);
  o->x = prog_add_buf(p, BS_local, prog_buf(p, t->f.in[t->bytes.operand].buf)->dt, rows, 2,
                      str_of(p->c, "rows"));
  o->sums = prog_add_buf(p, BS_local, DT_i32, sums, 2, str_of(p->c, "sums"));
  ExprId block = count_parallel(p, &at, o->blocks, "b"),
         group = count_parallel(p, &at, o->groups, "g"), pairs = ex_int(p, o->pairs);
  if (all % o->pairs)
    pairs = ex_op2(p, OP_min, pairs,
                   ex_op2(p, OP_sub, ex_int(p, all),
                          ex_op2(p, OP_mul, ex_copy(p, block), ex_int(p, o->pairs))));
  Cursor in = at;
  ExprId i =
      ex_var(p, for_role(p, &in, ex_int(p, 0),
                         ex_op2(p, OP_mul, ex_copy(p, pairs), ex_int(p, ROWS)), "i", RO_none));
  ExprId row = ex_mul_add(p, ex_copy(p, block), o->pairs * ROWS, ex_copy(p, i));
  if (o->rows % ROWS) row = ex_op2(p, OP_min, row, ex_int(p, o->rows - 1));
  pack_row(o, in, row, i);
  ExprId from = ex_op2(p, OP_mul, ex_copy(p, group), ex_int(p, each));
  ExprId to =
      ex_op2(p, OP_min, ex_op2(p, OP_add, ex_copy(p, from), ex_int(p, each)), ex_int(p, main));
  if (main) put_panels(o, at, ex_copy(p, block), ex_copy(p, pairs), from, to, PAIR, FRAG_ROWS);
  for (u32 part = 0; part < 2; part++) { /* a last whole panel, a partial one: of the last group */
    i64 panel = part ? whole : main, valid = part ? lanes - whole * FRAG_ROWS : FRAG_ROWS;
    if (part ? valid <= 0 : whole == main) continue;
    Cursor last = at;
    if (o->groups > 1)
      prog_if(p, &last, ex_op2(p, OP_eq, ex_copy(p, group), ex_int(p, o->groups - 1)));
    put_panels(o, last, ex_copy(p, block), ex_copy(p, pairs), ex_int(p, panel),
               ex_int(p, panel + 1), 1, valid);
  }
}
