/* prog_mem.c: analysis of the memory a program accesses.
 *
 * In: a verified program. Out: sizes of buffers for the bounds of their dimensions; the part of a
 * buffer that a store certainly writes. Method: indices are compared as expressions, or decomposed
 * into multiples of loop counters with constant bounds. Other indices count as not covered and not
 * shareable. */
#include "ir/prog/prog_mem.h"
#include "ir/prog/affine.h"

#include <stdlib.h>

/* ---- sizes ---- */

/* First symbol of d without an upper bound; false if all have one. */
static bool unbounded(Dims *ds, Dim d, Sym *out) {
  for (SymVisit w = dim_visit(ds, d); dim_next(&w);) {
    *out = w.sym;
    if (w.info->kind != SY_derived && w.info->hi >= DIM_MAX) return true;
  }
  return false;
}

bool mem_stride(Prog *p, BufId b, u64 *bytes, Sym *sym) {
  const Buf *bp = prog_buf(p, b);
  u64 n = (u64)dtype_bytes(bp->dt) * bp->lanes;
  i64 lo, hi;
  for (u32 i = 0; i < bp->rank; i++) {
    dim_bounds(p->dims, bp->dim[i], &lo, &hi);
    if (hi == 0) n = 0;
  }
  for (u32 i = 0; n && i < bp->rank; i++) {
    dim_bounds(p->dims, bp->dim[i], &lo, &hi);
    *sym = TOO_LARGE;
    if (hi >= DIM_MAX) unbounded(p->dims, bp->dim[i], sym);
    if (hi >= DIM_MAX || !size_mul(n, (u64)hi, &n) || n > (u64)DIM_MAX) return false;
  }
  return size_align(n, MEM_ALIGN, bytes);
}

bool mem_bytes(Prog *p, BufId b, u64 *bytes, Sym *sym) {
  if (!mem_stride(p, b, bytes, sym)) return false;
  if (prog_buf(p, b)->space != BS_local || p->threads < 2 || p->threads == GPU_THREADS)
    return true; /* on a GPU scratch has its own memory */
  *sym = TOO_LARGE;
  return size_mul(*bytes, p->threads, bytes) && *bytes <= (u64)DIM_MAX;
}

/* Finds the statement that sets the symbol, innermost first; false if there is none. */
static bool find_setter(Prog *p, StmtId first, Sym sym, bool loops, Loc *loc, bool *in_loop) {
  Loc around = *loc;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) *loc = s->loc;
    if (s->kind == ST_set && prog_var(p, s->var)->sym == (i32)sym) {
      i64 none;
      if (ex_is_int(p, s->a, &none)) continue; /* initial value before the loop */
      *in_loop = loops;
      return true;
    }
    bool inside = loops || s->kind == ST_while;
    if (find_setter(p, s->body, sym, inside, loc, in_loop)) return true;
    if (find_setter(p, s->other, sym, loops, loc, in_loop)) return true;
  }
  *loc = around;
  return false;
}

bool mem_overlap(Prog *p, BufId x, BufId y) {
  BufId r = prog_root(p, x), s = prog_root(p, y);
  u64 n, m;
  Sym sym;
  if (s == r) return true;
  const Buf *a = prog_buf(p, r), *b = prog_buf(p, s);
  if (!mem_in_arena(p, r) || !mem_in_arena(p, s)) return false;
  if (!mem_bytes(p, r, &n, &sym) || !mem_bytes(p, s, &m, &sym)) return true;
  return a->offset < b->offset + m && b->offset < a->offset + n;
}

void mem_refuse(Prog *p, BufId b, Sym sym) {
  Str name = prog_buf(p, b)->name;
  if (sym == TOO_LARGE)
    fail(p->c, ERR_unsupported, LOC_NONE, "buffer %s has more than 2^40 elements",
         show(p->c, name));
  const SymInfo *s = dim_syminfo(p->dims, sym);
  Loc loc = LOC_NONE;
  bool in_loop = false;
  if (s->kind == SY_data && find_setter(p, p->body, sym, false, &loc, &in_loop) && in_loop)
    fail(p->c, ERR_unsupported, loc,
         "%s has no upper bound, because the trip count of this loop is unknown; a constant trip "
         "count, a clamped one (Min, Clip) or an extent (--max-shapes) gives it a bound",
         show(p->c, name));
  fail(p->c, ERR_unsupported, loc,
       "buffer %s has no upper bound, because %s has none; --max-shapes sets one%s",
       show(p->c, name), show(p->c, s->name),
       s->kind == SY_data ? " if it follows from those of the inputs" : "");
}

void mem_need_plan(Prog *p) {
  if (p->planned) return;
  for (BufId b = 1; b < p->buf.n; b++) {
    u64 bytes;
    Sym sym;
    if (!prog_buf(p, b)->alias && mem_in_arena(p, b) && !mem_bytes(p, b, &bytes, &sym))
      mem_refuse(p, b, sym);
  }
  fail(p->c, ERR_usage, LOC_NONE, "the program has no memory plan; run the pass plan");
}

/* ---- unused buffers ---- */

static void use(Prog *p, bool *used, BufId b) {
  for (; b && !used[b]; b = prog_buf(p, b)->alias) used[b] = true;
}

/* Counts only expressions in statements: rewrites leave unused expressions. */
static bool *find_used(Prog *p) {
  bool *used = NEWS(&p->c->scratch, bool, p->buf.n);
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    use(p, used, s->buf);
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_load) use(p, used, x.e->ref);
  }
  for (u32 i = 0; i < p->in.n; i++) used[p->in.at[i]] = true;
  for (u32 i = 0; i < p->out.n; i++) used[p->out.at[i]] = true;
  return used;
}

void mem_sweep(Prog *p) {
  const bool *used = find_used(p);
  BufId *to = NEWS(&p->c->scratch, BufId, p->buf.n);
  u32 n = 1;
  for (BufId b = 1; b < p->buf.n; b++) {
    if (!used[b]) continue;
    to[b] = n;
    p->buf.at[n++] = *prog_buf(p, b);
  }
  if (n == p->buf.n) return;
  p->buf.n = n;
  for (BufId b = 1; b < n; b++) prog_buf(p, b)->alias = to[prog_buf(p, b)->alias];
  for (ExprId e = 1; e < p->nexpr; e++)
    if (prog_expr(p, e)->kind == EX_load) prog_expr(p, e)->ref = to[prog_expr(p, e)->ref];
  for (StmtId s = 1; s < p->stmt.n; s++) prog_stmt(p, s)->buf = to[prog_stmt(p, s)->buf];
  for (RecordId r = 1; r < p->record.n; r++) {
    KernelRecord *x = prog_record(p, r);
    x->out = to[x->out];
    for (u32 i = 0; i < RECORD_IN; i++) x->packed[i] = to[x->packed[i]];
  }
  for (u32 i = 0; i < p->in.n; i++) p->in.at[i] = to[p->in.at[i]];
  for (u32 i = 0; i < p->out.n; i++) p->out.at[i] = to[p->out.at[i]];
}

/* ---- indices ---- */

static const Stmt *loop_of(Prog *p, const Nesting *at, VarId v) {
  for (u32 i = 0; i < at->n; i++)
    if (prog_stmt(p, at->loop[i])->kind == ST_for && prog_stmt(p, at->loop[i])->var == v)
      return prog_stmt(p, at->loop[i]);
  return NULL;
}

enum { MEM_MAX = 1 << 30 }; /* limit of decomposed constants, so that nothing overflows */

static bool small(i64 x) {
  return x > -MEM_MAX && x < MEM_MAX;
}

static bool add_counter(Prog *p, const Nesting *at, VarId v, i64 coef, StridedIndex *s) {
  i64 lo, hi;
  const Stmt *f = loop_of(p, at, v);
  if (!f || s->n == MEM_TERMS || !ex_is_int(p, f->a, &lo) || !ex_is_int(p, f->b, &hi)) return false;
  if (!small(lo) || !small(hi) || !small(coef) || !small(f->step) || hi <= lo) return false;
  i64 trip = (hi - lo - 1) / f->step + 1;
  s->k += coef * lo;
  coef *= f->step;
  if (coef < 0) s->k += coef * (trip - 1);
  if (coef < 0) coef = -coef;
  if (!small(s->k) || !small(coef) || coef == 0) return false;
  u32 i = s->n++;
  for (; i > 0 && s->coef[i - 1] > coef; i--) {
    s->var[i] = s->var[i - 1];
    s->coef[i] = s->coef[i - 1];
    s->trip[i] = s->trip[i - 1];
  }
  s->var[i] = v;
  s->coef[i] = coef;
  s->trip[i] = trip;
  return true;
}

bool mem_steps(Prog *p, const Nesting *at, ExprId e, StridedIndex *s) {
  Affine a;
  if (!affine_of(p, e, &a) || !small(a.k)) return false;
  *s = (StridedIndex){.k = a.k};
  for (u32 i = 0; i < a.n; i++)
    if (!add_counter(p, at, a.t[i].var, a.t[i].coef, s)) return false;
  return true;
}

/* ---- coverage ---- */

/* Does the expression equal d, where d is a constant or one input symbol? */
static bool is_dim(Prog *p, ExprId id, Dim d) {
  const Expr *e = prog_expr(p, id);
  i64 k;
  if (ex_is_int(p, id, &k)) return k == d;
  if (e->kind != EX_var || prog_var(p, e->ref)->sym < 0) return false;
  Sym s = (Sym)prog_var(p, e->ref)->sym; /* a symbol set at run time may change later */
  return dim_syminfo(p->dims, s)->kind == SY_input && dim_of_sym(p->dims, s) == d;
}

/* Does the index cover a whole dimension, constant or symbolic, with its own counter? */
static bool runs_through(Prog *p, const Nesting *at, ExprId id, Dim d, VarId *v) {
  const Expr *e = prog_expr(p, id);
  i64 lo;
  if (e->kind != EX_var) return false;
  const Stmt *f = loop_of(p, at, e->ref);
  *v = e->ref;
  return f && f->step == 1 && ex_is_int(p, f->a, &lo) && lo == 0 && is_dim(p, f->b, d);
}

static bool has(const VarId *list, u32 n, VarId v) {
  for (u32 i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

/* Loops whose counter is not in the index must run at least once. */
static bool others_run(Prog *p, const Nesting *at, const VarId *used, u32 n) {
  for (u32 i = 0; i < at->n; i++) {
    const Stmt *f = prog_stmt(p, at->loop[i]);
    i64 lo, hi;
    if (f->kind == ST_for && has(used, n, f->var)) continue;
    if (f->kind != ST_for || !ex_is_int(p, f->a, &lo) || !ex_is_int(p, f->b, &hi) || lo >= hi)
      return false;
  }
  return true;
}

bool mem_box(Prog *p, const Nesting *at, const Stmt *store, WrittenRange *box) {
  const Buf *b = prog_buf(p, store->buf);
  VarId used[MEM_NEST];
  u32 n = 0;
  *box = (WrittenRange){store->buf, MAX_RANK, 0, 0};
  for (u32 d = 0; d < store->nidx; d++) {
    VarId v;
    i64 lanes = d + 1 == b->rank && b->lanes == 1 ? prog_expr(p, store->a)->lanes : 1;
    if (lanes == 1 && runs_through(p, at, store->idx[d], b->dim[d], &v)) {
      if (has(used, n, v)) return false;
      used[n++] = v;
      continue;
    }
    StridedIndex s;
    if (!dim_is_const(b->dim[d]) || !mem_steps(p, at, store->idx[d], &s)) return false;
    i64 reach = lanes;
    for (u32 i = 0; i < s.n; i++) {
      if (s.coef[i] > reach || has(used, n, s.var[i]) || n == MEM_NEST) return false;
      if (s.trip[i] > DIM_MAX / s.coef[i]) return false;
      reach += s.coef[i] * (s.trip[i] - 1);
      used[n++] = s.var[i];
    }
    if (s.k == 0 && reach >= b->dim[d]) continue;
    if (box->axis != MAX_RANK) return false;
    box->axis = d;
    box->lo = s.k;
    box->hi = s.k + reach;
  }
  return others_run(p, at, used, n);
}

static int by_place(const void *x, const void *y) {
  const WrittenRange *a = x, *b = y;
  if (a->buf != b->buf) return a->buf < b->buf ? -1 : 1;
  if (a->axis != b->axis) return a->axis < b->axis ? -1 : 1;
  return a->lo < b->lo ? -1 : a->lo > b->lo;
}

bool mem_whole(Prog *p, BufId b, WrittenRange *box, u32 n) {
  BufId buf = 0;
  u32 axis = 0;
  i64 reach = 0;
  if (n) qsort(box, n, sizeof *box, by_place);
  for (u32 i = 0; i < n; i++) {
    if (prog_root(p, box[i].buf) != prog_root(p, b)) continue;
    if (box[i].axis == MAX_RANK) return true;
    if (box[i].buf != buf || box[i].axis != axis) reach = 0;
    buf = box[i].buf;
    axis = box[i].axis;
    if (box[i].lo <= reach && box[i].hi > reach) reach = box[i].hi;
    if (reach >= prog_buf(p, buf)->dim[axis]) return true;
  }
  return false;
}
