/* engine_c.c: engine c: the generated C, compiled, loaded and run in this process.
 *
 * In: a model with inputs. Out: its outputs. The source is written to a temporary folder, compiled
 * by $CC (or cc) to a shared object with an argument vector (never a shell), loaded, called once
 * and removed. ingot_keep_code caches the shared object for the next process.
 */
#include "api/api_internal.h"

#include <dlfcn.h>
#include <string.h>

typedef const char *WhyFn(int status);
typedef int StartFn(void *arena, int threads);
typedef void StopFn(void *arena);

typedef struct Native {
  Ingot *m;
  u64 seed;
  CallFn *code;
  bool only_kept; /* do not compile if the code is not cached */
  TempDir folder;
} Native;

/* Above this size, weights of cached code are an argument: emitting and compiling is faster. */
enum { KEPT_WEIGHTS = 64 << 10 };

/* The compiler and its flags, without file names. */
static ArgVec command(Ctx *c, const Native *n) {
  ArgVec w = {0};
  argv_compiler(c, &w, NULL);
  argv_add(c, &w, "-std=c99 -O2 -ffp-contract=off -fPIC -w");
  argv_target(c, &w, n->m);
  argv_variant(c, &w, n->m, "MODEL");
  argv_threads(c, &w, n->m);
  return w;
}

/* Path of the library in the cache; NULL: not cached. The key is the C text, which depends on
 * model, external data, options and version. Weights that are an argument are not part of the
 * library. */
static const char *kept_path(Ctx *c, Native *n, const ArgVec *w, const StrBuf *source) {
  const char *folder = n->m->compiled.keep;
  ArgVec cc = {0};
  if (!folder) return NULL;
  StrBuf key = sb_new(&c->keep);
  sb_fmt(&key, "%s\n%s\n", INGOT_VERSION, target_native_flags());
  for (u32 i = 0; i < w->n; i++) sb_fmt(&key, "%s\n", w->at[i]);
  argv_compiler(c, &cc, NULL);
  spawn_check(c, "C compiler", cc.at[0]);
  cache_key_add_file(c, &key, spawn_resolve(c, cc.at[0]));
  /* version of the compiler, also through a wrapper such as ccache */
  sb_fmt(&key, "%s\n", compiler_version(c, &n->folder, &cc));
  sb_put(&key, source->at, source->n);
  return cache_code(n->m, folder, &key);
}

static const char *compile(Ctx *c, Native *n, ArgVec *w, const StrBuf *text, u32 parts) {
  const char *source = tempdir_file(c, &n->folder, "m.c");
  const char *library = tempdir_file(c, &n->folder, "m.so");
  ArgVec object = {0};
  file_write(c, source, text->at, text->n);
  if (parts > 1)
    object = parts_compile(c, &n->folder, w, source, "model", parts);
  else
    *vec_push(&c->keep, &object) = source;
  argv_add(c, w, "-shared -o");
  argv_put(c, w, library);
  argv_put_list(c, w, object.at);
  spawn_run(c, &n->folder, "C compiler", w->at);
  return library;
}

/* Loads the library from the cache, or compiles it. NULL: see dlerror. */
static void *load_code(Ctx *c, Native *n, const StrBuf *source, u32 parts) {
  ArgVec w = command(c, n);
  tempdir_make(c, &n->folder);
  const char *kept = kept_path(c, n, &w, source);
  void *handle = kept && cache_find(c, kept) ? dlopen(kept, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (handle || n->only_kept) return handle;
  const char *library = compile(c, n, &w, source, parts);
  if (kept) cache_store(c, kept, library);
  return dlopen(library, RTLD_NOW | RTLD_LOCAL);
}

/* Reads extents that are stored with the state. */
static void bind_state(Ingot *m, const u8 *arena, i64 *size) {
  Sym sym;
  u64 at;
  for (StmtId id = m->p->body; id; id = prog_stmt(m->p, id)->next)
    if (prog_is_state_size(m->p, id, &sym, &at)) memcpy(&size[sym], arena + at, 8);
}

/* Checks extents that depend on symbols set at run time, which prog_bind skips. */
static void check_inputs(Ingot *m, const i64 *size) {
  Prog *p = m->p;
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    for (u32 k = 0; k < b->rank; k++)
      if (m->run.in[i]->dim[k] != dim_eval(p->dims, b->dim[k], size))
        fail(m->c, ERR_input, LOC_NONE, "input %s: dimension %u is %lld, expected %lld",
             show(m->c, b->name), k, (long long)m->run.in[i]->dim[k],
             (long long)dim_eval(p->dims, b->dim[k], size));
  }
}

static const char *entry_of(const Ingot *m) {
  return m->compiled.entry ? m->compiled.entry : "model_call";
}

/* NAME_what, next to NAME_call; NULL: missing. */
static void *find(Ctx *c, const Ingot *m, const char *what) {
  const char *entry = entry_of(m);
  size_t stem = strlen(entry) - strlen("_call");
  return dlsym(m->states.handle, fmt_text(c, "%.*s_%s", (int)stem, entry, what));
}

static WhyFn *find_why(Ctx *c, const Ingot *m) {
  union {
    void *p;
    WhyFn *fn;
  } sym = {find(c, m, "why")};
  return sym.p ? sym.fn : NULL;
}

static void start_threads(Ctx *c, Ingot *m) {
  union {
    void *p;
    StartFn *fn;
  } start = {find(c, m, "threads_start")};
  union {
    void *p;
    StopFn *fn;
  } stop = {find(c, m, "threads_stop")};
  if (!start.p || !stop.p) return;
  start.fn(m->states.arena, (int)m->p->threads);
  m->states.stop = stop.fn;
}

/* A user's library must contain facts that match the model. */
static void check_facts(Ctx *c, Ingot *m) {
  const char *const *have = find(c, m, "facts");
  StrList want = emit_fact_lines(
      (const Prog *const *)(m->machine.variant_progs ? m->machine.variant_progs : &m->p),
      m->machine.variant_progs ? m->machine.variants.n : 1,
      api_march_text(m, api_program_target(m)), hash_bytes(m->opened.source.at, m->opened.source.n),
      m->states.arena_bytes);
  if (!have)
    fail(c, ERR_input, LOC_NONE, "%s: NAME_facts is missing: build it with --caller",
         m->compiled.library);
  for (u32 i = 0; i <= want.n; i++) {
    const char *line = i < want.n ? str_text(c, want.at[i]) : NULL;
    if (have[i] && line && !strcmp(have[i], line)) continue;
    if (!have[i] && !line) return;
    if (have[i] && line && !strncmp(have[i], "target ", 7) && !strncmp(line, "target ", 7))
      fail(c, ERR_input, LOC_NONE, "%s was built for %s, the model here is for %s; use --march %s",
           m->compiled.library, show_text(c, str_of(c, have[i] + 7)), line + 7,
           show_text(c, str_of(c, have[i] + 7)));
    fail(c, ERR_input, LOC_NONE,
         "%s was made from another model or with other options: it has %s, expected %s",
         m->compiled.library, have[i] ? show_text(c, str_of(c, have[i])) : "no more",
         line ? show_text(c, want.at[i]) : "no more");
  }
}

u8 *api_alloc_aligned(Ctx *c, u64 arena_bytes) {
  u8 *arena = NEWS(&c->keep, u8, arena_bytes + 64);
  return arena + 64 - (uintptr_t)arena % 64;
}

/* Initializes state in zeroed memory. */
static u8 *begin_state(const Ingot *m, u8 *arena) {
  for (BufId b = 1; b < m->p->buf.n; b++) {
    const Buf *x = prog_buf(m->p, b);
    if (x->space == BS_state && !x->alias && x->data && x->data->n)
      memcpy(arena + x->offset, x->data->data, tensor_bytes(x->data));
  }
  return arena;
}

u8 *api_alloc_arena(Ingot *m, u64 bytes) {
  return begin_state(m, api_alloc_aligned(m->c, bytes));
}

/* Reuses the arena of before a reset. */
static u8 *arena_again(Ingot *m) {
  if (!m->states.spare) return api_alloc_arena(m, m->states.arena_bytes);
  memset(m->states.spare, 0, m->states.arena_bytes);
  return begin_state(m, m->states.spare);
}

static bool is_aligned(const void *at, DType dt) {
  return (uintptr_t)at % (dtype_bytes(dt) < 8 ? dtype_bytes(dt) : 8) == 0;
}

/* Address of the data, also for an empty tensor; copied if code cannot read it in place. */
static const void *input_for(Ingot *m, const Tensor *t) {
  if (t->n && is_aligned(t->data, t->dt)) return t->data;
  void *copy = arena_alloc(&m->run.once, tensor_bytes(t) + 1);
  if (t->n) memcpy(copy, t->data, tensor_bytes(t));
  return copy;
}

/* Memory for output i with these maximum extents: the caller's, if large enough. */
static void *room_for(Ingot *m, u32 i, DType dt, const i64 *dim, u32 rank) {
  const IngotOutBuffer *r = m->run.out_buffer ? &m->run.out_buffer[i] : NULL;
  u64 n, bytes;
  if (r && r->data && is_aligned(r->data, dt) && shape_count(dim, rank, &n) &&
      size_mul(n, dtype_bytes(dt), &bytes) && bytes <= r->bytes)
    return r->data;
  return (void *)tensor_new(&m->run.once, dt, dim, rank)->data;
}

CallArgs api_call_args(Ingot *m, u8 *arena) {
  Prog *p = m->p;
  i64 *size = prog_bind(p, m->run.in, &m->run.once);
  bind_state(m, arena, size);
  check_inputs(m, size);
  const void **in = NEWS(&m->run.once, const void *, p->in.n + 1);
  void **out = NEWS(&m->run.once, void *, p->out.n + 1);
  i64 **shape = NEWS(&m->run.once, i64 *, p->out.n + 1);
  for (u32 i = 0; i < p->in.n; i++) in[i] = input_for(m, m->run.in[i]);
  in[p->in.n] = m->states.weights;
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    i64 dim[MAX_RANK], lo;
    shape[i] = NEWS(&m->run.once, i64, MAX_RANK);
    for (u32 k = 0; k < b->rank; k++) {
      dim_bounds(p->dims, b->dim[k], &lo, &dim[k]);
      shape[i][k] = dim_eval(p->dims, b->dim[k], size);
    }
    out[i] = room_for(m, i, b->dt, dim, b->rank);
  }
  return (CallArgs){size, in, out, shape};
}

static void check_status(Ctx *c, Ingot *m, WhyFn *why, int status) {
  if (status && why)
    fail(c, ERR_input, (Loc){.file = m->opened.source.file, .index = -1}, "%s", why(status));
  if (status) fail(c, ERR_input, LOC_NONE, "the compiled model returned status %d", status);
}

void api_check_c(Ingot *m, int status) {
  if (status) check_status(m->c, m, find_why(m->c, m), status);
}

static void call(Ctx *c, Native *n, CallFn *fn, WhyFn *why) {
  Ingot *m = n->m;
  Prog *p = m->p;
  CallArgs f = api_call_args(m, m->states.arena);
  int status = fn(m->states.arena, f.size, n->seed, f.in, f.out, f.shape);
  check_status(c, m, why, status);
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    m->run.out[i] = tensor_wrap(&m->run.once, b->dt, f.shape[i], b->rank, f.out[i]);
  }
}

/* Joins the weights into one aligned block, as code with a weight argument expects. */
static const u8 *join_weights(Ctx *c, const Blob *blob) {
  u8 *at = api_alloc_aligned(c, blob->n), *to = at;
  for (u32 i = 0; i < blob->piece.n; i++) {
    if (blob->piece.at[i].n) memcpy(to, blob->piece.at[i].at, blob->piece.at[i].n);
    to += blob->piece.at[i].n;
  }
  return at;
}

/* Loads the library of the model; compiles it if necessary. */
static void load(Ctx *c, Native *n) {
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep);
  IngotCodegen o = {
      .name = "model", .literal_bytes = 4096, .selftest = -1, .split = PARTS_LIMIT, .caller = 1};
  const char *library = n->m->compiled.library;
  bool own_file = !library && (api_wants_weights_file(n->m) ||
                               (n->m->compiled.keep && api_weight_bytes(n->m) > KEPT_WEIGHTS));
  if (own_file) o.weights = "pointer";
  /* assigns offsets to buffers, even if the code is cached */
  EmitFacts facts = api_emit(n->m, &o, false, &source, &header);
  n->m->states.arena_bytes = facts.arena_bytes;
  if (own_file && !n->m->states.weights)
    n->m->states.weights = join_weights(c, &n->m->written.blob);
  if (library) {
    library_check(c, library);
    n->m->states.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  } else {
    n->m->states.handle = load_code(c, n, &source, parts_wanted(facts.code_bytes));
  }
  tempdir_remove(&n->folder); /* now, so that crashing code leaves no files */
  if (!n->m->states.handle && !n->only_kept)
    fail(c, n->m->compiled.library ? ERR_input : ERR_system, LOC_NONE,
         "the compiled model cannot be loaded: %s", dlerror());
}

static void make(Ctx *c, void *arg) {
  Native *n = arg;
  if (n->m->states.handle_of != n->m->p) api_close_c(n->m);
  if (!n->m->states.handle) load(c, n);
  n->m->states.handle_of = n->m->p;
}

/* The function to call; compiles and loads it if necessary. */
static CallFn *code_of(Ctx *c, Native *n) {
  const char *entry = entry_of(n->m);
  make(c, n);
  union {
    void *p;
    CallFn *fn;
  } sym = {dlsym(n->m->states.handle, entry)};
  if (!sym.p && n->m->compiled.library)
    fail(c, ERR_input, LOC_NONE,
         "%s has no function %s: build it with --caller, and pass its prefix with --name",
         n->m->compiled.library, entry);
  if (!sym.p) fail(c, ERR_system, LOC_NONE, "the compiled model has no function %s", entry);
  if (n->m->compiled.library) check_facts(c, n->m);
  if (!n->m->states.arena) {
    n->m->states.arena = arena_again(n->m);
    start_threads(c, n->m);
  }
  return sym.fn;
}

static void run(Ctx *c, void *arg) {
  Native *n = arg;
  CallFn *fn = code_of(c, n);
  call(c, n, fn, find_why(c, n->m));
}

static void make_code(Ctx *c, void *arg) {
  Native *n = arg;
  n->code = code_of(c, n);
}

void api_drop_arena(Ingot *m) {
  if (m->states.stop) m->states.stop(m->states.arena);
  m->states.stop = NULL;
  m->states.spare = m->states.arena ? m->states.arena : m->states.spare;
  m->states.arena = NULL;
}

void api_close_c(Ingot *m) {
  api_drop_arena(m);
  if (m->states.handle) dlclose(m->states.handle);
  m->states.handle = NULL;
  m->states.spare = NULL;
}

/* Calls fn and removes the folder. */
static Err protect(Native *n, void (*fn)(Ctx *c, void *arg)) {
  Ingot *m = n->m;
  if (!m->opened.reader)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "engine c does not run programs in text form: C does not check their indices");
  api_need_runnable(m);
  Err e = ctx_protect(m->c, fn, n);
  tempdir_remove(&n->folder);
  return e;
}

void api_make_c(Ingot *m) {
  Native n = {.m = m};
  Err e = protect(&n, make);
  if (e) longjmp(*m->c->door, (int)e);
}

CallFn *api_code_c(Ingot *m) {
  Native n = {.m = m};
  Err e = protect(&n, make_code);
  if (e) longjmp(*m->c->door, (int)e);
  return n.code;
}

void api_run_c(Ingot *m, u64 seed) {
  Native n = {.m = m, .seed = seed};
  Err e = protect(&n, run);
  if (!m->compiled.stays && (e || !api_has_state(m))) api_close_c(m);
  if (e) longjmp(*m->c->door, (int)e);
}

static void set_library(Ingot *m, const char *path, const char *name) {
  Ctx *c = m->c;
  api_need(c, path, "the path of the library");
  m->compiled.library = str_text(c, strchr(path, '/') ? str_of(c, path) : str_fmt(c, "./%s", path));
  m->compiled.entry = fmt_text(c, "%s_call", name ? name : "model");
}

IngotStatus ingot_set_library(Ingot *m, const char *path, const char *name) {
  API_CALL(m, set_library(m, path, name));
}

static void load_kept(Ingot *m, int *found) {
  Native n = {.m = m, .only_kept = true};
  api_need(m->c, found, "a pointer to the answer");
  api_ready(m, api_engine_for(m, "c", 0));
  m->compiled.stays = true;
  Err e = m->compiled.keep ? protect(&n, make) : ERR_ok;
  if (e) longjmp(*m->c->door, (int)e);
  *found = m->states.handle != NULL;
}

IngotStatus ingot_load_code(Ingot *m, int *found) {
  if (found) *found = 0;
  API_CALL(m, load_kept(m, found));
}
