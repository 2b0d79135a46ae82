/* vm_expr.c: compiles expressions to instructions.
 *
 * In: an expression of a Prog. Out: the register of its value. Equal lanes stay scalar until an
 * instruction needs a vector. Addresses are sums of terms with constant factors, added in order of
 * availability, so that an inner loop adds one term to a hoisted sum. An operator without an
 * instruction becomes a general one. */
#include "back/vm/vm_build.h"

#include "ir/prog/prog_mem.h"

static VmVal read_var(VmBuild *b, VarId v) {
  VarInfo *i = &b->var[v];
  VmVal x = i->val;
  if (i->mutable && i->level > x.avail) x.avail = i->level;
  return x;
}

bool row_depends(VmBuild *b, ExprId e) {
  if (!b->row.var) return false;
  for (ExprVisit w = ex_visit(b->p, e); ex_next(&w);)
    if (w.e->kind == EX_var && (w.e->ref == b->row.var || !b->var[w.e->ref].val.lanes)) return true;
  return false;
}

VmVal widen_val(VmBuild *b, VmVal v, VmClass cls, u32 lanes) {
  static const VmOp splat[] = {
      [VC_f] = VM_splat_f, [VC_d] = VM_splat_d, [VC_w] = VM_splat_w, [VC_l] = VM_splat_l};
  if (v.lanes == lanes || lanes == 1) return v;
  return emit_pure(b, splat[cls], lanes, cls, &v, 1);
}

/* ---- addresses ---- */

/* A sum of terms: coef * value, or value * value. */
typedef struct OffsetPart {
  VmVal x, by; /* by.reg 0: use coef */
  i64 coef;
} OffsetPart;
enum { MAX_PARTS = 64 };
typedef struct OffsetParts {
  OffsetPart at[MAX_PARTS];
  u32 n;
} OffsetParts;

static void add_part(VmBuild *b, OffsetParts *to, VmVal x, i64 coef, VmVal by) {
  for (u32 i = 0; i < to->n; i++) {
    OffsetPart *p = &to->at[i];
    if (p->x.reg != x.reg || p->by.reg != by.reg) continue;
    p->coef = (i64)((u64)p->coef + (u64)coef);
    return;
  }
  if (to->n == MAX_PARTS) fail(b->c, ERR_unsupported, LOC_NONE, "vm: an index has too many terms");
  to->at[to->n++] = (OffsetPart){x, by, coef};
}

static VmVal sum_parts(VmBuild *b, OffsetParts *p) {
  VmVal sum = {0};
  for (u32 i = 1; i < p->n; i++) /* few terms: insertion sort by availability */
    for (u32 k = i; k && p->at[k - 1].x.avail > p->at[k].x.avail; k--) {
      OffsetPart t = p->at[k];
      p->at[k] = p->at[k - 1];
      p->at[k - 1] = t;
    }
  for (u32 i = 0; i < p->n; i++) {
    OffsetPart *t = &p->at[i];
    if (!t->by.reg && !t->coef) continue;
    VmVal by = t->by.reg ? t->by : vb_integer(b, t->coef);
    bool once = !t->by.reg && t->coef == 1;
    if (!sum.reg)
      sum = once ? t->x : emit_int(b, VM_mul_l, t->x, by);
    else if (once)
      sum = emit_int(b, VM_add_l, sum, t->x);
    else
      sum = emit_pure(b, VM_mad_l, 1, VC_l, (VmVal[]){t->x, by, sum}, 3);
  }
  return sum.reg ? sum : vb_integer(b, 0);
}

/* Stride of the axis in elements: the result times *sym, if set. */
static i64 stride_of(VmBuild *b, const Buf *buf, u32 axis, VmVal *sym) {
  i64 n = buf->lanes;
  *sym = (VmVal){0};
  for (u32 i = axis + 1; i < buf->rank; i++) {
    if (dim_is_const(buf->dim[i])) {
      n *= buf->dim[i] ? buf->dim[i] : 1;
      continue;
    }
    VmVal d = vb_compile(b, ex_dim(b->p, buf->dim[i])); /* an empty buffer is never accessed */
    *sym = sym->reg ? emit_int(b, VM_mul_l, *sym, d) : d;
  }
  if (sym->reg && n != 1) *sym = emit_int(b, VM_mul_l, *sym, vb_integer(b, n));
  return n;
}

/* Adds the term t times the stride of its axis. */
static void add_term(VmBuild *b, VmAddr *to, OffsetParts *parts, const AffTerm *t, i64 stride,
                     VmVal sym) {
  i64 coef = sym.reg ? t->coef : (i64)((u64)t->coef * (u64)stride);
  VmVal x = t->var && t->var == b->row.var ? b->row.at : vb_compile(b, t->e);
  if (t->var && t->var == b->row.var) {
    to->moves = true;
    if (!sym.reg)
      to->inc += coef * b->row.step;
    else {
      VmVal s = emit_int(b, VM_mul_l, sym, vb_integer(b, coef * b->row.step));
      to->step = to->step.reg ? emit_int(b, VM_add_l, to->step, s) : s;
    }
  }
  if (!sym.reg) {
    add_part(b, parts, x, coef, (VmVal){0});
    return;
  }
  if (coef != 1) x = emit_int(b, VM_mul_l, x, vb_integer(b, coef));
  add_part(b, parts, x, 1, sym);
}

/* Offsets per lane, if they are not an arithmetic series. */
static void addr_per_lane(VmBuild *b, VmAddr *to, const Buf *buf, const ExprId *idx) {
  VmVal sum = {0};
  for (u32 i = 0; i < buf->rank; i++) {
    VmVal sym, x = vb_compile(b, idx[i]);
    i64 stride = stride_of(b, buf, i, &sym);
    if (!sym.reg) sym = vb_integer(b, stride);
    if (stride != 1 || sym.avail || sym.reg != vb_integer(b, 1).reg) {
      VmOp op = x.lanes == 1 ? VM_mul_l : VM_vmuls_l;
      x = emit_pure(b, op, x.lanes, VC_l, (VmVal[]){x, sym}, 2);
    }
    if (!sum.reg) {
      sum = x;
      continue;
    }
    bool one = sum.lanes == 1 && x.lanes == 1;
    VmOp add = one ? VM_add_l : x.lanes == 1 ? VM_vadds_l : sum.lanes == 1 ? VM_vaddr_l : VM_vadd_l;
    sum = emit_pure(b, add, one, VC_l, (VmVal[]){sum, x}, 2);
  }
  to->at = widen_val(b, sum, VC_l, 0);
  to->by_offsets = true;
}

/* Do the lanes of a row have a constant stride? */
static bool is_series(VmBuild *b, const Affine *a) {
  for (u32 i = 0; i < a->n; i++)
    if (a->t[i].var != b->row.var && row_depends(b, a->t[i].e)) return false;
  return true;
}

VmAddr vb_place(VmBuild *b, BufId id, const ExprId *idx) {
  const Buf *buf = prog_buf(b->p, id);
  VmAddr to = {.buf = b->buf[prog_root(b->p, id)], .dt = buf->dt};
  OffsetParts parts;
  parts.n = 0;
  for (u32 i = 0; i < buf->rank; i++) {
    Affine a;
    VmVal sym;
    if (!affine_of(b->p, idx[i], &a)) a = (Affine){.n = 1, .t = {{idx[i], 0, 1}}};
    if (!is_series(b, &a)) { /* discard the terms of earlier axes */
      to = (VmAddr){.buf = to.buf, .dt = to.dt};
      addr_per_lane(b, &to, buf, idx);
      return to;
    }
    i64 stride = stride_of(b, buf, i, &sym);
    for (u32 k = 0; k < a.n; k++) add_term(b, &to, &parts, &a.t[k], stride, sym);
    if (!sym.reg)
      to.k += a.k * stride;
    else if (a.k)
      add_part(b, &parts, vb_integer(b, a.k), 1, sym);
  }
  if (to.step.reg && to.inc) to.step = emit_int(b, VM_add_l, to.step, vb_integer(b, to.inc));
  if (to.k != (i32)to.k) {
    add_part(b, &parts, vb_integer(b, to.k), 1, (VmVal){0});
    to.k = 0;
  }
  to.at = sum_parts(b, &parts);
  return to;
}

VmAddr addr_affine(VmBuild *b, BufId id, const Affine *a) {
  VmAddr to = {.buf = b->buf[prog_root(b->p, id)], .dt = prog_buf(b->p, id)->dt, .k = a->k};
  OffsetParts parts;
  parts.n = 0;
  for (u32 i = 0; i < a->n; i++)
    if (a->t[i].coef) add_part(b, &parts, read_var(b, a->t[i].var), a->t[i].coef, (VmVal){0});
  if (to.k != (i32)to.k) {
    add_part(b, &parts, vb_integer(b, to.k), 1, (VmVal){0});
    to.k = 0;
  }
  to.at = sum_parts(b, &parts);
  return to;
}

/* Instructions for consecutive elements of a type; 0: none. */
typedef struct TypedAccess {
  VmOp ld, vld, st, vst;
} TypedAccess;
static const TypedAccess typed[DT_COUNT] = {
    [DT_f32] = {VM_ld_f32, VM_vld_f32, VM_st_f32, VM_vst_f32},
    [DT_i32] = {VM_ld_i32, VM_vld_f32, VM_st_f32, VM_vst_f32},
    [DT_f64] = {VM_ld_f64, VM_vld_f64, VM_st_f64, VM_vst_f64},
    [DT_i64] = {VM_ld_i64, VM_vld_f64, VM_st_i64, VM_vst_f64},
    [DT_u64] = {VM_ld_i64, VM_vld_f64, VM_st_i64, VM_vst_f64},
    [DT_u8] = {0, VM_vld_u8, 0, VM_vst_8},
    [DT_i8] = {0, VM_vld_i8, 0, VM_vst_8},
};

VmVal load_from(VmBuild *b, const VmAddr *at, u32 lanes) {
  VmClass cls = vm_class(at->dt);
  u32 w[5] = {at->buf, at->at.reg, (u32)(i32)at->k, at->dt, 0};
  if (at->by_offsets) return vb_loaded(b, VM_gather, 0, cls, w, 4);
  if (at->moves && (at->step.reg || at->inc != 1)) {
    w[3] = at->step.reg ? at->step.reg : vb_integer(b, at->inc).reg;
    w[4] = at->dt;
    return vb_loaded(b, VM_loads, 0, cls, w, 5);
  }
  if (at->moves) lanes = 0;
  const TypedAccess *a = &typed[at->dt];
  VmOp op = lanes == 1 ? a->ld : a->vld;
  return op ? vb_loaded(b, op, lanes, cls, w, 3) : vb_loaded(b, VM_load, lanes, cls, w, 4);
}

void store_to(VmBuild *b, const VmAddr *at, VmVal v, u32 lanes) {
  VmClass cls = vm_class(at->dt);
  if (at->moves || at->by_offsets) lanes = 0;
  v = widen_val(b, v, cls, lanes);
  u32 w[6] = {at->buf, at->at.reg, (u32)(i32)at->k, v.reg, at->dt, 0};
  VmOp op = at->by_offsets ? VM_scatter : VM_store;
  u32 n = 5;
  if (at->moves && !at->by_offsets && (at->step.reg || at->inc != 1)) {
    w[4] = at->step.reg ? at->step.reg : vb_integer(b, at->inc).reg;
    w[5] = at->dt;
    op = VM_stores;
    n = 6;
  } else if (op == VM_store && (lanes == 1 ? typed[at->dt].st : typed[at->dt].vst)) {
    op = lanes == 1 ? typed[at->dt].st : typed[at->dt].vst;
    n = 4;
  }
  emit_effect(b, op, lanes, w, n);
}

bool vb_in_registers(VmBuild *b, BufId id, const ExprId *idx, VmVal *to) {
  const Buf *buf = prog_buf(b->p, id);
  i64 at = 0, x;
  if (b->scalar[id].reg) {
    *to = (VmVal){b->scalar[id].reg, b->scalar[id].level, 1};
    return true;
  }
  if (!b->bufreg[id].reg) return false;
  for (u32 i = 0; i < buf->rank; i++) {
    if (!ex_is_int(b->p, idx[i], &x) || !dim_is_const(buf->dim[i])) return false;
    if (x < 0 || x >= buf->dim[i])
      fail(b->c, ERR_unsupported, LOC_NONE,
           "vm: index %u of register buffer %s: expected 0 to %lld, found %lld", i,
           str_text(b->c, buf->name), (long long)buf->dim[i] - 1, (long long)x);
    at = at * buf->dim[i] + x;
  }
  VmClass cls = vm_class(buf->dt);
  u32 slots = (buf->lanes * vm_class_bytes(cls) + 7) / 8;
  u32 reg = part_reg(b, b->bufreg[id].reg, (u32)at * slots, cls, buf->lanes);
  *to = (VmVal){reg, b->cur + 1, buf->lanes};
  return true;
}

/* ---- operators ---- */

u32 vb_operation(VmBuild *b, Op op, DType of, DType to) {
  MathMode part =
      op < OP_SCALARS && op_info[op].nin_min == 1 ? scalar_math_mode(b->p->math, op, of) : 0;
  return (u32)op | (u32)of << 8 | (u32)part << 16 | (u32)to << 24;
}

/* The scalar instruction; the opcodes of its vector forms come next. 0: none. */
static VmOp binary(Op op, DType dt) {
  static const VmOp by[][5] = {
#define ROW(op)                                                                                    \
  [OP_##op] = {                                                                                    \
      [VC_f] = VM_##op##_f, [VC_d] = VM_##op##_d, [VC_w] = VM_##op##_w, [VC_l] = VM_##op##_l}
      ROW(add),
      ROW(sub),
      ROW(mul),
      ROW(max),
      ROW(min),
      ROW(eq),
      ROW(ne),
      ROW(lt),
      ROW(le),
#undef ROW
      [OP_gt] = {[VC_f] = VM_lt_f, [VC_d] = VM_lt_d, [VC_w] = VM_lt_w, [VC_l] = VM_lt_l},
      [OP_ge] = {[VC_f] = VM_le_f, [VC_d] = VM_le_d, [VC_w] = VM_le_w, [VC_l] = VM_le_l},
      [OP_div] = {[VC_f] = VM_div_f, [VC_d] = VM_div_d},
      [OP_and] = {[VC_w] = VM_and_w, [VC_l] = VM_and_l},
      [OP_or] = {[VC_w] = VM_or_w, [VC_l] = VM_or_l},
      [OP_xor] = {[VC_w] = VM_xor_w, [VC_l] = VM_xor_l},
      [OP_shl] = {[VC_w] = VM_shl_w},
  };
  bool order = op == OP_max || op == OP_min || (op >= OP_lt && op <= OP_ge);
  if (op >= sizeof by / sizeof *by || (dt == DT_u64 && order)) return 0;
  return by[op][vm_class(dt)];
}

/* Wraps or rounds results of + - * and of functions to the type. */
static VmVal fitted(VmBuild *b, VmVal v, DType dt) {
  if (dt == DT_f32 || dt == DT_f64 || dt == DT_i32 || dt == DT_i64 || dt == DT_u64) return v;
  return emit_typed(b, VM_fit, v.lanes, vm_class(dt), &v, 1, dt);
}

static VmVal apply_binary(VmBuild *b, VmOp op, const Expr *e, DType dt, const VmVal *x) {
  bool swap = e->op == OP_gt || e->op == OP_ge, pred = op_info[e->op].res == OR_pred;
  VmVal l = x[swap], r = x[!swap];
  u32 lanes = l.lanes == 1 ? r.lanes : l.lanes;
  u32 form = l.lanes == 1 ? (r.lanes == 1 ? 0 : 3) : r.lanes == 1 ? 2 : 1;
  VmClass cls = pred ? VC_w : vm_class(dt);
  VmVal v = emit_pure(b, (VmOp)(op + form), lanes, cls, (VmVal[]){l, r}, 2);
  bool wraps =
      e->op == OP_add || e->op == OP_sub || e->op == OP_mul || e->op == OP_div || e->op == OP_shl;
  return wraps ? fitted(b, v, dt) : v;
}

static VmVal apply_fma(VmBuild *b, DType dt, VmVal *x, u32 lanes) {
  VmClass cls = vm_class(dt);
  if (lanes == 1) return emit_pure(b, cls == VC_f ? VM_fma_f : VM_fma_d, 1, cls, x, 3);
  if (x[0].lanes == 1) {
    VmVal t = x[0];
    x[0] = x[1];
    x[1] = t;
  }
  for (u32 i = 0; i < 3; i += 2) x[i] = widen_val(b, x[i], cls, lanes);
  VmOp op = cls == VC_f ? VM_vfma_f : VM_vfma_d;
  if (x[1].lanes == 1) op = (VmOp)(op + 1);
  return emit_pure(b, op, lanes, cls, x, 3);
}

static VmVal apply_dot(VmBuild *b, Op op, VmVal *x, u32 lanes) {
  bool one = x[0].lanes == 1 && lanes != 1;
  for (u32 i = one; i < 3; i++) x[i] = widen_val(b, x[i], VC_w, lanes);
  VmOp code = op == OP_dot_i8x4 ? VM_vdot_i8x4 : VM_vdot_i16x2;
  return emit_pure(b, (VmOp)(code + one), lanes, VC_w, x, 3);
}

static VmVal apply_general(VmBuild *b, const Expr *e, DType of, VmVal *x, u32 lanes) {
  for (u32 i = 0; i < e->narg; i++)
    x[i] = widen_val(b, x[i], e->op == OP_select && !i ? VC_w : vm_class(of), lanes);
  u32 how = vb_operation(b, e->op, of, e->dt);
  VmClass cls = vm_class(e->dt);
  if (e->op == OP_select && of != DT_str) {
    static const VmOp sel[] = {
        [VC_f] = VM_vsel_f, [VC_d] = VM_vsel_d, [VC_w] = VM_vsel_w, [VC_l] = VM_vsel_l};
    return emit_pure(b, sel[cls], lanes, cls, x, 3);
  }
  if (e->op == OP_requant) return emit_pure(b, VM_requant, lanes, cls, x, 3);
  if (e->narg == 1 && op_info[e->op].res == OR_same && (cls == VC_f || cls == VC_d)) {
    VmVal v = emit_typed(b, cls == VC_f ? VM_fun_f : VM_fun_d, lanes, cls, x, 1, how);
    return fitted(b, v, of); /* the general instruction has already rounded */
  }
  return emit_typed(b, (VmOp)(VM_gen1 + e->narg - 1), lanes, cls, x, e->narg, how);
}

/* Does a register hold every value of one type as the same value of the other? */
static bool holds(Op op, DType of, DType to) {
  VmClass from = vm_class(of), cls = vm_class(to);
  if (op == OP_bitcast)
    return dtype_bytes(of) == dtype_bytes(to) && dtype_bytes(of) == vm_class_bytes(from) &&
           dtype_bytes(to) == vm_class_bytes(cls);
  bool byte = of == DT_u8 || of == DT_bool;
  return of == to || (from == VC_w && to == DT_i32) || (byte && (to == DT_i16 || to == DT_u16)) ||
         (of == DT_i8 && to == DT_i16);
}

static VmVal apply_convert(VmBuild *b, const Expr *e, DType of, VmVal x) {
  if (holds(e->op, of, e->dt)) return x;
  u32 how = (u32)of | (u32)e->dt << 8 | (u32)e->sat << 16;
  return emit_typed(b, e->op == OP_cast ? VM_cast : VM_bits, x.lanes, vm_class(e->dt), &x, 1, how);
}

static VmVal compile_op(VmBuild *b, const Expr *e) {
  VmVal x[3] = {{0}};
  if (vm_quantize(b, e, x)) return *x;
  DType of = prog_expr(b->p, e->arg[e->narg - 1])->dt;
  u32 lanes = 1;
  for (u32 i = 0; i < e->narg; i++) {
    x[i] = vb_compile(b, e->arg[i]);
    if (x[i].lanes != 1) lanes = x[i].lanes;
  }
  VmOp op = e->narg == 2 ? binary(e->op, of) : 0;
  if (op) return apply_binary(b, op, e, of, x);
  if (e->op == OP_cast || e->op == OP_bitcast) return apply_convert(b, e, of, x[0]);
  if (e->op == OP_fma) return fitted(b, apply_fma(b, of, x, lanes), of);
  if (e->op == OP_dot_i8x4 || e->op == OP_dot_i16x2) return apply_dot(b, e->op, x, lanes);
  if (lanes == 1 && of == DT_i64 && (e->op == OP_div || e->op == OP_mod))
    return emit_int(b, e->op == OP_div ? VM_div_l : VM_mod_l, x[0], x[1]);
  return apply_general(b, e, of, x, lanes);
}

static VmVal compile_shuffle(VmBuild *b, const Expr *e) {
  VmClass cls = vm_class(e->dt);
  u32 per = prog_expr(b->p, e->arg[0])->lanes, to = new_reg(b, cls, e->lanes);
  for (u32 k = 0; k < e->narg; k++) {
    u32 w[3 + MAX_LANES / 4] = {0};
    u8 *pick = (u8 *)(w + 3);
    bool any = false;
    for (u32 i = 0; i < e->lanes; i++) {
      bool here = e->pick[i] / per == k;
      pick[i] = here ? (u8)(e->pick[i] % per) : 255;
      any |= here;
    }
    if (!any) continue;
    w[0] = to;
    w[1] = widen_val(b, vb_compile(b, e->arg[k]), cls, per).reg;
    w[2] = per;
    emit_effect(b, vm_class_bytes(cls) == 4 ? VM_pick_w : VM_pick_l, e->lanes, w,
                3 + (e->lanes + 3) / 4);
  }
  return (VmVal){to, b->cur + 1, e->lanes};
}

/* A buffer of one element that no run changes is folded, or loaded once. */
static bool load_only(VmBuild *b, const Expr *e, VmVal *to) {
  const Buf *buf = prog_buf(b->p, e->ref);
  const TypedAccess *a = &typed[buf->dt];
  VmClass cls = vm_class(buf->dt);
  i64 k;
  if (buf->alias || e->lanes != 1 || (buf->space != BS_const && buf->space != BS_in)) return false;
  for (u32 i = 0; i < buf->rank; i++)
    if (buf->dim[i] != 1 || !ex_is_int(b->p, e->arg[i], &k) || k) return false;
  if (buf->space == BS_const && buf->dt != DT_str && cls != VC_none) {
    *to = vb_constant(b, buf->dt, tensor_get(buf->data, 0));
    return true;
  }
  if (buf->space != BS_in || !a->ld) return false;
  *to = emit_pure(b, a->ld, 1, cls, (VmVal[]){{b->buf[e->ref], 0, 1}, vb_integer(b, 0), {0}}, 3);
  return true;
}

static VmVal compile_load(VmBuild *b, const Expr *e) {
  VmVal known;
  if (vb_in_registers(b, e->ref, e->arg, &known) || load_only(b, e, &known)) return known;
  VmAddr at = vb_place(b, e->ref, e->arg);
  return load_from(b, &at, e->lanes);
}

static VmVal compile_random(VmBuild *b, const Expr *e) {
  VmVal seed = vb_compile(b, e->arg[0]), at = vb_compile(b, e->arg[1]);
  u32 lanes = seed.lanes == 1 ? at.lanes : seed.lanes;
  seed = widen_val(b, seed, VC_l, lanes);
  at = widen_val(b, at, VC_l, lanes);
  return vb_result(b, VM_random, lanes, vm_class(e->dt), (u32[]){seed.reg, at.reg, e->dt}, 3);
}

static VmVal row_counter(VmBuild *b) {
  if (!b->row.iota.reg)
    b->row.iota =
        vb_result(b, VM_iota, 0, VC_l, (u32[]){b->row.at.reg, vb_integer(b, b->row.step).reg}, 2);
  b->def = 0; /* it may be read again */
  return b->row.iota;
}

VmVal vb_compile(VmBuild *b, ExprId id) {
  const Expr *e = prog_expr(b->p, id);
  switch (e->kind) {
  case EX_const: return vb_constant(b, e->dt, e->imm);
  case EX_var: return e->ref == b->row.var ? row_counter(b) : read_var(b, e->ref);
  case EX_load: return compile_load(b, e);
  case EX_op: return compile_op(b, e);
  case EX_splat: return vb_compile(b, e->arg[0]);
  case EX_hreduce: {
    const Expr *a = prog_expr(b->p, e->arg[0]);
    VmVal x = widen_val(b, vb_compile(b, e->arg[0]), vm_class(a->dt), a->lanes);
    VmVal to = vb_result(b, VM_reduce, a->lanes, vm_class(e->dt),
                         (u32[]){x.reg, vb_operation(b, e->op, e->dt, e->dt)}, 2);
    to.lanes = 1;
    return to;
  }
  case EX_shuffle: return compile_shuffle(b, e);
  case EX_quad: {
    const Expr *a = prog_expr(b->p, e->arg[0]);
    VmAddr at = vb_place(b, a->ref, a->arg);
    return vb_result(b, VM_quad, 1, VC_w, (u32[]){at.buf, at.at.reg, (u32)(i32)at.k, at.dt}, 4);
  }
  case EX_random: return compile_random(b, e);
  default: return (VmVal){0};
  }
}
