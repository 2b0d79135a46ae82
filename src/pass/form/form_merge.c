/* form_merge.c: merges adjacent axes that every operand traverses as one.
 *
 * In: a form. Out: the same computation with fewer and longer axes, on views of the buffers with
 * fewer dimensions. An elementwise node over equal shapes becomes a single loop. A pointwise
 * convolution gets rows as long as the image. The order of every reduction is kept. The outermost
 * axis is left alone, because loop_fuse.c fuses kernels along it.
 */
#include "pass/form/form.h"

enum { NOWHERE = MAX_RANK };

/* An operand with its new dimensions. */
typedef struct Seen {
  Operand *o;
  Operand was;
  Dim dim[MAX_RANK];
  bool merged;
  bool fixed; /* a state, which may have other extents in memory */
} Seen;

typedef struct Merge {
  Prog *p;
  Form *f;
  u32 n;
  Seen seen[1 + FORM_IN];
} Merge;

/* Removes an axis with a single point from every index. */
static void forget(Merge *m, u32 axis) {
  for (u32 k = 0; k < m->n; k++) {
    Operand *o = m->seen[k].o;
    for (u32 i = 0; i < o->rank; i++) {
      Index *ix = &o->idx[i];
      if (ix->n == 2 && ix->axis[1] == axis) ix->n = 1;
      if (ix->n == 0 || ix->axis[0] != axis) continue;
      ix->axis[0] = ix->axis[1];
      ix->coef[0] = ix->coef[1];
      ix->n--;
    }
  }
}

/* Drops dimensions of extent 1, so that their neighbors become adjacent. */
static void squeeze(Seen *s) {
  u32 n = 0;
  for (u32 i = 0; i < s->o->rank; i++) {
    const Index *ix = &s->o->idx[i];
    if (s->dim[i] == 1 && !ix->n && !ix->base && !ix->shift) continue;
    s->dim[n] = s->dim[i];
    s->o->idx[n++] = s->o->idx[i];
  }
  s->o->rank = n;
}

/* The dimension of the operand that is indexed by this axis alone, in steps of 1. NOWHERE: the
 * operand does not move along it. NOWHERE + 1: it moves in another way, so the axis cannot be
 * merged. */
static u32 place(const Seen *s, u32 axis) {
  u32 at = NOWHERE;
  for (u32 i = 0; i < s->o->rank; i++) {
    const Index *ix = &s->o->idx[i];
    for (u32 t = 0; t < ix->n; t++) {
      if (ix->axis[t] != axis) continue;
      if (s->fixed || ix->n > 1 || ix->coef[0] != 1 || ix->guard || ix->stretch || at != NOWHERE)
        return NOWHERE + 1;
      at = i;
    }
  }
  return at;
}

/* The product of extents of an empty shape may overflow. */
static bool fits(const Merge *m, Dim a, i64 b) {
  i64 lo, hi;
  u64 n;
  dim_bounds(m->p->dims, a, &lo, &hi);
  return hi < DIM_MAX && lo >= 0 && size_mul((u64)hi, (u64)b, &n) && n <= (u64)DIM_MAX;
}

static bool adjacent(const Merge *m, const Seen *s, u32 a, u32 b) {
  u32 i = place(s, a), k = place(s, b);
  if (i == NOWHERE && k == NOWHERE) return true;
  if (i >= NOWHERE || k != i + 1) return false;
  const Index *low = &s->o->idx[k];
  return s->dim[k] == m->f->axis[b].hi && low->base == 0 && low->shift == 0 &&
         fits(m, s->dim[i], s->dim[k]) && fits(m, s->o->idx[i].base, s->dim[k]);
}

static bool can_merge(const Merge *m, u32 a, u32 b) {
  const Axis *x = &m->f->axis[a], *y = &m->f->axis[b];
  if (x->reduce != y->reduce || x->lo || y->lo || !dim_is_const(y->hi) || !fits(m, x->hi, y->hi))
    return false;
  for (u32 k = 0; k < m->n; k++)
    if (!adjacent(m, &m->seen[k], a, b)) return false;
  return true;
}

static void merge(Merge *m, u32 a, u32 b) {
  Dims *ds = m->p->dims;
  i64 inner = m->f->axis[b].hi;
  m->f->axis[a].hi = dim_mul(ds, m->f->axis[a].hi, inner);
  m->f->axis[b].hi = 1;
  for (u32 k = 0; k < m->n; k++) {
    Seen *s = &m->seen[k];
    u32 at = place(s, a);
    if (at == NOWHERE) continue;
    s->o->idx[at].base = dim_mul(ds, s->o->idx[at].base, inner);
    s->o->idx[at].shift *= inner;
    s->dim[at] = dim_mul(ds, s->dim[at], inner);
    s->o->rank--;
    for (u32 i = at + 1; i < s->o->rank; i++) {
      s->o->idx[i] = s->o->idx[i + 1];
      s->dim[i] = s->dim[i + 1];
    }
    s->merged = true;
  }
}

BufId form_view(Prog *p, Map *once, BufId b, const Dim *dim, u32 rank) {
  BufId root = prog_root(p, b);
  i64 key[2 + MAX_RANK] = {ON_view, root};
  for (u32 i = 0; i < rank; i++) key[2 + i] = dim[i];
  u32 *slot = map_put_bytes(once, key, (2 + rank) * sizeof *key);
  if (!*slot)
    *slot = prog_add_view(p, root, dim, rank,
                          str_fmt(p->c, "%s_view", str_text(p->c, prog_buf(p, root)->name)));
  return *slot;
}

static void look_at(Merge *m, Operand *o) {
  Seen *s = &m->seen[m->n++];
  s->o = o;
  s->was = *o;
  s->fixed = prog_buf(m->p, prog_root(m->p, o->buf))->space == BS_state;
  for (u32 i = 0; i < o->rank; i++) s->dim[i] = prog_buf(m->p, o->buf)->dim[i];
}

void form_merge(Prog *p, Map *once, Form *f) {
  if (f->body == FB_iota || f->body == FB_random) return;
  Merge m = {.p = p, .f = f};
  look_at(&m, &f->out);
  for (u32 i = 0; i < f->nin; i++) look_at(&m, &f->in[i]);
  if (f->from.buf) look_at(&m, &f->from);
  for (u32 i = 0; i < f->naxes; i++)
    if (f->axis[i].hi == 1 && !f->axis[i].lo && !form_guard(f, i, NULL)) forget(&m, i);
  for (u32 k = 0; k < m.n; k++) squeeze(&m.seen[k]);
  u32 last = FORM_AXES,
      outer = FORM_AXES; /* previous axis with more than one point, and the first one */
  for (u32 i = 0; i < f->naxes; i++) {
    if (f->axis[i].hi == 1 && !form_guard(f, i, NULL)) continue;
    if (outer == FORM_AXES) outer = i;
    if (last < FORM_AXES && last != outer && can_merge(&m, last, i))
      merge(&m, last, i);
    else
      last = i;
  }
  for (u32 k = 0; k < m.n; k++) {
    Seen *s = &m.seen[k];
    if (s->merged)
      s->o->buf = form_view(p, once, s->o->buf, s->dim, s->o->rank);
    else
      *s->o = s->was;
  }
}
