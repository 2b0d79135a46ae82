/* lcparse.c: compiles C expressions to LLVM values.
 *
 * In: the text of mathlib*.h, a subset of C: 32-bit and 64-bit integers, float and double, pointers
 * to them as parameters, constant tables. Out: the same operations in the same order, hence the
 * same bits as compiled C. Method: recursive descent by precedence. Variables are allocas, which
 * LLVM promotes. */
#include "back/llvm/lcparse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void ct_fail(CParser *r, const char *what) {
  internal_error(r->g->c, LOC_NONE, "mathlib text: %s, at '%.30s'", what, r->word);
}

/* ---- tokens ---- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* Preprocessor conditions test for compilers, so all are false: the #else branch is used. */
static void skip_condition(CParser *r) {
  bool out = r->at[1] == 'i' || (r->at[1] == 'e' && r->at[2] == 'l' && r->at[3] == 'i');
  do {
    while (r->at < r->end && *r->at != '\n') r->at++;
    while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
    if (r->at < r->end && *r->at == '#')
      out = r->at[1] == 'e' && r->at[2] == 'l' && r->at[3] == 'i';
  } while (out && r->at < r->end);
}

static void skip_space(CParser *r) {
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

void ct_next(CParser *r) {
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

bool ct_is(const CParser *r, const char *word) {
  return r->n == strlen(word) && !memcmp(r->word, word, r->n);
}

bool ct_accept(CParser *r, const char *word) {
  bool is = ct_is(r, word);
  if (is) ct_next(r);
  return is;
}

void ct_expect(CParser *r, const char *word) {
  if (!ct_accept(r, word)) ct_fail(r, word);
}

/* ---- types ---- */

bool ct_type(CParser *r, CType *t) {
  static const struct {
    const char *name;
    CBaseType base;
  } types[] = {{"void", TB_void},    {"int", TB_i32},      {"unsigned", TB_u32},
               {"int32_t", TB_i32},  {"uint32_t", TB_u32}, {"int64_t", TB_i64},
               {"uint64_t", TB_u64}, {"float", TB_f32},    {"double", TB_f64}};
  ct_accept(r, "const");
  for (u32 i = 0; i < sizeof types / sizeof *types; i++) {
    if (!ct_accept(r, types[i].name)) continue;
    *t = (CType){types[i].base, ct_accept(r, "*")};
    return true;
  }
  return false;
}

static LType base_type(CParser *r, CBaseType b) {
  if (b >= TB_f32) return lt_real(r->g, b == TB_f64);
  return lt_int(r->g, b >= TB_i64 ? 64 : 32);
}

LType ct_llvm_type(CParser *r, CType t) {
  LType base = t.base == TB_void ? r->g->l->LLVMVoidTypeInContext(r->g->unit->context)
                                 : base_type(r, t.base);
  return t.pointer ? lt_pointer(r->g, base) : base;
}

static bool is_signed(CBaseType b) {
  return b == TB_i32 || b == TB_i64;
}

static CValue value(LVal v, CBaseType b) {
  return (CValue){v, {b, false}, false};
}

static LVal load(CParser *r, CValue x) {
  return x.place ? lv_load(r->g, ct_llvm_type(r, x.t), x.v, 0) : x.v;
}

static LVal convert(CParser *r, LVal v, CBaseType from, CBaseType to) {
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

LVal ct_convert(CParser *r, CValue x, CType t) {
  LVal v = load(r, x);
  return x.t.pointer || t.pointer ? v : convert(r, v, x.t.base, t.base);
}

LVal ct_truth(CParser *r, CValue x) {
  LVal v = load(r, x);
  if (x.t.base >= TB_f32)
    return lv_fcmp(r->g, LLVMRealUNE, v, lv_real(r->g, x.t.base == TB_f64, 1, 0));
  return lv_icmp(r->g, LLVMIntNE, v, lv_int(r->g, x.t.base >= TB_i64 ? 64 : 32, 1, 0));
}

static CValue of_truth(CParser *r, LVal bit) {
  return value(lv_cast(r->g, LLVMZExt, bit, lt_int(r->g, 32)), TB_i32);
}

/* ---- operands ---- */

void ct_declare(CParser *r, CName name) {
  *vec_push(&r->g->c->scratch, &r->name) = name;
}

static CValue number(CParser *r) {
  char text[64];
  if (r->n >= sizeof text) ct_fail(r, "number too long");
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
  CBaseType b = x <= INT32_MAX && !u            ? TB_i32
                : x <= UINT32_MAX && (u || hex) ? TB_u32
                : x <= INT64_MAX && !u          ? TB_i64
                                                : TB_u64;
  return value(lv_int(r->g, b >= TB_i64 ? 64 : 32, 1, (i64)x), b);
}

static CValue unary(CParser *r);
static CValue binary(CParser *r, u32 min_level);

/* Functions that are one instruction, if the machine has it. */
static bool special(CParser *r, const char *name, size_t n, const CValue *arg, CValue *out) {
  static const struct {
    const char *name;
    CBaseType from, to;
  } bits[] = {{"imk_f32", TB_u32, TB_f32},
              {"imk_u32", TB_f32, TB_u32},
              {"imk_f64", TB_u64, TB_f64},
              {"imk_u64", TB_f64, TB_u64}};
  for (u32 i = 0; i < 4; i++) {
    if (strlen(bits[i].name) != n || memcmp(bits[i].name, name, n) != 0) continue;
    LVal v = ct_convert(r, arg[0], (CType){bits[i].from, false});
    *out = value(lv_cast(r->g, LLVMBitCast, v, base_type(r, bits[i].to)), bits[i].to);
    return true;
  }
  bool single = n > 3 && name[n - 1] == 'f' && !memcmp(name, "im_fmaf", n < 7 ? n : 7);
  bool fma = (n == 7 && single) || (n == 6 && !memcmp(name, "im_fma", 6));
  if (!fma || !llvm_has_feature(r->g, "fma")) return false;
  CType t = {single ? TB_f32 : TB_f64, false};
  LVal v[3];
  for (u32 i = 0; i < 3; i++) v[i] = ct_convert(r, arg[i], t);
  *out = value(gen_fma(r->g, v[0], v[1], v[2]), t.base);
  return true;
}

static CValue call(CParser *r, const char *name, size_t n) {
  CValue arg[8], out;
  LVal v[8];
  LType t[8];
  u32 count = 0;
  ct_expect(r, "(");
  while (!ct_accept(r, ")")) {
    if (count == 8) ct_fail(r, "too many arguments");
    arg[count++] = binary(r, 0);
    ct_accept(r, ",");
  }
  if (special(r, name, n, arg, &out)) return out;
  Str s = str_intern(r->g->c, name, n);
  for (u32 i = 0; i < r->function.n; i++) {
    const CFunction *f = &r->function.at[i];
    if (f->name != s) continue;
    if (f->n != count) ct_fail(r, "wrong number of arguments");
    for (u32 k = 0; k < count; k++) {
      t[k] = ct_llvm_type(r, f->param[k]);
      v[k] = ct_convert(r, arg[k], f->param[k]);
    }
    LVal fn = r->g->l->LLVMGetNamedFunction(r->g->unit->module, str_text(r->g->c, s));
    LType type = r->g->l->LLVMFunctionType(ct_llvm_type(r, f->result), t, count, 0);
    return (CValue){r->g->l->LLVMBuildCall2(r->g->unit->builder, type, fn, v, count, ""), f->result,
                    false};
  }
  ct_fail(r, "unknown function");
}

static CValue primary(CParser *r) {
  if (isdigit((unsigned char)*r->word)) return number(r);
  if (ct_accept(r, "(")) {
    CValue x = ct_expr(r);
    ct_expect(r, ")");
    return x;
  }
  const char *name = r->word;
  size_t n = r->n;
  ct_next(r);
  if (ct_is(r, "(")) return call(r, name, n);
  for (u32 i = r->name.n; i-- > 0;) {
    const CName *x = &r->name.at[i];
    if (x->n == n && !memcmp(x->at, name, n)) return (CValue){x->place, x->t, !x->table};
  }
  ct_fail(r, "unknown name");
}

static CValue element(CParser *r, CValue array, LVal by) {
  LType t = base_type(r, array.t.base);
  LVal at = load(r, array);
  at = r->g->l->LLVMBuildInBoundsGEP2(r->g->unit->builder, t, at, &by, 1, "");
  return (CValue){at, {array.t.base, false}, true};
}

static LVal wide_index(CParser *r, CValue x) {
  return ct_convert(r, x, (CType){TB_i64, false});
}

static CValue calculate(CParser *r, const char *op, CValue a, CValue b);

static CValue step(CParser *r, CValue x, const char *op) {
  CValue one = value(lv_int(r->g, 32, 1, 1), TB_i32), was = value(load(r, x), x.t.base);
  lv_store(r->g, ct_convert(r, calculate(r, op, x, one), x.t), x.v, 0);
  return was;
}

static CValue postfix(CParser *r) {
  CValue x = primary(r);
  for (;;) {
    if (ct_accept(r, "[")) {
      x = element(r, x, wide_index(r, ct_expr(r)));
      ct_expect(r, "]");
    } else if (ct_accept(r, "++")) {
      x = step(r, x, "+");
    } else if (ct_accept(r, "--")) {
      x = step(r, x, "-");
    } else {
      return x;
    }
  }
}

/* Does the parenthesis contain a type? */
static bool is_cast(const CParser *r) {
  CParser ahead = *r;
  CType t;
  if (!ct_is(r, "(")) return false;
  ct_next(&ahead);
  return ct_type(&ahead, &t) && ct_is(&ahead, ")");
}

static CValue unary(CParser *r) {
  CType t;
  if (is_cast(r)) {
    ct_next(r);
    ct_type(r, &t);
    ct_expect(r, ")");
    return (CValue){ct_convert(r, unary(r), t), t, false};
  }
  if (ct_accept(r, "-")) {
    CValue x = unary(r);
    LVal v = load(r, x);
    if (x.t.base >= TB_f32)
      return value(r->g->l->LLVMBuildFNeg(r->g->unit->builder, v, ""), x.t.base);
    return value(lv_bin(r->g, LLVMSub, r->g->l->LLVMConstNull(base_type(r, x.t.base)), v),
                 x.t.base);
  }
  if (ct_accept(r, "~")) {
    CValue x = unary(r);
    LVal ones = lv_int(r->g, x.t.base >= TB_i64 ? 64 : 32, 1, -1);
    return value(lv_bin(r->g, LLVMXor, load(r, x), ones), x.t.base);
  }
  if (ct_accept(r, "!")) {
    LVal bit = ct_truth(r, unary(r));
    return of_truth(r, lv_bin(r->g, LLVMXor, bit, lv_int(r->g, 1, 1, 1)));
  }
  if (ct_accept(r, "&")) {
    CValue x = unary(r);
    return (CValue){x.v, {x.t.base, true}, false};
  }
  if (ct_accept(r, "*")) {
    CValue x = unary(r);
    return (CValue){load(r, x), {x.t.base, false}, true};
  }
  return postfix(r);
}

/* ---- operators ---- */

static const struct COp {
  const char *sign;
  u32 level; /* precedence: higher binds tighter */
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

static const struct COp *find_op(const char *sign, size_t n) {
  for (u32 i = 0; i < sizeof text_ops / sizeof *text_ops; i++)
    if (strlen(text_ops[i].sign) == n && !memcmp(text_ops[i].sign, sign, n)) return &text_ops[i];
  return NULL;
}

static CValue calculate(CParser *r, const char *sign, CValue a, CValue b) {
  const struct COp *o = find_op(sign, strlen(sign));
  if (a.t.pointer) {
    CValue at = element(r, a, wide_index(r, b));
    return (CValue){at.v, a.t, false};
  }
  bool shift = o->level == 8;
  CType t = {shift || a.t.base > b.t.base ? a.t.base : b.t.base, false};
  LVal x = ct_convert(r, a, t), y = ct_convert(r, b, t);
  bool real = t.base >= TB_f32, s = is_signed(t.base);
  if (o->pf) {
    LVal bit = real ? lv_fcmp(r->g, o->pf, x, y) : lv_icmp(r->g, s ? o->ps : o->pu, x, y);
    return of_truth(r, bit);
  }
  return (CValue){lv_bin(r->g, real ? o->f : s ? o->s : o->u, x, y), t, false};
}

LLVMBasicBlockRef ct_block(CParser *r, const char *name) {
  return r->g->l->LLVMAppendBasicBlockInContext(r->g->unit->context, r->g->fn, name);
}

/* Short-circuit evaluation. */
static CValue logical(CParser *r, CValue a, const struct COp *o) {
  LLVMBuilderRef b = r->g->unit->builder;
  bool both = o->level == 2;
  LVal place = lv_alloca(r->g, lt_int(r->g, 1)), first = ct_truth(r, a);
  LLVMBasicBlockRef more = ct_block(r, "more"), end = ct_block(r, "end");
  lv_store(r->g, first, place, 0);
  r->g->l->LLVMBuildCondBr(b, first, both ? more : end, both ? end : more);
  r->g->l->LLVMPositionBuilderAtEnd(b, more);
  lv_store(r->g, ct_truth(r, binary(r, o->level + 1)), place, 0);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, end);
  return of_truth(r, lv_load(r->g, lt_int(r->g, 1), place, 0));
}

static CValue choice(CParser *r, CValue c) {
  LLVMBuilderRef b = r->g->unit->builder;
  LLVMBasicBlockRef yes = ct_block(r, "yes"), no = ct_block(r, "no"), end = ct_block(r, "end");
  r->g->l->LLVMBuildCondBr(b, ct_truth(r, c), yes, no);
  r->g->l->LLVMPositionBuilderAtEnd(b, yes);
  CValue x = ct_expr(r);
  x = (CValue){load(r, x), x.t, false};
  LLVMBasicBlockRef yes_end = r->g->l->LLVMGetInsertBlock(b);
  ct_expect(r, ":");
  r->g->l->LLVMPositionBuilderAtEnd(b, no);
  CValue y = binary(r, 0);
  CType t = {x.t.base > y.t.base ? x.t.base : y.t.base, false};
  LVal w = ct_convert(r, y, t);
  LLVMBasicBlockRef no_end = r->g->l->LLVMGetInsertBlock(b);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, yes_end);
  LVal v = ct_convert(r, x, t);
  r->g->l->LLVMBuildBr(b, end);
  r->g->l->LLVMPositionBuilderAtEnd(b, end);
  LVal phi = r->g->l->LLVMBuildPhi(b, ct_llvm_type(r, t), "");
  r->g->l->LLVMAddIncoming(phi, (LVal[]){v, w}, (LLVMBasicBlockRef[]){yes_end, no_end}, 2);
  return (CValue){phi, t, false};
}

/* Parses an expression of operators with at least this precedence; 0: also ?:. */
static CValue binary(CParser *r, u32 min_level) {
  CValue a = unary(r);
  const struct COp *o;
  while ((o = find_op(r->word, r->n)) && o->level >= (min_level ? min_level : 1)) {
    ct_next(r);
    if (o->level < 3) {
      a = logical(r, a, o);
      continue;
    }
    if (a.place && !a.t.pointer) a = value(load(r, a), a.t.base);
    CValue b = binary(r, o->level + 1);
    a = calculate(r, o->sign, a, b);
  }
  return !min_level && ct_accept(r, "?") ? choice(r, a) : a;
}

CValue ct_expr(CParser *r) {
  CValue a = binary(r, 0);
  char op[4] = "";
  bool assigns = ct_is(r, "=") || (r->n > 1 && r->word[r->n - 1] == '=' && !find_op(r->word, r->n));
  if (!assigns) return a;
  memcpy(op, r->word, r->n - 1);
  ct_next(r);
  CValue b = ct_expr(r);
  if (*op) b = calculate(r, op, value(load(r, a), a.t.base), b);
  LVal v = ct_convert(r, b, a.t);
  lv_store(r->g, v, a.v, 0);
  return (CValue){v, a.t, false};
}
