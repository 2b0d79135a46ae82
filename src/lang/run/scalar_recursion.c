/* scalar_recursion.c: recursive numeric functions in a compiled loop. See scalar.h.
 *
 * Prog has no calls, so waiting calls are in buffers: function, arguments and results of the calls
 * made so far. A loop runs the body of the top call. A call with an available result uses it. The
 * first call without a result becomes the top call and ends this pass. When its result is
 * available, the body runs again from the start. This requires that the body has no side effects,
 * which is checked. Code after a call is guarded by an `if` on its result, and loops test it before
 * each iteration: nothing is computed from a missing result.
 *
 * Mutually recursive functions are members of one such loop, each body under an `if`. A function
 * becomes a member when it is called and calls a member in turn; others are inlined.
 */
#include "lang/run/scalar.h"

static ExprId var(NumBuild *b, VarId v) {
  return ex_var(b->p, v);
}

static ExprId above(NumBuild *b, VarId v, i64 k) {
  return ex_op2(b->p, OP_add, ex_var(b->p, v), ex_int(b->p, k));
}

static ExprId load(NumBuild *b, BufId from, ExprId at) {
  return ex_load(b->p, from, &at, 1);
}

static void store(NumBuild *b, BufId to, ExprId at, ExprId x) {
  prog_store(b->p, &b->at, to, &at, 1, x);
}

/* Integers and booleans share one buffer, floats have another. */
static u32 column(LangKind k) {
  return k == KD_float;
}

static BufId buffer(NumBuild *b, BufId *known, LangKind k, i64 n, const char *name) {
  DType dt = k == KD_float ? DT_f64 : DT_i64;
  if (!*known) *known = prog_add_buf(b->p, BS_temp, dt, &n, 1, str_of(b->c, name));
  return *known;
}

static BufId arguments(NumBuild *b, NumRecursion *s, LangKind k, u32 i) {
  return buffer(b, &s->arg[column(k)][i], k, REC_DEPTH, "arguments");
}

static BufId results(NumBuild *b, NumRecursion *s, LangKind k) {
  return buffer(b, &s->results[column(k)], k, (i64)REC_DEPTH * REC_CALLS, "results");
}

static ExprId load_as(NumBuild *b, LangKind k, BufId from, ExprId at) {
  ExprId e = load(b, from, at);
  return k == KD_bool ? ex_op2(b->p, OP_ne, e, ex_int(b->p, 0)) : e;
}

static void store_as(NumBuild *b, LangKind k, BufId to, ExprId at, ExprId x) {
  if (k == KD_bool) x = ex_cast(b->p, DT_i64, x, false);
  store(b, to, at, x);
}

/* Position of the results of the top call. */
static ExprId first_of(NumBuild *b, const NumRecursion *s) {
  return ex_op2(b->p, OP_mul, var(b, s->deep), ex_int(b->p, REC_CALLS));
}

static ExprId has_all(NumBuild *b) {
  return ex_op2(b->p, OP_eq, var(b, b->self->waits), ex_int(b->p, 0));
}

ExprId num_rec_loop_cond(NumBuild *b, ExprId cond) {
  return b->self ? ex_op2(b->p, OP_and, cond, has_all(b)) : cond;
}

u32 num_rec_calls(const NumBuild *b) {
  return b->self ? b->self->calls : 0;
}

void num_rec_guard(NumBuild *b, const Ast *n, u32 calls) {
  if (num_rec_calls(b) == calls) return;
  num_nest(b, n);
  prog_if(b->p, &b->at, has_all(b));
}

static const LangFn *fn_of(const NumBuild *b, const NumRecFn *m) {
  return b->closure.at[m->closure - 1].fn;
}

bool num_rec_has(const NumBuild *b, const LangFn *f) {
  for (u32 i = 0; b->self && i < b->self->n; i++)
    if (fn_of(b, &b->self->member[i]) == f) return true;
  return b->self && !b->self->alone && fn_reaches(b->ev, f, fn_of(b, &b->self->member[0]));
}

/* Index of the function among the members, which it may join now. */
static u32 join(NumBuild *b, const Ast *n, NumRecursion *s, u32 closure, const NumVal *arg) {
  const LangFn *f = b->closure.at[closure - 1].fn;
  for (u32 i = 0; i < s->n; i++) {
    const NumRecFn *m = &s->member[i];
    if (fn_of(b, m) != f) continue;
    bool same = m->closure == closure || !f->capture.n;
    for (u32 k = 0; k < f->ast->nkid; k++) same &= arg[k].kind == m->kind[k];
    if (!same) num_refuse(b, n, "a function calls itself with other kinds");
    return i;
  }
  if (s->n == REC_FNS) num_refuse(b, n, "many functions call each other");
  NumRecFn *m = &s->member[s->n];
  *m = (NumRecFn){.closure = closure, .result = f->result->kind};
  if (f->ast->nkid > REC_ARGS || !num_is_number(m->result))
    num_refuse(b, n, "a function calls itself");
  for (u32 i = 0; i < f->ast->nkid; i++) {
    m->kind[i] = arg[i].kind;
    if (!num_is_number(arg[i].kind))
      num_refuse(b, n, "a recursive call has an argument that is not a number");
  }
  return s->n++;
}

/* ---- calls of members by members ---- */

NumVal num_rec_call(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg) {
  Prog *p = b->p;
  NumRecursion *s = b->self;
  u32 number = join(b, n, s, closure, arg), args = b->closure.at[closure - 1].fn->ast->nkid;
  LangKind kind = s->member[number].result;
  DType dt = num_dtype(kind);
  Scalar none = {.i = 0};
  if (kind == KD_float) none.f = 0;
  VarId out = num_var(b, dt, ex_const(p, dt, none));
  u32 levels = b->depth - s->depth;
  if (levels > s->levels) s->levels = levels;
  Cursor after = b->at;
  StmtId known = prog_if(p, &b->at, ex_op2(p, OP_lt, var(b, s->call), var(b, s->ready)));
  prog_set(p, &b->at, out, load_as(b, kind, results(b, s, kind), var(b, s->call)));
  prog_set(p, &b->at, s->call, above(b, s->call, 1));
  b->at = prog_else(known);
  ExprId few = ex_op2(p, OP_lt, var(b, s->call), above(b, s->first, REC_CALLS));
  ExprId flat = ex_op2(p, OP_lt, var(b, s->deep), ex_int(p, REC_DEPTH - 1));
  num_require(b, ex_op2(p, OP_and, few, flat));
  for (u32 i = 0; i < args; i++)
    store_as(b, arg[i].kind, arguments(b, s, arg[i].kind, i), above(b, s->deep, 1),
             num_read(b, arg[i]));
  if (!s->alone) store(b, s->whose, above(b, s->deep, 1), ex_int(p, number));
  prog_set(p, &b->at, s->waits, ex_int(p, 1));
  b->at = after;
  num_rec_guard(b, n, s->calls++);
  return (NumVal){.kind = kind, .var = out};
}

static void begin(NumBuild *b, NumRecursion *s, const NumVal *arg) {
  Prog *p = b->p;
  const NumRecFn *m = &s->member[0];
  for (u32 i = 0; i < fn_of(b, m)->ast->nkid; i++)
    store_as(b, m->kind[i], arguments(b, s, m->kind[i], i), ex_int(p, 0), num_read(b, arg[i]));
  buffer(b, &s->done, KD_int, REC_DEPTH, "done");
  if (!s->alone)
    store(b, buffer(b, &s->whose, KD_int, REC_DEPTH, "whose"), ex_int(p, 0), ex_int(p, 0));
  s->deep = num_var(b, DT_i64, ex_int(p, 0));
  s->call = num_var(b, DT_i64, ex_int(p, 0));
  s->waits = num_var(b, DT_i64, ex_int(p, 0));
  s->first = num_var(b, DT_i64, ex_int(p, 0));
  s->ready = num_var(b, DT_i64, ex_int(p, 0));
  if (!s->alone) s->which = num_var(b, DT_i64, ex_int(p, 0));
  store(b, s->done, ex_int(p, 0), ex_int(p, 0));
  prog_set(p, &b->at, s->deep, ex_int(p, 0));
}

/* Starts a pass over the body of the top call. */
static void begin_turn(NumBuild *b, const NumRecursion *s) {
  Prog *p = b->p;
  num_use_fuel(b, 1);
  prog_set(p, &b->at, s->first, first_of(b, s));
  prog_set(p, &b->at, s->call, var(b, s->first));
  prog_set(p, &b->at, s->ready, load(b, s->done, var(b, s->deep)));
  prog_set(p, &b->at, s->waits, ex_int(p, 0));
  if (!s->alone) prog_set(p, &b->at, s->which, load(b, s->whose, var(b, s->deep)));
}

/* Ends a pass: passes the result to the caller, or starts the call it waits for. */
static void end(NumBuild *b, NumRecursion *s, LangKind kind, VarId out) {
  Prog *p = b->p;
  Cursor after = b->at;
  StmtId over = prog_if(p, &b->at, ex_op2(p, OP_eq, var(b, s->waits), ex_int(p, 0)));
  Cursor inside = b->at;
  prog_set(p, &b->at, s->deep, above(b, s->deep, -1));
  prog_if(p, &b->at, ex_op2(p, OP_ge, var(b, s->deep), ex_int(p, 0)));
  VarId at = prog_add_var(p, DT_i64, 0);
  prog_let(p, &b->at, at, load(b, s->done, var(b, s->deep)));
  store_as(b, kind, results(b, s, kind), var(b, at), var(b, out));
  store(b, s->done, var(b, s->deep), above(b, at, 1));
  b->at = inside;
  b->at = prog_else(over);
  prog_set(p, &b->at, s->deep, above(b, s->deep, 1));
  store(b, s->done, var(b, s->deep), first_of(b, s));
  b->at = after;
}

/* Compiles the body of a member. Returns its result variable. */
static VarId write_body(NumBuild *b, const Ast *n, NumRecursion *s, u32 number) {
  Prog *p = b->p;
  const NumRecFn *m = &s->member[number];
  const LangFn *f = fn_of(b, m);
  NumDest out = {.floats = f->result->kind == KD_float};
  NumScope scope = {.outer = b->scope, .fn = f, .result = &out};
  u32 mine = b->frame, nested = b->nested;
  s->frame = ++b->nframe;
  s->now = number;
  Cursor after = b->at;
  if (!s->alone) {
    num_nest(b, n);
    prog_if(p, &b->at, ex_op2(p, OP_eq, var(b, s->which), ex_int(p, number)));
  }
  scope.leave = num_var(b, DT_i64, ex_int(p, 0));
  prog_set(p, &b->at, scope.leave, ex_int(p, EXIT_none));
  for (u32 i = 0; i < f->ast->nkid; i++) {
    LangKind k = m->kind[i];
    NumVal x = {.kind = k, .e = load_as(b, k, arguments(b, s, k, i), var(b, s->deep))};
    num_parameter(b, n, s->frame, f->ast->kid[i]->slot, x);
  }
  num_captures(b, n, s->frame, m->closure);
  b->frame = s->frame;
  b->scope = &scope;
  b->nested++;
  b->depth++;
  num_block(b, f->ast->a, &out);
  b->depth--;
  b->nested = nested;
  b->scope = scope.outer;
  b->frame = mine;
  if (out.kind != m->result) num_refuse(b, n, "a function returns several kinds");
  end(b, s, m->result, out.var);
  b->at = after;
  return out.var;
}

NumVal num_recursion(NumBuild *b, const Ast *n, u32 closure, const NumVal *arg) {
  Prog *p = b->p;
  const LangFn *f = b->closure.at[closure - 1].fn;
  NumRecursion s = {.alone = !fn_in_cycle(b->ev, f)};
  if (b->self) num_refuse(b, n, "a function that calls itself calls another");
  join(b, n, &s, closure, arg);
  begin(b, &s, arg);
  NumKinds before = num_kinds_copy(b, &b->now);
  Cursor after = b->at;
  ExprId on = ex_op2(p, OP_ge, var(b, s.deep), ex_int(p, 0));
  prog_while(p, &b->at, ex_op2(p, OP_and, on, num_has_fuel(b)));
  begin_turn(b, &s);
  b->self = &s;
  s.depth = b->depth;
  VarId out = 0;
  for (u32 i = 0; i < s.n; i++) { /* others join while it is compiled */
    b->now = num_kinds_copy(b, &before);
    VarId result = write_body(b, n, &s, i);
    if (!i) out = result;
  }
  b->self = NULL;
  b->at = after;
  b->now = before;
  num_require(b, num_has_fuel(b));
  u32 deepest = s.depth + REC_DEPTH * (s.levels + 1);
  if (deepest > b->to->depth) b->to->depth = deepest;
  return (NumVal){.kind = s.member[0].result, .var = out};
}
