/* scalar_call.c: calls and function values in a compiled loop. See scalar.h.
 *
 * Calls are inlined; recursive functions become loops (scalar_recursion.c). The function in a
 * variable is known at every call, so functions can be arguments. A captured number, array or
 * function is a parameter of the call.
 */
#include "lang/run/scalar.h"

/* ---- functions as values ---- */

u32 num_closure(NumBuild *b, const LangFn *fn) {
  NumClosure *c = vec_push(b->a, &b->closure);
  *c = (NumClosure){fn, NEWS(b->a, NumVal, fn->capture.n + 1)};
  return b->closure.n;
}

/* Copies the value to a variable that does not change. */
static NumVal keep(NumBuild *b, NumVal v) {
  if (!num_is_number(v.kind)) return v;
  DType dt = num_dtype(v.kind);
  Scalar none = {.i = 0};
  if (v.kind == KD_float) none.f = 0;
  VarId t = num_var(b, dt, ex_const(b->p, dt, none));
  prog_set(b->p, &b->at, t, num_read(b, v));
  return (NumVal){.kind = v.kind, .var = t};
}

NumVal num_fn(NumBuild *b, Ast *n) {
  u32 number = num_closure(b, n->fn);
  for (u32 i = 0; i < n->fn->capture.n; i++) {
    const Capture *c = &n->fn->capture.at[i];
    const Ast name = {
        .kind = AST_name, .file = n->file, .at = n->at, .place = c->from, .nplace = c->nfrom};
    if (c->nfrom && c->from[0].kind == VR_self) num_refuse(b, n, "a function is a value");
    NumVal v = keep(b, num_value(b, &name, num_find_var(b, &name)));
    if (v.kind == KD_array) b->to->array.at[v.array - 1].read_as_one = true;
    b->closure.at[number - 1].with[i] = v;
  }
  return (NumVal){.kind = KD_fn, .closure = number};
}

void num_captures(NumBuild *b, const Ast *at, u32 frame, u32 closure) {
  const LangFn *fn = b->closure.at[closure - 1].fn;
  for (u32 i = 0; i < fn->capture.n; i++) {
    NumVal v = b->closure.at[closure - 1].with[i];
    if (v.kind != KD_none) num_parameter(b, at, frame, fn->capture.at[i].slot, v);
  }
}

static u32 called(NumBuild *b, const Ast *n) {
  for (u32 i = 0; i < n->nplace; i++) {
    if (n->place[i].kind == VR_self) {
      if (b->self && b->frame == b->self->frame) return b->self->member[b->self->now].closure;
      break;
    }
    u32 v = num_var_index(b, &n->place[i]);
    LangKind k = v == UINT32_MAX ? KD_none : num_kind(b, &b->now, v);
    if (k == KD_fn) return b->to->var.at[v].closure;
    if (k != KD_none) break;
  }
  num_refuse(b, n, "the called value is not a function of the program");
}

void num_parameter(NumBuild *b, const Ast *at, u32 frame, u32 slot, NumVal v) {
  u32 mine = b->frame;
  b->frame = frame;
  u32 var = num_var_index(b, &(VarRef){.kind = VR_local, .slot = slot});
  if (v.kind == KD_array) {
    b->to->var.at[var].array = v.array;
    b->to->array.at[v.array - 1].read_as_one = true;
    num_set_kind(b, var, KD_array);
  } else if (v.kind == KD_fn) {
    b->to->var.at[var].closure = v.closure;
    num_set_kind(b, var, KD_fn);
  } else {
    num_assign(b, at, var, v);
  }
  b->frame = mine;
}

/* True if only the last statement returns. */
static bool returns_last(const Ast *body) {
  for (u32 i = 0; i + 1 < body->nkid; i++)
    if (ast_exits(body->kid[i])) return false;
  return !body->nkid || body->kid[body->nkid - 1]->kind == AST_return ||
         !ast_exits(body->kid[body->nkid - 1]);
}

/* True if the array has the wanted type without conversion. */
static bool array_fits(const NumArray *a, const LangType *t) {
  for (u32 i = 0; i < a->rank && t->kind != KD_any; i++) {
    if (t->kind != KD_array) return false;
    t = t->elem;
  }
  return t->kind == KD_any || t->kind == a->kind;
}

/* An argument, converted to the parameter type. */
static NumVal argument(NumBuild *b, const Ast *n, const LangFn *f, u32 i) {
  const LangType *t = f->self.item[i];
  NumVal v = num_expr(b, n->kid[i]);
  if (v.kind == KD_array && !array_fits(&b->to->array.at[v.array - 1], t))
    num_refuse(b, n, "an array becomes another");
  if (v.kind == KD_array || (v.kind == KD_fn && (t->kind == KD_fn || t->kind == KD_any))) return v;
  return t->kind == KD_any ? v : num_convert(b, n, v, t);
}

/* A call of a function that is directly or indirectly recursive. */
static NumVal call_self(NumBuild *b, const Ast *n, u32 closure, bool member) {
  NumVal arg[REC_ARGS];
  const LangFn *f = b->closure.at[closure - 1].fn;
  if (n->nkid > REC_ARGS) num_refuse(b, n, "a function calls itself");
  for (u32 i = 0; i < n->nkid; i++) arg[i] = num_snapshot(b, argument(b, n, f, i));
  return member ? num_rec_call(b, n, closure, arg) : num_recursion(b, n, closure, arg);
}

NumVal num_call(NumBuild *b, Ast *n) {
  u32 closure = called(b, n->a);
  const LangFn *f = b->closure.at[closure - 1].fn;
  NumDest out = {.floats = f->result->kind == KD_float};
  NumScope s = {.outer = b->scope, .fn = f, .result = &out};
  if (n->nkid != f->ast->nkid) num_refuse(b, n, "a call has other arguments");
  bool member = num_rec_has(b, f);
  if (member || fn_reaches(b->ev, f, f)) return call_self(b, n, closure, member);
  u32 frame = ++b->nframe, mine = b->frame;
  for (const NumScope *o = b->scope; o; o = o->outer)
    if (o->fn == f) num_refuse(b, n, "functions call each other");
  for (u32 i = 0; i < n->nkid; i++)
    num_parameter(b, n, frame, f->ast->kid[i]->slot, argument(b, n, f, i));
  num_captures(b, n, frame, closure);
  if (!returns_last(f->ast->a)) {
    s.leave = num_var(b, DT_i64, ex_int(b->p, 0));
    prog_set(b->p, &b->at, s.leave, ex_int(b->p, EXIT_none));
  }
  b->frame = frame;
  b->scope = &s;
  u32 nested = b->nested, calls = num_rec_calls(b);
  num_nest(b, n);
  if (++b->depth > b->to->depth) b->to->depth = b->depth;
  num_block(b, f->ast->a, &out);
  b->depth--;
  b->nested = nested;
  b->scope = s.outer;
  b->frame = mine;
  num_rec_guard(b, n, calls);
  return (NumVal){.kind = out.kind == KD_none ? KD_null : out.kind, .var = out.var};
}
