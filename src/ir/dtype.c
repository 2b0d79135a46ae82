/* dtype.c: the table of element types, made from dtypes.def, and what follows from a row of it.
 *
 * Lookups scan the table: it is short, and they run once per tensor of a model, not per element. */
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
