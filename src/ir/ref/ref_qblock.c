/* ref_qblock.c: dequantization of block formats, and products with them. */
#include "ir/quant/qblock.h"
#include "ir/ref/ref.h"

#include <string.h>

static QBlockKind kind_of(const Ref *r, const Node *n) {
  Str s = node_attr(n, AT_kind)->u.s;
  return qblock_from_name(str_text(r->c, s), str_len(r->c, s));
}

void ref_dequantize(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  QBlockKind k = kind_of(r, n);
  const QBlockInfo *b = &qblock_info[k];
  const Tensor *x = in[0];
  i64 dim[MAX_RANK];
  memcpy(dim, x->dim, x->rank * sizeof *dim);
  dim[x->rank - 2] *= b->elems;
  Tensor *t = *out = ref_new(r, DT_f32, dim, x->rank - 1);
  float some[QBLOCK_MOST];
  for (u64 i = 0; i < x->n / b->bytes; i++) {
    qblock_decode(k, (const u8 *)x->data + i * b->bytes, 1, some);
    for (u32 j = 0; j < b->elems; j++)
      scalar_store(t->dt, (u8 *)ref_data(t) + (i * b->elems + j) * dtype_bytes(t->dt),
                   (Scalar){.f = some[j]});
  }
}

/* Exact integer dot product of one group with elements from `at` of x. */
static i64 group_product(const Tensor *x, u64 at, const i16 *v, u32 n) {
  i64 sum = 0;
  for (u32 i = 0; i < n; i++) sum += tensor_get(x, at + i).i * v[i];
  return sum;
}

typedef struct BlockDot {
  QBlockKind kind;
  DType dt;        /* result is rounded to it */
  const Tensor *x; /* floats, or quantized integers with scales `by` and group sums */
  const Tensor *w, *by, *sum;
  u64 n; /* elements of a row of x */
} BlockDot;

static double rounded(const BlockDot *b, double x) {
  return scalar_round(b->dt, x);
}

/* Adds the dot product of row `at` of x and the group that starts at element e of a block. */
static double add_group(const BlockDot *b, const QBlockParts *part, double acc, u64 at, u64 e) {
  const QBlockInfo *info = &qblock_info[b->kind];
  u64 group = qblock_group(b->kind), in_block = e % info->elems, x = at * b->n + e;
  u32 g = qblock_scale(b->kind, (u32)in_block);
  if (!b->by) {
    for (u64 i = 0; i < group; i++) {
      float w = part->s[g] * (float)part->v[in_block + i];
      if (info->m != QBLOCK_NO) w = w + part->o[g];
      acc = rounded(b, acc + rounded(b, (double)w * tensor_get(b->x, x + i).f));
    }
    return acc;
  }
  double by = tensor_get(b->by, x / QBLOCK_X).f;
  i64 product = group_product(b->x, x, part->v + in_block, (u32)group);
  acc = rounded(b, acc + rounded(b, (double)product * rounded(b, part->s[g] * by)));
  if (info->m == QBLOCK_NO) return acc;
  return rounded(b, acc + rounded(b, part->o[g] * tensor_get(b->sum, x / group).f));
}

/* add_group for all groups of a block with integer scales. */
static double add_scaled(const BlockDot *b, const QBlockParts *part, double acc, u64 at, u64 e) {
  const QBlockInfo *info = &qblock_info[b->kind];
  u64 group = qblock_group(b->kind), in_block = e % info->elems, x = at * b->n + e;
  double by = tensor_get(b->by, x / info->elems).f;
  i64 product = 0;
  for (u64 i = 0; i < info->elems && info->m != QBLOCK_NO; i += group) {
    float o = part->o[qblock_scale(b->kind, (u32)(in_block + i))];
    acc = rounded(b, acc + rounded(b, o * tensor_get(b->sum, (x + i) / group).f));
  }
  for (u64 i = 0; i < info->elems; i += group)
    product += part->sc[qblock_scale(b->kind, (u32)(in_block + i))] *
               group_product(b->x, x + i, part->v + in_block + i, (u32)group);
  double total = rounded(b, (double)product);
  return rounded(b, acc + rounded(b, total * rounded(b, part->d * by)));
}

void ref_matmul_quant(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  BlockDot b = {.kind = kind_of(r, n), .x = in[0], .w = in[1], .n = (u64)in[0]->dim[1]};
  const QBlockInfo *info = &qblock_info[b.kind];
  u64 rows = (u64)b.w->dim[0];
  Tensor *t = *out = ref_new(r, DT_f32, (i64[]){b.x->dim[0], b.w->dim[0]}, 2);
  QBlockParts part = {0};
  bool scaled = n->nin > 2 && qblock_is_scaled(b.kind);
  u64 each = scaled ? info->elems : qblock_group(b.kind);
  b.dt = t->dt;
  if (n->nin > 2) {
    b.by = in[2];
    if (n->nin > 3) b.sum = in[3];
  }
  for (u64 i = 0; i < t->n; i++) {
    const u8 *block = (const u8 *)b.w->data + i % rows * (b.n / info->elems) * info->bytes;
    double acc = 0;
    for (u64 e = 0; e < b.n; e += each) {
      if (e % info->elems == 0) qblock_split(b.kind, block + e / info->elems * info->bytes, &part);
      acc = (scaled ? add_scaled : add_group)(&b, &part, acc, i / rows, e);
    }
    scalar_store(t->dt, (u8 *)ref_data(t) + i * dtype_bytes(t->dt), (Scalar){.f = acc});
  }
}
