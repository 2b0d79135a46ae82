/* parse.c: parses statements.
 *
 * In: the tokens of a script. Out: its AST. Method: recursive descent. After an error the parser
 * skips to the next statement: a token that is first on its line and starts a statement, or the
 * closing brace of the block. So one run finds the errors of all statements.
 */
#include "lang/syntax/lang.h"

#include <string.h>

static Ast *statement(Parser *p);

static void push(Parser *p, Asts *list, Ast *n) {
  *vec_push(&p->s->c->work, list) = n;
}

/* ---- after an error ---- */

/* Skips to a token that may start a statement. Blocks that open on the way are skipped. */
static void recover(Parser *p, u32 from) {
  u32 open = 0;
  p->panic = false;
  if (p->at == from && !parse_is(p, TOK_end) && !parse_is(p, TOK_rbrace)) p->at++;
  for (; !parse_is(p, TOK_end); p->at++) {
    const Token *t = parse_peek(p);
    bool begins = (t->kind >= TOK_let && t->kind <= TOK_continue && t->kind != TOK_else) ||
                  t->kind == TOK_name;
    if (t->first && begins && !open) return;
    if (t->kind == TOK_rbrace && !open) return;
    if (t->kind == TOK_semi && !open) {
      p->at++;
      return;
    }
    if (t->kind == TOK_lbrace) open++;
    if (t->kind == TOK_rbrace) open--;
  }
}

static void statements(Parser *p, Asts *list, Tok end) {
  while (!parse_is(p, end) && !parse_is(p, TOK_end)) {
    u32 from = p->at, depth = p->depth;
    Ast *n = statement(p);
    p->depth = depth;
    if (p->panic)
      recover(p, from);
    else if (n)
      push(p, list, n);
  }
}

Ast *parse_block(Parser *p) {
  Asts list = {0};
  Ast *n = ast_new(p, AST_block, parse_peek(p)->at);
  parse_expect(p, TOK_lbrace, "before a block");
  if (p->panic || parse_too_deep(p)) return n;
  p->depth++;
  statements(p, &list, TOK_rbrace);
  p->depth--;
  if (!parse_accept(p, TOK_rbrace)) {
    script_error(p->s, n->at, NULL, "the block does not end: '}' is missing");
    p->panic = true;
  }
  ast_set_kids(p, n, &list);
  ast_set_height(p, n);
  return n;
}

static Ast *let(Parser *p, u32 at) {
  Ast *n = ast_new(p, AST_let, at);
  if (parse_is_keyword(p, "mut") && p->s->token.at[p->at + 1].kind == TOK_name) p->at++;
  n->at = parse_peek(p)->at;
  n->name = parse_name(p, "the name of a variable");
  if (parse_accept(p, TOK_colon)) n->b = parse_type(p);
  parse_expect(p, TOK_set, "after the name of a variable");
  n->a = parse_expr(p);
  return n;
}

static Ast *parameter(Parser *p) {
  Ast *n = ast_new(p, AST_param, parse_peek(p)->at);
  n->name = parse_name(p, "the name of a parameter");
  if (parse_accept(p, TOK_colon)) n->a = parse_type(p);
  return n;
}

Ast *parse_fn(Parser *p, Str name, u32 at) {
  Asts params = {0};
  Ast *n = ast_new(p, AST_fn, at);
  n->name = name;
  parse_expect(p, TOK_lpar, "before the parameters of a function");
  while (!p->panic && !parse_is(p, TOK_rpar)) {
    push(p, &params, parameter(p));
    if (!parse_accept(p, TOK_comma)) break;
  }
  parse_expect(p, TOK_rpar, "after the parameters of a function");
  ast_set_kids(p, n, &params);
  if (parse_accept(p, TOK_arrow)) n->b = parse_type(p);
  n->a = parse_block(p);
  return n;
}

static Ast *if_stmt(Parser *p, u32 at) {
  Ast *n = ast_new(p, AST_if, at);
  n->a = parse_expr(p);
  n->b = parse_block(p);
  if (!parse_accept(p, TOK_else)) return n;
  if (parse_is(p, TOK_if) && !parse_too_deep(p)) {
    u32 inner = parse_peek(p)->at;
    p->at++;
    p->depth++;
    n->c = if_stmt(p, inner);
    p->depth--;
  } else {
    n->c = parse_block(p);
  }
  return n;
}

static Ast *loop(Parser *p, const Token *t) {
  Ast *n = ast_new(p, t->kind == TOK_for ? AST_for : AST_while, t->at);
  if (t->kind == TOK_for) {
    n->name = parse_name(p, "the name of the variable of the loop");
    if (!parse_is_keyword(p, "in"))
      parse_error(p, "for x in 0..10 { ... }", "expected 'in' after the variable of the loop");
    p->at += !p->panic;
  }
  if (!p->panic) n->a = parse_expr(p);
  if (!p->panic) n->b = parse_block(p);
  return n;
}

static Ast *return_stmt(Parser *p, u32 at) {
  Ast *n = ast_new(p, AST_return, at);
  if (!parse_is(p, TOK_semi) && !parse_is(p, TOK_rbrace) && !parse_is(p, TOK_end))
    n->a = parse_expr(p);
  return n;
}

/* expr, or expr = expr */
static Ast *expression(Parser *p) {
  Ast *left = parse_expr(p);
  const Token *t = parse_peek(p);
  if (p->panic || !parse_accept(p, TOK_set)) return left;
  Ast *n = ast_new(p, AST_set, t->at);
  const Ast *base = left;
  while (base->kind == AST_index || base->kind == AST_member) base = base->a;
  if (base->kind != AST_name) {
    p->at--;
    parse_error(p, "a variable, or an element of one, can be assigned to",
                "Invalid assignment target");
  }
  n->a = left;
  n->b = parse_expr(p);
  return n;
}

/* model NAME { layers { call call ... } } */
static Ast *model(Parser *p, u32 at) {
  Asts layers = {0};
  Ast *n = ast_new(p, AST_model, at);
  n->name = parse_name(p, "the name of the model");
  parse_expect(p, TOK_lbrace, "after the name of the model");
  bool inner = parse_is_keyword(p, "layers");
  if (inner) {
    p->at++;
    parse_expect(p, TOK_lbrace, "after 'layers'");
  }
  while (!p->panic && !parse_is(p, TOK_rbrace)) {
    Ast *layer = parse_expr(p);
    if (!p->panic && (layer->kind != AST_call || layer->a->kind != AST_name))
      parse_error(p, "such as dense(784, 128, activation: relu)", "expected a layer");
    push(p, &layers, layer);
    if (!parse_accept(p, TOK_comma)) parse_accept(p, TOK_semi);
  }
  if (inner) parse_expect(p, TOK_rbrace, "after the layers");
  parse_expect(p, TOK_rbrace, "after the model");
  ast_set_kids(p, n, &layers);
  return n;
}

/* import "FILE" as NAME */
static Ast *import(Parser *p, u32 at) {
  Ast *n = ast_new(p, AST_import, at);
  n->a = parse_expr(p);
  if (!p->panic && n->a->kind == AST_cast && n->a->a->kind == AST_string) {
    n->name = n->a->name;
    n->a = n->a->a;
  } else {
    parse_error(p, "import \"net.onnx\" as net, import \"file.ch\" as module",
                "expected a file and what it is called");
  }
  return n;
}

bool parse_is_module(Ctx *c, const Ast *import) {
  const char *path = str_text(c, import->a->name);
  return ends_with(path, ".ch") || ends_with(path, ".charl");
}

/* struct NAME { field: type, ... }; commas are optional and may be semicolons */
static Ast *structure(Parser *p, u32 at) {
  Asts fields = {0};
  Ast *n = ast_new(p, AST_struct, at);
  n->name = parse_name(p, "the name of the struct");
  parse_expect(p, TOK_lbrace, "after the name of the struct");
  while (!p->panic && !parse_is(p, TOK_rbrace)) {
    Ast *f = parameter(p);
    if (!p->panic && !f->a)
      parse_error(p, "such as x: float64", "expected ':' and a type after the name of a field");
    push(p, &fields, f);
    if (!parse_accept(p, TOK_comma)) parse_accept(p, TOK_semi);
  }
  if (!p->panic && !fields.n) parse_error(p, NULL, "a struct has at least one field");
  parse_expect(p, TOK_rbrace, "after the fields of a struct");
  ast_set_kids(p, n, &fields);
  return n;
}

static bool is_followed(const Parser *p, const char *word, Tok next) {
  return parse_is_keyword(p, word) && p->s->token.at[p->at + 1].kind == next;
}

static Ast *statement_by_kind(Parser *p) {
  const Token *t = parse_peek(p);
  if (is_followed(p, "model", TOK_name)) return p->at++, model(p, t->at);
  if (is_followed(p, "struct", TOK_name)) return p->at++, structure(p, t->at);
  if (is_followed(p, "import", TOK_string)) return p->at++, import(p, t->at);
  if (is_followed(p, "const", TOK_name)) return p->at++, let(p, t->at);
  if (t->kind < TOK_let || t->kind > TOK_continue || t->kind == TOK_match || t->kind == TOK_else)
    return expression(p);
  if (t->kind == TOK_fn && p->s->token.at[p->at + 1].kind != TOK_name) return expression(p);
  p->at++;
  switch (t->kind) {
  case TOK_let: return let(p, t->at);
  case TOK_return: return return_stmt(p, t->at);
  case TOK_if: return if_stmt(p, t->at);
  case TOK_for:
  case TOK_while: return loop(p, t);
  case TOK_fn: {
    u32 at = parse_peek(p)->at;
    Str name = parse_name(p, "the name of a function");
    return parse_fn(p, name, at);
  }
  default: return ast_new(p, t->kind == TOK_break ? AST_break : AST_continue, t->at);
  }
}

static Ast *statement(Parser *p) {
  if (parse_accept(p, TOK_semi)) return NULL;
  if (parse_is(p, TOK_rbrace)) {
    parse_error(p, NULL, "'}' without '{'");
    p->at++;
    return NULL;
  }
  if (parse_is(p, TOK_else)) {
    parse_error(p, NULL, "'else' without 'if'");
    return NULL;
  }
  Ast *n = statement_by_kind(p);
  ast_set_height(p, n);
  if (!p->panic) parse_accept(p, TOK_semi);
  return n;
}

void script_parse(Script *s) {
  Parser p = {.s = s};
  Asts list = {0};
  s->root = ast_new(&p, AST_block, 0);
  statements(&p, &list, TOK_end);
  ast_set_kids(&p, s->root, &list);
}
