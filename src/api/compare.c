/* compare.c: the outputs of a run against those stored beside a model.
 *
 * In: a directory with output_0.pb, output_1.pb ... Out: per output the largest differences and
 * whether it passes. The rule is that of the official ONNX tests: type and shape equal, and for
 * every element |a - b| <= atol + rtol * |b|, NaN equal to NaN, infinities equal only to
 * themselves.
 */
#include "api/own.h"

#include <math.h>
#include <string.h>

/* Position of a float on the line of all floats of its type: neighbours differ by 1. */
static i64 ordinal(DType dt, const void *p) {
  u64 bits = 0;
  u32 width = dtype_info[dt].bits;
  memcpy(&bits, p,
         dtype_bytes(dt)); /* little-endian hosts; on others only the ULP column suffers */
  u64 sign = (u64)1 << (width - 1);
  return bits & sign ? -(i64)(bits & (sign - 1)) : (i64)bits;
}

static u64 ulp_distance(DType dt, const void *a, const void *b) {
  i64 x = ordinal(dt, a), y = ordinal(dt, b);
  return x > y ? (u64)x - (u64)y : (u64)y - (u64)x;
}

static void compare_floats(const Tensor *a, const Tensor *b, double rtol, double atol,
                           IngotDiff *d) {
  u32 size = dtype_bytes(a->dt);
  for (u64 i = 0; i < a->n; i++) {
    double x = tensor_get(a, i).f, y = tensor_get(b, i).f;
    if (isnan(x) && isnan(y)) continue;
    if (x == y) continue;
    double abs = fabs(x - y);
    if (isnan(abs) || isinf(abs)) {
      d->ok = 0;
      d->max_abs = INFINITY;
      d->max_rel = INFINITY;
      d->max_ulp = UINT64_MAX;
      continue;
    }
    u64 ulp = ulp_distance(a->dt, (const u8 *)a->data + i * size, (const u8 *)b->data + i * size);
    if (abs > atol + rtol * fabs(y)) d->ok = 0;
    if (abs > d->max_abs) d->max_abs = abs;
    if (y != 0 && abs / fabs(y) > d->max_rel) d->max_rel = abs / fabs(y);
    if (ulp > d->max_ulp) d->max_ulp = ulp;
  }
}

static void compare_ints(const Tensor *a, const Tensor *b, double rtol, double atol, IngotDiff *d) {
  for (u64 i = 0; i < a->n; i++) {
    i64 x = tensor_get(a, i).i, y = tensor_get(b, i).i;
    if (x == y) continue;
    double abs = fabs((double)x - (double)y);
    bool exact = a->dt == DT_str;
    if (exact || abs > atol + rtol * fabs((double)y)) d->ok = 0;
    if (abs > d->max_abs) d->max_abs = abs;
    if (y != 0 && abs / fabs((double)y) > d->max_rel) d->max_rel = abs / fabs((double)y);
    if ((u64)abs > d->max_ulp) d->max_ulp = (u64)abs;
  }
}

static double cosine(const Tensor *a, const Tensor *b) {
  double xx = 0, yy = 0, xy = 0;
  for (u64 i = 0; i < a->n; i++) {
    Scalar s = tensor_get(a, i), t = tensor_get(b, i);
    double x = dtype_is_float(a->dt) ? s.f : (double)s.i,
           y = dtype_is_float(a->dt) ? t.f : (double)t.i;
    if (!isfinite(x) || !isfinite(y)) continue;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  return xx == 0 && yy == 0 ? 1 : xx == 0 || yy == 0 ? 0 : xy / sqrt(xx) / sqrt(yy);
}

static const char *shape_text(Ctx *c, const Tensor *t) {
  Text s = text_new(&c->keep);
  text_fmt(&s, "%s[", dtype_info[t->dt].name);
  for (u32 i = 0; i < t->rank; i++) text_fmt(&s, "%s%lld", i ? "," : "", (long long)t->dim[i]);
  text_puts(&s, "]");
  return text_cstr(&s);
}

static void compare(Ctx *c, const Tensor *have, const Tensor *want, double rtol, double atol,
                    IngotDiff *d) {
  bool same = have->dt == want->dt && have->rank == want->rank;
  for (u32 i = 0; same && i < have->rank; i++) same = have->dim[i] == want->dim[i];
  if (!same) {
    Text s = text_new(&c->keep);
    text_fmt(&s, "%s, expected %s", shape_text(c, have), shape_text(c, want));
    d->why = text_cstr(&s);
    d->ok = 0;
    return;
  }
  if (dtype_is_float(have->dt))
    compare_floats(have, want, rtol, atol, d);
  else
    compare_ints(have, want, rtol, atol, d);
  d->cosine = cosine(have, want);
}

typedef struct CompareArg {
  Ingot *m;
  const char *dir;
  double rtol, atol;
  IngotDiff *diff;
  u32 max, n;
  bool ok;
} CompareArg;

static void do_compare(Ctx *c, void *arg) {
  CompareArg *a = arg;
  Ingot *m = a->m;
  Strs files = data_list(c, a->dir, "output", &c->keep);
  Loc loc = LOC_NONE;
  loc.file = str_of(c, a->dir);
  if (files.n != m->nout)
    fail(c, ERR_input, loc, "holds %u outputs, the model has %u", files.n, m->nout);
  a->ok = true;
  for (u32 i = 0; i < m->nout; i++) {
    const char *path = str_text(c, files.at[i]);
    loc.file = files.at[i];
    File f = file_read(c, path);
    Datum *d = data_read_pb(c, f.at, f.n, NULL, NULL, loc, &c->keep);
    IngotDiff diff = {.name = str_text(c, api_result_name(m, i)), .ok = 1, .why = ""};
    compare(c, m->out[i], d->t, a->rtol, a->atol, &diff);
    a->ok = a->ok && diff.ok;
    if (i < a->max) a->diff[i] = diff;
  }
  a->n = m->nout;
}

IngotStatus ingot_compare(Ingot *m, const char *dir, double rtol, double atol, IngotDiff *diff,
                          uint32_t max, uint32_t *n) {
  CompareArg a = {m, dir, rtol, atol, diff, max, 0, false};
  IngotStatus s = api_call(m, do_compare, &a);
  *n = a.n < max ? a.n : max;
  return s ? s : a.ok ? INGOT_OK : INGOT_MISMATCH;
}

typedef struct DiffArg {
  const IngotTensor *have, *want;
  double rtol, atol;
  IngotDiff *diff;
} DiffArg;

static Tensor as_tensor(Ctx *c, const IngotTensor *t) {
  Tensor x = {.dt = dtype_from_name(t->dtype, strlen(t->dtype)), .rank = t->rank, .data = t->data};
  if (!x.dt || !t->data || !shape_count(t->dim, t->rank, &x.n) ||
      x.n * dtype_bytes(x.dt) != t->bytes)
    fail(c, ERR_usage, LOC_NONE, "'%s' is not an array", t->name);
  x.dim = arena_copy(&c->keep, t->dim, t->rank * sizeof *t->dim);
  return x;
}

static void do_diff(Ctx *c, void *arg) {
  DiffArg *a = arg;
  Tensor x = as_tensor(c, a->have), y = as_tensor(c, a->want);
  *a->diff = (IngotDiff){.name = str_text(c, str_of(c, a->want->name)), .ok = 1, .why = ""};
  compare(c, &x, &y, a->rtol, a->atol, a->diff);
}

IngotStatus ingot_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol,
                       double atol, IngotDiff *diff) {
  return api_call(m, do_diff, &(DiffArg){have, want, rtol, atol, diff});
}
