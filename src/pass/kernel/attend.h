/* attend.h: state of a flash attention kernel while it is written; shared by lower_attention.c and
 * attend_*.c.
 */
#ifndef INGOT_ATTEND_H
#define INGOT_ATTEND_H

#include "pass/kernel/attention.h"
#include "pass/kernel/tile.h"

enum {
  KEYS = 64,        /* keys of a block */
  SEGMENT = 4,      /* blocks of a segment, which has its own sums */
  ROWS = 24,        /* rows of a block, about */
  PACKED_ROWS = 96, /* rows of a block if keys are packed, about */
  TILE_KEYS = 4,    /* keys whose scores are accumulated together */
  FEW_ROWS = 4,     /* maximum rows of a tile if keys are not packed */
  MAX_ROWS = 6,     /* maximum rows of a tile */
  MAX_PANELS = 4
};

/* Online softmax of rows over the keys seen so far: maximum score, sum of weights, weighted sum of
 * values. */
typedef struct SoftmaxState {
  BufId largest, total, sums; /* [rows, 1], [rows, 1], [rows, width] */
} SoftmaxState;

typedef struct Attend {
  Lower *l;
  Prog *p;
  const Attention *a;
  Form s, y;                          /* forms of the scores and of the weighted sum of values */
  Val scores;                         /* result of s, before maps */
  u32 query, keys;                    /* operands of s */
  u32 values;                         /* operand of y */
  u32 dims;                           /* dimensions of scores, without the reduction */
  u32 of_s[MAX_RANK], of_y[MAX_RANK]; /* their axes in both forms */
  u32 depth, width;                   /* reduction axis of s; axis of y that vectors run along */
  u32 tile, block; /* dimensions of rows in a tile and in a block; equal if there is only one */
  i64 rows, each;  /* maximum rows of a tile; points of `block` in a block */
  i64 budget;      /* registers for accumulators */
  u32 lanes;
  VarId lane, acc;
  bool packed;       /* pack the keys of a block into panels first */
  bool finish_loads; /* maps after the scores load memory along the keys */
  bool finish_last;  /* maps run in a separate loop, because they load or because the depth has a
                        remainder */
  ExprId val_s[FORM_AXES], val_y[FORM_AXES];
  bool cut;            /* keys are split into segments */
  bool split;          /* threads may share the rows of a block by segments */
  BufId panels;        /* scratch if packed: [depth, KEYS] */
  BufId score, shrink; /* scratch: rows of a tile */
  SoftmaxState
      here; /* scratch for the rows of a block: of this segment, or of all keys if not cut */
  SoftmaxState all;   /* if cut: of the segments so far */
  SoftmaxState parts; /* if split: of every segment, by head, segment and row */
  i64 most;           /* rows of a block */
} Attend;

/* `count` rows from l0 on. */
typedef struct RowBlock {
  VarId l0, count;
} RowBlock;

/* Position of a tile while its code is written. */
typedef struct AttendTile {
  i64 rows;
  ExprId first, row; /* first row: along dimension `tile`; in the block */
  VarId from, stop;  /* range of keys in this block that some row sees */
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
  if (x->l->pass->target->fma) return ex_op3(p, OP_fma, a, b, sum);
  return plus(p, sum, ex_op2(p, OP_mul, a, b));
}

static inline ExprId at2(Prog *p, BufId b, ExprId i, ExprId j, u32 lanes) {
  ExprId idx[2] = {ex_copy(p, i), ex_copy(p, j)};
  return lanes > 1 ? ex_load_vec(p, b, idx, 2, lanes) : ex_load(p, b, idx, 2);
}

/* Sets the position along dimension d in both forms. */
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

/* Declares a pinned vector, because C compilers would load it again for every product. */
static inline VarId let_pinned(Prog *p, Cursor *at, ExprId e, const char *name) {
  VarId v = tile_let(p, at, e, name);
  prog_stmt(p, at->last)->flags |= SF_pin;
  return v;
}

/* attend_rows.c */
/* Initializes the rows of a block: no keys yet. */
void attend_begin(Attend *x, Cursor at, RowBlock b, SoftmaxState of);
/* Merges one segment, whose rows start at `first` in its buffers, into `all`. */
void attend_merge(Attend *x, Cursor at, RowBlock b, SoftmaxState one, ExprId first);
void attend_keep(Attend *x, Cursor at, RowBlock b, ExprId first); /* copies `here` to `parts` */
void attend_end(Attend *x, Cursor at, RowBlock b,
                SoftmaxState of); /* stores the result of every row */

/* attend_scores.c */
Nest attend_nest(const Attend *x, const Form *f, const ExprId *val);
/* Loads a vector of an operand along the lane; 0: not contiguous. */
ExprId attend_vector(const Attend *x, const Form *f, const ExprId *val, u32 k);
/* Applies the maps to a score, at the position val_s. */
ExprId attend_finished(Attend *x, ExprId score);
ExprId attend_count(const Attend *x, const AttendTile *t);  /* keys of this block for a tile */
ExprId attend_groups(const Attend *x, const AttendTile *t); /* vectors of keys of a tile */
void attend_pack(Attend *x, Cursor at, VarId from);         /* packs keys from there on */
void attend_scores(Attend *x, const AttendTile *t,
                   Cursor at); /* includes the maps unless finish_last */
/* Applies maps that load memory along the keys, up to the last key. */
void attend_finish(Attend *x, const AttendTile *t, Cursor at);

#endif
