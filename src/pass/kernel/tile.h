/* tile.h: a form on its way to a kernel of vectors; shared by the files of lower_tile.c. */
#ifndef INGOT_TILE_H
#define INGOT_TILE_H

#include "pass/lower/lower.h"
#include "pass/kernel/segment.h"
#include "pass/kernel/widen.h"

/* What an operand does along the lanes. */
typedef enum LaneUse {
  LU_splat,  /* nothing: one element for all lanes */
  LU_vector, /* steps by one element */
  LU_packed  /* anything else; it has been brought into panels of lanes */
} LaneUse;

/* The epilogue of a tile, by how much time it takes beside the sums. */
typedef enum EpilogueCost {
  EC_plain,    /* none, or arithmetic with constants */
  EC_loads,    /* it loads values of the run too */
  EC_functions /* it divides, or computes functions such as exp */
} EpilogueCost;

/* An operand that is bytes, or i16, in memory: see tile_int.c. */
typedef struct TileBytes {
  u32 operand;     /* FORM_IN: there is none */
  i64 zero;        /* the zero point, taken off the sums at their start */
  bool bias_128;   /* those bytes are signed; dot4 gets them larger by 128 */
  bool sum_in_f32; /* sums are exact in f32 and made there */
  BufId sums;      /* what the accumulators begin with, in panels; 0: f.init */
} TileBytes;

/* How sums are finished and stored. */
typedef struct TileStore {
  bool pads;    /* there is room behind the result: the last vector is stored whole */
  bool partial; /* the last vector can be computed without room behind the operands */
  bool finish_is_wide, is_wide; /* a vector of sums can be finished as one, and stored as one */
  bool finish_stays_inside; /* the epilogue of a partial vector loads only elements that exist */
  EpilogueCost finish;      /* what is made of the sum */
} TileStore;

/* Points of an axis that all panels are multiplied with before the next ones are: see
 * cache_tile.c. */
typedef struct CacheTile {
  u32 axis;     /* that of the rows, or one around them; FORM_AXES: there are no blocks */
  i64 each;     /* points of one */
  ExprId first; /* where the one being written begins */
} CacheTile;

/* Panels that come next are fetched: see tile_prefetch.c. */
typedef struct TilePrefetch {
  i64 lines;          /* a tile fetches; 0: none */
  u32 axis;           /* of the fold that is cut for that; FORM_AXES: blocks of channels are */
  i64 steps;          /* of its fold at which it may */
  BufId of;           /* the weights */
  i64 panel, line;    /* elements of a panel and of a line */
  i64 ahead;          /* from the panels of this tile to the next */
  ExprId tile, first; /* which of those with these panels it is; the first of these in its batch */
  ExprId batch;       /* panels of all batches before */
} TilePrefetch;

/* Where a tile stands while it is written. */
typedef struct TileAt {
  i64 from;        /* point of the lane axis where panel 0 begins */
  CacheTile block; /* each 0: all points of all axes */
  ExprId line;     /* which point of the loops between panels and rows; 0: there are none */
  i64 lines;       /* of so many; 0: of one */
  TilePrefetch fetch;
  ExprId panel;          /* number of the vector along the lane axis, */
  ExprId panel_in_tile;  /* and among those of the tile */
  VarId var[FORM_AXES];  /* of loops */
  ExprId val[FORM_AXES]; /* value of each axis; 0: a single point */
  VarId split_block, split_lane;
  ExprId quad;     /* which group of the quad axis */
  InnerVars inner; /* lane_var, and what else runs inside of blocks */
} TileAt;

/* Axes of the form; FORM_AXES: there is none. */
typedef struct TileAxes {
  u32 lane;  /* of the lanes */
  u32 row;   /* that tiles have several points of */
  u32 split; /* folded, and an operand keeps it in blocks */
  i64 block; /* of that one */
  u32 quad;  /* folded, and its points are taken in groups */
  i64 each;  /* points of a group: 4 by dot4, 2 by dot2; 1 where there are none */
} TileAxes;

/* Accumulators, each a vector in registers: rows x panels of them. */
typedef struct TileSums {
  i64 panels, most_rows; /* of a tile; rows at most */
  i64 budget;            /* registers for accumulators */
  i64 rows;              /* of tiles so many panels wide; 0: what the budget allows */
  bool panels_innermost; /* loops over axes without panels stand around those over panels */
} TileSums;

typedef struct Tile {
  Lower *l;
  Prog *p;
  Form f;
  u32 lanes; /* of the vectors being written now */
  TileAxes axis;
  TileBytes bytes;
  LaneUse use[FORM_IN];
  BufId pack[FORM_IN];
  bool packed_at_run[FORM_IN]; /* packed while running */
  bool widens;                 /* the tile stores `wide`, and does not read it */
  BufId wide[FORM_IN]; /* panels of a tile, of halves, as f32; 0: they are read where they lie */
  TileStore store;
  BufId table; /* a map that is looked up: see tile_lut.c; 0: it is computed */
  u64 unroll;  /* bit by axis: folds written out, as steps read the same vectors */
  TileSums sums;
  VarId lane_var, acc_var; /* stand for lane and accumulator until expressions are widened */
  const char *why_not;     /* why a form has no such tile */
  TileAt at;
} Tile;

typedef struct Wino Wino;                   /* see lower_winograd.c */
typedef struct TransposePlan TransposePlan; /* see lower_transpose.c */

/* How a form is written, and why: chosen once (kernel_choose.c), then written as it says. */
typedef struct KernelRecord {
  const ConvPlan *conv; /* what layout was told of it; of no convolution: nothing is set */
  Family family;
  Str size, reason;
  Tile t;                    /* tiles; inside: of the part inside */
  Tile out;                  /* rows: lanes run along the results, those of t along the fold */
  u32 axis;                  /* row: its axis; inside: along which the window slides */
  Segment in;                /* inside: places of that one */
  u32 nslide;                /* segments: windows, */
  u32 dim;                   /* the first dimension they slide over, */
  WindowDim slide[MAX_RANK]; /* and how */
  Wino *wino;
  TransposePlan *turn;
  const char *why_not; /* loops: why there are no vectors */
} KernelRecord;

/* kernel_choose.c */
void kernel_choose(Lower *l, const Form *f, KernelRecord *r);
void kernel_write(Lower *l, Cursor at, const Form *f,
                  KernelRecord *r);                   /* and notes it on the kernel */
bool lower_tiles(Lower *l, Cursor at, const Form *f); /* a part of one; false: it has no tiles */

/* Points of the fold; every axis of it is of known extent. */
static inline double tile_reduction_size(const Tile *t) {
  double n = 1;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (t->f.axis[i].reduce) n *= (double)(t->f.axis[i].hi - t->f.axis[i].lo);
  return n;
}

/* Does operand k depend on the row? */
static inline bool tile_varies(const Tile *t, u32 k) {
  return t->axis.row < FORM_AXES && operand_moves(&t->f.in[k], t->axis.row);
}

/* Accumulators of a tile: below and beside each other. */
typedef struct TileSize {
  i64 rows, panels;
} TileSize;

/* How rows are divided: big tiles of size rows and small ones of one less. */
typedef struct Cover {
  i64 size, big, small;
} Cover;

/* tile_choose.c: decides all of it; false: no vectors. */
bool tile_choose(Lower *l, const Form *f, Tile *t);
/* The same for maps whose result is contiguous along an axis of open extent. */
bool tile_choose_open(Lower *l, const Form *f, Tile *t);
/* The same for lanes along the fold. */
bool tile_choose_horizontal(Lower *l, const Form *f, Tile *t);

/* The same with a vector of results at a time: lanes of t along the fold, of out along the result.
 */
bool tile_choose_dot_rows(Lower *l, const Form *f, Tile *t, Tile *out);

/* How a tile whose lanes are chosen is finished and stored: sets lane_var, acc_var and store. */
void tile_choose_store(Tile *t);
Tile tile_of(Lower *l, const Form *f);      /* nothing decided yet */
bool tile_is_const(const Tile *t, BufId b); /* a constant in its own order, known while compiling */
u32 tile_lane_axis(const Tile *t); /* the axis the result is contiguous along; FORM_AXES: none */
bool tile_map_is_wide(Tile *t);    /* is the value of a map a vector along t->axis.lane? */
bool tile_map_repeats(Tile *t);    /* may elements of a map be made again? They are not read. */
/* Does the vector that begins at this point of t->axis.lane lie within one block of everything that
 * is read and stored? One that begins at a multiple of its lanes does. The first is for maps, the
 * second for lanes along the fold. */
bool tile_map_fits(const Tile *t, i64 from, u32 lanes);
bool tile_horizontal_fits(const Tile *t, i64 from);
Cover tile_cover(i64 n, i64 most);
i64 tile_rows(const Tile *t, i64 panels);
bool tile_row_fits(const Tile *t, u32 axis);  /* can tiles have rows of it? */
double tile_time(const Tile *t, i64 columns); /* of one step of the fold, over rows and panels */
double tile_fma_share(const Tile *t);         /* part of that time that is multiply-adds */

/* Between the two, statements and expressions are built on trial, and dropped at the end. */
ProgMark trial_begin(Tile *t);
void trial_end(Tile *t, ProgMark mark);

/* tile_lut.c: the values of a map that is a function of one byte; 0: it is none. */
BufId tile_lut(Tile *t);
void tile_lut_store(Tile *t, Cursor at); /* stores the lanes of a vector of it */

/* tile_tune.c: another size if the table says so. widest: panels beside each other of a product of
 * matrices, 0: it is none. */
void tile_tune(Tile *t, i64 widest);

/* tile_int.c: sums of products of bytes. */
bool bytes_begin(Tile *t);  /* puts the bytes in the place of their operand; false: none are */
bool bytes_choose(Tile *t); /* decides how they are summed up; false: as any integers */
ExprId bytes_load(const Tile *t, ExprId load); /* what the sum takes of that operand, a scalar */
ExprId bytes_sum(const Tile *t, ExprId acc);   /* a sum made in f32, as the integer it is */

/* lower_winograd.c: the data of a constant that has none yet. */
const Tensor *winograd_weights(const Lower *l, BufId b, Arena *a);

/* tile_pack.c */
void pack_sums(Tile *t, u32 k); /* sets t->bytes.sums: -zero times the sums of constant operand k */
ExprId sums_load(const Tile *t);
void pack_const(Tile *t, u32 k);          /* brings a constant operand into panels */
void pack_run(Tile *t, Cursor at, u32 k); /* writes what does that for another one */
bool pack_can_run(const Tile *t, u32 k);
/* For the tiles that are written next: panels of halves are floats in `wide`, which a tile that
 * `widens` stores there. false: there are none. */
bool pack_widen(Tile *t, i64 panels);
void pack_keep(const Tile *t, Cursor *at, u32 k, ExprId value); /* its panel, where val says */
ExprId pack_load(const Tile *t, u32 k); /* its panel at the place val says */

/* What a record says. */
enum { DOT_ROWS_LANES = 32 };                                             /* at most */
void dot_rows_write(Lower *l, Cursor at, const Form *f, KernelRecord *r); /* lower_dot_rows.c */
bool i16_choose(Lower *l, const Form *f, KernelRecord *r);                /* lower_i16.c */
void i16_write(Lower *l, Cursor at, const Form *f, KernelRecord *r);
/* Sums of products of 16 bits, u32, in the shape in which compilers find pairs: a loop over n, a
 * multiple of 16, and a step of it. */
VarId i16_dot_loop(Prog *p, Cursor *at, i64 n);
void i16_dot_add(Prog *p, Cursor *at, VarId acc, ExprId word, ExprId byte);
bool winograd_choose(Lower *l, const Form *f, KernelRecord *r); /* lower_winograd.c */
void winograd_write(Lower *l, Cursor at, const Form *f, KernelRecord *r);
bool transpose_choose(Lower *l, const Form *f, KernelRecord *r); /* lower_transpose.c */
void transpose_write(Lower *l, Cursor at, const Form *f, KernelRecord *r);

CacheTile cache_tile(const Tile *t); /* cache_tile.c */

/* tile_prefetch.c */
void prefetch_choose(Tile *t, i64 panels,
                     i64 tiles); /* sets t->at.fetch, for so many with a panel */
i64 prefetch_steps(const Tile *t,
                   u32 axis); /* points of the fold between two hints; 1: not of it */
void prefetch_lines(const Tile *t, Cursor *at, ExprId group); /* at a group of steps */

/* lower_tile.c */
void tile_write(Lower *l, Cursor at, const Form *f, KernelRecord *r);
Nest tile_nest(const Tile *t, Cursor at);      /* where val says */
void tile_loop(Tile *t, Cursor *at, u32 axis); /* along this axis, and val goes with it */
VarId tile_let(Prog *p, Cursor *at, ExprId value,
               const char *name); /* a new variable of its type */
/* The even or the odd groups of `each` lanes, of a and b alternately: a step of a transpose. */
ExprId tile_lane_groups(Prog *p, VarId a, VarId b, u32 each, bool odd);
/* An unrolled loop; its counter is 0 and there is no loop where n is 1. */
ExprId tile_unrolled(Prog *p, Cursor *at, i64 n, const char *name);
BufId tile_registers(Prog *p, DType dt, u32 lanes, i64 rows, i64 columns, const char *name);
ExprId reg_load(Prog *p, BufId b, ExprId i, ExprId j);
void reg_store(Prog *p, Cursor *at, BufId b, ExprId i, ExprId j, ExprId value);
/* The lanes of v folded: each with its partner in the other half, then in the other quarter ...,
 * down to four, which are folded in order unless order does not matter. Vectors stay as long as
 * they are: compilers take shorter ones out of them lane by lane. */
ExprId tile_reduce_lanes(Prog *p, Cursor *at, Op with, ExprId v);
/* Is something so in a lane of one of several vectors? Registers that say so in no lane, in those
 * of `is` too, and a bool. */
BufId tile_any_begin(Prog *p, Cursor *at, u32 lanes);
void tile_any_add(Prog *p, Cursor *at, BufId some, ExprId is);
ExprId tile_any(Prog *p, Cursor *at, BufId some);
ExprId tile_operand(const Tile *t, u32 k);                            /* a vector, where val says */
ExprId tile_accumulate(const Tile *t, ExprId acc, const ExprId *arg); /* with(acc, body) */
/* Finishes a tile and stores it; valid: lanes that are there. */
void tile_store(Tile *t, Cursor at, BufId acc, TileSize s, ExprId row, ExprId panel, i64 valid);
void store_wide(Nest *x, const Widen *w, ExprId value); /* the same of an expression, widened */
ExprId tile_first(const Tile *t);                       /* value of the lane axis at lane 0 */
ExprId tile_lane(const Tile *t);                        /* the same at any lane */
/* Axes whose loops stand outside of the panels: those that an operand of panels runs along, and
 * those that both factors of a contraction run along. */
bool tile_is_batch(const Tile *t, u32 axis);
Widen tile_widen(const Tile *t, ExprId held);

#endif
