/* quantize_run.c: runs models in memory on examples.
 *
 * In: bytes of an ONNX model, and inputs. Out: outputs of every run, by engine vm, which needs no
 * compiler; sums of errors. A runner keeps its session while the shapes of inputs stay the same.
 */
#include "driver/quantize/quantize_internal.h"
#include "front/onnx/onnx_quantize.h"

#include <math.h>
#include <string.h>

static bool same_shapes(const Examples *e, Tensor **a, Tensor **b) {
  for (u32 k = 0; k < e->ninput; k++) {
    if (a[k]->rank != b[k]->rank || a[k]->dt != b[k]->dt) return false;
    for (u32 i = 0; i < a[k]->rank; i++)
      if (a[k]->dim[i] != b[k]->dim[i]) return false;
  }
  return true;
}

void runner_close(ModelRunner *t) {
  ingot_free(t->s);
  t->s = NULL;
}

static void open_runner(ModelRunner *t) {
  IngotAlloc alloc = {t->c->alloc.resize, t->c->alloc.user};
  runner_close(t);
  t->s = ingot_new(&alloc);
  if (!t->s) fail(t->c, ERR_system, LOC_NONE, "out of memory");
  ingot_open_bytes(t->s, t->model.at, t->model.n, t->file);
}

static void set_host(Ctx *c, void *arg) {
  (void)c;
  api_target_host(arg);
}

static IngotStatus attempt(ModelRunner *t, const Examples *e, u32 i) {
  Ingot *s = t->s;
  IngotStatus r = INGOT_OK;
  for (u32 k = 0; !r && k < e->ninput; k++) {
    IngotTensor x = api_tensor(s, 0, e->at[i][k]);
    x.name = str_text(t->c, e->name[k]);
    r = ingot_input(s, &x);
  }
  if (!r && !t->last) r = api_call(s, set_host, s);
  if (!r) r = ingot_run(s, "vm", 0);
  return r;
}

/* Repeats the message of the session, without its file name, which is printed anyway. */
static _Noreturn void fail_as(const ModelRunner *t, IngotStatus r, u32 i) {
  const Ingot *s = t->s;
  const char *text = NULL;
  size_t n = strlen(t->file);
  int is_warning;
  for (u32 k = 0; k < ingot_message_count(s); k++) {
    const char *x = ingot_message(s, k, &is_warning);
    if (!is_warning) text = x;
  }
  if (text && !strncmp(text, t->file, n) && !strncmp(text + n, ": ", 2)) text += n + 2;
  fail(t->c, (Err)r, LOC_NONE, "example %u: %s", i, text ? text : "the model cannot be run");
}

void runner_run(ModelRunner *t, const Examples *e, u32 i) {
  bool kept = t->s && t->last && same_shapes(e, t->last, e->at[i]);
  if (!kept) {
    open_runner(t);
    t->last = NULL;
  }
  IngotStatus r = attempt(t, e, i);
  if (r && kept) { /* contents may decide shapes */
    open_runner(t);
    t->last = NULL;
    r = attempt(t, e, i);
  }
  if (r) fail_as(t, r, i);
  t->last = e->at[i];
}

/* Every session numbers strings differently: converts them to the context of the runner, in its
 * work arena. */
static Tensor *own_texts(const ModelRunner *t, const Tensor *x) {
  Tensor *y = tensor_new(&t->c->work, DT_str, x->dim, x->rank);
  for (u64 i = 0; i < x->n; i++) {
    Str s = (Str)tensor_get(x, i).i;
    s = str_intern(t->c, str_text(t->s->c, s), str_len(t->s->c, s));
    tensor_set(y, i, (Scalar){.i = s});
  }
  return y;
}

const Tensor *runner_value(const ModelRunner *t, const char *name) {
  for (u32 i = 0; i < t->s->run.nout; i++) {
    const Tensor *x = t->s->run.out[i];
    if (strcmp(str_text(t->s->c, api_result_name(t->s, i)), name) != 0) continue;
    return x && x->dt == DT_str ? own_texts(t, x) : x;
  }
  return NULL;
}

/* A different number of elements counts as all different. Complex numbers are not counted. */
static void add_whole(ErrorSums *s, const Tensor *have, const Tensor *want) {
  if (want->dt == DT_c64 || want->dt == DT_c128) return;
  s->whole += want->n;
  for (u64 i = 0; i < want->n; i++)
    s->changed += !have || have->n != want->n || tensor_get(have, i).i != tensor_get(want, i).i;
}

void error_sums_add(ErrorSums *s, const Tensor *have, const Tensor *want) {
  if (want && !dtype_is_float(want->dt)) {
    add_whole(s, have, want);
    return;
  }
  if (!have || !want || have->n != want->n) return;
  for (u64 i = 0; i < want->n; i++) {
    double x = tensor_get(want, i).f, y = tensor_get(have, i).f, e = y - x;
    if (!isfinite(x) && quant_equal(y, x)) continue;
    if (!isfinite(e)) {
      s->noise = s->max_abs = INFINITY;
      continue;
    }
    s->signal += x * x;
    s->noise += e * e;
    s->max_abs = fmax(s->max_abs, fabs(e));
  }
  s->n += want->n;
}

double error_sums_sqnr(const ErrorSums *s) {
  if (!s->n) return NAN;
  return quant_sqnr(s->signal, s->noise);
}

double error_sums_mse(const ErrorSums *s) {
  return s->n ? s->noise / (double)s->n : NAN;
}
