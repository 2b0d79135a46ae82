/* vm_panel.c: the reduction of a tile becomes one instruction.
 *
 * In: nested loops with the role reduce; the innermost body loads vectors and adds products of two
 * operands to accumulators, in loops with the roles row and panel. All loops are as lowering wrote
 * them, also the unrolled ones. Out: the instruction `panel`, or nothing if the products are of
 * another kind. A register or variable that the body loads stands for its memory reference. The
 * factors of the loop variables in a reference are its strides. If both operands depend on the
 * panel, as in depthwise convolutions, each accumulator gets an instruction. */
#include "back/vm/vm_build.h"

/* tile.c keeps FMA panels with a multiple of PANEL_LANES lanes in CPU registers. */
enum { PANEL_LOOPS = 3, PANEL_NAMES = 16, PANEL_LANES = 8, PANEL_DEPTH = 4 };

/* An index as a sum of terms, with the strides between rows and panels of the tile. */
typedef struct PanelIndex {
  Affine at; /* row 0, panel 0 */
  i64 row, panel;
} PanelIndex;

/* A memory reference: a vector, or one element broadcast to all lanes. */
typedef struct PanelRef {
  BufId buf;
  PanelIndex at;
  bool one;  /* splat */
  bool quad; /* EX_quad */
} PanelRef;

/* Reference that a register or variable was loaded from. */
typedef struct PanelName {
  BufId buf;     /* register buffer; 0: a variable */
  VarId var;     /* the variable */
  PanelIndex at; /* index in the register buffer */
  PanelRef ref;
} PanelName;

typedef struct PanelMatch {
  VmBuild *b;
  Prog *p;
  const Stmt *loop[PANEL_LOOPS];
  u32 nloop;
  StmtId first, body;            /* the outermost loop; the body of the innermost */
  const Stmt *open[PANEL_DEPTH]; /* loops over rows and panels around the current statement */
  u32 nopen;
  i64 rows, panels;
  PanelName name[PANEL_NAMES];
  u32 nname;
  const Stmt *sum;                 /* the statement that adds products */
  bool sum_in_rows, sum_in_panels; /* loops around it */
  PanelIndex acc;
  PanelRef x, y;
  u32 kind;
} PanelMatch;

/* Does a term of an index change inside the body, other than with the loops over rows and panels?
 */
static bool varies(PanelMatch *o, const AffTerm *t) {
  const Stmt *s;
  for (u32 i = 0; i < o->nname; i++)
    if (!o->name[i].buf && ex_mentions(o->p, t->e, o->name[i].var)) return true;
  if (t->var) return false;
  for (StmtVisit w = prog_visit(o->p, prog_stmt(o->p, o->first)->body); (s = prog_next(&w));)
    if (s->kind == ST_for && ex_mentions(o->p, t->e, s->var)) return true;
  if (ex_mentions(o->p, t->e, prog_stmt(o->p, o->first)->var)) return true;
  for (ExprVisit w = ex_visit(o->p, t->e); ex_next(&w);)
    if (w.e->kind == EX_load && prog_buf(o->p, w.e->ref)->space == BS_reg) return true;
  return false;
}

/* Index of an element, in units of elements. */
static bool index_of(PanelMatch *o, BufId buf, const ExprId *idx, PanelIndex *to) {
  Affine all;
  i64 unit = prog_buf(o->p, buf)->lanes;
  if (!flat_of(o->b, buf, idx, &all)) return false;
  *to = (PanelIndex){.at = {.k = all.k / unit}};
  for (u32 i = 0; i < all.n; i++) {
    const Stmt *loop = NULL;
    i64 coef = all.t[i].coef / unit;
    if (varies(o, &all.t[i])) return false;
    for (u32 k = 0; k < o->nopen; k++)
      if (o->open[k]->var == all.t[i].var) loop = o->open[k];
    if (loop && loop->role == RO_row)
      to->row += coef;
    else if (loop)
      to->panel += coef;
    else
      to->at.t[to->at.n++] = (AffTerm){all.t[i].e, all.t[i].var, coef};
  }
  return true;
}

static bool same_index(const PanelIndex *x, const PanelIndex *y) {
  i64 by;
  return x->row == y->row && x->panel == y->panel && affine_differ_by(&x->at, &y->at, &by) && !by;
}

static const PanelName *find_name(PanelMatch *o, BufId buf, VarId var, const PanelIndex *at) {
  for (u32 i = 0; i < o->nname; i++)
    if (o->name[i].buf == buf && o->name[i].var == var && (!buf || same_index(&o->name[i].at, at)))
      return &o->name[i];
  return NULL;
}

static bool resolve(PanelMatch *o, ExprId id, PanelRef *to) {
  const Expr *e = prog_expr(o->p, id);
  const PanelName *n;
  PanelIndex at;
  switch (e->kind) {
  case EX_var:
    n = find_name(o, 0, e->ref, NULL);
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
    if (!index_of(o, e->ref, e->arg, &at)) return false;
    if (prog_buf(o->p, e->ref)->space == BS_reg) {
      n = find_name(o, e->ref, 0, &at);
      if (n) *to = n->ref;
      return n != NULL;
    }
    if (o->b->scalar[e->ref].reg) return false;
    *to = (PanelRef){.buf = e->ref, .at = at, .one = e->lanes == 1};
    return true;
  default: return false;
  }
}

static bool add_name(PanelMatch *o, BufId buf, VarId var, const PanelIndex *at, ExprId value) {
  if (o->nname == PANEL_NAMES) return false;
  for (u32 i = 0; i < o->nname; i++) /* a second store may be to an element of the first */
    if (o->name[i].buf == buf && o->name[i].var == var) return false;
  PanelName *n = &o->name[o->nname];
  *n = (PanelName){.buf = buf, .var = var};
  if (at) n->at = *at;
  o->nname += resolve(o, value, &n->ref);
  return n < &o->name[o->nname];
}

/* Operands of c + a * b in the order of fma(a, b, c). */
static bool product(PanelMatch *o, const Expr *e, ExprId *arg) {
  if (e->kind != EX_op) return false;
  for (u32 i = 0; i < 3 && i < e->narg; i++) arg[i] = e->arg[i];
  switch (e->op) {
  case OP_fma: o->kind = VP_fma_b; return e->dt == DT_f32;
  case OP_dot_i8x4: o->kind = VP_dot_i8x4_b; return true;
  case OP_dot_i16x2: o->kind = VP_dot_i16x2_b; return true;
  case OP_add: break;
  default: return false;
  }
  const Expr *m = prog_expr(o->p, e->arg[1]);
  if (e->dt != DT_f32 || m->kind != EX_op || m->op != OP_mul) return false;
  arg[2] = e->arg[0];
  arg[0] = m->arg[0];
  arg[1] = m->arg[1];
  o->kind = VP_mac_b;
  return true;
}

static bool add_sum(PanelMatch *o, const Stmt *s, const PanelIndex *at) {
  const Expr *e = prog_expr(o->p, s->a);
  ExprId arg[3];
  PanelIndex of;
  if (o->sum || !product(o, e, arg)) return false;
  const Expr *c = prog_expr(o->p, arg[2]);
  if (c->kind != EX_load || c->ref != s->buf || !index_of(o, c->ref, c->arg, &of)) return false;
  if (!same_index(&of, at) || !resolve(o, arg[0], &o->x) || !resolve(o, arg[1], &o->y))
    return false;
  if (o->y.one && o->kind < VP_dot_i8x4_b) {
    PanelRef t = o->x;
    o->x = o->y;
    o->y = t;
  }
  o->sum = s;
  o->acc = *at;
  for (u32 i = 0; i < o->nopen; i++) {
    o->sum_in_rows = o->sum_in_rows || o->open[i]->role == RO_row;
    o->sum_in_panels = o->sum_in_panels || o->open[i]->role == RO_panel;
  }
  return true;
}

static bool match_list(PanelMatch *o, StmtId first);

/* A loop over the rows or panels of the tile. */
static bool match_loop(PanelMatch *o, const Stmt *s) {
  i64 lo, hi, *n = s->role == RO_row ? &o->rows : &o->panels;
  if (!(s->flags & LF_unroll) || (s->role != RO_row && s->role != RO_panel)) return false;
  if (!ex_is_int(o->p, s->a, &lo) || !ex_is_int(o->p, s->b, &hi) || lo || s->step != 1)
    return false;
  if (o->nopen == PANEL_DEPTH || hi < 1 || hi > VM_TILE || (*n && *n != hi)) return false;
  for (u32 i = 0; i < o->nopen; i++)
    if (o->open[i]->role == s->role) return false;
  *n = hi;
  o->open[o->nopen++] = s;
  bool fits = match_list(o, s->body);
  o->nopen--;
  return fits;
}

static bool match_list(PanelMatch *o, StmtId first) {
  PanelIndex at;
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) {
    const Stmt *s = prog_stmt(o->p, id);
    bool fits = s->kind == ST_fence || s->kind == ST_prefetch;
    if (s->kind == ST_for) fits = match_loop(o, s);
    if (s->kind == ST_let) fits = add_name(o, 0, s->var, NULL, s->a);
    if (s->kind == ST_store && prog_buf(o->p, s->buf)->space == BS_reg &&
        index_of(o, s->buf, s->idx, &at))
      fits = add_sum(o, s, &at) || add_name(o, s->buf, 0, &at, s->a);
    if (!fits) return false;
  }
  return true;
}

/* Are the operands of a kind that the instruction has? */
static bool operands_fit(PanelMatch *o) {
  DType dx = prog_buf(o->p, o->x.buf)->dt, dy = prog_buf(o->p, o->y.buf)->dt;
  u32 lanes = prog_buf(o->p, o->sum->buf)->lanes;
  if (o->y.one || o->y.quad || dtype_bytes(dy) != 4 || vm_class(dy) == VC_l || lanes % 2)
    return false;
  if (o->kind >= VP_dot_i8x4_b)
    return o->x.one && o->x.quad && dtype_bytes(dx) == (o->kind == VP_dot_i8x4_b ? 1 : 2);
  if (dx != DT_f32 || dy != DT_f32 || o->x.quad) return false;
  if (!o->x.one) o->kind++;
  return true;
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
  for (; id && prog_stmt(o->p, id)->role == RO_reduce; id = only(o->p, o->body)) {
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

/* Does every row and panel have its own accumulator, in a buffer that is not an operand? The
 * instruction sums one accumulator after the other. */
static bool sums_apart(PanelMatch *o) {
  i64 at = o->acc.at.k, row = o->acc.row, panel = o->acc.panel, n = 1;
  i64 rows = o->rows - 1, panels = o->panels - 1;
  const Buf *b = prog_buf(o->p, o->sum->buf);
  if ((o->rows > 1 && !o->sum_in_rows) || (o->panels > 1 && !o->sum_in_panels)) return false;
  if (row < 0 || panel < 0 || (rows && !row) || (panels && !panel)) return false;
  if (rows && panels && row < panel * o->panels && panel < row * o->rows) return false;
  for (u32 i = 0; i < b->rank; i++) n *= b->dim[i];
  if (at < 0 || row > n || panel > n || at + row * rows + panel * panels >= n) return false;
  for (u32 i = 0; i < o->nname; i++)
    if (o->name[i].buf == o->sum->buf) return false;
  return true;
}

/* Taps of a window, which would be written out otherwise. Is the instruction faster? */
static bool taps_fit(const PanelMatch *o) {
  bool unrolled = false;
  for (u32 i = 0; i < o->nloop; i++) unrolled |= (o->loop[i]->flags & LF_unroll) != 0;
  if (!unrolled || o->x.one) return true;
  return o->kind == VP_fma_m && prog_buf(o->p, o->sum->buf)->lanes % PANEL_LANES == 0;
}

/* Registers that only stand for a load must not be read elsewhere. */
static bool names_end_here(PanelMatch *o) {
  for (u32 i = 0; i < o->nname; i++) {
    BufId buf = o->name[i].buf;
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

/* Start and strides of an operand at a row and panel of the tile; false: out of range. */
static bool begin(PanelMatch *o, const PanelRef *r, i64 row, i64 panel, i64 next, u32 *w) {
  Affine a = r->at.at;
  i64 step[3] = {0, 0, 0};
  a.k += r->at.row * row + r->at.panel * panel;
  for (u32 i = 0; i < o->nloop; i++) {
    i64 lo = 0, coef = affine_coef(&a, o->loop[i]->var);
    ex_is_int(o->p, o->loop[i]->a, &lo);
    a.k += coef * lo;
    step[PANEL_LOOPS - o->nloop + i] = coef * o->loop[i]->step;
    for (u32 k = 0; k < a.n; k++)
      if (a.t[k].var == o->loop[i]->var) a.t[k].coef = 0;
  }
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

static VmVal trip_count(VmBuild *b, const Stmt *s) {
  i64 lo = 0, hi;
  ex_is_int(b->p, s->a, &lo);
  if (ex_is_int(b->p, s->b, &hi))
    return vb_integer(b, hi > lo ? (hi - lo + s->step - 1) / s->step : 0);
  VmVal to = vb_compile(b, s->b);
  return lo ? emit_int(b, VM_sub_l, to, vb_integer(b, lo)) : to;
}

/* Writes the instruction for rows x panels accumulators, from the given ones on. */
static bool write_panel(PanelMatch *o, i64 row, i64 panel, u32 rows, u32 panels) {
  VmBuild *b = o->b;
  u32 w[21], n = 3, lanes = prog_buf(o->p, o->sum->buf)->lanes;
  i64 at = o->acc.at.k + o->acc.row * row + o->acc.panel * panel;
  if (!begin(o, &o->x, row, panel, rows > 1 ? o->x.at.row : 0, w + 7) ||
      !begin(o, &o->y, row, panel, panels > 1 ? o->y.at.panel : 0, w + 14))
    return false;
  w[0] = part_reg(b, b->bufreg[o->sum->buf].reg, (u32)at * (lanes / 2), VC_w, lanes);
  w[1] = rows;
  w[2] = panels;
  w[3] = o->kind;
  for (u32 i = o->nloop; i-- > 0;) w[4 + --n] = trip_count(b, o->loop[i]).reg;
  while (n) w[4 + --n] = vb_integer(b, 1).reg;
  emit_effect(b, VM_panel, lanes, w, 21);
  return true;
}

bool vm_panel_loop(VmBuild *b, StmtId id) {
  PanelMatch *o = NEW(b->a, PanelMatch);
  o->b = b;
  o->p = b->p;
  o->first = id;
  if (!find_loops(o, id) || !match_list(o, o->body) || !o->sum || !operands_fit(o)) return false;
  if (!taps_fit(o)) return false;
  if (!b->bufreg[o->sum->buf].reg || o->acc.at.n || !names_end_here(o)) return false;
  if (!o->rows) o->rows = 1;
  if (!o->panels) o->panels = 1;
  if (!sums_apart(o)) return false;
  bool in_rows = o->panels == 1 || !o->x.at.panel, in_panels = o->rows == 1 || !o->y.at.row;
  bool dense = (o->rows == 1 || o->acc.row == o->panels) && (o->panels == 1 || o->acc.panel == 1);
  if (in_rows && in_panels && dense) return write_panel(o, 0, 0, (u32)o->rows, (u32)o->panels);
  if (prog_buf(b->p, o->sum->buf)->lanes % PANEL_LANES) return false;
  for (i64 i = 0; i < o->rows; i++)
    for (i64 j = 0; j < o->panels; j++)
      if (!write_panel(o, i, j, 1, 1)) return false;
  return true;
}
