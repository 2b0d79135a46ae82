/* ref_loops.h: inner loops of the reference evaluator, for one accumulator type.
 *
 * ref_acc.c includes it once per type, with T (the type), FN(name), ADD, SUB, MUL and ISNAN
 * defined. A stride of 0 in acc sums into one element, in the order of i. max and min propagate
 * NaN. */

static void FN(mac)(void *acc, i64 sacc, const void *a, i64 sa, const void *b, i64 sb, i64 n) {
  T *restrict t = acc;
  const T *x = a, *y = b;
  if (sacc == 0) {
    T sum = *t;
    for (i64 i = 0; i < n; i++) sum = ADD(sum, MUL(x[i * sa], y[i * sb]));
    *t = sum;
  } else if (sacc == 1 && sa == 1 && sb == 0) {
    T k = *y;
    for (i64 i = 0; i < n; i++) t[i] = ADD(t[i], MUL(x[i], k));
  } else if (sacc == 1 && sa == 0 && sb == 1) {
    T k = *x;
    for (i64 i = 0; i < n; i++) t[i] = ADD(t[i], MUL(k, y[i]));
  } else {
    for (i64 i = 0; i < n; i++) t[i * sacc] = ADD(t[i * sacc], MUL(x[i * sa], y[i * sb]));
  }
}

static void FN(fold)(Op op, void *acc, i64 sacc, const void *from, i64 sx, i64 n) {
  T *restrict t = acc;
  const T *x = from;
  if (op == OP_add) {
    for (i64 i = 0; i < n; i++) t[i * sacc] = ADD(t[i * sacc], x[i * sx]);
  } else if (op == OP_mul) {
    for (i64 i = 0; i < n; i++) t[i * sacc] = MUL(t[i * sacc], x[i * sx]);
  } else {
    for (i64 i = 0; i < n; i++) {
      T v = x[i * sx], old = t[i * sacc];
      bool take = op == OP_max ? v > old : v < old;
      if (take || ISNAN(v)) t[i * sacc] = v; /* as scalar_eval: the first of equal values */
    }
  }
}

static void FN(map)(Op op, void *out, const void *a, i64 sa, const void *b, i64 sb, i64 n) {
  T *restrict t = out;
  const T *x = a, *y = b;
  switch (op) {
  case OP_add:
    for (i64 i = 0; i < n; i++) t[i] = ADD(x[i * sa], y[i * sb]);
    break;
  case OP_sub:
    for (i64 i = 0; i < n; i++) t[i] = SUB(x[i * sa], y[i * sb]);
    break;
  case OP_mul:
    for (i64 i = 0; i < n; i++) t[i] = MUL(x[i * sa], y[i * sb]);
    break;
  default: /* max, min */
    for (i64 i = 0; i < n; i++) {
      T v = x[i * sa], w = y[i * sb];
      bool second = op == OP_max ? w > v : w < v;
      t[i] = second || ISNAN(w) ? w : v;
    }
  }
}
