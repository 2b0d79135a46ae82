/* list.h: sequences and optionals while importing.
 *
 * The graph knows tensors only. A sequence is, while importing, the list of its elements: then
 * SequenceAt is one of them, ConcatFromSequence a concat, and nothing of it reaches the graph.
 * Where its length is only known at run time it is one tensor that stacks the elements, all of one
 * type, up to a capacity, and their number. An optional is a list of one or none; where its
 * presence is only known at run time, a flag beside the value, which is zero when there is none.
 */
#ifndef INGOT_LIST_H
#define INGOT_LIST_H

#include "front/onnx/onnx_import.h"

struct List {
  TypeKind kind;    /* TY_seq or TY_opt */
  Val *at;          /* n elements; that of an optional may be a sequence */
  u32 n;            /* 0 when stacked */
  Val stack, count; /* sequence of unknown length: [capacity, ...] and an i64 scalar; else 0 */
  Val keys; /* a sequence of maps that all have these keys: stack holds their values; without
             * count: one map, stack [n] */
  Val has;  /* optional whose presence is not known (n is 1): a bool scalar; else 0 */
};

/* list.c */
Val list_add(Import *im, List l);
const List *list_at(const Import *im, Val v);
Val list_known(Import *im, TypeKind kind, const Val *at, u32 n);
Val list_stacked(Import *im, Val stack, Val count);
const List *on_list(Build *b, u32 i); /* operand i, which must be a sequence */
/* As stack and count; false, and nothing built, when the elements differ in type or there are none
 * to tell it. */
bool list_stack(Build *b, const List *l, Val *stack, Val *count);
/* The type of all elements, if they have one; rank and dimensions live as long as the import. */
bool list_type(Build *b, const List *l, Type *out);
Dim list_capacity(Build *b, const List *l); /* length, or capacity */
/* stack with exactly this capacity: cut, or filled up with zeros. */
Val stack_fit(Build *b, Val stack, Dim capacity);
Val zeros_of(Build *b, const Type *t);

/* list_join.c: what If gives when its branches end with x and y. The tensors of both are collected
 * pair by pair (then, else), in blocks blk; when the node stands, its results take their places. */
typedef struct BranchJoin {
  Build *b;
  RegionId blk[2];
  VEC(Val) pair[2];
  VEC(bool) text; /* of each pair: strings, which leave the branches as bytes */
  const Val *out; /* results of the node; NULL while collecting */
  u32 next;
  const char *why; /* what does not fit; NULL: nothing */
  bool wrong;      /* and ONNX forbids it; else only ingot cannot do it */
} BranchJoin;
Val list_join(BranchJoin *j, Val x, Val y); /* 0 while collecting */

#endif
