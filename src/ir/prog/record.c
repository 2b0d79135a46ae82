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

static RecordId *end_of(Prog *p, StmtId kernel) {
  RecordId *at = &prog_stmt(p, kernel)->record;
  while (*at) at = &prog_record(p, *at)->next;
  return at;
}

RecordId record_add(Prog *p, StmtId kernel, const KernelRecord *r) {
  KernelRecord *x = vec_push(&p->c->work, &p->record);
  RecordId id = p->record.n - 1;
  *x = *r;
  x->next = 0;
  *end_of(p, kernel) = id;
  return id;
}

u32 record_number(const Prog *p, StmtId kernel, RecordId r) {
  u32 n = 1;
  for (RecordId x = prog_stmt(p, kernel)->record; x; x = prog_record(p, x)->next, n++)
    if (x == r) return n;
  return 0;
}

RecordId record_at(const Prog *p, StmtId kernel, u32 number) {
  RecordId r = prog_stmt(p, kernel)->record;
  while (r && number > 1) {
    r = prog_record(p, r)->next;
    number--;
  }
  return number ? r : 0;
}

void record_move(Prog *p, StmtId from, StmtId to) {
  *end_of(p, to) = prog_stmt(p, from)->record;
  prog_stmt(p, from)->record = 0;
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

/* Findings in the loops of one record. */
typedef struct RecordSeen {
  TileExtent tile; /* extent of the accumulators; all 0: none */
  bool own;        /* these are accumulators inside of loops of the record */
  bool sum, dot_i8x4, dot_i16x2, out, in[RECORD_IN], packed[RECORD_IN];
} RecordSeen;

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

static void see_expr(const Prog *p, const KernelRecord *r, const Expr *e, RecordSeen *seen) {
  for (u32 i = 0; i < RECORD_IN; i++) {
    seen->in[i] |= e->dt == r->in[i];
    seen->packed[i] |=
        r->packed[i] && e->kind == EX_load && prog_root(p, e->ref) == prog_root(p, r->packed[i]);
  }
  seen->dot_i8x4 |= e->kind == EX_op && e->op == OP_dot_i8x4;
  seen->dot_i16x2 |= e->kind == EX_op && e->op == OP_dot_i16x2;
}

/* in: the record of the innermost loop around s that has one; 0: none. */
static void see_stmt(Prog *p, RecordId id, const Stmt *s, RecordId in, RecordSeen *seen) {
  const KernelRecord *r = prog_record(p, id);
  const Buf *b = s->kind == ST_store ? prog_buf(p, s->buf) : NULL;
  if (b && r->out) seen->out |= prog_root(p, s->buf) == prog_root(p, r->out);
  for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) see_expr(p, r, x.e, seen);
  if (!accumulates(p, s) || (b ? b->dt : prog_var(p, s->var)->dt) != r->sum) return;
  seen->sum = true;
  if (!b || b->space != BS_reg || b->rank != 2 || (in && in != id) || (!in && seen->own)) return;
  TileExtent t = {(u32)b->dim[0], (u32)b->dim[1], b->lanes};
  seen->tile = in && !seen->own ? t : tile_larger(seen->tile, t);
  seen->own = in;
}

static void see_list(Prog *p, RecordId r, StmtId first, RecordId in, RecordSeen *seen) {
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    RecordId inside = s->kind == ST_for && s->record ? s->record : in;
    see_stmt(p, r, s, inside, seen);
    see_list(p, r, s->body, inside, seen);
    see_list(p, r, s->other, inside, seen);
  }
}

static const char *message(Prog *p, const char *text, const char *what) {
  return str_text(p->c, str_fmt(p->c, text, what));
}

static const char *buf_mismatch(Prog *p, BufId b, const char *text) {
  return message(p, text, show(p->c, prog_buf(p, b)->name));
}

static const char *compare(Prog *p, StmtId kernel, RecordId id) {
  const KernelRecord *r = prog_record(p, id);
  RecordSeen seen = {0};
  see_list(p, id, prog_stmt(p, kernel)->body, 0, &seen);
  const char *name = family_info[r->family].name;
  if (r->sum && !seen.sum) return message(p, "record %s: nothing is summed in that type", name);
  const TileExtent *t = &r->tile, *is = &seen.tile;
  if (t->rows && (is->rows != t->rows || is->panels != t->panels || is->lanes != t->lanes))
    return str_text(p->c,
                    str_fmt(p->c,
                            "record %s: tile of %u rows, %u panels and %u lanes, but the "
                            "accumulators are %u x %u of %u lanes",
                            name, t->rows, t->panels, t->lanes, is->rows, is->panels, is->lanes));
  bool dots = r->family == FA_dot_i8x4    ? seen.dot_i8x4
              : r->family == FA_dot_i16x2 ? seen.dot_i16x2
                                          : true;
  if (r->sum && !dots) return message(p, "record %s: the kernel has no such dot product", name);
  for (u32 i = 0; i < RECORD_IN; i++) {
    if (r->in[i] && !seen.in[i])
      return message(p, "record: the kernel computes nothing in %s", dtype_info[r->in[i]].name);
    if (r->packed[i] && !seen.packed[i])
      return buf_mismatch(p, r->packed[i], "record: the kernel does not load the panels %s");
  }
  if (r->out && !seen.out)
    return buf_mismatch(p, r->out, "record: the kernel does not store its result %s");
  return NULL;
}

typedef VEC(VarId) VarIds;

static bool has(const VarIds *in, VarId v) {
  for (u32 i = 0; i < in->n; i++)
    if (in->at[i] == v) return true;
  return false;
}

static bool mentions(Prog *p, ExprId e, const VarIds *in) {
  for (ExprVisit x = ex_visit(p, e); ex_next(&x);)
    if (x.e->kind == EX_var && has(in, x.e->ref)) return true;
  return false;
}

/* Does an index of the store depend on the iteration? */
static bool moves(Prog *p, const Stmt *s, const VarIds *depend) {
  for (u32 i = 0; i < s->nidx; i++)
    if (mentions(p, s->idx[i], depend)) return true;
  return false;
}

/* Does the list store elements of b without their previous values? */
static bool starts(Prog *p, StmtId first, BufId b) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
    if (s->kind == ST_store && s->buf == b && !accumulates(p, s)) return true;
  return false;
}

static const char *role_mismatch(Prog *p, const Stmt *loop) {
  Arena *a = &p->c->scratch;
  const Stmt *s;
  const char *name = show(p->c, prog_var(p, loop->var)->name);
  VarIds in = {0}, depend = {0}; /* variables of the body; those that depend on the iteration */
  *vec_push(a, &depend) = loop->var;
  for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));) {
    if (s->kind != ST_for && s->kind != ST_let && s->kind != ST_set) continue;
    if (s->kind != ST_set) *vec_push(a, &in) = s->var;
    if (mentions(p, s->a, &depend) || (s->b && mentions(p, s->b, &depend)))
      *vec_push(a, &depend) = s->var;
  }
  if (loop->role == RO_reduce) {
    for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));)
      if (accumulates(p, s) || (s->kind == ST_set && !has(&in, s->var))) return NULL;
    return message(p, "loop %s has the role reduce, but its iterations have no common result",
                   name);
  }
  for (StmtVisit w = prog_visit(p, loop->body); (s = prog_next(&w));) {
    bool shared = s->kind == ST_set && !has(&in, s->var);
    if (s->kind == ST_store && accumulates(p, s) && !moves(p, s, &depend))
      shared = !starts(p, loop->body, s->buf);
    if (shared)
      return message(p, "iterations of loop %s depend on each other, which its role excludes",
                     name);
  }
  return NULL;
}

const char *record_mismatch(Prog *p, StmtId kernel) {
  const Stmt *s;
  const char *wrong = NULL;
  for (StmtVisit w = prog_visit(p, prog_stmt(p, kernel)->body); !wrong && (s = prog_next(&w));) {
    if (s->kind != ST_for || (!s->role && !s->record)) continue;
    bool known = !s->record || record_number(p, kernel, s->record);
    if (s->role <= RO_none || s->role >= RO_COUNT || !known || !prog_stmt(p, kernel)->record)
      return "a loop has an invalid role, or a record of another kernel";
    wrong = role_mismatch(p, s);
  }
  for (RecordId r = prog_stmt(p, kernel)->record; r && !wrong; r = prog_record(p, r)->next)
    wrong = compare(p, kernel, r);
  return wrong;
}

/* ---- kernels that change ---- */

/* A part of a kernel may have smaller tiles, and no longer read or write a buffer. */
static void fit(Prog *p, StmtId kernel, RecordId id) {
  KernelRecord *r = prog_record(p, id);
  RecordSeen seen = {0};
  see_list(p, id, prog_stmt(p, kernel)->body, 0, &seen);
  if (r->tile.rows) {
    u32 lanes = r->tile.lanes;
    r->tile = seen.tile;
    if (!r->tile.rows) r->tile.lanes = lanes;
  }
  if (!seen.sum) r->sum = DT_none;
  if (!seen.out) r->out = 0;
  for (u32 i = 0; i < RECORD_IN; i++) {
    if (!seen.in[i] || !seen.sum) r->in[i] = DT_none;
    if (!seen.packed[i]) r->packed[i] = 0;
  }
}

void record_fit(Prog *p, StmtId kernel) {
  for (RecordId r = prog_stmt(p, kernel)->record; r; r = prog_record(p, r)->next) fit(p, kernel, r);
}

void record_split(Prog *p, StmtId from, StmtId to) {
  Stmt *s;
  for (RecordId r = prog_stmt(p, from)->record; r; r = prog_record(p, r)->next) {
    RecordId copy = 0;
    for (StmtVisit w = prog_visit(p, prog_stmt(p, to)->body); (s = prog_next(&w));) {
      if (s->kind != ST_for || s->record != r) continue;
      KernelRecord was = *prog_record(p, r);
      if (!copy) copy = record_add(p, to, &was);
      s->record = copy;
    }
    if (copy) fit(p, to, copy);
  }
}
