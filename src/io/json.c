/* json.c: parses JSON.
 *
 * In: bytes. Out: values in an arena, or ERR_input with line and column. Method: recursive descent,
 * at most JSON_DEPTH deep. Values of open containers are on one stack and are copied out when the
 * container ends, so memory is proportional to the text. Objects with more than FEW members get a
 * hash index. Building it has a step limit: keys made to collide are refused instead of taking
 * quadratic time.
 */
#include "io/json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 8, STEPS_PER_KEY = 64 };

typedef struct JsonReader {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *base;
  size_t pos, end;
  u32 depth, count;
  VEC(Json) open; /* values of open containers */
} JsonReader;

/* Line and column, from 1; a column is a UTF-8 character. */
static Loc line_column(Loc loc, const u8 *at, size_t pos, u32 *column) {
  loc.line = 1;
  *column = 1;
  for (size_t i = 0; i < pos; i++) {
    if (at[i] == '\n')
      loc.line++, *column = 1;
    else
      *column += (at[i] & 0xc0) != 0x80;
  }
  return loc;
}

static _Noreturn void bad(const JsonReader *r, size_t pos, const char *what) {
  u32 column;
  Loc loc = line_column(r->loc, r->base, pos, &column);
  fail(r->c, ERR_input, loc, "column %u: %s", column, what);
}

_Noreturn void json_fail(const JsonDoc *d, const Json *j, Err code, const char *fmt, ...) {
  u32 column;
  Loc loc = line_column(d->loc, d->at, j ? j->pos : 0, &column);
  StrBuf t = sb_new(&d->c->scratch);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  fail(d->c, code, loc, "column %u: %s", column, sb_cstr(&t));
}

/* ---- characters ---- */

static u8 peek(const JsonReader *r) {
  return r->pos < r->end ? r->base[r->pos] : 0;
}

static void skip(JsonReader *r) {
  for (; r->pos < r->end; r->pos++) {
    u8 ch = r->base[r->pos];
    if (ch != ' ' && ch != '\n' && ch != '\t' && ch != '\r') return;
  }
}

static bool accept(JsonReader *r, const char *word) {
  size_t n = strlen(word);
  if (r->end - r->pos < n || memcmp(r->base + r->pos, word, n)) return false;
  r->pos += n;
  return true;
}

/* Length of the UTF-8 character at p, or 0 if invalid. */
static u32 character(const u8 *p, size_t left) {
  if (p[0] < 0x80) return 1;
  u32 n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || left < n) return 0;
  for (u32 i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if (p[0] == 0xe0 && p[1] < 0xa0) return 0; /* overlong encoding */
  if (p[0] == 0xf0 && p[1] < 0x90) return 0;
  if (p[0] == 0xed && p[1] > 0x9f) return 0; /* a surrogate */
  if (p[0] == 0xf4 && p[1] > 0x8f) return 0; /* beyond U+10FFFF */
  return n;
}

static u32 hex4(JsonReader *r) {
  u32 x = 0;
  for (int i = 0; i < 4; i++, r->pos++) {
    u8 ch = peek(r);
    u32 digit = ch >= '0' && ch <= '9'   ? ch - (u32)'0'
                : ch >= 'a' && ch <= 'f' ? ch - (u32)'a' + 10
                : ch >= 'A' && ch <= 'F' ? ch - (u32)'A' + 10
                                         : 16;
    if (digit == 16) bad(r, r->pos, "expected four hexadecimal digits");
    x = x << 4 | digit;
  }
  return x;
}

/* Decodes an escape, after the backslash. */
static void escape(JsonReader *r, StrBuf *t) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  size_t start = r->pos - 1;
  u8 ch = peek(r);
  const char *known = ch ? strchr(from, ch) : NULL;
  r->pos += r->pos < r->end;
  if (known) {
    sb_put(t, &to[known - from], 1);
    return;
  }
  if (ch != 'u') bad(r, start, "unknown escape in a string");
  u32 x = hex4(r);
  if (x >= 0xd800 && x < 0xdc00 && accept(r, "\\u")) {
    u32 low = hex4(r);
    if (low < 0xdc00 || low > 0xdfff) bad(r, start, "expected a surrogate pair, found one half");
    x = 0x10000 + ((x - 0xd800) << 10) + (low - 0xdc00);
  } else if (x >= 0xd800 && x < 0xe000) {
    bad(r, start, "expected a surrogate pair, found one half");
  }
  sb_rune(t, x);
}

/* Starts at the opening quote. */
static Json string(JsonReader *r) {
  Json j = {.kind = JS_string, .pos = (u32)r->pos};
  size_t start = ++r->pos;
  StrBuf t = sb_new(r->a);
  bool escaped = false;
  for (;;) {
    if (r->pos == r->end) bad(r, j.pos, "the string does not end");
    u8 ch = r->base[r->pos];
    if (ch == '"') break;
    if (ch == '\\') {
      sb_put(&t, r->base + start, r->pos - start);
      r->pos++;
      escape(r, &t);
      escaped = true;
      start = r->pos;
      continue;
    }
    if (ch < 0x20) bad(r, r->pos, "control character in a string, expected an escape");
    u32 n = character(r->base + r->pos, r->end - r->pos);
    if (!n) bad(r, r->pos, "the string is not UTF-8");
    r->pos += n;
  }
  if (escaped) sb_put(&t, r->base + start, r->pos - start);
  j.text = escaped ? t.at : (const char *)r->base + start;
  j.n = (u32)(escaped ? t.n : r->pos - start);
  if (!j.text) j.text = "";
  r->pos++;
  return j;
}

static void digits(JsonReader *r) {
  if (peek(r) < '0' || peek(r) > '9') bad(r, r->pos, "expected a digit");
  while (peek(r) >= '0' && peek(r) <= '9') r->pos++;
}

static Json number(JsonReader *r) {
  Json j = {.kind = JS_int, .pos = (u32)r->pos, .text = (const char *)r->base + r->pos};
  r->pos += peek(r) == '-';
  if (peek(r) == '0')
    r->pos++;
  else
    digits(r);
  if (peek(r) == '.') {
    j.kind = JS_float;
    r->pos++;
    digits(r);
  }
  if (peek(r) == 'e' || peek(r) == 'E') {
    j.kind = JS_float;
    r->pos++;
    r->pos += peek(r) == '-' || peek(r) == '+';
    digits(r);
  }
  j.n = (u32)(r->pos - j.pos);
  char copy[JSON_NUMBER + 1];
  if (j.n > JSON_NUMBER) bad(r, j.pos, "the number has too many digits");
  memcpy(copy, j.text, j.n);
  copy[j.n] = 0;
  if (j.kind == JS_int) {
    errno = 0;
    j.i = strtoll(copy, NULL, 10);
    if (!errno) return j;
    j.kind = JS_float;
  }
  j.f = strtod(copy, NULL);
  return j;
}

/* Parses null, true, false or a number. */
static Json scalar(JsonReader *r) {
  static const struct {
    const char *text;
    JsonKind kind;
    double f;
  } words[] = {{"null", JS_null, 0},
               {"true", JS_bool, 1},
               {"false", JS_bool, 0},
               {"NaN", JS_float, (double)__builtin_nanf("")},
               {"Infinity", JS_float, (double)__builtin_inff()},
               {"-Infinity", JS_float, -(double)__builtin_inff()}};
  Json j = {.pos = (u32)r->pos, .text = (const char *)r->base + r->pos};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!accept(r, words[i].text)) continue;
    j.kind = words[i].kind;
    j.n = (u32)strlen(words[i].text);
    if (j.kind == JS_bool) j.b = words[i].f != 0;
    if (j.kind == JS_float) j.f = words[i].f;
    return j;
  }
  u8 ch = peek(r);
  if (ch != '-' && (ch < '0' || ch > '9')) bad(r, r->pos, "expected a value");
  return number(r);
}

static u32 index_size(u32 n) {
  u32 size = 4 * FEW;
  while (size < 2 * n) size *= 2;
  return size;
}

static bool same_key(const Json *a, const void *key, size_t n) {
  return a->n == n && memcmp(a->text, key, n) == 0;
}

/* Drops members that a later one replaces. Builds an index if many remain. */
static void dedup_members(JsonReader *r, Json *j, Json *at, u32 members) {
  u32 size = index_size(members), kept = 0;
  u64 steps = 0, most = (u64)members * STEPS_PER_KEY + 1024;
  u32 *index = members > FEW ? NEWS(r->a, u32, size) : NULL;
  for (u32 i = 0; i < members; i++) {
    Json *key = &at[2 * i];
    u32 k = index ? (u32)hash_bytes(key->text, key->n) & (size - 1) : 0, old = kept;
    if (index) {
      for (; index[k] && !same_key(&at[2 * (index[k] - 1)], key->text, key->n); steps++)
        k = (k + 1) & (size - 1);
      if (index[k]) old = index[k] - 1;
      if (steps > most) bad(r, key->pos, "too many keys with colliding hashes");
    } else {
      for (old = 0; old < kept && !same_key(&at[2 * old], key->text, key->n);) old++;
    }
    if (old < kept) {
      at[2 * old + 1] = at[2 * i + 1];
      continue;
    }
    if (index) index[k] = kept + 1;
    at[2 * kept] = at[2 * i];
    at[2 * kept + 1] = at[2 * i + 1];
    kept++;
  }
  j->n = kept;
  j->index = index;
  if (index && index_size(kept) == size) return;
  /* json_get uses the index if there are more than FEW members. */
  j->index = NULL;
  if (kept <= FEW) return;
  size = index_size(kept);
  index = NEWS(r->a, u32, size);
  for (u32 i = 0; i < kept; i++) {
    u32 k = (u32)hash_bytes(at[2 * i].text, at[2 * i].n) & (size - 1);
    for (; index[k]; steps++) k = (k + 1) & (size - 1);
    if (steps > most) bad(r, at[2 * i].pos, "too many keys with colliding hashes");
    index[k] = i + 1;
  }
  j->index = index;
}

static void push(JsonReader *r, Json j) {
  if (++r->count > JSON_MAX_VALUES) bad(r, j.pos, "the text has too many values");
  *vec_push(&r->c->scratch, &r->open) = j;
}

static Json value(JsonReader *r);

/* Starts at the opening bracket. */
static Json container(JsonReader *r, JsonKind kind) {
  Json j = {.kind = kind, .pos = (u32)r->pos};
  const u8 close = kind == JS_array ? ']' : '}';
  u32 first = r->open.n;
  if (++r->depth > JSON_DEPTH) bad(r, r->pos, "arrays and objects nested too deeply");
  r->pos++;
  for (;;) {
    skip(r);
    if (peek(r) == close && r->open.n == first) break;
    if (kind == JS_object) {
      if (peek(r) != '"') bad(r, r->pos, "expected a key in quotes");
      push(r, string(r));
      skip(r);
      if (!accept(r, ":")) bad(r, r->pos, "expected ':'");
      skip(r);
    }
    push(r, value(r));
    skip(r);
    if (peek(r) == close) break;
    if (!accept(r, ","))
      bad(r, r->pos, kind == JS_array ? "expected ',' or ']'" : "expected ',' or '}'");
  }
  r->pos++;
  r->depth--;
  j.n = r->open.n - first;
  if (j.n) {
    Json *at = arena_copy(r->a, &r->open.at[first], j.n * sizeof *at);
    r->open.n = first;
    if (kind == JS_object) dedup_members(r, &j, at, j.n / 2);
    j.at = at;
  }
  return j;
}

static Json value(JsonReader *r) {
  switch (peek(r)) {
  case '[': return container(r, JS_array);
  case '{': return container(r, JS_object);
  case '"': return string(r);
  default: return scalar(r);
  }
}

JsonDoc json_read(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a) {
  JsonReader r = {.c = c, .a = a, .loc = loc, .base = at, .pos = utf8_bom(at, n), .end = n};
  if (n > JSON_MAX_BYTES)
    fail(c, ERR_unsupported, loc, "the JSON text has %zu bytes, expected less than 2 GiB", n);
  skip(&r);
  Json *root = NEW(a, Json);
  *root = value(&r);
  skip(&r);
  if (r.pos < n) bad(&r, r.pos, "expected the end of the text");
  return (JsonDoc){.c = c, .loc = loc, .at = at, .n = n, .root = root};
}

const char *json_kind_name(JsonKind k) {
  static const char *const name[] = {"null",     "true or false", "an integer", "a number",
                                     "a string", "an array",      "an object"};
  return name[k];
}

const Json *json_get_bytes(const Json *j, const void *key, size_t n) {
  if (!j || j->kind != JS_object) return NULL;
  if (!j->index) {
    for (u32 i = 0; i < j->n; i++)
      if (same_key(json_key(j, i), key, n)) return json_value(j, i);
    return NULL;
  }
  u32 mask = index_size(j->n) - 1, k = (u32)hash_bytes(key, n) & mask;
  for (; j->index[k]; k = (k + 1) & mask)
    if (same_key(json_key(j, j->index[k] - 1), key, n)) return json_value(j, j->index[k] - 1);
  return NULL;
}

const Json *json_get(const Json *j, const char *key) {
  return json_get_bytes(j, key, strlen(key));
}

bool json_is(const Json *j, const char *text) {
  return j && j->kind == JS_string && same_key(j, text, strlen(text));
}

Str json_str(Ctx *c, const Json *j) {
  return str_intern(c, j->text, j->n);
}

const Json *json_member(const JsonDoc *d, const Json *j, const char *key, JsonKind kind) {
  const Json *m = json_get(j, key);
  if (!m || m->kind == JS_null) return NULL;
  if (m->kind != kind && !(kind == JS_float && m->kind == JS_int))
    json_fail(d, m, ERR_input, "'%s' is %s, expected %s", key, json_kind_name(m->kind),
              json_kind_name(kind));
  return m;
}

const Json *json_require(const JsonDoc *d, const Json *j, const char *key, JsonKind kind) {
  const Json *m = json_member(d, j, key, kind);
  if (!m) json_fail(d, j, ERR_input, "'%s' is missing, expected %s", key, json_kind_name(kind));
  return m;
}

i64 json_int(const JsonDoc *d, const Json *j, const char *key, i64 otherwise) {
  const Json *m = json_member(d, j, key, JS_int);
  return m ? m->i : otherwise;
}

double json_number(const JsonDoc *d, const Json *j, const char *key, double otherwise) {
  const Json *m = json_member(d, j, key, JS_float);
  return !m ? otherwise : m->kind == JS_int ? (double)m->i : m->f;
}

bool json_bool(const JsonDoc *d, const Json *j, const char *key, bool otherwise) {
  const Json *m = json_member(d, j, key, JS_bool);
  return m ? m->b : otherwise;
}
