/* npy, npz and pb files: round trips of every element type, hand-made good and bad files, and,
 * where numpy is installed (build/venv), files that numpy and onnx wrote and read themselves: see
 * onnx_data.py. */
#include "front/onnx/pb.h"
#include "io/data.h"
#include "check.h"
#include "pbuild.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Job {
  const void *at;
  size_t n;
  int kind; /* 0 npy, 1 npz, 2 pb sequence, 3 pb optional */
} Job;

static void read_one(Ctx *c, void *arg) {
  const Job *j = arg;
  const u8 *copy = arena_copy(&c->work, j->at, j->n);
  DeclType type = {.kind = j->kind == 2 ? OT_seq : OT_opt};
  if (j->kind == 0)
    data_read_npy(c, copy, j->n, LOC_NONE, &c->work);
  else if (j->kind == 1)
    data_read_npz(c, copy, j->n, LOC_NONE, &c->work);
  else
    data_read_pb(c, copy, j->n, &type, NULL, LOC_NONE, &c->work);
}

/* The code must come out, and the text occur in the message. */
static void expect(int kind, const void *at, size_t n, Err code, const char *text) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {at, n, kind};
  Err e = ctx_protect(c, read_one, &j);
  const char *got = c->diags ? c->diags->text : "no message";
  if (!CHECK(e == code && (!text || strstr(got, text))))
    fprintf(stderr, "  expected %d '%s', got %d '%s'\n", (int)code, text ? text : "", (int)e, got);
  ctx_free(c);
}

/* An npy file with that header text and n bytes of data. */
static void expect_npy(const char *head, size_t n, Err code, const char *text) {
  u8 file[512] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (u8)strlen(head), 0};
  memcpy(file + 10, head, strlen(head));
  expect(0, file, 10 + strlen(head) + n, code, text);
}

#define HEAD(d, o, s) "{'descr': '" d "', 'fortran_order': " o ", 'shape': " s ", }"

static void check_headers(void) {
  expect_npy(HEAD("<f4", "False", "(2, 3)"), 24, ERR_ok, NULL);
  expect_npy("{\"shape\":(2L,),\"descr\":\"|u1\",\"fortran_order\":True}  \n", 2, ERR_ok, NULL);
  expect_npy(HEAD("<f4", "False", "()"), 4, ERR_ok, NULL);
  expect_npy(HEAD("<f4", "False", "(0,)"), 0, ERR_ok, NULL);
  expect_npy(HEAD("<U0", "False", "(9,)"), 0, ERR_ok, NULL);
  expect_npy(HEAD("<U0", "False", "(99999,)"), 0, ERR_unsupported, "width 0");
  expect_npy(HEAD("<f4", "False", "(2, 3)"), 23, ERR_input, "23 bytes of data, expected 6");
  expect_npy(HEAD("<f4", "False", "(2, 3)"), 25, ERR_input, "25 bytes of data");
  expect_npy(HEAD("<V2", "False", "(2,)"), 4, ERR_unsupported, "does not say what it holds");
  expect_npy(HEAD("|O8", "False", "(2,)"), 16, ERR_unsupported, "Python objects");
  expect_npy("{'descr': [('a', '<f4')], ", 0, ERR_unsupported, "structured");
  expect_npy(HEAD("<f3", "False", "(2,)"), 6, ERR_unsupported, "kind 'f' of 3 bytes");
  expect_npy(HEAD("<f4x", "False", "(2,)"), 8, ERR_input, "expected a type");
  expect_npy(HEAD("<f4", "Maybe", "(2,)"), 8, ERR_input, "expected True or False");
  expect_npy(HEAD("<f4", "False", "(2;"), 8, ERR_input, "expected ',' or ')'");
  expect_npy(HEAD("<f4", "False", "(-2,)"), 8, ERR_input, "expected a number");
  expect_npy(HEAD("<f4", "False", "(99999999999999999999,)"), 8, ERR_input,
             "expected a number below 2^64");
  expect_npy(HEAD("<f4", "False", "(1099511627776, 1099511627776)"), 8, ERR_input, "2^40");
  expect_npy(HEAD("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, ERR_unsupported,
             "rank");
  expect_npy("{'descr': '<f4', 'descr': '<f4'}", 0, ERR_input, "repeated key");
  expect_npy("{'descr': '<f4'}", 0, ERR_input, "is missing");
  expect_npy("{'descr': '<f4", 0, ERR_input, "string does not end");
  expect_npy(HEAD("<f4", "False", "(1,)") "x", 4, ERR_input, "after the dictionary");
  expect(0, "\x93NUMPY\x01\x00\xff\xff", 10, ERR_input, "cut off");
  expect(0, "\x93NUMPY\x02\x00\xff", 9, ERR_input, "not an npy file");
  expect(0, "\x93NUMPY\x04\x00\xff\xff", 10, ERR_unsupported, "version 4.0");
}

/* Raw deflate streams made with zlib: "hello hello hello hello\n" with fixed codes; a stored block.
 */
static void check_inflate(void) {
  static const u8 fixed[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9, 0x00};
  static const u8 stored[] = {0x01, 0x03, 0x00, 0xfc, 0xff, 'a', 'b', 'c'};
  u8 out[64];
  CHECK(!inflate(fixed, sizeof fixed, out, 24) &&
        memcmp(out, "hello hello hello hello\n", 24) == 0);
  CHECK(!inflate(stored, sizeof stored, out, 3) && memcmp(out, "abc", 3) == 0);
  for (size_t n = 0; n < sizeof fixed; n++) CHECK(inflate(fixed, n, out, 24));
  for (size_t n = 0; n < sizeof stored; n++) CHECK(inflate(stored, n, out, 3));
  CHECK(inflate(fixed, sizeof fixed, out, 23) && inflate(fixed, sizeof fixed, out, 25));
  CHECK(strstr(inflate((const u8 *)"\x07", 1, out, 3), "block type"));
  CHECK(strstr(inflate((const u8 *)"\x03\x00\x00", 3, out, 0), "after the last block"));
  CHECK(strstr(inflate((const u8 *)"\x01\x03\x00\xfd\xff"
                                   "abc",
                       8, out, 3),
               "damaged length"));
  CHECK(strstr(inflate((const u8 *)"\x03\x02", 2, out, 9), "before the start"));
}

static void fill(Ctx *c, Tensor *t) {
  u8 *p = (u8 *)(uintptr_t)t->data;
  for (u64 i = 0; i < tensor_bytes(t); i++) p[i] = (u8)(i * 29 + 1);
  for (u64 i = 0; i < t->n; i++) {
    Str s = str_fmt(c, "s%llu", (unsigned long long)(i * i));
    if (t->dt == DT_bool)
      p[i] &= 1;
    else if (t->dt == DT_str)
      memcpy(p + 4 * i, &s, 4);
    else if (dtype_info[t->dt].bits < 8)
      tensor_set(t, i, (Scalar){.i = 0});
    if (t->dt == DT_i4) p[i] = (u8)(i % 2 ? 0xf9 : 5);
    if (t->dt == DT_f4e2m1 || t->dt == DT_u4) p[i] = (u8)(15 - i);
    if (t->dt == DT_i2) p[i] = (u8)(i % 2 ? 0xfe : 1);
    if (t->dt == DT_u2) p[i] = (u8)(i % 4);
  }
}

static void check_round_trip(Ctx *c) {
  Arena *a = &c->work;
  i64 dim[2] = {3, 5};
  Str name[DT_COUNT];
  Tensor *t[DT_COUNT];
  u32 n = 0;
  for (int d = 1; d < DT_COUNT; d++) {
    Tensor *x = tensor_new(a, (DType)d, dim, 2);
    fill(c, x);
    StrBuf npy = sb_new(a), pb = sb_new(a);
    data_write_npy(c, &npy, x);
    data_write_pb(c, &pb, str_of(c, "x"), x);
    if (!CHECK(tensor_equal(c, x, data_read_npy_as(c, (u8 *)npy.at, npy.n, x->dt, LOC_NONE, a))))
      fprintf(stderr, "  npy %s\n", dtype_info[d].name);
    if (!CHECK(tensor_equal(c, x, data_read_pb(c, (u8 *)pb.at, pb.n, NULL, NULL, LOC_NONE, a)->t)))
      fprintf(stderr, "  pb %s\n", dtype_info[d].name);
    if (strchr("FIU", dtype_info[d].cls) && (dtype_bytes(x->dt) == 1 || d == DT_bf16) &&
        d != DT_i8 && d != DT_u8)
      continue; /* numpy has no name for it */
    name[n] = str_of(c, dtype_info[d].name);
    t[n++] = x;
  }
  StrBuf npz = sb_new(a);
  data_write_npz(c, &npz, name, t, n);
  NamedTensors v = data_read_npz(c, (u8 *)npz.at, npz.n, LOC_NONE, a);
  CHECK(v.n == n);
  for (u32 i = 0; i < v.n; i++) CHECK(v.at[i].name == name[i] && tensor_equal(c, v.at[i].t, t[i]));
  /* Damage: every byte of a small archive changed, every cut. Names and padding may change
   * unnoticed. */
  StrBuf one = sb_new(a);
  data_write_npz(c, &one, name, t, 1);
  for (size_t i = 0; i < one.n; i++) {
    one.at[i] ^= 0x40;
    Ctx *k = ctx_new(NULL, NULL);
    Job j = {one.at, one.n, 1};
    Err e = ctx_protect(k, read_one, &j);
    CHECK(e == ERR_ok || e == ERR_input || e == ERR_unsupported);
    ctx_free(k);
    one.at[i] ^= 0x40;
  }
  for (size_t cut = 0; cut < one.n; cut += 3) expect(1, one.at, cut, ERR_input, NULL);
  Str twice[2] = {name[0], name[0]};
  one.n = 0;
  data_write_npz(c, &one, twice, t, 2);
  expect(1, one.at, one.n, ERR_input, "two arrays are called");
}

static void check_sequences(Ctx *c) {
  Arena *a = &c->work;
  i64 dim[1] = {2};
  StrBuf pb = sb_new(a), seq = sb_new(a), opt = sb_new(a), bad = sb_new(a), none = sb_new(a),
         map = sb_new(a);
  data_write_pb(c, &pb, 0, tensor_new(a, DT_f32, dim, 1));
  pb_int(&seq, 2, 1);
  pb_message(&seq, 3, &pb);
  pb_message(&seq, 3, &pb);
  pb_int(&opt, 2, 3);
  pb_message(&opt, 5, &seq);
  DeclType ot = {.kind = OT_opt}, st = {.kind = OT_seq};
  PbValue *d = data_read_pb(c, (u8 *)opt.at, opt.n, &ot, NULL, LOC_NONE, a);
  CHECK(d->kind == TY_opt && d->n == 1 && d->elem[0].kind == TY_seq && d->elem[0].n == 2);
  CHECK(d->elem[0].elem[1].kind == TY_tensor && d->elem[0].elem[1].t->n == 2);
  pb_int(&none, 2, 0);
  d = data_read_pb(c, (u8 *)none.at, none.n, &st, NULL, LOC_NONE, a);
  CHECK(d->kind == TY_seq && d->n == 0);
  pb_int(&bad, 2, 1);
  pb_message(&bad, 5, &seq);
  expect(2, bad.at, bad.n, ERR_input, "does not have the declared type");
  bad.n = 0;
  pb_int(&map, 2, 7);
  pb_int(&map, 3, 5);
  pb_message(&map, 5, &seq);
  pb_message(&bad, 6, &map);
  expect(3, bad.at, bad.n, ERR_input, "a map has more or fewer keys than values");
  pb_int(&map, 3, 9);
  bad.n = 0;
  pb_message(&bad, 6, &map);
  d = data_read_pb(c, (u8 *)bad.at, bad.n, &st, NULL, LOC_NONE, a);
  CHECK(d->n == 1 && d->elem[0].keys->n == 2 && tensor_get(d->elem[0].keys, 1).i == 9);
  CHECK(d->elem[0].n == 2 && d->elem[0].elem[1].t->n == 2);
}

/* ---- against numpy and onnx ---- */

static Tensor *read_as(Ctx *c, const char *dir, const char *name, const char *end) {
  File f = file_read(c, str_text(c, str_fmt(c, "%s/%s%s", dir, name, end)));
  if (strcmp(end, ".npy") == 0) return data_read_npy(c, f.at, f.n, LOC_NONE, &c->work);
  return data_read_pb(c, f.at, f.n, NULL, NULL, LOC_NONE, &c->work)->t;
}

static void compare(Ctx *c, void *arg) {
  const char *dir = arg;
  Arena *a = &c->work;
  File f = file_read(c, str_text(c, str_fmt(c, "%s/names.txt", dir)));
  Str name[200];
  Tensor *t[200];
  u32 n = 0;
  for (size_t i = 0, k; i < f.n && n < 200; i = k + 1, n++) {
    for (k = i; k < f.n && f.at[k] != '\n'; k++) continue;
    name[n] = str_intern(c, f.at + i, k - i);
    const char *s = str_text(c, name[n]);
    t[n] = read_as(c, dir, s, ".npy");
    if (!CHECK(tensor_equal(c, t[n], read_as(c, dir, s, ".pb")))) fprintf(stderr, "  %s\n", s);
    StrBuf npy = sb_new(a), pb = sb_new(a);
    data_write_npy(c, &npy, t[n]);
    data_write_pb(c, &pb, name[n], t[n]);
    file_write(c, str_text(c, str_fmt(c, "%s/%s.out.npy", dir, s)), npy.at, npy.n);
    file_write(c, str_text(c, str_fmt(c, "%s/%s.out.pb", dir, s)), pb.at, pb.n);
  }
  for (int packed = 0; packed < 2; packed++) {
    f = file_read(c, str_text(c, str_fmt(c, "%s/%s.npz", dir, packed ? "packed" : "all")));
    NamedTensors v = data_read_npz(c, f.at, f.n, LOC_NONE, a);
    CHECK(v.n == n && n > 40);
    for (u32 i = 0; i < v.n && i < n; i++)
      CHECK(v.at[i].name == name[i] && tensor_equal(c, v.at[i].t, t[i]));
  }
  StrBuf out = sb_new(a);
  data_write_npz(c, &out, name, t, n);
  file_write(c, str_text(c, str_fmt(c, "%s/out.npz", dir)), out.at, out.n);
}

static void check_numpy(Ctx *c) {
  char dir[64], cmd[256];
  if (access("build/venv/bin/python", X_OK) != 0) {
    fprintf(stderr, "not compared with numpy: build/venv is not there\n");
    return;
  }
  snprintf(dir, sizeof dir, "build/onnx_data.%ld", (long)getpid());
  mkdir(dir, 0777);
  snprintf(cmd, sizeof cmd, "build/venv/bin/python test/unit/onnx_data.py write %s", dir);
  CHECK(system(cmd) == 0);
  if (!CHECK(ctx_protect(c, compare, dir) == ERR_ok)) fprintf(stderr, "  %s\n", c->diags->text);
  snprintf(cmd, sizeof cmd, "build/venv/bin/python test/unit/onnx_data.py check %s", dir);
  CHECK(system(cmd) == 0);
  snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
  CHECK(system(cmd) == 0);
}

static void build(Ctx *c, void *arg) {
  (void)arg;
  check_headers();
  check_inflate();
  check_round_trip(c);
  check_sequences(c);
  check_numpy(c);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  if (!CHECK(ctx_protect(c, build, NULL) == ERR_ok)) fprintf(stderr, "  %s\n", c->diags->text);
  ctx_free(c);
  return check_end();
}
