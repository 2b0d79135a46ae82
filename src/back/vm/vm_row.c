/* vm_row.c: loops over elements become rows.
 *
 * In: a `for` whose body is a list of scalar let, set and store. Out: a loop that processes as many
 * iterations at once as a row has lanes, statement by statement; or nothing. This is valid if no
 * iteration reads or writes what another one writes. An outer variable may only be the accumulator
 * of one reduction and must not be read otherwise. Memory that is stored to may be accessed
 * elsewhere in the body only at the same element: the offset is the same affine sum, which changes
 * with the loop. Other loops run one iteration at a time. */
#include "back/vm/vm_build.h"

#include <string.h>
#include "ir/prog/prog_mem.h"

bool flat_of(VmBuild *b, BufId id, const ExprId *idx, Affine *to) {
  const Buf *buf = prog_buf(b->p, id);
  i64 stride = buf->lanes;
  *to = (Affine){0};
  for (u32 i = buf->rank; i-- > 0;) {
    Affine a;
    if (!affine_of(b->p, idx[i], &a)) return false;
    to->k += a.k * stride;
    for (u32 k = 0; k < a.n; k++) {
      u32 at = 0;
      if (!a.t[k].var) return false;
      while (at < to->n && to->t[at].var != a.t[k].var) at++;
      if (at == AFFINE_TERMS) return false;
      if (at == to->n) to->t[to->n++] = (AffTerm){a.t[k].e, a.t[k].var, 0};
      to->t[at].coef += a.t[k].coef * stride;
    }
    if (i && !dim_is_const(buf->dim[i])) return false;
    stride *= i && buf->dim[i] ? buf->dim[i] : 1;
  }
  return true;
}

/* ---- analysis ---- */

enum { MAX_ACCESSES = 64, MAX_LOCALS = 64 };

typedef struct RowAccess {
  BufId buf;
  const ExprId *idx;
  const Stmt *store; /* NULL: a load */
} RowAccess;

typedef struct RowAnalysis {
  VmBuild *b;
  const Stmt *loop;
  RowAccess acc[MAX_ACCESSES];
  u32 nacc;
  VarId local[MAX_LOCALS], carried[MAX_LOCALS];
  u32 nlocal, ncarried;
} RowAnalysis;

static bool has_var(const VarId *at, u32 n, VarId v) {
  while (n && at[n - 1] != v) n--;
  return n != 0;
}

static bool look_access(RowAnalysis *o, BufId buf, const ExprId *idx, const Stmt *store) {
  if (o->nacc == MAX_ACCESSES || prog_buf(o->b->p, buf)->lanes != 1) return false;
  if (o->b->scalar[buf].reg) return !store; /* scalars are never stored in such loops */
  if (o->b->buf[prog_root(o->b->p, buf)] == UINT32_MAX) return false; /* register buffer */
  o->acc[o->nacc++] = (RowAccess){buf, idx, store};
  return true;
}

static bool look_expr(RowAnalysis *o, ExprVisit w) {
  while (ex_next(&w)) {
    if (w.e->lanes != 1 || w.e->kind == EX_hreduce || w.e->kind == EX_quad ||
        w.e->kind == EX_shuffle)
      return false;
    if (w.e->kind == EX_load && !look_access(o, w.e->ref, w.e->arg, NULL)) return false;
  }
  return true;
}

static bool look_stmt(RowAnalysis *o, const Stmt *s) {
  Prog *p = o->b->p;
  if (s->kind == ST_fence || s->kind == ST_prefetch) return true;
  if (s->kind != ST_let && s->kind != ST_set && s->kind != ST_store) return false;
  if (!look_expr(o, ex_visit_stmt(p, s))) return false;
  if (s->kind == ST_store) return look_access(o, s->buf, s->idx, s);
  if (prog_var(p, s->var)->sym >= 0) return false;
  if (s->kind == ST_let) {
    if (o->nlocal == MAX_LOCALS) return false;
    o->local[o->nlocal++] = s->var;
    return true;
  }
  if (has_var(o->local, o->nlocal, s->var)) return true;
  if (has_var(o->carried, o->ncarried, s->var) || o->ncarried == MAX_LOCALS) return false;
  o->carried[o->ncarried++] = s->var;
  return true;
}

/* Do the expressions load, or depend on a variable of the body or on `loop` (0: none)? */
static bool varies(RowAnalysis *o, const ExprId *e, u32 n, VarId loop) {
  for (u32 i = 0; i < n; i++)
    for (ExprVisit w = ex_visit(o->b->p, e[i]); ex_next(&w);)
      if (w.e->kind == EX_load ||
          (w.e->kind == EX_var && (w.e->ref == loop || has_var(o->local, o->nlocal, w.e->ref))))
        return true;
  return false;
}

/* Do both access the same element in every iteration, and another element in every other iteration?
 */
static bool same_element(RowAnalysis *o, const RowAccess *x, const RowAccess *y) {
  VmBuild *b = o->b;
  Affine fx, fy;
  i64 by;
  if (dtype_bytes(prog_buf(b->p, x->buf)->dt) != dtype_bytes(prog_buf(b->p, y->buf)->dt))
    return false;
  if (flat_of(b, x->buf, x->idx, &fx) && flat_of(b, y->buf, y->idx, &fy) &&
      !varies(o, x->idx, prog_buf(b->p, x->buf)->rank, 0))
    return affine_coef(&fx, o->loop->var) != 0 && affine_differ_by(&fx, &fy, &by) && !by;
  if (x->buf != y->buf) return false;
  u32 rank = prog_buf(b->p, x->buf)->rank;
  bool moves = false;
  if (varies(o, x->idx, rank, 0)) return false;
  for (u32 i = 0; i < rank; i++) {
    Affine a;
    if (!ex_same(b->p, x->idx[i], y->idx[i])) return false;
    moves |= affine_of(b->p, x->idx[i], &a) && affine_coef(&a, o->loop->var) != 0;
  }
  return moves;
}

/* op(y[k], x) stored to an invariant y[k]: the operand that is y[k]; -1: none. */
static int reduces_memory(RowAnalysis *o, const Stmt *s) {
  const Expr *e = prog_expr(o->b->p, s->a);
  if (e->kind != EX_op || e->narg != 2 || op_info[e->op].res != OR_same) return -1;
  if (varies(o, s->idx, s->nidx, o->loop->var)) return -1;
  for (int k = 0; k < 2; k++) {
    const Expr *y = prog_expr(o->b->p, e->arg[k]);
    bool same = y->kind == EX_load && y->ref == s->buf;
    for (u32 i = 0; same && i < s->nidx; i++) same = ex_same(o->b->p, y->arg[i], s->idx[i]);
    if (same) return k;
  }
  return -1;
}

static bool memory_is_safe(RowAnalysis *o) {
  Prog *p = o->b->p;
  for (u32 i = 0; i < o->nacc; i++) {
    const RowAccess *s = &o->acc[i];
    if (!s->store) continue;
    u32 company = 0, others = 0;
    for (u32 k = 0; k < o->nacc; k++) {
      if (k == i || !mem_overlap(p, s->buf, o->acc[k].buf)) continue;
      company++;
      if (!same_element(o, s, &o->acc[k])) others++;
    }
    if (!varies(o, s->idx, s->store->nidx, o->loop->var)) {
      if (company != 1 || reduces_memory(o, s->store) < 0) return false;
    } else if (others)
      return false;
  }
  return true;
}

/* A reduction op(v, x), op(x, v) or fma(a, b, v): the operand that is v; -1: none. */
static int accumulator(VmBuild *b, VarId v, const Expr *e) {
  if (e->kind != EX_op || op_info[e->op].res != OR_same) return -1;
  u32 from = e->op == OP_fma ? 2 : 0;
  if (e->narg != 2 && e->op != OP_fma) return -1;
  for (u32 i = from; i < e->narg; i++) {
    const Expr *a = prog_expr(b->p, e->arg[i]);
    if (a->kind == EX_var && a->ref == v) return (int)i;
  }
  return -1;
}

static bool variables_are_safe(RowAnalysis *o) {
  Prog *p = o->b->p;
  for (u32 i = 0; i < o->ncarried; i++) {
    u32 reads = 0;
    for (StmtId id = o->loop->body; id; id = prog_stmt(p, id)->next) {
      const Stmt *s = prog_stmt(p, id);
      for (ExprVisit w = ex_visit_stmt(p, s); ex_next(&w);)
        reads += w.e->kind == EX_var && w.e->ref == o->carried[i];
      if (s->kind != ST_set || s->var != o->carried[i]) continue;
      const Expr *e = prog_expr(p, s->a);
      if (accumulator(o->b, s->var, e) < 0) return false;
      if (e->op == OP_fma && e->dt != DT_f32 && e->dt != DT_f64) return false;
    }
    if (reads != 1) return false;
  }
  return true;
}

/* ---- code ---- */

/* to = op(to, x), lane by lane. */
static void emit_reduction(VmBuild *b, VmVal to, const Expr *e, int acc) {
  VmClass cls = vm_class(e->dt);
  static const VmOp dot[] = {[VC_f] = VM_dot_f, [VC_d] = VM_dot_d, [VC_w] = VM_dot_w};
  bool exact = e->dt == DT_f32 || e->dt == DT_f64 || e->dt == DT_i32;
  if (e->op == OP_fma) {
    VmVal x = widen_val(b, vb_compile(b, e->arg[0]), cls, 0),
          y = widen_val(b, vb_compile(b, e->arg[1]), cls, 0);
    emit_effect(b, cls == VC_f ? VM_fdot_f : VM_fdot_d, 0, (u32[]){to.reg, x.reg, y.reg}, 3);
    return;
  }
  const Expr *x = prog_expr(b->p, e->arg[1 - acc]);
  if (exact && e->op == OP_add && x->kind == EX_op && x->op == OP_mul) {
    VmVal l = widen_val(b, vb_compile(b, x->arg[0]), cls, 0),
          r = widen_val(b, vb_compile(b, x->arg[1]), cls, 0);
    emit_effect(b, dot[cls], 0, (u32[]){to.reg, l.reg, r.reg}, 3);
    return;
  }
  VmVal v = widen_val(b, vb_compile(b, e->arg[1 - acc]), cls, 0);
  emit_effect(b, acc ? VM_accumr : VM_accum, 0,
              (u32[]){to.reg, v.reg, vb_operation(b, e->op, e->dt, e->dt)}, 3);
}

static bool contiguous(const VmAddr *p) {
  return p->dt == DT_f32 && p->moves && !p->by_offsets && !p->step.reg && p->inc == 1;
}

/* y = y + x * z in f32, memory to memory: one instruction. */
static bool multiply_add(VmBuild *b, const Stmt *s) {
  const Expr *e = prog_expr(b->p, s->a);
  if (e->dt != DT_f32 || e->kind != EX_op || e->op != OP_add) return false;
  const Expr *y = prog_expr(b->p, e->arg[0]), *m = prog_expr(b->p, e->arg[1]);
  if (y->kind != EX_load || y->ref != s->buf || m->kind != EX_op || m->op != OP_mul) return false;
  for (u32 i = 0; i < s->nidx; i++)
    if (!ex_same(b->p, y->arg[i], s->idx[i])) return false;
  u32 first = 0;
  if (!row_depends(b, m->arg[0])) first = 1;
  const Expr *x = prog_expr(b->p, m->arg[first]), *z = prog_expr(b->p, m->arg[1 - first]);
  if (x->kind != EX_load) return false;
  VmAddr py = vb_place(b, s->buf, s->idx), px = vb_place(b, x->ref, x->arg);
  if (!contiguous(&py) || !contiguous(&px)) return false;
  u32 w[9] = {py.buf, py.at.reg, (u32)(i32)py.k, px.buf, px.at.reg, (u32)(i32)px.k};
  if (!row_depends(b, m->arg[1 - first])) {
    w[6] = vb_compile(b, m->arg[1 - first]).reg;
    emit_effect(b, VM_macs_f, 0, w, 7);
    return true;
  }
  if (z->kind != EX_load) return false;
  VmAddr pz = vb_place(b, z->ref, z->arg);
  if (!contiguous(&pz)) return false;
  w[6] = pz.buf;
  w[7] = pz.at.reg;
  w[8] = (u32)(i32)pz.k;
  emit_effect(b, VM_macv_f, 0, w, 9);
  return true;
}

static void write_store(VmBuild *b, RowAnalysis *o, const Stmt *s) {
  int acc = reduces_memory(o, s);
  if (acc >= 0) {
    VmAddr at = vb_place(b, s->buf, s->idx);
    VmVal v = load_from(b, &at, 1);
    u32 reg = new_reg(b, vm_class(at.dt), 1);
    b->reg.at[reg].named = true;
    assign_reg(b, v, reg, vm_class(at.dt), 1);
    emit_reduction(b, (VmVal){reg, b->cur + 1, 1}, prog_expr(b->p, s->a), acc);
    store_to(b, &at, (VmVal){reg, b->cur + 1, 1}, 1);
    return;
  }
  if (multiply_add(b, s)) return;
  VmVal v = vb_compile(b, s->a);
  VmAddr at = vb_place(b, s->buf, s->idx);
  store_to(b, &at, v, 0);
}

static void write_stmt(VmBuild *b, RowAnalysis *o, const Stmt *s) {
  if (s->kind == ST_store) {
    write_store(b, o, s);
  } else if (s->kind == ST_let || (s->kind == ST_set && has_var(o->local, o->nlocal, s->var))) {
    VmVal v = vb_compile(b, s->a);
    if (b->reg.at[v.reg].named) {
      u32 copy = new_reg(b, vm_class(prog_var(b->p, s->var)->dt), 1);
      assign_reg(b, v, copy, vm_class(prog_var(b->p, s->var)->dt), 1);
      v = (VmVal){copy, b->cur + 1, 1};
    }
    b->def = 0; /* later reads use this register */
    b->var[s->var] = (VarInfo){.val = v};
  } else if (s->kind == ST_set) {
    const Expr *e = prog_expr(b->p, s->a);
    emit_reduction(b, b->var[s->var].val, e, accumulator(b, s->var, e));
  }
}

bool vm_row_loop(VmBuild *b, const Stmt *loop) {
  Prog *p = b->p;
  RowAnalysis *o = NEW(b->a, RowAnalysis);
  o->b = b;
  o->loop = loop;
  if (b->row.var || !loop->body) return false;
  for (StmtId id = loop->body; id; id = prog_stmt(p, id)->next)
    if (!look_stmt(o, prog_stmt(p, id))) return false;
  if (!memory_is_safe(o) || !variables_are_safe(o)) return false;
  u32 top = label_new(b), end = label_new(b), at = new_reg(b, VC_l, 1);
  VmVal lo = vb_compile(b, loop->a), hi = vb_compile(b, loop->b), step = vb_integer(b, loop->step);
  b->reg.at[at].named = true;
  if (b->reg.at[hi.reg].named) {
    u32 copy = new_reg(b, VC_l, 1);
    assign_reg(b, hi, copy, VC_l, 1);
    hi.reg = copy;
  }
  emit_effect(b, VM_mov_l, 1, (u32[]){at, lo.reg}, 2);
  if (!vm_loop_runs(b, loop->a, loop->b)) emit_effect(b, VM_jle_l, 1, (u32[]){hi.reg, at, end}, 3);
  label_here(b, top);
  level_push(b, loop->body);
  emit_effect(b, VM_rows, 1, (u32[]){at, hi.reg, step.reg}, 3);
  b->row = (RowLoop){.var = loop->var, .step = loop->step, .at = {at, b->cur, 1}};
  b->var[loop->var] = (VarInfo){.val = {at, b->cur, 0}};
  for (StmtId id = loop->body; id; id = prog_stmt(p, id)->next) write_stmt(b, o, prog_stmt(p, id));
  emit_effect(b, VM_next, 1, (u32[]){at, vb_integer(b, loop->step * ROW_LANES).reg, hi.reg, top},
              4);
  level_pop(b);
  label_here(b, end);
  b->row = (RowLoop){0};
  return true;
}
