/* prog_check_kernels.c: can the kernels of a program become functions?
 *
 * In: a program verified by prog_check. Out: nothing, or ERR_unsupported for the first construct
 * that code generators do not handle. Passes never produce these; texts can.
 * - A symbol must be required to be in its bounds wherever it is set (pass bounds), because memory
 * is planned by them.
 * - A kernel does not end the run: what it requires must be required again after it.
 * - A kernel takes scalars and buffers from outside but no vectors, does not share register
 * buffers, and is not nested in another.
 * - Loops over the warps or threads of a block are for GPUs.
 * Interpreters do not need any of this. */
#include "ir/prog/prog.h"

enum { OUTSIDE = 1 }; /* place of statements outside kernels: the entry function */

typedef struct KernelCheck {
  Prog *p;
  StmtId place;       /* 1 + the current kernel, or OUTSIDE */
  StmtId *home;       /* by variable: the place that declares it; 0: a symbol, or none yet */
  StmtId *owner;      /* by register buffer: the place that uses it; 0: none yet */
  const Range *range; /* by variable */
  Loc loc;
} KernelCheck;

bool ex_reads_state(Prog *p, ExprId e) {
  for (ExprVisit w = ex_visit(p, e); ex_next(&w);)
    if (w.e->kind == EX_load && prog_buf(p, prog_root(p, w.e->ref))->space == BS_state) return true;
  return false;
}

/* Reads only the state, at constant indices: the same value everywhere. */
static bool is_of_state(Prog *p, ExprId e) {
  for (ExprVisit x = ex_visit(p, e); ex_next(&x);)
    if (x.e->kind == EX_var && prog_var(p, x.e->ref)->sym < 0) return false;
  return ex_reads_state(p, e);
}

/* Bounds on a value read from state mention the state: a full state is a different error than a
 * wrong size. */
ExprId prog_bound(Prog *p, const Stmt *s, const Range *range) {
  if (s->kind != ST_set || prog_var(p, s->var)->sym < 0) return 0;
  const SymInfo *si = dim_syminfo(p->dims, (Sym)prog_var(p, s->var)->sym);
  Range r = ex_range(p, s->a, range);
  ExprId cond = 0;
  for (u32 upper = 0; upper < 2; upper++) {
    if (upper ? r.hi <= si->hi : r.lo >= si->lo) continue;
    ExprId x = is_of_state(p, s->a) ? ex_copy(p, s->a) : ex_var(p, s->var);
    ExprId one = ex_op2(p, upper ? OP_le : OP_ge, x, ex_int(p, upper ? si->hi : si->lo));
    cond = cond ? ex_op2(p, OP_and, cond, one) : one;
  }
  return cond;
}

StmtId prog_required(Prog *p, StmtId first, ExprId cond) {
  StmtId id = first;
  for (; id && prog_stmt(p, id)->kind == ST_require; id = prog_stmt(p, id)->next)
    if (ex_same(p, prog_stmt(p, id)->a, cond)) return id;
  return 0;
}

static void see_var(KernelCheck *o, VarId v) {
  const Var *x = prog_var(o->p, v);
  if (x->lanes > 1 && o->home[v] != o->place)
    fail(o->p->c, ERR_unsupported, o->loc,
         "a kernel cannot take a vector from outside: variable %s", show(o->p->c, x->name));
}

static void see_buf(KernelCheck *o, BufId b) {
  const Buf *x = prog_buf(o->p, b);
  if (x->space != BS_reg) return;
  if (o->owner[b] && o->owner[b] != o->place)
    fail(o->p->c, ERR_unsupported, o->loc, "register buffer %s is used by two kernels",
         show(o->p->c, x->name));
  o->owner[b] = o->place;
}

static void see_kernel(KernelCheck *o, const Stmt *kernel) {
  const Stmt *s;
  if (o->place != OUTSIDE)
    fail(o->p->c, ERR_unsupported, o->loc, "a kernel is nested in another one");
  for (StmtVisit w = prog_visit(o->p, kernel->body); (s = prog_next(&w));)
    if (s->kind == ST_require && !prog_required(o->p, kernel->next, s->a))
      fail(o->p->c, ERR_unsupported, s->loc,
           "a condition required in a kernel is not required again after it");
}

static void see_set(KernelCheck *o, const Stmt *s) {
  ExprId cond = prog_bound(o->p, s, o->range);
  see_var(o, s->var);
  if (cond && !prog_required(o->p, s->next, cond))
    fail(o->p->c, ERR_unsupported, o->loc,
         "symbol %s is set without a check of its bounds; run the pass bounds",
         show(o->p->c, prog_var(o->p, s->var)->name));
}

static void see_list(KernelCheck *o, StmtId first) {
  StmtId place = o->place;
  Loc around = o->loc;
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) o->loc = s->loc;
    for (ExprVisit x = ex_visit_stmt(o->p, s); ex_next(&x);) {
      if (x.e->kind == EX_var) see_var(o, x.e->ref);
      if (x.e->kind == EX_load) see_buf(o, x.e->ref);
    }
    if (s->kind == ST_for && s->flags & LF_team && o->p->threads != GPU_THREADS)
      fail(o->p->c, ERR_unsupported, o->loc, "warp and thread loops are for GPUs only");
    if (s->kind == ST_store) see_buf(o, s->buf);
    if (s->kind == ST_let) o->home[s->var] = place;
    if (s->kind == ST_set) see_set(o, s);
    if (s->kind == ST_kernel) {
      see_kernel(o, s);
      o->place = id + 1;
    }
    see_list(o, s->body);
    see_list(o, s->other);
    o->place = place;
  }
  o->loc = around;
}

void prog_check_kernels(Prog *p) {
  Arena *a = &p->c->scratch;
  Mark m = arena_mark(a);
  KernelCheck o = {.p = p, .place = OUTSIDE, .range = prog_ranges(p, NULL, a), .loc = LOC_NONE};
  o.home = NEWS(a, StmtId, p->var.n);
  o.owner = NEWS(a, StmtId, p->buf.n);
  see_list(&o, p->body);
  arena_rewind(a, m);
}
