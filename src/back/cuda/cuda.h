/* cuda.h: shared by the files of the CUDA back end; private to src/back/cuda.
 *
 * A kernel of the program becomes a CUDA kernel. Its workers take iterations of the parallel loops:
 * warps if it has vectors (see back/c/cwarp.c), else threads. Statements between kernels run on the
 * host. */
#ifndef INGOT_BACK_CUDA_H
#define INGOT_BACK_CUDA_H

#include "back/back.h"

typedef struct CudaFn {
  const char *name;
  const char *label; /* what it computes, for reports */
  bool warps;        /* workers are warps, else threads */
  u32 block;         /* threads of a block, if workers are blocks; else 0 */
  u32 shared;        /* bytes of shared memory of a block */
  u64 at, n;         /* its text in CudaText.kernels */
  u32 unit;          /* that compiles it */
} CudaFn;

/* A kernel statement. Arguments: buffers, variables, then the seed of the run. A variable that the
 * kernel sets is passed by address, and so is one in CudaText.slot. */
typedef struct CudaCall {
  StmtId id;
  u32 fn;
  KernelParams takes;
  bool *sets; /* by variable of `takes` */
  bool any_set;
  ExprId count; /* iterations that workers share; 0: one worker runs it */
} CudaCall;

typedef struct CudaText {
  Prog *p;                 /* the given program, plus expressions made here */
  StrBuf support, kernels; /* what all kernels use, and the kernels */
  VEC(CudaFn) fn;
  VEC(CudaCall) call;
  Map at;     /* StmtId -> 1 + call */
  bool *slot; /* by variable: has one value per run, which kernels load from memory of the device,
                 as they do the seed. So a recorded run serves all values. NULL: none */
  struct Emit *emit;
} CudaText;

typedef unsigned long long DevicePtr;

/* CUlaunchConfig and CUlaunchAttribute of the driver. */
typedef struct LaunchAttribute {
  int id;
  int pad;
  union {
    char bytes[64];
    int flag;
  } value;
} LaunchAttribute;
typedef struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void *stream;
  LaunchAttribute *attribute;
  unsigned nattribute;
} LaunchConfig;

/* The loaded libraries and the device. */
typedef struct CudaLib {
#define CF(library, symbol, name, params) int(*name) params;
#include "back/cuda/cuda_functions.def"
#undef CF
  int nvrtc_major, nvrtc_minor;
  int device, major, minor, sms;
  char name[128];
} CudaLib;

/* cuda_find.c: fail with ERR_unsupported if a library or the GPU is missing. */
CudaLib *cuda_need_device(Ctx *c);
void cuda_check(Ctx *c, const CudaLib *l, const char *what, int error);

/* cuda_compile.c: cubins of the units of a text, made in parallel or read from the cache. */
typedef struct CudaUnit {
  StrBuf text;
  char *cubin; /* in malloc'ed memory */
  size_t n;
  char *log; /* messages of the compiler; NULL: none */
} CudaUnit;
typedef struct CudaUnits {
  u32 n;
  CudaUnit *at;
} CudaUnits;
CudaUnits cuda_compile(Ctx *c, const CudaLib *l, CudaText *t, const CudaOptions *o,
                       const char *chip);

/* cuda_text.c: the kernels of a planned program as text. slots: see CudaText.slot. */
CudaText *cuda_text(const Prog *p, const Target *target, const char *prefix, bool slots);
u64 cuda_worker_scratch(const CudaText *t, const CudaCall *k); /* bytes of scratch of a worker */
/* CUDA_SHARED: bytes of shared memory for which a kernel needs no attribute. */
enum { CUDA_WARP = 32, CUDA_BLOCK = 128, CUDA_ALIGN = 256, CUDA_SHARED = 48 << 10 };

#endif
