/* onnx_inputs.c: parameters of the graph.
 *
 * In: declared inputs and bindings (BindDim, BindInput). Out: one parameter per input that is not
 * an initializer, with dimensions from input_extents.c. A sequence or optional becomes one
 * parameter per element: x.0, x.1 ..., or x for the value of an optional. The user gives their
 * number like a dimension, -d x=N and -d x.has=0 or 1, or it follows from the given arrays.
 */
#include "front/onnx/list.h"

#include <string.h>

/* ---- sequences and optionals ---- */

/* Strings enter as rows of bytes. -d NAME.bytes=N sets the row length. The default fits the given
 * array, with at least TEXT_ROOM bytes. */
enum { TEXT_ROOM = 64, TEXT_MOST = 1 << 24 };

/* Encodes the array given for a string parameter as bytes, for compile-time contents. */
static void encode_given(Import *im, BindInput *in, const Tensor *t, i64 room) {
  i64 dim[MAX_RANK];
  if (t->rank) memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank] = room;
  Tensor *rows = tensor_new(&im->c->work, DT_u8, dim, t->rank + 1);
  if (!strings_to_bytes(im->c, t, (u8 *)(uintptr_t)rows->data, room))
    fail(im->c, ERR_input, import_here(im),
         "input '%s': a string has more than %lld bytes, or ends with a zero",
         show(im->c, in->name), (long long)room);
  in->data = rows;
}

static Val text_param(Import *im, Str name, Type t) {
  const Tensor *given = extents_array(&im->extents, name);
  if (given && given->dt != DT_str)
    fail(im->c, ERR_input, import_here(im), "input '%s' holds strings, but the given array is %s",
         show(im->c, name), dtype_info[given->dt].name);
  i64 room = extents_bound_dim(&im->extents, str_fmt(im->c, "%s.bytes", str_text(im->c, name)));
  i64 need = given ? strings_max_len(im->c, given) : 1;
  if (room < 0) room = need > TEXT_ROOM ? need : TEXT_ROOM;
  if (room < 1 || room > TEXT_MOST || t.rank == MAX_RANK)
    fail(im->c, ERR_unsupported, import_here(im),
         "input '%s': strings of %lld bytes in rank %u are not supported", show(im->c, name),
         (long long)room, t.rank);
  Dim dim[MAX_RANK];
  if (t.rank) memcpy(dim, t.dim, t.rank * sizeof *dim);
  dim[t.rank] = room;
  for (u32 i = 0; given && i < im->o->ninput; i++)
    if (im->o->input[i].name == name) encode_given(im, &im->o->input[i], given, room);
  Type rows = type_tensor(&im->c->work, DT_u8, dim, t.rank + 1);
  return mk_text(im->g, graph_param(im->g, 1, rows, name));
}

static Val tensor_param(Import *im, const DeclValue *v) {
  Type t = extents_type(&im->extents, v);
  const BindInput *in = extents_frozen(&im->extents, v, t);
  if (in) {
    Val k = mk_const(im->g, (Tensor *)(uintptr_t)in->data);
    graph_val(im->g, k)->name = v->name;
    return k;
  }
  if (t.dt == DT_str) return text_param(im, v->name, t);
  return graph_param(im->g, 1, t, v->name);
}

static Val element_param(Import *im, Str name, const DeclType *type) {
  DeclValue v = {.name = name, .type = *type};
  const Tensor *given = extents_array(&im->extents, name);
  if (given && type->has_shape && type->dims.n == given->rank) {
    /* elements of a sequence may differ, so they do not share symbols */
    v.type.dims.at = NEWS(&im->c->work, DeclDim, type->dims.n + 1);
    for (u32 i = 0; i < type->dims.n; i++) {
      v.type.dims.at[i] = type->dims.at[i];
      if (type->dims.at[i].kind == OD_param) v.type.dims.at[i] = (DeclDim){.kind = OD_unknown};
    }
  }
  return tensor_param(im, &v);
}

enum { MOST_ELEMENTS = 1 << 16 };

__attribute__((format(printf, 2, 0))) static const char *text_of(Import *im, const char *fmt,
                                                                 Str name) {
  return fmt_text(im->c, fmt, show(im->c, name));
}

static Val list_input(Import *im, Str name, const DeclType *type);

static Val sequence_input(Import *im, Str name, const DeclType *type) {
  const char *base = str_text(im->c, name);
  i64 n = extents_bound_dim(&im->extents, name);
  if (n < 0)
    while (extents_array(&im->extents, str_fmt(im->c, "%s.%lld", base, (long long)(n < 0 ? 0 : n))))
      n = n < 0 ? 1 : n + 1;
  if (n < 0 && im->o->symbolic) n = 1;
  if (n < 0)
    n = extents_note_missing(&im->extents, name, text_of(im, "the length of sequence '%s'", name));
  if (n > MOST_ELEMENTS)
    fail(im->c, ERR_usage, import_here(im), "input '%s' has more than 2^40 elements", base);
  if (type->elem->kind != OT_tensor)
    fail(im->c, ERR_unsupported, import_here(im), "input '%s' is not a sequence of tensors",
         show(im->c, name));
  Val *at = NEWS(&im->c->work, Val, (size_t)n + 1);
  for (u32 i = 0; i < (u32)n; i++)
    at[i] = element_param(im, str_fmt(im->c, "%s.%u", base, i), type->elem);
  return list_known(im, TY_seq, at, (u32)n);
}

static Val optional_input(Import *im, Str name, const DeclType *type) {
  const char *base = str_text(im->c, name);
  i64 has = extents_bound_dim(&im->extents, str_fmt(im->c, "%s.has", base));
  if (has < 0 && (extents_array(&im->extents, name) ||
                  extents_array(&im->extents, str_fmt(im->c, "%s.0", base))))
    has = 1;
  if (has < 0 && im->o->symbolic) has = 1;
  if (has < 0)
    has =
        extents_note_missing(&im->extents, str_fmt(im->c, "%s.has", base),
                             text_of(im, "whether optional '%s' is present (1) or not (0)", name));
  Val v = has ? list_input(im, name, type->elem) : 0;
  return list_known(im, TY_opt, &v, has != 0);
}

static Val list_input(Import *im, Str name, const DeclType *type) {
  if (type->kind == OT_seq) return sequence_input(im, name, type);
  if (type->kind == OT_opt) return optional_input(im, name, type);
  return element_param(im, name, type);
}

/* A map is two parameters, x.keys and x.values, of the length of the given array or of -d x=N. */
static Val map_input(Import *im, Str name, const DeclType *type) {
  const char *base = str_text(im->c, name);
  Str part[2] = {str_fmt(im->c, "%s.keys", base), str_fmt(im->c, "%s.values", base)};
  const Tensor *given = extents_array(&im->extents, part[0]);
  i64 n = extents_bound_dim(&im->extents, name);
  if (n < 0 && given) n = (i64)given->n;
  if (n < 0 && im->o->symbolic) n = 1;
  if (n < 0)
    n = extents_note_missing(&im->extents, name, text_of(im, "the size of map '%s'", name));
  if (n > MOST_ELEMENTS || type->elem->kind != OT_tensor)
    fail(im->c, ERR_unsupported, import_here(im),
         "input '%s' is not a map of at most %d numbers or strings", show(im->c, name),
         MOST_ELEMENTS);
  DeclDim length = {.kind = OD_value, .value = n};
  Val v[2];
  for (u32 i = 0; i < 2; i++) {
    DeclValue x = {.name = part[i], .type = {.kind = OT_tensor, .has_shape = true}};
    x.type.elem_code = i ? type->elem->elem_code : type->elem_code;
    x.type.dt = i ? type->elem->dt : type->dt;
    *vec_push(&im->c->work, &x.type.dims) = length;
    v[i] = tensor_param(im, &x);
  }
  return list_add(im, (List){.kind = TY_seq, .keys = v[0], .stack = v[1]});
}

void import_inputs(Import *im, const Model *m) {
  const OnnxGraph *g = im->m->graph;
  im->extents = (Extents){.c = im->c, .dims = im->g->dims, .file = im->file, .o = im->o};
  im->extents.input = m->input;
  im->extents.ninput = m->ninput;
  im->extents.late = map_new(&im->c->work);
  for (u32 i = 0; i < g->nodes.n; i++)
    for (u32 k = 0; k < g->nodes.at[i].out.n; k++)
      *map_put(&im->extents.late, g->nodes.at[i].out.at[k]) = 1;
  extents_open(&im->extents);
  im->o = im->extents.o;
  for (u32 i = 0; i < g->inputs.n; i++) {
    const DeclValue *v = &g->inputs.at[i];
    if (!v->name) fail(im->c, ERR_input, import_here(im), "input %u has no name", i);
    if (map_get(&im->scope->init, v->name)) continue; /* also listed as input by old files */
    DeclTypeKind kind = v->type.kind;
    if (kind == OT_seq || kind == OT_opt) {
      scope_define(im, v->name, list_input(im, v->name, &v->type), import_here(im));
      continue;
    }
    if (kind == OT_map) {
      scope_define(im, v->name, map_input(im, v->name, &v->type), import_here(im));
      continue;
    }
    if (kind != OT_tensor && kind != OT_none) {
      diag(im->c, ERR_unsupported, import_here(im),
           "input '%s' is neither a tensor nor a sequence of tensors", show(im->c, v->name));
      scope_define(im, v->name, VAL_POISON, import_here(im));
      continue;
    }
    scope_define(im, v->name, tensor_param(im, v), import_here(im));
  }
  extents_close(&im->extents);
}

/* Inputs that are initializers are constants. */
Model *onnx_open(Ctx *c, const Source *s) {
  OnnxModel *om = onnx_read(c, s->at, s->n, s->file);
  const OnnxGraph *g = om->graph;
  Map init = map_new(&c->keep);
  for (u32 i = 0; i < g->inits.n; i++) *map_put(&init, g->inits.at[i].name) = 1;
  for (u32 i = 0; i < g->sparse_inits.n; i++)
    if (g->sparse_inits.at[i].values) *map_put(&init, g->sparse_inits.at[i].values->name) = 1;
  Model *m = NEW(&c->keep, Model);
  *m = (Model){.own = om, .output = g->outputs.at, .noutput = g->outputs.n};
  m->input = NEWS(&c->keep, const DeclValue *, g->inputs.n + 1);
  for (u32 i = 0; i < g->inputs.n; i++)
    if (!map_get(&init, g->inputs.at[i].name)) m->input[m->ninput++] = &g->inputs.at[i];
  return m;
}
