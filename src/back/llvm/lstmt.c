/* lstmt.c: statements as LLVM basic blocks, and function bodies.
 *
 * In: the statements of a kernel or of the entry. Out: blocks. As in the C back end,
 * kernel_legalize prepares bodies with vectors, registers or unrolled loops for the target. If
 * loops cannot be unrolled, vectors stay whole for LLVM to split, and registers are arrays. A
 * variable is an LLVM value; one assigned several times is an alloca, which LLVM promotes. */
#include "back/llvm/llvm.h"

#include <string.h>

static void gen_list(LlvmGen *g, StmtId first);

static LLVMBasicBlockRef new_block(LlvmGen *g, const char *name) {
  return g->l->LLVMAppendBasicBlockInContext(g->unit->context, g->fn, name);
}

static void set_insert_point(LlvmGen *g, LLVMBasicBlockRef at) {
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, at);
}

static void jump(LlvmGen *g, LLVMBasicBlockRef to) {
  g->l->LLVMBuildBr(g->unit->builder, to);
}

/* ---- control ---- */

static void gen_for(LlvmGen *g, const Stmt *s) {
  LLVMBuilderRef b = g->unit->builder;
  LVal lo = gen_index(g, s->a), hi = gen_index(g, s->b);
  LLVMBasicBlockRef before = g->l->LLVMGetInsertBlock(b), test = new_block(g, "test");
  LLVMBasicBlockRef body = new_block(g, "body"), end = new_block(g, "end");
  jump(g, test);
  set_insert_point(g, test);
  LVal i = g->l->LLVMBuildPhi(b, lt_int(g, 64), "");
  g->l->LLVMBuildCondBr(b, lv_icmp(g, LLVMIntSLT, i, hi), body, end);
  g->var[s->var] = i;
  g->placed[s->var] = false;
  set_insert_point(g, body);
  gen_list(g, s->body);
  LVal next = g->l->LLVMBuildNSWAdd(b, i, lv_int(g, 64, 1, s->step), "");
  LLVMBasicBlockRef last = g->l->LLVMGetInsertBlock(b);
  jump(g, test);
  g->l->LLVMAddIncoming(i, (LVal[]){lo, next}, (LLVMBasicBlockRef[]){before, last}, 2);
  set_insert_point(g, end);
}

static void gen_while(LlvmGen *g, const Stmt *s) {
  LLVMBasicBlockRef test = new_block(g, "test"), body = new_block(g, "body");
  LLVMBasicBlockRef end = new_block(g, "end");
  jump(g, test);
  set_insert_point(g, test);
  g->l->LLVMBuildCondBr(g->unit->builder, gen_expr(g, s->a), body, end);
  set_insert_point(g, body);
  gen_list(g, s->body);
  jump(g, test);
  set_insert_point(g, end);
}

static void gen_if(LlvmGen *g, const Stmt *s) {
  LLVMBasicBlockRef yes = new_block(g, "yes"), end = new_block(g, "end");
  LLVMBasicBlockRef no = s->other ? new_block(g, "no") : end;
  g->l->LLVMBuildCondBr(g->unit->builder, gen_expr(g, s->a), yes, no);
  set_insert_point(g, yes);
  gen_list(g, s->body);
  jump(g, end);
  if (s->other) {
    set_insert_point(g, no);
    gen_list(g, s->other);
    jump(g, end);
  }
  set_insert_point(g, end);
}

static void gen_require(LlvmGen *g, const Stmt *s) {
  LLVMBuilderRef b = g->unit->builder;
  LLVMBasicBlockRef good = new_block(g, "good"), bad = new_block(g, "bad");
  g->l->LLVMBuildCondBr(b, gen_expr(g, s->a), good, bad);
  set_insert_point(g, bad);
  if (g->in_kernel)
    g->l->LLVMBuildRetVoid(b);
  else
    g->l->LLVMBuildRet(b, lv_int(g, 32, 1, llvm_status_of(g, s)));
  set_insert_point(g, good);
}

/* ---- variables ---- */

/* A value that LLVM's passes cannot see through. */
static LVal opaque(LlvmGen *g, LVal x, const char *how, bool stays) {
  LType params[1] = {g->l->LLVMTypeOf(x)};
  LType type = g->l->LLVMFunctionType(params[0], params, 1, 0);
  char text[1] = "", constraints[16];
  size_t n = strlen(how);
  memcpy(constraints, how, n + 1);
  LVal fn =
      g->l->LLVMGetInlineAsm(type, text, 0, constraints, n, stays, 0, LLVMInlineAsmDialectATT, 0);
  LVal arg[1] = {x};
  return g->l->LLVMBuildCall2(g->unit->builder, type, fn, arg, 1, "");
}

static bool fills_register(const LlvmGen *g, const Var *v) {
  u32 bits = v->lanes * 8 * lane_bytes(v->dt);
  bool whole = bits == 128 || bits == 256 || bits == 512;
  return g->pin_constraint && v->lanes > 1 && v->dt != DT_bool && whole &&
         bits <= 32 * g->o->target->lanes;
}

static void gen_assign(LlvmGen *g, const Stmt *s) {
  const Var *v = prog_var(g->p, s->var);
  LVal x = gen_expr(g, s->a);
  if (s->flags & SF_pin && fills_register(g, v)) x = opaque(g, x, g->pin_constraint, false);
  if (s->kind == ST_let) g->placed[s->var] = g->is_set[s->var];
  if (!g->placed[s->var]) {
    g->var[s->var] = x;
    return;
  }
  if (s->kind == ST_let) g->var[s->var] = lv_alloca(g, lt_value(g, v->dt, v->lanes));
  lv_store(g, x, g->var[s->var], 0);
}

static void gen_list(LlvmGen *g, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(g->p, id)->next) {
    Stmt s = *prog_stmt(g->p, id); /* generating may add expressions, never statements */
    switch (s.kind) {
    case ST_for: gen_for(g, &s); break;
    case ST_while: gen_while(g, &s); break;
    case ST_if: gen_if(g, &s); break;
    case ST_let:
    case ST_set: gen_assign(g, &s); break;
    case ST_store: gen_store(g, &s); break;
    case ST_kernel: gen_kernel_call(g, s.into ? s.into : id); break;
    case ST_require: gen_require(g, &s); break;
    case ST_fence: /* an opaque address: later loads cannot move above it */
      if (g->moving[s.buf])
        lv_store(g, opaque(g, gen_buf(g, s.buf), "=r,0", true), g->base[s.buf], 0);
      break;
    default: break;
    }
  }
}

/* ---- bodies ---- */

/* Makes room for variables that prog_legalize added. */
static void need_vars(LlvmGen *g) {
  u32 n = g->p->var.n + dim_nsyms(g->p->dims) + 64;
  if (g->p->var.n <= g->nvars) return;
  LVal *var = NEWS(&g->c->keep, LVal, 2 * n);
  bool *placed = NEWS(&g->c->keep, bool, 2 * n), *is_set = NEWS(&g->c->keep, bool, 2 * n);
  for (u32 i = 0; i < g->nvars; i++) {
    var[i] = g->var[i];
    placed[i] = g->placed[i];
    is_set[i] = g->is_set[i];
  }
  g->var = var;
  g->placed = placed;
  g->is_set = is_set;
  g->nvars = 2 * n;
}

/* Marks variables with several assignments, here or in kernels. */
static void mark_sets(LlvmGen *g, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(g->p, first); (s = prog_next(&w));)
    if (s->kind == ST_let) g->is_set[s->var] = false;
  for (StmtVisit w = prog_visit(g->p, first); (s = prog_next(&w));)
    if (s->kind == ST_set) g->is_set[s->var] = true;
}

static void mark_fences(LlvmGen *g, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(g->p, first); (s = prog_next(&w));) {
    if (s->kind != ST_fence || g->moving[s->buf] || !g->base[s->buf]) continue;
    LVal at = lv_alloca(g, g->l->LLVMTypeOf(g->base[s->buf]));
    lv_store(g, g->base[s->buf], at, 0);
    g->base[s->buf] = at;
    g->moving[s->buf] = true;
  }
}

void gen_body(LlvmGen *g, StmtId first) {
  Prog *p = g->p;
  const Target *t = g->o->target;
  ProgMark m = prog_mark(p);
  StmtId body = 0;
  bool special = prog_is_special(p, first) || prog_lacks(p, first, &g->has);
  if (special && t->lanes > 1 && !t->loops)
    body = kernel_legalize(p, first, t, &g->has, &g->c->scratch);
  if (body && g->in_kernel) mark_fences(g, body);
  if (special && !body) body = kernel_legalize(p, first, NULL, &g->has, &g->c->scratch);
  if (!body) body = first;
  need_vars(g);
  mark_sets(g, body);
  g->unit->work += p->nexpr - m.expr;
  gen_list(g, body);
  prog_rewind(p, m);
}
