/* llm.h: files of language models and text encoders as a Graph.
 *
 * LmFile is one view of what such a model is stored in: a GGUF file (or its parts), or a folder of
 * safetensors with config.json beside them. Files are mapped; strings, lists and weights stay where
 * they lie. What is read by a name is checked when it is read: another type than the one asked for,
 * or a number outside of its bounds, fails with the key; a key that is absent is no failure.
 */
#ifndef INGOT_LLM_H
#define INGOT_LLM_H

#include "front/reader.h"
#include "io/gguf.h"
#include "io/json.h"

typedef struct LmFile LmFile;
typedef struct LmList LmList;         /* a walk over the elements of a list */
typedef struct LmJsonFile LmJsonFile; /* a JSON file of the folder */

struct LmJsonFile {
  Str name;
  const JsonDoc *doc; /* NULL: there is no such file */
};

struct LmFile {
  Ctx *c;
  const char *path; /* the file; NULL: bytes of a caller */
  Loc loc;
  Str arch;              /* general.architecture, or model_type of config.json */
  const Gguf *gguf;      /* of the first part; NULL: safetensors */
  const JsonDoc *config; /* config.json; NULL: GGUF */
  StoredTensors tensor;  /* of all parts */
  Map by_name;           /* tensors: name -> place, plus 1 */
  VEC(LmJsonFile) side;  /* JSON files that were asked for */
};

struct LmList {
  const LmFile *f;
  const char *key;    /* for messages */
  u64 n;              /* elements that are left */
  GgufType type;      /* GGUF: of an element */
  const u8 *at;       /* GGUF: the next one */
  const JsonDoc *doc; /* safetensors: the file */
  const Json *json;   /* the next one in it */
};

/* lm_file.c */
bool lm_sniff(const u8 *at, size_t n);
LmFile *lm_open(Ctx *c, const Source *s);
const StoredTensor *lm_tensor(const LmFile *f, const char *name);         /* NULL: absent */
const StoredTensor *lm_require_tensor(const LmFile *f, const char *name); /* fails when absent */
/* A file of that name in the folder of the model: tokenizer.json, tokenizer.model. False or NULL:
 * there is none. */
bool lm_sibling_file(LmFile *f, const char *name, File *out);
const char *lm_folder(Ctx *c, const char *path); /* where a file lies, and its tokeniser */
const JsonDoc *lm_sibling_json(LmFile *f, const char *name);
const JsonDoc *lm_named_json(LmFile *f, Str name); /* a name that stands in a file: confined */

/* meta.c: values by key. false: absent (or null). A key is that of GGUF, where one that begins with
 * '.' stands behind the name of the architecture; or a path of members in config.json, separated by
 * '.' (rope_scaling.factor), or in another file (generation_config.json:temperature). A bound is
 * inclusive. */
bool lm_int(LmFile *f, const char *key, i64 lo, i64 hi, i64 *out);
bool lm_float(LmFile *f, const char *key, double *out);
bool lm_bool(LmFile *f, const char *key, bool *out);
bool lm_string(LmFile *f, const char *key, FileSpan *out);
bool lm_list(LmFile *f, const char *key, LmList *out); /* a value that is no list is one of one */
/* The next element; false behind the last. */
bool lm_next_int(LmList *l, i64 lo, i64 hi, i64 *out);
bool lm_next_float(LmList *l, double *out);
bool lm_next_bool(LmList *l, bool *out);
bool lm_next_string(LmList *l, FileSpan *out);

/* lm_info.c: the row of the table of readers. */
Model *lm_read(Ctx *c, const Source *s);
Graph *lm_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
void lm_info(Ctx *c, const Model *m, ModelInfo *out);
/* lm_assets.c */
const LmAssets *lm_assets(Ctx *c, const Source *s, const Model *m); /* NULL: it does not talk */

/* weight.c: a tensor as a value of the graph, rows times elements as the file has them, outermost
 * first: a constant of its own type, or floats behind `unblock`; of compressed-tensors (int8 with
 * scales, packed int4) the product with the scales. name: with its end, "blk.0.attn_q.weight". */
Val lm_weight(Graph *g, const LmFile *f, const char *name);
/* Refuses quantised weights that are stored in other ways, as config.json says. */
void lm_check_quantised(LmFile *f);

/* lm_input.c: the input of all of them. most: tokens of a run, unless asked for otherwise, which
 * may be up to limit. */
void lm_declare_io(Ctx *c, Model *m, const char *result);
Val lm_input_ids(Graph *g, const ImportOptions *o, i64 most, i64 limit);

/* encoder.c: ids i32[tokens] to the vector of a sentence, or to those of its tokens. */
bool lm_is_encoder(const LmFile *f);
Graph *lm_encoder(LmFile *f, const ImportOptions *o);

#endif
