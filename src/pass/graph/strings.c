/* strings.c: represents strings as rows of bytes.
 *
 * In: a graph. Out: the same graph without strings: str[..] becomes u8[.., k], the bytes of each
 * string padded with zeros, k being the maximum length. `text` and `bytes`, which convert from and
 * to strings, disappear. All other operators on strings move, select or compare them, and do the
 * same with one more axis at the end. The importer lets only bytes cross the boundary of the graph
 * and of regions. A graph (from text) whose parameters, results or regions hold strings is left
 * alone.
 *
 * needs: nothing  keeps: results  breaks: nothing (leaves dead nodes to dce)
 */
#include <string.h>
#include "pass/pass.h"

typedef struct Strings {
  Map row; /* Val -> 1: represents strings */
} Strings;

static bool is_text(Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  return t->kind == TY_tensor && t->dt == DT_str;
}

/* Do strings cross the boundary of a region? *any: does the graph contain strings at all? */
static bool crosses(Graph *g, RegionId b, bool *any) {
  const GraphRegion *region = &g->region.at[b];
  for (u32 i = 0; i < region->param.n; i++)
    if (is_text(g, region->param.at[i])) return true;
  for (u32 i = 0; i < region->ret.n; i++)
    if (is_text(g, region->ret.at[i])) return true;
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = graph_node(g, region->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) *any = *any || is_text(g, n->out[k]);
    for (u32 k = 0; k < n->nregion; k++)
      if (crosses(g, n->region[k], any)) return true;
  }
  return false;
}

/* ---- one operator ---- */

static bool is_row(const GraphEdit *e, Val v) {
  return map_get(&((const Strings *)e->user)->row, v) != NULL;
}

static Dim room_of(Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  return t->dim[t->rank - 1];
}

/* Rows of exactly k bytes. The importer ensures that bytes cut off are zero. */
static Val fit(Graph *g, Val v, Dim k) {
  Dim have = room_of(g, v), lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
  i64 inner[MAX_RANK] = {0};
  u32 rank = graph_type(g, v)->rank;
  if (have == k) return v;
  if (have > k) return mk_slice_axis(g, v, rank - 1, 0, k);
  hi[rank - 1] = k - have;
  return mk_pad(g, v, mk_scalar(g, DT_u8, 0), lo, hi, inner);
}

static Val const_rows(Graph *g, const Tensor *t) {
  i64 dim[MAX_RANK], k = strings_max_len(g->c, t);
  if (t->rank) memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank] = k;
  Tensor *rows = tensor_new(&g->c->work, DT_u8, dim, t->rank + 1);
  if (!strings_to_bytes(g->c, t, (u8 *)(uintptr_t)rows->data, k)) return 0;
  return mk_const(g, rows);
}

static Val equal_rows(Graph *g, Op op, Val a, Val b) {
  Val same = mk_eq(g, a, b);
  same = mk_reduce(g, OP_reduce_min, same, &(i64){graph_type(g, same)->rank - 1}, 1, false);
  return op == OP_eq ? same : mk_not(g, same);
}

/* A list of dimensions or integers with one more entry. */
static const Dim *longer(Graph *g, const Node *n, AttrKey key, Dim last, u32 *count) {
  const Dim *list = node_list(n, key, count);
  Dim *all = NEWS(&g->c->scratch, Dim, *count + 1);
  if (*count) memcpy(all, list, *count * sizeof *all);
  all[(*count)++] = last;
  return all;
}

/* Indices of elements, repeated for every byte. */
static Val widen(Graph *g, Val idx, Dim k) {
  u32 rank = graph_type(g, idx)->rank;
  Dim dim[MAX_RANK];
  idx = mk_unsqueeze(g, idx, rank);
  memcpy(dim, graph_type(g, idx)->dim, (rank + 1) * sizeof *dim);
  dim[rank] = k;
  return mk_broadcast(g, idx, dim, rank + 1);
}

static Val pad_rows(Graph *g, const Node *n, const Val *in) {
  u32 c;
  const Tensor *with = graph_const(g, n->in[1]); /* only the empty string */
  for (u64 i = 0; with && i < with->n; i++)
    if (tensor_get(with, i).i) with = NULL;
  if (!with) return 0;
  const Dim *lo = longer(g, n, AT_lo, 0, &c), *hi = longer(g, n, AT_hi, 0, &c),
            *inner = longer(g, n, AT_interior, 0, &c);
  return mk_pad(g, in[0], mk_scalar(g, DT_u8, 0), lo, hi, inner);
}

/* A copy of the value, to distinguish it from the original, which does not represent strings. */
static Val again(Graph *g, Val v) {
  const Type *t = graph_type(g, v);
  Attr shape = {.key = AT_shape, .kind = AK_list, .n = t->rank, .u.list = t->dim};
  return mk_node(g, OP_reshape, &v, 1, &shape, 1);
}

/* Rewrites node n for operands in[] whose strings are k bytes wide; 0: not supported. A switch,
 * because each operator treats the additional axis differently. */
static Val rewrite(Graph *g, const Node *n, Val *in, Dim k) {
  u32 c;
  i64 axis = node_int(n, AT_axis, 0);
  switch (n->op) {
  case OP_const: return const_rows(g, node_attr(n, AT_value)->u.t);
  case OP_str_decode: return again(g, in[0]);
  case OP_str_encode: return again(g, fit(g, in[0], node_list(n, AT_k, &c)[0]));
  case OP_eq:
  case OP_ne: return equal_rows(g, n->op, in[0], in[1]);
  case OP_select:
    return mk_select(g, mk_unsqueeze(g, in[0], graph_type(g, in[0])->rank), in[1], in[2]);
  case OP_reshape: {
    const Dim *shape = longer(g, n, AT_shape, k, &c);
    return mk_reshape(g, in[0], shape, c);
  }
  case OP_broadcast: {
    const Dim *shape = longer(g, n, AT_shape, k, &c);
    return mk_broadcast(g, in[0], shape, c);
  }
  case OP_transpose: {
    node_list(n, AT_perm, &c);
    return mk_transpose(g, in[0], longer(g, n, AT_perm, c, &c));
  }
  case OP_slice: {
    const Dim *start = longer(g, n, AT_start, 0, &c), *step = longer(g, n, AT_step, 1, &c),
              *size = longer(g, n, AT_size, k, &c);
    return mk_slice(g, in[0], start, size, step);
  }
  case OP_concat: return mk_concat(g, in, n->nin, axis);
  case OP_pad: return pad_rows(g, n, in);
  case OP_gather: return mk_gather(g, in[0], in[1], axis);
  case OP_gather_elems: return mk_gather_elems(g, in[0], widen(g, in[1], k), axis);
  case OP_gather_nd: return mk_gather_nd(g, in[0], in[1], node_int(n, AT_batch, 0));
  case OP_scatter_elems: return mk_scatter_elems(g, in[0], widen(g, in[1], k), in[2], axis, "none");
  case OP_scatter_nd: return mk_scatter_nd(g, in[0], in[1], in[2], "none");
  default: return 0;
  }
}

static bool visit(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Strings *s = e->user;
  Node n = *graph_node(g, id); /* building moves the nodes */
  bool text = n.nout == 1 && is_text(g, n.out[0]);
  Dim k = 1;
  bool any = text;
  for (u32 i = 0; i < n.nin; i++) {
    if (!n.in[i] || !is_row(e, n.in[i])) continue;
    any = true;
    if (room_of(g, n.in[i]) > k) k = room_of(g, n.in[i]);
  }
  if (!any) return true;
  if (n.op == OP_str_decode) k = room_of(g, n.in[0]);
  Val *in = NEWS(&g->c->scratch, Val, n.nin + 1);
  for (u32 i = 0; i < n.nin; i++) in[i] = is_row(e, n.in[i]) ? fit(g, n.in[i], k) : n.in[i];
  Val by = dim_is_const(k) ? rewrite(g, &n, in, k) : 0;
  if (!by)
    fail(g->c, ERR_unsupported, n.loc, "%s does not support these strings", op_info[n.op].name);
  if (text) *map_put(&s->row, by) = 1;
  edit_replace(e, n.out[0], by);
  return false;
}

void strings(Graph *g) {
  bool any = false;
  if (crosses(g, 1, &any) || !any) return;
  Strings s = {.row = map_new(&g->c->scratch)};
  edit_run(g, visit, &s);
}
