/* prog_quotient.c: division by a constant, when the quotient is rounded to a byte.
 *
 * In: a divisor, and the range of integers that quotients are rounded to. Out: two factors such
 * that fma(x, high, x * low) rounds to the same integer as x / by for every x; false if there are
 * none. Divisions are many times slower than products.
 *
 * high + low is 1 / by with twice the precision of a float. The result may still differ from the
 * quotient in the last bit, which matters only where the integer changes. Both are monotonic in x,
 * so it suffices to check the floats around these points. low is not negative, so that infinite x
 * do not give inf - inf. */
#include <math.h>
#include "ir/prog/prog.h"

enum { NEAR = 3 };

/* Do both step from k to k + 1 at the same float? */
static bool changes_alike(float by, const ReciprocalFma *q, i64 k) {
  float x = (float)(((double)k + 0.5) * (double)by);
  for (u32 i = 0; i < NEAR; i++) x = nextafterf(x, -INFINITY);
  for (u32 i = 0; i <= 2 * NEAR; i++) {
    float r = rintf(x / by), mine = rintf(q->low ? fmaf(x, q->high, x * q->low) : x * q->high);
    if (r != mine || (!i && r != (float)k) || (i == 2 * NEAR && r != (float)(k + 1))) return false;
    x = nextafterf(x, INFINITY);
  }
  return true;
}

bool quotient_find(float by, i64 min, i64 max, ReciprocalFma *q) {
  if (!(by > 0x1p-90f && by < 0x1p90f)) return false;
  double one = 1 / (double)by;
  q->high = (float)one;
  if ((double)q->high > one) q->high = nextafterf(q->high, 0);
  q->low = (float)(one - (double)q->high);
  for (i64 k = min; k < max; k++)
    if (!changes_alike(by, q, k)) return false;
  return true;
}
