/* onnx_strings.c: strings at import. The pass strings.c removes them.
 *
 * Computed strings are rows of bytes. The row length follows from the source of the strings:
 * constants or other rows. Parameters of the graph and values that cross the boundary of a loop
 * body are rows.
 */
#include "front/onnx/onnx_import.h"

#include "ir/graph/loop.h"

i64 string_max_bytes(Graph *g, Val v) {
  Arena *a = &g->c->scratch;
  Mark start = arena_mark(a);
  Map seen = map_new(a);
  VEC(Val) todo = {0};
  i64 most = 1;
  *vec_push(a, &todo) = v;
  while (todo.n) {
    Val x = todo.at[--todo.n];
    if (graph_type(g, x)->dt != DT_str) continue;
    u32 *slot = map_put(&seen, x);
    if (*slot) continue;
    *slot = 1;
    NodeId def = graph_val(g, x)->def;
    if (!def) internal_error(g->c, g->loc, "a string enters a region");
    const Node *n = graph_node(g, def);
    i64 k = 1;
    if (n->op == OP_const) k = strings_max_len(g->c, node_attr(n, AT_value)->u.t);
    const Type *t = n->op == OP_str_decode ? graph_type(g, n->in[0]) : NULL;
    if (t) k = t->dim[t->rank - 1];
    if (k > most) most = k;
    for (u32 i = 0; i < n->nin; i++)
      if (n->in[i]) *vec_push(a, &todo) = n->in[i];
  }
  arena_rewind(a, start);
  return most;
}

Val on_string_bytes(Build *b, Val v) {
  return mk_bytes(b->g, v, string_max_bytes(b->g, v));
}

Val on_strings(Build *b, Val rows) {
  return mk_text(b->g, rows);
}

typedef struct StringLoop {
  Build *b;
  BodyFn *body;
  void *user;
  u32 ncarried, nscan;
  i64 *room;  /* row length of each carried value; 0: not a string */
  bool *text; /* scan outputs that are strings */
} StringLoop;

static void text_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  StringLoop *l = user;
  for (u32 k = 0; k < l->ncarried; k++)
    if (l->room[k]) carried[k] = mk_text(g, carried[k]);
  l->body(g, l->user, i, cond, carried, scan);
  for (u32 k = 0; k < l->ncarried; k++) {
    if (!l->room[k] || graph_type(g, carried[k])->dt != DT_str) continue;
    if (string_max_bytes(g, carried[k]) > l->room[k])
      on_unsupported(l->b, "strings that grow from one iteration to the next");
    carried[k] = mk_bytes(g, carried[k], l->room[k]);
  }
  for (u32 k = 0; k < l->nscan; k++) {
    l->text[k] = graph_type(g, scan[k])->dt == DT_str;
    if (l->text[k]) scan[k] = on_string_bytes(l->b, scan[k]);
  }
}

void on_loop(Build *b, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user) {
  Arena *a = &b->c->work;
  StringLoop l = {
      b, body, user, ncarried, nscan, NEWS(a, i64, ncarried + 1), NEWS(a, bool, nscan + 1)};
  for (u32 k = 0; k < ncarried; k++) {
    if (on_dtype(b, carried[k]) != DT_str) continue;
    l.room[k] = string_max_bytes(b->g, carried[k]);
    carried[k] = on_string_bytes(b, carried[k]);
  }
  LoopDraft d = loop_draft(b->g, trip, cond, carried, ncarried, scan, nscan, text_body, &l);
  loop_simplify(b->g, &d);
  /* results that grow per iteration need a bound: a trip count from bound inputs */
  Val blame;
  bool stacks = nscan > 0;
  for (u32 k = 0; k < ncarried; k++) stacks = stacks || d.grows[k];
  const Tensor *known = stacks ? import_const_eval(b->im, d.count.trip, &blame) : NULL;
  if (known) d.count.trip = mk_const(b->g, (Tensor *)known);
  loop_finish(b->g, &d, carried, scan);
  for (u32 k = 0; k < ncarried; k++)
    if (l.room[k]) carried[k] = on_strings(b, carried[k]);
  for (u32 k = 0; k < nscan; k++)
    if (l.text[k]) scan[k] = on_strings(b, scan[k]);
}
