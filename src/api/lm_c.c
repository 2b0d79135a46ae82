/* lm_c.c: adds text functions to the C of a language model.
 *
 * In: a language model with its program. Out: macros, declarations and code for the file of
 * NAME_run, and the tables of the tokenizer, which are stored with the weights. Method: the text
 * below with names filled in, after the code of src/text (text_code) and the functions it needs,
 * all static.
 *
 * Template: ${name}, and ${NAME} in capitals. If the weights are an argument, ${weights_param} is
 * that parameter and ${weights_arg} its name in a call.
 */
#include "api/api_internal.h"
#include "tokenizer/tokenizer.h"
#include "chat/sample.h"

#include <inttypes.h>
#include <string.h>

extern const unsigned char text_code[];
extern const size_t text_code_size;

static const char declarations[] =
    "\n/* ---- tokens ---- */\n\n"
    "/* Runs n ids after those before, at most ${NAME}_CHUNK at a time; logits: ${NAME}_VOCAB, of "
    "the last "
    "id.\n"
    " * Returns the statuses of ${name}_run, and 2: n is 0, ids or logits is NULL, or an id is not "
    "from "
    "0\n"
    " * to ${NAME}_VOCAB - 1; 5: they exceed ${NAME}_CONTEXT positions. Then nothing has changed. "
    "*/\n"
    "int ${name}_prefill(void *arena, ${weights_param}const int32_t *ids, size_t n, float "
    "*logits);\n"
    "/* ${name}_prefill of one id. */\n"
    "int ${name}_decode(void *arena, ${weights_param}int32_t id, float *logits);\n"
    "/* Number of ids run since ${name}_reset; -1: not an arena, or never reset. */\n"
    "int64_t ${name}_position(const void *arena);\n"
    "/* Keeps only the first position ids. 1: as ${name}_run. 2: there are fewer, or layers with "
    "a\n"
    " * sliding window have overwritten them: then only 0 is possible. */\n"
    "int ${name}_rewind(void *arena, int64_t position);\n"
    "\n/* ---- text ---- */\n\n"
    "/* Converts UTF-8 text to ids; returns their number. -1: more than max. -2: memory is less "
    "than\n"
    " * ${NAME}_TOKENIZE_BYTES(bytes), or not aligned to 8; or text or ids is NULL; or "
    "normalization\n"
    " * makes the text more than twice as long: give more memory. -3: a regular expression of the\n"
    " * tokenizer scans the text more than 256 times. -4: as ${name}_run. flags: ${NAME}_SPECIAL: "
    "parse the\n"
    " * text of special tokens; ${NAME}_AROUND: add the tokens that the model expects around a "
    "text.\n"
    " * said: NULL, or for each byte of text nonzero if a user wrote it; such bytes never become\n"
    " * part of a special token. */\n"
    "int64_t ${name}_tokenize(${weights_param}const void *text, size_t bytes, const unsigned char "
    "*said, int flags,\n"
    "                   int32_t *ids, size_t max, void *memory, size_t memory_bytes);\n"
    "/* State of ${name}_detokenize. Set it to zero first; special: print special tokens, too. */\n"
    "typedef struct ${name}_stream {\n"
    "  unsigned char kept[4], count, begun, special;\n"
    "} ${name}_stream;\n"
    "/* Appends an id; writes the complete characters known so far, without a final zero. Returns\n"
    " * their length, at most ${NAME}_PIECE_BYTES. id -1: the rest. 0 if stream or to is NULL. */\n"
    "size_t ${name}_detokenize(${weights_param}${name}_stream *stream, int32_t id, char *to);\n"
    "/* Does this id end an answer? */\n"
    "int ${name}_ends(${weights_param}int32_t id);\n"
    "/* Sampling: penalties, top_k, top_p, min_p, temperature, a random draw. All zero: greedy,\n"
    " * the lowest id among equal logits. */\n"
    "typedef struct ${name}_sampler {\n"
    "  float temperature; /* 0 or less: greedy */\n"
    "  uint32_t top_k; /* 0: all */\n"
    "  float top_p; /* 0, 1 or more: all */\n"
    "  float min_p; /* fraction of the highest probability; 0: all */\n"
    "  float repeat, frequency, presence; /* penalties of tokens in the window; 0: none */\n"
    "  uint32_t window; /* number of past tokens; 0: all that are given */\n"
    "  uint64_t state; /* initially the seed */\n"
    "} ${name}_sampler;\n"
    "/* past: ids so far, the last one at the end; used for penalties only. memory:\n"
    " * ${NAME}_SAMPLE_BYTES, aligned to 4. -1: s, logits or memory is NULL, or past is and npast "
    "is not "
    "0. "
    "*/\n"
    "int32_t ${name}_sample(${name}_sampler *s, const float *logits, const int32_t *past, size_t "
    "npast,\n"
    "                 void *memory);\n";

static const char code[] =
    "\nint64_t ${name}_position(const void *arena) {\n"
    "  int64_t at;\n"
    "  if (!arena || (uintptr_t)arena % ${NAME}_ARENA_ALIGN) return -1;\n"
    "  memcpy(&at, (const unsigned char *)arena + IG_POS_OFFSET, sizeof at);\n"
    "  return at < 0 || at > ${NAME}_CONTEXT ? -1 : at;\n"
    "}\n"
    "\nint ${name}_prefill(void *arena, ${weights_param}const int32_t *ids, size_t n, float "
    "*logits) {\n"
    "  const int64_t before = ${name}_position(arena);\n"
    "  if (!arena || (uintptr_t)arena % ${NAME}_ARENA_ALIGN) return 1;\n"
    "  if (!n || !ids || !logits) return 2;\n"
    "  if (before < 0 || n > (size_t)(${NAME}_CONTEXT - before)) return 5;\n"
    "  for (size_t i = 0; i < n; i++)\n"
    "    if (ids[i] < 0 || ids[i] >= ${NAME}_VOCAB) return 2;\n"
    "  for (size_t i = 0; i < n; i += ${NAME}_CHUNK) {\n"
    "    const size_t some = n - i < ${NAME}_CHUNK ? n - i : ${NAME}_CHUNK;\n"
    "    const int status = ${name}_run(arena, ${weights_arg}(int64_t)some, ids + i, logits);\n"
    "    if (status) return status;\n"
    "  }\n"
    "  return 0;\n"
    "}\n"
    "\nint ${name}_decode(void *arena, ${weights_param}int32_t id, float *logits) {\n"
    "  return ${name}_prefill(arena, ${weights_arg}&id, 1, logits);\n"
    "}\n"
    "\nint ${name}_rewind(void *arena, int64_t position) {\n"
    "  if (!arena || (uintptr_t)arena % ${NAME}_ARENA_ALIGN) return 1;\n"
    "  const int64_t now = ${name}_position(arena);\n"
    "  if (position < 0 || position > now) return 2;\n"
    "  if (position && position < now && now > IG_RING) return 2;\n"
    "  memcpy((unsigned char *)arena + IG_POS_OFFSET, &position, sizeof position);\n"
    "  return 0;\n"
    "}\n"
    "\nint64_t ${name}_tokenize(${weights_param}const void *text, size_t bytes, const unsigned "
    "char *said, int flags,\n"
    "                   int32_t *ids, size_t max, void *memory, size_t memory_bytes) {\n"
    "  Vocab v;\n"
    "  if (!IG_TABLE_FITS || !vocab_open(&v, IG_TABLE, IG_TABLE_BYTES)) return -4;\n"
    "  if (!memory || (uintptr_t)memory % 8 || (!text && bytes) || (!ids && max)) return "
    "VOCAB_ROOM;\n"
    "  return vocab_encode(&v, text, bytes, said, (u32)flags, (u32 *)ids, max, memory,\n"
    "                      memory_bytes);\n"
    "}\n"
    "\nsize_t ${name}_detokenize(${weights_param}${name}_stream *stream, int32_t id, char *to) {\n"
    "  Vocab v;\n"
    "  Detok d;\n"
    "  size_t n;\n"
    "  if (!stream || !to || id < -1 || id >= IG_TOKENS) return 0;\n"
    "  if (!IG_TABLE_FITS || !vocab_open(&v, IG_TABLE, IG_TABLE_BYTES)) return 0;\n"
    "  memcpy(d.kept, stream->kept, sizeof d.kept);\n"
    "  d.nkept = stream->count < 3 ? stream->count : 3;\n"
    "  d.begun = stream->begun;\n"
    "  d.special = stream->special;\n"
    "  n = id < 0 ? detok_end(&d, &v, (u8 *)to) : detok_put(&d, &v, (u32)id, (u8 *)to);\n"
    "  memcpy(stream->kept, d.kept, sizeof d.kept);\n"
    "  stream->count = d.nkept;\n"
    "  stream->begun = d.begun;\n"
    "  return n;\n"
    "}\n"
    "\nint ${name}_ends(${weights_param}int32_t id) {\n"
    "  Vocab v;\n"
    "  return IG_TABLE_FITS && vocab_open(&v, IG_TABLE, IG_TABLE_BYTES) && id >= 0 &&\n"
    "         vocab_stops(&v, (u32)id);\n"
    "}\n"
    "\nint32_t ${name}_sample(${name}_sampler *s, const float *logits, const int32_t *past, size_t "
    "npast,\n"
    "                 void *memory) {\n"
    "  TokenSampler own;\n"
    "  u32 id;\n"
    "  if (!s || !logits || !memory || (!past && npast)) return -1;\n"
    "  own.temperature = s->temperature;\n"
    "  own.top_k = s->top_k;\n"
    "  own.top_p = s->top_p > 0 ? s->top_p : 1;\n"
    "  own.min_p = s->min_p;\n"
    "  own.repeat = s->repeat;\n"
    "  own.frequency = s->frequency;\n"
    "  own.presence = s->presence;\n"
    "  own.window = s->window;\n"
    "  own.state = s->state;\n"
    "  id = sample_next(&own, logits, IG_TOKENS, (const u32 *)past, npast, memory);\n"
    "  s->state = own.state;\n"
    "  return (int32_t)id;\n"
    "}\n";

/* Twice the stack that gcc uses without optimization; a test checks it. */
enum { STACK_AROUND = 512, STACK_TEXT = 6144 };

/* Values for the template. */
typedef struct LmFacts {
  i64 vocab, chunk, context;
  u64 kept; /* offset in the arena of the number of positions */
  i64 ring; /* minimum positions that every layer keeps */
  u32 tokens;
} LmFacts;

i64 api_kv_min_length(const Ingot *m) {
  i64 ring = api_context_length(m);
  for (BufId b = 1; b < m->p->buf.n; b++) {
    const Buf *x = prog_buf(m->p, b);
    if (x->space == BS_state && x->rank == 4 && dim_is_const(x->dim[2]) && x->dim[2] < ring)
      ring = x->dim[2];
  }
  return ring;
}

/* Requires ids of one dimension as input, logits of the last id as output, and one growing length.
 */
static bool find_facts(const Ingot *m, LmFacts *f) {
  const Prog *p = m->p;
  u32 sizes = 0, kept = 0;
  i64 lo;
  u64 at;
  Sym sym;
  if (p->in.n != 1 || p->out.n != 1) return false;
  const Buf *in = prog_buf(p, p->in.at[0]), *out = prog_buf(p, p->out.at[0]);
  if (in->dt != DT_i32 || in->rank != 1 || out->dt != DT_f32 || out->rank != 2 ||
      out->dim[0] != 1 || !dim_is_const(out->dim[1]))
    return false;
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) sizes += dim_syminfo(p->dims, s)->kind == SY_input;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next)
    if (prog_is_state_size(p, id, &sym, &at) && !kept++) f->kept = at;
  f->vocab = out->dim[1];
  f->context = api_context_length(m);
  f->ring = api_kv_min_length(m);
  dim_bounds(p->dims, in->dim[0], &lo, &f->chunk);
  return sizes == 1 && kept == 1 && lo == 1;
}

static const char *filled(Ingot *m, const char *text, const TemplateVar *vars) {
  StrBuf t = sb_new(&m->c->keep);
  sb_subst(m->c, &t, text, strlen(text), vars);
  return sb_cstr(&t);
}

static void put_chat(StrBuf *t, const char *upper, const char *name, const char *text) {
  if (!text) return;
  sb_fmt(t, "#define %s_CHAT_%s ", upper, name);
  emit_string(t, text, strlen(text));
  sb_puts(t, "\n");
}

static void put_macros(StrBuf *t, const char *upper, const LmAssets *s, const Vocab *v,
                       const LmFacts *f, u32 nbaked) { /* s: with dates filled in */
  sb_fmt(t, "#define %s_VOCAB %lld /* logits */\n", upper, (long long)f->vocab);
  sb_fmt(t, "#define %s_CONTEXT %lld /* positions */\n", upper, (long long)f->context);
  sb_fmt(t, "#define %s_CHUNK %lld /* maximum ids of one run */\n", upper, (long long)f->chunk);
  if (nbaked)
    sb_fmt(t,
           "/* Ids of the system prompt that are in the KV cache after a reset: run the ids after "
           "them. */\n"
           "#define %s_BAKED %u\n",
           upper, nbaked);
  sb_fmt(t, "#define %s_SPECIAL %d\n#define %s_AROUND %d\n", upper, VE_parse_special, upper,
         VE_add_special);
  sb_fmt(t, "#define %s_TOKENIZE_BYTES(bytes) ((size_t)(bytes) * %zu + %zu)\n", upper,
         vocab_encode_bytes(v, 1) - vocab_encode_bytes(v, 0), vocab_encode_bytes(v, 0));
  sb_fmt(t, "#define %s_PIECE_BYTES %zu\n", upper, detok_max_bytes(v));
  sb_fmt(t, "#define %s_SAMPLE_BYTES %zu\n", upper, f->tokens * sizeof(Candidate));
  const ChatFormat *c = &s->chat;
  if (c->open || c->open_system)
    sb_puts(
        t,
        "/* Chat template: before the first message; before and after the system prompt; after a\n"
        " * message, up to the answer; after an answer, up to the next message. */\n");
  put_chat(t, upper, "OPEN", c->open);
  put_chat(t, upper, "OPEN_SYSTEM", c->open_system);
  put_chat(t, upper, "SYSTEM", c->system);
  put_chat(t, upper, "ASK", c->ask);
  put_chat(t, upper, "NEXT", c->next);
}

const EmitExtra *api_lm_c(Ingot *m, const char *name, bool given) {
  Ctx *c = m->c;
  const LmAssets *s = api_speech(m);
  LmFacts f = {0};
  Vocab v;
  if (!s || !find_facts(m, &f)) return NULL;
  if (!vocab_open(&v, s->vocab, s->nvocab)) bug(c, LOC_NONE, "a vocabulary that cannot be opened");
  f.tokens = v.head->ntoken < (u64)f.vocab ? v.head->ntoken : (u32)f.vocab;
  StrBuf upper = sb_new(&c->keep), macros = sb_new(&c->keep), t = sb_new(&c->keep);
  sb_upper(&upper, name);
  const char *caps = sb_cstr(&upper);
  const TemplateVar vars[] = {{"name", name},
                              {"NAME", caps},
                              {"weights_param", given ? "const void *weight_file, " : ""},
                              {"weights_arg", given ? "weight_file, " : ""},
                              {0}};
  LmAssets dated = *s;
  dated.chat = api_chat_texts(m, s);
  put_macros(&macros, caps, &dated, &v, &f, m->prompt_cache.n);
  if (m->prompt_cache.n) put_chat(&macros, caps, "SYSTEM_TEXT", m->options.prompt);
  sb_fmt(&t,
         "\n/* ---- text, tokens and what comes next ---- */\n\n"
         "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n#endif\n"
         "#define IG_TABLE_BYTES %zu\n#define IG_TOKENS %u\n#define IG_POS_OFFSET %" PRIu64 "\n"
         "#define IG_RING %lld\n#define im_exp im_exp_text\n",
         s->nvocab, f.tokens, f.kept, (long long)f.ring);
  mathlib_write(&t, "exp", "_text", MATHLIB_FMA);
  sb_put(&t, text_code, text_code_size);
  sb_puts(&t, filled(m, code, vars));
  EmitExtra *more = NEW(&c->keep, EmitExtra);
  *more = (EmitExtra){.table = s->vocab,
                      .ntable = s->nvocab,
                      .macros = sb_cstr(&macros),
                      .declarations = filled(m, declarations, vars),
                      .code = sb_cstr(&t),
                      .stack_around = STACK_AROUND,
                      .stack_alone = STACK_TEXT};
  return more;
}
