/* llm.h: files of language models and text encoders as a Graph.
 *
 * LmFile is one view of a GGUF file (or its parts) or a folder of safetensors with config.json.
 * Files are mapped; strings, lists and weights stay in the mapping. Values are checked when they
 * are read. A wrong type or a number out of bounds fails and names the key. An absent key is not an
 * error.
 */
#ifndef INGOT_LLM_H
#define INGOT_LLM_H

#include "front/reader.h"
#include "io/gguf.h"
#include "io/json.h"

typedef struct LmFile LmFile;
typedef struct LmList LmList;         /* iterator over the elements of a list */
typedef struct LmJsonFile LmJsonFile; /* a JSON file of the folder */
typedef struct LmSlot LmSlot;         /* one sequence of a run */
typedef struct LmInput LmInput;       /* inputs of a decoder, and values derived from them */

struct LmJsonFile {
  Str name;
  const JsonDoc *doc; /* NULL: absent */
};

struct LmFile {
  Ctx *c;
  const char *path; /* NULL: bytes of a caller */
  Loc loc;
  Str arch;              /* general.architecture, or model_type of config.json */
  const Gguf *gguf;      /* first part; NULL: safetensors */
  const JsonDoc *config; /* config.json; NULL: GGUF */
  const Json *text;      /* its text_config, whose keys come first; NULL: none */
  const char *root;      /* safetensors: prefix of the tensors of the decoder: "model." */
  const char *stack;     /* ... and of its layers: "model.layers." */
  StoredTensors tensor;  /* tensors of all parts */
  Map by_name;           /* tensor name -> index + 1 */
  u32 x_bits;            /* of products with quantized weights: see ops.def, dequantize */
  VEC(LmJsonFile) side;  /* JSON files opened so far */
};

struct LmList {
  const LmFile *f;
  const char *key;    /* shown in messages */
  u64 n;              /* elements left */
  GgufType type;      /* GGUF: element type */
  const u8 *at;       /* GGUF: next element */
  const JsonDoc *doc; /* safetensors: the file */
  const Json *json;   /* safetensors: next element */
};

struct LmSlot {
  Dim tokens, first; /* number of tokens of this run, row of the first one */
  Dim past;          /* tokens of earlier runs */
  Val before;        /* past as a scalar */
};

struct LmInput {
  LmSlot slot[LM_SLOTS];
  u32 nslot;
  Dim tokens; /* tokens of all sequences */
  Val ids;    /* i32[tokens] */
  Val rows;   /* i32[logits]: rows whose logits are results; 0: see LmOptions.every */
};

/* lm_file.c */
bool lm_sniff(const u8 *at, size_t n);
LmFile *lm_open(Ctx *c, const Source *s);
const StoredTensor *lm_tensor(const LmFile *f, const char *name);         /* NULL: absent */
const StoredTensor *lm_require_tensor(const LmFile *f, const char *name); /* fails when absent */
/* A file in the folder of the model: tokenizer.json, tokenizer.model. False or NULL: absent. */
bool lm_sibling_file(LmFile *f, const char *name, File *out);
const char *lm_folder(Ctx *c, const char *path); /* folder of a file and its tokenizer */
const JsonDoc *lm_sibling_json(LmFile *f, const char *name);
const JsonDoc *lm_named_json(LmFile *f, Str name); /* untrusted name, confined to the folder */

/* meta.c: values by key. False: absent (or null). "|" separates names of one key, and the first
 * that is there counts. GGUF keys that begin with '.' follow the name of the architecture. Other
 * keys are paths in config.json (rope_scaling.factor) or in another file
 * (generation_config.json:temperature). Bounds are inclusive. */
bool lm_int(LmFile *f, const char *key, i64 lo, i64 hi, i64 *out);
bool lm_float(LmFile *f, const char *key, double *out);
bool lm_bool(LmFile *f, const char *key, bool *out);
bool lm_string(LmFile *f, const char *key, FileSpan *out);
bool lm_list(LmFile *f, const char *key, LmList *out); /* a scalar counts as a list of one */
/* Read the next element; false at the end. */
bool lm_next_int(LmList *l, i64 lo, i64 hi, i64 *out);
bool lm_next_float(LmList *l, double *out);
bool lm_next_bool(LmList *l, bool *out);
bool lm_next_string(LmList *l, FileSpan *out);

/* lm_info.c: callbacks of the reader table. */
Model *lm_read(Ctx *c, const Source *s);
Graph *lm_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
void lm_info(Ctx *c, const Model *m, ModelInfo *out);
/* lm_assets.c */
const LmAssets *lm_assets(Ctx *c, const Source *s, const Model *m); /* NULL: not a chat model */

/* weight.c: a tensor as a value, [rows, elements] in the order of the file. It is a constant,
 * floats after `dequantize`, or for compressed-tensors (int8 with scales, packed int4) the product
 * with the scales. name: the full name, "blk.0.attn_q.weight". */
Val lm_weight(Graph *g, const LmFile *f, const char *name);
/* Experts stored as one tensor [experts, rows, columns]: as a matrix [experts rows, columns], or
 * with `side` [rows, experts columns]. */
Val lm_experts_weight(Graph *g, const LmFile *f, const char *name, bool side);
/* Is there a tensor of this name, plain or packed? */
bool lm_is_stored(const LmFile *f, const char *name);
/* Refuses quantization schemes of config.json that are not read. */
void lm_check_quantized(LmFile *f);

/* lm_input.c: the input of all language models. most: default tokens per run; limit: largest value
 * that the user may request. */
void lm_declare_io(Ctx *c, Model *m, const char *result);
Val lm_input_ids(Graph *g, const ImportOptions *o, i64 most, i64 limit);
/* embeds: one sequence, without earlier runs. */
const LmInput *lm_input(Graph *g, const ImportOptions *o, i64 context, bool embeds);

#endif
