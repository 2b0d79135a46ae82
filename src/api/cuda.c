/* cuda.c: engine cuda: runs the program on an NVIDIA GPU.
 *
 * In: a model with inputs. Out: its outputs. The program is lowered for target cuda. Code, weights
 * and state stay on the device between runs.
 */
#include "api/api_internal.h"

#include <string.h>

void api_target_device(Ingot *m) {
  const Target *t = m->machine.target;
  if (t && !t->warp)
    fail(m->c, ERR_usage, LOC_NONE, "engine cuda: expected --march cuda, found %s", t->name);
  m->machine.target = target_warp();
}

static void check(Ingot *m) {
  if (!m->opened.reader)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "cuda: programs in text form are not supported: the kernels do not check their indices");
}

Cuda *api_cuda(Ingot *m) {
  check(m);
  if (m->states.cuda_of != m->p) api_close_cuda(m);
  if (m->states.cuda) return m->states.cuda;
  StrBuf self = sb_new(&m->c->keep);
  const char *keep = m->compiled.keep;
  if (keep) api_key_self(m->c, &self);
  CudaOptions o = {
      .target = target_warp(), .keep = keep, .maker = sb_cstr(&self), .take = cache_check_file};
  m->states.cuda = cuda_make(m->p, &o);
  m->states.cuda_of = m->p;
  return m->states.cuda;
}

void api_make_cuda(Ingot *m) {
  api_cuda(m);
}

void api_run_cuda(Ingot *m, u64 seed) {
  cuda_run(api_cuda(m), seed, m->run.in, m->run.out, &m->run.once);
}

static double run_once(Bench *a) {
  Ingot *m = a->m;
  Mark mark = arena_mark(&m->run.once);
  double start = time_ms();
  cuda_run(api_cuda(m), a->seed, m->run.in, a->result, &m->run.once);
  double ms = time_ms() - start;
  arena_rewind(&m->run.once, mark); /* results are not used */
  return ms;
}

/* Time of each kernel in a run, the mean of some runs. */
static void time_kernels(Bench *a) {
  enum { RUNS = 10 };
  Ingot *m = a->m;
  Ctx *c = m->c;
  KernelTime *time;
  u32 n = cuda_time_kernels(api_cuda(m), &time);
  for (u32 i = 0; i < RUNS; i++) run_once(a);
  IngotKernel *k = NEWS(&c->keep, IngotKernel, n + 1);
  const Range *range = prog_ranges(m->p, NULL, &c->keep);
  for (u32 i = 0; i < n; i++) {
    KernelWork w = prog_work(m->p, range, time[i].id, &c->keep);
    double calls = (double)time[i].calls / RUNS;
    const char *label = str_text(c, prog_stmt(m->p, time[i].id)->label);
    k[i] = (IngotKernel){label, time[i].ms / RUNS, calls, w.macs * calls, w.bytes, w.whole * calls};
  }
  a->out->kernel = k;
  a->out->nkernel = n;
}

void api_bench_cuda(Bench *a) {
  double start = time_ms();
  api_cuda(a->m);
  a->out->build_ms = time_ms() - start;
  bench_runs(a, run_once);
  if (a->build && a->build->c.profile) time_kernels(a);
}

void api_close_cuda(Ingot *m) {
  cuda_end(m->states.cuda);
  m->states.cuda = NULL;
}

static void print_cuda(Ingot *m, const char **text, size_t *n) {
  StrBuf t = sb_new(&m->c->keep);
  api_need(m->c, text && n ? text : NULL, "a pointer to the text");
  api_need_model(m, "code for CUDA");
  api_target_device(m);
  api_run_passes(m, NULL);
  cuda_print(m->p, target_warp(), &t);
  api_return_text(&t, text, n);
}

IngotStatus ingot_print_cuda(Ingot *m, const char **text, size_t *n) {
  api_return_text(NULL, text, n);
  API_CALL(m, print_cuda(m, text, n));
}

/* ---- --target cuda ---- */

bool api_wants_cuda(const IngotBuild *o) {
  return o->target && !strncmp(o->target, "cuda", 4) && (!o->target[4] || o->target[4] == ':');
}

static const char *const chips[] = {"75",  "80",  "86",   "87",  "89", "90",
                                    "90a", "100", "100a", "103", "120"};

/* The list after cuda:, checked; the chips of a file for all if there is none. */
static const char *chips_of(Ctx *c, const char *target) {
  const char *list = target[4] ? target + 5 : "75,80,90,100,120";
  for (const char *s = list; *s || s == list;) {
    size_t n = strcspn(s, ",");
    bool known = false;
    for (u32 i = 0; i < sizeof chips / sizeof *chips; i++)
      known = known || (strlen(chips[i]) == n && !strncmp(s, chips[i], n));
    if (!known)
      fail(c, ERR_usage, LOC_NONE,
           "--target %s: expected chips such as 90a, 89 or 80 after cuda:, separated by commas; "
           "found '%.*s'",
           target, (int)n, s);
    s += n + (s[n] == ',');
  }
  return list;
}

/* OUT without .cu. */
static const char *stem_of(Ctx *c, const IngotBuild *o) {
  size_t n = strlen(o->output);
  if (ends_with(o->output, ".cu")) n -= 3;
  return str_text(c, str_intern(c, o->output, n));
}

static const char *with_suffix(Ctx *c, const IngotBuild *o, const char *suffix) {
  return str_text(c, str_fmt(c, "%s%s", stem_of(c, o), suffix));
}

void api_check_cuda(Ingot *m, const IngotBuild *o) {
  static const char *const only = "not supported with --target cuda";
  Ctx *c = m->c;
  chips_of(c, o->target);
  if (o->march) fail(c, ERR_usage, LOC_NONE, "--march: %s", only);
  if (o->backend) fail(c, ERR_usage, LOC_NONE, "--backend: %s", only);
  if (o->preset || o->lto || o->pgo || o->bolt || o->fast_math || o->sanitize || o->optimize ||
      o->cc)
    fail(c, ERR_usage, LOC_NONE, "options of the C compiler: %s; nvcc compiles the file", only);
  if (o->c.weights) fail(c, ERR_unsupported, LOC_NONE, "--weights: %s", only);
  if (o->c.selftest > 0) fail(c, ERR_unsupported, LOC_NONE, "--selftest: %s", only);
  if (o->c.profile) fail(c, ERR_unsupported, LOC_NONE, "--profile: %s", only);
  const char *path[] = {with_suffix(c, o, ".cu"), with_suffix(c, o, ".h"),
                        with_suffix(c, o, ".bin")};
  files_plan(c, path, 3);
}

/* The name of the files without folder and suffix, which an #include can hold. */
static const char *file_of(Ctx *c, const IngotBuild *o) {
  const char *stem = stem_of(c, o), *slash = strrchr(stem, '/'), *file = slash ? slash + 1 : stem;
  for (const char *s = file; *s; s++)
    if (*s == '"' || *s == '\\' || (unsigned char)*s < ' ')
      fail(
          c, ERR_usage, LOC_NONE,
          "-o %s: expected a file name without quotes, backslashes and control characters, because "
          "the .cu includes the header by that name",
          o->output);
  return file;
}

/* An identifier made from the name of the file. */
static const char *name_of(Ctx *c, const IngotBuild *o) {
  if (o->c.name) return o->c.name;
  StrBuf t = sb_new(&c->keep);
  for (const char *s = file_of(c, o); *s; s++) {
    bool digit = *s >= '0' && *s <= '9';
    bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
    if (digit && !t.n) sb_puts(&t, "_");
    sb_put(&t, digit || letter ? s : "_", 1);
  }
  return sb_cstr(&t);
}

void api_build_cuda(Ingot *m, const IngotBuild *o) {
  Ctx *c = m->c;
  api_need_model(m, "code for CUDA");
  check(m);
  api_need_single_entry(m);
  api_target_device(m);
  api_run_passes(m, NULL);
  prog_names(m->p);
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep), blob = sb_new(&c->keep);
  CudaFile f = {.name = name_of(c, o),
                .file = file_of(c, o),
                .version = INGOT_VERSION,
                .source = api_source_text(m),
                .chips = chips_of(c, o->target),
                .hash = api_source_hash(m)};
  cuda_emit(m->p, &f, &source, &header, &blob);
  FileOut file[] = {{.path = with_suffix(c, o, ".h"), .at = header.at, .n = header.n},
                    {.path = with_suffix(c, o, ".cu"), .at = source.at, .n = source.n},
                    {.path = with_suffix(c, o, ".bin"), .at = blob.at, .n = blob.n}};
  files_write(c, file, 3);
}
