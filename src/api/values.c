/* values.c: input and output arrays.
 *
 * In: .npy, .npz, .pb files, arrays of the caller, "rand" and "zeros". Out: one tensor per
 * parameter, of its type; outputs as .npz, .npy or a directory of .pb files.
 */
#include "api/api_internal.h"
#include "front/onnx/pb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A frozen input may be given again only with equal contents (freeze.c). */
static InputBinding *add_binding(Ingot *m, Str name, i32 pos, BindingKind kind, Tensor *t) {
  for (u32 i = 0; pos < 0 && i < m->options.given.n; i++)
    if (m->options.given.at[i].pos < 0 && m->options.given.at[i].name == name &&
        !m->options.given.at[i].frozen)
      fail(m->c, ERR_usage, LOC_NONE, "input '%s' is given twice", show(m->c, name));
  m->options.complete = false;
  InputBinding *v = vec_push(&m->c->keep, &m->options.given);
  *v = (InputBinding){.name = name, .pos = pos, .kind = kind, .data = t};
  return v;
}

/* ---- from the caller ---- */

void api_need_array(Ctx *c, const IngotTensor *x) {
  api_need(c, x, "the array");
  api_need(c, x->name, "the name of an array");
  api_need(c, x->dtype, "the type of an array");
  if (x->rank) api_need(c, x->dim, "the shape of an array");
  if (x->bytes) api_need(c, x->data, "the contents of an array");
}

static Tensor *copy_array(Ctx *c, const IngotTensor *x) {
  api_need_array(c, x);
  DType dt = dtype_from_name(x->dtype, strlen(x->dtype));
  u64 n;
  if (dt == DT_str) return api_import_strings(c, x);
  if (!dt)
    fail(c, ERR_usage, LOC_NONE,
         "input '%s': unknown element type '%s', expected float32, int64 ...", x->name, x->dtype);
  if (x->rank > MAX_RANK || !shape_count(x->dim, x->rank, &n) || n * dtype_bytes(dt) != x->bytes)
    fail(c, ERR_usage, LOC_NONE,
         "input '%s': found %llu bytes, expected those of its shape and type", x->name,
         (unsigned long long)x->bytes);
  Tensor *t = tensor_new(&c->keep, dt, x->dim, x->rank);
  if (n) memcpy((void *)t->data, x->data, x->bytes);
  return t;
}

static void set_input(Ingot *m, const IngotTensor *x) {
  Tensor *t = copy_array(m->c, x);
  Str name = str_of(m->c, x->name);
  for (u32 i = 0; i < m->options.given.n; i++)
    if (m->options.given.at[i].pos < 0 && m->options.given.at[i].name == name) {
      m->options.given.at[i].data = t; /* another run with new contents */
      return;
    }
  add_binding(m, name, -1, IB_data, t);
}

IngotStatus ingot_input(Ingot *m, const IngotTensor *t) {
  API_CALL(m, set_input(m, t));
}

static void bind_symbol(Ingot *m, Str name, u32 n) {
  *vec_push(&m->c->keep, &m->options.dim) = (BindDim){.symbol = name, .value = n};
}

static Tensor *map_values(Ctx *c, const PbValue *d) {
  DType dt = d->n && d->elem[0].kind == TY_tensor ? d->elem[0].t->dt : DT_f32;
  i64 n = d->n;
  Tensor *t = tensor_new(&c->keep, dt, &n, 1);
  for (u32 i = 0; i < d->n; i++) {
    const Tensor *x = d->elem[i].kind == TY_tensor ? d->elem[i].t : NULL;
    if (!x || x->dt != dt || x->n != 1)
      fail(c, ERR_unsupported, LOC_NONE, "a map whose values are not single numbers or strings");
    tensor_set(t, i, tensor_get(x, 0));
  }
  return t;
}

/* Adds the tensors of a sequence or optional under their input names. */
static void add_datum(Ingot *m, Str name, const PbValue *d) {
  const char *base = str_text(m->c, name);
  if (d->keys) {
    add_binding(m, str_fmt(m->c, "%s.keys", base), -1, IB_data, d->keys);
    add_binding(m, str_fmt(m->c, "%s.values", base), -1, IB_data, map_values(m->c, d));
  } else if (d->kind == TY_tensor) {
    add_binding(m, name, -1, IB_data, d->t);
  } else if (d->kind == TY_opt) {
    bind_symbol(m, str_fmt(m->c, "%s.has", base), d->n);
    if (d->n) add_datum(m, name, &d->elem[0]);
  } else {
    bind_symbol(m, name, d->n);
    for (u32 i = 0; i < d->n; i++) add_datum(m, str_fmt(m->c, "%s.%u", base, i), &d->elem[i]);
  }
}

/* Declared type of an input; NULL: unknown. */
static const DeclType *declared_type(Ingot *m, Str name) {
  u32 n = m->opened.model ? m->opened.model->ninput : 0;
  for (u32 i = 0; i < n; i++)
    if (m->opened.model->input[i]->name == name) return &m->opened.model->input[i]->type;
  return NULL;
}

static void add_file(Ingot *m, Str name, const char *path) {
  Ctx *c = m->c;
  Loc loc = loc_of_file(c, path);
  File f = file_read(c, path);
  if (ends_with(path, ".npz"))
    fail(c, ERR_usage, loc, "is an archive: use --inputs, or @FILE.npy for an array");
  if (ends_with(path, ".pb"))
    add_datum(m, name, data_read_pb(c, f.at, f.n, declared_type(m, name), NULL, loc, &c->keep));
  else
    add_binding(m, name, -1, IB_data, data_read_npy(c, f.at, f.n, loc, &c->keep));
}

/* Declared element type of an input or a part of one, such as x.0. */
static DType declared_dtype(Ingot *m, Str name) {
  u32 n = m->opened.model ? m->opened.model->ninput : 0;
  const char *text = str_text(m->c, name);
  for (u32 i = 0; i < n; i++) {
    const DeclValue *v = m->opened.model->input[i];
    const DeclType *t = &v->type;
    size_t len = str_len(m->c, v->name);
    if (v->name != name && (strncmp(text, str_text(m->c, v->name), len) || text[len] != '.'))
      continue;
    if (t->kind == OT_map && !strcmp(text + len, ".keys")) return t->dt;
    while (t->elem) t = t->elem;
    return t->dt;
  }
  return DT_none;
}

/* The input that has this name in the file, if no input has it in the model. */
static Str own_name(const Ingot *m, Str name) {
  const Model *model = m->opened.model;
  Str found = name;
  for (u32 i = 0; model && i < model->ninput; i++) {
    if (model->input[i]->name == name) return name;
    if (name && model->input[i]->alias == name) found = model->input[i]->name;
  }
  return found;
}

/* End of the name: a name or string may contain '='. */
static const char *end_of_name(Ingot *m, const char *spec) {
  const char *first = strchr(spec, '='), *at = strstr(spec, "=@");
  for (const char *s = first; m->opened.model && s; s = strchr(s + 1, '='))
    if (api_takes_input(m, own_name(m, str_intern(m->c, spec, (size_t)(s - spec))))) return s;
  return at ? at : first;
}

/* Refuses a file name in place of a value. */
static void refuse_file(Ctx *c, const char *name, const char *text) {
  static const char *const arrays[] = {".npy", ".pb"}, *const images[] = {".png", ".jpg", ".jpeg"};
  char *end;
  strtod(text, &end);
  bool is_array = *text != '[' && *end && strpbrk(text, "./") && access(text, F_OK) == 0;
  for (u32 i = 0; i < sizeof arrays / sizeof *arrays; i++)
    is_array = is_array || ends_with(text, arrays[i]);
  for (u32 i = 0; i < sizeof images / sizeof *images; i++)
    if (ends_with(text, images[i]))
      fail(c, ERR_usage, LOC_NONE,
           "input '%s': images are not read: save the array for the model with numpy.save and use "
           "'%s=@FILE.npy'",
           name, name);
  if (ends_with(text, ".npz"))
    fail(c, ERR_usage, LOC_NONE, "input '%s': use --inputs '%s' for an archive", name, text);
  if (is_array)
    fail(c, ERR_usage, LOC_NONE, "input '%s': use '@' for a file: '%s=@%s'", name, name, text);
}

/* Parses a value now, if the type of the input is known. */
static void add_literal(Ingot *m, Str name, const char *text) {
  Ctx *c = m->c;
  DType dt = declared_dtype(m, name);
  if (m->opened.model && !api_takes_input(m, name)) api_no_input(m, name);
  if (!strcmp(text, "zeros")) text = dt == DT_str ? "\"\"" : "0";
  if (!strcmp(text, "ones") && dt != DT_str) text = "1";
  if (!*text && dt != DT_str)
    fail(c, ERR_usage, LOC_NONE, "input '%s': expected a value after '='", show(c, name));
  if (dt != DT_str) refuse_file(c, show(c, name), text);
  Tensor *t = dt ? api_parse_value(c, show(c, name), dt, text) : NULL;
  InputBinding *v = add_binding(m, name, -1, !t ? IB_text : t->rank ? IB_data : IB_fill, t);
  v->text = str_text(c, str_of(c, text));
}

static void set_spec(Ingot *m, const char *text, bool frozen) {
  Ctx *c = m->c;
  api_need(c, text, "the input");
  if (frozen) api_need_unread(m, "--freeze");
  const char *eq = end_of_name(m, text);
  if (!eq || eq == text)
    fail(c, ERR_usage, LOC_NONE,
         "'%s': expected NAME=VALUE, where VALUE is a number, true, false, a list [1,2,3], zeros, "
         "ones, rand or @FILE",
         text);
  Str name = own_name(m, str_intern(c, text, (size_t)(eq - text)));
  u32 from = m->options.given.n;
  if (eq[1] == '@')
    add_file(m, name, eq + 2);
  else if (strcmp(eq + 1, "rand"))
    add_literal(m, name, eq + 1);
  else if (frozen)
    fail(c, ERR_usage, LOC_NONE, "'%s': a constant needs a value, not random numbers", text);
  else
    add_binding(m, name, -1, IB_rand, NULL);
  for (u32 i = from; i < m->options.given.n; i++) {
    InputBinding *v = &m->options.given.at[i];
    if (frozen && api_frozen(m, v->name))
      fail(c, ERR_usage, LOC_NONE, "input '%s' is frozen twice", show(c, v->name));
    v->frozen = frozen;
  }
}

IngotStatus ingot_input_spec(Ingot *m, const char *spec) {
  API_CALL(m, set_spec(m, spec, false));
}

IngotStatus ingot_freeze(Ingot *m, const char *spec) {
  API_CALL(m, set_spec(m, spec, true));
}

static bool is_no_name(const void *user, Str name) {
  (void)user;
  (void)name;
  return false;
}

static bool is_name(const void *user, Str name) {
  return *(const Str *)user == name;
}

Tensor *api_binding_tensor(Ingot *m, InputBinding *v) {
  if (v->data || !v->file) return v->data;
  Loc loc = {.file = v->archive, .index = -1};
  NamedTensors all =
      data_read_npz_some(m->c, v->file->at, v->file->n, loc, &m->c->keep, is_name, &v->member);
  for (u32 i = 0; i < all.n; i++)
    if (all.at[i].t) v->data = all.at[i].t;
  return v->data;
}

static void set_file(Ingot *m, const char *text) {
  Ctx *c = m->c;
  api_need(c, text, "the path of the inputs");
  Loc loc = loc_of_file(c, text);
  if (ends_with(text, ".npz")) {
    File f = file_read(c, text), *kept = arena_copy(&c->keep, &f, sizeof f);
    NamedTensors v = data_read_npz_some(c, f.at, f.n, loc, &c->keep, is_no_name, NULL);
    for (u32 i = 0; i < v.n; i++) {
      InputBinding *x = add_binding(m, own_name(m, v.at[i].name), -1, IB_data, NULL);
      x->archive = loc.file;
      x->file = kept;
      x->member = v.at[i].name;
    }
    return;
  }
  int dir = c->io.open(c->io.user, AT_FDCWD, text, O_RDONLY | O_DIRECTORY, 0);
  if (dir < 0 && errno == ENOENT) fail(c, ERR_system, loc, "no such file or directory");
  if (dir < 0) api_fail_no_archive(c, text, ", or a folder with input_0.pb ...");
  c->io.close(c->io.user, dir);
  Strs files = data_list(c, data_folder(c, text), "input", &c->keep);
  const Model *model = m->opened.model;
  for (u32 i = 0; i < files.n; i++) {
    const char *path = str_text(c, files.at[i]);
    File f = file_read(c, path);
    const DeclValue *v = model && i < model->ninput ? model->input[i] : NULL;
    PbValue *d =
        data_read_pb(c, f.at, f.n, v ? &v->type : NULL, NULL, loc_of_file(c, path), &c->keep);
    if (v && d->kind != TY_tensor)
      add_datum(m, v->name, d);
    else
      add_binding(m, 0, (i32)i, IB_data, d->t);
  }
}

IngotStatus ingot_input_file(Ingot *m, const char *path) {
  API_CALL(m, set_file(m, path));
}

/* ---- for a run ---- */

static InputBinding *find_binding(const Ingot *m, u32 i) {
  Str name = api_param_name(m, i);
  for (u32 k = 0; k < m->options.given.n; k++) {
    InputBinding *v = &m->options.given.at[k];
    if (v->name ? v->name == name : v->pos == (i32)i) return v;
  }
  return NULL;
}

u32 *api_index_limits(Ingot *m) {
  u32 n = api_param_count(m), *limit = NEWS(&m->c->keep, u32, n + 1);
  i64 *index_limit = m->g ? NEWS(&m->c->scratch, i64, m->g->val.n) : NULL;
  if (m->g) index_limits(m->g, index_limit);
  for (u32 i = 0; i < n; i++) {
    i64 k = m->g ? index_limit[m->g->region.at[1].param.at[api_graph_index(m, i, false)]] : 0;
    limit[i] = k && k < RANDOM_INT_LIMIT ? (u32)k : RANDOM_INT_LIMIT;
  }
  return limit;
}

/* Floats uniform in -1..1, integers below limit, bools 0..1. */
static void fill_random(Tensor *t, u64 seed, u32 limit) {
  for (u64 i = 0; i < t->n; i++) {
    double u = (double)(random_bits(seed, i) >> 11) * 0x1p-53;
    Scalar x = {.f = 2 * u - 1};
    if (!dtype_is_float(t->dt))
      x.i = (i64)(u * (t->dt == DT_bool ? 2 : limit));
    else
      x.f = scalar_round(t->dt, x.f);
    tensor_set(t, i, x);
  }
}

/* Refuses generated inputs with dimensions that have bounds but no size. */
static void refuse_open_dims(Ingot *m) {
  Ctx *c = m->c;
  StrBuf what = sb_new(&c->scratch), how = sb_new(&c->scratch);
  for (u32 i = 0; i < api_param_count(m); i++) {
    IngotTensor info = ingot_input_info(m, i);
    const InputBinding *v = find_binding(m, i);
    const char *name = show(c, api_param_name(m, i));
    for (u32 k = 0; !(v && v->kind == IB_data) && k < info.rank; k++) {
      if (info.dim[k] >= 0) continue;
      sb_fmt(&what, "%sdimension %u of input '%s'", what.n ? ", " : "", k, name);
      sb_fmt(&how, " -d '%s:%u=N'", name, k);
    }
  }
  if (!what.n) return;
  api_hint_open_dims(m);
  fail(c, ERR_usage, LOC_NONE,
       "open within bounds: %s; give numbers for this run with%s, or arrays", sb_cstr(&what),
       sb_cstr(&how));
}

static Tensor *make_random(Ingot *m, u32 i, u64 seed, u32 limit) {
  IngotTensor info = ingot_input_info(m, i);
  DType dt = dtype_from_name(info.dtype, strlen(info.dtype));
  i64 dim[MAX_RANK];
  for (u32 k = 0; k < info.rank; k++) dim[k] = info.dim[k];
  if (dt == DT_str)
    fail(m->c, ERR_usage, LOC_NONE, "input '%s' holds strings: give them, --input '%s=TEXT'",
         info.name, info.name);
  u64 n, bytes;
  if (!shape_count(dim, info.rank, &n) || !size_mul(n, dtype_bytes(dt), &bytes) ||
      bytes > (u64)1 << 36)
    fail(m->c, ERR_input, LOC_NONE, "input '%s' takes more than 64 GiB: give an array", info.name);
  Tensor *t = tensor_new(&m->c->keep, dt, dim, info.rank);
  fill_random(t, seed * 1000003 + i, limit);
  return t;
}

/* Broadcasts one element to input i; for strings to every row. */
static Tensor *broadcast_scalar(Ingot *m, u32 i, const Tensor *one) {
  IngotTensor info = ingot_input_info(m, i);
  u32 rank = info.rank - (one->dt == DT_str && info.rank);
  Tensor *t = tensor_new(&m->c->keep, one->dt, info.dim, rank);
  for (u64 k = 0; k < t->n; k++) tensor_set(t, k, tensor_get(one, 0));
  return t;
}

static const char *input_type(Ingot *m, u32 i) {
  IngotTensor info = ingot_input_info(m, i);
  return shape_text(m->c, info.dtype, info.dim, info.rank);
}

/* numpy name of a type; NULL: none. */
static const char *numpy_name(DType dt) {
  static const char *const name[DT_COUNT] = {
      [DT_f64] = "float64", [DT_f32] = "float32", [DT_f16] = "float16", [DT_i64] = "int64",
      [DT_i32] = "int32",   [DT_i16] = "int16",   [DT_i8] = "int8",     [DT_u64] = "uint64",
      [DT_u32] = "uint32",  [DT_u16] = "uint16",  [DT_u8] = "uint8",    [DT_bool] = "bool"};
  return name[dt];
}

const char *api_scale_text(Ctx *c, const QuantParams *s) {
  return str_text(c, str_fmt(c, "(x %c %lld) * %.9g", s->zero < 0 ? '+' : '-',
                             (long long)(s->zero < 0 ? -s->zero : s->zero), s->scale));
}

/* numpy expression that converts array x for an input; "": none. */
static const char *cast_advice(Ingot *m, Str name, DType from, DType to) {
  const char *cast = from == DT_str ? NULL : numpy_name(to);
  const QuantParams *s =
      dtype_is_float(from) && m->g ? scale_find(&m->g->scale, name, false) : NULL;
  Scalar lo, hi;
  if (!cast) return "";
  if (!s) return str_text(m->c, str_fmt(m->c, "; in numpy: x.astype(\"%s\")", cast));
  dtype_limits(to, &lo, &hi);
  return str_text(m->c, str_fmt(m->c,
                                "; it is quantized, %s: in numpy: np.clip(np.round(x / %.9g %c "
                                "%lld), %lld, %lld).astype(\"%s\")",
                                api_scale_text(m->c, s), s->scale, s->zero < 0 ? '-' : '+',
                                (long long)(s->zero < 0 ? -s->zero : s->zero), (long long)lo.i,
                                (long long)hi.i, cast));
}

Tensor *api_check_input(Ingot *m, u32 i, Tensor *t) {
  IngotTensor info = ingot_input_info(m, i);
  DType dt = dtype_from_name(info.dtype, strlen(info.dtype));
  Tensor *rows = t->dt == DT_str && dt != DT_str ? api_encode_strings(m, i, t) : NULL;
  if (rows) t = rows;
  const char *have = shape_text(m->c, dtype_info[t->dt].name, t->dim, t->rank);
  if (t->dt != dt)
    fail(m->c, ERR_input, LOC_NONE, "input '%s' is %s, the array given is %s%s", info.name,
         input_type(m, i), have, cast_advice(m, str_of(m->c, info.name), t->dt, dt));
  bool fits = t->rank == info.rank;
  for (u32 k = 0; fits && k < info.rank; k++) fits = info.dim[k] < 0 || info.dim[k] == t->dim[k];
  if (!fits)
    fail(m->c, ERR_input, LOC_NONE, "input '%s' is %s, the array given is %s", info.name,
         input_type(m, i), have);
  return t;
}

/* Parses a value once the type is known. */
static void read_text(Ingot *m, u32 i) {
  IngotTensor info = ingot_input_info(m, i);
  InputBinding *v = find_binding(m, i);
  if (!v || v->kind != IB_text) return;
  v->data =
      api_parse_value(m->c, info.name, dtype_from_name(info.dtype, strlen(info.dtype)), v->text);
  v->kind = v->data->rank ? IB_data : IB_fill;
}

_Noreturn void api_no_input(Ingot *m, Str name) {
  Ctx *c = m->c;
  StrBuf all = sb_new(&c->scratch);
  Suggestion near = suggest_new(str_text(c, name));
  const DeclValue **input = m->opened.model ? m->opened.model->input : NULL;
  u32 n = m->opened.model ? m->opened.model->ninput : api_param_count(m);
  for (u32 i = 0; i < n; i++) {
    Str x = input ? input[i]->name : api_param_name(m, i);
    if (x == name && m->options.state.n)
      fail(c, ERR_usage, LOC_NONE,
           "input '%s' is state (--state): it starts with zeros and takes no value", show(c, name));
    suggest_try(&near, str_text(c, x));
    sb_fmt(&all, "%s%s: ", i ? ", " : "", show(c, x));
    sb_puts(&all, input ? decl_type_string(c, x, &input[i]->type) : input_type(m, i));
  }
  fail(c, ERR_usage, LOC_NONE, "the model has no input '%s'; %s%s%s", show(c, name),
       n ? "inputs are " : "it has none", sb_cstr(&all), suggest_text(c, &near));
}

/* Is there a binding for the input or a part of it such as x.0? */
static bool has_binding(Ingot *m, Str name) {
  const char *text = str_text(m->c, name);
  size_t n = strlen(text);
  for (u32 k = 0; k < m->options.given.n; k++) {
    Str given = m->options.given.at[k].name;
    const char *other = given ? str_text(m->c, given) : "";
    if (given == name) return true;
    bool part = m->opened.model && !strncmp(other, text, n) && other[n] == '.';
    if (part && api_takes_input(m, given)) return true;
  }
  return false;
}

/* First input that would be generated, including labels of a training step; 0: none. */
static Str first_unbound(Ingot *m) {
  u32 n = m->opened.model ? m->opened.model->ninput : api_param_count(m);
  Str label = str_of(m->c, "label");
  if (m->options.train && !has_binding(m, label)) return label;
  for (u32 i = 0; i < n; i++) {
    Str name = m->opened.model ? m->opened.model->input[i]->name : api_param_name(m, i);
    if (!has_binding(m, name) && !(m->opened.model && api_is_state_input(m, name))) return name;
  }
  return 0;
}

void api_warn_unused(Ctx *c, Loc loc, Str name) {
  warn(c, loc, "array '%s' is not an input of the model: ignored", show(c, name));
}

/* An unused array in an archive is an error if an input is missing, which may have been misnamed.
 */
void api_skip_binding(Ingot *m, InputBinding *v) {
  if (v->left) return;
  m->options.complete = m->options.complete || !first_unbound(m);
  if (!v->archive || !m->options.complete) api_no_input(m, v->name);
  api_warn_unused(m->c, (Loc){.file = v->archive, .index = -1}, v->name);
  v->left = true;
}

Tensor **api_inputs(Ingot *m, u64 seed) {
  u32 n = api_param_count(m), *limit = api_index_limits(m);
  Tensor **in = NEWS(&m->c->keep, Tensor *, n + 1);
  m->run.raw = NEWS(&m->c->keep, Tensor *, n + 1);
  for (u32 k = 0; k < m->options.given.n; k++) {
    InputBinding *v = &m->options.given.at[k];
    bool found = !v->name && v->pos < (i32)n;
    for (u32 i = 0; i < n; i++) found = found || (v->name && v->name == api_param_name(m, i));
    if (!found && !v->name)
      fail(m->c, ERR_input, LOC_NONE, "input number %d is given, but the model has only %u", v->pos,
           n);
    if (!found && !v->frozen && !api_is_redundant(m, v)) api_skip_binding(m, v);
  }
  for (u32 i = 0; i < n; i++) read_text(m, i);
  refuse_open_dims(m);
  for (u32 i = 0; i < n; i++) {
    InputBinding *v = find_binding(m, i);
    Tensor *t = !v                   ? api_train_default(m, i)
                : v->kind == IB_fill ? broadcast_scalar(m, i, v->data)
                                     : api_binding_tensor(m, v);
    in[i] = t ? api_check_input(m, i, t) : make_random(m, i, seed, limit[i]);
    m->run.raw[i] = t ? t : in[i];
    if (!v && !t && !m->run.in)
      warn(m->c, LOC_NONE, "input '%s' is not given: filled with random numbers (seed %llu)",
           show(m->c, api_param_name(m, i)), (unsigned long long)seed);
  }
  return in;
}

/* ---- outputs ---- */

Tensor *api_tensor_row(Ctx *c, const Tensor *stack, u32 i) {
  u64 n;
  shape_count(stack->dim + 1, stack->rank - 1, &n);
  const u8 *from = (const u8 *)stack->data + n * i * dtype_bytes(stack->dt);
  return tensor_wrap(&c->keep, stack->dt, stack->dim + 1, stack->rank - 1, from);
}

/* Assembles an output of the model from outputs of the graph. */
static PbValue datum_of(Ingot *m, const OutputStructure *p) {
  Arena *a = &m->c->keep;
  if (p->kind == TY_tensor) return (PbValue){.kind = TY_tensor, .t = m->run.out[p->flat]};
  PbValue d = {.kind = p->kind, .n = p->n};
  if (p->kind == TY_seq && p->open) {
    const Tensor *stack = m->run.out[p->elem[0].flat];
    i64 n = tensor_get(m->run.out[p->elem[1].flat], 0).i;
    d.n = n < 0 || n > stack->dim[0] ? 0 : (u32)n;
    d.elem = NEWS(a, PbValue, d.n + 1);
    for (u32 i = 0; i < d.n; i++) d.elem[i].t = api_tensor_row(m->c, stack, i);
    return d;
  }
  if (p->open && !tensor_get(m->run.out[p->elem[p->n].flat], 0).i) d.n = 0;
  d.elem = NEWS(a, PbValue, d.n + 1);
  for (u32 i = 0; i < d.n; i++) d.elem[i] = datum_of(m, &p->elem[i]);
  return d;
}

/* Outputs with names. A sequence whose length is known only now is split into elements. */
static NamedTensors named_outputs(Ingot *m) {
  Arena *a = &m->c->keep;
  NamedTensors v = {0};
  bool *stacked = NEWS(a, bool, m->run.nout + 1);
  u32 nport = m->opened.ports ? m->opened.model->noutput : 0;
  for (u32 i = 0; i < nport; i++) {
    const OutputStructure *p = &m->opened.ports[i];
    if (p->kind != TY_seq || !p->open || p->maps) continue;
    PbValue d = datum_of(m, p);
    const char *name = str_text(m->c, m->opened.model->output[i].name);
    stacked[p->elem[0].flat] = stacked[p->elem[1].flat] = true;
    for (u32 k = 0; k < d.n; k++)
      *vec_push(a, &v) = (NamedTensor){str_fmt(m->c, "%s.%u", name, k), d.elem[k].t};
  }
  for (u32 i = 0; i < m->run.nout; i++)
    if (!stacked[i]) *vec_push(a, &v) = (NamedTensor){api_result_name(m, i), m->run.out[i]};
  return v;
}

static void write_outputs(Ingot *m, const char *text) {
  Ctx *c = m->c;
  if (!m->run.out)
    fail(c, ERR_usage, LOC_NONE, "the model has not been run: expected ingot_run before this call");
  api_need(c, text, "the path of the outputs");
  StrBuf out = sb_new(&c->keep);
  NamedTensors v = named_outputs(m);
  if (ends_with(text, ".npy")) {
    if (v.n != 1)
      fail(c, ERR_usage, LOC_NONE,
           "%s holds one array, found %u outputs: expected a name that ends in .npz, or a folder",
           text, v.n);
    data_write_npy(c, &out, v.at[0].t);
    file_write(c, text, out.at, out.n);
    return;
  }
  if (ends_with(text, ".npz")) {
    Str *name = NEWS(&c->keep, Str, v.n + 1);
    Tensor **t = NEWS(&c->keep, Tensor *, v.n + 1);
    for (u32 i = 0; i < v.n; i++) name[i] = v.at[i].name, t[i] = v.at[i].t;
    data_write_npz(c, &out, name, t, v.n);
    file_write(c, text, out.at, out.n);
    return;
  }
  const Model *g = m->opened.ports ? m->opened.model : NULL;
  u32 n = g ? g->noutput : m->run.nout;
  FileOut *f = NEWS(&c->keep, FileOut, n);
  for (u32 i = 0; i < n; i++) {
    StrBuf bytes = sb_new(&c->keep);
    PbValue d = {.kind = TY_tensor, .t = m->run.out[i]};
    if (g) d = datum_of(m, &m->opened.ports[i]);
    data_write_datum(c, &bytes, g ? g->output[i].name : api_result_name(m, i), &d);
    f[i] = (FileOut){
        .path = str_text(c, str_fmt(c, "%s/output_%u.pb", text, i)), .at = bytes.at, .n = bytes.n};
  }
  files_write(c, f, n);
}

IngotStatus ingot_write_outputs(Ingot *m, const char *path) {
  API_CALL(m, write_outputs(m, path));
}

_Noreturn void api_fail_no_archive(Ctx *c, const char *path, const char *also) {
  Loc loc = {.file = str_of(c, path), .index = -1};
  fail(c, ERR_usage, loc, "expected an .npz archive, as numpy.savez writes it%s%s", also,
       ends_with(path, ".npy") ? "; found .npy, a single array without a name" : "");
}
