/* bounds.c: no run goes on with a size that memory was not planned for.
 *
 * In: a program that sets symbols to what it computes. Out: the same one with a `require` behind
 * every such set whose value may leave the bounds of its symbol. One in a kernel ends the kernel;
 * since that is a function of its own for back ends, the same one stands behind the kernel, where
 * it ends the run.
 *
 * needs: plan, for it adds to lists whose shapes other passes look at  keeps: results bit for bit
 * breaks: nothing
 */
#include "pass/pass.h"

typedef struct SizeChecks {
  Prog *p;
  const Range *range; /* by variable */
  Loc loc;            /* of the statements at hand */
  VEC(StmtId) inside; /* requires of the kernel at hand */
} SizeChecks;

/* Behind at->last, unless it stands there. */
static StmtId add(SizeChecks *o, Cursor *at, ExprId cond, Str message) {
  StmtId there = prog_required(o->p, *prog_link(o->p, at), cond);
  if (there) return there;
  Stmt *s = prog_stmt(o->p, prog_insert(o->p, at, ST_require));
  s->a = cond;
  s->label = message;
  s->loc = o->loc;
  return at->last;
}

static void visit_list(SizeChecks *o, Cursor at, bool in_kernel) {
  Prog *p = o->p;
  Loc around = o->loc;
  for (StmtId id; (id = *prog_link(p, &at));) {
    Stmt s = *prog_stmt(p, id);
    at.last = id;
    if (s.loc.line || s.loc.index >= 0 || s.loc.node) o->loc = s.loc;
    ExprId cond = prog_bound(p, &s, o->range);
    if (cond) {
      const SymInfo *si = dim_syminfo(p->dims, (Sym)prog_var(p, s.var)->sym);
      StmtId r = add(o, &at, cond, sym_range_error(p->c, si));
      if (in_kernel) *vec_push(&p->c->scratch, &o->inside) = r;
    }
    visit_list(o, prog_inside(id), in_kernel || s.kind == ST_kernel);
    if (s.other) visit_list(o, prog_else(id), in_kernel);
    if (s.kind != ST_kernel) continue;
    for (u32 i = 0; i < o->inside.n; i++) {
      const Stmt *r = prog_stmt(p, o->inside.at[i]);
      add(o, &at, ex_copy(p, r->a), r->label);
    }
    o->inside.n = 0;
  }
  o->loc = around;
}

void bounds(Prog *p) {
  SizeChecks o = {.p = p, .range = prog_ranges(p, NULL, &p->c->scratch), .loc = LOC_NONE};
  visit_list(&o, prog_end(), false);
}
