/* lmath.c: elementary functions as LLVM code, from the text of generated C.
 *
 * In: an operator and its math mode. Out: a call of a function of the module. Its text
 * (mathlib_write) is compiled at the first use: constant tables and functions in order, callees
 * first. So all engines share one source and the same bits. */
#include "back/llvm/lcparse.h"

#include <string.h>

/* ---- statements ---- */

static void statement(CParser *r);

static void set_insert_point(CParser *r, LLVMBasicBlockRef at) {
  r->g->l->LLVMPositionBuilderAtEnd(r->g->unit->builder, at);
}

static void branch(CParser *r, LVal c, LLVMBasicBlockRef yes, LLVMBasicBlockRef no) {
  r->g->l->LLVMBuildCondBr(r->g->unit->builder, c, yes, no);
}

static void jump(CParser *r, LLVMBasicBlockRef to) {
  r->g->l->LLVMBuildBr(r->g->unit->builder, to);
}

static void declaration(CParser *r, CType t) {
  CBaseType base = t.base;
  do {
    CType mine = {base, t.pointer || ct_accept(r, "*")};
    CName x = {r->word, r->n, lv_alloca(r->g, ct_llvm_type(r, mine)), mine, false};
    ct_next(r);
    if (ct_accept(r, "=")) {
      CValue v = ct_expr(r);
      lv_store(r->g, ct_convert(r, v, mine), x.place, 0);
    }
    ct_declare(r, x);
  } while (ct_accept(r, ","));
  ct_expect(r, ";");
}

static void if_statement(CParser *r) {
  LLVMBasicBlockRef yes = ct_block(r, "yes"), no = ct_block(r, "no"), end = ct_block(r, "end");
  ct_expect(r, "(");
  branch(r, ct_truth(r, ct_expr(r)), yes, no);
  ct_expect(r, ")");
  set_insert_point(r, yes);
  statement(r);
  jump(r, end);
  set_insert_point(r, no);
  if (ct_accept(r, "else")) statement(r);
  jump(r, end);
  set_insert_point(r, end);
}

/* Statements for and while. The text of a for's step precedes its body and is parsed after it. */
static void loop(CParser *r, bool counts) {
  LLVMBasicBlockRef test = ct_block(r, "test"), body = ct_block(r, "body");
  LLVMBasicBlockRef end = ct_block(r, "end");
  CParser last = {0};
  ct_expect(r, "(");
  if (counts) {
    ct_expr(r);
    ct_expect(r, ";");
  }
  jump(r, test);
  set_insert_point(r, test);
  branch(r, ct_truth(r, ct_expr(r)), body, end);
  if (counts) {
    ct_expect(r, ";");
    last = *r;
    for (u32 depth = 0; depth || !ct_is(r, ")"); ct_next(r))
      depth += ct_is(r, "(") ? 1 : ct_is(r, ")") ? -1u : 0;
  }
  ct_expect(r, ")");
  set_insert_point(r, body);
  statement(r);
  if (counts) {
    CParser after = *r;
    r->at = last.at;
    r->word = last.word;
    r->n = last.n;
    ct_expr(r);
    r->at = after.at;
    r->word = after.word;
    r->n = after.n;
  }
  jump(r, test);
  set_insert_point(r, end);
}

static void statement(CParser *r) {
  CType t;
  u32 names = r->name.n;
  if (ct_accept(r, "{")) {
    while (!ct_accept(r, "}")) statement(r);
    r->name.n = names;
  } else if (ct_accept(r, "if")) {
    if_statement(r);
  } else if (ct_accept(r, "for")) {
    loop(r, true);
  } else if (ct_accept(r, "while")) {
    loop(r, false);
  } else if (ct_accept(r, "return")) {
    r->g->l->LLVMBuildRet(r->g->unit->builder, ct_convert(r, ct_expr(r), r->result));
    ct_expect(r, ";");
    set_insert_point(r, ct_block(r, "after"));
  } else if (ct_type(r, &t)) {
    declaration(r, t);
  } else if (!ct_accept(r, ";")) {
    do ct_expr(r);
    while (ct_accept(r, ","));
    ct_expect(r, ";");
  }
}

/* ---- definitions ---- */

static void skip_body(CParser *r) {
  u32 depth = 0;
  do {
    depth += ct_is(r, "{") ? 1 : ct_is(r, "}") ? -1u : 0;
    ct_next(r);
  } while (depth && r->n);
}

static void table(CParser *r, CType t, CName name) {
  VEC(LVal) item = {0};
  LlvmGen *g = r->g;
  while (!ct_accept(r, "{")) ct_next(r);
  LType of = ct_llvm_type(r, t);
  while (!ct_accept(r, "}")) {
    *vec_push(&g->c->scratch, &item) = ct_convert(r, ct_expr(r), t);
    ct_accept(r, ",");
  }
  ct_expect(r, ";");
  LVal data = g->l->LLVMConstArray(of, item.at, item.n);
  LVal x = g->l->LLVMAddGlobal(g->unit->module, g->l->LLVMTypeOf(data), "");
  g->l->LLVMSetInitializer(x, data);
  g->l->LLVMSetGlobalConstant(x, 1);
  g->l->LLVMSetLinkage(x, LLVMPrivateLinkage);
  name.place = lv_cast(g, LLVMBitCast, x, lt_pointer(g, of));
  name.t = (CType){t.base, true};
  name.table = true;
  ct_declare(r, name);
}

static void read_function(CParser *r, const CFunction *f, u32 first_name) {
  LlvmGen *g = r->g;
  LType t[8];
  for (u32 i = 0; i < f->n; i++) t[i] = ct_llvm_type(r, f->param[i]);
  g->fn = lv_function(g, str_text(g->c, f->name),
                      g->l->LLVMFunctionType(ct_llvm_type(r, f->result), t, f->n, 0));
  g->l->LLVMSetLinkage(g->fn, LLVMInternalLinkage);
  lv_attribute(g, g->fn, ~0u, "alwaysinline", 0);
  LLVMBasicBlockRef first = gen_function_begin(g, g->fn);
  for (u32 i = 0; i < f->n; i++) {
    r->name.at[first_name + i].place = lv_alloca(g, t[i]);
    lv_store(g, g->l->LLVMGetParam(g->fn, i), r->name.at[first_name + i].place, 0);
  }
  r->result = f->result;
  statement(r);
  g->l->LLVMBuildRet(g->unit->builder, g->l->LLVMConstNull(ct_llvm_type(r, f->result)));
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, g->head);
  jump(r, first);
}

/* static inline T name(T a, T *b) { ... } */
static void function(CParser *r, CType result, Str name) {
  CFunction f = {.name = name, .result = result};
  u32 names = r->name.n;
  while (!ct_accept(r, ")")) {
    if (!ct_type(r, &f.param[f.n])) ct_fail(r, "parameter without a type");
    if (f.param[f.n].base == TB_void) continue;
    ct_declare(r, (CName){r->word, r->n, NULL, f.param[f.n], false});
    f.n++;
    ct_next(r);
    ct_accept(r, ",");
  }
  const char *text = str_text(r->g->c, name);
  bool bits = !strcmp(text, "imk_f32") || !strcmp(text, "imk_u32") || !strcmp(text, "imk_f64") ||
              !strcmp(text, "imk_u64");
  *vec_push(&r->g->c->scratch, &r->function) = f;
  if (bits || r->g->l->LLVMGetNamedFunction(r->g->unit->module, text))
    skip_body(r);
  else
    read_function(r, &f, names);
  r->name.n = names;
}

static void read_all(CParser *r) {
  for (ct_next(r); r->n;) {
    CType t;
    while (ct_accept(r, "static") || ct_accept(r, "inline")) continue;
    if (!ct_type(r, &t)) ct_fail(r, "expected a definition");
    CName name = {r->word, r->n, NULL, t, false};
    ct_next(r);
    if (ct_accept(r, "("))
      function(r, t, str_intern(r->g->c, name.at, name.n));
    else
      table(r, t, name);
  }
}

/* ---- calls ---- */

/* The caller's state while a function is compiled. */
typedef struct SavedFunction {
  LVal fn;
  LLVMBasicBlockRef head, at;
} SavedFunction;

static void define(LlvmGen *g, const char *part) {
  Arena *a = &g->c->keep;
  StrBuf t = sb_new(a);
  SavedFunction o = {g->fn, g->head, g->l->LLVMGetInsertBlock(g->unit->builder)};
  mathlib_write(&t, part, "", "0");
  const char *text = sb_cstr(&t);
  CParser r = {.g = g, .at = text, .end = text + t.n};
  read_all(&r);
  g->fn = o.fn;
  g->head = o.head;
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, o.at);
}

static const char *part_of(LlvmGen *g, Op op, MathMode part) {
  const char *name = op == OP_round ? "rint" : op_info[op].name;
  static const char *const ends[MM_COUNT] = {
      [MM_f] = "f", [MM_d] = "", [MM_q] = "q", [MM_u] = "u", [MM_s] = "s"};
  return fmt_text(g->c, "%s%s", name, ends[part]);
}

LVal gen_math(LlvmGen *g, Op op, MathMode part, const LVal *arg, u32 n, u32 lanes) {
  bool wide = part == MM_d;
  const char *name = part_of(g, op, part);
  const char *full = fmt_text(g->c, "im_%s", name);
  LType t = lt_real(g, wide), param[3] = {t, t, t};
  LType type = g->l->LLVMFunctionType(t, param, n, 0);
  if (!g->l->LLVMGetNamedFunction(g->unit->module, full)) define(g, name);
  LVal fn = g->l->LLVMGetNamedFunction(g->unit->module, full), all = NULL, one[3];
  if (!fn) lv_refuse(g, op_info[op].name);
  for (u32 i = 0; i < lanes; i++) {
    for (u32 k = 0; k < n; k++) one[k] = lanes > 1 ? lv_lane(g, arg[k], i) : arg[k];
    LVal x = g->l->LLVMBuildCall2(g->unit->builder, type, fn, one, n, "");
    if (lanes == 1) return x;
    if (!i) all = g->l->LLVMGetUndef(lt_lanes(g, t, lanes));
    all = lv_put_lane(g, all, x, i);
  }
  return all;
}
