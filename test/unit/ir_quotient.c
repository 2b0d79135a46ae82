/* ir_quotient.c: the products that stand for a division round to the same whole numbers: around
 * every change of these, far beyond, and for scales as quantizers make them. */
#include "check.h"
#include "ir/prog/prog.h"

#include <math.h>
#include <string.h>

static u32 state = 1;

static u32 draw(void) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

static float bound(float x, i64 least, i64 most) {
  x = rintf(x);
  return x < (float)least ? (float)least : x > (float)most ? (float)most : x;
}

static bool is_right(float by, const ReciprocalFma *q, float x, i64 least, i64 most) {
  float y = q->low ? fmaf(x, q->high, x * q->low) : x * q->high;
  return bound(x / by, least, most) == bound(y, least, most);
}

static u32 found(float by, i64 least, i64 most) {
  ReciprocalFma q;
  if (!quotient_find(by, least, most, &q)) return 0;
  static const float far[] = {0, -0.0f, 1e-40f, -1e-40f, 1e30f, -1e30f, 3e38f, -3e38f};
  for (u32 i = 0; i < sizeof far / sizeof *far; i++) CHECK(is_right(by, &q, far[i], least, most));
  CHECK(is_right(by, &q, INFINITY, least, most) && is_right(by, &q, -INFINITY, least, most));
  for (i64 k = least - 2; k < most + 2; k++) {
    float x = ((float)k + 0.5f) * by;
    for (u32 i = 0; i < 20; i++) x = nextafterf(x, -INFINITY);
    for (u32 i = 0; i < 40; i++) {
      CHECK(is_right(by, &q, x, least, most));
      x = nextafterf(x, INFINITY);
    }
  }
  for (u32 i = 0; i < 1000; i++) {
    float x = (float)(i32)draw() * 0x1p-31f * 300 * by;
    CHECK(is_right(by, &q, x, least, most));
  }
  return 1;
}

int main(void) {
  ReciprocalFma q;
  u32 n = 0;
  CHECK(found(1, 0, 255) && found(0.5f, -128, 127) && found(0x1p-20f, -10, 245));
  CHECK(quotient_find(0.25f, 0, 255, &q) && q.high == 4 && q.low == 0);
  CHECK(!quotient_find(0, 0, 255, &q) && !quotient_find(-1, 0, 255, &q));
  CHECK(!quotient_find(INFINITY, 0, 255, &q) && !quotient_find(NAN, 0, 255, &q));
  CHECK(!quotient_find(1e-40f, 0, 255, &q));
  for (u32 i = 0; i < 500; i++) {
    u32 bits = draw(), k = draw() % 256;
    float by;
    bits = (bits & 0x7fffff) | (100 + bits % 60) << 23;
    memcpy(&by, &bits, sizeof by);
    n += found(by, -(i64)k, 255 - (i64)k);
  }
  CHECK(n > 490); /* nearly all scales have such products */
  return check_end();
}
