/* An allocator that refuses more than MOST_BYTES, a constant of who includes this, and knows what
 * it has given away. */
#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

typedef struct Memory {
  size_t held;
  bool refused;
} Memory;

static void *resize(void *user, void *p, size_t old, size_t size) {
  Memory *m = user;
  if (size > old && size - old > MOST_BYTES - m->held) {
    m->refused = true;
    return NULL;
  }
  m->held += size - old;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

#endif
