/* tflite_ops_recurrent.c: recurrent layers: SVDF, RNN, LSTM.
 *
 * Their state is kept from run to run (tflite_ops_control.c). Everything that depends only on the
 * input is one contraction over all steps; the rest is a loop over time. Integer layers follow
 * TensorFlow Lite: gates are int16 in units of 2^-12, cells int16 in the scale of the file. Only
 * sigmoid and tanh are computed in f32 and rounded to 2^-15. TensorFlow Lite approximates them in
 * fixed point with an error of a few such units; an int8 result has 256 of them per step.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

/* ---- SVDF ---- */

/* arg of an operand */
enum { SVDF_x, SVDF_feature, SVDF_time, SVDF_bias, SVDF_state };

static double svdf_scale(LiteNode *b, u32 x, u32 y, const LiteTensor *out) {
  const LiteTensor *p = lite_operand(b, x), *q = lite_operand(b, y);
  if (p->q.n != 1 || q->q.n != 1 || out->q.n != 1)
    lite_unsupported(b, "several scales are not supported");
  return (double)(p->q.scale[0] * q->q.scale[0] / out->q.scale[0]);
}

/* Filters the input, keeps the last few results of each filter, and sums them with weights. */
void lite_svdf(LiteNode *b) {
  Graph *g = b->g;
  Val x = lite_in(b, SVDF_x), w = lite_in(b, SVDF_feature), time = lite_in(b, SVDF_time);
  Val old = lite_state_get(b, SVDF_state);
  const LiteTensor *out = lite_result(b, 0), *kept = lite_operand(b, SVDF_state);
  i64 rank = flat_i32(&b->op->opt, 0, 0), act = flat_i8(&b->op->opt, 1, LA_none);
  bool whole = lite_is_quant(lite_operand(b, SVDF_x));
  if (lite_rank(b, x) != 2 || lite_rank(b, w) != 2 || lite_rank(b, time) != 2)
    lite_bad(b, "the operands have rank %u, %u and %u, expected 2", lite_rank(b, x),
             lite_rank(b, w), lite_rank(b, time));
  Dim batch = val_dim(g, x, 0), filters = val_dim(g, w, 0), memory = val_dim(g, time, 1);
  if (!dim_is_const(filters) || !dim_is_const(memory) || rank < 1 || filters % rank || memory < 1 ||
      val_dim(g, time, 0) != filters)
    lite_bad(b, "found rank %lld and %lld filters, expected a multiple of the rank",
             (long long)rank, (long long)filters);
  Val feature = whole ? mk_cast(g, w, DT_i32) : lite_real(b, SVDF_feature);
  x = whole ? lite_sub_zero_point(b, x, lite_operand(b, SVDF_x)) : lite_real(b, SVDF_x);
  feature = mk_contract(g, x, feature, "bi,fi->bf");
  if (whole) {
    feature = lite_mul_quantized1(b, feature, svdf_scale(b, SVDF_x, SVDF_feature, kept));
    feature = mk_cast_sat(g, feature, DT_i16);
  }
  Val line = mk_reshape(g, old, (const Dim[]){batch, filters, memory}, 3);
  Val now[2] = {mk_slice_axis(g, line, 2, 1, memory - 1), mk_unsqueeze(g, feature, 2)};
  line = mk_concat(g, now, 2, 2);
  lite_state_set(b, SVDF_state,
                 mk_reshape(g, line, (const Dim[]){batch, dim_mul(b->ds, filters, memory)}, 2));
  Val y = whole ? mk_cast(g, time, DT_i32) : lite_real(b, SVDF_time);
  y = mk_contract(g, whole ? mk_cast(g, line, DT_i32) : line, y, "bfm,fm->bf");
  y = mk_reshape(g, y, (const Dim[]){batch, filters / rank, rank}, 3);
  y = mk_reduce(g, OP_reduce_sum, y, &(i64){2}, 1, false);
  if (lite_has(b, SVDF_bias)) y = mk_add(g, y, lite_in(b, SVDF_bias));
  if (whole) {
    y = lite_mul_quantized1(b, y, svdf_scale(b, SVDF_time, SVDF_state, out));
    lite_set_stored(b, 0, lite_stored(b, y, out, LA_none));
  } else {
    lite_set_activated(b, 0, y, act);
  }
}

/* ---- sequences ---- */

/* Converts [batch, time, n] (or time first) to [time, batch, n], and back. */
static Val time_first(LiteNode *b, Val x, bool already) {
  if (lite_rank(b, x) != 3) lite_bad(b, "the operand has rank %u, expected 3", lite_rank(b, x));
  return already ? x : mk_transpose(b->g, x, (const i64[]){1, 0, 2});
}

typedef struct LiteRnn {
  LiteNode *b;
  Val xw, r; /* [time, batch, units], [units, units] */
  i64 act;
} LiteRnn;

static Val rnn_step(const LiteRnn *k, Val x, Val h) {
  Graph *g = k->b->g;
  return lite_activated(k->b, mk_add(g, x, mk_contract(g, h, k->r, "bu,vu->bv")), k->act);
}

static void rnn_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  const LiteRnn *k = user;
  (void)cond;
  scan[0] = carried[0] = rnn_step(k, mk_gather(g, k->xw, i, 0), carried[0]);
}

/* Operands: x, weights, recurrent weights, bias, state. arg 1: a sequence. */
void lite_rnn(LiteNode *b) {
  Graph *g = b->g;
  Val x = lite_real(b, 0), w = lite_real(b, 1), bias = lite_real(b, 3), h = lite_state_get(b, 4);
  bool first = b->arg && flat_u8(&b->op->opt, 0, 0);
  LiteRnn k = {.b = b, .r = lite_real(b, 2), .act = flat_i8(&b->op->opt, b->arg ? 1 : 0, LA_none)};
  if (lite_is_quant(lite_operand(b, 0)))
    lite_unsupported(b, "integer RNN layers are not supported");
  if (!b->arg) {
    h = rnn_step(&k, mk_add(g, mk_contract(g, x, w, "bi,ui->bu"), bias), h);
    lite_state_set(b, 4, h);
    lite_set_real(b, 0, h);
    return;
  }
  Val scan;
  k.xw = mk_add(g, mk_contract(g, time_first(b, x, first), w, "tbi,ui->tbu"), bias);
  mk_loop(g, mk_extent(g, val_dim(g, k.xw, 0), DT_i64), 0, &h, 1, &scan, 1, rnn_body, &k);
  lite_state_set(b, 4, h);
  lite_set_real(b, 0, time_first(b, scan, first));
}

/* ---- LSTM ---- */

enum { GATE_input, GATE_forget, GATE_cell, GATE_output, GATES };
/* Operand index of the first of four (or three) gates. */
enum { LSTM_w = 1, LSTM_r = 5, LSTM_peep = 9, LSTM_bias = 12, LSTM_proj = 16, LSTM_proj_bias };
enum { LSTM_h = 18, LSTM_c, LSTM_norm };
enum { LO_act, LO_cell_clip, LO_proj_clip, LO_time_major, LO_diagonal = 5 };

typedef struct LiteLstm {
  LiteNode *b;
  bool coupled, whole;     /* coupled: input gate = 1 - forget gate; whole: integer layer */
  Val xw[GATES], r[GATES]; /* [time, batch, cells], [cells, units] */
  Val peep[GATES], bias[GATES], norm[GATES];
  double r_scale[GATES]; /* whole: factor of products with the state, to units of 2^-12 */
  Val proj, proj_bias;
  double cell_clip, proj_clip, hidden;
  i64 act, h_zero;
  i64 cell_bits; /* whole: the unit of a cell is 2^-cell_bits */
  const LiteTensor *h;
} LiteLstm;

static Val clipped(Graph *g, Val x, double clip) {
  return clip > 0 ? mk_clamp(g, x, -clip, clip) : x;
}

/* Input of a gate function; c: the cell that its peephole reads. */
static Val gate_sum(const LiteLstm *k, u32 gate, Val i, Val h, Val c) {
  Graph *g = k->b->g;
  Val z = mk_gather(g, k->xw[gate], i, 0);
  z = mk_add(g, z, mk_contract(g, h, k->r[gate], "bu,cu->bc"));
  if (k->peep[gate]) z = mk_add(g, z, mk_mul(g, c, k->peep[gate]));
  if (k->norm[gate])
    z = mk_mul(g, compose_normalize(g, z, &(i64){1}, 1, 1e-8, NULL, NULL), k->norm[gate]);
  return mk_add(g, z, k->bias[gate]);
}

static void lstm_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  const LiteLstm *k = user;
  Val h = carried[0], c = carried[1];
  (void)cond;
  Val forget = compose_sigmoid(g, gate_sum(k, GATE_forget, i, h, c));
  Val in = k->coupled ? mk_sub(g, mk_like(g, forget, 1), forget)
                      : compose_sigmoid(g, gate_sum(k, GATE_input, i, h, c));
  Val new = lite_activated(k->b, gate_sum(k, GATE_cell, i, h, c), k->act);
  new = mk_mul(g, in, new);
  c = clipped(g, mk_add(g, mk_mul(g, forget, c), new), k->cell_clip);
  Val out = compose_sigmoid(g, gate_sum(k, GATE_output, i, h, c));
  h = mk_mul(g, out, lite_activated(k->b, c, k->act));
  if (k->proj) {
    h = mk_contract(g, h, k->proj, "bc,uc->bu");
    if (k->proj_bias) h = mk_add(g, h, k->proj_bias);
    h = clipped(g, h, k->proj_clip);
  }
  carried[0] = scan[0] = h;
  carried[1] = c;
}

/* ---- integers ---- */

/* x / 2^n, rounded to nearest, halves away from zero; i32. */
static Val halved(Graph *g, Val x, i64 n) {
  Val sign = mk_shr(g, x, mk_like(g, x, 31));
  x = mk_add(g, mk_addk(g, x, (double)((i64)1 << (n - 1))), sign);
  return mk_shr(g, x, mk_like(g, x, (double)n));
}

static Val bounded16(Graph *g, Val x) {
  return mk_clamp(g, x, -32768, 32767);
}

/* tanh or sigmoid of z (in units of 2^-bits), in units of 2^-15; i32. */
static Val function16(Graph *g, bool is_tanh, Val z, i64 bits) {
  Val x = mk_mulk(g, mk_cast(g, z, DT_f32), ldexp(1, (int)-bits));
  x = is_tanh ? mk_tanh(g, x) : compose_sigmoid(g, x);
  return mk_cast(g, mk_clamp(g, mk_round(g, mk_mulk(g, x, 32768)), -32768, 32767), DT_i32);
}

static Val whole_gate(const LiteLstm *k, u32 gate, Val i, Val h) {
  Graph *g = k->b->g;
  Val x = bounded16(g, mk_gather(g, k->xw[gate], i, 0)); /* integers in f32 */
  Val r = lite_mul_quantized1(k->b, mk_contract(g, h, k->r[gate], "bu,cu->bc"), k->r_scale[gate]);
  Val z = bounded16(g, mk_add(g, x, mk_cast(g, r, DT_f32)));
  return function16(g, gate == GATE_cell, z, 12);
}

static void whole_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  const LiteLstm *k = user;
  LiteNode *b = k->b;
  (void)cond;
  Val h = lite_sub_zero_point(b, carried[0], k->h), c = mk_cast(g, carried[1], DT_i32);
  Val gate[GATES];
  for (u32 q = 0; q < GATES; q++) gate[q] = whole_gate(k, q, i, h);
  Val past = halved(g, mk_mul(g, gate[GATE_forget], c), 15);
  Val new = halved(g, mk_mul(g, gate[GATE_input], gate[GATE_cell]), 30 - k->cell_bits);
  c = bounded16(g, mk_add(g, past, new));
  if (k->cell_clip > 0)
    c = clipped(g, c, fmin(round(ldexp(k->cell_clip, (int)k->cell_bits)), 32767));
  Val seen = function16(g, true, c, k->cell_bits);
  Val out = lite_mul_quantized1(b, mk_mul(g, gate[GATE_output], seen), k->hidden);
  out = mk_addk(g, out, (double)k->h_zero);
  carried[0] = scan[0] = mk_cast_sat(g, out, DT_i8);
  carried[1] = mk_cast(g, c, DT_i16);
}

static double one_scale(LiteNode *b, const LiteTensor *t) {
  if (t->q.n != 1)
    lite_unsupported(b, "tensor '%s' has %u scales, expected 1", show(b->c, t->name), t->q.n);
  return (double)t->q.scale[0];
}

static void read_whole(LiteLstm *k, bool first) {
  LiteNode *b = k->b;
  Graph *g = b->g;
  const LiteTensor *x = lite_operand(b, 0), *c = lite_operand(b, LSTM_c);
  k->h = lite_operand(b, LSTM_h);
  double cell = one_scale(b, c), bits = -log2(cell);
  if (!(bits >= 0 && bits <= 15))
    lite_unsupported(b, "cells in steps of %g are not supported", cell);
  k->cell_bits = (i64)bits;
  if (x->dt != DT_i8 || k->h->dt != DT_i8 || c->dt != DT_i16 ||
      ldexp(1, (int)-k->cell_bits) != cell || k->coupled || k->proj || lite_has(b, LSTM_norm + 1))
    lite_unsupported(b, "an integer layer of this kind is not supported");
  for (u32 q = 0; q < 3; q++)
    if (lite_has(b, LSTM_peep + q))
      lite_unsupported(b, "an integer layer with peepholes is not supported");
  if (b->op->nintermediate < 5 || b->op->intermediate[4] < 0)
    lite_bad(b, "an integer LSTM has fewer intermediate tensors, expected five");
  const LiteTensor *hidden = &b->im->scope->graph->tensor[b->op->intermediate[4]];
  k->hidden = ldexp(1, -30) / one_scale(b, hidden);
  k->h_zero = hidden->q.n ? hidden->q.zero[0] : 0;
  Val in = time_first(b, lite_sub_zero_point(b, lite_in(b, 0), x), first);
  for (u32 q = 0; q < GATES; q++) {
    const LiteTensor *w = lite_operand(b, LSTM_w + q), *r = lite_operand(b, LSTM_r + q);
    Val sum = mk_contract(g, in, mk_cast(g, lite_in(b, LSTM_w + q), DT_i32), "tbi,ci->tbc");
    if (lite_has(b, LSTM_bias + q)) sum = mk_add(g, sum, lite_in(b, LSTM_bias + q));
    sum = lite_mul_quantized1(b, sum, one_scale(b, w) * one_scale(b, x) * 4096);
    k->xw[q] = mk_cast(g, sum, DT_f32);
    k->r[q] = mk_cast(g, lite_in(b, LSTM_r + q), DT_i32);
    k->r_scale[q] = one_scale(b, r) * one_scale(b, k->h) * 4096;
  }
}

/* ---- entry point ---- */

static Val real_or_none(LiteNode *b, u32 i) {
  return lite_has(b, i) ? lite_real(b, i) : 0;
}

static void read_floats(LiteLstm *k, bool first) {
  LiteNode *b = k->b;
  Graph *g = b->g;
  Val x = time_first(b, lite_real(b, 0), first);
  if (dtype_is_int(lite_dt(b, x)))
    lite_unsupported(b, "the operands are integers without scales, which is not supported");
  for (u32 q = k->coupled ? GATE_forget : GATE_input; q < GATES; q++) {
    static const i32 peep[GATES] = {LSTM_peep, LSTM_peep + 1, -1, LSTM_peep + 2};
    k->xw[q] = mk_contract(g, x, lite_real(b, LSTM_w + q), "tbi,ci->tbc");
    k->r[q] = lite_real(b, LSTM_r + q);
    k->bias[q] = lite_real(b, LSTM_bias + q);
    k->peep[q] = peep[q] < 0 ? 0 : real_or_none(b, (u32)peep[q]);
    k->norm[q] = real_or_none(b, LSTM_norm + q);
  }
}

void lite_lstm(LiteNode *b) {
  Graph *g = b->g;
  const FlatTable *o = &b->op->opt;
  bool first = flat_u8(o, LO_time_major, 0) != 0;
  LiteLstm k = {.b = b,
                .coupled = !lite_has(b, LSTM_w),
                .whole = lite_is_quant(lite_operand(b, 0)),
                .act = flat_i8(o, LO_act, LA_none),
                .cell_clip = (double)flat_f32(o, LO_cell_clip, 0),
                .proj_clip = (double)flat_f32(o, LO_proj_clip, 0)};
  if (flat_u8(o, LO_diagonal, 0))
    lite_unsupported(b, "diagonal recurrent weights are not supported");
  k.proj = real_or_none(b, LSTM_proj);
  k.proj_bias = real_or_none(b, LSTM_proj_bias);
  if (k.whole)
    read_whole(&k, first);
  else
    read_floats(&k, first);
  Val carried[2] = {lite_state_get(b, LSTM_h), lite_state_get(b, LSTM_c)}, scan;
  Val steps = mk_extent(g, val_dim(g, k.xw[GATE_forget], 0), DT_i64);
  mk_loop(g, steps, 0, carried, 2, &scan, 1, k.whole ? whole_body : lstm_body, &k);
  lite_state_set(b, LSTM_h, carried[0]);
  lite_state_set(b, LSTM_c, carried[1]);
  Val y = time_first(b, scan, first);
  if (k.whole)
    lite_set_stored(b, 0, y);
  else
    lite_set_real(b, 0, y);
}
