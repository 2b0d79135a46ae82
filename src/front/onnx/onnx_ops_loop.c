/* onnx_ops_loop.c: Loop.
 *
 * Loop-carried values are tensors. A sequence is carried as a stack, with capacity for the longest
 * run, and a count; an optional as value and flag. A trial build of the body in a discarded region
 * shows how much capacity an iteration adds. Loops whose sequences do not fit this form (elements
 * that differ in type) are unrolled if the trip count is known. Short ones are always unrolled,
 * because then every element is a separate value.
 */
#include "front/onnx/list.h"

#include "ir/graph/loop.h"

enum {
  SHORT_LOOP = 16,  /* maximum trip count to unroll a loop with sequences */
  LONG_LOOP = 4096, /* maximum trip count to unroll at all */
};

typedef struct LoopBody {
  Build *b;
  const OnnxGraph *g;
  Val trip, cond;
  u32 ncarried, nscan;
  const Val *init; /* ncarried, tensors and sequences */
  Type *elem;      /* element type of each sequence */
  Dim *room;       /* capacity of each sequence */
  Val *result;     /* ncarried, then nscan */
} LoopBody;

/* Builds one iteration. in: ncarried values; ret: the condition, then ncarried + nscan values. */
static void build_iteration(const LoopBody *l, Val i, Val cond, const Val *carried, Val *ret) {
  Build *b = l->b;
  u32 nin = l->ncarried + 2, nout = 1 + l->ncarried + l->nscan;
  Val *in = NEWS(&b->c->work, Val, nin);
  in[0] = i;
  in[1] = cond;
  for (u32 k = 0; k < l->ncarried; k++) in[2 + k] = carried[k];
  /* old exporters declare counter and condition as one-element vectors */
  for (u32 k = 0; k < 2 && k < l->g->inputs.n; k++) {
    const DeclType *t = &l->g->inputs.at[k].type;
    if (t->kind == OT_tensor && t->has_shape && t->dims.n == 1) {
      Dim one = 1;
      in[k] = mk_reshape(b->g, in[k], &one, 1);
    }
  }
  LoopCounter here = {i, l->trip, b->im->counter};
  b->im->counter = &here;
  u32 made = on_subgraph(b, l->g, in, nin, ret, nout);
  b->im->counter = here.outer;
  if (made != nout) on_bad(b, "the body has %u outputs, expected %u", made, nout);
  for (u32 k = 0; k < nout; k++) {
    bool list = k >= 1 && k <= l->ncarried;
    if (val_is_list(ret[k]) && !list) on_unsupported(b, "a sequence among the results of a body");
  }
  ret[0] = on_scalar(b, ret[0]);
}

/* ---- loop of the graph ---- */

static bool is_opt(const LoopBody *l, u32 k) {
  return val_is_list(l->init[k]) && list_at(l->b->im, l->init[k])->kind == TY_opt;
}

/* Rebuilds a sequence or optional from its two carried tensors. */
static Val list_from_pair(LoopBody *l, u32 k, Val first, Val second) {
  if (!is_opt(l, k)) return list_stacked(l->b->im, first, second);
  Val *at = NEWS(&l->b->c->work, Val, 1);
  *at = first;
  return list_add(l->b->im, (List){.kind = TY_opt, .at = at, .n = 1, .has = second});
}

/* Value and flag of an optional. */
static void opt_parts(LoopBody *l, u32 k, Val v, Val *value, Val *has) {
  Build *b = l->b;
  const List *o = list_at(b->im, v);
  if (o->kind != TY_opt || (o->n && !val_is_real(o->at[0])))
    on_unsupported(b, "an optional sequence that is carried through a loop");
  if (o->n && !type_equal(on_type(b, o->at[0]), &l->elem[k]))
    on_unsupported(b, "an optional whose value changes its type");
  *value = o->n ? o->at[0] : zeros_of(b, &l->elem[k]);
  *has = o->has ? o->has : mk_scalar(b->g, DT_bool, o->n);
}

/* carried[] holds a tensor, stack and count, or value and flag for each of init. */
static void loop_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  LoopBody *l = user;
  Build *b = l->b;
  Val *in = NEWS(&b->c->work, Val, l->ncarried + 1),
      *ret = NEWS(&b->c->work, Val, 1 + l->ncarried + l->nscan);
  (void)g;
  for (u32 k = 0, at = 0; k < l->ncarried; k++, at++) {
    in[k] = carried[at];
    if (val_is_list(l->init[k])) in[k] = list_from_pair(l, k, carried[at], carried[at + 1]), at++;
  }
  build_iteration(l, i, *cond, in, ret);
  *cond = ret[0];
  for (u32 k = 0, at = 0; k < l->ncarried; k++, at++) {
    Val v = ret[1 + k];
    if (val_is_list(v) != val_is_list(l->init[k]))
      on_unsupported(b, "a body that changes the kind of a carried value");
    carried[at] = v;
    if (!val_is_list(v)) continue;
    if (is_opt(l, k)) {
      opt_parts(l, k, v, &carried[at], &carried[at + 1]);
      at++;
      continue;
    }
    Type t;
    const List *r = list_at(b->im, v);
    if (!list_type(b, r, &t) || !type_equal(&t, &l->elem[k]))
      on_unsupported(b, "a sequence whose elements change their type");
    list_stack(b, r, &carried[at], &carried[at + 1]);
    carried[at] = stack_fit(b, carried[at], l->room[k]);
    at++;
  }
  for (u32 k = 0; k < l->nscan; k++) scan[k] = ret[1 + l->ncarried + k];
}

/* Upper bound of a trip count, as a dimension if it is one. */
static Dim max_trip_count(Build *b, Val trip) {
  Dim times;
  u32 one;
  i64 lo, hi;
  if (graph_dim_list(b->g, trip, &times, 1, &one)) return times;
  value_int_range(b->g, trip, &lo, &hi);
  if (hi >= DIM_MAX)
    on_unsupported(b, "a sequence that grows in a loop without a bound on the trip count");
  return hi < 0 ? 0 : hi;
}

/* Finds type and capacity of every carried sequence: initial elements plus those added per
 * iteration times the trip count. */
static void find_capacities(LoopBody *l) {
  Build *b = l->b;
  Graph *g = b->g;
  Arena *a = &b->c->work;
  RegionId outer = g->cur, trial = graph_region(g, 0);
  Val *in = NEWS(a, Val, l->ncarried + 1), *ret = NEWS(a, Val, 1 + l->ncarried + l->nscan),
      *param = NEWS(a, Val, l->ncarried + 1), *init = NEWS(a, Val, l->ncarried + 1);
  u32 nsyms = dim_nsyms(g->dims);
  Val i = graph_param(g, trial, type_tensor(a, DT_i64, NULL, 0), 0),
      cond = graph_param(g, trial, type_tensor(a, DT_bool, NULL, 0), 0);
  g->cur = trial;
  for (u32 k = 0; k < l->ncarried; k++) {
    in[k] = l->init[k];
    if (val_is_list(in[k])) continue;
    bool text = on_dtype(b, in[k]) == DT_str; /* needs a known row length */
    init[k] = in[k];
    in[k] = param[k] =
        graph_param(g, trial, *on_type(b, text ? on_string_bytes(b, in[k]) : in[k]), 0);
    if (text) in[k] = on_strings(b, in[k]);
  }
  build_iteration(l, i, cond, in, ret);
  g->cur = outer;
  CountedLoop count = {.trip = l->trip, .cond = l->cond, .i = i, .go = cond, .n = l->ncarried};
  count.init = init, count.param = param, count.next = ret + 1;
  count.more = ret[0], count.nsyms = nsyms;
  loop_count(g, &count, trial);
  Dim times = max_trip_count(b, count.trip);
  for (u32 k = 0; k < l->ncarried; k++) {
    if (!val_is_list(l->init[k])) continue;
    const List *from = list_at(b->im, l->init[k]),
               *to = val_is_list(ret[1 + k]) ? list_at(b->im, ret[1 + k]) : NULL;
    if (!to || from->kind != to->kind)
      on_unsupported(b, "a body that changes the kind of a carried value");
    if (from->kind == TY_opt) {
      if (!list_type(b, to->n ? to : from, &l->elem[k]) || !type_is_static(&l->elem[k]))
        on_unsupported(b, "an optional whose type is not known");
      continue;
    }
    if (!list_type(b, to->stack || to->n ? to : from, &l->elem[k]) || !type_is_static(&l->elem[k]))
      on_unsupported(b, "a sequence of elements that differ in type");
    Dim had = list_capacity(b, from), has = list_capacity(b, to);
    if (!dim_is_const(had) || !dim_is_const(has))
      on_unsupported(b, "a sequence without bound that is carried through a loop");
    Dim grown = has > had ? dim_mul(b->ds, has - had, times) : 0;
    l->room[k] = dim_max(b->ds, dim_addk(b->ds, grown, had), 1);
  }
}

static void enter_list(LoopBody *l, u32 k, Val *stack, Val *count) {
  Build *b = l->b;
  const List *from = list_at(b->im, l->init[k]);
  const Type *t = &l->elem[k];
  Dim dim[MAX_RANK], have = list_capacity(b, from);
  Type full = {.dt = t->dt, .rank = t->rank + 1, .dim = dim};
  if (full.rank > MAX_RANK)
    on_unsupported(b, "the elements have rank %u, expected less than %d", t->rank, MAX_RANK);
  for (u32 i = 0; i < t->rank; i++) dim[i + 1] = t->dim[i];
  dim[0] = l->room[k];
  *count = mk_scalar(b->g, DT_i64, 0);
  if (!from->stack && !from->n) {
    *stack = zeros_of(b, &full);
    return;
  }
  if (!list_stack(b, from, stack, count) || have == l->room[k]) return;
  dim[0] = dim_addk(b->ds, l->room[k], -have);
  Val part[2] = {*stack, zeros_of(b, &full)};
  *stack = mk_concat(b->g, part, 2, 0);
}

static void build_as_loop(Ctx *c, void *arg) {
  LoopBody *l = arg;
  Build *b = l->b;
  Val *carried = NEWS(&c->work, Val, 2 * l->ncarried + 1),
      *scan = NEWS(&c->work, Val, l->nscan + 1);
  u32 n = 0, at = 0;
  bool lists = false;
  for (u32 k = 0; k < l->ncarried; k++) lists = lists || val_is_list(l->init[k]);
  if (lists) find_capacities(l);
  for (u32 k = 0; k < l->ncarried; k++) {
    carried[n] = l->init[k];
    if (is_opt(l, k))
      opt_parts(l, k, l->init[k], &carried[n], &carried[n + 1]), n++;
    else if (val_is_list(l->init[k]))
      enter_list(l, k, &carried[n], &carried[n + 1]), n++;
    n++;
  }
  on_loop(b, l->trip, l->cond, carried, n, scan, l->nscan, loop_body, l);
  for (u32 k = 0; k < l->ncarried; k++, at++) {
    l->result[k] = carried[at];
    if (val_is_list(l->init[k]))
      l->result[k] = list_from_pair(l, k, carried[at], carried[at + 1]), at++;
  }
  for (u32 k = 0; k < l->nscan; k++) l->result[l->ncarried + k] = scan[k];
}

/* ---- unrolled ---- */

/* Value of a scalar that follows from constants and bound inputs; else -1. */
static i64 const_scalar(Build *b, Val v) {
  Val blame;
  const Tensor *t = import_const_eval(b->im, v, &blame);
  return t && t->n == 1 ? tensor_get(t, 0).i : -1;
}

static void unroll(LoopBody *l, i64 times) {
  Build *b = l->b;
  Val *carried = NEWS(&b->c->work, Val, l->ncarried + 1),
      *ret = NEWS(&b->c->work, Val, 1 + l->ncarried + l->nscan), cond = l->cond;
  VEC(Val) *rows = arena_alloc(&b->c->work, (l->nscan + 1) * sizeof *rows);
  for (u32 k = 0; k < l->nscan; k++) rows[k].n = 0, rows[k].at = NULL;
  for (u32 k = 0; k < l->ncarried; k++) carried[k] = l->init[k];
  for (i64 i = 0; i < times; i++) {
    i64 go = const_scalar(b, cond);
    if (go < 0) on_unsupported(b, "carried sequences with an end that is only known at run time");
    if (!go) break;
    build_iteration(l, mk_scalar(b->g, DT_i64, (double)i), cond, carried, ret);
    cond = ret[0];
    for (u32 k = 0; k < l->ncarried; k++) carried[k] = ret[1 + k];
    for (u32 k = 0; k < l->nscan; k++)
      *vec_push(&b->c->work, &rows[k]) = mk_unsqueeze(b->g, ret[1 + l->ncarried + k], 0);
  }
  for (u32 k = 0; k < l->ncarried; k++) l->result[k] = carried[k];
  for (u32 k = 0; k < l->nscan; k++) {
    if (!rows[k].n)
      on_unsupported(b, "a loop that never runs and leaves the shape of a result open");
    l->result[l->ncarried + k] = mk_concat(b->g, rows[k].at, rows[k].n, 0);
  }
}

static void unroll_fixed(Ctx *c, void *arg) {
  LoopBody *l = arg;
  (void)c;
  unroll(l, tensor_get(graph_const(l->b->g, l->trip), 0).i);
}

static void with_lists(LoopBody *l) {
  Build *b = l->b;
  const Tensor *fixed = graph_const(b->g, l->trip);
  const char *why;
  bool brief = fixed && tensor_get(fixed, 0).i <= SHORT_LOOP;
  if (brief && !import_try(b->im, unroll_fixed, l, &why)) return;
  if (!import_try(b->im, build_as_loop, l, &why)) return;
  i64 times = fixed ? tensor_get(fixed, 0).i : const_scalar(b, l->trip);
  if (brief || times < 0 || times > LONG_LOOP)
    build_as_loop(b->c, l); /* fails with the reason */
  else
    unroll(l, times);
}

static void build_either(Ctx *c, void *arg) {
  LoopBody *l = arg;
  bool lists = false;
  for (u32 k = 0; k < l->ncarried; k++) lists = lists || val_is_list(l->init[k]);
  if (lists)
    with_lists(l);
  else
    build_as_loop(c, l);
}

/* See SliceMode. The outermost loop decides for all inner loops. */
static void build_slices(LoopBody *l) {
  Import *im = l->b->im;
  SliceMode outside = im->slices;
  const char *why;
  if (outside == SLICES_fixed) im->slices = SLICES_exact;
  if (outside != SLICES_fixed || import_try(im, build_either, l, &why)) {
    if (outside == SLICES_fixed) im->slices = SLICES_fixed_loop;
    build_either(im->c, l);
  }
  im->slices = outside;
}

static Val unbounded_trip(Build *b) {
  Tensor *most = tensor_new(&b->c->work, DT_i64, NULL, 0);
  tensor_set(most, 0, (Scalar){.i = INT64_MAX});
  return mk_const(b->g, most);
}

void build_loop(Build *b) {
  LoopBody l = {.b = b, .g = on_graph(b, "body")};
  Arena *a = &b->c->work;
  l.ncarried = b->nin > 2 ? b->nin - 2 : 0;
  u32 want = l.g->outputs.n;
  if (want < 1 + l.ncarried)
    on_bad(b, "the body has %u outputs, expected at least %u", want, 1 + l.ncarried);
  l.nscan = want - 1 - l.ncarried;
  if (on_has(b, 0) && !dtype_is_int(on_dtype(b, on_in(b, 0))))
    on_bad(b, "the trip count has type %s, expected an integer",
           dtype_info[on_dtype(b, on_in(b, 0))].name);
  l.trip = on_has(b, 0) ? mk_cast(b->g, on_scalar(b, on_in(b, 0)), DT_i64) : unbounded_trip(b);
  l.cond = on_has(b, 1) ? on_scalar(b, on_in(b, 1)) : mk_scalar(b->g, DT_bool, 1);
  if (!on_has(b, 0) && l.nscan && !on_has(b, 1))
    on_bad(b, "a loop without trip count and condition never ends");
  Val *init = NEWS(a, Val, l.ncarried + 1);
  for (u32 k = 0; k < l.ncarried; k++) init[k] = on_any(b, 2 + k);
  l.init = init;
  l.elem = NEWS(a, Type, l.ncarried + 1);
  l.room = NEWS(a, Dim, l.ncarried + 1);
  l.result = NEWS(a, Val, l.ncarried + l.nscan + 1);
  build_slices(&l);
  for (u32 k = 0; k < b->nout && k < l.ncarried + l.nscan; k++) b->out[k] = l.result[k];
}
