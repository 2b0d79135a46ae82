/* regroup.c: rewrites grouped convolutions narrower than a vector.
 *
 * In: a graph. Out: the same graph, where such a convolution takes the cheaper of two forms:
 *
 *   depthwise  A gather repeats every channel for each of its results, so that lanes run along the
 *              channels of operand and result alike. The channels of a group become an additional
 *              image axis, which the window covers in one step, in the order of summation. A result
 *              is the same sum in the same order. The copy is small compared with the products.
 *   padded     Every group is padded with channels of zeros and unused results until it fills
 *              vectors. A result is the same sum, plus zeros at the end. Used for groups of more
 *              than a few channels, and for transposed convolutions with few results.
 *
 * int8 stays int8 if groups fill vectors, padded or not, because several are multiplied at a time.
 * Smaller groups that are copied channel by channel are multiplied as floats. So are single
 * channels on machines where converting int8 to float takes several instructions: the producer then
 * stores floats. The sums are integers below 2^24, which are exact in f32 in any order. If that is
 * not certain, nothing is done.
 *
 * Groups that fill vectors are left alone. The pass runs for targets with vectors, unless the
 * program is optimized for memory.
 *
 * needs: nothing; before widen_i8, which looks for int8 after a gather  keeps: values  breaks:
 * nothing (leaves equal gathers of one value to cse, reshaped weights to fold)
 */
#include "pass/pass.h"

#include <math.h>
#include <string.h>

enum { MAX_EXACT = 1 << 24 }; /* largest range of consecutive integers in f32 */

typedef enum GroupWay { GW_stay, GW_depthwise, GW_padded } GroupWay;

typedef struct SmallGroups {
  i64 n, in, out;         /* groups; channels and results of one */
  i64 padded_in, results; /* with zero channels and unused results */
  i64 window;             /* positions of the window */
} SmallGroups;

/* Is the copy small compared with the convolution? Vector families need known image extents. */
static bool is_copied(const Type *x, const SmallGroups *s) {
  double n = (double)s->n * (double)s->out * (double)s->in;
  for (u32 i = 2; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) return false;
  if ((double)s->out <= figures.copied_any) return true;
  for (u32 i = 0; i < x->rank; i++)
    if (i != 1) n *= dim_is_const(x->dim[i]) ? (double)x->dim[i] : figures.copied_elements;
  return (double)s->out <= figures.copied_small && n <= figures.copied_elements;
}

static i64 up_to(i64 n, i64 multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/* Results of a group, padded to vectors, or to half vectors if these leave fewer lanes empty and
 * the target supports them. */
static i64 padded_results(const Target *t, i64 out) {
  i64 whole = up_to(out, t->lanes), half = up_to(out, t->lanes / 2);
  return t->cost->half_block > 0 && (double)whole > t->cost->half_block * (double)half ? half
                                                                                       : whole;
}

/* Multiply-adds of an unchanged group per vector of image results; 0: vectors do not apply. */
static double time_unchanged(const Target *t, const SmallGroups *s) {
  i64 lanes = t->lanes, most = t->cost->half_block > 0 ? t->lanes / 2 : t->lanes;
  if (s->in % LAYOUT_PART || s->out % LAYOUT_PART) return 0;
  while (s->out % lanes) lanes /= 2;
  return (double)(s->in * s->out) * (lanes < most ? (double)most / (double)lanes : 1);
}

static GroupWay cheapest(const Target *t, const Type *x, SmallGroups *s, bool bytes) {
  double stay = time_unchanged(t, s), copied = (double)(s->in * s->out) * figures.depthwise_time;
  s->padded_in = up_to(s->in, LAYOUT_PART);
  s->results = padded_results(t, s->out);
  double padded = (double)(s->padded_in * s->results);
  bool can_copy = !bytes && x->rank <= 4 && s->n * s->out >= LAYOUT_PART && is_copied(x, s);
  if (stay > 0 && stay <= padded) return GW_stay;
  if (!stay && can_copy && copied < padded) return GW_depthwise;
  return padded <= figures.group_padding * (double)(s->in * s->out) ? GW_padded : GW_stay;
}

/* Are bytes that become floats moved as bytes? A gather of scattered bytes into a vector costs as
 * much as converting each one. */
static bool moves_bytes(const PassCtx *u) {
  return u->target->cost->byte_widen <= 1;
}

/* Estimated time of the cheapest form in multiply-adds, per window position and image result,
 * including copies. bytes: as int8; otherwise as floats. */
static double least_time(const PassCtx *u, const Type *x, SmallGroups *s, bool bytes) {
  const Target *t = u->target;
  double as_bytes = u->prefer_i16 ? t->cost->dot_i16x2_time : figures.dot_i8x4_time,
         each = bytes ? as_bytes : 1, stay = time_unchanged(t, s),
         copy = figures.copy_time / (double)s->window, gather = moves_bytes(u) ? copy / 4 : copy;
  switch (cheapest(t, x, s, bytes)) {
  case GW_depthwise:
    return (double)(s->in * s->out) * (figures.depthwise_time + gather + copy) +
           (double)s->out * copy;
  case GW_padded:
    return (double)(s->padded_in * s->results) * each +
           (double)((s->in < s->padded_in ? s->padded_in : 0) + s->results) * 2 * copy;
  default: return stay > 0 ? stay * each : INFINITY;
  }
}

/* Does a dilated convolution with one group have too few output channels for a vector? Its rows
 * cannot be vectorized either. Padding a single channel would compute three unused ones. */
static bool lacks_results(const Node *n, const Type *x, SmallGroups *s) {
  s->padded_in = s->in;
  s->results = LAYOUT_PART;
  return x->dt == DT_f32 && node_attr(n, AT_input_dilation) && s->out > 1 && s->out < LAYOUT_PART;
}

/* Collects the parameters; false: vector families do not support it. */
static bool find_groups(Graph *g, const Node *n, SmallGroups *s) {
  const Type *x = graph_type(g, n->in[0]), *k = graph_type(g, n->in[1]);
  *s = (SmallGroups){.n = node_int(n, AT_group, 1)};
  if (!type_is_static(k) || !dim_is_const(x->dim[1])) return false;
  if (x->rank == MAX_RANK) return false; /* groups need one more axis */
  for (u32 i = 2; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) return false;
  s->in = k->dim[1];
  s->out = k->dim[0] / s->n;
  s->window = 1;
  for (u32 i = 2; i < k->rank; i++) s->window *= k->dim[i];
  return s->window > 0;
}

/* Is this a product of int8 with weights that uses dot_i8x4 or dot_i16x2? */
static bool multiplies_bytes(Graph *g, const Node *n) {
  i64 zero;
  const Tensor *w = graph_const(g, n->in[1]);
  if (!w || graph_type(g, n->out[0])->dt != DT_i32 || !graph_bytes(g, n->in[0], &zero))
    return false;
  for (u64 i = 0; i < w->n; i++)
    if (tensor_get(w, i).i < INT8_MIN || tensor_get(w, i).i > INT8_MAX) return false;
  return true;
}

/* Chooses the form of a convolution. */
static GroupWay choose_way(const PassCtx *u, const Node *n, SmallGroups *s) {
  Graph *g = u->g;
  const Type *x = graph_type(g, n->in[0]);
  if (!find_groups(g, n, s) || (double)s->window < figures.copied_window) return GW_stay;
  if (s->n == 1) return lacks_results(n, x, s) ? GW_padded : GW_stay;
  if (s->in == 1) return s->out > 1 && is_copied(x, s) ? GW_depthwise : GW_stay;
  bool bytes = u->aim != AIM_size && multiplies_bytes(g, n);
  return bytes || x->dt == DT_f32 ? cheapest(u->target, x, s, bytes) : GW_stay;
}

/* Is int8 faster than floats? */
static bool keeps_bytes(const PassCtx *u, const Node *n) {
  Graph *g = u->g;
  const Type *x = graph_type(g, n->in[0]);
  SmallGroups s;
  bool known = find_groups(g, n, &s);
  if (graph_type(g, n->in[1])->dim[1] == 1) /* widen at every window position vs once, in a copy */
    return !known || (double)s.window * u->target->cost->byte_widen <= figures.copy_time;
  if (!known || !multiplies_bytes(g, n)) return false;
  if ((double)s.window < figures.copied_window) return time_unchanged(u->target, &s) > 0;
  double bytes = least_time(u, x, &s, true);
  return bytes < least_time(u, x, &s, false);
}

/* ---- padded ---- */

/* Pads each group of axis `axis` of v from `from` to `to` elements with `fill`. */
static Val pad_groups(Graph *g, Val v, u32 axis, i64 groups, i64 from, i64 to, i64 fill) {
  if (from == to) return v;
  Type t = *graph_type(g, v);
  Dim dim[MAX_RANK], made[MAX_RANK], none[MAX_RANK] = {0}, more[MAX_RANK] = {0};
  i64 interior[MAX_RANK] = {0};
  memcpy(dim, t.dim, axis * sizeof *dim);
  dim[axis] = groups;
  dim[axis + 1] = from;
  memcpy(dim + axis + 2, t.dim + axis + 1, (t.rank - axis - 1) * sizeof *dim);
  more[axis + 1] = to - from;
  v = mk_reshape(g, v, dim, t.rank + 1);
  v = mk_pad(g, v, mk_scalar(g, t.dt, (double)fill), none, more, interior);
  memcpy(made, t.dim, t.rank * sizeof *made);
  made[axis] = groups * to;
  return mk_reshape(g, v, made, t.rank);
}

/* The first `to` of every `from` channels. */
static Val cut_groups(Graph *g, Val v, i64 groups, i64 from, i64 to) {
  if (from == to) return v;
  Type t = *graph_type(g, v);
  Dim dim[MAX_RANK] = {t.dim[0], groups, from}, made[MAX_RANK] = {t.dim[0], groups * to};
  memcpy(dim + 3, t.dim + 2, (t.rank - 2) * sizeof *dim);
  memcpy(made + 2, t.dim + 2, (t.rank - 2) * sizeof *made);
  v = mk_slice_axis(g, mk_reshape(g, v, dim, t.rank + 1), 2, 0, to);
  return mk_reshape(g, v, made, t.rank);
}

/* Adds zero channels; for int8 minus a zero point, to the int8 value. */
static Val pad_channels(Graph *g, Val v, const SmallGroups *s) {
  i64 zero;
  Val bytes = graph_bytes(g, v, &zero);
  if (!bytes || s->in == s->padded_in) return pad_groups(g, v, 1, s->n, s->in, s->padded_in, 0);
  return graph_widen_as(g, v, pad_groups(g, bytes, 1, s->n, s->in, s->padded_in, zero));
}

static Val make_padded(Graph *g, const SmallGroups *s, const Val *from, const Attr *at, u32 nat) {
  Val in[2] = {pad_channels(g, from[0], s)};
  in[1] = pad_groups(g, from[1], 1, 1, s->in, s->padded_in, 0);
  in[1] = pad_groups(g, in[1], 0, s->n, s->out, s->results, 0);
  Val made = mk_node(g, OP_conv, in, 2, at, nat);
  return cut_groups(g, made, s->n, s->results, s->out);
}

/* ---- depthwise ---- */

/* Gathers the channels of every result. */
static Val repeat_channels(Graph *g, Val v, const SmallGroups *s) {
  if (s->out == 1) return v; /* already in this order */
  i64 n = s->n * s->out * s->in, *from = NEWS(&g->c->scratch, i64, (size_t)n);
  for (i64 i = 0; i < n; i++) from[i] = i / s->in / s->out * s->in + i % s->in;
  return mk_gather(g, v, mk_ints(g, from, (u32)n), 1);
}

/* The channels of each result as an axis: [n, results * in, ...] -> [n, results, in, ...]. */
static Val channels_as_axis(Graph *g, Val v, i64 results, i64 in) {
  Type t = *graph_type(g, v);
  Dim dim[MAX_RANK] = {t.dim[0], results, in};
  memcpy(dim + 3, t.dim + 2, (t.rank - 2) * sizeof *dim);
  return mk_reshape(g, v, dim, t.rank + 1);
}

/* Repeats channels and adds the axis. For int8 minus a zero point it moves the bytes, unless floats
 * are stored (moves_bytes). */
static Val arrange_channels(const PassCtx *u, Val v, const SmallGroups *s) {
  Graph *g = u->g;
  const Node *cast = graph_def(g, v, OP_cast);
  bool floats = cast && graph_type(g, v)->dt == DT_f32;
  i64 zero;
  Val whole = floats ? cast->in[0] : v, bytes = graph_narrow(g, whole, &zero);
  if (floats && !moves_bytes(u)) bytes = 0;
  Val r = repeat_channels(g, bytes ? bytes : v, s);
  if (s->in > 1) r = channels_as_axis(g, r, s->n * s->out, s->in);
  if (!bytes) return r;
  r = graph_widen_as(g, whole, r);
  return floats ? mk_cast(g, r, DT_f32) : r;
}

/* Prepends an axis that the window covers in one step without a border. */
static void add_axis(Graph *g, Attr *at) {
  if (at->kind != AK_list) return;
  bool pad = at->key == AT_pad_lo || at->key == AT_pad_hi;
  Dim *list = NEWS(&g->c->keep, Dim, at->n + 1);
  list[0] = pad ? 0 : 1;
  memcpy(list + 1, at->u.list, at->n * sizeof *list);
  at->u.list = list;
  at->n++;
}

static Val make_depthwise(const PassCtx *u, const SmallGroups *s, const Val *from, Attr *at,
                          u32 nat, const Type *out) {
  Graph *g = u->g;
  Val in[2] = {arrange_channels(u, from[0], s), from[1]};
  if (s->in > 1) in[1] = mk_unsqueeze(g, in[1], 1);
  for (u32 i = 0; i < nat; i++) {
    if (at[i].key == AT_group) at[i].u.i = s->n * s->out;
    if (s->in > 1) add_axis(g, &at[i]);
  }
  Val made = mk_node(g, OP_conv, in, 2, at, nat);
  return s->in > 1 ? mk_reshape(g, made, out->dim, out->rank) : made;
}

/* ---- bytes ---- */

/* Are all sums of products of these weights with bytes at most `far` from their zero point exact in
 * f32, including a bias of this magnitude? */
static bool is_exact(const Tensor *w, i64 far, i64 bias) {
  i64 each = (i64)w->n / w->dim[0], most = 0;
  for (i64 i = 0; i < w->dim[0]; i++) {
    i64 sum = 0;
    for (i64 k = 0; k < each; k++) {
      i64 x = tensor_get(w, (u64)(i * each + k)).i;
      sum += x < 0 ? -x : x;
    }
    most = sum > most ? sum : most;
  }
  return most < (MAX_EXACT - bias) / far;
}

static i64 largest_magnitude(const Tensor *t) {
  i64 most = 0;
  for (u64 i = 0; i < t->n; i++) {
    i64 x = tensor_get(t, i).i;
    most = x > most ? x : -x > most ? -x : most;
  }
  return most;
}

/* y = f32(conv(bytes, w) + b) in groups -> y = conv(f32(bytes), f32(w)) + f32(b); conv(bytes, w) +
 * b -> i32(y) */
static bool in_floats(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const Node *cast = graph_node(g, id);
  i64 zero;
  Scalar lo, hi;
  if (cast->op != OP_cast || graph_type(g, cast->out[0])->dt != DT_f32) return true;
  const Node *sum = graph_def(g, cast->in[0], OP_add);
  const Tensor *b = sum ? graph_const(g, sum->in[1]) : NULL;
  const Node *conv = graph_def(g, sum ? sum->in[0] : cast->in[0], OP_conv);
  if ((sum && !b) || !conv || node_int(conv, AT_group, 1) < 2) return true;
  const Tensor *w = graph_const(g, conv->in[1]);
  if (!w || graph_type(g, conv->out[0])->dt != DT_i32) return true;
  if (keeps_bytes(e->user, conv)) return true;
  Val bytes = graph_bytes(g, conv->in[0], &zero);
  if (!bytes || !w->n || w->n > MAX_EXACT) return true;
  i64 bias = b ? largest_magnitude(b) : 0;
  if (largest_magnitude(w) > INT16_MAX || bias >= MAX_EXACT) return true;
  dtype_limits(graph_type(g, bytes)->dt, &lo, &hi);
  i64 above = hi.i - zero, below = zero - lo.i;
  if (!is_exact(w, above > below ? above : below, bias)) return true;
  Node n = *conv;
  Val add = sum ? sum->in[1] : 0, ints = cast->in[0];
  g->loc = cast->loc;
  Val x = mk_cast(g, n.in[0], DT_f32), k = mk_cast(g, n.in[1], DT_f32);
  Val y = mk_node(g, OP_conv, (Val[]){x, k}, 2, n.attr, n.nattr);
  if (add) {
    Val bias_f32 = mk_cast(g, add, DT_f32);
    y = mk_add(g, y, bias_f32);
  }
  /* Later readers of the integers, such as the sign that decides how TFLite rounds, convert the
   * exact floats. Otherwise the convolution would run twice. */
  edit_replace(e, ints, mk_cast(g, y, DT_i32));
  return !edit_swap(e, id, y);
}

static bool visit(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  const PassCtx *u = e->user;
  const Node *n = graph_node(g, id);
  SmallGroups s;
  GroupWay way = n->op == OP_conv ? choose_way(u, n, &s) : GW_stay;
  if (way == GW_stay) return true;
  u32 nat = n->nattr;
  Attr *at = NEWS(&g->c->keep, Attr, nat);
  memcpy(at, n->attr, nat * sizeof *at);
  Val in[2] = {n->in[0], n->in[1]};
  Type out = *graph_type(g, n->out[0]);
  g->loc = n->loc;
  Val made =
      way == GW_padded ? make_padded(g, &s, in, at, nat) : make_depthwise(u, &s, in, at, nat, &out);
  return !edit_swap(e, id, made);
}

void regroup(PassCtx *u) {
  if (u->target->lanes < 4 || u->aim == AIM_ram) return;
  bool floats = u->aim != AIM_size && edit_run(u->g, in_floats, u); /* int8 is the smallest */
  if (edit_run(u->g, visit, u) || floats) u->g->left = LEFT_known | LEFT_equal;
}
