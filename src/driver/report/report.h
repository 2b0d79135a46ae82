/* report.h: shared by the files of the HTML report: see report.c.
 */
#ifndef INGOT_DRIVER_REPORT_H
#define INGOT_DRIVER_REPORT_H

#include "driver/bench/bench.h"

typedef VEC(NodeId) NodeIds;

/* A node of the model as its reader counts them. Several nodes of the graph may come from it. */
typedef struct ModelNode {
  Loc loc;
  U32Vec in, out; /* values of `whole` that enter and leave it */
  NodeIds inside; /* nodes of `whole` that compose it */
  U32Vec kernel;  /* kernels that compute it, in order */
  bool is_alive;  /* part of it is left in the lowered graph */
} ModelNode;

typedef struct ReportKernel {
  StmtId id;
  KernelWork work;
  double ns;                /* estimate per call */
  const IngotKernel *timed; /* NULL: not measured */
  U32Vec node;              /* nodes of the model, in order of execution */
} ReportKernel;

typedef struct PageReport {
  Ingot *m;
  Ctx *c;
  const IngotReport *o;
  IngotBench bench; /* if o requests it */
  Graph *whole;     /* as imported; NULL: the model is a program */
  Prog *p;
  StrBuf out;
  VEC(ModelNode) node;
  Map node_at; /* location in the file -> 1 + index */
  VEC(ReportKernel) kernel;
  u32 *kernel_at;  /* by statement: 1 + index of its kernel, also of merged ones; 0: none */
  bool *is_merged; /* by statement: others were merged into it, and its label changed */
  IngotMemory memory;
} PageReport;

/* report_json.c: data inside an HTML element, escaped so that text cannot end it. */
void page_text(StrBuf *t, const char *before, const char *at, size_t n);
void page_str(PageReport *r, const char *before, Str s);
void page_cstr(StrBuf *t, const char *before, const char *s);
void page_number(StrBuf *t, const char *before, double x); /* null for NaN and infinity */

/* report_graph.c */
/* Call before the passes. Without locations in its text, every graph node counts as a model node.
 */
void page_assign_locs(Ctx *c, Graph *g);
void page_gather(PageReport *r); /* fills nodes, kernels and their links */
void page_nodes(PageReport *r);
void page_kernels(PageReport *r);

/* report_memory.c */
void page_memory(PageReport *r);
void page_weights(PageReport *r);

/* memory.c */
void api_memory(Ingot *m, IngotMemory *out); /* after import; runs the passes if necessary */

#endif
