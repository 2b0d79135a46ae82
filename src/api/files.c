/* files.c: output files: checked before the work, put in place at its end.
 *
 * In: paths and contents; temporary files of a guard. Out: files, written atomically. base/file.c
 * ensures that none of them was read.
 */
#include "api/api_internal.h"
#include "front/onnx/pb.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* IngotGuard is the internal type under its public name. */
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

static void write_files(Ctx *c, const IngotFile *file, u32 n) {
  FileOut *f = NEWS(&c->keep, FileOut, n);
  if (n) api_need(c, file, "the list of files");
  for (u32 i = 0; i < n; i++) {
    api_need(c, file[i].path, "the path of a file");
    if (file[i].n) api_need(c, file[i].data, "the contents of a file");
    f[i] = (FileOut){.path = file[i].path, .at = file[i].data, .n = file[i].n};
  }
  files_write(c, f, n);
}

IngotStatus ingot_write_files(Ingot *m, const IngotFile *file, uint32_t count) {
  API_CALL(m, write_files(m->c, file, count));
}

IngotStatus ingot_write_file(Ingot *m, const char *path, const void *data, size_t n) {
  return ingot_write_files(m, &(IngotFile){path, data, n}, 1);
}

static void will_write(Ctx *c, const char *const *path, u32 n) {
  if (n) api_need(c, path, "the list of paths");
  for (u32 i = 0; i < n; i++) api_need(c, path[i], "a path");
  files_plan(c, path, n);
}

IngotStatus ingot_will_write(Ingot *m, const char *const *path, uint32_t n) {
  API_CALL(m, will_write(m->c, path, n));
}

/* Reads the first bytes of a file; 0 for other things and for pipes, which would block. */
static size_t head_read(const char *path, u8 *head, size_t n) {
  struct stat st;
  if (stat(path, &st) || !S_ISREG(st.st_mode)) return 0;
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  n = fread(head, 1, n, f);
  fclose(f);
  return n;
}

int ingot_is_model_file(const char *path) {
  static const char *const unmarked[] = {".onnx", ".ort"};
  u8 head[4096];
  size_t got = path ? head_read(path, head, sizeof head) : 0;
  size_t len = path ? strlen(path) : 0;
  if (!got) return 0;
  for (u32 i = 0; i < sizeof unmarked / sizeof *unmarked; i++) {
    size_t k = strlen(unmarked[i]);
    if (k < len && !strcmp(path + len - k, unmarked[i])) return 1;
  }
  return vm_sniff(head, got) || reader_marked(head, got);
}

/* The number of outputs is not known yet: checks the existing ones. */
static void will_write_outputs(Ctx *c, const char *path) {
  struct stat st;
  api_need(c, path, "the path");
  if (ends_with(path, ".npz") || ends_with(path, ".npy")) {
    files_plan(c, &path, 1);
    return;
  }
  Strs there = {0};
  if (!stat(path, &st) && S_ISDIR(st.st_mode)) there = data_list(c, path, "output", &c->keep);
  const char *first = fmt_text(c, "%s/output_0.pb", path);
  files_plan(c, &first, 1);
  for (u32 i = 1; i < there.n; i++) {
    const char *next = str_text(c, there.at[i]);
    files_plan(c, &next, 1);
  }
}

IngotStatus ingot_will_write_outputs(Ingot *m, const char *path) {
  API_CALL(m, will_write_outputs(m->c, path));
}
