/* prog_quotient.c: quotients by a number that only have to round to the right byte.
 *
 * In: a divisor, and which whole numbers its quotients are rounded to. Out: two factors, such that
 * fma(x, high, x * low) rounds to the same whole number as x / by for every x; none where that is
 * not so. Divisions take a machine many times as long as products.
 *
 * high + low is 1 / by to twice the digits of a float. The sum may still differ from the quotient
 * in its last bit, which matters only where the whole number changes: both are monotone in x, so it
 * is enough to look at the floats around each of these places. low is not negative, so that
 * infinite x have no difference of infinities.
 */
#include <math.h>
#include "ir/prog.h"

enum { NEAR = 3 };

/* Do both change from k to k + 1 at the same float? */
static bool changes_alike(float by, const Quotient *q, i64 k) {
  float x = (float)(((double)k + 0.5) * (double)by);
  for (u32 i = 0; i < NEAR; i++) x = nextafterf(x, -INFINITY);
  for (u32 i = 0; i <= 2 * NEAR; i++) {
    float r = rintf(x / by), mine = rintf(q->low ? fmaf(x, q->high, x * q->low) : x * q->high);
    if (r != mine || (!i && r != (float)k) || (i == 2 * NEAR && r != (float)(k + 1))) return false;
    x = nextafterf(x, INFINITY);
  }
  return true;
}

bool quotient_find(float by, i64 least, i64 most, Quotient *q) {
  if (!(by > 0x1p-90f && by < 0x1p90f)) return false;
  double one = 1 / (double)by;
  q->high = (float)one;
  if ((double)q->high > one) q->high = nextafterf(q->high, 0);
  q->low = (float)(one - (double)q->high);
  for (i64 k = least; k < most; k++)
    if (!changes_alike(by, q, k)) return false;
  return true;
}
