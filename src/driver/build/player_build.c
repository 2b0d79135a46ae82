/* player_build.c: builds language models as chat programs.
 *
 * In: an open language model. Out: the program that `ingot build` makes from it, cached in
 * ~/.cache/ingot. Its name is a hash of everything it depends on: content of the model's files,
 * options, compiler, machine, version. A second name of the same file (a hard link) has a hash of
 * paths, sizes and times instead, and the model's name for `ingot cache`: with it, a cached model
 * starts without being read. A copied or renamed model is read once, and not compiled again.
 */
#include "driver/build/build_product.h"
#include "chat/chat.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CC_DIGITS = 8 }; /* digits of the C compiler at the end of a name */

static void hash_text(StrBuf *t, const char *name, const char *value) {
  sb_fmt(t, "%s=%s\n", name, value ? value : "");
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Hashes the model and other files of its folder that matter: parts, shards, JSON files,
 * tokenizers, templates. */
typedef void KeyFn(Ctx *c, StrBuf *t, const char *path);

static void hash_folder(Ctx *c, StrBuf *t, const char *path, KeyFn *add) {
  static const char *const ends[] = {".gguf", ".safetensors", ".json", ".model", ".jinja"};
  const char *slash = strrchr(path, '/');
  const char *folder = slash ? str_text(c, str_intern(c, path, (size_t)(slash - path) + 1)) : "./";
  VEC(const char *) name = {0};
  bool alone = ends_with(path, ".gguf") && !strstr(path, "-of-");
  DIR *d = alone ? NULL : opendir(folder);
  add(c, t, path);
  for (struct dirent *e; d && (e = readdir(d));)
    for (u32 i = 0; i < sizeof ends / sizeof *ends; i++)
      if (ends_with(e->d_name, ends[i]))
        *vec_push(&c->keep, &name) = str_text(c, str_fmt(c, "%s%s", folder, e->d_name));
  if (d) closedir(d);
  if (name.n) qsort(name.at, name.n, sizeof *name.at, by_name);
  for (u32 i = 0; i < name.n; i++) add(c, t, name.at[i]);
}

static const char *program_path(Ingot *m, const IngotBuild *o, bool is_library, KeyFn *add) {
  Ctx *c = m->c;
  StrBuf t = sb_new(&c->keep);
  const char *env = getenv("CC");
  cache_key_add_self(c, &t);
  hash_folder(c, &t, m->opened.source.path, add);
  for (u32 i = 0; i < m->options.dim.n; i++) {
    const BindDim *d = &m->options.dim.at[i];
    sb_fmt(&t, "dim %s %s %lld %lld %d\n", d->symbol ? str_text(c, d->symbol) : "",
           d->input ? str_text(c, d->input) : "", (long long)d->axis, (long long)d->value,
           d->bound);
  }
  const LmOptions *w = &m->options.language;
  sb_fmt(&t, "language %lld %lld %d %d %u\n", (long long)w->context, (long long)w->chunk, w->every,
         (int)w->kept, w->x_bits);
  hash_text(&t, "prompt", m->options.prompt);
  sb_fmt(&t, "day %lld\n", (long long)m->options.day);
  hash_text(&t, "march", o->march);
  hash_text(&t, "native", target_native_flags());
  hash_text(&t, "optimize", o->optimize);
  sb_fmt(&t, "%u %u %d %d\n", m->codegen.threads, m->codegen.grain, m->codegen.precise,
         m->codegen.openmp);
  Digest model = digest_bytes(t.at, t.n);
  hash_text(&t, "cc", o->cc ? o->cc : env);
  const char *label = add == cache_key_add_file ? cache_label(m) : "";
  Str name = str_fmt(c, "%s-%.*s%.*s%s%s", is_library ? "lm" : "play", DIGEST_DIGITS - CC_DIGITS,
                     model.digit, CC_DIGITS, digest_bytes(t.at, t.n).digit, label,
                     is_library ? ".so" : "");
  return cache_file(c, str_text(c, name), "play");
}

static bool is_program(Ctx *c, const char *path) {
  return cache_check_file(c, path) && !access(path, X_OK);
}

/* Finds a build of this program by another compiler: only the last CC_DIGITS of the name differ.
 * NULL: not found. */
static const char *find_other_build(Ctx *c, const char *path) {
  const char *name = strrchr(path, '/') + 1, *found = NULL;
  const char *folder = str_text(c, str_intern(c, path, (size_t)(name - path)));
  size_t same = strlen(name) - CC_DIGITS;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (strlen(e->d_name) != same + CC_DIGITS || strncmp(e->d_name, name, same) != 0) continue;
    const char *other = str_text(c, str_fmt(c, "%s%s", folder, e->d_name));
    if (is_program(c, other) && (!found || strcmp(other, found) < 0)) found = other;
  }
  if (d) closedir(d);
  return found;
}

typedef struct SystemProbe {
  const Vocab *v;
  Loc loc;
  bool dropped;
} SystemProbe;

static void probe_system(Ctx *c, void *arg) {
  SystemProbe *p = arg;
  const ChatMessage turn[] = {{"system", "zero", 4}, {"user", "one", 3}};
  JinjaStr text = chat_text(c, p->v, turn, 2, true, CHAT_DEFAULT_DATE, p->loc, &c->work);
  p->dropped = chat_lost(turn, 2, text) == 0;
}

/* Refuses options before the build that the program would refuse when it runs. */
static void check_talk(Ingot *m, const IngotBuild *o) {
  const LmAssets *s = api_chat_assets(m);
  Loc loc = {.file = m->opened.source.file, .index = -1};
  Vocab v;
  const char *why;
  if (!vocab_open(&v, s->vocab, s->nvocab))
    internal_error(m->c, loc, "the vocabulary cannot be opened");
  if (o->chats && !chat_has_template(&v))
    fail(m->c, ERR_unsupported, loc, "the model has no chat template: --raw continues a text");
  SystemProbe p = {&v, loc, false};
  if (!o->chats || !o->system) return;
  if (ctx_try(m->c, probe_system, &p, &why)) fail(m->c, ERR_unsupported, loc, "--system: %s", why);
  if (p.dropped)
    fail(m->c, ERR_unsupported, loc, "--system: the chat template drops system messages");
}

/* Memory of the machine in bytes; huge if unknown. */
static double memory_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages < 1 || page < 1 ? HUGE_VAL : (double)pages * (double)page;
}

static const char *compiler_name(Ctx *c, const char *cc) {
  ArgVec w = {0};
  argv_compiler(c, &w, cc);
  return w.at[0];
}

/* Is the disk of the cache or of temporary files full? Then warns and clears the error. */
static bool is_full_disk(Ctx *c, DiagMark before) {
  static const int full[] = {ENOSPC, EDQUOT, EFBIG};
  for (const Diag *d = *before.end; d; d = d->next)
    for (u32 i = 0; d->level == LV_error && i < sizeof full / sizeof *full; i++) {
      const char *why = strerror(full[i]);
      if (!strstr(d->text, why)) continue;
      diag_rewind(c, before);
      warn(c, LOC_NONE,
           "the compiled model cannot be cached (%s): running slower bytecode; `ingot play "
           "--clean` empties the cache",
           why);
      return true;
    }
  return false;
}

/* Build options of a program or library of the model; output is its path. */
static IngotBuild build_options(Ingot *m, const IngotBuild *o, const char **path, bool is_library) {
  Ctx *c = m->c;
  api_need(c, o, "the build options");
  api_need(c, path, "a pointer to the result");
  if (!m->opened.source.path || !ingot_is_language_model(m))
    fail(c, ERR_unsupported, (Loc){.file = m->opened.source.file, .index = -1},
         "expected a language model with a tokenizer, as a GGUF file or a folder of safetensors");
  IngotBuild b = *o;
  if (!m->options.language.chunk) m->options.language.chunk = LM_CHAT_CHUNK;
  *path = b.output = program_path(m, o, is_library, cache_key_add_file);
  b.c.name = "lm";
  b.c.selftest = -1;
  return b;
}

static const LmAssets *need_chat_assets(Ingot *m) {
  const LmAssets *s = api_chat_assets(m);
  if (!s)
    fail(m->c, ERR_unsupported, (Loc){.file = m->opened.source.file, .index = -1},
         "expected a model with a tokenizer, found none in the file or next to it");
  return s;
}

typedef struct PlayerBuild {
  Ingot *m;
  const IngotBuild *o;
} PlayerBuild;

static void build_private(Ctx *c, void *arg) {
  const PlayerBuild *b = arg;
  b->m->options.language.room = memory_bytes();
  api_build(b->m, b->o);
  if (chmod(b->o->output, 0700))
    fail(c, ERR_system, LOC_NONE, "%s: cannot restrict its permissions", b->o->output);
}

/* Gives the program its second name, in place of a file that is not a program. */
static void name_program(Ctx *c, const char *program, const char **name) {
  bool linked = !link(program, *name);
  if (!linked && errno == EEXIST && !is_program(c, *name) && !unlink(*name))
    linked = !link(program, *name);
  if (!linked && !is_program(c, *name)) *name = program;
}

static void player(Ingot *m, const IngotBuild *o, const char **program) {
  Ctx *c = m->c;
  IngotBuild b = build_options(m, o, program, false);
  if (is_program(c, b.output)) return;
  b.output = program_path(m, o, false, cache_key_add_content);
  if (is_program(c, b.output)) {
    name_program(c, b.output, program);
    return;
  }
  bool compiles = compiler_exists(c, o->cc);
  const char *other = compiles ? NULL : find_other_build(c, b.output);
  if (other) {
    *program = other;
    return;
  }
  need_chat_assets(m);
  check_talk(m, o);
  if (!compiles) {
    *program = NULL;
    m->options.language.room = memory_bytes();
    api_march(m, o->march ? o->march : "native", o->cc);
    warn(c, LOC_NONE,
         "no C compiler '%s': running slower bytecode; install gcc or clang (Debian package gcc)",
         compiler_name(c, o->cc));
    return;
  }
  DiagMark before = diag_mark(c);
  Err e = ctx_protect(c, build_private, &(PlayerBuild){m, &b});
  if (e && (e != ERR_system || !is_full_disk(c, before))) longjmp(*c->door, (int)e);
  if (e)
    *program = NULL;
  else
    name_program(c, b.output, program);
}

IngotStatus ingot_player(Ingot *m, const IngotBuild *o, const char **program) {
  API_CALL(m, player(m, o, program));
}

/* Writes the header before the library; it is the same for the same key. */
static void player_library(Ingot *m, const IngotBuild *o, const char **library,
                           IngotChatModel *out) {
  IngotBuild b = build_options(m, o, library, true);
  const LmAssets *s = need_chat_assets(m);
  api_need(m->c, out, "a pointer to the texts");
  *out = (IngotChatModel){.open = s->chat.open,
                          .open_system = s->chat.open_system,
                          .system = s->chat.system,
                          .ask = s->chat.ask,
                          .next = s->chat.next,
                          .none = s->no_chat,
                          .trims = s->chat.trims};
  if (is_program(m->c, b.output)) return;
  compiler_need(m->c, o->cc);
  build_private(m->c, &(PlayerBuild){m, &b});
}

IngotStatus ingot_player_library(Ingot *m, const IngotBuild *o, const char **library,
                                 IngotChatModel *out) {
  API_CALL(m, player_library(m, o, library, out));
}
