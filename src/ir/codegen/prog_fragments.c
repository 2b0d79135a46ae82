/* prog_fragments.c: fragments of integers for machines without matrix registers.
 *
 * In: a kernel. Out: an unrolled copy, in which a fragment of sums is 16 vector variables, and a
 * product is a loop of dot_i8x4. Operands are read from memory again by each product: their loads
 * must precede it in the same list, with no other store and no set of a variable between. */
#include "ir/prog/prog.h"

/* An element of a register buffer. */
typedef struct Fragment {
  VarId row[FRAG_ROWS]; /* of sums; 0: not declared */
  ExprId from;          /* of an operand: its quad or turn */
  u32 epoch;            /* when it was set */
} Fragment;

typedef struct FragmentLoops {
  Prog *p;
  Arena *a;
  Map at; /* buffer and indices -> 1 + position in `all` */
  VEC(Fragment) all;
  u32 epoch; /* counts other stores, sets of variables, and starts and ends of lists */
  StmtList head;
} FragmentLoops;

static bool is_fragment(Prog *p, const Stmt *s) {
  const Expr *x = s->kind == ST_store ? prog_expr(p, s->a) : NULL;
  return x && x->rows && x->dt == DT_i32;
}

bool prog_has_fragments(Prog *p, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
    if (is_fragment(p, s)) return true;
  return false;
}

static Fragment *find(FragmentLoops *o, BufId b, const ExprId *idx, Loc loc) {
  i64 key[MAX_RANK + 1] = {b};
  u32 n = prog_buf(o->p, b)->rank;
  for (u32 i = 0; i < n; i++)
    if (!ex_is_int(o->p, idx[i], &key[i + 1]))
      fail(o->p->c, ERR_unsupported, loc,
           "%s has fragments of integers: expected indices that are constants after unrolling",
           show(o->p->c, prog_buf(o->p, b)->name));
  u32 *slot = map_put_bytes(&o->at, key, (n + 1) * sizeof *key);
  if (!*slot) {
    *vec_push(o->a, &o->all) = (Fragment){.from = 0};
    *slot = o->all.n;
  }
  return &o->all.at[*slot - 1];
}

/* The sums that an expression names, declared as zeros before the list. */
static Fragment *sums_of(FragmentLoops *o, BufId b, const ExprId *idx, Loc loc) {
  Prog *p = o->p;
  Fragment *f = find(o, b, idx, loc);
  for (u32 r = 0; r < FRAG_ROWS && !f->row[r]; r++) {
    f->row[r] = prog_add_var(p, DT_i32, str_of(p->c, "sum"));
    prog_var(p, f->row[r])->lanes = FRAG_ROWS;
    ExprId zero = ex_splat(p, ex_const(p, DT_i32, (Scalar){0}), FRAG_ROWS);
    stmts_add(p, &o->head,
              &(Stmt){.kind = ST_let, .var = f->row[r], .a = zero, .step = 1, .loc = loc});
  }
  return f;
}

/* The box in memory of an operand. */
static Expr operand(FragmentLoops *o, ExprId id, ExprKind kind, Loc loc) {
  Prog *p = o->p;
  Expr x = *prog_expr(p, id);
  Fragment *f = find(o, x.ref, x.arg, loc);
  if (!f->from || f->epoch != o->epoch || prog_expr(p, f->from)->kind != kind)
    fail(p->c, ERR_unsupported, loc,
         "operand %s of a product of integers: expected a %s in the statement list of the product, "
         "with no store and no set of a variable between",
         show(p->c, prog_buf(p, x.ref)->name), kind == EX_quad ? "quad" : "turn");
  return *prog_expr(p, prog_expr(p, f->from)->arg[0]);
}

/* Element (row, column) of a box, as a vector. */
static ExprId element(Prog *p, const Expr *box, ExprId row, ExprId column, u32 lanes) {
  ExprId idx[MAX_RANK];
  u32 n = box->narg;
  for (u32 i = 0; i < n; i++) idx[i] = ex_copy(p, box->arg[i]);
  idx[n - 2] = ex_op2(p, OP_add, idx[n - 2], row);
  idx[n - 1] = ex_op2(p, OP_add, idx[n - 1], column);
  return ex_load_vec(p, box->ref, idx, n, lanes);
}

static void put_product(FragmentLoops *o, StmtList *out, const Stmt *s) {
  Prog *p = o->p;
  Expr x = *prog_expr(p, s->a), a = operand(o, x.arg[0], EX_quad, s->loc),
       b = operand(o, x.arg[1], EX_turn, s->loc);
  Fragment f = *sums_of(o, s->buf, s->idx, s->loc);
  StmtList body = {0};
  VarId k = prog_add_var(p, DT_i64, str_of(p->c, "k")),
        w = prog_add_var(p, DT_i32, str_of(p->c, "w"));
  prog_var(p, w)->lanes = FRAG_ROWS;
  ExprId words = element(p, &b, ex_var(p, k), ex_int(p, 0), FRAG_ROWS);
  stmts_add(p, &body, &(Stmt){.kind = ST_let, .var = w, .a = words, .step = 1, .loc = s->loc});
  for (u32 r = 0; r < FRAG_ROWS; r++) {
    ExprId four = element(p, &a, ex_int(p, r), ex_op2(p, OP_mul, ex_var(p, k), ex_int(p, 4)), 4);
    ExprId sum = ex_op3(p, OP_dot_i8x4, ex_splat(p, ex_quad(p, four), FRAG_ROWS), ex_var(p, w),
                        ex_var(p, f.row[r]));
    stmts_add(p, &body,
              &(Stmt){.kind = ST_set, .var = f.row[r], .a = sum, .step = 1, .loc = s->loc});
  }
  stmts_add(p, out,
            &(Stmt){.kind = ST_for,
                    .var = k,
                    .a = ex_int(p, 0),
                    .b = ex_int(p, FRAG_ROWS),
                    .step = 1,
                    .body = body.first,
                    .loc = s->loc});
}

static void put_fragment(FragmentLoops *o, StmtList *out, const Stmt *s) {
  Prog *p = o->p;
  Expr x = *prog_expr(p, s->a);
  if (prog_buf(p, s->buf)->space != BS_reg) {
    Fragment f = *sums_of(o, x.ref, x.arg, s->loc);
    for (u32 r = 0; r < FRAG_ROWS; r++) {
      Stmt row = *s;
      row.idx = NEWS(o->a, ExprId, s->nidx);
      for (u32 i = 0; i < s->nidx; i++) row.idx[i] = ex_copy(p, s->idx[i]);
      row.idx[s->nidx - 2] = ex_op2(p, OP_add, row.idx[s->nidx - 2], ex_int(p, r));
      row.a = ex_var(p, f.row[r]);
      stmts_add(p, out, &row);
    }
    o->epoch++;
  } else if (x.kind == EX_mma) {
    put_product(o, out, s);
  } else if (x.kind == EX_quad || x.kind == EX_turn) {
    Fragment *f = find(o, s->buf, s->idx, s->loc);
    f->from = s->a;
    f->epoch = o->epoch;
  } else {
    Fragment f = *sums_of(o, s->buf, s->idx, s->loc);
    for (u32 r = 0; r < FRAG_ROWS; r++) {
      ExprId value = ex_splat(p, ex_copy(p, x.arg[0]), FRAG_ROWS);
      stmts_add(p, out,
                &(Stmt){.kind = ST_set, .var = f.row[r], .a = value, .step = 1, .loc = s->loc});
    }
  }
}

static StmtId list(FragmentLoops *o, StmtId first) {
  Prog *p = o->p;
  StmtList out = {0};
  o->epoch++;
  for (StmtId id = first, next; id; id = next) {
    Stmt s = *prog_stmt(p, id);
    next = s.next;
    if (is_fragment(p, &s)) {
      put_fragment(o, &out, &s);
      continue;
    }
    if (s.kind == ST_store || s.kind == ST_set) o->epoch++;
    StmtId body = s.body ? list(o, s.body) : 0, other = s.other ? list(o, s.other) : 0;
    prog_stmt(p, id)->body = body;
    prog_stmt(p, id)->other = other;
    stmts_move(p, &out, id);
  }
  o->epoch++;
  return out.first;
}

static StmtId replace(Prog *p, StmtId first, Arena *a) {
  const Stmt *s = prog_stmt(p, first);
  if (s->kind == ST_for && s->flags & LF_parallel && !s->next && s->body) {
    StmtId body = replace(p, s->body, a); /* each thread has its own sums */
    prog_stmt(p, first)->body = body;
    return first;
  }
  FragmentLoops o = {.p = p, .a = a, .at = map_new(a)};
  StmtId body = list(&o, first);
  if (!o.head.first) return body;
  for (StmtId id = body, next; id; id = next) {
    next = prog_stmt(p, id)->next;
    stmts_move(p, &o.head, id);
  }
  return o.head.first;
}

StmtId prog_fragments(Prog *p, StmtId first, Arena *a) {
  StmtId copy = prog_unroll(p, first, a);
  if (!copy)
    fail(p->c, ERR_unsupported, prog_stmt(p, first)->loc,
         "a kernel with fragments of integers must unroll to 1 to %d statements: expected "
         "fewer unrolled loops, with constant bounds",
         MOST_STATEMENTS);
  return replace(p, copy, a);
}
