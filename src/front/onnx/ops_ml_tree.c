/* ops_ml_tree.c: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
 *
 * The nodes of all trees become tables: feature, threshold, children. A loop of as many rounds as
 * the deepest tree has levels moves every (row, tree) one node down; a leaf is its own child. What
 * the leaves say is another table, read at the places reached. Leaves are numbered behind all other
 * nodes.
 */
#include "front/onnx/ml.h"

#include <math.h>
#include <string.h>

typedef enum TreeMode { TM_leq, TM_lt, TM_gte, TM_gt, TM_eq, TM_neq, TM_member, TM_leaf } TreeMode;
typedef enum Agg { AG_average, AG_sum, AG_min, AG_max } Agg;

typedef struct TreeNode {
  TreeMode mode;
  i64 feature, yes, no; /* children are indices of nodes */
  double value;         /* threshold, or number of the set */
  bool missing;         /* NaN goes to yes */
} TreeNode;

typedef struct Say { /* one weight of a leaf */
  u32 leaf;          /* index of the node */
  i64 target;
  double weight;
} Say;

typedef struct Forest {
  Build *b;
  DType dt; /* thresholds are compared in it */
  VEC(TreeNode) node;
  VEC(u32) root;
  VEC(Say) say;
  u32 inner, depth, targets; /* inner: nodes that are not leaves */
  VEC(double) member;        /* sets, each padded with NaN to `widest` */
  u32 widest, sets;
} Forest;

/* ---- the forest from attributes ---- */

static const OnnxAttr *ints_attr(Build *b, const char *name, bool must) {
  const OnnxAttr *a = on_typed(b, name, OA_ints);
  if (must && (!a || !a->ints.n)) on_bad(b, "attribute %s is missing", name);
  return a;
}

static TreeMode mode_from(Build *b, Str s) {
  static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                      "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (u32 i = 0; i < 6; i++)
    if (str_is(b->c, s, names[i])) return (TreeMode)i;
  if (str_is(b->c, s, "LEAF")) return TM_leaf;
  on_unsupported(b, "nodes of mode '%s'", show(b->c, s));
}

static u64 *key_of(u64 *key, i64 tree, i64 node) {
  key[0] = (u64)tree;
  key[1] = (u64)node;
  return key;
}

static u32 find_node(Build *b, const Map *m, i64 tree, i64 node) {
  u64 key[2];
  const u32 *at = map_get_bytes(m, key_of(key, tree, node), sizeof key);
  if (!at) on_bad(b, "tree %lld has no node %lld", (long long)tree, (long long)node);
  return *at - 1;
}

/* Nodes as they are listed; children are found by tree and number. Returns the map from those to
 * indices. */
static Map read_nodes(Forest *f) {
  Build *b = f->b;
  const OnnxAttr *tree = ints_attr(b, "nodes_treeids", true),
                 *id = ints_attr(b, "nodes_nodeids", true);
  const OnnxAttr *feature = ints_attr(b, "nodes_featureids", true),
                 *miss = ints_attr(b, "nodes_missing_value_tracks_true", false);
  const OnnxAttr *yes = ints_attr(b, "nodes_truenodeids", true),
                 *no = ints_attr(b, "nodes_falsenodeids", true);
  const OnnxAttr *mode = on_attr(b, "nodes_modes");
  MlNums value = ml_nums(b, "nodes_values");
  u32 n = tree->ints.n;
  if (id->ints.n != n || feature->ints.n != n || yes->ints.n != n || no->ints.n != n || !mode ||
      mode->type != OA_strings || mode->strings.n != n || value.n != n)
    on_bad(b, "the lists of nodes differ in length");
  Map m = map_new(&b->c->scratch), trees = map_new(&b->c->scratch);
  u64 key[2];
  for (u32 i = 0; i < n; i++) {
    u32 *slot = map_put_bytes(&m, key_of(key, tree->ints.at[i], id->ints.at[i]), sizeof key);
    if (*slot)
      on_bad(b, "tree %lld has two nodes %lld", (long long)tree->ints.at[i],
             (long long)id->ints.at[i]);
    *slot = i + 1;
    u32 *first = map_put(&trees, (u64)tree->ints.at[i]);
    if (!*first) *vec_push(&b->c->scratch, &f->root) = i;
    *first = 1;
  }
  for (u32 i = 0; i < n; i++) {
    TreeNode t = {.mode = mode_from(b, mode->strings.at[i]),
                  .feature = feature->ints.at[i],
                  .value = value.at[i]};
    t.missing = miss && i < miss->ints.n && miss->ints.at[i];
    bool leaf = t.mode == TM_leaf;
    t.yes = leaf ? i : find_node(b, &m, tree->ints.at[i], yes->ints.at[i]);
    t.no = leaf ? i : find_node(b, &m, tree->ints.at[i], no->ints.at[i]);
    *vec_push(&b->c->scratch, &f->node) = t;
  }
  return m;
}

/* Weights of leaves under the names `prefix`_treeids and so on. */
static void read_weights(Forest *f, const Map *nodes, const char *prefix) {
  Build *b = f->b;
  const char *part[] = {"treeids", "nodeids", "ids"};
  const OnnxAttr *a[3];
  for (u32 i = 0; i < 3; i++)
    a[i] = ints_attr(b, str_text(b->c, str_fmt(b->c, "%s_%s", prefix, part[i])), true);
  MlNums w = ml_nums(b, str_text(b->c, str_fmt(b->c, "%s_weights", prefix)));
  u32 n = a[0]->ints.n;
  if (a[1]->ints.n != n || a[2]->ints.n != n || w.n != n)
    on_bad(b, "the lists of weights differ in length");
  for (u32 i = 0; i < n; i++) {
    Say s = {find_node(b, nodes, a[0]->ints.at[i], a[1]->ints.at[i]), a[2]->ints.at[i], w.at[i]};
    if (f->node.at[s.leaf].mode == TM_leaf)
      *vec_push(&b->c->scratch, &f->say) = s; /* others are never reached */
  }
}

/* Of several weights a leaf has for the only target the first counts: converters that want the
 * number of the leaf repeat it, and ONNX Runtime takes it so. It adds those of classes. */
static void keep_first(Forest *f) {
  bool *seen = NEWS(&f->b->c->scratch, bool, f->node.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < f->say.n; i++) {
    Say s = f->say.at[i];
    if (!seen[s.leaf]) f->say.at[n++] = s;
    seen[s.leaf] = true;
  }
  f->say.n = n;
}

/* ---- the forest of TreeEnsemble (version 5): leaves are a list of their own ---- */

static Tensor *tensor_attr(Build *b, const char *name) {
  Tensor *t = on_tensor(b, name);
  if (!t) on_bad(b, "attribute %s is missing", name);
  return t;
}

/* Sets are listed one after the other, each ended by NaN. */
static void read_members(Forest *f) {
  Build *b = f->b;
  Tensor *t = on_tensor(b, "membership_values");
  u32 width = 0, sets = 0;
  for (u64 i = 0; t && i < t->n; i++) {
    if (!isnan(tensor_get(t, i).f)) {
      width++;
      continue;
    }
    if (width > f->widest) f->widest = width;
    width = 0;
    sets++;
  }
  if (f->sets > sets) on_bad(b, "%u sets for %u nodes that ask for one", sets, f->sets);
  u64 at = 0, cells;
  if (!size_mul(f->sets, f->widest, &cells) || cells > (1u << 26))
    on_unsupported(b, "sets of this size");
  for (u32 s = 0; s < f->sets; s++) {
    bool end = false;
    for (u32 i = 0; i < f->widest; i++) {
      end = end || isnan(tensor_get(t, at).f);
      *vec_push(&b->c->scratch, &f->member) = end ? NAN : tensor_get(t, at++).f;
    }
    at++; /* the NaN */
  }
}

static i64 child(Forest *f, i64 at, bool leaf, u32 inner, u64 leaves) {
  if (at < 0 || (u64)at >= (leaf ? leaves : inner))
    on_bad(f->b, "a child %lld is not there", (long long)at);
  return leaf ? at + inner : at;
}

static void read_ensemble(Forest *f) {
  Build *b = f->b;
  const OnnxAttr *feature = ints_attr(b, "nodes_featureids", true),
                 *roots = ints_attr(b, "tree_roots", true);
  const OnnxAttr *yes = ints_attr(b, "nodes_truenodeids", true),
                 *no = ints_attr(b, "nodes_falsenodeids", true);
  const OnnxAttr *yleaf = ints_attr(b, "nodes_trueleafs", true),
                 *nleaf = ints_attr(b, "nodes_falseleafs", true);
  const OnnxAttr *miss = ints_attr(b, "nodes_missing_value_tracks_true", false),
                 *to = ints_attr(b, "leaf_targetids", true);
  Tensor *split = tensor_attr(b, "nodes_splits"), *mode = tensor_attr(b, "nodes_modes");
  Tensor *weight = tensor_attr(b, "leaf_weights");
  u32 n = feature->ints.n;
  if (yes->ints.n != n || no->ints.n != n || yleaf->ints.n != n || nleaf->ints.n != n ||
      split->n != n || mode->n != n || weight->n != to->ints.n)
    on_bad(b, "the lists of nodes differ in length");
  f->dt = split->dt;
  for (u32 i = 0; i < n; i++) {
    i64 m = tensor_get(mode, i).i;
    if (m < 0 || m > TM_member) on_bad(b, "mode %lld is not known", (long long)m);
    TreeNode t = {
        .mode = (TreeMode)m, .feature = feature->ints.at[i], .value = tensor_get(split, i).f};
    if (m == TM_member) t.value = f->sets++;
    t.missing = miss && i < miss->ints.n && miss->ints.at[i];
    t.yes = child(f, yes->ints.at[i], yleaf->ints.at[i] != 0, n, weight->n);
    t.no = child(f, no->ints.at[i], nleaf->ints.at[i] != 0, n, weight->n);
    *vec_push(&b->c->scratch, &f->node) = t;
  }
  for (u32 i = 0; i < weight->n; i++) {
    *vec_push(&b->c->scratch, &f->node) = (TreeNode){.mode = TM_leaf, .yes = n + i, .no = n + i};
    *vec_push(&b->c->scratch, &f->say) = (Say){n + i, to->ints.at[i], tensor_get(weight, i).f};
  }
  for (u32 i = 0; i < roots->ints.n; i++)
    *vec_push(&b->c->scratch, &f->root) = (u32)child(f, roots->ints.at[i], false, n, 0);
  read_members(f);
}

/* ---- order and depth ---- */

/* Leaves behind the others; every number that names a node follows. */
static void leaves_last(Forest *f) {
  Arena *a = &f->b->c->scratch;
  u32 n = f->node.n, at = 0, *to = NEWS(a, u32, n);
  TreeNode *sorted = NEWS(a, TreeNode, n);
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 i = 0; i < n; i++)
      if ((f->node.at[i].mode == TM_leaf) == (pass == 1)) to[i] = at++;
    if (pass == 0) f->inner = at;
  }
  for (u32 i = 0; i < n; i++) {
    TreeNode t = f->node.at[i];
    t.yes = to[t.yes];
    t.no = to[t.no];
    sorted[to[i]] = t;
  }
  f->node.at = sorted;
  for (u32 i = 0; i < f->root.n; i++) f->root.at[i] = to[f->root.at[i]];
  for (u32 i = 0; i < f->say.n; i++) f->say.at[i].leaf = to[f->say.at[i].leaf];
}

/* The children of a node, each once; returns how many. */
static u32 children(const TreeNode *t, u32 *kid) {
  if (t->mode == TM_leaf) return 0;
  kid[0] = (u32)t->yes;
  kid[1] = (u32)t->no;
  return t->yes == t->no ? 1 : 2;
}

/* Levels above the deepest leaf: the longest way down. Subtrees may be shared, as converters of
 * categorical splits do; a circle is refused. Nodes are taken when all their parents are. */
static void measure(Forest *f) {
  Build *b = f->b;
  Arena *a = &b->c->scratch;
  u32 n = f->node.n, count = 0, met, kid[2];
  u32 *todo = NEWS(a, u32, n + 1), *parents = NEWS(a, u32, n), *level = NEWS(a, u32, n);
  bool *seen = NEWS(a, bool, n);
  for (u32 i = 0; i < f->root.n; i++) {
    if (seen[f->root.at[i]]) on_bad(b, "two trees have one root");
    seen[f->root.at[i]] = true;
    todo[count++] = f->root.at[i];
  }
  for (u32 i = 0; i < count; i++) {
    u32 nkid = children(&f->node.at[todo[i]], kid);
    for (u32 k = 0; k < nkid; k++) {
      parents[kid[k]]++;
      if (!seen[kid[k]]) todo[count++] = kid[k];
      seen[kid[k]] = true;
    }
  }
  met = count;
  count = 0;
  for (u32 i = 0; i < f->root.n; i++)
    if (!parents[f->root.at[i]]) todo[count++] = f->root.at[i];
  for (u32 i = 0; i < count; i++) {
    u32 nkid = children(&f->node.at[todo[i]], kid), deep = level[todo[i]] + 1;
    for (u32 k = 0; k < nkid; k++) {
      if (deep > level[kid[k]]) level[kid[k]] = deep;
      if (deep > f->depth) f->depth = deep;
      if (!--parents[kid[k]]) todo[count++] = kid[k];
    }
  }
  if (count != met) on_bad(b, "the nodes of a tree form a circle");
}

/* ---- the walk ---- */

typedef struct TreeWalk {
  Forest *f;
  Val x;                                              /* [rows, features] */
  Val feature, value, yes, no, mode, missing, member; /* tables; missing and member 0: none */
  u32 modes;                                          /* bit set */
} TreeWalk;

static Val index_table(Forest *f, size_t field) {
  i64 n = f->node.n;
  Tensor *t = tensor_new(&f->b->c->work, DT_i64, &n, 1);
  for (u32 i = 0; i < f->node.n; i++) {
    i64 v;
    memcpy(&v, (const char *)&f->node.at[i] + field, sizeof v);
    tensor_set(t, i, (Scalar){.i = v});
  }
  return mk_const(f->b->g, t);
}

static TreeWalk walk_tables(Forest *f, Val x) {
  Build *b = f->b;
  i64 n = f->node.n, features = on_static_dim(b, x, 1);
  TreeWalk w = {.f = f, .x = x};
  double *value = NEWS(&b->c->scratch, double, f->node.n),
         *mode = NEWS(&b->c->scratch, double, f->node.n);
  double *missing = NEWS(&b->c->scratch, double, f->node.n);
  bool any = false;
  for (u32 i = 0; i < f->node.n; i++) {
    TreeNode *t = &f->node.at[i];
    if (t->mode == TM_leaf)
      t->feature = 0;
    else
      w.modes |= 1u << t->mode;
    if (t->feature < 0 || (t->mode != TM_leaf && t->feature >= features))
      on_bad(b, "a node asks for feature %lld of %lld", (long long)t->feature, (long long)features);
    value[i] = t->value;
    mode[i] = (double)t->mode;
    missing[i] = t->missing;
    any = any || (t->missing && t->mode != TM_leaf);
  }
  w.feature = index_table(f, offsetof(TreeNode, feature));
  w.yes = index_table(f, offsetof(TreeNode, yes));
  w.no = index_table(f, offsetof(TreeNode, no));
  w.value = ml_const(b, on_dtype(b, x), value, &n, 1);
  w.mode = ml_const(b, DT_u8, mode, &n, 1);
  if (any) w.missing = ml_const(b, DT_bool, missing, &n, 1);
  i64 sets[2] = {f->sets, f->widest};
  if (f->sets && f->widest) w.member = ml_const(b, on_dtype(b, x), f->member.at, sets, 2);
  return w;
}

static Val mode_holds(const TreeWalk *w, TreeMode m, Val v, Val limit) {
  static const Op op[] = {OP_le, OP_lt, OP_ge, OP_gt, OP_eq, OP_ne};
  Graph *g = w->f->b->g;
  if (m < TM_member) return mk_map2(g, op[m], v, limit);
  if (!w->member) return mk_ne(g, v, v); /* sets are empty; NaN is not asked here */
  Val set = mk_gather(g, w->member, mk_cast(g, limit, DT_i64), 0); /* [rows, trees, widest] */
  return mk_reduce(g, OP_reduce_max, mk_eq(g, mk_unsqueeze(g, v, 2), set), &(i64){2}, 1, false);
}

static void step_down(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  TreeWalk *w = user;
  (void)i, (void)cond, (void)scan;
  Val at = carried[0], v = mk_gather_elems(g, w->x, mk_gather(g, w->feature, at, 0), 1);
  Val limit = mk_gather(g, w->value, at, 0), yes = 0, mode = 0;
  for (u32 m = 0; m < TM_leaf; m++) {
    if (!(w->modes >> m & 1)) continue;
    Val holds = mode_holds(w, (TreeMode)m, v, limit);
    if (yes && !mode) mode = mk_gather(g, w->mode, at, 0);
    yes = yes ? mk_select(g, mk_eq(g, mode, mk_scalar(g, DT_u8, m)), holds, yes) : holds;
  }
  if (w->missing) {
    Val lost = mk_and(g, mk_isnan(g, v), mk_gather(g, w->missing, at, 0));
    yes = mk_or(g, yes, lost);
  }
  carried[0] = mk_select(g, yes, mk_gather(g, w->yes, at, 0), mk_gather(g, w->no, at, 0));
}

/* Numbers of the leaves that [rows, trees] end in, counted from the first leaf. */
static Val find_leaves(Forest *f, Val x) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 n = f->root.n;
  Tensor *roots = tensor_new(&b->c->work, DT_i64, &n, 1);
  for (u32 i = 0; i < f->root.n; i++) tensor_set(roots, i, (Scalar){.i = f->root.at[i]});
  Dim shape[2] = {on_dim(b, x, 0), n};
  Val at = mk_broadcast(g, mk_const(g, roots), shape, 2), scan;
  TreeWalk w = walk_tables(f, x);
  if (f->depth) mk_loop(g, mk_scalar(g, DT_i64, f->depth), 0, &at, 1, &scan, 0, step_down, &w);
  return mk_addk(g, at, -(double)f->inner);
}

/* ---- what the leaves say ---- */

/* The tree each node is in; NULL: some are in two. */
static u32 *tree_of(Forest *f) {
  u32 n = f->node.n, *tree = NEWS(&f->b->c->scratch, u32, n), kid[2];
  u32 *todo = NEWS(&f->b->c->scratch, u32, n + 1), left;
  bool *seen = NEWS(&f->b->c->scratch, bool, n);
  for (u32 r = 0; r < f->root.n; r++) {
    todo[0] = f->root.at[r];
    seen[todo[0]] = true;
    tree[todo[0]] = r;
    for (left = 1; left > 0;) {
      u32 nkid = children(&f->node.at[todo[--left]], kid), at = left;
      for (u32 k = 0; k < nkid; k++) {
        if (seen[kid[k]] && tree[kid[k]] != r) return NULL;
        if (!seen[kid[k]]) todo[at++] = kid[k];
        seen[kid[k]] = true;
        tree[kid[k]] = r;
      }
      left = at;
    }
  }
  return tree;
}

/* The target of each tree, when every leaf has one weight and all of a tree the same target; else
 * NULL. */
static i64 *single_targets(Forest *f) {
  u32 *tree = tree_of(f), leaves = f->node.n - f->inner;
  i64 *target = NEWS(&f->b->c->scratch, i64, f->root.n);
  bool *said = NEWS(&f->b->c->scratch, bool, f->node.n);
  for (u32 i = 0; i < f->root.n; i++) target[i] = -1;
  if (!tree || f->say.n != leaves) return NULL;
  for (u32 i = 0; i < f->say.n; i++) {
    const Say *s = &f->say.at[i];
    i64 *t = &target[tree[s->leaf]];
    if (said[s->leaf] || (*t >= 0 && *t != s->target)) return NULL;
    said[s->leaf] = true;
    *t = s->target;
  }
  return target;
}

/* Sums by one weight for each leaf, then one product that sends trees to their targets. */
static Val sum_single(Forest *f, Val leaf, const i64 *target) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 n = f->node.n - f->inner, dim[2] = {f->root.n, f->targets};
  double *w = NEWS(&b->c->scratch, double, (size_t)n),
         *to = NEWS(&b->c->scratch, double, (size_t)(dim[0] * dim[1]));
  for (u32 i = 0; i < f->say.n; i++) w[f->say.at[i].leaf - f->inner] = f->say.at[i].weight;
  Val said = mk_gather(g, ml_const(b, f->dt, w, &n, 1), leaf, 0);
  if (f->targets == 1) return mk_reduce(g, OP_reduce_sum, said, &(i64){1}, 1, true);
  for (u32 i = 0; i < f->root.n; i++) to[i * f->targets + (u64)target[i]] = 1;
  return mk_contract(g, said, ml_const(b, f->dt, to, dim, 2), "nt,tk->nk");
}

/* [rows, targets] */
static Val aggregate(Forest *f, Val leaf, Agg agg) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 leaves = f->node.n - f->inner, dim[2] = {leaves, f->targets};
  double none = agg == AG_min ? INFINITY : agg == AG_max ? -INFINITY : 0;
  u64 cells;
  for (u32 i = 0; i < f->say.n; i++)
    if (f->say.at[i].target < 0 || f->say.at[i].target >= (i64)f->targets)
      on_bad(b, "a leaf names target %lld of %u", (long long)f->say.at[i].target, f->targets);
  i64 *single = agg <= AG_sum ? single_targets(f) : NULL;
  Val y;
  if (single) {
    y = sum_single(f, leaf, single);
  } else {
    if (!size_mul((u64)leaves, f->targets, &cells) || cells > (1u << 28))
      on_unsupported(b, "a table of this size");
    double *w = NEWS(&b->c->scratch, double, cells);
    for (u64 i = 0; i < cells; i++) w[i] = none;
    for (u32 i = 0; i < f->say.n; i++) {
      const Say *s = &f->say.at[i];
      double *to = &w[(u64)(s->leaf - f->inner) * f->targets + (u64)s->target];
      *to = agg == AG_min   ? fmin(*to, s->weight)
            : agg == AG_max ? fmax(*to, s->weight)
                            : *to + s->weight;
    }
    Val said = mk_gather(g, ml_const(b, f->dt, w, dim, 2), leaf, 0); /* [rows, trees, targets] */
    Op op = agg == AG_min ? OP_reduce_min : agg == AG_max ? OP_reduce_max : OP_reduce_sum;
    y = mk_reduce(g, op, said, &(i64){1}, 1, false);
    if (none != 0) y = mk_select(g, mk_eq(g, y, mk_like(g, y, none)), mk_like(g, y, 0), y);
  }
  return agg == AG_average ? mk_div(g, y, mk_like(g, y, (double)f->root.n)) : y;
}

/* ---- operators ---- */

static Forest forest_new(Build *b, Val x) {
  return (Forest){.b = b, .dt = on_dtype(b, x)};
}

static Val evaluate(Forest *f, Val x, Agg agg) {
  if (!f->node.n || !f->root.n) on_bad(f->b, "there are no trees");
  if (dtype_info[f->dt].bits < 32) f->dt = DT_f32;
  if (f->dt == DT_f64) x = mk_cast(f->b->g, x, DT_f64);
  f->dt = on_dtype(f->b, x);
  leaves_last(f);
  measure(f);
  return aggregate(f, find_leaves(f, x), agg);
}

static Val add_base(Build *b, Val y, u32 targets) {
  MlNums base = ml_nums(b, "base_values");
  i64 n = base.n;
  if (!base.n) return y;
  if (base.n != 1 && base.n != targets) on_bad(b, "%u base values for %u targets", base.n, targets);
  return mk_add(b->g, y, ml_const(b, on_dtype(b, y), base.at, &n, 1));
}

static u32 target_count(Build *b) {
  i64 n = on_int(b, "n_targets", 1);
  if (n < 1 || n > (1 << 20)) on_bad(b, "n_targets is %lld", (long long)n);
  return (u32)n;
}

void build_treeregressor(Build *b) {
  Val x = ml_rows(b, on_in(b, 0));
  Forest f = forest_new(b, x);
  static const Agg aggs[] = {AG_sum, AG_average, AG_min, AG_max};
  Agg agg = aggs[on_choice(b, "aggregate_function", "SUM AVERAGE MIN MAX")];
  f.targets = target_count(b);
  if (ml_nums(b, "nodes_values").wide) f.dt = DT_f64;
  Map nodes = read_nodes(&f);
  read_weights(&f, &nodes, "target");
  if (f.targets == 1) keep_first(&f);
  Val y = add_base(b, evaluate(&f, x, agg), f.targets);
  b->out[0] = mk_cast(b->g, ml_post(b, y), DT_f32);
}

void build_treeensemble(Build *b) {
  static const char *const post[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  Val x = ml_rows(b, on_in(b, 0));
  Forest f = forest_new(b, x);
  i64 agg = on_int(b, "aggregate_function", AG_sum), after = on_int(b, "post_transform", 0);
  if (agg < 0 || agg > AG_max || after < 0 || after > 4)
    on_bad(b, "aggregate_function or post_transform is not known");
  if (after) on_unsupported(b, "post_transform %s", post[after]);
  f.targets = target_count(b);
  read_ensemble(&f);
  on_give(b, evaluate(&f, x, (Agg)agg));
}

/* All weights name one class: a single score decides between two labels. */
static void one_score(Forest *f, Val s, i64 id, u32 labels, bool is_signed) {
  Build *b = f->b;
  Graph *g = b->g;
  MlNums base = ml_nums(b, "base_values");
  if (base.n > 1) on_unsupported(b, "%u base values where all weights name one class", base.n);
  bool second = id == 1 && labels == 2;
  if (base.n && !second) s = mk_addk(g, s, base.at[0]);
  double limit = labels == 2 && !is_signed ? 0.5 : 0;
  Val only = mk_squeeze(g, s, 1);
  Val index = mk_cast(g, mk_gt(g, only, mk_like(g, only, limit)), DT_i64);
  if (labels == 1) {
    b->out[0] = index;
  } else if (second) {
    b->out[0] = ml_labels(b, index, "classlabels_int64s");
    s = ml_post(b, mk_concat(g, (Val[]){mk_sub(g, s, s), s}, 2, 1));
  } else {
    b->out[0] = ml_labels(b, index, "classlabels_int64s");
    s = ml_two_scores(b, s, is_signed);
  }
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, s, DT_f32);
}

void build_treeclassifier(Build *b) {
  Val x = ml_rows(b, on_in(b, 0));
  Forest f = forest_new(b, x);
  u32 labels = ml_label_count(b, "classlabels_int64s");
  bool is_signed = false, same = true;
  if (!labels) on_bad(b, "there are no class labels");
  if (ml_nums(b, "nodes_values").wide) f.dt = DT_f64;
  Map nodes = read_nodes(&f);
  read_weights(&f, &nodes, "class");
  if (!f.say.n) on_bad(b, "there are no weights");
  i64 id = f.say.at[0].target;
  for (u32 i = 0; i < f.say.n; i++) {
    same = same && f.say.at[i].target == id;
    is_signed = is_signed || f.say.at[i].weight < 0;
  }
  if (same && labels <= 2) {
    for (u32 i = 0; i < f.say.n; i++) f.say.at[i].target = 0;
    f.targets = 1;
    one_score(&f, evaluate(&f, x, AG_sum), id, labels, is_signed);
    return;
  }
  f.targets = labels;
  Val s = add_base(b, evaluate(&f, x, AG_sum), labels);
  b->out[0] = ml_labels(b, mk_arg(b->g, OP_argmax, s, 1, false, false), "classlabels_int64s");
  if (on_wants(b, 1)) b->out[1] = mk_cast(b->g, ml_post(b, s), DT_f32);
}
