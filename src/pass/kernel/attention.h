/* attention.h: softmax between two contractions, fused into one kernel. */
#ifndef INGOT_ATTENTION_H
#define INGOT_ATTENTION_H

#include "pass/form/nest.h"

typedef struct Attention Attention;
typedef struct KeyLimit KeyLimit;

/* A row sees only keys below `at` + add, or, with `low`, only keys from there on. */
struct KeyLimit {
  Val at; /* one integer per row */
  i64 add;
  bool low;
};

enum { LIMITS = 4, ATTENTION_PARTS = 16 };

struct Attention {
  NodeId root;     /* contraction of attention weights with values */
  u32 weights;     /* operand of root that is the softmax */
  u32 key;         /* dimension of that operand along which it is normalized */
  Val masked;      /* operand of the softmax */
  Val seen;        /* scores before limits masked keys */
  Val keys;        /* value to read as keys, if it is dequantized or widened from f16; 0: none */
  Val values;      /* value to read as values, under the same condition; 0: none */
  bool whole_rows; /* a row that sees no key is 0; otherwise NaN */
  KeyLimit limit[LIMITS];
  u32 nlimit;
  NodeId part[ATTENTION_PARTS]; /* nodes between the contractions that would have buffers */
  u32 npart;
};

/* attention_match.c: all attentions of a graph, found before lowering. */
struct Attentions {
  VEC(Attention) at;
  u32 *part;    /* by node: 1 + the attention it is a part or the root of */
  bool *hidden; /* by node: only limits would read its result */
  bool plain;   /* do not fuse: lower the nodes between the contractions separately */
};
Attentions *attention_find(Lower *l);

/* lower_attention.c */
bool attention_has_part(Lower *l, const Node *n); /* is n a part? Then its code is written later */
/* If n is the root of an attention, writes the kernel and returns true. If that is not possible,
 * lowers the parts and returns false. */
bool lower_attention(Lower *l, const Node *n);

#endif
