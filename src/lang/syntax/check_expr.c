/* check_expr.c: computes the types of expressions.
 *
 * In: the tree of an expression. Out: a type for every node. Operations that fail for all values
 * are errors here. Operations that depend on values are checked at run time.
 */
#include "lang/syntax/check.h"

#include <string.h>

/* Maximum number of errors per file that get a "did you mean" suggestion. */
enum { NEAR_ERRORS = 100 };

static bool is_number(const LangType *t) {
  return t->kind == KD_int || t->kind == KD_float;
}

/* True if the type is unknown. */
static bool is_open(const LangType *t) {
  return t->kind == KD_any || t->kind == KD_none;
}

/* True if a value of type x needs a conversion to y. */
static bool needs_conversion(const LangType *x, const LangType *y) {
  if (y->kind == KD_float) return x->kind != KD_float;
  if (y->kind == KD_tensor) return x->kind != KD_tensor || y->shaped;
  if (y->kind == KD_array)
    return x->kind != KD_array || (!type_same(x, y) && needs_conversion(x->elem, y->elem));
  if (y->kind == KD_tuple && x->kind == KD_tuple && x->n == y->n)
    for (u32 i = 0; i < y->n; i++)
      if (needs_conversion(x->item[i], y->item[i])) return true;
  return y->kind != KD_any && x->kind == KD_any; /* checked at run time */
}

void check_assignable(Checker *k, Ast *n, const LangType *to, const char *what) {
  const LangType *t = n->type ? n->type : &type_any;
  const LangType *as = to->kind == KD_tensor && t->kind == KD_array ? shape_data(k, n) : t;
  if (!type_assignable(t, to) || !type_assignable(as, to)) {
    if (type_assignable(t, to)) t = as;
    const char *hint = t->kind == KD_float && to->kind == KD_int ? "x as int32 drops the fraction"
                       : to->kind == KD_string                   ? "str(x) makes a string of it"
                                                                 : NULL;
    const char *want =
        arena_copy(k->a, lang_type_text(k->c, to), strlen(lang_type_text(k->c, to)) + 1);
    check_error(k, n, hint, "%s %s, found %s", what, want, lang_type_text(k->c, t));
    return;
  }
  if (to->kind != KD_none && needs_conversion(t, to)) n->to = to;
}

/* ---- names and literals ---- */

/* Functions of Charl that are not supported. */
static bool refused(Checker *k, const Ast *n, const char *name) {
  static const struct {
    const char *begin, *what;
  } table[] = {{"kg_", "knowledge graphs"},
               {"entity_", "knowledge graphs"},
               {"triple_", "knowledge graphs"},
               {"gnn_", "graph networks"},
               {"fol_", "logic"},
               {"fuzzy_", "fuzzy logic"},
               {"concept_", "concepts"},
               {"cot_", "chains of thought"},
               {"tot_", "trees of thought"},
               {"causal_", "causal models"},
               {"clip_", "multimodal models"},
               {"scene_", "multimodal models"},
               {"vqa_", "multimodal models"},
               {"maml_", "meta-learning"},
               {"episode_", "meta-learning"},
               {"quantize_", "quantization"},
               {"mamba_", "state space layers"},
               {"rwkv_", "sequence layers"}};
  for (u32 i = 0; i < sizeof table / sizeof *table; i++) {
    if (strncmp(table[i].begin, name, strlen(table[i].begin))) continue;
    if (!k->report) return true;
    StrBuf t = sb_new(k->a);
    sb_fmt(&t, "%s is not supported: ingot does not have %s", name, table[i].what);
    k->s->nerror++;
    diag(k->c, ERR_unsupported, LOC_NONE, "%s", script_place(k->s, n->at, sb_cstr(&t), NULL));
    return true;
  }
  return false;
}

/* A hint for idioms of other languages, or NULL. */
static const char *hint_for(Checker *k, Str name) {
  const char *text = str_text(k->c, name);
  if (!strcmp(text, "null") || !strcmp(text, "None") || !strcmp(text, "nil"))
    return "the language has no null literal; a function without a value returns null";
  if (!strcmp(text, "import")) return "import \"FILE.ch\" as NAME";
  if (struct_type(k, 0, name)) return "a struct is made by Name { field: value, .. }";
  return NULL;
}

static const LangType *check_name(Checker *k, Ast *n) {
  if (!n->name) return &type_any; /* the parser reported an error */
  if (!names_find(k, n, n->name)) {
    const char *name = str_text(k->c, n->name);
    Suggestion near = suggest_new(name);
    if (k->report && k->s->nerror < NEAR_ERRORS) names_suggest(k, &near);
    if (builtin_find(name) >= 0) {
      check_error(k, n, "a built-in function can be called, but not used as a value",
                  "%s is a built-in function", show(k->c, n->name));
      return &type_any;
    }
    if (refused(k, n, name)) return &type_any;
    const char *hint = near.name && strcmp(near.name, name) ? near.name : NULL;
    StrBuf t = sb_new(k->a);
    if (hint) sb_fmt(&t, "did you mean '%s'?", hint);
    const char *habit = hint_for(k, n->name);
    check_error(k, n,
                habit  ? habit
                : hint ? sb_cstr(&t)
                       : NULL,
                "Undefined variable: %s", show(k->c, n->name));
    return &type_any;
  }
  const LangType *t = names_type(k, n);
  if (t->kind == KD_module) {
    check_error(k, n, "write name.thing for a definition of the module",
                "'%s' is a module, not a value", show(k->c, n->name));
    return &type_any;
  }
  bool here = t->kind == KD_none && !k->in->loops && !k->in->outer;
  if (here && n->place[0].kind == VR_global && !slot_get(&k->in->cur, n->place[0].slot)) {
    check_error(k, n, "it is defined further below", "Undefined variable: %s", show(k->c, n->name));
    return &type_any;
  }
  return t;
}

static const LangType *check_array(Checker *k, Ast *n) {
  const LangType *t = &type_none;
  for (u32 i = 0; i < n->nkid; i++) t = type_join(k->a, t, check_expr(k, n->kid[i]));
  for (u32 i = 0; i < n->nkid; i++) check_assignable(k, n->kid[i], t, "elements are");
  return type_array(k->a, t);
}

static const LangType *check_tuple(Checker *k, Ast *n) {
  LangType *t = NEW(k->a, LangType);
  t->kind = KD_tuple;
  t->n = n->nkid;
  t->item = NEWS(k->a, const LangType *, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) t->item[i] = check_expr(k, n->kid[i]);
  return t;
}

static void want_number(Checker *k, Ast *n, const char *what) {
  const LangType *t = check_expr(k, n);
  if (!is_number(t) && !is_open(t))
    check_error(k, n, NULL, "%s is a number, found %s", what, lang_type_text(k->c, t));
}

static const char *verb(Tok op) {
  switch (op) {
  case TOK_add: return "add";
  case TOK_sub: return "subtract";
  case TOK_mul: return "multiply";
  case TOK_div: return "divide";
  case TOK_mod: return "modulo";
  case TOK_at: return "multiply";
  default: return "compare";
  }
}

static const LangType *bad_operands(Checker *k, const Ast *n, const LangType *x,
                                    const LangType *y) {
  bool text = n->op == TOK_add && (x->kind == KD_string || y->kind == KD_string);
  const char *hint = text ? "str(x) makes a string of any value"
                     : n->op == TOK_add && (x->kind == KD_array || y->kind == KD_array)
                         ? "a + [x] appends an element"
                         : NULL;
  check_error(k, n, hint, "Cannot %s %s and %s", verb(n->op), kind_name[x->kind],
              kind_name[y->kind]);
  return &type_none; /* suppresses follow-up errors */
}

static const LangType *arithmetic(Checker *k, Ast *n, const LangType *x, const LangType *y) {
  if (x->kind == KD_any || y->kind == KD_any) return &type_any;
  if (is_open(x) || is_open(y)) return &type_none;
  bool tensors = x->kind == KD_tensor || y->kind == KD_tensor;
  if (tensors && n->op != TOK_mod && (x->kind == KD_tensor || is_number(x)) &&
      (y->kind == KD_tensor || is_number(y)))
    return n->op == TOK_at ? shape_matmul(k, n, "@", x, y)
                           : shape_broadcast(k, n, tok_text[n->op], x, y);
  if (n->op == TOK_at) return bad_operands(k, n, x, y);
  if (n->op == TOK_mod)
    return x->kind == KD_int && y->kind == KD_int ? x : bad_operands(k, n, x, y);
  if (is_number(x) && is_number(y)) return type_join(k->a, x, y);
  if (n->op != TOK_add || x->kind != y->kind) return bad_operands(k, n, x, y);
  if (x->kind == KD_string) return x;
  if (x->kind != KD_array) return bad_operands(k, n, x, y);
  const LangType *t = type_join(k->a, x, y);
  check_assignable(k, n->a, t, "elements are");
  check_assignable(k, n->b, t, "elements are");
  return t;
}

/* A tensor and an array compare element by element, all other values as a whole. */
static const LangType *equality(const LangType *x, const LangType *y) {
  if (x->kind == KD_array || y->kind == KD_tensor) {
    const LangType *swap = x;
    x = y;
    y = swap;
  }
  if (x->kind == KD_tensor && y->kind == KD_array) return x;
  bool may = is_open(y) ? x->kind == KD_tensor || is_open(x) : y->kind == KD_array && is_open(x);
  return may ? &type_any : &type_bool;
}

static const LangType *check_binary(Checker *k, Ast *n) {
  const LangType *x = check_expr(k, n->a), *y = check_expr(k, n->b);
  switch (n->op) {
  case TOK_and:
  case TOK_or: return &type_bool;
  case TOK_eq:
  case TOK_ne: return equality(x, y);
  case TOK_lt:
  case TOK_le:
  case TOK_gt:
  case TOK_ge: {
    bool fine = is_open(x) || is_open(y) ||
                ((is_number(x) || x->kind == KD_tensor) && (is_number(y) || y->kind == KD_tensor));
    if (!fine) bad_operands(k, n, x, y);
    return &type_bool;
  }
  default: return arithmetic(k, n, x, y);
  }
}

static const LangType *check_unary(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a);
  if (n->op == TOK_not) return &type_bool;
  if (is_number(t) || is_open(t) || t->kind == KD_tensor) return t;
  check_error(k, n, NULL, "Cannot negate %s", kind_name[t->kind]);
  return &type_any;
}

static const LangType *check_cast(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a), *to = type_by_name(str_text(k->c, n->name));
  if (!to || (!is_number(to) && to->kind != KD_bool)) {
    check_error(k, n, "casts are to int32, int64, float32, float64 and bool",
                "Unknown cast target type: %s", show(k->c, n->name));
    return &type_any;
  }
  if (!is_number(t) && !is_open(t) && t->kind != KD_bool && t->kind != KD_tensor)
    check_error(k, n, NULL, "Cannot cast %s to %s", kind_name[t->kind], show(k->c, n->name));
  return to;
}

static const LangType *check_index(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a), *i = check_expr(k, n->b);
  if (i->kind != KD_int && i->kind != KD_array && !is_open(i))
    check_error(k, n->b, i->kind == KD_float ? "x as int32 drops the fraction" : NULL,
                "Index must be an integer or range, got %s", kind_name[i->kind]);
  if (t->kind == KD_array && i->kind == KD_int) return t->elem;
  if (t->kind == KD_array) return i->kind == KD_array ? t : &type_any;
  if (t->kind != KD_tensor && !is_open(t))
    check_error(k, n, NULL, "Cannot index into %s", kind_name[t->kind]);
  return &type_any;
}

static const LangType *check_item(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a);
  if (t->kind == KD_array) return t->elem;
  if (t->kind == KD_tuple && n->i >= 0 && (u64)n->i < t->n) return t->item[n->i];
  if (t->kind == KD_tuple)
    check_error(k, n, NULL, "Tuple index out of bounds: index %lld on tuple of length %u",
                (long long)n->i, t->n);
  else if (!is_open(t))
    check_error(k, n, NULL, "Cannot index type %s with tuple index syntax", kind_name[t->kind]);
  return &type_any;
}

static const LangType *check_match(Checker *k, Ast *n) {
  const LangType *t = check_expr(k, n->a), *all = &type_none;
  u32 mark = state_mark(k);
  SlotChanges *after = NEWS(k->a, SlotChanges, n->nkid + 1);
  for (u32 i = 0; i < n->nkid; i++) {
    Ast *arm = n->kid[i];
    Asts body = {0};
    names_collect(k, arm->b, &body);
    names_open(k, arm, NULL);
    if (arm->a && arm->a->kind == AST_name) {
      arm->a->slot = names_define(k, arm->a->name);
      bind_join(k, bind_of(k, arm->a, arm->a->slot), t);
    }
    for (u32 j = 0; j < body.n; j++) body.at[j]->slot = names_define(k, body.at[j]->name);
    all = type_join(k->a, all,
                    arm->b->kind == AST_block ? check_block(k, arm->b) : check_expr(k, arm->b));
    names_close(k, arm);
    after[i] = state_rollback(k, mark);
  }
  for (u32 i = 0; i < n->nkid; i++) state_join(k, &after[i]);
  n->to = all->kind == KD_float ? all : NULL;
  return all;
}

static const LangType *plain(Checker *k, Ast *n) {
  switch (n->kind) {
  case AST_name: return check_name(k, n);
  case AST_int: return &type_int;
  case AST_float: return &type_float;
  case AST_string: return &type_string;
  case AST_bool: return &type_bool;
  case AST_array: return check_array(k, n);
  case AST_repeat:
    want_number(k, n->b, "how often a value is repeated");
    return type_array(k->a, check_expr(k, n->a));
  case AST_tuple: return check_tuple(k, n);
  case AST_match: return check_match(k, n);
  case AST_unary: return check_unary(k, n);
  case AST_binary: return check_binary(k, n);
  case AST_range:
    want_number(k, n->a, "the start of a range");
    want_number(k, n->b, "the end of a range");
    return type_array(k->a, &type_int);
  case AST_cast: return check_cast(k, n);
  case AST_call: return check_call(k, n);
  case AST_named: return check_expr(k, n->a);
  case AST_index: return check_index(k, n);
  case AST_item: return check_item(k, n);
  case AST_member: return check_member(k, n);
  case AST_record: return check_record(k, n);
  case AST_fn: return check_fn(k, n);
  case AST_if: return check_if(k, n, true);
  default: return &type_any;
  }
}

const LangType *check_expr(Checker *k, Ast *n) {
  n->to = NULL;
  const LangType *t = plain(k, n);
  return n->type = n->to ? n->to : t;
}
