/* parallel.c: distributes loops over threads.
 *
 * In: a program whose loops have the marks of lowering (LF_parallel: iterations are independent).
 * Out: the same program, the same bits, with two kinds of kernels: a single marked loop of which
 * threads take chunks, and kernels that one thread runs. No other loop stays marked. A program for
 * one thread is unchanged.
 *
 * Method: each kernel gets the cheapest of four options, by a rough estimate:
 *
 *   - distribute a loop, collapsed with marked loops directly inside it if it has few iterations
 *   - distribute strips of an inner marked loop, each with all loops around it
 *   - keep the loop between kernels and make kernels of the statements of its body, which balances
 *     better if iterations are few and long (blocks of Winograd)
 *   - run all of it on one thread, if it takes less time than waking the others
 *
 * A kernel of several statements is split into one kernel each.
 *
 * Cache lines written by one core and read by another cost more than arithmetic, because they move
 * between caches and must be invalidated. So a thread should read what it wrote. A matmul split by
 * columns reads all rows in every thread. One split by rows reads only its own, and later kernels
 * that are split by rows keep that locality. Strips cost an additional read of all weights per
 * strip.
 *
 * A temporary that only a distributed loop accesses, and whose elements several iterations reuse,
 * is scratch with a copy per thread. Other scratch becomes an ordinary temporary. A loop that reads
 * what it writes is distributed only if its iterations are provably disjoint.
 *
 * needs: no plan  keeps: the order of every sum
 */
#include "ir/prog/prog_mem.h"
#include "ir/prog/affine.h"
#include "ir/prog/cost.h"
#include "pass/pass.h"
#include "pass/loop/access.h"

#include <math.h>
#include <string.h>

enum { FISSION_MAX = 8 }; /* maximum statements of a loop that is split on a GPU */
enum { CHAIN = 8 };       /* maximum loops collapsed into one */

/* Dimension and view along which threads split a buffer; buf 0: unknown. */
typedef struct BufCut {
  BufId buf;
  u32 dim;
} BufCut;

typedef struct ParallelCtx {
  Prog *p;
  u32 vars;     /* capacity of tables by variable */
  Range *range; /* by variable */
  u32 *total;   /* by root: accesses of the whole program */
  bool *own;    /* by root: scratch with a copy per thread */
  BufCut *cut;  /* by root: how its writers were split */
  double grain;
  u32 inside;                /* number of enclosing loops that stay between kernels */
  u32 round;                 /* number of the current set; members have it in in_var or in_root */
  u32 *in_var, *in_root;     /* by variable, by root: the last set that contained it */
  u64 *last_var, *last_root; /* by variable, by root: see find_cuts */
  u64 counted;               /* statements so far */
} ParallelCtx;

/* Loops that are collapsed, outermost first. strip: strips of the last one are distributed, each
 * with all others. */
typedef struct Chain {
  u32 n;
  StmtId at[CHAIN];
  double trip_count; /* trip count of all, or of the loop in strips */
  bool fixed;        /* trip_count is exact, not a bound */
  u32 strip;         /* iterations of a strip; 0: no strips */
} Chain;

/* ---- memory ---- */

/* An index as coef * v + terms that do not depend on the body + a term in lo..hi. */
typedef struct IndexSplit {
  i64 coef, lo, hi;
  Affine outer;
} IndexSplit;

static bool split_index(ParallelCtx *o, const Accesses *in, ExprId e, VarId v, IndexSplit *s) {
  Affine a;
  if (!affine_of(o->p, e, &a)) return false;
  *s = (IndexSplit){.lo = a.k, .hi = a.k};
  for (u32 i = 0; i < a.n; i++) {
    i64 coef = a.t[i].coef, x, y;
    if (!a.t[i].var) return false;
    if (a.t[i].var == v) {
      s->coef += coef;
      continue;
    }
    if (!access_declares(in, a.t[i].var)) {
      s->outer.t[s->outer.n++] = a.t[i];
      continue;
    }
    Range r = o->range[a.t[i].var];
    if (__builtin_mul_overflow(coef, coef < 0 ? r.hi : r.lo, &x) ||
        __builtin_mul_overflow(coef, coef < 0 ? r.lo : r.hi, &y) ||
        __builtin_add_overflow(s->lo, x, &s->lo) || __builtin_add_overflow(s->hi, y, &s->hi))
      return false;
  }
  return s->coef != 0;
}

/* Do any two iterations of v access different indices of dimension d? Then the index moves further
 * per iteration than it spreads within one. */
static bool separates(ParallelCtx *o, const Accesses *in, BufId root, VarId v, u32 d) {
  IndexSplit all = {0}, s;
  BufId first = 0;
  i64 by;
  const RootUse *use = access_root(in, root);
  for (u32 i = use ? use->last : 0; i; i = in->at.at[i - 1].before) {
    const Access *t = &in->at.at[i - 1];
    if (d >= t->n || !split_index(o, in, t->idx[d], v, &s)) return false;
    if (d + 1 == t->n) s.hi += t->lanes - 1;
    if (!first) {
      first = t->buf;
      all = s;
    }
    if (t->buf != first || s.coef != all.coef || !affine_differ_by(&s.outer, &all.outer, &by))
      return false;
    if (s.lo < all.lo) all.lo = s.lo;
    if (s.hi > all.hi) all.hi = s.hi;
  }
  i64 reach, coef = all.coef < 0 ? -all.coef : all.coef;
  return first && !__builtin_sub_overflow(all.hi, all.lo, &reach) && reach < coef;
}

static bool disjoint(ParallelCtx *o, const Accesses *in, BufId root, VarId v) {
  for (u32 d = 0; d < MAX_RANK; d++)
    if (separates(o, in, root, v, d)) return true;
  return false;
}

/* Are the iterations of the loop independent? Adds the scratch that each thread needs to own, if
 * given. */
static bool is_free(ParallelCtx *o, StmtId loop, bool *own) {
  Prog *p = o->p;
  const Stmt *s = prog_stmt(p, loop);
  if (s->kind != ST_for || !(s->flags & LF_parallel) || ex_loads(p, s->a) || ex_loads(p, s->b))
    return false;
  Accesses in = accesses_list(p, s->body);
  if (in.ordered) return false;
  for (u32 i = 0; i < in.root.n; i++) {
    const RootUse *use = &in.root.at[i];
    BufId b = use->root;
    BufSpace space = prog_buf(p, b)->space;
    bool inside = use->count == o->total[b];
    if (space == BS_reg && !inside) return false;
    if (space == BS_reg || !use->read || !use->write || disjoint(o, &in, b, s->var)) continue;
    if (!inside || (space != BS_temp && space != BS_local)) return false;
    if (own) own[b] = true;
  }
  return true;
}

/* ---- traffic between threads ---- */

/* Does the expression depend on a variable of the set? */
static bool any_of(ParallelCtx *o, ExprId id) {
  for (ExprVisit w = ex_visit(o->p, id); ex_next(&w);)
    if (w.e->kind == EX_var && o->in_var[w.e->ref] == o->round) return true;
  return false;
}

/* Adds the variables whose values depend on the set. */
static void follow(ParallelCtx *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));)
    if ((s->kind == ST_let || s->kind == ST_set || s->kind == ST_for) &&
        (any_of(o, s->a) || any_of(o, s->b)))
      o->in_var[s->var] = o->round;
}

/* First dimension whose index depends on a variable of the set; rank: none. */
static u32 split_dim(ParallelCtx *o, const Access *t) {
  u32 d = 0;
  while (d < t->n && !any_of(o, t->idx[d])) d++;
  return d;
}

/* Cache lines shared at the boundary of two threads' parts. If the split dimension is not the
 * first, there is one in every row of the earlier dimensions. */
static double torn_lines(Prog *p, const Access *t, u32 d) {
  const Buf *b = prog_buf(p, t->buf);
  if (d >= t->n || t->n != b->rank || (b->space != BS_temp && b->space != BS_out)) return 0;
  double outer = 1, inner = (double)dtype_bytes(b->dt);
  for (u32 i = 0; i < b->rank; i++) {
    if (!dim_is_const(b->dim[i])) return 0;
    if (i < d) outer *= (double)b->dim[i];
    if (i > d) inner *= (double)b->dim[i];
  }
  return fmod(inner, figures.line_bytes) == 0 ? 0 : outer;
}

/* Traffic of a loop whose iterations of v are split between threads; v 0: one thread runs all.
 * note: record the cuts of its results for kernels that read them. */
static ThreadTraffic traffic_of(ParallelCtx *o, StmtId loop, VarId v, bool note) {
  Prog *p = o->p;
  Mark m = arena_mark(&p->c->scratch);
  Accesses in = accesses_one(p, loop);
  o->round++;
  o->in_var[v] = o->round;
  follow(o, prog_stmt(p, loop)->body);
  ThreadTraffic r = {0};
  for (u32 i = 0; i < in.at.n; i++) {
    const Access *t = &in.at.at[i];
    BufSpace space = prog_buf(p, t->root)->space;
    u32 d = split_dim(o, t);
    u64 bytes;
    Sym sym;
    if (note && t->write && d < t->n) o->cut[t->root] = (BufCut){t->buf, d};
    if (t->write) r.torn = fmax(r.torn, torn_lines(p, t, d));
    if (t->write || o->in_root[t->root] == o->round || space == BS_reg || space == BS_in) continue;
    if (!mem_bytes(p, t->root, &bytes, &sym)) continue;
    o->in_root[t->root] = o->round;
    const BufCut *c = &o->cut[t->root];
    if (space == BS_const && d == t->n) r.weights += (double)bytes;
    if (space == BS_const) continue;
    if (c->buf) r.alone += (double)bytes;
    if (d == t->n)
      r.handed += (double)bytes;
    else if (c->buf == t->buf && c->dim != d)
      r.handed += (double)bytes / 2;
  }
  arena_rewind(&p->c->scratch, m);
  return r;
}

/* Bytes of the temporaries that only this loop accesses; they move between threads in every
 * iteration if the body becomes kernels. */
static double own_bytes(ParallelCtx *o, StmtId loop) {
  Prog *p = o->p;
  Mark m = arena_mark(&p->c->scratch);
  Accesses in = accesses_one(p, loop);
  double sum = 0;
  for (u32 i = 0; i < in.root.n; i++) {
    BufId b = in.root.at[i].root;
    BufSpace space = prog_buf(p, b)->space;
    u64 bytes;
    Sym sym;
    if (in.root.at[i].count != o->total[b] || (space != BS_temp && space != BS_local)) continue;
    if (mem_bytes(p, b, &bytes, &sym)) sum += (double)bytes;
  }
  arena_rewind(&p->c->scratch, m);
  return sum;
}

/* Time on one thread, including loads of data that others wrote. Traffic is not counted inside
 * loops between kernels, where each iteration loads only a part. */
static double lone_cost(ParallelCtx *o, StmtId id) {
  if (o->inside) return stmt_time(o->p, o->range, id);
  ThreadTraffic r = traffic_of(o, id, 0, false);
  return stmt_time(o->p, o->range, id) + traffic_alone(&r);
}

typedef enum ParallelKind { WAY_one, WAY_chain, WAY_open } ParallelKind;

typedef struct ParallelChoice {
  ParallelKind way;
  double time;
  Chain chain;
} ParallelChoice;

/* Are the bounds independent of the loops of the chain? */
static bool rectangular(Prog *p, const Chain *c, const Stmt *s) {
  for (u32 i = 0; i < c->n; i++) {
    VarId v = prog_stmt(p, c->at[i])->var;
    if (ex_mentions(p, s->a, v) || ex_mentions(p, s->b, v)) return false;
  }
  return true;
}

/* The loop and those directly inside that could be collapsed. */
static Chain nest_from(ParallelCtx *o, StmtId loop) {
  Prog *p = o->p;
  Chain c = {0};
  for (StmtId id = loop; id && c.n < CHAIN; id = prog_stmt(p, id)->body) {
    const Stmt *s = prog_stmt(p, id);
    if (c.n && (s->next || s->kind != ST_for)) break;
    if ((s->flags & LF_unroll) || !rectangular(p, &c, s) || !is_free(o, id, NULL)) break;
    c.at[c.n++] = id;
  }
  return c;
}

/* Collapses as many loops as needed to have enough iterations for all threads. */
static Chain chain_from(ParallelCtx *o, const Chain *nest, double whole) {
  Chain c = {.trip_count = 1, .fixed = true};
  double enough = figures.chunks * o->p->threads;
  for (u32 i = 0; i < nest->n; i++) {
    bool fixed;
    double n = stmt_trip_count(o->p, o->range, prog_stmt(o->p, nest->at[i]), &fixed);
    if (i &&
        (c.trip_count >= enough || whole / (c.trip_count * n) < o->grain / figures.grain_turns))
      break;
    c.at[c.n++] = nest->at[i];
    c.trip_count *= n;
    c.fixed = c.fixed && fixed;
  }
  return c;
}

static u32 count_list(Prog *p, StmtId first) {
  u32 n = 0;
  for (StmtId s = first; s; s = prog_stmt(p, s)->next) n++;
  return n;
}

/* Finds where a list can be split into kernels. Registers and variables must not cross a split.
 * False: not possible or not useful. */
static bool find_cuts(ParallelCtx *o, StmtId first, bool *cut) {
  Prog *p = o->p;
  u32 n = 0, end = 0;
  bool any = false;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    if (s->kind == ST_set || s->kind == ST_require) return false;
    any = any || (s->kind == ST_for && !(s->flags & LF_unroll) && s->body);
  }
  if (!any) return false;
  u64 from = o->counted; /* smaller numbers belong to other lists */
  Mark m = arena_mark(&p->c->scratch);
  Accesses *in = NEWS(&p->c->scratch, Accesses, count_list(p, first));
  for (StmtId id = first; id;
       id = prog_stmt(p, id)->next, n++) { /* last statement that uses each one */
    in[n] = accesses_one(p, id);
    for (u32 i = 0; i < in[n].root.n; i++) o->last_root[in[n].root.at[i].root] = from + n;
    for (u32 i = 0; i < in[n].used.n; i++) o->last_var[in[n].used.at[i]] = from + n;
  }
  for (u32 k = 0; k < n; k++) {
    for (u32 i = 0; i < in[k].root.n; i++) {
      BufId root = in[k].root.at[i].root;
      if (prog_buf(p, root)->space == BS_reg && o->last_root[root] > from + end)
        end = (u32)(o->last_root[root] - from);
    }
    for (u32 i = 0; i < in[k].declares.n; i++)
      if (o->last_var[in[k].declares.at[i]] > from + end)
        end = (u32)(o->last_var[in[k].declares.at[i]] - from);
    cut[k] = end <= k;
  }
  arena_rewind(&p->c->scratch, m);
  o->counted += n;
  return true;
}

static ParallelChoice choose(ParallelCtx *o, StmtId id);

/* Time of a list whose statements become kernels, one for those that share registers or variables;
 * `whole` if it cannot be split. */
static double open_time(ParallelCtx *o, StmtId first, double whole) {
  Prog *p = o->p;
  bool *cut = NEWS(&p->c->scratch, bool, count_list(p, first) + 1), alone = true;
  if (!find_cuts(o, first, cut)) return whole;
  double sum = 0;
  u32 n = 0;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next, n++) {
    sum += alone && cut[n] ? choose(o, id).time : lone_cost(o, id);
    alone = cut[n];
  }
  return sum;
}

/* Iterations of a chunk: about figures.chunks per thread, equally many for every thread. */
static u32 chunk_of(ParallelCtx *o, const Chain *c, double whole, u32 shares) {
  double n = c->trip_count, least = ceil(o->grain * n / whole),
         chunk = floor(n / ((double)shares * o->p->threads));
  if (!c->fixed) chunk = 1; /* the trip count may be smaller */
  if (chunk < least) chunk = least;
  double each = ceil(ceil(n / chunk) / o->p->threads);
  chunk = ceil(n / (each * o->p->threads));
  return chunk < 1 ? 1 : chunk > INT32_MAX ? INT32_MAX : (u32)chunk;
}

/* Iterations of a strip: close to a chunk, with the best balance. */
static u32 strip_of(ParallelCtx *o, const Chain *c, double whole, u32 shares, double *part) {
  u32 chunk = chunk_of(o, c, whole, shares), best = chunk, n = o->p->threads;
  *part = 1;
  for (u32 k = 0; k <= 2 * chunk && k < 256; k++) {
    u32 size = k & 1 ? chunk + (k + 1) / 2 : chunk - k / 2;         /* closest first */
    if (!size || size * whole < o->grain * c->trip_count) continue; /* too small */
    double each = ceil(ceil(c->trip_count / size) / n) * size / c->trip_count;
    if (each >= *part - 1e-9) continue;
    *part = each;
    best = size;
  }
  return best;
}

/* Tries strips of an inner loop, if faster than *best. */
static void try_strips(ParallelCtx *o, StmtId id, const Chain *nest, double whole,
                       ParallelChoice *best) {
  Prog *p = o->p;
  for (u32 k = 1; k < nest->n; k++) {
    Chain c = *nest;
    const Stmt *s = prog_stmt(p, c.at[k]);
    c.n = k + 1;
    c.trip_count = stmt_trip_count(o->p, o->range, s, &c.fixed);
    if (c.trip_count < 2 || s->step > INT32_MAX) continue;
    ThreadTraffic r = traffic_of(o, id, s->var, false);
    double part;
    c.strip =
        strip_of(o, &c, whole, r.weights > figures.few_bytes ? 1 : (u32)figures.chunks, &part);
    double each = ceil(ceil(c.trip_count / c.strip) / p->threads);
    double time = whole * part + o->grain / figures.grain_handing + traffic_time(&r, each);
    if (time < best->time) *best = (ParallelChoice){WAY_chain, time, c};
  }
}

/* Does every statement of the body stand for itself: no registers, variables or scratch between
 * them? Then a loop over one of them after the other computes the same. */
static bool is_separable(ParallelCtx *o, StmtId loop) {
  Prog *p = o->p;
  StmtId body = prog_stmt(p, loop)->body;
  u32 n = count_list(p, body);
  if (n < 2 || n > FISSION_MAX || p->var.n + n >= o->vars) return false;
  Mark m = arena_mark(&p->c->scratch);
  bool *cut = NEWS(&p->c->scratch, bool, n + 1), fine = find_cuts(o, body, cut);
  for (u32 k = 0; fine && k + 1 < n; k++) fine = cut[k];
  Accesses in = accesses_list(p, body);
  for (u32 i = 0; fine && i < in.root.n; i++) {
    const RootUse *use = &in.root.at[i];
    if (prog_buf(p, use->root)->space == BS_reg || !use->read || !use->write) continue;
    fine = disjoint(o, &in, use->root, prog_stmt(p, loop)->var); /* no scratch of an iteration */
  }
  arena_rewind(&p->c->scratch, m);
  return fine;
}

/* Replaces v in the statement by a new variable. */
static VarId rename_var(ParallelCtx *o, StmtId id, VarId v) {
  Prog *p = o->p;
  VarId mine = prog_add_var(p, DT_i64, prog_var(p, v)->name);
  const Stmt *s;
  o->range[mine] = o->range[v];
  for (StmtVisit w = prog_visit_one(p, id); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_var && x.e->ref == v) x.e->ref = mine;
  return mine;
}

/* Replaces `for i { a; b }` by `for i { a } for i { b }` where iterations are independent,
 * innermost first, so that each nest has as many iterations as possible. */
static void separate(ParallelCtx *o, StmtId first) {
  Prog *p = o->p;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    Stmt *s = prog_stmt(p, id);
    if (s->kind != ST_for || (s->flags & LF_unroll) || !is_free(o, id, NULL)) continue;
    separate(o, s->body);
    if (!is_separable(o, id)) continue;
    Stmt copy = *prog_stmt(p, id);
    StmtId rest = prog_stmt(p, copy.body)->next, last = id;
    prog_stmt(p, copy.body)->next = 0;
    while (rest) {
      copy.body = rest;
      rest = prog_stmt(p, copy.body)->next;
      prog_stmt(p, copy.body)->next = 0;
      copy.var = rename_var(o, copy.body, prog_stmt(p, id)->var);
      copy.a = ex_copy(p, copy.a);
      copy.b = ex_copy(p, copy.b);
      *vec_push(&p->c->work, &p->stmt) = copy;
      prog_stmt(p, last)->next = p->stmt.n - 1;
      last = p->stmt.n - 1;
    }
  }
}

/* Is a loop of the list worth a launch for every iteration around it? */
static bool has_grid(ParallelCtx *o, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(o->p, first); (s = prog_next(&w));)
    if (s->kind == ST_for && !(s->flags & LF_unroll) && nest_from(o, w.id).n &&
        stmt_time(o->p, o->range, w.id) > figures.launch_ns)
      return true;
  return false;
}

/* On a GPU the structure decides: every independent iteration has a worker. */
static ParallelChoice choose_grid(ParallelCtx *o, StmtId id) {
  const Stmt *s = prog_stmt(o->p, id);
  ParallelChoice best = {.way = WAY_one};
  if (s->kind != ST_for) return best;
  best.chain = nest_from(o, id);
  bool *cut = NEWS(&o->p->c->scratch, bool, count_list(o->p, s->body) + 1);
  if (best.chain.n)
    best.way = WAY_chain;
  else if (!(s->flags & LF_unroll) && !ex_loads(o->p, s->a) && !ex_loads(o->p, s->b) &&
           has_grid(o, s->body) && find_cuts(o, s->body, cut))
    best.way = WAY_open;
  return best;
}

static ParallelChoice choose(ParallelCtx *o, StmtId id) {
  Prog *p = o->p;
  if (p->threads == GPU_THREADS) return choose_grid(o, id);
  ParallelChoice best = {.time = lone_cost(o, id)};
  double whole = stmt_time(o->p, o->range, id), n = p->threads;
  const Stmt *s = prog_stmt(p, id);
  bool fixed;
  if (s->kind != ST_for || whole < o->grain * figures.grain_alone) return best;
  Chain nest = nest_from(o, id), c = chain_from(o, &nest, whole);
  bool shared = c.n && c.trip_count > 1;
  ThreadTraffic r = {0};
  if (shared) {
    r = traffic_of(o, id, s->var, false);
    double time = whole * ceil(c.trip_count / n) / c.trip_count + o->grain / figures.grain_handing +
                  traffic_time(&r, 1);
    if (time < best.time) best = (ParallelChoice){WAY_chain, time, c};
    try_strips(o, id, &nest, whole, &best);
  }
  if ((s->flags & LF_unroll) || ex_loads(p, s->a) || ex_loads(p, s->b)) return best;
  o->inside++;
  double body = list_time(o->p, o->range, s->body), open = open_time(o, s->body, body);
  o->inside--;
  if (open >= body) return best;
  open = (open * figures.inner_slack + own_bytes(o, id) / 2 * figures.ns_per_byte_shared) *
         stmt_trip_count(o->p, o->range, s, &fixed);
  if (!shared) r = traffic_of(o, id, s->var, false);
  if (r.weights > figures.own_bytes)
    open += r.weights * figures.ns_per_byte_llc * stmt_trip_count(o->p, o->range, s, &fixed) / n;
  if (open < best.time) best = (ParallelChoice){.way = WAY_open, .time = open};
  return best;
}

/* ---- the new program ---- */

static StmtId new_kernel(ParallelCtx *o, Stmt like) {
  Stmt *k = vec_push(&o->p->c->work, &o->p->stmt);
  *k = (Stmt){.kind = ST_kernel, .label = like.label, .loc = like.loc, .step = 1};
  return o->p->stmt.n - 1;
}

static void hand_out(ParallelCtx *o, const Chain *c, double whole) {
  Prog *p = o->p;
  for (u32 i = 0; i < c->n; i++) {
    Stmt *s = prog_stmt(p, c->at[i]);
    is_free(o, c->at[i], o->own);
    s->chunk = i ? 0 : c->strip ? 1 : chunk_of(o, c, whole, (u32)figures.chunks);
  }
}

/* Adds a loop over strips around the loops of the chain; the last one iterates over a strip. */
static StmtId put_strips(ParallelCtx *o, StmtId id, const Chain *c) {
  Prog *p = o->p;
  StmtId inner = c->at[c->n - 1];
  VarId v = prog_add_var(p, DT_i64, str_of(p->c, "strip"));
  Stmt *outer = vec_push(&p->c->work, &p->stmt);
  StmtId strips = p->stmt.n - 1;
  Stmt *s = prog_stmt(p, inner);
  *outer = (Stmt){.kind = ST_for, .loc = s->loc, .var = v, .a = s->a, .b = s->b, .chunk = 1};
  outer->role = s->role;
  outer->record = s->record;
  outer->step = s->step * c->strip;
  outer->flags = LF_parallel;
  outer->body = id;
  ExprId end = ex_op2(p, OP_add, ex_var(p, v), ex_int(p, outer->step)), hi = ex_copy(p, outer->b);
  s->a = ex_var(p, v);
  i64 lo, to;
  bool whole = ex_is_int(p, outer->a, &lo) && ex_is_int(p, hi, &to) && (to - lo) % outer->step == 0;
  s->b = whole ? end : ex_op2(p, OP_min, end, hi);
  return strips;
}

/* Removes marks from all loops except the chain. */
static void unmark(Prog *p, StmtId first, const Chain *c) {
  Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    bool keep = false;
    for (u32 i = 0; c && i < c->n; i++) keep = keep || c->at[i] == w.id;
    if (!keep) s->flags &= (u8)~LF_parallel;
  }
}

/* Makes a kernel of the loops of the chain. */
static void add_shared(ParallelCtx *o, Stmt k, StmtId id, const Chain *c, StmtList *l) {
  Prog *p = o->p;
  hand_out(o, c, stmt_time(o->p, o->range, id));
  traffic_of(o, id, prog_stmt(p, c->at[c->strip ? c->n - 1 : 0])->var, true);
  unmark(p, id, c->strip ? NULL : c);
  if (c->strip) id = put_strips(o, id, c);
  StmtId alone = new_kernel(o, k);
  prog_stmt(p, alone)->body = id;
  stmts_move(o->p, l, alone);
}

/* Appends the statements of a list to l as kernels with the name of k. Neighbors that one thread
 * runs become one kernel. */
static void split_kernel(ParallelCtx *o, Stmt k, StmtId first, StmtList *l) {
  Prog *p = o->p;
  u32 count = count_list(p, first), n = 0;
  bool *cut = NEWS(&p->c->scratch, bool, count + 1), alone = true;
  bool cuts = find_cuts(o, first, cut);
  StmtList serial = {0};
  StmtId kernel = 0;
  for (StmtId id = first, next; id; id = next, n++) {
    next = prog_stmt(p, id)->next;
    prog_stmt(p, id)->next = 0;
    ParallelChoice c = {0};
    if (cuts && alone && cut[n]) c = choose(o, id);
    alone = cuts && cut[n];
    if (c.way == WAY_one) {
      unmark(p, id, NULL);
      if (!kernel) {
        stmts_move(o->p, l, kernel = new_kernel(o, k));
        serial = (StmtList){0};
      }
      stmts_move(o->p, &serial, id);
      prog_stmt(p, kernel)->body = serial.first;
      continue;
    }
    kernel = 0;
    if (c.way == WAY_chain) {
      add_shared(o, k, id, &c.chain, l);
      continue;
    }
    StmtList inside = {0};
    o->inside++;
    split_kernel(o, k, prog_stmt(p, id)->body, &inside);
    o->inside--;
    Stmt *between = prog_stmt(p, id);
    between->body = inside.first;
    between->flags &= (u8)~LF_parallel;
    between->role = RO_none;
    between->record = 0;
    stmts_move(o->p, l, id);
  }
}

/* Returns the list with its kernels unchanged, or split where that is faster. */
static StmtId visit_list(ParallelCtx *o, StmtId first) {
  Prog *p = o->p;
  StmtList l = {0};
  for (StmtId id = first, next; id; id = next) {
    Mark m = arena_mark(&p->c->scratch);
    Stmt s = *prog_stmt(p, id);
    next = s.next;
    if (s.kind != ST_kernel) {
      StmtId body = visit_list(o, s.body), other = visit_list(o, s.other);
      prog_stmt(p, id)->body = body;
      prog_stmt(p, id)->other = other;
      stmts_move(o->p, &l, id);
      arena_rewind(&p->c->scratch, m);
      continue;
    }
    bool gpu = p->threads == GPU_THREADS;
    if (gpu) separate(o, s.body);
    double whole = gpu ? 0 : list_time(o->p, o->range, s.body), lone = 0;
    for (StmtId k = s.body; k && !gpu; k = prog_stmt(p, k)->next) lone += lone_cost(o, k);
    if (!gpu && (whole < o->grain * figures.grain_alone || open_time(o, s.body, lone) >= lone)) {
      unmark(p, s.body, NULL);
      stmts_move(o->p, &l, id);
    } else {
      StmtList parts = {0};
      split_kernel(o, s, s.body, &parts);
      const Stmt *k;
      for (StmtVisit w = prog_visit(p, parts.first); (k = prog_next(&w));)
        if (k->kind == ST_kernel) record_split(p, id, w.id);
      for (StmtId part = parts.first, after; part; part = after) {
        after = prog_stmt(p, part)->next;
        stmts_move(p, &l, part);
      }
    }
    arena_rewind(&p->c->scratch, m);
  }
  return l.first;
}

void parallel(Prog *p) {
  if (p->threads < 2) return;
  u32 vars = p->var.n + p->stmt.n; /* a loop may get one more for its strips, or for its copy */
  ParallelCtx o = {.p = p, .vars = vars, .range = NEWS(&p->c->scratch, Range, vars)};
  memcpy(o.range, prog_ranges(p, NULL, &p->c->scratch), p->var.n * sizeof *o.range);
  o.grain = p->grain ? p->grain : figures.grain_ns;
  o.total = NEWS(&p->c->scratch, u32, p->buf.n);
  o.own = NEWS(&p->c->scratch, bool, p->buf.n);
  o.cut = NEWS(&p->c->scratch, BufCut, p->buf.n);
  o.in_var = NEWS(&p->c->scratch, u32, vars);
  o.last_var = NEWS(&p->c->scratch, u64, vars);
  o.in_root = NEWS(&p->c->scratch, u32, p->buf.n);
  o.last_root = NEWS(&p->c->scratch, u64, p->buf.n);
  Accesses all = accesses_list(p, p->body);
  for (u32 i = 0; i < all.at.n; i++) o.total[all.at.at[i].root]++;
  p->body = visit_list(&o, p->body);
  for (BufId b = 1; b < p->buf.n; b++) {
    Buf *x = prog_buf(p, b);
    BufId root = prog_root(p, b);
    if (x->space != BS_temp && x->space != BS_local) continue;
    x->space = o.own[root] ? BS_local : BS_temp;
  }
}
