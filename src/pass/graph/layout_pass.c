/* layout_pass.c: decides how the values of a convolutional network lie in memory.
 *
 * In: a graph. Out: the same graph, values marked with a layout: channels in blocks as wide as a
 * vector, and zeros around what a padded convolution reads. A block begins at a convolution and
 * goes on through everything that works channel by channel: maps, pools, concatenations at
 * multiples of the block. Where somebody needs the plain order (a reshape, a result, another block
 * of the graph), and where a convolution reads something that cannot have zeros around it, a copy
 * is put in between. A convolution with fewer results than fill a block reads what it finds, blocks
 * or lines, and gets its border too. The block is as wide as the target's vectors, or half of that
 * where channel counts would leave too much of it empty.
 *
 * A convolution of integers whose operand is bytes or i16 less a zero point (graph_narrow) reads
 * these: they get the blocks and the border, which holds the zero point. Blocks count elements,
 * whatever their size. Groups of them are read at a time, along the channels of a block; where
 * channels are few, along a row of the image, and then they stay in plain order with room behind
 * the rows.
 *
 * needs: canonical graph, no marks of fuse  keeps: values  breaks: nothing
 */
#include "pass/kernel/family.h"
#include "pass/kernel/segment.h"

#include <string.h>

typedef struct LayoutCtx {
  Graph *g;
  const PassCtx *u;
  u32 block;
  u32 cap;
  Layout **of;   /* by value: its layout, or NULL */
  Val *plain;    /* by value: its copy in plain order, or 0 */
  bool *foreign; /* by value, of those there were at the start: used in another block */
  u32 *uses;     /* likewise */
  bool *wanted;  /* likewise: read by a convolution that the families take */
  bool *bytes;   /* likewise: bytes, or i16, that such a one reads in blocks */
  bool left;     /* nodes have been left without users */
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

/* ---- what there is ---- */

/* A convolution whose result lies in blocks. */
static bool takes(const PassCtx *u, const Node *n) {
  return conv_plan_of(u, n)->blocks;
}

/* Multiply-adds with the lanes that blocks of so many channels leave empty. */
static double padded_work(const PassCtx *u, u32 block) {
  const GraphRegion *b = &u->g->blk.at[1];
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

static void set_block(LayoutCtx *w, Val v) {
  w->of[v] = NEW(&w->g->c->keep, Layout);
  w->of[v]->block = w->block;
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

static bool gather_fits(const LayoutCtx *w, const Node *n) {
  return blocked(w, n->in[0]) && node_int(n, AT_axis, 0) >= 2 &&
         graph_type(w->g, n->in[1])->rank == 1;
}

/* Blocks stay where they are, and what is added stands behind them. */
static bool pad_fits(const LayoutCtx *w, const Node *n) {
  u32 rank;
  const Dim *lo = node_list(n, AT_lo, &rank), *interior = node_list(n, AT_interior, &rank);
  return blocked(w, n->in[0]) && !lo[1] && !interior[1];
}

/* Bytes are made in the blocks that a convolution reads, whatever they are made of: others that
 * read them, as the other branch of a residual block, find blocks too. */
static bool bytes_fit(const LayoutCtx *w, const Node *n) {
  return n->out[0] < w->nforeign && w->bytes[n->out[0]] &&
         graph_type(w->g, n->out[0])->dim[1] >= w->block;
}

/* Channels that come last are put in their place, where a convolution reads them: as vectors into
 * blocks, not one by one. */
static bool transpose_fits(const LayoutCtx *w, const Node *n) {
  u32 rank;
  const Dim *perm = node_list(n, AT_perm, &rank);
  return n->out[0] < w->nforeign && w->wanted[n->out[0]] && rank > 2 && perm[1] == rank - 1 &&
         graph_type(w->g, n->out[0])->dim[1] >= w->block && !w->of[n->in[0]];
}

/* Rows that are kept from band to band lie as what they were cut out of. */
static bool kept_fits(const LayoutCtx *w, const Node *n) {
  return blocked(w, n->in[0]) && node_int(n, AT_keep, 0) &&
         graph_type(w->g, n->in[0])->dim[1] == graph_type(w->g, n->out[0])->dim[1];
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
  case OP_gather: return gather_fits(w, n);
  case OP_pad: return pad_fits(w, n);
  case OP_transpose: return transpose_fits(w, n);
  case OP_slice: return kept_fits(w, n);
  default: return false;
  }
}

/* ---- who reads what ---- */

/* The same elements in memory of their own. */
static Val copy_of(LayoutCtx *w, Val v) {
  Graph *g = w->g;
  const Type *t = graph_type(g, v);
  Attr at = {.key = AT_shape, .kind = AK_list, .n = t->rank};
  Dim *dim = NEWS(&g->c->keep, Dim, t->rank);
  memcpy(dim, t->dim, t->rank * sizeof *dim);
  at.u.list = dim;
  Val made = graph_node(g, graph_add(g, OP_broadcast, &v, 1, &at, 1))->out[0];
  reserve(w, made);
  return made;
}

/* A convolution with too few results for blocks of them: its vectors run along the blocks of its
 * operand (lower_dot_rows.c), or along the lines of it. */
static bool reads_vectors(const LayoutCtx *w, const Node *n) {
  WindowDim s[MAX_RANK];
  if (!conv_plan_of(w->u, n)->narrow_output) return false;
  if (blocked(w, n->in[0])) return graph_type(w->g, n->in[0])->dim[1] % w->block == 0;
  const WindowDim *row = &s[conv_windows(w->g, n, s) - 1];
  return row->stride == 1 && row->places >= w->u->target->lanes;
}

/* The border that this convolution wants around its operand, with so much more behind rows. */
static bool border_of(const LayoutCtx *w, const Node *n, i64 more, i64 *lo, i64 *hi) {
  WindowDim s[MAX_RANK];
  u32 ns = conv_windows(w->g, n, s), patch = conv_plan_of(w->u, n)->patch;
  bool any = false;
  for (u32 i = 0; i < ns; i++) {
    i64 places = patch ? (s[i].places + patch - 1) / patch * patch : s[i].places;
    i64 last = (places - 1) * s[i].stride + (s[i].size - 1) * s[i].dilation - s[i].pad;
    if (last > 0) last /= s[i].input_dilation;
    if (i + 1 == ns) last += more;
    lo[2 + i] = s[i].pad > 0 ? s[i].pad / s[i].input_dilation : 0;
    hi[2 + i] = last >= s[i].extent ? last - s[i].extent + 1 : 0;
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

/* May x have a border, or this one beside what it has? */
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

/* Would its operand fill blocks? A copy that has to be made for the border may as well bring it
 * into the order that all families read. */
static bool fills_blocks(const LayoutCtx *w, const Node *n) {
  const Type *x = graph_type(w->g, n->in[0]);
  return x->dt == DT_f32 && takes(w->u, n) && x->dim[1] % w->block == 0;
}

/* Channels that lie a multiple of a way of the first cache apart meet in the same few lines of it:
 * one more column behind the rows parts them. */
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

/* An operand with a border: the value itself where it has memory that can grow, else a copy. */
static void add_border(LayoutCtx *w, NodeId id) {
  Graph *g = w->g;
  i64 lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0}, fill, more = -1;
  Val x = graph_node(g, id)->in[0], q = graph_narrow(g, x, &fill);
  const ConvPlan *c = conv_plan_of(w->u, graph_node(g, id));
  if (c->sparse && !c->depthwise) return;
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

/* Halves have no blocks: they are made of what lies in plain order, in vectors. */
static bool makes_halves(Graph *g, const Node *n) {
  return n->op == OP_cast && dtype_is_half(graph_type(g, n->out[0])->dt);
}

static bool visit(Edit *e, NodeId id) {
  LayoutCtx *w = e->user;
  Graph *g = e->g;
  const Node *n = graph_node(g, id);
  if (g->cur != 1) return true;
  for (u32 i = 0; i < n->nout; i++) reserve(w, n->out[i]);
  e->changed = true; /* operands in place */
  bool gather = n->op == OP_gather && !becomes_blocked(w, n);
  if (!node_takes_layout(n) || gather || makes_halves(g, n)) {
    for (u32 i = 0, nin = n->nin; i < nin; i++) { /* a copy moves the nodes */
      Val v = graph_node(g, id)->in[i];
      if (v && w->of[v]) {
        Val by = plain_of(w, v);
        graph_node(g, id)->in[i] = by;
      }
    }
    return true;
  }
  if (becomes_blocked(w, n)) set_block(w, n->out[0]);
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
  for (u32 i = 0; i < g->blk.at[1].node.n; i++) {
    const Node *n = graph_node(g, g->blk.at[1].node.at[i]);
    if (!takes(w->u, n)) continue;
    i64 zero;
    Val q = graph_narrow(g, n->in[0], &zero);
    w->wanted[n->in[0]] = true;
    if (q && conv_plan_of(w->u, n)->row_overread < 0) w->bytes[q] = true;
  }
  for (RegionId b = 2; b < g->blk.n; b++) {
    const GraphRegion *k = &g->blk.at[b];
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
  for (u32 i = 0; i < g->blk.at[1].ret.n; i++) {
    Val v = g->blk.at[1].ret.at[i];
    if (w.of[v]) {
      Val by = plain_of(&w, v);
      g->blk.at[1].ret.at[i] = by;
    }
  }
  for (Val v = 1; v < g->val.n && v < w.cap; v++) graph_val(g, v)->layout = w.of[v];
  if (w.left) g->left = LEFT_dead;
}

/* Blocks are moved whole: both sides have them, and one index for each. */
static void check_gather(Graph *g, const Node *n) {
  const Layout *x = graph_val(g, n->in[0])->layout, *y = graph_val(g, n->out[0])->layout;
  if (!x || !y || !x->block || x->block != y->block || graph_val(g, n->in[1])->layout ||
      graph_type(g, n->in[1])->rank != 1)
    fail(g->c, ERR_input, n->loc, "gather needs operand and result in the same blocks");
}

void layout_check(Graph *g) {
  for (RegionId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->blk.at[b].node.at[i]);
      bool placed = false;
      for (u32 k = 0; k < n->nin; k++) placed = placed || graph_val(g, n->in[k])->layout;
      for (u32 k = 0; k < n->nout; k++) placed = placed || graph_val(g, n->out[k])->layout;
      if (placed && !node_takes_layout(n))
        fail(g->c, ERR_input, n->loc, "%s needs memory in plain order", op_info[n->op].name);
      if (placed && n->op == OP_gather) check_gather(g, n);
    }
}
