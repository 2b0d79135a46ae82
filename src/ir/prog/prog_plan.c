/* prog_plan.c: verifies the memory plan of a program, independent of the planner.
 *
 * In: a planned program that is otherwise valid. Out: nothing, or two buffers that overlap while
 * both are live. Method: a buffer is live at least from its first to its last access in program
 * order. It is live throughout a loop if it is used inside and outside of it, or if an iteration
 * starts by reading it. Buffers with overlapping bytes and lifetimes are an error, unless one ends
 * and the other begins in a kernel that may work in place. A plan must respect more than this
 * (partial writes before reads in a loop); the interpreter can check every element. */
#include <stdlib.h>
#include "ir/prog/prog_mem.h"

typedef struct Lifetime {
  BufId root;
  u64 size;
  u32 first, last, total;
  u32 at; /* last program point that accesses it */
} Lifetime;

typedef struct Use { /* use of a buffer in a loop */
  u32 need, loop, count;
  bool reads_first;
} Use;

typedef struct LoopSpan {
  u32 parent, first, last;
} LoopSpan;

typedef struct PlanCheck {
  Prog *p;
  Arena *a;
  Lifetime *need; /* by buffer; size 0: none */
  VEC(StmtId) point;
  VEC(LoopSpan) round; /* loops; entry 0 means none */
  VEC(Use) use;
  Map uses; /* buffer, loop -> 1 + use */
  u32 in;
  KernelAccesses *touches;
} PlanCheck;

static void note_access(PlanCheck *o, BufId b, bool write) {
  BufId root = prog_root(o->p, b);
  Lifetime *n = &o->need[root];
  if (!n->size) return;
  u32 now = o->point.n - 1;
  bool again = n->total && n->at == now;
  if (!n->total) n->first = now;
  n->last = n->at = now;
  if (!again) n->total++;
  for (u32 k = o->in; k; k = o->round.at[k].parent) {
    u32 *slot = map_put(&o->uses, (u64)root << 32 | k);
    if (!*slot) {
      *vec_push(o->a, &o->use) = (Use){root, k, 0, true};
      *slot = o->use.n;
    }
    Use *u = &o->use.at[*slot - 1];
    if (!again) u->count++;
    if (u->count == 1 && write) u->reads_first = false;
  }
}

static void note_expr(PlanCheck *o, ExprId id) {
  for (ExprVisit w = ex_visit(o->p, id); ex_next(&w);)
    if (w.e->kind == EX_load) note_access(o, w.e->ref, false);
}

static void note_list(PlanCheck *o, StmtId first, bool inside) {
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (!inside) *vec_push(o->a, &o->point) = id;
    bool loop = !inside && (s->kind == ST_for || s->kind == ST_while);
    if (s->kind == ST_for) { /* bounds are evaluated once, before the loop */
      note_expr(o, s->a);
      note_expr(o, s->b);
    }
    if (loop) {
      *vec_push(o->a, &o->point) = id;
      *vec_push(o->a, &o->round) = (LoopSpan){o->in, o->point.n - 1, 0};
      o->in = o->round.n - 1;
    }
    if (s->kind != ST_for) note_expr(o, s->a);
    for (u32 i = 0; i < s->nidx; i++) note_expr(o, s->idx[i]);
    if (s->kind == ST_store) note_access(o, s->buf, true);
    note_list(o, s->body, inside || s->kind == ST_kernel);
    note_list(o, s->other, inside);
    if (!loop) continue;
    o->round.at[o->in].last = o->point.n - 1;
    o->in = o->round.at[o->in].parent;
  }
}

static int by_first(const void *x, const void *y) {
  const Lifetime *a = *(Lifetime *const *)x, *b = *(Lifetime *const *)y;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a->root < b->root ? -1 : a->root > b->root;
}

static bool collide(PlanCheck *o, const Lifetime *a, const Lifetime *b) {
  u64 x = prog_buf(o->p, a->root)->offset, y = prog_buf(o->p, b->root)->offset;
  if (x >= y + b->size || y >= x + a->size || a->last < b->first) return false;
  StmtId kernel = b->first < o->point.n ? o->point.at[b->first] : 0;
  bool handed = a->last == b->first && a->first < b->first && x == y && a->size == b->size;
  return !handed || prog_stmt(o->p, kernel)->kind != ST_kernel ||
         !mem_in_place(o->touches, kernel, a->root, b->root);
}

bool mem_collision(Prog *p, BufId *a, BufId *b) {
  Arena *tmp = &p->c->scratch;
  PlanCheck o = {.p = p,
                 .a = tmp,
                 .need = NEWS(tmp, Lifetime, p->buf.n),
                 .uses = map_new(tmp),
                 .touches = mem_accesses(p, tmp)};
  *vec_push(tmp, &o.round) = (LoopSpan){0, 0, 0};
  for (BufId i = 1; i < p->buf.n; i++) {
    Sym sym;
    if (!prog_is_planned(prog_buf(p, i))) continue;
    o.need[i].root = i;
    if (!mem_bytes(p, i, &o.need[i].size, &sym)) mem_refuse(p, i, sym);
  }
  note_list(&o, p->body, false);
  for (BufId i = 1; i < p->buf.n; i++)
    if (prog_buf(p, i)->space == BS_state && o.need[i].size) {
      o.need[i].first = 0; /* state is live before the first and after the last statement */
      o.need[i].last = UINT32_MAX;
      o.need[i].total++;
    }
  for (u32 i = 0; i < o.use.n; i++) {
    const Use *u = &o.use.at[i];
    const LoopSpan *r = &o.round.at[u->loop];
    Lifetime *n = &o.need[u->need];
    if (u->count == n->total && !u->reads_first) continue;
    if (r->first < n->first) n->first = r->first;
    if (r->last > n->last) n->last = r->last;
  }
  Lifetime **order = NEWS(tmp, Lifetime *, p->buf.n);
  u32 n = 0, active = 0;
  for (BufId i = 1; i < p->buf.n; i++)
    if (o.need[i].total) order[n++] = &o.need[i];
  if (n) qsort(order, n, sizeof *order, by_first);
  for (u32 i = 0; i < n; i++) { /* order[0 .. active - 1]: still live */
    u32 kept = 0;
    for (u32 k = 0; k < active; k++) {
      if (order[k]->last < order[i]->first) continue;
      if (collide(&o, order[k], order[i])) {
        *a = order[k]->root;
        *b = order[i]->root;
        return true;
      }
      order[kept++] = order[k];
    }
    order[kept] = order[i]; /* kept <= i */
    active = kept + 1;
  }
  return false;
}
