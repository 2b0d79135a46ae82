/* script_lib.c: built-in functions of compiled programs without tensors; see script.c.
 *
 * Each borrows its arguments and returns a new reference. Elementary functions are those of
 * src/ir/math/mathlibd.h, so results do not depend on the C library. */

static void script_main(void);

/* ---- arguments ---- */

static double arg_number(Value d, const char *name, int at) {
  if (!is_number(d)) script_fail(at, "%s() takes a number here, got %s", name, kind_of(d));
  return number(d);
}

static int64_t arg_int(Value d, const char *name, int at) {
  if (d.kind == K_int) return d.u.i;
  if (d.kind == K_float && d.u.f == trunc(d.u.f) && fabs(d.u.f) < 0x1p62) return (int64_t)d.u.f;
  script_fail(at, "%s() takes an integer here, got %s", name, kind_of(d));
}

static List *arg_list(Value d, const char *name, int at) {
  if (d.kind != K_array) script_fail(at, "%s() takes an array here, got %s", name, kind_of(d));
  return d.u.list;
}

/* ---- arrays and strings ---- */

static Value bi_print(const Value *arg, uint32_t n, int at) {
  Shown t = {0};
  for (uint32_t i = 0; i < n; i++) {
    if (i) puts_to(&t, " ");
    put_value(&t, arg[i], 0, at);
  }
  puts_to(&t, "\n");
  fwrite(t.at, 1, t.n, stdout);
  free(t.at);
  return null;
}

static Value bi_str(const Value *arg, uint32_t n, int at) {
  Shown t = {0};
  (void)n;
  put_value(&t, arg[0], 0, at);
  Value d = of_text(t.at, t.n);
  free(t.at);
  return d;
}

static Value bi_len(const Value *arg, uint32_t n, int at) {
  (void)n;
  if (arg->kind == K_string) return of_int((int64_t)arg->u.text->n);
  if (arg->kind != K_array && arg->kind != K_tuple)
    script_fail(at, "len() takes an array, a string or a tensor, got %s", kind_of(*arg));
  return of_int((int64_t)arg->u.list->n);
}

static Value bi_range(const Value *arg, uint32_t n, int at) {
  int64_t from = n > 1 ? arg_int(arg[0], "range", at) : 0;
  int64_t end = arg_int(arg[n > 1 ? 1 : 0], "range", at);
  int64_t step = n > 2 ? arg_int(arg[2], "range", at) : 1;
  if (!step) script_fail(at, "range(): the step is 0");
  uint64_t span = step > 0     ? (end > from ? (uint64_t)end - (uint64_t)from : 0)
                  : from > end ? (uint64_t)from - (uint64_t)end
                               : 0;
  uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step,
           count = span / by + (span % by != 0);
  not_too_many(count, at);
  Value d = of_list(K_array, count);
  for (uint64_t i = 0; i < count; i++)
    d.u.list->at[i] = of_int((int64_t)((uint64_t)from + i * (uint64_t)step));
  return d;
}

static Value bi_type(const Value *arg, uint32_t n, int at) {
  (void)n, (void)at;
  return of_text(kind_of(arg[0]), strlen(kind_of(arg[0])));
}

static Value bi_assert(const Value *arg, uint32_t n, int at) {
  if (is_true(arg[0])) return null;
  Shown t = {0};
  if (n > 1) put_value(&t, arg[1], 0, at);
  put(&t, "", 1);
  script_fail(at, "%s", n > 1 ? t.at : "the assertion does not hold");
}

/* ---- numbers ---- */

#define OF_NUMBER(name, value)                                                                     \
  static Value bi_##name(const Value *arg, uint32_t n, int at) {                                   \
    double x = arg_number(arg[0], #name, at);                                                      \
    (void)n;                                                                                       \
    return of_float(value);                                                                        \
  }
OF_NUMBER(exp, im_exp(x))
OF_NUMBER(sin, im_sin(x))
OF_NUMBER(cos, im_cos(x))
OF_NUMBER(tan, im_tan(x))
OF_NUMBER(tanh, im_tanh(x))
OF_NUMBER(sigmoid, 1 / (1 + im_exp(-x)))
OF_NUMBER(relu, 0 > x ? 0 : x)

static Value bi_abs(const Value *arg, uint32_t n, int at) {
  (void)n;
  if (arg->kind == K_int)
    return of_int(arg->u.i < 0 ? (int64_t)(0 - (uint64_t)arg->u.i) : arg->u.i);
  return of_float(fabs(arg_number(*arg, "abs", at)));
}

static Value bi_sqrt(const Value *arg, uint32_t n, int at) {
  (void)n;
  if (arg_number(*arg, "sqrt", at) < 0) script_fail(at, "sqrt() of a negative number");
  return of_float(sqrt(number(*arg)));
}

static Value bi_log(const Value *arg, uint32_t n, int at) {
  (void)n;
  if (!(arg_number(*arg, "log", at) > 0)) script_fail(at, "log() of a number that is not above 0");
  return of_float(im_log(number(*arg)));
}

static Value bi_pow(const Value *arg, uint32_t n, int at) {
  (void)n;
  double x = arg_number(arg[0], "pow", at);
  return of_float(im_pow(x, arg_number(arg[1], "pow", at)));
}

static Value pick(const Value *arg, uint32_t n, int largest, const char *name, int at) {
  if (n == 1) script_fail(at, "%s() takes a tensor here, got %s", name, kind_of(*arg));
  if (arg[0].kind == K_int && arg[1].kind == K_int) {
    int first = largest ? arg[0].u.i >= arg[1].u.i : arg[0].u.i <= arg[1].u.i;
    return arg[first ? 0 : 1];
  }
  double x = arg_number(arg[0], name, at), y = arg_number(arg[1], name, at);
  return of_float(largest ? fmax(x, y) : fmin(x, y));
}

static Value bi_min(const Value *arg, uint32_t n, int at) {
  return pick(arg, n, 0, "min", at);
}

static Value bi_max(const Value *arg, uint32_t n, int at) {
  return pick(arg, n, 1, "max", at);
}

/* ---- training ---- */

static Value bi_tensor_clip_grad(const Value *arg, uint32_t n, int at) {
  const char *name = "tensor_clip_grad";
  const List *l = arg_list(arg[0], name, at);
  double max = arg_number(arg[1], name, at), sum = 0;
  (void)n;
  for (uint64_t i = 0; i < l->n; i++) {
    double x = arg_number(l->at[i], name, at);
    sum += x * x;
  }
  double norm = sqrt(sum), k = norm > max ? max / norm : 1;
  Value d = of_list(K_array, l->n);
  for (uint64_t i = 0; i < l->n; i++) d.u.list->at[i] = of_float(number(l->at[i]) * k);
  return d;
}

static Value bi_step_lr(const Value *arg, uint32_t n, int at) {
  const char *name = "step_lr";
  int64_t epoch = arg_int(arg[1], name, at), size = arg_int(arg[2], name, at);
  (void)n;
  if (size < 1)
    script_fail(at, "step_lr(): expected a step size of at least 1, got %lld", (long long)size);
  double lr = arg_number(arg[0], name, at);
  return of_float(lr * im_pow(arg_number(arg[3], name, at), (double)(epoch / size)));
}

static Value bi_exponential_lr(const Value *arg, uint32_t n, int at) {
  const char *name = "exponential_lr";
  double lr = arg_number(arg[0], name, at), gamma = arg_number(arg[2], name, at);
  (void)n;
  return of_float(lr * im_pow(gamma, arg_number(arg[1], name, at)));
}

static Value bi_cosine_annealing_lr(const Value *arg, uint32_t n, int at) {
  const char *name = "cosine_annealing_lr";
  const double pi = 3.14159265358979323846;
  double max = arg_number(arg[0], name, at), min = arg_number(arg[1], name, at);
  double epoch = arg_number(arg[2], name, at), total = arg_number(arg[3], name, at);
  (void)n;
  if (!(total > 0)) script_fail(at, "%s(): the number of epochs is not above 0", name);
  if (epoch > total) epoch = total;
  return of_float(min + 0.5 * (max - min) * (1 + im_cos(pi * epoch / total)));
}

static Value bi_gpu_available(const Value *arg, uint32_t n, int at) {
  (void)arg, (void)n, (void)at;
  return of_bool(0);
}

static Value bi_gpu_info(const Value *arg, uint32_t n, int at) {
  (void)arg, (void)n, (void)at;
  return of_text("No GPU available", 16);
}

/* ---- tensors and objects: stubs ---- */

struct Sizes {
  char none;
};

static const char *more_kind(Value d) {
  return (void)d, "nothing";
}
static void more_release(Box *b) {
  (void)b;
}
static void more_show(Shown *t, Value d, int at) {
  (void)t, (void)d, (void)at;
}
static int more_binary(char sign, Value x, Value y, int at, Value *out) {
  return (void)sign, (void)x, (void)y, (void)at, (void)out, 0;
}
static int more_negate(Value x, int at, Value *out) {
  return (void)x, (void)at, (void)out, 0;
}
static int more_index(Value v, Value i, int at, int where, Value *out) {
  return (void)v, (void)i, (void)at, (void)where, (void)out, 0;
}
static int more_call(Value f, Value *arg, uint32_t n, const int *at, Value *out) {
  return (void)f, (void)arg, (void)n, (void)at, (void)out, 0;
}
static int more_method(Value on, const char *name, Value *arg, uint32_t n, const int *at,
                       Value *out) {
  return (void)on, (void)name, (void)arg, (void)n, (void)at, (void)out, 0;
}
static int more_equal(Value x, Value y, int at, int *same) {
  return (void)x, (void)y, (void)at, (void)same, 0;
}
static int more_number(Value *d) {
  return (void)d, 0;
}
static int fits_element(Value d, double f) {
  return (void)d, (void)f, 0;
}
static int more_becomes(Value *d, const ValueType *to, int at) {
  return (void)d, (void)to, (void)at, 0;
}
static inline void sizes_begin(Sizes *s) {
  (void)s;
}
static inline void sizes_end(Sizes *s) {
  (void)s;
}
static void script_run(void) {
  script_main();
}
