/* build_cuda.c: ingot build --target cuda.
 *
 * In: a model and the options of the build. Out: OUT.cu, OUT.h and OUT.bin with the weights. nvcc
 * compiles the file for the chips that the target names.
 */
#include "driver/build/build_product.h"

#include <string.h>
#include <sys/stat.h>

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
  return fmt_text(c, "%s%s", stem_of(c, o), suffix);
}

void api_check_cuda(Ingot *m, const IngotBuild *o) {
  static const char *const only = "not supported with --target cuda";
  Ctx *c = m->c;
  struct stat st;
  if (ends_with(o->output, ".a") || ends_with(o->output, ".so") || ends_with(o->output, ".o") ||
      ends_with(o->output, ".c") || ends_with(o->output, ".h") || ends_with(o->output, ".bin") ||
      (!stat(o->output, &st) && !S_ISREG(st.st_mode)))
    fail(c, ERR_usage, LOC_NONE,
         "-o %s: --target cuda writes CUDA source for nvcc; expected OUT.cu or a name without "
         "a suffix",
         o->output);
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
  api_check_cuda_source(m);
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
  StrBuf line = sb_new(&c->keep);
  sb_puts(&line, "compile it with: ");
  cuda_nvcc(&f, &line);
  if (o->on_command) o->on_command(o->user, sb_cstr(&line));
}
