/* class.c: the class that a `model` block defines: layers with sizes. */
#include "lang/run/lang_code.h"
#include "lang/run/lang_object.h"

/* The checker verified names and sizes of layers. */
static void add_activation(Eval *ev, LangObject *m, const Ast *n) {
  LangObject *t = object_new(ev, OBJ_activation);
  u32 i = 0;
  while (i + 1 < activation_count && !str_is(ev->c, n->name, activation_name[i])) i++;
  t->num[0] = i;
  model_add(m, t);
}

/* Adds a layer with its sizes and its activation, which is a named argument. */
void class_add(Eval *ev, LangObject *m, const Ast *n, LangValue *size, u32 count) {
  LangValue out;
  u32 row = 0;
  while (row + 1 < layer_count && !str_is(ev->c, n->a->name, layer_info[row].name)) row++;
  const LayerInfo *l = &layer_info[row];
  if (l->make) {
    ev->at = n;
    builtin_fn[builtin_find(l->make)](ev, size, count, &out);
    model_add(m, out.u.thing);
  } else if (count) {
    add_activation(ev, m, n->kid[0]);
  } else {
    model_add(m, object_new(ev, OBJ_flatten));
  }
  if (n->nkid > count) add_activation(ev, m, n->kid[count]->a);
}

LangValue class_new(Eval *ev, const Ast *n) {
  LangObject *m = object_new(ev, OBJ_class);
  m->name = str_text(ev->c, n->name);
  model_reserve(ev, m, 2 * n->nkid); /* each may have an activation */
  return value_object(m);
}
