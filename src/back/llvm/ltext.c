/* ltext.c: expressions of C text as values of LLVM.
 *
 * In: the text of mathlib*.h, a part of C: numbers of 32 and 64 bits, float and double, pointers to
 * them as parameters, constant tables. Out: the same operations in the same order, so the bits are
 * those of the compiled text. Method: recursive descent by precedence; a variable is a place in
 * memory, of which passes make values.
 */
#include "back/llvm/ltext.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void ct_fail(CText *r, const char *what) {
  bug(r->g->c, LOC_NONE, "%s in the text of functions, at '%.30s'", what, r->word);
}

/* ---- tokens ---- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Conditions of the preprocessor ask for a compiler: none is there, so what follows #else holds. */
static void skip_condition(CText *r) {
  bool out = r->at[1] == 'i' || (r->at[1] == 'e' && r->at[2] == 'l' && r->at[3] == 'i');
  do {
    while (r->at < r->end && *r->at != '\n') r->at++;
    while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
    if (r->at < r->end && *r->at == '#')
      out = r->at[1] == 'e' && r->at[2] == 'l' && r->at[3] == 'i';
  } while (out && r->at < r->end);
}

static void skip_space(CText *r) {
  while (r->at < r->end) {
    if (isspace((unsigned char)*r->at)) {
      r->at++;
    } else if (r->at[0] == '/' && r->at[1] == '*') {
      r->at += 2;
      while (r->at + 1 < r->end && (r->at[0] != '*' || r->at[1] != '/')) r->at++;
      r->at += 2;
    } else if (*r->at == '#') {
      skip_condition(r);
    } else {
      return;
    }
  }
}

void ct_next(CText *r) {
  static const char *const signs[] = {"<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
                                      "++",  "--",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
  skip_space(r);
  r->word = r->at;
  if (r->at >= r->end) {
    r->n = 0;
    return;
  }
  bool number = isdigit((unsigned char)*r->at);
  if (number || is_word(*r->at)) {
    while (r->at < r->end &&
           (is_word(*r->at) || (number && *r->at == '.') ||
            (number && (*r->at == '-' || *r->at == '+') && (r->at[-1] == 'p' || r->at[-1] == 'P'))))
      r->at++;
  } else {
    size_t n = 1;
    for (u32 i = 0; i < sizeof signs / sizeof *signs && n == 1; i++)
      if (!strncmp(r->at, signs[i], strlen(signs[i]))) n = strlen(signs[i]);
    r->at += n;
  }
  r->n = (size_t)(r->at - r->word);
}

bool ct_is(const CText *r, const char *word) {
  return r->n == strlen(word) && !memcmp(r->word, word, r->n);
}

bool ct_take(CText *r, const char *word) {
  bool is = ct_is(r, word);
  if (is) ct_next(r);
  return is;
}

void ct_need(CText *r, const char *word) {
  if (!ct_take(r, word)) ct_fail(r, word);
}

/* ---- types ---- */

bool ct_type(CText *r, TextType *t) {
  static const struct {
    const char *name;
    TextBase base;
  } types[] = {{"void", TB_void},    {"int", TB_i32},      {"unsigned", TB_u32},
               {"int32_t", TB_i32},  {"uint32_t", TB_u32}, {"int64_t", TB_i64},
               {"uint64_t", TB_u64}, {"float", TB_f32},    {"double", TB_f64}};
  ct_take(r, "const");
  for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
    if (!ct_take(r, types[i].name)) continue;
    *t = (TextType){types[i].base, ct_take(r, "*")};
    return true;
  }
  return false;
}

static LType base_type(CText *r, TextBase b) {
  if (b >= TB_f32) return lt_real(r->g, b == TB_f64);
  return lt_int(r->g, b >= TB_i64 ? 64 : 32);
}

LType ct_llvm(CText *r, TextType t) {
  LType base = t.base == TB_void ? r->g->l->LLVMVoidTypeInContext(r->g->unit->context)
                                 : base_type(r, t.base);
  return t.pointer ? lt_pointer(r->g, base) : base;
}

static bool is_signed(TextBase b) {
  return b == TB_i32 || b == TB_i64;
}

static TextValue value(LVal v, TextBase b) {
  return (TextValue){v, {b, false}, false};
}

static LVal load(CText *r, TextValue x) {
  return x.place ? lv_load(r->g, ct_llvm(r, x.t), x.v, 0) : x.v;
}

static LVal convert(CText *r, LVal v, TextBase from, TextBase to) {
  LType t = base_type(r, to);
  if (from == to) return v;
  if (from >= TB_f32 && to >= TB_f32)
    return lv_cast(r->g, to > from ? LLVMFPExt : LLVMFPTrunc, v, t);
  if (from >= TB_f32) return lv_cast(r->g, is_signed(to) ? LLVMFPToSI : LLVMFPToUI, v, t);
  if (to >= TB_f32) return lv_cast(r->g, is_signed(from) ? LLVMSIToFP : LLVMUIToFP, v, t);
  bool wide = from >= TB_i64, wider = to >= TB_i64;
  if (wide == wider) return v;
  return lv_cast(r->g, wide ? LLVMTrunc : is_signed(from) ? LLVMSExt : LLVMZExt, v, t);
}

LVal ct_as(CText *r, TextValue x, TextType t) {
  LVal v = load(r, x);
  return x.t.pointer || t.pointer ? v : convert(r, v, x.t.base, t.base);
}

LVal ct_truth(CText *r, TextValue x) {
  LVal v = load(r, x);
  if (x.t.base >= TB_f32)
    return lv_fcmp(r->g, LLVMRealUNE, v, lv_real(r->g, x.t.base == TB_f64, 1, 0));
  return lv_icmp(r->g, LLVMIntNE, v, lv_int(r->g, x.t.base >= TB_i64 ? 64 : 32, 1, 0));
}

static TextValue of_truth(CText *r, LVal bit) {
  return value(lv_cast(r->g, LLVMZExt, bit, lt_int(r->g, 32)), TB_i32);
}

/* ---- operands ---- */

void ct_name(CText *r, TextName name) {
  *vec_push(&r->g->c->scratch, &r->name) = name;
}

static TextValue number(CText *r) {
  char text[64];
  if (r->n >= sizeof text) ct_fail(r, "a long number");
  memcpy(text, r->word, r->n);
  text[r->n] = 0;
  bool hex = text[0] == '0' && text[1] == 'x', real = strpbrk(text, hex ? ".pP" : ".eE") != NULL;
  bool u = strpbrk(text, "uU") != NULL, single = real && text[r->n - 1] == 'f';
  ct_next(r);
  if (real)
    return value(
        lv_real(r->g, !single, 1, single ? (double)strtof(text, NULL) : strtod(text, NULL)),
        single ? TB_f32 : TB_f64);
  u64 x = strtoull(text, NULL, 0);
  TextBase b = x <= INT32_MAX && !u            ? TB_i32
               : x <= UINT32_MAX && (u || hex) ? TB_u32
               : x <= INT64_MAX && !u          ? TB_i64
                                               : TB_u64;
  return value(lv_int(r->g, b >= TB_i64 ? 64 : 32, 1, (i64)x), b);
}

static TextValue unary(CText *r);
static TextValue binary(CText *r, u32 least);

/* Functions that are one instruction, if the machine has it. */
static bool special(CText *r, const char *name, size_t n, const TextValue *arg, TextValue *out) {
  static const struct {
    const char *name;
    TextBase from, to;
  } bits[] = {{"imk_f32", TB_u32, TB_f32},
              {"imk_u32", TB_f32, TB_u32},
              {"imk_f64", TB_u64, TB_f64},
              {"imk_u64", TB_f64, TB_u64}};
  for (u32 i = 0; i < 4; i++) {
    if (strlen(bits[i].name) != n || memcmp(bits[i].name, name, n) != 0) continue;
    LVal v = ct_as(r, arg[0], (TextType){bits[i].from, false});
    *out = value(lv_cast(r->g, LLVMBitCast, v, base_type(r, bits[i].to)), bits[i].to);
    return true;
  }
  bool single = n > 3 && name[n - 1] == 'f' && !memcmp(name, "im_fmaf", n < 7 ? n : 7);
  bool fma = (n == 7 && single) || (n == 6 && !memcmp(name, "im_fma", 6));
  if (!fma || !has_feature(r->g, "fma")) return false;
  TextType t = {single ? TB_f32 : TB_f64, false};
  LVal v[3];
  for (u32 i = 0; i < 3; i++) v[i] = ct_as(r, arg[i], t);
  *out = value(gen_fma(r->g, v[0], v[1], v[2]), t.base);
  return true;
}

static TextValue call(CText *r, const char *name, size_t n) {
  TextValue arg[8], out;
  LVal v[8];
  LType t[8];
  u32 count = 0;
  ct_need(r, "(");
  while (!ct_take(r, ")")) {
    if (count == 8) ct_fail(r, "too many arguments");
    arg[count++] = binary(r, 0);
    ct_take(r, ",");
  }
  if (special(r, name, n, arg, &out)) return out;
  Str s = str_intern(r->g->c, name, n);
  for (u32 i = 0; i < r->function.n; i++) {
    const TextFunction *f = &r->function.at[i];
    if (f->name != s) continue;
    if (f->n != count) ct_fail(r, "other arguments");
    for (u32 k = 0; k < count; k++) {
      t[k] = ct_llvm(r, f->param[k]);
      v[k] = ct_as(r, arg[k], f->param[k]);
    }
    LVal fn = r->g->l->LLVMGetNamedFunction(r->g->unit->module, str_text(r->g->c, s));
    LType type = r->g->l->LLVMFunctionType(ct_llvm(r, f->result), t, count, 0);
    return (TextValue){r->g->l->LLVMBuildCall2(r->g->unit->builder, type, fn, v, count, ""),
                       f->result, false};
  }
  ct_fail(r, "an unknown function");
}

static TextValue primary(CText *r) {
  if (isdigit((unsigned char)*r->word)) return number(r);
  if (ct_take(r, "(")) {
    TextValue x = ct_expr(r);
    ct_need(r, ")");
    return x;
  }
  const char *name = r->word;
  size_t n = r->n;
  ct_next(r);
  if (ct_is(r, "(")) return call(r, name, n);
  for (u32 i = r->name.n; i-- > 0;) {
    const TextName *x = &r->name.at[i];
    if (x->n == n && !memcmp(x->at, name, n)) return (TextValue){x->place, x->t, !x->table};
  }
  ct_fail(r, "an unknown name");
}

static TextValue element(CText *r, TextValue array, LVal by) {
  LType t = base_type(r, array.t.base);
  LVal at = load(r, array);
  at = r->g->l->LLVMBuildInBoundsGEP2(r->g->unit->builder, t, at, &by, 1, "");
  return (TextValue){at, {array.t.base, false}, true};
}

static LVal wide_index(CText *r, TextValue x) {
  return ct_as(r, x, (TextType){TB_i64, false});
}

static TextValue calculate(CText *r, const char *op, TextValue a, TextValue b);

static TextValue step(CText *r, TextValue x, const char *op) {
  TextValue one = value(lv_int(r->g, 32, 1, 1), TB_i32), was = value(load(r, x), x.t.base);
  lv_store(r->g, ct_as(r, calculate(r, op, x, one), x.t), x.v, 0);
  return was;
}

static TextValue postfix(CText *r) {
  TextValue x = primary(r);
  for (;;) {
    if (ct_take(r, "[")) {
      x = element(r, x, wide_index(r, ct_expr(r)));
      ct_need(r, "]");
    } else if (ct_take(r, "++")) {
      x = step(r, x, "+");
    } else if (ct_take(r, "--")) {
      x = step(r, x, "-");
    } else {
      return x;
    }
  }
}

/* Is what stands in the parenthesis a type? */
static bool is_cast(const CText *r) {
  CText ahead = *r;
  TextType t;
  if (!ct_is(r, "(")) return false;
  ct_next(&ahead);
  return ct_type(&ahead, &t) && ct_is(&ahead, ")");
}

static TextValue unary(CText *r) {
  TextType t;
  if (is_cast(r)) {
    ct_next(r);
    ct_type(r, &t);
    ct_need(r, ")");
    return (TextValue){ct_as(r, unary(r), t), t, false};
  }
  if (ct_take(r, "-")) {
    TextValue x = unary(r);
    LVal v = load(r, x);
    if (x.t.base >= TB_f32)
      return value(r->g->l->LLVMBuildFNeg(r->g->unit->builder, v, ""), x.t.base);
    return value(lv_bin(r->g, LLVMSub, r->g->l->LLVMConstNull(base_type(r, x.t.base)), v),
                 x.t.base);
  }
  if (ct_take(r, "~")) {
    TextValue x = unary(r);
    LVal ones = lv_int(r->g, x.t.base >= TB_i64 ? 64 : 32, 1, -1);
    return value(lv_bin(r->g, LLVMXor, load(r, x), ones), x.t.base);
  }
  if (ct_take(r, "!")) {
    LVal bit = ct_truth(r, unary(r));
    return of_truth(r, lv_bin(r->g, LLVMXor, bit, lv_int(r->g, 1, 1, 1)));
  }
  if (ct_take(r, "&")) {
    TextValue x = unary(r);
    return (TextValue){x.v, {x.t.base, true}, false};
  }
  if (ct_take(r, "*")) {
    TextValue x = unary(r);
    return (TextValue){load(r, x), {x.t.base, false}, true};
  }
  return postfix(r);
}

/* ---- operators ---- */

static const struct TextOp {
  const char *sign;
  u32 level; /* binds closer the higher */
  LLVMOpcode s, u, f;
  LLVMIntPredicate ps, pu;
  LLVMRealPredicate pf;
} text_ops[] = {
    {"*", 10, LLVMMul, LLVMMul, LLVMFMul, 0, 0, 0},
    {"/", 10, LLVMSDiv, LLVMUDiv, LLVMFDiv, 0, 0, 0},
    {"%", 10, LLVMSRem, LLVMURem, 0, 0, 0, 0},
    {"+", 9, LLVMAdd, LLVMAdd, LLVMFAdd, 0, 0, 0},
    {"-", 9, LLVMSub, LLVMSub, LLVMFSub, 0, 0, 0},
    {"<<", 8, LLVMShl, LLVMShl, 0, 0, 0, 0},
    {">>", 8, LLVMAShr, LLVMLShr, 0, 0, 0, 0},
    {"<", 7, 0, 0, 0, LLVMIntSLT, LLVMIntULT, LLVMRealOLT},
    {"<=", 7, 0, 0, 0, LLVMIntSLE, LLVMIntULE, LLVMRealOLE},
    {">", 7, 0, 0, 0, LLVMIntSGT, LLVMIntUGT, LLVMRealOGT},
    {">=", 7, 0, 0, 0, LLVMIntSGE, LLVMIntUGE, LLVMRealOGE},
    {"==", 6, 0, 0, 0, LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ},
    {"!=", 6, 0, 0, 0, LLVMIntNE, LLVMIntNE, LLVMRealUNE},
    {"&", 5, LLVMAnd, LLVMAnd, 0, 0, 0, 0},
    {"^", 4, LLVMXor, LLVMXor, 0, 0, 0, 0},
    {"|", 3, LLVMOr, LLVMOr, 0, 0, 0, 0},
    {"&&", 2, 0, 0, 0, 0, 0, 0},
    {"||", 1, 0, 0, 0, 0, 0, 0},
};

static const struct TextOp *find_op(const char *sign, size_t n) {
  for (u32 i = 0; i < sizeof text_ops / sizeof *text_ops; i++)
    if (strlen(text_ops[i].sign) == n && !memcmp(text_ops[i].sign, sign, n)) return &text_ops[i];
  return NULL;
}

static TextValue calculate(CText *r, const char *sign, TextValue a, TextValue b) {
  const struct TextOp *o = find_op(sign, strlen(sign));
  if (a.t.pointer) {
    TextValue at = element(r, a, wide_index(r, b));
    return (TextValue){at.v, a.t, false};
  }
  bool shift = o->level == 8;
  TextType t = {shift || a.t.base > b.t.base ? a.t.base : b.t.base, false};
  LVal x = ct_as(r, a, t), y = ct_as(r, b, t);
  bool real = t.base >= TB_f32, s = is_signed(t.base);
  if (o->pf) {
    LVal bit = real ? lv_fcmp(r->g, o->pf, x, y) : lv_icmp(r->g, s ? o->ps : o->pu, x, y);
    return of_truth(r, bit);
  }
  return (TextValue){lv_bin(r->g, real ? o->f : s ? o->s : o->u, x, y), t, false};
}

static LLVMBasicBlockRef block(CText *r, const char *name) {
  return r->g->l->LLVMAppendBasicBlockInContext(r->g->unit->context, r->g->fn, name);
}

/* The second operand is looked at only if the first does not tell. */
static TextValue logical(CText *r, TextValue a, const struct TextOp *o) {
  LLVMBuilderRef b = r->g->unit->builder;
  bool both = o->level == 2;
  LVal place = lv_place(r->g, lt_int(r->g, 1)), first = ct_truth(r, a);
  LLVMBasicBlockRef more = block(r, "more"), end = block(r, "end");
  lv_store(r->g, first, place, 0);
  r->g->l->LLVMBuildCondBr(b, first, both ? more : end, both ? end : more);
  r->g->l->LLVMPositionBuilderAtEnd(b, more);
  lv_store(r->g, ct_truth(r, binary(r, o->level + 1)), place, 0);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, end);
  return of_truth(r, lv_load(r->g, lt_int(r->g, 1), place, 0));
}

static TextValue choice(CText *r, TextValue c) {
  LLVMBuilderRef b = r->g->unit->builder;
  LLVMBasicBlockRef yes = block(r, "yes"), no = block(r, "no"), end = block(r, "end");
  r->g->l->LLVMBuildCondBr(b, ct_truth(r, c), yes, no);
  r->g->l->LLVMPositionBuilderAtEnd(b, yes);
  TextValue x = ct_expr(r);
  x = (TextValue){load(r, x), x.t, false};
  LLVMBasicBlockRef yes_end = r->g->l->LLVMGetInsertBlock(b);
  ct_need(r, ":");
  r->g->l->LLVMPositionBuilderAtEnd(b, no);
  TextValue y = binary(r, 0);
  TextType t = {x.t.base > y.t.base ? x.t.base : y.t.base, false};
  LVal w = ct_as(r, y, t);
  LLVMBasicBlockRef no_end = r->g->l->LLVMGetInsertBlock(b);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, yes_end);
  LVal v = ct_as(r, x, t);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, end);
  LVal phi = r->g->l->LLVMBuildPhi(b, ct_llvm(r, t), "");
  r->g->l->LLVMAddIncoming(phi, (LVal[]){v, w}, (LLVMBasicBlockRef[]){yes_end, no_end}, 2);
  return (TextValue){phi, t, false};
}

/* Operators of that level and closer ones; level 0: choices too. */
static TextValue binary(CText *r, u32 least) {
  TextValue a = unary(r);
  const struct TextOp *o;
  while ((o = find_op(r->word, r->n)) && o->level >= (least ? least : 1)) {
    ct_next(r);
    if (o->level < 3) {
      a = logical(r, a, o);
      continue;
    }
    if (a.place && !a.t.pointer) a = value(load(r, a), a.t.base);
    TextValue b = binary(r, o->level + 1);
    a = calculate(r, o->sign, a, b);
  }
  return !least && ct_take(r, "?") ? choice(r, a) : a;
}

TextValue ct_expr(CText *r) {
  TextValue a = binary(r, 0);
  char op[4] = "";
  bool assigns = ct_is(r, "=") || (r->n > 1 && r->word[r->n - 1] == '=' && !find_op(r->word, r->n));
  if (!assigns) return a;
  memcpy(op, r->word, r->n - 1);
  ct_next(r);
  TextValue b = ct_expr(r);
  if (*op) b = calculate(r, op, value(load(r, a), a.t.base), b);
  LVal v = ct_as(r, b, a.t);
  lv_store(r->g, v, a.v, 0);
  return (TextValue){v, a.t, false};
}
