/* report.h: what the parts of a report share: see report.c. */
#ifndef INGOT_REPORT_H
#define INGOT_REPORT_H

#include "api/api_internal.h"

typedef VEC(Val) ReportVals;
typedef VEC(NodeId) NodeIds;
typedef VEC(u32) Numbers;

/* A node of the model: what its reader calls one. Several nodes of the graph come from it. */
typedef struct ModelNode {
  Loc loc;
  ReportVals in, out; /* values of `whole` that cross its border */
  NodeIds inside;     /* nodes of `whole` that it was composed of */
  Numbers kernel;     /* that compute it, in order */
  bool is_alive;      /* something of it is left in the graph that was lowered */
} ModelNode;

typedef struct ReportKernel {
  StmtId id;
  KernelWork work;
  double ns;                /* by estimate; of one call */
  const IngotKernel *timed; /* NULL: not measured */
  Numbers node;             /* of the model, in the order they run */
} ReportKernel;

typedef struct PageReport {
  Ingot *m;
  Ctx *c;
  const IngotReport *o;
  IngotBench bench; /* where o asks for it */
  Graph *whole;     /* as imported; NULL: the model is a program */
  Prog *p;
  StrBuf out;
  VEC(ModelNode) node;
  Map node_at; /* place in the file -> 1 + number */
  VEC(ReportKernel) kernel;
  u32 *kernel_at;  /* by statement: 1 + number, of one that was merged too; 0: none */
  bool *is_merged; /* by statement: others were made part of it, and its label changed */
  IngotMemory memory;
} PageReport;

/* report_json.c: data that stand in an element of HTML: no text in them can end it. */
void page_text(StrBuf *t, const char *before, const char *at, size_t n);
void page_str(PageReport *r, const char *before, Str s);
void page_cstr(StrBuf *t, const char *before, const char *s);
void page_number(StrBuf *t, const char *before, double x); /* null where it is none */

/* report_graph.c */
/* Before the passes: of a graph whose text says nothing about places every node is one. */
void page_assign_locs(Ctx *c, Graph *g);
void page_gather(PageReport *r); /* fills node, kernel and what belongs to them */
void page_nodes(PageReport *r);
void page_kernels(PageReport *r);

/* report_memory.c */
void page_memory(PageReport *r);
void page_weights(PageReport *r);

#endif
