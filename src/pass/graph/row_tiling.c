/* row_tiling.c: computes parts of an image network in stripes of rows, to lower peak memory.
 *
 * In: a canonical graph and a limit for the arena in bytes. Out: the same graph, in which runs of
 * nodes that exceed the limit are computed stripe by stripe (row_tiling_split.c). Every stored
 * element is computed once, with the same bits.
 *
 * Method: memory is estimated as in order.c, for every node of the unchanged graph, and for each
 * run in a number of stripes: values live across it, its results, and what the stripes hold.
 * Dynamic programming over the positions where the graph can be cut (no inline value crosses)
 * chooses the runs. It minimizes the peak down to the limit, then the number of kernels.
 *
 * On targets without vectors, a value that is only read channel by channel counts one channel,
 * because loop_fuse.c keeps only that.
 *
 * needs: canonical graph, marks of fuse, order  keeps: results bit for bit  breaks: marks of fuse
 */
#include "pass/graph/row_tiling.h"

#include "ir/prog/cost.h"

#include <string.h>

enum {
  TILING_STEPS = 64,   /* longest run, in cuts of the graph */
  TILING_CUTS = 256,   /* with more cuts, shorter runs are tried, to bound compile time */
  TILING_NODES = 6000, /* maximum nodes that one run may become */
  TILING_MERGE = 4, /* steps without stripes that are considered together: their kernels may fuse */
  TILING_SHOWN = 4, /* runs named in messages */
  TILING_SLACK = 16 /* arenas within 1 / this of the smallest are equally good */
};

static const u32 ladder[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64};

typedef struct ValueMem { /* memory of a value, and of values that share it */
  u64 size;
  u32 first, last; /* positions */
} ValueMem;

typedef struct TilingPlan { /* best way to run the graph up to a cut */
  u64 peak;
  u64 kernels; /* additional kernels */
  u32 from;    /* previous cut */
  u32 stripes; /* stripes of the part between; 0: unchanged */
} TilingPlan;

typedef struct RowTiling {
  Graph *g;
  Arena *a;
  const PassCtx *u;
  u32 n;          /* nodes of region 1 */
  u32 *at;        /* by node: position */
  RegionId *home; /* by node: region */
  u32 *last;      /* by value: position of its last use; UINT32_MAX: a result of the region */
  u32 *until;     /* by value: position of the last kernel that reads it */
  u32 *uses;      /* by value */
  Val *in;        /* by value: the value whose memory it shares; itself, or 0: none */
  ValueMem *room; /* by value that owns memory */
  u64 *saved;  /* by value that owns memory: bytes saved if its kernel and its reader's are fused */
  u64 *live;   /* by position: live bytes */
  u64 *across; /* by position: live bytes that existed before */
  u32 *cut;    /* positions before which the graph can be cut */
  u32 ncut;
} RowTiling;

/* Does its result have memory? That of a reduction over rows may: fuse decides later. */
static bool is_stored(const RowTiling *w, const Node *n) {
  return n->nout != 1 || graph_val(w->g, n->out[0])->home == HOME_buffer || stripe_reduces(w->g, n);
}

static void use(RowTiling *w, Val v, u32 at) {
  if (v && (!w->last[v] || w->last[v] < at)) w->last[v] = at;
}

static void use_block(RowTiling *w, RegionId region, u32 at) {
  const GraphRegion *b = &w->g->region.at[region];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(w->g, b->node.at[i]);
    w->home[b->node.at[i]] = region;
    for (u32 k = 0; k < n->nin; k++) use(w, n->in[k], at);
    for (u32 k = 0; k < n->nregion; k++) use_block(w, n->region[k], at);
  }
  for (u32 i = 0; i < b->ret.n; i++) use(w, b->ret.at[i], at);
}

static void find_uses(RowTiling *w) {
  const GraphRegion *b = &w->g->region.at[1];
  for (u32 i = 0; i < w->n; i++) {
    const Node *n = graph_node(w->g, b->node.at[i]);
    w->at[b->node.at[i]] = i;
    w->home[b->node.at[i]] = 1;
    for (u32 k = 0; k < n->nin; k++) use(w, n->in[k], i);
    for (u32 k = 0; k < n->nregion; k++) use_block(w, n->region[k], i);
  }
  for (u32 i = 0; i < b->ret.n; i++) w->last[b->ret.at[i]] = UINT32_MAX;
  for (Val v = 1; v < w->g->val.n; v++) w->until[v] = w->last[v] < w->n ? w->last[v] : w->n - 1;
  for (u32 i = w->n; i-- > 0;) { /* inline values are computed where they are read */
    const Node *n = graph_node(w->g, b->node.at[i]);
    if (is_stored(w, n)) continue;
    for (u32 k = 0; k < n->nin; k++)
      if (n->in[k] && w->until[n->in[k]] < w->until[n->out[0]])
        w->until[n->in[k]] = w->until[n->out[0]];
  }
}

/* ---- memory ---- */

static u64 bytes_of(const RowTiling *w, Val v) {
  const Type *t = graph_type(w->g, v);
  u32 lanes = w->u->target->lanes;
  u64 n = t->kind == TY_tensor ? dtype_bytes(t->dt) : 0;
  for (u32 i = 0; i < t->rank; i++) {
    i64 hi = extent_bound(w->g->dims, t->dim[i]);
    if (i == 1 && lanes >= 4 && t->rank > 3 && hi >= 4) hi = (hi + lanes - 1) / lanes * lanes;
    if (!size_mul(n, (u64)hi, &n)) return DIM_MAX;
  }
  return n < (u64)DIM_MAX ? n : (u64)DIM_MAX;
}

/* Does it compute each channel of its result from that channel only? */
static bool is_channelwise(Graph *g, const Node *n) {
  u32 count = 0;
  const Dim *axes = node_list(n, AT_axes, &count);
  if (op_info[n->op].kind == OK_REDUCE && axes) {
    while (count && axes[count - 1] > 1) count--;
    return !count;
  }
  if (op_info[n->op].kind == OK_WINDOW) return op_is(n->op, OF_REDUCES);
  return n->op == OP_conv && node_int(n, AT_group, 1) > 1 && graph_type(g, n->in[1])->dim[1] == 1;
}

/* Is the value passed on channel by channel? See loop_fuse.c. */
static bool is_merged(const RowTiling *w, Val v) {
  Graph *g = w->g;
  const Type *t = graph_type(g, v);
  if (w->u->target->lanes >= 4 || w->uses[v] != 1 || w->last[v] >= w->n || t->rank < 3)
    return false;
  NodeId def = graph_val(g, v)->def;
  const Node *user = graph_node(g, g->region.at[1].node.at[w->last[v]]);
  while (user->op < OP_SCALARS && graph_val(g, user->out[0])->home == HOME_inline &&
         w->uses[user->out[0]] == 1) /* int8 converted to integers */
    user = graph_node(g, g->region.at[1].node.at[w->last[user->out[0]]]);
  const Node *n = def ? graph_node(g, def) : NULL;
  while (n && n->op < OP_SCALARS) { /* down to the reduction of its group */
    def = 0;
    for (u32 i = 0; i < n->nin; i++)
      if (n->in[i] && graph_val(g, n->in[i])->home != HOME_buffer)
        def = graph_val(g, n->in[i])->def;
    n = def ? graph_node(g, def) : NULL;
  }
  return n && n->op == OP_conv && is_channelwise(g, user) && t->dim[0] == 1;
}

static bool joins(const RowTiling *w, const Node *concat, u32 k) {
  Val v = concat->in[k];
  const Value *x = graph_val(w->g, v);
  if (!x->def || w->uses[v] != 1 || x->home != HOME_buffer) return false;
  const Node *n = graph_node(w->g, x->def);
  return n->op < OP_SCALARS || op_info[n->op].kind == OK_CONTRACT || is_channelwise(w->g, n);
}

static void find_value_mem(RowTiling *w) {
  Graph *g = w->g;
  const GraphRegion *b = &g->region.at[1];
  for (u32 i = 0; i < w->n; i++) {
    const Node *n = graph_node(g, b->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      Val v = n->out[k];
      if (n->op == OP_const || graph_val(g, v)->home != HOME_buffer) continue;
      if (op_is(n->op, OF_ALIAS)) {
        w->in[v] = w->in[n->in[0]];
        continue;
      }
      w->in[v] = v;
      w->room[v] = (ValueMem){bytes_of(w, v), i, i};
      if (w->last[v] == UINT32_MAX) w->room[v].size = 0; /* memory of the caller */
      if (is_merged(w, v))
        w->saved[v] = w->room[v].size - w->room[v].size / (u64)graph_type(g, v)->dim[1];
    }
    for (u32 k = 0; n->op == OP_concat && w->in[n->out[0]] && k < n->nin; k++)
      if (joins(w, n, k)) w->in[n->in[k]] = n->out[0];
  }
  for (Val v = 1; v < g->val.n; v++) {
    NodeId def = graph_val(g, v)->def;
    if (!w->in[v] || !def || w->home[def] != 1) continue;
    ValueMem *r = &w->room[w->in[v]];
    u32 last = w->until[v];
    if (w->at[def] < r->first) r->first = w->at[def];
    if (last > r->last) r->last = last;
  }
}

static void find_live(RowTiling *w) {
  u64 *ends = NEWS(w->a, u64, w->n + 2), live = 0;
  for (Val v = 1; v < w->g->val.n; v++) {
    if (w->in[v] != v) continue;
    w->live[w->room[v].first] += w->room[v].size;
    ends[w->room[v].last + 1] += w->room[v].size;
  }
  for (u32 i = 0; i < w->n; i++) {
    w->across[i] = live - ends[i];
    live = w->live[i] = w->across[i] + w->live[i];
  }
}

/* ---- cuts ---- */

/* Views of parameters and constants may be needed anywhere. */
static bool is_free(Graph *g, const Node *n) {
  while (node_is_view(n)) {
    NodeId def = graph_val(g, n->in[0])->def;
    if (!def) return true;
    n = graph_node(g, def);
  }
  return op_info[n->op].kind == OK_LEAF;
}

static void find_cuts(RowTiling *w) {
  u32 reach = 0; /* position after the last use of the inline values so far */
  w->cut = NEWS(w->a, u32, w->n + 2);
  for (u32 i = 0; i < w->n; i++) {
    const Node *n = graph_node(w->g, w->g->region.at[1].node.at[i]);
    if (i >= reach) w->cut[w->ncut++] = i;
    bool none = !is_stored(w, n);
    if (none && !is_free(w->g, n) && w->last[n->out[0]] < w->n && w->last[n->out[0]] >= reach)
      reach = w->last[n->out[0]] + 1;
  }
  w->cut[w->ncut] = w->n;
}

/* ---- memory of a stripe group ---- */

/* Bytes live throughout the group: its inputs, values live across it, and its results. */
static u64 bytes_outside(const RowTiling *w, const StripeGroup *r) {
  u64 all = w->across[r->from];
  for (u32 i = r->from; i < r->to; i++) {
    const Node *n = graph_node(w->g, w->g->region.at[1].node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      Val v = w->in[n->out[k]];
      if (v && w->room[v].first == i && w->room[v].last >= r->to) all += w->room[v].size;
    }
  }
  return all;
}

typedef struct RowTilingCost {
  u64 row;         /* bytes per row; 0: it has no memory */
  u32 first, last; /* positions - from, of values in it and their users */
} RowTilingCost;

static RowTilingCost *find_needs(const RowTiling *w, const StripeGroup *r, Arena *a) {
  u32 count = r->to - r->from;
  RowTilingCost *need = NEWS(a, RowTilingCost, count);
  for (u32 i = 0; i < count; i++) {
    const StripeNode *b = &r->node[i];
    Val v = b->id ? graph_node(w->g, b->id)->out[0] : 0;
    if (!v || !w->in[v]) continue;
    const StripeNode *home = stripe_node_of(r, w->in[v]);
    RowTilingCost *n = home ? &need[home - r->node] : &need[i];
    u32 last = w->until[v] < r->to ? w->until[v] - r->from : count - 1;
    if (!n->last) n->first = i;
    if (last > n->last) n->last = last;
    if (!home || home == b) n->row = bytes_of(w, v) / (u64)b->rows;
    if (b->reduces || (b->result && !b->inner)) n->row = 0; /* written directly to the result */
  }
  return need;
}

/* Peak bytes that the stripes hold. */
static u64 bytes_inside(const StripeGroup *r, const RowTilingCost *need, Arena *a) {
  u32 count = r->to - r->from;
  u64 most = 0;
  i64 *step = NEWS(a, i64, count + 1);
  for (u32 stripe = 1; stripe <= r->stripes; stripe++) {
    i64 live = 0;
    memset(step, 0, (count + 1) * sizeof *step);
    for (u32 i = 0; i < count; i++) {
      const StripeNode *b = &r->node[i];
      if (!b->id || !need[i].row) continue;
      RowRange out = stripe_new_rows(b, stripe), before = stripe_kept_rows(b, stripe - 1),
               after = stripe_kept_rows(b, stripe);
      i64 row = (i64)need[i].row, old = (before.to - before.from) * row;
      i64 held = old + (out.to - out.from) * row, kept = (after.to - after.from) * row;
      live += old;
      step[need[i].first] += held;
      step[i] += kept;
      step[i + 1] -= old;
      step[need[i].last + 1 < count ? need[i].last + 1 : count] -= held;
    }
    for (u32 i = 0; i < count; i++) {
      live += step[i];
      if (live > 0 && (u64)live > most) most = (u64)live;
    }
  }
  return most;
}

static u32 fewest_rows(const StripeGroup *r, u32 *parts) {
  i64 least = INT64_MAX;
  *parts = 0;
  for (u32 i = 0; i < r->to - r->from; i++) {
    const StripeNode *b = &r->node[i];
    *parts += b->id && !b->again;
    if (b->id && b->result && b->rows < least) least = b->rows;
  }
  return least < UINT32_MAX ? (u32)least : 0;
}

/* Finds the smallest number of stripes that stays within `want`, or the one with the lowest
 * peak. */
static TilingPlan best_stripes(const RowTiling *w, StripeGroup *r, u64 want, Arena *a) {
  TilingPlan best = {.peak = UINT64_MAX};
  u64 fixed = bytes_outside(w, r);
  u32 parts, rows = fewest_rows(r, &parts);
  const RowTilingCost *need = find_needs(w, r, a);
  for (u32 i = 0; i < sizeof ladder / sizeof *ladder && best.peak > want; i++) {
    u32 stripes = ladder[i];
    if (stripes > rows || (u64)stripes * (r->to - r->from) > TILING_NODES) break;
    Mark m = arena_mark(a);
    bool ok = stripe_group_rows(r, stripes, a);
    u64 peak = ok ? fixed + bytes_inside(r, need, a) : UINT64_MAX;
    arena_rewind(a, m);
    if (peak < best.peak) best = (TilingPlan){peak, (u64)(stripes - 1) * parts, 0, stripes};
  }
  return best;
}

/* Peak bytes between two positions without stripes. */
static u64 peak_between(const RowTiling *w, u32 from, u32 to) {
  u64 most = 0;
  Mark m = arena_mark(w->a);
  u64 *less = NEWS(w->a, u64, to - from + 1);
  for (u32 i = from; i < to; i++) {
    const Node *n = graph_node(w->g, w->g->region.at[1].node.at[i]);
    Val v = n->nout == 1 ? n->out[0] : 0;
    if (!v || !w->saved[v] || w->in[v] != v || w->room[v].last >= to) continue;
    for (u32 k = w->room[v].first; k <= w->room[v].last; k++)
      if (k >= from) less[k - from] += w->saved[v];
  }
  for (u32 i = from; i < to; i++)
    if (w->live[i] > most + less[i - from]) most = w->live[i] - less[i - from];
  arena_rewind(w->a, m);
  return most;
}

static StripeGroup group_between(const RowTiling *w, u32 from, u32 to) {
  return (StripeGroup){.g = w->g,
                       .from = w->cut[from],
                       .to = w->cut[to],
                       .resumes = w->u->target->lanes == 1,
                       .limit = w->g->node.n,
                       .at = w->at,
                       .home = w->home,
                       .last = w->last};
}

/* True if no group can contain the step after this cut. */
static bool is_wall(const RowTiling *w, u32 from) {
  for (u32 i = w->cut[from]; i < w->cut[from + 1]; i++) {
    const Node *n = graph_node(w->g, w->g->region.at[1].node.at[i]);
    if (op_info[n->op].kind != OK_LEAF && !node_is_view(n) && !stripe_can_tile(w->g, n))
      return true;
  }
  return false;
}

static void offer(TilingPlan *to, const TilingPlan *before, u32 from, TilingPlan step, u64 want) {
  TilingPlan x = {step.peak > before->peak ? step.peak : before->peak,
                  before->kernels + step.kernels, from, step.stripes};
  if (x.peak < want) x.peak = want;
  if (x.peak != to->peak ? x.peak < to->peak : x.kernels < to->kernels) *to = x;
}

/* Adds the run between two cuts as a choice, computed in stripes, if that is possible. */
static void offer_stripes(const RowTiling *w, TilingPlan *way, u32 from, u32 to, u64 want) {
  Mark m = arena_mark(w->a);
  StripeGroup r = group_between(w, from, to);
  if (stripe_group_open(&r, w->a)) {
    TilingPlan step = best_stripes(w, &r, want, w->a);
    if (step.stripes) offer(&way[to], &way[from], from, step, want);
  }
  arena_rewind(w->a, m);
}

/* way: by cut. */
static void choose(const RowTiling *w, u64 want, TilingPlan *way) {
  u32 steps = w->ncut > TILING_CUTS ? TILING_STEPS * TILING_CUTS / w->ncut : TILING_STEPS;
  if (steps < TILING_MERGE) steps = TILING_MERGE;
  way[0] = (TilingPlan){want, 0, 0, 0};
  for (u32 to = 1; to <= w->ncut; to++) {
    bool wall = false;
    way[to] = (TilingPlan){.peak = UINT64_MAX};
    for (u32 from = to; from-- > 0 && to - from <= steps;) {
      u64 peak = peak_between(w, w->cut[from], w->cut[to]);
      if (to - from <= TILING_MERGE)
        offer(&way[to], &way[from], from, (TilingPlan){.peak = peak}, want);
      wall = wall || is_wall(w, from);
      if (wall && to - from >= TILING_MERGE) break;
      if (wall || peak <= want || way[from].peak > way[to].peak) continue;
      offer_stripes(w, way, from, to, want);
    }
  }
}

static RowTiling survey(PassCtx *u) {
  Graph *g = u->g;
  Arena *a = &u->c->scratch;
  RowTiling w = {.g = g, .a = a, .u = u, .n = g->region.at[1].node.n};
  w.at = NEWS(a, u32, g->node.n);
  w.home = NEWS(a, RegionId, g->node.n);
  w.last = NEWS(a, u32, g->val.n);
  w.until = NEWS(a, u32, g->val.n);
  w.uses = NEWS(a, u32, g->val.n);
  w.in = NEWS(a, Val, g->val.n);
  w.room = NEWS(a, ValueMem, g->val.n);
  w.saved = NEWS(a, u64, g->val.n);
  w.live = NEWS(a, u64, w.n + 1);
  w.across = NEWS(a, u64, w.n + 1);
  graph_use_counts(g, w.uses);
  find_uses(&w);
  find_value_mem(&w);
  find_live(&w);
  find_cuts(&w);
  return w;
}

/* 'conv_0' to 'conv_9' in 14 */
static void describe(Graph *g, const StripeGroup *r, StrBuf *t) {
  NodeId first = 0, last = 0;
  for (u32 i = 0; i < r->to - r->from; i++) {
    if (!r->node[i].id) continue;
    last = r->node[i].id;
    if (!first) first = last;
  }
  const NodeId ends[2] = {first, last};
  for (u32 i = 0; i < 2; i++) {
    const Loc *l = &graph_node(g, ends[i])->loc;
    sb_puts(t, i ? " to " : t->n ? ", " : "");
    if (l->node)
      sb_fmt(t, "'%s'", show(g->c, l->node));
    else if (l->index >= 0)
      sb_fmt(t, "node %d", l->index);
    else
      sb_puts(t, op_info[graph_node(g, ends[i])->op].name);
  }
  sb_fmt(t, " in %u", r->stripes);
}

void row_tiling(PassCtx *u) {
  if (!u->ram || !u->g->region.at[1].node.n) return;
  RowTiling w = survey(u);
  TilingPlan *way = NEWS(w.a, TilingPlan, w.ncut + 1);
  choose(&w, u->ram, way);
  u64 least = way[w.ncut].peak;
  if (u->ram == TILING_LOW_RAM) choose(&w, least + least / TILING_SLACK, way);
  StripeGroup *region = NEWS(w.a, StripeGroup, w.ncut + 1);
  u32 count = 0, k = w.ncut + 1;
  for (u32 to = w.ncut; to; to = way[to].from) {
    if (!way[to].stripes) continue;
    region[--k] = group_between(&w, way[to].from, to);
    count++;
    stripe_group_open(&region[k], w.a);
    stripe_group_rows(&region[k], way[to].stripes, w.a);
  }
  StrBuf text = sb_new(&u->c->keep);
  for (u32 i = 0; i < count && i < TILING_SHOWN; i++) describe(u->g, &region[k + i], &text);
  if (count > TILING_SHOWN) sb_fmt(&text, " and %u more", count - TILING_SHOWN);
  if (count) u->tiled = sb_cstr(&text);
  stripe_split(u->g, region + k, count);
  if (count) u->g->left = LEFT_dead;
  for (Val v = 1; v < u->g->val.n; v++)
    graph_val(u->g, v)->home = HOME_buffer; /* fuse runs again later */
  u->g->ordered = true;
}
