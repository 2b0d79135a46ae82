/* regroup.c: convolutions whose groups are too small for vectors become depthwise ones.
 *
 * In: a graph. Out: the same graph where such a convolution reads every channel as often as it has
 * results: a gather repeats it, and lanes run along channels of operand and result alike. Where a
 * group has several channels they become an axis in front of the image's, over which the window
 * goes in one step: channels of a result lie behind each other, in the order in which they are
 * summed. A result is the sum of the same products in the same order. The copy has a window's
 * number of products for each of its elements, and costs little beside them.
 *
 * Convolutions of bytes in groups of several channels become those of floats first: lanes of
 * families that multiply several bytes at a time run along results of one group, of which there are
 * few, and the next group reads others. The sums are integers below 2^24, which floats hold in
 * whatever order they are added; where that is not certain nothing is done.
 *
 * SmallGroups whose channels and results fill vectors stay: they are multiplied as they are. Only
 * for machines with vectors, and not where memory is to be saved.
 *
 * needs: nothing; in front of pairs, which looks for bytes behind a gather  keeps: values
 * breaks: nothing (leaves equal gathers of one value to cse, reshaped weights to fold)
 */
#include "pass/pass.h"

#include <string.h>

/* Integers that f32 holds; channels of a group of bytes: with more, bytes are multiplied as they
 * are in less time where there is an instruction for four of them. */
enum { MOST_EXACT = 1 << 24, MOST_CHANNELS = 32 };

/* Elements of a window: fewer do not pay for the copy. Copies of a channel that any operand may
 * have, those that a small one may have, and elements of all of these: more would come from far
 * memory. */
enum { LEAST_WINDOW = 3, FEW_COPIES = 8, MOST_COPIES = 32, MOST_ELEMENTS = 1 << 22 };

typedef struct SmallGroups {
  i64 n, in, out; /* groups; channels of one, and results */
} SmallGroups;

static bool has_window(const Type *k) {
  i64 window = 1;
  for (u32 i = 2; i < k->rank && window < LEAST_WINDOW; i++) window *= k->dim[i];
  return window >= LEAST_WINDOW;
}

/* Is the copy small beside what is done with it? The families for vectors want to know the extents
 * of an image. */
static bool is_copied(const Type *x, const SmallGroups *s) {
  double n = (double)s->n * (double)s->out * (double)s->in;
  for (u32 i = 2; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) return false;
  if (s->out <= FEW_COPIES) return true;
  for (u32 i = 0; i < x->rank; i++)
    if (i != 1) n *= dim_is_const(x->dim[i]) ? (double)x->dim[i] : MOST_ELEMENTS;
  return s->out <= MOST_COPIES && n <= MOST_ELEMENTS;
}

/* Is it a convolution of this kind? */
static bool has_small_groups(Graph *g, const Node *n, SmallGroups *s) {
  const Type *x = graph_type(g, n->in[0]), *k = graph_type(g, n->in[1]);
  s->n = node_int(n, AT_group, 1);
  if (s->n < 2 || !type_is_static(k) || !dim_is_const(x->dim[1]) || !has_window(k)) return false;
  s->in = k->dim[1];
  s->out = k->dim[0] / s->n;
  if (!is_copied(x, s)) return false;
  if (s->in == 1) return s->out > 1;
  if (s->in % LAYOUT_PART == 0 && s->out % LAYOUT_PART == 0) return false;
  return x->dt == DT_f32 && x->rank <= 4 && s->n * s->out >= LAYOUT_PART;
}

/* For every result its channels; of bytes less a zero point the bytes are moved. */
static Val repeat_channels(Graph *g, Val v, const SmallGroups *s) {
  if (s->out == 1) return v; /* they lie so */
  i64 zero, n = s->n * s->out * s->in, *from = NEWS(&g->c->scratch, i64, (size_t)n);
  Val bytes = graph_narrow(g, v, &zero);
  for (i64 i = 0; i < n; i++) from[i] = i / s->in / s->out * s->in + i % s->in;
  Val r = mk_gather(g, bytes ? bytes : v, mk_ints(g, from, (u32)n), 1);
  return bytes ? graph_widen_as(g, v, r) : r;
}

/* The channels of each result as an axis: [n, results * in, ...] -> [n, results, in, ...]. */
static Val channels_as_axis(Graph *g, Val v, i64 results, i64 in) {
  Type t = *graph_type(g, v);
  Dim dim[MAX_RANK] = {t.dim[0], results, in};
  memcpy(dim + 3, t.dim + 2, (t.rank - 2) * sizeof *dim);
  return mk_reshape(g, v, dim, t.rank + 1);
}

/* One more axis in front, over which a window goes in one step without a border. */
static void add_axis(Graph *g, Attr *at) {
  if (at->kind != AK_list) return;
  bool pad = at->key == AT_pad_lo || at->key == AT_pad_hi;
  Dim *list = NEWS(&g->c->keep, Dim, at->n + 1);
  list[0] = pad ? 0 : 1;
  memcpy(list + 1, at->u.list, at->n * sizeof *list);
  at->u.list = list;
  at->n++;
}

/* Are all sums of the products of these weights with bytes less a zero point exact in f32, beside
 * a bias as large as this? */
static bool is_exact(const Tensor *w, i64 zero, i64 bias) {
  i64 each = (i64)w->n / w->dim[0], far = zero > 127 ? zero : 255 - zero, most = 0;
  for (i64 i = 0; i < w->dim[0]; i++) {
    i64 sum = 0;
    for (i64 k = 0; k < each; k++) {
      i64 x = tensor_get(w, (u64)(i * each + k)).i;
      sum += x < 0 ? -x : x;
    }
    most = sum > most ? sum : most;
  }
  return most < (MOST_EXACT - bias) / far;
}

static i64 largest(const Tensor *t) {
  i64 most = 0;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    most = x > most ? x : -x > most ? -x : most;
  }
  return most;
}

/* f32(conv(bytes, w) + b) in groups -> conv(f32(bytes), f32(w)) + f32(b) */
static bool in_floats(Edit *e, NodeId id) {
  Graph *g = e->g;
  const Node *cast = graph_node(g, id);
  i64 zero;
  if (cast->op != OP_cast || graph_type(g, cast->out[0])->dt != DT_f32) return true;
  const Node *sum = graph_def(g, cast->in[0], OP_add);
  const Tensor *b = sum ? graph_const(g, sum->in[1]) : NULL;
  const Node *conv = graph_def(g, sum ? sum->in[0] : cast->in[0], OP_conv);
  if ((sum && !b) || !conv || node_int(conv, AT_group, 1) < 2) return true;
  const Tensor *w = graph_const(g, conv->in[1]);
  if (!w || graph_type(g, conv->out[0])->dt != DT_i32) return true;
  if (w->dim[1] < 2 || w->dim[1] > MOST_CHANNELS) return true;
  i64 bias = b ? largest(b) : 0;
  if (largest(w) > INT16_MAX || w->n > MOST_EXACT || bias >= MOST_EXACT) return true;
  if (!graph_bytes(g, conv->in[0], &zero) || zero < 0 || !is_exact(w, zero, bias)) return true;
  Node n = *conv;
  Val add = sum ? sum->in[1] : 0;
  g->loc = cast->loc;
  Val x = mk_cast(g, n.in[0], DT_f32), k = mk_cast(g, n.in[1], DT_f32);
  Val y = graph_node(g, graph_add(g, OP_conv, (Val[]){x, k}, 2, n.attr, n.nattr))->out[0];
  if (add) {
    Val bias_f32 = mk_cast(g, add, DT_f32);
    y = mk_map2(g, OP_add, y, bias_f32);
  }
  return !edit_swap(e, id, y);
}

static bool visit(Edit *e, NodeId id) {
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  SmallGroups s;
  if (n->op != OP_conv || !has_small_groups(g, n, &s)) return true;
  u32 nat = n->nattr;
  Attr *at = NEWS(&g->c->keep, Attr, nat);
  memcpy(at, n->attr, nat * sizeof *at);
  Val in[2] = {n->in[0], n->in[1]};
  Type out = *graph_type(g, n->out[0]);
  g->loc = n->loc;
  in[0] = repeat_channels(g, in[0], &s);
  if (s.in > 1) {
    in[0] = channels_as_axis(g, in[0], s.n * s.out, s.in);
    in[1] = mk_unsqueeze(g, in[1], 1);
  }
  for (u32 i = 0; i < nat; i++) {
    if (at[i].key == AT_group) at[i].u.i = s.n * s.out;
    if (s.in > 1) add_axis(g, &at[i]);
  }
  Val made = graph_node(g, graph_add(g, OP_conv, in, 2, at, nat))->out[0];
  if (s.in > 1) made = mk_reshape(g, made, out.dim, out.rank);
  return !edit_swap(e, id, made);
}

void regroup(Unit *u) {
  if (u->target->lanes < 4 || u->aim == AIM_ram) return;
  bool floats = edit_run(u->g, in_floats, NULL);
  if (edit_run(u->g, visit, NULL) || floats) u->g->left = LEFT_known | LEFT_equal;
}
