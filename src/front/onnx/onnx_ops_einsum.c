/* onnx_ops_einsum.c: Einsum as a chain of pairwise contractions.
 *
 * In: an equation and its operands. Method: every axis gets a label, a letter or a position in the
 * ellipsis. Axes of extent 1 that are broadcast are dropped. Repeated labels of an operand become a
 * diagonal (a strided view). Labels that only one operand has are summed first. Then operands are
 * contracted from left to right.
 */
#include "front/onnx/onnx_builder.h"

#include <string.h>

enum { LETTERS = 52, LABELS = LETTERS + MAX_RANK, TERMS = 64 };

typedef struct EinsumTerm {
  Val v;
  u32 n; /* axes */
  u8 label[MAX_RANK];
} EinsumTerm;

typedef struct Einsum {
  Build *b;
  const char *at; /* rest of the equation */
  u32 ellipsis;   /* number of axes of "...": the maximum of all operands */
  Dim dim[LABELS];
  bool used[LABELS]; /* by an operand */
} Einsum;

static u32 letter(char ch) {
  if (ch >= 'a' && ch <= 'z') return (u32)(ch - 'a') + 26;
  if (ch >= 'A' && ch <= 'Z') return (u32)(ch - 'A');
  return LABELS;
}

static char next(Einsum *e) {
  while (*e->at == ' ') e->at++;
  return *e->at;
}

/* Labels of one operand of rank `rank` (output: rank LABELS). Ellipsis labels are right-aligned. */
static u32 parse_term(Einsum *e, u8 *label, u32 rank) {
  Build *b = e->b;
  u32 n = 0, at = LABELS, width = rank == LABELS ? e->ellipsis : 0;
  char ch;
  while ((ch = next(e)) && ch != ',' && ch != '-') {
    if (n == MAX_RANK) on_bad(b, "a term of the equation has more than %d axes", MAX_RANK);
    if (letter(ch) < LABELS) {
      label[n++] = (u8)letter(ch);
      e->at++;
      continue;
    }
    if (strncmp(e->at, "...", 3) != 0) on_bad(b, "the equation has an unexpected '%c'", ch);
    if (at < LABELS) on_bad(b, "a term of the equation has two ellipses");
    at = n;
    e->at += 3;
  }
  if (rank != LABELS) {
    if (n > rank || (n < rank && at == LABELS))
      on_bad(b, "a term of the equation has %u axes, but its operand has %u", n, rank);
    width = rank - n;
  }
  if (at == LABELS || !width) return n;
  if (n + width > MAX_RANK) on_bad(b, "a term of the equation has more than %d axes", MAX_RANK);
  memmove(label + at + width, label + at, n - at);
  for (u32 i = 0; i < width; i++) label[at + i] = (u8)(LABELS - width + i);
  if (width > e->ellipsis) e->ellipsis = width;
  return n + width;
}

/* Without an output term: the ellipsis, then the letters that occur once, in alphabetical order. */
static u32 implicit_output(const Einsum *e, const EinsumTerm *t, u32 n, u8 *label) {
  u32 count[LABELS] = {0}, k = 0;
  for (u32 i = 0; i < n; i++)
    for (u32 j = 0; j < t[i].n; j++) count[t[i].label[j]]++;
  for (u32 i = 0; i < e->ellipsis; i++) label[k++] = (u8)(LABELS - e->ellipsis + i);
  for (u32 i = 0; i < LETTERS && k < MAX_RANK; i++)
    if (count[i] == 1) label[k++] = (u8)i;
  return k;
}

static void drop_axis(Einsum *e, EinsumTerm *t, u32 axis) {
  t->v = mk_squeeze(e->b->g, t->v, axis);
  memmove(t->label + axis, t->label + axis + 1, --t->n - axis);
}

/* Determines the extents of all labels and drops axes of extent 1 that are broadcast. */
static void settle_extents(Einsum *e, EinsumTerm *t, u32 n) {
  for (u32 i = 0; i < n; i++)
    for (u32 j = 0; j < t[i].n; j++) {
      u32 l = t[i].label[j];
      Dim d = on_dim(e->b, t[i].v, j);
      if (e->used[l] && e->dim[l] != 1 && d != 1 && dim_is_const(d) && dim_is_const(e->dim[l]) &&
          d != e->dim[l])
        on_bad(e->b, "a letter of the equation stands for extents %lld and %lld",
               (long long)e->dim[l], (long long)d);
      if (!e->used[l] || e->dim[l] == 1 || (d != 1 && dim_is_const(d))) e->dim[l] = d;
      e->used[l] = true;
    }
  for (u32 i = 0; i < n; i++)
    for (u32 j = t[i].n; j-- > 0;)
      if (on_dim(e->b, t[i].v, j) == 1 && e->dim[t[i].label[j]] != 1) drop_axis(e, &t[i], j);
}

/* Elements where axes p < q of x have equal indices; removes axis q. */
static Val diagonal(Build *b, Val x, u32 p, u32 q) {
  Graph *g = b->g;
  Type t = *on_type(b, x);
  i64 perm[MAX_RANK], step[MAX_RANK];
  Dim dim[MAX_RANK], start[MAX_RANK] = {0}, d = t.dim[p];
  u32 k = 0, n = t.rank;
  for (u32 i = 0; i < n; i++)
    if (i != p && i != q) perm[k++] = i;
  perm[k] = p;
  perm[k + 1] = q;
  x = mk_transpose(g, x, perm);
  for (u32 i = 0; i < n; i++) dim[i] = t.dim[perm[i]], step[i] = 1;
  if (dim_is_const(d)) { /* every (d + 1)-th element of the two flattened axes */
    dim[n - 2] = dim_mul(b->ds, d, d);
    x = mk_reshape(g, x, dim, n - 1);
    dim[n - 2] = d;
    step[n - 2] = d + 1;
    x = mk_slice(g, x, start, dim, step);
  } else {
    dim[n - 1] = 1;
    x = mk_squeeze(g, mk_gather_elems(g, x, mk_iota(g, DT_i64, dim, n, n - 2), n - 1), n - 1);
  }
  for (u32 i = 0; i < n - 1; i++) perm[i] = i < p ? (i64)i : i == p ? (i64)n - 2 : (i64)i - 1;
  return mk_transpose(g, x, perm);
}

static void take_diagonals(Einsum *e, EinsumTerm *t) {
  for (u32 p = 0; p < t->n; p++)
    for (u32 q = t->n; q-- > p + 1;) {
      if (t->label[p] != t->label[q]) continue;
      t->v = diagonal(e->b, t->v, p, q);
      memmove(t->label + q, t->label + q + 1, --t->n - q);
    }
}

static void sum_unneeded(Einsum *e, EinsumTerm *t, const bool *need) {
  i64 axes[MAX_RANK];
  u32 n = 0, kept = 0;
  for (u32 i = 0; i < t->n; i++) {
    if (need[t->label[i]])
      t->label[kept++] = t->label[i];
    else
      axes[n++] = i;
  }
  t->v = mk_reduce(e->b->g, OP_reduce_sum, t->v, axes, n, false);
  t->n = kept;
}

static void need_labels(bool *need, const EinsumTerm *t, u32 n) {
  for (u32 i = 0; i < n; i++)
    for (u32 j = 0; j < t[i].n; j++) need[t[i].label[j]] = true;
}

/* x <- x times y, summed over labels that are not needed later. */
static void multiply(Einsum *e, EinsumTerm *x, const EinsumTerm *y, const bool *need) {
  char name[LABELS] = {0}, spec[3 * MAX_RANK + 8];
  u32 names = 0, p = 0;
  EinsumTerm r = {.n = 0};
  const EinsumTerm *both[2] = {x, y};
  for (u32 k = 0; k < 2; k++) {
    for (u32 i = 0; i < both[k]->n; i++) {
      u32 l = both[k]->label[i];
      if (!name[l]) {
        name[l] = (char)(names < 26 ? 'a' + names : 'A' + names - 26);
        names++;
        if (need[l] && r.n == MAX_RANK)
          on_unsupported(e->b, "an intermediate product has more than %d axes", MAX_RANK);
        if (need[l]) r.label[r.n++] = (u8)l;
      }
      spec[p++] = name[l];
    }
    if (k == 0) spec[p++] = ',';
  }
  spec[p++] = '-';
  spec[p++] = '>';
  for (u32 i = 0; i < r.n; i++) spec[p++] = name[r.label[i]];
  spec[p] = 0;
  r.v = mk_contract(e->b->g, x->v, y->v, spec);
  *x = r;
}

/* Transposes to the order of the output. Every label is present: one operand has its extent. */
static Val ordered(Einsum *e, const EinsumTerm *x, const u8 *label, u32 n) {
  i64 perm[MAX_RANK];
  for (u32 i = 0; i < n; i++) {
    const u8 *hit = memchr(x->label, label[i], x->n);
    if (!hit)
      on_bad(e->b, "the output of the equation names an axis twice, or one that no operand has");
    for (u32 j = 0; j < i; j++)
      if (label[j] == label[i]) on_bad(e->b, "the output of the equation names an axis twice");
    perm[i] = hit - x->label;
  }
  return mk_transpose(e->b->g, x->v, perm);
}

/* Parses all terms; returns the rank of the output. */
static u32 parse_equation(Einsum *e, EinsumTerm *t, u32 n, u8 *out) {
  Build *b = e->b;
  for (u32 i = 0; i < n; i++) {
    t[i].v = on_wide(b, i);
    t[i].n = parse_term(e, t[i].label, on_rank(b, t[i].v));
    bool more = next(e) == ',';
    if (more != (i + 1 < n)) on_bad(b, "the equation does not have %u terms", n);
    e->at += more;
  }
  if (!next(e)) return implicit_output(e, t, n, out);
  if (e->at[1] != '>') on_bad(b, "the equation has an unexpected '-'");
  e->at += 2;
  u32 nout = parse_term(e, out, LABELS);
  if (next(e)) on_bad(b, "the equation goes on after its output");
  return nout;
}

void build_einsum(Build *b) {
  Einsum e = {.b = b, .at = str_text(b->c, on_str(b, "equation", ""))};
  u32 n = b->nin;
  u8 out[MAX_RANK];
  if (!n || n > TERMS) on_bad(b, "there are %u operands, expected 1 to %d", n, TERMS);
  DType dt = on_dtype(b, on_in(b, 0));
  EinsumTerm *t = NEWS(&b->c->scratch, EinsumTerm, n);
  u32 nout = parse_equation(&e, t, n, out);
  settle_extents(&e, t, n);
  for (u32 i = 0; i < n; i++) {
    take_diagonals(&e, &t[i]);
    bool need[LABELS] = {false}; /* by the output or another operand */
    for (u32 k = 0; k < nout; k++) need[out[k]] = true;
    need_labels(need, t, i);
    need_labels(need, t + i + 1, n - i - 1);
    sum_unneeded(&e, &t[i], need);
  }
  for (u32 i = 1; i < n; i++) {
    bool need[LABELS] = {false};
    for (u32 k = 0; k < nout; k++) need[out[k]] = true;
    need_labels(need, t + i + 1, n - i - 1);
    multiply(&e, &t[0], &t[i], need);
  }
  b->out[0] = mk_cast(b->g, ordered(&e, &t[0], out, nout), dt);
}
