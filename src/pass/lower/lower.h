/* lower.h: private to pass/lower, the driver: nodes, operators without a form, checks and state. */
#ifndef INGOT_LOWER_H
#define INGOT_LOWER_H

#include "pass/kernel/tile.h"

typedef void LowerFn(Lower *l, Cursor at); /* l->n is the node; at is inside its kernel */

/* lower.c */
static inline BufId lower_in(const Lower *l, u32 i) {
  return l->buf[l->n->in[i]];
}
static inline BufId lower_out(const Lower *l, u32 i) {
  return l->buf[l->n->out[i]];
}
void lower_region(Lower *l, RegionId b);
void lower_copy(Lower *l, BufId from, BufId to); /* writes a separate kernel */

/* lower_form.c */
void lower_form(Lower *l, Cursor at, const Form *f);

/* lower_flat.c */
enum { FLAT_VALUES = 32 }; /* maximum of a group */
typedef struct FlatValue {
  Val v;
  BufId was;
  Dim dim[MAX_RANK];
} FlatValue;
typedef struct FlatMaps {
  Lower *l;
  Val root;
  u32 rank, n;
  bool inlined; /* some value is inlined */
  FlatValue at[FLAT_VALUES];
} FlatMaps;
/* Merges axes of a group of maps with root n and returns its form, valid until flat_end. false:
 * nothing changed. */
bool flat_begin(Lower *l, const Node *n, Form *f, FlatMaps *s);
void flat_end(FlatMaps *s);

/* lower_require.c: run-time checks of symbolic dimensions, placed before the node. */
void lower_require(Lower *l);
void lower_check_index(Lower *l); /* check of node check_index */

/* lower_state.c */
States *states_begin(Lower *l); /* assigns buffers to values that states_end reads */
bool states_holds(const States *o, const Node *n); /* is its result in the memory of a state? */
bool states_view(States *o, BufId of, const Dim *dim,
                 u32 rank); /* may a view of that buffer have this shape? */
void states_end(States *o);

/* operators without a form */
LowerFn lower_concat, lower_pad, lower_dims;                  /* lower_join.c */
LowerFn lower_arg, lower_pool_arg, lower_cum;                 /* lower_scan.c */
LowerFn lower_gather, lower_gather_elems, lower_gather_nd;    /* lower_index.c */
LowerFn lower_scatter_elems, lower_scatter_nd, lower_nonzero; /* lower_index.c */
LowerFn lower_topk;                                           /* lower_topk.c */
LowerFn lower_nms;                                            /* lower_nms.c */
void lower_if(Lower *l);                                      /* lower_control.c */
void lower_loop(Lower *l);

#endif
