/* lm_feed.c: runs a language model for a chat program in this process.
 *
 * In: an open language model. Out: its tables, and logits after further ids. Method: bytecode with
 * the vectors of this machine, or engine cuda. The state is kept in the session; the caller chooses
 * how many positions of it are valid, so it can go back.
 */
#include "api/api_internal.h"

#include <string.h>

static void chat_model(Ingot *m, IngotChatModel *out) {
  Ctx *c = m->c;
  api_need(c, out, "a pointer to the tables");
  const LmAssets *s = api_chat_assets(m);
  Loc loc = {.file = m->opened.source.file, .index = -1};
  if (!s) fail(c, ERR_unsupported, loc, "is not a language model with a tokenizer");
  if (m->states.feeds_cuda)
    api_target_device(m);
  else
    api_target_host(m);
  api_run_passes(m, NULL);
  const Buf *in = prog_buf(m->p, m->p->in.at[0]), *logits = prog_buf(m->p, m->p->out.at[0]);
  i64 lo, chunk;
  if (m->p->in.n != 1 || m->p->out.n != 1 || in->dt != DT_i32 || logits->dt != DT_f32 ||
      logits->rank != 2 || logits->dim[0] != 1 || !dim_is_const(logits->dim[1]))
    fail(c, ERR_unsupported, loc,
         "expected a program from token ids to the logits of the last one");
  dim_bounds(m->p->dims, in->dim[0], &lo, &chunk);
  ChatFormat chat = m->options.prompt ? api_chat_texts(m, s) : s->chat;
  const struct LmSampling *own = &s->sampling;
  *out = (IngotChatModel){
      .vocab = s->vocab,
      .nvocab = s->nvocab,
      .context = (u64)api_context_length(m),
      .chunk = (u64)chunk,
      .logits = (u64)logits->dim[1],
      .token_bytes = s->token_bytes,
      .kv_bytes = api_kv_bytes(m),
      .open = chat.open,
      .open_system = chat.open_system,
      .system = chat.system,
      .ask = chat.ask,
      .next = chat.next,
      .none = s->no_chat,
      .trims = chat.trims,
      .prompt = m->options.prompt,
      .ring = (u64)api_kv_min_length(m),
      .day = m->options.prompt ? api_chat_day(m) : 0,
      .sampling = {own->temperature, own->top_k, own->top_p, own->min_p, own->repeat}};
}

static void chat_engine(Ingot *m, const char *engine) {
  const Engine *e = api_engine(m->c, engine, 0);
  if (strcmp(e->info.name, "vm") && !(e->info.flags & INGOT_DEVICE))
    fail(m->c, ERR_usage, LOC_NONE, "--engine %s: expected c (compiled, the default), vm or cuda",
         e->info.name);
  if (e->info.flags & INGOT_DEVICE) cuda_need(m->c);
  m->states.feeds_cuda = e->info.flags & INGOT_DEVICE;
}

IngotStatus ingot_chat_engine(Ingot *m, const char *engine) {
  API_CALL(m, chat_engine(m, engine));
}

IngotStatus ingot_chat_model(Ingot *m, IngotChatModel *out) {
  API_CALL(m, chat_model(m, out));
}

/* Sets a size that is stored at `at` with the state of every engine that has run. */
static void store_size(Ingot *m, u64 at, i64 value) {
  Prog *p = m->p;
  Sym unbound;
  u64 bytes;
  InterpState *const state[] = {m->states.vm_state, m->states.interp_state};
  if (m->states.arena) memcpy(m->states.arena + at, &value, sizeof value);
  if (m->states.jit_arena) memcpy(m->states.jit_arena + at, &value, sizeof value);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_state || x->alias || !mem_bytes(p, b, &bytes, &unbound) || at < x->offset ||
        at >= x->offset + bytes)
      continue;
    if (m->states.cuda) cuda_set_state(api_cuda(m), b, at - x->offset, &value, sizeof value);
    for (u32 i = 0; i < 2; i++)
      if (state[i]) memcpy(state[i]->at[b] + (at - x->offset), &value, sizeof value);
  }
}

/* Sets the number of positions in the KV cache of a sequence; false: the model has fewer sequences.
 */
static bool set_position(Ingot *m, u32 slot, i64 position) {
  Prog *p = m->p;
  Sym sym;
  u64 at;
  u32 n = 0;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next)
    if (prog_is_state_size(p, id, &sym, &at) && n++ == slot) {
      store_size(m, at, position);
      return true;
    }
  return false;
}

static void rewind_slot(Ingot *m, u32 slot, u64 position) {
  if (!m->p) fail(m->c, ERR_usage, LOC_NONE, "expected ingot_ready or a run before ingot_rewind");
  if (position > (u64)api_context_length(m) || !set_position(m, slot, (i64)position))
    fail(m->c, ERR_usage, LOC_NONE, "sequence %u: position %llu is not in the KV cache", slot,
         (unsigned long long)position);
}

IngotStatus ingot_rewind(Ingot *m, uint32_t slot, uint64_t position) {
  API_CALL(m, rewind_slot(m, slot, position));
}

static void feed(Ingot *m, const i32 *ids, size_t n, u64 position, float *logits) {
  Ctx *c = m->c;
  if (n) api_need(c, ids, "the ids");
  api_need(c, logits, "a pointer to the logits");
  if (!m->p) fail(c, ERR_usage, LOC_NONE, "expected ingot_chat_model before ingot_feed");
  u64 room = (u64)api_context_length(m);
  if (!n || n > room || position > room - n)
    fail(c, ERR_usage, LOC_NONE, "%zu ids after position %llu exceed the context length of %llu", n,
         (unsigned long long)position, (unsigned long long)room);
  if (position > m->states.fed)
    fail(c, ERR_usage, LOC_NONE, "position %llu: only %llu positions have been run",
         (unsigned long long)position, (unsigned long long)m->states.fed);
  if (position && position < m->states.fed && m->states.fed > (u64)api_kv_min_length(m))
    fail(c, ERR_usage, LOC_NONE, "positions before %llu have been overwritten: go back to 0",
         (unsigned long long)m->states.fed);
  i64 count = (i64)n;
  Tensor *out[1];
  arena_clear(&m->run.once);
  if (!m->states.vm_state && !m->states.feeds_cuda)
    m->states.vm_state = interp_state(m->p, &c->keep);
  if (m->states.feeds_cuda) api_cuda(m);
  set_position(m, 0, (i64)position);
  Tensor *in = tensor_wrap(&m->run.once, DT_i32, &count, 1, ids);
  if (m->states.feeds_cuda)
    cuda_run(api_cuda(m), 0, &in, out, &m->run.once);
  else
    vm_run(api_vm(m), &(VmOptions){.state = m->states.vm_state}, &in, out, &m->run.once);
  m->states.fed = position + n;
  memcpy(logits, out[0]->data, tensor_bytes(out[0]));
}

IngotStatus ingot_feed(Ingot *m, const int32_t *ids, size_t n, uint64_t position, float *logits) {
  API_CALL(m, feed(m, ids, n, position, logits));
}
