/* vocab_gguf.c: keys tokenizer.* of a GGUF file -> VocabSpec.
 *
 * Supports the kinds gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 (unigram), bert
 * (WordPiece). For gpt2 the file only names its pre-tokenizer; the table below defines the names.
 */
#include "front/llm/vocab_read.h"
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD         "[^\\r\\n\\p{L}\\p{N}]?"

static const char llama3[] = CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1,3}|" TAIL;
static const char qwen2[] = CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}|" TAIL;
static const char tekken[] =
    LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER
               "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char gpt4o[] =
    LEAD UPPER "*" LOWER "+" CONTRACTIONS "?|" LEAD UPPER "+" LOWER "*" CONTRACTIONS
               "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char falcon_marks[] = "[\\p{P}\\$\\+<=>\\^~\\|`]+";
static const char default_marks[] = "[\\p{P}\\$\\+<=>\\^~\\|]+";
static const char gpt2_open[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";

enum { PT_nfc = 1, PT_whole_first = 2, PT_bos = 4 };

static const struct PreTokenizer {
  const char *name;
  u32 flags;
  const char *pattern[5];
} pre_tokenizers[] = {
    {"default", 0, {default_marks, gpt2_open, "\\p{N}+", "[0-9][0-9][0-9]", NULL}},
    {"gpt-2", 0, {pattern_gpt2, NULL}},
    {"phi-2", 0, {pattern_gpt2, NULL}},
    {"mpt", 0, {pattern_gpt2, NULL}},
    {"olmo", 0, {pattern_gpt2, NULL}},
    {"llama-bpe", PT_whole_first | PT_bos, {llama3, NULL}},
    {"llama3", PT_whole_first | PT_bos, {llama3, NULL}},
    {"llama-v3", PT_whole_first | PT_bos, {llama3, NULL}},
    {"smollm3", PT_whole_first, {llama3, NULL}},
    {"dbrx", 0, {llama3, NULL}},
    {"smaug-bpe", 0, {llama3, NULL}},
    {"qwen2", PT_nfc, {qwen2, NULL}},
    {"deepseek-r1-qwen", PT_nfc, {qwen2, NULL}},
    {"smollm", 0, {pattern_digit, pattern_gpt2, NULL}},
    {"starcoder", 0, {pattern_digit, pattern_gpt2, NULL}},
    {"refact", 0, {pattern_digit, pattern_gpt2, NULL}},
    {"command-r", 0, {pattern_digit, pattern_gpt2, NULL}},
    {"codeshell", 0, {pattern_digit, pattern_gpt2, NULL}},
    {"falcon", 0, {falcon_marks, pattern_gpt2, "[0-9][0-9][0-9]", NULL}},
    {"tekken", PT_whole_first, {tekken, NULL}},
    {"gpt-4o", 0, {gpt4o, NULL}},
    {"llama4", PT_bos, {gpt4o, NULL}},
};

typedef struct GgufVocab {
  Ctx *c;
  const Gguf *g;
  Loc loc;
  VocabSpec *s;
} GgufVocab;

static _Noreturn void bad(const GgufVocab *v, const char *key, const char *what) {
  fail(v->c, ERR_input, v->loc, "key '%s': %s", key, what);
}

/* ---- values ---- */

static const GgufKey *key_of(const GgufVocab *v, const char *key, bool array, GgufType type) {
  const GgufKey *k = gguf_key(v->c, v->g, key);
  if (!k) return NULL;
  if (k->array != array || (type != GT_COUNT && k->type != type))
    fail(v->c, ERR_input, v->loc, "key '%s' has type %s%s, expected %s%s", key,
         k->array ? "array of " : "", gguf_type_name[k->type], array ? "array of " : "",
         type == GT_COUNT ? "any type" : gguf_type_name[type]);
  return k;
}

static const GgufKey *list_of(const GgufVocab *v, const char *key, GgufType type) {
  const GgufKey *k = key_of(v, key, true, type);
  if (k && k->n > VOCAB_MAX_TOKENS)
    bad(v, key, "the list has more elements than a vocabulary may have tokens");
  return k;
}

static bool flag(const GgufVocab *v, const char *key, bool otherwise) {
  const GgufKey *k = key_of(v, key, false, GT_bool);
  i64 x = otherwise;
  const u8 *at = k ? k->at : NULL;
  return k && gguf_int(k->type, &at, &x) ? x != 0 : otherwise;
}

static u32 id(const GgufVocab *v, const char *key, u32 otherwise) {
  const GgufKey *k = key_of(v, key, false, GT_COUNT);
  if (!k) return otherwise;
  const u8 *at = k->at;
  i64 x;
  if (!gguf_int(k->type, &at, &x)) bad(v, key, "expected a token id");
  /* 2^32 - 1: none */
  return x >= 0 && x < v->s->token.n ? (u32)x : VOCAB_NONE;
}

static FileSpan text(const GgufVocab *v, const char *key) {
  const GgufKey *k = key_of(v, key, false, GT_string);
  const u8 *at = k ? k->at : NULL;
  return k ? gguf_string(&at) : (FileSpan){NULL, 0};
}

static bool span_is(FileSpan t, const char *name) {
  return t.at && t.n == strlen(name) && !memcmp(t.at, name, t.n);
}

/* ---- tokens ---- */

static void byte_token(const GgufVocab *v, VocabToken *t) {
  static const char hex[] = "0123456789ABCDEF";
  const char *hi = t->n == 6 && t->at[3] ? strchr(hex, t->at[3]) : NULL;
  const char *lo = t->n == 6 && t->at[4] ? strchr(hex, t->at[4]) : NULL;
  if (!hi || !lo) bad(v, "tokenizer.ggml.tokens", "a byte token is not of the form <0xHH>");
  u8 *byte = arena_alloc(v->s->a, 1);
  *byte = (u8)((hi - hex) << 4 | (lo - hex));
  t->at = byte;
  t->n = 1;
}

static void read_tokens(const GgufVocab *v) {
  enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE };
  static const u32 flags[] = {0, 0,      TF_unknown | TF_special, TF_special | TF_added, TF_added,
                              0, TF_byte};
  VocabSpec *s = v->s;
  const GgufKey *tokens = list_of(v, "tokenizer.ggml.tokens", GT_string);
  const GgufKey *scores = list_of(v, "tokenizer.ggml.scores", GT_f32);
  const GgufKey *types = list_of(v, "tokenizer.ggml.token_type", GT_COUNT);
  if (!tokens) bad(v, "tokenizer.ggml.tokens", "expected the list of tokens, found no such key");
  if ((scores && scores->n != tokens->n) || (types && types->n != tokens->n))
    bad(v, "tokenizer.ggml.tokens", "the numbers of tokens, scores and types differ");
  const u8 *at = tokens->at, *score = scores ? scores->at : NULL, *type = types ? types->at : NULL;
  for (u32 i = 0; i < tokens->n; i++) {
    FileSpan span = gguf_string(&at);
    VocabToken t = {.at = span.at,
                    .n = span.n > VOCAB_TOKEN_BYTES ? VOCAB_TOKEN_BYTES + 1 : (u32)span.n};
    i64 kind = NORMAL;
    if (score) gguf_float(GT_f32, &score, &t.score);
    if (type && !gguf_int(types->type, &type, &kind))
      bad(v, "tokenizer.ggml.token_type", "expected integers");
    t.flags = kind >= 0 && kind <= BYTE ? flags[kind] : 0;
    if (kind == BYTE) byte_token(v, &t);
    if (kind == CONTROL || kind == USER)
      *vec_push(s->a, &s->added) = (AddedToken){.at = t.at, .n = t.n, .id = i};
    *vec_push(s->a, &s->token) = t;
  }
}

static void read_merges(const GgufVocab *v) {
  VocabSpec *s = v->s;
  const GgufKey *merges = list_of(v, "tokenizer.ggml.merges", GT_string);
  if (!merges) bad(v, "tokenizer.ggml.merges", "missing");
  Map id_of = map_new(s->a);
  for (u32 i = 0; i < s->token.n; i++)
    if (!(s->token.at[i].flags & TF_special))
      *map_put_bytes(&id_of, s->token.at[i].at, s->token.at[i].n) = i + 1;
  const u8 *at = merges->at;
  StrBuf whole = sb_new(s->a);
  for (u32 i = 0; i < merges->n; i++) {
    FileSpan m = gguf_string(&at);
    /* only the first character of a token may be a space, so the next space separates them */
    const u8 *space = m.n > 1 ? memchr(m.at + 1, ' ', m.n - 1) : NULL;
    if (!space) bad(v, "tokenizer.ggml.merges", "a merge has only one token");
    size_t left = (size_t)(space - m.at), right = m.n - left - 1;
    whole.n = 0;
    sb_put(&whole, m.at, left);
    sb_put(&whole, space + 1, right);
    const u32 *a = map_get_bytes(&id_of, m.at, left), *b = map_get_bytes(&id_of, space + 1, right),
              *ab = map_get_bytes(&id_of, whole.at, whole.n);
    if (!a || !b || !ab) bad(v, "tokenizer.ggml.merges", "a merge refers to unknown tokens");
    *vec_push(s->a, &s->merge) = (TokenMerge){*a - 1, *b - 1, *ab - 1, i};
  }
}

/* ---- kinds ---- */

static void set_pretokenizer(VocabSpec *s, const struct PreTokenizer *p) {
  if (p->flags & PT_nfc) spec_form(s, false, true);
  for (u32 i = 0; p->pattern[i]; i++)
    spec_split(s, p->pattern[i], strlen(p->pattern[i]), SB_isolated);
}

static void set_gpt2(const GgufVocab *v) {
  VocabSpec *s = v->s;
  FileSpan pre = text(v, "tokenizer.ggml.pre");
  const struct PreTokenizer *p = NULL;
  if (!pre.at) pre = (FileSpan){(const u8 *)"default", 7};
  for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
    if (span_is(pre, pre_tokenizers[i].name)) p = &pre_tokenizers[i];
  if (!p)
    fail(v->c, ERR_unsupported, v->loc, "pre-tokenizer '%s' is not supported",
         show(v->c, str_intern(v->c, pre.at, pre.n)));
  read_merges(v);
  s->head.model = VM_bpe;
  s->head.decode = VD_bytes;
  s->head.flags |= VF_byte_level | (p->flags & PT_whole_first ? VF_whole_first : 0);
  set_pretokenizer(s, p);
  spec_bytes_alphabet(s);
  if (flag(v, "tokenizer.ggml.add_bos_token", p->flags & PT_bos) && s->head.bos != VOCAB_NONE)
    *vec_push(s->a, &s->prefix) = s->head.bos;
  if (flag(v, "tokenizer.ggml.add_eos_token", false) && s->head.eos != VOCAB_NONE)
    *vec_push(s->a, &s->suffix) = s->head.eos;
}

static FileSpan dfa_of(const VocabSpec *s, u32 i) {
  u32 from = s->scanner_at.at[i];
  u32 to = i + 1 < s->scanner_at.n ? s->scanner_at.at[i + 1] : s->scanner.n;
  return (FileSpan){(const u8 *)(s->scanner.at + from), (to - from) * sizeof *s->scanner.at};
}

/* Do both split text in the same steps? */
static bool same_pretokenizer(const VocabSpec *s, const VocabSpec *t) {
  if (s->split.n != t->split.n || s->norm.n != t->norm.n || s->prep.n != t->prep.n) return false;
  for (u32 i = 0; i < s->norm.n; i++)
    if (s->norm.at[i].kind != t->norm.at[i].kind) return false;
  for (u32 i = 0; i < s->split.n; i++) {
    FileSpan x = dfa_of(s, s->split.at[i].a), y = dfa_of(t, t->split.at[i].a);
    if (s->split.at[i].kind != t->split.at[i].kind || x.n != y.n || memcmp(x.at, y.at, x.n) != 0)
      return false;
  }
  return true;
}

const char *vocab_pre_name(const VocabSpec *s, Arena *a) {
  bool whole = s->head.flags & VF_whole_first;
  for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++) {
    const struct PreTokenizer *p = &pre_tokenizers[i];
    VocabSpec *probe = spec_new(s->c, a, s->loc);
    if (whole != ((p->flags & PT_whole_first) != 0)) continue;
    set_pretokenizer(probe, p);
    if (same_pretokenizer(s, probe)) return p->name;
  }
  return NULL;
}

/* unigram: kind t5 */
static void set_spm(const GgufVocab *v, bool unigram) {
  VocabSpec *s = v->s;
  bool prefix = flag(v, "tokenizer.ggml.add_space_prefix", true), bytes = false;
  s->head.model = unigram ? VM_unigram : VM_bpe;
  s->head.decode = VD_spaces;
  for (u32 i = 0; i < s->token.n; i++) bytes = bytes || (s->token.at[i].flags & TF_byte);
  s->head.flags |= VF_fuse_unknown | VF_bad_one_by_one | (bytes ? VF_byte_fallback : 0) |
                   (prefix ? VF_strip_first : 0) | (unigram ? VF_narrow_sums : 0);
  spec_step(s, false, (TokenizerStep){.kind = NK_fix_utf8});
  const GgufKey *map = list_of(v, "tokenizer.ggml.precompiled_charsmap", GT_COUNT);
  if (map && (map->type == GT_u8 || map->type == GT_i8) && map->n) {
    vocab_charsmap(s, map->at, (size_t)map->n);
    spec_step(s, false, (TokenizerStep){.kind = NK_charsmap});
  }
  if (flag(v, "tokenizer.ggml.remove_extra_whitespaces", false))
    spec_step(s, false, (TokenizerStep){.kind = NK_collapse_spaces});
  spec_replace(s, false, " ", SPM_SPACE);
  if (prefix) spec_prepend(s, false, SPM_SPACE, 0);
  if (flag(v, "tokenizer.ggml.add_bos_token", !unigram) && s->head.bos != VOCAB_NONE)
    *vec_push(s->a, &s->prefix) = s->head.bos;
  if (flag(v, "tokenizer.ggml.add_eos_token", unigram) && s->head.eos != VOCAB_NONE)
    *vec_push(s->a, &s->suffix) = s->head.eos;
  s->head.ntoken = s->token.n;
  if (!unigram) spec_merges_of_scores(s);
}

/* Tokens are stored in SentencePiece form: U+2581 begins a word. */
static void set_bert(const GgufVocab *v) {
  VocabSpec *s = v->s;
  s->head.model = VM_wordpiece;
  s->head.decode = VD_wordpiece;
  s->head.flags |= VF_clean;
  s->head.word_max = 100;
  for (u32 i = 0; i < s->token.n; i++) {
    VocabToken *t = &s->token.at[i];
    if (t->flags & TF_special) continue;
    bool begins = t->n >= 3 && !memcmp(t->at, SPM_SPACE, 3);
    u8 *at = arena_alloc(s->a, t->n + 2);
    memcpy(at, "##", 2);
    memcpy(at + (begins ? 0 : 2), t->at + (begins ? 3 : 0), t->n - (begins ? 3 : 0));
    t->n = begins ? t->n - 3 : t->n + 2;
    t->at = at;
  }
  spec_step(s, false,
            (TokenizerStep){.kind = NK_drop, .a = spec_set(s, "C U+fffd -U+9 -U+a -U+d")});
  spec_step(
      s, false,
      (TokenizerStep){.kind = NK_surround,
                      .a = spec_set(s, "U+4e00-9fff U+3400-4dbf U+20000-2a6df U+2a700-2b73f "
                                       "U+2b740-2b81f U+2b920-2ceaf U+f900-faff U+2f800-2fa1f")});
  spec_form(s, false, false);
  spec_step(s, false, (TokenizerStep){.kind = NK_drop, .a = spec_set(s, "Mn")});
  spec_lower(s);
  spec_split(s, "\\s", 2, SB_removed);
  spec_split(s, pattern_punctuation, strlen(pattern_punctuation), SB_isolated);
  u32 sep = id(v, "tokenizer.ggml.seperator_token_id", s->head.eos);
  u32 cls = id(v, "tokenizer.ggml.cls_token_id", s->head.bos);
  if (cls != VOCAB_NONE) *vec_push(s->a, &s->prefix) = cls;
  if (sep != VOCAB_NONE) *vec_push(s->a, &s->suffix) = sep;
}

VocabSpec *vocab_from_gguf(Ctx *c, const Gguf *g, Loc loc, Arena *a) {
  GgufVocab v = {c, g, loc, spec_new(c, a, loc)};
  VocabSpec *s = v.s;
  FileSpan model = text(&v, "tokenizer.ggml.model"), chat = text(&v, "tokenizer.chat_template");
  if (!model.at)
    fail(c, ERR_unsupported, loc, "the file has no tokenizer (key tokenizer.ggml.model)");
  read_tokens(&v);
  s->head.bos = id(&v, "tokenizer.ggml.bos_token_id", VOCAB_NONE);
  s->head.eos = id(&v, "tokenizer.ggml.eos_token_id", VOCAB_NONE);
  s->head.pad = id(&v, "tokenizer.ggml.padding_token_id", VOCAB_NONE);
  s->head.unknown = id(&v, "tokenizer.ggml.unknown_token_id", VOCAB_NONE);
  if (span_is(model, "gpt2")) {
    s->head.unknown = VOCAB_NONE; /* bytes without a token are dropped */
    set_gpt2(&v);
  } else if (span_is(model, "llama")) {
    set_spm(&v, false);
  } else if (span_is(model, "t5")) {
    set_spm(&v, true);
  } else if (span_is(model, "bert")) {
    set_bert(&v);
  } else {
    fail(c, ERR_unsupported, loc, "tokenizer '%s' is not supported",
         show(c, str_intern(c, model.at, model.n)));
  }
  static const char *const stop[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  for (int i = 0; i < 2; i++) {
    u32 x = id(&v, stop[i], VOCAB_NONE);
    if (x != VOCAB_NONE) *vec_push(a, &s->stop) = x;
  }
  spec_stop_names(s);
  s->chat = (const char *)chat.at;
  s->nchat = (u32)chat.n;
  return s;
}
