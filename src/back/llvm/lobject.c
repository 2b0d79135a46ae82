/* lobject.c: compiles a program to an object file for any LLVM target.
 *
 * In: a planned program, a name, a machine. Out: the bytes of an object with the functions that the
 * header of generated C declares: NAME_run, NAME_why, NAME_target, NAME_reset. Weights are
 * constants; all other names are private. It calls nothing but memory moves, so operations that
 * need functions of ingot are refused. */
#include "back/llvm/llvm.h"
#include "back/status.h"
#include "ir/prog/prog_mem.h"
#include "ir/lexer.h"

#include <string.h>

typedef struct ObjectCtx {
  LlvmGen g;
  StrBuf *to;
  const bool *sized; /* by symbol: is it an argument? */
  bool ir;           /* LLVM IR as text, not an object */
} ObjectCtx;

static const char *own_name(LlvmGen *g, const char *what) {
  return fmt_text(g->c, "%s_%s", g->o->name, what);
}

/* ---- constants ---- */

static LVal constant(LlvmGen *g, const void *at, u64 n, u32 align) {
  LVal data = g->l->LLVMConstStringInContext(g->unit->context, at, (unsigned)n, 1);
  LVal x = g->l->LLVMAddGlobal(g->unit->module, g->l->LLVMTypeOf(data), "");
  g->l->LLVMSetInitializer(x, data);
  g->l->LLVMSetGlobalConstant(x, 1);
  g->l->LLVMSetLinkage(x, LLVMPrivateLinkage);
  g->l->LLVMSetAlignment(x, align);
  return lv_cast(g, LLVMBitCast, x, lt_bytes(g));
}

static void place_weights(LlvmGen *g) {
  for (BufId b = 1; b < g->p->buf.n; b++) {
    const Buf *x = prog_buf(g->p, b);
    if (x->space != BS_const || x->alias) continue;
    u64 n = tensor_bytes(x->data);
    if (n > UINT32_MAX)
      fail(g->c, ERR_unsupported, LOC_NONE, "LLVM object code supports at most 4 GB of weights");
    g->params.weight[b] = constant(g, n ? x->data->data : "", n, MEM_ALIGN);
  }
}

/* ---- NAME_run ---- */

/* Sizes that are arguments: those that the program reads, and those of its buffers. */
static bool *size_args(Ctx *c, const Prog *p) {
  bool *used = NEWS(&c->keep, bool, dim_nsyms(p->dims) + 1);
  for (BufId b = 1; b < p->buf.n; b++)
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++)
      dims_mark_used(p->dims, prog_buf(p, b)->dim[i], used);
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    bool read = s < p->nsym_var && p->sym_var[s];
    used[s] = (used[s] || read) && dim_syminfo(p->dims, s)->kind == SY_input;
  }
  return used;
}

/* Returns the status unless `good`. */
static void need(LlvmGen *g, LVal good, u32 status) {
  LLVMBuilderRef b = g->unit->builder;
  LLVMContextRef c = g->unit->context;
  LLVMBasicBlockRef go = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "good");
  LLVMBasicBlockRef end = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "bad");
  g->l->LLVMBuildCondBr(b, good, go, end);
  g->l->LLVMPositionBuilderAtEnd(b, end);
  g->l->LLVMBuildRet(b, lv_int(g, 32, 1, status));
  g->l->LLVMPositionBuilderAtEnd(b, go);
}

static void check_arena(LlvmGen *g) {
  if (!g->p->arena_bytes) return;
  LVal at = lv_cast(g, LLVMPtrToInt, g->params.arena, lt_int(g, 64)), zero = lv_int(g, 64, 1, 0);
  LVal low = lv_bin(g, LLVMAnd, at, lv_int(g, 64, 1, MEM_ALIGN - 1));
  LVal aligned = lv_icmp(g, LLVMIntEQ, low, zero), some = lv_icmp(g, LLVMIntNE, at, zero);
  need(g, lv_bin(g, LLVMAnd, aligned, some), 1);
}

static void check_size(LlvmGen *g, Sym s) {
  const SymInfo *info = dim_syminfo(g->p->dims, s);
  LVal n = g->params.size[s];
  LVal low = lv_icmp(g, LLVMIntSGE, n, lv_int(g, 64, 1, info->lo));
  LVal high = lv_icmp(g, LLVMIntSLE, n, lv_int(g, 64, 1, info->hi));
  need(g, lv_bin(g, LLVMAnd, low, high), 2);
}

static void gen_run(LlvmGen *g, const bool *sized) {
  Prog *p = g->p;
  u32 n = 0, nsyms = dim_nsyms(p->dims);
  LType *t = NEWS(&g->c->scratch, LType, 2 + nsyms + p->in.n + 2 * p->out.n);
  LType word = lt_int(g, 64);
  t[n++] = lt_bytes(g);
  for (Sym s = 0; s < nsyms; s++)
    if (sized[s]) t[n++] = word;
  for (u32 i = 0; i < p->in.n; i++) t[n++] = lt_bytes(g);
  for (u32 i = 0; i < p->out.n; i++) {
    t[n++] = lt_bytes(g);
    if (is_open_shape(p, prog_buf(p, p->out.at[i]))) t[n++] = lt_pointer(g, word);
  }
  LVal fn = lv_function(g, own_name(g, "run"), g->l->LLVMFunctionType(lt_int(g, 32), t, n, 0));
  LLVMBasicBlockRef first = gen_function_begin(g, fn);
  lv_attribute(g, fn, 1, "noalias", 0);
  n = 0;
  g->params.arena = g->l->LLVMGetParam(fn, n++);
  for (Sym s = 0; s < nsyms; s++)
    g->params.size[s] = sized[s] ? g->l->LLVMGetParam(fn, n++) : lv_int(g, 64, 1, 0);
  for (u32 i = 0; i < p->in.n; i++) g->params.in[i] = g->l->LLVMGetParam(fn, n++);
  for (u32 i = 0; i < p->out.n; i++) {
    g->params.out[i] = g->l->LLVMGetParam(fn, n++);
    if (is_open_shape(p, prog_buf(p, p->out.at[i])))
      g->params.shape[i] = g->l->LLVMGetParam(fn, n++);
  }
  place_weights(g);
  check_arena(g);
  for (Sym s = 0; s < nsyms; s++)
    if (sized[s]) check_size(g, s);
  gen_entry_body(g, fn, first);
}

/* ---- the other functions ---- */

static LVal text(LlvmGen *g, const char *s) {
  return constant(g, s, strlen(s) + 1, 1);
}

/* const char *NAME_target(void) */
static void gen_target(LlvmGen *g) {
  LVal fn = lv_function(g, own_name(g, "target"), g->l->LLVMFunctionType(lt_bytes(g), NULL, 0, 0));
  LLVMBasicBlockRef first = gen_function_begin(g, fn);
  g->l->LLVMBuildRet(g->unit->builder, text(g, g->o->target->name));
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, g->head);
  g->l->LLVMBuildBr(g->unit->builder, first);
}

/* const char *NAME_why(int status), as a chain of selects. */
static void gen_why(LlvmGen *g) {
  LType word = lt_int(g, 32);
  LVal fn = lv_function(g, own_name(g, "why"), g->l->LLVMFunctionType(lt_bytes(g), &word, 1, 0));
  LLVMBasicBlockRef first = gen_function_begin(g, fn);
  LVal status = g->l->LLVMGetParam(fn, 0);
  u32 n = STATUS_COUNT + g->why->n;
  LVal r = text(g, status_text(g->c, g->why, n));
  for (u32 i = 0; i < n; i++) {
    LVal is = lv_icmp(g, LLVMIntEQ, status, lv_int(g, 32, 1, i));
    r = lv_select(g, is, text(g, status_text(g->c, g->why, i)), r);
  }
  g->l->LLVMBuildRet(g->unit->builder, r);
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, g->head);
  g->l->LLVMBuildBr(g->unit->builder, first);
}

/* void NAME_reset(void *arena) */
static void gen_reset(LlvmGen *g) {
  LType pointer = lt_bytes(g), none = g->l->LLVMVoidTypeInContext(g->unit->context);
  LVal fn = lv_function(g, own_name(g, "reset"), g->l->LLVMFunctionType(none, &pointer, 1, 0));
  LLVMBasicBlockRef first = gen_function_begin(g, fn);
  for (BufId b = 1; b < g->p->buf.n; b++) {
    const Buf *x = prog_buf(g->p, b);
    u64 n;
    Sym sym;
    if (x->space != BS_state) continue;
    if (x->data)
      fail(g->c, ERR_unsupported, LOC_NONE,
           "LLVM object code does not support the nonzero initial state %s; build it without "
           "--backend llvm",
           show(g->c, x->name));
    if (!mem_stride(g->p, b, &n, &sym)) mem_refuse(g->p, b, sym);
    LVal at = lv_element(g, lt_int(g, 8), g->l->LLVMGetParam(fn, 0), x->offset);
    g->l->LLVMBuildMemSet(g->unit->builder, at, lv_int(g, 8, 1, 0), lv_int(g, 64, 1, (i64)n), 64);
  }
  g->l->LLVMBuildRetVoid(g->unit->builder);
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, g->head);
  g->l->LLVMBuildBr(g->unit->builder, first);
}

/* ---- driver ---- */

static void make(Ctx *c, void *arg) {
  ObjectCtx *m = arg;
  LlvmGen *g = &m->g;
  (void)c;
  machine_find(g, g->o->machine);
  units_begin(g, 1);
  list_statuses(g);
  gen_run(g, m->sized);
  gen_why(g);
  gen_target(g);
  if (prog_has_state(g->p)) gen_reset(g);
  if (m->ir) {
    units_check(g);
    char *s = g->l->LLVMPrintModuleToString(g->unit->module);
    sb_puts(m->to, s);
    g->l->LLVMDisposeMessage(s);
    return;
  }
  units_compile(g);
  LLVMMemoryBufferRef o = g->unit->object;
  sb_put(m->to, g->l->LLVMGetBufferStart(o), g->l->LLVMGetBufferSize(o));
}

static void write(const Prog *p, const LlvmOptions *o, bool ir, StrBuf *to) {
  Ctx *c = p->c;
  ObjectCtx *m = NEW(&c->keep, ObjectCtx);
  StrList *why = NEW(&c->keep, StrList);
  gen_begin(&m->g, p, o, why);
  m->sized = size_args(c, p);
  m->to = to;
  m->ir = ir;
  Err e = ctx_protect(c, make, m);
  units_end(&m->g);
  if (e) longjmp(*c->door, (int)e);
}

void llvm_object(const Prog *p, const LlvmOptions *o, StrBuf *to) {
  write(p, o, false, to);
}

void llvm_print(const Prog *p, const LlvmOptions *o, StrBuf *to) {
  write(p, o, true, to);
}
