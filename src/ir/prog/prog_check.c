/* prog_check.c: verifies a program.
 *
 * In: any program, also from a hostile text. Out: nothing, or the first violation: through
 * internal_error() after a pass, as ERR_input for a parsed program. Checks that
 * - ids are in range, and every statement and expression has one parent,
 * - declarations are valid and variables are used where they are visible,
 * - types, lanes and ranks match,
 * - only writable memory is written,
 * - register indices are constant, and indices of a text can be flattened,
 * - the records of kernels and the roles of loops fit the loops (record.c),
 * - no index that is certainly evaluated is certainly out of range.
 * Engines rely on all but the last, which they check at run time. */
#include "ir/prog/affine.h"
#include "ir/prog/prog_mem.h"

typedef enum VarState {
  VS_none,
  VS_seen,   /* declared, no longer visible */
  VS_plain,  /* visible, from let */
  VS_loop,   /* visible, loop counter */
  VS_unroll, /* visible, counter of an unrolled loop */
  VS_team,   /* visible, counter of a warp or thread loop */
} VarState;

typedef struct ProgCheck {
  Prog *p;
  Loc loc;
  bool input;  /* the program was parsed: violations are input errors, not bugs */
  u8 *var;     /* VarState, by variable */
  bool *exact; /* by variable: takes every value of its range, independent of the others */
  bool *expr;  /* by expression: has a parent */
  bool *stmt;  /* by statement: is in a list */
  u32 *mark;   /* by variable: number of the last index expression that contains it */
  u32 nmark;   /* number of the current index expression */
  const Range *range;
  u32 depth;
  bool sure;      /* the current code runs at least once */
  bool in_kernel; /* the current code belongs to a kernel */
  u8 team;        /* LF_warp, LF_thread: the current code is in such a loop */
  bool block;     /* the kernel has such loops */
} ProgCheck;

#define WRONG(o, ...)                                                                              \
  do {                                                                                             \
    if ((o)->input) fail((o)->p->c, ERR_input, (o)->loc, __VA_ARGS__);                             \
    internal_error((o)->p->c, (o)->loc, __VA_ARGS__);                                              \
  } while (0)

static const char *dt_name(DType dt) {
  return dt < DT_COUNT ? dtype_info[dt].name : "?";
}

static const char *buf_name(ProgCheck *o, BufId b) {
  return show(o->p->c, prog_buf(o->p, b)->name);
}

/* ---- buffers ---- */

/* Fragments are operands of a product or its sums. */
static void check_fragment(ProgCheck *o, DType dt, u32 lanes, u32 rows) {
  u32 columns = dtype_is_half(dt) || dt == DT_f32 ? FRAG_BYTES / dtype_bytes(dt) : 0;
  bool sums = (dt == DT_f32 || dt == DT_i32) && lanes == FRAG_LANES;
  bool bytes = (dt == DT_u8 || dt == DT_i8) && lanes == FRAG_ROWS * TILE_BYTES;
  if (rows != FRAG_ROWS || ((!columns || lanes != rows * columns) && !sums && !bytes))
    WRONG(
        o,
        "a fragment of %u rows and %u elements of %s, expected %d rows of %d bytes of f16, bf16 or "
        "f32, %d x %d of f32 or i32, or %d x %d of u8 or i8",
        rows, lanes, dt_name(dt), FRAG_ROWS, FRAG_BYTES, FRAG_ROWS, FRAG_ROWS, FRAG_ROWS,
        TILE_BYTES);
}

/* Is it held by a matrix register of a CPU? Others are held by a warp. */
static bool in_register(DType dt) {
  return dt == DT_i32 || dt == DT_u8 || dt == DT_i8;
}

static void check_dtype(ProgCheck *o, DType dt, u32 lanes, u32 rows) {
  if (rows) {
    check_fragment(o, dt, lanes, rows);
    return;
  }
  if (dt <= DT_none || dt >= DT_COUNT || dtype_info[dt].cls == 'C')
    WRONG(o, "%s is not an element type of programs", dt_name(dt));
  if (lanes < 1 || lanes > MAX_LANES) WRONG(o, "%u lanes, expected 1 to %d", lanes, MAX_LANES);
}

static void check_alias(ProgCheck *o, BufId id) {
  const Buf *b = prog_buf(o->p, id);
  if (b->alias >= id) WRONG(o, "view %s comes before the buffer it shows", buf_name(o, id));
  const Buf *of = prog_buf(o->p, b->alias);
  bool local = b->space == BS_local && of->space == BS_local;
  if ((b->space != BS_temp && !local) || of->space == BS_reg)
    WRONG(o, "view %s must have space temp and show a buffer in memory", buf_name(o, id));
  if (b->dt != of->dt) WRONG(o, "view %s changes the element type", buf_name(o, id));
  u64 n = 1, m = 1;
  bool fixed = true;
  for (u32 i = 0; i < b->rank; i++) fixed = fixed && dim_is_const(b->dim[i]);
  for (u32 i = 0; i < of->rank; i++) fixed = fixed && dim_is_const(of->dim[i]);
  if (!fixed) {
    /* A preceding require checks extents whose equality is only known at run time. */
    i64 lo[2], hi[2];
    dim_bounds(o->p->dims, dim_product(o->p->dims, b->dim, b->rank), &lo[0], &hi[0]);
    dim_bounds(o->p->dims, dim_product(o->p->dims, of->dim, of->rank), &lo[1], &hi[1]);
    if (hi[0] < lo[1] || hi[1] < lo[0])
      WRONG(o, "view %s has another number of elements than its memory", buf_name(o, id));
    return;
  }
  if (!shape_count(b->dim, b->rank, &n) || !shape_count(of->dim, of->rank, &m) || n != m)
    WRONG(o, "view %s has %llu elements, its memory %llu", buf_name(o, id), (unsigned long long)n,
          (unsigned long long)m);
}

static void check_data(ProgCheck *o, BufId id) {
  const Buf *b = prog_buf(o->p, id);
  const Tensor *t = b->data;
  if (!t || t->dt != b->dt || t->rank != b->rank)
    WRONG(o, "%s has no data, or data of another type or rank", buf_name(o, id));
  for (u32 i = 0; i < b->rank; i++)
    if (t->dim[i] != b->dim[i]) WRONG(o, "the data of %s has another shape", buf_name(o, id));
}

/* Engines place a buffer where the plan says: it must fit there with all dimensions at their
 * bounds. */
static void check_place(ProgCheck *o, BufId id) {
  const Buf *b = prog_buf(o->p, id);
  u64 end = dtype_bytes(b->dt);
  bool fits = b->offset % 64 == 0;
  for (u32 i = 0; i < b->rank; i++) {
    i64 lo, hi;
    dim_bounds(o->p->dims, b->dim[i], &lo, &hi);
    fits = fits && size_mul(end, (u64)hi, &end);
  }
  if (b->space == BS_local && o->p->threads > 1 &&
      o->p->threads != GPU_THREADS) /* the copy of each thread is aligned to 64 bytes */
    fits = fits && size_align(end, MEM_ALIGN, &end) && size_mul(end, o->p->threads, &end);
  if (!fits || !size_add(end, b->offset, &end) || end > o->p->arena_bytes)
    WRONG(o, "%s is outside of the arena, or not at a multiple of 64 bytes", buf_name(o, id));
}

enum { MOST_REGISTERS = 1 << 14 }; /* limit: each becomes a variable */

static void check_buf(ProgCheck *o, BufId id) {
  const Buf *b = prog_buf(o->p, id);
  if (b->space >= BS_COUNT || b->rank > MAX_RANK)
    WRONG(o,
          "buffer %u has space %u and rank %u, expected a space below %u and a rank of at most %u",
          id, (u32)b->space, (u32)b->rank, (u32)BS_COUNT, (u32)MAX_RANK);
  check_dtype(o, b->dt, b->lanes, b->rows);
  if (b->lanes > 1 && b->space != BS_reg)
    WRONG(o, "%s: only register buffers have vectors as elements", buf_name(o, id));
  if (b->space == BS_const ? !b->data : b->data && (b->space != BS_state || b->alias))
    WRONG(o, "%s: a constant needs data, a state may have data, other buffers must not",
          buf_name(o, id));
  bool fixed = true;
  for (u32 i = 0; i < b->rank; i++) fixed = fixed && dim_is_const(b->dim[i]);
  u64 n;
  if (fixed && !shape_count(b->dim, b->rank, &n))
    WRONG(o, "%s has more than 2^40 elements", buf_name(o, id));
  if (!fixed && b->space == BS_reg)
    WRONG(o, "register buffer %s must have constant dimensions", buf_name(o, id));
  if (fixed && b->space == BS_reg && n > MOST_REGISTERS)
    WRONG(o, "%s: more than %d registers", buf_name(o, id), MOST_REGISTERS);
  if (b->data) check_data(o, id);
  if (b->alias) check_alias(o, id);
  if (o->p->planned && prog_is_planned(b)) check_place(o, id);
}

static void check_params(ProgCheck *o) {
  Prog *p = o->p;
  u32 in = 0, out = 0;
  for (BufId b = 1; b < p->buf.n; b++) {
    check_buf(o, b);
    BufSpace space = prog_buf(p, b)->space;
    if (space == BS_in && (in >= p->in.n || p->in.at[in++] != b))
      WRONG(o, "input %s is missing from the list of inputs, or out of order", buf_name(o, b));
    if (space == BS_out && (out >= p->out.n || p->out.at[out++] != b))
      WRONG(o, "output %s is missing from the list of outputs, or out of order", buf_name(o, b));
  }
  if (in != p->in.n || out != p->out.n)
    WRONG(o, "the list of inputs or outputs contains another buffer");
}

/* ---- indices ---- */

/* Constants and variables of unrolled loops only? Then unrolling makes it constant. */
static bool is_unrolled(ProgCheck *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  if (e->kind == EX_const) return true;
  if (e->kind == EX_var) return o->var[e->ref] == VS_unroll;
  if (e->kind != EX_op) return false;
  for (u32 i = 0; i < e->narg; i++)
    if (!is_unrolled(o, e->arg[i])) return false;
  return true;
}

/* Does e reach both ends of its interval? True for sums of constants and multiples of loop
 * variables with constant bounds, each occurring once. */
static bool is_exact(ProgCheck *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  if (e->kind == EX_const) return true;
  if (e->kind == EX_var) {
    bool again = o->mark[e->ref] == o->nmark;
    o->mark[e->ref] = o->nmark;
    return o->exact[e->ref] && !again;
  }
  if (e->kind != EX_op || (e->op != OP_add && e->op != OP_sub && e->op != OP_mul)) return false;
  if (e->op == OP_mul && prog_expr(o->p, e->arg[0])->kind != EX_const &&
      prog_expr(o->p, e->arg[1])->kind != EX_const)
    return false;
  return is_exact(o, e->arg[0]) && is_exact(o, e->arg[1]);
}

static void check_range(ProgCheck *o, BufId b, u32 axis, ExprId e, u32 lanes, u32 rows) {
  const Buf *bp = prog_buf(o->p, b);
  i64 lo, hi, last = axis + 1 == bp->rank ? (i64)(rows ? lanes / rows : lanes) - 1 : 0;
  if (rows && axis + 2 == bp->rank) last = (i64)rows - 1;
  Range r = ex_range(o->p, e, o->range);
  if (!o->sure || r.lo == INT64_MIN || r.hi == INT64_MAX) return;
  dim_bounds(o->p->dims, bp->dim[axis], &lo, &hi);
  o->nmark++;
  bool exact = is_exact(o, e);
  i64 low = exact ? r.lo : r.hi, high = exact ? r.hi : r.lo;
  if (low < 0 || high >= hi - last)
    WRONG(o, "index %u of %s ranges from %lld to %lld, but its extent is %lld", axis,
          buf_name(o, b), (long long)r.lo, (long long)r.hi, (long long)hi);
}

static bool is_far(i64 x, i64 stride) {
  return x > DIM_MAX / stride || x < -DIM_MAX / stride;
}

/* One step of such a term leaves every buffer. Engines flatten indices, and the product would
 * overflow. */
static void check_flat(ProgCheck *o, BufId b, u32 axis, ExprId e) {
  const Buf *bp = prog_buf(o->p, b);
  i64 stride = 1;
  Affine a;
  for (u32 i = axis + 1; i < bp->rank; i++)
    if (dim_is_const(bp->dim[i]) && bp->dim[i]) stride *= bp->dim[i];
  if (!affine_of(o->p, e, &a)) return;
  i64 far = is_far(a.k, stride) ? a.k : 0;
  for (u32 i = 0; i < a.n && !far; i++)
    if (is_far(a.t[i].coef, stride)) far = a.t[i].coef;
  if (far)
    WRONG(o, "index %u of %s has a term with factor %lld, expected at most %lld", axis,
          buf_name(o, b), (long long)far, (long long)(DIM_MAX / stride));
}

static void check_expr(ProgCheck *o, ExprId id);

static void check_index(ProgCheck *o, BufId b, const ExprId *idx, u32 n, u32 lanes, u32 rows) {
  if (b == 0 || b >= o->p->buf.n) WRONG(o, "buffer %u does not exist", b);
  const Buf *bp = prog_buf(o->p, b);
  if (n != bp->rank) WRONG(o, "%s has rank %u, found %u indices", buf_name(o, b), bp->rank, n);
  if (bp->lanes > 1 && lanes != bp->lanes)
    WRONG(o, "%s has elements of %u lanes, accessed with %u", buf_name(o, b), bp->lanes, lanes);
  if (bp->space == BS_reg && lanes != bp->lanes)
    WRONG(o, "register buffer %s must be accessed one element at a time", buf_name(o, b));
  BufSpace root = prog_buf(o->p, prog_root(o->p, b))->space;
  bool held = in_register(bp->dt);
  bool scratch = bp->space == BS_local || (held && (root == BS_const || bp->space == BS_temp));
  if (rows && bp->space != BS_reg && (!scratch || n < 2 || bp->rows))
    WRONG(o, "%s: a fragment in memory is a box of two dimensions of a buffer that is local%s",
          buf_name(o, b), held ? ", temp or const" : "");
  if (bp->space == BS_reg && rows != bp->rows)
    WRONG(o, "register buffer %s has fragments of %u rows, accessed with %u", buf_name(o, b),
          bp->rows, rows);
  if (lanes > 1 && bp->lanes == 1 && n == 0)
    WRONG(o, "%s is a scalar and cannot be accessed as a vector", buf_name(o, b));
  for (u32 i = 0; i < n; i++) {
    check_expr(o, idx[i]);
    const Expr *e = prog_expr(o->p, idx[i]);
    if (e->dt != DT_i64 || e->lanes != 1)
      WRONG(o, "index %u of %s is %sx%u, expected i64", i, buf_name(o, b), dt_name(e->dt),
            e->lanes);
    bool own = i == 0 && e->kind == EX_var && o->var[e->ref] == VS_team;
    if (bp->space == BS_reg && !own && !is_unrolled(o, idx[i]))
      WRONG(o, "index %u of register buffer %s must be a constant or unrolled", i, buf_name(o, b));
    if (o->input) check_flat(o, b, i, idx[i]);
    check_range(o, b, i, idx[i], bp->lanes > 1 ? 1 : lanes, bp->lanes > 1 ? 0 : rows);
  }
}

/* ---- expressions ---- */

static void check_const(ProgCheck *o, const Expr *e) {
  bool fits = e->lanes == 1;
  if (dtype_is_int(e->dt)) fits = fits && scalar_wrap(e->dt, e->imm.i) == e->imm.i;
  if (dtype_is_float(e->dt) && e->imm.f == e->imm.f)
    fits = fits && scalar_round(e->dt, e->imm.f) == e->imm.f;
  if (e->dt == DT_bool) fits = fits && (e->imm.i == 0 || e->imm.i == 1);
  if (!fits) WRONG(o, "a constant does not fit its type %s", dt_name(e->dt));
}

static void check_op(ProgCheck *o, const Expr *e) {
  if (e->op >= OP_SCALARS) WRONG(o, "operator %u is not a scalar operator", (u32)e->op);
  const OpInfo *oi = &op_info[e->op];
  if (e->narg != oi->nin_min || e->narg == 0)
    WRONG(o, "%s takes %u operands, found %u", oi->name, oi->nin_min, e->narg);
  DType dt = prog_expr(o->p, e->arg[e->narg - 1])->dt;
  for (u32 i = 0; i < e->narg; i++) {
    const Expr *a = prog_expr(o->p, e->arg[i]);
    DType want = oi->res == OR_sel && i == 0 ? DT_bool : dt;
    if (a->dt != want || a->lanes != e->lanes)
      WRONG(o, "operand %u of %s is %sx%u, expected %sx%u", i, oi->name, dt_name(a->dt), a->lanes,
            dt_name(want), e->lanes);
  }
  if (!op_accepts(e->op, dt)) WRONG(o, "%s does not take %s", oi->name, dt_name(dt));
  bool text = dt == DT_str || e->dt == DT_str;
  if (oi->res == OR_to && text) WRONG(o, "%s does not convert strings", oi->name);
  if (e->op == OP_bitcast && dtype_stored_bits(dt) != dtype_stored_bits(e->dt))
    WRONG(o, "bitcast needs types of equal width, found %s and %s", dt_name(dt), dt_name(e->dt));
  if (oi->res != OR_to && e->dt != (oi->res == OR_pred ? DT_bool : dt))
    WRONG(o, "the result of %s on %s cannot be %s", oi->name, dt_name(dt), dt_name(e->dt));
}

static void check_vector(ProgCheck *o, const Expr *e) {
  const Expr *a = prog_expr(o->p, e->arg[0]);
  bool ok = a->dt == e->dt;
  if (e->kind == EX_splat) ok = ok && e->narg == 1 && a->lanes == 1;
  if (e->kind == EX_turn)
    ok = ok && e->narg == 1 && a->kind == EX_load && a->rows &&
         (dtype_is_half(a->dt) || a->dt == DT_i32) && prog_buf(o->p, a->ref)->space != BS_reg &&
         e->lanes == a->lanes && e->rows == a->rows;
  if (e->kind == EX_mma) {
    const Expr *b = e->narg == 3 ? prog_expr(o->p, e->arg[1]) : a,
               *c = prog_expr(o->p, e->arg[e->narg - 1]);
    bool ints = a->dt == DT_i32;
    ok = e->narg == 3 && a->dt == b->dt && a->lanes == b->lanes && a->rows && b->rows && c->rows &&
         c->dt == (ints ? DT_i32 : DT_f32) && c->lanes == FRAG_LANES && e->dt == c->dt &&
         e->lanes == FRAG_LANES && e->rows == c->rows &&
         (ints || a->lanes * dtype_bytes(a->dt) == FRAG_ROWS * FRAG_BYTES);
  }
  if (e->kind == EX_hreduce) {
    ok = ok && e->narg == 1 && e->lanes == 1 && e->op < OP_SCALARS;
    ok = ok && op_info[e->op].nin_min == 2 && op_info[e->op].res == OR_same;
    ok = ok && op_accepts(e->op, e->dt);
  }
  if (e->kind == EX_shuffle) {
    ok = ok && e->pick && a->lanes * e->narg <= 2 * MAX_LANES;
    for (u32 i = 1; ok && i < e->narg; i++) {
      const Expr *b = prog_expr(o->p, e->arg[i]);
      ok = b->dt == a->dt && b->lanes == a->lanes;
    }
    for (u32 i = 0; ok && i < e->lanes; i++) ok = e->pick[i] < a->lanes * e->narg;
  }
  if (e->kind == EX_random) {
    ok = e->narg == 2 && dtype_is_float(e->dt) && e->lanes == 1;
    for (u32 i = 0; ok && i < 2; i++) {
      const Expr *x = prog_expr(o->p, e->arg[i]);
      ok = x->dt == DT_i64 && x->lanes == 1;
    }
  }
  if (e->kind == EX_quad)
    ok = e->narg == 1 && e->dt == DT_i32 && a->kind == EX_load && e->rows == a->rows &&
         (a->rows         ? dtype_bytes(a->dt) == 1 && e->lanes == FRAG_LANES
          : e->lanes != 1 ? false
          : a->lanes == 2 ? a->dt == DT_i16
                          : a->lanes == 4 && (a->dt == DT_u8 || a->dt == DT_i8)) &&
         prog_buf(o->p, a->ref)->space != BS_reg;
  static const char *const name[EX_COUNT] = {"const",  "variable", "load",    "op",
                                             "splat",  "reduce",   "shuffle", "quad",
                                             "random", "turn",     "mma"};
  if (!ok) WRONG(o, "%s to %sx%u has invalid operands", name[e->kind], dt_name(e->dt), e->lanes);
}

static void check_expr(ProgCheck *o, ExprId id) {
  Prog *p = o->p;
  if (id == 0 || id >= p->nexpr) WRONG(o, "expression %u does not exist", id);
  if (o->expr[id]) WRONG(o, "expression %u is used twice, expected one use", id);
  o->expr[id] = true;
  const Expr *e = prog_expr(p, id);
  if (e->kind >= EX_COUNT)
    WRONG(o, "expression %u has kind %u, expected a kind below %u", id, (u32)e->kind,
          (u32)EX_COUNT);
  if (++o->depth > PROG_DEPTH) WRONG(o, "operands nest deeper than %d", PROG_DEPTH);
  check_dtype(o, e->dt, e->lanes, e->rows);
  if (e->rows && !in_register(e->dt) && o->team != LF_warp)
    WRONG(o, "a fragment is outside of a warp loop");
  if (e->rows && in_register(e->dt) && o->team)
    WRONG(o, "a fragment of integers is inside of a warp or thread loop");
  if (e->kind == EX_load) {
    check_index(o, e->ref, e->arg, e->narg, e->lanes, e->rows);
    if (e->rows && prog_buf(p, e->ref)->space != BS_reg && !in_register(e->dt) &&
        e->lanes * dtype_bytes(e->dt) != FRAG_ROWS * FRAG_BYTES)
      WRONG(o, "only operands of a product are loaded as fragments");
    if (e->dt != prog_buf(p, e->ref)->dt)
      WRONG(o, "load of %s has type %s", buf_name(o, e->ref), dt_name(e->dt));
  } else {
    for (u32 i = 0; i < e->narg; i++) {
      check_expr(o, e->arg[i]);
      if (prog_expr(p, e->arg[i])->rows && e->kind != EX_turn && e->kind != EX_mma &&
          e->kind != EX_quad)
        WRONG(o, "an operand of %s is a fragment, expected a scalar or a vector",
              e->kind == EX_op && e->op < OP_SCALARS ? op_info[e->op].name : "an expression");
    }
  }
  switch (e->kind) {
  case EX_const: check_const(o, e); break;
  case EX_var:
    if (e->ref == 0 || e->ref >= p->var.n || o->var[e->ref] <= VS_seen)
      WRONG(o, "variable %u is not visible", e->ref);
    if (e->dt != prog_var(p, e->ref)->dt || e->lanes != prog_var(p, e->ref)->lanes ||
        e->rows != prog_var(p, e->ref)->rows)
      WRONG(o, "variable %s does not have type %sx%u", show(p->c, prog_var(p, e->ref)->name),
            dt_name(e->dt), e->lanes);
    break;
  case EX_load: break;
  case EX_op: check_op(o, e); break;
  default:
    if (e->narg == 0) WRONG(o, "an expression has no operand");
    check_vector(o, e);
  }
  o->depth--;
}

static void check_scalar(ProgCheck *o, ExprId e, DType dt, const char *what) {
  check_expr(o, e);
  const Expr *ep = prog_expr(o->p, e);
  if (ep->dt != dt || ep->lanes != 1)
    WRONG(o, "%s is %sx%u, expected %s", what, dt_name(ep->dt), ep->lanes, dt_name(dt));
}

/* ---- statements ---- */

static void check_list(ProgCheck *o, StmtId first);

static void declare(ProgCheck *o, VarId v, VarState state) {
  if (v == 0 || v >= o->p->var.n || o->var[v] != VS_none || prog_var(o->p, v)->sym >= 0)
    WRONG(o, "variable %u is declared twice or does not exist", v);
  o->var[v] = (u8)state;
}

/* A loop over the warps or threads of a block. */
static void check_team(ProgCheck *o, const Stmt *s) {
  i64 lo, n, most = BLOCK_WARPS * (s->flags & LF_thread ? WARP_LANES : 1);
  if (!o->in_kernel || o->team)
    WRONG(o, "a warp or thread loop is outside of kernels or in another");
  if ((s->flags & LF_team) == LF_team || s->flags & (LF_parallel | LF_unroll) || s->step != 1)
    WRONG(o, "a warp or thread loop has another flag or a step");
  if (!ex_is_int(o->p, s->a, &lo) || lo || !ex_is_int(o->p, s->b, &n) || n < 1 || n > most)
    WRONG(o, "a warp or thread loop must run from 0 to a constant of at most %lld",
          (long long)most);
  o->team = s->flags & LF_team;
}

static void check_for(ProgCheck *o, const Stmt *s) {
  Prog *p = o->p;
  bool sure = o->sure;
  check_scalar(o, s->a, DT_i64, "the lower bound of a loop");
  check_scalar(o, s->b, DT_i64, "the upper bound of a loop");
  if (s->step < 1) WRONG(o, "a loop has step %lld, expected at least 1", (long long)s->step);
  if (s->role && !o->in_kernel) WRONG(o, "a loop outside of kernels has a role");
  if (s->flags & LF_after && !o->block)
    WRONG(o, "flag after is for kernels with warp or thread loops");
  u8 team = o->team;
  if (s->flags & LF_team) check_team(o, s);
  declare(o, s->var, s->flags & LF_team ? VS_team : s->flags & LF_unroll ? VS_unroll : VS_loop);
  const Var *v = prog_var(p, s->var);
  if (v->dt != DT_i64 || v->lanes != 1)
    WRONG(o, "a loop counter has type %s, expected i64", dt_name(v->dt));
  Range lo = ex_range(p, s->a, o->range), hi = ex_range(p, s->b, o->range);
  o->sure = sure && lo.hi < hi.lo;
  o->exact[s->var] = o->sure && lo.lo == lo.hi && hi.lo == hi.hi && s->step == 1;
  check_list(o, s->body);
  o->var[s->var] = VS_seen;
  o->sure = sure;
  o->team = team;
}

static void check_assign(ProgCheck *o, const Stmt *s) {
  Prog *p = o->p;
  check_expr(o, s->a);
  if (s->kind == ST_let) declare(o, s->var, VS_plain);
  if (s->var == 0 || s->var >= p->var.n || o->var[s->var] != VS_plain)
    WRONG(o, "variable %u is not visible or is a loop counter, and cannot be set", s->var);
  const Var *v = prog_var(p, s->var);
  const Expr *e = prog_expr(p, s->a);
  if (e->dt != v->dt || e->lanes != v->lanes || e->rows != v->rows)
    WRONG(o, "%s is %sx%u, its value %sx%u", show(p->c, v->name), dt_name(v->dt), v->lanes,
          dt_name(e->dt), e->lanes);
  check_dtype(o, v->dt, v->lanes, v->rows);
  if (v->rows && in_register(v->dt))
    WRONG(o, "variable %s: fragments of integers are held by register buffers",
          show(p->c, v->name));
  if (v->sym >= 0 && dim_syminfo(p->dims, (Sym)v->sym)->kind != SY_data)
    WRONG(o, "%s is bound by the inputs and cannot be set", show(p->c, v->name));
}

static bool is_held(ProgCheck *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  return e->kind == EX_load && prog_buf(o->p, e->ref)->space == BS_reg;
}

/* A store of a fragment of integers: what an instruction of a matrix register does. */
static void check_register(ProgCheck *o, const Stmt *s) {
  Prog *p = o->p;
  const Expr *e = prog_expr(p, s->a), *last = e->narg ? prog_expr(p, e->arg[e->narg - 1]) : e;
  if (prog_buf(p, s->buf)->space != BS_reg) {
    if (!is_held(o, s->a))
      WRONG(o, "store to %s: expected a fragment of integers of a register buffer",
            buf_name(o, s->buf));
    return;
  }
  bool ok = e->kind == EX_quad || e->kind == EX_turn;
  if (e->kind == EX_splat) ok = last->kind == EX_const && !last->imm.i;
  if (e->kind == EX_mma) {
    ok = is_held(o, e->arg[0]) && is_held(o, e->arg[1]) && last->kind == EX_load &&
         last->ref == s->buf;
    for (u32 i = 0; ok && i < s->nidx; i++) ok = ex_same(p, last->arg[i], s->idx[i]);
  }
  if (!ok)
    WRONG(o,
          "store to %s: expected zeros, quad, turn, or mma of registers that adds to the same "
          "element",
          buf_name(o, s->buf));
}

static void check_store(ProgCheck *o, const Stmt *s) {
  Prog *p = o->p;
  check_expr(o, s->a);
  const Expr *e = prog_expr(p, s->a);
  check_index(o, s->buf, s->idx, s->nidx, e->lanes, e->rows);
  if (e->dt != prog_buf(p, s->buf)->dt)
    WRONG(o, "store of %s to %s, which is %s", dt_name(e->dt), buf_name(o, s->buf),
          dt_name(prog_buf(p, s->buf)->dt));
  if (e->rows && prog_buf(p, s->buf)->space != BS_reg && e->lanes != FRAG_LANES)
    WRONG(o, "only sums of a product are stored as fragments");
  if (e->rows && in_register(e->dt)) check_register(o, s);
  if (o->block && !o->team)
    WRONG(o, "a store of a kernel with warp or thread loops is outside of them");
  const Expr *from = ex_copied(p, e);
  if (o->team == LF_thread && e->lanes > 1 && !from)
    WRONG(o, "a vector in a thread loop may only be copied");
  if (s->flags & SF_async &&
      (!o->team || !from || prog_buf(p, prog_root(p, s->buf))->space == BS_reg ||
       prog_buf(p, prog_root(p, from->ref))->space == BS_reg))
    WRONG(o, "an async store must be a copy between buffers in memory, in a warp or thread loop");
  if (s->flags & ~SF_async && prog_buf(p, s->buf)->space != BS_reg)
    WRONG(o, "flags pin and prefetch are for register buffers, %s is in memory",
          buf_name(o, s->buf));
  BufSpace space = prog_buf(p, prog_root(p, s->buf))->space;
  if (space == BS_in || space == BS_const)
    WRONG(o, "store to %s, which is read-only", buf_name(o, s->buf));
}

static void check_fence(ProgCheck *o, const Stmt *s) {
  if (s->buf == 0 || s->buf >= o->p->buf.n) WRONG(o, "buffer %u does not exist", s->buf);
  if (prog_buf(o->p, s->buf)->space == BS_reg)
    WRONG(o, "a fence needs a buffer in memory, %s is a register buffer", buf_name(o, s->buf));
}

static void check_prefetch(ProgCheck *o, const Stmt *s) {
  if (s->buf == 0 || s->buf >= o->p->buf.n) WRONG(o, "buffer %u does not exist", s->buf);
  if (prog_buf(o->p, s->buf)->space != BS_const)
    WRONG(o, "prefetch needs a constant, %s is another buffer", buf_name(o, s->buf));
  check_scalar(o, s->a, DT_i64, "the offset of a prefetch");
}

static void check_record(ProgCheck *o, const KernelRecord *r) {
  bool ok = r->family < FA_COUNT && !r->tile.rows == !r->tile.panels && r->out < o->p->buf.n;
  ok = ok && r->tile.lanes <= MAX_LANES && r->sum < DT_COUNT;
  for (u32 i = 0; i < RECORD_IN; i++) ok = ok && r->in[i] < DT_COUNT && r->packed[i] < o->p->buf.n;
  if (!ok) WRONG(o, "a record is malformed");
}

static void check_kernel(ProgCheck *o, StmtId id) {
  Prog *p = o->p;
  bool around = o->in_kernel, block = o->block;
  o->in_kernel = true;
  o->block = prog_block_warps(p, prog_stmt(p, id)->body);
  check_list(o, prog_stmt(p, id)->body);
  o->in_kernel = around;
  o->block = block;
  for (RecordId r = prog_stmt(p, id)->record; r; r = prog_record(p, r)->next)
    check_record(o, prog_record(p, r));
  const char *wrong = record_mismatch(p, id);
  if (wrong) WRONG(o, "%s", wrong);
}

static void check_stmt(ProgCheck *o, StmtId id) {
  const Stmt *s = prog_stmt(o->p, id);
  bool sure = o->sure;
  switch (s->kind) {
  case ST_for: check_for(o, s); return;
  case ST_while:
  case ST_if:
    check_scalar(o, s->a, DT_bool, "a condition");
    o->sure = false;
    check_list(o, s->body);
    if (s->kind == ST_if) check_list(o, s->other);
    o->sure = sure;
    return;
  case ST_let:
  case ST_set: check_assign(o, s); return;
  case ST_store: check_store(o, s); return;
  case ST_kernel: check_kernel(o, id); return;
  case ST_require: check_scalar(o, s->a, DT_bool, "a condition"); return;
  case ST_fence: check_fence(o, s); return;
  case ST_prefetch: check_prefetch(o, s); return;
  case ST_commit: return;
  case ST_await:
    if (s->step < 0 || s->step > ASYNC_GROUPS || o->team)
      WRONG(o, "await is in a warp or thread loop or leaves more than %d groups", ASYNC_GROUPS);
    return;
  default:
    WRONG(o, "a statement has kind %u, expected a kind below %u", (u32)s->kind, (u32)ST_COUNT);
  }
}

static void check_list(ProgCheck *o, StmtId first) {
  Prog *p = o->p;
  Loc around = o->loc;
  if (++o->depth > PROG_DEPTH) WRONG(o, "statements nest deeper than %d", PROG_DEPTH);
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    if (id >= p->stmt.n) WRONG(o, "statement %u does not exist", id);
    if (o->stmt[id]) WRONG(o, "statement %u occurs twice", id);
    o->stmt[id] = true;
    const Stmt *s = prog_stmt(p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) o->loc = s->loc;
    check_stmt(o, id);
  }
  for (StmtId id = first; id; id = prog_stmt(p, id)->next)
    if (prog_stmt(p, id)->kind == ST_let) o->var[prog_stmt(p, id)->var] = VS_seen;
  o->loc = around;
  o->depth--;
}

/* A valid plan never exceeds the sum of all buffers. A larger arena is a mistake or a
 * denial-of-service attempt. Unbounded buffers are refused. */
static void check_arena(ProgCheck *o) {
  Prog *p = o->p;
  u64 sum = 0, bytes;
  for (BufId b = 1; b < p->buf.n; b++) {
    Sym sym;
    if (!prog_is_planned(prog_buf(p, b))) continue;
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    if (!size_add(sum, bytes, &sum)) sum = UINT64_MAX;
  }
  if (p->arena_bytes > sum)
    WRONG(o, "the arena has %llu bytes, but its buffers need at most %llu",
          (unsigned long long)p->arena_bytes, (unsigned long long)sum);
}

/* Two passes: intervals may only be computed after ids, scopes and types are verified. */
static void check(Prog *p, bool input) {
  Arena *a = &p->c->scratch;
  Range *none = NEWS(a, Range, p->var.n);
  for (VarId v = 0; v < p->var.n; v++) none[v] = (Range){INT64_MIN, INT64_MAX};
  ProgCheck o = {.p = p, .loc = LOC_NONE, .input = input, .range = none};
  o.mark = NEWS(a, u32, p->var.n);
  o.exact = NEWS(a, bool, p->var.n);
  for (u32 turn = 0; turn < 2; turn++) {
    o.var = NEWS(a, u8, p->var.n);
    o.expr = NEWS(a, bool, p->nexpr);
    o.stmt = NEWS(a, bool, p->stmt.n);
    o.sure = turn == 1;
    for (VarId v = 1; v < p->var.n; v++)
      if (prog_var(p, v)->sym >= 0) o.var[v] = VS_plain;
    check_params(&o);
    check_list(&o, p->body);
    if (turn == 0) o.range = prog_ranges(p, NULL, a);
  }
  if (p->planned) check_arena(&o);
  BufId x, y;
  if (p->planned && mem_collision(p, &x, &y))
    WRONG(&o, "%s and %s overlap while both are live", buf_name(&o, x), buf_name(&o, y));
}

void prog_check(Prog *p) {
  check(p, false);
}

void prog_check_input(Prog *p) {
  check(p, true);
}
