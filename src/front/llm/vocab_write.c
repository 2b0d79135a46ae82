/* vocab_write.c: tokenizer.json or tokenizer.model -> keys tokenizer.* of a GGUF file.
 *
 * In: the folder of a model. Out: kind gpt2 for byte-level BPE, if GGUF has a name for the
 * pre-tokenizer; kind llama for BPE with scores, from tokenizer.model only. Special tokens around a
 * text and the chat template are written too. All else is refused, because it would silently give
 * other tokens.
 */
#include "front/llm/vocab_write.h"
#include "front/llm/vocab_read.h"
#include "io/wire.h"

#include <string.h>

enum { TT_normal = 1, TT_unknown, TT_control, TT_user, TT_unused, TT_byte };

typedef struct WrittenToken {
  FileSpan text;
  u32 type;
  double score;
} WrittenToken;

typedef struct VocabKeys {
  LmFile *f;
  GgufOut *o;
  const VocabSpec *s;
  WrittenToken *token;
  u64 rows;
} VocabKeys;

static _Noreturn void refuse(const VocabKeys *v, const char *what) {
  fail(v->f->c, ERR_unsupported, v->f->loc, "the tokenizer: GGUF cannot represent %s", what);
}

/* ---- tokens ---- */

static void set_token(const VocabKeys *v, u64 id, FileSpan text, u32 type, double score) {
  if (id >= v->rows)
    fail(v->f->c, ERR_input, v->f->loc,
         "the tokenizer has token %llu, but the embedding has %llu rows", (unsigned long long)id,
         (unsigned long long)v->rows);
  v->token[id] = (WrittenToken){text, type, score};
}

/* Names rows without a token. */
static void name_unused(const VocabKeys *v) {
  for (u64 i = 0; i < v->rows; i++) {
    if (v->token[i].type) continue;
    Str name = str_fmt(v->f->c, "[PAD%llu]", (unsigned long long)i);
    v->token[i].text = (FileSpan){(const u8 *)str_text(v->f->c, name), str_len(v->f->c, name)};
    v->token[i].type = TT_unused;
  }
}

static void add_added(const VocabKeys *v, const JsonDoc *d) {
  const Json *list = d ? json_member(d, d->root, "added_tokens", JS_array) : NULL;
  for (u32 i = 0; list && i < list->n; i++) {
    const Json *j = &list->at[i], *text = json_require(d, j, "content", JS_string);
    bool special = json_bool(d, j, "special", false);
    i64 id = json_require(d, j, "id", JS_int)->i;
    double score = id >= 0 && (u64)id < v->rows ? v->token[id].score : 0;
    set_token(v, (u64)id, (FileSpan){(const u8 *)text->text, text->n},
              special ? TT_control : TT_user, score);
  }
}

static void put_tokens(const VocabKeys *v, bool scores) {
  GgufOut *o = v->o;
  gguf_put_list(o, "tokenizer.ggml.tokens", GT_string, v->rows);
  for (u64 i = 0; i < v->rows; i++) gguf_add_string(o, v->token[i].text.at, v->token[i].text.n);
  if (scores) {
    gguf_put_list(o, "tokenizer.ggml.scores", GT_f32, v->rows);
    for (u64 i = 0; i < v->rows; i++) gguf_add_float(o, v->token[i].score);
  }
  gguf_put_list(o, "tokenizer.ggml.token_type", GT_i32, v->rows);
  for (u64 i = 0; i < v->rows; i++) gguf_add_int(o, GT_i32, v->token[i].type);
}

/* ---- byte-level BPE ---- */

static void put_merges(const VocabKeys *v, const JsonDoc *d, const Json *model) {
  const Json *merges = json_require(d, model, "merges", JS_array);
  StrBuf t = sb_new(&v->f->c->scratch);
  gguf_put_list(v->o, "tokenizer.ggml.merges", GT_string, merges->n);
  for (u32 i = 0; i < merges->n; i++) {
    const Json *j = &merges->at[i];
    t.n = 0;
    if (j->kind == JS_string) {
      sb_put(&t, j->text, j->n);
    } else { /* checked by vocab_json.c: two strings */
      sb_put(&t, j->at[0].text, j->at[0].n);
      sb_puts(&t, " ");
      sb_put(&t, j->at[1].text, j->at[1].n);
    }
    gguf_add_string(v->o, t.at, t.n);
  }
}

static void put_bytes(const VocabKeys *v, const JsonDoc *d) {
  const Json *model = json_require(d, d->root, "model", JS_object);
  const Json *vocab = json_require(d, model, "vocab", JS_object);
  const char *pre = vocab_pre_name(v->s, &v->f->c->scratch);
  if (!pre) refuse(v, "its pre-tokenizer");
  for (u32 i = 0; i < vocab->n; i++) {
    const Json *text = json_key(vocab, i);
    set_token(v, (u64)json_value(vocab, i)->i, (FileSpan){(const u8 *)text->text, text->n},
              TT_normal, 0);
  }
  add_added(v, d);
  name_unused(v);
  gguf_put_text(v->o, "tokenizer.ggml.model", "gpt2");
  gguf_put_text(v->o, "tokenizer.ggml.pre", pre);
  put_tokens(v, false);
  put_merges(v, d, model);
}

/* ---- SentencePiece ---- */

typedef struct SpmPieces {
  u64 n;
  i64 kind;
  bool prefix, squeeze;
} SpmPieces;

static void read_piece(const VocabKeys *v, Wire k, u64 id) {
  FileSpan text = {(const u8 *)"", 0};
  double score = 0;
  i64 type = TT_normal;
  while (wire_next(&k)) {
    if (k.field == 1)
      text = wire_bytes(&k);
    else if (k.field == 2)
      score = (double)wire_float(&k);
    else if (k.field == 3)
      type = wire_int(&k);
    else
      wire_skip(&k);
  }
  set_token(v, id, text, (u32)type, score);
}

static void read_trainer(SpmPieces *p, Wire k) {
  while (wire_next(&k))
    if (k.field == 3)
      p->kind = wire_int(&k);
    else
      wire_skip(&k);
}

static void read_normalizer(const VocabKeys *v, SpmPieces *p, Wire k) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 2:
      if (wire_bytes(&k).n) refuse(v, "its character map (precompiled_charsmap)");
      break;
    case 3: p->prefix = wire_int(&k) != 0; break;
    case 4: p->squeeze = wire_int(&k) != 0; break;
    default: wire_skip(&k);
    }
  }
}

static SpmPieces read_pieces(const VocabKeys *v, File file) {
  SpmPieces p = {.kind = 1, .prefix = true, .squeeze = true};
  Wire k = wire_open(v->f->c, file.at, file.n, v->f->loc);
  while (wire_next(&k)) {
    if (k.field == 1)
      read_piece(v, wire_message(&k), p.n++);
    else if (k.field == 2)
      read_trainer(&p, wire_message(&k));
    else if (k.field == 3)
      read_normalizer(v, &p, wire_message(&k));
    else
      wire_skip(&k);
  }
  return p;
}

static void put_spm(const VocabKeys *v, File file, const JsonDoc *d) {
  SpmPieces p = read_pieces(v, file);
  if (p.kind != 2) refuse(v, "a SentencePiece model that is not BPE");
  add_added(v, d);
  name_unused(v);
  gguf_put_text(v->o, "tokenizer.ggml.model", "llama");
  gguf_put_text(v->o, "tokenizer.ggml.pre", "default");
  put_tokens(v, true);
  gguf_put_int(v->o, "tokenizer.ggml.add_space_prefix", GT_bool, p.prefix);
  if (p.squeeze) gguf_put_int(v->o, "tokenizer.ggml.remove_extra_whitespaces", GT_bool, 1);
}

/* ---- special tokens and entry point ---- */

static void put_id(const VocabKeys *v, const char *key, u32 id) {
  if (id != VOCAB_NONE) gguf_put_int(v->o, key, GT_u32, id);
}

/* Is the list empty, or just this token? */
static bool is_around(const VocabKeys *v, const U32Vec *list, u32 id) {
  if (list->n > 1 || (list->n && list->at[0] != id)) refuse(v, "the special tokens around a text");
  return list->n;
}

static void put_rest(const VocabKeys *v, bool spm) {
  const VocabSpec *s = v->s;
  u32 eot = VOCAB_NONE;
  bool bos = is_around(v, &s->prefix, s->head.bos), eos = is_around(v, &s->suffix, s->head.eos);
  if (spm) { /* tokenizer.model lacks it */
    bos = true;
    eos = false;
    lm_bool(v->f, "tokenizer_config.json:add_bos_token", &bos);
    lm_bool(v->f, "tokenizer_config.json:add_eos_token", &eos);
  }
  put_id(v, "tokenizer.ggml.bos_token_id", s->head.bos);
  put_id(v, "tokenizer.ggml.eos_token_id", s->head.eos);
  put_id(v, "tokenizer.ggml.padding_token_id", s->head.pad);
  if (spm) put_id(v, "tokenizer.ggml.unknown_token_id", s->head.unknown);
  for (u32 i = s->stop.n; i-- > 0;)
    if (s->stop.at[i] != s->head.eos) eot = s->stop.at[i];
  put_id(v, "tokenizer.ggml.eot_token_id", eot);
  gguf_put_int(v->o, "tokenizer.ggml.add_bos_token", GT_bool, bos);
  gguf_put_int(v->o, "tokenizer.ggml.add_eos_token", GT_bool, eos);
  if (s->nchat) gguf_put_string(v->o, "tokenizer.chat_template", s->chat, s->nchat);
}

void vocab_to_gguf(LmFile *f, u64 rows, GgufOut *o) {
  Ctx *c = f->c;
  const JsonDoc *d = lm_sibling_json(f, "tokenizer.json");
  File file;
  bool spm = lm_sibling_file(f, "tokenizer.model", &file);
  if (!d && !spm) {
    warn(c, f->loc,
         "the folder has neither tokenizer.json nor tokenizer.model: the file will have no "
         "tokenizer");
    return;
  }
  VocabKeys v = {.f = f, .o = o, .rows = rows, .token = NEWS(&c->work, WrittenToken, rows)};
  v.s = vocab_spec(c, lm_folder(c, f->path ? f->path : ""), &c->work);
  bool bytes = d && v.s->head.flags & VF_byte_level;
  if (bytes)
    put_bytes(&v, d);
  else if (spm)
    put_spm(&v, file, d);
  else
    refuse(&v, "a tokenizer.json that is not byte-level BPE (without tokenizer.model)");
  put_rest(&v, !bytes);
}
