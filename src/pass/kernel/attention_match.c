/* attention_match.c: finds softmax between two contractions.
 *
 * In: a graph whose values have homes. Out: an Attention for every contraction of values with the
 * softmax of scores, if nothing else reads the nodes between. Scores are a contraction, optionally
 * with maps after it. A mask by key position, such as causal masks and windows, becomes limits. Any
 * other mask is one of the maps.
 */
#include "pass/kernel/attention.h"

#include <math.h>
#include <string.h>

typedef struct Finder {
  Lower *l;
  Graph *g;
  Attentions *all;
  u32 *uses, *left; /* by value; left: uses that limits do not replace */
  RegionId *region; /* by node: its region */
  RegionId here;
} Finder;

/* The node that defines v, if it has this op, is in this region, and v has so many uses. */
static const Node *made_by(const Finder *f, Val v, Op op, u32 uses) {
  const Node *n = graph_producer(f->g, v);
  if (!n || n->op != op || n->nout != 1 || f->uses[v] != uses) return NULL;
  return f->region[graph_val(f->g, v)->def] == f->here ? n : NULL;
}

static bool is_number(const Finder *f, Val v, double x) {
  const Tensor *t = graph_const(f->g, v);
  return t && t->n == 1 && dtype_is_float(t->dt) && tensor_get(t, 0).f == x;
}

static bool add_part(const Finder *f, Attention *a, Val v) {
  if (graph_val(f->g, v)->home != HOME_buffer) return true;
  if (a->npart == ATTENTION_PARTS) return false;
  a->part[a->npart++] = graph_val(f->g, v)->def;
  return true;
}

/* Is n a reduction of `of` along one dimension, which it keeps as 1? */
static bool is_reduction_of(const Finder *f, const Node *n, Val of, u32 *axis) {
  u32 count = 0;
  const Dim *axes = n ? node_list(n, AT_axes, &count) : NULL;
  if (!axes || count != 1 || !node_int(n, AT_keep, 0) || n->in[0] != of) return false;
  *axis = (u32)axes[0];
  return f->g != NULL;
}

/* Matches select(maximum == -inf, other, v), which handles rows without keys, and returns v; 0: no
 * match. */
static Val match_guarded(const Finder *f, Val v, double other, Val *none) {
  const Node *n = made_by(f, v, OP_select, 1);
  if (!n || !is_number(f, n->in[1], other)) return 0;
  *none = n->in[0];
  return n->in[2];
}

static bool is_none(const Finder *f, Val none, Val top) {
  const Node *n = made_by(f, none, OP_eq, 2);
  return n && n->in[0] == top && is_number(f, n->in[1], -INFINITY);
}

/* Matches e / sum of e, e = exp(masked - maximum), starting from the quotient v. */
static bool match_softmax(Finder *f, Attention *a, Val v) {
  const Node *p = made_by(f, v, OP_mul, 1), *r = NULL, *n;
  Val e = 0, sum = 0, none = 0, none_top = 0;
  u32 along;
  for (u32 k = 0; p && k < 2 && !r; k++) {
    r = made_by(f, p->in[k], OP_recip, 1);
    e = p->in[1 - k];
  }
  if (r && !add_part(f, a, r->out[0])) return false;
  if (r) sum = r->in[0];
  if (!p && (p = made_by(f, v, OP_div, 1)) != NULL) {
    e = p->in[0];
    sum = p->in[1];
  }
  if (!sum || !add_part(f, a, v)) return false;
  Val divisor = sum, inner = match_guarded(f, sum, 1, &none);
  if (inner) sum = inner;
  if (!is_reduction_of(f, made_by(f, sum, OP_reduce_sum, 1), e, &a->key)) return false;
  n = made_by(f, e, OP_exp, 2);
  const Node *d = n ? made_by(f, n->in[0], OP_sub, 1) : NULL;
  if (!d) return false;
  Val top = d->in[1], of = match_guarded(f, top, 0, &none_top);
  if (!of != !inner || none != none_top) return false;
  a->masked = d->in[0];
  a->whole_rows = inner != 0;
  Val largest = of ? of : top;
  if (!is_reduction_of(f, made_by(f, largest, OP_reduce_max, of ? 2 : 1), a->masked, &along))
    return false;
  if (along != a->key || f->uses[a->masked] != 2 || (of && !is_none(f, none, largest)))
    return false;
  Val parts[] = {divisor, sum, e, n->in[0], top, largest, none, a->masked};
  for (u32 i = 0; i < sizeof parts / sizeof *parts; i++) {
    bool twice = !parts[i] || (i == 1 && sum == divisor) || (i == 5 && largest == top);
    if (!twice && !add_part(f, a, parts[i])) return false;
  }
  return true;
}

/* Is v the position of the key? Its type must be an integer type that i64 contains and that does
 * not overflow before the last key. */
static bool is_key_number(const Finder *f, const Attention *a, Val v) {
  const Node *n = graph_producer(f->g, v);
  const Type *t = graph_type(f->g, v), *all = graph_type(f->g, a->masked);
  if (!n || n->op != OP_iota || (t->dt != DT_i64 && t->dt != DT_i32)) return false;
  u32 axis = (u32)node_int(n, AT_axis, 0);
  return axis + all->rank - t->rank == a->key && t->dim[axis] == all->dim[a->key];
}

/* Is v equal for all keys? */
static bool is_of_row(const Finder *f, const Attention *a, Val v) {
  const Type *t = graph_type(f->g, v);
  u32 all = graph_type(f->g, a->masked)->rank, trailing = all - a->key;
  return t->rank < trailing || t->dim[t->rank - trailing] == 1;
}

static bool add_limits(const Finder *f, Attention *a, Val cond) {
  const Node *n = graph_producer(f->g, cond);
  if (n && n->op == OP_and) return add_limits(f, a, n->in[0]) && add_limits(f, a, n->in[1]);
  bool le = n && n->op == OP_le, lt = n && n->op == OP_lt, ge = n && n->op == OP_ge,
       gt = n && n->op == OP_gt;
  if ((!le && !lt && !ge && !gt) || a->nlimit == LIMITS) return false;
  for (u32 k = 0; k < 2; k++) {
    if (!is_key_number(f, a, n->in[k]) || !is_of_row(f, a, n->in[1 - k])) continue;
    bool low = k == 0 ? ge || gt : le || lt; /* key >= at, or at <= key */
    bool next = low ? gt || lt : le || ge;   /* the bound itself is excluded */
    a->limit[a->nlimit++] = (KeyLimit){n->in[1 - k], next, low};
    return true;
  }
  return false;
}

/* Removes one use. A value without uses is not computed. */
static void hide(Finder *f, const Attention *a, Val v) {
  Graph *g = f->g;
  NodeId id = graph_val(g, v)->def;
  if (!id || --f->left[v]) return;
  const Node *n = graph_node(g, id);
  f->all->hidden[id] = true;
  for (u32 i = 0; i < n->nin; i++)
    if (n->op == OP_and || is_key_number(f, a, n->in[i])) hide(f, a, n->in[i]);
}

static void find_limits(Finder *f, Attention *a) {
  const Node *n = graph_producer(f->g, a->masked);
  a->seen = a->masked;
  if (n->op != OP_select || !is_number(f, n->in[2], -INFINITY)) return;
  const Type *x = graph_type(f->g, n->in[1]), *s = graph_type(f->g, a->masked);
  if (!type_has_shape(x, s->dim, s->rank)) return;
  if (add_limits(f, a, n->in[0]))
    a->seen = n->in[1];
  else
    a->nlimit = 0;
}

static DType cast_from(const Finder *f, const Node *n) {
  return n && n->op == OP_cast ? graph_type(f->g, n->in[0])->dt : DT_none;
}

/* Is n an int8 value scaled to float? */
static bool is_scaled(const Finder *f, const Node *n) {
  for (u32 k = 0; n && n->op == OP_mul && k < 2; k++) {
    Val x = n->in[k];
    if (cast_from(f, graph_producer(f->g, x)) == DT_i8 && f->uses[x] == 1 &&
        graph_val(f->g, x)->home == HOME_inline)
      return true;
  }
  return false;
}

/* The value that a contraction reads through views, if it is widened from f16 or int8 for it alone;
 * else 0. */
static Val cast_below(const Finder *f, Val v) {
  const Node *n = graph_producer(f->g, v);
  while (n && node_is_view(n) && graph_val(f->g, v)->home == HOME_inline && f->uses[v] == 1) {
    v = n->in[0];
    n = graph_producer(f->g, v);
  }
  if (f->uses[v] != 1 || (!dtype_is_half(cast_from(f, n)) && !is_scaled(f, n))) return 0;
  return graph_val(f->g, v)->home == HOME_buffer ? v : 0;
}

/* Does fusion pay off? The number of keys is unknown, or the weights exceed the caches. */
static bool pays(const Finder *f, const Attention *a) {
  const Type *t = graph_type(f->g, a->masked);
  if (!dim_is_const(t->dim[a->key])) return true;
  double bytes = 4 * (double)t->dim[a->key];
  if (a->key != t->rank - 1) return false;
  if (t->rank > 1 && dim_is_const(t->dim[t->rank - 2])) bytes *= (double)t->dim[t->rank - 2];
  return bytes > figures.score_bytes;
}

static bool match(Finder *f, NodeId id, Attention *a) {
  const Node *y = graph_node(f->g, id);
  if (y->op != OP_contract || graph_type(f->g, y->out[0])->dt != DT_f32 ||
      graph_val(f->g, y->out[0])->home != HOME_buffer)
    return false;
  for (u32 k = 0; k < 2; k++) {
    *a = (Attention){.root = id, .weights = k};
    if (!match_softmax(f, a, y->in[k])) continue;
    Val scores = group_accumulator(f->l, a->masked);
    const Node *s = scores ? graph_producer(f->g, scores) : NULL;
    if (!s || s->op != OP_contract || graph_val(f->g, a->masked)->home != HOME_buffer ||
        !pays(f, a))
      return false;
    find_limits(f, a);
    a->values = cast_below(f, y->in[1 - k]);
    for (u32 i = 0; i < 2 && !a->keys; i++) a->keys = cast_below(f, s->in[i]);
    return (!a->values || add_part(f, a, a->values)) && (!a->keys || add_part(f, a, a->keys));
  }
  return false;
}

static void add(Finder *f, const Attention *a) {
  *vec_push(&f->l->c->scratch, &f->all->at) = *a;
  u32 number = f->all->at.n;
  f->all->part[a->root] = number;
  for (u32 i = 0; i < a->npart; i++) f->all->part[a->part[i]] = number;
  if (a->nlimit) hide(f, a, graph_producer(f->g, a->masked)->in[0]);
}

Attentions *attention_find(Lower *l) {
  Graph *g = l->g;
  Arena *t = &l->c->scratch;
  Finder f = {.l = l, .g = g, .all = NEW(t, Attentions)};
  f.all->part = NEWS(t, u32, g->node.n);
  f.all->hidden = NEWS(t, bool, g->node.n);
  if (l->pass->target->lanes < 4 || l->pass->aim == AIM_size) return f.all;
  f.uses = NEWS(t, u32, g->val.n);
  f.left = NEWS(t, u32, g->val.n);
  f.region = NEWS(t, RegionId, g->node.n);
  graph_use_counts(g, f.uses);
  memcpy(f.left, f.uses, g->val.n * sizeof *f.left);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) f.region[g->region.at[b].node.at[i]] = b;
  for (f.here = 1; f.here < g->region.n; f.here++)
    for (u32 i = 0; i < g->region.at[f.here].node.n; i++) {
      Attention a;
      if (match(&f, g->region.at[f.here].node.at[i], &a)) add(&f, &a);
    }
  return f.all;
}
