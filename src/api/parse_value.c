/* parse_value.c: parses the VALUE of --input NAME=VALUE and --freeze NAME=VALUE.
 *
 * In: text and the type of the input. Out: a tensor whose shape is the nesting of the brackets. A
 * scalar has rank 0 and is broadcast to the shape of the input.
 *
 *   VALUE  = '[' [VALUE {',' VALUE}] ']' | NUMBER | true | false | TEXT
 *   NUMBER = as in C, also 0x1f, 1e-3, nan, inf; whole for integers, in the range of the type
 *   TEXT   = for strings, in UTF-8: "..." with \" \\ \n \xHH, or any characters but brackets,
 *            commas, quotes
 */
#include "api/api_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_ELEMENTS = 1 << 20 };

typedef struct ValueText {
  Ctx *c;
  const char *name; /* name of the input, for messages */
  const char *s;
  DType dt;
  i64 dim[MAX_RANK]; /* -1: no list of that depth is complete yet */
  u32 rank;          /* UINT32_MAX: no element yet */
  VEC(Scalar) at;
} ValueText;

static void blanks(ValueText *r) {
  while (*r->s == ' ' || *r->s == '\t' || *r->s == '\n') r->s++;
}

static _Noreturn void refuse(ValueText *r, const char *word, size_t n, const char *why) {
  fail(r->c, ERR_usage, LOC_NONE, "input '%s' is %s: '%s' %s", r->name, dtype_info[r->dt].name,
       show(r->c, str_intern(r->c, word, n)), why);
}

/* ---- single values ---- */

static Scalar read_bool(ValueText *r, const char *w, size_t n) {
  bool is_true = (n == 4 && !memcmp(w, "true", 4)) || (n == 1 && *w == '1');
  bool is_false = (n == 5 && !memcmp(w, "false", 5)) || (n == 1 && *w == '0');
  if (!is_true && !is_false) refuse(r, w, n, "is not true, false, 0 or 1");
  return (Scalar){.i = is_true};
}

static Scalar read_float(ValueText *r, const char *w, size_t n) {
  const char *text = str_text(r->c, str_intern(r->c, w, n));
  char *end;
  double x = strtod(text, &end);
  if (!n || *end) refuse(r, w, n, "is not a number");
  Scalar out = {.f = scalar_round(r->dt, x)};
  if (isfinite(x) && !isfinite(out.f)) refuse(r, w, n, "is out of range");
  return out;
}

/* An integer in C syntax, or a number such as 1e3 that is an integer. */
static Scalar read_int(ValueText *r, const char *w, size_t n) {
  const char *text = str_text(r->c, str_intern(r->c, w, n));
  bool minus = *text == '-';
  const char *digits = text + (minus || *text == '+');
  int base = !strncmp(digits, "0x", 2) ? 16 : 10;
  char *end;
  errno = 0;
  unsigned long long u = strtoull(digits, &end, base);
  bool fine = *digits >= '0' && *digits <= '9' && !*end && !errno;
  double x = strtod(text, &end);
  if (!fine && (!n || *end)) refuse(r, w, n, "is not a number");
  if (!fine && !(x == floor(x) && fabs(x) < 0x1p53)) refuse(r, w, n, "is not a whole number");
  if (!fine) {
    minus = x < 0;
    u = (unsigned long long)fabs(x);
  }
  Scalar lo, hi;
  dtype_limits(r->dt, &lo, &hi);
  unsigned long long limit = minus ? (unsigned long long)-(lo.i + 1) + 1 : (unsigned long long)hi.i;
  if (minus && !dtype_is_signed(r->dt)) limit = 0;
  if (u > limit) refuse(r, w, n, "is out of range");
  return (Scalar){.i = minus ? (i64)(0 - u) : (i64)u};
}

static Scalar read_text(ValueText *r) {
  if (*r->s == '"') {
    StrBuf t = sb_new(&r->c->scratch);
    size_t used = sb_unquote(&t, r->s, strlen(r->s));
    if (!used)
      refuse(r, r->s, strlen(r->s),
             "has no closing quote, or an escape other than \\\" \\\\ \\n \\xHH");
    r->s += used;
    return (Scalar){.i = str_intern(r->c, t.at, t.n)};
  }
  size_t n = strcspn(r->s, r->rank || r->at.n ? "[],\"" : "[]\""), used = n;
  while (n && r->s[n - 1] == ' ') n--;
  Scalar x = {.i = str_intern(r->c, r->s, n)};
  r->s += used;
  return x;
}

static Scalar read_one(ValueText *r) {
  if (r->dt == DT_str) return read_text(r);
  const char *w = r->s;
  size_t n = strcspn(w, " \t\n,[]");
  r->s += n;
  if (!n) refuse(r, w, strlen(w), "lacks a value");
  if (r->dt == DT_bool) return read_bool(r, w, n);
  return dtype_is_float(r->dt) ? read_float(r, w, n) : read_int(r, w, n);
}

/* ---- lists ---- */

static void read_value(ValueText *r, u32 depth) {
  blanks(r);
  if (*r->s != '[') {
    if (r->rank != UINT32_MAX && r->rank != depth)
      refuse(r, r->s, strlen(r->s), "is nested less deeply than the elements before it");
    r->rank = depth;
    if (r->at.n == SPEC_ELEMENTS) refuse(r, "...", 3, "has too many elements; use a file");
    Scalar x = read_one(r);
    *vec_push(&r->c->keep, &r->at) = x;
    return;
  }
  const char *from = r->s++;
  i64 n = 0;
  if (depth == MAX_RANK || (r->rank != UINT32_MAX && depth >= r->rank))
    refuse(r, from, strlen(from), "is nested more deeply than the elements before it");
  blanks(r);
  while (*r->s && *r->s != ']') {
    read_value(r, depth + 1);
    n++;
    blanks(r);
    if (*r->s == ',')
      r->s++;
    else if (*r->s != ']')
      refuse(r, from, strlen(from), "lacks a comma or ']'");
    blanks(r);
  }
  if (*r->s != ']') refuse(r, from, strlen(from), "lacks ']'");
  r->s++;
  if (r->rank == UINT32_MAX) r->rank = depth + 1; /* an empty list */
  if (r->dim[depth] >= 0 && r->dim[depth] != n)
    refuse(r, from, strlen(from), "has rows of different lengths");
  r->dim[depth] = n;
}

Tensor *api_parse_value(Ctx *c, const char *name, DType dt, const char *text) {
  ValueText r = {.c = c, .name = name, .s = text, .dt = dt, .rank = UINT32_MAX};
  for (u32 i = 0; i < MAX_RANK; i++) r.dim[i] = -1;
  if (dtype_info[dt].cls == 'C' || dt == DT_none)
    fail(c, ERR_unsupported, LOC_NONE, "input '%s' is %s: give it as a file", name,
         dtype_info[dt].name);
  read_value(&r, 0);
  blanks(&r);
  if (*r.s) refuse(&r, r.s, strlen(r.s), "is unexpected at the end");
  for (u32 i = 0; i < r.rank; i++)
    if (r.dim[i] < 0) r.dim[i] = 0;
  u64 n;
  if (!shape_count(r.dim, r.rank, &n) || n != r.at.n)
    refuse(&r, text, strlen(text), "is an incomplete list");
  Tensor *t = tensor_new(&c->keep, dt, r.dim, r.rank);
  for (u64 i = 0; i < n; i++) tensor_set(t, i, r.at.at[i]);
  return t;
}
