/* order.c: puts the nodes of every block in an order that needs less memory at a time.
 *
 * In: a graph, values marked by fuse. Out: the same graph, nodes in another topological order where
 * that lowers the peak; otherwise nothing changes. Method: what becomes one kernel is one unit;
 * values that never become buffers belong to the units that use them. Memory is a value that lies
 * in a buffer: reshapes share that of their operand, operands that are written straight into a
 * concatenation share that of its result; constants, parameters and results of the graph count
 * nothing. A unit needs its results besides everything that is alive, unless it may overwrite an
 * operand that ends there. A beam of partial orders is extended by one unit at a time; those with
 * the lowest peak survive, among equals those that leave least alive, among these the ones nearest
 * to the given order. Equal sets of units are kept once.
 *
 * needs: fuse  keeps: types, marks of fuse  breaks: nothing
 */
#include <stdlib.h>
#include <string.h>
#include "pass/pass.h"

enum { ORDER_UNITS = 8000, ORDER_BEAM = 48, ORDER_GUESS = 64 }; /* GUESS: an extent without bound */

typedef VEC(u32) Ids;

typedef struct Step {
  NodeId node;
  Ids in;    /* memories it reads */
  Ids out;   /* memories it writes */
  Ids next;  /* units that wait for it */
  u32 waits; /* for that many */
  bool map;  /* element by element: may overwrite an operand */
} Step;

typedef struct Memory {
  u64 size;
  u32 uses;
  bool stays; /* to the end of the block */
} Memory;

typedef struct Order {
  Graph *g;
  Arena *a;
  BlkId blk;
  u32 *uses;      /* by value */
  BlkId *home;    /* by node: its block */
  NodeId *setter; /* by symbol */
  u32 *of;        /* by value: 1 + memory */
  u32 *step_of;   /* by node: 1 + unit */
  u32 *stamp;     /* by node: last unit that looked at it */
  VEC(Step) step;
  VEC(Memory) mem;
} Order;

/* ---- memory ---- */

static u64 bytes_of(const Graph *g, const Type *t) {
  u64 n = t->kind == TY_tensor ? dtype_bytes(t->dt) : 0, size;
  for (u32 i = 0; i < t->rank; i++) {
    i64 lo, hi;
    dim_bounds(g->dims, t->dim[i], &lo, &hi);
    if (hi >= DIM_MAX) hi = lo > ORDER_GUESS ? lo : ORDER_GUESS;
    if (!size_mul(n, (u64)hi, &n)) return DIM_MAX;
  }
  return size_align(n, 64, &size) && size < (u64)DIM_MAX ? size : (u64)DIM_MAX;
}

/* Is it never stored, because its users compute it? */
static bool is_inline(const Graph *g, const Node *n) {
  bool any = n->nout > 0;
  for (u32 i = 0; i < n->nout; i++) any = any && g->val.at[n->out[i]].home != HOME_buffer;
  return any;
}

static bool by_element(const Node *n) {
  OpKind k = op_info[n->op].kind;
  return k == OK_MAP || k == OK_CONTRACT || n->op == OP_pool_max || n->op == OP_pool_sum;
}

/* A concat that is fed as lower does it: its operand lies in its result. */
static void join(Order *o, const Node *n) {
  for (u32 i = 0; i < n->nin; i++) {
    Val v = n->in[i];
    NodeId def = graph_val(o->g, v)->def;
    if (def && o->home[def] == o->blk && o->uses[v] == 1 && by_element(graph_node(o->g, def)) &&
        graph_val(o->g, v)->home == HOME_buffer && part_fits(o->g, n, i))
      o->of[v] = o->of[n->out[0]];
  }
}

static void add_memories(Order *o) {
  const Blk *b = &o->g->blk.at[o->blk];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(o->g, b->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) {
      if (n->op == OP_const || o->g->val.at[n->out[k]].home != HOME_buffer) continue;
      if (op_is_alias(n->op)) o->of[n->out[k]] = o->of[n->in[0]];
      if (op_is_alias(n->op)) continue;
      *vec_push(o->a, &o->mem) = (Memory){bytes_of(o->g, graph_type(o->g, n->out[k])), 0, false};
      o->of[n->out[k]] = o->mem.n;
    }
    if (n->op == OP_concat) join(o, n);
  }
  for (u32 i = 0; i < b->ret.n; i++) {
    u32 m = o->of[b->ret.at[i]];
    NodeId def = graph_val(o->g, b->ret.at[i])->def;
    if (!m || !def || !o->mem.at) continue;
    o->mem.at[m - 1].stays = true;
    bool direct = o->blk == 1 && !op_is_alias(graph_node(o->g, def)->op);
    if (direct) o->mem.at[m - 1].size = 0; /* the caller's */
  }
}

/* ---- units and what they wait for ---- */

static void add_once(Order *o, Ids *list, u32 id) {
  for (u32 i = 0; i < list->n; i++)
    if (list->at[i] == id) return;
  *vec_push(o->a, list) = id;
}

static void read_node(Order *o, u32 step, NodeId id);

/* A unit comes behind the node, or behind what the node is computed from. */
static void follow(Order *o, u32 step, NodeId def) {
  if (!def || o->home[def] != o->blk || graph_node(o->g, def)->op == OP_const) return;
  u32 before = o->step_of[def];
  if (!before) {
    read_node(o, step, def);
    return;
  }
  if (before - 1 == step) return;
  u32 n = o->step.at[before - 1].next.n;
  add_once(o, &o->step.at[before - 1].next, step);
  o->step.at[step].waits += o->step.at[before - 1].next.n - n;
}

static void read_dim(Order *o, u32 step, Dim d) {
  i64 k0;
  const Sym *sym;
  const i64 *coef;
  u32 n = dim_is_const(d) ? 0 : dim_terms(o->g->dims, d, &k0, &sym, &coef);
  for (u32 i = 0; i < n; i++) {
    const SymInfo *s = dim_syminfo(o->g->dims, sym[i]);
    if (s->kind == SY_data) follow(o, step, o->setter[sym[i]]);
    if (s->kind != SY_derived) continue;
    read_dim(o, step, s->a);
    read_dim(o, step, s->b);
  }
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
  if (o->of[v]) add_once(o, &o->step.at[step].in, o->of[v] - 1);
}

static void read_node(Order *o, u32 step, NodeId id) {
  if (o->stamp[id] == step + 1) return;
  o->stamp[id] = step + 1;
  const Node *n = graph_node(o->g, id);
  if (!by_element(n) || op_info[n->op].kind != OK_MAP) o->step.at[step].map = false;
  for (u32 i = 0; i < n->nin; i++) read_value(o, step, n->in[i]);
  for (u32 i = 0; i < n->nout; i++) read_type(o, step, n->out[i]);
  for (u32 i = 0; i < n->nattr; i++) {
    const Attr *at = &n->attr[i];
    for (u32 k = 0; at->kind == AK_list && attr_is_dims(at->key) && k < at->n; k++)
      read_dim(o, step, at->u.list[k]);
  }
  for (u32 k = 0; k < n->nblk; k++) { /* what the bodies take from outside */
    const Blk *b = &o->g->blk.at[n->blk[k]];
    for (u32 i = 0; i < b->node.n; i++) read_node(o, step, b->node.at[i]);
    for (u32 i = 0; i < b->ret.n; i++) read_value(o, step, b->ret.at[i]);
  }
}

static void add_steps(Order *o) {
  const Blk *b = &o->g->blk.at[o->blk];
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(o->g, b->node.at[i]);
    if (n->op == OP_const || is_inline(o->g, n)) continue;
    *vec_push(o->a, &o->step) = (Step){.node = b->node.at[i], .map = true};
    o->step_of[b->node.at[i]] = o->step.n;
  }
  for (u32 i = 0; i < o->step.n; i++) {
    NodeId id = o->step.at[i].node;
    const Node *n = graph_node(o->g, id);
    read_node(o, i, id);
    for (u32 k = 0; k < n->nout; k++)
      if (o->of[n->out[k]] && !op_is_alias(n->op))
        add_once(o, &o->step.at[i].out, o->of[n->out[k]] - 1);
    for (u32 k = 0; k < o->step.at[i].in.n; k++) o->mem.at[o->step.at[i].in.at[k]].uses++;
  }
}

/* ---- partial orders ---- */

typedef struct Path { /* units in reverse, shared between partial orders */
  const struct Path *back;
  u32 step;
} Path;

typedef struct State {
  u64 peak, live, set; /* set: a hash of the units that have run */
  u32 *waits;          /* by unit: for how many; UINT32_MAX: has run */
  u32 *left;           /* by memory: units that have yet to read it */
  bool *begun;         /* by memory: is it alive? */
  const Path *path;
} State;

typedef struct Move {
  u64 peak, live, set;
  u32 from, step; /* state, unit */
} Move;

/* What running the unit does to a state; nothing is changed. */
static Move try_step(const Order *o, const State *s, u32 from, u32 step) {
  const Step *u = &o->step.at[step];
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
  u64 set = s->set ^ random_bits(7, step);
  return (Move){top > s->peak ? top : s->peak, s->live + need - freed, set, from, step};
}

static void run_step(const Order *o, State *s, const Move *m) {
  const Step *u = &o->step.at[m->step];
  s->peak = m->peak;
  s->live = m->live;
  s->set = m->set;
  s->waits[m->step] = UINT32_MAX;
  for (u32 i = 0; i < u->out.n; i++) s->begun[u->out.at[i]] = true;
  for (u32 i = 0; i < u->in.n; i++) s->left[u->in.at[i]]--;
  for (u32 i = 0; i < u->next.n; i++) s->waits[u->next.at[i]]--;
}

static State new_state(const Order *o, Arena *a) {
  State s = {0};
  s.waits = NEWS(a, u32, o->step.n + 1);
  s.left = NEWS(a, u32, o->mem.n + 1);
  s.begun = NEWS(a, bool, o->mem.n + 1);
  for (u32 i = 0; i < o->step.n; i++) s.waits[i] = o->step.at[i].waits;
  for (u32 i = 0; i < o->mem.n; i++) s.left[i] = o->mem.at[i].uses;
  return s;
}

static void copy_state(const Order *o, State *to, const State *from) {
  State own = *to;
  *to = *from;
  to->waits = memcpy(own.waits, from->waits, o->step.n * sizeof *own.waits);
  to->left = memcpy(own.left, from->left, o->mem.n * sizeof *own.left);
  to->begun = memcpy(own.begun, from->begun, o->mem.n * sizeof *own.begun);
}

static int by_merit(const void *x, const void *y) {
  const Move *a = x, *b = y;
  if (a->peak != b->peak) return a->peak < b->peak ? -1 : 1;
  if (a->live != b->live) return a->live < b->live ? -1 : 1;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

static u64 peak_as_given(const Order *o) {
  State s = new_state(o, o->a);
  for (u32 i = 0; i < o->step.n; i++) {
    Move m = try_step(o, &s, 0, i);
    run_step(o, &s, &m);
  }
  return s.peak;
}

/* The best moves of all, no two to the same set of units. */
static u32 choose(Move *move, u32 n, u32 most) {
  u32 kept = 0;
  qsort(move, n, sizeof *move, by_merit);
  for (u32 i = 0; i < n && kept < most; i++) {
    bool again = false;
    for (u32 k = 0; k < kept; k++) again = again || move[k].set == move[i].set;
    if (!again) move[kept++] = move[i];
  }
  return kept;
}

/* An order with a lower peak than `limit`, in out; false if none is found. */
static bool search(const Order *o, u64 limit, u32 *out) {
  u32 n = o->step.n, beam = n < 600 ? ORDER_BEAM : ORDER_BEAM * 600 / n * 600 / n, live = 1;
  if (beam < 1) beam = 1;
  State *now = NEWS(o->a, State, beam), *then = NEWS(o->a, State, beam);
  for (u32 i = 0; i < beam; i++) now[i] = new_state(o, o->a);
  for (u32 i = 0; i < beam; i++) then[i] = new_state(o, o->a);
  VEC(Move) move = {0};
  for (u32 turn = 0; turn < n; turn++) {
    move.n = 0;
    for (u32 i = 0; i < live; i++)
      for (u32 k = 0; k < n; k++) {
        if (now[i].waits[k]) continue;
        Move m = try_step(o, &now[i], i, k);
        if (m.peak < limit) *vec_push(o->a, &move) = m;
      }
    if (!move.n) return false;
    live = choose(move.at, move.n, beam);
    for (u32 i = 0; i < live; i++) {
      copy_state(o, &then[i], &now[move.at[i].from]);
      run_step(o, &then[i], &move.at[i]);
      Path *p = NEW(o->a, Path);
      *p = (Path){now[move.at[i].from].path, move.at[i].step};
      then[i].path = p;
    }
    State *swap = now;
    now = then;
    then = swap;
  }
  for (const Path *p = now[0].path; p; p = p->back) out[--n] = p->step;
  return true;
}

/* ---- the block ---- */

typedef struct Emit {
  Order *o;
  Ids node;
  bool *done; /* by node */
} Emit;

/* A node behind those of its block that it is computed from. */
static void emit(Emit *e, NodeId id) {
  Order *o = e->o;
  if (!id || o->home[id] != o->blk || e->done[id]) return;
  e->done[id] = true;
  const Node *n = graph_node(o->g, id);
  for (u32 i = 0; i < n->nin; i++)
    if (n->in[i]) emit(e, graph_val(o->g, n->in[i])->def);
  *vec_push(&o->g->c->work, &e->node) = id;
}

/* Nodes in the new order; what is computed in place stands in front of its first user. */
static void apply(Order *o, const u32 *order) {
  Blk *b = &o->g->blk.at[o->blk];
  Emit e = {.o = o, .done = NEWS(o->a, bool, o->g->node.n)};
  for (u32 i = 0; i < b->node.n; i++)
    if (graph_node(o->g, b->node.at[i])->op == OP_const) emit(&e, b->node.at[i]);
  for (u32 i = 0; i < o->step.n; i++) emit(&e, o->step.at[order[i]].node);
  for (u32 i = 0; i < b->node.n; i++) emit(&e, b->node.at[i]);
  memcpy(b->node.at, e.node.at, b->node.n * sizeof *b->node.at);
}

static void order_block(Graph *g, BlkId blk, Order *all) {
  Arena *a = &g->c->scratch;
  Order o = *all;
  o.blk = blk;
  o.of = NEWS(a, u32, g->val.n);
  o.step_of = NEWS(a, u32, g->node.n);
  o.stamp = NEWS(a, u32, g->node.n);
  add_memories(&o);
  add_steps(&o);
  if (o.step.n < 3 || o.step.n > ORDER_UNITS) return;
  u32 *out = NEWS(a, u32, o.step.n);
  if (search(&o, peak_as_given(&o), out)) apply(&o, out);
}

/* What the nodes of a block, and of those inside it, are and set. */
static void survey(Order *o, BlkId b) {
  for (u32 i = 0; i < o->g->blk.at[b].node.n; i++) {
    NodeId id = o->g->blk.at[b].node.at[i];
    const Node *n = graph_node(o->g, id);
    o->home[id] = b;
    for (u32 k = 0; k < n->nsym; k++) o->setter[n->sym[k]] = id;
    for (u32 k = 0; k < n->nblk; k++) survey(o, n->blk[k]);
  }
}

static void order_blocks(Order *o, BlkId b) {
  order_block(o->g, b, o);
  for (u32 i = 0; i < o->g->blk.at[b].node.n; i++) {
    const Node *n = graph_node(o->g, o->g->blk.at[b].node.at[i]);
    for (u32 k = 0; k < n->nblk; k++) order_blocks(o, n->blk[k]);
  }
}

void order(Graph *g) {
  if (g->ordered) return;
  Arena *a = &g->c->scratch;
  Order o = {.g = g, .a = a};
  o.uses = NEWS(a, u32, g->val.n);
  o.home = NEWS(a, BlkId, g->node.n);
  o.setter = NEWS(a, NodeId, dim_nsyms(g->dims) + 1);
  graph_use_counts(g, o.uses);
  survey(&o, 1);
  order_blocks(&o, 1);
}
