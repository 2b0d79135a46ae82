/* session.c: open, import, passes, print, run.
 *
 * In: calls of ingot.h. Out: statuses. Everything that can fail runs inside ctx_protect; the first
 * failure of an object is final.
 */
#include "api/api_internal.h"

#include <stdlib.h>
#include <string.h>

Ingot *ingot_new(const IngotAlloc *alloc) {
  Alloc a = *alloc_system();
  if (alloc && !alloc->resize) return NULL;
  if (alloc) a = (Alloc){alloc->resize, alloc->user};
  Ctx *c = ctx_new(&a, NULL);
  if (!c) return NULL;
  Ingot *m = a.resize(a.user, NULL, 0, sizeof *m);
  if (!m) {
    ctx_free(c);
    return NULL;
  }
  memset(m, 0, sizeof *m);
  m->c = c;
  m->run.once.c = c;
  return m;
}

void ingot_free(Ingot *m) {
  if (!m) return;
  Alloc a = m->c->alloc;
  api_close_c(m);
  api_close_jit(m);
  api_close_cuda(m);
  arena_clear(&m->run.once);
  ctx_free(m->c);
  a.resize(a.user, m, sizeof *m, 0);
}

uint32_t ingot_message_count(const Ingot *m) {
  u32 n = 0;
  for (const Diag *d = m ? m->c->diags : NULL; d; d = d->next) n++;
  return n;
}

const char *ingot_message(const Ingot *m, uint32_t i, int *is_warning) {
  for (const Diag *d = m ? m->c->diags : NULL; d; d = d->next)
    if (i-- == 0) {
      if (is_warning) *is_warning = d->level == LV_warning;
      return d->text;
    }
  return NULL;
}

bool api_enter(Ingot *m, ProtectedCall *d) {
  d->c = NULL;
  if (m && !m->status) ctx_protect_begin(m->c, d);
  return d->c != NULL;
}

IngotStatus api_leave(Ingot *m, const ProtectedCall *d) {
  if (d->c) m->status = ctx_protect_end(d);
  return m ? (IngotStatus)m->status : INGOT_USAGE;
}

IngotStatus api_call(Ingot *m, void (*fn)(Ctx *c, void *arg), void *arg) {
  API_CALL(m, fn(m->c, arg));
}

void api_return_text(StrBuf *t, const char **text, size_t *n) {
  if (text) *text = t ? sb_cstr(t) : "";
  if (n) *n = t ? t->n : 0;
}

static void make_text(Ingot *m, TextFn *fn, bool json, const char **text, size_t *n) {
  StrBuf out = sb_new(&m->c->keep);
  api_need(m->c, text && n ? text : NULL, "a pointer to the text");
  fn(m, json, &out);
  api_return_text(&out, text, n);
}

IngotStatus api_call_text(Ingot *m, TextFn *fn, bool json, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, make_text(m, fn, json, text, n));
}

/* ---- open ---- */

static void open_model(Ingot *m, const char *path, bool is_file, const void *data, size_t n) {
  Ctx *c = m->c;
  if (m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "expected a session without a model; one is open already");
  api_need(c, path, is_file ? "the path of the model" : "the name of the model");
  if (n) api_need(c, data, "the model");
  Source s = {.at = n ? data : (const u8 *)"", .n = n, .file = str_of(c, path)};
  c->here = (Loc){.file = s.file, .index = -1};
  if (is_file) {
    s.path = reader_file(c, str_text(c, s.file));
    s.file = str_of(c, s.path);
    c->here.file = s.file;
    File f = file_read(c, s.path);
    s.at = f.n ? f.at : (const u8 *)"";
    s.n = f.n;
  }
  /* byte order mark of a text; the length field of a safetensors file contains zeros */
  size_t mark = memchr(s.at, 0, s.n < 8 ? s.n : 8) ? 0 : utf8_bom(s.at, s.n);
  s.at += mark;
  s.n -= mark;
  m->opened.source = s;
  if (!begins_text_form(s.at, s.n, "prog") && !api_is_bytecode(m))
    m->opened.reader = reader_open(c, &m->opened.source, &m->opened.model);
}

void api_open(Ingot *m, const char *path) {
  open_model(m, path, true, NULL, 0);
}

IngotStatus ingot_open(Ingot *m, const char *path) {
  API_CALL(m, open_model(m, path, true, NULL, 0));
}

IngotStatus ingot_open_bytes(Ingot *m, const void *data, size_t n, const char *name) {
  API_CALL(m, open_model(m, name, false, data, n));
}

/* ---- shapes ---- */

static i64 parse_extent(Ctx *c, const char *s, const char **end, const char *spec) {
  char *stop;
  if (*s < '0' || *s > '9')
    fail(c, ERR_usage, LOC_NONE, "'%s': expected a number at '%s'", spec, s);
  long long v = strtoll(s, &stop, 10);
  if (v < 0 || v > DIM_MAX)
    fail(c, ERR_usage, LOC_NONE, "'%s': expected an extent of 0 to %lld at '%s'", spec,
         (long long)DIM_MAX, s);
  *end = stop;
  return v;
}

/* A dimension has one size and one bound, and the size must be within the bound. The importer,
 * which knows the names, compares what is given by name and by position. */
static void add_dim(Ingot *m, BindDim b, const char *spec) {
  if (b.bound && !b.value)
    fail(m->c, ERR_usage, LOC_NONE, "'%s': expected a bound of at least 1", spec);
  for (u32 i = 0; i < m->options.dim.n; i++) {
    const BindDim *o = &m->options.dim.at[i];
    if (o->symbol != b.symbol || o->input != b.input || o->axis != b.axis) continue;
    bool fits = b.bound ? o->value <= b.value : b.value <= o->value;
    if (o->bound == b.bound ? o->value != b.value : !fits)
      fail(m->c, ERR_usage, LOC_NONE, "'%s': %s of this dimension was given before as %lld", spec,
           o->bound ? "the bound" : "the extent", (long long)o->value);
  }
  *vec_push(&m->c->keep, &m->options.dim) = b;
}

/* name=N, name:N, input:axis=N */
static void set_dim(Ingot *m, const char *s, bool bound) {
  Ctx *c = m->c;
  const char *eq = strrchr(s, '='), *colon = strrchr(s, ':'), *end;
  BindDim b = {.bound = bound};
  if (eq) {
    b.value = parse_extent(c, eq + 1, &end, s);
    const char *at = eq;
    while (at > s && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at < eq && at > s + 1 && at[-1] == ':') {
      b.input = str_intern(c, s, (size_t)(at - 1 - s));
      b.axis = strtoll(at, NULL, 10);
    } else {
      b.symbol = str_intern(c, s, (size_t)(eq - s));
    }
  } else if (colon) {
    b.value = parse_extent(c, colon + 1, &end, s);
    b.symbol = str_intern(c, s, (size_t)(colon - s));
  } else {
    fail(c, ERR_usage, LOC_NONE, "'%s': expected NAME=N or INPUT:AXIS=N", s);
  }
  if (*end) fail(c, ERR_usage, LOC_NONE, "'%s': unexpected '%s'", s, end);
  if (!b.symbol && !b.input) fail(c, ERR_usage, LOC_NONE, "'%s': the name is empty", s);
  add_dim(m, b, s);
}

/* b=3,n=12: names may contain commas, so a number must precede each separator. */
static bool is_list(const char *s) {
  if (!strchr(s, ',')) return false;
  for (const char *comma = strchr(s, ','); comma; comma = strchr(comma + 1, ',')) {
    const char *at = comma;
    while (at > s && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at == comma || at - s < 2 || (at[-1] != '=' && at[-1] != ':') || at[-2] == ',')
      return false;
  }
  return true;
}

static void set_dims(Ingot *m, const char *spec) {
  Ctx *c = m->c;
  api_need(c, spec, "the dimension");
  const char *s = spec;
  while (is_list(s)) {
    size_t n = strcspn(s, ",");
    set_dim(m, str_text(c, str_intern(c, s, n)), false);
    s += n + 1;
  }
  set_dim(m, s, false);
}

IngotStatus ingot_set_dim(Ingot *m, const char *spec) {
  API_CALL(m, set_dims(m, spec));
}

/* batch=4 or x:0=4, as for -d: a number after '=', and the text before it is not an input. */
static bool is_dim(Ingot *m, const char *s, const char *sign, size_t len) {
  const char *number = sign + 1;
  Str name = str_intern(m->c, s, (size_t)(sign - s));
  return *sign == '=' && m->opened.model && !model_has_input(m->c, m->opened.model, name) &&
         number + strspn(number, "0123456789") == s + len;
}

/* x:1x3x224x224 or x:[1,3,224,224]; several of the first form separated by ','; or dimensions. */
static void set_shape(Ingot *m, const char *spec, bool is_max) {
  Ctx *c = m->c;
  api_need(c, spec, "the shape");
  const char *s = spec;
  if (!*s) fail(c, ERR_usage, LOC_NONE, "the shape is empty, expected extents such as 1,3,224,224");
  while (*s) {
    size_t len = strcspn(s, ",[");
    if (s[len] == '[') len = strcspn(s, "]");
    const char *colon = NULL;
    for (size_t i = 0; i < len; i++)
      if (s[i] == ':' || s[i] == '=') colon = s + i;
    if (!colon || colon == s) fail(c, ERR_usage, LOC_NONE, "'%s': expected INPUT:AxBxC", spec);
    if (is_dim(m, s, colon, len)) {
      set_dim(m, str_text(c, str_intern(c, s, len)), is_max);
      s += len + (s[len] == ',');
      continue;
    }
    Str input = str_intern(c, s, (size_t)(colon - s));
    const char *at = colon + 1;
    bool bracket = *at == '[';
    if (bracket) at++;
    if (bracket != (s[len] == ']'))
      fail(c, ERR_usage, LOC_NONE, "'%s': expected '[' and ']' in pairs, as in x[1,3]", spec);
    u32 from = m->options.dim.n;
    for (i64 axis = 0; at < s + len; axis++) {
      BindDim b = {.input = input, .axis = axis, .bound = is_max != 0};
      b.value = parse_extent(c, at, &at, spec);
      add_dim(m, b, spec);
      if (at < s + len && *at != 'x' && *at != ',')
        fail(c, ERR_usage, LOC_NONE, "'%s': expected 'x' at '%s'", spec, at);
      if (at < s + len && ++at == s + len)
        fail(c, ERR_usage, LOC_NONE, "'%s': an extent is missing at the end", spec);
    }
    for (u32 i = from; i < m->options.dim.n; i++)
      m->options.dim.at[i].rank = m->options.dim.n - from;
    s += len;
    s += *s == ']';
    s += *s == ',';
  }
}

IngotStatus ingot_set_shape(Ingot *m, const char *spec, int is_max) {
  API_CALL(m, set_shape(m, spec, is_max != 0));
}

/* ---- import ---- */

typedef struct ImportArg {
  Ingot *m;
  const ImportOptions *o;
} ImportArg;

static void do_read(Ctx *c, void *arg) {
  ImportArg *a = arg;
  a->m->g = a->m->opened.reader->import(c, &a->m->opened.source, a->m->opened.model, a->o);
}

static LmOptions lm_options(const Ingot *m) {
  LmOptions w = m->options.language;
  if (!w.kept) w.kept = m->codegen.precise ? DT_f32 : DT_f16;
  return w;
}

/* Imports with a reader that supports options. */
static void import_bound(Ingot *m, bool symbolic) {
  Ctx *c = m->c;
  const Model *model = m->opened.model;
  VEC(BindInput) bind = {0};
  MissingDims missing = {0};
  m->opened.frozen.n = 0;
  m->opened.undecided = 0;
  for (u32 i = 0; i < m->options.given.n; i++) {
    InputBinding *v = &m->options.given.at[i];
    if (v->pos >= (i32)model->ninput)
      fail(c, ERR_input, LOC_NONE, "input number %d is given, but the model has only %u", v->pos,
           model->ninput);
    if (v->pos >= 0) v->name = model->input[v->pos]->name;
    v->pos = -1; /* sequences change the positions of inputs in the graph */
    if (!api_takes_input(m, v->name)) {
      api_skip_binding(m, v);
      continue;
    }
    if (!model_has_input(c, m->opened.model, v->name)) continue; /* input of the training step */
    if (api_is_redundant(m, v) || (v->kind != IB_data && v->kind != IB_fill)) continue;
    *vec_push(&c->keep, &bind) =
        (BindInput){v->name, api_binding_tensor(m, v), v->kind == IB_fill, v->frozen};
  }
  ImportOptions o = {.language = lm_options(m),
                     .dim = m->options.dim.at,
                     .ndim = m->options.dim.n,
                     .input = bind.at,
                     .ninput = bind.n,
                     .symbolic = symbolic,
                     .opens = m->options.train != NULL,
                     .trains = m->options.train && train_is_training(m->options.part),
                     .frozen = &m->opened.frozen,
                     .missing = &missing,
                     .undecided = &m->opened.undecided,
                     .outputs = &m->opened.ports};
  Err e = ctx_protect(c, do_read, &(ImportArg){m, &o});
  if (e && missing.n && !m->options.hint.n) {
    api_guess_dims(m, &o, &missing);
    diag_raise(c);
  }
  if (e) longjmp(*c->door, (int)e);
}

static IngotTensor describe(const Ingot *m, Str name, DType dt, const Dim *dim, u32 rank) {
  i64 *d = NEWS(&m->c->keep, i64, rank);
  for (u32 i = 0; i < rank; i++) d[i] = dim_is_const(dim[i]) ? dim[i] : -1;
  return (IngotTensor){str_text(m->c, name), dtype_info[dt].name, rank, d, NULL, 0};
}

/* The size given for a dimension of a program's input; NULL: none. */
static BindDim *find_bound(const Ingot *m, const Buf *b, u32 k) {
  Sym sym;
  bool named = dim_is_sym(m->p->dims, b->dim[k], SY_input, &sym);
  for (u32 i = 0; i < m->options.dim.n; i++) {
    BindDim *d = &m->options.dim.at[i];
    bool by_name = named && d->symbol && d->symbol == dim_syminfo(m->p->dims, sym)->name;
    if (!d->bound && (by_name || (d->input && d->input == b->name && d->axis == k))) return d;
  }
  return NULL;
}

/* Applies -d to a program: sizes for the arrays of a run, which checks their bounds. */
static void bind_program(Ingot *m) {
  Ctx *c = m->c;
  for (u32 i = 0; i < m->p->in.n; i++) {
    const Buf *b = prog_buf(m->p, m->p->in.at[i]);
    for (u32 k = 0; k < b->rank; k++) {
      BindDim *d = find_bound(m, b, k);
      if (!d) continue;
      d->used = true;
      if (dim_is_const(b->dim[k]) && b->dim[k] != d->value)
        fail(c, ERR_usage, LOC_NONE, "dimension %u of input '%s' is %lld, found %lld", k,
             show(c, b->name), (long long)b->dim[k], (long long)d->value);
    }
  }
  for (u32 i = 0; i < m->options.dim.n; i++) {
    const BindDim *d = &m->options.dim.at[i];
    if (!d->used && !d->bound)
      fail(c, ERR_usage, LOC_NONE, "the program has no dimension '%s'",
           show(c, d->symbol ? d->symbol : d->input));
  }
}

/* Computed when the model changes, so that asking for a description cannot run out of memory. */
void api_describe(Ingot *m) {
  for (u32 out = 0; out < 2; out++) {
    u32 n = out ? ingot_output_count(m) : api_param_count(m);
    m->facts.desc[out] = NEWS(&m->c->keep, IngotTensor, n);
    m->facts.ndesc[out] = n;
    for (u32 i = 0; i < n; i++) {
      Str name = out ? api_result_name(m, i) : api_param_name(m, i);
      if (m->g) {
        const GraphRegion *b = &m->g->region.at[1];
        u32 at = api_graph_index(m, i, out != 0);
        const Type *t = graph_type(m->g, out ? b->ret.at[at] : b->param.at[at]);
        m->facts.desc[out][i] = describe(m, name, t->dt, t->dim, t->rank);
      } else {
        const Buf *b = prog_buf(m->p, out ? m->p->out.at[i] : m->p->in.at[i]);
        Dim dim[MAX_RANK];
        for (u32 k = 0; k < b->rank; k++) {
          const BindDim *d = out || dim_is_const(b->dim[k]) ? NULL : find_bound(m, b, k);
          dim[k] = d ? d->value : b->dim[k];
        }
        m->facts.desc[out][i] = describe(m, name, b->dt, dim, b->rank);
      }
    }
  }
}

static void import(Ingot *m, bool symbolic) {
  Ctx *c = m->c;
  const Source *s = &m->opened.source;
  if (!s->at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  if (m->opened.reader && m->opened.reader->binds) {
    import_bound(m, symbolic);
    return;
  }
  if (m->opened.reader) {
    m->g = m->opened.reader->import(c, s, m->opened.model, &(ImportOptions){.symbolic = symbolic});
  } else if (api_is_bytecode(m)) {
    api_read_bytecode(m);
  } else {
    File weights = reader_weights_file(c, s->path);
    m->p = prog_parse(c, (const char *)s->at, s->n, s->file, weights.at, weights.n);
  }
  if (m->p) bind_program(m);
  api_freeze_text(m);
}

/* Does the graph quantize computed values, or may it? Dequantizing is exact. */
static bool quantizes(const Graph *g) {
  if (g->rounds) return true;
  for (NodeId i = 1; i < g->node.n; i++) {
    const Node *n = &g->node.at[i];
    if (n->op != OP_cast || !dtype_is_float(g->val.at[n->in[0]].type.dt)) continue;
    DType to = (DType)node_int(n, AT_to, DT_none);
    u32 max_bits = dtype_is_float(to) ? 8 : node_cast_sat(n) && dtype_is_int(to) ? 16 : 0;
    if (dtype_info[to].bits <= max_bits) return true;
  }
  return false;
}

void api_graph_stats(Ingot *m) {
  m->facts.macs = graph_macs(m->g, true);
  m->facts.rounds = quantizes(m->g);
}

void api_import(Ingot *m, bool symbolic) {
  if (m->g || m->p) return;
  guard_log(m->c, "import");
  import(m, symbolic);
  guard_log(m->c, NULL);
  api_add_train_step(m);
  api_add_grad(m);
  api_bind_state(m);
  if (api_has_state(m)) m->opened.ports = NULL; /* state changes the positions of outputs */
  api_describe(m);
  if (m->g) api_graph_stats(m);
}

IngotStatus ingot_import(Ingot *m, int symbolic) {
  API_CALL(m, api_import(m, symbolic != 0));
}

/* ---- passes and text ---- */

/* Removes the pseudo-pass "bytecode" from a list of passes; *found: it was there. */
static const char *without_bytecode(Ctx *c, const char *list, bool *found) {
  StrBuf t = sb_new(&c->keep);
  *found = false;
  for (const char *s = list; s && *s;) {
    size_t n = strcspn(s, ",");
    bool this = n == 8 && !strncmp(s, "bytecode", n);
    if (!this) {
      if (t.n) sb_puts(&t, ",");
      sb_put(&t, s, n);
    }
    *found |= this;
    s += n + (s[n] == ',');
  }
  return *found ? (t.n ? sb_cstr(&t) : NULL) : list;
}

static void dump_bytecode(Ingot *m, const IngotPassOptions *p) {
  StrBuf t = sb_new(&m->c->keep);
  if (!m->p) fail(m->c, ERR_usage, LOC_NONE, "--dump bytecode: expected all passes to run");
  vm_dump(api_vm(m), &t);
  p->on_dump(p->user, "bytecode", t.at, t.n);
}

void api_compile(Ingot *m, const IngotPassOptions *p, const CompileRequest *how) {
  bool bytecode = false;
  PassCtx u = {.c = m->c, .g = m->g, .p = m->p};
  PipeOptions o = {0};
  if (p)
    o = (PipeOptions){.start = p->start,
                      .stop = p->stop,
                      .skip = p->skip,
                      .dump = without_bytecode(m->c, p->dump, &bytecode),
                      .check = p->check != 0,
                      .brief = p->brief != 0,
                      .on_dump = p->on_dump,
                      .on_time = p->on_time,
                      .user = p->user};
  o.target = how->target;
  o.lacks_dot_i8x4 = m->codegen.lacks_dot_i8x4;
  o.for_c = m->codegen.for_c || (p && !bytecode);
  o.aim = how->aim;
  o.ram = how->arena_goal;
  o.precise = m->codegen.precise;
  o.precision = m->codegen.precision;
  o.threads = o.target && o.target->warp ? GPU_THREADS : m->codegen.threads;
  o.grain = m->codegen.grain;
  o.tune = how->aim == AIM_time ? api_load_tuning(m) : NULL; /* tile sizes were measured for time */
  pipeline_run(&u, &o);
  m->g = u.g;
  m->p = u.p;
  m->facts.tiled = u.tiled;
  m->facts.grown = u.grown;
  m->machine.made = how->target;
  api_describe(m);
  m->passed = true;
  if (bytecode && p->on_dump) dump_bytecode(m, p);
}

const Target *api_program_target(const Ingot *m) {
  return m->machine.made     ? m->machine.made
         : m->machine.target ? m->machine.target
                             : target_scalar();
}

void api_restore_graph(Ingot *m) {
  m->g = graph_copy(m->opened.origin);
  m->p = NULL;
  m->passed = false;
}

void api_run_passes(Ingot *m, const IngotPassOptions *p) {
  if (m->passed && !p && !m->p)
    fail(m->c, ERR_usage, LOC_NONE, "the passes stopped before they made a program");
  if (m->passed) return;
  api_import(m, false);
  if (p) api_need_model(m, "passes");
  if (!p && m->p) return; /* a program in text form runs as written */
  if (m->g && (m->machine.variants.n || m->codegen.aim != AIM_time || m->codegen.ram) &&
      !m->opened.origin)
    m->opened.origin = graph_copy(m->g);
  const Target *target = m->machine.target ? m->machine.target : target_scalar();
  if (p || (m->codegen.aim == AIM_time && !m->codegen.ram))
    api_compile(m, p,
                &(CompileRequest){target, m->codegen.ram ? AIM_ram : AIM_time, m->codegen.ram});
  else
    api_choose_program(m, target);
  if (m->facts.grown) warn(m->c, LOC_NONE, "%s", m->facts.grown);
}

static void make_bodies(Ingot *m) {
  Ctx *c = m->c;
  m->codegen.for_c = true;
  api_run_passes(m, NULL);
  api_need_model(m, "compiling");
  if (!m->passed) /* a program in text form lacks what back ends need but interpreters do not */
    api_compile(m, &(IngotPassOptions){.start = m->p->planned ? "bounds" : "plan"},
                &(CompileRequest){.target = api_program_target(m)});
  if (!m->machine.variants.n || m->machine.variant_progs) return;
  Ingot first = *m;
  if (!m->opened.reader)
    fail(c, ERR_usage, LOC_NONE, "several targets: expected a model, found a program");
  Prog **progs = NEWS(&c->keep, Prog *, m->machine.variants.n);
  for (u32 i = 0; i < m->machine.variants.n; i++) {
    m->machine.target = m->machine.variants.at[i];
    progs[i] = first.p;
    if (m->machine.target == first.machine.target) continue;
    api_restore_graph(m);
    api_run_passes(m, NULL);
    progs[i] = m->p;
  }
  *m = first;
  m->machine.variant_progs = progs;
}

void api_compile_variants(Ingot *m) {
  make_bodies(m);
  api_bake_prompt(m);
  api_compile_entries(m);
}

void api_need_single_entry(const Ingot *m) {
  if (m->codegen.aim != AIM_time)
    fail(
        m->c, ERR_usage, LOC_NONE,
        "--optimize-for ram or size tries several programs: expected time, for which one is shown");
  api_need_single_variant(m);
}

void api_need_single_variant(const Ingot *m) {
  if (m->machine.variants.n)
    fail(m->c, ERR_usage, LOC_NONE, "'%s' is a list of targets, expected one", m->codegen.march);
}

static void passes(Ingot *m, const IngotPassOptions *pipe) {
  api_need_single_entry(m);
  api_run_passes(m, pipe);
  m->facts.rounds =
      m->facts.rounds ||
      (m->g && quantizes(m->g)); /* passes may quantize activations that the model does not */
}

IngotStatus ingot_passes(Ingot *m, const IngotPassOptions *pipe) {
  API_CALL(m, passes(m, pipe));
}

/* Does it have quantized weights whose products quantize the activations? Products with exact
 * blocks do not. */
static bool rounds_products(const Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++)
    if (g->node.at[i].op == OP_dequantize && node_int(&g->node.at[i], AT_x_bits, 8) < 32)
      return true;
  return false;
}

/* Runs only this pass: it does not depend on the target, and no program is made. */
static void round_blocks(Ingot *m) {
  m->runs = true;
  api_import(m, false);
  if (!m->g || m->passed || !rounds_products(m->g)) return;
  api_compile(m, &(IngotPassOptions){.start = "dequantize", .stop = "dequantize"},
              &(CompileRequest){.target = target_scalar()});
  m->facts.rounds = m->facts.rounds || quantizes(m->g);
}

IngotStatus ingot_round_activations(Ingot *m) {
  API_CALL(m, round_blocks(m));
}

static void print(Ingot *m, const char **text, size_t *n, const char **weights, size_t *nweights,
                  bool brief) {
  Ctx *c = m->c;
  StrBuf t = sb_new(&c->keep), more = sb_new(&c->keep);
  t.brief = brief;
  api_need(c, text && n && (!weights || nweights) ? text : NULL, "a pointer to the text");
  api_import(m, false);
  if (m->p)
    prog_print(m->p, &t, weights ? &more : NULL);
  else
    graph_print(m->g, &t, weights ? &more : NULL);
  api_return_text(&t, text, n);
  if (weights) api_return_text(&more, weights, nweights);
}

IngotStatus ingot_print(Ingot *m, const char **text, size_t *n, const char **weights,
                        size_t *nweights) {
  api_return_text(NULL, text, n);
  if (weights) api_return_text(NULL, weights, nweights);
  API_CALL(m, print(m, text, n, weights, nweights, false));
}

IngotStatus ingot_print_brief(Ingot *m, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, print(m, text, n, NULL, NULL, true));
}

static void write_onnx(Ingot *m, const char *path) {
  api_need(m->c, path, "the path of the ONNX model");
  api_import(m, false);
  if (!m->g || m->p)
    fail(m->c, ERR_usage, LOC_NONE,
         "%s: expected a graph, found a program: --stop=canon or an earlier pass keeps the graph",
         path);
  if (api_has_state(m))
    fail(m->c, ERR_unsupported, LOC_NONE,
         "--state: ONNX has no state between runs; its inputs and outputs are written without it");
  const Model *d = m->opened.model;
  bool strings = false;
  for (u32 i = 0; d && i < d->ninput; i++) strings = strings || d->input[i]->type.dt == DT_str;
  for (u32 i = 0; d && i < d->noutput; i++) strings = strings || d->output[i].type.dt == DT_str;
  if (strings)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "has inputs or outputs of strings, which the passes turn into bytes: not written as ONNX");
  graph_write_onnx(m->c, m->g, path);
}

IngotStatus ingot_write_onnx(Ingot *m, const char *path) {
  API_CALL(m, write_onnx(m, path));
}

/* ---- parameters ---- */

u32 api_param_count(const Ingot *m) {
  return m->g ? m->g->region.at[1].param.n - m->g->state.n : m->p ? m->p->in.n : 0;
}

Str api_param_name(const Ingot *m, u32 i) {
  return m->g ? graph_val(m->g, m->g->region.at[1].param.at[api_graph_index(m, i, false)])->name
              : prog_buf(m->p, m->p->in.at[i])->name;
}

Str api_result_name(const Ingot *m, u32 i) {
  return m->g ? m->g->out_name.at[api_graph_index(m, i, true)]
              : prog_buf(m->p, m->p->out.at[i])->name;
}

uint32_t ingot_input_count(const Ingot *m) {
  return m && !m->status ? api_param_count(m) : 0; /* a failed object may be incomplete */
}

static IngotTensor description(const Ingot *m, u32 out, u32 i) {
  return m && i < m->facts.ndesc[out] ? m->facts.desc[out][i]
                                      : (IngotTensor){"", "", 0, NULL, NULL, 0};
}

IngotTensor ingot_input_info(const Ingot *m, uint32_t i) {
  return description(m, 0, i);
}

IngotTensor ingot_output_info(const Ingot *m, uint32_t i) {
  return description(m, 1, i);
}

uint32_t ingot_output_count(const Ingot *m) {
  if (!m || m->status) return 0;
  return m->g ? m->g->region.at[1].ret.n - m->g->state.n : m->p ? m->p->out.n : 0;
}

IngotTensor api_tensor(const Ingot *m, Str name, const Tensor *t) {
  return (IngotTensor){str_text(m->c, name), dtype_info[t->dt].name, t->rank, t->dim, t->data,
                       tensor_bytes(t)};
}
