/* Where the bits of packed elements lie: of every number of bits, all bits of all words are taken
 * once, all bits of an element are there once, and words are first read in the order in which they
 * lie. Formats of 1 and 7 bits, which no file has, are among them.
 */
#include "check.h"
#include "pass/kernel/mmq.h"

static void one(u32 words) {
  u32 taken[8] = {0}, read = 0;
  for (u32 j = 0; j < QBLOCK_X / 4; j++) {
    MmqPiece piece[8];
    u32 n = mmq_pieces(words, j, piece), got = 0;
    for (u32 i = 0; i < n; i++) {
      const MmqPiece *p = &piece[i];
      u32 mask = ((1u << p->bits) - 1) << p->from;
      CHECK(p->word < words && p->word <= read && p->from + p->bits <= 8 && p->to == got);
      CHECK(!(taken[p->word] & mask));
      taken[p->word] |= mask;
      got += p->bits;
      if (p->word == read) read++;
    }
    CHECK(n >= 1 && got == words);
  }
  for (u32 k = 0; k < words; k++) CHECK(taken[k] == 255);
}

int main(void) {
  for (u32 words = 1; words <= 8; words++) one(words);
  return check_end();
}
