/* Bytes -> model -> graph -> all passes, verified after each -> program; run by ref and by interp.
 *
 * Beyond what the sanitizers see: a refusal is the model's fault (code 2, 3 or 4), never a bug that
 * a verifier or the interpreter finds; where ref has a result, so has interp, to the bit (passes
 * that may change last bits are left out). Unknown dimensions become 2, or stay symbolic up to 4
 * for every second length of the input. Models that would run long, or keep a state, are only
 * compiled. The allocator refuses more than MOST_BYTES.
 */
#ifndef FUZZ_WHOLE_H
#define FUZZ_WHOLE_H

#include "back/back.h"
#include "front/reader.h"
#include "pass/pass.h"
#include "small.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_STEPS = 1 << 16, MOST_ELEMENTS = 1 << 14, MOST_PARAMS = 16, SIZE = 2, MOST_SIZE = 4 };
static const size_t MOST_BYTES = (size_t)768 << 20;
#include "memory.h"
static const Small small = {MOST_STEPS, MOST_ELEMENTS, true};

typedef struct Whole {
  Model *(*open)(Ctx *c, const Source *s);
  Graph *(*import)(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
} Whole;
static const Whole whole_format; /* of the target */

typedef struct Job {
  const u8 *at;
  size_t n;
  Graph *g;
  Prog *p;
  u32 nin, nout;
  Tensor *in[MOST_PARAMS], *out[2][MOST_PARAMS];
} Job;

static void import(Ctx *c, void *arg) {
  Job *j = arg;
  Source s = {.at = j->at, .n = j->n, .path = "-"};
  const Model *m = whole_format.open(c, &s);
  VEC(BindDim) dim = {0};
  for (u32 i = 0; i < m->ninput; i++)
    for (u32 k = 0; k < m->input[i]->type.dims.n && k < MAX_RANK; k++) {
      const DeclDim *d = &m->input[i]->type.dims.at[k];
      bool bound = j->n % 2;
      if (d->kind == OD_value && d->value >= 0) continue;
      *vec_push(&c->keep, &dim) = (BindDim){
          .input = m->input[i]->name, .axis = k, .value = bound ? MOST_SIZE : SIZE, .bound = bound};
    }
  ImportOptions o = {.dim = dim.at, .ndim = dim.n};
  j->g = whole_format.import(c, &s, m, &o);
}

static void passes(Ctx *c, void *arg) {
  Job *j = arg;
  PassCtx u = {.c = c, .g = j->g};
  PipeOptions o = {.skip = "canon", .check = true, .precise = true}; /* as ref computes */
  pipeline_run(&u, &o);
  j->p = u.p;
}

/* ---- running ---- */

/* The same limit on the graph as imported, so that ref does not work for nothing long. */
static bool is_light(Graph *g) {
  for (Val v = 1; v < g->val.n; v++) {
    const Type *t = graph_type(g, v);
    u64 n = 1;
    for (u32 i = 0; t->kind == TY_tensor && i < t->rank; i++) {
      i64 lo, hi;
      dim_bounds(g->dims, t->dim[i], &lo, &hi);
      if (!size_mul(n, (u64)hi, &n) || n > MOST_ELEMENTS) return false;
    }
  }
  return true;
}

static bool make_inputs(Ctx *c, Job *j) {
  const GraphRegion *b = &j->g->region.at[1];
  j->nin = b->param.n, j->nout = b->ret.n;
  if (j->nin > MOST_PARAMS || j->nout > MOST_PARAMS) return false;
  for (u32 i = 0; i < j->nin; i++) {
    const Type *t = graph_type(j->g, b->param.at[i]);
    i64 dim[MAX_RANK];
    if (t->kind != TY_tensor || t->dt == DT_str) return false;
    for (u32 k = 0; k < t->rank; k++) dim[k] = dim_is_const(t->dim[k]) ? t->dim[k] : SIZE;
    j->in[i] = tensor_new(&c->keep, t->dt, dim, t->rank);
    for (u64 k = 0; k < j->in[i]->n; k++) {
      Scalar x = {.i = (i64)((k * 7 + i) % 3)};
      if (t->dt == DT_bool) x.i &= 1;
      if (dtype_is_float(t->dt)) x.f = scalar_round(t->dt, (double)((k * 7 + i) % 9) * 0.37 - 1.1);
      tensor_set(j->in[i], k, x);
    }
  }
  return true;
}

static void run_ref(Ctx *c, void *arg) {
  Job *j = arg;
  RefOptions o = {.max_bytes = (u64)64 << 20};
  ref_run(j->g, &o, j->in, j->out[0], &c->keep);
}

static void run_interp(Ctx *c, void *arg) {
  Job *j = arg;
  InterpOptions o = {.max_steps = 4 * MOST_STEPS};
  interp_run(j->p, &o, j->in, j->out[1], &c->keep);
}

static bool same(const Tensor *a, const Tensor *b) {
  if (a->dt != b->dt || a->rank != b->rank || a->n != b->n) return false;
  for (u32 i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  for (u64 i = 0; i < a->n && a->dt != DT_str; i++) {
    Scalar x = tensor_get(a, i), y = tensor_get(b, i);
    bool nan =
        dtype_is_float(a->dt) && x.f != x.f && y.f != y.f; /* which NaN is up to the processor */
    if (x.i != y.i && !nan) return false;
  }
  return true;
}

/* ---- one input ---- */

static _Noreturn void report(Ctx *c, const char *what) {
  fprintf(stderr, "fuzz_import: %s\n", what);
  for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "  %s\n", d->text);
  abort();
}

static bool fine(Ctx *c, const Memory *m, Err e, const char *what) {
  if (e == ERR_ok) return true;
  if (e == ERR_mismatch || (e == ERR_system && !m->refused)) report(c, what);
  return false;
}

static void check(Ctx *c, const Memory *m, Job *j) {
  if (!fine(c, m, ctx_protect(c, import, j), "import")) return;
  bool light = !j->g->state.n && is_light(j->g) && make_inputs(c, j);
  Err ref = light ? ctx_protect(c, run_ref, j) : ERR_unsupported;
  fine(c, m, ref, "ref");
  c->nerrors = 0; /* what ref refuses may be gone when the passes are through */
  if (!fine(c, m, ctx_protect(c, passes, j), "passes") || !light || !is_small(j->p, &small)) return;
  Err e = ctx_protect(c, run_interp, j);
  fine(c, m, e, "interp");
  if (ref == ERR_ok && e == ERR_input) report(c, "interp refuses what ref accepts");
  for (u32 i = 0; ref == ERR_ok && e == ERR_ok && i < j->nout; i++)
    if (!same(j->out[0][i], j->out[1][i])) report(c, "ref and interp differ");
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  Memory m = {0};
  Job j = {.at = at, .n = n};
  Alloc a = {resize, &m};
  Ctx *c = ctx_new(&a, NULL);
  check(c, &m, &j);
  ctx_free(c);
  if (m.held) abort();
  return 0;
}

#endif
