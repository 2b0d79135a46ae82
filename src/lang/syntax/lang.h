/* lang.h: the front end of the language (docs/language.md), from text to a checked AST.
 *
 * The lexer makes tokens, the parser an AST in c->work, and the checker resolves names and types.
 * Errors are diags with line, column, the source line and a caret. One run reports all errors of a
 * file. This folder does not run programs.
 */
#ifndef INGOT_LANG_H
#define INGOT_LANG_H

#include "ir/ir.h"

typedef struct Script Script;     /* a program or module: text, tokens and AST */
typedef struct Token Token;       /* a range of bytes in the text */
typedef struct Ast Ast;           /* a statement or expression */
typedef struct LangType LangType; /* static type of a value */
typedef struct VarRef VarRef;     /* a possible location of a variable at run time */
typedef struct LangFn LangFn;     /* facts that the checker knows about a function */
typedef struct Capture Capture;
typedef struct StructInfo StructInfo; /* a struct definition */
typedef struct ScopeNames ScopeNames; /* see check.h */
typedef VEC(u32) SlotBinds;
typedef VEC(Script *) Scripts;
typedef struct BuiltinInfo BuiltinInfo; /* row of builtins.def */

typedef enum Tok {
#define TOK(name, text) TOK_##name,
#include "lang/syntax/tokens.def"
#undef TOK
  TOK_COUNT
} Tok;
extern const char *const tok_text[TOK_COUNT];
static inline bool tok_compares(Tok op) {
  return op == TOK_lt || op == TOK_le || op == TOK_gt || op == TOK_ge || op == TOK_eq ||
         op == TOK_ne;
}

struct Token {
  Tok kind;
  u32 at, n;  /* offset and length in the text */
  bool first; /* first on its line */
};

typedef enum AstKind {
#define AST(name, text) AST_##name,
#include "lang/syntax/ast.def"
#undef AST
  AST_COUNT
} AstKind;

/* Types. KD_none: never has a value, or not checked yet. KD_any: known only at run time. */
typedef enum LangKind {
#define KIND(name, text) KD_##name,
#include "lang/syntax/kinds.def"
#undef KIND
  KD_COUNT
} LangKind;
extern const char *const kind_name[KD_COUNT]; /* as type() returns */

enum { TYPE_DEPTH = 8 }; /* nesting of array types; deeper ones are `any` */

struct LangType {
  LangKind kind;
  const LangType *elem;  /* element of an array; result of a function */
  const LangType **item; /* elements of a tuple; parameters of a function */
  u32 n;
  bool shaped; /* a tensor of known shape */
  u32 rank;
  const i64 *dim;   /* -1: unknown extent */
  const Str *name;  /* names of symbolic dimensions; NULL: none */
  const LangFn *fn; /* KD_fn: the function, if known */
  const StructInfo *of;
  Script *module;
  const Ast *model; /* KD_object: its model, if known */
  bool made;        /* an instance of the model, not the model itself */
  char role;        /* KD_object: its letter in signatures, see BuiltinInfo; 0: unknown */
};

typedef enum VarRefKind { VR_local, VR_global, VR_self } VarRefKind;
struct VarRef {
  VarRefKind kind;
  u32 slot;
  u32 file; /* VR_global: index of the Script */
};

struct StructInfo {
  Str name;
  const char *text; /* the name */
  u32 file, n;
  const Str *field;
  Map by_name; /* Str -> 1 + field */
  const LangType **type;
  LangType self; /* KD_struct */
};

/* A variable of an enclosing function, captured by value when the inner function is defined. */
struct Capture {
  Str name;
  u32 slot;
  const VarRef *from; /* locations in the enclosing function */
  u32 nfrom;
};

struct LangFn {
  Ast *ast;
  u32 nslot;
  VEC(Capture) capture;
  const LangType *result;
  bool declared;              /* result type is annotated */
  LangType self;              /* KD_fn */
  SlotBinds last;             /* checker: by slot, the binding of the last visit */
  const struct RegCode *code; /* set by the evaluator: its register code, or NULL */
};

/* Use of the fields by kind: see ast.def. */
struct Ast {
  AstKind kind;
  Tok op;
  u32 file;   /* index of its Script */
  u32 at;     /* offset in the text, for messages */
  u32 height; /* of the subtree */
  Str name;
  i64 i;
  double f;
  Ast *a, *b, *c;
  Ast **kid;
  u32 nkid;
  /* set by the checker */
  const LangType *type; /* of its value */
  const LangType *to;   /* type to convert the value to; NULL: no conversion */
  u32 bind;             /* binding; for the checker only */
  u32 slot, nslot;      /* slot of what it defines; of a scope: first slot and count */
  const VarRef *place;  /* where to look for a name, in this order */
  u32 nplace;
  i32 builtin; /* of a call: 1 + row of builtins.def; 0: not a built-in */
  LangFn *fn;
  const StructInfo *of; /* of a struct or record */
  Script *module;       /* of an import; NULL: a network */
};

struct Script {
  Ctx *c;
  Str file;
  const char *at; /* NUL-terminated */
  u32 n;
  VEC(Token) token; /* without comments, ended by TOK_end */
  VEC(Token) comment;
  VEC(u32) newline; /* offsets of line ends */
  u32 nerror;
  Ast *root;    /* a block */
  LangFn *main; /* holds the top-level statements */
  u32 number;   /* index in `all` */
  Scripts *all; /* the program (0) and its modules */
  Str real;     /* of a module: its path with links resolved */
  /* for the checker: top-level names; by slot, one binding for all values ever stored there, if
   * functions or other files see the variable */
  ScopeNames *names;
  SlotBinds shared;
  Map defined; /* AstKind and Str -> 1 + statement of root: structs, models, imports */
  bool walked;
};

/* Signatures: one letter per argument, then ':' and the result.
 *   T tensor  A array  n number  N number or tensor  X tensor or array  C has a length
 *   i integer  b boolean  s string  F function  v anything
 *   o object: y layer  g m r optimizer (sgd, adam, rmsprop)  l tensor that is a loss
 * ? before an argument: this and all later arguments are optional. * before ':': variadic.
 * Results are these letters and:
 *   f float  I D L arrays of integers, floats, tensors  _ none  N type of the first argument
 *   = common number type of all arguments; float for a single tensor
 *   ~ tensor if the first argument is one, else float
 * ! after the result: the call has no other effect, so the checker warns if it is unused. */
typedef enum ShapeRule {
#define SHAPE(name) SH_##name,
#include "lang/syntax/shapes.def"
#undef SHAPE
} ShapeRule;
struct BuiltinInfo {
  const char *name, *sig;
  const char *args; /* names of arguments, for messages and named arguments */
  ShapeRule shape;
};
extern const BuiltinInfo builtin_info[];
extern const u32 builtin_count;

typedef struct LayerInfo { /* a row of layers.def */
  const char *name, *make; /* make: a built-in function, or NULL */
  u32 min, max;            /* number of sizes */
} LayerInfo;
extern const LayerInfo layer_info[];
extern const u32 layer_count;
extern const char *const activation_name[];
extern const u32 activation_count;

/* lex.c */
/* Reads the tokens. all: the program that this module belongs to; NULL for the program itself. */
Script *script_new(Ctx *c, Str file, const char *at, size_t n, Scripts *all);
/* Records an error at an offset in the text. hint may be NULL. */
void script_error(Script *s, u32 at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The message text of an error: FILE:LINE:COLUMN: what, the line, a caret. In c->work. */
const char *script_place(const Script *s, u32 at, const char *what, const char *hint);
u32 script_line(const Script *s, u32 at);

/* parse.c */
enum { LANG_DEPTH = 200, LANG_HEIGHT = 1200 }; /* nesting in the source; height of the AST */
void script_parse(Script *s);

/* parse_expr.c */
typedef struct Parser {
  Script *s;
  u32 at; /* index of the current token */
  u32 depth;
  bool panic; /* suppress errors until the next statement */
} Parser;
Ast *parse_expr(Parser *p);
Ast *parse_type(Parser *p);
Ast *parse_block(Parser *p);                /* parse.c */
Ast *parse_fn(Parser *p, Str name, u32 at); /* parse.c: starts at the parameters */
Ast *ast_new(Parser *p, AstKind kind, u32 at);
typedef VEC(Ast *) Asts;
void ast_set_kids(Parser *p, Ast *n, const Asts *kids);
void ast_set_height(Parser *p, Ast *n); /* once its children are complete */
const Token *parse_peek(const Parser *p);
bool parse_is(const Parser *p, Tok kind);
bool parse_accept(Parser *p, Tok kind);
bool parse_is_keyword(const Parser *p, const char *word);
void parse_expect(Parser *p, Tok kind, const char *where);
void parse_error(Parser *p, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
Str parse_name(Parser *p, const char *what); /* an identifier, or an error */
void parse_deeper(Parser *p);
bool parse_too_deep(Parser *p);
bool parse_is_module(Ctx *c, const Ast *import); /* parse.c: by file extension */

/* types.c */
extern const LangType type_any, type_null, type_int, type_float, type_bool, type_string, type_none,
    type_tensor_any, type_object;
const LangType *type_array(Arena *a, const LangType *elem);
const LangType *type_join(Arena *a, const LangType *x, const LangType *y);
bool type_same(const LangType *x, const LangType *y);
bool struct_same(const StructInfo *x, const StructInfo *y);
u32 struct_field(const StructInfo *s, Str name); /* s->n if there is none */
/* True if a value of type x can be stored as type y, with a conversion if needed. */
bool type_assignable(const LangType *x, const LangType *y);
/* True if one variable may hold both. Losses are floats or tensors, so numbers and tensors are
 * compatible. */
bool type_compatible(const LangType *x, const LangType *y);
const char *lang_type_text(Ctx *c, const LangType *t); /* in c->scratch */

/* check.c */
void script_check(Script *s); /* including its modules */
/* names.c */
i32 builtin_find(const char *name); /* row of builtins.def, or -1 */

/* format.c */
void script_format(const Script *s, StrBuf *out);

#endif
