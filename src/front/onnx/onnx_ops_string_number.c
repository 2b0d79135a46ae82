/* onnx_ops_string_number.c: conversion between numbers and strings, for Cast.
 *
 * In: numbers, or strings. Out: rows of bytes with decimal digits, or numbers parsed like strtoll
 * and strtod: leading blanks, a sign, the longest numeric prefix. A string without one ends the
 * run. Integers must fit in 64 bits. Floats: 19 digits and a power of ten in f64, correctly rounded
 * up to 15 digits and 10^22, else within 2 ulp. Hexadecimal floats are refused. Floats are written
 * with 8 significant digits computed in f64; the last digit is rounded wrongly for at most about
 * one number in 10^8.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POWERS = 20, TENS = 309 };

static Val lit(Build *b, DType dt, double x) {
  return mk_scalar(b->g, dt, x);
}

static Val both(Build *b, Val x, Val y) {
  return mk_and(b->g, x, y);
}

static Val last_axis(Build *b, Val x) {
  return mk_unsqueeze(b->g, x, on_rank(b, x));
}

/* ---- integers as strings ---- */

/* 1, 10, 100 ... 10^19 */
static Val powers(Build *b) {
  i64 n = POWERS;
  Tensor *t = tensor_new(&b->c->work, DT_u64, &n, 1);
  u64 x = 1;
  for (i64 i = 0; i < n; i++, x *= 10) tensor_set(t, (u64)i, (Scalar){.i = (i64)x});
  return mk_const(b->g, t);
}

/* Characters of the longest number of a type, with sign. */
static Dim room_for(DType dt) {
  u32 bits = dtype_info[dt].bits;
  if (bits >= 64) return POWERS;
  u64 most = dtype_is_signed(dt) ? (u64)1 << (bits - 1) : ((u64)1 << bits) - 1;
  Dim n = dtype_is_signed(dt) ? 2 : 1;
  for (; most >= 10; most /= 10) n++;
  return n;
}

/* x times 10^n, n in -308..308. */
static Val shifted(Build *b, Val x, Val n) {
  Graph *g = b->g;
  i64 count = TENS;
  Tensor *t = tensor_new(&b->c->work, DT_f64, &count, 1);
  for (i64 i = 0; i < count; i++) {
    char text[16];
    snprintf(text, sizeof text, "1e%d", (int)i);
    tensor_set(t, (u64)i, (Scalar){.f = strtod(text, NULL)});
  }
  Val size = mk_abs(g, n);
  Val ten = mk_gather(g, mk_const(g, t), size, 0);
  Val up = mk_ge(g, n, lit(b, DT_i64, 0));
  Val down = mk_div(g, x, ten);
  return mk_select(g, up, mk_mul(g, x, ten), down);
}

/* ---- floats as strings ---- */

enum { DIGITS = 8, FLOAT_ROOM = 15 }; /* the longest: -1.2345678e-308 */

/* A zero-padded row of the bytes of a word. */
static Val word(Build *b, const char *text) {
  i64 n = FLOAT_ROOM;
  Tensor *t = tensor_new(&b->c->work, DT_u8, &n, 1);
  for (u64 i = 0; text[i]; i++) tensor_set(t, i, (Scalar){.i = text[i]});
  return mk_const(b->g, t);
}

/* Digit k of m, which has n digits, counted from the first; 0 outside. */
static Val digit_of(Build *b, Val m, Val n, Val k) {
  Graph *g = b->g;
  Val place = mk_sub(g, mk_addk(g, n, -1), k), ten = lit(b, DT_i64, 10);
  Val pow = powers(b);
  Val by = mk_cast(g, mk_gather(g, pow, mk_clamp(g, place, 0, POWERS - 2), 0), DT_i64);
  return mk_mod(g, mk_div(g, m, by), ten);
}

/* Writes a > 0 as DIGITS digits m times a power of ten; *e is the exponent of the first digit. Uses
 * two powers, because that of the smallest double exceeds the range. */
static Val decimal(Build *b, Val a, Val *e) {
  Graph *g = b->g;
  Val s = 0;
  *e = mk_cast(g, mk_floor(g, mk_mulk(g, mk_log(g, a), 0.43429448190325182765)), DT_i64);
  for (u32 k = 0; k < 2; k++) { /* the logarithm may be off by one */
    Val p = mk_sub(g, lit(b, DT_i64, DIGITS - 1), *e), first = mk_clamp(g, p, -308, 22);
    first = mk_max(g, first, mk_addk(g, p, -308));
    s = shifted(b, a, first);
    s = shifted(b, s, mk_sub(g, p, first));
    Val up = mk_cast(g, mk_ge(g, s, lit(b, DT_f64, 1e8)), DT_i64);
    Val down = mk_cast(g, mk_lt(g, s, lit(b, DT_f64, 1e7)), DT_i64);
    if (!k) *e = mk_sub(g, mk_add(g, *e, up), down);
  }
  s = mk_round(g, s);
  Val carry = mk_ge(g, s, lit(b, DT_f64, 1e8));
  *e = mk_add(g, *e, mk_cast(g, carry, DT_i64));
  return mk_cast(g, mk_select(g, carry, lit(b, DT_f64, 1e7), s), DT_i64);
}

/* Formats like printf %.8g, with NaN, INF, -INF as in ONNX Runtime. */
static Val float_text(Build *b, Val x) {
  Graph *g = b->g;
  Dim room = FLOAT_ROOM, tens = DIGITS - 1;
  x = last_axis(b, mk_cast(g, x, DT_f64));
  Val zero = lit(b, DT_i64, 0), one = lit(b, DT_i64, 1), none = lit(b, DT_f64, 0), e;
  Val nan = mk_isnan(g, x), inf = mk_isinf(g, x), nil = mk_eq(g, x, none);
  Val minus = mk_lt(g, mk_select(g, nil, mk_recip(g, x), x), none);
  Val odd = mk_or(g, nil, mk_or(g, nan, inf));
  Val magnitude = mk_abs(g, x);
  Val m = decimal(b, mk_select(g, odd, lit(b, DT_f64, 1), magnitude), &e);
  m = mk_select(g, nil, zero, m);
  /* significant digits without trailing zeros */
  Val pow = powers(b), from_ten = mk_addk(g, mk_iota(g, DT_i64, &tens, 1, 0), 1);
  Val cut = mk_cast(g, mk_gather(g, pow, from_ten, 0), DT_i64);
  i64 last = on_rank(b, m) - 1;
  Val ends = mk_cast(g, mk_ne(g, mk_mod(g, m, cut), zero), DT_i64);
  Val n = mk_addk(g, mk_reduce(g, OP_reduce_sum, ends, &last, 1, true), 1);
  /* characters of the mantissa with leading zeros, and the position of its point */
  Val fixed = mk_ge(g, e, lit(b, DT_i64, -4));
  fixed = both(b, fixed, mk_lt(g, e, lit(b, DT_i64, DIGITS)));
  Val front = mk_select(g, fixed, mk_max(g, mk_neg(g, e), zero), zero);
  Val dot = mk_select(g, fixed, mk_max(g, mk_addk(g, e, 1), one), one);
  Val len = mk_add(g, n, front);
  len = mk_select(g, fixed, mk_max(g, len, dot), len);
  Val point = mk_gt(g, len, dot);
  len = mk_add(g, len, mk_cast(g, point, DT_i64));
  Val i = mk_iota(g, DT_i64, &room, 1, 0), p = mk_sub(g, i, mk_cast(g, minus, DT_i64));
  Val k = mk_sub(g, mk_sub(g, p, mk_cast(g, mk_gt(g, p, dot), DT_i64)), front);
  Val byte = mk_addk(g, digit_of(b, m, lit(b, DT_i64, DIGITS), k), '0');
  Val before = mk_lt(g, k, zero), at_point = both(b, point, mk_eq(g, p, dot));
  byte = mk_select(g, before, lit(b, DT_i64, '0'), byte);
  byte = mk_select(g, at_point, lit(b, DT_i64, '.'), byte);
  /* the exponent has at least two digits */
  Val q = mk_sub(g, p, len), size = mk_abs(g, e), sign = mk_lt(g, e, zero);
  Val ne = mk_addk(g, mk_cast(g, mk_ge(g, size, lit(b, DT_i64, 100)), DT_i64), 2);
  Val tail = mk_addk(g, digit_of(b, size, ne, mk_addk(g, q, -2)), '0');
  Val plus = lit(b, DT_i64, '+'), begins = mk_eq(g, q, zero);
  sign = mk_select(g, sign, lit(b, DT_i64, '-'), plus);
  tail = mk_select(g, mk_eq(g, q, one), sign, tail);
  tail = mk_select(g, begins, lit(b, DT_i64, 'e'), tail);
  Val past = mk_select(g, fixed, zero, mk_addk(g, ne, 2));
  tail = mk_select(g, mk_lt(g, q, past), tail, zero);
  byte = mk_cast(g, mk_select(g, mk_lt(g, q, zero), byte, tail), DT_u8);
  Val leads = mk_lt(g, p, zero), infinity = word(b, "INF");
  byte = mk_select(g, leads, lit(b, DT_u8, '-'), byte);
  infinity = mk_select(g, minus, word(b, "-INF"), infinity);
  byte = mk_select(g, inf, infinity, byte);
  return on_strings(b, mk_select(g, nan, word(b, "NaN"), byte));
}

Val number_to_string(Build *b, Val x) {
  Graph *g = b->g;
  DType dt = on_dtype(b, x);
  if (dt == DT_bool) x = mk_cast(g, x, dt = DT_u8);
  if (dtype_is_float(dt)) return float_text(b, x);
  Dim room = room_for(dt);
  Val pow = powers(b), i = mk_iota(g, DT_i64, &room, 1, 0), zero = lit(b, DT_i64, 0);
  Val minus = last_axis(b, mk_lt(g, x, mk_like(g, x, 0)));
  Val a = mk_cast(g, last_axis(b, x), DT_u64);
  a = mk_select(g, minus, mk_sub(g, lit(b, DT_u64, 0), a), a);
  i64 last = on_rank(b, a) - 1;
  Val n = mk_reduce(g, OP_reduce_sum, mk_cast(g, mk_ge(g, a, pow), DT_i64), &last, 1, true);
  n = mk_max(g, n, lit(b, DT_i64, 1)); /* digits */
  Val from = mk_sub(g, i, mk_cast(g, minus, DT_i64));
  Val place = mk_sub(g, mk_addk(g, n, -1), from);
  Val below = mk_lt(g, place, n);
  Val there = both(b, mk_ge(g, place, zero), below);
  Val by = mk_gather(g, pow, mk_clamp(g, place, 0, POWERS - 1), 0);
  Val ten = lit(b, DT_u64, 10);
  Val digit = mk_mod(g, mk_div(g, a, by), ten);
  Val byte = mk_addk(g, mk_cast(g, digit, DT_u8), '0');
  Val sign = both(b, minus, mk_eq(g, i, zero));
  byte = mk_select(g, there, byte, lit(b, DT_u8, 0));
  return on_strings(b, mk_select(g, sign, lit(b, DT_u8, '-'), byte));
}

/* ---- strings as numbers ---- */

/* Character classes and parser states. */
enum { C_blank, C_plus, C_minus, C_digit, C_dot, C_e, C_x, C_i, C_n, C_f, C_a, C_other, CLASSES };
enum {
  P_start,
  P_sign,
  P_whole,
  P_part,
  P_e,
  P_esign,
  P_power,
  P_i,
  P_in,
  P_n,
  P_na,
  P_inf,
  P_nan,
  P_end,
  P_bad,
  PHASES
};

static Val classes(Build *b) {
  i64 n = 256;
  Tensor *t = tensor_new(&b->c->work, DT_i64, &n, 1);
  static const struct {
    const char *letters;
    i64 class;
  } sets[] = {{" \t\n\v\f\r", C_blank},
              {"+", C_plus},
              {"-", C_minus},
              {"0123456789", C_digit},
              {".", C_dot},
              {"eE", C_e},
              {"xX", C_x},
              {"iI", C_i},
              {"nN", C_n},
              {"fF", C_f},
              {"aA", C_a}};
  for (u64 i = 0; i < 256; i++) tensor_set(t, i, (Scalar){.i = C_other});
  for (u32 k = 0; k < sizeof sets / sizeof *sets; k++)
    for (const char *s = sets[k].letters; *s; s++)
      tensor_set(t, (u8)*s, (Scalar){.i = sets[k].class});
  return mk_const(b->g, t);
}

/* The next state by state and class. Integers end at the first character that is not a digit. */
static Val phases(Build *b, bool integer) {
  i64 n = PHASES * CLASSES;
  Tensor *t = tensor_new(&b->c->work, DT_i64, &n, 1);
  static const u8 next[][3] = {{P_start, C_blank, P_start}, {P_start, C_plus, P_sign},
                               {P_start, C_minus, P_sign},  {P_start, C_digit, P_whole},
                               {P_sign, C_digit, P_whole},  {P_whole, C_digit, P_whole},
                               {P_start, C_dot, P_part},    {P_sign, C_dot, P_part},
                               {P_whole, C_dot, P_part},    {P_part, C_digit, P_part},
                               {P_whole, C_e, P_e},         {P_part, C_e, P_e},
                               {P_e, C_plus, P_esign},      {P_e, C_minus, P_esign},
                               {P_e, C_digit, P_power},     {P_esign, C_digit, P_power},
                               {P_power, C_digit, P_power}, {P_start, C_i, P_i},
                               {P_sign, C_i, P_i},          {P_i, C_n, P_in},
                               {P_in, C_f, P_inf},          {P_start, C_n, P_n},
                               {P_sign, C_n, P_n},          {P_n, C_a, P_na},
                               {P_na, C_n, P_nan},          {P_whole, C_x, P_bad}};
  const u32 whole = 6; /* states used for integers */
  for (u32 p = 0; p < PHASES; p++)
    for (u32 c = 0; c < CLASSES; c++) {
      bool stays = p == P_inf || p == P_nan || p == P_bad;
      bool word = p < P_whole || (p >= P_i && p <= P_na);
      tensor_set(t, p * CLASSES + c, (Scalar){.i = stays ? p : word ? P_bad : P_end});
    }
  for (u32 k = 0; k < (integer ? whole : sizeof next / sizeof *next); k++)
    tensor_set(t, next[k][0] * CLASSES + next[k][1], (Scalar){.i = next[k][2]});
  return mk_const(b->g, t);
}

typedef struct Numeral {
  Build *b;
  Val rows, class, next; /* [.., k], [256], [phases * classes] */
  bool integer;
} Numeral;

/* Carried, each [..]: i64 except the digits, which are u64. */
enum { R_phase, R_minus, R_digits, R_shift, R_eminus, R_power, R_over, R_seen, R_COUNT };

static void read_char(Graph *g, void *user, Val i, Val *cond, Val *now, Val *scan) {
  Numeral *r = user;
  Build *b = r->b;
  (void)cond, (void)scan;
  Val byte = mk_cast(g, mk_gather(g, r->rows, i, on_rank(b, r->rows) - 1), DT_i64);
  Val class = mk_gather(g, r->class, byte, 0);
  Val phase = mk_gather(g, r->next, mk_add(g, mk_mulk(g, now[R_phase], CLASSES), class), 0);
#define IS(x, k) mk_eq(g, x, lit(b, DT_i64, k))
  Val digit = IS(class, C_digit), minus = IS(class, C_minus), whole = IS(phase, P_whole),
      part = IS(phase, P_part), power = both(b, IS(phase, P_power), digit);
  Val d = mk_addk(g, byte, -'0'), used = both(b, digit, mk_or(g, whole, part));
  Val ten = lit(b, DT_u64, 10), old = now[R_digits], du = mk_cast(g, d, DT_u64);
  Val fits = r->integer ? mk_le(g, old, mk_div(g, mk_sub(g, lit(b, DT_u64, 0x1p64), du), ten))
                        : mk_lt(g, old, lit(b, DT_u64, 1e18));
  Val take = both(b, used, fits), leave = both(b, used, mk_not(g, fits));
  now[R_digits] = mk_select(g, take, mk_add(g, mk_mul(g, old, ten), du), old);
  Val up = mk_cast(g, both(b, leave, whole), DT_i64),
      down = mk_cast(g, both(b, take, part), DT_i64);
  now[R_shift] = mk_sub(g, mk_add(g, now[R_shift], up), down);
  now[R_over] = mk_max(g, now[R_over], mk_cast(g, leave, DT_i64));
  now[R_seen] = mk_max(g, now[R_seen], mk_cast(g, used, DT_i64));
  Val sign = both(b, minus, IS(phase, P_sign)), esign = both(b, minus, IS(phase, P_esign));
  now[R_minus] = mk_max(g, now[R_minus], mk_cast(g, sign, DT_i64));
  now[R_eminus] = mk_max(g, now[R_eminus], mk_cast(g, esign, DT_i64));
  Val far = mk_clamp(g, mk_add(g, mk_mulk(g, now[R_power], 10), d), 0, 9999);
  now[R_power] = mk_select(g, power, far, now[R_power]);
  now[R_phase] = phase;
#undef IS
}

static Val float_of(Build *b, const Val *r) {
  Graph *g = b->g;
  Val less = mk_neg(g, r[R_power]);
  Val power = mk_select(g, mk_cast(g, r[R_eminus], DT_bool), less, r[R_power]);
  Val n = mk_add(g, r[R_shift], power), near = mk_clamp(g, n, -308, 308);
  Val rest = mk_clamp(g, mk_sub(g, n, near), -308, 308);
  Val v = shifted(b, shifted(b, mk_cast(g, r[R_digits], DT_f64), near), rest);
  Val phase = r[R_phase], none = mk_eq(g, r[R_digits], lit(b, DT_u64, 0));
  v = mk_select(g, none, lit(b, DT_f64, 0), v); /* 0e9999 */
  Val inf = lit(b, DT_f64, INFINITY);
  v = mk_select(g, mk_eq(g, phase, lit(b, DT_i64, P_inf)), inf, v);
  Val nan = lit(b, DT_f64, NAN);
  v = mk_select(g, mk_eq(g, phase, lit(b, DT_i64, P_nan)), nan, v);
  Val minus = mk_neg(g, v);
  return mk_select(g, mk_cast(g, r[R_minus], DT_bool), minus, v);
}

Val string_to_number(Build *b, Val x, DType to) {
  Graph *g = b->g;
  bool integer = !dtype_is_float(to);
  Numeral r = {b, on_string_bytes(b, x), classes(b), phases(b, integer), integer};
  u32 rank = on_rank(b, r.rows);
  Type t = *on_type(b, x);
  Val state[R_COUNT], none[1];
  for (u32 i = 0; i < R_COUNT; i++)
    state[i] = mk_full(g, lit(b, i == R_digits ? DT_u64 : DT_i64, 0), t.dim, t.rank);
  mk_loop(g, mk_extent(g, on_dim(b, r.rows, rank - 1), DT_i64), 0, state, R_COUNT, none, 0,
          read_char, &r);
  Val zero = lit(b, DT_i64, 0), phase = state[R_phase];
  Val unseen = mk_eq(g, state[R_seen], zero);
  Val bad = mk_or(g, mk_eq(g, phase, lit(b, DT_i64, P_bad)), unseen);
  Val nan = mk_eq(g, phase, lit(b, DT_i64, P_nan));
  Val word = mk_or(g, mk_eq(g, phase, lit(b, DT_i64, P_inf)), nan);
  bad = both(b, bad, mk_not(g, word));
  Val minus = mk_cast(g, state[R_minus], DT_bool);
  if (integer) {
    bad = mk_or(g, bad, mk_cast(g, state[R_over], DT_bool));
    Val rest = mk_addk(g, mk_cast(g, state[R_minus], DT_u64), 1023);
    Val most = mk_add(g, lit(b, DT_u64, 0x1p63 - 1024), rest);
    if (dtype_is_signed(to)) bad = mk_or(g, bad, mk_gt(g, state[R_digits], most));
  }
  Val right =
      mk_assert(g, mk_cast(g, bad, DT_i64), "a string is not a number of the requested type");
  bad = mk_ne(g, right, zero); /* never true after the assertion */
  if (!integer) {
    Val value = float_of(b, state);
    return mk_cast(g, mk_select(g, bad, lit(b, DT_f64, NAN), value), to);
  }
  Val v = mk_select(g, minus, mk_sub(g, lit(b, DT_u64, 0), state[R_digits]), state[R_digits]);
  return mk_cast(g, mk_select(g, bad, lit(b, DT_u64, 0), v), to);
}
