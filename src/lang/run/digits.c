/* digits.c: number formatting of print and str. */
#include "lang/run/digits.h"
#include "lang/run/tensor.h"

static void put_number(StrBuf *out, double x, bool exponent, bool whole) {
  char text[NUMBER_ROOM];
  sb_put(out, text, (size_t)number_text(text, x, exponent, whole));
}

void show_float(StrBuf *out, double x, bool exponent) {
  put_number(out, x, exponent, false);
}

void show_number(StrBuf *out, double x) {
  put_number(out, x, false, true);
}
