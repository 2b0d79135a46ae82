/* json.h: JSON texts: config.json, tokenizer.json, headers of safetensors.
 *
 * The bytes must outlive the document: strings without escapes and the texts of numbers point into
 * them. Everything else lies in the arena. What is accepted is what Python's json.loads accepts of
 * UTF-8, less lone surrogates, numbers longer than JSON_NUMBER and nesting deeper than JSON_DEPTH.
 */
#ifndef INGOT_JSON_H
#define INGOT_JSON_H

#include "base/base.h"

typedef struct Json Json;       /* a value */
typedef struct JsonDoc JsonDoc; /* a text that was read */

enum {
  JSON_DEPTH = 128,            /* of arrays and objects in each other */
  JSON_NUMBER = 400,           /* bytes of one number */
  JSON_MAX_VALUES = 1 << 24,   /* in one text, keys included */
  JSON_MAX_BYTES = 0x7fffffff, /* of one text */
};

typedef enum JsonKind {
  JS_null,
  JS_bool,
  JS_int,   /* without fraction and exponent, and it fits 64 bits */
  JS_float, /* any other number, NaN and the infinities included, rounded to double */
  JS_string,
  JS_array,
  JS_object,
} JsonKind;

struct Json {
  JsonKind kind;
  u32 n;            /* bytes of a string or of a number's text; elements; members */
  u32 pos;          /* where in the text it begins */
  const char *text; /* JS_string: UTF-8, without a zero behind it; numbers: as they were written */
  union {
    bool b;
    i64 i;
    double f;
    /* JS_array: the elements; JS_object: key, value, key, value, ... in the order of the text,
     * every key once: of equal ones the last value counts, at the place of the first */
    const Json *at;
  };
  const u32 *index; /* JS_object with many members: see json_get */
};

struct JsonDoc {
  Ctx *c;
  Loc loc;
  const u8 *at;
  size_t n;
  const Json *root;
};

/* All of the bytes are one value, or ERR_input with line and column. */
JsonDoc json_read(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a);
/* In front of the message: the file, line and column of the value. */
_Noreturn void json_fail(const JsonDoc *d, const Json *j, Err code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

const char *json_kind_name(JsonKind k); /* "a string" */
/* NULL: j has no such member, is no object, or is NULL itself; so that calls can be nested. */
const Json *json_get(const Json *j, const char *key);
const Json *json_get_bytes(const Json *j, const void *key, size_t n);
static inline const Json *json_key(const Json *j, u32 i) {
  return &j->at[2 * i];
}
static inline const Json *json_value(const Json *j, u32 i) {
  return &j->at[2 * i + 1];
}
bool json_is(const Json *j, const char *text); /* a string of these bytes; NULL is none */
Str json_str(Ctx *c, const Json *j);           /* of a string or a number's text */

/* Member `key` of the object j, which must be of that kind; `otherwise` if it is absent or null. */
i64 json_int(const JsonDoc *d, const Json *j, const char *key, i64 otherwise);
double json_number(const JsonDoc *d, const Json *j, const char *key, double otherwise);
bool json_bool(const JsonDoc *d, const Json *j, const char *key, bool otherwise);
/* The same as the value itself; NULL if it is absent or null. */
const Json *json_member(const JsonDoc *d, const Json *j, const char *key, JsonKind kind);
/* It must be there. */
const Json *json_require(const JsonDoc *d, const Json *j, const char *key, JsonKind kind);

#endif
