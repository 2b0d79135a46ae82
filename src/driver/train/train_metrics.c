/* train_metrics.c: loss, accuracy, precision, recall and F1.
 *
 * In: results of batches with their labels. Out: sums and counts per class, and scores. Multi-class
 * scores are macro averages over the classes that occur in labels or predictions; binary scores are
 * those of the positive class. F1 is 0 if precision and recall are.
 */
#include "driver/train/train_loop.h"

#include <math.h>
#include <string.h>

static void make_room(Ctx *c, Metrics *t, i64 class) {
  while (t->correct.n <= (u64) class) {
    *vec_push(&c->keep, &t->correct) = 0;
    *vec_push(&c->keep, &t->predicted) = 0;
    *vec_push(&c->keep, &t->actual) = 0;
  }
}

static void count(Ctx *c, Metrics *t, i64 predicted, i64 label) {
  make_room(c, t, predicted > label ? predicted : label);
  t->correct.at[predicted] += predicted == label;
  t->predicted.at[predicted]++;
  t->actual.at[label]++;
  t->right += predicted == label;
  t->count++;
}

void metrics_add(Training *f, Metrics *t, const Dataset *s, const u32 *which, u64 rows, double loss,
                 const i64 *class) {
  const Tensor *label = s->label.t;
  u64 per = label->n / s->n; /* labels per example */
  t->loss += loss * (double)rows;
  t->n += rows;
  for (u64 i = 0; class && i < rows; i++)
    for (u64 k = 0; k < per; k++) {
      Scalar y = tensor_get(label, which[i] * per + k);
      count(f->c, t, class[i * per + k], f -> yes ? y.f > 0.5 : y.i);
    }
}

static double part(i64 of, i64 all) {
  return all ? (double)of / (double)all : 0;
}

void metrics_score(const Training *f, const Metrics *t, IngotScore *to) {
  u32 n = 0;
  *to = (IngotScore){.examples = t->n,
                     .loss = t->loss / (double)t->n,
                     .accuracy = NAN,
                     .precision = NAN,
                     .recall = NAN,
                     .f1 = NAN};
  if (!t->count) return;
  to->accuracy = 100 * (double)t->right / (double)t->count;
  to->precision = to->recall = to->f1 = 0;
  for (u32 k = f->yes ? 1 : 0; k < t->correct.n; k++) {
    if (!f->yes && !t->predicted.at[k] && !t->actual.at[k]) continue;
    double p = part(t->correct.at[k], t->predicted.at[k]),
           r = part(t->correct.at[k], t->actual.at[k]);
    to->precision += 100 * p;
    to->recall += 100 * r;
    to->f1 += p + r > 0 ? 100 * 2 * p * r / (p + r) : 0;
    n++;
  }
  if (!n) return;
  to->precision /= n;
  to->recall /= n;
  to->f1 /= n;
}
