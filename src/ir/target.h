/* target.h: what passes and the C back end know about the machine that runs the code. */
#ifndef INGOT_IR_TARGET_H
#define INGOT_IR_TARGET_H

#include "base/base.h"

/* What vector units can do, of one target: see target.def. */
typedef struct Costs {
#define COST(name, what, how, sse2, neon, avx2, avx512) double name;
#include "ir/target.def"
} Costs;

/* Operations that only some machines have: see prog_expand.c for what the others do. */
enum {
  CAP_dot_i8x4 = 1 << 0,
  CAP_dot_i16x2 = 1 << 1,
  CAP_maddubs = 1 << 2,
  CAP_psign = 1 << 3,
  CAP_round = 1 << 4,    /* f32 to whole numbers, in all four ways */
  CAP_saturate = 1 << 5, /* casts to integers of 16 bits and fewer, and between integers */
  CAP_f16 = 1 << 6,      /* widens a register of them in one step, and narrows it */
  CAP_bf16 = 1 << 7,     /* the same of these */
  CAP_fma = 1 << 8,      /* of f32; Target.fma says it */
  CAP_all = (1 << 9) - 1,
};

/* Are numbers of a few bits multiplied by OP_maddubs rather than by OP_dot_i8x4? */
typedef enum MaddubsWhen { MADDUBS_never, MADDUBS_always, MADDUBS_without_dot_i8x4 } MaddubsWhen;

typedef struct Target {
  const char *name;
  u32 lanes;            /* f32 elements of a vector register; 1: no vectors */
  u32 regs;             /* vector registers */
  u32 block;            /* channels that lie together in blocked layouts */
  bool fma;             /* multiplies and adds in one step, rounded once */
  u32 has;              /* HAS_ of every operation that it has instructions for */
  const char *guard;    /* of the C preprocessor: compiled for this machine, or a better one */
  const char *cflags;   /* that make it so, separated by blanks; "": none are needed */
  const char *features; /* of a function that is compiled for it alone; separated by commas */
  const char *dot4;     /* the feature that has an instruction for OP_dot_i8x4; "": none */
  MaddubsWhen pairs;
  const char *cross; /* a compiler for it on other machines; "": any will do */
  const char *llvm;  /* TRIPLE,CPU,FEATURES of LLVM; "": this machine, and features */
  const Costs *cost;
  bool loops; /* what stands in for the vectors of another: see target_find */
} Target;

/* What memory and threads cost: the same for all targets, see target.def. */
typedef struct Figures {
#define FIGURE(name, value, what, how) double name;
#include "ir/target.def"
} Figures;

/* target.c */
extern const Figures figures;
extern const Target target_table[];
extern const u32 target_count;
/* "avx2-loops": programs for avx2 as machines run them that lack it: plain loops, and products that
 * are rounded before they are added; such a one is in no table. NULL: not known. */
const Target *target_find(const char *name);
const Target *target_scalar(void);
const Target *target_native(void);         /* the largest that this machine can run */
bool target_is_here(const Target *t);      /* can this machine run what is made for it? */
const char *target_native_flags(void);     /* that a compiler takes for the machine it runs on */
bool target_has_dot_i8x4(const Target *t); /* has this machine the feature Target.dot4? */

#endif
