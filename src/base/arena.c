/* Arenas: memory allocated in order and released as a whole or back to a mark.
 *
 * An arena is a list of blocks, newest first, each twice as large as the previous one (4 KiB to 1
 * MiB). A large request gets its own block, attached to the newest block, which stays in use; it
 * may be enlarged. Every block records the bytes allocated before it (stamp). That count grows with
 * each request, so it orders both blocks and marks.
 *
 * With INGOT_HOSTILE every request is a block of exactly its size, and arrays move on append and
 * free their old storage, so that sanitizers detect overruns and stale pointers. */
#include "base/base_own.h"
#include <string.h>

enum { ALIGN = 16, BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20, HEAD = 64 };

typedef struct Block Block;
struct Block {
  Block *next;  /* older; for a large block: the next large block of the same host */
  Block *prev;  /* newer: for large blocks, or with INGOT_HOSTILE */
  Block *host;  /* large block: the block it is attached to */
  Block *large; /* large blocks allocated while this block was the newest */
  Arena *owner;
  size_t cap, at; /* bytes after the header; bytes allocated of these */
  size_t stamp;   /* owner->used when the block was created */
};
_Static_assert(sizeof(Block) <= HEAD && HEAD % ALIGN == 0, "block header");

#ifdef INGOT_HOSTILE
static const bool hostile = true;
#else
static const bool hostile = false;
#endif

static u8 *bytes(Block *b) {
  return (u8 *)b + HEAD;
}

/* The allocator hook aligns like realloc, which suffices for ALIGN. */
static Block *make(Arena *a, size_t cap) {
  if (cap > SIZE_MAX / 2) return NULL;
  Block *b = a->c->alloc.resize(a->c->alloc.user, NULL, 0, HEAD + cap);
  if (!b) return NULL;
  *b = (Block){.owner = a, .cap = cap, .stamp = a->used};
  return b;
}

static void release(Block *b) {
  Alloc *m = &b->owner->c->alloc;
  m->resize(m->user, b, HEAD + b->cap, 0);
}

static void push(Arena *a, Block *b) {
  b->next = a->block;
  if (a->block) a->block->prev = b;
  a->block = b;
}

static bool is_large(size_t n) {
  return n > BLOCK_MAX / 4;
}

/* Inserts a large block before `next` in the list of its host. */
static void hang(Block *b, Block *host, Block *next) {
  b->host = host;
  b->next = next;
  if (next) next->prev = b;
  if (b->prev)
    b->prev->next = b;
  else
    host->large = b;
}

/* Returns a block with room for n bytes: a new newest block, or a large block. */
static Block *grow(Arena *a, size_t n) {
  if (hostile) {
    Block *b = make(a, n);
    if (b) push(a, b);
    return b;
  }
  if (is_large(n)) {
    if (!a->block && !grow(a, 0)) return NULL;
    Block *b = make(a, n);
    if (b) hang(b, a->block, a->block->large);
    return b;
  }
  size_t size = a->block ? a->block->cap * 2 : BLOCK_MIN;
  while (size < n * 4) size *= 2;
  Block *b = make(a, size < BLOCK_MAX ? size : BLOCK_MAX);
  if (b) push(a, b);
  return b;
}

void *arena_try(Arena *a, size_t n) {
  if (n > SIZE_MAX / 2) return NULL;
  size_t step = n == 0 ? ALIGN : (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  size_t need = hostile ? n : step;
  Block *b = a->block;
  if (hostile || !b || is_large(need) || need > b->cap - b->at) b = grow(a, need);
  if (!b) return NULL;
  void *p = bytes(b) + b->at;
  b->at += need;
  a->used += step;
  return n == 0 ? p : memset(p, 0, n);
}

void *arena_alloc(Arena *a, size_t n) {
  void *p = arena_try(a, n);
  if (!p) fail(a->c, ERR_system, LOC_NONE, "out of memory (%zu bytes)", n);
  return p;
}

void *arena_array(Arena *a, size_t n, size_t size) {
  u64 total;
  if (!size_mul(n, size, &total) || total > SIZE_MAX)
    fail(a->c, ERR_system, LOC_NONE, "out of memory (%zu times %zu bytes)", n, size);
  return arena_alloc(a, (size_t)total);
}

void *arena_copy(Arena *a, const void *from, size_t n) {
  void *p = arena_alloc(a, n);
  if (n) memcpy(p, from, n);
  return p;
}

Mark arena_mark(Arena *a) {
  return (Mark){a->block, a->block ? a->block->at : 0, a->used};
}

/* Blocks created since the mark have its stamp or a later one. */
void arena_rewind(Arena *a, Mark m) {
  while (a->block && a->block->stamp >= m.used) {
    Block *b = a->block;
    a->block = b->next;
    while (b->large) {
      Block *l = b->large;
      b->large = l->next;
      release(l);
    }
    release(b);
  }
  Block *b = a->block;
  if (b) {
    b->prev = NULL;
    while (b->large && b->large->stamp >= m.used) {
      Block *l = b->large;
      b->large = l->next;
      release(l);
    }
    if (b->large) b->large->prev = NULL;
    if (b == m.block) b->at = m.at;
  }
  a->used = m.used;
}

void arena_clear(Arena *a) {
  arena_rewind(a, (Mark){0});
}

/* The block of a request that fills a whole block, from its address. */
static Block *block_of(void *p) {
  return (Block *)((u8 *)p - HEAD);
}

/* Hostile builds only: frees one request. */
static void drop(Arena *a, void *p) {
  Block *b = block_of(p);
  if (b->owner != a) return;
  if (b->next) b->next->prev = b->prev;
  if (b->prev) b->prev->next = b->next;
  if (a->block == b) a->block = b->next;
  release(b);
}

/* realloc moves a large block by remapping its pages; untouched pages use no memory. */
void *arena_extend(Arena *a, void *p, size_t n, size_t more) {
  size_t was = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1),
         cap = (more + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (hostile || !is_large(was) || more > SIZE_MAX / 2) {
    void *to = arena_alloc(a, more);
    if (n) memcpy(to, p, n);
    if (hostile && n) drop(a, p);
    return to;
  }
  Block *b = block_of(p);
  b = a->c->alloc.resize(a->c->alloc.user, b, HEAD + was, HEAD + cap);
  if (!b) fail(a->c, ERR_system, LOC_NONE, "out of memory (%zu bytes)", more);
  hang(b, b->host, b->next);
  a->used += cap - was;
  b->cap = b->at = cap;
  return bytes(b);
}

/* Moves an array of n elements from capacity `cap` to `more`. Frees the old storage if it was a
 * large block, so that a long array exists only once. */
static void *longer(Arena *a, void *at, u32 n, u32 cap, u32 more, size_t size) {
  u64 total;
  if (!hostile && is_large(cap * size) && block_of(at)->owner == a &&
      size_mul(more, size, &total) && total <= SIZE_MAX)
    return arena_extend(a, at, cap * size, (size_t)total);
  void *to = arena_array(a, more, size);
  if (n) memcpy(to, at, n * size);
  if (hostile && cap) drop(a, at);
  return to;
}

void vec_grow(Arena *a, void **at, u32 *n, u32 *cap, size_t size) {
  if (*n == UINT32_MAX) fail(a->c, ERR_system, LOC_NONE, "array of more than %u elements", *n);
  /* Hostile arrays move on every append; above 4096 elements that would take quadratic time. */
  if (*n >= *cap || (hostile && *n < 4096)) {
    u32 more = *cap < 8 ? 8 : *cap > UINT32_MAX / 2 ? UINT32_MAX : *cap * 2;
    if (hostile) more = *n < 4096 ? *n + 1 : *n > UINT32_MAX / 2 ? UINT32_MAX : *n + *n / 16;
    *at = longer(a, *at, *n, *cap, more, size);
    *cap = more;
  }
  memset((u8 *)*at + *n * size, 0, size);
  *n += 1;
}
