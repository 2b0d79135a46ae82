/* extents.c: the dimensions of inputs.
 *
 * In: the declared types and what the user said (BindDim, BindInput). Out: types whose dimensions
 * are numbers, or symbols with bounds. Method: one table of symbols for all inputs. What a flag or
 * an array says about one input holds for every other with the same symbol; a symbol that is the
 * first dimension of some input is taken as 1 if nobody says more, with a warning; one that is
 * called like a sum of others is their sum. A dimension is then, in this order: what a flag says
 * for that input and axis, what the table says, the number in the model, the extent of the array
 * given, symbolic (bounded by --max-shapes, or unbounded for inspection), 1 for an unknown batch,
 * or missing. All that are missing are told at once.
 */
#include "front/onnx/extents.h"

#include <stdlib.h>
#include <string.h>

typedef struct InDim {
  const DeclValue *v;
  u32 axis;
  Str symbol; /* in the model; 0: none */
  Str name;   /* the same, or one that is made up */
  i64 given;  /* extent of the caller's array, or -1 */
} InDim;

/* ---- names ---- */

/* A dimension without a name gets INPUT_AXIS; with more lines behind it where the model uses that
 * for another. */
static Str made_up_name(Import *im, Str input, u32 axis) {
  Str name = str_fmt(im->c, "%s_%u", str_text(im->c, input), axis);
  while (map_get(&im->symbols, name)) name = str_fmt(im->c, "%s_", str_text(im->c, name));
  return name;
}

static InDim in_dim(Import *im, const DeclValue *v, u32 axis) {
  const DeclDim *d = axis < v->type.dims.n ? &v->type.dims.at[axis] : NULL;
  Str symbol = decl_symbol(im->c, d);
  const Tensor *given = extents_array(im, v->name);
  return (InDim){.v = v,
                 .axis = axis,
                 .symbol = symbol,
                 .name = symbol ? symbol : made_up_name(im, v->name, axis),
                 .given = given && axis < given->rank ? given->dim[axis] : -1};
}

static const char *array_type(Import *im, const Tensor *x) {
  return shape_text(im->c, dtype_info[x->dt].name, x->dim, x->rank);
}

/* ---- what was said ---- */

const Tensor *extents_array(Import *im, Str name) {
  for (u32 i = 0; i < im->o->ninput; i++)
    if (im->o->input[i].name == name && !im->o->input[i].fill) return im->o->input[i].data;
  return NULL;
}

/* The table: what is known of a symbol. A number goes before a bound, else the first counts. */
static void tell(Import *im, BindDim b) {
  u32 *slot = map_put(&im->by_symbol, b.symbol);
  BindDim *old = *slot ? &im->told.at[*slot - 1] : NULL;
  if (old && old->bound && !b.bound) *old = b;
  if (old) return;
  *vec_push(&im->c->work, &im->told) = b;
  *slot = im->told.n;
}

/* What a flag says: a name means the same in all inputs. */
static void tell_flag(Import *im, BindDim b) {
  u32 *slot = map_get(&im->by_symbol, b.symbol);
  const BindDim *old = slot ? &im->told.at[*slot - 1] : NULL;
  const BindDim *bound = old && old->bound ? old : &b, *number = bound == old ? &b : old;
  if (old && old->bound == b.bound && old->value != b.value)
    fail(im->c, ERR_usage, import_here(im),
         "dimension '%s' is given as %lld and as %lld: a name means the same in all inputs",
         show(im->c, b.symbol), (long long)old->value, (long long)b.value);
  if (old && bound->bound && !number->bound && number->value > bound->value)
    fail(im->c, ERR_usage, import_here(im), "dimension '%s' is given as %lld, its bound is %lld",
         show(im->c, b.symbol), (long long)number->value, (long long)bound->value);
  tell(im, b);
}

static const BindDim *told(Import *im, Str symbol) {
  u32 *slot = map_get(&im->by_symbol, symbol);
  for (u32 i = 0; slot && i < im->o->ndim; i++)
    if (im->o->dim[i].symbol == symbol) im->o->dim[i].used = true;
  return slot ? &im->told.at[*slot - 1] : NULL;
}

BindInput *extents_given(Import *im, Str name) {
  for (u32 i = 0; i < im->o->ninput; i++)
    if (im->o->input[i].name == name) return &im->o->input[i];
  return NULL;
}

i64 extents_told(Import *im, Str name) {
  const BindDim *b = told(im, name);
  return b ? b->value : -1;
}

/* What was said for this input and axis; of several the last, a number before a bound. */
static const BindDim *told_here(Import *im, const InDim *d) {
  const BindDim *found = NULL;
  for (u32 i = 0; i < im->o->ndim; i++) {
    BindDim *b = &im->o->dim[i];
    if (!b->input || b->input != d->v->name || b->axis != d->axis) continue;
    b->used = true;
    if (!found || found->bound >= b->bound) found = b;
  }
  return found;
}

static const BindDim *find_bind(Import *im, const InDim *d) {
  const BindDim *own = told_here(im, d), *all = told(im, d->name);
  return own && (!all || own->bound <= all->bound) ? own : all;
}

static bool is_parameter(Import *im, const DeclValue *v) {
  return !map_get(&im->scope->init, v->name); /* else a weight listed as input too */
}

static void note_symbols(Import *im, const DeclType *t) {
  for (; t; t = t->elem)
    for (u32 k = 0; k < t->dims.n; k++) {
      Str symbol = decl_symbol(im->c, &t->dims.at[k]);
      if (symbol) *map_put(&im->symbols, symbol) = 1;
    }
}

/* For every dimension with a name: what a flag says for its input and axis, or, in another round,
 * the array, which is within a bound that a flag gives but does not replace it. */
static void tell_places(Import *im, bool flags) {
  const OnnxGraph *g = im->m->graph;
  for (u32 i = 0; i < g->inputs.n; i++) {
    const DeclValue *v = &g->inputs.at[i];
    for (u32 k = 0; v->type.has_shape && k < v->type.dims.n; k++) {
      InDim d = in_dim(im, v, k);
      const BindDim *b = flags && d.symbol ? told_here(im, &d) : NULL;
      if (b) tell_flag(im, (BindDim){.symbol = d.symbol, .value = b->value, .bound = b->bound});
      if (!flags && d.symbol && d.given >= 0 && !map_get(&im->by_symbol, d.symbol))
        tell(im, (BindDim){.symbol = d.symbol, .value = d.given});
    }
  }
}

/* A symbol that a flag or an array has fixed through one input is fixed for all. */
static void share_symbols(Import *im) {
  const OnnxGraph *g = im->m->graph;
  ImportOptions *o = NEW(&im->c->work, ImportOptions);
  *o = *im->o;
  if (o->ndim) o->dim = arena_copy(&im->c->work, o->dim, o->ndim * sizeof *o->dim);
  if (o->ninput) o->input = arena_copy(&im->c->work, o->input, o->ninput * sizeof *o->input);
  im->o = o;
  im->symbols = map_new(&im->c->work);
  im->by_symbol = map_new(&im->c->work);
  for (u32 i = 0; i < g->inputs.n; i++) note_symbols(im, &g->inputs.at[i].type);
  for (u32 i = 0; i < o->ndim; i++)
    if (!o->dim[i].input) tell_flag(im, o->dim[i]);
  tell_places(im, true);
  tell_places(im, false);
}

static void warn_batch(Import *im, Str input, const char *name) {
  warn(im->c, import_here(im), "input '%s': batch dimension 0 (%s) is not known, taken as 1",
       show(im->c, input), name);
}

/* The first dimension of one input may be another of the next: [batch,n] and [2,batch,m]. */
static void take_batches(Import *im) {
  const OnnxGraph *g = im->m->graph;
  for (u32 i = 0; i < g->inputs.n && !im->o->symbolic; i++) {
    const DeclValue *v = &g->inputs.at[i];
    if (v->type.kind != OT_tensor || !v->type.dims.n || !is_parameter(im, v)) continue;
    Str symbol = decl_symbol(im->c, &v->type.dims.at[0]);
    if (!symbol || map_get(&im->by_symbol, symbol)) continue;
    warn_batch(im, v->name, show(im->c, symbol));
    tell(im, (BindDim){.symbol = symbol, .value = 1});
  }
}

/* "past_sequence_length + 1": a name that is the sum of other symbols and of numbers. False where
 * it is not; *sum is its extent as far as it is known, and its value -1 where a part is not. */
static bool read_sum(Import *im, Str name, BindDim *sum) {
  const char *s = str_text(im->c, name);
  *sum = (BindDim){.symbol = name};
  if (!strchr(s, '+')) return false;
  for (size_t n; *s; s += n + (s[n] == '+')) {
    n = strcspn(s, "+");
    size_t from = strspn(s, " "), to = n;
    while (to > from && s[to - 1] == ' ') to--;
    if (to <= from) return false;
    Str part = str_intern(im->c, s + from, to - from);
    u32 *slot = map_get(&im->by_symbol, part);
    i64 number = strspn(s + from, "0123456789") == to - from ? strtoll(s + from, NULL, 10) : -1;
    if (number < 0 && !slot && !map_get(&im->symbols, part)) return false;
    i64 value = slot ? im->told.at[*slot - 1].value : number;
    if (slot && im->told.at[*slot - 1].bound) sum->bound = true;
    sum->value =
        value < 0 || sum->value < 0 || value > DIM_MAX - sum->value ? -1 : sum->value + value;
  }
  return true;
}

static void add_sums(Import *im) {
  const OnnxGraph *g = im->m->graph;
  for (u32 i = 0; i < g->inputs.n; i++)
    for (u32 k = 0; k < g->inputs.at[i].type.dims.n; k++) {
      Str symbol = decl_symbol(im->c, &g->inputs.at[i].type.dims.at[k]);
      BindDim sum;
      if (symbol && read_sum(im, symbol, &sum) && sum.value >= 0) tell(im, sum);
    }
}

/* ---- what was said about nothing ---- */

static _Noreturn void refuse_bind(Import *im, const BindDim *b) {
  const OnnxGraph *g = im->m->graph;
  Text names = text_new(&im->c->scratch);
  Near near = near_new(str_text(im->c, b->input ? b->input : b->symbol));
  for (u32 k = 0; k < g->inputs.n; k++) {
    const DeclValue *v = &g->inputs.at[k];
    if (!is_parameter(im, v)) continue;
    text_fmt(&names, "%s%s: %s", names.n ? ", " : "", show(im->c, v->name),
             decl_text(im->c, &v->type));
    if (b->input) near_try(&near, str_text(im->c, v->name));
    for (u32 j = 0; !b->input && j < v->type.dims.n; j++)
      near_try(&near, str_text(im->c, in_dim(im, v, j).name));
  }
  if (b->input)
    fail(im->c, ERR_usage, import_here(im), "no input '%s' with a dimension %lld; inputs are %s%s",
         show(im->c, b->input), (long long)b->axis, text_cstr(&names), near_text(im->c, &near));
  fail(im->c, ERR_usage, import_here(im), "no input has a dimension named '%s'; inputs are %s%s",
       show(im->c, b->symbol), text_cstr(&names), near_text(im->c, &near));
}

/* Could the flag mean this input: its name, a part of it such as x.0 or x.has, a symbol in it? */
static bool may_mean(Import *im, const BindDim *b, const DeclValue *v) {
  Str said = b->input ? b->input : b->symbol;
  const char *text = str_text(im->c, said), *name = str_text(im->c, v->name);
  size_t n = str_len(im->c, v->name);
  bool whole = v->type.kind == OT_tensor && v->type.has_shape;
  if (said == v->name && b->input) return !whole || b->axis < (i64)v->type.dims.n;
  if (said == v->name && v->type.kind != OT_tensor) return true;
  if (n && !strncmp(text, name, n) && text[n] == '.') return true;
  if (b->input) return false;
  for (u32 k = 0; whole && k < v->type.dims.n; k++)
    if (in_dim(im, v, k).name == said) return true;
  for (const DeclType *t = &v->type; t; t = t->elem)
    for (u32 k = 0; k < t->dims.n; k++)
      if (decl_symbol(im->c, &t->dims.at[k]) == said) return true;
  return !whole && n && !strncmp(text, name, n);
}

/* Before anything else is asked for: a misspelt name is the likely reason that it is missing. */
static void check_binds(Import *im) {
  const OnnxGraph *g = im->m->graph;
  for (u32 i = 0; i < im->o->ndim; i++) {
    bool found = im->o->dim[i].used;
    for (u32 k = 0; k < g->inputs.n && !found; k++)
      found = is_parameter(im, &g->inputs.at[k]) && may_mean(im, &im->o->dim[i], &g->inputs.at[k]);
    if (!found) refuse_bind(im, &im->o->dim[i]);
  }
}

/* ---- what is missing ---- */

static i64 miss(Import *im, BindDim bind, Str what, bool is_side) {
  for (u32 i = 0; i < im->missing.n; i++) {
    const BindDim *b = &im->missing.at[i].bind;
    if (b->symbol == bind.symbol && b->input == bind.input && b->axis == bind.axis) return 1;
  }
  *vec_push(&im->c->keep, &im->missing) = (MissingDim){bind, what, is_side};
  return 1;
}

i64 extents_miss(Import *im, Str name, const char *what) {
  return miss(im, (BindDim){.symbol = name, .value = 1}, str_of(im->c, what), false);
}

/* Options that would give all that is missing, N for the numbers. */
static const char *options_of(Import *im) {
  Text t = text_new(&im->c->scratch);
  for (u32 i = 0; i < im->missing.n; i++) {
    const BindDim *b = &im->missing.at[i].bind;
    const char *at = show(im->c, b->input ? b->input : b->symbol);
    text_puts(&t, i ? " " : "");
    if (b->rank)
      text_fmt(&t, "--shapes '%s:AxB'", at);
    else if (b->input)
      text_fmt(&t, "-d '%s:%lld=N'", at, (long long)b->axis);
    else
      text_fmt(&t, "-d '%s=N'", at);
  }
  return text_cstr(&t);
}

static void refuse_missing(Import *im) {
  u32 n = im->missing.n;
  if (!n) return;
  Text t = text_new(&im->c->scratch);
  for (u32 i = 0; i < n; i++)
    text_fmt(&t, "%s%s", i ? ", " : "", str_text(im->c, im->missing.at[i].what));
  if (im->o->missing) *im->o->missing = (MissingDims){im->missing.at, n};
  fail(im->c, ERR_usage, LOC_NONE,
       "not known: %s; give %s with %s, %s with --input, or bounds with --max-shapes",
       text_cstr(&t), n > 1 ? "them" : "it", options_of(im), n > 1 ? "arrays" : "an array");
}

/* ---- dimensions ---- */

static Dim symbolic_dim(Import *im, const InDim *d, i64 hi) {
  return dim_of_sym(im->g->dims, dim_sym(im->g->dims, SY_input, d->name, 0, hi));
}

static Dim unknown_dim(Import *im, const InDim *d, const BindDim *b) {
  if (b && b->bound) return symbolic_dim(im, d, b->value);
  if (im->o->symbolic) return symbolic_dim(im, d, DIM_MAX);
  const char *input = show(im->c, d->v->name);
  if (d->axis == 0) {
    warn_batch(im, d->v->name, "no name");
    return 1;
  }
  BindDim sum;
  if (d->symbol && read_sum(im, d->symbol, &sum)) return 1; /* its parts are missing */
  bool is_side = d->v->type.dims.n >= 4 && d->axis >= 2;
  if (d->symbol)
    return miss(
        im, (BindDim){.symbol = d->symbol},
        str_fmt(im->c, "'%s' (dimension %u of input '%s')", show(im->c, d->symbol), d->axis, input),
        is_side);
  return miss(im, (BindDim){.input = d->v->name, .axis = d->axis},
              str_fmt(im->c, "dimension %u of input '%s'", d->axis, input), is_side);
}

/* What a flag and the model say; -1: nothing. */
static i64 fixed_extent(Import *im, const InDim *d, const BindDim *b) {
  const DeclDim *od = d->axis < d->v->type.dims.n ? &d->v->type.dims.at[d->axis] : NULL;
  i64 value = -1;
  if (od && od->kind == OD_value && od->value >= 0) value = od->value;
  if (od && od->kind == OD_value && (od->value < -1 || od->value > DIM_MAX))
    fail(im->c, ERR_input, import_here(im), "input '%s': dimension %u is %lld",
         show(im->c, d->v->name), d->axis, (long long)od->value);
  if (b && value >= 0 && value != b->value)
    fail(im->c, ERR_usage, import_here(im),
         "input '%s': dimension %u is fixed at %lld by the model, %s %lld", show(im->c, d->v->name),
         d->axis, (long long)value, b->bound ? "the bound is" : "not", (long long)b->value);
  return b && !b->bound ? b->value : value;
}

static Dim fix_dim(Import *im, const InDim *d) {
  const BindDim *b = find_bind(im, d);
  i64 value = fixed_extent(im, d, b);
  if (value >= 0 && d->given >= 0 && d->given != value)
    fail(im->c, ERR_input, import_here(im),
         "input '%s' is %s, the array given is %s: dimension %u is %lld, expected %lld",
         show(im->c, d->v->name), decl_text(im->c, &d->v->type),
         array_type(im, extents_array(im, d->v->name)), d->axis, (long long)d->given,
         (long long)value);
  if (value >= 0) return value;
  if (d->given >= 0 && !(b && b->bound)) return d->given;
  return unknown_dim(im, d, b);
}

/* Rank of an input declared without shape: from the array or from --shapes. */
static u32 missing_rank(Import *im, const DeclValue *v, const Tensor *given) {
  if (given) return given->rank;
  i64 rank = -1;
  for (u32 i = 0; i < im->o->ndim; i++)
    if (im->o->dim[i].input == v->name && im->o->dim[i].axis >= rank) rank = im->o->dim[i].axis + 1;
  if (rank >= 0) return (u32)rank;
  miss(im, (BindDim){.input = v->name, .axis = -1, .rank = 1},
       str_fmt(im->c, "the shape of input '%s'", show(im->c, v->name)), false);
  return 0;
}

Type extents_type(Import *im, const DeclValue *v) {
  const DeclType *t = &v->type;
  const char *name = show(im->c, v->name);
  if (t->kind == OT_none) fail(im->c, ERR_input, import_here(im), "input '%s' has no type", name);
  if (!t->dt)
    fail(im->c, ERR_input, import_here(im), "input '%s': element type %d is not known", name,
         t->elem_code);
  const Tensor *given = extents_array(im, v->name);
  u32 rank = t->has_shape ? t->dims.n : missing_rank(im, v, given);
  if (rank > MAX_RANK)
    fail(im->c, ERR_unsupported, import_here(im), "input '%s': rank %u exceeds %d", name, rank,
         MAX_RANK);
  if (given && given->rank != rank)
    fail(im->c, ERR_input, import_here(im),
         "input '%s' is %s, the array given is %s: it has %u dimensions, expected %u", name,
         decl_text(im->c, &v->type), array_type(im, given), given->rank, rank);
  for (u32 i = 0; i < im->o->ndim; i++)
    if (im->o->dim[i].input == v->name && im->o->dim[i].rank && im->o->dim[i].rank != rank)
      fail(im->c, ERR_usage, import_here(im),
           "input '%s' is %s: it has %u dimensions, %u are given", name, decl_text(im->c, &v->type),
           rank, im->o->dim[i].rank);
  Dim dim[MAX_RANK];
  u64 total = 1;
  for (u32 i = 0; i < rank; i++) {
    InDim d = in_dim(im, v, i);
    dim[i] = fix_dim(im, &d);
    if (dim_is_const(dim[i]) && (!size_mul(total, (u64)dim[i], &total) || total > DIM_MAX))
      fail(im->c, ERR_input, import_here(im), "input '%s' is too large", name);
  }
  return type_tensor(&im->c->work, t->dt, dim, rank);
}

/* ---- around the inputs ---- */

void extents_open(Import *im) {
  share_symbols(im);
  check_binds(im);
  take_batches(im);
  add_sums(im);
}

void extents_close(Import *im) {
  refuse_missing(im);
  for (u32 i = 0; i < im->o->ndim; i++)
    if (!im->o->dim[i].used) refuse_bind(im, &im->o->dim[i]);
}
