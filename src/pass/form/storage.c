/* storage.c: where values live, and the address of their elements.
 *
 * In: a graph whose values have homes and layouts. Out: a Storage for each value, buffers, and the
 * load or address of any element. A value that is not row-major memory has a placeholder buffer
 * with the dimensions of its type, from which forms are built. A load or store translates the
 * index: channels split into block and lane, and the border is added. A load of an inlined value
 * becomes its expression. A value whose only user is a concat is written directly to its slot in
 * the result. The border of a layout is written right before the kernel that writes the inside.
 * lower_state.c decides how states are stored.
 */
#include "pass/form/nest.h"

#include "ir/prog/affine.h"
#include "ir/lexer.h"

/* ---- slots of a concat ---- */

/* Is the shape of the whole known when the part is computed? Data symbols (SY_data) are known if
 * they occur in the shape of the part itself. */
static bool is_settled(Lower *l, const Type *whole, const Type *part) {
  Dims *ds = l->g->dims;
  u32 n = dim_nsyms(ds);
  bool *need = NEWS(&l->c->scratch, bool, n + 1), *have = NEWS(&l->c->scratch, bool, n + 1);
  for (u32 i = 0; i < whole->rank; i++) dims_mark_used(ds, whole->dim[i], need);
  for (u32 i = 0; i < part->rank; i++) dims_mark_used(ds, part->dim[i], have);
  for (Sym s = 0; s < n; s++)
    if (need[s] && !have[s] && dim_syminfo(ds, s)->kind == SY_data) return false;
  return true;
}

/* Finds values whose only user is a concat of the same region, and writes them to their slots. */
static void slots_find(Lower *l) {
  Graph *g = l->g;
  RegionId *block = NEWS(&l->c->scratch, RegionId, g->node.n);
  u32 *uses = NEWS(&l->c->scratch, u32, g->val.n);
  graph_use_counts(g, uses);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) block[g->region.at[b].node.at[i]] = b;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      if (n->op != OP_concat) continue;
      u32 axis = (u32)node_int(n, AT_axis, 0);
      Dim at = 0;
      for (u32 k = 0; k < n->nin; k++) {
        const Value *v = graph_val(g, n->in[k]);
        if (uses[n->in[k]] == 1 && block[v->def] == b && concat_part_fits(g, n, k) &&
            is_settled(l, graph_type(g, n->out[0]), &v->type))
          l->places.of[n->in[k]] =
              (Storage){.kind = SK_slot, .into = n->out[0], .axis = axis, .offset = at};
        at = dim_add(g->dims, at, v->type.dim[axis]);
      }
    }
}

bool slots_all(Lower *l, const Node *n) {
  if (n->op != OP_concat) return false;
  for (u32 i = 0; i < n->nin; i++)
    if (storage_of(l, l->buf[n->in[i]])->into != n->out[0]) return false;
  return true;
}

void slot_redirect(Lower *l, Form *f) {
  const Storage *s = storage_of(l, f->out.buf);
  if (s->kind != SK_slot) return;
  f->out.buf = lower_temp(l, s->into);
  f->out.idx[s->axis].base = s->offset;
}

/* ---- layouts ---- */

/* Writes the border of dimension d at [from, to): all of the later dimensions, but only the inside
 * of earlier ones, whose borders other calls write. */
static void zero_slab(Lower *l, Cursor at, BufId b, const Layout *y, u32 rank, u32 d, i64 from,
                      i64 to) {
  Prog *p = l->p;
  ExprId idx[MAX_RANK + 1];
  u32 all = prog_buf(p, b)->rank, last = all - 1;
  if (from == to) return;
  for (u32 i = 0; i < last + (all == rank); i++) {
    Dim lo = 0, hi = prog_buf(p, b)->dim[i];
    if (i >= 2 && i < d) {
      lo = y->lo[i];
      hi -= y->hi[i];
    } else if (i == d) {
      lo = from;
      hi = to;
    }
    if (hi == lo + 1)
      idx[i] = ex_int(p, lo);
    else
      idx[i] = ex_var(p, prog_for(p, &at, ex_int(p, lo), ex_dim(p, hi), "i"));
  }
  ExprId zero = ex_const(p, prog_buf(p, b)->dt, (Scalar){.i = y->fill});
  if (all > rank) {
    idx[last] = ex_int(p, 0);
    zero = ex_splat(p, zero, y->block);
  }
  prog_store(p, &at, b, idx, all, zero);
}

/* rest: the last block has fewer channels than lanes. int8 is read in fours and int16 in pairs, so
 * lanes past the last channel are read too. Their weights are 0, but the memory must be
 * initialized. */
static void zero_border(Lower *l, BufId b, const Layout *y, u32 rank, bool rest) {
  bool any = rest;
  for (u32 i = 2; i < rank; i++) any = any || y->lo[i] || y->hi[i];
  if (!any) return;
  Cursor at = lower_small(l, "border", FA_border);
  for (u32 i = 2; i < rank; i++) {
    i64 n = prog_buf(l->p, b)->dim[i];
    zero_slab(l, at, b, y, rank, i, 0, y->lo[i]);
    zero_slab(l, at, b, y, rank, i, n - y->hi[i], n);
  }
  i64 blocks = prog_buf(l->p, b)->dim[1];
  if (rest) zero_slab(l, at, b, y, rank, 1, blocks - 1, blocks);
}

static BufId layout_temp(Lower *l, Val v) {
  Prog *p = l->p;
  const Value *x = graph_val(l->g, v);
  const Layout *y = x->layout;
  const Type *t = &x->type;
  Dim dim[MAX_RANK + 1];
  u32 rank = t->rank;
  for (u32 i = 0; i < rank; i++) dim[i] = t->dim[i] + (i < 2 ? 0 : y->lo[i] + y->hi[i]);
  if (y->block) {
    dim[1] = (dim[1] + y->block - 1) / y->block;
    dim[rank] = y->block;
  }
  BufId name = prog_add_buf(p, BS_temp, t->dt, t->dim, rank, x->name);
  BufId mem = prog_add_buf(p, BS_temp, t->dt, dim, rank + (y->block != 0), x->name);
  Storage *s = &l->places.of[v];
  if (s->kind == SK_memory) s->kind = SK_layout;
  s->mem = mem;
  s->layout = y;
  zero_border(l, mem, y, rank, y->block && t->dim[1] % y->block && dtype_is_narrow_int(t->dt));
  return name;
}

const Type *lower_type(Lower *l, Val v) {
  const Type *t = graph_type(l->g, v);
  if (t->kind != TY_tensor)
    fail(l->c, ERR_unsupported, l->n ? l->n->loc : LOC_NONE, "value \"%s\" is not a tensor",
         show(l->c, graph_val(l->g, v)->name));
  return t;
}

BufId lower_buf(Lower *l, BufSpace space, Val v, Str name) {
  const Type *t = lower_type(l, v);
  return prog_add_buf(l->p, space, t->dt, t->dim, t->rank, name);
}

BufId lower_temp(Lower *l, Val v) {
  if (l->buf[v]) return l->buf[v];
  const Value *x = graph_val(l->g, v);
  l->buf[v] = x->layout ? layout_temp(l, v) : lower_buf(l, BS_temp, v, x->name);
  if (l->places.of[v].kind) *map_put(&l->places.by_buf, l->buf[v]) = v;
  return l->buf[v];
}

void storage_begin(Lower *l) {
  l->places.of = NEWS(&l->c->scratch, Storage, l->g->val.n);
  l->places.by_buf = map_new(&l->c->scratch);
  slots_find(l);
}

const Storage *storage_of(const Lower *l, BufId b) {
  static const Storage memory = {.kind = SK_memory};
  const Val *v = map_get(&l->places.by_buf, b);
  return v ? &l->places.of[*v] : &memory;
}

void storage_address(Lower *l, BufId *b, ExprId *idx, u32 *n, const InnerVars *inner) {
  Prog *p = l->p;
  const Storage *s = storage_of(l, *b);
  const Layout *y = s->layout;
  if (!y) return;
  *b = s->mem;
  for (u32 i = 2; i < *n; i++)
    if (y->lo[i]) idx[i] = ex_op2(p, OP_add, idx[i], ex_int(p, y->lo[i]));
  if (!y->block) return;
  ExprId q, r;
  ex_split(p, idx[1], y->block, inner, &q, &r);
  idx[1] = q;
  idx[(*n)++] = r;
}

ExprId storage_load(Lower *l, BufId b, const ExprId *idx, const ExprScope *in) {
  const Storage *s = storage_of(l, b);
  if (s->kind == SK_inlined && s->value == in->acc) return ex_copy(l->p, in->acc_expr);
  if (s->kind == SK_inlined) return inlined_eval(l, s->value, idx, in);
  ExprId at[MAX_RANK + 1];
  u32 n = prog_buf(l->p, b)->rank;
  for (u32 i = 0; i < n; i++) at[i] = idx[i];
  storage_address(l, &b, at, &n, &in->inner);
  return ex_load(l->p, b, at, n);
}

/* Every access must have gone through storage_address. Others would read memory that is never
 * written. */
void storage_end(Lower *l) {
  Prog *p = l->p;
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    BufId wrong = s->kind == ST_store && layout_of(l, s->buf) ? s->buf : 0;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_load && layout_of(l, x.e->ref)) wrong = x.e->ref;
    if (wrong)
      internal_error(l->c, s->loc, "the placeholder buffer of %s is accessed",
                     show(l->c, prog_buf(p, wrong)->name));
  }
}
