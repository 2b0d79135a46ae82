/* tile_pack.c: operands in the order in which a kernel reads them.
 *
 * In: the index map of an operand. Out: [axes outside of the panels, panels, folded axes, lanes],
 * zeros where the last panel or block has no element: every step of the fold reads the next vector.
 * A constant is brought into this order now, other operands while the kernel runs, anew for every
 * point of the axes outside of the panels.
 */
#include <string.h>
#include "pass/tile.h"

/* One dimension of the packed order. */
typedef struct Place {
  enum { PL_axis, PL_panel, PL_block, PL_within, PL_lane } kind;
  u32 axis;
  i64 n;
} Place;

typedef struct Places {
  u32 n;
  Place at[FORM_AXES + 4];
} Places;

static Dim whole(const Axis *a) {
  return a->whole ? a->whole : a->hi;
}

static Places places_of(const Tile *t, u32 k) {
  Places q = {0};
  const Operand *o = &t->f.in[k];
  const Form *f = &t->f;
  i64 lanes = f->axis[t->lane].hi;
  for (u32 i = 0; i < f->naxes && !t->fresh[k]; i++)
    if (!f->axis[i].fold && i != t->lane && i != t->row && operand_moves(o, i))
      q.at[q.n++] = (Place){PL_axis, i, f->axis[i].hi};
  q.at[q.n++] = (Place){PL_panel, t->lane, (lanes + t->lanes - 1) / t->lanes};
  for (u32 i = 0; i < f->naxes; i++) {
    if (!f->axis[i].fold || !operand_moves(o, i)) continue;
    if (i == t->split)
      q.at[q.n++] = (Place){PL_block, i, (f->axis[i].hi + t->block - 1) / t->block};
    else
      q.at[q.n++] = (Place){PL_axis, i, whole(&f->axis[i])};
  }
  if (t->split < FORM_AXES && operand_moves(o, t->split))
    q.at[q.n++] = (Place){PL_within, t->split, t->block};
  q.at[q.n++] = (Place){PL_lane, t->lane, t->lanes};
  return q;
}

/* Element of the operand where the axes have these values; false: outside. */
static bool element(const Tile *t, u32 k, const i64 *value, u64 *at) {
  const Operand *o = &t->f.in[k];
  const Buf *b = prog_buf(t->p, o->buf);
  u64 sum = 0;
  for (u32 i = 0; i < t->f.naxes; i++)
    if (operand_moves(o, i) && value[i] >= whole(&t->f.axis[i])) return false;
  for (u32 d = 0; d < o->rank; d++) {
    const Index *ix = &o->idx[d];
    i64 x = ix->base + ix->shift;
    for (u32 i = 0; i < ix->n; i++) x += ix->coef[i] * value[ix->axis[i]];
    sum = sum * (u64)b->dim[d] + (u64)x;
  }
  *at = sum;
  return true;
}

/* Parts of one form read the same panels. */
static u32 *packed_before(Tile *t, u32 k, const Places *q) {
  i64 key[2 + 3 * (FORM_AXES + 4)];
  u32 n = 0;
  key[n++] = t->f.in[k].buf;
  key[n++] = t->lanes;
  for (u32 i = 0; i < q->n; i++) {
    key[n++] = q->at[i].kind;
    key[n++] = q->at[i].axis;
    key[n++] = q->at[i].n;
  }
  return map_put_bytes(&t->l->packed, key, n * sizeof *key);
}

void pack_const(Tile *t, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k);
  const Buf *from = prog_buf(p, t->f.in[k].buf);
  const Tensor *x = prog_buf(p, prog_root(p, t->f.in[k].buf))->data;
  i64 dim[FORM_AXES + 4], at[FORM_AXES + 4] = {0};
  u32 size = dtype_bytes(x->dt), *known = packed_before(t, k, &q);
  t->pack[k] = *known;
  if (*known) return;
  for (u32 i = 0; i < q.n; i++) dim[i] = q.at[i].n;
  Tensor *to = tensor_new(&p->c->keep, x->dt, dim, q.n);
  for (u64 e = 0; e < to->n; e++) {
    i64 value[FORM_AXES] = {0};
    u64 pos;
    for (u32 i = 0; i < q.n; i++) {
      i64 *v = &value[q.at[i].axis];
      if (q.at[i].kind == PL_panel)
        *v += at[i] * t->lanes;
      else if (q.at[i].kind == PL_block)
        *v += at[i] * t->block;
      else
        *v += at[i];
    }
    if (element(t, k, value, &pos))
      memcpy((u8 *)(uintptr_t)to->data + e * size, (const u8 *)x->data + pos * size, size);
    for (u32 i = q.n; i-- > 0;) {
      if (++at[i] < dim[i]) break;
      at[i] = 0;
    }
  }
  Str name = from->name;
  t->pack[k] = prog_add_const(p, to, name);
  *packed_before(t, k, &q) = t->pack[k];
}

/* ---- while running ---- */

/* Copies the lanes of one panel, or of some, and fills up with zeros. */
static void pack_lanes(Tile *t, Tail at, u32 k, const Places *q, ExprId *idx, i64 valid) {
  Prog *p = t->p;
  for (u32 part = 0; part < 2; part++) {
    i64 lo = part ? valid : 0, hi = part ? (i64)t->lanes : valid;
    ExprId to[FORM_AXES + 4], value = ex_const(p, t->f.acc, (Scalar){.f = 0});
    if (lo == hi) continue;
    Tail in = at;
    VarId lane = prog_for(p, &in, ex_int(p, lo), ex_int(p, hi), "l");
    if (!part) {
      Nest x = {.l = t->l, .p = p, .f = &t->f, .sub = t->val};
      ExprId base = ex_op2(p, OP_mul, ex_copy(p, idx[q->n]), ex_int(p, t->lanes));
      t->val[t->lane] = ex_op2(p, OP_add, base, ex_var(p, lane));
      value = nest_load(&x, k);
    }
    for (u32 i = 0; i + 1 < q->n; i++) to[i] = ex_copy(p, idx[i]);
    to[q->n - 1] = ex_var(p, lane);
    prog_store(p, &in, t->pack[k], to, q->n, value);
  }
}

void pack_run(Tile *t, Tail at, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k);
  Dim dim[FORM_AXES + 4];
  for (u32 i = 0; i < q.n; i++) dim[i] = q.at[i].n;
  Str name = str_fmt(p->c, "%s_panels", str_text(p->c, prog_buf(p, t->f.in[k].buf)->name));
  t->pack[k] = prog_add_buf(p, BS_local, t->f.acc, dim, q.n, name);
  i64 n = t->f.axis[t->lane].hi, whole = n / t->lanes, rest = n - whole * t->lanes;
  for (u32 part = 0; part < 2; part++) { /* panels that are full, and the last */
    ExprId idx[FORM_AXES + 5];
    Tail in = at;
    if (part ? !rest : !whole) continue;
    for (u32 i = 0; i + 1 < q.n; i++) {
      bool panel = q.at[i].kind == PL_panel;
      i64 count = panel ? (part ? 1 : whole) : q.at[i].n;
      idx[i] = ex_int(p, panel && part ? whole : 0);
      if (count > 1) {
        idx[i] = ex_var(p, prog_for(p, &in, ex_int(p, 0), ex_int(p, count), "i"));
        loop_free(p, in.owner);
      }
      if (panel)
        idx[q.n] = idx[i];
      else
        t->val[q.at[i].axis] = idx[i];
    }
    pack_lanes(t, in, k, &q, idx, part ? rest : (i64)t->lanes);
  }
  for (u32 i = 0; i < q.n; i++) t->val[q.at[i].axis] = 0;
}

/* Can operand k be brought into panels while running? A folded axis in blocks is read as it is. */
bool pack_can_run(const Tile *t, u32 k) {
  Places q = places_of(t, k);
  if (t->split < FORM_AXES || t->f.acc != prog_buf(t->p, t->f.in[k].buf)->dt) return false;
  for (u32 i = 0; i < q.n; i++)
    if (!dim_is_const(q.at[i].n) || (q.at[i].kind == PL_axis && t->f.axis[q.at[i].axis].lo))
      return false;
  for (u32 d = 0; d < t->f.in[k].rank; d++)
    if (t->f.in[k].idx[d].guard) return false;
  return q.n < MAX_RANK;
}

/* Vectors narrower than a panel, at the end of the lanes, are parts of the panel they begin in. */
ExprId pack_load(const Tile *t, u32 k) {
  Prog *p = t->p;
  Places q = places_of(t, k);
  ExprId idx[FORM_AXES + 4];
  i64 full = prog_buf(p, t->pack[k])->dim[q.n - 1];
  for (u32 i = 0; i < q.n; i++) {
    const Place *x = &q.at[i];
    switch (x->kind) {
    case PL_axis: {
      ExprId v = t->val[x->axis];
      idx[i] = v ? ex_copy(p, v) : ex_int(p, t->f.axis[x->axis].lo);
      break;
    }
    case PL_panel:
      idx[i] = ex_op2(p, OP_add, ex_copy(p, t->panel), ex_copy(p, t->panel_at));
      if (t->from) idx[i] = ex_op2(p, OP_add, idx[i], ex_int(p, t->from / full));
      break;
    case PL_block: idx[i] = ex_at(p, t->split_block); break;
    case PL_within: idx[i] = ex_at(p, t->split_lane); break;
    case PL_lane: idx[i] = ex_int(p, t->from % full); break;
    }
  }
  return ex_load_vec(p, t->pack[k], idx, q.n, t->lanes);
}
