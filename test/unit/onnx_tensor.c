/* The tensor loader: every element type in every kind of storage, and what it must refuse. */
#include "front/onnx/onnx.h"
#include "front/onnx/pb.h"
#include "io/data.h"
#include "check.h"
#include "pbuild.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], model_path[96];

typedef struct Job {
  const StrBuf *t;
  DType dt;
  u64 n;
  const double *want;
} Job;

static void load(Ctx *c, void *arg) {
  Job *j = arg;
  u8 *copy = arena_copy(&c->work, j->t->at, j->t->n);
  OnnxTensor *t = onnx_tensor_at(wire_open(c, copy, j->t->n, LOC_NONE));
  Tensor *x = onnx_tensor(c, t, model_path, LOC_NONE, &c->work);
  if (!j->want) return;
  if (!CHECK(x->dt == j->dt && x->n == j->n)) return;
  for (u64 i = 0; i < x->n; i++) {
    Scalar s = tensor_get(x, i);
    CHECK((dtype_is_float(x->dt) ? s.f : (double)s.i) == j->want[i]);
  }
}

static void check_values(const StrBuf *t, DType dt, u64 n, const double *want) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.t = t, .dt = dt, .n = n, .want = want};
  if (!CHECK(ctx_protect(c, load, &j) == ERR_ok)) fprintf(stderr, "  %s\n", c->diags->text);
  ctx_free(c);
}

static void check_refused(const StrBuf *t, Err code, const char *expect) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.t = t};
  Err e = ctx_protect(c, load, &j);
  if (!CHECK(e == code && c->diags && strstr(c->diags->text, expect)))
    fprintf(stderr, "  expected '%s', got %d '%s'\n", expect, (int)e,
            c->diags ? c->diags->text : "no message");
  ctx_free(c);
}

/* A TensorProto with shape and type; data are appended by the caller. */
static StrBuf start(Arena *a, DType dt, i64 d0, i64 d1) {
  StrBuf t = sb_new(a);
  pb_int(&t, 1, d0);
  if (d1 >= 0) pb_int(&t, 1, d1);
  pb_int(&t, 2, dtype_info[dt].onnx);
  return t;
}

static const double small[3] = {1, 0, 1};

/* 1, 0, 1 stored by the tensor writer as raw data, then read. */
static void check_raw(Arena *a) {
  for (int d = 1; d < DT_COUNT; d++) {
    DType dt = (DType)d;
    char cls = dtype_info[dt].cls;
    if (cls == 'S' || cls == 'C') continue;
    i64 dim[1] = {3};
    Tensor *x = tensor_new(a, dt, dim, 1);
    double want[3];
    for (u64 i = 0; i < 3; i++) {
      want[i] = dt == DT_f8e8m0 ? 1 : small[i]; /* it has no zero */
      Scalar s = {.i = (i64)want[i]};
      if (cls == 'F') s.f = want[i];
      if (cls == 'I') s.i = -s.i, want[i] = -want[i];
      tensor_set(x, i, s);
    }
    StrBuf t = sb_new(a);
    data_write_pb(a->c, &t, 0, x);
    check_values(&t, dt, 3, want);
    t.n -= 1; /* the last byte is missing */
    check_refused(&t, ERR_input, "bytes");
  }
}

static void check_lists(Arena *a) {
  static const double ints[4] = {5, -6, 127, -128}, halves[2] = {1, -2}, quads[3] = {-1, 7, -8};
  StrBuf t = start(a, DT_i8, 4, -1);
  for (u32 i = 0; i < 4; i++) pb_int(&t, 5, (i64)ints[i]); /* unpacked */
  check_values(&t, DT_i8, 4, ints);
  t = start(a, DT_i64, 2, 2);
  pb_int(&t, 7, 5);
  pb_bytes(&t, 7, "\xfa\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7f", 11);
  pb_int(&t, 7, -128);
  check_values(&t, DT_i64, 4, ints);
  t = start(a, DT_f16, 2, -1);
  pb_bytes(&t, 5, "\x80\x78\x80\x80\x03", 5); /* 0x3c00, 0xc000 as unsigned numbers */
  check_values(&t, DT_f16, 2, halves);
  t = start(a, DT_i4, 3, -1);
  pb_int(&t, 5, 0x7f);
  pb_int(&t, 5, 0x08);
  check_values(&t, DT_i4, 3, quads);
  t = start(a, DT_f32, 2, -1);
  pb_float(&t, 4, 1);
  pb_float(&t, 4, -2);
  check_values(&t, DT_f32, 2, halves);
  t = start(a, DT_f32, 2, -1);
  pb_bytes(&t, 4, "\0\0\x80\x3f\0\0\0\xc0", 8);
  check_values(&t, DT_f32, 2, halves);
  t = start(a, DT_bool, 3, -1);
  pb_bytes(&t, 5, "\x07\x00\x01", 3);
  check_values(&t, DT_bool, 3, small);
  t = start(a, DT_bool, 3, -1);
  pb_bytes(&t, 9, "\x07\x00\x01", 3);
  check_values(&t, DT_bool, 3, small);
  t = start(a, DT_f32, 0, 5);
  check_values(&t, DT_f32, 0, small);
  t = start(a, DT_f32, 0, 5);
  pb_bytes(&t, 4, "", 0);
  pb_bytes(&t, 9, "", 0);
  check_values(&t, DT_f32, 0, small);
}

static void check_bad(Arena *a) {
  StrBuf t = start(a, DT_f32, 2, -1);
  check_refused(&t, ERR_input, "fewer values");
  pb_bytes(&t, 9, "1234567", 7);
  check_refused(&t, ERR_input, "7 bytes of raw data, expected 8");
  pb_float(&t, 4, 1);
  check_refused(&t, ERR_input, "more than one place");
  t = start(a, DT_f32, 1, -1);
  pb_float(&t, 4, 1);
  pb_float(&t, 4, 1);
  check_refused(&t, ERR_input, "more values than the 1");
  t = start(a, DT_f32, 1, -1);
  pb_int(&t, 7, 1);
  check_refused(&t, ERR_input, "does not belong to type f32");
  t = start(a, DT_i8, 1, -1);
  pb_int(&t, 5, 256);
  check_refused(&t, ERR_input, "found 256 at element 0, expected a value of type i8");
  t = start(a, DT_u32, 1, -1);
  pb_int(&t, 11, (i64)1 << 32);
  check_refused(&t, ERR_input, "expected a value of type u32");
  t = start(a, DT_f32, -3, -1);
  check_refused(&t, ERR_input, "extent -3 in dimension 0");
  t = start(a, DT_f32, (i64)1 << 33, (i64)1 << 33);
  check_refused(&t, ERR_input, "more than 2^40 elements");
  t = start(a, DT_i64, (i64)1 << 40, -1);
  check_refused(&t, ERR_input, "fewer values");
  t = start(a, DT_str, 1, -1);
  pb_bytes(&t, 9, "x", 1);
  check_refused(&t, ERR_input, "strings cannot be raw");
  t = start(a, DT_f32, 1, -1);
  for (u32 i = 0; i < 16; i++) pb_int(&t, 1, 1);
  check_refused(&t, ERR_unsupported, "rank 17");
  t = start(a, DT_f32, 1, -1);
  pb_int(&t, 2, 99);
  check_refused(&t, ERR_unsupported, "element type 99");
  t = start(a, DT_none, 1, -1);
  check_refused(&t, ERR_input, "no element type");
  t = start(a, DT_f32, 1, -1);
  pb_bytes(&t, 3, "", 0);
  check_refused(&t, ERR_unsupported, "segments");
}

static StrBuf external(Arena *a, const char *location, const char *offset, const char *length) {
  StrBuf t = start(a, DT_i16, 3, -1);
  const char *pair[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
  for (u32 i = 0; i < 3; i++) {
    StrBuf e = sb_new(a);
    if (!pair[i][1]) continue;
    pb_text(&e, 1, pair[i][0]);
    pb_text(&e, 2, pair[i][1]);
    pb_message(&t, 13, &e);
  }
  pb_int(&t, 14, 1);
  return t;
}

static void check_external(Arena *a) {
  static const double want[3] = {0x3231, 0x3433, 0x3635};
  char file[96];
  mkdir("build", 0777);
  snprintf(folder, sizeof folder, "build/onnx_tensor.%ld", (long)getpid());
  snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
  snprintf(file, sizeof file, "%s/w.bin", folder);
  mkdir(folder, 0777);
  file_write(a->c, file, "0123456", 7);
  StrBuf t = external(a, "w.bin", "1", "6");
  check_values(&t, DT_i16, 3, want);
  t = external(a, "w.bin", "1", NULL);
  check_values(&t, DT_i16, 3, want);
  static const struct {
    const char *location, *offset, *length, *expect;
  } bad[] = {
      {"w.bin", "2", "6", "'w.bin' has 7 bytes"},
      {"w.bin", "18446744073709551615", "6", "'w.bin' has 7 bytes"},
      {"w.bin", "18446744073709551616", "6", "expected a number"},
      {"w.bin", "-1", "6", "expected a number"},
      {"w.bin", "", "6", "expected a number"},
      {"w.bin", "0", "4", "4 bytes of external data, expected 6"},
      {"../w.bin", "0", "6", "refused"},
      {"/etc/passwd", "0", "6", "refused"},
      {"none.bin", "0", "6", "none.bin"},
      {NULL, "0", "6", "have no location"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    t = external(a, bad[i].location, bad[i].offset, bad[i].length);
    check_refused(&t, ERR_input, bad[i].expect);
  }
  unlink(file);
  rmdir(folder);
}

/* ---- sparse ---- */

typedef struct Sparse {
  const i64 *index;
  u32 n, per; /* per: numbers in one index */
  i64 d0, d1;
} Sparse;

static void load_sparse(Ctx *c, void *arg) {
  const Sparse *s = arg;
  Arena *a = &c->work;
  StrBuf t = sb_new(a), val = start(a, DT_i32, s->n, -1),
         idx = start(a, DT_i64, s->n, s->per > 1 ? (i64)s->per : -1);
  u64 spent = 0;
  for (u32 i = 0; i < s->n; i++) pb_int(&val, 5, 10 + i);
  for (u32 i = 0; i < s->n * s->per; i++) pb_int(&idx, 7, s->index[i]);
  pb_message(&t, 1, &val);
  pb_message(&t, 2, &idx);
  pb_int(&t, 3, s->d0);
  pb_int(&t, 3, s->d1);
  OnnxSparse *x = onnx_sparse_at(wire_open(c, (const u8 *)t.at, t.n, LOC_NONE), &spent);
  Tensor *d = onnx_sparse(c, x, NULL, LOC_NONE, a);
  i64 sum = 0;
  for (u64 i = 0; i < d->n; i++) sum += tensor_get(d, i).i * (i64)(i + 1);
  CHECK(d->n == 6 && sum == 10 * 2 + 11 * 6);
}

static Err sparse(const i64 *index, u32 n, u32 per, i64 d0, i64 d1) {
  Ctx *c = ctx_new(NULL, NULL);
  Sparse s = {index, n, per, d0, d1};
  Err e = ctx_protect(c, load_sparse, &s);
  ctx_free(c);
  return e;
}

static void check_sparse(void) {
  CHECK(sparse((i64[]){1, 5}, 2, 1, 2, 3) == ERR_ok);
  CHECK(sparse((i64[]){0, 1, 1, 2}, 2, 2, 2, 3) == ERR_ok);
  CHECK(sparse((i64[]){1, 6}, 2, 1, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){-1, 5}, 2, 1, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){5, 1}, 2, 1, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){5, 5}, 2, 1, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){0, 3, 1, 2}, 2, 2, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){0, 0, 0, 1, 1, 1}, 2, 3, 2, 3) == ERR_input);
  CHECK(sparse((i64[]){0, 1}, 2, 1, 1 << 20, 1 << 12) == ERR_unsupported);
  CHECK(sparse((i64[]){(i64)1 << 39, 1, 1, 1}, 2, 2, (i64)1 << 40, 0) == ERR_input);
}

static void build(Ctx *c, void *arg) {
  (void)arg;
  check_raw(&c->work);
  check_lists(&c->work);
  check_bad(&c->work);
  check_external(&c->work);
  check_sparse();
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, build, NULL) == ERR_ok);
  ctx_free(c);
  return check_end();
}
