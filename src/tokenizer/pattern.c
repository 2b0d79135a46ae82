/* pattern.c: compiles a tokenizer's regular expression to a DFA.
 *
 * In: alternatives, groups (?:...) (?i:...) (...), sets [^...], \p{L} \s \d \w \r \n and
 * others, ? * + {m} {m,n}, lazy or not, and lookahead at one character, (?!x) or (?=x). Out: a
 * table for pretokenize.c. Back references, \b, possessive repeats and anchors are refused by
 * name. Method: Thompson's construction with the priorities of backtracking, then the subset
 * construction on ordered thread lists (as RE2): a list ends at the first thread that matched.
 * Lookahead is free, because a step of the table sees the next character: a bit of the step says
 * whether a thread matched before it.
 */
#include "tokenizer/pattern.h"
#include "tokenizer/tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum {
  RX_DEPTH = 32,
  RX_MAX_CODE = 4096,
  RX_MAX_STATES = 4096,
  RX_MAX_SETS = 64,
  RX_MAX_CLASSES = 255,
  RX_MAX_REPEAT = 64,
};

typedef enum RxOp { RX_set, RX_split, RX_jump, RX_ahead, RX_match } RxOp;

typedef struct RxCode {
  RxOp op;
  /* set: its index; split: first and second choice; ahead: set, negated */
  u32 x, y;
} RxCode;

typedef struct Pattern {
  Ctx *c;
  Arena *a;
  const Unicode *u;
  Loc loc;
  const u8 *text, *at, *end;
  u32 depth;
  bool fold; /* inside (?i: */
  VEC(RxCode) code;
  VEC(CharSet) set;
  u32 nclass;
  u8 member[RX_MAX_CLASSES + 1][RX_MAX_SETS]; /* true if the class is in the set */
  U32Vec run;                                 /* first << 8 | class */
} Pattern;

static _Noreturn void fail_unsupported(Pattern *r, const char *what) {
  StrBuf t = sb_new(&r->c->scratch);
  sb_quote(&t, (const char *)r->text, (size_t)(r->end - r->text));
  fail(r->c, ERR_unsupported, r->loc, "regular expression %.200s: %s at byte %u", sb_cstr(&t), what,
       (u32)(r->at - r->text));
}

static u32 emit(Pattern *r, RxOp op, u32 x, u32 y) {
  if (r->code.n >= RX_MAX_CODE) fail_unsupported(r, "the compiled expression is too long");
  *vec_push(r->a, &r->code) = (RxCode){op, x, y};
  return r->code.n - 1;
}

static u32 set_number(Pattern *r, CharSet s) {
  for (u32 i = 0; i < r->set.n; i++)
    if (r->set.at[i].range.n == s.range.n &&
        (!s.range.n || !memcmp(r->set.at[i].range.at, s.range.at, s.range.n * sizeof *s.range.at)))
      return i;
  if (r->set.n == RX_MAX_SETS) fail_unsupported(r, "the expression has too many different sets");
  *vec_push(r->a, &r->set) = s;
  return r->set.n - 1;
}

/* Appends a copy of n instructions; jumps inside it are relocated. */
static void copy_code(Pattern *r, const RxCode *saved, u32 from, u32 n) {
  u32 by = r->code.n - from;
  for (u32 i = 0; i < n; i++) {
    RxCode k = saved[i];
    bool jumps = k.op == RX_split || k.op == RX_jump;
    emit(r, k.op, jumps ? k.x + by : k.x, k.op == RX_split ? k.y + by : k.y);
  }
}

static bool peek(const Pattern *r, char ch) {
  return r->at < r->end && *r->at == (u8)ch;
}

static bool accept(Pattern *r, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n)) return false;
  r->at += n;
  return true;
}

static u32 character(Pattern *r) {
  u32 length;
  if (r->at == r->end) fail_unsupported(r, "expected a character, found the end");
  u32 ch = utf8_get(r->at, (size_t)(r->end - r->at), &length);
  r->at += length;
  return ch;
}

static void add_char(Pattern *r, CharSet *s, u32 ch) {
  charset_add(r->a, s, ch, ch + 1);
  if (!r->fold) return;
  if (ch >= 128) fail_unsupported(r, "(?i) is supported for ASCII only");
  u32 low = ch | 0x20;
  if (low < 'a' || low > 'z') return;
  charset_add(r->a, s, low, low + 1);
  charset_add(r->a, s, low - 0x20, low - 0x20 + 1);
  if (low == 's') charset_add(r->a, s, 0x17f, 0x180);
  if (low == 'k') charset_add(r->a, s, 0x212a, 0x212b);
}

/* After \: adds its meaning to s. True: a single character, in *ch. */
static bool escape(Pattern *r, CharSet *s, u32 *ch) {
  static const char letters[] = "rntfv0", means[] = "\r\n\t\f\v\0";
  u32 e = character(r);
  CharSet named = {0};
  const char *known = e && e < 128 ? strchr(letters, (int)e) : NULL;
  if (known || !((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || (e >= '0' && e <= '9'))) {
    *ch = known ? (u8)means[known - letters] : e;
    return true;
  }
  const u8 *start = r->at;
  bool negated = e >= 'A' && e <= 'Z', ok = false;
  switch (e | 0x20) {
  case 's': ok = charset_named(r->a, r->u, &named, "White_Space", 11); break;
  case 'd': ok = charset_named(r->a, r->u, &named, "Nd", 2); break;
  case 'w': ok = charset_named(r->a, r->u, &named, "w", 1); break;
  case 'p': {
    bool braces = accept(r, "{");
    if (braces && accept(r, "^")) negated = !negated;
    start = r->at;
    while (braces && r->at < r->end && *r->at != '}') r->at++;
    if (!braces && r->at < r->end) r->at++;
    ok = charset_named(r->a, r->u, &named, (const char *)start, (size_t)(r->at - start)) &&
         !(r->at - start == 1 && *start == 'w');
    if (braces && !accept(r, "}")) fail_unsupported(r, "'}' is missing");
    break;
  }
  default: break;
  }
  if (!ok) fail_unsupported(r, "the escape is not supported");
  if (negated) named = charset_complement(r->a, &named);
  charset_union(r->a, s, &named);
  return false;
}

/* After [. */
static CharSet bracket(Pattern *r) {
  CharSet s = {0};
  bool negated = accept(r, "^");
  for (bool first = true; first || !peek(r, ']'); first = false) {
    u32 lo, hi;
    if (peek(r, '[') || (r->end - r->at > 1 && r->at[0] == '&' && r->at[1] == '&'))
      fail_unsupported(r, "nested sets are not supported");
    if (accept(r, "\\")) {
      if (!escape(r, &s, &lo)) continue;
    } else {
      lo = character(r);
    }
    hi = lo;
    if (r->end - r->at > 1 && r->at[0] == '-' && r->at[1] != ']') {
      CharSet none = {0};
      r->at++;
      if (!accept(r, "\\"))
        hi = character(r);
      else if (!escape(r, &none, &hi))
        fail_unsupported(r, "a range cannot end with a set");
    }
    if (hi < lo) fail_unsupported(r, "the range is reversed");
    if (r->fold && hi > lo) fail_unsupported(r, "a range inside (?i) is not supported");
    if (hi == lo)
      add_char(r, &s, lo);
    else
      charset_add(r->a, &s, lo, hi + 1);
  }
  r->at++;
  return negated ? charset_complement(r->a, &s) : s;
}

static void alternatives(Pattern *r);

/* One character, as a set. False if something else follows. */
static bool one_set(Pattern *r, CharSet *s) {
  u32 ch;
  *s = (CharSet){0};
  if (accept(r, "[")) {
    *s = bracket(r);
  } else if (accept(r, "\\")) {
    if (escape(r, s, &ch)) add_char(r, s, ch);
  } else if (accept(r, ".")) {
    charset_add(r->a, s, '\n', '\n' + 1);
    *s = charset_complement(r->a, s);
  } else if (r->at < r->end && !strchr("()|*+?{}^$", *r->at)) {
    add_char(r, s, character(r));
  } else {
    return false;
  }
  return true;
}

/* After (?! or (?=. */
static void lookahead(Pattern *r, bool negated) {
  CharSet s;
  if (!one_set(r, &s) || !accept(r, ")"))
    fail_unsupported(r, "lookahead at more than one character is not supported");
  emit(r, RX_ahead, set_number(r, s), negated);
}

static void group(Pattern *r) {
  bool fold = r->fold;
  if (accept(r, "?!")) {
    lookahead(r, true);
    return;
  }
  if (accept(r, "?=")) {
    lookahead(r, false);
    return;
  }
  if (accept(r, "?i:"))
    r->fold = true;
  else if (!accept(r, "?:") && peek(r, '?'))
    fail_unsupported(r, "this kind of group is not supported");
  if (++r->depth > RX_DEPTH) fail_unsupported(r, "groups nested too deeply");
  alternatives(r);
  r->depth--;
  if (!accept(r, ")")) fail_unsupported(r, "')' is missing");
  r->fold = fold;
}

static void atom(Pattern *r) {
  CharSet s;
  if (accept(r, "(")) {
    group(r);
    return;
  }
  if (!one_set(r, &s)) fail_unsupported(r, "this syntax is not supported");
  emit(r, RX_set, set_number(r, s), 0);
}

static u32 count(Pattern *r) {
  u32 x = 0;
  if (r->at == r->end || *r->at < '0' || *r->at > '9') fail_unsupported(r, "expected a count");
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    x = x * 10 + (u32)(*r->at - '0');
    if (x > RX_MAX_REPEAT) fail_unsupported(r, "the repetition count is too large");
  }
  return x;
}

/* Repeats the code from `first` on, least to most times. any: without an upper limit. */
static void repeat(Pattern *r, u32 first, u32 least, u32 most, bool any, bool lazy) {
  u32 n = r->code.n - first;
  RxCode *body = n ? arena_copy(r->a, &r->code.at[first], n * sizeof *body) : NULL;
  r->code.n = first;
  for (u32 i = 0; i < least; i++) copy_code(r, body, first, n);
  u32 rest = any ? 1 : most - least, split[RX_MAX_REPEAT + 1];
  for (u32 i = 0; i < rest; i++) {
    split[i] = emit(r, RX_split, 0, 0);
    copy_code(r, body, first, n);
  }
  if (any) emit(r, RX_jump, split[0], 0);
  for (u32 i = 0; i < rest; i++) {
    RxCode *k = &r->code.at[split[i]];
    k->x = lazy ? r->code.n : split[i] + 1;
    k->y = lazy ? split[i] + 1 : r->code.n;
  }
}

static void sequence(Pattern *r) {
  while (r->at < r->end && *r->at != '|' && *r->at != ')') {
    u32 first = r->code.n, least = 1, most = 1;
    bool any = false;
    atom(r);
    if (accept(r, "?")) {
      least = 0;
    } else if (accept(r, "*")) {
      least = 0, any = true;
    } else if (accept(r, "+")) {
      any = true;
    } else if (accept(r, "{")) {
      least = most = count(r);
      if (accept(r, ",")) {
        any = peek(r, '}');
        if (!any) most = count(r);
      }
      if (!accept(r, "}") || (!any && most < least))
        fail_unsupported(r, "the count is not supported");
    } else {
      continue;
    }
    bool lazy = accept(r, "?");
    if (peek(r, '+') || peek(r, '*') || peek(r, '?'))
      fail_unsupported(r, "possessive repeats are not supported");
    repeat(r, first, least, most, any, lazy);
  }
}

static void alternatives(Pattern *r) {
  u32 first = r->code.n;
  sequence(r);
  VEC(u32) jump = {0};
  while (accept(r, "|")) {
    /* split before the body, which moves by one; jump after it */
    u32 n = r->code.n - first;
    RxCode *body = n ? arena_copy(r->a, &r->code.at[first], n * sizeof *body) : NULL;
    r->code.n = first;
    emit(r, RX_split, first + 1, 0);
    copy_code(r, body, first, n);
    *vec_push(r->a, &jump) = emit(r, RX_jump, 0, 0);
    r->code.at[first].y = r->code.n;
    first = r->code.n;
    sequence(r);
  }
  for (u32 i = 0; i < jump.n; i++) r->code.at[jump.at[i]].x = r->code.n;
}

/* ---- character classes ---- */

static int by_number(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return x < y ? -1 : x > y;
}

static void classify(Pattern *r) {
  U32Vec cut = {0};
  *vec_push(r->a, &cut) = 0;
  for (u32 i = 0; i < r->set.n; i++)
    for (u32 k = 0; k < r->set.at[i].range.n; k++) {
      *vec_push(r->a, &cut) = r->set.at[i].range.at[k].lo;
      *vec_push(r->a, &cut) = r->set.at[i].range.at[k].hi;
    }
  qsort(cut.at, cut.n, sizeof *cut.at, by_number);
  u32 *cursor = NEWS(r->a, u32, r->set.n + 1);
  for (u32 i = 0; i < cut.n; i++) {
    if ((i && cut.at[i] == cut.at[i - 1]) || cut.at[i] >= UNI_END) continue;
    u8 in[RX_MAX_SETS] = {0};
    for (u32 k = 0; k < r->set.n; k++) {
      const CharSet *s = &r->set.at[k];
      while (cursor[k] < s->range.n && s->range.at[cursor[k]].hi <= cut.at[i]) cursor[k]++;
      in[k] = cursor[k] < s->range.n && s->range.at[cursor[k]].lo <= cut.at[i];
    }
    u32 class = 0;
    while (class < r->nclass && memcmp(r->member[class], in, sizeof in)) class ++;
    if (class == r->nclass) {
      if (class == RX_MAX_CLASSES) fail_unsupported(r, "too many classes of characters");
      memcpy(r->member[r->nclass++], in, sizeof in);
    }
    if (!r->run.n || (r->run.at[r->run.n - 1] & 0xff) != class)
      *vec_push(r->a, &r->run) = cut.at[i] << 8 | class;
  }
}

typedef struct RxState {
  u32 at, n; /* range in Dfa.thread */
} RxState;

typedef struct Dfa {
  Pattern *r;
  VEC(RxState) state;
  U32Vec thread, table;
  u32 *seen, *seen_now, mark; /* by instruction */
  u32 *stack;
  Map known; /* threads -> state + 1 */
} Dfa;

/* Adds the threads that start at pc, in priority order: threads that consume, look ahead or match.
 */
static void follow(Dfa *d, u32 pc) {
  u32 depth = 0;
  d->stack[depth++] = pc;
  while (depth) {
    pc = d->stack[--depth];
    if (d->seen[pc] == d->mark) continue;
    d->seen[pc] = d->mark;
    const RxCode *k = &d->r->code.at[pc];
    if (k->op == RX_jump) {
      d->stack[depth++] = k->x;
    } else if (k->op == RX_split) {
      d->stack[depth++] = k->y;
      d->stack[depth++] = k->x;
    } else {
      *vec_push(d->r->a, &d->thread) = pc;
    }
  }
}

/* The state with the threads from `first` on. Drops them if the state exists. */
static u32 state_of(Dfa *d, u32 first) {
  u32 n = d->thread.n - first;
  if (!n) return DFA_dead;
  u32 *known = map_put_bytes(&d->known, &d->thread.at[first], n * sizeof *d->thread.at);
  if (*known) {
    d->thread.n = first;
    return *known - 1;
  }
  if (d->state.n == RX_MAX_STATES) fail_unsupported(d->r, "its automaton has too many states");
  *known = d->state.n + 1;
  *vec_push(d->r->a, &d->state) = (RxState){first, n};
  return d->state.n - 1;
}

/* Advances a thread on a character of `class` (nclass: end of text). True if it matched. */
static bool advance(Dfa *d, u32 pc, u32 class, u32 *stack) {
  Pattern *r = d->r;
  u32 depth = 0;
  stack[depth++] = pc;
  while (depth) {
    pc = stack[--depth];
    if (d->seen_now[pc] == d->mark) continue;
    d->seen_now[pc] = d->mark;
    const RxCode *k = &r->code.at[pc];
    bool in = class < r->nclass && (k->op == RX_set || k->op == RX_ahead) && r->member[class][k->x];
    switch (k->op) {
    case RX_set:
      if (in) follow(d, pc + 1);
      break;
    case RX_split:
      stack[depth++] = k->y;
      stack[depth++] = k->x;
      break;
    case RX_jump: stack[depth++] = k->x; break;
    case RX_ahead:
      if (in != (k->y != 0)) stack[depth++] = pc + 1;
      break;
    case RX_match: return true;
    }
  }
  return false;
}

static void build(Dfa *d) {
  Pattern *r = d->r;
  u32 *stack = NEWS(r->a, u32, 2 * r->code.n + 2);
  d->seen = NEWS(r->a, u32, r->code.n + 1);
  d->seen_now = NEWS(r->a, u32, r->code.n + 1);
  d->stack = NEWS(r->a, u32, 2 * r->code.n + 2);
  d->known = map_new(r->a);
  *vec_push(r->a, &d->state) = (RxState){0, 0}; /* DFA_dead */
  d->mark = 1;
  follow(d, 0);
  state_of(d, 0);
  for (u32 s = 0; s < d->state.n; s++) {
    for (u32 class = 0; class <= r->nclass; class ++) {
      RxState now = d->state.at[s];
      u32 first = d->thread.n;
      bool matched = false;
      d->mark++;
      for (u32 i = 0; i < now.n && !matched; i++)
        matched = advance(d, d->thread.at[now.at + i], class, stack);
      *vec_push(r->a, &d->table) = state_of(d, first) | (matched ? DFA_accept : 0);
    }
  }
}

void pattern_compile(Ctx *c, const Unicode *u, const char *text, size_t n, Loc loc, U32Vec *to,
                     Arena *a) {
  Pattern *r = NEW(&c->scratch, Pattern);
  *r = (Pattern){.c = c, .a = &c->scratch, .u = u, .loc = loc};
  r->text = r->at = (const u8 *)text;
  r->end = r->text + n;
  alternatives(r);
  if (r->at < r->end) fail_unsupported(r, "unmatched ')'");
  emit(r, RX_match, 0, 0);
  classify(r);
  Dfa d = {.r = r};
  build(&d);
  *vec_push(a, to) = d.state.n;
  *vec_push(a, to) = r->nclass;
  *vec_push(a, to) = r->run.n;
  for (u32 ch = 0, k = 0; ch < 128; ch += 4) {
    u8 class[4];
    for (u32 i = 0; i < 4; i++) {
      while (k + 1 < r->run.n && r->run.at[k + 1] >> 8 <= ch + i) k++;
      class[i] = (u8)(r->run.at[k] & 0xff);
    }
    memcpy(vec_push(a, to), class, 4);
  }
  for (u32 i = 0; i < r->run.n; i++) *vec_push(a, to) = r->run.at[i];
  for (u32 i = 0; i < d.table.n; i += 2) {
    u16 pair[2] = {(u16)d.table.at[i], (u16)(i + 1 < d.table.n ? d.table.at[i + 1] : 0)};
    memcpy(vec_push(a, to), pair, 4);
  }
}
