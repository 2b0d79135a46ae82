/* script_tensor.c: graphs and networks of compiled programs.
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

/* Properties of operators (src/ir/eval.c). */
const OpInfo op_info[OP_COUNT] = {
#define SC(name, nin, cls, res, flags, text)                                                       \
  {NULL, nin, nin, 1, OK_MAP, OC_NUM, OR_##res, 0, NULL, NULL},
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
};

/* ---- networks ---- */

static LangValue net_new(const char *path) {
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
