/* lower_require.c: run-time checks of symbolic dimensions.
 *
 * Shape inference assumes that symbolic dimensions match where it cannot compare them. Here every
 * such assumption becomes a `require` before the node, so that no loop runs over extents that do
 * not match. An assumption that no extent within bounds satisfies is refused at compile time. Equal
 * expressions need no check. Inference has compared constants.
 */
#include "pass/lower/lower.h"

static const char *dim_text(Lower *l, Dim d) {
  StrBuf t = sb_new(&l->c->scratch);
  dim_print(l->p->dims, d, &t);
  return sb_cstr(&t);
}

static const Type *in(const Lower *l, u32 i) {
  return graph_type(l->g, l->n->in[i]);
}

static const Type *out(const Lower *l) {
  return graph_type(l->g, l->n->out[0]);
}

static void require(Lower *l, ExprId cond, Str message) {
  prog_require(l->p, &l->at, cond, message);
  prog_stmt(l->p, l->at.last)->loc = l->n->loc;
}

static ExprId compare(Lower *l, Op op, Dim a, Dim b) {
  return ex_op2(l->p, op, ex_dim(l->p, a), ex_dim(l->p, b));
}

/* If no value of `open` within bounds satisfies the condition, refuses now, unless the node runs
 * conditionally. */
static void refuse(Lower *l, Dim a, const char *how, Dim open) {
  i64 lo, hi, other;
  dim_bounds(l->p->dims, open, &lo, &hi);
  dim_bounds(l->p->dims, a, &other, &(i64){0});
  if (l->at.owner) return;
  fail(l->c, ERR_input, l->n->loc, "%s: %s %s %s, which is at %s %lld: every run would fail",
       op_info[l->n->op].name, dim_text(l, a), how, dim_text(l, open),
       other > hi ? "most" : "least", (long long)(other > hi ? hi : lo));
}

static void may_be_equal(Lower *l, Dim a, Dim b) {
  i64 lo, hi, blo, bhi;
  dim_bounds(l->p->dims, a, &lo, &hi);
  dim_bounds(l->p->dims, b, &blo, &bhi);
  if (lo > bhi || hi < blo)
    refuse(l, dim_is_const(b) ? b : a, "differs from", dim_is_const(b) ? a : b);
}

static void require_equal(Lower *l, Dim a, Dim b) {
  if (a == b || (dim_is_const(a) && dim_is_const(b))) return;
  may_be_equal(l, a, b);
  require(l, compare(l, OP_eq, a, b),
          str_fmt(l->c, "%s: %s differs from %s", op_info[l->n->op].name, dim_text(l, a),
                  dim_text(l, b)));
}

static void require_at_most(Lower *l, Dim a, Dim most) {
  i64 lo, hi, mlo, mhi;
  dim_bounds(l->p->dims, a, &lo, &hi);
  dim_bounds(l->p->dims, most, &mlo, &mhi);
  if (a == most || hi <= mlo) return;
  if (lo > mhi) refuse(l, a, "exceeds", most);
  require(l, compare(l, OP_le, a, most),
          str_fmt(l->c, "%s: %s exceeds %s", op_info[l->n->op].name, dim_text(l, a),
                  dim_text(l, most)));
}

/* Operand vs result: equal, or 1 and broadcast. */
static void require_broadcast(Lower *l, const Type *x, const Type *to) {
  for (u32 i = 0; i < x->rank; i++) {
    Dim d = x->dim[i], e = to->dim[to->rank - x->rank + i];
    if (d == e || dim_is_const(d)) {
      if (d != 1) require_equal(l, d, e);
      continue;
    }
    i64 lo, hi;
    dim_bounds(l->p->dims, d, &lo, &hi);
    if (lo > 1) may_be_equal(l, d, e);
    ExprId ok = ex_op2(l->p, OP_or, compare(l, OP_eq, d, e), compare(l, OP_eq, d, 1));
    require(l, ok,
            str_fmt(l->c, "%s: %s is neither %s nor 1", op_info[l->n->op].name, dim_text(l, d),
                    dim_text(l, e)));
  }
}

/* A searched or gathered axis must not be empty, unless the result is. */
static void require_nonempty(Lower *l, Dim d, const Type *to) {
  i64 lo, hi;
  dim_bounds(l->p->dims, d, &lo, &hi);
  if (lo > 0) return;
  ExprId ok = compare(l, OP_gt, d, 0);
  for (u32 i = 0; i < to->rank; i++)
    if (to->dim[i] <= 0) ok = ex_op2(l->p, OP_or, ok, compare(l, OP_eq, to->dim[i], 0));
  require(l, ok, str_fmt(l->c, "%s: axis %s is empty", op_info[l->n->op].name, dim_text(l, d)));
}

/* Extents of results must not be negative, such as n - 1 of an empty input. */
static void require_extents(Lower *l) {
  for (u32 k = 0; k < l->n->nout; k++) {
    const Type *t = graph_type(l->g, l->n->out[k]);
    for (u32 i = 0; t->kind == TY_tensor && i < t->rank; i++) {
      i64 lo, hi;
      dim_bounds(l->p->dims, t->dim[i], &lo, &hi);
      if (lo >= 0) continue;
      u32 *once = map_put_bytes(&l->once, (i64[]){ON_tested, t->dim[i]}, 2 * sizeof(i64));
      if (*once) continue;
      *once = !l->at.owner; /* a check inside a branch or loop may not have run */
      require(l, compare(l, OP_ge, t->dim[i], 0),
              str_fmt(l->c, "%s: the extent %s is below 0", op_info[l->n->op].name,
                      dim_text(l, t->dim[i])));
    }
  }
}

/* ---- by operator ---- */

static void of_contract(Lower *l) {
  const Type *a = in(l, 0), *b = in(l, 1), *to = out(l);
  const char *spec = str_text(l->c, node_attr(l->n, AT_spec)->u.s);
  const char *other = spec + a->rank + 1, *res = other + b->rank + 2;
  for (u32 i = 0; i < a->rank; i++) {
    for (u32 k = 0; k < b->rank; k++)
      if (spec[i] == other[k]) require_equal(l, a->dim[i], b->dim[k]);
    for (u32 k = 0; k < to->rank; k++)
      if (spec[i] == res[k]) require_equal(l, a->dim[i], to->dim[k]);
  }
}

static void of_window(Lower *l) {
  const Type *x = in(l, 0);
  NodeWindow w = node_window(l->g, l->n);
  if (l->n->op == OP_conv)
    require_equal(l, x->dim[1], in(l, 1)->dim[1] * node_int(l->n, AT_group, 1));
  for (u32 i = 0; i < w.n; i++) {
    Dim d = x->dim[x->rank - w.n + i];
    if (!dim_is_const(d)) /* inference has compared constants */
      require_at_most(l, (w.size[i] - 1) * w.dilation[i] + 1,
                      dim_addk(l->p->dims, d, w.lo[i] + w.hi[i]));
  }
}

static void of_concat(Lower *l) {
  const Type *to = out(l);
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  for (u32 k = 0; k < l->n->nin; k++) {
    const Type *t = graph_type(l->g, l->n->in[k]);
    for (u32 i = 0; i < t->rank; i++)
      if (i != axis) require_equal(l, t->dim[i], to->dim[i]);
  }
}

/* start + (size - 1) * step stays in 0 .. dim - 1, unless size is 0. */
static void of_slice(Lower *l, const Type *x) {
  Prog *p = l->p;
  u32 n;
  const Dim *start = node_list(l->n, AT_start, &n), *size = node_list(l->n, AT_size, &n);
  const Dim *step = node_list(l->n, AT_step, &n);
  for (u32 i = 0; i < n; i++) {
    if (dim_is_const(start[i]) && dim_is_const(size[i]) && dim_is_const(x->dim[i])) continue;
    if (step[i] == 1 && dim_add(p->dims, start[i], size[i]) == x->dim[i]) continue;
    i64 by = step[i] > DIM_MAX ? DIM_MAX : step[i] < -DIM_MAX ? -DIM_MAX : step[i];
    ExprId last =
        ex_op2(p, OP_mul, ex_op2(p, OP_sub, ex_dim(p, size[i]), ex_int(p, 1)), ex_int(p, by));
    last = ex_op2(p, OP_add, ex_dim(p, start[i]), last);
    ExprId ok = by > 0 ? ex_op2(p, OP_lt, last, ex_dim(p, x->dim[i]))
                       : ex_op2(p, OP_ge, last, ex_int(p, 0));
    if (by < 0) ok = ex_op2(p, OP_and, compare(l, OP_lt, start[i], x->dim[i]), ok);
    ok = ex_op2(p, OP_or, ok, compare(l, OP_eq, size[i], 0));
    require(l, ok,
            str_fmt(l->c, "slice: %s elements from %s on leave axis %u", dim_text(l, size[i]),
                    dim_text(l, start[i]), i));
  }
}

static void of_pad(Lower *l, const Type *x) {
  u32 n;
  const Dim *mid = node_list(l->n, AT_interior, &n);
  for (u32 i = 0; i < n; i++)
    if (mid[i] && !dim_is_const(x->dim[i])) require_at_most(l, 1, x->dim[i]);
}

/* Indices of gather_elems and scatter_elems stay within x in all axes except `axis`. */
static void of_elems(Lower *l, const Type *u) {
  const Type *x = in(l, 0), *idx = in(l, 1);
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  for (u32 i = 0; i < x->rank; i++) {
    if (i != axis) require_at_most(l, idx->dim[i], x->dim[i]);
    if (u) require_equal(l, u->dim[i], idx->dim[i]);
  }
  if (!u) require_nonempty(l, x->dim[axis], idx);
}

static void of_gather_nd(Lower *l, const Type *x, const Type *idx) {
  u32 batch = (u32)node_int(l->n, AT_batch, 0), depth = (u32)idx->dim[idx->rank - 1];
  for (u32 i = 0; i < batch; i++) require_equal(l, x->dim[i], idx->dim[i]);
  for (u32 i = 0; i < depth; i++) require_nonempty(l, x->dim[batch + i], out(l));
}

static void of_scatter_nd(Lower *l, const Type *x, const Type *idx, const Type *u) {
  u32 nrow = idx->rank - 1, depth = (u32)idx->dim[nrow];
  for (u32 i = 0; i < u->rank; i++)
    require_equal(l, u->dim[i], i < nrow ? idx->dim[i] : x->dim[depth + i - nrow]);
}

/* ---- checks of data ---- */

/* Checks all indices in one loop, which C compilers vectorize, before they are used. */
void lower_check_index(Lower *l) {
  Prog *p = l->p;
  BufId idx = lower_in(l, 0);
  u32 n, rank = prog_buf(p, idx)->rank;
  const Dim *size = node_list(l->n, AT_size, &n);
  VarId var[MAX_RANK];
  Dim dim[MAX_RANK];
  VarId bad = let_new(p, &l->at, "bad", ex_int(p, 0));
  Cursor at = lower_small(l, "within", FA_search);
  VarId any = let_new(p, &at, "any", ex_int(p, 0));
  for (u32 i = 0; i < rank; i++) dim[i] = prog_buf(p, idx)->dim[i];
  for (u32 i = 0; i < n; i++) {
    Cursor in = at;
    open_ordered(p, &in, dim, n > 1 ? rank - 1 : rank, var);
    if (n > 1) var[rank - 1] = i ? let_new(p, &in, "c", ex_int(p, i)) : 0;
    VarId raw = let_new(p, &in, "raw", ex_cast(p, DT_i64, load_at(p, idx, var), false));
    ExprId low = ex_op2(p, OP_sub, ex_int(p, 0), ex_dim(p, size[i]));
    ExprId out = ex_op2(p, OP_or, ex_op2(p, OP_lt, ex_var(p, raw), low),
                        ex_op2(p, OP_ge, ex_var(p, raw), ex_dim(p, size[i])));
    prog_set(p, &in, any, ex_op2(p, OP_or, ex_var(p, any), ex_cast(p, DT_i64, out, false)));
  }
  prog_set(p, &at, bad, ex_var(p, any));
  StrBuf t = sb_new(&l->c->scratch);
  sb_puts(&t, index_error(l->g, l->n));
  for (u32 i = 0; i < n && !node_attr(l->n, AT_text); i++)
    sb_fmt(&t, "%s%s", i ? ", " : ": the extent is ", dim_text(l, size[i]));
  require(l, ex_op2(p, OP_eq, ex_var(p, bad), ex_int(p, 0)), str_intern(l->c, t.at, t.n));
}

void lower_require(Lower *l) {
  const Node *n = l->n;
  require_extents(l);
  i64 axis = node_int(n, AT_axis, 0);
  u32 count;
  if (n->op < OP_SCALARS || n->op == OP_broadcast) {
    for (u32 i = 0; i < n->nin; i++) require_broadcast(l, in(l, i), out(l));
    return;
  }
  switch (n->op) {
  case OP_argmax:
  case OP_argmin:
  case OP_gather: require_nonempty(l, in(l, 0)->dim[axis], out(l)); break;
  case OP_contract: of_contract(l); break;
  case OP_conv: of_window(l); break;
  case OP_pool_max:
  case OP_pool_sum:
  case OP_pool_argmax: of_window(l); break;
  case OP_reshape:
    require_equal(l, type_count(l->p->dims, in(l, 0)), type_count(l->p->dims, out(l)));
    break;
  case OP_slice: of_slice(l, in(l, 0)); break;
  case OP_concat: of_concat(l); break;
  case OP_pad: of_pad(l, in(l, 0)); break;
  case OP_gather_elems: of_elems(l, NULL); break;
  case OP_scatter_elems: of_elems(l, in(l, 2)); break;
  case OP_gather_nd: of_gather_nd(l, in(l, 0), in(l, 1)); break;
  case OP_scatter_nd: of_scatter_nd(l, in(l, 0), in(l, 1), in(l, 2)); break;
  case OP_nms:
    require_equal(l, in(l, 1)->dim[0], in(l, 0)->dim[0]);
    require_equal(l, in(l, 1)->dim[1], in(l, 0)->dim[2]);
    break;
  case OP_topk: require_at_most(l, node_list(n, AT_k, &count)[0], in(l, 0)->dim[axis]); break;
  default: break;
  }
}
