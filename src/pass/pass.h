/* pass.h: passes and the pipeline that runs them. */
#ifndef INGOT_PASS_H
#define INGOT_PASS_H

#include "ir/graph/graph.h"
#include "ir/prog/prog.h"
#include "ir/target.h"

typedef struct Pass Pass;
typedef struct PassCtx PassCtx;
typedef struct TuneTable TuneTable; /* see tune_table.h */
typedef struct ConvPlan ConvPlan;   /* see family.h */

/* Objective for choosing kernel families. */
typedef enum Aim {
  AIM_time,
  AIM_ram, /* nothing that needs more memory at run time: no Winograd */
  AIM_size /* nothing that needs more code or weights: no Winograd, small tiles */
} Aim;

/* Precision of products on a GPU: of f32 operands. Sums are f32. */
typedef enum Precision { PREC_f32, PREC_tf32, PREC_f16, PREC_bf16, PREC_COUNT } Precision;
extern const char *const precision_name[PREC_COUNT]; /* pipeline.c */

/* PassCtx.ram: minimize memory; or accept a little more memory for fewer kernels. */
enum { TILING_MIN_RAM = 1, TILING_LOW_RAM = 2 };

/* Graph.left: work for later passes. Unused nodes are for dce, equal nodes for cse, nodes with
 * known results for fold. */
enum { LEFT_dead = 1, LEFT_equal = 2, LEFT_known = 4 };

/* State of the pipeline: a graph until `lower`, a program from then on. */
struct PassCtx {
  Ctx *c;
  Graph *g;
  Prog *p;
  const Target *target; /* machine the code is for; set by the pipeline */
  bool maddubs;    /* OP_maddubs is faster than OP_dot_i8x4 on the target; set by the pipeline */
  bool prefer_i16; /* int16 pairs are faster than int8 on the target; set by the pipeline */
  Aim aim;         /* set by the pipeline */
  u64 ram;         /* bytes of arena that row tiling aims at; 0: no row tiling */
  bool precise;    /* use the f32 functions of mathlibf.h even where others are faster; no Winograd
                      F(4x4) */
  Precision precision; /* of GPU kernels */
  u32 threads, grain;  /* threads of one run, see Prog; set by the pipeline */
  bool for_c;      /* a C compiler will vectorize plain loops; otherwise they run as scalar code */
  TuneTable *tune; /* measured choices; NULL: none */
  const char *tiled;   /* set by row_tiling: the chains it tiled; NULL: none */
  const char *grown;   /* set by winograd_plan: warning about the weights; NULL: none */
  ConvPlan *conv_plan; /* plans of convolutions by node; NULL: not made yet */
  u8 quant;            /* progress of pass quant, see quant.c; 0: not started */
};

/* May results change in the last bits? The answer is for scalar code. Vector kernels sum in another
 * order, but that is a choice of the target, not of a pass. */
typedef enum Exactness { PX_exact, PX_bounded } Exactness;

struct Pass {
  const char *name;
  void (*graph)(Graph *g); /* exactly one of the three is set */
  void (*prog)(Prog *p);
  void (*unit)(PassCtx *u); /* the pass, if it needs the target */
  Exactness exact;
  const char *text; /* one line: what the pass does */
  bool only_named;  /* runs only if --stop or --start names it */
};

typedef struct PipeOptions {
  const char *start; /* first pass to run; NULL: from the beginning */
  const char *stop;  /* last pass to run; NULL: to the end; "none": nothing */
  const char *skip;  /* comma-separated */
  const char *dump;  /* comma-separated, or "all" */
  bool check;        /* verify after every pass */
  bool brief;        /* dumps use Text.brief */
  void (*on_dump)(void *user, const char *pass, const char *text, size_t n);
  void (*on_time)(void *user, const char *pass, double ms, u32 before, u32 after);
  void *user;
  const Target *target; /* NULL: scalar */
  bool lacks_dot_i8x4;  /* the target machine lacks the instructions for Target.dot_i8x4 */
  bool for_c;           /* see PassCtx */
  Aim aim;
  u64 ram;             /* see PassCtx */
  bool precise;        /* see PassCtx */
  Precision precision; /* see PassCtx */
  u32 threads, grain;  /* 0 or 1: one; see Prog */
  TuneTable *tune;     /* see PassCtx */
} PipeOptions;

/* pipeline.c */
extern const Pass pass_table[];
extern const u32 pass_count;
void pipeline_run(PassCtx *u, const PipeOptions *o);

/* passes, one per file */
void infer(Graph *g);            /* infer_pass.c */
void strings(Graph *g);          /* strings.c */
void quant(PassCtx *u);          /* quant.c */
void dequantize(PassCtx *u);     /* dequantize.c */
void fold(Graph *g);             /* fold.c */
void simplify(Graph *g);         /* simplify.c */
void cse(Graph *g);              /* cse.c */
void dce(Graph *g);              /* dce.c */
void canon(PassCtx *u);          /* canon.c */
void widen_f16(PassCtx *u);      /* widen_f16.c */
void regroup(PassCtx *u);        /* regroup.c */
void split_pools(PassCtx *u);    /* split_pools.c */
void widen_i8(PassCtx *u);       /* widen_i8.c */
void mark_small_casts(Graph *g); /* mark_small_casts.c */
void row_tiling(PassCtx *u);     /* row_tiling.c */
void layout(PassCtx *u);         /* layout_pass.c */
void layout_check(Graph *g);     /* verifies marks that came from a text */
void fuse(Graph *g);             /* fuse.c */
void fuse_explain(
    Graph *g,
    StrBuf *why); /* also prints a line for each value that keeps a buffer, with the reason */
void fuse_check(Graph *g); /* verifies marks that came from a text */
/* group.c */
Str group_label(Graph *g, const Node *root); /* label of the kernel that computes this group */
/* Prints a line for each group of a fused graph, preceded by `before`. */
void group_list(Graph *g, StrBuf *out, const char *before);
void lower(PassCtx *u);         /* lower.c */
void inplace(Prog *p);          /* inplace.c */
void loop_fuse(Prog *p);        /* loop_fuse.c */
void shrink_consts(PassCtx *u); /* shrink_consts.c */
void order(Graph *g);           /* order.c */
void parallel(Prog *p);         /* parallel.c */
void block_sync(PassCtx *u);    /* gpu/sync.c */
void cast16(PassCtx *u);        /* gpu/cast16.c */
void row_registers(Prog *p);    /* gpu/row_registers.c */
void plan(Prog *p);             /* plan.c */
void schedule(PassCtx *u);      /* schedule.c */
void bounds(Prog *p);           /* bounds.c */
void unroll(Prog *p);           /* unroll.c */
void legalize(PassCtx *u);      /* legalize.c */

/* plan.c: memory statistics of a program, planned or not */
typedef struct PlanReport {
  u64 bound;   /* peak memory in bytes: maximum over all points */
  u64 naive;   /* sum of all buffers of the arena */
  u64 weights; /* bytes of constants */
  u32 buffers; /* in the arena, views not counted */
  u32 kernels;
  u32 npeak; /* buffers needed at the peak, largest first */
  BufId *peak;
  u64 *peak_bytes;
  Str peak_kernel;     /* kernel at the peak; 0: not in a kernel */
  const Loc *peak_loc; /* location of that kernel; NULL: not in a kernel */
} PlanReport;
PlanReport plan_report(Prog *p, Arena *a);

#endif
