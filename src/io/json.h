/* json.h: JSON texts: config.json, tokenizer.json, safetensors headers.
 *
 * The bytes must outlive the document: strings without escapes and number texts point into them.
 * Everything else is in the arena. Accepts what json.loads of Python accepts in UTF-8, except lone
 * surrogates, numbers longer than JSON_NUMBER and nesting deeper than JSON_DEPTH.
 */
#ifndef INGOT_JSON_H
#define INGOT_JSON_H

#include "base/base.h"

typedef struct Json Json;       /* a value */
typedef struct JsonDoc JsonDoc; /* a parsed text */

enum {
  JSON_DEPTH = 128,            /* nesting of arrays and objects */
  JSON_NUMBER = 400,           /* bytes per number */
  JSON_MAX_VALUES = 1 << 24,   /* per text, including keys */
  JSON_MAX_BYTES = 0x7fffffff, /* per text */
};

typedef enum JsonKind {
  JS_null,
  JS_bool,
  JS_int,   /* no fraction or exponent, fits in 64 bits */
  JS_float, /* any other number, also NaN and infinities, rounded to double */
  JS_string,
  JS_array,
  JS_object,
} JsonKind;

struct Json {
  JsonKind kind;
  u32 n;   /* bytes of a string or number text; elements; members */
  u32 pos; /* offset in the text */
  /* JS_string: UTF-8, not NUL-terminated. Numbers: as written. */
  const char *text;
  union {
    bool b;
    i64 i;
    double f;
    /* JS_array: the elements. JS_object: key, value, key, value, ... in the order of the text. Keys
     * are unique: the last value of a repeated key, at the position of the first. */
    const Json *at;
  };
  const u32 *index; /* JS_object with many members: hash index, see json_get */
};

struct JsonDoc {
  Ctx *c;
  Loc loc;
  const u8 *at;
  size_t n;
  const Json *root;
};

/* Parses the bytes as one value, or fails with ERR_input, line and column. */
JsonDoc json_read(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* Fails with the file, line and column of the value before the message. */
_Noreturn void json_fail(const JsonDoc *d, const Json *j, Err code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

const char *json_kind_name(JsonKind k); /* "a string" */
/* NULL: j is NULL, is not an object, or lacks the member. Calls can therefore be nested. */
const Json *json_get(const Json *j, const char *key);
const Json *json_get_bytes(const Json *j, const void *key, size_t n);
static inline const Json *json_key(const Json *j, u32 i) {
  return &j->at[2 * i];
}
static inline const Json *json_value(const Json *j, u32 i) {
  return &j->at[2 * i + 1];
}
bool json_is(const Json *j, const char *text); /* true if j is this string; NULL is not */
Str json_str(Ctx *c, const Json *j);           /* a string, or the text of a number */

/* Member `key` of object j, which must have this kind. `otherwise` if absent or null. */
i64 json_int(const JsonDoc *d, const Json *j, const char *key, i64 otherwise);
double json_number(const JsonDoc *d, const Json *j, const char *key, double otherwise);
bool json_bool(const JsonDoc *d, const Json *j, const char *key, bool otherwise);
/* The member as a value, or NULL if it is absent or null. */
const Json *json_member(const JsonDoc *d, const Json *j, const char *key, JsonKind kind);
/* Fails if the member is absent. */
const Json *json_require(const JsonDoc *d, const Json *j, const char *key, JsonKind kind);

#endif
