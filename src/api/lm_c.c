/* lm_c.c: adds text functions to the C of a language model.
 *
 * In: a language model with its program. Out: macros, declarations and code for the file of
 * NAME_run, and the tables of the tokenizer, which are stored with the weights. Method: the text
 * of tools/lm_api.c.in with names filled in, after the code of src/tokenizer and src/chat
 * (text_code) and the functions it needs, all static.
 *
 * Template: ${name}, and ${NAME} in capitals. If the weights are an argument, ${weights_param} is
 * that parameter and ${weights_arg} its name in a call.
 */
#include "api/api_internal.h"
#include "tokenizer/tokenizer.h"
#include "chat/sample.h"

#include <inttypes.h>
#include <string.h>

extern const unsigned char text_code[], lm_declarations[], lm_code[];
extern const size_t text_code_size, lm_declarations_size, lm_code_size;

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
  const LmAssets *s = api_chat_assets(m);
  LmFacts f = {0};
  Vocab v;
  if (!s || !find_facts(m, &f)) return NULL;
  if (!vocab_open(&v, s->vocab, s->nvocab))
    internal_error(c, LOC_NONE, "a vocabulary that cannot be opened");
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
  sb_subst(c, &t, (const char *)lm_code, lm_code_size, vars);
  StrBuf declarations = sb_new(&c->keep);
  sb_subst(c, &declarations, (const char *)lm_declarations, lm_declarations_size, vars);
  EmitExtra *more = NEW(&c->keep, EmitExtra);
  *more = (EmitExtra){.table = s->vocab,
                      .ntable = s->nvocab,
                      .macros = sb_cstr(&macros),
                      .declarations = sb_cstr(&declarations),
                      .code = sb_cstr(&t),
                      .stack_around = STACK_AROUND,
                      .stack_alone = STACK_TEXT};
  return more;
}
