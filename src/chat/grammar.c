/* grammar.c: see grammar.h.
 *
 * Method: rules are lists of byte sets and calls. A stack of return positions is a chain of
 * interned nodes. A state is a set of stacks whose next element is a byte set; states are interned,
 * and their transitions by byte are computed once (a lazily built automaton). A call at the end of
 * a rule keeps the caller's stack, so repetitions need no depth. The tokens of a state are found in
 * one pass over the sorted tokens that shares the states of common prefixes.
 */
#include "chat/grammar.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_DEPTH = 64,       /* nesting of groups */
  MAX_ELEMS = 1 << 18,  /* maximum elements of all rules */
  MAX_REPEAT = 1 << 14, /* maximum of {m,n} */
  MAX_STATES = 1 << 14,
  MAX_NODES = 1 << 18,
  MAX_STACKS = 1 << 10, /* of one state */
  MASKS = 64,           /* states whose masks are kept */
  MAX_WORK = 1 << 25,   /* stacks visited for all states */
  UNKNOWN = -1,
};

#define LAST_CHAR 0x10ffffu

typedef enum ElemKind { GE_end, GE_set, GE_rule } ElemKind;
typedef struct Elem {
  ElemKind kind;
  u32 arg; /* byte set, or rule */
} Elem;
typedef VEC(Elem) Elems;
typedef struct ByteSet {
  u8 bit[32];
} ByteSet;
typedef struct Rule {
  VEC(u32) alt; /* first element of each alternative */
  u32 line;     /* line of its use or definition */
  bool defined;
} Rule;
typedef struct StackNode {
  u32 at, below; /* element, and the node that follows it; node 0: the end of the text */
} StackNode;
typedef struct State {
  u32 first, n; /* in `member`: sorted nodes; node 0 among them: the text may end */
  i32 *next;    /* by byte: state, or UNKNOWN; NULL: not made */
} State;

struct GrammarTokens {
  const Vocab *v;
  u32 ntoken, n; /* n: with bytes */
  const u32 *id; /* sorted by their bytes */
  const u32 *at; /* n + 1 offsets */
  const u8 *byte;
  const u32 *same; /* length of the prefix shared with the token before */
  const u32 *stop; /* tokens that end a text */
  u32 nstop, longest;
  u32 *place; /* by id: position in the order + 1; 0: no bytes */
};

struct Grammar {
  Ctx *c;
  const GrammarTokens *t;
  VEC(Elem) elem;
  VEC(ByteSet) set;
  VEC(Rule) rule;
  VEC(StackNode) node;
  VEC(State) state; /* state 0 has no stacks: dead */
  VEC(u32) member, seen, work, found;
  Map names, nodes, states, sets, alts; /* sets: their bits -> 1 + number; alts: those read */
  Elems key;                            /* of an alternative in `alts` */
  u32 epoch, begin, spent;
  i32 mask_of[MASKS];
  u8 *mask[MASKS];
  u32 next_mask;
  u32 *path; /* states along a token */
};

/* ---- tokens ---- */

u32 grammar_piece(const Vocab *v, u32 id, u8 *to) {
  u32 n = 0, flags = vocab_flags(v, id), k;
  if (flags & (TF_special | TF_unused | TF_unknown)) return 0;
  const u8 *at = vocab_token(v, id, &n);
  if (flags & TF_byte) {
    const u32 *ids = vocab_section(v, VP_byte_id, &k, 4);
    for (u32 b = 0; b < k && b < 256; b++)
      if (ids[b] == id) return to[0] = (u8)b, 1;
  }
  if (v->head->decode != VD_spaces) return memcpy(to, at, n), n;
  u32 out = 0;
  for (u32 i = 0; i < n;) {
    bool space = i + 3 <= n && !memcmp(at + i, "\xe2\x96\x81", 3);
    to[out++] = space ? ' ' : at[i];
    i += space ? 3 : 1;
  }
  return out;
}

typedef struct TokenBytes {
  const u8 *at;
  u32 n, id;
} TokenBytes;

static int by_bytes(const void *a, const void *b) {
  const TokenBytes *x = a, *y = b;
  int r = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
  if (r) return r;
  return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->id > y->id) - (x->id < y->id);
}

GrammarTokens *grammar_tokens(Ctx *c, const Vocab *v, u32 ntoken) {
  GrammarTokens *t = NEW(&c->keep, GrammarTokens);
  TokenBytes *piece = NEWS(&c->keep, TokenBytes, ntoken + 1);
  VEC(u32) stop = {0};
  u8 *room = arena_alloc(&c->keep, v->head->longest + 1);
  size_t bytes = 0;
  t->v = v;
  t->ntoken = ntoken;
  for (u32 i = 0; i < ntoken; i++) {
    if (vocab_stops(v, i)) {
      *vec_push(&c->keep, &stop) = i;
      continue;
    }
    u32 n = grammar_piece(v, i, room);
    if (!n) continue;
    piece[t->n++] = (TokenBytes){arena_copy(&c->keep, room, n), n, i};
    bytes += n;
    if (n > t->longest) t->longest = n;
  }
  qsort(piece, t->n, sizeof *piece, by_bytes);
  u32 *id = NEWS(&c->keep, u32, t->n + 1), *at = NEWS(&c->keep, u32, t->n + 1);
  u32 *same = NEWS(&c->keep, u32, t->n + 1);
  u8 *byte = arena_alloc(&c->keep, bytes + 1);
  t->place = NEWS(&c->keep, u32, ntoken + 1);
  for (u32 i = 0; i < t->n; i++) {
    id[i] = piece[i].id;
    memcpy(byte + at[i], piece[i].at, piece[i].n);
    at[i + 1] = at[i] + piece[i].n;
    t->place[id[i]] = i + 1;
    u32 k = 0, most = i ? piece[i - 1].n : 0;
    while (k < most && k < piece[i].n && piece[i - 1].at[k] == piece[i].at[k]) k++;
    same[i] = k;
  }
  t->id = id;
  t->at = at;
  t->byte = byte;
  t->same = same;
  t->stop = stop.at;
  t->nstop = stop.n;
  return t;
}

/* ---- reading ---- */

typedef struct GbnfReader {
  Grammar *g;
  Ctx *c;
  const u8 *at, *end;
  u32 line;
} GbnfReader;

static _Noreturn void bad(const GbnfReader *r, const char *what) {
  if (r->at < r->end)
    fail(r->c, ERR_input, LOC_NONE, "grammar, line %u: %s, found '%c'", r->line, what,
         *r->at > 32 && *r->at < 127 ? *r->at : ' ');
  fail(r->c, ERR_input, LOC_NONE, "grammar, line %u: %s, found the end", r->line, what);
}

static void skip(GbnfReader *r, bool lines) {
  for (; r->at < r->end; r->at++) {
    if (*r->at == '#')
      while (r->at + 1 < r->end && r->at[1] != '\n') r->at++;
    else if (*r->at == '\n' && lines)
      r->line++;
    else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
      return;
  }
}

static bool is_name(u8 b) {
  return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') || b == '-' ||
         b == '_';
}

static u32 new_rule(Grammar *g, u32 line) {
  *vec_push(&g->c->keep, &g->rule) = (Rule){.line = line};
  return g->rule.n - 1;
}

static u32 named_rule(GbnfReader *r) {
  const u8 *from = r->at;
  while (r->at < r->end && is_name(*r->at)) r->at++;
  if (r->at == from) bad(r, "expected the name of a rule");
  u32 *slot = map_put_bytes(&r->g->names, from, (size_t)(r->at - from));
  if (!*slot) {
    u32 n = new_rule(r->g, r->line);
    slot = map_put_bytes(&r->g->names, from, (size_t)(r->at - from));
    *slot = n + 1;
  }
  return *slot - 1;
}

static void put(GbnfReader *r, Elems *to, ElemKind kind, u32 arg) {
  *vec_push(&r->c->keep, to) = (Elem){kind, arg};
}

/* Alternatives that the rule already has are dropped. */
static void add_alternative(GbnfReader *r, u32 rule, const Elem *e, u32 n) {
  Grammar *g = r->g;
  g->key.n = 0;
  *vec_push(&r->c->keep, &g->key) = (Elem){GE_end, rule};
  for (u32 i = 0; i < n; i++) *vec_push(&r->c->keep, &g->key) = e[i];
  u32 *known = map_put_bytes(&g->alts, g->key.at, g->key.n * sizeof *g->key.at);
  if (*known) return;
  *known = 1;
  if (g->elem.n + n + 1 > MAX_ELEMS)
    fail(r->c, ERR_input, LOC_NONE, "grammar, line %u: it has more than %d elements", r->line,
         MAX_ELEMS);
  *vec_push(&r->c->keep, &g->rule.at[rule].alt) = g->elem.n;
  for (u32 i = 0; i < n; i++) *vec_push(&r->c->keep, &g->elem) = e[i];
  *vec_push(&r->c->keep, &g->elem) = (Elem){GE_end, 0};
  g->rule.at[rule].defined = true;
}

static u32 new_set(GbnfReader *r, u32 lo, u32 hi) {
  Grammar *g = r->g;
  ByteSet s = {0};
  for (u32 b = lo; b <= hi; b++) s.bit[b / 8] |= (u8)(1 << b % 8);
  u32 *slot = map_put_bytes(&g->sets, &s, sizeof s);
  if (*slot) return *slot - 1;
  *slot = g->set.n + 1;
  *vec_push(&r->c->keep, &g->set) = s;
  return g->set.n - 1;
}

static u32 hex_digit(u8 b) {
  return b >= '0' && b <= '9'   ? b - (u32)'0'
         : b >= 'a' && b <= 'f' ? b - 'a' + 10u
         : b >= 'A' && b <= 'F' ? b - 'A' + 10u
                                : 16u;
}

/* A character of a literal or class. */
static u32 read_char(GbnfReader *r) {
  u32 n, ch = 0;
  if (r->at >= r->end || *r->at == '\n') bad(r, "expected a character");
  if (*r->at != '\\') {
    ch = utf8_get(r->at, (size_t)(r->end - r->at), &n);
    if (ch > LAST_CHAR) bad(r, "expected UTF-8");
    r->at += n;
    return ch;
  }
  if (++r->at >= r->end) bad(r, "expected an escaped character");
  u8 kind = *r->at++;
  u32 digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  for (u32 i = 0; i < digits; i++, r->at++) {
    u32 d = r->at < r->end ? hex_digit(*r->at) : 16;
    if (d > 15) bad(r, "expected a hexadecimal digit");
    ch = ch << 4 | d;
  }
  if (digits && ch <= LAST_CHAR) return ch;
  if (digits) bad(r, "expected a character up to U+10FFFF");
  switch (kind) {
  case 'n': return '\n';
  case 't': return '\t';
  case 'r': return '\r';
  case '\\':
  case '"':
  case '[':
  case ']':
  case '^':
  case '-': return kind;
  default: r->at--; bad(r, "expected an escape of n, t, r, x, u, U, \\, \", [, ], ^ or -");
  }
}

/* Adds the UTF-8 sequences of lo..hi as alternatives of a rule. Both have the same length; a
 * recursive split leaves ranges in which every later byte takes all values or is fixed. */
static void add_sequences(GbnfReader *r, u32 rule, u32 lo, u32 hi) {
  static const u32 last[] = {0x7f, 0x7ff, 0xd7ff, 0xffff};
  if (lo >= 0xd800 && lo <= 0xdfff) lo = 0xe000; /* surrogates are not characters */
  if (hi >= 0xd800 && hi <= 0xdfff) hi = 0xd7ff;
  if (lo > hi) return;
  for (u32 i = 0; i < sizeof last / sizeof *last; i++)
    if (lo <= last[i] && hi > last[i]) {
      add_sequences(r, rule, lo, last[i]);
      add_sequences(r, rule, last[i] + 1, hi);
      return;
    }
  for (u32 bits = 6; bits <= 18; bits += 6) {
    u32 low = (1u << bits) - 1;
    if (lo <= 0x7f || (lo & ~low) == (hi & ~low)) continue;
    if (lo & low) {
      add_sequences(r, rule, lo, lo | low);
      add_sequences(r, rule, (lo | low) + 1, hi);
      return;
    }
    if ((hi & low) != low) {
      add_sequences(r, rule, lo, (hi & ~low) - 1);
      add_sequences(r, rule, hi & ~low, hi);
      return;
    }
  }
  u8 a[4], b[4];
  u32 n = utf8_put(a, lo);
  Elem e[4];
  utf8_put(b, hi);
  for (u32 i = 0; i < n; i++) e[i] = (Elem){GE_set, new_set(r, a[i], b[i])};
  add_alternative(r, rule, e, n);
}

typedef struct ClassRange {
  u32 lo, hi;
} ClassRange;

static int by_low(const void *a, const void *b) {
  const ClassRange *x = a, *y = b;
  return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Characters in the ranges, or with `negated` all others, as one element. */
static void put_class(GbnfReader *r, Elems *to, ClassRange *range, u32 n, bool negated) {
  u32 rule = new_rule(r->g, r->line), next = 0;
  if (n) qsort(range, n, sizeof *range, by_low);
  for (u32 i = 0; i <= n; i++) {
    ClassRange x = i < n ? range[i] : (ClassRange){LAST_CHAR + 1, LAST_CHAR + 1};
    if (negated && x.lo > next) add_sequences(r, rule, next, x.lo - 1);
    if (!negated && i < n && x.hi >= next) add_sequences(r, rule, x.lo < next ? next : x.lo, x.hi);
    if (i < n && x.hi + 1 > next) next = x.hi + 1;
  }
  if (!r->g->rule.at[rule].alt.n) bad(r, "expected a class that is not empty");
  put(r, to, GE_rule, rule);
}

static void read_class(GbnfReader *r, Elems *to) {
  VEC(ClassRange) range = {0};
  bool negated = r->at < r->end && *r->at == '^';
  r->at += negated;
  while (r->at < r->end && *r->at != ']') {
    u32 lo = read_char(r), hi = lo;
    if (r->at + 1 < r->end && *r->at == '-' && r->at[1] != ']') {
      r->at++;
      hi = read_char(r);
    }
    if (hi < lo) bad(r, "expected a range in ascending order");
    *vec_push(&r->c->keep, &range) = (ClassRange){lo, hi};
  }
  if (r->at >= r->end) bad(r, "expected ]");
  r->at++;
  put_class(r, to, range.at, range.n, negated);
}

static u32 read_number(GbnfReader *r) {
  u32 n = 0;
  if (r->at >= r->end || *r->at < '0' || *r->at > '9') bad(r, "expected a number");
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    if ((n = n * 10 + *r->at - '0') > MAX_REPEAT) bad(r, "expected a smaller number");
  return n;
}

/* A rule for any number of `once`, most of them: UINT32_MAX for no limit. */
static u32 optional_rule(GbnfReader *r, u32 once, u32 most) {
  u32 rule = new_rule(r->g, r->line);
  if (most == UINT32_MAX) {
    add_alternative(r, rule, (Elem[]){{GE_rule, once}, {GE_rule, rule}}, 2);
    add_alternative(r, rule, NULL, 0);
    return rule;
  }
  add_alternative(r, rule, NULL, 0);
  for (u32 i = 0; i < most; i++) {
    u32 outer = new_rule(r->g, r->line);
    add_alternative(r, outer, (Elem[]){{GE_rule, once}, {GE_rule, rule}}, 2);
    add_alternative(r, outer, NULL, 0);
    rule = outer;
  }
  return rule;
}

/* Applies * + ? {m,n} to the elements from `first` on. */
static void read_repeat(GbnfReader *r, Elems *to, u32 first) {
  u32 lo = 0, hi = UINT32_MAX;
  if (first == to->n) bad(r, "expected something before a repetition");
  u8 op = *r->at++;
  if (op == '+') lo = 1;
  if (op == '?') hi = 1;
  if (op == '{') {
    skip(r, false);
    hi = lo = read_number(r);
    skip(r, false);
    if (r->at < r->end && *r->at == ',') {
      r->at++;
      skip(r, false);
      hi = r->at < r->end && *r->at == '}' ? UINT32_MAX : read_number(r);
      skip(r, false);
    }
    if (r->at >= r->end || *r->at != '}') bad(r, "expected }");
    if (hi < lo) bad(r, "expected {least,most}");
    r->at++;
  }
  u32 once = new_rule(r->g, r->line);
  add_alternative(r, once, to->at + first, to->n - first);
  to->n = first;
  for (u32 i = 0; i < lo; i++) put(r, to, GE_rule, once);
  if (hi > lo) put(r, to, GE_rule, optional_rule(r, once, hi == UINT32_MAX ? hi : hi - lo));
}

static void read_alternatives(GbnfReader *r, u32 rule, u32 depth);

/* One symbol of a sequence; false: the sequence ends. */
static bool read_symbol(GbnfReader *r, Elems *to, u32 depth) {
  u8 b = r->at < r->end ? *r->at : 0;
  if (b == '"') {
    r->at++;
    while (r->at < r->end && *r->at != '"') {
      u8 utf8[4];
      u32 n = utf8_put(utf8, read_char(r));
      for (u32 i = 0; i < n; i++) put(r, to, GE_set, new_set(r, utf8[i], utf8[i]));
    }
    if (r->at >= r->end) bad(r, "expected \"");
    r->at++;
  } else if (b == '[') {
    r->at++;
    read_class(r, to);
  } else if (b == '.') {
    r->at++;
    put_class(r, to, NULL, 0, true);
  } else if (b == '(') {
    if (depth == MAX_DEPTH) bad(r, "expected fewer nested groups");
    r->at++;
    u32 rule = new_rule(r->g, r->line);
    read_alternatives(r, rule, depth + 1);
    if (r->at >= r->end || *r->at != ')') bad(r, "expected )");
    r->at++;
    put(r, to, GE_rule, rule);
  } else if (is_name(b)) {
    put(r, to, GE_rule, named_rule(r));
  } else {
    return false;
  }
  return true;
}

/* depth 0: a line break ends the rule. */
static void read_alternatives(GbnfReader *r, u32 rule, u32 depth) {
  for (;; r->at++) {
    Elems e = {0};
    skip(r, true);
    for (u32 first = e.n; read_symbol(r, &e, depth); first = e.n) {
      skip(r, depth > 0);
      while (r->at < r->end && memchr("*+?{", *r->at, 4)) {
        read_repeat(r, &e, first);
        skip(r, depth > 0);
      }
    }
    add_alternative(r, rule, e.at, e.n);
    if (depth == 0) {
      const u8 *here = r->at;
      u32 line = r->line;
      skip(r, true);
      if (r->at >= r->end || *r->at != '|') {
        r->at = here;
        r->line = line;
      }
    }
    if (r->at >= r->end || *r->at != '|') return;
  }
}

static void read_rules(GbnfReader *r) {
  for (skip(r, true); r->at < r->end; skip(r, true)) {
    u32 rule = named_rule(r);
    if (r->g->rule.at[rule].defined) bad(r, "expected a rule that is not defined yet");
    skip(r, false);
    if (r->end - r->at < 3 || memcmp(r->at, "::=", 3)) bad(r, "expected ::=");
    r->at += 3;
    read_alternatives(r, rule, 0);
    if (r->at < r->end && *r->at != '\n') bad(r, "expected the end of the rule");
  }
}

/* ---- left recursion ---- */

/* Which rules may be empty? An alternative counts its elements that are not known to be empty; a
 * worklist has the rules that became empty. */
static bool *find_empty(Grammar *g) {
  typedef struct Use {
    u32 alt, next;   /* first element of its alternative; 1 + next element that calls the rule */
    u32 rule, count; /* at a first element: the rule of the alternative, the count */
  } Use;
  bool *empty = NEWS(&g->c->keep, bool, g->rule.n);
  Use *use = NEWS(&g->c->keep, Use, g->elem.n);
  u32 *calls = NEWS(&g->c->keep, u32, g->rule.n), *work = NEWS(&g->c->keep, u32, g->rule.n), n = 0;
  for (u32 i = 0; i < g->rule.n; i++)
    for (u32 k = 0; k < g->rule.at[i].alt.n; k++) {
      u32 first = g->rule.at[i].alt.at[k];
      use[first].rule = i;
      for (u32 e = first; g->elem.at[e].kind != GE_end; e++) {
        use[e].alt = first;
        use[first].count++;
        if (g->elem.at[e].kind != GE_rule) continue;
        use[e].next = calls[g->elem.at[e].arg];
        calls[g->elem.at[e].arg] = e + 1;
      }
      if (use[first].count || empty[i]) continue;
      empty[i] = true;
      work[n++] = i;
    }
  while (n)
    for (u32 e = calls[work[--n]]; e; e = use[e - 1].next) {
      Use *alt = &use[use[e - 1].alt];
      if (--alt->count || empty[alt->rule]) continue;
      empty[alt->rule] = true;
      work[n++] = alt->rule;
    }
  return empty;
}

/* Depth-first search with an explicit stack over calls that may come first in a rule. */
static void refuse_left_recursion(Grammar *g) {
  const bool *empty = find_empty(g);
  typedef struct Visit {
    u32 rule, alt, at;
  } Visit;
  Visit *stack = NEWS(&g->c->keep, Visit, g->rule.n + 1);
  u8 *color = NEWS(&g->c->keep, u8, g->rule.n); /* 1: on the stack, 2: done */
  for (u32 first = 0; first < g->rule.n; first++) {
    u32 n = 0;
    if (color[first]) continue;
    stack[n++] = (Visit){first, 0, 0};
    color[first] = 1;
    while (n) {
      Visit *v = &stack[n - 1];
      const Rule *rule = &g->rule.at[v->rule];
      if (v->alt == rule->alt.n) {
        color[v->rule] = 2;
        n--;
        continue;
      }
      const Elem *e = &g->elem.at[rule->alt.at[v->alt] + v->at];
      if (e->kind != GE_rule) {
        v->alt++;
        v->at = 0;
        continue;
      }
      u32 to = e->arg;
      if (empty[to]) {
        v->at++;
      } else {
        v->alt++;
        v->at = 0;
      }
      if (color[to] == 1)
        fail(g->c, ERR_input, LOC_NONE,
             "grammar, line %u: a rule calls itself before any character (left recursion)",
             g->rule.at[to].line);
      if (color[to]) continue;
      color[to] = 1;
      stack[n++] = (Visit){to, 0, 0};
    }
  }
}

/* ---- states ---- */

static u32 node_of(Grammar *g, u32 at, u32 below) {
  u32 *slot = map_put(&g->nodes, (u64)at << 32 | below);
  if (*slot) return *slot;
  if (g->node.n == MAX_NODES)
    fail(g->c, ERR_unsupported, LOC_NONE, "the grammar needs more than %d stacks", MAX_NODES);
  u32 n = *slot = g->node.n;
  *vec_push(&g->c->keep, &g->node) = (StackNode){at, below};
  *vec_push(&g->c->keep, &g->seen) = 0;
  return n;
}

static void spend(Grammar *g, u32 n) {
  g->spent += n;
  if (g->spent > MAX_WORK)
    fail(g->c, ERR_unsupported, LOC_NONE, "the grammar needs more than %d steps", MAX_WORK);
}

static void visit(Grammar *g, u32 node) {
  if (g->seen.at[node] == g->epoch) return;
  g->seen.at[node] = g->epoch;
  *vec_push(&g->c->keep, &g->work) = node;
}

/* Adds the stacks that `work` leads to without reading a byte to `found`. */
static void expand(Grammar *g) {
  while (g->work.n) {
    u32 id = g->work.at[--g->work.n];
    spend(g, 1);
    StackNode x = g->node.at[id];
    Elem e = id ? g->elem.at[x.at] : (Elem){GE_set, 0};
    if (e.kind == GE_set) {
      *vec_push(&g->c->keep, &g->found) = id;
    } else if (e.kind == GE_end) {
      visit(g, x.below);
    } else {
      bool last = g->elem.at[x.at + 1].kind == GE_end;
      u32 below = last ? x.below : node_of(g, x.at + 1, x.below);
      spend(g, g->rule.at[e.arg].alt.n);
      for (u32 i = 0; i < g->rule.at[e.arg].alt.n; i++)
        visit(g, node_of(g, g->rule.at[e.arg].alt.at[i], below));
    }
  }
}

static int by_number(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return (x > y) - (x < y);
}

/* The state of the stacks in `found`. */
static u32 state_of(Grammar *g) {
  Ctx *c = g->c;
  if (!g->found.n) return 0;
  qsort(g->found.at, g->found.n, sizeof *g->found.at, by_number);
  u32 *slot = map_put_bytes(&g->states, g->found.at, g->found.n * sizeof *g->found.at);
  if (*slot) return *slot;
  if (g->state.n == MAX_STATES || g->found.n > MAX_STACKS)
    fail(c, ERR_unsupported, LOC_NONE, "the grammar needs more than %d states, or %d stacks in one",
         MAX_STATES, MAX_STACKS);
  *slot = g->state.n;
  *vec_push(&c->keep, &g->state) = (State){.first = g->member.n, .n = g->found.n};
  for (u32 i = 0; i < g->found.n; i++) *vec_push(&c->keep, &g->member) = g->found.at[i];
  return g->state.n - 1;
}

static u32 step(Grammar *g, u32 state, u8 byte) {
  State *s = &g->state.at[state];
  if (!s->next) {
    s->next = NEWS(&g->c->keep, i32, 256);
    for (u32 i = 0; i < 256; i++) s->next[i] = UNKNOWN;
  }
  if (s->next[byte] != UNKNOWN) return (u32)s->next[byte];
  u32 first = s->first, n = s->n;
  spend(g, n);
  g->epoch++;
  g->work.n = g->found.n = 0;
  for (u32 i = 0; i < n; i++) {
    u32 id = g->member.at[first + i];
    StackNode x = g->node.at[id];
    if (!id || !(g->set.at[g->elem.at[x.at].arg].bit[byte / 8] >> byte % 8 & 1)) continue;
    visit(g, node_of(g, x.at + 1, x.below));
  }
  expand(g);
  u32 to = state_of(g);
  g->state.at[state].next[byte] = (i32)to;
  return to;
}

Grammar *grammar_read(Ctx *c, const GrammarTokens *t, const char *text, size_t n) {
  Grammar *g = NEW(&c->keep, Grammar);
  GbnfReader r = {g, c, (const u8 *)text, (const u8 *)text + n, 1};
  g->c = c;
  g->t = t;
  g->names = map_new(&c->keep);
  g->nodes = map_new(&c->keep);
  g->states = map_new(&c->keep);
  g->sets = map_new(&c->keep);
  g->alts = map_new(&c->keep);
  read_rules(&r);
  const u32 *root = map_get_bytes(&g->names, "root", 4);
  if (!root) fail(c, ERR_input, LOC_NONE, "grammar: expected a rule named root");
  for (u32 i = 0; i < g->rule.n; i++)
    if (!g->rule.at[i].defined)
      fail(c, ERR_input, LOC_NONE, "grammar, line %u: a rule is used, but not defined",
           g->rule.at[i].line);
  refuse_left_recursion(g);
  *vec_push(&c->keep, &g->node) = (StackNode){0, 0};
  *vec_push(&c->keep, &g->seen) = 0;
  *vec_push(&c->keep, &g->state) = (State){.n = 0};
  g->path = NEWS(&c->keep, u32, t->longest + 1);
  for (u32 i = 0; i < MASKS; i++) g->mask_of[i] = -1;
  g->epoch = 1;
  for (u32 i = 0; i < g->rule.at[*root - 1].alt.n; i++)
    visit(g, node_of(g, g->rule.at[*root - 1].alt.at[i], 0));
  expand(g);
  g->begin = state_of(g);
  return g;
}

u32 grammar_begin(const Grammar *g) {
  return g->begin;
}

static bool may_end(const Grammar *g, u32 state) {
  const State *s = &g->state.at[state];
  return s->n && g->member.at[s->first] == 0;
}

bool grammar_is_final(const Grammar *g, u32 state) {
  return may_end(g, state) && g->state.at[state].n == 1;
}

const u8 *grammar_mask(Grammar *g, u32 state) {
  const GrammarTokens *t = g->t;
  for (u32 i = 0; i < MASKS; i++)
    if (g->mask_of[i] == (i32)state) return g->mask[i];
  u32 k = g->next_mask++ % MASKS, depth = 0;
  if (!g->mask[k]) g->mask[k] = arena_alloc(&g->c->keep, t->ntoken / 8 + 1);
  u8 *mask = g->mask[k];
  g->mask_of[k] = -1; /* until it is complete */
  memset(mask, 0, t->ntoken / 8 + 1);
  g->path[0] = state;
  for (u32 i = 0; i < t->n; i++) {
    u32 n = t->at[i + 1] - t->at[i], from = t->same[i];
    const u8 *at = t->byte + t->at[i];
    if (from > depth) continue; /* the common prefix is refused */
    for (depth = from; depth < n; depth++)
      if (!(g->path[depth + 1] = step(g, g->path[depth], at[depth]))) break;
    if (depth == n) mask[t->id[i] / 8] |= (u8)(1 << t->id[i] % 8);
  }
  for (u32 i = 0; i < t->nstop && may_end(g, state); i++)
    mask[t->stop[i] / 8] |= (u8)(1 << t->stop[i] % 8);
  g->mask_of[k] = (i32)state;
  return mask;
}

bool grammar_allows(Grammar *g, u32 state) {
  const u8 *mask = grammar_mask(g, state);
  for (u32 i = 0; i <= g->t->ntoken / 8; i++)
    if (mask[i]) return true;
  return false;
}

u32 grammar_step(Grammar *g, u32 state, u32 id) {
  const GrammarTokens *t = g->t;
  u32 place = id < t->ntoken ? t->place[id] : 0;
  if (!place) return 0;
  for (u32 i = t->at[place - 1]; i < t->at[place] && state; i++) state = step(g, state, t->byte[i]);
  return state;
}
