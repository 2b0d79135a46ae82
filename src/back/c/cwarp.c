/* cwarp.c: vectors in CUDA.
 *
 * In: statements legalized for a warp: a vector has at most 32 lanes. Out: text in which it is a
 * scalar of each thread: thread t holds lane t modulo the number of lanes. So operations need no
 * separate text, all values of all threads are valid, and a scalar is the same in all threads.
 * A load takes the lane of the thread, a shuffle asks another thread. A store leaves out the
 * repeated lanes. Threads of a warp may be apart by some instructions: where a kernel also reads
 * what it stores, they meet before and after. */
#include "back/c/c.h"

/* The lane of this thread, of a vector with this many. */
void put_lane_number(Emit *e, const char *before, u32 lanes) {
  bool power = !(lanes & (lanes - 1));
  if (lanes == 32)
    sb_fmt(e->t, "%slane", before);
  else
    sb_fmt(e->t, power ? "%s(lane & %u)" : "%slane %% %u", before, power ? lanes - 1 : lanes);
}

/* Lane numbers as the bytes of up to four 64-bit constants. */
static void put_lane_table(Emit *e, const u8 *from, u32 n) {
  sb_puts(e->t, "ig_pick(");
  for (u32 k = 0; k < 4; k++) {
    u64 word = 0;
    for (u32 i = 0; i < 8; i++) word |= (u64)from[(8 * k + i) % n] << 8 * i;
    sb_fmt(e->t, "0x%llxu, ", (unsigned long long)word);
  }
  sb_puts(e->t, "lane)");
}

/* The thread to ask for lane i of one operand: from[i], for all i < n. */
static void put_asked(Emit *e, const u8 *from, u32 n) {
  bool same = true, shifted = true, crossed = true;
  for (u32 i = 1; i < n; i++) {
    same = same && from[i] == from[0];
    shifted = shifted && from[i] == from[0] + i;
    crossed = crossed && from[i] == (from[0] ^ i);
  }
  if (same)
    sb_fmt(e->t, "%u", from[0]);
  else if (crossed && from[0])
    sb_fmt(e->t, "lane ^ %u", from[0]);
  else if (shifted) {
    put_lane_number(e, "", n);
    if (from[0]) sb_fmt(e->t, " + %u", from[0]);
  } else
    put_lane_table(e, from, n);
}

/* Each operand gives a part of the lanes. All threads ask every operand, since they must execute a
 * shuffle together. */
void put_warp_shuffle(Emit *e, const Expr *x) {
  u32 n = prog_expr(e->p, x->arg[0])->lanes, open = 0;
  u8 from[MAX_LANES];
  for (u32 k = 0; k < x->narg; k++) {
    u32 mine = 0;
    bool later = false;
    for (u32 i = 0; i < x->lanes; i++) {
      bool here = x->pick[i] / n == k;
      from[i] = here ? x->pick[i] % n : 0;
      mine |= (u32)here << i;
      later = later || x->pick[i] / n > k;
    }
    if (!mine) continue;
    if (later) {
      sb_fmt(e->t, "ig_choose(0x%xu >> ", mine);
      put_lane_number(e, "", x->lanes);
      sb_puts(e->t, " & 1, ");
      open++;
    }
    if (n > 1) sb_puts(e->t, "ig_lane(");
    put_data(e, x->arg[k], PR_any);
    if (n > 1) {
      sb_puts(e->t, ", ");
      put_asked(e, from, x->lanes);
      sb_puts(e->t, ")");
    }
    if (later) sb_puts(e->t, ", ");
  }
  while (open--) sb_puts(e->t, ")");
}

void put_warp_store(Emit *e, const Stmt *s) {
  const Buf *b = prog_buf(e->p, s->buf);
  u32 lanes = prog_expr(e->p, s->a)->lanes;
  bool join = e->joins[prog_root(e->p, s->buf)];
  if (join) put_line(e, "{");
  begin_line(e);
  if (join) { /* all lanes load before any lane stores */
    sb_fmt(e->t,
           "const %s value = ", dtype_is_narrow_float(b->dt) ? c_storage(b->dt) : c_type(b->dt));
    put_stored(e, b->dt, s->a);
    sb_puts(e->t, ";\n");
    put_line(e, "ig_join();");
    begin_line(e);
  }
  if (lanes < 32) sb_fmt(e->t, "if (lane < %u) ", lanes);
  put_element(e, s->buf, s->idx, s->nidx, lanes);
  sb_puts(e->t, " = ");
  if (join)
    sb_puts(e->t, "value");
  else
    put_stored(e, b->dt, s->a);
  sb_puts(e->t, ";\n");
  if (join) put_line(e, "ig_join();\n  }");
}

/* A copy of one thread: 2, 4, 8 or 16 bytes. False: the value is not a copy. */
bool put_copy(Emit *e, const Stmt *s) {
  const Expr *value = prog_expr(e->p, s->a), *x = ex_copied(e->p, value);
  u32 bytes = value->lanes * dtype_bytes(value->dt);
  if (!x || prog_buf(e->p, x->ref)->space == BS_reg || prog_buf(e->p, s->buf)->space == BS_reg ||
      bytes > 16 || (bytes & (bytes - 1)))
    return false;
  if (x->lanes == 1 && !(s->flags & SF_async)) return false;
  begin_line(e);
  sb_fmt(e->t, "%s<%u>(&", s->flags & SF_async ? "ig_copy_async" : "ig_copy", bytes);
  put_element(e, s->buf, s->idx, s->nidx, 1);
  sb_puts(e->t, ", &");
  put_element(e, x->ref, x->arg, x->narg, 1);
  if (x != value) {
    sb_puts(e->t, ", ");
    put_data(e, prog_expr(e->p, value->arg[0])->arg[0], PR_any);
  }
  sb_puts(e->t, ");\n");
  return true;
}

/* ---- fragments: registers of all threads of the warp, in the layout of the instructions ---- */

const char *fragment_type(DType dt, u32 lanes) {
  return dt == DT_f32 && lanes == FRAG_LANES ? "ig_sums" : "ig_operand";
}

/* "&s[...], row length in elements" of a box. */
static void put_box(Emit *e, BufId b, const ExprId *idx, u32 n) {
  sb_puts(e->t, "&");
  put_element(e, b, idx, n, 1);
  sb_puts(e->t, ", ");
  put_dim(e, prog_buf(e->p, b)->dim[n - 1]);
}

void put_fragment(Emit *e, ExprId id) {
  const Expr *x = prog_expr(e->p, id);
  if (x->kind == EX_var) {
    sb_puts(e->t, e->var.at[x->ref]);
  } else if (x->kind == EX_splat) {
    sb_puts(e->t, "ig_sums_of(");
    put_data(e, x->arg[0], PR_any);
    sb_puts(e->t, ")");
  } else if (x->kind == EX_mma) {
    sb_fmt(e->t, "ig_mma_%s(", dtype_info[prog_expr(e->p, x->arg[0])->dt].name);
    for (u32 i = 0; i < 3; i++) {
      if (i) sb_puts(e->t, ", ");
      put_fragment(e, x->arg[i]);
    }
    sb_puts(e->t, ")");
  } else {
    const Expr *from = x->kind == EX_turn ? prog_expr(e->p, x->arg[0]) : x;
    sb_puts(e->t, x->kind == EX_turn ? "ig_operand_turned(" : "ig_operand_at(");
    put_box(e, from->ref, from->arg, from->narg);
    sb_puts(e->t, ")");
  }
}

void put_fragment_store(Emit *e, const Stmt *s) {
  begin_line(e);
  sb_puts(e->t, "ig_sums_store(");
  put_box(e, s->buf, s->idx, s->nidx);
  sb_puts(e->t, ", ");
  put_fragment(e, s->a);
  sb_puts(e->t, ");\n");
}
