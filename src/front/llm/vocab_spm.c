/* vocab_spm.c: tokenizer.model, a protobuf of SentencePiece -> VocabSpec.
 *
 * Supports BPE with scores and unigram models. User-defined pieces are matched in normalized text
 * and never split. Kinds 3 and 4 (words, characters) are refused.
 */
#include "front/llm/vocab_read.h"
#include "io/wire.h"
#include <string.h>

typedef enum SpmType {
  SPM_normal = 1,
  SPM_unknown,
  SPM_control,
  SPM_user,
  SPM_unused,
  SPM_byte
} SpmType;

void vocab_charsmap(VocabSpec *s, const u8 *at, size_t n) {
  u32 trie = 0;
  if (!n) return;
  if (n >= 4) trie = at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24;
  if (n < 8 || trie < 4 || trie % 4 || trie > n - 4 || n > 1 << 26)
    fail(s->c, ERR_input, s->loc,
         "precompiled_charsmap: the trie of %u bytes does not fit its %llu bytes", trie,
         (unsigned long long)n);
  u32 *copy = arena_alloc(s->a, n);
  memcpy(copy, at + 4, n - 4);
  for (u32 i = 0; i < trie / 4; i++) { /* little-endian in the file */
    const u8 *p = at + 4 + (size_t)4 * i;
    copy[i] = p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
  }
  s->charsmap = (const u8 *)copy;
  s->ncharsmap = (u32)(n - 4);
  s->head.charsmap_trie = trie;
}

static void read_piece(VocabSpec *s, Wire k) {
  VocabToken t = {.at = (const u8 *)""};
  i64 type = SPM_normal;
  while (wire_next(&k)) {
    if (k.field == 1) {
      FileSpan text = wire_bytes(&k);
      t.at = text.at;
      t.n = text.n > VOCAB_TOKEN_BYTES ? VOCAB_TOKEN_BYTES + 1 : (u32)text.n;
    } else if (k.field == 2) {
      t.score = (double)wire_float(&k);
    } else if (k.field == 3) {
      type = wire_int(&k);
    } else {
      wire_skip(&k);
    }
  }
  static const u32 flags[] = {0,        0,         TF_unknown, TF_special | TF_added,
                              TF_added, TF_unused, TF_byte};
  if (type < SPM_normal || type > SPM_byte) wire_fail(&k, k.pos, "the type of a piece is unknown");
  if (s->token.n >= VOCAB_MAX_TOKENS) wire_limit(&k, k.pos, "the model has too many pieces");
  t.flags = flags[type];
  if (type == SPM_unknown) s->head.unknown = s->token.n;
  if (type == SPM_byte) {
    static const char hex[] = "0123456789ABCDEF";
    const char *hi = t.n == 6 && t.at[3] ? strchr(hex, t.at[3]) : NULL;
    const char *lo = t.n == 6 && t.at[4] ? strchr(hex, t.at[4]) : NULL;
    if (!hi || !lo) wire_fail(&k, k.pos, "a byte piece is not of the form <0xHH>");
    u8 *byte = arena_alloc(s->a, 1);
    *byte = (u8)((hi - hex) << 4 | (lo - hex));
    t.at = byte;
    t.n = 1;
  }
  if (type == SPM_control || type == SPM_user)
    *vec_push(s->a, &s->added) =
        (AddedToken){.at = t.at, .n = t.n, .id = s->token.n, .normalized = type == SPM_user};
  *vec_push(s->a, &s->token) = t;
}

typedef struct SpmSpec {
  i64 kind, bos, eos, pad; /* trainer_spec */
  bool byte_fallback;
  FileSpan unknown;                     /* output for the unknown token */
  bool prefix, squeeze, escape, suffix; /* normalizer_spec; suffix: spaces follow words */
} SpmSpec;

static void read_trainer(SpmSpec *x, Wire k) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 3: x->kind = wire_int(&k); break;
    case 24: x->suffix = wire_int(&k) != 0; break;
    case 44: x->unknown = wire_bytes(&k); break;
    case 35: x->byte_fallback = wire_int(&k) != 0; break;
    case 41: x->bos = wire_int(&k); break;
    case 42: x->eos = wire_int(&k); break;
    case 43: x->pad = wire_int(&k); break;
    default: wire_skip(&k);
    }
  }
}

static void read_normalizer(VocabSpec *s, SpmSpec *x, Wire k) {
  while (wire_next(&k)) {
    switch (k.field) {
    case 2: {
      FileSpan map = wire_bytes(&k);
      vocab_charsmap(s, map.at, map.n);
      break;
    }
    case 3: x->prefix = wire_int(&k) != 0; break;
    case 4: x->squeeze = wire_int(&k) != 0; break;
    case 5: x->escape = wire_int(&k) != 0; break;
    default: wire_skip(&k);
    }
  }
}

static void set_steps(VocabSpec *s, const SpmSpec *x) {
  if (x->suffix) fail(s->c, ERR_unsupported, s->loc, "treat_whitespace_as_suffix is not supported");
  if (!x->escape)
    fail(s->c, ERR_unsupported, s->loc, "a model without escape_whitespaces is not supported");
  spec_step(s, false, (TokenizerStep){.kind = NK_fix_utf8});
  if (s->ncharsmap) spec_step(s, false, (TokenizerStep){.kind = NK_charsmap});
  if (x->squeeze) spec_step(s, false, (TokenizerStep){.kind = NK_collapse_spaces});
  spec_replace(s, false, " ", SPM_SPACE);
  if (x->prefix) spec_prepend(s, false, SPM_SPACE, 0);
  s->head.decode = VD_spaces;
  s->head.flags |= VF_bad_one_by_one | VF_fuse_unknown | (x->prefix ? VF_strip_first : 0) |
                   (x->byte_fallback ? VF_byte_fallback : 0);
}

static u32 id_or_none(const VocabSpec *s, i64 id) {
  return id >= 0 && id < s->token.n && (s->token.at[id].flags & TF_special) ? (u32)id : VOCAB_NONE;
}

VocabSpec *vocab_from_spm(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a) {
  VocabSpec *s = spec_new(c, a, loc);
  SpmSpec x = {
      .kind = 1, .bos = 1, .eos = 2, .pad = -1, .prefix = true, .squeeze = true, .escape = true};
  Wire k = wire_open(c, at, n, loc);
  while (wire_next(&k)) {
    if (k.field == 1)
      read_piece(s, wire_message(&k));
    else if (k.field == 2)
      read_trainer(&x, wire_message(&k));
    else if (k.field == 3)
      read_normalizer(s, &x, wire_message(&k));
    else
      wire_skip(&k);
  }
  if (!s->token.n) fail(c, ERR_input, loc, "not a SentencePiece model: it has no pieces");
  if (x.kind != 1 && x.kind != 2)
    fail(c, ERR_unsupported, loc, "SentencePiece model type %lld is not supported",
         (long long)x.kind);
  set_steps(s, &x);
  if (s->head.unknown != VOCAB_NONE) {
    VocabToken *t = &s->token.at[s->head.unknown];
    t->at = x.unknown.at ? x.unknown.at : (const u8 *)" \xe2\x81\x87 ";
    t->n = !x.unknown.at ? 5 : x.unknown.n < 64 ? (u32)x.unknown.n : 64;
  }
  s->head.bos = id_or_none(s, x.bos);
  s->head.eos = id_or_none(s, x.eos);
  s->head.pad = id_or_none(s, x.pad);
  for (u32 i = 0; i < s->added.n; i++) { /* its form in normalized text */
    AddedToken *t = &s->added.at[i];
    StrBuf text = sb_new(a);
    for (u32 j = 0; t->normalized && j < t->n; j++)
      sb_put(&text, t->at[j] == ' ' ? SPM_SPACE : (const char *)&t->at[j], t->at[j] == ' ' ? 3 : 1);
    if (t->normalized) t->at = (const u8 *)text.at, t->n = (u32)text.n;
  }
  s->head.ntoken = s->token.n;
  if (x.kind == 1) {
    s->head.model = VM_unigram;
    s->head.flags |= VF_narrow_sums;
  } else {
    s->head.model = VM_bpe;
    spec_merges_of_scores(s);
  }
  spec_stop_names(s);
  return s;
}
