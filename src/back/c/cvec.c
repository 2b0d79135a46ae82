/* cvec.c: statements on vectors, in both forms.
 *
 * In: statements whose values have lanes. Out: C. For the target a vector of the program is written
 * as pieces, each a C vector or, where fewer than four lanes are left, a scalar; a statement is
 * written once for each piece, because all operations but shuffles and horizontal reductions go
 * lane by lane. For any compiler it is an array, and a statement a loop over z, the lane. Shuffles
 * and reductions get variables of their own before the statement: operands are strict, so nothing
 * is computed that would not have been.
 */
#include "back/c/c.h"
#include "ir/prog_mem.h"

static bool is_split(const Emit *e, u32 lanes) {
  return lane_pieces(lanes, e->b.most).n > 1;
}

void put_piece_name(Emit *e, const char *base, u32 lanes) {
  text_puts(e->t, base);
  if (lanes == 1) return;
  if (e->b.mode == BM_loops)
    text_puts(e->t, "[z]");
  else if (is_split(e, lanes))
    text_fmt(e->t, "q%u", e->b.piece.q);
}

const char *tmp_name(const Emit *e, ExprId id) {
  for (u32 i = e->b.tmp.n; i-- > 0;)
    if (e->b.tmp.at[i].e == id) return e->b.tmp.at[i].name;
  return NULL;
}

static void set_tmp(Emit *e, ExprId id, const char *name) {
  *vec_push(e->b.a, &e->b.tmp) = (Tmp){id, name};
}

static const char *new_name(Emit *e) {
  Text t = text_new(e->b.a);
  text_fmt(&t, "h%u", e->b.ntmp++);
  return text_cstr(&t);
}

/* One lane of a vector with a name. */
static const char *lane_name(Emit *e, const char *base, u32 lanes, u32 k) {
  Text t = text_new(e->b.a), *outer = e->t;
  Piece piece = e->b.piece;
  e->t = &t;
  if (lanes == 1) {
    text_puts(&t, base);
  } else if (e->b.mode == BM_loops) {
    text_fmt(&t, "%s[%u]", base, k);
  } else {
    Pieces ps = lane_pieces(lanes, e->b.most);
    u32 i = 0;
    while (ps.at[i].off + ps.at[i].w <= k) i++;
    e->b.piece = ps.at[i];
    put_piece_name(e, base, lanes);
    if (ps.at[i].w > 1) text_fmt(&t, "[%u]", k - ps.at[i].off);
  }
  e->t = outer;
  e->b.piece = piece;
  return text_cstr(&t);
}

static void put_lane_loop(Emit *e, u32 lanes) {
  begin_line(e);
  if (lanes > 1) text_fmt(e->t, "for (int z = 0; z < %u; z++) ", lanes);
}

/* T name = value; or an array and a loop that fills it. */
static void declare(Emit *e, const char *name, ExprId value) {
  Expr x = *prog_expr(e->p, value);
  e->b.frame += x.lanes * elem_bytes(elem_of(x.dt)) + 16;
  if (e->b.mode == BM_loops || x.lanes == 1) {
    if (x.lanes > 1) put_line(e, "%s %s[%u];", c_type(x.dt), name, x.lanes);
    put_lane_loop(e, x.lanes);
    if (x.lanes == 1) text_fmt(e->t, "%s ", c_type(x.dt));
    put_piece_name(e, name, x.lanes);
    text_puts(e->t, " = ");
    put_expr(e, value);
    text_puts(e->t, ";\n");
    return;
  }
  Piece piece = e->b.piece;
  Pieces ps = lane_pieces(x.lanes, e->b.most);
  for (u32 i = 0; i < ps.n; i++) {
    e->b.piece = ps.at[i];
    begin_line(e);
    if (ps.at[i].w > 1)
      put_vector_type(e, elem_of(x.dt), ps.at[i].w);
    else
      text_puts(e->t, c_type(x.dt));
    text_puts(e->t, " ");
    put_piece_name(e, name, x.lanes);
    text_puts(e->t, " = ");
    put_piece(e, value);
    text_puts(e->t, ";\n");
  }
  e->b.piece = piece;
}

/* The name of an operand whose lanes are taken apart. */
static const char *operand(Emit *e, ExprId id) {
  Expr x = *prog_expr(e->p, id);
  const char *name = tmp_name(e, id);
  if (name) return name;
  if (x.kind == EX_var) return e->var[x.ref];
  if (x.kind == EX_load && prog_buf(e->p, x.ref)->space == BS_reg) {
    Text t = text_new(e->b.a), *outer = e->t;
    e->t = &t;
    put_reg(e, x.ref, x.arg, x.narg, true);
    e->t = outer;
    return text_cstr(&t);
  }
  name = new_name(e);
  declare(e, name, id);
  return name;
}

/* ---- horizontal reduction ---- */

static void hoist_reduce(Emit *e, ExprId id) {
  Expr x = *prog_expr(e->p, id);
  u32 lanes = prog_expr(e->p, x.arg[0])->lanes;
  const char *from = operand(e, x.arg[0]), *name = new_name(e);
  const char *pair[3] = {name, NULL, NULL};
  put_line(e, "%s %s = %s;", c_type(x.dt), name, lane_name(e, from, lanes, 0));
  u32 times = e->b.mode == BM_loops ? (lanes > 1) : lanes - 1;
  for (u32 i = 1; i <= times; i++) {
    Text z = text_new(e->b.a);
    text_fmt(&z, "%s[z]", from);
    begin_line(e);
    if (e->b.mode == BM_loops) text_fmt(e->t, "for (int z = 1; z < %u; z++) ", lanes);
    text_fmt(e->t, "%s = ", name);
    pair[1] = e->b.mode == BM_loops ? text_cstr(&z) : lane_name(e, from, lanes, i);
    Expr op = x;
    op.kind = EX_op;
    op.narg = 2;
    put_scalar_op(e, &op, x.dt, pair);
    text_puts(e->t, ";\n");
  }
  set_tmp(e, id, name);
}

/* ---- shuffle ---- */

typedef struct LaneSource {
  const char *name[2];
  u32 lanes; /* of each */
} LaneSource;

static void put_lane_list(Emit *e, const LaneSource *from, const u8 *pick, u32 n) {
  text_puts(e->t, "{");
  for (u32 i = 0; i < n; i++)
    text_fmt(e->t, "%s%s", i ? ", " : "",
             lane_name(e, from->name[pick[i] >= from->lanes], from->lanes, pick[i] % from->lanes));
  text_puts(e->t, "}");
}

/* A permutation of the lanes of one or two pieces of the same width, which machines have. */
static bool put_permuted(Emit *e, const LaneSource *from, Elem k, const u8 *pick, u32 w) {
  Pieces ps = lane_pieces(from->lanes, e->b.most);
  u32 part[2] = {0, 0}, n = 0;
  Text list = text_new(e->b.a);
  for (u32 i = 0; i < w; i++) {
    u32 which = pick[i] >= from->lanes, lane = pick[i] % from->lanes, q = 0, at = 0;
    while (ps.at[q].off + ps.at[q].w <= lane) q++;
    if (ps.at[q].w != w) return false;
    u32 id = which * ps.n + q;
    while (at < n && part[at] != id) at++;
    if (at == 2) return false;
    if (at == n) part[n++] = id;
    text_fmt(&list, ", %u", at * w + lane - ps.at[q].off);
  }
  Piece piece = e->b.piece;
  static const Elem mask[] = {[1] = VE_i8, [2] = VE_i16, [4] = VE_i32, [8] = VE_i64};
  text_puts(e->t, "IG_SHUFFLE(");
  put_vector_type(e, mask[elem_bytes(k)], w);
  for (u32 i = 0; i < 2; i++) {
    u32 id = part[i < n ? i : 0];
    text_puts(e->t, ", ");
    e->b.piece = ps.at[id % ps.n];
    put_piece_name(e, from->name[id / ps.n], from->lanes);
  }
  e->b.piece = piece;
  text_fmt(e->t, "%s)", text_cstr(&list));
  return true;
}

static void hoist_shuffle(Emit *e, ExprId id) {
  Expr x = *prog_expr(e->p, id);
  LaneSource from = {{NULL, NULL}, prog_expr(e->p, x.arg[0])->lanes};
  for (u32 i = 0; i < x.narg; i++) from.name[i] = operand(e, x.arg[i]);
  if (x.lanes == 1) {
    u32 k = x.pick[0];
    set_tmp(e, id, lane_name(e, from.name[k >= from.lanes], from.lanes, k % from.lanes));
    return;
  }
  const char *name = new_name(e);
  Elem k = elem_of(x.dt);
  Pieces ps = lane_pieces(x.lanes, e->b.most);
  e->b.frame += x.lanes * elem_bytes(k);
  if (e->b.mode == BM_loops) {
    begin_line(e);
    text_fmt(e->t, "const %s %s[%u] = ", c_type(x.dt), name, x.lanes);
    put_lane_list(e, &from, x.pick, x.lanes);
    text_puts(e->t, ";\n");
    ps.n = 0;
  }
  Piece piece = e->b.piece;
  for (u32 i = 0; i < ps.n; i++) {
    Piece p = e->b.piece = ps.at[i];
    begin_line(e);
    text_puts(e->t, "const ");
    if (p.w > 1)
      put_vector_type(e, k, p.w);
    else
      text_puts(e->t, c_type(x.dt));
    text_puts(e->t, " ");
    put_piece_name(e, name, x.lanes);
    text_puts(e->t, " = ");
    if (p.w == 1 || !put_permuted(e, &from, k, x.pick + p.off, p.w))
      put_lane_list(e, &from, x.pick + p.off, p.w);
    text_puts(e->t, ";\n");
  }
  e->b.piece = piece;
  set_tmp(e, id, name);
}

/* ---- before a statement ---- */

/* A scalar that is more than a number in memory is computed once, not in every lane. */
static bool is_costly_splat(Emit *e, const Expr *x) {
  return x->kind == EX_splat && x->lanes > 1 && prog_expr(e->p, x->arg[0])->kind == EX_op;
}

bool is_hoisted(Emit *e, ExprId id) {
  if (!id || e->b.mode == BM_plain) return false;
  const Expr *x = prog_expr(e->p, id);
  if (x->kind == EX_hreduce || x->kind == EX_shuffle || is_costly_splat(e, x)) return true;
  for (u32 i = 0; i < x->narg; i++)
    if (is_hoisted(e, x->arg[i])) return true;
  return false;
}

void hoist(Emit *e, ExprId id) {
  if (!is_hoisted(e, id)) return;
  Expr x = *prog_expr(e->p, id);
  for (u32 i = 0; i < x.narg; i++) hoist(e, x.arg[i]);
  if (x.kind == EX_hreduce) hoist_reduce(e, id);
  if (x.kind == EX_shuffle) hoist_shuffle(e, id);
  if (is_costly_splat(e, &x)) {
    const char *name = new_name(e);
    declare(e, name, x.arg[0]);
    set_tmp(e, x.arg[0], name);
  }
}

/* ---- assignments and stores ---- */

void put_vector_assign(Emit *e, const Stmt *s) {
  u32 lanes = prog_var(e->p, s->var)->lanes;
  if (s->kind == ST_let) {
    declare(e, e->var[s->var], s->a);
    return;
  }
  Piece piece = e->b.piece;
  Pieces ps = lane_pieces(e->b.mode == BM_loops ? 1 : lanes, e->b.most);
  for (u32 i = 0; i < ps.n; i++) {
    e->b.piece = ps.at[i];
    put_lane_loop(e, e->b.mode == BM_loops ? lanes : 1);
    put_piece_name(e, e->var[s->var], lanes);
    text_puts(e->t, " = ");
    put_piece(e, s->a);
    text_puts(e->t, ";\n");
  }
  e->b.piece = piece;
}

/* Does the value read, in another lane or place, what the store writes? */
static bool clashes(Emit *e, const Stmt *s, ExprId id) {
  const Expr *x = prog_expr(e->p, id);
  Prog *p = e->p;
  for (u32 i = 0; i < x->narg; i++)
    if (clashes(e, s, x->arg[i])) return true;
  if (x->kind != EX_load || !bufs_share(p, x->ref, s->buf)) return false;
  const Buf *a = prog_buf(p, x->ref), *b = prog_buf(p, s->buf);
  if (x->lanes != prog_expr(p, s->a)->lanes || a->rank != b->rank || a->dt != b->dt) return true;
  for (u32 i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i] || !ex_same(p, x->arg[i], s->idx[i])) return true;
  return false;
}

/* The value in a variable first, where a part of the store could change it. */
static void settle(Emit *e, const Stmt *s) {
  u32 lanes = prog_expr(e->p, s->a)->lanes;
  if (prog_buf(e->p, s->buf)->space == BS_reg || !clashes(e, s, s->a)) return;
  if (e->b.mode == BM_vectors && !is_split(e, lanes)) return;
  const char *name = new_name(e);
  declare(e, name, s->a);
  set_tmp(e, s->a, name);
}

void put_vector_store(Emit *e, const Stmt *s) {
  const Buf *b = prog_buf(e->p, s->buf);
  u32 lanes = prog_expr(e->p, s->a)->lanes;
  settle(e, s);
  if (e->b.mode == BM_loops) {
    put_lane_loop(e, lanes);
    put_element(e, s->buf, s->idx, s->nidx, lanes);
    text_puts(e->t, " = ");
    put_stored(e, b->space == BS_reg ? DT_f32 : b->dt, s->a);
    text_puts(e->t, ";\n");
    return;
  }
  Piece piece = e->b.piece;
  Pieces ps = lane_pieces(lanes, e->b.most);
  bool held = s->flags & SF_hold;
  for (u32 i = 0; i < ps.n; i++) {
    e->b.piece = ps.at[i];
    begin_line(e);
    put_piece_store(e, s);
    text_puts(e->t, ";\n");
    if (!held || ps.at[i].w == 1) continue;
    begin_line(e);
    text_puts(e->t, "IG_HOLD(");
    put_element(e, s->buf, s->idx, s->nidx, lanes);
    text_puts(e->t, ");\n");
    e->holds = true;
  }
  e->b.piece = piece;
}
