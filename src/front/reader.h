/* reader.h: formats of models, as the rest of ingot sees them.
 *
 * A format is a row of the table in readers.c: it recognises files by their first bytes, says what
 * they declare, and makes a Graph of them (with front/compose/compose.h and ir/graph.h). Sessions
 * know this header and no format.
 */
#ifndef INGOT_READER_H
#define INGOT_READER_H

#include "ir/graph.h"

typedef struct Reader Reader; /* a format */
typedef struct Source Source; /* the bytes of a model, and where they are from */
typedef struct Model Model;   /* what a file declares, and what its reader made of it */
typedef struct ModelInfo ModelInfo;
typedef struct ReaderOp ReaderOp;
typedef struct DeclValue DeclValue; /* an input or output as the file declares it */
typedef struct DeclType DeclType;
typedef struct DeclDim DeclDim;
typedef struct BindDim BindDim;
typedef struct BindInput BindInput;
typedef struct ImportOptions ImportOptions;
typedef struct LmOptions LmOptions;
typedef struct OutputTree OutputTree;
typedef struct RequantOptions RequantOptions;
typedef struct RequantRow RequantRow;
typedef struct RequantPlan RequantPlan;
typedef VEC(Str) Strs;

struct Source {
  const u8 *at;
  size_t n;
  Str file;         /* for messages */
  const char *path; /* for files beside it; NULL: bytes of a caller, there are none */
};

/* ---- what is declared; as written: it may be absent, or absurd ---- */

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
  i64 value; /* may be negative or absurd */
};

struct DeclType {
  DeclTypeKind kind;
  i32 elem_code;  /* element type in the numbers of the format; of the key for OT_map */
  DType dt;       /* the same; DT_none when ingot has no such type */
  bool has_shape; /* false: rank unknown; true with dims.n == 0: a scalar */
  VEC(DeclDim) dims;
  DeclType *elem; /* of OT_seq, OT_opt and OT_map (never NULL there; may be OT_none) */
};

struct DeclValue {
  Str name;
  Str alias;     /* what else the file calls it, which is understood; 0: nothing */
  DeclType type; /* OT_none when absent */
};

struct Model {
  const void *own;         /* of the reader */
  const DeclValue **input; /* that a run is given, in order */
  u32 ninput;
  const DeclValue *output;
  u32 noutput;
  bool is_decoder_lm; /* a language model that answers: see Reader.speech */
};

/* ---- what is asked for ---- */

/* One dimension fixed or bounded by the user: by symbol name (input 0), or by input and axis. */
struct BindDim {
  Str symbol; /* or 0 */
  Str input;  /* or 0 */
  i64 axis;
  i64 value;
  u32 rank;   /* of a whole shape: how many dimensions it gives; 0 for a single one */
  bool bound; /* value is the largest extent (--max-shapes), the dimension stays symbolic */
  bool used;
};

/* An array the caller will run with: binds the dimensions of that input, and its contents where a
 * shape depends on them (the parameter is then pinned to these contents). */
struct BindInput {
  Str name;
  const Tensor *data;
  bool fill;   /* data is one element, for every place: it says nothing about the shape */
  bool frozen; /* the input is a constant of the model, and no parameter */
};

typedef VEC(BindInput) BindInputs;

/* A dimension that nobody gave: what option would (value not set), and what it is. */
typedef struct MissingDim {
  BindDim bind; /* by symbol, or by input and axis; rank: a whole shape */
  Str what;
  bool is_side; /* height, width or depth of an image */
} MissingDim;
typedef struct MissingDims {
  const MissingDim *at;
  u32 n;
} MissingDims;

/* How an output of the model is made of outputs of the graph, which are tensors: element k of
 * sequence y is output y.k, what an optional holds is output y. Where that is only known at run
 * time (open): the elements stacked, y, and their number, y.count; beside an optional, y.has. A
 * sequence of maps (ZipMap) is the values, y, and y.keys, which are the same in all. */
struct OutputTree {
  TypeKind kind;
  u32 flat;         /* TY_tensor: number among the outputs of the graph */
  bool text;        /* TY_tensor: strings, which leave the graph as rows of bytes */
  bool maps;        /* TY_seq: values and keys of maps */
  bool open;        /* stack and count (TY_seq), or value and flag (TY_opt) */
  u32 n;            /* TY_seq, TY_opt: elements; 0 for a stack */
  OutputTree *elem; /* n of them, then those of an open one */
};

/* Unless more, or less, is asked for. Programs that talk run on vectors, where attention keeps no
 * matrix of scores: twice as many tokens take little memory there, and weights are unpacked half as
 * often. */
enum { LM_CONTEXT = 4096, LM_CHUNK = 128, LM_CHAT_CHUNK = 256 };

/* Of a language model; zeros: as its reader thinks best. */
struct LmOptions {
  i64 context; /* positions that there is room for */
  i64 chunk;   /* most tokens of one run */
  bool every;  /* logits of all tokens, not only of the last */
  DType kept;  /* of keys and values: f16 or f32, always given */
  double room; /* bytes there are: a context that takes more for keys and values, or one that the
                  model was not trained for, is refused; 0: the latter is warned of */
};

struct ImportOptions {
  LmOptions language;
  BindDim *dim;
  u32 ndim;
  BindInput *input;
  u32 ninput;
  bool opens, trains;   /* see Graph */
  bool symbolic;        /* unknown dimensions stay symbolic without bound (inspect) */
  BindInputs *frozen;   /* receives those that became constants; NULL: not wanted */
  MissingDims *missing; /* receives those that made the import fail; NULL: not wanted */
  OutputTree **outputs; /* receives one per output of the model; NULL: not wanted */
};

/* ---- the row ---- */

typedef struct OpCount {
  Str op;
  u32 n;
} OpCount;
typedef struct NamedVersion {
  Str name;
  i64 version;
} NamedVersion;

/* Something a file says of itself. */
typedef struct ModelInfoItem {
  const char *name; /* words with blanks; in JSON with underlines */
  Str text;         /* or 0: a number */
  u64 n;
} ModelInfoItem;
/* Tensors that are stored in the same way. */
typedef struct StoredCount {
  const char *kind;
  u32 n;
  u64 elems, bytes;
} StoredCount;

/* What `inspect` reports of a file beside its inputs and outputs. */
struct ModelInfo {
  i64 version;             /* of the format; 0: it has none */
  VEC(ModelInfoItem) more; /* of a format that has no operators */
  VEC(StoredCount) stored; /* likewise */
  VEC(NamedVersion) opset; /* of the sets of operators it uses */
  Str producer, producer_version;
  VEC(OpCount) op; /* operators in the order in which they come */
  u32 nnodes;
  u64 params, bytes; /* elements of its weights, and their bytes */
  u64 token_bytes;   /* of a language model: read for every token; 0: it is none */
  u64 kv_bytes;      /* and, of keys and values in f16, for every position before it */
};

/* The day that a template is told where the program cannot fill in its own: 1 January 2026. */
#define CHAT_DEFAULT_DATE 1767225600

/* What is said around messages, as the template of a model has it; NULL: it has no such place. The
 * form of a date, as strftime takes it, stands between the bytes 1 and 2. */
typedef struct ChatFormat {
  const char *open;                 /* in front of the first message */
  const char *open_system, *system; /* around the text of the system, up to that message, instead */
  const char *ask;                  /* behind a message, up to the answer */
  const char *next;                 /* behind an answer, up to the next message */
  bool trims;                       /* white space around messages is dropped */
} ChatFormat;

/* What a language model has beside its graph. */
typedef struct LmAssets {
  const u8 *vocab; /* its tokeniser: a Vocab of text/tokenizer.h */
  size_t nvocab;
  ChatFormat chat;
  const char *no_chat; /* why chat is empty, or NULL */
  double token_bytes;  /* of weights that a token reads */
} LmAssets;

/* ---- weights of other types ---- */

struct RequantOptions {
  const char *to;          /* the name of a type, or of a mixture of types */
  const char *const *keep; /* patterns with * and ?: tensors that stay as they are */
  u32 nkeep;
};

/* A tensor before and after; errors are known when the file has been written. */
struct RequantRow {
  Str name;
  const char *from, *to;    /* names of types */
  u64 elems, before, after; /* bytes */
  double squares, errors;   /* sums of squares: of the elements, of what they are off by */
  double most;              /* the largest error */
};

/* A model in another form: pieces of a file, for files_write, and what becomes of its tensors. */
struct RequantPlan {
  VEC(Chunk) piece;
  VEC(RequantRow) row;
  u64 bytes; /* of the file */
};

struct ReaderOp {
  const char *domain, *name;
  i32 since, until; /* versions it is read in; since 0: all of them, until 0: no end */
};

struct Reader {
  const char *name;
  bool (*sniff)(const u8 *at, size_t n); /* by the first bytes; fast, never fails */
  /* Decodes; the result lives in c->work and may point into the bytes, which outlive it. NULL: what
   * the file declares shows when it is imported. */
  Model *(*read)(Ctx *c, const Source *s);
  /* m: what read returned, or NULL. Sets g->eager while it builds, g->loc for every layer. */
  Graph *(*import)(Ctx *c, const Source *s, const Model *m, const ImportOptions *o);
  bool binds; /* import obeys its options; else inputs are frozen in the finished graph */
  void (*facts)(Ctx *c, const Model *m, ModelInfo *out); /* NULL: there are none */
  /* Attributes of a node as its file spells them, "kernel_shape=[3,3]", by where it comes from.
   * NULL: there are none. */
  void (*attributes)(Ctx *c, const Model *m, const Loc *at, StrBuf *out);
  bool (*op)(u32 i, ReaderOp *out); /* what `ops` lists, false behind the last; NULL: nothing */
  /* Of a language model, that talks; NULL, or returns NULL: it does not. */
  const LmAssets *(*speech)(Ctx *c, const Source *s, const Model *m);
  bool onnxruntime; /* the engine of that name runs its files */
  /* A GGUF file of it with weights of other types; NULL: there is none. */
  RequantPlan *(*requantise)(Ctx *c, const Model *m, const RequantOptions *o);
  /* Writes the file at path with other elements for n of its weights, by name; everything else
   * stays as it was. path NULL: only refuses what it would refuse. NULL: weights are not written.
   */
  void (*rewrite)(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path);
};

/* readers.c */
extern const Reader reader_table[];
extern const u32 reader_count;
/* Do the bytes bear the mark of a format? ONNX and the text of a graph have none. */
bool reader_marked(const u8 *at, size_t n);
/* The reader of a file and, where it decodes, its model. What no reader takes is refused by what it
 * seems to be (formats.c). */
const Reader *reader_open(Ctx *c, const Source *s, const Model **model);
/* The file that stands for a folder, or the path itself; refuses a folder with a model that is not
 * read. */
const char *reader_file(Ctx *c, const char *path);
File reader_weights_file(Ctx *c,
                         const char *path); /* PATH.bin beside a text form; empty: there is none */
bool begins_with_word(const u8 *at, size_t n, const char *word); /* after blanks and comments */
/* Is it a text form, "graph" or "prog", with or without a version line? */
bool begins_text_form(const u8 *at, size_t n, const char *form);
/* Is there such an input, or one of whose elements this is the name (x.0)? */
bool model_has_input(Ctx *c, const Model *m, Str name);
/* A type as the file declares it, f32[batch,3,224,224], in c->scratch. name: of the input, whose
 * dimensions without a name are called INPUT_AXIS, as -d takes them; 0: they are '?'. */
const char *decl_type_string(Ctx *c, Str name, const DeclType *t);
Str decl_symbol(Ctx *c, const DeclDim *d); /* the name of a dimension; 0: none */

#endif
