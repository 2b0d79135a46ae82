/* cbody.c: the body of a function: as it stands, or twice where it holds vectors.
 *
 * In: a list of statements: of a kernel, or of the entry. Out: its text. One that holds vectors,
 * registers or unrolled loops is written for the target, with C vectors in variables that have
 * names and with loops written out, under #if IG_VECTORS; and for any compiler, with arrays and
 * loops over lanes. A loop marked unroll whose bounds are not constants, or a body that would
 * become too long, is left to the second form.
 */
#include "back/c/c.h"

#include <inttypes.h>

enum { MOST_STATEMENTS = 20000 }; /* of a body with its loops written out */

/* ---- what is in it ---- */

static bool expr_is_special(Emit *e, ExprId id) {
  if (!id) return false;
  const Expr *x = prog_expr(e->p, id);
  if (x->lanes > 1 || x->kind == EX_hreduce || x->kind == EX_shuffle || x->kind == EX_splat ||
      x->kind == EX_quad)
    return true;
  if (x->kind == EX_load && prog_buf(e->p, x->ref)->space == BS_reg) return true;
  for (u32 i = 0; i < x->narg; i++)
    if (expr_is_special(e, x->arg[i])) return true;
  return false;
}

static bool is_special(Emit *e, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    if (s->kind == ST_kernel) continue;
    if (s->kind == ST_for && s->flags & LF_unroll) return true;
    if (s->kind == ST_store && prog_buf(e->p, s->buf)->space == BS_reg) return true;
    if (expr_is_special(e, s->a) || expr_is_special(e, s->b)) return true;
    for (u32 i = 0; i < s->nidx; i++)
      if (expr_is_special(e, s->idx[i])) return true;
    if (is_special(e, s->body) || is_special(e, s->other)) return true;
  }
  return false;
}

/* Bytes of the widest element among vectors. */
static u32 widest_expr(Emit *e, ExprId id, u32 most) {
  if (!id) return most;
  const Expr *x = prog_expr(e->p, id);
  if (x->lanes > 1) {
    u32 n = elem_bytes(elem_of(x->dt));
    most = n > most ? n : most;
  }
  for (u32 i = 0; i < x->narg; i++) most = widest_expr(e, x->arg[i], most);
  return most;
}

static u32 widest(Emit *e, StmtId first, u32 most) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    if (s->kind == ST_kernel) continue;
    most = widest_expr(e, s->a, widest_expr(e, s->b, most));
    for (u32 i = 0; i < s->nidx; i++) most = widest_expr(e, s->idx[i], most);
    most = widest(e, s->other, widest(e, s->body, most));
  }
  return most;
}

/* ---- loops written out ---- */

/* Adds the statements there will be; false: too many, or a bound is not known. */
static bool count(Emit *e, StmtId first, u32 *n) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    i64 lo, hi;
    if (s->kind == ST_kernel) continue;
    if (++*n > MOST_STATEMENTS) return false;
    if (s->kind != ST_for || !(s->flags & LF_unroll)) {
      if (!count(e, s->body, n) || !count(e, s->other, n)) return false;
      continue;
    }
    if (!fold_int(e, s->a, &lo) || !fold_int(e, s->b, &hi)) return false;
    e->known[s->var] = e->b.id;
    bool ok = true;
    for (i64 i = lo; ok && i < hi; i += s->step) {
      e->value[s->var] = i;
      ok = ++*n <= MOST_STATEMENTS && count(e, s->body, n);
      if (i > INT64_MAX - s->step) break;
    }
    e->known[s->var] = 0;
    if (!ok) return false;
  }
  return true;
}

bool put_unrolled(Emit *e, const Stmt *s) {
  i64 lo, hi;
  if (e->b.mode != BM_vectors || !(s->flags & LF_unroll)) return false;
  if (!fold_int(e, s->a, &lo) || !fold_int(e, s->b, &hi)) return false;
  e->known[s->var] = e->b.id;
  for (i64 i = lo; i < hi; i += s->step) {
    Text t = text_new(e->b.a);
    text_fmt(&t, i < 0 ? "(%" PRId64 ")" : "%" PRId64, i);
    e->var[s->var] = text_cstr(&t);
    e->value[s->var] = i;
    put_block(e, s->body);
  }
  e->known[s->var] = 0;
  return true;
}

/* ---- registers ---- */

static u32 number(Emit *e, BufId b) {
  StmtId mine = e->b.owner + 1;
  if (e->reg_owner[b] && e->reg_owner[b] != mine)
    fail(e->c, ERR_unsupported, LOC_NONE, "registers %s are used by two kernels",
         show(e->c, prog_buf(e->p, b)->name));
  e->reg_owner[b] = mine;
  if (e->reg_body[b] != e->b.id) e->reg[b] = e->b.nreg++;
  e->reg_body[b] = e->b.id;
  return e->reg[b];
}

static bool is_new(Emit *e, const Text *name) {
  u32 *slot = map_put_bytes(&e->b.declared, name->at, name->n);
  return !(*slot)++;
}

/* float r0[6][2][16] */
static void put_array(Emit *e, BufId b, const ExprId *idx, u32 n) {
  const Buf *x = prog_buf(e->p, b);
  Text name = text_new(e->b.a), *outer = e->t;
  text_fmt(&name, "r%u", number(e, b));
  if (is_new(e, &name)) {
    u64 bytes = (u64)x->lanes * dtype_bytes(x->dt) * 4; /* narrow floats take four */
    text_fmt(&e->b.decl, "  %s %s", c_type(x->dt), text_cstr(&name));
    for (u32 i = 0; i < n; i++) {
      text_fmt(&e->b.decl, "[%" PRId64 "]", x->dim[i]);
      bytes *= (u64)x->dim[i];
    }
    if (x->lanes > 1) text_fmt(&e->b.decl, "[%u]", x->lanes);
    text_puts(&e->b.decl, n || x->lanes > 1 ? " = {0};\n" : " = 0;\n");
    e->b.frame += bytes;
  }
  text_put(outer, name.at, name.n);
  for (u32 i = 0; i < n; i++) {
    text_puts(outer, "[");
    put_index(e, idx[i]);
    text_puts(outer, "]");
  }
}

/* r0_5_1, a variable; declared piece by piece */
static void put_variable(Emit *e, BufId b, const ExprId *idx, u32 n, bool whole) {
  const Buf *x = prog_buf(e->p, b);
  Text name = text_new(e->b.a);
  text_fmt(&name, "r%u", number(e, b));
  for (u32 i = 0; i < n; i++) {
    i64 k;
    if (!fold_int(e, idx[i], &k) || k < 0 || k >= x->dim[i])
      fail(e->c, ERR_unsupported, LOC_NONE, "index %u of registers %s is not a constant in range",
           i, show(e->c, x->name));
    text_fmt(&name, "_%" PRId64, k);
  }
  if (is_new(e, &name)) {
    Text *outer = e->t;
    Piece piece = e->b.piece;
    Pieces ps = pieces(e, x->lanes);
    for (u32 i = 0; i < ps.n; i++) {
      e->t = &e->b.decl;
      e->b.piece = ps.at[i];
      text_puts(e->t, "  ");
      if (ps.at[i].w > 1)
        put_vector_type(e, elem_of(x->dt), ps.at[i].w);
      else
        text_puts(e->t, c_type(x->dt));
      text_puts(e->t, " ");
      put_piece_name(e, text_cstr(&name), x->lanes);
      text_puts(e->t, ps.at[i].w > 1 ? " = {0};\n" : " = 0;\n");
    }
    e->t = outer;
    e->b.piece = piece;
    e->b.frame += x->lanes * elem_bytes(elem_of(x->dt)) + 16;
  }
  if (whole)
    text_put(e->t, name.at, name.n);
  else
    put_piece_name(e, text_cstr(&name), x->lanes);
}

/* whole: the name that pieces or lanes are told apart behind. */
void put_reg(Emit *e, BufId b, const ExprId *idx, u32 n, bool whole) {
  const Buf *x = prog_buf(e->p, b);
  if (!c_type(x->dt)) unsupported(e, dtype_info[x->dt].name);
  if (e->b.mode == BM_vectors) {
    put_variable(e, b, idx, n, whole);
    return;
  }
  put_array(e, b, idx, n);
  if (x->lanes > 1 && !whole) text_puts(e->t, "[z]");
}

/* ---- loads that stay where they are ---- */

static bool stores_registers(Emit *e, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    if (s->kind == ST_store && prog_buf(e->p, s->buf)->space == BS_reg) return true;
    if (stores_registers(e, s->body)) return true;
  }
  return false;
}

static void keep_expr(Emit *e, ExprId id, const char *how, u64 *seen) {
  if (!id) return;
  const Expr *x = prog_expr(e->p, id);
  u32 param = x->kind == EX_load ? e->param[x->ref] : 0;
  if (param && param <= 64 && !(*seen >> (param - 1) & 1)) {
    *seen |= (u64)1 << (param - 1);
    put_line(e, "%s(p%u);", how, param - 1);
    e->keeps = true;
  }
  for (u32 i = 0; i < x->narg; i++) keep_expr(e, x->arg[i], how, seen);
}

static void keep_list(Emit *e, StmtId first, u64 *seen) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    if (s->kind == ST_for && !(s->flags & LF_unroll)) return;
    if (s->kind == ST_store && prog_buf(e->p, s->buf)->space != BS_reg)
      keep_expr(e, s->a, "IG_HERE", seen);
    keep_list(e, s->body, seen);
  }
}

/* Behind a loop that has its sums in registers: what is loaded to finish them is the same for many
 * runs of the loop, and compilers load it before all of them. Held there it takes the registers
 * that the loop needs. */
void put_kept(Emit *e, const Stmt *loop) {
  u64 seen = 0;
  if (e->b.mode == BM_vectors && loop->next && stores_registers(e, loop->body))
    keep_list(e, loop->next, &seen);
}

static bool has_loop(Emit *e, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    if ((s->kind == ST_for && !(s->flags & LF_unroll)) || has_loop(e, s->body)) return true;
  }
  return false;
}

/* Elements that registers are filled with. */
static void keep_elements(Emit *e, StmtId first, u64 *seen) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    const Expr *x = s->kind == ST_let ? prog_expr(e->p, s->a) : 0;
    if (x && x->kind == EX_splat) keep_expr(e, s->a, "IG_HERE", seen);
    keep_elements(e, s->body, seen);
  }
}

/* At the head of a short loop that has its sums in registers: compilers write it out, and where a
 * window slides they hold what several of its steps read in registers that the sums need. */
void put_apart(Emit *e, const Stmt *loop) {
  enum { SHORT = 7 };
  i64 from, to;
  u64 seen = 0;
  if (e->b.mode == BM_vectors && fold_int(e, loop->a, &from) && fold_int(e, loop->b, &to) &&
      to - from <= SHORT && stores_registers(e, loop->body) && !has_loop(e, loop->body))
    keep_elements(e, loop->body, &seen);
}

/* Vectors that registers are filled with more than `MANY` times by loops that are written out. */
static void keep_vectors(Emit *e, const Stmt *s, i64 times, u64 *seen) {
  enum { MANY = 16 };
  i64 from, to;
  const Expr *x = s->kind == ST_store ? prog_expr(e->p, s->a) : 0;
  if (x && x->kind == EX_load && x->lanes > 1 && times > MANY &&
      prog_buf(e->p, s->buf)->space == BS_reg)
    keep_expr(e, s->a, "IG_FRESH", seen);
  if (s->kind != ST_for || !(s->flags & LF_unroll) || !fold_int(e, s->a, &from) ||
      !fold_int(e, s->b, &to))
    return;
  for (StmtId id = s->body; id; id = prog_stmt(e->p, id)->next)
    keep_vectors(e, prog_stmt(e->p, id), times * (to - from), seen);
}

/* Before loops that are written out: weights of a large window are the same for many tiles, and
 * clang loads all of them before the first, into memory where registers do not hold them. */
void put_fresh(Emit *e, const Stmt *loop) {
  u64 seen = 0;
  if (e->b.mode == BM_vectors) keep_vectors(e, loop, 1, &seen);
}

/* How often registers b are read and written, with loops written out. */
typedef struct Traffic {
  BufId b;
  i64 reads, writes;
  BufId seen[8]; /* all that are written */
  u32 nseen;
} Traffic;

static void see_reads(Emit *e, ExprId id, i64 times, Traffic *t) {
  if (!id) return;
  const Expr *x = prog_expr(e->p, id);
  if (x->kind == EX_load && x->ref == t->b) t->reads += times;
  for (u32 i = 0; i < x->narg; i++) see_reads(e, x->arg[i], times, t);
}

static void see_written(Emit *e, BufId b, Traffic *t) {
  for (u32 i = 0; i < t->nseen; i++)
    if (t->seen[i] == b) return;
  if (prog_buf(e->p, b)->space == BS_reg && t->nseen < 8) t->seen[t->nseen++] = b;
}

static void see_traffic(Emit *e, StmtId first, i64 times, Traffic *t) {
  i64 lo, hi;
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    const Stmt *s = prog_stmt(e->p, id);
    bool fixed = s->kind == ST_for && fold_int(e, s->a, &lo) && fold_int(e, s->b, &hi);
    if (s->kind == ST_store && s->buf == t->b) t->writes += times;
    if (s->kind == ST_store) see_written(e, s->buf, t);
    see_reads(e, s->a, times, t);
    see_traffic(e, s->body, fixed ? times * (hi - lo) : times, t);
    see_traffic(e, s->other, times, t);
  }
}

static i64 elements(const Buf *b) {
  i64 n = 1;
  for (u32 i = 0; i < b->rank; i++) n *= b->dim[i];
  return n;
}

/* A vector that a few products of one step read: gcc loads it at each of them, as their operand,
 * and loads take longer than products. Read more often it stays where it is without being told;
 * where sums leave no room for it, loading again is right. */
bool is_held(Emit *e, const Stmt *s) {
  enum { FEW = 6 };
  const Buf *b = prog_buf(e->p, s->buf);
  const Expr *x = prog_expr(e->p, s->a);
  if (e->b.mode != BM_vectors || b->space != BS_reg || x->kind != EX_load || !e->b.loop ||
      prog_buf(e->p, x->ref)->space == BS_reg || has_loop(e, e->b.loop->body))
    return false;
  Traffic t = {.b = s->buf};
  i64 each = elements(b), all = e->o->target->fma ? 1 : 2; /* the other factor, a product */
  see_traffic(e, e->b.loop->body, 1, &t);
  for (u32 i = 0; i < t.nseen; i++) {
    const Buf *r = prog_buf(e->p, t.seen[i]);
    all += elements(r) * pieces(e, r->lanes).n;
  }
  return t.writes == each && t.reads > each && t.reads <= FEW * each && t.nseen < 8 &&
         all <= e->o->target->regs;
}

/* ---- bodies ---- */

static void start(Emit *e, BodyMode mode, StmtId owner, u32 most) {
  e->b = (Body){.mode = mode, .owner = owner, .most = most, .piece = {0, 1, 0}};
  e->b.id = ++e->nbodies;
  e->b.a = owner ? &e->c->scratch : &e->c->keep; /* put_kernel_call empties it behind each kernel */
  if (mode == BM_plain) return;
  e->b.decl = text_new(e->b.a);
  e->b.declared = map_new(e->b.a);
}

static void write(Emit *e, StmtId first) {
  Text *outer = e->t, text = text_new(e->b.a);
  e->t = &text;
  put_block(e, first);
  e->t = outer;
  text_put(outer, e->b.decl.at, e->b.decl.n);
  text_put(outer, text.at, text.n);
}

/* Leaves in e->b.frame what the larger body takes. */
void put_body(Emit *e, StmtId first, StmtId owner) {
  if (!is_special(e, first)) {
    start(e, BM_plain, owner, 1);
    put_block(e, first);
    e->b.frame = 0; /* counted by its operations */
    return;
  }
  u32 n = 0, lanes = e->o->target->lanes, bytes = widest(e, first, 1);
  u64 frame = 0;
  start(e, BM_vectors, owner, lanes * 4 / bytes);
  bool twice = lanes > 1 && !e->o->target->loops && count(e, first, &n);
  if (twice) {
    e->vectors = true;
    if (!e->above) text_puts(e->t, "#if IG_VECTORS\n");
    write(e, first);
    if (e->above) return; /* it is compiled nowhere else */
    frame = e->b.frame;
    text_puts(e->t, "#else\n");
  }
  start(e, BM_loops, owner, 1);
  write(e, first);
  if (twice) text_puts(e->t, "#endif\n");
  if (frame > e->b.frame) e->b.frame = frame;
}
