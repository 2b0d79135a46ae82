/* onnx_edit.h: edits a decoded model and writes it back to bytes.
 *
 * A model is edited in place: nodes are added, renamed or removed, initializers get new elements.
 * The writer copies the bytes that the model was read from and replaces only what changed. Parts
 * that ingot ignores are kept. An unchanged model is written as the same bytes.
 */
#ifndef INGOT_ONNX_EDIT_H
#define INGOT_ONNX_EDIT_H

#include "front/onnx/onnx.h"

typedef struct OnnxOut OnnxOut;

/* Destination of a model. If its weights exceed side_from bytes, tensors of EXTERNAL_MIN_BYTES and
 * more go to `side`, aligned, and the model refers to them by side_name. */
struct OnnxOut {
  StrBuf model, side;    /* side: empty if not needed */
  const char *side_name; /* file name written to the model; NULL: never use external data */
  u64 side_from;
  const char *from; /* path the model was read from, for its external data; NULL: none */
};

enum { EXTERNAL_MIN_BYTES = 1024, EXTERNAL_ALIGN = 64 };
#define EXTERNAL_THRESHOLD ((u64)1 << 30) /* protobuf messages are limited to 2 GiB */

/* onnx_write.c */
void onnx_write(Ctx *c, const OnnxModel *m, OnnxOut *out);
/* Writes a file, and large weights to PATH.data. Returns the bytes written. from: see OnnxOut. */
u64 onnx_save(Ctx *c, const OnnxModel *m, const char *from, const char *path);

/* onnx_edit.c: functions on the main graph */
OnnxNode *onnx_add_node(Ctx *c, OnnxGraph *g, const char *op, const char *domain, Str name);
void onnx_node_in(Ctx *c, OnnxNode *n, Str name);
void onnx_node_out(Ctx *c, OnnxNode *n, Str name);
void onnx_set_int(Ctx *c, OnnxNode *n, const char *name, i64 x);
i64 onnx_get_int(const Ctx *c, const OnnxNode *n, const char *name, i64 otherwise);
float onnx_get_float(const Ctx *c, const OnnxNode *n, const char *name, float otherwise);
void onnx_drop_attr(Ctx *c, OnnxNode *n, const char *name);
/* Is the node this operator of the ONNX domain? */
bool onnx_is_op(const Ctx *c, const OnnxNode *n, const char *op);
bool onnx_is_input(const OnnxGraph *g, Str name);
/* The initializer of that name, or NULL. */
OnnxTensor *onnx_find_init(const OnnxGraph *g, Str name);
/* Adds an initializer or replaces its elements. t must outlive the model. */
void onnx_put_init(Ctx *c, OnnxGraph *g, Str name, const Tensor *t);
/* Removes an initializer, also from the inputs where old files list it. */
void onnx_drop_init(OnnxGraph *g, Str name);
/* Str -> number of uses of a value, outputs included. Uses in sub-graphs count twice, because their
 * reader is not among the nodes. */
Map onnx_use_counts(Ctx *c, const OnnxGraph *g);
/* Removes initializers and Constants that lost their last use since `before`. */
void onnx_drop_unused(Ctx *c, OnnxGraph *g, const Map *before);
/* A name, made of stem, that no value of the graph has. */
Str onnx_fresh_name(Ctx *c, Map *taken, const char *stem, const char *end);
Map onnx_names(Ctx *c, const OnnxGraph *g); /* all values, for onnx_fresh_name */
/* Version of an opset, "" for the ONNX domain; 0: not imported. */
i64 onnx_opset(const Ctx *c, const OnnxModel *m, const char *domain);
void onnx_require_opset(Ctx *c, OnnxModel *m, const char *domain, i64 version);
/* Sorts nodes topologically. */
void onnx_toposort(Ctx *c, OnnxGraph *g);
/* An independent copy; tensors and strings are shared. */
OnnxModel *onnx_copy(Ctx *c, const OnnxModel *m);

/* onnx_upgrade.c: upgrades to a later ONNX opset, 21 at most. Returns false and changes nothing if
 * that would change results. */
bool onnx_upgrade_opset(Ctx *c, OnnxModel *m, i64 to);

#endif
