/* cache.c: results that are cached between processes, in ~/.cache/ingot or a given folder.
 *
 * In: a key, the text of everything that a result depends on. Out: the path of its file, KIND- and
 * a 128-bit hash of the key, and the file if a trusted one exists. Writing an entry may fail: the
 * next process makes the result again. Entries of engine c beyond CACHE_BYTES are evicted, least
 * recently used first; each use sets the modification time.
 */
#include "api/api_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_BYTES ((u64)2 << 30) /* limit for code of engine c */

enum { KIND_CODE = 0, KIND_PLAY = 3 };

typedef struct CacheKind {
  const char *prefix, *what;
  bool dotted; /* a suffix may follow the hash */
} CacheKind;

static const CacheKind kinds[] = {[KIND_CODE] = {"c-", "compiled model, engine c", true},
                                  {"jit-", "compiled model, engine jit", true},
                                  {"cubin-", "compiled kernels, engine cuda", true},
                                  [KIND_PLAY] = {"play-", "program of play", true},
                                  {"lm-", "library of a language model", true},
                                  {"pgo-", "profile of build", true}};

typedef struct CacheEntry {
  const CacheKind *kind;
  const char *path, *name, *model; /* model: its file name; empty: unknown */
  u64 bytes;                       /* a program of play has a name without a model, and links */
  time_t used;                     /* seconds since 1970 */
} CacheEntry;
typedef VEC(CacheEntry) CacheEntries;
typedef VEC(const char *) Paths;

/* NULL: not a file of ours. */
static const CacheKind *kind_of(const char *name) {
  for (u32 i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t n = strlen(kinds[i].prefix);
    if (strncmp(name, kinds[i].prefix, n) != 0) continue;
    name += n;
    if (strspn(name, "0123456789abcdef") != DIGEST_DIGITS) return NULL;
    name += DIGEST_DIGITS;
    return !*name || (*name == '.' && kinds[i].dotted) ? &kinds[i] : NULL;
  }
  return NULL;
}

static int by_use(const void *a, const void *b) {
  const CacheEntry *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* The text after the hash, without the ending of a library or its header. */
static const char *model_of(Ctx *c, const char *path) {
  const char *dot = strchr(strrchr(path, '/'), '.');
  size_t n = dot ? strlen(dot) : 0;
  n -= n && ends_with(dot, ".so") ? 3 : n && ends_with(dot, ".h") ? 2 : 0;
  return n > 1 ? str_text(c, str_intern(c, dot + 1, n - 1)) : "";
}

/* Entries of a folder, least recently used first. programs: the names by content of programs that
 * other entries are links to. */
static CacheEntries entries_of(Ctx *c, const char *folder, Paths *programs) {
  CacheEntries all = {0};
  struct stat st;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    const CacheKind *kind = kind_of(e->d_name);
    if (!kind || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
      continue;
    const char *path = str_text(c, str_fmt(c, "%s/%s", folder, e->d_name));
    if (st.st_nlink > 1 && kind == &kinds[KIND_PLAY] && !strchr(e->d_name, '.')) {
      if (programs) *vec_push(&c->keep, programs) = path;
      continue;
    }
    *vec_push(&c->keep, &all) =
        (CacheEntry){.kind = kind,
                     .path = path,
                     .name = strrchr(path, '/') + 1,
                     .model = model_of(c, path),
                     .bytes = (u64)st.st_size / (st.st_nlink > 1 ? st.st_nlink - 1 : 1),
                     .used = st.st_mtime};
  }
  if (d) closedir(d);
  if (all.n) qsort(all.at, all.n, sizeof *all.at, by_use);
  return all;
}

const char *cache_label(const Ingot *m) {
  enum { LABEL = 40 };
  const char *path = m->opened.source.path ? m->opened.source.path : "";
  size_t n = strlen(path);
  while (n && path[n - 1] == '/') n--;
  size_t from = n;
  while (from && path[from - 1] != '/') from--;
  StrBuf t = sb_new(&m->c->keep);
  for (; from < n && t.n <= LABEL; from++) {
    char ch = path[from];
    bool letter = (ch | 32) >= 'a' && (ch | 32) <= 'z';
    bool plain = letter || (ch >= '0' && ch <= '9') || strchr("._-", ch);
    sb_fmt(&t, "%s%c", t.n ? "" : ".", plain ? ch : '_');
  }
  return sb_cstr(&t);
}

const char *cache_code(const Ingot *m, const char *folder, const StrBuf *key) {
  return str_text(m->c, str_fmt(m->c, "%s/%s%s%s", folder, kinds[KIND_CODE].prefix,
                                digest_bytes(key->at, key->n).digit, cache_label(m)));
}

typedef struct CacheFile {
  const char *path, *from;
  bool is_whole;
} CacheFile;

/* Calls fn; false: it failed, without a message. */
static bool try_quietly(Ctx *c, void (*fn)(Ctx *c, void *arg), CacheFile *f) {
  DiagMark before = diag_mark(c);
  Err e = ctx_protect(c, fn, f);
  if (e) diag_rewind(c, before);
  return !e;
}

static void check(Ctx *c, void *arg) {
  CacheFile *f = arg;
  f->is_whole = library_is_complete(c, f->path);
}

bool cache_find(Ctx *c, const char *path) {
  CacheFile f = {.path = path};
  if (!cache_check_file(c, path)) return false;
  if (try_quietly(c, check, &f) && f.is_whole)
    utimensat(AT_FDCWD, path, NULL, 0); /* fails on a read-only folder */
  else
    unlink(path);
  return f.is_whole;
}

/* Removes the least recently used entries, except the file that was just written. */
static void evict(Ctx *c, const char *path) {
  const char *slash = strrchr(path, '/');
  CacheEntries all = entries_of(c, str_text(c, str_intern(c, path, (size_t)(slash - path))), NULL);
  u64 bytes = 0;
  for (u32 i = 0; i < all.n; i++)
    if (all.at[i].kind == &kinds[KIND_CODE]) bytes += all.at[i].bytes;
  for (u32 i = 0; i < all.n && bytes > CACHE_BYTES; i++) {
    const CacheEntry *e = &all.at[i];
    if (e->kind != &kinds[KIND_CODE] || !strcmp(e->path, path)) continue;
    unlink(e->path);
    bytes -= e->bytes;
  }
}

static void put(Ctx *c, void *arg) {
  const CacheFile *p = arg;
  File f = file_read_own(c, p->from);
  files_write(c, &(FileOut){.path = p->path, .at = f.at, .n = f.n, .cached = true}, 1);
  evict(c, p->path);
}

void cache_store(Ctx *c, const char *path, const char *from) {
  try_quietly(c, put, &(CacheFile){.path = path, .from = from});
}

static void clean(Ingot *m, u64 *count, u64 *bytes) {
  Ctx *c = m->c;
  api_need(c, count && bytes ? count : NULL, "a pointer to the figures");
  const char *folder = cache_file(c, ".", "clean");
  Paths programs = {0};
  CacheEntries all = entries_of(c, folder, &programs);
  for (u32 i = 0; i < programs.n; i++) unlink(programs.at[i]);
  *count = (u64)temps_collect(folder, false) + temps_collect(temp_folder(), true);
  for (u32 i = 0; i < all.n; i++) {
    if (unlink(all.at[i].path) && errno != ENOENT)
      fail(c, ERR_system, LOC_NONE, "%s: cannot be removed", all.at[i].path);
    ++*count;
    *bytes += all.at[i].bytes;
  }
}

IngotStatus ingot_clean(Ingot *m, uint64_t *count, uint64_t *bytes) {
  if (count) *count = 0;
  if (bytes) *bytes = 0;
  API_CALL(m, clean(m, count, bytes));
}

static void list(Ingot *m, bool json, StrBuf *t) {
  Ctx *c = m->c;
  const char *folder = cache_file(c, "", "cache");
  CacheEntries all = entries_of(c, cache_file(c, ".", "cache"), NULL);
  time_t now = time(NULL);
  u64 bytes = 0;
  sb_puts(t, json ? "{\"folder\": " : "");
  if (json) sb_json(t, folder, strlen(folder));
  sb_puts(t, json ? ", \"files\": [" : "");
  for (u32 i = 0; i < all.n; i++) {
    const CacheEntry *e = &all.at[i];
    double age = difftime(now, e->used);
    bytes += e->bytes;
    if (json) {
      sb_fmt(t, "%s\n  {\"kind\": \"%.*s\", \"model\": \"%s\", \"bytes\": %llu, \"age_s\": %.0f, ",
             i ? "," : "", (int)strlen(e->kind->prefix) - 1, e->kind->prefix, e->model,
             (unsigned long long)e->bytes, age);
      sb_fmt(t, "\"name\": \"%s\"}", e->name);
    } else {
      sb_fmt(t, "%-28s%10.2f MB%10.1f hours  %-24s  %.*s\n", e->kind->what, (double)e->bytes * 1e-6,
             age / 3600, *e->model ? e->model : "-", (int)strcspn(e->name, "."), e->name);
    }
  }
  if (json)
    sb_fmt(t, "], \"bytes\": %llu}\n", (unsigned long long)bytes);
  else
    sb_fmt(t, "%u file%s, %.2f MB in %s\n", all.n, all.n == 1 ? "" : "s", (double)bytes * 1e-6,
           folder);
}

IngotStatus ingot_cache_list(Ingot *m, int json, const char **text, size_t *n) {
  return api_call_text(m, list, json, text, n);
}
