/* digits.h: number formatting. Also compiled into programs.
 *
 * Floats have the shortest digits that read back, a decimal point and no exponent. In tensors,
 * values below 1e-4 or from 1e16 on have an exponent. Method: try %e with increasing precision.
 */
#ifndef INGOT_LANG_DIGITS_H
#define INGOT_LANG_DIGITS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_ROOM = 400, NUMBER_DIGITS = 17 }; /* 5e-324 has 326 characters */

/* Significant digits of |x|, and the decimal exponent of the first one. */
static int digits_of(double x, char *to, int *power) {
  char text[40];
  int n = 0;
  for (int i = 0; i < NUMBER_DIGITS; i++) {
    snprintf(text, sizeof text, "%.*e", i, fabs(x));
    if (strtod(text, NULL) == fabs(x) || i + 1 == NUMBER_DIGITS) break;
  }
  const char *e = strchr(text, 'e');
  for (const char *s = text; s < e; s++)
    if (*s != '.') to[n++] = *s;
  while (n > 1 && to[n - 1] == '0') n--;
  to[n] = 0;
  *power = (int)strtol(e + 1, NULL, 10);
  return n;
}

static char *digits_plain(char *to, const char *digit, int n, int power, int whole) {
  if (power < 0) {
    *to++ = '0', *to++ = '.';
    for (int i = -1; i > power; i--) *to++ = '0';
    for (int i = 0; i < n; i++) *to++ = digit[i];
    return to;
  }
  for (int i = 0; i <= power || i < n; i++) {
    if (i == power + 1) *to++ = '.';
    *to++ = i < n ? digit[i] : '0';
  }
  if (n <= power + 1 && !whole) *to++ = '.', *to++ = '0';
  return to;
}

/* Writes x to `to`, which has NUMBER_ROOM bytes. exponent: the format of tensors. whole: no ".0"
 * for integers. Returns the length. */
static int number_text(char *to, double x, int exponent, int whole) {
  char digit[NUMBER_DIGITS + 8], *at = to;
  int power;
  if (isnan(x)) return sprintf(to, "NaN");
  if (isinf(x)) return sprintf(to, x < 0 ? "-inf" : "inf");
  if (signbit(x)) *at++ = '-';
  int n = digits_of(x, digit, &power);
  if (!exponent || x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e16))
    return (int)(digits_plain(at, digit, n, power, whole) - to);
  *at++ = *digit;
  if (n > 1) at += sprintf(at, ".%s", digit + 1);
  return (int)(at + sprintf(at, "e%d", power) - to);
}

#endif
