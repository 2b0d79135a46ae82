/* order.c: reorders the nodes of every region to lower peak memory.
 *
 * In: a graph with the marks of fuse. Out: the same graph, in another topological order if that
 * lowers the peak; otherwise unchanged.
 *
 * A unit is a group that becomes one kernel; inline values belong to the units that use them. A
 * memory is a value in a buffer. Reshapes share the memory of their operand, and operands written
 * directly into a concat share that of its result. Constants, parameters and results of the graph
 * count 0. A unit needs its results in addition to all live memories, unless it may overwrite an
 * operand that dies there.
 *
 * Method: beam search. Partial orders are extended by one unit at a time. Those with the lowest
 * peak survive, then those with the least live memory, then those closest to the given order. Equal
 * sets of units are kept once.
 *
 * needs: fuse  keeps: types, marks of fuse  breaks: nothing
 */
#include <string.h>
#include "ir/prog/cost.h"
#include "pass/pass.h"

enum { ORDER_UNITS = 8000, ORDER_BEAM = 48 };
enum { ORDER_MOVES = 16 << 20 }; /* limit for one region */

typedef struct OrderStep {
  NodeId node;
  U32Vec in;   /* memories it reads */
  U32Vec out;  /* memories it writes */
  U32Vec next; /* units that depend on it */
  u32 waits;   /* number of units it depends on */
  bool map;    /* elementwise: may overwrite an operand */
  u64 bits;    /* its bits in the hash of a set of units */
} OrderStep;

typedef struct Memory {
  u64 size;
  u32 uses;
  u32 reader, writer; /* 1 + the last unit that lists it */
  bool stays;         /* live to the end of the region */
} Memory;

typedef struct Order {
  Graph *g;
  Arena *a;
  RegionId region;
  u32 *uses;      /* by value */
  RegionId *home; /* by node: its region */
  NodeId *setter; /* by symbol */
  u32 *of;        /* by value: 1 + memory */
  u32 *step_of;   /* by node: 1 + unit */
  u32 *stamp;     /* by node: 1 + last unit, of all regions, that visited it */
  u32 looked;     /* units of earlier regions */
  bool *done;     /* by node: already placed */
  VEC(OrderStep) step;
  VEC(Memory) mem;
} Order;

/* ---- memory ---- */

static u64 bytes_of(const Graph *g, const Type *t) {
  u64 n = t->kind == TY_tensor ? dtype_bytes(t->dt) : 0, size;
  for (u32 i = 0; i < t->rank; i++) {
    if (!size_mul(n, (u64)extent_bound(g->dims, t->dim[i]), &n)) return DIM_MAX;
  }
  return size_align(n, 64, &size) && size < (u64)DIM_MAX ? size : (u64)DIM_MAX;
}

/* Is it never stored, because its users compute it? */
static bool is_inline(const Graph *g, const Node *n) {
  bool any = n->nout > 0;
  for (u32 i = 0; i < n->nout; i++) any = any && g->val.at[n->out[i]].home != HOME_buffer;
  return any;
}

/* A concat that lowering writes slot by slot: its operand shares its memory. */
static void join(Order *o, const Node *n) {
  for (u32 i = 0; i < n->nin; i++) {
    Val v = n->in[i];
    NodeId def = graph_val(o->g, v)->def;
    if (def && o->home[def] == o->region && o->uses[v] == 1 && concat_part_fits(o->g, n, i))
      o->of[v] = o->of[n->out[0]];
  }
}

static void add_memories(Order *o) {
  const GraphRegion *b = &o->g->region.at[o->region];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(o->g, b->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      if (n->op == OP_const || o->g->val.at[n->out[k]].home != HOME_buffer) continue;
      if (op_is(n->op, OF_ALIAS)) o->of[n->out[k]] = o->of[n->in[0]];
      if (op_is(n->op, OF_ALIAS)) continue;
      *vec_push(o->a, &o->mem) = (Memory){.size = bytes_of(o->g, graph_type(o->g, n->out[k]))};
      o->of[n->out[k]] = o->mem.n;
    }
    if (n->op == OP_concat) join(o, n);
  }
  for (u32 i = 0; i < b->ret.n; i++) {
    u32 m = o->of[b->ret.at[i]];
    NodeId def = graph_val(o->g, b->ret.at[i])->def;
    if (!m || !def || !o->mem.at) continue;
    o->mem.at[m - 1].stays = true;
    bool direct = o->region == 1 && !op_is(graph_node(o->g, def)->op, OF_ALIAS);
    if (direct) o->mem.at[m - 1].size = 0; /* memory of the caller */
  }
}

/* ---- units and dependences ---- */

static void add_in(Order *o, u32 step, u32 mem) {
  if (o->mem.at[mem].reader == step + 1) return;
  o->mem.at[mem].reader = step + 1;
  *vec_push(o->a, &o->step.at[step].in) = mem;
}

static void add_out(Order *o, u32 step, u32 mem) {
  if (o->mem.at[mem].writer == step + 1) return;
  o->mem.at[mem].writer = step + 1;
  *vec_push(o->a, &o->step.at[step].out) = mem;
}

static void read_node(Order *o, u32 step, NodeId id);

/* Adds a dependence of a unit on a node, or on the operands of an inlined node. */
static void follow(Order *o, u32 step, NodeId def) {
  if (!def || o->home[def] != o->region || graph_node(o->g, def)->op == OP_const) return;
  u32 before = o->step_of[def];
  if (!before) {
    read_node(o, step, def);
    return;
  }
  if (before - 1 == step) return;
  U32Vec *next = &o->step.at[before - 1].next; /* units are visited in order */
  if (next->n && next->at[next->n - 1] == step) return;
  *vec_push(o->a, next) = step;
  o->step.at[step].waits++;
}

static void read_dim(Order *o, u32 step, Dim d) {
  for (SymVisit w = dim_visit(o->g->dims, d); dim_next(&w);)
    if (w.info->kind == SY_data) follow(o, step, o->setter[w.sym]);
}

static void read_type(Order *o, u32 step, Val v) {
  const Type *t = graph_type(o->g, v);
  while (t->kind != TY_tensor) t = t->elem;
  for (u32 i = 0; i < t->rank; i++) read_dim(o, step, t->dim[i]);
}

static void read_value(Order *o, u32 step, Val v) {
  if (!v) return;
  read_type(o, step, v);
  follow(o, step, graph_val(o->g, v)->def);
  if (o->of[v]) add_in(o, step, o->of[v] - 1);
}

static void read_node(Order *o, u32 step, NodeId id) {
  if (o->stamp[id] == o->looked + step + 1) return;
  o->stamp[id] = o->looked + step + 1;
  const Node *n = graph_node(o->g, id);
  if (op_info[n->op].kind != OK_MAP) o->step.at[step].map = false;
  for (u32 i = 0; i < n->nin; i++) read_value(o, step, n->in[i]);
  for (u32 i = 0; i < n->nout; i++) read_type(o, step, n->out[i]);
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *at = &n->attr[i];
    for (u32 k = 0; at->kind == AK_list && attr_is_dims(at->key) && k < at->n; k++)
      read_dim(o, step, at->u.list[k]);
  }
  for (u32 k = 0; k < n->nregion; k++) { /* values that the regions read from outside */
    const GraphRegion *b = &o->g->region.at[n->region[k]];
    for (u32 i = 0; i < b->node.n; i++) read_node(o, step, b->node.at[i]);
    for (u32 i = 0; i < b->ret.n; i++) read_value(o, step, b->ret.at[i]);
  }
}

static void add_steps(Order *o) {
  const GraphRegion *b = &o->g->region.at[o->region];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(o->g, b->node.at[i]);
    if (n->op == OP_const || is_inline(o->g, n)) continue;
    u64 bits = random_bits(7, o->step.n);
    *vec_push(o->a, &o->step) = (OrderStep){.node = b->node.at[i], .map = true, .bits = bits};
    o->step_of[b->node.at[i]] = o->step.n;
  }
  for (u32 i = 0; i < o->step.n; i++) {
    NodeId id = o->step.at[i].node;
    const Node *n = graph_node(o->g, id);
    read_node(o, i, id);
    for (u32 k = 0; k < n->nout; k++)
      if (o->of[n->out[k]] && !op_is(n->op, OF_ALIAS)) add_out(o, i, o->of[n->out[k]] - 1);
    for (u32 k = 0; k < o->step.at[i].in.n; k++) o->mem.at[o->step.at[i].in.at[k]].uses++;
  }
}

/* ---- partial orders ---- */

typedef struct Path { /* units in reverse, shared between partial orders */
  const struct Path *back;
  u32 step;
} Path;

typedef struct State {
  u64 peak, live, set; /* set: hash of the units that have run */
  u32 *waits;          /* by unit: unfinished dependences */
  u32 *ready, nready;  /* units that can run next */
  u32 *left;           /* by memory: units that have yet to read it */
  bool *begun;         /* by memory: live */
  const Path *path;
} State;

typedef struct Move {
  u64 peak, live, set;
  u32 from, step; /* state, unit */
} Move;

/* Evaluates running a unit in a state, without changing it. */
static Move try_step(const Order *o, const State *s, u32 from, u32 step) {
  const OrderStep *u = &o->step.at[step];
  u64 need = 0, freed = 0, saved = 0;
  for (u32 i = 0; i < u->out.n; i++) {
    const Memory *m = &o->mem.at[u->out.at[i]];
    if (!s->begun[u->out.at[i]]) need += m->size;
    if (!m->uses && !m->stays) freed += m->size;
  }
  for (u32 i = 0; i < u->in.n; i++) {
    const Memory *m = &o->mem.at[u->in.at[i]];
    if (m->stays || s->left[u->in.at[i]] != 1) continue;
    freed += m->size;
    if (u->map && u->out.n == 1 && m->size == o->mem.at[u->out.at[0]].size) saved = m->size;
  }
  u64 top = s->live + need - (saved < need ? saved : need);
  u64 set = s->set ^ u->bits;
  return (Move){top > s->peak ? top : s->peak, s->live + need - freed, set, from, step};
}

static void run_step(const Order *o, State *s, const Move *m) {
  const OrderStep *u = &o->step.at[m->step];
  s->peak = m->peak;
  s->live = m->live;
  s->set = m->set;
  for (u32 i = 0; i < s->nready; i++)
    if (s->ready[i] == m->step) s->ready[i--] = s->ready[--s->nready];
  for (u32 i = 0; i < u->out.n; i++) s->begun[u->out.at[i]] = true;
  for (u32 i = 0; i < u->in.n; i++) s->left[u->in.at[i]]--;
  for (u32 i = 0; i < u->next.n; i++)
    if (!--s->waits[u->next.at[i]]) s->ready[s->nready++] = u->next.at[i];
}

static State new_state(const Order *o, Arena *a) {
  State s = {0};
  s.waits = NEWS(a, u32, o->step.n + 1);
  s.left = NEWS(a, u32, o->mem.n + 1);
  s.begun = NEWS(a, bool, o->mem.n + 1);
  s.ready = NEWS(a, u32, o->step.n + 1);
  for (u32 i = 0; i < o->step.n; i++) {
    s.waits[i] = o->step.at[i].waits;
    if (!s.waits[i]) s.ready[s.nready++] = i;
  }
  for (u32 i = 0; i < o->mem.n; i++) s.left[i] = o->mem.at[i].uses;
  return s;
}

static void copy_state(const Order *o, State *to, const State *from) {
  if (to == from) return;
  State own = *to;
  *to = *from;
  to->waits = memcpy(own.waits, from->waits, o->step.n * sizeof *own.waits);
  to->left = memcpy(own.left, from->left, o->mem.n * sizeof *own.left);
  to->begun = memcpy(own.begun, from->begun, o->mem.n * sizeof *own.begun);
  to->ready = memcpy(own.ready, from->ready, from->nready * sizeof *own.ready);
}

static bool is_better(const Move *a, const Move *b) {
  if (a->peak != b->peak) return a->peak < b->peak;
  if (a->live != b->live) return a->live < b->live;
  if (a->step != b->step) return a->step < b->step;
  return a->from < b->from;
}

static u64 peak_as_given(const Order *o) {
  State s = new_state(o, o->a);
  for (u32 i = 0; i < o->step.n; i++) {
    Move m = try_step(o, &s, 0, i);
    run_step(o, &s, &m);
  }
  return s.peak;
}

/* The best moves so far, best first, no two to the same set of units. */
typedef struct BestMoves {
  Move *at;
  u32 n, most;
} BestMoves;

static void offer(BestMoves *b, const Move *m) {
  if (b->n == b->most && !is_better(m, &b->at[b->n - 1])) return;
  u32 i = 0;
  while (i < b->n && b->at[i].set != m->set) i++;
  if (i < b->n && !is_better(m, &b->at[i])) return;
  if (i == b->n) i = b->n < b->most ? b->n++ : b->n - 1;
  for (; i && is_better(m, &b->at[i - 1]); i--) b->at[i] = b->at[i - 1];
  b->at[i] = *m;
}

/* Extends the best states by one unit each; the states move from now to then. */
static void advance(const Order *o, const BestMoves *best, State *now, State *then) {
  for (u32 i = 0; i < best->n; i++) {
    const Move *m = &best->at[i];
    Path *p = NEW(o->a, Path);
    *p = (Path){now[m->from].path, m->step};
    copy_state(o, &then[i], &now[m->from]);
    run_step(o, &then[i], m);
    then[i].path = p;
  }
}

/* Finds an order with a lower peak than `limit`, in out; false: none found. */
static bool search(const Order *o, u64 limit, u32 *out) {
  u32 n = o->step.n, beam = n < 600 ? ORDER_BEAM : ORDER_BEAM * 600 / n * 600 / n, live = 1;
  u64 looked = 0;
  if (beam < 1) beam = 1;
  State *now = NEWS(o->a, State, beam), *then = NEWS(o->a, State, beam);
  for (u32 i = 0; i < beam; i++) now[i] = new_state(o, o->a);
  for (u32 i = 0; i < beam && beam > 1; i++) then[i] = new_state(o, o->a);
  BestMoves best = {.at = NEWS(o->a, Move, beam), .most = beam};
  for (u32 turn = 0; turn < n; turn++) {
    best.n = 0;
    for (u32 i = 0; i < live; i++)
      for (u32 k = 0; k < now[i].nready; k++, looked++) {
        Move m = try_step(o, &now[i], i, now[i].ready[k]);
        if (m.peak < limit) offer(&best, &m);
      }
    if (!best.n || looked > ORDER_MOVES) return false;
    live = best.n;
    advance(o, &best, now, beam > 1 ? then : now);
    if (beam == 1) continue; /* in place */
    State *swap = now;
    now = then;
    then = swap;
  }
  for (const Path *p = now[0].path; p; p = p->back) out[--n] = p->step;
  return true;
}

typedef struct NewOrder {
  Order *o;
  U32Vec node;
} NewOrder;

/* Emits a node after those of its region that it is computed from. */
static void emit(NewOrder *e, NodeId id) {
  Order *o = e->o;
  if (!id || o->home[id] != o->region || o->done[id]) return;
  o->done[id] = true;
  const Node *n = graph_node(o->g, id);
  for (u32 i = 0; i < n->nin; i++)
    if (n->in[i]) emit(e, graph_val(o->g, n->in[i])->def);
  *vec_push(&o->g->c->work, &e->node) = id;
}

/* Writes the nodes in the new order; inline values come right before their first user. */
static void apply(Order *o, const u32 *order) {
  GraphRegion *b = &o->g->region.at[o->region];
  NewOrder e = {.o = o};
  for (u32 i = 0; i < b->node.n; i++)
    if (graph_node(o->g, b->node.at[i])->op == OP_const) emit(&e, b->node.at[i]);
  for (u32 i = 0; i < o->step.n; i++) emit(&e, o->step.at[order[i]].node);
  for (u32 i = 0; i < b->node.n; i++) emit(&e, b->node.at[i]);
  memcpy(b->node.at, e.node.at, b->node.n * sizeof *b->node.at);
}

/* Clears what belongs to this region. */
static void forget(Order *o) {
  const GraphRegion *b = &o->g->region.at[o->region];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(o->g, b->node.at[i]);
    o->step_of[b->node.at[i]] = 0;
    for (u32 k = 0; k < n->nout; k++) o->of[n->out[k]] = 0;
  }
}

static void order_block(Order *all, RegionId region) {
  Order o = *all;
  Mark m = arena_mark(o.a);
  o.region = region;
  add_memories(&o);
  add_steps(&o);
  if (o.step.n >= 3 && o.step.n <= ORDER_UNITS) {
    u32 *out = NEWS(o.a, u32, o.step.n);
    if (search(&o, peak_as_given(&o), out)) apply(&o, out);
  }
  all->looked += o.step.n;
  forget(&o);
  arena_rewind(o.a, m);
}

/* Records regions and symbols of the nodes of a region, and of those inside it. */
static void survey(Order *o, RegionId b) {
  for (u32 i = 0; i < o->g->region.at[b].node.n; i++) {
    NodeId id = o->g->region.at[b].node.at[i];
    const Node *n = graph_node(o->g, id);
    o->home[id] = b;
    for (u32 k = 0; k < n->nsym; k++) o->setter[n->sym[k]] = id;
    for (u32 k = 0; k < n->nregion; k++) survey(o, n->region[k]);
  }
}

static void order_blocks(Order *o, RegionId b) {
  order_block(o, b);
  for (u32 i = 0; i < o->g->region.at[b].node.n; i++) {
    const Node *n = graph_node(o->g, o->g->region.at[b].node.at[i]);
    for (u32 k = 0; k < n->nregion; k++) order_blocks(o, n->region[k]);
  }
}

void order(Graph *g) {
  if (g->ordered) return;
  Arena *a = &g->c->scratch;
  Order o = {.g = g, .a = a};
  o.uses = NEWS(a, u32, g->val.n);
  o.home = NEWS(a, RegionId, g->node.n);
  o.setter = NEWS(a, NodeId, dim_nsyms(g->dims) + 1);
  o.of = NEWS(a, u32, g->val.n);
  o.step_of = NEWS(a, u32, g->node.n);
  o.stamp = NEWS(a, u32, g->node.n);
  o.done = NEWS(a, bool, g->node.n);
  graph_use_counts(g, o.uses);
  survey(&o, 1);
  order_blocks(&o, 1);
}
