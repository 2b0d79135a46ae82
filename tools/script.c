/* script.c: runtime of compiled language programs (docs/language.md): values.
 *
 * ingot contains the text of this file. The code that `ingot build PROGRAM.ch` generates follows
 * it: one C function per function of the program, tables of types, structs and source positions,
 * and script_main. Nothing is looked up or decoded at run time.
 *
 * A Value is a scalar or a reference to a counted Box. Functions borrow their arguments and return
 * a new reference, unless they say that they take an argument. Shared lists are copied before a
 * change. Errors are reported with the source position, as in `ingot run`, and end the program with
 * code 4. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/resource.h>

/* In the order of kinds.def; only the kinds of compiled programs. */
typedef enum Kind {
  K_none, /* an uninitialized variable; any type */
  K_null,
  K_int,
  K_float,
  K_bool,
  K_string,
  K_array,
  K_tuple,
  K_struct,
  K_fn,
  K_tensor,
  K_object
} Kind;
static const char *const kind_names[] = {"nothing", "null",  "integer", "float",  "boolean",
                                         "string",  "array", "tuple",   "struct", "function"};

typedef struct Box Box;
typedef struct Chars Chars;
typedef struct List List;
typedef struct Fn Fn;
typedef struct Value {
  Kind kind;
  union {
    int64_t i; /* K_int, K_bool */
    double f;
    Box *box;
    Chars *text;
    List *list;
    Fn *fn;
    struct LazyTensor *lazy;
    struct LangObject *thing;
  } u;
} Value;

struct Box {
  uint32_t refs;
  Kind kind;
  Box *next; /* next box to free */
};

struct Chars {
  Box box;
  size_t n;
  char at[];
};

typedef struct Struct {
  const char *name;
  uint32_t n;
  const char *const *field;
} Struct;

struct List {
  Box box;
  const Struct *of;
  uint64_t n, room;
  Value at[];
};

typedef struct ValueType ValueType;
struct ValueType {
  Kind kind;
  const char *text;             /* for messages */
  const ValueType *const *item; /* one for an array, all for a tuple */
  uint32_t n;
  const Struct *of;
  int shaped; /* a tensor type with a shape */
  uint32_t rank;
  const int64_t *dim;      /* -1: unknown */
  const char *const *name; /* names of extents; NULL: none */
};

/* A source position: FILE:LINE:COLUMN, and the line with a caret below it. */
typedef struct Place {
  const char *where, *line;
} Place;
extern const Place script_place[];

/* at: positions of the call and of its arguments. Takes the arguments. */
typedef Value Code(Fn *self, Value *arg, const int *at);
typedef struct Shape {
  Code *code;
  uint32_t params;
  const ValueType *const *param; /* NULL: any type */
  uint32_t with;                 /* number of captured variables */
} Shape;
struct Fn {
  Box box;
  const Shape *shape;
  Fn *grad_of; /* the function that it is the gradient of; NULL: none */
  Value with[];
};

#define MOST_ELEMENTS ((uint64_t)1 << 28)
enum { MOST_DEPTH = 6000, BAD_INPUT = 4, BAD_SYSTEM = 5 };

static const Value null = {K_null, {0}};
static const char *script_name = "program";

/* ---- tensors and objects: script_tensor.c, or stubs in script_lib.c ---- */

typedef struct Shown Shown; /* a growing string */
typedef struct Sizes Sizes; /* values of the named extents of a call */
static const char *more_kind(Value d);
static void more_release(Box *b); /* releases its contents, not its own memory */
static void more_show(Shown *t, Value d, int at);
/* These return whether they handled the operands; only then *out is set and the operands are
 * taken. */
static int more_binary(char sign, Value x, Value y, int at, Value *out);
static int more_negate(Value x, int at, Value *out);
static int more_index(Value v, Value i, int at, int where, Value *out); /* takes only i */
static int more_call(Value f, Value *arg, uint32_t n, const int *at, Value *out);
static int more_method(Value on, const char *name, Value *arg, uint32_t n, const int *at,
                       Value *out);
static int more_equal(Value x, Value y, int at, int *same);
/* Converts a tensor of one element to a number and returns 1, unless a gradient needs it. */
static int more_number(Value *d);
static int fits_element(Value d, double f); /* value of a tensor of one element */
static int more_becomes(Value *d, const ValueType *to, int at);

/* ---- errors ---- */

static _Noreturn void script_fail(int at, const char *fmt, ...) {
  va_list args;
  fflush(stdout);
  fprintf(stderr, "%s: %s: ", script_name, script_place[at].where);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "%s\n", script_place[at].line);
  exit(BAD_INPUT);
}

static _Noreturn void no_memory(void) {
  fflush(stdout);
  fprintf(stderr, "%s: out of memory\n", script_name);
  exit(BAD_SYSTEM);
}

static const char *kind_of(Value d) {
  if (d.kind > K_fn) return more_kind(d);
  return d.kind == K_struct ? d.u.list->of->name : kind_names[d.kind];
}

/* ---- memory ---- */

static void *box_new(Kind kind, size_t bytes) {
  Box *b = calloc(1, bytes);
  if (!b) no_memory();
  b->refs = 1;
  b->kind = kind;
  return b;
}

static inline Value share(Value d) {
  if (d.kind >= K_string) d.u.box->refs++;
  return d;
}

static void let_go(Value d, Box **waiting) {
  if (d.kind < K_string || --d.u.box->refs) return;
  d.u.box->next = *waiting;
  *waiting = d.u.box;
}

/* Nested lists may be deep: they are freed through a chain, without recursion. */
static void free_box(Box *b) {
  Box *waiting = NULL;
  for (;;) {
    if (b->kind >= K_array && b->kind <= K_struct)
      for (uint64_t i = 0; i < ((List *)b)->n; i++) let_go(((List *)b)->at[i], &waiting);
    if (b->kind == K_fn)
      for (uint32_t i = 0; i < ((Fn *)b)->shape->with; i++) let_go(((Fn *)b)->with[i], &waiting);
    if (b->kind == K_fn && ((Fn *)b)->grad_of)
      let_go((Value){K_fn, {.fn = ((Fn *)b)->grad_of}}, &waiting);
    if (b->kind > K_fn || b->kind == K_none) more_release(b);
    free(b);
    if (!(b = waiting)) return;
    waiting = b->next;
  }
}

static inline void drop(Value d) {
  if (d.kind >= K_string && !--d.u.box->refs) free_box(d.u.box);
}

/* Assigns d to the variable and takes it. */
static inline void set(Value *to, Value d) {
  Value old = *to;
  *to = d;
  drop(old);
}

static inline void forget(Value *d) {
  set(d, (Value){K_none, {0}});
}

static inline Value of_int(int64_t i) {
  return (Value){K_int, {.i = i}};
}
static inline Value of_float(double f) {
  return (Value){K_float, {.f = f}};
}
static inline Value of_bool(int b) {
  return (Value){K_bool, {.i = b}};
}

static void not_too_many(uint64_t n, int at) {
  if (n > MOST_ELEMENTS)
    script_fail(at, "a value of %llu elements: the limit is %llu", (unsigned long long)n,
                (unsigned long long)MOST_ELEMENTS);
}

static Value of_text(const char *s, size_t n) {
  Chars *t = box_new(K_string, sizeof *t + n + 1);
  t->n = n;
  if (n) memcpy(t->at, s, n);
  return (Value){K_string, {.text = t}};
}

static Value of_list(Kind kind, uint64_t n) {
  List *l = box_new(kind, sizeof *l + (size_t)n * sizeof *l->at);
  l->n = l->room = n;
  for (uint64_t i = 0; i < n; i++) l->at[i] = null;
  return (Value){kind, {.list = l}};
}

static Value of_struct(const Struct *of) {
  Value d = of_list(K_struct, of->n);
  d.u.list->of = of;
  return d;
}

static Fn *fn_new(const Shape *shape) {
  Fn *f = box_new(K_fn, sizeof *f + shape->with * sizeof *f->with);
  f->shape = shape;
  return f;
}

/* The list of *d, copied if it is shared. */
static List *own(Value *d) {
  List *l = d->u.list;
  if (l->box.refs == 1) return l;
  Value copy = of_list(d->kind, l->n);
  copy.u.list->of = l->of;
  for (uint64_t i = 0; i < l->n; i++) copy.u.list->at[i] = share(l->at[i]);
  set(d, copy);
  return copy.u.list;
}

/* ---- printing ---- */

struct Shown {
  char *at;
  size_t n, room;
};

static void put(Shown *t, const char *s, size_t n) {
  if (t->n + n > t->room) {
    t->room = (t->n + n) * 2 + 64;
    t->at = realloc(t->at, t->room);
    if (!t->at) no_memory();
  }
  if (n) memcpy(t->at + t->n, s, n);
  t->n += n;
}

static void puts_to(Shown *t, const char *s) {
  put(t, s, strlen(s));
}

static void put_value(Shown *t, Value d, int depth, int at);

static void put_list(Shown *t, const List *l, const char *open, const char *close, int depth,
                     int at) {
  if (depth > MOST_DEPTH) script_fail(at, "arrays are nested too deeply to show");
  puts_to(t, open);
  for (uint64_t i = 0; i < l->n; i++) {
    if (i) puts_to(t, ", ");
    if (l->of) puts_to(t, l->of->field[i]), puts_to(t, ": ");
    put_value(t, l->at[i], depth + 1, at);
  }
  puts_to(t, close);
}

static void put_value(Shown *t, Value d, int depth, int at) {
  char text[NUMBER_ROOM];
  switch (d.kind) {
  case K_int: put(t, text, (size_t)sprintf(text, "%lld", (long long)d.u.i)); return;
  case K_float: put(t, text, (size_t)number_text(text, d.u.f, 0, 0)); return;
  case K_bool: puts_to(t, d.u.i ? "true" : "false"); return;
  case K_string: put(t, d.u.text->at, d.u.text->n); return;
  case K_array: put_list(t, d.u.list, "[", "]", depth, at); return;
  case K_tuple: put_list(t, d.u.list, "(", ")", depth, at); return;
  case K_struct:
    puts_to(t, d.u.list->of->name);
    put_list(t, d.u.list, " { ", " }", depth, at);
    return;
  case K_fn: puts_to(t, "<function>"); return;
  case K_tensor:
  case K_object: more_show(t, d, at); return;
  default: puts_to(t, "null");
  }
}

/* ---- truth and equality ---- */

static int equal(Value x, Value y, int depth, int at) {
  if (x.kind == K_int && y.kind == K_float) return (double)x.u.i == y.u.f;
  if (x.kind == K_float && y.kind == K_int) return x.u.f == (double)y.u.i;
  int same;
  if ((x.kind == K_tensor || y.kind == K_tensor) && more_equal(x, y, at, &same)) return same;
  if (x.kind != y.kind) return 0;
  switch (x.kind) {
  case K_null: return 1;
  case K_int:
  case K_bool: return x.u.i == y.u.i;
  case K_float: return x.u.f == y.u.f;
  case K_string:
    return x.u.text->n == y.u.text->n && !memcmp(x.u.text->at, y.u.text->at, x.u.text->n);
  case K_array:
  case K_tuple:
  case K_struct: {
    const List *p = x.u.list, *q = y.u.list;
    if (p->of != q->of) return 0;
    if (depth > MOST_DEPTH) script_fail(at, "arrays are nested too deeply to compare");
    if (p == q) return 1;
    if (p->n != q->n) return 0;
    for (uint64_t i = 0; i < p->n; i++)
      if (!equal(p->at[i], q->at[i], depth + 1, at)) return 0;
    return 1;
  }
  default: return 0;
  }
}

static inline int is_true(Value d) {
  switch (d.kind) {
  case K_none:
  case K_null: return 0;
  case K_int:
  case K_bool: return d.u.i != 0;
  case K_float: return d.u.f != 0;
  default: return 1;
  }
}

/* Truth of a condition; takes it. */
static inline int holds(Value d) {
  int yes = is_true(d);
  drop(d);
  return yes;
}

static inline int is_number(Value d) {
  return d.kind == K_int || d.kind == K_float;
}

static inline double number(Value d) {
  return d.kind == K_int ? (double)d.u.i : d.u.f;
}

static int64_t truncated(double x) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return (int64_t)x;
}

/* ---- operators; all take their operands ---- */

static _Noreturn void cannot(const char *verb, Value x, Value y, int at) {
  script_fail(at, "Cannot %s %s and %s", verb, kind_of(x), kind_of(y));
}

#define ARITHMETIC(name, sign, verb)                                                               \
  static inline Value do_##name(Value x, Value y, int at) {                                        \
    if (x.kind == K_int && y.kind == K_int)                                                        \
      return of_int((int64_t)((uint64_t)x.u.i sign(uint64_t) y.u.i));                              \
    if (is_number(x) && is_number(y)) return of_float(number(x) sign number(y));                   \
    Value out;                                                                                     \
    if (more_binary(*#sign, x, y, at, &out)) return out;                                           \
    OTHERWISE_##name cannot(verb, x, y, at);                                                       \
  }
#define COMPARISON(name, sign, as)                                                                 \
  static inline Value do_##name(Value x, Value y, int at) {                                        \
    if (x.kind == K_int && y.kind == K_int) return of_bool(x.u.i sign y.u.i);                      \
    if (is_number(x) && is_number(y)) return of_bool(number(x) sign number(y));                    \
    Value out;                                                                                     \
    if (more_binary(as, x, y, at, &out)) return out;                                               \
    cannot("compare", x, y, at);                                                                   \
  }
#define OTHERWISE_add                                                                              \
  if (x.kind == y.kind && (x.kind == K_string || x.kind == K_array)) return joined(x, y, at);
#define OTHERWISE_sub
#define OTHERWISE_mul

static Value joined(Value x, Value y, int at) {
  Value d;
  if (x.kind == K_string) {
    size_t n = x.u.text->n, more = y.u.text->n;
    if (n + more > MOST_ELEMENTS) script_fail(at, "the string becomes too long");
    d = of_text(NULL, 0);
    d.u.text = realloc(d.u.text, sizeof *d.u.text + n + more + 1);
    if (!d.u.text) no_memory();
    memcpy(d.u.text->at, x.u.text->at, n);
    memcpy(d.u.text->at + n, y.u.text->at, more);
    d.u.text->n = n + more;
  } else {
    uint64_t n = x.u.list->n, more = y.u.list->n;
    not_too_many(n + more, at);
    d = of_list(K_array, n + more);
    for (uint64_t i = 0; i < n; i++) d.u.list->at[i] = share(x.u.list->at[i]);
    for (uint64_t i = 0; i < more; i++) d.u.list->at[n + i] = share(y.u.list->at[i]);
  }
  drop(x);
  drop(y);
  return d;
}

ARITHMETIC(add, +, "add")
ARITHMETIC(sub, -, "subtract")
ARITHMETIC(mul, *, "multiply")
COMPARISON(lt, <, '<')
COMPARISON(le, <=, 'l')
COMPARISON(gt, >, '>')
COMPARISON(ge, >=, 'g')

static inline Value do_div(Value x, Value y, int at) {
  Value out;
  if (!is_number(x) || !is_number(y)) {
    if (more_binary('/', x, y, at, &out)) return out;
    cannot("divide", x, y, at);
  }
  if (number(y) == 0) script_fail(at, "Division by zero");
  if (x.kind == K_float || y.kind == K_float) return of_float(number(x) / number(y));
  return of_int(y.u.i == -1 ? (int64_t)(0 - (uint64_t)x.u.i)
                            : x.u.i / y.u.i); /* avoids the overflow trap */
}

static inline Value do_mod(Value x, Value y, int at) {
  if (x.kind != K_int || y.kind != K_int) cannot("modulo", x, y, at);
  if (!y.u.i) script_fail(at, "Modulo by zero");
  return of_int(y.u.i == -1 ? 0 : x.u.i % y.u.i);
}

static inline Value do_at(Value x, Value y, int at) {
  Value out;
  if (more_binary('@', x, y, at, &out)) return out;
  cannot("multiply", x, y, at);
}

static inline Value do_eq(Value x, Value y, int at) {
  Value out;
  if (more_binary('=', x, y, at, &out)) return out;
  int same = equal(x, y, 0, at);
  drop(x);
  drop(y);
  return of_bool(same);
}

static inline Value do_ne(Value x, Value y, int at) {
  Value out;
  if (more_binary('!', x, y, at, &out)) return out;
  return of_bool(!do_eq(x, y, at).u.i);
}

static inline Value do_neg(Value x, int at) {
  if (x.kind == K_int) return of_int((int64_t)(0 - (uint64_t)x.u.i));
  if (x.kind == K_float) return of_float(-x.u.f);
  Value out;
  if (more_negate(x, at, &out)) return out;
  script_fail(at, "Cannot negate %s", kind_of(x));
}

static Value cast(Value x, Kind to, const char *name, int at) {
  if (x.kind == K_tensor && more_number(&x) && to == K_float) return x;
  if (!is_number(x) && x.kind != K_bool) script_fail(at, "Cannot cast %s to %s", kind_of(x), name);
  double f = x.kind == K_float ? x.u.f : (double)x.u.i;
  if (to == K_bool) return of_bool(f != 0);
  if (to == K_float) return of_float(f);
  return of_int(x.kind == K_float ? truncated(f) : x.u.i);
}

/* ---- lists ---- */

/* A bound of a range; takes it. */
static int64_t bound(Value d, int at) {
  if (d.kind == K_float) return truncated(d.u.f);
  if (d.kind != K_int) script_fail(at, "a range goes from number to number, got %s", kind_of(d));
  return d.u.i;
}

static int64_t upto(int64_t end, int at) {
  if (end == INT64_MAX) script_fail(at, "the range is too long");
  return end + 1;
}

static Value range(int64_t from, int64_t end, int at) {
  uint64_t n = end > from ? (uint64_t)end - (uint64_t)from : 0;
  not_too_many(n, at);
  Value d = of_list(K_array, n);
  for (uint64_t i = 0; i < n; i++) d.u.list->at[i] = of_int(from + (int64_t)i);
  return d;
}

/* Takes both. */
static Value repeat(Value v, Value times, int at) {
  if (!is_number(times)) script_fail(at, "operator() takes a number here, got %s", kind_of(times));
  double k = number(times) >= 0x1p62 ? 0x1p62 : number(times);
  uint64_t n = k > 0 ? (uint64_t)k : 0;
  not_too_many(n, at);
  Value d = of_list(K_array, n);
  for (uint64_t i = 0; i < n; i++) d.u.list->at[i] = share(v);
  drop(v);
  return d;
}

/* From the first to the last element of the index, clipped. */
static Value slice(const List *l, const List *index, int where) {
  int64_t from = 0, to = 0;
  if (index->n) {
    Value a = index->at[0], b = index->at[index->n - 1];
    if (a.kind != K_int || b.kind != K_int)
      script_fail(where, "Index must be an integer or range, got an array of %s", kind_of(a));
    from = a.u.i < 0 ? 0 : a.u.i;
    to = b.u.i < (int64_t)l->n ? b.u.i + 1 : (int64_t)l->n;
  }
  uint64_t n = to > from ? (uint64_t)(to - from) : 0;
  Value d = of_list(K_array, n);
  for (uint64_t i = 0; i < n; i++) d.u.list->at[i] = share(l->at[from + (int64_t)i]);
  return d;
}

/* at: the expression, where: the index. Takes the index. */
static inline Value at_index(Value v, Value i, int at, int where) {
  Value out;
  if (v.kind != K_array) {
    if (more_index(v, i, at, where, &out)) return out;
    script_fail(at, "Cannot index into %s", kind_of(v));
  }
  const List *l = v.u.list;
  if (i.kind == K_array) {
    Value d = slice(l, i.u.list, where);
    drop(i);
    return d;
  }
  if (i.kind != K_int) script_fail(where, "Index must be an integer or range, got %s", kind_of(i));
  int64_t k = i.u.i < 0 ? i.u.i + (int64_t)l->n : i.u.i;
  if (k < 0 || (uint64_t)k >= l->n)
    script_fail(where, "Index out of bounds: %lld", (long long)i.u.i);
  return share(l->at[k]);
}

/* Takes v. */
static Value item(Value v, int64_t i, int at) {
  if (v.kind != K_tuple && v.kind != K_array)
    script_fail(at, "Cannot index type %s with tuple index syntax", kind_of(v));
  if ((uint64_t)i >= v.u.list->n)
    script_fail(at, "Tuple index out of bounds: index %lld on tuple of length %llu", (long long)i,
                (unsigned long long)v.u.list->n);
  Value d = share(v.u.list->at[i]);
  drop(v);
  return d;
}

static Value *field_of(Value v, const char *name) {
  if (v.kind != K_struct) return NULL;
  for (uint32_t i = 0; i < v.u.list->of->n; i++)
    if (!strcmp(v.u.list->of->field[i], name)) return &v.u.list->at[i];
  return NULL;
}

/* Takes v. */
static Value member(Value v, const char *name, int at) {
  const Value *f = field_of(v, name);
  if (!f) script_fail(at, "%s has no field '%s'", kind_of(v), name);
  Value d = share(*f);
  drop(v);
  return d;
}

/* ---- elements of variables ---- */

static Value *place_element(Value *in, Value i, int at, int where) {
  if (in->kind != K_array) script_fail(at, "Cannot index into %s", kind_of(*in));
  List *l = own(in);
  if (!is_number(i)) script_fail(where, "Index must be an integer or range, got %s", kind_of(i));
  double f = i.kind == K_int ? 0 : trunc(i.u.f);
  int64_t k = i.kind == K_int ? i.u.i : fabs(f) < 9e18 ? (int64_t)f : -1;
  if (k < 0 || (uint64_t)k >= l->n)
    script_fail(where, "Index %lld out of bounds (len=%llu)", (long long)k,
                (unsigned long long)l->n);
  return &l->at[k];
}

static Value *place_field(Value *in, const char *name, int at) {
  if (!field_of(*in, name)) script_fail(at, "%s has no field '%s'", kind_of(*in), name);
  own(in);
  return field_of(*in, name);
}

/* Checks that the variable is initialized. */
static inline Value *held(Value *d, const char *name, int at) {
  if (!d || d->kind == K_none) script_fail(at, "Undefined variable: %s", name);
  return d;
}

static inline Value *assigned(Value *d, const char *name, int at) {
  if (!d || d->kind == K_none) script_fail(at, "Cannot assign to undefined variable: %s", name);
  return d;
}

/* ---- types ---- */

static void becomes(Value *d, const ValueType *to, int at) {
  if (to->kind == K_none) return;
  if (to->kind == K_tensor && more_becomes(d, to, at)) return;
  if (to->kind == K_float && d->kind == K_tensor && more_number(d)) return;
  if (to->kind == K_float && d->kind == K_int) *d = of_float((double)d->u.i);
  if (d->kind != to->kind || (to->kind == K_tuple && d->u.list->n != to->n) ||
      (to->kind == K_struct && d->u.list->of != to->of))
    script_fail(at, "expected %s, found %s", to->text, kind_of(*d));
  if (to->kind != K_array && to->kind != K_tuple) return;
  for (uint64_t i = 0; i < d->u.list->n; i++) {
    const ValueType *t = to->item[to->kind == K_tuple ? i : 0];
    Value *x = &d->u.list->at[i];
    int ready = t->kind == K_none || (t->kind == x->kind && t->kind < K_array);
    if (!ready) becomes(&own(d)->at[i], t, at);
  }
}

/* ---- calls ---- */

/* Takes f and the arguments. at: positions of the call and of the arguments. */
static Value call(Value f, Value *arg, uint32_t n, const int *at);

/* Calls on.name(...): a field that holds a function, or a method of an object. */
static Value call_method(Value on, const char *name, Value *arg, uint32_t n, const int *at,
                         int where) {
  Value out;
  const Value *f = field_of(on, name);
  if (f) {
    out = call(share(*f), arg, n, at);
  } else if (!more_method(on, name, arg, n, at, &out)) {
    script_fail(where, "%s has no functions of its own: it is an argument of others", kind_of(on));
  }
  drop(on);
  return out;
}

/* ---- patterns ---- */

static inline int fits_int(Value d, int64_t i) {
  return d.kind == K_int && d.u.i == i;
}
static inline int fits_float(Value d, double f) {
  if (d.kind == K_tensor) return fits_element(d, f);
  return d.kind == K_float && fabs(d.u.f - f) < 0x1p-52;
}
static inline int fits_bool(Value d, int b) {
  return d.kind == K_bool && d.u.i == b;
}
static inline int fits_text(Value d, Value s) {
  return d.kind == K_string && equal(d, s, 0, 0);
}
