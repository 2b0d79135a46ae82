/* tflite_ops_detect.c: TFLite_Detection_PostProcess: box decoding and NMS of a detector.
 *
 * Boxes [1, n, 4 or more] are offsets from anchors [n, 4]; scores are [1, n, classes], where class
 * 0 may be the background. Regular mode: NMS per class, then the best boxes of all classes. Fast
 * mode: NMS by the best score of each box, which reports its best few classes. Unused outputs are
 * 0.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

typedef struct Detect {
  LiteNode *b;
  i64 most, each, per_box, classes; /* limits of boxes, of boxes per class and of classes per box;
                                       classes without background */
  double least, overlap, scale[4];  /* score and IoU thresholds; scales of y, x, h, w */
  bool regular;
  Val edge[4]; /* [n] */
  Val score;   /* [n, classes], without background */
  Dim n;
} Detect;

static double option(LiteNode *b, const char *name, bool needed, double otherwise) {
  double x = otherwise;
  if (!flex_number(b->op->custom, name, &x) && needed) lite_bad(b, "option %s is missing", name);
  return x;
}

static i64 count(LiteNode *b, const char *name, bool needed, double otherwise) {
  double x = option(b, name, needed, otherwise);
  if (!(x >= 0 && x <= 1 << 20)) lite_bad(b, "option %s is %g, which is out of range", name, x);
  return (i64)x;
}

static void read_options(Detect *d) {
  static const char *const scale[4] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  LiteNode *b = d->b;
  d->most = count(b, "max_detections", true, 0);
  d->per_box = count(b, "max_classes_per_detection", true, 0);
  d->each = count(b, "detections_per_class", false, 100);
  d->classes = count(b, "num_classes", true, 0);
  d->regular = option(b, "use_regular_nms", false, 0) != 0;
  d->least = option(b, "nms_score_threshold", true, 0);
  d->overlap = option(b, "nms_iou_threshold", true, 0);
  for (u32 i = 0; i < 4; i++) {
    d->scale[i] = option(b, scale[i], true, 1);
    if (!(d->scale[i] != 0)) lite_bad(b, "option %s is 0, expected another number", scale[i]);
  }
  if (d->most < 1 || d->per_box < 1 || d->classes < 1 || d->each < 1)
    lite_bad(b,
             "expected at least 1 detection, class per detection, class, and detection per class");
}

/* Column i of [n, k], as [n]. */
static Val column(Graph *g, Val x, u32 i) {
  return mk_squeeze(g, mk_slice_axis(g, x, 1, i, 1), 1);
}

static void decode(Detect *d) {
  LiteNode *b = d->b;
  Graph *g = b->g;
  Val box = lite_real(b, 0), score = lite_real(b, 1), anchor = lite_real(b, 2);
  if (lite_rank(b, box) != 3 || lite_rank(b, score) != 3 || lite_rank(b, anchor) != 2 ||
      val_dim(g, box, 0) != 1 || val_dim(g, score, 0) != 1)
    lite_bad(b, "expected boxes [1, n, 4], scores [1, n, classes], anchors [n, 4]");
  box = mk_squeeze(g, box, 0);
  score = mk_squeeze(g, score, 0);
  d->n = val_dim(g, box, 0);
  Dim columns = val_dim(g, score, 1);
  if (val_dim(g, score, 0) != d->n || val_dim(g, anchor, 0) != d->n || !dim_is_const(columns) ||
      columns < d->classes || columns > d->classes + 1)
    lite_bad(b, "there are %lld classes, but scores for %lld", (long long)d->classes,
             (long long)columns);
  for (u32 i = 0; i < 2; i++) { /* y, then x */
    Val size = column(g, anchor, 2 + i), half;
    Val mid = mk_like(g, box, d->scale[i]);
    mid = mk_mul(g, mk_div(g, column(g, box, i), mid), size);
    mid = mk_add(g, mid, column(g, anchor, i));
    half = mk_like(g, box, d->scale[2 + i]);
    half = mk_exp(g, mk_div(g, column(g, box, 2 + i), half));
    half = mk_mul(g, mk_mulk(g, half, 0.5), size);
    d->edge[i] = mk_sub(g, mid, half);
    d->edge[2 + i] = mk_add(g, mid, half);
  }
  d->score = mk_slice_axis(g, score, 1, columns - d->classes, d->classes);
}

/* NMS by scores [rows, n]: i64 [rows, rounds], padded with -1. */
static Val run_nms(const Detect *d, Val score, i64 rounds) {
  Graph *g = d->b->g;
  NmsInputs x = {.score = mk_unsqueeze(g, score, 0), .limit = mk_like(g, score, d->overlap)};
  Val edge[4];
  for (u32 i = 0; i < 4; i++) edge[i] = mk_unsqueeze(g, mk_unsqueeze(g, d->edge[i], 0), 2);
  x.box = mk_concat(g, edge, 4, 2);
  float least = (float)d->least;
  if (least != -INFINITY) /* the threshold is inclusive */
    x.least = mk_like(g, score, nextafterf(least, -INFINITY));
  x.rounds = dim_min(d->b->ds, d->n, rounds);
  x.trip = mk_extent(g, x.rounds, DT_i64);
  return mk_squeeze(g, compose_nms(g, &x), 0);
}

/* v with zeros where `some` is false, zero-padded to n rows. */
static Val filled(const Detect *d, Val v, Val some, i64 n) {
  Graph *g = d->b->g;
  Val keep = mk_expand_tail(g, some, lite_rank(d->b, v) - 1);
  v = mk_select(g, keep, v, mk_like(g, v, 0));
  Dim lo[2] = {0}, hi[2] = {dim_sub(d->b->ds, n, val_dim(g, v, 0))};
  return mk_unsqueeze(g, mk_pad(g, v, mk_like(g, v, 0), lo, hi, NULL), 0);
}

/* box, class, score: [k], valid where `some`; boxes: bool, those selected. */
static void set_outputs(const Detect *d, const Val *v, Val some, Val boxes, i64 n) {
  LiteNode *b = d->b;
  Graph *g = b->g;
  Val side[4];
  for (u32 i = 0; i < 4; i++) side[i] = mk_unsqueeze(g, mk_gather(g, d->edge[i], v[0], 0), 1);
  lite_set_real(b, 0, filled(d, mk_concat(g, side, 4, 1), some, n));
  lite_set_real(b, 1, filled(d, mk_cast(g, v[1], DT_f32), some, n));
  lite_set_real(b, 2, filled(d, v[2], some, n));
  Val total = mk_reduce(g, OP_reduce_sum, mk_cast(g, boxes, DT_f32), &(i64){0}, 1, true);
  lite_set_real(b, 3, total);
}

static void detect_regular(const Detect *d) {
  LiteNode *b = d->b;
  Graph *g = b->g;
  Val score = mk_transpose(g, d->score, (const i64[]){1, 0});
  Val taken = run_nms(d, score, d->each);
  Val some = mk_ge(g, taken, mk_like(g, taken, 0)), at = mk_max(g, taken, mk_like(g, taken, 0));
  Val best = mk_like(g, score, -INFINITY);
  best = mk_select(g, some, mk_gather_elems(g, score, at, 1), best);
  Dim rounds = val_dim(g, taken, 1), all = dim_mul(b->ds, d->classes, rounds);
  Dim k = dim_min(b->ds, all, d->most);
  Val top, place;
  mk_topk(g, mk_reshape(g, best, &all, 1), 0, k, true, &top, &place);
  Val box = mk_gather(g, mk_reshape(g, at, &all, 1), place, 0);
  Val class = mk_div(g, place, mk_extent(g, rounds, DT_i64));
  some = mk_gt(g, top, mk_like(g, top, -INFINITY));
  set_outputs(d, (const Val[]){box, class, top}, some, some, d->most);
}

static void detect_fast(const Detect *d) {
  LiteNode *b = d->b;
  Graph *g = b->g;
  i64 k = d->per_box < d->classes ? d->per_box : d->classes;
  Val top, class;
  mk_topk(g, d->score, 1, k, true, &top, &class); /* [n, k] */
  Val best = mk_transpose(g, mk_slice_axis(g, top, 1, 0, 1), (const i64[]){1, 0});
  Val taken = mk_squeeze(g, run_nms(d, best, d->most), 0);
  Val some = mk_ge(g, taken, mk_like(g, taken, 0)), at = mk_max(g, taken, mk_like(g, taken, 0));
  Dim rounds = val_dim(g, taken, 0), wide[2] = {rounds, k}, all = dim_mul(b->ds, rounds, k);
  Val v[3] = {mk_reshape(g, mk_broadcast(g, mk_unsqueeze(g, at, 1), wide, 2), &all, 1),
              mk_reshape(g, mk_gather(g, class, at, 0), &all, 1),
              mk_reshape(g, mk_gather(g, top, at, 0), &all, 1)};
  Val each = mk_reshape(g, mk_broadcast(g, mk_unsqueeze(g, some, 1), wide, 2), &all, 1);
  set_outputs(d, v, each, some, d->most * d->per_box);
}

void lite_detections(LiteNode *b) {
  Detect d = {.b = b};
  if (b->op->nout != 4) lite_bad(b, "found %u outputs, expected 4", b->op->nout);
  read_options(&d);
  decode(&d);
  if (d.regular)
    detect_regular(&d);
  else
    detect_fast(&d);
}
