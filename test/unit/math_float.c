/* The float functions of mathlibf.h against the long double ones of libm: every 9973rd float by
 * default, every Nth with an argument N; then the largest error of each and the number of results
 * that are not the nearest float are printed. */
#include "check.h"
#include "ir/math/mathlibf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(long double) > 8, "needs a long double wider than double");

typedef struct Fn {
  const char *name;
  float (*mine)(float);
  long double (*libm)(long double);
} Fn;

static float of_code(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* |got - want| in units in the last place of a float at want; signs of zeros count */
static double ulps(float got, long double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  if (isinf((float)want) || isinf(got)) return got == (float)want ? 0 : INFINITY;
  if (want == 0) return got == 0 && !signbit(got) == !signbit(want) ? 0 : INFINITY;
  int e = ilogbl(want);
  if (e < -126) e = -126;
  if (got == 0 && !signbit(got) != !signbit(want)) return INFINITY;
  return (double)ldexpl(fabsl((long double)got - want), 23 - e);
}

/* Nearest float but for one in thousands, and then beside it by nearly nothing. */
static const double bound = 0.5 + 1e-4;

static double largest(const Fn *f, uint32_t stride, int show) {
  double worst = 0;
  float where = 0;
  uint64_t n = 0, off = 0;
  for (uint64_t u = 0; u <= 0xffffffff; u += stride) {
    float x = of_code((uint32_t)u), y = f->mine(x);
    long double want = f->libm(x);
    double e = ulps(y, want);
    n++;
    if (e > 0.5) off++;
    if (e > worst) worst = e, where = x;
  }
  if (worst > bound) fprintf(stderr, "%s(%a): error %g\n", f->name, where, worst);
  if (show)
    printf("%-6s 0.5 + %.2g at %a; not nearest: %g\n", f->name, worst - 0.5, where,
           (double)off / (double)n);
  return worst;
}

static const Fn fns[] = {
    {"exp", im_expf, expl},       {"log", im_logf, logl},       {"sin", im_sinf, sinl},
    {"cos", im_cosf, cosl},       {"tan", im_tanf, tanl},       {"asin", im_asinf, asinl},
    {"acos", im_acosf, acosl},    {"atan", im_atanf, atanl},    {"sinh", im_sinhf, sinhl},
    {"cosh", im_coshf, coshl},    {"tanh", im_tanhf, tanhl},    {"asinh", im_asinhf, asinhl},
    {"acosh", im_acoshf, acoshl}, {"atanh", im_atanhf, atanhl}, {"erf", im_erff, erfl},
    {"sqrt", im_sqrtf, sqrtl},    {"floor", im_floorf, floorl}, {"ceil", im_ceilf, ceill},
    {"trunc", im_truncf, truncl}, {"rint", im_rintf, rintl},
};

static uint64_t state = 88172645463325252u;

static float draw(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return of_code((uint32_t)(state * 0x2545f4914f6cdd1d >> 32));
}

static const float special[] = {
    0.0f,          -0.0f,          1,           -1,          2,        -2,        0.5f,
    -0.5f,         1.5f,           3,           -3,          INFINITY, -INFINITY, NAN,
    0x1p24f,       -0x1p24f,       0x1p24f - 1, 1 - 0x1p24f, 1e-45f,   -1e-45f,   0x1p-126f,
    3.4028234e38f, -3.4028234e38f, 4097,        1e-30f,      -7.5f};
enum { NSPECIAL = sizeof special / sizeof *special };

static int same(float x, float y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

static double worst;

static void two(float x, float y, float z) {
  double e = ulps(im_powf(x, y), powl(x, y));
  if (e > worst) worst = e;
  if (e > bound) fprintf(stderr, "pow(%a, %a): error %g\n", x, y, e);
  CHECK(e <= bound);
  CHECK(same(im_fmodf(x, y), fmodf(x, y)));
  if (!same(im_fmaf(x, y, z), fmaf(x, y, z))) fprintf(stderr, "fma(%a, %a, %a)\n", x, y, z);
  CHECK(same(im_fmaf(x, y, z), fmaf(x, y, z)));
}

/* Functions of two and three operands. */
static void pairs(int n) {
  for (int i = 0; i < NSPECIAL; i++)
    for (int j = 0; j < NSPECIAL; j++)
      for (int k = 0; k < NSPECIAL; k++) two(special[i], special[j], special[k]);
  for (int i = 0; i < n; i++) {
    float x = draw(), y = draw(), z = draw();
    two(x, y, z);
    two(fabsf(x), 80 * sinf(y) / logf(fabsf(x)), -x * y);
    x = sinf(x) * 3, y = sinf(y) * 5;
    two(x, y, -x * y * (1 + rintf(8 * sinf(z)) * 0x1p-23f));
    two(rintf(x * 8), rintf(y * 2), ldexpf(sinf(z), -150));
    two(ldexpf(x, -75), ldexpf(y, -75), ldexpf(z, -149));
  }
}

int main(int argc, char **argv) {
  uint32_t stride = argc > 1 ? (uint32_t)atoi(argv[1]) : 9973;
  const char *only = argc > 2 ? argv[2] : NULL;
  for (size_t i = 0; i < sizeof fns / sizeof *fns; i++)
    if (!only || !strcmp(only, fns[i].name)) CHECK(largest(&fns[i], stride, argc > 1) <= bound);
  pairs(argc > 1 ? 1000000 : 20000);
  if (argc > 1) printf("pow    0.5 + %.2g\n", worst - 0.5);
  return check_end();
}
