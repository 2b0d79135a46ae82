/* quant.c: turns products of quantized tensors into integer sums.
 *
 * In: a graph in which DequantizeLinear is (q - zero) * scale on floats. Out: the same graph, with
 * convolutions and contractions of such values on integers, and the scales after them:
 *
 *   conv((x - zx) * sx, w * sw) + b   ->   float(conv(x - zx, w) + b / (sx sw)) * (sx sw)
 *   round(that / so)                  ->   round(float(...) * (sx sw / so))
 *
 * Integer sums are exact: nothing saturates, and it is checked that i32 holds every sum. Rounding
 * is reduced to one conversion to f32 and one product, whereas the float form rounds every product
 * and partial sum. So the result is closer to the exact value. A quantized result may differ by one
 * step from the float form if the exact value is within about 2^-20 of a tie. QLinearConv and its
 * relatives define the same integers, so both spellings of a model give the same bits.
 *
 *   - A bias is added to the integers if it is a multiple of sx sw, as quantizers make it. Any
 *     other is added as a float.
 *   - Scales of an output move through sums, products and bounds after the integers, so that an
 *     epilogue has no division.
 *   - The maximum of quantized values is the maximum of the int8 values.
 *   - int8 -> float -> int8: the function of 256 codes is evaluated. If it is the identity, it is
 *     removed, also with views in between. Several factors become one if all codes round equally.
 *
 * Weights that are not constant, scales that vary along a summed axis, and weights whose
 * dequantized form is already folded (below 64 elements) stay floats.
 *
 * needs: nothing; before fold, which would dequantize the weights  keeps: types  breaks: last bits
 * of floats
 */
#include <math.h>
#include <string.h>
#include "pass/graph/canon.h"

enum { DEPTH = 16, KNOWN = 6, FACTORS = 4 };

/* Is v a constant, or computed from constants in so many steps? */
static bool is_known(Graph *g, Val v, u32 steps) {
  NodeId def = graph_val(g, v)->def;
  if (!def || graph_const(g, v) || !steps) return graph_const(g, v) != NULL;
  u32 nin = graph_node(g, def)->nin;
  if (!node_folds(graph_node(g, def))) return false;
  for (u32 i = 0; i < nin; i++)
    if (!is_known(g, graph_node(g, def)->in[i], steps - 1)) return false;
  return nin > 0;
}

/* v as a constant if it is one; else v. */
static Val known(Graph *g, Val v) {
  return is_known(g, v, KNOWN) ? canon_eval_const(g, v) : v;
}

/* v = float(ints) * scale */
typedef struct Scaled {
  Val ints;  /* i32 */
  Val scale; /* constant f32 */
} Scaled;

static bool match_scaled(Graph *g, Val v, Scaled *s) {
  const Node *n = graph_def(g, v, OP_mul);
  if (!n || graph_type(g, v)->dt != DT_f32) return false;
  Val in[2] = {n->in[0], n->in[1]};
  for (u32 i = 0; i < 2; i++) {
    const Node *c = graph_def(g, in[i], OP_cast);
    if (!c || graph_type(g, c->in[0])->dt != DT_i32) continue;
    s->ints = c->in[0];
    s->scale = known(g, in[1 - i]);
    return graph_const(g, s->scale) && canon_in_range(g, s->scale, 1e-30, 1e30) &&
           type_equal(graph_type(g, v), graph_type(g, in[i]));
  }
  return false;
}

static Val scaled(Graph *g, Val ints, Val scale) {
  return mk_mul(g, mk_cast(g, ints, DT_f32), scale);
}

static bool is_one(Graph *g, Val v) {
  return graph_const(g, v)->n == 1;
}

/* ---- products ---- */

/* The scale of weights, broadcast against the result; at: axis of the result that axis `from` of
 * the weights becomes. 0: it varies along another axis. */
static Val against(Graph *g, Val scale, u32 rank, u32 from, u32 at, u32 out_rank) {
  const Tensor *t = graph_const(g, scale);
  Dim dim[MAX_RANK];
  if (is_one(g, scale)) return known(g, mk_reshape(g, scale, NULL, 0));
  for (u32 i = 0; i < t->rank; i++)
    if (t->dim[i] != 1 && rank - t->rank + i != from) return 0;
  for (u32 i = at; i < out_rank; i++) dim[i - at] = i == at ? (Dim)t->n : 1;
  return known(g, mk_reshape(g, scale, dim, out_rank - at));
}

/* The scale of weights against the result, for any axis that both share. */
static Val against_result(Graph *g, const Node *n, u32 w, Val scale) {
  u32 rank = graph_type(g, n->in[w])->rank, out = graph_type(g, n->out[0])->rank;
  if (n->op == OP_conv) return against(g, scale, rank, 0, 1, out);
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s);
  const char *letters = w ? strchr(spec, ',') + 1 : spec, *result = strstr(spec, "->") + 2;
  for (u32 i = 0; i < rank; i++) {
    const char *at = strchr(result, letters[i]);
    Val v = at ? against(g, scale, rank, i, (u32)(at - result), out) : 0;
    if (v) return v;
  }
  return is_one(g, scale) ? known(g, mk_reshape(g, scale, NULL, 0)) : 0;
}

/* Does i32 hold every sum, plus a bias of the same magnitude? The bound multiplies the products per
 * result by the largest operand and the largest weight. */
static bool fits(Graph *g, const Node *n, u32 k, Val w) {
  const Tensor *t = graph_const(g, w);
  i64 most = 0;
  double steps = (double)t->n;
  if (n->op == OP_conv) steps /= (double)t->dim[0];
  if (n->op == OP_contract) {
    const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s), *result = strstr(spec, "->") + 2;
    const char *letters = k ? strchr(spec, ',') + 1 : spec;
    for (u32 i = 0; i < t->rank; i++)
      if (strchr(result, letters[i])) steps /= (double)t->dim[i];
  }
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    if (x < -255 || x > 255) return false;
    most = x > most ? x : -x > most ? -x : most;
  }
  return steps * 255 * (double)most < 0x1p30;
}

/* conv(x * sx, w * sw) -> conv(x, w) * (sx sw); the same for contract */
static bool product(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (graph_type(g, n.out[0])->dt != DT_f32) return false;
  for (u32 k = 0; k < (n.op == OP_conv ? 1 : 2); k++) {
    Scaled x, w;
    i64 zero;
    if (!match_scaled(g, n.in[k], &x) || !match_scaled(g, n.in[1 - k], &w)) continue;
    if (!is_one(g, x.scale) || !graph_bytes(g, x.ints, &zero)) continue;
    w.ints = known(g, w.ints);
    if (!graph_const(g, w.ints) || !fits(g, &n, 1 - k, w.ints)) continue;
    Val sw = against_result(g, &n, 1 - k, w.scale);
    if (!sw) continue;
    Val sx = known(g, mk_reshape(g, x.scale, NULL, 0)), in[2];
    in[k] = x.ints;
    in[1 - k] = w.ints;
    g->loc = n.loc;
    Val acc = mk_node(g, n.op, in, 2, n.attr, n.nattr);
    return edit_swap(e, id, scaled(g, acc, canon_fold(g, OP_mul, sx, sw)));
  }
  return false;
}

/* b / scale as integers if b is an exact multiple; 0: it is not. */
static Val multiples(Graph *g, Val b, Val scale) {
  const Tensor *t = graph_const(g, b), *s = graph_const(g, scale);
  if (s->n != 1 && (s->n != t->n || s->rank > t->rank)) return 0;
  for (u32 i = 0; s->n != 1 && i < s->rank; i++)
    if (s->dim[i] != t->dim[t->rank - s->rank + i]) return 0;
  Tensor *out = tensor_new(&g->c->work, DT_i32, t->dim, t->rank);
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f, by = tensor_get(s, s->n == 1 ? 0 : i).f, k = rint(x / by);
    if (!(fabs(k) < 0x1p30) || (double)((float)k * (float)by) != x) return 0;
    tensor_set(out, i, (Scalar){.i = (i64)k});
  }
  return mk_const(g, out);
}

/* acc * s + b -> (acc + b / s) * s */
static bool bias(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  for (u32 i = 0; i < 2; i++) {
    Scaled x;
    if (!canon_one_use(e, n.in[i]) || !match_scaled(g, n.in[i], &x)) continue;
    NodeId def = graph_val(g, x.ints)->def;
    if (!def || op_info[graph_node(g, def)->op].kind != OK_CONTRACT) continue;
    Val b = known(g, n.in[1 - i]);
    if (!graph_const(g, b)) continue;
    Val k = multiples(g, b, x.scale);
    g->loc = n.loc;
    return k && edit_swap(e, id, scaled(g, mk_add(g, x.ints, k), x.scale));
  }
  return false;
}

/* ---- codes ---- */

/* v = float(q - zero) times or divided by constants, q a byte: a function of 256 codes, which can
 * be evaluated exhaustively. */
typedef struct Codes {
  Val ints; /* q - zero, of i32 */
  Val q;
  i64 zero, least, most;
  u32 n;
  struct {
    Op op;
    float by;
  } factor[FACTORS]; /* last one first */
} Codes;

/* v without its factors, which are appended to those of x. */
static Val less_factors(Graph *g, Val v, Codes *x) {
  while (x->n < FACTORS) {
    double by;
    const Node *n = graph_def(g, v, OP_mul);
    if (!n) n = graph_def(g, v, OP_div);
    if (!n || graph_type(g, v)->dt != DT_f32) return v;
    Val in[2] = {n->in[0], n->in[1]};
    Op op = n->op;
    Val k = known(g, in[1]);
    if (!canon_scalar(g, k, &by) || !type_equal(graph_type(g, v), graph_type(g, in[0]))) return v;
    x->factor[x->n].op = op;
    x->factor[x->n++].by = (float)by;
    v = in[0];
  }
  return v;
}

static bool match_codes(Graph *g, Val v, Codes *x) {
  Scalar least, most;
  Val top = less_factors(g, v, x);
  const Node *c = graph_def(g, top, OP_cast);
  if (!c || graph_type(g, top)->dt != DT_f32 || graph_type(g, c->in[0])->dt != DT_i32) return false;
  x->ints = c->in[0];
  x->q = graph_bytes(g, x->ints, &x->zero);
  if (!x->q) return false;
  dtype_limits(graph_type(g, x->q)->dt, &least, &most);
  x->least = least.i;
  x->most = most.i;
  return true;
}

/* Value of a code in f32 arithmetic. */
static float code_value(const Codes *x, i64 code) {
  float v = (float)(code - x->zero);
  for (u32 i = x->n; i--;)
    v = x->factor[i].op == OP_mul ? v * x->factor[i].by : v / x->factor[i].by;
  return v;
}

static bool codes_agree(const Codes *x, const Codes *y) {
  for (i64 code = x->least; code <= x->most; code++)
    if (rintf(code_value(x, code)) != rintf(code_value(y, code))) return false;
  return true;
}

/* Finds one factor that replaces all others, if all codes then round equally. */
static bool one_factor(const Codes *x, Codes *one) {
  double by = 1;
  *one = *x;
  for (u32 i = x->n; i--;)
    by = x->factor[i].op == OP_mul ? by * (double)x->factor[i].by : by / (double)x->factor[i].by;
  one->n = 1;
  one->factor[0].op = OP_mul;
  float f = (float)by, near[] = {f, nextafterf(f, 0), nextafterf(f, INFINITY)};
  for (u32 i = 0; i < 3; i++) {
    one->factor[0].by = near[i];
    if (codes_agree(x, one)) return true;
  }
  return false;
}

/* ---- results ---- */

/* v / by without a division; 0: not possible. */
static Val divided(GraphEdit *e, Val v, Val by, u32 depth) {
  Graph *g = e->g;
  Scaled x;
  Val k = known(g, v);
  if (depth > DEPTH) return 0;
  if (graph_const(g, k)) return canon_fold(g, OP_div, k, by);
  if (match_scaled(g, v, &x)) {
    Val s = canon_fold(g, OP_div, x.scale, by);
    return canon_in_range(g, s, 1e-30, 1e30) ? scaled(g, x.ints, s) : 0;
  }
  NodeId def = graph_val(g, v)->def;
  if (!def || !canon_one_use(e, v)) return 0;
  Node n = *graph_node(g, def);
  if (n.op != OP_add && n.op != OP_max && n.op != OP_min) return 0;
  Val a = divided(e, n.in[0], by, depth + 1), b = a ? divided(e, n.in[1], by, depth + 1) : 0;
  return b ? mk_map2(g, n.op, a, b) : 0;
}

/* round(v / so) -> round(v * (1 / so)), with the factor merged into the scale of v */
static bool requantize(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *d = canon_one_use_def(e, n.in[0], OP_div);
  if (!d || graph_type(g, n.out[0])->dt != DT_f32) return false;
  Val x = d->in[0], by = known(g, d->in[1]);
  if (!graph_const(g, by) || !is_one(g, by) || graph_const(g, known(g, x))) return false;
  if (!(tensor_get(graph_const(g, by), 0).f > 0) || !canon_in_range(g, by, 1e-30, 1e30))
    return false;
  by = known(g, mk_reshape(g, by, NULL, 0));
  g->loc = n.loc;
  Val v = divided(e, x, by, 0);
  Codes many = {0}, one;
  if (!v && match_codes(g, n.in[0], &many) && one_factor(&many, &one))
    v = scaled(g, many.ints, mk_scalar(g, DT_f32, (double)one.factor[0].by));
  return v && edit_swap(e, id, mk_round(g, v));
}

/* pool_max((q - z) * s) -> (pool_max(q) - z) * s */
static bool pool(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Scaled x;
  i64 zero;
  u32 ns;
  if (!match_scaled(g, n.in[0], &x) || !is_one(g, x.scale)) return false;
  if (!canon_windows_see(&n, node_list(&n, AT_pad_lo, &ns), node_list(&n, AT_pad_hi, &ns)))
    return false;
  Val q = graph_bytes(g, x.ints, &zero);
  if (!q || !(tensor_get(graph_const(g, x.scale), 0).f > 0)) return false;
  g->loc = n.loc;
  Val p = mk_node(g, OP_pool_max, &q, 1, n.attr, n.nattr);
  p = mk_cast(g, p, DT_i32);
  if (zero) p = mk_sub(g, p, mk_scalar(g, DT_i32, (double)zero));
  return edit_swap(e, id, scaled(g, p, known(g, mk_reshape(g, x.scale, NULL, 0))));
}

/* The reshape or transpose that v is; NULL: neither. */
static const Node *view_of(Graph *g, Val v) {
  const Node *n = graph_def(g, v, OP_transpose);
  return n ? n : graph_def(g, v, OP_reshape);
}

/* Applies the views of v, at most `steps`, to q. */
static Val shown(Graph *g, Val v, Val q, u32 steps) {
  if (!steps) return q;
  Node n = *view_of(g, v);
  q = shown(g, n.in[0], q, steps - 1);
  return mk_node(g, n.op, &q, 1, n.attr, n.nattr);
}

/* int8(round(..view(..float(q - z)..)..) + k) -> view(q) if there are only products and quotients,
 * and every code maps to itself */
static bool identity_codes(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  double moved = 0;
  Codes x = {0};
  u32 steps = 0;
  if (!node_int(&n, AT_sat, 0)) return false;
  Val v = n.in[0];
  const Node *a = graph_def(g, v, OP_add);
  if (a) {
    Val k = known(g, a->in[1]);
    if (!canon_scalar(g, k, &moved)) return false;
    v = graph_node(g, graph_val(g, n.in[0])->def)->in[0];
  }
  const Node *r = graph_def(g, v, OP_round);
  if (!r) return false;
  Val to = less_factors(g, r->in[0], &x), from = to;
  for (; steps < DEPTH && view_of(g, from); steps++) from = view_of(g, from)->in[0];
  if (!match_codes(g, from, &x)) return false;
  if (graph_type(g, x.q)->dt != graph_type(g, n.out[0])->dt) return false;
  for (i64 code = x.least; code <= x.most; code++) {
    double made = (double)rintf(code_value(&x, code)) + moved;
    made = made < (double)x.least ? (double)x.least : made;
    if ((made > (double)x.most ? (double)x.most : made) != (double)code) return false;
  }
  g->loc = n.loc;
  return edit_swap(e, id, shown(g, to, x.q, steps));
}

/* Starts with a Canon, for canon_one_use. */
typedef struct Quant {
  Canon k;
  bool late; /* products and their biases are done: results may change scales */
} Quant;

static bool visit(GraphEdit *e, NodeId id) {
  bool late = ((const Quant *)e->user)->late;
  switch (graph_node(e->g, id)->op) {
  case OP_conv:
  case OP_contract: return !product(e, id);
  case OP_add: return !bias(e, id);
  case OP_round: return !late || !requantize(e, id);
  case OP_pool_max: return !pool(e, id);
  case OP_cast: return !identity_codes(e, id);
  default: return true;
  }
}

/* Does the graph contain bytes? Most do not. */
static bool has_bytes(Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++)
    if (node_is_decode(g, graph_node(g, i))) return true;
  return false;
}

/* PassCtx.quant: early rules until none applies, then all rules once; repeats if anything
 * changed. */
enum { QUANT_early = 1, QUANT_late };

void quant(PassCtx *u) {
  Graph *g = u->g;
  g->again = false;
  if (!u->quant && !has_bytes(g)) return;
  Quant q = {.late = u->quant == QUANT_late};
  q.k = (Canon){.n = g->val.n, .uses = NEWS(&g->c->scratch, u32, g->val.n)};
  graph_use_counts(g, q.k.uses);
  bool changed = edit_run(g, visit, &q);
  g->again = changed || !q.late;
  g->left = g->again ? LEFT_dead : 0;
  u->quant = changed ? QUANT_early : QUANT_late;
}
