/* char_set.c: sets of characters as sorted ranges. */
#include "tokenizer/pattern.h"
#include <string.h>

/* Appends a range in O(1): it follows all others, or touches the last one. */
static void add_last(Arena *a, CharSet *s, u32 lo, u32 hi) {
  CharRange *last = s->range.n ? &s->range.at[s->range.n - 1] : NULL;
  if (!last || lo > last->hi)
    *vec_push(a, &s->range) = (CharRange){lo, hi};
  else if (hi > last->hi)
    last->hi = hi;
}

/* Adds a range and merges ranges that touch; linear in their number. */
void charset_add(Arena *a, CharSet *s, u32 lo, u32 hi) {
  u32 i = 0, n = 0;
  if (lo >= hi) return;
  if (!s->range.n || lo >= s->range.at[s->range.n - 1].lo) {
    add_last(a, s, lo, hi);
    return;
  }
  CharRange *old = arena_copy(a, s->range.at, s->range.n * sizeof *old);
  u32 count = s->range.n;
  s->range.n = 0;
  for (; i < count && old[i].hi < lo; i++) *vec_push(a, &s->range) = old[i];
  for (; i < count && old[i].lo <= hi; i++) {
    lo = old[i].lo < lo ? old[i].lo : lo;
    hi = old[i].hi > hi ? old[i].hi : hi;
  }
  *vec_push(a, &s->range) = (CharRange){lo, hi};
  for (n = i; n < count; n++) *vec_push(a, &s->range) = old[n];
}

void charset_union(Arena *a, CharSet *s, const CharSet *t) {
  CharSet all = {0};
  const u32 n = s->range.n, m = t->range.n;
  for (u32 i = 0, k = 0; i < n || k < m;) {
    bool mine = k == m || (i < n && s->range.at[i].lo <= t->range.at[k].lo);
    const CharRange *r = mine ? &s->range.at[i++] : &t->range.at[k++];
    add_last(a, &all, r->lo, r->hi);
  }
  *s = all;
}

CharSet charset_complement(Arena *a, const CharSet *s) {
  CharSet r = {0};
  u32 last = 0;
  for (u32 i = 0; i < s->range.n; i++) {
    charset_add(a, &r, last, s->range.at[i].lo);
    last = s->range.at[i].hi;
  }
  charset_add(a, &r, last, UNI_END);
  return r;
}

static void add_categories(Arena *a, const Unicode *u, CharSet *s, u32 mask) {
  for (u32 i = 0; i < u->category.n; i++) {
    if (!(mask >> u->category.at[i].value & 1)) continue;
    u32 hi = i + 1 < u->category.n ? u->category.at[i + 1].first : UNI_END;
    charset_add(a, s, u->category.at[i].first, hi);
  }
}

bool charset_named(Arena *a, const Unicode *u, CharSet *s, const char *name, size_t n) {
  static const CharRange space[] = {
      {9, 14},          {0x20, 0x21},     {0x85, 0x86},     {0xa0, 0xa1},     {0x1680, 0x1681},
      {0x2000, 0x200b}, {0x2028, 0x202a}, {0x202f, 0x2030}, {0x205f, 0x2060}, {0x3000, 0x3001}};
  u32 mask = 0;
  for (u32 k = 0; k < UC_END; k++)
    if (n && n <= 2 && !strncmp(unicode_category_name[k], name, n)) mask |= 1u << k;
  if (n == 11 && !memcmp(name, "White_Space", n)) {
    for (size_t i = 0; i < sizeof space / sizeof *space; i++)
      charset_add(a, s, space[i].lo, space[i].hi);
    return true;
  }
  if (n == 1 && *name == 'w')
    mask = 1u << UC_Lu | 1u << UC_Ll | 1u << UC_Lt | 1u << UC_Lm | 1u << UC_Lo | 1u << UC_Mn |
           1u << UC_Mc | 1u << UC_Me | 1u << UC_Nd | 1u << UC_Nl | 1u << UC_Pc;
  if (!mask) return false;
  add_categories(a, u, s, mask);
  if (n == 1 && *name == 'w') { /* joiners, and circled and squared letters */
    charset_add(a, s, 0x200c, 0x200e);
    charset_add(a, s, 0x24b6, 0x24ea);
    charset_add(a, s, 0x1f130, 0x1f14a);
    charset_add(a, s, 0x1f150, 0x1f16a);
    charset_add(a, s, 0x1f170, 0x1f18a);
  }
  return true;
}
