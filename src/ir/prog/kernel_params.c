/* kernel_params.c: the parameters of a kernel as a function.
 *
 * In: the body of a kernel. Out: the buffers it accesses and the variables declared outside,
 * including symbols, in the order of the text; whether it sets one of them; whether a buffer shares
 * memory with another. Marks hold kernel numbers, so nothing needs to be cleared between
 * kernels. */
#include "ir/prog/prog_mem.h"

#include <stdlib.h>

typedef struct ParamState {
  Prog *p;
  Arena *a;
  ParamMarks *m;
  KernelParams to;
} ParamState;

static void take_expr(ParamState *t, ExprVisit x);

static void take_buf(ParamState *t, BufId b) {
  const Buf *x = prog_buf(t->p, b);
  if (t->m->takes_buf[b] == t->m->n || x->space == BS_reg) return;
  t->m->takes_buf[b] = t->m->n;
  *vec_push(t->a, &t->to.buf) = b;
  for (u32 i = 1; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) take_expr(t, ex_visit(t->p, ex_dim(t->p, x->dim[i])));
}

static void take_var(ParamState *t, VarId v) {
  if (t->m->declares[v] == t->m->n || t->m->takes[v] == t->m->n) return;
  t->m->takes[v] = t->m->n;
  *vec_push(t->a, &t->to.var) = v;
}

static void take_expr(ParamState *t, ExprVisit x) {
  while (ex_next(&x)) {
    if (x.e->kind == EX_var) take_var(t, x.e->ref);
    if (x.e->kind == EX_load) take_buf(t, x.e->ref);
    if (x.e->kind == EX_random) t->to.random = true;
  }
}

/* The first use of a symbol creates its variable, so arrays may need to grow. */
static void need_marks(ParamMarks *m, const Prog *p) {
  u32 n = p->var.n + dim_nsyms(p->dims) + 1;
  if (n <= m->nvar) return;
  m->nvar = n + 64;
  m->declares = NEWS(&p->c->keep, u32, m->nvar);
  m->takes = NEWS(&p->c->keep, u32, m->nvar);
  m->sets = NEWS(&p->c->keep, u32, m->nvar);
  if (!m->takes_buf) m->takes_buf = NEWS(&p->c->keep, u32, p->buf.n);
  if (!m->writes) m->writes = NEWS(&p->c->keep, u32, p->buf.n);
}

KernelParams kernel_params(Prog *p, StmtId first, StmtId handed, ParamMarks *m, Arena *a) {
  ParamState t = {.p = p, .a = a, .m = m};
  const Stmt *s;
  need_marks(m, p);
  m->n++;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    if (s->kind == ST_fence) continue;
    ExprVisit x = ex_visit_stmt(p, s);
    if (w.id == handed) x.b = 0;
    take_expr(&t, x);
    if (s->kind == ST_store) {
      take_buf(&t, s->buf);
      m->writes[s->buf] = m->n;
    }
    if (s->kind == ST_for || s->kind == ST_let) m->declares[s->var] = m->n;
    if (s->kind == ST_set) {
      take_var(&t, s->var);
      m->sets[s->var] = m->n;
    }
  }
  return t.to;
}

/* Memory of a buffer: bytes of the arena, or its root outside the arena. */
typedef struct TakenPlace {
  u64 from, to;
  BufId root;
  u32 which;
} TakenPlace;

static int by_place(const void *x, const void *y) {
  const TakenPlace *a = x, *b = y;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  return a->root < b->root ? -1 : a->root > b->root;
}

bool *params_shared(Prog *p, const KernelParams *u, Arena *a) {
  u32 n = u->buf.n;
  bool *shared = NEWS(a, bool, n + 1);
  TakenPlace *at = NEWS(a, TakenPlace, n + 1);
  for (u32 i = 0; i < n; i++) {
    u64 bytes;
    Sym sym;
    BufId root = prog_root(p, u->buf.at[i]);
    at[i] = (TakenPlace){UINT64_MAX, UINT64_MAX, root, i};
    if (!mem_in_arena(p, root)) continue;
    bool open = !mem_bytes(p, root, &bytes, &sym);
    at[i].from = open ? 0 : prog_buf(p, root)->offset;
    at[i].to = open ? UINT64_MAX - 1 : at[i].from + bytes;
  }
  qsort(at, n, sizeof *at, by_place);
  for (u32 i = 1, far = 0; i < n; i++) { /* far: the earlier one with the largest end */
    bool same = at[i].root == at[i - 1].root;
    if (same) shared[at[i].which] = shared[at[i - 1].which] = true;
    if (at[i].from < at[far].to && at[far].from < at[i].to)
      shared[at[i].which] = shared[at[far].which] = true;
    if (at[i].to > at[far].to) far = i;
  }
  return shared;
}
