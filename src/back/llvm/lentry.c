/* lentry.c: the function that runs a model; it calls the kernels in order.
 *
 * In: a planned program. Out: ENTRY_NAME with the type of NAME_call in generated C: arena, sizes,
 * seed, inputs, outputs, shapes. The pointer after the inputs is that of the table of constants, by
 * buffer. Returns 0, or the status of a require, see status_text. */
#include "back/llvm/llvm.h"
#include "back/status.h"
#include "ir/prog/prog_mem.h"

/* ---- statuses ---- */

static Str require_text(LlvmGen *g, const Stmt *s) {
  StrBuf t = sb_new(&g->c->scratch);
  if (s->loc.index >= 0 || s->loc.node) {
    sb_puts(&t, "node");
    if (s->loc.index >= 0) sb_fmt(&t, " %d", s->loc.index);
    if (s->loc.node) sb_fmt(&t, " '%s'", show(g->c, s->loc.node));
    if (s->loc.op) sb_fmt(&t, " (%s)", show(g->c, s->loc.op));
    sb_puts(&t, ": ");
  }
  sb_puts(&t, show_text(g->c, s->label));
  return str_intern(g->c, t.at, t.n);
}

u32 llvm_status_of(LlvmGen *g, const Stmt *s) {
  if (ex_reads_state(g->p, s->a)) return STATUS_state;
  Str text = require_text(g, s);
  for (u32 i = 0; i < g->why->n; i++)
    if (g->why->at[i] == text) return STATUS_COUNT + i;
  *vec_push(&g->c->keep, g->why) = text;
  return STATUS_COUNT + g->why->n - 1;
}

/* Lists the messages of all checks, without the code, which may come from the cache. */
void list_statuses(LlvmGen *g) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(g->p, g->p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    if (s->kind == ST_require) llvm_status_of(g, s);
  }
}

const char *status_text(Ctx *c, const StrList *why, u32 status) {
  if (status < STATUS_COUNT) return status_means[status];
  u32 i = status - STATUS_COUNT;
  return i < why->n ? str_text(c, why->at[i]) : "not a status of this model";
}

/* ---- prologue and epilogue ---- */

LVal lv_element(LlvmGen *g, LType t, LVal array, u64 i) {
  LVal by = lv_int(g, 64, 1, (i64)i);
  return g->l->LLVMBuildInBoundsGEP2(g->unit->builder, t, array, &by, 1, "");
}

static LVal place_of(LlvmGen *g, BufId b) {
  BufId root = prog_root(g->p, b);
  const Buf *x = prog_buf(g->p, root);
  u32 pos = 0;
  switch (x->space) {
  case BS_in:
    while (g->p->in.at[pos] != root) pos++;
    return g->params.in[pos];
  case BS_out:
    while (g->p->out.at[pos] != root) pos++;
    return g->params.out[pos];
  case BS_const: return g->params.weight[root];
  default: return lv_element(g, lt_int(g, 8), g->params.arena, x->offset);
  }
}

static void place_buffers(LlvmGen *g) {
  for (BufId b = 1; b < g->p->buf.n; b++) {
    const Buf *x = prog_buf(g->p, b);
    if (x->space == BS_reg) continue;
    g->base[b] = lv_cast(g, LLVMBitCast, place_of(g, b), lt_pointer(g, lt_memory(g, x->dt, 1)));
  }
}

/* Sizes are arguments; those computed during the run start as 0. */
static void place_symbols(LlvmGen *g) {
  for (Sym s = 0; s < dim_nsyms(g->p->dims); s++) {
    const SymInfo *info = dim_syminfo(g->p->dims, s);
    if (info->kind == SY_derived) continue;
    VarId v = prog_sym_var(g->p, s);
    if (info->kind == SY_input) {
      g->var[v] = g->params.size[s];
      continue;
    }
    g->var[v] = lv_alloca(g, lt_int(g, 64));
    g->placed[v] = true;
    lv_store(g, lv_int(g, 64, 1, 0), g->var[v], 0);
  }
}

/* Extents that depend on data. */
static void store_shapes(LlvmGen *g) {
  for (u32 i = 0; i < g->p->out.n; i++) {
    const Buf *b = prog_buf(g->p, g->p->out.at[i]);
    if (!is_open_shape(g->p, b)) continue;
    for (u32 k = 0; k < b->rank; k++) {
      LVal n = gen_dim(g, b->dim[k]);
      lv_store(g, n, lv_element(g, lt_int(g, 64), g->params.shape[i], k), 8);
    }
  }
}

bool is_open_shape(Prog *p, const Buf *b) {
  for (u32 i = 0; i < b->rank; i++)
    if (dim_is_data(p->dims, b->dim[i])) return true;
  return false;
}

void gen_entry_body(LlvmGen *g, LVal fn, LLVMBasicBlockRef first) {
  LLVMBuilderRef b = g->unit->builder;
  g->fn = fn;
  place_symbols(g);
  place_buffers(g);
  gen_body(g, g->p->body);
  store_shapes(g);
  g->l->LLVMBuildRet(b, lv_int(g, 32, 1, 0));
  g->l->LLVMPositionBuilderAtEnd(b, g->head);
  g->l->LLVMBuildBr(b, first);
}

LLVMBasicBlockRef gen_function_begin(LlvmGen *g, LVal fn) {
  LLVMContextRef c = g->unit->context;
  g->fn = fn;
  g->head = g->l->LLVMAppendBasicBlockInContext(c, fn, "head");
  LLVMBasicBlockRef first = g->l->LLVMAppendBasicBlockInContext(c, fn, "first");
  g->l->LLVMPositionBuilderAtEnd(g->unit->builder, first);
  return first;
}

/* ---- function with the type of NAME_call ---- */

typedef enum EntryArg { EA_arena, EA_size, EA_seed, EA_in, EA_out, EA_shape, EA_COUNT } EntryArg;

static LVal argument(LlvmGen *g, EntryArg i) {
  return g->l->LLVMGetParam(g->fn, i);
}

static LVal load_arg(LlvmGen *g, LType t, EntryArg array, u64 i) {
  return lv_load(g, t, lv_element(g, t, argument(g, array), i), 0);
}

static void load_params(LlvmGen *g) {
  EntryParams *to = &g->params;
  LType word = lt_int(g, 64), pointer = lt_bytes(g);
  LVal weights =
      lv_cast(g, LLVMBitCast, load_arg(g, pointer, EA_in, g->p->in.n), lt_pointer(g, pointer));
  to->arena = argument(g, EA_arena);
  for (u32 i = 0; i < g->p->in.n; i++) to->in[i] = load_arg(g, pointer, EA_in, i);
  for (u32 i = 0; i < g->p->out.n; i++) {
    to->out[i] = load_arg(g, pointer, EA_out, i);
    to->shape[i] = load_arg(g, lt_pointer(g, word), EA_shape, i);
  }
  for (Sym s = 0; s < dim_nsyms(g->p->dims); s++) to->size[s] = load_arg(g, word, EA_size, s);
  for (BufId b = 1; b < g->p->buf.n; b++)
    if (prog_buf(g->p, b)->space == BS_const)
      to->weight[b] = lv_load(g, pointer, lv_element(g, pointer, weights, b), 0);
}

void gen_entry(LlvmGen *g) {
  LType word = lt_int(g, 64), table = lt_pointer(g, lt_bytes(g)), pointer = lt_pointer(g, word);
  LType param[EA_COUNT] = {lt_bytes(g), pointer, word, table, table, lt_pointer(g, pointer)};
  LType type = g->l->LLVMFunctionType(lt_int(g, 32), param, EA_COUNT, 0);
  LVal fn = lv_function(g, ENTRY_NAME, type);
  LLVMBasicBlockRef first = gen_function_begin(g, fn);
  lv_attribute(g, fn, EA_arena + 1, "noalias", 0);
  g->seed = argument(g, EA_seed);
  load_params(g);
  gen_entry_body(g, fn, first);
}
