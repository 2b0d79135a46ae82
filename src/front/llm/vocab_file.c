/* vocab_file.c: reads the vocabulary of a path: a GGUF file, a tokenizer.json (with
 * tokenizer_config.json in its folder), a tokenizer.model, or a folder with one of these.
 */
#include "front/llm/vocab_read.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* An ONNX file begins with its version, a SentencePiece model with its first piece. */
enum { ONNX_BEGINS = 0x08 };

static bool exists(const char *path, bool *folder) {
  struct stat st;
  if (stat(path, &st)) return false;
  *folder = S_ISDIR(st.st_mode);
  return true;
}

static const char *sibling_path(Arena *a, const char *folder, size_t n, const char *name) {
  StrBuf t = sb_new(a);
  sb_put(&t, folder, n);
  if (n && folder[n - 1] != '/') sb_puts(&t, "/");
  sb_puts(&t, name);
  return sb_cstr(&t);
}

static JsonDoc *read_json(Ctx *c, const char *path, Arena *a) {
  File f = file_read(c, path);
  JsonDoc *d = NEW(a, JsonDoc);
  *d = json_read(c, f.at, f.n, loc_of_file(c, path), a);
  return d;
}

/* Stop tokens of generation_config.json or config.json: a number or a list. */
static void add_stops(VocabSpec *s, const JsonDoc *d) {
  const Json *eos = json_get(d->root, "eos_token_id");
  u32 n = !eos ? 0 : eos->kind == JS_array ? eos->n : 1;
  for (u32 i = 0; i < n; i++) {
    const Json *j = eos->kind == JS_array ? &eos->at[i] : eos;
    bool known = j->kind != JS_int || j->i < 0 || j->i >= s->token.n;
    for (u32 k = 0; k < s->stop.n && !known; k++) known = s->stop.at[k] == j->i;
    if (!known) *vec_push(s->a, &s->stop) = (u32)j->i;
  }
}

/* Reads chat template and special tokens from the folder of the tokenizer. */
static void add_chat(VocabSpec *s, const char *path, size_t n, bool *folder) {
  static const char *const stops[] = {"generation_config.json", "config.json"};
  const char *name = sibling_path(s->a, path, n, "chat_template.jinja");
  if (exists(name, folder)) {
    File f = file_read(s->c, name);
    s->chat = (const char *)f.at;
    s->nchat = f.n > 1 << 24 ? 0 : (u32)f.n;
  }
  for (int i = 0; i < 2; i++) {
    name = sibling_path(s->a, path, n, stops[i]);
    if (exists(name, folder)) add_stops(s, read_json(s->c, name, s->a));
  }
}

static VocabSpec *from_json(Ctx *c, const char *path, Arena *a) {
  bool folder;
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  const char *config = sibling_path(a, path, n, "tokenizer_config.json");
  const JsonDoc *d = read_json(c, path, a);
  VocabSpec *s = vocab_from_json(d, exists(config, &folder) ? read_json(c, config, a) : NULL, a);
  add_chat(s, path, n, &folder);
  return s;
}

static VocabSpec *from_file(Ctx *c, const char *path, Arena *a) {
  File f = file_read(c, path);
  if (f.n >= 4 && !memcmp(f.at, "GGUF", 4))
    return vocab_from_gguf(c, gguf_read(c, f.at, f.n, loc_of_file(c, path)), loc_of_file(c, path),
                           a);
  if (ends_with(path, ".json")) return from_json(c, path, a);
  if (ends_with(path, ".gguf"))
    fail(c, ERR_input, loc_of_file(c, path), "not a GGUF file: it does not begin with GGUF");
  if (ends_with(path, ".onnx") || (f.n && f.at[0] == ONNX_BEGINS))
    fail(c, ERR_input, loc_of_file(c, path),
         "an ONNX model has no vocabulary; give a GGUF file, a tokenizer.json, "
         "a tokenizer.model, or a folder with one of these");
  return vocab_from_spm(c, f.at, f.n, loc_of_file(c, path), a);
}

VocabSpec *vocab_spec(Ctx *c, const char *path, Arena *a) {
  static const char *const names[] = {"tokenizer.json", "tokenizer.model", "spiece.model"};
  bool folder = false, other;
  if (exists(path, &folder) && folder) {
    const char *found = NULL;
    for (int i = 0; i < 3 && !found; i++) {
      const char *name = sibling_path(a, path, strlen(path), names[i]);
      if (exists(name, &other)) found = name;
    }
    if (!found)
      fail(c, ERR_input, loc_of_file(c, path),
           "the folder has neither tokenizer.json nor tokenizer.model");
    path = found;
  }
  return from_file(c, path, a);
}

VocabBlob vocab_file(Ctx *c, const char *path, Arena *a) {
  VocabBlob v;
  v.at = vocab_make(vocab_spec(c, path, a), &v.n);
  return v;
}
