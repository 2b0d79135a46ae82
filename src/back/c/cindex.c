/* cindex.c: addresses and index arithmetic in C.
 *
 * In: index expressions that are known to stay in range. Out: plain C in ptrdiff_t; variables of
 * unrolled loops become constants. Constants of an address are collected at its end. */
#include "back/c/c.h"

#include <inttypes.h>

static void put_idx(Emit *e, ExprId x, Precedence at);

static void put_idx_pair(Emit *e, const Expr *x, const char *op, Precedence mine, Precedence at,
                         Precedence right) {
  open_paren(e, mine, at);
  put_idx(e, x->arg[0], mine);
  sb_fmt(e->t, " %s ", op);
  put_idx(e, x->arg[1], right);
  close_paren(e, mine, at);
}

static void put_idx_call(Emit *e, const Expr *x, RtSnippet n, const char *name) {
  c_need(e, n);
  put_template(e, e->t, "%s${sfx}(", name);
  put_idx(e, x->arg[0], PR_any);
  sb_puts(e->t, ", ");
  put_idx(e, x->arg[1], PR_any);
  sb_puts(e->t, ")");
}

/* Unrolling has already folded constants. */
bool fold_int(Emit *e, ExprId id, i64 *value) {
  const Expr *x = prog_expr(e->p, id);
  if (x->kind != EX_const || x->lanes != 1 || (x->dt != DT_i64 && x->dt != DT_bool)) return false;
  *value = x->imm.i;
  return true;
}

/* Writes only x for x + 0 and x * 1, which unrolling produces. */
static bool put_idx_same(Emit *e, const Expr *x, Precedence at) {
  i64 k;
  if (e->b.mode < BM_vectors || x->narg != 2) return false;
  if (x->op != OP_add && x->op != OP_sub && x->op != OP_mul) return false;
  i64 neutral = x->op == OP_mul;
  for (u32 i = 0; i < 2; i++) {
    if (x->op == OP_sub && i == 0) continue;
    if (!fold_int(e, x->arg[i], &k) || k != neutral) continue;
    put_idx(e, x->arg[1 - i], at);
    return true;
  }
  return false;
}

static void put_idx(Emit *e, ExprId id, Precedence at) {
  const Expr *x = prog_expr(e->p, id);
  i64 k;
  if (fold_int(e, id, &k)) {
    sb_fmt(e->t, k < 0 && at > PR_add ? "(%" PRId64 ")" : "%" PRId64, k);
    return;
  }
  if (x->kind == EX_op && x->dt == DT_i64) {
    if (put_idx_same(e, x, at)) return;
    switch (x->op) {
    case OP_add: put_idx_pair(e, x, "+", PR_add, at, PR_add); return;
    case OP_sub: put_idx_pair(e, x, "-", PR_add, at, PR_mul); return;
    case OP_mul: put_idx_pair(e, x, "*", PR_mul, at, PR_unary); return;
    case OP_max: put_idx_call(e, x, RT_imax, "ig_imax"); return;
    case OP_min: put_idx_call(e, x, RT_imin, "ig_imin"); return;
    case OP_mod:
      if (fold_int(e, x->arg[1], &k) && k > 0 && !(k & (k - 1))) {
        open_paren(e, PR_any, at);
        put_idx(e, x->arg[0], PR_atom);
        sb_fmt(e->t, " & %" PRId64, k - 1);
        close_paren(e, PR_any, at);
        return;
      }
      break;
    case OP_div: /* truncates as C does */
      if (fold_int(e, x->arg[1], &k) && k > 0) {
        put_idx_pair(e, x, "/", PR_mul, at, PR_unary);
        return;
      }
      break;
    default: break;
    }
  }
  if (x->kind == EX_var) {
    put_data(e, id, at);
    return;
  }
  sb_fmt(e->t, "(%s)", e->index);
  put_data(e, id, PR_unary);
}

void put_index(Emit *e, ExprId x) {
  put_idx(e, x, PR_any);
}

void put_dim(Emit *e, Dim d) {
  if (dim_is_const(d))
    sb_fmt(e->t, "%" PRId64, d);
  else
    put_idx(e, ex_dim(e->p, d), PR_unary);
}

/* The constant term of a sum; *rest: are there other terms? */
static i64 number_in(Emit *e, ExprId id, bool *rest) {
  const Expr *x = prog_expr(e->p, id);
  bool other[2] = {false, false};
  i64 k;
  *rest = false;
  if (fold_int(e, id, &k)) return k;
  *rest = true;
  if (x->kind != EX_op || x->dt != DT_i64 || x->narg != 2) return 0;
  if (x->op == OP_add) return number_in(e, x->arg[0], other) + number_in(e, x->arg[1], other + 1);
  if (x->op == OP_sub && fold_int(e, x->arg[1], &k)) return number_in(e, x->arg[0], other) - k;
  if (x->op == OP_mul && fold_int(e, x->arg[1], &k)) return number_in(e, x->arg[0], other) * k;
  return 0;
}

/* Index arithmetic without the constant term. */
static void put_rest(Emit *e, ExprId id, Precedence at) {
  const Expr *x = prog_expr(e->p, id);
  bool left, right;
  i64 k;
  if (!number_in(e, id, &left)) {
    put_idx(e, id, at);
    return;
  }
  if (x->op == OP_mul) {
    fold_int(e, x->arg[1], &k);
    open_paren(e, PR_mul, at);
    put_rest(e, x->arg[0], PR_mul);
    sb_fmt(e->t, k < 0 ? " * (%" PRId64 ")" : " * %" PRId64, k);
    close_paren(e, PR_mul, at);
    return;
  }
  number_in(e, x->arg[0], &left);
  number_in(e, x->arg[1], &right);
  if (left && right) {
    open_paren(e, PR_add, at);
    put_rest(e, x->arg[0], PR_add);
    sb_puts(e->t, " + ");
    put_rest(e, x->arg[1], PR_add);
    close_paren(e, PR_add, at);
  } else {
    put_rest(e, x->arg[left ? 0 : 1], at);
  }
}

/* The sum of all constants of an address in elements; 0 if they stay in place. Unrolled loads then
 * differ by a constant only, and compilers keep one pointer for all. */
static i64 place_of_numbers(Emit *e, const Buf *x, const ExprId *idx, u32 n) {
  i64 sum = 0;
  bool rest;
  if (e->b.mode < BM_vectors) return 0;
  for (u32 i = 0; i < n; i++) {
    if (i && !dim_is_const(x->dim[i])) return 0;
    sum = (i ? sum * x->dim[i] : 0) + number_in(e, idx[i], &rest);
  }
  return sum;
}

/* Row-major address by Horner's rule: ((i * d1 + j) * d2 + k). In unrolled code constants are added
 * at the end. */
void put_element(Emit *e, BufId b, const ExprId *idx, u32 n, u32 lanes) {
  const Buf *x = prog_buf(e->p, b);
  if (x->space == BS_reg) {
    put_reg(e, b, idx, n, false);
    return;
  }
  put_buf_name(e, b);
  sb_puts(e->t, "[");
  StrBuf outer = *e->t, sum = sb_new(&e->c->scratch);
  bool any = false, is_sum = false;
  i64 offset = place_of_numbers(e, x, idx, n);
  for (u32 i = 0; i < n; i++) {
    i64 k;
    bool number = fold_int(e, idx[i], &k), zero = number && (k == 0 || offset);
    if (any && x->dim[i] != 1) {
      StrBuf t = sb_new(&e->c->scratch);
      sb_fmt(&t, is_sum ? "(%s) * " : "%s * ", sb_cstr(&sum));
      *e->t = t;
      put_dim(e, x->dim[i]);
      sum = *e->t;
      is_sum = false;
    }
    if (zero) continue;
    StrBuf term = sb_new(&e->c->scratch);
    *e->t = term;
    if (offset)
      put_rest(e, idx[i], any ? PR_add : PR_any);
    else
      put_idx(e, idx[i], any ? PR_add : PR_any);
    term = *e->t;
    if (any) {
      sb_puts(&sum, " + ");
      sb_put(&sum, term.at, term.n);
      is_sum = true;
    } else {
      sum = term;
      is_sum = !number && prog_expr(e->p, idx[i])->kind == EX_op;
    }
    any = true;
  }
  *e->t = outer;
  if (any) sb_put(e->t, sum.at, sum.n);
  if (any && offset)
    sb_fmt(e->t, offset < 0 ? " - %" PRId64 : " + %" PRId64, offset < 0 ? -offset : offset);
  else if (offset)
    sb_fmt(e->t, "%" PRId64, offset);
  any = any || offset;
  if (lanes > 1 && e->b.mode == BM_warp)
    put_lane_number(e, any ? " + " : "", lanes);
  else if (lanes > 1)
    sb_puts(e->t, any ? " + z" : "z");
  else if (!any)
    sb_puts(e->t, "0");
  sb_puts(e->t, "]");
}
