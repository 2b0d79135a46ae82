/* dim_text.c: dimensions as text; printer and parser are exact inverses.
 *
 *   sum    := ['-'] term (('+' | '-') term)*
 *   term   := factor (('*' | '/' | '%') factor)*      from the left; '/' is floor division
 *   factor := number | name | "quoted name" | ('min' | 'max') '(' sum ',' sum ')' | '(' sum ')'
 *
 * No spaces. Names that are not identifiers, and the names min and max, are quoted. */
#include "ir/dim.h"

#include <string.h>

enum { DEPTH = 2 * DIM_DEPTH + 8 }; /* open parentheses: the printer writes two per level */

static bool is_alpha(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}

/* Length of the identifier at the start of s. */
static size_t ident(const char *s, size_t n) {
  size_t i = 0;
  if (n == 0 || !is_alpha(s[0])) return 0;
  while (i < n && (is_alpha(s[i]) || is_digit(s[i]))) i++;
  return i;
}

static bool is_call(const char *s, size_t n) {
  return n == 3 && (memcmp(s, "min", 3) == 0 || memcmp(s, "max", 3) == 0);
}

/* ---- printer ---- */

static void print_operand(const Dims *ds, Dim d, StrBuf *t);

/* tight: inside a product, where a quotient needs parentheses */
static void print_atom(const Dims *ds, Sym s, bool tight, StrBuf *t) {
  const SymInfo *i = &ds->sym.at[s];
  if (i->kind != SY_derived) {
    const char *name = str_text(ds->c, i->name);
    size_t n = str_len(ds->c, i->name);
    if (n > 0 && ident(name, n) == n && !is_call(name, n))
      sb_put(t, name, n);
    else
      sb_quote(t, name, n);
  } else if (i->op == OP_min || i->op == OP_max) {
    sb_puts(t, i->op == OP_min ? "min(" : "max(");
    dim_print(ds, i->a, t);
    sb_puts(t, ",");
    dim_print(ds, i->b, t);
    sb_puts(t, ")");
  } else {
    if (tight) sb_puts(t, "(");
    print_operand(ds, i->a, t);
    sb_puts(t, i->op == OP_div ? "/" : "%");
    print_operand(ds, i->b, t);
    if (tight) sb_puts(t, ")");
  }
}

/* Operand of / or %: bare if it is a number, a name, or a call. */
static void print_operand(const Dims *ds, Dim d, StrBuf *t) {
  Sym s = dim_only_sym(ds, d);
  bool bare = dim_is_const(d);
  if (s != NO_SYM) {
    const SymInfo *i = &ds->sym.at[s];
    bare = i->kind != SY_derived || i->op == OP_min || i->op == OP_max;
  }
  if (!bare) sb_puts(t, "(");
  dim_print(ds, d, t);
  if (!bare) sb_puts(t, ")");
}

void dim_print(const Dims *ds, Dim d, StrBuf *t) {
  DimTerms f = dim_terms(ds, d);
  for (u32 i = 0; i < f.n; i++) {
    Sym factor[DIM_FACTORS];
    u32 nf = dim_factors(ds, f.sym[i], factor);
    i64 abs = f.coef[i] < 0 ? -f.coef[i] : f.coef[i];
    if (f.coef[i] < 0)
      sb_puts(t, "-");
    else if (i > 0)
      sb_puts(t, "+");
    if (abs != 1) sb_fmt(t, "%lld*", (long long)abs);
    for (u32 j = 0; j < nf; j++) {
      if (j > 0) sb_puts(t, "*");
      print_atom(ds, factor[j], abs != 1 || nf > 1, t);
    }
  }
  if (f.n == 0)
    sb_fmt(t, "%lld", (long long)f.k0);
  else if (f.k0 != 0)
    sb_fmt(t, "%+lld", (long long)f.k0);
}

/* ---- parser ---- */

typedef struct DimRead {
  Dims *ds;
  const char *at, *end;
  u32 depth;
} DimRead;

static bool parse_sum(DimRead *r, DimPoly *out);

static bool take(DimRead *r, char ch) {
  if (r->at == r->end || *r->at != ch) return false;
  r->at++;
  return true;
}

static bool parse_number(DimRead *r, DimPoly *out) {
  i64 x = 0;
  for (; r->at < r->end && is_digit(*r->at); r->at++) {
    x = x * 10 + (*r->at - '0');
    if (x > DIM_MAX)
      fail(r->ds->c, ERR_input, LOC_NONE,
           "size overflow: a dimension contains a number above 2^40");
  }
  *out = poly_const(x);
  return true;
}

static bool parse_name(DimRead *r, DimPoly *out) {
  Ctx *c = r->ds->c;
  Str name;
  if (*r->at == '"') {
    StrBuf t = sb_new(&c->scratch);
    size_t n = sb_unquote(&t, r->at, (size_t)(r->end - r->at));
    if (n == 0) return false;
    name = str_intern(c, t.at, t.n);
    r->at += n;
  } else {
    size_t n = ident(r->at, (size_t)(r->end - r->at));
    name = str_intern(c, r->at, n);
    r->at += n;
  }
  Sym s = dim_find(r->ds, name);
  if (s == NO_SYM)
    fail(c, ERR_input, LOC_NONE, "unknown dimension %s: no input declares it", show(c, name));
  *out = poly_of(r->ds, dim_of_sym(r->ds, s));
  return true;
}

static bool parse_call(DimRead *r, DimPoly *out) {
  Op op = r->at[1] == 'i' ? OP_min : OP_max;
  DimPoly b;
  r->at += 3;
  if (!take(r, '(') || !parse_sum(r, out) || !take(r, ',') || !parse_sum(r, &b) || !take(r, ')'))
    return false;
  Dim d = dim_minmax_with(r->ds, op, poly_dim(r->ds, out), poly_dim(r->ds, &b), true);
  *out = poly_of(r->ds, d);
  return true;
}

static bool parse_factor(DimRead *r, DimPoly *out) {
  if (r->at == r->end) return false;
  if (is_digit(*r->at)) return parse_number(r, out);
  if (take(r, '(')) return parse_sum(r, out) && take(r, ')');
  if (*r->at == '"') return parse_name(r, out);
  size_t n = ident(r->at, (size_t)(r->end - r->at));
  if (n == 0) return false;
  return is_call(r->at, n) ? parse_call(r, out) : parse_name(r, out);
}

static bool parse_term(DimRead *r, DimPoly *out) {
  Dims *ds = r->ds;
  if (!parse_factor(r, out)) return false;
  while (r->at < r->end && (*r->at == '*' || *r->at == '/' || *r->at == '%')) {
    char op = *r->at++;
    DimPoly b;
    if (!parse_factor(r, &b)) return false;
    if (op == '*') {
      *out = poly_mul(ds, out, &b);
      continue;
    }
    Dim x = poly_dim(ds, out), y = poly_dim(ds, &b);
    x = op == '/' ? dim_div_with(ds, x, y, true) : dim_mod_with(ds, x, y, true);
    *out = poly_of(ds, x);
  }
  return true;
}

static bool parse_sum(DimRead *r, DimPoly *out) {
  if (++r->depth > DEPTH) return false;
  *out = poly_const(0);
  i64 sign = take(r, '-') ? -1 : 1;
  for (;;) {
    DimPoly t;
    if (!parse_term(r, &t)) return false;
    poly_add(r->ds, out, &t, sign);
    if (take(r, '+'))
      sign = 1;
    else if (take(r, '-'))
      sign = -1;
    else
      break;
  }
  r->depth--;
  return true;
}

size_t dim_parse(Dims *ds, const char *at, size_t n, Dim *out) {
  DimRead r = {ds, at, at + n, 0};
  DimPoly p;
  if (!parse_sum(&r, &p)) return 0;
  *out = poly_dim(ds, &p);
  return (size_t)(r.at - at);
}

Str sym_range_error(Ctx *c, const SymInfo *s) {
  return str_fmt(c, "the size %s, which the run computes, is outside of its bounds %lld to %lld",
                 show(c, s->name), (long long)s->lo, (long long)s->hi);
}
