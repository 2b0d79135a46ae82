/* serve_json.c: JSON values as text, and as variables of a chat template. */
#include "driver/serve/serve.h"

#include <string.h>

bool json_is_listed(const char *words, const Json *key) {
  for (const char *at = words; *at;) {
    size_t n = strcspn(at, " ");
    if (n && n == key->n && !memcmp(at, key->text, n)) return true;
    at += n + (at[n] == ' ');
  }
  return false;
}

void json_put(StrBuf *t, const Json *j) {
  switch (j->kind) {
  case JS_null: sb_puts(t, "null"); break;
  case JS_bool: sb_puts(t, j->b ? "true" : "false"); break;
  case JS_int:
  case JS_float: sb_put(t, j->text, j->n); break;
  case JS_string: sb_json(t, j->text, j->n); break;
  case JS_array:
    for (u32 i = 0; i < j->n; i++) {
      sb_puts(t, i ? "," : "[");
      json_put(t, &j->at[i]);
    }
    sb_puts(t, j->n ? "]" : "[]");
    break;
  case JS_object:
    for (u32 i = 0; i < j->n; i++) {
      sb_puts(t, i ? "," : "{");
      sb_json(t, json_key(j, i)->text, json_key(j, i)->n);
      sb_puts(t, ":");
      json_put(t, json_value(j, i));
    }
    sb_puts(t, j->n ? "}" : "{}");
    break;
  }
}

JinjaVal json_to_jinja(Arena *a, const Json *j, bool marked) {
  JinjaVal v = {.kind = JK_none};
  switch (j->kind) {
  case JS_null: break;
  case JS_bool: v = (JinjaVal){.kind = JK_bool, .i = j->b}; break;
  case JS_int: v = (JinjaVal){.kind = JK_int, .i = j->i}; break;
  case JS_float: v = (JinjaVal){.kind = JK_float, .f = j->f}; break;
  case JS_string: v = jinja_string(a, j->text, j->n, marked); break;
  case JS_array:
    v = jinja_list(a);
    for (u32 i = 0; i < j->n; i++) jinja_add(a, v, json_to_jinja(a, &j->at[i], marked));
    break;
  case JS_object:
    v = jinja_dict(a);
    for (u32 i = 0; i < j->n; i++) {
      char *key = arena_alloc(a, json_key(j, i)->n + 1);
      memcpy(key, json_key(j, i)->text, json_key(j, i)->n);
      jinja_set(a, v, key, json_to_jinja(a, json_value(j, i), marked));
    }
    break;
  }
  return v;
}
