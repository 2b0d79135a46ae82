/* lang.h: programs of the language (docs/language.md), from text to a checked tree.
 *
 * A text becomes tokens, these a tree of Ast in c->work, and the checker finds out what every name
 * means and which type every expression has. Errors are diags with line, column, the line itself
 * and a caret below it; all of a file are found in one go. Nothing here runs anything.
 */
#ifndef INGOT_LANG_H
#define INGOT_LANG_H

#include "ir/ir.h"

typedef struct Script Script;     /* a text, its tokens and its tree: a program or a module */
typedef struct Token Token;       /* some bytes of the text */
typedef struct Ast Ast;           /* a statement or expression */
typedef struct LangType LangType; /* of a value, as far as it is known before the run */
typedef struct VarRef VarRef;     /* where a name may be found while it runs */
typedef struct LangFn LangFn;     /* what is known of a function */
typedef struct Capture Capture;
typedef struct StructInfo StructInfo; /* a struct of the program */
typedef struct ScopeNames ScopeNames; /* see check.h */
typedef VEC(u32) SlotBinds;
typedef VEC(Script *) Scripts;
typedef struct BuiltinInfo BuiltinInfo; /* row of builtins.def */

typedef enum Tok {
#define TOK(name, text) TOK_##name,
#include "front/lang/tokens.def"
#undef TOK
  TOK_COUNT
} Tok;
extern const char *const tok_text[TOK_COUNT];

struct Token {
  Tok kind;
  u32 at, n;  /* bytes of the text */
  bool first; /* on its line */
};

typedef enum AstKind {
#define AST(name, text) AST_##name,
#include "front/lang/ast.def"
#undef AST
  AST_COUNT
} AstKind;

/* Types. KD_none: of what never has a value, or has not been looked at; KD_any: the run will tell.
 */
typedef enum LangKind {
#define KIND(name, text) KD_##name,
#include "front/lang/kinds.def"
#undef KIND
  KD_COUNT
} LangKind;
extern const char *const kind_name[KD_COUNT]; /* as type() tells */

enum { TYPE_DEPTH = 8 }; /* of arrays in arrays; what is deeper is any */

struct LangType {
  LangKind kind;
  const LangType *elem;  /* of an array; result of a function */
  const LangType **item; /* of a tuple; parameters of a function */
  u32 n;
  bool shaped;      /* a tensor whose shape is known */
  u32 rank;         /* of it */
  const i64 *dim;   /* -1: not known */
  const Str *name;  /* of dimensions that are symbols, or NULL: there are none */
  const LangFn *fn; /* KD_fn: the one it is, where that is known */
  const StructInfo *of;
  Script *module;
  const Ast *model; /* KD_object: of a model, where that is known */
  bool made;        /* it is an object of that, not the model itself */
  char role;        /* KD_object: its letter in signatures, see BuiltinInfo; 0: not known */
};

typedef enum VarRefKind { VR_local, VR_global, VR_self } VarRefKind;
struct VarRef {
  VarRefKind kind;
  u32 slot;
  u32 file; /* VR_global: number of the Script */
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

/* A variable of the functions around it that a function takes along, by value, when it is defined.
 */
struct Capture {
  Str name;
  u32 slot;
  const VarRef *from; /* in the function around it */
  u32 nfrom;
};

struct LangFn {
  Ast *ast;
  u32 nslot;
  VEC(Capture) capture;
  const LangType *result;
  bool declared;  /* result was written down */
  LangType self;  /* KD_fn */
  SlotBinds last; /* for the checker: by slot, what held there when it was walked before */
  /* from who runs it */
  u32 calls;   /* that were walked */
  u32 scanned; /* the last search for calls that came by */
};

/* Fields by kind: see ast.def. */
struct Ast {
  AstKind kind;
  Tok op;
  u32 file;   /* number of its Script */
  u32 at;     /* byte of the text that messages point at */
  u32 height; /* of the tree below it */
  Str name;
  i64 i;
  double f;
  Ast *a, *b, *c;
  Ast **kid;
  u32 nkid;
  /* from the checker */
  const LangType *type; /* of its value */
  const LangType *to;   /* what its value becomes; NULL: it stays */
  u32 bind;             /* its variable, for the checker alone */
  u32 slot, nslot;      /* of what it defines; of a scope: the first and how many */
  const VarRef *place;  /* where a name is looked for, in this order */
  u32 nplace;
  i32 builtin; /* of a call: 1 + its row; 0: none */
  LangFn *fn;
  const StructInfo *of; /* of a struct, and of a record */
  Script *module;       /* of an import; NULL: a network */
  /* from who runs it, of a loop */
  bool dropped; /* nobody looks at its value */
  u32 hot;      /* 1 + its number among those that are counted; 0: none yet */
};

struct Script {
  Ctx *c;
  Str file;
  const char *at; /* a zero behind it */
  u32 n;
  VEC(Token) token; /* without comments, ended by TOK_end */
  VEC(Token) comment;
  VEC(u32) newline; /* where lines end */
  u32 nerror;
  Ast *root;    /* a block */
  LangFn *main; /* that holds the statements of the file */
  u32 number;   /* in `all` */
  Scripts *all; /* the program, number 0, and its modules */
  Str real;     /* its path without links, of a module */
  /* for the checker: names of the file; by slot, the binding of all that is ever put there, if
   * functions or other files see it */
  ScopeNames *names;
  SlotBinds shared;
  Map defined; /* AstKind and Str -> 1 + statement of root: structs, models, imports */
  bool walked;
};

/* Signatures: a letter for each argument, then ':' and the result.
 *   T tensor  A array  n number  N number or tensor  X tensor or array  C what has a length
 *   i integer  b boolean  s string  F function  v anything
 *   o object, of which y layer  g m r optimiser (sgd, adam, rmsprop)  l tensor that is a loss
 * ? before an argument: it and those behind it may be left out; * before ':': any number of them.
 * Results are these and: f float  I D L arrays of integers, floats, tensors  _ nothing
 *   N as the first  = the kind of number that all arguments are; of a tensor, which stands alone, a
 * float ~ a tensor if the first is one, else a float ! behind the result: nothing else comes of a
 * call, so one that drops it is warned of. */
typedef enum ShapeRule {
#define SHAPE(name) SH_##name,
#include "front/lang/shapes.def"
#undef SHAPE
} ShapeRule;
struct BuiltinInfo {
  const char *name, *sig;
  const char *args; /* what they are called, for messages and for arguments by name */
  ShapeRule shape;
};
extern const BuiltinInfo builtin_info[];
extern const u32 builtin_count;

typedef struct LayerInfo { /* row of layers.def */
  const char *name, *make; /* make: a built-in function; NULL: none */
  u32 least, most;         /* sizes */
} LayerInfo;
extern const LayerInfo layer_info[];
extern const u32 layer_count;
extern const char *const activation_name[];
extern const u32 activation_count;

/* lex.c */
/* With its tokens; all: of the program that it is a module of, NULL: it is one itself. */
Script *script_new(Ctx *c, Str file, const char *at, size_t n, Scripts *all);
/* Records an error at a byte of the text; hint may be NULL. */
void script_error(Script *s, u32 at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same as a text: FILE:LINE:COLUMN: what, the line, a caret. In c->work. */
const char *script_place(const Script *s, u32 at, const char *what, const char *hint);
u32 script_line(const Script *s, u32 at);

/* parse.c */
enum { LANG_DEPTH = 200, LANG_HEIGHT = 1200 }; /* of what stands in each other; of trees */
void script_parse(Script *s);

/* parse_expr.c */
typedef struct Parser {
  Script *s;
  u32 at; /* token */
  u32 depth;
  bool panic; /* an error has been told, up to the next statement all is quiet */
} Parser;
Ast *parse_expr(Parser *p);
Ast *parse_type(Parser *p);
Ast *parse_block(Parser *p);                /* parse.c */
Ast *parse_fn(Parser *p, Str name, u32 at); /* parse.c: from its parameters on */
Ast *ast_new(Parser *p, AstKind kind, u32 at);
typedef VEC(Ast *) Asts;
void ast_set_kids(Parser *p, Ast *n, const Asts *kids);
void ast_set_height(Parser *p, Ast *n); /* its height, when all below it is there */
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
bool parse_is_module(Ctx *c, const Ast *import); /* parse.c: by the name of its file */

/* types.c */
extern const LangType type_any, type_null, type_int, type_float, type_bool, type_string, type_none,
    type_tensor_any, type_object;
const LangType *type_array(Arena *a, const LangType *elem);
const LangType *type_join(Arena *a, const LangType *x, const LangType *y);
bool type_same(const LangType *x, const LangType *y);
bool struct_same(const StructInfo *x, const StructInfo *y);
u32 struct_field(const StructInfo *s, Str name); /* s->n: there is none */
/* May a value of type x be where one of type y is wanted, as it is or as what it becomes? */
bool type_assignable(const LangType *x, const LangType *y);
/* May one variable hold both in turn? Losses are floats or tensors, so numbers and tensors are of
 * one kind here. */
bool type_compatible(const LangType *x, const LangType *y);
const char *lang_type_text(Ctx *c, const LangType *t); /* in c->scratch */

/* check.c */
void script_check(Script *s); /* with its modules */
/* names.c */
i32 builtin_find(const char *name); /* its row; -1: there is none */

/* format.c: the same program, laid out anew. */
void script_format(const Script *s, StrBuf *out);

#endif
