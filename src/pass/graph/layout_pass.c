/* layout_pass.c: chooses the memory layout of values in convolutional networks.
 *
 * In: a graph. Out: the same graph, with layouts: channel blocks as wide as a vector, and a border
 * of zeros for padded convolutions. Channel blocks start at a convolution and continue through
 * operators that work channel by channel: maps, pools, concatenations at multiples of the block. A
 * copy is inserted before users that need row-major order (a reshape, a result, another region) and
 * where a convolution reads a value that cannot have a border. A convolution with fewer outputs
 * than a block reads any layout, and gets its border too. Blocks have the target's vector width, or
 * half of it if channel counts would leave too many lanes empty.
 *
 * An integer convolution whose operand is int8 or int16 minus a zero point (graph_narrow) reads the
 * narrow value. That value gets the blocks and the border, which holds the zero point. Blocks count
 * elements, whatever their size. Groups of two or four elements are read along the channels of a
 * block. If channels are few, they are read along an image row, and the layout stays row-major with
 * padding after the rows.
 *
 * needs: canonical graph, no marks of fuse  keeps: values  breaks: nothing
 */
#include "pass/kernel/family.h"

#include <string.h>

typedef struct LayoutCtx {
  Graph *g;
  const PassCtx *u;
  u32 block;
  u32 cap;
  Layout **of;   /* by value: its layout, or NULL */
  Val *plain;    /* by value: its row-major copy, or 0 */
  bool *foreign; /* by value that existed at the start: used in another region */
  u32 *uses;     /* by value that existed at the start */
  bool *wanted; /* by value that existed at the start: read by a convolution with a kernel family */
  bool *bytes; /* by value that existed at the start: int8 or int16 that such a convolution reads in
                  blocks */
  bool left;   /* some nodes have no users any more */
  u32 nforeign;
} LayoutCtx;

static void reserve(LayoutCtx *w, Val v) {
  if (v < w->cap) return;
  u32 cap = v + v / 2 + 16;
  Layout **of = NEWS(&w->g->c->scratch, Layout *, cap);
  if (w->cap) memcpy(of, w->of, w->cap * sizeof *of);
  Val *plain = NEWS(&w->g->c->scratch, Val, cap);
  if (w->cap) memcpy(plain, w->plain, w->cap * sizeof *plain);
  w->of = of;
  w->plain = plain;
  w->cap = cap;
}

/* Does the result of the convolution have channel blocks? */
static bool takes(const PassCtx *u, const Node *n) {
  return conv_plan_of(u, n)->blocks;
}

/* Multiply-adds including empty lanes, for blocks of so many channels. */
static double padded_work(const PassCtx *u, u32 block) {
  const GraphRegion *b = &u->g->region.at[1];
  double all = 0;
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(u->g, b->node.at[i]);
    if (!takes(u, n)) continue;
    const Type *o = graph_type(u->g, n->out[0]), *k = graph_type(u->g, n->in[1]);
    i64 lanes = (o->dim[1] + block - 1) / block * block;
    double work = (double)lanes * (double)k->dim[1];
    for (u32 d = 2; d < o->rank; d++) work *= (double)o->dim[d] * (double)k->dim[d];
    all += work;
  }
  return all;
}

/* ---- blocks ---- */

static bool blocked(const LayoutCtx *w, Val v) {
  return w->of[v] && w->of[v]->block;
}

static bool any_blocked(const LayoutCtx *w, const Node *n) {
  for (u32 i = 0; i < n->nin; i++)
    if (n->in[i] && blocked(w, n->in[i])) return true;
  return false;
}

static bool concat_fits(const LayoutCtx *w, const Node *n) {
  i64 axis = node_int(n, AT_axis, 0), at = 0;
  for (u32 i = 0; i < n->nin; i++) {
    const Type *t = graph_type(w->g, n->in[i]);
    if (!type_can_have_layout(t) || (axis == 1 && at % w->block)) return false;
    at += t->dim[1];
  }
  return axis != 0;
}

static bool map_fits(const LayoutCtx *w, const Node *n) {
  const Type *out = graph_type(w->g, n->out[0]);
  for (u32 i = 0; i < n->nin; i++) {
    const Type *t = graph_type(w->g, n->in[i]);
    if (blocked(w, n->in[i]) && t->rank == out->rank && t->dim[1] == out->dim[1]) return true;
  }
  return false;
}

/* The padding keeps blocks aligned, and adds channels only at the end. */
static bool pad_fits(const LayoutCtx *w, const Node *n) {
  u32 rank;
  const Dim *lo = node_list(n, AT_lo, &rank), *interior = node_list(n, AT_interior, &rank);
  return blocked(w, n->in[0]) && !lo[1] && !interior[1];
}

/* Any int8 value can be stored in the blocks that a convolution reads. Its other readers, such as
 * the other branch of a residual block, then read blocks too. */
static bool bytes_fit(const LayoutCtx *w, const Node *n) {
  return n->out[0] < w->nforeign && w->bytes[n->out[0]] &&
         graph_type(w->g, n->out[0])->dim[1] >= w->block;
}

/* A transpose from channels-last writes directly to the blocks that a convolution reads: in
 * vectors, not element by element. */
static bool transpose_fits(const LayoutCtx *w, const Node *n) {
  u32 rank;
  const Dim *perm = node_list(n, AT_perm, &rank);
  return n->out[0] < w->nforeign && w->wanted[n->out[0]] && rank > 2 && perm[1] == rank - 1 &&
         graph_type(w->g, n->out[0])->dim[1] >= w->block && !w->of[n->in[0]];
}

static bool becomes_blocked(const LayoutCtx *w, const Node *n) {
  if (n->nout != 1 || !type_can_have_layout(graph_type(w->g, n->out[0]))) return false;
  if (n->out[0] < w->nforeign && w->foreign[n->out[0]]) return false;
  if (n->op < OP_SCALARS) return map_fits(w, n) || bytes_fit(w, n);
  switch (n->op) {
  case OP_conv: return takes(w->u, n);
  case OP_pool_max:
  case OP_pool_sum: return graph_type(w->g, n->in[0])->rank > 2 && any_blocked(w, n);
  case OP_reduce_sum:
  case OP_reduce_max:
  case OP_reduce_min:
  case OP_reduce_prod: {
    u32 count;
    const Dim *axes = node_list(n, AT_axes, &count);
    for (u32 i = 0; i < count; i++)
      if (axes[i] < 2) return false;
    return node_int(n, AT_keep, 0) && any_blocked(w, n);
  }
  case OP_concat: return any_blocked(w, n) && concat_fits(w, n);
  case OP_gather:
    return blocked(w, n->in[0]) && node_int(n, AT_axis, 0) >= 2 &&
           graph_type(w->g, n->in[1])->rank == 1;
  case OP_pad: return pad_fits(w, n);
  case OP_transpose: return transpose_fits(w, n);
  case OP_slice: /* rows kept between stripes have the layout of the value they come from */
    return blocked(w, n->in[0]) && node_int(n, AT_keep, 0) &&
           graph_type(w->g, n->in[0])->dim[1] == graph_type(w->g, n->out[0])->dim[1];
  default: return false;
  }
}

/* A copy in separate memory. */
static Val copy_of(LayoutCtx *w, Val v) {
  Graph *g = w->g;
  const Type *t = graph_type(g, v);
  Attr at = {.key = AT_shape, .kind = AK_list, .n = t->rank};
  Dim *dim = NEWS(&g->c->keep, Dim, t->rank);
  memcpy(dim, t->dim, t->rank * sizeof *dim);
  at.u.list = dim;
  Val made = mk_node(g, OP_broadcast, &v, 1, &at, 1);
  reserve(w, made);
  return made;
}

/* A convolution with too few outputs for channel blocks: its vectors run along the blocks of its
 * operand (lower_dot_rows.c), or along rows. */
static bool reads_vectors(const LayoutCtx *w, const Node *n) {
  if (!conv_plan_of(w->u, n)->narrow_output) return false;
  if (blocked(w, n->in[0])) return graph_type(w->g, n->in[0])->dim[1] % w->block == 0;
  const Type *o = graph_type(w->g, n->out[0]);
  return node_list(n, AT_stride, &(u32){0})[o->rank - 3] == 1 &&
         o->dim[o->rank - 1] >= w->u->target->lanes;
}

/* The border that this convolution needs around its operand, with `more` elements after rows. */
static bool border_of(const LayoutCtx *w, const Node *n, i64 more, i64 *lo, i64 *hi) {
  NodeWindow s = node_window(w->g, n);
  u32 patch = conv_plan_of(w->u, n)->patch;
  bool any = false;
  for (u32 i = 0; i < s.n; i++) {
    i64 places = graph_type(w->g, n->out[0])->dim[2 + i];
    i64 extent = graph_type(w->g, n->in[0])->dim[2 + i];
    if (patch) places = (places + patch - 1) / patch * patch;
    i64 last = (places - 1) * s.stride[i] + (s.size[i] - 1) * s.dilation[i] - s.lo[i];
    if (last > 0) last /= s.input_dilation[i];
    if (i + 1 == s.n) last += more;
    lo[2 + i] = s.lo[i] > 0 ? s.lo[i] / s.input_dilation[i] : 0;
    hi[2 + i] = last >= extent ? last - extent + 1 : 0;
    any = any || lo[2 + i] || hi[2 + i];
  }
  return any;
}

static void set_operand(LayoutCtx *w, NodeId id, Val q, bool bytes) {
  Graph *g = w->g;
  Val v = q;
  if (bytes) {
    w->left = true;
    v = graph_widen_as(g, graph_node(g, id)->in[0], q);
    reserve(w, v);
  }
  graph_node(g, id)->in[0] = v;
}

/* May x get this border, in addition to an existing one? */
static bool can_grow(const LayoutCtx *w, Val x, i64 fill) {
  NodeId def = graph_val(w->g, x)->def;
  const Layout *y = w->of[x];
  if (!y || !def) return false;
  if (node_is_view(graph_node(w->g, def)) && graph_node(w->g, def)->op != OP_transpose)
    return false;
  for (u32 i = 2; i < graph_type(w->g, x)->rank; i++)
    if ((y->lo[i] || y->hi[i]) && y->fill != fill) return false;
  return true;
}

/* Would its operand fill channel blocks? If the border needs a copy anyway, the copy can use the
 * layout that all families read. */
static bool fills_blocks(const LayoutCtx *w, const Node *n) {
  const Type *x = graph_type(w->g, n->in[0]);
  return x->dt == DT_f32 && takes(w->u, n) && x->dim[1] % w->block == 0;
}

/* Channels at a distance of a multiple of an L1 way compete for the same cache sets. One more
 * column after the rows avoids that. */
static void part_planes(const LayoutCtx *w, Val x) {
  const Type *t = graph_type(w->g, x);
  Layout *y = w->of[x];
  u64 bytes = (u64)y->block * dtype_bytes(t->dt);
  for (u32 i = 2; i < t->rank; i++) {
    if (!dim_is_const(t->dim[i])) return;
    if (!size_mul(bytes, (u64)(t->dim[i] + y->lo[i] + y->hi[i]), &bytes)) return;
  }
  if (bytes && bytes % (u64)figures.way_bytes == 0) y->hi[t->rank - 1]++;
}

/* Gives an operand a border: in place if its memory can grow, else in a copy. */
static void add_border(LayoutCtx *w, NodeId id) {
  Graph *g = w->g;
  i64 lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0}, fill, more = -1;
  Val x = graph_node(g, id)->in[0], q = graph_narrow(g, x, &fill);
  const ConvPlan *c = conv_plan_of(w->u, graph_node(g, id));
  if (c->sparse && !c->depthwise) return;
  if (w->u->target->warp && !c->depthwise) return; /* copies leave out what is outside */
  if (q) x = q;
  if (q && !c->depthwise && !blocked(w, x)) more = c->row_overread;
  bool any = border_of(w, graph_node(g, id), more > 0 ? more : 0, lo, hi);
  bool block = c->depthwise || /* lanes run along its operand too */
               blocked(w, x) || (any && fills_blocks(w, graph_node(g, id))) || (q && more < 0);
  if (!any && (!block || blocked(w, x))) return;
  NodeId def = graph_val(g, x)->def;
  bool line = !q && !c->blocks;
  bool mine = (q || line) && !block && x < w->nforeign && w->uses[x] == 1 && !w->foreign[x];
  if (mine && !w->of[x] && def &&
      (graph_node(g, def)->op < OP_SCALARS || (line && graph_node(g, def)->op == OP_concat)))
    w->of[x] = NEW(&g->c->keep, Layout);
  if (!can_grow(w, x, fill)) {
    if (!c->depthwise && def && graph_node(g, def)->op == OP_slice)
      block = blocked(w, graph_node(g, def)->in[0]);
    x = copy_of(w, x);
    w->of[x] = NEW(&g->c->keep, Layout);
    w->of[x]->block = block ? w->block : 0;
    set_operand(w, id, x, q != 0);
  }
  w->of[x]->fill = fill;
  for (u32 i = 2; i < graph_type(g, x)->rank; i++) {
    if (lo[i] > w->of[x]->lo[i]) w->of[x]->lo[i] = lo[i];
    if (hi[i] > w->of[x]->hi[i]) w->of[x]->hi[i] = hi[i];
  }
  part_planes(w, x);
}

static Val plain_of(LayoutCtx *w, Val v) {
  if (!w->of[v]) return v;
  if (!w->plain[v]) {
    Val made = copy_of(w, v);
    w->plain[v] = made;
  }
  return w->plain[v];
}

static bool visit(GraphEdit *e, NodeId id) {
  LayoutCtx *w = e->user;
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (g->cur != 1) return true;
  for (u32 i = 0; i < n->nout; i++) reserve(w, n->out[i]);
  e->changed = true; /* operands changed in place */
  bool gather = n->op == OP_gather && !becomes_blocked(w, n);
  /* on CPUs f16 has no blocks: it is converted from row-major values, in vectors */
  bool makes_half =
      !w->u->target->warp && n->op == OP_cast && dtype_is_half(graph_type(g, n->out[0])->dt);
  if (!node_takes_layout(n) || gather || makes_half) {
    for (u32 i = 0, nin = n->nin; i < nin; i++) { /* a copy moves the nodes */
      Val v = graph_node(g, id)->in[i];
      if (v && w->of[v]) {
        Val by = plain_of(w, v);
        graph_node(g, id)->in[i] = by;
      }
    }
    return true;
  }
  if (becomes_blocked(w, n)) {
    w->of[n->out[0]] = NEW(&g->c->keep, Layout);
    w->of[n->out[0]]->block = w->block;
  }
  if (takes(w->u, n) || reads_vectors(w, n)) add_border(w, id);
  return true;
}

static void find_foreign(LayoutCtx *w) {
  Graph *g = w->g;
  w->nforeign = g->val.n;
  w->foreign = NEWS(&g->c->scratch, bool, g->val.n);
  w->uses = NEWS(&g->c->scratch, u32, g->val.n);
  graph_use_counts(g, w->uses);
  w->wanted = NEWS(&g->c->scratch, bool, g->val.n);
  w->bytes = NEWS(&g->c->scratch, bool, g->val.n);
  for (u32 i = 0; i < g->region.at[1].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[1].node.at[i]);
    if (!takes(w->u, n)) continue;
    i64 zero;
    Val q = graph_narrow(g, n->in[0], &zero);
    w->wanted[n->in[0]] = true;
    if (q && conv_plan_of(w->u, n)->row_overread < 0) w->bytes[q] = true;
  }
  for (RegionId b = 2; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++) w->foreign[n->in[j]] = true;
    }
    for (u32 i = 0; i < k->ret.n; i++) w->foreign[k->ret.at[i]] = true;
  }
}

void layout(PassCtx *u) {
  Graph *g = u->g;
  LayoutCtx w = {.g = g, .u = u, .block = u->target->block};
  if (u->target->lanes < 4) return;
  conv_plans(u);
  double most = u->target->cost->half_block;
  if (most > 0 && padded_work(u, w.block) > most * padded_work(u, w.block / 2)) w.block /= 2;
  reserve(&w, g->val.n);
  find_foreign(&w);
  edit_run(g, visit, &w);
  for (u32 i = 0; i < g->region.at[1].ret.n; i++) {
    Val v = g->region.at[1].ret.at[i];
    if (w.of[v]) {
      Val by = plain_of(&w, v);
      g->region.at[1].ret.at[i] = by;
    }
  }
  for (Val v = 1; v < g->val.n && v < w.cap; v++) graph_val(g, v)->layout = w.of[v];
  if (w.left) g->left = LEFT_dead;
}

/* Blocks move whole: both sides must have the same blocks, with one index per block. */
static void check_gather(Graph *g, const Node *n) {
  const Layout *x = graph_val(g, n->in[0])->layout, *y = graph_val(g, n->out[0])->layout;
  if (!x || !y || !x->block || x->block != y->block || graph_val(g, n->in[1])->layout ||
      graph_type(g, n->in[1])->rank != 1)
    fail(g->c, ERR_input, n->loc,
         "gather: operand and result have different channel blocks, expected equal ones");
}

void layout_check(Graph *g) {
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      bool placed = false;
      for (u32 k = 0; k < n->nin; k++) placed = placed || graph_val(g, n->in[k])->layout;
      for (u32 k = 0; k < n->nout; k++) placed = placed || graph_val(g, n->out[k])->layout;
      if (placed && !node_takes_layout(n))
        fail(g->c, ERR_input, n->loc,
             "%s: an operand or result has a layout, expected row-major order",
             op_info[n->op].name);
      if (placed && n->op == OP_gather) check_gather(g, n);
    }
}
