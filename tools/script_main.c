/* script_main.c: last part of the runtime before a compiled program, see script.c: calls, push and
 * pop, and the start of the program. */

/* ---- calls ---- */

static const char *stack_base;
static int64_t stack_max;

static Value call(Value f, Value *arg, uint32_t n, const int *at) {
  const char here = 0;
  Value d;
  if (f.kind != K_fn || f.u.fn->grad_of) {
    if (more_call(f, arg, n, at, &d)) return d;
    script_fail(at[0], "Cannot call non-function value: %s", kind_of(f));
  }
  const Shape *s = f.u.fn->shape;
  if (n != s->params)
    script_fail(at[0], "Wrong number of arguments: expected %u, got %u", s->params, n);
  /* negative if the call is inlined into main's frame */
  if (stack_base - &here > stack_max) script_fail(at[0], "calls are nested too deeply");
  Sizes own;
  sizes_begin(&own);
  for (uint32_t i = 0; i < n; i++)
    if (s->param[i]) becomes(&arg[i], s->param[i], at[1 + i]);
  d = s->code(f.u.fn, arg, at);
  sizes_end(&own);
  drop(f);
  return d;
}

/* ---- arrays ---- */

static List *changed(Value *d, const char *name, int at) {
  if (d->kind != K_array) script_fail(at, "%s() takes an array here, got %s", name, kind_of(*d));
  return d->u.list;
}

/* *to: a variable or element that holds the array; takes v. Grows by half, so that n pushes move
 * O(n) elements. */
static Value push(Value *to, Value v, int at) {
  List *l = changed(to, "push", at);
  int alone = l->box.refs == 1;
  if (!alone || l->n == l->room) {
    not_too_many(l->n + 1, at);
    uint64_t room = l->n + l->n / 2 + 4;
    List *more = box_new(K_array, sizeof *more + (size_t)room * sizeof *more->at);
    more->n = l->n;
    more->room = room;
    for (uint64_t i = 0; i < l->n; i++) more->at[i] = alone ? l->at[i] : share(l->at[i]);
    if (alone) l->n = 0; /* its elements have moved */
    set(to, (Value){K_array, {.list = more}});
    l = more;
  }
  l->at[l->n++] = v;
  return share(*to);
}

static Value pop(Value *from, int at) {
  if (!changed(from, "pop", at)->n) script_fail(at, "pop() of an empty array");
  List *l = own(from);
  return l->at[--l->n];
}

/* ---- the program ---- */

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
    return BAD_SYSTEM;
  }
  return 0;
}
