/* onnx_ops_ml_map.c: ZipMap, DictVectorizer and CastMap.
 *
 * All maps of a ZipMap have the same known keys, so only values are computed. A map output leaves
 * the graph as values and keys, see OutputStructure in reader.h. A map input is two tensors, keys
 * and values; a lookup compares with all keys.
 */
#include "front/onnx/list.h"

static const List *map_in(Build *b) {
  Val v = on_any(b, 0);
  const List *l = val_is_list(v) ? list_at(b->im, v) : NULL;
  if (!l || !l->keys || l->count)
    on_bad(b, "the operand is a tensor or a sequence, expected a map");
  return l;
}

/* Values of the keys `want` [m]: [1, m]. Zero (or an empty string) for absent keys. */
static Val look_up(Build *b, const List *l, Val want) {
  Graph *g = b->g;
  Dim out[2] = {1, on_dim(b, want, 0)};
  Type t = {.dt = on_dtype(b, l->stack), .rank = 2, .dim = out};
  if (on_dtype(b, want) != on_dtype(b, l->keys))
    on_bad(b, "the keys of the map have type %s, expected %s",
           dtype_info[on_dtype(b, l->keys)].name, dtype_info[on_dtype(b, want)].name);
  if (on_dim(b, l->keys, 0) == 0) return zeros_of(b, &t);
  Val hit = mk_eq(g, mk_unsqueeze(g, want, 1), l->keys);
  Val at = mk_arg(g, OP_argmax, mk_cast(g, hit, DT_i64), 1, false, false);
  Val there = mk_reduce(g, OP_reduce_max, hit, &(i64){1}, 1, false);
  Val none = mk_const(g, tensor_new(&b->c->work, t.dt, NULL, 0));
  return mk_reshape(g, mk_select(g, there, mk_gather(g, l->stack, at, 0), none), out, 2);
}

static Val key_table(Build *b, const OnnxAttr *i, const OnnxAttr *s, u32 *n);

void build_dictvectorizer(Build *b) {
  const List *l = map_in(b);
  u32 n;
  const OnnxAttr *i = on_attr(b, "int64_vocabulary"), *s = on_attr(b, "string_vocabulary");
  b->out[0] = look_up(b, l, key_table(b, i, s, &n));
}

/* In the order of the keys, or at the positions given by the keys. */
void build_castmap(Build *b) {
  Graph *g = b->g;
  const List *l = map_in(b);
  if (on_dtype(b, l->keys) != DT_i64)
    on_bad(b, "the keys of the map have type %s, expected i64",
           dtype_info[on_dtype(b, l->keys)].name);
  static const DType to[] = {DT_f32, DT_i64, DT_str};
  DType dt = to[on_choice(b, "cast_to", "TO_FLOAT TO_INT64 TO_STRING")],
        have = on_dtype(b, l->stack);
  if ((dt == DT_str) != (have == DT_str))
    on_unsupported(b, "cast_to and the values are %s and %s: numbers and strings are not converted",
                   dtype_info[dt].name, dtype_info[have].name);
  Val y;
  Dim n = on_dim(b, l->keys, 0);
  if (on_str_is(b, "map_form", "DENSE", "SPARSE")) {
    i64 most = on_int(b, "max_map", 1);
    if (most < 1 || most > 1 << 24)
      on_bad(b, "max_map is %lld, expected 1 to 2^24", (long long)most);
    y = look_up(b, l, mk_iota(g, DT_i64, &most, 1, 0));
  } else {
    Val order, unused;
    mk_topk(g, l->keys, 0, n, false, &unused, &order);
    y = mk_unsqueeze(g, mk_gather(g, l->stack, order, 0), 0);
  }
  b->out[0] = mk_cast(g, y, dt);
}

/* A list of integers or of strings, exactly one of which is present. */
static Val key_table(Build *b, const OnnxAttr *i, const OnnxAttr *s, u32 *n) {
  if (i && (i->type != OA_ints || !i->ints.n)) i = NULL;
  if (s && (s->type != OA_strings || !s->strings.n)) s = NULL;
  if (!i == !s)
    on_bad(b, "expected exactly one of the two lists of the vocabulary: integers or strings");
  *n = i ? i->ints.n : s->strings.n;
  return mk_const(b->g, on_table(b, i ? i : s));
}

void build_zipmap(Build *b) {
  Val x = on_in(b, 0);
  u32 rank = on_rank(b, x), n;
  List l = {.kind = TY_seq,
            .keys = key_table(b, on_attr(b, "classlabels_int64s"),
                              on_attr(b, "classlabels_strings"), &n)};
  if (rank < 1 || rank > 2) on_bad(b, "the operand has rank %u, expected 1 or 2", rank);
  if (rank == 1) x = mk_unsqueeze(b->g, x, 0);
  Dim d = on_dim(b, x, 1);
  if (dim_is_const(d) && d != n)
    on_bad(b, "found %lld columns, expected %u, one for each label", (long long)d, n);
  l.stack = x;
  l.count = mk_extent(b->g, on_dim(b, x, 0), DT_i64);
  b->out[0] = list_add(b->im, l);
}
