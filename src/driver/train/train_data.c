/* train_data.c: training examples.
 *
 * In: an .npz with an array named like each input, and one with the labels. Out: rows of these
 * arrays, copied into the inputs of a step. Examples lie along the first axis. An array whose first
 * axis has another length than that of the labels, or whose input has no first axis, is the same
 * for all examples. Floats are converted to floats, integers to integers of the width of the input.
 */
#include "driver/examples.h"
#include "driver/train/train_loop.h"

#include <math.h>
#include <string.h>

static _Noreturn void no_array(Ctx *c, Loc loc, const NamedTensors *v, const char *what, Str name) {
  StrBuf t = sb_new(&c->scratch);
  Suggestion near = suggest_new(str_text(c, name));
  for (u32 i = 0; i < v->n; i++) {
    sb_fmt(&t, "%s%s", i ? ", " : "", show(c, v->at[i].name));
    suggest_try(&near, str_text(c, v->at[i].name));
  }
  fail(c, ERR_input, loc, "no array '%s' for %s; found %s%s", show(c, name), what,
       v->n ? sb_cstr(&t) : "none", suggest_text(c, &near));
}

static void check_finite(Ctx *c, Loc loc, Str name, const Tensor *t) {
  for (u64 i = 0; dtype_is_float(t->dt) && i < t->n; i++)
    if (!isfinite(tensor_get(t, i).f))
      fail(c, ERR_input, loc, "array '%s': expected finite numbers, found another at element %llu",
           show(c, name), (unsigned long long)i);
}

/* Converts an array to the type of the model. */
static const Tensor *as_type(Ctx *c, Loc loc, const char *what, Str name, const Tensor *t,
                             DType dt) {
  bool fits = dtype_is_float(dt) ? dtype_is_float(t->dt) : dtype_is_int(dt) && dtype_is_int(t->dt);
  if (t->dt == dt) return t;
  if (!fits)
    fail(c, ERR_input, loc, "array '%s' is %s, %s %s", show(c, name),
         shape_text(c, dtype_info[t->dt].name, t->dim, t->rank), what, dtype_info[dt].name);
  return tensor_as(&c->keep, t, dt);
}

static u64 hash_of(u64 before, const Tensor *t) {
  u64 both[3] = {before, hash_bytes(t->data, tensor_bytes(t)), t->n};
  return hash_bytes(both, sizeof both);
}

static DataColumn input_column(Training *f, Loc loc, const NamedTensors *v, const DeclValue *in,
                               u64 n) {
  Ctx *c = f->c;
  const Tensor *t = api_find_array(v, in->name);
  if (!t) no_array(c, loc, v, "the input", in->name);
  if (in->type.kind != OT_tensor || in->type.dt == DT_str)
    fail(c, ERR_unsupported, loc, "input '%s' is %s: training supports only arrays of numbers",
         show(c, in->name), decl_type_string(c, in->name, &in->type));
  t = as_type(c, loc, "the input", in->name, t, in->type.dt);
  if (in->type.has_shape && in->type.dims.n != t->rank)
    fail(c, ERR_input, loc, "array '%s' is %s, the input %s: expected the same rank",
         show(c, in->name), shape_text(c, dtype_info[t->dt].name, t->dim, t->rank),
         decl_type_string(c, in->name, &in->type));
  DataColumn col = {.name = in->name, .t = t};
  col.same = !t->rank || (u64)t->dim[0] != n;
  col.row = col.same ? tensor_bytes(t) : tensor_bytes(t) / n;
  return col;
}

Dataset dataset_read(Training *f, const char *path) {
  Ctx *c = f->c;
  const Model *model = f->m->opened.model;
  Loc loc = {.file = str_of(c, path), .index = -1};
  if (!ends_with(path, ".npz")) api_fail_no_archive(c, path, "");
  File file = file_read(c, path);
  Str name = str_of(c, f->o->label ? f->o->label : "label");
  NamedTensors v = api_read_arrays(f->m, &file, loc, name);
  const Tensor *label = api_find_array(&v, name);
  if (!label) no_array(c, loc, &v, "the labels (--label)", name);
  if (!label->rank || !label->n)
    fail(c, ERR_input, loc, "labels '%s' are %s: expected one or more for each example",
         show(c, name), shape_text(c, dtype_info[label->dt].name, label->dim, label->rank));
  Dataset s = {.path = path, .n = (u64)label->dim[0], .ncol = model->ninput};
  if (s.n > UINT32_MAX)
    fail(c, ERR_unsupported, loc, "found %llu examples, expected at most %u",
         (unsigned long long)s.n, UINT32_MAX);
  for (u32 i = 0; i < v.n; i++)
    if (v.at[i].t) check_finite(c, loc, v.at[i].name, v.at[i].t);
  api_warn_arrays(f->m, loc, &v, name);
  s.col = NEWS(&c->keep, DataColumn, s.ncol + 1);
  bool any = false;
  for (u32 i = 0; i < s.ncol; i++) {
    s.col[i] = input_column(f, loc, &v, model->input[i], s.n);
    s.hash = hash_of(s.hash, s.col[i].t);
    any |= !s.col[i].same;
  }
  if (!any)
    fail(c, ERR_input, loc, "labels '%s' are for %llu examples, but no input has as many",
         show(c, name), (unsigned long long)s.n);
  s.label = (DataColumn){.name = name, .t = label};
  s.hash = hash_of(s.hash, label);
  return s;
}

/* Inputs with examples get `rows` rows; other shapes come from the arrays. */
void dataset_bind_shapes(const Training *f, Ingot *m, u64 rows) {
  Ctx *c = f->c;
  for (u32 i = 0; i < f->data.ncol; i++) {
    const DataColumn *col = &f->data.col[i];
    if (col->same) {
      *vec_push(&c->keep, &m->options.given) = (InputBinding){
          .name = col->name,
          .pos = -1,
          .kind = IB_data,
          .data = tensor_wrap(&c->keep, col->t->dt, col->t->dim, col->t->rank, col->t->data)};
      continue;
    }
    for (u32 k = 0; k < col->t->rank; k++)
      *vec_push(&c->keep, &m->options.dim) = (BindDim){.input = col->name,
                                                       .axis = k,
                                                       .value = k ? col->t->dim[k] : (i64)rows,
                                                       .rank = col->t->rank};
  }
}

/* Checks labels while the example of each is known. */
static void check_classes(Ctx *c, Loc loc, const Dataset *s, i64 classes) {
  const Tensor *t = s->label.t;
  if (!dtype_is_int(t->dt) || !classes) return;
  for (u64 i = 0; i < t->n; i++) {
    i64 y = tensor_get(t, i).i;
    if (y >= 0 && y < classes) continue;
    fail(c, ERR_input, loc, "array '%s': example %llu has label %lld: expected 0 to %lld",
         show(c, s->label.name), (unsigned long long)(i / (t->n / s->n)), (long long)y,
         (long long)classes - 1);
  }
}

void dataset_convert_labels(Training *f, Dataset *s, const TrainStep *d, u64 rows) {
  Ctx *c = f->c;
  Loc loc = {.file = str_of(c, s->path), .index = -1};
  const Tensor *want = train_step_in(d, str_of(c, "label")), *t = s->label.t;
  if (!want) internal_error(c, LOC_NONE, "a step without a label");
  if (!want->rank || (u64)want->dim[0] != rows)
    fail(c, ERR_unsupported, LOC_NONE,
         "labels of a step are %s: expected the examples, %llu of them, along the first axis",
         shape_text(c, dtype_info[want->dt].name, want->dim, want->rank), (unsigned long long)rows);
  t = as_type(c, loc, "the loss takes labels of", s->label.name, t, want->dt);
  if (t->n / s->n != want->n / rows || t->n % s->n)
    fail(c, ERR_input, loc,
         "labels '%s' are %s, the loss takes %s for a batch: expected as many for each example",
         show(c, s->label.name), shape_text(c, dtype_info[t->dt].name, t->dim, t->rank),
         shape_text(c, dtype_info[want->dt].name, want->dim, want->rank));
  s->label.t = t;
  check_classes(c, loc, s, d->classes);
  s->label.row = tensor_bytes(t) / s->n;
}

static void gather(const DataColumn *col, Tensor *to, const u32 *which, u64 n) {
  u8 *at = (u8 *)(uintptr_t)to->data;
  const u8 *from = col->t->data;
  if (col->same) {
    memcpy(at, from, col->row);
    return;
  }
  for (u64 i = 0; i < n; i++) memcpy(at + i * col->row, from + which[i] * col->row, col->row);
}

void dataset_gather(const Dataset *s, const TrainStep *d, const u32 *which, u64 n) {
  for (u32 i = 0; i < s->ncol; i++) {
    Tensor *to = train_step_in(d, s->col[i].name);
    if (to) gather(&s->col[i], to, which, n); /* the model may not read it */
  }
  gather(&s->label, train_step_in(d, str_of(d->m->c, "label")), which, n);
}
