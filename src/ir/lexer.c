/* lexer.c: reads the tokens that the text forms of Graph and Prog share.
 *
 * In: any bytes. Out: words, numbers, dimensions, constants, or a failure with file and line.
 * Constants are allocated only if the text is long enough for their elements. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ir/lexer.h"

enum { MAX_NUMBER = 400 };

Lexer lex_new(Ctx *c, const char *text, size_t n, Str file, const u8 *weights, size_t nweights) {
  Lexer s = {.c = c,
             .at = text,
             .end = text + n,
             .loc = LOC_NONE,
             .weights = weights,
             .nweights = nweights,
             .version = 1};
  s.loc.file = file;
  s.loc.line = 1;
  return s;
}

/* ---- characters and words ---- */

void lex_skip(Lexer *s) {
  for (; s->at < s->end; s->at++) {
    if (*s->at == '#') {
      while (s->at < s->end && *s->at != '\n') s->at++;
      if (s->at == s->end) return;
    }
    if (*s->at == '\n') {
      s->loc.line++;
    } else if (*s->at != ' ' && *s->at != '\t' && *s->at != '\r') {
      return;
    }
  }
}

char lex_peek(Lexer *s) {
  lex_skip(s);
  return s->at < s->end ? *s->at : 0;
}

bool lex_accept(Lexer *s, char ch) {
  if (lex_peek(s) != ch || s->at == s->end) return false;
  s->at++;
  return true;
}

/* The rest of the line in printable form, for messages. */
const char *lex_found(Lexer *s) {
  lex_skip(s);
  size_t n = 0, left = (size_t)(s->end - s->at);
  while (n < left && n < 24 && s->at[n] != '\n') n++;
  return n ? show(s->c, str_intern(s->c, s->at, n)) : "the end of the text";
}

void lex_expect(Lexer *s, char ch) {
  if (!lex_accept(s, ch)) BAD(s, "expected '%c', found %s", ch, lex_found(s));
}

static bool is_letter(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_word(char ch) {
  return is_letter(ch) || (ch >= '0' && ch <= '9');
}

/* Length of the word (letters, digits, '_') at the cursor. */
size_t lex_word(Lexer *s) {
  lex_skip(s);
  size_t n = 0, left = (size_t)(s->end - s->at);
  while (n < left && is_word(s->at[n])) n++;
  return n;
}

bool lex_is_word(Lexer *s, const char *w) {
  size_t n = lex_word(s);
  return n == strlen(w) && !memcmp(s->at, w, n);
}

/* Keywords of version 1 of the text forms. */
typedef struct Renamed {
  const char *now, *was;
} Renamed;
static const Renamed old_words[] = {
    {"fence", "barrier"},  {"spills", "many"},     {"pin", "hold"},        {"prefetch", "ahead"},
    {"prefetch", "fetch"}, {"tree_walk", "walks"}, {"dot16_loop", "pairs"}};
static const Renamed old_ops[] = {
    {"str_encode", "bytes"},       {"str_decode", "text"},    {"nms", "suppress"},
    {"maddubs", "pairs"},          {"psign", "sign4"},        {"dot_i8x4", "dot4"},
    {"dot_i16x2", "dot2"},         {"check_index", "within"}, {"dequantize", "unblock"},
    {"exp_nonpos", "exp0"},        {"exp_p1", "exp1"},        {"gelu_x2", "gelu2"},
    {"matmul_quant", "dot_blocks"}};

/* In version 1 the words of version 2 are names: `pin[i]` is an element of a buffer. */
bool lex_accept_word(Lexer *s, const char *w) {
  bool is = lex_is_word(s, w);
  for (u32 i = 0; s->version == 1 && i < sizeof old_words / sizeof *old_words; i++) {
    if (strcmp(old_words[i].now, w)) continue;
    const char *next = s->at + strlen(w);
    if (is && next < s->end && *next == '[') return false;
    is = is || lex_is_word(s, old_words[i].was);
  }
  if (is) s->at += lex_word(s);
  return is;
}

Op lex_op(Lexer *s) {
  size_t n = lex_word(s);
  Op op = op_from_name(s->at, n);
  for (u32 i = 0; op == OP_COUNT && s->version == 1 && i < sizeof old_ops / sizeof *old_ops; i++)
    if (lex_is_word(s, old_ops[i].was)) op = op_from_name(old_ops[i].now, strlen(old_ops[i].now));
  if (op < OP_COUNT) s->at += n;
  return op;
}

void lex_header(Lexer *s, const char *form) {
  if (lex_accept_word(s, "ingot")) {
    s->version = lex_integer(s);
    if (s->version < 1 || s->version > TEXT_VERSION)
      BAD(s, "text form version: expected 1 to %d, found %lld%s", TEXT_VERSION,
          (long long)s->version,
          s->version > TEXT_VERSION ? "; a newer ingot wrote this file" : "");
  }
  lex_expect_word(s, form);
}

void lex_expect_word(Lexer *s, const char *w) {
  if (!lex_accept_word(s, w)) BAD(s, "expected '%s', found %s", w, lex_found(s));
}

Str lex_quoted(Lexer *s) {
  if (lex_peek(s) != '"') BAD(s, "expected a quoted string, found %s", lex_found(s));
  StrBuf t = sb_new(&s->c->scratch);
  size_t n = sb_unquote(&t, s->at, (size_t)(s->end - s->at));
  if (!n) BAD(s, "malformed string %s", lex_found(s));
  s->at += n;
  return str_intern(s->c, t.at, t.n);
}

/* An identifier or a quoted string. */
Str lex_name(Lexer *s) {
  if (lex_peek(s) == '"') return lex_quoted(s);
  size_t n = lex_word(s);
  if (!n || !is_letter(*s->at)) BAD(s, "expected a name, found %s", lex_found(s));
  Str name = str_intern(s->c, s->at, n);
  s->at += n;
  return name;
}

/* ---- numbers ---- */

/* A sign belongs to a number at its start and after the exponent letter. ".." never does: 1..64 is
 * a range. */
size_t lex_number(Lexer *s) {
  lex_skip(s);
  size_t n = 0, left = (size_t)(s->end - s->at);
  bool hex = false;
  for (; n < left; n++) {
    char ch = s->at[n], before = n ? s->at[n - 1] : 0;
    bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
    if (ch == '.' && n + 1 < left && s->at[n + 1] == '.') break;
    if (ch == '-' || ch == '+') {
      if (n && !exponent) break;
    } else if (!is_word(ch) && ch != '.') {
      break;
    }
    if (before == '0' && (ch == 'x' || ch == 'X')) hex = true;
  }
  return n;
}

static const char *number(Lexer *s, char *to) {
  size_t n = lex_number(s);
  if (n == 0 || n >= MAX_NUMBER) BAD(s, "expected a number, found %s", lex_found(s));
  memcpy(to, s->at, n);
  to[n] = 0;
  s->at += n;
  return to;
}

i64 lex_integer(Lexer *s) {
  char text[MAX_NUMBER + 1], *end;
  const char *start = s->at;
  errno = 0;
  i64 x = strtoll(number(s, text), &end, 10);
  if (*end || errno) {
    s->at = start;
    BAD(s, "expected an integer, found %s", lex_found(s));
  }
  return x;
}

/* "HEX)": the bits of one element, in host byte order. */
static void bits(Lexer *s, u8 *to, u32 bytes) {
  char text[MAX_NUMBER + 1], *end;
  lex_expect(s, '(');
  errno = 0;
  u64 x = strtoull(number(s, text), &end, 16);
  if (*end || errno || (bytes < 8 && x >> (8 * bytes)))
    BAD(s, "bits(%s) do not fit the element type", text);
  lex_expect(s, ')');
  for (u32 i = 0; i < bytes; i++) to[i] = (u8)(x >> (8 * i));
}

static void real(Lexer *s, DType dt, u8 *to) {
  char text[MAX_NUMBER + 1], *end;
  if (lex_accept_word(s, "bits")) {
    bits(s, to, dtype_bytes(dt));
    return;
  }
  double x = strtod(number(s, text), &end);
  if (*end) BAD(s, "expected a number, found %s", text);
  scalar_store(dt, to, (Scalar){.f = scalar_round(dt, x)});
}

static void whole(Lexer *s, DType dt, u8 *to) {
  char text[MAX_NUMBER + 1], *end;
  Scalar x;
  if (lex_accept_word(s, "bits")) {
    bits(s, to, dtype_bytes(dt));
    return;
  }
  number(s, text);
  errno = 0;
  if (dt == DT_u64) {
    x.i = (i64)strtoull(text, &end, 10);
    if (text[0] == '-') errno = ERANGE;
  } else {
    x.i = strtoll(text, &end, 10);
    if (scalar_wrap(dt, x.i) != x.i) errno = ERANGE;
  }
  if (*end || errno) BAD(s, "expected a value of %s, found %s", dtype_info[dt].name, text);
  scalar_store(dt, to, x);
}

void lex_element(Lexer *s, DType dt, u8 *to) {
  u32 bytes = dtype_bytes(dt);
  switch (dtype_info[dt].cls) {
  case 'F': real(s, dt, to); return;
  case 'C': {
    DType part = dt == DT_c64 ? DT_f32 : DT_f64;
    lex_expect(s, '(');
    real(s, part, to);
    lex_expect(s, ',');
    real(s, part, to + bytes / 2);
    lex_expect(s, ')');
    return;
  }
  case 'S': {
    Str text = lex_quoted(s);
    memcpy(to, &text, sizeof text);
    return;
  }
  case 'B':
    if (lex_accept_word(s, "true")) {
      *to = 1;
    } else if (lex_accept_word(s, "false")) {
      *to = 0;
    } else if (lex_accept_word(s, "bits")) {
      bits(s, to, 1);
    } else {
      BAD(s, "expected true or false, found %s", lex_found(s));
    }
    return;
  default: whole(s, dt, to); return;
  }
}

typedef struct DimArg {
  Dims *ds;
  const char *at;
  size_t n, used;
  Dim d;
} DimArg;

static void try_dim(Ctx *c, void *arg) {
  DimArg *a = arg;
  (void)c;
  a->used = dim_parse(a->ds, a->at, a->n, &a->d);
}

/* dim_parse does not know the line, so it is added here. */
Dim lex_dim(Lexer *s) {
  lex_skip(s);
  DimArg a = {.ds = s->dims, .at = s->at};
  size_t left = (size_t)(s->end - s->at);
  while (a.n < left && s->at[a.n] != '\n') a.n++;
  const char *why;
  Loc here = s->c->here;
  s->c->here = LOC_NONE;
  Err err = ctx_try(s->c, try_dim, &a, &why);
  s->c->here = here;
  if (err != ERR_ok) fail(s->c, err, s->loc, "%s", why);
  if (!a.used) BAD(s, "expected a dimension, found %s", lex_found(s));
  s->at += a.used;
  return a.d;
}

DType lex_dtype(Lexer *s) {
  size_t n = lex_word(s);
  DType dt = dtype_from_name(s->at, n);
  if (dt == DT_none) BAD(s, "expected an element type, found %s", lex_found(s));
  s->at += n;
  return dt;
}

u32 lex_dims(Lexer *s, Dim *dim) {
  u32 rank = 0;
  lex_expect(s, '[');
  while (!lex_accept(s, ']')) {
    if (rank) lex_expect(s, ',');
    if (rank == MAX_RANK) BAD(s, "more than %d dimensions", MAX_RANK);
    dim[rank++] = lex_dim(s);
  }
  return rank;
}

/* ---- constants ---- */

static const u8 *weights(Lexer *s, DType dt, u64 count) {
  u64 bytes, end;
  /* version 1 has @side */
  if (!lex_accept_word(s, "side")) lex_expect_word(s, "weights");
  lex_expect(s, '(');
  i64 at = lex_integer(s);
  lex_expect(s, ',');
  i64 n = lex_integer(s);
  lex_expect(s, ')');
  if (!size_mul(count, dtype_bytes(dt), &bytes) || n < 0 || (u64)n != bytes) {
    BAD(s,
        "the constant has %llu elements of %u bytes, but the text names %lld bytes of the "
        "weights file",
        (unsigned long long)count, dtype_bytes(dt), (long long)n);
  }
  if (at < 0 || !size_add((u64)at, bytes, &end) || end > s->nweights || dt == DT_str) {
    BAD(s, "%lld bytes at %lld are outside of the weights file of %zu bytes", (long long)n,
        (long long)at, s->nweights);
  }
  return s->weights + at;
}

#define SHORTENED "; if ingot opt shortened it, print it with --constants all or -o FILE"
Tensor *lex_tensor(Lexer *s, DType dt, const Dim *dim, u32 rank) {
  u64 count;
  for (u32 i = 0; i < rank; i++) {
    if (!dim_is_const(dim[i])) BAD(s, "the dimensions of a constant must be integers");
  }
  if (!shape_count(dim, rank, &count)) BAD(s, "the constant has more than 2^40 elements");
  if (lex_accept(s, '@')) return tensor_wrap(&s->c->work, dt, dim, rank, weights(s, dt, count));
  lex_expect(s, '{');
  if (count > (u64)(s->end - s->at)) {
    BAD(s, "the constant has %llu elements, but the text is too short for them" SHORTENED,
        (unsigned long long)count);
  }
  Tensor *x = tensor_new(&s->c->work, dt, dim, rank);
  u8 *to = (u8 *)x->data;
  for (u64 i = 0; i < count; i++) {
    if (i) lex_expect(s, ',');
    if (i && lex_accept(s, '.'))
      BAD(s, "the constant is abbreviated with '...'; expected all elements" SHORTENED);
    lex_element(s, dt, to + i * dtype_bytes(dt));
  }
  lex_expect(s, '}');
  return x;
}

/* ---- symbols ---- */

static void symbol(Lexer *s) {
  Str name = lex_name(s);
  SymKind kind = lex_accept_word(s, "data") ? SY_data : SY_input;
  for (u32 i = 0; i < dim_nsyms(s->dims); i++) {
    if (dim_syminfo(s->dims, i)->name == name)
      BAD(s, "symbol %s is declared twice", show(s->c, name));
  }
  lex_expect_word(s, "in");
  i64 lo = lex_integer(s), hi = DIM_MAX;
  lex_expect(s, '.');
  lex_expect(s, '.');
  if (s->at < s->end && *s->at >= '0' && *s->at <= '9') hi = lex_integer(s);
  if (lo < 0 || hi < lo || hi > DIM_MAX) {
    BAD(s, "symbol %s: bounds %lld..%lld, expected 0 <= lower <= upper <= 2^40", show(s->c, name),
        (long long)lo, (long long)hi);
  }
  dim_sym(s->dims, kind, name, lo, hi);
}

void lex_symbols(Lexer *s) {
  while (lex_accept_word(s, "sym")) symbol(s);
}
