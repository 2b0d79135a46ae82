/* base_own.h: private to base/. */
#ifndef INGOT_BASE_OWN_H
#define INGOT_BASE_OWN_H

#include "base/base.h"

enum { DIAG_MAX = 1000, SPARE_TEXT = 512 };

/* Full storage of a Ctx. The spare message lets fail() report that memory is exhausted. */
typedef struct CtxStorage {
  Ctx c; /* first, so that a Ctx pointer is also a CtxStorage pointer */
  Diag spare;
  bool spare_used;
  char spare_text[SPARE_TEXT];
  Err left; /* code that ended the last protected call */
} CtxStorage;

/* A file held in memory until ctx_free. The record is allocated before the file is opened, so that
 * running out of memory never leaks a mapping. p is NULL while nothing is held. */
typedef struct MappedFile {
  struct MappedFile *next;
  void *p;
  size_t n;      /* bytes of the file */
  size_t cap;    /* bytes allocated; 0 when mapped */
  u64 dev, node; /* device and inode, so that a file is mapped once and not overwritten */
  i64 size, sec, nsec;
  const char *path; /* NULL: it may be overwritten */
} MappedFile;

/* An existing file that will be replaced. */
typedef struct PlannedFile {
  struct PlannedFile *next;
  const char *path;
  u64 dev, node;
} PlannedFile;

/* arena.c: returns NULL when memory is exhausted, for callers outside a protected call. */
void *arena_try(Arena *a, size_t n);
/* str.c */
void strs_init(Ctx *c);
/* file.c */
void files_free(Ctx *c);

#endif
