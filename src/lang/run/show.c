/* show.c: text form of values, for print and str. */
#include "lang/run/tensor.h"

/* Shows the fields of a struct with their names. */
static void show_list(Eval *ev, const ListObj *l, const char *open, const char *close,
                      StrBuf *out) {
  if (ev->depth > EVAL_DEPTH) eval_fail(ev, ev->at, "arrays are nested too deeply to show");
  ev->depth++;
  sb_puts(out, open);
  for (u64 i = 0; i < l->n; i++) {
    if (i) sb_puts(out, ", ");
    if (l->of) sb_fmt(out, "%s: ", struct_field_text(ev, l->of, i));
    value_show(ev, &l->at[i], out);
  }
  sb_puts(out, close);
  ev->depth--;
}

void value_show(Eval *ev, const LangValue *d, StrBuf *out) {
  switch (d->kind) {
  case KD_int: size_show(ev, d->u.i, out); return;
  case KD_float: show_float(out, d->u.f, false); return;
  case KD_bool: sb_puts(out, d->u.i ? "true" : "false"); return;
  case KD_string: sb_put(out, d->u.text->at, d->u.text->n); return;
  case KD_array: show_list(ev, d->u.list, "[", "]", out); return;
  case KD_tuple: show_list(ev, d->u.list, "(", ")", out); return;
  case KD_struct:
    sb_puts(out, d->u.list->of->text);
    show_list(ev, d->u.list, " { ", " }", out);
    return;
  case KD_fn: sb_puts(out, "<function>"); return;
  case KD_tensor: lazy_show(ev, d->u.lazy, out); return;
  case KD_object: object_show(ev, d->u.thing, out); return;
  default: sb_puts(out, "null");
  }
}
