/* types.c: static types of values.
 *
 * Types form a lattice: `none` at the bottom, `any` at the top, int below float. Arrays and tuples
 * are ordered like their elements. Tensors hold floats; their shapes are known as far as annotated.
 */
#include "lang/syntax/lang.h"

#include <string.h>

const char *const kind_name[KD_COUNT] = {
#define KIND(name, text) text,
#include "lang/syntax/kinds.def"
#undef KIND
};

const LangType type_any = {.kind = KD_any}, type_null = {.kind = KD_null},
               type_int = {.kind = KD_int}, type_float = {.kind = KD_float},
               type_bool = {.kind = KD_bool}, type_string = {.kind = KD_string},
               type_none = {.kind = KD_none}, type_tensor_any = {.kind = KD_tensor},
               type_object = {.kind = KD_object};

static u32 depth(const LangType *t) {
  u32 most = 0;
  if (t->kind == KD_array && t->elem) return 1 + depth(t->elem);
  for (u32 i = 0; t->kind == KD_tuple && i < t->n; i++) {
    u32 d = depth(t->item[i]);
    if (d > most) most = d;
  }
  return t->kind == KD_tuple ? most + 1 : 0;
}

const LangType *type_array(Arena *a, const LangType *elem) {
  LangType *t = NEW(a, LangType);
  t->kind = KD_array;
  t->elem = depth(elem) >= TYPE_DEPTH ? &type_any : elem;
  return t;
}

static bool same_shape(const LangType *x, const LangType *y) {
  if (x->shaped != y->shaped || x->rank != y->rank) return false;
  for (u32 i = 0; x->shaped && i < x->rank; i++) {
    Str p = x->name ? x->name[i] : 0, q = y->name ? y->name[i] : 0;
    if (x->dim[i] != y->dim[i] || p != q) return false;
  }
  return true;
}

bool type_same(const LangType *x, const LangType *y) {
  if (x == y) return true;
  if (x->kind != y->kind) return false;
  if (x->kind == KD_tensor) return same_shape(x, y);
  if (x->kind == KD_array) return type_same(x->elem, y->elem);
  if (x->kind == KD_struct) return struct_same(x->of, y->of);
  if (x->kind == KD_object) return x->model == y->model && x->made == y->made && x->role == y->role;
  if (x->kind == KD_module) return x->module == y->module;
  if (x->kind != KD_tuple && x->kind != KD_fn) return true;
  if (x->n != y->n) return false;
  for (u32 i = 0; i < x->n; i++)
    if (!type_same(x->item[i], y->item[i])) return false;
  return x->kind == KD_tuple || x->fn == y->fn;
}

static const LangType *join_tuples(Arena *a, const LangType *x, const LangType *y) {
  LangType *t = NEW(a, LangType);
  if (x->n != y->n) return &type_any;
  t->kind = KD_tuple;
  t->n = x->n;
  t->item = NEWS(a, const LangType *, x->n + 1);
  for (u32 i = 0; i < x->n; i++) t->item[i] = type_join(a, x->item[i], y->item[i]);
  return t;
}

/* Two functions with the same parameters: which one is called is known only at run time. */
static const LangType *join_fns(Arena *a, const LangType *x, const LangType *y) {
  if (x->n != y->n) return &type_any;
  for (u32 i = 0; i < x->n; i++)
    if (!type_same(x->item[i], y->item[i])) return &type_any;
  LangType *t = NEW(a, LangType);
  *t = (LangType){.kind = KD_fn, .n = x->n, .item = x->item, .elem = &type_any};
  return t;
}

const LangType *type_join(Arena *a, const LangType *x, const LangType *y) {
  if (x->kind == KD_none || type_same(x, y)) return y;
  if (y->kind == KD_none) return x;
  if ((x->kind == KD_int && y->kind == KD_float) || (x->kind == KD_float && y->kind == KD_int))
    return &type_float;
  if (x->kind != y->kind) return &type_any;
  if (x->kind == KD_array) return type_array(a, type_join(a, x->elem, y->elem));
  if (x->kind == KD_tuple && depth(x) < TYPE_DEPTH) return join_tuples(a, x, y);
  if (x->kind == KD_object) return &type_object;
  if (x->kind == KD_fn) return join_fns(a, x, y);
  return x->kind == KD_tensor ? &type_tensor_any : &type_any;
}

/* True for numbers and nested arrays of numbers. */
static bool is_numeric(const LangType *t) {
  while (t->kind == KD_array) t = t->elem;
  return t->kind == KD_int || t->kind == KD_float || t->kind == KD_any || t->kind == KD_none;
}

static bool shape_fits(const LangType *x, const LangType *y) {
  if (!x->shaped || !y->shaped) return true;
  if (x->rank != y->rank) return false;
  for (u32 i = 0; i < x->rank; i++)
    if (x->dim[i] >= 0 && y->dim[i] >= 0 && x->dim[i] != y->dim[i]) return false;
  return true;
}

bool type_assignable(const LangType *x, const LangType *y) {
  if (x->kind == KD_any || y->kind == KD_any || x->kind == KD_none || y->kind == KD_none)
    return true;
  if ((x->kind == KD_int || x->kind == KD_tensor) && y->kind == KD_float) return true;
  if (x->kind == KD_array && y->kind == KD_tensor) return is_numeric(x);
  if (x->kind != y->kind) return false;
  if (x->kind == KD_array) return type_assignable(x->elem, y->elem);
  if (x->kind == KD_struct) return struct_same(x->of, y->of);
  if (x->kind == KD_tensor) return shape_fits(x, y);
  if (x->kind != KD_tuple && x->kind != KD_fn) return true;
  if (x->n != y->n) return x->kind == KD_fn && (!x->fn || !y->fn) && x->n == UINT32_MAX;
  for (u32 i = 0; i < x->n; i++)
    if (!type_assignable(x->item[i], y->item[i])) return false;
  return true;
}

static bool is_number(const LangType *t) {
  return t->kind == KD_int || t->kind == KD_float || t->kind == KD_tensor;
}

bool type_compatible(const LangType *x, const LangType *y) {
  if (x->kind == KD_any || y->kind == KD_any || x->kind == KD_none || y->kind == KD_none)
    return true;
  if (is_number(x) && is_number(y)) return true;
  if (x->kind != y->kind) return false;
  if (x->kind == KD_array) return type_compatible(x->elem, y->elem);
  if (x->kind == KD_struct) return struct_same(x->of, y->of);
  if (x->kind == KD_fn) return type_assignable(x, y) || type_assignable(y, x);
  if (x->kind != KD_tuple) return true;
  bool mixes = x->n == y->n;
  for (u32 i = 0; mixes && i < x->n; i++) mixes = type_compatible(x->item[i], y->item[i]);
  return mixes;
}

static void put(Ctx *c, const LangType *t, StrBuf *out) {
  switch (t->kind) {
  case KD_array:
    sb_puts(out, "[");
    put(c, t->elem, out);
    sb_puts(out, "]");
    return;
  case KD_tuple:
  case KD_fn:
    sb_puts(out, t->kind == KD_fn ? "fn(" : "(");
    for (u32 i = 0; i < t->n; i++) {
      if (i) sb_puts(out, ", ");
      put(c, t->item[i], out);
    }
    sb_puts(out, ")");
    if (t->kind == KD_fn && t->elem && t->elem->kind != KD_fn && t->elem->kind != KD_none) {
      sb_puts(out, " -> ");
      put(c, t->elem, out);
    }
    return;
  case KD_tensor:
    sb_puts(out, "tensor");
    for (u32 i = 0; t->shaped && i < t->rank; i++) {
      sb_puts(out, i ? ", " : "<float64, [");
      if (t->name && t->name[i])
        sb_puts(out, str_text(c, t->name[i]));
      else if (t->dim[i] >= 0)
        sb_fmt(out, "%lld", (long long)t->dim[i]);
      else
        sb_puts(out, "?");
    }
    if (t->shaped) sb_puts(out, t->rank ? "]>" : "<float64, []>");
    return;
  case KD_struct: sb_puts(out, t->of->text); return;
  case KD_object:
    sb_puts(out, t->model         ? str_text(c, t->model->name)
                 : t->role == 'y' ? "layer"
                 : t->role        ? "optimizer"
                                  : "object");
    return;
  default: sb_puts(out, kind_name[t->kind]);
  }
}

const char *lang_type_text(Ctx *c, const LangType *t) {
  StrBuf out = sb_new(&c->scratch);
  put(c, t, &out);
  return sb_cstr(&out);
}
