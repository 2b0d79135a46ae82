/* rate.c: how fast memory is read.
 *
 * In: bytes, perhaps a file that is mapped. Out: bytes per second of the fastest of a few passes
 * over them by one thread, the first not counted: it may wait for a disk. Several sums in turn, so
 * that loads wait for memory and not for each other.
 */
#include "api/own.h"

#include <string.h>

enum { PASSES = 3, LEAST = 1 << 16 };
#define MOST  ((size_t)256 << 20) /* bytes of a pass */
#define PIECE ((size_t)8 << 20)   /* timed at once */

static u64 sum_of(const u8 *at, size_t n) {
  u64 sum[8] = {0}, word[8];
  for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
    memcpy(word, at + i, sizeof word);
    for (u32 k = 0; k < 8; k++) sum[k] += word[k];
  }
  for (u32 k = 1; k < 8; k++) sum[0] += sum[k];
  return sum[0];
}

double api_read_rate(const void *at, size_t n) {
  double best = 0;
  volatile u64 kept; /* so that the sums are needed */
  if (n > MOST) n = MOST;
  if (n < LEAST) return 0;
  for (u32 pass = 0; pass < PASSES; pass++)
    for (size_t i = 0; i < n; i += PIECE) {
      size_t bytes = n - i < PIECE ? n - i : PIECE;
      double start = time_ms();
      kept = sum_of((const u8 *)at + i, bytes);
      (void)kept;
      double ms = time_ms() - start;
      if (pass && bytes >= LEAST && ms > 0 && (double)bytes / ms > best) best = (double)bytes / ms;
    }
  return best * 1000;
}
