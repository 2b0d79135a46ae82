/* meta.c: metadata of a model, by key and expected type.
 *
 * In: an LmFile and a key. Out: numbers, strings, lists. A wrong type or a number out of bounds
 * fails with ERR_input and the key. Integers may have any GGUF integer type, floats any GGUF float
 * type. JSON has one number type, so an integer counts as a float there.
 */
#include "front/llm/llm.h"

#include <math.h>
#include <string.h>

/* Location of a value in GGUF or in JSON. */
typedef struct KeyLookup {
  const char *name; /* the name that was found, if there are several */
  const GgufKey *key;
  const JsonDoc *doc;
  const Json *json;
} KeyLookup;

static const Json *member(const Json *at, const char *path) {
  for (size_t n; at; path += n + 1) {
    n = strcspn(path, ".");
    at = json_get_bytes(at, path, n);
    if (!path[n]) break;
  }
  return at && at->kind != JS_null ? at : NULL;
}

static bool find_name(LmFile *f, const char *key, KeyLookup *out) {
  Ctx *c = f->c;
  *out = (KeyLookup){.name = key};
  if (f->gguf) {
    const char *name = *key == '.' ? fmt_text(c, "%s%s", str_text(c, f->arch), key) : key;
    out->key = gguf_key(c, f->gguf, name);
    return out->key != NULL;
  }
  const char *colon = strchr(key, ':');
  out->doc = f->config;
  if (colon) {
    out->doc = lm_sibling_json(f, str_text(c, str_intern(c, key, (size_t)(colon - key))));
    out->json = out->doc ? member(out->doc->root, colon + 1) : NULL;
    return out->json != NULL;
  }
  if (f->text) out->json = member(f->text, key);
  if (!out->json && out->doc) out->json = member(out->doc->root, key);
  return out->json != NULL;
}

static bool find(LmFile *f, const char *key, KeyLookup *out) {
  while (true) {
    size_t n = strcspn(key, "|");
    const char *one = key[n] ? str_text(f->c, str_intern(f->c, key, n)) : key;
    if (find_name(f, one, out)) return true;
    if (!key[n]) return false;
    key += n + 1;
  }
}

/* A scalar is a list of one. */
static LmList list_of(LmFile *f, const KeyLookup *v) {
  LmList l = {.f = f, .key = v->name, .n = 1, .doc = v->doc, .json = v->json};
  if (v->key) {
    l.n = v->key->n;
    l.type = v->key->type;
    l.at = v->key->at;
  } else if (v->json->kind == JS_array) {
    l.n = v->json->n;
    l.json = v->json->at;
  }
  return l;
}

static _Noreturn void wrong_type(const LmList *l, const char *want) {
  Ctx *c = l->f->c;
  if (l->json)
    json_fail(l->doc, l->json, ERR_input, "'%s' is %s, expected %s", l->key,
              json_kind_name(l->json->kind), want);
  fail(c, ERR_input, l->f->loc, "key '%s%s' has type %s, expected %s",
       *l->key == '.' ? show(c, l->f->arch) : "", l->key, gguf_type_name[l->type], want);
}

static _Noreturn void out_of_range(const LmList *l, const char *is, i64 lo, i64 hi) {
  Ctx *c = l->f->c;
  if (l->json)
    json_fail(l->doc, l->json, ERR_input, "'%s' is %s, expected %lld to %lld", l->key, is,
              (long long)lo, (long long)hi);
  fail(c, ERR_input, l->f->loc, "key '%s%s' is %s, expected %lld to %lld",
       *l->key == '.' ? show(c, l->f->arch) : "", l->key, is, (long long)lo, (long long)hi);
}

/* ---- elements ---- */

/* Advances to the next element in JSON. GGUF readers advance l->at themselves. */
static void step(LmList *l) {
  l->n--;
  if (l->json) l->json++;
}

bool lm_next_int(LmList *l, i64 lo, i64 hi, i64 *out) {
  const u8 *at = l->at;
  bool fits = true;
  if (!l->n) return false;
  if (l->json ? l->json->kind != JS_int
              : l->type == GT_bool || l->type == GT_array || l->type == GT_f32 ||
                    l->type == GT_f64 || l->type == GT_string)
    wrong_type(l, "an integer");
  if (l->json)
    *out = l->json->i;
  else
    fits = gguf_int(l->type, &l->at, out);
  if (!fits || *out < lo || *out > hi) {
    StrBuf t = sb_new(&l->f->c->scratch);
    sb_fmt(&t, fits ? "%lld" : "%llu", (long long)*out);
    l->at = at;
    out_of_range(l, sb_cstr(&t), lo, hi);
  }
  step(l);
  return true;
}

bool lm_next_float(LmList *l, double *out) {
  if (!l->n) return false;
  if (l->json ? l->json->kind != JS_int && l->json->kind != JS_float
              : l->type != GT_f32 && l->type != GT_f64)
    wrong_type(l, "a number");
  if (!l->json)
    gguf_float(l->type, &l->at, out);
  else
    *out = l->json->kind == JS_int ? (double)l->json->i : l->json->f;
  if (!isfinite(*out)) wrong_type(l, "a finite number");
  step(l);
  return true;
}

bool lm_next_bool(LmList *l, bool *out) {
  i64 v = 0;
  if (!l->n) return false;
  if (l->json ? l->json->kind != JS_bool : l->type != GT_bool) wrong_type(l, "true or false");
  if (!l->json) gguf_int(l->type, &l->at, &v);
  *out = l->json ? l->json->b : v != 0;
  step(l);
  return true;
}

bool lm_next_string(LmList *l, FileSpan *out) {
  if (!l->n) return false;
  if (l->json ? l->json->kind != JS_string : l->type != GT_string) wrong_type(l, "a string");
  if (l->json)
    *out = (FileSpan){(const u8 *)l->json->text, l->json->n};
  else
    *out = gguf_string(&l->at);
  step(l);
  return true;
}

/* ---- by key ---- */

bool lm_list(LmFile *f, const char *key, LmList *out) {
  KeyLookup v;
  if (!find(f, key, &v)) return false;
  *out = list_of(f, &v);
  return true;
}

/* Finds a scalar value. */
static bool find_one(LmFile *f, const char *key, const char *want, LmList *out) {
  KeyLookup v;
  if (!find(f, key, &v)) return false;
  *out = list_of(f, &v);
  if (v.key && v.key->array) out->type = GT_array;
  if (v.json) out->json = v.json;
  if (v.key ? v.key->array : v.json->kind == JS_array) wrong_type(out, want);
  return true;
}

bool lm_int(LmFile *f, const char *key, i64 lo, i64 hi, i64 *out) {
  LmList l;
  return find_one(f, key, "an integer", &l) && lm_next_int(&l, lo, hi, out);
}

bool lm_float(LmFile *f, const char *key, double *out) {
  LmList l;
  return find_one(f, key, "a number", &l) && lm_next_float(&l, out);
}

bool lm_bool(LmFile *f, const char *key, bool *out) {
  LmList l;
  return find_one(f, key, "true or false", &l) && lm_next_bool(&l, out);
}

bool lm_string(LmFile *f, const char *key, FileSpan *out) {
  LmList l;
  return find_one(f, key, "a string", &l) && lm_next_string(&l, out);
}
