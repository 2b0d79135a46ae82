/* compare.h: the comparison of two results, for verify and for builds with --fast-math.
 */
#ifndef INGOT_DRIVER_COMPARE_H
#define INGOT_DRIVER_COMPARE_H

#include "api/api_internal.h"

void api_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol, double atol,
              IngotDiff *d);

#endif
