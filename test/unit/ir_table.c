/* Tables of element types and operators: complete, names unique and found again. */
#include "check.h"
#include "ir/graph/graph.h"

#include <math.h>
#include <string.h>

static void dtypes(void) {
  for (int d = 0; d < DT_COUNT; d++) {
    const DTypeInfo *i = &dtype_info[d];
    CHECK(i->name && strchr("FIUBSCN", i->cls));
    if (d == DT_none) continue;
    CHECK(dtype_from_name(i->name, strlen(i->name)) == (DType)d);
    CHECK(dtype_from_onnx(i->onnx) == (DType)d);
    CHECK(i->bytes * 8 >= i->bits && i->bytes > 0);
  }
  CHECK(dtype_from_name("f3", 2) == DT_none && dtype_from_name("f321", 4) == DT_none);
  CHECK(dtype_from_name("", 0) == DT_none && dtype_from_name("none", 4) == DT_none);
  CHECK(dtype_from_onnx(0) == DT_none && dtype_from_onnx(-1) == DT_none);
  CHECK(dtype_from_onnx(99) == DT_none && dtype_from_onnx((i64)1 << 32 | 1) == DT_none);
  CHECK(dtype_acc(DT_f16) == DT_f32 && dtype_acc(DT_f4e2m1) == DT_f32);
  CHECK(dtype_acc(DT_f64) == DT_f64 && dtype_acc(DT_i8) == DT_i8 && dtype_acc(DT_bool) == DT_bool);
  CHECK(dtype_is_float(DT_bf16) && !dtype_is_float(DT_c64) && !dtype_is_int(DT_bool));
  CHECK(dtype_is_int(DT_u2) && !dtype_is_signed(DT_u2) && dtype_is_signed(DT_i4));
}

static void limits(void) {
  Scalar lo, hi;
  dtype_limits(DT_i64, &lo, &hi);
  CHECK(lo.i == INT64_MIN && hi.i == INT64_MAX);
  dtype_limits(DT_u64, &lo, &hi);
  CHECK(lo.i == 0 && (u64)hi.i == UINT64_MAX);
  dtype_limits(DT_i2, &lo, &hi);
  CHECK(lo.i == -2 && hi.i == 1);
  dtype_limits(DT_u32, &lo, &hi);
  CHECK(lo.i == 0 && hi.i == UINT32_MAX);
  dtype_limits(DT_bool, &lo, &hi);
  CHECK(lo.i == 0 && hi.i == 1);
  dtype_limits(DT_f16, &lo, &hi);
  CHECK(isinf(lo.f) && lo.f < 0 && isinf(hi.f));
  dtype_limits(DT_f8e5m2, &lo, &hi);
  CHECK(isinf(hi.f));
  for (int d = DT_none + 1; d < DT_COUNT; d++) { /* the ends survive a store and a load */
    u8 at[16] = {0};
    dtype_limits((DType)d, &lo, &hi);
    if (!dtype_is_float((DType)d)) continue;
    scalar_store((DType)d, at, hi);
    CHECK(scalar_load((DType)d, at).f == hi.f);
    scalar_store((DType)d, at, lo);
    CHECK(scalar_load((DType)d, at).f == lo.f);
    if (!isinf(hi.f)) CHECK(scalar_round((DType)d, 1e30) == hi.f || d == DT_f8e8m0);
  }
}

static void ops(void) {
  for (int op = 0; op < OP_COUNT; op++) {
    const OpInfo *i = &op_info[op];
    CHECK(i->name && i->text && i->attrs && i->kind < OK_COUNT);
    CHECK(op_from_name(i->name, strlen(i->name)) == (Op)op);
    CHECK(i->nin_min <= i->nin_max && i->nout >= 1);
    CHECK((op < OP_SCALARS) == (i->kind == OK_MAP) && (op < OP_SCALARS) == (i->res != OR_none));
    CHECK(op_is((Op)op, OF_FUNC) + op_is((Op)op, OF_SLOW) + op_is((Op)op, OF_CHEAP) <= 1);
    CHECK(!op_is((Op)op, OF_COMM) || i->nin_max == 2);
    CHECK(op_from_name(i->name, strlen(i->name) - 1) != (Op)op);
  }
  for (int k = 0; k < OK_COUNT; k++) CHECK(op_kind_name[k] != NULL);
  for (int k = 0; k < AT_COUNT; k++) CHECK(attr_name[k] != NULL);
  CHECK(op_from_name("", 0) == OP_COUNT && op_from_name("addx", 4) == OP_COUNT);
  CHECK(op_from_name("Add", 3) == OP_COUNT);
  CHECK(strcmp(attr_name[AT_pad_lo], "pad_lo") == 0);
}

static void classes(void) {
  CHECK(op_accepts(OP_add, DT_f8e4m3fn) && op_accepts(OP_add, DT_u2) &&
        !op_accepts(OP_add, DT_bool));
  CHECK(op_accepts(OP_exp, DT_f16) && !op_accepts(OP_exp, DT_i32));
  CHECK(op_accepts(OP_and, DT_bool) && op_accepts(OP_and, DT_i8) && !op_accepts(OP_and, DT_f32));
  CHECK(op_accepts(OP_shl, DT_u64) && !op_accepts(OP_shl, DT_bool));
  CHECK(op_accepts(OP_eq, DT_str) && op_accepts(OP_select, DT_bool) && !op_accepts(OP_eq, DT_none));
  CHECK(!op_accepts(OP_max, DT_str) && !op_accepts(OP_add, DT_c64));
}

int main(void) {
  dtypes();
  limits();
  ops();
  classes();
  return check_end();
}
