/* inplace.c: updates state buffers in place.
 *
 * In: a program in which a temporary holds the next value of a state until a kernel copies it at
 * the end of the run. Out: the same program without the copy, if the kernel that computes the
 * temporary may write the state directly. No later statement may read the old state, and the kernel
 * must read every element before it writes it (mem_in_place). So a training step never has its
 * weights in memory twice.
 *
 * needs: lowered program, no plan  keeps: all values  breaks: nothing
 */
#include "ir/prog/prog_mem.h"
#include "pass/loop/access.h"
#include "pass/pass.h"

typedef VEC(StmtId) TopList;

typedef struct InPlace {
  Prog *p;
  TopList top;   /* top-level statements; 0: dropped */
  Accesses *at;  /* by statement */
  U32Vec *users; /* by root: statements that access it, including dropped ones */
  u32 ordered;   /* 1 + number of the last statement that may end a run; 0: none */
} InPlace;

/* Does a kernel only copy temp to state? Lowering always copies the whole buffer. */
static bool is_copy(InPlace *s, u32 i, BufId *temp, BufId *state) {
  Prog *p = s->p;
  const Accesses *t = &s->at[i];
  *temp = *state = 0;
  if (prog_stmt(p, s->top.at[i])->kind != ST_kernel || t->root.n != 2) return false;
  for (u32 k = 0; k < 2; k++) {
    const RootUse *u = &t->root.at[k];
    if (u->read == u->write) return false;
    *(u->write ? state : temp) = u->root;
  }
  if (!*temp || !*state || prog_buf(p, *temp)->space != BS_temp) return false;
  if (prog_buf(p, *state)->space != BS_state) return false;
  const Stmt *x;
  for (StmtVisit w = prog_visit_one(p, s->top.at[i]); (x = prog_next(&w));) {
    if (x->kind == ST_kernel || x->kind == ST_for) continue;
    const Expr *e = x->kind == ST_store ? prog_expr(p, x->a) : NULL;
    if (!e || e->kind != EX_load || e->ref != *temp || x->buf != *state || e->narg != x->nidx)
      return false;
    for (u32 k = 0; k < x->nidx; k++)
      if (!ex_same(p, e->arg[k], x->idx[k])) return false;
  }
  return true;
}

static bool same_shape(Prog *p, BufId a, BufId b) {
  const Buf *x = prog_buf(p, a), *y = prog_buf(p, b);
  bool same = x->dt == y->dt && x->rank == y->rank;
  for (u32 i = 0; same && i < x->rank; i++) same = x->dim[i] == y->dim[i];
  return same;
}

/* The only statement that writes temp before copy c; top.n: none, or several. */
static u32 maker_of(const InPlace *s, BufId temp, u32 c) {
  u32 found = s->top.n;
  for (u32 j = 0; j < s->users[temp].n; j++) {
    u32 i = s->users[temp].at[j];
    const RootUse *u = access_root(&s->at[i], temp);
    if (!s->top.at[i] || !u || !u->write) continue;
    if (found != s->top.n || i > c) return s->top.n;
    found = i;
  }
  return found;
}

static bool may_lie_there(InPlace *s, u32 c, BufId temp, BufId state) {
  u32 k = maker_of(s, temp, c);
  if (k == s->top.n || prog_stmt(s->p, s->top.at[k])->kind != ST_kernel) return false;
  if (!same_shape(s->p, temp, state)) return false;
  if (s->ordered > k + 1) return false; /* a run that ends there must not change the state */
  for (u32 j = 0; j < s->users[state].n; j++) {
    u32 i = s->users[state].at[j];
    const RootUse *u = access_root(&s->at[i], state);
    if (s->top.at[i] && i != c && u && (u->write || i > k)) return false;
  }
  Mark mark = arena_mark(&s->p->c->scratch);
  bool may = mem_in_place(mem_accesses(s->p, &s->p->c->scratch), s->top.at[k], state, temp);
  arena_rewind(&s->p->c->scratch, mark);
  return may;
}

/* Replaces a buffer in one top-level statement. Rewriting all of them for each state would be
 * quadratic. */
static void replace(Prog *p, StmtId top, BufId old, BufId by) {
  for (StmtVisit w = prog_visit_one(p, top); prog_next(&w);) {
    Stmt *s = prog_stmt(p, w.id);
    if (s->buf == old) s->buf = by;
    if (s->kind == ST_kernel) record_rename(p, w.id, old, by);
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_load && x.e->ref == old) x.e->ref = by;
  }
}

static void replace_views(Prog *p, BufId old, BufId by) {
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf(p, b)->alias == old) prog_buf(p, b)->alias = by;
}

static void unlink_stmt(Prog *p, StmtId id) {
  StmtId *at = &p->body;
  while (*at != id) at = &prog_stmt(p, *at)->next;
  *at = prog_stmt(p, id)->next;
}

/* Drops statement c and replaces temp by state. */
static void drop_copy(InPlace *s, u32 c, BufId temp, BufId state) {
  unlink_stmt(s->p, s->top.at[c]);
  s->top.at[c] = 0;
  replace_views(s->p, temp, state);
  for (u32 j = 0; j < s->users[temp].n; j++) {
    u32 i = s->users[temp].at[j];
    if (!s->top.at[i]) continue;
    replace(s->p, s->top.at[i], temp, state);
    s->at[i] = accesses_one(s->p, s->top.at[i]);
    *vec_push(&s->p->c->scratch, &s->users[state]) = i;
  }
}

static void look_at(InPlace *s, u32 i) {
  s->at[i] = accesses_one(s->p, s->top.at[i]);
  if (s->at[i].ordered) s->ordered = i + 1;
  for (u32 k = 0; k < s->at[i].root.n; k++)
    *vec_push(&s->p->c->scratch, &s->users[s->at[i].root.at[k].root]) = i;
}

void inplace(Prog *p) {
  InPlace s = {.p = p};
  Arena *a = &p->c->scratch;
  bool state = false;
  for (BufId b = 1; b < p->buf.n; b++) state = state || prog_buf(p, b)->space == BS_state;
  if (!state) return;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next) *vec_push(a, &s.top) = id;
  s.at = NEWS(a, Accesses, s.top.n + 1);
  s.users = NEWS(a, U32Vec, p->buf.n);
  for (u32 i = 0; i < s.top.n; i++) look_at(&s, i);
  bool dropped = false;
  for (u32 c = 0; c < s.top.n; c++) {
    BufId temp, mem;
    if (!is_copy(&s, c, &temp, &mem) || !may_lie_there(&s, c, temp, mem)) continue;
    drop_copy(&s, c, temp, mem);
    dropped = true;
  }
  if (dropped) mem_sweep(p);
}
