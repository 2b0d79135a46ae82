/* dry_net.c: imported networks in a dry run; see dry.h.
 *
 * In: a network and the shapes of its arguments. Out: tensors with the shapes of its results. The
 * network is recorded for these shapes and becomes a function of the compiled program.
 * Data-dependent result shapes and states are refused.
 */
#include "lang/run/dry.h"
#include "lang/run/lang_object.h"

typedef struct NetJob {
  const LangObject *net;
  const LangValue *arg;
  u32 n;
  Ingot *x;
  const char *why; /* why it cannot be compiled */
} NetJob;

static const Type *port(const Ingot *x, u32 i, bool out) {
  const GraphRegion *b = &x->g->region.at[1];
  return graph_type(x->g, out ? b->ret.at[i] : b->param.at[i]);
}

static bool is_fixed(const Type *t) {
  for (u32 i = 0; i < t->rank; i++)
    if (!dim_is_const(t->dim[i])) return false;
  return t->kind == TY_tensor && (dtype_is_float(t->dt) || dtype_is_int(t->dt) || t->dt == DT_bool);
}

static void open_net(Ctx *c, void *arg) {
  NetJob *j = arg;
  Ingot *x = j->x;
  api_open(x, j->net->path);
  const Model *model = x->opened.model;
  for (u32 i = 0; model && i < model->ninput && i < j->n; i++) {
    const LazyTensor *t = j->arg[i].u.lazy;
    for (u32 k = 0; k < t->rank; k++)
      *vec_push(&c->keep, &x->options.dim) =
          (BindDim){.input = model->input[i]->name, .axis = k, .value = t->dim[k], .rank = t->rank};
  }
  api_import(x, false);
  if (!x->g || api_has_state(x)) {
    j->why = "a network with a state";
    return;
  }
  const GraphRegion *b = &x->g->region.at[1];
  if (b->param.n != j->n)
    fail(c, ERR_usage, LOC_NONE, "the network takes %u tensor%s, found %u", b->param.n,
         b->param.n == 1 ? "" : "s", j->n);
  for (u32 i = 0; i < b->param.n + b->ret.n; i++) {
    bool out = i >= b->param.n;
    if (!is_fixed(port(x, out ? i - b->param.n : i, out)))
      j->why = "a network with inputs or results of open shapes";
  }
}

static const DryNet *note(Eval *ev, const LangObject *t, const LangValue *arg, u32 n) {
  DryRun *d = ev->dry;
  Ctx *c = d->m->c;
  NetJob j = {.net = t, .arg = arg, .n = n, .x = dry_add_entry(d)};
  if (api_call(d->m, open_net, &j)) {
    d->why =
        eval_message(ev, ev->at,
                     str_text(ev->c, str_fmt(ev->c, "%s: %s", t->path,
                                             c->diags ? diag_cause(c->diags) : "out of memory")));
    fail(ev->c, ERR_input, LOC_NONE, "%s", d->why);
  }
  if (j.why)
    fail(ev->c, ERR_unsupported, LOC_NONE, "%s",
         eval_message(
             ev, ev->at,
             str_text(ev->c, str_fmt(ev->c, "%s is not supported in a compiled program", j.why))));
  DryNet *net = vec_push(&c->keep, &d->net);
  *net = (DryNet){.path = str_text(c, str_of(c, t->path)), .x = j.x, .n = n};
  return net;
}

static const DryNet *find(const DryRun *d, const LangObject *t, const LangValue *arg, u32 n) {
  for (u32 i = 0; i < d->net.n; i++) {
    const DryNet *net = &d->net.at[i];
    Str path = str_of(d->m->c, t->path);
    bool same = net->n == n && str_is(d->m->c, path, net->path);
    for (u32 k = 0; same && k < n; k++) {
      const Type *p = port(net->x, k, false);
      const LazyTensor *x = arg[k].u.lazy;
      same = p->rank == x->rank;
      for (u32 a = 0; same && a < p->rank; a++) same = p->dim[a] == x->dim[a];
    }
    if (same) return net;
  }
  return NULL;
}

LangValue dry_net(Eval *ev, LangObject *t, LangValue *arg, u32 n) {
  const DryNet *net = find(ev->dry, t, arg, n);
  if (!net) net = note(ev, t, arg, n);
  u32 nout = net->x->g->region.at[1].ret.n;
  LangValue out = value_list(ev, KD_array, nout);
  for (u32 i = 0; i < nout; i++) {
    const Type *p = port(net->x, i, true);
    LazyTensor *y = lazy_new(ev, p->dim, p->rank);
    dry_clear_data(ev, y);
    out.u.list->at[i] = value_tensor(y);
  }
  if (nout != 1) return out;
  LangValue one = value_retain(&out.u.list->at[0]);
  value_drop(ev, &out);
  return one;
}
