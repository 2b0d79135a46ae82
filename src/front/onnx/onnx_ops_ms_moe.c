/* onnx_ops_ms_moe.c: mixture of experts of com.microsoft: MoE.
 *
 * In: tokens, router logits, weights of all experts. Out: per token, the sum over its k best
 * experts of routing weight * fc2(act(fc1(token))).
 *
 * Slots are the experts computed for a token. With many tokens every expert is a slot and those not
 * chosen have routing weight 0, so shapes do not depend on data. With few tokens only the k chosen
 * experts are slots, and only their weights are read. Semantics follow ONNX Runtime's CPU kernel:
 * softmax over all experts; of equal logits the expert with the larger index.
 */
#include "front/onnx/onnx_builder.h"

#include <math.h>

typedef struct Experts {
  Dim tokens;
  i64 count, k, hidden;
  bool chosen; /* slots are the chosen experts; weights have a leading axis of tokens */
  Val index;   /* i64 [tokens, k]: the chosen experts */
  Val weight;  /* [tokens, slots] */
} Experts;

/* Finds the k best experts of each token and the weight of each slot. */
static void route(Build *b, Experts *e) {
  Graph *g = b->g;
  i64 last = 1, *turned = NEWS(&b->c->scratch, i64, (size_t)e->count);
  Val at, best, p = compose_softmax(g, on_wide(b, 1), &last, 1);
  for (i64 i = 0; i < e->count; i++) turned[i] = e->count - 1 - i;
  Val order = mk_ints(g, turned, (u32)e->count);
  mk_topk(g, mk_gather(g, p, order, 1), 1, e->k, true, &best, &at);
  if (on_int(b, "normalize_routing_weights", 0))
    best = mk_div(g, best, mk_reduce(g, OP_reduce_sum, best, &last, 1, true));
  Val last_expert = mk_scalar(g, DT_i64, (double)(e->count - 1));
  e->index = mk_sub(g, last_expert, mk_cast(g, at, DT_i64));
  e->weight = best;
  if (e->chosen) return;
  Val expert = mk_iota(g, DT_i64, &e->count, 1, 0), none = mk_like(g, best, 0);
  Val is = mk_eq(g, mk_unsqueeze(g, e->index, 2), expert);
  Val each = mk_select(g, is, mk_unsqueeze(g, best, 2), none);
  e->weight = mk_reduce(g, OP_reduce_sum, each, &last, 1, false);
}

/* Input i, [experts, ...], for the slots; 0: absent. */
static Val of_slots(Build *b, const Experts *e, u32 i) {
  Val v = on_has(b, i) ? on_wide(b, i) : 0;
  return v && e->chosen ? mk_gather(b->g, v, e->index, 0) : v;
}

static void check_shape(Build *b, u32 i, i64 experts, i64 rows, i64 columns) {
  if (!on_has(b, i)) return;
  i64 want[3] = {experts, rows, columns};
  u32 rank = columns ? 3 : 2;
  if (on_rank(b, b->in[i]) != rank)
    on_bad(b, "input %u has rank %u, expected %u", i, on_rank(b, b->in[i]), rank);
  for (u32 k = 0; k < rank; k++) {
    i64 n = on_static_dim(b, b->in[i], k);
    if (n != want[k])
      on_bad(b, "axis %u of input %u has extent %lld, expected %lld", k, i, (long long)n,
             (long long)want[k]);
  }
}

/* Every second element of the last axis, starting at `first`. */
static Val every_second(Build *b, Val x, i64 first) {
  Type t = *on_type(b, x);
  Dim start[3] = {0, 0, first}, size[3] = {t.dim[0], t.dim[1], dim_div(b->ds, t.dim[2], 2)};
  return mk_slice(b->g, x, start, size, (const i64[]){1, 1, 2});
}

static Val swiglu(Build *b, Val x) {
  Graph *g = b->g;
  double limit = on_float(b, "swiglu_limit", INFINITY);
  Val gate = every_second(b, x, 0), linear = every_second(b, x, 1);
  if (limit < INFINITY) {
    Val most = mk_like(g, gate, limit), least = mk_like(g, gate, -limit);
    gate = mk_min(g, gate, most);
    linear = mk_max(g, mk_min(g, linear, most), least);
  }
  linear = mk_addk(g, linear, on_float(b, "activation_beta", 0));
  return mk_mul(g, compose_silu(g, gate, on_float(b, "activation_alpha", 1)), linear);
}

typedef enum MoeAct { MA_relu, MA_gelu, MA_silu, MA_swiglu, MA_identity } MoeAct;

static Val activated(Build *b, Val x, MoeAct act) {
  if (act == MA_relu) return mk_max(b->g, x, mk_like(b->g, x, 0));
  if (act == MA_gelu) return compose_gelu(b->g, x, true);
  if (act == MA_silu) return compose_silu(b->g, x, 1);
  return act == MA_swiglu ? swiglu(b, x) : x;
}

static Experts read_experts(Build *b, MoeAct act, Val x) {
  u32 rank = on_rank(b, x);
  Val w = on_in(b, 2);
  if (rank != 2 && rank != 3) on_bad(b, "the input has rank %u, expected 2 or 3", rank);
  if (on_rank(b, on_in(b, 1)) != 2)
    on_bad(b, "router_probs has rank %u, expected 2", on_rank(b, b->in[1]));
  if (on_rank(b, w) != 3) on_bad(b, "fc1_experts_weights has rank %u, expected 3", on_rank(b, w));
  Experts e = {.tokens = on_dim(b, b->in[1], 0),
               .count = on_static_dim(b, b->in[1], 1),
               .k = on_int(b, "k", 1),
               .hidden = on_static_dim(b, x, rank - 1)};
  i64 rows = on_static_dim(b, w, 1), inner = act == MA_swiglu ? rows / 2 : rows;
  if (e.k < 1 || e.k > e.count)
    on_bad(b, "k is %lld, expected 1 to %lld", (long long)e.k, (long long)e.count);
  if (act == MA_swiglu && rows % 2)
    on_bad(b, "fc1 has %lld rows, expected an even number", (long long)rows);
  on_in(b, 4);
  check_shape(b, 2, e.count, rows, e.hidden);
  check_shape(b, 3, e.count, rows, 0);
  check_shape(b, 4, e.count, e.hidden, inner);
  check_shape(b, 5, e.count, e.hidden, 0);
  e.chosen = dim_is_const(e.tokens) && e.tokens <= e.count / e.k;
  return e;
}

void build_moe(Build *b) {
  Graph *g = b->g;
  Val x = on_wide(b, 0);
  Type t = *on_type(b, x);
  MoeAct act = (MoeAct)on_choice(b, "activation_type", "relu gelu silu swiglu identity");
  if (on_has(b, 6) || on_has(b, 7))
    on_unsupported(b, "input %u, fc3 experts, is given", on_has(b, 6) ? 6 : 7);
  if (on_int(b, "use_sparse_mixer", 0)) on_unsupported(b, "use_sparse_mixer is not 0");
  if (act == MA_swiglu && on_int(b, "swiglu_fusion", 0) != 1)
    on_unsupported(b, "swiglu_fusion is %lld, expected 1 (interleaved)",
                   (long long)on_int(b, "swiglu_fusion", 0));
  Experts e = read_experts(b, act, x);
  route(b, &e);
  Dim flat[2] = {e.tokens, e.hidden};
  x = mk_reshape(g, x, flat, 2);
  Val bias[2] = {of_slots(b, &e, 3), of_slots(b, &e, 5)};
  Val h = mk_contract(g, x, of_slots(b, &e, 2), e.chosen ? "th,tsih->tsi" : "th,sih->tsi");
  h = activated(b, bias[0] ? mk_add(g, h, bias[0]) : h, act);
  /* keeps overflow of experts that were not chosen out of the sum */
  Val by = mk_unsqueeze(g, e.weight, 2), none = mk_like(g, by, 0);
  Val is = mk_gt(g, by, none);
  h = mk_select(g, is, mk_mul(g, h, by), none);
  Val y = mk_contract(g, h, of_slots(b, &e, 4), e.chosen ? "tsi,tshi->th" : "tsi,shi->th");
  if (bias[1])
    y = mk_add(g, y, mk_contract(g, e.weight, bias[1], e.chosen ? "ts,tsh->th" : "ts,sh->th"));
  on_set_output(b, mk_reshape(g, y, t.dim, t.rank));
}
