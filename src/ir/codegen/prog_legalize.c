/* prog_legalize.c: rewrites statements so that a machine can execute them.
 *
 * In: a private list, made by prog_unroll or prog_copy. Out: the same list, changed in place. For a
 * machine with vectors:
 * - An element of a register buffer becomes a variable, declared where it is first written.
 * - A vector longer than a register is split into the pieces of prog_lanes.c, and so is each
 * statement, since operations work lane by lane. A piece of one lane is a scalar.
 * - Bytes made of four registers of floats are stored at once. The floats get variables, and a
 * shuffle that concatenates these is narrowed as a whole by back ends (ex_bytes).
 * - Any other shuffle takes its lanes from one or two variables of the same length, or becomes
 * scalars. A single lane is taken from a variable. A reduction combines such lanes in order.
 * - A quotient by a constant that is rounded to bytes becomes two products, if these round
 * identically (prog_quotient.c) and the machine has FMA.
 * prog_expand.c replaces operations that the back end lacks.
 *
 * For any compiler (max_lanes = 0), vectors are arrays and statements are loops over lanes. Then
 * only shuffles of several lanes and reductions are moved to their own let, and their operands
 * become variables or registers.
 *
 * In both cases a computed scalar that fills all lanes is computed once. If the store of one piece
 * could change what the next one loads, the value gets a variable first. Expressions are strict, so
 * hoisting never adds a computation. */
#include "ir/prog/prog_mem.h"

typedef struct Register {
  VarId var;    /* its variable */
  StmtId first; /* first statement that uses it */
  u32 in, home; /* in: list of the first use; home: innermost list with all uses */
  bool written; /* first writes it before any read */
} Register;

typedef struct Legal {
  Prog *p;
  Arena *a;
  u32 max_lanes;
  Legalize sequences;
  StmtList *out;     /* receives statements */
  bool steps;        /* the current statement sets lanes one after the other */
  Map part;          /* by variable: the first of its parts, which have consecutive ids */
  Map reg_at;        /* by buffer and element: 1 + number */
  VEC(Register) reg; /* in the order of the text */
  VEC(u32) around;   /* by list, in the order of the text: the enclosing list */
  StmtId head;       /* start of the list that declares registers read before they are written */
} Legal;

/* ---- expressions ---- */

static Expr *at(const Legal *o, ExprId id) {
  return prog_expr(o->p, id);
}

static ExprId make(Legal *o, Expr x, const ExprId *arg, u32 n) {
  x.arg = n ? arena_copy(o->a, arg, n * sizeof *arg) : NULL;
  x.narg = n;
  return ex_take(o->p, &x);
}

static ExprId copy(Legal *o, ExprId id) {
  Expr x = *at(o, id);
  const ExprId *arg = x.arg;
  x.arg = x.narg ? NEWS(o->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++) x.arg[i] = copy(o, arg[i]);
  return ex_take(o->p, &x);
}

static Expr var_expr(const Legal *o, VarId v) {
  const Var *x = prog_var(o->p, v);
  return (Expr){.kind = EX_var, .dt = x->dt, .lanes = x->lanes, .rows = x->rows, .ref = v};
}

static VarId new_var(Legal *o, DType dt, u32 lanes, Str name) {
  VarId v = prog_add_var(o->p, dt, name);
  prog_var(o->p, v)->lanes = lanes;
  return v;
}

/* A constant in all lanes. */
static ExprId number_all(Legal *o, DType dt, Scalar x, u32 lanes, u32 rows) {
  ExprId one = make(o, (Expr){.kind = EX_const, .dt = dt, .lanes = 1, .imm = x}, NULL, 0);
  Expr all = {.kind = EX_splat, .dt = dt, .lanes = lanes, .rows = rows};
  return lanes == 1 ? one : make(o, all, &one, 1);
}

static Pieces pieces(const Legal *o, u32 lanes) {
  if (o->max_lanes && lanes > 1) return lane_pieces(lanes, o->max_lanes);
  return (Pieces){1, {{0, lanes, 0}}};
}

/* The variable of a piece. */
static VarId part(Legal *o, VarId v, const Pieces *ps, u32 q) {
  if (ps->n == 1) return v;
  u32 *slot = map_put(&o->part, v);
  if (!*slot) {
    Var was = *prog_var(o->p, v);
    for (u32 i = 0; i < ps->n; i++) {
      Str name = str_fmt(o->p->c, "%s_%u", str_text(o->p->c, was.name), i);
      VarId made = new_var(o, was.dt, ps->at[i].w, name);
      if (!i) *slot = made;
    }
  }
  return *slot + q;
}

/* One lane of a variable. */
static ExprId lane(Legal *o, VarId v, u32 k) {
  Pieces ps = pieces(o, prog_var(o->p, v)->lanes);
  u32 q = 0;
  while (ps.at[q].off + ps.at[q].w <= k) q++;
  Expr x = var_expr(o, part(o, v, &ps, q));
  if (x.lanes == 1) return ex_take(o->p, &x);
  ExprId from = ex_take(o->p, &x);
  u8 *pick = NEWS(o->a, u8, 1);
  pick[0] = (u8)(k - ps.at[q].off);
  return make(o, (Expr){.kind = EX_shuffle, .dt = x.dt, .lanes = 1, .pick = pick}, &from, 1);
}

/* ---- pieces ---- */

/* Takes lanes from one or two pieces of the length of the result; else one by one. */
static ExprId shuffle_piece(Legal *o, const Expr *x, const Piece *to) {
  const u8 *pick = x->pick + to->off;
  u32 w = to->w, n = prog_var(o->p, at(o, x->arg[0])->ref)->lanes;
  Pieces ps = pieces(o, n);
  u8 *mine = NEWS(o->a, u8, w);
  u32 from[2], nfrom = 0;
  ExprId arg[MAX_LANES];
  Expr r = {.kind = EX_shuffle, .dt = x->dt, .lanes = w, .pick = mine};
  if (w == 1) return lane(o, at(o, x->arg[pick[0] / n])->ref, pick[0] % n);
  bool fits = true;
  for (u32 i = 0; i < w && fits; i++) {
    u32 k = pick[i] % n, q = 0, k2 = 0;
    while (ps.at[q].off + ps.at[q].w <= k) q++;
    u32 id = pick[i] / n * ps.n + q;
    while (k2 < nfrom && from[k2] != id) k2++;
    fits = ps.at[q].w == w && k2 < 2;
    if (fits && k2 == nfrom) from[nfrom++] = id;
    mine[i] = (u8)(k2 * w + k - ps.at[q].off);
  }
  for (u32 i = 0; fits && i < nfrom; i++) {
    VarId v = at(o, x->arg[from[i] / ps.n])->ref;
    Expr e = var_expr(o, part(o, v, &ps, from[i] % ps.n));
    arg[i] = ex_take(o->p, &e);
  }
  if (fits) return make(o, r, arg, nfrom);
  for (u32 i = 0; i < w; i++) {
    arg[i] = lane(o, at(o, x->arg[pick[i] / n])->ref, pick[i] % n);
    mine[i] = (u8)i;
  }
  return make(o, r, arg, w);
}

/* Offsets the last index to the start of a piece. */
static void move_last(Legal *o, ExprId *idx, u32 n, const Piece *to) {
  if (!to->off || !n) return;
  Expr k = {.kind = EX_const, .dt = DT_i64, .lanes = 1, .imm.i = to->off},
       *last = at(o, idx[n - 1]);
  if (last->kind == EX_const) {
    last->imm.i += to->off;
    return;
  }
  ExprId sum[2] = {idx[n - 1], ex_take(o->p, &k)};
  idx[n - 1] = make(o, (Expr){.kind = EX_op, .op = OP_add, .dt = DT_i64, .lanes = 1}, sum, 2);
}

/* Appends s after sequences for operations that the machine lacks. */
static void put_legal(Legal *o, Stmt s) {
  stmt_legalize(&o->sequences, &s, o->out);
  stmts_add(o->p, o->out, &s);
}

/* Gives a shuffle a variable, if the machine requires one. */
static ExprId set_apart(Legal *o, ExprId id) {
  const Expr *x = at(o, id);
  if (!o->sequences.has->apart || x->kind != EX_shuffle) return id;
  VarId v = new_var(o, x->dt, x->lanes, str_of(o->p->c, "s"));
  put_legal(o, (Stmt){.kind = ST_let, .var = v, .a = id, .step = 1, .loc = LOC_NONE});
  Expr var = var_expr(o, v);
  return ex_take(o->p, &var);
}

static ExprId piece(Legal *o, ExprId id, const Pieces *ps, u32 q) {
  Expr x = *at(o, id);
  const ExprId *arg = x.arg;
  const Piece *to = &ps->at[q];
  if (x.lanes == 1) return copy(o, id);
  if (x.kind == EX_shuffle) return set_apart(o, shuffle_piece(o, &x, to));
  if (x.kind == EX_splat && to->w == 1) return copy(o, arg[0]);
  x.lanes = to->w;
  if (x.kind == EX_var) x.ref = part(o, x.ref, ps, q);
  x.arg = x.narg ? NEWS(o->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++) x.arg[i] = piece(o, arg[i], ps, q);
  if (x.kind == EX_load) move_last(o, x.arg, x.narg, to);
  return ex_take(o->p, &x);
}

/* Appends a let, set or store per piece. */
static void put_pieces(Legal *o, const Stmt *s) {
  if (at(o, s->a)->rows) { /* a fragment stays whole */
    put_legal(o, *s);
    return;
  }
  Pieces ps = pieces(o, at(o, s->a)->lanes);
  for (u32 q = 0; q < ps.n; q++) {
    Stmt one = *s;
    if (ps.n > 1) one.a = piece(o, s->a, &ps, q);
    if (s->kind != ST_store) one.var = part(o, s->var, &ps, q);
    if (ps.at[q].w == 1) one.flags = 0;
    if (ps.n > 1 && s->kind == ST_store) {
      one.idx = NEWS(o->a, ExprId, s->nidx);
      for (u32 i = 0; i < s->nidx; i++) one.idx[i] = copy(o, s->idx[i]);
      move_last(o, one.idx, one.nidx, &ps.at[q]);
    }
    put_legal(o, one);
  }
}

/* Do all vectors in memory that the value reads hold bytes converted to floats? */
static bool is_of_bytes(const Legal *o, ExprId id) {
  const Expr *x = at(o, id);
  i64 k;
  ExprId y = ex_of_bytes(o->p, x, &k);
  if (y && at(o, y)->kind == EX_load) return true;
  if (x->lanes == 1 || x->kind == EX_splat) return true;
  for (u32 i = 0; i < x->narg; i++)
    if (x->kind != EX_op || !is_of_bytes(o, x->arg[i])) return false;
  return x->kind == EX_op;
}

/* Gives each vector load a variable. */
static void name_loads(Legal *o, ExprId id) {
  Expr *x = at(o, id);
  if (x->lanes == 1 || x->kind == EX_splat) return;
  for (u32 i = 0; i < x->narg && x->kind == EX_op; i++) name_loads(o, x->arg[i]);
  if (x->kind != EX_load) return;
  VarId v = new_var(o, x->dt, x->lanes, str_of(o->p->c, "b"));
  Stmt let = {.kind = ST_let, .var = v, .a = ex_take(o->p, x), .step = 1, .loc = LOC_NONE};
  *x = var_expr(o, v);
  put_legal(o, let);
}

/* Copies the lanes of register q of a value, as `piece` does, but in the order of byte_in_part. */
static ExprId piece_in_part(Legal *o, ExprId id, u32 q) {
  Expr x = *at(o, id);
  const ExprId *arg = x.arg;
  if (x.lanes == 1) return copy(o, id);
  x.lanes = o->max_lanes;
  if (x.kind == EX_var) {
    ExprId from = copy(o, id);
    u8 *pick = NEWS(o->a, u8, o->max_lanes);
    for (u32 i = 0; i < o->max_lanes; i++) pick[i] = (u8)byte_in_part(q, i);
    return make(o, (Expr){.kind = EX_shuffle, .dt = x.dt, .lanes = o->max_lanes, .pick = pick},
                &from, 1);
  }
  x.arg = x.narg ? NEWS(o->a, ExprId, x.narg) : NULL;
  for (u32 i = 0; i < x.narg; i++) x.arg[i] = piece_in_part(o, arg[i], q);
  return ex_take(o->p, &x);
}

/* Stores four registers of floats as one register of bytes. False, and no change, if the statement
 * stores something else. On machines with 128-bit parts, lanes stay in their part if all operands
 * were bytes. */
static bool put_joined(Legal *o, const Stmt *s) {
  const Expr x = *at(o, s->a);
  DType as;
  i64 k;
  ExprId y = ex_bytes(o->p, &x, &as, &k), arg[BYTES_JOINED];
  if (!y || as != x.dt || !o->max_lanes || x.lanes != o->max_lanes * BYTES_JOINED) return false;
  bool in_parts = o->max_lanes > BYTES_JOINED && is_of_bytes(o, y);
  Pieces ps = pieces(o, x.lanes);
  u8 *pick = NEWS(o->a, u8, x.lanes);
  if (in_parts) name_loads(o, y);
  for (u32 q = 0; q < ps.n; q++) {
    VarId v = new_var(o, DT_f32, o->max_lanes, str_of(o->p->c, "x"));
    ExprId value = in_parts ? piece_in_part(o, y, q) : piece(o, y, &ps, q);
    Stmt let = {.kind = ST_let, .var = v, .a = value, .step = 1, .loc = s->loc};
    Expr e = var_expr(o, v);
    for (u32 i = 0; i < o->max_lanes; i++)
      pick[in_parts ? byte_in_part(q, i) : q * o->max_lanes + i] = (u8)(q * o->max_lanes + i);
    put_legal(o, let);
    arg[q] = ex_take(o->p, &e);
  }
  Expr all = {.kind = EX_shuffle, .dt = DT_f32, .lanes = x.lanes, .pick = pick};
  *at(o, y) = *at(o, make(o, all, arg, BYTES_JOINED));
  put_legal(o, *s);
  return true;
}

/* ---- preparing a statement ---- */

/* Moves the expression to a variable. */
static void hoist(Legal *o, ExprId id) {
  Expr *x = at(o, id);
  VarId v = new_var(o, x->dt, x->lanes, str_of(o->p->c, "tmp"));
  Stmt let = {.kind = ST_let, .var = v, .a = ex_take(o->p, x), .step = 1, .loc = LOC_NONE};
  *x = var_expr(o, v);
  put_pieces(o, &let);
}

static u64 reg_key(const Legal *o, BufId b, const ExprId *idx) {
  u64 k = 0;
  for (u32 i = 0; i < prog_buf(o->p, b)->rank; i++)
    k = k * (u64)prog_buf(o->p, b)->dim[i] + (u64)at(o, idx[i])->imm.i;
  return (u64)b << 32 | k;
}

static bool is_reg(const Legal *o, BufId b) {
  return prog_buf(o->p, b)->space == BS_reg;
}

static Register *find_reg(Legal *o, BufId b, const ExprId *idx) {
  return &o->reg.at[*map_get(&o->reg_at, reg_key(o, b, idx)) - 1];
}

/* Gives a vector a variable, so that lanes can be selected. */
static void need_name(Legal *o, ExprId id) {
  const Expr *x = at(o, id);
  if (x->kind != EX_var && !(x->kind == EX_load && is_reg(o, x->ref))) hoist(o, id);
}

static void reduce_lanes(Legal *o, Expr *x) {
  VarId v = at(o, x->arg[0])->ref;
  Expr op = {.kind = EX_op, .op = x->op, .dt = x->dt, .lanes = 1};
  ExprId sum = lane(o, v, 0);
  for (u32 i = 1; i < prog_var(o->p, v)->lanes; i++) {
    ExprId pair[2] = {sum, lane(o, v, i)};
    sum = make(o, op, pair, 2);
  }
  *x = *at(o, sum);
}

/* Replaces a division by a constant by products that give the same bytes after rounding. */
static void multiply_quotient(Legal *o, ExprId bytes) {
  DType as;
  i64 k;
  Scalar min, max;
  ReciprocalFma q;
  ExprId y = ex_bytes(o->p, at(o, bytes), &as, &k);
  Expr x = y ? *at(o, y) : (Expr){0};
  if (!y || x.kind != EX_op || x.op != OP_div || !(o->sequences.has->registers & CAP_fma)) return;
  const Expr *by = at(o, x.arg[1]);
  if (by->kind != EX_splat || at(o, by->arg[0])->kind != EX_const || x.dt != DT_f32) return;
  dtype_limits(as, &min, &max);
  if (!quotient_find((float)at(o, by->arg[0])->imm.f, min.i - k, max.i - k, &q)) return;
  if (at(o, x.arg[0])->kind != EX_var) hoist(o, x.arg[0]);
  Scalar high = {.f = q.high}, low = {.f = q.low ? q.low : q.high};
  ExprId product[2] = {x.arg[0], number_all(o, DT_f32, low, x.lanes, 0)};
  x.op = OP_mul;
  ExprId made = make(o, x, product, 2);
  if (q.low) {
    ExprId sum[3] = {copy(o, x.arg[0]), number_all(o, DT_f32, high, x.lanes, 0), made};
    x.op = OP_fma;
    made = make(o, x, sum, 3);
  }
  *at(o, y) = *at(o, made);
}

static void prepare(Legal *o, ExprId id) {
  if (!id) return;
  Expr *x = at(o, id);
  bool lanes = x->kind == EX_hreduce || x->kind == EX_shuffle;
  for (u32 i = 0; i < x->narg; i++) {
    prepare(o, x->arg[i]);
    if (lanes) need_name(o, x->arg[i]);
  }
  if (o->max_lanes) multiply_quotient(o, id);
  x = at(o, id);
  if (x->kind == EX_load && is_reg(o, x->ref) && o->max_lanes)
    *x = var_expr(o, find_reg(o, x->ref, x->arg)->var);
  if (x->kind == EX_splat && x->lanes > 1 && at(o, x->arg[0])->kind == EX_op) hoist(o, x->arg[0]);
  if (!lanes) return;
  Pieces ps = pieces(o, x->lanes);
  if (o->max_lanes && x->kind == EX_hreduce)
    reduce_lanes(o, x);
  else if (o->max_lanes && ps.n == 1)
    *x = *at(o, shuffle_piece(o, x, &ps.at[0]));
  bool alone = x->kind == EX_hreduce || (x->kind == EX_shuffle && x->lanes > 1 && !o->max_lanes);
  if (alone || (x->kind == EX_shuffle && (o->steps || o->sequences.has->apart))) hoist(o, id);
}

/* Does the value load elements that the store writes, in another lane or at another index? */
static bool clashes(const Legal *o, const Stmt *s, ExprId id) {
  Prog *p = o->p;
  const Expr *x = at(o, id);
  for (u32 i = 0; i < x->narg; i++)
    if (clashes(o, s, x->arg[i])) return true;
  if (x->kind != EX_load || !mem_overlap(p, x->ref, s->buf)) return false;
  const Buf *a = prog_buf(p, x->ref), *b = prog_buf(p, s->buf);
  if (x->lanes != at(o, s->a)->lanes || a->rank != b->rank || a->dt != b->dt) return true;
  for (u32 i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i] || !ex_same(p, x->arg[i], s->idx[i])) return true;
  return false;
}

/* ---- registers ---- */

static void use_reg(Legal *o, BufId b, const ExprId *idx, StmtId s, u32 list, bool written) {
  const Buf *x = prog_buf(o->p, b);
  if (!is_reg(o, b)) return;
  for (u32 i = 0; i < x->rank; i++) {
    i64 k;
    if (!ex_is_int(o->p, idx[i], &k) || k < 0 || k >= x->dim[i])
      fail(o->p->c, ERR_unsupported, prog_stmt(o->p, s)->loc,
           "index %u of register buffer %s is not a constant in range", i, show(o->p->c, x->name));
  }
  u32 *slot = map_put(&o->reg_at, reg_key(o, b, idx));
  if (!*slot) {
    StrBuf name = sb_new(o->a);
    sb_put(&name, str_text(o->p->c, x->name), str_len(o->p->c, x->name));
    for (u32 i = 0; i < x->rank; i++) sb_fmt(&name, "_%u", (u32)at(o, idx[i])->imm.i);
    VarId v = new_var(o, x->dt, x->lanes, str_intern(o->p->c, name.at, name.n));
    prog_var(o->p, v)->rows = x->rows;
    *vec_push(o->a, &o->reg) = (Register){v, s, list, list, written};
    *slot = o->reg.n;
  }
  Register *r = &o->reg.at[*slot - 1];
  while (r->home != list) /* the later list never encloses the earlier */
    if (r->home > list)
      r->home = o->around.at[r->home];
    else
      list = o->around.at[list];
}

static void use_regs(Legal *o, StmtId first, u32 around) {
  u32 list = o->around.n;
  *vec_push(o->a, &o->around) = around;
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    Stmt s = *prog_stmt(o->p, id);
    for (ExprVisit x = ex_visit_stmt(o->p, &s); ex_next(&x);)
      if (x.e->kind == EX_load) use_reg(o, x.e->ref, x.e->arg, id, list, false);
    if (s.kind == ST_store) use_reg(o, s.buf, s.idx, id, list, true);
    if (s.body) use_regs(o, s.body, list);
    if (s.other) use_regs(o, s.other, list);
  }
}

static bool is_declared(const Register *r) {
  return r->written && r->in == r->home;
}

/* Registers are zero before they are written. */
static void declare_regs(Legal *o) {
  for (u32 i = 0; i < o->reg.n; i++) {
    if (is_declared(&o->reg.at[i])) continue;
    Expr x = var_expr(o, o->reg.at[i].var);
    ExprId zero = number_all(o, x.dt, (Scalar){0}, x.lanes, x.rows);
    Stmt let = {.kind = ST_let, .var = x.ref, .a = zero, .step = 1, .loc = LOC_NONE};
    put_pieces(o, &let);
  }
}

/* ---- statements ---- */

static StmtId legal_list(Legal *o, StmtId first);

static void put_store(Legal *o, StmtId id, Stmt s) {
  u32 lanes = at(o, s.a)->lanes;
  bool reg = is_reg(o, s.buf), loops = !o->max_lanes && lanes > 1;
  if (!reg && !at(o, s.a)->rows && put_joined(o, &s)) return;
  if (!reg && !at(o, s.a)->rows && (pieces(o, lanes).n > 1 || loops) && clashes(o, &s, s.a))
    hoist(o, s.a);
  if (reg && o->max_lanes) {
    const Register *r = find_reg(o, s.buf, s.idx);
    s.kind = is_declared(r) && r->first == id ? ST_let : ST_set;
    s.var = r->var;
    s.buf = s.nidx = 0;
    s.idx = NULL;
  }
  put_pieces(o, &s);
}

/* Computes operands of the condition before the first iteration, and again after each. */
static void put_while(Legal *o, StmtId id, Stmt s) {
  StmtList *outer = o->out, before = {0}, again = {0};
  ExprId second = copy(o, s.a);
  o->out = &before;
  prepare(o, s.a);
  ex_legalize(&o->sequences, s.a, o->out);
  o->out = &again;
  prepare(o, second);
  ex_legalize(&o->sequences, second, o->out);
  o->out = outer;
  s.body = legal_list(o, s.body);
  if (before.first) {
    VarId go = new_var(o, DT_bool, 1, str_of(o->p->c, "go"));
    Expr var = var_expr(o, go);
    stmts_add(o->p, &before, &(Stmt){.kind = ST_let, .var = go, .a = s.a, .loc = s.loc});
    stmts_add(o->p, &again, &(Stmt){.kind = ST_set, .var = go, .a = second, .loc = s.loc});
    s.a = ex_take(o->p, &var);
    StmtId *end = &s.body;
    while (*end) end = &prog_stmt(o->p, *end)->next;
    *end = again.first;
    for (StmtId b = before.first, next; b; b = next) {
      next = prog_stmt(o->p, b)->next;
      stmts_move(o->p, o->out, b);
    }
  }
  *prog_stmt(o->p, id) = s;
  stmts_move(o->p, o->out, id);
}

static void put_stmt(Legal *o, StmtId id) {
  Stmt s = *prog_stmt(o->p, id);
  if (s.kind == ST_while) {
    put_while(o, id, s);
    return;
  }
  bool assign = s.kind == ST_let || s.kind == ST_set;
  bool lanes = (assign || s.kind == ST_store) && at(o, s.a)->lanes > 1;
  o->steps = lanes && (s.kind == ST_set || (s.kind == ST_store && is_reg(o, s.buf)));
  prepare(o, s.a);
  prepare(o, s.b);
  for (u32 i = 0; i < s.nidx; i++) prepare(o, s.idx[i]);
  o->steps = false;
  if (s.kind == ST_store) {
    put_store(o, id, s);
    return;
  }
  if (lanes) {
    put_pieces(o, &s);
    return;
  }
  stmt_legalize(&o->sequences, &s, o->out);
  if (s.kind != ST_kernel && s.body) s.body = legal_list(o, s.body);
  if (s.other) s.other = legal_list(o, s.other);
  *prog_stmt(o->p, id) = s;
  stmts_move(o->p, o->out, id);
}

static StmtId legal_list(Legal *o, StmtId first) {
  StmtList list = {0}, *outer = o->out;
  o->out = &list;
  if (first == o->head) declare_regs(o);
  for (StmtId id = first, next; id; id = next) {
    next = prog_stmt(o->p, id)->next;
    put_stmt(o, id);
  }
  o->out = outer;
  return list.first;
}

/* Registers are declared inside loops shared by threads, because each thread needs its own. */
static StmtId inside_shared(Prog *p, StmtId first) {
  const Stmt *s = prog_stmt(p, first);
  bool shared = s->kind == ST_for && s->flags & LF_parallel && !s->next && s->body;
  return shared ? inside_shared(p, s->body) : first;
}

StmtId prog_legalize(Prog *p, StmtId first, u32 max_lanes, const Caps *has, Arena *a) {
  Map singles = map_new(a);
  Legal o = {.p = p, .a = a, .max_lanes = max_lanes, .part = map_new(a), .reg_at = map_new(a)};
  o.sequences = (Legalize){p, a, has, &singles};
  if (max_lanes) {
    o.head = inside_shared(p, first);
    use_regs(&o, first, 0);
  }
  return legal_list(&o, first);
}

StmtId kernel_legalize(Prog *p, StmtId first, const Target *t, const Caps *has, Arena *a) {
  bool expands = !(has->registers & CAP_tiles && t) && prog_has_fragments(p, first);
  StmtId body = expands ? prog_fragments(p, first, a)
                : t     ? prog_unroll(p, first, a)
                        : prog_copy(p, first, a);
  return body ? prog_legalize(p, body, t ? prog_lanes(p, body, t) : 0, has, a) : 0;
}
