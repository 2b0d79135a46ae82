/* cuda_find.c: finds and loads the CUDA driver and NVRTC.
 *
 * Out: a table of their functions. Both are loaded on first use, so ingot builds and starts without
 * them; no header of NVIDIA is needed. INGOT_NVRTC names another NVRTC. */
#include "back/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum CudaPart { PART_driver, PART_nvrtc } CudaPart;

static const struct {
  CudaPart part;
  const char *symbol;
  size_t at; /* in CudaLib */
} functions[] = {
#define CF(library, symbol, name, params) {PART_##library, #symbol, offsetof(CudaLib, name)},
#include "back/cuda/cuda_functions.def"
#undef CF
};

static const char *const driver_names[] = {"libcuda.so.1", NULL};
static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                          "/usr/local/cuda/lib64/libnvrtc.so", NULL};

static void *open_any(const char *const *name) {
  void *handle = NULL;
  for (u32 i = 0; name[i] && !handle; i++) handle = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
  return handle;
}

static void *open_part(CudaPart part) {
  const char *named = getenv("INGOT_NVRTC");
  if (part == PART_nvrtc && named && *named) return open_any((const char *const[]){named, NULL});
  return open_any(part == PART_driver ? driver_names : nvrtc_names);
}

/* The name of a function that the library lacks; NULL: it has all. */
static const char *find_all(CudaLib *l, CudaPart part, void *handle) {
  for (u32 i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (functions[i].part != part) continue;
    void *fn = dlsym(handle, functions[i].symbol);
    if (!fn) return functions[i].symbol;
    memcpy((char *)l + functions[i].at, &fn, sizeof fn);
  }
  return NULL;
}

static void need_part(Ctx *c, CudaLib *l, CudaPart part) {
  const char *named = getenv("INGOT_NVRTC");
  void *handle = open_part(part);
  if (!handle && part == PART_nvrtc && named && *named)
    fail(c, ERR_unsupported, LOC_NONE, "INGOT_NVRTC=%s: no such library", named);
  if (!handle && part == PART_driver)
    fail(c, ERR_unsupported, LOC_NONE,
         "engine cuda needs the driver of an NVIDIA GPU: libcuda.so.1 was not found");
  if (!handle)
    fail(
        c, ERR_unsupported, LOC_NONE,
        "engine cuda needs NVRTC, the CUDA compiler: neither libnvrtc.so.13 nor libnvrtc.so.12 was "
        "found; install it with pip install nvidia-cuda-nvrtc and set INGOT_NVRTC to its path");
  const char *missing = find_all(l, part, handle);
  if (missing)
    fail(c, ERR_unsupported, LOC_NONE, "this %s lacks the function %s; CUDA 12 and later have it",
         part == PART_driver ? "CUDA driver" : "NVRTC", missing);
}

void cuda_check(Ctx *c, const CudaLib *l, const char *what, int error) {
  const char *text = NULL;
  if (!error) return;
  if (l->error_text) l->error_text(error, &text);
  fail(c, ERR_system, LOC_NONE, "CUDA: %s: %s", what, text ? text : "unknown error");
}

/* Attributes of a device. */
enum { ATTRIBUTE_SMS = 16, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

static void read_device(CudaLib *l) {
  l->device_name(l->name, sizeof l->name, l->device);
  l->device_attribute(&l->major, ATTRIBUTE_MAJOR, l->device);
  l->device_attribute(&l->minor, ATTRIBUTE_MINOR, l->device);
  l->device_attribute(&l->sms, ATTRIBUTE_SMS, l->device);
}

CudaLib *cuda_need_device(Ctx *c) {
  CudaLib *l = NEW(&c->keep, CudaLib);
  int n = 0;
  need_part(c, l, PART_driver);
  int error = l->init(0);
  if (!error) error = l->device_count(&n);
  if (error || !n)
    fail(c, ERR_unsupported, LOC_NONE, "engine cuda found the CUDA driver but no GPU");
  cuda_check(c, l, "device", l->device_get(&l->device, 0));
  read_device(l);
  if (l->major * 10 + l->minor < 75)
    fail(c, ERR_unsupported, LOC_NONE,
         "engine cuda needs a GPU of compute capability 7.5 or later; found %s with %d.%d", l->name,
         l->major, l->minor);
  need_part(c, l, PART_nvrtc);
  l->rtc_version(&l->nvrtc_major, &l->nvrtc_minor);
  return l;
}

void cuda_need(Ctx *c) {
  cuda_need_device(c);
}

/* Texts for reports; NULL: not found. */
void cuda_report(Ctx *c, const char **gpu, const char **compiler) {
  CudaLib l = {0};
  int version = 0, n = 0;
  void *driver = open_part(PART_driver), *nvrtc = open_part(PART_nvrtc);
  *gpu = *compiler = NULL;
  if (driver && !find_all(&l, PART_driver, driver)) {
    if (!l.init(0) && !l.device_count(&n) && n && !l.device_get(&l.device, 0)) {
      read_device(&l);
      l.driver_version(&version);
      *gpu = fmt_text(c,
                      "%s, compute capability %d.%d, %d multiprocessors, driver for "
                      "CUDA %d.%d",
                      l.name, l.major, l.minor, l.sms, version / 1000, version % 1000 / 10);
    }
  }
  if (nvrtc && !find_all(&l, PART_nvrtc, nvrtc)) {
    l.rtc_version(&l.nvrtc_major, &l.nvrtc_minor);
    *compiler = fmt_text(c, "NVRTC %d.%d", l.nvrtc_major, l.nvrtc_minor);
  }
}
