/* check_struct.c: checks structs and members.
 *
 * In: definitions of structs, records, members. Out: their types. A struct is visible in its whole
 * file, and in importing files through the module name. Two struct types are equal only if they
 * come from the same definition. `a.b` is a name in a module, a field of a struct, or a method of
 * an object.
 */
#include "lang/syntax/check.h"

#include <string.h>

bool struct_same(const StructInfo *x, const StructInfo *y) {
  return x == y || (x->file == y->file && x->name == y->name);
}

u32 struct_field(const StructInfo *s, Str name) {
  const u32 *at = map_get(&s->by_name, name);
  return at ? *at - 1 : s->n;
}

/* ---- definitions ---- */

static u64 key(AstKind kind, Str name) {
  return (u64)kind << 32 | name;
}

/* The first statement of the file that defines this kind of thing under the name, or NULL. */
static const Ast *defined(const Script *s, AstKind kind, Str name) {
  const u32 *at = map_get(&s->defined, key(kind, name));
  return at ? s->root->kid[*at - 1] : NULL;
}

static const StructInfo *find(const Script *s, Str name) {
  const Ast *n = defined(s, AST_struct, name);
  return n ? n->of : NULL;
}

void structs_collect(Checker *k, Script *s) {
  s->defined = map_new(k->a);
  for (u32 i = 0; i < s->root->nkid; i++) {
    Ast *n = s->root->kid[i];
    bool names =
        n->kind == AST_struct || n->kind == AST_model || (n->kind == AST_import && n->module);
    u32 *at = names ? map_put(&s->defined, key(n->kind, n->name)) : NULL;
    if (!at || *at) continue;
    *at = i + 1;
    if (n->kind != AST_struct || n->of) continue;
    StructInfo *t = NEW(k->a, StructInfo);
    Str *field = NEWS(k->a, Str, n->nkid + 1);
    for (u32 j = 0; j < n->nkid; j++) field[j] = n->kid[j]->name;
    *t = (StructInfo){.name = n->name, .file = s->number, .n = n->nkid, .field = field};
    t->text = str_text(k->c, n->name);
    t->by_name = map_new(k->a);
    for (u32 j = n->nkid; j; j--) *map_put(&t->by_name, field[j - 1]) = j;
    t->type = NEWS(k->a, const LangType *, n->nkid + 1);
    t->self = (LangType){.kind = KD_struct, .of = t};
    n->of = t;
  }
}

void structs_resolve(Checker *k, Script *s) {
  k->s = s;
  for (u32 i = 0; i < s->root->nkid; i++) {
    const Ast *n = s->root->kid[i];
    for (u32 j = 0; n->kind == AST_struct && n->of && j < n->nkid; j++)
      n->of->type[j] = check_type(k, n->kid[j]->a);
  }
}

/* Errors in field types are reported at the definition. */
void check_struct(Checker *k, const Ast *n) {
  if (!n->of && find(k->s, n->name))
    check_error(k, n, NULL, "the struct '%s' is defined twice", show(k->c, n->name));
  else if (!n->of)
    check_error(k, n, NULL, "a struct is defined outside of functions and blocks");
  if (n->of && type_by_name(n->of->text))
    check_error(k, n, NULL, "'%s' is the name of another type", show(k->c, n->name));
  for (u32 i = 0; i < n->nkid; i++) {
    check_type(k, n->kid[i]->a);
    if (n->of && struct_field(n->of, n->kid[i]->name) != i)
      check_error(k, n->kid[i], NULL, "the field '%s' is defined twice",
                  show(k->c, n->kid[i]->name));
  }
}

/* The module that `import ... as name` binds in this file, or NULL. */
static Script *module_of(const Checker *k, Str name) {
  const Ast *n = defined(k->s, AST_import, name);
  return n ? n->module : NULL;
}

const LangType *struct_type(Checker *k, Str module, Str name) {
  const Script *s = module ? module_of(k, module) : k->s;
  const StructInfo *t = s ? find(s, name) : NULL;
  if (t) return &t->self;
  return s && defined(s, AST_model, name) ? &type_object : NULL;
}

static const char *fields_text(Checker *k, const StructInfo *t) {
  StrBuf out = sb_new(k->a);
  sb_fmt(&out, "%s has", t->text);
  for (u32 i = 0; i < t->n; i++) sb_fmt(&out, " %s", str_text(k->c, t->field[i]));
  return sb_cstr(&out);
}

static void check_fields(Checker *k, Ast *n, const StructInfo *t) {
  bool *given = NEWS(k->a, bool, t->n + 1);
  for (u32 i = 0; i < n->nkid; i++) {
    Ast *x = n->kid[i];
    x->slot = struct_field(t, x->name);
    if (x->slot == t->n)
      check_error(k, x, fields_text(k, t), "%s has no field '%s'", t->text, show(k->c, x->name));
    else if (given[x->slot])
      check_error(k, x, NULL, "the field '%s' is given twice", show(k->c, x->name));
    else
      check_assignable(k, x->a, t->type[x->slot], "the field is");
    given[x->slot] = true;
  }
  for (u32 i = 0; i < t->n; i++) {
    if (!given[i])
      check_error(k, n, NULL, "the field '%s' of %s is missing", show(k->c, t->field[i]), t->text);
  }
}

const LangType *check_record(Checker *k, Ast *n) {
  const Ast *of = n->a;
  const LangType *t = struct_type(k, of->kind == AST_member ? of->a->name : 0, of->name);
  for (u32 i = 0; i < n->nkid; i++) check_expr(k, n->kid[i]->a);
  n->of = t && t->kind == KD_struct ? t->of : NULL;
  if (!n->of) {
    check_error(k, n, NULL, "unknown struct '%s'", show(k->c, of->name));
    return &type_any;
  }
  check_fields(k, n, n->of);
  return t;
}

static const LangType *of_module(Checker *k, Ast *n, Script *m) {
  const u32 *slot = map_get(&m->names->slot, n->name);
  if (!slot) {
    check_error(k, n, NULL, "the module '%s' has no '%s'", show(k->c, n->a->name),
                show(k->c, n->name));
    return &type_any;
  }
  VarRef *p = NEW(k->a, VarRef);
  *p = (VarRef){VR_global, *slot - 1, m->number};
  names_share(k, m, p->slot);
  n->place = p;
  n->nplace = 1;
  const LangType *t = names_type(k, n);
  if (t->kind == KD_module)
    check_error(k, n, "import it here too", "'%s' is a module of another module",
                show(k->c, n->name));
  return t;
}

/* The built-in function that x.name() probably stands for, or NULL. */
static const char *as_function(Checker *k, const char *name) {
  StrBuf t = sb_new(k->a);
  if (!strcmp(name, "append")) name = "push";
  sb_fmt(&t, "tensor_%s", name);
  const char *found = builtin_find(name) >= 0          ? name
                      : builtin_find(sb_cstr(&t)) >= 0 ? sb_cstr(&t)
                                                       : NULL;
  if (!found) return NULL;
  StrBuf hint = sb_new(k->a);
  sb_fmt(&hint, "%s(x, ..) is a function", found);
  return sb_cstr(&hint);
}

const LangType *check_member(Checker *k, Ast *n) {
  n->nplace = 0;
  if (n->a->kind == AST_name && n->a->name && names_find(k, n->a, n->a->name)) {
    const LangType *t = names_type(k, n->a);
    if (t->kind == KD_module) return of_module(k, n, t->module);
  }
  const LangType *t = check_expr(k, n->a);
  if (t->kind == KD_struct) {
    u32 i = struct_field(t->of, n->name);
    if (i < t->of->n) return t->of->type[i];
    check_error(k, n, fields_text(k, t->of), "%s has no field '%s'", t->of->text,
                show(k->c, n->name));
  } else if (t->kind != KD_object && t->kind != KD_any && t->kind != KD_none) {
    check_error(k, n, as_function(k, str_text(k->c, n->name)), "%s has no field '%s'",
                kind_name[t->kind], show(k->c, n->name));
  }
  return &type_any;
}

bool is_field_target(const Ast *n) {
  while (n->kind == AST_index) n = n->a;
  return n->kind == AST_member;
}

const LangType *check_set_field(Checker *k, Ast *n) {
  const LangType *to = check_expr(k, n->a);
  for (const Ast *x = n->a; x->kind != AST_name; x = x->a) {
    const LangType *in = x->a->type;
    if (x->kind == AST_member && x->nplace)
      check_error(k, x, "a function of the module can change it",
                  "variables of a module cannot be assigned to from outside");
    else if (x->kind == AST_member && in && in->kind == KD_object)
      check_error(k, x, NULL, "an object has no fields that can be assigned to");
    else if (x->kind == AST_member && in && in->kind == KD_any)
      check_error(k, x, "write its type down: let p: Point = ...",
                  "it is not known which struct has the field '%s'", show(k->c, x->name));
    else if (x->kind == AST_index && in && in->kind == KD_tensor)
      check_error(k, x, "x = tensor_set(x, [i, j], value) gives a copy with it",
                  "elements of a tensor cannot be assigned to");
  }
  check_assignable(k, n->b, to, "the field is");
  return to;
}
