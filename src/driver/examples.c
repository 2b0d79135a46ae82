/* examples.c: reads inputs of many runs.
 *
 * In: an .npz with arrays named like the inputs, or a folder of such files, each one example. Out:
 * the tensors of every example. In a single file examples lie along the first axis. An array with
 * one dimension more than the input holds one example per row. An array of the same rank holds as
 * many examples as the first dimension of the input (1 if open) fits into its own. An array with
 * one example is used for all. Numbers that are not finite are refused here, where their position
 * is known.
 */
#include "driver/examples.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the array of one input is split. */
typedef struct ExampleSlice {
  const Tensor *t;
  u64 n;    /* examples; 1: the same for all */
  i64 rows; /* rows of the first axis per example; 0: an example has one dimension less */
} ExampleSlice;

static void check_finite(Ctx *c, Loc loc, Str name, const Tensor *t) {
  if (!dtype_is_float(t->dt)) return;
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f;
    if (isfinite(x)) continue;
    fail(c, ERR_input, loc, "array '%s', %s, holds %s at %s: expected finite numbers",
         show(c, name), shape_text(c, dtype_info[t->dt].name, t->dim, t->rank),
         isnan(x) ? "NaN" : "an infinity", index_text(c, t, i));
  }
}

const Tensor *api_find_array(const NamedTensors *v, Str name) {
  for (u32 i = 0; i < v->n; i++)
    if (v->at[i].name == name) return v->at[i].t;
  return NULL;
}

static _Noreturn void fail_missing(Ctx *c, Loc loc, const NamedTensors *v, Str name) {
  StrBuf t = sb_new(&c->scratch);
  Suggestion near = suggest_new(str_text(c, name));
  for (u32 i = 0; i < v->n; i++) {
    sb_fmt(&t, "%s%s", i ? ", " : "", show(c, v->at[i].name));
    suggest_try(&near, str_text(c, v->at[i].name));
  }
  fail(c, ERR_input, loc, "no array for input '%s'; found %s%s", show(c, name),
       v->n ? sb_cstr(&t) : "none", suggest_text(c, &near));
}

typedef struct WantedArrays {
  const Model *model;
  Str label;
} WantedArrays;

static bool is_wanted(const void *user, Str name) {
  const WantedArrays *w = user;
  bool used = !w->model || (w->label && name == w->label);
  for (u32 i = 0; !used && i < w->model->ninput; i++) used = w->model->input[i]->name == name;
  return used;
}

NamedTensors api_read_arrays(Ingot *m, const File *f, Loc loc, Str label) {
  WantedArrays w = {m->opened.model, label};
  return data_read_npz_some(m->c, f->at, f->n, loc, &m->c->keep, is_wanted, &w);
}

void api_warn_arrays(Ingot *m, Loc loc, const NamedTensors *v, Str label) {
  for (u32 i = 0; i < v->n; i++) {
    bool used = label && v->at[i].name == label;
    for (u32 k = 0; k < m->opened.model->ninput; k++)
      used |= m->opened.model->input[k]->name == v->at[i].name;
    if (!used) api_warn_unused(m->c, loc, v->at[i].name);
  }
}

static NamedTensors read_arrays(Ingot *m, const char *path, Loc *loc, Str label) {
  Ctx *c = m->c;
  *loc = LOC_NONE;
  loc->file = str_of(c, path);
  File f = file_read(c, path);
  NamedTensors v = api_read_arrays(m, &f, *loc, label);
  for (u32 i = 0; i < v.n; i++)
    if (v.at[i].t) check_finite(c, *loc, v.at[i].name, v.at[i].t);
  api_warn_arrays(m, *loc, &v, label);
  return v;
}

/* ---- labels ---- */

static void read_labels(Ctx *c, Loc loc, const NamedTensors *v, Str name, u32 examples,
                        ClassLabels *to) {
  const Tensor *t = api_find_array(v, name);
  if (!t)
    fail(c, ERR_input, loc,
         "expected an array '%s' with the labels; the archive has none of that name",
         show(c, name));
  if (!dtype_is_int(t->dt) || !t->n || t->n % examples)
    fail(c, ERR_input, loc,
         "labels '%s' are %s: expected integers, as many for each of %u examples", show(c, name),
         shape_text(c, dtype_info[t->dt].name, t->dim, t->rank), examples);
  i64 *all = NEWS(&c->keep, i64, t->n);
  u32 per = (u32)(t->n / examples);
  for (u64 i = 0; i < t->n; i++) all[i] = tensor_get(t, i).i;
  for (u32 i = 0; i < examples; i++) to[i] = (ClassLabels){all + (size_t)i * per, per};
}

/* ---- one file ---- */

static ExampleSlice cut_of(Ctx *c, Loc loc, const DeclValue *in, const Tensor *t) {
  const DeclType *d = &in->type;
  u32 rank = d->has_shape ? d->dims.n : t->rank ? t->rank - 1 : 0;
  const DeclDim *first = d->has_shape && rank ? &d->dims.at[0] : NULL;
  i64 rows = first && first->kind == OD_value && first->value > 0 ? first->value : 1;
  ExampleSlice cut = {.t = t, .n = 1};
  if (t->rank == rank + 1) {
    cut.n = (u64)t->dim[0];
  } else if (t->rank == rank && rank) {
    cut.rows = rows;
    cut.n = (u64)(t->dim[0] / rows);
    if (t->dim[0] % rows) cut.n = 0;
  } else if (t->rank != rank) {
    fail(c, ERR_input, loc,
         "array '%s' is %s, the input %s: expected as many dimensions, or one more",
         show(c, in->name), shape_text(c, dtype_info[t->dt].name, t->dim, t->rank),
         decl_type_string(c, 0, d));
  } else {
    cut.rows = -1; /* a scalar, the same for all */
  }
  if (!t->n)
    fail(c, ERR_input, loc, "array '%s' has no elements, expected at least one example",
         show(c, in->name));
  if (!cut.n)
    fail(c, ERR_input, loc,
         "array '%s' is %s: expected a first axis that is a multiple of %lld, that of input %s",
         show(c, in->name), shape_text(c, dtype_info[t->dt].name, t->dim, t->rank), (long long)rows,
         decl_type_string(c, 0, d));
  return cut;
}

static Tensor *part_of(Ctx *c, const ExampleSlice *cut, u32 i) {
  const Tensor *t = cut->t;
  i64 dim[MAX_RANK];
  u64 at = cut->n == 1 ? 0 : i, bytes;
  if (cut->rows < 0) return tensor_wrap(&c->keep, t->dt, t->dim, t->rank, t->data);
  u32 less = cut->rows == 0;
  for (u32 k = less; k < t->rank; k++) dim[k - less] = t->dim[k];
  if (!less) dim[0] = cut->rows;
  bytes = tensor_bytes(t) / cut->n;
  return tensor_wrap(&c->keep, t->dt, dim, t->rank - less, (const u8 *)t->data + at * bytes);
}

static Examples from_file(Ingot *m, const char *path, Str label) {
  Ctx *c = m->c;
  Loc loc;
  const Model *model = m->opened.model;
  NamedTensors v = read_arrays(m, path, &loc, label);
  ExampleSlice *cut = NEWS(&c->keep, ExampleSlice, model->ninput + 1);
  u64 n = 1;
  Str many = 0;
  for (u32 i = 0; i < model->ninput; i++) {
    const Tensor *t = api_find_array(&v, model->input[i]->name);
    if (!t) fail_missing(c, loc, &v, model->input[i]->name);
    cut[i] = cut_of(c, loc, model->input[i], t);
    if (cut[i].n > 1 && n > 1 && cut[i].n != n)
      fail(c, ERR_input, loc, "'%s' has %llu examples, but '%s' has %llu",
           show(c, model->input[i]->name), (unsigned long long)cut[i].n, show(c, many),
           (unsigned long long)n);
    if (cut[i].n > 1) n = cut[i].n, many = model->input[i]->name;
  }
  if (n > 1 << 24)
    fail(c, ERR_unsupported, loc, "found %llu examples, expected at most %u: pass a subset",
         (unsigned long long)n, 1u << 24);
  Examples e = {.n = (u32)n, .ninput = model->ninput, .at = NEWS(&c->keep, Tensor **, n)};
  for (u32 i = 0; i < e.n; i++) {
    e.at[i] = NEWS(&c->keep, Tensor *, e.ninput + 1);
    for (u32 k = 0; k < e.ninput; k++) e.at[i][k] = part_of(c, &cut[k], i);
  }
  if (label) e.label = NEWS(&c->keep, ClassLabels, e.n);
  if (label) read_labels(c, loc, &v, label, e.n, e.label);
  return e;
}

/* ---- a folder ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool api_list_archives(Ctx *c, const char *path, ArgVec *to) {
  Loc loc = {.file = str_of(c, path), .index = -1};
  DIR *dir = opendir(path);
  if (!dir && errno != ENOTDIR) fail(c, ERR_system, loc, "%s", strerror(errno));
  if (!dir) return false;
  for (struct dirent *d; (d = readdir(dir));)
    if (ends_with(d->d_name, ".npz"))
      *vec_push(&c->keep, to) = fmt_text(c, "%s/%s", path, d->d_name);
  closedir(dir);
  if (!to->n) fail(c, ERR_input, loc, "the folder has no .npz files, expected at least one");
  qsort(to->at, to->n, sizeof *to->at, by_name);
  return true;
}

static Examples from_folder(Ingot *m, const ArgVec *file, const char *path, Str label) {
  Ctx *c = m->c;
  Loc loc = {.file = str_of(c, path), .index = -1};
  Examples e = {
      .n = file->n, .ninput = m->opened.model->ninput, .at = NEWS(&c->keep, Tensor **, file->n)};
  if (label) e.label = NEWS(&c->keep, ClassLabels, file->n);
  for (u32 i = 0; i < e.n; i++) {
    NamedTensors v = read_arrays(m, file->at[i], &loc, label);
    e.at[i] = NEWS(&c->keep, Tensor *, e.ninput + 1);
    for (u32 k = 0; k < e.ninput; k++) {
      Str name = m->opened.model->input[k]->name;
      const Tensor *t = api_find_array(&v, name);
      if (!t) fail_missing(c, loc, &v, name);
      e.at[i][k] = tensor_wrap(&c->keep, t->dt, t->dim, t->rank, t->data);
    }
    if (label) read_labels(c, loc, &v, label, 1, &e.label[i]);
  }
  return e;
}

Examples api_examples(Ingot *m, const char *path, const char *label) {
  Ctx *c = m->c;
  Str of = label ? str_of(c, label) : 0;
  ArgVec file = {0};
  bool folder = api_list_archives(c, path, &file);
  if (!folder && !ends_with(path, ".npz")) api_fail_no_archive(c, path, ", or a folder of them");
  Examples e = folder ? from_folder(m, &file, path, of) : from_file(m, path, of);
  Str *name = NEWS(&c->keep, Str, e.ninput + 1);
  for (u32 k = 0; k < e.ninput; k++) name[k] = m->opened.model->input[k]->name;
  e.name = name;
  return e;
}

Examples api_examples_slice(const Examples *e, Arena *a, u32 from, u32 n, u32 step) {
  Examples some = *e;
  some.n = (n + step - 1) / step;
  some.at = NEWS(a, Tensor **, some.n + 1);
  if (e->label) some.label = NEWS(a, ClassLabels, some.n + 1);
  for (u32 i = 0; i < some.n; i++) {
    some.at[i] = e->at[from + i * step];
    if (e->label) some.label[i] = e->label[from + i * step];
  }
  return some;
}
