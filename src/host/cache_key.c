/* cache_key.c: parts of cache keys.
 *
 * In: a file, or this ingot. Out: text that changes when the file is replaced or written, or only
 * when its content changes.
 */
#include "host/host.h"
#include "ingot.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A changed file has another size or time. The time of its status change cannot be set. */
void cache_key_add_file(Ctx *c, StrBuf *t, const char *path) {
  struct stat st;
  char *real = realpath(path, NULL);
  if (stat(path, &st) != 0 || !real) fail(c, ERR_system, LOC_NONE, "%s: cannot be read", path);
  sb_fmt(t, "%zu %s %lld %lld.%09ld %lld.%09ld %llu\n", strlen(real), real, (long long)st.st_size,
         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
         st.st_ctim.tv_nsec, (unsigned long long)st.st_ino);
  free(real);
}

/* The folder of the file, and the name of a GGUF file, do not matter. */
void cache_key_add_content(Ctx *c, StrBuf *t, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  File f = file_read_own(c, path);
  if (strstr(name, ".gguf")) name = "";
  sb_fmt(t, "%zu %s %s\n", strlen(name), name, digest_bytes(f.at, f.n).digit);
}

/* A rebuilt ingot may make other code, even with the same version. It is a program, or a library in
 * another program. */
void cache_key_add_self(Ctx *c, StrBuf *t) {
  static const char here = 0;
  Dl_info found;
  bool is_library = dladdr(&here, &found) && found.dli_fname && strstr(found.dli_fname, ".so");
  const char *path = is_library ? found.dli_fname : "/proc/self/exe";
  sb_fmt(t, "version=%s\n", INGOT_VERSION);
  if (!access(path, R_OK)) cache_key_add_file(c, t, path);
}
