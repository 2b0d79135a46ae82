/* scalar_array.c: arrays of numbers in a compiled loop. See scalar.h.
 *
 * In: lists of numbers, nested with rows of equal length. Out: row-major buffers with extents as
 * inputs: one Prog works for every size up to its capacity. Ragged rows, and rows as values, are
 * left to the interpreter.
 */
#include "lang/run/scalar.h"

/* ---- conversion of lists ---- */

/* Checks the elements of l against the shape s from axis `at` on; first: sets the shape. */
static bool gather(const ListObj *l, u32 at, bool first, NumShape *s) {
  if (at == NUM_RANK || !l->n) return false;
  if (first) {
    s->dim[at] = l->n;
    s->rank = at + 1;
    s->kind = l->at[0].kind == KD_array ? KD_none : l->at[0].kind;
  }
  if (s->dim[at] != l->n) return false;
  bool rows = first ? s->kind == KD_none : at + 1 < s->rank;
  for (u64 i = 0; i < l->n; i++) {
    const LangValue *d = &l->at[i];
    if (rows ? d->kind != KD_array : d->kind != s->kind) return false;
    if (rows && !gather(d->u.list, at + 1, first && !i, s)) return false;
  }
  return true;
}

NumShape num_shape(const ListObj *l) {
  NumShape s = {.n = 1};
  if (!gather(l, 0, true, &s) || !num_is_number(s.kind)) return (NumShape){.kind = KD_none};
  for (u32 i = 0; i < s.rank; i++) s.n *= s.dim[i]; /* no overflow: the elements exist */
  return s;
}

u32 num_array(NumBuild *b, const NumShape *s) {
  NumLoop *to = b->to;
  if (s->n > NUM_ELEMENTS) return 0;
  u64 n = 64;
  while (n < s->n) n *= 2;
  Dim dim = (Dim)n;
  NumArray *a = vec_push(b->a, &to->array);
  *a = (NumArray){.kind = s->kind, .rank = s->rank, .room = n, .length = to->nint};
  to->nint += s->rank;
  a->in = prog_add_buf(b->p, BS_in, s->kind == KD_float ? DT_f64 : DT_i64, &dim, 1,
                       str_fmt(b->c, "a%u", to->array.n));
  for (u32 i = 0; i < s->rank; i++) {
    ExprId at = ex_int(b->p, a->length + i);
    a->n[i] = num_var(b, DT_i64, ex_load(b->p, b->in_int, &at, 1));
  }
  return to->array.n;
}

/* ---- elements ---- */

u32 num_array_of(NumBuild *b, const Ast *n, u32 *var) {
  if (n->kind != AST_name || n->to) return 0;
  u32 v = num_find_var(b, n);
  if (var) *var = v;
  return num_kind(b, &b->now, v) == KD_array ? b->to->var.at[v].array : 0;
}

NumVal num_element(NumBuild *b, u32 array, ExprId index) {
  const NumArray *a = &b->to->array.at[array - 1];
  ExprId e = ex_load(b->p, a->in, &index, 1);
  *vec_push(b->a, &b->load) = e;
  if (a->kind == KD_bool) e = ex_op2(b->p, OP_ne, e, ex_int(b->p, 0));
  return (NumVal){.kind = a->kind, .e = e};
}

static NumVal whole(ExprId e) {
  return (NumVal){.kind = KD_int, .e = e};
}

/* Requires that the index is in range. from_end: negative indices count from the end. natural: it
 * is not negative. */
static NumVal inside(NumBuild *b, NumVal i, VarId size, bool from_end, bool natural) {
  Prog *p = b->p;
  i = num_snapshot(b, i);
  if (from_end && !natural) {
    ExprId turned = ex_op2(p, OP_add, num_read(b, i), ex_var(p, size));
    ExprId minus = ex_op2(p, OP_lt, num_read(b, i), ex_int(p, 0));
    i = num_snapshot(b, whole(ex_op3(p, OP_select, minus, turned, num_read(b, i))));
  }
  ExprId below = ex_op2(p, OP_lt, num_read(b, i), ex_var(p, size));
  if (!natural) below = ex_op2(p, OP_and, ex_op2(p, OP_ge, num_read(b, i), ex_int(p, 0)), below);
  num_require(b, below);
  return i;
}

/* True for a counter that starts at a literal, which is never negative. */
static bool is_natural(NumBuild *b, const Ast *n) {
  if (n->kind != AST_name || n->to) return false;
  const NumVar *v = &b->to->var.at[num_find_var(b, n)];
  return v->fixed && v->natural;
}

/* Array of `a[i][j]` and number of indices; 0 if it is not an array of numbers. */
static u32 indexed_array(NumBuild *b, const Ast *n, u32 *count, u32 *var) {
  *count = 0;
  for (; n->kind == AST_index && !n->a->to; n = n->a) ++*count;
  return num_array_of(b, n, var);
}

/* Buffer position of n, which has `count` indices. */
static NumVal place_of(NumBuild *b, const Ast *n, u32 array, u32 count, bool from_end) {
  Prog *p = b->p;
  const Ast *at[NUM_RANK];
  NumVal all = {.kind = KD_none};
  for (u32 i = count; i; i--, n = n->a) at[i - 1] = n;
  for (u32 i = 0; i < count; i++) {
    NumVal k = num_operand(b, at[i]->b);
    if (k.kind != KD_int) num_refuse(b, at[i]->b, "an index is not an integer");
    VarId size = b->to->array.at[array - 1].n[i];
    k = inside(b, k, size, from_end, is_natural(b, at[i]->b));
    if (i) {
      ExprId rows = ex_op2(p, OP_mul, num_read(b, all), ex_var(p, size));
      k = num_snapshot(b, whole(ex_op2(p, OP_add, rows, num_read(b, k))));
    }
    all = k;
  }
  return all;
}

NumVal num_indexed(NumBuild *b, const Ast *n) {
  u32 count, array = indexed_array(b, n, &count, NULL);
  if (!array || count != b->to->array.at[array - 1].rank)
    num_refuse(b, n, "the indexed value is not an array of numbers");
  NumVal at = place_of(b, n, array, count, true);
  return num_element(b, array, num_read(b, at));
}

bool num_length(NumBuild *b, Ast *n, NumVal *out) {
  u32 count, array = indexed_array(b, n, &count, NULL);
  if (!array || count >= b->to->array.at[array - 1].rank) return false;
  place_of(b, n, array, count, true); /* for its checks */
  *out = whole(ex_var(b->p, b->to->array.at[array - 1].n[count]));
  return true;
}

NumVal num_change_element(NumBuild *b, const Ast *n) {
  Prog *p = b->p;
  NumVal v = num_snapshot(b, num_expr(b, n->b));
  u32 count, var, array = indexed_array(b, n->a, &count, &var);
  if (!array || count != b->to->array.at[array - 1].rank || !b->to->var.at[var].home || b->self)
    num_refuse(b, n, "the assigned value is not an array of numbers");
  if (b->to->array.at[array - 1].kind != v.kind)
    num_refuse(b, n, "an element becomes one of another kind");
  ExprId at = num_read(b, place_of(b, n->a, array, count, false)), x = num_read(b, v);
  NumArray *a = &b->to->array.at[array - 1];
  if (!a->out) {
    Dim dim = (Dim)a->room;
    a->out = prog_add_buf(p, BS_out, v.kind == KD_float ? DT_f64 : DT_i64, &dim, 1,
                          str_fmt(b->c, "b%u", array));
  }
  if (v.kind == KD_bool) x = ex_cast(p, DT_i64, x, false);
  prog_store(p, &b->at, a->out, &at, 1, x);
  return v;
}

/* Number of elements. */
static ExprId size_of(NumBuild *b, const NumArray *a) {
  ExprId n = ex_var(b->p, a->n[0]);
  for (u32 i = 1; i < a->rank; i++) n = ex_op2(b->p, OP_mul, n, ex_var(b->p, a->n[i]));
  return n;
}

/* Arrays that change are read from their copy. */
void num_copy_arrays(NumBuild *b) {
  Prog *p = b->p;
  for (u32 i = 0; i < b->to->array.n; i++) {
    const NumArray *a = &b->to->array.at[i];
    if (!a->out) continue;
    if (a->read_as_one) num_refuse(b, NULL, "an array changes while another holds it");
    for (u32 k = 0; k < b->load.n; k++) {
      Expr *e = prog_expr(p, b->load.at[k]);
      if (e->ref == a->in) e->ref = a->out;
    }
    ExprId from = ex_int(p, 0), end = size_of(b, a);
    StmtId s = prog_insert(p, &b->head, ST_for);
    Stmt *loop = prog_stmt(p, s);
    VarId v = prog_add_var(p, DT_i64, 0);
    ExprId at = ex_var(p, v), x;
    loop->var = v;
    loop->step = 1;
    loop->a = from;
    loop->b = end;
    Cursor in = prog_inside(s);
    x = ex_load(p, a->in, &at, 1);
    at = ex_var(p, v);
    prog_store(p, &in, a->out, &at, 1, x);
  }
}
