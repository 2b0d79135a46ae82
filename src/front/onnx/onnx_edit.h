/* onnx_edit.h: changes to a decoded model, and the way back to bytes.
 *
 * A model is changed in place: nodes are added, named otherwise or taken out, initializers get
 * other elements. Writing walks the bytes the model was read from and puts what has changed in its
 * place: everything else, also what ingot never looks at, is copied as it was, so that a model that
 * nobody changed is written as the bytes it was read from.
 */
#ifndef INGOT_ONNX_EDIT_H
#define INGOT_ONNX_EDIT_H

#include "front/onnx/onnx.h"

typedef struct OnnxOut OnnxOut;

/* Where a model goes. Weights go into `side` if the file would take more than side_from bytes of
 * them with them inside: tensors of EXTERNAL_MIN_BYTES bytes and more, aligned, under the name
 * side_name.
 */
struct OnnxOut {
  StrBuf model, side;    /* side: empty, if it is not needed */
  const char *side_name; /* as the model tells it; NULL: never */
  u64 side_from;
  const char *from; /* where the model was read, for its own external data; NULL: it has none */
};

enum { EXTERNAL_MIN_BYTES = 1024, EXTERNAL_ALIGN = 64 };
#define EXTERNAL_THRESHOLD ((u64)1 << 30) /* a message ends at 2^31 */

/* onnx_write.c */
void onnx_write(Ctx *c, const OnnxModel *m, OnnxOut *out);
/* The same to a file, and large weights to PATH.data beside it; how many bytes that are. from: see
 * OnnxOut. */
u64 onnx_save(Ctx *c, const OnnxModel *m, const char *from, const char *path);

/* onnx_edit.c: all of these work on the main graph */
OnnxNode *onnx_add_node(Ctx *c, OnnxGraph *g, const char *op, const char *domain, Str name);
void onnx_node_in(Ctx *c, OnnxNode *n, Str name);
void onnx_node_out(Ctx *c, OnnxNode *n, Str name);
void onnx_set_int(Ctx *c, OnnxNode *n, const char *name, i64 x);
i64 onnx_get_int(const Ctx *c, const OnnxNode *n, const char *name, i64 otherwise);
float onnx_get_float(const Ctx *c, const OnnxNode *n, const char *name, float otherwise);
void onnx_drop_attr(Ctx *c, OnnxNode *n, const char *name);
/* An operator of ONNX's own set, by its name. */
bool onnx_is_op(const Ctx *c, const OnnxNode *n, const char *op);
/* The initializer of that name; NULL: there is none. */
OnnxTensor *onnx_find_init(const OnnxGraph *g, Str name);
/* A new one, or other elements for one that is there. t must outlive the model. */
void onnx_put_init(Ctx *c, OnnxGraph *g, Str name, const Tensor *t);
/* Takes it out, also from the inputs where old files list it. */
void onnx_drop_init(OnnxGraph *g, Str name);
/* Str -> how often a value is read, outputs included. What a sub-graph reads counts twice: its
 * reader is not among the nodes. */
Map onnx_use_counts(Ctx *c, const OnnxGraph *g);
/* Takes out initializers and Constants that were read before and are no more. */
void onnx_drop_unused(Ctx *c, OnnxGraph *g, const Map *before);
/* A name that no value of the graph has, made of stem. */
Str onnx_fresh_name(Ctx *c, Map *taken, const char *stem, const char *end);
Map onnx_names(Ctx *c, const OnnxGraph *g); /* all values, for onnx_fresh_name */
/* Version of a set of operators, "" for that of ONNX; 0: it is not imported. */
i64 onnx_opset(const Ctx *c, const OnnxModel *m, const char *domain);
void onnx_require_opset(Ctx *c, OnnxModel *m, const char *domain, i64 version);
/* Puts nodes in an order in which every value is made before it is read. */
void onnx_toposort(Ctx *c, OnnxGraph *g);
/* A copy that can be changed without the other knowing; tensors and strings are shared. */
OnnxModel *onnx_copy(Ctx *c, const OnnxModel *m);

/* onnx_upgrade.c: to a later version of ONNX's operators, 21 at most; false: that would change what
 * it computes, and nothing has been done. */
bool onnx_upgrade_opset(Ctx *c, OnnxModel *m, i64 to);

#endif
