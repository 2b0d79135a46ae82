/* readers.c: the table of model formats, and shared code.
 *
 * In: the bytes of a model. Out: its table row and the decoded model. The first row whose sniff
 * succeeds is used. ONNX has no magic number, so it is the last row and accepts everything. If it
 * cannot read the file, formats.c names the actual format.
 */
#include "front/formats.h"
#include "front/llm/lm_requant.h"
#include "front/onnx/onnx_reader.h"
#include "front/reader.h"
#include "front/tflite/tflite.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- text form of graphs ---- */

/* Length of the blanks and comments at the start. */
static size_t skip_blanks(const u8 *at, size_t n) {
  size_t i = 0;
  while (i < n && strchr(" \n\t\r#", at[i]) && at[i]) {
    if (at[i] == '#')
      while (i < n && at[i] != '\n') i++;
    else
      i++;
  }
  return i;
}

bool begins_with_word(const u8 *at, size_t n, const char *word) {
  size_t i = skip_blanks(at, n), len = strlen(word);
  return n - i >= len && !memcmp(at + i, word, len);
}

bool begins_text_form(const u8 *at, size_t n, const char *form) {
  size_t i = skip_blanks(at, n);
  if (begins_with_word(at + i, n - i, "ingot "))
    while (i < n && at[i] != '\n') i++;
  return begins_with_word(at + i, n - i, form);
}

static bool sniff_graph(const u8 *at, size_t n) {
  return begins_text_form(at, n, "graph");
}

/* The file is optional. file_read reports any error other than its absence. */
File reader_weights_file(Ctx *c, const char *path) {
  if (!path) return (File){0};
  const char *side = fmt_text(c, "%s.bin", path);
  struct stat st;
  if (stat(side, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) return (File){0};
  return file_read(c, side);
}

static Graph *import_graph(Ctx *c, const Source *s, const Model *m, const ImportOptions *o) {
  File side = reader_weights_file(c, s->path);
  (void)m, (void)o;
  return graph_parse(c, (const char *)s->at, s->n, s->file, side.at, side.n);
}

/* ---- table ---- */

static bool sniff_any(const u8 *at, size_t n) {
  (void)at, (void)n;
  return true;
}

#define LANGUAGE_MODEL                                                                             \
  .read = lm_read, .import = lm_import, .binds = true, .facts = lm_info, .chat_assets = lm_assets, \
  .requantize = lm_requantize
const Reader reader_table[] = {
    {.name = "the text of a graph", .sniff = sniff_graph, .import = import_graph},
    {.name = "GGUF", .sniff = gguf_sniff, LANGUAGE_MODEL},
    {.name = "safetensors", .sniff = lm_sniff, LANGUAGE_MODEL},
    {.name = "TensorFlow Lite",
     .sniff = lite_sniff,
     .read = lite_open,
     .import = lite_import,
     .binds = true,
     .facts = lite_info,
     .attributes = lite_attributes,
     .op = lite_op_at},
    {.name = "ONNX",
     .sniff = sniff_any,
     .read = onnx_open,
     .import = onnx_import,
     .binds = true,
     .facts = onnx_info,
     .attributes = onnx_attributes,
     .op = onnx_op_at,
     .onnxruntime = true,
     .rewrite = onnx_rewrite},
};
const u32 reader_count = sizeof reader_table / sizeof *reader_table;

bool reader_marked(const u8 *at, size_t n) {
  for (const Reader *r = reader_table; r->sniff != sniff_any; r++)
    if (r->read && r->sniff(at, n)) return true;
  return false;
}

/* ---- opening ---- */

typedef struct ReadArg {
  const Reader *r;
  const Source *s;
  const Model *m;
} ReadArg;

static void read_model(Ctx *c, void *arg) {
  ReadArg *a = arg;
  a->m = a->r->read(c, a->s);
}

static _Noreturn void refuse(Ctx *c, const Format *f) {
  fail(c, ERR_unsupported, LOC_NONE,
       "is %s (ingot reads ONNX, TensorFlow Lite, GGUF and safetensors): %s", f->name, f->advice);
}

/* ONNX models rarely begin with text: their first field is the version, a small number. */
static bool is_text(const u8 *at, size_t n) {
  for (size_t i = 0; i < n && i < 16; i++)
    if ((at[i] < 0x20 && at[i] != '\t' && at[i] != '\n' && at[i] != '\r') || at[i] >= 0x7f)
      return false;
  return n > 0;
}

const Reader *reader_open(Ctx *c, const Source *s, const Model **model) {
  const Reader *r = reader_table;
  const char *why;
  while (!r->sniff(s->at, s->n)) r++;
  *model = NULL;
  if (!r->read) return r;
  if (!s->n) fail(c, ERR_input, LOC_NONE, "the file is empty, expected a model");
  ReadArg a = {.r = r, .s = s};
  if (r->sniff != sniff_any) {
    *model = r->read(c, s);
    return r;
  }
  if (ctx_try(c, read_model, &a, &why)) { /* often another format */
    u64 whole;
    const Format *f = format_of(c, s->at, s->n, &whole);
    if (f) refuse(c, f);
    if (whole)
      fail(c, ERR_input, LOC_NONE, "is truncated: it has %zu bytes of at least %llu", s->n,
           (unsigned long long)whole);
    if (is_text(s->at, s->n)) fail(c, ERR_input, LOC_NONE, "not a model, but text");
    read_model(c, &a); /* repeats the message */
  }
  *model = a.m;
  return r;
}

/* Weights of a folder with config.json. The index comes first, because it lists all shards. */
static const char *const weights[] = {"model.safetensors.index.json", "model.safetensors"};

const char *reader_file(Ctx *c, const char *path) {
  struct stat st;
  if (stat(path, &st) || !S_ISDIR(st.st_mode)) return path;
  const Format *f = format_of_folder(c, path);
  if (f) refuse(c, f);
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  for (u32 i = 0; i < sizeof weights / sizeof *weights; i++) {
    const char *file = fmt_text(c, "%.*s/%s", (int)n, path, weights[i]);
    if (!stat(file, &st)) return file;
  }
  return path;
}

/* ---- declarations ---- */

bool model_has_input(Ctx *c, const Model *m, Str name) {
  const char *text = str_text(c, name), *dot = strrchr(text, '.');
  bool number = dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1);
  bool half = dot && (!strcmp(dot, ".keys") || !strcmp(dot, ".values"));
  Str base = number || half ? str_intern(c, text, (size_t)(dot - text)) : 0;
  for (u32 i = 0; i < m->ninput; i++) {
    DeclTypeKind kind = m->input[i]->type.kind;
    if (m->input[i]->name == name) return true;
    if (base && m->input[i]->name == base &&
        (half ? kind == OT_map : kind == OT_seq || kind == OT_opt))
      return true;
  }
  return false;
}

/* Exporters write -1 and ? for unknown names. */
Str decl_symbol(Ctx *c, const DeclDim *d) {
  if (!d || d->kind != OD_param || str_is(c, d->param, "-1") || str_is(c, d->param, "?")) return 0;
  return d->param;
}

const char *decl_type_string(Ctx *c, Str name, const DeclType *t) {
  static const char *const lists[] = {
      [OT_seq] = "sequence of ", [OT_opt] = "optional ", [OT_map] = "map to "};
  StrBuf out = sb_new(&c->scratch);
  for (; t->elem; t = t->elem) sb_puts(&out, lists[t->kind]);
  sb_fmt(&out, "%s[", dtype_info[t->dt].name);
  for (u32 k = 0; k < t->dims.n; k++) {
    const DeclDim *d = &t->dims.at[k];
    if (k) sb_puts(&out, ",");
    if (d->kind == OD_value && d->value >= 0)
      sb_fmt(&out, "%lld", (long long)d->value);
    else if (decl_symbol(c, d))
      sb_puts(&out, show(c, d->param));
    else if (name)
      sb_fmt(&out, "%s_%u", show(c, name), k);
    else
      sb_puts(&out, "?");
  }
  sb_puts(&out, t->has_shape ? "]" : "...]");
  return sb_cstr(&out);
}
