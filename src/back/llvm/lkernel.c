/* lkernel.c: kernels as LLVM functions.
 *
 * In: a kernel statement. Out: a call, and a function unless an equal one exists. Its parameters
 * are the buffers and outer variables it uses. Attributes tell LLVM which buffers do not alias,
 * which are only read, and their size and alignment. */
#include "back/llvm/llvm.h"
#include "ir/prog/prog_mem.h"

#include <string.h>

/* ---- attributes ---- */

void lv_attribute(LlvmGen *g, LVal fn, u32 index, const char *name, u64 value) {
  unsigned kind = g->l->LLVMGetEnumAttributeKindForName(name, strlen(name));
  if (!kind) return;
  g->l->LLVMAddAttributeAtIndex(fn, index,
                                g->l->LLVMCreateEnumAttribute(g->unit->context, kind, value));
}

static void set_string_attribute(LlvmGen *g, LVal fn, const char *name, const char *value) {
  LLVMAttributeRef a = g->l->LLVMCreateStringAttribute(
      g->unit->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  g->l->LLVMAddAttributeAtIndex(fn, ~0u, a);
}

LVal lv_function(LlvmGen *g, const char *name, LType type) {
  LVal fn = g->l->LLVMAddFunction(g->unit->module, name, type);
  const char *width = fmt_text(g->c, "%u", g->o->target->lanes * 32);
  lv_attribute(g, fn, ~0u, "nounwind", 0);
  if (g->o->target->lanes > 1) { /* otherwise LLVM prefers half the vector width on some CPUs */
    set_string_attribute(g, fn, "prefer-vector-width", width);
    set_string_attribute(g, fn, "min-legal-vector-width", width);
  }
  return fn;
}

/* Guaranteed size in bytes for any values of symbols; 0: unknown. */
static u64 min_bytes(LlvmGen *g, BufId b) {
  const Buf *x = prog_buf(g->p, b);
  u64 n;
  for (u32 i = 0; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) return 0;
  return shape_count(x->dim, x->rank, &n) ? n * dtype_bytes(x->dt) : 0;
}

static void add_param_attributes(LlvmGen *g, LVal fn, const KernelParams *u, u32 i, bool shared) {
  BufId b = u->buf.at[i], root = prog_root(g->p, b);
  BufSpace space = prog_buf(g->p, root)->space;
  if (!shared) lv_attribute(g, fn, i + 1, "noalias", 0);
  if (g->marks.writes[b] != g->marks.n) lv_attribute(g, fn, i + 1, "readonly", 0);
  lv_attribute(g, fn, i + 1, "nocapture", 0);
  if (min_bytes(g, b)) lv_attribute(g, fn, i + 1, "dereferenceable", min_bytes(g, b));
  bool ours = space != BS_in && space != BS_out;
  lv_attribute(g, fn, i + 1, "align", ours ? MEM_ALIGN : dtype_bytes(prog_buf(g->p, b)->dt));
}

/* The attributes that the kernel key does not include. */
static void put_attributes(LlvmGen *g, StrBuf *t, const KernelParams *u) {
  for (u32 i = 0; i < u->buf.n; i++) {
    BufSpace space = prog_buf(g->p, prog_root(g->p, u->buf.at[i]))->space;
    sb_puts(t, space == BS_in || space == BS_out ? "o" : "i");
    for (u32 k = 0; k < i; k++)
      sb_puts(t, mem_overlap(g->p, u->buf.at[i], u->buf.at[k]) ? "+" : "-");
  }
}

/* ---- functions ---- */

/* Does the current kernel assign the variable? */
static bool sets_var(const LlvmGen *g, VarId v) {
  return g->marks.sets[v] == g->marks.n;
}

static LType type_of(LlvmGen *g, const KernelParams *u) {
  u32 n = 0;
  LType *t = NEWS(&g->c->scratch, LType, u->buf.n + u->var.n + 1);
  for (u32 i = 0; i < u->buf.n; i++)
    t[n++] = lt_pointer(g, lt_memory(g, prog_buf(g->p, u->buf.at[i])->dt, 1));
  for (u32 i = 0; i < u->var.n; i++) { /* a variable that the kernel assigns is passed by address */
    LType x = lt_value(g, prog_var(g->p, u->var.at[i])->dt, 1);
    t[n++] = sets_var(g, u->var.at[i]) ? lt_pointer(g, x) : x;
  }
  if (u->random) t[n++] = lt_int(g, 64);
  return g->l->LLVMFunctionType(g->l->LLVMVoidTypeInContext(g->unit->context), t, n, 0);
}

static LlvmUnit *least_busy(LlvmGen *g) {
  LlvmUnit *u = g->units;
  for (u32 i = 1; i < g->nunits; i++)
    if (g->units[i].work < u->work) u = &g->units[i];
  return u;
}

/* State of the calling function. */
typedef struct CallerState {
  LlvmUnit *unit;
  LVal fn, seed;
  LLVMBasicBlockRef head, at; /* at: insertion point */
  LVal *base, *reg, *var;
  bool *moving, *placed;
} CallerState;

static CallerState enter(LlvmGen *g, const KernelParams *u, const char *name) {
  Arena *a = &g->c->scratch;
  CallerState o = {g->unit, g->fn, g->seed, g->head, NULL, g->base, g->reg, NULL, g->moving, NULL};
  o.at = g->l->LLVMGetInsertBlock(g->unit->builder);
  o.var = NEWS(a, LVal, u->var.n + 1);
  o.placed = NEWS(a, bool, u->var.n + 1);
  g->unit = least_busy(g);
  g->fn = lv_function(g, name, type_of(g, u));
  if (g->o->object) {
    g->l->LLVMSetLinkage(g->fn, LLVMInternalLinkage);
    lv_attribute(g, g->fn, ~0u, "noinline", 0);
  }
  g->base = NEWS(a, LVal, g->p->buf.n);
  g->moving = NEWS(a, bool, g->p->buf.n);
  g->reg = NEWS(a, LVal, g->p->buf.n);
  bool *shared = params_shared(g->p, u, a);
  for (u32 i = 0; i < u->buf.n; i++) {
    g->base[u->buf.at[i]] = g->l->LLVMGetParam(g->fn, i);
    add_param_attributes(g, g->fn, u, i, shared[i]);
  }
  for (u32 i = 0; i < u->var.n; i++) {
    VarId v = u->var.at[i];
    o.var[i] = g->var[v];
    o.placed[i] = g->placed[v];
    g->var[v] = g->l->LLVMGetParam(g->fn, u->buf.n + i);
    g->placed[v] = sets_var(g, v);
  }
  if (u->random) g->seed = g->l->LLVMGetParam(g->fn, u->buf.n + u->var.n);
  return o;
}

static void leave(LlvmGen *g, const KernelParams *u, const CallerState *o) {
  for (u32 i = 0; i < u->var.n; i++) {
    g->var[u->var.at[i]] = o->var[i];
    g->placed[u->var.at[i]] = o->placed[i];
  }
  g->unit = o->unit;
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, o->at);
  g->fn = o->fn;
  g->seed = o->seed;
  g->head = o->head;
  g->base = o->base;
  g->reg = o->reg;
  g->moving = o->moving;
}

static void write_function(LlvmGen *g, StmtId body, const KernelParams *u, const char *name) {
  CallerState o = enter(g, u, name);
  LLVMBuilderRef b = g->unit->builder;
  LLVMContextRef c = g->unit->context;
  g->head = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "head");
  LLVMBasicBlockRef first = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "first");
  g->l->LLVMPositionBuilderAtEnd(b, first);
  g->in_kernel = true;
  gen_body(g, body);
  g->in_kernel = false;
  g->l->LLVMBuildRetVoid(b);
  g->l->LLVMPositionBuilderAtEnd(b, g->head);
  g->l->LLVMBuildBr(b, first);
  leave(g, u, &o);
}

static u32 number_of(LlvmGen *g, StmtId body, const KernelParams *u) {
  StrBuf key = kernel_key(g, body, u);
  put_attributes(g, &key, u);
  u32 *slot = map_put_bytes(&g->numbers, key.at, key.n);
  if (*slot) return *slot - 1;
  u32 number = g->nkernels++;
  *slot = number + 1;
  write_function(g, body, u, fmt_text(g->c, "ingot_kernel%u", number));
  return number;
}

/* A few scalar statements: a call would cost more, and inlined they stay in registers between
 * kernels. */
static bool is_short(Prog *p, StmtId body) {
  u32 n = 0, max = 4;
  for (StmtId id = body; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    if (++n > max || (s->kind != ST_let && s->kind != ST_store)) return false;
    if (s->kind == ST_store && prog_buf(p, s->buf)->space == BS_reg) return false;
    for (ExprVisit w = ex_visit_stmt(p, s); ex_next(&w);)
      if (w.e->lanes != 1 || w.e->kind == EX_hreduce || w.e->kind == EX_quad) return false;
  }
  return true;
}

void gen_kernel_call(LlvmGen *g, StmtId id) {
  StmtId body = prog_stmt(g->p, id)->body;
  Arena *a = &g->c->scratch;
  if (!body) return;
  if (is_short(g->p, body)) {
    gen_body(g, body);
    return;
  }
  Mark mark = arena_mark(a);
  KernelParams u = kernel_params(g->p, body, 0, &g->marks, a);
  u32 number = number_of(g, body, &u), n = 0;
  const char *name = fmt_text(g->c, "ingot_kernel%u", number);
  LType type = type_of(g, &u);
  LVal fn = g->l->LLVMGetNamedFunction(g->unit->module, name);
  LVal *arg = NEWS(a, LVal, u.buf.n + u.var.n + 1);
  if (!fn) fn = lv_function(g, name, type);
  for (u32 i = 0; i < u.buf.n; i++) arg[n++] = gen_buf(g, u.buf.at[i]);
  for (u32 i = 0; i < u.var.n; i++) {
    VarId v = u.var.at[i];
    bool load = g->placed[v] && !sets_var(g, v);
    arg[n++] = load ? lv_load(g, lt_value(g, prog_var(g->p, v)->dt, 1), g->var[v], 0) : g->var[v];
  }
  if (u.random) arg[n++] = g->seed;
  g->l->LLVMBuildCall2(g->unit->builder, type, fn, arg, n, "");
  arena_rewind(a, mark);
}
