/* dtype.c: the table of element types, made from dtypes.def, and what follows from a row of it.
 *
 * Lookups scan the table: it is short, and they run once per tensor of a model, not per element. */
#include "ir/ir.h"

#include <math.h>
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

/* Largest finite value of the floats that have no infinity; 0 for those that have. */
static double largest(DType d) {
  switch (d) {
  case DT_f8e4m3fn: return 448;
  case DT_f8e4m3fnuz: return 240;
  case DT_f8e5m2fnuz: return 57344;
  case DT_f8e8m0: return 0x1p127;
  case DT_f4e2m1: return 6;
  default: return 0;
  }
}

void dtype_limits(DType d, Scalar *lo, Scalar *hi) {
  u32 bits = dtype_info[d].bits;
  *lo = *hi = (Scalar){.i = 0};
  switch (dtype_info[d].cls) {
  case 'F':
    hi->f = largest(d) != 0 ? largest(d) : INFINITY;
    lo->f = d == DT_f8e8m0 ? 0x1p-127 : -hi->f;
    break;
  case 'I':
    hi->i = (i64)(((u64)1 << (bits - 1)) - 1);
    lo->i = -hi->i - 1;
    break;
  case 'U': hi->i = bits == 64 ? -1 : (i64)(((u64)1 << bits) - 1); break;
  case 'B': hi->i = 1; break;
  default: break;
  }
}
