/* unicode.c: parses unicode.txt, which is embedded. tools/mkunicode.py writes it and describes its
 * format.
 */
#include "tokenizer/unicode.h"
#include <stdlib.h>
#include <string.h>

extern const unsigned char unicode_txt[];
extern const size_t unicode_txt_size;

#define NAME(x) #x,
const char *const unicode_category_name[UC_END] = {UNI_CATEGORIES(NAME)};

enum { IN_TURN = 0xff }; /* categories Lu and Ll in turn */

typedef struct UniParser {
  const u8 *at, *end;
} UniParser;

static void skip(UniParser *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '#')) {
    if (*s->at == '#')
      while (s->at < s->end && *s->at != '\n') s->at++;
    else
      s->at++;
  }
}

/* False at the end of a section. */
static bool number(UniParser *s, u32 *x) {
  skip(s);
  if (s->at == s->end || *s->at == '=') return false;
  for (*x = 0; s->at<s->end && * s->at> ' '; s->at++)
    *x = *x << 4 | (u32)(*s->at <= '9' ? *s->at - '0' : *s->at - 'a' + 10);
  return true;
}

static void begin(UniParser *s) {
  skip(s);
  while (s->at<s->end && * s->at> ' ') s->at++; /* skip =NAME; the order is fixed */
}

static void runs(Arena *a, UniParser *s, UniRuns *list) {
  begin(s);
  for (u32 step, last = 0, value = 0; number(s, &step);) {
    for (u32 i = 0; value == IN_TURN && i < step; i++)
      *vec_push(a, list) = (UniRun){last + i, i % 2 ? UC_Ll : UC_Lu};
    last += step;
    number(s, &value);
    if (value != IN_TURN) *vec_push(a, list) = (UniRun){last, value};
  }
}

static void maps(Arena *a, UniParser *s, Unicode *u, UniMaps *list) {
  begin(s);
  for (u32 step, last = 0, head; number(s, &step);) {
    number(s, &head);
    UniMap m = {.c = last += step, .n = head & 31, .at = u->unit.n};
    m.composes = m.n > 1 && !(head & 32);
    for (u32 i = 0; i < m.n; i++) number(s, vec_push(a, &u->unit));
    *vec_push(a, list) = m;
    for (u32 more = head >> 6, by = 1 + (head >> 5 & 1); more; more--) {
      u32 to = u->unit.at[m.at] + by;
      m.c += by;
      m.at = u->unit.n;
      *vec_push(a, &u->unit) = to;
      *vec_push(a, list) = m;
    }
  }
}

static int by_characters(const void *x, const void *y) {
  const UniPair *p = x, *q = y;
  return p->a != q->a ? (p->a < q->a ? -1 : 1) : p->b < q->b ? -1 : p->b > q->b;
}

/* A character composes from the last character of its decomposition and the character that the
 * others decompose. */
static void find_pairs(Arena *a, Unicode *u) {
  const UniMaps *all = &u->canon;
  for (u32 i = 0; i < all->n; i++) {
    const UniMap m = all->at[i];
    const u32 *unit = &u->unit.at[m.at];
    if (!m.composes) continue;
    UniPair p = {unit[0], unit[m.n - 1], m.c};
    for (u32 k = 0; m.n > 2 && k < all->n; k++)
      if (all->at[k].composes && all->at[k].n == m.n - 1 &&
          !memcmp(&u->unit.at[all->at[k].at], unit, (m.n - 1) * sizeof *unit))
        p.a = all->at[k].c;
    *vec_push(a, &u->compose) = p;
  }
  qsort(u->compose.at, u->compose.n, sizeof *u->compose.at, by_characters);
}

const Unicode *unicode_read(Ctx *c, Arena *a) {
  (void)c;
  Unicode *u = NEW(a, Unicode);
  UniParser s = {unicode_txt, unicode_txt + unicode_txt_size};
  runs(a, &s, &u->category);
  runs(a, &s, &u->combining);
  maps(a, &s, u, &u->canon);
  maps(a, &s, u, &u->compat);
  maps(a, &s, u, &u->lower);
  find_pairs(a, u);
  return u;
}
