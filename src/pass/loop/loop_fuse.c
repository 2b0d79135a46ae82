/* loop_fuse.c: fuses adjacent kernels that loop over the same slices, and shrinks the temporaries
 * between them to one slice.
 *
 * In: a program. Out: the same program, the same bits, less memory. Two adjacent kernels are fused
 * if each is a single loop over the same range, and iteration i accesses only slice i of every
 * buffer that one writes and the other accesses. Examples: softmax becomes one pass over its rows,
 * a depthwise convolution follows the pointwise one channel by channel, attention runs head by
 * head. A temporary used only inside such a loop keeps a single slice. Loops inside a fused loop
 * are fused in the same way.
 *
 * A single slice has no loop around it: kernels that reduce such a row to one element, or use that
 * element, are concatenated into one kernel.
 *
 * A slice is all elements with index i in some dimension, if the earlier dimensions are 1. A buffer
 * may be accessed through views, as long as slices have the same size in all of them.
 *
 * needs: lowered program, no plan  keeps: the order of every sum  breaks: one kernel per group
 */
#include "ir/prog/prog_mem.h"
#include "ir/prog/affine.h"
#include "pass/pass.h"
#include "pass/loop/access.h"

#include <string.h>

enum { MERGE_LABEL = 2000, MERGE_STMTS = 400 }; /* keeps a kernel readable as a function */

typedef struct LoopFuse {
  Prog *p;
  u32 *total;          /* by root: accesses in the whole program; fusion does not change them */
  BufId *view, *other; /* by root: its last view, or itself; by view: the previous one */
} LoopFuse;

/* ---- slices ---- */

static bool is_var(Prog *p, ExprId e, VarId v) {
  const Expr *x = prog_expr(p, e);
  return x->kind == EX_var && x->ref == v;
}

/* Size of the slice that v selects in this access; false: v selects none. */
static bool slice_of(Prog *p, const Access *a, VarId v, Dim *size) {
  const Buf *b = prog_buf(p, a->buf);
  u32 d = 0;
  while (d < a->n && b->dim[d] == 1 && !is_var(p, a->idx[d], v)) d++;
  if (d == a->n || !is_var(p, a->idx[d], v)) return false;
  if (a->lanes > 1 && d + 1 == a->n) return false;
  *size = dim_product(p->dims, b->dim + d + 1, b->rank - d - 1);
  for (u32 i = 0; i < a->n; i++)
    if (i != d && ex_mentions(p, a->idx[i], v)) return false;
  return true;
}

/* Are all accesses of t to root to slice v of this size? (INT64_MIN: not known yet) */
static bool sliced(const Accesses *t, BufId root, VarId v, Dim *size) {
  const RootUse *use = access_root(t, root);
  for (u32 i = use ? use->last : 0; i; i = t->at.at[i - 1].before) {
    Dim s;
    if (!slice_of(t->p, &t->at.at[i - 1], v, &s)) return false;
    if (*size != INT64_MIN && *size != s) return false;
    *size = s;
  }
  return true;
}

static bool is_element(Prog *p, BufId root) {
  const Buf *b = prog_buf(p, root);
  return dim_product(p->dims, b->dim, b->rank) == 1;
}

/* ---- fusing two loops ---- */

static bool same_range(Prog *p, const Stmt *x, const Stmt *y) {
  return x->step == y->step && (x->flags | LF_parallel) == (y->flags | LF_parallel) &&
         ex_same(p, x->a, y->a) && ex_same(p, x->b, y->b);
}

static bool writes_state(const Accesses *t) {
  for (u32 i = 0; i < t->root.n; i++)
    if (t->root.at[i].write && prog_buf(t->p, t->root.at[i].root)->space == BS_state) return true;
  return false;
}

/* Do both update states from the same slices of a temporary? Moments and weights have no other
 * connection. */
static bool updates_alike(const Stmt *x, const Accesses *a, const Stmt *y, const Accesses *b) {
  if (!writes_state(a) || !writes_state(b)) return false;
  for (u32 i = 0; i < b->root.n; i++) {
    const RootUse *second = &b->root.at[i], *first = access_root(a, second->root);
    Dim size = INT64_MIN;
    if (!first || prog_buf(a->p, second->root)->space != BS_temp || is_element(a->p, first->root))
      continue;
    if (sliced(a, first->root, x->var, &size) && sliced(b, first->root, y->var, &size)) return true;
  }
  return false;
}

/* May loop y follow loop x iteration by iteration, and does it use or continue what x computes? a,
 * b: accesses of their bodies. */
static bool follows(const Stmt *x, const Accesses *a, const Stmt *y, const Accesses *b) {
  bool flow = updates_alike(x, a, y, b);
  if (a->ordered || a->loops || b->ordered || b->loops || a->nstmts + b->nstmts > MERGE_STMTS)
    return false;
  for (u32 i = 0; i < b->root.n; i++) {
    const RootUse *second = &b->root.at[i], *first = access_root(a, second->root);
    if (!first || (!first->write && !second->write)) continue;
    Dim size = INT64_MIN;
    if (!sliced(a, first->root, x->var, &size) || !sliced(b, first->root, y->var, &size))
      return false;
    flow = flow || first->write;
  }
  return flow;
}

/* Maximum trip count of a loop that starts at 0; 1 if unknown. */
static u64 max_trip_count(Prog *p, const Stmt *loop) {
  i64 lo = 0, hi = 1;
  const Expr *e = prog_expr(p, loop->b);
  if (!ex_is_int(p, loop->b, &hi) && e->kind == EX_var && prog_var(p, e->ref)->sym >= 0)
    dim_bounds(p->dims, dim_of_sym(p->dims, (Sym)prog_var(p, e->ref)->sym), &lo, &hi);
  return hi > 1 && hi < DIM_MAX ? (u64)hi : 1;
}

/* Bytes of a root in a loop with `count` accesses to it: one slice if these are all accesses. 0 if
 * not a temporary, or unbounded. */
static u64 root_bytes(LoopFuse *m, BufId root, u32 count, const Stmt *loop) {
  u64 bytes;
  Sym sym;
  if (!count || prog_buf(m->p, root)->space != BS_temp || !mem_bytes(m->p, root, &bytes, &sym))
    return 0;
  return count == m->total[root] ? bytes / max_trip_count(m->p, loop) : bytes;
}

/* Bytes of the temporaries that a piece accesses when it runs as one loop. */
static u64 working_set(LoopFuse *m, const Accesses *a, const Stmt *loop) {
  u64 sum = 0;
  for (u32 i = 0; i < a->root.n; i++)
    sum += root_bytes(m, a->root.at[i].root, a->root.at[i].count, loop);
  return sum;
}

/* Bytes of a followed by b; one: those of a alone. */
static u64 held_both(LoopFuse *m, u64 one, const Accesses *a, const Accesses *b, const Stmt *loop) {
  for (u32 i = 0; i < b->root.n; i++) {
    const RootUse *use = &b->root.at[i], *also = access_root(a, use->root);
    u32 before = also ? also->count : 0;
    one -= root_bytes(m, use->root, before, loop);
    one += root_bytes(m, use->root, before + use->count, loop);
  }
  return one;
}

/* Does fusion save memory? All temporaries of one loop are live together, so fusion can cost more
 * than its slices save, for example with a batch of one. A little more is accepted for cache
 * locality. one, two, both: bytes of each loop, and of the fused loop. */
static bool pays(u64 one, u64 two, u64 both) {
  u64 separate = one > two ? one : two;
  return both <= separate + separate / (u64)figures.fused_more;
}

/* Does every store to a temporary have an index that is the variable of the loop? */
static bool selects(Prog *p, StmtId loop) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, prog_stmt(p, loop)->body); (s = prog_next(&w));) {
    if (s->kind != ST_store || prog_buf(p, s->buf)->space == BS_reg) continue;
    bool found = false;
    for (u32 i = 0; i < s->nidx; i++)
      found = found || is_var(p, s->idx[i], prog_stmt(p, loop)->var);
    if (!found) return false;
  }
  return true;
}

/* On a GPU a fused loop has fewer independent iterations, so there must be enough of them: the
 * loops that both kernels share, outermost first. Then rows of a softmax or norm are one kernel, a
 * warp each. */
static bool has_rows(Prog *p, StmtId x, StmtId y) {
  const Stmt *s;
  double rows = 1;
  for (u32 k = 0; k < 2; k++)
    for (StmtVisit w = prog_visit_one(p, k ? y : x); (s = prog_next(&w));)
      if (s->kind == ST_for && s->flags & LF_team) return false;
  for (;;) {
    const Stmt *a = prog_stmt(p, x), *b = prog_stmt(p, y);
    i64 lo, hi;
    if (a->kind != ST_for || b->kind != ST_for || !(a->flags & b->flags & LF_parallel) ||
        !same_range(p, a, b) || !ex_is_int(p, a->a, &lo) || !ex_is_int(p, a->b, &hi))
      break;
    if (!selects(p, x) || !selects(p, y)) break;
    rows *= (double)(hi - lo);
    x = a->body; /* the last loop, if the kernel is fused already: the others passed this test */
    y = b->body;
    while (prog_stmt(p, x)->next) x = prog_stmt(p, x)->next;
    if (prog_stmt(p, y)->next) break;
  }
  return rows >= figures.gpu_rows &&
         list_runs(p, x, LIMIT_gpu_row) + list_runs(p, y, LIMIT_gpu_row) <= LIMIT_gpu_row;
}

static void rename_var(Prog *p, StmtId first, VarId from, VarId to) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_var && x.e->ref == from) x.e->ref = to;
}

/* Appends the body of y to that of x. */
static void append(Prog *p, StmtId x, StmtId y) {
  StmtId last = prog_stmt(p, x)->body;
  while (prog_stmt(p, last)->next) last = prog_stmt(p, last)->next;
  prog_stmt(p, last)->next = prog_stmt(p, y)->body;
}

static void join(Prog *p, StmtId x, StmtId y) {
  Stmt *a = prog_stmt(p, x);
  const Stmt *b = prog_stmt(p, y);
  rename_var(p, b->body, b->var, a->var);
  if (!(b->flags & LF_parallel)) a->flags &= (u8)~LF_parallel;
  if (a->role != b->role) a->role = a->role && b->role ? RO_batch : RO_none;
  if (!a->role || a->record != b->record) a->record = 0;
  append(p, x, y);
}

/* ---- temporaries that need only a slice ---- */

/* Dimension that selects slices of this size; rank: none. */
static u32 slice_dim(Prog *p, const Buf *b, Dim size) {
  for (u32 d = 0; d < b->rank; d++) {
    if (b->dim[d] == 1) continue;
    return dim_product(p->dims, b->dim + d + 1, b->rank - d - 1) == size ? d : b->rank;
  }
  return b->rank;
}

static void shrink(LoopFuse *m, const Accesses *in, const Stmt *loop, BufId root) {
  Prog *p = m->p;
  Dim size = INT64_MIN;
  const RootUse *use = access_root(in, root);
  if (use->count != m->total[root]) return;
  u32 first = use->last;
  while (in->at.at[first - 1].before) first = in->at.at[first - 1].before;
  if (!in->at.at[first - 1].write || !sliced(in, root, loop->var, &size)) return;
  for (BufId b = m->view[root]; b; b = m->other[b])
    if (slice_dim(p, prog_buf(p, b), size) == prog_buf(p, b)->rank) return;
  for (u32 i = use->last; i; i = in->at.at[i - 1].before) {
    const Access *a = &in->at.at[i - 1];
    a->idx[slice_dim(p, prog_buf(p, a->buf), size)] = ex_int(p, 0);
  }
  for (BufId b = m->view[root]; b; b = m->other[b])
    prog_buf(p, b)->dim[slice_dim(p, prog_buf(p, b), size)] = 1;
}

static void shrink_all(LoopFuse *m, StmtId loop) {
  Prog *p = m->p;
  Accesses in = accesses_list(p, prog_stmt(p, loop)->body);
  for (u32 i = 0; i < in.root.n; i++)
    if (prog_buf(p, in.root.at[i].root)->space == BS_temp)
      shrink(m, &in, prog_stmt(p, loop), in.root.at[i].root);
}

/* Fuses neighboring loops of a list. */
static void merge_loops(LoopFuse *m, StmtId first) {
  Prog *p = m->p;
  for (StmtId x = first; x; x = prog_stmt(p, x)->next) {
    bool here = false;
    Accesses a = {0};
    for (StmtId y = prog_stmt(p, x)->next; y; y = prog_stmt(p, x)->next) {
      if (prog_stmt(p, x)->kind != ST_for || prog_stmt(p, y)->kind != ST_for) break;
      if (!same_range(p, prog_stmt(p, x), prog_stmt(p, y))) break;
      if (!a.p) a = accesses_list(p, prog_stmt(p, x)->body);
      Accesses b = accesses_list(p, prog_stmt(p, y)->body);
      if (!follows(prog_stmt(p, x), &a, prog_stmt(p, y), &b)) break;
      access_append(&a, &b);
      StmtId next = prog_stmt(p, y)->next;
      join(p, x, y);
      prog_stmt(p, x)->next = next;
      here = true;
    }
    if (!here) continue;
    shrink_all(m, x);
    merge_loops(m, prog_stmt(p, x)->body);
  }
}

/* The loop that is the only statement of a kernel; 0: none. */
static StmtId only_loop(Prog *p, StmtId kernel) {
  if (prog_stmt(p, kernel)->kind != ST_kernel) return 0;
  StmtId s = prog_stmt(p, kernel)->body;
  return s && !prog_stmt(p, s)->next && prog_stmt(p, s)->kind == ST_for ? s : 0;
}

/* Do both kernels process one row, which one of them reduces to an element? */
static bool same_row(Prog *p, StmtId x, StmtId y) {
  const Stmt *k = prog_stmt(p, x), *next = prog_stmt(p, y);
  if (k->kind != ST_kernel || next->kind != ST_kernel) return false;
  u64 most = (u64)figures.fused_steps; /* loops of unknown length count as more */
  if (list_runs(p, k->body, most) + list_runs(p, next->body, most) > most) return false;
  Accesses a = accesses_list(p, k->body), b = accesses_list(p, next->body);
  bool flow = false, element = false, reduces = true;
  if (a.nstmts + b.nstmts > MERGE_STMTS) return false;
  for (u32 i = 0; i < b.at.n; i++) {
    BufId root = b.at.at[i].root;
    const RootUse *before = access_root(&a, root);
    if (prog_buf(p, root)->space == BS_reg) continue;
    if (b.at.at[i].write) {
      reduces = reduces && is_element(p, root);
    } else if (before && before->write) {
      flow = true;
      element = element || is_element(p, root);
    }
  }
  return flow && (element || reduces);
}

/* Joins two labels: the words, then the names if short (see group.c). Parts of one node have one
 * name. */
static Str joined_label(Prog *p, Str a, Str b) {
  const char *x = str_text(p->c, a), *y = str_text(p->c, b);
  size_t nx = strlen(x), ny = strlen(y), i = strcspn(x, " "), k = strcspn(y, " ");
  StrBuf t = sb_new(&p->c->scratch);
  sb_put(&t, x, i);
  bool said = i >= k && !memcmp(x + i - k, y, k) && (i == k || x[i - k - 1] == '_');
  if (!said && i + 1 + k <= KERNEL_LABEL_MAX) sb_fmt(&t, "_%.*s", (int)k, y);
  sb_puts(&t, x + i);
  said = nx - i >= ny - k && !strcmp(x + nx - (ny - k), y + k);
  if (!said && nx + ny <= MERGE_LABEL) sb_fmt(&t, "%s%s", x[i] ? "," : "", y + k);
  return str_intern(p->c, t.at, t.n);
}

/* Moves the next kernel into k. */
static void absorb_next(Prog *p, StmtId k) {
  Stmt *s = prog_stmt(p, k);
  Stmt *next = prog_stmt(p, s->next);
  next->into = k;
  record_move(p, s->next, k);
  s->label = joined_label(p, s->label, next->label);
  s->next = next->next;
}

static void merge_kernel(LoopFuse *m, StmtId k) {
  Prog *p = m->p;
  StmtId x = only_loop(p, k), next;
  bool any = false;
  Accesses a = {0};
  u64 one = 0;
  while (x && (next = prog_stmt(p, k)->next) != 0) {
    StmtId y = only_loop(p, next);
    if (!y || !same_range(p, prog_stmt(p, x), prog_stmt(p, y))) break;
    const Stmt *first = prog_stmt(p, x), *second = prog_stmt(p, y);
    if (!a.p) {
      a = accesses_list(p, first->body);
      one = working_set(m, &a, first);
    }
    Accesses b = accesses_list(p, second->body);
    if (!follows(first, &a, second, &b)) break;
    u64 both = held_both(m, one, &a, &b, first);
    bool gpu = p->threads == GPU_THREADS;
    if (gpu ? !has_rows(p, x, y) : !pays(one, working_set(m, &b, second), both)) break;
    one = both;
    access_append(&a, &b);
    join(p, x, y);
    absorb_next(p, k);
    any = true;
  }
  if (any) {
    shrink_all(m, x);
    merge_loops(m, prog_stmt(p, x)->body);
  }
}

/* Fuses kernels that are one loop over the same range, then kernels that process one row. */
static void merge_list(LoopFuse *m, StmtId first) {
  Prog *p = m->p;
  for (StmtId k = first; k; k = prog_stmt(p, k)->next) {
    Mark mark = arena_mark(&p->c->scratch);
    bool kernel = prog_stmt(p, k)->kind == ST_kernel;
    merge_list(m, kernel ? 0 : prog_stmt(p, k)->body);
    merge_list(m, prog_stmt(p, k)->other);
    if (kernel) merge_kernel(m, k);
    arena_rewind(&p->c->scratch, mark);
  }
  for (StmtId k = first; k; k = prog_stmt(p, k)->next) {
    Mark mark = arena_mark(&p->c->scratch);
    for (StmtId y = prog_stmt(p, k)->next; y && p->threads != GPU_THREADS && same_row(p, k, y);
         y = prog_stmt(p, k)->next) {
      append(p, k, y);
      absorb_next(p, k);
    }
    arena_rewind(&p->c->scratch, mark);
  }
}

void loop_fuse(Prog *p) {
  Arena *a = &p->c->scratch;
  LoopFuse m = {.p = p, .total = NEWS(a, u32, p->buf.n)};
  m.view = NEWS(a, BufId, p->buf.n);
  m.other = NEWS(a, BufId, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    BufId root = prog_root(p, b);
    m.other[b] = m.view[root];
    m.view[root] = b;
  }
  Accesses all = accesses_list(p, p->body);
  for (u32 i = 0; i < all.at.n; i++) m.total[all.at.at[i].root]++;
  merge_list(&m, p->body);
}
