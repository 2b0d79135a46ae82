/* check_call.c: checks calls.
 *
 * In: a call. Out: its result type; named arguments are moved to their positions. A called name is
 * a function of the program if there is one, else a built-in. A variable that is not a function
 * does not hide a built-in.
 */
#include "lang/syntax/check.h"

#include <stdio.h>
#include <string.h>

/* ---- arguments by name ---- */

/* Moves the named argument to its position, after the positional ones. */
static bool put(Checker *k, Ast *n, u32 from, u32 place) {
  Ast *x = n->kid[from], *there = place < n->nkid ? n->kid[place] : NULL;
  if (place < from || (there && there->kind == AST_named && there->name == x->name)) {
    check_error(k, x, NULL, "the argument '%s' is given twice", show(k->c, x->name));
    return false;
  }
  if (!there || there->kind != AST_named) {
    check_error(k, x, "give the arguments before it, too", "the argument '%s' cannot stand here",
                show(k->c, x->name));
    return false;
  }
  n->kid[from] = there;
  n->kid[place] = x;
  return true;
}

/* args: names separated by spaces. */
static u32 place_of(const char *args, const char *name) {
  u32 i = 0;
  for (const char *s = args; *s; i++) {
    size_t n = strcspn(s, " ");
    if (n == strlen(name) && !memcmp(s, name, n)) return i;
    s += n + (s[n] == ' ');
  }
  return UINT32_MAX;
}

static void by_name(Checker *k, Ast *n, const char *args) {
  for (u32 i = 0; i < n->nkid;) {
    Ast *x = n->kid[i];
    if (x->kind != AST_named) {
      i++;
      continue;
    }
    u32 place = place_of(args, str_text(k->c, x->name));
    if (place == i) {
      n->kid[i++] = x->a;
      continue;
    }
    if (place == UINT32_MAX) {
      check_error(k, x, args, "unknown argument '%s'", show(k->c, x->name));
      n->kid[i++] = x->a;
    } else if (!put(k, n, i, place)) {
      n->kid[i++] = x->a;
    }
  }
}

static const char *fn_args(Checker *k, const LangFn *f) {
  StrBuf t = sb_new(k->a);
  for (u32 i = 0; i < f->ast->nkid; i++)
    sb_fmt(&t, "%s%s", i ? " " : "", str_text(k->c, f->ast->kid[i]->name));
  return sb_cstr(&t);
}

typedef struct Sig {
  char arg[16];
  u32 n, min;
  bool more; /* variadic: the last one repeats */
  char result;
  bool only; /* its only effect is the result */
} Sig;

static Sig sig_read(const char *s) {
  Sig g = {.min = UINT32_MAX};
  for (; *s != ':'; s++) {
    if (*s == '?')
      g.min = g.n;
    else if (*s == '*')
      g.more = true;
    else
      g.arg[g.n++] = *s;
  }
  if (g.min == UINT32_MAX) g.min = g.more ? g.n - 1 : g.n;
  g.result = s[1];
  g.only = s[2] == '!';
  return g;
}

static bool sig_takes(char letter, const LangType *t) {
  LangKind kind = t->kind;
  bool number = kind == KD_int || kind == KD_float;
  if (kind == KD_any || kind == KD_none) return true;
  switch (letter) {
  case 'T':
  case 'l': return kind == KD_tensor;
  case 'A': return kind == KD_array;
  case 'n': return number;
  case 'N': return number || kind == KD_tensor;
  case 'X': return kind == KD_array || kind == KD_tensor;
  case 'C': return kind == KD_array || kind == KD_tensor || kind == KD_tuple || kind == KD_string;
  case 'i': return kind == KD_int;
  case 'b': return kind == KD_bool;
  case 's': return kind == KD_string;
  case 'F': return kind == KD_fn;
  case 'o': return kind == KD_object;
  case 'y':
  case 'g':
  case 'm':
  case 'r': return kind == KD_object && !t->model && (!t->role || t->role == letter);
  default: return true;
  }
}

static const char *sig_text(char letter) {
  switch (letter) {
  case 'T':
  case 'l': return "a tensor";
  case 'A': return "an array";
  case 'n': return "a number";
  case 'N': return "a number or a tensor";
  case 'X': return "a tensor or an array";
  case 'C': return "an array, a tuple, a string or a tensor";
  case 'i': return "an integer";
  case 'b': return "a boolean";
  case 's': return "a string";
  case 'F': return "a function";
  case 'y': return "a layer";
  case 'g': return "an optimizer of sgd_create()";
  case 'm': return "an optimizer of adam_create()";
  case 'r': return "an optimizer of rmsprop_create()";
  default: return "an object";
  }
}

static const LangType *numbers(Checker *k, const Ast *n) {
  const LangType *t = &type_none;
  for (u32 i = 0; i < n->nkid; i++) t = type_join(k->a, t, n->kid[i]->type);
  return n->nkid == 1 && t->kind == KD_tensor ? &type_float : t;
}

static const LangType *object_type(Checker *k, char role) {
  LangType *t = NEW(k->a, LangType);
  *t = (LangType){.kind = KD_object, .role = role};
  return t;
}

static const LangType *sig_result(Checker *k, const Ast *n, char letter) {
  const LangType *first = n->nkid ? n->kid[0]->type : &type_none;
  switch (letter) {
  case 'T': return &type_tensor_any;
  case 'A': return type_array(k->a, &type_any);
  case 'I': return type_array(k->a, &type_int);
  case 'D': return type_array(k->a, &type_float);
  case 'L': return type_array(k->a, &type_tensor_any);
  case 'f': return &type_float;
  case 'i': return &type_int;
  case 'b': return &type_bool;
  case 's': return &type_string;
  case 'o': return &type_object;
  case 'y':
  case 'g':
  case 'm':
  case 'r': return object_type(k, letter);
  case '_': return &type_null;
  case 'N': return first;
  case '=': return numbers(k, n);
  case '~':
    return first->kind == KD_tensor                           ? first
           : first->kind == KD_int || first->kind == KD_float ? &type_float
                                                              : &type_any;
  default: return &type_any;
  }
}

static void wrong_count(Checker *k, const Ast *n, const char *name, const Sig *g) {
  char want[48];
  if (g->more)
    snprintf(want, sizeof want, "at least %u", g->min);
  else if (g->min == g->n)
    snprintf(want, sizeof want, "exactly %u", g->n);
  else
    snprintf(want, sizeof want, "%u to %u", g->min, g->n);
  check_error(k, n, NULL, "%s() takes %s argument%s, got %u", name, want,
              g->n == 1 && !g->more && g->min == g->n ? "" : "s", n->nkid);
}

void check_arg_kinds(Checker *k, const Ast *n, const char *name, u32 row, u32 count) {
  Sig g = sig_read(builtin_info[row].sig);
  for (u32 i = 0; g.n && i < count; i++) {
    char letter = g.arg[i < g.n ? i : g.n - 1];
    bool loss = letter == 'l' && n->kid[i]->type->kind == KD_float;
    const char *hint =
        loss ? "a function that gives a loss whose gradient is wanted says -> tensor" : NULL;
    if (!sig_takes(letter, n->kid[i]->type))
      check_error(k, n->kid[i], hint, "%s() takes %s here, found %s", name, sig_text(letter),
                  lang_type_text(k->c, n->kid[i]->type));
  }
}

static const LangType *check_builtin(Checker *k, Ast *n, u32 row) {
  const BuiltinInfo *b = &builtin_info[row];
  Sig g = sig_read(b->sig);
  n->builtin = (i32)row + 1;
  if (k->report) by_name(k, n, b->args);
  for (u32 i = 0; i < n->nkid; i++) check_expr(k, n->kid[i]);
  if (n->nkid < g.min || (n->nkid > g.n && !g.more)) {
    wrong_count(k, n, b->name, &g);
    return sig_result(k, n, g.result);
  }
  check_arg_kinds(k, n, b->name, row, n->nkid);
  if (!strcmp(b->name, "push")) check_push(k, n->kid[0], n->kid[1]);
  const LangType *t = b->shape == SH_none ? NULL : shape_call(k, n, b);
  return g.result == 'T' && t ? t : sig_result(k, n, g.result);
}

void check_unused(Checker *k, const Ast *n) {
  if (!k->report || n->kind != AST_call || !n->builtin) return;
  const BuiltinInfo *b = &builtin_info[n->builtin - 1];
  Sig g = sig_read(b->sig);
  if (!g.only) return;
  StrBuf t = sb_new(k->a);
  sb_fmt(&t, "the result of %s(), its only effect, is not used", b->name);
  warn(k->c, LOC_NONE, "%s",
       script_place(k->s, n->at, sb_cstr(&t),
                    g.result == 'L' ? "write let p = ..., then w = p[0] and so on"
                                    : "write w = ... to keep it"));
}

/* ---- functions of the program ---- */

/* Checks that each symbol in the shapes of parameters has one value in this call. */
static void check_symbols(Checker *k, const Ast *n, const LangType *f) {
  Map size = map_new(k->a);
  for (u32 i = 0; i < n->nkid; i++) {
    const LangType *want = f->item[i], *have = n->kid[i]->type;
    if (want->kind != KD_tensor || !want->shaped || !want->name) continue;
    if (have->kind != KD_tensor || !have->shaped || have->rank != want->rank) continue;
    for (u32 d = 0; d < want->rank; d++) {
      if (!want->name[d] || have->dim[d] < 0) continue;
      u32 *slot = map_put(&size, want->name[d]);
      if (*slot && *slot != 1 + (u32)have->dim[d])
        check_error(k, n->kid[i], NULL, "%s is %u in this call, found %s",
                    show(k->c, want->name[d]), *slot - 1, lang_type_text(k->c, have));
      *slot = 1 + (u32)have->dim[d];
    }
  }
}

static const LangType *check_function(Checker *k, Ast *n, const LangType *f) {
  if (f->fn && k->report) by_name(k, n, fn_args(k, f->fn));
  for (u32 i = 0; i < n->nkid; i++) check_expr(k, n->kid[i]);
  if (n->nkid != f->n) {
    check_error(k, n, NULL, "Wrong number of arguments: expected %u, got %u", f->n, n->nkid);
    return f->elem;
  }
  for (u32 i = 0; i < n->nkid; i++) {
    check_assignable(k, n->kid[i], f->item[i], "the parameter is");
    n->kid[i]->to = NULL; /* the call converts, because it knows the values of shape symbols */
  }
  check_symbols(k, n, f);
  return f->elem;
}

/* Calling a model creates an object; calling the object maps a tensor to a tensor. */
static const LangType *of_model(Checker *k, const Ast *n, const LangType *t) {
  if (n->nkid != t->made) {
    check_error(k, n, NULL, "%s '%s' takes %u arguments, got %u",
                t->made ? "an object of the model" : "the model", show(k->c, t->model->name),
                t->made, n->nkid);
    return &type_any;
  }
  if (t->made) return shape_forward(k, n, t->model, n->kid[0]->type);
  LangType *object = NEW(k->a, LangType);
  *object = *t;
  object->made = true;
  return object;
}

/* A method of a model object. */
static const LangType *of_method(Checker *k, const Ast *n, const LangType *on) {
  static const struct {
    const char *name;
    u32 n;
    char result;
  } methods[] = {
#define METHOD(name, n, result, fn) {#name, n, result},
#include "lang/syntax/methods.def"
#undef METHOD
  };
  const char *name = str_text(k->c, n->a->name);
  Suggestion near = suggest_new(name);
  for (u32 i = 0; i < sizeof methods / sizeof *methods; i++) {
    suggest_try(&near, methods[i].name);
    if (strcmp(methods[i].name, name)) continue;
    if (methods[i].n != n->nkid)
      check_error(k, n->a, NULL, "%s() of a model takes %u arguments, got %u", name, methods[i].n,
                  n->nkid);
    else if (!strcmp(name, "forward"))
      return shape_forward(k, n, on->model, n->kid[0]->type);
    return sig_result(k, n, methods[i].result);
  }
  const char *hint =
      near.name ? str_text(k->c, str_fmt(k->c, "did you mean '%s'?", near.name)) : NULL;
  check_error(k, n->a, hint, "a model has no function '%s'", show(k->c, n->a->name));
  return &type_any;
}

const LangType *check_call(Checker *k, Ast *n) {
  n->builtin = 0;
  Ast *f = n->a;
  const LangType *t = NULL;
  if (f->kind == AST_name && f->name) {
    i32 row = builtin_find(str_text(k->c, f->name));
    bool own = names_find(k, f, f->name);
    if (own) t = names_type(k, f);
    bool callable = own && (t->kind == KD_fn || t->kind == KD_object || t->kind == KD_any ||
                            (t->kind == KD_none && row < 0));
    if (row >= 0 && !callable) return check_builtin(k, n, (u32)row);
    f->type = t;
  }
  if (!t) t = check_expr(k, f);
  if (t->kind == KD_fn) return check_function(k, n, t);
  for (u32 i = 0; i < n->nkid; i++) check_expr(k, n->kid[i]);
  if (t->kind == KD_object && t->model) return of_model(k, n, t);
  const LangType *on = f->kind == AST_member && !f->nplace ? f->a->type : NULL;
  if (on && on->kind == KD_object && on->model && on->made) return of_method(k, n, on);
  if (t->kind != KD_any && t->kind != KD_none && t->kind != KD_object)
    check_error(k, n, NULL, "Cannot call non-function value: %s", kind_name[t->kind]);
  return &type_any;
}
