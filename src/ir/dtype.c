/* dtype.c: the table of element types from dtypes.def, and properties derived from it.
 *
 * Lookups scan the table: it is short, and they run once per tensor, not per element. */
#include "ir/ir.h"

#include <string.h>

enum { /* the class column as characters */
       CLS_N = 'N',
       CLS_F = 'F',
       CLS_I = 'I',
       CLS_U = 'U',
       CLS_B = 'B',
       CLS_S = 'S',
       CLS_C = 'C'
};

const DTypeInfo dtype_info[DT_COUNT] = {
#define DT(name, cls, bits, bytes, onnx, text) [DT_##name] = {#name, CLS_##cls, bits, bytes, onnx},
#include "ir/dtypes.def"
#undef DT
};

DType dtype_from_name(const char *s, size_t n) {
  for (int d = DT_none + 1; d < DT_COUNT; d++) {
    const char *name = dtype_info[d].name;
    if (strlen(name) == n && memcmp(name, s, n) == 0) return (DType)d;
  }
  return DT_none;
}

DType dtype_from_onnx(i64 code) {
  for (int d = DT_none + 1; d < DT_COUNT; d++)
    if (dtype_info[d].onnx == code) return (DType)d;
  return DT_none;
}

DType dtype_acc(DType d) {
  return dtype_is_float(d) && d != DT_f64 ? DT_f32 : d;
}

bool dtype_int_range(DType d, i64 *lo, i64 *hi) {
  Scalar min = {.i = INT64_MIN}, max = {.i = INT64_MAX};
  bool any = d != DT_u64 && (dtype_is_int(d) || d == DT_bool);
  if (any) dtype_limits(d, &min, &max);
  *lo = min.i;
  *hi = max.i;
  return any;
}

Scalar scalar_identity(Op op, DType d) {
  Scalar lo, hi;
  dtype_limits(d, &lo, &hi);
  if (op == OP_max || op == OP_min) return op == OP_max ? lo : hi;
  return dtype_is_float(d) ? (Scalar){.f = op == OP_mul} : (Scalar){.i = op == OP_mul};
}
