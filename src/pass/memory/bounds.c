/* bounds.c: stops runs in which a size exceeds what memory was planned for.
 *
 * In: a program that sets symbols to computed values. Out: the same program with a `require` after
 * every such set whose value may leave the bounds of its symbol. A require inside a kernel ends
 * only the kernel, which is a function in back ends. The require is therefore repeated
 * after the kernel, where it ends the run.
 *
 * needs: plan, because it adds statements to lists that other passes match  keeps: results bit for
 * bit breaks: nothing
 */
#include "pass/pass.h"

typedef struct SizeChecks {
  Prog *p;
  const Range *range; /* by variable */
  Loc loc;            /* location of the current statements */
  VEC(StmtId) inside; /* requires of the current kernel */
} SizeChecks;

/* Adds a require after at->last, unless it is already there. */
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
