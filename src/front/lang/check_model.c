/* check_model.c: the layers of a model.
 *
 * In: a model block. Out: errors of its layers: their names, how many sizes they take and of which
 * kind, names of activations. Sizes are expressions, names of activations are not.
 */
#include "front/lang/check.h"

#include <string.h>

#define ACTIVATION(name)
const LayerInfo layer_info[] = {
#define LAYER(name, make, least, most) {#name, #make, least, most},
#define PLAIN_LAYER(name, sizes)       {#name, NULL, sizes, sizes},
#include "front/lang/layers.def"
#undef LAYER
#undef PLAIN_LAYER
};
#undef ACTIVATION
const u32 layer_count = sizeof layer_info / sizeof *layer_info;

#define LAYER(name, make, least, most)
#define PLAIN_LAYER(name, sizes)
const char *const activation_name[] = {
#define ACTIVATION(name) #name,
#include "front/lang/layers.def"
#undef ACTIVATION
};
#undef LAYER
#undef PLAIN_LAYER
const u32 activation_count = sizeof activation_name / sizeof *activation_name;

static const char *meant(Checker *k, const Near *near) {
  return near->name ? str_text(k->c, str_fmt(k->c, "did you mean '%s'?", near->name)) : NULL;
}

static void check_activation(Checker *k, const Ast *n) {
  const char *name = n->kind == AST_name && n->name ? str_text(k->c, n->name) : "";
  Near near = near_new(name);
  for (u32 i = 0; i < activation_count; i++) {
    if (!strcmp(activation_name[i], name)) return;
    near_try(&near, activation_name[i]);
  }
  Text all = text_new(k->a);
  for (u32 i = 0; i < activation_count; i++)
    text_fmt(&all, "%s%s", i ? ", " : "", activation_name[i]);
  check_wrong(k, n, meant(k, &near), "there is no activation '%s': %s", name, text_cstr(&all));
}

static const LayerInfo *find(Checker *k, const Ast *n) {
  const char *name = str_text(k->c, n->a->name);
  Near near = near_new(name);
  for (u32 i = 0; i < layer_count; i++) {
    if (!strcmp(layer_info[i].name, name)) return &layer_info[i];
    near_try(&near, layer_info[i].name);
  }
  check_wrong(k, n, meant(k, &near), "there is no layer '%s'", show(k->c, n->a->name));
  return NULL;
}

static void check_named(Checker *k, const Ast *n, const char *layer) {
  if (str_is(k->c, n->name, "activation"))
    check_activation(k, n->a);
  else
    check_wrong(k, n, NULL, "the layer '%s' has no argument '%s'", layer, show(k->c, n->name));
}

static void check_layer(Checker *k, Ast *n) {
  const LayerInfo *l = find(k, n);
  bool word = l && !l->make;
  u32 sizes = 0;
  while (sizes < n->nkid && n->kid[sizes]->kind != AST_named) sizes++;
  for (u32 i = 0; !word && i < sizes; i++) check_expr(k, n->kid[i]);
  if (!l) return;
  if (sizes < l->least || sizes > l->most || n->nkid > sizes + 1)
    check_wrong(k, n, NULL, "the layer '%s' takes %u to %u sizes", l->name, l->least, l->most);
  else if (l->make)
    check_kinds(k, n, l->name, (u32)builtin_find(l->make), sizes);
  else if (sizes)
    check_activation(k, n->kid[0]);
  for (u32 i = sizes; i < n->nkid; i++)
    if (n->kid[i]->kind == AST_named) check_named(k, n->kid[i], l->name);
}

void check_model(Checker *k, Ast *n) {
  for (u32 i = 0; i < n->nkid; i++) check_layer(k, n->kid[i]);
}
