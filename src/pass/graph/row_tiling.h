/* row_tiling.h: shared by the files of the pass row_tiling.
 *
 * A stripe group is a run of nodes of region 1 that compute rows (axis 2) of their results from
 * rows of their operands. It is computed in stripes. In each stripe, a node computes the rows that
 * the last results of the stripe need and that no earlier stripe has computed. The last rows of a
 * value that later stripes read again are kept as a copy. A reduction over all rows may be a node
 * that the others do not read: each stripe continues it.
 */
#ifndef INGOT_BAND_H
#define INGOT_BAND_H

#include "pass/pass.h"

enum { ROW_AXIS = 2, NO_AXIS = MAX_RANK };

typedef struct RowRange {
  i64 from, to; /* rows from..to-1 */
} RowRange;

/* Stripes are counted from 1; entry 0 is before the first, entry stripes + 1 after the last. */
typedef struct StripeNode {
  NodeId id;    /* 0: not part of the group: a constant, or a view of a value from outside */
  i64 rows;     /* rows of its result */
  bool again;   /* no buffer: recomputed where it is used, so that no rows are kept */
  bool reduces; /* reduces over rows: its result exists after the last stripe. rows: the rows it
                   reads */
  bool inner;   /* read inside the group */
  bool result;  /* read outside the group */
  i64 *done;    /* rows computed by the end of the stripe */
  i64 *first;   /* first row that this stripe or a later one reads; earlier rows are dead */
} StripeNode;

typedef struct StripeGroup {
  Graph *g;
  u32 from, to; /* positions in region 1 */
  u32 end;      /* position of its last node */
  u32 stripes;
  bool
      resumes; /* reductions continue element by element; otherwise sums of the stripes are added */
  u32 limit;   /* number of nodes when the group was found */
  StripeNode *node;     /* by position - from */
  const u32 *at;        /* by node: its position */
  const RegionId *home; /* by node: its region */
  const u32 *last;      /* by value: position of its last use; UINT32_MAX: a result of the region */
} StripeGroup;

/* row_tiling_rows.c */
bool stripe_can_tile(Graph *g, const Node *n); /* can it be in a group? */
bool stripe_reduces(Graph *g, const Node *n);  /* does such a node reduce over all rows? */
/* Axis of operand k whose rows are read with those of the result; NO_AXIS: read whole. */
u32 stripe_axis(Graph *g, const Node *n, u32 k);
/* Rows of operand k needed for these rows of the result; pad: zeros before and after them. */
RowRange stripe_reads(Graph *g, const Node *n, u32 k, RowRange out, i64 pad[2]);
StripeNode *stripe_node_of(const StripeGroup *r, Val v); /* node that computes v, or NULL */
/* Fills `node` for positions from..to; false: not a valid group. */
bool stripe_group_open(StripeGroup *r, Arena *a);
/* Computes the rows of each stripe, given their number; false: some stripe would be empty. */
bool stripe_group_rows(StripeGroup *r, u32 stripes, Arena *a);
RowRange stripe_new_rows(const StripeNode *b, u32 stripe); /* rows computed in the stripe */
RowRange stripe_kept_rows(const StripeNode *b,
                          u32 stripe); /* rows that are kept after the stripe */

/* row_tiling_split.c */
void stripe_split(Graph *g, const StripeGroup *region, u32 count);

#endif
