/* weights.c: saves and loads the parameters of a model.
 *
 * In: a model, a path. Out: an .npz archive of doubles, readable by numpy: N.weight, N.bias and so
 * on for layer N, N.mean and N.variance of a batchnorm. load expects the same names and shapes.
 * Optimizer state is not saved. save does not overwrite the program or a file it has read, except
 * weights that load has read.
 */
#include "io/data.h"
#include "lang/run/lang_object.h"

#include <string.h>

typedef struct ModelWeight {
  Str name;
  LazyTensor **at;
  bool learns;
} ModelWeight;
typedef VEC(ModelWeight) ModelWeights;

static const char *weight_name(const LangObject *part, u32 k) {
  static const char *const plain[] = {"weight", "bias"}, *const steps[] = {"weight", "hidden",
                                                                           "bias"};
  return part->nweight == 3 ? steps[k] : plain[k];
}

static ModelWeights list(Eval *ev, LangObject *m) {
  ModelWeights all = {0};
  static const char *const stat[] = {"mean", "variance"};
  for (u32 i = 0; i < m->npart; i++) {
    LangObject *part = m->part[i];
    for (u32 k = 0; k < part->nweight; k++)
      *vec_push(&ev->stack, &all) =
          (ModelWeight){str_fmt(ev->c, "%u.%s", i, weight_name(part, k)), &part->weight[k], true};
    for (u32 k = 0; k < 2 && part->stat[k]; k++)
      *vec_push(&ev->stack, &all) =
          (ModelWeight){str_fmt(ev->c, "%u.%s", i, stat[k]), &part->stat[k], false};
  }
  return all;
}

static const char *path_of(Eval *ev, const LangValue *d) {
  if (d->kind != KD_string)
    ARG_BAD(ev, "the path of a file is a string, got %s", value_kind_name(d));
  return d->u.text->at;
}

void do_save(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  Ctx *c = ev->c;
  const char *path = path_of(ev, arg);
  Mark mark = arena_mark(&ev->stack);
  ModelWeights all = list(ev, m);
  if (ev->dry) { /* forces all, writes nothing */
    for (u32 i = 0; i < all.n; i++) lazy_data(ev, *all.at[i].at);
    return;
  }
  eval_check_file(ev, path);
  Str *name = arena_array(&ev->stack, all.n + 1, sizeof *name);
  Tensor **t = arena_array(&ev->stack, all.n + 1, sizeof *t);
  for (u32 i = 0; i < all.n; i++) {
    LazyTensor *w = *all.at[i].at;
    lazy_data(ev, w);
    name[i] = all.at[i].name;
    t[i] = tensor_wrap(&ev->stack, DT_f64, w->dim, w->rank, w->data);
  }
  StrBuf text = sb_new(&ev->stack);
  data_write_npz(c, &text, name, t, all.n);
  FileOut f = {.path = path, .at = text.at, .n = text.n};
  files_write(c, &f, 1);
  arena_rewind(&ev->stack, mark);
  (void)out;
}

static const Tensor *find(Eval *ev, const NamedTensors *in, const ModelWeight *w,
                          const char *path) {
  for (u32 i = 0; i < in->n; i++) {
    const Tensor *t = in->at[i].t;
    const LazyTensor *have = *w->at;
    if (in->at[i].name != w->name) continue;
    if (!dtype_is_float(t->dt) && !dtype_is_int(t->dt))
      ARG_BAD(ev, "%s: '%s' is an array of %s", path, str_text(ev->c, w->name),
              dtype_info[t->dt].name);
    if (t->rank == have->rank && !memcmp(t->dim, have->dim, t->rank * sizeof *t->dim)) return t;
    ARG_BAD(ev, "%s: '%s' has shape %s, the model wants %s", path, str_text(ev->c, w->name),
            dims_text(ev, t->dim, t->rank), dims_text(ev, have->dim, have->rank));
  }
  ARG_BAD(ev, "%s has no array '%s'", path, str_text(ev->c, w->name));
}

/* from: NULL in a dry run */
static void replace(Eval *ev, const ModelWeight *w, const Tensor *from) {
  LazyTensor *old = *w->at, *new = lazy_new(ev, old->dim, old->rank);
  dry_clear_data(ev, new);
  for (u64 k = 0; from && k < new->n; k++)
    new->data[k] = scalar_cast(from->dt, DT_f64, tensor_get(from, k), true).f;
  new->tracked = w->learns;
  *w->at = new;
  lazy_drop(ev, old);
}

void do_load(Eval *ev, LangObject *m, LangValue *arg, LangValue *out) {
  Ctx *c = ev->c;
  const char *path = path_of(ev, arg);
  Mark mark = arena_mark(&ev->stack);
  ModelWeights all = list(ev, m);
  if (ev->dry) { /* the file need not exist yet */
    for (u32 i = 0; i < all.n; i++) replace(ev, &all.at[i], NULL);
    return;
  }
  eval_check_file(ev, path);
  File f = file_read_own(c, path); /* save may replace it to resume training */
  NamedTensors in =
      data_read_npz(c, f.at, f.n, (Loc){.file = str_of(c, path), .index = -1}, &c->keep);
  if (in.n != all.n) ARG_BAD(ev, "%s has %u arrays, the model %u", path, in.n, all.n);
  /* check all before changing any */
  for (u32 i = 0; i < all.n; i++) find(ev, &in, &all.at[i], path);
  for (u32 i = 0; i < all.n; i++) replace(ev, &all.at[i], find(ev, &in, &all.at[i], path));
  arena_rewind(&ev->stack, mark);
  (void)out;
}
