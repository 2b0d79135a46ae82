/* A file, damaged: cut off at every length and with every bit turned. Whoever reads it says ok,
 * "wrong" or "not supported", in memory that ends with the bytes, so that sanitizers see who reads
 * beyond. */
#ifndef DAMAGE_H
#define DAMAGE_H

#include "check.h"
#include "front/reader.h"

#include <stdlib.h>
#include <string.h>

typedef struct Damage {
  const char *path;
  void (*read)(Ctx *c, void *source);
  bool (*short_fits)(Err e, size_t n,
                     size_t whole); /* may n of the `whole` bytes be answered so? */
} Damage;

static Err damage_try(const Damage *d, const u8 *at, size_t n) {
  Ctx *c = ctx_new(NULL, NULL);
  u8 *copy = malloc(n ? n : 1);
  Err e = ERR_system;
  if (c && copy) {
    memcpy(copy, at, n);
    e = ctx_protect(c, d->read, &(Source){.at = copy, .n = n});
  }
  ctx_free(c);
  free(copy);
  return e;
}

/* arg: a Damage. */
static void damage(Ctx *c, void *arg) {
  const Damage *d = arg;
  File f = file_read(c, d->path);
  u8 *at = arena_copy(&c->work, f.at, f.n);
  u32 accepted = 0;
  CHECK(damage_try(d, at, f.n) == ERR_ok);
  for (size_t n = 0; n < f.n; n++) CHECK(d->short_fits(damage_try(d, at, n), n, f.n));
  for (size_t i = 0; i < 8 * f.n; i++) {
    at[i / 8] ^= (u8)(1u << i % 8);
    Err e = damage_try(d, at, f.n);
    CHECK(e == ERR_ok || e == ERR_input || e == ERR_unsupported);
    accepted += e == ERR_ok;
    at[i / 8] ^= (u8)(1u << i % 8);
  }
  printf("%u of %zu accepted\n", accepted, 8 * f.n);
}

#endif
