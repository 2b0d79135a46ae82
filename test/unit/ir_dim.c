/* Dimensions: normal forms, simplifications, bounds, text, refusals. */
#include "check.h"
#include "ir/ir.h"

#include <string.h>

typedef struct T {
  Ctx *c;
  Dims *ds;
  Dim n, m, k;
} T;

static T start(Ctx *c) {
  T t = {c, dims_new(c), 0, 0, 0};
  t.n = dim_of_sym(t.ds, dim_sym(t.ds, SY_input, str_of(c, "n"), 1, DIM_MAX));
  t.m = dim_of_sym(t.ds, dim_sym(t.ds, SY_input, str_of(c, "m"), 1, 100));
  t.k = dim_of_sym(t.ds, dim_sym(t.ds, SY_data, str_of(c, "a b"), 0, 5));
  return t;
}

/* The text of d is `want`, and reads back as d. */
static bool is(T *t, Dim d, const char *want) {
  StrBuf out = sb_new(&t->c->scratch);
  Dim back = -1;
  dim_print(t->ds, d, &out);
  size_t used = dim_parse(t->ds, out.at, out.n, &back);
  bool ok = strcmp(sb_cstr(&out), want) == 0 && used == strlen(want) && back == d;
  if (!ok) fprintf(stderr, "want %s, got %s\n", want, sb_cstr(&out));
  return ok;
}

static Dim read(T *t, const char *s) {
  Dim d = 0;
  CHECK(dim_parse(t->ds, s, strlen(s), &d) == strlen(s));
  return d;
}

static void algebra(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  Dim n = t.n, m = t.m;
  CHECK(dim_add(ds, 2, 3) == 5 && dim_sub(ds, 5, 5) == 0 && dim_mul(ds, 6, 7) == 42);
  CHECK(dim_div(ds, 7, 2) == 3 && dim_mod(ds, 7, 2) == 1 && dim_min(ds, 7, 2) == 2);
  CHECK(dim_max(ds, 7, 2) == 7 && dim_addk(ds, 7, -7) == 0);
  CHECK(dim_sub(ds, n, n) == 0 && dim_add(ds, n, 0) == n && dim_mul(ds, n, 1) == n);
  CHECK(dim_mul(ds, n, 0) == 0 && dim_mul(ds, n, m) == dim_mul(ds, m, n));
  CHECK(dim_mul(ds, dim_mul(ds, 2, n), m) == dim_mul(ds, 2, dim_mul(ds, n, m)));
  CHECK(dim_mul(ds, dim_mul(ds, n, m), t.k) == dim_mul(ds, n, dim_mul(ds, t.k, m)));
  CHECK(dim_sub(ds, dim_add(ds, n, m), m) == n && dim_addk(ds, dim_addk(ds, n, -3), 3) == n);
  CHECK(dim_product(ds, (Dim[]){2, n, 3, m}, 4) == dim_mul(ds, 6, dim_mul(ds, m, n)));
  CHECK(dim_product(ds, (Dim[]){DIM_MAX, DIM_MAX, 0}, 3) == 0 && dim_product(ds, NULL, 0) == 1);
  CHECK(is(&t, dim_addk(ds, dim_mul(ds, 2, n), 1), "2*n+1"));
  CHECK(is(&t, dim_sub(ds, 5, n), "-n+5") && is(&t, dim_addk(ds, n, -1), "n-1"));
  CHECK(is(&t, dim_mul(ds, dim_addk(ds, n, 1), dim_addk(ds, m, 2)), "m*n+m+2*n+2"));
  CHECK(is(&t, dim_mul(ds, t.k, t.k), "\"a b\"*\"a b\"") && is(&t, 12, "12") && is(&t, 0, "0"));
}

/* What is cut in two is as long as it was when it is joined again. */
static void joined(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  Dim head = dim_min(ds, t.k, 2), tail = dim_max(ds, dim_addk(ds, t.k, -2), 0);
  Dim more = dim_max(ds, dim_addk(ds, t.k, 1), 3);
  CHECK(dim_add(ds, head, tail) == t.k && dim_add(ds, tail, head) == t.k);
  CHECK(dim_add(ds, dim_mul(ds, head, 3), tail) == dim_add(ds, t.k, dim_mul(ds, head, 2)));
  CHECK(dim_sub(ds, more, tail) == 3 && dim_sub(ds, dim_addk(ds, t.n, 2), more) < 0);
  CHECK(dim_add(ds, head, dim_max(ds, dim_addk(ds, t.n, -2), 0)) != t.k);
  dim_sub(ds, tail, more); /* -3, which no dimension may be on its own */
}

static void division(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  Dim n = t.n, m = t.m, n1 = dim_addk(ds, n, 1);
  CHECK(dim_div(ds, dim_mul(ds, n, 6), 6) == n && dim_div(ds, n, 1) == n);
  CHECK(dim_div(ds, dim_addk(ds, dim_mul(ds, n, 6), 5), 6) == n);
  CHECK(dim_div(ds, n, n) == 1 && dim_div(ds, 0, n) == 0);
  CHECK(is(&t, dim_div(ds, n1, 2), "(n+1)/2") && is(&t, dim_div(ds, n, m), "n/m"));
  CHECK(dim_div(ds, dim_addk(ds, n, 5), 2) == dim_addk(ds, dim_div(ds, n1, 2), 2));
  CHECK(is(&t, dim_div(ds, dim_addk(ds, n, -3), 2), "(n+1)/2-2"));
  /* a chain of halvings stays small */
  CHECK(is(&t, dim_div(ds, dim_addk(ds, dim_div(ds, n1, 2), 1), 2), "(n+3)/4"));
  CHECK(is(&t, dim_div(ds, dim_addk(ds, dim_mul(ds, n, 2), 1), 4), "n/2"));
  CHECK(is(&t, dim_mul(ds, 3, dim_div(ds, n, 2)), "3*(n/2)"));
  CHECK(is(&t, dim_div(ds, dim_add(ds, dim_mul(ds, n, 4), m), 4), "n+m/4"));
  CHECK(is(&t, dim_div(ds, dim_div(ds, n, m), t.k), "(n/m)/\"a b\""));
  CHECK(is(&t, dim_div(ds, 7, n), "7/n") && is(&t, dim_div(ds, n, n1), "n/(n+1)"));
  /* what reshape asks: the rest of a product */
  CHECK(dim_div(ds, dim_product(ds, (Dim[]){n, m, 64}, 3), dim_mul(ds, m, 8)) == dim_mul(ds, n, 8));
  CHECK(dim_div(ds, dim_mul(ds, n1, dim_addk(ds, m, 2)), dim_addk(ds, m, 2)) == n1);
  CHECK(dim_div(ds, dim_mul(ds, n, m), dim_mul(ds, m, 4)) == dim_div(ds, n, 4));
  CHECK(dim_div(ds, dim_mul(ds, dim_mul(ds, n, n), m), dim_mul(ds, n, m)) == n);
  CHECK(dim_div(ds, m, 101) == 0 && dim_div(ds, m, dim_addk(ds, n, 100)) == 0);
  CHECK(dim_mod(ds, dim_mul(ds, n, 6), 3) == 0 && dim_mod(ds, n, 1) == 0 && dim_mod(ds, n, n) == 0);
  CHECK(is(&t, dim_mod(ds, n1, 2), "(n+1)%2") && dim_mod(ds, m, 101) == m);
  CHECK(dim_mod(ds, dim_addk(ds, n, 7), 2) == dim_mod(ds, n1, 2));
  CHECK(is(&t, dim_mod(ds, dim_addk(ds, dim_mul(ds, 2, n), 1), 4), "2*(n%2)+1"));
  CHECK(dim_mod(ds, dim_mod(ds, n, 12), 4) == dim_mod(ds, n, 4));
  CHECK(dim_mod(ds, dim_mul(ds, n, m), m) == 0 && is(&t, dim_mod(ds, n, m), "n%m"));
}

static void choice(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  Dim n = t.n, m = t.m, lo = dim_min(ds, n, m);
  CHECK(is(&t, lo, "min(m,n)") && lo == dim_min(ds, m, n) && dim_min(ds, n, n) == n);
  CHECK(dim_min(ds, m, 100) == m && dim_max(ds, m, 100) == 100 && dim_max(ds, n, 1) == n);
  CHECK(dim_min(ds, n, dim_addk(ds, n, 2)) == n && dim_max(ds, n, dim_addk(ds, n, -2)) == n);
  CHECK(dim_min(ds, lo, n) == lo && dim_max(ds, lo, n) == n && dim_min(ds, m, lo) == lo);
  CHECK(is(&t, dim_max(ds, dim_addk(ds, n, -5), 0), "max(0,n-5)"));
  CHECK(is(&t, dim_div(ds, lo, 2), "min(m,n)/2"));
  CHECK(is(&t, dim_mul(ds, lo, dim_mod(ds, n, 2)), "(n%2)*min(m,n)"));
}

static void bounds(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  i64 lo, hi;
#define RANGE(d, x, y) (dim_bounds(ds, d, &lo, &hi), CHECK(lo == (x) && hi == (y)))
  RANGE(7, 7, 7);
  RANGE(t.m, 1, 100);
  RANGE(dim_addk(ds, dim_mul(ds, t.m, 3), -2), 1, 298);
  RANGE(dim_sub(ds, 5, t.m), -95, 4);
  RANGE(dim_addk(ds, t.n, -5), -4, DIM_MAX);
  RANGE(dim_sub(ds, t.m, t.n), -DIM_MAX, 99);
  RANGE(dim_mul(ds, t.m, t.k), 0, 500);
  RANGE(dim_div(ds, t.m, 7), 0, 14);
  RANGE(dim_div(ds, t.n, 7), 0, DIM_MAX);
  RANGE(dim_mod(ds, t.n, 7), 0, 6);
  RANGE(dim_min(ds, t.n, t.m), 1, 100);
  RANGE(dim_max(ds, t.k, t.m), 1, 100);
  RANGE(dim_mul(ds, dim_mul(ds, t.n, t.n), t.n), 1, DIM_MAX);
  Dim prod = dim_mul(ds, t.m, t.m), low = dim_min(ds, t.n, t.m);
  CHECK(dim_of_sym(ds, dim_sym(ds, SY_input, str_of(c, "m"), 2, 10)) == t.m);
  RANGE(prod, 4, 100); /* derived symbols follow */
  dim_sym(ds, SY_input, str_of(c, "n"), 20, 30);
  CHECK(dim_min(ds, t.n, t.m) == low); /* found again, though bounds would decide now */
  CHECK(dim_min(ds, t.n, dim_addk(ds, t.m, 1)) == dim_addk(ds, t.m, 1));
#undef RANGE
}

static void symbols(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dims *ds = t.ds;
  Sym in = dim_sym(ds, SY_input, str_of(c, "s"), 0, 9),
      data = dim_sym(ds, SY_data, str_of(c, "s"), 0, 9);
  CHECK(in != data && dim_sym(ds, SY_input, str_of(c, "s"), 0, 9) == in);
  CHECK(dim_sym(ds, SY_data, str_of(c, "s"), 0, 9) == data);
  CHECK(dim_syminfo(ds, in)->kind == SY_input && dim_syminfo(ds, data)->kind == SY_data);
  CHECK(is(&t, dim_of_sym(ds, in), "s") && is(&t, dim_of_sym(ds, data), "s_2"));
  CHECK(is(&t, dim_of_sym(ds, dim_sym(ds, SY_input, str_of(c, "min"), 0, 9)), "\"min\""));
  CHECK(is(&t, dim_of_sym(ds, dim_sym(ds, SY_input, str_of(c, "1x\"\n"), 0, 9)), "\"1x\\\"\\n\""));
  CHECK(is(&t, dim_of_sym(ds, dim_sym(ds, SY_input, str_of(c, "mini"), 0, 9)), "mini"));
  CHECK(is(&t, dim_of_sym(ds, dim_sym(ds, SY_input, 0, 0, 9)), "\"\""));
  i64 env[64] = {0};
  Sym one;
  env[in] = 5;
  env[data] = 3;
  CHECK(dim_nsyms(ds) < 64 && dims_ctx(ds) == c);
  Dim d = dim_addk(ds, dim_mul(ds, 2, dim_of_sym(ds, in)), 4);
  DimTerms f = dim_terms(ds, d);
  CHECK(f.n == 1 && f.k0 == 4 && f.sym[0] == in && f.coef[0] == 2);
  CHECK(dim_terms(ds, 9).n == 0 && dim_terms(ds, 9).k0 == 9);
  CHECK(dim_is_sym(ds, dim_of_sym(ds, in), SY_input, &one) && one == in);
  CHECK(!dim_is_sym(ds, d, SY_input, &one) && !dim_is_sym(ds, 9, SY_input, &one));
  CHECK(dim_eval(ds, d, env) == 14 && dim_eval(ds, 9, env) == 9);
  CHECK(dim_eval(ds, read(&t, "(s*s_2+1)/3-min(s,s_2)%2"), env) == 4);
  env[data] = 0;
  CHECK(dim_eval(ds, read(&t, "s/s_2+s%s_2"), env) == 0); /* no trap */
  env[in] = INT64_MIN;
  CHECK(dim_eval(ds, read(&t, "s*s*s"), env) == -((i64)1 << 62));
}

static void text(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dim d;
  CHECK(read(&t, "2*(n+1)-2") == dim_mul(t.ds, 2, t.n) && read(&t, "(7)") == 7);
  CHECK(read(&t, "min(3,5)*n%1") == 0 && read(&t, "n*m/m") == t.n);
  CHECK(read(&t, "-n+n+4") == 4 && read(&t, "n-3+5") == dim_addk(t.ds, t.n, 2));
  CHECK(dim_parse(t.ds, "n,3", 3, &d) == 1 && d == t.n);
  CHECK(dim_parse(t.ds, "2*n]", 4, &d) == 3 && dim_parse(t.ds, "12 ", 3, &d) == 2);
  static const char *const bad[] = {"",       "+",       "n+",  "2*",   "(n",      "()",
                                    "min(n)", "min(n,m", "]",   "*n",   "\"n",     "n++m",
                                    "max",    "n%",      "--n", "\x80", "min(,n)", "n-"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(dim_parse(t.ds, bad[i], strlen(bad[i]), &d) == 0);
  char deep[4000];
  memset(deep, '(', sizeof deep);
  CHECK(dim_parse(t.ds, deep, sizeof deep, &d) == 0);
}

/* Each of these must leave with the code in front. */
static const char *const refused[] = {
    "4 3-5",
    "4 n-n-1",
    "4 1099511627777",
    "4 1099511627776*2",
    "4 n/0",
    "4 n%0",
    "4 unknown",
    "4 99999999999999999999",
    "4 1099511627776+1",
    "4 1099511627776*n*1024",
    "4 min(3-5,n)",
};

static void refuse(Ctx *c, void *arg) {
  T t = start(c);
  const char *s = arg;
  Dim d;
  dim_parse(t.ds, s + 2, strlen(s + 2), &d);
}

static void too_deep(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dim d = t.n;
  for (u32 i = 0; i < 1000; i++) d = dim_addk(t.ds, dim_div(t.ds, d, t.m), 1);
}

static void too_wide(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dim sum = 0;
  for (u32 i = 0; i < 200; i++)
    sum = dim_add(t.ds, sum, dim_of_sym(t.ds, dim_sym(t.ds, SY_input, str_fmt(c, "d%u", i), 0, 9)));
}

static void too_high(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  Dim d = t.n;
  for (u32 i = 0; i < 1000; i++) d = dim_mul(t.ds, d, t.n);
}

static void no_room(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  dim_sym(t.ds, SY_input, str_of(c, "m"), 101, 200);
}

static void negative(Ctx *c, void *arg) {
  (void)arg;
  T t = start(c);
  dim_sub(t.ds, t.n, dim_addk(t.ds, t.n, 1));
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, algebra, NULL) == ERR_ok && ctx_protect(c, division, NULL) == ERR_ok);
  CHECK(ctx_protect(c, joined, NULL) == ERR_ok);
  CHECK(ctx_protect(c, choice, NULL) == ERR_ok && ctx_protect(c, bounds, NULL) == ERR_ok);
  CHECK(ctx_protect(c, symbols, NULL) == ERR_ok && ctx_protect(c, text, NULL) == ERR_ok);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (!CHECK(ctx_protect(c, refuse, (void *)(uintptr_t)refused[i]) == (Err)(refused[i][0] - '0')))
      fprintf(stderr, "%s\n", refused[i]);
  CHECK(ctx_protect(c, too_deep, NULL) == ERR_unsupported);
  CHECK(ctx_protect(c, too_wide, NULL) == ERR_unsupported);
  CHECK(ctx_protect(c, too_high, NULL) == ERR_unsupported);
  CHECK(ctx_protect(c, no_room, NULL) == ERR_input);
  CHECK(ctx_protect(c, negative, NULL) == ERR_input);
  ctx_free(c);
  return check_end();
}
