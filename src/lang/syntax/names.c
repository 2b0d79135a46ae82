/* names.c: name resolution.
 *
 * Functions, `for` and match arms open a scope; blocks of if and while belong to the enclosing
 * scope. A scope knows every name defined anywhere in it. A name is looked up in the scopes of its
 * function from the inside out. At run time the first of these that holds a value is used.
 * Variables of enclosing functions are captured by value, those of the file by reference.
 */
#include "lang/syntax/check.h"

#include <string.h>

const BuiltinInfo builtin_info[] = {
#define BI(name, sig, args, shape, fn) {#name, sig, args, SH_##shape},
#include "lang/syntax/builtins.def"
#undef BI
};
const u32 builtin_count = sizeof builtin_info / sizeof *builtin_info;

i32 builtin_find(const char *name) {
  for (u32 i = 0; i < builtin_count; i++)
    if (!strcmp(builtin_info[i].name, name)) return (i32)i;
  return -1;
}

u32 slot_get(const SlotBinds *s, u32 slot) {
  return slot < s->n ? s->at[slot] : 0;
}

void slot_set(Checker *k, SlotBinds *s, u32 slot, u32 b) {
  while (s->n <= slot) *vec_push(k->a, s) = 0;
  s->at[slot] = b;
}

void names_collect(Checker *k, Ast *n, Asts *to) {
  if (!n) return;
  switch (n->kind) {
  case AST_let:
  case AST_import:
  case AST_model: *vec_push(k->a, to) = n; break;
  case AST_fn:
    if (n->name) *vec_push(k->a, to) = n;
    return;
  case AST_for:
  case AST_match: names_collect(k, n->a, to); return;
  default: break;
  }
  names_collect(k, n->a, to);
  if (n->kind != AST_let) names_collect(k, n->b, to);
  names_collect(k, n->c, to);
  for (u32 i = 0; i < n->nkid; i++) names_collect(k, n->kid[i], to);
}

u32 names_define(Checker *k, Str name) {
  ScopeNames *s = k->in->names;
  u32 *slot = map_put(&s->slot, name);
  if (!*slot) *slot = 1 + k->in->nslot++;
  s->n = k->in->nslot;
  if (k->in->nslot > k->in->fn->nslot) k->in->fn->nslot = k->in->nslot;
  return *slot - 1;
}

void names_open(Checker *k, Ast *n, Asts *body) {
  ScopeNames *s = NEW(k->a, ScopeNames);
  s->outer = k->in->names;
  s->slot = map_new(k->a);
  k->in->names = s;
  n->slot = k->in->nslot;
  for (u32 i = 0; body && i < body->n; i++) body->at[i]->slot = names_define(k, body->at[i]->name);
}

/* The slots of the scope end with the last name it defines. A captured variable gets a slot at its
 * first use and keeps it after the scope ends. */
void names_close(Checker *k, Ast *n) {
  u32 end = k->in->names->n;
  k->in->names = k->in->names->outer;
  n->nslot = end > n->slot ? end - n->slot : 0;
}

enum { PLACES = 16 };
typedef struct FoundPlaces {
  VarRef at[PLACES];
  u32 n;
} FoundPlaces;

static void add(FoundPlaces *f, VarRefKind kind, u32 slot, u32 file) {
  if (f->n < PLACES) f->at[f->n++] = (VarRef){kind, slot, file};
}

static void find_local(Checker *k, FnState *in, Str name, FoundPlaces *to);

/* Captures a variable of an enclosing function. Returns its slot, or -1. */
static i64 capture(Checker *k, FnState *in, Str name) {
  const u32 *at = map_get(&in->captures, name);
  if (at) return in->fn->capture.at[*at - 1].slot;
  FoundPlaces from = {.n = 0};
  find_local(k, in->outer, name, &from);
  if (!from.n) return -1;
  Capture *c = vec_push(k->a, &in->fn->capture);
  *c = (Capture){name, in->nslot++, arena_copy(k->a, from.at, from.n * sizeof *from.at), from.n};
  *map_put(&in->captures, name) = in->fn->capture.n;
  slot_set(k, &in->capture_at, c->slot, in->fn->capture.n);
  if (in->nslot > in->fn->nslot) in->fn->nslot = in->nslot;
  return c->slot;
}

static void find_local(Checker *k, FnState *in, Str name, FoundPlaces *to) {
  for (ScopeNames *s = in->names; s && s != k->s->names; s = s->outer) {
    const u32 *slot = map_get(&s->slot, name);
    if (slot) add(to, VR_local, *slot - 1, 0);
  }
  if (!in->outer) return;
  if (in->fn->ast->name == name) add(to, VR_self, 0, 0);
  i64 slot = capture(k, in, name);
  if (slot >= 0) add(to, VR_local, (u32)slot, 0);
}

void names_share(Checker *k, Script *s, u32 slot) {
  if (slot_get(&s->shared, slot)) return;
  Binding *b = vec_push(k->a, &k->bind);
  *b = (Binding){.type = &type_none, .parent = k->bind.n - 1};
  slot_set(k, &s->shared, slot, b->parent);
  k->changed = true;
}

bool names_find(Checker *k, Ast *n, Str name) {
  FoundPlaces f = {.n = 0};
  find_local(k, k->in, name, &f);
  const u32 *slot = map_get(&k->s->names->slot, name);
  if (slot) add(&f, VR_global, *slot - 1, k->s->number);
  if (slot && k->in->outer) names_share(k, k->s, *slot - 1);
  n->nplace = f.n;
  n->place = f.n ? arena_copy(k->a, f.at, f.n * sizeof *f.at) : NULL;
  return f.n > 0;
}

/* Type of a captured variable where the function is defined. */
static const LangType *captured(Checker *k, FnState *in, u32 slot) {
  u32 at = slot_get(&in->capture_at, slot);
  const LangType *t = &type_none;
  if (!at) return t;
  const Capture *c = &in->fn->capture.at[at - 1];
  for (u32 j = 0; j < c->nfrom; j++) {
    if (c->from[j].kind == VR_self) return &in->outer->fn->self;
    u32 b = slot_get(&in->outer->cur, c->from[j].slot);
    t = type_join(k->a, t, b ? bind_type(k, b) : captured(k, in->outer, c->from[j].slot));
  }
  return t;
}

bool names_is_shared(const Checker *k, const VarRef *p) {
  return p->kind == VR_global && (k->in->outer || p->file != k->s->number);
}

const LangType *names_type(Checker *k, const Ast *n) {
  const LangType *t = &type_none;
  for (u32 i = 0; i < n->nplace; i++) {
    const VarRef *p = &n->place[i];
    if (p->kind == VR_self) {
      t = type_join(k->a, t, &k->in->fn->self);
      continue;
    }
    bool outside = names_is_shared(k, p);
    u32 b = slot_get(outside ? &k->s->all->at[p->file]->shared : &k->in->cur, p->slot);
    if (!b && !outside && k->in->loops) b = slot_get(&k->in->fn->last, p->slot);
    if (b)
      t = type_join(k->a, t, bind_type(k, b));
    else if (p->kind == VR_local)
      t = type_join(k->a, t, captured(k, k->in, p->slot));
    if (b && !outside) break; /* it has a value here and hides the others */
  }
  return t;
}

void names_suggest(Checker *k, Suggestion *near) {
  for (u32 i = 0; i < builtin_count; i++) suggest_try(near, builtin_info[i].name);
  for (u32 i = 0; i < k->s->token.n; i++) { /* any name in the text that is defined there */
    const Token *t = &k->s->token.at[i];
    Str name = t->kind == TOK_name ? str_intern(k->c, k->s->at + t->at, t->n) : 0;
    bool known = name && map_get(&k->s->names->slot, name);
    for (ScopeNames *s = k->in->names; name && !known && s; s = s->outer)
      known = map_get(&s->slot, name) != NULL;
    if (known) suggest_try(near, str_text(k->c, name));
  }
}
