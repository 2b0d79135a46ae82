/* lang_known.c: what the lowering knows of nodes and variables; see lang_lower.h.
 *
 * In: a node, or a variable at the current position. Out: what its evaluation may do, or the kind
 * that it holds. Method: by variable, nothing, that it is set, or its kind. A log of changes lets
 * paths start in the same state; where they meet, so does what is known. Calls may change the
 * variables of a file.
 */
#include "lang/run/lang_lower.h"

#include <string.h>

/* ---- analysis of the tree ---- */

bool ast_is_user_call(const Ast *n) {
  return n->kind == AST_call && (!n->builtin || builtin_fn[n->builtin - 1] == bi_autograd);
}

bool ast_calls(const Ast *n) {
  if (ast_is_user_call(n)) return true;
  for (u32 i = 0; n->kind != AST_fn && i < ast_parts(n); i++)
    if (ast_part(n, i) && ast_calls(ast_part(n, i))) return true;
  return false;
}

bool ast_is_change(const Ast *n) {
  BuiltinFn *f = n->kind == AST_call && n->builtin ? builtin_fn[n->builtin - 1] : NULL;
  return f == bi_push || f == bi_pop;
}

bool ast_changes(const Ast *n) {
  switch (n->kind) {
  case AST_block:
  case AST_if:
  case AST_match: return true;
  case AST_fn: return false;
  default: break;
  }
  if (ast_is_change(n)) return true;
  for (u32 i = 0; i < ast_parts(n); i++)
    if (ast_part(n, i) && ast_changes(ast_part(n, i))) return true;
  return false;
}

LangKind ast_kind(const Ast *n) {
  const LangType *t = n->to ? n->to : n->type;
  if (!n->to && ((n->kind == AST_if && !n->c) || n->kind == AST_match || n->kind <= AST_struct))
    return KD_any;
  return t && kind_is_number(t->kind) ? t->kind : KD_any;
}

/* ---- variables ---- */

void known_begin(Lowering *l) {
  u32 n = l->nslot + INLINE_VARS + 1;
  l->known = NEWS(l->a, LangKind, n);
  l->met_at = NEWS(l->a, u32, n);
  l->seen = NEWS(l->a, u32, n);
  l->stamp = NEWS(l->a, u32, n);
  l->direct = NEWS(l->a, bool, n);
  memset(l->direct, 1, n);
}

u32 known_slot(const Lowering *l, u32 slot) {
  const CallExpansion *x = l->into;
  return !x ? slot : slot < x->fn->ast->nkid ? x->param[slot] : x->first + slot;
}

i64 known_variable(const Lowering *l, const VarRef *p) {
  if (p->kind == VR_local) return known_slot(l, p->slot);
  return p->kind == VR_global && !l->in && p->file == l->s->number ? (i64)p->slot : -1;
}

/* ---- what is known at the current position ---- */

bool known_shared(const Lowering *l, u32 slot) {
  return !l->in && slot < l->s->shared.n && l->s->shared.at[slot];
}

LangKind known_kind(const Lowering *l, u32 slot) {
  LangKind k = l->known[slot];
  return kind_is_number(k) && known_shared(l, slot) && l->seen[slot] != l->calls ? KD_any : k;
}

void known_set(Lowering *l, u32 slot, LangKind k) {
  LangKind old = known_kind(l, slot);
  if (old == k) return;
  *vec_push(l->a, &l->log) = (Known){slot, old};
  l->known[slot] = k;
  l->seen[slot] = l->calls;
}

void known_undo(Lowering *l, u32 mark) {
  while (l->log.n > mark) {
    const Known *x = &l->log.at[--l->log.n];
    l->known[x->slot] = x->kind;
    l->seen[x->slot] = l->calls;
  }
}

PathMerge known_paths(const Lowering *l, u32 mark) {
  return (PathMerge){mark, l->met.n, 0};
}

/* A path ends here, unless it is dead; the next begins in the state of the mark. Takes time in
 * proportion to the changes of the path. */
void known_path_end(Lowering *l, PathMerge *m) {
  u32 now = ++l->stamps;
  if (!l->dead) m->paths++;
  for (u32 i = m->mark; !l->dead && i < l->log.n; i++) {
    u32 slot = l->log.at[i].slot, at = l->met_at[slot];
    if (l->stamp[slot] == now) continue;
    l->stamp[slot] = now;
    if (at >= m->first && at < l->met.n && l->met.at[at].slot == slot) {
      l->met.at[at].kind = kind_meet(l->met.at[at].kind, known_kind(l, slot));
      l->met.at[at].paths++;
    } else {
      l->met_at[slot] = l->met.n;
      *vec_push(l->a, &l->met) = (Met){slot, known_kind(l, slot), 1, at};
    }
  }
  known_undo(l, m->mark);
}

/* All paths have ended. The others keep the kinds of the mark. */
void known_join(Lowering *l, const PathMerge *m) {
  while (l->met.n > m->first) {
    Met x = l->met.at[--l->met.n];
    l->met_at[x.slot] = x.outer;
    known_set(l, x.slot, x.paths < m->paths ? kind_meet(x.kind, known_kind(l, x.slot)) : x.kind);
  }
}

/* A call may change variables of files. */
void known_forget_shared(Lowering *l) {
  l->calls++;
}

void known_forget_scope(Lowering *l, const Ast *scope) {
  for (u32 i = 0; i < scope->nslot; i++) known_set(l, known_slot(l, scope->slot + i), KD_none);
}

/* Calls fn for every variable that n sets, with the kind it gets. */
typedef void AssignFn(Lowering *l, u32 slot, LangKind kind);
static void each_assigned(Lowering *l, const Ast *n, AssignFn *fn) {
  switch (n->kind) {
  case AST_let: fn(l, known_slot(l, n->slot), ast_kind(n->a)); break;
  case AST_set:
    for (u32 i = 0; n->a->kind == AST_name && i < n->a->nplace; i++) {
      i64 slot = known_variable(l, &n->a->place[i]);
      if (slot >= 0) fn(l, (u32)slot, ast_kind(n->b));
    }
    break;
  case AST_for:
    fn(l, known_slot(l, n->slot), n->a->kind == AST_range && !n->a->to ? KD_int : KD_any);
    break;
  case AST_arm:
    if (n->a && n->a->kind == AST_name) fn(l, known_slot(l, n->a->slot), KD_any);
    break;
  case AST_fn:
    if (n->name) fn(l, known_slot(l, n->slot), KD_any);
    return;
  case AST_model:
  case AST_import: fn(l, known_slot(l, n->slot), KD_any); break;
  default:
    if (ast_is_user_call(n)) known_forget_shared(l);
  }
  for (u32 i = 0; i < ast_parts(n); i++)
    if (ast_part(n, i)) each_assigned(l, ast_part(n, i), fn);
}

static void forget_kind(Lowering *l, u32 slot, LangKind k) {
  known_set(l, slot, kind_meet(known_kind(l, slot), k));
}

void known_direct(Lowering *l, u32 slot, LangKind k) {
  if (!kind_is_number(k)) l->direct[slot] = false;
}

void known_forget_assigned(Lowering *l, const Ast *n) {
  each_assigned(l, n, forget_kind);
}

void known_direct_assigned(Lowering *l, const Ast *n) {
  each_assigned(l, n, known_direct);
}
