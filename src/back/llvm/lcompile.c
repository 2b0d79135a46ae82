/* lcompile.c: compiles LLVM modules to object code in parallel.
 *
 * In: units that hold functions. Out: an object file of each, in memory. Each unit has its own LLVM
 * context, so threads share nothing. There are as many threads as cores. */
#include "back/llvm/llvm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- machines ---- */

/* LLVM targets by prefix of the triple. */
static const struct {
  const char *begins, *name, *pin;
} targets[] = {
    {"x86_64", "X86", "=v,0"},      {"i386", "X86", "=v,0"},       {"i686", "X86", "=v,0"},
    {"aarch64", "AArch64", "=w,0"}, {"arm64", "AArch64", "=w,0"},  {"thumb", "ARM", NULL},
    {"arm", "ARM", NULL},           {"wasm", "WebAssembly", NULL}, {"riscv", "RISCV", NULL},
};

static u32 find_target(LlvmGen *g, const char *triple) {
  u32 i = 0, n = sizeof targets / sizeof *targets;
  while (i < n && strncmp(triple, targets[i].begins, strlen(targets[i].begins))) i++;
  if (i == n)
    fail(g->c, ERR_unsupported, LOC_NONE, "no LLVM target is known for the triple %s", triple);
  return i;
}

/* Checks that the triple, or the name of a compiler for it, starts with an architecture that has
 * the vectors. */
static void need_vectors(LlvmGen *g, const char *name) {
  const Target *t = g->o->target;
  const char *triple = *t->llvm ? t->llvm : t->cross;
  if (t->loops || !*triple || !strcmp(targets[find_target(g, triple)].name, name)) return;
  fail(g->c, ERR_unsupported, LOC_NONE, "%s does not have the vectors of %s (--march)", g->triple,
       t->name);
}

static void set_up(LlvmGen *g, const char *name) {
  static const char *const parts[] = {"TargetInfo", "Target", "TargetMC", "AsmPrinter",
                                      "AsmParser"};
  for (u32 i = 0; i < sizeof parts / sizeof *parts; i++) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "LLVMInitialize%s%s", name, parts[i]);
    union {
      void *p;
      void (*fn)(void);
    } init = {dlsym(g->l->handle, symbol)};
    if (!init.p)
      fail(g->c, ERR_unsupported, LOC_NONE, "this LLVM was built without the target %s", name);
    init.fn();
  }
}

static const char *keep(LlvmGen *g, char *text) {
  const char *copy = str_text(g->c, str_of(g->c, text));
  g->l->LLVMDisposeMessage(text);
  return copy;
}

/* The part of "TRIPLE,CPU,FEATURES" up to the next comma; last: the rest. */
static const char *next_part(Ctx *c, const char **at, bool last) {
  size_t n = last ? strlen(*at) : strcspn(*at, ",");
  const char *part = str_text(c, str_intern(c, *at, n));
  *at += n + (!last && (*at)[n] == ',');
  return part;
}

static bool begins(const char *s, const char *with) {
  return !strncmp(s, with, strlen(with));
}

/* Without instructions for rounding or f16, LLVM calls library functions that objects cannot link
 * to. dot_i8x4 and similar are x86 intrinsics by name. */
static void detect_features(LlvmGen *g) {
  u32 lanes = g->o->target->lanes;
  bool x86 = begins(g->triple, "x86_64"), avx2 = llvm_has_feature(g, "avx2");
  bool arm32 = begins(g->triple, "arm") && !begins(g->triple, "arm64");
  bool rounds = (!x86 && !arm32) || !g->o->object || llvm_has_feature(g, "sse4.1") || avx2;
  bool bytes = lanes == 16  ? llvm_has_feature(g, "avx512bw")
               : lanes == 8 ? avx2
                            : lanes == 4 && llvm_has_feature(g, "ssse3");
  bool vnni = llvm_has_feature(g, "avx512vnni") && (lanes == 16 || llvm_has_feature(g, "avx512vl"));
  bool halves = llvm_has_feature(g, "f16c") || llvm_has_feature(g, "avx512f") ||
                llvm_has_feature(g, "fp-armv8");
  bool fused = llvm_has_feature(g, "fma") || llvm_has_feature(g, "avx512f") ||
               llvm_has_feature(g, "vfp4") || begins(g->triple, "aarch64");
  u32 any = (rounds ? CAP_round : 0) | (halves ? CAP_f16 : 0) | (fused ? CAP_fma : 0);
  g->has = (Caps){.scalars = any, .registers = any, .others = any};
  if (x86 && (bytes || lanes == 4)) g->has.registers |= CAP_dot_i16x2;
  if (x86 && bytes) g->has.registers |= CAP_maddubs | CAP_psign | (vnni ? CAP_dot_i8x4 : 0);
}

/* NULL: this machine; "": this architecture with a generic CPU; otherwise TRIPLE,CPU,FEATURES. */
void machine_find(LlvmGen *g, const char *machine) {
  bool here = !machine || !*machine || *machine == ',';
  const char *rest = machine ? machine : "";
  g->triple = next_part(g->c, &rest, false);
  if (here) g->triple = keep(g, g->l->LLVMGetDefaultTargetTriple());
  u32 i = find_target(g, g->triple);
  need_vectors(g, targets[i].name);
  set_up(g, targets[i].name);
  g->pin_constraint = targets[i].pin;
  g->cpu = machine ? next_part(g->c, &rest, false) : keep(g, g->l->LLVMGetHostCPUName());
  g->features = machine ? next_part(g->c, &rest, true) : keep(g, g->l->LLVMGetHostCPUFeatures());
  char *why = NULL;
  if (g->l->LLVMGetTargetFromTriple(g->triple, &g->machine, &why))
    fail(g->c, ERR_unsupported, LOC_NONE, "LLVM: %s", keep(g, why));
  detect_features(g);
}

/* ---- units ---- */

/* Loops of vector programs are already tiled and unrolled: LLVM only cleans up and hoists. Its
 * default passes would unroll again, which takes five times as long and makes no network faster.
 * Plain loops use the default passes. */
#define USUAL_PASSES "default<O2>"
#define VECTOR_PASSES(combine)                                                                     \
  "always-inline,function(sroa,early-cse," combine ",simplifycfg,loop-simplify,lcssa,"             \
  "loop-mssa(loop-rotate,licm),gvn," combine ",simplifycfg)"

/* From version 18 on, LLVM aborts if instcombine does not reach a fixpoint, unless an option
 * disables the check. */
static const char *passes_of(const LlvmGen *g) {
  if (g->o->target->lanes == 1) return USUAL_PASSES;
  return g->l->version < 18 ? VECTOR_PASSES("instcombine")
                            : VECTOR_PASSES("instcombine<no-verify-fixpoint>");
}

/* Without a handler LLVM exits the process on errors. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *arg) {
  LlvmUnit *u = arg;
  if (u->l->LLVMGetDiagInfoSeverity(info) == LLVMDSError && !u->why)
    u->why = u->l->LLVMGetDiagInfoDescription(info);
}

void units_begin(LlvmGen *g, u32 n) {
  g->units = NEWS(&g->c->keep, LlvmUnit, n);
  g->nunits = n;
  for (u32 i = 0; i < n; i++) {
    LlvmUnit *u = &g->units[i];
    u->machine =
        g->l->LLVMCreateTargetMachine(g->machine, g->triple, g->cpu, g->features,
                                      LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    u->passes = passes_of(g);
    u->context = g->l->LLVMContextCreate();
    u->l = g->l;
    g->l->LLVMContextSetDiagnosticHandler(u->context, on_diagnostic, u);
    u->module = g->l->LLVMModuleCreateWithNameInContext("ingot", u->context);
    u->builder = g->l->LLVMCreateBuilderInContext(u->context);
    LLVMTargetDataRef layout = g->l->LLVMCreateTargetDataLayout(u->machine);
    g->l->LLVMSetTarget(u->module, g->triple);
    g->l->LLVMSetModuleDataLayout(u->module, layout);
    g->l->LLVMDisposeTargetData(layout);
  }
  g->unit = g->units;
}

void units_end(LlvmGen *g) {
  for (u32 i = 0; i < g->nunits; i++) {
    LlvmUnit *u = &g->units[i];
    if (u->builder) g->l->LLVMDisposeBuilder(u->builder);
    if (u->module) g->l->LLVMDisposeModule(u->module);
    if (u->context) g->l->LLVMContextDispose(u->context);
    if (u->machine) g->l->LLVMDisposeTargetMachine(u->machine);
    if (u->object) g->l->LLVMDisposeMemoryBuffer(u->object);
    *u = (LlvmUnit){0};
  }
}

/* ---- compiling ---- */

typedef struct CompilePool {
  LlvmGen *g;
  atomic_uint next; /* next unit to compile */
} CompilePool;

static char *verify(const Llvm *l, LlvmUnit *u) {
  char *why = NULL;
  if (l->LLVMVerifyModule(u->module, LLVMReturnStatusAction, &why)) return why;
  l->LLVMDisposeMessage(why);
  return NULL;
}

/* Calls only LLVM: a Ctx belongs to one thread. */
static void compile(const Llvm *l, LlvmUnit *u) {
  char *why = verify(l, u);
  u->why = why;
  if (why) return;
  LLVMPassBuilderOptionsRef o = l->LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = l->LLVMRunPasses(u->module, u->passes, u->machine, o);
  l->LLVMDisposePassBuilderOptions(o);
  if (e) {
    u->why = l->LLVMGetErrorMessage(e);
    return;
  }
  if (l->LLVMTargetMachineEmitToMemoryBuffer(u->machine, u->module, LLVMObjectFile, &why,
                                             &u->object))
    u->why = why;
}

static void *worker(void *arg) {
  CompilePool *pool = arg;
  for (u32 i; (i = atomic_fetch_add(&pool->next, 1)) < pool->g->nunits;)
    compile(pool->g->l, &pool->g->units[i]);
  return NULL;
}

static u32 cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (u32)n;
}

u32 units_wanted(u32 kernels) {
  u32 max = cores() * 2, n = (kernels + 3) / 4;
  return n < 1 ? 1 : n > max ? max : n;
}

static void report_errors(LlvmGen *g) {
  for (u32 i = 0; i < g->nunits; i++)
    if (g->units[i].why)
      internal_error(g->c, LOC_NONE, "LLVM rejects the generated code: %.400s", g->units[i].why);
}

void units_compile(LlvmGen *g) {
  CompilePool pool = {.g = g};
  pthread_t helper[MAX_THREADS];
  u32 n = 0, max = cores() < g->nunits ? cores() : g->nunits;
  while (n + 1 < max && !pthread_create(&helper[n], NULL, worker, &pool)) n++;
  worker(&pool);
  for (u32 i = 0; i < n; i++) pthread_join(helper[i], NULL);
  report_errors(g);
}

void units_check(LlvmGen *g) {
  for (u32 i = 0; i < g->nunits; i++) g->units[i].why = verify(g->l, &g->units[i]);
  report_errors(g);
}
