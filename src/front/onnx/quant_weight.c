/* quant_weight.c: quantizes weights to integers.
 *
 * In: the weights of a layer. Out: codes and scales per output channel, per tensor, or per group
 * along the reduction axis; the dequantized values; the error.
 *
 * Method: each group tries several scales, from the one that just covers its largest magnitude down
 * to smaller ones that clip it. For the codes of each, the scale is refitted by least squares; the
 * smallest squared error wins. For 4 bits also negative scales, which put the larger half of the
 * codes (-8) on the side of the largest magnitude.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_quantize.h"
#include <math.h>
#include <string.h>

/* The elements of one group, at a constant stride. */
typedef struct Group {
  const float *w;
  u64 first, step, n;
} Group;

typedef struct Levels {
  i32 least, most;
  bool turns; /* allows negative scales */
} Levels;

static u64 place_of(const Group *g, u64 i) {
  return g->first + i * g->step;
}

static i32 level(double x, double inverse, Levels v) {
  double q = rint(x * inverse);
  return q < v.least ? v.least : q > v.most ? v.most : (i32)q;
}

/* The least-squares scale for the codes that `scale` gives, and its error. */
static double fit(const float *x, u64 n, Levels v, double *scale) {
  double inverse = 1 / *scale, xq = 0, qq = 0, xx = 0;
  for (u64 i = 0; i < n; i++) {
    double q = level((double)x[i], inverse, v);
    xq += (double)x[i] * q;
    qq += q * q;
    xx += (double)x[i] * (double)x[i];
  }
  if (!(qq > 0)) return INFINITY;
  *scale = (double)(float)(xq / qq);
  double s = *scale;
  return xx - 2 * s * xq + s * s * qq;
}

static double search(const float *x, u64 n, Levels v) {
  double far = 0;
  for (u64 i = 0; i < n; i++)
    if (fabs((double)x[i]) > fabs(far)) far = (double)x[i];
  if (!(fabs(far) > 1e-30)) return 1;
  u32 tries = v.most < 16 ? 20 : 8;
  double best = INFINITY, found = fabs(far) / v.most;
  for (u32 i = 0; i < tries * (1 + v.turns); i++) {
    double f = 1 - 0.5 * (double)(i % tries) / tries;
    if (v.most >= 16) f = 1 - 0.12 * (double)(i % tries) / tries;
    double s = i < tries ? fabs(far) / v.most * f : far / v.least * f;
    double e = fit(x, n, v, &s);
    if (e >= best || !(fabs(s) > 1e-30)) continue;
    best = e;
    found = s;
  }
  return found;
}

static void code_group(const Group *g, Levels v, QuantWeights *to, u64 number, float *room) {
  for (u64 i = 0; i < g->n; i++) room[i] = g->w[place_of(g, i)];
  double s = search(room, g->n, v);
  to->scale[number] = (float)s;
  for (u64 i = 0; i < g->n; i++) {
    i32 q = level((double)room[i], 1 / (double)(float)s, v);
    to->code[place_of(g, i)] = (i8)q;
    to->value[place_of(g, i)] = (float)q * (float)s;
  }
}

double quant_sqnr(double signal, double noise) {
  if (noise == 0) return INFINITY;
  return noise > 0 && isfinite(noise) ? 10 * log10(signal / noise) : -INFINITY;
}

bool quant_equal(double have, double want) {
  return have == want || (isnan(have) && isnan(want));
}

static void need_finite(const QuantJob *j, const QuantLayer *l, Str name, const Tensor *t) {
  Ctx *c = j->c;
  for (u64 i = 0; t && i < t->n; i++) {
    double x = tensor_get(t, i).f;
    if (isfinite(x)) continue;
    fail(c, ERR_input, LOC_NONE,
         "tensor '%s' of layer '%s' holds %s at %s, which codes cannot represent: exclude the "
         "layer (--exclude), or use the method f16 or bf16",
         show(c, name), show(c, l->name), isnan(x) ? "NaN" : "an infinity", index_text(c, t, i));
  }
}

static void measure_error(const Tensor *w, QuantWeights *to) {
  double signal = 0, noise = 0, most = 0;
  for (u64 i = 0; i < w->n; i++) {
    double x = tensor_get(w, i).f, e = (double)to->value[i] - x;
    if (!isfinite(x) && quant_equal((double)to->value[i], x)) continue;
    signal += x * x;
    noise += e * e;
    most = fmax(most, fabs(e));
  }
  to->mse = noise / (double)w->n;
  to->max_error = most;
  to->sqnr = quant_sqnr(signal, noise);
}

bool quant_is_blockwise(const QuantJob *j, const QuantLayer *l) {
  bool weights = j->wish.method == QM_weights8 || j->wish.method == QM_weights4;
  return weights && !l->table && l->weight->rank == 2 && j->wish.per == QP_group;
}

u32 quant_bits(const QuantJob *j, const QuantLayer *l) {
  return j->wish.method == QM_weights4 && !l->table && (l->weight->rank == 2 || j->four) ? 4 : 8;
}

const QuantWeights *quant_encode_weights(QuantJob *j, QuantLayer *l) {
  const Tensor *w = l->weight;
  Arena *a = &j->c->keep;
  QuantMethod how = j->wish.method;
  if (l->coded) return l->coded;
  QuantWeights *to = NEW(a, QuantWeights);
  to->value = NEWS(a, float, w->n);
  l->coded = to;
  if (how == QM_f16 || how == QM_bf16) { /* rounded, without integers */
    DType dt = how == QM_f16 ? DT_f16 : DT_bf16;
    for (u64 i = 0; i < w->n; i++) to->value[i] = (float)scalar_round(dt, tensor_get(w, i).f);
    measure_error(w, to);
    return to;
  }
  need_finite(j, l, l->w, w);
  need_finite(j, l, l->b, l->bias);
  if (l->late_bias) need_finite(j, l, l->late_bias, quant_constant(j, l->late_bias));
  bool blocks = quant_is_blockwise(j, l), four = quant_bits(j, l) == 4;
  Levels v = {four ? -8 : -127, four ? 7 : 127, four && blocks};
  u64 rows = (u64)w->dim[l->axis], n = w->n / rows;
  u64 size = blocks ? j->wish.block : j->wish.per == QP_tensor ? w->n : n;
  to->code = NEWS(a, i8, w->n);
  to->per_row = j->wish.per == QP_tensor || !size ? 0 : (n + size - 1) / size;
  to->scale = NEWS(a, float, to->per_row ? rows * to->per_row : 1);
  Mark mark = arena_mark(&j->c->scratch);
  float *room = NEWS(&j->c->scratch, float, size);
  if (!to->per_row) {
    Group g = {.w = w->data, .step = 1, .n = w->n};
    code_group(&g, v, to, 0, room);
  }
  /* element k of row r: r * n + k, or k * rows + r if rows are the inner axis */
  u64 step = l->axis ? rows : 1, row = l->axis ? 1 : n;
  for (u64 r = 0; to->per_row && r < rows; r++)
    for (u64 b = 0; b < to->per_row; b++) {
      u64 from = b * size, count = from + size < n ? size : n - from;
      Group g = {.w = w->data, .first = r * row + from * step, .step = step, .n = count};
      code_group(&g, v, to, r * to->per_row + b, room);
    }
  arena_rewind(&j->c->scratch, mark);
  measure_error(w, to);
  return to;
}
