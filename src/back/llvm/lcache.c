/* lcache.c: cache of compiled code.
 *
 * A file is named by a hash of everything its code depends on: program, machine, versions. It holds
 * a magic string, the number of objects, each object's size and bytes, and a hash of all that. A
 * damaged file is ignored. The hash is not a signature, so `take` refuses files that other users
 * can write to. */
#include "back/llvm/llvm.h"

#include <string.h>

static const char mark[16] = "ingot objects 1";

static void name_file(LlvmGen *g) {
  StrBuf key = program_key(g), path = sb_new(&g->c->keep);
  sb_fmt(&path, "%s/jit-%s%s", g->o->keep, digest_bytes(key.at, key.n).digit, g->o->label);
  g->file = sb_cstr(&path);
}

static u64 number_at(const u8 *at) {
  u64 x;
  memcpy(&x, at, sizeof x);
  return x;
}

static bool is_whole(const File *f) {
  if (f->n < sizeof mark + 16 || memcmp(f->at, mark, sizeof mark) != 0) return false;
  return number_at(f->at + f->n - 8) == hash_bytes(f->at, f->n - 8);
}

bool cache_read(LlvmGen *g) {
  if (!g->o->keep) return false;
  name_file(g);
  if (!g->o->take(g->c, g->file)) return false;
  File f = file_read_own(g->c, g->file);
  if (!is_whole(&f)) return false;
  u64 n = number_at(f.at + sizeof mark), at = sizeof mark + 8;
  g->units = NEWS(&g->c->keep, LlvmUnit, n);
  for (u64 i = 0; i < n; i++) {
    u64 size = number_at(f.at + at);
    g->units[i].object = g->l->LLVMCreateMemoryBufferWithMemoryRangeCopy(
        (const char *)f.at + at + 8, (size_t)size, "kept");
    g->nunits = (u32)i + 1;
    at += 8 + size;
  }
  return true;
}

void cache_write(LlvmGen *g) {
  if (!g->file) return;
  StrBuf t = sb_new(&g->c->keep);
  u64 n = g->nunits;
  sb_put(&t, mark, sizeof mark);
  sb_put(&t, &n, sizeof n);
  for (u32 i = 0; i < g->nunits; i++) {
    u64 size = g->l->LLVMGetBufferSize(g->units[i].object);
    sb_put(&t, &size, sizeof size);
    sb_put(&t, g->l->LLVMGetBufferStart(g->units[i].object), (size_t)size);
  }
  u64 hash = hash_bytes(t.at, t.n);
  sb_put(&t, &hash, sizeof hash);
  files_write(g->c, &(FileOut){.path = g->file, .at = t.at, .n = t.n, .cached = true}, 1);
}
