/* onnx_ops_ml_tree.c: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
 *
 * The nodes of all trees become tables: feature, threshold, index of the first child. The second
 * child follows the first. A loop with one iteration per level moves every (row, tree) one node
 * down; a leaf is its own child. Another table, indexed by the final nodes, holds the leaf weights.
 *
 * Every test becomes x <= threshold (or x < threshold if the model has no other), so a step is
 * first child + not(x <= threshold). If NaN must pass, the test reads a copy of the feature with
 * -inf instead of NaN. Leaves test a column of -inf.
 */
#include "front/onnx/onnx_ml.h"

#include <math.h>
#include <stdlib.h>

typedef enum TreeMode { TM_leq, TM_lt, TM_gte, TM_gt, TM_eq, TM_neq, TM_member, TM_leaf } TreeMode;
typedef enum Agg { AG_average, AG_sum, AG_min, AG_max } Agg;

typedef struct TreeNode {
  TreeMode mode;
  i64 feature;  /* finally: the tested column */
  u32 yes, no;  /* node indices of the children */
  double value; /* threshold, or index of the set */
  bool missing; /* NaN passes */
} TreeNode;

typedef struct LeafWeight { /* one weight of a leaf */
  u32 leaf;                 /* index of the node */
  i64 target;
  double weight;
} LeafWeight;

typedef struct Forest {
  Build *b;
  DType dt; /* type of the comparison */
  VEC(TreeNode) node;
  VEC(u32) root;
  VEC(LeafWeight) leaf_weight;
  u32 depth, targets;
  Op asks;            /* OP_le or OP_lt, the same for all nodes */
  VEC(double) member; /* concatenated sets */
  VEC(u32) set;       /* offsets of the sets in `member`, and the end */
  u32 sets;           /* number of membership nodes */
  VEC(u32) place;     /* node at each table index */
  u32 *first;         /* by node: table index of its first child */
  u32 *leaf, leaves;  /* by node: index among the leaves */
} Forest;

/* ---- reading the forest ---- */

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

/* Reads nodes and links children by tree and id. Returns the map from these to indices. */
static Map read_nodes(Forest *f) {
  Build *b = f->b;
  const OnnxAttr *tree = ints_attr(b, "nodes_treeids", true),
                 *id = ints_attr(b, "nodes_nodeids", true);
  const OnnxAttr *feature = ints_attr(b, "nodes_featureids", true),
                 *miss = ints_attr(b, "nodes_missing_value_tracks_true", false);
  const OnnxAttr *yes = ints_attr(b, "nodes_truenodeids", true),
                 *no = ints_attr(b, "nodes_falsenodeids", true);
  const OnnxAttr *mode = on_attr(b, "nodes_modes");
  MlNumbers value = ml_nums(b, "nodes_values");
  u32 n = tree->ints.n;
  if (id->ints.n != n || feature->ints.n != n || yes->ints.n != n || no->ints.n != n || !mode ||
      mode->type != OA_strings || mode->strings.n != n || value.n != n)
    on_bad(b, "nodes_treeids has %u elements, expected as many in every list of nodes", n);
  Map m = map_new(&b->c->scratch), trees = map_new(&b->c->scratch);
  u64 key[2];
  for (u32 i = 0; i < n; i++) {
    u32 *slot = map_put_bytes(&m, key_of(key, tree->ints.at[i], id->ints.at[i]), sizeof key);
    if (*slot)
      on_bad(b, "tree %lld has two nodes with id %lld", (long long)tree->ints.at[i],
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

/* Reads leaf weights from attributes `prefix`_treeids etc. */
static void read_weights(Forest *f, const Map *nodes, const char *prefix) {
  Build *b = f->b;
  const char *part[] = {"treeids", "nodeids", "ids"};
  const OnnxAttr *a[3];
  for (u32 i = 0; i < 3; i++)
    a[i] = ints_attr(b, str_text(b->c, str_fmt(b->c, "%s_%s", prefix, part[i])), true);
  MlNumbers w = ml_nums(b, str_text(b->c, str_fmt(b->c, "%s_weights", prefix)));
  u32 n = a[0]->ints.n;
  if (a[1]->ints.n != n || a[2]->ints.n != n || w.n != n)
    on_bad(b,
           "the weights name %u trees, %u nodes and %u targets for %u weights, expected as many of "
           "each",
           n, a[1]->ints.n, a[2]->ints.n, w.n);
  for (u32 i = 0; i < n; i++) {
    LeafWeight s = {find_node(b, nodes, a[0]->ints.at[i], a[1]->ints.at[i]), a[2]->ints.at[i],
                    w.at[i]};
    if (f->node.at[s.leaf].mode == TM_leaf)
      *vec_push(&b->c->scratch, &f->leaf_weight) = s; /* weights of inner nodes have no effect */
  }
}

/* Keeps the first of several weights of a leaf for the only target, like ONNX Runtime. Converters
 * repeat it to get the index of the leaf. Weights of classes are added. */
static void keep_first(Forest *f) {
  bool *seen = NEWS(&f->b->c->scratch, bool, f->node.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < f->leaf_weight.n; i++) {
    LeafWeight s = f->leaf_weight.at[i];
    if (!seen[s.leaf]) f->leaf_weight.at[n++] = s;
    seen[s.leaf] = true;
  }
  f->leaf_weight.n = n;
}

/* ---- reading TreeEnsemble (version 5), which lists leaves separately ---- */

static Tensor *tensor_attr(Build *b, const char *name) {
  Tensor *t = on_tensor(b, name);
  if (!t) on_bad(b, "attribute %s is missing", name);
  return t;
}

/* Sets are concatenated, each terminated by NaN. */
static void read_members(Forest *f) {
  Arena *a = &f->b->c->scratch;
  Tensor *t = on_tensor(f->b, "membership_values");
  *vec_push(a, &f->set) = 0;
  for (u64 i = 0; t && i < t->n; i++) {
    double x = tensor_get(t, i).f;
    if (isnan(x))
      *vec_push(a, &f->set) = f->member.n;
    else
      *vec_push(a, &f->member) = x;
  }
  if (f->sets >= f->set.n)
    on_bad(f->b, "found %u member sets for %u membership nodes, expected as many", f->set.n - 1,
           f->sets);
}

static u32 child(Forest *f, i64 at, bool leaf, u32 inner, u64 leaves) {
  if (at < 0 || (u64)at >= (leaf ? leaves : inner))
    on_bad(f->b, "child %lld is neither a node nor a leaf", (long long)at);
  return (u32)at + (leaf ? inner : 0);
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
    on_bad(b,
           "nodes_featureids has %u elements, leaf_weights %u: expected as many in every list of "
           "nodes and of leaves",
           n, (u32)weight->n);
  f->dt = split->dt;
  for (u32 i = 0; i < n; i++) {
    i64 m = tensor_get(mode, i).i;
    if (m < 0 || m > TM_member)
      on_bad(b, "nodes_modes contains %lld, expected 0 to %d", (long long)m, TM_member);
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
    *vec_push(&b->c->scratch, &f->leaf_weight) =
        (LeafWeight){n + i, to->ints.at[i], tensor_get(weight, i).f};
  }
  for (u32 i = 0; i < roots->ints.n; i++)
    *vec_push(&b->c->scratch, &f->root) = child(f, roots->ints.at[i], false, n, 0);
  read_members(f);
}

/* ---- normalization to one comparison ---- */

/* The largest value below x in the compared type; NaN, which fails every test, if there is none. */
static double below(const Forest *f, double x) {
  if (x == -INFINITY) return NAN;
  return f->dt == DT_f64 ? nextafter(x, -INFINITY) : (double)nextafterf((float)x, -INFINITY);
}

static u32 add_node(Forest *f, TreeNode t) {
  *vec_push(&f->b->c->scratch, &f->node) = t;
  return f->node.n - 1;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Binary search of the feature of t in n sorted values, as a tree of comparisons with middle
 * values. If NaN must pass, only the equality test fails for it. */
static TreeNode search(Forest *f, TreeNode t, const double *x, u32 n) {
  u32 mid = n / 2;
  TreeNode at = t, under;
  at.mode = TM_leq;
  at.value = n ? x[mid] : NAN;
  if (!n) return at;
  t.missing = false;
  under = t;
  under.mode = TM_leq;
  under.value = below(f, x[mid]);
  under.yes = mid ? add_node(f, search(f, t, x, mid)) : t.no;
  under.no = t.yes;
  at.no = mid + 1 < n ? add_node(f, search(f, t, x + mid + 1, n - mid - 1)) : t.no;
  at.yes = add_node(f, under);
  return at;
}

/* Removes duplicates, which the search would look for below themselves. */
static TreeNode search_set(Forest *f, TreeNode t, double *x, u32 n) {
  u32 kept = 0;
  if (n) qsort(x, n, sizeof *x, ascending);
  for (u32 i = 0; i < n; i++)
    if (!kept || x[i] != x[kept - 1]) x[kept++] = x[i];
  return search(f, t, x, kept);
}

static TreeNode swapped(TreeNode t) {
  return (TreeNode){t.mode, t.feature, t.no, t.yes, t.value, !t.missing};
}

/* Replaces > by < and swaps the children. Comparisons with NaN are false. */
static TreeNode as_less(TreeNode t) {
  if (t.mode == TM_gte || t.mode == TM_gt) {
    t.mode = t.mode == TM_gt ? TM_leq : TM_lt;
    if (!isnan(t.value)) t = swapped(t);
  }
  return t;
}

static TreeNode as_leq(Forest *f, TreeNode t) {
  double only = t.value;
  u32 set = (u32)t.value;
  if (t.mode == TM_lt) t.value = below(f, t.value);
  if (t.mode == TM_neq) {
    t = swapped(t);
    t.missing = false;
  }
  if (t.mode == TM_eq || t.mode == TM_neq) t = search_set(f, t, &only, !isnan(only));
  if (t.mode == TM_member)
    t = search_set(f, t, f->member.at + f->set.at[set], f->set.at[set + 1] - f->set.at[set]);
  t.mode = TM_leq;
  if (isnan(t.value) && t.missing) { /* passes NaN only: any other value is at most inf */
    t = swapped(t);
    t.value = INFINITY;
  }
  return t;
}

static void unify_compare(Forest *f) {
  u32 n = f->node.n;
  f->asks = OP_lt;
  for (u32 i = 0; i < n; i++) {
    TreeNode *t = &f->node.at[i];
    *t = as_less(*t);
    if (t->mode != TM_leaf && (t->mode != TM_lt || !(t->value > -INFINITY))) f->asks = OP_le;
  }
  for (u32 i = 0; f->asks == OP_le && i < n; i++)
    if (f->node.at[i].mode != TM_leaf) {
      TreeNode t = as_leq(f, f->node.at[i]);
      f->node.at[i] = t; /* by index: the vector may have moved */
    }
}

/* ---- depth ---- */

/* Distinct children of a node; returns their number. */
static u32 children(const TreeNode *t, u32 *kid) {
  if (t->mode == TM_leaf) return 0;
  kid[0] = t->yes;
  kid[1] = t->no;
  return t->yes == t->no ? 1 : 2;
}

/* Depth by topological order: a node is visited after all its parents. Subtrees may be shared
 * (converters do so for categorical splits); cycles are refused. */
static void measure(Forest *f) {
  Build *b = f->b;
  Arena *a = &b->c->scratch;
  u32 n = f->node.n, count = 0, met, kid[2];
  u32 *todo = NEWS(a, u32, n + 1), *parents = NEWS(a, u32, n), *level = NEWS(a, u32, n);
  bool *seen = NEWS(a, bool, n);
  for (u32 i = 0; i < f->root.n; i++) {
    if (seen[f->root.at[i]]) on_bad(b, "two trees have the same root, expected one for each");
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
  if (count != met) on_bad(b, "the nodes of a tree form a cycle, expected a tree");
}

/* ---- traversal ---- */

/* Places siblings next to each other, level by level. A node with several parents has several
 * places but one pair of children. */
static void place_nodes(Forest *f, i64 *start) {
  Arena *a = &f->b->c->scratch;
  f->first = NEWS(a, u32, f->node.n);
  f->leaf = NEWS(a, u32, f->node.n);
  for (u32 i = 0; i < f->node.n; i++)
    if (f->node.at[i].mode == TM_leaf) f->leaf[i] = f->leaves++;
  for (u32 r = 0, i = 0; r < f->root.n; r++) {
    start[r] = f->place.n;
    *vec_push(a, &f->place) = f->root.at[r];
    for (; i < f->place.n; i++) {
      u32 node = f->place.at[i];
      const TreeNode *t = &f->node.at[node];
      if (t->mode == TM_leaf || f->first[node]) continue;
      f->first[node] = f->place.n;
      *vec_push(a, &f->place) = t->yes;
      *vec_push(a, &f->place) = t->no;
    }
  }
}

/* Tested columns [rows, columns]: features, features with -inf for NaN, -inf for leaves. If few of
 * many features are tested, only those. */
static Val columns(Forest *f, Val x) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 features = on_static_dim(b, x, 1), count = 0, end = 0;
  i64 *to = NEWS(&b->c->scratch, i64, (size_t)features + 1);
  i64 *used = NEWS(&b->c->scratch, i64, (size_t)features + 1);
  bool any[2] = {false, false};
  for (u32 i = 0; i < f->node.n; i++) {
    const TreeNode *t = &f->node.at[i];
    if (t->mode == TM_leaf) continue;
    if (t->feature < 0 || t->feature >= features)
      on_bad(b, "a node tests feature %lld, expected 0 to %lld", (long long)t->feature,
             (long long)features - 1);
    any[t->missing] = true;
    to[t->feature] = 1;
  }
  for (i64 i = 0; i < features; i++)
    if (to[i]) used[count++] = i;
  bool few = 2 * count < features;
  for (i64 i = 0; few && i < count; i++) to[used[i]] = i;
  if (few && count) x = mk_gather(g, x, mk_ints(g, used, (u32)count), 1);
  i64 width = few ? count : features;
  Val part[3], least = mk_like(g, x, -INFINITY);
  u32 n = 0;
  if (any[0]) part[n++] = x;
  if (any[1]) part[n++] = mk_select(g, mk_isnan(g, x), least, x);
  end = n * width;
  Dim shape[2] = {on_dim(b, x, 0), 1};
  part[n++] = mk_broadcast(g, least, shape, 2);
  for (u32 i = 0; i < f->node.n; i++) {
    TreeNode *t = &f->node.at[i];
    i64 at = few && t->mode != TM_leaf ? to[t->feature] : t->feature;
    t->feature = t->mode == TM_leaf ? end : at + (t->missing && any[0] ? width : 0);
  }
  return mk_concat(g, part, n, 1);
}

typedef struct TreeWalk {
  Op asks;
  Val x, feature, value, first; /* columns; tables by node place */
} TreeWalk;

/* Length of the tables. The last place is never reached. It lets range analysis, which does not
 * know that leaves pass, prove that a step stays in bounds. */
static i64 table_length(const Forest *f) {
  return (i64)f->place.n + 1;
}

static TreeWalk walk_tables(Forest *f, Val x) {
  Build *b = f->b;
  i64 n = table_length(f);
  TreeWalk w = {.asks = f->asks, .x = columns(f, x)};
  Tensor *feature = tensor_new(&b->c->work, DT_i64, &n, 1);
  Tensor *first = tensor_new(&b->c->work, DT_i64, &n, 1);
  double *value = NEWS(&b->c->scratch, double, (size_t)n);
  for (u32 i = 0; i < f->place.n; i++) {
    const TreeNode *t = &f->node.at[f->place.at[i]];
    bool leaf = t->mode == TM_leaf;
    tensor_set(feature, i, (Scalar){.i = t->feature});
    tensor_set(first, i, (Scalar){.i = leaf ? i : f->first[f->place.at[i]]});
    value[i] = leaf ? INFINITY : t->value;
  }
  w.feature = mk_const(b->g, feature);
  w.first = mk_const(b->g, first);
  w.value = ml_const(b, f->dt, value, &n, 1);
  return w;
}

static void step_down(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  TreeWalk *w = user;
  (void)i, (void)cond, (void)scan;
  Val at = carried[0], v = mk_gather_elems(g, w->x, mk_gather(g, w->feature, at, 0), 1);
  Val no = mk_not(g, mk_map2(g, w->asks, v, mk_gather(g, w->value, at, 0)));
  Val side = mk_cast(g, no, DT_i64);
  carried[0] = mk_add(g, mk_gather(g, w->first, at, 0), side);
}

/* Final places, [rows, trees]. */
static Val find_leaves(Forest *f, Val x) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 n = f->root.n, *start = NEWS(&b->c->scratch, i64, f->root.n);
  place_nodes(f, start);
  Dim shape[2] = {on_dim(b, x, 0), n};
  Val at = mk_broadcast(g, mk_ints(g, start, f->root.n), shape, 2), scan;
  TreeWalk w = walk_tables(f, x);
  if (f->depth) mk_loop(g, mk_scalar(g, DT_i64, f->depth), 0, &at, 1, &scan, 0, step_down, &w);
  return at;
}

/* ---- leaf weights ---- */

/* The tree of each node; NULL if a node is in two. */
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

/* The target of each tree, if leaves have one weight and those of a tree one target; else NULL. */
static i64 *single_targets(Forest *f) {
  u32 *tree = tree_of(f);
  i64 *target = NEWS(&f->b->c->scratch, i64, f->root.n);
  bool *seen = NEWS(&f->b->c->scratch, bool, f->node.n);
  for (u32 i = 0; i < f->root.n; i++) target[i] = -1;
  if (!tree || f->leaf_weight.n != f->leaves) return NULL;
  for (u32 i = 0; i < f->leaf_weight.n; i++) {
    const LeafWeight *s = &f->leaf_weight.at[i];
    i64 *t = &target[tree[s->leaf]];
    if (seen[s->leaf] || (*t >= 0 && *t != s->target)) return NULL;
    seen[s->leaf] = true;
    *t = s->target;
  }
  return target;
}

/* Gathers one weight per leaf and sums trees by target with one matrix product. */
static Val sum_single(Forest *f, Val at, const i64 *target) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 n = table_length(f), dim[2] = {f->root.n, f->targets};
  double *w = NEWS(&b->c->scratch, double, f->node.n),
         *leaf_weight = NEWS(&b->c->scratch, double, (size_t)n),
         *to = NEWS(&b->c->scratch, double, (size_t)(dim[0] * dim[1]));
  for (u32 i = 0; i < f->leaf_weight.n; i++)
    w[f->leaf_weight.at[i].leaf] = f->leaf_weight.at[i].weight;
  for (u32 i = 0; i < f->place.n; i++) leaf_weight[i] = w[f->place.at[i]];
  Val weight = mk_gather(g, ml_const(b, f->dt, leaf_weight, &n, 1), at, 0);
  if (f->targets == 1) return mk_reduce(g, OP_reduce_sum, weight, &(i64){1}, 1, true);
  for (u32 i = 0; i < f->root.n; i++) to[i * f->targets + (u64)target[i]] = 1;
  return mk_contract(g, weight, ml_const(b, f->dt, to, dim, 2), "nt,tk->nk");
}

/* [rows, targets] */
static Val aggregate(Forest *f, Val at, Agg agg) {
  Build *b = f->b;
  Graph *g = b->g;
  i64 n = table_length(f), dim[2] = {f->leaves, f->targets};
  double none = agg == AG_min ? INFINITY : agg == AG_max ? -INFINITY : 0;
  u64 cells;
  for (u32 i = 0; i < f->leaf_weight.n; i++)
    if (f->leaf_weight.at[i].target < 0 || f->leaf_weight.at[i].target >= (i64)f->targets)
      on_bad(b, "a leaf names target %lld, expected 0 to %u",
             (long long)f->leaf_weight.at[i].target, f->targets - 1);
  i64 *single = agg <= AG_sum ? single_targets(f) : NULL;
  Val y;
  if (single) {
    y = sum_single(f, at, single);
  } else {
    if (!size_mul(f->leaves, f->targets, &cells) || cells > (1u << 28))
      on_unsupported(b, "%u leaves with %u targets need more than 2^28 weights", (u32)f->leaves,
                     (u32)f->targets);
    double *w = NEWS(&b->c->scratch, double, cells);
    for (u64 i = 0; i < cells; i++) w[i] = none;
    for (u32 i = 0; i < f->leaf_weight.n; i++) {
      const LeafWeight *s = &f->leaf_weight.at[i];
      double *to = &w[(u64)f->leaf[s->leaf] * f->targets + (u64)s->target];
      *to = agg == AG_min   ? fmin(*to, s->weight)
            : agg == AG_max ? fmax(*to, s->weight)
                            : *to + s->weight;
    }
    Tensor *leaf = tensor_new(&b->c->work, DT_i64, &n, 1);
    for (u32 i = 0; i < f->place.n; i++)
      tensor_set(leaf, i, (Scalar){.i = f->leaf[f->place.at[i]]});
    Val row = mk_gather(g, mk_const(g, leaf), at, 0);
    Val weight = mk_gather(g, ml_const(b, f->dt, w, dim, 2), row, 0); /* [rows, trees, targets] */
    Op op = agg == AG_min ? OP_reduce_min : agg == AG_max ? OP_reduce_max : OP_reduce_sum;
    y = mk_reduce(g, op, weight, &(i64){1}, 1, false);
    if (none != 0) {
      Val zero = mk_like(g, y, 0);
      y = mk_select(g, mk_eq(g, y, mk_like(g, y, none)), zero, y);
    }
  }
  return agg == AG_average ? mk_div(g, y, mk_like(g, y, (double)f->root.n)) : y;
}

/* ---- operators ---- */

static Forest forest_new(Build *b, Val x) {
  return (Forest){.b = b, .dt = on_dtype(b, x)};
}

static Val evaluate(Forest *f, Val x, Agg agg) {
  if (!f->node.n || !f->root.n) on_bad(f->b, "the ensemble has no trees, expected at least one");
  if (dtype_info[f->dt].bits < 32) f->dt = DT_f32;
  if (f->dt == DT_f64) x = mk_cast(f->b->g, x, DT_f64);
  f->dt = on_dtype(f->b, x);
  unify_compare(f);
  measure(f);
  return aggregate(f, find_leaves(f, x), agg);
}

static Val add_base(Build *b, Val y, u32 targets) {
  MlNumbers base = ml_nums(b, "base_values");
  i64 n = base.n;
  if (!base.n) return y;
  if (base.n != 1 && base.n != targets)
    on_bad(b, "found %u base values, expected 1 or %u, one for each target", base.n, targets);
  return mk_add(b->g, y, ml_const(b, on_dtype(b, y), base.at, &n, 1));
}

static u32 target_count(Build *b) {
  i64 n = on_int(b, "n_targets", 1);
  if (n < 1 || n > (1 << 20))
    on_bad(b, "n_targets is %lld, which is out of range: expected 1 to 2^20", (long long)n);
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
    on_bad(b, "aggregate_function is %lld and post_transform %lld, expected 0 to %d and 0 to 4",
           (long long)agg, (long long)after, AG_max);
  if (after) on_unsupported(b, "post_transform is %s, expected NONE", post[after]);
  f.targets = target_count(b);
  read_ensemble(&f);
  on_set_output(b, evaluate(&f, x, (Agg)agg));
}

/* All weights belong to one class, so one score decides between two labels. */
static void one_score(Forest *f, Val s, i64 id, u32 labels, bool is_signed) {
  Build *b = f->b;
  Graph *g = b->g;
  MlNumbers base = ml_nums(b, "base_values");
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
  if (!labels) on_bad(b, "expected classlabels_int64s or classlabels_strings, found neither");
  if (ml_nums(b, "nodes_values").wide) f.dt = DT_f64;
  Map nodes = read_nodes(&f);
  read_weights(&f, &nodes, "class");
  if (!f.leaf_weight.n) on_bad(b, "class_weights is empty, expected a weight for each leaf");
  i64 id = f.leaf_weight.at[0].target;
  for (u32 i = 0; i < f.leaf_weight.n; i++) {
    same = same && f.leaf_weight.at[i].target == id;
    is_signed = is_signed || f.leaf_weight.at[i].weight < 0;
  }
  if (same && labels <= 2) {
    for (u32 i = 0; i < f.leaf_weight.n; i++) f.leaf_weight.at[i].target = 0;
    f.targets = 1;
    one_score(&f, evaluate(&f, x, AG_sum), id, labels, is_signed);
    return;
  }
  f.targets = labels;
  Val s = add_base(b, evaluate(&f, x, AG_sum), labels);
  b->out[0] = ml_labels(b, mk_arg(b->g, OP_argmax, s, 1, false, false), "classlabels_int64s");
  if (on_wants(b, 1)) b->out[1] = mk_cast(b->g, ml_post(b, s), DT_f32);
}
