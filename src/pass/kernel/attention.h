/* attention.h: softmax between two contractions, written as one kernel. */
#ifndef INGOT_ATTENTION_H
#define INGOT_ATTENTION_H

#include "pass/lower/lower.h"

typedef struct Attention Attention;
typedef struct KeyLimit KeyLimit;

/* Keys from `at` + add on are not seen by a row; low: those before it are not. */
struct KeyLimit {
  Val at; /* integers, of the row */
  i64 add;
  bool low;
};

enum { LIMITS = 4, ATTENTION_PARTS = 16 };

struct Attention {
  NodeId root;     /* contracts weights of keys with values */
  u32 weights;     /* the operand of it that is softmax */
  u32 key;         /* dimension of that one along which it is */
  Val masked;      /* what it is the softmax of */
  Val seen;        /* that before keys were hidden by limits */
  Val keys;        /* the value that stands for keys, if made of halves or bytes; 0: not */
  Val values;      /* likewise */
  bool whole_rows; /* a row that sees no key is 0, else NaN */
  KeyLimit limit[LIMITS];
  u32 nlimit;
  NodeId part[ATTENTION_PARTS]; /* nodes between the contractions, that have a buffer otherwise */
  u32 npart;
};

/* attention_match.c: all of a graph, before it is lowered. */
struct Attentions {
  VEC(Attention) at;
  u32 *part;    /* by node: 1 + the attention that it is a part of, or whose root it is */
  bool *hidden; /* by node: only limits would read its result */
  bool plain;   /* what is between contractions is lowered by itself */
};
Attentions *attention_find(Lower *l);

/* lower_attention.c */
bool attention_has_part(Lower *l, const Node *n); /* a part: nothing is written for it yet */
/* Writes it, if n is the root of one and it can be; else its parts, and false. */
bool lower_attention(Lower *l, const Node *n);

#endif
