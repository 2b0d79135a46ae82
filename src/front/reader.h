/* reader.h: model formats, as the rest of ingot sees them.
 *
 * A format is a row of the table in readers.c. It recognizes files by their first bytes, lists
 * declared inputs and outputs, and builds a Graph (with front/compose/compose.h and
 * ir/graph/graph.h). Sessions use this header and no format.
 */
#ifndef INGOT_READER_H
#define INGOT_READER_H

#include "ir/graph/graph.h"

typedef struct Reader Reader; /* a format */
typedef struct Source Source; /* the bytes of a model and their origin */
typedef struct Model Model;   /* a decoded file: declarations and private data of its reader */
typedef struct ModelInfo ModelInfo;
typedef struct ReaderOp ReaderOp;
typedef struct DeclValue DeclValue; /* an input or output as the file declares it */
typedef struct DeclType DeclType;
typedef struct DeclDim DeclDim;
typedef struct BindDim BindDim;
typedef struct BindInput BindInput;
typedef struct ImportOptions ImportOptions;
typedef struct LmOptions LmOptions;
typedef struct OutputStructure OutputStructure;
typedef struct RequantOptions RequantOptions;
typedef struct RequantRow RequantRow;
typedef struct RequantPlan RequantPlan;
typedef VEC(Str) Strs;

struct Source {
  const u8 *at;
  size_t n;
  Str file;         /* shown in messages */
  const char *path; /* path, to find sibling files; NULL: bytes of a caller */
};

/* ---- declarations, as written: may be absent or invalid ---- */

typedef enum DeclTypeKind {
  OT_none,
  OT_tensor,
  OT_sparse,
  OT_seq,
  OT_opt,
  OT_map,
  OT_opaque
} DeclTypeKind;
typedef enum DeclDimKind { OD_unknown, OD_value, OD_param } DeclDimKind;

struct DeclDim {
  DeclDimKind kind;
  Str param;
  i64 value; /* may be negative or invalid */
};

struct DeclType {
  DeclTypeKind kind;
  i32 elem_code;  /* element type in the numbering of the format; OT_map: of the key */
  DType dt;       /* element type; DT_none if ingot lacks it */
  bool has_shape; /* false: rank unknown; true with dims.n == 0: a scalar */
  VEC(DeclDim) dims;
  DeclType *elem; /* OT_seq, OT_opt and OT_map: never NULL, may be OT_none */
};

struct DeclValue {
  Str name;
  Str alias;     /* second name in the file, also accepted; 0: none */
  DeclType type; /* OT_none when absent */
};

struct Model {
  const void *own;         /* private to the reader */
  const DeclValue **input; /* inputs of a run, in order */
  u32 ninput;
  const DeclValue *output;
  u32 noutput;
  bool is_decoder_lm; /* decoder language model: see Reader.chat_assets */
};

/* ---- import options ---- */

/* One dimension fixed or bounded by the user: by symbol name (input 0), or by input and axis. */
struct BindDim {
  Str symbol; /* or 0 */
  Str input;  /* or 0 */
  i64 axis;
  i64 value;
  u32 rank;   /* number of dimensions if a whole shape is given; else 0 */
  bool bound; /* value is an upper bound (--max-shapes); the dimension stays symbolic */
  bool used;
};

/* An array that the caller will run with. It binds the dimensions of that input. If a shape depends
 * on its contents, it binds those too (the graph is then valid for these contents only). */
struct BindInput {
  Str name;
  const Tensor *data;
  bool fill;   /* data is one element for all positions and does not bind the shape */
  bool frozen; /* the input becomes a constant */
};

typedef VEC(BindInput) BindInputs;

/* A dimension without a binding: the option that would bind it (without value), a description. */
typedef struct MissingDim {
  BindDim bind; /* by symbol, or by input and axis; rank: a whole shape */
  Str what;
  bool is_side; /* height, width or depth of an image */
} MissingDim;
typedef struct MissingDims {
  const MissingDim *at;
  u32 n;
} MissingDims;

/* Maps an output of the model to outputs of the graph, which are tensors. Element k of sequence y
 * is output y.k; the value of an optional y is output y. If the length is known only at run time
 * (open), y is the stack of elements and y.count their number; y.has is the flag of an optional. A
 * sequence of maps (ZipMap) is the values y and the common keys y.keys. */
struct OutputStructure {
  TypeKind kind;
  u32 flat;              /* TY_tensor: index among the outputs of the graph */
  bool text;             /* TY_tensor: strings, which leave the graph as rows of bytes */
  bool maps;             /* TY_seq: values and keys of maps */
  bool open;             /* stack and count (TY_seq), or value and flag (TY_opt) */
  u32 n;                 /* TY_seq, TY_opt: elements; 0 for a stack */
  OutputStructure *elem; /* n elements, plus those of an open one */
};

/* Defaults. Chat programs use vector attention without a score matrix, so a chunk of twice as many
 * tokens takes little memory and halves the number of weight dequantizations. */
enum { LM_CONTEXT = 4096, LM_CHUNK = 128, LM_CHAT_CHUNK = 256 };

/* LM_SLOTS: maximum sequences of one run. LM_SLOT_ROWS: maximum rows of logits per sequence. */
enum { LM_SLOTS = 16, LM_SLOT_ROWS = 8 };

/* Options of language models; 0: the default of the reader. */
struct LmOptions {
  i64 context; /* context length in tokens */
  i64 chunk;   /* maximum tokens per run */
  bool every;  /* logits of all tokens, not only of the last */
  u32 slots;   /* sequences of one run, each with inputs and a KV cache; 0: one, with input "ids" */
  DType kept;  /* type of the KV cache: f16 or f32 */
  u32 x_bits;  /* activations of quantized products: 8, 16 or 32; 0: 16 for small models, else 8 */
  double
      room; /* memory in bytes: refuses a larger KV cache or an untrained context; 0: only warns */
};

struct ImportOptions {
  LmOptions language;
  BindDim *dim;
  u32 ndim;
  BindInput *input;
  u32 ninput;
  bool opens, trains;   /* see Graph */
  bool symbolic;        /* unknown dimensions stay symbolic without bound (inspect) */
  BindInputs *frozen;   /* receives inputs that became constants; may be NULL */
  MissingDims *missing; /* receives dimensions that made the import fail; may be NULL */
  Str *undecided;       /* receives the input whose value the failed import needs; may be NULL */
  OutputStructure **outputs; /* receives one per output of the model; may be NULL */
};

/* ---- readers ---- */

typedef struct OpCount {
  Str op;
  u32 n;
} OpCount;
typedef struct NamedVersion {
  Str name;
  i64 version;
} NamedVersion;

/* A fact about the model. */
typedef struct ModelInfoItem {
  const char *name; /* words with spaces; JSON uses underscores */
  Str text;         /* or 0: a number */
  u64 n;
} ModelInfoItem;
/* Tensors with the same storage type. */
typedef struct StoredCount {
  const char *kind;
  u32 n;
  u64 elems, bytes;
} StoredCount;

/* Report of `inspect` on a file, without inputs and outputs. */
struct ModelInfo {
  i64 version;             /* format version; 0: none */
  VEC(ModelInfoItem) more; /* formats without operators: facts */
  VEC(StoredCount) stored; /* formats without operators: tensor types */
  VEC(NamedVersion) opset; /* opsets */
  Str producer, producer_version;
  VEC(OpCount) op; /* operators in order of appearance */
  u32 nnodes;
  u64 params, bytes; /* number of weights and their bytes */
  u64 token_bytes;   /* language model: weight bytes read per token; else 0 */
  u64 kv_bytes;      /* language model: f16 KV cache bytes read per position */
};

/* Date for chat templates where the program cannot insert the current one: 1 January 2026. */
#define CHAT_DEFAULT_DATE 1767225600

/* Strings of the chat template around messages; NULL: not available. A strftime date format is
 * enclosed in the bytes 1 and 2. */
typedef struct ChatFormat {
  const char *open;                 /* before the first message */
  const char *open_system, *system; /* around the system message, instead of open */
  const char *ask;                  /* after a message, up to the answer */
  const char *next;                 /* after an answer, up to the next message */
  bool trims;                       /* strips white space around messages */
} ChatFormat;

/* Tokenizer and chat format of a language model. */
typedef struct LmAssets {
  const u8 *vocab; /* tokenizer: a Vocab of tokenizer/tokenizer.h */
  size_t nvocab;
  ChatFormat chat;
  const char *no_chat; /* why chat is empty, or NULL */
  double token_bytes;  /* weight bytes read per token */
  struct LmSampling {
    double temperature, top_k, top_p, min_p, repeat;
  } sampling; /* settings of the file; -1: not given */
} LmAssets;

/* ---- requantization ---- */

struct RequantOptions {
  const char *to;          /* name of a type or of a mixture of types */
  const char *const *keep; /* glob patterns of tensors that are not converted */
  u32 nkeep;
};

/* One tensor. The errors are known once the file is written. */
struct RequantRow {
  Str name;
  const char *from, *to;    /* names of types */
  u64 elems, before, after; /* bytes */
  double squares, errors;   /* sums of squares of the elements and of their errors */
  double most;              /* the largest absolute error */
};

/* A converted model: pieces of a file for files_write, and its tensors. */
struct RequantPlan {
  VEC(Chunk) piece;
  VEC(RequantRow) row;
  u64 bytes; /* bytes of the file */
};

struct ReaderOp {
  const char *domain, *name;
  i32 since, until; /* supported versions; since 0: all, until 0: no end */
};

struct Reader {
  const char *name;
  bool (*sniff)(const u8 *at, size_t n); /* checks the first bytes; fast, never fails */
  /* Decodes a file. The result lives in c->work and may point into the bytes, which outlive it.
   * NULL: declarations are only known after the import. */
  Model *(*read)(Ctx *c, const Source *s);
  /* m: result of read, or NULL. Sets g->eager while building, g->loc for every layer. */
  Graph *(*import)(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
  bool binds; /* import obeys its options; else inputs are frozen in the finished graph */
  void (*facts)(Ctx *c, const Model *m, ModelInfo *out); /* NULL: none */
  /* Attributes of a node in the spelling of its file, "kernel_shape=[3,3]". NULL: none. */
  void (*attributes)(Ctx *c, const Model *m, const Loc *at, StrBuf *out);
  bool (*op)(u32 i, ReaderOp *out); /* rows that `ops` lists, false at the end; NULL: none */
  /* Tokenizer and chat format. NULL, or a NULL result: not a chat model. */
  const LmAssets *(*chat_assets)(Ctx *c, const Source *s, const Model *m);
  bool onnxruntime; /* engine onnxruntime runs its files */
  /* Plans a GGUF file with other weight types. NULL: not possible. */
  RequantPlan *(*requantize)(Ctx *c, const Model *m, const RequantOptions *o);
  /* Writes the file to path with new elements for n weights, by name; the rest is unchanged. path
   * NULL: only checks that it is possible. NULL: weights cannot be written. */
  void (*rewrite)(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path);
};

/* onnx/onnx_export.c: writes a graph without layouts, whatever its format was, as an ONNX model.
 * Refuses core operators without an ONNX form by name. */
void graph_write_onnx(Ctx *c, Graph *g, const char *path);

/* readers.c */
extern const Reader reader_table[];
extern const u32 reader_count;
/* Do the bytes have the magic number of a format? ONNX and text forms have none. */
bool reader_marked(const u8 *at, size_t n);
/* The reader of a file and, if it decodes, the model. Refuses other files with the name of their
 * format (formats.c). */
const Reader *reader_open(Ctx *c, const Source *s, const Model **model);
/* The model file in a folder, or the path itself. Refuses a folder with an unsupported model. */
const char *reader_file(Ctx *c, const char *path);
File reader_weights_file(Ctx *c, const char *path); /* PATH.bin of a text form; empty: absent */
bool begins_with_word(const u8 *at, size_t n, const char *word); /* after blanks and comments */
/* Is it a text form, "graph" or "prog", with or without a version line? */
bool begins_text_form(const u8 *at, size_t n, const char *form);
/* Is this the name of an input or of an element of one (x.0)? */
bool model_has_input(Ctx *c, const Model *m, Str name);
/* A declared type, f32[batch,3,224,224], in c->scratch. name: of the input; its unnamed dimensions
 * are printed as INPUT_AXIS, as -d accepts them; 0: as '?'. */
const char *decl_type_string(Ctx *c, Str name, const DeclType *t);
Str decl_symbol(Ctx *c, const DeclDim *d); /* the name of a dimension; 0: none */

#endif
