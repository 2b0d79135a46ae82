/* A back end as docs/adding.md describes it: a program as Python text that numpy runs.
 *
 * In: a Prog. Out: a function run(inputs by name) -> outputs by name that computes what the
 * interpreter computes; test/make/prog_numpy.py is its library, whose functions begin with op_.
 * Memory is one flat array for each buffer that is no view; a vector is an array, a scalar a number
 * of numpy.
 *
 *   back FILE...   writes FILE.py beside each program; test/suite/pyback.py runs them
 *   back           writes a small one and looks at the text
 */
#include "check.h"
#include "ir/prog/prog.h"
#include "ir/math/quick.h"
#include <math.h>
#include <string.h>

typedef struct Printer {
  Prog *p;
  StrBuf *t;
  u32 depth; /* of indentation */
} Printer;

static const char *const type_name[DT_COUNT] = {
    [DT_f64] = "f64", [DT_f32] = "f32", [DT_f16] = "f16", [DT_i64] = "i64",
    [DT_i32] = "i32", [DT_i16] = "i16", [DT_i8] = "i8",   [DT_u64] = "u64",
    [DT_u32] = "u32", [DT_u16] = "u16", [DT_u8] = "u8",   [DT_bool] = "bool_"};

static const char *const infix[OP_SCALARS] = {
    [OP_add] = " + ", [OP_sub] = " - ", [OP_mul] = " * ", [OP_eq] = " == ",
    [OP_ne] = " != ", [OP_lt] = " < ",  [OP_le] = " <= ", [OP_gt] = " > ",
    [OP_ge] = " >= ", [OP_and] = " & ", [OP_or] = " | ",  [OP_xor] = " ^ "};

static const char *const quick_names[] = {
#define QO(name, function, infix) #name,
#include "ir/math/quick_ops.def"
#undef QO
};

static const char *numpy_type(Printer *o, DType dt) {
  if (!type_name[dt])
    fail(o->p->c, ERR_unsupported, LOC_NONE, "numpy has no type %s", dtype_info[dt].name);
  return type_name[dt];
}

/* A name of the program may be any text: what an identifier can have of it, and a number. */
static void put_name(Printer *o, Str s, char kind, u32 id) {
  for (const char *at = str_text(o->p->c, s); *at; at++)
    if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", *at)) sb_put(o->t, at, 1);
  sb_fmt(o->t, "_%c%u", kind, id);
}

static void put_literal(Printer *o, DType dt, Scalar x) {
  sb_fmt(o->t, "%s(", numpy_type(o, dt));
  if (!dtype_is_float(dt))
    sb_fmt(o->t, dt == DT_u64 ? "%llu" : "%lld", (long long)x.i);
  else if (x.f == 0)
    sb_puts(o->t, signbit(x.f) ? "-0.0" : "0");
  else
    sb_fmt(o->t, "%.17g", x.f); /* inf and nan are names of the library */
  sb_puts(o->t, ")");
}

static void put(Printer *o, const char *form, ...);

static void put_dims(Printer *o, const Buf *b) {
  for (u32 i = 0; i < b->rank; i++) put(o, "$e, ", ex_dim(o->p, b->dim[i]));
}

/* Where the first lane lies in the flat array. */
static void put_place(Printer *o, const Buf *b, const ExprId *idx) {
  for (u32 i = 1; i < b->rank; i++) put(o, "(");
  for (u32 i = 0; i < b->rank; i++) {
    if (i) put(o, " * $e + ", ex_dim(o->p, b->dim[i]));
    put(o, i ? "$e)" : "$e", idx[i]);
  }
  if (!b->rank) put(o, "0");
  if (b->lanes > 1) put(o, " * $n", (i64)b->lanes);
}

static void put_expr(Printer *o, ExprId e);

/* $e expression, $v variable, $b buffer, $p buffer and place (with indices), $d dimensions of a
 * buffer, $t type, $n number, $s text, $q text in quotes, $l a new line */
static void put(Printer *o, const char *form, ...) {
  va_list args;
  va_start(args, form);
  for (; *form; form++) {
    if (*form != '$') {
      sb_put(o->t, form, 1);
      continue;
    }
    switch (*++form) {
    case 'e': put_expr(o, va_arg(args, u32)); break;
    case 'v': {
      VarId v = va_arg(args, u32);
      put_name(o, prog_var(o->p, v)->name, 'v', v);
      break;
    }
    case 'b':
    case 'p': {
      BufId b = va_arg(args, u32), root = prog_root(o->p, b);
      put_name(o, prog_buf(o->p, root)->name, 'b', root);
      if (*form == 'b') break;
      sb_puts(o->t, ", ");
      put_place(o, prog_buf(o->p, b), va_arg(args, const ExprId *));
      break;
    }
    case 'd': put_dims(o, prog_buf(o->p, va_arg(args, u32))); break;
    case 't': sb_puts(o->t, numpy_type(o, va_arg(args, DType))); break;
    case 'n': sb_fmt(o->t, "%lld", (long long)va_arg(args, i64)); break;
    case 's': sb_puts(o->t, va_arg(args, const char *)); break;
    case 'q': {
      Str s = va_arg(args, u32);
      sb_quote(o->t, str_text(o->p->c, s), str_len(o->p->c, s));
      break;
    }
    default: sb_fmt(o->t, "\n%*s", (int)(2 * o->depth), "");
    }
  }
  va_end(args);
}

static void put_operands(Printer *o, const Expr *e, const char *between, const char *behind) {
  for (u32 i = 0; i < e->narg; i++) put(o, "$s$e$s", i ? between : "", e->arg[i], behind);
}

static void put_op(Printer *o, const Expr *e) {
  DType of = prog_expr(o->p, e->arg[e->narg - 1])->dt;
  const char *name = op_info[e->op].name;
  MathMode part = scalar_math_mode(o->p->math, e->op, of);
  if (op_info[e->op].res == OR_to) {
    put(o, "op_$s($e, $t$s)", name, e->arg[0], e->dt, e->sat ? ", True" : "");
    return;
  }
  if (infix[e->op])
    put(o, "(");
  else if (part == MM_q || part == MM_u)
    put(o, "$s$s(", name, part == MM_q ? "q" : "u");
  else
    put(o, "op_$s(", name);
  bool narrow = dtype_is_float(of) && dtype_bytes(of) < 4 && op_info[e->op].res == OR_same;
  put_operands(o, e, infix[e->op] ? infix[e->op] : ", ", narrow ? ".astype(f32)" : "");
  put(o, ")");
  if (narrow) put(o, ".astype($t)", e->dt);
}

static void put_expr(Printer *o, ExprId id) {
  const Expr *e = prog_expr(o->p, id);
  if (e->rows) fail(o->p->c, ERR_unsupported, LOC_NONE, "numpy has no fragments");
  switch (e->kind) {
  case EX_const: put_literal(o, e->dt, e->imm); break;
  case EX_var: put(o, "$v", e->ref); break;
  case EX_load: put(o, "op_load($p, $n)", e->ref, e->arg, (i64)e->lanes); break;
  case EX_op: put_op(o, e); break;
  case EX_splat: put(o, "np.full($n, $e)", (i64)e->lanes, e->arg[0]); break;
  case EX_hreduce: put(o, "reduce(op_$s, $e)", op_info[e->op].name, e->arg[0]); break;
  case EX_shuffle:
    put(o, "np.concatenate((");
    put_operands(o, e, "", ", ");
    put(o, "))[[");
    for (u32 i = 0; i < e->lanes; i++) put(o, "$n, ", (i64)e->pick[i]);
    put(o, "]]");
    break;
  case EX_quad: put(o, "$e.view(i32)[0]", e->arg[0]); break;
  default: put(o, "op_random($t, $e, $e)", e->dt, e->arg[0], e->arg[1]);
  }
}

static void put_stmt(Printer *o, const Stmt *s);

static void put_list(Printer *o, StmtId first) {
  o->depth++;
  if (!first) put(o, " pass");
  for (StmtId id = first; id; id = prog_stmt(o->p, id)->next) put_stmt(o, prog_stmt(o->p, id));
  o->depth--;
}

static void put_stmt(Printer *o, const Stmt *s) {
  switch (s->kind) {
  case ST_for:
    put(o, "$lfor $v in map(i64, range($e, $e, $n)):", s->var, s->a, s->b, s->step);
    put_list(o, s->body);
    break;
  case ST_while:
  case ST_if:
    put(o, "$l$s $e:", s->kind == ST_if ? "if" : "while", s->a);
    put_list(o, s->body);
    if (!s->other) break;
    put(o, "$lelse:");
    put_list(o, s->other);
    break;
  case ST_let:
  case ST_set: put(o, "$l$v = $e", s->var, s->a); break;
  case ST_store: put(o, "$lop_store($p, $e)", s->buf, s->idx, s->a); break;
  case ST_kernel:
    put(o, "$lif True: # $q", s->label);
    put_list(o, s->body);
    break;
  case ST_require: put(o, "$lop_require($e, $q)", s->a, s->label); break;
  default: /* a barrier: what is loaded where the program says needs none */ put(o, "$lpass");
  }
}

/* A symbol of inputs is bound where it is all of an extent. */
static void put_symbols(Printer *o, const Buf *b) {
  Sym sym;
  for (u32 i = 0; i < b->rank; i++)
    if (dim_is_sym(o->p->dims, b->dim[i], SY_input, &sym))
      put(o, "$l$v = i64(given[$q].shape[$n])", prog_sym_var(o->p, sym), b->name, (i64)i);
}

/* outer: what lives longer than a run. */
static void put_memory(Printer *o, bool outer) {
  for (BufId id = 1; id < o->p->buf.n; id++) {
    const Buf *b = prog_buf(o->p, id);
    bool stays = b->space == BS_const || b->space == BS_state;
    i64 lo, hi, n = b->lanes;
    if (b->alias || b->space == BS_in || stays != outer) continue;
    for (u32 i = 0; i < b->rank; i++, n *= hi) {
      dim_bounds(o->p->dims, b->dim[i], &lo, &hi);
      if (hi == DIM_MAX) fail(o->p->c, ERR_unsupported, LOC_NONE, "a size has no bound");
    }
    if (b->space == BS_const) {
      put(o, "$l$b = op_data($t, \"", id, b->dt);
      for (u64 i = 0; i < tensor_bytes(b->data); i++)
        sb_fmt(o->t, "%02x", ((const u8 *)b->data->data)[i]);
      put(o, "\")");
    } else
      put(o, "$l$b = op_room($t, $n)", id, b->dt, n);
  }
}

static void put_quick(Printer *o, const Quick *q) {
  put(o, "$ldef $s(", q->name);
  for (u32 i = 0; i < q->nparam; i++) put(o, "s$n, ", (i64)i);
  put(o, "):");
  for (u32 i = q->nparam; i < q->n; i++) {
    const QuickStep *s = &q->step[i];
    put(o, "$l  s$n = ", (i64)i);
    if (s->op == QO_const) {
      put_literal(o, s->bits ? DT_u32 : DT_f32, s->value);
      continue;
    }
    put(o, "$s$s(", s->op == QO_call ? "" : "op_", s->op == QO_call ? s->text : quick_names[s->op]);
    for (u32 k = 0; k < s->n; k++) put(o, "s$n, ", (i64)s->arg[k]);
    if (s->op == QO_shl || s->op == QO_shr) put_literal(o, DT_u32, s->value);
    put(o, ")");
  }
  put(o, "$l  return s$n", (i64)q->result);
}

static void write_python(Prog *p, StrBuf *t) {
  Printer o = {p, t, 0};
  Quick q;
  put(&o, "from prog_numpy import *");
  for (u32 i = 0; p->math != MM_f && quick_make(&q, i); i++) put_quick(&o, &q);
  put_memory(&o, true);
  put(&o, "$ldef run(given):");
  o.depth = 1;
  for (u32 i = 0; i < p->in.n; i++) put_symbols(&o, prog_buf(p, p->in.at[i]));
  for (u32 i = 0; i < p->in.n; i++) {
    BufId b = p->in.at[i];
    put(&o, "$l$b = op_input(given[$q], $t, ($d))", b, prog_buf(p, b)->name, prog_buf(p, b)->dt, b);
  }
  put_memory(&o, false);
  o.depth = 0;
  put_list(&o, p->body);
  put(&o, "$l  return {");
  for (u32 i = 0; i < p->out.n; i++)
    put(&o, "$q: op_output($b, ($d)), ", prog_buf(p, p->out.at[i])->name, p->out.at[i],
        p->out.at[i]);
  put(&o, "}\n");
}

/* arg: a path, or NULL: a small program, at whose text we look. */
static void write_one(Ctx *c, void *arg) {
  static const char small[] = "prog double\nsym n in 1..4\nbuf x: in f32[n]\nbuf y: out f32[n]\n"
                              "for i in 0..n { y[i] = x[i] * 2.0 }\n";
  File f = arg ? file_read(c, arg) : (File){(const u8 *)small, sizeof small - 1, false};
  c->here.file = str_of(c, arg ? arg : "small");
  Prog *p = prog_parse(c, (const char *)f.at, f.n, c->here.file, NULL, 0);
  prog_check_input(p);
  StrBuf t = sb_new(&c->keep);
  write_python(p, &t);
  if (arg)
    file_write(c, str_text(c, str_fmt(c, "%s.py", (const char *)arg)), t.at, t.n);
  else
    CHECK(strstr(sb_cstr(&t), "op_store(y_b2, i_v2, (op_load(x_b1, i_v2, 1) * f32(2)))"));
}

int main(int argc, char **argv) {
  Err worst = ERR_ok;
  for (int i = 1; i == 1 || i < argc; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    Err e = ctx_protect(c, write_one, argv[i]);
    if (e > worst) worst = e;
    for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "%s\n", d->text);
    ctx_free(c);
  }
  return worst ? (int)worst : check_end();
}
