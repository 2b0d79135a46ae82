/* compose.h: neural network layers as compositions of core operators.
 *
 * A front end reads its format, creates parameters and constants (ir/graph/graph.h), and builds the
 * rest with the mk_* constructors of ir/graph/graph.h and the layers below. It never writes loops.
 * Every function appends nodes to g->cur and returns the result. Operands that do not fit fail at
 * g->loc, which the front end sets to the position in its file before it builds a layer.
 *
 * Types: mk_widen converts narrow floats (f16, bf16, f8) to f32. A layer is built on widened
 * operands. mk_cast converts its result back, so it is rounded only once. Integers and f64 keep
 * their type. After a layer the front end calls layer_end, which marks such casts as different from
 * casts of the model.
 */
#ifndef INGOT_COMPOSE_H
#define INGOT_COMPOSE_H

#include "ir/graph/graph.h"

typedef struct Window Window;
typedef struct Resize Resize;
typedef struct ResizeAxis ResizeAxis;
typedef struct CausalAttn CausalAttn;
typedef struct NmsInputs NmsInputs;

/* See attn_causal. */
struct CausalAttn {
  double scale, cap; /* see attn_scale, attn_cap */
  Val past;          /* i64 */
  i64 window;        /* keys visible to a query, its own included; 0: all */
  Val slope;         /* ALiBi: slope per query head, times scale; 0: none */
  bool ahead;        /* keys after the query are visible, too: `window` on either side */
  Val bias;          /* added to scores: [heads, queries, keys]; 0: none */
  Val sink;          /* score per query head that only enters the denominator; 0: none */
};

/* A sliding window over the axes after batch and channels: [N, C, ...]. */
struct Window {
  u32 n; /* number of such axes */
  i64 size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
  Dim lo[MAX_RANK], hi[MAX_RANK]; /* padding before and after each axis */
  Dim given[MAX_RANK];            /* padding after each axis, without what window_ceil adds */
};

typedef enum ResizeMode { RS_nearest, RS_linear, RS_cubic } ResizeMode;
/* Coordinate transformation from a result position to a real-valued operand position. */
typedef enum ResizeCoord {
  RC_half_pixel, /* aligns pixel centers */
  RC_asymmetric, /* aligns the first edges */
  RC_align_corners,
  RC_pytorch_half_pixel, /* half_pixel, but a result of one element takes the first */
  RC_tf_half_pixel_for_nn,
  RC_half_pixel_symmetric,
  RC_tf_crop_and_resize, /* aligns the corners of a region of interest */
  RC_COUNT
} ResizeCoord;
/* Rounding of a real-valued position to an element. */
typedef enum ResizeNearest {
  RN_floor,
  RN_ceil,
  RN_round_prefer_floor,
  RN_round_prefer_ceil,
  RN_COUNT
} ResizeNearest;

struct Resize {
  ResizeMode mode;
  ResizeCoord coord;
  ResizeNearest nearest; /* RS_nearest */
  double cubic_a;        /* RS_cubic: slope of the kernel, usually -0.75 */
  double extrapolate;    /* value of positions outside of the region */
  bool exclude;          /* zero the weights of positions outside of the operand */
  bool antialias;        /* stretch the kernel when downsampling */
};

struct ResizeAxis {
  u32 axis;
  i64 in, out; /* -1: symbolic */
  Dim to;      /* late: the requested extent */
  bool late;   /* positions and weights are computed at run time */
  double scale;
  double roi0, roi1; /* region of interest, as fractions of the operand */
};

/* Operands of NMS: a box is kept unless it overlaps a better one by more than limit. */
struct NmsInputs {
  Val box; /* [batch, boxes, 4] */
  BoxKind kind;
  Val score;  /* [batch, classes, boxes] */
  Val least;  /* scalar: score threshold (exclusive); 0: none */
  Val limit;  /* scalar: IoU threshold */
  Dim rounds; /* maximum number of boxes kept per class */
  Val trip;   /* i64 scalar: number of boxes to keep, at most rounds */
};

/* arith.c: small constructors. k is a scalar of the type of x. */
Val mk_addk(Graph *g, Val x, double k);
Val mk_mulk(Graph *g, Val x, double k);
Val mk_clamp(Graph *g, Val x, double lo, double hi);
Val mk_widen(Graph *g, Val x);              /* f16, bf16, f8 -> f32; other types are unchanged */
Dim val_dim(Graph *g, Val v, u32 axis);     /* fails when v has no such axis */
Val mk_extent(Graph *g, Dim d, DType dt);   /* scalar */
Val mk_expand_tail(Graph *g, Val v, u32 n); /* appends n axes of extent 1 */
Val mk_move_axis(Graph *g, Val x, u32 from, u32 to); /* the others keep their order */
Val mk_full(Graph *g, Val scalar, const Dim *shape, u32 rank);
Val mk_repeat(Graph *g, Val x, u32 axis, Dim k); /* tiles x k times along the axis */
/* mk_count: product of the extents as a scalar of the type of x. mk_mean: x itself for n = 0. */
Val mk_count(Graph *g, Val x, const i64 *axes, u32 n);
Val mk_mean(Graph *g, Val x, const i64 *axes, u32 n, bool keep);

/* activation.c */
Val compose_relu(Graph *g, Val x);
Val compose_leaky_relu(Graph *g, Val x, Val slope); /* slope * x below 0 */
Val compose_sigmoid(Graph *g, Val x);
Val compose_hard_sigmoid(Graph *g, Val x, double alpha,
                         double beta);           /* clamp(alpha * x + beta, 0, 1) */
Val compose_silu(Graph *g, Val x, double alpha); /* x * sigmoid(alpha * x); alpha = 1: SiLU */
Val compose_gelu(Graph *g, Val x, bool by_tanh); /* with erf, or with the tanh approximation */
Val compose_elu(Graph *g, Val x, double alpha);
Val compose_celu(Graph *g, Val x, double alpha);
Val compose_selu(Graph *g, Val x, double alpha, double gamma);
Val compose_softplus(Graph *g, Val x);
Val compose_softsign(Graph *g, Val x);
Val compose_mish(Graph *g, Val x);

/* compose_norm.c: softmax and normalization over n axes together. */
Val compose_softmax(Graph *g, Val x, const i64 *axes, u32 n);
Val compose_log_softmax(Graph *g, Val x, const i64 *axes, u32 n);
u32 axes_from(Graph *g, Val x, u32 first, i64 *axes); /* axes from `first` on; their number */
Val compose_rsqrt(Graph *g, Val x, double eps);       /* 1 / sqrt(x + eps) */
/* (x - mean) / sqrt(var + eps), and x / sqrt(mean of squares + eps). Mean and inverse standard
 * deviation (axes kept) are returned where the pointers are not NULL. */
Val compose_normalize(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *mean, Val *inv);
Val compose_rms_norm(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *inv);
/* x * scale + bias (0: none), both cast to the type of x and broadcast against its last axes. */
Val compose_affine(Graph *g, Val x, Val scale, Val bias);
/* Reshapes a vector with one element per channel to broadcast against x (channels on axis 1). */
Val compose_per_channel(Graph *g, Val v, Val x);
/* The four parameters broadcast against x. What depends only on them is constant folded. */
Val compose_batch_norm(Graph *g, Val x, Val scale, Val bias, Val mean, Val var, double eps);
/* Scale and bias have one element per group or per channel. */
Val compose_group_norm(Graph *g, Val x, i64 groups, Val scale, Val bias, bool by_group, double eps);

/* compose_attention.c: on [batch, heads, length, size]. Attention is built as
 *   s = attn_scores(q, k);  s = attn_cap(s);  s = attn_mask(s, attn_window_mask(s, ...));
 *   y = attn_merge_heads(attn_weighted_sum(attn_softmax(s), v))
 * without the steps that the network lacks. Masked scores are -Inf. */
/* [batch, length, heads * size] to [batch, heads, length, size]; rank 4 is unchanged. */
Val attn_split_heads(Graph *g, Val x, i64 heads);
Val attn_merge_heads(Graph *g, Val x);         /* back to [batch, length, heads * size] */
Val attn_scale(Graph *g, Val q, double scale); /* 0: 1 / sqrt(size) */
/* q . k, scaled. Query heads of a group share one key head, which is not copied. */
Val attn_scores(Graph *g, Val q, Val k, double scale);
Val attn_weighted_sum(Graph *g, Val p, Val v); /* p . v, grouped like attn_scores */
Val attn_cap(Graph *g, Val s, double cap);     /* cap * tanh(s / cap); 0: none */
Val attn_mask(Graph *g, Val s, Val keep);      /* replaces scores by -Inf where keep is false */
Val attn_add_mask(Graph *g, Val s, Val mask);  /* adds a float mask; its -Inf hides any score */
/* bool [length of q, length of k]: query i sees key j if i + past - left <= j <= i + past + right.
 * -1 removes the bound on one side (not on both). */
Val attn_window_mask(Graph *g, Val s, Val past, i64 left, i64 right);
/* Mask of keys start <= j < end (both [batch], start optional): bool [batch, 1, 1, length]. */
Val attn_range_mask(Graph *g, Val start, Val end, Dim length);
/* Causal attention: query i, at position past + i, sees the last `window` keys up to its own (0:
 * all). With `ahead`, it sees keys after its own, too. Heads stay grouped throughout, as the
 * attention kernel expects. */
Val attn_causal(Graph *g, const CausalAttn *a, Val q, Val k, Val v);
Val attn_softmax(Graph *g, Val s); /* over the last axis; a row of -Inf gives zeros */
/* Softmax with one extra score in the denominator: 0, or one per head (attention sink). */
Val attn_sink_softmax(Graph *g, Val s, Val sink);
/* Appends keys (or values) x to those in the cache `old` (0: none) of each batch entry, `length` in
 * all. past [batch, 1, 1, 1] i64: entries in the cache. */
Val attn_append_kv(Graph *g, Val old, Val past, Val x, Dim length);
/* RoPE. cos, sin: [batch or 1, length, half]; elements beyond 2 * half are unchanged. interleaved:
 * rotates neighbors, else element i with i + half. */
Val attn_rope(Graph *g, Val x, Val cos, Val sin, bool interleaved);

/* window.c: convolutions and pools. in: extents of the axes that the window slides over. Padding
 * that depends on symbolic extents becomes a pad node. */
i64 window_span(const Window *w, u32 i); /* extent of the dilated window */
/* SAME padding: ceil(in / stride) results; an odd cell goes to the end (upper) or the beginning. */
void window_same(Graph *g, Window *w, const Dim *in, bool upper);
/* ceil_mode: a last window that begins in the operand or its leading padding may end beyond it. */
void window_ceil(Graph *g, Window *w, const Dim *in);
bool window_is_fixed(const Window *w);                              /* all padding is static */
Val window_conv(Graph *g, Val x, Val weights, i64 group, Window w); /* weights [M, C/group, ...] */
/* weights [C, M/group, ...]. cut_*: cells to crop (negative: to add) at both ends of the full
 * result, which has (in - 1) * stride + span cells. */
Val window_conv_transpose(Graph *g, Val x, Val weights, i64 group, const Window *w,
                          const i64 *cut_lo, const i64 *cut_hi);
Val window_pool(Graph *g, Op op, Val x, Window w, double fill); /* fill: value of padding */
Val window_average(Graph *g, Val x, Window w, bool with_pads);  /* with_pads: count padding */
Val compose_bias(Graph *g, Val y, Val bias); /* y + bias, one element per channel (axis 1) */

/* compose_nms.c: i64 [batch, classes, rounds]: box indices by decreasing score, padded with -1. */
Val compose_nms(Graph *g, const NmsInputs *x);

/* resize.c */
Val compose_resize(Graph *g, const Resize *r, Val v, const ResizeAxis *x, u32 n);
extern const char *const resize_coord_name[RC_COUNT], *const resize_nearest_name[RN_COUNT];

#endif
