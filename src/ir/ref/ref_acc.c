/* ref_acc.c: accumulator types of the reference evaluator, and index iteration.
 *
 * All arithmetic of the kernels is in float, double or i64. Narrow floats accumulate in float and
 * are rounded once at the end. Integers wrap at 64 bits and then to their type, which equals
 * wrapping at every step. Operands are converted as a whole beforehand, so that inner loops are
 * plain loops over arrays. */
#include "ir/ref/ref.h"

#include <string.h>

#define T         float
#define FN(f)     f##_f32
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define ISNAN(a)  ((a) != (a))
#include "ir/ref/ref_loops.h"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "ir/ref/ref_loops.h"
#undef T
#undef FN
#undef ADD
#undef SUB
#undef MUL
#undef ISNAN
#define T         i64
#define FN(f)     f##_i64
#define ADD(a, b) ((i64)((u64)(a) + (u64)(b)))
#define SUB(a, b) ((i64)((u64)(a) - (u64)(b)))
#define MUL(a, b) ((i64)((u64)(a) * (u64)(b)))
#define ISNAN(a)  false
#include "ir/ref/ref_loops.h"

static DType acc_type(DType dt) {
  return dtype_is_float(dt) ? dtype_acc(dt) : DT_i64;
}

const Loops *acc_loops(DType dt) {
  static const Loops f32 = {sizeof(float), mac_f32, fold_f32, map_f32};
  static const Loops f64 = {sizeof(double), mac_f64, fold_f64, map_f64};
  static const Loops int64 = {sizeof(i64), mac_i64, fold_i64, map_i64};
  DType acc = acc_type(dt);
  return acc == DT_f32 ? &f32 : acc == DT_f64 ? &f64 : &int64;
}

static void put(DType acc, void *p, u64 i, Scalar x) {
  if (acc == DT_f32)
    ((float *)p)[i] = (float)x.f;
  else if (acc == DT_f64)
    ((double *)p)[i] = x.f;
  else
    ((i64 *)p)[i] = x.i;
}

static Scalar get(DType acc, const void *p, u64 i) {
  if (acc == DT_f32) return (Scalar){.f = ((const float *)p)[i]};
  if (acc == DT_f64) return (Scalar){.f = ((const double *)p)[i]};
  return (Scalar){.i = ((const i64 *)p)[i]};
}

const void *acc_read(Ref *r, const Tensor *t, bool order) {
  DType acc = acc_type(t->dt);
  size_t size = acc_loops(t->dt)->size;
  if (t->dt == acc && (uintptr_t)t->data % size == 0) return t->data;
  void *p = arena_array(r->tmp, t->n, size);
  for (u64 i = 0; i < t->n; i++) put(acc, p, i, tensor_get(t, i));
  if (order && t->dt == DT_u64)
    for (u64 i = 0; i < t->n; i++) ((i64 *)p)[i] ^= INT64_MIN;
  return p;
}

void *acc_begin(Ref *r, Tensor *t) {
  if (t->dt == acc_type(t->dt)) return ref_data(t);
  return arena_array(r->tmp, t->n, acc_loops(t->dt)->size);
}

void acc_finish(Ref *r, Tensor *t, const void *acc, bool order) {
  (void)r;
  if (acc == t->data) return;
  DType from = acc_type(t->dt);
  for (u64 i = 0; i < t->n; i++) {
    Scalar x = get(from, acc, i);
    if (from != DT_i64)
      x.f = scalar_round(t->dt, x.f);
    else if (order && t->dt == DT_u64)
      x.i ^= INT64_MIN;
    else if (t->dt != DT_bool)
      x.i = scalar_wrap(t->dt, x.i);
    tensor_set(t, i, x);
  }
}

void acc_empty(const Tensor *t, void *acc, Op op) {
  Scalar x = scalar_identity(op, t->dt);
  if (t->dt == DT_u64 && (op == OP_max || op == OP_min)) x.i ^= INT64_MIN;
  for (u64 i = 0; i < t->n; i++) put(acc_type(t->dt), acc, i, x);
}

i64 *acc_keys(Ref *r, const Tensor *t) {
  i64 *key = NEWS(r->tmp, i64, t->n);
  for (u64 i = 0; i < t->n; i++) {
    Scalar x = tensor_get(t, i);
    if (t->dt == DT_u64) {
      key[i] = x.i ^ INT64_MIN;
    } else if (!dtype_is_float(t->dt)) {
      key[i] = x.i;
    } else if (x.f != x.f) {
      key[i] = INT64_MAX;
    } else {
      /* Positive doubles are ordered like their bits, negative ones in reverse. */
      double f = x.f + 0.0;
      i64 bits;
      memcpy(&bits, &f, sizeof bits);
      key[i] = bits < 0 ? INT64_MIN - bits : bits;
    }
  }
  return key;
}

/* ---- iteration ---- */

bool nditer_start(NdIter *w) {
  for (u32 i = 0; i < w->rank; i++) {
    w->at[i] = 0;
    if (w->dim[i] == 0) return false;
  }
  return true;
}

bool nditer_next(NdIter *w) {
  for (u32 i = w->rank; i-- > 0;) {
    for (u32 k = 0; k < w->arrays; k++) w->off[k] += w->step[k][i];
    if (++w->at[i] < w->dim[i]) return true;
    for (u32 k = 0; k < w->arrays; k++) w->off[k] -= w->step[k][i] * w->dim[i];
    w->at[i] = 0;
  }
  return false;
}

/* A shape with extent 0 may have a huge product otherwise: it wraps, but is not used. */
void shape_strides(const i64 *dim, u32 rank, i64 *stride) {
  u64 n = 1;
  for (u32 i = rank; i-- > 0;) {
    stride[i] = (i64)n;
    n *= (u64)dim[i];
  }
}

i64 shape_product(const i64 *dim, u32 rank) {
  u64 n = 1;
  for (u32 i = 0; i < rank; i++) n *= (u64)dim[i];
  return (i64)n;
}
