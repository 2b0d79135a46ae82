/* lmath.c: the elementary functions as code of LLVM, from the text that generated C has.
 *
 * In: an operator, which function of it the program means. Out: a call of a function of the module.
 * Its text (mathlib_write) is read the first time: functions and constant tables one after the
 * other, those it needs before it. So every engine has one source of them, and the same bits.
 */
#include "back/llvm/ltext.h"

#include <string.h>

/* ---- statements ---- */

static void statement(CText *r);

static LLVMBasicBlockRef new_block(CText *r, const char *name) {
  return r->g->l->LLVMAppendBasicBlockInContext(r->g->unit->context, r->g->fn, name);
}

static void go_on(CText *r, LLVMBasicBlockRef at) {
  r->g->l->LLVMPositionBuilderAtEnd(r->g->unit->builder, at);
}

static void branch(CText *r, LVal c, LLVMBasicBlockRef yes, LLVMBasicBlockRef no) {
  r->g->l->LLVMBuildCondBr(r->g->unit->builder, c, yes, no);
}

static void jump(CText *r, LLVMBasicBlockRef to) {
  r->g->l->LLVMBuildBr(r->g->unit->builder, to);
}

static void declaration(CText *r, TextType t) {
  TextBase base = t.base;
  do {
    TextType mine = {base, t.pointer || ct_take(r, "*")};
    TextName x = {r->word, r->n, lv_place(r->g, ct_llvm(r, mine)), mine, false};
    ct_next(r);
    if (ct_take(r, "=")) {
      TextValue v = ct_expr(r);
      lv_store(r->g, ct_as(r, v, mine), x.place, 0);
    }
    ct_name(r, x);
  } while (ct_take(r, ","));
  ct_need(r, ";");
}

static void if_statement(CText *r) {
  LLVMBasicBlockRef yes = new_block(r, "yes"), no = new_block(r, "no"), end = new_block(r, "end");
  ct_need(r, "(");
  branch(r, ct_truth(r, ct_expr(r)), yes, no);
  ct_need(r, ")");
  go_on(r, yes);
  statement(r);
  jump(r, end);
  go_on(r, no);
  if (ct_take(r, "else")) statement(r);
  jump(r, end);
  go_on(r, end);
}

/* Both kinds of loops; the step of a for stands before its body and is read behind it. */
static void loop(CText *r, bool counts) {
  LLVMBasicBlockRef test = new_block(r, "test"), body = new_block(r, "body");
  LLVMBasicBlockRef end = new_block(r, "end");
  CText last = {0};
  ct_need(r, "(");
  if (counts) {
    ct_expr(r);
    ct_need(r, ";");
  }
  jump(r, test);
  go_on(r, test);
  branch(r, ct_truth(r, ct_expr(r)), body, end);
  if (counts) {
    ct_need(r, ";");
    last = *r;
    for (u32 depth = 0; depth || !ct_is(r, ")"); ct_next(r))
      depth += ct_is(r, "(") ? 1 : ct_is(r, ")") ? -1u : 0;
  }
  ct_need(r, ")");
  go_on(r, body);
  statement(r);
  if (counts) {
    CText behind = *r;
    r->at = last.at;
    r->word = last.word;
    r->n = last.n;
    ct_expr(r);
    r->at = behind.at;
    r->word = behind.word;
    r->n = behind.n;
  }
  jump(r, test);
  go_on(r, end);
}

static void statement(CText *r) {
  TextType t;
  u32 names = r->name.n;
  if (ct_take(r, "{")) {
    while (!ct_take(r, "}")) statement(r);
    r->name.n = names;
  } else if (ct_take(r, "if")) {
    if_statement(r);
  } else if (ct_take(r, "for")) {
    loop(r, true);
  } else if (ct_take(r, "while")) {
    loop(r, false);
  } else if (ct_take(r, "return")) {
    r->g->l->LLVMBuildRet(r->g->unit->builder, ct_as(r, ct_expr(r), r->result));
    ct_need(r, ";");
    go_on(r, new_block(r, "behind"));
  } else if (ct_type(r, &t)) {
    declaration(r, t);
  } else if (!ct_take(r, ";")) {
    do ct_expr(r);
    while (ct_take(r, ","));
    ct_need(r, ";");
  }
}

/* ---- definitions ---- */

static void skip_body(CText *r) {
  u32 depth = 0;
  do {
    depth += ct_is(r, "{") ? 1 : ct_is(r, "}") ? -1u : 0;
    ct_next(r);
  } while (depth && r->n);
}

static void table(CText *r, TextType t, TextName name) {
  VEC(LVal) item = {0};
  Gen *g = r->g;
  while (!ct_take(r, "{")) ct_next(r);
  LType of = ct_llvm(r, t);
  while (!ct_take(r, "}")) {
    *vec_push(&g->c->scratch, &item) = ct_as(r, ct_expr(r), t);
    ct_take(r, ",");
  }
  ct_need(r, ";");
  LVal data = g->l->LLVMConstArray(of, item.at, item.n);
  LVal x = g->l->LLVMAddGlobal(g->unit->module, g->l->LLVMTypeOf(data), "");
  g->l->LLVMSetInitializer(x, data);
  g->l->LLVMSetGlobalConstant(x, 1);
  g->l->LLVMSetLinkage(x, LLVMPrivateLinkage);
  name.place = lv_cast(g, LLVMBitCast, x, lt_pointer(g, of));
  name.t = (TextType){t.base, true};
  name.table = true;
  ct_name(r, name);
}

static void read_function(CText *r, const TextFunction *f, u32 first_name) {
  Gen *g = r->g;
  LType t[8];
  for (u32 i = 0; i < f->n; i++) t[i] = ct_llvm(r, f->param[i]);
  g->fn = lv_function(g, str_text(g->c, f->name),
                      g->l->LLVMFunctionType(ct_llvm(r, f->result), t, f->n, 0));
  g->l->LLVMSetLinkage(g->fn, LLVMInternalLinkage);
  lv_attribute(g, g->fn, ~0u, "alwaysinline", 0);
  LLVMBasicBlockRef first = gen_head(g, g->fn);
  for (u32 i = 0; i < f->n; i++) {
    r->name.at[first_name + i].place = lv_place(g, t[i]);
    lv_store(g, g->l->LLVMGetParam(g->fn, i), r->name.at[first_name + i].place, 0);
  }
  r->result = f->result;
  statement(r);
  g->l->LLVMBuildRet(g->unit->builder, g->l->LLVMConstNull(ct_llvm(r, f->result)));
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, g->head);
  jump(r, first);
}

/* static inline T name(T a, T *b) { ... } */
static void function(CText *r, TextType result, Str name) {
  TextFunction f = {.name = name, .result = result};
  u32 names = r->name.n;
  while (!ct_take(r, ")")) {
    if (!ct_type(r, &f.param[f.n])) ct_fail(r, "a parameter without a type");
    if (f.param[f.n].base == TB_void) continue;
    ct_name(r, (TextName){r->word, r->n, NULL, f.param[f.n], false});
    f.n++;
    ct_next(r);
    ct_take(r, ",");
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

static void read_all(CText *r) {
  for (ct_next(r); r->n;) {
    TextType t;
    while (ct_take(r, "static") || ct_take(r, "inline")) continue;
    if (!ct_type(r, &t)) ct_fail(r, "something else than a definition");
    TextName name = {r->word, r->n, NULL, t, false};
    ct_next(r);
    if (ct_take(r, "("))
      function(r, t, str_intern(r->g->c, name.at, name.n));
    else
      table(r, t, name);
  }
}

/* ---- calls ---- */

/* What was being written, while a function is. */
typedef struct FunctionAround {
  LVal fn;
  LLVMBasicBlockRef head, at;
} FunctionAround;

static void define(Gen *g, const char *part) {
  Arena *a = &g->c->keep;
  Text t = text_new(a);
  FunctionAround o = {g->fn, g->head, g->l->LLVMGetInsertBlock(g->unit->builder)};
  mathlib_write(&t, part, "", "0");
  const char *text = text_cstr(&t);
  CText r = {.g = g, .at = text, .end = text + t.n};
  read_all(&r);
  g->fn = o.fn;
  g->head = o.head;
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, o.at);
}

static const char *part_of(Gen *g, Op op, MathPart part) {
  const char *name = op == OP_round ? "rint" : op_info[op].name;
  static const char *const ends[MP_COUNT] = {
      [MP_f] = "f", [MP_d] = "", [MP_q] = "q", [MP_u] = "u", [MP_s] = "s"};
  return str_text(g->c, str_fmt(g->c, "%s%s", name, ends[part]));
}

LVal gen_math(Gen *g, Op op, MathPart part, const LVal *arg, u32 n, u32 lanes) {
  bool wide = part == MP_d;
  const char *name = part_of(g, op, part);
  const char *full = str_text(g->c, str_fmt(g->c, "im_%s", name));
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
