/* interp_plan.c: decides which loops run by rows, and prepares them.
 *
 * In: a `for` whose body is a list of let, set and store of scalars. Out: a Plan, or nothing.
 * Method: iterations may be run statement by statement, a row of them at a time, when no iteration
 * reads or writes what another one writes. For variables that is decided here: a variable of the
 * body is a row; one from outside may only be accumulated into, once, and not be read elsewhere.
 * For memory, indices are split into linear ones, whose overlap interp_row.c decides with the
 * actual offsets, and others, which are accepted only where nothing else touches the same memory
 * (reads in any number, or a single store: rows keep the order of iterations). Everything that is
 * not understood is refused; the loop then runs plainly.
 */
#include "back/interp/interp.h"

#include "ir/affine.h"

typedef struct Local {
  VarId var;
  ExprId value;
  bool again; /* assigned more than once */
} Local;

typedef struct PlanBuild {
  Run *r;
  Prog *p;
  const Stmt *loop;
  Plan *plan;
  VEC(Local) local;   /* variables of the body */
  VEC(VarId) carried; /* variables from outside that the body sets */
  VEC(BufId) stored;  /* View.place */
  Map access;         /* by buffer: 1 + its last access in plan->acc */
  bool in_let;        /* the row under construction outlives its statement */
  u32 work;           /* spent on looking through variables of the body */
} PlanBuild;

static Local *find_local(PlanBuild *o, VarId v) {
  for (u32 i = 0; i < o->local.n; i++)
    if (o->local.at[i].var == v) return &o->local.at[i];
  return NULL;
}

static bool is_carried(PlanBuild *o, VarId v) {
  for (u32 i = 0; i < o->carried.n; i++)
    if (o->carried.at[i] == v) return true;
  return false;
}

static bool is_stored(PlanBuild *o, BufId root) {
  for (u32 i = 0; i < o->stored.n; i++)
    if (o->stored.at[i] == root) return true;
  return false;
}

/* Same value in every iteration, and computed without what the body changes? */
static bool is_constant(PlanBuild *o, ExprId id) {
  for (ExprWalk w = ex_walk(o->p, id); ex_next(&w);) {
    VarId v = w.e->kind == EX_var ? w.e->ref : 0;
    if (v && (v == o->loop->var || find_local(o, v) || is_carried(o, v))) return false;
    if (w.e->kind == EX_load && is_stored(o, o->r->view[w.e->ref].place)) return false;
  }
  return true;
}

/* ---- linear indices ---- */

enum { MAX_TERMS = 24, MAX_WORK = 10000 };
#define LIN_MAX ((i64)1 << 31) /* of the step, so that no index wraps around within a row */

typedef struct Sum {
  i64 k, step;
  u32 n;
  Term term[MAX_TERMS];
} Sum;

static bool add_term(Sum *to, const Scalar *at, i64 coef) {
  for (u32 i = 0; i < to->n; i++) {
    if (to->term[i].at != at) continue;
    to->term[i].coef = (i64)((u64)to->term[i].coef + (u64)coef);
    return true;
  }
  if (to->n == MAX_TERMS) return false;
  to->term[to->n++] = (Term){at, coef};
  return true;
}

static bool linear(PlanBuild *o, ExprId id, i64 coef, Sum *to);

static bool add_atom(PlanBuild *o, ExprId e, i64 coef, Sum *to) {
  Atom *a = NEW(o->r->a, Atom);
  a->e = e;
  *vec_push(o->r->a, &o->plan->atom) = a;
  return add_term(to, &a->val, coef);
}

/* Adds coef times the term to the sum; false when it is not linear in the loop variable. */
static bool linear_term(PlanBuild *o, const AffTerm *t, i64 coef, Sum *to) {
  if (!t->var) return is_constant(o, t->e) && add_atom(o, t->e, coef, to);
  const Local *l = find_local(o, t->var);
  if (l) return !l->again && ++o->work < MAX_WORK && linear(o, l->value, coef, to);
  if (is_carried(o, t->var)) return false;
  if (t->var != o->loop->var) return add_term(to, o->r->var[t->var], coef);
  to->step = (i64)((u64)to->step + (u64)coef);
  return to->step > -LIN_MAX && to->step < LIN_MAX;
}

/* The same for an expression. */
static bool linear(PlanBuild *o, ExprId id, i64 coef, Sum *to) {
  const Expr *e = prog_expr(o->p, id);
  Affine a;
  if (e->dt != DT_i64 || e->lanes != 1 || !affine_of(o->p, id, &a)) return false;
  to->k = (i64)((u64)to->k + (u64)coef * (u64)a.k);
  for (u32 i = 0; i < a.n; i++)
    if (!linear_term(o, &a.t[i], (i64)((u64)coef * (u64)a.t[i].coef), to)) return false;
  return true;
}

static Lin freeze(PlanBuild *o, const Sum *s) {
  return (Lin){s->k, s->step, s->n, arena_copy(o->r->a, s->term, s->n * sizeof *s->term)};
}

/* ---- accesses ---- */

static Row *build(PlanBuild *o, ExprId id);

/* flat = sum over axes of stride * index; false when it has too many terms. */
static bool flatten(Access *a, Sum *flat) {
  for (u32 i = 0; i < a->v->rank; i++) {
    u64 stride = (u64)a->v->stride[i];
    const Lin *l = &a->dim[i];
    flat->k = (i64)((u64)flat->k + stride * (u64)l->k);
    flat->step = (i64)((u64)flat->step + stride * (u64)l->step);
    for (u32 k = 0; k < l->n; k++)
      if (!add_term(flat, l->term[k].at, (i64)(stride * (u64)l->term[k].coef))) return false;
  }
  return true;
}

static bool fill_access(PlanBuild *o, Access *a) {
  Run *r = o->r;
  u32 rank = prog_buf(o->p, a->buf)->rank;
  a->v = &r->view[a->buf];
  a->dim = NEWS(r->a, Lin, rank);
  a->row = NEWS(r->a, Row *, rank);
  a->check = NEWS(r->a, bool, rank);
  a->linear = true;
  if (a->v->fixed) view_get(r, a->buf);
  for (u32 i = 0; i < rank; i++) {
    Sum s = {0};
    if (linear(o, a->idx[i], 1, &s)) {
      Range g = ex_range(o->p, a->idx[i], r->range);
      a->dim[i] = freeze(o, &s);
      a->check[i] = !a->v->fixed || g.lo < 0 || g.hi >= a->v->dim[i];
      continue;
    }
    a->linear = false;
    a->row[i] = build(o, a->idx[i]);
    if (!a->row[i]) return false;
  }
  Sum flat = {0};
  a->fixed = a->linear && a->v->fixed && flatten(a, &flat);
  a->flat = freeze(o, &flat);
  if (!a->linear) a->slot = o->plan->nslot++;
  return true;
}

/* Equal linear indices of one buffer share an access, so that it is located once. */
static Access *access(PlanBuild *o, BufId b, const ExprId *idx) {
  Plan *plan = o->plan;
  u32 rank = prog_buf(o->p, b)->rank;
  u32 *slot = map_get(&o->access, b);
  for (Access *a = slot ? plan->acc.at[*slot - 1] : NULL; a; a = a->before) {
    bool same = a->linear;
    for (u32 k = 0; same && k < rank; k++) same = ex_same(o->p, a->idx[k], idx[k]);
    if (same) return a;
  }
  Access *a = NEW(o->r->a, Access);
  a->buf = b;
  a->root = o->r->view[b].place;
  a->idx = idx;
  if (prog_buf(o->p, b)->lanes != 1 || !fill_access(o, a)) return NULL;
  slot = map_put(&o->access, b); /* indices that are loads themselves may have come in between */
  a->before = *slot ? plan->acc.at[*slot - 1] : NULL;
  *vec_push(o->r->a, &plan->acc) = a;
  *slot = plan->acc.n;
  return a;
}

/* ---- rows ---- */

static bool build_args(PlanBuild *o, Row *w, const Expr *e) {
  w->narg = e->narg;
  w->from = prog_expr(o->p, e->arg[e->narg - 1])->dt;
  for (u32 i = 0; i < e->narg; i++) {
    w->arg[i] = build(o, e->arg[i]);
    if (!w->arg[i]) return false;
  }
  return true;
}

static bool build_var(PlanBuild *o, Row *w, const Expr *e) {
  const Local *l = find_local(o, e->ref);
  w->kind = l ? RW_let : RW_var;
  w->ref = l ? (u32)(l - o->local.at) : e->ref;
  return !is_carried(o, e->ref);
}

static bool build_load(PlanBuild *o, Row *w, const Expr *e) {
  w->kind = RW_load;
  w->acc = access(o, e->ref, e->arg);
  if (!w->acc) return false;
  w->acc->loads++;
  w->copy = o->in_let && is_stored(o, w->acc->root);
  return true;
}

static Row *build(PlanBuild *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  if (e->lanes != 1 || e->dt == DT_str) return NULL;
  Row *w = NEW(o->r->a, Row);
  w->dt = e->dt;
  w->cls = row_class(e->dt);
  w->slot = o->plan->nslot++;
  if (e->dt == DT_i64 && e->kind != EX_const && !is_constant(o, id)) {
    Sum s = {0};
    if (linear(o, id, 1, &s)) {
      w->kind = RW_lin;
      w->lin = freeze(o, &s);
      return w;
    }
  }
  switch (e->kind) {
  case EX_const:
    w->kind = RW_const;
    row_put(w->cls, &w->cell, 0, e->imm);
    return w;
  case EX_var: return build_var(o, w, e) ? w : NULL;
  case EX_load: return build_load(o, w, e) ? w : NULL;
  case EX_op:
    w->kind = RW_op;
    w->op = e->op;
    w->sat = e->sat;
    return build_args(o, w, e) ? w : NULL;
  case EX_random: w->kind = RW_random; return build_args(o, w, e) ? w : NULL;
  default: return NULL;
  }
}

/* ---- statements ---- */

static bool is_var(PlanBuild *o, ExprId id, VarId v) {
  const Expr *e = prog_expr(o->p, id);
  return e->kind == EX_var && e->ref == v;
}

static bool is_element(PlanBuild *o, ExprId id, const Stmt *s) {
  const Expr *e = prog_expr(o->p, id);
  if (e->kind != EX_load || e->ref != s->buf) return false;
  for (u32 i = 0; i < s->nidx; i++)
    if (!ex_same(o->p, e->arg[i], s->idx[i])) return false;
  return true;
}

/* op(accumulator, x) or op(x, accumulator): which operand is the accumulator, or -1. */
static int accumulator(PlanBuild *o, const Stmt *s, const Expr *e) {
  if (e->kind != EX_op || e->narg != 2 || op_info[e->op].res != OR_same) return -1;
  for (int i = 0; i < 2; i++) {
    if (s->kind == ST_set ? is_var(o, e->arg[i], s->var) : is_element(o, e->arg[i], s)) return i;
  }
  return -1;
}

static bool is_factor(const Row *w) {
  if (w->dt != DT_f32) return false;
  return w->kind == RW_const || w->kind == RW_var || (w->kind == RW_load && w->acc->linear);
}

/* u + a * b in f32 needs no row */
static void find_dot(Step *st) {
  Row *w = st->value;
  if (st->dt != DT_f32 || st->op != OP_add || w->kind != RW_op || w->op != OP_mul) return;
  if (!is_factor(w->arg[0]) || !is_factor(w->arg[1])) return;
  st->a = w->arg[0];
  st->b = w->arg[1];
}

/* set u = op(u, x): x is a row, u folds over it in order. */
static bool plan_fold(PlanBuild *o, const Stmt *s, Step *st) {
  const Expr *e = prog_expr(o->p, s->a);
  int at = accumulator(o, s, e);
  if (at < 0) return false;
  st->kind = SP_fold_var;
  st->ref = s->var;
  st->dt = e->dt;
  st->op = e->op;
  st->swap = at == 1;
  st->value = build(o, e->arg[1 - at]); /* refuses other reads of u, which is carried */
  if (st->value) find_dot(st);
  return st->value != NULL;
}

/* The same for y[k] = op(y[k], x) where the index does not move with the loop. */
static bool plan_fold_mem(PlanBuild *o, const Stmt *s, Step *st) {
  const Expr *e = prog_expr(o->p, s->a);
  int at = accumulator(o, s, e);
  if (at < 0) return false;
  for (u32 i = 0; i < s->nidx; i++)
    if (!is_constant(o, s->idx[i])) return false;
  st->kind = SP_fold_mem;
  st->op = e->op;
  st->swap = at == 1;
  st->value = build(o, e->arg[1 - at]);
  return st->value != NULL;
}

static bool reads(const Row *w, BufId root) {
  return w->kind == RW_load && w->acc->root == root;
}

/* y = y + a * b in f32, where neither factor is memory of y */
static void find_mac(Step *st) {
  Row *w = st->value;
  if (st->dt != DT_f32 || w->kind != RW_op || w->op != OP_add) return;
  for (int i = 0; i < 2; i++) {
    Row *self = w->arg[i], *mul = w->arg[1 - i];
    if (self->kind != RW_load || self->acc != st->to || !st->to->linear) continue;
    if (mul->kind != RW_op || mul->op != OP_mul) continue;
    if (!is_factor(mul->arg[0]) || !is_factor(mul->arg[1])) continue;
    if (reads(mul->arg[0], st->to->root) || reads(mul->arg[1], st->to->root)) continue;
    st->a = mul->arg[0];
    st->b = mul->arg[1];
  }
}

static bool plan_store(PlanBuild *o, const Stmt *s, Step *st) {
  st->dt = prog_expr(o->p, s->a)->dt;
  st->to = access(o, s->buf, s->idx);
  if (!st->to) return false;
  st->to->stores++;
  if (plan_fold_mem(o, s, st)) return true;
  st->kind = SP_store;
  st->value = build(o, s->a);
  if (!st->value) return false;
  find_mac(st);
  return true;
}

static bool plan_stmt(PlanBuild *o, const Stmt *s) {
  Step st = {0};
  bool ok;
  o->in_let = s->kind != ST_store;
  if (s->kind == ST_store) {
    ok = plan_store(o, s, &st);
  } else {
    const Local *l = find_local(o, s->var);
    if (l) {
      st.kind = SP_let;
      st.ref = (u32)(l - o->local.at);
      st.value = build(o, s->a);
      ok = st.value != NULL;
    } else {
      ok = plan_fold(o, s, &st);
    }
  }
  *vec_push(o->r->a, &o->plan->steps) = st;
  return ok;
}

/* What the body declares, sets and stores; false when it holds anything else. */
static bool survey(PlanBuild *o) {
  Arena *a = o->r->a;
  for (StmtId id = o->loop->body; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    if (s->kind != ST_let && s->kind != ST_set && s->kind != ST_store) return false;
    if (prog_expr(o->p, s->a)->lanes != 1) return false;
    if (s->kind == ST_store) {
      BufId root = o->r->view[s->buf].place;
      if (!is_stored(o, root)) *vec_push(a, &o->stored) = root;
      continue;
    }
    Local *l = find_local(o, s->var);
    if (l) {
      l->again = true;
    } else if (s->kind == ST_let) {
      *vec_push(a, &o->local) = (Local){s->var, s->a, false};
    } else {
      if (prog_var(o->p, s->var)->sym >= 0 || is_carried(o, s->var)) return false;
      *vec_push(a, &o->carried) = s->var;
    }
  }
  return o->loop->body != 0;
}

/* Memory that is stored to: linear accesses are compared while running, others exclude company. A
 * fold keeps its accumulator out of memory, so nothing else may look at it. */
static bool check_memory(PlanBuild *o) {
  Plan *plan = o->plan;
  for (u32 i = 0; i < plan->acc.n; i++) {
    Access *a = plan->acc.at[i];
    if (!a->stores) continue;
    if (!a->linear && (a->loads || a->stores > 1)) return false;
    for (u32 k = 0; k < plan->acc.n; k++) {
      const Access *b = plan->acc.at[k];
      if (k == i || b->root != a->root) continue;
      if (!a->linear || !b->linear) return false;
      plan->shared = true;
    }
  }
  for (u32 i = 0; i < plan->steps.n; i++) {
    const Step *st = &plan->steps.at[i];
    if (st->kind == SP_fold_mem && (st->to->loads || st->to->stores > 1)) return false;
  }
  return true;
}

static Plan *make_plan(Run *r, StmtId id) {
  PlanBuild o = {.r = r, .p = r->p, .loop = prog_stmt(r->p, id), .access = map_new(r->a)};
  if (o.loop->step >= LIN_MAX || !survey(&o)) return NULL;
  if (!r->range) r->range = prog_ranges(r->p, r->env, r->a);
  o.plan = NEW(r->a, Plan);
  o.plan->var = o.loop->var;
  o.plan->step = o.loop->step;
  o.plan->nlet = o.local.n;
  o.plan->let = NEWS(r->a, RowVal, o.local.n);
  for (StmtId s = o.loop->body; s; s = prog_stmt(r->p, s)->next)
    if (!plan_stmt(&o, prog_stmt(r->p, s))) return NULL;
  if (!check_memory(&o)) return NULL;
  if (o.plan->nslot > r->npool) {
    r->npool = o.plan->nslot + 8;
    r->pool = arena_array(r->a, r->npool, ROW * 8);
  }
  return o.plan;
}

/* ---- bounds ---- */

/* linear / constant */
static bool side(PlanBuild *o, ExprId id, Lin *x, i64 *div) {
  const Expr *e = prog_expr(o->p, id);
  Sum s = {0};
  *div = 1;
  if (e->kind == EX_op && e->op == OP_div && ex_is_int(o->p, e->arg[1], div) && *div > 0)
    id = e->arg[0];
  else
    *div = 1;
  if (!linear(o, id, 1, &s) || o->plan->atom.n) return false;
  *x = freeze(o, &s);
  return true;
}

static Bound make_bound(PlanBuild *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  Bound b = {.op = OP_add, .e = id};
  bool two = e->kind == EX_op && (e->op == OP_max || e->op == OP_min);
  if (two) b.op = e->op;
  bool ok = side(o, two ? e->arg[0] : id, &b.x[0], &b.div[0]);
  if (ok && two) ok = side(o, e->arg[1], &b.x[1], &b.div[1]);
  if (!ok) b.op = OP_SCALARS;
  return b;
}

Loop *loop_new(Run *r, StmtId id) {
  Loop *l = NEW(r->a, Loop);
  for (int i = 0; i < 2; i++) {
    Plan none = {0}; /* collects what would have to be evaluated beforehand: nothing may */
    PlanBuild o = {
        .r = r, .p = r->p, .loop = prog_stmt(r->p, id), .plan = &none, .access = map_new(r->a)};
    *(i ? &l->hi : &l->lo) = make_bound(&o, i ? o.loop->b : o.loop->a);
  }
  l->plan = make_plan(r, id);
  return l;
}
