/* vm_compile.c: compiles statements to instructions.
 *
 * In: a Prog that has passed prog_check. Out: VmCode. Method: one pass. Kernels are unrolled as in
 * the C back end, so that registers of the program become registers of the machine, except for
 * reductions: those of tiles become single instructions (vm_panel.c), others are unrolled when they
 * are compiled. Loops over elements become rows (vm_row.c); other loops count and jump. The passes
 * and emit_pure fold constants. vm_alloc.c drops dead code. */
#include "back/vm/vm_build.h"

/* ---- statements ---- */

static void define(VmBuild *b, VarId v, bool mutable, VmVal x) {
  VarInfo *i = &b->var[v];
  const Var *var = prog_var(b->p, v);
  VmClass cls = vm_class(var->dt);
  if (!mutable && !b->reg.at[x.reg].named) {
    i->val = x;
    i->mutable = false;
    b->def = 0; /* later reads use this register */
    return;
  }
  i->val = (VmVal){new_reg(b, cls, var->lanes), b->cur + 1, var->lanes};
  i->mutable = mutable;
  b->reg.at[i->val.reg].named = mutable;
  assign_reg(b, x, i->val.reg, cls, var->lanes);
}

static u32 message(VmBuild *b, StmtId id, Str text) {
  *vec_push(b->a, &b->message) = text;
  *vec_push(b->a, &b->needs) = id;
  return b->message.n - 1;
}

/* A symbol that is set must be within the bounds by which memory was planned. */
static void check_symbol(VmBuild *b, StmtId id, VarId v) {
  i32 sym = prog_var(b->p, v)->sym;
  if (sym < 0) return;
  const SymInfo *si = dim_syminfo(b->p->dims, (Sym)sym);
  VmVal x = b->var[v].val;
  u32 text = message(b, id, sym_range_error(b->c, si));
  VmVal lo = vb_result(b, VM_le_l, 1, VC_w, (u32[]){vb_integer(b, si->lo).reg, x.reg}, 2);
  emit_effect(b, VM_need, 1, (u32[]){lo.reg, text}, 2);
  VmVal hi = vb_result(b, VM_le_l, 1, VC_w, (u32[]){x.reg, vb_integer(b, si->hi).reg}, 2);
  emit_effect(b, VM_need, 1, (u32[]){hi.reg, text}, 2);
}

static void set(VmBuild *b, StmtId id) {
  const Stmt *s = prog_stmt(b->p, id);
  const Var *v = prog_var(b->p, s->var);
  assign_reg(b, vb_compile(b, s->a), b->var[s->var].val.reg, vm_class(v->dt), v->lanes);
  check_symbol(b, id, s->var);
}

/* Jumps to the label if the condition equals `want`. */
static void branch(VmBuild *b, ExprId cond, bool want, u32 label) {
  static const struct {
    VmOp yes, no; /* no: with swapped operands, except eq and ne */
    bool swap;
  } by[] = {[OP_lt] = {VM_jlt_l, VM_jle_l, false}, [OP_le] = {VM_jle_l, VM_jlt_l, false},
            [OP_gt] = {VM_jlt_l, VM_jle_l, true},  [OP_ge] = {VM_jle_l, VM_jlt_l, true},
            [OP_eq] = {VM_jeq_l, VM_jne_l, false}, [OP_ne] = {VM_jne_l, VM_jeq_l, false}};
  const Expr *e = prog_expr(b->p, cond);
  if (e->kind == EX_op && e->op == OP_and && e->dt == DT_bool) { /* compare-and-jump last */
    const Expr *x = prog_expr(b->p, e->arg[0]);
    bool last = x->kind == EX_op && prog_expr(b->p, x->arg[0])->dt == DT_i64;
    u32 no = want ? label_new(b) : label;
    ExprId arg[2] = {e->arg[last], e->arg[!last]};
    branch(b, arg[0], false, no);
    branch(b, arg[1], want, label);
    if (want) label_here(b, no);
    return;
  }
  if (e->kind == EX_op && e->op < sizeof by / sizeof *by && by[e->op].yes &&
      prog_expr(b->p, e->arg[0])->dt == DT_i64) {
    VmVal x = vb_compile(b, e->arg[0]), y = vb_compile(b, e->arg[1]);
    bool swap = by[e->op].swap != !want;
    emit_effect(b, want ? by[e->op].yes : by[e->op].no, 1,
                (u32[]){swap ? y.reg : x.reg, swap ? x.reg : y.reg, label}, 3);
    return;
  }
  u32 skip = want ? label_new(b) : label;
  emit_effect(b, VM_jz, 1, (u32[]){vb_compile(b, cond).reg, skip}, 2);
  if (!want) return;
  emit_effect(b, VM_jmp, 1, &label, 1);
  label_here(b, skip);
}

static void compile_if(VmBuild *b, Stmt s) {
  u32 other = label_new(b), end = label_new(b);
  branch(b, s.a, false, other);
  compile_list(b, s.body);
  if (s.other) emit_effect(b, VM_jmp, 1, &end, 1);
  label_here(b, other);
  compile_list(b, s.other);
  label_here(b, end);
}

/* The condition is compiled twice: before the loop and at its end. */
static void compile_while(VmBuild *b, Stmt s) {
  u32 top = label_new(b), end = label_new(b);
  branch(b, s.a, false, end);
  label_here(b, top);
  level_push(b, s.body);
  compile_list(b, s.body);
  branch(b, s.a, true, top);
  level_pop(b);
  label_here(b, end);
}

bool vm_loop_runs(VmBuild *b, ExprId lo, ExprId hi) {
  i64 x, y;
  return ex_is_int(b->p, lo, &x) && ex_is_int(b->p, hi, &y) && x < y;
}

static void compile_for(VmBuild *b, Stmt s) {
  u32 top = label_new(b), end = label_new(b), at = new_reg(b, VC_l, 1);
  VmVal lo = vb_compile(b, s.a), hi = vb_compile(b, s.b), step = vb_integer(b, s.step);
  b->reg.at[at].named = true;
  if (b->reg.at[hi.reg].named) { /* assignments in the body must not change the bound */
    u32 copy = new_reg(b, VC_l, 1);
    assign_reg(b, hi, copy, VC_l, 1);
    hi.reg = copy;
  }
  emit_effect(b, VM_mov_l, 1, (u32[]){at, lo.reg}, 2);
  if (!vm_loop_runs(b, s.a, s.b)) emit_effect(b, VM_jle_l, 1, (u32[]){hi.reg, at, end}, 3);
  label_here(b, top);
  level_push(b, s.body);
  b->var[s.var] = (VarInfo){.val = {at, b->cur, 1}};
  compile_list(b, s.body);
  emit_effect(b, VM_next, 1, (u32[]){at, step.reg, hi.reg, top}, 4);
  level_pop(b);
  label_here(b, end);
}

/* ---- kernels ---- */

/* Is the index a constant once loops are unrolled? prog_check has seen that its variables are those
 * of unrolled loops. Unrolling folds integers only. */
static bool becomes_constant(VmBuild *b, ExprId id) {
  i64 x;
  if (!b->tiles) return ex_is_int(b->p, id, &x);
  for (ExprVisit w = ex_visit(b->p, id); ex_next(&w);)
    if ((w.e->dt != DT_i64 && w.e->dt != DT_bool) || w.e->op == OP_cast || w.e->op == OP_bitcast)
      return false;
  return true;
}

/* Register buffers indexed only by constants become registers; others become memory. */
static void choose_registers(VmBuild *b, StmtId first) {
  Prog *p = b->p;
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    if (s->kind == ST_kernel) w.skip = true; /* its registers are private */
    bool store = s->kind == ST_store && prog_buf(p, s->buf)->space == BS_reg;
    for (u32 i = 0; store && i < s->nidx; i++)
      if (!becomes_constant(b, s->idx[i])) b->memory[s->buf] = true;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) {
      if (x.e->kind != EX_load || prog_buf(p, x.e->ref)->space != BS_reg) continue;
      b->reads[x.e->ref]++;
      for (u32 i = 0; i < x.e->narg; i++)
        if (!becomes_constant(b, x.e->arg[i])) b->memory[x.e->ref] = true;
    }
  }
}

static void assign_register(VmBuild *b, BufId id) {
  const Buf *buf = prog_buf(b->p, id);
  i64 n = 1;
  if (buf->space != BS_reg || b->bufreg[id].reg || b->buf[id] != UINT32_MAX) return;
  for (u32 i = 0; i < buf->rank; i++) {
    if (!dim_is_const(buf->dim[i])) b->memory[id] = true;
    n *= buf->dim[i];
  }
  if (b->memory[id]) {
    b->buf[id] = b->nbuf++;
    return;
  }
  VmClass cls = vm_class(buf->dt);
  u32 slots = (buf->lanes * vm_class_bytes(cls) + 7) / 8, r = new_reg(b, cls, 1);
  b->reg.at[r].slots = (u32)n * slots;
  b->reg.at[r].named = true;
  b->bufreg[id] = (VmVal){r, 0, buf->lanes};
}

/* Includes registers that are only read: a loop that would write them may run zero times. */
static void assign_registers(VmBuild *b, StmtId first) {
  const Stmt *s;
  choose_registers(b, first);
  for (StmtVisit w = prog_visit(b->p, first); (s = prog_next(&w));) {
    if (s->kind == ST_kernel) w.skip = true;
    if (s->kind == ST_store) assign_register(b, s->buf);
    for (ExprVisit x = ex_visit_stmt(b->p, s); ex_next(&x);)
      if (x.e->kind == EX_load) assign_register(b, x.e->ref);
  }
}

/* Makes room for variables that unrolling added. */
static void record_vars(VmBuild *b, StmtId first) {
  u32 n = b->p->var.n;
  const Stmt *s;
  if (n > b->nvar) {
    VarInfo *var = NEWS(b->a, VarInfo, 2 * n);
    bool *sets = NEWS(b->a, bool, 2 * n);
    for (VarId v = 0; v < b->nvar; v++) {
      var[v] = b->var[v];
      sets[v] = b->sets[v];
    }
    b->var = var;
    b->sets = sets;
    b->nvar = 2 * n;
  }
  for (StmtVisit w = prog_visit(b->p, first); (s = prog_next(&w));)
    if (s->kind == ST_set) b->sets[s->var] = true;
}

/* A kernel too long to be unrolled keeps its registers in memory. */
static void compile_kernel(VmBuild *b, StmtId body) {
  StmtId flat = prog_unroll_tiles(b->p, body, b->a);
  b->tiles = flat != 0;
  if (!flat) flat = prog_unroll(b->p, body, b->a);
  if (flat) body = flat;
  record_vars(b, body);
  assign_registers(b, body);
  level_push(b, body);
  compile_list(b, body);
  level_pop(b);
  b->tiles = false;
}

/* A register accumulator plus memory (a vector or a broadcast element) times a register: folds the
 * load into the instruction. */
static bool multiply_add(VmBuild *b, const Stmt *s, u32 acc) {
  const Expr *e = prog_expr(b->p, s->a), *c, *x = NULL;
  VmVal at;
  u32 k = 0;
  if (e->kind != EX_op || e->op != OP_fma || e->dt != DT_f32 || e->lanes == 1) return false;
  c = prog_expr(b->p, e->arg[2]);
  if (c->kind != EX_load || c->ref != s->buf || !vb_in_registers(b, c->ref, c->arg, &at) ||
      b->reg.at[at.reg].off != b->reg.at[acc].off)
    return false;
  for (; k < 2; k++) {
    x = prog_expr(b->p, e->arg[k]);
    if (x->kind == EX_splat) x = prog_expr(b->p, x->arg[0]);
    if (x->kind == EX_op && x->op == OP_cast && x->lanes > 1) x = prog_expr(b->p, x->arg[0]);
    bool fits = x->dt == DT_f32 || (x->lanes > 1 && vm_is_narrow(x->dt));
    if (fits && x->kind == EX_load && prog_buf(b->p, x->ref)->space != BS_reg &&
        !b->scalar[x->ref].reg)
      break;
  }
  if (k == 2) return false;
  VmOp op = x->dt != DT_f32 ? VM_vfmax_f : x->lanes == 1 ? VM_vfmab_f : VM_vfmam_f;
  VmAddr from = vb_place(b, x->ref, x->arg);
  VmVal y = widen_val(b, vb_compile(b, e->arg[1 - k]), VC_f, e->lanes);
  u32 w[6] = {acc, from.buf, from.at.reg, (u32)(i32)from.k, y.reg, x->dt};
  emit_effect(b, op, e->lanes, w, op == VM_vfmax_f ? 6 : 5);
  return true;
}

static void store(VmBuild *b, const Stmt *s) {
  u32 lanes = prog_expr(b->p, s->a)->lanes;
  VmVal to;
  if (b->dead[prog_root(b->p, s->buf)]) return;
  if (vb_in_registers(b, s->buf, s->idx, &to)) {
    if (!multiply_add(b, s, to.reg))
      assign_reg(b, vb_compile(b, s->a), to.reg, vm_class(prog_buf(b->p, s->buf)->dt), lanes);
    return;
  }
  VmVal v = vb_compile(b, s->a);
  VmAddr at = vb_place(b, s->buf, s->idx);
  store_to(b, &at, v, lanes);
}

static void compile_reduction(VmBuild *b, StmtId id) {
  if (vm_panel_loop(b, id)) return;
  StmtId steps = prog_unroll_loop(b->p, id, b->a);
  record_vars(b, steps);
  compile_list(b, steps);
}

static void compile_stmt(VmBuild *b, StmtId id) {
  const Stmt *s = prog_stmt(b->p, id);
  switch (s->kind) {
  case ST_for:
    if (b->tiles && s->role == RO_reduce)
      compile_reduction(b, id);
    else if (!vm_row_loop(b, s))
      compile_for(b, *s);
    break;
  case ST_while: compile_while(b, *s); break;
  case ST_if: compile_if(b, *s); break;
  case ST_let: define(b, s->var, b->sets[s->var], vb_compile(b, s->a)); break;
  case ST_set: set(b, id); break;
  case ST_store: store(b, s); break;
  case ST_kernel: compile_kernel(b, s->body); break;
  case ST_require: {
    VmVal ok = vb_compile(b, s->a);
    emit_effect(b, VM_need, 1, (u32[]){ok.reg, message(b, id, prog_stmt(b->p, id)->label)}, 2);
    break;
  }
  default: break; /* a fence: the VM does not move loads */
  }
}

void compile_list(VmBuild *b, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(b->p, id)->next) compile_stmt(b, id);
}

/* ---- programs ---- */

static void number_buffers(VmBuild *b) {
  for (BufId id = 1; id < b->p->buf.n; id++) {
    const Buf *buf = prog_buf(b->p, id);
    b->buf[id] = UINT32_MAX;
    if (buf->alias || buf->space == BS_reg) continue;
    b->fixed[b->nbuf] = buf->space == BS_const;
    b->buf[id] = b->nbuf++;
  }
}

static void find_dead(VmBuild *b) {
  const Stmt *s;
  b->dead = NEWS(b->a, bool, b->p->buf.n);
  for (BufId id = 1; id < b->p->buf.n; id++) {
    BufSpace space = prog_buf(b->p, id)->space;
    b->dead[id] = space == BS_temp || space == BS_local;
  }
  for (StmtVisit w = prog_visit(b->p, b->p->body); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(b->p, s); ex_next(&x);)
      if (x.e->kind == EX_load) b->dead[prog_root(b->p, x.e->ref)] = false;
}

/* Symbols have their own registers, which callers set and read. */
static void add_symbols(VmBuild *b, VmProgram *v) {
  Prog *p = b->p;
  u32 nsym = p->nsym_var;
  v->symbol = NEWS(b->a, u32, nsym + 1);
  v->nsymbol = nsym;
  for (u32 s = 0; s < nsym; s++) {
    VarId var = p->sym_var[s];
    if (!var) continue;
    u32 r = new_reg(b, VC_l, 1);
    bool data = dim_syminfo(p->dims, s)->kind == SY_data;
    b->reg.at[r].fixed = true;
    b->reg.at[r].named = b->reg.at[r].seen = data;
    b->var[var] = (VarInfo){.val = {r, data ? 1 : 0, 1}, .mutable = data};
    v->symbol[s] = r;
  }
}

VmProgram *vm_compile(Prog *given, Arena *a) {
  Prog *p = prog_extend(given);
  VmProgram *v = NEW(a, VmProgram);
  VmBuild *b = NEW(a, VmBuild);
  if (prog_has_fragments(p, p->body)) {
    p->body = prog_copy(p, p->body, a);
    Stmt *s;
    for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));)
      if (s->kind == ST_kernel && prog_has_fragments(p, s->body)) {
        StmtId body = prog_fragments(p, s->body, a);
        prog_stmt(p, w.id)->body = body;
        w.skip = true;
      }
  }
  for (BufId id = 1; id < p->buf.n; id++) /* dimensions may use symbols without a variable yet */
    for (u32 i = 0; i < prog_buf(p, id)->rank; i++) ex_dim(p, prog_buf(p, id)->dim[i]);
  *b = (VmBuild){.c = p->c, .p = p, .a = a, .constant = map_new(a), .same = map_new(a)};
  *vec_push(a, &b->reg) = (VReg){0}; /* register 0 means none */
  b->nlabel = 1;
  record_vars(b, p->body);
  b->buf = NEWS(a, u32, p->buf.n);
  b->scalar = NEWS(a, VmScalar, p->buf.n);
  b->fixed = NEWS(a, bool, p->buf.n);
  b->bufreg = NEWS(a, VmVal, p->buf.n);
  b->memory = NEWS(a, bool, p->buf.n);
  b->reads = NEWS(a, u32, p->buf.n);
  number_buffers(b);
  find_dead(b);
  choose_scalars(b);
  add_symbols(b, v);
  level_push(b, p->body); /* level 1; level 0 collects all */
  b->level[0].id = ++b->nlevel;
  assign_registers(b, p->body);
  compile_list(b, p->body);
  store_scalars(b);
  level_pop(b);
  emit_effect(b, VM_stop, 1, NULL, 0);
  vm_finish(b, &v->code);
  for (u32 s = 0; s < v->nsymbol; s++)
    if (v->symbol[s]) v->symbol[s] = b->reg.at[v->symbol[s]].slot;
  v->p = given;
  v->buf = b->buf;
  v->message = b->message.at;
  v->needs = b->needs.at;
  v->a = a;
  vm_prepare(v);
  return v;
}
