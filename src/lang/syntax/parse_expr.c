/* parse_expr.c: parses expressions and types.
 *
 * In: tokens. Out: ASTs. Method: precedence climbing (Pratt) with the table of levels below; calls,
 * indices and members bind tightest. After an error the parser is silent until the next statement:
 * each function returns what it has, and loops end because they test `panic`.
 */
#include "lang/syntax/lang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Precedence of binary operators, from loose to tight; all are left-associative. */
static const u8 level[TOK_COUNT] = {
    [TOK_and] = 1,  [TOK_and2] = 1, [TOK_or] = 1,      [TOK_or2] = 1, [TOK_range] = 2,
    [TOK_upto] = 2, [TOK_as] = 3,   [TOK_eq] = 4,      [TOK_ne] = 4,  [TOK_lt] = 5,
    [TOK_le] = 5,   [TOK_gt] = 5,   [TOK_ge] = 5,      [TOK_add] = 6, [TOK_sub] = 6,
    [TOK_mul] = 7,  [TOK_div] = 7,  [TOK_mod] = 7,     [TOK_at] = 8,  [TOK_lpar] = 10,
    [TOK_lsq] = 11, [TOK_dot] = 11, [TOK_lbrace] = 11,
};
enum { PREFIX = 9 };

const Token *parse_peek(const Parser *p) {
  return &p->s->token.at[p->at];
}

bool parse_is(const Parser *p, Tok kind) {
  return parse_peek(p)->kind == kind;
}

static const Token *next(Parser *p) {
  const Token *t = parse_peek(p);
  if (t->kind != TOK_end) p->at++;
  return t;
}

bool parse_accept(Parser *p, Tok kind) {
  if (!parse_is(p, kind)) return false;
  next(p);
  return true;
}

bool parse_is_keyword(const Parser *p, const char *word) {
  const Token *t = parse_peek(p);
  return t->kind == TOK_name && t->n == strlen(word) && !memcmp(p->s->at + t->at, word, t->n);
}

void parse_error(Parser *p, const char *hint, const char *fmt, ...) {
  if (p->panic) return;
  StrBuf t = sb_new(&p->s->c->work);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  script_error(p->s, parse_peek(p)->at, hint, "%s", sb_cstr(&t));
  p->panic = true;
}

static const char *found(const Parser *p) {
  const Token *t = parse_peek(p);
  StrBuf s = sb_new(&p->s->c->work);
  if (t->kind == TOK_end) return "the end of the file";
  sb_fmt(&s, "'%.*s'", (int)(t->n < 40 ? t->n : 40), p->s->at + t->at);
  return sb_cstr(&s);
}

void parse_expect(Parser *p, Tok kind, const char *where) {
  if (parse_accept(p, kind)) return;
  Tok is = parse_peek(p)->kind;
  const char *hint = NULL;
  if (kind == TOK_lbrace && is == TOK_set) hint = "== compares";
  if (kind == TOK_lbrace && is == TOK_colon) hint = "write a block in { }";
  if (kind == TOK_lbrace && is == TOK_else) hint = "if c { a } else { b } is a value, too";
  if (kind == TOK_rpar && is == TOK_set) hint = "an argument is given by name as in f(x, lr: 0.1)";
  parse_error(p, hint, "expected '%s' %s, found %s", tok_text[kind], where, found(p));
}

Str parse_name(Parser *p, const char *what) {
  const Token *t = parse_peek(p);
  if (parse_accept(p, TOK_name)) return str_intern(p->s->c, p->s->at + t->at, t->n);
  const char *hint = t->kind >= TOK_let && t->kind <= TOK_not ? "this word is reserved" : NULL;
  parse_error(p, hint, "expected %s, found %s", what, found(p));
  return 0;
}

void parse_deeper(Parser *p) {
  p->depth++;
}

bool parse_too_deep(Parser *p) {
  if (p->depth < LANG_DEPTH) return false;
  parse_error(p, "give parts of it a name", "nested more than %d deep", LANG_DEPTH);
  return true;
}

Ast *ast_new(Parser *p, AstKind kind, u32 at) {
  Ast *n = NEW(&p->s->c->work, Ast);
  n->kind = kind;
  n->file = p->s->number;
  n->at = at;
  return n;
}

/* Limits the height: left-leaning trees are as high as the expression is long, and visitors
 * recurse. */
void ast_set_height(Parser *p, Ast *n) {
  u32 high = 0;
  Ast *part[] = {n->a, n->b, n->c};
  for (u32 i = 0; i < 3; i++)
    if (part[i] && part[i]->height > high) high = part[i]->height;
  for (u32 i = 0; i < n->nkid; i++)
    if (n->kid[i]->height > high) high = n->kid[i]->height;
  n->height = high + 1;
  if (n->height <= LANG_HEIGHT) return;
  parse_error(p, "give parts of it a name", "the expression is too long");
  n->height = 0;
}

void ast_set_kids(Parser *p, Ast *n, const Asts *kids) {
  n->nkid = kids->n;
  n->kid = NEWS(&p->s->c->work, Ast *, kids->n + 1);
  for (u32 i = 0; i < kids->n; i++) n->kid[i] = kids->at[i];
}

static void push_node(Parser *p, Asts *list, Ast *n) {
  *vec_push(&p->s->c->work, list) = n;
}

/* tensor < type , [ extents ] >; the word has been read */
static void tensor_type(Parser *p, Ast *n) {
  Asts dims = {0};
  if (!parse_accept(p, TOK_lt)) return;
  n->a = parse_type(p);
  n->i = 1;
  parse_expect(p, TOK_comma, "between type and shape of a tensor");
  parse_expect(p, TOK_lsq, "before the shape of a tensor");
  while (!p->panic && !parse_is(p, TOK_rsq)) {
    Ast *d = ast_new(p, AST_tname, parse_peek(p)->at);
    const Token *t = parse_peek(p);
    if (parse_accept(p, TOK_int)) {
      d->kind = AST_int;
      d->i = strtoll(p->s->at + t->at, NULL, 10);
    } else {
      d->name = parse_name(p, "an extent: a number or a name");
    }
    push_node(p, &dims, d);
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rsq, "after the shape of a tensor");
  parse_expect(p, TOK_gt, "after the type of a tensor");
  if (dims.n > MAX_RANK) parse_error(p, NULL, "a tensor has at most %d dimensions", MAX_RANK);
  ast_set_kids(p, n, &dims);
}

static void type_list(Parser *p, Ast *n, const char *where) {
  Asts list = {0};
  while (!p->panic && !parse_is(p, TOK_rpar)) {
    push_node(p, &list, parse_type(p));
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rpar, where);
  ast_set_kids(p, n, &list);
}

static Ast *array_type(Parser *p, u32 at) {
  Ast *n = ast_new(p, AST_tarray, at);
  n->a = parse_type(p);
  if (parse_accept(p, TOK_semi) && !parse_accept(p, TOK_int))
    parse_error(p, NULL, "expected the number of elements, found %s", found(p));
  parse_expect(p, TOK_rsq, "after the type of an array");
  return n;
}

static Ast *plain_type(Parser *p) {
  u32 at = parse_peek(p)->at;
  if (parse_accept(p, TOK_lsq)) return array_type(p, at);
  if (parse_accept(p, TOK_lpar)) {
    Ast *n = ast_new(p, AST_ttuple, at);
    type_list(p, n, "after the types of a tuple");
    return n;
  }
  if (parse_accept(p, TOK_fn)) {
    Ast *n = ast_new(p, AST_tfn, at);
    parse_expect(p, TOK_lpar, "in the type of a function");
    type_list(p, n, "in the type of a function");
    if (parse_accept(p, TOK_arrow)) n->a = parse_type(p);
    return n;
  }
  if (parse_is_keyword(p, "gradient")) { /* gradient<T> is T */
    parse_name(p, "a type");
    parse_expect(p, TOK_lt, "after 'gradient'");
    Ast *of = parse_type(p);
    parse_expect(p, TOK_gt, "after the type of a gradient");
    return of;
  }
  bool tensor = parse_is_keyword(p, "tensor");
  Ast *n = ast_new(p, tensor ? AST_ttensor : AST_tname, at);
  n->name = parse_name(p, "a type");
  if (tensor) tensor_type(p, n);
  if (!tensor && parse_accept(p, TOK_dot)) { /* in a module */
    n->a = ast_new(p, AST_name, at);
    n->a->name = n->name;
    n->name = parse_name(p, "a type of the module");
  }
  return n;
}

Ast *parse_type(Parser *p) {
  if (parse_too_deep(p)) return ast_new(p, AST_tname, parse_peek(p)->at);
  p->depth++;
  Ast *n = plain_type(p);
  p->depth--;
  return n;
}

static void escape(Parser *p, const Token *t, u32 *i, StrBuf *to) {
  static const char from[] = "ntr0\"\\", what[] = "\n\t\r\0\"\\";
  const char *s = p->s->at + t->at;
  char ch = s[*i + 1];
  const char *k = ch ? strchr(from, ch) : NULL;
  if (k)
    sb_put(to, &what[k - from], 1);
  else
    sb_put(to, s + *i, 2); /* unknown escapes stay two characters */
  *i += 2;
}

static Ast *string(Parser *p) {
  const Token *t = next(p);
  Ast *n = ast_new(p, AST_string, t->at);
  StrBuf s = sb_new(&p->s->c->work);
  u32 end = t->n > 1 ? t->n - 1 : t->n; /* an unterminated string was already reported */
  for (u32 i = 1; i < end;) {
    if (p->s->at[t->at + i] == '\\' && i + 1 < end)
      escape(p, t, &i, &s);
    else
      sb_put(&s, p->s->at + t->at + i++, 1);
  }
  n->name = str_intern(p->s->c, s.at, s.n);
  return n;
}

static Ast *number(Parser *p) {
  const Token *t = parse_peek(p);
  Ast *n = ast_new(p, t->kind == TOK_int ? AST_int : AST_float, t->at);
  errno = 0;
  if (n->kind == AST_int) n->i = strtoll(p->s->at + t->at, NULL, 10);
  if (errno == ERANGE)
    parse_error(p, "integers have 64 bits; a float has a point in it",
                "the number is too large for an integer");
  if (n->kind == AST_float) n->f = strtod(p->s->at + t->at, NULL);
  next(p);
  return n;
}

/* [ ] , [ value ; times ] , [ value , ... ] */
static Ast *array(Parser *p) {
  Asts list = {0};
  Ast *n = ast_new(p, AST_array, next(p)->at);
  while (!p->panic && !parse_is(p, TOK_rsq)) {
    push_node(p, &list, parse_expr(p));
    if (list.n == 1 && parse_accept(p, TOK_semi)) {
      n->kind = AST_repeat;
      n->a = list.at[0];
      n->b = parse_expr(p);
      break;
    }
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rsq, "after the elements of an array");
  if (n->kind == AST_array) ast_set_kids(p, n, &list);
  return n;
}

/* ( ) , ( value ) , ( value , ... ) */
static Ast *paren(Parser *p) {
  Asts list = {0};
  Ast *n = ast_new(p, AST_tuple, next(p)->at);
  bool comma = false;
  while (!p->panic && !parse_is(p, TOK_rpar)) {
    push_node(p, &list, parse_expr(p));
    if (!parse_accept(p, TOK_comma)) break;
    comma = true;
  }
  parse_expect(p, TOK_rpar, "after what stands in parentheses");
  if (list.n == 1 && !comma) return list.at[0];
  ast_set_kids(p, n, &list);
  return n;
}

static Ast *pattern(Parser *p) {
  const Token *t = parse_peek(p);
  bool minus = parse_accept(p, TOK_sub);
  Ast *n = NULL;
  if (parse_is(p, TOK_int) || parse_is(p, TOK_float)) {
    n = number(p);
    n->i = minus ? -n->i : n->i;
    n->f = minus ? -n->f : n->f;
    return n;
  }
  if (!minus && parse_is(p, TOK_string)) return string(p);
  if (!minus && (parse_is(p, TOK_true) || parse_is(p, TOK_false))) {
    n = ast_new(p, AST_bool, t->at);
    n->i = next(p)->kind == TOK_true;
    return n;
  }
  if (parse_is_keyword(p, "_")) {
    next(p);
    return NULL;
  }
  n = ast_new(p, AST_name, t->at);
  n->name = parse_name(p, "a pattern: a number, a string, true, false, a name or _");
  return n;
}

static Ast *match(Parser *p) {
  Asts arms = {0};
  Ast *n = ast_new(p, AST_match, next(p)->at);
  n->a = parse_expr(p);
  parse_expect(p, TOK_lbrace, "before the arms of a match");
  while (!p->panic && !parse_is(p, TOK_rbrace)) {
    Ast *arm = ast_new(p, AST_arm, parse_peek(p)->at);
    arm->a = pattern(p);
    parse_expect(p, TOK_fat, "after a pattern");
    arm->b = parse_is(p, TOK_lbrace) ? parse_block(p) : parse_expr(p);
    push_node(p, &arms, arm);
    parse_accept(p, TOK_comma);
  }
  if (!arms.n) parse_error(p, "a match has at least one arm", "a match without arms");
  parse_expect(p, TOK_rbrace, "after the arms of a match");
  ast_set_kids(p, n, &arms);
  return n;
}

/* ---- if as an expression ---- */

static Ast *if_expr(Parser *p) {
  Ast *n = ast_new(p, AST_if, next(p)->at);
  n->a = parse_expr(p);
  n->b = parse_block(p);
  if (!parse_accept(p, TOK_else))
    parse_error(p, "an if that is used as a value has an else", "expected 'else', found %s",
                found(p));
  else if (parse_is(p, TOK_if) && !parse_too_deep(p))
    p->depth++, n->c = if_expr(p), p->depth--;
  else
    n->c = parse_block(p);
  return n;
}

/* A hint for idioms of other languages, or NULL. */
static const char *hint_for(const Parser *p) {
  Tok is = parse_peek(p)->kind, was = p->at ? p->s->token.at[p->at - 1].kind : TOK_end;
  bool sign = was == TOK_add || was == TOK_sub || was == TOK_mul || was == TOK_div;
  if (is == TOK_dot) return "a float has a digit before the point";
  if (sign && is == TOK_set) return "x = x + 1 is how a variable is changed";
  if (was == TOK_add && is == TOK_add) return "x = x + 1 is how a variable is changed";
  if (was == TOK_mul && is == TOK_mul) return "pow(a, b) is a power";
  return NULL;
}

static Ast *primary(Parser *p) {
  const Token *t = parse_peek(p);
  switch (t->kind) {
  case TOK_int:
  case TOK_float: return number(p);
  case TOK_string: return string(p);
  case TOK_lsq: return array(p);
  case TOK_lpar: return paren(p);
  case TOK_if: return if_expr(p);
  case TOK_match: return match(p);
  case TOK_fn: next(p); return parse_fn(p, 0, t->at);
  case TOK_true:
  case TOK_false: {
    Ast *n = ast_new(p, AST_bool, t->at);
    n->i = next(p)->kind == TOK_true;
    return n;
  }
  default: break;
  }
  Ast *n = ast_new(p, AST_name, t->at);
  if (t->kind == TOK_name)
    n->name = parse_name(p, "a name");
  else
    parse_error(p, hint_for(p), "expected an expression, found %s", found(p));
  return n;
}

static Ast *parse_level(Parser *p, u32 min);

static Ast *unary(Parser *p) {
  const Token *t = parse_peek(p);
  if (t->kind != TOK_sub && t->kind != TOK_bang && t->kind != TOK_not) return primary(p);
  Ast *n = ast_new(p, AST_unary, next(p)->at);
  n->op = t->kind == TOK_bang ? TOK_not : t->kind;
  n->a = parse_level(p, PREFIX);
  return n;
}

/* name : value is an argument by name */
static Ast *argument(Parser *p) {
  const Token *t = parse_peek(p);
  if (t->kind != TOK_name || p->s->token.at[p->at + 1].kind != TOK_colon) return parse_expr(p);
  Ast *n = ast_new(p, AST_named, t->at);
  n->name = parse_name(p, "a name");
  next(p);
  n->a = parse_expr(p);
  return n;
}

static Ast *call(Parser *p, Ast *what) {
  Asts list = {0};
  Ast *n = ast_new(p, AST_call, what->at);
  next(p);
  n->a = what;
  while (!p->panic && !parse_is(p, TOK_rpar)) {
    push_node(p, &list, argument(p));
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rpar, "after the arguments of a call");
  ast_set_kids(p, n, &list);
  return n;
}

/* .0 or .name; the lexer reads the .0.1 of t.0.1 as a float. */
static Ast *member(Parser *p, Ast *what) {
  next(p);
  const Token *t = parse_peek(p);
  Ast *n = ast_new(p, AST_item, t->at);
  n->a = what;
  if (parse_accept(p, TOK_int)) {
    n->i = strtoll(p->s->at + t->at, NULL, 10);
  } else if (t->kind == TOK_float && memchr(p->s->at + t->at, '.', t->n) &&
             !memchr(p->s->at + t->at, 'e', t->n) && !memchr(p->s->at + t->at, 'E', t->n)) {
    char *end;
    n->i = strtoll(p->s->at + t->at, &end, 10);
    Ast *outer = ast_new(p, AST_item, t->at);
    outer->a = n;
    outer->i = strtoll(end + 1, NULL, 10);
    next(p);
    return outer;
  } else {
    n->kind = AST_member;
    n->name = parse_name(p, "a number or a name after '.'");
  }
  return n;
}

/* NAME { field : is a record; anywhere else a brace opens a block. */
static bool begins_record(const Parser *p, const Ast *left) {
  const Token *t = &p->s->token.at[p->at];
  bool named = left->kind == AST_name || (left->kind == AST_member && left->a->kind == AST_name);
  return named && t[0].kind == TOK_lbrace && t[1].kind == TOK_name && t[2].kind == TOK_colon;
}

/* NAME { field: value, ... } */
static Ast *record(Parser *p, Ast *what) {
  Asts list = {0};
  Ast *n = ast_new(p, AST_record, what->at);
  next(p);
  n->a = what;
  while (!p->panic && !parse_is(p, TOK_rbrace)) {
    Ast *x = ast_new(p, AST_named, parse_peek(p)->at);
    x->name = parse_name(p, "the name of a field");
    parse_expect(p, TOK_colon, "after the name of a field");
    x->a = parse_expr(p);
    ast_set_height(p, x);
    push_node(p, &list, x);
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rbrace, "after the fields of a struct");
  ast_set_kids(p, n, &list);
  return n;
}

/* True if an operator, call or index follows that binds tighter than `min`. */
static bool goes_on(const Parser *p, const Ast *left, u32 min) {
  if (p->panic || level[parse_peek(p)->kind] <= min) return false;
  return !parse_is(p, TOK_lbrace) || begins_record(p, left);
}

static Ast *infix(Parser *p, Ast *left) {
  const Token *t = parse_peek(p);
  switch (t->kind) {
  case TOK_lpar: return call(p, left);
  case TOK_dot: return member(p, left);
  case TOK_lbrace: return record(p, left);
  case TOK_lsq: {
    Ast *n = ast_new(p, AST_index, next(p)->at);
    n->a = left;
    n->b = parse_expr(p);
    parse_expect(p, TOK_rsq, "after an index");
    return n;
  }
  case TOK_as: {
    Ast *n = ast_new(p, AST_cast, next(p)->at);
    n->a = left;
    n->name = parse_name(p, "a type");
    return n;
  }
  default: break;
  }
  bool range = t->kind == TOK_range || t->kind == TOK_upto;
  Ast *n = ast_new(p, range ? AST_range : AST_binary, next(p)->at);
  n->op = t->kind == TOK_and2 ? TOK_and : t->kind == TOK_or2 ? TOK_or : t->kind;
  n->a = left;
  n->b = parse_level(p, level[t->kind]);
  return n;
}

static Ast *parse_level(Parser *p, u32 min) {
  if (parse_too_deep(p)) return ast_new(p, AST_name, parse_peek(p)->at);
  p->depth++;
  Ast *n = unary(p);
  ast_set_height(p, n);
  while (goes_on(p, n, min)) {
    n = infix(p, n);
    ast_set_height(p, n);
  }
  if (!p->panic) p->depth--;
  return n;
}

Ast *parse_expr(Parser *p) {
  u32 depth = p->depth;
  Ast *n = parse_level(p, 0);
  p->depth = depth;
  return n;
}
