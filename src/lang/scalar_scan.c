/* scalar_scan.c: what can be seen of a tree before it is compiled. See scalar.h. */
#include "lang/scalar.h"

static bool all_of(const Ast *n, bool (*holds)(const Ast *n)) {
  bool ok = (!n->a || n->builtin || holds(n->a)) && (!n->b || holds(n->b));
  for (u32 i = 0; ok && i < n->nkid; i++) ok = holds(n->kid[i]);
  return ok;
}

bool scan_is_pure(const Ast *n) {
  switch (n->kind) {
  case AST_call:
    if (!n->builtin) return false;
    break;
  case AST_int:
  case AST_float:
  case AST_bool:
  case AST_name:
  case AST_unary:
  case AST_binary:
  case AST_cast:
  case AST_index:
  case AST_named: break;
  default: return false;
  }
  return all_of(n, scan_is_pure);
}

bool scan_is_quiet(const Ast *n) {
  if (!scan_is_pure(n) || n->kind == AST_call || n->kind == AST_index) return false;
  if (n->kind == AST_binary && (n->op == TOK_div || n->op == TOK_mod)) return false;
  return all_of(n, scan_is_quiet);
}

u32 scan_leaves(const Ast *n) {
  u32 r = 0;
  switch (n->kind) {
  case AST_fn: return 0;
  case AST_break: return 1u << LEAVE_loop;
  case AST_continue: return 1u << LEAVE_turn;
  case AST_return: return 1u << LEAVE_call;
  case AST_for:
  case AST_while: return scan_leaves(n->b) & 1u << LEAVE_call;
  default: break;
  }
  if (n->a) r |= scan_leaves(n->a);
  if (n->b) r |= scan_leaves(n->b);
  if (n->c) r |= scan_leaves(n->c);
  for (u32 i = 0; i < n->nkid; i++) r |= scan_leaves(n->kid[i]);
  return r;
}

/* Calls count: a function may have one. */
bool scan_has_loop(const Ast *n) {
  if (n->kind == AST_for || n->kind == AST_while || (n->kind == AST_call && !n->builtin))
    return true;
  bool r = (n->a && scan_has_loop(n->a)) || (n->b && scan_has_loop(n->b)) ||
           (n->c && scan_has_loop(n->c));
  for (u32 i = 0; !r && i < n->nkid; i++) r = scan_has_loop(n->kid[i]);
  return r;
}

void scan_defines(Arena *a, const Ast *n, NumSlots *to) {
  if (n->kind == AST_fn || n->kind == AST_for) return;
  if (n->kind == AST_let) *vec_push(a, to) = n->slot;
  if (n->a) scan_defines(a, n->a, to);
  if (n->b) scan_defines(a, n->b, to);
  if (n->c) scan_defines(a, n->c, to);
  for (u32 i = 0; i < n->nkid; i++) scan_defines(a, n->kid[i], to);
}

bool scan_assigns(const Ast *n, u32 slot) {
  if (n->kind == AST_let && n->slot == slot) return true;
  if (n->kind == AST_set)
    for (u32 i = 0; i < n->a->nplace; i++)
      if (n->a->place[i].kind == PL_local && n->a->place[i].slot == slot) return true;
  bool r = (n->a && scan_assigns(n->a, slot)) || (n->b && scan_assigns(n->b, slot)) ||
           (n->c && scan_assigns(n->c, slot));
  for (u32 i = 0; !r && i < n->nkid; i++) r = scan_assigns(n->kid[i], slot);
  return r;
}

static void mark(Ast *n, bool wanted);

static void mark_parts(Ast *n, bool wanted) {
  if (n->a) mark(n->a, wanted);
  if (n->b) mark(n->b, wanted);
  if (n->c) mark(n->c, wanted);
  for (u32 i = 0; i < n->nkid; i++) mark(n->kid[i], wanted);
}

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
  default: mark_parts(n, true);
  }
}

void loops_mark(Script *s) {
  mark(s->root, false);
}

bool scan_calls(const Ast *n, const LangFn *f) {
  if (!n) return false;
  if (!f && n->kind == AST_call && !n->builtin) return true;
  if (n->kind == AST_call && !n->builtin && n->a->kind == AST_name)
    for (u32 i = 0; i < n->a->nplace; i++) {
      const VarPlace *p = &n->a->place[i];
      if (p->kind == PL_self) return true;
      if (p->kind == PL_global && p->file == f->ast->file && p->slot == f->ast->slot) return true;
    }
  if (scan_calls(n->a, f) || scan_calls(n->b, f) || scan_calls(n->c, f)) return true;
  for (u32 i = 0; i < n->nkid; i++)
    if (scan_calls(n->kid[i], f)) return true;
  return false;
}
