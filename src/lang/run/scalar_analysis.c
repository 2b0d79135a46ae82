/* scalar_analysis.c: static analysis of an AST before compilation. See scalar.h. */
#include "lang/run/scalar.h"

/* Number of children, in evaluation order; some are NULL. */
static u32 parts(const Ast *n) {
  return 3 + n->nkid;
}

static Ast *part(const Ast *n, u32 i) {
  return i >= 3 ? n->kid[i - 3] : i == 0 ? n->a : i == 1 ? n->b : n->c;
}

typedef bool AstPredicate(const Ast *n, const void *with);

static bool any_of(const Ast *n, AstPredicate *holds, const void *with) {
  for (u32 i = 0; i < parts(n); i++)
    if (part(n, i) && holds(part(n, i), with)) return true;
  return false;
}

static bool is_impure(const Ast *n, const void *with) {
  (void)with;
  return !ast_is_pure(n);
}

bool ast_is_pure(const Ast *n) {
  switch (n->kind) {
  case AST_call:
    if (!n->builtin) return false;
    for (u32 i = 0; i < n->nkid; i++)
      if (!ast_is_pure(n->kid[i])) return false;
    return true;
  case AST_int:
  case AST_float:
  case AST_bool:
  case AST_name:
  case AST_unary:
  case AST_binary:
  case AST_cast:
  case AST_index:
  case AST_named: return !any_of(n, is_impure, NULL);
  default: return false;
  }
}

static bool may_fail(const Ast *n, const void *with) {
  bool divides = n->kind == AST_binary && (n->op == TOK_div || n->op == TOK_mod);
  return divides || n->kind == AST_call || n->kind == AST_index || any_of(n, may_fail, with);
}

bool ast_cannot_fail(const Ast *n) {
  return ast_is_pure(n) && !may_fail(n, NULL);
}

u32 ast_exits(const Ast *n) {
  u32 r = 0;
  switch (n->kind) {
  case AST_fn: return 0;
  case AST_break: return 1u << EXIT_break;
  case AST_continue: return 1u << EXIT_continue;
  case AST_return: return 1u << EXIT_return;
  case AST_for:
  case AST_while: return ast_exits(n->b) & 1u << EXIT_return;
  default: break;
  }
  for (u32 i = 0; i < parts(n); i++)
    if (part(n, i)) r |= ast_exits(part(n, i));
  return r;
}

static bool is_call(const Ast *n) {
  return n->kind == AST_call && !n->builtin;
}

static bool has_call(const Ast *n, const void *with) {
  return is_call(n) || any_of(n, has_call, with);
}

bool ast_has_call(const Ast *n) {
  return has_call(n, NULL);
}

static bool has_loop(const Ast *n, const void *with) {
  return n->kind == AST_for || n->kind == AST_while || is_call(n) || any_of(n, has_loop, with);
}

/* Calls count, because a function may contain a loop. */
bool ast_has_loop(const Ast *n) {
  return has_loop(n, NULL);
}

void ast_defines(Arena *a, const Ast *n, NumSlots *to) {
  if (n->kind == AST_fn && n->name) *vec_push(a, to) = n->slot;
  if (n->kind == AST_fn || n->kind == AST_for) return;
  if (n->kind == AST_let) *vec_push(a, to) = n->slot;
  for (u32 i = 0; i < parts(n); i++)
    if (part(n, i)) ast_defines(a, part(n, i), to);
}

static bool assigns(const Ast *n, const void *with) {
  u32 slot = *(const u32 *)with;
  if (n->kind == AST_let && n->slot == slot) return true;
  if (n->kind == AST_set)
    for (u32 i = 0; i < n->a->nplace; i++)
      if (n->a->place[i].kind == VR_local && n->a->place[i].slot == slot) return true;
  return any_of(n, assigns, with);
}

bool ast_assigns(const Ast *n, u32 slot) {
  return assigns(n, &slot);
}

/* ---- call graph ---- */

/* Depth limit of the search, for the stack. Deeper call chains are too deep for a Prog, too. */
enum { CALL_DEPTH = 200 };

typedef struct CallSearch {
  Eval *ev;
  LangFn *in;
  const LangFn *to;
  u32 deep;
} CallSearch;

/* The current function of a name, or NULL if unknown. */
static LangFn *callee_of(Eval *ev, LangFn *in, const Ast *name) {
  for (u32 i = 0; name->kind == AST_name && i < name->nplace; i++) {
    const VarRef *p = &name->place[i];
    if (p->kind == VR_self) return in;
    const Locals *l = p->kind == VR_global ? ev->file[p->file] : NULL;
    if (l && p->slot < l->n && l->at[p->slot].kind == KD_fn) return l->at[p->slot].u.fn->fn;
  }
  return NULL;
}

static bool reaches(const Ast *n, const void *with) {
  CallSearch s = *(const CallSearch *)with;
  if (n->kind == AST_fn && n->fn) s.in = n->fn;
  LangFn *f = is_call(n) ? callee_of(s.ev, s.in, n->a) : NULL;
  if (f && f == s.to) return true;
  if (any_of(n, reaches, &s)) return true;
  if (!f || f->scanned == s.ev->scans || s.deep++ == CALL_DEPTH) return false;
  f->scanned = s.ev->scans;
  s.in = f;
  return reaches(f->ast->a, &s);
}

bool fn_reaches(Eval *ev, const LangFn *from, const LangFn *to) {
  CallSearch s = {ev, from->ast->fn, to, 0};
  ev->scans++;
  return reaches(from->ast->a, &s);
}

/* True if n, in f, calls another function that calls f. */
static bool calls_back(const Ast *n, const void *with) {
  CallSearch s = *(const CallSearch *)with;
  const LangFn *f = is_call(n) ? callee_of(s.ev, s.in, n->a) : NULL;
  return (f && f != s.to && fn_reaches(s.ev, f, s.to)) || any_of(n, calls_back, with);
}

bool fn_in_cycle(Eval *ev, const LangFn *f) {
  CallSearch s = {ev, f->ast->fn, f, 0};
  return calls_back(f->ast->a, &s);
}

/* ---- loops with unused values ---- */

static void mark(Ast *n, bool wanted) {
  switch (n->kind) {
  case AST_block:
    for (u32 i = 0; i < n->nkid; i++) mark(n->kid[i], wanted && i + 1 == n->nkid);
    return;
  case AST_if:
    mark(n->a, true);
    mark(n->b, wanted);
    if (n->c) mark(n->c, wanted);
    return;
  case AST_for:
  case AST_while:
    n->dropped = !wanted;
    mark(n->a, true);
    mark(n->b, wanted);
    return;
  default:
    for (u32 i = 0; i < parts(n); i++)
      if (part(n, i)) mark(part(n, i), true);
  }
}

void loops_mark_unused(Script *s) {
  mark(s->root, false);
}
