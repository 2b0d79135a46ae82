/* emit_model.c: emits the model as C.
 *
 * In: a model and options. Out: source and header. Runs the model once as bytecode on inputs made
 * by a formula, to compute the expected result of the self-test. Models that would take long, or
 * that refuse such inputs, get no self-test, and the file says so.
 */
#include "api/api_internal.h"

#include <string.h>
#include <strings.h>

/* Limit for the default self-test: estimated operations, and bytecode instructions of loops with
 * unknown trip count. About 2 s. */
#define SELFTEST_COST 2e8
#define SELFTEST_FUEL ((u64)5e7)

/* Larger weights go to a separate file by default. */
#define FILE_BYTES ((u64)8 << 20)

/* Prefixes used by the runtime (ig_, IG_, im_, imk_) and by compilers (__). The name also occurs in
 * upper case, so case is ignored. */
static bool is_taken(const char *s) {
  static const char *const own[] = {"ig", "im", "imk"};
  size_t n = strcspn(s, "_");
  for (u32 i = 0; i < sizeof own / sizeof *own; i++)
    if (strlen(own[i]) == n && !strncasecmp(s, own[i], n)) return true;
  return s[0] == '_' && s[1] == '_';
}

static bool is_identifier(const char *s) {
  if (!(*s == '_' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))) return false;
  for (; *s; s++)
    if (!(*s == '_' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
          (*s >= '0' && *s <= '9')))
      return false;
  return true;
}

static WeightMode weight_mode(Ctx *c, const char *s) {
  static const char *const names[] = {"auto", "literal", "text", "file", "pointer"};
  if (s && !strcmp(s, "inline")) s = "auto"; /* in the C file, in the form that suits their size */
  for (u32 i = 0; i < sizeof names / sizeof *names; i++)
    if (!s || !strcmp(s, names[i])) return (WeightMode)i;
  Suggestion near = suggest_new(s);
  suggest_try(&near, "inline");
  for (u32 i = 1; i < sizeof names / sizeof *names; i++) suggest_try(&near, names[i]);
  fail(c, ERR_usage, LOC_NONE, "--weights '%s': expected inline, literal, text, file or pointer%s",
       s, suggest_text(c, &near));
}

/* ---- the self-test ---- */

enum { MAX_SPLIT = 64 };

typedef struct TestRun {
  Ingot *m;
  Prog *p;
  bool flushes; /* see Target */
  bool loops;   /* the file has scalar loops instead of vectors, which round differently */
  UnfusedExprs unfused;
  SelfTest st;
  i64 *size;
  Tensor **in, **out;
  u64 fuel;        /* limit for data-dependent loops */
  const char *why; /* why the self-test is missing */
} TestRun;

/* Computes the result of the scalar loops that replace vectors. */
static void run_unfused(Ctx *c, TestRun *r, const VmOptions *o) {
  Prog *p = r->p;
  Tensor **out = NEWS(&c->keep, Tensor *, p->out.n + 1);
  r->unfused = prog_unfuse(p, &c->keep);
  if (!r->unfused.any) return;
  vm_run(vm_compile(p, &r->m->run.once), o, r->in, out, &c->keep);
  r->st.loops_hash = selftest_hash(out, p->out.n, r->flushes);
}

/* Symbols take their upper bounds, to test the arena. Symbols set at run time, such as the length
 * of a state, take their minimum. */
static void run_test(Ctx *c, void *arg) {
  TestRun *r = arg;
  Prog *p = r->p;
  u32 ns = dim_nsyms(p->dims);
  r->size = NEWS(&c->keep, i64, ns + 1);
  for (u32 s = 0; s < ns; s++) {
    const SymInfo *info = dim_syminfo(p->dims, s);
    r->size[s] = info->kind == SY_data ? info->lo : info->hi;
  }
  r->in = NEWS(&c->keep, Tensor *, p->in.n + 1);
  const u32 *limit = api_index_limits(r->m);
  r->out = NEWS(&c->keep, Tensor *, p->out.n + 1);
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    i64 dim[MAX_RANK];
    u64 n;
    for (u32 k = 0; k < b->rank; k++) dim[k] = dim_eval(p->dims, b->dim[k], r->size);
    if (!shape_count(dim, b->rank, &n) || n > (u64)1 << 28) {
      r->why = "the inputs are too large";
      return;
    }
    r->in[i] = tensor_new(&c->keep, b->dt, dim, b->rank);
    if (!selftest_fill(r->in[i], i, limit[i])) {
      r->why = "an input has a type without a formula";
      return;
    }
  }
  VmOptions o = {.fuel = r->fuel};
  vm_run(vm_compile(p, &r->m->run.once), &o, r->in, r->out, &c->keep);
  u64 hash = selftest_hash(r->out, p->out.n, r->flushes);
  r->st = (SelfTest){r->size, r->in, r->out, limit, hash, hash};
  if (r->loops) run_unfused(c, r, &o);
}

/* Running out of memory is an error: the same model must give the same file on a smaller machine.
 */
static void try_test(TestRun *r) {
  const char *why;
  Arena *once = &r->m->run.once;
  Mark before = arena_mark(once);
  Err e = ctx_try(r->m->c, run_test, r, &why);
  arena_rewind(once, before);
  if (r->unfused.any) prog_fuse(r->p, &r->unfused);
  if (!e) return;
  r->st = (SelfTest){0};
  if (e == ERR_unsupported && r->fuel) /* the vm reached its limit */
    r->why = "the model runs too long; --selftest forces one";
  else
    r->why = str_text(r->m->c, str_fmt(r->m->c, "the model refuses generated inputs: %s", why));
}

static bool is_long(Ingot *m, Prog *p) {
  NodeId dear;
  return (m->g && graph_steps(m->g, &dear) > SELFTEST_COST) || prog_steps(p) > SELFTEST_COST;
}

static TestRun *make_test(Ingot *m, Prog *p, bool flushes, bool loops, int wish) {
  TestRun *r = NEW(&m->c->keep, TestRun);
  *r = (TestRun){.m = m, .p = p, .flushes = flushes, .loops = loops};
  if (!wish) r->fuel = SELFTEST_FUEL;
  if (wish < 0) {
    r->why = "not wanted";
  } else if (!wish && is_long(m, p)) {
    r->why = "a run takes too long by estimate; --selftest forces one";
  } else {
    try_test(r);
  }
  return r;
}

/* ---- text ---- */

/* Is it a bound for a dimension that the model fixes? */
static bool is_unused_dim(const Ingot *m, const BindDim *d) {
  for (u32 i = 0; d->bound && !d->symbol && i < m->p->in.n; i++) {
    const Buf *b = prog_buf(m->p, m->p->in.at[i]);
    if (b->name == d->input && d->axis >= 0 && d->axis < b->rank)
      return dim_is_const(b->dim[d->axis]);
  }
  return false;
}

/* Between words. */
static const char *separator(const StrBuf *t) {
  return t->n ? " " : "";
}

const char *api_march_text(Ingot *m, const Target *one) {
  StrBuf t = sb_new(&m->c->keep);
  for (u32 i = 0; i < m->machine.variants.n; i++)
    sb_fmt(&t, "%s%s", i ? "," : "", m->machine.variants.at[i]->name);
  return t.n ? sb_cstr(&t) : one->name;
}

/* Prints the options on inputs of a model. */
static void put_given_shapes(const Ingot *m, StrBuf *t) {
  if (m->entries.entry) sb_fmt(t, "%sentry %s", separator(t), m->entries.entry);
  for (u32 i = 0; i < m->options.dim.n; i++) {
    const BindDim *b = &m->options.dim.at[i];
    if (is_unused_dim(m, b)) continue;
    sb_puts(t, separator(t));
    if (b->symbol)
      sb_puts(t, str_text(m->c, b->symbol));
    else
      sb_fmt(t, "%s:%lld", str_text(m->c, b->input), (long long)b->axis);
    sb_fmt(t, b->bound ? "=0-%lld" : "=%lld", (long long)b->value);
  }
  for (u32 i = 0; i < m->options.given.n; i++)
    if (m->options.given.at[i].frozen)
      sb_fmt(t, "%sfreeze %s", separator(t), str_text(m->c, m->options.given.at[i].name));
}

static void put_language(const Ingot *m, StrBuf *t) {
  const LmOptions *w = &m->options.language;
  if (w->context) sb_fmt(t, "%scontext=%lld", separator(t), (long long)w->context);
  if (w->chunk) sb_fmt(t, "%schunk=%lld", separator(t), (long long)w->chunk);
  if (w->every) sb_fmt(t, "%severy-token", separator(t));
  if (w->kept) sb_fmt(t, "%scache=%s", separator(t), dtype_info[w->kept].name);
  if (w->x_bits) sb_fmt(t, "%sactivations=%u", separator(t), w->x_bits);
  if (m->options.prompt)
    sb_fmt(t, "%sbake-prompt=%016llx", separator(t),
           (unsigned long long)hash_bytes(m->options.prompt, strlen(m->options.prompt)));
  if (m->options.day) sb_fmt(t, "%sday=%lld", separator(t), (long long)(m->options.day / 86400));
}

/* All options that affect the output, in canonical form. */
static const char *options_text(Ingot *m, const IngotCodegen *o) {
  StrBuf t = sb_new(&m->c->keep);
  for (u32 i = 0; i < api_entry_count(m); i++) put_given_shapes(api_entry(m, i), &t);
  put_language(m, &t);
  if (m->machine.variants.n || (m->machine.target && m->machine.target->lanes > 1))
    sb_fmt(&t, "%smarch=%s", separator(&t), api_march_text(m, m->machine.target));
  if (m->codegen.precise) sb_fmt(&t, "%sprecise", separator(&t));
  if (m->codegen.precision)
    sb_fmt(&t, "%sprecision=%s", separator(&t), precision_name[m->codegen.precision]);
  if (m->tuning.tune) sb_fmt(&t, "%stuned", separator(&t));
  if (m->codegen.aim != AIM_time)
    sb_fmt(&t, "%soptimize-for=%s", separator(&t), m->codegen.aim == AIM_ram ? "ram" : "size");
  if (m->codegen.ram) sb_fmt(&t, "%sram=%llu", separator(&t), (unsigned long long)m->codegen.ram);
  if (m->codegen.threads > 1)
    sb_fmt(&t, "%sthreads=%u%s", separator(&t), m->codegen.threads,
           m->codegen.openmp ? " openmp" : "");
  if (o->weights) sb_fmt(&t, "%sweights=%s", separator(&t), o->weights);
  for (u32 k = 0; k < api_entry_count(m); k++)
    for (u32 i = 0; i < api_entry(m, k)->options.state.n; i++)
      sb_fmt(&t, "%sstate %s", separator(&t), api_entry(m, k)->options.state.at[i]);
  if (o->selftest) sb_fmt(&t, "%s%sselftest", separator(&t), o->selftest < 0 ? "no-" : "");
  if (o->debug) sb_fmt(&t, "%sdebug", separator(&t));
  if (o->split > 1) sb_fmt(&t, "%ssplit=%d", separator(&t), o->split);
  if (o->profile) sb_fmt(&t, "%sprofile", separator(&t));
  return sb_cstr(&t);
}

/* ---- entries ---- */

/* Entries of a variant with their self-tests; why: first reason for a missing one. */
static EmitEntry *make_entries(Ingot *m, u32 variant, const Target *t, bool loops, int selftest,
                               const char **why) {
  u32 n = api_entry_count(m);
  EmitEntry *to = NEWS(&m->c->keep, EmitEntry, n);
  for (u32 i = 0; i < n; i++) {
    Ingot *x = api_entry(m, i);
    Prog *p = api_program(x, variant);
    TestRun *r = *why ? NULL : make_test(x, p, t->flushes, loops, selftest);
    if (r && r->why) *why = r->why;
    to[i] = (EmitEntry){x->entries.entry, p, *why ? NULL : &r->st, x->facts.macs,
                        x->g ? &x->g->scale : NULL};
  }
  return to;
}

/* Name of the file without the folder. Graph names by converters, such as main_graph, are
 * meaningless. For bytes: the name of the graph. */
static Str name_of(const Ingot *m) {
  if (!m->opened.source.path || !m->opened.source.file)
    return m->g && m->g->name ? m->g->name : m->p->name;
  const char *path = str_text(m->c, m->opened.source.file), *slash = strrchr(path, '/');
  return str_of(m->c, slash ? slash + 1 : path);
}

const char *api_source_text(Ingot *m) {
  StrBuf t = sb_new(&m->c->keep);
  for (u32 i = 0; i < api_entry_count(m); i++) {
    const Ingot *x = api_entry(m, i);
    sb_fmt(&t, "%s%s", i ? ", " : "", str_text(m->c, name_of(x)));
  }
  return sb_cstr(&t);
}

u64 api_source_hash(Ingot *m) {
  u64 hash = hash_bytes(m->opened.source.at, m->opened.source.n);
  for (u32 i = 1; i < api_entry_count(m); i++) {
    const Source *s = &api_entry(m, i)->opened.source;
    hash = (hash ^ hash_bytes(s->at, s->n)) * 1099511628211u;
  }
  return hash;
}

/* Refuses options that a file with several entries does not support. */
static void need_one_entry(Ingot *m, const IngotCodegen *o) {
  static const char *const what[] = {"--caller", "--profile", "language models"};
  bool wanted[] = {o->caller, o->profile, false};
  if (api_entry_count(m) == 1) return;
  for (u32 i = 0; i < api_entry_count(m); i++)
    wanted[2] |= api_chat_assets(api_entry(m, i)) != NULL;
  for (u32 i = 0; i < sizeof what / sizeof *what; i++)
    if (wanted[i]) fail(m->c, ERR_unsupported, LOC_NONE, "%s: expected a single model", what[i]);
}

static EmitFacts emit_late(Ingot *m, const IngotCodegen *o, bool plays, StrBuf *source,
                           StrBuf *header, DeferredTexts *late) {
  Ctx *c = m->c;
  api_need(c, o->name, "the prefix of C names");
  if (!is_identifier(o->name))
    fail(c, ERR_usage, LOC_NONE, "'%s' cannot be the prefix of C names", o->name);
  if (is_taken(o->name))
    fail(c, ERR_usage, LOC_NONE,
         "'%s' cannot be the prefix of C names: ig_, im_, imk_ and __ are reserved; use --name",
         o->name);
  if (o->split < 0 || o->split > MAX_SPLIT)
    fail(c, ERR_usage, LOC_NONE, "--split %d: expected 1 to %d", o->split, MAX_SPLIT);
  api_compile_variants(m);
  guard_log(c, "emit");
  need_one_entry(m, o);
  if (api_program_target(m)->warp)
    fail(c, ERR_unsupported, LOC_NONE,
         "C for target %s is not supported: ingot build --target cuda writes CUDA source",
         api_program_target(m)->name);
  u32 n = m->machine.variant_progs ? m->machine.variants.n : 1;
  EmitVariant *variant = NEWS(&c->keep, EmitVariant, n);
  const char *why = NULL;
  for (u32 i = 0; i < n; i++) {
    variant[i].target =
        m->machine.variant_progs ? m->machine.variants.at[i] : api_program_target(m);
    variant[i].n = api_entry_count(m);
    variant[i].entry =
        make_entries(m, i, variant[i].target, !i && variant[i].target->fma, o->selftest, &why);
  }
  for (u32 i = 0; why && i < n; i++)
    variant[i].entry = make_entries(m, i, variant[i].target, false, -1, &(const char *){NULL});
  if (why && o->selftest >= 0) warn(c, LOC_NONE, "the C has no self-test: %s", why);
  EmitOptions e = {.name = o->name,
                   .version = INGOT_VERSION,
                   .source = api_source_text(m),
                   .options = options_text(m, o),
                   .hash = api_source_hash(m),
                   .march = api_march_text(m, api_program_target(m)),
                   .no_selftest = why,
                   .openmp = m->codegen.openmp,
                   .debug = o->debug != 0,
                   .split = (u32)o->split,
                   .caller = o->caller != 0,
                   .profile = o->profile != 0,
                   .ticks = m->tuning.ticks,
                   .weights = weight_mode(c, o->weights),
                   .weights_file = o->weights_file,
                   .linked = m->compiled.linked,
                   .check_cpu = m->compiled.check_cpu,
                   .deferred = late,
                   .literal_bytes = o->literal_bytes ? o->literal_bytes : 256 << 10};
  if (plays) e.more = api_lm_c(m, o->name, e.weights == WM_pointer);
  if (m->compiled.more) e.more = m->compiled.more(m, o->name);
  m->written.blob = (Blob){.a = &c->keep};
  EmitFacts facts = emit_variants(variant, n, &e, source, header, &m->written.blob);
  m->written.profile = facts.profile;
  m->written.nprofile = facts.nprofile;
  guard_log(c, NULL);
  return facts;
}

static void warn_feature(Ctx *c, const EmitFacts *facts) {
  if (*facts->feature)
    warn(c, LOC_NONE, "int8 kernels are faster if compiled with -m%s, for CPUs that support it",
         facts->feature);
}

EmitOptions api_query_options(const Ingot *m, const Target *target) {
  return (EmitOptions){.name = "model",
                       .version = "",
                       .source = "",
                       .options = "",
                       .target = target,
                       .openmp = m->codegen.openmp,
                       .weights = WM_literal};
}

EmitFacts api_emit(Ingot *m, const IngotCodegen *o, bool plays, StrBuf *source, StrBuf *header) {
  return emit_late(m, o, plays, source, header, NULL);
}

static void emit_texts(Ingot *m, const IngotCodegen *o, const char **source, size_t *nsource,
                       const char **header, size_t *nheader) {
  Ctx *c = m->c;
  StrBuf s = sb_new(&c->keep), h = sb_new(&c->keep);
  api_need(c, source && nsource && header && nheader ? source : NULL,
           "pointers to source and header");
  api_need(c, o, "the C options");
  EmitFacts facts = api_emit(m, o, true, &s, &h);
  warn_feature(c, &facts);
  api_return_text(&s, source, nsource);
  api_return_text(&h, header, nheader);
}

IngotStatus ingot_emit_c(Ingot *m, const IngotCodegen *o, const char **source, size_t *nsource,
                         const char **header, size_t *nheader) {
  api_return_text(NULL, source, nsource);
  api_return_text(NULL, header, nheader);
  API_CALL(m, emit_texts(m, o, source, nsource, header, nheader));
}

u64 api_weight_bytes(const Ingot *m) {
  u64 n = 0;
  for (u32 i = 0; i < (m->machine.variant_progs ? m->machine.variants.n : 1); i++)
    n += prog_stored_bytes(api_program(m, i));
  for (u32 i = 0; i < m->entries.also.n; i++) n += api_weight_bytes(m->entries.also.at[i]);
  return n;
}

bool api_wants_weights_file(const Ingot *m) {
  return api_weight_bytes(m) > FILE_BYTES;
}

static void return_weights(Ingot *m, const void **data, size_t *n) {
  StrBuf all = sb_new(&m->c->keep);
  api_need(m->c, data && n ? data : NULL, "a pointer to the weights");
  for (u32 i = 0; i < m->written.blob.piece.n; i++)
    sb_put(&all, m->written.blob.piece.at[i].at, m->written.blob.piece.at[i].n);
  *data = all.at;
  *n = all.n;
}

IngotStatus ingot_emit_weights(Ingot *m, const void **data, size_t *n) {
  if (data) *data = NULL;
  if (n) *n = 0;
  API_CALL(m, return_weights(m, data, n));
}

static void wrap_cpp(Ingot *m, const IngotCodegen *o, const char *header, const EmitFacts *facts,
                     StrBuf *to) {
  if (api_entry_count(m) > 1)
    fail(m->c, ERR_unsupported, LOC_NONE, "--cpp: expected a single model");
  const char *slash = strrchr(header, '/');
  CppOptions cpp = {.name = o->name,
                    .header = slash ? slash + 1 : header,
                    .version = INGOT_VERSION,
                    .given = weight_mode(m->c, o->weights) == WM_pointer,
                    .selftest = facts->selftest_bytes != 0,
                    .threads = m->p->threads > 1 && !m->codegen.openmp};
  emit_cpp(m->p, &cpp, facts, to);
}

/* Writes weights, then headers, then the source: a C file never exists without its weights. */
EmitFacts api_write_c(Ingot *m, const IngotCodegen *options, const char *source_path,
                      const char *header_path, const char *weights_path) {
  Ctx *c = m->c;
  api_need(c, options, "the options");
  IngotCodegen o = *options;
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep);
  api_need(c, source_path, "the path of the source");
  api_need(c, header_path, "the path of the header");
  api_need(c, weights_path, "the path of the weights");
  api_compile_variants(m);
  bool large = !o.weights && api_wants_weights_file(m);
  if (large) o.weights = "file";
  DeferredTexts late = {0};
  EmitFacts facts = emit_late(m, &o, true, &source, &header, &late);
  warn_feature(c, &facts);
  const Blob *blob = &m->written.blob;
  StrBuf cpp = sb_new(&c->keep);
  if (o.cpp) wrap_cpp(m, &o, header_path, &facts, &cpp);
  u32 nfile = 0, source_file;
  FileOut f[4];
  if (blob->n)
    f[nfile++] = (FileOut){.path = weights_path, .n = blob->piece.n, .piece = blob->piece.at};
  f[nfile++] = (FileOut){.path = header_path, .at = header.at, .n = header.n};
  if (o.cpp) f[nfile++] = (FileOut){.path = o.cpp, .at = cpp.at, .n = cpp.n};
  source_file = nfile++;
  VEC(Chunk) part = {0};
  size_t from = 0;
  for (u32 i = 0; i < late.n; i++) {
    *vec_push(&c->keep, &part) = (Chunk){.at = source.at + from, .n = late.at[i].at - from};
    *vec_push(&c->keep, &part) = late.at[i].chunk;
    from = late.at[i].at;
  }
  *vec_push(&c->keep, &part) = (Chunk){.at = source.at + from, .n = source.n - from};
  f[source_file] = (FileOut){.path = source_path, .n = part.n, .piece = part.at};
  files_write(c, f, nfile);
  if (large)
    warn(c, LOC_NONE,
         "the weights, %.0f MB, are in %s, which the compiler must find (-I its folder); --weights "
         "text stores them in the C file",
         (double)blob->n / 1e6, show_text(c, str_of(c, weights_path)));
  return facts;
}

IngotStatus ingot_write_c(Ingot *m, const IngotCodegen *o, const char *source, const char *header,
                          const char *weights) {
  API_CALL(m, (void)api_write_c(m, o, source, header, weights));
}
