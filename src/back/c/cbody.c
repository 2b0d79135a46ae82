/* cbody.c: the body of a function: as it stands, or twice where it holds vectors.
 *
 * In: a list of statements: of a kernel, or of the entry. Out: its text. One that holds vectors,
 * registers or unrolled loops is written for the target, with C vectors in variables that have
 * names and with loops written out, under #if IG_VECTORS; and for any compiler, with arrays and
 * loops over lanes. What prog_unroll does not write out is left to the second form.
 */
#include "back/c/c.h"

#include <inttypes.h>

/* ---- what is in it ---- */

static bool is_special(Emit *e, StmtId first) {
  const Stmt *s;
  for (StmtWalk w = prog_walk(e->p, first); (s = prog_next(&w));) {
    if (s->kind == ST_for && s->flags & LF_unroll) return true;
    if (s->kind == ST_store && prog_buf(e->p, s->buf)->space == BS_reg) return true;
    for (ExprWalk x = ex_walk_stmt(e->p, s); ex_next(&x);)
      if (x.e->lanes > 1 || x.e->kind == EX_hreduce || x.e->kind == EX_shuffle ||
          x.e->kind == EX_splat || x.e->kind == EX_quad ||
          (x.e->kind == EX_load && prog_buf(e->p, x.e->ref)->space == BS_reg))
        return true;
    w.skip = s->kind == ST_kernel;
  }
  return false;
}

/* ---- registers ---- */

static u32 number(Emit *e, BufId b) {
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
    Pieces ps = lane_pieces(x->lanes, e->b.most);
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

/* ---- bodies ---- */

static void start(Emit *e, BodyMode mode, StmtId owner, u32 most) {
  e->b = (Body){.mode = mode, .most = most, .piece = {0, 1, 0}};
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

/* Names of variables, which unrolling adds to. */
static void need_names(Emit *e) {
  if (e->p->var.n <= e->nvars) return;
  const char **var = NEWS(&e->c->keep, const char *, 2 * e->p->var.n);
  for (u32 i = 0; i < e->nvars; i++) var[i] = e->var[i];
  e->var = var;
  e->nvars = 2 * e->p->var.n;
}

/* For the target: one kernel at a time is written out, and forgotten. */
static bool put_unrolled(Emit *e, StmtId first) {
  Prog *p = e->p;
  ProgMark m = prog_mark(p);
  StmtId shared = e->shared, body = prog_unroll(p, first, e->b.a);
  if (body) {
    need_names(e);
    if (shared == first) e->shared = body;
    e->vectors = true;
    if (!e->above) put_own(e, e->t, "#if IG_VECTORS@\n");
    write(e, body);
    e->shared = shared;
  }
  prog_rewind(p, m);
  return body != 0;
}

/* Leaves in e->b.frame what the larger body takes. */
void put_body(Emit *e, StmtId first, StmtId owner) {
  if (!is_special(e, first)) {
    start(e, BM_plain, owner, 1);
    put_block(e, first);
    e->b.frame = 0; /* counted by its operations */
    return;
  }
  u64 frame = 0;
  start(e, BM_vectors, owner, prog_lanes(e->p, first, e->o->target));
  bool twice = e->o->target->lanes > 1 && !e->o->target->loops && put_unrolled(e, first);
  if (twice) {
    if (e->above) return; /* it is compiled nowhere else */
    frame = e->b.frame;
    text_puts(e->t, "#else\n");
  }
  start(e, BM_loops, owner, 1);
  write(e, first);
  if (twice) text_puts(e->t, "#endif\n");
  if (frame > e->b.frame) e->b.frame = frame;
}
