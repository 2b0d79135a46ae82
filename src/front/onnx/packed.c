/* packed.c: 4-bit and 8-bit weights that stay packed.
 *
 * In: constants of a MatMulNBits or group-wise DequantizeLinear: integers, scales, zero points.
 * Out: the same matrix in quant groups (N4, N8 etc. of qblocks.def) with a `dequantize` node, which
 * a pass fuses into matmul_quant. Groups of the file may be any multiple of QBLOCK_X elements.
 * Matrices that do not fit or are too small are left to the caller.
 */
#include "front/onnx/packed.h"

#include <string.h>

/* Minimum number of elements. Unpacking smaller float matrices costs more than reading them from
 * the cache. Int8 products are faster than float ones, so their limit is lower. */
enum { LEAST_EXACT = 1 << 20, LEAST_BYTES = 1 << 14 };

bool packed_fits(i64 rows, i64 n, i64 block, i64 bits, bool exact) {
  return (bits == 4 || bits == 8) && block > 0 && block % QBLOCK_X == 0 && n % QBLOCK_X == 0 &&
         rows * n >= (exact ? LEAST_EXACT : LEAST_BYTES);
}

/* Do all groups have the middle of the range as zero point, so that no offset is needed? */
static bool is_middle(const PackedRows *p) {
  for (i64 i = 0; i < p->rows * (p->n / QBLOCK_X); i++)
    if (p->zero[i] != (float)(1 << (p->bits - 1))) return false;
  return true;
}

Val packed_value(Graph *g, const PackedRows *p, bool exact) {
  static const QBlockKind kinds[2][2] = {{BK_N4, BK_N4Z}, {BK_N8, BK_N8Z}};
  bool wide = p->bits == 8, moved = !is_middle(p);
  QBlockKind kind = kinds[wide][moved];
  const QBlockInfo *b = &qblock_info[kind];
  i64 units = p->n / QBLOCK_X;
  Tensor *t = tensor_new(&g->c->keep, DT_u8, (i64[]){p->rows, units, b->bytes}, 3);
  u8 *to = (u8 *)(uintptr_t)t->data;
  for (i64 i = 0; i < p->rows * units; i++, to += b->bytes) {
    const u8 *code = p->code + i * QBLOCK_X;
    float offset = p->scale[i] * ((float)(wide ? 128 : 0) - p->zero[i]);
    memcpy(to + b->d, &p->scale[i], sizeof(float));
    if (moved) memcpy(to + b->m, &offset, sizeof offset);
    u8 *quant = to + (moved ? 8 : 4);
    if (wide) memcpy(quant, code, QBLOCK_X);
    for (u32 k = 0; !wide && k < QBLOCK_X / 2; k++)
      quant[k] = (u8)(code[2 * k] | code[2 * k + 1] << 4);
  }
  arena_rewind(&g->c->scratch, p->before);
  return mk_dequantize(g, mk_const(g, t), b->name, exact ? 32 : 8);
}

PackedRows packed_new(Ctx *c, i64 rows, i64 n, i64 bits) {
  size_t units = (size_t)(rows * (n / QBLOCK_X));
  Mark before = arena_mark(&c->scratch);
  return (PackedRows){.rows = rows,
                      .n = n,
                      .bits = (u32)bits,
                      .code = NEWS(&c->scratch, u8, (size_t)(rows * n)),
                      .scale = NEWS(&c->scratch, float, units),
                      .zero = NEWS(&c->scratch, float, units),
                      .before = before};
}
