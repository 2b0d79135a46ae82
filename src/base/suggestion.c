/* suggestion.c: correct spelling of a misspelt name.
 *
 * In: the misspelt word and the existing names. Out: the name with the smallest edit distance
 * (insertion, deletion, substitution, transposition; case counts once for the whole word), if that
 * is small for its length. The first of equals wins. */
#include "base/base.h"

#include <string.h>

enum { NEAR_BYTES = 63 };

static char small(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static u32 smaller(u32 a, u32 b) {
  return a < b ? a : b;
}

/* Damerau-Levenshtein distance. Row i of the table has the distances between the first i letters of
 * a and every prefix of b; transpositions look back two rows. */
static u32 distance(const char *a, size_t na, const char *b, size_t nb) {
  u32 rows[3][NEAR_BYTES + 1], *older = rows[0], *old = rows[1], *row = rows[2];
  for (u32 k = 0; k <= nb; k++) row[k] = k;
  for (size_t i = 1; i <= na; i++) {
    u32 *spare = older;
    older = old, old = row, row = spare;
    row[0] = (u32)i;
    for (size_t k = 1; k <= nb; k++) {
      char x = small(a[i - 1]), y = small(b[k - 1]);
      row[k] = smaller(old[k - 1] + (x != y), 1 + smaller(old[k], row[k - 1]));
      if (i > 1 && k > 1 && x == small(b[k - 2]) && small(a[i - 2]) == y)
        row[k] = smaller(row[k], older[k - 2] + 1);
    }
  }
  return row[nb];
}

Suggestion suggest_new(const char *word) {
  return (Suggestion){word, NULL, UINT32_MAX};
}

void suggest_try(Suggestion *n, const char *name) {
  size_t na = strlen(n->word), nb = strlen(name);
  if (!na || !nb || na > NEAR_BYTES || nb > NEAR_BYTES || !strcmp(n->word, name)) return;
  size_t shorter = na < nb ? na : nb;
  u32 typos = distance(n->word, na, name, nb), limit = shorter < 3 ? 0 : 1 + (u32)(shorter / 5);
  if (typos > limit || typos >= n->typos) return;
  n->name = name;
  n->typos = typos;
}

const char *suggest_text(Ctx *c, const Suggestion *n) {
  StrBuf t = sb_new(&c->scratch);
  if (n->name) sb_fmt(&t, "; did you mean '%s'?", show(c, str_of(c, n->name)));
  return sb_cstr(&t);
}

u32 row_named(Ctx *c, const char *what, const char *word, const void *row, u32 n, size_t size) {
  StrBuf all = sb_new(&c->scratch);
  Suggestion near = suggest_new(word);
  for (u32 i = 0; i < n; i++) {
    const char *name = *(const char *const *)(const void *)((const char *)row + i * size);
    if (!strcmp(name, word)) return i;
    sb_fmt(&all, "%s%s", i ? ", " : "", name);
    suggest_try(&near, name);
  }
  fail(c, ERR_usage, LOC_NONE, "no %s '%s'; expected one of %s%s", what, show(c, str_of(c, word)),
       sb_cstr(&all), suggest_text(c, &near));
}

bool glob_match(const char *form, const char *name) {
  const char *star = NULL, *from = NULL;
  while (*name) {
    if (*form == '*') {
      star = form++;
      from = name;
    } else if (*form == '?' || *form == *name) {
      form++;
      name++;
    } else if (star) {
      form = star + 1;
      name = ++from;
    } else {
      return false;
    }
  }
  while (*form == '*') form++;
  return !*form;
}
