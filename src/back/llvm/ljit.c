/* ljit.c: compiles a program to code in this process.
 *
 * In: a planned program for this machine. Out: a function that runs it. Method: kernels become
 * modules, modules become objects, and LLVM's ORC linker loads them. Unresolved symbols are memory
 * moves, and libm functions on machines without an instruction; both come from this process. */
#include "back/llvm/llvm.h"
#include "ir/prog/prog_mem.h"

#include <string.h>

struct JitCode {
  const Llvm *l;
  LLVMOrcLLJITRef jit;
};

typedef struct JitCtx {
  LlvmGen g;
  Jit *to;
} JitCtx;

static void check(LlvmGen *g, LLVMErrorRef e) {
  if (!e) return;
  char *text = g->l->LLVMGetErrorMessage(e);
  const char *copy = str_text(g->c, str_of(g->c, text));
  g->l->LLVMDisposeErrorMessage(text);
  fail(g->c, ERR_system, LOC_NONE, "LLVM: %s", copy);
}

/* Constants by buffer, aligned to cache lines. */
static const void **place_weights(Ctx *c, const Prog *p) {
  const void **at = NEWS(&c->keep, const void *, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_const || x->alias) continue;
    u64 n = tensor_bytes(x->data);
    at[b] = x->data->data;
    if (at[b] && (uintptr_t)at[b] % MEM_ALIGN == 0) continue;
    u8 *copy = arena_array(&c->keep, 1, n + MEM_ALIGN);
    copy += MEM_ALIGN - (uintptr_t)copy % MEM_ALIGN;
    if (n) memcpy(copy, x->data->data, n);
    at[b] = copy;
  }
  return at;
}

static u32 count_kernels(Prog *p) {
  const Stmt *s;
  u32 n = 0;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    n += w.skip;
  }
  return n;
}

void gen_begin(LlvmGen *g, const Prog *p, const LlvmOptions *o, StrList *why) {
  Ctx *c = p->c;
  u32 vars;
  *g = (LlvmGen){.c = c, .p = prog_extend(p), .o = o, .why = why, .numbers = map_new(&c->keep)};
  mem_need_plan(g->p);
  prog_check_kernels(g->p);
  for (u32 i = 0; i < p->out.n; i++) { /* the caller allocates outputs of maximum size */
    u64 bytes;
    Sym sym;
    if (!mem_stride(g->p, p->out.at[i], &bytes, &sym)) mem_refuse(g->p, p->out.at[i], sym);
  }
  g->l = llvm_load(c);
  for (Sym s = 0; s < dim_nsyms(p->dims); s++)
    if (dim_syminfo(p->dims, s)->kind != SY_derived) prog_sym_var(g->p, s);
  vars = g->p->var.n + 64;
  g->nvars = vars;
  g->var = NEWS(&c->keep, LVal, vars);
  g->placed = NEWS(&c->keep, bool, vars);
  g->is_set = NEWS(&c->keep, bool, vars);
  g->base = NEWS(&c->keep, LVal, p->buf.n);
  g->reg = NEWS(&c->keep, LVal, p->buf.n);
  g->moving = NEWS(&c->keep, bool, p->buf.n);
  g->params = (EntryParams){.in = NEWS(&c->keep, LVal, p->in.n + 1),
                            .out = NEWS(&c->keep, LVal, p->out.n + 1),
                            .shape = NEWS(&c->keep, LVal, p->out.n + 1),
                            .size = NEWS(&c->keep, LVal, dim_nsyms(p->dims) + 1),
                            .weight = NEWS(&c->keep, LVal, p->buf.n)};
}

static void link_objects(LlvmGen *g, Jit *to) {
  const Llvm *l = g->l;
  LLVMOrcDefinitionGeneratorRef process;
  LLVMOrcLLJITRef jit;
  check(g, l->LLVMOrcCreateLLJIT(&jit, NULL));
  to->code = NEW(&g->c->keep, JitCode);
  *to->code = (JitCode){l, jit};
  LLVMOrcJITDylibRef all = l->LLVMOrcLLJITGetMainJITDylib(jit);
  union {
    u64 (*fn)(u64, u64, u64, u64);
    uintptr_t at;
  } called = {llvm_runtime_call};
  LLVMOrcCSymbolMapPair own = {l->LLVMOrcLLJITMangleAndIntern(jit, RUNTIME_CALL_NAME),
                               {called.at, {1, 0}}};
  check(g, l->LLVMOrcJITDylibDefine(all, l->LLVMOrcAbsoluteSymbols(&own, 1)));
  check(g, l->LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
               &process, l->LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL));
  l->LLVMOrcJITDylibAddGenerator(all, process);
  for (u32 i = 0; i < g->nunits; i++) {
    LLVMMemoryBufferRef object = g->units[i].object;
    g->units[i].object = NULL; /* the linker frees it */
    check(g, l->LLVMOrcLLJITAddObjectFile(jit, all, object));
  }
  union {
    uint64_t at;
    CallFn *fn;
  } entry = {0};
  check(g, l->LLVMOrcLLJITLookup(jit, &entry.at, ENTRY_NAME));
  to->run = entry.fn;
}

static void make(Ctx *c, void *arg) {
  JitCtx *m = arg;
  LlvmGen *g = &m->g;
  (void)c;
  machine_find(g, NULL);
  list_statuses(g);
  if (!cache_read(g)) {
    units_begin(g, units_wanted(count_kernels(g->p)));
    gen_entry(g);
    units_compile(g);
    cache_write(g);
  }
  link_objects(g, m->to);
}

Jit *jit_make(const Prog *p, const LlvmOptions *o) {
  Ctx *c = p->c;
  JitCtx *m = NEW(&c->keep, JitCtx);
  m->to = NEW(&c->keep, Jit);
  gen_begin(&m->g, p, o, &m->to->why);
  Err e = ctx_protect(c, make, m);
  units_end(&m->g);
  if (e) {
    jit_end(m->to);
    longjmp(*c->door, (int)e);
  }
  m->to->weights = place_weights(c, p);
  return m->to;
}

void jit_end(Jit *j) {
  if (!j || !j->code) return;
  LLVMErrorRef e = j->code->l->LLVMOrcDisposeLLJIT(j->code->jit);
  if (e) j->code->l->LLVMDisposeErrorMessage(j->code->l->LLVMGetErrorMessage(e));
  j->code = NULL;
}
