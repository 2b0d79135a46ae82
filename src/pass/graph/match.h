/* match.h: what a value computes, where it is more than its last node: softmax, norms, attention,
 * activations.
 *
 * Matchers look at the form that the pass canon leaves, and only at it: one spelling each. They
 * look through definitions, not at users; whoever replaces what was matched must see to it himself
 * that nobody else needs what is in between. They are total: whatever the graph, they answer.
 */
#ifndef INGOT_MATCH_H
#define INGOT_MATCH_H

#include "ir/graph.h"

typedef struct Mean Mean;
typedef struct Softmax Softmax;
typedef struct Norm Norm;
typedef struct Mask Mask;
typedef struct Attention Attention;

struct Mean {
  Val x;
  const Dim *axes;
  u32 naxes;
};

/* exp(x - top) / sum, or the logarithm of it */
struct Softmax {
  Val x;
  const Dim *axes;
  u32 naxes;
  Val top;    /* the largest of each row; 0: not subtracted */
  Val sum;    /* of the exponentials */
  bool log;   /* x - top - log(sum) */
  bool hides; /* rows of -Inf give zeros, not NaN */
};

/* (x - mean) / sqrt(variance + eps) * scale + bias */
struct Norm {
  Val x;
  const Dim *axes;
  u32 naxes;
  bool centred; /* layer norm; else the mean is not subtracted (RMS norm) */
  double eps;
  Val scale, bias; /* 0: none; broadcast against x */
};

typedef enum MaskKind {
  MASK_add,  /* added to the scores */
  MASK_keep, /* bool: scores stay where true, else they are `low` */
  MASK_hide, /* bool: they stay where false */
} MaskKind;

struct Mask {
  MaskKind kind;
  Val v;
  double low;
};

enum { MASKS = 4 };

/* softmax(mask(q . k * scale)) . v */
struct Attention {
  Val q, k, v;
  NodeId scores, mix; /* the contractions; their specs tell the axes */
  u32 qpos, vpos;     /* which operand of scores is q; which of mix is v */
  double scale;
  double cap; /* cap * tanh(score / cap) before the masks; 0: none */
  u32 nmask;
  Mask mask[MASKS]; /* in the order in which they apply */
  Softmax rows;
};

/* The factor of an activation may be part of the weights behind it: Gelu then comes twice as large.
 */
typedef enum Act {
  ACT_none,
  ACT_relu,
  ACT_clip,
  ACT_sigmoid,
  ACT_silu,
  ACT_gelu,
  ACT_gelu_tanh,
  ACT_hard_swish,
  ACT_softplus,
  ACT_mish,
  ACT_COUNT
} Act;
extern const char *const act_name[ACT_COUNT];

/* match.c */
bool match_mean(Graph *g, Val v, Mean *m);
bool match_softmax(Graph *g, Val v, Softmax *m);
bool match_norm(Graph *g, Val v, Norm *m); /* with scale and bias, if they are there */
bool match_attention(Graph *g, Val v, Attention *m);
Act match_act(Graph *g, Val v, Val *x, double *by); /* v = by * act(x) */
/* A name for the computation that ends in v; NULL: nothing but its node. */
const char *match_name(Graph *g, Val v);

#endif
