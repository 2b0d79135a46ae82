/* prog_bind.c: values of the symbols that follow from the shapes of the inputs.
 *
 * In: a program and its input tensors. Out: the value of every symbol; those set at run time get
 * their lower bound. Each dimension of an input is an equation. Equations with a single unknown are
 * solved until none is left, then all are checked, except those with a symbol set at run time.
 * Every engine binds through this file. Also finds the symbols that a program sets from its
 * state. */
#include "ir/prog/prog.h"

bool prog_has_state(const Prog *p) {
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf(p, b)->space == BS_state) return true;
  return false;
}

bool prog_is_state_size(const Prog *p, StmtId id, Sym *sym, u64 *at) {
  const Stmt *s = prog_stmt(p, id);
  i32 k = s->kind == ST_set ? prog_var(p, s->var)->sym : -1;
  const Expr *e = k >= 0 && s->a ? prog_expr(p, s->a) : NULL;
  i64 i;
  if (!e || e->kind != EX_load || prog_buf(p, e->ref)->space != BS_state) return false;
  if (e->narg != 1 || !ex_is_int(p, e->arg[0], &i)) return false;
  *sym = (Sym)k;
  *at = prog_buf(p, e->ref)->offset + (u64)i * 8;
  return true;
}

bool prog_caller_knows(const Prog *p, Sym s) {
  Sym kept;
  u64 at;
  if (dim_syminfo(p->dims, s)->kind == SY_input) return true;
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next)
    if (prog_is_state_size(p, id, &kept, &at) && kept == s) return true;
  return false;
}

/* Counts the terms of d that contain an input symbol without a value; *which is the last such
 * symbol. */
static u32 unknown(const Dims *ds, Dim d, const bool *bound, Sym *which, i64 *coef_of) {
  DimTerms f = dim_terms(ds, d);
  u32 count = 0;
  for (u32 i = 0; i < f.n; i++) {
    const SymInfo *s = dim_syminfo((Dims *)ds, f.sym[i]);
    if (s->kind == SY_data || (s->kind == SY_input && bound[f.sym[i]])) continue;
    if (s->kind == SY_derived) {
      Sym sub;
      i64 k;
      if (!unknown(ds, s->a, bound, &sub, &k) && !unknown(ds, s->b, bound, &sub, &k)) continue;
      count++; /* inside div, mod, min, max: not solved */
    }
    *which = f.sym[i];
    *coef_of = f.coef[i];
    count++;
  }
  return count;
}

static _Noreturn void bad_shape(Prog *p, BufId b, u32 axis, i64 found, const char *why) {
  StrBuf t = sb_new(&p->c->scratch);
  dim_print(p->dims, prog_buf(p, b)->dim[axis], &t);
  fail(p->c, ERR_input, LOC_NONE, "input '%s': dimension %u is %lld, expected %s%s",
       show(p->c, prog_buf(p, b)->name), axis, (long long)found, sb_cstr(&t), why);
}

/* Solves dimension = extent for its one symbol without a value. */
static bool solve(Prog *p, BufId b, u32 axis, i64 extent, i64 *env, bool *bound) {
  Dims *ds = p->dims;
  Dim d = prog_buf(p, b)->dim[axis];
  Sym s = 0;
  i64 coef = 0;
  if (dim_is_data(ds, d) || unknown(ds, d, bound, &s, &coef) != 1) return false;
  const SymInfo *si = dim_syminfo(ds, s);
  env[s] = 0;
  i64 rest = extent - dim_eval(ds, d, env);
  if (rest % coef) bad_shape(p, b, axis, extent, "");
  i64 x = rest / coef;
  if (x < si->lo || x > si->hi) {
    const char *why = fmt_text(p->c, " with %s from %lld to %lld", show(p->c, si->name),
                               (long long)si->lo, (long long)si->hi);
    bad_shape(p, b, axis, extent, why);
  }
  env[s] = x;
  bound[s] = true;
  return true;
}

i64 *prog_bind(Prog *p, Tensor *const *in, Arena *a) {
  u32 n = dim_nsyms(p->dims);
  bool *bound = NEWS(a, bool, n + 1), more = true;
  i64 *env = NEWS(a, i64, n + 1);
  for (Sym s = 0; s < n; s++) {
    const SymInfo *si = dim_syminfo(p->dims, s);
    env[s] = si->lo;
    bound[s] = si->kind != SY_derived && si->lo == si->hi;
  }
  while (more) {
    more = false;
    for (u32 i = 0; i < p->in.n; i++) {
      for (u32 k = 0; k < prog_buf(p, p->in.at[i])->rank; k++) {
        if (solve(p, p->in.at[i], k, in[i]->dim[k], env, bound)) more = true;
      }
    }
  }
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    for (u32 k = 0; k < b->rank; k++) {
      i64 extent =
          dim_is_data(p->dims, b->dim[k]) ? in[i]->dim[k] : dim_eval(p->dims, b->dim[k], env);
      if (extent != in[i]->dim[k])
        bad_shape(p, p->in.at[i], k, in[i]->dim[k],
                  dim_is_const(b->dim[k]) ? "" : fmt_text(p->c, " = %lld", (long long)extent));
    }
  }
  for (BufId b = 1; b < p->buf.n; b++) {
    for (u32 k = 0; k < prog_buf(p, b)->rank; k++) {
      Sym s = 0;
      i64 coef;
      if (unknown(p->dims, prog_buf(p, b)->dim[k], bound, &s, &coef))
        fail(p->c, ERR_usage, LOC_NONE, "no input determines the dimension %s",
             show(p->c, dim_syminfo(p->dims, s)->name));
    }
  }
  return env;
}
