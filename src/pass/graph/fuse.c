/* fuse.c: decides which values are stored in buffers.
 *
 * In: a graph. Out: the same graph with Value.home set for every value:
 *
 *   buffer     the value is stored; its node is the root of a group
 *   inline     the value is computed where its user reads it
 *   epilogue   the value stays in an accumulator; elementwise nodes are applied to it before the
 *              store
 *
 * A group is a root and the nodes of the inline and epilogue values that it is computed from.
 * Lowering writes a kernel for each group.
 *
 * MAP, VIEW, JOIN, REDUCE, CONTRACT and WINDOW are structural kinds of operators (OpKind,
 * src/ir/ir.h).
 *
 * Inline values are results of MAP nodes, of views (node_is_view) and of gathers of whole rows. A
 * MAP, VIEW, JOIN or REDUCE inlines any of them. A CONTRACT or WINDOW may read an element many
 * times, so it inlines only views and cheap conversions (node_is_decode for CONTRACT,
 * node_is_widening for WINDOW). The functions refuses and not_inline list the exceptions.
 *
 * Epilogue values are results of REDUCE, CONTRACT and WINDOW nodes whose users are elementwise and
 * have the same shape. Typical elementwise nodes are bias, residual, activation and requantization.
 *
 * Views and the conversions that find_hot marks may have uses in several groups. Any other value
 * with several uses is stored, unless all uses are in one group and it is cheap. A value is cheap
 * if recomputing it takes at most CHEAP operations, or happens inside a lookup table. In SiLU, x *
 * sigmoid(x), the value x = conv + bias is used twice in one epilogue, so it needs no buffer.
 *
 * A value is never inlined into another region, because a loop body would compute it in every
 * iteration.
 *
 * needs: dead code removed  keeps: results bit for bit  breaks: nothing
 */
#include <string.h>
#include "pass/pass.h"

#define SEVERAL ((Val)-1) /* the uses of a value have no common sink; see Fuse.sink */

enum {
  FUSE_NODES = 48, /* maximum nodes of an inlined expression */
  ROW = 4,         /* minimum elements of a row for its gather to be inlined */
  CHEAP = 2,       /* maximum operations to compute a value again instead of storing it */
  SHOWN = 3,       /* maximum users named in a line of --explain */
};

typedef struct Fuse {
  Graph *g;
  u32 *uses;
  NodeId *user;         /* by value: last user */
  const char **refused; /* by value: why one of its users needs it in memory; NULL: none does */
  RegionId *region;     /* by node: its region */
  u32 *size;            /* by value: number of nodes of its expression, with inlined operands */
  Val *epilogue;        /* by value: the reduction in whose epilogue it is computed; 0: none */
  Val *sink;   /* by value: the one value to which all its uses lead, through elementwise nodes of
                  its shape; the value itself: there is none */
  u32 *weight; /* by value: number of operations to compute it again */
  bool *scattered; /* by value: it needs a buffer, because its uses are in several groups */
  bool *decoded;   /* by value: result of a conversion that find_hot marks */
  Val *byte; /* by value: x, if the value is an elementwise function of one int8 or uint8 value x
                in channel blocks; 0: none */
  bool *function; /* by value: this function of x calls exp, tanh or the like (scalar_is_fast) */
  Val *root;      /* by value: root of the group of one of its uses, if seen == round */
  u32 *seen;      /* by value: round in which `root` was set */
  u32 round;      /* number of the current call of find_scattered */
  bool check;     /* check Value.home instead of choosing it */
} Fuse;

static bool same_shape(Graph *g, Val a, Val b) {
  return type_has_shape(graph_type(g, a), graph_type(g, b)->dim, graph_type(g, b)->rank);
}

static OpKind kind_of(const Node *n) {
  return op_info[n->op].kind;
}

/* Is n a gather of whole rows? If it is inlined, its index is computed once per row. */
static bool is_rows(Graph *g, const Node *n) {
  i64 lo, hi;
  if (n->op != OP_gather) return false;
  const Type *x = graph_type(g, n->in[0]);
  u32 axis = (u32)node_int(n, AT_axis, 0);
  dim_bounds(g->dims, x->dim[axis], &lo, &hi);
  Dim row = x->dim[x->rank - 1];
  return axis + 1 < x->rank && lo > 0 && dim_is_const(row) && row >= ROW;
}

static bool is_reduction(const Node *n) {
  return op_is(n->op, OF_REDUCES);
}

/* Why node u needs the result of node v in memory; NULL: u does not. */
static const char *refuses(const Fuse *f, const Node *v, const Node *u) {
  bool decode = node_is_decode(f->g, v);
  if (u->nout == 1 && f->decoded[u->out[0]] && !decode)
    return "its user is a conversion for a contraction, which may read an element many times";
  switch (kind_of(u)) {
  case OK_MAP:
  case OK_VIEW: return u->op == OP_reshape ? "a reshape needs its operand in memory" : NULL;
  case OK_REDUCE:
    if (!is_reduction(u))
      return "its user (argmax, argmin or pool_argmax) needs its operand in memory";
    return u->op == OP_resume_sum && u->in[1] == v->out[0] ? "it is the initial value of its user"
                                                           : NULL;
  case OK_GATHER: return "a gather needs its operands in memory";
  case OK_JOIN: return NULL;
  case OK_CONTRACT:
  case OK_WINDOW:
    if (!is_reduction(u))
      return "its user (argmax, argmin or pool_argmax) needs its operand in memory";
    if (decode && kind_of(u) == OK_CONTRACT) return NULL;
    if (node_is_widening(f->g, v) && kind_of(u) == OK_WINDOW) return NULL;
    return node_is_view(v) ? NULL : "its user may read an element many times";
  default: return "its user needs the operand in memory";
  }
}

/* Marks cheap conversions (node_is_decode): casts from f16 and bf16 with the attribute `layer`, and
 * casts to i32 and subtractions of a zero point that end in a contraction. */
static void find_hot(Fuse *f, const Node *n) {
  Graph *g = f->g;
  if (node_is_decode(g, n) && graph_type(g, n->out[0])->dt == DT_f32) f->decoded[n->out[0]] = true;
  for (u32 i = 0; kind_of(n) == OK_CONTRACT && i < n->nin; i++)
    for (Val v = n->in[i]; graph_val(g, v)->def;) {
      const Node *def = graph_node(g, graph_val(g, v)->def);
      if (!node_is_decode(g, def)) break;
      f->decoded[v] = true;
      v = def->in[0];
    }
}

static void count_users(Fuse *f) {
  Graph *g = f->g;
  graph_use_counts(g, f->uses);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      NodeId id = g->region.at[b].node.at[i];
      f->region[id] = b;
      find_hot(f, graph_node(g, id));
    }
  for (RegionId b = 1; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++) {
        Val v = n->in[j];
        NodeId def = graph_val(g, v)->def;
        f->user[v] = k->node.at[i];
        if (def && f->region[def] != b)
          f->refused[v] = "used inside another region";
        else if (def && !f->refused[v])
          f->refused[v] = refuses(f, graph_node(g, def), n);
      }
    }
    for (u32 i = 0; i < k->ret.n; i++)
      f->refused[k->ret.at[i]] = "a result of the model or of its region";
  }
}

/* ---- several uses in one group ---- */

/* Sets f->sink, from the last node to the first. If all users of a value are elementwise, have its
 * shape and have the same sink, this is the sink of the value. */
static void find_sinks(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->region.at[b];
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

/* Finds elementwise functions that become lookup tables (tile_lut.c), and keeps their operands in
 * memory. The operand has one byte per element in channel blocks, the function calls exp, tanh or
 * the like, and its result has at most two bytes per element. */
static void find_bytes(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->region.at[b];
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
      f->refused[of] = "the operand of a lookup table";
  }
}

/* Is v computed inside a function that becomes a lookup table? Then it costs no run time. */
static bool is_looked_up(const Fuse *f, Val v) {
  Val to = f->sink[v];
  return f->byte[v] && !f->function[v] && f->function[to] && f->byte[to] == f->byte[v];
}

static u32 weight_of(const Fuse *f, const Node *n) {
  u32 w = 0;
  if (is_reduction(n)) return 0; /* the value is in a register */
  if (!op_is(n->op, OF_CHEAP) && !node_is_decode(f->g, n)) return CHEAP + 1;
  for (u32 i = 0; i < n->nin; i++)
    if (graph_val(f->g, n->in[i])->home != HOME_buffer) w += f->weight[n->in[i]];
  return 1 + w;
}

/* May each use of v compute it again? v must be cheap and have a sink. find_scattered checks later
 * that all uses are in one group. */
static bool is_shared(const Fuse *f, Val v) {
  return f->sink[v] != v && !f->scattered[v] && (f->weight[v] <= CHEAP || is_looked_up(f, v));
}

/* Returns the root of the group that computes v. */
static Val root_of(const Fuse *f, Val v) {
  while (graph_val(f->g, v)->home != HOME_buffer) v = graph_node(f->g, f->user[v])->out[0];
  return v;
}

/* Sets f->scattered for values whose uses are in different groups, so that `decide` gives them
 * buffers. Returns true if it found one. */
static bool find_scattered(Fuse *f, RegionId b) {
  Graph *g = f->g;
  const GraphRegion *k = &g->region.at[b];
  bool any = false;
  f->round++;
  for (u32 i = 0; i < k->node.n; i++) {
    const Node *n = graph_node(g, k->node.at[i]);
    for (u32 j = 0; j < n->nin; j++) {
      Val v = n->in[j];
      if (!v || f->uses[v] < 2 || f->sink[v] == v || f->scattered[v] || n->nout != 1) continue;
      if (graph_val(g, v)->home == HOME_buffer) continue;
      if (!f->epilogue[v] && node_is_view(graph_node(g, graph_val(g, v)->def)))
        continue; /* views may be inlined into several groups */
      Val r = root_of(f, n->out[0]);
      f->scattered[v] = f->seen[v] == f->round && f->root[v] != r;
      any = any || f->scattered[v];
      f->seen[v] = f->round;
      f->root[v] = r;
    }
  }
  return any;
}

/* Why v, the result of n, cannot be inlined; NULL: it can. */
static const char *not_inline(const Fuse *f, Val v, const Node *n) {
  if (!node_is_view(n) && kind_of(n) != OK_MAP && !is_rows(f->g, n))
    return "neither an elementwise operation nor a view";
  if (n->op == OP_bitcast) return "the result of a bitcast is always stored";
  if (node_is_view(n) && graph_val(f->g, v)->layout)
    return "stored in the layout that its users need";
  if (n->op == OP_slice && node_int(n, AT_keep, 0))
    return "stored, so that the memory of its operand can be reused";
  if (!f->uses[v]) return "not used";
  if (f->uses[v] > 1 && !node_is_view(n) && !f->decoded[v] && !is_shared(f, v))
    return "used more than once";
  if (f->size[v] > FUSE_NODES) return "the group would be too large";
  return f->refused[v];
}

/* Why v, the result of n, cannot stay in an accumulator; NULL: it can. */
static const char *not_epilogue(const Fuse *f, Val v, const Node *n) {
  Graph *g = f->g;
  if (!is_reduction(n)) return "neither a reduction nor a contraction";
  if (!f->uses[v]) return "not used";
  if (f->uses[v] > 1 && !is_shared(f, v)) return "used more than once";
  if (f->refused[v]) return f->refused[v];
  const Node *u = graph_node(g, f->user[v]);
  if (!op_is_elementwise(u->op)) return "its user is not elementwise";
  if (!same_shape(g, v, u->out[0])) return "its user has another shape";
  return NULL;
}

/* Why v, which is computed in an epilogue, cannot be inlined; NULL: it can. Its user must be a map
 * of the same shape, which then belongs to the same epilogue. */
static const char *not_inline_epilogue(const Fuse *f, Val v, const Node *n) {
  const char *why = not_inline(f, v, n);
  if (why) return why;
  if (f->uses[v] > 1 && !is_shared(f, v))
    return "used more than once"; /* each use of a view would repeat the reduction */
  const Node *u = graph_node(f->g, f->user[v]);
  if (kind_of(u) != OK_MAP) return "its user would compute the reduction again";
  if (!same_shape(f->g, v, u->out[0]))
    return "its user has another shape and would compute the reduction again";
  return NULL;
}

/* Prints conv 'conv1', or conv (node 3, Conv) if the node has no name. */
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

/* Prints a line of `opt --explain`, such as "max 'relu1' -> contract 'conv2': reason". */
static void explain(const Fuse *f, StrBuf *why, const Node *n, const char *why_not) {
  Graph *g = f->g;
  Val v = n->out[0];
  u32 found = 0;
  put_node(f, why, n);
  for (RegionId b = 1; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *u = graph_node(g, k->node.at[i]);
      if (!reads_value(u, v) || found++ >= SHOWN) continue;
      sb_puts(why, found == 1 ? " -> " : ", ");
      put_node(f, why, u);
    }
  }
  if (found > SHOWN) sb_fmt(why, " and %u more", found - SHOWN);
  sb_fmt(why, "%s: %s\n", found ? "" : " -> return", why_not);
}

/* Stores the narrowest value between v and the reduction in whose epilogue v is computed, so that
 * this epilogue ends there. The users of v compute v from the stored value. */
static void store_narrowest(Fuse *f, Val v) {
  Graph *g = f->g;
  Val best = v, from = v;
  while (from && graph_val(g, from)->home == HOME_inline && f->uses[from] == 1) {
    const Node *n = graph_node(g, graph_val(g, from)->def);
    Val next = 0;
    for (u32 i = 0; i < n->nin; i++)
      if (graph_val(g, n->in[i])->home != HOME_buffer && f->epilogue[n->in[i]]) next = n->in[i];
    if (!next || f->uses[next] > 1 || !same_shape(g, next, v)) break;
    from = next;
    u32 bytes = dtype_bytes(graph_type(g, from)->dt);
    if (bytes < dtype_bytes(graph_type(g, best)->dt)) best = from;
  }
  graph_val(g, best)->home = HOME_buffer;
  for (Val x = v; x != best;) {
    const Node *n = graph_node(g, graph_val(g, x)->def);
    Val next = 0;
    for (u32 i = 0; i < n->nin; i++)
      if (n->in[i] == best || f->epilogue[n->in[i]]) next = n->in[i];
    f->epilogue[x] = 0;
    x = next;
  }
}

/* Adds the sizes of the inlined operands of n to its own. If two operands are computed in epilogues
 * of different reductions, the epilogue of the second is cut: its narrowest value gets a buffer. */
static void settle_operands(Fuse *f, const Node *n, Val out, StrBuf *why) {
  for (u32 i = 0; i < n->nin; i++) {
    Value *v = graph_val(f->g, n->in[i]);
    if (v->home == HOME_buffer) continue;
    f->size[out] += f->size[n->in[i]];
    if (!f->epilogue[n->in[i]]) continue;
    bool two = f->epilogue[out] && f->epilogue[out] != f->epilogue[n->in[i]];
    if (two && f->check)
      fail(f->g->c, ERR_input, n->loc, "a group has two accumulators, expected one");
    if (two) {
      f->scattered[n->in[i]] = f->uses[n->in[i]] > 1;
      store_narrowest(f, n->in[i]);
      if (why)
        explain(f, why, graph_node(f->g, v->def), "its user is the epilogue of another reduction");
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
  const char *why_not = f->epilogue[v] ? not_inline_epilogue(f, v, n) : not_inline(f, v, n);
  ValuePlacement home = why_not ? HOME_buffer : HOME_inline;
  if (why_not && is_reduction(n)) {
    why_not = not_epilogue(f, v, n);
    if (!why_not) home = HOME_epilogue;
  }
  Value *x = graph_val(g, v);
  if (f->check && x->home != HOME_buffer && x->home != home)
    fail(g->c, ERR_input, n->loc, "%s cannot be %s: %s", op_info[n->op].name, home_name[x->home],
         why_not               ? why_not
         : home == HOME_inline ? "expected inline"
                               : "expected epilogue");
  if (!f->check) x->home = home;
  if (x->home == HOME_epilogue) f->epilogue[v] = v;
  bool counts = kind_of(n) != OK_LEAF && n->op != OP_reshape; /* a reshape needs no code */
  if (why && why_not && counts && f->uses[v]) explain(f, why, n, why_not);
}

static void decide(Fuse *f, StrBuf *why) {
  Graph *g = f->g;
  for (Val v = 1; v < g->val.n && !f->check; v++) graph_val(g, v)->home = HOME_buffer;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) visit(f, g->region.at[b].node.at[i], why);
}

static void run(Graph *g, StrBuf *why, bool check) {
  Arena *a = &g->c->scratch;
  Fuse f = {.g = g, .check = check};
  f.uses = NEWS(a, u32, g->val.n);
  f.user = NEWS(a, NodeId, g->val.n);
  f.refused = NEWS(a, const char *, g->val.n);
  f.region = NEWS(a, RegionId, g->node.n);
  f.size = NEWS(a, u32, g->val.n);
  f.epilogue = NEWS(a, Val, g->val.n);
  f.sink = NEWS(a, Val, g->val.n);
  f.weight = NEWS(a, u32, g->val.n);
  f.scattered = NEWS(a, bool, g->val.n);
  f.decoded = NEWS(a, bool, g->val.n);
  f.byte = NEWS(a, Val, g->val.n);
  f.function = NEWS(a, bool, g->val.n);
  f.root = NEWS(a, Val, g->val.n);
  f.seen = NEWS(a, u32, g->val.n);
  count_users(&f);
  for (RegionId b = 1; b < g->region.n; b++) find_bytes(&f, b);
  for (RegionId b = 1; b < g->region.n; b++) find_sinks(&f, b);
  for (bool again = true; again;) { /* ends, because each round marks another value as scattered */
    StrBuf lines = why ? sb_new(a) : (StrBuf){0};
    decide(&f, why ? &lines : NULL);
    again = false;
    for (RegionId b = 1; b < g->region.n; b++) again = find_scattered(&f, b) || again;
    if (again && check)
      fail(g->c, ERR_input, LOC_NONE,
           "a value without a buffer is used in two groups, expected one");
    if (why && !again) sb_put(why, lines.at, lines.n);
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
