/* lower_flat.c: merges axes of elementwise groups.
 *
 * In: the root of a group of elementwise operators without a reduction, some of them inlined. Out:
 * its form with neighboring axes merged, where each value of the group has both axes or is
 * broadcast along both. An image of 7x7 points becomes a row of 49, so that a vector may be longer
 * than an image row. Between flat_begin and flat_end the buffers of the group are views of the
 * merged shape. Inlined values, which have no memory, get placeholder buffers of that shape. Groups
 * without inlined values are left to form_merge.c. Neither merges the outermost axis, since
 * loop_fuse.c fuses kernels along it.
 */
#include "pass/lower/lower.h"

/* Adds v to the group and, if it is inlined, its operands recursively. False: some value is not a
 * map or not row-major. */
static bool collect(FlatMaps *s, Val v) {
  Lower *l = s->l;
  const Storage *at = storage_of(l, l->buf[v]);
  for (u32 i = 0; i < s->n; i++)
    if (s->at[i].v == v) return true;
  if (s->n == FLAT_VALUES) return false;
  if (at->layout) return false;
  s->at[s->n++] = (FlatValue){.v = v, .was = l->buf[v]};
  if (at->kind == SK_memory) return prog_buf(l->p, prog_root(l->p, l->buf[v]))->space != BS_state;
  if (at->kind != SK_inlined) return false;
  const Node *n = graph_node(l->g, graph_val(l->g, v)->def);
  if (op_info[n->op].kind != OK_MAP && n->op != OP_broadcast) return false;
  s->inlined = true;
  for (u32 i = 0; i < n->nin; i++)
    if (!collect(s, n->in[i])) return false;
  return true;
}

/* Shape of v, broadcast to the rank of the result; false: an extent is unknown or 0. */
static bool extents(const FlatMaps *s, Val v, Dim *dim) {
  const Type *t = graph_type(s->l->g, v);
  u32 skip = s->rank - t->rank;
  if (t->rank > s->rank) return false;
  for (u32 i = 0; i < s->rank; i++) {
    dim[i] = i < skip ? 1 : t->dim[i - skip];
    if (!dim_is_const(dim[i]) || !dim[i]) return false;
  }
  return true;
}

/* Is each value of the group broadcast along both axes, or along neither? */
static bool together(const FlatMaps *s, u32 a, u32 b) {
  for (u32 i = 0; i < s->n; i++)
    if ((s->at[i].dim[a] == 1) != (s->at[i].dim[b] == 1)) return false;
  return true;
}

/* into: by axis, the merged axis that contains it. Returns the number of merged axes; 0: none can
 * be merged. */
static u32 merge_axes(const FlatMaps *s, u32 *into) {
  const Dim *all = s->at[0].dim;
  u32 n = 0, last = 0;
  bool any = false;
  for (u32 i = 0; i < s->rank; i++) {
    into[i] = n ? n - 1 : 0;
    if (all[i] == 1) continue;
    if (n > 1 && together(s, last, i))
      any = true;
    else
      into[i] = n++;
    last = i;
  }
  return any ? n : 0;
}

/* The buffer of x in its new shape. */
static BufId flat_buf(FlatMaps *s, const FlatValue *x, const Dim *dim, u32 rank) {
  Lower *l = s->l;
  const Storage *at = storage_of(l, x->was);
  if (at->kind != SK_inlined) return form_view(l->p, &l->once, x->was, dim, rank);
  const Buf b = *prog_buf(l->p, x->was);
  BufId made = prog_add_buf(l->p, BS_temp, b.dt, dim, rank, b.name);
  *map_put(&l->places.by_buf, made) = x->v;
  return made;
}

bool flat_begin(Lower *l, const Node *n, Form *f, FlatMaps *s) {
  u32 into[MAX_RANK];
  *s = (FlatMaps){.l = l, .root = n->out[0]};
  if (op_info[n->op].kind != OK_MAP || f->reduce || f->out.buf != l->buf[s->root] ||
      !collect(s, s->root))
    return false;
  for (u32 i = 0; i < n->nin; i++)
    if (!collect(s, n->in[i])) return false;
  s->rank = graph_type(l->g, s->root)->rank;
  if (!s->inlined) return false;
  for (u32 i = 0; i < s->n; i++)
    if (!extents(s, s->at[i].v, s->at[i].dim)) return false;
  u32 rank = merge_axes(s, into);
  if (!rank) return false;
  for (u32 i = 0; i < s->n; i++) {
    Dim dim[MAX_RANK];
    for (u32 k = 0; k < rank; k++) dim[k] = 1;
    for (u32 k = 0; k < s->rank; k++)
      dim[into[k]] = dim_mul(l->p->dims, dim[into[k]], s->at[i].dim[k]);
    l->buf[s->at[i].v] = flat_buf(s, &s->at[i], dim, rank);
  }
  if (!form_of(l->g, n, l->p, l->buf, f))
    internal_error(l->c, n->loc, "%s has no form", op_info[n->op].name);
  return true;
}

void flat_end(FlatMaps *s) {
  for (u32 i = 0; i < s->n; i++) s->l->buf[s->at[i].v] = s->at[i].was;
}
