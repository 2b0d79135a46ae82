/* onnx_ops_rnn.c: RNN, GRU and LSTM as loops over time.
 *
 * Per direction, products with the input weights are one contraction outside the loop. The body
 * multiplies the state, adds, and applies the gates. The backward direction reverses its input and
 * output sequences (up to sequence_lens), so both directions share one body. Narrow floats are
 * computed in f32.
 */
#include "front/onnx/onnx_builder.h"

#include <string.h>
#include <strings.h>

typedef enum CellKind { CELL_rnn = 1, CELL_gru = 3, CELL_lstm = 4 } CellKind; /* number of gates */

typedef struct RnnAct {
  const char *name;
  double alpha, beta;
} RnnAct;

typedef struct Cell {
  Build *b;
  CellKind kind;
  u32 hidden;
  RnnAct act[3];
  double clip; /* 0: none */
  bool input_forget, linear_before_reset;
  /* ---- current direction ---- */
  Val xw;   /* [T,B,G*H] input products plus the biases that can be added before the loop */
  Val r;    /* [G*H,H] */
  Val rb;   /* [G*H] state biases, or 0 (GRU adds them separately) */
  Val peep; /* [3*H] or 0 */
  Val lens; /* [B] i64 or 0 */
  bool
      quantized; /* W and R are [D,in,G*H] integers; their other operand is quantized dynamically */
  Val r_scale, r_zero; /* scale and zero point of the direction */
} Cell;

/* ---- activations ---- */

/* Defaults of alpha and beta. */
static const struct {
  const char *name;
  double alpha, beta;
  u8 takes; /* number of parameters: alpha, beta */
} acts[] = {{"Sigmoid", 0, 0, 0},
            {"Tanh", 0, 0, 0},
            {"Relu", 0, 0, 0},
            {"LeakyRelu", 0.01, 0, 1},
            {"ThresholdedRelu", 1, 0, 1},
            {"ScaledTanh", 1, 1, 2},
            {"HardSigmoid", 0.2, 0.5, 2},
            {"Elu", 1, 0, 1},
            {"Softsign", 0, 0, 0},
            {"Softplus", 0, 0, 0},
            {"Affine", 1, 0, 2}};

static Val activate(Cell *k, const RnnAct *a, Val x) {
  return on_activated(k->b, x, a->name, a->alpha, a->beta);
}

/* Applies a gate function to the clipped input. The cell value on its way to the output is not
 * clipped (as in ONNX Runtime). */
static Val apply(Cell *k, const RnnAct *a, Val x) {
  return activate(k, a, k->clip > 0 ? mk_clamp(k->b->g, x, -k->clip, k->clip) : x);
}

/* Reads `activations` of direction d. Functions consume alphas and betas in order. */
static void read_acts(Cell *k, u32 d, u32 per) {
  Build *b = k->b;
  static const char *const usual[2][3] = {{"Tanh", "Tanh", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  const OnnxAttr *names = on_attr(b, "activations");
  double alpha[6], beta[6];
  i32 na = on_floats(b, "activation_alpha", alpha, 6),
      nb = on_floats(b, "activation_beta", beta, 6);
  u32 ia = 0, ib = 0;
  if (names && (names->type != OA_strings || names->strings.n < per * (d + 1)))
    on_bad(b, "activations lists fewer names, expected %u for each direction", per);
  for (u32 i = 0; i < per * (d + 1); i++) {
    const char *name =
        names ? str_text(b->c, names->strings.at[i]) : usual[k->kind != CELL_rnn][i % per];
    u32 row = 0, nrows = sizeof acts / sizeof *acts;
    while (row < nrows && strcasecmp(acts[row].name, name)) row++;
    if (row == nrows) on_unsupported(b, "activation '%s' is not an RNN activation of ONNX", name);
    RnnAct a = {acts[row].name, acts[row].alpha, acts[row].beta};
    if (acts[row].takes >= 1 && (i32)ia < na) a.alpha = alpha[ia++];
    if (acts[row].takes >= 2 && (i32)ib < nb) a.beta = beta[ib++];
    if (i / per == d) k->act[i % per] = a;
  }
}

/* ---- bodies; carried: h, and c for LSTM ---- */

static Val part(Cell *k, Val x, u32 axis, u32 i) {
  return mk_slice_axis(k->b->g, x, axis, (i64)i * k->hidden, k->hidden);
}

static Val times_r(Cell *k, Val h) {
  if (k->quantized) return on_dynamic_product(k->b, h, k->r, k->r_scale, k->r_zero);
  return mk_contract(k->b->g, h, k->r, "bh,gh->bg");
}

static void step_gru(Cell *k, Val x, Val *h) {
  Graph *g = k->b->g;
  Dim two = 2 * (i64)k->hidden;
  Val r_zr = mk_slice_axis(g, k->r, 0, 0, two), r_h = mk_slice_axis(g, k->r, 0, two, k->hidden);
  Val recurrent = mk_contract(g, *h, r_zr, "bh,gh->bg");
  Val zr = mk_add(g, mk_slice_axis(g, x, 1, 0, two), recurrent);
  if (k->rb) zr = mk_add(g, zr, mk_slice_axis(g, k->rb, 0, 0, two));
  Val z = apply(k, &k->act[0], part(k, zr, 1, 0)), r = apply(k, &k->act[0], part(k, zr, 1, 1));
  Val bias = k->rb ? part(k, k->rb, 0, 2) : 0, inner;
  if (k->linear_before_reset) {
    inner = mk_contract(g, *h, r_h, "bh,gh->bg");
    if (bias) inner = mk_add(g, inner, bias);
    inner = mk_mul(g, r, inner);
  } else {
    inner = mk_contract(g, mk_mul(g, r, *h), r_h, "bh,gh->bg");
    if (bias) inner = mk_add(g, inner, bias);
  }
  Val n = apply(k, &k->act[1], mk_add(g, part(k, x, 1, 2), inner));
  Val one = mk_like(g, z, 1);
  Val old = mk_mul(g, z, *h);
  *h = mk_add(g, mk_mul(g, mk_sub(g, one, z), n), old);
}

static void step_lstm(Cell *k, Val x, Val *h, Val *c) {
  Graph *g = k->b->g;
  Val all = mk_add(g, x, times_r(k, *h)); /* gates in the order i o f c */
  Val i = part(k, all, 1, 0), o = part(k, all, 1, 1), f = part(k, all, 1, 2);
  if (k->peep) i = mk_add(g, i, mk_mul(g, part(k, k->peep, 0, 0), *c));
  if (k->peep) f = mk_add(g, f, mk_mul(g, part(k, k->peep, 0, 2), *c));
  i = apply(k, &k->act[0], i);
  f = k->input_forget ? mk_sub(g, mk_like(g, i, 1), i) : apply(k, &k->act[0], f);
  Val n = apply(k, &k->act[1], part(k, all, 1, 3));
  Val fresh = mk_mul(g, i, n);
  *c = mk_add(g, mk_mul(g, f, *c), fresh);
  if (k->peep) o = mk_add(g, o, mk_mul(g, part(k, k->peep, 0, 1), *c));
  o = apply(k, &k->act[0], o);
  *h = mk_mul(g, o, activate(k, &k->act[2], *c));
}

static void body(Graph *g, void *user, Val t, Val *cond, Val *carried, Val *scan) {
  Cell *k = user;
  Val x = mk_gather(g, k->xw, t, 0), h = carried[0], c = k->kind == CELL_lstm ? carried[1] : 0;
  (void)cond;
  if (k->kind == CELL_rnn)
    h = apply(k, &k->act[0], mk_add(g, x, times_r(k, h)));
  else if (k->kind == CELL_gru)
    step_gru(k, x, &h);
  else
    step_lstm(k, x, &h, &c);
  scan[0] = h;
  if (k->lens) { /* past the end of a sequence: keep the state, output 0 */
    Val live = mk_unsqueeze(g, mk_lt(g, t, k->lens), 1);
    scan[0] = mk_select(g, live, h, mk_like(g, h, 0));
    h = mk_select(g, live, h, carried[0]);
    if (c) c = mk_select(g, live, c, carried[1]);
  }
  carried[0] = h;
  if (c) carried[1] = c;
}

/* ---- operator ---- */

/* Reverses time (axis 0), with lengths only up to the length of each batch entry. */
static Val reverse_time(Build *b, Val x, Val lens) {
  Graph *g = b->g;
  const Type *t = on_type(b, x);
  if (!lens) {
    Dim start[MAX_RANK] = {t->dim[0] == 0 ? 0 : dim_addk(b->ds, t->dim[0], -1)};
    i64 step[MAX_RANK];
    for (u32 i = 0; i < t->rank; i++) step[i] = i ? 1 : -1;
    return mk_slice(g, x, start, t->dim, step);
  }
  Dim shape[3] = {t->dim[0], t->dim[1], t->dim[2]};
  Val i = mk_iota(g, DT_i64, shape, 3, 0), n = mk_unsqueeze(g, lens, 1);
  Val back = mk_addk(g, mk_sub(g, n, i), -1);
  return mk_gather_elems(g, x, mk_select(g, mk_lt(g, i, n), back, i), 0);
}

/* Row d of an operand that has one row per direction. */
static Val row(Build *b, Val v, u32 d) {
  return mk_squeeze(b->g, mk_slice_axis(b->g, v, 0, d, 1), 0);
}

static Val initial(Build *b, u32 input, u32 d, Val x, i64 hidden) {
  if (on_has(b, input)) {
    Val h = row(b, on_wide(b, input), d);
    Dim want[2] = {on_dim(b, x, 1), hidden};
    bool fits = on_rank(b, h) == 2;
    for (u32 i = 0; fits && i < 2; i++) {
      Dim have = on_dim(b, h, i);
      fits = have == want[i] || !dim_is_const(have) || !dim_is_const(want[i]);
    }
    if (!fits)
      on_bad(b, "input %u: expected an initial state [directions, batch, hidden_size]", input);
    return h;
  }
  Dim shape[2] = {on_dim(b, x, 1), hidden};
  return mk_full(b->g, mk_like(b->g, x, 0), shape, 2);
}

static void biases(Cell *k, Val B, u32 d) {
  Build *b = k->b;
  Dim n = (i64)k->kind * k->hidden;
  Val both = row(b, B, d), wb = mk_slice_axis(b->g, both, 0, 0, n),
      rb = mk_slice_axis(b->g, both, 0, n, n);
  if (k->kind == CELL_gru)
    k->rb = rb;
  else
    wb = mk_add(b->g, wb, rb);
  k->xw = mk_add(b->g, k->xw, wb);
}

/* One direction: Y [T,B,H], last h, last c. */
static void run_direction(Cell *k, Val x, u32 d, bool backward, Val *y, Val *h, Val *c) {
  Build *b = k->b;
  Graph *g = b->g;
  u32 in_c = 6, in_p = 7;
  if (backward) x = reverse_time(b, x, k->lens);
  Val w = row(b, on_wide(b, 1), d);
  k->r = row(b, on_wide(b, 2), d);
  k->rb = k->peep = 0;
  if (k->quantized) {
    Val zero = row(b, on_in(b, 9), d);
    k->xw = on_dynamic_product(b, x, w, row(b, on_in(b, 8), d), zero);
    k->r_scale = row(b, on_in(b, 10), d);
    k->r_zero = row(b, on_in(b, 11), d);
  } else {
    k->xw = mk_contract(g, x, w, "tbi,gi->tbg");
  }
  if (on_has(b, 3)) biases(k, on_wide(b, 3), d);
  if (k->kind == CELL_lstm && on_has(b, in_p)) k->peep = row(b, on_wide(b, in_p), d);
  Val carried[2] = {initial(b, 5, d, x, k->hidden), 0}, scan;
  u32 n = 1;
  if (k->kind == CELL_lstm) carried[n++] = initial(b, in_c, d, x, k->hidden);
  mk_loop(g, mk_extent(g, on_dim(b, x, 0), DT_i64), 0, carried, n, &scan, 1, body, k);
  *y = backward ? reverse_time(b, scan, k->lens) : scan;
  *h = carried[0];
  *c = carried[1];
}

static Val stack(Build *b, const Val *v, u32 n, u32 axis) {
  Val part[2];
  for (u32 i = 0; i < n; i++) part[i] = mk_unsqueeze(b->g, v[i], axis);
  return mk_concat(b->g, part, n, axis);
}

void build_rnn(Build *b) {
  Graph *g = b->g;
  Cell k = {.b = b, .kind = (CellKind)b->arg};
  Val x = on_wide(b, 0), w = on_in(b, 1);
  DType dt = on_dtype(b, b->in[0]);
  if (on_rank(b, x) != 3 || on_rank(b, w) != 3 || on_rank(b, on_in(b, 2)) != 3)
    on_bad(b, "X, W and R have rank %u, %u and %u, expected 3", on_rank(b, x), on_rank(b, w),
           on_rank(b, on_in(b, 2)));
  bool batch_first = on_int(b, "layout", 0) != 0;
  if (batch_first) x = mk_transpose(g, x, (const i64[]){1, 0, 2});
  k.quantized = b->arg == CELL_lstm && b->nin > 8;
  i64 gates = on_static_dim(b, w, k.quantized ? 2 : 1),
      hidden = on_int(b, "hidden_size", gates / (i64)k.kind);
  if (hidden < 1 || hidden * (i64)k.kind != gates)
    on_bad(b, "W has %lld rows, expected hidden_size %lld times the gates", (long long)gates,
           (long long)hidden);
  k.hidden = (u32)hidden;
  k.clip = on_float(b, "clip", 0);
  k.input_forget = on_int(b, "input_forget", 0) != 0;
  k.linear_before_reset = on_int(b, "linear_before_reset", 0) != 0;
  if (on_has(b, 4)) k.lens = mk_cast(g, on_in(b, 4), DT_i64);
  u32 way = on_choice(b, "direction", "forward reverse bidirectional");
  bool reverse = way == 1, both = way == 2;
  u32 ndir = both ? 2 : 1, per = k.kind == CELL_rnn ? 1 : k.kind == CELL_gru ? 2 : 3;
  if (on_static_dim(b, w, 0) != ndir)
    on_bad(b, "W has %lld directions, expected %u", (long long)on_static_dim(b, w, 0), ndir);
  if (batch_first) /* states are [batch, direction, hidden] */
    for (u32 i = 5; i < 7 && i < b->nin; i++)
      if (b->in[i]) b->in[i] = mk_transpose(g, b->in[i], (const i64[]){1, 0, 2});
  Val y[2], h[2], c[2];
  for (u32 d = 0; d < ndir; d++) {
    read_acts(&k, d, per);
    run_direction(&k, x, d, reverse || d == 1, &y[d], &h[d], &c[d]);
  }
  Val out[3] = {stack(b, y, ndir, 1), stack(b, h, ndir, 0),
                0}; /* Y [T,D,B,H], Y_h and Y_c [D,B,H] */
  if (k.kind == CELL_lstm) out[2] = stack(b, c, ndir, 0);
  if (batch_first) {
    out[0] = mk_transpose(g, out[0], (const i64[]){2, 0, 1, 3});
    out[1] = mk_transpose(g, out[1], (const i64[]){1, 0, 2});
    if (out[2]) out[2] = mk_transpose(g, out[2], (const i64[]){1, 0, 2});
  }
  for (u32 i = 0; i < b->nout && i < (k.kind == CELL_lstm ? 3u : 2u); i++)
    b->out[i] = mk_cast(g, out[i], dt);
}
