/* place.h: the pure problem of placing memory: intervals of time in, offsets out. */
#ifndef INGOT_PLACE_H
#define INGOT_PLACE_H

#include "base/base.h"

/* Memory that must lie somewhere from point `first` to point `last`, both included. first > last:
 * nowhere. */
typedef struct PlaceItem {
  u64 size;
  u32 first, last;
  u64 offset; /* result */
} PlaceItem;

typedef struct PlaceResult {
  u64 height; /* bytes that are needed */
  u64 bound;  /* most bytes alive at one point: no plan needs less */
} PlaceResult;

/* place.c: offsets for all items. Every offset is a sum of sizes, so what divides these divides the
 * offsets. The same items always get the same offsets. budget: steps of search, some nanoseconds
 * each; 0: none. */
#define PLACE_BUDGET 2000000000u /* two to three seconds, where all of it is needed */
PlaceResult place_items(PlaceItem *item, u32 n, u64 budget, Arena *a);

/* place_search.c: offsets below the given height; all items have a size and an interval. False:
 * there are none, or the budget has become 0; then the offsets are those of a plan for some of the
 * items, as many as could be placed, and PLACE_OPEN for the others. rank: by item, which of equals
 * is tried first. */
#define PLACE_OPEN UINT64_MAX
bool place_below(PlaceItem *item, u32 n, const u32 *rank, u32 most, u64 height, u64 *budget,
                 Arena *a);

#endif
