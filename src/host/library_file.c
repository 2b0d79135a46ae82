/* library_file.c: checks that a shared object is complete.
 *
 * In: the path of a user's library. Out: nothing, or a refusal. The loader maps the segments in an
 * ELF header without checking the file length; access past the end kills the process (SIGBUS). So
 * headers, tables and segments must lie inside the file. The contents are not checked: loaded code
 * is trusted. Other formats are left to the loader.
 */
#include "host/host.h"

#include <string.h>

/* Offset and width of fields in 32-bit and 64-bit headers. */
typedef struct Field {
  u8 at, width;
} Field;

typedef struct Elf {
  u64 header, entry, section; /* bytes of the file header and of entries of the two tables */
  Field phoff, phsize, phnum, shoff, shsize, shnum;
  Field offset, filesz; /* fields of a program header */
} Elf;

static const Elf elf[2] = {
    {52, 32, 40, {28, 4}, {42, 2}, {44, 2}, {32, 4}, {46, 2}, {48, 2}, {4, 4}, {16, 4}},
    {64, 56, 64, {32, 8}, {54, 2}, {56, 2}, {40, 8}, {58, 2}, {60, 2}, {8, 8}, {32, 8}},
};

enum { ELF_CLASS = 4, ELF_ORDER = 5, ELF_BIG = 2 };

static u64 get(const u8 *base, bool is_big, Field f) {
  u64 x = 0;
  for (u32 i = 0; i < f.width; i++) x = x << 8 | base[f.at + (is_big ? i : f.width - 1u - i)];
  return x;
}

static bool is_inside(const File *f, u64 at, u64 n) {
  return at <= f->n && n <= f->n - at;
}

static bool is_whole(const File *f) {
  const Elf *l = &elf[f->at[ELF_CLASS] == 2];
  bool is_big = f->at[ELF_ORDER] == ELF_BIG;
  if (!is_inside(f, 0, l->header)) return false;
  u64 table = get(f->at, is_big, l->phoff), n = get(f->at, is_big, l->phnum);
  u64 sections = get(f->at, is_big, l->shoff), count = get(f->at, is_big, l->shnum);
  if (get(f->at, is_big, l->phsize) != l->entry || !is_inside(f, table, n * l->entry)) return false;
  if (count &&
      (get(f->at, is_big, l->shsize) != l->section || !is_inside(f, sections, count * l->section)))
    return false;
  for (u64 i = 0; i < n; i++) {
    const u8 *p = f->at + table + i * l->entry;
    if (!is_inside(f, get(p, is_big, l->offset), get(p, is_big, l->filesz))) return false;
  }
  return true;
}

static bool is_cut_off(const File *f) {
  return f->n <= ELF_ORDER || (!memcmp(f->at, "\177ELF", 4) && !is_whole(f));
}

bool library_is_complete(Ctx *c, const char *path) {
  File f = file_read_own(c, path);
  return !is_cut_off(&f);
}

void library_check(Ctx *c, const char *path) {
  File f = file_read(c, path);
  if (is_cut_off(&f))
    fail(c, ERR_input, LOC_NONE, "%s is truncated: its %llu bytes end before its contents",
         show_text(c, str_of(c, path)), (unsigned long long)f.n);
}
