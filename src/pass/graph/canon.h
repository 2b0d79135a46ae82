/* canon.h: rules of the pass canon, shared by its files.
 *
 * A rule looks at one node and returns true if it replaced its output. canon.c lists rules by
 * operator. The pass runs until no rule applies, so each rule must lead towards the canonical form
 * and never back.
 */
#ifndef INGOT_CANON_H
#define INGOT_CANON_H

#include "pass/pass.h"

/* Facts about values at the start of a round; values built in this round have none. */
typedef struct Canon {
  u32 n;
  bool images; /* keep the shape of images, for channel blocks or row tiling */
  u32 *uses;
  u32 *depth;         /* nodes on the longest path from a parameter or constant */
  bool *ulp_tolerant; /* a change of the last bit moves results by as little: it is not rounded,
                         compared or returned */
  /* canon_slice.c */
  RegionId *home; /* region of the node that defines it */
  NodeId *cut;    /* slice that all its users equal; 0: none, UINT32_MAX: they differ */
  Val *part;      /* replacement of these slices, once built */
  i64 *rows;      /* number of leading rows of axis 0 that are read */
} Canon;

typedef bool CanonRule(GraphEdit *e, NodeId id);

/* canon.c */
bool canon_one_use(const GraphEdit *e, Val v); /* used once */
const Node *canon_one_use_def(GraphEdit *e, Val v,
                              Op op); /* graph_def; NULL also if v has other users */
/* Operands of a commutative node as (running, constant). */
bool canon_split(Graph *g, const Node *n, Val *x, Val *k);
bool canon_own_const(const GraphEdit *e, Val v); /* a constant with one use */
/* v as a constant, if all its operands are. Evaluates at once: pass fold has a budget, and leaving
 * the work to run time would be worse than not rewriting. */
Val canon_eval_const(Graph *g, Val v);
Val canon_scaled(Graph *g, Val w, Val by); /* w * by, both constant; 0: they are not */
bool canon_wide_float(Graph *g, Val v);    /* f32 or f64: narrower floats round after every step */
bool canon_scalar(Graph *g, Val v, double *x);              /* a float constant with one element */
bool canon_in_range(Graph *g, Val v, double lo, double hi); /* constant, lo <= |element| <= hi */
bool canon_pow2(Graph *g, Val v);                           /* constant powers of two */
Val canon_fold(Graph *g, Op op, Val a, Val b);              /* op of two constants, as a constant */
/* Does every window of a pool contain an element, with this much padding? */
bool canon_windows_see(const Node *pool, const Dim *lo, const Dim *hi);

/* canon_map.c: elementwise operators */
bool canon_not_below_0(Graph *g, Val v); /* no element is below 0; NaN and -0 are possible */
CanonRule canon_order, canon_zero, canon_const_outward, canon_clip, canon_reciprocal,
    canon_quotient, canon_power_of, canon_mean, canon_halves, canon_cubic, canon_hard_swish,
    canon_softplus, canon_affine, canon_rows, canon_log_sum;

/* canon_view.c: transposes and reshapes */
CanonRule canon_transpose_up, canon_reshape_up, canon_reduce_view, canon_keep, canon_global_pool;

/* canon_slice.c: parts of values */
void canon_find_slices(Graph *g, Canon *k);
CanonRule canon_slice_up, canon_loop;

/* canon_contract.c: contractions */
CanonRule canon_absorb, canon_absorb_result, canon_unflatten, canon_scale_out, canon_scale_in,
    canon_input, canon_pointwise;

#endif
