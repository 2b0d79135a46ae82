/* jinja.h: chat templates: the subset of Jinja that models use, as a bounded interpreter.
 *
 * The output is that of Jinja2 with trim_blocks and lstrip_blocks. tojson is json.dumps with
 * ensure_ascii=False, as in Hugging Face transformers. Every byte of a string records whether it
 * came from a message. These marks survive all operations, and vocab_encode never uses a marked
 * byte in a special token.
 *
 * Steps, memory and nesting are limited, so that a template can neither hang nor exhaust memory.
 * Unknown functions are refused by name (ERR_unsupported). Errors at run time are ERR_input with
 * the line.
 */
#ifndef INGOT_JINJA_H
#define INGOT_JINJA_H

#include "base/base.h"

typedef struct JinjaVal JinjaVal;   /* a value */
typedef struct JinjaStr JinjaStr;   /* a string with a mark per byte */
typedef struct JinjaDict JinjaDict; /* ordered key-value pairs */
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
  JK_function, /* a global function; i is its row */
} JinjaKind;

struct JinjaStr {
  const char *at;
  const u8 *mark; /* NULL: no byte is marked */
  u32 n;
  bool safe; /* Markup of Jinja2: '+' escapes the other operand for HTML */
};

struct JinjaVal {
  JinjaKind kind;
  union {
    i64 i; /* also JK_bool */
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

/* jinja_value.c: values for a template. marked: user content */
JinjaVal jinja_string(Arena *a, const char *at, size_t n, bool marked);
JinjaVal jinja_dict(Arena *a);
JinjaVal jinja_list(Arena *a);
void jinja_add(Arena *a, JinjaVal list, JinjaVal v);
void jinja_set(Arena *a, JinjaVal dict, const char *key, JinjaVal v);

/* jinja.c: renders the template. now: seconds since 1970, for strftime_now. JINJA_DATES: keep the
 * date format between DATE_BEGIN and DATE_END, for later. */
#define JINJA_DATES INT64_MIN
enum { DATE_BEGIN = 1, DATE_END = 2 };
JinjaStr jinja_render(Ctx *c, const char *at, size_t n, JinjaVal vars, i64 now, Loc loc, Arena *a);

#endif
