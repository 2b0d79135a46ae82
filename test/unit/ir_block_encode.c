/* Quantizers: blocks of numbers that can be said exactly come back, and what has no quantizer is
 * told. With the name of a kind it reads floats and writes blocks: test/suite/quantizers.py
 * compares them with another writer's. */
#include "check.h"
#include "ir/quant/qblock.h"

#include <math.h>
#include <string.h>

static void again(QBlockKind k, float step, float from) {
  float x[QBLOCK_MOST] = {0}, y[QBLOCK_MOST];
  u8 block[QBLOCK_MOST * 8];
  const QBlockInfo *b = &qblock_info[k];
  for (u32 i = 0; i < b->elems; i++) x[i] = from + step * (float)(i % 16);
  CHECK(qblock_encode(k, x, 1, block));
  qblock_decode(k, block, 1, y);
  for (u32 i = 0; i < b->elems; i++) CHECK(x[i] == y[i]);
}

/* The same where scales are integers times an f16, which rounds by up to 2^-11. */
static void near_again(QBlockKind k, float step, float from) {
  float x[QBLOCK_MOST], y[QBLOCK_MOST], most = 0;
  u8 block[QBLOCK_MOST];
  for (u32 i = 0; i < QBLOCK_MOST; i++) {
    x[i] = from + step * (float)(i % 16);
    most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  }
  CHECK(qblock_encode(k, x, 1, block));
  qblock_decode(k, block, 1, y);
  for (u32 i = 0; i < QBLOCK_MOST; i++) CHECK(fabsf(x[i] - y[i]) <= most * 0x1p-9f);
}

/* Numbers at the ends of the range are no blocks that could be read, but do no harm; zeros, and
 * what is nearly 0, are 0. */
static void ends(QBlockKind k) {
  static const float huge[] = {3.4e38f, -3.4e38f, 1e20f, NAN, INFINITY, -INFINITY};
  float x[QBLOCK_MOST] = {0}, y[QBLOCK_MOST];
  u8 block[QBLOCK_MOST];
  for (int tiny = 0; tiny < 2; tiny++) {
    for (u32 i = 0; i < QBLOCK_MOST; i++) x[i] = tiny ? (i % 2 ? 1e-40f : -1e-42f) : 0;
    CHECK(qblock_encode(k, x, 1, block));
    qblock_decode(k, block, 1, y);
    for (u32 i = 0; i < QBLOCK_MOST; i++) CHECK(y[i] == 0);
  }
  for (u32 i = 0; i < QBLOCK_MOST; i++) x[i] = huge[i * 7 % 6];
  CHECK(qblock_encode(k, x, 1, block));
}

static int filter(QBlockKind k) {
  float x[QBLOCK_MOST];
  u8 block[QBLOCK_MOST];
  while (fread(x, sizeof *x, qblock_info[k].elems, stdin) == qblock_info[k].elems) {
    if (!qblock_encode(k, x, 1, block)) return 2;
    fwrite(block, qblock_info[k].bytes, 1, stdout);
  }
  return ferror(stdin) || fflush(stdout);
}

int main(int argc, char **argv) {
  QBlockKind k = argc > 1 ? qblock_from_name(argv[1], strlen(argv[1])) : BK_COUNT;
  float x[QBLOCK_MOST] = {0};
  u8 block[QBLOCK_MOST] = {0};
  if (argc > 1) return k == BK_COUNT ? 2 : filter(k);
  again(BK_Q4_0, 0.5f, -4);
  again(BK_Q4_1, 0.25f, 3);
  again(BK_Q5_0, 2, -32);
  again(BK_Q5_1, 0, 7);
  again(BK_Q8_0, 1, -127);
  again(BK_F32, 0, 0.1f);
  again(BK_BF16, 0, 1.5f);
  near_again(BK_Q2_K, 0, -0.75f);
  near_again(BK_Q3_K, 0, -4);
  near_again(BK_Q4_K, 0.5f, 0);
  near_again(BK_Q4_K, 0.25f, -3);
  near_again(BK_Q5_K, 0, 31);
  near_again(BK_Q6_K, 1, -8);
  ends(BK_Q2_K), ends(BK_Q3_K), ends(BK_Q4_K), ends(BK_Q5_K), ends(BK_Q6_K);
  CHECK(!qblock_encode(BK_IQ4_NL, x, 1, block) && !qblock_encode(BK_I8, x, 1, block));
  return check_end();
}
