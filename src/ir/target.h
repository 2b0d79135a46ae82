/* target.h: properties of the target machine, for passes and the C back end. */
#ifndef INGOT_IR_TARGET_H
#define INGOT_IR_TARGET_H

#include "base/base.h"

/* Costs of vector operations on one target: see target.def. */
typedef struct Costs {
#define COST(name, what, how) double name;
#include "ir/target.def"
} Costs;

/* Operations that only some machines have; prog_expand.c replaces them on others. */
enum {
  CAP_dot_i8x4 = 1 << 0,
  CAP_dot_i16x2 = 1 << 1,
  CAP_maddubs = 1 << 2,
  CAP_psign = 1 << 3,
  CAP_round = 1 << 4,    /* f32 to integral values, in all four rounding modes */
  CAP_saturate = 1 << 5, /* saturating casts to integers of at most 16 bits, and between integers */
  CAP_f16 = 1 << 6,      /* converts a whole register between f16 and f32 */
  CAP_bf16 = 1 << 7,     /* converts a whole register between bf16 and f32 */
  CAP_fma = 1 << 8,      /* f32 FMA, equal to Target.fma */
  CAP_tiles = 1 << 9,    /* matrix registers: fragments of integers; others have them as loops */
  CAP_all = (1 << 10) - 1,
};

/* When are products of low-bit weights computed with OP_maddubs instead of OP_dot_i8x4? */
typedef enum MaddubsWhen { MADDUBS_never, MADDUBS_always, MADDUBS_without_dot_i8x4 } MaddubsWhen;

typedef struct Target {
  const char *name;
  u32 lanes;    /* f32 lanes of a vector register; 1: scalar target */
  u32 regs;     /* vector registers */
  u32 block;    /* channels per block in blocked layouts */
  bool fma;     /* has fused multiply-add */
  bool flushes; /* f32 vectors treat subnormals as zeros; their operators are functions of
                   cvop.def, since compilers leave the vector instructions unused */
  bool dotprod; /* has udot and sdot, dot products of four bytes of equal signs */
  bool warp;    /* a GPU: lanes are the threads of a warp, see back/cuda */
  bool named;   /* only --march NAME selects it, not native: it is not the fastest for all models */
  bool micro;   /* a microcontroller: few registers, no caches, no vectors. Its C is portable */
  bool loops;   /* emulates the vectors of another target with loops: see target_find */
  u32 has;      /* CAP_ bits of its instructions; prog_expand.c expands the others. Without the
                   CPU feature dot_i8x4, dot_i8x4 is a short sequence */
  MaddubsWhen maddubs; /* whether quantized weights prefer maddubs over dot_i8x4 */
  const char *needs;   /* CPU features that its code needs, separated by commas */
  const char *guard;   /* C preprocessor condition: compiled for this target or a superset */
  const char *arch;    /* C preprocessor condition of its architecture; "": any */
  const char *header;  /* header of its intrinsics */
  const char
      *cflags; /* flags of gcc and clang that satisfy guard, separated by spaces; may be "" */
  const char
      *features; /* function attributes used instead when the file is compiled without cflags,
                    separated by commas; a CPU that has all of them can run the function */
  const char *dot_i8x4; /* CPU feature with an instruction for OP_dot_i8x4; "": none */
  const char *cross;    /* usual name of a cross compiler; "": any compiler */
  const char *llvm; /* TRIPLE,CPU,FEATURES of LLVM when the target is never the host or has other
                       names  there; "": the host triple with `features` */
  const Costs *cost;
} Target;

/* Costs of memory and threads, and quirks of compilers, the same for all targets: see target.def
 * and compiler.def. */
typedef struct Figures {
#define FIGURE(name, value, what, how) double name;
#include "ir/target.def"
#define FIGURE(name, value, what, how) double name;
#include "ir/compiler.def"
} Figures;

/* Numbers of the same kind that size loops: see target.def. */
enum {
#define LIMIT(name, value, what, how) LIMIT_##name = (value),
#include "ir/target.def"
};

/* target.c */
extern const Figures figures;
extern const Target target_table[];
extern const u32 target_count;
extern const char target_multi[]; /* names of the variants of --march multi, separated by commas */
/* "avx2-loops": runs programs for avx2 on machines without it, as plain loops without FMA; not
 * listed in the table. NULL: unknown name. */
const Target *target_find(const char *name);
const Target *target_scalar(void);
const Target *target_warp(void);           /* "cuda": not in the table */
const Target *target_native(void);         /* the widest that this machine can run */
bool target_is_here(const Target *t);      /* can this machine run code for t? */
const char *target_native_flags(void);     /* compiler flags for the machine it runs on */
bool target_has_dot_i8x4(const Target *t); /* does this machine have the feature Target.dot_i8x4? */

#endif
