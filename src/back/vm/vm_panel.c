/* vm_panel.c: loops that compute a tile of products become one instruction.
 *
 * In: up to three nested loops whose innermost body, unrolled, adds products of two operands to
 * accumulators in registers: rows x columns, one operand per row and one per column. Out: the
 * instruction `panel`, or nothing. Method: a register or variable that the body loads stands for
 * its memory reference, so a product is two references. The accumulators form a grid if these have
 * one stride between rows and one between columns. If an iteration adds to each accumulator several
 * times (turns), the turns become another loop. */
#include "back/vm/vm_build.h"

enum { PANEL_LOOPS = 3, MAX_NAMES = 160, MAX_SUMS = 512 };

/* A memory reference: a vector, or one element broadcast to all lanes. */
typedef struct PanelRef {
  BufId buf;
  Affine at;
  bool one;  /* splat */
  bool quad; /* EX_quad */
} PanelRef;

/* Reference that a register or variable was loaded from. */
typedef struct PanelName {
  BufId buf; /* register buffer; 0: a variable */
  u32 at;    /* index in it */
  PanelRef ref;
} PanelName;

typedef struct PanelSum {
  u32 at, turn; /* register; number of earlier additions */
  PanelRef x, y;
} PanelSum;

typedef struct PanelMatch {
  VmBuild *b;
  Prog *p;
  const Stmt *loop[PANEL_LOOPS];
  u32 nloop;
  StmtId body;
  BufId acc;
  u32 lanes, kind;
  VEC(PanelName) name;
  VEC(PanelSum) sum;
  u32 turns, rows, cols;
  i64 dx, dy, tx, ty; /* strides: rows of x, columns of y, turns of each */
} PanelMatch;

static bool element_of(PanelMatch *o, BufId buf, const ExprId *idx, u32 *at) {
  const Buf *bp = prog_buf(o->p, buf);
  i64 n = 0, x;
  if (!o->b->bufreg[buf].reg) return false;
  for (u32 i = 0; i < bp->rank; i++) {
    if (!ex_is_int(o->p, idx[i], &x)) return false;
    n = n * bp->dim[i] + x;
  }
  *at = (u32)n;
  return true;
}

static const PanelName *find_name(PanelMatch *o, BufId buf, u32 at) {
  for (u32 i = 0; i < o->name.n; i++)
    if (o->name.at[i].buf == buf && o->name.at[i].at == at) return &o->name.at[i];
  return NULL;
}

static bool resolve(PanelMatch *o, ExprId id, PanelRef *to) {
  const Expr *e = prog_expr(o->p, id);
  const PanelName *n;
  u32 at;
  switch (e->kind) {
  case EX_var:
    n = find_name(o, 0, e->ref);
    if (n) *to = n->ref;
    return n != NULL;
  case EX_splat:
    if (!resolve(o, e->arg[0], to)) return false;
    to->one = true;
    return true;
  case EX_quad:
    if (!resolve(o, e->arg[0], to)) return false;
    to->quad = true;
    return true;
  case EX_load:
    if (prog_buf(o->p, e->ref)->space == BS_reg) {
      n = element_of(o, e->ref, e->arg, &at) ? find_name(o, e->ref, at) : NULL;
      if (n) *to = n->ref;
      return n != NULL;
    }
    if (o->b->scalar[e->ref].reg) return false;
    *to = (PanelRef){.buf = e->ref, .one = e->lanes == 1};
    return flat_of(o->b, e->ref, e->arg, &to->at);
  default: return false;
  }
}

static bool add_name(PanelMatch *o, BufId buf, u32 at, ExprId value) {
  PanelRef r;
  if (!resolve(o, value, &r)) return false;
  PanelName *n = (PanelName *)find_name(o, buf, at);
  if (!n && o->name.n == MAX_NAMES) return false;
  if (!n) n = vec_push(o->b->a, &o->name);
  *n = (PanelName){buf, at, r};
  return true;
}

/* Operands of c + a * b in the order of fma(a, b, c). */
static bool product(PanelMatch *o, const Expr *e, ExprId *arg, u32 *kind) {
  if (e->kind != EX_op) return false;
  for (u32 i = 0; i < 3 && i < e->narg; i++) arg[i] = e->arg[i];
  switch (e->op) {
  case OP_fma: *kind = VP_fma_b; return e->dt == DT_f32;
  case OP_dot_i8x4: *kind = VP_dot_i8x4_b; return true;
  case OP_dot_i16x2: *kind = VP_dot_i16x2_b; return true;
  case OP_add: break;
  default: return false;
  }
  const Expr *m = prog_expr(o->p, e->arg[1]);
  if (e->dt != DT_f32 || m->kind != EX_op || m->op != OP_mul) return false;
  arg[2] = e->arg[0];
  arg[0] = m->arg[0];
  arg[1] = m->arg[1];
  *kind = VP_mac_b;
  return true;
}

static bool add_sum(PanelMatch *o, const Stmt *s) {
  const Expr *e = prog_expr(o->p, s->a);
  ExprId arg[3];
  u32 kind, at, of;
  if (!element_of(o, s->buf, s->idx, &at) || !product(o, e, arg, &kind)) return false;
  const Expr *c = prog_expr(o->p, arg[2]);
  if (c->kind != EX_load || c->ref != s->buf || !element_of(o, c->ref, c->arg, &of) || of != at)
    return false;
  if (o->sum.n == MAX_SUMS || (o->sum.n && (o->acc != s->buf || o->kind != kind))) return false;
  PanelSum sum = {.at = at};
  if (!resolve(o, arg[0], &sum.x) || !resolve(o, arg[1], &sum.y)) return false;
  if (sum.y.one && kind < VP_dot_i8x4_b) {
    PanelRef t = sum.x;
    sum.x = sum.y;
    sum.y = t;
  }
  if (sum.y.one || sum.y.quad) return false;
  for (u32 i = 0; i < o->sum.n; i++) sum.turn += o->sum.at[i].at == at;
  o->acc = s->buf;
  o->kind = kind;
  o->lanes = e->lanes;
  *vec_push(o->b->a, &o->sum) = sum;
  return true;
}

static bool match_stmt(PanelMatch *o, const Stmt *s) {
  u32 at;
  switch (s->kind) {
  case ST_fence:
  case ST_prefetch: return true;
  case ST_let: return add_name(o, 0, s->var, s->a);
  case ST_store:
    if (prog_buf(o->p, s->buf)->space != BS_reg) return false;
    if (add_sum(o, s)) return true;
    return element_of(o, s->buf, s->idx, &at) && add_name(o, s->buf, at, s->a);
  default: return false;
  }
}

/* ---- the grid ---- */

/* Is y = x + *d? Sets *d if `first`. */
static bool follows(const PanelMatch *o, const PanelRef *x, const PanelRef *y, bool first, i64 by,
                    i64 *d) {
  if (prog_root(o->p, x->buf) != prog_root(o->p, y->buf)) return false;
  if (x->one != y->one || x->quad != y->quad) return false;
  i64 k;
  if (!affine_differ_by(&x->at, &y->at, &k)) return false;
  if (first) *d = k;
  return k == *d * by;
}

static const PanelSum *sum_at(const PanelMatch *o, u32 at, u32 turn) {
  for (u32 i = 0; i < o->sum.n; i++)
    if (o->sum.at[i].at == at && o->sum.at[i].turn == turn) return &o->sum.at[i];
  return NULL;
}

static bool match_grid(PanelMatch *o, u32 base) {
  const PanelSum *zero = sum_at(o, base, 0);
  u32 all = o->sum.n / o->turns;
  i64 none;
  if (!all) return false;
  o->cols = all;
  for (u32 i = 1; i < all && o->cols == all; i++) {
    const PanelSum *s = sum_at(o, base + i, 0);
    if (!s) return false;
    if (!follows(o, &zero->x, &s->x, true, 1, &none) || none) o->cols = i;
  }
  o->rows = all / o->cols;
  if (o->rows * o->cols != all || o->rows > VM_TILE || o->cols > VM_TILE) return false;
  for (u32 t = 0; t < o->turns; t++)
    for (u32 i = 0; i < all; i++) {
      u32 r = i / o->cols, c = i % o->cols;
      const PanelSum *s = sum_at(o, base + i, t), *left = sum_at(o, base, t);
      if (!s || !left) return false;
      bool one = !t && i == o->cols, two = !t && i == 1 && o->cols > 1;
      if (!follows(o, &left->x, &s->x, one, r, &o->dx)) return false;
      if (!follows(o, &left->y, &s->y, two, c, &o->dy)) return false;
      if (i) continue;
      if (!follows(o, &zero->x, &s->x, t == 1, t, &o->tx)) return false;
      if (!follows(o, &zero->y, &s->y, t == 1, t, &o->ty)) return false;
    }
  return true;
}

static bool find_grid(PanelMatch *o, u32 *base) {
  *base = UINT32_MAX;
  o->turns = 1;
  for (u32 i = 0; i < o->sum.n; i++) {
    if (o->sum.at[i].at < *base) *base = o->sum.at[i].at;
    if (o->sum.at[i].turn >= o->turns) o->turns = o->sum.at[i].turn + 1;
  }
  if (!o->sum.n || o->sum.n % o->turns || (o->turns > 1 && o->nloop == PANEL_LOOPS)) return false;
  const PanelSum *s = sum_at(o, *base, 0);
  const PanelRef *x = &s->x, *y = &s->y;
  DType dx = prog_buf(o->p, x->buf)->dt, dy = prog_buf(o->p, y->buf)->dt;
  bool bytes = o->kind == VP_dot_i8x4_b || o->kind == VP_dot_i16x2_b;
  if (dtype_bytes(dy) != 4 || vm_class(dy) == VC_l || o->lanes % 2) return false;
  if (bytes) {
    if (!x->one || !x->quad || dtype_bytes(dx) != (o->kind == VP_dot_i8x4_b ? 1 : 2)) return false;
  } else if (dx != DT_f32 || dy != DT_f32 || x->quad) {
    return false;
  } else if (!x->one) {
    o->kind++;
  }
  return match_grid(o, *base);
}

/* ---- loops ---- */

/* The only statement of a list, ignoring fences and hints; 0: several. */
static StmtId only(Prog *p, StmtId first) {
  StmtId found = 0;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    if (prog_stmt(p, id)->kind == ST_fence || prog_stmt(p, id)->kind == ST_prefetch) continue;
    if (found) return 0;
    found = id;
  }
  return found;
}

static bool find_loops(PanelMatch *o, StmtId id) {
  i64 lo;
  for (; id && prog_stmt(o->p, id)->kind == ST_for; id = only(o->p, o->body)) {
    const Stmt *s = prog_stmt(o->p, id);
    if (o->nloop == PANEL_LOOPS || !ex_is_int(o->p, s->a, &lo)) return false;
    if (s->step != 1 && !ex_is_int(o->p, s->b, &lo)) return false;
    for (u32 i = 0; i < o->nloop; i++)
      if (ex_mentions(o->p, s->b, o->loop[i]->var)) return false;
    o->loop[o->nloop++] = s;
    o->body = s->body;
  }
  return true;
}

/* Registers that only stand for a load must not be read elsewhere. */
static bool names_end_here(PanelMatch *o) {
  for (u32 i = 0; i < o->name.n; i++) {
    BufId buf = o->name.at[i].buf;
    u32 reads = 0;
    const Stmt *s;
    if (!buf) continue;
    for (StmtVisit w = prog_visit(o->p, o->body); (s = prog_next(&w));)
      for (ExprVisit x = ex_visit_stmt(o->p, s); ex_next(&x);)
        reads += x.e->kind == EX_load && x.e->ref == buf;
    if (reads != o->b->reads[buf]) return false;
  }
  return true;
}

/* Start and strides of the loops; false: out of range. */
static bool begin(PanelMatch *o, const PanelRef *r, i64 turn, i64 next, u32 *w) {
  Affine a = r->at;
  i64 step[3] = {0, 0, 0};
  u32 nloop = o->nloop + (o->turns > 1);
  for (u32 i = 0; i < o->nloop; i++) {
    i64 lo = 0, coef = affine_coef(&a, o->loop[i]->var);
    ex_is_int(o->p, o->loop[i]->a, &lo);
    a.k += coef * lo;
    step[PANEL_LOOPS - nloop + i] = coef * o->loop[i]->step;
    for (u32 k = 0; k < a.n; k++)
      if (a.t[k].var == o->loop[i]->var) a.t[k].coef = 0;
  }
  if (o->turns > 1) step[2] = turn;
  VmAddr at = addr_affine(o->b, r->buf, &a);
  w[0] = at.buf;
  w[1] = at.at.reg;
  w[2] = (u32)(i32)at.k;
  for (u32 i = 0; i < 3; i++) {
    if (step[i] != (i32)step[i]) return false;
    w[3 + i] = (u32)(i32)step[i];
  }
  w[6] = (u32)(i32)next;
  return next == (i32)next;
}

static VmVal trips(VmBuild *b, const Stmt *s) {
  i64 lo = 0, hi;
  ex_is_int(b->p, s->a, &lo);
  if (ex_is_int(b->p, s->b, &hi))
    return integer(b, hi > lo ? (hi - lo + s->step - 1) / s->step : 0);
  VmVal to = compile(b, s->b);
  if (!lo) return to;
  return emit_pure(b, VM_sub_l, 1, VC_l, to.avail, (u32[]){to.reg, integer(b, lo).reg}, 2);
}

bool vm_panel_loop(VmBuild *b, StmtId id) {
  PanelMatch o = {.b = b, .p = b->p};
  u32 base, w[21], n = 3;
  if (!find_loops(&o, id)) return false;
  for (StmtId s = o.body; s; s = prog_stmt(b->p, s)->next)
    if (!match_stmt(&o, prog_stmt(b->p, s))) return false;
  if (!find_grid(&o, &base) || !names_end_here(&o)) return false;
  const PanelSum *first = sum_at(&o, base, 0);
  if (!begin(&o, &first->x, o.tx, o.rows > 1 ? o.dx : 0, w + 7) ||
      !begin(&o, &first->y, o.ty, o.cols > 1 ? o.dy : 0, w + 14))
    return false;
  w[0] = part_reg(b, b->bufreg[o.acc].reg, base * (o.lanes / 2), VC_w, o.lanes);
  w[1] = o.rows;
  w[2] = o.cols;
  w[3] = o.kind;
  if (o.turns > 1) w[4 + --n] = integer(b, o.turns).reg;
  for (u32 i = o.nloop; i-- > 0;) w[4 + --n] = trips(b, o.loop[i]).reg;
  while (n) w[4 + --n] = integer(b, 1).reg;
  emit_effect(b, VM_panel, o.lanes, w, 21);
  return true;
}
