/* runner.c: the program that `ingot build` puts around a compiled model.
 *
 *   prog [--inputs IN.npz] [--output OUT.npz] [--seed N] [--steps N] [--bench SECONDS] [--selftest]
 *
 * In: arrays named after inputs; missing ones are generated from the seed, as in `ingot run`. Out:
 * the outputs in an archive, or a few numbers of each on stdout; with --bench one line of JSON with
 * run times. A model with state continues from step to step. Generated inputs differ in every step;
 * given ones stay. Measured runs also continue, and restart when the state is full. ingot contains
 * the text of this file and compiles it with a table that describes the model (tools/model.h).
 * src/io/zip.h, which tools/embed.txt puts before this text, reads archives as `ingot run` does;
 * written archives are uncompressed. Needs only POSIX. Exit codes are those of ingot. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

typedef struct Bytes {
  unsigned char *at;
  size_t n, cap;
} Bytes;

typedef struct Run {
  void *arena;
  int64_t *size;
  const void **in;
  int64_t (*dim)[RANK]; /* extents of the given inputs */
  char *given;
  char *spare; /* names of unused arrays, each with its zero; NULL: none */
  size_t nspare;
  void **out;
  int64_t (*shape)[RANK];
  int64_t **shapes;
  uint64_t seed;
} Run;

static int is_big_endian(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first == 0;
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

/* The value of a key in the header of an array. */
static const char *field(const char *head, const char *key) {
  const char *at = strstr(head, key);
  return at ? at + strlen(key) : NULL;
}

/* Parses the extents of a shape; -1: wrong rank, or an extent that the input does not allow. */
static int read_shape(const Value *v, const char *at, int64_t *dim) {
  int k = 0;
  for (; *at && *at != ')'; at++) {
    char *end;
    if (*at < '0' || *at > '9') continue;
    long long d = strtoll(at, &end, 10);
    at = end - 1;
    if (k >= v->rank || d < 0 || d > v->max[k] || (v->sym[k] < 0 && d != v->base[k])) return -1;
    dim[k++] = d;
  }
  return k == v->rank ? 0 : -1;
}

/* "1, 8, 8)" as 1x8x8 */
static void print_shape(const char *at) {
  int n = 0;
  for (; *at && *at != ')'; at++) {
    if (*at < '0' || *at > '9') continue;
    size_t k = strspn(at, "0123456789");
    fprintf(stderr, "%s%.*s", n++ ? "x" : "", (int)k, at);
    at += k - 1;
  }
  if (!n) fputs("() (a scalar)", stderr);
}

/* Reports the shape of the array and the expected one. */
static int other_shape(const Value *v, const char *at) {
  fprintf(stderr, "%s: input '%s': the array has shape ", ingot_model.name, v->name);
  print_shape(at);
  fputs(", expected ", stderr);
  for (int k = 0; k < v->rank; k++) {
    int open = v->sym[k] >= 0 && v->coef[k];
    fprintf(stderr, open ? "%s(up to %lld)" : "%s%lld", k ? "x" : "",
            (long long)(open ? v->max[k] : v->base[k]));
  }
  fputs(v->rank ? "\n" : "() (a scalar)\n", stderr);
  return BAD;
}

static int is_kept(int sym) {
  for (int i = 0; i < ingot_model.nkept; i++)
    if (ingot_model.kept[i].sym == sym) return 1;
  return 0;
}

/* Sizes determined by the array; fits compares all arrays later. */
static void take_sizes(const Value *v, const int64_t *dim, int64_t *size) {
  for (int k = 0; k < v->rank; k++)
    if (v->sym[k] >= 0 && v->sym2[k] < 0 && v->coef[k] && !is_kept(v->sym[k]))
      size[v->sym[k]] = (dim[k] - v->base[k]) / v->coef[k];
}

static int64_t extent(const Value *v, int k, const int64_t *size) {
  return v->base[k] + (v->sym[k] < 0 ? 0 : v->coef[k] * size[v->sym[k]]) +
         (v->sym2[k] < 0 ? 0 : v->coef2[k] * size[v->sym2[k]]);
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

/* Uses a .npy member as an input, in place. */
static int use_array(Run *r, int i, const unsigned char *at, size_t n) {
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
  int64_t *dim = r->dim[i];
  if (read_shape(v, shape, dim)) return other_shape(v, shape);
  take_sizes(v, dim, r->size);
  size_t count = elements(v, dim), bytes = count * (size_t)v->size;
  if (bytes > n - skip - len) return complain(BAD, v->name, "the array is truncated");
  if (bytes < n - skip - len) return complain(BAD, v->name, "extra bytes follow the array");
  void *data = make(bytes);
  memcpy(data, at + skip + len, bytes);
  if ((type[0] == '>') != is_big_endian() && type[0] != '|' && type[0] != '=')
    swap(data, count, v->size);
  r->in[i] = data;
  r->given[i] = 1;
  return OK;
}

/* Records an array that matches no input. */
static int keep_spare(Run *r, const char *name) {
  size_t n = strlen(name) + 1;
  r->spare = realloc(r->spare, r->nspare + n);
  if (!r->spare) exit(complain(SYSTEM, "memory", "there is not enough"));
  memcpy(r->spare + r->nspare, name, n);
  r->nspare += n;
  return OK;
}

/* Warns about unused arrays. If an input is missing, an unused array is an error, since it is
 * probably misnamed. */
static int leave_out(Run *r) {
  int all = 1;
  for (int i = 0; i < ingot_model.nin; i++) all = all && r->given[i];
  if (r->spare && !all) return complain(USAGE, r->spare, "the model has no such input");
  for (const char *s = r->spare; s && s < r->spare + r->nspare; s += strlen(s) + 1)
    complain(OK, s, "warning: the model has no input of this name: the array is not used");
  return OK;
}

static int use_member(Run *r, Zip *z, ZipMember *m) {
  char name[1024];
  int i = 0;
  if (m->nname >= sizeof name)
    return complain(BAD, "the archive", "the name of an array is too long");
  memcpy(name, m->name, m->nname - 4);
  name[m->nname - 4] = 0;
  while (i < ingot_model.nin && strcmp(ingot_model.in[i].name, name) != 0) i++;
  if (i == ingot_model.nin) return keep_spare(r, name);
  if (r->given[i]) return complain(BAD, name, "two arrays of the archive have this name");
  if (!zip_locate(z, m)) return complain(z->unsupported ? UNSUPPORTED : BAD, name, z->why);
  unsigned char *whole = m->method ? make((size_t)m->size) : NULL;
  const unsigned char *data = zip_unpack(z, m, whole);
  int bad = data ? use_array(r, i, data, (size_t)m->size) : complain(BAD, name, z->why);
  free(whole);
  return bad;
}

static int read_archive(Run *r, const Bytes *b, const char *path) {
  Zip z;
  ZipMember m;
  int bad = OK;
  zip_open(&z, b->at, b->n);
  while (!bad && zip_next(&z, &m))
    if (zip_is_npy(&m)) bad = use_member(r, &z, &m);
  if (!bad && z.why) bad = complain(BAD, path, z.why);
  if (!bad) bad = leave_out(r);
  free(r->spare);
  return bad;
}

static int read_inputs(Run *r, const char *path) {
  Bytes b = {NULL, 0, 0};
  size_t n = strlen(path);
  int bad = read_file(path, &b);
  if (!bad && n > 4 && !strcmp(path + n - 4, ".npy"))
    bad = complain(USAGE, path,
                   "expected an .npz archive, as numpy.savez writes it; found .npy, a single array "
                   "without a name");
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
  append_little(z, 0x21, 2);  /* 1 January 1980 */
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
  uint32_t table[256];
  zip_crc_table(table);
  for (int i = 0; i < ingot_model.nout; i++) {
    const Value *v = &ingot_model.out[i];
    Bytes a = {NULL, 0, 0};
    if (v->kind == 'x') return complain(UNSUPPORTED, v->name, ".npz does not support its type");
    append_array(&a, v, r->shape[i], r->out[i]);
    uint32_t sum = zip_crc(table, a.at, a.n);
    if (z.n + a.n > 0xf0000000u)
      return complain(UNSUPPORTED, path, "the outputs exceed 4 GB, the limit of an archive");
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
  int err = output_file(path, z.at, z.n);
  free(z.at);
  free(dir.at);
  return err ? complain(SYSTEM, path, strerror(err)) : OK;
}

/* ---- generated inputs: the numbers of `ingot run --seed` ---- */

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
    int64_t k = (int64_t)(u * (v->kind == 'b' ? 2 : v->limit));
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
  if (m->start) m->start(r->arena, m->threads);
  for (int i = 0; i < m->nin; i++)
    if (!r->given[i]) r->in[i] = make(elements(&m->in[i], m->in[i].max) * (size_t)m->in[i].size);
  for (int i = 0; i < m->nout; i++) {
    memcpy(r->shape[i], m->out[i].max, sizeof r->shape[i]);
    r->shapes[i] = r->shape[i];
    r->out[i] = make(elements(&m->out[i], m->out[i].max) * (size_t)m->out[i].size);
  }
}

/* Allocates the arena, or resets the state. */
static void restart(Run *r) {
  if (ingot_model.reset) ingot_model.reset(r->arena);
}

/* Do the given arrays fit each other and the state? say: report if not. */
static int fits(Run *r, int say) {
  const Model *m = &ingot_model;
  for (int i = 0; i < m->nkept; i++)
    memcpy(&r->size[m->kept[i].sym], (char *)r->arena + m->kept[i].at, sizeof *r->size);
  for (int i = 0; i < m->nin; i++) {
    const Value *v = &m->in[i];
    for (int k = 0; r->given[i] && k < v->rank; k++) {
      long long want = extent(v, k, r->size), have = r->dim[i][k];
      if (have == want) continue;
      if (say)
        fprintf(stderr, "%s: input '%s': dimension %d is %lld, expected %lld\n", m->name, v->name,
                k, have, want);
      return 0;
    }
  }
  return 1;
}

static void make_up(Run *r, uint64_t seed) {
  for (int i = 0; i < ingot_model.nin; i++) {
    const Value *v = &ingot_model.in[i];
    int64_t dim[RANK];
    if (r->given[i]) continue;
    for (int k = 0; k < v->rank;
         k++) { /* beyond the maximum the state is full; the run reports it */
      dim[k] = extent(v, k, r->size);
      if (dim[k] > v->max[k]) dim[k] = v->max[k];
    }
    fill(v, (void *)(uintptr_t)r->in[i], elements(v, dim), seed * 1000003 + (uint64_t)i);
  }
}

static int run(Run *r, uint64_t seed) {
  int status = ingot_model.call(r->arena, r->size, seed, r->in, r->out, r->shapes);
  if (!status) return OK;
  fprintf(stderr, "%s: status %d: %s\n", ingot_model.name, status, ingot_model.why(status));
  return BAD;
}

static int run_steps(Run *r, uint64_t steps) {
  for (uint64_t i = 0; i < steps; i++) {
    if (!fits(r, 1)) return BAD;
    make_up(r, r->seed + i);
    if (run(r, r->seed + i)) return BAD;
  }
  return OK;
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

/* Peak memory in KiB. On Linux it excludes the process image before exec. */
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

/* A measured run; restarts if the state is full. */
static int run_on(Run *r, double *ms) {
  enum { FULL = 5 };
  if (!fits(r, 0)) restart(r);
  if (!fits(r, 1)) return BAD;
  double from = now();
  int status = ingot_model.call(r->arena, r->size, r->seed, r->in, r->out, r->shapes);
  *ms = now() - from;
  if (!status) return OK;
  if (status != FULL || !ingot_model.reset) return run(r, r->seed);
  restart(r);
  if (!fits(r, 1)) return BAD;
  from = now();
  int bad = run(r, r->seed);
  *ms = now() - from;
  return bad;
}

/* ---- kernels ---- */

enum { TIMED = 255 }; /* runs whose kernel times are kept */

static struct {
  double last, *ms, *calls; /* times and calls of this run, by kernel */
  double *all;              /* ms of TIMED runs */
} timed;

/* Called after kernel k; -1: a run starts. */
void ingot_kernel(int k);
void ingot_kernel(int k) {
  double at = now();
  if (k >= 0 && timed.ms) {
    timed.ms[k] += at - timed.last;
    timed.calls[k]++;
  }
  timed.last = now();
}

static void time_kernels(void) {
  size_t n = (size_t)ingot_model.kernels;
  timed.ms = make(n * sizeof *timed.ms);
  timed.calls = make(n * sizeof *timed.calls);
  timed.all = make(n * TIMED * sizeof *timed.all);
}

/* One line per kernel: median ms, calls of the last run. */
static void show_kernels(int runs) {
  int n = runs < TIMED ? runs : TIMED;
  printf("kernels %d\n", ingot_model.kernels);
  for (int k = 0; k < ingot_model.kernels; k++) {
    qsort(timed.all + k * TIMED, (size_t)n, sizeof *timed.all, ascending);
    printf("%.9g %.0f\n", timed.all[k * TIMED + (n - 1) / 2], timed.calls[k]);
  }
  free(timed.ms);
  free(timed.calls);
  free(timed.all);
}

/* Three warm-up runs, then as many as fit, at least five. */
static int bench(Run *r, double seconds) {
  enum { MAX_RUNS = 1 << 20, MIN_RUNS = 5 };
  double *ms = malloc(MAX_RUNS * sizeof *ms),
         start = now(); /* not cleared: unused pages do not count */
  int n = 0, bad = 0;
  if (!ms) return complain(SYSTEM, "memory", "there is not enough");
  for (int i = 0; i < 3 && !bad && (i == 0 || now() - start < seconds * 1e3); i++)
    bad = run_on(r, ms);
  start = now();
  if (ingot_model.kernels) time_kernels();
  while (!bad && n < MAX_RUNS && (n < MIN_RUNS || now() - start < seconds * 1e3)) {
    for (int k = 0; k < ingot_model.kernels; k++) timed.ms[k] = timed.calls[k] = 0;
    bad = run_on(r, &ms[n]);
    for (int k = 0; k < ingot_model.kernels && n < TIMED; k++)
      timed.all[k * TIMED + n] = timed.ms[k];
    n++;
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
  if (ingot_model.kernels) show_kernels(n);
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
  if (!ingot_model.test)
    return complain(UNSUPPORTED, "--selftest", "this model was built without one");
  void *memory = make(ingot_model.test);
  int status = ingot_model.selftest(memory);
  free(memory);
  printf(status ? "self-test: FAILED, status %d\n" : "self-test: passed\n", status);
  return status ? 1 : OK;
}

/* " x f32[1,8]"; variable extents show their maximum. */
static void show_values(const char *what, const Value *v, int n) {
  printf("%s:", what);
  for (int i = 0; i < n; i++) {
    printf("%s %s %c%d[", i ? "," : "", v[i].name, v[i].kind, v[i].size * 8);
    for (int k = 0; k < v[i].rank; k++) {
      int open = v[i].sym[k] >= 0 && v[i].coef[k];
      printf("%s%s%lld", k ? "," : "", open ? "up to " : "", (long long)v[i].max[k]);
    }
    printf("]");
  }
  printf("\n");
}

static int help(void) {
  const Model *m = &ingot_model;
  printf("usage: %s [--inputs IN.npz] [--output OUT.npz] [--seed N] [--steps N] [--bench SECONDS] "
         "[--selftest]\n\n"
         "  --inputs IN.npz   arrays named after inputs; missing inputs are generated\n"
         "  --output OUT.npz  write the outputs (default: print a few numbers of each)\n"
         "  --seed N          seed of generated inputs and random operators\n"
         "  --steps N         number of runs; state carries over from run to run\n"
         "  --bench SECONDS   measure runs; print one line of JSON\n"
         "  --selftest        compare with results computed at build time\n\n",
         m->name);
  show_values("inputs", m->in, m->nin);
  show_values("outputs", m->out, m->nout);
  return OK;
}

static void release(Run *r) {
  for (int i = 0; i < ingot_model.nin; i++) free((void *)(uintptr_t)r->in[i]);
  for (int i = 0; i < ingot_model.nout; i++) free(r->out[i]);
  if (r->arena && ingot_model.stop) ingot_model.stop(r->arena);
  free(r->arena);
  free(r->size);
  free((void *)r->in);
  free(r->dim);
  free(r->given);
  free((void *)r->out);
  free(r->shape);
  free((void *)r->shapes);
}

/* Are they the same file under any name? */
static int is_same_file(const char *p, const char *q) {
  struct stat a, b;
  return !stat(p, &a) && !stat(q, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int execute(Run *r, const char *inputs, const char *output, uint64_t steps, double seconds) {
  if (inputs && output && is_same_file(inputs, output))
    return complain(USAGE, output, "is an input and would be replaced by the output");
  int bad = inputs ? read_inputs(r, inputs) : OK;
  if (bad) return bad;
  prepare(r);
  if (seconds >= 0) {
    if (fits(r, 1)) make_up(r, r->seed);
    return bench(r, seconds);
  }
  bad = run_steps(r, steps);
  if (bad) return bad;
  if (output) return write_outputs(r, output);
  show(r);
  return OK;
}

/* Nonzero: the text is not entirely a number. */
static int take_number(const char *text, double *real, uint64_t *whole) {
  if (!text) return 1;
  char *end;
  if (!(*text >= '0' && *text <= '9') && !(real && *text == '.')) return 1;
  if (real)
    *real = strtod(text, &end);
  else
    *whole = strtoull(text, &end, 0);
  return *end != 0;
}

int main(int argc, char **argv) {
  const Model *m = &ingot_model;
  const char *inputs = NULL, *output = NULL;
  double seconds = -1;
  uint64_t steps = 1;
  Run r = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0};
  for (int i = 1; i < argc; i += 2) {
    const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) return help();
    if (!strcmp(word, "--selftest")) return selftest();
    int bad = 0;
    if (!strcmp(word, "--inputs"))
      inputs = value;
    else if (!strcmp(word, "--output"))
      output = value;
    else if (!strcmp(word, "--bench"))
      bad = take_number(value, &seconds, NULL);
    else if (!strcmp(word, "--seed"))
      bad = take_number(value, NULL, &r.seed);
    else if (!strcmp(word, "--steps"))
      bad = take_number(value, NULL, &steps) || !steps;
    else
      return complain(USAGE, word, "unknown option; --help lists all");
    if (!value) return complain(USAGE, word, "expected a value after it; see --help");
    if (bad) return complain(USAGE, word, "expected a number after it");
  }
  r.size = make((size_t)(m->nsym + 1) * sizeof *r.size);
  if (m->nsym) memcpy(r.size, m->size, (size_t)m->nsym * sizeof *r.size);
  r.in = make((size_t)(m->nin + 1) * sizeof *r.in);
  r.dim = make((size_t)(m->nin + 1) * sizeof *r.dim);
  r.given = make((size_t)(m->nin + 1));
  r.out = make((size_t)(m->nout + 1) * sizeof *r.out);
  r.shape = make((size_t)(m->nout + 1) * sizeof *r.shape);
  r.shapes = make((size_t)(m->nout + 1) * sizeof *r.shapes);
  int bad = execute(&r, inputs, output, steps, seconds);
  release(&r);
  return fflush(stdout) && !bad ? SYSTEM : bad;
}
