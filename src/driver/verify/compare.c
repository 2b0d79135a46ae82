/* compare.c: compares outputs with stored ones, or two arrays.
 *
 * In: a directory with output_0.pb, output_1.pb, ..., or two arrays. Out: the largest differences
 * and whether they pass. The rule is that of the official ONNX tests: equal type and shape, and |a
 * - b| <= atol + rtol * |b| for every element; NaN equals NaN, infinities equal only themselves.
 * Default tolerances depend on the type; atol is scaled by the largest |b| without outliers.
 * Reason: sums that cancel leave a rounding error of the size of their terms, but a mask of -3e38
 * must not let everything pass.
 */
#include "driver/verify/compare.h"
#include "front/onnx/pb.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Position of a float among all floats of its type: neighbors differ by 1. */
static i64 ordinal(DType dt, const void *p) {
  u64 bits = 0;
  u32 width = dtype_info[dt].bits;
  memcpy(&bits, p,
         dtype_bytes(dt)); /* little-endian hosts; on others only the ULP column is wrong */
  u64 sign = (u64)1 << (width - 1);
  return bits & sign ? -(i64)(bits & (sign - 1)) : (i64)bits;
}

static u64 ulp_distance(DType dt, const void *a, const void *b) {
  i64 x = ordinal(dt, a), y = ordinal(dt, b);
  return x > y ? (u64)x - (u64)y : (u64)y - (u64)x;
}

/* Returns the number of elements that are NaN on both sides: their agreement proves nothing. */
static u64 compare_floats(const Tensor *a, const Tensor *b, double rtol, double atol,
                          IngotDiff *d) {
  u64 nans = 0;
  u32 size = dtype_bytes(a->dt);
  for (u64 i = 0; i < a->n; i++) {
    double x = tensor_get(a, i).f, y = tensor_get(b, i).f;
    nans += isnan(x) && isnan(y);
    if (x == y || (isnan(x) && isnan(y))) continue;
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
  return nans;
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

static double magnitude(const Tensor *t, u64 i) {
  Scalar s = tensor_get(t, i);
  return fabs(dtype_is_float(t->dt) ? s.f : (double)s.i);
}

/* A power of 2 that scales the largest finite element near 1, so that squares neither overflow nor
 * underflow. */
static int scale_of(const Tensor *t) {
  double max = 0;
  int e = 0;
  for (u64 i = 0; i < t->n; i++) {
    double x = magnitude(t, i);
    if (isfinite(x) && x > max) max = x;
  }
  if (max > 0) frexp(max, &e);
  return -e;
}

/* NaN: there are elements, but none is finite in both. */
static double cosine(const Tensor *a, const Tensor *b) {
  double xx = 0, yy = 0, xy = 0;
  u64 finite = 0;
  int sa = scale_of(a), sb = scale_of(b);
  for (u64 i = 0; i < a->n; i++) {
    Scalar s = tensor_get(a, i), t = tensor_get(b, i);
    double x = dtype_is_float(a->dt) ? s.f : (double)s.i,
           y = dtype_is_float(a->dt) ? t.f : (double)t.i;
    if (!isfinite(x) || !isfinite(y)) continue;
    finite++;
    x = ldexp(x, sa);
    y = ldexp(y, sb);
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  if (a->n && !finite) return NAN;
  return xx == 0 && yy == 0 ? 1 : xx == 0 || yy == 0 ? 0 : xy / sqrt(xx) / sqrt(yy);
}

static const char *tensor_text(Ctx *c, const Tensor *t) {
  return shape_text(c, dtype_info[t->dt].name, t->dim, t->rank);
}

/* ---- tolerances ---- */

/* Rounding error of some hundred operations; integers are exact. */
static double rtol_of(DType dt) {
  if (!dtype_is_float(dt)) return 0;
  switch (dt) {
  case DT_f64: return 1e-9;
  case DT_f32: return 1e-4;
  case DT_f16: return 1e-2;
  case DT_bf16: return 5e-2;
  default: return 0.25; /* 8 bits and less: one step */
  }
}

/* Tolerance of models that quantize activations: one value that rounds the other way, by about
 * 1/128, changes all later values. */
#define ROUNDED 0x1p-5

/* Lower quartile of the nonzero finite magnitudes as a power of 2, from a histogram of exponents;
 * 0: none. */
static double lower_quarter(const Tensor *t) {
  enum { LEAST = DBL_MIN_EXP - DBL_MANT_DIG, SPAN = DBL_MAX_EXP - LEAST + 1 };
  u64 count[SPAN] = {0}, all = 0, below = 0;
  for (u64 i = 0; i < t->n; i++) {
    double x = magnitude(t, i);
    int e;
    if (x == 0 || !isfinite(x)) continue;
    frexp(x, &e);
    count[e - LEAST]++;
    all++;
  }
  if (!all) return 0;
  int at = 0;
  while ((below += count[at]) < (all + 3) / 4) at++;
  return ldexp(1, at + LEAST);
}

/* Magnitudes up to this are not outliers, even if most elements are tiny probabilities. */
#define ORDINARY 4096

/* Largest finite magnitude without outliers. Outliers are masks near the limit of the type, and
 * elements so large that all others are below their rounding error. */
static double largest_magnitude(const Tensor *t) {
  double max = 0, end = t->dt == DT_f64 ? DBL_MAX : t->dt == DT_f16 ? 65504 : FLT_MAX;
  double rtol = rtol_of(t->dt), far = rtol > 0 ? lower_quarter(t) / (rtol * rtol) : INFINITY;
  for (u64 i = 0; i < t->n; i++) {
    double x = magnitude(t, i);
    bool outlies = x > ORDINARY && (x > far || x >= end / 4);
    if (isfinite(x) && !outlies && x > max) max = x;
  }
  return max;
}

static void choose_tolerances(const Tensor *want, bool rounds, double rtol, double atol,
                              IngotDiff *d) {
  bool is_float = dtype_is_float(want->dt), is_step = !is_float && dtype_info[want->dt].bits <= 8;
  bool is_wide = rounds && rtol > INGOT_TIGHT && rtol < 0;
  d->rtol = rtol >= 0 ? rtol : rtol_of(want->dt);
  if (is_wide && (is_float || is_step)) d->rtol = fmax(d->rtol, ROUNDED);
  d->atol = atol;
  if (atol >= 0) return;
  d->atol = is_float || is_step ? d->rtol * largest_magnitude(want) : 0;
  if (is_step && is_wide && want->dt != DT_bool) d->atol = fmax(d->atol, 1);
}

/* Converts a result of ref64 to the expected type. */
static const Tensor *rounded(Ctx *c, const Tensor *have, DType dt) {
  if (have->dt != DT_f64 || dt == DT_f64 || !dtype_is_float(dt)) return have;
  Tensor *t = tensor_new(&c->keep, dt, have->dim, have->rank);
  for (u64 i = 0; i < t->n; i++)
    tensor_set(t, i, (Scalar){.f = scalar_round(dt, tensor_get(have, i).f)});
  return t;
}

static void compare(Ctx *c, bool rounds, const Tensor *have, const Tensor *want, double rtol,
                    double atol, IngotDiff *d) {
  have = rounded(c, have, want->dt);
  bool same = have->dt == want->dt && have->rank == want->rank;
  for (u32 i = 0; same && i < have->rank; i++) same = have->dim[i] == want->dim[i];
  if (!same) {
    d->why = str_text(c, str_fmt(c, "%s, expected %s", tensor_text(c, have), tensor_text(c, want)));
    d->ok = 0;
    return;
  }
  choose_tolerances(want, rounds, rtol, atol, d);
  if (dtype_is_float(have->dt)) {
    u64 nans = compare_floats(have, want, d->rtol, d->atol, d);
    if (nans)
      d->why = str_text(c, str_fmt(c, "%llu of %llu are NaN on both sides",
                                   (unsigned long long)nans, (unsigned long long)have->n));
  } else {
    compare_ints(have, want, d->rtol, d->atol, d);
  }
  d->cosine = cosine(have, want);
}

typedef struct CompareArg {
  Ingot *m;
  const char *dir;
  double rtol, atol;
  IngotDiff *diff;
  u32 max, *n;
  bool ok;
} CompareArg;

static void put_diff(CompareArg *a, IngotDiff d) {
  a->ok = a->ok && d.ok;
  if (*a->n < a->max) a->diff[(*a->n)++] = d;
}

static void compare_output(CompareArg *a, u32 flat, const Tensor *want) {
  Ingot *m = a->m;
  IngotDiff d = {.name = str_text(m->c, api_result_name(m, flat)), .ok = 1, .why = ""};
  compare(m->c, m->facts.rounds, m->run.out[flat], want, a->rtol, a->atol, &d);
  put_diff(a, d);
}

/* Compares kind and length of a sequence or optional. */
static bool compare_length(CompareArg *a, const char *name, const PbValue *want, TypeKind kind,
                           i64 n) {
  static const char *const word[] = {
      [TY_tensor] = "a tensor", [TY_seq] = "a sequence", [TY_opt] = "an optional"};
  IngotDiff d = {.name = name, .ok = want->kind == kind && want->n == n, .cosine = 1, .why = ""};
  if (!d.ok)
    d.why = str_text(a->m->c, str_fmt(a->m->c, "%s of %lld, expected %s of %u", word[kind],
                                      (long long)n, word[want->kind], want->n));
  put_diff(a, d);
  return d.ok;
}

static void compare_stack(CompareArg *a, const OutputStructure *p, const char *name,
                          const PbValue *want) {
  Ingot *m = a->m;
  const Tensor *stack = m->run.out[p->elem[0].flat];
  i64 n = tensor_get(m->run.out[p->elem[1].flat], 0).i;
  if (!compare_length(a, name, want, TY_seq, n) || n > stack->dim[0]) return;
  for (u32 i = 0; i < want->n; i++) {
    IngotDiff d = {.name = str_text(m->c, str_fmt(m->c, "%s.%u", name, i)), .ok = 1, .why = ""};
    compare(m->c, m->facts.rounds, api_tensor_row(m->c, stack, i), want->elem[i].t, a->rtol,
            a->atol, &d);
    put_diff(a, d);
  }
}

/* Values of map `row` in the order of the expected keys; NULL: a key is missing. */
static Tensor *map_values(Ctx *c, const Tensor *stack, const Tensor *keys, u32 row,
                          const PbValue *want) {
  i64 n = want->n, have = stack->dim[1];
  Tensor *t = tensor_new(&c->keep, stack->dt, &n, 1);
  if (n != have || want->keys->dt != keys->dt) return NULL;
  for (u32 i = 0; i < want->n; i++) {
    i64 at = 0;
    while (at < have && tensor_get(keys, (u64)at).i != tensor_get(want->keys, i).i) at++;
    if (at == have) return NULL;
    tensor_set(t, i, tensor_get(stack, (u64)row * (u64)have + (u64)at));
  }
  return t;
}

static void compare_maps(CompareArg *a, const OutputStructure *p, const char *name,
                         const PbValue *want) {
  Ctx *c = a->m->c;
  const Tensor *stack = a->m->run.out[p->elem[0].flat], *keys = a->m->run.out[p->elem[1].flat];
  if (!compare_length(a, name, want, TY_seq, stack->dim[0])) return;
  for (u32 i = 0; i < want->n; i++) {
    const PbValue *m = &want->elem[i];
    IngotDiff d = {.name = str_text(c, str_fmt(c, "%s.%u", name, i)), .ok = 1, .why = ""};
    Tensor *x = m->keys ? map_values(c, stack, keys, i, m) : NULL;
    Tensor *y = tensor_new(&c->keep, stack->dt, (const i64[]){m->n}, 1);
    for (u32 k = 0; x && k < m->n; k++) {
      if (m->elem[k].kind != TY_tensor || m->elem[k].t->dt != y->dt || m->elem[k].t->n != 1)
        x = NULL;
      else
        tensor_set(y, k, tensor_get(m->elem[k].t, 0));
    }
    d.ok = x != NULL;
    if (x)
      compare(c, a->m->facts.rounds, x, y, a->rtol, a->atol, &d);
    else
      d.why = "other keys, or values of another type";
    put_diff(a, d);
  }
}

static void compare_port(CompareArg *a, const OutputStructure *p, const char *name,
                         const PbValue *want) {
  Ingot *m = a->m;
  if (p->kind == TY_tensor && want->kind == TY_tensor) {
    compare_output(a, p->flat, want->t);
  } else if (p->maps) {
    compare_maps(a, p, name, want);
  } else if (p->kind == TY_seq && p->open) {
    compare_stack(a, p, name, want);
  } else {
    bool gone = p->open && !tensor_get(m->run.out[p->elem[p->n].flat], 0).i;
    if (!compare_length(a, name, want, p->kind, gone ? 0 : p->n)) return;
    for (u32 i = 0; i < want->n; i++) {
      const char *part = p->kind == TY_opt ? name : str_text(m->c, str_fmt(m->c, "%s.%u", name, i));
      compare_port(a, &p->elem[i], part, &want->elem[i]);
    }
  }
}

static void do_compare(Ctx *c, void *arg) {
  CompareArg *a = arg;
  Ingot *m = a->m;
  api_need(c, a->dir, "the folder with expected outputs");
  api_need(c, a->n, "a pointer to their number");
  if (a->max) api_need(c, a->diff, "a pointer to the differences");
  if (!m->run.out)
    fail(c, ERR_usage, LOC_NONE, "the model has not been run: expected ingot_run before this call");
  Strs files = data_list(c, data_folder(c, a->dir), "output", &c->keep);
  const Model *g = m->opened.ports ? m->opened.model : NULL;
  u32 n = g ? g->noutput : m->run.nout;
  Loc loc = LOC_NONE;
  loc.file = str_of(c, a->dir);
  if (files.n != n) fail(c, ERR_input, loc, "holds %u outputs, the model has %u", files.n, n);
  a->ok = true;
  for (u32 i = 0; i < n; i++) {
    const char *path = str_text(c, files.at[i]);
    loc.file = files.at[i];
    File f = file_read(c, path);
    PbValue *d = data_read_pb(c, f.at, f.n, g ? &g->output[i].type : NULL, NULL, loc, &c->keep);
    if (g)
      compare_port(a, &m->opened.ports[i], str_text(c, g->output[i].name), d);
    else
      compare_output(a, i, d->t);
  }
}

IngotStatus ingot_compare(Ingot *m, const char *dir, double rtol, double atol, IngotDiff *diff,
                          uint32_t max, uint32_t *n) {
  CompareArg a = {m, dir, rtol, atol, diff, max, n, false};
  if (n) *n = 0;
  IngotStatus s = api_call(m, do_compare, &a);
  return s ? s : a.ok ? INGOT_OK : INGOT_MISMATCH;
}

static Tensor as_tensor(Ctx *c, const IngotTensor *t) {
  api_need_array(c, t);
  if (!strcmp(t->dtype, "str")) return *api_import_strings(c, t);
  Tensor x = {.dt = dtype_from_name(t->dtype, strlen(t->dtype)), .rank = t->rank, .data = t->data};
  if (!x.dt || !t->data || t->rank > MAX_RANK || !shape_count(t->dim, t->rank, &x.n) ||
      x.n * dtype_bytes(x.dt) != t->bytes)
    fail(c, ERR_usage, LOC_NONE, "'%s': expected an array in .npy or .pb form", t->name);
  x.dim = arena_copy(&c->keep, t->dim, t->rank * sizeof *t->dim);
  return x;
}

void api_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol, double atol,
              IngotDiff *d) {
  Ctx *c = m->c;
  api_need(c, d, "a pointer to the difference");
  Tensor x = as_tensor(c, have), y = as_tensor(c, want);
  *d = (IngotDiff){.name = str_text(c, str_of(c, want->name)), .ok = 1, .why = ""};
  compare(c, m->facts.rounds, &x, &y, rtol, atol, d);
}

IngotStatus ingot_diff(Ingot *m, const IngotTensor *have, const IngotTensor *want, double rtol,
                       double atol, IngotDiff *diff) {
  API_CALL(m, api_diff(m, have, want, rtol, atol, diff));
}
