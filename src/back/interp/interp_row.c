/* interp_row.c: runs a loop by rows of ROW iterations.
 *
 * In: a Plan and the loop's actual bounds. Out: what the iterations one after the other would have
 * done, to the bit. Method: every index is located and checked at both ends of the loop; accesses
 * of one memory are compared; then each statement is evaluated for a row of iterations, expression
 * by expression, into arrays of float, double or i64. What does not change within the loop is
 * evaluated once.
 */
#include "back/interp/interp.h"

#include <string.h>

static void *slot(Run *r, u32 i) {
  return r->pool + (size_t)i * ROW * 8;
}

static i64 var_at(const Plan *pl, u64 k) {
  return (i64)((u64)pl->lo + k * (u64)pl->step);
}

/* ---- start of a loop ---- */

/* Checks one axis at both ends; false when the index could wrap around in between. */
static bool check_axis(Run *r, const Plan *pl, const Access *a, u32 axis, u64 n) {
  const Lin *l = &a->dim[axis];
  i64 first = lin_at(l, pl->lo), move, last;
  if (__builtin_mul_overflow(l->step * pl->step, (i64)(n - 1), &move) ||
      __builtin_add_overflow(first, move, &last))
    return false;
  i64 extent = a->v->dim[axis];
  if (first < 0 || first >= extent) out_of_bounds(r, a->buf, axis, first, 1);
  if (last < 0 || last >= extent) out_of_bounds(r, a->buf, axis, last, 1);
  return true;
}

static bool locate(Run *r, const Plan *pl, Access *a, u64 n) {
  if (!view_is_ready(r, a->v)) view_get(r, a->buf);
  for (u32 i = 0; i < a->v->rank; i++)
    if (a->check[i] && !check_axis(r, pl, a, i, n)) return false;
  if (a->fixed) {
    a->off = lin_at(&a->flat, pl->lo);
    a->inc = (i64)((u64)a->flat.step * (u64)pl->step);
  } else if (a->linear) {
    u64 inc = 0; /* if there is a second iteration, it is in bounds and nothing wraps */
    a->off = 0;
    for (u32 i = 0; i < a->v->rank; i++) {
      a->off += a->v->stride[i] * lin_at(&a->dim[i], pl->lo);
      inc += (u64)a->v->stride[i] * (u64)(a->dim[i].step * pl->step);
    }
    a->inc = (i64)inc;
  }
  return !(a->loads && a->stores && a->linear && a->inc == 0); /* carried through memory */
}

/* Can one iteration touch through b what another one touches through a? */
static bool collide(const Access *a, const Access *b, u64 n) {
  i64 d = b->off - a->off, size = a->inc < 0 ? -a->inc : a->inc;
  if (a->inc == b->inc && size && d < size && -d < size) return false;
  i64 a1 = a->off + a->inc * (i64)(n - 1), b1 = b->off + b->inc * (i64)(n - 1);
  i64 alo = a->off < a1 ? a->off : a1, ahi = a->off < a1 ? a1 : a->off;
  i64 blo = b->off < b1 ? b->off : b1, bhi = b->off < b1 ? b1 : b->off;
  return alo <= bhi && blo <= ahi;
}

static bool is_free(const Plan *pl, u64 n) {
  for (u32 i = 0; i < pl->acc.n; i++) {
    const Access *a = pl->acc.at[i];
    if (!a->stores) continue;
    for (u32 k = 0; k < pl->acc.n; k++) {
      const Access *b = pl->acc.at[k];
      if (k != i && b->root == a->root && collide(a, b, n)) return false;
    }
  }
  return true;
}

/* ---- rows ---- */

static RowVal row(Run *r, Plan *pl, Row *w, u64 k0, u32 n, void *dest);

static RowVal single(Row *w, Scalar x) {
  row_put(w->cls, &w->cell, 0, x);
  return (RowVal){&w->cell, true};
}

static u8 *element(const Access *a, u64 k) {
  return a->v->data + (a->off + a->inc * (i64)k) * (i64)a->v->size;
}

/* Offsets of the elements that a row touches where the index is not linear; each is checked. */
static const i64 *offsets(Run *r, Plan *pl, Access *a, u64 k0, u32 n) {
  i64 *off = slot(r, a->slot);
  memset(off, 0, n * sizeof *off);
  for (u32 d = 0; d < a->v->rank; d++) {
    i64 stride = a->v->stride[d], extent = a->v->dim[d];
    if (!a->row[d]) {
      const Lin *l = &a->dim[d];
      u64 at = (u64)lin_at(l, var_at(pl, k0)) * (u64)stride;
      u64 inc = (u64)(l->step * pl->step) * (u64)stride;
      for (u32 i = 0; i < n; i++) off[i] += (i64)(at + inc * i);
      continue;
    }
    RowVal v = row(r, pl, a->row[d], k0, n, NULL);
    const i64 *x = v.p;
    for (u32 i = 0; i < n; i++) {
      i64 at = x[v.one ? 0 : i];
      if (at < 0 || at >= extent) out_of_bounds(r, a->buf, d, at, 1);
      off[i] += at * stride;
    }
  }
  return off;
}

static bool is_native(DType dt) {
  return dt == DT_f32 || dt == DT_f64 || dt == DT_i64;
}

static RowVal load(Run *r, Plan *pl, Row *w, u64 k0, u32 n) {
  Access *a = w->acc;
  void *o = slot(r, w->slot);
  if (a->linear) {
    const u8 *from = element(a, k0);
    if (a->inc == 0) return single(w, scalar_load(w->dt, from));
    if (a->inc == 1 && is_native(w->dt) && !w->copy) return (RowVal){(void *)from, false};
    kern_load(w->dt, o, from, a->inc, n);
    return (RowVal){o, false};
  }
  const i64 *off = offsets(r, pl, a, k0, n);
  for (u32 i = 0; i < n; i++)
    row_put(w->cls, o, i, scalar_load(w->dt, a->v->data + off[i] * (i64)a->v->size));
  return (RowVal){o, false};
}

static RowVal generic(const Run *r, Row *w, const RowVal *arg, void *o, u32 n) {
  Scalar x[3];
  for (u32 i = 0; i < n; i++) {
    for (u32 k = 0; k < w->narg; k++) x[k] = row_get(w->arg[k]->cls, arg[k].p, arg[k].one ? 0 : i);
    row_put(w->cls, o, i, apply(r->p, w->op, w->from, w->dt, w->sat, x));
  }
  return (RowVal){o, false};
}

static RowVal operate(Run *r, Plan *pl, Row *w, u64 k0, u32 n, void *dest) {
  RowVal arg[3] = {{NULL, true}, {NULL, true}, {NULL, true}};
  bool one = true;
  for (u32 k = 0; k < w->narg; k++) {
    arg[k] = row(r, pl, w->arg[k], k0, n, NULL);
    one = one && arg[k].one;
  }
  if (one) {
    generic(r, w, arg, &w->cell, 1);
    return (RowVal){&w->cell, true};
  }
  void *o = dest ? dest : slot(r, w->slot);
  if (w->op == OP_select) {
    kern_select(w->cls, o, arg[0].p, arg[1].p, arg[2].p, n, arg[0].one, arg[1].one, arg[2].one);
  } else if (w->op == OP_cast) {
    if (!kern_cast(w->from, w->dt, w->sat, o, arg[0].p, n)) generic(r, w, arg, o, n);
  } else if (w->narg == 2 && kern2(w->op, w->from)) {
    kern2(w->op, w->from)(o, arg[0].p, arg[1].p, n, arg[0].one, arg[1].one);
    kern_fit(w->dt, o, n);
  } else if (w->narg == 1 && kern1(r->p, w->op, w->from)) {
    kern1(r->p, w->op, w->from)(o, arg[0].p, n);
    kern_fit(w->dt, o, n);
  } else {
    generic(r, w, arg, o, n);
  }
  return (RowVal){o, false};
}

static RowVal numbers(Run *r, Plan *pl, Row *w, u64 k0, u32 n) {
  RowVal seed = row(r, pl, w->arg[0], k0, n, NULL), index = row(r, pl, w->arg[1], k0, n, NULL);
  const i64 *s = seed.p, *x = index.p;
  void *o = slot(r, w->slot);
  for (u32 i = 0; i < n; i++) {
    double f = random_unit(w->dt, (u64)s[seed.one ? 0 : i], r->o.seed, (u64)x[index.one ? 0 : i]);
    row_put(w->cls, o, i, (Scalar){.f = f});
  }
  return (RowVal){o, false};
}

/* Values of n iterations from the k0-th on. dest: where the result is wanted, if it is not there
 * anyway. */
static RowVal row(Run *r, Plan *pl, Row *w, u64 k0, u32 n, void *dest) {
  switch (w->kind) {
  case RW_const: return (RowVal){&w->cell, true};
  case RW_var: return single(w, *r->var[w->ref]);
  case RW_lin: {
    i64 *o = slot(r, w->slot), inc = w->lin.step * pl->step;
    u64 x = (u64)lin_at(&w->lin, var_at(pl, k0));
    if (inc == 0) return single(w, (Scalar){.i = (i64)x});
    for (u32 i = 0; i < n; i++) o[i] = (i64)(x + (u64)inc * i);
    return (RowVal){o, false};
  }
  case RW_let: return pl->let[w->ref];
  case RW_load: return load(r, pl, w, k0, n);
  case RW_op: return operate(r, pl, w, k0, n, dest);
  case RW_random: return numbers(r, pl, w, k0, n);
  }
  return (RowVal){NULL, true};
}

/* ---- statements ---- */

static void store(Run *r, Plan *pl, const Step *st, u64 k0, u32 n) {
  Access *a = st->to;
  if (!a->linear) {
    RowVal v = row(r, pl, st->value, k0, n, NULL);
    const i64 *off = offsets(r, pl, a, k0, n);
    for (u32 i = 0; i < n; i++)
      scalar_store(st->dt, a->v->data + off[i] * (i64)a->v->size,
                   row_get(st->value->cls, v.p, v.one ? 0 : i));
    return;
  }
  u8 *to = element(a, k0);
  RowVal v = row(r, pl, st->value, k0, n, a->inc == 1 && is_native(st->dt) ? to : NULL);
  if (v.p != to) kern_store(st->dt, to, a->inc, v.p, n, v.one);
}

static void fold(const Step *st, Scalar *acc, RowVal v, u32 n) {
  if (kern_fold(st->op, st->dt, st->swap, acc, v.p, n, v.one)) return;
  RowClass cls = st->value->cls;
  for (u32 i = 0; i < n; i++) {
    Scalar x = row_get(cls, v.p, v.one ? 0 : i);
    Scalar pair[2] = {st->swap ? x : *acc, st->swap ? *acc : x};
    *acc = scalar_eval(st->op, st->dt, pair);
  }
}

static void run_step(Run *r, Plan *pl, const Step *st, u64 k0, u32 n) {
  if (st->kind == SP_store) {
    store(r, pl, st, k0, n);
    return;
  }
  RowVal v = row(r, pl, st->value, k0, n, NULL);
  if (st->kind == SP_let) {
    pl->let[st->ref] = v;
  } else if (st->kind == SP_fold_var) {
    fold(st, r->var[st->ref], v, n);
  } else {
    u8 *at = element(st->to, k0);
    Scalar acc = scalar_load(st->dt, at);
    fold(st, &acc, v, n);
    scalar_store(st->dt, at, acc);
  }
}

/* A factor of a * b: memory, or one value in the row's own cell. */
static const float *factor(Run *r, Row *w, i64 *inc) {
  *inc = 0;
  if (w->kind == RW_load) {
    *inc = w->acc->inc;
    return (const float *)(const void *)element(w->acc, 0);
  }
  if (w->kind == RW_var) row_put(RC_float, &w->cell, 0, *r->var[w->ref]);
  return &w->cell.f;
}

static bool run_mac(Run *r, const Step *st, u64 n) {
  if (!st->a || (st->kind == SP_store && st->to->inc != 1)) return false;
  i64 ia, ib;
  const float *a = factor(r, st->a, &ia), *b = factor(r, st->b, &ib);
  if (st->kind == SP_fold_var) {
    Scalar *acc = r->var[st->ref];
    acc->f = kern_dot((float)acc->f, a, ia, b, ib, n);
    return true;
  }
  kern_mac((float *)(void *)element(st->to, 0), a, ia, b, ib, n);
  return true;
}

bool plan_run(Run *r, Plan *pl, i64 lo, u64 n) {
  if (n >= (u64)1 << 40) return false;
  pl->lo = lo;
  for (u32 i = 0; i < pl->atom.n; i++) pl->atom.at[i]->val.i = eval_int(r, pl->atom.at[i]->e);
  for (u32 i = 0; i < pl->acc.n; i++)
    if (!locate(r, pl, pl->acc.at[i], n)) return false;
  if (pl->shared && !is_free(pl, n)) return false;
  if (pl->steps.n == 1 && run_mac(r, &pl->steps.at[0], n)) return true;
  for (u64 k = 0; k < n; k += ROW) {
    u32 m = n - k < ROW ? (u32)(n - k) : ROW;
    for (u32 i = 0; i < pl->steps.n; i++) run_step(r, pl, &pl->steps.at[i], k, m);
  }
  return true;
}
