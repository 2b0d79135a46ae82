/* prog_lanes.c: splits vectors of a program into registers of a machine.
 *
 * A program has vectors of any length. All vectors of a kernel are split into pieces at the same
 * lanes, so that operations work piece by piece. A piece has as many lanes as one register holds of
 * the widest element type of the kernel. The lanes that remain use half registers, and scalars if
 * they are fewer than four. */
#include "ir/prog/prog.h"

u32 lane_bytes(DType dt) {
  if (dt == DT_f64) return 8;
  return dtype_is_float(dt) ? 4 : dtype_bytes(dt);
}

u32 prog_lanes(Prog *p, StmtId first, const Target *t) {
  const Stmt *s;
  u32 widest = 1;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->lanes > 1 && lane_bytes(x.e->dt) > widest) widest = lane_bytes(x.e->dt);
  }
  return t->warp ? t->lanes : t->lanes * 4 / widest;
}

DType lanes_stored(const Target *t, const Tensor *x) {
  bool widens = t->lanes >= 4 && t->has & CAP_f16;
  return widens && x->dt == DT_f32 && x->n >= LIMIT_half_elements ? tensor_half(x) : x->dt;
}

Pieces lane_pieces(u32 lanes, u32 max_lanes) {
  Pieces p = {.n = 0};
  u32 w = max_lanes;
  for (u32 off = 0; off < lanes; off += w) {
    while (w > lanes - off) w /= 2;
    if (w < 4 && w != max_lanes) w = 1;
    p.at[p.n] = (Piece){off, w, p.n};
    p.n++;
  }
  return p;
}
