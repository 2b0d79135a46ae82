/* group.c: labels of the groups of a fused graph, each of which becomes a kernel.
 *
 * In: the root of a group. Out: its label, such as "conv3x3_s2_relu conv1 + bn1 + relu1": a word
 * for the computation, then the names of the nodes, both in execution order. The word consists of
 * operators as the input spells them, windows and strides, and never of names. Back ends make
 * identifiers of it, and a model with other names must give the same program.
 */
#include "pass/pass.h"

#include <string.h>

enum { LABEL_NAMES = 32 };

typedef struct GroupLabel {
  Graph *g;
  StrBuf word, names;
  Loc last; /* the ONNX node that the word ends with */
  u32 nodes, count;
  Str last_name;
  bool named; /* some node has a name */
} GroupLabel;

/* Appends letters and digits in lower case. */
static void put_small(StrBuf *t, const char *s) {
  for (; *s; s++) {
    bool upper = *s >= 'A' && *s <= 'Z';
    bool fine = upper || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_';
    if (fine) sb_fmt(t, "%c", upper ? *s - 'A' + 'a' : *s);
  }
}

/* 3x3; once: equal sizes are printed once. */
static void put_sizes(StrBuf *t, const Dim *d, u32 n, bool once) {
  bool same = once;
  for (u32 i = 0; i < n; i++) {
    if (!dim_is_const(d[i])) return;
    same = same && d[i] == d[0];
  }
  for (u32 i = 0; i < (same && n ? 1 : n); i++) sb_fmt(t, "%s%lld", i ? "x" : "", (long long)d[i]);
}

static void put_steps(StrBuf *t, const Node *n, AttrKey key, const char *prefix) {
  u32 count = 0;
  bool any = false;
  const Dim *d = node_list(n, key, &count);
  for (u32 i = 0; d && i < count; i++) any = any || d[i] != 1;
  if (!any) return;
  sb_puts(t, prefix);
  put_sizes(t, d, count, true);
}

/* BatchNormalization, LayerNormalization ... become batchnorm, layernorm. */
static void shorten(StrBuf *t) {
  static const char tail[] = "alization";
  size_t n = sizeof tail - 1;
  if (t->n > n && !memcmp(t->at + t->n - n, tail, n)) t->n -= n;
}

/* conv3x3_s2, dwconv5x5, maxpool2x2_s2, relu */
static void put_operator(Graph *g, StrBuf *t, const Node *n) {
  u32 count = 0;
  const Type *w = n->op == OP_conv ? graph_type(g, n->in[1]) : NULL;
  const Dim *window = op_info[n->op].kind == OK_WINDOW ? node_list(n, AT_window, &count) : NULL;
  if (w && node_int(n, AT_group, 1) > 1 && w->dim[1] == 1) sb_puts(t, "dw");
  put_small(t, n->loc.op ? str_text(g->c, n->loc.op) : op_info[n->op].name);
  shorten(t);
  if (w) put_sizes(t, w->dim + 2, w->rank - 2, false);
  if (window) put_sizes(t, window, count, false);
  if (!w && !window) return;
  put_steps(t, n, AT_stride, "_s");
  put_steps(t, n, AT_dilation, "_d");
}

static void add_word(GroupLabel *l, const Node *n) {
  if (l->nodes && n->loc.op && n->loc.op == l->last.op && n->loc.index == l->last.index) return;
  StrBuf t = sb_new(&l->g->c->scratch);
  put_operator(l->g, &t, n);
  l->last = n->loc;
  l->nodes++;
  if (!l->word.n && t.n > KERNEL_LABEL_MAX) t.n = KERNEL_LABEL_MAX;
  if (l->word.n && l->word.n + 1 + t.n > KERNEL_LABEL_MAX) return;
  if (l->word.n) sb_puts(&l->word, "_");
  sb_put(&l->word, t.at, t.n);
}

static void add_name(GroupLabel *l, const Node *n) {
  Ctx *c = l->g->c;
  Str name = n->loc.node ? n->loc.node : str_of(c, op_info[n->op].name);
  l->named = l->named || n->loc.node;
  if (name == l->last_name) return;
  sb_puts(&l->names, l->count ? " + " : " ");
  if (++l->count > LABEL_NAMES)
    sb_puts(&l->names, "...");
  else
    sb_put(&l->names, str_text(c, name), str_len(c, name));
  l->last_name = name;
}

static void add_node(GroupLabel *l, const Node *n) {
  for (u32 i = 0; i < n->nin && l->count <= LABEL_NAMES; i++) {
    const Value *x = graph_val(l->g, n->in[i]);
    if (x->home != HOME_buffer && x->def) add_node(l, graph_node(l->g, x->def));
  }
  if (l->count > LABEL_NAMES) return;
  add_word(l, n);
  add_name(l, n);
}

/* Is the root one step of an operator that takes several kernels? It moves or reduces what others
 * compute, or reads what another step has stored. */
static bool is_step(Graph *g, const Node *root) {
  OpKind kind = op_info[root->op].kind;
  if (kind != OK_MAP && kind != OK_CONTRACT && kind != OK_WINDOW) return true;
  for (u32 i = 0; i < root->nin; i++) {
    const Node *n = root->in[i] ? graph_producer(g, root->in[i]) : NULL;
    if (n && n->op != OP_const && graph_val(g, root->in[i])->home == HOME_buffer &&
        n->loc.index == root->loc.index && n->loc.op == root->loc.op)
      return true;
  }
  return false;
}

Str group_label(Graph *g, const Node *root) {
  Arena *a = &g->c->scratch;
  GroupLabel l = {.g = g, .word = sb_new(a), .names = sb_new(a)};
  add_node(&l, root);
  if (l.nodes == 1 && root->loc.op && is_step(g, root)) {
    StrBuf op = sb_new(a);
    put_small(&op, op_info[root->op].name);
    bool same = op.n == l.word.n && !memcmp(op.at, l.word.at, op.n);
    if (!same && l.word.n + 1 + op.n <= KERNEL_LABEL_MAX) sb_fmt(&l.word, "_%s", sb_cstr(&op));
  }
  if (l.named) sb_put(&l.word, l.names.at, l.names.n);
  return str_intern(g->c, l.word.at, l.word.n);
}

/* Leaves and reshapes have no kernel; a check of indices computes nothing. */
static bool is_root(Graph *g, const Node *n) {
  if (op_info[n->op].kind == OK_LEAF || op_is(n->op, OF_ALIAS) || !n->nout) return false;
  return graph_val(g, n->out[0])->home == HOME_buffer;
}

void group_list(Graph *g, StrBuf *out, const char *before) {
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      if (!is_root(g, n)) continue;
      sb_fmt(out, "%sgroup %s", before, op_info[n->op].name);
      Str name = graph_val(g, n->out[0])->name;
      if (name) sb_fmt(out, " '%s'", show(g->c, name));
      sb_fmt(out, ": %s\n", show(g->c, group_label(g, n)));
    }
}
