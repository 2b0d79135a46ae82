/* formats.c: recognizes files that are not ONNX models.
 *
 * In: the bytes of a file that could not be read as ONNX, or a folder. Out: the name of its format
 * and advice, or NULL if unknown. Method: tables. A row matches if its bytes are at its offset and
 * its second string, if any, occurs near the beginning (in archives: if a member has that name).
 * Protobuf files have no magic number, so their field numbers decide.
 */
#include "front/formats.h"
#include "io/zip.h"

#include <string.h>
#include <unistd.h>

#define RUN_ADVICE "run it and give ingot the file that it writes"
#define TORCH_EXPORT                                                                               \
  "load it in Python and export the network: torch.onnx.export(model, example, \"model.onnx\")"
#define TF_CONVERT "convert it: python -m tf2onnx.convert "
#define KERAS_EXPORT                                                                               \
  "load it in Python and export it: keras.models.load_model(FILE).export(\"model.onnx\", "         \
  "format=\"onnx\")"
#define HF_EXPORT                                                                                  \
  "it has weights but no network; export the model they belong to, for example: optimum-cli "      \
  "export onnx --model NAME OUT"
#define PAGE_ADVICE "the link leads to a page about the file; use the link to the file itself"
#define PICKLE_EXPORT                                                                              \
  "load it in Python and export what it holds: torch.onnx.export, skl2onnx.to_onnx ..."
#define TAKE_ORIGINAL "it cannot be converted back to ONNX; use the model that it was made from"

enum {
  FORMAT_TEXT = -1, /* offset of a row: text after blanks, case-insensitive */
  FORMAT_NEAR = 2048,
  FORMAT_MEMBERS = 65536,
};

typedef struct FormatRow {
  int at;
  const char *magic;
  size_t n;
  const char *near; /* or NULL */
  Format f;
} FormatRow;

#define ROW(at, magic, near, name, advice)                                                         \
  {                                                                                                \
    at, magic, sizeof(magic) - 1, near, {                                                          \
      name, advice                                                                                 \
    }                                                                                              \
  }

static const FormatRow rows[] = {
    ROW(4, "ORTM", NULL, "a model in the format of ONNX Runtime (.ort)", TAKE_ORIGINAL " (.onnx)"),
    ROW(0, "tjgg", NULL, "a GGML file, weights of a language model", HF_EXPORT),
    ROW(0, "lmgg", NULL, "a GGML file, weights of a language model", HF_EXPORT),
    ROW(0, "\x89HDF\r\n\x1a\n", NULL, "an HDF5 file, as Keras writes them (.h5)", KERAS_EXPORT),
    ROW(0, "version https://git-lfs.github.com/spec/", NULL,
        "a Git LFS pointer, not the file itself", "fetch the file: git lfs pull"),
    ROW(0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", NULL, "a PyTorch checkpoint",
        TORCH_EXPORT),
    ROW(0, "\x80\x02", "torch", "a PyTorch checkpoint", TORCH_EXPORT),
    ROW(0, "\x80\x02", NULL, "a Python pickle", PICKLE_EXPORT),
    ROW(0, "\x80\x03", NULL, "a Python pickle", PICKLE_EXPORT),
    ROW(0, "\x80\x04\x95", NULL, "a Python pickle", PICKLE_EXPORT),
    ROW(0, "\x80\x05\x95", NULL, "a Python pickle", PICKLE_EXPORT),
    ROW(0, "\x93NUMPY", NULL, "an array (.npy), not a model",
        "arrays are given with --input NAME=@FILE"),
    ROW(0,
        "\x7f"
        "ELF",
        NULL, "a program or a library (ELF), not a model",
        "give ingot the model that it was made from"),
    ROW(0, "\x1f\x8b", NULL, "a gzip archive", "unpack it: gunzip FILE, or tar xzf FILE"),
    ROW(0,
        "\xfd"
        "7zXZ",
        NULL, "an xz archive", "unpack it: unxz FILE, or tar xJf FILE"),
    ROW(0, "\x28\xb5\x2f\xfd", NULL, "a zstd archive", "unpack it: unzstd FILE"),
    ROW(0, "BZh", NULL, "a bzip2 archive", "unpack it: bunzip2 FILE, or tar xjf FILE"),
    ROW(0, "7z\xbc\xaf\x27\x1c", NULL, "a 7-Zip archive", "unpack it: 7z x FILE"),
    ROW(257, "ustar", NULL, "a tar archive", "unpack it: tar xf FILE"),
    ROW(0, "7767517\n", NULL, "an ncnn network (.param)", TAKE_ORIGINAL),
    ROW(0, "ptrt", NULL, "a TensorRT engine", TAKE_ORIGINAL),
    ROW(0, "ftrt", NULL, "a TensorRT engine", TAKE_ORIGINAL),
    ROW(FORMAT_TEXT, "<", "<net ", "an OpenVINO network (.xml)", TAKE_ORIGINAL),
    ROW(FORMAT_TEXT, "<!doctype html", NULL, "a web page, not a model", PAGE_ADVICE),
    ROW(FORMAT_TEXT, "<", "<html", "a web page, not a model", PAGE_ADVICE),
    ROW(FORMAT_TEXT, "{", "modelTopology", "a TensorFlow.js model",
        TF_CONVERT "--tfjs FILE --output model.onnx"),
    ROW(FORMAT_TEXT, "{", "\"learner\"", "an XGBoost model",
        "load it in Python and convert it: onnxmltools.convert_xgboost"),
    ROW(FORMAT_TEXT, "tree\nversion=", NULL, "a LightGBM model",
        "load it in Python and convert it: onnxmltools.convert_lightgbm"),
    ROW(0, "#!", NULL, "a script, not a model", RUN_ADVICE),
    ROW(FORMAT_TEXT, "import \"", NULL, "a program in the ingot language",
        "give it a name that ends in .ch"),
    ROW(FORMAT_TEXT, "import ", NULL, "a Python program, not a model", RUN_ADVICE),
    ROW(FORMAT_TEXT, "from ", " import ", "a Python program, not a model", RUN_ADVICE),
    ROW(FORMAT_TEXT, "#", "\nimport ", "a Python program, not a model", RUN_ADVICE),
    ROW(FORMAT_TEXT, "\"\"\"", "import ", "a Python program, not a model", RUN_ADVICE),
};

/* Zip archives by member name: a suffix, or a part between slashes. */
static const FormatRow members[] = {
    ROW(0, ".onnx", NULL, "a zip archive with an ONNX model in it", "unpack it: unzip FILE"),
    ROW(0, "/code/", NULL, "a TorchScript model",
        "export it in Python: torch.onnx.export(torch.jit.load(FILE), example, \"model.onnx\", "
        "dynamo=False)"),
    ROW(0, "data.pkl", NULL, "a PyTorch checkpoint", TORCH_EXPORT),
    ROW(0, "model.weights.h5", NULL, "a Keras model (.keras)", KERAS_EXPORT),
    ROW(0, "saved_model.pb", NULL, "a zip archive with a TensorFlow SavedModel in it",
        "unpack it: unzip FILE; then give the folder to tf2onnx: --saved-model FOLDER"),
    ROW(0, ".mlmodel", NULL, "a zip archive with a Core ML model in it", TAKE_ORIGINAL),
    ROW(0, ".npy", NULL, "an archive of arrays (.npz), not a model",
        "arrays are given with --inputs FILE"),
    ROW(0, "", NULL, "a zip archive", "unpack it: unzip FILE"),
};

static const FormatRow folders[] = {
    ROW(0, "saved_model.pb", NULL, "a TensorFlow SavedModel",
        TF_CONVERT "--saved-model FOLDER --output model.onnx"),
    ROW(0, "model.onnx", NULL, "a folder with an ONNX model in it", "give the file in it"),
    ROW(0, "Manifest.json", NULL, "a Core ML package (.mlpackage)", TAKE_ORIGINAL),
    ROW(0, "pytorch_model.bin", NULL, "a folder of a Hugging Face model",
        "export it: optimum-cli export onnx --model FOLDER OUT"),
    ROW(0, "model.json", NULL, "a folder of a TensorFlow.js model",
        TF_CONVERT "--tfjs FOLDER/model.json --output model.onnx"),
};

enum {
  NROWS = sizeof rows / sizeof *rows,
  NMEMBERS = sizeof members / sizeof *members,
  NFOLDERS = sizeof folders / sizeof *folders,
};

/* ---- magic numbers ---- */

static u8 small(u8 c) {
  return c >= 'A' && c <= 'Z' ? (u8)(c - 'A' + 'a') : c;
}

static bool is_at(const u8 *at, size_t n, const char *text, size_t k, bool any_case) {
  if (n < k) return false;
  for (size_t i = 0; i < k; i++) {
    u8 a = at[i], b = (u8)text[i];
    if (any_case ? small(a) != small(b) : a != b) return false;
  }
  return true;
}

static bool is_near(const u8 *at, size_t n, const char *text) {
  size_t most = n < FORMAT_NEAR ? n : FORMAT_NEAR, k = strlen(text);
  for (size_t i = 0; i + k <= most; i++)
    if (is_at(at + i, n - i, text, k, true)) return true;
  return false;
}

static bool holds(const FormatRow *r, const u8 *at, size_t n) {
  size_t from = r->at == FORMAT_TEXT ? 0 : (size_t)r->at;
  if (r->at == FORMAT_TEXT) {
    if (is_at(at, n, "\xef\xbb\xbf", 3, false)) from = 3;
    while (from < n &&
           (at[from] == ' ' || at[from] == '\n' || at[from] == '\r' || at[from] == '\t'))
      from++;
  }
  return from <= n && is_at(at + from, n - from, r->magic, r->n, r->at == FORMAT_TEXT) &&
         (!r->near || is_near(at, n, r->near));
}

/* ---- zip archives ---- */

static bool has_name(const FormatRow *r, const u8 *name, size_t n) {
  if (r->magic[0] == '/') {
    for (size_t i = 0; i + r->n <= n; i++)
      if (!memcmp(name + i, r->magic, r->n)) return true;
    return false;
  }
  return n >= r->n && !memcmp(name + n - r->n, r->magic, r->n);
}

/* Tests for a member of that name. A damaged archive has the members before the damage. */
static bool has_member(const FormatRow *r, const u8 *at, size_t n) {
  Zip z;
  ZipMember m;
  if (zip_open(&z, at, n))
    for (u32 i = 0; i < FORMAT_MEMBERS && zip_next(&z, &m); i++)
      if (has_name(r, m.name, m.nname)) return true;
  return r->n == 0;
}

/* ---- protobuf ---- */

typedef struct Fields {
  const u8 *at;
  size_t n;
  u32 seen;               /* bits 1 << field, below 32 */
  bool first_is_message;  /* field 1 is a message */
  bool core_ml;           /* a field that only Core ML has */
  FileSpan first, second; /* contents of fields 1 and 2 */
  u64 claimed;            /* expected size of a truncated file in bytes; 0: complete */
} Fields;

static void walk_fields(Ctx *c, void *arg) {
  Fields *f = arg;
  Wire k = wire_open(c, f->at, f->n, LOC_NONE);
  while (wire_next(&k)) {
    if (k.field < 32) f->seen |= 1u << k.field;
    if (k.field >= 200 && k.field < 4000) f->core_ml = true;
    if (k.wire != WT_bytes) {
      wire_skip(&k);
      continue;
    }
    Wire length = k;
    u64 n = wire_varint(&length);
    if (n > length.end - length.pos && n <= WIRE_MAX_BYTES) f->claimed = length.pos + n;
    FileSpan s = wire_bytes(&k);
    if (k.field == 1) f->first_is_message = true;
    if (k.field == 1 && !f->first.at) f->first = s;
    if (k.field == 2 && !f->second.at) f->second = s;
  }
}

static const Format pb_forms[] = {
    {"a frozen TensorFlow graph (GraphDef)",
     TF_CONVERT "--graphdef FILE --inputs NAME:0 --outputs NAME:0 --output model.onnx"},
    {"a TensorFlow SavedModel (saved_model.pb)",
     TF_CONVERT "--saved-model FOLDER --output model.onnx, with the folder this file is in"},
    {"a Core ML model (.mlmodel)", TAKE_ORIGINAL},
    {"an ONNX tensor (.pb), not a model", "arrays are given with --input NAME=@FILE"},
};

/* NodeDef begins with a name and an operator, MetaGraphDef with a message. */
static const Format *protobuf_form(const Fields *f) {
  const FileSpan *a = &f->first, *b = &f->second;
  if (f->claimed) return NULL;
  if (f->first_is_message && a->n > 4 && a->at[0] == 0x0a && a->at[1] + 2u < a->n &&
      a->at[2 + a->at[1]] == 0x12)
    return &pb_forms[0];
  if (f->seen == (1u << 1 | 1u << 2) && b->n > 2 && b->at[0] == 0x0a) return &pb_forms[1];
  if (f->core_ml && f->seen & 1u << 1) return &pb_forms[2];
  if (f->seen & 1u << 1 && f->seen & 1u << 2 && f->seen & (1u << 4 | 1u << 5 | 1u << 7 | 1u << 9) &&
      !b->at)
    return &pb_forms[3];
  return NULL;
}

/* ---- entry points ---- */

const Format *format_of(Ctx *c, const u8 *at, size_t n, u64 *whole) {
  *whole = 0;
  for (u32 i = 0; i < NROWS; i++)
    if (holds(&rows[i], at, n)) return &rows[i].f;
  for (u32 i = 0; is_at(at, n, "PK\3\4", 4, false) && i < NMEMBERS; i++)
    if (has_member(&members[i], at, n)) return &members[i].f;
  Fields f = {.at = at, .n = n};
  const char *why;
  Err e = ctx_try(c, walk_fields, &f, &why);
  if (e && f.claimed && n > 2 && at[0] == 0x08 && at[1] && at[1] < 32) *whole = f.claimed;
  return e ? NULL : protobuf_form(&f);
}

const Format *format_of_folder(Ctx *c, const char *path) {
  for (u32 i = 0; i < NFOLDERS; i++) {
    StrBuf t = sb_new(&c->scratch);
    sb_fmt(&t, "%s/%s", path, folders[i].magic);
    if (!access(sb_cstr(&t), F_OK)) return &folders[i].f;
  }
  return NULL;
}
