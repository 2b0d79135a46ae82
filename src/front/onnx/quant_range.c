/* quant_range.c: chooses the quantization range of an activation.
 *
 * In: values of a tensor in runs over examples. Out: a range, hence a scale and a zero point.
 *   minmax      everything seen
 *   average     mean minimum and maximum of the runs (ONNX Runtime's moving average without decay)
 *   percentile  all but one in ten thousand on either side
 *   entropy     the scaled range whose 256 levels have the smallest Kullback-Leibler divergence
 *               from the histogram (TensorRT)
 *   mse         the range with the smallest mean squared error, searched end by end
 * The range always contains zero, because padding and Relu produce it exactly.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_quantize.h"
#include <math.h>
#include <string.h>

/* ---- observation ---- */

static void see_range(QuantObserver *p, const Tensor *t) {
  double lo = 0, hi = 0;
  const u8 *at = t->data;
  for (u64 i = 0; i < t->n; i++) {
    float x;
    memcpy(&x, at + 4 * i, 4);
    p->odd |= !isfinite(x);
    if (!isfinite(x)) continue;
    if ((double)x < lo) lo = (double)x;
    if ((double)x > hi) hi = (double)x;
  }
  p->lo = fmin(p->lo, lo);
  p->hi = fmax(p->hi, hi);
  p->sum_lo += lo;
  p->sum_hi += hi;
  p->runs++;
}

static void see_bins(QuantJob *j, QuantObserver *p, const Tensor *t) {
  double per = p->hi > p->lo ? QUANT_BINS / (p->hi - p->lo) : 0;
  if (!p->bin) p->bin = NEWS(&j->c->keep, u64, QUANT_BINS);
  const u8 *at = t->data;
  for (u64 i = 0; i < t->n; i++) {
    float x;
    memcpy(&x, at + 4 * i, 4);
    double k = ((double)x - p->lo) * per;
    p->bin[k >= QUANT_BINS - 1 ? QUANT_BINS - 1 : k > 0 ? (u32)k : 0]++;
  }
}

static double through_bytes(double x, float scale, i32 zero, i32 least) {
  double q = rint(x / (double)scale) + zero;
  q = q < least ? least : q > least + 255 ? least + 255 : q;
  return (q - zero) * (double)scale;
}

static void see_means(QuantJob *j, const QuantObserver *p, ChannelSums *s, u32 axis,
                      const Tensor *t) {
  if (axis >= t->rank) return;
  u64 n = (u64)t->dim[axis], inner = 1;
  for (u32 i = axis + 1; i < t->rank; i++) inner *= (u64)t->dim[i];
  if (!s->sum) {
    s->channels = (u32)n;
    s->sum = NEWS(&j->c->keep, double, n);
    s->sum_of_bytes = NEWS(&j->c->keep, double, n);
  }
  if (s->channels != n || !n) return;
  float scale;
  i32 zero, least = j->wish.is_signed ? -128 : 0;
  quant_scale(j, p, &scale, &zero);
  bool bytes = j->wish.method == QM_static;
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f;
    u64 ch = i / inner % n;
    s->sum[ch] += x;
    s->sum_of_bytes[ch] += bytes ? through_bytes(x, scale, zero, least) : x;
  }
  s->counted += t->n / n;
}

void quant_observe(QuantJob *j, u32 point, const Tensor *t, QuantStat look) {
  QuantObserver *p = &j->point.at[point];
  if (t->dt != DT_f32) return;
  if (look == QL_range) see_range(p, t);
  if (look == QL_bins) see_bins(j, p, t);
  for (QuantAxis a = 0; look == QL_means && a < QA_count; a++)
    if (p->along[a].wanted) see_means(j, p, &p->along[a], a == QA_last ? t->rank - 1 : 1, t);
}

/* ---- selection ---- */

/* One value in this many may fall outside, on either side. */
#define OUTSIDE 10000

static void choose_percentile(QuantObserver *p) {
  u64 all = 0, below = 0, above = 0;
  u32 first = 0, last = QUANT_BINS - 1;
  double wide = (p->hi - p->lo) / QUANT_BINS;
  for (u32 i = 0; i < QUANT_BINS; i++) all += p->bin[i];
  u64 most = all / OUTSIDE;
  while (first < last && below + p->bin[first] <= most) below += p->bin[first++];
  while (last > first && above + p->bin[last] <= most) above += p->bin[last--];
  p->from = fmin(0, p->lo + first * wide);
  p->to = fmax(0, p->lo + (last + 1) * wide);
}

/* Sum of squared errors if from..to is divided into 255 steps. */
static double error_of(const QuantObserver *p, double from, double to) {
  double step = (to - from) / 255, sum = 0, wide = (p->hi - p->lo) / QUANT_BINS;
  if (!(step > 0)) return INFINITY;
  double within = step > wide ? 0 : wide * wide / 12; /* variance within a bin */
  for (u32 i = 0; i < QUANT_BINS; i++) {
    if (!p->bin[i]) continue;
    double x = p->lo + ((double)i + 0.5) * (p->hi - p->lo) / QUANT_BINS, /* center of the bin */
        q = rint((x - from) / step) * step + from;
    q = q < from ? from : q > to ? to : q;
    sum += (double)p->bin[i] * ((x - q) * (x - q) + within);
  }
  return sum;
}

static void choose_mse(QuantObserver *p, bool symmetric) {
  enum { STEPS = 64, ROUNDS = 2 };
  double far = fmax(-p->lo, p->hi), from = symmetric ? -far : p->lo, to = symmetric ? far : p->hi;
  double lo = from, hi = to, best = error_of(p, from, to);
  for (u32 round = 0; round < ROUNDS; round++)
    for (u32 end = 0; end < 2; end++)
      for (u32 i = 1; i < STEPS; i++) {
        double f = 1 - (double)i / STEPS;
        double a = end == 0 || symmetric ? lo * f : from, b = end == 1 || symmetric ? hi * f : to;
        double e = error_of(p, a, b);
        if (e >= best) continue;
        best = e;
        from = a;
        to = b;
      }
  p->from = from;
  p->to = to;
}

/* Divergence between bins first..last, with outliers added to the ends, and the same bins averaged
 * within each of 256 levels. */
static double divergence(const u64 *bin, u32 first, u32 last) {
  enum { STEPS = 256 };
  u32 n = last - first + 1;
  double outside[2] = {0, 0}, inside = 0, sum = 0;
  for (u32 i = 0; i < QUANT_BINS; i++) {
    if (i < first) outside[0] += (double)bin[i];
    if (i > last) outside[1] += (double)bin[i];
    if (i >= first && i <= last) inside += (double)bin[i];
  }
  double all = inside + outside[0] + outside[1];
  if (!(inside > 0)) return INFINITY;
  for (u32 s = 0; s < STEPS; s++) {
    u32 a = first + s * n / STEPS, b = first + (s + 1) * n / STEPS, filled = 0;
    double mass = 0;
    for (u32 i = a; i < b; i++) {
      mass += (double)bin[i];
      filled += bin[i] > 0;
    }
    for (u32 i = a; i < b; i++) {
      double have = (double)bin[i] + (i == first ? outside[0] : 0) + (i == last ? outside[1] : 0);
      double q = bin[i] ? mass / filled
                        : 1e-3; /* the quantized distribution gives this a small probability */
      if (have > 0) sum += have / all * log(have / all / (q / inside));
    }
  }
  return sum;
}

/* Zeros, frequent after Relu, are exact in any range: their bin gets the mean of its neighbors. */
static u64 *without_zeros(QuantJob *j, const QuantObserver *p) {
  u64 *bin = arena_copy(&j->c->scratch, p->bin, QUANT_BINS * sizeof *bin);
  u32 at = (u32)(-p->lo / (p->hi - p->lo) * QUANT_BINS);
  at = at < QUANT_BINS ? at : QUANT_BINS - 1;
  u64 left = at ? bin[at - 1] : 0, right = at + 1 < QUANT_BINS ? bin[at + 1] : 0;
  bin[at] = left > right ? left : right;
  return bin;
}

static void choose_entropy(QuantJob *j, QuantObserver *p) {
  enum { CANDIDATES = 96 };
  double wide = (p->hi - p->lo) / QUANT_BINS, best = INFINITY;
  Mark mark = arena_mark(&j->c->scratch);
  const u64 *bin = without_zeros(j, p);
  for (u32 i = CANDIDATES / 8; i <= CANDIDATES; i++) {
    double f = (double)i / CANDIDATES, first = (p->lo * f - p->lo) / wide,
           last = (p->hi * f - p->lo) / wide;
    u32 to = last < QUANT_BINS - 1 ? (u32)last : QUANT_BINS - 1;
    double e = divergence(bin, (u32)first, to);
    if (e >= best) continue;
    best = e;
    p->from = p->lo * f;
    p->to = p->hi * f;
  }
  arena_rewind(&j->c->scratch, mark);
}

void quant_choose_ranges(QuantJob *j, QuantRange how) {
  for (u32 i = 0; i < j->point.n; i++) {
    QuantObserver *p = &j->point.at[i];
    bool spread = p->bin && p->hi > p->lo;
    p->from = p->lo;
    p->to = p->hi;
    if (how == QR_average && p->runs) {
      p->from = p->sum_lo / p->runs;
      p->to = p->sum_hi / p->runs;
    }
    if (how == QR_percentile && spread) choose_percentile(p);
    if (how == QR_entropy && spread) choose_entropy(j, p);
    if (how == QR_mse && spread) choose_mse(p, j->wish.symmetric);
  }
}

void quant_scale(const QuantJob *j, const QuantObserver *p, float *scale, i32 *zero) {
  i32 least = j->wish.is_signed ? -128 : 0;
  double far = fmax(-p->from, p->to);
  double step = j->wish.symmetric ? far / 127 : (p->to - p->from) / 255;
  *scale = step > 1e-30 ? (float)step : 1;
  double z = j->wish.symmetric ? least + 128 : rint(-p->from / (double)*scale) + least;
  *zero = (i32)(z < least ? least : z > least + 255 ? least + 255 : z);
}

/* ---- bias correction ---- */

/* The channel of x that element i of the weights reads. */
static u64 read_channel(const QuantJob *j, const QuantLayer *l, u64 i) {
  const Tensor *w = l->weight;
  if (w->rank == 2) return l->axis ? i / (u64)w->dim[1] : i % (u64)w->dim[1];
  i64 groups = onnx_get_int(j->c, &j->m->graph->nodes.at[l->node], "group", 1);
  u64 in = (u64)w->dim[1], run = w->n / (in * (u64)w->dim[0]), out = i / (in * run);
  u64 per = (u64)w->dim[0] / (u64)(groups > 0 ? groups : 1);
  return out / (per ? per : 1) * in + i / run % in;
}

static u64 made_channel(const QuantLayer *l, u64 i) {
  const Tensor *w = l->weight;
  if (w->rank == 2) return l->axis ? i % (u64)w->dim[1] : i / (u64)w->dim[1];
  return i / (w->n / (u64)w->dim[0]);
}

QuantAxis quant_axis(const QuantLayer *l) {
  return l->weight->rank == 2 ? QA_last : QA_second;
}

void quant_correct_bias(QuantJob *j) {
  for (u32 k = 0; k < j->layer.n; k++) {
    QuantLayer *l = &j->layer.at[k];
    const ChannelSums *s = l->table ? NULL : &j->point.at[l->point].along[quant_axis(l)];
    const Tensor *w = l->weight;
    if (!s || !s->sum || !s->counted || l->skip) continue;
    u64 n = (u64)w->dim[l->axis];
    const float *now = quant_encode_weights(j, l)->value;
    double *shift = NEWS(&j->c->keep, double, n);
    bool fits = true;
    for (u64 i = 0; fits && i < w->n; i++) {
      u64 from = read_channel(j, l, i);
      fits = from < s->channels;
      if (!fits) break;
      shift[made_channel(l, i)] +=
          tensor_get(w, i).f * s->sum[from] - (double)now[i] * s->sum_of_bytes[from];
    }
    for (u64 i = 0; i < n; i++) {
      shift[i] /= (double)s->counted;
      fits &= isfinite(shift[i]);
    }
    l->shift = fits ? shift : NULL;
  }
}
