/* ref.c: the reference evaluator: the oracle in tests and the engine of constant folding.
 *
 * In: a graph and tensors for its parameters. Out: tensors for its results. The nodes of a region
 * run in order, each by a kernel from one table; all memory comes from arenas. Input symbols are
 * solved from the shapes of the parameters; data symbols are set by the nodes that own them. After
 * each node the result shapes are compared with the types of the graph.
 *
 * In wide mode every float tensor is f64 and never rounded to a narrower type. The difference to
 * the ordinary mode shows the effect of rounding. */
#include "ir/ref/ref.h"

#include <string.h>

static RefFn *const kernels[OP_COUNT] = {
#define SC(name, nin, cls, res, flags, text) [OP_##name] = ref_map,
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
    [OP_const] = ref_const,
    [OP_dims] = ref_dims_node,
    [OP_iota] = ref_iota,
    [OP_reduce_sum] = ref_reduce,
    [OP_reduce_prod] = ref_reduce,
    [OP_reduce_max] = ref_reduce,
    [OP_reduce_min] = ref_reduce,
    [OP_resume_sum] = ref_reduce,
    [OP_argmax] = ref_arg,
    [OP_argmin] = ref_arg,
    [OP_contract] = ref_contract,
    [OP_conv] = ref_conv,
    [OP_pool_max] = ref_pool,
    [OP_pool_sum] = ref_pool,
    [OP_pool_argmax] = ref_pool_arg,
    [OP_reshape] = ref_reshape,
    [OP_transpose] = ref_transpose,
    [OP_slice] = ref_slice,
    [OP_broadcast] = ref_broadcast,
    [OP_concat] = ref_concat,
    [OP_pad] = ref_pad,
    [OP_check_index] = ref_check_index,
    [OP_gather] = ref_gather,
    [OP_gather_elems] = ref_gather_elems,
    [OP_gather_nd] = ref_gather_nd,
    [OP_scatter_elems] = ref_scatter_elems,
    [OP_scatter_nd] = ref_scatter_nd,
    [OP_cumsum] = ref_cum,
    [OP_cumprod] = ref_cum,
    [OP_if] = ref_if,
    [OP_loop] = ref_loop,
    [OP_nonzero] = ref_nonzero,
    [OP_random] = ref_random,
    [OP_str_encode] = ref_str_encode,
    [OP_str_decode] = ref_str_decode,
    [OP_dequantize] = ref_dequantize,
    [OP_matmul_quant] = ref_matmul_quant,
    [OP_topk] = ref_topk,
    [OP_nms] = ref_nms,
};

/* ---- symbols ---- */

bool ref_known(const Ref *r, Dim d) {
  for (SymVisit w = dim_visit(r->g->dims, d); dim_next(&w);)
    if (w.sym >= r->nsym || (w.info->kind != SY_derived && !r->known[w.sym])) return false;
  return true;
}

/* Solves d = actual if exactly one symbol of d is unknown. */
static bool solve(Ref *r, Dim d, i64 actual) {
  i64 c = 0;
  DimTerms f = dim_terms(r->g->dims, d);
  Sym open = 0;
  for (u32 i = 0; i < f.n; i++) {
    const SymInfo *s = dim_syminfo(r->g->dims, f.sym[i]);
    if (s->kind == SY_derived) {
      if (!ref_known(r, s->a) || !ref_known(r, s->b)) return false;
    } else if (!r->known[f.sym[i]]) {
      if (c) return false;
      c = f.coef[i];
      open = f.sym[i];
    }
  }
  if (!c) return false;
  r->env[open] = 0;
  i64 rest = actual - dim_eval(r->g->dims, d, r->env);
  if (rest % c) return false; /* reported by the check that follows */
  ref_set(r, open, rest / c);
  return true;
}

static bool solve_tensor(Ref *r, const Type *t, const Tensor *x) {
  bool any = false;
  if (t->kind != TY_tensor || t->rank != x->rank) return false;
  for (u32 k = 0; k < t->rank; k++) any |= solve(r, t->dim[k], x->dim[k]);
  return any;
}

static void env_new(Ref *r) {
  r->nsym = dim_nsyms(r->g->dims);
  r->env = NEWS(r->tmp, i64, r->nsym);
  r->known = NEWS(r->tmp, bool, r->nsym);
  for (Sym s = 0; s < r->nsym; s++) {
    const SymInfo *info = dim_syminfo(r->g->dims, s);
    if (info->kind == SY_derived || info->lo != info->hi) continue;
    r->env[s] = info->lo;
    r->known[s] = true;
  }
}

/* A single node sees only its operands: bind the symbols that they determine. */
static void env_of_operands(Ref *r) {
  for (bool again = true; again;) {
    again = false;
    for (u32 i = 0; i < r->n->nin; i++)
      if (r->n->in[i]) again |= solve_tensor(r, graph_type(r->g, r->n->in[i]), r->in[i]);
  }
}

void ref_set(Ref *r, Sym s, i64 x) {
  if (s >= r->nsym)
    internal_error(r->c, r->n ? r->n->loc : LOC_NONE, "symbol %u is not in the table", s);
  const SymInfo *si = dim_syminfo(r->g->dims, s);
  if (si->kind == SY_data && (x < si->lo || x > si->hi))
    REF_BAD(r, "%s", show_text(r->c, sym_range_error(r->c, si)));
  r->env[s] = x;
  r->known[s] = true;
}

static const char *dim_text(const Ref *r, Dim d) {
  StrBuf t = sb_new(&r->c->scratch);
  dim_print(r->g->dims, d, &t);
  return sb_cstr(&t);
}

i64 ref_size(Ref *r, Dim d) {
  if (dim_is_const(d)) return d;
  if (!ref_known(r, d)) REF_BAD(r, "the inputs do not determine the dimension %s", dim_text(r, d));
  return dim_eval(r->g->dims, d, r->env);
}

i64 ref_dim(Ref *r, Dim d) {
  i64 x = ref_size(r, d);
  if (x < 0 || x > DIM_MAX)
    REF_BAD(r, "the dimension %s is %lld for these inputs, expected 0 to 2^40", dim_text(r, d),
            (long long)x);
  return x;
}

void ref_dims(Ref *r, const Node *n, AttrKey key, i64 *to, u32 count) {
  u32 have;
  const Dim *d = node_list(n, key, &have);
  if (have != count || count > MAX_RANK)
    internal_error(r->c, n->loc, "%s lists %u dimensions, expected %u", attr_name[key], have,
                   count);
  for (u32 i = 0; i < count; i++) to[i] = ref_dim(r, d[i]);
}

/* ---- tensors ---- */

Tensor *ref_new(Ref *r, DType dt, const i64 *dim, u32 rank) {
  u64 n, bytes;
  dt = ref_dtype(r, dt);
  if (rank > MAX_RANK || !shape_count(dim, rank, &n) || !size_mul(n, dtype_bytes(dt), &bytes))
    REF_BAD(r, "%s: the result has more than 2^40 elements", op_info[r->n->op].name);
  if (r->max_bytes && (bytes > r->max_bytes || r->spent > r->max_bytes - bytes))
    fail(r->c, ERR_unsupported, r->n->loc,
         "constant folding budget: %s needs %llu bytes, but %llu of %llu are used",
         op_info[r->n->op].name, (unsigned long long)bytes, (unsigned long long)r->spent,
         (unsigned long long)r->max_bytes);
  r->spent += bytes;
  return tensor_new(r->a, dt, dim, rank);
}

Tensor *ref_share(Ref *r, const Tensor *x, const i64 *dim, u32 rank) {
  return tensor_wrap(r->a, x->dt, dim, rank, x->data);
}

static Tensor *copy(Arena *a, const Tensor *x) {
  Tensor *t = tensor_new(a, x->dt, x->dim, x->rank);
  if (t->n) memcpy(ref_data(t), x->data, tensor_bytes(x));
  return t;
}

Tensor *ref_value(Ref *r, Val v) {
  if (!r->val[v]) {
    /* A single control node: its regions may use constants defined outside. */
    const Node *n = graph_node(r->g, graph_val(r->g, v)->def);
    if (!graph_val(r->g, v)->def || n->op != OP_const)
      internal_error(r->c, r->n ? r->n->loc : LOC_NONE, "value %u is used before it is defined", v);
    ref_const(r, n, NULL, &r->val[v]);
  }
  return r->val[v];
}

/* ---- running ---- */

static void check_type(Ref *r, const Node *n, Val v, const Tensor *x) {
  const Type *t = graph_type(r->g, v);
  const char *op = op_info[n->op].name;
  if (t->kind != TY_tensor || ref_dtype(r, t->dt) != x->dt || t->rank != x->rank)
    internal_error(r->c, n->loc, "%s gave %s of rank %u, but the graph has %s of rank %u", op,
                   dtype_info[x->dt].name, x->rank, dtype_info[t->dt].name, t->rank);
  for (u32 k = 0; k < t->rank; k++) {
    if (!ref_known(r, t->dim[k])) continue;
    i64 d = ref_dim(r, t->dim[k]);
    if (d == x->dim[k]) continue;
    if (dim_is_const(t->dim[k]))
      internal_error(r->c, n->loc, "%s gave extent %lld on axis %u, but the graph has %lld", op,
                     (long long)x->dim[k], k, (long long)d);
    fail(r->c, ERR_input, n->loc, "%s gives extent %lld on axis %u, expected %s = %lld", op,
         (long long)x->dim[k], k, dim_text(r, t->dim[k]), (long long)d);
  }
}

static void run_node(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  const Node *outer = r->n;
  Tensor *const *outer_in = r->in;
  r->n = n;
  r->in = in;
  if (!kernels[n->op]) internal_error(r->c, n->loc, "no kernel for %s", op_info[n->op].name);
  if (op_info[n->op].kind == OK_CONTROL) {
    kernels[n->op](r, n, in, out);
  } else {
    Mark m = arena_mark(r->tmp);
    kernels[n->op](r, n, in, out);
    arena_rewind(r->tmp, m);
  }
  for (u32 i = 0; i < n->nout; i++) check_type(r, n, n->out[i], out[i]);
  r->n = outer;
  r->in = outer_in;
}

void ref_region(Ref *r, RegionId b) {
  const GraphRegion *region = &r->g->region.at[b];
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = graph_node(r->g, region->node.at[i]);
    Tensor **in = NEWS(r->a, Tensor *, n->nin), **out = NEWS(r->a, Tensor *, n->nout);
    for (u32 k = 0; k < n->nin; k++) in[k] = n->in[k] ? ref_value(r, n->in[k]) : NULL;
    run_node(r, n, in, out);
    for (u32 k = 0; k < n->nout; k++) r->val[n->out[k]] = out[k];
  }
}

/* ---- entry points ---- */

static _Noreturn void bad_input(const Ref *r, Val v, const Tensor *x) {
  fail(r->c, ERR_input, LOC_NONE, "input \"%s\": expected %s, found %s",
       show(r->c, graph_val(r->g, v)->name), type_text(r->g->dims, graph_type(r->g, v)),
       shape_text(r->c, dtype_info[x->dt].name, x->dim, x->rank));
}

static void check_input(Ref *r, Val v, const Tensor *x) {
  const Type *t = graph_type(r->g, v);
  for (u32 k = 0; k < t->rank; k++) {
    if (dim_is_const(t->dim[k]) ? t->dim[k] != x->dim[k] : !ref_known(r, t->dim[k]))
      bad_input(r, v, x);
    i64 d = dim_eval(r->g->dims, t->dim[k], r->env);
    if (d != x->dim[k])
      fail(r->c, ERR_input, LOC_NONE,
           "input \"%s\": axis %u: expected %lld (%s, determined by other axes), found %lld",
           show(r->c, graph_val(r->g, v)->name), k, (long long)d, dim_text(r, t->dim[k]),
           (long long)x->dim[k]);
    i64 lo, hi;
    dim_bounds(r->g->dims, t->dim[k], &lo, &hi);
    if (d < lo || d > hi)
      fail(r->c, ERR_input, LOC_NONE,
           "input \"%s\": axis %u: expected %s in %lld..%lld, found %lld",
           show(r->c, graph_val(r->g, v)->name), k, dim_text(r, t->dim[k]), (long long)lo,
           (long long)hi, (long long)d);
  }
}

/* Solves the input symbols from the shapes of all parameters together, then checks each. */
static void bind_inputs(Ref *r, Tensor *const *in) {
  const GraphRegion *b = &r->g->region.at[1];
  for (u32 i = 0; i < b->param.n; i++) {
    const Type *t = graph_type(r->g, b->param.at[i]);
    if (t->kind != TY_tensor)
      fail(r->c, ERR_unsupported, LOC_NONE, "input \"%s\" is not a tensor",
           show(r->c, graph_val(r->g, b->param.at[i])->name));
    if ((in[i]->dt != t->dt && in[i]->dt != ref_dtype(r, t->dt)) || in[i]->rank != t->rank)
      bad_input(r, b->param.at[i], in[i]);
  }
  for (bool again = true; again;) {
    again = false;
    for (u32 i = 0; i < b->param.n; i++)
      again |= solve_tensor(r, graph_type(r->g, b->param.at[i]), in[i]);
  }
  for (u32 i = 0; i < b->param.n; i++) {
    check_input(r, b->param.at[i], in[i]);
    DType dt = ref_dtype(r, in[i]->dt);
    r->val[b->param.at[i]] = dt == in[i]->dt ? in[i] : tensor_as(r->a, in[i], dt);
  }
}

void ref_run(Graph *g, const RefOptions *o, Tensor *const *in, Tensor **out, Arena *a) {
  Ctx *c = g->c;
  Ref r = {.g = g, .c = c, .wide = o->wide, .seed = o->seed, .max_bytes = o->max_bytes};
  r.a = &c->scratch;
  r.tmp = a == &c->work ? &c->keep : &c->work;
  Mark values = arena_mark(r.a), temps = arena_mark(r.tmp);
  env_new(&r);
  r.val = NEWS(r.tmp, Tensor *, g->val.n);
  bind_inputs(&r, in);
  ref_region(&r, 1);
  const GraphRegion *b = &g->region.at[1];
  Tensor **ret = NEWS(&c->scratch, Tensor *, b->ret.n);
  for (u32 i = 0; i < b->ret.n; i++) ret[i] = ref_value(&r, b->ret.at[i]);
  /* Only the results outlive the run, in the arena of the caller (possibly the one of the
   * values). */
  arena_rewind(r.tmp, temps);
  for (u32 i = 0; i < b->ret.n; i++) out[i] = copy(a, ret[i]);
  if (a != r.a) arena_rewind(r.a, values);
}

void ref_node(Graph *g, NodeId n, Tensor *const *in, Tensor **out, Arena *a) {
  const Node *node = graph_node(g, n);
  Ref r = {.g = g, .c = g->c, .a = a, .n = node, .in = in};
  r.tmp = a == &g->c->scratch ? &g->c->work : &g->c->scratch;
  Mark m = arena_mark(r.tmp);
  env_new(&r);
  env_of_operands(&r);
  if (op_info[node->op].kind == OK_CONTROL) r.val = NEWS(r.tmp, Tensor *, g->val.n);
  run_node(&r, node, in, out);
  arena_rewind(r.tmp, m);
}
