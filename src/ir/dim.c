/* dim.c: dimensions: integers, symbols, and integer polynomials over symbols.
 *
 * In: dimensions and an operation. Out: a dimension in an interned normal form: equal id means
 * equal structure. Method: an expression is k0 + sum coef * sym. Non-affine operations (products of
 * symbols, floor division, remainder, min, max) become derived symbols op(a, b), which are also
 * interned. Products are expanded and their factors sorted, so polynomials are normal. Terms,
 * factors and operands are ordered by structure and names, never by id, so that text does not
 * depend on the order of construction.
 * Bounds come from interval arithmetic. They decide min, max and small quotients when an expression
 * is first built. An existing derived symbol is found again even if bounds have narrowed since. The
 * text form is in dim_text.c. Does not prove equalities that need case analysis. */
#include "ir/dim.h"

#include <string.h>

/* ---- construction of normal forms ---- */

/* Limits the cost of every traversal of an expression, and its text. */
static void check_size(Dims *ds, DimSize x) {
  if (x.size > DIM_SIZE || x.depth > DIM_DEPTH)
    fail(ds->c, ERR_unsupported, LOC_NONE,
         "an extent is an expression of more than %d parts or %d levels; set open dimensions with "
         "-d NAME=N to make it shorter",
         DIM_SIZE, DIM_DEPTH);
}

static bool in_range(i64 x) {
  return x >= -DIM_MAX && x <= DIM_MAX;
}

/* x + y * z, all in range; marks p if the result is not. */
static i64 muladd(DimPoly *p, i64 x, i64 y, i64 z) {
  i64 ay = y < 0 ? -y : y, az = z < 0 ? -z : z;
  if (ay != 0 && az > DIM_MAX / ay) {
    p->over |= OVERFLOW_number;
    return x;
  }
  i64 r = x + y * z;
  if (!in_range(r)) p->over |= OVERFLOW_number;
  return in_range(r) ? r : x;
}

static const DimAffine *aff_of(const Dims *ds, Dim d) {
  return &ds->aff.at[-1 - d];
}

Sym dim_only_sym(const Dims *ds, Dim d) {
  if (d >= 0) return NO_SYM;
  const DimAffine *f = aff_of(ds, d);
  return f->n == 1 && f->k0 == 0 && f->coef[0] == 1 ? f->sym[0] : NO_SYM;
}

bool dim_is_sym(const Dims *ds, Dim d, SymKind kind, Sym *s) {
  return (*s = dim_only_sym(ds, d)) != NO_SYM && ds->sym.at[*s].kind == kind;
}

static bool is_op(const Dims *ds, Sym s, Op op) {
  return s != NO_SYM && ds->sym.at[s].kind == SY_derived && ds->sym.at[s].op == op;
}

u32 dim_factors(const Dims *ds, Sym s, Sym *out) {
  u32 n = 0;
  if (s == NO_SYM) return 0;
  for (; is_op(ds, s, OP_mul); s = dim_only_sym(ds, ds->sym.at[s].a))
    out[n++] = dim_only_sym(ds, ds->sym.at[s].b);
  out[n++] = s;
  for (u32 i = 0; i < n / 2; i++) {
    Sym t = out[i];
    out[i] = out[n - 1 - i];
    out[n - 1 - i] = t;
  }
  return n;
}

static int cmp_dim(const Dims *ds, Dim a, Dim b);

/* Declared symbols before derived ones, by name; derived ones by operation and operands. Different
 * operands differ in structure, so only one path is followed. */
static int cmp_atom(const Dims *ds, Sym s, Sym t) {
  if (s == t) return 0;
  const SymInfo *x = &ds->sym.at[s], *y = &ds->sym.at[t];
  bool dx = x->kind == SY_derived, dy = y->kind == SY_derived;
  if (dx != dy) return dx ? 1 : -1;
  if (dx) {
    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    return x->a != y->a ? cmp_dim(ds, x->a, y->a) : cmp_dim(ds, x->b, y->b);
  }
  size_t nx = str_len(ds->c, x->name), ny = str_len(ds->c, y->name);
  int r = memcmp(str_text(ds->c, x->name), str_text(ds->c, y->name), nx < ny ? nx : ny);
  return r != 0 ? r : (nx > ny) - (nx < ny);
}

/* Higher degree first, then by factors: a monomial order, so that leading terms divide. */
static int cmp_mono(const Dims *ds, Sym s, Sym t) {
  if (s == t) return 0;
  Sym f[DIM_FACTORS], g[DIM_FACTORS];
  u32 nf = dim_factors(ds, s, f), ng = dim_factors(ds, t, g);
  if (nf != ng) return nf > ng ? -1 : 1;
  for (u32 i = 0; i < nf; i++)
    if (f[i] != g[i]) return cmp_atom(ds, f[i], g[i]);
  return 0;
}

static int cmp_dim(const Dims *ds, Dim a, Dim b) {
  if (a == b) return 0;
  if (a >= 0 || b >= 0) return a >= 0 && b >= 0 ? (a > b) - (a < b) : a >= 0 ? -1 : 1;
  const DimAffine *x = aff_of(ds, a), *y = aff_of(ds, b);
  for (u32 i = 0; i < x->n && i < y->n; i++) {
    if (x->sym[i] != y->sym[i]) return cmp_mono(ds, x->sym[i], y->sym[i]);
    if (x->coef[i] != y->coef[i]) return x->coef[i] < y->coef[i] ? -1 : 1;
  }
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  return (x->k0 > y->k0) - (x->k0 < y->k0);
}

static void drop_term(DimPoly *p, u32 i) {
  p->n--;
  memmove(&p->sym[i], &p->sym[i + 1], (p->n - i) * sizeof *p->sym);
  memmove(&p->coef[i], &p->coef[i + 1], (p->n - i) * sizeof *p->coef);
}

/* p += coef * s; s == NO_SYM adds a constant. */
static void add_term(const Dims *ds, DimPoly *p, Sym s, i64 coef) {
  if (s == NO_SYM) {
    p->k0 = muladd(p, p->k0, coef, 1);
    return;
  }
  u32 i = 0;
  while (i < p->n && p->sym[i] != s && cmp_mono(ds, p->sym[i], s) < 0) i++;
  if (i < p->n && p->sym[i] == s) {
    p->coef[i] = muladd(p, p->coef[i], coef, 1);
    if (p->coef[i] == 0) drop_term(p, i);
  } else if (coef != 0) {
    if (p->n == DIM_TERMS) {
      p->over |= OVERFLOW_terms;
      return;
    }
    memmove(&p->sym[i + 1], &p->sym[i], (p->n - i) * sizeof *p->sym);
    memmove(&p->coef[i + 1], &p->coef[i], (p->n - i) * sizeof *p->coef);
    p->sym[i] = s;
    p->coef[i] = coef;
    p->n++;
  }
}

DimPoly poly_const(i64 k) {
  DimPoly p = {.k0 = 0};
  p.over = in_range(k) ? 0 : OVERFLOW_number;
  if (!p.over) p.k0 = k;
  return p;
}

DimPoly poly_of(const Dims *ds, Dim d) {
  if (d >= 0) return poly_const(d);
  const DimAffine *f = aff_of(ds, d);
  DimPoly p = {.k0 = f->k0, .n = f->n};
  memcpy(p.sym, f->sym, f->n * sizeof *f->sym);
  memcpy(p.coef, f->coef, f->n * sizeof *f->coef);
  return p;
}

void poly_add(const Dims *ds, DimPoly *p, const DimPoly *q, i64 k) {
  p->over |= q->over;
  p->k0 = muladd(p, p->k0, q->k0, k);
  for (u32 i = 0; i < q->n; i++) add_term(ds, p, q->sym[i], muladd(p, 0, q->coef[i], k));
}

Dim poly_dim(Dims *ds, const DimPoly *p) {
  if (p->over & OVERFLOW_number)
    fail(ds->c, ERR_input, LOC_NONE, "size overflow: a dimension contains a number above 2^40");
  if (p->over)
    fail(ds->c, ERR_unsupported, LOC_NONE, "a dimension has more than %d terms", DIM_TERMS);
  if (p->n == 0) {
    if (p->k0 < 0)
      fail(ds->c, ERR_input, LOC_NONE, "expected a size of at least 0, found %lld",
           (long long)p->k0);
    return p->k0;
  }
  i64 key[1 + 2 * DIM_TERMS] = {p->k0};
  DimSize x = {1, 0};
  for (u32 i = 0; i < p->n; i++) {
    key[1 + 2 * i] = p->sym[i];
    key[2 + 2 * i] = p->coef[i];
    DimSize y = ds->extent.at[p->sym[i]];
    x = (DimSize){x.size + y.size, x.depth > y.depth ? x.depth : y.depth};
  }
  size_t nkey = (1 + 2 * (size_t)p->n) * sizeof *key;
  u32 *found = map_get_bytes(&ds->by_aff, key, nkey);
  if (found) return -(i64)*found;
  check_size(ds, x);
  DimAffine f = {p->k0, p->n, x, NULL, NULL};
  f.sym = arena_copy(ds->a, p->sym, p->n * sizeof *p->sym);
  f.coef = arena_copy(ds->a, p->coef, p->n * sizeof *p->coef);
  *vec_push(ds->a, &ds->aff) = f;
  *map_put_bytes(&ds->by_aff, key, nkey) = ds->aff.n;
  return -(i64)ds->aff.n;
}

/* ---- bounds: DIM_MAX and -DIM_MAX stand for unbounded ---- */

typedef struct DimRange {
  i64 lo, hi;
} DimRange;

/* clamp x to -most..most, so that x * y stays in range too. */
static i64 within(i64 x, i64 max) {
  return x > max ? max : x < -max ? -max : x;
}

static i64 mul_within(i64 x, i64 y, i64 max) {
  if (x == 0 || y == 0) return 0;
  i64 ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
  i64 r = ax > max / ay ? max : ax * ay;
  return (x < 0) != (y < 0) ? -r : r;
}

static i64 mul_bound(i64 x, i64 y) {
  return mul_within(x, y, DIM_MAX);
}

static i64 floor_div(i64 x, i64 y) { /* y > 0 */
  return x / y - (x % y < 0);
}

static i64 div_bound(i64 x, i64 y) {
  if (x >= DIM_MAX || x <= -DIM_MAX) return x;
  return floor_div(x, y);
}

/* Minimum and maximum of f(x, y) over the corners; f is monotonic in each operand. */
static DimRange corners(DimRange a, DimRange b, i64 (*f)(i64, i64)) {
  i64 v[4] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  DimRange r = {v[0], v[0]};
  for (u32 i = 1; i < 4; i++) {
    if (v[i] < r.lo) r.lo = v[i];
    if (v[i] > r.hi) r.hi = v[i];
  }
  return r;
}

static DimRange add_range(DimRange a, DimRange b) {
  DimRange r = {within(a.lo + b.lo, DIM_MAX), within(a.hi + b.hi, DIM_MAX)};
  if (a.lo <= -DIM_MAX || b.lo <= -DIM_MAX) r.lo = -DIM_MAX;
  if (a.hi >= DIM_MAX || b.hi >= DIM_MAX) r.hi = DIM_MAX;
  return r;
}

static DimRange poly_range(const Dims *ds, i64 k0, u32 n, const Sym *sym, const i64 *coef) {
  DimRange r = {k0, k0};
  for (u32 i = 0; i < n; i++) {
    const SymInfo *s = &ds->sym.at[sym[i]];
    r = add_range(r, corners((DimRange){s->lo, s->hi}, (DimRange){coef[i], coef[i]}, mul_bound));
  }
  return r;
}

static DimRange range_of(const Dims *ds, Dim d) {
  if (d >= 0) return (DimRange){d, d};
  const DimAffine *f = aff_of(ds, d);
  return poly_range(ds, f->k0, f->n, f->sym, f->coef);
}

static DimRange op_range(Op op, DimRange a, DimRange b) {
  if (op == OP_div || op == OP_mod) { /* b > 0 is a precondition */
    if (b.lo < 1) b.lo = 1;
    if (b.hi < 1) b.hi = 1;
  }
  switch (op) {
  case OP_mul: return corners(a, b, mul_bound);
  case OP_div: {
    DimRange r = corners(a, b, div_bound);
    if (a.lo >= DIM_MAX) r.lo = DIM_MAX / b.hi; /* a lower bound, not unbounded */
    if (a.hi <= -DIM_MAX) r.hi = floor_div(-DIM_MAX, b.hi);
    return r;
  }
  case OP_mod: {
    DimRange r = {0, b.hi >= DIM_MAX ? DIM_MAX : b.hi - 1};
    if (a.lo >= 0 && a.hi < r.hi) r.hi = a.hi;
    return r;
  }
  case OP_min: return (DimRange){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  case OP_max: return (DimRange){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
  default: return (DimRange){-DIM_MAX, DIM_MAX};
  }
}

void dim_bounds(const Dims *ds, Dim d, i64 *lo, i64 *hi) {
  DimRange r = range_of(ds, d);
  *lo = r.lo;
  *hi = r.hi;
}

/* ---- symbols ---- */

Dims *dims_new(Ctx *c) {
  Dims *ds = NEW(&c->work, Dims);
  ds->c = c;
  ds->a = &c->work;
  ds->by_aff = map_new(ds->a);
  ds->by_op = map_new(ds->a);
  ds->by_name = map_new(ds->a);
  ds->by_text = map_new(ds->a);
  return ds;
}

Dims *dims_copy(const Dims *ds) {
  Dims *d = NEW(ds->a, Dims);
  *d = *ds;
  d->sym.at = arena_copy(d->a, ds->sym.at, ds->sym.cap * sizeof *ds->sym.at);
  d->extent.at = arena_copy(d->a, ds->extent.at, ds->extent.cap * sizeof *ds->extent.at);
  d->aff.at = arena_copy(d->a, ds->aff.at, ds->aff.cap * sizeof *ds->aff.at);
  d->by_aff = map_copy(d->a, &ds->by_aff);
  d->by_op = map_copy(d->a, &ds->by_op);
  d->by_name = map_copy(d->a, &ds->by_name);
  d->by_text = map_copy(d->a, &ds->by_text);
  return d;
}

Ctx *dims_ctx(const Dims *ds) {
  return ds->c;
}

u32 dim_nsyms(const Dims *ds) {
  return ds->sym.n;
}

SymInfo *dim_syminfo(Dims *ds, Sym s) {
  return &ds->sym.at[s];
}

static Sym push_sym(Dims *ds, SymInfo info, DimSize x) {
  *vec_push(ds->a, &ds->extent) = x;
  *vec_push(ds->a, &ds->sym) = info;
  return ds->sym.n - 1;
}

/* Derived symbols use only earlier symbols, so one pass in order updates all. */
static void narrow_derived(Dims *ds) {
  for (Sym s = 0; s < ds->sym.n; s++) {
    SymInfo *i = &ds->sym.at[s];
    if (i->kind != SY_derived) continue;
    DimRange r = op_range(i->op, range_of(ds, i->a), range_of(ds, i->b));
    if (r.lo > i->lo) i->lo = r.lo;
    if (r.hi < i->hi) i->hi = r.hi;
  }
}

Sym dim_sym(Dims *ds, SymKind kind, Str name, i64 lo, i64 hi) {
  u32 *found = map_get(&ds->by_name, (u64)kind << 32 | name);
  lo = within(lo, DIM_MAX);
  hi = within(hi, DIM_MAX);
  if (found) {
    SymInfo *i = &ds->sym.at[*found - 1];
    bool changed = lo > i->lo || hi < i->hi;
    i64 was_lo = i->lo, was_hi = i->hi;
    if (lo > i->lo) i->lo = lo;
    if (hi < i->hi) i->hi = hi;
    if (i->lo > i->hi)
      fail(ds->c, ERR_input, LOC_NONE,
           "dimension %s has conflicting ranges: %lld to %lld, and %lld to %lld", show(ds->c, name),
           (long long)was_lo, (long long)was_hi, (long long)lo, (long long)hi);
    if (changed) narrow_derived(ds);
    return *found - 1;
  }
  if (lo > hi)
    fail(ds->c, ERR_input, LOC_NONE,
         "dimension %s: the lower bound %lld is above the upper bound %lld", show(ds->c, name),
         (long long)lo, (long long)hi);
  /* Names are unique in text: a symbol of the other kind with the same name gets a number. */
  Str text = name;
  for (u32 i = 2; map_get(&ds->by_text, text); i++)
    text = str_fmt(ds->c, "%s_%u", str_text(ds->c, name), i);
  Sym s = push_sym(ds, (SymInfo){kind, text, lo, hi, OP_COUNT, 0, 0}, (DimSize){1, 0});
  *map_put(&ds->by_name, (u64)kind << 32 | name) = s + 1;
  *map_put(&ds->by_text, text) = s + 1;
  return s;
}

Sym dim_find(const Dims *ds, Str name) {
  u32 *found = map_get(&ds->by_text, name);
  return found ? *found - 1 : NO_SYM;
}

Dim dim_of_sym(Dims *ds, Sym s) {
  DimPoly p = {.n = 1, .sym = {s}, .coef = {1}};
  return poly_dim(ds, &p);
}

/* The derived symbol op(a, b) if it exists, else NO_SYM. */
static Sym find_op(const Dims *ds, Op op, Dim a, Dim b) {
  i64 key[3] = {op, a, b};
  u32 *found = map_get_bytes(&ds->by_op, key, sizeof key);
  return found ? *found - 1 : NO_SYM;
}

static DimSize extent_of(const Dims *ds, Dim d) {
  return d >= 0 ? (DimSize){1, 0} : aff_of(ds, d)->extent;
}

static Sym mk_op(Dims *ds, Op op, Dim a, Dim b) {
  Sym s = find_op(ds, op, a, b);
  if (s != NO_SYM) return s;
  i64 key[3] = {op, a, b};
  DimSize x = extent_of(ds, a), y = extent_of(ds, b);
  x = (DimSize){x.size + y.size + 1, (x.depth > y.depth ? x.depth : y.depth) + (op != OP_mul)};
  check_size(ds, x);
  DimRange r = op_range(op, range_of(ds, a), range_of(ds, b));
  s = push_sym(ds, (SymInfo){SY_derived, 0, r.lo, r.hi, op, a, b}, x);
  *map_put_bytes(&ds->by_op, key, sizeof key) = s + 1;
  return s;
}

/* ---- sums and products ---- */

/* a + k * b */
static Dim add_times(Dims *ds, Dim a, Dim b, i64 k) {
  DimPoly p = poly_of(ds, a), q = poly_of(ds, b);
  poly_add(ds, &p, &q, k);
  poly_simplify(ds, &p);
  return poly_dim(ds, &p);
}

Dim dim_add(Dims *ds, Dim a, Dim b) {
  return add_times(ds, a, b, 1);
}

Dim dim_sub(Dims *ds, Dim a, Dim b) {
  return add_times(ds, a, b, -1);
}

Dim dim_addk(Dims *ds, Dim a, i64 k) {
  DimPoly p = poly_of(ds, a), q = poly_const(k);
  poly_add(ds, &p, &q, 1);
  return poly_dim(ds, &p);
}

/* Product of n ordered factors; NO_SYM if n is 0. */
static Sym join(Dims *ds, const Sym *f, u32 n) {
  Sym s = n > 0 ? f[0] : NO_SYM;
  for (u32 i = 1; i < n; i++) s = mk_op(ds, OP_mul, dim_of_sym(ds, s), dim_of_sym(ds, f[i]));
  return s;
}

static Sym mono_mul(Dims *ds, Sym s, Sym t) {
  Sym f[DIM_FACTORS], g[DIM_FACTORS], out[2 * DIM_FACTORS];
  u32 nf = dim_factors(ds, s, f), ng = dim_factors(ds, t, g), n = 0;
  for (u32 i = 0, j = 0; i < nf || j < ng;)
    out[n++] = j == ng || (i < nf && cmp_atom(ds, f[i], g[j]) <= 0) ? f[i++] : g[j++];
  if (n > DIM_FACTORS)
    fail(ds->c, ERR_unsupported, LOC_NONE, "a dimension is a product of more than %d factors",
         DIM_FACTORS);
  return join(ds, out, n);
}

/* s / t in *out; false if t has a factor that s lacks. */
static bool mono_div(Dims *ds, Sym s, Sym t, Sym *out) {
  Sym f[DIM_FACTORS], g[DIM_FACTORS], rest[DIM_FACTORS];
  u32 nf = dim_factors(ds, s, f), ng = dim_factors(ds, t, g), n = 0, j = 0;
  for (u32 i = 0; i < nf; i++) {
    if (j < ng && f[i] == g[j])
      j++;
    else
      rest[n++] = f[i];
  }
  if (j < ng) return false;
  *out = join(ds, rest, n);
  return true;
}

/* p += coef * s * q */
static void add_scaled(Dims *ds, DimPoly *p, const DimPoly *q, Sym s, i64 coef) {
  p->over |= q->over;
  if (q->k0 != 0) add_term(ds, p, s, muladd(p, 0, q->k0, coef));
  for (u32 i = 0; i < q->n && !p->over; i++)
    add_term(ds, p, mono_mul(ds, q->sym[i], s), muladd(p, 0, q->coef[i], coef));
}

DimPoly poly_mul(Dims *ds, const DimPoly *p, const DimPoly *q) {
  DimPoly r = {.over = p->over | q->over};
  if (p->k0 != 0) add_scaled(ds, &r, q, NO_SYM, p->k0);
  for (u32 i = 0; i < p->n && !r.over; i++) add_scaled(ds, &r, q, p->sym[i], p->coef[i]);
  return r;
}

Dim dim_mul(Dims *ds, Dim a, Dim b) {
  DimPoly p = poly_of(ds, a), q = poly_of(ds, b);
  DimPoly r = poly_mul(ds, &p, &q);
  return poly_dim(ds, &r);
}

Dim dim_product(Dims *ds, const Dim *d, u32 n) {
  Dim r = 1;
  for (u32 i = 0; i < n; i++)
    if (d[i] == 0) return 0; /* even if the others overflow */
  for (u32 i = 0; i < n; i++) r = dim_mul(ds, r, d[i]);
  return r;
}

/* ---- division ---- */

static i64 gcd(i64 a, i64 b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    i64 r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static i64 content(const DimPoly *p, i64 g) {
  for (u32 i = 0; i < p->n; i++) g = gcd(g, p->coef[i]);
  return g;
}

/* floor(p / k) for a constant k > 0. Multiples of k leave the quotient, common divisors cancel, and
 * floor((floor(x / m) + c) / k) = floor((x + c m) / (m k)). */
static Dim div_const(Dims *ds, DimPoly p, i64 k, bool raw) {
  DimPoly q = {.over = p.over};
  for (;;) {
    for (u32 i = 0; i < p.n;) {
      if (p.coef[i] % k == 0) {
        add_term(ds, &q, p.sym[i], p.coef[i] / k);
        drop_term(&p, i);
      } else {
        i++;
      }
    }
    q.k0 = muladd(&q, q.k0, floor_div(p.k0, k), 1);
    p.k0 -= floor_div(p.k0, k) * k;
    if (p.n == 0) return poly_dim(ds, &q);
    i64 g = content(&p, k);
    for (u32 i = 0; i < p.n; i++) p.coef[i] /= g;
    p.k0 /= g;
    k /= g;
    const SymInfo *s = &ds->sym.at[p.sym[0]];
    if (p.n > 1 || p.coef[0] != 1 || !is_op(ds, p.sym[0], OP_div) || s->b < 0 || s->b > DIM_MAX / k)
      break;
    DimPoly x = poly_of(ds, s->a);
    x.k0 = muladd(&x, x.k0, p.k0, s->b);
    q.over |= x.over;
    k *= s->b;
    p = x;
  }
  Dim a = poly_dim(ds, &p);
  DimRange r = range_of(ds, a);
  if (!raw && find_op(ds, OP_div, a, k) == NO_SYM && r.lo > -DIM_MAX && r.hi < DIM_MAX &&
      floor_div(r.lo, k) == floor_div(r.hi, k)) {
    q.k0 = muladd(&q, q.k0, floor_div(r.lo, k), 1);
    return poly_dim(ds, &q);
  }
  add_term(ds, &q, mk_op(ds, OP_div, a, k), 1);
  return poly_dim(ds, &q);
}

/* Multivariate long division by leading terms; true, with the quotient, if it is exact. */
static bool div_exact(Dims *ds, const DimPoly *a, const DimPoly *b, DimPoly *q) {
  DimPoly rest = *a;
  *q = (DimPoly){.k0 = 0};
  for (u32 step = 0; step < 4 * DIM_TERMS; step++) {
    Sym s;
    if (rest.over) return false;
    if (rest.n == 0) return rest.k0 == 0 && !q->over;
    if (rest.coef[0] % b->coef[0] != 0) return false;
    if (!mono_div(ds, rest.sym[0], b->sym[0], &s)) return false;
    i64 coef = rest.coef[0] / b->coef[0];
    add_term(ds, q, s, coef);
    add_scaled(ds, &rest, b, s, -coef);
  }
  return false;
}

/* The largest monomial that divides every term of p and g; NO_SYM: none. */
static Sym common(Dims *ds, const DimPoly *p, Sym g) {
  if (p->k0 != 0) return NO_SYM;
  for (u32 i = 0; i < p->n && g != NO_SYM; i++) {
    Sym x[DIM_FACTORS], y[DIM_FACTORS], both[DIM_FACTORS];
    u32 nx = dim_factors(ds, g, x), ny = dim_factors(ds, p->sym[i], y), n = 0;
    for (u32 j = 0, k = 0; j < nx && k < ny;) {
      if (x[j] == y[k]) {
        both[n++] = x[j];
        j++, k++;
      } else if (cmp_atom(ds, x[j], y[k]) < 0) {
        j++;
      } else {
        k++;
      }
    }
    g = join(ds, both, n);
  }
  return g;
}

/* p / (g * s), known to be exact. */
static DimPoly cancel(Dims *ds, const DimPoly *p, i64 g, Sym s) {
  DimPoly r = {.k0 = p->k0 / g, .over = p->over};
  for (u32 i = 0; i < p->n; i++) {
    Sym t = p->sym[i];
    mono_div(ds, p->sym[i], s, &t);
    add_term(ds, &r, t, p->coef[i] / g);
  }
  return r;
}

static void check_divisor(Dims *ds, Dim b) {
  if (b == 0) fail(ds->c, ERR_input, LOC_NONE, "division of a dimension by zero");
}

Dim dim_div_with(Dims *ds, Dim a, Dim b, bool raw) {
  check_divisor(ds, b);
  if (a >= 0 && b > 0) return a / b;
  if (a == 0 || b == 1) return a;
  DimPoly p = poly_of(ds, a), q = poly_of(ds, b), r;
  if (b > 0) return div_const(ds, p, b, raw);
  i64 g = content(&p, content(&q, gcd(p.k0, q.k0)));
  Sym s = p.n > 0 ? common(ds, &p, common(ds, &q, q.sym[0])) : NO_SYM;
  p = cancel(ds, &p, g, s);
  q = cancel(ds, &q, g, s);
  if (q.n == 0 && q.k0 > 0) return div_const(ds, p, q.k0, raw);
  if (q.n > 0 && div_exact(ds, &p, &q, &r)) return poly_dim(ds, &r);
  a = poly_dim(ds, &p);
  b = poly_dim(ds, &q);
  DimRange x = range_of(ds, a), y = range_of(ds, b);
  if (!raw && find_op(ds, OP_div, a, b) == NO_SYM && x.lo >= 0 && x.hi < y.lo) return 0;
  return dim_of_sym(ds, mk_op(ds, OP_div, a, b));
}

/* p with coefficients modulo k; expands inner remainders by a multiple of k. */
static DimPoly reduce(Dims *ds, DimPoly p, i64 k) {
  for (u32 i = 0; i < p.n;) {
    const SymInfo *s = &ds->sym.at[p.sym[i]];
    i64 coef = p.coef[i] - floor_div(p.coef[i], k) * k;
    bool opens = is_op(ds, p.sym[i], OP_mod) && s->b > 0 && s->b % k == 0;
    p.coef[i] = coef;
    if (coef != 0 && !opens) {
      i++;
      continue;
    }
    drop_term(&p, i);
    if (coef == 0) continue;
    DimPoly x = poly_of(ds, s->a);
    poly_add(ds, &p, &x, coef);
    i = 0;
  }
  p.k0 -= floor_div(p.k0, k) * k;
  return p;
}

/* p mod k for a constant k > 0. Common divisors are factored out: (g x + g r + t) mod (g k) = g ((x
 * + r) mod k) + t for t < g. With the smaller k more terms may reduce. */
static Dim mod_const(Dims *ds, DimPoly p, i64 k, bool raw) {
  i64 scale = 1, rest = 0, g = 0;
  while (g != 1) {
    p = reduce(ds, p, k);
    g = p.n > 0 ? content(&p, k) : 1;
    rest += scale * (p.k0 % g);
    scale *= g;
    for (u32 i = 0; i < p.n; i++) p.coef[i] /= g;
    p.k0 /= g;
    k /= g;
  }
  DimPoly q = {.k0 = 0}, out = poly_const(rest);
  if (p.n == 0) {
    q = p;
  } else {
    Dim a = poly_dim(ds, &p);
    DimRange r = range_of(ds, a);
    if (!raw && find_op(ds, OP_mod, a, k) == NO_SYM && r.lo > -DIM_MAX && r.hi < DIM_MAX &&
        floor_div(r.lo, k) == floor_div(r.hi, k)) {
      q = p;
      q.k0 -= floor_div(r.lo, k) * k;
    } else {
      add_term(ds, &q, mk_op(ds, OP_mod, a, k), 1);
    }
  }
  poly_add(ds, &out, &q, scale);
  return poly_dim(ds, &out);
}

Dim dim_mod_with(Dims *ds, Dim a, Dim b, bool raw) {
  check_divisor(ds, b);
  if (a >= 0 && b > 0) return a % b;
  if (a == 0 || b == 1 || a == b) return 0;
  DimPoly p = poly_of(ds, a), q = poly_of(ds, b), r;
  if (b > 0) return mod_const(ds, p, b, raw);
  if (div_exact(ds, &p, &q, &r)) return 0;
  DimRange x = range_of(ds, a), y = range_of(ds, b);
  if (!raw && find_op(ds, OP_mod, a, b) == NO_SYM && x.lo >= 0 && x.hi < y.lo) return a;
  return dim_of_sym(ds, mk_op(ds, OP_mod, a, b));
}

/* ---- min and max ---- */

static bool has_operand(const Dims *ds, Dim d, Op op, Dim x) {
  Sym s = dim_only_sym(ds, d);
  return is_op(ds, s, op) && (ds->sym.at[s].a == x || ds->sym.at[s].b == x);
}

Dim dim_minmax_with(Dims *ds, Op op, Dim a, Dim b, bool raw) {
  Op other = op == OP_min ? OP_max : OP_min;
  if (a == b) return a;
  if (a >= 0 && b >= 0) return (a < b) == (op == OP_min) ? a : b;
  if (has_operand(ds, b, op, a) || has_operand(ds, a, other, b)) return b;
  if (has_operand(ds, a, op, b) || has_operand(ds, b, other, a)) return a;
  DimPoly diff = poly_of(ds, a), q = poly_of(ds, b);
  poly_add(ds, &diff, &q, -1);
  DimRange r = {-DIM_MAX, DIM_MAX};
  if (!diff.over) r = poly_range(ds, diff.k0, diff.n, diff.sym, diff.coef);
  if (cmp_dim(ds, a, b) > 0) {
    Dim t = a;
    a = b;
    b = t;
    r = (DimRange){-r.hi, -r.lo};
  }
  if ((!raw && find_op(ds, op, a, b) == NO_SYM) || diff.n == 0) {
    if (r.lo >= 0) return op == OP_min ? b : a;
    if (r.hi <= 0) return op == OP_min ? a : b;
  }
  return dim_of_sym(ds, mk_op(ds, op, a, b));
}

Dim dim_div(Dims *ds, Dim a, Dim b) {
  return dim_div_with(ds, a, b, false);
}

Dim dim_mod(Dims *ds, Dim a, Dim b) {
  return dim_mod_with(ds, a, b, false);
}

Dim dim_min(Dims *ds, Dim a, Dim b) {
  return dim_minmax_with(ds, OP_min, a, b, false);
}

Dim dim_max(Dims *ds, Dim a, Dim b) {
  return dim_minmax_with(ds, OP_max, a, b, false);
}

/* ---- queries ---- */

DimTerms dim_terms(const Dims *ds, Dim d) {
  if (dim_is_const(d)) return (DimTerms){.k0 = d};
  const DimAffine *f = aff_of(ds, d);
  return (DimTerms){f->k0, f->n, f->sym, f->coef};
}

/* Values are clamped to 2^62, far beyond any real extent, so that nothing overflows. */
#define EVAL_MAX ((i64)1 << 62)

static i64 eval_sym(const Dims *ds, Sym s, const i64 *env) {
  const SymInfo *i = &ds->sym.at[s];
  if (i->kind != SY_derived) return within(env[s], EVAL_MAX);
  i64 a = dim_eval(ds, i->a, env), b = dim_eval(ds, i->b, env);
  switch (i->op) {
  case OP_mul: return mul_within(a, b, EVAL_MAX);
  case OP_div: return b > 0 ? floor_div(a, b) : 0;
  case OP_mod: return b > 0 ? a - floor_div(a, b) * b : 0;
  case OP_min: return a < b ? a : b;
  case OP_max: return a > b ? a : b;
  default: return 0;
  }
}

i64 dim_eval(const Dims *ds, Dim d, const i64 *env) {
  if (d >= 0) return d;
  const DimAffine *f = aff_of(ds, d);
  i64 r = f->k0;
  for (u32 i = 0; i < f->n; i++)
    r = within(r + mul_within(f->coef[i], eval_sym(ds, f->sym[i], env), EVAL_MAX), EVAL_MAX);
  return r;
}
