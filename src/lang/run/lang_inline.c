/* lang_inline.c: expands calls of small functions; see lang_lower.h.
 *
 * In: a call of a name. Out: the instructions of the function that it probably calls, by static
 * type or as an argument of an expanded call, in separate variables, and a plain call:
 *
 *       enter f, row -> body    if f is that function, and its values have the expected kinds
 *       call
 *       jump end
 *   body:
 *       ...
 *   end:
 *
 * The prediction needs no proof, because `enter` tests it. Careful code always calls. Expanded are
 * functions of few nodes that define nothing, change no arrays in their own variables, and call
 * only functions that are expanded, too; so no recursion is expanded.
 */
#include "lang/run/lang_lower.h"

enum { LEVELS = 4, SMALL = 60, WITH_FUNCTION = 200 /* nodes */ };

/* A function that may be expanded. */
typedef struct Look {
  Arena *a;
  const CallExpansion *in;
  u32 nslot, nodes, most;
  LangKind *kind; /* by slot: the number that reads of it promise, or KD_any */
  bool *set;      /* by slot */
  bool returns, takes_function;
} Look;

/* The function that n probably is, or NULL. in: where n is evaluated. */
static const LangFn *predict(const CallExpansion *in, const Ast *n) {
  while (n->kind == AST_named) n = n->a;
  if (n->kind == AST_fn) return n->fn;
  if (n->kind != AST_name || n->nplace != 1 || n->place->kind == VR_self) return NULL;
  if (in && n->place->kind == VR_local && n->place->slot < in->fn->ast->nkid)
    if (in->arg[n->place->slot]) return in->arg[n->place->slot];
  return n->type && n->type->kind == KD_fn ? n->type->fn : NULL;
}

static bool fits(Look *k, const Ast *n);

/* Fills in the expansion of call n, except for its registers. False: it is called. */
static bool look_at(Look *k, const CallExpansion *outer, const Ast *n, CallExpansion *x) {
  const LangFn *fn = n->a->kind == AST_name && !n->a->to ? predict(outer, n->a) : NULL;
  u32 level = outer ? outer->level + 1 : 1, nparam = n->nkid;
  if (!fn || level > LEVELS || fn->ast->nkid != nparam || fn->nslot > INLINE_VARS) return false;
  for (const CallExpansion *e = outer; e; e = e->outer)
    if (e->fn == fn) return false;
  k->nslot = fn->nslot > nparam ? fn->nslot : nparam;
  k->most = k->nodes + SMALL;
  k->kind = NEWS(k->a, LangKind, k->nslot + 1);
  k->set = NEWS(k->a, bool, k->nslot + 1);
  for (u32 i = 0; i < k->nslot; i++) k->kind[i] = KD_any;
  const LangFn **arg = NEWS(k->a, const LangFn *, nparam + 1);
  for (u32 i = 0; i < nparam; i++) {
    arg[i] = predict(outer, n->kid[i]);
    k->takes_function |= arg[i] != NULL;
    if (fn->ast->kid[i]->slot != i) return false; /* two of the same name */
    if (param_kind(fn->self.item[i]) == KD_any) return false;
  }
  if (k->takes_function) k->most = k->nodes + WITH_FUNCTION;
  *x = (CallExpansion){.outer = (CallExpansion *)outer, .fn = fn, .arg = arg, .level = level};
  k->in = x;
  if (!fits(k, fn->ast->a)) return false;
  for (u32 i = 0; i < nparam; i++) k->kind[i] = param_kind(fn->self.item[i]);
  return true;
}

static bool fits_name(Look *k, const Ast *n) {
  if (n->nplace != 1 || n->place->kind == VR_self) return false;
  if (n->place->kind == VR_local && n->place->slot < k->nslot && ast_kind(n) != KD_any)
    k->kind[n->place->slot] = ast_kind(n);
  return true;
}

/* lvalue_place() finds variables of files only. */
static bool fits_target(Look *k, const Ast *n) {
  bool element = n->kind != AST_name;
  while (n->kind == AST_index || (n->kind == AST_member && !n->nplace)) n = n->a;
  if (n->kind != AST_name || n->nplace != 1) return false;
  if (n->place->kind == VR_local && n->place->slot < k->nslot) k->set[n->place->slot] = true;
  return n->place->kind == VR_global || (n->place->kind == VR_local && !element);
}

static bool fits_call(Look *k, const Ast *n) {
  if (n->builtin) return !ast_is_user_call(n) && !ast_is_change(n);
  Look inner = {.a = k->a, .nodes = k->nodes};
  CallExpansion x;
  if (!look_at(&inner, k->in, n, &x)) return false;
  k->nodes = inner.nodes;
  return true;
}

/* True if the instructions of n depend only on registers that the expansion replaces. */
static bool fits(Look *k, const Ast *n) {
  if (++k->nodes > k->most || (n->to && !kind_is_number(n->to->kind))) return false;
  switch (n->kind) {
  case AST_fn:
  case AST_model:
  case AST_import:
  case AST_struct: return false;
  case AST_name: return fits_name(k, n);
  case AST_member:
    if (n->nplace) return fits_name(k, n);
    break;
  case AST_set:
    if (!fits_target(k, n->a)) return false;
    break;
  case AST_call:
    if (!fits_call(k, n)) return false;
    break;
  case AST_return: k->returns = true; break;
  case AST_while:
  case AST_for: /* next to the loop the call costs little */
    if (!k->takes_function) return false;
    break;
  case AST_arm: return fits(k, n->b);
  default: break;
  }
  for (u32 i = n->kind == AST_call; i < ast_parts(n); i++)
    if (ast_part(n, i) && !fits(k, ast_part(n, i))) return false;
  return true;
}

/* Adds the row of `enter`. */
static u32 add_row(Lowering *l, const CallExpansion *x, const Look *k) {
  const LangFn *fn = x->fn;
  CodeExpansion *e = vec_push(l->a, &l->code->expanded);
  KindOf *test = NEWS(l->a, KindOf, k->nslot + 1), *with = NEWS(l->a, KindOf, fn->capture.n + 1);
  u32 *unset = NEWS(l->a, u32, k->nslot + 1);
  *e = (CodeExpansion){.fn = fn, .test = test, .with = with, .unset = unset, .level = x->level};
  for (u32 i = 0; i < fn->ast->nkid; i++)
    if (k->kind[i] != KD_none && known_kind(l, x->param[i]) != k->kind[i])
      test[e->ntest++] = (KindOf){x->param[i], k->kind[i]};
  bool numbers = true;
  for (; e->nwith < fn->capture.n; e->nwith++) {
    u32 slot = fn->capture.at[e->nwith].slot;
    with[e->nwith] = (KindOf){x->first + slot, k->kind[slot]};
    numbers &= kind_is_number(k->kind[slot]);
  }
  for (u32 i = fn->ast->nkid; i < k->nslot; i++) {
    u32 c = 0;
    while (c < fn->capture.n && fn->capture.at[c].slot != i) c++;
    if (c == fn->capture.n) unset[e->nunset++] = x->first + i;
  }
  e->plain = numbers && !e->ntest && !e->nunset;
  return l->code->expanded.n - 1;
}

/* Evaluates the arguments into the variables of x, or finds variables that hold them. */
static void arguments(Lowering *l, const Ast *n, CallExpansion *x, const Look *k) {
  u32 *param = NEWS(l->a, u32, n->nkid + 1);
  x->param = param;
  for (u32 i = 0; i < k->nslot; i++) {
    l->direct[x->first + i] = true;
    known_set(l, x->first + i, KD_none);
  }
  for (u32 i = 0; i < n->nkid; i++) {
    param[i] = x->first + i;
    known_direct(l, x->first + i, x->fn->self.item[i]->kind);
  }
  for (u32 i = 0; i < x->fn->capture.n; i++)
    known_direct(l, x->first + x->fn->capture.at[i].slot, k->kind[x->fn->capture.at[i].slot]);
  l->into = x;
  known_direct_assigned(l, x->fn->ast->a);
  l->into = x->outer;
  for (u32 i = 0; i < n->nkid; i++) {
    Ast *arg = n->kid[i];
    i64 v = arg->to || k->set[i] ? -1 : code_plain(l, arg);
    bool stays = v >= 0 && !known_shared(l, (u32)v);
    for (u32 j = i + 1; stays && j < n->nkid; j++) stays = !ast_changes(n->kid[j]);
    if (stays)
      param[i] = code_variable(l, arg, (u32)v).reg;
    else
      code_define(l, x->first + i, arg);
  }
}

/* The call if the function is another one. */
static void call(Lowering *l, const Ast *n, const CallExpansion *x, u32 to) {
  u32 top = l->top, base = code_temp(l);
  const LangType *t = n->type;
  for (u32 i = 0; i < n->nkid; i++) {
    bool own = x->param[i] == x->first + i;
    code_emit(l, own ? CO_set : CO_move, code_temp(l), x->param[i], 0, n->kid[i]);
  }
  code_into(l, n->a, base);
  code_call(l, n, base, false);
  if (to == NOWHERE)
    code_emit(l, CO_drop, base, 1, 0, n);
  else
    code_emit(l, CO_set, to, base, 0, n);
  if (to != NOWHERE && t && kind_is_number(t->kind)) code_emit(l, CO_check, to, t->kind, 0, n);
  l->top = top;
}

/* Instructions that may leave the kind of a result open since `from`. */
static bool may_deoptimize(const Lowering *l, u32 from) {
  for (u32 i = from; i < l->ins.n; i++) {
    u32 op = l->ins.at[i].op;
    if (op == CO_check || op == CO_global_n || (op >= CO_index && op <= CO_gindex_b)) return true;
  }
  return false;
}

static void result(Lowering *l, const Ast *n, CallExpansion *x, LangKind k) {
  if (l->dead) return;
  if (x->fn->result->kind == KD_float && x->dst != NOWHERE) {
    if (k != KD_float || may_deoptimize(l, x->from)) code_emit(l, CO_floated, x->dst, 0, 0, n);
    if (k == KD_int) k = KD_float;
  }
  x->kind = x->kind == KD_none ? k : kind_meet(x->kind, k);
}

void inline_return(Lowering *l, Ast *n) {
  CallExpansion *x = l->into;
  LangKind k = KD_any;
  if (n->a)
    k = code_into(l, n->a, x->dst);
  else if (x->dst != NOWHERE)
    code_emit(l, CO_null, x->dst, 0, 0, n);
  result(l, n, x, k);
  code_drop_temps(l, x->temps);
  *vec_push(l->a, &x->returns) = code_emit(l, CO_jump, 0, 0, 0, n);
  l->dead = true;
}

static void drop_variables(Lowering *l, const CallExpansion *x, u32 nslot) {
  u32 from = nslot, to = 0;
  for (u32 i = 0; i < nslot; i++) {
    bool alias = i < x->fn->ast->nkid && x->param[i] != x->first + i;
    if (alias || l->direct[x->first + i]) continue;
    if (from > i) from = i;
    to = i + 1;
  }
  if (from < to) code_emit(l, CO_drop, x->first + from, to - from, 0, NULL);
}

/* The value of the body is written by its last instruction. */
static bool writes_last(const Ast *body) {
  if (body->nkid != 1) return false;
  AstKind k = body->kid[0]->kind;
  return k > AST_struct && k != AST_match;
}

static void know_as(Lowering *l, u32 slot, LangKind k) {
  if (!kind_is_number(known_kind(l, slot))) known_set(l, slot, kind_is_number(k) ? k : KD_any);
}

bool inline_call(Lowering *l, Ast *n, u32 dst, LangKind *kind) {
  CallExpansion x;
  Look k = {.a = l->a};
  if (l->ev->careful || l->ev->native || l->dead || !look_at(&k, l->into, n, &x)) return false;
  const Ast *body = x.fn->ast->a;
  if (!l->in && !l->loop && !l->into && !k.takes_function) return false; /* it runs once */
  if (l->var + k.nslot > l->nslot + INLINE_VARS || l->expanded + k.nodes > INLINE_NODES)
    return false;
  u32 top = l->top, f;
  x.first = l->var;
  x.loop = l->loop;
  l->expanded += k.nodes;
  l->var += k.nslot;
  if (l->nvar < l->var) l->nvar = l->var;
  arguments(l, n, &x, &k);
  bool apart = dst != NOWHERE && dst < TEMP && !(writes_last(body) && !k.returns);
  x.dst = apart ? code_temp(l) : dst;

  i64 slot = code_plain(l, n->a);
  if (slot >= 0)
    f = code_emit(l, CO_enter, code_variable(l, n->a, (u32)slot).reg, add_row(l, &x, &k), 0, n);
  else
    f = code_emit(l, CO_genter, n->a->place->file << 24 | n->a->place->slot, add_row(l, &x, &k), 0,
                  n);
  u32 mark = l->log.n, calls = l->calls;
  call(l, n, &x, x.dst);
  u32 end = code_emit(l, CO_jump, 0, 0, 0, n), last = l->calls;
  code_patch(l, f, l->ins.n);
  l->calls = calls;
  known_undo(l, mark);

  l->into = &x;
  l->loop = NULL;
  x.temps = l->top;
  x.from = l->ins.n;
  for (u32 i = 0; i < n->nkid; i++) know_as(l, x.param[i], k.kind[i]);
  for (u32 i = 0; i < x.fn->capture.n; i++)
    know_as(l, x.first + x.fn->capture.at[i].slot, k.kind[x.fn->capture.at[i].slot]);
  result(l, n, &x, code_block(l, body, x.dst));
  for (u32 i = 0; i < x.returns.n; i++) code_patch(l, x.returns.at[i], l->ins.n);
  drop_variables(l, &x, k.nslot);
  code_patch(l, end, l->ins.n);
  known_undo(l, mark); /* the call meets here: what `enter` tested need not hold */
  l->dead = false;
  l->calls = (l->calls > last ? l->calls : last) + 1;
  l->into = x.outer;
  l->loop = x.loop;
  l->var = x.first;
  if (apart) code_emit(l, CO_set, dst, x.dst, 0, n);
  l->top = top;
  *kind = n->type && n->type->kind == x.kind && kind_is_number(x.kind) ? x.kind : KD_any;
  return true;
}
