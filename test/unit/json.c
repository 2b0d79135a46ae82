/* Texts of JSON: values, places of failures, limits, lookups.
 *
 * `json FILE` reads texts, each behind its length as 4 bytes, and prints one line for each in a
 * form that test/suite/json.py writes from what Python's json says of the same bytes.
 */
#include "io/json.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

typedef struct Try {
  const char *text;
  size_t n;
  JsonDoc doc;
} Try;

static void read_text(Ctx *c, void *arg) {
  Try *t = arg;
  t->doc = json_read(c, (const u8 *)t->text, t->n, LOC_NONE, &c->work);
}

static const char *why(const char *text) {
  static char said[200];
  Ctx *c = ctx_new(NULL, NULL);
  Try t = {text, strlen(text), {0}};
  Err e = ctx_protect(c, read_text, &t);
  snprintf(said, sizeof said, "%s", e ? c->diags->text : "");
  CHECK(e == ERR_ok || e == ERR_input);
  ctx_free(c);
  return said;
}

static void check_failures(void) {
  static const struct {
    const char *text, *why;
  } row[] = {
      {"", "line 1: column 1: expected a value"},
      {" [1,\n 2,]", "line 2: column 4: expected a value"},
      {"{\"a\" 1}", "line 1: column 6: expected ':'"},
      {"{\"a\":1,}", "line 1: column 8: expected a key in quotes"},
      {"[1 2]", "line 1: column 4: expected ',' or ']'"},
      {"[\"\xc3\xa9\", x]", "line 1: column 7: expected a value"},
      {"\"\xc3\"", "line 1: column 2: the string is not UTF-8"},
      {"\"\xed\xa0\x80\"", "line 1: column 2: the string is not UTF-8"},
      {"\"\n\"", "line 1: column 2: control character in a string, expected an escape"},
      {"\"a\\x\"", "line 1: column 3: unknown escape in a string"},
      {"\"\\u12g4\"", "line 1: column 6: expected four hexadecimal digits"},
      {"\"\\ud800\\u0041\"", "line 1: column 2: expected a surrogate pair, found one half"},
      {"\"\\udc00\"", "line 1: column 2: expected a surrogate pair, found one half"},
      {"\"abc", "line 1: column 1: the string does not end"},
      {"01", "line 1: column 2: expected the end of the text"},
      {"-", "line 1: column 2: expected a digit"},
      {"1.", "line 1: column 3: expected a digit"},
      {"1e+", "line 1: column 4: expected a digit"},
      {"nul", "line 1: column 1: expected a value"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    const char *said = why(row[i].text);
    if (!CHECK(!strcmp(said, row[i].why))) fprintf(stderr, "%s: %s\n", row[i].text, said);
  }
  char deep[2 * JSON_DEPTH + 3];
  memset(deep, '[', JSON_DEPTH);
  memset(deep + JSON_DEPTH, ']', JSON_DEPTH);
  deep[2 * JSON_DEPTH] = 0;
  CHECK(!*why(deep));
  memset(deep, '[', JSON_DEPTH + 1);
  memset(deep + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
  deep[2 * JSON_DEPTH + 2] = 0;
  CHECK(strstr(why(deep), "nested too deeply"));
  char number[JSON_NUMBER + 2];
  memset(number, '1', sizeof number);
  number[JSON_NUMBER + 1] = 0;
  CHECK(strstr(why(number), "too many digits"));
}

static void misread(Ctx *c, void *arg) {
  const Try *t = arg;
  (void)c;
  json_int(&t->doc, t->doc.root, "s", 0);
}

static void check_values(void) {
  Ctx *c = ctx_new(NULL, NULL);
  const char *text =
      "{\"i\": -7, \"big\": 9223372036854775808, \"f\": 1.5e3,\n"
      " \"s\": \"a\\u00e9\\ud83d\\ude42\\n\", \"t\": true, \"z\": null,\n"
      " \"a\": [[], {}, \"\"], \"i\": 8, \"m1\":1,\"m2\":2,\"m3\":3,\"m4\":4,\"m2\":5}";
  Try t = {text, strlen(text), {0}};
  if (!CHECK(ctx_protect(c, read_text, &t) == ERR_ok)) return;
  const JsonDoc *d = &t.doc;
  const Json *j = d->root;
  CHECK(j->kind == JS_object && j->n == 11 && j->index);
  CHECK(json_is(json_key(j, 0), "i") && json_value(j, 0)->i == 8);
  CHECK(json_int(d, j, "m2", 0) == 5 && json_int(d, j, "m9", 3) == 3 &&
        json_int(d, j, "z", 4) == 4);
  CHECK(json_get(j, "big")->kind == JS_float &&
        json_number(d, j, "big", 0) == 9223372036854775808.0);
  CHECK(json_get(j, "big")->n == 19 &&
        !memcmp(json_get(j, "big")->text, "9223372036854775808", 19));
  CHECK(json_number(d, j, "f", 0) == 1500 && json_number(d, j, "i", 0) == 8);
  CHECK(json_bool(d, j, "t", false));
  CHECK(json_is(json_get(j, "s"), "a\xc3\xa9\xf0\x9f\x99\x82\n"));
  const Json *a = json_require(d, j, "a", JS_array);
  CHECK(a->n == 3 && a->at[0].kind == JS_array && a->at[1].kind == JS_object &&
        json_is(&a->at[2], ""));
  CHECK(!json_get(json_get(j, "absent"), "x") && !json_get(a, "x"));
  CHECK(ctx_protect(c, misread, &t) == ERR_input);
  CHECK(!strcmp(c->diags->text, "line 2: column 7: 's' is a string, expected an integer"));
  ctx_free(c);
}

static void print(const Json *j) {
  switch (j->kind) {
  case JS_null: printf("N"); break;
  case JS_bool: printf(j->b ? "T" : "F"); break;
  case JS_int: printf("%lld", (long long)j->i); break;
  case JS_float: printf("f%a", j->f); break;
  case JS_string:
    printf("s");
    for (u32 i = 0; i < j->n; i++) printf("%02x", (u8)j->text[i]);
    break;
  default: {
    u32 n = j->kind == JS_object ? 2 * j->n : j->n;
    printf(j->kind == JS_object ? "{" : "[");
    for (u32 i = 0; i < n; i++) {
      if (i) printf(",");
      print(&j->at[i]);
    }
    printf(j->kind == JS_object ? "}" : "]");
  }
  }
}

static int convert(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return 1;
  u8 head[4];
  while (fread(head, 1, 4, f) == 4) {
    size_t n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    char *text = malloc(n + 1);
    if (!text || fread(text, 1, n, f) != n) return 1;
    Ctx *c = ctx_new(NULL, NULL);
    Try t = {text, n, {0}};
    Err e = ctx_protect(c, read_text, &t);
    if (e)
      printf("error %d", e);
    else
      print(t.doc.root);
    printf("\n");
    ctx_free(c);
    free(text);
  }
  fclose(f);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return convert(argv[1]);
  check_failures();
  check_values();
  return check_end();
}
