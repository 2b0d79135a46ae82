/* onnx_ops_list.c: operators on sequences and optionals. See list.h for their form at import.
 *
 * A constant position selects an element at import. A run-time position needs elements of one type
 * and uses their stack. If the types differ, a position that follows from bound inputs is used,
 * which pins them. A run-time position outside of a sequence fails the run.
 */
#include "front/onnx/list.h"

#include <string.h>

/* Constant position, negative ones counted from the end. most: largest valid position. */
static bool known_place(Build *b, u32 i, bool pin, i64 length, i64 most, u32 *at) {
  i64 x;
  u32 n = 0;
  if (!graph_ints(b->g, on_in(b, i), &x, 1, &n) && !(pin && on_try_ints(b, i, &x, 1, &n)))
    return false;
  if (n != 1) on_bad(b, "the position must be one number, found %u", n);
  i64 place = x < 0 ? x + length : x;
  if (place < 0 || place > most)
    on_bad(b, "position %lld is outside of a sequence of length %lld", (long long)x,
           (long long)length);
  *at = (u32)place;
  return true;
}

/* Run-time position as a scalar; after: the position after the last element is valid too. */
static Val place_at(Build *b, u32 i, Val count, bool after) {
  Graph *g = b->g;
  Val x = mk_cast(g, mk_reshape(g, on_in(b, i), NULL, 0), DT_i64), zero = mk_like(g, x, 0);
  Val back = mk_add(g, x, count);
  x = mk_select(g, mk_lt(g, x, zero), back, x);
  Val beyond = mk_map2(g, after ? OP_gt : OP_ge, x, count);
  Val wrong = mk_or(g, mk_lt(g, x, zero), beyond);
  return mk_add(g, x,
                mk_assert(g, mk_cast(g, wrong, DT_i64), "a position is outside of its sequence"));
}

static _Noreturn void refuse_place(Build *b) {
  on_unsupported(b, "the position is only known at run time, and the elements differ in type");
}

/* 0, 1, ... capacity - 1 */
static Val numbers(Build *b, Dim capacity) {
  return mk_iota(b->g, DT_i64, &capacity, 1, 0);
}

void build_sequence_construct(Build *b) {
  if (!b->nin) on_bad(b, "found 0 inputs, expected at least 1");
  for (u32 i = 0; i < b->nin; i++) {
    Val v = on_in(b, i);
    if (on_dtype(b, v) != on_dtype(b, b->in[0]))
      on_bad(b, "an input has element type %s, expected %s as in input 0",
             dtype_info[on_dtype(b, v)].name, dtype_info[on_dtype(b, b->in[0])].name);
  }
  b->out[0] = list_known(b->im, TY_seq, b->in, b->nin);
}

void build_sequence_empty(Build *b) {
  if (!dtype_from_onnx(on_int(b, "dtype", 1)))
    on_bad(b, "dtype is %lld, expected an element type of ONNX", (long long)on_int(b, "dtype", 1));
  b->out[0] = list_known(b->im, TY_seq, NULL, 0);
}

void build_sequence_length(Build *b) {
  const List *l = on_list(b, 0);
  b->out[0] = l->stack ? l->count : mk_scalar(b->g, DT_i64, l->n);
}

void build_sequence_at(Build *b) {
  const List *l = on_list(b, 0);
  u32 at;
  Val stack, count;
  if (!l->stack && known_place(b, 1, false, l->n, (i64)l->n - 1, &at)) {
    b->out[0] = l->at[at];
    return;
  }
  if (list_stack(b, l, &stack, &count)) {
    b->out[0] = mk_gather(b->g, stack, place_at(b, 1, count, false), 0);
    return;
  }
  if (!known_place(b, 1, true, l->n, (i64)l->n - 1, &at)) refuse_place(b);
  b->out[0] = l->at[at];
}

static void check_element(Build *b, const List *l, Val x) {
  Val first = l->stack ? l->stack : l->n ? l->at[0] : 0;
  if (first && on_dtype(b, first) != on_dtype(b, x))
    on_bad(b, "the element is %s, but the sequence holds %s", dtype_info[on_dtype(b, x)].name,
           dtype_info[on_dtype(b, first)].name);
}

static void insert_known(Build *b, const List *l, Val x, u32 at) {
  Val *all = NEWS(&b->c->work, Val, l->n + 1);
  if (at) memcpy(all, l->at, at * sizeof *all);
  all[at] = x;
  if (l->n > at) memcpy(all + at + 1, l->at + at, (l->n - at) * sizeof *all);
  b->out[0] = list_known(b->im, TY_seq, all, l->n + 1);
}

/* Grows the capacity by one; elements from the position on move up. */
static void insert_stacked(Build *b, Val stack, Val count, Val x, Val place) {
  Graph *g = b->g;
  Val part[2] = {stack, mk_unsqueeze(g, x, 0)};
  Val grown = mk_concat(g, part, 2, 0), k = numbers(b, on_dim(b, grown, 0));
  Val at = place ? mk_min(g, place, count) : count;
  if (place) {
    Val after = mk_cast(g, mk_gt(g, k, at), DT_i64);
    grown = mk_gather(g, grown, mk_sub(g, k, after), 0);
  }
  Val here = mk_expand_tail(g, mk_eq(g, k, at), on_rank(b, grown) - 1);
  Val more = mk_addk(g, count, 1);
  b->out[0] = list_stacked(b->im, mk_select(g, here, x, grown), more);
}

void build_sequence_insert(Build *b) {
  const List *l = on_list(b, 0);
  Val x = on_in(b, 1), stack, count;
  u32 at = l->n;
  check_element(b, l, x);
  if (!l->stack && (!on_has(b, 2) || known_place(b, 2, false, l->n, l->n, &at))) {
    insert_known(b, l, x, at);
    return;
  }
  Type t;
  bool one = list_type(b, l, &t) && type_equal(&t, on_type(b, x));
  if (one && list_stack(b, l, &stack, &count)) {
    insert_stacked(b, stack, count, x, on_has(b, 2) ? place_at(b, 2, count, true) : 0);
    return;
  }
  if (l->stack)
    on_unsupported(b, "elements that differ in type, in a sequence whose length is only known at "
                      "run time");
  if (!known_place(b, 2, true, l->n, l->n, &at)) refuse_place(b);
  insert_known(b, l, x, at);
}

static void erase_known(Build *b, const List *l, u32 at) {
  Val *all = NEWS(&b->c->work, Val, l->n + 1);
  for (u32 i = 0, k = 0; i < l->n; i++)
    if (i != at) all[k++] = l->at[i];
  b->out[0] = list_known(b->im, TY_seq, all, l->n - 1);
}

void build_sequence_erase(Build *b) {
  Graph *g = b->g;
  const List *l = on_list(b, 0);
  u32 at = l->n ? l->n - 1 : 0;
  Val stack, count;
  if (!l->stack && !l->n) on_bad(b, "the sequence is empty, expected at least one element");
  if (!l->stack && (!on_has(b, 1) || known_place(b, 1, false, l->n, (i64)l->n - 1, &at))) {
    erase_known(b, l, at);
    return;
  }
  if (list_stack(b, l, &stack, &count)) {
    if (on_has(b, 1)) {
      Val k = numbers(b, on_dim(b, stack, 0));
      Val after = mk_ge(g, k, place_at(b, 1, count, false));
      stack = mk_gather(g, stack, mk_add(g, k, mk_cast(g, after, DT_i64)), 0);
    }
    Val zero = mk_like(g, count, 0);
    Val less = mk_max(g, mk_addk(g, count, -1), zero);
    b->out[0] = list_stacked(b->im, stack, less);
    return;
  }
  if (!known_place(b, 1, true, l->n, (i64)l->n - 1, &at)) refuse_place(b);
  erase_known(b, l, at);
}

/* ---- from and to tensors ---- */

/* Slices of extent 1 along an axis of unknown extent: a stack. */
static void split_open(Build *b, Val x, u32 axis, bool keep) {
  Dim d = on_dim(b, x, axis);
  Val stack = mk_move_axis(b->g, x, axis, 0);
  if (keep) stack = mk_unsqueeze(b->g, stack, axis + 1);
  b->out[0] = list_stacked(b->im, stack, mk_extent(b->g, d, DT_i64));
}

enum { MOST_PARTS = 1 << 16 };

void build_split_to_sequence(Build *b) {
  Val x = on_in(b, 0);
  u32 axis = on_axis_of(b, x, 0);
  bool keep = on_int(b, "keepdims", 1) != 0 || on_has(b, 1);
  if (!on_has(b, 1) && !dim_is_const(on_dim(b, x, axis))) {
    split_open(b, x, axis, keep);
    return;
  }
  i64 d = on_static_dim(b, x, axis), chunk = 1, at = 0;
  const Tensor *t = on_has(b, 1) ? on_known(b, 1) : NULL;
  if (t && (!dtype_is_int(t->dt) || t->rank > 1))
    on_bad(b, "split has another type or rank, expected integers of rank 0 or 1");
  if (t && !t->rank) chunk = tensor_get(t, 0).i;
  if (chunk < 1) on_bad(b, "the parts have size %lld, expected at least 1", (long long)chunk);
  bool listed = t && t->rank;
  u64 n = listed ? t->n : (u64)(d / chunk + (d % chunk != 0));
  if (n > MOST_PARTS)
    on_unsupported(b, "found %llu parts, expected at most %d", (unsigned long long)n, MOST_PARTS);
  Val *part = NEWS(&b->c->work, Val, n + 1);
  for (u64 i = 0; i < n; i++) {
    i64 size = listed ? tensor_get(t, i).i : chunk < d - at ? chunk : d - at;
    if (size < 0 || size > d - at) on_bad(b, "the parts do not add up to %lld", (long long)d);
    part[i] = mk_slice_axis(b->g, x, axis, at, size);
    if (!keep) part[i] = mk_squeeze(b->g, part[i], axis);
    at += size;
  }
  if (at != d)
    on_bad(b, "the parts add up to %lld, but the extent is %lld", (long long)at, (long long)d);
  b->out[0] = list_known(b->im, TY_seq, part, (u32)n);
}

/* The used elements of a stack: [n, ...] with n known only at run time. */
static Val filled_rows(Build *b, const List *l) {
  Graph *g = b->g;
  Dim room = on_dim(b, l->stack, 0);
  Val there = mk_lt(g, numbers(b, room), l->count);
  return mk_gather(g, l->stack, mk_squeeze(g, mk_nonzero(g, there), 0), 0);
}

static void concat_stacked(Build *b, const List *l, i64 axis, bool fresh) {
  Val rows = filled_rows(b, l);
  u32 rank = on_rank(b, rows), to = on_axis(b, axis, fresh ? rank : rank - 1);
  Val y = mk_move_axis(b->g, rows, 0, to);
  if (!fresh) {
    const Type *t = on_type(b, y);
    Dim dim[MAX_RANK];
    for (u32 i = 0, k = 0; i < rank; i++, k++) {
      dim[k] = t->dim[i];
      if (i == to) dim[k] = dim_mul(b->ds, t->dim[i], t->dim[i + 1]), i++;
    }
    y = mk_reshape(b->g, y, dim, rank - 1);
  }
  b->out[0] = y;
}

void build_concat_from_sequence(Build *b) {
  const List *l = on_list(b, 0);
  if (!on_has_attr(b, "axis")) on_bad(b, "attribute axis is missing");
  i64 axis = on_int(b, "axis", 0);
  bool fresh = on_int(b, "new_axis", 0) != 0;
  if (l->stack) {
    concat_stacked(b, l, axis, fresh);
    return;
  }
  if (!l->n) on_bad(b, "the sequence is empty, expected at least one element");
  u32 rank = on_rank(b, l->at[0]), to = on_axis(b, axis, fresh ? rank + 1 : rank);
  Val *part = NEWS(&b->c->work, Val, l->n);
  for (u32 i = 0; i < l->n; i++) part[i] = fresh ? mk_unsqueeze(b->g, l->at[i], to) : l->at[i];
  b->out[0] = mk_concat(b->g, part, l->n, to);
}

/* ---- SequenceMap ---- */

typedef struct MapBody {
  Build *b;
  const OnnxGraph *g;
} MapBody;

static void map_one(Build *b, const OnnxGraph *body, Val i, u32 k, Val *ret) {
  Val *in = NEWS(&b->c->work, Val, b->nin + 1);
  for (u32 j = 0; j < b->nin; j++) {
    in[j] = on_any(b, j);
    if (!val_is_list(in[j])) continue;
    const List *l = on_list(b, j);
    in[j] = l->stack ? mk_gather(b->g, l->stack, i, 0) : l->at[k];
  }
  if (on_subgraph(b, body, in, b->nin, ret, b->nout) != b->nout)
    on_bad(b, "the body: expected %u outputs", b->nout);
  for (u32 j = 0; j < b->nout; j++)
    if (!val_is_real(ret[j]))
      on_unsupported(b, "output %u of the body is a sequence, expected a tensor", j);
}

static void map_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  MapBody *m = user;
  (void)g, (void)cond, (void)carried;
  map_one(m->b, m->g, i, 0, scan);
}

void build_sequence_map(Build *b) {
  MapBody m = {b, on_graph(b, "body")};
  const List *first = on_list(b, 0);
  bool open = first->stack != 0;
  for (u32 j = 1; j < b->nin; j++) {
    if (!val_is_list(on_any(b, j))) continue;
    const List *l = on_list(b, j);
    if ((l->stack != 0) != open)
      on_unsupported(b, "sequences of known and of unknown length in one node");
    if (l->n != first->n)
      on_bad(b, "input %u has %u elements, expected %u as in the first sequence", j, l->n,
             first->n);
  }
  Val *ret = NEWS(&b->c->work, Val, b->nout);
  if (open) { /* the whole capacity; results after the last element are unused */
    on_loop(b, mk_extent(b->g, list_capacity(b, first), DT_i64), 0, NULL, 0, ret, b->nout, map_body,
            &m);
    for (u32 j = 0; j < b->nout; j++) b->out[j] = list_stacked(b->im, ret[j], first->count);
    return;
  }
  Val *all = NEWS(&b->c->work, Val, (size_t)b->nout * (first->n + 1));
  for (u32 k = 0; k < first->n; k++) {
    map_one(b, m.g, 0, k, ret);
    for (u32 j = 0; j < b->nout; j++) all[(size_t)j * first->n + k] = ret[j];
  }
  for (u32 j = 0; j < b->nout; j++)
    b->out[j] = list_known(b->im, TY_seq, all + (size_t)j * first->n, first->n);
}

/* ---- optionals ---- */

void build_optional(Build *b) {
  if (!on_has(b, 0) && !on_has_attr(b, "type")) on_bad(b, "neither an input nor a type is given");
  b->out[0] = list_known(b->im, TY_opt, b->in, on_has(b, 0));
}

/* From opset 18 on the operand may be a tensor or a sequence, which counts as present. */
void build_optional_has_element(Build *b) {
  bool there = on_has(b, 0);
  if (there && val_is_list(b->in[0])) {
    const List *l = list_at(b->im, b->in[0]);
    if (l->has) {
      b->out[0] = l->has;
      return;
    }
    there = l->kind == TY_seq || l->n;
  }
  b->out[0] = mk_scalar(b->g, DT_bool, there);
}

void build_optional_get_element(Build *b) {
  Val v = on_any(b, 0);
  const List *l = val_is_list(v) ? list_at(b->im, v) : NULL;
  if (l && l->kind == TY_opt && !l->n) on_bad(b, "the optional is empty, expected a value");
  b->out[0] = l && l->kind == TY_opt ? l->at[0] : v;
}
