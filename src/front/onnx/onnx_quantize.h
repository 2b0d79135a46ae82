/* onnx_quantize.h: quantization of ONNX models.
 *
 * A QuantJob holds a model prepared for quantization (normalization folded into convolutions) and
 * its layers: nodes with constant weights. The caller (src/driver/quantize/quantize_onnx.c) runs
 * the model of quant_probe on calibration examples, passes the values to quant_observe, calls
 * quant_choose_ranges, and gets models with any set of quantized layers from quant_make.
 */
#ifndef INGOT_ONNX_QUANTIZE_H
#define INGOT_ONNX_QUANTIZE_H

#include "front/reader.h"

struct OnnxModel;
typedef struct QuantJob QuantJob;
typedef struct QuantOptions QuantOptions;
typedef struct QuantLayer QuantLayer; /* a node with weights */
typedef struct QuantObserver
    QuantObserver;                        /* calibration statistics of a tensor that layers read */
typedef struct QuantWeights QuantWeights; /* integer weights */

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

/* Statistics collected in a run over the examples; each needs the previous ones. */
typedef enum QuantStat { QL_range, QL_bins, QL_means } QuantStat;

/* Channel axis of a layer's input. Convolutions and matrix products may read the same tensor. */
typedef enum QuantAxis { QA_second, QA_last, QA_count } QuantAxis;

typedef struct ChannelSums {
  bool wanted;
  u32 channels;
  u64 counted;                /* elements per channel in the sums: */
  double *sum, *sum_of_bytes; /* sums of the values and of the dequantized values */
} ChannelSums;

struct QuantObserver {
  Str name;
  u32 runs;              /* number of runs seen */
  bool odd;              /* NaN or infinities were seen (and ignored) */
  double lo, hi;         /* minimum and maximum of all runs, extended to 0 */
  double sum_lo, sum_hi; /* sums of the minima and maxima of the runs */
  u64 *bin;              /* histogram of QUANT_BINS bins from lo to hi */
  double from, to;       /* the chosen range */
  ChannelSums along[QA_count];
};

/* Weights by row, which computes one output channel. Code k of row r stands for code * scale. */
struct QuantWeights {
  i8 *code;     /* in the order of the weights; NULL: 16-bit floats */
  float *value; /* dequantized values */
  float *scale; /* per_row scales for each row */
  u64 per_row;  /* 0: one scale in all */
  double sqnr, mse, max_error;
};

struct QuantLayer {
  Str name, op; /* name: of the node or, if it has none, of its result */
  Str x, w, b, y;
  u32 node;                    /* index in the graph of the job */
  u32 point;                   /* observer of x */
  u32 axis;                    /* output channel axis of the weights */
  const Tensor *weight, *bias; /* f32; bias may be NULL */
  bool table;                /* embedding table of a Gather; x holds indices and has no observer */
  Str late_bias;             /* bias added by an Add after a MatMul; 0: none */
  bool skip;                 /* not to be quantized */
  u64 before, after;         /* bytes of the weights; after: in the last quant_make */
  const QuantWeights *coded; /* NULL: not yet */
  const char *stays;         /* why the last quant_make did not quantize it, or NULL */
  double *shift;             /* bias correction per output channel; NULL: none */
};

struct QuantJob {
  Ctx *c;
  QuantOptions wish;
  const char *path; /* path of the model, to find external data; NULL: none */
  struct OnnxModel *m;
  Map taken;   /* all value names */
  Map init;    /* Str -> 1 + index of an initializer of m */
  Map maker;   /* Str -> 1 + index of its producer */
  Map readers; /* onnx_use_counts */
  bool four;   /* weights4: convolutions too; their DequantizeLinear needs opset 21 */
  VEC(QuantLayer) layer;
  VEC(QuantObserver) point;
};

/* quant_layers.c */
/* A job without layers, which quant_find_layers adds. The model must have been imported without
 * error, so shapes and node order are valid. */
QuantJob *quant_open(Ctx *c, const Model *m, const char *path, const QuantOptions *w);
void quant_find_layers(QuantJob *j);
/* Number of nodes that quantize or compute on quantized values; *op: the first one. */
u32 quant_count_quantized(const QuantJob *j, Str *op);
/* The model as bytes, with layer inputs or results as additional outputs. */
typedef enum QuantTap { QB_points, QB_results, QB_none } QuantTap;
void quant_probe(QuantJob *j, const struct OnnxModel *m, QuantTap which, StrBuf *to);
/* Writes files; returns their size in bytes. */
u64 quant_write(QuantJob *j, const struct OnnxModel *m, const char *path);
u64 quant_source_bytes(const Source *s, const Model *m); /* size in bytes of the files of a model */
/* The elements of a constant as f32; NULL: not a constant. */
const Tensor *quant_constant(QuantJob *j, Str name);
void quant_reindex(QuantJob *j); /* updates maker, readers and init after an edit */
u32 quant_use_count(const QuantJob *j, Str name); /* number of uses */

/* quant_fold.c: folds normalization into convolutions, transposes weights, equalizes channels */
void quant_fold(QuantJob *j);
void quant_equalize(QuantJob *j);

/* quant_range.c */
void quant_observe(QuantJob *j, u32 point, const Tensor *t, QuantStat look);
void quant_choose_ranges(QuantJob *j, QuantRange how);
/* Scale and zero point of an observed tensor. */
void quant_scale(const QuantJob *j, const QuantObserver *p, float *scale, i32 *zero);
/* Computes bias corrections from channel sums. Needs QL_means. */
void quant_correct_bias(QuantJob *j);
QuantAxis quant_axis(const QuantLayer *l);

/* quant_weight.c */
const QuantWeights *quant_encode_weights(QuantJob *j, QuantLayer *l);
bool quant_is_blockwise(const QuantJob *j, const QuantLayer *l); /* becomes MatMulNBits */
/* Signal-to-noise ratio in dB; -inf if the noise is NaN or infinite, or without a signal. */
double quant_sqnr(double signal, double noise);
bool quant_equal(double have, double want);             /* NaN equals NaN */
u32 quant_bits(const QuantJob *j, const QuantLayer *l); /* bits per code: 4 or 8 */

/* quant_make.c: quantizes all layers that are not skipped; the result is a new model in c->work. */
struct OnnxModel *quant_make(QuantJob *j);

#endif
