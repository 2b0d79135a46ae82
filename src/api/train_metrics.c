/* train_metrics.c: loss, accuracy, precision, recall and F1 over examples.
 *
 * In: batches that a drive has run, with their labels. Out: sums and counts by class, and what they
 * say. Precision of a class: of those said to be it the part that is; recall: of those that are it
 * the part that was said to be; F1: their harmonic mean, 0 where both are. Of several classes each
 * is the mean over those that occur in labels or results, all counting alike; of yes and no they
 * are those of yes.
 */
#include "api/train_loop.h"

#include <math.h>
#include <string.h>

static void make_room(Ctx *c, Metrics *t, i64 class) {
  while (t->correct.n <= (u64) class) {
    *vec_push(&c->keep, &t->correct) = 0;
    *vec_push(&c->keep, &t->predicted) = 0;
    *vec_push(&c->keep, &t->actual) = 0;
  }
}

static void count(Ctx *c, Metrics *t, i64 said, i64 is) {
  make_room(c, t, said > is ? said : is);
  t->correct.at[said] += said == is;
  t->predicted.at[said]++;
  t->actual.at[is]++;
  t->right += said == is;
  t->count++;
}

void metrics_add(Training *f, Metrics *t, const Dataset *s, const u32 *which, u64 rows, double loss,
                 const i64 *class) {
  const Tensor *label = s->label.t;
  u64 per = label->n / s->n; /* labels of an example */
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
