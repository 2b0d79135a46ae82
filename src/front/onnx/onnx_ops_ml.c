/* onnx_ops_ml.c: ai.onnx.ml without trees and SVMs: encoders, scalers, linear models, shared
 * helpers.
 *
 * Category tables are compared with every element at once. If the standard does not define the
 * second score of two classes, this file follows ONNX Runtime.
 */
#include "front/onnx/onnx_ml.h"

#include <math.h>
#include <string.h>

/* ---- shared; see onnx_ml.h ---- */

MlNumbers ml_nums(Build *b, const char *name) {
  const OnnxAttr *a = on_attr(b, name);
  MlNumbers r = {0};
  if (!a) {
    Tensor *t = on_tensor(b, str_text(b->c, str_fmt(b->c, "%s_as_tensor", name)));
    if (!t) return r;
    r = (MlNumbers){(u32)t->n, NEWS(&b->c->work, double, t->n), t->dt == DT_f64};
    for (u32 i = 0; i < r.n; i++) {
      Scalar s = tensor_get(t, i);
      r.at[i] = dtype_is_float(t->dt) ? s.f : (double)s.i;
    }
    return r;
  }
  if (a->type != OA_floats && a->type != OA_ints)
    on_bad(b, "attribute %s has another type, expected a list of numbers", name);
  r.n = a->type == OA_floats ? a->floats.n : a->ints.n;
  r.at = NEWS(&b->c->work, double, r.n);
  for (u32 i = 0; i < r.n; i++)
    r.at[i] = a->type == OA_floats ? (double)a->floats.at[i] : (double)a->ints.at[i];
  return r;
}

Val ml_const(Build *b, DType dt, const double *x, const i64 *dim, u32 rank) {
  Tensor *t = tensor_new(&b->c->work, dt, dim, rank);
  for (u64 i = 0; i < t->n; i++)
    tensor_set(t, i, scalar_cast(DT_f64, dt, (Scalar){.f = x[i]}, true));
  return mk_const(b->g, t);
}

Val ml_rows(Build *b, Val x) {
  Type t = *on_type(b, x);
  if (!dtype_is_float(t.dt) && !dtype_is_int(t.dt))
    on_bad(b, "the operand has type %s, expected numbers", dtype_info[t.dt].name);
  Dim one[2] = {1, t.rank ? t.dim[0] : 1};
  if (t.rank < 2)
    x = mk_reshape(b->g, x, one, 2);
  else if (t.rank > 2)
    on_bad(b, "the operand has rank %u, expected 2", t.rank);
  return mk_cast(b->g, x, t.dt == DT_f64 ? DT_f64 : DT_f32);
}

static bool ml_post_is(Build *b, const char *name) {
  return on_str_is(b, "post_transform", "NONE", name);
}

/* sqrt(2) * erf_inv(2 x - 1) by Winitzki's approximation */
static Val probit(Build *b, Val x) {
  Graph *g = b->g;
  Val y = mk_addk(g, mk_mulk(g, x, 2), -1), one = mk_like(g, x, 1);
  Val more = mk_add(g, one, y);
  Val log = mk_log(g, mk_mul(g, mk_sub(g, one, y), more));
  Val v = mk_addk(g, mk_mulk(g, log, 0.5), 2 / (3.14159265358979323846 * 0.147));
  Val part = mk_mulk(g, log, 1 / 0.147);
  Val root = mk_sqrt(g, mk_sub(g, mk_mul(g, v, v), part));
  Val r = mk_sqrt(g, mk_sub(g, root, v));
  Val less = mk_neg(g, r);
  return mk_mulk(g, mk_select(g, mk_lt(g, y, mk_like(g, y, 0)), less, r), 1.41421356);
}

/* Softmax in which scores of 0 stay 0. */
static Val softmax_zero(Build *b, Val x) {
  Graph *g = b->g;
  static const i64 axis = 1;
  Val top = mk_reduce(g, OP_reduce_max, x, &axis, 1, true);
  Val least = mk_like(g, x, 0.0000001);
  Val some = mk_gt(g, mk_abs(g, x), least);
  Val small = mk_mul(g, x, mk_exp(g, mk_neg(g, top)));
  Val e = mk_select(g, some, mk_exp(g, mk_sub(g, x, top)), small);
  Val sum = mk_reduce(g, OP_reduce_sum, e, &axis, 1, true);
  Val quotient = mk_div(g, e, sum);
  Val half = mk_like(g, x, 0.5);
  return mk_select(g, mk_eq(g, sum, mk_like(g, sum, 0)), half, quotient);
}

Val ml_post(Build *b, Val scores) {
  if (ml_post_is(b, "NONE")) return scores;
  if (ml_post_is(b, "LOGISTIC")) return compose_sigmoid(b->g, scores);
  if (ml_post_is(b, "SOFTMAX")) return compose_softmax(b->g, scores, &(i64){1}, 1);
  if (ml_post_is(b, "SOFTMAX_ZERO")) return softmax_zero(b, scores);
  if (ml_post_is(b, "PROBIT")) return probit(b, scores);
  on_bad(b, "post_transform is '%s', expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT",
         show(b->c, on_str(b, "post_transform", "")));
}

u32 ml_label_count(Build *b, const char *ints) {
  const OnnxAttr *i = on_typed(b, ints, OA_ints),
                 *s = on_typed(b, "classlabels_strings", OA_strings);
  u32 n = i ? i->ints.n : 0;
  return n ? n : s ? s->strings.n : 0;
}

Val ml_labels(Build *b, Val index, const char *ints) {
  const OnnxAttr *i = on_typed(b, ints, OA_ints),
                 *s = on_typed(b, "classlabels_strings", OA_strings);
  if (i && i->ints.n) return mk_gather(b->g, mk_const(b->g, on_table(b, i)), index, 0);
  if (s && s->strings.n) return mk_gather(b->g, mk_const(b->g, on_table(b, s)), index, 0);
  return index;
}

Val ml_two_scores(Build *b, Val s, bool is_signed) {
  Val pair[2] = {0, s};
  if (ml_post_is(b, "PROBIT")) on_unsupported(b, "PROBIT of a single score for two classes");
  if (ml_post_is(b, "LOGISTIC")) {
    pair[0] = compose_sigmoid(b->g, mk_neg(b->g, s));
    pair[1] = compose_sigmoid(b->g, s);
  } else {
    pair[0] = is_signed ? mk_neg(b->g, s) : mk_sub(b->g, mk_like(b->g, s, 1), s);
  }
  return mk_concat(b->g, pair, 2, 1);
}

/* ---- linear models ---- */

/* x [rows, features] times coefficients [outputs, features], plus intercepts. */
static Val linear_scores(Build *b, Val x, u32 outputs) {
  MlNumbers w = ml_nums(b, "coefficients"), c = ml_nums(b, "intercepts");
  i64 n = on_static_dim(b, x, 1), dim[2] = {outputs, n};
  if (!outputs || !n || w.n / outputs != (u64)n || w.n % outputs)
    on_bad(b, "found %u coefficients for %lld features and %u outputs: expected their product", w.n,
           (long long)n, outputs);
  Val s = mk_contract(b->g, x, ml_const(b, on_dtype(b, x), w.at, dim, 2), "nf,of->no");
  if (!c.n) return s;
  if (c.n != outputs)
    on_bad(b, "found %u intercepts, expected %u, one for each output", c.n, outputs);
  return mk_add(b->g, s, ml_const(b, on_dtype(b, x), c.at, dim, 1));
}

void build_linearregressor(Build *b) {
  Val x = ml_rows(b, on_in(b, 0));
  i64 targets = on_int(b, "targets", 1);
  if (targets < 1 || targets > INT32_MAX)
    on_bad(b, "targets is %lld, expected 1 to 2^31-1", (long long)targets);
  b->out[0] = mk_cast(b->g, ml_post(b, linear_scores(b, x, (u32)targets)), DT_f32);
}

void build_linearclassifier(Build *b) {
  Graph *g = b->g;
  Val x = ml_rows(b, on_in(b, 0)), index;
  i64 n = on_static_dim(b, x, 1);
  u32 labels = ml_label_count(b, "classlabels_ints"),
      rows = n ? ml_nums(b, "coefficients").n / (u32)n : 0;
  Val s = linear_scores(b, x, rows);
  if (rows == 1) {
    if (labels != 2) on_unsupported(b, "one score for %u labels, expected 2 labels", labels);
    Val only = mk_squeeze(g, s, 1);
    index = mk_cast(g, mk_gt(g, only, mk_like(g, only, 0)), DT_i64);
    s = ml_two_scores(b, s, false);
  } else {
    if (labels && labels != rows)
      on_bad(b, "found %u labels, expected %u, one for each score", labels, rows);
    index = mk_arg(g, OP_argmax, s, 1, false, false);
    s = ml_post(b, s);
  }
  b->out[0] = ml_labels(b, index, "classlabels_ints");
  if (on_wants(b, 1)) b->out[1] = mk_cast(g, s, DT_f32);
}

/* ---- features ---- */

/* A list of one element, or one per feature, that broadcasts against x. */
static Val feature_list(Build *b, const char *name, Val x, double otherwise) {
  MlNumbers v = ml_nums(b, name);
  i64 n = v.n;
  if (!v.n) return mk_like(b->g, x, otherwise);
  if (v.n == 1) return mk_like(b->g, x, v.at[0]);
  u32 rank = on_rank(b, x);
  Dim d = rank ? on_dim(b, x, rank - 1) : 1;
  if (dim_is_const(d) && d != n)
    on_bad(b, "%s has %u elements for %lld features", name, v.n, (long long)d);
  return ml_const(b, on_dtype(b, x), v.at, &n, 1);
}

void build_scaler(Build *b) {
  Val x = mk_cast(b->g, on_in(b, 0), DT_f32);
  x = mk_sub(b->g, x, feature_list(b, "offset", x, 0));
  b->out[0] = mk_mul(b->g, x, feature_list(b, "scale", x, 1));
}

void build_binarizer(Build *b) {
  Val x = on_in(b, 0), one = mk_gt(b->g, x, mk_like(b->g, x, on_float(b, "threshold", 0)));
  b->out[0] = mk_cast(b->g, one, on_dtype(b, x));
}

/* A row of norm 0 is unchanged. */
void build_normalizer(Build *b) {
  Graph *g = b->g;
  Val x = mk_cast(g, on_in(b, 0), DT_f32), norm;
  i64 axis = (i64)on_rank(b, x) - 1;
  if (axis < 0) on_bad(b, "the operand is a scalar, expected rank 1 or more");
  u32 kind = on_choice(b, "norm", "MAX L1 L2");
  Val term = kind == 0 ? x : kind == 1 ? mk_abs(g, x) : mk_mul(g, x, x);
  norm = mk_reduce(g, kind ? OP_reduce_sum : OP_reduce_max, term, &axis, 1, true);
  if (kind == 2) norm = mk_sqrt(g, norm);
  Val none = mk_eq(g, norm, mk_like(g, norm, 0));
  b->out[0] = mk_select(g, none, x, mk_div(g, x, norm));
}

void build_imputer(Build *b) {
  Graph *g = b->g;
  Val x = on_in(b, 0), gone;
  if (dtype_is_float(on_dtype(b, x))) {
    double was = on_float(b, "replaced_value_float", 0);
    gone = isnan(was) ? mk_isnan(g, x) : mk_eq(g, x, mk_like(g, x, was));
    b->out[0] = mk_select(g, gone, feature_list(b, "imputed_value_floats", x, 0), x);
    return;
  }
  const OnnxAttr *list = on_typed(b, "imputed_value_int64s", OA_ints);
  if (!list || !list->ints.n) on_bad(b, "imputed_value_int64s is missing");
  Tensor *was = tensor_new(&b->c->work, DT_i64, NULL, 0);
  tensor_set(was, 0, (Scalar){.i = on_int(b, "replaced_value_int64", 0)});
  gone = mk_eq(g, x, mk_cast(g, mk_const(g, was), on_dtype(b, x)));
  b->out[0] = mk_select(g, gone, mk_cast(g, mk_const(g, on_table(b, list)), on_dtype(b, x)), x);
}

void build_arrayfeatureextractor(Build *b) {
  Graph *g = b->g;
  Val x = on_in(b, 0), at = on_in(b, 1);
  Dim count = type_count(b->ds, on_type(b, at));
  if (!on_rank(b, x)) on_bad(b, "the operand is a scalar, expected rank 1 or more");
  if (on_rank(b, x) == 1) x = mk_unsqueeze(g, x, 0);
  u32 last = on_rank(b, x) - 1;
  at = on_index(b, mk_reshape(g, at, &count, 1), on_dim(b, x, last));
  b->out[0] = mk_gather(g, x, at, last);
}

/* Crops or pads each operand to its number of columns and concatenates them. */
void build_featurevectorizer(Build *b) {
  Graph *g = b->g;
  const OnnxAttr *size = on_typed(b, "inputdimensions", OA_ints);
  Val *part = NEWS(&b->c->scratch, Val, b->nin + 1);
  if (!b->nin) on_bad(b, "found no operand, expected at least one");
  if (size && size->ints.n != b->nin)
    on_bad(b, "inputdimensions has %u elements, expected %u, one for each operand", size->ints.n,
           b->nin);
  for (u32 i = 0; i < b->nin; i++) {
    Val x = mk_cast(g, on_in(b, i), DT_f32);
    if (on_rank(b, x) == 1) x = mk_unsqueeze(g, x, 1);
    if (on_rank(b, x) != 2) on_bad(b, "operand %u has rank %u, expected 1 or 2", i, on_rank(b, x));
    if (size) {
      i64 want = size->ints.at[i], have = on_static_dim(b, x, 1);
      Dim lo[2] = {0}, hi[2] = {0, want > have ? want - have : 0};
      if (want < 0 || want > INT32_MAX)
        on_bad(b, "inputdimensions contains %lld, expected 0 to 2^31-1", (long long)want);
      x = want < have ? mk_slice_axis(g, x, 1, 0, want)
                      : mk_pad(g, x, mk_like(g, x, 0), lo, hi, NULL);
    }
    part[i] = x;
  }
  b->out[0] = mk_concat(g, part, b->nin, 1);
}

/* ---- categories ---- */

/* bool [..., categories]: equality of x with each key. From version 4 on NaN equals NaN. */
static Val matches(Build *b, Val x, Tensor *keys) {
  Graph *g = b->g;
  Val k = mk_const(g, keys), wide = mk_unsqueeze(g, x, on_rank(b, x)), hit = mk_eq(g, wide, k);
  if (!dtype_is_float(keys->dt) || b->opset < 4) return hit;
  Val nan = mk_isnan(g, k);
  return mk_or(g, hit, mk_and(g, mk_isnan(g, wide), nan));
}

void build_onehotencoder(Build *b) {
  const OnnxAttr *ints = on_typed(b, "cats_int64s", OA_ints),
                 *strs = on_typed(b, "cats_strings", OA_strings);
  Val x = on_in(b, 0);
  bool text = on_dtype(b, x) == DT_str;
  if (text ? !strs : !ints)
    on_bad(b, "the categories have another type than the operand, expected the same type");
  if (!text) x = mk_cast(b->g, x, DT_i64);
  b->out[0] = mk_cast(b->g, matches(b, x, text ? on_table(b, strs) : on_table(b, ints)), DT_f32);
}

static Val look_up(Build *b, Val x, Tensor *keys, Tensor *values, Val otherwise) {
  Graph *g = b->g;
  i64 axis = on_rank(b, x);
  if (keys->n != values->n)
    on_bad(b, "found %llu keys and %llu values, expected equal numbers",
           (unsigned long long)keys->n, (unsigned long long)values->n);
  if (!keys->n) return mk_broadcast(g, otherwise, on_type(b, x)->dim, (u32)axis);
  if (on_dtype(b, x) != keys->dt)
    on_bad(b, "the keys are %s, but the operand is %s", dtype_info[keys->dt].name,
           dtype_info[on_dtype(b, x)].name);
  Val hit = mk_cast(g, matches(b, x, keys), DT_u8);
  Val at = mk_arg(g, OP_argmax, hit, axis, false, false);
  Val zero = mk_scalar(g, DT_u8, 0);
  Val any = mk_gt(g, mk_reduce(g, OP_reduce_max, hit, &axis, 1, false), zero);
  return mk_select(g, any, mk_gather(g, mk_const(g, values), at, 0), otherwise);
}

static Tensor *one_value(Build *b, DType dt, Scalar s) {
  Tensor *t = tensor_new(&b->c->work, dt, NULL, 0);
  tensor_set(t, 0, s);
  return t;
}

/* Attribute "keys" or "values" in any type; NULL if absent. */
static Tensor *table_of(Build *b, const char *what) {
  static const char *const kind[] = {"tensor", "int64s", "floats", "strings"};
  static const OnnxAttrType type[] = {OA_tensor, OA_ints, OA_floats, OA_strings};
  for (u32 i = 0; i < 4; i++) {
    const char *name = str_text(b->c, str_fmt(b->c, "%s_%s", what, kind[i]));
    const OnnxAttr *a = on_attr(b, name);
    if (!a) continue;
    if (i == 0) {
      Tensor *t = on_tensor(b, name);
      i64 n = (i64)t->n;
      return tensor_wrap(&b->c->work, t->dt, &n, 1, t->data);
    }
    return on_table(b, on_typed(b, name, type[i]));
  }
  return NULL;
}

static Val default_value(Build *b, DType dt) {
  Tensor *t = on_tensor(b, "default_tensor");
  if (t) {
    if (t->n != 1 || t->dt != dt)
      on_bad(b, "default_tensor has %llu elements of type %s, expected one %s",
             (unsigned long long)t->n, dtype_info[t->dt].name, dtype_info[dt].name);
    return mk_reshape(b->g, mk_const(b->g, t), NULL, 0);
  }
  if (dt == DT_str)
    t = one_value(b, dt, (Scalar){.i = on_str(b, "default_string", "_Unused")});
  else if (dtype_is_float(dt))
    t = one_value(b, dt, (Scalar){.f = on_float(b, "default_float", -0.0)});
  else
    t = one_value(b, dt, (Scalar){.i = scalar_wrap(dt, on_int(b, "default_int64", -1))});
  return mk_const(b->g, t);
}

static Tensor *counted(Build *b, u64 n) {
  i64 dim = (i64)n;
  Tensor *t = tensor_new(&b->c->work, DT_i64, &dim, 1);
  for (u64 i = 0; i < n; i++) tensor_set(t, i, (Scalar){.i = (i64)i});
  return t;
}

/* Version 1 maps strings to indices and indices to strings. */
void build_labelencoder(Build *b) {
  Val x = on_in(b, 0);
  Tensor *keys = table_of(b, "keys"), *values = table_of(b, "values");
  const OnnxAttr *classes = on_typed(b, "classes_strings", OA_strings);
  if (!keys && classes) {
    Tensor *names = on_table(b, classes), *order = counted(b, names->n);
    bool text = on_dtype(b, x) == DT_str;
    keys = text ? names : order;
    values = text ? order : names;
  }
  if (!keys || !values) on_bad(b, "keys or values are missing");
  b->out[0] = look_up(b, x, keys, values, default_value(b, values->dt));
}

void build_categorymapper(Build *b) {
  const OnnxAttr *ints = on_typed(b, "cats_int64s", OA_ints),
                 *strs = on_typed(b, "cats_strings", OA_strings);
  if (!ints || !strs) on_bad(b, "cats_int64s or cats_strings is missing");
  Tensor *number = on_table(b, ints), *name = on_table(b, strs);
  bool text = on_dtype(b, on_in(b, 0)) == DT_str;
  DType to = text ? DT_i64 : DT_str;
  b->out[0] =
      look_up(b, b->in[0], text ? name : number, text ? number : name, default_value(b, to));
}
