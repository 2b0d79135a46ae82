/* record.c: the records of kernels: lists, times, and comparison with the loops.
 *
 * In: a program in which lowering, or a text, attached records to kernels and roles to loops. Out:
 * see record.h. The comparison covers sizes of tiles, types of accumulators, buffers and roles:
 * iterations of a loop with the role reduce have a common result; those of other roles do not add
 * to one buffer at an index that they do not change. It does not prove that iterations write
 * different elements. Back ends therefore check in the loops what their code relies on
 * (vm_panel.c). */
#include "ir/prog/record.h"

#include "ir/prog/prog.h"

const FamilyInfo family_info[FA_COUNT] = {
#define FAMILY(name, title, hue, why) {#name, title, why, hue},
#include "ir/prog/families.def"
#undef FAMILY
};

const char *const role_name[RO_COUNT] = {"", "batch", "panel", "row", "lane", "reduce"};

/* ---- lists ---- */

/* Appends a list, which begins with `first`, to the records of the kernel. */
static void append(Prog *p, StmtId kernel, RecordId first) {
  RecordId head = prog_stmt(p, kernel)->record;
  if (!head) {
    prog_stmt(p, kernel)->record = first;
    return;
  }
  u32 n = prog_record(p, prog_record(p, head)->last)->number;
  prog_record(p, prog_record(p, head)->last)->next = first;
  prog_record(p, head)->last = prog_record(p, first)->last;
  for (RecordId r = first; r; r = prog_record(p, r)->next) prog_record(p, r)->number = ++n;
}

RecordId record_add(Prog *p, StmtId kernel, const KernelRecord *r) {
  KernelRecord *x = vec_push(&p->c->work, &p->record);
  RecordId id = p->record.n - 1;
  *x = *r;
  x->next = 0;
  x->last = id;
  x->number = 1;
  append(p, kernel, id);
  return id;
}

void record_move(Prog *p, StmtId from, StmtId to) {
  RecordId first = prog_stmt(p, from)->record;
  prog_stmt(p, from)->record = 0;
  if (first) append(p, to, first);
}

void record_rename(Prog *p, StmtId kernel, BufId was, BufId buf) {
  for (RecordId r = prog_stmt(p, kernel)->record; r; r = prog_record(p, r)->next) {
    KernelRecord *x = prog_record(p, r);
    if (x->out == was) x->out = buf;
    for (u32 i = 0; i < RECORD_IN; i++)
      if (x->packed[i] == was) x->packed[i] = buf;
  }
}

Str record_size(const Prog *p, const KernelRecord *r) {
  if (r->size) return r->size;
  const TileExtent *t = &r->tile;
  if (t->rows) return str_fmt(p->c, "%ux%u of %u lanes", t->rows, t->panels, t->lanes);
  return t->lanes > 1 ? str_fmt(p->c, "of %u lanes", t->lanes) : 0;
}

TileExtent tile_larger(TileExtent a, TileExtent b) {
  u64 x = (u64)a.rows * a.panels * a.lanes, y = (u64)b.rows * b.panels * b.lanes;
  return x > y || (x == y && a.panels >= b.panels) ? a : b;
}

/* ---- times ---- */

/* Adds the time of the outermost loops of each record in the list. */
static void estimate(Prog *p, const Range *range, StmtId first, double times, double *ns) {
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    bool fixed;
    if (s->kind == ST_for && s->record) {
      ns[s->record] += times * stmt_time(p, range, id);
      continue;
    }
    double n = s->kind == ST_for ? stmt_trip_count(p, range, s, &fixed) : 1;
    estimate(p, range, s->body, times * n, ns);
    estimate(p, range, s->other, times, ns);
  }
}

/* The only record of a kernel has all of its time. */
void record_estimate(Prog *p) {
  Arena *a = &p->c->scratch;
  const Range *range = prog_ranges(p, NULL, a);
  double *ns = NEWS(a, double, p->record.n);
  const Stmt *k;
  for (StmtVisit w = prog_visit(p, p->body); (k = prog_next(&w));) {
    w.skip = k->kind == ST_kernel;
    if (!w.skip || !k->record) continue;
    if (prog_record(p, k->record)->next)
      estimate(p, range, k->body, 1, ns);
    else
      ns[k->record] = list_time(p, range, k->body);
  }
  for (RecordId r = 1; r < p->record.n; r++)
    prog_record(p, r)->ns = ns[r] < 1e18 ? (u64)(ns[r] + 0.5) : (u64)1e18;
}

/* ---- comparison with loops ---- */

/* Findings in the loops of a kernel, for all of its records: one visit. */
typedef struct KernelSeen {
  RecordId *id;     /* records by number - 1 */
  TileExtent *tile; /* accumulators inside of loops of the record, by number - 1; all 0: none */
  u32 records;
  TileExtent outer[DT_COUNT]; /* accumulators of a type outside of loops of any record */
  bool sum[DT_COUNT], computed[DT_COUNT], dot_i8x4, dot_i16x2;
  Map load, store; /* storage that is read and written */
} KernelSeen;

/* Does the statement combine the target with its previous value? */
static bool accumulates(Prog *p, const Stmt *s) {
  if (s->kind == ST_set) return ex_mentions(p, s->a, s->var);
  if (s->kind != ST_store) return false;
  for (ExprVisit x = ex_visit(p, s->a); ex_next(&x);) {
    bool same = x.e->kind == EX_load && x.e->ref == s->buf && x.e->narg == s->nidx;
    for (u32 i = 0; same && i < s->nidx; i++) same = ex_same(p, x.e->arg[i], s->idx[i]);
    if (same) return true;
  }
  return false;
}

static DType target_type(const Prog *p, const Stmt *s) {
  return s->kind == ST_store ? prog_buf(p, s->buf)->dt : prog_var(p, s->var)->dt;
}

static void see_expr(const Prog *p, const Expr *e, KernelSeen *seen) {
  seen->computed[e->dt] = true;
  if (e->kind == EX_load) *map_put(&seen->load, prog_root(p, e->ref)) = 1;
  seen->dot_i8x4 |= e->kind == EX_op && e->op == OP_dot_i8x4;
  seen->dot_i16x2 |= e->kind == EX_op && e->op == OP_dot_i16x2;
}

/* Does the record belong to the kernel? */
static bool is_listed(const Prog *p, const KernelSeen *seen, RecordId r) {
  u32 i = prog_record(p, r)->number - 1;
  return i < seen->records && seen->id[i] == r;
}

/* in: the record of the innermost loop around s that has one; 0: none. */
static void see_stmt(Prog *p, const Stmt *s, RecordId in, KernelSeen *seen) {
  const Buf *b = s->kind == ST_store ? prog_buf(p, s->buf) : NULL;
  if (b) *map_put(&seen->store, prog_root(p, s->buf)) = 1;
  for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) see_expr(p, x.e, seen);
  if (!accumulates(p, s)) return;
  DType sum = target_type(p, s);
  seen->sum[sum] = true;
  if (!b || b->space != BS_reg || b->rank != 2) return;
  if (in && (!is_listed(p, seen, in) || prog_record(p, in)->sum != sum)) return;
  TileExtent *tile = in ? &seen->tile[prog_record(p, in)->number - 1] : &seen->outer[sum];
  *tile = tile_larger(*tile, (TileExtent){(u32)b->dim[0], (u32)b->dim[1], b->lanes});
}

static void see_list(Prog *p, StmtId first, RecordId in, KernelSeen *seen) {
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    RecordId inside = s->kind == ST_for && s->record ? s->record : in;
    see_stmt(p, s, inside, seen);
    see_list(p, s->body, inside, seen);
    see_list(p, s->other, inside, seen);
  }
}

static void see_kernel(Prog *p, StmtId kernel, KernelSeen *seen) {
  Arena *a = &p->c->scratch;
  RecordId first = prog_stmt(p, kernel)->record;
  u32 n = first ? prog_record(p, prog_record(p, first)->last)->number : 0;
  *seen = (KernelSeen){.id = NEWS(a, RecordId, n),
                       .tile = NEWS(a, TileExtent, n),
                       .records = n,
                       .load = map_new(a),
                       .store = map_new(a)};
  for (RecordId r = first; r; r = prog_record(p, r)->next)
    seen->id[prog_record(p, r)->number - 1] = r;
  see_list(p, prog_stmt(p, kernel)->body, 0, seen);
}

static TileExtent tile_seen(const KernelSeen *seen, const KernelRecord *r) {
  return seen->tile[r->number - 1].rows ? seen->tile[r->number - 1] : seen->outer[r->sum];
}

static bool storage_seen(const Prog *p, const Map *m, BufId b) {
  return map_get(m, prog_root(p, b)) != NULL;
}

static const char *message(Prog *p, const char *text, const char *what) {
  return str_text(p->c, str_fmt(p->c, text, what));
}

static const char *buf_mismatch(Prog *p, BufId b, const char *text) {
  return message(p, text, show(p->c, prog_buf(p, b)->name));
}

static const char *compare(Prog *p, const KernelRecord *r, const KernelSeen *seen) {
  const char *name = family_info[r->family].name;
  if (r->sum && !seen->sum[r->sum])
    return message(p, "record %s: nothing is summed in that type", name);
  TileExtent t = r->tile, is = tile_seen(seen, r);
  if (t.rows && (is.rows != t.rows || is.panels != t.panels || is.lanes != t.lanes))
    return str_text(p->c, str_fmt(p->c,
                                  "record %s: tile of %u rows, %u panels and %u lanes, but the "
                                  "accumulators are %u x %u of %u lanes",
                                  name, t.rows, t.panels, t.lanes, is.rows, is.panels, is.lanes));
  bool dots = r->family == FA_dot_i8x4    ? seen->dot_i8x4
              : r->family == FA_dot_i16x2 ? seen->dot_i16x2
                                          : true;
  if (r->sum && !dots) return message(p, "record %s: the kernel has no such dot product", name);
  for (u32 i = 0; i < RECORD_IN; i++) {
    if (r->in[i] && !seen->computed[r->in[i]])
      return message(p, "record: the kernel computes nothing in %s", dtype_info[r->in[i]].name);
    if (r->packed[i] && !storage_seen(p, &seen->load, r->packed[i]))
      return buf_mismatch(p, r->packed[i], "record: the kernel does not load the panels %s");
  }
  if (r->out && !storage_seen(p, &seen->store, r->out))
    return buf_mismatch(p, r->out, "record: the kernel does not store its result %s");
  return NULL;
}

static bool mentions(Prog *p, ExprId e, const Map *vars) {
  for (ExprVisit x = ex_visit(p, e); ex_next(&x);)
    if (x.e->kind == EX_var && map_get(vars, x.e->ref)) return true;
  return false;
}

/* Does an index of the store depend on the iteration? */
static bool moves(Prog *p, const Stmt *s, const Map *depend) {
  for (u32 i = 0; i < s->nidx; i++)
    if (mentions(p, s->idx[i], depend)) return true;
  return false;
}

static const char *role_mismatch(Prog *p, const Stmt *loop) {
  Arena *a = &p->c->scratch;
  const Stmt *s;
  const char *name = show(p->c, prog_var(p, loop->var)->name);
  /* Variables of the body; variables that depend on the iteration; buffers that the body stores to
   * without reading their previous values. */
  Map in = map_new(a), depend = map_new(a), starts = map_new(a);
  *map_put(&depend, loop->var) = 1;
  for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));) {
    if (s->kind == ST_store && !accumulates(p, s)) *map_put(&starts, s->buf) = 1;
    if (s->kind != ST_for && s->kind != ST_let && s->kind != ST_set) continue;
    if (s->kind != ST_set) *map_put(&in, s->var) = 1;
    if (mentions(p, s->a, &depend) || (s->b && mentions(p, s->b, &depend)))
      *map_put(&depend, s->var) = 1;
  }
  if (loop->role == RO_reduce) {
    for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));)
      if (accumulates(p, s) || (s->kind == ST_set && !map_get(&in, s->var))) return NULL;
    return message(p, "loop %s has the role reduce, but its iterations have no common result",
                   name);
  }
  for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));) {
    bool shared = s->kind == ST_set && !map_get(&in, s->var);
    if (s->kind == ST_store && accumulates(p, s) && !moves(p, s, &depend))
      shared = !map_get(&starts, s->buf);
    if (shared)
      return message(p, "iterations of loop %s depend on each other, which its role excludes",
                     name);
  }
  return NULL;
}

const char *record_mismatch(Prog *p, StmtId kernel) {
  const Stmt *s;
  const char *wrong = NULL;
  KernelSeen seen;
  see_kernel(p, kernel, &seen);
  for (StmtVisit w = prog_visit(p, prog_stmt(p, kernel)->body); !wrong && (s = prog_next(&w));) {
    if (s->kind != ST_for || (!s->role && !s->record)) continue;
    bool known = !s->record || is_listed(p, &seen, s->record);
    if (s->role <= RO_none || s->role >= RO_COUNT || !known || !seen.records)
      return "a loop has an invalid role, or a record of another kernel";
    wrong = role_mismatch(p, s);
  }
  for (u32 i = 0; i < seen.records && !wrong; i++)
    wrong = compare(p, prog_record(p, seen.id[i]), &seen);
  return wrong;
}

/* ---- kernels that change ---- */

/* A part of a kernel may have smaller tiles, and no longer read or write a buffer. */
static void fit(const Prog *p, KernelRecord *r, const KernelSeen *seen) {
  if (r->tile.rows) {
    u32 lanes = r->tile.lanes;
    r->tile = tile_seen(seen, r);
    if (!r->tile.rows) r->tile.lanes = lanes;
  }
  if (!seen->sum[r->sum]) r->sum = DT_none;
  if (r->out && !storage_seen(p, &seen->store, r->out)) r->out = 0;
  for (u32 i = 0; i < RECORD_IN; i++) {
    if (!r->sum || !seen->computed[r->in[i]]) r->in[i] = DT_none;
    if (r->packed[i] && !storage_seen(p, &seen->load, r->packed[i])) r->packed[i] = 0;
  }
}

void record_fit(Prog *p, StmtId kernel) {
  KernelSeen seen;
  see_kernel(p, kernel, &seen);
  for (u32 i = 0; i < seen.records; i++) fit(p, prog_record(p, seen.id[i]), &seen);
}

void record_split(Prog *p, StmtId from, StmtId to) {
  Map copy = map_new(&p->c->scratch); /* record of `from` -> its copy */
  Stmt *s;
  for (StmtVisit w = prog_visit(p, prog_stmt(p, to)->body); (s = prog_next(&w));)
    if (s->kind == ST_for && s->record) *map_put(&copy, s->record) = 0;
  for (RecordId r = prog_stmt(p, from)->record; r; r = prog_record(p, r)->next) {
    KernelRecord was = *prog_record(p, r);
    u32 *id = map_get(&copy, r);
    if (id) *id = record_add(p, to, &was);
  }
  for (StmtVisit w = prog_visit(p, prog_stmt(p, to)->body); (s = prog_next(&w));)
    if (s->kind == ST_for && s->record) s->record = *map_get(&copy, s->record);
  record_fit(p, to);
}
