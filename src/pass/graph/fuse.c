/* fuse.c: decides which values never become buffers.
 *
 * In: a graph. Out: the same graph, each value marked (Value.home): a buffer of its own, computed
 * where it is used (inline), or left in the accumulator of the node that folds it and finished
 * there by its users (epilogue). A node that is neither inline nor epilogue is the root of a group;
 * the group is everything inline or epilogue below it and becomes one kernel.
 *
 * A value that takes a step or two may be used several times, if all its uses are in one group: x
 * and its activation end in the epilogue of the sum x comes from.
 *
 *   inline: MAP, and VIEW without reordering of memory (transpose, slice, broadcast). Used once, or
 * a view, which costs nothing to repeat. The user must read its operand through an index: MAP,
 * REDUCE, VIEW, JOIN always; CONTRACT and WINDOW read an element many times, so only views go
 * there, and bytes as integers (node_is_decode): a convolution of bytes reads bytes.
 *
 *   epilogue: REDUCE, CONTRACT, WINDOW used once, by a MAP of the same shape: bias, residual,
 * activation, requantise.
 *
 * Values never leave their block: inside a loop they would be computed again in every iteration.
 *
 * needs: use counts, dead code removed  keeps: results bit for bit  breaks: nothing; marks are void
 * after an edit
 */
#include <string.h>
#include "pass/pass.h"

#define SEVERAL ((Val)-1) /* sink of a value whose uses end in different places */

enum {
  FUSE_NODES = 48, /* of one group: expressions stay readable and compile fast */
  ROW = 4,         /* shortest row that is gathered in place */
  CHEAP = 2,       /* operations that are rather repeated within a group than stored */
  SHOWN = 3,       /* users that a line of --explain names */
};

typedef struct Fuse {
  Graph *g;
  u32 *uses;
  NodeId *user;         /* by value: its last user */
  const char **refused; /* by value: why some user needs it in memory */
  RegionId *blk;        /* by node */
  u32 *size;            /* by value: nodes that computing it in place would take */
  Val *epilogue;        /* by value: the folded value whose accumulator its group has; 0: none */
  Val *sink;       /* by value: where all its uses end, at the latest; itself: not in one place */
  u32 *weight;     /* by value: operations that repeating it would take */
  bool *scattered; /* by value: its uses turned out to end in several groups */
  bool *hot;       /* by value: bytes as integers that a contraction reads */
  Val *byte;       /* by value: the byte in blocks of channels that it is a function of; 0: none */
  bool *function;  /* by value: that function is not arithmetic alone */
  Val *root;       /* by value: of the group that its last use is in, of those seen in this round */
  u32 *seen;       /* by value: that round */
  u32 round;
  bool check; /* marks are given: they may not claim more than the rules allow */
} Fuse;

static bool same_shape(Graph *g, Val a, Val b) {
  return type_has_shape(graph_type(g, a), graph_type(g, b)->dim, graph_type(g, b)->rank);
}

static OpKind kind_of(const Node *n) {
  return op_info[n->op].kind;
}

/* A gather of rows: its index is found once for a row, so that reading through it costs nothing. */
static bool is_rows(Graph *g, const Node *n) {
  i64 lo, hi;
  if (n->op != OP_gather) return false;
  const Type *x = graph_type(g, n->in[0]);
  u32 axis = (u32)node_int(n, AT_axis, 0);
  dim_bounds(g->dims, x->dim[axis], &lo, &hi);
  Dim row = x->dim[x->rank - 1];
  return axis + 1 < x->rank && lo > 0 && dim_is_const(row) && row >= ROW;
}

static bool is_fold(const Node *n) {
  return op_is(n->op, OF_REDUCES);
}

/* Can u take operand v as an expression? */
static const char *refuses(const Fuse *f, const Node *v, const Node *u) {
  bool decode = node_is_decode(f->g, v);
  if (u->nout == 1 && f->hot[u->out[0]] && !decode)
    return "its user reads every element many times";
  switch (kind_of(u)) {
  case OK_MAP:
  case OK_VIEW: return u->op == OP_reshape ? "a reshape needs its operand in memory" : NULL;
  case OK_REDUCE:
    if (!is_fold(u)) return "its user searches the operand";
    return u->op == OP_resume_sum && u->in[1] == v->out[0] ? "its user goes on from it" : NULL;
  case OK_GATHER: return "its user picks from the operand";
  case OK_JOIN: return NULL;
  case OK_CONTRACT:
  case OK_WINDOW:
    if (!is_fold(u)) return "its user searches the operand";
    if (decode && kind_of(u) == OK_CONTRACT) return NULL;
    return node_is_view(v) ? NULL : "its user reads every element many times";
  default: return "its user needs the operand in memory";
  }
}

/* Bytes as integers, down to the bytes, where a contraction reads them. */
static void find_hot(Fuse *f, const Node *n) {
  Graph *g = f->g;
  for (u32 i = 0; kind_of(n) == OK_CONTRACT && i < n->nin; i++)
    for (Val v = n->in[i]; graph_val(g, v)->def;) {
      const Node *def = graph_node(g, graph_val(g, v)->def);
      if (!node_is_decode(g, def)) break;
      f->hot[v] = true;
      v = def->in[0];
    }
}

static void count_users(Fuse *f) {
  Graph *g = f->g;
  graph_use_counts(g, f->uses);
  for (RegionId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) {
      NodeId id = g->blk.at[b].node.at[i];
      f->blk[id] = b;
      find_hot(f, graph_node(g, id)); /* those that an edit has left out read nothing */
    }
  for (RegionId b = 1; b < g->blk.n; b++) {
    const GraphRegion *k = &g->blk.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++) {
        Val v = n->in[j];
        NodeId def = graph_val(g, v)->def;
        f->user[v] = k->node.at[i];
        if (def && f->blk[def] != b)
          f->refused[v] = "used inside another block";
        else if (def && !f->refused[v])
          f->refused[v] = refuses(f, graph_node(g, def), n);
      }
    }
    for (u32 i = 0; i < k->ret.n; i++) f->refused[k->ret.at[i]] = "a result of its block";
  }
}

/* ---- several uses in one group ---- */

/* Backwards: a value whose users, all maps of its shape, end in one place, ends there too. */
static void find_sinks(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->blk.at[b];
  for (u32 i = k->node.n; i--;) {
    const Node *n = graph_node(g, k->node.at[i]);
    for (u32 j = 0; j < n->nout; j++) {
      Val v = n->out[j];
      bool one = f->sink[v] && f->sink[v] != SEVERAL && !f->refused[v] && n->nout == 1;
      if (!one) f->sink[v] = v;
    }
    for (u32 j = 0; j < n->nin; j++) {
      Val v = n->in[j], to = SEVERAL;
      if (!v) continue;
      if (op_is_elementwise(n->op) && same_shape(g, v, n->out[0])) to = f->sink[n->out[0]];
      f->sink[v] = !f->sink[v] || f->sink[v] == to ? to : SEVERAL;
    }
  }
}

/* Functions of one byte are looked up (tile_lut.c) if the byte is in memory, and narrow results
 * are what is looked up. Blocks of channels: there are vectors, and many channels. */
static void find_bytes(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->blk.at[b];
  for (u32 i = 0; i < k->node.n; i++) {
    const Node *n = graph_node(g, k->node.at[i]);
    if (!op_is_elementwise(n->op)) continue;
    Val of = 0, v = n->out[0];
    bool one = true, function = false;
    for (u32 j = 0; j < n->nin; j++) {
      Val x = n->in[j], from = f->byte[x];
      const Tensor *t = graph_const(g, x);
      const Layout *y = graph_val(g, x)->layout;
      if (t && t->n == 1) continue;
      if (!from && dtype_bytes(graph_type(g, x)->dt) == 1 && y && y->block) from = x;
      one = one && from && (!of || of == from) && same_shape(g, x, v);
      function = function || f->function[x] || scalar_is_fast(n->op, graph_type(g, x)->dt);
      of = from;
    }
    if (!one || !of) continue;
    f->byte[v] = of;
    f->function[v] = function;
    if (function && dtype_bytes(graph_type(g, v)->dt) <= 2)
      f->refused[of] = "its function is looked up";
  }
}

/* Is v one of the first steps of a function that is looked up, however often they are used? */
static bool is_looked_up(const Fuse *f, Val v) {
  Val to = f->sink[v];
  return f->byte[v] && !f->function[v] && f->function[to] && f->byte[to] == f->byte[v];
}

static u32 weight_of(const Fuse *f, const Node *n) {
  u32 w = 0;
  if (is_fold(n)) return 0; /* it lies in a register */
  if (!op_is(n->op, OF_CHEAP) && !node_is_decode(f->g, n)) return CHEAP + 1;
  for (u32 i = 0; i < n->nin; i++)
    if (graph_val(f->g, n->in[i])->home != HOME_buffer) w += f->weight[n->in[i]];
  return 1 + w;
}

/* May v, used several times, be computed again for every use? All of them are in one group. */
static bool is_shared(const Fuse *f, Val v) {
  return f->sink[v] != v && !f->scattered[v] && (f->weight[v] <= CHEAP || is_looked_up(f, v));
}

/* The root of the group that v is computed in. */
static Val root_of(const Fuse *f, Val v) {
  while (graph_val(f->g, v)->home != HOME_buffer) v = graph_node(f->g, f->user[v])->out[0];
  return v;
}

/* Decisions further down may have parted the uses of a value. Then it gets a buffer after all. */
static bool find_scattered(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->blk.at[b];
  bool any = false;
  f->round++;
  for (u32 i = 0; i < k->node.n; i++) {
    const Node *n = graph_node(g, k->node.at[i]);
    for (u32 j = 0; j < n->nin; j++) {
      Val v = n->in[j];
      if (!v || f->uses[v] < 2 || f->sink[v] == v || f->scattered[v] || n->nout != 1) continue;
      if (graph_val(g, v)->home == HOME_buffer) continue;
      if (!f->epilogue[v] && node_is_view(graph_node(g, graph_val(g, v)->def)))
        continue; /* anywhere */
      Val r = root_of(f, n->out[0]);
      f->scattered[v] = f->seen[v] == f->round && f->root[v] != r;
      any = any || f->scattered[v];
      f->seen[v] = f->round;
      f->root[v] = r;
    }
  }
  return any;
}

/* Why v cannot be computed where it is used; NULL if it can. */
static const char *not_inline(const Fuse *f, Val v, const Node *n) {
  if (!node_is_view(n) && kind_of(n) != OK_MAP && !is_rows(f->g, n))
    return "not an elementwise operation or a view";
  if (n->op == OP_bitcast) return "bits are read from memory";
  if (node_is_view(n) && graph_val(f->g, v)->layout) return "laid out for its users";
  if (n->op == OP_slice && node_int(n, AT_keep, 0)) return "kept, so that its operand may go";
  if (!f->uses[v]) return "not used";
  if (f->uses[v] > 1 && !node_is_view(n) && !f->hot[v] && !is_shared(f, v))
    return "used more than once";
  if (f->size[v] > FUSE_NODES) return "the group would be too large";
  return f->refused[v];
}

static const char *not_epilogue(const Fuse *f, Val v, const Node *n) {
  Graph *g = f->g;
  if (!is_fold(n)) return "not a reduction or contraction";
  if (!f->uses[v]) return "not used";
  if (f->uses[v] > 1 && !is_shared(f, v)) return "used more than once";
  if (f->refused[v]) return f->refused[v];
  const Node *u = graph_node(g, f->user[v]);
  if (!op_is_elementwise(u->op)) return "its user is not elementwise";
  if (!same_shape(g, v, u->out[0])) return "its user has another shape";
  return NULL;
}

/* A value with an accumulator below it can only go on inside maps of the same shape. */
static const char *not_on(const Fuse *f, Val v, const Node *n) {
  const char *why = not_inline(f, v, n);
  if (why) return why;
  if (f->uses[v] > 1 && !is_shared(f, v)) return "used more than once"; /* a view */
  const Node *u = graph_node(f->g, f->user[v]);
  if (kind_of(u) != OK_MAP) return "a finished sum is not computed again where its user reads it";
  if (!same_shape(f->g, v, u->out[0]))
    return "its user has another shape, and would compute the sum again";
  return NULL;
}

/* conv 'conv1'; where the model has no name: conv (node 3, Conv) */
static void put_node(const Fuse *f, StrBuf *why, const Node *n) {
  sb_fmt(why, "%s", op_info[n->op].name);
  if (n->loc.node)
    sb_fmt(why, " '%s'", show(f->g->c, n->loc.node));
  else if (n->loc.op && n->loc.index >= 0)
    sb_fmt(why, " (node %d, %s)", n->loc.index, show(f->g->c, n->loc.op));
}

static bool reads_value(const Node *n, Val v) {
  for (u32 i = 0; i < n->nin; i++)
    if (n->in[i] == v) return true;
  return false;
}

/* A line of `opt --explain`: max 'relu1' -> contract 'conv2': why the first is not computed where
 * the second reads it. */
static void explain(const Fuse *f, StrBuf *why, const Node *n, const char *no) {
  Graph *g = f->g;
  Val v = n->out[0];
  u32 found = 0;
  put_node(f, why, n);
  for (RegionId b = 1; b < g->blk.n; b++) {
    const GraphRegion *k = &g->blk.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *u = graph_node(g, k->node.at[i]);
      if (!reads_value(u, v) || found++ >= SHOWN) continue;
      sb_puts(why, found == 1 ? " -> " : ", ");
      put_node(f, why, u);
    }
  }
  if (found > SHOWN) sb_fmt(why, " and %u more", found - SHOWN);
  sb_fmt(why, "%s: %s\n", found ? "" : " -> return", no);
}

/* Operands that would bring a second accumulator into the group of n keep their buffer. */
static void settle_operands(Fuse *f, const Node *n, Val out, StrBuf *why) {
  for (u32 i = 0; i < n->nin; i++) {
    Value *v = graph_val(f->g, n->in[i]);
    if (v->home == HOME_buffer) continue;
    f->size[out] += f->size[n->in[i]];
    if (!f->epilogue[n->in[i]]) continue;
    bool two = f->epilogue[out] && f->epilogue[out] != f->epilogue[n->in[i]];
    if (two && f->check) fail(f->g->c, ERR_input, n->loc, "two accumulators in one group");
    if (two) {
      f->scattered[n->in[i]] = f->uses[n->in[i]] > 1;
      v->home = HOME_buffer;
      if (why) explain(f, why, graph_node(f->g, v->def), "its user finishes another sum");
    }
    if (!two) f->epilogue[out] = f->epilogue[n->in[i]];
  }
}

static void visit(Fuse *f, NodeId id, StrBuf *why) {
  Graph *g = f->g;
  const Node *n = graph_node(g, id);
  if (n->nout != 1) return;
  Val v = n->out[0];
  f->size[v] = 1;
  f->epilogue[v] = 0;
  settle_operands(f, n, v, why);
  f->weight[v] = weight_of(f, n);
  const char *no = f->epilogue[v] ? not_on(f, v, n) : not_inline(f, v, n);
  Home home = no ? HOME_buffer : HOME_inline;
  if (no && is_fold(n)) {
    no = not_epilogue(f, v, n);
    if (!no) home = HOME_epilogue;
  }
  Value *x = graph_val(g, v);
  if (f->check && x->home != HOME_buffer && x->home != home)
    fail(g->c, ERR_input, n->loc, "%s cannot be %s: %s", op_info[n->op].name, home_name[x->home],
         no ? no : "wrong kind");
  if (!f->check) x->home = home;
  if (x->home == HOME_epilogue) f->epilogue[v] = v;
  bool counts = kind_of(n) != OK_LEAF && n->op != OP_reshape; /* a reshape needs no code */
  if (why && no && counts && f->uses[v]) explain(f, why, n, no);
}

static void decide(Fuse *f, StrBuf *why) {
  Graph *g = f->g;
  for (Val v = 1; v < g->val.n && !f->check; v++) graph_val(g, v)->home = HOME_buffer;
  for (RegionId b = 1; b < g->blk.n; b++)
    for (u32 i = 0; i < g->blk.at[b].node.n; i++) visit(f, g->blk.at[b].node.at[i], why);
}

static void run(Graph *g, StrBuf *why, bool check) {
  Arena *a = &g->c->scratch;
  Fuse f = {.g = g, .check = check};
  f.uses = NEWS(a, u32, g->val.n);
  f.user = NEWS(a, NodeId, g->val.n);
  f.refused = NEWS(a, const char *, g->val.n);
  f.blk = NEWS(a, RegionId, g->node.n);
  f.size = NEWS(a, u32, g->val.n);
  f.epilogue = NEWS(a, Val, g->val.n);
  f.sink = NEWS(a, Val, g->val.n);
  f.weight = NEWS(a, u32, g->val.n);
  f.scattered = NEWS(a, bool, g->val.n);
  f.hot = NEWS(a, bool, g->val.n);
  f.byte = NEWS(a, Val, g->val.n);
  f.function = NEWS(a, bool, g->val.n);
  f.root = NEWS(a, Val, g->val.n);
  f.seen = NEWS(a, u32, g->val.n);
  count_users(&f);
  for (RegionId b = 1; b < g->blk.n; b++) find_bytes(&f, b);
  for (RegionId b = 1; b < g->blk.n; b++) find_sinks(&f, b);
  for (bool again = true; again;) { /* every time at least one value more is scattered */
    StrBuf said = why ? sb_new(a) : (StrBuf){0};
    decide(&f, why ? &said : NULL);
    again = false;
    for (RegionId b = 1; b < g->blk.n; b++) again = find_scattered(&f, b) || again;
    if (again && check) fail(g->c, ERR_input, LOC_NONE, "a sum is finished in two groups");
    if (why && !again) sb_put(why, said.at, said.n);
  }
}

void fuse(Graph *g) {
  run(g, NULL, false);
}
void fuse_explain(Graph *g, StrBuf *why) {
  StrBuf reasons = sb_new(&g->c->scratch);
  run(g, &reasons, false);
  group_list(g, why, "");
  sb_put(why, reasons.at, reasons.n);
}
void fuse_check(Graph *g) {
  run(g, NULL, true);
}
