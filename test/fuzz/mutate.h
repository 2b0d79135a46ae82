/* Mutations that keep a file a well-formed protobuf message: a field somewhere in the tree of
 * messages is removed, doubled, swapped with a neighbor, taken from another input, or gets another
 * number or other bytes; the lengths of all messages around it follow. What a payload means is
 * guessed: bytes that parse as a message are one. Bytes mutated blindly almost never get past the
 * reader. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
                                 uint8_t *out, size_t max, unsigned seed);

enum { MU_FIELDS = 512, MU_DEPTH = 10 };

typedef struct Field {
  size_t at, end; /* in the buffer, tag included */
  size_t body;    /* of the value: behind the tag and, for bytes, the length */
  unsigned tag, wire;
} Field;

static bool mu_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *x) {
  *x = 0;
  for (int shift = 0; *at < n && shift < 64; shift += 7) {
    uint8_t b = p[(*at)++];
    *x |= (uint64_t)(b & 127) << shift;
    if (b < 128) return true;
  }
  return false;
}

static size_t mu_put(uint8_t *to, uint64_t x) {
  size_t n = 0;
  for (; x > 127; x >>= 7) to[n++] = (uint8_t)(x | 128);
  to[n++] = (uint8_t)x;
  return n;
}

/* Fields of the message p[at..end); -1 when it is none. At most MU_FIELDS are given. */
static int mu_fields(const uint8_t *p, size_t at, size_t end, Field *f) {
  int n = 0;
  while (at < end) {
    Field x = {.at = at};
    uint64_t tag, len;
    if (!mu_varint(p, end, &at, &tag) || tag < 8 || tag > 512) return -1;
    x.tag = (unsigned)tag >> 3, x.wire = (unsigned)tag & 7, x.body = at;
    if (x.wire == 0) {
      if (!mu_varint(p, end, &at, &len)) return -1;
    } else if (x.wire == 2) {
      if (!mu_varint(p, end, &at, &len) || len > end - at) return -1;
      x.body = at;
      at += len;
    } else if (x.wire == 1 || x.wire == 5) {
      if (end - at < (x.wire == 1 ? 8u : 4u)) return -1;
      at += x.wire == 1 ? 8 : 4;
    } else {
      return -1;
    }
    x.end = at;
    if (n < MU_FIELDS) f[n++] = x;
  }
  return n;
}

typedef struct Mutation {
  uint8_t *p;
  size_t n, max;
  unsigned rnd;
  Field path[MU_DEPTH]; /* the messages around the place, outermost first */
  int depth;
} Mutation;

static unsigned mu_rand(Mutation *m, unsigned n) {
  m->rnd = m->rnd * 1664525 + 1013904223;
  return n ? (m->rnd >> 8) % n : 0;
}

/* Replaces p[at..end) by the given bytes, then rewrites the lengths around it. */
static bool mu_splice(Mutation *m, size_t at, size_t end, const uint8_t *by, size_t nby) {
  if (m->n - (end - at) + nby + 10 * (size_t)m->depth > m->max) return false;
  memmove(m->p + at + nby, m->p + end, m->n - end);
  if (nby) memcpy(m->p + at, by, nby);
  m->n = m->n - (end - at) + nby;
  int64_t grown = (int64_t)nby - (int64_t)(end - at);
  for (int i = m->depth - 1; i >= 0; i--) {
    Field *f = &m->path[i];
    uint8_t head[20];
    size_t k = mu_put(head, f->tag << 3 | 2);
    k += mu_put(head + k, (uint64_t)((int64_t)(f->end - f->body) + grown));
    size_t old = f->body - f->at;
    memmove(m->p + f->at + k, m->p + f->body, m->n - f->body);
    memcpy(m->p + f->at, head, k);
    m->n += k - old;
    grown += (int64_t)k - (int64_t)old;
  }
  return true;
}

static void mu_number(Mutation *m, const Field *f) {
  static const int64_t edge[] = {
      0,  1,  2,   3,     4,         7,         8,         -1,        -2,
      -3, 64, 255, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 40};
  size_t at = f->body;
  uint64_t x;
  uint8_t to[10];
  mu_varint(m->p, f->end, &at, &x);
  unsigned how = mu_rand(m, 4);
  if (how == 0)
    x = (uint64_t)edge[mu_rand(m, sizeof edge / sizeof *edge)];
  else if (how == 1)
    x += 1 + mu_rand(m, 3);
  else if (how == 2)
    x -= 1 + mu_rand(m, 3);
  else
    x = mu_rand(m, 30);
  mu_splice(m, f->body, f->end, to, mu_put(to, x));
}

static void mu_bytes(Mutation *m, const Field *f) {
  size_t n = f->end - f->body, room = n + 16;
  uint8_t *to = malloc(room + 20), head[20];
  memcpy(to + 20, m->p + f->body, n);
  n = LLVMFuzzerMutate(to + 20, n, f->wire == 2 ? room : n);
  size_t k = f->wire == 2 ? mu_put(head, f->tag << 3 | 2) : 0;
  if (f->wire == 2) {
    k += mu_put(head + k, n);
    memcpy(to + 20 - k, head, k);
    mu_splice(m, f->at, f->end, to + 20 - k, n + k);
  } else if (n == f->end - f->body) {
    mu_splice(m, f->body, f->end, to + 20, n);
  }
  free(to);
}

/* Name of a value of the graph around: result of a node, input or initializer. Returns its field.
 */
static bool mu_name(Mutation *m, Field *name) {
  enum { NODE = 1, INIT = 5, INPUT = 11 };
  Field *f = malloc(sizeof *f * MU_FIELDS), *g = malloc(sizeof *g * MU_FIELDS);
  bool found = false;
  int n = mu_fields(m->p, m->path[m->depth - 2].body, m->path[m->depth - 2].end, f);
  for (int tries = 0; n > 0 && tries < 8 && !found; tries++) {
    const Field *x = &f[mu_rand(m, (unsigned)n)];
    unsigned want = x->tag == NODE ? 2 : x->tag == INIT ? 8 : x->tag == INPUT ? 1 : 0;
    int k = x->wire == 2 && want ? mu_fields(m->p, x->body, x->end, g) : 0;
    for (int i = 0; i < k; i++)
      if (g[i].tag == want && g[i].wire == 2) *name = g[i], found = true;
  }
  free(f);
  free(g);
  return found;
}

static void mu_field(Mutation *m, const Field *all, int n, int i) {
  const Field *f = &all[i], *o = &all[mu_rand(m, (unsigned)n)];
  unsigned how = mu_rand(m, 12);
  uint8_t *copy = malloc(m->n + 1);
  memcpy(copy, m->p, m->n);
  Field name;
  if (how > 5 && f->tag == 1 && f->wire == 2 && m->depth > 1 && m->path[m->depth - 1].tag == 1 &&
      mu_name(m, &name)) {
    uint8_t head[20] = {1 << 3 | 2}; /* an operand of a node becomes another value */
    size_t k = 1 + mu_put(head + 1, name.end - name.body);
    uint8_t *to = malloc(k + name.end - name.body);
    memcpy(to, head, k);
    memcpy(to + k, copy + name.body, name.end - name.body);
    mu_splice(m, f->at, f->end, to, k + name.end - name.body);
    free(to);
  } else if (how == 0) {
    mu_splice(m, f->at, f->end, NULL, 0);
  } else if (how == 1) {
    mu_splice(m, o->at, o->at, copy + f->at, f->end - f->at); /* doubled, at another place */
  } else if (how == 2 && o->tag == f->tag) {
    mu_splice(m, f->at, f->end, copy + o->at, o->end - o->at); /* the same as a neighbor */
  } else if (f->wire == 0) {
    mu_number(m, f);
  } else {
    mu_bytes(m, f);
  }
  free(copy);
}

static void mu_walk(Mutation *m) {
  static const int stop = 5; /* one in so many messages is changed itself */
  Field *f = malloc(sizeof *f * MU_FIELDS);
  size_t at = 0, end = m->n;
  for (;;) {
    int n = mu_fields(m->p, at, end, f);
    if (n <= 0) break;
    int i = (int)mu_rand(m, (unsigned)n);
    Field *sub = malloc(sizeof *sub * MU_FIELDS);
    bool inner = f[i].wire == 2 && f[i].end > f[i].body && m->depth < MU_DEPTH &&
                 mu_fields(m->p, f[i].body, f[i].end, sub) > 0;
    free(sub);
    if (!inner || mu_rand(m, (unsigned)stop) == 0) {
      mu_field(m, f, n, i);
      break;
    }
    m->path[m->depth++] = f[i];
    at = f[i].body;
    end = f[i].end;
  }
  free(f);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  Mutation m = {.p = data, .n = size, .max = max, .rnd = seed};
  if (mu_rand(&m, 16) == 0) return LLVMFuzzerMutate(data, size, max);
  for (unsigned k = 1 + mu_rand(&m, 3); k > 0; k--) {
    m.depth = 0;
    mu_walk(&m);
  }
  return m.n ? m.n : LLVMFuzzerMutate(data, size, max);
}

static const Field *mu_find(const Field *f, int n, unsigned tag) {
  for (int i = 0; i < n; i++)
    if (f[i].tag == tag && f[i].wire == 2) return &f[i];
  return NULL;
}

/* Puts a node, initializer or input of the graph of b into the graph of a. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
                                 uint8_t *out, size_t max, unsigned seed) {
  enum { GRAPH = 7 };
  static const size_t none = 0;
  if (na > max) return none;
  Mutation m = {.p = out, .n = na, .max = max, .rnd = seed};
  memcpy(out, a, na);
  Field *f = malloc(sizeof *f * MU_FIELDS), *e = malloc(sizeof *e * MU_FIELDS);
  const Field *g = mu_find(f, mu_fields(a, 0, na, f), GRAPH),
              *h = mu_find(e, mu_fields(b, 0, nb, e), GRAPH);
  if (g && h) {
    m.path[m.depth++] = *g;
    int n = mu_fields(out, g->body, g->end, f), k = mu_fields(b, h->body, h->end, e);
    if (n > 0 && k > 0) {
      const Field *from = &e[mu_rand(&m, (unsigned)k)], *to = &f[mu_rand(&m, (unsigned)n)];
      mu_splice(&m, to->at, to->at, b + from->at, from->end - from->at);
    }
  }
  free(f);
  free(e);
  return m.n;
}

#endif
