/* attend.h: an attention on its way to a kernel; shared by the files of lower_attention.c. */
#ifndef INGOT_ATTEND_H
#define INGOT_ATTEND_H

#include "pass/kernel/attention.h"
#include "pass/kernel/tile.h"

enum {
  KEYS = 64,        /* of a block */
  SEGMENT = 4,      /* blocks whose sums are apart from those of others */
  ROWS = 24,        /* of a block, about */
  PACKED_ROWS = 96, /* the same where keys are packed for them */
  TILE_KEYS = 4,    /* whose scores are summed side by side */
  FEW_ROWS = 4,     /* of a tile, where keys are not packed */
  MOST_ROWS = 6,    /* of any */
  MOST_PANELS = 4
};

/* What rows have of some keys: the largest score, the sum of weights, the weighted sum of values.
 */
typedef struct SoftmaxState {
  BufId largest, total, sums; /* [rows, 1], [rows, 1], [rows, width] */
} SoftmaxState;

typedef struct Attend {
  Lower *l;
  Prog *p;
  const Attention *a;
  Form s, y;                          /* scores, and what is summed of values */
  Val scores;                         /* what s makes, before maps */
  u32 query, keys;                    /* operands of s */
  u32 values;                         /* operand of y */
  u32 dims;                           /* of scores, without the fold */
  u32 of_s[MAX_RANK], of_y[MAX_RANK]; /* axes of them in both forms */
  u32 depth, width;                   /* axis of s that is folded, axis of y along vectors */
  u32 tile, block; /* dimensions of rows: in a tile, in a block; the same if there is one */
  i64 rows, each;  /* of a tile at most; points of `block` in a block */
  i64 budget;      /* registers for sums */
  u32 lanes;
  VarId lane, acc;
  bool packed;       /* keys of a block are brought into panels first */
  bool finish_loads; /* maps behind scores read memory along the keys */
  bool finish_last;  /* or what is left of the depth behind the vectors comes first: they are a loop
                      */
  ExprId val_s[FORM_AXES], val_y[FORM_AXES];
  bool cut;            /* keys come in segments, as there may be several */
  bool split;          /* threads may take segments of the same rows */
  BufId panels;        /* scratch, if packed: [depth, KEYS] */
  BufId score, shrink; /* scratch: of rows of a tile */
  SoftmaxState here;   /* scratch, of rows of a block: of this segment, or of all keys if not cut */
  SoftmaxState all;    /* if cut: of the segments so far */
  SoftmaxState parts;  /* if split: of every segment, by head, segment and row */
  i64 most;            /* rows of a block */
} Attend;

/* Rows of a block, `count` of them from l0 on. */
typedef struct RowBlock {
  VarId l0, count;
} RowBlock;

/* A tile while it is written. */
typedef struct AttendTile {
  i64 rows;
  ExprId first, row; /* along dimension `tile`; among the rows of the block */
  VarId from, stop;  /* keys of this block that some row sees */
} AttendTile;

static inline Dim extent(const Attend *x, u32 d) {
  return prog_buf(x->p, x->s.out.buf)->dim[d];
}

static inline ExprId plus(Prog *p, ExprId a, ExprId b) {
  return ex_op2(p, OP_add, a, b);
}

static inline ExprId times(Prog *p, ExprId a, i64 k) {
  return ex_op2(p, OP_mul, a, ex_int(p, k));
}

static inline ExprId minus(Prog *p, ExprId a, ExprId b) {
  return ex_op2(p, OP_sub, a, b);
}

static inline ExprId number(Prog *p, double v) {
  return ex_const(p, DT_f32, (Scalar){.f = v});
}

static inline ExprId splat_of(const Attend *x, ExprId e) {
  return ex_splat(x->p, e, x->lanes);
}

static inline ExprId exp_of(const Attend *x, ExprId e) {
  return ex_op1(x->p, x->p->math == MM_u ? OP_exp_nonpos : OP_exp, e);
}

static inline ExprId fma_or_mul_add(const Attend *x, ExprId a, ExprId b, ExprId sum) {
  Prog *p = x->p;
  if (x->l->unit->target->fma) return ex_op3(p, OP_fma, a, b, sum);
  return plus(p, sum, ex_op2(p, OP_mul, a, b));
}

static inline ExprId at2(Prog *p, BufId b, ExprId i, ExprId j, u32 lanes) {
  ExprId idx[2] = {ex_copy(p, i), ex_copy(p, j)};
  return lanes > 1 ? ex_load_vec(p, b, idx, 2, lanes) : ex_load(p, b, idx, 2);
}

static inline void put2(Prog *p, Cursor *at, BufId b, ExprId i, ExprId j, ExprId value) {
  ExprId idx[2] = {ex_copy(p, i), ex_copy(p, j)};
  prog_store(p, at, b, idx, 2, value);
}

/* Every row stands at e along this dimension. */
static inline void set_axis(Attend *x, u32 d, ExprId e) {
  x->val_s[x->of_s[d]] = x->val_y[x->of_y[d]] = e;
}

static inline ExprId row_at(const AttendTile *t, Prog *p, i64 r) {
  return plus(p, ex_copy(p, t->row), ex_int(p, r));
}

static inline void set_row(Attend *x, const AttendTile *t, i64 r) {
  set_axis(x, x->tile, plus(x->p, ex_copy(x->p, t->first), ex_int(x->p, r)));
}

static inline ExprId lane_index(const Attend *x, ExprId vector) {
  return plus(x->p, times(x->p, vector, x->lanes), ex_var(x->p, x->lane));
}

/* A vector that is loaded once: compilers would load it again for every product. */
static inline VarId let_pinned(Prog *p, Cursor *at, ExprId e, const char *name) {
  VarId v = tile_let(p, at, e, name);
  prog_stmt(p, at->last)->flags |= SF_pin;
  return v;
}

/* attend_rows.c */
/* Those of the rows of a block, with none of keys yet. */
void attend_begin(Attend *x, Cursor at, RowBlock b, SoftmaxState of);
/* Those of one segment, rows from `first` on in their buffers, are added to those of all. */
void attend_merge(Attend *x, Cursor at, RowBlock b, SoftmaxState one, ExprId first);
void attend_keep(Attend *x, Cursor at, RowBlock b, ExprId first);   /* here, to parts */
void attend_end(Attend *x, Cursor at, RowBlock b, SoftmaxState of); /* the result of every row */

/* attend_scores.c */
Nest attend_nest(const Attend *x, const Form *f, const ExprId *val);
/* A vector of an operand along the lane; 0: it is not contiguous. */
ExprId attend_vector(const Attend *x, const Form *f, const ExprId *val, u32 k);
/* What maps make of a score, at the place where val_s stands. */
ExprId attend_finished(Attend *x, ExprId score);
ExprId attend_count(const Attend *x, const AttendTile *t);     /* keys of this block for a tile */
ExprId attend_groups(const Attend *x, const AttendTile *t);    /* vectors of keys that a tile has */
void attend_pack(Attend *x, Cursor at, VarId from);            /* keys from there on, into panels */
void attend_scores(Attend *x, const AttendTile *t, Cursor at); /* with maps, unless finish_last */
/* Maps that read memory along the keys: not behind the last of them. */
void attend_finish(Attend *x, const AttendTile *t, Cursor at);

#endif
