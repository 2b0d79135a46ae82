/* scalar_expr.c: variables and expressions of a compiled loop. See scalar.h.
 *
 * In: a checked AST, and the values of variables when the loop is compiled. Out: expressions of a
 * Prog, and the statements before them. Integers are i64, floats f64, booleans bool. The kind of a
 * variable is known at every program point. If it is not, for example after an `if` that defines it
 * on one side, the variable cannot be read. A value that could change before its use is copied to
 * its own variable.
 */
#include "lang/run/scalar.h"

#include <string.h>

_Noreturn void num_refuse(NumBuild *b, const Ast *at, const char *why) {
  const Script *s = at ? b->ev->s->all->at[at->file] : NULL;
  if (s) fail(b->c, ERR_unsupported, LOC_NONE, "%s, line %u", why, script_line(s, at->at));
  fail(b->c, ERR_unsupported, LOC_NONE, "%s", why);
}

bool num_is_number(LangKind k) {
  return k == KD_int || k == KD_float || k == KD_bool;
}

DType num_dtype(LangKind k) {
  return k == KD_float ? DT_f64 : k == KD_bool ? DT_bool : DT_i64;
}

static u32 column(LangKind k) {
  return k == KD_int ? 0 : k == KD_float ? 1 : 2;
}

LangKind num_kind(const NumBuild *b, const NumKinds *at, u32 var) {
  return var < at->n ? at->at[var] : b->to->var.at[var].entry;
}

void num_set_kind(NumBuild *b, u32 var, LangKind k) {
  while (b->now.n <= var) {
    u32 i = b->now.n;
    *vec_push(b->a, &b->now) = b->to->var.at[i].entry;
  }
  b->now.at[var] = k;
}

bool num_is_out_of_scope(const NumBuild *b, u32 var, u32 frames) {
  const NumVar *v = &b->to->var.at[var];
  return !v->home && v->frame > frames;
}

VarId num_var(NumBuild *b, DType dt, ExprId first) {
  VarId v = prog_add_var(b->p, dt, 0);
  StmtId s = prog_insert(b->p, &b->head, ST_let);
  prog_stmt(b->p, s)->var = v;
  prog_stmt(b->p, s)->a = first;
  b->nhead++;
  return v;
}

static ExprId zero(NumBuild *b, LangKind k) {
  return ex_const(b->p, num_dtype(k), k == KD_float ? (Scalar){.f = 0} : (Scalar){.i = 0});
}

static ExprId given(NumBuild *b, BufId from, u32 at) {
  ExprId i = ex_int(b->p, at);
  return ex_load(b->p, from, &i, 1);
}

static u32 add(NumBuild *b, const NumVar *like);

/* Captures do not change while the variable holds the same function. */
static u32 enter_fn(NumBuild *b, const NumVar *v, ClosureObj *f) {
  u32 number = num_closure(b, f->fn);
  for (u32 i = 0; i < f->n; i++) {
    NumVar part = {.place = v->place, .ncapture = v->ncapture + 1, .home = &f->with[i]};
    for (u32 k = 0; k < v->ncapture; k++) part.capture[k] = v->capture[k];
    part.capture[v->ncapture] = i;
    u32 var = add(b, &part);
    LangKind k = b->to->var.at[var].entry;
    NumVal x = {.kind = k};
    if (k == KD_any) return 0;
    if (num_is_number(k))
      x.var = num_as(b, var, k);
    else if (k != KD_none)
      x = num_value(b, NULL, var);
    b->closure.at[number - 1].with[i] = x;
  }
  return number;
}

static void enter(NumBuild *b, NumVar *v) {
  const LangValue *d = v->home;
  v->entry = d->kind;
  if (d->kind == KD_none || num_is_number(d->kind)) return;
  v->entry = KD_any;
  if (d->kind == KD_fn && !d->u.fn->grad_of && (v->ncapture < NUM_CAPTURES || !d->u.fn->n)) {
    v->closure = enter_fn(b, v, d->u.fn);
    if (v->closure) v->entry = KD_fn;
    v->fn = d->u.fn->fn;
  }
  if (d->kind != KD_array) return;
  NumShape shape = num_shape(d->u.list);
  v->array = shape.kind == KD_none ? 0 : num_array(b, &shape);
  if (v->array) v->entry = KD_array;
}

static u32 find(const NumBuild *b, const LangValue *home, u32 frame, u32 slot) {
  for (u32 i = 0; i < b->to->var.n; i++) {
    const NumVar *v = &b->to->var.at[i];
    if (home ? v->home == home : !v->home && v->frame == frame && v->slot == slot) return i;
  }
  return UINT32_MAX;
}

static u32 add(NumBuild *b, const NumVar *like) {
  if (b->to->var.n >= NUM_VARS) num_refuse(b, NULL, "too many variables");
  NumVar v = *like;
  if (v.home) enter(b, &v);
  *vec_push(b->a, &b->to->var) = v;
  return b->to->var.n - 1;
}

/* A variable of a `for` in the loop is local to it: it has no home. */
u32 num_var_index(NumBuild *b, const VarRef *p) {
  Eval *ev = b->ev;
  if (p->kind == VR_local && b->frame) {
    u32 i = find(b, NULL, b->frame, p->slot);
    return i != UINT32_MAX ? i : add(b, &(NumVar){.frame = b->frame, .slot = p->slot});
  }
  Locals *l = p->kind == VR_global ? ev->file[p->file] : ev->local;
  if (!l || p->slot >= l->n) return UINT32_MAX;
  u32 own = l == ev->local ? find(b, NULL, 0, p->slot) : UINT32_MAX;
  if (own != UINT32_MAX) return own;
  u32 i = find(b, &l->at[p->slot], 0, 0);
  return i != UINT32_MAX ? i : add(b, &(NumVar){.place = *p, .home = &l->at[p->slot]});
}

VarId num_as(NumBuild *b, u32 var, LangKind k) {
  NumVar *v = &b->to->var.at[var];
  u32 i = column(k);
  if (v->as[i]) return v->as[i];
  ExprId first = zero(b, k);
  if (v->home && v->entry == k) {
    v->in[i] = k == KD_float ? b->to->nfloat++ : b->to->nint++;
    first = given(b, k == KD_float ? b->in_float : b->in_int, v->in[i]);
    if (k == KD_bool) first = ex_op2(b->p, OP_ne, first, ex_int(b->p, 0));
  }
  v->as[i] = num_var(b, num_dtype(k), first);
  return v->as[i];
}

void num_assign(NumBuild *b, const Ast *at, u32 var, NumVal x) {
  if (!num_is_number(x.kind))
    num_refuse(b, at, "a variable is assigned a value that is not a number");
  NumVar *v = &b->to->var.at[var];
  LangKind was = num_kind(b, &b->now, var);
  if (v->fixed) num_refuse(b, at, "the counter of a loop is changed");
  if (b->self && (v->home || v->frame < b->self->frame))
    num_refuse(b, at, "a function that calls itself changes a variable outside");
  if (v->entry == KD_any || v->entry == KD_array || v->entry == KD_fn || was == KD_array ||
      was == KD_fn)
    num_refuse(b, at, "a variable that holds something else gets a number");
  ExprId e = num_read(b, x);
  if (v->home && num_is_number(v->entry)) num_as(b, var, v->entry);
  prog_set(b->p, &b->at, num_as(b, var, x.kind), e);
  v->changed = true;
  if (v->home && was != x.kind) {
    if (!v->tag) v->tag = num_var(b, DT_i64, ex_int(b->p, v->entry));
    prog_set(b->p, &b->at, v->tag, ex_int(b->p, x.kind));
  }
  num_set_kind(b, var, x.kind);
}

u32 num_find_var(NumBuild *b, const Ast *n) {
  for (u32 i = 0; i < n->nplace; i++) {
    if (n->place[i].kind == VR_self) num_refuse(b, n, "a function is a value");
    u32 v = num_var_index(b, &n->place[i]);
    if (v == UINT32_MAX) continue;
    LangKind k = num_kind(b, &b->now, v);
    if (k == KD_any) num_refuse(b, n, "a variable is not a number");
    if (k != KD_none) return v;
  }
  num_refuse(b, n, "a variable is not set");
}

NumVal num_value(NumBuild *b, const Ast *at, u32 var) {
  LangKind k = num_kind(b, &b->now, var);
  if (k == KD_array) return (NumVal){.kind = k, .array = b->to->var.at[var].array};
  if (k == KD_fn) return (NumVal){.kind = k, .closure = b->to->var.at[var].closure};
  if (!num_is_number(k)) num_refuse(b, at, "a variable is not a number");
  return (NumVal){.kind = k, .e = ex_var(b->p, num_as(b, var, k))};
}

ExprId num_read(NumBuild *b, NumVal v) {
  return v.var ? ex_var(b->p, v.var) : v.e;
}

NumVal num_snapshot(NumBuild *b, NumVal v) {
  if (v.var || !num_is_number(v.kind)) return v;
  VarId t = prog_add_var(b->p, num_dtype(v.kind), 0);
  prog_let(b->p, &b->at, t, v.e);
  return (NumVal){.kind = v.kind, .var = t};
}

void num_require(NumBuild *b, ExprId cond) {
  prog_require(b->p, &b->at, cond, str_of(b->c, "the interpreter reports the error"));
}

/* Logical not as xor, which the vm executes without a call. */
static ExprId negated(NumBuild *b, ExprId e) {
  return ex_op2(b->p, OP_xor, e, ex_const(b->p, DT_bool, (Scalar){.i = 1}));
}

static NumVal of(LangKind k, ExprId e) {
  return (NumVal){.kind = k, .e = e};
}

ExprId num_condition(NumBuild *b, const Ast *at, NumVal v) {
  if (!num_is_number(v.kind)) num_refuse(b, at, "a condition is not a number");
  ExprId e = num_read(b, v);
  return v.kind == KD_bool ? e : ex_op2(b->p, OP_ne, e, zero(b, v.kind));
}

ExprId num_float(NumBuild *b, const Ast *at, NumVal v) {
  if (v.kind != KD_int && v.kind != KD_float) num_refuse(b, at, "a value is not a number");
  ExprId e = num_read(b, v);
  return v.kind == KD_float ? e : ex_cast(b->p, DT_f64, e, false);
}

NumVal num_convert(NumBuild *b, const Ast *at, NumVal v, const LangType *to) {
  if (to->kind == KD_any || to->kind == KD_none) return v;
  if (to->kind == KD_float && v.kind == KD_int) return of(KD_float, num_float(b, at, v));
  if (to->kind != v.kind || !num_is_number(v.kind)) num_refuse(b, at, "a value becomes another");
  return v;
}

NumVal num_operand(NumBuild *b, Ast *n) {
  u32 jumps = b->scope->jumps;
  NumVal v = num_expr(b, n);
  if (b->scope->jumps != jumps) num_refuse(b, n, "an expression leaves a loop");
  return v;
}

/* Evaluates x before y. */
static void operands(NumBuild *b, Ast *x, Ast *y, NumVal out[2]) {
  out[0] = num_operand(b, x);
  if (!ast_is_pure(y)) out[0] = num_snapshot(b, out[0]);
  out[1] = num_operand(b, y);
}

static const struct {
  Op op;
  bool compares;
} ops[TOK_COUNT] = {
    [TOK_add] = {OP_add, false}, [TOK_sub] = {OP_sub, false}, [TOK_mul] = {OP_mul, false},
    [TOK_div] = {OP_div, false}, [TOK_lt] = {OP_lt, true},    [TOK_le] = {OP_le, true},
    [TOK_gt] = {OP_gt, true},    [TOK_ge] = {OP_ge, true},    [TOK_eq] = {OP_eq, true},
    [TOK_ne] = {OP_ne, true}};

static NumVal equal(NumBuild *b, const Ast *n, NumVal x[2]) {
  bool mixed = (x[0].kind == KD_int && x[1].kind == KD_float) ||
               (x[0].kind == KD_float && x[1].kind == KD_int);
  if (mixed)
    return of(KD_bool, ex_op2(b->p, ops[n->op].op, num_float(b, n, x[0]), num_float(b, n, x[1])));
  if (x[0].kind != x[1].kind)
    return of(KD_bool, ex_const(b->p, DT_bool, (Scalar){.i = n->op == TOK_ne}));
  ExprId y = num_read(b, x[1]);
  return of(KD_bool, ex_op2(b->p, ops[n->op].op, num_read(b, x[0]), y));
}

/* a - a / b * b: the remainder of a truncated division has the sign of a. */
static NumVal remainder_of(NumBuild *b, NumVal x, NumVal y) {
  Prog *p = b->p;
  x = num_snapshot(b, x);
  y = num_snapshot(b, y);
  num_require(b, ex_op2(p, OP_ne, num_read(b, y), ex_int(p, 0)));
  ExprId q = ex_op2(p, OP_div, num_read(b, x), num_read(b, y));
  q = ex_op2(p, OP_mul, q, num_read(b, y));
  return of(KD_int, ex_op2(p, OP_sub, num_read(b, x), q));
}

static bool is_zero_never(const NumBuild *b, NumVal y) {
  const Expr *e = y.e ? prog_expr(b->p, y.e) : NULL;
  if (!e || e->kind != EX_const) return false;
  return y.kind == KD_float ? e->imm.f != 0 : e->imm.i != 0;
}

static NumVal arithmetic(NumBuild *b, const Ast *n, NumVal x[2]) {
  Prog *p = b->p;
  bool ints = x[0].kind == KD_int && x[1].kind == KD_int;
  if (n->op == TOK_mod && ints) return remainder_of(b, x[0], x[1]);
  if (!ops[n->op].op && n->op != TOK_add) num_refuse(b, n, "an operator is not one of numbers");
  if (!ints)
    for (u32 i = 0; i < 2; i++) x[i] = of(KD_float, num_float(b, n, x[i]));
  LangKind k = ints ? KD_int : KD_float;
  if (n->op == TOK_div && !is_zero_never(b, x[1])) {
    x[1] = num_snapshot(b, x[1]);
    num_require(b, ex_op2(p, OP_ne, num_read(b, x[1]), zero(b, k)));
  }
  ExprId right = num_read(b, x[1]);
  return of(ops[n->op].compares ? KD_bool : k, ex_op2(p, ops[n->op].op, num_read(b, x[0]), right));
}

static NumVal logical(NumBuild *b, const Ast *n) {
  Prog *p = b->p;
  Op op = n->op == TOK_and ? OP_and : OP_or;
  ExprId x = num_condition(b, n->a, num_operand(b, n->a));
  if (ast_cannot_fail(n->b)) {
    ExprId y = num_condition(b, n->b, num_operand(b, n->b));
    return of(KD_bool, ex_op2(p, op, x, y));
  }
  VarId t = prog_add_var(p, DT_bool, 0);
  prog_let(p, &b->at, t, x);
  Cursor after = b->at;
  NumKinds before = b->now;
  u32 frames = b->nframe, calls = num_rec_calls(b);
  prog_if(p, &b->at, op == OP_and ? ex_var(p, t) : negated(b, ex_var(p, t)));
  b->now = num_kinds_copy(b, &before);
  ExprId y = num_condition(b, n->b, num_operand(b, n->b));
  prog_set(p, &b->at, t, y);
  for (u32 i = 0; i < b->now.n; i++)
    if (!num_is_out_of_scope(b, i, frames) && num_kind(b, &before, i) != b->now.at[i])
      num_refuse(b, n, "a kind changes on one side");
  b->at = after;
  num_rec_guard(b, n, calls);
  return (NumVal){.kind = KD_bool, .var = t};
}

static NumVal binary(NumBuild *b, const Ast *n) {
  NumVal x[2];
  if (n->op == TOK_and || n->op == TOK_or) return logical(b, n);
  operands(b, n->a, n->b, x);
  if (!num_is_number(x[0].kind) || !num_is_number(x[1].kind))
    num_refuse(b, n, "an operand is not a number");
  return n->op == TOK_eq || n->op == TOK_ne ? equal(b, n, x) : arithmetic(b, n, x);
}

static NumVal unary(NumBuild *b, const Ast *n) {
  NumVal v = num_operand(b, n->a);
  if (n->op == TOK_not) return of(KD_bool, negated(b, num_condition(b, n, v)));
  if (v.kind == KD_int) return of(KD_int, ex_op2(b->p, OP_sub, ex_int(b->p, 0), num_read(b, v)));
  if (v.kind != KD_float) num_refuse(b, n, "an operand is not a number");
  return of(KD_float, ex_op1(b->p, OP_neg, num_read(b, v)));
}

static NumVal cast(NumBuild *b, const Ast *n) {
  NumVal v = num_operand(b, n->a);
  char to = *str_text(b->ev->c, n->name);
  if (!num_is_number(v.kind)) num_refuse(b, n, "an operand is not a number");
  ExprId e = num_read(b, v);
  if (to == 'b') {
    if (v.kind == KD_bool) return of(KD_bool, e);
    return of(KD_bool, ex_op2(b->p, OP_ne, e, zero(b, v.kind)));
  }
  if (v.kind == KD_bool) e = ex_cast(b->p, DT_i64, e, false);
  if (to == 'f') return of(KD_float, v.kind == KD_float ? e : ex_cast(b->p, DT_f64, e, false));
  return of(KD_int, v.kind == KD_float ? ex_cast(b->p, DT_i64, e, true) : e);
}

ExprId num_bound(NumBuild *b, Ast *n) {
  NumVal v = num_operand(b, n);
  if (v.kind == KD_float) return ex_cast(b->p, DT_i64, num_read(b, v), true);
  if (v.kind != KD_int) num_refuse(b, n, "a bound is not a number");
  return num_read(b, v);
}

/* Functions of floats. */
static const struct {
  BuiltinFn *fn;
  Op op;
  Op fails; /* comparison of the argument with 0 that must give `ok`; OP_add: none */
  bool ok;
} functions[] = {{bi_sqrt, OP_sqrt, OP_lt, false}, {bi_log, OP_log, OP_gt, true},
                 {bi_exp, OP_exp, OP_add, true},   {bi_sin, OP_sin, OP_add, true},
                 {bi_cos, OP_cos, OP_add, true},   {bi_tan, OP_tan, OP_add, true}};

static bool of_one(NumBuild *b, const Ast *n, BuiltinFn *f, NumVal x, NumVal *out) {
  Prog *p = b->p;
  for (u32 i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (functions[i].fn != f) continue;
    x = num_snapshot(b, of(KD_float, num_float(b, n, x)));
    if (functions[i].fails != OP_add) {
      ExprId c = ex_op2(p, functions[i].fails, num_read(b, x), zero(b, KD_float));
      num_require(b, functions[i].ok ? c : negated(b, c));
    }
    *out = of(KD_float, ex_op1(p, functions[i].op, num_read(b, x)));
    return true;
  }
  if (f != bi_abs) return false;
  if (x.kind == KD_int) {
    x = num_snapshot(b, x);
    ExprId minus = ex_op2(p, OP_sub, ex_int(p, 0), num_read(b, x));
    ExprId below = ex_op2(p, OP_lt, num_read(b, x), ex_int(p, 0));
    *out = of(KD_int, ex_op3(p, OP_select, below, minus, num_read(b, x)));
  } else {
    *out = of(KD_float, ex_op1(p, OP_abs, num_float(b, n, x)));
  }
  return true;
}

/* Smaller or larger of two numbers, with the rules of number_minmax. */
static NumVal pick(NumBuild *b, const Ast *n, bool largest, NumVal x[2]) {
  Prog *p = b->p;
  bool ints = x[0].kind == KD_int && x[1].kind == KD_int;
  for (u32 i = 0; i < 2; i++)
    x[i] = num_snapshot(b, ints ? x[i] : of(KD_float, num_float(b, n, x[i])));
  ExprId first = ex_op2(p, largest ? OP_ge : OP_le, num_read(b, x[0]), num_read(b, x[1]));
  if (!ints) first = ex_op2(p, OP_or, first, ex_op1(p, OP_isnan, num_read(b, x[1])));
  return of(ints ? KD_int : KD_float,
            ex_op3(p, OP_select, first, num_read(b, x[0]), num_read(b, x[1])));
}

static NumVal builtin(NumBuild *b, const Ast *n) {
  BuiltinFn *f = builtin_fn[n->builtin - 1];
  NumVal x[2], out;
  if (n->nkid == 1 && f == bi_len && num_length(b, n->kid[0], &out)) return out;
  bool two = f == bi_min || f == bi_max || f == bi_pow;
  bool known = two || f == bi_abs;
  for (u32 i = 0; i < sizeof functions / sizeof *functions; i++) known |= functions[i].fn == f;
  if (!known || n->nkid != 1u + two) num_refuse(b, n, builtin_info[n->builtin - 1].name);
  if (!two) {
    x[0] = num_operand(b, n->kid[0]);
    if (x[0].kind != KD_int && x[0].kind != KD_float)
      num_refuse(b, n, "an argument is not a number");
    if (!of_one(b, n, f, x[0], &out)) num_refuse(b, n, "a function is not one of numbers");
    return out;
  }
  operands(b, n->kid[0], n->kid[1], x);
  for (u32 i = 0; i < 2; i++)
    if (x[i].kind != KD_int && x[i].kind != KD_float)
      num_refuse(b, n, "an argument is not a number");
  if (f != bi_pow) return pick(b, n, f == bi_max, x);
  ExprId exponent = num_float(b, n, x[1]);
  return of(KD_float, ex_op2(b->p, OP_pow, num_float(b, n, x[0]), exponent));
}

static NumVal chosen(NumBuild *b, Ast *n) {
  NumDest to = {0};
  u32 calls = num_rec_calls(b);
  if (!num_stmt(b, n, &to)) num_refuse(b, n, "an expression leaves a loop");
  if (!num_is_number(to.kind)) num_refuse(b, n, "a value is of several kinds");
  num_rec_guard(b, n, calls);
  return (NumVal){.kind = to.kind, .var = to.var};
}

static NumVal plain(NumBuild *b, Ast *n) {
  switch (n->kind) {
  case AST_int: return of(KD_int, ex_int(b->p, n->i));
  case AST_float: return of(KD_float, ex_const(b->p, DT_f64, (Scalar){.f = n->f}));
  case AST_bool: return of(KD_bool, ex_const(b->p, DT_bool, (Scalar){.i = n->i}));
  case AST_name: return num_value(b, n, num_find_var(b, n));
  case AST_unary: return unary(b, n);
  case AST_binary: return binary(b, n);
  case AST_cast: return cast(b, n);
  case AST_index: return num_indexed(b, n);
  case AST_fn: return num_fn(b, n);
  case AST_named: return num_expr(b, n->a);
  case AST_call: return n->builtin ? builtin(b, n) : num_call(b, n);
  case AST_if: return chosen(b, n);
  case AST_member:
    if (n->nplace) return num_value(b, n, num_find_var(b, n));
    break;
  default: break;
  }
  num_refuse(b, n, "it is not purely numeric");
}

NumVal num_expr(NumBuild *b, Ast *n) {
  if (n->height > NUM_DEPTH || b->p->stmt.n > NUM_STMTS) num_refuse(b, n, "too large");
  if (++b->depth > b->to->depth) b->to->depth = b->depth;
  NumVal v = plain(b, n);
  b->depth--;
  return n->to && n->kind != AST_if ? num_convert(b, n, v, n->to) : v;
}
