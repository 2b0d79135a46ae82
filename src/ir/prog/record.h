/* record.h: what lowering decided about a kernel, kept on the kernel statement of a Prog.
 *
 * A kernel has one record for each family that wrote a part of it. Loops of the kernel name their
 * record and their role in it. The record is printed, parsed, and compared with the loops by
 * prog_check. Passes that change loops keep both true. Back ends, reports and cost estimates read
 * them and do not match loops.
 *
 * A tile is rows x panels accumulators of some lanes (docs/kernels.md). A loop with the role panel
 * or row steps over tiles; an unrolled one steps over the panels or rows of one tile. */
#ifndef INGOT_RECORD_H
#define INGOT_RECORD_H

#include "ir/ir.h"

typedef struct KernelRecord KernelRecord;
typedef u32 RecordId; /* index in Prog.record; 0: none */

typedef enum Family {
#define FAMILY(name, title, hue, why) FA_##name,
#include "ir/prog/families.def"
#undef FAMILY
  FA_COUNT
} Family;

typedef struct FamilyInfo {
  const char *name, *title, *why; /* name: of the text form; why: explanation for reports */
  int hue;                        /* color in reports, in degrees; -1: grey */
} FamilyInfo;
extern const FamilyInfo family_info[FA_COUNT];

/* Iterations of all roles except reduce are independent: no iteration reads what another one
 * writes, except scratch that each iteration writes before it reads it. */
typedef enum LoopRole {
  RO_none,   /* not described */
  RO_batch,  /* results outside of the tile */
  RO_panel,  /* vectors along the lane axis */
  RO_row,    /* points of the row axis */
  RO_lane,   /* vectors or elements of a map */
  RO_reduce, /* points of a reduction, which have a common result */
  RO_COUNT
} LoopRole;
extern const char *const role_name[RO_COUNT];

enum { RECORD_IN = 3 };

/* rows 0: no tile; then lanes are those of the widest vector, 0: no vectors. */
typedef struct TileExtent {
  u32 rows, panels, lanes;
} TileExtent;

struct KernelRecord {
  Family family;
  TileExtent tile;       /* with the most accumulators */
  DType sum;             /* type of the accumulators; DT_none: no reduction */
  DType in[RECORD_IN];   /* types of the reduced operands */
  u32 packed[RECORD_IN]; /* buffers that are read in panels; 0: none */
  u32 out;               /* buffer that gets the results of the epilogue; 0: unknown */
  u64 ns;                /* estimated time on one thread, by lowering */
  Str size, reason;      /* texts for reports; 0: none. size: only if `tile` does not give it */
  u32 number;            /* position in the list of its kernel, from 1 */
  RecordId next;         /* next record of the kernel */
  RecordId last;         /* first record: the last record of the kernel */
};

/* record.c: the tile with more elements; of two equal ones, that with more panels. */
TileExtent tile_larger(TileExtent a, TileExtent b);

#endif
