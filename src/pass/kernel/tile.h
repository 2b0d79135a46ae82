/* tile.h: register tiles, shared by the files that choose, pack and write vector kernels.
 *
 * The picture shows a tile of 3 rows and 2 panels with 8 lanes; each [........] is one vector:
 *
 *                         panel 0       panel 1
 *     step k loads:      [wwwwwwww]    [wwwwwwww]     packed operand, contiguous in memory
 *     row 0:  x0  ->     [aaaaaaaa]    [aaaaaaaa]     a += splat(x) * w
 *     row 1:  x1  ->     [aaaaaaaa]    [aaaaaaaa]     accumulators stay in registers
 *     row 2:  x2  ->     [aaaaaaaa]    [aaaaaaaa]     through all steps of the reduction
 *     after the last k:  y = epilogue(a)              bias, residual, activation; then one store
 *
 * One axis of the result becomes the lanes, another one the rows; in horizontal kernels the lanes
 * run along the reduction instead. With lanes along the result, the loops are, from the outside in:
 * batch axes, cache tiles, tiles along the panels, other axes, tiles along the rows, reduction
 * axes. If panels_innermost is set, the loops over other axes enclose those over panels. The rows
 * and panels of one tile are unrolled. A map (elementwise loop) uses struct Tile too, without a
 * reduction and with one row and one panel.
 */
#ifndef INGOT_TILE_H
#define INGOT_TILE_H

#include "pass/form/nest.h"
#include "pass/form/segment.h"
#include "pass/kernel/family.h"
#include "pass/kernel/tune_table.h"
#include "pass/kernel/widen.h"

/* How an operand is read along the lane axis. */
typedef enum LaneUse {
  LU_splat,  /* stride 0: one element, broadcast */
  LU_vector, /* stride 1: vector load */
  LU_packed  /* read from panels: a constant packed at compile time (reductions only), or an operand
                that the kernel packs */
} LaneUse;

/* The most expensive operation of the epilogue. */
typedef enum EpilogueCost {
  EC_plain,    /* arithmetic with constants, or no epilogue */
  EC_loads,    /* loads of values that are not constant */
  EC_functions /* a division, or a function such as exp */
} EpilogueCost;

/* An operand that memory holds as int8 or int16; see tile_int.c. */
typedef struct TileBytes {
  u32 operand;     /* index in f.in; FORM_IN: none */
  i64 zero;        /* zero point, plus 128 if bias_128 */
  bool bias_128;   /* the operand is int8; 128 is added, because dot_i8x4 needs it unsigned */
  bool sum_in_f32; /* accumulators are f32, which is exact for these sums */
  BufId sums; /* buffer of initial accumulators, -zero * sum of the weights: [batch axes, panels,
                 lanes]; 0: accumulators start with f.init */
} TileBytes;

/* Stores and the epilogue (`finish`). */
typedef struct TileStore {
  bool pads; /* the last vector may be stored whole: lanes past the end of the axis are padding of
                a channel block */
  bool partial; /* the last vector may be stored in part: all operands are broadcast or in padded
                   panels, so no load leaves a buffer */
  bool finish_is_wide;      /* the epilogue can be computed on vectors */
  bool is_wide;             /* both the epilogue and the store can be vectors */
  bool finish_stays_inside; /* the epilogue of a partial last vector loads only existing elements */
  EpilogueCost finish;
} TileStore;

/* Ranges of an axis. All panels are processed for one range before the next one starts
 * (tile_cache.c). */
typedef struct CacheTile {
  u32 axis;     /* the row axis or an axis outside of it; FORM_AXES: cache_tile found none */
  i64 each;     /* points of one range; 0 in TileAt: no cache tiles, axis is not set */
  ExprId first; /* first point of the range being written */
} CacheTile;

/* Prefetch of the next panels (tile_prefetch.c). */
typedef struct TilePrefetch {
  i64 lines; /* cache lines that each tile prefetches; 0: none */
  u32 axis;  /* reduction axis whose loop is cut into parts that prefetch; FORM_AXES: every channel
                block prefetches */
  i64 steps; /* number of parts or channel blocks; the `lines` are divided among them */
  BufId of;  /* the packed weights */
  i64 panel, line;   /* elements of a panel and of a cache line */
  i64 prefetch_step; /* distance in elements from the panels of this tile to those it prefetches */
  ExprId tile;       /* index of this tile among those that read the same panels */
  ExprId first;      /* index of its first panel within the batch */
  ExprId batch;      /* number of panels of all earlier batches */
} TilePrefetch;

/* Position of a tile while its code is written. */
typedef struct TileAt {
  i64 from; /* point of the lane axis that is lane 0 of panel 0 */
  CacheTile block;
  ExprId outer; /* linear index over the loops between the panel loop and the row loop; 0: none */
  i64 outer_count; /* iterations of these loops; 0: no such loop */
  TilePrefetch fetch;
  ExprId panel;                  /* index of the panel along the lane axis */
  ExprId panel_in_tile;          /* index of the panel within the tile */
  VarId var[FORM_AXES];          /* loop variables */
  ExprId val[FORM_AXES];         /* value of each axis; 0: a single point */
  VarId split_block, split_lane; /* loop variables of the split axis: channel block, place in it */
  ExprId quad;                   /* index of the current group along axis.quad */
  InnerVars inner;               /* lane_var, and the variables that run inside of channel blocks */
} TileAt;

/* Axes of the form with a special use; FORM_AXES: none. */
typedef struct TileAxes {
  u32 lane;  /* its points are the lanes */
  u32 row;   /* its points are the rows */
  u32 split; /* reduction axis that an operand stores in channel blocks */
  i64 block; /* channels read from each block: all, or, in a grouped convolution, those of one group
              */
  u32 quad;  /* reduction axis that dot_i8x4 and dot_i16x2 read in groups */
  i64 each;  /* points of such a group: 4 for dot_i8x4, 2 for dot_i16x2, else 1 */
} TileAxes;

/* Accumulators: rows x panels vectors in registers. */
typedef struct TileAccumulators {
  i64 panels;            /* panels of a tile */
  i64 max_rows;          /* limit of the rows of a tile, apart from the budget */
  i64 budget;            /* vector registers that accumulators may use */
  i64 rows;              /* rows of a tile, from --tune; 0: as many as budget and max_rows allow */
  bool panels_innermost; /* the panel loop is inside of the loops over other axes */
} TileAccumulators;

typedef struct Tile {
  Lower *l;
  Prog *p;
  Form f;
  u32 lanes; /* lanes of the vectors being written now */
  TileAxes axis;
  TileBytes bytes;
  LaneUse use[FORM_IN];
  BufId pack[FORM_IN];         /* panels of an operand; 0: not packed */
  bool packed_at_run[FORM_IN]; /* packed by the kernel */
  BufId wide[FORM_IN];         /* f32 copy of f16 panels; 0: none */
  bool widens;                 /* this tile fills `wide` for later tiles */
  TileStore store;
  BufId table;     /* lookup table of a map (tile_lut.c); 0: none */
  RecordId record; /* record of the kernel being written */
  u64 unroll; /* bit i: unroll axis i, a reduction axis, so that overlapping windows share loads */
  TileAccumulators sums;
  VarId lane_var, acc_var; /* stand for lane and accumulator in scalar expressions (widen.c) */
  const char *why_not;     /* reason for --explain, if tile_choose returns false */
  TileAt at;
} Tile;

typedef struct Product Product;               /* see lower_product.c */
typedef struct Fragments Fragments;           /* see lower_fragments.c */
typedef struct BlockRows BlockRows;           /* see lower_block_rows.c */
typedef struct WinogradWriter WinogradWriter; /* see lower_winograd.c */
typedef struct TransposePlan TransposePlan;   /* see lower_transpose.c */

/* The decisions about a kernel and their reasons. kernel_choose fills them in; kernel_write writes
 * the loops and the record from them. */
typedef struct KernelChoice {
  const ConvPlan *conv; /* plan of the convolution, else a plan of zeros; never NULL */
  Family family;
  Str size, reason; /* texts for --explain */
  Tile t;           /* the tile; family interior: the tile for the outputs in range `in` */
  Tile out;         /* dot_rows: lanes along the result; t has lanes along the reduction */
  u32 axis;         /* row_acc: axis along which accumulators lie; interior: axis of the window */
  Segment in;       /* interior: range of outputs whose whole window is inside the image */
  u32 nslide;       /* segments: number of windowed dimensions */
  u32 dim;          /* segments: first of these dimensions */
  WindowDim slide[MAX_RANK]; /* segments: windows of these dimensions */
  WinogradWriter *wino;
  TransposePlan *turn;
  Product *product;
  Fragments *fragments;
  BlockRows *rows;
  const char *why_not; /* plain, row_acc: why none of the vector families fits */
} KernelChoice;

/* kernel_choose.c */
void kernel_choose(Lower *l, const Form *f, KernelChoice *r);
/* Writes the loops and the record. */
void kernel_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
/* Chooses and writes vector loops for a part of a form. Returns false if no vector family fits. */
bool lower_tiles(Lower *l, Cursor at, const Form *f);

/* Number of reduction steps. The extents of all reduction axes must be constants. */
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

/* Size of one tile, in accumulators. */
typedef struct TileSize {
  i64 rows, panels;
} TileSize;

/* `big` tiles of `size` rows, then `small` tiles of one row less. */
typedef struct RowSplit {
  i64 size, big, small;
} RowSplit;

/* tile_choose.c. Each function chooses axes, lanes and size, or returns false if its way of
 * vectorizing does not fit. tile_choose: lanes along the result. */
bool tile_choose(Lower *l, const Form *f, Tile *t);
/* A map: lanes along a contiguous axis whose extent is unknown at compile time. */
bool tile_choose_open(Lower *l, const Form *f, Tile *t);
/* Lanes along the reduction. */
bool tile_choose_horizontal(Lower *l, const Form *f, Tile *t);
/* Reductions with contiguous results: lanes of t along the reduction, of `out` along the result. */
bool tile_choose_dot_rows(Lower *l, const Form *f, Tile *t, Tile *out);

/* Sets lane_var, acc_var and store of a tile with known lanes. */
void tile_choose_store(Tile *t);
Tile tile_of(Lower *l, const Form *f);      /* a tile for which nothing is chosen yet */
bool tile_is_const(const Tile *t, BufId b); /* is b a row-major constant in memory? */
/* The axis along which the result is contiguous, if it starts at 0 and has a constant extent and no
 * guard; else FORM_AXES. */
u32 tile_lane_axis(const Tile *t);
bool tile_map_is_wide(Tile *t); /* can the value of a map be a vector along t->axis.lane? */
/* May a map store an element twice? Not if it reads the buffer of its result, or updates state. */
bool tile_map_repeats(Tile *t);
/* Can the points of t->axis.lane from `from` on be one vector? They cannot if they cross the end of
 * a channel block. tile_map_fits checks operands and result, tile_horizontal_fits only operands. */
bool tile_map_fits(const Tile *t, i64 from, u32 lanes);
bool tile_horizontal_fits(const Tile *t, i64 from);
RowSplit tile_cover(i64 n, i64 most);        /* n rows in the fewest tiles of at most `most` rows */
i64 tile_rows(const Tile *t, i64 panels);    /* maximum rows of a tile with this many panels */
bool tile_row_fits(const Tile *t, u32 axis); /* can this axis be the row axis? */
/* Estimated time of one reduction step for all rows and `columns` panels; unit: one vector FMA. */
double tile_time(const Tile *t, i64 columns);
double tile_fma_share(const Tile *t); /* fraction of tile_time spent in multiply-adds */

/* trial_end drops the statements and expressions created since trial_begin. */
ProgMark trial_begin(Tile *t);
void trial_end(Tile *t, ProgMark mark);

/* tile_lut.c: table of a map that is a function of one byte; 0: none, or vectors are faster. */
BufId tile_lut(Tile *t);
void tile_lut_store(Tile *t, Cursor at); /* looks up and stores the lanes of one vector */

/* tile_tune.c: takes the tile size from the autotuning table, if there is one. widest: maximum
 * panels of an outer product; 0: another family. */
void tile_tune(Tile *t, i64 widest);

/* tile_int.c: sums of products of an int8 or int16 operand and constant weights. bytes_begin makes
 * the form read that operand without its conversion to i32. It returns false for other forms. */
bool bytes_begin(Tile *t);
/* Chooses how products are summed: dot_i8x4, dot_i16x2 or f32; false: i32 arithmetic. */
bool bytes_choose(Tile *t);
ExprId bytes_load(const Tile *t, ExprId load); /* the int8 or int16 operand of one step */
ExprId bytes_sum(const Tile *t, ExprId acc);   /* the integer in an f32 accumulator */

/* lower_winograd.c: transformed weights of the Winograd kernel that reads constant b. */
const Tensor *winograd_weights(const Lower *l, BufId b, Arena *a);

/* tile_pack.c */
void pack_sums(Tile *t, u32 k);           /* computes bytes.sums; operand k is the weights */
ExprId sums_load(const Tile *t);          /* loads initial accumulators from bytes.sums */
void pack_const(Tile *t, u32 k);          /* packs a constant operand at compile time */
void pack_run(Tile *t, Cursor at, u32 k); /* writes code that packs a non-constant operand */
bool pack_can_run(const Tile *t, u32 k);  /* can the kernel pack operand k at run time? */
/* Adds a buffer `wide` for each operand whose panels are f16 and would fit in L2 as f32. Returns
 * false if it added none. */
bool pack_widen(Tile *t, i64 panels);
/* Stores one vector into `wide`, at the position in t->at. */
void pack_keep(const Tile *t, Cursor *at, u32 k, ExprId value);
/* Loads one vector of a panel, from `wide` if an earlier tile filled it. */
ExprId pack_load(const Tile *t, u32 k);

/* Families with their own file. */
bool product_choose(Lower *l, const Form *f, KernelChoice *r); /* lower_product.c */
void product_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
bool fragments_choose(Lower *l, const Form *f, KernelChoice *r); /* lower_fragments.c */
void fragments_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
bool block_rows_choose(Lower *l, const Form *f, KernelChoice *r); /* lower_block_rows.c */
void block_rows_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
enum { DOT_ROWS_LANES = 32 }; /* maximum lanes of a dot_rows vector */
void dot_rows_write(Lower *l, Cursor at, const Form *f, KernelChoice *r); /* lower_dot_rows.c */
bool i16_choose(Lower *l, const Form *f, KernelChoice *r);                /* lower_i16.c */
void i16_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
/* A dot product that C compilers vectorize to pmaddwd. i16_dot_loop opens a loop of n iterations; n
 * is a multiple of 16. i16_dot_add adds word * byte, an int16 times an int8, to acc, a u32. */
VarId i16_dot_loop(Prog *p, Cursor *at, i64 n);
void i16_dot_add(Prog *p, Cursor *at, VarId acc, ExprId word, ExprId byte);
bool winograd_choose(Lower *l, const Form *f, KernelChoice *r); /* lower_winograd.c */
void winograd_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
bool transpose_choose(Lower *l, const Form *f, KernelChoice *r); /* lower_transpose.c */
void transpose_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);

CacheTile cache_tile(const Tile *t); /* tile_cache.c */

/* tile_prefetch.c: sets t->at.fetch; `tiles` tiles read the same `panels` panels. */
void prefetch_choose(Tile *t, i64 panels, i64 tiles);
/* Reduction steps in each part of the loop over this axis; 1: the loop is not cut. */
i64 prefetch_steps(const Tile *t, u32 axis);
/* Writes the prefetches of one part of the cut loop, or of one channel block; group: its index. */
void prefetch_lines(const Tile *t, Cursor *at, ExprId group);

/* lower_tile.c */
void tile_write(Lower *l, Cursor at, const Form *f, KernelChoice *r);
Nest tile_nest(const Tile *t, Cursor at);      /* nest that writes expressions at t->at.val */
void tile_loop(Tile *t, Cursor *at, u32 axis); /* opens a loop over an axis, sets t->at.val */
/* Declares a variable and assigns a value to it. */
VarId tile_let(Prog *p, Cursor *at, ExprId value, const char *name);
/* One step of a transpose: interleaves the even or the odd groups of `each` lanes of a and b. */
ExprId tile_lane_groups(Prog *p, VarId a, VarId b, u32 each, bool odd);
/* Opens an unrolled loop and returns its counter; for n = 1 opens no loop and returns the constant
 * 0. */
ExprId tile_unrolled(Prog *p, Cursor *at, i64 n, const char *name, LoopRole role);
/* A register buffer of rows x columns vectors. */
BufId tile_registers(Prog *p, DType dt, u32 lanes, i64 rows, i64 columns, const char *name);
ExprId reg_load(Prog *p, BufId b, ExprId i, ExprId j);
void reg_store(Prog *p, Cursor *at, BufId b, ExprId i, ExprId j, ExprId value);
/* Reduces the lanes of v: combines halves until four lanes are left, then these four in order. If
 * `with` is idempotent (min, max), it combines halves until one lane is left. */
ExprId tile_reduce_lanes(Prog *p, Cursor *at, Op with, ExprId v);
/* Does a condition hold in any lane of several vectors? tile_any_add adds one vector, and tile_any
 * returns the answer as a bool expression. */
BufId tile_any_begin(Prog *p, Cursor *at, u32 lanes);
void tile_any_add(Prog *p, Cursor *at, BufId some, ExprId is);
ExprId tile_any(Prog *p, Cursor *at, BufId some);
ExprId tile_operand(const Tile *t, u32 k); /* vector of operand k at t->at.val */
/* Combines acc with one reduction step: FMA, dot product, or f.with. */
ExprId tile_accumulate(const Tile *t, ExprId acc, const ExprId *arg);
/* Computes the epilogue of a tile and stores the result; valid: lanes to store. */
void tile_store(Tile *t, Cursor at, BufId acc, TileSize s, ExprId row, ExprId panel, i64 valid);
/* Widens a scalar expression to a vector and stores it. */
void store_wide(Nest *x, const Vectorizer *w, ExprId value);
ExprId tile_first(const Tile *t); /* value of the lane axis at lane 0 */
ExprId tile_lane(const Tile *t);  /* value of the lane axis as an expression of lane_var */
/* Is this axis a batch axis, whose loop must be outside of the panel loop? A batch axis is not a
 * reduction, lane or row axis. Either a packed operand depends on it, or both a broadcast and a
 * vector operand do. */
bool tile_is_batch(const Tile *t, u32 axis);
/* Returns what widen.c needs to turn expressions of lane_var into vectors. held: vector that
 * replaces acc_var; 0: none. */
Vectorizer tile_widen(const Tile *t, ExprId held);

/* lower_mmq.c: matmul with quantized weights, for all targets. */
void lower_mmq(Lower *l, Cursor at, const Form *f);

/* lower_tree_walk.c: a loop in which every element follows its own path; false: nothing was
 * written. */
bool lower_tree_walk(Lower *l, const Node *n);

#endif
