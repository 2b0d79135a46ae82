/* inputs.c: parameters of the graph and the extents of their dimensions.
 *
 * In: the declared inputs and what the user said (BindDim, BindInput). Out: one parameter per input
 * that is not an initializer. A dimension is, in this order: what a flag says for that input and
 * axis, what a flag says for its symbol, the number in the model, the extent of the array given,
 * symbolic (bounded by --max-shapes, or unbounded for inspection), 1 for an unknown batch (with a
 * warning), or an error that names the flag. A sequence or optional becomes one parameter per
 * element: x.0, x.1 ..., or x for what an optional holds. How many there are is given like a
 * dimension: -d x=N, and -d x.has=0 or 1; or it follows from the arrays given.
 */
#include "onnx/list.h"

#include <string.h>

typedef struct InDim {
  const OnnxValue *v;
  u32 axis;
  Str symbol; /* 0: none */
  i64 given;  /* extent of the caller's array, or -1 */
} InDim;

static BindDim *find_bind(Import *im, const InDim *d) {
  BindDim *found = NULL;
  for (u32 i = 0; i < im->o->ndim; i++) {
    BindDim *b = &im->o->dim[i];
    bool here = b->input ? b->input == d->v->name && b->axis == d->axis
                         : d->symbol && b->symbol == d->symbol;
    if (!here) continue;
    b->used = true;
    bool exact = found && found->bound && !b->bound; /* a number goes before a bound */
    if (!found || exact || (b->input && b->bound == found->bound)) found = b;
  }
  return found;
}

static Dim symbolic_dim(Import *im, const InDim *d, i64 hi) {
  Str name = d->symbol;
  if (!name) name = str_fmt(im->c, "%s_%u", str_text(im->c, d->v->name), d->axis);
  return dim_of_sym(im->g->dims, dim_sym(im->g->dims, SY_input, name, 0, hi));
}

static Dim unknown_dim(Import *im, const InDim *d, const BindDim *b) {
  Loc loc = {.file = im->file, .index = -1};
  if (b && b->bound) return symbolic_dim(im, d, b->value);
  if (im->o->symbolic) return symbolic_dim(im, d, DIM_MAX);
  const char *input = show(im->c, d->v->name);
  const char *named = d->symbol ? show(im->c, d->symbol) : "no name";
  if (d->axis == 0) {
    warn(im->c, loc, "input '%s': batch dimension 0 (%s) is not known, taken as 1", input, named);
    return 1;
  }
  fail(im->c, ERR_usage, loc,
       "input '%s': dimension %u (%s) is not known; give it with %s%s%s, --input-dim '%s:%u=N' or "
       "--shapes, or a bound with --max-shapes",
       input, d->axis, named, d->symbol ? "-d '" : "", d->symbol ? named : "an array",
       d->symbol ? "=N'" : "", input, d->axis);
}

static Dim fix_dim(Import *im, const InDim *d, const OnnxDim *od) {
  Loc loc = {.file = im->file, .index = -1};
  const BindDim *b = find_bind(im, d);
  i64 value = -1;
  if (od && od->kind == OD_value && od->value >= 0) value = od->value;
  if (od && od->kind == OD_value && (od->value < -1 || od->value > DIM_MAX))
    fail(im->c, ERR_input, loc, "input '%s': dimension %u is %lld", show(im->c, d->v->name),
         d->axis, (long long)od->value);
  if (b && !b->bound) {
    if (value >= 0 && value != b->value)
      fail(im->c, ERR_usage, loc,
           "input '%s': dimension %u is fixed at %lld by the model, not %lld",
           show(im->c, d->v->name), d->axis, (long long)value, (long long)b->value);
    value = b->value;
  }
  if (b && b->bound && value >= 0 && value != b->value)
    fail(im->c, ERR_usage, loc,
         "input '%s': dimension %u is fixed at %lld by the model, the bound is %lld",
         show(im->c, d->v->name), d->axis, (long long)value, (long long)b->value);
  if (value >= 0) {
    if (d->given >= 0 && d->given != value)
      fail(im->c, ERR_input, loc, "input '%s': the array has extent %lld on axis %u, expected %lld",
           show(im->c, d->v->name), (long long)d->given, d->axis, (long long)value);
    return value;
  }
  if (d->given >= 0 && !(b && b->bound)) return d->given;
  return unknown_dim(im, d, b);
}

static const Tensor *given_array(Import *im, Str name) {
  for (u32 i = 0; i < im->o->ninput; i++)
    if (im->o->input[i].name == name) return im->o->input[i].data;
  return NULL;
}

/* Rank of an input declared without shape: from the array or from --shapes. */
static u32 missing_rank(Import *im, const OnnxValue *v, const Tensor *given) {
  if (given) return given->rank;
  i64 rank = -1;
  for (u32 i = 0; i < im->o->ndim; i++)
    if (im->o->dim[i].input == v->name && im->o->dim[i].axis >= rank) rank = im->o->dim[i].axis + 1;
  Loc loc = {.file = im->file, .index = -1};
  if (rank < 0)
    fail(im->c, ERR_usage, loc, "input '%s' has no shape; give one with --shapes '%s:AxB'",
         show(im->c, v->name), show(im->c, v->name));
  return (u32)rank;
}

static Type input_type(Import *im, const OnnxValue *v) {
  Loc loc = {.file = im->file, .index = -1};
  const OnnxType *t = &v->type;
  if (t->kind == OT_none)
    fail(im->c, ERR_input, loc, "input '%s' has no type", show(im->c, v->name));
  if (!t->dt)
    fail(im->c, ERR_input, loc, "input '%s': element type %d is not known", show(im->c, v->name),
         t->elem_code);
  const Tensor *given = given_array(im, v->name);
  u32 rank = t->has_shape ? t->dims.n : missing_rank(im, v, given);
  if (rank > MAX_RANK)
    fail(im->c, ERR_unsupported, loc, "input '%s': rank %u exceeds %d", show(im->c, v->name), rank,
         MAX_RANK);
  if (given && given->rank != rank)
    fail(im->c, ERR_input, loc, "input '%s': the array has rank %u, expected %u",
         show(im->c, v->name), given->rank, rank);
  for (u32 i = 0; i < im->o->ndim; i++)
    if (im->o->dim[i].input == v->name && im->o->dim[i].rank && im->o->dim[i].rank != rank)
      fail(im->c, ERR_usage, loc, "input '%s' has %u dimensions, %u are given",
           show(im->c, v->name), rank, im->o->dim[i].rank);
  Dim dim[MAX_RANK];
  u64 total = 1;
  for (u32 i = 0; i < rank; i++) {
    const OnnxDim *od = t->has_shape ? &t->dims.at[i] : NULL;
    bool named = od && od->kind == OD_param && !str_is(im->c, od->param, "-1") &&
                 !str_is(im->c, od->param, "?");
    InDim d = {v, i, named ? od->param : 0, given ? given->dim[i] : -1};
    dim[i] = fix_dim(im, &d, od);
    if (dim_is_const(dim[i]) && (!size_mul(total, (u64)dim[i], &total) || total > DIM_MAX))
      fail(im->c, ERR_input, loc, "input '%s' is too large", show(im->c, v->name));
  }
  return type_tensor(&im->c->work, t->dt, dim, rank);
}

/* A symbol that a flag or an array has fixed through one input is fixed for all. */
static void share_symbols(Import *im) {
  const OnnxGraph *g = im->m->graph;
  VEC(BindDim) all = {0};
  for (u32 i = 0; i < im->o->ndim; i++) *vec_push(&im->c->work, &all) = im->o->dim[i];
  for (u32 i = 0; i < g->inputs.n; i++) {
    const OnnxValue *v = &g->inputs.at[i];
    const Tensor *given = given_array(im, v->name);
    for (u32 k = 0; v->type.has_shape && k < v->type.dims.n; k++) {
      const OnnxDim *od = &v->type.dims.at[k];
      if (od->kind != OD_param || str_is(im->c, od->param, "-1")) continue;
      InDim d = {v, k, 0, -1};
      BindDim *b = find_bind(im, &d);
      if (b)
        *vec_push(&im->c->work, &all) =
            (BindDim){.symbol = od->param, .value = b->value, .bound = b->bound, .used = true};
      else if (given && k < given->rank)
        *vec_push(&im->c->work, &all) =
            (BindDim){.symbol = od->param, .value = given->dim[k], .used = true};
    }
  }
  ImportOptions *o = NEW(&im->c->work, ImportOptions);
  *o = *im->o;
  o->dim = all.at;
  o->ndim = all.n;
  if (o->ninput) o->input = arena_copy(&im->c->work, o->input, o->ninput * sizeof *o->input);
  im->o = o;
}

/* ---- sequences and optionals ---- */

/* What -d NAME=N says, or -1. */
static i64 told_number(Import *im, Str name) {
  for (u32 i = 0; i < im->o->ndim; i++) {
    BindDim *b = &im->o->dim[i];
    if (b->input || b->symbol != name) continue;
    b->used = true;
    return b->value;
  }
  return -1;
}

/* Strings enter as rows of bytes; how many is given by -d NAME.bytes=N, or as many as the array
 * given needs, but not fewer than TEXT_ROOM. */
enum { TEXT_ROOM = 64, TEXT_MOST = 1 << 24 };

/* The array given for a parameter of strings, as bytes: for contents that must be known. */
static void encode_given(Import *im, BindInput *in, const Tensor *t, i64 room) {
  Loc loc = {.file = im->file, .index = -1};
  i64 dim[MAX_RANK];
  if (t->rank) memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank] = room;
  Tensor *rows = tensor_new(&im->c->work, DT_u8, dim, t->rank + 1);
  if (!text_encode(im->c, t, (u8 *)(uintptr_t)rows->data, room))
    fail(im->c, ERR_input, loc,
         "input '%s': a string has more than %lld bytes, or ends with a zero",
         show(im->c, in->name), (long long)room);
  in->data = rows;
}

static Val text_param(Import *im, Str name, Type t) {
  Loc loc = {.file = im->file, .index = -1};
  const Tensor *given = given_array(im, name);
  if (given && given->dt != DT_str)
    fail(im->c, ERR_input, loc, "input '%s' holds strings, the array is %s", show(im->c, name),
         dtype_info[given->dt].name);
  i64 room = told_number(im, str_fmt(im->c, "%s.bytes", str_text(im->c, name)));
  i64 need = given ? text_longest(im->c, given) : 1;
  if (room < 0) room = need > TEXT_ROOM ? need : TEXT_ROOM;
  if (room < 1 || room > TEXT_MOST || t.rank == MAX_RANK)
    fail(im->c, ERR_unsupported, loc, "input '%s': strings of %lld bytes, rank %u",
         show(im->c, name), (long long)room, t.rank);
  Dim dim[MAX_RANK];
  if (t.rank) memcpy(dim, t.dim, t.rank * sizeof *dim);
  dim[t.rank] = room;
  for (u32 i = 0; given && i < im->o->ninput; i++)
    if (im->o->input[i].name == name) encode_given(im, &im->o->input[i], given, room);
  Type rows = type_tensor(&im->c->work, DT_u8, dim, t.rank + 1);
  return mk_text(im->g, graph_param(im->g, 1, rows, name));
}

static Val tensor_param(Import *im, const OnnxValue *v) {
  Type t = input_type(im, v);
  if (t.dt == DT_str) return text_param(im, v->name, t);
  return graph_param(im->g, 1, t, v->name);
}

static Val element_param(Import *im, Str name, const OnnxType *type) {
  OnnxValue v = {.name = name, .type = *type};
  const Tensor *given = given_array(im, name);
  if (given && type->has_shape && type->dims.n == given->rank) {
    /* elements of one sequence may differ: its symbols are not those of the model */
    v.type.dims.at = NEWS(&im->c->work, OnnxDim, type->dims.n + 1);
    for (u32 i = 0; i < type->dims.n; i++) {
      v.type.dims.at[i] = type->dims.at[i];
      if (type->dims.at[i].kind == OD_param) v.type.dims.at[i] = (OnnxDim){.kind = OD_unknown};
    }
  }
  return tensor_param(im, &v);
}

enum { MOST_ELEMENTS = 1 << 16 };

static Val list_input(Import *im, Str name, const OnnxType *type);

static Val sequence_input(Import *im, Str name, const OnnxType *type) {
  Loc loc = {.file = im->file, .index = -1};
  const char *base = str_text(im->c, name);
  i64 n = told_number(im, name);
  if (n < 0)
    while (given_array(im, str_fmt(im->c, "%s.%lld", base, (long long)(n < 0 ? 0 : n))))
      n = n < 0 ? 1 : n + 1;
  if (n < 0 && im->o->symbolic) n = 1;
  if (n < 0)
    fail(im->c, ERR_usage, loc,
         "input '%s' is a sequence; give its length with -d '%s=N', or its elements",
         show(im->c, name), show(im->c, name));
  if (n > MOST_ELEMENTS) fail(im->c, ERR_usage, loc, "input '%s' has too many elements", base);
  if (type->elem->kind != OT_tensor)
    fail(im->c, ERR_unsupported, loc, "input '%s' is not a sequence of tensors", show(im->c, name));
  Val *at = NEWS(&im->c->work, Val, (size_t)n + 1);
  for (u32 i = 0; i < (u32)n; i++)
    at[i] = element_param(im, str_fmt(im->c, "%s.%u", base, i), type->elem);
  return list_known(im, TY_seq, at, (u32)n);
}

static Val optional_input(Import *im, Str name, const OnnxType *type) {
  Loc loc = {.file = im->file, .index = -1};
  const char *base = str_text(im->c, name);
  i64 has = told_number(im, str_fmt(im->c, "%s.has", base));
  if (has < 0 && (given_array(im, name) || given_array(im, str_fmt(im->c, "%s.0", base)))) has = 1;
  if (has < 0 && im->o->symbolic) has = 1;
  if (has < 0)
    fail(im->c, ERR_usage, loc,
         "input '%s' is optional; say whether it is there with -d '%s.has=1' or 0",
         show(im->c, name), show(im->c, name));
  Val v = has ? list_input(im, name, type->elem) : 0;
  return list_known(im, TY_opt, &v, has != 0);
}

static Val list_input(Import *im, Str name, const OnnxType *type) {
  if (type->kind == OT_seq) return sequence_input(im, name, type);
  if (type->kind == OT_opt) return optional_input(im, name, type);
  return element_param(im, name, type);
}

/* A map is two parameters, x.keys and x.values, of one length: that of the array given, or -d x=N.
 */
static Val map_input(Import *im, Str name, const OnnxType *type) {
  Loc loc = {.file = im->file, .index = -1};
  const char *base = str_text(im->c, name);
  Str part[2] = {str_fmt(im->c, "%s.keys", base), str_fmt(im->c, "%s.values", base)};
  const Tensor *given = given_array(im, part[0]);
  i64 n = told_number(im, name);
  if (n < 0 && given) n = (i64)given->n;
  if (n < 0 && im->o->symbolic) n = 1;
  if (n < 0 || n > MOST_ELEMENTS || type->elem->kind != OT_tensor)
    fail(im->c, ERR_usage, loc, "input '%s' is a map; give its size with -d '%s=N', or its keys",
         show(im->c, name), show(im->c, name));
  OnnxDim length = {.kind = OD_value, .value = n};
  Val v[2];
  for (u32 i = 0; i < 2; i++) {
    OnnxValue x = {.name = part[i], .type = {.kind = OT_tensor, .has_shape = true}};
    x.type.elem_code = i ? type->elem->elem_code : type->elem_code;
    x.type.dt = i ? type->elem->dt : type->dt;
    *vec_push(&im->c->work, &x.type.dims) = length;
    v[i] = tensor_param(im, &x);
  }
  return list_add(im, (List){.kind = TY_seq, .keys = v[0], .stack = v[1]});
}

/* ---- what was said about nothing ---- */

static _Noreturn void refuse_bind(Import *im, const BindDim *b) {
  const OnnxGraph *g = im->m->graph;
  Loc loc = {.file = im->file, .index = -1};
  Text names = text_new(&im->c->scratch);
  for (u32 k = 0; k < g->inputs.n; k++)
    if (!map_get(&im->scope->init, g->inputs.at[k].name))
      text_fmt(&names, "%s%s", names.n ? ", " : "", show(im->c, g->inputs.at[k].name));
  if (b->input)
    fail(im->c, ERR_usage, loc, "no input '%s' with a dimension %lld; inputs are %s",
         show(im->c, b->input), (long long)b->axis, text_cstr(&names));
  fail(im->c, ERR_usage, loc,
       "no input has a dimension named '%s'; inputs are %s (see ingot inspect)",
       show(im->c, b->symbol), text_cstr(&names));
}

/* Could the flag mean this input: its name, a part of it such as x.0 and x.has, or a symbol in it?
 */
static bool may_mean(Import *im, const BindDim *b, const OnnxValue *v) {
  Str said = b->input ? b->input : b->symbol;
  const char *text = str_text(im->c, said), *name = str_text(im->c, v->name);
  size_t n = str_len(im->c, v->name);
  if (said == v->name)
    return !b->input || v->type.kind != OT_tensor || !v->type.has_shape ||
           b->axis < (i64)v->type.dims.n;
  if (n && !strncmp(text, name, n) && text[n] == '.') return true;
  for (const OnnxType *t = &v->type; t && !b->input; t = t->elem)
    for (u32 k = 0; k < t->dims.n; k++)
      if (t->dims.at[k].kind == OD_param && t->dims.at[k].param == said) return true;
  return false;
}

/* Before anything else is asked for: a misspelt name is the likely reason that it is missing. */
static void check_binds(Import *im) {
  const OnnxGraph *g = im->m->graph;
  for (u32 i = 0; i < im->o->ndim; i++) {
    bool found = im->o->dim[i].used;
    for (u32 k = 0; k < g->inputs.n && !found; k++)
      found = may_mean(im, &im->o->dim[i], &g->inputs.at[k]);
    if (!found) refuse_bind(im, &im->o->dim[i]);
  }
}

void import_inputs(Import *im) {
  const OnnxGraph *g = im->m->graph;
  Loc loc = {.file = im->file, .index = -1};
  share_symbols(im);
  check_binds(im);
  for (u32 i = 0; i < g->inputs.n; i++) {
    const OnnxValue *v = &g->inputs.at[i];
    if (!v->name) fail(im->c, ERR_input, loc, "input %u has no name", i);
    if (map_get(&im->scope->init, v->name)) continue; /* a weight listed as input too */
    OnnxTypeKind kind = v->type.kind;
    if (kind == OT_seq || kind == OT_opt) {
      scope_define(im, v->name, list_input(im, v->name, &v->type), loc);
      continue;
    }
    if (kind == OT_map) {
      scope_define(im, v->name, map_input(im, v->name, &v->type), loc);
      continue;
    }
    if (kind != OT_tensor && kind != OT_none) {
      diag(im->c, ERR_unsupported, loc, "input '%s' is neither a tensor nor a sequence of tensors",
           show(im->c, v->name));
      scope_define(im, v->name, VAL_POISON, loc);
      continue;
    }
    scope_define(im, v->name, tensor_param(im, v), loc);
  }
  for (u32 i = 0; i < im->o->ndim; i++)
    if (!im->o->dim[i].used) refuse_bind(im, &im->o->dim[i]);
}

const OnnxValue **onnx_inputs(Ctx *c, const OnnxModel *m, u32 *n) {
  const OnnxGraph *g = m->graph;
  Map init = map_new(&c->keep);
  for (u32 i = 0; i < g->inits.n; i++) *map_put(&init, g->inits.at[i].name) = 1;
  for (u32 i = 0; i < g->sparse_inits.n; i++)
    if (g->sparse_inits.at[i].values) *map_put(&init, g->sparse_inits.at[i].values->name) = 1;
  const OnnxValue **out = NEWS(&c->keep, const OnnxValue *, g->inputs.n + 1);
  *n = 0;
  for (u32 i = 0; i < g->inputs.n; i++)
    if (!map_get(&init, g->inputs.at[i].name)) out[(*n)++] = &g->inputs.at[i];
  return out;
}

bool onnx_takes_input(Ctx *c, const OnnxModel *m, Str name) {
  u32 n;
  const OnnxValue **input = onnx_inputs(c, m, &n);
  const char *text = str_text(c, name), *dot = strrchr(text, '.');
  bool number = dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1);
  bool half = dot && (!strcmp(dot, ".keys") || !strcmp(dot, ".values"));
  Str base = number || half ? str_intern(c, text, (size_t)(dot - text)) : 0;
  for (u32 i = 0; i < n; i++) {
    OnnxTypeKind kind = input[i]->type.kind;
    if (input[i]->name == name) return true;
    if (base && input[i]->name == base &&
        (half ? kind == OT_map : kind == OT_seq || kind == OT_opt))
      return true;
  }
  return false;
}
