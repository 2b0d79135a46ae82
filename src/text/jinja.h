/* jinja.h: chat templates: the part of Jinja that models use, as a bounded interpreter.
 *
 * Text is what Jinja2 gives with trim_blocks and lstrip_blocks; tojson is json.dumps without
 * escapes of what is not ASCII, as the tools of these models have it. Every byte of a string knows
 * whether it came from a message: such bytes are marked through all operations, and vocab_encode
 * lets none of them be part of a special token.
 *
 * Steps, memory and nesting have bounds, so that a template from a file can neither hang nor
 * exhaust the machine. What is not known is refused by name (ERR_unsupported); what goes wrong
 * while it runs is ERR_input with the line.
 */
#ifndef INGOT_JINJA_H
#define INGOT_JINJA_H

#include "base/base.h"

typedef struct JinjaVal JinjaVal;   /* a value */
typedef struct JinjaStr JinjaStr;   /* a string with its marks */
typedef struct JinjaDict JinjaDict; /* keys and values, in order */
typedef struct JinjaList JinjaList;
typedef struct JinjaPair JinjaPair;

typedef enum JinjaKind {
  JK_undefined,
  JK_none,
  JK_bool,
  JK_int,
  JK_float,
  JK_string,
  JK_list,
  JK_tuple,
  JK_dict,
  JK_space, /* namespace() */
  JK_macro,
} JinjaKind;

struct JinjaStr {
  const char *at;
  const u8 *mark; /* NULL: no byte is marked */
  u32 n;
};

struct JinjaVal {
  JinjaKind kind;
  union {
    i64 i; /* JK_bool too */
    double f;
    JinjaStr s;
    JinjaList *list;
    JinjaDict *dict;
    const struct JinjaNode *macro;
  };
};

struct JinjaList {
  VEC(JinjaVal) v;
};
struct JinjaPair {
  JinjaVal key, value;
};
struct JinjaDict {
  VEC(JinjaPair) v;
};

/* jinja_value.c: values for a template. marked: it is of the user. */
JinjaVal jinja_string(Arena *a, const char *at, size_t n, bool marked);
JinjaVal jinja_dict(Arena *a);
JinjaVal jinja_list(Arena *a);
void jinja_add(Arena *a, JinjaVal list, JinjaVal v);
void jinja_set(Arena *a, JinjaVal dict, const char *key, JinjaVal v);

/* jinja.c: the text that the template gives. now: seconds since 1970, for strftime_now; or
 * JINJA_DATES: a date is its form between DATE_BEGIN and DATE_END, to be filled in later. */
#define JINJA_DATES INT64_MIN
enum { DATE_BEGIN = 1, DATE_END = 2 };
JinjaStr jinja_render(Ctx *c, const char *at, size_t n, JinjaVal vars, i64 now, Loc loc, Arena *a);

#endif
