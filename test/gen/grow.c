/* grow.c: random valid graphs, in the manner of NNSmith: a row of the operator table is picked,
 * then values that exist as its operands, then attributes that fit them; what is missing is made.
 * Nodes are added behind what there is, or in front of a parameter. No solver: every extent is
 * known, at least within bounds, when a node is added, so attributes are drawn from those that fit.
 *
 * A policy per graph keeps cases apart from each other: a random half of the operators, few element
 * types, few extents. In exact mode every value carries its Grain, and a node whose result might
 * round is not added.
 */
#include "grow.h"

#include <string.h>
#include "pass/pass.h"

bool chance(Gen *G, u32 percent) {
  return rng_chance(&G->rng, percent);
}
u32 below(Gen *G, u32 n) {
  return rng_below(&G->rng, n);
}

Attr a_int(AttrKey key, i64 i) {
  return (Attr){.key = key, .kind = AK_int, .u.i = i};
}
Attr a_list(AttrKey key, const Dim *d, u32 n) {
  return (Attr){.key = key, .kind = AK_list, .n = n, .u.list = d};
}
Attr a_dtype(DType dt) {
  return (Attr){.key = AT_to, .kind = AK_dtype, .u.i = dt};
}
Attr a_str(Gen *G, AttrKey key, const char *s) {
  return (Attr){.key = key, .kind = AK_str, .u.s = str_of(G->g->c, s)};
}

/* ---- extents and types ---- */

Type type_of(Gen *G, Val v) {
  return *graph_type(G->g, v);
}

Grain *grain_of(Gen *G, Val v) {
  while (G->grain.n <= v) *vec_push(G->a, &G->grain) = (Grain){0, 0};
  return &G->grain.at[v];
}

i64 hi_of(Gen *G, Dim d) {
  i64 lo, hi;
  dim_bounds(G->g->dims, d, &lo, &hi);
  return hi;
}

i64 lo_of(Gen *G, Dim d) {
  i64 lo, hi;
  dim_bounds(G->g->dims, d, &lo, &hi);
  return lo < 0 ? 0 : lo;
}

double count_hi(Gen *G, const Dim *d, u32 rank) {
  double n = 1;
  for (u32 i = 0; i < rank; i++) n *= (double)hi_of(G, d[i]);
  return n;
}

bool small(Gen *G, const Dim *d, u32 rank) {
  double n = 1;
  for (u32 i = 0; i < rank; i++) n *= (double)(hi_of(G, d[i]) ? hi_of(G, d[i]) : 1);
  return n <= (double)G->most;
}

Dim any_dim(Gen *G, i64 least) {
  for (int tries = 0; tries < 8; tries++) {
    Dim d = chance(G, 80) ? G->base[below(G, G->nbase)] : 1 + below(G, 6);
    if (least == 0 && chance(G, 2)) d = 0;
    if (lo_of(G, d) >= least) return d;
  }
  return 1 + below(G, 4) > least ? 1 + below(G, 4) + least : least;
}

u32 any_shape(Gen *G, Dim *d, u32 lo, u32 hi, i64 least) {
  u32 rank = lo + below(G, hi - lo + 1);
  for (u32 i = 0; i < rank; i++) d[i] = any_dim(G, least);
  while (!small(G, d, rank)) d[below(G, rank)] = 1;
  return rank;
}

bool is_class(DType dt, const char *classes) {
  return strchr(classes, dtype_info[dt].cls) != NULL;
}

DType any_dtype(Gen *G, const char *classes) {
  for (int tries = 0; tries < 12; tries++) {
    DType dt = G->dt[below(G, G->ndt)];
    if (is_class(dt, classes)) return dt;
  }
  for (;;) {
    DType dt = (DType)(1 + below(G, DT_COUNT - 1));
    if (is_class(dt, classes) && (dt != DT_f8e8m0 || G->mode != MODE_exact)) return dt;
  }
}

void rough(Gen *G) {
  G->smooth = false;
}

/* ---- leaves ---- */

static void note(Gen *G, Val v, Grain r) {
  *grain_of(G, v) = r;
  *vec_push(G->a, &G->seen) = v;
  DType dt = type_of(G, v).dt;
  if (dtype_is_float(dt) && dt != DT_f32 && dt != DT_f64) G->smooth = false;
}

Val param_of(Gen *G, DType dt, const Dim *d, u32 rank, Fill f) {
  Str name = str_fmt(G->g->c, "x%u", G->param.n);
  Val v = graph_param(G->g, 1, type_tensor(G->a, dt, d, rank), name);
  *vec_push(G->a, &G->param) = (Param){v, f};
  note(G, v, f.index ? (Grain){(double)f.index + 1, 0} : f.grain);
  return v;
}

Val const_of(Gen *G, DType dt, const Dim *d, u32 rank, Fill f) {
  Tensor *t = tensor_new(G->a, dt, d, rank);
  fill_tensor(&G->rng, t, &f);
  Attr at = {.key = AT_value, .kind = AK_const, .u.t = t};
  return node(G, OP_const, NULL, 0, &at, 1, f.index ? (Grain){(double)f.index + 1, 0} : f.grain);
}

static bool is_static(const Dim *d, u32 rank) {
  for (u32 i = 0; i < rank; i++)
    if (!dim_is_const(d[i])) return false;
  return true;
}

/* Does an extent depend on what a node finds out? No parameter can have it. */
static bool is_found(Gen *G, Dim d) {
  DimTerms f = dim_terms(G->g->dims, d);
  for (u32 i = 0; i < f.n; i++) {
    const SymInfo *s = dim_syminfo(G->g->dims, f.sym[i]);
    if (s->kind == SY_data || (s->kind == SY_derived && (is_found(G, s->a) || is_found(G, s->b))))
      return true;
  }
  return false;
}

/* Leaves of such extents are copies of something smaller. */
static bool stretch(Gen *G, Dim *to, const Dim *d, u32 rank) {
  bool any = false;
  for (u32 i = 0; i < rank; i++) {
    bool found = is_found(G, d[i]);
    to[i] = found ? 1 : d[i];
    any = any || found;
  }
  return any;
}

static Val copies(Gen *G, Val v, const Dim *d, u32 rank) {
  Attr at = a_list(AT_shape, d, rank);
  return node(G, OP_broadcast, &v, 1, &at, 1, *grain_of(G, v));
}

Val leaf_of(Gen *G, DType dt, const Dim *d, u32 rank) {
  Fill f = fill_any(&G->rng, dt, G->mode);
  Dim few[MAX_RANK];
  if (stretch(G, few, d, rank)) return copies(G, leaf_of(G, dt, few, rank), d, rank);
  if (!is_static(d, rank) || chance(G, 60)) return param_of(G, dt, d, rank, f);
  if (chance(G, 15)) { /* the same number everywhere: what identities look for */
    static const double k[] = {0, 1, -1, 2, 0.5};
    double x = k[below(G, 5)];
    Tensor *t = tensor_new(G->a, dt, d, rank);
    Scalar s = scalar_cast(DT_f64, dt, (Scalar){.f = x}, true);
    for (u64 i = 0; i < t->n; i++) tensor_set(t, i, s);
    Attr at = {.key = AT_value, .kind = AK_const, .u.t = t};
    Grain r = {dtype_is_signed(dt) || dtype_is_float(dt) ? 2 : mag_limit(dt), 1};
    if (!dtype_is_float(dt)) r.q = 0;
    return grain_fits(dt, r) ? node(G, OP_const, NULL, 0, &at, 1, r) : const_of(G, dt, d, rank, f);
  }
  return const_of(G, dt, d, rank, f);
}

Val index_of(Gen *G, const Dim *d, u32 rank, i64 extent) {
  Fill f = {.mode = MODE_exact, .index = extent > 0 ? extent : 1};
  DType dt = chance(G, 60) ? DT_i64 : DT_i32;
  Dim few[MAX_RANK];
  if (stretch(G, few, d, rank)) return copies(G, index_of(G, few, rank, extent), d, rank);
  for (int tries = 0; tries < 4 && G->seen.n && chance(G, 40); tries++) {
    Val v = G->seen.at[below(G, G->seen.n)];
    Type t = type_of(G, v);
    if ((t.dt == DT_i64 || t.dt == DT_i32) && t.rank == rank &&
        (!rank || !memcmp(t.dim, d, rank * sizeof *d)))
      return v;
  }
  return is_static(d, rank) && chance(G, 40) ? const_of(G, dt, d, rank, f)
                                             : param_of(G, dt, d, rank, f);
}

Val scalar_of(Gen *G, DType dt, double x) {
  Tensor *t = tensor_new(G->a, dt, NULL, 0);
  tensor_set(t, 0, scalar_cast(DT_f64, dt, (Scalar){.f = x}, true));
  Attr at = {.key = AT_value, .kind = AK_const, .u.t = t};
  return node(G, OP_const, NULL, 0, &at, 1, (Grain){x < 0 ? -x : x, 4});
}

/* ---- operands ---- */

Val some(Gen *G, const char *classes, u32 lo, u32 hi) {
  for (int tries = 0; tries < 12 && G->seen.n; tries++) {
    /* newer values more often, so that graphs get deep */
    u32 n = G->seen.n, i = below(G, n);
    if (chance(G, 50)) i = n - 1 - below(G, n < 4 ? n : 4);
    Type t = type_of(G, G->seen.at[i]);
    if (is_class(t.dt, classes) && t.rank >= lo && t.rank <= hi) return G->seen.at[i];
  }
  Dim d[MAX_RANK];
  u32 rank = any_shape(G, d, lo, hi < 4 ? hi : lo > 4 ? lo : 4, 0);
  return leaf_of(G, any_dtype(G, classes), d, rank);
}

Val some_of(Gen *G, DType dt, const Dim *d, u32 rank) {
  for (int tries = 0; tries < 8 && G->seen.n; tries++) {
    Val v = G->seen.at[below(G, G->seen.n)];
    Type t = type_of(G, v), want = type_tensor(G->a, dt, d, rank);
    if (type_equal(&t, &want)) return v;
  }
  return leaf_of(G, dt, d, rank);
}

static bool broadcasts(Gen *G, const Type *x, const Type *y) {
  Dim d[MAX_RANK];
  u32 rank = x->rank > y->rank ? x->rank : y->rank;
  for (u32 k = 0; k < rank; k++) {
    Dim a = k < x->rank ? x->dim[x->rank - 1 - k] : 1,
        b = k < y->rank ? y->dim[y->rank - 1 - k] : 1;
    if (a != b && a != 1 && b != 1) return false;
    d[k] = a == 1 ? b : a;
  }
  return small(G, d, rank);
}

Val some_beside(Gen *G, DType dt, const Type *t) {
  for (int tries = 0; tries < 8 && G->seen.n && chance(G, 85); tries++) {
    Val v = G->seen.at[below(G, G->seen.n)];
    Type x = type_of(G, v);
    if (x.dt == dt && broadcasts(G, &x, t)) return v;
  }
  Dim d[MAX_RANK];
  u32 rank = 0, from = chance(G, 40) ? below(G, t->rank + 1) : 0;
  if (!from && t->rank < LEAST_RANK && chance(G, 10)) d[rank++] = any_dim(G, 0);
  for (u32 i = from; i < t->rank; i++) {
    Dim e = t->dim[i];
    d[rank++] = e == 1 && chance(G, 30) ? any_dim(G, 0) : chance(G, 70) ? e : 1;
  }
  Type x = type_tensor(G->a, dt, d, rank);
  return broadcasts(G, &x, t) ? leaf_of(G, dt, d, rank) : leaf_of(G, dt, t->dim, t->rank);
}

/* ---- nodes ---- */

Val node(Gen *G, Op op, const Val *in, u32 nin, const Attr *at, u32 nat, Grain r) {
  NodeId id = graph_add(G->g, op, in, nin, at, nat);
  const Node *n = graph_node(G->g, id);
  Val v = n->out[0], other = n->nout > 1 ? n->out[1] : 0;
  note(G, v, r);
  if (other) note(G, other, (Grain){mag_limit(DT_i32), 0});
  return v;
}

typedef struct RowInfo {
  Row *fn;
  u32 weight;
} RowInfo;

/* Structural operators; all scalar operators without a row of their own are maps. */
static const RowInfo rows[OP_COUNT] = {
    [OP_select] = {row_select, 4},
    [OP_cast] = {row_cast, 6},
    [OP_bitcast] = {row_cast, 1},
    [OP_dims] = {row_leaf, 1},
    [OP_iota] = {row_leaf, 2},
    [OP_random] = {row_leaf, 1},
    [OP_reduce_sum] = {row_reduce, 6},
    [OP_reduce_prod] = {row_reduce, 3},
    [OP_reduce_max] = {row_reduce, 4},
    [OP_reduce_min] = {row_reduce, 3},
    [OP_resume_sum] = {row_reduce, 3},
    [OP_argmax] = {row_arg, 3},
    [OP_argmin] = {row_arg, 2},
    [OP_contract] = {row_contract, 14},
    [OP_conv] = {row_conv, 14},
    [OP_pool_max] = {row_pool, 6},
    [OP_pool_sum] = {row_pool, 6},
    [OP_pool_argmax] = {row_pool, 2},
    [OP_reshape] = {row_reshape, 8},
    [OP_transpose] = {row_transpose, 8},
    [OP_slice] = {row_slice, 8},
    [OP_broadcast] = {row_broadcast, 5},
    [OP_concat] = {row_concat, 8},
    [OP_pad] = {row_pad, 7},
    [OP_check_index] = {row_within, 2},
    [OP_gather] = {row_gather, 5},
    [OP_gather_elems] = {row_gather_elems, 4},
    [OP_gather_nd] = {row_gather_nd, 4},
    [OP_scatter_elems] = {row_scatter_elems, 4},
    [OP_scatter_nd] = {row_scatter_nd, 4},
    [OP_cumsum] = {row_cum, 3},
    [OP_cumprod] = {row_cum, 2},
    [OP_if] = {row_if, 5},
    [OP_loop] = {row_loop, 6},
    [OP_nonzero] = {row_nonzero, 3},
    [OP_topk] = {row_topk, 4},
    [OP_nms] = {row_suppress, 3},
};

static u32 weight_of(Op op) {
  if (rows[op].fn) return rows[op].weight;
  if (op >= OP_SCALARS) return 0; /* const: comes with leaves */
  return op <= OP_min ? 6 : 1;
}

bool grow(Gen *G) {
  u32 sum = 0;
  for (int op = 0; op < OP_COUNT; op++) sum += G->on[op] ? weight_of((Op)op) : 0;
  u32 at = below(G, sum);
  int op = 0;
  for (;; op++) {
    u32 w = G->on[op] ? weight_of((Op)op) : 0;
    if (at < w) break;
    at -= w;
  }
  return (rows[op].fn ? rows[op].fn : row_map)(G, (Op)op) != 0;
}

void grow_some(Gen *G, u32 n) {
  for (u32 made = 0, tries = 0; made < n && tries < 4 * n; tries++) {
    if (!G->depth && G->param.n && chance(G, 12))
      made += grow_back(G);
    else
      made += grow(G);
  }
}

/* ---- policy ---- */

static bool names(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *at = list; *at;) {
    size_t k = strcspn(at, ",");
    if (k == n && !memcmp(at, name, n)) return true;
    at += k + (at[k] == ',');
  }
  return false;
}

static bool wanted(const Wish *w, Op op) {
  return !w->only || names(w->only, op_info[op].name) ||
         names(w->only, op_kind_name[op_info[op].kind]);
}

static void choose_ops(Gen *G, const Wish *w) {
  u32 keep = chance(G, 30) ? 100 : 50;
  bool any = false;
  for (int op = 0; op < OP_COUNT; op++) {
    G->on[op] = wanted(w, (Op)op) && weight_of((Op)op) && (chance(G, keep) || w->only);
    any = any || G->on[op];
  }
  for (int op = 0; !any && op < OP_COUNT; op++) G->on[op] = wanted(w, (Op)op);
}

static void choose_types(Gen *G) {
  G->ndt = 2 + below(G, 4);
  for (u32 i = 0; i < G->ndt; i++) {
    u32 r = below(G, 10);
    G->dt[i] = i == 0 || r < 4 ? DT_f32
               : r < 5         ? DT_i64
               : r < 6         ? DT_i32
               : r < 7         ? DT_bool
                               : DT_none;
    while (G->dt[i] == DT_none || !is_class(G->dt[i], "FIUB") ||
           (G->mode == MODE_exact && G->dt[i] == DT_f8e8m0))
      G->dt[i] = (DType)(1 + below(G, DT_COUNT - 1));
  }
}

static void choose_extents(Gen *G, const Wish *w) {
  static const i64 few[] = {1, 2, 3, 4, 5}, edge[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17},
                   large[] = {4, 8, 16, 31, 32, 33, 63, 64, 65};
  u32 size = w->large ? 9 : below(G, 10);
  G->most = w->large ? 40000 : size < 4 ? 200 : size < 8 ? 1500 : 8000;
  G->nbase = 2 + below(G, 3);
  for (u32 i = 0; i < G->nbase; i++)
    G->base[i] = size < 4 ? few[below(G, 5)] : size < 8 ? edge[below(G, 11)] : large[below(G, 9)];
  if (!chance(G, 30)) return;
  G->nsym = 1 + below(G, MAX_SYMS);
  for (u32 i = 0; i < G->nsym; i++) {
    i64 lo = below(G, 4), hi = lo + below(G, 9);
    G->sym[i] = dim_sym(G->g->dims, SY_input, str_of(G->g->c, i ? "m" : "n"), lo, hi);
    Dim d = G->base[below(G, G->nbase)] = dim_of_sym(G->g->dims, G->sym[i]);
    param_of(G, DT_u8, &d, 1, fill_any(&G->rng, DT_u8, MODE_exact)); /* tells the extent */
    G->seen.n--;
  }
}

/* ---- results and arrays ---- */

static void add_result(Gen *G, Val v) {
  *vec_push(G->a, &G->g->region.at[1].ret) = v;
  *vec_push(G->a, &G->g->out_name) = str_fmt(G->g->c, "y%u", G->g->out_name.n);
}

/* What nothing reads, some of the rest; now and then a parameter, a constant, one value twice. */
static void choose_results(Gen *G) {
  u32 *uses = NEWS(G->a, u32, G->g->val.n);
  graph_use_counts(G->g, uses);
  for (u32 i = 0; i < G->seen.n; i++) {
    Val v = G->seen.at[i];
    bool leaf = !graph_val(G->g, v)->def || graph_const(G->g, v);
    if (chance(G, leaf ? 2 : uses[v] ? 8 : 100)) add_result(G, v);
  }
  u32 n = G->g->region.at[1].ret.n;
  if (!n) add_result(G, G->seen.at[G->seen.n - 1]);
  if (n && chance(G, 3)) add_result(G, G->g->region.at[1].ret.at[below(G, n)]);
}

static void choose_arrays(Gen *G, Case *k) {
  u32 ns = dim_nsyms(G->g->dims);
  k->nbind = G->nsym ? 2 : 1;
  k->nin = G->param.n;
  k->name = NEWS(G->a, Str, k->nin + 1);
  for (u32 b = 0; b < k->nbind; b++) {
    i64 *env = NEWS(G->a, i64, ns + 1);
    for (u32 i = 0; i < G->nsym; i++) {
      const SymInfo *s = dim_syminfo(G->g->dims, G->sym[i]);
      env[G->sym[i]] = b ? s->hi : rng_between(&G->rng, s->lo, s->hi);
    }
    k->in[b] = NEWS(G->a, Tensor *, k->nin + 1);
    for (u32 i = 0; i < k->nin; i++) {
      Type t = type_of(G, G->param.at[i].v);
      i64 dim[MAX_RANK];
      for (u32 j = 0; j < t.rank; j++) dim[j] = dim_eval(G->g->dims, t.dim[j], env);
      k->in[b][i] = tensor_new(G->a, t.dt, dim, t.rank);
      k->name[i] = graph_val(G->g, G->param.at[i].v)->name;
      fill_tensor(&G->rng, k->in[b][i], &G->param.at[i].fill);
    }
  }
}

typedef struct Make {
  Case *k;
  const Wish *w;
} Make;

static void make(Ctx *c, void *arg) {
  Make *m = arg;
  Case *k = m->k;
  Gen *G = NEW(&c->keep, Gen);
  G->rng.s = k->seed * 0x9e3779b97f4a7c15 + 1;
  rng_next(&G->rng);
  G->g = graph_new(c);
  G->g->cur = 1;
  G->a = &c->work;
  u32 r = below(G, 10);
  G->mode = m->w->mode >= 0 ? (Mode)m->w->mode : r < 6 ? MODE_exact : r < 8 ? MODE_real : MODE_raw;
  G->smooth = G->mode == MODE_real;
  choose_ops(G, m->w);
  choose_types(G);
  choose_extents(G, m->w);
  u32 nodes = m->w->nodes ? m->w->nodes : 1 + below(G, chance(G, 20) ? 24 : 9);
  grow_some(G, nodes);
  if (!G->seen.n) leaf_of(G, DT_f32, NULL, 0);
  choose_results(G);
  choose_arrays(G, k);
  k->mode = G->mode;
  k->smooth = G->smooth;
  StrBuf t = sb_new(&c->keep);
  graph_print(G->g, &t, NULL);
  k->text = sb_cstr(&t);
  k->n = t.n;
}

Case *case_new(u64 seed, const Wish *w) {
  Ctx *c = ctx_new(NULL, NULL);
  Case *k = NEW(&c->keep, Case);
  *k = (Case){.c = c, .seed = seed};
  Make m = {k, w};
  if (ctx_protect(c, make, &m)) k->text = NULL;
  return k;
}

void case_free(Case *k) {
  if (k) ctx_free(k->c);
}
