/* inplace.c: next values of states are computed where the state lies.
 *
 * In: a program in which a temporary holds the next value of a state until, at the end of the run,
 * a kernel copies it there. Out: the same program, without the copy where the kernel that computes
 * the temporary may write the state at once: nothing behind it reads what the state held, and in it
 * every element is read before its place is written (mem_in_place). Weights that a step of training
 * updates are never in memory twice.
 *
 * needs: lowered program, no plan  keeps: all values  breaks: nothing
 */
#include "ir/prog_mem.h"
#include "pass/loop/access.h"
#include "pass/pass.h"

typedef VEC(StmtId) TopList;
typedef VEC(u32) TopNumbers;

typedef struct InPlace {
  Prog *p;
  TopList top;       /* statements of the program; 0: dropped */
  Accesses *at;      /* what each does */
  TopNumbers *users; /* by root: the numbers of statements that touch it, dropped ones too */
  u32 ordered;       /* 1 + number of the last that may end a run; 0: none */
} InPlace;

/* A kernel that does nothing but copy temp to state; lowering copies nothing but the whole. */
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

/* The one statement that writes temp, in front of copy c; top.n: there is none, or several. */
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
  if (s->ordered > k + 1) return false; /* a run that ends there changes no state */
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

/* In one statement of the program. All of them for each state would take the square of both. */
static void replace(Prog *p, StmtId top, BufId old, BufId by) {
  for (StmtVisit w = prog_visit_one(p, top); prog_next(&w);) {
    Stmt *s = prog_stmt(p, w.id);
    if (s->buf == old) s->buf = by;
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

/* Statement c goes, and what others said of temp they say of state. */
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
  s.users = NEWS(a, TopNumbers, p->buf.n);
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
