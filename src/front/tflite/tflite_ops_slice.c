/* tflite_ops_slice.c: STRIDED_SLICE.
 *
 * In: begin, end and strides with one entry per axis, or fewer; bit i of a mask applies to entry i.
 * The ellipsis entry stands for all axes without an entry. A new_axis entry inserts an axis of
 * extent 1. A shrink entry selects one position and drops the axis.
 */
#include "front/tflite/tflite_import.h"

/* Fields of the options. */
enum { SS_begin, SS_end, SS_ellipsis, SS_new, SS_shrink, SS_offset };

typedef struct StridedCut {
  LiteNode *b;
  Dim d;                 /* extent of the axis */
  i64 begin, end, step;  /* as in the operands */
  bool from, to, single; /* begin is absent; end is absent; a single position */
} StridedCut;

static i64 clamp(i64 x, i64 lo, i64 hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

/* Open extent: with step 1, the sign of a position decides. */
static void cut_open(const StridedCut *c, Dim *start, Dim *size) {
  LiteNode *b = c->b;
  if (c->step != 1)
    lite_unsupported(b, "stride %lld over an open extent is not supported", (long long)c->step);
  Dim lo = c->from         ? 0
           : c->begin >= 0 ? dim_min(b->ds, c->d, c->begin)
                           : dim_max(b->ds, dim_addk(b->ds, c->d, c->begin), 0);
  Dim hi = c->to         ? c->d
           : c->end >= 0 ? dim_min(b->ds, c->d, c->end)
                         : dim_max(b->ds, dim_addk(b->ds, c->d, c->end), 0);
  *start = lo;
  *size = c->single ? 1 : lo ? dim_max(b->ds, dim_sub(b->ds, hi, lo), 0) : hi;
}

static void cut(const StridedCut *c, Dim *start, Dim *size) {
  i64 d = c->d, up = c->step > 0;
  if (!dim_is_const(c->d)) {
    cut_open(c, start, size);
    return;
  }
  i64 lo = up ? 0 : -1, hi = up ? d : d - 1;
  i64 begin = c->from ? (up ? 0 : d - 1) : clamp(c->begin < 0 ? c->begin + d : c->begin, lo, hi);
  i64 end = c->to ? (up ? d : -1) : clamp(c->end < 0 ? c->end + d : c->end, lo, hi);
  if (c->single && (begin < 0 || begin >= d))
    lite_bad(c->b, "position %lld is out of range for an axis of %lld", (long long)c->begin,
             (long long)d);
  i64 span = up ? end - begin : begin - end, by = up ? c->step : -c->step;
  *size = c->single ? 1 : span > 0 ? (span - 1) / by + 1 : 0;
  *start = *size ? begin : 0;
}

typedef struct StridedSpec {
  i64 begin[MAX_RANK], end[MAX_RANK], step[MAX_RANK];
  u32 n, mask[SS_offset];
} StridedSpec;

static StridedSpec read_spec(LiteNode *b) {
  StridedSpec s;
  s.n = lite_ints(b, 1, s.begin, MAX_RANK);
  if (lite_ints(b, 2, s.end, MAX_RANK) != s.n || lite_ints(b, 3, s.step, MAX_RANK) != s.n)
    lite_bad(b, "begin, end and strides differ in length, expected one element per axis in each");
  for (u32 i = 0; i < SS_offset; i++) s.mask[i] = (u32)flat_i32(&b->op->opt, i, 0);
  bool offset = flat_u8(&b->op->opt, SS_offset, 0) != 0; /* ends are relative to begin */
  for (u32 i = 0; i < s.n; i++) {
    s.begin[i] = clamp(s.begin[i], -INT32_MAX, INT32_MAX);
    s.end[i] = clamp(s.end[i], -INT32_MAX, INT32_MAX);
    if (offset) s.end[i] = clamp(s.end[i] + s.begin[i], -INT32_MAX, INT32_MAX);
    s.step[i] = clamp(s.step[i], -INT32_MAX, INT32_MAX);
    if (!s.step[i]) lite_bad(b, "stride %u is 0, expected another number", i);
  }
  return s;
}

static bool bit(const StridedSpec *s, u32 mask, u32 i) {
  return s->mask[mask] >> i & 1;
}

void lite_strided_slice(LiteNode *b) {
  Val x = lite_in(b, 0);
  Type t = *graph_type(b->g, x);
  StridedSpec s = read_spec(b);
  Dim start[MAX_RANK] = {0}, size[MAX_RANK], out[2 * MAX_RANK];
  i64 step[MAX_RANK];
  u32 axis = 0, rank = 0, named = 0, spread = s.n;
  for (u32 i = 0; i < s.n; i++) {
    if (bit(&s, SS_ellipsis, i) && spread == s.n) spread = i;
    named += i != spread && !bit(&s, SS_new, i);
  }
  if (named > t.rank) lite_bad(b, "found %u entries, expected at most %u, the rank", named, t.rank);
  for (u32 i = 0; i <= s.n; i++) {
    if (i == s.n || i == spread) { /* axes without an entry */
      if (i == s.n && spread < s.n) break;
      for (u32 k = named; k < t.rank; k++, axis++) {
        step[axis] = 1;
        out[rank++] = size[axis] = t.dim[axis];
      }
      continue;
    }
    if (bit(&s, SS_new, i)) {
      out[rank++] = 1;
      continue;
    }
    bool single = bit(&s, SS_shrink, i);
    StridedCut c = {b,
                    t.dim[axis],
                    s.begin[i],
                    s.end[i],
                    s.step[i],
                    bit(&s, SS_begin, i) && !single,
                    bit(&s, SS_end, i),
                    single};
    cut(&c, &start[axis], &size[axis]);
    step[axis] = single ? 1 : s.step[i];
    if (!single) out[rank++] = size[axis];
    axis++;
  }
  if (rank > MAX_RANK)
    lite_unsupported(b, "rank %u is not supported; expected at most %d", rank, MAX_RANK);
  lite_set_stored(b, 0, mk_reshape(b->g, mk_slice(b->g, x, start, size, step), out, rank));
}
