/* family.h: the families of kernels, and what convolutions are asked before values have a layout.
 */
#ifndef INGOT_FAMILY_H
#define INGOT_FAMILY_H

#include "pass/pass.h"

typedef enum Family {
#define FAMILY(name, title, hue, why) FA_##name,
#include "pass/kernel/families.def"
#undef FAMILY
  FA_COUNT
} Family;

typedef struct FamilyInfo {
  const char *title, *why; /* why: it is taken where it is */
  int hue;                 /* of a page, in degrees; -1: grey */
} FamilyInfo;
extern const FamilyInfo family_info[FA_COUNT];

/* What layout.c has to know of a convolution, and kernel_choose.c then reads: by it operands and
 * results lie as the family that is chosen reads them. */
struct ConvPlan {
  bool depthwise;     /* every channel is a group */
  bool narrow_output; /* too few results for blocks of them: vectors run along the operand */
  u32 patch;   /* Winograd: results along a side of what is computed at once; 0: it is not. Patches
                  are read as if there were a multiple of that many rows and columns */
  bool blocks; /* its result may lie in blocks of channels */
  bool sparse; /* windows mostly meet padding, and are cut into segments: see segment.c */
  i64 row_overread; /* bytes are taken four at a time along a row: elements read behind the window;
                 -1: along channels */
  Str key;          /* under which the tuned choices were asked; 0: they were not */
  double share;     /* Winograd: estimated time over that of sums as they stand */
};

/* family.c: made once, by the first pass that asks. */
void conv_plans(PassCtx *u);
const ConvPlan *conv_plan_of(const PassCtx *u,
                             const Node *n); /* of no convolution: nothing is set */
/* Notes on a kernel how it is written: the family, its size, and the numbers that decided; 0: there
 * are none. */
void family_note(Prog *p, StmtId kernel, Family f, Str size, Str reason);
void family_list(Prog *p, StrBuf *out); /* a line for each kernel: that, why, and estimates */

/* winograd_plan.c: sets patch, key and share of those that are Winograd's method. */
void winograd_plan(const PassCtx *u, ConvPlan *of);
/* Few patches, and weights that come from memory: these are gone through once. */
bool winograd_one_pass(const Target *t, u32 m, i64 in, i64 out, i64 all);
i64 winograd_patches(const Target *t, u32 m, i64 in, i64 out,
                     i64 all); /* patches, of so many, at a time */

#endif
