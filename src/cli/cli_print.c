/* cli_print.c: JSON, tables of differences, shell quoting, colors.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* https://no-color.org: any value disables colors. */
int wants_color(FILE *to) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
  if (no && *no) return 0;
  return term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(to));
}

const char *cli_verdict(int ok) {
  if (!wants_color(stdout)) return ok ? "ok" : "DIFFERS";
  return ok ? "\033[32mok\033[0m" : "\033[31mDIFFERS\033[0m";
}

void shell_word(const char *before, const char *s, FILE *to) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=:,./@%";
  fputs(before, to);
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

/* Bytes of the first character if it is printable; else 0. */
static int letter_bytes(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
  int n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
  for (int i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : n; /* C1 control characters */
}

/* Names come from the model: only printable characters may reach the terminal. */
int name_width(const char *s) {
  int columns = 0;
  for (int n; *s; s += n ? n : 1) {
    n = letter_bytes(s);
    columns += n ? 1 : 4;
  }
  return columns;
}

void print_name(const char *s, int columns) {
  columns -= name_width(s);
  for (int n; *s; s += n ? n : 1) {
    n = letter_bytes(s);
    if (n)
      fwrite(s, 1, (size_t)n, stdout);
    else
      printf("\\x%02x", (unsigned char)*s);
  }
  while (columns-- > 0) putchar(' ');
}

void json_text(const char *before, const char *s) {
  char one[INGOT_JSON_CHAR];
  printf("%s\"", before);
  while (*s) {
    s += ingot_json_char(s, one);
    fputs(one, stdout);
  }
  putchar('"');
}

void print_number(const char *form, int columns, double x) {
  if (isfinite(x))
    printf(form, columns, x);
  else
    printf("%*s", columns, isnan(x) ? "-" : x > 0 ? "inf" : "-inf");
}

void json_real(const char *before, double x) {
  if (isfinite(x))
    printf("%s%.9g", before, x);
  else
    printf("%snull", before);
}

IngotStatus json_memory(Ingot *m) {
  IngotMemory x;
  IngotStatus s = ingot_memory(m, &x);
  if (s) return s;
  printf(",\"arena\":%llu,\"lower_bound\":%llu,\"weights\":%llu,\"stack\":%llu,\"inputs\":%llu,"
         "\"outputs\":%llu,\"ram\":%llu,\"code\":%llu,\"kernels\":%u",
         (unsigned long long)x.arena, (unsigned long long)x.lower_bound,
         (unsigned long long)x.weights, (unsigned long long)x.stack, (unsigned long long)x.inputs,
         (unsigned long long)x.outputs, (unsigned long long)x.ram, (unsigned long long)x.code,
         x.kernels);
  return s;
}

void json_diff(const IngotDiff *d) {
  json_text("{\"name\":", d->name);
  printf(",\"ok\":%s", d->ok ? "true" : "false");
  json_real(",\"max_abs\":", d->max_abs);
  json_real(",\"max_rel\":", d->max_rel);
  printf(",\"max_ulp\":%llu", (unsigned long long)d->max_ulp);
  json_real(",\"cosine\":", d->cosine);
  json_real(",\"rtol\":", d->rtol);
  json_real(",\"atol\":", d->atol);
  json_text(",\"why\":", d->why);
  printf("}");
}

enum { TERMINAL_MAX = 1000000 };

int fits_terminal(const Args *a, const char *what, size_t n) {
  if (n <= TERMINAL_MAX || !isatty(STDOUT_FILENO)) return 1;
  fprintf(stderr, "ingot %s: %.1f MB of %s on a terminal: name a file with -o, or use a pipe\n",
          a->verb, (double)n * 1e-6, what);
  return 0;
}

IngotStatus print_result(const Args *a, const char *what, const char *text, size_t n) {
  if (!fits_terminal(a, what, n)) return INGOT_USAGE;
  fwrite(text, 1, n, stdout);
  return INGOT_OK;
}
