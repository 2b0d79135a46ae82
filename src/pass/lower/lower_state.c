/* lower_state.c: state, i.e. results that are parameters of the next run.
 *
 * In: the pairs of a graph (Graph.state). Out: buffers of the space `state`, and code that uses
 * them. A pair is stored in one of five ways:
 *
 *   append  next = concat(past, new): new is written after past, nothing else moves
 *   wrap    append, but results depend on at most the last W of past: append modulo a size
 *   ring    next = the last W of concat(past, new), new not longer than W: see below
 *   update  next = scatter(past, ...), the only use of past: elements are replaced in place
 *   copy    anything else: computed elsewhere, copied at the end of the run
 *
 * Lowering sees placeholder buffers of the actual shapes. At the end these are replaced by the
 * memory itself, whose extents are the upper bounds. Loops have their own bounds by then, so only
 * strides change, and appending moves nothing. Extents that grow are stored with the state. In the
 * program they are symbols, set before everything else.
 *
 * A ring of C = W + new elements is stored twice, one copy after the other, and every new element
 * is written to both. So a window that starts at any `head` is contiguous, and its address needs an
 * addition instead of a modulo. After the run `head` advances by the length of new.
 *
 * With wrap, element i is at i modulo C = W + new, the extent of the memory. A read of an element
 * before the last W yields a later one, which a mask hides. Elements are vectors along inner axes,
 * so no vector load wraps around.
 */
#include "pass/lower/lower.h"

#include "ir/prog/prog_mem.h"

typedef enum StateKind { WAY_append, WAY_wrap, WAY_ring, WAY_update, WAY_copy } StateKind;

typedef struct StatePlan {
  Val in, out, whole; /* whole: the concat of a ring */
  StateKind way;
  GrowingAxis grows;
  u32 axis; /* axis that is longer in memory; MAX_RANK: none */
  BufId mem, next;
  VarId head;
  Dim new; /* ring: extent of new */
  i64 ring;
  i64 window; /* see StatePair */
  Tensor *start;
} StatePlan;

struct States {
  Lower *l;
  VEC(StatePlan) pair;
  VEC(GrowingAxis) size;    /* extents that grow, each once */
  VEC(u32) rings;           /* indices of the pairs that are rings */
  VEC(Sym) fixed;           /* other symbols in the shapes of states */
  BufId lens, heads, sizes; /* values of size, rings and fixed, stored with the state */
  u32 *uses;                /* by value */
};

/* ---- how pairs are stored ---- */

static const Node *def_of(Lower *l, Val v) {
  NodeId n = graph_val(l->g, v)->def;
  return n ? graph_node(l->g, n) : NULL;
}

/* Is n a concat that starts with v and does not contain it again? */
static bool begins_with(const Node *n, Val v, u32 axis) {
  if (!n || n->op != OP_concat || n->nin < 2 || n->in[0] != v) return false;
  if (axis != MAX_RANK && (u32)node_int(n, AT_axis, 0) != axis) return false;
  for (u32 i = 1; i < n->nin; i++)
    if (n->in[i] == v) return false;
  return true;
}

static bool is_ring(States *o, StatePlan *r) {
  Graph *g = o->l->g;
  const Node *n = def_of(o->l, r->out), *c = n && n->op == OP_slice ? def_of(o->l, n->in[0]) : NULL;
  if (!c || !begins_with(c, r->in, MAX_RANK)) return false;
  u32 axis = (u32)node_int(c, AT_axis, 0), count;
  const Dim *start = node_list(n, AT_start, &count), *step = node_list(n, AT_step, &count);
  const Type *x = graph_type(g, r->in), *w = graph_type(g, c->out[0]);
  Dim width = x->dim[axis];
  i64 lo, hi;
  if (!dim_is_const(width)) return false;
  r->new = dim_sub(g->dims, w->dim[axis], width);
  for (u32 i = 0; i < count; i++)
    if (step[i] != 1 || start[i] != (i == axis ? r->new : 0)) return false;
  dim_bounds(g->dims, r->new, &lo, &hi);
  if (lo < 0 || hi > width) return false; /* mostly new: copying is less work */
  r->whole = c->out[0];
  r->axis = axis;
  r->ring = width + hi;
  return true;
}

/* Maximum extent; an unbounded one is refused. */
static i64 most_places(States *o, const StatePlan *r) {
  Lower *l = o->l;
  i64 lo, hi;
  dim_bounds(l->g->dims, r->grows.next, &lo, &hi);
  if (r->grows.most && r->grows.most < hi) hi = r->grows.most;
  if (hi >= DIM_MAX)
    fail(l->c, ERR_unsupported, LOC_NONE,
         "state '%s' grows without bound; set one with --max-shapes",
         show(l->c, graph_val(l->g, r->in)->name));
  return hi;
}

/* Is the window plus new smaller than the whole? Elements must be vectors along inner axes. */
static bool wraps(States *o, StatePlan *r) {
  Graph *g = o->l->g;
  const Type *t = graph_type(g, r->in);
  Dim inner = dim_product(g->dims, t->dim + r->axis + 1, t->rank - r->axis - 1);
  Dim new = dim_sub(g->dims, r->grows.next, t->dim[r->axis]);
  i64 lo, hi;
  dim_bounds(g->dims, new, &lo, &hi);
  if (!r->window || inner == 1 || hi >= DIM_MAX || r->window >= most_places(o, r) - hi)
    return false;
  r->ring = r->window + hi;
  return true;
}

static StateKind way_of(States *o, StatePlan *r) {
  const Node *n = def_of(o->l, r->out);
  r->axis = r->grows.axis;
  if (r->axis != MAX_RANK && !begins_with(n, r->in, r->axis)) return WAY_copy;
  if (r->axis != MAX_RANK) return wraps(o, r) ? WAY_wrap : WAY_append;
  if (is_ring(o, r)) return WAY_ring;
  bool update = n && (n->op == OP_scatter_nd || n->op == OP_scatter_elems);
  return update && n->in[0] == r->in && o->uses[r->in] == 1 ? WAY_update : WAY_copy;
}

/* ---- memory ---- */

static Str name_of(Lower *l, Val v) {
  return graph_val(l->g, v)->name;
}

static BufId add_memory(States *o, const StatePlan *r) {
  Lower *l = o->l;
  Graph *g = l->g;
  const Type *t = graph_type(g, r->in);
  Dim dim[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) dim[i] = t->dim[i];
  if (r->way == WAY_ring) dim[r->axis] = 2 * r->ring;
  if (r->grows.axis != MAX_RANK)
    dim[r->grows.axis] = r->way == WAY_wrap ? r->ring : most_places(o, r);
  return prog_add_buf(l->p, BS_state, t->dt, dim, t->rank, name_of(l, r->in));
}

/* Adds a placeholder buffer in the shape of `like` for value v, which lies in the memory of a
 * state. It has space `state` until the end, so that form_merge leaves its axes alone. */
static BufId add_alias(States *o, const StatePlan *r, Val v, Val like, Dim offset) {
  Lower *l = o->l;
  if (r->axis == MAX_RANK) return r->mem;
  const Type *t = graph_type(l->g, like);
  BufId b = prog_add_buf(l->p, BS_state, t->dt, t->dim, t->rank, name_of(l, like));
  *map_put(&l->places.by_buf, b) = v;
  l->places.of[v] = (Storage){.kind = SK_state,
                              .mem = r->mem,
                              .axis = r->axis,
                              .offset = offset,
                              .head = r->head,
                              .ring = r->ring};
  return b;
}

/* ---- before the first node ---- */

static ExprId number_at(Prog *p, BufId b, u32 i) {
  ExprId at = ex_int(p, i);
  return ex_load(p, b, &at, 1);
}

static void require_range(Lower *l, BufId b, u32 i, i64 hi, const char *fmt, Str name) {
  Prog *p = l->p;
  Str text = str_fmt(l->c, fmt, str_text(l->c, name));
  prog_require(p, &l->at, ex_op2(p, OP_ge, number_at(p, b, i), ex_int(p, 0)), text);
  prog_require(p, &l->at, ex_op2(p, OP_le, number_at(p, b, i), ex_int(p, hi)), text);
}

static bool is_listed(const States *o, Sym s) {
  for (u32 i = 0; i < o->size.n; i++)
    if (o->size.at[i].sym == s) return true;
  return false;
}

static void find_fixed(States *o) {
  Lower *l = o->l;
  Dims *ds = l->p->dims;
  for (Sym s = 0; s < dim_nsyms(ds); s++) {
    bool met = false;
    if (dim_syminfo(ds, s)->kind != SY_input || is_listed(o, s)) continue;
    for (u32 i = 0; i < o->pair.n; i++) {
      const Type *t = graph_type(l->g, o->pair.at[i].in);
      for (u32 k = 0; k < t->rank; k++) met = met || dim_mentions(ds, t->dim[k], s);
    }
    if (met) *vec_push(&l->c->scratch, &o->fixed) = s;
  }
}

/* Extents that do not grow must equal those of the first run. They are stored as 1 + extent, so
 * that 0, the cleared state, means no run yet. */
static void hold_fixed(States *o) {
  Lower *l = o->l;
  Prog *p = l->p;
  find_fixed(o);
  Dim n = o->fixed.n;
  if (n) o->sizes = prog_add_buf(p, BS_state, DT_i64, &n, 1, str_of(l->c, "sizes"));
  for (u32 i = 0; i < o->fixed.n; i++) {
    Sym s = o->fixed.at[i];
    ExprId now = ex_op2(p, OP_add, ex_dim(p, dim_of_sym(p->dims, s)), ex_int(p, 1));
    ExprId none = ex_op2(p, OP_eq, number_at(p, o->sizes, i), ex_int(p, 0));
    ExprId same = ex_op2(p, OP_eq, number_at(p, o->sizes, i), now);
    prog_require(p, &l->at, ex_op2(p, OP_or, none, same),
                 str_fmt(l->c, "the state is of another size: %s",
                         str_text(l->c, dim_syminfo(p->dims, s)->name)));
  }
}

#define FULL "the state is full: %s cannot grow"

/* Sizes come first, because everything else may depend on them. */
static void read_sizes(States *o) {
  Lower *l = o->l;
  Prog *p = l->p;
  for (u32 i = 0; i < o->pair.n; i++) {
    GrowingAxis w = o->pair.at[i].grows;
    if (w.axis != MAX_RANK && !is_listed(o, w.sym)) *vec_push(&l->c->scratch, &o->size) = w;
    if (o->pair.at[i].way == WAY_ring) *vec_push(&l->c->scratch, &o->rings) = i;
  }
  Dim n = o->size.n, m = o->rings.n;
  if (n) o->lens = prog_add_buf(p, BS_state, DT_i64, &n, 1, str_of(l->c, "lengths"));
  for (u32 i = 0; i < o->size.n; i++) {
    SymInfo s = *dim_syminfo(p->dims, o->size.at[i].sym);
    require_range(l, o->lens, i, s.hi, FULL, s.name);
    prog_set(p, &l->at, prog_sym_var(p, o->size.at[i].sym), number_at(p, o->lens, i));
    if (!o->size.at[i].most) continue;
    ExprId fits = ex_op2(p, OP_le, ex_dim(p, o->size.at[i].next), ex_int(p, o->size.at[i].most));
    prog_require(p, &l->at, fits, str_fmt(l->c, FULL, str_text(l->c, s.name)));
  }
  hold_fixed(o);
  if (m) o->heads = prog_add_buf(p, BS_state, DT_i64, &m, 1, str_of(l->c, "heads"));
  for (u32 i = 0; i < o->rings.n; i++) {
    StatePlan *r = &o->pair.at[o->rings.at[i]];
    require_range(l, o->heads, i, r->ring - 1, "the state was never cleared: %s",
                  name_of(l, r->in));
    r->head = let_new(p, &l->at, "head", number_at(p, o->heads, i));
  }
}

static void begin_pair(States *o, StatePlan *r) {
  Lower *l = o->l;
  r->mem = add_memory(o, r);
  prog_buf(l->p, r->mem)->data = r->start;
  l->buf[r->in] = add_alias(o, r, r->in, r->in, 0);
  if (r->way == WAY_copy) {
    r->next = add_alias(o, r, r->in, r->out, 0);
    return;
  }
  l->buf[r->out] = add_alias(o, r, r->out, r->out, r->way == WAY_ring ? r->new : 0);
  if (r->way == WAY_update) return;
  Val whole = r->way == WAY_ring ? r->whole : r->out;
  const Node *c = def_of(l, whole);
  if (r->way == WAY_ring) {
    l->buf[whole] = add_alias(o, r, whole, whole, 0);
    /* the concat stores new values once; a reduction must not accumulate in them */
    for (u32 i = 0; i < c->nin; i++)
      if (l->places.of[c->in[i]].into == whole)
        l->places.of[c->in[i]] = (Storage){.kind = SK_memory};
  }
  l->places.of[r->in].into = whole;
}

States *states_begin(Lower *l) {
  Graph *g = l->g;
  States *o = NEW(&l->c->scratch, States);
  o->l = l;
  o->uses = NEWS(&l->c->scratch, u32, g->val.n);
  graph_use_counts(g, o->uses);
  for (u32 i = 0; i < g->state.n; i++) {
    const StatePair *s = &g->state.at[i];
    StatePlan r = {.in = g->region.at[1].param.at[s->in], .out = g->region.at[1].ret.at[s->out]};
    r.grows = state_growth(g, s);
    r.window = s->window;
    r.start = s->start;
    r.way = way_of(o, &r);
    /* a value can be the next of one state only, and the start of one concat only */
    for (u32 k = 0; k < o->pair.n; k++)
      if (o->pair.at[k].out == r.out || (r.whole && o->pair.at[k].whole == r.whole))
        r.way = WAY_copy;
    if (r.start && r.way == WAY_ring) r.way = WAY_copy; /* its memory has another shape */
    if (r.way == WAY_copy) {
      r.axis = r.grows.axis;
      r.ring = 0;
    }
    *vec_push(&l->c->scratch, &o->pair) = r;
  }
  read_sizes(o);
  for (u32 i = 0; i < o->pair.n; i++) begin_pair(o, &o->pair.at[i]);
  return o;
}

bool states_holds(const States *o, const Node *n) {
  for (u32 i = 0; i < o->pair.n; i++)
    if (o->pair.at[i].way == WAY_ring && o->pair.at[i].out == n->out[0]) return true;
  return false;
}

/* ---- views of states ---- */

/* Storage of a placeholder or of a view of one; NULL: neither. */
static const Storage *alias_of(const States *o, BufId b) {
  const Storage *s = storage_of(o->l, prog_root(o->l->p, b));
  return s->kind == SK_state ? s : NULL;
}

/* Finds the axis of the placeholder `of` in another shape: dimension *at, with *scale steps per
 * step of the axis. */
static bool axis_in(States *o, BufId of, const Dim *dim, u32 rank, u32 *at, i64 *scale) {
  Prog *p = o->l->p;
  Dims *ds = p->dims;
  const Storage *s = alias_of(o, of);
  const Buf *b = prog_buf(p, prog_root(p, of));
  Dim inner = dim_product(ds, b->dim + s->axis + 1, b->rank - s->axis - 1);
  Dim outer = dim_product(ds, b->dim, s->axis), part = 1;
  if (!dim_is_const(inner)) { /* only unchanged */
    *at = s->axis;
    *scale = 1;
    bool same = rank == b->rank;
    for (u32 i = 0; same && i < rank; i++) same = dim[i] == b->dim[i];
    return same;
  }
  for (u32 j = rank; j-- > 0; part = dim_mul(ds, part, dim[j])) {
    if (!dim_is_const(part) || part == 0 || inner % part) return false;
    *at = j;
    *scale = inner / part;
    if (dim[j] == dim_mul(ds, b->dim[s->axis], *scale) && dim_product(ds, dim, j) == outer)
      return true;
  }
  return false;
}

bool states_view(States *o, BufId of, const Dim *dim, u32 rank) {
  u32 at;
  i64 scale;
  const Storage *s = alias_of(o, of);
  if (!s) return true;
  bool wrapped = s->ring && !s->head;
  return axis_in(o, of, dim, rank, &at, &scale) && (!wrapped || scale == 1);
}

/* ---- after the last node ---- */

/* Saves values that lie in the memory of a state before that is overwritten. */
static void copy_next(States *o) {
  Lower *l = o->l;
  BufId *from = NEWS(&l->c->scratch, BufId, o->pair.n);
  for (u32 i = 0; i < o->pair.n; i++) {
    const StatePlan *r = &o->pair.at[i];
    if (r->way != WAY_copy || r->in == r->out) continue;
    from[i] = l->buf[r->out];
    const Buf b = *prog_buf(l->p, from[i]);
    if (prog_buf(l->p, prog_root(l->p, from[i]))->space != BS_state) continue;
    BufId saved = prog_add_buf(l->p, BS_temp, b.dt, b.dim, b.rank, 0);
    lower_copy(l, from[i], saved);
    from[i] = saved;
  }
  for (u32 i = 0; i < o->pair.n; i++)
    if (from[i]) lower_copy(l, from[i], o->pair.at[i].next);
}

/* x + ring or x - ring: the other copy of the same element. */
static ExprId other_place(Prog *p, ExprId x, i64 ring) {
  ExprId low = ex_op2(p, OP_lt, ex_copy(p, x), ex_int(p, ring));
  ExprId up = ex_op2(p, OP_add, ex_copy(p, x), ex_int(p, ring));
  return ex_op3(p, OP_select, low, up, ex_op2(p, OP_sub, x, ex_int(p, ring)));
}

static void write_sizes(States *o) {
  Lower *l = o->l;
  Prog *p = l->p;
  if (!o->size.n && !o->rings.n && !o->fixed.n) return;
  Cursor at = lower_small(l, "state", FA_scalars);
  for (u32 i = 0; i < o->size.n; i++) {
    ExprId idx = ex_int(p, i);
    prog_store(p, &at, o->lens, &idx, 1, ex_dim(p, o->size.at[i].next));
  }
  for (u32 i = 0; i < o->fixed.n; i++) {
    ExprId idx = ex_int(p, i), now = ex_dim(p, dim_of_sym(p->dims, o->fixed.at[i]));
    prog_store(p, &at, o->sizes, &idx, 1, ex_op2(p, OP_add, now, ex_int(p, 1)));
  }
  for (u32 i = 0; i < o->rings.n; i++) {
    const StatePlan *r = &o->pair.at[o->rings.at[i]];
    ExprId idx = ex_int(p, i), to = ex_op2(p, OP_add, ex_var(p, r->head), ex_dim(p, r->new));
    prog_store(p, &at, o->heads, &idx, 1, ex_op2(p, OP_mod, to, ex_int(p, r->ring)));
  }
}

/* The buffer that replaces b, a placeholder or a view of one. */
static BufId real_buf(States *o, Map *made, const Storage *s, BufId b, u32 *at, i64 *scale) {
  Prog *p = o->l->p;
  Buf v = *prog_buf(p, b);
  Dim dim[MAX_RANK];
  if (!axis_in(o, b, v.dim, v.rank, at, scale))
    internal_error(p->c, LOC_NONE, "a view of a state has an unsupported shape");
  if (!v.alias) return s->mem;
  u32 *slot = map_put(made, b);
  for (u32 i = 0; i < v.rank; i++) dim[i] = v.dim[i];
  dim[*at] = dim_mul(p->dims, prog_buf(p, s->mem)->dim[s->axis], *scale);
  if (!*slot) *slot = prog_add_view(p, s->mem, dim, v.rank, v.name);
  return *slot;
}

/* Redirects an access from a placeholder, or a view of one, to the memory and returns its buffer.
 * In a ring the index along dimension *at starts at the head. */
static BufId move_access(States *o, Map *made, BufId b, ExprId *idx, u32 *at, i64 *scale) {
  Prog *p = o->l->p;
  const Storage *s = alias_of(o, b);
  BufId to = real_buf(o, made, s, b, at, scale);
  if (!s->head && s->ring) idx[*at] = ex_op2(p, OP_mod, idx[*at], ex_int(p, s->ring));
  if (!s->head) return to;
  ExprId from = ex_op2(p, OP_add, ex_var(p, s->head), ex_dim(p, s->offset));
  from = ex_op2(p, OP_mul, from, ex_int(p, *scale));
  idx[*at] = ex_op2(p, OP_add, from, idx[*at]);
  return to;
}

/* Adds a second store to the other copy of the ring. */
static void store_again(States *o, StmtId id, u32 at, i64 places) {
  Prog *p = o->l->p;
  Stmt twin = *prog_stmt(p, id);
  twin.a = ex_copy(p, twin.a);
  twin.idx = NEWS(&p->c->work, ExprId, twin.nidx);
  for (u32 i = 0; i < twin.nidx; i++) twin.idx[i] = ex_copy(p, prog_stmt(p, id)->idx[i]);
  twin.idx[at] = other_place(p, twin.idx[at], places);
  *vec_push(&p->c->work, &p->stmt) = twin;
  prog_stmt(p, id)->next = p->stmt.n - 1;
}

static void replace_aliases(States *o) {
  Prog *p = o->l->p;
  Map made = map_new(&p->c->scratch);
  u32 at, nexpr = p->nexpr, nstmt = p->stmt.n;
  i64 scale;
  if (!o->pair.n) return;
  for (ExprId e = 1; e < nexpr; e++) {
    Expr x = *prog_expr(p, e);
    if (x.kind != EX_load || !alias_of(o, x.ref)) continue;
    BufId to = move_access(o, &made, x.ref, x.arg, &at, &scale);
    prog_expr(p, e)->ref = to;
  }
  for (StmtId s = 1; s < nstmt; s++) {
    Stmt x = *prog_stmt(p, s);
    const Storage *w = x.kind == ST_store ? alias_of(o, x.buf) : NULL;
    if (!w) continue;
    BufId to = move_access(o, &made, x.buf, x.idx, &at, &scale);
    prog_stmt(p, s)->buf = to;
    if (w->head) store_again(o, s, at, w->ring * scale);
  }
  for (BufId b = 1; b < p->buf.n; b++)
    if (storage_of(o->l, b)->kind == SK_state) prog_buf(p, b)->space = BS_temp;
}

void states_end(States *o) {
  Prog *p = o->l->p;
  copy_next(o);
  write_sizes(o);
  replace_aliases(o);
  if (!o->size.n) return;
  p->dims = dims_copy(p->dims); /* the graph still uses them as sizes of parameters */
  for (u32 i = 0; i < o->size.n; i++) dim_syminfo(p->dims, o->size.at[i].sym)->kind = SY_data;
}
