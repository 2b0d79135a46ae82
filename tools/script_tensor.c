/* script_tensor.c: tensors and objects of compiled programs: the interface between src/lang and
 * script.c, and the graphs.
 *
 * When the program reads a tensor, a function that ingot compiled for the same graph computes it.
 * The graph is listed, and the key of the list is looked up in a table of the program. If it is
 * missing, the program ends with an error. */

/* A graph of the program, as C. */
typedef struct Made {
  const unsigned char *key;
  size_t n;
  uint64_t hash;
  int (*run)(void *arena, double *const *in, double *const *out);
} Made;
extern const Made script_made[];
extern const uint32_t script_nmade;
extern const size_t script_arena; /* bytes */

/* A network from a file, with the shapes of its inputs. */
typedef struct Port {
  DType dt;
  u32 rank;
  const i64 *dim;
} Port;
typedef struct Net {
  const char *path;
  u32 nin;
  const Port *in;
  u32 nout;
  const Port *out;
  int (*run)(void *arena, void *const *in, void *const *out);
} Net;
extern const Net script_net[];
extern const uint32_t script_nnet;
extern const uint32_t script_nplace;
extern const uint64_t script_seed;
static void script_main(void);

/* Properties of operators (src/ir/eval.c). */
const OpInfo op_info[OP_COUNT] = {
#define SC(name, nin, cls, res, flags, text)                                                       \
  {NULL, nin, nin, 1, OK_MAP, OC_NUM, OR_##res, 0, NULL, NULL},
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
};

static void write_out(void *user, const char *at, size_t n) {
  fwrite(at, 1, n, stdout);
  (void)user;
}

static const Output output = {write_out, NULL};
static Eval eval = {.o = &output, .serial = 1};
static Ast *nodes; /* by source position */
static void *arena_memory;

static Ast *node_of(int at, const char *builtin) {
  nodes[at].place = at;
  nodes[at].builtin = builtin;
  return &nodes[at];
}

/* ---- interface for src/lang ---- */

_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...) {
  char text[4096];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  script_fail(at ? at->place : 0, "%s", text);
  (void)ev;
}

/* A compiled program may open files, but save never replaces the executable. */
void eval_check_file(Eval *ev, const char *path) {
  static const char self[] = "/proc/self/exe";
  static bool known;
  if (!known && !access(self, R_OK)) file_read(ev->c, self);
  known = true;
  (void)path;
}

const char *builtin_name(const Eval *ev) {
  return ev->at && ev->at->builtin ? ev->at->builtin : "operator";
}

void *heap_new(Eval *ev, LangKind kind, size_t bytes) {
  (void)ev;
  return box_new(kind, bytes);
}

void heap_drop(Eval *ev, HeapObj *b) {
  (void)ev;
  if (b && !--b->refs) free_box(b);
}

LangValue value_retain(const LangValue *d) {
  return share(*d);
}

void value_drop(Eval *ev, LangValue *d) {
  (void)ev;
  drop(*d);
  d->kind = K_none;
}

LangValue value_int(i64 i) {
  return of_int(i);
}

LangValue value_float(double f) {
  return of_float(f);
}

LangValue value_bool(bool b) {
  return of_bool(b);
}

LangValue value_string(Eval *ev, const char *at, size_t n) {
  not_too_many(n, ev->at ? ev->at->place : 0);
  return of_text(at, n);
}

LangValue value_list(Eval *ev, LangKind kind, u64 n) {
  not_too_many(n, ev->at ? ev->at->place : 0);
  return of_list(kind, n);
}

bool value_is_true(const LangValue *d) {
  return is_true(*d);
}

const char *value_kind_name(const LangValue *d) {
  return kind_of(*d);
}

void value_show(Eval *ev, const LangValue *d, StrBuf *out) {
  Shown t = {0};
  put_value(&t, *d, 0, ev->at ? ev->at->place : 0);
  sb_put(out, t.at, t.n);
  free(t.at);
}

LangValue fn_gradient(Eval *ev, ClosureObj *f) {
  Fn *g = fn_new(f->shape);
  g->grad_of = f;
  f->box.refs++;
  (void)ev;
  return (Value){K_fn, {.fn = g}};
}

LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n) {
  enum { FEW = 64 };
  int place[FEW + 1];
  if (n > FEW) eval_fail(ev, at, "a gradient of a function with more than %d arguments", FEW);
  for (u32 i = 0; i <= n; i++) place[i] = at->place;
  return call(share((Value){K_fn, {.fn = f}}), arg, n, place);
}

i64 size_times(Eval *ev, i64 x, i64 y) {
  return (void)ev, x * y;
}

/* Everything is known at run time: going on would use a made-up number. */
_Noreturn static void not_known(Eval *ev) {
  eval_fail(ev, ev->at, "a size was not known when the program was compiled");
}
i64 size_infer(Eval *ev, const LazyTensor *t, const i64 *dim, u32 rank, u32 without) {
  (void)t, (void)dim, (void)rank, (void)without;
  not_known(ev);
}
i64 size_window_count(Eval *ev, i64 extent, i64 size, i64 stride) {
  (void)extent, (void)size, (void)stride;
  not_known(ev);
}
bool lazy_is_symbolic(Eval *ev, LazyTensor *t) {
  return (void)ev, (void)t, false;
}
LangValue value_unknown(Eval *ev, LangKind kind) {
  (void)kind;
  not_known(ev);
}
_Noreturn void dry_refuse(Eval *ev, const Ast *at, const char *what) {
  eval_fail(ev, at, "%s", what);
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

/* ---- interface for script.c ---- */

static const char *more_kind(Value d) {
  if (d.kind == K_tensor) return d.u.lazy->raw ? "tensor" : "autograd_tensor";
  return object_kind_name(d.u.thing);
}

static void more_release(Box *b) {
  if (b->kind == K_tensor)
    lazy_release(&eval, (LazyTensor *)b);
  else if (b->kind == K_object)
    object_release(&eval, (LangObject *)b);
  else
    autograd_release(&eval, (AutogradMeta *)b);
}

static void more_show(Shown *t, Value d, int at) {
  Mark mark = arena_mark(&eval.stack);
  StrBuf text = sb_new(&eval.stack);
  if (d.kind == K_tensor)
    lazy_show(&eval, d.u.lazy, &text);
  else
    object_show(&eval, d.u.thing, &text);
  put(t, text.at, text.n);
  arena_rewind(&eval.stack, mark);
  (void)at;
}

static int is_operand(Value d) {
  return d.kind == K_tensor || is_number(d);
}

static int more_binary(char sign, Value x, Value y, int at, Value *out) {
  static const struct {
    char sign;
    Tok op;
  } signs[] = {{'+', TOK_add}, {'-', TOK_sub}, {'*', TOK_mul}, {'/', TOK_div}, {'@', TOK_at},
               {'<', TOK_lt},  {'l', TOK_le},  {'>', TOK_gt},  {'g', TOK_ge}};
  if (x.kind != K_tensor && y.kind != K_tensor) return 0;
  eval.at = node_of(at, NULL);
  if (sign == '=' || sign == '!') {
    if (x.kind != K_array && y.kind != K_array) return 0;
    *out = equal_elements(&eval, &x, &y, sign == '=');
  } else {
    u32 i = 0;
    if (!is_operand(x) || !is_operand(y)) return 0;
    while (signs[i].sign != sign) i++;
    *out = tensor_binary(&eval, eval.at, signs[i].op, &x, &y);
  }
  drop(x);
  drop(y);
  return 1;
}

static int more_negate(Value x, int at, Value *out) {
  if (x.kind != K_tensor) return 0;
  eval.at = node_of(at, NULL);
  *out = tensor_negate(&eval, x.u.lazy);
  drop(x);
  return 1;
}

static int more_index(Value v, Value i, int at, int where, Value *out) {
  if (v.kind != K_tensor) return 0;
  Ast *n = node_of(at, NULL);
  n->b = node_of(where, NULL);
  *out = tensor_index(&eval, n, v.u.lazy, &i);
  drop(i);
  return 1;
}

static int more_call(Value f, Value *arg, uint32_t n, const int *at, Value *out) {
  Ast *here = node_of(at[0], NULL);
  if (f.kind == K_fn) {
    *out = call_grad(&eval, here, f.u.fn->grad_of, arg, n);
  } else if (f.kind == K_object) {
    here->a = here;
    *out = object_call(&eval, here, f.u.thing, arg, n);
    for (uint32_t i = 0; i < n; i++) drop(arg[i]);
  } else {
    return 0;
  }
  drop(f);
  return 1;
}

static int more_method(Value on, const char *name, Value *arg, uint32_t n, const int *at,
                       Value *out) {
  if (on.kind != K_object) return 0;
  Ast *here = node_of(at[0], NULL);
  here->a = here;
  *out = object_method(&eval, here, &on, name, arg, n);
  for (uint32_t i = 0; i < n; i++) drop(arg[i]);
  return 1;
}

static int more_equal(Value x, Value y, int at, int *same) {
  eval.at = node_of(at, NULL);
  if (y.kind == K_tensor && is_number(x)) return more_equal(y, x, at, same);
  if (x.kind == K_tensor && is_number(y))
    *same = x.u.lazy->n == 1 && lazy_data(&eval, x.u.lazy)[0] == number(y);
  else if (x.kind == K_tensor && y.kind == K_tensor)
    *same = lazy_equal(&eval, x.u.lazy, y.u.lazy);
  else
    return 0;
  return 1;
}

static int more_number(Value *d) {
  LazyTensor *t = d->u.lazy;
  if (t->n != 1) return 0;
  if (eval.in_grad && t->tracked) return 1;
  set(d, of_float(lazy_data(&eval, t)[0]));
  return 0;
}

static int fits_element(Value d, double f) {
  return d.u.lazy->n == 1 && fits_float(of_float(lazy_data(&eval, d.u.lazy)[0]), f);
}

/* ---- types ---- */

struct Sizes {
  Sizes *outer;
  SymbolSizes here;
};
static Sizes of_files, *sizes = &of_files;

static inline void sizes_begin(Sizes *s) {
  s->outer = sizes;
  s->here.n = 0;
  sizes = s;
}

static inline void sizes_end(Sizes *s) {
  sizes = s->outer;
}

static void check_size(const LazyTensor *t, u32 i, const ValueType *to, int at) {
  const char *name = to->name ? to->name[i] : NULL;
  i64 want = to->dim[i];
  if (!symbols_unify(&sizes->here, name, &want, t->dim[i]))
    script_fail(at, "more than %d symbols in the types of a function", SYMBOLS);
  if (want != t->dim[i])
    script_fail(at, "the shape is %s, expected %s where %s is %lld",
                dims_text(&eval, t->dim, t->rank), to->text, name ? name : "the extent",
                (long long)want);
}

static int more_becomes(Value *d, const ValueType *to, int at) {
  eval.at = node_of(at, NULL);
  if (d->kind == K_array) set(d, value_tensor(lazy_from_array(&eval, d)));
  if (d->kind != K_tensor) return 0;
  const LazyTensor *t = d->u.lazy;
  if (to->shaped && t->rank != to->rank)
    script_fail(at, "the shape is %s, expected %s", dims_text(&eval, t->dim, t->rank), to->text);
  for (u32 i = 0; to->shaped && i < t->rank; i++) check_size(t, i, to, at);
  return 1;
}

/* ---- built-in functions and classes ---- */

/* Borrows the arguments. */
static Value builtin(BuiltinFn *fn, const char *name, Value *arg, uint32_t n, int at) {
  Value out = null;
  eval.at = node_of(at, name);
  fn(&eval, arg, n, &out);
  eval.at = node_of(at, name);
  return out;
}

static Value class_new(const char *name, uint32_t max) {
  LangObject *m = object_new(&eval, OBJ_class);
  m->name = name;
  model_reserve(&eval, m, max);
  return value_object(m);
}

/* Takes the layer. */
static void class_add(Value class, Value layer) {
  model_add(class.u.thing, layer.u.thing);
}

/* kind: an activation with its parameter, or a layer with neither. */
static void class_plain(Value class, ObjectKind kind, double number) {
  LangObject *t = object_new(&eval, kind);
  t->num[0] = number;
  model_add(class.u.thing, t);
}

/* ---- networks ---- */

static Value net_new(const char *path) {
  LangObject *t = object_new(&eval, OBJ_net);
  t->path = path;
  return value_object(t);
}

static int net_fits(const Net *net, const LangObject *t, const LangValue *arg, u32 n) {
  int fits = net->nin == n && !strcmp(net->path, t->path);
  for (u32 i = 0; fits && i < n; i++) {
    const LazyTensor *x = arg[i].u.lazy;
    fits = x->rank == net->in[i].rank && !memcmp(x->dim, net->in[i].dim, x->rank * sizeof *x->dim);
  }
  return fits;
}

static LangValue net_run(Eval *ev, const LangObject *t, const LangValue *arg, const Net *net) {
  Mark mark = arena_mark(&ev->stack);
  void **in = arena_array(&ev->stack, net->nin + 1, sizeof *in);
  void **to = arena_array(&ev->stack, net->nout + 1, sizeof *to);
  LangValue out = value_list(ev, KD_array, net->nout);
  Tensor **y = arena_array(&ev->stack, net->nout + 1, sizeof *y);
  for (u32 i = 0; i < net->nin; i++) {
    Tensor *x = tensor_new(&ev->stack, net->in[i].dt, net->in[i].dim, net->in[i].rank);
    for (u64 k = 0; k < x->n; k++)
      tensor_set(x, k, scalar_cast(DT_f64, x->dt, (Scalar){.f = arg[i].u.lazy->data[k]}, true));
    in[i] = (void *)x->data;
  }
  for (u32 i = 0; i < net->nout; i++) {
    y[i] = tensor_new(&ev->stack, net->out[i].dt, net->out[i].dim, net->out[i].rank);
    to[i] = (void *)y[i]->data;
  }
  int status = net->run(arena_memory, in, to);
  if (status) ARG_BAD(ev, "%s: status %d", t->path, status);
  for (u32 i = 0; i < net->nout; i++) {
    LazyTensor *r = lazy_new(ev, net->out[i].dim, net->out[i].rank);
    for (u64 k = 0; k < r->n; k++)
      r->data[k] = scalar_cast(y[i]->dt, DT_f64, tensor_get(y[i], k), true).f;
    out.u.list->at[i] = value_tensor(r);
  }
  arena_rewind(&ev->stack, mark);
  return out;
}

LangValue net_call(Eval *ev, LangObject *t, LangValue *arg, u32 n) {
  net_check(ev, t, arg, n);
  for (u32 i = 0; i < script_nnet; i++) {
    if (!net_fits(&script_net[i], t, arg, n)) continue;
    LangValue out = net_run(ev, t, arg, &script_net[i]);
    if (out.u.list->n != 1) return out;
    LangValue one = value_retain(&out.u.list->at[0]);
    value_drop(ev, &out);
    return one;
  }
  ARG_BAD(ev, "%s: the network was not compiled for these shapes", t->path);
}

/* ---- evaluation ---- */

static const Made *find_made(PendingGraph *k) {
  Arena *a = &k->ev->stack;
  k->deep = false;
  pending_collect(k, a);
  StrBuf key = pending_key(k, a);
  uint64_t hash = hash_bytes(key.at, key.n);
  for (uint32_t i = 0; i < script_nmade; i++) {
    const Made *m = &script_made[i];
    if (m->hash == hash && m->n == key.n && !memcmp(m->key, key.at, key.n)) return m;
  }
  return NULL;
}

static void compute(PendingGraph *k, const Made *made) {
  Eval *ev = k->ev;
  double **in = arena_array(&ev->stack, k->all.n + 1, sizeof *in), **to;
  to = arena_array(&ev->stack, k->nout + 1, sizeof *to);
  for (u32 i = 0, j = 0; i < k->all.n; i++)
    if (!pending_is_op(k, k->all.at[i])) in[j++] = k->all.at[i]->data;
  for (u32 i = 0; i < k->nout; i++) to[i] = lazy_alloc(ev, k->out[i]->n);
  int status = made->run(arena_memory, in, to);
  if (status) ARG_BAD(ev, "what is computed here fails with status %d", status);
  for (u32 i = 0; i < k->nout; i++) {
    LazyTensor *t = k->out[i];
    if (t->data) /* it was requested twice */
      free(to[i]);
    else
      t->data = to[i];
    t->size = 0;
    if (!t->tracked) lazy_drop_inputs(ev, t);
  }
}

/* After a branch that was unknown at compile time, the computation before it is a separate graph.
 * The newest values come first. */
static void compute_part(PendingGraph *k) {
  for (u32 i = k->all.n; i-- > 0;) {
    LazyTensor *part = k->all.at[i];
    PendingGraph alone = {.ev = k->ev, .out = &part, .nout = 1};
    const Made *made = part->data || part->op == LOP_leaf ? NULL : find_made(&alone);
    if (!made) continue;
    compute(&alone, made);
    return;
  }
  ARG_BAD(k->ev,
          "what is computed here, or its shape, was not known when the program was compiled");
}

void lazy_force(Eval *ev, LazyTensor *const *t, u32 n) {
  Mark mark = arena_mark(&ev->stack);
  LazyTensor **out = arena_array(&ev->stack, n + 1, sizeof *out);
  for (;;) {
    PendingGraph k = {.ev = ev, .out = out};
    for (u32 i = 0; i < n; i++)
      if (!t[i]->data) out[k.nout++] = t[i];
    if (!k.nout) break;
    const Made *made = find_made(&k);
    if (made)
      compute(&k, made);
    else
      compute_part(&k);
  }
  arena_rewind(&ev->stack, mark);
}

const double *lazy_data(Eval *ev, LazyTensor *t) {
  if (!t->data) lazy_force(ev, &t, 1);
  return t->data;
}

/* ---- the run ---- */

static void run_all(Ctx *c, void *arg) {
  (void)c, (void)arg;
  script_main();
  lazy_drop(&eval, eval.last_loss);
  arena_clear(&eval.stack);
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
