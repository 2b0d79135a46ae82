/* trip_count.c: derives the trip count of a loop from its condition.
 *
 * In: the carried values of a loop, its trip count, and the conditions before it and at the end of
 * its body. Out: a trip count that includes the limits of counters in these conditions, and the
 * conditions without these limits. Method: in iteration k a counter is a line base + add + step *
 * k, with a loop-invariant base. A condition is split at its `and`s. A comparison of two lines has
 * a gap that closes by a fixed step, so it first fails at a known k. The condition before the loop
 * is usually that of k = -1, and then the loop runs 0 or more times; otherwise at least once. Other
 * terms stay in the condition, and the count is an upper bound.
 *
 * Lines are mathematical integers, but values wrap or are rounded. A comparison is used only if all
 * values it reads stay in the range where their type is exact. */
#include "ir/graph/graph.h"

#include "ir/graph/loop.h"

enum { TRIP_DEPTH = 32, TRIP_TERMS = 16, TRIP_VISITS = 2000 };
static const i64 FAR = INT64_MAX / 4; /* sums of a few such numbers do not overflow */

/* Range of integers that a type represents exactly. */
typedef struct Exact {
  i64 lo, hi;
} Exact;

/* base + add + step * k; base: a loop-invariant integer scalar, 0: none. */
typedef struct TripLine {
  Val base;
  i64 add, step;
  Exact exact; /* while in this range, no integer on the way has wrapped */
  Exact round; /* while in this range, no float was rounded; values beyond reach its ends at most */
} TripLine;

static const TripLine NO_LINE = {.exact = {INT64_MIN, INT64_MAX}, .round = {INT64_MIN, INT64_MAX}};

/* The comparison holds in iteration k iff y - x + add - by * k > 0, by > 0. */
typedef struct Gap {
  Val y, x; /* 0: none */
  i64 add, by;
} Gap;

typedef struct Terms {
  Val at[TRIP_TERMS]; /* operands of the `and`s */
  u32 n;
  bool over;
} Terms;

/* u64 exceeds i64: its range is empty. */
static Exact exact_in(DType dt) {
  u32 digits = 0;
  Exact e;
  switch (dt) {
  case DT_f64: digits = 53; break;
  case DT_f32: digits = 24; break;
  case DT_f16: digits = 11; break;
  case DT_bf16: digits = 8; break;
  default: break;
  }
  if (digits) return (Exact){-((i64)1 << digits), (i64)1 << digits};
  return dtype_int_range(dt, &e.lo, &e.hi) && dt != DT_bool ? e : (Exact){0, 0};
}

static bool has_numbers(DType dt) {
  return exact_in(dt).hi > 0;
}

static bool contains(Exact a, Exact b) {
  return a.lo <= b.lo && a.hi >= b.hi;
}

static Exact common(Exact a, Exact b) {
  return (Exact){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

static bool is_single(Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] != 1) return false;
  return t->kind == TY_tensor;
}

static bool number(Graph *g, Val v, i64 *out) {
  const Tensor *t = graph_const(g, v);
  if (!t || t->n != 1 || !has_numbers(t->dt)) return false;
  Scalar s = tensor_get(t, 0);
  if (dtype_is_float(t->dt) && !(s.f >= -(double)FAR && s.f <= (double)FAR)) return false;
  *out = dtype_is_float(t->dt) ? (i64)s.f : s.i;
  if (dtype_is_float(t->dt) && (double)*out != s.f) return false;
  return *out >= -FAR && *out <= FAR;
}

/* ---- lines ---- */

static bool line_of(Graph *g, CountedLoop *l, Val v, u32 depth, TripLine *out);

static bool is_outside(const CountedLoop *l, Val v) {
  return v < l->i;
}

/* Matches p + *step, through integer types in which p is exact. */
bool loop_steps(Graph *g, Val next, Val p, i64 *step) {
  i64 k;
  Exact mine = exact_in(graph_type(g, p)->dt);
  *step = 0;
  if (!dtype_is_int(graph_type(g, p)->dt)) return false;
  for (u32 depth = 0; depth < TRIP_DEPTH && next != p; depth++) {
    const Node *n = graph_producer(g, next);
    DType dt = graph_type(g, next)->dt;
    if (!n || !dtype_is_int(dt) || !contains(exact_in(dt), mine) || !is_single(g, next))
      return false;
    bool sum = n->op == OP_add || n->op == OP_sub, right = sum && number(g, n->in[1], &k);
    bool left = n->op == OP_add && !right && number(g, n->in[0], &k);
    if (sum && !left && !right) return false;
    if (!sum && n->op != OP_cast && n->op != OP_reshape) return false;
    if (sum) *step += n->op == OP_sub ? -k : k;
    if (*step > INT32_MAX || *step < -INT32_MAX || *step > mine.hi || *step < -mine.hi)
      return false;
    next = n->in[left ? 1 : 0];
  }
  return next == p;
}

/* Combines two bases into one loop-invariant value. */
static Val both(Graph *g, Op op, Val a, Val b) {
  if (!b || (!a && op == OP_add)) return a ? a : b;
  Val left = a ? mk_cast(g, mk_reshape(g, a, NULL, 0), DT_i64) : mk_scalar(g, DT_i64, 0);
  return mk_map2(g, op, left, mk_cast(g, mk_reshape(g, b, NULL, 0), DT_i64));
}

static bool is_number(const TripLine *l) {
  return !l->base && !l->step;
}

/* Is it free of operations that wrap or round? */
static bool is_sure(const TripLine *l) {
  return contains(l->exact, NO_LINE.exact) && contains(l->round, NO_LINE.round);
}

/* k + sign * x over the range of x; the limits of i64 mean unbounded. */
static Exact moved(i64 k, i64 sign, Exact x) {
  i64 lo = sign > 0 ? x.lo : x.hi, hi = sign > 0 ? x.hi : x.lo;
  bool none_lo = lo == INT64_MIN || lo == INT64_MAX, none_hi = hi == INT64_MIN || hi == INT64_MAX;
  return (Exact){none_lo ? INT64_MIN : k + sign * lo, none_hi ? INT64_MAX : k + sign * hi};
}

/* The range of a sum does not bound its parts, unless one is constant. */
static bool line_add(Graph *g, Op op, const TripLine *a, const TripLine *b, TripLine *out) {
  i64 sign = op == OP_sub ? -1 : 1;
  const TripLine *part = is_number(b) ? a : is_number(a) ? b : NULL;
  i64 off = part == a ? sign * b->add : a->add, turn = part == a ? 1 : sign;
  if (!part && !(is_sure(a) && is_sure(b))) return false;
  *out = (TripLine){both(g, op, a->base, b->base), a->add + sign * b->add, a->step + sign * b->step,
                    NO_LINE.exact, NO_LINE.round};
  if (part) out->exact = moved(off, turn, part->exact), out->round = moved(off, turn, part->round);
  return out->add >= -FAR && out->add <= FAR && out->step >= -INT32_MAX && out->step <= INT32_MAX;
}

/* A size that the loop does not decide is loop-invariant. */
static bool line_dims(Graph *g, const CountedLoop *l, Val v, TripLine *out) {
  Dim d;
  u32 n;
  if (!graph_dim_list(g, v, &d, 1, &n) || n != 1) return false;
  for (Sym s = l->nsyms; s < dim_nsyms(g->dims); s++)
    if (dim_syminfo(g->dims, s)->kind == SY_data && dim_mentions(g->dims, d, s)) return false;
  out->base = is_outside(l, v) ? v : mk_dims_as(g, DT_i64, 0, &d, 1);
  return true;
}

static bool line_param(Graph *g, CountedLoop *l, Val v, u32 depth, TripLine *out) {
  if (v == l->i) {
    out->step = 1;
    return true;
  }
  for (u32 k = 0; k < l->n; k++) {
    i64 step;
    if (l->param[k] != v || !loop_steps(g, l->next[k], v, &step)) continue;
    if (!line_of(g, l, l->init[k], depth + 1, out)) return false;
    if (step) out->exact = common(out->exact, exact_in(graph_type(g, v)->dt));
    out->step += step;
    return true;
  }
  return false;
}

/* Restricts the exact range of the line by a value of this type. */
static void go_through(TripLine *l, DType dt) {
  Exact *e = dtype_is_float(dt) ? &l->round : &l->exact;
  *e = common(*e, exact_in(dt));
}

static bool line_node(Graph *g, CountedLoop *l, const Node *n, Val v, u32 depth, TripLine *out) {
  TripLine a, b;
  DType dt = graph_type(g, v)->dt;
  if (n->op == OP_reshape) return line_of(g, l, n->in[0], depth + 1, out);
  if (n->op == OP_cast) {
    Exact from = exact_in(graph_type(g, n->in[0])->dt), to = exact_in(dt);
    if (!contains(to, from) && !dtype_is_float(dt) && is_outside(l, v)) {
      i64 lo, hi; /* a constant that wraps is used as wrapped */
      value_int_range(g, n->in[0], &lo, &hi);
      if (lo < to.lo || hi > to.hi) return false;
    }
    if (!line_of(g, l, n->in[0], depth + 1, out)) return false;
    if (!contains(to, from)) go_through(out, dt);
    return from.hi > 0;
  }
  if (n->op != OP_add && n->op != OP_sub) return false;
  if (!line_of(g, l, n->in[0], depth + 1, &a) || !line_of(g, l, n->in[1], depth + 1, &b))
    return false;
  if (!line_add(g, n->op, &a, &b, out)) return false;
  go_through(out, dt);
  return true;
}

static bool line_of(Graph *g, CountedLoop *l, Val v, u32 depth, TripLine *out) {
  *out = NO_LINE;
  if (depth > TRIP_DEPTH || ++l->visits > TRIP_VISITS || !is_single(g, v) ||
      !has_numbers(graph_type(g, v)->dt))
    return false;
  if (number(g, v, &out->add)) return true;
  if (line_dims(g, l, v, out)) return true;
  NodeId def = graph_val(g, v)->def;
  if (def && line_node(g, l, graph_node(g, def), v, depth, out)) return true;
  *out = NO_LINE;
  if (!is_outside(l, v)) return !def && line_param(g, l, v, depth, out);
  out->base = v;
  return dtype_is_int(graph_type(g, v)->dt);
}

/* ---- comparisons ---- */

static i64 far_add(i64 a, i64 b) {
  i64 sum;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

/* Does the line stay exact from its start until it has passed `other` by at most `past`? A constant
 * float may be rounded on the side away from `other`. */
static bool stays_exact(Graph *g, const TripLine *a, const TripLine *other, i64 past, bool above) {
  i64 lo = 0, hi = 0, olo = 0, ohi = 0;
  if (a->base) value_int_range(g, a->base, &lo, &hi);
  if (other->base) value_int_range(g, other->base, &olo, &ohi);
  lo = far_add(lo, a->add), hi = far_add(hi, a->add);
  olo = far_add(olo, other->add), ohi = far_add(ohi, other->add);
  if (a->step > 0) hi = far_add(ohi > hi ? ohi : hi, past);
  if (a->step < 0) lo = far_add(olo < lo ? olo : lo, -past);
  bool low = !a->step && above && olo > a->round.lo, high = !a->step && !above && ohi < a->round.hi;
  return contains(a->exact, (Exact){lo, hi}) && (lo >= a->round.lo || low) &&
         (hi <= a->round.hi || high);
}

/* Matches a comparison of lines whose gap closes. Outside of loops the gap may stay. */
static bool gap_of(Graph *g, CountedLoop *l, Val cond, bool inside, Gap *out) {
  bool flip = false;
  NodeId def = graph_val(g, cond)->def;
  for (u32 depth = 0; def && depth < TRIP_DEPTH; depth++) { /* through not, and to one element */
    const Node *n = graph_node(g, def);
    if (n->op != OP_not && n->op != OP_reshape) break;
    flip ^= n->op == OP_not;
    def = graph_val(g, n->in[0])->def;
  }
  const Node *n = def ? graph_node(g, def) : NULL;
  if (!n || (n->op != OP_lt && n->op != OP_le && n->op != OP_gt && n->op != OP_ge)) return false;
  TripLine a, b;
  bool less = n->op == OP_lt || n->op == OP_le, strict = n->op == OP_lt || n->op == OP_gt;
  Val left = n->in[0], right = n->in[1];
  if (flip) less = !less, strict = !strict;
  if (!line_of(g, l, less ? left : right, 0, &a) || !line_of(g, l, less ? right : left, 0, &b))
    return false;
  i64 by = a.step - b.step, past = (by > 0 ? by : 0) - strict;
  if (inside ? by <= 0 : by != 0) return false;
  if (past < 0) past = 0;
  if (!stays_exact(g, &a, &b, past, false) || !stays_exact(g, &b, &a, past, true)) return false;
  *out = (Gap){b.base, a.base, b.add - a.add + !strict, by};
  return true;
}

/* y - x + add as a dimension, if it is a dimension or an integer. */
static bool gap_dim(Graph *g, const Gap *p, Dim *d, i64 *k, bool *fixed) {
  const i64 off = DIM_MAX / 4;
  Dim y = 0, x = 0;
  u32 n;
  if (p->y && !graph_dim_list(g, p->y, &y, 1, &n)) return false;
  if (p->x && !graph_dim_list(g, p->x, &x, 1, &n)) return false;
  if (p->add > off || p->add < -off || y > off || x > off) return false;
  *d = dim_sub(g->dims, dim_addk(g->dims, y, off), x);
  *fixed = dim_is_const(*d);
  if (*fixed)
    *k = *d - off + p->add;
  else
    *d = dim_addk(g->dims, *d, p->add - off);
  return true;
}

static bool same_gap(Graph *g, const Gap *a, const Gap *b) {
  if (a->y == b->y && a->x == b->x) return a->add == b->add;
  Dim da, db;
  i64 ka = 0, kb = 0;
  bool fa, fb;
  if (!gap_dim(g, a, &da, &ka, &fa) || !gap_dim(g, b, &db, &kb, &fb)) return false;
  return fa == fb && (fa ? ka == kb : da == db);
}

/* base + more without overflow: iterations beyond FAR are never reached in practice. */
static Val at_index(Graph *g, Val base, i64 more) {
  Val k = mk_reshape(g, mk_ints(g, &more, 1), NULL, 0);
  if (!base) return k;
  i64 lo, hi, min = -FAR, max = FAR;
  Val v = mk_cast(g, mk_reshape(g, base, NULL, 0), DT_i64);
  value_int_range(g, base, &lo, &hi);
  if (lo < min) v = mk_max(g, v, mk_reshape(g, mk_ints(g, &min, 1), NULL, 0));
  if (hi > max) v = mk_min(g, v, mk_reshape(g, mk_ints(g, &max, 1), NULL, 0));
  return more ? mk_add(g, v, k) : v;
}

/* Trip count until the gap closes, at least `min_trip_count`. The gap already includes its value
 * before the first iteration. */
static Val gap_trip_count(Graph *g, const Gap *p, i64 min_trip_count) {
  Dim d;
  i64 k;
  bool fixed;
  if (gap_dim(g, p, &d, &k, &fixed)) {
    if (fixed) d = k > 0 ? (k - 1) / p->by + 1 : 0;
    if (!fixed) {
      d = dim_max(g->dims, d, 0);
      d = dim_div(g->dims, dim_addk(g->dims, d, p->by - 1), p->by);
    }
    d = dim_max(g->dims, d, min_trip_count);
    return mk_dims_as(g, DT_i64, 0, &d, 1);
  }
  Val y = at_index(g, p->y, p->add > 0 ? p->add : 0);
  Val x = at_index(g, p->x, p->add < 0 ? -p->add : 0);
  Val n = mk_sub(g, mk_max(g, y, x), x);
  if (p->by > 1) {
    n = mk_add(g, n, mk_scalar(g, DT_i64, (double)(p->by - 1)));
    n = mk_div(g, n, mk_scalar(g, DT_i64, (double)p->by));
  }
  return min_trip_count ? mk_max(g, n, mk_scalar(g, DT_i64, (double)min_trip_count)) : n;
}

/* ---- the loop ---- */

bool loop_always(Graph *g, Val cond) {
  const Tensor *t = graph_const(g, cond);
  return t && t->n == 1 && tensor_get(t, 0).i;
}

/* Collects the operands of nested `and`s; skips a condition that only repeats the previous one. */
static void split_ands(Graph *g, CountedLoop *l, Val v, Terms *t, u32 depth) {
  const Node *n = graph_producer(g, v);
  if (v == l->go || loop_always(g, v)) return;
  if (++l->visits > TRIP_VISITS) t->over = true;
  if (t->over) return;
  if (n && n->op == OP_reshape && depth < TRIP_DEPTH && is_single(g, n->in[0])) {
    split_ands(g, l, n->in[0], t, depth + 1);
  } else if (n && n->op == OP_and && depth < TRIP_DEPTH) {
    split_ands(g, l, n->in[0], t, depth + 1);
    split_ands(g, l, n->in[1], t, depth + 1);
  } else if (t->n == TRIP_TERMS) {
    t->over = true;
  } else {
    t->at[t->n++] = v;
  }
}

/* Joins the remaining terms again. */
static Val put_together(Graph *g, const Terms *t) {
  Val v = 0;
  for (u32 i = 0; i < t->n; i++) {
    if (!t->at[i]) continue;
    Val one = mk_reshape(g, t->at[i], NULL, 0);
    v = v ? mk_and(g, v, one) : one;
  }
  return v ? v : mk_scalar(g, DT_bool, 1);
}

static Val fewer(Graph *g, Val trip, Val n) {
  const Tensor *t = graph_const(g, trip);
  if (t && tensor_get(t, 0).i == INT64_MAX) return n;
  return mk_min(g, trip, n);
}

void loop_count(Graph *g, CountedLoop *l, RegionId body) {
  Terms first = {.n = 0}, then = {.n = 0};
  RegionId outer = g->cur;
  split_ands(g, l, l->cond, &first, 0);
  split_ands(g, l, l->more, &then, 0);
  if (first.over || then.over) return;
  Gap start[TRIP_TERMS];
  bool known[TRIP_TERMS], any = false;
  for (u32 i = 0; i < first.n; i++) known[i] = gap_of(g, l, first.at[i], false, &start[i]);
  for (u32 k = 0; k < then.n; k++) {
    Gap p;
    if (!gap_of(g, l, then.at[k], true, &p)) continue;
    p.add += p.by;
    i64 min_trip_count = 1;
    for (u32 i = 0; i < first.n; i++)
      if (known[i] && same_gap(g, &start[i], &p)) min_trip_count = first.at[i] = 0;
    l->trip = fewer(g, l->trip, gap_trip_count(g, &p, min_trip_count));
    then.at[k] = 0;
    any = true;
  }
  if (!any) return;
  l->cond = put_together(g, &first);
  g->cur = body;
  l->more = put_together(g, &then);
  g->cur = outer;
}
