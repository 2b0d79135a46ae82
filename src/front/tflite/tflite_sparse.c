/* tflite_sparse.c: expands sparse tensors.
 *
 * In: the stored elements and the tree over them (SparsityParameters). Out: all elements in order,
 * with zeros between.
 *
 * Levels of the tree are the axes in the order of the file, then blocks of axes. A dense level has
 * all positions. Position k of a sparse level has the children segment[k] up to segment[k + 1],
 * each with its index. The position at the last level is the index of a stored element.
 *
 * The input is not trusted. Levels must be as long as the shape says, segments must not decrease,
 * and indices must be in range, so each element is visited at most once. Expanded bytes count
 * against the budget of the file, which limits memory.
 */
#include "front/tflite/tflite_import.h"
#include <string.h>

enum { SPARSE_order, SPARSE_blocks, SPARSE_levels };
enum { LEVEL_format, LEVEL_size, LEVEL_segment_type, LEVEL_segment, LEVEL_index_type, LEVEL_index };
enum { LEVEL_dense, LEVEL_csr };
enum { MAX_LEVELS = 2 * MAX_RANK, SPARSE_RATIO = 64 };

typedef struct SparseLevel {
  u32 axis;    /* axis of the tensor */
  i64 size;    /* number of positions */
  i64 stride;  /* elements between two positions */
  bool sparse; /* if sparse: */
  FlatVec segment, index;
} SparseLevel;

typedef struct Sparse {
  Ctx *c;
  const LiteTensor *t;
  Loc loc;
  SparseLevel level[MAX_LEVELS];
  u32 n;
  u8 *out;
  u32 size;   /* size of an element in bytes */
  u64 stored; /* number of stored elements */
} Sparse;

static _Noreturn void bad_sparse(const Sparse *s, const char *what) {
  fail(s->c, ERR_input, s->loc, "tensor '%s': %s of its sparse form do not fit its shape",
       show(s->c, s->t->name), what);
}

/* Index vectors have elements of 4, 2 or 1 bytes, depending on their type code. */
static FlatVec index_vec(const Sparse *s, const FlatTable *x, u32 type, u32 field) {
  static const u32 sizes[] = {0, 4, 2, 1};
  i64 k = flat_u8(x, type, 0);
  if (k < 1 || k > 3) bad_sparse(s, "indices");
  FlatTable v = flat_table(x, field);
  return flat_vec(&v, 0, sizes[k]);
}

static i64 index_at(const FlatVec *v, u64 i) {
  const u8 *p = v->f->at + v->at + i * v->size;
  if (v->size == 1) return p[0];
  u32 low = (u32)p[0] | (u32)p[1] << 8;
  return v->size == 2 ? (i64)low : (i64)(i32)(low | (u32)p[2] << 16 | (u32)p[3] << 24);
}

static void read_level(Sparse *s, SparseLevel *l, FlatTable x) {
  i64 format = flat_u8(&x, LEVEL_format, LEVEL_dense);
  if (format != LEVEL_dense && format != LEVEL_csr)
    fail(s->c, ERR_unsupported, s->loc, "tensor '%s': sparse format %lld is not supported",
         show(s->c, s->t->name), (long long)format);
  l->sparse = format == LEVEL_csr;
  if (!l->sparse) {
    l->size = flat_i32(&x, LEVEL_size, 0);
    return;
  }
  l->segment = index_vec(s, &x, LEVEL_segment_type, LEVEL_segment);
  l->index = index_vec(s, &x, LEVEL_index_type, LEVEL_index);
  i64 last = 0;
  for (u32 i = 0; i < l->segment.n; i++) {
    i64 k = index_at(&l->segment, i);
    if (k < last || k > l->index.n) bad_sparse(s, "segments");
    last = k;
  }
}

/* Axes, sizes and strides of the levels. Blocks first, as the level of an axis counts blocks. */
static void read_levels(Sparse *s) {
  const FlatTable *x = &s->t->sparse;
  FlatVec order = flat_vec(x, SPARSE_order, 4), blocks = flat_vec(x, SPARSE_blocks, 4);
  FlatVec levels = flat_vec(x, SPARSE_levels, 4);
  u32 rank = s->t->rank;
  i64 rest[MAX_RANK], stride[MAX_RANK], all = 1;
  bool seen[MAX_LEVELS] = {false};
  s->n = levels.n;
  if (s->n > MAX_LEVELS || s->n < rank || blocks.n != s->n - rank || order.n != s->n)
    bad_sparse(s, "levels");
  for (u32 i = rank; i-- > 0;) {
    rest[i] = s->t->dim[i];
    stride[i] = all;
    all *= rest[i];
  }
  for (u32 i = s->n; i-- > 0;) {
    SparseLevel *l = &s->level[i];
    i64 at = flat_vec_int(&order, i);
    if (at < (i < rank ? 0 : rank) || at >= (i < rank ? rank : s->n) || seen[at])
      bad_sparse(s, "levels");
    seen[at] = true;
    i64 axis = i < rank ? at : flat_vec_int(&blocks, (u32)at - rank);
    if (axis < 0 || axis >= rank) bad_sparse(s, "blocks");
    l->axis = (u32)axis;
    l->stride = stride[axis];
    read_level(s, l, flat_vec_table(&levels, i));
    if (i < rank && l->sparse) l->size = rest[axis];
    if (l->size < 1 || rest[axis] % l->size || (i < rank && l->size != rest[axis]))
      bad_sparse(s, "sizes");
    rest[axis] /= l->size;
    stride[axis] *= l->size;
  }
}

/* Expands the subtree of position `k`; its first element goes to `to`. */
static void write_level(const Sparse *s, u32 i, u64 k, i64 to) {
  if (i == s->n) {
    if (k >= s->stored) bad_sparse(s, "elements");
    memcpy(s->out + (u64)to * s->size, s->t->raw.at + k * s->size, s->size);
    return;
  }
  const SparseLevel *l = &s->level[i];
  if (!l->sparse) {
    for (i64 j = 0; j < l->size; j++)
      write_level(s, i + 1, k * (u64)l->size + (u64)j, to + j * l->stride);
    return;
  }
  if (l->segment.n < 2 || k > l->segment.n - 2) bad_sparse(s, "segments");
  i64 end = index_at(&l->segment, k + 1), last = -1;
  for (i64 j = index_at(&l->segment, k); j < end; j++) {
    i64 at = index_at(&l->index, (u64)j);
    if (at <= last || at >= l->size) bad_sparse(s, "indices");
    last = at;
    write_level(s, i + 1, (u64)j, to + at * l->stride);
  }
}

const u8 *lite_dense(Ctx *c, const LiteTensor *t, u64 bytes, Loc loc) {
  Sparse *s = NEW(&c->scratch, Sparse);
  *s = (Sparse){.c = c, .t = t, .loc = loc, .size = dtype_bytes(t->dt)};
  if (dtype_info[t->dt].bits < 8)
    fail(c, ERR_unsupported, loc,
         "tensor '%s' is sparse with elements of %s, which is not supported", show(c, t->name),
         dtype_info[t->dt].name);
  flat_charge(t->sparse.f, bytes / SPARSE_RATIO);
  s->stored = t->raw.n / s->size;
  if (!bytes) return t->raw.at;
  read_levels(s);
  s->out = NEWS(&c->work, u8, bytes);
  write_level(s, 0, 0, 0);
  return s->out;
}
