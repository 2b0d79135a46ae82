/* tile_lut.c: lookup tables for functions of one byte.
 *
 * In: a map whose value depends on one byte of memory and on constants, and calls a function such
 * as exp or tanh. Such maps are activations of quantized networks, with their scaling and rounding.
 * Out: a constant table of the 256 values, computed by the evaluator (eval.c), and a load from it
 * for each lane. Results are bit-exact.
 *
 * Maps of multiplications and rounding only are left alone, because vector arithmetic is faster
 * than loads lane by lane.
 */
#include "pass/kernel/tile.h"

enum { BYTES = 256 };

/* Dependencies of an expression. */
typedef struct ByteUse {
  Prog *p;
  ExprId load;    /* load of the byte; 0: none yet */
  bool functions; /* calls a function */
  bool other;     /* depends on something else */
} ByteUse;

static void look(ByteUse *u, ExprId id) {
  const Expr x = *prog_expr(u->p, id);
  if (x.kind == EX_const || u->other) return;
  if (x.kind == EX_load && x.lanes == 1 && (x.dt == DT_u8 || x.dt == DT_i8)) {
    if (u->load && !ex_same(u->p, u->load, id)) u->other = true;
    u->load = id;
    return;
  }
  u->other = x.kind != EX_op || x.op == OP_bitcast;
  u->functions = u->functions || scalar_is_fast(x.op, x.dt);
  for (u32 i = 0; i < x.narg && !u->other; i++) look(u, x.arg[i]);
}

/* Evaluates e for this value of the byte. */
static Scalar value_at(Prog *p, ExprId id, i64 byte) {
  const Expr *x = prog_expr(p, id);
  Scalar arg[4];
  if (x->kind == EX_const) return x->imm;
  if (x->kind == EX_load) return (Scalar){.i = byte};
  for (u32 i = 0; i < x->narg; i++) arg[i] = value_at(p, x->arg[i], byte);
  DType from = prog_expr(p, x->arg[x->narg - 1])->dt;
  if (x->op == OP_cast) return scalar_cast(from, x->dt, arg[0], x->sat);
  return scalar_eval_as(p->math, x->op, from, arg);
}

/* Load of the byte that `value` depends on; 0: it depends on something else. */
static ExprId byte_of(Prog *p, ExprId value) {
  ByteUse u = {.p = p};
  look(&u, value);
  return u.functions && !u.other ? u.load : 0;
}

BufId tile_lut(Tile *t) {
  Prog *p = t->p;
  if (t->f.reduce || t->l->pass->aim == AIM_size) return 0;
  Tensor *to = NULL;
  ProgMark mark = trial_begin(t);
  Nest x = tile_nest(t, prog_end());
  ExprId value = nest_value(&x), load = byte_of(p, value);
  DType dt = prog_expr(p, value)->dt;
  u32 size = dtype_bytes(dt);
  if (load && size <= 2) {
    i64 least = prog_expr(p, load)->dt == DT_i8 ? -BYTES / 2 : 0;
    to = tensor_new(&p->c->keep, dt, (i64[]){BYTES}, 1);
    for (i64 i = 0; i < BYTES; i++)
      scalar_store(dt, (u8 *)(uintptr_t)to->data + i * size, value_at(p, value, least + i));
  }
  trial_end(t, mark);
  return to ? prog_add_const(p, to, str_of(p->c, "table")) : 0;
}

void tile_lut_store(Tile *t, Cursor at) {
  Prog *p = t->p;
  ExprId first = tile_first(t);
  for (u32 k = 0; k < t->lanes; k++) {
    t->at.val[t->axis.lane] = ex_op2(p, OP_add, ex_copy(p, first), ex_int(p, k));
    Nest x = tile_nest(t, at);
    ExprId byte = ex_copy(p, byte_of(p, nest_value(&x)));
    ExprId i = ex_cast(p, DT_i64, byte, false);
    if (prog_expr(p, byte)->dt == DT_i8) i = ex_op2(p, OP_add, i, ex_int(p, BYTES / 2));
    nest_store(&x, ex_load(p, t->table, &i, 1));
    at = x.at;
  }
}
