/* place.h: memory placement as an abstract problem: time intervals in, offsets out. */
#ifndef INGOT_PLACE_H
#define INGOT_PLACE_H

#include "base/base.h"

/* Memory needed from point `first` to point `last`, inclusive. first > last: not needed. */
typedef struct PlaceItem {
  u64 size;
  u32 first, last;
  u64 offset; /* result */
} PlaceItem;

typedef struct PlaceResult {
  u64 height; /* bytes needed in total */
  u64 bound;  /* peak: maximum bytes alive at one point, a lower bound for any plan */
} PlaceResult;

/* place.c: assigns offsets to all items, deterministically. Every offset is a sum of sizes, so a
 * common divisor of the sizes divides the offsets. budget: search steps of a few ns each; 0: no
 * search. */
#define PLACE_BUDGET 2000000000u /* 2 to 3 s if used up */
PlaceResult place_items(PlaceItem *item, u32 n, u64 budget, Arena *a);

/* Order among items: bytes (in cache lines) times lifetime. */
u64 place_area(const PlaceItem *it);

/* place_search.c: finds offsets below the given height; all items have a size and an interval.
 * False: there are none, or the budget is used up. Then the offsets are a plan for as many items as
 * could be placed, and PLACE_OPEN for the others. rank: by item, order among equals. */
#define PLACE_OPEN UINT64_MAX
bool place_below(PlaceItem *item, u32 n, const u32 *rank, u32 most, u64 height, u64 *budget,
                 Arena *a);

#endif
