/* onnx_ops_string.c: StringConcat, StringSplit, StringNormalizer, RegexFullMatch and Tokenizer.
 *
 * All work on zero-padded rows of bytes, u8[.., k] (onnx_strings.c). Results are described by the
 * source of their bytes; the pieces of a split, for example, by begin and end.
 */
#include "front/onnx/onnx_builder.h"
#include "front/onnx/regex.h"

#include <string.h>

static Val text_in(Build *b, u32 i) {
  Val x = on_in(b, i);
  if (on_dtype(b, x) != DT_str)
    on_bad(b, "input %u has type %s, expected strings", i, dtype_info[on_dtype(b, x)].name);
  return x;
}

static Dim width(Build *b, Val rows) {
  return on_dim(b, rows, on_rank(b, rows) - 1);
}

/* 0, 1, ... k - 1 */
static Val places(Build *b, Dim k) {
  return mk_iota(b->g, DT_i64, &k, 1, 0);
}

static Val zero_byte(Build *b) {
  return mk_scalar(b->g, DT_u8, 0);
}

/* Length of each string in bytes: [..] for [.., k]. */
static Val lengths(Build *b, Val rows) {
  Graph *g = b->g;
  i64 last = on_rank(b, rows) - 1;
  Val there = mk_cast(g, mk_ne(g, rows, zero_byte(b)), DT_i64);
  Val end = mk_mul(g, there, mk_addk(g, places(b, width(b, rows)), 1));
  return mk_reduce(g, OP_reduce_max, end, &last, 1, false);
}

static Val last_axis(Build *b, Val x) {
  return mk_unsqueeze(b->g, x, on_rank(b, x));
}

/* rows[.., from + i] for i below to - from, zero-padded to k bytes. from, to: [..] */
static Val cut(Build *b, Val rows, Val from, Val to, Dim k) {
  Graph *g = b->g;
  Val i = places(b, k), at = mk_add(g, last_axis(b, from), i);
  Val inside = mk_lt(g, at, last_axis(b, to));
  Val most = mk_extent(g, dim_addk(b->ds, width(b, rows), -1), DT_i64);
  Val zero = mk_scalar(g, DT_i64, 0);
  at = mk_max(g, mk_min(g, at, most), zero);
  Val got = mk_gather_elems(g, rows, at, on_rank(b, rows) - 1);
  return mk_select(g, inside, got, zero_byte(b));
}

void build_string_concat(Build *b) {
  Graph *g = b->g;
  Val x = text_in(b, 0), y = text_in(b, 1);
  Dim shape[MAX_RANK];
  const Type *both[2] = {on_type(b, x), on_type(b, y)};
  u32 rank = infer_broadcast(g, both, 2, shape);
  x = on_string_bytes(b, mk_broadcast(g, x, shape, rank));
  y = on_string_bytes(b, mk_broadcast(g, y, shape, rank));
  Dim k = dim_add(b->ds, width(b, x), width(b, y));
  Val n = lengths(b, x), zero = mk_like(g, n, 0);
  Val head = cut(b, x, mk_mulk(g, n, 0), n, k);
  Val end = mk_extent(g, width(b, y), DT_i64);
  Val tail = cut(b, y, mk_sub(g, zero, n), end, k);
  Val ends = last_axis(b, n);
  Val first = mk_lt(g, places(b, k), ends);
  b->out[0] = on_strings(b, mk_select(g, first, head, tail));
}

/* ---- StringSplit ---- */

typedef struct StringSplit {
  Build *b;
  Val rows;   /* [n, k] */
  Val length; /* [n] */
  Dim k;
  Val from, to;     /* begin and end of piece j: [n, pieces] */
  Val count;        /* number of pieces: [n] */
  i64 pieces, most; /* maximum; -1: unlimited */
} StringSplit;

/* shifts rows left by d positions (right if negative), filling with zeros */
static Val shifted_rows(Build *b, Val rows, i64 d) {
  i64 k = width(b, rows), inner[2] = {0};
  Dim lo[2] = {0}, hi[2] = {0};
  if (d >= k || -d >= k) return mk_mulk(b->g, rows, 0);
  Val part = mk_slice_axis(b->g, rows, 1, d > 0 ? d : 0, k - (d > 0 ? d : -d));
  if (d > 0)
    hi[1] = d;
  else
    lo[1] = -d;
  return mk_pad(b->g, part, mk_like(b->g, rows, 0), lo, hi, inner);
}

/* Position of mark j in each row for j below `pieces`, k if there are fewer: the number of
 * positions up to which at most j marks occur. mark: i64[n, k], 0 or 1 */
static Val mark_places(const StringSplit *s, Val mark) {
  Graph *g = s->b->g;
  Val seen = mk_unsqueeze(g, mk_cum(g, OP_cumsum, mark, 1, false, false), 2);
  Val below = mk_cast(g, mk_le(g, seen, places(s->b, s->pieces)), DT_i64);
  return mk_reduce(g, OP_reduce_sum, below, &(i64){1}, 1, false);
}

typedef struct MatchLoop {
  Build *b;
  Val match; /* i64[n, k] */
  i64 length;
} MatchLoop;

/* Drops matches that overlap an earlier one. carried: the first free position. */
static void take_match(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  MatchLoop *t = user;
  (void)cond;
  Val here = mk_ge(g, i, carried[0]);
  Val counted = mk_cast(g, here, DT_i64);
  Val hit = mk_mul(t->b->g, mk_gather(g, t->match, i, 1), counted);
  Val next = mk_addk(t->b->g, i, (double)t->length);
  carried[0] = mk_select(g, mk_ne(g, hit, mk_like(g, hit, 0)), next, carried[0]);
  scan[0] = hit;
}

/* Occurrences of the delimiter: i64[n, k], 0 or 1. */
static Val find_delimiter(const StringSplit *s, const char *text, i64 d) {
  Build *b = s->b;
  Graph *g = b->g;
  Val all = 0;
  for (i64 i = 0; i < d; i++) {
    Val letter = mk_scalar(g, DT_u8, (u8)text[i]);
    Val hit = mk_eq(g, shifted_rows(b, s->rows, i), letter);
    all = all ? mk_and(g, all, hit) : hit;
  }
  all = mk_cast(g, all, DT_i64);
  if (d == 1) return all;
  MatchLoop t = {b, all, d};
  Val free = mk_mulk(g, s->length, 0), taken;
  mk_loop(g, mk_extent(g, s->k, DT_i64), 0, &free, 1, &taken, 1, take_match, &t);
  return mk_transpose(g, taken, (const i64[]){1, 0});
}

static void split_at(StringSplit *s, const char *text, i64 d) {
  Build *b = s->b;
  Graph *g = b->g;
  s->pieces = s->k / d + 1;
  Val mark = find_delimiter(s, text, d);
  if (s->most >= 0 && s->most < s->pieces) {
    Val seen = mk_cum(g, OP_cumsum, mark, 1, false, false);
    Val early = mk_le(g, seen, mk_scalar(g, DT_i64, (double)s->most));
    mark = mk_mul(g, mark, mk_cast(g, early, DT_i64));
    s->pieces = s->most + 1;
  }
  Val at = mark_places(s, mark); /* [n, pieces] */
  s->to = mk_min(g, at, last_axis(b, s->length));
  s->from = shifted_rows(b, mk_addk(g, at, (double)d), -1); /* the first begins at 0 */
  s->count = mk_addk(g, mk_reduce(g, OP_reduce_sum, mark, &(i64){1}, 1, false), 1);
}

/* Begins (d = -1) or ends (d = 1) of runs of ones; word: i64[n, k], 0 or 1 */
static Val run_edge(Build *b, Val word, i64 d) {
  Val neighbor = shifted_rows(b, word, d);
  return mk_mul(b->g, word, mk_sub(b->g, mk_like(b->g, word, 1), neighbor));
}

/* Splits at runs of whitespace, without empty pieces at the ends. */
static void split_blanks(StringSplit *s) {
  Build *b = s->b;
  Graph *g = b->g;
  static const char blank[] = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  Val word = mk_ne(g, s->rows, zero_byte(b));
  for (u32 i = 0; blank[i]; i++)
    word = mk_and(g, word, mk_ne(g, s->rows, mk_scalar(g, DT_u8, (u8)blank[i])));
  word = mk_cast(g, word, DT_i64);
  Val start = run_edge(b, word, -1), end = run_edge(b, word, 1);
  s->pieces = s->k / 2 + 1;
  s->count = mk_reduce(g, OP_reduce_sum, start, &(i64){1}, 1, false);
  bool cut_off = s->most >= 0 && s->most < s->pieces;
  if (cut_off) s->pieces = s->most + 1;
  s->from = mark_places(s, start);
  s->to = mk_addk(g, mark_places(s, end), 1);
  if (!cut_off) return;
  Val most = mk_scalar(g, DT_i64, (double)s->most);
  Val last = mk_eq(g, places(b, s->pieces), most);
  s->to =
      mk_select(g, last, last_axis(b, s->length), s->to); /* the last piece is the unsplit rest */
  s->count = mk_min(g, s->count, mk_like(g, s->count, (double)s->pieces));
}

/* The pieces as strings [n, m], m the maximum per row; `rest` (u8[k]) fills missing pieces. */
static Val pieces_of(const StringSplit *s, Dim n, Val rest) {
  Build *b = s->b;
  Graph *g = b->g;
  Val j = places(b, s->pieces);
  Val there = mk_lt(g, j, last_axis(b, s->count));
  Val to = mk_select(g, there, s->to, mk_like(g, s->to, 0));
  Dim wide[3] = {n, s->pieces, s->k};
  Val rows = mk_broadcast(g, mk_unsqueeze(g, s->rows, 1), wide, 3);
  Val piece = cut(b, rows, s->from, to, s->k);
  Val all = mk_select(g, last_axis(b, there), piece, rest);
  Val most = mk_reduce(g, OP_reduce_max, s->count, &(i64){0}, 1, false);
  Val used = mk_squeeze(g, mk_nonzero(g, mk_lt(g, j, most)), 0);
  return on_strings(b, mk_gather(g, all, used, 1));
}

void build_string_split(Build *b) {
  Graph *g = b->g;
  Val x = text_in(b, 0);
  Type t = *on_type(b, x);
  Dim n = type_count(b->ds, &t), out[MAX_RANK];
  if (t.rank == MAX_RANK)
    on_unsupported(b, "the operand has rank %u, expected less than %d", t.rank, MAX_RANK);
  StringSplit s = {.b = b, .most = on_int(b, "maxsplit", -1)};
  s.rows = on_string_bytes(b, mk_reshape(g, x, &n, 1));
  s.length = lengths(b, s.rows);
  s.k = width(b, s.rows);
  Str delimiter = on_str(b, "delimiter", "");
  if (str_len(b->c, delimiter))
    split_at(&s, str_text(b->c, delimiter), (i64)str_len(b->c, delimiter));
  else
    split_blanks(&s);
  Val y = pieces_of(&s, n, zero_byte(b));
  if (t.rank) memcpy(out, t.dim, t.rank * sizeof *out);
  out[t.rank] = on_dim(b, y, 1);
  b->out[0] = mk_reshape(g, y, out, t.rank + 1);
  if (b->nout > 1) b->out[1] = mk_reshape(g, s.count, out, t.rank);
}

/* ---- StringNormalizer ---- */

/* Letters U+0080 to U+07FF with two bytes in both cases. step 1: first to last shift by `by`; step
 * 2: pairs of neighbors, upper case first. */
static const struct {
  u16 first, last;
  i16 by;
  u8 step;
} letters[] = {
    {0x00c0, 0x00d6, 32, 1},   {0x00d8, 0x00de, 32, 1}, {0x0100, 0x012f, 1, 2},
    {0x0132, 0x0137, 1, 2},    {0x0139, 0x0148, 1, 2},  {0x014a, 0x0177, 1, 2},
    {0x0178, 0x0178, -121, 1}, {0x0179, 0x017e, 1, 2},  {0x01cd, 0x01dc, 1, 2},
    {0x01de, 0x01ef, 1, 2},    {0x01f8, 0x021f, 1, 2},  {0x0222, 0x0233, 1, 2},
    {0x0246, 0x024f, 1, 2},    {0x0370, 0x0373, 1, 2},  {0x0376, 0x0377, 1, 2},
    {0x0386, 0x0386, 38, 1},   {0x0388, 0x038a, 37, 1}, {0x038c, 0x038c, 64, 1},
    {0x038e, 0x038f, 63, 1},   {0x0391, 0x03a1, 32, 1}, {0x03a3, 0x03ab, 32, 1},
    {0x03d8, 0x03ef, 1, 2},    {0x0400, 0x040f, 80, 1}, {0x0410, 0x042f, 32, 1},
    {0x0460, 0x0481, 1, 2},    {0x048a, 0x04bf, 1, 2},  {0x04c1, 0x04ce, 1, 2},
    {0x04d0, 0x052f, 1, 2},    {0x0531, 0x0556, 48, 1},
};

/* The other case of every two-byte letter, as code points; others are unchanged. */
static Val letter_table(Build *b, bool upper) {
  enum { END = 0x800 };
  Tensor *t = tensor_new(&b->c->work, DT_i64, (const i64[]){END}, 1);
  for (i64 i = 0; i < END; i++) tensor_set(t, (u64)i, (Scalar){.i = i});
  for (u32 r = 0; r < sizeof letters / sizeof *letters; r++)
    for (i64 c = letters[r].first; c <= letters[r].last; c += letters[r].step) {
      i64 small = c + letters[r].by;
      tensor_set(t, (u64)(upper ? small : c), (Scalar){.i = upper ? c : small});
    }
  if (upper) tensor_set(t, 0x00b5, (Scalar){.i = 0x039c}); /* micro sign */
  if (upper) tensor_set(t, 0x03c2, (Scalar){.i = 0x03a3}); /* final sigma */
  return mk_const(b->g, t);
}

static Val in_range(Build *b, Val x, i64 lo, i64 hi) {
  Graph *g = b->g;
  Val below = mk_le(g, x, mk_like(g, x, (double)hi));
  return mk_and(g, mk_ge(g, x, mk_like(g, x, (double)lo)), below);
}

/* rows: u8[n, k] */
static Val change_case(Build *b, Val rows, bool upper) {
  Graph *g = b->g;
  Val x = mk_cast(g, rows, DT_i64);
  Val plain = in_range(b, x, upper ? 'a' : 'A', upper ? 'z' : 'Z');
  Val y = mk_select(g, plain, mk_addk(g, x, upper ? -32 : 32), x);
  Val lead = in_range(b, x, 0xc2, 0xdf), none = mk_like(g, x, 0);
  Val second = mk_addk(g, shifted_rows(b, x, 1), -0x80);
  Val code = mk_add(g, mk_mulk(g, mk_addk(g, x, -0xc0), 64), second);
  Val at = mk_select(g, lead, code, none);
  code = mk_gather(g, letter_table(b, upper), at, 0);
  Val high = mk_shr(g, code, mk_like(g, code, 6)), low = mk_and(g, code, mk_like(g, code, 63));
  y = mk_select(g, lead, mk_addk(g, high, 0xc0), y);
  Val trail = shifted_rows(b, mk_cast(g, lead, DT_i64), -1);
  trail = mk_ne(g, trail, mk_like(g, trail, 0));
  y = mk_select(g, trail, mk_addk(g, shifted_rows(b, low, -1), 0x80), y);
  return mk_cast(g, y, DT_u8);
}

static Val case_folded(Build *b, Val text) {
  return on_strings(b, change_case(b, on_string_bytes(b, text), false));
}

/* Tests which of x [n] are stop words. */
static Val is_stop_word(Build *b, Val x, const OnnxAttr *words) {
  Graph *g = b->g;
  Val list = mk_const(g, on_table(b, words));
  if (!on_int(b, "is_case_sensitive", 0)) {
    x = case_folded(b, x);
    list = case_folded(b, list);
  }
  Val same = mk_eq(g, mk_unsqueeze(g, x, 1), list);
  return mk_reduce(g, OP_reduce_max, same, &(i64){1}, 1, false);
}

void build_string_normalizer(Build *b) {
  Graph *g = b->g;
  Val x = text_in(b, 0);
  u32 rank = on_rank(b, x);
  if (rank < 1 || rank > 2 || (rank == 2 && on_dim(b, x, 0) != 1))
    on_bad(b, "the operand has another shape, expected [C] or [1, C]");
  if (rank == 2) x = mk_squeeze(g, x, 0);
  const OnnxAttr *words = on_typed(b, "stopwords", OA_strings);
  if (words && words->strings.n) {
    /* one empty string if nothing is left */
    i64 one = 1;
    Val part[2] = {x, mk_const(g, tensor_new(&b->c->work, DT_str, &one, 1))};
    Val stop = is_stop_word(b, x, words);
    Val left = mk_reduce(g, OP_reduce_min, stop, &(i64){0}, 1, true);
    Val keep[2] = {mk_not(g, stop), left};
    Val at = mk_squeeze(g, mk_nonzero(g, mk_concat(g, keep, 2, 0)), 0);
    x = mk_gather(g, mk_concat(g, part, 2, 0), at, 0);
  }
  u32 action = on_choice(b, "case_change_action", "NONE UPPER LOWER");
  if (action) x = on_strings(b, change_case(b, on_string_bytes(b, x), action == 1));
  b->out[0] = rank == 2 ? mk_unsqueeze(g, x, 0) : x;
}

/* ---- RegexFullMatch ---- */

typedef struct Match {
  Build *b;
  Val rows; /* u8[n, k] */
  Val kind, next, accept;
  u32 kinds;
} Match;

static Match match_new(Build *b, Val rows, const Regex *r) {
  Graph *g = b->g;
  Arena *a = &b->c->work;
  i64 size = (i64)r->states * r->kinds, states = r->states, bytes = 256;
  return (Match){.b = b,
                 .rows = rows,
                 .kind = mk_const(g, tensor_wrap(a, DT_u8, &bytes, 1, r->kind)),
                 .next = mk_const(g, tensor_wrap(a, DT_u16, &size, 1, r->next)),
                 .accept = mk_const(g, tensor_wrap(a, DT_bool, &states, 1, r->accept)),
                 .kinds = r->kinds};
}

/* The state after a byte (i64). */
static Val match_step(const Match *m, Val state, Val byte) {
  Graph *g = m->b->g;
  Val kind = mk_cast(g, mk_gather(g, m->kind, byte, 0), DT_i64);
  Val at = mk_add(m->b->g, mk_mulk(m->b->g, state, m->kinds), kind);
  return mk_cast(g, mk_gather(g, m->next, at, 0), DT_i64);
}

/* carried: the state of each string */
static void match_byte(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Match *m = user;
  (void)cond, (void)scan;
  Val byte = mk_cast(g, mk_gather(g, m->rows, i, 1), DT_i64);
  Val end = mk_eq(g, byte, mk_like(g, byte, 0));
  carried[0] = mk_select(g, end, carried[0], match_step(m, carried[0], byte));
}

void build_regex_full_match(Build *b) {
  Graph *g = b->g;
  Val x = text_in(b, 0);
  Type t = *on_type(b, x);
  Dim n = type_count(b->ds, &t);
  if (!on_has_attr(b, "pattern")) on_bad(b, "attribute pattern is missing");
  Regex r = regex_compile(b->c, on_str(b, "pattern", ""), g->loc);
  Val rows = on_string_bytes(b, mk_reshape(g, x, &n, 1));
  Match m = match_new(b, rows, &r);
  Val state = mk_full(g, mk_scalar(g, DT_i64, 0), &n, 1), none;
  mk_loop(g, mk_extent(g, width(b, rows), DT_i64), 0, &state, 1, &none, 0, match_byte, &m);
  b->out[0] = mk_reshape(g, mk_gather(g, m.accept, state, 0), t.dim, t.rank);
}

/* ---- Tokenizer ---- */

/* Length in bytes of the character of the set that begins here, or 0: i64[n, k]. */
static Val char_lengths(const Match *m) {
  Build *b = m->b;
  Graph *g = b->g;
  Val state = mk_mulk(g, mk_cast(g, m->rows, DT_i64), 0), length = state;
  Val none = mk_like(g, length, 0);
  for (i64 i = 0; i < 4; i++) {
    state = match_step(m, state, mk_cast(g, shifted_rows(b, m->rows, i), DT_i64));
    Val empty = mk_eq(g, length, none);
    Val first = mk_and(g, mk_gather(g, m->accept, state, 0), empty);
    length = mk_select(g, first, mk_like(g, length, (double)(i + 1)), length);
  }
  return mk_select(g, mk_ne(g, m->rows, zero_byte(b)), length, none);
}

/* Marks the bytes of characters of the set (ends: the last bytes only): i64[n, k], 0 or 1. */
static Val char_bytes(Build *b, Val length, bool ends) {
  Graph *g = b->g;
  Val any = 0;
  for (i64 i = 0; i < 4; i++) {
    Val most = mk_like(g, length, (double)(ends ? i + 1 : i));
    Val hit = mk_map2(g, ends ? OP_eq : OP_gt, shifted_rows(b, length, -i), most);
    any = any ? mk_or(g, any, hit) : hit;
  }
  return mk_cast(g, any, DT_i64);
}

static Str token_pattern(Build *b) {
  const OnnxAttr *list = on_typed(b, "separators", OA_strings);
  if (on_int(b, "mark", 0)) on_unsupported(b, "attribute mark is not 0");
  if (on_int(b, "mincharnum", 1) > 1)
    on_unsupported(b, "attribute mincharnum is %lld, expected 1",
                   (long long)on_int(b, "mincharnum", 1));
  if (!list == !on_has_attr(b, "tokenexp"))
    on_bad(b, "expected exactly one of the attributes separators and tokenexp");
  /* matches every character: an empty separator, or a lone dot (which includes line ends) */
  Str every = str_of(b->c, "(?s:.)"), dot = str_of(b->c, "."), exp = on_str(b, "tokenexp", "");
  if (!list) return exp == dot ? every : exp;
  if (list->strings.n != 1 || str_len(b->c, list->strings.at[0]))
    on_unsupported(b, "attribute separators: expected a single empty string, or tokenexp instead");
  return every;
}

void build_tokenizer(Build *b) {
  Graph *g = b->g;
  Val x = text_in(b, 0);
  Type t = *on_type(b, x);
  Dim n = type_count(b->ds, &t), out[MAX_RANK];
  bool runs;
  if (t.rank < 1 || t.rank > 2) on_bad(b, "the operand has rank %u, expected 1 or 2", t.rank);
  Regex r = regex_compile_set(b->c, token_pattern(b), g->loc, &runs);
  Str pad = on_str(b, "pad_value", "");
  i64 long_pad = (i64)str_len(b->c, pad);
  StringSplit s = {.b = b, .rows = on_string_bytes(b, mk_reshape(g, x, &n, 1))};
  if (width(b, s.rows) < long_pad)
    s.rows = mk_pad(g, s.rows, zero_byte(b), (const Dim[]){0, 0},
                    (const Dim[]){0, long_pad - width(b, s.rows)}, (const i64[]){0, 0});
  s.k = width(b, s.rows);
  Match m = match_new(b, s.rows, &r);
  Val length = char_lengths(&m), bytes = char_bytes(b, length, false);
  Val start =
      runs ? run_edge(b, bytes, -1) : mk_cast(g, mk_gt(g, length, mk_like(g, length, 0)), DT_i64);
  Val end = runs ? run_edge(b, bytes, 1) : char_bytes(b, length, true);
  s.pieces = runs ? s.k / 2 + 1 : s.k;
  s.count = mk_reduce(g, OP_reduce_sum, start, &(i64){1}, 1, false);
  s.from = mark_places(&s, start);
  s.to = mk_addk(g, mark_places(&s, end), 1);
  u8 *rest = NEWS(&b->c->work, u8, s.k + 1);
  memcpy(rest, str_text(b->c, pad), (size_t)long_pad);
  Val y = pieces_of(&s, n, mk_const(g, tensor_wrap(&b->c->work, DT_u8, &s.k, 1, rest)));
  memcpy(out, t.dim, t.rank * sizeof *out);
  out[t.rank] = on_dim(b, y, 1);
  b->out[0] = mk_reshape(g, y, out, t.rank + 1);
}
