/* runner.c: the program `ingot build` puts around a compiled model.
 *
 *   prog [--inputs IN.npz] [--output OUT.npz] [--seed N] [--bench SECONDS] [--selftest]
 *
 * In: arrays by the names of the inputs; those that are missing are made up from the seed, as
 * `ingot run` does. Out: the outputs in an archive, or a few numbers of each on stdout; with
 * --bench one line of JSON with the times of a run. The text of this file travels inside ingot and
 * is compiled together with a table that describes the model (ingot_model, at the end of the
 * compiled text). Reads archives whose members are stored or deflated, writes stored ones; needs
 * nothing but POSIX. Exit codes are those of ingot.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RANK = 9, OK = 0, USAGE = 2, BAD = 4, SYSTEM = 5 };

typedef struct Value {
  const char *name;
  char kind;  /* 'f', 'i', 'u', 'b' as in .npy; 'x': a type .npy does not know, whose bits are kept
                 as they are */
  int size;   /* of an element */
  int digits; /* 'x': how many low bits a made-up element has */
  int rank;
  int64_t most[RANK];             /* largest extents */
  int64_t base[RANK], coef[RANK]; /* extent = base + coef * size of the symbol; inputs only */
  int sym[RANK];                  /* -1: the extent is base */
} Value;

typedef struct Model {
  const char *name;
  int nin, nout, nsym;
  const Value *in, *out;
  const int64_t *size; /* of every symbol, unless an input says otherwise */
  size_t arena, test;  /* bytes; test 0: there is no self-test */
  int (*call)(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
              void *const *out, int64_t *const *shape);
  const char *(*why)(int status);
  int (*selftest)(void *memory);
} Model;

extern const Model ingot_model;

typedef struct Bytes {
  unsigned char *at;
  size_t n, cap;
} Bytes;

typedef struct Run {
  void *arena;
  int64_t *size;
  const void **in;
  void **out;
  int64_t (*shape)[RANK];
  int64_t **shapes;
  uint64_t seed;
} Run;

static int complain(int code, const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", ingot_model.name, what, why);
  return code;
}

/* Zeroed, aligned for any use; failure ends the program, which holds nothing that would be lost. */
static void *make(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, 64, n ? n : 1)) exit(complain(SYSTEM, "memory", "there is not enough"));
  memset(p, 0, n);
  return p;
}

static int is_big_endian(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first == 0;
}

/* ---- inflate (RFC 1951), one bit at a time: archives of inputs are small ---- */

typedef struct Bits {
  const unsigned char *in;
  size_t n, pos;
  unsigned char *out;
  size_t nout, at;
  int bad;
} Bits;

typedef struct Code {
  int count[16], symbol[288];
} Code;

static unsigned take(Bits *b, int n) {
  unsigned x = 0;
  for (int i = 0; i < n; i++, b->pos++) {
    if (b->pos >= b->n * 8) {
      b->bad = 1;
      return 0;
    }
    x |= (unsigned)(b->in[b->pos / 8] >> b->pos % 8 & 1) << i;
  }
  return x;
}

static void build(Code *c, const unsigned char *len, int n) {
  int at[16] = {0};
  memset(c->count, 0, sizeof c->count);
  for (int i = 0; i < n; i++) c->count[len[i]]++;
  c->count[0] = 0;
  for (int i = 1; i < 15; i++) at[i + 1] = at[i] + c->count[i];
  for (int i = 0; i < n; i++)
    if (len[i]) c->symbol[at[len[i]]++] = i;
}

static int decode(Bits *b, const Code *c) {
  int code = 0, first = 0, index = 0;
  for (int len = 1; len < 16 && !b->bad; len++) {
    code |= (int)take(b, 1);
    if (code - first < c->count[len]) return c->symbol[index + code - first];
    index += c->count[len];
    first = (first + c->count[len]) * 2;
    code *= 2;
  }
  b->bad = 1;
  return 0;
}

static void put(Bits *b, unsigned char x) {
  if (b->at < b->nout)
    b->out[b->at++] = x;
  else
    b->bad = 1;
}

static void copy_back(Bits *b, const Code *dist, int symbol) {
  int k = symbol - 257, d;
  size_t len = 258, far;
  if (k < 8) {
    len = (size_t)k + 3;
  } else if (k < 28) {
    int extra = k / 4 - 1;
    len = ((size_t)(4 + k % 4) << extra) + 3 + take(b, extra);
  } else if (k > 28) {
    b->bad = 1;
  }
  d = decode(b, dist);
  if (d < 4) {
    far = (size_t)d + 1;
  } else {
    int extra = d / 2 - 1;
    far = ((size_t)(2 + d % 2) << extra) + 1 + take(b, extra);
  }
  if (far > b->at || d > 29) b->bad = 1;
  for (; len && !b->bad; len--) put(b, b->out[b->at - far]);
}

static void read_codes(Bits *b, Code *lit, Code *dist) {
  static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};
  unsigned char len[320] = {0}, first[19] = {0};
  int nlit = (int)take(b, 5) + 257, ndist = (int)take(b, 5) + 1, n = (int)take(b, 4) + 4, i = 0;
  for (int k = 0; k < n; k++) first[order[k]] = (unsigned char)take(b, 3);
  build(lit, first, 19);
  while (i < nlit + ndist && !b->bad) {
    int s = decode(b, lit), times = 1;
    unsigned char value = (unsigned char)s;
    if (s == 16) {
      value = i ? len[i - 1] : 0;
      times = (int)take(b, 2) + 3;
    } else if (s > 16) {
      value = 0;
      times = s == 17 ? (int)take(b, 3) + 3 : (int)take(b, 7) + 11;
    }
    while (times-- && i < nlit + ndist) len[i++] = value;
  }
  if (nlit > 286 || ndist > 30) b->bad = 1;
  if (b->bad) return;
  build(lit, len, nlit);
  build(dist, len + nlit, ndist);
}

static void read_block(Bits *b, int kind) {
  Code lit = {{0}, {0}}, dist = {{0}, {0}};
  if (kind == 0) {
    b->pos = (b->pos + 7) / 8 * 8;
    unsigned n = take(b, 16);
    take(b, 16);
    for (unsigned i = 0; i < n && !b->bad; i++) put(b, (unsigned char)take(b, 8));
    return;
  }
  if (kind == 1) {
    unsigned char len[288];
    for (int i = 0; i < 288; i++)
      len[i] = (unsigned char)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    build(&lit, len, 288);
    memset(len, 5, 30);
    build(&dist, len, 30);
  } else if (kind == 2) {
    read_codes(b, &lit, &dist);
  } else {
    b->bad = 1;
  }
  while (!b->bad) {
    int s = decode(b, &lit);
    if (s == 256) return;
    if (s < 256)
      put(b, (unsigned char)s);
    else
      copy_back(b, &dist, s);
  }
}

/* Nonzero when the data are not what they should be. */
static int inflate(const unsigned char *in, size_t n, unsigned char *out, size_t nout) {
  Bits b = {in, n, 0, out, nout, 0, 0};
  int last = 0;
  while (!last && !b.bad) {
    last = (int)take(&b, 1);
    read_block(&b, (int)take(&b, 2));
  }
  return b.bad || b.at != nout;
}

/* ---- reading an archive ---- */

static uint32_t little(const unsigned char *p, int n) {
  uint32_t x = 0;
  for (int i = 0; i < n; i++) x |= (uint32_t)p[i] << 8 * i;
  return x;
}

static int read_file(const char *path, Bytes *b) {
  FILE *f = fopen(path, "rb");
  if (!f) return complain(SYSTEM, path, strerror(errno));
  for (size_t got = 1; got;) {
    if (b->n == b->cap) {
      b->cap = b->cap ? b->cap * 2 : 65536;
      b->at = realloc(b->at, b->cap);
      if (!b->at) exit(complain(SYSTEM, "memory", "there is not enough"));
    }
    got = fread(b->at + b->n, 1, b->cap - b->n, f);
    b->n += got;
  }
  int bad = ferror(f);
  fclose(f);
  return bad ? complain(SYSTEM, path, "cannot be read") : OK;
}

/* What stands behind key in the header of an array. */
static const char *field(const char *head, const char *key) {
  const char *at = strstr(head, key);
  return at ? at + strlen(key) : NULL;
}

static int same_shape(const Value *v, int64_t *size, const char *at) {
  int k = 0;
  for (; *at && *at != ')'; at++) {
    char *end;
    if (*at < '0' || *at > '9') continue;
    long long d = strtoll(at, &end, 10);
    at = end - 1;
    if (k >= v->rank || d < 0 || d > v->most[k]) return 0;
    if (v->sym[k] >= 0 && v->coef[k])
      size[v->sym[k]] = (d - v->base[k]) / v->coef[k];
    else if (d != v->base[k])
      return 0;
    k++;
  }
  return k == v->rank;
}

/* What the array has, as its header says it, and what the input takes. */
static int other_shape(const Value *v, const char *at) {
  fprintf(stderr, "%s: %s: the array has shape (%.*s), expected (", ingot_model.name, v->name,
          (int)strcspn(at, ")"), at);
  for (int k = 0; k < v->rank; k++) {
    int open = v->sym[k] >= 0 && v->coef[k];
    fprintf(stderr, open ? "%sup to %lld" : "%s%lld", k ? ", " : "",
            (long long)(open ? v->most[k] : v->base[k]));
  }
  fprintf(stderr, v->rank == 1 ? ",)\n" : ")\n");
  return BAD;
}

static int64_t extent(const Value *v, int k, const int64_t *size) {
  return v->sym[k] < 0 ? v->base[k] : v->base[k] + v->coef[k] * size[v->sym[k]];
}

static size_t elements(const Value *v, const int64_t *dim) {
  size_t n = 1;
  for (int k = 0; k < v->rank; k++) n *= (size_t)dim[k];
  return n;
}

static void swap(unsigned char *p, size_t n, int size) {
  for (size_t i = 0; i < n; i++, p += size)
    for (int k = 0; k < size / 2; k++) {
      unsigned char x = p[k];
      p[k] = p[size - 1 - k];
      p[size - 1 - k] = x;
    }
}

/* One member: an array in the form of .npy. Its memory becomes the input. */
static int use_array(Run *r, int i, unsigned char *at, size_t n) {
  const Value *v = &ingot_model.in[i];
  char head[4096];
  if (n < 12 || memcmp(at, "\x93NUMPY", 6) != 0)
    return complain(BAD, v->name, "is not a .npy array");
  size_t skip = at[6] == 1 ? 10 : 12, len = little(at + 8, at[6] == 1 ? 2 : 4);
  if (len >= sizeof head || len > n - skip)
    return complain(BAD, v->name, "the header of the array is too long");
  memcpy(head, at + skip, len);
  head[len] = 0;
  const char *type = field(head, "'descr': '"), *shape = field(head, "'shape': (");
  if (!type || !shape || strstr(head, "'fortran_order': True"))
    return complain(BAD, v->name, "is not a row-major array");
  if (v->kind == 'x' || type[1] != v->kind || atoi(type + 2) != v->size) {
    fprintf(stderr, "%s: %s: the array is %.*s, expected %c%d\n", ingot_model.name, v->name,
            (int)strcspn(type, "'"), type, v->kind, v->size);
    return BAD;
  }
  if (!same_shape(v, r->size, shape)) return other_shape(v, shape);
  int64_t dim[RANK];
  for (int k = 0; k < v->rank; k++) dim[k] = extent(v, k, r->size);
  size_t count = elements(v, dim), bytes = count * (size_t)v->size;
  if (bytes > n - skip - len) return complain(BAD, v->name, "the array is cut short");
  void *data = make(bytes);
  memcpy(data, at + skip + len, bytes);
  if ((type[0] == '>') != is_big_endian() && type[0] != '|' && type[0] != '=')
    swap(data, count, v->size);
  free((void *)(uintptr_t)r->in[i]); /* given twice: the last one counts */
  r->in[i] = data;
  return OK;
}

static int use_member(Run *r, const Bytes *b, const unsigned char *entry, const char *name) {
  size_t packed = little(entry + 20, 4), bytes = little(entry + 24, 4), at = little(entry + 42, 4);
  uint32_t how = little(entry + 10, 2);
  int i = 0;
  while (i < ingot_model.nin && strcmp(ingot_model.in[i].name, name) != 0) i++;
  if (i == ingot_model.nin) return complain(USAGE, name, "the model has no such input");
  if (at > b->n || b->n - at < 30) return complain(BAD, name, "lies outside the archive");
  at += 30 + little(b->at + at + 26, 2) + little(b->at + at + 28, 2);
  if (at > b->n || packed > b->n - at) return complain(BAD, name, "lies outside the archive");
  if (how == 0) return use_array(r, i, b->at + at, packed);
  if (how != 8) return complain(BAD, name, "is packed in an unknown way");
  unsigned char *whole = make(bytes);
  int bad = inflate(b->at + at, packed, whole, bytes);
  bad = bad ? complain(BAD, name, "the packed data are wrong") : use_array(r, i, whole, bytes);
  free(whole);
  return bad;
}

static int read_archive(Run *r, const Bytes *b, const char *path) {
  int bad = 0;
  size_t end = b->n < 22 ? 0 : b->n - 22;
  while (end && memcmp(b->at + end, "PK\5\6", 4) != 0) end--;
  if (b->n < 22 || memcmp(b->at + end, "PK\5\6", 4) != 0)
    return complain(BAD, path, "is not an archive");
  size_t at = little(b->at + end + 16, 4), n = little(b->at + end + 10, 2);
  for (; n && !bad; n--) {
    char name[1024];
    if (at > end || end - at < 46 || memcmp(b->at + at, "PK\1\2", 4) != 0)
      return complain(BAD, path, "the archive is damaged");
    size_t len = little(b->at + at + 28, 2),
           more = little(b->at + at + 30, 2) + little(b->at + at + 32, 2);
    if (len >= sizeof name || len > end - at - 46) return complain(BAD, path, "a name is too long");
    memcpy(name, b->at + at + 46, len);
    name[len] = 0;
    if (len > 4 && !strcmp(name + len - 4, ".npy")) name[len - 4] = 0;
    bad = use_member(r, b, b->at + at, name);
    at += 46 + len + more;
  }
  return bad;
}

static int read_inputs(Run *r, const char *path) {
  Bytes b = {NULL, 0, 0};
  int bad = read_file(path, &b);
  if (!bad) bad = read_archive(r, &b, path);
  free(b.at);
  return bad;
}

/* ---- writing an archive ---- */

static void append(Bytes *b, const void *p, size_t n) {
  if (n > b->cap - b->n) {
    b->cap = (b->n + n) * 2;
    b->at = realloc(b->at, b->cap);
    if (!b->at) exit(complain(SYSTEM, "memory", "there is not enough"));
  }
  if (n) memcpy(b->at + b->n, p, n);
  b->n += n;
}

static void append_little(Bytes *b, uint32_t x, int n) {
  unsigned char byte[4] = {(unsigned char)x, (unsigned char)(x >> 8), (unsigned char)(x >> 16),
                           (unsigned char)(x >> 24)};
  append(b, byte, (size_t)n);
}

static uint32_t crc(const unsigned char *p, size_t n) {
  uint32_t c = 0xffffffffu;
  for (size_t i = 0; i < n; i++) {
    c ^= p[i];
    for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

static void append_array(Bytes *b, const Value *v, const int64_t *dim, const void *data) {
  char head[512];
  int n = snprintf(head, sizeof head, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                   v->size == 1      ? '|'
                   : is_big_endian() ? '>'
                                     : '<',
                   v->kind, v->size);
  for (int k = 0; k < v->rank; k++)
    n += snprintf(head + n, sizeof head - (size_t)n, "%lld%s", (long long)dim[k],
                  v->rank == 1      ? ","
                  : k + 1 < v->rank ? ", "
                                    : "");
  n += snprintf(head + n, sizeof head - (size_t)n, "), }");
  while ((10 + n) % 64 != 63) head[n++] = ' ';
  head[n++] = '\n';
  append(b, "\x93NUMPY\1", 7);
  append(b, "", 1);
  append_little(b, (uint32_t)n, 2);
  append(b, head, (size_t)n);
  append(b, data, elements(v, dim) * (size_t)v->size);
}

/* Local header, or entry of the directory. */
static void append_entry(Bytes *z, const char *name, const Bytes *data, uint32_t sum, uint32_t at,
                         int local) {
  append(z, local ? "PK\3\4" : "PK\1\2\x14", local ? 4 : 5);
  if (!local) append(z, "", 1);
  append_little(z, 20, 2);    /* version */
  append_little(z, 0x800, 2); /* names are UTF-8 */
  append_little(z, 0, 4);     /* stored; no time */
  append_little(z, 0x21, 2);  /* the first day of 1980 */
  append_little(z, sum, 4);
  append_little(z, (uint32_t)data->n, 4);
  append_little(z, (uint32_t)data->n, 4);
  append_little(z, (uint32_t)strlen(name) + 4, 2);
  append_little(z, 0, 2);
  if (!local) {
    append_little(z, 0, 4);
    append_little(z, 0, 4);
    append_little(z, 0, 2);
    append_little(z, at, 4);
  }
  append(z, name, strlen(name));
  append(z, ".npy", 4);
}

static int write_outputs(const Run *r, const char *path) {
  Bytes z = {NULL, 0, 0}, dir = {NULL, 0, 0};
  for (int i = 0; i < ingot_model.nout; i++) {
    const Value *v = &ingot_model.out[i];
    Bytes a = {NULL, 0, 0};
    if (v->kind == 'x') return complain(3, v->name, "its type cannot be stored in .npz");
    append_array(&a, v, r->shape[i], r->out[i]);
    uint32_t sum = crc(a.at, a.n);
    if (z.n + a.n > 0xf0000000u) return complain(3, path, "the outputs are larger than an archive");
    append_entry(&dir, v->name, &a, sum, (uint32_t)z.n, 0);
    append_entry(&z, v->name, &a, sum, 0, 1);
    append(&z, a.at, a.n);
    free(a.at);
  }
  uint32_t start = (uint32_t)z.n;
  append(&z, dir.at, dir.n);
  append(&z, "PK\5\6\0\0\0", 8);
  append_little(&z, (uint32_t)ingot_model.nout, 2);
  append_little(&z, (uint32_t)ingot_model.nout, 2);
  append_little(&z, (uint32_t)dir.n, 4);
  append_little(&z, start, 4);
  append_little(&z, 0, 2);
  FILE *f = fopen(path, "wb");
  if (!f) return complain(SYSTEM, path, strerror(errno));
  int bad = fwrite(z.at, 1, z.n, f) != z.n;
  bad = fclose(f) != 0 || bad;
  free(z.at);
  free(dir.at);
  return bad ? complain(SYSTEM, path, "cannot be written") : OK;
}

/* ---- made-up inputs: the numbers of `ingot run --seed` ---- */

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
  x = (x ^ x >> 29) * 0xa0761d6478bd642fu;
  return x ^ x >> 32;
}

static double unit(uint64_t seed, uint64_t i) {
  uint64_t u =
      mix(mix(i * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) ^ mix(seed ^ 0x2545f4914f6cdd1du));
  return (double)(u >> 11) / 9007199254740992.0;
}

static uint16_t half(float x) {
  uint32_t u, m, e;
  memcpy(&u, &x, 4);
  uint32_t sign = u >> 16 & 0x8000;
  e = u >> 23 & 255;
  m = (u & 0x7fffff) | 0x800000;
  int shift = e > 112 ? 13 : 126 - (int)e; /* |x| <= 1: no overflow; below 2^-14 denormal */
  if (shift > 24) return (uint16_t)sign;
  uint32_t low = m & ((1u << shift) - 1), mid = 1u << (shift - 1), r = m >> shift;
  if (low > mid || (low == mid && r & 1)) r++;
  return (uint16_t)(sign | (e > 112 ? ((e - 113) << 10) + r : r));
}

static void fill(const Value *v, void *to, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    double u = unit(seed, i), x = 2 * u - 1;
    unsigned char *p = (unsigned char *)to + i * (size_t)v->size;
    int64_t k = (int64_t)(u * (v->kind == 'b' ? 2 : 10));
    float f = (float)x;
    if (v->kind == 'x') k = (int64_t)(u * (double)(1 << v->digits));
    if (v->kind == 'f' && v->size == 8) {
      memcpy(p, &x, 8);
    } else if (v->kind == 'f' && v->size == 4) {
      memcpy(p, &f, 4);
    } else if (v->kind == 'f') {
      uint16_t h = half(f);
      memcpy(p, &h, 2);
    } else if (v->size == 1) {
      *p = (unsigned char)k;
    } else if (v->size == 2) {
      int16_t s = (int16_t)k;
      memcpy(p, &s, 2);
    } else if (v->size == 4) {
      int32_t s = (int32_t)k;
      memcpy(p, &s, 4);
    } else {
      memcpy(p, &k, 8);
    }
  }
}

/* ---- runs ---- */

static void prepare(Run *r) {
  const Model *m = &ingot_model;
  r->arena = make(m->arena);
  for (int i = 0; i < m->nin; i++) {
    const Value *v = &m->in[i];
    int64_t dim[RANK];
    if (r->in[i]) continue;
    for (int k = 0; k < v->rank; k++) dim[k] = extent(v, k, r->size);
    void *data = make(elements(v, dim) * (size_t)v->size);
    fill(v, data, elements(v, dim), r->seed * 1000003 + (uint64_t)i);
    r->in[i] = data;
  }
  for (int i = 0; i < m->nout; i++) {
    memcpy(r->shape[i], m->out[i].most, sizeof r->shape[i]);
    r->shapes[i] = r->shape[i];
    r->out[i] = make(elements(&m->out[i], m->out[i].most) * (size_t)m->out[i].size);
  }
}

static int run(Run *r) {
  int status = ingot_model.call(r->arena, r->size, r->seed, r->in, r->out, r->shapes);
  if (!status) return OK;
  fprintf(stderr, "%s: status %d: %s\n", ingot_model.name, status, ingot_model.why(status));
  return BAD;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Peak memory in KiB. Where Linux tells it, without what the process was before it became this
 * program. */
static long peak(void) {
  char line[256];
  long kb = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && kb < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, "VmHWM:", 6)) kb = strtol(line + 6, NULL, 10);
  if (f) fclose(f);
  if (kb >= 0) return kb;
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return (long)use.ru_maxrss;
}

/* Three runs to warm up, then as many as fit, but at least five. */
static int bench(Run *r, double seconds) {
  enum { MOST = 1 << 20, LEAST = 5 };
  double *ms = malloc(MOST * sizeof *ms),
         start = now(); /* not cleared: pages that are not used do not count */
  int n = 0, bad = 0;
  if (!ms) return complain(SYSTEM, "memory", "there is not enough");
  for (int i = 0; i < 3 && !bad && (i == 0 || now() - start < seconds * 1e3); i++) bad = run(r);
  start = now();
  while (!bad && n < MOST && (n < LEAST || now() - start < seconds * 1e3)) {
    double from = now();
    bad = run(r);
    ms[n++] = now() - from;
  }
  if (bad) {
    free(ms);
    return bad;
  }
  qsort(ms, (size_t)n, sizeof *ms, ascending);
  printf(
      "{\"n\":%d,\"min_ms\":%.6f,\"p50_ms\":%.6f,\"p90_ms\":%.6f,\"p99_ms\":%.6f,\"rss_kb\":%ld}\n",
      n, ms[0], ms[(n - 1) * 50 / 100], ms[(int)((n - 1) * 0.90)], ms[(int)((n - 1) * 0.99)],
      peak());
  free(ms);
  return OK;
}

static void show_element(const Value *v, const unsigned char *p) {
  float f;
  double d;
  int64_t i = 0;
  if (v->kind == 'f' && v->size == 4) {
    memcpy(&f, p, 4);
    printf(" %.7g", (double)f);
  } else if (v->kind == 'f' && v->size == 8) {
    memcpy(&d, p, 8);
    printf(" %.7g", d);
  } else {
    int top = is_big_endian() ? 0 : v->size - 1, sign = v->kind == 'i' && p[top] & 0x80;
    for (int k = 0; k < v->size; k++)
      i |= (int64_t)((uint64_t)p[is_big_endian() ? v->size - 1 - k : k] << 8 * k);
    if (sign && v->size < 8) i -= (int64_t)1 << 8 * v->size;
    printf(" %lld", (long long)i);
  }
}

static void show(const Run *r) {
  for (int i = 0; i < ingot_model.nout; i++) {
    const Value *v = &ingot_model.out[i];
    size_t n = elements(v, r->shape[i]);
    printf("%s: %c%d[", v->name, v->kind, v->size * 8);
    for (int k = 0; k < v->rank; k++) printf("%s%lld", k ? "," : "", (long long)r->shape[i][k]);
    printf("]");
    for (size_t k = 0; k < n && k < 8; k++)
      show_element(v, (const unsigned char *)r->out[i] + k * (size_t)v->size);
    printf(n > 8 ? " ...\n" : "\n");
  }
}

static int selftest(void) {
  if (!ingot_model.test) return complain(3, "--selftest", "this model was built without one");
  void *memory = make(ingot_model.test);
  int status = ingot_model.selftest(memory);
  free(memory);
  printf(status ? "self-test: FAILED, status %d\n" : "self-test: passed\n", status);
  return status ? 1 : OK;
}

static int usage(int code) {
  fprintf(
      code ? stderr : stdout,
      "usage: %s [--inputs IN.npz] [--output OUT.npz] [--seed N] [--bench SECONDS] [--selftest]\n",
      ingot_model.name);
  return code;
}

static void release(Run *r) {
  for (int i = 0; i < ingot_model.nin; i++) free((void *)(uintptr_t)r->in[i]);
  for (int i = 0; i < ingot_model.nout; i++) free(r->out[i]);
  free(r->arena);
  free(r->size);
  free((void *)r->in);
  free((void *)r->out);
  free(r->shape);
  free((void *)r->shapes);
}

static int execute(Run *r, const char *inputs, const char *output, double seconds) {
  int bad = inputs ? read_inputs(r, inputs) : OK;
  if (bad) return bad;
  prepare(r);
  if (seconds >= 0) return bench(r, seconds);
  bad = run(r);
  if (bad) return bad;
  if (output) return write_outputs(r, output);
  show(r);
  return OK;
}

int main(int argc, char **argv) {
  const Model *m = &ingot_model;
  const char *inputs = NULL, *output = NULL;
  double seconds = -1;
  Run r = {NULL, NULL, NULL, NULL, NULL, NULL, 0};
  for (int i = 1; i < argc; i += 2) {
    const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) return usage(0);
    if (!strcmp(word, "--selftest")) return selftest();
    if (!value) return usage(USAGE);
    if (!strcmp(word, "--inputs"))
      inputs = value;
    else if (!strcmp(word, "--output"))
      output = value;
    else if (!strcmp(word, "--bench"))
      seconds = strtod(value, NULL);
    else if (!strcmp(word, "--seed"))
      r.seed = strtoull(value, NULL, 0);
    else
      return usage(USAGE);
  }
  r.size = make((size_t)(m->nsym + 1) * sizeof *r.size);
  if (m->nsym) memcpy(r.size, m->size, (size_t)m->nsym * sizeof *r.size);
  r.in = make((size_t)(m->nin + 1) * sizeof *r.in);
  r.out = make((size_t)(m->nout + 1) * sizeof *r.out);
  r.shape = make((size_t)(m->nout + 1) * sizeof *r.shape);
  r.shapes = make((size_t)(m->nout + 1) * sizeof *r.shapes);
  int bad = execute(&r, inputs, output, seconds);
  release(&r);
  return fflush(stdout) && !bad ? SYSTEM : bad;
}
