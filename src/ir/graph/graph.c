/* graph.c: construction of graphs.
 *
 * In: operators, operands, attributes. Out: nodes appended to the current region, with inferred
 * types. With g->eager, the reference evaluator folds computations on small constants immediately,
 * and integer arithmetic on symbolic dimensions stays symbolic (OP_dims). That removes
 * Shape-Gather-Concat-Reshape chains during import, before any shape is needed. */
#include "ir/graph/graph.h"

#include <string.h>

enum {
  EAGER_IN = 65536,  /* limit of operand elements, all together */
  EAGER_SUM = 1024,  /* limit of operand elements for contractions, whose work is the product of
                        their sizes */
  EAGER_INTS = 4096, /* limit of elements of an integer or bool result */
  EAGER_FLOATS = 64, /* limit of elements of a float result: scales and sizes computed in float */
};

Graph *graph_new(Ctx *c) {
  Graph *g = NEW(&c->work, Graph);
  g->c = c;
  g->dims = dims_new(c);
  g->loc = LOC_NONE;
  (void)vec_push(&c->work, &g->val); /* id 0 is "none" */
  (void)vec_push(&c->work, &g->node);
  (void)vec_push(&c->work, &g->region);
  g->cur = graph_region(g, 0);
  return g;
}

static Attr *copy_attrs(Graph *g, const Attr *attr, u32 n) {
  Attr *to = NEWS(&g->c->work, Attr, n);
  for (u32 i = 0; i < n; i++) {
    u32 j = i;
    for (; j && to[j - 1].key > attr[i].key; j--) to[j] = to[j - 1];
    to[j] = attr[i];
    if (attr[i].kind == AK_list)
      to[j].u.list = arena_copy(&g->c->work, attr[i].u.list, attr[i].n * sizeof(Dim));
  }
  return to;
}

#define COPY_VEC(a, v)                                                                             \
  ((v)->at = (v)->cap ? arena_copy(a, (v)->at, (v)->cap * sizeof *(v)->at) : NULL)

Graph *graph_copy(const Graph *from) {
  Arena *a = &from->c->work;
  Graph *g = arena_copy(a, from, sizeof *from);
  g->dims = dims_copy(from->dims);
  COPY_VEC(a, &g->val);
  COPY_VEC(a, &g->node);
  COPY_VEC(a, &g->region);
  COPY_VEC(a, &g->pin);
  COPY_VEC(a, &g->state);
  COPY_VEC(a, &g->drift);
  COPY_VEC(a, &g->out_name);
  COPY_VEC(a, &g->scale);
  for (Val v = 1; v < g->val.n; v++) {
    Type *t = &g->val.at[v].type;
    if (t->rank) t->dim = arena_copy(a, t->dim, t->rank * sizeof *t->dim);
  }
  for (NodeId i = 1; i < g->node.n; i++) {
    Node *n = &g->node.at[i];
    n->in = arena_copy(a, n->in, n->nin * sizeof *n->in);
    n->out = arena_copy(a, n->out, n->nout * sizeof *n->out);
    n->attr = copy_attrs(g, n->attr, n->nattr);
    if (n->nsym) n->sym = arena_copy(a, n->sym, n->nsym * sizeof *n->sym);
  }
  for (RegionId b = 1; g->region.at && b < g->region.n; b++) {
    COPY_VEC(a, &g->region.at[b].param);
    COPY_VEC(a, &g->region.at[b].node);
    COPY_VEC(a, &g->region.at[b].ret);
  }
  return g;
}

RegionId graph_region(Graph *g, NodeId owner) {
  vec_push(&g->c->work, &g->region)->owner = owner;
  return g->region.n - 1;
}

static Val add_value(Graph *g, Type t, Str name, NodeId def, u32 pos) {
  Value *v = vec_push(&g->c->work, &g->val);
  *v = (Value){.type = t, .name = name, .def = def, .pos = pos};
  return g->val.n - 1;
}

Val graph_param(Graph *g, RegionId b, Type t, Str name) {
  Val v = add_value(g, t, name, 0, g->region.at[b].param.n);
  *vec_push(&g->c->work, &g->region.at[b].param) = v;
  return v;
}

void graph_result(Graph *g, Val v, Str name) {
  *vec_push(&g->c->work, &g->region.at[1].ret) = v;
  *vec_push(&g->c->work, &g->out_name) = name;
}

/* Creates the node without adding it to a region. */
static NodeId make_node(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr) {
  const OpInfo *info = &op_info[op];
  if (nin < info->nin_min || nin > info->nin_max)
    fail(g->c, ERR_input, g->loc, "%s takes %u to %u operands, found %u", info->name, info->nin_min,
         info->nin_max, nin);
  Node *n = vec_push(&g->c->work, &g->node);
  n->op = op;
  n->nin = nin;
  n->in = arena_copy(&g->c->work, in, nin * sizeof(Val));
  n->nattr = nattr;
  n->attr = copy_attrs(g, attr, nattr);
  n->loc = g->loc;
  return g->node.n - 1;
}

static void add_outputs(Graph *g, NodeId id, const Type *t) {
  Node *n = graph_node(g, id);
  n->out = NEWS(&g->c->work, Val, n->nout);
  for (u32 i = 0; i < n->nout; i++) {
    Val v = add_value(g, t[i], 0, id, i);
    graph_node(g, id)->out[i] = v;
  }
}

/* ---- eager evaluation ---- */

static u64 static_count(const Type *t) {
  u64 n = 1;
  for (u32 i = 0; i < t->rank; i++) {
    if (!dim_is_const(t->dim[i]) || !size_mul(n, (u64)t->dim[i], &n)) return UINT64_MAX;
  }
  return n;
}

static bool is_small(Graph *g, const Node *n, const Type *out) {
  u64 limit = dtype_is_float(out->dt) ? EAGER_FLOATS : EAGER_INTS;
  if (static_count(out) > limit) return false;
  u64 total = 0;
  for (u32 i = 0; i < n->nin; i++) {
    const Tensor *t = n->in[i] ? graph_const(g, n->in[i]) : NULL;
    if (!t || graph_val(g, n->in[i])->weight) return false;
    total += t->n;
  }
  return total <= (op_info[n->op].kind == OK_CONTRACT ? EAGER_SUM : EAGER_IN);
}

static bool has_symbols(const Node *n) {
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *a = &n->attr[i];
    if (a->kind != AK_list || !attr_is_dims(a->key)) continue;
    for (u32 k = 0; k < a->n; k++) {
      if (!dim_is_const(a->u.list[k])) return true;
    }
  }
  return false;
}

bool node_folds(const Node *n) {
  OpKind k = op_info[n->op].kind;
  if (k == OK_CONTROL || k == OK_RANDOM) return false;
  return n->op != OP_const && n->op != OP_check_index && !has_symbols(n);
}

/* The new node is the last one; its outputs do not exist yet. */
static bool fold_now(Graph *g, NodeId id, const Type *type, NodeId *result) {
  Node *n = graph_node(g, id);
  OpKind k = op_info[n->op].kind;
  if (!node_folds(n) || n->nout != 1 || k == OK_LEAF || k == OK_DYNAMIC) return false;
  if (type->kind != TY_tensor || !is_small(g, n, type)) return false;
  Tensor *in[MAX_RANK], *out = NULL;
  if (n->nin > MAX_RANK) return false;
  for (u32 i = 0; i < n->nin; i++) in[i] = (Tensor *)graph_const(g, n->in[i]);
  add_outputs(g, id, type);
  ref_node(g, id, in, &out, &g->c->work);
  g->val.n -= 1; /* undo the creation of the node */
  g->node.n -= 1;
  *result = graph_val(g, mk_const(g, out))->def;
  return true;
}

/* Entries of an integer operand as dimensions; false for negative constants, which have no Dim. */
static bool entries(Graph *g, Val v, Dim *out, u32 *n) {
  return graph_dim_list(g, v, out, EAGER_FLOATS, n);
}

/* Matches n - 1 as exporters write it: a dimension plus a negative constant, in any order. */
static bool dims_less(Graph *g, const Node *n, Dim *out, u32 *count) {
  Dim a[EAGER_FLOATS];
  i64 k[EAGER_FLOATS];
  u32 na = 0, nk = 0, side = 0;
  if (n->op != OP_add || n->nin != 2) return false;
  while (side < 2 &&
         !(graph_ints(g, n->in[side], k, EAGER_FLOATS, &nk) && entries(g, n->in[1 - side], a, &na)))
    side++;
  if (side == 2 || (na != nk && na != 1 && nk != 1)) return false;
  *count = na == 0 || nk == 0 ? 0 : na > nk ? na : nk;
  for (u32 i = 0; i < *count; i++) {
    Dim x = a[na == 1 ? 0 : i];
    i64 more = k[nk == 1 ? 0 : i];
    if (dim_is_const(x) && x + more < 0) return false;
    out[i] = dim_addk(g->dims, x, more);
  }
  return true;
}

static bool dims_map(Graph *g, const Node *n, Dim *out, u32 *count) {
  Dim a[EAGER_FLOATS], b[EAGER_FLOATS];
  u32 na, nb = 1;
  if (dims_less(g, n, out, count)) return true;
  if (!entries(g, n->in[0], a, &na)) return false;
  if (n->op == OP_cast) {
    i64 to = node_int(n, AT_to, DT_none);
    memcpy(out, a, na * sizeof *a);
    *count = na;
    return to == DT_i64 || to == DT_i32;
  }
  if (n->nin != 2 || !entries(g, n->in[1], b, &nb)) return false;
  if (na != nb && na != 1 && nb != 1) return false;
  *count = na == 0 || nb == 0 ? 0 : na > nb ? na : nb;
  for (u32 i = 0; i < *count; i++) {
    Dim x = a[na == 1 ? 0 : i], y = b[nb == 1 ? 0 : i];
    i64 lo, hi;
    dim_bounds(g->dims, y, &lo, &hi);
    switch (n->op) {
    case OP_add: out[i] = dim_add(g->dims, x, y); break;
    case OP_sub:
      if (dim_is_const(x) && dim_is_const(y) && x < y) return false;
      out[i] = dim_sub(g->dims, x, y);
      break;
    case OP_mul: out[i] = dim_mul(g->dims, x, y); break;
    case OP_div:
      if (lo < 1) return false;
      out[i] = dim_div(g->dims, x, y);
      break;
    case OP_mod:
      if (lo < 1) return false;
      out[i] = dim_mod(g->dims, x, y);
      break;
    case OP_min: out[i] = dim_min(g->dims, x, y); break;
    case OP_max: out[i] = dim_max(g->dims, x, y); break;
    default: return false;
    }
  }
  return true;
}

/* Entries that are integers, possibly negative, or symbolic dimensions. */
typedef struct SignedEntry {
  Dim dim; /* negative: symbolic; else k is the value */
  i64 k, lo, hi;
} SignedEntry;

static bool signed_entries(Graph *g, Val v, SignedEntry *out, u32 *n) {
  i64 k[EAGER_FLOATS];
  Dim d[EAGER_FLOATS];
  bool ints = graph_ints(g, v, k, EAGER_FLOATS, n);
  if (!ints && !entries(g, v, d, n)) return false;
  for (u32 i = 0; i < *n; i++) {
    bool open = !ints && !dim_is_const(d[i]);
    i64 x = ints ? k[i] : d[i];
    out[i] = (SignedEntry){open ? d[i] : 0, x, x, x};
    if (open) dim_bounds(g->dims, d[i], &out[i].lo, &out[i].hi);
  }
  return true;
}

/* Result of a comparison: 1 or 0, or -1 if it depends on the run. */
static int compare(Op op, const SignedEntry *a, const SignedEntry *b) {
  bool same = a->dim && a->dim == b->dim;
  switch (op) {
  case OP_eq:
    if (same || (a->lo == a->hi && b->lo == b->hi && a->lo == b->lo)) return 1;
    return a->hi < b->lo || b->hi < a->lo ? 0 : -1;
  case OP_lt: return a->hi < b->lo ? 1 : same || a->lo >= b->hi ? 0 : -1;
  case OP_le: return same || a->hi <= b->lo ? 1 : a->lo > b->hi ? 0 : -1;
  case OP_gt: return compare(OP_lt, b, a);
  case OP_ge: return compare(OP_le, b, a);
  default: return -1;
  }
}

/* Folds a comparison of dimensions that their bounds decide. */
static bool compare_now(Graph *g, NodeId id, const Type *type, NodeId *result) {
  const Node *n = graph_node(g, id);
  SignedEntry a[EAGER_FLOATS], b[EAGER_FLOATS];
  u32 na, nb;
  u64 count = static_count(type);
  if (n->op >= OP_SCALARS || n->nin != 2 || type->dt != DT_bool || type->rank > 1) return false;
  if (count > EAGER_FLOATS || !signed_entries(g, n->in[0], a, &na) ||
      !signed_entries(g, n->in[1], b, &nb))
    return false;
  i64 extent = (i64)count;
  Tensor *t = tensor_new(&g->c->work, DT_bool, &extent, type->rank);
  for (u32 i = 0; i < count; i++) {
    int is = compare(n->op, &a[na == 1 ? 0 : i], &b[nb == 1 ? 0 : i]);
    if (is < 0) return false;
    tensor_set(t, i, (Scalar){.i = is});
  }
  g->node.n -= 1;
  *result = graph_val(g, mk_const(g, t))->def;
  return true;
}

/* Select with a known condition: selected entries must be dimensions; others may be negative. */
static bool dims_select(Graph *g, const Node *n, Dim *out, u32 *count, u64 total) {
  i64 cond[EAGER_FLOATS];
  SignedEntry side[2][EAGER_FLOATS];
  u32 nc, ns[2];
  if (!graph_ints(g, n->in[0], cond, EAGER_FLOATS, &nc)) return false;
  for (u32 i = 0; i < 2; i++)
    if (!signed_entries(g, n->in[1 + i], side[i], &ns[i])) return false;
  for (u32 i = 0; i < total; i++) {
    u32 s = cond[nc == 1 ? 0 : i] ? 0 : 1;
    const SignedEntry *e = &side[s][ns[s] == 1 ? 0 : i];
    if (!e->dim && e->k < 0) return false;
    out[i] = e->dim ? e->dim : e->k;
  }
  *count = (u32)total;
  return true;
}

static bool dims_concat(Graph *g, const Node *n, Dim *out, u32 *count) {
  *count = 0;
  for (u32 i = 0; i < n->nin; i++) {
    Dim part[EAGER_FLOATS];
    u32 k;
    if (!entries(g, n->in[i], part, &k) || *count + k > EAGER_FLOATS) return false;
    memcpy(out + *count, part, k * sizeof *part);
    *count += k;
  }
  return true;
}

static bool dims_gather(Graph *g, const Node *n, Dim *out, u32 *count) {
  Dim from[EAGER_FLOATS];
  i64 idx[EAGER_FLOATS];
  u32 k;
  if (!entries(g, n->in[0], from, &k) || !graph_ints(g, n->in[1], idx, EAGER_FLOATS, count))
    return false;
  for (u32 i = 0; i < *count; i++) {
    i64 at = idx[i] < 0 ? idx[i] + k : idx[i];
    if (at < 0 || at >= (i64)k) return false;
    out[i] = from[at];
  }
  return true;
}

/* Integer tensors of rank 0 or 1 that hold dimensions: applies the operation to the entries. */
static bool dims_now(Graph *g, NodeId id, const Type *type, NodeId *result) {
  const Node *n = graph_node(g, id);
  Dim out[EAGER_FLOATS];
  u32 k = 0;
  if (type->kind != TY_tensor || type->rank > 1 || !dtype_is_int(type->dt)) return false;
  bool known = false;
  u64 total = static_count(type);
  if (total > EAGER_FLOATS) return false;
  if (n->op == OP_select) {
    known = dims_select(g, n, out, &k, total);
  } else if (n->op < OP_SCALARS) {
    known = dims_map(g, n, out, &k);
  } else if (n->op == OP_concat) {
    known = dims_concat(g, n, out, &k);
  } else if (n->op == OP_gather) {
    known = dims_gather(g, n, out, &k);
  } else if (n->op == OP_reshape) {
    known = entries(g, n->in[0], out, &k);
  } else if (n->op == OP_slice) {
    Dim from[EAGER_FLOATS];
    known = entries(g, n->in[0], from, &k) && graph_type(g, n->in[0])->rank == 1;
    u32 nl;
    Dim start = known ? node_list(n, AT_start, &nl)[0] : -1;
    i64 step = known ? node_list(n, AT_step, &nl)[0] : 0;
    known = known && dim_is_const(start);
    k = (u32)total;
    for (u32 i = 0; known && i < k; i++) out[i] = from[start + step * (i64)i];
  } else if (n->op == OP_reduce_prod) {
    Dim from[EAGER_FLOATS];
    u32 m;
    known = entries(g, n->in[0], from, &m) && total == 1;
    if (known) out[0] = dim_product(g->dims, from, m);
    k = 1;
  }
  if (!known || k != total) return false;
  DType dt = type->dt;
  u32 rank = type->rank;
  g->node.n -= 1;
  Val v = mk_dims_as(g, dt, rank, out, k);
  *result = graph_val(g, v)->def;
  return true;
}

NodeId graph_add(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr) {
  NodeId id = make_node(g, op, in, nin, attr, nattr), folded;
  Node *n = graph_node(g, id);
  n->nout = op_info[op].nout;
  Type type[2];
  infer_node(g, n, type);
  if (g->eager && (fold_now(g, id, type, &folded) || dims_now(g, id, type, &folded) ||
                   compare_now(g, id, type, &folded)))
    return folded;
  add_outputs(g, id, type);
  *vec_push(&g->c->work, &g->region.at[g->cur].node) = id;
  return id;
}

NodeId graph_add_control(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr,
                         const RegionId *region, u32 nregion) {
  NodeId id = make_node(g, op, in, nin, attr, nattr);
  Node *n = graph_node(g, id);
  n->nregion = nregion;
  for (u32 i = 0; i < nregion; i++) {
    n->region[i] = region[i];
    g->region.at[region[i]].owner = id;
  }
  n->nout = g->region.at[region[0]].ret.n - (op == OP_loop ? 1 : 0);
  Type *type = NEWS(&g->c->work, Type, n->nout);
  infer_node(g, n, type);
  add_outputs(g, id, type);
  *vec_push(&g->c->work, &g->region.at[g->cur].node) = id;
  return id;
}

void graph_add_scans(Graph *g, NodeId loop, const Val *v, u32 n, Val *out) {
  Arena *a = &g->c->work;
  Node *node = graph_node(g, loop);
  u32 had = node->nout;
  for (u32 i = 0; i < n; i++) *vec_push(a, &g->region.at[node->region[0]].ret) = v[i];
  for (u32 i = 0; i < node->nattr; i++)
    if (node->attr[i].key == AT_scans) node->attr[i].u.i += n;
  node->nout += n;
  Type *type = NEWS(a, Type, node->nout);
  infer_node(g, node, type);
  Val *all = NEWS(a, Val, had + n);
  memcpy(all, node->out, had * sizeof *all);
  node->out = all;
  for (u32 i = 0; i < n; i++) out[i] = all[had + i] = add_value(g, type[had + i], 0, loop, had + i);
}

/* ---- access ---- */

const Attr *node_attr(const Node *n, AttrKey key) {
  for (u32 i = 0; i < n->nattr; i++)
    if (n->attr[i].key == key) return &n->attr[i];
  return NULL;
}

i64 node_int(const Node *n, AttrKey key, i64 otherwise) {
  const Attr *a = node_attr(n, key);
  return a ? a->u.i : otherwise;
}

const char *const box_kind_name[BX_COUNT] = {
    [BX_edges] = "edges", [BX_corners] = "corners", [BX_centre] = "centre"};

BoxKind node_box_kind(const Ctx *c, const Node *n) {
  u32 k = 0;
  while (k < BX_COUNT && !str_is(c, node_attr(n, AT_kind)->u.s, box_kind_name[k])) k++;
  return (BoxKind)k;
}

const Dim *node_list(const Node *n, AttrKey key, u32 *count) {
  const Attr *a = node_attr(n, key);
  *count = a ? a->n : 0;
  return a ? a->u.list : NULL;
}

bool node_cast_sat(const Node *n) {
  DType to = (DType)node_int(n, AT_to, DT_none);
  return node_int(n, AT_sat, dtype_is_float(to)) != 0;
}

const Tensor *graph_const(Graph *g, Val v) {
  const Node *n = graph_node(g, graph_val(g, v)->def);
  if (!graph_val(g, v)->def || n->op != OP_const) return NULL;
  return node_attr(n, AT_value)->u.t;
}

bool graph_is_true(Graph *g, Val v) {
  const Tensor *t = graph_const(g, v);
  return t && tensor_get(t, 0).i;
}

bool graph_ints(Graph *g, Val v, i64 *out, u32 max, u32 *n) {
  const Tensor *t = v ? graph_const(g, v) : NULL;
  if (!t || t->n > max || !(dtype_is_int(t->dt) || t->dt == DT_bool)) return false;
  *n = (u32)t->n;
  for (u32 i = 0; i < *n; i++) out[i] = tensor_get(t, i).i;
  return true;
}

bool graph_dim_list(Graph *g, Val v, Dim *out, u32 max, u32 *n) {
  if (graph_ints(g, v, out, max, n)) {
    for (u32 i = 0; i < *n; i++)
      if (out[i] < 0) return false;
    return true;
  }
  NodeId def = graph_val(g, v)->def;
  if (!def || graph_node(g, def)->op != OP_dims) return false;
  const Dim *list = node_list(graph_node(g, def), AT_shape, n);
  if (*n > max) return false;
  if (*n) memcpy(out, list, *n * sizeof(Dim));
  return true;
}

const Tensor *graph_pin(const Graph *g, Val param) {
  for (u32 i = 0; i < g->pin.n; i++)
    if (g->pin.at[i].param == param) return g->pin.at[i].data;
  return NULL;
}

void graph_use_counts(Graph *g, u32 *count) {
  memset(count, 0, g->val.n * sizeof *count);
  for (RegionId b = 1; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++) count[n->in[j]]++;
    }
    for (u32 i = 0; i < k->ret.n; i++) count[k->ret.at[i]]++;
  }
}

/* ---- equal computations ---- */

static void put(StrBuf *t, i64 x) {
  sb_put(t, &x, sizeof x);
}

static void put_tensor(StrBuf *t, const Tensor *x) {
  u64 bytes = tensor_bytes(x);
  put(t, x->dt);
  put(t, x->rank);
  for (u32 i = 0; i < x->rank; i++) put(t, x->dim[i]);
  put(t, bytes <= KEY_CONTENT ? (i64)hash_bytes(x->data, (size_t)bytes) : (i64)(intptr_t)x->data);
}

static void put_attr(StrBuf *t, const Attr *a) {
  put(t, a->key);
  switch (a->kind) {
  case AK_int:
  case AK_dtype: put(t, a->u.i); break;
  case AK_float: sb_put(t, &a->u.f, sizeof a->u.f); break;
  case AK_str: put(t, a->u.s); break;
  case AK_const: put_tensor(t, a->u.t); break;
  case AK_list:
    put(t, a->n);
    for (u32 i = 0; i < a->n; i++) put(t, a->u.list[i]);
    break;
  }
}

StrBuf node_key(Arena *a, const Node *n) {
  StrBuf t = sb_new(a);
  put(&t, n->op);
  put(&t, n->nin);
  bool either = op_is(n->op, OF_COMM) && n->op != OP_max &&
                n->op != OP_min; /* these return the first of two zeros */
  if (n->nin == 2 && either && n->in[0] > n->in[1]) {
    put(&t, n->in[1]);
    put(&t, n->in[0]);
  } else {
    for (u32 i = 0; i < n->nin; i++) put(&t, n->in[i]);
  }
  for (u32 i = 0; i < n->nattr; i++) put_attr(&t, &n->attr[i]);
  return t;
}

Val *graph_same(Graph *g) {
  Arena *a = &g->c->scratch;
  Val *same = NEWS(a, Val, g->val.n);
  Map first = map_new(a);
  for (Val v = 0; v < g->val.n; v++) same[v] = v;
  for (NodeId id = 1; id < g->node.n; id++) {
    Node n = *graph_node(g, id);
    OpKind k = op_info[n.op].kind;
    if (k == OK_CONTROL || k == OK_RANDOM || !n.nout) continue;
    n.in = n.nin ? arena_copy(a, n.in, n.nin * sizeof *n.in) : NULL;
    for (u32 i = 0; i < n.nin; i++) n.in[i] = same[n.in[i]];
    StrBuf key = node_key(a, &n);
    u32 *slot = map_put_bytes(&first, key.at, key.n);
    if (!*slot) *slot = id;
    for (u32 i = 0; i < n.nout; i++) same[n.out[i]] = graph_node(g, *slot)->out[i];
  }
  return same;
}
