/* script_own.h: replaces src/lang/run/lang_value.h in a compiled program.
 *
 * Values are those of src/lang/run/value.h. An Eval is the state of a running program apart from
 * its variables. A node of the syntax tree is a source position with what messages need. Types,
 * structs and functions are tables that ingot writes. No value is unknown at run time
 * (src/lang/run/dry.h), and no extent is symbolic (src/lang/run/sizes.c). */
#ifndef INGOT_SCRIPT_OWN_H
#define INGOT_SCRIPT_OWN_H

#define INGOT_SCRIPT
#include "ir/ir.h"

#include <sys/resource.h>

typedef struct Ast Ast;
typedef struct LangFn LangFn;
typedef struct LangType LangType;
typedef struct StructInfo StructInfo;
typedef struct Graph Graph; /* unused here */
typedef struct Ingot Ingot;
typedef u32 Val;

typedef enum Tok {
#define TOK(name, text) TOK_##name,
#include "lang/syntax/tokens.def"
#undef TOK
  TOK_COUNT
} Tok;
static const char *const tok_text[] = {
#define TOK(name, text) text,
#include "lang/syntax/tokens.def"
#undef TOK
};

typedef enum LangKind {
#define KIND(name, text) KD_##name,
#include "lang/syntax/kinds.def"
#undef KIND
} LangKind;
static const char *const kind_name[] = {
#define KIND(name, text) text,
#include "lang/syntax/kinds.def"
#undef KIND
};

/* Functions that macros declare: static, as tools/embed.c makes all others. */
struct Eval;
struct LangObject;
struct LangValue;
#define BI(name, sig, args, shape, fn)                                                             \
  static void bi_##fn(struct Eval *ev, struct LangValue *arg, u32 n, struct LangValue *out);
#include "lang/syntax/builtins.def"
#undef BI
#define METHOD(name, n, result, fn)                                                                \
  static void do_##fn(struct Eval *ev, struct LangObject *m, struct LangValue *arg,                \
                      struct LangValue *out);
#include "lang/syntax/methods.def"
#undef METHOD

#include "lang/run/value.h"

struct Ast {
  int place;
  Tok op;
  const char *builtin; /* called function; NULL: an operator */
  const Ast *a, *b;    /* its operands */
};

struct StructInfo {
  const char *text; /* the name */
  u32 n;
  const char *const *field;
};

struct LangType {
  LangKind kind;
  const char *text;            /* shown in messages */
  const LangType *elem;        /* type of the elements of an array */
  const LangType *const *item; /* types of the items of a tuple */
  u32 n;
  const StructInfo *of;
  bool shaped; /* a tensor type with a shape */
  u32 rank;
  const i64 *dim;          /* -1: unknown */
  const char *const *name; /* names of extents; NULL: none */
};

/* at: positions of the call and of its arguments. Takes the arguments. */
typedef LangValue Code(ClosureObj *self, LangValue *arg, const int *at);
struct LangFn {
  Code *code;
  u32 params;
  const LangType *const *param; /* NULL: any type */
  u32 with;                     /* number of captured variables */
};

typedef struct Output {
  void (*write)(void *user, const char *at, size_t n);
  void *user;
} Output;

struct Eval {
  Ctx *c;
  const Output *o;
  Arena stack;
  u32 in_grad, depth, mark;
  bool tracing; /* never */
  const Ast *at;
  u64 serial, random;
  SymbolSizes *sizes; /* values of the named extents of the current call */
  LazyTensor *last_loss;
  const void *dry, *dims; /* always NULL */
};

static inline void heap_link(Eval *ev, HeapObj *b) {
  (void)ev, (void)b;
}
static inline void heap_unlink(Eval *ev, HeapObj *b) {
  (void)ev, (void)b;
}
static inline bool struct_same(const StructInfo *x, const StructInfo *y) {
  return x == y;
}
static inline const char *struct_field_text(Eval *ev, const StructInfo *s, u64 i) {
  return (void)ev, s->field[i];
}
static inline const char *lang_type_text(Ctx *c, const LangType *t) {
  return (void)c, t->text;
}
static inline const char *type_symbol(Eval *ev, const LangType *t, u32 i) {
  return (void)ev, t->name ? t->name[i] : NULL;
}
static inline SymbolSizes *call_sizes(Eval *ev) {
  return ev->sizes;
}

/* ---- unknown values and symbolic extents ---- */

#define SIZE_ANY INT64_MIN

static _Noreturn void not_known(Eval *ev) {
  eval_fail(ev, ev->at, "a size was not known when the program was compiled");
}
static inline bool value_is_unknown(const Eval *ev, const LangValue *d) {
  return (void)ev, (void)d, false;
}
static LangValue value_unknown(Eval *ev, LangKind kind) {
  (void)kind;
  not_known(ev);
}
static _Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what) {
  eval_fail(ev, at, "%s", what);
}
static LangValue dry_cast(Eval *ev, const Ast *n, const LangValue *v, char to) {
  (void)v, (void)to;
  dry_refuse(ev, n, "a number");
}
static inline void dry_clear_data(Eval *ev, LazyTensor *t) {
  (void)ev, (void)t;
}
static inline bool dry_load_file(Eval *ev, const char *path, LangValue *out) {
  return (void)ev, (void)path, (void)out, false;
}
static inline bool lazy_is_symbolic(Eval *ev, LazyTensor *t) {
  return (void)ev, (void)t, false;
}
static inline bool size_is_symbolic(const Eval *ev, i64 d) {
  return (void)ev, (void)d, false;
}
static inline i64 size_times(Eval *ev, i64 x, i64 y) {
  return (void)ev, x * y;
}
static inline i64 size_sum(Eval *ev, i64 x, i64 y) {
  return (void)ev, x + y;
}
static i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without) {
  (void)t, (void)dim, (void)rank, (void)without;
  not_known(ev);
}
static i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride) {
  (void)extent, (void)size, (void)stride;
  not_known(ev);
}
static inline void size_show(const Eval *ev, i64 d, StrBuf *out) {
  (void)ev;
  sb_fmt(out, "%lld", (long long)d);
}
static inline LangValue value_size(const Eval *ev, i64 d) {
  return (void)ev, value_int(d);
}
static inline i64 arg_size(Eval *ev, const LangValue *d) {
  return arg_int(ev, d);
}

#endif
