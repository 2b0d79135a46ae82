/* onnx_ops_scan8.c: Scan of opset 8, whose operands all have a leading batch axis: a loop over the
 * batch around a loop over the sequence (axis 1). Refuses sequences of different lengths.
 */
#include "front/onnx/onnx_builder.h"

typedef struct Scan8 {
  Build *b;
  const OnnxGraph *body;
  u32 nstate, nseq, nout;
  const Val *in;       /* states, then sequences, with the batch axis */
  const Val *seq;      /* sequences of the batch entry being built */
  const i64 *backward; /* 1: reversed */
  Dim length;
} Scan8;

static void step(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Scan8 *s = user;
  Build *b = s->b;
  u32 nin = s->nstate + s->nseq, nout = s->nstate + s->nout;
  Val *in = NEWS(&b->c->work, Val, nin + 1), *ret = NEWS(&b->c->work, Val, nout + 1);
  (void)cond;
  for (u32 k = 0; k < s->nstate; k++) in[k] = carried[k];
  for (u32 k = 0; k < s->nseq; k++) {
    Val at = s->backward[k] ? mk_addk(g, mk_sub(g, mk_extent(g, s->length, DT_i64), i), -1) : i;
    in[s->nstate + k] = mk_gather(g, s->seq[k], at, 0);
  }
  if (on_subgraph(b, s->body, in, nin, ret, nout) != nout)
    on_bad(b, "the body: expected %u outputs", nout);
  for (u32 k = 0; k < s->nstate; k++) carried[k] = ret[k];
  for (u32 k = 0; k < s->nout; k++) scan[k] = ret[s->nstate + k];
}

/* Builds one batch entry; the outer loop stacks its results. */
static void entry(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Scan8 *s = user;
  Build *b = s->b;
  Val *seq = NEWS(&b->c->work, Val, s->nseq + 1);
  (void)cond, (void)carried;
  for (u32 k = 0; k < s->nstate; k++) scan[k] = mk_gather(g, s->in[k], i, 0);
  for (u32 k = 0; k < s->nseq; k++) seq[k] = mk_gather(g, s->in[s->nstate + k], i, 0);
  s->seq = seq;
  on_loop(b, mk_extent(g, s->length, DT_i64), 0, scan, s->nstate, scan + s->nstate, s->nout, step,
          s);
}

void build_scan8(Build *b) {
  i64 count = on_int(b, "num_scan_inputs", 0), backward[64] = {0};
  if (on_has(b, 0)) on_unsupported(b, "input 0, sequence_lens, is given");
  if (count < 1 || count > 64 || b->nin < 1 + (u32)count)
    on_bad(b, "num_scan_inputs is %lld, expected 1 to 64, and as many inputs", (long long)count);
  Scan8 s = {.b = b,
             .body = on_graph(b, "body"),
             .nseq = (u32)count,
             .in = b->in + 1,
             .backward = backward};
  s.nstate = b->nin - 1 - s.nseq;
  if (s.body->outputs.n < s.nstate)
    on_bad(b, "the body has %u outputs, expected one or more for each state", s.body->outputs.n);
  s.nout = s.body->outputs.n - s.nstate;
  on_ints(b, "directions", backward, 64);
  for (u32 k = 1; k < b->nin; k++) on_in(b, k);
  s.length = on_dim(b, s.in[s.nstate], 1);
  Dim batch = on_dim(b, s.in[s.nstate], 0);
  for (u32 k = s.nstate + 1; k < s.nstate + s.nseq; k++)
    b->in[1 + k] = scan_length(b, s.in[k], 1, s.length);
  Val *out = NEWS(&b->c->work, Val, s.nstate + s.nout + 1), none;
  on_loop(b, mk_extent(b->g, batch, DT_i64), 0, &none, 0, out, s.nstate + s.nout, entry, &s);
  for (u32 k = 0; k < b->nout && k < s.nstate + s.nout; k++) b->out[k] = out[k];
}
