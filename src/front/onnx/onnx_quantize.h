/* onnx_quantize.h: ONNX models with smaller numbers.
 *
 * A QuantJob holds a model in the form that is quantised (normalisations folded into convolutions)
 * and its layers: nodes with constant weights. Whoever has engines (src/api/quantize_onnx.c) runs
 * what quant_probe writes over examples, shows the values to quant_observe, asks
 * quant_choose_ranges for ranges, and gets models from quant_make: with any set of layers, as often
 * as it likes.
 */
#ifndef INGOT_ONNX_QUANTIZE_H
#define INGOT_ONNX_QUANTIZE_H

#include "front/reader.h"

struct OnnxModel;
typedef struct QuantJob QuantJob;
typedef struct QuantOptions QuantOptions;
typedef struct QuantLayer QuantLayer;       /* a node with weights */
typedef struct QuantObserver QuantObserver; /* a tensor that layers read, and what was seen of it */
typedef struct QuantWeights QuantWeights;   /* weights as integers */

typedef enum QuantMethod {
  QM_static,
  QM_dynamic,
  QM_weights8,
  QM_weights4,
  QM_f16,
  QM_bf16,
  QM_COUNT
} QuantMethod;
typedef enum QuantRange {
  QR_minmax,
  QR_average,
  QR_percentile,
  QR_entropy,
  QR_mse,
  QR_COUNT
} QuantRange;
typedef enum QuantGranularity { QP_channel, QP_tensor, QP_group, QP_COUNT } QuantGranularity;
extern const char *const quant_method_name[QM_COUNT], *const quant_range_name[QR_COUNT],
                                                          *const quant_granularity_name[QP_COUNT];

struct QuantOptions {
  QuantMethod method;
  QuantGranularity per;
  bool is_signed, symmetric; /* activations */
  bool equalize;
  u32 block;
};

enum { QUANT_BINS = 4096 };

/* What is looked at in a run over the examples; each needs those before it. */
typedef enum QuantStat { QL_range, QL_bins, QL_means } QuantStat;

/* Where a layer's input has its channels: convolutions and products may read the same one. */
typedef enum QuantAxis { QA_second, QA_last, QA_count } QuantAxis;

typedef struct QuantSums {
  bool wanted;
  u32 channels;
  u64 counted;                /* elements of each channel in the sums: */
  double *sum, *sum_of_bytes; /* of the values, and of what becomes of them */
} QuantSums;

struct QuantObserver {
  Str name;
  u32 runs;              /* that were seen */
  bool odd;              /* NaN or infinities were seen, which count nowhere */
  double lo, hi;         /* least and greatest of all runs; 0 is between them */
  double sum_lo, sum_hi; /* of those of each run */
  u64 *bin;              /* QUANT_BINS from lo to hi */
  double from, to;       /* the range that is taken */
  QuantSums along[QA_count];
};

/* Weights by row: what makes one channel of the result. Code k of row r stands for code * scale. */
struct QuantWeights {
  i8 *code;     /* in the order of the weights; NULL: they are floats of 16 bits */
  float *value; /* what they stand for */
  float *scale; /* per_row for each row */
  u64 per_row;  /* 0: one scale for all */
  double sqnr, mse, max_error;
};

struct QuantLayer {
  Str name, op; /* name: of the node or, where it has none, of its result */
  Str x, w, b, y;
  u32 node;                    /* in the graph of the job */
  u32 point;                   /* of x */
  u32 axis;                    /* of the weights: channels of the result */
  const Tensor *weight, *bias; /* f32; bias NULL: there is none */
  bool table;                  /* rows that a Gather picks: x are their numbers, and no point */
  Str late_bias;               /* what an Add behind a MatMul adds; 0: nothing */
  bool skip;                   /* stays as it is */
  u64 before, after;           /* bytes of the weights; after: by the last quant_make */
  const QuantWeights *coded;   /* NULL: not yet */
  const char *stays;           /* why the last quant_make left it as it is; NULL: it did not */
  double *shift;               /* by channel of the result, for the bias; NULL: none */
};

struct QuantJob {
  Ctx *c;
  QuantOptions wish;
  const char *path; /* of the model, for its external data; NULL: none */
  struct OnnxModel *m;
  Map taken;   /* names of values */
  Map init;    /* Str -> 1 + number of an initializer of m */
  Map maker;   /* Str -> 1 + number of the node that makes it */
  Map readers; /* onnx_use_counts */
  bool four;   /* weights4: convolutions too; their DequantizeLinear needs version 21 */
  VEC(QuantLayer) layer;
  VEC(QuantObserver) point;
};

/* quant_layers.c */
/* A job without layers, which quant_find_layers adds: of a model that was imported without
 * complaint, so that shapes and the order of nodes are as they should be. */
QuantJob *quant_open(Ctx *c, const Model *m, const char *path, const QuantOptions *w);
void quant_find_layers(QuantJob *j);
/* Nodes of the model that quantise, or compute with what is quantised; *op: of the first. */
u32 quant_count_quantized(const QuantJob *j, Str *op);
/* The model with more outputs: inputs of layers, or their results. Bytes for an import. */
typedef enum QuantProbe { QB_points, QB_results, QB_none } QuantProbe;
void quant_probe(QuantJob *j, const struct OnnxModel *m, QuantProbe which, StrBuf *to);
/* Into files; returns their bytes. */
u64 quant_write(QuantJob *j, const struct OnnxModel *m, const char *path);
u64 quant_source_bytes(const Source *s, const Model *m); /* of the files of a model */
/* The elements of a constant, f32; NULL: it is none. */
const Tensor *quant_constant(QuantJob *j, Str name);
void quant_reindex(QuantJob *j); /* maker, readers and init, after nodes have changed */
u32 quant_use_count(const QuantJob *j, Str name); /* how many */

/* quant_fold.c: normalisations into convolutions, transposes of weights; ranges of channels made
 * equal across layers */
void quant_fold(QuantJob *j);
void quant_equalize(QuantJob *j);

/* quant_range.c */
void quant_observe(QuantJob *j, u32 point, const Tensor *t, QuantStat look);
void quant_choose_ranges(QuantJob *j, QuantRange how);
/* Scale and zero point of a point's bytes. */
void quant_scale(const QuantJob *j, const QuantObserver *p, float *scale, i32 *zero);
/* From sums of channels: what biases should be moved by. Needs QL_means. */
void quant_correct_bias(QuantJob *j);
QuantAxis quant_axis(const QuantLayer *l);

/* quant_weight.c */
const QuantWeights *quant_encode_weights(QuantJob *j, QuantLayer *l);
bool quant_is_blockwise(const QuantJob *j, const QuantLayer *l); /* becomes MatMulNBits */
/* dB. Noise that is no number, or infinite, is the worst there is: -inf; so is any where there is
 * no signal. */
double quant_sqnr(double signal, double noise);
bool quant_equal(double have, double want);             /* NaN equals NaN */
u32 quant_bits(const QuantJob *j, const QuantLayer *l); /* of a code: 4 or 8 */

/* quant_make.c: of all layers that are not to be skipped; a model of its own, in c->work. */
struct OnnxModel *quant_make(QuantJob *j);

#endif
