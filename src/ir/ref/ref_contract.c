/* ref_contract.c: contractions of two operands (einsum).
 *
 * Result axes come first, then the reduced ones in the order in which the operands name them. Every
 * result starts at 0 and adds its products in row-major order of the reduced axes. The innermost
 * loop runs along the last result axis or the last reduced axis, whichever has the smaller stride.
 * The order of additions into one result is the same in both. */
#include "ir/ref/ref.h"

#include <string.h>

typedef struct ContractAxis {
  i64 dim;
  i64 step[3]; /* strides of result, a, b; 0 if the axis is absent */
} ContractAxis;

typedef struct ContractAxes {
  u32 nout, n; /* result axes, then reduced ones */
  char letter[NDITER_RANK];
  ContractAxis axis[NDITER_RANK];
} ContractAxes;

static ContractAxis *find(ContractAxes *s, char letter) {
  const char *at = memchr(s->letter, letter, s->n);
  return at ? &s->axis[at - s->letter] : NULL;
}

static ContractAxis *add(ContractAxes *s, char letter) {
  s->letter[s->n] = letter;
  return &s->axis[s->n++];
}

static void read_spec(Ref *r, const char *text, Tensor *const *in, ContractAxes *s) {
  const char *letter[2] = {text, strchr(text, ',') + 1};
  const char *to = strstr(text, "->") + 2;
  memset(s, 0, sizeof *s);
  for (const char *p = to; *p; p++) add(s, *p)->dim = -1;
  s->nout = s->n;
  for (u32 k = 0; k < 2; k++) {
    i64 stride[MAX_RANK];
    shape_strides(in[k]->dim, in[k]->rank, stride);
    for (u32 i = 0; i < in[k]->rank; i++) {
      ContractAxis *a = find(s, letter[k][i]);
      if (!a) {
        a = add(s, letter[k][i]);
        a->dim = -1;
      }
      if (a->dim >= 0 && a->dim != in[k]->dim[i])
        REF_BAD(r, "contract \"%s\": extents %lld and %lld of %c differ", text, (long long)a->dim,
                (long long)in[k]->dim[i], letter[k][i]);
      a->dim = in[k]->dim[i];
      a->step[1 + k] = stride[i];
    }
  }
}

/* Total stride in the operands per iteration: smaller is better. */
static i64 spread(const ContractAxis *a) {
  return a->dim == 1 ? INT64_MAX : a->step[1] + a->step[2];
}

/* Removes the innermost axis from the nest; only the last axis of each kind preserves the order of
 * sums. */
static ContractAxis choose_inner(ContractAxes *s) {
  ContractAxis none = {.dim = 1};
  if (!s->n) return none;
  u32 i = s->n - 1;
  if (s->nout && (s->n == s->nout || spread(&s->axis[s->nout - 1]) <= spread(&s->axis[i])))
    i = s->nout - 1;
  ContractAxis inner = s->axis[i];
  memmove(&s->axis[i], &s->axis[i + 1], (s->n - i - 1) * sizeof inner);
  s->n--;
  return inner;
}

void ref_contract(Ref *r, const Node *n, Tensor *const *in, Tensor **out) {
  ContractAxes s;
  i64 dim[MAX_RANK], stride[MAX_RANK];
  read_spec(r, str_text(r->c, node_attr(n, AT_spec)->u.s), in, &s);
  for (u32 i = 0; i < s.nout; i++) dim[i] = s.axis[i].dim;
  shape_strides(dim, s.nout, stride);
  for (u32 i = 0; i < s.nout; i++) s.axis[i].step[0] = stride[i];
  Tensor *t = *out = ref_new(r, in[0]->dt, dim, s.nout);
  const Loops *loops = acc_loops(t->dt);
  u8 *acc = acc_begin(r, t); /* zero */
  const u8 *a = acc_read(r, in[0], false), *b = acc_read(r, in[1], false);
  ContractAxis inner = choose_inner(&s);
  NdIter w = {.rank = s.n, .arrays = 3};
  for (u32 i = 0; i < s.n; i++) {
    w.dim[i] = s.axis[i].dim;
    for (u32 k = 0; k < 3; k++) w.step[k][i] = s.axis[i].step[k];
  }
  i64 size = (i64)loops->size;
  if (in[0]->n && in[1]->n && nditer_start(&w)) {
    do {
      loops->mac(acc + w.off[0] * size, inner.step[0], a + w.off[1] * size, inner.step[1],
                 b + w.off[2] * size, inner.step[2], inner.dim);
    } while (nditer_next(&w));
  }
  acc_finish(r, t, acc, false);
}
