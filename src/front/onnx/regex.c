/* regex.c: regular expressions to DFA tables.
 *
 * In: a pattern in RE2 syntax. Out: a deterministic automaton over bytes. Method: the pattern is
 * parsed into a tree, the tree becomes a Thompson NFA whose character sets are ranges of UTF-8
 * bytes, and the subset construction makes a DFA. Assertions (^ $ \b \B) need the byte before and
 * the byte after: the class of the former is part of a state, the latter is checked before a step.
 * Matching costs one lookup per byte. Not supported: Unicode classes (\p), flags m and U, \C, \Q.
 * Lazy operators are equal to greedy ones, because only whole matches count.
 */
#include "front/onnx/regex.h"

#include <string.h>

enum {
  MOST_LENGTH = 4096, /* bytes of a pattern */
  MOST_DEPTH = 64,    /* nesting of groups */
  MOST_REPEAT = 1000, /* as in RE2 */
  MOST_CODE = 8192,   /* instructions */
  MOST_STATES = 2048,
  LAST_RUNE = 0x10ffff,
};
#define MOST_WORK 400000000u /* instructions visited by the subset construction */

typedef struct CodeRange {
  u32 lo, hi;
} CodeRange;

typedef enum TreeKind { TR_set, TR_cat, TR_alt, TR_repeat, TR_assert } TreeKind;
typedef enum RegexAssert { LK_begin, LK_end, LK_word, LK_not_word } RegexAssert;

typedef struct Tree Tree;
struct Tree {
  TreeKind kind;
  VEC(CodeRange) set; /* TR_set: code points */
  VEC(Tree *) part;   /* TR_cat, TR_alt; TR_repeat has one */
  i32 least, most;    /* TR_repeat; most -1: unlimited */
  RegexAssert look;
};

typedef struct RegexParse {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *at, *end;
  u32 depth;
  bool fold, dot_all; /* flags i and s */
} RegexParse;

static _Noreturn void bad(RegexParse *p, const char *why) {
  fail(p->c, ERR_input, p->loc, "pattern: %s, %u bytes before its end", why, (u32)(p->end - p->at));
}

static _Noreturn void refuse(RegexParse *p, const char *what) {
  fail(p->c, ERR_unsupported, p->loc, "pattern: %s is not supported", what);
}

static Tree *tree(RegexParse *p, TreeKind kind) {
  Tree *t = NEW(p->a, Tree);
  t->kind = kind;
  return t;
}

static void add_range(RegexParse *p, Tree *t, u32 lo, u32 hi) {
  *vec_push(p->a, &t->set) = (CodeRange){lo, hi};
}

static bool take(RegexParse *p, const char *text) {
  size_t n = strlen(text);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0) return false;
  p->at += n;
  return true;
}

/* ---- characters and sets ---- */

static u32 take_rune(RegexParse *p) {
  static const u8 first[] = {0, 0, 0xc0, 0xe0, 0xf0};
  u32 lead = *p->at, n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || (size_t)(p->end - p->at) < n)
    bad(p, "invalid UTF-8");
  u32 x = n == 1 ? lead : lead - first[n];
  for (u32 i = 1; i < n; i++) {
    if ((p->at[i] & 0xc0) != 0x80) bad(p, "invalid UTF-8");
    x = x << 6 | (p->at[i] & 0x3f);
  }
  p->at += n;
  return x;
}

static void negate(RegexParse *p, Tree *t, u32 from) {
  /* insertion sort: sets are short */
  for (u32 i = from + 1; i < t->set.n; i++)
    for (u32 k = i; k > from && t->set.at[k].lo < t->set.at[k - 1].lo; k--) {
      CodeRange x = t->set.at[k];
      t->set.at[k] = t->set.at[k - 1];
      t->set.at[k - 1] = x;
    }
  VEC(CodeRange) out = {0};
  u32 next = 0;
  for (u32 i = from; i < t->set.n; i++) {
    if (t->set.at[i].lo > next) *vec_push(p->a, &out) = (CodeRange){next, t->set.at[i].lo - 1};
    if (t->set.at[i].hi + 1 > next) next = t->set.at[i].hi + 1;
  }
  if (next <= LAST_RUNE) *vec_push(p->a, &out) = (CodeRange){next, LAST_RUNE};
  t->set.n = from;
  for (u32 i = 0; i < out.n; i++) *vec_push(p->a, &t->set) = out.at[i];
}

/* Adds both cases of ASCII letters in ranges from `from` on. */
static void fold_case(RegexParse *p, Tree *t, u32 from) {
  u32 n = t->set.n;
  for (u32 i = from; i < n; i++)
    for (u32 k = 0; k < 2; k++) {
      u32 a = k ? 'a' : 'A', z = a + 25, lo = t->set.at[i].lo, hi = t->set.at[i].hi;
      lo = lo > a ? lo : a;
      hi = hi < z ? hi : z;
      if (lo <= hi) add_range(p, t, lo ^ 32, hi ^ 32);
    }
}

static const struct {
  const char *name;
  const char *ranges; /* pairs of characters */
} classes[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\x01\x7f"},
    {"blank", "\t\t  "},
    {"cntrl", "\x01\x1f\x7f\x7f"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
    {"perl space", "\t\n\f\r  "},
};

static bool add_class(RegexParse *p, Tree *t, const char *name, size_t n, bool not ) {
  u32 from = t->set.n;
  for (u32 i = 0; i < sizeof classes / sizeof *classes; i++) {
    if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) != 0) continue;
    for (const char *r = classes[i].ranges; *r; r += 2) add_range(p, t, (u8)r[0], (u8)r[1]);
    if (not ) negate(p, t, from);
    return true;
  }
  return false;
}

/* \d \w \s and their complements, after the backslash. */
static bool take_perl(RegexParse *p, Tree *t) {
  static const struct {
    char small;
    const char *name;
  } perl[] = {{'d', "digit"}, {'w', "word"}, {'s', "perl space"}};
  for (u32 i = 0; p->at < p->end && i < 3; i++)
    if ((*p->at | 32) == perl[i].small) {
      bool not = !(*p->at++ & 32);
      return add_class(p, t, perl[i].name, strlen(perl[i].name), not );
    }
  return false;
}

static u32 take_hex(RegexParse *p) {
  bool brace = take(p, "{");
  u32 x = 0, n = 0;
  for (; p->at < p->end && (brace ? n < 8 : n < 2); n++, p->at++) {
    u32 ch = *p->at, low = ch | 32;
    if (ch >= '0' && ch <= '9')
      x = x * 16 + ch - '0';
    else if (low >= 'a' && low <= 'f')
      x = x * 16 + low - 'a' + 10;
    else
      break;
    if (x > LAST_RUNE) bad(p, "expected a code point of at most 10FFFF");
  }
  if (!n || (!brace && n < 2) || (brace && !take(p, "}")))
    bad(p, "expected hexadecimal digits after \\x");
  return x;
}

/* One character after a backslash. */
static u32 take_escape(RegexParse *p) {
  static const char name[] = "tnrfva", value[] = "\t\n\r\f\v\a";
  if (p->at == p->end) bad(p, "expected a character after '\\'");
  u32 ch = *p->at;
  const char *known = ch < 0x80 ? memchr(name, (int)ch, sizeof name - 1) : NULL;
  if (known) {
    p->at++;
    return (u32)value[known - name];
  }
  if (take(p, "x")) return take_hex(p);
  bool letter = (ch | 32) >= 'a' && (ch | 32) <= 'z';
  if (letter || (ch >= '0' && ch <= '9') || ch >= 0x80) refuse(p, "an escape with this character");
  p->at++;
  return ch;
}

static u32 take_member(RegexParse *p) {
  return take(p, "\\") ? take_escape(p) : take_rune(p);
}

/* Parses a set after its bracket. */
static Tree *take_set(RegexParse *p) {
  Tree *t = tree(p, TR_set);
  bool not = take(p, "^"), first = true;
  for (;; first = false) {
    if (p->at == p->end) bad(p, "expected ']' at the end of a set");
    if (!first && take(p, "]")) break;
    if (take(p, "[:")) {
      bool other = take(p, "^");
      const u8 *name = p->at;
      while (p->at < p->end && *p->at != ':') p->at++;
      size_t n = (size_t)(p->at - name);
      if (!take(p, ":]") || !add_class(p, t, (const char *)name, n, other))
        bad(p, "expected a class such as [:alpha:]");
      continue;
    }
    if (*p->at == '\\') {
      p->at++;
      if (take_perl(p, t)) continue;
      p->at--;
    }
    u32 lo = take_member(p), hi = lo;
    if (p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
      p->at++;
      hi = take_member(p);
      if (hi < lo) bad(p, "expected a range whose end is not below its start");
    }
    add_range(p, t, lo, hi);
  }
  if (p->fold) fold_case(p, t, 0);
  if (not ) negate(p, t, 0);
  return t;
}

/* ---- tree ---- */

static Tree *take_alternatives(RegexParse *p);

static Tree *assertion(RegexParse *p, RegexAssert look) {
  Tree *t = tree(p, TR_assert);
  t->look = look;
  return t;
}

/* (?i) or (?i:...): true when a group follows. */
static bool take_flags(RegexParse *p) {
  bool on = true;
  for (; p->at < p->end; p->at++) {
    if (take(p, ":")) return true;
    if (*p->at == ')') return false;
    if (*p->at == '-')
      on = false;
    else if (*p->at == 'i')
      p->fold = on;
    else if (*p->at == 's')
      p->dot_all = on;
    else
      refuse(p, "a flag other than i and s");
  }
  bad(p, "expected ')' at the end of a group");
}

static void take_name(RegexParse *p) {
  while (p->at < p->end && *p->at != '>') p->at++;
  if (!take(p, ">")) bad(p, "expected '>' after the name of a group");
}

static Tree *take_group(RegexParse *p) {
  bool fold = p->fold, dot_all = p->dot_all;
  if (++p->depth > MOST_DEPTH) refuse(p, "a group nested more than 64 deep");
  if (take(p, "?P<") || take(p, "?<")) {
    take_name(p);
  } else if (take(p, "?") && !take_flags(p)) { /* flags for the rest of this group */
    p->at++;
    p->depth--;
    return tree(p, TR_cat);
  }
  Tree *t = take_alternatives(p);
  if (!take(p, ")")) bad(p, "expected ')' at the end of a group");
  p->fold = fold;
  p->dot_all = dot_all;
  p->depth--;
  return t;
}

static Tree *any_rune(RegexParse *p) {
  Tree *t = tree(p, TR_set);
  if (p->dot_all) {
    add_range(p, t, 0, LAST_RUNE);
  } else {
    add_range(p, t, 0, '\n' - 1);
    add_range(p, t, '\n' + 1, LAST_RUNE);
  }
  return t;
}

static i32 take_number(RegexParse *p) {
  i32 x = -1;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
    x = (x < 0 ? 0 : x * 10) + (*p->at++ - '0');
    if (x > MOST_REPEAT) bad(p, "more than 1000 repetitions");
  }
  return x;
}

/* {n}, {n,} or {n,m}; anything else is literal text. */
static bool take_counts(RegexParse *p, i32 *least, i32 *most) {
  const u8 *start = p->at;
  if (!take(p, "{")) return false;
  *least = *most = take_number(p);
  if (*least >= 0 && take(p, ",")) *most = take_number(p);
  if (*least >= 0 && take(p, "}")) {
    if (*most >= 0 && *most < *least) bad(p, "a repetition that ends before it begins");
    return true;
  }
  p->at = start;
  return false;
}

static Tree *take_atom(RegexParse *p) {
  i32 least, most;
  if (take(p, "(")) return take_group(p);
  if (take(p, "[")) return take_set(p);
  if (take(p, ".")) return any_rune(p);
  if (take(p, "^") || take(p, "\\A")) return assertion(p, LK_begin);
  if (take(p, "$") || take(p, "\\z")) return assertion(p, LK_end);
  if (take(p, "\\b")) return assertion(p, LK_word);
  if (take(p, "\\B")) return assertion(p, LK_not_word);
  if (take(p, "*") || take(p, "+") || take(p, "?") || take_counts(p, &least, &most))
    bad(p, "nothing to repeat");
  Tree *t = tree(p, TR_set);
  bool escape = take(p, "\\");
  if (escape && take_perl(p, t)) return t;
  u32 x = escape ? take_escape(p) : take_rune(p);
  add_range(p, t, x, x);
  if (p->fold) fold_case(p, t, 0);
  return t;
}

static Tree *take_repeated(RegexParse *p) {
  Tree *t = take_atom(p);
  for (u32 n = 0; p->at < p->end; n++) {
    i32 least = 0, most = -1;
    if (take(p, "+"))
      least = 1;
    else if (take(p, "?"))
      most = 1;
    else if (!take(p, "*") && !take_counts(p, &least, &most))
      break;
    if (n > 8) refuse(p, "a repetition of repetitions");
    take(p, "?"); /* lazy has no effect on whole matches */
    Tree *r = tree(p, TR_repeat);
    r->least = least;
    r->most = most;
    *vec_push(p->a, &r->part) = t;
    t = r;
  }
  return t;
}

static Tree *take_alternatives(RegexParse *p) {
  Tree *all = tree(p, TR_alt), *cat = tree(p, TR_cat);
  *vec_push(p->a, &all->part) = cat;
  while (p->at < p->end && *p->at != ')') {
    if (take(p, "|")) {
      cat = tree(p, TR_cat);
      *vec_push(p->a, &all->part) = cat;
      continue;
    }
    *vec_push(p->a, &cat->part) = take_repeated(p);
  }
  return all;
}

/* ---- NFA ---- */

typedef enum CodeKind { CD_byte, CD_split, CD_jump, CD_assert, CD_match } CodeKind;

typedef struct Code {
  CodeKind kind;
  u8 lo, hi;
  RegexAssert look;
  u32 x, y; /* next instruction; split: both */
} Code;

typedef struct RegexEmit {
  RegexParse *p;
  VEC(Code) code;
} RegexEmit;

static u32 emit(RegexEmit *e, Code c) {
  if (e->code.n == MOST_CODE) refuse(e->p, "a pattern of more than 8192 instructions");
  *vec_push(e->p->a, &e->code) = c;
  return e->code.n - 1;
}

static u32 encode(u32 x, u8 *out) {
  if (x < 0x80) return out[0] = (u8)x, 1;
  u32 n = x < 0x800 ? 2 : x < 0x10000 ? 3 : 4;
  static const u8 first[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (u32 i = n - 1; i > 0; i--, x >>= 6) out[i] = (u8)(0x80 | (x & 0x3f));
  out[0] = (u8)(first[n] | x);
  return n;
}

/* Alternatives for a range of code points whose encodings are a byte range at every position.
 * `ends` collects the final jumps, to be patched later. */

static void emit_span(RegexEmit *e, u32 lo, u32 hi, U32Vec *ends) {
  u8 from[4], to[4];
  u32 n = encode(lo, from);
  encode(hi, to);
  u32 split = emit(e, (Code){.kind = CD_split});
  e->code.at[split].x = e->code.n;
  for (u32 i = 0; i < n; i++) {
    u32 at = emit(e, (Code){.kind = CD_byte, .lo = from[i], .hi = to[i]});
    e->code.at[at].x = at + 1;
  }
  *vec_push(e->p->a, ends) = emit(e, (Code){.kind = CD_jump});
  e->code.at[split].y = e->code.n;
}

static void emit_range(RegexEmit *e, u32 lo, u32 hi, U32Vec *ends) {
  static const u32 edge[] = {0x7f, 0x7ff, 0xffff};
  for (u32 i = 0; i < 3; i++)
    if (lo <= edge[i] && hi > edge[i]) {
      emit_range(e, lo, edge[i], ends);
      emit_range(e, edge[i] + 1, hi, ends);
      return;
    }
  for (u32 i = 1; i < 4 && lo >= 0x80; i++) {
    u32 m = ((u32)1 << (6 * i)) - 1;
    if ((lo & ~m) == (hi & ~m)) continue;
    u32 cut = lo & m ? (lo | m) : (hi & m) != m ? (hi & ~m) - 1 : hi;
    if (cut >= hi) continue;
    emit_range(e, lo, cut, ends);
    emit_range(e, cut + 1, hi, ends);
    return;
  }
  emit_span(e, lo, hi, ends);
}

/* Matches no byte: all alternatives failed. */
static void emit_never(RegexEmit *e) {
  u32 at = emit(e, (Code){.kind = CD_byte, .lo = 1, .hi = 0});
  e->code.at[at].x = at + 1;
}

static void patch_jumps(RegexEmit *e, const U32Vec *ends) {
  for (u32 i = 0; i < ends->n; i++) e->code.at[ends->at[i]].x = e->code.n;
}

static void emit_tree(RegexEmit *e, const Tree *t);

static void emit_alt(RegexEmit *e, const Tree *t) {
  U32Vec ends = {0};
  for (u32 i = 0; i < t->part.n; i++) {
    bool more = i + 1 < t->part.n;
    u32 split = more ? emit(e, (Code){.kind = CD_split}) : 0;
    if (more) e->code.at[split].x = e->code.n;
    emit_tree(e, t->part.at[i]);
    if (!more) break;
    *vec_push(e->p->a, &ends) = emit(e, (Code){.kind = CD_jump});
    e->code.at[split].y = e->code.n;
  }
  patch_jumps(e, &ends);
}

static void emit_repeat(RegexEmit *e, const Tree *t) {
  U32Vec ends = {0};
  for (i32 i = 0; i < t->least; i++) emit_tree(e, t->part.at[0]);
  if (t->most < 0) {
    u32 split = emit(e, (Code){.kind = CD_split});
    e->code.at[split].x = split + 1;
    emit_tree(e, t->part.at[0]);
    emit(e, (Code){.kind = CD_jump, .x = split});
    e->code.at[split].y = e->code.n;
    return;
  }
  for (i32 i = t->least; i < t->most; i++) {
    u32 split = emit(e, (Code){.kind = CD_split});
    e->code.at[split].x = split + 1;
    *vec_push(e->p->a, &ends) = split;
    emit_tree(e, t->part.at[0]);
  }
  for (u32 i = 0; i < ends.n; i++) e->code.at[ends.at[i]].y = e->code.n;
}

static void emit_tree(RegexEmit *e, const Tree *t) {
  U32Vec ends = {0};
  switch (t->kind) {
  case TR_set:
    for (u32 i = 0; i < t->set.n; i++) emit_range(e, t->set.at[i].lo, t->set.at[i].hi, &ends);
    emit_never(e);
    patch_jumps(e, &ends);
    return;
  case TR_cat:
    for (u32 i = 0; i < t->part.n; i++) emit_tree(e, t->part.at[i]);
    return;
  case TR_alt: emit_alt(e, t); return;
  case TR_repeat: emit_repeat(e, t); return;
  case TR_assert: {
    u32 at = emit(e, (Code){.kind = CD_assert, .look = t->look});
    e->code.at[at].x = at + 1;
  }
  }
}

/* ---- DFA ---- */

typedef enum Neighbor {
  BS_edge,
  BS_word,
  BS_other
} Neighbor; /* class of the byte before or after */

typedef struct RegexMake {
  RegexParse *p;
  const Code *code;
  u32 ncode;
  bool looks; /* the pattern has assertions */
  u8 kind[256], sample[256];
  u32 kinds;
  Map seen;       /* key of a state -> 1 + its index */
  VEC(u16 *) key; /* Neighbor, number of instructions, instructions */
  VEC(u16) next;
  u16 *stack, *list; /* instruction lists */
  u32 *mark, stamp;  /* mark[i] == stamp: in list */
  u64 work;
} RegexMake;

static bool is_word(u32 ch) {
  return (ch >= '0' && ch <= '9') || ch == '_' || ((ch | 32) >= 'a' && (ch | 32) <= 'z');
}

static bool assert_holds(RegexAssert look, Neighbor before, Neighbor after) {
  switch (look) {
  case LK_begin: return before == BS_edge;
  case LK_end: return after == BS_edge;
  case LK_word: return (before == BS_word) != (after == BS_word);
  default: return (before == BS_word) == (after == BS_word);
  }
}

/* Epsilon closure of a state in m->list; returns its size. */
static u32 closure(RegexMake *m, const u16 *key, Neighbor after) {
  u32 n = 0, top = 0;
  m->stamp++;
  for (u32 i = 0; i < key[1]; i++) m->stack[top++] = key[2 + i];
  for (u32 i = 0; i < top; i++) m->mark[m->stack[i]] = m->stamp;
  while (top) {
    u16 at = m->stack[--top];
    const Code *c = &m->code[at];
    m->list[n++] = at;
    u32 to[2], k = 0;
    if (c->kind == CD_split) to[k++] = c->y;
    if (c->kind == CD_split || c->kind == CD_jump ||
        (c->kind == CD_assert && assert_holds(c->look, (Neighbor)key[0], after)))
      to[k++] = c->x;
    for (u32 i = 0; i < k; i++)
      if (m->mark[to[i]] != m->stamp) {
        m->mark[to[i]] = m->stamp;
        m->stack[top++] = (u16)to[i];
      }
  }
  m->work += n + 1;
  if (m->work > MOST_WORK)
    refuse(m->p, "a pattern whose automaton takes more than 400 million steps to build");
  return n;
}

/* Index of the state that consists of m->stack[0..n), sorted by the order of marking. */
static u32 state_of(RegexMake *m, Neighbor before, u32 n) {
  u16 *key = NEWS(m->p->a, u16, n + 2);
  key[0] = m->looks ? before : BS_edge;
  key[1] = (u16)n;
  if (n) memcpy(key + 2, m->stack, n * sizeof *key);
  u32 *slot = map_put_bytes(&m->seen, (const char *)key, (n + 2) * sizeof *key);
  if (*slot) return *slot - 1;
  if (m->key.n == MOST_STATES) refuse(m->p, "a pattern whose automaton has more than 2048 states");
  *vec_push(m->p->a, &m->key) = key;
  return (*slot = m->key.n) - 1;
}

static u32 step(RegexMake *m, const u16 *key, u32 kind) {
  u32 ch = m->sample[kind];
  Neighbor after = is_word(ch) ? BS_word : BS_other;
  u32 n = closure(m, key, after), count = 0;
  m->stamp++;
  for (u32 i = 0; i < n; i++) {
    const Code *c = &m->code[m->list[i]];
    if (c->kind == CD_byte && c->lo <= ch && ch <= c->hi) m->mark[c->x] = m->stamp;
  }
  for (u32 i = 0; i < m->ncode; i++)
    if (m->mark[i] == m->stamp) m->stack[count++] = (u16)i;
  m->work += m->ncode / 8;
  return state_of(m, after, count);
}

/* Groups bytes that no range boundary separates; word characters are separate. */
static void find_kinds(RegexMake *m) {
  bool edge[257] = {0};
  for (u32 i = 0; i < m->ncode; i++) {
    const Code *c = &m->code[i];
    m->looks = m->looks || c->kind == CD_assert;
    if (c->kind != CD_byte || c->lo > c->hi) continue;
    edge[c->lo] = edge[c->hi + 1] = true;
  }
  for (u32 i = 1; i < 256; i++)
    if (is_word(i) != is_word(i - 1)) edge[i] = true;
  for (u32 i = 0; i < 256; i++) {
    if (!i || edge[i]) m->sample[m->kinds++] = (u8)i;
    m->kind[i] = (u8)(m->kinds - 1);
  }
}

static Regex make_states(RegexParse *p, const Code *code, u32 n) {
  RegexMake m = {.p = p, .code = code, .ncode = n, .seen = map_new(p->a)};
  m.stack = NEWS(p->a, u16, n + 1);
  m.list = NEWS(p->a, u16, n + 1);
  m.mark = NEWS(p->a, u32, n + 1);
  find_kinds(&m);
  m.stack[0] = 0;
  state_of(&m, BS_edge, 1);
  for (u32 s = 0; s < m.key.n; s++)
    for (u32 k = 0; k < m.kinds; k++) {
      u32 to = step(&m, m.key.at[s], k);
      *vec_push(p->a, &m.next) = (u16)to;
    }
  Regex r = {.states = m.key.n, .kinds = m.kinds, .next = m.next.at};
  r.kind = arena_copy(p->a, m.kind, sizeof m.kind);
  r.accept = NEWS(p->a, bool, r.states);
  for (u32 s = 0; s < r.states; s++) {
    u32 count = closure(&m, m.key.at[s], BS_edge);
    for (u32 i = 0; i < count; i++) r.accept[s] = r.accept[s] || code[m.list[i]].kind == CD_match;
  }
  return r;
}

static RegexParse parse_begin(Ctx *c, Str pattern, Loc loc) {
  const u8 *at = (const u8 *)str_text(c, pattern);
  RegexParse p = {.c = c, .a = &c->work, .loc = loc, .at = at, .end = at + str_len(c, pattern)};
  if (p.end - p.at > MOST_LENGTH) refuse(&p, "a pattern of more than 4096 bytes");
  return p;
}

static Tree *parse_all(RegexParse *p) {
  Tree *t = take_alternatives(p);
  if (p->at < p->end) bad(p, "expected '(' before this ')'");
  return t;
}

static Regex compile(RegexParse *p, const Tree *t) {
  RegexEmit e = {.p = p};
  emit_tree(&e, t);
  emit(&e, (Code){.kind = CD_match});
  return make_states(p, e.code.at, e.code.n);
}

Regex regex_compile(Ctx *c, Str pattern, Loc loc) {
  RegexParse p = parse_begin(c, pattern, loc);
  return compile(&p, parse_all(&p));
}

Regex regex_compile_set(Ctx *c, Str pattern, Loc loc, bool *runs) {
  RegexParse p = parse_begin(c, pattern, loc);
  const Tree *t = parse_all(&p);
  const char *text = str_text(c, pattern);
  *runs = false;
  for (;; t = t->part.at[0]) {
    bool lone = (t->kind == TR_cat || t->kind == TR_alt) && t->part.n == 1;
    bool more = t->kind == TR_repeat && t->least == 1 && t->most == -1 && !*runs;
    if (!lone && !more) break;
    *runs = *runs || more;
  }
  /* a lazy + takes one character only, which the tree does not show */
  if (t->kind != TR_set || strstr(text, "+?") || strstr(text, "}?"))
    refuse(&p, "anything but one set of characters, with or without +,");
  return compile(&p, t);
}
