/* infer.c: output types of nodes, and the rules every node must obey.
 *
 * In: a node with operands and attributes. Out: the types of its outputs. One rule per structural
 * op (table `rules`), one for all scalar ops. A violation is an error in the model: fail(ERR_input)
 * at the location of the node. Symbolic dimensions that cannot be compared are assumed to match;
 * engines check them at run time. */
#include "ir/graph/infer.h"
#include "ir/quant/qblock.h"

#include <string.h>

typedef struct Infer {
  Graph *g;
  Dims *ds;
  Node *n;
  const Type *in[4]; /* types of the first operands */
  Type *out;
} Infer;
typedef void InferRule(Infer *f);

#define BAD(f, ...) fail((f)->g->c, ERR_input, (f)->n->loc, __VA_ARGS__)

/* ---- attributes ---- */

static AttrKind kind_of(const char *s, size_t n) {
  if (n == 2) return AK_list;
  switch (*s) {
  case 'f': return AK_float;
  case 's': return AK_str;
  case 't': return AK_dtype;
  case 'c': return AK_const;
  default: return AK_int;
  }
}

/* Checks names and kinds against ops.def. */
static void infer_attrs(Graph *g, const Node *n) {
  const OpInfo *info = &op_info[n->op];
  const char *s = op_attr_spec(n->op);
  u32 seen = 0;
  while (*s) {
    size_t len = strcspn(s, ":"), klen = strcspn(s + len + 1, " ?");
    AttrKind kind = kind_of(s + len + 1, klen);
    bool optional = s[len + 1 + klen] == '?';
    const Attr *found = NULL;
    for (u32 i = 0; i < n->nattr; i++) {
      const char *name = attr_name[n->attr[i].key];
      if (strlen(name) == len && !memcmp(name, s, len)) found = &n->attr[i];
    }
    if (!found && !optional)
      fail(g->c, ERR_input, n->loc, "%s lacks attribute %.*s", info->name, (int)len, s);
    if (found && found->kind != kind)
      fail(g->c, ERR_input, n->loc,
           "%s: attribute %.*s does not have the kind that the operator table gives", info->name,
           (int)len, s);
    seen += found != NULL;
    s += len + 1 + klen + optional;
    s += strspn(s, " ");
  }
  if (seen != n->nattr)
    fail(g->c, ERR_input, n->loc, "%s: an attribute is unknown or given twice", info->name);
}

static const Dim *list_of(Infer *f, AttrKey key, u32 want) {
  u32 n;
  const Dim *d = node_list(f->n, key, &n);
  if (n != want) BAD(f, "%s has %u entries, expected %u", attr_name[key], n, want);
  return d;
}

static u32 axis_of(Infer *f, u32 rank) {
  i64 axis = node_int(f->n, AT_axis, 0);
  if (axis < 0 || axis >= (i64)rank)
    BAD(f, "axis %lld out of range for rank %u", (long long)axis, rank);
  return (u32)axis;
}

/* ---- small helpers ---- */

Type sized_type(Graph *g, const Node *n, DType dt, const Dim *dim, u32 rank) {
  u64 count = 1;
  for (u32 k = 0; k < rank; k++)
    if (dim_is_const(dim[k]) && (!size_mul(count, (u64)dim[k], &count) || count > DIM_MAX))
      fail(g->c, ERR_input, n->loc, "%s: the result has more than 2^40 elements",
           op_info[n->op].name);
  return type_tensor(&g->c->work, dt, dim, rank);
}

static void set_out(Infer *f, u32 i, DType dt, const Dim *dim, u32 rank) {
  f->out[i] = sized_type(f->g, f->n, dt, dim, rank);
}

/* Mixed precisions occur when a conversion to f16 or bf16 left a Cast unchanged. */
static const char *mixed_floats(Infer *f, u32 i, u32 j) {
  Graph *g = f->g;
  const Loc *from = NULL;
  u32 which[2] = {i, j};
  if (!dtype_is_float(f->in[i]->dt) || !dtype_is_float(f->in[j]->dt)) return "";
  for (u32 k = 0; k < 2 && !from; k++) {
    NodeId def = graph_val(g, f->n->in[which[k]])->def;
    if (def && str_is(g->c, graph_node(g, def)->loc.op, "Cast")) from = &graph_node(g, def)->loc;
  }
  if (!from) return "; the model mixes precisions";
  return str_text(g->c, str_fmt(g->c,
                                "; the model mixes precisions: the result of node %d '%s' (Cast) "
                                "has another type than the other operand",
                                from->index, show(g->c, from->node)));
}

static void same_dtype(Infer *f, u32 i, u32 j) {
  if (f->in[i]->dt != f->in[j]->dt)
    BAD(f, "%s: operands have types %s and %s%s", op_info[f->n->op].name,
        type_text(f->ds, f->in[i]), type_text(f->ds, f->in[j]), mixed_floats(f, i, j));
}

static void want_index(Infer *f, u32 i) {
  if (f->in[i]->dt != DT_i64 && f->in[i]->dt != DT_i32)
    BAD(f, "%s: indices must be i32 or i64, found %s", op_info[f->n->op].name,
        type_text(f->ds, f->in[i]));
}

static bool may_equal(Dim a, Dim b) {
  return a == b || !dim_is_const(a) || !dim_is_const(b);
}

u32 infer_broadcast(Graph *g, const Type *const *t, u32 n, Dim *out) {
  u32 rank = 0;
  for (u32 i = 0; i < n; i++) rank = t[i]->rank > rank ? t[i]->rank : rank;
  for (u32 k = 0; k < rank; k++) {
    Dim d = 1;
    for (u32 i = 0; i < n; i++) {
      if (k < rank - t[i]->rank) continue;
      Dim e = t[i]->dim[k - (rank - t[i]->rank)];
      if (e == 1 || e == d) continue;
      if (d == 1 || !dim_is_const(d)) {
        d = dim_is_const(e) || d == 1 ? e : d;
      } else if (dim_is_const(e)) {
        fail(g->c, ERR_input, g->loc, "shapes do not broadcast: extents %lld and %lld on axis %u",
             (long long)d, (long long)e, k);
      }
    }
    out[k] = d;
  }
  return rank;
}

/* ---- scalar ops ---- */

static void rule_map(Infer *f) {
  Node *n = f->n;
  const OpInfo *info = &op_info[n->op];
  u32 first = info->res == OR_sel ? 1 : 0;
  const Type *const *t = f->in;
  if (n->nin <= first || !t[0] || !t[first]) BAD(f, "%s: an operand is missing", info->name);
  for (u32 i = 0; i < n->nin; i++) {
    if (i >= first && !op_accepts(n->op, t[i]->dt))
      BAD(f, "%s does not take %s", info->name, dtype_info[t[i]->dt].name);
    if (i > first && info->res != OR_to) same_dtype(f, first, i);
  }
  if (first && t[0]->dt != DT_bool)
    BAD(f, "select: condition must be bool, found %s", dtype_info[t[0]->dt].name);
  DType dt = t[first]->dt;
  if (info->res == OR_pred) dt = DT_bool;
  if (info->res == OR_to) {
    i64 to = node_int(n, AT_to, 0);
    if (to <= 0 || to >= DT_COUNT) BAD(f, "%s: expected an element type as target", info->name);
    dt = (DType)to;
    /* bool is stored in a byte and can be read as one */
    u32 from = t[0]->dt == DT_bool ? 8 : dtype_info[t[0]->dt].bits;
    u32 width = dt == DT_bool ? 8 : dtype_info[dt].bits;
    if (n->op == OP_bitcast && from != width)
      BAD(f, "bitcast needs types of equal width, found %u and %u bits", from, width);
  }
  Dim dim[MAX_RANK];
  f->g->loc = n->loc;
  u32 rank = infer_broadcast(f->g, t, n->nin, dim);
  set_out(f, 0, dt, dim, rank);
}

/* ---- leaves ---- */

static void rule_const(Infer *f) {
  const Tensor *t = node_attr(f->n, AT_value)->u.t;
  set_out(f, 0, t->dt, t->dim, t->rank);
}

static void rule_dims(Infer *f) {
  u32 n;
  node_list(f->n, AT_shape, &n);
  Dim d = n;
  i64 rank = node_int(f->n, AT_rank, 1), to = node_int(f->n, AT_to, 0);
  if (rank < 0 || rank > 1 || (rank == 0 && n != 1)) BAD(f, "dims: rank must be 0 or 1");
  if (to != DT_i64 && to != DT_i32) BAD(f, "dims: type must be i64 or i32");
  set_out(f, 0, (DType)to, &d, (u32)rank);
}

static void rule_shape_to(Infer *f) { /* iota, random */
  u32 n;
  const Dim *shape = node_list(f->n, AT_shape, &n);
  i64 to = node_int(f->n, AT_to, 0);
  if (n > MAX_RANK) BAD(f, "rank %u exceeds %d", n, MAX_RANK);
  if (to <= 0 || to >= DT_COUNT) BAD(f, "expected an element type");
  if (f->n->op == OP_iota) axis_of(f, n);
  if (f->n->op == OP_random && !dtype_is_float((DType)to))
    BAD(f, "random numbers must be floats, found %s", dtype_info[to].name);
  set_out(f, 0, (DType)to, shape, n);
}

/* ---- reductions ---- */

static void drop_axes(Infer *f, DType dt, u32 mask) {
  const Type *x = f->in[0];
  bool keep = node_int(f->n, AT_keep, 0) != 0;
  Dim dim[MAX_RANK];
  u32 rank = 0;
  for (u32 i = 0; i < x->rank; i++) {
    if (!(mask >> i & 1))
      dim[rank++] = x->dim[i];
    else if (keep)
      dim[rank++] = 1;
  }
  set_out(f, 0, dt, dim, rank);
}

static void rule_reduce(Infer *f) {
  u32 n, mask = 0;
  const Dim *axes = node_list(f->n, AT_axes, &n);
  for (u32 i = 0; i < n; i++) {
    if (axes[i] < 0 || axes[i] >= (i64)f->in[0]->rank || (mask >> axes[i] & 1))
      BAD(f, "axis %lld is out of range for rank %u or given twice", (long long)axes[i],
          f->in[0]->rank);
    mask |= 1u << axes[i];
  }
  DType dt = f->in[0]->dt;
  bool minmax = f->n->op == OP_reduce_max || f->n->op == OP_reduce_min;
  if (!(dtype_is_float(dt) || dtype_is_int(dt) || (minmax && dt == DT_bool)))
    BAD(f, "%s does not take %s", op_info[f->n->op].name, dtype_info[dt].name);
  drop_axes(f, dt, mask);
}

static void rule_resume(Infer *f) {
  u32 n;
  rule_reduce(f);
  (void)node_list(f->n, AT_axes, &n);
  if (!n) BAD(f, "%s: expected at least one axis", op_info[f->n->op].name);
  DType dt = f->in[0]->dt;
  if (dtype_is_float(dt) && dtype_acc(dt) != dt)
    BAD(f, "a sum of %s cannot be continued: it is rounded only at its end", dtype_info[dt].name);
  if (!type_equal(f->in[1], &f->out[0]))
    BAD(f, "the initial value of the sum has another type than the result");
}

static void rule_arg(Infer *f) {
  u32 axis = axis_of(f, f->in[0]->rank);
  if (f->in[0]->dim[axis] == 0)
    BAD(f, "%s over an empty axis has no result", op_info[f->n->op].name);
  drop_axes(f, DT_i64, 1u << axis);
}

/* ---- contractions and windows ---- */

static void rule_contract(Infer *f) {
  same_dtype(f, 0, 1);
  const char *spec = str_text(f->g->c, node_attr(f->n, AT_spec)->u.s), *s = spec;
  Dim of[128];
  memset(of, 0xff, sizeof of); /* -1 never names a constant; `seen` tracks presence */
  bool seen[128] = {false};
  for (u32 k = 0; k < 2; k++) {
    bool mine[128] = {false};
    u32 i = 0;
    for (; *s && *s != ',' && *s != '-'; s++, i++) {
      u32 ch = (u8)*s;
      bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
      if (!letter || mine[ch] || i >= f->in[k]->rank)
        BAD(f, "contract: spec \"%s\": operand %u: expected %u different letters", spec, k,
            f->in[k]->rank);
      mine[ch] = true;
      Dim d = f->in[k]->dim[i];
      if (seen[ch] && !may_equal(of[ch], d))
        BAD(f, "extents %lld and %lld of axis %c differ in \"%s\"", (long long)of[ch], (long long)d,
            ch, spec);
      if (!seen[ch] || dim_is_const(d)) of[ch] = d;
      seen[ch] = true;
    }
    if (i != f->in[k]->rank)
      BAD(f, "contract: spec \"%s\" has %u letters for operand %u of rank %u", spec, i, k,
          f->in[k]->rank);
    if (k == 0 && *s++ != ',')
      BAD(f, "contract: spec \"%s\": expected ',' between the operands", spec);
  }
  if (s[0] != '-' || s[1] != '>')
    BAD(f, "contract: spec \"%s\": expected '->' before the result", spec);
  Dim dim[MAX_RANK];
  u32 rank = 0;
  bool used[128] = {false};
  for (s += 2; *s; s++) {
    u32 ch = (u8)*s;
    if (ch > 127 || !seen[ch] || used[ch] || rank == MAX_RANK)
      BAD(f, "contract: spec \"%s\": expected letters of the operands, each once, after '->'",
          spec);
    used[ch] = true;
    dim[rank++] = of[ch];
  }
  if (!dtype_is_float(f->in[0]->dt) && !dtype_is_int(f->in[0]->dt))
    BAD(f, "contract: expected operands of a float or integer type, found %s",
        dtype_info[f->in[0]->dt].name);
  set_out(f, 0, f->in[0]->dt, dim, rank);
}

/* Extent of a window sliding over d: floor((d + lo + hi - ((k-1)*dilation + 1)) / stride) + 1 */
static Dim slide(Infer *f, Dim d, Dim k, i64 stride, i64 dilation, i64 lo, i64 hi) {
  if (stride < 1 || dilation < 1 || lo < 0 || hi < 0 || stride > INT32_MAX ||
      dilation > INT32_MAX || lo > INT32_MAX || hi > INT32_MAX)
    BAD(f, "strides and dilations must be positive, pads at least 0");
  if (!dim_is_const(k) || k < 1 || k > INT32_MAX)
    BAD(f, "window extent must be a constant above 0");
  i64 span = (k - 1) * dilation + 1;
  if (dim_is_const(d)) {
    i64 room = d + lo + hi - span;
    if (room < 0)
      BAD(f, "window of %lld does not fit into extent %lld with pads %lld and %lld",
          (long long)span, (long long)d, (long long)lo, (long long)hi);
    return room / stride + 1;
  }
  Dim room = dim_addk(f->ds, d, lo + hi - span);
  return dim_addk(f->ds, dim_div(f->ds, room, stride), 1);
}

/* Extent of a spatial axis with inserted zeros. */
static Dim dilated_extent(Infer *f, Dim d, i64 by, i64 stride, i64 dilation) {
  if (by == 1) return d;
  if (stride != 1 || dilation != 1)
    BAD(f, "conv: input_dilation %lld needs stride and dilation 1, found %lld and %lld",
        (long long)by, (long long)stride, (long long)dilation);
  if (!dim_is_const(d) || d < 1 || d > INT32_MAX)
    BAD(f, "conv: input_dilation %lld needs a constant extent above 0", (long long)by);
  return (d - 1) * by + 1;
}

static void rule_conv(Infer *f) {
  same_dtype(f, 0, 1);
  const Type *x = f->in[0], *w = f->in[1];
  if (x->rank < 2 || w->rank != x->rank)
    BAD(f, "conv: x has rank %u and w rank %u; both must be equal and at least 2", x->rank,
        w->rank);
  u32 ns = x->rank - 2;
  const Dim *stride = list_of(f, AT_stride, ns), *dil = list_of(f, AT_dilation, ns);
  const Dim *lo = list_of(f, AT_pad_lo, ns), *hi = list_of(f, AT_pad_hi, ns);
  i64 group = node_int(f->n, AT_group, 1);
  if (group < 1 || group > INT32_MAX || !dim_is_const(w->dim[0]) || w->dim[0] % group)
    BAD(f, "conv: %lld output channels are not a multiple of %lld groups", (long long)w->dim[0],
        (long long)group);
  if (!dim_is_const(w->dim[1]) || w->dim[1] > INT32_MAX ||
      (dim_is_const(x->dim[1]) && x->dim[1] != w->dim[1] * group))
    BAD(f, "conv: x has %lld channels, w expects %lld in %lld groups", (long long)x->dim[1],
        (long long)w->dim[1], (long long)group);
  Dim dim[MAX_RANK] = {x->dim[0], w->dim[0]};
  const Dim *dilate = node_attr(f->n, AT_input_dilation) ? list_of(f, AT_input_dilation, ns) : NULL;
  i64 phases = 1;
  for (u32 i = 0; i < ns; i++) {
    i64 by = dilate ? dilate[i] : 1;
    if (by < 1)
      BAD(f, "conv: input_dilation %lld, expected 1 to %d", (long long)by, MOST_INPUT_DILATION);
    phases = by > MOST_INPUT_DILATION ? by : phases * by;
    if (phases > MOST_INPUT_DILATION)
      BAD(f, "conv: the product of input_dilation is %lld, expected at most %d", (long long)phases,
          MOST_INPUT_DILATION);
    Dim d = dilated_extent(f, x->dim[2 + i], by, stride[i], dil[i]);
    dim[2 + i] = slide(f, d, w->dim[2 + i], stride[i], dil[i], lo[i], hi[i]);
  }
  set_out(f, 0, x->dt, dim, x->rank);
}

static void rule_pool(Infer *f) {
  const Type *x = f->in[0];
  u32 ns;
  const Dim *win = node_list(f->n, AT_window, &ns);
  if (ns > x->rank) BAD(f, "pool: the window has rank %u, the operand only %u", ns, x->rank);
  const Dim *stride = list_of(f, AT_stride, ns), *dil = list_of(f, AT_dilation, ns);
  const Dim *lo = list_of(f, AT_pad_lo, ns), *hi = list_of(f, AT_pad_hi, ns);
  Dim dim[MAX_RANK];
  u32 lead = x->rank - ns;
  for (u32 i = 0; i < lead; i++) dim[i] = x->dim[i];
  for (u32 i = 0; i < ns; i++)
    dim[lead + i] = slide(f, x->dim[lead + i], win[i], stride[i], dil[i], lo[i], hi[i]);
  set_out(f, 0, f->n->op == OP_pool_argmax ? DT_i64 : x->dt, dim, x->rank);
}

/* ---- views and joins ---- */

static void rule_reshape(Infer *f) {
  u32 n;
  const Dim *shape = node_list(f->n, AT_shape, &n);
  if (n > MAX_RANK) BAD(f, "reshape: rank %u exceeds %d", n, MAX_RANK);
  set_out(f, 0, f->in[0]->dt, shape, n);
  Dim have = type_count(f->ds, f->in[0]), want = type_count(f->ds, f->out);
  if (!may_equal(have, want))
    BAD(f, "reshape: %s has %lld elements, the new shape has %lld", type_text(f->ds, f->in[0]),
        (long long)have, (long long)want);
}

static void rule_transpose(Infer *f) {
  const Type *x = f->in[0];
  const Dim *perm = list_of(f, AT_perm, x->rank);
  Dim dim[MAX_RANK];
  u32 mask = 0;
  for (u32 i = 0; i < x->rank; i++) {
    if (perm[i] < 0 || perm[i] >= (i64)x->rank || (mask >> perm[i] & 1))
      BAD(f, "transpose: perm is not a permutation of %u axes", x->rank);
    mask |= 1u << perm[i];
    dim[i] = x->dim[perm[i]];
  }
  set_out(f, 0, x->dt, dim, x->rank);
}

static void rule_slice(Infer *f) {
  const Type *x = f->in[0];
  const Dim *start = list_of(f, AT_start, x->rank), *size = list_of(f, AT_size, x->rank);
  const Dim *step = list_of(f, AT_step, x->rank);
  for (u32 i = 0; i < x->rank; i++) {
    if (step[i] == 0) BAD(f, "slice: step is 0");
    if (!dim_is_const(start[i]) || !dim_is_const(size[i]) || !dim_is_const(x->dim[i])) continue;
    i64 last = start[i];
    if (size[i] && (__builtin_mul_overflow(size[i] - 1, step[i], &last) ||
                    __builtin_add_overflow(last, start[i], &last)))
      last = -1;
    if (size[i] && (start[i] >= x->dim[i] || last < 0 || last >= x->dim[i]))
      BAD(f, "slice: start %lld, size %lld, step %lld leave extent %lld of axis %u",
          (long long)start[i], (long long)size[i], (long long)step[i], (long long)x->dim[i], i);
  }
  set_out(f, 0, x->dt, size, x->rank);
}

static void rule_broadcast(Infer *f) {
  u32 n;
  const Type *x = f->in[0];
  const Dim *shape = node_list(f->n, AT_shape, &n);
  if (n > MAX_RANK || n < x->rank) BAD(f, "broadcast: rank %u cannot become rank %u", x->rank, n);
  for (u32 i = 0; i < x->rank; i++) {
    Dim d = x->dim[i], e = shape[n - x->rank + i];
    if (d != 1 && !may_equal(d, e))
      BAD(f, "broadcast: extent %lld cannot become %lld", (long long)d, (long long)e);
  }
  set_out(f, 0, x->dt, shape, n);
}

static void rule_concat(Infer *f) {
  Node *n = f->n;
  const Type *x = f->in[0];
  u32 axis = axis_of(f, x->rank);
  Dim dim[MAX_RANK], sum = 0;
  for (u32 i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  for (u32 k = 0; k < n->nin; k++) {
    const Type *t = graph_type(f->g, n->in[k]);
    if (t->rank != x->rank || t->dt != x->dt)
      BAD(f, "concat: operand %u is %s, but the first is %s", k, type_text(f->ds, t),
          type_text(f->ds, x));
    for (u32 i = 0; i < x->rank; i++) {
      if (i == axis) continue;
      if (!may_equal(dim[i], t->dim[i]))
        BAD(f, "concat: operand %u has extent %lld on axis %u, expected %lld", k,
            (long long)t->dim[i], i, (long long)dim[i]);
      if (dim_is_const(t->dim[i])) dim[i] = t->dim[i];
    }
    sum = dim_add(f->ds, sum, t->dim[axis]);
  }
  dim[axis] = sum;
  set_out(f, 0, x->dt, dim, x->rank);
}

static void rule_pad(Infer *f) {
  const Type *x = f->in[0];
  same_dtype(f, 0, 1);
  if (f->in[1]->rank != 0) BAD(f, "pad: the value must be a scalar");
  const Dim *lo = list_of(f, AT_lo, x->rank), *hi = list_of(f, AT_hi, x->rank);
  const Dim *mid = list_of(f, AT_interior, x->rank);
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < x->rank; i++) {
    if (mid[i] < 0 || mid[i] > INT32_MAX)
      BAD(f, "pad: interior padding is %lld, expected 0 to 2^31 - 1", (long long)mid[i]);
    Dim d = x->dim[i];
    if (mid[i] && d != 0) /* d + (d - 1) * mid */
      d = dim_addk(f->ds, dim_mul(f->ds, d, mid[i] + 1), -mid[i]);
    dim[i] = dim_add(f->ds, d, dim_add(f->ds, lo[i], hi[i]));
  }
  set_out(f, 0, x->dt, dim, x->rank);
}

/* ---- gathers, scatters, scans ---- */

static void rule_gather(Infer *f) {
  const Type *x = f->in[0], *idx = f->in[1];
  want_index(f, 1);
  u32 axis = axis_of(f, x->rank), rank = 0;
  Dim dim[2 * MAX_RANK];
  for (u32 i = 0; i < axis; i++) dim[rank++] = x->dim[i];
  for (u32 i = 0; i < idx->rank; i++) dim[rank++] = idx->dim[i];
  for (u32 i = axis + 1; i < x->rank; i++) dim[rank++] = x->dim[i];
  if (rank > MAX_RANK) BAD(f, "gather: rank %u exceeds %d", rank, MAX_RANK);
  if (x->dim[axis] == 0 && type_count(f->ds, idx) != 0)
    BAD(f, "gather: indices into an empty axis");
  set_out(f, 0, x->dt, dim, rank);
}

static void elems_shape(Infer *f) {
  const Type *x = f->in[0], *idx = f->in[1];
  want_index(f, 1);
  u32 axis = axis_of(f, x->rank);
  if (x->rank != idx->rank)
    BAD(f, "indices have rank %u, but the data has rank %u", idx->rank, x->rank);
  for (u32 i = 0; i < x->rank; i++)
    if (i != axis && dim_is_const(x->dim[i]) && dim_is_const(idx->dim[i]) &&
        idx->dim[i] > x->dim[i])
      BAD(f, "indices have extent %lld on axis %u, but the data only %lld", (long long)idx->dim[i],
          i, (long long)x->dim[i]);
  if (x->dim[axis] == 0 && type_count(f->ds, idx) != 0) BAD(f, "indices into an empty axis");
}

static void rule_check_index(Infer *f) {
  const Type *x = f->in[0];
  u32 n;
  node_list(f->n, AT_size, &n);
  want_index(f, 0);
  if (n != 1 && (!x->rank || x->dim[x->rank - 1] != (Dim)n))
    BAD(f, "check_index: %u sizes do not match indices %s", n, type_text(f->ds, x));
  set_out(f, 0, x->dt, x->dim, x->rank);
}

static void rule_gather_elems(Infer *f) {
  elems_shape(f);
  set_out(f, 0, f->in[0]->dt, f->in[1]->dim, f->in[1]->rank);
}

/* Length of the coordinates in the last axis of idx; checked against the rank of x. */
static u32 coord_depth(Infer *f, u32 batch) {
  const Type *x = f->in[0], *idx = f->in[1];
  want_index(f, 1);
  if (idx->rank < batch + 1 || x->rank < batch)
    BAD(f, "indices have rank %u, expected more", idx->rank);
  Dim depth = idx->dim[idx->rank - 1];
  if (!dim_is_const(depth) || depth + (i64)batch > (i64)x->rank)
    BAD(f, "coordinates of length %lld do not fit data of rank %u", (long long)depth, x->rank);
  return (u32)depth;
}

static void rule_gather_nd(Infer *f) {
  const Type *x = f->in[0], *idx = f->in[1];
  i64 batch = node_int(f->n, AT_batch, 0);
  if (batch < 0 || batch > (i64)x->rank)
    BAD(f, "gather_nd: batch is %lld, expected 0 to the smaller rank", (long long)batch);
  u32 depth = coord_depth(f, (u32)batch), rank = 0;
  Dim dim[2 * MAX_RANK];
  for (u32 i = 0; i < (u32)batch; i++)
    if (!may_equal(x->dim[i], idx->dim[i]))
      BAD(f, "gather_nd: batch extents of data and indices differ");
  for (u32 i = 0; i + 1 < idx->rank; i++) dim[rank++] = idx->dim[i];
  for (u32 i = (u32)batch + depth; i < x->rank; i++) dim[rank++] = x->dim[i];
  if (rank > MAX_RANK) BAD(f, "gather_nd: rank %u exceeds %d", rank, MAX_RANK);
  set_out(f, 0, x->dt, dim, rank);
}

static void check_reduce(Infer *f) {
  static const char *const ok[] = {"none", "add", "mul", "max", "min"};
  Str s = node_attr(f->n, AT_reduce)->u.s;
  for (u32 i = 0; i < sizeof ok / sizeof *ok; i++)
    if (str_is(f->g->c, s, ok[i])) return;
  BAD(f, "reduce must be none, add, mul, max or min; found '%s'", show(f->g->c, s));
}

static void rule_scatter_elems(Infer *f) {
  same_dtype(f, 0, 2);
  check_reduce(f);
  elems_shape(f);
  if (f->in[2]->rank != f->in[1]->rank) BAD(f, "scatter: ranks of updates and indices differ");
  for (u32 i = 0; i < f->in[1]->rank; i++)
    if (!may_equal(f->in[1]->dim[i], f->in[2]->dim[i]))
      BAD(f, "scatter: extents of updates and indices differ on axis %u", i);
  set_out(f, 0, f->in[0]->dt, f->in[0]->dim, f->in[0]->rank);
}

static void rule_scatter_nd(Infer *f) {
  const Type *x = f->in[0], *idx = f->in[1], *u = f->in[2];
  same_dtype(f, 0, 2);
  check_reduce(f);
  u32 depth = coord_depth(f, 0);
  if (u->rank != idx->rank - 1 + x->rank - depth)
    BAD(f, "scatter_nd: updates have rank %u, expected %u", u->rank,
        idx->rank - 1 + x->rank - depth);
  for (u32 i = 0; i < u->rank; i++) {
    Dim d = i < idx->rank - 1 ? idx->dim[i] : x->dim[depth + i - (idx->rank - 1)];
    if (!may_equal(d, u->dim[i]))
      BAD(f, "scatter_nd: extents of updates do not match on axis %u", i);
  }
  set_out(f, 0, x->dt, x->dim, x->rank);
}

static void rule_cum(Infer *f) {
  axis_of(f, f->in[0]->rank);
  set_out(f, 0, f->in[0]->dt, f->in[0]->dim, f->in[0]->rank);
}

/* ---- data-dependent sizes ---- */

/* A name that no symbol has yet: symbols of a model or text may have any name. */
static Str fresh_name(Graph *g) {
  u32 n = dim_nsyms(g->dims);
  for (u32 k = n;; k++) {
    Str s = str_fmt(g->c, "u%u", k);
    u32 i = 0;
    while (i < n && dim_syminfo(g->dims, i)->name != s) i++;
    if (i == n) return s;
  }
}

Dim data_symbol(Graph *g, Node *n, u32 k, i64 lo, i64 hi) {
  if (k >= n->nsym) {
    Sym *sym = NEWS(&g->c->work, Sym, k + 1);
    if (k) memcpy(sym, n->sym, k * sizeof *sym);
    sym[k] = dim_sym(g->dims, SY_data, fresh_name(g), lo, hi);
    n->sym = sym;
    n->nsym = k + 1;
  }
  return dim_of_sym(g->dims, n->sym[k]);
}

static void rule_nonzero(Infer *f) {
  i64 lo, hi;
  dim_bounds(f->ds, type_count(f->ds, f->in[0]), &lo, &hi);
  Dim dim[2] = {f->in[0]->rank, data_symbol(f->g, f->n, 0, 0, hi)};
  set_out(f, 0, DT_i64, dim, 2);
}

static void rule_topk(Infer *f) {
  const Type *x = f->in[0];
  u32 axis = axis_of(f, x->rank);
  Dim k = list_of(f, AT_k, 1)[0], dim[MAX_RANK];
  if (dim_is_const(k) && dim_is_const(x->dim[axis]) && k > x->dim[axis])
    BAD(f, "topk: k is %lld, but the axis has extent %lld", (long long)k, (long long)x->dim[axis]);
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[axis] = k;
  set_out(f, 0, x->dt, dim, x->rank);
  set_out(f, 1, DT_i64, dim, x->rank);
}

static void rule_nms(Infer *f) {
  const Type *x = f->in[0], *box = f->in[1], *max_count = graph_type(f->g, f->n->in[4]);
  if (x->rank != 3 || x->dt != DT_f32 || (dim_is_const(x->dim[2]) && x->dim[2] > INT32_MAX))
    BAD(f, "nms: expected scores f32[b, c, n] with n below 2^31, found %s", type_text(f->ds, x));
  for (u32 i = 1; i < 4; i++) same_dtype(f, 0, i);
  if (box->rank != 3 || box->dim[2] != 4 || !may_equal(box->dim[0], x->dim[0]) ||
      !may_equal(box->dim[1], x->dim[2]))
    BAD(f, "nms: boxes %s do not match scores %s", type_text(f->ds, box), type_text(f->ds, x));
  if (f->in[2]->rank || f->in[3]->rank || max_count->rank || max_count->dt != DT_i64)
    BAD(f, "nms: expected scalars as IoU threshold, score threshold and maximum count");
  if (node_box_kind(f->g->c, f->n) == BX_COUNT)
    BAD(f, "nms: expected kind edges, corners or centre");
  Dim dim[3] = {x->dim[0], x->dim[1], list_of(f, AT_k, 1)[0]};
  set_out(f, 0, DT_i64, dim, 3);
}

static void rule_str_encode(Infer *f) {
  const Type *x = f->in[0];
  Dim k = list_of(f, AT_k, 1)[0], dim[MAX_RANK];
  if (x->dt != DT_str || x->rank == MAX_RANK || !dim_is_const(k) || k < 1)
    BAD(f, "bytes: expected strings of rank below %d, and a constant size above 0", MAX_RANK);
  if (x->rank) memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank] = k;
  set_out(f, 0, DT_u8, dim, x->rank + 1);
}

static void rule_str_decode(Infer *f) {
  const Type *x = f->in[0];
  if (x->dt != DT_u8 || !x->rank) BAD(f, "text: expected u8 of rank 1 or more");
  set_out(f, 0, DT_str, x->dim, x->rank - 1);
}

/* The block format of operand i, which has bytes as elements. */
static QBlockKind blocks_of(Infer *f, u32 i) {
  Str name = node_attr(f->n, AT_kind)->u.s;
  const Type *x = f->in[i];
  QBlockKind k = qblock_from_name(str_text(f->g->c, name), str_len(f->g->c, name));
  if (k == BK_COUNT) BAD(f, "unknown block format '%s'", show(f->g->c, name));
  if (x->dt != DT_u8 || x->rank < 2 || x->dim[x->rank - 1] != qblock_info[k].bytes)
    BAD(f, "%s: blocks of %s are u8[.., n, %u], found %s", op_info[f->n->op].name,
        qblock_info[k].name, qblock_info[k].bytes, type_text(f->ds, x));
  return k;
}

static void rule_dequantize(Infer *f) {
  const QBlockInfo *b = &qblock_info[blocks_of(f, 0)];
  const Type *x = f->in[0];
  i64 bits = node_int(f->n, AT_x_bits, 8);
  Dim dim[MAX_RANK];
  if (bits != 8 && bits != 16 && bits != 32)
    BAD(f, "dequantize: x_bits is %lld, expected 8, 16 or 32", (long long)bits);
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank - 2] = dim_mul(f->ds, dim[x->rank - 2], b->elems);
  set_out(f, 0, DT_f32, dim, x->rank - 1);
}

static void want_rows(Infer *f, u32 i, DType dt, Dim rows, i64 n) {
  const Type *x = f->in[i];
  if (x->dt != dt || x->rank != 2 || !may_equal(x->dim[0], rows) || x->dim[1] != n)
    BAD(f, "matmul_quant: operand %u is %s, expected %s with rows of %lld elements", i,
        type_text(f->ds, x), dtype_info[dt].name, (long long)n);
}

static void rule_matmul_quant(Infer *f) {
  QBlockKind k = blocks_of(f, 1);
  const Type *w = f->in[1];
  bool ints = f->n->nin > 2;
  if (qblock_is_plain(k) || w->rank != 3 || !dim_is_const(w->dim[0]) || !dim_is_const(w->dim[1]) ||
      w->dim[1] < 1)
    BAD(f, "matmul_quant: expected rows with a constant number of blocks");
  if (f->n->nin == 3 && !qblock_has_signs(k))
    BAD(f, "matmul_quant: the operand with sums of x is missing");
  i64 n = w->dim[1] * qblock_info[k].elems;
  Dim rows = f->in[0]->rank ? f->in[0]->dim[0] : 0, dim[2] = {rows, w->dim[0]};
  want_rows(f, 0, ints ? DT_i8 : DT_f32, rows, n);
  if (ints) want_rows(f, 2, DT_f32, rows, n / qblock_x(k));
  if (f->n->nin > 3) want_rows(f, 3, qblock_sum_type(k), rows, n / qblock_group(k));
  set_out(f, 0, DT_f32, dim, 2);
}

static InferRule *const rules[OP_COUNT] = {
    [OP_const] = rule_const,
    [OP_dims] = rule_dims,
    [OP_iota] = rule_shape_to,
    [OP_random] = rule_shape_to,
    [OP_reduce_sum] = rule_reduce,
    [OP_reduce_prod] = rule_reduce,
    [OP_reduce_max] = rule_reduce,
    [OP_reduce_min] = rule_reduce,
    [OP_resume_sum] = rule_resume,
    [OP_argmax] = rule_arg,
    [OP_argmin] = rule_arg,
    [OP_contract] = rule_contract,
    [OP_conv] = rule_conv,
    [OP_pool_max] = rule_pool,
    [OP_pool_sum] = rule_pool,
    [OP_pool_argmax] = rule_pool,
    [OP_reshape] = rule_reshape,
    [OP_transpose] = rule_transpose,
    [OP_slice] = rule_slice,
    [OP_broadcast] = rule_broadcast,
    [OP_concat] = rule_concat,
    [OP_pad] = rule_pad,
    [OP_check_index] = rule_check_index,
    [OP_gather] = rule_gather,
    [OP_gather_elems] = rule_gather_elems,
    [OP_gather_nd] = rule_gather_nd,
    [OP_scatter_elems] = rule_scatter_elems,
    [OP_scatter_nd] = rule_scatter_nd,
    [OP_cumsum] = rule_cum,
    [OP_cumprod] = rule_cum,
    [OP_nonzero] = rule_nonzero,
    [OP_str_encode] = rule_str_encode,
    [OP_str_decode] = rule_str_decode,
    [OP_dequantize] = rule_dequantize,
    [OP_matmul_quant] = rule_matmul_quant,
    [OP_topk] = rule_topk,
    [OP_nms] = rule_nms,
};

void infer_node(Graph *g, Node *n, Type *out) {
  Infer f = {.g = g, .ds = g->dims, .n = n, .out = out};
  infer_attrs(g, n);
  for (u32 i = 0; i < n->nin; i++) {
    if (!n->in[i]) BAD(&f, "%s: operand %u is missing", op_info[n->op].name, i);
    if (i < 4) f.in[i] = graph_type(g, n->in[i]);
    if (!n->nregion && graph_type(g, n->in[i])->kind != TY_tensor)
      BAD(&f, "%s: operand %u is not a tensor", op_info[n->op].name, i);
  }
  if (n->nregion)
    infer_control(g, n, out);
  else if (n->op < OP_SCALARS)
    rule_map(&f);
  else if (rules[n->op])
    rules[n->op](&f);
  else
    internal_error(g->c, n->loc, "no type rule for %s", op_info[n->op].name);
}
