/* ctile.c: fragments of integers in C.
 *
 * In: statements that load, multiply or store fragments. Out: intrinsics of AMX, in which each
 * fragment variable is the number of a matrix register. A number is free again after the block that
 * declares the variable. */
#include "back/c/c.h"

enum { TILES = 8 };

/* "&x[...], row length in bytes" of a box. */
static void put_box(Emit *e, BufId b, const ExprId *idx, u32 n) {
  sb_puts(e->t, "&");
  put_element(e, b, idx, n, 1);
  sb_puts(e->t, ", ");
  put_dim(e, prog_buf(e->p, b)->dim[n - 1]);
  sb_fmt(e->t, " * %u", dtype_bytes(prog_buf(e->p, b)->dt));
}

static const char *register_of(Emit *e, ExprId id) {
  const Expr *x = prog_expr(e->p, id);
  if (x->kind != EX_var) c_unsupported(e, "a fragment that is not in a register");
  return e->var.at[x->ref];
}

static void put_set(Emit *e, const char *to, ExprId id) {
  Expr x = *prog_expr(e->p, id), of = *prog_expr(e->p, x.arg[0]);
  if (x.kind == EX_splat && of.kind == EX_const && !of.imm.i) {
    sb_fmt(e->t, "_tile_zero(%s);\n", to);
  } else if (x.kind == EX_quad || x.kind == EX_turn) {
    put_template(e, e->t, "IG_TILE_LOAD${sfx}(%s, ", to);
    put_box(e, of.ref, of.arg, of.narg);
    sb_puts(e->t, ");\n");
  } else if (x.kind == EX_mma && register_of(e, x.arg[2]) == to) {
    sb_fmt(e->t, "_tile_dpbusd(%s, %s, %s);\n", to, register_of(e, x.arg[0]),
           register_of(e, x.arg[1]));
  } else {
    c_unsupported(
        e,
        "a fragment of integers other than zeros, quad, turn or a product added to its own sums");
  }
}

void put_tile_statement(Emit *e, const Stmt *s) {
  c_need(e, RT_tiles);
  e->variant->vec.intrinsics = e->variant->vec.tiles = true;
  begin_line(e);
  if (s->kind == ST_store) {
    sb_fmt(e->t, "_tile_stored(%s, ", register_of(e, s->a));
    put_box(e, s->buf, s->idx, s->nidx);
    sb_puts(e->t, ");\n");
    return;
  }
  if (s->kind == ST_let) {
    if (e->b.tiles == TILES) c_unsupported(e, "more than 8 fragments at a time");
    e->var.at[s->var] = str_text(e->c, str_fmt(e->c, "%u", e->b.tiles++));
    if (e->b.tiles > e->b.max_tiles) e->b.max_tiles = e->b.tiles;
  }
  put_set(e, e->var.at[s->var], s->a);
}
