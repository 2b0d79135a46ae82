/* dequantize.c: lowers block-quantized weights.
 *
 * In: a graph with `dequantize` nodes. Out: the same graph without them:
 *
 *   gather(dequantize(w), i)    gathers rows first, so that only those are dequantized
 *   gather(cast(w), i)          casts rows of a large constant of halves
 *   contract(x, dequantize(w))  matmul_quant on the quant blocks, if w is a constant
 *   any other dequantize(w)     slices of bytes, shifts and products, as in qblocks.def
 *
 * Unless --precise or on a GPU, x of a matmul_quant is quantized to int8 first. A group of 32
 * elements, or a whole quant block if group scales are integers, shares the scale max|x| / 127.
 * That costs about as much precision as ggml's int8 products. With x_bits = 16, the rounding errors
 * are quantized as further rows, whose products are added. The scale is larger if sums of a group
 * would make products exceed 16 bits. If an element is not finite, the scale is NaN, and so are all
 * products. Groups below MIN_SCALE become 0.
 *
 * Formats with x_bits = 32 (ONNX's) are multiplied with floats, and only for few rows. For many
 * rows they are dequantized at compile time.
 *
 * Constants of plain elements are reinterpreted. Small quantized ones are dequantized at compile
 * time, larger ones stay quantized.
 *
 * needs: nothing; before fold, which would dequantize the weights  keeps: types  breaks: bits of
 * products, unless --precise or on a GPU
 */
#include <math.h>
#include <string.h>
#include "ir/quant/qblock.h"
#include "pass/pass.h"

enum { SMALL = 1 << 16 };  /* maximum elements of a constant that is dequantized at compile time */
#define MIN_SCALE 0x1p-119 /* 127 / MIN_SCALE is finite */

typedef struct DequantPass {
  bool precise;
  bool signs; /* the target prefers signed int8 products */
  u32 *uses;
} DequantPass;

static QBlockKind kind_of(Graph *g, const Node *n) {
  Str s = node_attr(n, AT_kind)->u.s;
  return qblock_from_name(str_text(g->c, s), str_len(g->c, s));
}

/* ---- products ---- */

/* Merges all axes of v except the last. */
static Val as_rows(Graph *g, Val v, Dim n) {
  const Type *t = graph_type(g, v);
  Dim rows = 1;
  for (u32 i = 0; i + 1 < t->rank; i++) rows = dim_mul(g->dims, rows, t->dim[i]);
  return mk_reshape(g, v, (Dim[]){rows, n}, 2);
}

/* Magnitude that maps to 127, from which scales are computed. size: |x| in groups that share a
 * scale. */
static Val full_scale(Graph *g, Val size, QBlockKind k) {
  Type t = *graph_type(g, size);
  i64 last = 2, in_group = 3, group = qblock_group(k), room = qblock_x_sum(k) - group / 2 - 1;
  Val most = mk_reduce(g, OP_reduce_max, size, &last, 1, true);
  if (!qblock_is_scaled(k) || group * QBLOCK_X_MOST <= qblock_x_sum(k)) return most;
  Dim dim[4] = {t.dim[0], t.dim[1], qblock_x(k) / group, group};
  Val part = mk_map2(g, OP_mul, size, mk_like(g, size, (double)QBLOCK_X_MOST / (double)room));
  Val sum = mk_reduce(g, OP_reduce_sum, mk_reshape(g, part, dim, 4), &in_group, 1, false);
  Val sums = mk_reduce(g, OP_reduce_max, sum, &last, 1, true);
  return mk_map2(g, OP_max, most, sums);
}

/* Rounding errors of `whole`, the rounded `scaled`, as int8. by: their factor. */
static Val rounding_errors(Graph *g, Val scaled, Val whole, QBlockKind k, double *by) {
  i64 room = qblock_is_scaled(k) ? qblock_x_sum(k) / qblock_group(k) : QBLOCK_X_MOST;
  *by = 2.0 * (double)(room < QBLOCK_X_MOST ? room : QBLOCK_X_MOST);
  Val less = mk_map2(g, OP_sub, scaled, whole);
  return mk_map1(g, OP_round, mk_map2(g, OP_mul, less, mk_like(g, less, *by)));
}

/* Builds the operands of matmul_quant for x, rows of floats: int8, scales, sums of groups. Returns
 * their number. x_bits 16: the second half of the rows are rounding errors. */
static u32 quantize(Graph *g, Val x, QBlockKind k, u32 x_bits, bool signs, Val *in) {
  Dim rows = graph_type(g, x)->dim[0], n = graph_type(g, x)->dim[1];
  i64 last = 2, group = qblock_group(k), each = qblock_x(k);
  Val parts = mk_reshape(g, x, (Dim[]){rows, n / each, each}, 3);
  Val most = full_scale(g, mk_map1(g, OP_abs, parts), k);
  Val finite = mk_map2(g, OP_lt, most, mk_like(g, most, INFINITY));
  Val some = mk_map2(g, OP_gt, most, mk_like(g, most, MIN_SCALE));
  Val inverse = mk_map2(g, OP_div, mk_like(g, most, QBLOCK_X_MOST), most);
  inverse = mk_select(g, some, inverse, mk_like(g, most, 0));
  Val scaled = mk_map2(g, OP_mul, parts, inverse), whole = mk_map1(g, OP_round, scaled);
  Val q = mk_cast_small(g, whole, DT_i8);
  Val factor = mk_map2(g, OP_div, most, mk_like(g, most, QBLOCK_X_MOST));
  factor = mk_select(g, finite, factor, mk_like(g, most, NAN));
  if (x_bits == 16) {
    double by;
    Val low = mk_cast_small(g, rounding_errors(g, scaled, whole, k, &by), DT_i8);
    Val small = mk_map2(g, OP_mul, factor, mk_like(g, factor, 1 / by));
    q = mk_concat(g, (const Val[]){q, low}, 2, 0);
    factor = mk_concat(g, (const Val[]){factor, small}, 2, 0);
    rows = dim_mul(g->dims, rows, 2);
  }
  in[0] = mk_reshape(g, q, (Dim[]){rows, n}, 2);
  in[2] = mk_reshape(g, factor, (Dim[]){rows, n / each}, 2);
  if (signs && qblock_has_signs(k)) return 3;
  Val wide = mk_cast(g, mk_reshape(g, q, (Dim[]){rows, n / group, group}, 3), DT_i32);
  Val sum = mk_reduce(g, OP_reduce_sum, wide, &last, 1, false);
  if (qblock_info[k].m != QBLOCK_NO) {
    sum = mk_reshape(g, sum, (Dim[]){rows, n / each, each / group}, 3);
    sum = mk_map2(g, OP_mul, factor, mk_cast(g, sum, DT_f32));
    sum = mk_reshape(g, sum, (Dim[]){rows, n / group}, 2);
  } else {
    sum = mk_cast(g, sum, qblock_sum_type(k));
  }
  in[3] = sum;
  return 4;
}

/* Is the spec ..k,rk->..r, with operand `weights` as a matrix? turned: ..k,kr. */
static bool is_product(Graph *g, const Node *n, u32 weights, bool turned) {
  const char *spec = str_text(g->c, node_attr(n, AT_spec)->u.s), *to = strstr(spec, "->") + 2;
  const char *part[2] = {spec, strchr(spec, ',') + 1};
  const char *w = part[weights], *x = part[1 - weights];
  u32 rank = graph_type(g, n->in[1 - weights])->rank;
  return rank && x[rank - 1] == w[!turned] && !memcmp(x, to, rank - 1) &&
         to[rank - 1] == w[turned] && strlen(to) == rank;
}

/* The dequantize node that v comes from, possibly through a transpose of the matrix. */
static const Node *find_blocks(Graph *g, Val v, bool *turned) {
  const Node *t = graph_def(g, v, OP_transpose);
  u32 rank = 0;
  const Dim *perm = t ? node_list(t, AT_perm, &rank) : NULL;
  *turned = rank == 2 && perm[0] == 1;
  return graph_def(g, *turned ? t->in[0] : v, OP_dequantize);
}

static bool has_many_rows(Graph *g, Val x) {
  const Type *t = graph_type(g, x);
  Dim rows = 1;
  for (u32 i = 0; i + 1 < t->rank; i++) rows = dim_mul(g->dims, rows, t->dim[i]);
  return dim_is_const(rows) && rows >= LIMIT_dequantize_rows;
}

static bool make_product(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  DequantPass *b = e->user;
  Node n = *graph_node(g, id); /* building moves the nodes */
  if (n.op != OP_contract) return false;
  bool turned = false;
  u32 weights = find_blocks(g, n.in[1], &turned) ? 1 : 0;
  const Node *from = find_blocks(g, n.in[weights], &turned);
  if (!from || !graph_const(g, from->in[0]) || graph_type(g, from->in[0])->rank != 3) return false;
  QBlockKind k = kind_of(g, from);
  Val w = from->in[0], x = n.in[1 - weights], in[4] = {0, w};
  if (qblock_is_plain(k) || graph_type(g, x)->dt != DT_f32 || !is_product(g, &n, weights, turned))
    return false;
  u32 x_bits = (u32)node_int(from, AT_x_bits, 8);
  if (x_bits == 32 && has_many_rows(g, x)) return false;
  if (b->precise) x_bits = 32;
  const Type *xt = graph_type(g, x), out = *graph_type(g, n.out[0]);
  in[0] = x = as_rows(g, x, xt->dim[xt->rank - 1]);
  u32 nin = x_bits == 32 ? 2 : quantize(g, x, k, x_bits, b->signs, in);
  Val y = mk_matmul_quant(g, in, nin, qblock_info[k].name);
  if (x_bits == 16) {
    Dim n_rows = graph_type(g, x)->dim[0];
    Val high = mk_slice_axis(g, y, 0, 0, n_rows);
    y = mk_map2(g, OP_add, high, mk_slice_axis(g, y, 0, n_rows, n_rows));
  }
  edit_replace(e, n.out[0], mk_reshape(g, y, out.dim, out.rank));
  return true;
}

/* ---- rows ---- */

static bool pick_rows(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *from = n.op == OP_gather ? graph_def(g, n.in[0], OP_dequantize) : NULL,
             *cast = n.op == OP_gather ? graph_def(g, n.in[0], OP_cast) : NULL;
  i64 axis = node_int(&n, AT_axis, 0);
  const Tensor *t = cast ? graph_const(g, cast->in[0]) : NULL;
  if (t && t->n > SMALL && dtype_is_half(t->dt)) {
    DType to = graph_type(g, n.in[0])->dt;
    edit_replace(e, n.out[0], mk_cast(g, mk_gather(g, cast->in[0], n.in[1], axis), to));
    return true;
  }
  if (!from || axis + 1 >= graph_type(g, n.in[0])->rank) return false;
  const char *kind = qblock_info[kind_of(g, from)].name;
  u32 x_bits = (u32)node_int(from, AT_x_bits, 8);
  edit_replace(e, n.out[0],
               mk_dequantize(g, mk_gather(g, from->in[0], n.in[1], axis), kind, x_bits));
  return true;
}

static bool visit_users(GraphEdit *e, NodeId id) {
  return !(make_product(e, id) || pick_rows(e, id));
}

/* ---- dequantization ---- */

typedef struct Dequant {
  Graph *g;
  QBlockKind kind;
  Val x;             /* u8[.., blocks, bytes] */
  u32 rank;          /* rank of x */
  Dim dim[MAX_RANK]; /* dimensions of x; the result replaces bytes by elements */
} Dequant;

/* Reshapes the byte axis of v. */
static Val shaped(Dequant *a, Val v, i64 i, i64 j, i64 k) {
  i64 more[3] = {i, j, k};
  u32 rank = a->rank - 1;
  for (u32 at = 0; at < 3; at++)
    if (more[at]) a->dim[rank++] = more[at];
  return mk_reshape(a->g, v, a->dim, rank);
}

static Val bytes_at(Dequant *a, u32 at, u32 n) {
  return mk_slice_axis(a->g, a->x, a->rank - 1, at, n);
}

/* u8[levels, 1]: shift of the digits of each level, or factor of the byte. */
static Val by_level(Graph *g, const Plane *p) {
  Tensor *t = tensor_new(&g->c->work, DT_u8, (i64[]){p->levels, 1}, 2);
  for (u32 i = 0, power = 1; i < p->levels; i++, power *= 3)
    tensor_set(t, i, (Scalar){.i = p->digit == BD_trit ? power : (p->first + i) << p->digit});
  return mk_const(g, t);
}

static Val bits_as(Graph *g, Val v, DType to) {
  Attr at = {.key = AT_to, .kind = AK_dtype, .u.i = to};
  return graph_node(g, graph_add(g, OP_bitcast, &v, 1, &at, 1))->out[0];
}

/* Digits of a plane, i32[.., blocks, n], shifted to their position. */
static Val digits(Dequant *a, const Plane *p) {
  Graph *g = a->g;
  u32 n = (u32)p->chunks * p->run;
  Val v = shaped(a, bytes_at(a, p->at, n), p->chunks, 1, p->run);
  if (p->digit == BD_byte) {
    v = bits_as(g, v, DT_i8);
  } else if (p->digit == BD_trit) {
    v = mk_cast(g, mk_map2(g, OP_mul, v, by_level(g, p)), DT_i32);
    Val eight = mk_like(g, v, 8);
    v = mk_map2(g, OP_shr, mk_map2(g, OP_mul, v, mk_like(g, v, 3)), eight);
  } else {
    v = mk_map2(g, OP_shr, v, by_level(g, p));
    v = mk_map2(g, OP_and, v, mk_like(g, v, (1 << (1 << p->digit)) - 1));
  }
  v = mk_cast(g, shaped(a, v, p->levels * n, 0, 0), DT_i32);
  return p->shift ? mk_map2(g, OP_shl, v, mk_like(g, v, p->shift)) : v;
}

/* i32[.., blocks, n]: all integers of a part; 0: none. Planes that start at an offset extend the
 * earlier ones. */
static Val integers(Dequant *a, QBlockPart part) {
  u32 n, count = qblock_info[a->kind].elems;
  const Plane *p = qblock_planes(a->kind, &n);
  Val all = 0;
  if (part != BP_quant) count /= qblock_info[a->kind].per;
  for (u32 i = 0; i < n; i++) {
    if (p[i].part != part || p[i].into) continue;
    Val piece[4] = {digits(a, &p[i])};
    u32 pieces = 1, end = (u32)p[i].chunks * p[i].run * p[i].levels;
    for (u32 j = i + 1; j < n && pieces < 4; j++)
      if (p[j].part == part && p[j].into == end && end < count) {
        piece[pieces++] = digits(a, &p[j]);
        end += (u32)p[j].chunks * p[j].run * p[j].levels;
      }
    Val v = pieces > 1 ? mk_concat(a->g, piece, pieces, a->rank - 1) : piece[0];
    all = all ? mk_map2(a->g, OP_add, all, v) : v;
  }
  return all;
}

/* f32[.., blocks, 1] */
static Val half_at(Dequant *a, u32 at) {
  Graph *g = a->g;
  Val lo = mk_cast(g, bytes_at(a, at, 1), DT_u16), hi = mk_cast(g, bytes_at(a, at + 1, 1), DT_u16);
  Val u = mk_map2(g, OP_or, lo, mk_map2(g, OP_shl, hi, mk_like(g, hi, 8)));
  return mk_cast(g, bits_as(g, u, DT_f16), DT_f32);
}

static Val power_at(Dequant *a, u32 at) {
  Graph *g = a->g;
  Val b = mk_cast(g, bytes_at(a, at, 1), DT_i32);
  Val tiny = mk_map2(g, OP_shl, mk_like(g, b, 0x200000), b);
  Val place = mk_like(g, b, 23);
  Val usual = mk_map2(g, OP_shl, mk_map2(g, OP_sub, b, mk_like(g, b, 1)), place);
  Val bits = mk_select(g, mk_map2(g, OP_lt, b, mk_like(g, b, 2)), tiny, usual);
  return bits_as(g, bits, DT_f32);
}

static Val single_at(Dequant *a, u32 at) {
  Graph *g = a->g;
  Val bits = 0;
  for (u32 i = 0; i < 4; i++) {
    Val byte = mk_cast(g, bytes_at(a, at + i, 1), DT_u32);
    if (i) byte = mk_map2(g, OP_shl, byte, mk_like(g, byte, 8.0 * i));
    bits = bits ? mk_map2(g, OP_or, bits, byte) : byte;
  }
  return bits_as(g, bits, DT_f32);
}

static Val factor_at(Dequant *a, u32 at) {
  QBlockFactor f = qblock_info[a->kind].factor;
  return f == BV_half ? half_at(a, at) : f == BV_single ? single_at(a, at) : power_at(a, at);
}

static Val table_values(Dequant *a, Val q) {
  Graph *g = a->g;
  Tensor *t = tensor_new(&g->c->work, DT_f32, (i64[]){16}, 1);
  for (u32 i = 0; i < 16; i++) tensor_set(t, i, (Scalar){.f = qblock_info[a->kind].values[i]});
  return mk_gather(g, mk_const(g, t), q, 0);
}

static Val less(Graph *g, Val v, i64 k) {
  return k ? mk_map2(g, OP_sub, v, mk_like(g, v, (double)k)) : v;
}

static Val floats(Graph *g, QBlockKind k, Val x) {
  const QBlockInfo *b = &qblock_info[k];
  Dequant a = {.g = g, .kind = k, .x = x, .rank = graph_type(g, x)->rank};
  memcpy(a.dim, graph_type(g, x)->dim, a.rank * sizeof *a.dim);
  u32 groups = b->elems / b->per;
  if (a.rank + 2 > MAX_RANK)
    fail(g->c, ERR_unsupported, g->loc, "dequantize has rank %u, expected at most %u", a.rank,
         MAX_RANK - 2);
  Val q = integers(&a, BP_quant), sc = integers(&a, BP_scale), mn = integers(&a, BP_least);
  Val v = b->values ? table_values(&a, q) : mk_cast(g, less(g, q, b->less), DT_f32);
  Val s = factor_at(&a, b->d);
  if (sc) s = mk_map2(g, OP_mul, s, mk_cast(g, less(g, sc, b->scale_less), DT_f32));
  s = sc ? shaped(&a, s, groups, 1, 0) : shaped(&a, s, 1, 1, 0);
  v = mk_map2(g, OP_mul, s, shaped(&a, v, groups, b->per, 0));
  if (b->m != QBLOCK_NO) {
    Val o = b->factor == BV_single ? single_at(&a, b->m) : half_at(&a, b->m);
    if (mn) o = mk_map2(g, OP_mul, o, mk_cast(g, mn, DT_f32));
    o = mn ? shaped(&a, o, groups, 1, 0) : shaped(&a, o, 1, 1, 0);
    v = mk_map2(g, mn ? OP_sub : OP_add, v, o);
  }
  a.dim[a.rank - 2] = dim_mul(g->dims, a.dim[a.rank - 2], b->elems);
  return mk_reshape(g, v, a.dim, a.rank - 1);
}

/* Plain elements whose bytes are the last axis. */
static Val retyped(Graph *g, QBlockKind k, Val x) {
  const Tensor *t = graph_const(g, x);
  const QBlockInfo *b = &qblock_info[k];
  const Type *xt = graph_type(g, x);
  if (t) {
    Tensor *y = NEW(&g->c->work, Tensor);
    *y = *t;
    y->dt = b->plain;
    y->rank--;
    y->n /= b->bytes;
    return mk_cast(g, mk_const(g, y), DT_f32);
  }
  static const DType words[] = {[1] = DT_u8, [2] = DT_u16, [4] = DT_u32, [8] = DT_u64};
  DType word = words[b->bytes];
  u32 rank = xt->rank;
  Dim dim[MAX_RANK];
  memcpy(dim, xt->dim, rank * sizeof *dim);
  Val all = 0;
  for (u32 i = 0; i < b->bytes; i++) {
    Val byte = mk_cast(g, mk_slice_axis(g, x, rank - 1, i, 1), word);
    if (i) byte = mk_map2(g, OP_shl, byte, mk_like(g, byte, 8.0 * i));
    all = all ? mk_map2(g, OP_or, all, byte) : byte;
  }
  return mk_reshape(g, mk_cast(g, bits_as(g, all, b->plain), DT_f32), dim, rank - 1);
}

static Val decoded(Graph *g, QBlockKind k, const Tensor *t) {
  i64 dim[MAX_RANK];
  memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank - 2] *= qblock_info[k].elems;
  Tensor *y = tensor_new(&g->c->work, DT_f32, dim, t->rank - 1);
  qblock_decode(k, t->data, t->n / qblock_info[k].bytes, (float *)(uintptr_t)y->data);
  return mk_const(g, y);
}

static bool visit_rest(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  DequantPass *b = e->user;
  if (n.op != OP_dequantize) return true;
  if (!b->uses[n.out[0]]) return false; /* otherwise fold would dequantize unused weights */
  QBlockKind k = kind_of(g, &n);
  const Tensor *t = graph_const(g, n.in[0]);
  bool plain = qblock_is_plain(k), small = t && t->n / qblock_info[k].bytes < SMALL / QBLOCK_MOST;
  if (t && qblock_info[k].factor == BV_single)
    small = true; /* f32 scales: dequantizing later would give the same */
  Val by = plain ? retyped(g, k, n.in[0]) : small ? decoded(g, k, t) : floats(g, k, n.in[0]);
  edit_replace(e, n.out[0], by);
  return false;
}

static bool has_blocks(const Graph *g) {
  for (NodeId i = 1; i < g->node.n; i++)
    if (g->node.at[i].op == OP_dequantize) return true;
  return false;
}

void dequantize(PassCtx *u) {
  Graph *g = u->g;
  DequantPass b = {.precise = u->precise || u->target->warp,
                   .signs = u->maddubs || u->target->lanes < 4};
  if (!has_blocks(g)) return;
  edit_run(g, visit_users, &b);
  b.uses = NEWS(&g->c->scratch, u32, g->val.n);
  graph_use_counts(g, b.uses);
  edit_run(g, visit_rest, &b);
}
