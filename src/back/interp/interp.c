/* interp.c: executes a program literally: the oracle for lowering and for every other engine.
 *
 * In: a checked program and one tensor per input. Out: one tensor per output. Method: visits
 * statements and expressions and evaluates every operation with scalar_eval. Every index is checked
 * against the actual extents; a violation is a compiler bug and ends the run. Loop flags (parallel,
 * unroll) are ignored. It is slow and simple; vm/ is the fast engine. */
#include "back/back.h"

#include <string.h>
#include "ir/prog/prog_mem.h"

typedef struct Run Run;   /* one execution of a program */
typedef struct View View; /* a buffer at run time */

/* dim, stride, n and data are valid while `ready`. If dimensions depend on data, they are
 * recomputed at the first use after a symbol was set. */
struct View {
  u8 *data;
  BufId root;  /* buffer that owns the memory */
  BufId other; /* root: its last view; view: the previous one; 0: none */
  u32 input;   /* index of a caller's array */
  bool fixed;  /* does not change during a run */
  u32 ready;   /* Run.set when computed; 0: not computed */
  u32 size;    /* bytes of an element with all lanes */
  u32 rank;
  u64 n;             /* elements */
  i64 *dim, *stride; /* rank entries; strides in elements */
};

typedef struct Mem {
  u8 *data;
  u64 cap; /* bytes */
} Mem;

struct Run {
  Ctx *c;
  Prog *p;
  InterpOptions o;
  Arena *a;    /* temporary memory */
  Arena *keep; /* results */
  Tensor *const *in;
  View *view;   /* by buffer */
  Mem *mem;     /* by buffer; only roots have one */
  Scalar **var; /* by variable: its lanes */
  i64 *env;     /* by symbol */
  u8 *base;     /* the arena of a planned program */
  BufId *owner; /* by byte of the arena: root of the last store; NULL: not watched */
  u64 steps;    /* iterations so far */
  u32 set;      /* 1 + number of symbol assignments; invalidates views that depend on data */
  Loc loc;      /* current statement, for messages */
};

/* ---- buffers ---- */

static void shape(Run *r, BufId b) {
  View *v = &r->view[b];
  const Buf *bp = prog_buf(r->p, b);
  u64 n = 1;
  for (u32 i = 0; i < v->rank; i++) v->dim[i] = dim_eval(r->p->dims, bp->dim[i], r->env);
  if (!shape_count(v->dim, v->rank, &n))
    fail(r->c, ERR_system, r->loc, "interp: buffer %s has more than 2^40 elements",
         show(r->c, bp->name));
  v->n = n;
  for (i64 i = (i64)v->rank - 1, s = 1; i >= 0; i--) {
    v->stride[i] = s;
    s *= v->dim[i] ? v->dim[i] : 1;
  }
}

/* Memory for at least n bytes. It doubles, so that appending in a loop is linear. */
static void reserve(Mem *m, u64 n, Arena *a) {
  if (m->data && n <= m->cap) return;
  u64 cap = m->cap * 2 > n ? m->cap * 2 : n;
  u8 *data = arena_array(a, 1, cap ? cap : 1);
  if (m->cap) memcpy(data, m->data, m->cap);
  m->data = data;
  m->cap = cap;
}

/* Extents that depend on symbols set during the run are checked at the first use. */
static void check_input(Run *r, BufId b) {
  const View *v = &r->view[b];
  u32 pos = v->input;
  for (u32 i = 0; i < v->rank; i++)
    if (r->in[pos]->dim[i] != v->dim[i])
      fail(r->c, ERR_input, r->loc, "input %s: dimension %u is %lld, expected %lld",
           show(r->c, prog_buf(r->p, b)->name), i, (long long)r->in[pos]->dim[i],
           (long long)v->dim[i]);
}

static View *view_get(Run *r, BufId b) {
  View *v = &r->view[b];
  if (v->fixed ? v->ready != 0 : v->ready == r->set) return v;
  if (b != v->root) {
    View *root = view_get(r, v->root);
    shape(r, b);
    if (v->n > root->n)
      fail(r->c, ERR_system, r->loc, "interp: view %s has %llu elements, its memory %llu",
           show(r->c, prog_buf(r->p, b)->name), (unsigned long long)v->n,
           (unsigned long long)root->n);
    v->data = root->data;
  } else {
    shape(r, b);
    if (prog_buf(r->p, b)->space == BS_in) check_input(r, b);
    reserve(&r->mem[b], v->n * v->size, r->a);
    if (v->data != r->mem[b].data) {
      v->data = r->mem[b].data;
      for (BufId k = v->other; k; k = r->view[k].other) r->view[k].ready = 0;
    }
  }
  v->ready = r->set;
  return v;
}

/* Memory of a caller, used in place if it is aligned. */
static void borrow(Run *r, BufId b, const Tensor *t) {
  Mem *m = &r->mem[b];
  u32 align = dtype_bytes(t->dt);
  m->cap = tensor_bytes(t);
  m->data = (u8 *)t->data; /* never written: the checker refuses stores to it */
  if (!m->data || (uintptr_t)m->data % align) m->data = arena_copy(r->a, t->data, m->cap);
}

InterpState *interp_state(Prog *p, Arena *a) {
  InterpState *s = NEW(a, InterpState);
  s->at = NEWS(a, u8 *, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    Sym sym;
    u64 bytes;
    if (prog_buf(p, b)->space != BS_state) continue;
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    s->at[b] = NEWS(a, u8, bytes ? bytes : 1);
    const Tensor *first = prog_buf(p, b)->data;
    if (first) memcpy(s->at[b], first->data, tensor_bytes(first));
  }
  return s;
}

/* State has its own memory, since it outlives the run. */
static void add_state(Run *r) {
  Prog *p = r->p;
  const InterpState *s = r->o.state ? r->o.state : interp_state(p, r->a);
  for (BufId b = 1; b < p->buf.n; b++) {
    Sym sym;
    u64 bytes;
    if (s->at[b] && mem_bytes(p, b, &bytes, &sym)) r->mem[b] = (Mem){s->at[b], bytes};
  }
}

/* One block for all planned buffers, filled with a pattern that no program should read. */
static void add_arena(Run *r) {
  Prog *p = r->p;
  r->base = arena_array(r->a, 1, p->arena_bytes ? p->arena_bytes : 1);
  if (r->o.watch) r->owner = NEWS(r->a, BufId, p->arena_bytes);
  memset(r->base, 0xAA, p->arena_bytes);
  for (BufId b = 1; b < p->buf.n; b++) {
    Sym sym;
    u64 bytes;
    const Buf *bp = prog_buf(p, b);
    if (!prog_is_planned(bp) || bp->space == BS_state) continue;
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    r->mem[b] = (Mem){r->base + bp->offset, bytes};
  }
}

static void add_views(Run *r, Tensor *const *in) {
  Prog *p = r->p;
  r->view = NEWS(r->a, View, p->buf.n);
  r->mem = NEWS(r->a, Mem, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *bp = prog_buf(p, b);
    View *v = &r->view[b];
    v->root = prog_root(p, b);
    v->rank = bp->rank;
    v->size = dtype_bytes(bp->dt) * bp->lanes;
    v->dim = NEWS(r->a, i64, 2 * bp->rank);
    v->stride = v->dim + bp->rank;
    v->fixed = true;
    for (u32 i = 0; i < bp->rank; i++)
      if (dim_is_data(p->dims, bp->dim[i])) v->fixed = false;
    if (bp->space == BS_const) borrow(r, b, bp->data);
  }
  for (BufId b = 1; b < p->buf.n; b++) {
    View *v = &r->view[b], *root = &r->view[v->root];
    if (v == root) continue;
    v->other = root->other;
    root->other = b;
  }
  for (u32 i = 0; i < p->in.n; i++) {
    borrow(r, p->in.at[i], in[i]);
    r->view[p->in.at[i]].input = i;
  }
  add_state(r);
  if (p->planned) add_arena(r);
  for (BufId b = 1; b < p->buf.n; b++) {
    View *v = &r->view[b];
    if (!v->fixed) r->view[v->root].fixed = false;
  }
  for (BufId b = 1; b < p->buf.n; b++)
    if (!r->view[r->view[b].root].fixed) r->view[b].fixed = false;
  for (u32 i = 0; i < p->out.n; i++) {
    BufId b = p->out.at[i];
    if (!r->view[b].fixed) continue;
    shape(r, b);
    reserve(&r->mem[b], r->view[b].n * r->view[b].size, r->keep);
  }
}

static void add_vars(Run *r) {
  Prog *p = r->p;
  r->var = NEWS(r->a, Scalar *, p->var.n);
  for (VarId v = 1; v < p->var.n; v++) {
    const Var *vp = prog_var(p, v);
    r->var[v] = NEWS(r->a, Scalar, vp->lanes);
    if (vp->sym >= 0) r->var[v]->i = r->env[vp->sym];
  }
}

/* ---- expressions ---- */

static Scalar eval(Run *r, ExprId id); /* one lane */

static _Noreturn void out_of_bounds(Run *r, BufId b, u32 axis, i64 index, u32 lanes) {
  const Buf *bp = prog_buf(r->p, b);
  fail(r->c, ERR_system, r->loc,
       "interp: index %lld%s out of bounds: dimension %u of %s has extent %lld", (long long)index,
       lanes > 1 ? " (of a vector)" : "", axis, show(r->c, bp->name),
       (long long)r->view[b].dim[axis]);
}

/* Tracks which buffer owns each byte of the arena. A vector may include lanes after the last
 * channel that were never stored, since no result depends on them. At least one lane must be
 * valid. */
static void watch(Run *r, BufId b, const u8 *at, u32 bytes, bool store) {
  BufId root = r->view[b].root;
  const Buf *bp = prog_buf(r->p, root);
  if (!r->owner || !prog_is_planned(bp) || bp->space == BS_state) return;
  BufId *owner = r->owner + (at - r->base);
  u32 mine = 0, size = dtype_bytes(bp->dt);
  for (u32 i = 0; i < bytes; i++) {
    if (store) owner[i] = root;
    mine += owner[i] == root;
  }
  if (mine == bytes || (bytes > size && mine)) return;
  fail(r->c, ERR_system, r->loc, "interp: a read of %s finds %s",
       show(r->c, prog_buf(r->p, b)->name),
       *owner ? "data of another buffer" : "memory that was never written");
}

/* Address of an element; lanes: number of elements along the last axis; row: added to the index of
 * the axis before. */
static u8 *locate(Run *r, BufId b, const ExprId *idx, u32 lanes, u32 row, bool store) {
  i64 at[MAX_RANK];
  u32 rank = r->view[b].rank;
  for (u32 i = 0; i < rank; i++) at[i] = eval(r, idx[i]).i;
  const View *v = view_get(r, b);
  i64 off = 0;
  if (row) at[rank - 2] += row;
  for (u32 i = 0; i < rank; i++) {
    i64 last = i + 1 == rank ? (i64)lanes - 1 : 0;
    if (at[i] < 0 || at[i] >= v->dim[i] - last) out_of_bounds(r, b, i, at[i], lanes);
    off += at[i] * v->stride[i];
  }
  u8 *to = v->data + (u64)off * v->size;
  watch(r, b, to, lanes * v->size, store);
  return to;
}

static Scalar bitcast(DType from, DType to, Scalar x) {
  u8 raw[16] = {0};
  scalar_store(from, raw, x);
  return scalar_load(to, raw);
}

static Scalar apply(Prog *p, const Expr *e, const Scalar *arg) {
  DType from = prog_expr(p, e->arg[e->narg - 1])->dt;
  if (e->op == OP_cast) return scalar_cast(from, e->dt, arg[0], e->sat);
  if (e->op == OP_bitcast) return bitcast(from, e->dt, arg[0]);
  return scalar_eval_as(p->math, e->op, from, arg);
}

/* f32 with the mantissa of tf32, rounded to nearest, ties away from zero. */
static float as_tf32(double x) {
  float f = (float)x;
  u32 bits;
  memcpy(&bits, &f, 4);
  if ((bits >> 23 & 255) != 255) bits = (bits + 0x1000) & ~(u32)0x1fff;
  memcpy(&f, &bits, 4);
  return f;
}

static void eval_lanes(Run *r, ExprId id, Scalar *out);

/* Fragments. A product adds in the order of k, in f32. */
static void eval_fragment(Run *r, const Expr *e, Scalar *out) {
  Prog *p = r->p;
  u32 rows = e->rows, columns = e->lanes / rows, step = dtype_bytes(e->dt);
  if (e->kind == EX_splat) {
    Scalar x = eval(r, e->arg[0]);
    for (u32 i = 0; i < e->lanes; i++) out[i] = x;
  } else if (e->kind == EX_turn) {
    Scalar *from = NEWS(r->a, Scalar, e->lanes);
    eval_fragment(r, prog_expr(p, e->arg[0]), from);
    for (u32 i = 0; i < e->lanes; i++) out[i] = from[i % columns * rows + i / columns];
  } else if (e->kind == EX_load) {
    for (u32 i = 0; i < rows; i++) {
      const u8 *from = locate(r, e->ref, e->arg, columns, i, false);
      for (u32 j = 0; j < columns; j++) out[i * columns + j] = scalar_load(e->dt, from + j * step);
    }
  } else {
    const Expr *a = prog_expr(p, e->arg[0]);
    u32 n = a->lanes / a->rows;
    Scalar *x = NEWS(r->a, Scalar, 2 * FRAG_LANES), *y = x + FRAG_LANES;
    eval_lanes(r, e->arg[0], x);
    eval_lanes(r, e->arg[1], y);
    eval_lanes(r, e->arg[2], out);
    for (u32 i = 0; i < 2 * FRAG_LANES && a->dt == DT_f32; i++) x[i].f = as_tf32(x[i].f);
    for (u32 i = 0; i < e->lanes; i++)
      for (u32 k = 0; k < n; k++)
        out[i].f =
            (float)out[i].f + (float)x[i / columns * n + k].f * (float)y[i % columns * n + k].f;
  }
}

static void eval_lanes(Run *r, ExprId id, Scalar *out) {
  Prog *p = r->p;
  const Expr *e = prog_expr(p, id);
  bool box = e->rows && e->kind != EX_var && (e->kind != EX_load || !prog_buf(p, e->ref)->rows);
  if (box) {
    Mark m = arena_mark(r->a);
    eval_fragment(r, e, out);
    arena_rewind(r->a, m);
    return;
  }
  Scalar arg[3][MAX_LANES], one[3];
  u32 step = dtype_bytes(e->dt);
  const u8 *from;
  switch (e->kind) {
  case EX_var: memcpy(out, r->var[e->ref], e->lanes * sizeof *out); return;
  case EX_load:
    from = locate(r, e->ref, e->arg, prog_buf(p, e->ref)->lanes > 1 ? 1 : e->lanes, 0, false);
    for (u32 i = 0; i < e->lanes; i++) out[i] = scalar_load(e->dt, from + i * step);
    return;
  case EX_op:
    for (u32 k = 0; k < e->narg; k++) eval_lanes(r, e->arg[k], arg[k]);
    for (u32 i = 0; i < e->lanes; i++) {
      for (u32 k = 0; k < e->narg; k++) one[k] = arg[k][i];
      out[i] = apply(p, e, one);
    }
    return;
  case EX_splat:
    one[0] = eval(r, e->arg[0]);
    for (u32 i = 0; i < e->lanes; i++) out[i] = one[0];
    return;
  case EX_shuffle: {
    u32 n = prog_expr(p, e->arg[0])->lanes;
    for (u32 k = 0; k < e->narg; k++) {
      eval_lanes(r, e->arg[k], arg[0]);
      for (u32 i = 0; i < e->lanes; i++)
        if (e->pick[i] / n == k) out[i] = arg[0][e->pick[i] % n];
    }
    return;
  }
  default: out[0] = eval(r, id); return;
  }
}

static Scalar reduce(Run *r, const Expr *e) {
  Scalar lane[MAX_LANES], pair[2];
  const Expr *a = prog_expr(r->p, e->arg[0]);
  eval_lanes(r, e->arg[0], lane);
  pair[0] = lane[0];
  for (u32 i = 1; i < a->lanes; i++) {
    pair[1] = lane[i];
    pair[0] = scalar_eval(e->op, e->dt, pair);
  }
  return pair[0];
}

static Scalar quad(Run *r, const Expr *e) {
  Scalar lane[4];
  u32 all = 0;
  eval_lanes(r, e->arg[0], lane);
  if (prog_expr(r->p, e->arg[0])->lanes == 2)
    all = (u32)(u16)lane[0].i | (u32)(u16)lane[1].i << 16;
  else
    for (u32 i = 0; i < 4; i++) all |= (u32)(u8)lane[i].i << 8 * i;
  return (Scalar){.i = (i32)all};
}

static Scalar eval(Run *r, ExprId id) {
  const Expr *e = prog_expr(r->p, id);
  Scalar arg[3];
  switch (e->kind) {
  case EX_const: return e->imm;
  case EX_var: return *r->var[e->ref];
  case EX_load: return scalar_load(e->dt, locate(r, e->ref, e->arg, 1, 0, false));
  case EX_op:
    for (u32 k = 0; k < e->narg; k++) arg[k] = eval(r, e->arg[k]);
    return apply(r->p, e, arg);
  case EX_hreduce: return reduce(r, e);
  case EX_quad: return quad(r, e);
  case EX_random:
    arg[0] = eval(r, e->arg[0]);
    arg[1] = eval(r, e->arg[1]);
    arg[2].f = random_unit(e->dt, (u64)arg[0].i, r->o.seed, (u64)arg[1].i);
    return arg[2];
  default: eval_lanes(r, id, arg); return arg[0]; /* splat and shuffle to one lane */
  }
}

/* ---- statements ---- */

static void assign(Run *r, const Stmt *s) {
  const Var *v = prog_var(r->p, s->var);
  if (v->lanes > 1) {
    Scalar lane[FRAG_LANES];
    eval_lanes(r, s->a, lane);
    memcpy(r->var[s->var], lane, v->lanes * sizeof *lane);
    return;
  }
  Scalar x = eval(r, s->a);
  *r->var[s->var] = x;
  if (v->sym < 0) return;
  const SymInfo *si = dim_syminfo(r->p->dims, (Sym)v->sym);
  if (x.i < si->lo || x.i > si->hi)
    fail(r->c, ERR_input, r->loc, "%s", show_text(r->c, sym_range_error(r->c, si)));
  r->env[v->sym] = x.i;
  r->set++;
}

static void store(Run *r, const Stmt *s) {
  const Expr *e = prog_expr(r->p, s->a);
  Scalar lane[FRAG_LANES];
  u32 step = dtype_bytes(e->dt), columns = e->rows ? e->lanes / e->rows : e->lanes;
  if (e->lanes == 1)
    lane[0] = eval(r, s->a);
  else
    eval_lanes(r, s->a, lane);
  bool reg = prog_buf(r->p, s->buf)->lanes > 1;
  for (u32 i = 0; i < (e->rows && !reg ? e->rows : 1); i++) {
    u8 *to = locate(r, s->buf, s->idx, reg ? 1 : columns, i, true);
    for (u32 j = 0; j < (reg ? e->lanes : columns); j++)
      scalar_store(e->dt, to + j * step, lane[i * columns + j]);
  }
}

static void exec(Run *r, StmtId first);

static void count_step(Run *r) {
  if (r->o.max_steps && r->steps++ == r->o.max_steps)
    fail(r->c, ERR_unsupported, r->loc,
         "the run takes more than %llu loop iterations, the limit of --max-steps",
         (unsigned long long)r->o.max_steps);
}

static void loop(Run *r, const Stmt *s) {
  i64 lo = eval(r, s->a).i, hi = eval(r, s->b).i;
  if (lo >= hi) return;
  u64 n = ((u64)hi - (u64)lo - 1) / (u64)s->step + 1;
  for (u64 k = 0; k < n; k++) {
    count_step(r);
    r->var[s->var]->i = (i64)((u64)lo + k * (u64)s->step);
    exec(r, s->body);
  }
}

static void exec(Run *r, StmtId first) {
  Loc around = r->loc;
  for (StmtId id = first; id; id = prog_stmt(r->p, id)->next) {
    const Stmt *s = prog_stmt(r->p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) r->loc = s->loc;
    switch (s->kind) {
    case ST_for: loop(r, s); break;
    case ST_while:
      for (; eval(r, s->a).i; exec(r, s->body)) count_step(r);
      break;
    case ST_if: exec(r, eval(r, s->a).i ? s->body : s->other); break;
    case ST_let:
    case ST_set: assign(r, s); break;
    case ST_store: store(r, s); break;
    case ST_kernel: exec(r, s->body); break;
    case ST_require:
      if (!eval(r, s->a).i) fail(r->c, ERR_input, r->loc, "%s", show_text(r->c, s->label));
      break;
    case ST_fence:
    case ST_prefetch:
    case ST_commit:
    case ST_await:
    case ST_COUNT: break;
    }
  }
  r->loc = around;
}

void interp_run(Prog *p, const InterpOptions *o, Tensor *const *in, Tensor **out, Arena *a) {
  Ctx *c = p->c;
  bool own = a != &c->scratch;
  Mark mark = arena_mark(&c->scratch);
  Run r = {.c = c, .p = p, .a = &c->scratch, .keep = a, .in = in, .loc = LOC_NONE, .set = 1};
  if (o) r.o = *o;
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    if (in[i]->dt != b->dt || in[i]->rank != b->rank)
      fail(c, ERR_input, LOC_NONE, "input %s is %s of rank %u, expected %s of rank %u",
           show(c, b->name), dtype_info[in[i]->dt].name, in[i]->rank, dtype_info[b->dt].name,
           b->rank);
  }
  r.env = prog_bind(r.p, in, r.a);
  add_views(&r, in);
  add_vars(&r);
  exec(&r, p->body);
  for (u32 i = 0; i < p->out.n; i++) {
    BufId b = p->out.at[i];
    const View *v = view_get(&r, b);
    i64 *dim = arena_copy(a, v->dim, v->rank * sizeof *dim);
    void *data = v->fixed ? v->data : arena_copy(a, v->data, v->n * v->size);
    out[i] = tensor_wrap(a, prog_buf(p, b)->dt, dim, v->rank, data);
  }
  if (own) arena_rewind(&c->scratch, mark);
}
