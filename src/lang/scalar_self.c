/* scalar_self.c: functions of numbers that call themselves, in a program of the bytecode machine.
 * See scalar.h.
 *
 * Prog has no calls, so calls that wait lie in buffers: the arguments of each, and results of calls
 * that it has made. One loop walks the body of the call on top. A call in it whose result is there
 * gives that; the first one whose result is not becomes the call on top, and the walk under way
 * ends: when the result is there the body is walked again from its beginning. That is the same only
 * since nothing outside can be changed, which is refused. What follows a call stands under an `if`
 * that asks whether its result was there, and loops ask it before each turn: nothing is computed
 * from a result that is not known.
 */
#include "lang/scalar.h"

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

static BufId buffer(NumBuild *b, LangKind k, i64 n, const char *name) {
  return prog_add_buf(b->p, BS_temp, k == KD_float ? DT_f64 : DT_i64, &n, 1, str_of(b->c, name));
}

/* Where the results of the call on top begin. */
static ExprId first_of(NumBuild *b, const NumSelf *s) {
  return ex_op2(b->p, OP_mul, var(b, s->deep), ex_int(b->p, SELF_CALLS));
}

static bool is_plain(LangKind k) {
  return k == KD_int || k == KD_float;
}

static ExprId has_all(NumBuild *b) {
  return ex_op2(b->p, OP_eq, var(b, b->self->waits), ex_int(b->p, 0));
}

ExprId num_self_stays(NumBuild *b, ExprId cond) {
  return b->self ? ex_op2(b->p, OP_and, cond, has_all(b)) : cond;
}

u32 num_self_calls(const NumBuild *b) {
  return b->self ? b->self->calls : 0;
}

void num_self_behind(NumBuild *b, const Ast *n, u32 calls) {
  if (num_self_calls(b) == calls) return;
  num_deeper(b, n);
  prog_if(b->p, &b->at, has_all(b));
}

/* A call of the function by itself. */
NumVal num_self_call(NumBuild *b, const Ast *n, NumSelf *s, const NumVal *arg) {
  Prog *p = b->p;
  VarId out = num_var(b, num_dtype(s->result), ex_const(p, num_dtype(s->result), (Scalar){.i = 0}));
  u32 levels = b->depth - s->depth;
  if (levels > s->levels) s->levels = levels;
  for (u32 i = 0; i < s->n; i++)
    if (arg[i].kind != s->kind[i]) num_refuse(b, n, "a function calls itself with other kinds");
  Cursor behind = b->at;
  StmtId known = prog_if(p, &b->at, ex_op2(p, OP_lt, var(b, s->call), var(b, s->ready)));
  prog_set(p, &b->at, out, load(b, s->results, var(b, s->call)));
  prog_set(p, &b->at, s->call, above(b, s->call, 1));
  b->at = prog_else(known);
  ExprId few = ex_op2(p, OP_lt, var(b, s->call), above(b, s->first, SELF_CALLS));
  ExprId flat = ex_op2(p, OP_lt, var(b, s->deep), ex_int(p, SELF_DEEP - 1));
  num_require(b, ex_op2(p, OP_and, few, flat));
  for (u32 i = 0; i < s->n; i++) store(b, s->arg[i], above(b, s->deep, 1), num_take(b, arg[i]));
  prog_set(p, &b->at, s->waits, ex_int(p, 1));
  b->at = behind;
  num_self_behind(b, n, s->calls++);
  return (NumVal){.kind = s->result, .var = out};
}

static void begin(NumBuild *b, NumSelf *s, const NumVal *arg) {
  Prog *p = b->p;
  for (u32 i = 0; i < s->n; i++) {
    s->kind[i] = arg[i].kind;
    s->arg[i] = buffer(b, arg[i].kind, SELF_DEEP, "arguments");
    store(b, s->arg[i], ex_int(p, 0), num_take(b, arg[i]));
  }
  s->done = buffer(b, KD_int, SELF_DEEP, "done");
  s->results = buffer(b, s->result, (i64)SELF_DEEP * SELF_CALLS, "results");
  s->deep = num_var(b, DT_i64, ex_int(p, 0));
  s->call = num_var(b, DT_i64, ex_int(p, 0));
  s->waits = num_var(b, DT_i64, ex_int(p, 0));
  s->first = num_var(b, DT_i64, ex_int(p, 0));
  s->ready = num_var(b, DT_i64, ex_int(p, 0));
  store(b, s->done, ex_int(p, 0), ex_int(p, 0));
  prog_set(p, &b->at, s->deep, ex_int(p, 0));
}

/* Behind a walk of the body: its result goes to the call below, or the one that it waits for is
 * next. */
static void end(NumBuild *b, const NumSelf *s, VarId out) {
  Prog *p = b->p;
  Cursor behind = b->at;
  StmtId over = prog_if(p, &b->at, ex_op2(p, OP_eq, var(b, s->waits), ex_int(p, 0)));
  Cursor inside = b->at;
  prog_set(p, &b->at, s->deep, above(b, s->deep, -1));
  prog_if(p, &b->at, ex_op2(p, OP_ge, var(b, s->deep), ex_int(p, 0)));
  VarId at = prog_add_var(p, DT_i64, 0);
  prog_let(p, &b->at, at, load(b, s->done, var(b, s->deep)));
  store(b, s->results, var(b, at), var(b, out));
  store(b, s->done, var(b, s->deep), above(b, at, 1));
  b->at = inside;
  b->at = prog_else(over);
  prog_set(p, &b->at, s->deep, above(b, s->deep, 1));
  store(b, s->done, var(b, s->deep), first_of(b, s));
  b->at = behind;
}

NumVal num_self(NumBuild *b, const Ast *n, const LangFn *f, const NumVal *arg) {
  Prog *p = b->p;
  NumGoal out = {.floats = f->result->kind == KD_float};
  NumScope scope = {.outer = b->scope, .fn = f, .result = &out};
  NumSelf s = {.outer = b->self, .fn = f, .n = f->ast->nkid, .result = f->result->kind};
  u32 frame = ++b->nframe, mine = b->frame, nested = b->nested;
  if (b->self) num_refuse(b, n, "a function that calls itself calls another");
  if (s.n > SELF_ARGS || !is_plain(s.result)) num_refuse(b, n, "a function calls itself");
  for (u32 i = 0; i < s.n; i++)
    if (!is_plain(arg[i].kind)) num_refuse(b, n, "a function calls itself with what is no number");
  begin(b, &s, arg);
  scope.leave = num_var(b, DT_i64, ex_int(p, 0));
  NumKinds before = num_kinds_copy(b, &b->now);
  Cursor behind = b->at;
  ExprId on = ex_op2(p, OP_ge, var(b, s.deep), ex_int(p, 0));
  prog_while(p, &b->at, ex_op2(p, OP_and, on, num_has_fuel(b)));
  num_burn(b, 1);
  prog_set(p, &b->at, s.first, first_of(b, &s));
  prog_set(p, &b->at, s.call, var(b, s.first));
  prog_set(p, &b->at, s.ready, load(b, s.done, var(b, s.deep)));
  prog_set(p, &b->at, s.waits, ex_int(p, 0));
  prog_set(p, &b->at, scope.leave, ex_int(p, LEAVE_not));
  b->self = &s;
  s.frame = frame;
  s.depth = b->depth;
  for (u32 i = 0; i < s.n; i++) {
    NumVal x = {.kind = s.kind[i], .e = load(b, s.arg[i], var(b, s.deep))};
    num_parameter(b, n, frame, f->ast->kid[i]->slot, x);
  }
  b->frame = frame;
  b->scope = &scope;
  b->nested++;
  b->depth++;
  num_block(b, f->ast->a, &out);
  b->depth--;
  b->nested = nested;
  b->scope = scope.outer;
  b->frame = mine;
  b->self = s.outer;
  if (out.kind != s.result) num_refuse(b, n, "what a function gives is of several kinds");
  end(b, &s, out.var);
  b->at = behind;
  b->now = before;
  num_require(b, num_has_fuel(b));
  u32 deepest = s.depth + SELF_DEEP * (s.levels + 1);
  if (deepest > b->to->depth) b->to->depth = deepest;
  return (NumVal){.kind = s.result, .var = out.var};
}
