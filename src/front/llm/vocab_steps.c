/* vocab_steps.c: normalizer, pre_tokenizer, post_processor and decoder of tokenizer.json. Each is a
 * tree of typed steps; one table lists the supported types.
 */
#include "front/llm/vocab_read.h"
#include <string.h>

enum { STEP_DEPTH = 8 };

const char pattern_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                            "\\s+(?!\\S)|\\s+";
const char pattern_digit[] = "\\p{N}";
const char pattern_punctuation[] = "[!-/:-@\\[-`{-~\\p{P}]";

/* A part of the file, and the key of the list in its steps of type Sequence. */
static const struct {
  const char *name, *list;
} parts[] = {
    [TP_normalizer] = {"normalizer", "normalizers"},
    [TP_pre_tokenizer] = {"pre_tokenizer", "pretokenizers"},
    [TP_post_processor] = {"post_processor", "processors"},
    [TP_decoder] = {"decoder", "decoders"},
};

typedef struct StepReader {
  VocabSpec *s;
  const JsonDoc *d;
  TokenizerPart part;
  u32 depth;
  u32 arg; /* of the row of the step */
} StepReader;

static _Noreturn void refuse(const StepReader *r, const Json *j, const char *name) {
  json_fail(r->d, j, ERR_unsupported, "%s %s is not supported", parts[r->part].name,
            show(r->d->c, str_of(r->d->c, name)));
}

static const char *text_of(const StepReader *r, const Json *j) {
  if (memchr(j->text, 0, j->n))
    json_fail(r->d, j, ERR_unsupported, "the string contains a zero byte");
  return str_text(r->d->c, json_str(r->d->c, j));
}

/* ---- normalizer ---- */

enum { FORM_compat = 1, FORM_compose = 2 };

static void norm_form(StepReader *r, const Json *j) {
  (void)j;
  spec_form(r->s, r->arg & FORM_compat, r->arg & FORM_compose);
}

static void norm_lower(StepReader *r, const Json *j) {
  (void)j;
  spec_lower(r->s);
}

static void norm_accents(StepReader *r, const Json *j) {
  (void)j;
  spec_step(r->s, false, (TokenizerStep){.kind = NK_drop, .a = spec_set(r->s, "M")});
}

static void norm_strip(StepReader *r, const Json *j) {
  spec_step(r->s, false,
            (TokenizerStep){.kind = NK_trim,
                            .a = json_bool(r->d, j, "strip_left", true),
                            .b = json_bool(r->d, j, "strip_right", true)});
}

static void norm_prepend(StepReader *r, const Json *j) {
  spec_prepend(r->s, false, text_of(r, json_require(r->d, j, "prepend", JS_string)), 0);
}

static void norm_replace(StepReader *r, const Json *j) {
  const Json *pattern = json_require(r->d, j, "pattern", JS_object);
  const Json *from = json_member(r->d, pattern, "String", JS_string);
  const char *to = text_of(r, json_require(r->d, j, "content", JS_string));
  if (!from) {
    const Json *regex = json_require(r->d, pattern, "Regex", JS_string);
    u32 n, unit = spec_chars(r->s, to, strlen(to), &n);
    if (!json_is(regex, " {2,}") || n != 1) refuse(r, regex, "Replace with this Regex");
    spec_step(r->s, false,
              (TokenizerStep){.kind = NK_collapse_runs, .a = ' ', .b = r->s->unit.at[unit]});
    return;
  }
  if (!from->n) json_fail(r->d, from, ERR_unsupported, "Replace of the empty string");
  spec_replace(r->s, false, text_of(r, from), to);
}

/* Order of the reference implementation: clean, spaces around CJK, accents, lower case. */
static void norm_bert(StepReader *r, const Json *j) {
  VocabSpec *s = r->s;
  bool lower = json_bool(r->d, j, "lowercase", true);
  if (json_bool(r->d, j, "clean_text", true)) {
    spec_step(s, false,
              (TokenizerStep){.kind = NK_drop, .a = spec_set(s, "C U+fffd -U+9 -U+a -U+d")});
    spec_step(s, false,
              (TokenizerStep){.kind = NK_replace_set, .a = spec_set(s, "White_Space"), .b = ' '});
  }
  if (json_bool(r->d, j, "handle_chinese_chars", true))
    spec_step(
        s, false,
        (TokenizerStep){.kind = NK_surround,
                        .a = spec_set(s, "U+4e00-9fff U+3400-4dbf U+20000-2a6df U+2a700-2b73f "
                                         "U+2b740-2b81f U+2b920-2ceaf U+f900-faff "
                                         "U+2f800-2fa1f")});
  if (json_bool(r->d, j, "strip_accents", lower)) {
    spec_form(s, false, false);
    spec_step(s, false, (TokenizerStep){.kind = NK_drop, .a = spec_set(s, "Mn")});
  }
  if (lower) spec_lower(s);
}

static int digit64(u8 ch) {
  if (ch >= 'A' && ch <= 'Z') return ch - 'A';
  if (ch >= 'a' && ch <= 'z') return ch - 'a' + 26;
  if (ch >= '0' && ch <= '9') return ch - '0' + 52;
  return ch == '+' ? 62 : ch == '/' ? 63 : -1;
}

static void norm_precompiled(StepReader *r, const Json *j) {
  const Json *map = json_member(r->d, j, "precompiled_charsmap", JS_string);
  if (!map) return;
  u8 *bytes = arena_alloc(r->s->a, map->n + 8);
  u32 bits = 0, have = 0;
  size_t n = 0;
  for (u32 i = 0; i < map->n && map->text[i] != '='; i++) {
    int x = digit64((u8)map->text[i]);
    if (x < 0) json_fail(r->d, map, ERR_input, "precompiled_charsmap is not base64");
    bits = bits << 6 | (u32)x;
    have += 6;
    if (have >= 8) {
      have -= 8;
      bytes[n++] = (u8)(bits >> have);
    }
  }
  vocab_charsmap(r->s, bytes, n);
  spec_step(r->s, false, (TokenizerStep){.kind = NK_charsmap});
}

/* ---- pre_tokenizer ---- */

static SplitKind behavior(const StepReader *r, const Json *j) {
  static const char *const name[] = {"Isolated",           "Removed",        "",
                                     "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const Json *b = json_require(r->d, j, "behavior", JS_string);
  for (u32 i = 0; i < sizeof name / sizeof *name; i++)
    if (b->n && json_is(b, name[i])) return (SplitKind)i;
  refuse(r, b, text_of(r, b));
}

static void split_bytes(StepReader *r, const Json *j) {
  r->s->head.flags |= VF_byte_level;
  if (json_bool(r->d, j, "add_prefix_space", true)) {
    if (r->s->split.n) refuse(r, j, "ByteLevel with add_prefix_space after other steps");
    spec_prepend(r->s, true, " ", PREPEND_unless);
  }
  if (json_bool(r->d, j, "use_regex", true))
    spec_split(r->s, pattern_gpt2, sizeof pattern_gpt2 - 1, SB_isolated);
}

/* A pattern that matches the string literally. */
static Str quoted(const StepReader *r, const Json *j) {
  StrBuf t = sb_new(&r->d->c->scratch);
  for (u32 i = 0; i < j->n; i++) {
    u8 ch = (u8)j->text[i];
    bool plain =
        ch >= 128 || (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z');
    if (!plain) sb_puts(&t, "\\");
    sb_put(&t, &j->text[i], 1);
  }
  return str_intern(r->d->c, t.at, t.n);
}

static void split_split(StepReader *r, const Json *j) {
  const Json *pattern = json_require(r->d, j, "pattern", JS_object);
  const Json *regex = json_member(r->d, pattern, "Regex", JS_string);
  SplitKind kind = behavior(r, j);
  Str text = regex ? json_str(r->d->c, regex)
                   : quoted(r, json_require(r->d, pattern, "String", JS_string));
  if (json_bool(r->d, j, "invert", false)) {
    if (kind != SB_isolated && kind != SB_removed) refuse(r, j, "an inverted Split that merges");
    if (kind == SB_removed) kind = SB_kept;
  }
  spec_split(r->s, str_text(r->d->c, text), str_len(r->d->c, text), kind);
}

static void split_digits(StepReader *r, const Json *j) {
  bool single = json_bool(r->d, j, "individual_digits", false);
  spec_split(r->s, pattern_digit, strlen(pattern_digit), single ? SB_isolated : SB_joined);
}

static void split_bert(StepReader *r, const Json *j) {
  (void)j;
  spec_split(r->s, "\\s", 2, SB_removed);
  spec_split(r->s, pattern_punctuation, strlen(pattern_punctuation), SB_isolated);
}

static void split_white(StepReader *r, const Json *j) {
  static const char words[] = "\\w+|[^\\w\\s]+";
  (void)j;
  spec_split(r->s, words, sizeof words - 1, SB_kept);
}

static void split_space(StepReader *r, const Json *j) {
  (void)j;
  spec_split(r->s, "\\s", 2, SB_removed);
}

static void split_punctuation(StepReader *r, const Json *j) {
  spec_split(r->s, pattern_punctuation, strlen(pattern_punctuation), behavior(r, j));
}

static void split_delimiter(StepReader *r, const Json *j) {
  Str text = quoted(r, json_require(r->d, j, "delimiter", JS_string));
  spec_split(r->s, str_text(r->d->c, text), str_len(r->d->c, text), SB_removed);
}

static void split_meta(StepReader *r, const Json *j) {
  const Json *mark = json_require(r->d, j, "replacement", JS_string);
  const Json *scheme = json_member(r->d, j, "prepend_scheme", JS_string);
  const char *with = text_of(r, mark);
  bool always = scheme ? json_is(scheme, "always") : json_bool(r->d, j, "add_prefix_space", true);
  bool first = json_is(scheme, "first");
  if (!json_is(mark, SPM_SPACE)) refuse(r, mark, "Metaspace with another replacement");
  if (r->s->split.n) refuse(r, j, "Metaspace after other steps");
  spec_replace(r->s, true, " ", with);
  if (always || first) spec_prepend(r->s, true, with, PREPEND_unless | (first ? PREPEND_first : 0));
  if (json_bool(r->d, j, "split", true)) spec_split(r->s, with, strlen(with), SB_next);
}

/* ---- post_processor ---- */

static void no_effect(StepReader *r, const Json *j) {
  (void)r;
  (void)j;
}

/* ["[SEP]", 102] */
static u32 pair_id(const StepReader *r, const Json *j, const char *key) {
  const Json *pair = json_require(r->d, j, key, JS_array);
  if (pair->n != 2 || pair->at[1].kind != JS_int || pair->at[1].i < 0 ||
      pair->at[1].i >= r->s->token.n)
    json_fail(r->d, pair, ERR_input, "'%s' does not have the token id given with it", key);
  return (u32)pair->at[1].i;
}

static void post_bert(StepReader *r, const Json *j) {
  *vec_push(r->s->a, &r->s->prefix) = pair_id(r, j, "cls");
  *vec_push(r->s->a, &r->s->suffix) = pair_id(r, j, "sep");
}

static void post_template(StepReader *r, const Json *j) {
  const Json *list = json_require(r->d, j, "single", JS_array);
  const Json *special = json_require(r->d, j, "special_tokens", JS_object);
  bool after_text = false;
  for (u32 i = 0; i < list->n; i++) {
    if (json_get(&list->at[i], "Sequence")) {
      if (after_text) refuse(r, &list->at[i], "a template that contains the text twice");
      after_text = true;
      continue;
    }
    const Json *token = json_require(r->d, &list->at[i], "SpecialToken", JS_object);
    const Json *name = json_require(r->d, token, "id", JS_string);
    const Json *known = json_get_bytes(special, name->text, name->n);
    if (!known) json_fail(r->d, name, ERR_input, "the special token is not in special_tokens");
    const Json *ids = json_require(r->d, known, "ids", JS_array);
    for (u32 k = 0; k < ids->n; k++) {
      if (ids->at[k].kind != JS_int || ids->at[k].i < 0 || ids->at[k].i >= r->s->token.n)
        json_fail(r->d, &ids->at[k], ERR_input, "expected a token id");
      *vec_push(r->s->a, after_text ? &r->s->suffix : &r->s->prefix) = (u32)ids->at[k].i;
    }
  }
}

/* ---- decoder ---- */

static void decode_bytes(StepReader *r, const Json *j) {
  (void)j;
  r->s->head.decode = VD_bytes;
}

static void decode_replace(StepReader *r, const Json *j) {
  const Json *pattern = json_require(r->d, j, "pattern", JS_object);
  if (!json_is(json_get(pattern, "String"), SPM_SPACE) || !json_is(json_get(j, "content"), " "))
    refuse(r, j, "Replace of anything but U+2581 by a space");
  r->s->head.decode = VD_spaces;
}

static void decode_fallback(StepReader *r, const Json *j) {
  (void)j;
  r->s->head.flags |= VF_bad_one_by_one;
}

static void decode_strip(StepReader *r, const Json *j) {
  if (!json_is(json_get(j, "content"), " ") || json_int(r->d, j, "start", 0) != 1 ||
      json_int(r->d, j, "stop", 0) != 0)
    refuse(r, j, "Strip of anything but one leading space");
  r->s->head.flags |= VF_strip_first;
}

static void decode_wordpiece(StepReader *r, const Json *j) {
  if (!json_is(json_get(j, "prefix"), "##")) refuse(r, j, "WordPiece with another prefix than ##");
  r->s->head.decode = VD_wordpiece;
  if (json_bool(r->d, j, "cleanup", true)) r->s->head.flags |= VF_clean;
}

static void decode_meta(StepReader *r, const Json *j) {
  const Json *scheme = json_member(r->d, j, "prepend_scheme", JS_string);
  bool never = scheme ? json_is(scheme, "never") : !json_bool(r->d, j, "add_prefix_space", true);
  r->s->head.decode = VD_spaces;
  if (!never) r->s->head.flags |= VF_strip_spaces;
}

/* ---- all parts ---- */

/* Steps other than Sequence. */
static const struct {
  TokenizerPart part;
  const char *type;
  void (*read)(StepReader *r, const Json *j);
  u32 arg;
} steps[] = {
    {TP_normalizer, "NFC", norm_form, FORM_compose},
    {TP_normalizer, "NFD", norm_form, 0},
    {TP_normalizer, "NFKC", norm_form, FORM_compat | FORM_compose},
    {TP_normalizer, "NFKD", norm_form, FORM_compat},
    {TP_normalizer, "Lowercase", norm_lower, 0},
    {TP_normalizer, "StripAccents", norm_accents, 0},
    {TP_normalizer, "Strip", norm_strip, 0},
    {TP_normalizer, "Prepend", norm_prepend, 0},
    {TP_normalizer, "Replace", norm_replace, 0},
    {TP_normalizer, "BertNormalizer", norm_bert, 0},
    {TP_normalizer, "Precompiled", norm_precompiled, 0},
    {TP_pre_tokenizer, "ByteLevel", split_bytes, 0},
    {TP_pre_tokenizer, "Split", split_split, 0},
    {TP_pre_tokenizer, "Digits", split_digits, 0},
    {TP_pre_tokenizer, "BertPreTokenizer", split_bert, 0},
    {TP_pre_tokenizer, "Whitespace", split_white, 0},
    {TP_pre_tokenizer, "WhitespaceSplit", split_space, 0},
    {TP_pre_tokenizer, "Punctuation", split_punctuation, 0},
    {TP_pre_tokenizer, "CharDelimiterSplit", split_delimiter, 0},
    {TP_pre_tokenizer, "Metaspace", split_meta, 0},
    {TP_post_processor, "ByteLevel", no_effect, 0},
    {TP_post_processor, "BertProcessing", post_bert, 0},
    {TP_post_processor, "RobertaProcessing", post_bert, 0},
    {TP_post_processor, "TemplateProcessing", post_template, 0},
    {TP_decoder, "ByteLevel", decode_bytes, 0},
    {TP_decoder, "Replace", decode_replace, 0},
    {TP_decoder, "ByteFallback", decode_fallback, 0},
    {TP_decoder, "Fuse", no_effect, 0},
    {TP_decoder, "Strip", decode_strip, 0},
    {TP_decoder, "WordPiece", decode_wordpiece, 0},
    {TP_decoder, "Metaspace", decode_meta, 0},
};
enum { STEPS = sizeof steps / sizeof *steps };

static void read_step(StepReader *r, const Json *j) {
  if (!j || j->kind == JS_null) return;
  const Json *type = json_require(r->d, j, "type", JS_string);
  u32 row = 0;
  if (++r->depth > STEP_DEPTH)
    json_fail(r->d, j, ERR_unsupported, "%s nested too deeply", parts[r->part].name);
  if (json_is(type, "Sequence")) {
    const Json *list = json_require(r->d, j, parts[r->part].list, JS_array);
    for (u32 i = 0; i < list->n; i++) read_step(r, &list->at[i]);
  } else {
    while (row < STEPS && (steps[row].part != r->part || !json_is(type, steps[row].type))) row++;
    if (row == STEPS) refuse(r, type, str_text(r->d->c, json_str(r->d->c, type)));
    r->arg = steps[row].arg;
    steps[row].read(r, j);
  }
  r->depth--;
}

void vocab_json_part(VocabSpec *s, const JsonDoc *d, TokenizerPart part) {
  read_step(&(StepReader){.s = s, .d = d, .part = part}, json_get(d->root, parts[part].name));
}
