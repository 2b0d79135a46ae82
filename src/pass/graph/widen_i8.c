/* widen_i8.c: stores int8 that products read many times as int16.
 *
 * In: a graph in which a convolution or contraction with constant weights reads q - z: an int8
 * value minus its zero point. Out: the same graph with i32(q) - z replaced by i32(i16(q) - z),
 * where the i16 value is in memory. Its producer stores int16, and an int8 value without other
 * users is never stored. The zero point may be computed at run time (DynamicQuantizeLinear). It is
 * subtracted here once, not from every sum.
 *
 * The pass runs for targets that multiply int16 in pairs and have no 4-way int8 dot product
 * (target.def: maddubs). They would otherwise widen int8 for each product. On other vector targets
 * it widens only int8 with a run-time zero point, which dot_i8x4 does not support. It skips
 * products that use each weight only a few times, because int8 weights load in half the time. It
 * also skips depthwise convolutions whose lanes read the same value, because their kernels take
 * int8.
 *
 * For the skipped products, and on targets without vectors, a run-time zero point is subtracted
 * after the matmul: sum((q - z) * w) = sum(q * w) - z * sum(w), where sum(w) is constant. Otherwise
 * the weights would be widened to 32 bits. Without vectors this form also shows the C compiler that
 * the products fit in 16 bits.
 *
 * needs: nothing; after quant and canon  keeps: values  breaks: nothing
 */
#include "pass/pass.h"

#include <string.h>

typedef enum Want { WANT_nothing, WANT_pairs, WANT_bytes } Want;

typedef struct WidenCtx {
  u8 *want; /* by value: Want */
  u32 n;
  bool moved; /* only int8 with a run-time zero point */
  bool bytes; /* widen nothing */
} WidenCtx;

/* Points of a result that use the same weights: those of the operand, without summed axes. */
static double rows_of(Graph *g, const Node *n, u32 k) {
  const Type *x = graph_type(g, n->in[k]), *o = graph_type(g, n->out[0]);
  double rows = 1;
  const char *spec = n->op == OP_contract ? str_text(g->c, node_attr(n, AT_spec)->u.s) : NULL;
  for (u32 i = 0; spec && i < x->rank; i++) {
    const char *letters = k ? strchr(spec, ',') + 1 : spec;
    if (!strchr(strstr(spec, "->"), letters[i])) continue;
    rows *= dim_is_const(x->dim[i]) ? (double)x->dim[i] : LIMIT_widen_i8_rows;
  }
  for (u32 i = 0; !spec && i < o->rank; i++)
    if (i != 1) rows *= dim_is_const(o->dim[i]) ? (double)o->dim[i] : LIMIT_widen_i8_rows;
  return rows;
}

static Want want_of(Graph *g, const WidenCtx *p, const Node *n, u32 k) {
  const Tensor *w = graph_const(g, n->in[1 - k]);
  i64 group = n->op == OP_conv ? node_int(n, AT_group, 1) : 1;
  if (!w || graph_type(g, n->out[0])->dt != DT_i32) return WANT_nothing;
  if (n->op == OP_conv && k) return WANT_nothing;
  if (group > 1 && w->dim[1] == 1) return WANT_bytes;
  return p->bytes || rows_of(g, n, k) < LIMIT_widen_i8_rows ? WANT_bytes : WANT_pairs;
}

/* A zero point, i32, as i16. */
static Val in_16_bits(Graph *g, Val v) {
  const Tensor *t = graph_const(g, v);
  if (t) return mk_const(g, tensor_as(&g->c->work, t, DT_i16));
  return mk_cast(g, graph_def(g, v, OP_cast)->in[0], DT_i16);
}

/* Sums of the weights (operand k) of a contraction, broadcast to its result; 0: axes of the result
 * are in another order. */
static Val weight_sums(Graph *g, const Node *n, u32 k) {
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s), *out = strstr(spec, "->") + 2;
  const char *letters = k ? strchr(spec, ',') + 1 : spec;
  const Type *w = graph_type(g, n->in[k]), *o = graph_type(g, n->out[0]);
  Dim shape[MAX_RANK];
  i64 axes[MAX_RANK];
  u32 naxes = 0, next = 0;
  for (u32 i = 0; i < o->rank; i++) shape[i] = 1;
  for (u32 i = 0; i < w->rank; i++) {
    const char *at = strchr(out, letters[i]);
    if (at && (u32)(at - out) < next) return 0;
    if (at) {
      next = (u32)(at - out) + 1;
      shape[at - out] = w->dim[i];
    } else {
      axes[naxes++] = i;
    }
  }
  u32 rank = o->rank;
  Val sums = mk_reduce(g, OP_reduce_sum, n->in[k], axes, naxes, false);
  return mk_reshape(g, sums, shape, rank);
}

/* Subtracts the zero point after a matmul of int8: if it is computed at run time, or on targets
 * without vectors. */
static bool subtract_zero_point(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const WidenCtx *p = e->user;
  const Node *n = graph_node(g, id);
  for (u32 k = 0; k < 2; k++) {
    Val v = n->in[k], zero, q;
    if (v >= p->n || p->want[v] != WANT_bytes || !graph_const(g, n->in[1 - k])) continue;
    q = graph_bytes_and_zero(g, v, &zero);
    if (!q || !zero || graph_type(g, zero)->rank) continue;
    if (graph_const(g, zero) && !p->bytes) continue; /* tiles subtract it themselves */
    if (graph_type(g, v)->dt != DT_i32 || graph_type(g, n->out[0])->dt != DT_i32) continue;
    const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s);
    Val in[2] = {n->in[0], n->in[1]}, old = n->out[0];
    g->loc = n->loc;
    Val sums = weight_sums(g, n, 1 - k);
    if (!sums) continue;
    in[k] = mk_cast(g, q, DT_i32);
    Val y = mk_contract(g, in[0], in[1], spec);
    edit_replace(e, old, mk_sub(g, y, mk_mul(g, sums, zero)));
    return false;
  }
  return true;
}

static bool visit(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  WidenCtx *p = e->user;
  const Node *n = graph_node(g, id);
  if (n->op == OP_contract) return subtract_zero_point(e, id);
  if (n->nout != 1 || n->out[0] >= p->n || p->want[n->out[0]] != WANT_pairs) return true;
  Val v = n->out[0], zero, q = graph_bytes_and_zero(g, v, &zero);
  const Type *t = graph_type(g, v);
  if (p->moved && (!zero || graph_const(g, zero))) return true;
  if (!q || t->dt != DT_i32 || !type_has_shape(graph_type(g, q), t->dim, t->rank)) return true;
  g->loc = n->loc;
  Val x = mk_cast(g, q, DT_i16);
  if (zero) x = mk_sub(g, x, in_16_bits(g, zero));
  edit_replace(e, v, mk_cast(g, x, DT_i32));
  return false;
}

static void note_wants(Graph *g, const WidenCtx *p, const Node *n) {
  for (u32 k = 0; op_info[n->op].kind == OK_CONTRACT && k < 2; k++) {
    Want want = p->bytes && n->op != OP_contract ? WANT_nothing : want_of(g, p, n, k);
    if (want > p->want[n->in[k]]) p->want[n->in[k]] = (u8)want;
  }
}

void widen_i8(PassCtx *u) {
  Graph *g = u->g;
  WidenCtx p = {.want = NEWS(&u->c->scratch, u8, g->val.n),
                .n = g->val.n,
                .moved = u->target->lanes == 1 || !u->prefer_i16,
                .bytes = u->target->lanes == 1};
  if (u->target->lanes > 1 && u->aim != AIM_time) return;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++)
      note_wants(g, &p, graph_node(g, g->region.at[b].node.at[i]));
  if (edit_run(g, visit, &p)) g->left = LEFT_known | LEFT_equal; /* zero points, casts of int8 */
}
