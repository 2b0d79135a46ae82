/* onnx_reader.h: callbacks of ONNX in the reader table. */
#ifndef INGOT_ONNX_READER_H
#define INGOT_ONNX_READER_H

#include "ir/graph/graph.h"
#include "front/onnx/onnx.h"

/* onnx_inputs.c: decodes and lists the declared inputs and outputs. */
Model *onnx_open(Ctx *c, const Source *s);
/* onnx_import.c: fails with ERR_input or ERR_unsupported after recording every unsupported node. */
Graph *onnx_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);

/* onnx_rewrite.c: see Reader.rewrite */
void onnx_rewrite(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path);

/* onnx_op_table.c: row i of onnx_ops.def; false at the end. */
bool onnx_op_at(u32 i, ReaderOp *out);

/* onnx_info.c */
void onnx_info(Ctx *c, const Model *m, ModelInfo *out);
void onnx_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out);

#endif
