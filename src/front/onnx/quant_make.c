/* quant_make.c: builds a quantized model.
 *
 * In: a job with ranges (static) and the layers to skip. Out: a new model that ONNX Runtime runs:
 *   static    x -> QuantizeLinear -> DequantizeLinear -> layer; weights and bias have a
 *             DequantizeLinear too (QDQ). All readers of x use the quantized form, so it is stored
 *             once. The pair is moved above pools and reshapes, which do not change values.
 *   dynamic   x -> DynamicQuantizeLinear -> MatMulInteger -> float, times both scales; weights of
 *             convolutions have a DequantizeLinear
 *   weights*  MatMulNBits, or weights with a DequantizeLinear
 *   f16, bf16 weights with a Cast
 * Initializers without readers are dropped.
 */
#include "front/onnx/onnx_edit.h"
#include "front/onnx/onnx_quantize.h"
#include <math.h>
#include <string.h>

typedef struct QuantMake {
  QuantJob *j;
  Ctx *c;
  OnnxModel *m;
  OnnxGraph *g;
  Map taken;
  Map bytes;          /* Str x -> Str of its dequantized form, or of the result of Cast */
  Map scale, zero;    /* dynamic: Str x -> Str */
  Map weights;        /* 2 * Str w + axis -> Str of the dequantized form; layers may share it */
  bool *stays;        /* by node of the job's graph: a skipped layer */
  const char *linear; /* domain of QuantizeLinear and DequantizeLinear */
} QuantMake;

/* Maximum length of a name stem. Some exporters concatenate the names of all fused layers; ten such
 * names per layer would exceed its weights. */
enum { STEM_MOST = 40 };

static Str fresh(QuantMake *k, Str stem, const char *end) {
  const char *text = str_text(k->c, stem);
  size_t n = strlen(text);
  if (n > STEM_MOST)
    for (n = STEM_MOST; n && (text[n] & 0xc0) == 0x80;) n--; /* not inside a UTF-8 sequence */
  return onnx_fresh_name(k->c, &k->taken, str_text(k->c, str_intern(k->c, text, n)), end);
}

static Tensor *new_tensor(QuantMake *k, DType dt, const i64 *dim, u32 rank) {
  return tensor_new(&k->c->work, dt, dim, rank);
}

static Str put_tensor(QuantMake *k, Str stem, const char *end, const Tensor *t) {
  Str name = fresh(k, stem, end);
  onnx_put_init(k->c, k->g, name, t);
  return name;
}

static Str put_number(QuantMake *k, Str stem, const char *end, DType dt, Scalar x) {
  Tensor *t = new_tensor(k, dt, NULL, 0);
  tensor_set(t, 0, x);
  return put_tensor(k, stem, end, t);
}

/* A node with one result, which gives it its name. */
static OnnxNode *put_node(QuantMake *k, const char *op, const char *domain, const Str *in, u32 nin,
                          Str out) {
  Str name = str_fmt(k->c, "%s_%s", str_text(k->c, out), op);
  OnnxNode *n = onnx_add_node(k->c, k->g, op, domain, name);
  for (u32 i = 0; i < nin; i++) onnx_node_in(k->c, n, in[i]);
  onnx_node_out(k->c, n, out);
  return n;
}

/* The node of a layer, by index: adding nodes moves it. */
static OnnxNode *node_of(QuantMake *k, const QuantLayer *l) {
  OnnxNode *n = &k->g->nodes.at[l->node];
  n->edited = true;
  return n;
}

static void set_in(QuantMake *k, const QuantLayer *l, u32 operand, Str name) {
  OnnxNode *n = node_of(k, l);
  while (n->in.n <= operand) *vec_push(&k->c->work, &n->in) = 0;
  n->in.at[operand] = name;
}

/* ---- static ---- */

/* x after a QuantizeLinear and DequantizeLinear pair. */
static Str through_bytes(QuantMake *k, Str x, float scale, i32 zero) {
  DType dt = k->j->wish.is_signed ? DT_i8 : DT_u8;
  Str s = put_number(k, x, "_scale", DT_f32, (Scalar){.f = (double)scale});
  Str z = put_number(k, x, "_zero_point", dt, (Scalar){.i = zero});
  Str q = fresh(k, x, "_quantized"), d = fresh(k, x, "_dequantized");
  put_node(k, "QuantizeLinear", k->linear, (Str[]){x, s, z}, 3, q);
  put_node(k, "DequantizeLinear", k->linear, (Str[]){q, s, z}, 3, d);
  return d;
}

/* Does the node only move elements or select the largest? Then quantization commutes with it. */
static bool moves_bytes(const QuantMake *k, const OnnxNode *n) {
  static const char *const ops[] = {"MaxPool", "Flatten",   "Reshape",
                                    "Squeeze", "Unsqueeze", "Transpose"};
  for (u32 i = 0; i < sizeof ops / sizeof *ops; i++)
    if (onnx_is_op(k->c, n, ops[i]) && n->out.n == 1) return true;
  return false;
}

/* Replaces x by `by` in all nodes of the main graph except skipped layers. */
static void redirect(QuantMake *k, Str x, Str by) {
  for (u32 i = 0; i < k->j->m->graph->nodes.n; i++) {
    OnnxNode *n = &k->g->nodes.at[i];
    for (u32 o = 0; !k->stays[i] && o < n->in.n; o++)
      if (n->in.at[o] == x) {
        n->in.at[o] = by;
        n->edited = true;
      }
  }
}

/* Quantizes x. If x is a pool or view of a tensor without other readers, that one too. */
static void make_bytes(QuantMake *k, const QuantObserver *p) {
  float scale;
  i32 zero;
  quant_scale(k->j, p, &scale, &zero);
  Str d = through_bytes(k, p->name, scale, zero), x = p->name;
  *map_put(&k->bytes, p->name) = d;
  redirect(k, p->name, d);
  for (;;) {
    u32 *by = map_get(&k->j->maker, x);
    const OnnxNode *n = by ? &k->j->m->graph->nodes.at[*by - 1] : NULL;
    if (!n || !moves_bytes(k, n) || !n->in.n) return;
    x = n->in.at[0];
    if (quant_use_count(k->j, x) != 1 || !map_get(&k->j->maker, x) || map_get(&k->bytes, x)) return;
    d = through_bytes(k, x, scale, zero);
    *map_put(&k->bytes, x) = d;
    redirect(k, x, d);
  }
}

/* Scales: one per channel, or a scalar. */
static Str put_scales(QuantMake *k, const QuantLayer *l, const QuantWeights *q) {
  i64 n = l->weight->dim[l->axis];
  Tensor *t = new_tensor(k, DT_f32, &n, q->per_row ? 1 : 0);
  memcpy((void *)(uintptr_t)t->data, q->scale, tensor_bytes(t));
  return put_tensor(k, l->w, "_scale", t);
}

static Str put_zeros(QuantMake *k, const QuantLayer *l, const QuantWeights *q, DType dt, i64 zero) {
  i64 n = l->weight->dim[l->axis];
  Tensor *t = new_tensor(k, dt, &n, q->per_row ? 1 : 0);
  for (u64 i = 0; zero && i < t->n; i++) tensor_set(t, i, (Scalar){.i = zero});
  return put_tensor(k, l->w, "_zero_point", t);
}

/* Codes as u8 with a zero point of 128. */
static Tensor *raised(QuantMake *k, const Tensor *like, const i8 *code) {
  Tensor *t = new_tensor(k, DT_u8, like->dim, like->rank);
  for (u64 i = 0; i < t->n; i++) tensor_set(t, i, (Scalar){.i = code[i] + 128});
  return t;
}

static void make_weights(QuantMake *k, QuantLayer *l) {
  u64 key = 2 * (u64)l->w + l->axis;
  /* ONNX Runtime fails on shared s8 weights of int8 products; it accepts u8, but not with s8. */
  bool own = k->j->wish.method == QM_static && k->j->wish.is_signed;
  u32 *there = own ? NULL : map_get(&k->weights, key);
  if (there) {
    set_in(k, l, 1, *there);
    l->after = 0; /* counted with the first user */
  }
  const QuantWeights *q = quant_encode_weights(k->j, l);
  if (there) return;
  bool four = quant_bits(k->j, l) == 4;
  bool shared = !own && !four && quant_use_count(k->j, l->w) > 1;
  DType dt = four ? DT_i4 : shared ? DT_u8 : DT_i8;
  Tensor *codes = tensor_wrap(&k->c->work, dt, l->weight->dim, l->weight->rank, q->code);
  if (shared) codes = raised(k, codes, q->code);
  Str in[3] = {put_tensor(k, l->w, "_quantized", codes), put_scales(k, l, q),
               put_zeros(k, l, q, dt, shared ? 128 : 0)};
  Str d = fresh(k, l->w, "_dequantized");
  OnnxNode *n = put_node(k, "DequantizeLinear", k->linear, in, 3, d);
  if (q->per_row) onnx_set_int(k->c, n, "axis", l->axis);
  *map_put(&k->weights, key) = d;
  set_in(k, l, 1, d);
  u64 scales = q->per_row ? (u64)l->weight->dim[l->axis] : 1;
  l->after = (four ? (l->weight->n + 1) / 2 : l->weight->n) + 4 * scales;
}

static double bias_at(const QuantLayer *l, u64 i) {
  return (l->bias ? tensor_get(l->bias, i).f : 0) + (l->shift ? l->shift[i] : 0);
}

/* The bias of the layer as floats. */
static const Tensor *float_bias(QuantMake *k, const QuantLayer *l) {
  i64 n = l->weight->dim[l->axis];
  Tensor *t = new_tensor(k, DT_f32, &n, 1);
  for (u64 i = 0; i < t->n; i++) tensor_set(t, i, (Scalar){.f = (double)(float)bias_at(l, i)});
  return t;
}

static void make_float_bias(QuantMake *k, const QuantLayer *l) {
  set_in(k, l, 2, put_tensor(k, l->b ? l->b : l->w, "_bias", float_bias(k, l)));
}

/* Quantizes the bias in multiples of the product of both scales, so that sums stay integers. */
static void make_bias(QuantMake *k, QuantLayer *l) {
  const QuantWeights *q = quant_encode_weights(k->j, l);
  float sx;
  i32 zero;
  quant_scale(k->j, &k->j->point.at[l->point], &sx, &zero);
  i64 n = l->weight->dim[l->axis];
  Tensor *codes = new_tensor(k, DT_i32, &n, 1),
         *scale = new_tensor(k, DT_f32, &n, q->per_row ? 1 : 0);
  for (u64 i = 0; i < codes->n; i++) {
    float s = sx * q->scale[q->per_row ? i : 0];
    double x = rint(bias_at(l, i) / (double)s);
    if (!(fabs(x) < 0x1p30) || !(s > 1e-35f)) {
      make_float_bias(k, l);
      return;
    }
    tensor_set(codes, i, (Scalar){.i = (i64)x});
    if (i == 0 || q->per_row) tensor_set(scale, i, (Scalar){.f = (double)s});
  }
  Str stem = l->b ? l->b : l->w, in[2] = {put_tensor(k, stem, "_bias_quantized", codes),
                                          put_tensor(k, stem, "_bias_scale", scale)};
  Str d = fresh(k, stem, "_bias_dequantized");
  OnnxNode *node = put_node(k, "DequantizeLinear", k->linear, in, 2, d);
  if (q->per_row) onnx_set_int(k->c, node, "axis", 0);
  set_in(k, l, 2, d);
}

/* Applies the correction to the Add after a MatMul. */
static void move_late_bias(QuantMake *k, const QuantLayer *l) {
  const Tensor *b = quant_constant(k->j, l->late_bias);
  Tensor *t = new_tensor(k, DT_f32, b->dim, b->rank);
  for (u64 i = 0; i < t->n; i++)
    tensor_set(t, i, (Scalar){.f = (double)(float)(tensor_get(b, i).f + l->shift[i])});
  Str name = put_tensor(k, l->late_bias, "_corrected", t);
  for (u32 i = 0; i < k->g->nodes.n; i++)
    for (u32 o = 0; o < k->g->nodes.at[i].in.n; o++)
      if (k->g->nodes.at[i].in.at[o] == l->late_bias) {
        k->g->nodes.at[i].in.at[o] = name;
        k->g->nodes.at[i].edited = true;
      }
}

static bool takes_bias(const QuantMake *k, const QuantLayer *l) {
  return !str_is(k->c, l->op, "MatMul");
}

static void make_static(QuantMake *k, QuantLayer *l) {
  make_weights(k, l);
  if (takes_bias(k, l) && (l->bias || l->shift)) make_bias(k, l);
  if (!takes_bias(k, l) && l->shift && l->late_bias) move_late_bias(k, l);
}

/* ---- dynamic ---- */

static Str dynamic_bytes(QuantMake *k, Str x, Str *scale, Str *zero) {
  u32 *at = map_get(&k->bytes, x);
  if (!at) {
    Str q = fresh(k, x, "_quantized"), s = fresh(k, x, "_scale"), z = fresh(k, x, "_zero_point");
    OnnxNode *n = put_node(k, "DynamicQuantizeLinear", "", &x, 1, q);
    onnx_node_out(k->c, n, s);
    onnx_node_out(k->c, n, z);
    *map_put(&k->bytes, x) = q;
    *map_put(&k->scale, x) = s;
    *map_put(&k->zero, x) = z;
    at = map_get(&k->bytes, x);
  }
  *scale = *map_get(&k->scale, x);
  *zero = *map_get(&k->zero, x);
  return *at;
}

/* Weights of MatMulInteger: [k, n]. */
static Str dynamic_weights(QuantMake *k, const QuantLayer *l, const QuantWeights *q) {
  const Tensor *w = l->weight;
  if (l->axis)
    return put_tensor(k, l->w, "_quantized", tensor_wrap(&k->c->work, DT_i8, w->dim, 2, q->code));
  i64 dim[2] = {w->dim[1], w->dim[0]};
  Tensor *t = new_tensor(k, DT_i8, dim, 2);
  for (u64 i = 0; i < w->n; i++)
    tensor_set(t, i % (u64)dim[0] * (u64)dim[1] + i / (u64)dim[0], (Scalar){.i = q->code[i]});
  return put_tensor(k, l->w, "_quantized", t);
}

static void make_dynamic(QuantMake *k, QuantLayer *l) {
  const QuantWeights *q = quant_encode_weights(k->j, l);
  Str xs, xz, xq = dynamic_bytes(k, l->x, &xs, &xz), wq = dynamic_weights(k, l, q);
  Str sums = fresh(k, l->y, "_sums"), plain = fresh(k, l->y, "_floats"),
      by = fresh(k, l->y, "_scale"), ws = put_scales(k, l, q);
  bool moved = takes_bias(k, l) && (l->bias || l->shift);
  Str scaled = moved ? fresh(k, l->y, "_scaled") : l->y;
  OnnxNode *n = node_of(k, l);
  n->op = str_of(k->c, "MatMulInteger");
  n->in.n = n->attrs.n = 0;
  onnx_node_in(k->c, n, xq);
  onnx_node_in(k->c, n, wq);
  onnx_node_in(k->c, n, xz);
  n->out.at[0] = sums;
  OnnxNode *cast = put_node(k, "Cast", "", &sums, 1, plain);
  onnx_set_int(k->c, cast, "to", 1);
  put_node(k, "Mul", "", (Str[]){xs, ws}, 2, by);
  put_node(k, "Mul", "", (Str[]){plain, by}, 2, scaled);
  if (moved) {
    Str b = put_tensor(k, l->w, "_bias", float_bias(k, l));
    put_node(k, "Add", "", (Str[]){scaled, b}, 2, l->y);
  }
  if (!takes_bias(k, l) && l->shift && l->late_bias) move_late_bias(k, l);
  l->after = l->weight->n + 4 * (q->per_row ? (u64)l->weight->dim[l->axis] : 1);
}

/* ---- weights only ---- */

/* MatMulNBits: one row per output channel, groups along the reduction axis, low bits first. */
static void make_blocks(QuantMake *k, QuantLayer *l) {
  const QuantWeights *q = quant_encode_weights(k->j, l);
  const Tensor *w = l->weight;
  u32 bits = k->j->wish.method == QM_weights4 ? 4 : 8, block = k->j->wish.block;
  i64 rows = w->dim[l->axis], n = w->dim[1 - l->axis], blocks = (i64)q->per_row,
      bytes = (i64)block * bits / 8;
  Tensor *t = new_tensor(k, DT_u8, (i64[]){rows, blocks, bytes}, 3),
         *s = new_tensor(k, DT_f32, (i64[]){rows * blocks}, 1);
  u8 *to = (u8 *)(uintptr_t)t->data;
  i32 middle = 1 << (bits - 1);
  for (i64 r = 0; r < rows; r++)
    for (i64 i = 0; i < blocks * block; i++) {
      i32 code = i < n ? q->code[l->axis ? i * rows + r : r * n + i] : 0;
      u32 x = (u32)(code + middle);
      i64 at = r * blocks * bytes + i * bits / 8;
      to[at] = (u8)(to[at] | (bits == 4 && i % 2 ? x << 4 : x));
    }
  memcpy((void *)(uintptr_t)s->data, q->scale, tensor_bytes(s));
  Str wq = put_tensor(k, l->w, bits == 4 ? "_Q4" : "_Q8", t),
      sq = put_tensor(k, l->w, "_scales", s);
  bool moved = takes_bias(k, l) && (l->bias || l->shift);
  if (moved) make_float_bias(k, l);
  OnnxNode *node = node_of(k, l);
  Str b = moved ? node->in.at[2] : 0;
  node->op = str_of(k->c, "MatMulNBits");
  node->domain = str_of(k->c, "com.microsoft");
  node->in.n = 1;
  node->attrs.n = 0;
  onnx_node_in(k->c, node, wq);
  onnx_node_in(k->c, node, sq);
  for (u32 i = 3; moved && i < 5; i++) onnx_node_in(k->c, node, 0);
  if (moved) onnx_node_in(k->c, node, b);
  onnx_set_int(k->c, node, "K", n);
  onnx_set_int(k->c, node, "N", rows);
  onnx_set_int(k->c, node, "bits", bits);
  onnx_set_int(k->c, node, "block_size", block);
  onnx_set_int(k->c, node, "accuracy_level", 4); /* allows int8 activations */
  onnx_require_opset(k->c, k->m, "com.microsoft", 1);
  if (!moved && l->shift && l->late_bias) move_late_bias(k, l);
  l->after = tensor_bytes(t) + tensor_bytes(s);
}

/* Gathers quantized rows and their scales, because dequantizing first would expand the table. */
static void make_table(QuantMake *k, QuantLayer *l) {
  const QuantWeights *q = quant_encode_weights(k->j, l);
  const Tensor *w = l->weight;
  i64 dim[2] = {w->dim[0], 1};
  Tensor *codes = tensor_wrap(&k->c->work, DT_i8, w->dim, 2, q->code),
         *scale = new_tensor(k, DT_f32, dim, q->per_row ? 2 : 0);
  memcpy((void *)(uintptr_t)scale->data, q->scale, tensor_bytes(scale));
  Str rows = fresh(k, l->y, "_quantized"), plain = fresh(k, l->y, "_floats"),
      by = put_tensor(k, l->w, "_scale", scale);
  set_in(k, l, 0, put_tensor(k, l->w, "_quantized", codes));
  node_of(k, l)->out.at[0] = rows;
  OnnxNode *cast = put_node(k, "Cast", "", &rows, 1, plain);
  onnx_set_int(k->c, cast, "to", 1);
  if (q->per_row) {
    Str each = fresh(k, l->y, "_scale");
    put_node(k, "Gather", "", (Str[]){by, l->x}, 2, each);
    by = each;
  }
  put_node(k, "Mul", "", (Str[]){plain, by}, 2, l->y);
  l->after = w->n + tensor_bytes(scale);
}

static void make_small(QuantMake *k, QuantLayer *l) {
  if (quant_is_blockwise(k->j, l)) {
    make_blocks(k, l);
    return;
  }
  make_weights(k, l);
  if (takes_bias(k, l) && l->shift) make_float_bias(k, l);
  if (!takes_bias(k, l) && l->shift && l->late_bias) move_late_bias(k, l);
}

/* ---- 16-bit floats ---- */

enum { LEAST_HALVES = 64 }; /* minimum elements of a tensor for a Cast */

/* Is it read by a skipped layer? */
static bool is_kept(const QuantMake *k, Str name) {
  for (u32 i = 0; i < k->j->layer.n; i++)
    if (k->j->layer.at[i].skip && (k->j->layer.at[i].w == name || k->j->layer.at[i].b == name))
      return true;
  return false;
}

static const Tensor *halves(QuantMake *k, const Tensor *t, DType to) {
  Tensor *y = new_tensor(k, to, t->dim, t->rank);
  for (u64 i = 0; i < t->n; i++) {
    double x = tensor_get(t, i).f, h = scalar_round(to, x);
    if (isfinite(x) && !isfinite(h)) return NULL; /* overflows f16 */
    tensor_set(y, i, (Scalar){.f = h});
  }
  return y;
}

/* Stores a constant as 16-bit floats with a Cast that keeps its name; false: not possible. */
static bool make_half(QuantMake *k, Str name, DType to) {
  const Tensor *t = quant_constant(k->j, name), *h = NULL;
  if (!t || t->n < LEAST_HALVES || !quant_use_count(k->j, name) || is_kept(k, name)) return false;
  h = halves(k, t, to);
  for (u32 l = 0; l < k->j->layer.n; l++)
    if (k->j->layer.at[l].w == name)
      k->j->layer.at[l].stays = h ? NULL : "numbers that overflow 16-bit floats";
  if (!h) return false;
  Str narrow = put_tensor(k, name, to == DT_f16 ? "_f16" : "_bf16", h);
  onnx_drop_init(k->g, name);
  OnnxNode *n = put_node(k, "Cast", "", &narrow, 1,
                         name); /* keeps the name, because sub-graphs read it too */
  onnx_set_int(k->c, n, "to", 1);
  for (u32 l = 0; l < k->j->layer.n; l++)
    if (k->j->layer.at[l].w == name) k->j->layer.at[l].after = tensor_bytes(h);
  return true;
}

static void make_halves(QuantMake *k, DType to) {
  const OnnxGraph *from = k->j->m->graph;
  bool any = k->j->layer.n > 0; /* each layer reports its own reason */
  for (u32 i = 0; i < from->inits.n; i++) any |= make_half(k, from->inits.at[i].name, to);
  for (u32 i = 0; i < from->nodes.n; i++) {
    bool constant = str_is(k->c, from->nodes.at[i].op, "Constant") && from->nodes.at[i].out.n == 1;
    if (!constant || !make_half(k, from->nodes.at[i].out.at[0], to)) continue;
    any = true;
    k->g->nodes.at[i].out.n = 0;
  }
  if (!any)
    fail(k->c, ERR_unsupported, LOC_NONE,
         "has nothing to quantize: no constant of f32 with %d elements or more outside of "
         "sub-graphs",
         LEAST_HALVES);
}

/* ---- entry point ---- */

/* Removes replaced nodes and what only they read. */
static void drop_replaced(QuantMake *k) {
  OnnxGraph *g = k->g;
  u32 n = 0;
  for (u32 i = 0; i < g->nodes.n; i++)
    if (g->nodes.at[i].out.n) g->nodes.at[n++] = g->nodes.at[i];
  g->nodes.n = n;
  onnx_drop_unused(k->c, g, &k->j->readers);
}

static void need_version(QuantMake *k, i64 least, const char *what) {
  i64 have = onnx_opset(k->c, k->m, "");
  if (have < least)
    fail(k->c, ERR_unsupported, LOC_NONE,
         "uses ONNX opset %lld, and %s needs %lld: convert it first "
         "(onnx.version_converter)",
         (long long)have, what, (long long)least);
}

OnnxModel *quant_make(QuantJob *j) {
  Ctx *c = j->c;
  QuantMake k = {.j = j, .c = c, .m = onnx_copy(c, j->m), .linear = ""};
  QuantMethod how = j->wish.method;
  k.g = k.m->graph;
  k.taken = map_copy(&c->work, &j->taken);
  k.bytes = map_new(&c->work);
  k.scale = map_new(&c->work);
  k.zero = map_new(&c->work);
  k.weights = map_new(&c->work);
  if (how == QM_static) need_version(&k, 10, "QLinearConv, which runtimes make of it,");
  if (how == QM_dynamic) need_version(&k, 11, "DynamicQuantizeLinear");
  if (how == QM_f16 || how == QM_bf16) need_version(&k, how == QM_f16 ? 6 : 13, "Cast");
  if (onnx_opset(c, k.m, "") < 13)
    k.linear = "com.microsoft"; /* before opset 13, ONNX has no axis attribute */
  bool any = false;
  k.stays = NEWS(&c->work, bool, k.g->nodes.n + 1);
  for (u32 i = 0; i < j->layer.n; i++) {
    QuantLayer *l = &j->layer.at[i];
    l->after = l->before;
    l->stays = how < QM_f16                  ? NULL
               : l->weight->n < LEAST_HALVES ? "few elements"
                                             : "a layer that is not quantized has the same weights";
    k.stays[l->node] = l->skip;
    if (l->skip) continue;
    any = true;
    if (l->table && how <= QM_weights4) {
      make_table(&k, l);
      continue;
    }
    if (how == QM_static) make_static(&k, l);
    bool product = how == QM_dynamic && l->weight->rank == 2;
    if (product) make_dynamic(&k, l);
    if (how != QM_static && how <= QM_weights4 && !product) make_small(&k, l);
  }
  if (any && *k.linear && how <= QM_weights4) onnx_require_opset(c, k.m, k.linear, 1);
  bool *used = NEWS(&c->work, bool, j->point.n + 1);
  for (u32 i = 0; i < j->layer.n; i++)
    if (!j->layer.at[i].skip && !j->layer.at[i].table) used[j->layer.at[i].point] = true;
  for (u32 i = 0; how == QM_static && i < j->point.n; i++)
    if (used[i]) make_bytes(&k, &j->point.at[i]);
  if (how == QM_f16 || how == QM_bf16) make_halves(&k, how == QM_f16 ? DT_f16 : DT_bf16);
  if (k.m->ir_version < 4) k.m->ir_version = 4; /* before, initializers had to be inputs too */
  onnx_toposort(c, k.g);
  drop_replaced(&k);
  return k.m;
}
