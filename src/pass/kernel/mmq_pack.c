/* mmq_pack.c: packs quantized weights into panels at compile time.
 *
 * In: a constant u8[rows, blocks, bytes] and the number of lanes. Out: constants of the program:
 * integers with the bits of an element (4 or 8 for scalar loops), and scales in the width of the
 * file: f16, or f16 per quant block and bytes per group. The last panel is padded with zeros.
 * Nothing is rounded.
 */
#include "pass/kernel/mmq.h"

#include <string.h>

/* Output tensors while they are filled. */
typedef struct Packed {
  MmqPanels *q;
  Tensor *quant, *s, *d; /* d NULL: s is complete */
} Packed;

/* Rows to pack, and their layout. */
typedef struct PanelRows {
  i64 first, count;
  u32 lanes;
  bool signs, loops, along;
  i64 slices, turns; /* see MmqPanels */
} PanelRows;

static MmqPanels plan_panels(QBlockKind k, const Tensor *w, const PanelRows *x) {
  const QBlockInfo *b = &qblock_info[k];
  MmqPanels q = {.kind = k,
                 .lanes = x->lanes,
                 .loops = x->loops,
                 .along = x->along,
                 .rows = x->count,
                 .slices = x->slices,
                 .turns = x->turns};
  q.group = qblock_group(k);
  q.blocks = w->dim[1];
  q.n = q.blocks * (b->elems / QBLOCK_X);
  q.split = QBLOCK_X / q.group;
  q.bits = qblock_bits(k);
  q.less = q.bits == 8 ? 128 : b->less;
  q.words = q.bits;
  q.offsets = b->m != QBLOCK_NO;
  q.is_signed = x->signs && q.bits == 8;
  if (q.is_signed) q.less = 0;
  return q;
}

static i64 together(const MmqPanels *q) {
  return q->loops || q->slices ? 1 : PANELS;
}

/* Offset of one word in the packed panels: word `at` of reduction step `step`. A step has `each`
 * words per row, and a row has n steps. */
static u64 place(const Packed *p, i64 row, i64 step, i64 n, i64 at, i64 each) {
  i64 lanes = p->q->lanes, panel = row / lanes, width = together(p->q), per = n / p->q->n;
  if (p->q->slices && per) { /* step: a group of a unit */
    i64 unit = step / per, slice = unit % p->q->slices;
    i64 line = (panel * p->q->turns + unit / p->q->slices) * per * each;
    line += step % per * each + at;
    return (u64)((line * p->q->slices + slice) * lanes + row % lanes);
  }
  i64 where = panel / width * n + step;
  return (u64)(((where * each + at) * width + panel % width) * lanes + row % lanes);
}

/* Stores 32 elements as bytes. */
static void pack_bytes(Packed *p, i64 row, i64 unit, const i16 *v) {
  MmqPanels *q = p->q;
  u32 all = unit_bytes(q);
  u8 *to = (u8 *)(uintptr_t)p->quant->data;
  for (u32 e = 0; e < all; e++) {
    u32 u = (u32)(v[e] + q->less) & 255;
    if (all < QBLOCK_X) u |= (u32)(v[e + all] + q->less) << 4;
    i64 lane = ((row / q->lanes * q->n + unit) * q->lanes + row % q->lanes) * all + e;
    to[q->along ? (u64)lane : place(p, row, unit, q->n, e, all)] = (u8)u;
  }
}

/* Elements are stored whole, as many as fit in a byte. The rest is spread over the free high bits.
 * The pattern repeats after as few words as possible (3 words for 4 times 4 elements of 6 bits), so
 * that a word is used up soon after its load. */
u32 mmq_pieces(u32 words, u32 j, MmqPiece piece[8]) {
  u32 bits = words, even = bits & (0u - bits), fours = 8 / even, filled = bits / even;
  u32 per = 8 / bits, free = 8 - per * bits, first = j / fours * filled, k = j % fours, n = 0;
  if (k < per * filled) {
    piece[0] = (MmqPiece){first + k / per, k % per * bits, bits, 0};
    return 1;
  }
  for (u32 got = 0, at = (k - per * filled) * bits; got < bits; n++) {
    u32 some = free - at % free < bits - got ? free - at % free : bits - got;
    piece[n] = (MmqPiece){first + at / free, per * bits + at % free, some, got};
    got += some;
    at += some;
  }
  return n;
}

/* Stores 32 elements as words. */
static void pack_unit(Packed *p, i64 row, i64 unit, const i16 *v) {
  MmqPanels *q = p->q;
  u32 word[8] = {0};
  i32 *to = (i32 *)(uintptr_t)p->quant->data;
  for (u32 j = 0; j < QBLOCK_X / 4; j++) {
    MmqPiece piece[8];
    u32 n = mmq_pieces(q->words, j, piece);
    for (u32 e = 0; e < 4; e++)
      for (u32 i = 0; i < n; i++) {
        u32 u = (u32)(v[4 * j + e] + q->less) >> piece[i].to & ((1u << piece[i].bits) - 1);
        word[piece[i].word] |= u << (8 * e + piece[i].from);
      }
  }
  for (u32 j = 0; j < q->words; j++)
    memcpy(&to[place(p, row, unit, q->n, j, q->words)], &word[j], sizeof *word);
}

/* Stores a scale, and its offset if there are any; a row has n. */
static void set(const Packed *p, Tensor *t, i64 row, i64 at, i64 n, double factor, double offset) {
  i64 each = 1 + p->q->offsets;
  for (i64 i = 0; i < each; i++) {
    double x = i ? offset : factor;
    tensor_set(t, place(p, row, at, n, i, each),
               dtype_is_float(t->dt) ? (Scalar){.f = x} : (Scalar){.i = (i64)x});
  }
}

static void pack_block(Packed *p, i64 row, i64 block, const QBlockParts *part) {
  MmqPanels *q = p->q;
  const QBlockInfo *b = &qblock_info[q->kind];
  i64 units = b->elems / QBLOCK_X, groups = b->elems / q->group, all = q->n * q->split;
  for (i64 u = 0; u < units; u++)
    (q->loops ? pack_bytes : pack_unit)(p, row, block * units + u, part->v + u * QBLOCK_X);
  for (i64 i = 0; i < groups; i++) {
    u32 g = qblock_scale(q->kind, (u32)i * q->group);
    if (p->d)
      set(p, p->s, row, block * groups + i, all, part->sc[g], part->mn[g]);
    else
      set(p, p->s, row, block * groups + i, all, (double)part->s[g], (double)part->o[g]);
  }
  if (p->d) set(p, p->d, row, block, q->blocks, (double)part->d, (double)part->m);
}

static Tensor *panels_new(Lower *l, const MmqPanels *q, DType dt, i64 n, i64 each) {
  i64 panels = (q->rows + q->lanes - 1) / q->lanes, width = together(q);
  i64 dim[5] = {(panels + width - 1) / width, n, each, width, q->lanes};
  if (q->slices && n >= q->n) {
    i64 sliced[4] = {panels, q->turns, n / q->n * each, q->slices * q->lanes};
    return tensor_new(&l->c->keep, dt, sliced, 4);
  }
  if (q->slices) return tensor_new(&l->c->keep, dt, (i64[]){panels, n, each, q->lanes}, 4);
  return tensor_new(&l->c->keep, dt, dim, 5);
}

static Tensor *quant_new(Lower *l, const MmqPanels *q) {
  i64 panels = (q->rows + q->lanes - 1) / q->lanes;
  if (q->along)
    return tensor_new(&l->c->keep, DT_i8, (i64[]){panels, q->n, q->lanes, 1, QBLOCK_X}, 5);
  if (!q->loops) return panels_new(l, q, DT_i32, q->n, q->words);
  return panels_new(l, q, q->is_signed ? DT_i8 : DT_u8, q->n, unit_bytes(q));
}

static MmqPanels pack(Lower *l, QBlockKind kind, BufId rows, const PanelRows *x) {
  const Tensor *w = prog_buf(l->p, prog_root(l->p, rows))->data;
  Str name = prog_buf(l->p, rows)->name;
  const QBlockInfo *b = &qblock_info[kind];
  MmqPanels q = plan_panels(kind, w, x);
  bool scales = qblock_has(kind, BP_scale);
  i64 blocks = w->dim[1], each = 1 + q.offsets;
  DType half = b->factor == BV_half ? DT_f16 : DT_f32;
  QBlockParts part;
  if (q.offsets && scales != qblock_has(kind, BP_least))
    internal_error(l->c, LOC_NONE, "%s: scales and offsets have different types, expected one type",
                   b->name);
  i64 key[] = {ON_mmq, rows, x->lanes, x->signs, x->loops, x->along, x->first, x->slices};
  u32 *known = map_put_bytes(&l->once, key, sizeof key);
  if (*known) { /* the other constants have the next ids */
    q.quant = *known;
    q.s = *known + 1;
    if (scales) q.d = *known + 2;
    return q;
  }
  Packed p = {.q = &q, .quant = quant_new(l, &q)};
  p.s = panels_new(l, &q, scales ? DT_i8 : half, q.n * q.split, each);
  if (scales) p.d = panels_new(l, &q, DT_f16, blocks, each);
  for (i64 row = 0; row < q.rows; row++)
    for (i64 i = 0; i < blocks; i++) {
      qblock_split(kind, (const u8 *)w->data + ((x->first + row) * blocks + i) * b->bytes, &part);
      pack_block(&p, row, i, &part);
    }
  q.quant = *known = prog_add_const(l->p, p.quant, name);
  q.s = prog_add_const(l->p, p.s, name);
  if (scales) q.d = prog_add_const(l->p, p.d, name);
  return q;
}

MmqPanels mmq_pack(Lower *l, QBlockKind kind, BufId rows, u32 lanes, bool signs) {
  i64 count = prog_buf(l->p, prog_root(l->p, rows))->data->dim[0];
  return pack(l, kind, rows, &(PanelRows){.count = count, .lanes = lanes, .signs = signs});
}

MmqPanels mmq_pack_slices(Lower *l, QBlockKind kind, BufId rows, u32 lanes, i64 slices, i64 turns) {
  i64 count = prog_buf(l->p, prog_root(l->p, rows))->data->dim[0];
  return pack(l, kind, rows,
              &(PanelRows){
                  .count = count, .lanes = lanes, .signs = true, .slices = slices, .turns = turns});
}

MmqPanels mmq_pack_loops(Lower *l, QBlockKind kind, BufId rows, u32 lanes, i64 first, i64 count,
                         bool along) {
  return pack(l, kind, rows, &(PanelRows){first, count, lanes, true, true, along, 0, 0});
}
