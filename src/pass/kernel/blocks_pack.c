/* blocks_pack.c: brings rows of blocks into panels, while compiling.
 *
 * In: a constant u8[rows, blocks, bytes] and the lanes of a vector. Out: constants of the program:
 * integers, which stay as narrow as nibbles where they fit, and what scales them, as narrow as the
 * file has it: halves, or halves for a block and bytes for its groups. Rows that fill up the last
 * panel are zero. Nothing is rounded.
 */
#include "pass/kernel/blocks.h"

#include <string.h>

/* What is filled, at the row and unit that is being brought over. */
typedef struct Packed {
  Panels *q;
  Tensor *quant, *s, *o, *d, *m;
} Packed;

/* Rows that are packed, and for what. */
typedef struct PanelRows {
  i64 first, count;
  u32 lanes;
  bool signs, loops, along;
} PanelRows;

static Panels plan_panels(BlockKind k, const Tensor *w, const PanelRows *x) {
  const BlockInfo *b = &block_info[k];
  Panels q = {.kind = k, .lanes = x->lanes, .loops = x->loops, .along = x->along, .rows = x->count};
  q.group = block_group(k);
  q.blocks = w->dim[1];
  q.n = q.blocks * (b->elems / BLOCK_X);
  q.split = BLOCK_X / q.group;
  q.bits = block_bits(k);
  q.less = q.bits == 8 ? 128 : b->less;
  q.words = q.bits <= 6 ? 4 : 8;
  q.high = q.bits <= 4 || q.bits > 6 ? 0 : q.bits - 4;
  q.is_signed = x->signs && q.bits == 8;
  if (q.is_signed) q.less = 0;
  return q;
}

static i64 together(const Panels *q) {
  return q->loops ? 1 : PANELS;
}

/* Element of a constant: word `at` of `each` of a step of the fold, of which a row has n. */
static u64 place(const Packed *p, i64 row, i64 step, i64 n, i64 at, i64 each) {
  i64 lanes = p->q->lanes, panel = row / lanes, beside = together(p->q);
  i64 where = panel / beside * n + step;
  return (u64)(((where * each + at) * beside + panel % beside) * lanes + row % lanes);
}

/* 32 elements as bytes. */
static void pack_bytes(Packed *p, i64 row, i64 unit, const i16 *v) {
  Panels *q = p->q;
  u32 all = unit_bytes(q);
  u8 *to = (u8 *)(uintptr_t)p->quant->data;
  for (u32 e = 0; e < all; e++) {
    u32 u = (u32)(v[e] + q->less) & 255;
    if (all < BLOCK_X) u |= (u32)(v[e + all] + q->less) << 4;
    i64 lane = ((row / q->lanes * q->n + unit) * q->lanes + row % q->lanes) * all + e;
    to[q->along ? (u64)lane : place(p, row, unit, q->n, e, all)] = (u8)u;
  }
}

/* 32 elements as words. */
static void pack_unit(Packed *p, i64 row, i64 unit, const i16 *v) {
  Panels *q = p->q;
  u32 all = q->words + q->high, word[8] = {0};
  i32 *to = (i32 *)(uintptr_t)p->quant->data;
  for (u32 e = 0; e < BLOCK_X; e++) {
    u32 u = (u32)(v[e] + q->less) & 255, j = e / 4, byte = e % 4 * 8;
    if (q->words == 8)
      word[j] |= u << byte;
    else
      word[j % 4] |= (u & 15) << (byte + j / 4 * 4);
    if (q->high) word[high_word(q, j)] |= u >> 4 << (byte + high_bit(q, j));
  }
  for (u32 j = 0; j < all; j++)
    memcpy(&to[place(p, row, unit, q->n, j, all)], &word[j], sizeof *word);
}

static void set(const Packed *p, Tensor *t, i64 row, i64 at, i64 n, double x) {
  u64 e = place(p, row, at, n, 0, 1);
  if (!t) return;
  tensor_set(t, e, dtype_is_float(t->dt) ? (Scalar){.f = x} : (Scalar){.i = (i64)x});
}

static void pack_block(Packed *p, i64 row, i64 block, const BlockParts *part) {
  Panels *q = p->q;
  const BlockInfo *b = &block_info[q->kind];
  i64 units = b->elems / BLOCK_X, groups = b->elems / q->group, all = q->n * q->split;
  for (i64 u = 0; u < units; u++)
    (q->loops ? pack_bytes : pack_unit)(p, row, block * units + u, part->v + u * BLOCK_X);
  for (i64 i = 0; i < groups; i++) {
    u32 g = block_scale(q->kind, (u32)i * q->group);
    set(p, p->s, row, block * groups + i, all, p->d ? part->sc[g] : (double)part->s[g]);
    set(p, p->o, row, block * groups + i, all, p->m ? part->mn[g] : (double)part->o[g]);
  }
  set(p, p->d, row, block, q->blocks, (double)part->d);
  set(p, p->m, row, block, q->blocks, (double)part->m);
}

static Tensor *panels_new(Lower *l, const Panels *q, DType dt, i64 n, i64 each) {
  i64 panels = (q->rows + q->lanes - 1) / q->lanes, beside = together(q);
  i64 dim[5] = {(panels + beside - 1) / beside, n, each, beside, q->lanes};
  return tensor_new(&l->c->keep, dt, dim, 5);
}

static BufId add(Lower *l, Tensor *t, Str name) {
  return t ? prog_add_const(l->p, t, name) : 0;
}

static Tensor *quant_new(Lower *l, const Panels *q) {
  i64 panels = (q->rows + q->lanes - 1) / q->lanes;
  if (q->along)
    return tensor_new(&l->c->keep, DT_i8, (i64[]){panels, q->n, q->lanes, 1, BLOCK_X}, 5);
  if (!q->loops) return panels_new(l, q, DT_i32, q->n, q->words + q->high);
  return panels_new(l, q, q->is_signed ? DT_i8 : DT_u8, q->n, unit_bytes(q));
}

static Panels pack(Lower *l, BlockKind kind, BufId rows, const PanelRows *x) {
  const Tensor *w = prog_buf(l->p, prog_root(l->p, rows))->data;
  Str name = prog_buf(l->p, rows)->name;
  const BlockInfo *b = &block_info[kind];
  Panels q = plan_panels(kind, w, x);
  bool scales = block_has(kind, BP_scale), least = block_has(kind, BP_least), m = b->m != BLOCK_NO;
  i64 groups = q.n * q.split, blocks = w->dim[1];
  DType half = b->factor == BV_half ? DT_f16 : DT_f32;
  BlockParts part;
  i64 key[] = {ON_blocks, rows, x->lanes, x->signs, x->loops, x->along, x->first};
  u32 *known = map_put_bytes(&l->once, key, sizeof key);
  if (*known) {
    q.quant = *known;
    BufId next = *known;
    q.s = ++next;
    if (m) q.o = ++next;
    if (scales) q.d = ++next;
    if (least) q.m = ++next;
    return q;
  }
  Packed p = {.q = &q, .quant = quant_new(l, &q)};
  p.s = panels_new(l, &q, scales ? DT_i8 : half, groups, 1);
  if (m) p.o = panels_new(l, &q, least ? DT_i8 : half, groups, 1);
  if (scales) p.d = panels_new(l, &q, DT_f16, blocks, 1);
  if (least) p.m = panels_new(l, &q, DT_f16, blocks, 1);
  for (i64 row = 0; row < q.rows; row++)
    for (i64 i = 0; i < blocks; i++) {
      block_split(kind, (const u8 *)w->data + ((x->first + row) * blocks + i) * b->bytes, &part);
      pack_block(&p, row, i, &part);
    }
  q.quant = *known = add(l, p.quant, name); /* the others follow: see above */
  q.s = add(l, p.s, name);
  q.o = add(l, p.o, name);
  q.d = add(l, p.d, name);
  q.m = add(l, p.m, name);
  return q;
}

Panels blocks_pack(Lower *l, BlockKind kind, BufId rows, u32 lanes, bool signs) {
  i64 count = prog_buf(l->p, prog_root(l->p, rows))->data->dim[0];
  return pack(l, kind, rows, &(PanelRows){.count = count, .lanes = lanes, .signs = signs});
}

Panels blocks_pack_loops(Lower *l, BlockKind kind, BufId rows, u32 lanes, i64 first, i64 count,
                         bool along) {
  return pack(l, kind, rows, &(PanelRows){first, count, lanes, true, true, along});
}
