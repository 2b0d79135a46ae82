/* Templates. Without arguments: marks, bounds, refusals.
 *
 * `jinja FILE` reads templates and their variables as JSON, each behind its length as 4 bytes, and
 * prints for each a line: the text in hexadecimal, or the error code and message. Strings in
 * `messages` are of the user; the bytes of the text that are marked stand in a second column.
 */
#include "check.h"
#include "io/json.h"
#include "chat/jinja.h"
#include <stdlib.h>
#include <string.h>

typedef struct Job {
  const char *text, *vars;
  size_t n, nvars;
  JinjaStr out;
} Job;

static JinjaVal value(Ctx *c, const Json *j, bool user) {
  Arena *a = &c->work;
  JinjaVal v = {.kind = JK_none};
  switch (j->kind) {
  case JS_null: return v;
  case JS_bool: return (JinjaVal){.kind = JK_bool, .i = j->b};
  case JS_int: return (JinjaVal){.kind = JK_int, .i = j->i};
  case JS_float: return (JinjaVal){.kind = JK_float, .f = j->f};
  case JS_string: return jinja_string(a, j->text, j->n, user);
  case JS_array:
    v = jinja_list(a);
    for (u32 i = 0; i < j->n; i++) jinja_add(a, v, value(c, &j->at[i], user));
    return v;
  default:
    v = jinja_dict(a);
    for (u32 i = 0; i < j->n; i++) {
      const Json *key = json_key(j, i);
      jinja_set(a, v, str_text(c, json_str(c, key)),
                value(c, json_value(j, i), user || json_is(key, "messages")));
    }
    return v;
  }
}

static void render(Ctx *c, void *arg) {
  Job *k = arg;
  JsonDoc d = json_read(c, (const u8 *)k->vars, k->nvars, LOC_NONE, &c->work);
  k->out = jinja_render(c, k->text, k->n, value(c, d.root, false), 1700000000, LOC_NONE, &c->work);
}

static char *next_text(FILE *f, size_t *n) {
  u8 head[4];
  if (fread(head, 1, 4, f) != 4) return NULL;
  *n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
  char *text = malloc(*n + 1);
  if (fread(text, 1, *n, f) != *n) exit(1);
  return text;
}

static int convert(const char *path) {
  FILE *f = fopen(path, "rb");
  Job k;
  if (!f) return 1;
  while ((k.text = next_text(f, &k.n)) && (k.vars = next_text(f, &k.nvars))) {
    Ctx *c = ctx_new(NULL, NULL);
    Err e = ctx_protect(c, render, &k);
    if (e) {
      printf("error %d %s\n", e, c->diags->text);
    } else {
      for (u32 i = 0; i < k.out.n; i++) printf("%02x", (u8)k.out.at[i]);
      printf(" ");
      for (u32 i = 0; i < k.out.n; i++) printf("%d", k.out.mark && k.out.mark[i]);
      printf("\n");
    }
    ctx_free(c);
    free((char *)(uintptr_t)k.text);
    free((char *)(uintptr_t)k.vars);
  }
  fclose(f);
  return 0;
}

static void check_one(const char *text, const char *vars, Err want, const char *says) {
  Ctx *c = ctx_new(NULL, NULL);
  Job k = {text, vars, strlen(text), strlen(vars), {0}};
  Err e = ctx_protect(c, render, &k);
  bool fits = e ? strstr(c->diags->text, says) != NULL
                : k.out.n == strlen(says) && !memcmp(k.out.at, says, k.out.n);
  if (!CHECK(e == want && fits))
    fprintf(stderr, "%s: %d %s\n", text, e, e ? c->diags->text : k.out.at);
  ctx_free(c);
}

/* Whatever one operation takes is counted: nothing that a loop repeats, or that grows faster than
 * what it is given, is free. */
static void check_bounds(void) {
#define GROW                                                                                       \
  "{% set n = namespace(s='aaaaaaaa') %}{% for i in range(18) %}{% set n.s = n.s ~ n.s %}{% "      \
  "endfor %}"
#define TIMES(n, x) "{% for i in range(" #n ") %}{% set q = " x " %}{% endfor %}"
  static const char *const steps[] = {
      "{% set n = namespace(a=[1],b=[1]) %}{% for i in range(40) %}{% set n.a = [n.a, n.a] %}"
      "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
      GROW "{{ (n.s ~ 'b') in (n.s ~ n.s) }}",
      GROW "{{ (n.s ~ n.s).replace(n.s ~ 'b', '') }}",
      GROW "{{ n.s.strip('b' * 100000 ~ 'a') }}",
      GROW TIMES(20000, "n.s | length"),
      GROW TIMES(20000, "n.s == n.s"),
      GROW TIMES(20000, "n.s.split('b')"),
      "{% set l = range(100000) | list %}" TIMES(20000, "l.pop(0)"),
      "{% set l = range(100000) | list %}" TIMES(20000, "l | select('none')"),
      "{% set l = (',' * 100000).split(',') %}" TIMES(20000, "l | join"),
      "{{ '' * 9223372036854775807 }}",
  };
  static const char *const memory[] = {".keys()", ".values()", " | first", " | list"};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    check_one(steps[i], "{}", ERR_input, "too many steps");
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
    char text[8192] = "{% set d = {";
    size_t n = strlen(text);
    for (int k = 0; k < 500; k++) n += (size_t)snprintf(text + n, sizeof text - n, "%d: 0,", k);
    snprintf(text + n, sizeof text - n,
             "} %%}{%% for i in range(5000) %%}{%% set k = d%s %%}{%% endfor %%}", memory[i]);
    check_one(text, "{}", ERR_input, "too much memory");
  }
#undef GROW
#undef TIMES
}

int main(int argc, char **argv) {
  if (argc > 1) return convert(argv[1]);
  check_one("{{ 1 + 2 }}", "{}", ERR_ok, "3");
  check_one("{% include 'x' %}", "{}", ERR_unsupported, "unknown statement");
  check_one("{{ x | odd_filter }}", "{}", ERR_unsupported, "filter 'odd_filter'");
  check_one("{{ x is odd_test }}", "{}", ERR_unsupported, "test 'odd_test'");
  check_one("\n{{ raise_exception('no') }}", "{}", ERR_input, "line 2: chat template: no");
  check_one("{{ x.y.z }}", "{}", ERR_input, "an undefined value has no members");
  check_one("{% for i in range(100000000) %}x{% endfor %}", "{}", ERR_input, "too much memory");
  check_one("{% for i in range(100000) %}{% for k in range(1000) %}{% endfor %}{% endfor %}", "{}",
            ERR_input, "too m");
  check_one("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{}", ERR_input, "too deeply");
  check_bounds();
  check_one("{{ 9223372036854775807 + 1 }}", "{}", ERR_input, "does not fit in 64 bits");
  return check_end();
}
