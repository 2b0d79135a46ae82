/* prog_ready.c: may the kernels of a program become functions of their own?
 *
 * In: a program that prog_check has passed. Out: nothing, or the first thing that back ends which
 * make code need not know how to do, as ERR_unsupported: passes make no such programs, texts can
 * hold them. A kernel does not end the run (a `require` stands in the entry), takes scalars and
 * buffers from outside but no vectors, and has its registers to itself. Engines that walk a program
 * do without all that.
 */
#include "ir/prog.h"

typedef struct Ready {
  Prog *p;
  StmtId place;  /* 1 + the kernel at hand; 1: the entry */
  StmtId *home;  /* by variable: the place that declares it; 0: a symbol, or none yet */
  StmtId *owner; /* by buffer of registers: the place that uses it; 0: none yet */
  Loc loc;
} Ready;

static void see_var(Ready *o, VarId v) {
  const Var *x = prog_var(o->p, v);
  if (x->lanes > 1 && o->home[v] != o->place)
    fail(o->p->c, ERR_unsupported, o->loc, "a kernel takes no vectors from outside: variable %s",
         show(o->p->c, x->name));
}

static void see_buf(Ready *o, BufId b) {
  const Buf *x = prog_buf(o->p, b);
  if (x->space != BS_reg) return;
  if (o->owner[b] && o->owner[b] != o->place)
    fail(o->p->c, ERR_unsupported, o->loc, "registers %s are used by two kernels",
         show(o->p->c, x->name));
  o->owner[b] = o->place;
}

static void see_list(Ready *o, StmtId first) {
  StmtId place = o->place;
  Loc around = o->loc;
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) o->loc = s->loc;
    if (s->kind == ST_require && place > 1)
      fail(o->p->c, ERR_unsupported, o->loc, "a condition that ends the run stands in a kernel");
    for (ExprWalk x = ex_walk_stmt(o->p, s); ex_next(&x);) {
      if (x.e->kind == EX_var) see_var(o, x.e->ref);
      if (x.e->kind == EX_load) see_buf(o, x.e->ref);
    }
    if (s->kind == ST_store) see_buf(o, s->buf);
    if (s->kind == ST_let) o->home[s->var] = place;
    if (s->kind == ST_set) see_var(o, s->var);
    if (s->kind == ST_kernel) o->place = id + 1;
    see_list(o, s->body);
    see_list(o, s->other);
    o->place = place;
  }
  o->loc = around;
}

void prog_ready(Prog *p) {
  Arena *a = &p->c->scratch;
  Mark m = arena_mark(a);
  Ready o = {.p = p, .place = 1, .loc = LOC_NONE};
  o.home = NEWS(a, StmtId, p->var.n);
  o.owner = NEWS(a, StmtId, p->buf.n);
  see_list(&o, p->body);
  arena_rewind(a, m);
}
