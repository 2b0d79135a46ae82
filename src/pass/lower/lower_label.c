/* lower_label.c: what a kernel is called.
 *
 * In: the root of a group. Out: its label, "conv3x3_s2_relu conv1 + bn1 + relu1": a word that says
 * what is computed, then the names of the nodes it comes from, where they have any. Both in the
 * order the nodes run. The word is made of operators as the input spells them, of windows and
 * strides, and never of names: back ends make identifiers of it, and a model with other names is
 * the same program.
 */
#include "pass/lower/lower.h"

#include <string.h>

enum { LABEL_NAMES = 32 };

typedef struct GroupLabel {
  Lower *l;
  Text word, names;
  Loc last; /* the ONNX node that the word ends with */
  u32 nodes, count;
  Str last_name;
  bool named; /* some node has a name */
} GroupLabel;

/* Letters and digits, small ones. */
static void put_small(Text *t, const char *s) {
  for (; *s; s++) {
    bool upper = *s >= 'A' && *s <= 'Z';
    bool fine = upper || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_';
    if (fine) text_fmt(t, "%c", upper ? *s - 'A' + 'a' : *s);
  }
}

/* 3x3; a number that stands for all of them only once if that is asked for. */
static void put_sizes(Text *t, const Dim *d, u32 n, bool once) {
  bool same = once;
  for (u32 i = 0; i < n; i++) {
    if (!dim_is_const(d[i])) return;
    same = same && d[i] == d[0];
  }
  for (u32 i = 0; i < (same && n ? 1 : n); i++)
    text_fmt(t, "%s%lld", i ? "x" : "", (long long)d[i]);
}

static void put_steps(Text *t, const Node *n, AttrKey key, const char *prefix) {
  u32 count = 0;
  bool any = false;
  const Dim *d = node_list(n, key, &count);
  for (u32 i = 0; d && i < count; i++) any = any || d[i] != 1;
  if (!any) return;
  text_puts(t, prefix);
  put_sizes(t, d, count, true);
}

/* BatchNormalization, LayerNormalization ... are batchnorm, layernorm. */
static void shorten(Text *t) {
  static const char tail[] = "alization";
  size_t n = sizeof tail - 1;
  if (t->n > n && !memcmp(t->at + t->n - n, tail, n)) t->n -= n;
}

/* conv3x3_s2, dwconv5x5, maxpool2x2_s2, relu */
static void put_operator(const Lower *l, Text *t, const Node *n) {
  u32 count = 0;
  const Type *w = n->op == OP_conv ? graph_type(l->g, n->in[1]) : NULL;
  const Dim *window = op_info[n->op].kind == OK_WINDOW ? node_list(n, AT_window, &count) : NULL;
  if (w && node_int(n, AT_group, 1) > 1 && w->dim[1] == 1) text_puts(t, "dw");
  put_small(t, n->loc.op ? str_text(l->c, n->loc.op) : op_info[n->op].name);
  shorten(t);
  if (w) put_sizes(t, w->dim + 2, w->rank - 2, false);
  if (window) put_sizes(t, window, count, false);
  if (!w && !window) return;
  put_steps(t, n, AT_stride, "_s");
  put_steps(t, n, AT_dilation, "_d");
}

static void add_word(GroupLabel *g, const Node *n) {
  if (g->nodes && n->loc.op && n->loc.op == g->last.op && n->loc.index == g->last.index) return;
  Text t = text_new(&g->l->c->scratch);
  put_operator(g->l, &t, n);
  g->last = n->loc;
  g->nodes++;
  if (!g->word.n && t.n > KERNEL_WORD) t.n = KERNEL_WORD;
  if (g->word.n && g->word.n + 1 + t.n > KERNEL_WORD) return;
  if (g->word.n) text_puts(&g->word, "_");
  text_put(&g->word, t.at, t.n);
}

static void add_name(GroupLabel *g, const Node *n) {
  Ctx *c = g->l->c;
  Str name = n->loc.node ? n->loc.node : str_of(c, op_info[n->op].name);
  g->named = g->named || n->loc.node;
  if (name == g->last_name) return;
  text_puts(&g->names, g->count ? " + " : " ");
  if (++g->count > LABEL_NAMES)
    text_puts(&g->names, "...");
  else
    text_put(&g->names, str_text(c, name), str_len(c, name));
  g->last_name = name;
}

static void add_node(GroupLabel *g, const Node *n) {
  for (u32 i = 0; i < n->nin && g->count <= LABEL_NAMES; i++) {
    const Value *x = graph_val(g->l->g, n->in[i]);
    if (x->home != HOME_buffer && x->def) add_node(g, graph_node(g->l->g, x->def));
  }
  if (g->count > LABEL_NAMES) return;
  add_word(g, n);
  add_name(g, n);
}

/* A step of an operator that takes several kernels: it moves or folds what others compute, or reads
 * what another step has left in memory. */
static bool is_step(const Lower *l, const Node *root) {
  OpKind kind = op_info[root->op].kind;
  if (kind != OK_MAP && kind != OK_CONTRACT && kind != OK_WINDOW) return true;
  for (u32 i = 0; i < root->nin; i++) {
    NodeId def = root->in[i] ? graph_val(l->g, root->in[i])->def : 0;
    const Node *n = def ? graph_node(l->g, def) : NULL;
    if (n && n->op != OP_const && graph_val(l->g, root->in[i])->home == HOME_buffer &&
        n->loc.index == root->loc.index && n->loc.op == root->loc.op)
      return true;
  }
  return false;
}

Str group_label(Lower *l, const Node *root) {
  Arena *a = &l->c->scratch;
  GroupLabel g = {.l = l, .word = text_new(a), .names = text_new(a)};
  add_node(&g, root);
  if (g.nodes == 1 && root->loc.op && is_step(l, root)) {
    Text op = text_new(a);
    put_small(&op, op_info[root->op].name);
    bool same = op.n == g.word.n && !memcmp(op.at, g.word.at, op.n);
    if (!same && g.word.n + 1 + op.n <= KERNEL_WORD) text_fmt(&g.word, "_%s", text_cstr(&op));
  }
  if (g.named) text_put(&g.word, g.names.at, g.names.n);
  return str_intern(l->c, g.word.at, g.word.n);
}
