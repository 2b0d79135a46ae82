/* jinja_internal.h: shared declarations of the template interpreter. */
#ifndef INGOT_JINJA_INTERNAL_H
#define INGOT_JINJA_INTERNAL_H

#include "chat/jinja.h"

typedef struct JinjaNode JinjaNode; /* a node of the syntax tree */
typedef struct Jinja Jinja;         /* a running template */
typedef struct JinjaOut JinjaOut;   /* output text with its marks */
typedef struct JinjaArgs JinjaArgs; /* arguments of a call */

enum {
  JINJA_DEPTH = 100,
  JINJA_STEPS = 4000000,
  JINJA_BYTES = 64 << 20,       /* memory of strings and lists */
  JINJA_MAX_SCANNED = 64 << 20, /* bytes of strings and lists that are read or copied */
};

typedef enum JinjaOp {
  /* statements: a, b, c are expressions or lists of statements (linked by next) */
  JN_data,  /* value */
  JN_print, /* a */
  JN_if,    /* a: condition, b: then, c: else */
  /* a: targets, b: iterable, c: body, d: else, e: filter condition */
  JN_for,
  /* a: targets, b: value; or b NULL: c: block, d: its filter */
  JN_set,
  JN_macro, /* value: name, a: parameters (defaults in a->a), c: body */
  JN_body,  /* c: statements; a: filter, or NULL */
  JN_break,
  JN_continue,
  /* expressions */
  JN_literal, /* value */
  JN_name,    /* value */
  JN_attr,    /* a, value: name */
  JN_item,    /* a[b] */
  JN_slice,   /* a[b:c:d] */
  JN_call,    /* a(b, ...): arguments linked by next; named ones have a value */
  JN_filter,  /* a | value(b, ...) */
  JN_test,    /* a is value(b, ...) */
  JN_not,
  JN_neg,
  JN_and,
  JN_or,
  JN_cond, /* b if a else c */
  JN_list,
  JN_tuple,
  JN_dict,     /* b: key, value, key, value, ... */
  JN_binary,   /* value: the operator */
  JN_argument, /* a; value: name, or undefined */
} JinjaOp;

struct JinjaNode {
  JinjaOp op;
  i32 line;
  JinjaVal value;
  JinjaNode *a, *b, *c, *d, *e, *next;
};

typedef struct JinjaFrame {
  struct JinjaFrame *outer;
  JinjaVal vars; /* a dict */
} JinjaFrame;

typedef enum JinjaFlow { JF_next, JF_break, JF_continue } JinjaFlow;

struct Jinja {
  Ctx *c;
  Arena *a;
  Loc loc;
  JinjaFrame *frame, *global;
  i64 now;
  u32 depth;
  u64 steps, bytes, scanned;
};

struct JinjaOut {
  Jinja *j;
  StrBuf text, mark;
};

enum { JINJA_ARGS = 16 };
struct JinjaArgs {
  JinjaVal at[JINJA_ARGS]; /* positional */
  u32 n;
  JinjaVal named[JINJA_ARGS], name[JINJA_ARGS];
  u32 nnamed;
};

_Noreturn void jinja_fail(const Jinja *j, Err code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* jinja_parse.c */
JinjaNode *jinja_parse(Jinja *j, const char *at, size_t n);

/* jinja_value.c */
void jinja_charge_memory(Jinja *j, u64 bytes); /* counts memory */
void jinja_step(Jinja *j);                     /* counts every evaluated node and list element */
void jinja_charge_bytes(Jinja *j, u64 bytes);  /* counts every byte read */
void jinja_push(Jinja *j, JinjaVal list, JinjaVal v); /* jinja_add, with memory accounting */
JinjaOut out_new(Jinja *j);
void out_str(JinjaOut *o, JinjaStr s);
void out_plain(JinjaOut *o, const char *s);
void out_value(JinjaOut *o, JinjaVal v); /* as str() */
JinjaVal out_end(JinjaOut *o);
JinjaVal jinja_plain(const char *s); /* a constant */
JinjaVal jinja_int(i64 i);
JinjaVal jinja_bool(bool b);
bool jinja_is_true(JinjaVal v);
bool str_equal(JinjaStr a, const char *b);
int jinja_compare(Jinja *j, JinjaVal a, JinjaVal b, bool *ordered); /* 0: equal */
bool jinja_equal(Jinja *j, JinjaVal a, JinjaVal b);
const JinjaVal *dict_find(Jinja *j, const JinjaDict *d, JinjaVal key);
void dict_put(Jinja *j, JinjaDict *d, JinjaVal key, JinjaVal v);
JinjaStr str_part(JinjaStr s, u32 from, u32 to);
u32 str_chars(Jinja *j, JinjaStr s);
bool str_at(Jinja *j, JinjaStr s, u32 i, JinjaStr what); /* true if s has `what` at i */
JinjaVal jinja_items(Jinja *j, JinjaVal v); /* the elements of an iterable, as a list */
JinjaVal jinja_attr(Jinja *j, JinjaVal v, JinjaVal key); /* undefined if there is none */
JinjaVal text_of(Jinja *j, JinjaVal v);                  /* str(v) */
JinjaStr jinja_escape(Jinja *j, JinjaStr s);             /* escapes for HTML */

/* jinja_lib.c */
JinjaVal jinja_filter(Jinja *j, JinjaVal name, JinjaVal v, const JinjaArgs *args);
bool jinja_test(Jinja *j, JinjaVal name, JinjaVal v, const JinjaArgs *args);
bool jinja_method(Jinja *j, JinjaVal v, JinjaVal name, const JinjaArgs *args, JinjaVal *out);
JinjaVal jinja_global(JinjaVal name); /* the function of this name, or undefined */
JinjaVal jinja_function(Jinja *j, JinjaVal f, const JinjaArgs *args);

bool jinja_is_number(JinjaVal v); /* also bool */

#endif
