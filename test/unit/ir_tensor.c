/* Tensors and types: sizes, elements of every type at odd addresses, equality, text. */
#include "check.h"
#include "ir/ir.h"

#include <string.h>

static void counts(void) {
  u64 n = 7;
  CHECK(shape_count(NULL, 0, &n) && n == 1);
  CHECK(shape_count((i64[]){2, 3, 4}, 3, &n) && n == 24);
  CHECK(shape_count((i64[]){DIM_MAX}, 1, &n) && n == (u64)DIM_MAX);
  CHECK(!shape_count((i64[]){DIM_MAX, 2}, 2, &n) && !shape_count((i64[]){-1, 2}, 2, &n));
  CHECK(shape_count((i64[]){DIM_MAX, DIM_MAX, 0}, 3, &n) && n == 0);
  CHECK(!shape_count((i64[]){0, INT64_MAX}, 2, &n));
  CHECK(!shape_count((i64[]){DIM_MAX, DIM_MAX, DIM_MAX, DIM_MAX}, 4, &n));
}

static void elements(Arena *a) {
  for (int d = DT_none + 1; d < DT_COUNT; d++) {
    if (dtype_info[d].cls == 'C') continue;
    Tensor *t = tensor_new(a, (DType)d, (i64[]){2, 3}, 2);
    CHECK(t->n == 6 && tensor_bytes(t) == 6 * dtype_bytes((DType)d));
    Scalar one = dtype_is_float((DType)d) ? (Scalar){.f = 1} : (Scalar){.i = 1};
    if (d != DT_f8e8m0) CHECK(tensor_get(t, 5).i == 0);
    tensor_set(t, 4, one);
    CHECK(memcmp(&(i64){tensor_get(t, 4).i}, &one.i, 8) == 0);
    if (d != DT_f8e8m0) CHECK(tensor_get(t, 3).i == 0 && tensor_get(t, 5).i == 0);
    u8 *odd = arena_alloc(a, tensor_bytes(t) + 1);
    memcpy(odd + 1, t->data, tensor_bytes(t));
    Tensor *w = tensor_wrap(a, (DType)d, t->dim, 2, odd + 1);
    CHECK(tensor_get(w, 4).i == one.i && tensor_equal(a->c, t, w) && tensor_equal(a->c, w, t));
    Tensor *other = tensor_wrap(a, (DType)d, (i64[]){3, 2}, 2, odd + 1);
    CHECK(!tensor_equal(a->c, t, other));
    odd[1] ^= 1;
    CHECK(!tensor_equal(a->c, t, w));
  }
  u8 bytes[2] = {0xf9, 0x83};
  CHECK(tensor_get(tensor_wrap(a, DT_i4, (i64[]){2}, 1, bytes), 0).i == -7);
  CHECK(tensor_get(tensor_wrap(a, DT_u4, (i64[]){2}, 1, bytes), 0).i == 9);
  CHECK(tensor_get(tensor_wrap(a, DT_i2, (i64[]){2}, 1, bytes), 1).i == -1);
  CHECK(tensor_get(tensor_wrap(a, DT_bool, (i64[]){2}, 1, bytes), 1).i == 1);
  CHECK(tensor_new(a, DT_f32, (i64[]){0, 4}, 2)->n == 0);
  CHECK(tensor_equal(a->c, tensor_new(a, DT_f32, (i64[]){0}, 1),
                     tensor_new(a, DT_f32, (i64[]){0}, 1)));
  CHECK(tensor_new(a, DT_i64, NULL, 0)->n == 1);
}

static bool prints(const Dims *ds, const Type *t, const char *want) {
  StrBuf out = sb_new(&dims_ctx(ds)->scratch);
  type_print(ds, t, &out);
  return strcmp(sb_cstr(&out), want) == 0;
}

static void types(Ctx *c) {
  Arena *a = &c->work;
  Dims *ds = dims_new(c);
  Dim n = dim_of_sym(ds, dim_sym(ds, SY_input, str_of(c, "n"), 1, 9));
  Type x = type_tensor(a, DT_f32, (Dim[]){2, n}, 2), s = type_tensor(a, DT_f32, NULL, 0);
  Type y = type_tensor(a, DT_f32, (Dim[]){2, 5}, 2), z = type_tensor(a, DT_f16, (Dim[]){2, 5}, 2);
  CHECK(prints(ds, &x, "f32[2,n]") && prints(ds, &s, "f32[]") && prints(ds, &z, "f16[2,5]"));
  CHECK(type_equal(&x, &x) && !type_equal(&x, &y) && !type_equal(&y, &z) && !type_equal(&x, &s));
  CHECK(type_is_static(&y) && type_is_static(&s) && !type_is_static(&x));
  CHECK(type_count(ds, &y) == 10 && type_count(ds, &s) == 1);
  CHECK(type_count(ds, &x) == dim_mul(ds, n, 2));
  Type seq = {TY_seq, DT_none, 0, NULL, &x}, opt = {TY_opt, DT_none, 0, NULL, &seq};
  Type seqy = {TY_seq, DT_none, 0, NULL, &y};
  CHECK(prints(ds, &seq, "seq(f32[2,n])") && prints(ds, &opt, "opt(seq(f32[2,n]))"));
  CHECK(type_equal(&opt, &opt) && !type_equal(&opt, &seq) && !type_equal(&seq, &seqy));
  CHECK(!type_equal(&seq, &x) && !type_is_static(&seqy));
}

static void too_big(Ctx *c, void *arg) {
  (void)arg;
  tensor_new(&c->work, DT_f32, (i64[]){DIM_MAX, 2}, 2);
}

static void all(Ctx *c, void *arg) {
  (void)arg;
  elements(&c->work);
  types(c);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  counts();
  CHECK(ctx_protect(c, all, NULL) == ERR_ok);
  CHECK(ctx_protect(c, too_big, NULL) == ERR_input);
  ctx_free(c);
  return check_end();
}
