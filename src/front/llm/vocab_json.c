/* vocab_json.c: tokenizer.json -> VocabSpec: model, tokens, added tokens.
 *
 * Truncation and padding are ignored: the caller knows the maximum length.
 */
#include "front/llm/vocab_read.h"
#include <string.h>

static _Noreturn void fail_unsupported(const JsonDoc *d, const Json *j, const char *what) {
  json_fail(d, j, ERR_unsupported, "%s is not supported", what);
}

/* The token with that id. Missing ids before it are filled in. */
static VocabToken *token(VocabSpec *s, const JsonDoc *d, const Json *j, i64 id) {
  if (id < 0 || id >= VOCAB_MAX_TOKENS)
    json_fail(d, j, ERR_input, "token id %lld is out of range, expected 0 to %d", (long long)id,
              VOCAB_MAX_TOKENS - 1);
  while (s->token.n <= id) *vec_push(s->a, &s->token) = (VocabToken){.flags = TF_unused};
  return &s->token.at[id];
}

static void set_token(VocabSpec *s, const JsonDoc *d, const Json *text, const Json *id) {
  if (text->kind != JS_string || id->kind != JS_int)
    json_fail(d, text, ERR_input, "expected a token");
  VocabToken *t = token(s, d, id, id->i);
  t->at = (const u8 *)text->text;
  t->n = text->n;
  t->flags = 0;
}

/* Marks byte tokens: "<0x0A>". */
static void mark_bytes(VocabSpec *s) {
  static const char hex[] = "0123456789ABCDEF";
  for (u32 i = 0; i < s->token.n; i++) {
    VocabToken *t = &s->token.at[i];
    if (t->n != 6 || memcmp(t->at, "<0x", 3) || t->at[5] != '>') continue;
    const char *hi = t->at[3] ? strchr(hex, t->at[3]) : NULL;
    const char *lo = t->at[4] ? strchr(hex, t->at[4]) : NULL;
    if (!hi || !lo) continue;
    u8 *byte = arena_alloc(s->a, 1);
    *byte = (u8)((hi - hex) << 4 | (lo - hex));
    t->at = byte;
    t->n = 1;
    t->flags |= TF_byte;
  }
}

static u32 id_of(const JsonDoc *d, const Json *vocab, const char *at, size_t n, const Json *from) {
  const Json *id = json_get_bytes(vocab, at, n);
  if (!id || id->kind != JS_int)
    json_fail(d, from, ERR_input, "token '%s' is not in the vocabulary",
              show(d->c, str_intern(d->c, at, n)));
  return (u32)id->i;
}

/* A merge is "a b" or ["a", "b"]. */
static void read_merge(VocabSpec *s, const JsonDoc *d, const Json *vocab, const Json *j, u32 rank,
                       StrBuf *whole) {
  const char *a = j->text, *b;
  size_t na = j->n, nb;
  if (j->kind == JS_string) {
    const char *space = memchr(a, ' ', na);
    if (!space)
      json_fail(d, j, ERR_input, "merge '%s' has one token, expected two separated by a space",
                show(d->c, json_str(d->c, j)));
    b = space + 1;
    nb = na - (size_t)(b - a);
    na = (size_t)(space - a);
  } else if (j->kind == JS_array && j->n == 2 && j->at[0].kind == JS_string &&
             j->at[1].kind == JS_string) {
    a = j->at[0].text, na = j->at[0].n;
    b = j->at[1].text, nb = j->at[1].n;
  } else {
    json_fail(d, j, ERR_input, "expected a merge of two tokens");
  }
  whole->n = 0;
  sb_put(whole, a, na);
  sb_put(whole, b, nb);
  *vec_push(s->a, &s->merge) = (TokenMerge){.left = id_of(d, vocab, a, na, j),
                                            .right = id_of(d, vocab, b, nb, j),
                                            .id = id_of(d, vocab, whole->at, whole->n, j),
                                            .rank = rank};
}

static void read_vocab(VocabSpec *s, const JsonDoc *d, const Json *model) {
  const Json *vocab = json_require(d, model, "vocab", JS_object);
  for (u32 i = 0; i < vocab->n; i++) set_token(s, d, json_key(vocab, i), json_value(vocab, i));
  const Json *unknown = json_member(d, model, "unk_token", JS_string);
  const Json *id = unknown ? json_get_bytes(vocab, unknown->text, unknown->n) : NULL;
  if (unknown && id) s->head.unknown = (u32)id->i;
}

static void read_bpe(VocabSpec *s, const JsonDoc *d, const Json *model) {
  static const char *const affix[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  s->head.model = VM_bpe;
  for (int i = 0; i < 2; i++) {
    const Json *j = json_member(d, model, affix[i], JS_string);
    if (j && j->n) fail_unsupported(d, j, affix[i]);
  }
  if (json_number(d, model, "dropout", 0) != 0) fail_unsupported(d, model, "dropout other than 0");
  read_vocab(s, d, model);
  if (json_bool(d, model, "fuse_unk", false)) s->head.flags |= VF_fuse_unknown;
  if (json_bool(d, model, "byte_fallback", false)) s->head.flags |= VF_byte_fallback;
  if (json_bool(d, model, "ignore_merges", false)) s->head.flags |= VF_whole_first;
  const Json *merges = json_require(d, model, "merges", JS_array);
  const Json *vocab = json_get(model, "vocab");
  StrBuf whole = sb_new(&d->c->scratch);
  for (u32 i = 0; i < merges->n; i++) read_merge(s, d, vocab, &merges->at[i], i, &whole);
}

static void read_unigram(VocabSpec *s, const JsonDoc *d, const Json *model) {
  const Json *vocab = json_require(d, model, "vocab", JS_array);
  s->head.model = VM_unigram;
  s->head.flags |= VF_fuse_unknown;
  if (json_bool(d, model, "byte_fallback", false)) s->head.flags |= VF_byte_fallback;
  for (u32 i = 0; i < vocab->n; i++) {
    const Json *pair = &vocab->at[i];
    if (pair->kind != JS_array || pair->n != 2 || pair->at[0].kind != JS_string ||
        (pair->at[1].kind != JS_float && pair->at[1].kind != JS_int))
      json_fail(d, pair, ERR_input, "expected a token and its score");
    const Json *score = &pair->at[1];
    *token(s, d, pair, i) =
        (VocabToken){.at = (const u8 *)pair->at[0].text,
                     .n = pair->at[0].n,
                     .score = score->kind == JS_int ? (double)score->i : score->f};
  }
  i64 unknown = json_int(d, model, "unk_id", -1);
  if (unknown >= (i64)vocab->n)
    json_fail(d, model, ERR_input, "'unk_id' is %lld, expected a token id below %u",
              (long long)unknown, (u32)vocab->n);
  if (unknown >= 0) s->head.unknown = (u32)unknown;
}

static void read_wordpiece(VocabSpec *s, const JsonDoc *d, const Json *model) {
  s->head.model = VM_wordpiece;
  s->head.decode = VD_wordpiece;
  read_vocab(s, d, model);
  s->head.word_max = (u32)json_int(d, model, "max_input_chars_per_word", 100);
  const Json *prefix = json_member(d, model, "continuing_subword_prefix", JS_string);
  if (prefix && !json_is(prefix, "##")) fail_unsupported(d, prefix, "a prefix other than ##");
}

static void read_model(VocabSpec *s, const JsonDoc *d) {
  const Json *model = json_require(d, d->root, "model", JS_object);
  const Json *type = json_member(d, model, "type", JS_string);
  /* Older files have no type. */
  if (json_is(type, "BPE") || (!type && json_get(model, "merges")))
    read_bpe(s, d, model);
  else if (json_is(type, "Unigram"))
    read_unigram(s, d, model);
  else if (json_is(type, "WordPiece"))
    read_wordpiece(s, d, model);
  else if (type)
    json_fail(d, type, ERR_unsupported,
              "model %s is not supported: expected BPE, Unigram or WordPiece",
              show(d->c, json_str(d->c, type)));
  else
    json_require(d, model, "type", JS_string);
}

static void read_added(VocabSpec *s, const JsonDoc *d) {
  static const struct {
    const char *name;
    u32 flag;
  } flags[] = {{"special", TF_special},
               {"lstrip", TF_lstrip},
               {"rstrip", TF_rstrip},
               {"single_word", TF_single_word}};
  const Json *list = json_member(d, d->root, "added_tokens", JS_array);
  for (u32 i = 0; list && i < list->n; i++) {
    const Json *j = &list->at[i], *text = json_require(d, j, "content", JS_string);
    VocabToken *t = token(s, d, j, json_require(d, j, "id", JS_int)->i);
    *t = (VocabToken){
        .at = (const u8 *)text->text, .n = text->n, .flags = TF_added, .score = t->score};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
      if (json_bool(d, j, flags[k].name, false)) t->flags |= flags[k].flag;
    *vec_push(s->a, &s->added) = (AddedToken){.at = t->at,
                                              .n = t->n,
                                              .id = (u32)(t - s->token.at),
                                              .normalized = json_bool(d, j, "normalized", false)};
    if ((t->flags & TF_single_word) && s->head.word_scanner == VOCAB_NONE) {
      s->head.word_scanner = s->scanner_at.n;
      *vec_push(s->a, &s->scanner_at) = s->scanner.n;
      pattern_compile(s->c, spec_unicode(s), "\\w", 2, s->loc, &s->scanner, s->a);
    }
  }
}

/* Tokens matched in normalized text are normalized too. */
static void normalize_added(VocabSpec *s) {
  bool any = false;
  for (u32 i = 0; i < s->added.n; i++) any = any || s->added.at[i].normalized;
  if (!any || !s->norm.n) return;
  size_t n;
  Vocab v;
  const u8 *block = vocab_make(s, &n);
  if (!vocab_open(&v, block, n)) return;
  for (u32 i = 0; i < s->added.n; i++) {
    AddedToken *t = &s->added.at[i];
    if (!t->normalized || t->n > VOCAB_TOKEN_BYTES) continue;
    TokenizerMem room = {.n = 8 * ((size_t)t->n * v.head->grow + v.head->more)};
    Mark mark = arena_mark(&s->c->scratch);
    room.at = arena_alloc(&s->c->scratch, room.n);
    size_t length = t->n;
    if (!vocab_normalize(&v, VP_norm, true, &t->at, &length, &room))
      internal_error(s->c, s->loc, "the table of added tokens is full");
    t->at = arena_copy(s->a, t->at, length);
    t->n = (u32)length;
    arena_rewind(&s->c->scratch, mark);
  }
}

/* A token of tokenizer_config.json: its text, or {"content": text}. */
static u32 named_token(const VocabSpec *s, const JsonDoc *config, const char *key) {
  const Json *j = json_get(config->root, key);
  if (j && j->kind == JS_object) j = json_get(j, "content");
  if (!j || j->kind != JS_string) return VOCAB_NONE;
  for (u32 i = 0; i < s->token.n; i++)
    if (s->token.at[i].n == j->n && !memcmp(s->token.at[i].at, j->text, j->n)) return i;
  return VOCAB_NONE;
}

static void read_config(VocabSpec *s, const JsonDoc *config) {
  s->head.bos = named_token(s, config, "bos_token");
  s->head.eos = named_token(s, config, "eos_token");
  s->head.pad = named_token(s, config, "pad_token");
  const Json *chat = json_get(config->root, "chat_template");
  for (u32 i = 0; chat && chat->kind == JS_array && i < chat->n; i++)
    if (json_is(json_get(&chat->at[i], "name"), "default")) {
      chat = json_get(&chat->at[i], "template");
      break;
    }
  if (!chat || chat->kind != JS_string) return;
  s->chat = chat->text;
  s->nchat = chat->n;
}

VocabSpec *vocab_from_json(const JsonDoc *d, const JsonDoc *config, Arena *a) {
  VocabSpec *s = spec_new(d->c, a, d->loc);
  if (d->root->kind != JS_object) json_fail(d, d->root, ERR_input, "expected an object");
  read_model(s, d);
  read_added(s, d);
  vocab_json_part(s, d, TP_normalizer);
  vocab_json_part(s, d, TP_pre_tokenizer);
  vocab_json_part(s, d, TP_post_processor);
  if (s->head.flags & VF_byte_level)
    spec_bytes_alphabet(s);
  else
    s->head.decode = s->head.model == VM_wordpiece ? VD_wordpiece : VD_spaces;
  vocab_json_part(s, d, TP_decoder);
  if (s->head.flags & VF_byte_fallback) mark_bytes(s);
  if (!(s->head.flags & VF_byte_level) && (s->norm.n || s->prep.n)) {
    /* replaces invalid UTF-8 before any other step */
    TokenizerStep *last = vec_push(a, &s->norm);
    memmove(s->norm.at + 1, s->norm.at, (size_t)(last - s->norm.at) * sizeof *last);
    s->norm.at[0] = (TokenizerStep){.kind = NK_fix_utf8};
  }
  if (config) read_config(s, config);
  spec_stop_names(s);
  normalize_added(s);
  return s;
}
