/* check_model.c: checks the layers of a model.
 *
 * In: a model block. Out: errors about layer names, the number and kinds of sizes, and activation
 * names. Sizes are expressions; activation names are literals.
 */
#include "lang/syntax/check.h"

#include <string.h>

enum { LAYER_SIZES = 5 };

#define ACTIVATION(name)
const LayerInfo layer_info[] = {
#define LAYER(name, make, min, max) {#name, #make, min, max},
#define PLAIN_LAYER(name, sizes)    {#name, NULL, sizes, sizes},
#include "lang/syntax/layers.def"
#undef LAYER
#undef PLAIN_LAYER
};
#undef ACTIVATION
const u32 layer_count = sizeof layer_info / sizeof *layer_info;

#define LAYER(name, make, min, max)
#define PLAIN_LAYER(name, sizes)
const char *const activation_name[] = {
#define ACTIVATION(name) #name,
#include "lang/syntax/layers.def"
#undef ACTIVATION
};
#undef LAYER
#undef PLAIN_LAYER
const u32 activation_count = sizeof activation_name / sizeof *activation_name;

static const char *suggestion(Checker *k, const Suggestion *near) {
  return near->name ? str_text(k->c, str_fmt(k->c, "did you mean '%s'?", near->name)) : NULL;
}

static void check_activation(Checker *k, const Ast *n) {
  const char *name = n->kind == AST_name && n->name ? str_text(k->c, n->name) : "";
  Suggestion near = suggest_new(name);
  for (u32 i = 0; i < activation_count; i++) {
    if (!strcmp(activation_name[i], name)) return;
    suggest_try(&near, activation_name[i]);
  }
  StrBuf all = sb_new(k->a);
  for (u32 i = 0; i < activation_count; i++)
    sb_fmt(&all, "%s%s", i ? ", " : "", activation_name[i]);
  check_error(k, n, suggestion(k, &near), "unknown activation '%s', expected one of %s", name,
              sb_cstr(&all));
}

static const LayerInfo *find(Checker *k, const Ast *n) {
  const char *name = str_text(k->c, n->a->name);
  Suggestion near = suggest_new(name);
  for (u32 i = 0; i < layer_count; i++) {
    if (!strcmp(layer_info[i].name, name)) return &layer_info[i];
    suggest_try(&near, layer_info[i].name);
  }
  check_error(k, n, suggestion(k, &near), "unknown layer '%s'", show(k->c, n->a->name));
  return NULL;
}

static void check_named(Checker *k, const Ast *n, const char *layer) {
  if (str_is(k->c, n->name, "activation"))
    check_activation(k, n->a);
  else
    check_error(k, n, NULL, "the layer '%s' has no argument '%s'", layer, show(k->c, n->name));
}

static void check_layer(Checker *k, Ast *n) {
  const LayerInfo *l = find(k, n);
  bool word = l && !l->make;
  u32 sizes = 0;
  while (sizes < n->nkid && n->kid[sizes]->kind != AST_named) sizes++;
  for (u32 i = 0; !word && i < sizes; i++) check_expr(k, n->kid[i]);
  if (!l) return;
  if (sizes < l->min || sizes > l->max || n->nkid > sizes + 1)
    check_error(k, n, NULL, "the layer '%s' takes %u to %u sizes", l->name, l->min, l->max);
  else if (l->make)
    check_arg_kinds(k, n, l->name, (u32)builtin_find(l->make), sizes);
  else if (sizes)
    check_activation(k, n->kid[0]);
  for (u32 i = sizes; i < n->nkid; i++)
    if (n->kid[i]->kind == AST_named) check_named(k, n->kid[i], l->name);
}

void check_model(Checker *k, Ast *n) {
  for (u32 i = 0; i < n->nkid; i++) check_layer(k, n->kid[i]);
}

/* ---- shapes through the layers of an object ---- */

/* Reads the sizes of a layer; -1 if one is not a literal. Returns their number. */
static u32 sizes_of(const Ast *n, i64 *size) {
  u32 count = 0;
  while (count < n->nkid && n->kid[count]->kind != AST_named) count++;
  for (u32 i = 0; i < LAYER_SIZES; i++)
    size[i] = i < count && n->kid[i]->kind == AST_int ? n->kid[i]->i : -1;
  return count;
}

/* Number of windows, or -1 if unknown or 0. */
static i64 windows(i64 extent, i64 kernel, i64 stride, i64 pad) {
  if (extent < 0 || kernel < 1 || stride < 1 || pad < 0 || kernel > extent + 2 * pad) return -1;
  return (extent + 2 * pad - kernel) / stride + 1;
}

typedef struct ShapeState { /* a tensor shape; -1: unknown extent */
  i64 dim[MAX_RANK + 1];
  u32 rank;
} ShapeState;

/* True if the axis exists and its extent is not known to differ from `want`. */
static bool has(const ShapeState *x, u32 axis, i64 want) {
  return axis < x->rank && (want < 0 || x->dim[axis] < 0 || x->dim[axis] == want);
}

static bool pass_images(ShapeState *x, i64 channels, i64 kernel, i64 stride, i64 pad) {
  if (x->rank != 4) return false;
  if (channels >= 0) x->dim[1] = channels;
  for (u32 i = 2; i < 4; i++) {
    bool small = kernel > 0 && pad >= 0 && x->dim[i] >= 0 && kernel > x->dim[i] + 2 * pad;
    if (small) return false;
    x->dim[i] = windows(x->dim[i], kernel, stride, pad);
  }
  return true;
}

/* Applies one layer to the shape. False if the layer does not accept it. */
static bool pass_layer(const Ast *n, const char *name, ShapeState *x) {
  i64 size[LAYER_SIZES];
  u32 given = sizes_of(n, size);
  u32 last = x->rank - 1;
  if (!strcmp(name, "dense") || !strcmp(name, "linear"))
    return has(x, last, size[0]) && (x->dim[last] = size[1], true);
  if (!strcmp(name, "layernorm")) return has(x, last, size[0]);
  if (!strcmp(name, "batchnorm")) return has(x, 1, size[0]);
  if (!strcmp(name, "lstm") || !strcmp(name, "gru"))
    return x->rank == 3 && has(x, 2, size[0]) && (x->dim[2] = size[1], true);
  if (!strcmp(name, "conv2d"))
    return has(x, 1, size[0]) &&
           pass_images(x, size[1], size[2], given > 3 ? size[3] : 1, given > 4 ? size[4] : 0);
  if (strstr(name, "pool2d")) return pass_images(x, -1, size[0], given > 1 ? size[1] : size[0], 0);
  if (!strcmp(name, "flatten")) {
    i64 all = 1;
    for (u32 i = 1; i < x->rank; i++) all = all < 0 || x->dim[i] < 0 ? -1 : all * x->dim[i];
    x->dim[1] = all;
    if (!x->rank) x->dim[0] = 1;
    x->rank = 2;
  }
  return true;
}

const LangType *shape_forward(Checker *k, const Ast *at, const Ast *model, const LangType *t) {
  if (t->kind != KD_tensor || !t->shaped) return &type_tensor_any;
  ShapeState x = {.rank = t->rank};
  memcpy(x.dim, t->dim, t->rank * sizeof *t->dim);
  for (u32 i = 0; i < model->nkid; i++) {
    const Ast *n = model->kid[i];
    const char *name = n->a->name ? str_text(k->c, n->a->name) : "";
    LangType before = {.kind = KD_tensor, .shaped = true, .rank = x.rank};
    before.dim = arena_copy(k->a, x.dim, sizeof x.dim);
    if (pass_layer(n, name, &x)) continue;
    check_error(k, at, NULL, "the layer %s of line %u does not take %s", name,
                script_line(k->s->all->at[n->file], n->at), lang_type_text(k->c, &before));
    return &type_tensor_any;
  }
  LangType *out = NEW(k->a, LangType);
  *out = (LangType){.kind = KD_tensor, .shaped = true, .rank = x.rank};
  out->dim = arena_copy(k->a, x.dim, sizeof x.dim);
  return out;
}
