/* input_extents.c: the dimensions of inputs.
 *
 * In: declared types and the bindings of the user (BindDim, BindInput). Out: types whose dimensions
 * are numbers or bounded symbols. Method: one symbol table for all inputs. A flag or array that
 * binds a symbol of one input binds it in all. An unbound symbol that is dimension 0 of some input
 * becomes 1, with a warning. A symbol whose name is a sum of other symbols is their sum. A
 * dimension gets the first of these that exists:
 *   1. the flag for that input and axis
 *   2. the symbol table
 *   3. the number in the model
 *   4. the extent of the given array
 *   5. a symbol (bounded by --max-shapes, or unbounded for `inspect`)
 *   6. 1 for an unknown batch
 * Otherwise it is missing. One message lists all missing dimensions.
 */
#include "front/input_extents.h"

#include <stdlib.h>
#include <string.h>

typedef struct InDim {
  const DeclValue *v;
  u32 axis;
  Str symbol; /* in the model; 0: none */
  Str name;   /* symbol, or a generated name */
  i64 given;  /* extent of the given array, or -1 */
} InDim;

static Loc here(const Extents *e) {
  return (Loc){.file = e->file, .index = -1};
}

/* ---- names ---- */

/* A dimension without a name is called INPUT_AXIS, with underscores appended until it is unique. */
static Str made_up_name(Extents *e, Str input, u32 axis) {
  Str name = str_fmt(e->c, "%s_%u", str_text(e->c, input), axis);
  while (map_get(&e->symbols, name)) name = str_fmt(e->c, "%s_", str_text(e->c, name));
  return name;
}

static InDim in_dim(Extents *e, const DeclValue *v, u32 axis) {
  const DeclDim *d = axis < v->type.dims.n ? &v->type.dims.at[axis] : NULL;
  Str symbol = decl_symbol(e->c, d);
  const Tensor *given = extents_array(e, v->name);
  return (InDim){.v = v,
                 .axis = axis,
                 .symbol = symbol,
                 .name = symbol ? symbol : made_up_name(e, v->name, axis),
                 .given = given && axis < given->rank ? given->dim[axis] : -1};
}

static const char *array_type(Extents *e, const Tensor *x) {
  return shape_text(e->c, dtype_info[x->dt].name, x->dim, x->rank);
}

/* ---- bindings ---- */

const Tensor *extents_array(Extents *e, Str name) {
  for (u32 i = 0; i < e->o->ninput; i++)
    if (e->o->input[i].name == name && !e->o->input[i].fill) return e->o->input[i].data;
  return NULL;
}

/* Binds a symbol in the table. A number overrides a bound, else the first binding counts. */
static void bind_symbol(Extents *e, BindDim b) {
  u32 *slot = map_put(&e->by_symbol, b.symbol);
  BindDim *old = *slot ? &e->binds.at[*slot - 1] : NULL;
  if (old && old->bound && !b.bound) *old = b;
  if (old) return;
  *vec_push(&e->c->work, &e->binds) = b;
  *slot = e->binds.n;
}

/* Adds a flag. A name means the same in all inputs. */
static void bind_flag(Extents *e, BindDim b) {
  u32 *slot = map_get(&e->by_symbol, b.symbol);
  const BindDim *old = slot ? &e->binds.at[*slot - 1] : NULL;
  const BindDim *bound = old && old->bound ? old : &b, *number = bound == old ? &b : old;
  if (old && old->bound == b.bound && old->value != b.value)
    fail(e->c, ERR_usage, here(e),
         "dimension '%s' was given as %lld and as %lld: expected one size for all inputs",
         show(e->c, b.symbol), (long long)old->value, (long long)b.value);
  if (old && bound->bound && !number->bound && number->value > bound->value)
    fail(e->c, ERR_usage, here(e),
         "dimension '%s' was given as %lld, expected at most its bound %lld", show(e->c, b.symbol),
         (long long)number->value, (long long)bound->value);
  bind_symbol(e, b);
}

static const BindDim *symbol_bind(Extents *e, Str symbol) {
  u32 *slot = map_get(&e->by_symbol, symbol);
  for (u32 i = 0; slot && i < e->o->ndim; i++)
    if (e->o->dim[i].symbol == symbol) e->o->dim[i].used = true;
  return slot ? &e->binds.at[*slot - 1] : NULL;
}

/* The binding of an input, or NULL. */
static BindInput *extents_bound_input(Extents *e, Str name) {
  for (u32 i = 0; i < e->o->ninput; i++)
    if (e->o->input[i].name == name) return &e->o->input[i];
  return NULL;
}

i64 extents_bound_dim(Extents *e, Str name) {
  const BindDim *b = symbol_bind(e, name);
  return b ? b->value : -1;
}

/* The binding of this input and axis: the last one, but a number before a bound. */
static const BindDim *find_axis_bind(Extents *e, const InDim *d) {
  const BindDim *found = NULL;
  for (u32 i = 0; i < e->o->ndim; i++) {
    BindDim *b = &e->o->dim[i];
    if (!b->input || b->input != d->v->name || b->axis != d->axis) continue;
    b->used = true;
    if (!found || found->bound >= b->bound) found = b;
  }
  return found;
}

static const BindDim *find_bind(Extents *e, const InDim *d) {
  const BindDim *own = find_axis_bind(e, d), *all = symbol_bind(e, d->name);
  return own && (!all || own->bound <= all->bound) ? own : all;
}

static void note_symbols(Extents *e, const DeclType *t) {
  for (; t; t = t->elem)
    for (u32 k = 0; k < t->dims.n; k++) {
      Str symbol = decl_symbol(e->c, &t->dims.at[k]);
      if (symbol) *map_put(&e->symbols, symbol) = 1;
    }
}

/* Binds every named dimension by its flag for input and axis or, in a second round, by the array.
 * An array must respect the bound of a flag but does not replace it. */
static void bind_axes(Extents *e, bool flags) {
  for (u32 i = 0; i < e->ninput; i++) {
    const DeclValue *v = e->input[i];
    for (u32 k = 0; v->type.has_shape && k < v->type.dims.n; k++) {
      InDim d = in_dim(e, v, k);
      const BindDim *b = flags && d.symbol ? find_axis_bind(e, &d) : NULL;
      if (b) bind_flag(e, (BindDim){.symbol = d.symbol, .value = b->value, .bound = b->bound});
      if (!flags && d.symbol && d.given >= 0 && !map_get(&e->by_symbol, d.symbol))
        bind_symbol(e, (BindDim){.symbol = d.symbol, .value = d.given});
    }
  }
}

/* A symbol that a flag or an array binds in one input is bound in all. */
static void share_symbols(Extents *e) {
  ImportOptions *o = NEW(&e->c->work, ImportOptions);
  *o = *e->o;
  if (o->ndim) o->dim = arena_copy(&e->c->work, o->dim, o->ndim * sizeof *o->dim);
  if (o->ninput) o->input = arena_copy(&e->c->work, o->input, o->ninput * sizeof *o->input);
  e->o = o;
  e->symbols = map_new(&e->c->work);
  e->by_symbol = map_new(&e->c->work);
  for (u32 i = 0; i < e->ninput; i++) note_symbols(e, &e->input[i]->type);
  for (u32 i = 0; i < o->ndim; i++)
    if (!o->dim[i].input) bind_flag(e, o->dim[i]);
  bind_axes(e, true);
  bind_axes(e, false);
}

static void warn_batch(Extents *e, Str input, const char *name) {
  warn(e->c, here(e), "input '%s': batch dimension 0 (%s) is not known, assuming 1",
       show(e->c, input), name);
}

/* Dimension 0 of one input may be another dimension of the next: [batch,n] and [2,batch,m]. */
static void default_batch_dims(Extents *e) {
  for (u32 i = 0; i < e->ninput && !e->o->symbolic; i++) {
    const DeclValue *v = e->input[i];
    if (v->type.kind != OT_tensor || !v->type.dims.n) continue;
    Str symbol = decl_symbol(e->c, &v->type.dims.at[0]);
    if (!symbol || map_get(&e->by_symbol, symbol)) continue;
    warn_batch(e, v->name, show(e->c, symbol));
    bind_symbol(e, (BindDim){.symbol = symbol, .value = 1});
  }
}

/* Parses a symbol name that is a sum of symbols and numbers, "past_sequence_length + 1". False if
 * it is not one. *sum is its extent, with value -1 while a part is unknown. */
static bool read_sum(Extents *e, Str name, BindDim *sum) {
  const char *s = str_text(e->c, name);
  *sum = (BindDim){.symbol = name};
  if (!strchr(s, '+')) return false;
  for (size_t n; *s; s += n + (s[n] == '+')) {
    n = strcspn(s, "+");
    size_t from = strspn(s, " "), to = n;
    while (to > from && s[to - 1] == ' ') to--;
    if (to <= from) return false;
    Str part = str_intern(e->c, s + from, to - from);
    u32 *slot = map_get(&e->by_symbol, part);
    i64 number = strspn(s + from, "0123456789") == to - from ? strtoll(s + from, NULL, 10) : -1;
    if (number < 0 && !slot && !map_get(&e->symbols, part)) return false;
    i64 value = slot ? e->binds.at[*slot - 1].value : number;
    if (slot && e->binds.at[*slot - 1].bound) sum->bound = true;
    sum->value =
        value < 0 || sum->value < 0 || value > DIM_MAX - sum->value ? -1 : sum->value + value;
  }
  return true;
}

static void add_sums(Extents *e) {
  for (u32 i = 0; i < e->ninput; i++)
    for (u32 k = 0; k < e->input[i]->type.dims.n; k++) {
      Str symbol = decl_symbol(e->c, &e->input[i]->type.dims.at[k]);
      BindDim sum;
      if (symbol && read_sum(e, symbol, &sum) && sum.value >= 0) bind_symbol(e, sum);
    }
}

/* ---- unused bindings ---- */

static bool is_fixed(const DeclType *t, u32 axis) {
  return t->dims.at[axis].kind == OD_value && t->dims.at[axis].value >= 0;
}

static _Noreturn void refuse_bind(Extents *e, const BindDim *b) {
  StrBuf names = sb_new(&e->c->scratch);
  Suggestion near = suggest_new(str_text(e->c, b->input ? b->input : b->symbol));
  Str open = 0;  /* the first dimension that -d can set */
  u32 nopen = 0; /* number of such names */
  for (u32 k = 0; k < e->ninput; k++) {
    const DeclValue *v = e->input[k];
    sb_fmt(&names, "%s%s: %s", names.n ? ", " : "", show(e->c, v->name),
           decl_type_string(e->c, v->name, &v->type));
    if (b->input) suggest_try(&near, str_text(e->c, v->name));
    for (u32 j = 0; !b->input && j < v->type.dims.n; j++) {
      Str name = is_fixed(&v->type, j) ? 0 : in_dim(e, v, j).name;
      if (name) suggest_try(&near, str_text(e->c, name));
      if (name && name != open && !nopen++) open = name;
    }
  }
  if (b->input)
    fail(e->c, ERR_usage, here(e), "no input '%s' with a dimension %lld; inputs are %s%s",
         show(e->c, b->input), (long long)b->axis, sb_cstr(&names), suggest_text(e->c, &near));
  bool is_batch = str_is(e->c, b->symbol, "batch") || str_is(e->c, b->symbol, "N");
  Str instead = !near.name && open && (nopen == 1 || is_batch) ? open : 0;
  fail(e->c, ERR_usage, here(e), "no input has a dimension named '%s' to set; inputs are %s%s%s%s",
       show(e->c, b->symbol), sb_cstr(&names), suggest_text(e->c, &near),
       instead ? "; did you mean -d " : "",
       instead ? str_text(e->c, str_fmt(e->c, "%s=%lld?", show(e->c, instead), (long long)b->value))
               : "");
}

/* Could the flag mean this input: its name, a part such as x.0 or x.has, or a symbol in it? */
static bool may_refer_to(Extents *e, const BindDim *b, const DeclValue *v) {
  Str name_given = b->input ? b->input : b->symbol;
  const char *text = str_text(e->c, name_given), *name = str_text(e->c, v->name);
  size_t n = str_len(e->c, v->name);
  bool whole = v->type.kind == OT_tensor && v->type.has_shape;
  if (name_given == v->name && b->input) return !whole || b->axis < (i64)v->type.dims.n;
  if (name_given == v->name && v->type.kind != OT_tensor) return true;
  if (n && !strncmp(text, name, n) && text[n] == '.') return true;
  if (b->input) return false;
  for (u32 k = 0; whole && k < v->type.dims.n; k++)
    if (!is_fixed(&v->type, k) && in_dim(e, v, k).name == name_given) return true;
  for (const DeclType *t = &v->type; t; t = t->elem)
    for (u32 k = 0; k < t->dims.n; k++)
      if (decl_symbol(e->c, &t->dims.at[k]) == name_given) return true;
  return !whole && n && !strncmp(text, name, n);
}

/* Runs first: a misspelt name is the likely reason for a missing dimension. */
static void check_binds(Extents *e) {
  for (u32 i = 0; i < e->o->ndim; i++) {
    BindDim *b = &e->o->dim[i];
    bool found = b->used || (b->bound && b->symbol && map_get(&e->late, b->symbol));
    for (u32 k = 0; k < e->ninput && !found; k++) found = may_refer_to(e, b, e->input[k]);
    if (!found) refuse_bind(e, b);
  }
}

/* ---- missing dimensions ---- */

static i64 note_missing(Extents *e, BindDim bind, Str what, bool is_side) {
  for (u32 i = 0; i < e->missing.n; i++) {
    const BindDim *b = &e->missing.at[i].bind;
    if (b->symbol == bind.symbol && b->input == bind.input && b->axis == bind.axis) return 1;
  }
  *vec_push(&e->c->keep, &e->missing) = (MissingDim){bind, what, is_side};
  return 1;
}

i64 extents_note_missing(Extents *e, Str name, const char *what) {
  return note_missing(e, (BindDim){.symbol = name, .value = 1}, str_of(e->c, what), false);
}

/* The options that would bind all missing dimensions, with N for the numbers. */
static const char *options_of(Extents *e) {
  StrBuf t = sb_new(&e->c->scratch);
  for (u32 i = 0; i < e->missing.n; i++) {
    const BindDim *b = &e->missing.at[i].bind;
    const char *at = show(e->c, b->input ? b->input : b->symbol);
    sb_puts(&t, i ? " " : "");
    if (b->rank)
      sb_fmt(&t, "--shapes '%s:AxB'", at);
    else if (b->input)
      sb_fmt(&t, "-d '%s:%lld=N'", at, (long long)b->axis);
    else
      sb_fmt(&t, "-d '%s=N'", at);
  }
  return sb_cstr(&t);
}

static void refuse_missing(Extents *e) {
  u32 n = e->missing.n;
  if (!n) return;
  StrBuf t = sb_new(&e->c->scratch);
  for (u32 i = 0; i < n; i++)
    sb_fmt(&t, "%s%s", i ? ", " : "", str_text(e->c, e->missing.at[i].what));
  if (e->o->missing) *e->o->missing = (MissingDims){e->missing.at, n};
  fail(e->c, ERR_usage, LOC_NONE,
       "not known: %s; give %s with %s, %s with --input, or bounds with --max-shapes", sb_cstr(&t),
       n > 1 ? "them" : "it", options_of(e), n > 1 ? "arrays" : "an array");
}

/* ---- dimensions ---- */

static Dim symbolic_dim(Extents *e, const InDim *d, i64 hi) {
  return dim_of_sym(e->dims, dim_sym(e->dims, SY_input, d->name, 0, hi));
}

static Dim unknown_dim(Extents *e, const InDim *d, const BindDim *b) {
  if (b && b->bound) return symbolic_dim(e, d, b->value);
  if (e->o->symbolic) return symbolic_dim(e, d, DIM_MAX);
  const char *input = show(e->c, d->v->name);
  if (d->axis == 0) {
    warn_batch(e, d->v->name, show(e->c, d->name));
    return 1;
  }
  BindDim sum;
  if (d->symbol && read_sum(e, d->symbol, &sum)) return 1; /* a part of the sum is missing */
  bool is_side = d->v->type.dims.n >= 4 && d->axis >= 2;
  if (d->symbol)
    return note_missing(
        e, (BindDim){.symbol = d->symbol},
        str_fmt(e->c, "'%s' (dimension %u of input '%s')", show(e->c, d->symbol), d->axis, input),
        is_side);
  return note_missing(e, (BindDim){.input = d->v->name, .axis = d->axis},
                      str_fmt(e->c, "dimension %u of input '%s'", d->axis, input), is_side);
}

/* Extent by a flag or by the model; -1: none. */
static i64 fixed_extent(Extents *e, const InDim *d, const BindDim *b) {
  const DeclDim *od = d->axis < d->v->type.dims.n ? &d->v->type.dims.at[d->axis] : NULL;
  i64 value = -1;
  if (od && od->kind == OD_value && od->value >= 0) value = od->value;
  if (od && od->kind == OD_value && (od->value < -1 || od->value > DIM_MAX))
    fail(e->c, ERR_input, here(e), "input '%s': dimension %u is %lld, which is not a valid extent",
         show(e->c, d->v->name), d->axis, (long long)od->value);
  if (b && value >= 0 && value != b->value)
    fail(e->c, ERR_usage, here(e),
         "input '%s': dimension %u is fixed at %lld by the model, %s %lld", show(e->c, d->v->name),
         d->axis, (long long)value, b->bound ? "the bound is" : "not", (long long)b->value);
  return b && !b->bound ? b->value : value;
}

static Dim fix_dim(Extents *e, const InDim *d) {
  const BindDim *b = find_bind(e, d);
  i64 value = fixed_extent(e, d, b);
  if (value >= 0 && d->given >= 0 && d->given != value)
    fail(e->c, ERR_input, here(e),
         "input '%s' is %s, the array given is %s: dimension %u is %lld, expected %lld",
         show(e->c, d->v->name), decl_type_string(e->c, d->v->name, &d->v->type),
         array_type(e, extents_array(e, d->v->name)), d->axis, (long long)d->given,
         (long long)value);
  if (value >= 0) return value;
  if (d->given >= 0 && !(b && b->bound)) return d->given;
  return unknown_dim(e, d, b);
}

/* Rank of an input declared without a shape: from the array or from --shapes. */
static u32 missing_rank(Extents *e, const DeclValue *v, const Tensor *given) {
  if (given) return given->rank;
  i64 rank = -1;
  for (u32 i = 0; i < e->o->ndim; i++)
    if (e->o->dim[i].input == v->name && e->o->dim[i].axis >= rank) rank = e->o->dim[i].axis + 1;
  if (rank >= 0) return (u32)rank;
  note_missing(e, (BindDim){.input = v->name, .axis = -1, .rank = 1},
               str_fmt(e->c, "the shape of input '%s'", show(e->c, v->name)), false);
  return 0;
}

Type extents_type(Extents *e, const DeclValue *v) {
  const DeclType *t = &v->type;
  const char *name = show(e->c, v->name);
  if (t->kind == OT_none) fail(e->c, ERR_input, here(e), "input '%s' has no declared type", name);
  if (!t->dt)
    fail(e->c, ERR_input, here(e), "input '%s': element type %d is not known", name, t->elem_code);
  const Tensor *given = extents_array(e, v->name);
  u32 rank = t->has_shape ? t->dims.n : missing_rank(e, v, given);
  if (rank > MAX_RANK)
    fail(e->c, ERR_unsupported, here(e), "input '%s': rank %u exceeds %d", name, rank, MAX_RANK);
  if (given && given->rank != rank)
    fail(e->c, ERR_input, here(e),
         "input '%s' is %s, the array given is %s: it has %u dimension%s, expected %u%s", name,
         decl_type_string(e->c, v->name, &v->type), array_type(e, given), given->rank,
         given->rank == 1 ? "" : "s", rank,
         given->rank && given->rank + 1 == rank ? ": a list in a list, [[...]], or x[None] in numpy"
                                                : "");
  for (u32 i = 0; i < e->o->ndim; i++)
    if (e->o->dim[i].input == v->name && e->o->dim[i].rank && e->o->dim[i].rank != rank)
      fail(e->c, ERR_usage, here(e), "input '%s' is %s: it has %u dimensions, %u are given", name,
           decl_type_string(e->c, v->name, &v->type), rank, e->o->dim[i].rank);
  Dim dim[MAX_RANK];
  u64 total = 1;
  for (u32 i = 0; i < rank; i++) {
    InDim d = in_dim(e, v, i);
    dim[i] = fix_dim(e, &d);
    if (dim_is_const(dim[i]) && (!size_mul(total, (u64)dim[i], &total) || total > DIM_MAX))
      fail(e->c, ERR_input, here(e), "input '%s' has more than 2^40 elements", name);
  }
  return type_tensor(&e->c->work, t->dt, dim, rank);
}

/* ---- constants ---- */

enum { FROZEN_MOST = 1 << 26, KNOWN_MOST = 1 << 12 };

/* Expands one given element to the shape of the input, if the shape is known. Needed for constants,
 * and for contents small enough to decide a shape or a branch. */
static void broadcast_fill(Extents *e, BindInput *in, Type t) {
  i64 dim[MAX_RANK];
  u64 n = 1, most = in->frozen ? FROZEN_MOST : KNOWN_MOST;
  for (u32 i = 0; i < t.rank; i++) {
    dim[i] = dim_is_const(t.dim[i]) ? t.dim[i] : -1;
    if (dim[i] < 0 || !size_mul(n, (u64)dim[i], &n) || n > most) return;
  }
  Tensor *all = tensor_new(&e->c->work, in->data->dt, dim, t.rank);
  for (u64 i = 0; i < n; i++) tensor_set(all, i, tensor_get(in->data, 0));
  in->data = all;
  in->fill = false;
}

const BindInput *extents_frozen(Extents *e, const DeclValue *v, Type t) {
  BindInput *in = extents_bound_input(e, v->name);
  if (in && in->fill) broadcast_fill(e, in, t);
  if (!in || !in->frozen) return NULL;
  if (in->fill)
    fail(e->c, ERR_usage, here(e),
         "input '%s' cannot be frozen: its shape is not known, or too large for one value to fill",
         show(e->c, v->name));
  if (in->data->dt != t.dt)
    fail(e->c, ERR_input, here(e), "input '%s' is %s, the array to freeze it at is %s",
         show(e->c, v->name), dtype_info[t.dt].name, dtype_info[in->data->dt].name);
  if (e->o->frozen) *vec_push(&e->c->keep, e->o->frozen) = *in;
  return in;
}

/* ---- begin and end ---- */

void extents_open(Extents *e) {
  share_symbols(e);
  check_binds(e);
  default_batch_dims(e);
  add_sums(e);
}

void extents_refuse_unused(Extents *e) {
  for (u32 i = 0; i < e->o->ndim; i++)
    if (!e->o->dim[i].used)
      fail(e->c, ERR_usage, here(e),
           "unknown dimension '%s': expected one that is symbolic in an input",
           show(e->c, e->o->dim[i].symbol));
}

void extents_close(Extents *e) {
  refuse_missing(e);
  for (u32 i = 0; i < e->o->ndim; i++) {
    const BindDim *b = &e->o->dim[i];
    if (!b->used && !(b->symbol && map_get(&e->late, b->symbol))) refuse_bind(e, b);
  }
}
