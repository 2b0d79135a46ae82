/* family.h: kernel families, and decisions about convolutions that come before layouts. */
#ifndef INGOT_FAMILY_H
#define INGOT_FAMILY_H

#include "pass/pass.h"

/* Decisions about a convolution. layout_pass.c uses them for the layout of operands and results,
 * kernel_choose.c for the family. */
struct ConvPlan {
  bool depthwise;     /* each channel is a group */
  bool narrow_output; /* too few output channels for channel blocks: vectors run along the input */
  u32 patch;   /* Winograd: outputs along one side of a patch; 0: not Winograd. Patches read as if
                  rows and columns were padded to a multiple of this */
  bool blocks; /* the result may have channel blocks */
  bool sparse; /* windows mostly meet padding and are split into segments: see segment.c */
  i64 row_overread; /* int8 in groups of four along a row: elements read past the window; -1: groups
                       along channels */
  Str key;          /* key in the autotuning table; 0: not looked up */
  double share;     /* Winograd: estimated time relative to direct convolution */
};

/* family.c: computed once, by the first pass that needs them. */
void conv_plans(PassCtx *u);
const ConvPlan *conv_plan_of(const PassCtx *u, const Node *n); /* zeros unless n is a convolution */
void family_list(Prog *p, StrBuf *out); /* prints a line per kernel: note, explanation, estimates */

/* winograd_plan.c: sets patch, key and share of convolutions that use Winograd. */
void winograd_plan(PassCtx *u, ConvPlan *of);
/* Are patches few and weights in memory, so that one pass over the weights is best? */
bool winograd_one_pass(const Target *t, u32 m, i64 in, i64 out, i64 all);
i64 winograd_patches(const Target *t, u32 m, i64 in, i64 out,
                     i64 all); /* number of patches, out of `all`, per pass */

#endif
