/* lm_file.c: opens the files of a language model as one LmFile.
 *
 * In: the first bytes and the path of a GGUF file, the first of several, a safetensors file, or the
 * index of several. Out: tensors by name from all files, and the keys of the first GGUF file or of
 * config.json. Method: files whose names follow from the path (GGUF parts, config.json,
 * tokenizer.json) are opened like files of the user. Names found in a file (shards of an index) go
 * through the confined opener.
 */
#include "front/llm/llm.h"
#include "io/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_PARTS = 99999, PART_TAIL = sizeof "-00001-of-00002.gguf" - 1 };

/* ---- names ---- */

/* PATH's folder and NAME; NULL: the model has no folder. */
static const char *sibling_path(const LmFile *f, const char *name) {
  if (!f->path) return NULL;
  const char *slash = strrchr(f->path, '/');
  int n = slash ? (int)(slash - f->path + 1) : 0;
  return str_text(f->c, str_fmt(f->c, "%.*s%s", n, f->path, name));
}

bool lm_sibling_file(LmFile *f, const char *name, File *out) {
  const char *path = sibling_path(f, name);
  struct stat st;
  if (!path || (stat(path, &st) && (errno == ENOENT || errno == ENOTDIR))) return false;
  *out = file_read(f->c, path);
  return true;
}

static JsonDoc *read_json(LmFile *f, const char *name, File file) {
  Loc loc = {.file = str_of(f->c, sibling_path(f, name)), .index = -1};
  JsonDoc *doc = NEW(&f->c->work, JsonDoc);
  *doc = json_read(f->c, file.at, file.n, loc, &f->c->work);
  return doc;
}

const JsonDoc *lm_named_json(LmFile *f, Str name) {
  File file = file_read_beneath(f->c, f->path, name, f->loc);
  return read_json(f, str_text(f->c, name), file);
}

const JsonDoc *lm_sibling_json(LmFile *f, const char *name) {
  Ctx *c = f->c;
  Str key = str_of(c, name);
  File file;
  for (u32 i = 0; i < f->side.n; i++)
    if (f->side.at[i].name == key) return f->side.at[i].doc;
  JsonDoc *doc = NULL;
  if (lm_sibling_file(f, name, &file)) doc = read_json(f, name, file);
  *vec_push(&c->work, &f->side) = (LmJsonFile){key, doc};
  return doc;
}

/* ---- tensors ---- */

const StoredTensor *lm_tensor(const LmFile *f, const char *name) {
  const u32 *slot = map_get(&f->by_name, str_of(f->c, name));
  return slot ? &f->tensor.at[*slot - 1] : NULL;
}

const StoredTensor *lm_require_tensor(const LmFile *f, const char *name) {
  const StoredTensor *t = lm_tensor(f, name);
  if (!t) fail(f->c, ERR_input, f->loc, "tensor '%s' is missing", show(f->c, str_of(f->c, name)));
  return t;
}

static void add_tensors(LmFile *f, const StoredTensors *v, Loc loc) {
  Ctx *c = f->c;
  for (u32 i = 0; i < v->n; i++) {
    u32 *slot = map_put(&f->by_name, v->at[i].name);
    if (*slot) fail(c, ERR_input, loc, "tensor '%s' is in two files", show(c, v->at[i].name));
    *vec_push(&c->work, &f->tensor) = v->at[i];
    *slot = f->tensor.n;
  }
}

/* ---- GGUF ---- */

/* An integer among the keys of a part; -1: absent. */
static i64 split_number(Ctx *c, const Gguf *g, const char *name, Loc loc) {
  const GgufKey *k = gguf_key(c, g, name);
  i64 v = -1;
  if (!k) return -1;
  const u8 *at = k->at;
  if (k->array || k->type == GT_bool || !gguf_int(k->type, &at, &v) || v < 0)
    fail(c, ERR_input, loc, "key '%s': expected a number", name);
  return v;
}

/* The path of part i (from 0) of n, derived from the path of the first. */
static const char *part_path(const LmFile *f, i64 i, i64 n) {
  size_t stem = strlen(f->path) - PART_TAIL;
  return str_text(f->c, str_fmt(f->c, "%.*s-%05lld-of-%05lld.gguf", (int)stem, f->path,
                                (long long)i + 1, (long long)n));
}

static void check_first(const LmFile *f, i64 part, i64 n) {
  char tail[64];
  Ctx *c = f->c;
  if (n > MAX_PARTS)
    fail(c, ERR_input, f->loc, "key 'split.count' is %lld, expected at most %d", (long long)n,
         MAX_PARTS);
  if (!f->path)
    fail(c, ERR_input, f->loc,
         "this is one of %lld parts, and the others cannot be found without a path", (long long)n);
  snprintf(tail, sizeof tail, "-%05lld-of-%05lld.gguf", (long long)part + 1, (long long)n);
  if (!ends_with(f->path, tail) || strlen(f->path) == PART_TAIL)
    fail(c, ERR_input, f->loc, "this is part %lld of %lld, but its name does not end in %s",
         (long long)part + 1, (long long)n, tail);
  if (part)
    fail(c, ERR_usage, f->loc, "this is part %lld of %lld; give the first: %s", (long long)part + 1,
         (long long)n, show_text(c, str_of(c, part_path(f, 0, n))));
}

static void add_parts(LmFile *f) {
  Ctx *c = f->c;
  i64 n = split_number(c, f->gguf, "split.count", f->loc);
  i64 part = split_number(c, f->gguf, "split.no", f->loc);
  if (n <= 1) return;
  if (part < 0)
    fail(c, ERR_input, f->loc, "key 'split.count' is present, but key 'split.no' is missing");
  if (part >= n)
    fail(c, ERR_input, f->loc, "key 'split.no' is %lld, expected less than %lld", (long long)part,
         (long long)n);
  check_first(f, part, n);
  for (i64 i = 1; i < n; i++) {
    const char *path = part_path(f, i, n);
    Loc loc = {.file = str_of(c, path), .index = -1};
    File file = file_read(c, path);
    Gguf *g = gguf_read(c, file.at, file.n, loc);
    if (split_number(c, g, "split.no", loc) != i || split_number(c, g, "split.count", loc) != n)
      fail(c, ERR_input, loc, "this is not part %lld of %lld, although its name says so",
           (long long)i + 1, (long long)n);
    add_tensors(f, &g->tensor, loc);
  }
  i64 total = split_number(c, f->gguf, "split.tensors.count", f->loc);
  if (total >= 0 && total != f->tensor.n)
    fail(c, ERR_input, f->loc, "the parts have %u tensors, key 'split.tensors.count' says %lld",
         f->tensor.n, (long long)total);
}

static void open_gguf(LmFile *f, const Source *s) {
  FileSpan arch;
  f->gguf = gguf_read(f->c, s->at, s->n, f->loc);
  add_tensors(f, &f->gguf->tensor, f->loc);
  add_parts(f);
  if (!lm_string(f, "general.architecture", &arch))
    fail(f->c, ERR_input, f->loc, "key 'general.architecture' is missing");
  f->arch = str_intern(f->c, arch.at, arch.n);
}

/* ---- safetensors ---- */

/* Every tensor of the index must be in the shard that it names, and shards have no others. */
static void open_index(LmFile *f, const Source *s) {
  Ctx *c = f->c;
  JsonDoc d = json_read(c, s->at, s->n, f->loc, &c->work);
  const Json *names = json_require(&d, d.root, "weight_map", JS_object);
  Map first = map_new(&c->work); /* shard -> 1 + number of tensors before its own */
  Map last = map_new(&c->work);  /* shard -> 1 + end of its tensors */
  for (u32 i = 0; i < names->n; i++) {
    const Json *key = json_key(names, i), *value = json_value(names, i);
    if (value->kind != JS_string) json_fail(&d, value, ERR_input, "expected the name of a file");
    Str shard = json_str(c, value);
    u32 *slot = map_put(&first, shard);
    if (!*slot) {
      *slot = f->tensor.n + 1;
      File file = file_read_beneath(c, f->path, shard, f->loc);
      Loc loc = {.file = str_of(c, sibling_path(f, str_text(c, shard))), .index = -1};
      StoredTensors v = safetensors_read(c, file.at, file.n, loc);
      add_tensors(f, &v, loc);
      *map_put(&last, shard) = f->tensor.n;
    }
    const u32 *at = map_get(&f->by_name, json_str(c, key));
    if (!at || *at < *map_get(&first, shard) || *at > *map_get(&last, shard))
      json_fail(&d, key, ERR_input, "'%s' has no tensor of this name", show(c, shard));
  }
  if (f->tensor.n != names->n)
    fail(c, ERR_input, f->loc, "weight_map names %u tensors, its files have %u", names->n,
         f->tensor.n);
}

/* Finds the layers of the decoder by their names. Wrapped models have those of other towers, too.
 */
static void find_layers(LmFile *f) {
  static const char *const roots[] = {"model.language_model.",
                                      "language_model.model.",
                                      "model.decoder.",
                                      "model.",
                                      "transformer.",
                                      "gpt_neox.",
                                      "backbone.",
                                      "decoder.",
                                      "bert.",
                                      "roberta.",
                                      "distilbert.",
                                      "mpnet.",
                                      "nomic_bert.",
                                      ""};
  static const char *const stacks[] = {
      "layers.", "h.", "blocks.", "encoder.layer.", "encoder.layers.", "transformer.layer."};
  Ctx *c = f->c;
  f->root = "model.";
  f->stack = "model.layers.";
  for (u32 r = 0; r < sizeof roots / sizeof *roots; r++)
    for (u32 k = 0; k < sizeof stacks / sizeof *stacks; k++) {
      const char *stack = str_text(c, str_fmt(c, "%s%s", roots[r], stacks[k]));
      const char *first = str_text(c, str_fmt(c, "%s0.", stack));
      for (u32 i = 0; i < f->tensor.n; i++) {
        if (strncmp(str_text(c, f->tensor.at[i].name), first, strlen(first)) != 0) continue;
        f->root = roots[r];
        f->stack = stack;
        return;
      }
    }
}

static void open_safetensors(LmFile *f, const Source *s) {
  Ctx *c = f->c;
  if (safetensors_sniff(s->at, s->n)) {
    StoredTensors v = safetensors_read(c, s->at, s->n, f->loc);
    add_tensors(f, &v, f->loc);
  } else {
    open_index(f, s);
  }
  const Json *type;
  f->config = lm_sibling_json(f, "config.json");
  if (!f->config)
    fail(c, ERR_unsupported, f->loc,
         "the folder has weights, but no config.json that describes the network");
  const Json *text = json_get(f->config->root, "text_config");
  if (text && text->kind == JS_object) f->text = text;
  type = f->text ? json_get(f->text, "model_type") : NULL;
  if (!type || type->kind != JS_string)
    type = json_require(f->config, f->config->root, "model_type", JS_string);
  f->arch = json_str(c, type);
  find_layers(f);
}

/* ---- entry points ---- */

/* JSON that begins like a shard index: {"metadata": {...}, "weight_map": ... */
static bool is_index(const u8 *at, size_t n) {
  static const char word[] = "\"weight_map\"";
  size_t near = n < 4096 ? n : 4096, k = sizeof word - 1;
  if (!begins_with_word(at, n, "{")) return false;
  for (size_t i = 0; i + k <= near; i++)
    if (!memcmp(at + i, word, k)) return true;
  return false;
}

bool lm_sniff(const u8 *at, size_t n) {
  return gguf_sniff(at, n) || safetensors_sniff(at, n) || is_index(at, n);
}

LmFile *lm_open(Ctx *c, const Source *s) {
  LmFile *f = NEW(&c->work, LmFile);
  f->c = c;
  f->path = s->path && strcmp(s->path, "-") ? s->path : NULL;
  f->loc = (Loc){.file = s->file, .index = -1};
  f->by_name = map_new(&c->work);
  if (gguf_sniff(s->at, s->n))
    open_gguf(f, s);
  else
    open_safetensors(f, s);
  return f;
}
