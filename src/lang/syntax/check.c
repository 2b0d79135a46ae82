/* check.c: checks statements and computes variable bindings.
 *
 * In: an AST. Out: the AST with types, resolved names and conversions, or errors. Method: see
 * check.h. A silent pass is repeated until no type changes; a final pass reports errors.
 */
#include "lang/syntax/check.h"

#include <string.h>

enum { MAX_PASSES = 60 };

/* ---- bindings ---- */

u32 bind_root(Checker *k, u32 b) {
  while (k->bind.at[b].parent != b) b = k->bind.at[b].parent;
  return b;
}

const LangType *bind_type(Checker *k, u32 b) {
  return k->bind.at[bind_root(k, b)].type;
}

void bind_join(Checker *k, u32 b, const LangType *t) {
  Binding *x = &k->bind.at[bind_root(k, b)];
  if (x->declared) return;
  t = type_join(k->a, x->type, t);
  if (type_same(t, x->type)) return;
  x->type = t;
  k->changed = true;
}

static void unify(Checker *k, u32 p, u32 q) {
  p = bind_root(k, p), q = bind_root(k, q);
  if (p == q) return;
  if (k->bind.at[q].declared) { /* a declared type stays */
    u32 t = p;
    p = q, q = t;
  }
  const LangType *t = k->bind.at[q].type;
  k->bind.at[q].parent = p;
  k->changed = true;
  bind_join(k, p, t);
}

static void set_binding(Checker *k, u32 slot, u32 b) {
  *vec_push(k->a, &k->in->log) = (SlotChange){slot, slot_get(&k->in->cur, slot)};
  slot_set(k, &k->in->cur, slot, b);
}

u32 bind_of(Checker *k, Ast *n, u32 slot) {
  if (!n->bind) {
    Binding *b = vec_push(k->a, &k->bind);
    n->bind = k->bind.n - 1;
    *b = (Binding){.type = &type_none, .parent = n->bind};
  }
  u32 all = !k->in->outer && k->in->names == k->s->names ? slot_get(&k->s->shared, slot) : 0;
  if (all) unify(k, all, n->bind);
  set_binding(k, slot, n->bind);
  slot_set(k, &k->in->fn->last, slot, n->bind);
  return n->bind;
}

/* ---- control-flow paths ---- */

u32 state_mark(const Checker *k) {
  return k->in->log.n;
}

SlotChanges state_rollback(Checker *k, u32 mark) {
  SlotChanges path = {0}, *log = &k->in->log;
  for (u32 i = mark; i < log->n; i++) {
    u32 slot = log->at[i].slot;
    *vec_push(k->a, &path) = (SlotChange){slot, k->in->cur.at[slot]};
  }
  for (; log->n > mark; log->n--)
    k->in->cur.at[log->at[log->n - 1].slot] = log->at[log->n - 1].bind;
  return path;
}

void state_replay(Checker *k, const SlotChanges *path) {
  for (u32 i = 0; i < path->n; i++) set_binding(k, path->at[i].slot, path->at[i].bind);
}

/* True the first time in this merge. */
static bool first_in_merge(Checker *k, u32 slot) {
  if (slot_get(&k->in->met, slot) == k->in->merges) return false;
  slot_set(k, &k->in->met, slot, k->in->merges);
  return true;
}

static void merge_binding(Checker *k, u32 slot, u32 there) {
  u32 here = slot_get(&k->in->cur, slot);
  if (here && there && here != there)
    unify(k, here, there);
  else if (there && !here)
    set_binding(k, slot, there);
}

void state_join(Checker *k, const SlotChanges *path) {
  for (u32 i = 0; i < path->n; i++) merge_binding(k, path->at[i].slot, path->at[i].bind);
}

void state_merge(Checker *k, u32 mark, const SlotChanges *other) {
  const SlotChanges *log = &k->in->log;
  u32 end = log->n;
  k->in->merges++;
  for (u32 i = 0; i < other->n; i++)
    if (first_in_merge(k, other->at[i].slot))
      merge_binding(k, other->at[i].slot, other->at[i].bind);
  for (u32 i = mark; i < end; i++) /* the first entry of a slot is its binding at the mark */
    if (first_in_merge(k, log->at[i].slot)) merge_binding(k, log->at[i].slot, log->at[i].bind);
}

void check_error(Checker *k, const Ast *n, const char *hint, const char *fmt, ...) {
  if (!k->report) return;
  StrBuf t = sb_new(k->a);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  script_error(k->s, n->at, hint, "%s", sb_cstr(&t));
}

/* ---- type annotations ---- */

const LangType *type_by_name(const char *name) {
  static const struct {
    const char *name;
    const LangType *type;
  } known[] = {{"int32", &type_int},     {"int64", &type_int},     {"int", &type_int},
               {"float32", &type_float}, {"float64", &type_float}, {"float", &type_float},
               {"bool", &type_bool},     {"string", &type_string}, {"concept", &type_any},
               {"any", &type_any}};
  for (u32 i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name)) return known[i].type;
  return NULL;
}

static const LangType *named_type(Checker *k, const Ast *n) {
  const char *name = str_text(k->c, n->name);
  const LangType *t = n->a ? NULL : type_by_name(name);
  if (t) return t;
  t = struct_type(k, n->a ? n->a->name : 0, n->name);
  if (t) return t;
  check_error(k, n,
              "types are int32 int64 float32 float64 bool string tensor [T] (T, U) fn(T) -> U",
              "unknown type '%s'", show(k->c, n->name));
  return &type_any;
}

static const LangType *tensor_type(Checker *k, const Ast *n) {
  LangType *t = NEW(k->a, LangType);
  i64 *dim = NEWS(k->a, i64, n->nkid + 1);
  Str *name = NEWS(k->a, Str, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) {
    dim[i] = n->kid[i]->kind == AST_int ? n->kid[i]->i : -1;
    name[i] = n->kid[i]->name;
  }
  *t = (LangType){.kind = KD_tensor, .shaped = n->i, .rank = n->nkid, .dim = dim, .name = name};
  return t;
}

static const LangType *listed(Checker *k, const Ast *n, LangKind kind) {
  LangType *t = NEW(k->a, LangType);
  t->kind = kind;
  t->n = n->nkid;
  t->item = NEWS(k->a, const LangType *, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) t->item[i] = check_type(k, n->kid[i]);
  t->elem = !n->a ? &type_any : check_type(k, n->a);
  return t;
}

const LangType *check_type(Checker *k, const Ast *n) {
  switch (n->kind) {
  case AST_tarray: return type_array(k->a, check_type(k, n->a));
  case AST_ttuple: return listed(k, n, KD_tuple);
  case AST_tfn: return listed(k, n, KD_fn);
  case AST_ttensor: return tensor_type(k, n);
  default: return named_type(k, n);
  }
}

static LangFn *fn_of(Checker *k, Ast *n) {
  LangFn *f = n->fn;
  if (f) return f;
  f = n->fn = NEW(&k->c->work, LangFn);
  f->ast = n;
  f->result = &type_none;
  f->self = (LangType){.kind = KD_fn, .n = n->nkid, .elem = &type_none, .fn = f};
  f->self.item = NEWS(&k->c->work, const LangType *, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++)
    f->self.item[i] = n->kid[i]->a ? check_type(k, n->kid[i]->a) : &type_any;
  if (n->b) {
    f->result = f->self.elem = check_type(k, n->b);
    f->declared = true;
  }
  return f;
}

/* Joins the returned type with those of earlier returns. */
static void join_result(Checker *k, Ast *value, const Ast *at, const LangType *t) {
  LangFn *f = k->in->fn;
  if (!k->in->outer) return; /* the top level of a file has no result */
  if (f->declared) {
    if (value)
      check_assignable(k, value, f->result, "the function returns");
    else if (!type_assignable(t, f->result))
      check_error(k, at, NULL, "the function returns %s, but nothing is returned here",
                  lang_type_text(k->c, f->result));
    return;
  }
  const LangType *all = type_join(k->a, f->result, t);
  if (!type_same(all, f->result)) {
    f->result = f->self.elem = all;
    k->changed = true;
  }
  if (value) check_assignable(k, value, f->result, "the function returns");
}

/* The statement that gives the block its value, or NULL. */
static Ast *last_of(const Ast *block) {
  return block->nkid ? block->kid[block->nkid - 1] : NULL;
}

/* True if the statement always returns. */
static bool always_returns(const Ast *n) {
  if (!n) return false;
  if (n->kind == AST_return) return true;
  if (n->kind == AST_block) return always_returns(last_of(n));
  return n->kind == AST_if && n->c && always_returns(n->b) && always_returns(n->c);
}

static bool is_forever(const Ast *n) {
  return n->kind == AST_while && n->a->kind == AST_bool && n->a->i;
}

/* True if the last statement may end without a value. A loop has the value of its last iteration. A
 * loop without iterations has none, but only loops whose body has no value are reported. */
static bool may_end_without_value(const Ast *n) {
  if (!n) return true;
  switch (n->kind) {
  case AST_return: return false;
  case AST_block: return may_end_without_value(last_of(n));
  case AST_if: return !n->c || may_end_without_value(n->b) || may_end_without_value(n->c);
  case AST_for: return always_returns(n->b);
  case AST_while: return always_returns(n->b) && !is_forever(n);
  default: return n->type && n->type->kind == KD_null;
  }
}

static bool is_expr(const Ast *n) {
  return n->kind >= AST_name && n->kind <= AST_member;
}

const LangType *check_fn(Checker *k, Ast *n) {
  LangFn *f = fn_of(k, n);
  FnState in = {.outer = k->in, .fn = f, .captures = map_new(k->a)};
  Asts body = {0};
  for (u32 i = 0; k->report && i < n->nkid; i++)
    if (n->kid[i]->a) check_type(k, n->kid[i]->a);
  if (k->report && n->b) check_type(k, n->b);
  f->capture.n = 0;
  k->in = &in;
  names_collect(k, n->a, &body);
  names_open(k, n->a, NULL);
  for (u32 i = 0; i < n->nkid; i++) {
    Ast *p = n->kid[i];
    p->slot = names_define(k, p->name);
    u32 b = bind_of(k, p, p->slot);
    k->bind.at[b].type = f->self.item[i];
    k->bind.at[b].declared = p->a != NULL && f->self.item[i]->kind != KD_any;
  }
  for (u32 i = 0; i < body.n; i++) body.at[i]->slot = names_define(k, body.at[i]->name);
  const LangType *t = check_block(k, n->a);
  Ast *last = last_of(n->a);
  if (!always_returns(n->a) && (!f->declared || (last && is_expr(last))))
    join_result(k, last && is_expr(last) ? last : NULL, last ? last : n, t);
  else if (last && !always_returns(n->a) && may_end_without_value(last) &&
           !type_assignable(&type_null, f->result))
    check_error(k, last, "add a return after it",
                "the function returns %s, but may end here without a value",
                lang_type_text(k->c, f->result));
  names_close(k, n->a);
  k->in = in.outer;
  return &f->self;
}

static const LangType *check_let(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a);
  u32 b = bind_of(k, n, n->slot);
  if (n->b) {
    Binding *x = &k->bind.at[bind_root(k, b)];
    x->type = check_type(k, n->b);
    x->declared = true;
  }
  bind_join(k, b, t);
  check_assignable(k, n->a, bind_type(k, b), "the variable is");
  return bind_type(k, b);
}

/* The type of a variable in which `target` (nested indices) has type t. */
static const LangType *wrapped(Checker *k, const Ast *target, const LangType *t) {
  for (; target->kind == AST_index; target = target->a) t = type_array(k->a, t);
  return t;
}

static u32 target_bind(Checker *k, const Ast *name) {
  for (u32 i = 0; i < name->nplace; i++) {
    const VarRef *p = &name->place[i];
    if (p->kind == VR_self) continue;
    bool outside = names_is_shared(k, p);
    u32 b = slot_get(outside ? &k->s->shared : &k->in->cur, p->slot);
    if (!b && !outside && k->in->loops) b = slot_get(&k->in->fn->last, p->slot);
    if (b) return b;
  }
  return 0;
}

/* The type of target, which is a variable of type t or an element of it. */
static const LangType *at_target(const LangType *t, const Ast *target) {
  for (; target->kind == AST_index; target = target->a)
    t = t->kind == KD_array ? t->elem : &type_any;
  return t;
}

/* Assigns a value of type t to target, in the variable of binding b. A variable of unknown type
 * gets its type from its `let`. Returns false after reporting a type mismatch. */
static bool assign_type(Checker *k, u32 b, const Ast *target, const Ast *value, const LangType *t) {
  const Binding *x = &k->bind.at[bind_root(k, b)];
  const LangType *is = at_target(x->type, target);
  if (x->type->kind == KD_none || x->declared) return true;
  if (type_compatible(t, is)) {
    bind_join(k, b, wrapped(k, target, t));
    return true;
  }
  bool whole = target->kind != AST_index;
  const char *text = lang_type_text(k->c, is);
  const char *found = lang_type_text(k->c, t);
  check_error(k, value, whole ? "a new 'let' may make it another kind" : NULL, "%s %s, found %s",
              whole ? "the variable is" : "elements are", text, found);
  return false;
}

/* Joins the pushed value with the element type of the variable. */
void check_push(Checker *k, const Ast *target, Ast *value) {
  const Ast *base = target;
  while (base->kind == AST_index) base = base->a;
  const LangType *now = target->type;
  u32 b = base->kind == AST_name && now->kind == KD_array ? target_bind(k, base) : 0;
  if (b) {
    if (type_compatible(value->type, now->elem))
      bind_join(k, b, wrapped(k, target, type_array(k->a, value->type)));
    now = at_target(bind_type(k, b), target);
  }
  if (now->kind == KD_array) check_assignable(k, value, now->elem, "elements are");
}

static const LangType *check_set(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->b);
  if (is_field_target(n->a)) return check_set_field(k, n);
  Ast *base = n->a;
  while (base->kind == AST_index) {
    check_assignable(k, base->b, (check_expr(k, base->b), &type_float), "an index is");
    base->b->to = NULL;
    base = base->a;
  }
  if (!names_find(k, base, base->name)) {
    check_error(k, base, "let defines a variable", "Cannot assign to undefined variable: %s",
                show(k->c, base->name));
    return t;
  }
  u32 b = target_bind(k, base);
  if (!b) return t; /* captured or not defined yet: checked at run time */
  const LangType *now = bind_type(k, b);
  if (n->a->kind == AST_index && now->kind == KD_tensor)
    check_error(k, n->a, "x = tensor_set(x, [i, j], value) gives a copy with it",
                "elements of a tensor cannot be assigned to");
  else if (n->a->kind != AST_index || now->kind == KD_array || now->kind == KD_none)
    if (!assign_type(k, b, n->a, n->b, t)) return at_target(now, n->a);
  now = at_target(bind_type(k, b), n->a);
  check_assignable(k, n->b, now, "the variable is");
  return now;
}

const LangType *check_if(Checker *k, Ast *n, bool valued) {
  check_expr(k, n->a);
  u32 mark = state_mark(k);
  const LangType *t = check_block(k, n->b), *u = &type_null;
  SlotChanges first = state_rollback(k, mark);
  if (n->c) u = n->c->kind == AST_if ? check_if(k, n->c, valued) : check_block(k, n->c);
  if (n->c && always_returns(n->c)) {
    state_rollback(k, mark);
    state_replay(k, &first);
  } else if (!always_returns(n->b)) {
    state_merge(k, mark, &first);
  }
  const LangType *both = type_join(k->a, t, u);
  if (always_returns(n->b)) both = u;
  if (n->c && always_returns(n->c)) both = t;
  n->type = both;
  n->to = valued && both->kind == KD_float ? both : NULL;
  return both;
}

static const LangType *check_loop(Checker *k, Ast *n) {
  u32 mark = state_mark(k);
  k->in->loops++;
  const LangType *t = check_block(k, n->b);
  if (n->b->nkid) check_unused(k, last_of(n->b));
  k->in->loops--;
  state_merge(k, mark, &(SlotChanges){0}); /* the loop may run 0 iterations */
  return type_join(k->a, t, &type_null);
}

static const LangType *check_for(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a), *elem = &type_any;
  Asts body = {0};
  if (t->kind == KD_array)
    elem = t->elem;
  else if (t->kind != KD_any && t->kind != KD_none)
    check_error(k, n->a, "loops walk arrays and ranges such as 0..10",
                "Cannot iterate over type %s", kind_name[t->kind]);
  names_collect(k, n->b, &body);
  names_open(k, n, NULL);
  u32 slot = names_define(k, n->name);
  for (u32 i = 0; i < body.n; i++) body.at[i]->slot = names_define(k, body.at[i]->name);
  bind_join(k, bind_of(k, n, slot), elem);
  t = check_loop(k, n);
  names_close(k, n);
  return t;
}

static const LangType *check_return(Checker *k, Ast *n) {
  const LangType *t = n->a ? check_expr(k, n->a) : &type_null;
  join_result(k, n->a, n, t);
  return &type_none;
}

/* A model, a network or a module. Modules must be imported at top level. */
static const LangType *check_object(Checker *k, const Ast *n) {
  if (n->kind == AST_model) {
    LangType *t = NEW(k->a, LangType);
    *t = (LangType){.kind = KD_object, .model = n};
    return t;
  }
  if (n->module) {
    LangType *t = NEW(k->a, LangType);
    *t = (LangType){.kind = KD_module, .module = n->module};
    return t;
  }
  if (parse_is_module(k->c, n))
    check_error(k, n, NULL, "a module is imported outside of functions and blocks");
  return &type_object;
}

const LangType *check_statement(Checker *k, Ast *n) {
  switch (n->kind) {
  case AST_let: return check_let(k, n);
  case AST_set: return check_set(k, n);
  case AST_return: return check_return(k, n);
  case AST_fn:
    if (!n->name) return check_expr(k, n);
    bind_join(k, bind_of(k, n, n->slot), &fn_of(k, n)->self);
    return check_fn(k, n);
  case AST_struct: check_struct(k, n); return &type_null;
  case AST_model: check_model(k, n); /* fall through */
  case AST_import: bind_join(k, bind_of(k, n, n->slot), check_object(k, n)); return &type_null;
  case AST_if: return check_if(k, n, false);
  case AST_while: check_expr(k, n->a); return check_loop(k, n);
  case AST_for: return check_for(k, n);
  case AST_break:
  case AST_continue:
    if (!k->in->loops)
      check_error(k, n, NULL, "'%s' outside of a loop",
                  n->kind == AST_break ? "break" : "continue");
    return &type_none;
  default: return check_expr(k, n);
  }
}

const LangType *check_block(Checker *k, Ast *n) {
  const LangType *t = &type_null;
  for (u32 i = 0; i < n->nkid; i++) {
    t = check_statement(k, n->kid[i]);
    if (i + 1 < n->nkid || n == k->s->root) check_unused(k, n->kid[i]);
  }
  return n->type = t;
}

/* Functions can be called from anywhere in their file. */
static void hoist(Checker *k, const Asts *body) {
  for (u32 i = 0; i < body->n; i++) {
    Ast *n = body->at[i];
    if (n->kind != AST_fn || slot_get(&k->in->cur, n->slot)) continue;
    bind_join(k, bind_of(k, n, n->slot), &fn_of(k, n)->self);
  }
}

/* Opens the top-level scope of a file, so that other files can look up its names. */
static void open_file(Checker *k, Script *s) {
  Asts body = {0};
  FnState in = {.fn = s->main};
  k->s = s;
  k->in = &in;
  names_collect(k, s->root, &body);
  names_open(k, s->root, &body);
  s->names = in.names;
  s->walked = false;
  for (u32 i = 0; s->number && i < body.n; i++) names_share(k, s, body.at[i]->slot);
}

/* Checks imported files first, so that the types of modules are known from the first pass on. A
 * binding that was once `any` never becomes more precise. */
static void walk_file(Checker *k, Script *s) {
  Asts body = {0};
  if (s->walked) return;
  s->walked = true;
  for (u32 i = 0; i < s->root->nkid; i++)
    if (s->root->kid[i]->module) walk_file(k, s->root->kid[i]->module);
  FnState in = {.fn = s->main, .names = s->names, .nslot = s->names->n};
  k->s = s;
  k->in = &in;
  names_collect(k, s->root, &body);
  hoist(k, &body);
  check_block(k, s->root);
  names_close(k, s->root);
}

static void pass(Checker *k, const Scripts *all) {
  k->changed = false;
  for (u32 i = 0; i < all->n; i++) open_file(k, all->at[i]);
  walk_file(k, all->at[0]);
}

static void start(Checker *k, Script *s) {
  structs_collect(k, s);
  if (s->main) return;
  s->main = NEW(k->a, LangFn);
  s->main->ast = s->root;
  s->main->result = &type_none;
}

void script_check(Script *s) {
  Checker k = {.s = s, .c = s->c, .a = &s->c->work};
  *vec_push(k.a, &k.bind) = (Binding){.type = &type_none}; /* index 0 means none */
  for (u32 i = 0; i < s->all->n; i++) start(&k, s->all->at[i]);
  for (u32 i = 0; i < s->all->n; i++) structs_resolve(&k, s->all->at[i]);
  u32 n = 0;
  do pass(&k, s->all);
  while (k.changed && ++n < MAX_PASSES);
  k.report = true;
  pass(&k, s->all);
}
