/* show.c: values as print and str show them.
 *
 * Floats have the shortest digits that read back, a point, and never an exponent; in tensors those
 * below 1e-4 and from 1e16 on have one. Method: as few digits of %e as give the same number.
 */
#include "lang/own.h"
#include "lang/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 17 };

/* Digits of |x| without point, and the place of the point behind the first of them. */
static int digits_of(double x, char *to, int *power) {
  char text[40];
  for (int n = 0; n < DIGITS; n++) {
    snprintf(text, sizeof text, "%.*e", n, fabs(x));
    if (strtod(text, NULL) == fabs(x) || n + 1 == DIGITS) break;
  }
  const char *e = strchr(text, 'e');
  int n = 0;
  for (const char *s = text; s < e; s++)
    if (*s != '.') to[n++] = *s;
  while (n > 1 && to[n - 1] == '0') n--;
  to[n] = 0;
  *power = (int)strtol(e + 1, NULL, 10);
  return n;
}

static void plain(Text *out, const char *digit, int n, int power, bool whole) {
  if (power < 0) {
    text_puts(out, "0.");
    for (int i = -1; i > power; i--) text_puts(out, "0");
    text_put(out, digit, (size_t)n);
    return;
  }
  for (int i = 0; i <= power || i < n; i++) {
    if (i == power + 1) text_puts(out, ".");
    text_put(out, i < n ? &digit[i] : "0", 1);
  }
  if (n <= power + 1 && !whole) text_puts(out, ".0");
}

static bool special(Text *out, double x) {
  if (isnan(x)) text_puts(out, "NaN");
  if (isinf(x)) text_puts(out, x < 0 ? "-inf" : "inf");
  return isnan(x) || isinf(x);
}

static void put_number(Text *out, double x, bool exponent, bool whole) {
  char digit[DIGITS + 8];
  int power;
  if (special(out, x)) return;
  if (signbit(x)) text_puts(out, "-");
  int n = digits_of(x, digit, &power);
  if (!exponent || x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e16)) {
    plain(out, digit, n, power, whole);
    return;
  }
  text_put(out, digit, 1);
  if (n > 1) text_fmt(out, ".%s", digit + 1);
  text_fmt(out, "e%d", power);
}

void show_float(Text *out, double x, bool exponent) {
  put_number(out, x, exponent, false);
}

void show_number(Text *out, double x) {
  put_number(out, x, false, true);
}

static void show_list(Eval *ev, const BoxList *l, const char *around, Text *out) {
  if (ev->depth > EVAL_DEPTH) eval_fail(ev, ev->at, "arrays are nested too deeply to show");
  ev->depth++;
  text_put(out, around, 1);
  for (u64 i = 0; i < l->n; i++) {
    if (i) text_puts(out, ", ");
    show_worth(ev, &l->at[i], out);
  }
  text_put(out, around + 1, 1);
  ev->depth--;
}

void show_worth(Eval *ev, const Worth *d, Text *out) {
  switch (d->kind) {
  case KD_int: text_fmt(out, "%lld", (long long)d->u.i); return;
  case KD_float: show_float(out, d->u.f, false); return;
  case KD_bool: text_puts(out, d->u.i ? "true" : "false"); return;
  case KD_string: text_put(out, d->u.text->at, d->u.text->n); return;
  case KD_array: show_list(ev, d->u.list, "[]", out); return;
  case KD_tuple: show_list(ev, d->u.list, "()", out); return;
  case KD_fn: text_puts(out, "<function>"); return;
  case KD_tensor: lazy_show(ev, d->u.lazy, out); return;
  case KD_object: thing_show(ev, d->u.thing, out); return;
  default: text_puts(out, "null");
  }
}
