/* pass.h: passes and the pipeline that runs them. */
#ifndef INGOT_PASS_H
#define INGOT_PASS_H

#include "ir/graph.h"
#include "ir/prog.h"
#include "ir/target.h"

typedef struct Pass Pass;
typedef struct PassCtx PassCtx;
typedef struct TuneTable TuneTable; /* see tune_table.h */
typedef struct ConvPlan ConvPlan;   /* see family.h */

/* What families of kernels are chosen for. */
typedef enum Aim {
  AIM_time,
  AIM_ram, /* nothing that takes more memory while it runs: no Winograd */
  AIM_size /* nothing that takes more code or weights: no Winograd, small tiles */
} Aim;

/* Unit.ram: as few as can be; nearly so, where that takes fewer kernels. */
enum { TILING_MIN_RAM = 1, TILING_LOW_RAM = 2 };

/* Graph.left: nodes that nobody reads, for dce; several equal ones too, for cse before it; and
 * before that those whose results are known, for fold. */
enum { LEFT_dead = 1, LEFT_equal = 2, LEFT_known = 4 };

/* What the pipeline works on: a graph until `lower`, a program from then on. */
struct PassCtx {
  Ctx *c;
  Graph *g;
  Prog *p;
  const Target *target; /* machine the code is for; the pipeline sets it */
  bool pairs;          /* OP_maddubs takes less time than OP_dot_i8x4 there; the pipeline sets it */
  bool prefer_i16;     /* bytes are rather multiplied as i16, two at a time; likewise */
  Aim aim;             /* the pipeline sets it */
  u64 ram;             /* bytes of arena that bands of rows aim at; 0: no bands */
  bool precise;        /* functions of f32 as in mathlibf.h, also where others are faster;
                          no Winograd F(4x4) */
  u32 threads, grain;  /* that one run is shared by, see Prog; the pipeline sets them */
  bool for_c;          /* a C compiler makes vectors of plain loops; else they run as they are */
  TuneTable *tune;     /* choices that were measured; NULL: none */
  const char *bands;   /* from band: which stretches run in bands; NULL: none */
  ConvPlan *conv_plan; /* of the convolutions, by node; NULL: not made yet */
  u8 quant;            /* how far quant has come, see there; 0: it has not begun */
};

/* May results change in the last bits? Said of code without vectors: kernel families for those sum
 * in another order, which is a choice of the target and not of a pass that could be left out. */
typedef enum Exactness { PX_exact, PX_bounded } Exactness;

struct Pass {
  const char *name;
  void (*graph)(Graph *g); /* one of the three is set */
  void (*prog)(Prog *p);
  void (*unit)(PassCtx *u); /* it needs to know more than those: the target */
  Exactness exact;
  const char *text; /* what it does, one line */
  bool only_named;  /* it is run if --stop or --start names it */
};

typedef struct PipeOptions {
  const char *start; /* first pass to run; NULL: from the beginning */
  const char *stop;  /* last pass to run; NULL: to the end; "none": nothing */
  const char *skip;  /* comma-separated */
  const char *dump;  /* comma-separated, or "all" */
  bool check;        /* verify after every pass */
  bool brief;        /* dumped texts are Text.brief */
  void (*dumped)(void *user, const char *pass, const char *text, size_t n);
  void (*timed)(void *user, const char *pass, double ms, u32 before, u32 after);
  void *user;
  const Target *target; /* NULL: scalar */
  bool lacks_dot4;      /* that machine has not the feature Target.dot4 */
  bool for_c;           /* see Unit */
  Aim aim;
  u64 ram;            /* see Unit */
  bool precise;       /* see Unit */
  u32 threads, grain; /* 0 or 1: one; see Prog */
  TuneTable *tune;    /* see Unit */
} PipeOptions;

/* pipeline.c */
extern const Pass pass_table[];
extern const u32 pass_count;
void pipeline_run(PassCtx *u, const PipeOptions *o);

/* one function a file */
void infer(Graph *g);            /* infer.c */
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
void layout(PassCtx *u);         /* layout.c */
void layout_check(Graph *g);     /* marks that came from a text */
void fuse(Graph *g);             /* fuse.c */
void fuse_explain(
    Graph *g, StrBuf *why); /* the same; says, a line each, which values keep a buffer and why */
void fuse_check(Graph *g);  /* marks that came from a text: refused where they claim too much */
/* group.c */
Str group_label(Graph *g, const Node *root); /* of the kernel that computes it */
/* A line for each group of a fused graph, `before` in front of it. */
void group_list(Graph *g, StrBuf *out, const char *before);
void lower(PassCtx *u);         /* lower.c */
void inplace(Prog *p);          /* inplace.c */
void loop_fuse(Prog *p);        /* loop_fuse.c */
void shrink_consts(PassCtx *u); /* shrink_consts.c */
void order(Graph *g);           /* order.c */
void parallel(Prog *p);         /* parallel.c */
void plan(Prog *p);             /* plan.c */
void schedule(PassCtx *u);      /* schedule.c */
void bounds(Prog *p);           /* bounds.c */
void unroll(Prog *p);           /* unroll.c */
void legalize(PassCtx *u);      /* legalize.c */

/* plan.c: figures of a program, planned or not */
typedef struct PlanReport {
  u64 bound;   /* most bytes needed at one point */
  u64 naive;   /* sum of all buffers of the arena */
  u64 weights; /* bytes of constants */
  u32 buffers; /* in the arena, views not counted */
  u32 kernels;
  u32 npeak; /* what is needed at that point, largest first */
  BufId *peak;
  u64 *peak_bytes;
  Str peak_kernel;     /* what runs there; 0: no kernel */
  const Loc *peak_loc; /* and where it comes from; NULL likewise */
} PlanReport;
PlanReport plan_report(Prog *p, Arena *a);

#endif
