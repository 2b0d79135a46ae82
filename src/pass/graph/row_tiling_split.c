/* row_tiling_split.c: rewrites stripe groups.
 *
 * In: stripe groups, with the rows that every stripe computes. Out: the graph with the nodes of
 * each group once per stripe. Operands are slices of the rows that the stripe holds; a window at
 * the edge of the image keeps its padding there. Rows kept for the next stripe are a slice with its
 * own memory (attribute keep), which the next stripe concatenates with the rows it computes.
 * Results are the concatenation of all stripes. Every stored element is computed once.
 */
#include "pass/graph/row_tiling.h"

#include <string.h>

typedef struct StripeValue { /* state of one value while stripes are written */
  Val rows;                  /* rows in memory in this stripe */
  Val kept;                  /* rows kept for the next; 0: none */
  i64 from;                  /* first of these rows */
  Val *part; /* by stripe: rows it computed; 0: none. A reduction uses the first entry */
} StripeValue;

typedef struct StripeWriter {
  const StripeGroup *region;
  u32 count, next;
  StripeValue *held; /* values of the current group, by position - from */
} StripeWriter;

static Val rows_of(Graph *g, Val v, u32 axis, i64 from, i64 to) {
  return mk_slice_axis(g, v, axis, from, to - from);
}

/* Operand k of a node for these rows of its result, and its padding. */
static Val operand(const StripeWriter *s, const StripeGroup *r, const Node *n, u32 k, RowRange out,
                   i64 pad[2]) {
  Graph *g = r->g;
  Val v = n->in[k];
  const StripeNode *of = stripe_node_of(r, v);
  u32 axis = v ? stripe_axis(g, n, k) : NO_AXIS;
  if (axis == NO_AXIS) return v;
  i64 around[2];
  RowRange in = stripe_reads(g, n, k, out, around);
  if (!k) memcpy(pad, around, sizeof around);
  if (!of) return rows_of(g, v, axis, in.from, in.to);
  const StripeValue *h = &s->held[of - r->node];
  return rows_of(g, h->rows, axis, in.from - h->from, in.to - h->from);
}

static const Dim *with_first(Graph *g, const Attr *a, u32 at, i64 value) {
  Dim *list = NEWS(&g->c->work, Dim, a->n);
  memcpy(list, a->u.list, a->n * sizeof *list);
  list[at] = value;
  return list;
}

/* The node for these rows of its result. */
static Val compute(const StripeWriter *s, const StripeGroup *r, const StripeNode *b, RowRange out) {
  Graph *g = r->g;
  Node n = *graph_node(g, b->id);
  Val *in = NEWS(&g->c->scratch, Val, n.nin + 1);
  Attr *attr = NEWS(&g->c->scratch, Attr, n.nattr + 1);
  i64 pad[2] = {0, 0};
  g->loc = n.loc;
  for (u32 k = 0; k < n.nin; k++) in[k] = operand(s, r, &n, k, out, pad);
  for (u32 i = 0; i < n.nattr; i++) {
    attr[i] = n.attr[i];
    if (attr[i].key == AT_pad_lo) attr[i].u.list = with_first(g, &attr[i], 0, pad[0]);
    if (attr[i].key == AT_pad_hi) attr[i].u.list = with_first(g, &attr[i], 0, pad[1]);
    if (n.op == OP_slice && attr[i].key == AT_size)
      attr[i].u.list = with_first(g, &attr[i], ROW_AXIS, out.to - out.from);
  }
  Val made = mk_node(g, n.op, in, n.nin, attr, n.nattr);
  graph_val(g, made)->name = graph_val(g, n.out[0])->name;
  return made;
}

/* A copy of rows, so that the memory they come from can be reused. */
static Val keep(Graph *g, Val v, i64 from, i64 to) {
  const Type *t = graph_type(g, v);
  Dim start[MAX_RANK] = {0}, step[MAX_RANK], size[MAX_RANK];
  if (from == 0 && to == t->dim[ROW_AXIS]) return v;
  for (u32 i = 0; i < t->rank; i++) {
    step[i] = 1;
    size[i] = i == ROW_AXIS ? to - from : t->dim[i];
  }
  start[ROW_AXIS] = from;
  Attr attr[4] = {{.key = AT_keep, .kind = AK_int, .u.i = 1},
                  {.key = AT_start, .kind = AK_list, .n = t->rank, .u.list = start},
                  {.key = AT_step, .kind = AK_list, .n = t->rank, .u.list = step},
                  {.key = AT_size, .kind = AK_list, .n = t->rank, .u.list = size}};
  return mk_node(g, OP_slice, &v, 1, attr, 4);
}

/* Continues the reduction of the earlier stripes. */
static void write_reduction(StripeWriter *s, const StripeGroup *r, u32 i, RowRange rows) {
  Graph *g = r->g;
  const StripeNode *b = &r->node[i];
  StripeValue *h = &s->held[i];
  Op op = graph_node(g, b->id)->op;
  Val before = h->part[0];
  if (rows.from == rows.to) return;
  if (before && r->resumes && op == OP_reduce_sum) {
    Node n = *graph_node(g, b->id);
    i64 pad[2];
    Val in[2] = {operand(s, r, &n, 0, rows, pad), before};
    g->loc = n.loc;
    h->part[0] = mk_node(g, OP_resume_sum, in, 2, n.attr, n.nattr);
    return;
  }
  Val part = compute(s, r, b, rows);
  h->part[0] = before ? mk_map2(g, op_reducer(op), before, part) : part;
}

static void write_node(StripeWriter *s, const StripeGroup *r, u32 i, u32 stripe) {
  Graph *g = r->g;
  const StripeNode *b = &r->node[i];
  StripeValue *h = &s->held[i];
  if (b->reduces) {
    write_reduction(s, r, i, stripe_new_rows(b, stripe));
    return;
  }
  RowRange out = stripe_new_rows(b, stripe), before = stripe_kept_rows(b, stripe - 1),
           after = stripe_kept_rows(b, stripe);
  if (out.from < out.to) {
    Val part = compute(s, r, b, out), both[2] = {h->rows, part};
    bool any = before.from < before.to;
    h->part[stripe] = part;
    h->rows = any ? mk_concat(g, both, 2, ROW_AXIS) : part;
    h->from = any ? h->from : out.from;
  }
  h->kept = 0;
  if (after.from < after.to) h->kept = keep(g, h->rows, after.from - h->from, after.to - h->from);
}

static void write_stripe(StripeWriter *s, const StripeGroup *r, u32 stripe) {
  for (u32 i = 0; i < r->to - r->from; i++)
    if (r->node[i].id) write_node(s, r, i, stripe);
  for (u32 i = 0; i < r->to - r->from; i++) {
    if (!r->node[i].id || r->node[i].reduces) continue;
    s->held[i].rows = s->held[i].kept;
    s->held[i].from = stripe_kept_rows(&r->node[i], stripe).from;
  }
}

static void write_group(StripeWriter *s, GraphEdit *e, const StripeGroup *r) {
  Graph *g = r->g;
  u32 count = r->to - r->from;
  s->held = NEWS(&g->c->scratch, StripeValue, count);
  for (u32 i = 0; i < count; i++) s->held[i].part = NEWS(&g->c->scratch, Val, r->stripes + 1);
  for (u32 stripe = 1; stripe <= r->stripes; stripe++) write_stripe(s, r, stripe);
  for (u32 i = 0; i < count; i++) {
    const StripeNode *b = &r->node[i];
    u32 n = 0;
    Val *part = s->held[i].part;
    if (!b->id || !b->result) continue;
    for (u32 k = 1; k <= r->stripes; k++)
      if (part[k]) part[n++] = part[k];
    g->loc = graph_node(g, b->id)->loc;
    Val all = b->reduces ? s->held[i].part[0] : mk_concat(g, part, n, ROW_AXIS);
    edit_replace(e, graph_node(g, b->id)->out[0], all);
  }
}

/* All inputs of a group are defined before its last node, and no node in between reads its
 * results. */
static bool visit(GraphEdit *e, NodeId id) {
  StripeWriter *s = e->user;
  if (s->next == s->count || e->g->cur != 1) return true;
  const StripeGroup *r = &s->region[s->next];
  u32 at = r->at[id];
  if (at < r->from || at >= r->to) return true;
  bool part = r->node[at - r->from].id != 0;
  if (r->end == at) {
    write_group(s, e, r);
    s->next++;
  }
  return !part;
}

void stripe_split(Graph *g, const StripeGroup *region, u32 count) {
  StripeWriter s = {.region = region, .count = count};
  if (count) edit_run(g, visit, &s);
}
