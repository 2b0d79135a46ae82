/* cbody.c: function bodies.
 *
 * In: the statements of a kernel or of the entry. Out: their text. A body with vectors, registers
 * or unrolled loops is written twice: for the target with C vectors, under #if IG_VECTORS, and for
 * any compiler with arrays and loops over lanes. prog_legalize prepares both. What prog_unroll does
 * not unroll exists only in the second form. */
#include "back/c/c.h"

#include <inttypes.h>

/* ---- registers ---- */

/* float r0[6][2][16] */
static void put_array(Emit *e, BufId b, const ExprId *idx, u32 n) {
  const Buf *x = prog_buf(e->p, b);
  StrBuf name = sb_new(e->b.a), *outer = e->t;
  if (e->by_buf.reg_body[b] != e->b.id) e->by_buf.reg[b] = e->b.nreg++;
  e->by_buf.reg_body[b] = e->b.id;
  sb_fmt(&name, "r%u", e->by_buf.reg[b]);
  u32 *declared = map_put_bytes(&e->b.declared, name.at, name.n);
  if (!(*declared)++) {
    u64 bytes = (u64)x->lanes * dtype_bytes(x->dt) * 4; /* narrow floats take four bytes */
    sb_fmt(&e->b.decl, "  %s %s", c_type(x->dt), sb_cstr(&name));
    for (u32 i = 0; i < n; i++) {
      sb_fmt(&e->b.decl, "[%" PRId64 "]", x->dim[i]);
      bytes *= (u64)x->dim[i];
    }
    if (x->lanes > 1) sb_fmt(&e->b.decl, "[%u]", x->lanes);
    sb_puts(&e->b.decl, n || x->lanes > 1 ? " = {0};\n" : " = 0;\n");
    e->b.frame += bytes;
  }
  sb_put(outer, name.at, name.n);
  for (u32 i = 0; i < n; i++) {
    sb_puts(outer, "[");
    put_index(e, idx[i]);
    sb_puts(outer, "]");
  }
}

/* whole: the name without the lane. */
void put_reg(Emit *e, BufId b, const ExprId *idx, u32 n, bool whole) {
  const Buf *x = prog_buf(e->p, b);
  if (!c_type(x->dt)) c_unsupported(e, dtype_info[x->dt].name);
  put_array(e, b, idx, n);
  if (x->lanes > 1 && !whole) sb_puts(e->t, "[z]");
}

/* ---- bodies ---- */

static void start(Emit *e, BodyMode mode, StmtId owner) {
  e->b = (FuncBody){.mode = mode, .id = ++e->nbodies};
  e->b.a = owner ? &e->c->scratch : &e->c->keep; /* put_kernel_call resets it after each kernel */
  if (mode == BM_plain) return;
  e->b.decl = sb_new(e->b.a);
  e->b.declared = map_new(e->b.a);
}

/* Room for names of the variables that prog_legalize adds. */
static void need_names(Emit *e) {
  if (e->p->var.n <= e->var.n) return;
  const char **var = NEWS(&e->c->keep, const char *, 2 * e->p->var.n);
  for (u32 i = 0; i < e->var.n; i++) var[i] = e->var.at[i];
  e->var.at = var;
  e->var.n = 2 * e->p->var.n;
}

/* Copies one kernel at a time, legalizes and writes the copy, and drops it. */
bool put_mode_body(Emit *e, StmtId first, BodyMode mode, StmtId owner) {
  Prog *p = e->p;
  bool vectors = mode == BM_vectors;
  start(e, mode, owner);
  ProgMark m = prog_mark(p);
  StmtId shared = e->shared;
  const Target *t = mode >= BM_vectors ? e->o->target : NULL;
  Caps has = mode == BM_warp ? caps_warp() : caps_scalars(t);
  StmtId body = kernel_legalize(p, first, t, &has, e->b.a);
  if (body) {
    if (shared == first) e->shared = body; /* the body is a single loop, nothing precedes it */
    need_names(e);
    e->variant->vec.twice = e->variant->vec.twice || vectors;
    if (vectors && !e->variant->vectors_only) put_template(e, e->t, "#if IG_VECTORS${sfx}\n");
    StrBuf *outer = e->t, text = sb_new(e->b.a);
    e->t = &text;
    put_block(e, body);
    e->t = outer;
    sb_put(outer, e->b.decl.at, e->b.decl.n);
    if (e->b.max_tiles) put_template(e, outer, "  ig_tiles_begin${sfx}();\n");
    sb_put(outer, text.at, text.n);
    if (e->b.max_tiles) sb_puts(outer, "  _tile_release();\n");
    e->shared = shared;
  }
  prog_rewind(p, m);
  return body != 0;
}

/* Leaves the frame of the larger form in e->b.frame. */
void put_body(Emit *e, StmtId first, StmtId owner) {
  const Target *t = e->o->target;
  if (!prog_is_special(e->p, first)) {
    start(e, BM_plain, owner);
    put_block(e, first);
    e->b.frame = 0; /* counted by its operations */
    return;
  }
  u64 frame = 0;
  bool twice = t->lanes > 1 && !t->loops && put_mode_body(e, first, BM_vectors, owner);
  if (twice) {
    if (e->variant->vectors_only) return; /* never compiled without vectors */
    frame = e->b.frame;
    sb_puts(e->t, "#else\n");
  }
  put_mode_body(e, first, BM_loops, owner);
  if (twice) sb_puts(e->t, "#endif\n");
  if (frame > e->b.frame) e->b.frame = frame;
}
