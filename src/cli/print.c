/* print.c: JSON, tables of differences, words of a shell. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

void shell_word(const char *s, FILE *to) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=:,./@%";
  if (*s && strspn(s, plain) == strlen(s)) {
    fputs(s, to);
    return;
  }
  fputc('\'', to);
  for (; *s; s++) {
    if (*s == '\'')
      fputs("'\\''", to);
    else
      fputc(*s, to);
  }
  fputc('\'', to);
}

static int is_plain(unsigned char ch) {
  return ch >= 0x20 && ch != 0x7f;
}

/* Names come from the model: nothing in them may reach the terminal but letters. */
int name_width(const char *s) {
  int n = 0;
  for (; *s; s++) {
    unsigned char ch = (unsigned char)*s;
    n += !is_plain(ch) ? 4 : (ch & 0xc0) != 0x80; /* a character of UTF-8 is one column */
  }
  return n;
}

void print_name(const char *s, int columns) {
  columns -= name_width(s);
  for (; *s; s++)
    if (is_plain((unsigned char)*s))
      putchar(*s);
    else
      printf("\\x%02x", (unsigned char)*s);
  while (columns-- > 0) putchar(' ');
}

void json_text(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      printf("\\%c", *s);
    else if ((unsigned char)*s < 0x20)
      printf("\\u%04x", (unsigned char)*s);
    else
      putchar(*s);
  }
  putchar('"');
}

void json_real(double x) {
  if (isfinite(x))
    printf("%.9g", x);
  else
    printf("null");
}

void json_diff(const IngotDiff *d) {
  printf("{\"name\":");
  json_text(d->name);
  printf(",\"ok\":%s,\"max_abs\":", d->ok ? "true" : "false");
  json_real(d->max_abs);
  printf(",\"max_rel\":");
  json_real(d->max_rel);
  printf(",\"max_ulp\":%llu,\"cosine\":", (unsigned long long)d->max_ulp);
  json_real(d->cosine);
  printf(",\"rtol\":");
  json_real(d->rtol);
  printf(",\"atol\":");
  json_real(d->atol);
  printf(",\"why\":");
  json_text(d->why);
  printf("}");
}
