/* files.c: files that are written: named before work begins, and put in place at its end.
 *
 * In: paths, and what shall be in them, or what the process shall not leave behind. Out: files that
 * appear whole or not at all. That none of them is one that was read is seen to by base/file.c.
 */
#include "api/own.h"

#include <sys/stat.h>

/* The public type is the inner one under another name. */
IngotGuard *ingot_guard_new(void (*doing)(void *user, const char *what), void *user) {
  return (IngotGuard *)guard_new(doing, user);
}

void ingot_guard_free(IngotGuard *g) {
  guard_free((Guard *)g);
}

void ingot_guard_end(IngotGuard *g) {
  if (g) guard_end((Guard *)g);
}

IngotStatus ingot_set_guard(Ingot *m, IngotGuard *g) {
  if (!m) return INGOT_USAGE;
  m->c->guard = (Guard *)g;
  return (IngotStatus)m->status;
}

typedef struct WriteArg {
  const IngotFile *file;
  u32 n;
} WriteArg;

static void do_write_files(Ctx *c, void *arg) {
  WriteArg *a = arg;
  FileOut *f = NEWS(&c->keep, FileOut, a->n);
  if (a->n) api_need(c, a->file, "the list of files");
  for (u32 i = 0; i < a->n; i++) {
    api_need(c, a->file[i].path, "the path of a file");
    if (a->file[i].n) api_need(c, a->file[i].data, "the contents of a file");
    f[i] = (FileOut){.path = a->file[i].path, .at = a->file[i].data, .n = a->file[i].n};
  }
  files_write(c, f, a->n);
}

IngotStatus ingot_write_files(Ingot *m, const IngotFile *file, uint32_t count) {
  return api_call(m, do_write_files, &(WriteArg){file, count});
}

IngotStatus ingot_write_file(Ingot *m, const char *path, const void *data, size_t n) {
  return ingot_write_files(m, &(IngotFile){path, data, n}, 1);
}

typedef struct PlanArg {
  const char *const *path;
  u32 n;
} PlanArg;

static void do_will_write(Ctx *c, void *arg) {
  const PlanArg *a = arg;
  if (a->n) api_need(c, a->path, "the list of paths");
  for (u32 i = 0; i < a->n; i++) api_need(c, a->path[i], "a path");
  files_plan(c, a->path, a->n);
}

IngotStatus ingot_will_write(Ingot *m, const char *const *path, uint32_t n) {
  return api_call(m, do_will_write, &(PlanArg){path, n});
}

/* How many outputs a folder will receive is not known yet: those that are there are looked at. */
static void do_will_write_outputs(Ctx *c, void *arg) {
  const char *path = *((const PlanArg *)arg)->path;
  struct stat st;
  api_need(c, path, "the path");
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
    files_plan(c, &path, 1);
    return;
  }
  Strs there = data_list(c, path, "output", &c->keep);
  const char *first = str_text(c, str_fmt(c, "%s/output_0.pb", path));
  files_plan(c, &first, 1);
  for (u32 i = 1; i < there.n; i++) {
    const char *next = str_text(c, there.at[i]);
    files_plan(c, &next, 1);
  }
}

IngotStatus ingot_will_write_outputs(Ingot *m, const char *path) {
  return api_call(m, do_will_write_outputs, &(PlanArg){&path, 1});
}
