/* pretokenize.c: splits text into words.
 *
 * A scanner is a regular expression as a DFA (pattern.c), with the priority of alternatives and a
 * lookahead of one character. It finds a match in one pass. Splitting steps are nested: each step
 * sees a piece of the previous step as a whole text. A stack with one range per step replaces
 * lists. A pass without a match may read to the end of the text, and so may the next: the number of
 * DFA steps is limited.
 */
#include "tokenizer/tokenizer.h"

TokenDfa vocab_dfa(const Vocab *v, u32 k) {
  u32 n;
  const u32 *at = vocab_section(v, VP_scanner_at, &n, sizeof *at);
  const u32 *w = (const u32 *)vocab_section(v, VP_scanner, &n, sizeof *w) + at[k];
  TokenDfa s = {.nstate = w[0], .nclass = w[1], .nrun = w[2]};
  s.ascii = (const u8 *)(w + 3);
  s.run = w + 3 + 32;
  s.table = (const u16 *)(s.run + s.nrun);
  return s;
}

static u32 class_of(const TokenDfa *s, u32 ch) {
  if (ch < 128) return s->ascii[ch];
  if (ch >= VOCAB_BAD_BYTE) ch = 0xfffd;
  u32 lo = 0, hi = s->nrun;
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (s->run[mid] >> 8 <= ch)
      lo = mid;
    else
      hi = mid;
  }
  return s->run[lo] & 0xff;
}

size_t dfa_match(const TokenDfa *s, const u8 *p, size_t n, size_t *steps) {
  size_t found = 0, i = 0;
  for (u32 state = DFA_start;;) {
    u32 length = 0, class = i < n ? class_of(s, utf8_get(p + i, n - i, &length)) : s->nclass;
    u32 next = s->table[state * (s->nclass + 1) + class];
    if (next & DFA_accept) found = i;
    state = next & ~(u32)DFA_accept;
    if (state == DFA_dead || i == n) return found;
    i += length;
    ++*steps;
  }
}

/* The first match in [pos, end). False if there is none, or after too many steps. */
static bool find(TokenSplitter *w, const TokenDfa *s, size_t pos, size_t end, size_t *from,
                 size_t *to) {
  const u8 *at = w->at;
  while (pos < end && w->steps <= w->most) {
    size_t n = dfa_match(s, at + pos, end - pos, &w->steps);
    if (n) {
      *from = pos;
      *to = pos + n;
      return true;
    }
    u32 length;
    utf8_get(at + pos, end - pos, &length);
    pos += length;
  }
  return false;
}

/* The next piece from *pos on. False at the end. */
static bool piece(TokenSplitter *w, SplitKind kind, const TokenDfa *s, size_t *pos, size_t end,
                  size_t *from, size_t *to) {
  size_t a, b, a2, b2;
  while (*pos < end) {
    *from = *pos;
    *to = end;
    if (!find(w, s, *pos, end, &a, &b)) {
      *pos = end;
      return kind != SB_kept;
    }
    bool gap = a > *pos;
    switch (kind) {
    case SB_isolated: *to = gap ? a : b; break;
    case SB_removed:
      *to = a;
      *pos = b;
      if (gap) return true;
      continue;
    case SB_kept:
      *from = a;
      *to = b;
      break;
    case SB_previous: *to = b; break;
    case SB_next:
      if (gap)
        *to = a;
      else
        *to = find(w, s, b, end, &a2, &b2) ? a2 : end;
      break;
    case SB_joined:
      *to = gap ? a : b;
      while (!gap && find(w, s, *to, end, &a2, &b2) && a2 == *to) *to = b2;
      break;
    }
    *pos = *to;
    return true;
  }
  return false;
}

TokenSplitter pretok_begin(const Vocab *v, const u8 *at, size_t n) {
  TokenSplitter w = {.v = v, .at = at, .most = PRETOK_STEPS * n + PRETOK_SLACK};
  vocab_section(v, VP_split, &w.nstep, sizeof(TokenizerStep));
  w.end[0] = n;
  return w;
}

bool pretok_next(TokenSplitter *w, const u8 **at, size_t *n) {
  u32 count;
  const TokenizerStep *step = vocab_section(w->v, VP_split, &count, sizeof *step);
  for (;;) {
    u32 l = w->level;
    if (l == w->nstep && w->pos[l] < w->end[l]) {
      *at = w->at + w->pos[l];
      *n = w->end[l] - w->pos[l];
      w->pos[l] = w->end[l];
      if (l) w->level--;
      return true;
    }
    size_t from, to;
    bool more = false;
    if (l < w->nstep) {
      TokenDfa s = vocab_dfa(w->v, step[l].a);
      more = piece(w, (SplitKind)step[l].kind, &s, &w->pos[l], w->end[l], &from, &to);
    }
    if (more) {
      w->level = l + 1;
      w->pos[l + 1] = from;
      w->end[l + 1] = to;
    } else if (l == 0) {
      return false;
    } else {
      w->level--;
    }
  }
}
