/* schedule.c: adds fences, pins and kernel flags that control the register use of C compilers.
 *
 * In: kernels with accumulators in registers. Out: the same statements with fences, which keep
 * later loads from being hoisted above them, and pins, which keep loaded values in registers. Both
 * change when something is loaded, never what. C compilers move loads as if registers were free,
 * but lowering has budgeted them for accumulators. target.def lists the habits of compilers.
 *
 *   - After a loop: operands of the epilogue are loop-invariant, so compilers would hoist their
 *     loads out of the enclosing loops.
 *   - At the head of a short loop: compilers would unroll it and, for a sliding window, keep the
 *     loads of all steps.
 *   - Before unrolled loops: weights of a large window are shared by many tiles, so compilers would
 *     load them all before the first tile and spill them.
 *   - A vector that few products of one step use: compilers would load it for each of them as a
 *     memory operand, and loads are slower than products. With more uses they keep it anyway; if
 *     accumulators leave no register for it, loading again is right.
 *   - Integer sums (OP_maddubs, OP_dot_i16x2): compilers know that order does not matter, and would
 *     compute the products of several steps first, which spills. A loop with dot_i16x2 is nounroll,
 *     because gcc would hoist the loads of several steps.
 *   - A kernel of many products, and every kernel of a microcontroller, is noinline: inlined, its
 *     accumulators would spill. A kernel that
 *     follows several paths at once and stores only at their ends is marked tree_walk.
 *   - Products of bytes below 128 (dot_i8x4.low) take fewer instructions on some machines.
 *
 * needs: plan, because it adds statements to lists that other passes match  keeps: results bit for
 * bit breaks: nothing
 */
#include "pass/pass.h"

#include <math.h>

typedef struct Schedule {
  Prog *p;
  const Target *target;
  u32 lanes;         /* lanes of a register, in the current kernel */
  VEC(BufId) loaded; /* buffers loaded at the current position, in order */
} Schedule;

/* ---- loops and registers ---- */

static bool is_reg(Schedule *o, BufId b) {
  return prog_buf(o->p, b)->space == BS_reg;
}

static bool is_unrolled(const Stmt *s) {
  return s->kind == ST_for && s->flags & LF_unroll;
}

/* Is it a loop with a known trip count? Sets *n. */
static bool has_extent(Schedule *o, const Stmt *s, i64 *n) {
  i64 lo, hi;
  if (s->kind != ST_for || !ex_is_int(o->p, s->a, &lo) || !ex_is_int(o->p, s->b, &hi)) return false;
  *n = hi - lo;
  return true;
}

static bool has_loop(Schedule *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));)
    if (s->kind == ST_for && !is_unrolled(s)) return true;
  return false;
}

static bool stores_registers(Schedule *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));)
    if (s->kind == ST_store && is_reg(o, s->buf)) return true;
  return false;
}

/* ---- fences ---- */

static void add_loads(Schedule *o, ExprId id) {
  for (ExprVisit x = ex_visit(o->p, id); ex_next(&x);) {
    bool known = x.e->kind != EX_load || is_reg(o, x.e->ref);
    for (u32 i = 0; !known && i < o->loaded.n; i++) known = o->loaded.at[i] == x.e->ref;
    if (!known) *vec_push(&o->p->c->scratch, &o->loaded) = x.e->ref;
  }
}

/* Collects what is stored to memory, up to the next loop. */
static void add_stored(Schedule *o, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (s->kind == ST_for && !is_unrolled(s)) return;
    if (s->kind == ST_store && !is_reg(o, s->buf)) add_loads(o, s->a);
    add_stored(o, s->body);
  }
}

/* Collects elements that are broadcast. */
static void add_splats(Schedule *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));)
    if (s->kind == ST_let && prog_expr(o->p, s->a)->kind == EX_splat) add_loads(o, s->a);
}

/* Collects vectors that unrolled loops load into registers. */
static void add_many(Schedule *o, const Stmt *s, double times) {
  i64 n;
  const Expr *x = s->kind == ST_store ? prog_expr(o->p, s->a) : NULL;
  if (x && x->kind == EX_load && x->lanes > 1 && times > figures.moved_loads && is_reg(o, s->buf))
    add_loads(o, s->a);
  if (!is_unrolled(s) || !has_extent(o, s, &n)) return;
  for (StmtId id = s->body; id; id = prog_stmt(o->p, id)->next)
    add_many(o, prog_stmt(o->p, id), times * (double)n);
}

/* Adds fences for what was collected, and clears it. */
static void put_fences(Schedule *o, Cursor *at, u8 flags) {
  for (u32 i = 0; i < o->loaded.n; i++) {
    Stmt *s = prog_stmt(o->p, prog_insert(o->p, at, ST_fence));
    s->buf = o->loaded.at[i];
    s->flags = flags;
  }
  o->loaded.n = 0;
}

/* ---- pins ---- */

/* Reads and writes of register buffer b in one step of a loop. */
typedef struct Traffic {
  BufId b;
  double reads, writes;
  BufId seen[8]; /* all that are written */
  u32 nseen;
} Traffic;

static void see_written(Schedule *o, BufId b, Traffic *t) {
  for (u32 i = 0; i < t->nseen; i++)
    if (t->seen[i] == b) return;
  if (is_reg(o, b) && t->nseen < 8) t->seen[t->nseen++] = b;
}

static void see_traffic(Schedule *o, StmtId first, double times, Traffic *t) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    i64 n = 1;
    if (s->kind == ST_store && s->buf == t->b) t->writes += times;
    if (s->kind == ST_store) see_written(o, s->buf, t);
    for (ExprVisit x = ex_visit(o->p, s->a); ex_next(&x);)
      if (x.e->kind == EX_load && x.e->ref == t->b) t->reads += times;
    see_traffic(o, s->body, has_extent(o, s, &n) ? times * (double)n : times, t);
    see_traffic(o, s->other, times, t);
  }
}

static i64 elements(const Buf *b) {
  i64 n = 1;
  for (u32 i = 0; i < b->rank; i++) n *= b->dim[i];
  return n;
}

/* Should the store be pinned? loop: the innermost loop around it that is not unrolled; 0: none. */
static bool is_held(Schedule *o, const Stmt *s, StmtId loop) {
  Prog *p = o->p;
  const Expr *x = prog_expr(p, s->a);
  if (!is_reg(o, s->buf) || x->kind != EX_load || x->lanes == 1 || is_reg(o, x->ref) || !loop ||
      has_loop(o, prog_stmt(p, loop)->body))
    return false;
  Traffic t = {.b = s->buf};
  i64 each = elements(prog_buf(p, s->buf));
  i64 all = o->target->fma ? 1 : 2; /* the other factor, and a product */
  see_traffic(o, prog_stmt(p, loop)->body, 1, &t);
  for (u32 i = 0; i < t.nseen; i++) {
    const Buf *r = prog_buf(p, t.seen[i]);
    all += elements(r) * lane_pieces(r->lanes, o->lanes).n;
  }
  double steps = x->dt == DT_i32 ? floor(t.writes / (double)each)
                                 : 1; /* dot_i16x2 has several unrolled steps */
  return t.writes == steps * (double)each && t.reads > t.writes &&
         t.reads <= figures.held_reads * t.writes && t.nseen < 8 && all <= o->target->regs;
}

static bool adds_products(Schedule *o, const Stmt *s) {
  const Expr *x = prog_expr(o->p, s->a);
  return is_reg(o, s->buf) && x->lanes > 1 && x->kind == EX_op &&
         (x->op == OP_maddubs || x->op == OP_dot_i16x2);
}

/* Does a step of the loop itself, not of an inner loop, contain dot_i16x2? */
static bool adds_dot_i16x2(Schedule *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));) {
    w.skip = s->body && !is_unrolled(s);
    if (s->kind == ST_store && adds_products(o, s) && prog_expr(o->p, s->a)->op == OP_dot_i16x2)
      return true;
  }
  return false;
}

/* ---- kernels ---- */

/* Contents of a kernel, in vectors that fill a register. */
typedef struct Products {
  double fmas;  /* number in the code, after unrolling */
  bool of_ints; /* dot_i8x4, dot_i16x2 */
  bool walks;   /* has loops that end when nothing changes */
  bool
      writes; /* has loops of unknown trip count that store to memory, which excludes a tree walk */
} Products;

/* Does an operation on this piece of a vector fill a register? */
static bool fills(const Piece *piece, DType dt) {
  u32 bytes = piece->w * lane_bytes(dt);
  return piece->w > 1 && (bytes == 16 || bytes == 32 || bytes == 64);
}

/* Are all bytes below 128, because of a mask? */
static bool has_low_bytes(Prog *p, ExprId id) {
  const Expr *x = prog_expr(p, id);
  for (u32 i = 0; x->kind == EX_op && x->op == OP_and && i < 2; i++) {
    const Expr *m = prog_expr(p, x->arg[i]);
    if (m->kind == EX_splat) m = prog_expr(p, m->arg[0]);
    if (m->kind == EX_const && !(m->imm.i & 0x80808080)) return true;
  }
  return false;
}

static void mark_low(Prog *p, StmtId kernel) {
  const Stmt *s;
  for (StmtVisit w = prog_visit_one(p, kernel); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_op && x.e->op == OP_dot_i8x4)
        x.e->low = x.e->lanes > 1 && has_low_bytes(p, x.e->arg[0]);
}

static void see_product(Schedule *o, const Expr *x, double times, Products *all) {
  bool ints = x->op == OP_dot_i8x4 || x->op == OP_dot_i16x2;
  if (x->kind != EX_op || x->lanes == 1 || (!ints && x->op != OP_fma)) return;
  Pieces ps = lane_pieces(x->lanes, o->lanes);
  for (u32 i = 0; i < ps.n; i++) {
    if (!fills(&ps.at[i], x->dt)) continue;
    all->of_ints |= ints;
    if (!ints) all->fmas += times;
  }
}

static bool writes_memory(Schedule *o, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (s->kind == ST_store && !is_reg(o, s->buf)) return true;
    if (writes_memory(o, s->body) || writes_memory(o, s->other)) return true;
  }
  return false;
}

static void see_products(Schedule *o, StmtId first, double times, Products *all) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    i64 n;
    for (ExprVisit x = ex_visit_stmt(o->p, s); ex_next(&x);) see_product(o, x.e, times, all);
    if (s->kind == ST_while) {
      all->walks = true;
      all->writes |= writes_memory(o, s->body);
    }
    bool again = is_unrolled(s) && has_extent(o, s, &n);
    see_products(o, s->body, again ? times * ceil((double)n / (double)s->step) : times, all);
    see_products(o, s->other, times, all);
  }
}

/* Flags of a kernel with vectors. */
static u8 kernel_flags(Schedule *o, StmtId body) {
  Products all = {0};
  if (o->target->loops || !prog_is_special(o->p, body)) return 0;
  see_products(o, body, 1, &all);
  bool many = all.of_ints || all.fmas >= figures.noinline_fmas;
  return (many ? KF_noinline : 0) | (all.walks && !all.writes ? KF_tree_walk : 0);
}

static void visit_list(Schedule *o, Cursor at, StmtId loop, bool handed);

/* whole: the loop is the kernel, or one of the collapsed loops that threads share; these are not
 * printed as a loop. */
static void visit_for(Schedule *o, StmtId id, Cursor *at, StmtId loop, bool whole) {
  Stmt s = *prog_stmt(o->p, id);
  i64 n;
  if (is_unrolled(&s)) {
    add_many(o, &s, 1);
    put_fences(o, at, FF_spills);
  }
  if (is_unrolled(&s) || whole) {
    at->last = id;
    visit_list(o, (Cursor){.owner = id}, loop, whole);
    return;
  }
  bool sums = stores_registers(o, s.body);
  if (adds_dot_i16x2(o, s.body)) prog_stmt(o->p, id)->flags |= LF_nounroll;
  visit_list(o, (Cursor){.owner = id}, id, false);
  if (sums && has_extent(o, &s, &n) && (double)n <= figures.written_out && !has_loop(o, s.body)) {
    add_splats(o, s.body);
    put_fences(o, &(Cursor){.owner = id}, 0);
  }
  at->last = id;
  if (!sums) return;
  add_stored(o, s.next);
  put_fences(o, at, 0);
}

/* Clears existing marks: the program may have been parsed and be for another machine. */
static void visit_list(Schedule *o, Cursor at, StmtId loop, bool handed) {
  Prog *p = o->p;
  StmtId first = *prog_link(p, &at);
  for (StmtId id = first, next; id; id = next) {
    Stmt *s = prog_stmt(p, id);
    next = s->next;
    if (s->kind == ST_fence) {
      *prog_link(p, &at) = next;
      continue;
    }
    if (s->kind == ST_store) {
      s->flags &= SF_prefetch;
      if (is_held(o, s, loop) || adds_products(o, s)) s->flags |= SF_pin;
    }
    if (s->kind == ST_for) {
      s->flags &= (u8)~LF_nounroll;
      bool whole = handed && id == first && !next && s->flags & LF_parallel;
      visit_for(o, id, &at, loop, whole);
      continue;
    }
    at.last = id;
    visit_list(o, (Cursor){.owner = id}, loop, false);
    visit_list(o, (Cursor){.owner = id, .other = true}, loop, false);
  }
}

void schedule(PassCtx *u) {
  Schedule o = {.p = u->p, .target = u->target};
  const Stmt *s;
  if (u->target->lanes == 1 && !u->target->micro) return;
  for (StmtVisit w = prog_visit(u->p, u->p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    w.skip = true;
    if (u->target->micro) {
      prog_stmt(u->p, w.id)->flags = KF_noinline;
      continue;
    }
    mark_low(u->p, w.id);
    if (u->target->warp) continue; /* its compiler does not need help */
    o.lanes = prog_lanes(u->p, s->body, u->target);
    visit_list(&o, (Cursor){.owner = w.id}, 0, u->p->threads > 1);
    prog_stmt(u->p, w.id)->flags = kernel_flags(&o, prog_stmt(u->p, w.id)->body);
  }
}
