/* live.c: lifetimes of the buffers of the arena.
 *
 * In: a checked program. Out: for every root buffer in the arena its size and an interval of
 * points. Points are numbered in program order: a kernel is one point, and so is the condition of
 * an if or a loop and every other statement. Both branches of an if count.
 *
 * A buffer is live from its first to its last access. Loops outside kernels extend that: a buffer
 * accessed inside and outside of a loop is live throughout the loop. So is one that an iteration
 * may read before it has written all of it. Inside a kernel, a load is safe after a store with the
 * same index, or after the kernel has filled the buffer. An unused buffer has no interval. State is
 * live at all points and one more.
 */
#include "pass/memory/live.h"

typedef struct LifeLoop {
  u32 parent; /* 0: none */
  u32 first, last;
} LifeLoop;

typedef struct LifeAccess {
  u32 life, loop;
} LifeAccess;

typedef struct Undo {
  u32 life, killed;
} Undo;

/* Part of a life that a kernel has written so far. */
typedef struct Filling {
  u32 point;    /* point of the kernel, counted from 1 */
  u32 last;     /* 1 + its last box */
  double share; /* fraction of the whole if boxes are disjoint; below 1 it cannot be all */
} Filling;

typedef struct Liveness {
  Prog *p;
  Arena *a;
  LiveRanges l;
  VEC(StmtId) point;
  VEC(LifeLoop) loop;      /* entry 0 is unused */
  VEC(LifeAccess) access;  /* at most two consecutive ones per life and loop */
  VEC(LifeAccess) exposed; /* lives needed throughout a loop */
  u32 at;                  /* innermost loop */
  u32 *killed; /* by life: 1 + last point that has certainly written all of it, on every path */
  VEC(Undo) undo;
  bool *varies;          /* by variable: set after its declaration */
  Nesting nest;          /* loops inside a kernel */
  u32 maybe;             /* depth of ifs and whiles inside a kernel */
  VEC(StmtId) passed;    /* stores executed in this iteration of the loops of nest */
  VEC(WrittenRange) box; /* written so far by this kernel */
  VEC(u32) before;       /* by box: 1 + previous box of the same life; 0: none */
  Filling *filling;      /* by life */
} Liveness;

static u32 now(Liveness *w) {
  return w->point.n - 1;
}

static void touch(Liveness *w, u32 life) {
  PlaceItem *it = &w->l.item[life];
  if (it->first > it->last) it->first = now(w);
  it->last = now(w);
  u32 n = w->access.n;
  if (n && w->access.at[n - 1].life == life && w->access.at[n - 1].loop == w->at) return;
  *vec_push(w->a, &w->access) = (LifeAccess){life, w->at};
}

/* ---- expressions ---- */

static bool is_invariant(Liveness *w, ExprId id) {
  for (ExprVisit x = ex_visit(w->p, id); ex_next(&x);)
    if (x.e->kind == EX_load || (x.e->kind == EX_var && w->varies[x.e->ref])) return false;
  return true;
}

/* Was this very element stored in this iteration? */
static bool stored(Liveness *w, const Expr *e) {
  for (u32 i = w->passed.n; i-- > 0;) {
    const Stmt *s = prog_stmt(w->p, w->passed.at[i]);
    if (s->buf != e->ref || prog_expr(w->p, s->a)->lanes != e->lanes) continue;
    bool same = true;
    for (u32 k = 0; same && k < s->nidx; k++)
      same = ex_same(w->p, s->idx[k], e->arg[k]) && is_invariant(w, e->arg[k]);
    if (same) return true;
  }
  return false;
}

static void load(Liveness *w, const Expr *e) {
  u32 life = w->l.of[e->ref], outer = 0;
  if (!life--) return;
  touch(w, life);
  for (u32 k = w->at; k; k = w->loop.at[k].parent)
    if (w->killed[life] <= w->loop.at[k].first) outer = k;
  if (outer && !stored(w, e)) *vec_push(w->a, &w->exposed) = (LifeAccess){life, outer};
}

static void loads(Liveness *w, ExprId id) {
  for (ExprVisit x = ex_visit(w->p, id); ex_next(&x);)
    if (x.e->kind == EX_load) load(w, x.e);
}

/* ---- inside a point ---- */

static void add_box(Liveness *w, u32 life, const WrittenRange *box) {
  Filling *f = &w->filling[life];
  if (f->point != w->point.n) *f = (Filling){.point = w->point.n};
  *vec_push(w->a, &w->box) = *box;
  *vec_push(w->a, &w->before) = f->last;
  f->last = w->box.n;
  Dim all = box->axis == MAX_RANK ? 0 : prog_buf(w->p, box->buf)->dim[box->axis];
  f->share += all > 0 ? (double)(box->hi - box->lo) / (double)all : 1;
}

static void store(Liveness *w, StmtId id) {
  const Stmt *s = prog_stmt(w->p, id);
  for (u32 i = 0; i < s->nidx; i++) loads(w, s->idx[i]);
  u32 life = w->l.of[s->buf];
  if (!life) return;
  touch(w, life - 1);
  WrittenRange box;
  if (!w->maybe && mem_box(w->p, &w->nest, s, &box)) add_box(w, life - 1, &box);
  *vec_push(w->a, &w->passed) = id;
}

static void kill(Liveness *w, u32 life, u32 killed) {
  *vec_push(w->a, &w->undo) = (Undo){life, w->killed[life]};
  w->killed[life] = killed;
}

/* Do the boxes of a life cover all of it? */
static bool is_whole(Liveness *w, u32 life) {
  const Filling *f = &w->filling[life];
  VEC(WrittenRange) box = {0};
  if (f->share < 0.999) return false;
  for (u32 k = f->last; k; k = w->before.at[k - 1]) *vec_push(w->a, &box) = w->box.at[k - 1];
  return mem_whole(w->p, w->l.root[life], box.at, box.n);
}

/* Updates what is filled after a statement of the kernel; from: its first box. */
static void filled(Liveness *w, u32 from) {
  for (u32 i = from; i < w->box.n; i++) {
    u32 life = w->l.of[w->box.at[i].buf] - 1;
    if (w->killed[life] != w->point.n && is_whole(w, life)) kill(w, life, w->point.n);
  }
}

static void inner_list(Liveness *w, StmtId first);

static void inner(Liveness *w, StmtId id) {
  const Stmt *s = prog_stmt(w->p, id);
  loads(w, s->a);
  loads(w, s->b);
  if (s->kind == ST_store) store(w, id);
  if (s->kind == ST_kernel) inner_list(w, s->body);
  if (s->kind != ST_for && s->kind != ST_while && s->kind != ST_if) return;
  bool maybe = s->kind != ST_for || w->nest.n == MEM_NEST;
  w->maybe += maybe;
  if (!maybe) w->nest.loop[w->nest.n++] = id;
  inner_list(w, s->body);
  if (s->other) inner_list(w, s->other);
  if (!maybe) w->nest.n--;
  w->maybe -= maybe;
}

static void inner_list(Liveness *w, StmtId first) {
  u32 passed = w->passed.n;
  for (StmtId s = first; s; s = prog_stmt(w->p, s)->next) inner(w, s);
  w->passed.n = passed;
}

/* ---- points ---- */

static void begin(Liveness *w, StmtId id) {
  *vec_push(w->a, &w->point) = id;
}

static void list(Liveness *w, StmtId first);

static void roll_back(Liveness *w, u32 undo) {
  while (w->undo.n > undo) {
    Undo u = w->undo.at[--w->undo.n];
    w->killed[u.life] = u.killed;
  }
}

/* Visits statements that may not run: a buffer that they kill is dead only inside them. */
static void maybe(Liveness *w, StmtId first) {
  u32 undo = w->undo.n;
  list(w, first);
  roll_back(w, undo);
}

/* Both branches of an if. What both write is written afterwards. */
static void branches(Liveness *w, const Stmt *s) {
  u32 undo = w->undo.n, before = w->point.n;
  VEC(u32) both = {0};
  list(w, s->body);
  for (u32 i = undo; i < w->undo.n; i++) *vec_push(w->a, &both) = w->undo.at[i].life;
  roll_back(w, undo);
  list(w, s->other);
  u32 most = 0;
  for (u32 i = 0; i < both.n;
       i++) /* moves the entries that the other branch killed too to the front */
    if (w->killed[both.at[i]] > before) both.at[most++] = both.at[i];
  roll_back(w, undo);
  for (u32 i = 0; i < most; i++) kill(w, both.at[i], before);
}

static void loop(Liveness *w, const Stmt *s) {
  u32 id = w->loop.n;
  *vec_push(w->a, &w->loop) = (LifeLoop){w->at, now(w), 0};
  w->at = id;
  if (s->kind == ST_while) loads(w, s->a);
  maybe(w, s->body);
  w->loop.at[id].last = now(w);
  w->at = w->loop.at[id].parent;
}

static void stmt(Liveness *w, StmtId id) {
  const Stmt *s = prog_stmt(w->p, id);
  begin(w, id);
  w->box.n = w->before.n = w->passed.n = 0;
  switch (s->kind) {
  case ST_if:
    loads(w, s->a);
    branches(w, s);
    break;
  case ST_for:
    loads(w, s->a);
    loads(w, s->b);
    begin(w, id); /* bounds are read before the first iteration */
    loop(w, s);
    break;
  case ST_while: loop(w, s); break;
  case ST_kernel:
    for (StmtId k = s->body; k; k = prog_stmt(w->p, k)->next) {
      u32 from = w->box.n;
      inner(w, k);
      filled(w, from);
    }
    break;
  default: inner(w, id); filled(w, 0);
  }
}

static void list(Liveness *w, StmtId first) {
  for (StmtId s = first; s; s = prog_stmt(w->p, s)->next) stmt(w, s);
}

/* ---- lifetimes ---- */

static void widen(Liveness *w, u32 life, u32 loop) {
  PlaceItem *it = &w->l.item[life];
  const LifeLoop *k = &w->loop.at[loop];
  if (k->first < it->first) it->first = k->first;
  if (k->last > it->last) it->last = k->last;
}

static bool encloses(Liveness *w, u32 outer, u32 inner) {
  for (; inner && inner != outer; inner = w->loop.at[inner].parent) {
  }
  return inner == outer;
}

/* Extends a life that is accessed in a loop and outside of it to the whole loop. */
static void spread(Liveness *w) {
  u32 *common = NEWS(w->a, u32, w->l.n);
  bool *seen = NEWS(w->a, bool, w->l.n);
  for (u32 i = 0; i < w->access.n; i++) {
    const LifeAccess *x = &w->access.at[i];
    if (!seen[x->life]) common[x->life] = x->loop;
    seen[x->life] = true;
    while (!encloses(w, common[x->life], x->loop))
      common[x->life] = w->loop.at[common[x->life]].parent;
  }
  for (u32 i = 0; i < w->access.n; i++) {
    const LifeAccess *x = &w->access.at[i];
    for (u32 k = x->loop; k != common[x->life]; k = w->loop.at[k].parent) widen(w, x->life, k);
  }
  for (u32 i = 0; i < w->exposed.n; i++) widen(w, w->exposed.at[i].life, w->exposed.at[i].loop);
}

static void add_lives(Liveness *w) {
  Prog *p = w->p;
  LiveRanges *l = &w->l;
  l->of = NEWS(w->a, u32, p->buf.n);
  l->root = NEWS(w->a, BufId, p->buf.n);
  l->item = NEWS(w->a, PlaceItem, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    BufId root = prog_root(p, b);
    if (!mem_in_arena(p, root)) continue;
    l->of[b] = l->of[root];
    if (b != root) continue;
    Sym sym;
    u64 bytes;
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    l->root[l->n] = b;
    l->item[l->n] = (PlaceItem){bytes, 1, 0, 0};
    l->of[b] = ++l->n;
  }
}

LiveRanges live_find(Prog *p, Arena *a) {
  Liveness w = {.p = p, .a = a};
  add_lives(&w);
  w.killed = NEWS(a, u32, w.l.n + 1);
  w.filling = NEWS(a, Filling, w.l.n + 1);
  w.varies = NEWS(a, bool, p->var.n);
  for (StmtId s = 1; s < p->stmt.n; s++)
    if (prog_stmt(p, s)->kind == ST_set) w.varies[prog_stmt(p, s)->var] = true;
  *vec_push(a, &w.loop) = (LifeLoop){0, 0, 0};
  list(&w, p->body);
  spread(&w);
  for (u32 i = 0; i < w.l.n; i++) { /* from before the first point to after the last */
    if (prog_buf(p, w.l.root[i])->space != BS_state) continue;
    w.l.item[i].first = 0;
    w.l.item[i].last = w.point.n;
  }
  w.l.npoint = w.point.n;
  w.l.point = w.point.at;
  return w.l;
}
