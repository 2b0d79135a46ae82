/* script_own.h: replaces src/lang/run/lang_value.h in a compiled program with tensors.
 *
 * Values are those of script.c under the names of src/lang. An Eval is the state of a running
 * program apart from its variables. A node of the syntax tree is a source position and the called
 * name, which is all that messages need. */
#ifndef INGOT_SCRIPT_OWN_H
#define INGOT_SCRIPT_OWN_H

#include "lang/run/symbol_sizes.h"

typedef Value LangValue;
typedef Box HeapObj;
typedef Kind LangKind;
typedef Chars StringObj;
typedef List ListObj;
typedef Fn ClosureObj;
typedef struct LangObject LangObject;
typedef struct LazyTensor LazyTensor;
typedef struct AutogradMeta AutogradMeta;
typedef struct Eval Eval;
typedef struct Ast Ast;
typedef struct Graph Graph; /* unused here */
typedef struct Ingot Ingot;
typedef u32 Val;

#define KD_none   K_none
#define KD_null   K_null
#define KD_int    K_int
#define KD_float  K_float
#define KD_bool   K_bool
#define KD_string K_string
#define KD_array  K_array
#define KD_tuple  K_tuple
#define KD_struct K_struct
#define KD_fn     K_fn
#define KD_tensor K_tensor
#define KD_object K_object
#define kind_name kind_names

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

struct Ast {
  int place;
  const char *builtin; /* called function; NULL: an operator */
  const Ast *a, *b;    /* its operands */
};

typedef struct Output {
  void (*write)(void *user, const char *at, size_t n);
  void *user;
} Output;

struct Eval {
  Ctx *c;
  const Output *o;
  Arena stack;
  u32 in_grad;
  bool tracing; /* never */
  const Ast *at;
  u64 serial, random;
  u32 mark;
  LazyTensor *last_loss;
  const void *dry, *dims; /* always NULL: see src/lang/run/dry.h, sizes.c */
};

typedef void BuiltinFn(Eval *ev, LangValue *arg, u32 n, LangValue *out);

_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void eval_check_file(Eval *ev, const char *path);
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
void *heap_new(Eval *ev, LangKind kind, size_t bytes);
void heap_drop(Eval *ev, HeapObj *b);
LangValue value_retain(const LangValue *d);
void value_drop(Eval *ev, LangValue *d);
LangValue value_int(i64 i);
static inline LangValue value_size(const Eval *ev, i64 d) {
  return (void)ev, value_int(d);
}
LangValue value_float(double f);
LangValue value_bool(bool b);
LangValue value_string(Eval *ev, const char *at, size_t n);
LangValue value_list(Eval *ev, LangKind kind, u64 n);
bool value_is_true(const LangValue *d);
const char *value_kind_name(const LangValue *d);
void value_show(Eval *ev, const LangValue *d, StrBuf *out);
void show_float(StrBuf *out, double x, bool exponent);
void show_number(StrBuf *out, double x);
LangValue fn_gradient(Eval *ev, ClosureObj *f);
LangValue call_grad(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);
LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);
static inline bool value_is_unknown(const Eval *ev, const LangValue *d) {
  return (void)ev, (void)d, false;
}
LangValue value_unknown(Eval *ev, LangKind kind);
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what);
static inline void dry_clear_data(Eval *ev, LazyTensor *t) {
  (void)ev, (void)t;
}
static inline bool dry_load_file(Eval *ev, const char *path, LangValue *out) {
  return (void)ev, (void)path, (void)out, false;
}
i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride);
i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without);
#define SIZE_ANY INT64_MIN
static inline bool size_is_symbolic(const Eval *ev, i64 d) {
  return (void)ev, (void)d, false;
}
static inline i64 size_sum(Eval *ev, i64 x, i64 y) {
  return (void)ev, x + y;
}
static inline void size_show(const Eval *ev, i64 d, StrBuf *out) {
  (void)ev;
  sb_fmt(out, "%lld", (long long)d);
}
double arg_number(Eval *ev, const LangValue *d);
u32 arg_shape(Eval *ev, const LangValue *d, i64 *dim);
double number_of(Op op, double x, double y);
double number_minmax(bool largest, double x, double y);
i64 arg_int(Eval *ev, const LangValue *d);
static inline i64 arg_size(Eval *ev, const LangValue *d) {
  return arg_int(ev, d);
}
ListObj *arg_array(Eval *ev, const LangValue *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "lang/syntax/builtins.def"
#undef BI

#endif
