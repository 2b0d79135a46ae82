/* list.h: sequences and optionals at import time.
 *
 * The graph only has tensors. At import time a sequence is the list of its elements: SequenceAt
 * selects one, ConcatFromSequence is a concat. A sequence whose length is known only at run time is
 * one tensor that stacks the elements (all of one type) up to a capacity, and their count. An
 * optional is a list of at most one element. If its presence is known only at run time, it is a
 * flag and a value, which is zero if absent.
 */
#ifndef INGOT_LIST_H
#define INGOT_LIST_H

#include "front/onnx/onnx_import.h"

struct List {
  TypeKind kind;    /* TY_seq or TY_opt */
  Val *at;          /* n elements; the element of an optional may be a sequence */
  u32 n;            /* 0 when stacked */
  Val stack, count; /* sequence of unknown length: [capacity, ...] and an i64 scalar; else 0 */
  Val keys;         /* keys of maps whose values are in stack; without count: one map, stack [n] */
  Val has;          /* optional of unknown presence (n is 1): a bool scalar; else 0 */
};

/* list.c */
Val list_add(Import *im, List l);
const List *list_at(const Import *im, Val v);
Val list_known(Import *im, TypeKind kind, const Val *at, u32 n);
Val list_stacked(Import *im, Val stack, Val count);
const List *on_list(Build *b, u32 i); /* operand i, which must be a sequence */
/* Converts to stack and count. False, and nothing built, if types differ or the list is empty. */
bool list_stack(Build *b, const List *l, Val *stack, Val *count);
/* The common type of all elements, if there is one. Its dimensions live as long as the import. */
bool list_type(Build *b, const List *l, Type *out);
Dim list_capacity(Build *b, const List *l); /* length, or capacity of a stack */
/* Crops or zero-pads a stack to this capacity. */
Val stack_fit(Build *b, Val stack, Dim capacity);
Val zeros_of(Build *b, const Type *t);

/* list_join.c: merges x and y, results of the two branches of an If. A first call collects pairs of
 * tensors (then, else) from regions blk. A second call replaces them by results of the If node. */
typedef struct BranchJoin {
  Build *b;
  RegionId region[2];
  VEC(Val) pair[2];
  VEC(bool) text; /* the pair holds strings, which leave the branches as bytes */
  const Val *out; /* results of the node; NULL while collecting */
  u32 next;
  const char *why; /* reason of a mismatch, or NULL */
  bool wrong;      /* the mismatch violates ONNX; else ingot does not support it */
} BranchJoin;
Val list_join(BranchJoin *j, Val x, Val y); /* 0 while collecting */

#endif
