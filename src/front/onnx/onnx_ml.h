/* onnx_ml.h: helpers shared by the builders of ai.onnx.ml. */
#ifndef INGOT_ONNX_ML_H
#define INGOT_ONNX_ML_H

#include "front/onnx/onnx_builder.h"

typedef struct MlNumbers { /* numeric attribute */
  u32 n;
  double *at;
  bool wide; /* stored as doubles */
} MlNumbers;

/* Attribute `name`, a list of floats or integers, or `name`_as_tensor; n = 0 if absent. */
MlNumbers ml_nums(Build *b, const char *name);
Val ml_const(Build *b, DType dt, const double *x, const i64 *dim, u32 rank);
/* The operand as floats [rows, features]: f64 when it is f64, else f32. */
Val ml_rows(Build *b, Val x);
Val ml_post(Build *b, Val scores); /* post_transform on [rows, scores] */
u32 ml_label_count(Build *b, const char *ints);
/* Labels for class indices (i64), from attribute `ints` or from classlabels_strings. */
Val ml_labels(Build *b, Val index, const char *ints);
/* Two scores from one, like ONNX Runtime: 1 - s and s, or -s and s if signed. */
Val ml_two_scores(Build *b, Val s, bool is_signed);

#endif
