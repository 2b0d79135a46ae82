/* script.c: runtime of compiled language programs (docs/language.md): operations, calls, start.
 *
 * ingot contains the text of script_all.c, which includes this file. The code that `ingot build
 * PROGRAM.ch` generates follows it: one C function per function of the program, tables of types,
 * structs and source positions, and script_main. Nothing is looked up or decoded at run time.
 *
 * SCRIPT_TENSORS is defined before: 1 if the program uses tensors, else 0.
 *
 * Values and their operations are those of src/lang. The functions here take their operands and
 * handle numbers inline. Errors are reported with the source position, as in `ingot run`, and end
 * the program with code 4. */

/* A source position: FILE:LINE:COLUMN, and the line with a caret below it. */
typedef struct Place {
  const char *where, *line;
} Place;
extern const Place script_place[];
extern const uint32_t script_nplace;
extern const uint64_t script_seed;
extern const size_t script_arena; /* bytes */
static void script_main(void);

static void write_out(void *user, const char *at, size_t n) {
  fwrite(at, 1, n, stdout);
  (void)user;
}

static const LangValue null = {.kind = KD_null};
static const char *script_name = "program";
static const Output output = {write_out, NULL};
static SymbolSizes sizes_of_files;
static Eval eval = {.o = &output, .serial = 1, .sizes = &sizes_of_files};
static Ast *nodes; /* by source position */
static void *arena_memory;

/* ---- errors ---- */

static _Noreturn void script_fail(int at, const char *fmt, ...) {
  va_list args;
  fflush(stdout);
  fprintf(stderr, "%s: %s: ", script_name, script_place[at].where);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "%s\n", script_place[at].line);
  exit(ERR_input);
}

_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...) {
  char text[4096];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  script_fail(at ? at->place : 0, "%s", text);
  (void)ev;
}

static Ast *node_of(int at, const char *builtin) {
  nodes[at].place = at;
  nodes[at].builtin = builtin;
  return &nodes[at];
}

const char *builtin_name(const Eval *ev) {
  return ev->at && ev->at->builtin ? ev->at->builtin : "operator";
}

/* A compiled program may open files, but save never replaces the executable. */
void eval_check_file(Eval *ev, const char *path) {
  static const char self[] = "/proc/self/exe";
  static bool known;
  if (!known && !access(self, R_OK)) file_read(ev->c, self);
  known = true;
  (void)path;
}

/* Nothing must outlive the process. */
void guard_enter(const Ctx *c) {
  (void)c;
}
void guard_leave(const Ctx *c) {
  (void)c;
}
void guard_put(const Ctx *c, const char *path, long pid) {
  (void)c, (void)path, (void)pid;
}
void guard_drop(const Ctx *c, const char *path, long pid) {
  (void)c, (void)path, (void)pid;
}

/* ---- values ---- */

/* gcc inlines less in large files, so the functions that handle numbers ask for it. */
#define FAST inline __attribute__((always_inline))

static FAST LangValue share(LangValue d) {
  if (d.kind >= KD_string) d.u.box->refs++;
  return d;
}

static FAST void drop(LangValue d) {
  if (d.kind < KD_string) return;
  if (d.u.box->refs > 1)
    d.u.box->refs--;
  else
    heap_drop(&eval, d.u.box);
}

/* Assigns d to the variable and takes it. */
static FAST void set(LangValue *to, LangValue d) {
  LangValue old = *to;
  *to = d;
  drop(old);
}

static FAST void forget(LangValue *d) {
  set(d, (LangValue){.kind = KD_none});
}

/* The value of a temp, which is left without it. */
static FAST LangValue take(LangValue *d) {
  LangValue v = *d;
  d->kind = KD_none;
  return v;
}

static FAST LangValue of_int(int64_t i) {
  return (LangValue){KD_int, .u = {.i = i}};
}
static FAST LangValue of_float(double f) {
  return (LangValue){KD_float, .u = {.f = f}};
}
static FAST LangValue of_bool(bool b) {
  return (LangValue){KD_bool, .u = {.i = b}};
}

static LangValue of_struct(const StructInfo *of) {
  LangValue d = value_list(&eval, KD_struct, of->n);
  d.u.list->of = of;
  return d;
}

static ClosureObj *fn_new(LangFn *fn) {
  ClosureObj *f = heap_new(&eval, KD_fn, sizeof *f + fn->with * sizeof *f->with);
  f->fn = fn;
  f->n = fn->with;
  return f;
}

/* Truth of a condition; takes it. */
static FAST bool holds(LangValue d) {
  if (d.kind == KD_bool) return d.u.i != 0;
  bool yes = value_is_true(&d);
  drop(d);
  return yes;
}

/* ---- operators; all take their operands ---- */

static FAST bool is_number(LangValue d) {
  return d.kind == KD_int || d.kind == KD_float;
}

static FAST double number(LangValue d) {
  return d.kind == KD_int ? (double)d.u.i : d.u.f;
}

static const LangType type_of_int = {KD_int, .text = "integer"};
static const LangType type_of_float = {KD_float, .text = "float"};
static const LangType type_of_bool = {KD_bool, .text = "boolean"};

/* Takes d. */
static __attribute__((noinline)) LangValue as_type(LangValue d, const LangType *t, int at) {
  if (d.kind != t->kind) value_convert(&eval, node_of(at, NULL), &d, t);
  return d;
}

/* Operands of any kind. */
static __attribute__((noinline)) LangValue binary(Tok op, LangValue x, LangValue y, int at) {
  Ast *n = node_of(at, NULL);
  n->op = op;
  LangValue r = value_binary(&eval, n, &x, &y);
  drop(x);
  drop(y);
  return r;
}

/* do_NAME takes values of any kind. NAME_int and NAME_float are for numbers of proven kind. */
#define ARITHMETIC(name, sign)                                                                     \
  static FAST LangValue do_##name(LangValue x, LangValue y, int at) {                              \
    if (x.kind == KD_int && y.kind == KD_int)                                                      \
      return of_int((int64_t)((uint64_t)x.u.i sign(uint64_t) y.u.i));                              \
    if (is_number(x) && is_number(y)) return of_float(number(x) sign number(y));                   \
    return binary(TOK_##name, x, y, at);                                                           \
  }                                                                                                \
  static FAST LangValue name##_int(int64_t x, int64_t y) {                                         \
    return of_int((int64_t)((uint64_t)x sign(uint64_t) y));                                        \
  }                                                                                                \
  static FAST LangValue name##_float(double x, double y) {                                         \
    return of_float(x sign y);                                                                     \
  }
#define COMPARISON(name, sign)                                                                     \
  static FAST LangValue do_##name(LangValue x, LangValue y, int at) {                              \
    if (x.kind == KD_int && y.kind == KD_int) return of_bool(x.u.i sign y.u.i);                    \
    if (is_number(x) && is_number(y)) return of_bool(number(x) sign number(y));                    \
    return binary(TOK_##name, x, y, at);                                                           \
  }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)
COMPARISON(eq, ==)
COMPARISON(ne, !=)

static FAST LangValue do_div(LangValue x, LangValue y, int at) {
  if (is_number(x) && y.kind == KD_float && y.u.f != 0) return of_float(number(x) / y.u.f);
  return binary(TOK_div, x, y, at);
}
static FAST LangValue div_int(int64_t x, int64_t y, int at) {
  return y > 0 ? of_int(x / y) : binary(TOK_div, of_int(x), of_int(y), at);
}
static FAST LangValue div_float(double x, double y, int at) {
  return y != 0 ? of_float(x / y) : binary(TOK_div, of_float(x), of_float(y), at);
}

static FAST LangValue do_mod(LangValue x, LangValue y, int at) {
  return binary(TOK_mod, x, y, at);
}
static FAST LangValue mod_int(int64_t x, int64_t y, int at) {
  return y > 0 ? of_int(x % y) : binary(TOK_mod, of_int(x), of_int(y), at);
}

static FAST LangValue do_at(LangValue x, LangValue y, int at) {
  return binary(TOK_at, x, y, at);
}

static FAST LangValue do_neg(LangValue x, int at) {
  LangValue r = value_negate(&eval, node_of(at, NULL), &x);
  drop(x);
  return r;
}

static FAST LangValue cast(LangValue x, const char *to, int at) {
  return value_cast(&eval, node_of(at, NULL), x, to);
}

/* An integer operand of a float operator. */
static FAST LangValue promoted(LangValue x) {
  return x.kind == KD_int ? of_float((double)x.u.i) : x;
}

static LangValue to_int(double x) {
  return value_cast(&eval, nodes, of_float(x), "int64");
}

static FAST LangValue min_int(int64_t x, int64_t y) {
  return of_int(x <= y ? x : y);
}
static FAST LangValue max_int(int64_t x, int64_t y) {
  return of_int(x >= y ? x : y);
}
static FAST LangValue min_float(double x, double y) {
  return of_float(number_minmax(false, x, y));
}
static FAST LangValue max_float(double x, double y) {
  return of_float(number_minmax(true, x, y));
}

/* ---- lists ---- */

static FAST int64_t bound(LangValue d, int at) {
  return d.kind == KD_int ? d.u.i : value_bound(&eval, node_of(at, NULL), &d);
}

static FAST int64_t upto(int64_t end, int at) {
  return value_upto(&eval, node_of(at, NULL), end);
}

static FAST LangValue range(int64_t from, int64_t end, int at) {
  return value_range(&eval, node_of(at, NULL), from, end);
}

static FAST LangValue repeat(LangValue d, LangValue times, int at) {
  LangValue l = value_repeat(&eval, node_of(at, NULL), d, &times);
  drop(times);
  return l;
}

/* A node at the position `at` whose index is at `where`. */
static Ast *node_of_index(int at, int where) {
  Ast *n = node_of(at, NULL);
  n->b = node_of(where, NULL);
  return n;
}

static __attribute__((noinline)) LangValue any_index(LangValue v, LangValue i, int at, int where) {
  LangValue r = value_index(&eval, node_of_index(at, where), &v, &i);
  drop(i);
  return r;
}

/* Takes the index. */
static FAST LangValue at_index(LangValue v, LangValue i, int at, int where) {
  if (v.kind == KD_array && i.kind == KD_int && (uint64_t)i.u.i < v.u.list->n)
    return share(v.u.list->at[i.u.i]);
  return any_index(v, i, at, where);
}

/* Takes v, too. */
static LangValue index_taken(LangValue v, LangValue i, int at, int where) {
  LangValue r = at_index(v, i, at, where);
  drop(v);
  return r;
}

/* Elements of proven kind. row, row_index: positions of v[i] in v[i][j] */
#define BY_KIND(name, field)                                                                       \
  static FAST LangValue index_##name(LangValue v, int64_t i, int at, int where) {                  \
    if (v.kind == KD_array && (uint64_t)i < v.u.list->n && v.u.list->at[i].kind == KD_##name)      \
      return of_##name(v.u.list->at[i].u.field);                                                   \
    return of_##name(as_type(any_index(v, of_int(i), at, where), &type_of_##name, at).u.field);    \
  }                                                                                                \
  static FAST LangValue index2_##name(LangValue v, int64_t i, int64_t j, int row, int row_index,   \
                                      int at, int where) {                                         \
    if (v.kind == KD_array && (uint64_t)i < v.u.list->n && v.u.list->at[i].kind == KD_array)       \
      return index_##name(v.u.list->at[i], j, at, where);                                          \
    LangValue d = index_taken(any_index(v, of_int(i), row, row_index), of_int(j), at, where);      \
    return of_##name(as_type(d, &type_of_##name, at).u.field);                                     \
  }
BY_KIND(int, i)
BY_KIND(float, f)
BY_KIND(bool, i != 0)

static FAST LangValue *place_element(LangValue *in, LangValue i, int at, int where) {
  if (in->kind == KD_array && in->u.list->box.refs == 1 && i.kind == KD_int &&
      (uint64_t)i.u.i < in->u.list->n)
    return &in->u.list->at[i.u.i];
  return value_element(&eval, node_of_index(at, where), in, &i);
}

static __attribute__((noinline)) LangValue any_store(LangValue v, LangValue i, LangValue x, int at,
                                                     int where) {
  set(place_element(&v, i, at, where), x);
  return v;
}

/* Sets element i of v to a number, unless that takes more than a store. */
static FAST bool stored(LangValue v, int64_t i, LangValue x) {
  if (v.kind != KD_array || v.u.list->box.refs != 1 || (uint64_t)i >= v.u.list->n ||
      v.u.list->at[i].kind >= KD_string)
    return false;
  v.u.list->at[i] = x;
  return true;
}

/* v[i] = x; returns v. */
static FAST LangValue store(LangValue v, LangValue i, LangValue x, int at, int where) {
  return i.kind == KD_int && stored(v, i.u.i, x) ? v : any_store(v, i, x, at, where);
}

/* v[i][j] = x */
static FAST LangValue store2(LangValue v, LangValue i, LangValue j, LangValue x, int row,
                             int row_index, int at, int where) {
  if (v.kind == KD_array && v.u.list->box.refs == 1 && i.kind == KD_int &&
      (uint64_t)i.u.i < v.u.list->n) {
    v.u.list->at[i.u.i] = store(v.u.list->at[i.u.i], j, x, at, where);
    return v;
  }
  LangValue *to = place_element(&v, i, row, row_index);
  *to = store(*to, j, x, at, where);
  return v;
}

static void check_array(LangValue d, int at) {
  if (d.kind != KD_array) script_fail(at, "Cannot iterate over type %s", value_kind_name(&d));
}

static FAST LangValue item(LangValue v, int64_t i, int at) {
  return value_item(&eval, node_of(at, NULL), v, i);
}

static LangValue push(LangValue *to, LangValue x, int at) {
  return value_push(&eval, node_of(at, "push"), to, x);
}

static LangValue pop(LangValue *from, int at) {
  return value_pop(&eval, node_of(at, "pop"), from);
}

/* ---- structs ---- */

static LangValue *field_of(LangValue v, const char *name) {
  if (v.kind != KD_struct) return NULL;
  for (u32 i = 0; i < v.u.list->of->n; i++)
    if (!strcmp(v.u.list->of->field[i], name)) return &v.u.list->at[i];
  return NULL;
}

static LangValue *field_that_is(LangValue v, const char *name, int at) {
  LangValue *f = field_of(v, name);
  if (!f) script_fail(at, "%s has no field '%s'", value_kind_name(&v), name);
  return f;
}

/* Takes v. */
static LangValue member(LangValue v, const char *name, int at) {
  LangValue d = share(*field_that_is(v, name, at));
  drop(v);
  return d;
}

static LangValue *place_field(LangValue *in, const char *name, int at) {
  field_that_is(*in, name, at);
  list_make_unique(&eval, in);
  return field_of(*in, name);
}

/* ---- variables ---- */

static FAST LangValue *held(LangValue *d, const char *name, int at) {
  if (!d || d->kind == KD_none) script_fail(at, "Undefined variable: %s", name);
  return d;
}

/* The value d of a variable or temp, which has another kind than t. */
static __attribute__((noinline)) LangValue expected(LangValue d, const LangType *t,
                                                    const char *name, int at) {
  if (d.kind == KD_none) script_fail(at, "Undefined variable: %s", name);
  return as_type(d, t, at);
}

static FAST LangValue *assigned(LangValue *d, const char *name, int at) {
  if (!d || d->kind == KD_none) script_fail(at, "Cannot assign to undefined variable: %s", name);
  return d;
}

static __attribute__((noinline)) LangValue converted(LangValue d, const LangType *to, int at) {
  value_convert(&eval, node_of(at, NULL), &d, to);
  return d;
}

/* Takes d. */
static FAST LangValue becomes(LangValue d, const LangType *to, int at) {
  return d.kind != to->kind || value_is_boxed(&d) ? converted(d, to, at) : d;
}

/* ---- patterns ---- */

static FAST bool fits_int(LangValue d, int64_t i) {
  return d.kind == KD_int && d.u.i == i;
}
static FAST bool fits_float(LangValue d, double f) {
  if (d.kind == KD_tensor)
    return d.u.lazy->n == 1 && fabs(lazy_data(&eval, d.u.lazy)[0] - f) < 0x1p-52;
  return d.kind == KD_float && fabs(d.u.f - f) < 0x1p-52;
}
static FAST bool fits_bool(LangValue d, bool b) {
  return d.kind == KD_bool && d.u.i == b;
}
static FAST bool fits_text(LangValue d, LangValue s) {
  return d.kind == KD_string && value_equal(&eval, &d, &s);
}

static _Noreturn void no_fit(LangValue d, int at) {
  script_fail(at, "Non-exhaustive match: value %s didn't match any pattern", value_kind_name(&d));
}

/* ---- calls ---- */

static const char *stack_base;
static int64_t stack_max;

/* Calls an object or a gradient. Takes the arguments. */
static LangValue call_other(LangValue f, LangValue *arg, u32 n, int at) {
  Ast *node = node_of(at, NULL);
  if (f.kind == KD_fn) return call_grad(&eval, node, f.u.fn->grad_of, arg, n);
  if (f.kind != KD_object)
    script_fail(at, "Cannot call non-function value: %s", value_kind_name(&f));
  node->a = node;
  LangValue d = object_call(&eval, node, f.u.thing, arg, n);
  for (u32 i = 0; i < n; i++) drop(arg[i]);
  return d;
}

/* Takes f and the arguments. at: positions of the call and of the arguments. */
static FAST LangValue call(LangValue f, LangValue *arg, u32 n, const int *at) {
  const char here = 0;
  LangValue d;
  if (f.kind != KD_fn || f.u.fn->grad_of) {
    d = call_other(f, arg, n, at[0]);
    drop(f);
    return d;
  }
  const LangFn *s = f.u.fn->fn;
  SymbolSizes own, *outer = eval.sizes;
  if (n != s->params)
    script_fail(at[0], "Wrong number of arguments: expected %u, got %u", s->params, n);
  /* negative if the call is inlined into main's frame */
  if (stack_base - &here > stack_max) script_fail(at[0], "calls are nested too deeply");
  if (SCRIPT_TENSORS) {
    own.n = 0;
    eval.sizes = &own;
  }
  for (u32 i = 0; i < n; i++)
    if (s->param[i]) arg[i] = becomes(arg[i], s->param[i], at[1 + i]);
  d = s->code(f.u.fn, arg, at);
  eval.sizes = outer;
  drop(f);
  return d;
}

LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n) {
  enum { FEW = 64 };
  int place[FEW + 1];
  if (n > FEW) eval_fail(ev, at, "a gradient of a function with more than %d arguments", FEW);
  for (u32 i = 0; i <= n; i++) place[i] = at->place;
  return call(share((LangValue){KD_fn, .u = {.fn = f}}), arg, n, place);
}

/* Calls on.name(...): a field that holds a function, or a method of an object. */
static LangValue call_method(LangValue on, const char *name, LangValue *arg, u32 n, const int *at,
                             int where) {
  LangValue out;
  const LangValue *f = field_of(on, name);
  if (f) {
    out = call(share(*f), arg, n, at);
  } else {
    Ast *node = node_of(at[0], NULL);
    node->a = node_of(where, NULL);
    out = object_method(&eval, node, &on, name, arg, n);
    for (u32 i = 0; i < n; i++) drop(arg[i]);
  }
  drop(on);
  return out;
}

/* Takes the arguments. */
static LangValue builtin(BuiltinFn *fn, const char *name, LangValue *arg, u32 n, int at) {
  LangValue out = null;
  eval.at = node_of(at, name);
  fn(&eval, arg, n, &out);
  eval.at = node_of(at, name);
  for (u32 i = 0; i < n; i++) drop(arg[i]);
  return out;
}

static LangValue builtin2(BuiltinFn *fn, const char *name, LangValue x, LangValue y, int at) {
  LangValue arg[2];
  arg[0] = x;
  arg[1] = y;
  return builtin(fn, name, arg, 2, at);
}

static FAST LangValue len(LangValue d, int at) {
  if (d.kind != KD_array) return builtin(bi_len, "len", &d, 1, at);
  LangValue n = of_int((int64_t)d.u.list->n);
  drop(d);
  return n;
}

/* ---- models ---- */

static LangValue class_new(const char *name, u32 max) {
  LangObject *m = object_new(&eval, OBJ_class);
  m->name = name;
  model_reserve(&eval, m, max);
  return value_object(m);
}

/* Takes the layer. */
static void class_add(LangValue class, LangValue layer) {
  model_add(class.u.thing, layer.u.thing);
}

/* kind: an activation with its parameter, or a layer with neither. */
static void class_plain(LangValue class, ObjectKind kind, double number) {
  LangObject *t = object_new(&eval, kind);
  t->num[0] = number;
  model_add(class.u.thing, t);
}

/* ---- the program ---- */

static void run_all(Ctx *c, void *arg) {
  (void)c, (void)arg;
  arena_alloc(&eval.stack, 1); /* keeps a block, so that rewinding frees none */
  script_main();
  lazy_drop(&eval, eval.last_loss);
  arena_clear(&eval.stack);
}

static _Noreturn void no_memory(void) {
  fprintf(stderr, "%s: out of memory\n", script_name);
  exit(ERR_system);
}

static void script_run(void) {
  Ctx *c = ctx_new(NULL, NULL);
  void *memory = malloc(script_arena + 64);
  nodes = calloc(script_nplace, sizeof *nodes);
  if (!c || !memory || !nodes) no_memory();
  arena_memory = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
  eval.c = eval.stack.c = c;
  eval.random = script_seed;
  Err e = ctx_protect(c, run_all, NULL);
  if (e) {
    fflush(stdout);
    for (const Diag *d = c->diags; d; d = d->next)
      fprintf(stderr, "%s: %s\n", script_name, d->text);
    exit((int)e);
  }
  free(nodes);
  free(memory);
  ctx_free(c);
}

int main(int argc, char **argv) {
  const char here = 0, *slash = argc ? strrchr(argv[0], '/') : NULL;
  struct rlimit r;
  enum { MARGIN = 256 << 10 };
  size_t max = (size_t)8 << 20;
  if (argc) script_name = slash ? slash + 1 : argv[0];
  if (!getrlimit(RLIMIT_STACK, &r) && r.rlim_cur != RLIM_INFINITY) max = (size_t)r.rlim_cur;
  stack_base = &here;
  stack_max = (int64_t)(max > 2 * (size_t)MARGIN ? max - MARGIN : max / 2);
  script_run();
  if (fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, "%s: standard output: %s\n", script_name, strerror(errno));
    return ERR_system;
  }
  return 0;
}
