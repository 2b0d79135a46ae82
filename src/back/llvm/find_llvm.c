/* find_llvm.c: finds and loads libLLVM.
 *
 * Out: a table of functions of the newest libLLVM from 14 to 19 that the loader finds, or of the
 * one that INGOT_LLVM names. It is loaded on first use, so ingot builds and starts without it. It
 * is never unloaded. */
#include "back/llvm/llvm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef INGOT_NO_LLVM

enum { OLDEST = 14, NEWEST = 19 };

static void *open_version(u32 version) {
  static const char *const forms[] = {"libLLVM.so.%u.1", "libLLVM-%u.so.1", "libLLVM-%u.so"};
  char name[64];
  for (u32 i = 0; i < sizeof forms / sizeof *forms; i++) {
    snprintf(name, sizeof name, forms[i], version);
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle) return handle;
  }
  return NULL;
}

static void *open_any(u32 *version) {
  const char *named = getenv("INGOT_LLVM");
  char *end;
  if (!named || !*named) {
    for (*version = NEWEST; *version >= OLDEST; --*version) {
      void *handle = open_version(*version);
      if (handle) return handle;
    }
    return NULL;
  }
  *version = (u32)strtoul(named, &end, 10);
  if (!*end) return *version < OLDEST || *version > NEWEST ? NULL : open_version(*version);
  const char *slash = strrchr(named, '/'), *number = strpbrk(slash ? slash : named, "0123456789");
  *version = number ? (u32)strtoul(number, NULL, 10) : 0;
  return dlopen(named, RTLD_LAZY | RTLD_LOCAL);
}

static const char *find_all(Llvm *l) {
  union {
    void *p;
    void (*fn)(void);
  } sym;
#define LF(result, name, params)                                                                   \
  sym.p = dlsym(l->handle, #name);                                                                 \
  if (!sym.p) return #name;                                                                        \
  l->name = (result(*) params)sym.fn;
#include "back/llvm/functions.def"
#undef LF
  return NULL;
}

const Llvm *llvm_load(Ctx *c) {
  Llvm *l = NEW(&c->keep, Llvm);
  const char *named = getenv("INGOT_LLVM");
  l->handle = open_any(&l->version);
  if (!l->handle && named && *named)
    fail(c, ERR_unsupported, LOC_NONE, "INGOT_LLVM=%s: no such library; expected LLVM %d to %d",
         named, OLDEST, NEWEST);
  if (!l->handle)
    fail(c, ERR_unsupported, LOC_NONE, "this needs LLVM %d to %d, but libLLVM was not found",
         OLDEST, NEWEST);
  const char *missing = find_all(l);
  if (missing)
    fail(c, ERR_unsupported, LOC_NONE, "this LLVM lacks the function %s; versions %d to %d have it",
         missing, OLDEST, NEWEST);
  return l;
}

u32 llvm_version(void) {
  u32 version;
  return open_any(&version) ? version : 0;
}

#else

Jit *jit_make(const Prog *p, const LlvmOptions *o) {
  (void)o;
  fail(p->c, ERR_unsupported, LOC_NONE, "this ingot was built without LLVM (LLVM=0)");
}

void jit_end(Jit *j) {
  (void)j;
}

void llvm_object(const Prog *p, const LlvmOptions *o, StrBuf *to) {
  (void)to;
  jit_make(p, o);
}

void llvm_print(const Prog *p, const LlvmOptions *o, StrBuf *to) {
  (void)to;
  jit_make(p, o);
}

const char *status_text(Ctx *c, const StrList *why, u32 status) {
  (void)c, (void)why, (void)status;
  return "";
}

u32 llvm_version(void) {
  return 0;
}

#endif
