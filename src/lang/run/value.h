/* value.h: values of a running program. Also compiled into programs, see tools/script_own.h.
 *
 * A LangValue holds small values directly and others in a reference-counted HeapObj. Arrays, tuples
 * and tensors have value semantics: a shared object is copied before it changes. A function that
 * returns a LangValue returns a reference. A function that gets a LangValue borrows it, unless its
 * comment says that it takes it. After a failure all remaining objects are freed together.
 *
 * The includer defines the kinds (LangKind), and Eval, Ast, LangFn, LangType and StructInfo, with
 * the fields that the sources below use.
 */
#ifndef INGOT_LANG_VALUE_H
#define INGOT_LANG_VALUE_H

#include "lang/run/symbol_sizes.h"

typedef struct LangValue LangValue;
typedef struct HeapObj HeapObj;
typedef struct StringObj StringObj;
typedef struct ListObj ListObj;
typedef struct ClosureObj ClosureObj;
typedef struct LangObject LangObject;     /* a layer, optimizer or model */
typedef struct LazyTensor LazyTensor;     /* see lazy.c */
typedef struct AutogradMeta AutogradMeta; /* gradient state that copies of a tensor share */
typedef struct Eval Eval;                 /* a running program */

struct HeapObj {
  u32 refs;
  LangKind kind;        /* KD_none: an AutogradMeta */
  HeapObj *prev, *next; /* list of all objects */
  size_t bytes;
};

/* The unknown property of a value. */
typedef enum UnknownKind {
  UNK_none,
  UNK_value,  /* value of a number or string: depends on tensor data (dry.h) */
  UNK_length, /* length of an array, which is as long as it may become (dry.h) */
  UNK_shape,  /* KD_null: tensors of several shapes (dry.h) */
  UNK_kind,   /* KD_null: values of several kinds (dry.h) */
  UNK_size    /* KD_int: the value is a Dim, a symbolic size (sizes.c) */
} UnknownKind;

struct LangValue {
  LangKind kind; /* KD_none: an unset variable */
#ifndef INGOT_SCRIPT
  UnknownKind open; /* in the evaluator only; arithmetic is faster without it */
#endif
  union {
    i64 i; /* KD_int, KD_bool */
    double f;
    HeapObj *box;
    StringObj *text;
    ListObj *list;
    ClosureObj *fn;
    LangObject *thing;
    LazyTensor *lazy;
  } u;
};

struct StringObj {
  HeapObj box;
  size_t n;
  char at[]; /* NUL-terminated */
};

struct ListObj { /* KD_array, KD_tuple, KD_struct */
  HeapObj box;
  const StructInfo *of; /* KD_struct */
  u64 n, room;          /* room: capacity in elements */
  LangValue at[];
};

struct ClosureObj {
  HeapObj box;
  LangFn *fn;
  ClosureObj *grad_of; /* this is the gradient of that function; NULL: a plain function */
  u32 n;
  LangValue with[]; /* captured values */
};

/* Maximum number of elements of arrays, tensors and strings. */
#define MOST_ELEMENTS ((u64)1 << 28)
enum { EVAL_DEPTH = 6000 }; /* nesting of AST nodes, including calls */

typedef void BuiltinFn(Eval *ev, LangValue *arg, u32 n, LangValue *out);

/* Fails at a source position. */
_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails if the program may not open files. */
void eval_check_file(Eval *ev, const char *path);

/* lang_value.c */
void *heap_new(Eval *ev, LangKind kind, size_t bytes); /* zeroed; fails if out of memory */
static inline bool value_is_boxed(const LangValue *d) {
  return d->kind >= KD_string && d->kind <= KD_object;
}
LangValue value_retain(const LangValue *d);
void value_drop(Eval *ev, LangValue *d); /* clears d */
void heap_drop(Eval *ev, HeapObj *b);
LangValue value_int(i64 i);
LangValue value_float(double f);
LangValue value_bool(bool b);
LangValue value_string(Eval *ev, const char *at, size_t n);
LangValue value_list(Eval *ev, LangKind kind, u64 n); /* filled with null */
/* Copies the list of d if it is shared. */
ListObj *list_make_unique(Eval *ev, LangValue *d);
void list_push(Eval *ev, LangValue *d, LangValue x); /* takes x; copies a shared list */
bool value_equal(Eval *ev, const LangValue *x, const LangValue *y);
bool value_is_true(const LangValue *d);
const char *value_kind_name(const LangValue *d); /* as type() returns */
LangValue fn_gradient(Eval *ev, ClosureObj *f);  /* as a function */

/* value_ops.c: n is the node of the operation, for messages */
/* n->op of x and y. */
LangValue value_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y);
LangValue value_negate(Eval *ev, const Ast *n, const LangValue *d);
LangValue value_cast(Eval *ev, const Ast *n, LangValue d, const char *to); /* takes d */
i64 value_bound(Eval *ev, const Ast *n, const LangValue *d);               /* bound of a range */
i64 value_upto(Eval *ev, const Ast *n, i64 end); /* the end of a range that includes it */
LangValue value_range(Eval *ev, const Ast *n, i64 from, i64 end);
LangValue value_repeat(Eval *ev, const Ast *n, LangValue d, const LangValue *times); /* takes d */
/* d[i]; n->b: the index */
LangValue value_index(Eval *ev, const Ast *n, const LangValue *d, const LangValue *i);
LangValue value_item(Eval *ev, const Ast *n, LangValue d, i64 i); /* d.i; takes d */
/* Address of an element that will be assigned. Copies a shared list. */
LangValue *value_element(Eval *ev, const Ast *n, LangValue *in, const LangValue *i);
/* push and pop of the array in a variable. push takes x. */
LangValue value_push(Eval *ev, const Ast *n, LangValue *to, LangValue x);
LangValue value_pop(Eval *ev, const Ast *n, LangValue *from);
/* Converts d to the type, or fails at n. */
void value_convert(Eval *ev, const Ast *n, LangValue *d, const LangType *to);

/* show.c */
void value_show(Eval *ev, const LangValue *d, StrBuf *out);

/* digits.c */
void show_float(StrBuf *out, double x, bool exponent); /* exponent: the format of tensors */
void show_number(StrBuf *out, double x); /* in text forms of objects: no ".0" for integers */

/* Calls of functions; these take the arguments. */
LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);
/* grads.c: the gradient of f with respect to its first argument. */
LangValue call_grad(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n);

/* builtin_args.c */
#define ARG_BAD(ev, ...) eval_fail(ev, (ev)->at, __VA_ARGS__)
const char *builtin_name(const Eval *ev);
double arg_number(Eval *ev, const LangValue *d);
/* returns the rank; dim has MAX_RANK elements */
u32 arg_shape(Eval *ev, const LangValue *d, i64 *dim);
/* Math functions as engines compute them, independent of the C library. */
double number_of(Op op, double x, double y);
/* max or min; the first of equal numbers; a number if one operand is NaN. */
double number_minmax(bool largest, double x, double y);
i64 arg_int(Eval *ev, const LangValue *d);
ListObj *arg_array(Eval *ev, const LangValue *d);

#define BI(name, sig, args, shape, fn) BuiltinFn bi_##fn;
#include "lang/syntax/builtins.def"
#undef BI

#endif
