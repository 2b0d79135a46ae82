/* import.h: the row of ONNX in the table of readers. */
#ifndef INGOT_IMPORT_H
#define INGOT_IMPORT_H

#include "ir/graph.h"
#include "front/onnx/onnx.h"

/* inputs.c: decodes, and lists what is declared. */
Model *onnx_open(Ctx *c, const Source *s);
/* import.c; fails with ERR_input or ERR_unsupported; every unsupported node is recorded first. */
Graph *onnx_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);

/* rewrite.c: see Reader.rewrite */
void onnx_rewrite(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path);

/* ops.c: row i of onnx_ops.def; false: there are no more. */
bool onnx_op_at(u32 i, ReaderOp *out);

/* facts.c */
void onnx_facts(Ctx *c, const Model *m, ModelFacts *out);
void onnx_attributes(Ctx *c, const Model *m, const Loc *at, Text *out);

#endif
