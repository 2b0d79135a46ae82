/* onnx_reader.h: the row of ONNX in the table of readers. */
#ifndef INGOT_ONNX_READER_H
#define INGOT_ONNX_READER_H

#include "ir/graph.h"
#include "front/onnx/onnx.h"

/* onnx_inputs.c: decodes, and lists what is declared. */
Model *onnx_open(Ctx *c, const Source *s);
/* onnx_import.c; fails with ERR_input or ERR_unsupported; every unsupported node is recorded first.
 */
Graph *onnx_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);

/* onnx_rewrite.c: see Reader.rewrite */
void onnx_rewrite(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path);

/* onnx_op_table.c: row i of onnx_ops.def; false: there are no more. */
bool onnx_op_at(u32 i, ReaderOp *out);

/* onnx_info.c */
void onnx_info(Ctx *c, const Model *m, ModelInfo *out);
void onnx_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out);

#endif
