/* Random graphs: every sequence of passes leaves the results as they are, to the bit.
 *
 * A graph is made from a seed, evaluated by the reference, sent through passes in random order with
 * the verifier after each, and evaluated again. Its text is read back before and after. Values are
 * drawn so that the rules have something to find: zeros of both signs, ones, infinities, NaN,
 * shapes with extents 0, 1 and a symbol, operations on the same operand, views of views, known
 * conditions.
 */
#include "check.h"
#include "pass/pass.h"
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 3000, NODES = 24, BATCH = 3 };

typedef struct Gen {
  Graph *g;
  u64 state;
  Val val[256]; /* visible values */
  u32 n;
  u32 depth;
  Dim batch;
} Gen;

static u32 below(Gen *r, u32 n) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (u32)(r->state >> 33) % n;
}

static Type *type_of(Gen *r, Val v) {
  return graph_type(r->g, v);
}

static void keep(Gen *r, Val v) {
  if (r->n < 256) r->val[r->n++] = v;
}

/* ---- operands ---- */

/* Often a recent one, so that chains arise. */
static Val any(Gen *r) {
  u32 recent = r->n < 4 ? r->n : 4;
  return r->val[below(r, 2) ? r->n - 1 - below(r, recent) : below(r, r->n)];
}

static Val any_of(Gen *r, DType dt) {
  u32 start = below(r, r->n);
  for (u32 i = 0; i < r->n; i++) {
    Val v = r->val[(start + i) % r->n];
    if (type_of(r, v)->dt == dt) return v;
  }
  return 0;
}

static Scalar pick(Gen *r, DType dt) {
  static const double f[] = {0.0, -0.0, 1, 1, -1, 0.5, 2, 3, -7, 1e30, 65504};
  if (!dtype_is_float(dt)) {
    i64 x = below(r, 4) ? (i64)below(r, 5) - 1 : (i64)below(r, 1000) - 500;
    return (Scalar){.i = dt == DT_bool ? x & 1 : scalar_wrap(dt, x)};
  }
  u32 k = below(r, 3) ? below(r, 16) : below(r, 4);
  if (k == 11) return (Scalar){.f = strtod("inf", NULL)};
  if (k == 12) return (Scalar){.f = -strtod("inf", NULL)};
  if (k == 13) return (Scalar){.f = strtod("nan", NULL)};
  return (Scalar){.f = scalar_round(dt, k < 11 ? f[k] : (double)below(r, 1000) / 64)};
}

static Val constant(Gen *r, DType dt, const Dim *dim, u32 rank) {
  Tensor *t = tensor_new(&r->g->c->work, dt, dim, rank);
  Scalar same = pick(r, dt);
  bool uniform = below(r, 2);
  for (u64 i = 0; i < t->n; i++) tensor_set(t, i, uniform ? same : pick(r, dt));
  return mk_const(r->g, t);
}

static DType any_dtype(Gen *r) {
  static const DType all[] = {DT_f32, DT_f32,  DT_f32,  DT_f16,      DT_bf16,  DT_f64, DT_i64,
                              DT_i64, DT_i32,  DT_i16,  DT_i8,       DT_u8,    DT_u32, DT_u64,
                              DT_i4,  DT_bool, DT_bool, DT_f8e4m3fn, DT_f8e5m2};
  return all[below(r, sizeof all / sizeof *all)];
}

/* A value that broadcasts against v: itself, a scalar, one with some extents 1. */
static Val partner(Gen *r, Val v) {
  Type t = *type_of(r, v);
  Dim dim[MAX_RANK];
  if (!below(r, 4)) return v;
  for (u32 k = 0; k < 4; k++) {
    Val w = any(r);
    if (type_equal(type_of(r, w), &t)) return w;
  }
  u32 rank = below(r, t.rank + 1);
  for (u32 i = 0; i < rank; i++) {
    Dim d = t.dim[t.rank - rank + i];
    dim[i] = below(r, 2) && dim_is_const(d) ? d : 1;
  }
  Val c = constant(r, t.dt, dim, rank);
  return below(r, 2) ? c : mk_broadcast(r->g, c, t.dim, t.rank);
}

/* ---- one node of each kind ---- */

/* Half of them from those that have rules. */
static Op any_map(Gen *r) {
  static const Op ruled[] = {OP_add, OP_sub, OP_mul, OP_div, OP_max, OP_min, OP_pow,
                             OP_and, OP_or,  OP_xor, OP_not, OP_neg, OP_abs, OP_floor};
  return below(r, 2) ? (Op)below(r, OP_SCALARS) : ruled[below(r, sizeof ruled / sizeof *ruled)];
}

static Val map(Gen *r) {
  Val a = any(r), b;
  Op op;
  do op = any_map(r);
  while (op == OP_cast || op == OP_bitcast || !op_accepts(op, type_of(r, a)->dt));
  if (op == OP_select) {
    Val c = any_of(r, DT_bool);
    b = partner(r, a);
    if (!c || below(r, 2)) c = constant(r, DT_bool, NULL, 0);
    if (type_of(r, c)->rank) c = constant(r, DT_bool, NULL, 0);
    return mk_select(r->g, c, a, b);
  }
  switch (op_info[op].nin_min) {
  case 1: return mk_map1(r->g, op, a);
  case 2: b = partner(r, a); return below(r, 2) ? mk_map2(r->g, op, a, b) : mk_map2(r->g, op, b, a);
  default: return 0;
  }
}

static Val cast(Gen *r) {
  Val a = any(r);
  DType to = any_dtype(r);
  return below(r, 4) ? mk_cast(r->g, a, to) : mk_cast_sat(r->g, a, to);
}

static Val reshape(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  Dim dim[MAX_RANK];
  u32 rank = 0;
  for (u32 i = 0; i < t.rank; i++) {
    if (rank < 5 && !below(r, 3)) dim[rank++] = 1;
    if (t.dim[i] != 1) dim[rank++] = t.dim[i];
  }
  if (rank > 1 && below(r, 2)) {
    dim[0] = dim_product(r->g->dims, dim, rank);
    rank = 1;
  }
  return mk_reshape(r->g, a, dim, rank);
}

static Val transpose(Gen *r) {
  Val a = any(r);
  u32 rank = type_of(r, a)->rank;
  i64 perm[MAX_RANK];
  for (u32 i = 0; i < rank; i++) {
    u32 j = below(r, i + 1);
    perm[i] = perm[j];
    perm[j] = i;
  }
  return mk_transpose(r->g, a, perm);
}

static Val slice(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  Dim start[MAX_RANK], size[MAX_RANK];
  i64 step[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) {
    start[i] = 0;
    step[i] = 1;
    size[i] = t.dim[i];
    if (!dim_is_const(t.dim[i]) || t.dim[i] == 0 || below(r, 2)) continue;
    u32 d = (u32)t.dim[i], at = below(r, d);
    start[i] = at;
    step[i] = below(r, 2) ? 1 : -1;
    if (d > 3 && below(r, 2)) step[i] *= 2;
    u32 room = step[i] > 0 ? (d - 1 - at) / (u32)step[i] : at / (u32)-step[i];
    size[i] = 1 + below(r, room + 1);
  }
  return mk_slice(r->g, a, start, size, step);
}

static Val broadcast(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  Dim dim[MAX_RANK];
  if (t.rank > 3) return 0;
  u32 extra = below(r, 2);
  for (u32 i = 0; i < extra; i++) dim[i] = below(r, 2) ? r->batch : 1 + below(r, 3);
  for (u32 i = 0; i < t.rank; i++) dim[extra + i] = t.dim[i] == 1 && below(r, 2) ? 2 : t.dim[i];
  return mk_broadcast(r->g, a, dim, t.rank + extra);
}

static Val concat(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  if (!t.rank) return 0;
  u32 axis = below(r, t.rank);
  if (dim_is_const(t.dim[axis]) && t.dim[axis] > 1 && below(r, 2)) { /* cut and joined again */
    Dim cut = 1 + below(r, (u32)t.dim[axis] - 1);
    Val p[2] = {mk_slice_axis(r->g, a, axis, 0, cut),
                mk_slice_axis(r->g, a, axis, cut, t.dim[axis] - cut)};
    return mk_concat(r->g, p, 2, axis);
  }
  Val p[3] = {a, partner(r, a), a};
  if (!type_equal(type_of(r, p[1]), &t)) p[1] = a;
  return mk_concat(r->g, p, 2 + below(r, 2), axis);
}

static Val pad(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  Dim lo[MAX_RANK], hi[MAX_RANK];
  i64 mid[MAX_RANK];
  for (u32 i = 0; i < t.rank; i++) {
    lo[i] = below(r, 2);
    hi[i] = below(r, 2);
    mid[i] = dim_is_const(t.dim[i]) ? below(r, 2) : 0;
  }
  return mk_pad(r->g, a, constant(r, t.dt, NULL, 0), lo, hi, mid);
}

static Val gather(Gen *r) {
  Val a = any(r);
  Type t = *type_of(r, a);
  if (!t.rank) return 0;
  u32 axis = below(r, t.rank);
  i64 lo, hi;
  dim_bounds(r->g->dims, t.dim[axis], &lo, &hi);
  if (lo < 1) return 0;
  Dim n = 1 + below(r, 3);
  Tensor *idx = tensor_new(&r->g->c->work, DT_i64, &n, below(r, 2));
  i64 first = (i64)below(r, 6) - 2, step = (i64)below(r, 4) - 1;
  for (u64 i = 0; i < idx->n; i++) tensor_set(idx, i, (Scalar){.i = first + step * (i64)i});
  return mk_gather(r->g, a, mk_const(r->g, idx), axis);
}

static Val reduce(Gen *r) {
  static const Op ops[] = {OP_reduce_sum, OP_reduce_prod, OP_reduce_max, OP_reduce_min};
  Val a = any(r);
  Type t = *type_of(r, a);
  i64 axes[MAX_RANK];
  u32 n = 0;
  for (u32 i = 0; i < t.rank; i++) {
    if (below(r, 2)) axes[n++] = i;
  }
  return t.dt == DT_bool ? 0 : mk_reduce(r->g, ops[below(r, 4)], a, axes, n, below(r, 2));
}

static Val nonzero(Gen *r) {
  Val a = any(r);
  Val found = mk_nonzero(r->g, a);
  return below(r, 2) ? found : mk_dims(r->g, type_of(r, found)->dim, 2);
}

static Val leaf(Gen *r) {
  Dim dim[3];
  u32 rank = below(r, 4);
  for (u32 i = 0; i < rank; i++) dim[i] = below(r, 10) ? 1 + below(r, 4) : 0;
  if (below(r, 4)) return constant(r, any_dtype(r), dim, rank);
  dim[0] = r->batch;
  return rank ? mk_iota(r->g, DT_i64, dim, rank, below(r, rank)) : mk_dims(r->g, &r->batch, 1);
}

static void grow(Gen *r, u32 count);

static Val condition(Gen *r) {
  for (u32 i = 0; i < r->n && below(r, 2); i++) {
    const Type *t = type_of(r, r->val[i]);
    if (t->dt == DT_bool && !t->rank) return r->val[i];
  }
  return constant(r, DT_bool, NULL, 0);
}

/* An if whose branches give the same type, or types that differ in an extent. */
static Val branch(Gen *r) {
  Graph *g = r->g;
  Val c = condition(r), x = any(r);
  RegionId outer = g->cur, region[2];
  u32 seen = r->n;
  for (u32 k = 0; k < 2; k++) {
    g->cur = region[k] = graph_region(g, 0);
    r->depth++;
    grow(r, 3);
    r->depth--;
    Val y = x;
    for (u32 i = seen; i < r->n; i++) {
      const Type *t = type_of(r, r->val[i]), *want = type_of(r, x);
      if (t->dt == want->dt && t->rank == want->rank) y = r->val[i];
    }
    *vec_push(&g->c->work, &g->region.at[region[k]].ret) = y;
    r->n = seen;
  }
  g->cur = outer;
  return graph_node(g, graph_add_control(g, OP_if, &c, 1, NULL, 0, region, 2))->out[0];
}

static void body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Gen *r = user;
  u32 seen = r->n;
  (void)g;
  keep(r, i);
  keep(r, *cond);
  keep(r, carried[0]);
  Type t = *type_of(r, carried[0]);
  grow(r, 4);
  scan[0] = carried[0];
  for (u32 k = seen; k < r->n; k++) {
    if (type_equal(type_of(r, r->val[k]), &t)) carried[0] = r->val[k];
  }
  r->n = seen;
}

static Val loop(Gen *r) {
  Val carried = any(r), scan;
  if (type_of(r, carried)->rank > 4) return 0;
  Val trip = mk_scalar(r->g, DT_i64, below(r, 3)), c = below(r, 2) ? condition(r) : 0;
  r->depth++;
  mk_loop(r->g, trip, c, &carried, 1, &scan, 1, body, r);
  r->depth--;
  keep(r, scan);
  return carried;
}

static Val (*const makers[])(Gen *) = {map,     map,   map,       map,    cast, reshape, transpose,
                                       slice,   slice, broadcast, concat, pad,  gather,  reduce,
                                       nonzero, leaf,  leaf,      branch, loop};

static bool small(Gen *r, Val v) {
  i64 lo, hi;
  const Type *t = type_of(r, v);
  if (t->rank > 5) return false;
  dim_bounds(r->g->dims, type_count(r->g->dims, t), &lo, &hi);
  return hi < 20000;
}

static void grow(Gen *r, u32 count) {
  u32 n = sizeof makers / sizeof *makers;
  for (u32 i = 0; i < count; i++) {
    Val v = makers[below(r, r->depth > 1 ? n - 2 : n)](r);
    if (v && small(r, v)) keep(r, v);
  }
}

/* ---- a graph and its results ---- */

static Graph *make(Ctx *c, u64 seed) {
  Graph *g = graph_new(c);
  Gen r = {.g = g, .state = seed * 2654435761u + 12345};
  r.batch = dim_of_sym(g->dims, dim_sym(g->dims, SY_input, str_of(c, "n"), 1, 8));
  Dim dim[3] = {r.batch, 2, 3};
  keep(&r, graph_param(g, 1, type_tensor(&c->work, DT_f32, dim, 2), str_of(c, "x")));
  keep(&r, graph_param(g, 1, type_tensor(&c->work, DT_f32, dim + 1, 2), str_of(c, "y")));
  keep(&r, graph_param(g, 1, type_tensor(&c->work, DT_i64, dim + 1, 1), str_of(c, "i")));
  keep(&r, graph_param(g, 1, type_tensor(&c->work, DT_bool, dim, 0), str_of(c, "b")));
  grow(&r, NODES);
  for (u32 i = 0; i < r.n; i++) {
    if (!below(&r, 4)) continue;
    *vec_push(&c->work, &g->region.at[1].ret) = r.val[i];
    *vec_push(&c->work, &g->out_name) = below(&r, 2) ? str_fmt(c, "out%u", i) : 0;
  }
  return g;
}

static Tensor **evaluate(Ctx *c, Graph *g, u64 seed) {
  Gen r = {.g = g, .state = seed};
  u32 nin = g->region.at[1].param.n;
  Tensor *in[4], **out = NEWS(&c->keep, Tensor *, g->region.at[1].ret.n);
  for (u32 i = 0; i < nin; i++) {
    const Type *t = graph_type(g, g->region.at[1].param.at[i]);
    i64 dim[MAX_RANK];
    for (u32 k = 0; k < t->rank; k++) dim[k] = dim_is_const(t->dim[k]) ? t->dim[k] : BATCH;
    in[i] = tensor_new(&c->keep, t->dt, dim, t->rank);
    for (u64 k = 0; k < in[i]->n; k++) tensor_set(in[i], k, pick(&r, t->dt));
  }
  RefOptions o = {.seed = 1};
  ref_run(g, &o, in, out, &c->keep);
  return out;
}

/* NaN equals NaN; everything else by its bits. */
static bool same_tensor(const Tensor *a, const Tensor *b) {
  if (a->dt != b->dt || a->rank != b->rank || a->n != b->n) return false;
  for (u32 i = 0; i < a->rank; i++) {
    if (a->dim[i] != b->dim[i]) return false;
  }
  for (u64 i = 0; i < a->n; i++) {
    Scalar x = tensor_get(a, i), y = tensor_get(b, i);
    if (dtype_is_float(a->dt) && x.f != x.f && y.f != y.f) continue;
    if (memcmp(&x, &y, sizeof x)) return false;
  }
  return true;
}

static StrBuf print(Ctx *c, Graph *g) {
  StrBuf t = sb_new(&c->keep);
  graph_print(g, &t, NULL);
  sb_cstr(&t);
  return t;
}

static Graph *reread(Ctx *c, Graph *g) {
  StrBuf t = print(c, g);
  Graph *h = graph_parse(c, t.at, t.n, 0, NULL, 0);
  StrBuf u = print(c, h);
  CHECK(t.n == u.n && !memcmp(t.at, u.at, t.n));
  return h;
}

static void one(Ctx *c, void *arg) {
  u64 seed = *(const u64 *)arg;
  Graph *g = make(c, seed);
  graph_check(g);
  StrBuf before = print(c, g);
  Tensor **want = evaluate(c, g, seed);
  g = reread(c, make(c, seed));
  Gen r = {.state = seed ^ 0x5555};
  u32 npasses = 1 + below(&r, 6);
  for (u32 i = 0; i < npasses; i++) {
    const Pass *p = &pass_table[below(&r, 6)];
    if (!p->graph) continue; /* unblock asks more than the graph */
    c->pass = p->name;
    p->graph(g);
    graph_check(g);
  }
  c->pass = NULL;
  g = reread(c, g);
  Tensor **got = evaluate(c, g, seed);
  for (u32 i = 0; i < g->region.at[1].ret.n; i++) {
    if (CHECK(same_tensor(want[i], got[i]))) continue;
    fprintf(stderr, "seed %llu: result %u differs\n%s\n%s\n", (unsigned long long)seed, i,
            before.at, print(c, g).at);
    return;
  }
}

int main(int argc, char **argv) {
  u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  u64 end = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? first + 1 : SEEDS;
  u32 refused = 0;
  for (u64 seed = first; seed < end && check_failed < 3; seed++) {
    Ctx *c = ctx_new(NULL, NULL);
    Err e = ctx_protect(c, one, &seed);
    if (e == ERR_unsupported) {
      refused++;
    } else if (!CHECK(e == ERR_ok)) {
      fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, c->diags ? c->diags->text : "");
    }
    ctx_free(c);
  }
  CHECK(refused < (end - first) / 4 + 1);
  return check_end();
}
