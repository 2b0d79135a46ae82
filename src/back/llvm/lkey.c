/* lkey.c: keys of kernels. Two keys are equal only if one function can serve both kernels.
 *
 * Buffers and variables are numbered by first use and names are left out, so layers of equal shapes
 * have equal keys. The key of the whole program names its file in the cache. */
#include "back/llvm/llvm.h"
#include "ir/prog/prog_mem.h"

typedef struct KernelKey {
  LlvmGen *g;
  StrBuf t;
  Map buf, var; /* id -> 1 + number */
  bool whole;   /* key of the program: ids are kept */
} KernelKey;

static void put(KernelKey *k,
                u64 x) { /* LEB128-like: seven bits per byte, the eighth marks the last */
  u8 byte[10];
  u32 n = 0;
  for (; x > 127; x >>= 7) byte[n++] = (u8)(x & 127);
  byte[n++] = (u8)(x | 128);
  sb_put(&k->t, byte, n);
}

static void put_id(KernelKey *k, Map *m, u32 id) {
  u32 *slot = k->whole ? &id : map_put(m, id);
  if (!*slot) *slot = m->n;
  put(k, *slot);
}

static void put_expr(KernelKey *k, ExprId id) {
  if (!id) {
    put(k, EX_COUNT);
    return;
  }
  const Expr *x = prog_expr(k->g->p, id);
  put(k, x->kind);
  put(k, x->dt);
  put(k, x->lanes);
  put(k, x->op << 2 | x->small << 1 | x->sat);
  if (x->kind == EX_const) put(k, (u64)x->imm.i);
  if (x->kind == EX_var) put_id(k, &k->var, x->ref);
  if (x->kind == EX_load) put_id(k, &k->buf, x->ref);
  if (x->kind == EX_shuffle) sb_put(&k->t, x->pick, x->lanes);
  put(k, x->narg);
  for (u32 i = 0; i < x->narg; i++) put_expr(k, x->arg[i]);
}

static void put_list(KernelKey *k, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(k->g->p, id)->next) {
    const Stmt *s = prog_stmt(k->g->p, id);
    put(k, s->kind);
    put(k, s->flags);
    put(k, (u64)s->step);
    put_id(k, &k->var, s->var);
    put_id(k, &k->buf, s->buf);
    put_expr(k, s->a);
    put_expr(k, s->b);
    put(k, s->nidx);
    for (u32 i = 0; i < s->nidx; i++) put_expr(k, s->idx[i]);
    if (k->whole) put(k, s->into);
    if (k->whole && s->kind == ST_require) put(k, llvm_status_of(k->g, s));
    put_list(k, s->body);
    put_list(k, s->other);
  }
  put(k, ST_COUNT);
}

/* Writes the terms, since expression ids depend on the table. */
static void put_dim(KernelKey *k, Dim d) {
  DimTerms t = dim_terms(k->g->p->dims, d);
  put(k, (u64)t.k0);
  put(k, t.n);
  for (u32 i = 0; i < t.n; i++) {
    put(k, t.sym[i]);
    put(k, (u64)t.coef[i]);
  }
}

static void put_buf(KernelKey *k, BufId b) {
  const Buf *x = prog_buf(k->g->p, b);
  put_id(k, &k->buf, b);
  put(k, x->dt);
  put(k, x->lanes);
  put(k, x->rank);
  for (u32 i = 0; i < x->rank; i++) put_dim(k, x->dim[i]);
}

StrBuf kernel_key(LlvmGen *g, StmtId first, const KernelParams *u) {
  Arena *a = &g->c->scratch;
  KernelKey k = {.g = g, .t = sb_new(a), .buf = map_new(a), .var = map_new(a)};
  const Stmt *s;
  for (u32 i = 0; i < u->buf.n; i++) put_buf(&k, u->buf.at[i]);
  for (u32 i = 0; i < u->var.n; i++) put_id(&k, &k.var, u->var.at[i]);
  for (StmtVisit w = prog_visit(g->p, first); (s = prog_next(&w));) /* shapes of registers */
    if (s->kind == ST_store && prog_buf(g->p, s->buf)->space == BS_reg) put_buf(&k, s->buf);
  put_list(&k, first);
  return k.t;
}

/* Everything that the code depends on. Constants are passed at run time. The texts of requires are
 * left out, but which of them are equal is included, since it determines the statuses. */
StrBuf program_key(LlvmGen *g) {
  Arena *a = &g->c->scratch;
  Prog *p = g->p;
  KernelKey k = {.g = g, .t = sb_new(a), .buf = map_new(a), .var = map_new(a), .whole = true};
  sb_fmt(&k.t, "%s LLVM %u %s %s %s %s %u", g->o->maker, g->l->version, g->triple, g->cpu,
         g->features, g->o->target->name, p->math);
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    const SymInfo *info = dim_syminfo(p->dims, s);
    const Dim part[2] = {info->a, info->b};
    put(&k, info->kind);
    put(&k, (u64)info->lo);
    put(&k, (u64)info->hi);
    put(&k, info->op);
    for (u32 i = 0; info->kind == SY_derived && i < 2; i++) put_dim(&k, part[i]);
  }
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    put_buf(&k, b);
    put(&k, x->space);
    put(&k, x->alias);
    put(&k, x->offset);
  }
  for (VarId v = 1; v < p->var.n; v++) {
    put(&k, prog_var(p, v)->dt);
    put(&k, (u64)(i64)prog_var(p, v)->sym);
  }
  put_list(&k, p->body);
  return k.t;
}
