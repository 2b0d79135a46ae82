/* prog.c: builds programs.
 *
 * In: buffers, variables, expressions and statements one at a time. Out: a Prog with correct types
 * by construction. Wrong arguments leave through internal_error(), because only the compiler calls
 * these builders (the parser checks text before it builds). Integer index arithmetic is folded
 * during construction, so that lowering needs no special cases for 0 and 1. Nothing else is
 * simplified here. */
#include "ir/prog/prog.h"

#include <string.h>

static Expr *push_expr(Prog *p) {
  Arena *a = &p->c->work;
  if (p->nexpr / EXPR_PAGE == p->page.n) *vec_push(a, &p->page) = NEWS(a, Expr, EXPR_PAGE);
  return prog_expr(p, p->nexpr++);
}

Prog *prog_new(Ctx *c, Dims *dims) {
  Prog *p = NEW(&c->work, Prog);
  p->c = c;
  p->dims = dims;
  (void)vec_push(&c->work, &p->buf); /* id 0 of everything is "none" */
  (void)vec_push(&c->work, &p->var);
  (void)push_expr(p);
  (void)vec_push(&c->work, &p->stmt);
  (void)vec_push(&c->work, &p->record);
  return p;
}

Prog *prog_extend(const Prog *p) {
  Arena *a = &p->c->work;
  Prog *q = NEW(a, Prog);
  *q = *p;
#define OWN(v, T) (q->v.at = NEWS(a, T, p->v.cap), memcpy(q->v.at, p->v.at, p->v.n * sizeof(T)))
  OWN(buf, Buf); /* a growing array may free its old storage */
  OWN(var, Var);
  OWN(stmt, Stmt);
  OWN(record, KernelRecord);
#undef OWN
  q->page.at = NEWS(a, Expr *, p->page.n);
  memcpy(q->page.at, p->page.at, p->page.n * sizeof *q->page.at);
  q->page.cap = p->page.n;
  Expr **last = &q->page.at[p->page.n - 1];
  *last = NEWS(a, Expr, EXPR_PAGE);
  memcpy(*last, p->page.at[p->page.n - 1], EXPR_PAGE * sizeof **last);
  q->sym_var = NEWS(a, VarId, p->nsym_var + 1);
  if (p->nsym_var) memcpy(q->sym_var, p->sym_var, p->nsym_var * sizeof *q->sym_var);
  return q;
}

/* ---- buffers and variables ---- */

BufId prog_add_buf(Prog *p, BufSpace space, DType dt, const Dim *dim, u32 rank, Str name) {
  Arena *a = &p->c->work;
  if (rank > MAX_RANK)
    internal_error(p->c, LOC_NONE, "a buffer has rank %u, expected at most 16", rank);
  Buf *b = vec_push(a, &p->buf);
  BufId id = p->buf.n - 1;
  b->name = name ? name : str_fmt(p->c, "b%u", id);
  b->space = space;
  b->dt = dt;
  b->lanes = 1;
  b->rank = rank;
  b->dim = NEWS(a, Dim, rank);
  for (u32 i = 0; i < rank; i++) b->dim[i] = dim[i];
  if (space == BS_in) *vec_push(a, &p->in) = id;
  if (space == BS_out) *vec_push(a, &p->out) = id;
  return id;
}

BufId prog_add_const(Prog *p, Tensor *t, Str name) {
  BufId b = prog_add_buf(p, BS_const, t->dt, t->dim, t->rank, name);
  prog_buf(p, b)->data = t;
  return b;
}

BufId prog_root(const Prog *p, BufId b) {
  while (prog_buf(p, b)->alias) b = prog_buf(p, b)->alias;
  return b;
}

/* A state without data starts with zeros; another program initializes a shared one. */
u64 prog_stored_bytes(const Prog *p) {
  u64 n = 0;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    bool state = x->space == BS_state && x->data && !x->shared;
    if (!x->alias && (x->space == BS_const || state)) n += tensor_bytes(x->data);
  }
  return n;
}

/* A view has the space of its root, but is never a parameter. */
BufId prog_add_view(Prog *p, BufId of, const Dim *dim, u32 rank, Str name) {
  BufId root = prog_root(p, of);
  BufId b = prog_add_buf(p, BS_temp, prog_buf(p, root)->dt, dim, rank, name);
  prog_buf(p, b)->alias = root;
  return b;
}

VarId prog_add_var(Prog *p, DType dt, Str name) {
  Var *v = vec_push(&p->c->work, &p->var);
  v->name = name ? name : str_fmt(p->c, "v%u", p->var.n - 1);
  v->dt = dt;
  v->lanes = 1;
  v->sym = -1;
  return p->var.n - 1;
}

VarId prog_sym_var(Prog *p, Sym s) {
  SymInfo *si = dim_syminfo(p->dims, s);
  if (si->kind == SY_derived) internal_error(p->c, LOC_NONE, "a derived symbol has no variable");
  if (s >= p->nsym_var) {
    u32 n = dim_nsyms(p->dims);
    VarId *v = NEWS(&p->c->work, VarId, n);
    if (p->nsym_var) memcpy(v, p->sym_var, p->nsym_var * sizeof *v);
    p->sym_var = v;
    p->nsym_var = n;
  }
  if (!p->sym_var[s]) {
    VarId v = prog_add_var(p, DT_i64, si->name);
    prog_var(p, v)->sym = (i32)s;
    p->sym_var[s] = v;
  }
  return p->sym_var[s];
}

/* ---- expressions ---- */

ExprId ex_new(Prog *p, const Expr *from) {
  Arena *a = &p->c->work;
  Expr e = *from;
  e.arg = e.narg ? arena_copy(a, from->arg, e.narg * sizeof *e.arg) : NULL;
  if (e.kind == EX_shuffle) e.pick = arena_copy(a, from->pick, from->lanes);
  *push_expr(p) = e;
  return p->nexpr - 1;
}

ExprId ex_take(Prog *p, const Expr *e) {
  *push_expr(p) = *e;
  return p->nexpr - 1;
}

static ExprId add(Prog *p, ExprKind kind, DType dt, u32 lanes, const ExprId *arg, u32 n) {
  Expr e = {.kind = kind, .dt = dt, .lanes = lanes, .narg = n, .arg = (ExprId *)arg};
  return ex_new(p, &e);
}

ExprId ex_int(Prog *p, i64 x) {
  return ex_const(p, DT_i64, (Scalar){.i = x});
}

ExprId ex_const(Prog *p, DType dt, Scalar x) {
  ExprId e = add(p, EX_const, dt, 1, NULL, 0);
  prog_expr(p, e)->imm = x;
  return e;
}

ExprId ex_var(Prog *p, VarId v) {
  ExprId e = add(p, EX_var, prog_var(p, v)->dt, prog_var(p, v)->lanes, NULL, 0);
  prog_expr(p, e)->ref = v;
  return e;
}

ExprId ex_load(Prog *p, BufId b, const ExprId *idx, u32 n) {
  return ex_load_vec(p, b, idx, n, prog_buf(p, b)->lanes);
}

ExprId ex_load_vec(Prog *p, BufId b, const ExprId *idx, u32 n, u32 lanes) {
  const Buf *bp = prog_buf(p, b);
  if (n != bp->rank)
    internal_error(p->c, LOC_NONE, "load of %s with %u indices, expected %u", show(p->c, bp->name),
                   n, bp->rank);
  ExprId e = add(p, EX_load, bp->dt, lanes, idx, n);
  prog_expr(p, e)->ref = b;
  prog_expr(p, e)->rows = bp->rows;
  return e;
}

/* Type of an op from its operands; to: result of cast and bitcast. */
static ExprId make(Prog *p, Op op, const ExprId *arg, u32 n, DType to) {
  const OpInfo *oi = &op_info[op];
  if (op >= OP_SCALARS || n != oi->nin_min)
    internal_error(p->c, LOC_NONE, "%s with %u operands is not a scalar op", oi->name, n);
  const Expr *last = prog_expr(p, arg[n - 1]);
  DType dt = last->dt;
  for (u32 i = 0; i < n; i++) {
    const Expr *a = prog_expr(p, arg[i]);
    DType want = oi->res == OR_sel && i == 0 ? DT_bool : dt;
    if (a->dt != want || a->lanes != last->lanes)
      internal_error(p->c, LOC_NONE, "operand %u of %s is %sx%u, expected %sx%u", i, oi->name,
                     dtype_info[a->dt].name, a->lanes, dtype_info[want].name, last->lanes);
  }
  if (!op_accepts(op, dt))
    internal_error(p->c, LOC_NONE, "%s does not take %s", oi->name, dtype_info[dt].name);
  DType res = oi->res == OR_pred ? DT_bool : oi->res == OR_to ? to : dt;
  ExprId e = add(p, EX_op, res, last->lanes, arg, n);
  prog_expr(p, e)->op = op;
  return e;
}

ExprId ex_op(Prog *p, Op op, const ExprId *arg, u32 n) {
  return make(p, op, arg, n, DT_none);
}

bool ex_is_int(const Prog *p, ExprId e, i64 *x) {
  const Expr *ep = prog_expr(p, e);
  if (ep->kind != EX_const || !dtype_is_int(ep->dt)) return false;
  *x = ep->imm.i;
  return true;
}

ExprId ex_op1(Prog *p, Op op, ExprId a) {
  i64 x;
  if (ex_is_int(p, a, &x) && op_info[op].res == OR_same && op_accepts(op, prog_expr(p, a)->dt)) {
    DType dt = prog_expr(p, a)->dt;
    return ex_const(p, dt, scalar_eval(op, dt, &(Scalar){.i = x}));
  }
  return make(p, op, &a, 1, DT_none);
}

/* (x + k) + m -> x + (k + m), for either sign of both. Returns 0 if it does not match. */
static ExprId fold_sum(Prog *p, Op op, ExprId a, i64 m) {
  const Expr *ap = prog_expr(p, a);
  i64 k;
  if (ap->kind != EX_op || (ap->op != OP_add && ap->op != OP_sub) || ap->dt != DT_i64) return 0;
  if (ap->lanes > 1 || !ex_is_int(p, ap->arg[1], &k)) return 0;
  ExprId x = ap->arg[0];
  if (k == INT64_MIN || m == INT64_MIN) return 0;
  i64 kk = ap->op == OP_sub ? -k : k, mm = op == OP_sub ? -m : m, sum;
  if (__builtin_add_overflow(kk, mm, &sum) || sum == INT64_MIN) return 0;
  if (sum == 0) return x;
  ExprId arg[2] = {x, ex_int(p, sum < 0 ? -sum : sum)};
  return make(p, sum < 0 ? OP_sub : OP_add, arg, 2, DT_none);
}

/* Identities of integer arithmetic. Returns 0 if none applies. */
static ExprId fold_int(Prog *p, Op op, ExprId a, ExprId b) {
  DType dt = prog_expr(p, a)->dt;
  i64 x, y;
  bool ca = ex_is_int(p, a, &x), cb = ex_is_int(p, b, &y);
  if (ca && cb && op_info[op].res != OR_to && op_accepts(op, dt)) {
    Scalar arg[2] = {{.i = x}, {.i = y}};
    return ex_const(p, op_info[op].res == OR_pred ? DT_bool : dt, scalar_eval(op, dt, arg));
  }
  if (ca && x == 0 && op == OP_add) return b;
  if (ca && x == 1 && op == OP_mul) return b;
  if (ca && x == 0 && op == OP_mul) return a;
  if (!cb) return 0;
  if (y == 0 && (op == OP_add || op == OP_sub)) return a;
  if (y == 1 && (op == OP_mul || op == OP_div)) return a;
  if (y == 0 && op == OP_mul) return b;
  if (y == 1 && op == OP_mod) return ex_const(p, dt, (Scalar){.i = 0});
  if (dt == DT_i64 && (op == OP_add || op == OP_sub)) return fold_sum(p, op, a, y);
  return 0;
}

ExprId ex_op2(Prog *p, Op op, ExprId a, ExprId b) {
  const Expr *ap = prog_expr(p, a), *bp = prog_expr(p, b);
  if (dtype_is_int(ap->dt) && ap->dt == bp->dt && ap->lanes == 1 && bp->lanes == 1) {
    ExprId e = fold_int(p, op, a, b);
    if (e) return e;
  }
  ExprId arg[2] = {a, b};
  return make(p, op, arg, 2, DT_none);
}

ExprId ex_op3(Prog *p, Op op, ExprId a, ExprId b, ExprId c) {
  ExprId arg[3] = {a, b, c};
  return make(p, op, arg, 3, DT_none);
}

ExprId ex_cast(Prog *p, DType to, ExprId a, bool sat) {
  const Expr *ap = prog_expr(p, a);
  if (ap->dt == to) return a;
  if (ap->kind == EX_const) return ex_const(p, to, scalar_cast(ap->dt, to, ap->imm, sat));
  ExprId e = make(p, OP_cast, &a, 1, to);
  prog_expr(p, e)->sat = sat;
  return e;
}

ExprId ex_bitcast(Prog *p, DType to, ExprId a) {
  return make(p, OP_bitcast, &a, 1, to);
}

ExprId ex_splat(Prog *p, ExprId a, u32 lanes) {
  return add(p, EX_splat, prog_expr(p, a)->dt, lanes, &a, 1);
}

ExprId ex_mul_add(Prog *p, ExprId a, i64 k, ExprId b) {
  return ex_op2(p, OP_add, ex_op2(p, OP_mul, a, ex_int(p, k)), b);
}

ExprId ex_shuffle(Prog *p, ExprId a, ExprId b, const u8 *pick, u32 lanes) {
  ExprId arg[2] = {a, b};
  Expr e = {.kind = EX_shuffle, .dt = prog_expr(p, a)->dt, .lanes = lanes, .narg = b ? 2 : 1};
  e.arg = arg;
  e.pick = pick;
  return ex_new(p, &e);
}

ExprId ex_quad(Prog *p, ExprId a) {
  const Expr x = *prog_expr(p, a);
  ExprId e = add(p, EX_quad, DT_i32, x.rows ? x.lanes / 4 : 1, &a, 1);
  prog_expr(p, e)->rows = x.rows;
  return e;
}

ExprId ex_fragment(Prog *p, BufId b, const ExprId *idx, u32 n, u32 rows, u32 columns) {
  ExprId e = ex_load_vec(p, b, idx, n, rows * columns);
  prog_expr(p, e)->rows = rows;
  return e;
}

ExprId ex_splat_fragment(Prog *p, ExprId a, u32 rows, u32 columns) {
  ExprId e = ex_splat(p, a, rows * columns);
  prog_expr(p, e)->rows = rows;
  return e;
}

ExprId ex_turn(Prog *p, ExprId a) {
  const Expr x = *prog_expr(p, a);
  ExprId e = add(p, EX_turn, x.dt, x.lanes, &a, 1);
  prog_expr(p, e)->rows = x.lanes / x.rows;
  return e;
}

ExprId ex_mma(Prog *p, ExprId a, ExprId b, ExprId c) {
  ExprId arg[3] = {a, b, c};
  const Expr x = *prog_expr(p, c);
  ExprId e = add(p, EX_mma, x.dt, x.lanes, arg, 3);
  prog_expr(p, e)->rows = x.rows;
  return e;
}

ExprId ex_random(Prog *p, DType dt, ExprId seed, ExprId index) {
  ExprId arg[2] = {seed, index};
  return add(p, EX_random, dt, 1, arg, 2);
}

static ExprId of_sym(Prog *p, Sym s) {
  SymInfo si = *dim_syminfo(p->dims, s);
  if (si.kind != SY_derived) return ex_var(p, prog_sym_var(p, s));
  ExprId a = ex_dim(p, si.a), b = ex_dim(p, si.b);
  if (si.op != OP_div) return ex_op2(p, si.op, a, b);
  i64 lo, hi;
  dim_bounds(p->dims, si.a, &lo, &hi);
  if (lo < 0) /* floor(a / b) = (a - mod(a, b)) / b, with an exact division */
    a = ex_op2(p, OP_sub, a, ex_op2(p, OP_mod, ex_copy(p, a), ex_copy(p, b)));
  return ex_op2(p, OP_div, a, b);
}

ExprId ex_dim(Prog *p, Dim d) {
  if (dim_is_const(d)) return ex_int(p, d);
  DimTerms f = dim_terms(p->dims, d);
  ExprId sum = ex_int(p, 0);
  for (u32 i = 0; i < f.n; i++) {
    i64 k = f.coef[i];
    bool minus = k < 0 && i > 0;
    ExprId t = ex_op2(p, OP_mul, of_sym(p, f.sym[i]), ex_int(p, minus ? -k : k));
    sum = ex_op2(p, minus ? OP_sub : OP_add, sum, t);
  }
  return ex_op2(p, f.k0 < 0 ? OP_sub : OP_add, sum, ex_int(p, f.k0 < 0 ? -f.k0 : f.k0));
}

ExprId ex_copy(Prog *p, ExprId e) {
  Expr from = *prog_expr(p, e);
  ExprId *arg = from.narg ? NEWS(&p->c->work, ExprId, from.narg) : NULL;
  for (u32 i = 0; i < from.narg; i++) arg[i] = ex_copy(p, from.arg[i]);
  from.arg = arg;
  *push_expr(p) = from;
  return p->nexpr - 1;
}

/* ---- statements ---- */

Cursor prog_end(void) {
  return (Cursor){0, false, 0};
}

Cursor prog_inside(StmtId s) {
  return (Cursor){s, false, 0};
}

Cursor prog_else(StmtId s) {
  return (Cursor){s, true, 0};
}

/* The link where the next statement of the list goes. */
StmtId *prog_link(Prog *p, const Cursor *at) {
  if (at->last) return &prog_stmt(p, at->last)->next;
  if (!at->owner) return &p->body;
  return at->other ? &prog_stmt(p, at->owner)->other : &prog_stmt(p, at->owner)->body;
}

static StmtId *end_of(Prog *p, Cursor *at) {
  StmtId *link = prog_link(p, at);
  for (; *link; link = &prog_stmt(p, at->last)->next) at->last = *link;
  return link;
}

void prog_seek_end(Prog *p, Cursor *at) {
  end_of(p, at);
}

static StmtId new_stmt(Prog *p, StmtKind kind) {
  Stmt *s = vec_push(&p->c->work, &p->stmt);
  s->kind = kind;
  s->step = 1;
  s->loc = LOC_NONE;
  return p->stmt.n - 1;
}

StmtId prog_push(Prog *p, Cursor *at, StmtKind kind) {
  StmtId id = new_stmt(p, kind);
  *end_of(p, at) = id;
  at->last = id;
  return id;
}

StmtId prog_insert(Prog *p, Cursor *at, StmtKind kind) {
  StmtId id = new_stmt(p, kind), *link = prog_link(p, at);
  prog_stmt(p, id)->next = *link;
  *link = id;
  at->last = id;
  return id;
}

void stmts_move(Prog *p, StmtList *to, StmtId id) {
  prog_stmt(p, id)->next = 0;
  if (to->last)
    prog_stmt(p, to->last)->next = id;
  else
    to->first = id;
  to->last = id;
}

void stmts_add(Prog *p, StmtList *to, const Stmt *s) {
  *vec_push(&p->c->work, &p->stmt) = *s;
  stmts_move(p, to, p->stmt.n - 1);
}

VarId prog_for(Prog *p, Cursor *at, ExprId lo, ExprId hi, const char *name) {
  VarId v = prog_add_var(p, DT_i64, str_of(p->c, name));
  StmtId id = prog_push(p, at, ST_for);
  Stmt *s = prog_stmt(p, id);
  s->var = v;
  s->a = lo;
  s->b = hi;
  *at = prog_inside(id);
  return v;
}

static StmtId open(Prog *p, Cursor *at, StmtKind kind, ExprId cond) {
  StmtId id = prog_push(p, at, kind);
  prog_stmt(p, id)->a = cond;
  *at = prog_inside(id);
  return id;
}

StmtId prog_if(Prog *p, Cursor *at, ExprId cond) {
  return open(p, at, ST_if, cond);
}

StmtId prog_while(Prog *p, Cursor *at, ExprId cond) {
  return open(p, at, ST_while, cond);
}

StmtId prog_kernel(Prog *p, Cursor *at, Str label) {
  StmtId id = open(p, at, ST_kernel, 0);
  prog_stmt(p, id)->label = label;
  return id;
}

void prog_require(Prog *p, Cursor *at, ExprId cond, Str message) {
  Stmt *s = prog_stmt(p, prog_push(p, at, ST_require));
  s->a = cond;
  s->label = message;
}

void prog_store(Prog *p, Cursor *at, BufId b, const ExprId *idx, u32 n, ExprId value) {
  const Buf *bp = prog_buf(p, b);
  if (n != bp->rank || prog_expr(p, value)->dt != bp->dt)
    internal_error(p->c, LOC_NONE, "store of %s to %s with %u indices, expected %s with %u indices",
                   dtype_info[prog_expr(p, value)->dt].name, show(p->c, bp->name), n,
                   dtype_info[bp->dt].name, bp->rank);
  ExprId *copy = NEWS(&p->c->work, ExprId, n);
  for (u32 i = 0; i < n; i++) copy[i] = idx[i];
  Stmt *s = prog_stmt(p, prog_push(p, at, ST_store));
  s->buf = b;
  s->nidx = n;
  s->idx = copy;
  s->a = value;
}

static void assign(Prog *p, Cursor *at, StmtKind kind, VarId v, ExprId value) {
  const Expr *e = prog_expr(p, value);
  if (e->dt != prog_var(p, v)->dt || e->lanes != prog_var(p, v)->lanes)
    internal_error(p->c, LOC_NONE, "variable %s of type %sx%u is set to a value of type %sx%u",
                   show(p->c, prog_var(p, v)->name), dtype_info[prog_var(p, v)->dt].name,
                   prog_var(p, v)->lanes, dtype_info[e->dt].name, e->lanes);
  Stmt *s = prog_stmt(p, prog_push(p, at, kind));
  s->var = v;
  s->a = value;
}

void prog_let(Prog *p, Cursor *at, VarId v, ExprId value) {
  assign(p, at, ST_let, v, value);
}

void prog_set(Prog *p, Cursor *at, VarId v, ExprId value) {
  assign(p, at, ST_set, v, value);
}

/* ---- names: buffers have one namespace, symbols and variables another ---- */

typedef struct Names {
  Prog *p;
  Map used; /* name -> 1 while visible */
  Map next; /* letters of a name -> next number to try; only for names that stay visible */
} Names;

/* The wanted name, or its letters with a number that makes it unique; marks it as used. */
static Str take(Names *ns, Str want, bool keep) {
  Ctx *c = ns->p->c;
  Str name = want;
  u32 *slot = map_put(&ns->used, name);
  if (*slot) {
    const char *text = str_text(c, want);
    size_t n = str_len(c, want);
    while (n > 1 && text[n - 1] >= '0' && text[n - 1] <= '9') n--;
    u32 k = 0, *from = map_put_bytes(&ns->next, text, n);
    if (keep) k = *from;
    do {
      StrBuf t = sb_new(&c->scratch);
      sb_put(&t, text, n);
      sb_fmt(&t, "%u", ++k);
      name = str_intern(c, t.at, t.n);
      slot = map_put(&ns->used, name);
    } while (*slot);
    if (keep) *from = k;
  }
  *slot = 1;
  return name;
}

static void release(Names *ns, StmtId first) {
  for (StmtId s = first; s; s = prog_stmt(ns->p, s)->next) {
    const Stmt *sp = prog_stmt(ns->p, s);
    if (sp->kind == ST_let) *map_put(&ns->used, prog_var(ns->p, sp->var)->name) = 0;
  }
}

static void name_list(Names *ns, StmtId first, u32 depth) {
  Prog *p = ns->p;
  if (depth > PROG_DEPTH)
    internal_error(p->c, LOC_NONE, "statements nest deeper than %d", PROG_DEPTH);
  for (StmtId s = first; s; s = prog_stmt(p, s)->next) {
    const Stmt *sp = prog_stmt(p, s);
    Var *v = prog_var(p, sp->var);
    if (sp->kind == ST_for || sp->kind == ST_let) v->name = take(ns, v->name, false);
    if (sp->body) name_list(ns, sp->body, depth + 1);
    if (sp->other) name_list(ns, sp->other, depth + 1);
    if (sp->kind == ST_for) *map_put(&ns->used, v->name) = 0;
  }
  release(ns, first);
}

void prog_names(Prog *p) {
  Arena *a = &p->c->scratch;
  Names ns = {p, map_new(a), map_new(a)};
  for (BufId b = 1; b < p->buf.n; b++) {
    Buf *bp = prog_buf(p, b);
    bp->name = take(&ns, bp->name, true);
  }
  ns = (Names){p, map_new(a), map_new(a)};
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    const SymInfo *si = dim_syminfo(p->dims, s);
    if (si->kind != SY_derived) *map_put(&ns.used, si->name) = 1;
  }
  name_list(&ns, p->body, 0);
}
