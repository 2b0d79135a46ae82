/* jinja_parse.c: parses a template.
 *
 * In: bytes. Out: a syntax tree. Tags are {% %}, {{ }}, {# #}. With trim_blocks and lstrip_blocks,
 * the newline after a block and the spaces before it on its line are dropped. A - in a tag strips
 * all white space on that side. Method: recursive descent, at most JINJA_DEPTH deep.
 */
#include "chat/jinja_internal.h"
#include <stdlib.h>
#include <string.h>

typedef struct JinjaLexer {
  Jinja *j;
  const char *at, *end, *start;
  i32 line;
  u32 depth, open; /* open: brackets in the expression */
  bool in_loop;
  bool line_starts; /* the last tag ended at the start of a line */
} JinjaLexer;

static _Noreturn void bad(JinjaLexer *s, const char *what) {
  s->j->loc.line = s->line;
  size_t n = 0;
  while (s->at + n < s->end && n < 20 && s->at[n] != '\n') n++;
  jinja_fail(s->j, ERR_unsupported, "%s at '%s'", what,
             show(s->j->c, str_intern(s->j->c, s->at, n)));
}

static JinjaNode *node(JinjaLexer *s, JinjaOp op) {
  JinjaNode *n = NEW(s->j->a, JinjaNode);
  jinja_charge_memory(s->j, sizeof *n);
  n->op = op;
  n->line = s->line;
  return n;
}

static void enter(JinjaLexer *s) {
  if (++s->depth > JINJA_DEPTH) bad(s, "nested too deeply");
}

static bool is_space(char ch) {
  return ch == ' ' || (ch >= 9 && ch <= 13);
}

static void count_lines(JinjaLexer *s, const char *from, const char *to) {
  for (; from < to; from++) s->line += *from == '\n';
}

static void skip(JinjaLexer *s) {
  for (; s->at < s->end && is_space(*s->at); s->at++) s->line += *s->at == '\n';
}

static bool starts(const JinjaLexer *s, const char *word) {
  size_t n = strlen(word);
  return (size_t)(s->end - s->at) >= n && !memcmp(s->at, word, n);
}

/* The end of a tag is not an operator, unless brackets are open. */
static bool at_close(const JinjaLexer *s) {
  return !s->open && (starts(s, "%}") || starts(s, "}}") || starts(s, "-%}") || starts(s, "-}}") ||
                      starts(s, "+%}"));
}

static bool accept(JinjaLexer *s, const char *op) {
  skip(s);
  if (!starts(s, op) || at_close(s)) return false;
  s->at += strlen(op);
  if (strchr("([{", *op)) s->open++;
  if (strchr(")]}", *op) && s->open) s->open--;
  return true;
}

static bool is_letter(char ch) {
  return ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static size_t word_length(JinjaLexer *s) {
  skip(s);
  size_t n = 0;
  while (s->at + n < s->end && (is_letter(s->at[n]) || (n && s->at[n] >= '0' && s->at[n] <= '9')))
    n++;
  return n;
}

static bool accept_word(JinjaLexer *s, const char *word) {
  size_t n = word_length(s);
  if (n != strlen(word) || memcmp(s->at, word, n)) return false;
  s->at += n;
  return true;
}

static bool peek_word(JinjaLexer *s, const char *word) {
  const char *at = s->at;
  i32 line = s->line;
  bool is = accept_word(s, word);
  s->at = at;
  s->line = line;
  return is;
}

static void expect(JinjaLexer *s, const char *op) {
  if (!accept(s, op)) bad(s, "syntax error");
}

static JinjaVal word(JinjaLexer *s) {
  size_t n = word_length(s);
  if (!n) bad(s, "expected a name");
  JinjaVal v = {.kind = JK_string, .s = {.at = s->at, .n = (u32)n}};
  s->at += n;
  return v;
}

static void escape(JinjaLexer *s, StrBuf *t) {
  static const char from[] = "nrt\\'\"abfv0", to[] = "\n\r\t\\'\"\a\b\f\v\0";
  if (s->at == s->end) bad(s, "the string does not end");
  char ch = *s->at++;
  const char *known = ch ? strchr(from, ch) : NULL;
  u32 digits = ch == 'x' ? 2 : ch == 'u' ? 4 : ch == 'U' ? 8 : 0;
  if (ch == '\n') return;
  if (known) {
    sb_put(t, &to[known - from], 1);
  } else if (digits && (size_t)(s->end - s->at) >= digits) {
    char b[9] = {0};
    memcpy(b, s->at, digits);
    char *end;
    unsigned long x = strtoul(b, &end, 16);
    if (*end || x > 0x10ffff) bad(s, "invalid escape in a string");
    sb_rune(t, (u32)x);
    s->at += digits;
  } else {
    sb_put(t, "\\", 1);
    sb_put(t, &ch, 1);
  }
}

static JinjaNode *string_literal(JinjaLexer *s) {
  StrBuf t = sb_new(s->j->a);
  JinjaNode *n = node(s, JN_literal);
  while (skip(s), s->at < s->end && (*s->at == '\'' || *s->at == '"')) {
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote) {
      char ch = *s->at++;
      s->line += ch == '\n';
      if (ch == '\\')
        escape(s, &t);
      else
        sb_put(&t, &ch, 1);
    }
    if (s->at == s->end) bad(s, "the string does not end");
    s->at++;
  }
  n->value = (JinjaVal){.kind = JK_string, .s = {.at = t.n ? t.at : "", .n = (u32)t.n}};
  return n;
}

static JinjaNode *number(JinjaLexer *s) {
  JinjaNode *n = node(s, JN_literal);
  char b[64];
  size_t k = 0;
  bool whole = true;
  for (; s->at < s->end && k < sizeof b - 1; s->at++) {
    char ch = *s->at;
    bool dot = ch == '.' && whole && s->end - s->at > 1 && s->at[1] >= '0' && s->at[1] <= '9';
    if (ch == '_') continue;
    bool power =
        (ch == 'e' || ch == 'E') && s->end - s->at > 1 && s->at[1] >= '0' && s->at[1] <= '9';
    if (!dot && !power && (ch < '0' || ch > '9')) break;
    whole = whole && !dot && !power;
    b[k++] = ch;
  }
  b[k] = 0;
  n->value =
      whole ? jinja_int(strtoll(b, NULL, 10)) : (JinjaVal){.kind = JK_float, .f = strtod(b, NULL)};
  return n;
}

static JinjaNode *expression(JinjaLexer *s);
static JinjaNode *unary(JinjaLexer *s, bool filters);

/* Arguments up to the closing bracket: name=value or value. */
static JinjaNode *arguments(JinjaLexer *s) {
  JinjaNode *first = NULL, **last = &first;
  while (!accept(s, ")")) {
    JinjaNode *n = node(s, JN_argument);
    const char *at = s->at;
    size_t k = word_length(s);
    const char *name = s->at;
    s->at += k;
    skip(s);
    if (k && starts(s, "=") && !starts(s, "==")) {
      s->at++;
      n->value = (JinjaVal){.kind = JK_string, .s = {.at = name, .n = (u32)k}};
    } else {
      s->at = at;
    }
    n->a = expression(s);
    *last = n;
    last = &n->next;
    if (!accept(s, ",")) {
      expect(s, ")");
      break;
    }
  }
  return first;
}

/* Elements up to the closing bracket. pairs: of a dict. */
static JinjaNode *elements(JinjaLexer *s, const char *close, bool pairs, bool *comma) {
  JinjaNode *first = NULL, **last = &first;
  *comma = false;
  while (!accept(s, close)) {
    for (int i = 0; i <= pairs; i++) {
      JinjaNode *n = node(s, JN_argument);
      n->a = expression(s);
      *last = n;
      last = &n->next;
      if (pairs && !i) expect(s, ":");
    }
    if (!accept(s, ",")) {
      expect(s, close);
      break;
    }
    *comma = true;
  }
  return first;
}

static JinjaNode *primary(JinjaLexer *s) {
  static const struct {
    const char *spelling;
    JinjaVal value;
  } constant[] = {{"true", {.kind = JK_bool, .i = 1}}, {"True", {.kind = JK_bool, .i = 1}},
                  {"false", {.kind = JK_bool}},        {"False", {.kind = JK_bool}},
                  {"none", {.kind = JK_none}},         {"None", {.kind = JK_none}}};
  bool comma;
  skip(s);
  if (s->at < s->end && (*s->at == '\'' || *s->at == '"')) return string_literal(s);
  if (s->at < s->end && *s->at >= '0' && *s->at <= '9') return number(s);
  for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
    if (accept_word(s, constant[i].spelling)) {
      JinjaNode *n = node(s, JN_literal);
      n->value = constant[i].value;
      return n;
    }
  if (accept(s, "(")) {
    JinjaNode *list = elements(s, ")", false, &comma), *n = node(s, JN_tuple);
    if (list && !list->next && !comma) return list->a;
    n->b = list;
    return n;
  }
  bool array = accept(s, "[");
  if (array || accept(s, "{")) {
    JinjaNode *n = node(s, array ? JN_list : JN_dict);
    n->b = elements(s, array ? "]" : "}", !array, &comma);
    return n;
  }
  JinjaNode *n = node(s, JN_name);
  n->value = word(s);
  return n;
}

static JinjaNode *subscript(JinjaLexer *s, JinjaNode *of) {
  JinjaNode *part[3] = {NULL, NULL, NULL};
  u32 colons = 0;
  while (!accept(s, "]")) {
    if (accept(s, ":")) {
      if (++colons > 2) bad(s, "the slice has too many parts");
    } else {
      if (part[colons]) bad(s, "syntax error");
      part[colons] = expression(s);
    }
  }
  JinjaNode *n = node(s, colons ? JN_slice : JN_item);
  if (!colons && !part[0]) bad(s, "expected an index");
  n->a = of;
  n->b = part[0];
  n->c = part[1];
  n->d = part[2];
  return n;
}

static JinjaNode *postfix(JinjaLexer *s, JinjaNode *n) {
  for (;;) {
    JinjaNode *outer;
    skip(s);
    if (accept(s, ".")) {
      outer = node(s, JN_attr);
      outer->a = n;
      if (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        outer->op = JN_item;
        outer->b = number(s);
      } else {
        outer->value = word(s);
      }
    } else if (accept(s, "[")) {
      outer = subscript(s, n);
    } else if (accept(s, "(")) {
      outer = node(s, JN_call);
      outer->a = n;
      outer->b = arguments(s);
    } else {
      return n;
    }
    n = outer;
  }
}

static JinjaNode *one_argument(JinjaLexer *s) {
  JinjaNode *n = node(s, JN_argument);
  n->a = postfix(s, primary(s));
  return n;
}

static JinjaNode *filters_and_tests(JinjaLexer *s, JinjaNode *n) {
  for (;;) {
    JinjaNode *outer;
    bool negated = false;
    skip(s);
    if (accept(s, "|")) {
      outer = node(s, JN_filter);
      outer->value = word(s);
      if (accept(s, "(")) outer->b = arguments(s);
    } else if (accept_word(s, "is")) {
      negated = accept_word(s, "not");
      outer = node(s, JN_test);
      outer->value = word(s);
      skip(s);
      static const char *const after[] = {"else", "or", "and", "is", "if", "in", "not"};
      bool ends = false;
      for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        ends = ends || peek_word(s, after[i]);
      if (accept(s, "("))
        outer->b = arguments(s);
      else if (!ends && s->at < s->end && (is_letter(*s->at) || strchr("'\"[{0123456789", *s->at)))
        outer->b = one_argument(s);
    } else {
      return n;
    }
    outer->a = n;
    n = outer;
    if (negated) {
      outer = node(s, JN_not);
      outer->a = n;
      n = outer;
    }
  }
}

static JinjaNode *unary(JinjaLexer *s, bool filters) {
  JinjaNode *n;
  enter(s);
  skip(s);
  if (accept(s, "-")) {
    n = node(s, JN_neg);
    n->a = unary(s, false);
  } else if (accept(s, "+")) {
    n = unary(s, false);
  } else {
    n = primary(s);
  }
  n = postfix(s, n);
  if (filters) n = filters_and_tests(s, n);
  s->depth--;
  return n;
}

/* Operator levels, loosest first; longer operators before their prefixes. */
static JinjaNode *operators(JinjaLexer *s, u32 level) {
  static const char *const ops[][7] = {{"==", "!=", "<=", ">=", "<", ">", NULL},
                                       {"+", "-", NULL},
                                       {"~", NULL},
                                       {"*", "//", "/", "%", NULL},
                                       {"**", NULL}};
  if (level == sizeof ops / sizeof *ops) return unary(s, true);
  JinjaNode *n = operators(s, level + 1);
  for (bool more = true; more;) {
    const char *found = NULL;
    skip(s);
    if (level == 3 && starts(s, "**")) break;
    for (u32 i = 0; ops[level][i] && !found; i++)
      if (accept(s, ops[level][i])) found = ops[level][i];
    if (!found && level == 0) {
      const char *at = s->at;
      bool negated = accept_word(s, "not");
      if (accept_word(s, "in"))
        found = negated ? "not in" : "in";
      else
        s->at = at;
    }
    more = found != NULL;
    if (!more) break;
    JinjaNode *outer = node(s, JN_binary);
    outer->value = jinja_plain(found);
    outer->a = n;
    outer->b = operators(s, level + 1);
    n = outer;
  }
  return n;
}

static JinjaNode *negation(JinjaLexer *s) {
  if (!accept_word(s, "not")) return operators(s, 0);
  enter(s);
  JinjaNode *n = node(s, JN_not);
  n->a = negation(s);
  s->depth--;
  return n;
}

static JinjaNode *logic(JinjaLexer *s, bool either) {
  JinjaNode *n = either ? logic(s, false) : negation(s);
  while (accept_word(s, either ? "or" : "and")) {
    JinjaNode *outer = node(s, either ? JN_or : JN_and);
    outer->a = n;
    outer->b = either ? logic(s, false) : negation(s);
    n = outer;
  }
  return n;
}

static JinjaNode *expression(JinjaLexer *s) {
  enter(s);
  JinjaNode *n = logic(s, true);
  while (accept_word(s, "if")) {
    JinjaNode *outer = node(s, JN_cond);
    outer->b = n;
    outer->a = logic(s, true);
    if (accept_word(s, "else")) outer->c = expression(s);
    n = outer;
  }
  s->depth--;
  return n;
}

static JinjaNode *statements(JinjaLexer *s, const char *const *until);

static void close_tag(JinjaLexer *s, const char *close) {
  skip(s);
  bool minus = starts(s, "-"), plus = starts(s, "+");
  s->at += minus || plus;
  if (!starts(s, close)) bad(s, "expected the end of the tag");
  s->at += 2;
  const char *from = s->at;
  if (minus)
    while (s->at < s->end && is_space(*s->at)) s->at++;
  else if (!plus && close[0] != '}' && s->at < s->end && *s->at == '\n')
    s->at++;
  count_lines(s, from, s->at);
  s->line_starts = s->at > from && s->at[-1] == '\n';
}

static void close_block(JinjaLexer *s) {
  close_tag(s, "%}");
}

/* Targets `a` or `a, b`: names, or attributes of a name. */
static JinjaNode *targets(JinjaLexer *s) {
  JinjaNode *first = NULL, **last = &first;
  bool round = accept(s, "(");
  do {
    JinjaNode *n = node(s, JN_name);
    n->value = word(s);
    if (accept(s, ".")) {
      JinjaNode *attr = node(s, JN_attr);
      attr->a = n;
      attr->value = word(s);
      n = attr;
    }
    *last = n;
    last = &n->next;
  } while (accept(s, ","));
  if (round) expect(s, ")");
  return first;
}

static JinjaNode *if_statement(JinjaLexer *s) {
  static const char *const until[] = {"elif", "else", "endif", NULL};
  JinjaNode *n = node(s, JN_if);
  enter(s);
  n->a = expression(s);
  close_block(s);
  n->b = statements(s, until);
  if (accept_word(s, "elif")) {
    n->c = if_statement(s);
  } else {
    if (accept_word(s, "else")) {
      close_block(s);
      n->c = statements(s, until + 2);
    }
    if (!accept_word(s, "endif")) bad(s, "'endif' is missing");
    close_block(s);
  }
  s->depth--;
  return n;
}

static JinjaNode *for_statement(JinjaLexer *s) {
  static const char *const until[] = {"else", "endfor", NULL};
  JinjaNode *n = node(s, JN_for);
  bool in_loop = s->in_loop;
  n->a = targets(s);
  if (!accept_word(s, "in")) bad(s, "expected 'in'");
  n->b = logic(s, true);
  if (accept_word(s, "if")) n->e = expression(s);
  if (peek_word(s, "recursive")) bad(s, "recursive loops are not supported");
  close_block(s);
  s->in_loop = true;
  n->c = statements(s, until);
  s->in_loop = in_loop;
  if (accept_word(s, "else")) {
    close_block(s);
    n->d = statements(s, until + 1);
  }
  if (!accept_word(s, "endfor")) bad(s, "'endfor' is missing");
  close_block(s);
  return n;
}

static JinjaNode *set_statement(JinjaLexer *s) {
  static const char *const until[] = {"endset", NULL};
  JinjaNode *n = node(s, JN_set);
  n->a = targets(s);
  if (accept(s, "=")) {
    n->b = expression(s);
    if (accept(s, ",")) bad(s, "tuples need parentheses here");
    close_block(s);
    return n;
  }
  if (accept(s, "|")) {
    n->d = node(s, JN_filter);
    n->d->value = word(s);
    if (accept(s, "(")) n->d->b = arguments(s);
  }
  close_block(s);
  n->c = statements(s, until);
  if (!accept_word(s, "endset")) bad(s, "'endset' is missing");
  close_block(s);
  return n;
}

static JinjaNode *macro_statement(JinjaLexer *s) {
  static const char *const until[] = {"endmacro", NULL};
  JinjaNode *n = node(s, JN_macro), **last = &n->a;
  bool in_loop = s->in_loop;
  n->value = word(s);
  expect(s, "(");
  while (!accept(s, ")")) {
    JinjaNode *p = node(s, JN_argument);
    p->value = word(s);
    if (accept(s, "=")) p->a = expression(s);
    *last = p;
    last = &p->next;
    if (!accept(s, ",")) {
      expect(s, ")");
      break;
    }
  }
  close_block(s);
  s->in_loop = false;
  n->c = statements(s, until);
  s->in_loop = in_loop;
  if (!accept_word(s, "endmacro")) bad(s, "'endmacro' is missing");
  word_length(s);
  if (!at_close(s)) word(s);
  close_block(s);
  return n;
}

/* {% filter f %} ... {% endfilter %}; {% generation %} only marks an answer */
static JinjaNode *body_statement(JinjaLexer *s, const char *end, bool filter) {
  const char *const until[] = {end, NULL};
  JinjaNode *n = node(s, JN_body);
  if (filter) {
    n->a = node(s, JN_filter);
    n->a->value = word(s);
    if (accept(s, "(")) n->a->b = arguments(s);
  }
  close_block(s);
  n->c = statements(s, until);
  if (!accept_word(s, end)) bad(s, "expected the end of the block");
  close_block(s);
  return n;
}

static JinjaNode *statement(JinjaLexer *s) {
  JinjaNode *n;
  if (accept_word(s, "if")) return if_statement(s);
  if (accept_word(s, "for")) return for_statement(s);
  if (accept_word(s, "set")) return set_statement(s);
  if (accept_word(s, "macro")) return macro_statement(s);
  if (accept_word(s, "generation")) return body_statement(s, "endgeneration", false);
  if (accept_word(s, "filter")) return body_statement(s, "endfilter", true);
  bool leave = s->in_loop && accept_word(s, "break");
  if (!leave && !(s->in_loop && accept_word(s, "continue"))) bad(s, "unknown statement");
  n = node(s, leave ? JN_break : JN_continue);
  close_block(s);
  return n;
}

/* Text up to the next tag, without stripped white space; NULL if empty. */
static JinjaNode *data(JinjaLexer *s) {
  const char *from = s->at, *to = from;
  while (to < s->end &&
         !(*to == '{' && s->end - to > 1 && (to[1] == '%' || to[1] == '{' || to[1] == '#')))
    to++;
  JinjaNode *n = node(s, JN_data);
  count_lines(s, from, to);
  s->at = to;
  bool tag = to < s->end, minus = tag && s->end - to > 2 && to[2] == '-';
  bool plus = tag && s->end - to > 2 && to[2] == '+';
  if (minus) {
    while (to > from && is_space(to[-1])) to--;
  } else if (tag && !plus && to[1] != '{') {
    const char *line = to;
    while (line > from && is_space(line[-1]) && line[-1] != '\n') line--;
    if ((line > from && line[-1] == '\n') || (line == from && (s->line_starts || from == s->start)))
      to = line;
  }
  n->value = (JinjaVal){.kind = JK_string, .s = {.at = from, .n = (u32)(to - from)}};
  return to > from ? n : NULL;
}

static void comment(JinjaLexer *s) {
  const char *p = s->at + 2;
  while (s->end - p > 1 && !(p[0] == '#' && p[1] == '}')) p++;
  if (s->end - p < 2) bad(s, "the comment does not end");
  count_lines(s, s->at, p);
  s->at = p[-1] == '-' || p[-1] == '+' ? p - 1 : p;
  close_tag(s, "#}");
}

/* Statements up to a block that starts with one of the words, which stays unread; NULL: to the
 * end. */
static JinjaNode *statements(JinjaLexer *s, const char *const *until) {
  JinjaNode *first = NULL, **last = &first;
  enter(s);
  for (;;) {
    JinjaNode *n = data(s);
    if (n) *last = n, last = &n->next;
    if (s->at == s->end) {
      if (until) bad(s, "the block does not end");
      break;
    }
    char kind = s->at[1];
    if (kind == '#') {
      comment(s);
      continue;
    }
    s->at += 2;
    if (s->at < s->end && (*s->at == '-' || *s->at == '+')) s->at++;
    if (kind == '{') {
      n = node(s, JN_print);
      n->a = expression(s);
      close_tag(s, "}}");
    } else {
      bool ends = false;
      for (u32 i = 0; until && until[i]; i++) ends = ends || peek_word(s, until[i]);
      if (ends) break;
      n = statement(s);
    }
    *last = n;
    last = &n->next;
  }
  s->depth--;
  return first;
}

JinjaNode *jinja_parse(Jinja *j, const char *at, size_t n) {
  StrBuf t = sb_new(j->a);
  if (n > 1 << 24) jinja_fail(j, ERR_unsupported, "the template has more than 16 MB");
  for (size_t i = 0; i < n; i++) { /* normalize line ends */
    if (at[i] == '\r' && i + 1 < n && at[i + 1] == '\n') continue;
    sb_put(&t, at[i] == '\r' ? "\n" : &at[i], 1);
  }
  if (t.n && t.at[t.n - 1] == '\n') t.n--;
  if (!t.n) return NULL;
  JinjaLexer s = {.j = j, .at = t.at, .start = t.at, .end = t.at + t.n, .line = 1};
  return statements(&s, NULL);
}
