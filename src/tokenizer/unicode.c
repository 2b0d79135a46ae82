/* unicode.c: parses unicode.txt, which is embedded. tools/mkunicode.py writes it and describes its
 * format.
 */
#include "tokenizer/unicode.h"
#include <string.h>

extern const unsigned char unicode_txt[];
extern const size_t unicode_txt_size;

#define NAME(x) #x,
const char *const unicode_category_name[UC_END] = {UNI_CATEGORIES(NAME)};

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
  for (u32 step, last = 0; number(s, &step);) {
    UniRun *r = vec_push(a, list);
    r->first = last += step;
    number(s, &r->value);
  }
}

static void maps(Arena *a, UniParser *s, Unicode *u, UniMaps *list) {
  begin(s);
  for (u32 step, last = 0; number(s, &step);) {
    UniMap *m = vec_push(a, list);
    m->c = last += step;
    m->at = u->unit.n;
    number(s, &m->n);
    for (u32 i = 0; i < m->n; i++) number(s, vec_push(a, &u->unit));
  }
}

const Unicode *unicode_read(Ctx *c, Arena *a) {
  (void)c;
  Unicode *u = NEW(a, Unicode);
  UniParser s = {unicode_txt, unicode_txt + unicode_txt_size};
  runs(a, &s, &u->category);
  runs(a, &s, &u->combining);
  maps(a, &s, u, &u->canon);
  maps(a, &s, u, &u->compat);
  begin(&s);
  for (u32 step, last = 0; number(&s, &step);) {
    UniPair *p = vec_push(a, &u->compose);
    p->a = last += step;
    number(&s, &p->b);
    number(&s, &p->c);
  }
  maps(a, &s, u, &u->lower);
  return u;
}
