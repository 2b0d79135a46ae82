/* serve_schema.c: JSON schema -> GBNF.
 *
 * In: a schema. Out: rules whose texts are valid under it. Method: one rule per schema; properties
 * appear in the order of the schema, and only those that it lists. A keyword that restricts values
 * in a way that the rules do not express is refused by name, so a valid answer is certain.
 */
#include "driver/serve/serve.h"

#include <string.h>

const char serve_json_rules[] =
    "json-value ::= json-object | json-array | json-string | json-number | \"true\" | \"false\" | "
    "\"null\"\n"
    "json-object ::= \"{\" json-ws (json-member (\",\" json-ws json-member)*)? json-ws \"}\"\n"
    "json-member ::= json-string \":\" json-ws json-value\n"
    "json-array ::= \"[\" json-ws (json-value (\",\" json-ws json-value)*)? json-ws \"]\"\n"
    "json-string ::= \"\\\"\" json-char* \"\\\"\"\n"
    "json-char ::= [^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" json-unit)\n"
    /* a high surrogate needs a low one */
    "json-unit ::= [0-9a-cA-CefEF] json-hex json-hex json-hex | [dD] [0-7] json-hex json-hex"
    " | [dD] [89abAB] json-hex json-hex \"\\\\u\" [dD] [c-fC-F] json-hex json-hex\n"
    "json-hex ::= [0-9a-fA-F]\n"
    "json-integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "json-number ::= json-integer (\".\" [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?\n"
    "json-ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

enum { DEPTH = 64, ITEMS = 1000, RULES = 1 << 16, TEXT_BYTES = 4 << 20 };

typedef struct Schema {
  Ctx *c;
  StrBuf *t;
  const JsonDoc *d;
  const Json *root;
  u32 n; /* rules so far */
  const char *stem;
  Map refs; /* position of a referenced schema -> 1 + number of its rule */
} Schema;

static const char *put_schema(Schema *s, const Json *j, u32 depth);

static const char *name_of(const Schema *s, u32 n) {
  return str_text(s->c, str_fmt(s->c, "%s-%u", s->stem, n));
}

static const char *put_numbered(Schema *s, u32 n, const char *body, size_t size) {
  const char *name = name_of(s, n);
  if (s->n > RULES || s->t->n + size > TEXT_BYTES)
    json_fail(s->d, s->root, ERR_usage, "the schema needs more than %d rules, or %d bytes of them",
              RULES, TEXT_BYTES);
  sb_fmt(s->t, "%s ::= ", name);
  sb_put(s->t, body, size);
  sb_puts(s->t, "\n");
  return name;
}

/* A rule is written after the rules that it uses. */
static const char *put_rule(Schema *s, const StrBuf *body) {
  return put_numbered(s, ++s->n, body->at, body->n);
}

static void put_literal(StrBuf *t, const char *at, size_t n) {
  sb_puts(t, "\"");
  for (size_t i = 0; i < n; i++) {
    if (at[i] == '"' || at[i] == '\\')
      sb_fmt(t, "\\%c", at[i]);
    else if ((u8)at[i] < 32)
      sb_fmt(t, "\\x%02x", (unsigned)(u8)at[i]);
    else
      sb_put(t, &at[i], 1);
  }
  sb_puts(t, "\"");
}

static void put_value(Schema *s, StrBuf *to, const Json *j) {
  StrBuf text = sb_new(&s->c->keep);
  json_put(&text, j);
  put_literal(to, text.at, text.n);
}

/* Checks the keywords of a schema: annotations and those that put_schema reads are allowed
 * everywhere. */
static void check_keywords(const Schema *s, const Json *j, const char *more) {
  static const char notes[] =
      " title description default examples example deprecated readOnly writeOnly $schema $id "
      "$comment $defs definitions strict discriminator nullable ";
  for (u32 i = 0; i < j->n; i++) {
    const Json *k = json_key(j, i);
    if (!json_is_listed(notes, k) && !json_is_listed(more, k))
      json_fail(s->d, k, ERR_usage, "schema keyword '%.*s' is not supported here", (int)k->n,
                k->text);
  }
}

static i64 bound(const Schema *s, const Json *j, const char *key, i64 otherwise) {
  i64 n = json_int(s->d, j, key, otherwise);
  if (n < -1 || n > ITEMS)
    json_fail(s->d, json_get(j, key), ERR_usage, "%s: expected a number from 0 to %d", key, ITEMS);
  return n;
}

static void put_range(StrBuf *t, i64 lo, i64 hi) {
  sb_fmt(t, hi < 0 ? "{%lld,}" : "{%lld,%lld}", (long long)lo, (long long)hi);
}

static const char *put_string(Schema *s, const Json *j) {
  i64 lo = bound(s, j, "minLength", 0), hi = bound(s, j, "maxLength", -1);
  check_keywords(s, j, " type minLength maxLength ");
  if (lo == 0 && hi < 0) return "json-string";
  StrBuf b = sb_new(&s->c->keep);
  if (hi >= 0 && hi < lo) json_fail(s->d, j, ERR_usage, "maxLength is below minLength");
  sb_puts(&b, "\"\\\"\" json-char");
  put_range(&b, lo, hi);
  sb_puts(&b, " \"\\\"\"");
  return put_rule(s, &b);
}

static const char *put_array(Schema *s, const Json *j, u32 depth) {
  const Json *items = json_get(j, "items"), *first = json_get(j, "prefixItems");
  i64 lo = bound(s, j, "minItems", 0), hi = bound(s, j, "maxItems", -1);
  check_keywords(s, j, " type items prefixItems minItems maxItems ");
  StrBuf b = sb_new(&s->c->keep);
  if (hi >= 0 && hi < lo) json_fail(s->d, j, ERR_usage, "maxItems is below minItems");
  sb_puts(&b, "\"[\" json-ws ");
  if (first) {
    if (first->kind != JS_array || (items && !(items->kind == JS_bool && !items->b)))
      json_fail(s->d, j, ERR_usage, "prefixItems: expected an array, and items false");
    if (lo > first->n || (hi >= 0 && hi < first->n)) /* the text has them all, and no others */
      json_fail(s->d, j, ERR_usage, "prefixItems: expected minItems and maxItems that allow %u",
                first->n);
    for (u32 i = 0; i < first->n; i++)
      sb_fmt(&b, "%s%s ", i ? "\",\" json-ws " : "", put_schema(s, &first->at[i], depth + 1));
  } else {
    const char *one = items ? put_schema(s, items, depth + 1) : "json-value";
    if (hi != 0) {
      sb_fmt(&b, "(%s (\",\" json-ws %s)", one, one);
      put_range(&b, lo > 0 ? lo - 1 : 0, hi < 0 ? -1 : hi - 1);
      sb_puts(&b, lo > 0 ? ") " : ")? ");
    }
  }
  sb_puts(&b, "json-ws \"]\"");
  return put_rule(s, &b);
}

static bool is_required(const Json *list, const Json *key) {
  for (u32 i = 0; list && i < list->n; i++)
    if (list->at[i].kind == JS_string && list->at[i].n == key->n &&
        !memcmp(list->at[i].text, key->text, key->n))
      return true;
  return false;
}

/* Properties from the last to the first. `after`: rule for the rest if a property precedes it;
 * `begin`: if none does. */
static const char *put_object(Schema *s, const Json *j, u32 depth) {
  const Json *p = json_get(j, "properties"), *list = json_get(j, "required");
  const Json *more = json_get(j, "additionalProperties");
  check_keywords(s, j, " type properties required additionalProperties ");
  StrBuf b = sb_new(&s->c->keep);
  if (p && p->kind != JS_object) json_fail(s->d, p, ERR_usage, "properties: expected an object");
  if (list && list->kind != JS_array)
    json_fail(s->d, list, ERR_usage, "required: expected names of properties");
  for (u32 i = 0; list && i < list->n; i++)
    if (!p || list->at[i].kind != JS_string || !json_get_bytes(p, list->at[i].text, list->at[i].n))
      json_fail(s->d, &list->at[i], ERR_usage, "required: expected names of properties");
  if (!p || !p->n) {
    if (more && more->kind == JS_bool && !more->b) {
      sb_puts(&b, "\"{\" json-ws \"}\"");
      return put_rule(s, &b);
    }
    if (!more || more->kind != JS_object) return "json-object";
    const char *v = put_schema(s, more, depth + 1);
    sb_fmt(&b,
           "\"{\" json-ws (json-string \":\" json-ws %s (\",\" json-ws json-string \":\" json-ws "
           "%s)*)? json-ws \"}\"",
           v, v);
    return put_rule(s, &b);
  }
  const char *after = "\"\"", *begin = "\"\"";
  for (u32 i = p->n; i-- > 0;) {
    const Json *key = json_key(p, i);
    StrBuf kv = sb_new(&s->c->keep), x = sb_new(&s->c->keep), y = sb_new(&s->c->keep);
    const char *value = put_schema(s, json_value(p, i), depth + 1);
    put_value(s, &kv, key);
    sb_fmt(&kv, " \":\" json-ws %s", value);
    const char *pair = put_rule(s, &kv);
    bool needed = is_required(list, key);
    sb_fmt(&y, needed ? "%s %s" : "%s %s | %s", pair, after, begin);
    sb_fmt(&x, needed ? "\",\" json-ws %s %s" : "(\",\" json-ws %s)? %s", pair, after);
    after = put_rule(s, &x);
    begin = put_rule(s, &y);
  }
  sb_fmt(&b, "\"{\" json-ws %s json-ws \"}\"", begin);
  return put_rule(s, &b);
}

static const char *put_choice(Schema *s, const Json *list, u32 depth) {
  StrBuf b = sb_new(&s->c->keep);
  if (list->kind != JS_array || !list->n)
    json_fail(s->d, list, ERR_usage, "expected an array of schemas");
  for (u32 i = 0; i < list->n; i++)
    sb_fmt(&b, "%s%s", i ? " | " : "", put_schema(s, &list->at[i], depth + 1));
  return put_rule(s, &b);
}

static const char *put_enum(Schema *s, const Json *list) {
  StrBuf b = sb_new(&s->c->keep);
  if (list->kind != JS_array || !list->n)
    json_fail(s->d, list, ERR_usage, "enum: expected an array of values");
  for (u32 i = 0; i < list->n; i++) {
    sb_puts(&b, i ? " | " : "");
    put_value(s, &b, &list->at[i]);
  }
  return put_rule(s, &b);
}

/* A reference within the schema: #, or #/KEY/KEY. Each target has one rule, so schemas may be
 * recursive. */
static const char *put_ref(Schema *s, const Json *ref, u32 depth) {
  const Json *to = s->root;
  const char *at = ref->text, *end = at + ref->n;
  if (ref->kind != JS_string || !ref->n || *at++ != '#')
    json_fail(s->d, ref, ERR_usage, "$ref: expected '#/...', a part of this schema");
  while (at < end) {
    const char *from = ++at;
    while (at < end && *at != '/') at++;
    to = json_get_bytes(to, from, (size_t)(at - from));
    if (!to)
      json_fail(s->d, ref, ERR_usage, "$ref: the schema has no '%.*s'", (int)ref->n, ref->text);
  }
  u32 *slot = map_put(&s->refs, to->pos + 1u);
  if (*slot) return name_of(s, *slot);
  u32 own = *slot = ++s->n;
  const char *value = put_schema(s, to, depth + 1);
  return put_numbered(s, own, value, strlen(value));
}

static const char *put_type(Schema *s, const Json *j, const Json *type, u32 depth) {
  if (json_is(type, "object")) return put_object(s, j, depth);
  if (json_is(type, "array")) return put_array(s, j, depth);
  if (json_is(type, "string")) return put_string(s, j);
  check_keywords(s, j, " type ");
  StrBuf b = sb_new(&s->c->keep);
  if (json_is(type, "number")) return "json-number";
  if (json_is(type, "integer")) return "json-integer";
  if (json_is(type, "boolean")) sb_puts(&b, "\"true\" | \"false\"");
  if (json_is(type, "null")) sb_puts(&b, "\"null\"");
  if (!b.n) json_fail(s->d, type, ERR_usage, "type: expected a type of JSON schema");
  return put_rule(s, &b);
}

static const char *put_schema(Schema *s, const Json *j, u32 depth) {
  static const char *const choices[] = {"anyOf", "oneOf"};
  if (depth > DEPTH) json_fail(s->d, j, ERR_usage, "schemas are nested more than %d deep", DEPTH);
  if (j->kind == JS_bool && j->b) return "json-value";
  if (j->kind != JS_object) json_fail(s->d, j, ERR_usage, "expected a schema");
  const Json *ref = json_get(j, "$ref"), *type = json_get(j, "type"), *x;
  if (ref) return check_keywords(s, j, " $ref "), put_ref(s, ref, depth);
  if ((x = json_get(j, "enum")) != NULL) return check_keywords(s, j, " enum type "), put_enum(s, x);
  if ((x = json_get(j, "const")) != NULL) {
    StrBuf b = sb_new(&s->c->keep);
    check_keywords(s, j, " const type ");
    put_value(s, &b, x);
    return put_rule(s, &b);
  }
  for (u32 i = 0; i < 2; i++)
    if ((x = json_get(j, choices[i])) != NULL)
      return check_keywords(s, j, i ? " oneOf " : " anyOf "), put_choice(s, x, depth);
  x = json_get(j, "allOf");
  if (x && x->kind == JS_array && x->n == 1)
    return check_keywords(s, j, " allOf "), put_schema(s, &x->at[0], depth + 1);
  if (type && type->kind == JS_array) {
    StrBuf b = sb_new(&s->c->keep);
    for (u32 i = 0; i < type->n; i++) {
      for (u32 k = 0; k < i; k++)
        if (type->at[i].kind == JS_string && type->at[k].n == type->at[i].n &&
            !memcmp(type->at[k].text, type->at[i].text, type->at[i].n))
          json_fail(s->d, &type->at[i], ERR_usage, "type: expected different types");
      bool plain = json_is(&type->at[i], "null") || json_is(&type->at[i], "boolean");
      Json only = {.kind = JS_object, .pos = j->pos};
      sb_fmt(&b, "%s%s", i ? " | " : "", put_type(s, plain ? &only : j, &type->at[i], depth));
    }
    return put_rule(s, &b);
  }
  if (type) return put_type(s, j, type, depth);
  if (json_get(j, "properties")) return put_object(s, j, depth);
  check_keywords(s, j, " ");
  return "json-value";
}

const char *serve_schema(StrBuf *t, const JsonDoc *d, const Json *schema, const char *name) {
  Ctx *c = d->c;
  Schema s = {.c = c, .t = t, .d = d, .root = schema, .stem = name, .refs = map_new(&c->keep)};
  return put_schema(&s, schema, 0);
}
