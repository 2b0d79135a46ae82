/* row_tiling.h: what the files of the pass band share.
 *
 * A region is a stretch of nodes of block 1 whose results have rows (axis 2) and that compute rows
 * of their results from rows of their operands. It is run band by band: in each, every node
 * computes the rows of its result that the band's last results need and that no band before it has
 * computed. Of a value that later bands read again, the last rows are kept, as a copy. A fold over
 * all rows may be a part that no other reads: each band goes on where the one before left off.
 */
#ifndef INGOT_BAND_H
#define INGOT_BAND_H

#include "pass/pass.h"

enum { ROW_AXIS = 2, NO_AXIS = MAX_RANK };

typedef struct RowRange {
  i64 from, to; /* rows from..to-1 */
} RowRange;

/* Bands are counted from 1; entry 0 is before the first, entry bands + 1 behind the last. */
typedef struct StripeNode {
  NodeId id;    /* 0: stands between others but is no part: a constant, a view of what is outside */
  i64 rows;     /* of its result */
  bool again;   /* no buffer: computed where it is used, so that nothing of it is kept */
  bool reduces; /* sums up rows: its result is there behind the last band. rows: those it reads */
  bool inner;   /* read inside the region */
  bool result;  /* read outside */
  i64 *done;    /* rows that have been computed when the band ends */
  i64 *first;   /* first row that the band or a later one reads; all before it may go */
} StripeNode;

typedef struct StripeGroup {
  Graph *g;
  u32 from, to; /* positions in block 1 */
  u32 end;      /* position of its last part */
  u32 bands;
  bool resumes;         /* sums go on element by element; else sums of the bands are added */
  u32 limit;            /* nodes there were when it was found */
  StripeNode *node;     /* by position - from */
  const u32 *at;        /* by node: its position */
  const RegionId *home; /* by node: its block */
  const u32 *last;      /* by value: position of its last use; UINT32_MAX: a result of the block */
} StripeGroup;

/* row_tiling_rows.c */
bool stripe_can_tile(Graph *g, const Node *n); /* may it be a part? */
bool stripe_reduces(Graph *g, const Node *n);  /* such a part that sums up all rows */
/* The axis of operand k whose rows are read with those of the result; NO_AXIS: read whole. */
u32 stripe_axis(Graph *g, const Node *n, u32 k);
/* Rows of operand k that these rows of the result are computed from; pad: zeros in front of them
 * and behind. */
RowRange stripe_reads(Graph *g, const Node *n, u32 k, RowRange out, i64 pad[2]);
StripeNode *stripe_node_of(const StripeGroup *r, Val v); /* the part that computes v, or NULL */
/* Fills node for positions from..to; false: that is no region. */
bool stripe_group_open(StripeGroup *r, Arena *a);
/* The same with a number of bands: which rows each computes; false: some would have none. */
bool stripe_group_rows(StripeGroup *r, u32 bands, Arena *a);
RowRange stripe_new_rows(const StripeNode *b, u32 band);  /* rows that are computed in the band */
RowRange stripe_kept_rows(const StripeNode *b, u32 band); /* rows that outlive the band */

/* stripe_split.c */
void stripe_split(Graph *g, const StripeGroup *region, u32 count);

#endif
