/* script_own.h: what stands for src/lang/own.h in a compiled program with tensors.
 *
 * Values are those of script.c, under the names that src/lang knows them by, and an Eval is what a
 * running program has beside its variables. A node of the tree is a place, and what is called
 * there: that is all that messages need.
 */
#ifndef INGOT_SCRIPT_OWN_H
#define INGOT_SCRIPT_OWN_H

#include "lang/extents.h"

typedef Value Worth;
typedef Box Holder;
typedef Kind LangKind;
typedef Chars BoxText;
typedef List BoxList;
typedef Fn BoxFn;
typedef struct Thing Thing;
typedef struct Lazy Lazy;
typedef struct Ident Ident;
typedef struct Eval Eval;
typedef struct Ast Ast;
typedef struct Graph Graph; /* there is none here */
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
#include "front/lang/tokens.def"
#undef TOK
  TOK_COUNT
} Tok;
static const char *const tok_text[] = {
#define TOK(name, text) text,
#include "front/lang/tokens.def"
#undef TOK
};

struct Ast {
  int place;
  const char *builtin; /* what is called there; NULL: an operator */
  const Ast *a, *b;    /* what it is applied to, and with what */
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
  Lazy *last_loss;
  const void *dry, *dims; /* never: see src/lang/dry.h, sizes.c */
};

typedef void BuiltinFn(Eval *ev, Worth *arg, u32 n, Worth *out);

_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void eval_file(Eval *ev, const char *path);
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
void *share_new(Eval *ev, LangKind kind, size_t bytes);
void share_drop(Eval *ev, Holder *b);
Worth worth_share(const Worth *d);
void worth_drop(Eval *ev, Worth *d);
Worth worth_int(i64 i);
static inline Worth worth_size(const Eval *ev, i64 d) {
  return (void)ev, worth_int(d);
}
Worth worth_float(double f);
Worth worth_bool(bool b);
Worth worth_text(Eval *ev, const char *at, size_t n);
Worth worth_list(Eval *ev, LangKind kind, u64 n);
bool worth_true(const Worth *d);
const char *worth_kind(const Worth *d);
void show_worth(Eval *ev, const Worth *d, Text *out);
void show_float(Text *out, double x, bool exponent);
void show_number(Text *out, double x);
Worth fn_gradient(Eval *ev, BoxFn *f);
Worth call_grad(Eval *ev, const Ast *at, BoxFn *f, Worth *arg, u32 n);
Worth call_fn(Eval *ev, const Ast *at, BoxFn *f, Worth *arg, u32 n);
static inline bool worth_open(const Eval *ev, const Worth *d) {
  return (void)ev, (void)d, false;
}
Worth worth_unknown(Eval *ev, LangKind kind);
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what);
static inline void dry_blank(Eval *ev, Lazy *t) {
  (void)ev, (void)t;
}
static inline bool dry_file(Eval *ev, const char *path, Worth *out) {
  return (void)ev, (void)path, (void)out, false;
}
i64 size_windows(Eval *ev, i64 extent, i64 size, i64 stride);
i64 size_rest(Eval *ev, const Lazy *t, const i64 *dim, u32 rank, u32 without);
#define SIZE_ANY INT64_MIN
static inline bool size_is_open(const Eval *ev, i64 d) {
  return (void)ev, (void)d, false;
}
static inline i64 size_sum(Eval *ev, i64 x, i64 y) {
  return (void)ev, x + y;
}
static inline void size_show(const Eval *ev, i64 d, Text *out) {
  (void)ev;
  text_fmt(out, "%lld", (long long)d);
}
double arg_number(Eval *ev, const Worth *d);
u32 arg_shape(Eval *ev, const Worth *d, i64 *dim);
double number_of(Op op, double x, double y);
double number_pick(bool largest, double x, double y);
i64 arg_int(Eval *ev, const Worth *d);
static inline i64 arg_size(Eval *ev, const Worth *d) {
  return arg_int(ev, d);
}
BoxList *arg_array(Eval *ev, const Worth *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "front/lang/builtins.def"
#undef BI

#endif
