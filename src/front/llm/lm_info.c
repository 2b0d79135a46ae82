/* lm_info.c: language models and text encoders in the reader table.
 *
 * In: the bytes of a model. Out: the report of `inspect` (sizes, tensor types, cost per token) and
 * the graph. `inspect` lists sizes for every architecture, including those that cannot be built.
 */
#include "front/llm/lm_hparams.h"

#include <string.h>

Model *lm_read(Ctx *c, const Source *s) {
  Model *m = NEW(&c->work, Model);
  LmFile *f = lm_open(c, s);
  m->own = f;
  m->is_decoder_lm = !lm_is_embedder(f);
  lm_declare_io(c, m, m->is_decoder_lm ? "logits" : lm_has_head(f) ? "scores" : "vector");
  return m;
}

/* Rounding of activations to int8 changes the greedy answers of models below this size. */
enum { SMALL_MODEL = 500000000 };

static u32 activation_bits(const LmFile *f, const LmOptions *o) {
  u64 n = 0;
  if (o->x_bits) return o->x_bits;
  for (u32 i = 0; i < f->tensor.n; i++) {
    const QBlockInfo *b = &qblock_info[f->tensor.at[i].kind];
    n += f->tensor.at[i].bytes / b->bytes * b->elems;
  }
  return n < SMALL_MODEL ? 16 : 8;
}

Graph *lm_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o) {
  LmFile *f = (LmFile *)m->own;
  (void)c, (void)s;
  lm_require_arch(f);
  lm_check_quantized(f);
  f->x_bits = activation_bits(f, &o->language);
  return lm_decoder(f, o);
}

/* ---- report ---- */

enum { MOST_LAYERS = 1 << 16 };

/* A size and its keys in GGUF and config.json. */
typedef struct SizeKey {
  const char *name, *gguf, *config;
} SizeKey;

enum {
  SZ_layers,
  SZ_embed,
  SZ_ffn,
  SZ_heads,
  SZ_kv_heads,
  SZ_head,
  SZ_vocab,
  SZ_context,
  SZ_COUNT
};
static const SizeKey sizes[SZ_COUNT] = {
    [SZ_layers] = {"layers", ".block_count", "num_hidden_layers"},
    [SZ_embed] = {"embedding", ".embedding_length", "hidden_size"},
    [SZ_ffn] = {"feed forward", ".feed_forward_length", "intermediate_size"},
    [SZ_heads] = {"heads", ".attention.head_count", "num_attention_heads"},
    [SZ_kv_heads] = {"key value heads", ".attention.head_count_kv", "num_key_value_heads"},
    [SZ_head] = {"head size", ".attention.key_length", "head_dim"},
    [SZ_vocab] = {"vocabulary", ".vocab_size", "vocab_size"},
    [SZ_context] = {"context", ".context_length", "max_position_embeddings"},
};

static void add_number(Ctx *c, ModelInfo *out, const char *name, u64 n) {
  *vec_push(&c->work, &out->more) = (ModelInfoItem){name, 0, n};
}

static void add_string(LmFile *f, ModelInfo *out, const char *name, const char *key) {
  FileSpan s;
  if (lm_string(f, key, &s) && s.n)
    *vec_push(&f->c->work, &out->more) = (ModelInfoItem){name, str_intern(f->c, s.at, s.n), 0};
}

/* The largest element if layers differ; 0: absent. */
static i64 read_size(LmFile *f, const SizeKey *k) {
  LmList l;
  i64 most = 0, v;
  if (!lm_list(f, f->gguf ? k->gguf : k->config, &l)) return 0;
  while (lm_next_int(&l, 0, INT32_MAX, &v))
    if (v > most) most = v;
  return most;
}

static int kind_of(const ModelInfo *out, const char *name) {
  u32 i = 0;
  while (i < out->stored.n && strcmp(out->stored.at[i].kind, name)) i++;
  return (int)i;
}

static void count_tensors(LmFile *f, ModelInfo *out) {
  for (u32 i = 0; i < f->tensor.n; i++) {
    const StoredTensor *t = &f->tensor.at[i];
    const QBlockInfo *b = &qblock_info[t->kind];
    u32 at = (u32)kind_of(out, b->name);
    if (at == out->stored.n) *vec_push(&f->c->work, &out->stored) = (StoredCount){.kind = b->name};
    StoredCount *s = &out->stored.at[at];
    s->n++;
    s->elems += t->bytes / b->bytes * b->elems;
    s->bytes += t->bytes;
    out->params += t->bytes / b->bytes * b->elems;
    out->bytes += t->bytes;
  }
}

/* Counts every weight once, but only one row of an embedding that is not also the output. */
static void cost_of_token(LmFile *f, ModelInfo *out, const i64 *size) {
  const StoredTensor *embed = lm_tensor(f, lm_tensor_name(f, LP_embed, 0, ".weight"));
  const StoredTensor *head = lm_tensor(f, lm_tensor_name(f, LP_output, 0, ".weight"));
  if (!embed) return;
  u64 row = embed->dim[0] ? embed->bytes / (u64)embed->dim[0] : 0;
  out->token_bytes = out->bytes - (head ? embed->bytes - row : 0);
  add_number(f->c, out, "bytes read per token", out->token_bytes);
  i64 heads = size[SZ_kv_heads] ? size[SZ_kv_heads] : size[SZ_heads];
  if (!size[SZ_layers] || !heads || !size[SZ_head] || size[SZ_layers] > MOST_LAYERS) return;
  u64 n = 2 * 2; /* keys and values, f16 */
  if (size_mul(n, (u64)size[SZ_layers], &n) && size_mul(n, (u64)heads, &n) &&
      size_mul(n, (u64)size[SZ_head], &n))
    add_number(f->c, out, "KV bytes per position", out->kv_bytes = n);
}

void lm_info(Ctx *c, const Model *m, ModelInfo *out) {
  LmFile *f = (LmFile *)m->own; /* not const: other files of the model are opened on demand */
  i64 size[SZ_COUNT];
  out->version = f->gguf ? f->gguf->version : 0;
  *vec_push(&c->work, &out->more) = (ModelInfoItem){"architecture", f->arch, 0};
  if (f->gguf) add_string(f, out, "name", "general.name");
  for (u32 i = 0; i < SZ_COUNT; i++) size[i] = read_size(f, &sizes[i]);
  if (!size[SZ_head] && size[SZ_heads]) size[SZ_head] = size[SZ_embed] / size[SZ_heads];
  if (!size[SZ_vocab] && f->gguf) {
    const GgufKey *k = gguf_key(c, f->gguf, "tokenizer.ggml.tokens");
    size[SZ_vocab] = k ? (i64)k->n : 0;
  }
  for (u32 i = 0; i < SZ_COUNT; i++)
    if (size[i]) add_number(c, out, sizes[i].name, (u64)size[i]);
  count_tensors(f, out);
  cost_of_token(f, out, size);
}
