/* format.c: formats a program.
 *
 * In: tokens and comments. Out: the same tokens in the same order on the same lines. A line is
 * indented by four columns for each line with an open bracket. Operators have spaces around them
 * and commas a space after them. Trailing spaces and repeated empty lines are removed. The program
 * is unchanged, because tokens are kept. Formatting is idempotent, because it depends only on
 * tokens and line ends.
 */
#include "lang/syntax/lang.h"

#include <string.h>

enum { STEP = 4, BRACKETS = 4096 };

typedef struct Formatter {
  const Script *s;
  StrBuf *out;
  const Token *prev; /* NULL at the start */
  Tok before;        /* token kind before prev */
  bool after_comment;
  u32 open[BRACKETS]; /* output lines with open brackets */
  u32 nopen, line;
  u32 angles; /* depth of tensor<...> */
  bool unary; /* prev is a unary sign */
} Formatter;

static bool is_word(const Script *s, const Token *t, const char *word) {
  return t->kind == TOK_name && t->n == strlen(word) && !memcmp(s->at + t->at, word, t->n);
}

static bool opens(Tok k) {
  return k == TOK_lpar || k == TOK_lsq || k == TOK_lbrace;
}

static bool closes(Tok k) {
  return k == TOK_rpar || k == TOK_rsq || k == TOK_rbrace;
}

/* True if an operand may end with t. Then a bracket after it is a call or an index, and a sign is
 * binary. */
static bool ends_operand(const Formatter *p, const Token *t) {
  if (t->kind == TOK_name) return !is_word(p->s, t, "in");
  return t->kind == TOK_int || t->kind == TOK_float || t->kind == TOK_string ||
         t->kind == TOK_true || t->kind == TOK_false || t->kind == TOK_rpar || t->kind == TOK_rsq;
}

static u32 indent(const Formatter *p, bool closing) {
  u32 level = 0, n = p->nopen;
  if (closing && n) n--;
  for (u32 i = 0; i < n; i++) level += i == 0 || p->open[i] != p->open[i - 1];
  return level;
}

static bool wants_blank(const Formatter *p, const Token *t) {
  const Token *a = p->prev;
  if (p->unary || opens(a->kind)) return a->kind == TOK_lbrace && t->kind != TOK_rbrace;
  /* otherwise it would become a float */
  if (a->kind == TOK_dot || t->kind == TOK_dot) return a->kind == TOK_int;
  if (a->kind == TOK_range || a->kind == TOK_upto || t->kind == TOK_range || t->kind == TOK_upto)
    return false;
  if (t->kind == TOK_rbrace) return true;
  if (closes(t->kind) || t->kind == TOK_comma || t->kind == TOK_semi || t->kind == TOK_colon)
    return false;
  if (t->kind == TOK_lt && is_word(p->s, a, "tensor")) return false;
  if (p->angles && (t->kind == TOK_gt || a->kind == TOK_lt)) return false;
  if (t->kind == TOK_lpar) return !ends_operand(p, a) && a->kind != TOK_fn;
  if (t->kind == TOK_lsq) return !ends_operand(p, a);
  return true;
}

static void newline(Formatter *p, u32 lines) {
  for (u32 i = 0; i < lines; i++) sb_puts(p->out, "\n");
  p->line += lines;
}

static u32 lines_between(const Script *s, u32 from, u32 to) {
  u32 n = 0;
  for (u32 i = from; i < to; i++) n += s->at[i] == '\n';
  return n > 2 ? 2 : n;
}

static void put_indent(Formatter *p, bool closing) {
  for (u32 i = 0; i < indent(p, closing) * STEP; i++) sb_puts(p->out, " ");
}

static void put_token(Formatter *p, const Token *t) {
  sb_put(p->out, p->s->at + t->at, t->n);
  bool sign = t->kind == TOK_sub || t->kind == TOK_bang;
  p->unary = sign && (!p->prev || t->kind == TOK_bang || !ends_operand(p, p->prev));
  if (opens(t->kind) && p->nopen < BRACKETS) p->open[p->nopen++] = p->line;
  if (closes(t->kind) && p->nopen) p->nopen--;
  if (t->kind == TOK_lt && p->prev && is_word(p->s, p->prev, "tensor")) p->angles++;
  if (t->kind == TOK_gt && p->angles) p->angles--;
  /* a string may span lines */
  for (u32 i = 0; i < t->n; i++) p->line += p->s->at[t->at + i] == '\n';
  p->prev = t;
}

/* Writes a comment without trailing spaces. */
static void put_comment(Formatter *p, const Token *t) {
  u32 n = t->n;
  while (n && strchr(" \t\r\n", p->s->at[t->at + n - 1])) n--;
  sb_put(p->out, p->s->at + t->at, n);
  for (u32 i = 0; i < n; i++) p->line += p->s->at[t->at + i] == '\n';
}

void script_format(const Script *s, StrBuf *out) {
  Formatter *p = NEW(&s->c->work, Formatter);
  u32 i = 0, k = 0, end = 0;
  *p = (Formatter){.s = s, .out = out};
  while (s->token.at[i].kind != TOK_end || k < s->comment.n) {
    const Token *t = &s->token.at[i];
    bool comment = k < s->comment.n && s->comment.at[k].at < t->at;
    if (comment) t = &s->comment.at[k++];
    u32 lines = end ? lines_between(s, end, t->at) : 0;
    if (p->after_comment && !lines && s->at[end - 1] != '/') lines = 1;
    newline(p, lines);
    if (lines || !end)
      put_indent(p, !comment && closes(t->kind));
    else if (comment)
      sb_puts(out, p->prev && opens(p->prev->kind) && p->prev->kind != TOK_lbrace ? " " : "  ");
    else if (p->after_comment || (p->prev && wants_blank(p, t)))
      sb_puts(out, " ");
    if (comment)
      put_comment(p, t);
    else
      put_token(p, t), i++;
    p->after_comment = comment;
    end = t->at + t->n;
  }
  if (out->n) sb_puts(out, "\n");
}
