/* Block formats: the rows of qblocks.def say where every byte of a block goes, and blocks made by
 * hand mean what they should. With the name of a kind it reads blocks and writes floats:
 * test/suite/blocks.py compares them with another reader's. */
#include "check.h"
#include "ir/quant/qblock.h"

#include <string.h>

static void planes_fit(QBlockKind k) {
  const QBlockInfo *b = &qblock_info[k];
  u32 n, count[BP_COUNT] = {b->elems, b->elems / b->per, b->elems / b->per};
  const Plane *p = qblock_planes(k, &n);
  bool read[256] = {0}, given[BP_COUNT][QBLOCK_MOST] = {{0}};
  CHECK(n > 0 && b->bytes <= sizeof read && b->elems <= QBLOCK_MOST && b->elems % b->per == 0);
  CHECK(b->elems / b->per <= QBLOCK_GROUPS);
  for (u32 i = 0; i < n; i++) {
    u32 end = p[i].into + (u32)p[i].chunks * p[i].run * p[i].levels;
    CHECK(end <= count[p[i].part] && p[i].at + (u32)p[i].chunks * p[i].run <= b->bytes);
    for (u32 at = p[i].at; at < p[i].at + (u32)p[i].chunks * p[i].run; at++) read[at] = true;
    for (u32 at = p[i].into; at < end; at++) given[p[i].part][at] = true;
  }
  u32 factor = b->factor == BV_half ? 2 : b->factor == BV_single ? 4 : 1;
  for (u32 i = 0; i < factor; i++) read[b->d + i] = true;
  for (u32 i = 0; b->m != QBLOCK_NO && i < factor; i++) read[b->m + i] = true;
  for (u32 at = 0; at < b->bytes; at++) CHECK(read[at]);
  for (u32 part = 0; part < BP_COUNT; part++)
    for (u32 at = 0; at < count[part]; at++)
      CHECK(given[part][at] == (part == BP_quant || qblock_has(k, (QBlockPart)part)));
}

static void table(void) {
  for (u32 k = 0; k < BK_COUNT; k++) {
    const QBlockInfo *b = &qblock_info[k];
    CHECK(qblock_from_name(b->name, strlen(b->name)) == k);
    CHECK(qblock_from_gguf(b->gguf) == (b->gguf == QBLOCK_NO ? BK_COUNT : k));
    if (qblock_is_plain((QBlockKind)k))
      CHECK(b->elems == 1 && b->bytes == dtype_bytes(b->plain));
    else
      planes_fit((QBlockKind)k);
  }
  CHECK(qblock_from_name("Q4_", 3) == BK_COUNT && qblock_from_name("q4_0", 4) == BK_COUNT);
  CHECK(qblock_from_gguf(9) == BK_COUNT && qblock_from_gguf((u64)1 << 32) == BK_COUNT);
}

static void by_hand(void) {
  float x[QBLOCK_MOST];
  u8 q4_1[20] = {0x00, 0x3c, 0x00, 0xc0, 0x21, 0xf0}; /* 1, -2 */
  qblock_decode(BK_Q4_1, q4_1, 1, x);
  CHECK(x[0] == -1 && x[1] == -2 && x[2] == -2 && x[16] == 0 && x[17] == 13);
  u8 q8_0[34] = {0x00, 0x38, 0x80, 0x7f}; /* 0.5 */
  qblock_decode(BK_Q8_0, q8_0, 1, x);
  CHECK(x[0] == -64 && x[1] == 63.5f && x[2] == 0);
  u8 f16[4] = {0x00, 0x3c, 0x00, 0xfc};
  qblock_decode(BK_F16, f16, 2, x);
  CHECK(x[0] == 1 && x[1] < -3e38f);
  u8 n4[24] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0x21, 0xf0}; /* 1, -2 */
  qblock_decode(BK_N4Z, n4, 1, x);
  CHECK(x[0] == -1 && x[1] == 0 && x[2] == -2 && x[3] == 13 && x[4] == -2);
  u8 n8[36] = {0, 0, 0, 0x3f, 0x80, 0xff}; /* 0.5 */
  qblock_decode(BK_N8, n8, 1, x);
  CHECK(x[0] == 0 && x[1] == 63.5f && x[2] == -64);
  u8 fp4[17] = {255, 0x79}; /* the largest factor is no NaN */
  qblock_decode(BK_MXFP4, fp4, 1, x);
  CHECK(x[0] == -0x1p127f && x[16] > 3e38f);
}

static int filter(QBlockKind k) {
  float x[QBLOCK_MOST];
  u8 block[256];
  while (fread(block, qblock_info[k].bytes, 1, stdin) == 1) {
    qblock_decode(k, block, 1, x);
    fwrite(x, sizeof *x, qblock_info[k].elems, stdout);
  }
  return ferror(stdin) || fflush(stdout);
}

int main(int argc, char **argv) {
  QBlockKind k = argc > 1 ? qblock_from_name(argv[1], strlen(argv[1])) : BK_COUNT;
  if (argc > 1) return k == BK_COUNT ? 2 : filter(k);
  table();
  by_hand();
  return check_end();
}
