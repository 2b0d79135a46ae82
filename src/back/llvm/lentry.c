/* lentry.c: the function that runs a model: it calls the kernels in order.
 *
 * In: a planned program. Out: ENTRY_NAME, of the type of NAME_call in generated C: arena, sizes,
 * seed, inputs, outputs, shapes. Behind the pointers to inputs stands one to those of constants, by
 * number of the buffer. Returns 0, or the status of a require, see status_text.
 */
#include "back/llvm/llvm.h"
#include "ir/prog_mem.h"

enum { STATUS_SIZE = 2, STATUS_STATE = 5, STATUS_FIRST = 6 };

/* ---- statuses ---- */

static Str require_text(Gen *g, const Stmt *s) {
  Text t = text_new(&g->c->scratch);
  if (s->loc.index >= 0 || s->loc.node) {
    text_puts(&t, "node");
    if (s->loc.index >= 0) text_fmt(&t, " %d", s->loc.index);
    if (s->loc.node) text_fmt(&t, " '%s'", show(g->c, s->loc.node));
    if (s->loc.op) text_fmt(&t, " (%s)", show(g->c, s->loc.op));
    text_puts(&t, ": ");
  }
  text_puts(&t, show_text(g->c, s->label));
  return str_intern(g->c, t.at, t.n);
}

u32 status_of(Gen *g, const Stmt *s) {
  if (ex_reads_state(g->p, s->a)) return STATUS_STATE;
  Str text = require_text(g, s);
  for (u32 i = 0; i < g->why->n; i++)
    if (g->why->at[i] == text) return STATUS_FIRST + i;
  *vec_push(&g->c->keep, g->why) = text;
  return STATUS_FIRST + g->why->n - 1;
}

/* Also where the code itself is not written, since it was kept. */
void list_statuses(Gen *g) {
  const Stmt *s;
  for (StmtWalk w = prog_walk(g->p, g->p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    if (s->kind == ST_require) status_of(g, s);
  }
}

const char *status_text(Ctx *c, const Lines *why, u32 status) {
  if (status == STATUS_SIZE) return "a size is out of its bounds";
  if (status == STATUS_STATE) return "the state is full, of another size, or was never cleared";
  u32 i = status - STATUS_FIRST;
  return status >= STATUS_FIRST && i < why->n ? str_text(c, why->at[i])
                                              : "not a status of the model";
}

/* ---- arguments ---- */

typedef enum EntryArg { EA_arena, EA_size, EA_seed, EA_in, EA_out, EA_shape, EA_COUNT } EntryArg;

static LVal argument(Gen *g, EntryArg i) {
  return g->l->LLVMGetParam(g->fn, i);
}

static LType bytes(Gen *g) {
  return lt_pointer(g, lt_int(g, 8));
}

/* Element i of an array of pointers, or of numbers. */
static LVal at(Gen *g, LType t, LVal array, u64 i) {
  LVal by = lv_int(g, 64, 1, (i64)i);
  return lv_load(g, t, g->l->LLVMBuildInBoundsGEP2(g->unit->builder, t, array, &by, 1, ""), 0);
}

static LVal place_of(Gen *g, BufId b, LVal weights) {
  BufId root = prog_root(g->p, b);
  const Buf *x = prog_buf(g->p, root);
  u32 pos = 0;
  LVal by;
  switch (x->space) {
  case BS_in:
    while (g->p->in.at[pos] != root) pos++;
    return at(g, bytes(g), argument(g, EA_in), pos);
  case BS_out:
    while (g->p->out.at[pos] != root) pos++;
    return at(g, bytes(g), argument(g, EA_out), pos);
  case BS_const: return at(g, bytes(g), weights, root);
  default:
    by = lv_int(g, 64, 1, (i64)x->offset);
    return g->l->LLVMBuildInBoundsGEP2(g->unit->builder, lt_int(g, 8), argument(g, EA_arena), &by,
                                       1, "");
  }
}

static void place_buffers(Gen *g) {
  LVal weights = lv_cast(g, LLVMBitCast, at(g, bytes(g), argument(g, EA_in), g->p->in.n),
                         lt_pointer(g, bytes(g)));
  for (BufId b = 1; b < g->p->buf.n; b++) {
    const Buf *x = prog_buf(g->p, b);
    if (x->space == BS_reg) continue;
    g->base[b] =
        lv_cast(g, LLVMBitCast, place_of(g, b, weights), lt_pointer(g, lt_memory(g, x->dt, 1)));
  }
}

/* Sizes are arguments; those that are found out while running begin with 0. */
static void place_symbols(Gen *g) {
  for (Sym s = 0; s < dim_nsyms(g->p->dims); s++) {
    const SymInfo *info = dim_syminfo(g->p->dims, s);
    if (info->kind == SY_derived) continue;
    VarId v = prog_sym_var(g->p, s);
    if (info->kind == SY_input) {
      g->var[v] = at(g, lt_int(g, 64), argument(g, EA_size), s);
      continue;
    }
    g->var[v] = lv_place(g, lt_int(g, 64));
    g->placed[v] = true;
    lv_store(g, lv_int(g, 64, 1, 0), g->var[v], 0);
  }
}

/* Extents that depend on what was found out. */
static void store_shapes(Gen *g) {
  for (u32 i = 0; i < g->p->out.n; i++) {
    const Buf *b = prog_buf(g->p, g->p->out.at[i]);
    LVal shape = NULL;
    for (u32 k = 0; k < b->rank; k++) {
      if (!dim_is_data(g->p->dims, b->dim[k])) continue;
      LType word = lt_int(g, 64);
      if (!shape) shape = at(g, lt_pointer(g, word), argument(g, EA_shape), i);
      LVal by = lv_int(g, 64, 1, k), n = gen_dim(g, b->dim[k]);
      lv_store(g, n, g->l->LLVMBuildInBoundsGEP2(g->unit->builder, word, shape, &by, 1, ""), 0);
    }
  }
}

void gen_entry(Gen *g) {
  LLVMBuilderRef b = g->unit->builder;
  LType word = lt_int(g, 64), table = lt_pointer(g, bytes(g)), pointer = lt_pointer(g, word);
  LType param[EA_COUNT] = {bytes(g), pointer, word, table, table, lt_pointer(g, pointer)};
  LType type = g->l->LLVMFunctionType(lt_int(g, 32), param, EA_COUNT, 0);
  LLVMContextRef c = g->unit->context;
  g->fn = lv_function(g, ENTRY_NAME, type);
  g->head = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "head");
  LLVMBasicBlockRef first = g->l->LLVMAppendBasicBlockInContext(c, g->fn, "first");
  g->l->LLVMPositionBuilderAtEnd(b, first);
  g->seed = argument(g, EA_seed);
  place_symbols(g);
  place_buffers(g);
  gen_body(g, g->p->body);
  store_shapes(g);
  g->l->LLVMBuildRet(b, lv_int(g, 32, 1, 0));
  g->l->LLVMPositionBuilderAtEnd(b, g->head);
  g->l->LLVMBuildBr(b, first);
}
