/* scalar_stmt.c: statements of a compiled loop, and the loop itself. See scalar.h.
 *
 * In: the AST of a loop. Out: a Prog that runs it from its current state while fuel lasts. Prog
 * cannot break out of a loop: a variable records the exit, the loop tests it before each iteration,
 * and the following statements are under an `if`. Calls are in scalar_call.c.
 */
#include "lang/run/scalar.h"

/* ---- kinds on several paths ---- */

NumKinds num_kinds_copy(NumBuild *b, const NumKinds *from) {
  NumKinds to = {0};
  for (u32 i = 0; i < from->n; i++) *vec_push(b->a, &to) = from->at[i];
  return to;
}

/* Merges kinds of two paths; different kinds become unknown. */
static void merge(NumBuild *b, NumKinds *to, const NumKinds *from) {
  u32 n = b->to->var.n;
  while (to->n < n) {
    u32 i = to->n;
    *vec_push(b->a, to) = b->to->var.at[i].entry;
  }
  for (u32 i = 0; i < n; i++)
    if (to->at[i] != num_kind(b, from, i)) to->at[i] = KD_any;
}

static void merge_exit_kinds(NumBuild *b, NumScope *s) {
  if (s->any)
    merge(b, &s->ways, &b->now);
  else
    s->ways = num_kinds_copy(b, &b->now);
  s->any = true;
}

void num_put_result(NumBuild *b, const Ast *at, NumDest *to, NumVal v) {
  if (!to || to->kind == KD_any) return;
  if (to->floats && v.kind == KD_int) v = (NumVal){.kind = KD_float, .e = num_float(b, at, v)};
  if (to->kind == KD_none) {
    to->kind = v.kind;
    if (num_is_number(v.kind)) {
      Scalar none = {.i = 0};
      if (v.kind == KD_float) none.f = 0;
      to->var = num_var(b, num_dtype(v.kind), ex_const(b->p, num_dtype(v.kind), none));
    }
  }
  if (to->kind != v.kind || v.kind == KD_array || v.kind == KD_fn) {
    to->kind = KD_any;
    return;
  }
  if (num_is_number(v.kind)) prog_set(b->p, &b->at, to->var, num_read(b, v));
}

static const NumVal null = {.kind = KD_null};

void num_nest(NumBuild *b, const Ast *n) {
  if (++b->nested > NUM_DEPTH) num_refuse(b, n, "nested too deeply");
}

static bool is_control(const Ast *n) {
  return n->kind == AST_if || n->kind == AST_while || n->kind == AST_for || n->kind == AST_block ||
         n->kind == AST_return || n->kind == AST_break || n->kind == AST_continue;
}

bool num_block(NumBuild *b, const Ast *n, NumDest *to) {
  Cursor after = b->at;
  u32 nested = b->nested;
  bool on = true;
  if (!n->nkid) num_put_result(b, n, to, null);
  for (u32 i = 0; on && i < n->nkid; i++) {
    u32 jumps = b->scope->jumps, calls = num_rec_calls(b);
    bool last = i + 1 == n->nkid;
    on = num_stmt(b, n->kid[i], last ? to : NULL);
    if (on && !last && is_control(n->kid[i])) num_rec_guard(b, n, calls);
    if (!on || last || b->scope->jumps == jumps) continue;
    num_nest(b, n);
    ExprId stays = ex_op2(b->p, OP_eq, ex_var(b->p, b->scope->leave), ex_int(b->p, EXIT_none));
    prog_if(b->p, &b->at, stays);
  }
  b->nested = nested;
  b->at = after;
  return on;
}

static bool leave(NumBuild *b, u32 how) {
  NumScope *s = b->scope;
  if (s->leave) prog_set(b->p, &b->at, s->leave, ex_int(b->p, how));
  s->jumps++;
  if (how != EXIT_return) merge_exit_kinds(b, s);
  return false;
}

/* After a loop in which a call may return. */
static void propagate_return(NumBuild *b, const NumScope *inner) {
  if (!inner->leave || !b->scope) return;
  Cursor after = b->at;
  ExprId ends = ex_op2(b->p, OP_eq, ex_var(b->p, inner->leave), ex_int(b->p, EXIT_return));
  prog_if(b->p, &b->at, ends);
  prog_set(b->p, &b->at, b->scope->leave, ex_int(b->p, EXIT_return));
  b->scope->jumps++;
  b->at = after;
}

static bool return_value(NumBuild *b, const Ast *n) {
  NumScope *s = b->scope;
  NumVal v = n->a ? num_expr(b, n->a) : null;
  while (!s->fn && s->outer) s = s->outer;
  num_put_result(b, n, s->result, v);
  return leave(b, EXIT_return);
}

static bool branch(NumBuild *b, const Ast *n, NumDest *to) {
  Prog *p = b->p;
  u32 jumps = b->scope->jumps;
  ExprId cond = num_condition(b, n->a, num_expr(b, n->a));
  if (b->scope->jumps != jumps) num_refuse(b, n, "a condition leaves a loop");
  Cursor after = b->at;
  NumKinds before = num_kinds_copy(b, &b->now);
  num_nest(b, n);
  StmtId s = prog_if(p, &b->at, cond);
  bool yes = num_block(b, n->b, to), no = true;
  NumKinds then = b->now;
  b->now = before;
  if (n->c) {
    b->at = prog_else(s);
    no = n->c->kind == AST_if ? num_stmt(b, n->c, to) : num_block(b, n->c, to);
  } else if (to) {
    num_put_result(b, n, to, null);
  }
  b->nested--;
  b->at = after;
  if (yes && no)
    merge(b, &b->now, &then);
  else if (yes)
    b->now = then;
  return yes || no;
}

/* Before the first iteration: marks the variables defined in the body as unknown after the loop. */
static void may_be_defined(NumBuild *b, const Ast *body) {
  NumSlots slots = {0};
  ast_defines(b->a, body, &slots);
  for (u32 i = 0; i < slots.n; i++) {
    u32 v = num_var_index(b, &(VarRef){.kind = VR_local, .slot = slots.at[i]});
    if (v != UINT32_MAX && num_kind(b, &b->now, v) == KD_none) num_set_kind(b, v, KD_any);
  }
}

/* Variables of a `for` are local to it. */
static void own_slots(NumBuild *b, const Ast *n, LangKind k) {
  for (u32 i = 0; i < n->nslot; i++) {
    VarRef p = {.kind = VR_local, .slot = n->slot + i};
    u32 v = UINT32_MAX;
    for (u32 k = 0; k < b->to->var.n; k++) {
      const NumVar *x = &b->to->var.at[k];
      if (!x->home && x->frame == b->frame && x->slot == p.slot) v = k;
    }
    if (v == UINT32_MAX) {
      *vec_push(b->a, &b->to->var) = (NumVar){.frame = b->frame, .slot = p.slot};
      v = b->to->var.n - 1;
    }
    if (b->to->var.at[v].fixed) b->to->var.at[v].as[0] = 0;
    b->to->var.at[v].fixed = false;
    num_set_kind(b, v, k);
  }
}

static NumScope loop_begin(NumBuild *b, const Ast *n) {
  Prog *p = b->p;
  NumScope s = {.outer = b->scope, .frames = b->nframe};
  if (ast_exits(n->b)) {
    s.leave = num_var(b, DT_i64, ex_int(p, 0));
    prog_set(p, &b->at, s.leave, ex_int(p, EXIT_none));
  }
  may_be_defined(b, n->b);
  s.head = num_kinds_copy(b, &b->now);
  b->scope = NULL; /* the caller sets it to the stored scope */
  return s;
}

/* Kinds at the start of an iteration must hold at its end. */
static void loop_end(NumBuild *b, NumScope *s, const Ast *n, bool on) {
  if (on) merge_exit_kinds(b, s);
  merge(b, &s->head, &s->head);
  for (u32 i = 0; s->any && i < b->to->var.n; i++)
    if (s->head.at[i] != KD_any && num_kind(b, &s->ways, i) != s->head.at[i] &&
        !num_is_out_of_scope(b, i, s->frames))
      num_refuse(b, n, "a variable changes its kind in a loop");
  b->now = s->head;
  b->scope = s->outer;
}

static void subtract_fuel(NumBuild *b, ExprId turns) {
  prog_set(b->p, &b->at, b->fuel, ex_op2(b->p, OP_sub, ex_var(b->p, b->fuel), turns));
}

/* whole: the outermost loop, which may pause without fuel. */
static ExprId has_fuel(NumBuild *b, bool whole) {
  i64 least = whole ? 0 : -(i64)FUEL_MAX;
  return ex_op2(b->p, OP_gt, ex_var(b->p, b->fuel), ex_int(b->p, least));
}

ExprId num_has_fuel(NumBuild *b) {
  return has_fuel(b, false);
}

void num_use_fuel(NumBuild *b, i64 turns) {
  subtract_fuel(b, ex_int(b->p, turns));
}

static ExprId stays_in(NumBuild *b, const NumScope *s, ExprId cond) {
  cond = num_rec_loop_cond(b, cond);
  if (!s->leave) return cond;
  ExprId in = ex_op2(b->p, OP_lt, ex_var(b->p, s->leave), ex_int(b->p, EXIT_break));
  return ex_op2(b->p, OP_and, cond, in);
}

static void begin_turn(NumBuild *b, const NumScope *s) {
  if (s->leave) prog_set(b->p, &b->at, s->leave, ex_int(b->p, EXIT_none));
}

static void put(NumBuild *b, BufId to, u32 at, ExprId e) {
  ExprId i = ex_int(b->p, at);
  prog_store(b->p, &b->at, to, &i, 1, e);
}

/* Kind of the value of the loop: null after continue or break. */
static void end_turn(NumBuild *b, NumScope *s) {
  Prog *p = b->p;
  if (!b->to->valued) return;
  if (b->value.kind == KD_any || b->value.kind == KD_array)
    num_refuse(b, NULL, "the value of the loop is of several kinds");
  ExprId kind = ex_int(p, b->value.kind == KD_none ? KD_null : b->value.kind);
  if (s->leave) {
    ExprId stays = ex_op2(p, OP_eq, ex_var(p, s->leave), ex_int(p, EXIT_none));
    kind = ex_op3(p, OP_select, stays, kind, ex_int(p, KD_null));
  }
  put(b, b->out_int, OUT_value, kind);
}

/* A condition with statements is evaluated before the loop and at the end of each iteration. */
static void while_turns(NumBuild *b, Ast *n, NumScope *s, bool whole, NumDest *value) {
  Prog *p = b->p;
  u32 stmts = p->stmt.n - b->nhead, jumps = s->jumps;
  b->scope = s;
  ExprId cond = num_condition(b, n->a, num_expr(b, n->a));
  VarId again = 0;
  if (p->stmt.n - b->nhead != stmts) {
    again = num_var(b, DT_bool, ex_const(p, DT_bool, (Scalar){.i = 0}));
    prog_set(p, &b->at, again, cond);
    cond = ex_var(p, again);
  }
  for (u32 i = 0; i < b->to->var.n; i++)
    if (num_kind(b, &b->now, i) != num_kind(b, &s->head, i) &&
        !num_is_out_of_scope(b, i, s->frames))
      num_refuse(b, n->a, "a condition defines a variable");
  if (s->jumps != jumps) num_refuse(b, n, "a condition leaves a loop");
  Cursor after = b->at;
  prog_while(p, &b->at, stays_in(b, s, ex_op2(p, OP_and, cond, has_fuel(b, whole))));
  begin_turn(b, s);
  subtract_fuel(b, ex_int(p, 1));
  bool on = num_block(b, n->b, value);
  if (whole) end_turn(b, s);
  if (again) {
    ExprId in = stays_in(b, s, has_fuel(b, whole));
    NumKinds now = b->now;
    b->now = num_kinds_copy(b, &s->head);
    prog_if(p, &b->at, in);
    cond = num_condition(b, n->a, num_expr(b, n->a));
    prog_set(p, &b->at, again, cond);
    b->now = now;
  }
  b->at = after;
  loop_end(b, s, n, on);
}

static bool inner_while(NumBuild *b, Ast *n) {
  NumScope s = loop_begin(b, n);
  while_turns(b, n, &s, false, NULL);
  num_require(b, has_fuel(b, false));
  if (ast_exits(n->b) & 1u << EXIT_return) propagate_return(b, &s);
  return true;
}

typedef struct RangeEnds {
  VarId lo, hi;
  u32 array; /* 1 + index of the array; 0: the range itself */
} RangeEnds;

static RangeEnds ends_of(NumBuild *b, const Ast *n) {
  Prog *p = b->p;
  RangeEnds r = {prog_add_var(p, DT_i64, 0), prog_add_var(p, DT_i64, 0), 0};
  ExprId lo, hi;
  if (n->a->kind == AST_range && !n->a->to) {
    lo = num_bound(b, n->a->a);
    prog_let(p, &b->at, r.lo, lo);
    hi = num_bound(b, n->a->b);
    NumVal end = num_snapshot(b, (NumVal){.kind = KD_int, .e = hi});
    num_require(b, ex_op2(p, OP_lt, num_read(b, end), ex_int(p, NUM_END)));
    hi = num_read(b, end);
    if (n->a->op == TOK_upto) hi = ex_op2(p, OP_add, hi, ex_int(p, 1));
    prog_let(p, &b->at, r.hi, hi);
    return r;
  }
  r.array = num_array_of(b, n->a, NULL);
  if (!r.array || b->to->array.at[r.array - 1].rank > 1)
    num_refuse(b, n->a, "it does not iterate over a range");
  b->to->array.at[r.array - 1].read_as_one = true;
  prog_let(p, &b->at, r.lo, ex_int(p, 0));
  prog_let(p, &b->at, r.hi, ex_var(p, b->to->array.at[r.array - 1].n[0]));
  return r;
}

/* Sets the loop variable. It is the counter itself if the body does not assign it. */
static void set_turn(NumBuild *b, const Ast *n, u32 array, VarId i) {
  u32 v = num_var_index(b, &(VarRef){.kind = VR_local, .slot = n->slot});
  if (!array && !ast_assigns(n->b, n->slot)) {
    b->to->var.at[v].as[0] = i;
    b->to->var.at[v].fixed = true;
    b->to->var.at[v].natural = n->a->kind == AST_range && n->a->a->kind == AST_int;
    num_set_kind(b, v, KD_int);
    return;
  }
  NumVal x = {.kind = KD_int, .e = ex_var(b->p, i)};
  if (array) x = num_element(b, array, x.e);
  num_assign(b, n, v, x);
}

/* Takes the fuel for all iterations before the first. */
static void charge_iterations(NumBuild *b, const RangeEnds *r) {
  Prog *p = b->p;
  ExprId most = ex_op2(p, OP_max, ex_var(p, r->lo), ex_var(p, r->hi));
  NumVal turns = {.kind = KD_int, .e = ex_op2(p, OP_sub, most, ex_var(p, r->lo))};
  turns = num_snapshot(b, turns);
  ExprId some = ex_op2(p, OP_ge, num_read(b, turns), ex_int(p, 0));
  ExprId few = ex_op2(p, OP_le, num_read(b, turns), ex_int(p, FUEL_MAX));
  num_require(b, ex_op2(p, OP_and, some, few));
  subtract_fuel(b, num_read(b, turns));
  num_require(b, has_fuel(b, false));
}

static bool inner_for(NumBuild *b, Ast *n) {
  Prog *p = b->p;
  RangeEnds r = ends_of(b, n);
  u32 leaves = ast_exits(n->b);
  bool early = leaves & (1u << EXIT_break | 1u << EXIT_return);
  early |= b->self && ast_has_call(n->b);
  own_slots(b, n, KD_any);
  NumScope s = loop_begin(b, n);
  b->scope = &s;
  if (!early) charge_iterations(b, &r);
  Cursor after = b->at;
  VarId i;
  if (early) {
    i = prog_add_var(p, DT_i64, 0);
    prog_let(p, &b->at, i, ex_var(p, r.lo));
    after = b->at;
    ExprId more = ex_op2(p, OP_lt, ex_var(p, i), ex_var(p, r.hi));
    prog_while(p, &b->at, stays_in(b, &s, ex_op2(p, OP_and, more, has_fuel(b, false))));
    subtract_fuel(b, ex_int(p, 1));
  } else {
    ExprId lo = ex_var(p, r.lo);
    i = prog_for(p, &b->at, lo, ex_var(p, r.hi), "i");
  }
  begin_turn(b, &s);
  set_turn(b, n, r.array, i);
  bool on = num_block(b, n->b, NULL);
  if (early) prog_set(p, &b->at, i, ex_op2(p, OP_add, ex_var(p, i), ex_int(p, 1)));
  b->at = after;
  loop_end(b, &s, n, on);
  if (early) num_require(b, has_fuel(b, false));
  own_slots(b, n, KD_none);
  if (leaves & 1u << EXIT_return) propagate_return(b, &s);
  return true;
}

static NumVal now_in(NumBuild *b, u32 var, LangKind k) {
  return (NumVal){.kind = k, .e = ex_var(b->p, num_as(b, var, k))};
}

/* Stores a function in a local variable, which must not change afterwards. */
static void hold_fn(NumBuild *b, const Ast *n, u32 var, NumVal v) {
  NumVar *x = &b->to->var.at[var];
  if (x->home || (x->closure && x->closure != v.closure))
    num_refuse(b, n, "a variable is one function, then another");
  x->closure = v.closure;
  num_set_kind(b, var, KD_fn);
}

static NumVal define(NumBuild *b, Ast *n) {
  NumVal v = n->kind == AST_fn ? num_fn(b, n) : num_expr(b, n->a);
  u32 var = num_var_index(b, &(VarRef){.kind = VR_local, .slot = n->slot});
  if (var == UINT32_MAX) num_refuse(b, n, "a variable is not set");
  if (v.kind == KD_fn) {
    hold_fn(b, n, var, v);
    return v;
  }
  num_assign(b, n, var, v);
  return now_in(b, var, v.kind);
}

static NumVal change(NumBuild *b, const Ast *n) {
  if (n->a->kind == AST_index) return num_change_element(b, n);
  if (n->a->kind != AST_name) num_refuse(b, n, "the target of an assignment is not a variable");
  NumVal v = num_expr(b, n->b);
  for (u32 i = 0; i < n->a->nplace; i++) {
    if (n->a->place[i].kind == VR_self) break;
    u32 var = num_var_index(b, &n->a->place[i]);
    LangKind k = var == UINT32_MAX ? KD_none : num_kind(b, &b->now, var);
    if (k == KD_none) continue;
    if (k == KD_any) break;
    num_assign(b, n, var, v);
    return now_in(b, var, v.kind);
  }
  num_refuse(b, n, "a variable is not set");
}

/* True if only a return ends the loop. */
static bool is_endless(const Ast *n) {
  return n->kind == AST_while && n->a->kind == AST_bool && n->a->i &&
         !(ast_exits(n->b) & 1u << EXIT_break);
}

static bool control(NumBuild *b, Ast *n, NumDest *to) {
  bool ends;
  switch (n->kind) {
  case AST_if: return branch(b, n, to);
  case AST_while:
  case AST_for:
    ends = !is_endless(n);
    if (to && ends) to->kind = KD_any; /* null without iterations */
    num_nest(b, n);
    if (n->kind == AST_while)
      inner_while(b, n);
    else
      inner_for(b, n);
    b->nested--;
    return ends;
  case AST_block: return num_block(b, n, to);
  case AST_return: return return_value(b, n);
  case AST_break: return leave(b, EXIT_break);
  default: return leave(b, EXIT_continue);
  }
}

bool num_stmt(NumBuild *b, Ast *n, NumDest *to) {
  NumVal v;
  if (b->p->stmt.n > NUM_STMTS) num_refuse(b, n, "too large");
  if (++b->depth > b->to->depth) b->to->depth = b->depth;
  if (is_control(n)) {
    u32 jumps = b->scope->jumps, calls = num_rec_calls(b);
    NumDest own = {0}, *put = n->to && to ? &own : to;
    bool on = control(b, n, put);
    b->depth--;
    if (put != &own) return on;
    if (b->scope->jumps != jumps) num_refuse(b, n, "an expression leaves a loop");
    num_rec_guard(b, n, calls);
    v = num_convert(b, n, (NumVal){.kind = own.kind, .var = own.var}, n->to);
    num_put_result(b, n, to, v);
    return on;
  }
  u32 jumps = b->scope->jumps;
  b->depth--; /* num_expr counts it */
  bool names = n->kind == AST_let || (n->kind == AST_fn && n->name);
  if (names || n->kind == AST_set) {
    b->depth++;
    v = names ? define(b, n) : change(b, n);
    b->depth--;
    if (n->to) v = num_convert(b, n, v, n->to);
  } else if (n->kind == AST_call && !n->builtin && !to && !n->to) {
    v = num_call(b, n);
  } else {
    v = num_expr(b, n);
  }
  if (b->scope->jumps != jumps) num_refuse(b, n, "an expression leaves a loop");
  num_put_result(b, n, to, v);
  return true;
}

static u32 put_number(NumBuild *b, LangKind k, VarId v) {
  ExprId e = ex_var(b->p, v);
  if (k == KD_bool) e = ex_cast(b->p, DT_i64, e, false);
  u32 at = k == KD_float ? b->to->nfloat_out++ : b->to->nint_out++;
  put(b, k == KD_float ? b->out_float : b->out_int, at, e);
  return at;
}

static void put_variables(NumBuild *b) {
  static const LangKind kinds[NUM_KINDS] = {KD_int, KD_float, KD_bool};
  for (u32 i = 0; i < b->to->var.n; i++) {
    NumVar *v = &b->to->var.at[i];
    if (!v->home || !v->changed) continue;
    for (u32 k = 0; k < NUM_KINDS; k++)
      if (v->as[k]) v->out[k] = put_number(b, kinds[k], v->as[k]);
    if (v->tag) v->out_tag = put_number(b, KD_int, v->tag);
  }
}

static BufId numbers(NumBuild *b, BufSpace space, DType dt, const char *name) {
  Dim one = 1;
  return prog_add_buf(b->p, space, dt, &one, 1, str_of(b->c, name));
}

static VarId given_int(NumBuild *b, u32 at) {
  ExprId i = ex_int(b->p, at);
  return num_var(b, DT_i64, ex_load(b->p, b->in_int, &i, 1));
}

static void whole_for(NumBuild *b, Ast *n, u32 array, NumScope *s) {
  Prog *p = b->p;
  VarId i = given_int(b, IN_at), end = given_int(b, IN_end);
  own_slots(b, n, KD_any);
  *s = loop_begin(b, n);
  b->scope = s;
  Cursor after = b->at;
  VarId at = i;
  bool plain = !s->leave && !ast_has_loop(n->b);
  if (plain) { /* number of iterations the fuel allows */
    VarId stop = prog_add_var(p, DT_i64, 0);
    ExprId left = ex_op2(p, OP_sub, ex_var(p, end), ex_var(p, i));
    ExprId turns = ex_op2(p, OP_min, left, ex_var(p, b->fuel));
    prog_let(p, &b->at, stop, ex_op2(p, OP_add, ex_var(p, i), turns));
    subtract_fuel(b, ex_op2(p, OP_sub, ex_var(p, stop), ex_var(p, i)));
    after = b->at;
    ExprId lo = ex_var(p, i);
    at = prog_for(p, &b->at, lo, ex_var(p, stop), "i");
    set_turn(b, n, array, at);
    bool on = num_block(b, n->b, b->to->valued ? &b->value : NULL);
    end_turn(b, s);
    b->at = after;
    prog_set(p, &b->at, i, ex_var(p, stop));
    loop_end(b, s, n, on);
  } else {
    ExprId more = ex_op2(p, OP_lt, ex_var(p, i), ex_var(p, end));
    prog_while(p, &b->at, stays_in(b, s, ex_op2(p, OP_and, more, has_fuel(b, true))));
    begin_turn(b, s);
    subtract_fuel(b, ex_int(p, 1));
    set_turn(b, n, array, at);
    bool on = num_block(b, n->b, b->to->valued ? &b->value : NULL);
    end_turn(b, s);
    prog_set(p, &b->at, i, ex_op2(p, OP_add, ex_var(p, i), ex_int(p, 1)));
    b->at = after;
    loop_end(b, s, n, on);
  }
  put(b, b->out_int, OUT_at, ex_var(p, i));
  ExprId over = ex_op2(p, OP_ge, ex_var(p, i), ex_var(p, end));
  put(b, b->out_int, OUT_over, ex_cast(p, DT_i64, over, false));
}

/* Out of fuel: the condition must not be evaluated twice, because it may have side effects. */
static void whole_while(NumBuild *b, Ast *n, NumScope *s) {
  Prog *p = b->p;
  *s = loop_begin(b, n);
  while_turns(b, n, s, true, b->to->valued ? &b->value : NULL);
  put(b, b->out_int, OUT_at, ex_int(p, 0));
  put(b, b->out_int, OUT_over, ex_cast(p, DT_i64, has_fuel(b, true), false));
}

/* Creates the number buffers and the fuel. */
static void open_program(NumBuild *b, const char *name) {
  b->p = prog_new(b->c, dims_new(b->c));
  NumLoop *to = b->to;
  b->p->name = str_of(b->c, name);
  b->head = b->at = prog_end();
  to->nint = IN_ints;
  to->nint_out = OUT_ints;
  to->nfloat_out = OUT_floats;
  b->in_int = numbers(b, BS_in, DT_i64, "ints");
  b->in_float = numbers(b, BS_in, DT_f64, "floats");
  b->out_int = numbers(b, BS_out, DT_i64, "new_ints");
  b->out_float = numbers(b, BS_out, DT_f64, "new_floats");
  b->fuel = given_int(b, IN_fuel);
}

/* Sets the final buffer sizes. */
static void close_program(NumBuild *b) {
  NumLoop *to = b->to;
  Prog *p = b->p;
  if (!to->nfloat) to->nfloat = 1;
  prog_buf(p, b->in_int)->dim[0] = (Dim)to->nint;
  prog_buf(p, b->in_float)->dim[0] = (Dim)to->nfloat;
  prog_buf(p, b->out_int)->dim[0] = (Dim)to->nint_out;
  prog_buf(p, b->out_float)->dim[0] = (Dim)to->nfloat_out;
}

/* The called function with its captures, which are in its variables. */
static u32 taken_along(NumBuild *b, const LangFn *fn) {
  u32 number = num_closure(b, fn);
  for (u32 i = 0; i < fn->capture.n; i++) {
    u32 v = num_var_index(b, &(VarRef){.kind = VR_local, .slot = fn->capture.at[i].slot});
    LangKind k = v == UINT32_MAX ? KD_none : num_kind(b, &b->now, v);
    NumVal x = {.kind = k};
    if (num_is_number(k))
      x.var = num_as(b, v, k);
    else if (k != KD_none)
      x = num_value(b, fn->ast, v);
    b->closure.at[number - 1].with[i] = x;
  }
  return number;
}

void num_function(NumBuild *b, Ast *n) {
  NumVal arg[REC_ARGS];
  NumScope outer = {.result = &b->result};
  if (n->nkid > REC_ARGS) num_refuse(b, n, "a function with many arguments");
  open_program(b, "function");
  b->at = prog_end();
  b->scope = &outer;
  for (u32 i = 0; i < n->nkid; i++) {
    u32 v = num_var_index(b, &(VarRef){.kind = VR_local, .slot = n->kid[i]->slot});
    LangKind k = v == UINT32_MAX ? KD_none : num_kind(b, &b->now, v);
    if (!num_is_number(k)) num_refuse(b, n->kid[i], "an argument is not a number");
    arg[i] = (NumVal){.kind = k, .var = num_as(b, v, k)};
  }
  NumVal out = num_recursion(b, n, taken_along(b, n->fn), arg);
  put(b, b->out_int, OUT_value, ex_int(b->p, KD_none));
  put(b, b->out_int, OUT_at, ex_int(b->p, 0));
  put(b, b->out_int, OUT_over, ex_int(b->p, 1));
  put(b, b->out_int, OUT_leave, ex_int(b->p, EXIT_return));
  put(b, b->out_int, OUT_fuel, ex_var(b->p, b->fuel));
  b->to->result = out.kind;
  b->to->result_out = put_number(b, out.kind, out.var);
  close_program(b);
}

void num_loop(NumBuild *b, Ast *n, const ListObj *over) {
  NumLoop *to = b->to;
  open_program(b, "loop");
  Prog *p = b->p;
  to->valued = !n->dropped;
  NumShape shape = {.kind = KD_none};
  if (over) shape = num_shape(over);
  u32 array = shape.kind != KD_none && shape.rank == 1 ? num_array(b, &shape) : 0;
  if (over && !array) num_refuse(b, n, "it does not iterate over an array of numbers");
  to->over = over != NULL;
  b->at = prog_end();
  put(b, b->out_int, OUT_value, ex_int(p, KD_none));
  NumScope s = {.result = &b->result}, outer = {.result = &b->result};
  b->scope = &outer;
  if (n->kind == AST_for)
    whole_for(b, n, array, &s);
  else
    whole_while(b, n, &s);
  put(b, b->out_int, OUT_leave, s.leave ? ex_var(p, s.leave) : ex_int(p, 0));
  put(b, b->out_int, OUT_fuel, ex_var(p, b->fuel));
  put_variables(b);
  num_copy_arrays(b);
  if (b->value.var) to->value_out = put_number(b, b->value.kind, b->value.var);
  if (b->result.var) to->result_out = put_number(b, b->result.kind, b->result.var);
  to->result = b->result.kind;
  if (to->result == KD_any || to->result == KD_array)
    num_refuse(b, n, "a return has several kinds");
  to->value = b->value.kind;
  close_program(b);
}
