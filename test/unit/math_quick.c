/* The functions of quick.def, of programs that say `math fast`, against the double ones of libm:
 * errors within what docs/numerics.md states on every 97th float of 2^-20..2^14 and every 9973rd
 * beyond, and the special values; and their steps, taken one by one, against the C that is compiled
 * of them. With an argument N every Nth float, and the errors found are printed. */
#include "check.h"
#include "ir/math/mathlibs.h"
#include "ir/math/quick.h"

#include <math.h>
#include <stdlib.h>

typedef struct Fn {
  const char *name;
  float (*mine)(float);
  double (*libm)(double);
  double ulp, absolute; /* bounds; a result is right if it keeps one of them */
  float far;            /* from here on it is the precise function */
} Fn;

static double exp_p1(double x) {
  return 1 + exp(x);
}

static const Fn fns[] = {
    {"exp_p1", im_exp_p1q, exp_p1, 1.6, 0, INFINITY},
    {"exp_p1 fused", im_exp_p1u, exp_p1, 7, 0, INFINITY},
    {"exp", im_expq, exp, 1, 0, INFINITY},
    {"log", im_logq, log, 1, 0, INFINITY},
    {"tanh", im_tanhq, tanh, 6, 4e-7, INFINITY},
    {"erf", im_erfq, erf, 6.1, 4e-7, INFINITY},
    {"exp fused", im_expu, exp, 1.02, 0, INFINITY},
    {"tanh fused", im_tanhu, tanh, 6, 4e-7, INFINITY},
    {"erf fused", im_erfu, erf, 6.1, 4e-7, INFINITY},
    {"sin", im_sinq, sin, 2, 0, 0x1p13f},
    {"cos", im_cosq, cos, 2, 0, 0x1p13f},
    {"exp single", im_exps, exp, 1, 0, INFINITY},
    {"tanh single", im_tanhs, tanh, 3, 0, INFINITY},
    {"erf single", im_erfs, erf, 3.2, 0, INFINITY},
    {"sin single", im_sins, sin, 3, 0, INFINITY},
    {"cos single", im_coss, cos, 3, 0, INFINITY},
};

/* |got - want| in units in the last place of a float at want; signs of zeros count */
static double ulps(float got, double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  if (isinf((float)want) || isinf(got)) return got == (float)want ? 0 : INFINITY;
  if (got == 0 && !signbit(got) != !signbit(want)) return INFINITY;
  if (want == 0) return got == 0 ? 0 : INFINITY;
  int e = ilogb(want);
  return ldexp(fabs(got - want), 23 - (e < -126 ? -126 : e));
}

#ifdef __SANITIZE_ADDRESS__
enum { NEAR = 9973 };
#else
enum { NEAR = 97 };
#endif

static void range(const Fn *f, uint32_t stride, int show) {
  double worst = 0, most = 0;
  float at = 0;
  for (uint64_t u = 0; u <= 0xffffffff;) {
    float x = imk_f32((uint32_t)u), m = fabsf(x), y = f->mine(x);
    double want = f->libm(x), e = ulps(y, want), off = fabs(y - want);
    double bound = m < f->far ? f->ulp : 0.5 + 1e-4;
    if (!(e <= bound) && !(off <= f->absolute)) {
      fprintf(stderr, "%s(%a): %g ulp\n", f->name, x, e);
      CHECK(0);
    }
    if (e > worst) worst = e, at = x;
    if (off > most && off < INFINITY) most = off;
    u += stride ? stride : m > 0x1p-20f && m < 0x1p14f ? NEAR : 9973;
  }
  CHECK(worst <= f->ulp);
  if (show) printf("%-10s %.3f at %a, absolute %.3g\n", f->name, worst, at, most);
}

static int same(float x, float y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

static void specials(void) {
  const float inf = INFINITY;
  CHECK(same(im_expq(inf), inf) && same(im_expq(-inf), 0) && same(im_expq(-0.0f), 1));
  CHECK(same(im_expq(88.72284f), inf) && isfinite(im_expq(88.72283f)));
  CHECK(same(im_expq(-104), 0) && same(im_expq(-103.9f), 0x1p-149f));
  CHECK(same(im_expu(inf), inf) && same(im_expu(-inf), 0) && same(im_expu(-0.0f), 1));
  CHECK(same(im_expu(88.72284f), inf) && isfinite(im_expu(88.72283f)));
  CHECK(same(im_expu(-104), 0) && same(im_expu(-103.9f), 0x1p-149f));
  CHECK(same(im_logq(inf), inf) && same(im_logq(0), -inf) && same(im_logq(-0.0f), -inf));
  CHECK(isnan(im_logq(-1)) && isnan(im_logq(-0x1p-149f)) && isnan(im_logq(-inf)));
  CHECK(same(im_logq(1), 0));
  CHECK(same(im_tanhq(inf), 1) && same(im_tanhq(-inf), -1) && same(im_tanhq(-0.0f), -0.0f));
  CHECK(same(im_erfq(inf), 1) && same(im_erfq(-inf), -1) && same(im_erfq(-0.0f), -0.0f));
  CHECK(same(im_tanhq(0x1p-149f), 0x1p-149f) && same(im_erfq(0x1p-149f), 0x1p-149f));
  CHECK(same(im_tanhu(inf), 1) && same(im_tanhu(-inf), -1) && same(im_tanhu(-0.0f), -0.0f));
  CHECK(same(im_erfu(inf), 1) && same(im_erfu(-inf), -1) && same(im_erfu(-0.0f), -0.0f));
  CHECK(same(im_tanhs(inf), 1) && same(im_tanhs(-inf), -1) && same(im_tanhs(-0.0f), -0.0f));
  CHECK(same(im_erfs(inf), 1) && same(im_erfs(-inf), -1) && same(im_erfs(-0.0f), -0.0f));
  CHECK(same(im_tanhs(0x1p-149f), 0x1p-149f) && same(im_erfs(0x1p-149f), 0x1p-149f));
  CHECK(same(im_sins(-0.0f), -0.0f) && same(im_sins(0), 0) && same(im_coss(-0.0f), 1));
  CHECK(isnan(im_sins(inf)) && isnan(im_coss(-inf)));
  CHECK(same(im_sinq(-0.0f), -0.0f) && same(im_sinq(0), 0) && same(im_cosq(-0.0f), 1));
  CHECK(isnan(im_sinq(inf)) && isnan(im_cosq(-inf)));
  for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) CHECK(isnan(fns[i].mine(NAN)));
}

/* ---- steps ---- */

typedef union Value {
  float f;
  uint32_t u;
} Value;

static Value step(const QuickStep *s, const Value *a) {
  uint32_t by = (uint32_t)s->value.i;
  bool u = s->bits;
  switch (s->op) {
  case QO_const: return u ? (Value){.u = by} : (Value){.f = (float)s->value.f};
  case QO_add: return u ? (Value){.u = a[0].u + a[1].u} : (Value){.f = a[0].f + a[1].f};
  case QO_sub: return u ? (Value){.u = a[0].u - a[1].u} : (Value){.f = a[0].f - a[1].f};
  case QO_mul: return (Value){.f = a[0].f * a[1].f};
  case QO_div: return (Value){.f = a[0].f / a[1].f};
  case QO_neg: return (Value){.f = -a[0].f};
  case QO_mad: return (Value){.f = fmaf(a[0].f, a[1].f, a[2].f)};
  case QO_lesser: return a[0].f < a[1].f ? a[0] : a[1];
  case QO_larger: return a[0].f > a[1].f ? a[0] : a[1];
  case QO_and: return (Value){.u = a[0].u & a[1].u};
  case QO_or: return (Value){.u = a[0].u | a[1].u};
  case QO_xor: return (Value){.u = a[0].u ^ a[1].u};
  case QO_not: return (Value){.u = ~a[0].u};
  case QO_shl: return (Value){.u = a[0].u << by};
  case QO_shr: return (Value){.u = a[0].u >> by};
  case QO_lt: return (Value){.u = a[0].f < a[1].f ? UINT32_MAX : 0};
  case QO_le: return (Value){.u = a[0].f <= a[1].f ? UINT32_MAX : 0};
  case QO_eq: return (Value){.u = a[0].f == a[1].f ? UINT32_MAX : 0};
  case QO_pow2:
    if (isnan(a[1].f)) return a[1];
    return (Value){.f = ldexpf(a[0].f, (int)(a[1].f - 0x1.8p23f))};
  case QO_farsin: return fabsf(a[0].f) < 0x1p13f ? a[1] : (Value){.f = im_sinf(a[0].f)};
  case QO_farcos: return fabsf(a[0].f) < 0x1p13f ? a[1] : (Value){.f = im_cosf(a[0].f)};
  default: return a[0]; /* bits and float */
  }
}

static Value run_steps(const char *name, Value x, Value turn) {
  Quick q;
  Value v[QUICK_STEPS] = {x, turn};
  if (!CHECK(quick_find(&q, name))) return x;
  for (uint32_t i = q.nparam; i < q.n; i++) {
    const QuickStep *s = &q.step[i];
    Value a[3];
    for (uint32_t k = 0; k < 3; k++) a[k] = v[s->arg[k]];
    v[i] = s->op == QO_call ? run_steps(s->text, a[0], a[1]) : step(s, a);
  }
  return v[q.result];
}

static void steps(void) {
  static const struct {
    const char *name;
    float (*compiled)(float);
  } all[] = {{"expu", im_expu},         {"exp_p1u", im_exp_p1u}, {"exp_nonposu", im_exp_nonposu},
             {"tanhu", im_tanhu},       {"erfu", im_erfu},       {"gelu_x2u", im_gelu_x2u},
             {"expq", im_expq},         {"exp_p1q", im_exp_p1q}, {"exp_nonposq", im_exp_nonposq},
             {"logq", im_logq},         {"tanhq", im_tanhq},     {"erfq", im_erfq},
             {"gelu_x2q", im_gelu_x2q}, {"sinq", im_sinq},       {"cosq", im_cosq}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (uint64_t u = 0; u <= 0xffffffff; u += 1999993) {
      float x = imk_f32((uint32_t)u), y = run_steps(all[i].name, (Value){.f = x}, (Value){0}).f;
      if (!CHECK(same(y, all[i].compiled(x)))) fprintf(stderr, "%s(%a): %a\n", all[i].name, x, y);
    }
}

static double gelu_x2(double x) {
  return x < 0 ? x * erfc(-x * sqrt(0.5)) : x * (1 + erf(x * sqrt(0.5)));
}

/* Errors of Gelu are measured by its argument: below 0 it comes nearer and nearer to 0. */
static void gelus(const char *name, float (*mine)(float), double most, uint32_t stride, int show) {
  double worst = 0;
  for (uint64_t u = 0; u <= 0xffffffff;) {
    float x = imk_f32((uint32_t)u), m = fabsf(x);
    double off = fabs(mine(x) - gelu_x2(x)) / m;
    if (m > 0x1p-120f && m < 0x1p126f && off > worst) worst = off;
    u += stride ? stride : m > 0x1p-20f && m < 0x1p4f ? NEAR : 9973;
  }
  CHECK(worst <= most);
  if (show) printf("%-10s %.3g of the argument\n", name, worst);
  CHECK(same(mine(INFINITY), INFINITY) && mine(0.0f) == 0 && mine(-0.0f) == 0);
  CHECK(mine(-6.0f) == 0 && mine(-1e30f) == 0 && same(mine(1e30f), 2e30f) && isnan(mine(NAN)));
  CHECK(same(mine(0x1p-149f), 0x1p-149f));
}

/* exp_nonpos of what is not above 0; results that are no normal floats may be 0. */
static void exp_nonpos(const char *name, float (*mine)(float), double most, uint32_t stride,
                       int show) {
  double worst = 0, near = 0;
  for (uint64_t u = 0x80000000; u <= 0xff800000;) {
    float x = imk_f32((uint32_t)u), y = mine(x);
    double want = exp(x), e = want < 0x1p-126 && y == 0 ? 0 : ulps(y, want);
    if (e > worst) worst = e;
    if (x > -20 && e > near) near = e;
    u += stride ? stride : x < -0x1p-20f && x > -0x1p14f ? NEAR : 9973;
  }
  CHECK(worst <= most);
  if (show) printf("%-10s %.3f, %.3f where |x| < 20\n", name, worst, near);
  CHECK(same(mine(-INFINITY), 0) && mine(0.0f) == 1 && mine(-0.0f) == 1 && isnan(mine(NAN)));
  CHECK(mine(-104.0f) == 0 && mine(-1e30f) == 0);
}

int main(int argc, char **argv) {
  uint32_t stride = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
  for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) range(&fns[i], stride, argc > 1);
  gelus("gelu_x2", im_gelu_x2q, 5e-7, stride, argc > 1);
  gelus("gelu_x2 single", im_gelu_x2s, 3e-7, stride, argc > 1);
  gelus("gelu_x2 fused", im_gelu_x2u, 3.5e-7, stride, argc > 1);
  exp_nonpos("exp_nonpos", im_exp_nonposq, 1, stride, argc > 1);
  exp_nonpos("exp_nonpos fused", im_exp_nonposu, 6, stride, argc > 1);
  specials();
  steps();
  return check_end();
}
