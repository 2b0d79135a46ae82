/* The double functions of mathlib.h against the long double ones of libm, which have 64 bits and
 * are good to about one unit of them: random arguments of every size where the function does
 * something, the neighbors of its special points, and the special values of C99 Annex F. With an
 * argument N, N times as many, and the largest error of each is printed. */
#include "check.h"
#include "ir/math/mathlibd.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

_Static_assert(sizeof(long double) > 8, "needs a long double wider than double");

typedef struct Fn {
  const char *name;
  double (*mine)(double);
  long double (*libm)(long double);
  double lo, hi; /* arguments of random size, and evenly spread ones, lie in here */
  double bound;  /* largest error allowed, in units in the last place */
} Fn;

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state * 0x2545f4914f6cdd1d;
}

static double unit(void) {
  return (double)(draw() >> 11) * 0x1p-53;
}

/* Half of them evenly spread in [lo, hi], half with evenly spread exponents: codes of doubles grow
 * with the value. */
static double pick(double lo, double hi) {
  if (draw() & 1) return lo + (hi - lo) * unit();
  double end = lo >= 0 || draw() & 1 ? hi : lo, low = lo > 0 ? lo : 0;
  uint64_t from = imk_u64(low), to = imk_u64(fabs(end));
  return copysign(imk_f64(from + draw() % (to - from + 1)), end);
}

/* |got - want| in units in the last place of a double at want */
static double ulps(double got, long double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  if (isinf((double)want) || isinf(got)) return got == (double)want ? 0 : INFINITY;
  int e = want == 0 ? -1074 : ilogbl(want);
  if (e < -1022) e = -1022;
  return (double)ldexpl(fabsl((long double)got - want), 52 - e);
}

static void compare(const Fn *f, double x, double *worst, double *where) {
  double e = ulps(f->mine(x), f->libm(x));
  if (e > *worst) *worst = e, *where = x;
}

static const double points[] = {0.0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                2,
                                0.25,
                                0.125,
                                0.55,
                                0.875,
                                0x1p-28,
                                0x1p-27,
                                1e-300,
                                -1e-300,
                                5e-324,
                                -5e-324,
                                0x1p-1022,
                                0.7853981633974483,
                                1.5707963267948966,
                                3.141592653589793,
                                5.95,
                                6,
                                20,
                                22,
                                40,
                                709.782712893384,
                                710.4758600739439,
                                -708.3964185322641,
                                -745.1332191019411,
                                823549.6,
                                1e22,
                                1e300,
                                0x1.fffffffffffffp1023,
                                0x1p52,
                                0x1p53,
                                1.5,
                                0.4375};

static double largest(const Fn *f, int n) {
  double worst = 0, where = 0;
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    double x = points[i], y = x, z = x;
    for (int j = 0; j < 20; j++) {
      compare(f, y, &worst, &where), compare(f, z, &worst, &where);
      compare(f, -y, &worst, &where), compare(f, -z, &worst, &where);
      y = nextafter(y, INFINITY), z = nextafter(z, -INFINITY);
    }
  }
  for (int i = 0; i < n; i++) compare(f, pick(f->lo, f->hi), &worst, &where);
  if (worst > f->bound) fprintf(stderr, "%s(%a): error %g\n", f->name, where, worst);
  if (n > 10000) printf("%-6s %.4f at %a\n", f->name, worst, where);
  return worst;
}

static const Fn fns[] = {
    {"exp", im_exp, expl, -746, 710, 1},
    {"log", im_log, logl, 0, 1e308, 1},
    {"log", im_log, logl, 0.9, 1.1, 1},
    {"sin", im_sin, sinl, -1e6, 1e6, 1},
    {"sin", im_sin, sinl, -1e308, 1e308, 1},
    {"sin", im_sin, sinl, -7, 7, 1},
    {"cos", im_cos, cosl, -1e6, 1e6, 1},
    {"cos", im_cos, cosl, -1e308, 1e308, 1},
    {"cos", im_cos, cosl, -7, 7, 1},
    {"tan", im_tan, tanl, -1e6, 1e6, 2},
    {"tan", im_tan, tanl, -1e308, 1e308, 2},
    {"tan", im_tan, tanl, -7, 7, 2},
    {"asin", im_asin, asinl, -1, 1, 2},
    {"acos", im_acos, acosl, -1, 1, 2},
    {"atan", im_atan, atanl, -50, 50, 2},
    {"atan", im_atan, atanl, -1.1, 1.1, 2},
    {"sinh", im_sinh, sinhl, -711, 711, 2},
    {"sinh", im_sinh, sinhl, -3, 3, 2},
    {"cosh", im_cosh, coshl, -711, 711, 2},
    {"cosh", im_cosh, coshl, -3, 3, 2},
    {"tanh", im_tanh, tanhl, -22, 22, 1},
    {"asinh", im_asinh, asinhl, -1e308, 1e308, 2},
    {"asinh", im_asinh, asinhl, -3, 3, 2},
    {"acosh", im_acosh, acoshl, 1, 1e308, 2},
    {"acosh", im_acosh, acoshl, 1, 3, 2},
    {"atanh", im_atanh, atanhl, -1, 1, 2},
    {"erf", im_erf, erfl, -6.5, 6.5, 1},
    {"sqrt", im_sqrt, sqrtl, 0, 1e308, 0.5},
    {"floor", im_floor, floorl, -0x1p54, 0x1p54, 0},
    {"floor", im_floor, floorl, -9, 9, 0},
    {"ceil", im_ceil, ceill, -0x1p54, 0x1p54, 0},
    {"ceil", im_ceil, ceill, -9, 9, 0},
    {"trunc", im_trunc, truncl, -0x1p54, 0x1p54, 0},
    {"trunc", im_trunc, truncl, -9, 9, 0},
    {"rint", im_rint, rintl, -0x1p54, 0x1p54, 0},
    {"rint", im_rint, rintl, -9, 9, 0},
};

/* Bases and exponents whose power is finite most of the time. */
static void powers(int n) {
  double worst = 0, wx = 0, wy = 0;
  for (int i = 0; i < n; i++) {
    double x = i % 3 == 0 ? pick(0, 1e308) : i % 3 == 1 ? pick(0.9, 1.1) : pick(0.01, 100);
    double y = i % 4 == 0 ? pick(-1e308, 1e308) : pick(-760, 760) / fmax(fabs(log(x)), 1e-3);
    double e = ulps(im_pow(x, y), powl(x, y));
    if (e > worst) worst = e, wx = x, wy = y;
    if (i % 16 == 0) {
      double whole = rint(pick(-20, 20)), base = rint(pick(-40, 40));
      e = ulps(im_pow(base, whole), powl(base, whole));
      if (e > worst) worst = e, wx = base, wy = whole;
    }
  }
  if (n > 40000) printf("%-6s %.4f at %a, %a\n", "pow", worst, wx, wy);
  CHECK(worst <= 1);
}

static bool same(double x, double y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 -1.5,
                                 3,
                                 -3,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p53,
                                 0x1p52,
                                 -0x1p53,
                                 0x1p53 - 1,
                                 1 - 0x1p53,
                                 5e-324,
                                 -5e-324,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffffffffffp1023,
                                 0x1.fffffffffffffp-1,
                                 1e-200,
                                 -1e200};
enum { NSPECIAL = sizeof special / sizeof *special };

/* Every pair of special values; libm's double functions are exact there, or nearly (pow). */
static void pairs(void) {
  for (int i = 0; i < NSPECIAL; i++)
    for (int j = 0; j < NSPECIAL; j++) {
      double x = special[i], y = special[j], want = pow(x, y);
      CHECK(same(im_fmod(x, y), fmod(x, y)));
      if (want == 0 || !isfinite(want))
        CHECK(same(im_pow(x, y), want));
      else
        CHECK(ulps(im_pow(x, y), want) <= 1 && signbit(im_pow(x, y)) == signbit(want));
      for (int k = 0; k < NSPECIAL; k++)
        CHECK(same(im_fma(x, y, special[k]), fma(x, y, special[k])));
    }
}

static const struct {
  double (*mine)(double), (*libm)(double);
} exact[] = {{im_exp, exp},     {im_log, log},     {im_sin, sin},   {im_cos, cos},
             {im_tan, tan},     {im_asin, asin},   {im_acos, acos}, {im_atan, atan},
             {im_sinh, sinh},   {im_cosh, cosh},   {im_tanh, tanh}, {im_asinh, asinh},
             {im_acosh, acosh}, {im_atanh, atanh}, {im_erf, erf},   {im_floor, floor},
             {im_ceil, ceil},   {im_trunc, trunc}, {im_rint, rint}, {im_sqrt, sqrt}};

/* Zeros keep their sign; infinities and NaN arise and pass as Annex F says. */
static void specials(void) {
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    for (int j = 0; j < NSPECIAL; j++) {
      double x = special[j], want = exact[i].libm(x), got = exact[i].mine(x);
      if (want == 0 || !isfinite(want) || fabs(want) == 1) CHECK(same(got, want));
    }
}

/* Products and sums that nearly cancel, that are subnormal, of unlike size. */
static void fused(int n) {
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    double a = pick(-1e308, 1e308), b = pick(-1e308, 1e308), c = pick(-1e308, 1e308);
    if (i % 4 == 1) a = pick(-4, 4), b = pick(-4, 4), c = -a * b;
    if (i % 4 == 2)
      a = pick(-4, 4), b = pick(-4, 4), c = -a * b * (1 + rint(pick(-4, 4)) * 0x1p-52);
    if (i % 4 == 3) b = (0x1p-1060 + pick(-1e-318, 1e-318)) / a, c = pick(-1e-318, 1e-318);
    if (!same(im_fma(a, b, c), fma(a, b, c)) && wrong++ < 5)
      fprintf(stderr, "fma(%a, %a, %a): %a, not %a\n", a, b, c, im_fma(a, b, c), fma(a, b, c));
    double x = i & 1 ? a : c, y = i & 2 ? b : pick(-10, 10);
    if (!same(im_fmod(x, y), fmod(x, y)) && wrong++ < 5) fprintf(stderr, "fmod(%a, %a)\n", x, y);
  }
  CHECK(wrong == 0);
}

int main(int argc, char **argv) {
  int n = 10000 * (argc > 1 ? atoi(argv[1]) : 1);
  for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) CHECK(largest(&fns[i], n) <= fns[i].bound);
  powers(4 * n);
  specials();
  pairs();
  fused(n);
  return check_end();
}
