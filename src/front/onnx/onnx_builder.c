/* onnx_builder.c: access to attributes and operands for builders. See onnx_builder.h. */
#include "front/onnx/onnx_import.h"

#include <stdio.h>
#include <string.h>

_Noreturn void on_unsupported(Build *b, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  fail(b->c, ERR_unsupported, b->g->loc, "%s is not supported here: %s", show(b->c, b->node->op),
       text);
}

/* ---- operands ---- */

Val on_any(Build *b, u32 i) {
  if (!on_has(b, i)) on_bad(b, "input %u is missing", i);
  return b->in[i];
}

Val on_in(Build *b, u32 i) {
  Val v = on_any(b, i);
  if (val_is_list(v)) on_bad(b, "input %u is a sequence or optional, expected a tensor", i);
  return v;
}

Val on_wide(Build *b, u32 i) {
  return mk_widen(b->g, on_in(b, i));
}

void on_set_output(Build *b, Val y) {
  b->out[0] = mk_cast(b->g, y, on_dtype(b, b->in[0]));
}

DType on_dtype(Build *b, Val v) {
  return graph_type(b->g, v)->dt;
}
u32 on_rank(Build *b, Val v) {
  return graph_type(b->g, v)->rank;
}

Dim on_dim(Build *b, Val v, u32 axis) {
  return val_dim(b->g, v, axis);
}

i64 on_static_dim(Build *b, Val v, u32 axis) {
  Dim d = on_dim(b, v, axis);
  if (!dim_is_const(d))
    on_unsupported(b, "dimension %u is symbolic, expected a number: -d or --shapes sets it", axis);
  return d;
}

/* ---- attributes ---- */

/* An attribute in a function body may refer to one of the call, and that one further out. */
static const OnnxAttr *resolve(Import *im, const Scope *s, const OnnxAttr *a) {
  while (a && a->ref) {
    while (s && !s->fn) s = s->up;
    if (!s)
      fail(im->c, ERR_input, im->g->loc, "attribute '%s' refers to '%s' outside of a function",
           show(im->c, a->name), show(im->c, a->ref));
    const OnnxAttr *found = NULL;
    for (u32 i = 0; i < s->call->attrs.n && !found; i++)
      if (s->call->attrs.at[i].name == a->ref) found = &s->call->attrs.at[i];
    if (!found) {
      for (u32 i = 0; i < s->fn->attrs.n; i++)
        if (s->fn->attrs.at[i].name == a->ref) return &s->fn->attrs.at[i];
      return NULL;
    }
    a = found;
    s = s->caller;
  }
  return a;
}

const OnnxAttr *on_attr(Build *b, const char *name) {
  return resolve(b->im, b->im->scope, onnx_attr(b->c, b->node, name));
}

bool on_has_attr(Build *b, const char *name) {
  return on_attr(b, name) != NULL;
}

const OnnxAttr *on_typed(Build *b, const char *name, OnnxAttrType type) {
  static const char *const want[OA_COUNT] = {[OA_float] = "a float",
                                             [OA_int] = "an integer",
                                             [OA_string] = "a string",
                                             [OA_graph] = "a graph",
                                             [OA_floats] = "a list of floats",
                                             [OA_ints] = "a list of integers",
                                             [OA_strings] = "a list of strings"};
  const OnnxAttr *a = on_attr(b, name);
  if (a && a->type != type)
    on_bad(b, "attribute %s has another type, expected %s", name, want[type]);
  return a;
}

Tensor *on_table(Build *b, const OnnxAttr *a) {
  bool many = a->type >= OA_floats;
  OnnxAttrType one = many ? a->type - OA_floats + OA_float : a->type;
  i64 n = one == OA_float ? a->floats.n : one == OA_int ? a->ints.n : a->strings.n;
  DType dt = one == OA_float ? DT_f32 : one == OA_int ? DT_i64 : DT_str;
  Tensor *t = tensor_new(&b->c->work, dt, &n, many);
  for (u32 i = 0; i < t->n; i++) {
    Scalar x;
    if (one == OA_float)
      x.f = (double)(many ? a->floats.at[i] : a->f);
    else if (one == OA_int)
      x.i = many ? a->ints.at[i] : a->i;
    else
      x.i = many ? a->strings.at[i] : a->s;
    tensor_set(t, i, x);
  }
  return t;
}

i64 on_int(Build *b, const char *name, i64 otherwise) {
  const OnnxAttr *a = on_typed(b, name, OA_int);
  return a ? a->i : otherwise;
}

double on_float(Build *b, const char *name, double otherwise) {
  const OnnxAttr *a = on_typed(b, name, OA_float);
  return a ? (double)a->f : otherwise;
}

Str on_str(Build *b, const char *name, const char *otherwise) {
  const OnnxAttr *a = on_typed(b, name, OA_string);
  return a ? a->s : str_of(b->c, otherwise);
}

bool on_str_is(Build *b, const char *name, const char *otherwise, const char *value) {
  return str_is(b->c, on_str(b, name, otherwise), value);
}

u32 on_choice(Build *b, const char *name, const char *words) {
  const OnnxAttr *a = on_typed(b, name, OA_string);
  u32 i = 0;
  for (size_t n; a && *words; i++, words += n + (words[n] == ' ')) {
    n = strcspn(words, " ");
    if (str_len(b->c, a->s) == n && !memcmp(str_text(b->c, a->s), words, n)) return i;
  }
  if (a) on_bad(b, "%s '%s' is not known", name, show(b->c, a->s));
  return 0;
}

i32 on_ints(Build *b, const char *name, i64 *out, u32 max) {
  const OnnxAttr *a = on_typed(b, name, OA_ints);
  if (!a) return -1;
  if (a->ints.n > max)
    on_bad(b, "attribute %s has %u elements, expected at most %u", name, a->ints.n, max);
  if (a->ints.n) memcpy(out, a->ints.at, a->ints.n * sizeof *out);
  return (i32)a->ints.n;
}

void on_int_list(Build *b, const char *name, i64 *to, u32 n, i64 least, i64 otherwise) {
  i32 found = on_ints(b, name, to, n);
  if (found < 0)
    for (u32 i = 0; i < n; i++) to[i] = otherwise;
  else if ((u32)found != n)
    on_bad(b, "attribute %s has %d elements, expected %u", name, found, n);
  for (u32 i = 0; i < n; i++)
    if (to[i] < least || to[i] > INT32_MAX)
      on_bad(b, "attribute %s: element %u is %lld, which is out of range", name, i,
             (long long)to[i]);
}

i32 on_floats(Build *b, const char *name, double *out, u32 max) {
  const OnnxAttr *a = on_typed(b, name, OA_floats);
  if (!a) return -1;
  if (a->floats.n > max)
    on_bad(b, "attribute %s has %u elements, expected at most %u", name, a->floats.n, max);
  for (u32 i = 0; i < a->floats.n; i++) out[i] = (double)a->floats.at[i];
  return (i32)a->floats.n;
}

Tensor *on_tensor(Build *b, const char *name) {
  const OnnxAttr *a = on_attr(b, name);
  if (!a) return NULL;
  if (a->type == OA_sparse)
    return onnx_sparse(b->c, a->sparse, b->im->path, b->g->loc, &b->c->work);
  if (a->type != OA_tensor) on_bad(b, "attribute %s has another type, expected a tensor", name);
  return onnx_tensor(b->c, a->t, b->im->path, b->g->loc, &b->c->work);
}

const OnnxGraph *on_graph(Build *b, const char *name) {
  const OnnxAttr *a = on_typed(b, name, OA_graph);
  if (!a) on_bad(b, "attribute %s is missing", name);
  return a->g;
}

/* ---- contents ---- */

static bool is_input(Graph *g, Val v) {
  const GraphRegion *b = &g->region.at[1];
  u32 pos = graph_val(g, v)->pos;
  return pos < b->param.n && b->param.at[pos] == v;
}

/* The shape is computed from an input, from an open dimension, or from data. */
static _Noreturn void unknown_contents(Build *b, u32 i, Val blame) {
  Ctx *c = b->c;
  bool known = blame && is_input(b->g, blame) && graph_val(b->g, blame)->name;
  Str open = blame ? 0 : import_open(b->im, b->in[i]);
  StrBuf t = sb_new(&c->scratch);
  if (blame && !known)
    on_unsupported(b, "input %u decides a shape, has no bound, and depends on a variable of a loop",
                   i);
  const char *what = show(c, known ? graph_val(b->g, blame)->name : open);
  if (known)
    sb_fmt(&t, "depends on '%s': give its contents with --freeze '%s=VALUE' or --input", what,
           what);
  else if (open)
    sb_fmt(&t, "depends on the open dimension '%s': give that as a number, -d '%s=N'", what, what);
  if (b->im->unbound)
    sb_fmt(&t, "%s a bound of the size with --max-shapes '%s=N'",
           t.n ? ", or" : "is known only at run time: give", show(c, b->im->unbound));
  if (!t.n) sb_puts(&t, "is known only at run time");
  fail(c, ERR_unsupported, b->g->loc, "%s takes a shape from input %u, which %s",
       show(c, b->node->op), i, sb_cstr(&t));
}

const Tensor *on_known(Build *b, u32 i) {
  Val blame;
  const Tensor *t = import_const_eval(b->im, on_in(b, i), &blame);
  if (!t) unknown_contents(b, i, blame);
  return t;
}

bool on_try_ints(Build *b, u32 i, i64 *out, u32 max, u32 *n) {
  if (!on_has(b, i)) return false;
  Val blame;
  const Tensor *t = import_const_eval(b->im, b->in[i], &blame);
  if (!t || t->n > max || !(dtype_is_int(t->dt) || t->dt == DT_bool)) return false;
  *n = (u32)t->n;
  for (u32 k = 0; k < *n; k++) out[k] = tensor_get(t, k).i;
  return true;
}

u32 on_known_ints(Build *b, u32 i, i64 *out, u32 max) {
  const Tensor *t = on_known(b, i);
  if (!dtype_is_int(t->dt) && t->dt != DT_bool)
    on_bad(b, "input %u has type %s, expected integers", i, dtype_info[t->dt].name);
  if (t->n > max)
    on_bad(b, "input %u has %llu elements, expected at most %u", i, (unsigned long long)t->n, max);
  for (u32 k = 0; k < t->n; k++) out[k] = tensor_get(t, k).i;
  return (u32)t->n;
}

/* Numbers not below `least`, or sizes computed at run time. */
static u32 late_or_ints(Build *b, u32 i, Dim *out, u32 max, i64 least) {
  u32 n = 0;
  Val blame;
  b->im->unbound = 0;
  if (!import_const_eval(b->im, b->in[i], &blame) && dynamic_dims(b, b->in[i], out, max, &n))
    return n;
  n = on_known_ints(b, i, out, max);
  for (u32 k = 0; k < n; k++) {
    if (out[k] < least)
      on_bad(b, "input %u: element %u is %lld, which is out of range", i, k, (long long)out[k]);
    if (out[k] < 0) out[k] = ON_AUTO;
  }
  return n;
}

u32 on_known_dims(Build *b, u32 i, Dim *out, u32 max) {
  u32 n;
  return graph_dim_list(b->g, on_in(b, i), out, max, &n) ? n : late_or_ints(b, i, out, max, 0);
}

bool on_training(Build *b, bool file) {
  Import *im = b->im;
  if (b->g->opens) return b->g->trains;
  if (file && !*map_put(&im->training, (u64)(uintptr_t)b->node)) {
    if (!im->ntraining++) im->first_training = b->g->loc;
    *map_put(&im->training, (u64)(uintptr_t)b->node) = 1;
  }
  return file;
}

/* Lists built from dimensions and numbers (also negative). Looks through Concat. */
static bool list_entries(Build *b, Val v, Dim *out, u32 max, u32 *n, u32 depth) {
  u32 k;
  if (graph_dim_list(b->g, v, out + *n, max - *n, &k)) {
    *n += k;
    return true;
  }
  i64 x[MAX_RANK];
  if (graph_ints(b->g, v, x, MAX_RANK, &k)) {
    if (k > max - *n) return false;
    for (u32 i = 0; i < k; i++) {
      if (x[i] < -1) return false;
      out[(*n)++] = x[i] < 0 ? ON_AUTO : x[i];
    }
    return true;
  }
  NodeId def = graph_val(b->g, v)->def;
  if (!def || graph_node(b->g, def)->op != OP_concat || depth == MAX_RANK) return false;
  const Node *c = graph_node(b->g, def);
  for (u32 i = 0; i < c->nin; i++)
    if (!list_entries(b, c->in[i], out, max, n, depth + 1)) return false;
  return true;
}

u32 on_known_shape(Build *b, u32 i, Dim *out, u32 max) {
  u32 n = 0;
  return list_entries(b, on_in(b, i), out, max, &n, 0) ? n : late_or_ints(b, i, out, max, -1);
}

i32 on_ints_or_input(Build *b, const char *attr, u32 input, i64 *out, u32 max) {
  if (on_has_attr(b, attr)) return on_ints(b, attr, out, max);
  if (on_has(b, input)) return (i32)on_known_ints(b, input, out, max);
  return -1;
}

/* ---- axes ---- */

u32 on_axis(Build *b, i64 axis, u32 rank) {
  i64 at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= (i64)rank)
    on_bad(b, "axis %lld out of range for rank %u", (long long)axis, rank);
  return (u32)at;
}

u32 on_axis_of(Build *b, Val x, i64 otherwise) {
  return on_axis(b, on_int(b, "axis", otherwise), on_rank(b, x));
}

void on_axes(Build *b, i64 *axes, u32 n, u32 rank) {
  u64 mask = 0;
  for (u32 i = 0; i < n; i++) {
    axes[i] = on_axis(b, axes[i], rank);
    if (mask >> axes[i] & 1) on_bad(b, "axis %lld is given twice", (long long)axes[i]);
    mask |= (u64)1 << axes[i];
  }
}
