/* onnx_ops_ngram.c: TfIdfVectorizer.
 *
 * For each n-gram length and skip distance, all positions of a row are compared with all n-grams of
 * the pool at once, and the matches counted. A constant matrix maps the counts to outputs.
 */
#include "front/onnx/onnx_builder.h"

typedef struct NgramPool {
  Build *b;
  const OnnxAttr *ints, *strs, *start, *index;
  u32 items; /* in the pool */
  i64 size;  /* size of the output */
} NgramPool;

static NgramPool read_pool(Build *b) {
  NgramPool p = {.b = b,
                 .ints = on_typed(b, "pool_int64s", OA_ints),
                 .strs = on_typed(b, "pool_strings", OA_strings)};
  p.start = on_typed(b, "ngram_counts", OA_ints);
  p.index = on_typed(b, "ngram_indexes", OA_ints);
  if (p.ints && !p.ints->ints.n) p.ints = NULL;
  if (!p.ints == !(p.strs && p.strs->strings.n))
    on_bad(b, "expected exactly one of the attributes pool_int64s and pool_strings");
  if (!p.start || !p.index || !p.index->ints.n)
    on_bad(b, "expected the attributes ngram_counts and ngram_indexes, found at most one");
  p.items = p.ints ? p.ints->ints.n : p.strs->strings.n;
  for (u32 i = 0; i < p.index->ints.n; i++) {
    i64 at = p.index->ints.at[i];
    if (at < 0 || at > (1 << 24))
      on_bad(b, "ngram_indexes contains %lld, expected 0 to 2^24", (long long)at);
    if (at >= p.size) p.size = at + 1;
  }
  return p;
}

/* Item k of `count` n-grams starting at `from`. */
static Val items_at(const NgramPool *p, u32 from, u32 count, u32 n, u32 k, DType dt) {
  i64 dim = count;
  Tensor *t = tensor_new(&p->b->c->work, p->ints ? DT_i64 : DT_str, &dim, 1);
  for (u32 i = 0; i < count; i++) {
    u32 at = from + i * n + k;
    tensor_set(t, i, (Scalar){.i = p->ints ? p->ints->ints.at[at] : (i64)p->strs->strings.at[at]});
  }
  return mk_cast(p->b->g, mk_const(p->b->g, t), dt);
}

/* x[rows, i + d] for all i below the run-time length; *there: does the item exist? If not, the last
 * one is used. */
static Val items_after(Build *b, Val x, i64 d, Val *there) {
  Graph *g = b->g;
  Dim length = on_dim(b, x, 1);
  Val at = mk_addk(g, mk_iota(g, DT_i64, &length, 1, 0), (double)d);
  Val end = mk_extent(g, length, DT_i64);
  *there = mk_unsqueeze(g, mk_lt(g, at, end), 1);
  return mk_gather(g, x, mk_min(g, at, mk_addk(g, end, -1)), 1);
}

/* Matches of n-grams with items `step` apart in x [rows, length]: [rows, count]; 0: impossible. */
static Val count_hits(const NgramPool *p, Val x, u32 from, u32 count, u32 n, i64 step) {
  Build *b = p->b;
  Graph *g = b->g;
  Dim length = on_dim(b, x, 1);
  bool known = dim_is_const(length);
  i64 places = known ? length - step * (i64)(n - 1) : 1;
  if (places < 1) return 0;
  Val all = 0, there = 0;
  for (u32 k = 0; k < n; k++) {
    Val part = known ? mk_slice_axis(g, x, 1, step * (i64)k, places)
               : k   ? items_after(b, x, step * (i64)k, &there)
                     : x;
    Val items = items_at(p, from, count, n, k, on_dtype(b, x));
    Val hit = mk_eq(g, mk_unsqueeze(g, part, 2), items);
    all = all ? mk_and(g, all, hit) : hit;
  }
  if (there)
    all = mk_and(g, all, there); /* condition of the last item, which implies those of the others */
  return mk_reduce(g, OP_reduce_sum, mk_cast(g, all, DT_f32), &(i64){1}, 1, false);
}

/* Maps the counts of n-grams `first` and following to the outputs. */
static Val spread_counts(const NgramPool *p, Val counts, u32 first, u32 count) {
  Build *b = p->b;
  i64 dim[2] = {count, p->size};
  u64 cells;
  if (first + count > p->index->ints.n)
    on_bad(b, "ngram_indexes has only %u elements", p->index->ints.n);
  if (!size_mul(count, (u64)p->size, &cells) || cells > (1u << 26))
    on_unsupported(b, "%u n-grams of %lld elements need a table of more than 2^26 numbers", count,
                   (long long)p->size);
  Tensor *t = tensor_new(&b->c->work, DT_f32, dim, 2);
  for (u32 i = 0; i < count; i++)
    tensor_set(t, (u64)i * (u64)p->size + (u64)p->index->ints.at[first + i], (Scalar){.f = 1});
  return mk_contract(b->g, counts, mk_const(b->g, t), "bg,go->bo");
}

static Val weighted(const NgramPool *p, Val y) {
  Build *b = p->b;
  Graph *g = b->g;
  const OnnxAttr *w = on_typed(b, "weights", OA_floats);
  if (on_str_is(b, "mode", "", "TF")) return y;
  bool idf = on_str_is(b, "mode", "", "IDF");
  if (!idf && !on_str_is(b, "mode", "", "TFIDF"))
    on_bad(b, "mode is '%s', expected TF, IDF or TFIDF", show(b->c, on_str(b, "mode", "")));
  if (idf) y = mk_cast(g, mk_gt(g, y, mk_like(g, y, 0)), DT_f32);
  if (!w || !w->floats.n) return y;
  if (w->floats.n < (u64)p->size)
    on_bad(b, "found %u weights, expected at least %lld, one for each output", w->floats.n,
           (long long)p->size);
  Tensor *t = tensor_new(&b->c->work, DT_f32, &p->size, 1);
  for (u32 i = 0; i < (u32)p->size; i++) tensor_set(t, i, (Scalar){.f = (double)w->floats.at[i]});
  return mk_mul(g, y, mk_const(g, t));
}

void build_tfidf(Build *b) {
  Graph *g = b->g;
  NgramPool p = read_pool(b);
  Val x = on_in(b, 0), sum = 0;
  u32 rank = on_rank(b, x), first = 0;
  i64 lo = on_int(b, "min_gram_length", 1), hi = on_int(b, "max_gram_length", 1),
      skip = on_int(b, "max_skip_count", 0);
  if (rank < 1 || rank > 2) on_bad(b, "the operand has rank %u, expected 1 or 2", rank);
  if (lo < 1 || hi < lo || skip < 0 || skip > 64)
    on_bad(
        b,
        "n-grams of %lld to %lld elements with %lld skipped, expected 1 <= min <= max and 0 to 64",
        (long long)lo, (long long)hi, (long long)skip);
  if ((on_dtype(b, x) == DT_str) != (p.ints == NULL))
    on_bad(b, "the type of the pool differs from that of the operand");
  if (rank == 1) x = mk_unsqueeze(g, x, 0);
  Dim out[2] = {on_dim(b, x, 0), p.size};
  for (u32 n = 1; n <= p.start->ints.n; n++) {
    i64 from = p.start->ints.at[n - 1], end = n < p.start->ints.n ? p.start->ints.at[n] : p.items;
    if (from < 0 || end < from || end > p.items)
      on_bad(b, "ngram_counts: expected ascending positions in the pool");
    u32 count = (u32)(end - from) / n;
    for (i64 step = 1; count && n >= lo && n <= hi && step <= (n == 1 ? 1 : skip + 1); step++) {
      Val hits = count_hits(&p, x, (u32)from, count, n, step);
      if (!hits) continue;
      hits = spread_counts(&p, hits, first, count);
      sum = sum ? mk_add(g, sum, hits) : hits;
    }
    first += count;
  }
  if (!sum) sum = mk_full(g, mk_scalar(g, DT_f32, 0), out, 2);
  sum = weighted(&p, sum);
  b->out[0] = rank == 1 ? mk_squeeze(g, sum, 0) : sum;
}
