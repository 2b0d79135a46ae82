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
  *out = (IngotChatModel){.vocab = s->vocab,
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
                          .day = m->options.prompt ? api_chat_day(m) : 0};
}

static void chat_engine(Ingot *m, const char *engine) {
  const Engine *e = api_engine(m->c, engine, 0);
  if (strcmp(e->info.name, "vm") && !(e->info.flags & INGOT_DEVICE))
    fail(m->c, ERR_usage, LOC_NONE, "--engine %s: expected vm or cuda", e->info.name);
  if (e->info.flags & INGOT_DEVICE) cuda_need(m->c);
  m->states.feeds_cuda = e->info.flags & INGOT_DEVICE;
}

IngotStatus ingot_chat_engine(Ingot *m, const char *engine) {
  API_CALL(m, chat_engine(m, engine));
}

IngotStatus ingot_chat_model(Ingot *m, IngotChatModel *out) {
  API_CALL(m, chat_model(m, out));
}

/* Sets the sizes that are stored with the state. */
static void set_position(Ingot *m, i64 position) {
  Prog *p = m->p;
  Sym sym, unbound;
  u64 at, bytes;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next) {
    if (!prog_is_state_size(p, id, &sym, &at)) continue;
    for (BufId b = 1; b < p->buf.n; b++) {
      const Buf *x = prog_buf(p, b);
      if (x->space == BS_state && !x->alias && mem_bytes(p, b, &bytes, &unbound) &&
          at >= x->offset && at < x->offset + bytes) {
        if (m->states.feeds_cuda)
          cuda_set_state(api_cuda(m), b, at - x->offset, &position, sizeof position);
        else
          memcpy(m->states.vm_state->at[b] + (at - x->offset), &position, sizeof position);
      }
    }
  }
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
  set_position(m, (i64)position);
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
