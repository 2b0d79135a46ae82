/* net.c: imported networks.
 *
 * In: the path of a model, relative to the program; tensors. Out: the results, computed
 * immediately. Gradients do not flow through a network, so tracked tensors are refused. A session
 * is kept per argument shapes. Numbers are converted to the input types.
 */
#include "lang/run/dry.h"
#include "lang/run/lang_object.h"

#include <string.h>

LangValue net_import(Eval *ev, const Ast *n) {
  LangObject *t = object_new(ev, OBJ_net);
  t->path = path_relative_to(ev->c, ev->s->all->at[n->file]->file, str_text(ev->c, n->a->name));
  return value_object(t);
}

typedef struct NetCall {
  Eval *ev;
  const LangObject *net;
  LangValue *arg;
  u32 n;
  Ingot *m;
} NetCall;

/* Checks the number of arguments: a run would use defaults for missing inputs. Text IR has no
 * separate declarations, so its graph or program is read here. */
static void check_count(NetCall *k) {
  const Model *model = k->m->opened.model;
  if (!model) api_import(k->m, false);
  u32 n = model ? model->ninput : api_param_count(k->m);
  if (k->n != n)
    fail(k->m->c, ERR_usage, LOC_NONE, "the network takes %u tensor%s, found %u", n,
         n == 1 ? "" : "s", k->n);
}

/* Binds the tensor as an array with the type of input i. */
static void bind_input(NetCall *k, u32 i) {
  LazyTensor *t = k->arg[i].u.lazy;
  Arena *a = &k->m->c->keep;
  const DeclValue *in = k->m->opened.model ? k->m->opened.model->input[i] : NULL;
  IngotTensor param = in ? (IngotTensor){0} : ingot_input_info(k->m, i);
  DType dt = in ? in->type.dt : dtype_from_name(param.dtype, strlen(param.dtype));
  if (dt == DT_none) dt = DT_f32;
  Tensor *x = tensor_new(a, dt, t->dim, t->rank);
  for (u64 j = 0; j < t->n; j++)
    tensor_set(x, j, scalar_cast(DT_f64, dt, (Scalar){.f = t->data[j]}, true));
  IngotTensor in_ = {.name = in ? str_text(k->m->c, in->name) : param.name,
                     .dtype = dtype_info[dt].name,
                     .rank = t->rank,
                     .dim = x->dim,
                     .data = x->data,
                     .bytes = tensor_bytes(x)};
  if (ingot_input(k->m, &in_)) longjmp(*k->m->c->door, (int)k->m->status);
}

static LazyTensor *read_output(Eval *ev, const IngotTensor *t) {
  DType dt = dtype_from_name(t->dtype, strlen(t->dtype));
  if (!dtype_is_float(dt) && !dtype_is_int(dt) && dt != DT_bool)
    ARG_BAD(ev, "expected the network to return numbers, got %s", t->dtype);
  LazyTensor *y = lazy_new(ev, t->dim, t->rank);
  for (u64 j = 0; j < y->n; j++) {
    Scalar x = scalar_load(dt, (const u8 *)t->data + j * dtype_bytes(dt));
    y->data[j] = scalar_cast(dt, DT_f64, x, true).f;
  }
  return y;
}

static IngotStatus call(NetCall *k, bool fresh) {
  IngotStatus s = fresh ? ingot_open(k->m, k->net->path) : INGOT_OK;
  const char *engine = k->ev->o->engine ? k->ev->o->engine : "vm";
  for (u32 i = 0; !s && i <= k->n; i++) {
    ProtectedCall door;
    if (!api_enter(k->m, &door)) break;
    if (!setjmp(door.here)) {
      if (i)
        bind_input(k, i - 1);
      else
        check_count(k);
      door.passed = true;
    }
    s = api_leave(k->m, &door);
  }
  return s ? s : ingot_run(k->m, engine, 0);
}

static LangValue results(Eval *ev, const Ingot *m) {
  u32 n = ingot_output_count(m);
  LangValue out = value_list(ev, KD_array, n);
  for (u32 i = 0; i < n; i++) {
    IngotTensor t = ingot_output(m, i);
    out.u.list->at[i] = value_tensor(read_output(ev, &t));
  }
  if (n != 1) return out;
  LangValue one = value_retain(&out.u.list->at[0]);
  value_drop(ev, &out);
  return one;
}

/* ---- sessions ---- */

/* A session per network and argument shapes. Bound arrays stay in it, so it is reopened when they
 * are large. A network with state starts from its initial state in every call. */
struct NetSession {
  NetSession *next;
  Str key;
  Ingot *m; /* NULL: closed */
  u64 bytes;
};

#define SESSION_BYTES ((u64)64 << 20)

static void close_session(NetSession *s) {
  ingot_free(s->m);
  s->m = NULL;
}

void nets_free(Eval *ev) {
  for (NetSession *s = ev->nets; s; s = s->next) close_session(s);
  ev->nets = NULL;
}

static NetSession *session(Eval *ev, const char *path, const LangValue *arg, u32 n) {
  StrBuf t = sb_new(&ev->stack);
  sb_puts(&t, path);
  for (u32 i = 0; i < n; i++) {
    const LazyTensor *x = arg[i].u.lazy;
    sb_puts(&t, "\n");
    for (u32 d = 0; d < x->rank; d++) sb_fmt(&t, "%lld,", (long long)x->dim[d]);
  }
  Str key = str_intern(ev->c, t.at, t.n);
  NetSession *s = ev->nets;
  while (s && s->key != key) s = s->next;
  if (!s) {
    s = NEW(&ev->c->keep, NetSession);
    *s = (NetSession){.next = ev->nets, .key = key};
    ev->nets = s;
  }
  if (s->bytes > SESSION_BYTES) close_session(s);
  if (s->m) return s;
  IngotAlloc alloc = {ev->c->alloc.resize, ev->c->alloc.user};
  s->m = ingot_new(&alloc);
  s->bytes = 0;
  if (!s->m) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  s->m->c->guard = ev->c->guard;
  return s;
}

LangValue net_call(Eval *ev, LangObject *t, LangValue *arg, u32 n) {
  eval_check_file(ev, t->path);
  net_check(ev, t, arg, n);
  if (ev->dry) return dry_net(ev, t, arg, n);
  NetSession *open = session(ev, t->path, arg, n);
  bool fresh = !open->bytes;
  NetCall k = {.ev = ev, .net = t, .arg = arg, .n = n, .m = open->m};
  open->bytes++;
  for (u32 i = 0; i < n; i++) open->bytes += arg[i].u.lazy->n * sizeof(double);
  IngotStatus s = call(&k, fresh);
  if (fresh) files_protect(ev->c, k.m->c);
  StrBuf why = sb_new(&ev->c->keep);
  if (s) sb_puts(&why, k.m->c->diags ? diag_cause(k.m->c->diags) : "out of memory");
  LangValue out = {.kind = KD_null};
  if (!s) out = results(ev, k.m);
  if (s || api_has_state(k.m)) close_session(open);
  if (s && !fresh) return net_call(ev, t, arg, n); /* shapes may depend on data: build again */
  if (s) ARG_BAD(ev, "%s: %s", t->path, sb_cstr(&why));
  return out;
}
