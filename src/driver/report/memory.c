/* memory.c: memory that a model needs at run time.
 *
 * In: a model. Out: figures of its memory plan. Runs the passes first if necessary. A program
 * without bounds has no plan; then the reason is returned.
 */
#include "driver/report/report.h"

typedef struct MemoryArg {
  Ingot *m;
  IngotMemory *out;
} MemoryArg;

static const char *no_plan(Ctx *c, Prog *p) {
  for (BufId b = 1; b < p->buf.n; b++) {
    u64 bytes;
    Sym sym;
    if (!prog_is_planned(prog_buf(p, b)) || mem_bytes(p, b, &bytes, &sym)) continue;
    if (sym == TOO_LARGE) return "a buffer is too large";
    return fmt_text(c, "%s has no upper bound; --max-shapes sets one",
                    show(c, dim_syminfo(p->dims, sym)->name));
  }
  return "the pass plan has not run";
}

static void fill(Ingot *m, IngotMemory *out) {
  Ctx *c = m->c;
  Prog *p = m->p;
  PlanReport r = plan_report(p, &c->keep);
  *out = (IngotMemory){.planned = p->planned, .weights = r.weights, .groups = r.kernels};
  out->buffers = r.buffers;
  if (!p->planned) {
    out->why = no_plan(c, p);
    return;
  }
  out->why = "";
  out->arena = p->arena_bytes;
  out->lower_bound = r.bound;
  out->naive = r.naive;
  out->npeak = r.npeak;
  IngotTensor *t = NEWS(&c->keep, IngotTensor, r.npeak);
  for (u32 i = 0; i < r.npeak; i++) {
    const Buf *b = prog_buf(p, r.peak[i]);
    t[i] = (IngotTensor){str_text(c, b->name), dtype_info[b->dt].name, b->rank, NULL, NULL, 0};
    i64 *dim = NEWS(&c->keep, i64, b->rank), lo;
    for (u32 k = 0; k < b->rank; k++) dim_bounds(p->dims, b->dim[k], &lo, &dim[k]);
    t[i].dim = dim;
    t[i].bytes = r.peak_bytes[i];
  }
  out->peak = t;
}

/* Fills figures of the generated C; some element types have none. */
static void fill_c(Ctx *c, void *arg) {
  MemoryArg *a = arg;
  (void)c;
  EmitOptions o = api_query_options(a->m, api_program_target(a->m));
  EmitFacts f = emit_facts(a->m->p, &o);
  a->out->arena = f.arena_bytes;
  a->out->stack = f.stack_bytes;
  a->out->inputs = f.input_bytes;
  a->out->outputs = f.output_bytes;
  a->out->ram = ram_bytes(&f);
  a->out->code = f.code_bytes;
  a->out->kernels = f.kernels;
}

void api_memory(Ingot *m, IngotMemory *out) {
  const char *why;
  if (!m->p) m->codegen.for_c = true; /* the program that compile writes */
  if (!m->p) api_run_passes(m, NULL);
  prog_names(m->p);
  fill(m, out);
  if (out->planned) ctx_try(m->c, fill_c, &(MemoryArg){m, out}, &why);
}

static void query_memory(Ingot *m, IngotMemory *out) {
  api_need(m->c, out, "a pointer to the figures");
  api_need_single_variant(m);
  api_import(m, false);
  api_memory(m, out);
}

IngotStatus ingot_memory(Ingot *m, IngotMemory *out) {
  if (out) *out = (IngotMemory){.why = ""};
  API_CALL(m, query_memory(m, out));
}
