/* fake_cuda.c: the functions of the CUDA driver and of NVRTC that ingot uses, on the CPU.
 *
 * A library with this code, found as libcuda.so.1 and named by INGOT_NVRTC, lets engine cuda run
 * without a GPU. Kernels are compiled by g++ with shim.h; a "cubin" is the path of the
 * library that comes out. Memory of the device is filled with a pattern. SHIM_ORDER=0, 1 or 2 is
 * the order of warps and lanes, SHIM the path of shim.h, SHIM_FOLDER where libraries go, SHIM_CHIP
 * a capability such as 90, SHIM_MEMORY the largest allocation in bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long Ptr;
typedef struct Config {
  unsigned grid[3], block[3], shared;
  void *stream;
  void *attribute;
  unsigned nattribute;
} Config;
typedef struct Module {
  void *handle;
  void (*launch)(void (*)(void **), void **, unsigned, unsigned, int, int);
} Module;
typedef struct Fn {
  Module *m;
  void (*call)(void **);
  int nargs, together; /* together: the warps of a block work together */
} Fn;
typedef struct Node {
  Fn *fn;
  Config config;
  unsigned long long value[128];
  struct Node *next;
} Node;
typedef struct Graph {
  Node *first, *last;
} Graph;

static Graph *recording;

static const char *setting(const char *name, const char *usual) {
  const char *s = getenv(name);
  return s && *s ? s : usual;
}

/* ---- driver ---- */

int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
int cuDriverGetVersion(int *v) {
  *v = 13000;
  return 0;
}
int cuDeviceGetCount(int *n) {
  *n = 1;
  return 0;
}
int cuDeviceGet(int *d, int i) {
  *d = i;
  return 0;
}
int cuDeviceGetName(char *to, int n, int d) {
  (void)d;
  snprintf(to, (size_t)n, "shim");
  return 0;
}
int cuDeviceGetAttribute(int *to, int which, int d) {
  int chip = atoi(setting("SHIM_CHIP", "90"));
  (void)d;
  *to = which == 75 ? chip / 10 : which == 76 ? chip % 10 : which == 16 ? 4 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int d) {
  (void)d;
  *c = &recording;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int d) {
  (void)d;
  return 0;
}
int cuCtxSetCurrent(void *c) {
  (void)c;
  return 0;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *all) {
  *free_bytes = *all = (size_t)1 << 32;
  return 0;
}
int cuMemAlloc_v2(Ptr *to, size_t n) {
  void *p = n > strtoull(setting("SHIM_MEMORY", "8589934592"), NULL, 10)
                ? NULL
                : aligned_alloc(256, (n + 255) / 256 * 256);
  if (!p) return 2;
  memset(p, 0xAA, n);
  *to = (Ptr)(size_t)p;
  return 0;
}
int cuMemFree_v2(Ptr p) {
  free((void *)(size_t)p);
  return 0;
}
int cuMemcpyHtoD_v2(Ptr to, const void *from, size_t n) {
  if (recording) return 900;
  memcpy((void *)(size_t)to, from, n);
  return 0;
}
int cuMemcpyHtoDAsync_v2(Ptr to, const void *from, size_t n, void *s) {
  (void)s;
  return cuMemcpyHtoD_v2(to, from, n);
}
int cuMemcpyDtoH_v2(void *to, Ptr from, size_t n) {
  if (recording) return 900;
  memcpy(to, (const void *)(size_t)from, n);
  return 0;
}
int cuMemsetD8_v2(Ptr to, unsigned char x, size_t n) {
  memset((void *)(size_t)to, x, n);
  return 0;
}

int cuModuleLoadData(void **to, const void *image) {
  Module *m = calloc(1, sizeof *m);
  m->handle = dlopen(image, RTLD_NOW | RTLD_LOCAL);
  if (!m->handle) return fprintf(stderr, "shim: %s\n", dlerror()), 200;
  *(void **)&m->launch = dlsym(m->handle, "ig_shim_launch");
  *to = m;
  return m->launch ? 0 : 200;
}
int cuModuleUnload(void *m) {
  dlclose(((Module *)m)->handle);
  free(m);
  return 0;
}
int cuModuleGetFunction(void **to, void *module, const char *name) {
  char full[512];
  Module *m = module;
  snprintf(full, sizeof full, "launch_%s", name);
  Fn *f = calloc(1, sizeof *f);
  *(void **)&f->call = dlsym(m->handle, full);
  snprintf(full, sizeof full, "nargs_%s", name);
  int *n = dlsym(m->handle, full);
  if (!f->call || !n) return free(f), 500;
  f->m = m;
  f->nargs = *n & 255;
  f->together = *n >> 8;
  *to = f;
  return 0;
}

static int order(void) {
  return atoi(setting("SHIM_ORDER", "0"));
}

int cuFuncSetAttribute(void *fn, int which, int value) {
  (void)fn;
  return which != 8 || value > 227 << 10;
}

int cuLaunchKernelEx(const Config *c, void *fn, void **arg, void **extra) {
  Fn *f = fn;
  (void)extra;
  if (!c->grid[0] || !c->block[0] || c->block[0] > 1024) return 1;
  if (!recording) {
    f->m->launch(f->call, arg, c->grid[0], c->block[0], order(), f->together);
    return 0;
  }
  Node *n = calloc(1, sizeof *n);
  if (f->nargs > 128) return 1;
  n->fn = f;
  n->config = *c;
  for (int i = 0; i < f->nargs; i++) memcpy(&n->value[i], arg[i], 8);
  *(recording->last ? &recording->last->next : &recording->first) = n;
  recording->last = n;
  return 0;
}
int cuStreamCreate(void **s, unsigned flags) {
  (void)flags;
  *s = &recording;
  return 0;
}
int cuStreamSynchronize(void *s) {
  (void)s;
  return recording ? 900 : 0;
}
int cuStreamDestroy_v2(void *s) {
  (void)s;
  return 0;
}
int cuStreamBeginCapture_v2(void *s, int mode) {
  (void)s, (void)mode;
  recording = calloc(1, sizeof *recording);
  return 0;
}
int cuStreamEndCapture(void *s, void **g) {
  (void)s;
  *g = recording;
  recording = NULL;
  return 0;
}
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long flags) {
  (void)flags;
  *e = g;
  return 0;
}
int cuGraphLaunch(void *e, void *s) {
  (void)s;
  for (Node *n = ((Graph *)e)->first; n; n = n->next) {
    void *arg[128];
    for (int i = 0; i < n->fn->nargs; i++) arg[i] = &n->value[i];
    n->fn->m->launch(n->fn->call, arg, n->config.grid[0], n->config.block[0], order(),
                     n->fn->together);
  }
  return 0;
}
int cuGraphDestroy(void *g) {
  (void)g;
  return 0;
}
int cuGraphExecDestroy(void *e) {
  (void)e;
  return 0;
}
int cuEventCreate(void **e, unsigned flags) {
  (void)flags;
  *e = &recording;
  return 0;
}
int cuEventRecord(void *e, void *s) {
  (void)e, (void)s;
  return recording ? 900 : 0;
}
int cuEventSynchronize(void *e) {
  (void)e;
  return 0;
}
int cuEventElapsedTime(float *ms, void *a, void *b) {
  (void)a, (void)b;
  *ms = 0;
  return 0;
}
int cuEventDestroy_v2(void *e) {
  (void)e;
  return 0;
}
int cuGetErrorString(int e, const char **to) {
  (void)e;
  *to = "refused by the shim";
  return 0;
}

/* ---- NVRTC ---- */

typedef struct Program {
  char *text, path[512], log[4096];
} Program;

int nvrtcVersion(int *major, int *minor) {
  *major = 0;
  *minor = 1;
  return 0;
}
int nvrtcCreateProgram(void **to, const char *text, const char *name, int n, const char *const *h,
                       const char *const *i) {
  (void)name, (void)n, (void)h, (void)i;
  Program *p = calloc(1, sizeof *p);
  p->text = strdup(text);
  *to = p;
  return 0;
}

/* Functions that call the kernels with an array of arguments. */
static void put_launcher(FILE *f, const char *at, int together) {
  int n = (int)strcspn(at, "("), args = at[n + 1] != ')';
  for (const char *s = at + n; *s != ')'; s++) args += *s == ',';
  fprintf(f, "extern \"C\" void launch_%.*s(void **arg) { ig_call(%.*s, arg); }\n", n, at, n, at);
  fprintf(f, "extern \"C\" { extern const int nargs_%.*s; const int nargs_%.*s = %d; }\n", n, at, n,
          at, args | together << 8);
}

static void put_launchers(FILE *f, const char *text) {
  for (const char *at = text; (at = strstr(at, "\nIG_"));) {
    at += strlen("\nIG_");
    if (!strncmp(at, "KERNEL ", 7)) put_launcher(f, at + 7, 0);
    if (!strncmp(at, "BLOCK(", 6)) put_launcher(f, strchr(at, ' ') + 1, 1);
  }
}

int nvrtcCompileProgram(void *program, int n, const char *const *option) {
  Program *p = program;
  static int count;
  char source[600], command[3000];
  (void)n, (void)option;
  int mine = __sync_fetch_and_add(&count, 1);
  snprintf(p->path, sizeof p->path, "%s/shim-%d-%d.so", setting("SHIM_FOLDER", "/tmp"),
           (int)getpid(), mine);
  snprintf(source, sizeof source, "%s.cpp", p->path);
  FILE *f = fopen(source, "w");
  if (!f) return 6;
  fputs(p->text, f);
  put_launchers(f, p->text);
  fclose(f);
  snprintf(command, sizeof command,
           "%s -std=c++17 -O1 -ffp-contract=off -mfma -fPIC -shared -w -fno-strict-aliasing "
           "'-DIG_SHIM=\"%s\"' -o %s %s > %s.log 2>&1",
           setting("CXX", "g++"), setting("SHIM", "test/cuda/shim.h"), p->path, source, p->path);
  int status = system(command);
  snprintf(command, sizeof command, "%s.log", p->path);
  f = fopen(command, "r");
  size_t got = f ? fread(p->log, 1, sizeof p->log - 1, f) : 0;
  p->log[got] = 0;
  if (f) fclose(f);
  if (!getenv("SHIM_KEEP")) {
    remove(command);
    remove(source);
  }
  return status ? 6 : 0;
}
int nvrtcGetProgramLogSize(void *p, size_t *n) {
  *n = strlen(((Program *)p)->log) + 1;
  return 0;
}
int nvrtcGetProgramLog(void *p, char *to) {
  strcpy(to, ((Program *)p)->log);
  return 0;
}
int nvrtcGetCUBINSize(void *p, size_t *n) {
  *n = strlen(((Program *)p)->path) + 1;
  return 0;
}
int nvrtcGetCUBIN(void *p, char *to) {
  strcpy(to, ((Program *)p)->path);
  return 0;
}
int nvrtcDestroyProgram(void **p) {
  free(((Program *)*p)->text);
  free(*p);
  return 0;
}
