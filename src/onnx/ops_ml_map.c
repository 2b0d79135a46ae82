/* ops_ml_map.c: ZipMap.
 *
 * The maps it makes all have the same keys, which are known: only their values are computed. What
 * reaches the edge of the graph are values and keys, see Port in import.h.
 */
#include "onnx/list.h"

static Val label_keys(Build *b, u32 *n) {
  const OnnxAttr *i = on_attr(b, "classlabels_int64s"), *s = on_attr(b, "classlabels_strings");
  if (i && (i->type != OA_ints || !i->ints.n)) i = NULL;
  if (s && (s->type != OA_strings || !s->strings.n)) s = NULL;
  if (!i == !s) on_bad(b, "exactly one of classlabels_int64s and classlabels_strings is expected");
  *n = i ? i->ints.n : s->strings.n;
  i64 dim = *n;
  Tensor *t = tensor_new(&b->c->work, i ? DT_i64 : DT_str, &dim, 1);
  for (u32 k = 0; k < *n; k++)
    tensor_set(t, k, (Scalar){.i = i ? i->ints.at[k] : (i64)s->strings.at[k]});
  return mk_const(b->g, t);
}

void build_zipmap(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x), n;
  List l = {.kind = TY_seq, .keys = label_keys(b, &n)};
  if (rank < 1 || rank > 2) on_bad(b, "the operand has rank %u, expected 1 or 2", rank);
  if (rank == 1) x = mk_unsqueeze(b->g, x, 0);
  Dim d = on_dim(b, x, 1);
  if (dim_is_const(d) && d != n) on_bad(b, "%lld columns for %u labels", (long long)d, n);
  l.stack = x;
  l.count = on_extent(b, on_dim(b, x, 0), DT_i64);
  b->out[0] = list_add(b->im, l);
}
