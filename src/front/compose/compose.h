/* compose.h: what networks are made of, as compositions of core operators on a Graph.
 *
 * A front end reads its format, makes the graph's parameters and constants (ir/graph.h), and builds
 * the rest with the constructors mk_* of ir/graph.h and the layers here; it never writes loops.
 * Every function appends nodes to g->cur and returns the result. What does not fit fails at g->loc,
 * which the front end sets to the place in its file before it builds a layer.
 *
 * Types: mk_widen makes narrow floats (f16, bf16, f8) f32. A layer is built on widened operands and
 * its result cast back once with mk_cast, so that it is rounded once, whatever it is made of.
 * Integers and f64 stay as they are. Behind a layer the front end calls layer_end, which tells such
 * casts from those that a model has.
 */
#ifndef INGOT_COMPOSE_H
#define INGOT_COMPOSE_H

#include "ir/graph.h"

typedef struct Window Window;
typedef struct Resize Resize;
typedef struct ResizeAxis ResizeAxis;
typedef struct CausalAttn CausalAttn;
typedef struct NmsInputs NmsInputs;

/* See attn_causal. */
struct CausalAttn {
  double scale, cap; /* see attn_scale, attn_cap */
  Val past;          /* i64 */
  i64 window;        /* keys that a query sees, its own the last of them; 0: all */
};

/* A window that slides over the axes behind batch and channels: [N, C, ...]. */
struct Window {
  u32 n; /* such axes */
  i64 size[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
  Dim lo[MAX_RANK], hi[MAX_RANK]; /* padding that the window slides over */
  Dim given[MAX_RANK];            /* padding at the end without what window_ceil adds */
};

typedef enum ResizeMode { RS_nearest, RS_linear, RS_cubic } ResizeMode;
/* Which place of the operand, a real number, a place of the result looks at. */
typedef enum ResizeCoord {
  RC_half_pixel, /* centres of cells lie on each other */
  RC_asymmetric, /* first edges do */
  RC_align_corners,
  RC_pytorch_half_pixel, /* half_pixel, but a result of one element is the first */
  RC_tf_half_pixel_for_nn,
  RC_half_pixel_symmetric,
  RC_tf_crop_and_resize, /* of a region, corners aligned */
  RC_COUNT
} ResizeCoord;
/* Which element is the nearest to it. */
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
  double extrapolate;    /* what lies outside of the region */
  bool exclude;          /* weights of what lies outside of the operand are 0 */
  bool antialias;        /* kernels are stretched where the result is smaller */
};

struct ResizeAxis {
  u32 axis;
  i64 in, out; /* -1: symbolic */
  Dim to;      /* late: the extent wanted */
  bool late;   /* the run computes places and weights */
  double scale;
  double roi0, roi1; /* the region, as fractions of the operand */
};

/* Boxes with scores, of which those are taken that overlap no better one by more than limit. */
struct NmsInputs {
  Val box; /* [batch, boxes, 4] */
  BoxKind kind;
  Val score;  /* [batch, classes, boxes] */
  Val least;  /* a scalar: only what has a higher score is taken; 0: whatever has one */
  Val limit;  /* a scalar */
  Dim rounds; /* most that are taken of a class */
  Val trip;   /* i64 scalar: the same, or less */
};

/* A constructor for every scalar op of one or two operands: mk_exp(g, x), mk_max(g, x, y)... */
#define MK1(name)                                                                                  \
  static inline Val mk_##name(Graph *g, Val x) {                                                   \
    return mk_map1(g, OP_##name, x);                                                               \
  }
#define MK2(name)                                                                                  \
  static inline Val mk_##name(Graph *g, Val x, Val y) {                                            \
    return mk_map2(g, OP_##name, x, y);                                                            \
  }
#define MK3(name)
#define MK_same(name, nin) MK##nin(name)
#define MK_pred(name, nin) MK##nin(name)
#define MK_sel(name, nin)
#define MK_to(name, nin)
#define SC(name, nin, cls, res, flags, text) MK_##res(name, nin)
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP

/* arith.c: small constructors beside those of graph.h. k: a scalar of the type of x. */
Val mk_addk(Graph *g, Val x, double k);
Val mk_mulk(Graph *g, Val x, double k);
Val mk_clamp(Graph *g, Val x, double lo, double hi);
Val mk_widen(Graph *g, Val x);                       /* f16, bf16, f8 -> f32; others as they are */
Dim val_dim(Graph *g, Val v, u32 axis);              /* fails when v has no such axis */
Val mk_extent(Graph *g, Dim d, DType dt);            /* scalar */
Val mk_expand_tail(Graph *g, Val v, u32 n);          /* appends n axes of extent 1 */
Val mk_move_axis(Graph *g, Val x, u32 from, u32 to); /* the others keep their order */
Val mk_full(Graph *g, Val scalar, const Dim *shape, u32 rank);
Val mk_repeat(Graph *g, Val x, u32 axis, Dim k); /* k times, one behind the other */
/* Product of these extents, a scalar of the type of x; the mean over them (x itself for n = 0). */
Val mk_count(Graph *g, Val x, const i64 *axes, u32 n);
Val mk_mean(Graph *g, Val x, const i64 *axes, u32 n, bool keep);

/* activation.c */
Val compose_relu(Graph *g, Val x);
Val compose_leaky_relu(Graph *g, Val x, Val slope); /* slope * x below 0 */
Val compose_sigmoid(Graph *g, Val x);
Val compose_hard_sigmoid(Graph *g, Val x, double alpha, double beta); /* alpha * x + beta in 0..1 */
Val compose_silu(Graph *g, Val x, double alpha); /* x * sigmoid(alpha * x); alpha = 1: SiLU */
Val compose_gelu(Graph *g, Val x, bool by_tanh); /* of the error function, or its approximation */
Val compose_elu(Graph *g, Val x, double alpha);
Val compose_celu(Graph *g, Val x, double alpha);
Val compose_selu(Graph *g, Val x, double alpha, double gamma);
Val compose_softplus(Graph *g, Val x);
Val compose_softsign(Graph *g, Val x);
Val compose_mish(Graph *g, Val x);

/* compose_norm.c: softmax and normalisations; n axes that count as one. */
Val compose_softmax(Graph *g, Val x, const i64 *axes, u32 n);
Val compose_log_softmax(Graph *g, Val x, const i64 *axes, u32 n);
u32 axes_from(Graph *g, Val x, u32 first, i64 *axes); /* first and all behind it; their number */
Val compose_rsqrt(Graph *g, Val x, double eps);       /* 1 / sqrt(x + eps) */
/* (x - mean) / sqrt(var + eps), and x / sqrt(mean of squares + eps); mean and the inverse
 * deviation, which keep their axes, are returned where not NULL. */
Val compose_normalize(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *mean, Val *inv);
Val compose_rms_norm(Graph *g, Val x, const i64 *axes, u32 n, double eps, Val *inv);
/* x * scale + bias (0: none), both cast to the type of x and broadcast against its last axes. */
Val compose_affine(Graph *g, Val x, Val scale, Val bias);
/* A vector with one entry a channel, to stand against x (channels on axis 1), of its type. */
Val compose_per_channel(Graph *g, Val v, Val x);
/* The four parameters broadcast against x; what depends on them alone is folded. */
Val compose_batch_norm(Graph *g, Val x, Val scale, Val bias, Val mean, Val var, double eps);
/* Scale and bias have an entry a group or a channel. */
Val compose_group_norm(Graph *g, Val x, i64 groups, Val scale, Val bias, bool by_group, double eps);

/* compose_attention.c: on [batch, heads, length, size]. An attention is
 *   s = attn_scores(q, k);  s = attn_cap(s);  s = attn_mask(s, attn_window_mask(s, ...));
 *   y = attn_merge_heads(attn_weighted_sum(attn_softmax(s), v))
 * with what of it the network has. Masked scores are -Inf. */
/* [batch, length, heads * size] to [batch, heads, length, size]; rank 4 stays. */
Val attn_split_heads(Graph *g, Val x, i64 heads);
Val attn_merge_heads(Graph *g, Val x);         /* back to [batch, length, heads * size] */
Val attn_scale(Graph *g, Val q, double scale); /* 0: by one over the root of the size */
/* q . k of each query head with the key head of its group, scaled; keys are never copied. */
Val attn_scores(Graph *g, Val q, Val k, double scale);
Val attn_weighted_sum(Graph *g, Val p, Val v); /* probabilities times values, likewise */
Val attn_cap(Graph *g, Val s, double cap);     /* cap * tanh(s / cap); 0: none */
Val attn_mask(Graph *g, Val s, Val keep);      /* scores where keep is false become -Inf */
Val attn_add_mask(Graph *g, Val s,
                  Val mask); /* plus a mask of floats, whose -Inf hides any score */
/* bool [length of q, length of k]: key j may be seen by query i when i + past - left <= j <= i +
 * past + right; -1: no bound on that side, but not on both. */
Val attn_window_mask(Graph *g, Val s, Val past, i64 left, i64 right);
/* Keys below `end` and, if given, not below `start` (both [batch]): bool [batch, 1, 1, length]. */
Val attn_range_mask(Graph *g, Val start, Val end, Dim length);
/* All of it where query i, at position past + i, sees the keys up to its own, of these the last
 * `window` (0: all). Heads stay in their groups throughout, as the kernel of attention wants them.
 */
Val attn_causal(Graph *g, const CausalAttn *a, Val q, Val k, Val v);
Val attn_softmax(Graph *g, Val s); /* over the last axis; a row of -Inf gives zeros */
/* The same whose sum counts one more score: 0, or one given for each head. */
Val attn_sink_softmax(Graph *g, Val s, Val sink);
/* Keys (or values) x behind the past ones of each batch entry, `length` in all. past [batch, 1, 1,
 * 1] i64: how many there are; old: the cache that holds them (0: none). */
Val attn_append_kv(Graph *g, Val old, Val past, Val x, Dim length);
/* Rotary embedding. cos, sin: [batch or 1, length, half]; what is beyond 2 * half stays.
 * interleaved: neighbours are pairs, else halves. */
Val attn_rope(Graph *g, Val x, Val cos, Val sin, bool interleaved);

/* window.c: convolutions and pools. in: extents of the axes the window slides over. Padding that
 * depends on symbolic extents becomes a pad node. */
i64 window_span(const Window *w, u32 i); /* cells from its first to its last */
/* ceil(in / stride) results; the odd cell of padding goes to the end (upper) or the beginning. */
void window_same(Graph *g, Window *w, const Dim *in, bool upper);
/* A last window may begin inside the operand (or its padding before it) and end beyond. */
void window_ceil(Graph *g, Window *w, const Dim *in);
bool window_is_fixed(const Window *w); /* its padding consists of numbers */
Val window_conv(Graph *g, Val x, Val weights, i64 group, Window w); /* weights [M, C/group, ...] */
/* weights [C, M/group, ...]; cut_*: what is cut from (positive) or added to both ends of the full
 * result, which has (in - 1) * stride + span cells. */
Val window_conv_transpose(Graph *g, Val x, Val weights, i64 group, const Window *w,
                          const i64 *cut_lo, const i64 *cut_hi);
Val window_pool(Graph *g, Op op, Val x, Window w, double fill); /* OP_pool_*; fill: of padding */
Val window_average(Graph *g, Val x, Window w, bool with_pads);  /* do cells of padding count? */
Val compose_bias(Graph *g, Val y, Val bias); /* y + bias, one entry a channel (axis 1) */

/* compose_nms.c: i64 [batch, classes, rounds], numbers of boxes by falling score, and -1 behind
 * them. */
Val compose_nms(Graph *g, const NmsInputs *x);

/* resize.c */
Val compose_resize(Graph *g, const Resize *r, Val v, const ResizeAxis *x, u32 n);
extern const char *const resize_coord_name[RC_COUNT], *const resize_nearest_name[RN_COUNT];

#endif
