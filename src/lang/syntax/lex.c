/* lex.c: the lexer, and messages with a position in the text.
 *
 * In: bytes. Out: tokens, and a separate list of comments for the formatter. Newlines only separate
 * tokens. Method: longest match in the token table. Unknown characters are reported and skipped.
 * The parser converts numbers and strings.
 */
#include "lang/syntax/lang.h"

#include <ctype.h>
#include <string.h>

const char *const tok_text[TOK_COUNT] = {
#define TOK(name, text) text,
#include "lang/syntax/tokens.def"
#undef TOK
};

enum { SHOWN_COLUMNS = 160, LANG_BYTES = 1 << 28 };

u32 script_line(const Script *s, u32 at) {
  u32 lo = 0, hi = s->newline.n;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (s->newline.at[mid] < at)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo + 1;
}

static u32 columns(const char *at, u32 n) {
  u32 count = 0;
  for (u32 i = 0; i < n; i++) count += ((u8)at[i] & 0xc0) != 0x80;
  return count;
}

const char *script_place(const Script *s, u32 at, const char *what, const char *hint) {
  StrBuf t = sb_new(&s->c->work);
  if (at > s->n) at = s->n;
  u32 from = at, to = at;
  while (from > 0 && s->at[from - 1] != '\n') from--;
  while (to < s->n && s->at[to] != '\n') to++;
  sb_fmt(&t, "%s:%u:%u: %s", show_text(s->c, s->file), script_line(s, at),
         columns(s->at + from, at - from) + 1, what);
  if (to - from <= SHOWN_COLUMNS && to > from) {
    sb_fmt(&t, "\n    %.*s\n    ", (int)(to - from), s->at + from);
    for (u32 i = from; i < at; i++)
      if (((u8)s->at[i] & 0xc0) != 0x80) sb_puts(&t, s->at[i] == '\t' ? "\t" : " ");
    sb_puts(&t, "^");
  }
  if (hint) sb_fmt(&t, "\n    hint: %s", hint);
  return sb_cstr(&t);
}

void script_error(Script *s, u32 at, const char *hint, const char *fmt, ...) {
  StrBuf t = sb_new(&s->c->work);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  s->nerror++;
  diag(s->c, ERR_input, LOC_NONE, "%s", script_place(s, at, sb_cstr(&t), hint));
}

static bool is_letter(char ch) {
  return isalpha((unsigned char)ch) || ch == '_' || (u8)ch >= 0x80;
}

static bool is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}

static Token *push(Script *s, Tok kind, u32 at, u32 n, bool first) {
  Token *t = vec_push(&s->c->work, &s->token);
  *t = (Token){kind, at, n, first};
  return t;
}

/* Returns the offset after the comment at `at`, or `at` if there is none. */
static u32 skip_comment(Script *s, u32 at) {
  const char *p = s->at + at;
  u32 end = at;
  if (p[0] == '/' && p[1] == '/') {
    while (end < s->n && s->at[end] != '\n') end++;
  } else if (p[0] == '/' && p[1] == '*') {
    for (end += 2; end < s->n && (s->at[end] != '*' || s->at[end + 1] != '/');) end++;
    end = end < s->n ? end + 2 : s->n;
  }
  return end;
}

static u32 number(const Script *s, u32 at, Tok *kind) {
  u32 i = at;
  *kind = TOK_int;
  while (is_digit(s->at[i])) i++;
  if (s->at[i] == '.' && is_digit(s->at[i + 1])) {
    *kind = TOK_float;
    for (i++; is_digit(s->at[i]);) i++;
  }
  if (s->at[i] == 'e' || s->at[i] == 'E') {
    u32 k = i + 1 + (s->at[i + 1] == '-' || s->at[i + 1] == '+');
    if (!is_digit(s->at[k])) return i;
    *kind = TOK_float;
    for (i = k; is_digit(s->at[i]);) i++;
  }
  return i;
}

static u32 string(Script *s, u32 at) {
  u32 i = at + 1;
  while (i < s->n && s->at[i] != '"') i += s->at[i] == '\\' && i + 1 < s->n ? 2 : 1;
  if (i >= s->n) {
    script_error(s, at, "a string ends with \"", "the string does not end");
    return s->n;
  }
  return i + 1;
}

static Tok word(const Script *s, u32 at, u32 n) {
  for (Tok k = TOK_let; k <= TOK_not; k++)
    if (strlen(tok_text[k]) == n && !memcmp(tok_text[k], s->at + at, n)) return k;
  return TOK_name;
}

static Tok sign(const Script *s, u32 at, u32 *n) {
  for (Tok k = TOK_upto; k < TOK_COUNT; k++) {
    *n = (u32)strlen(tok_text[k]);
    if (at + *n <= s->n && !memcmp(tok_text[k], s->at + at, *n)) return k;
  }
  *n = 1;
  return TOK_end;
}

static void unknown(Script *s, u32 at) {
  char ch = s->at[at];
  const char *hint = ch == '&' || ch == '|' ? "'and' is also '&&', 'or' is also '||'"
                     : ch == '\''           ? "strings are written in double quotes"
                     : ch == '#'            ? "comments begin with //"
                                            : NULL;
  script_error(s, at, hint,
               isprint((unsigned char)ch) ? "unexpected character '%c'" : "unexpected byte 0x%02x",
               (unsigned char)ch);
}

static u32 name(Script *s, u32 at) {
  u32 i = at;
  while (i < s->n && (is_letter(s->at[i]) || is_digit(s->at[i]))) i++;
  return i;
}

static void scan(Script *s) {
  bool first = true;
  for (u32 i = 0; i < s->n;) {
    char ch = s->at[i];
    u32 end = skip_comment(s, i), n;
    Tok kind;
    if (ch == '\n') first = true;
    if (end > i) {
      *vec_push(&s->c->work, &s->comment) = (Token){TOK_end, i, end - i, first};
      i = end;
      continue;
    }
    if (isspace((unsigned char)ch)) {
      i++;
      continue;
    }
    if (is_letter(ch)) {
      end = name(s, i);
      kind = word(s, i, end - i);
    } else if (is_digit(ch)) {
      end = number(s, i, &kind);
    } else if (ch == '"') {
      end = string(s, i);
      kind = TOK_string;
    } else {
      kind = sign(s, i, &n);
      end = i + n;
      if (kind == TOK_end) unknown(s, i);
    }
    if (kind != TOK_end) push(s, kind, i, end - i, first);
    first = false;
    i = end;
  }
  push(s, TOK_end, s->n, 0, true);
}

Script *script_new(Ctx *c, Str file, const char *at, size_t n, Scripts *all) {
  Script *s = NEW(&c->work, Script);
  s->all = all ? all : NEW(&c->work, Scripts);
  s->number = s->all->n;
  *vec_push(&c->work, s->all) = s;
  s->c = c;
  s->file = file;
  if (n > LANG_BYTES)
    fail(c, ERR_unsupported, LOC_NONE, "the program has %zu bytes, the limit is %d", n, LANG_BYTES);
  size_t mark = utf8_bom(at, n);
  n -= mark;
  char *copy = arena_alloc(&c->work, n + 4); /* zero padding ends every token */
  if (n) memcpy(copy, at + mark, n);
  s->at = copy;
  s->n = (u32)n;
  for (u32 i = 0; i < s->n; i++)
    if (copy[i] == '\n') *vec_push(&c->work, &s->newline) = i;
  if (!utf8_valid(copy, n)) script_error(s, 0, NULL, "the text is not UTF-8");
  scan(s);
  return s;
}
