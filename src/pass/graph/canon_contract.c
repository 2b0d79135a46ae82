/* canon_contract.c: canon rules for contractions.
 *
 * In: a contraction, or a view or scale next to one. Out: a canonical contraction.
 *
 *   - Transposes of operands and result are merged into the spec.
 *   - Constant weights have the axes of the result last.
 *   - Letters are A, B... for axes of both operands and the result, m for axes of the first
 * operand, n for axes of the second, k for summed axes.
 *   - Factors move from the operands into constant weights, or after the contraction.
 *   - Axes that a reshape joins before and another splits after the contraction stay separate.
 *   - A contraction over channels of an image becomes a 1x1 convolution.
 */
#include <math.h>
#include <string.h>
#include "pass/graph/canon.h"

enum { LETTERS = 3 * MAX_RANK, MAX_WEIGHTS = 1 << 28 };

/* Letters of in[0], in[1] and the result. */
typedef struct Spec {
  char part[3][MAX_RANK + 2];
} Spec;

static bool spec_read(Graph *g, const Node *n, Spec *s) {
  const char *at = str_text(g->c, node_attr(n, AT_spec)->u.s);
  memset(s, 0, sizeof *s);
  for (u32 p = 0, k = 0; *at; at++) {
    if (*at == ',' || (*at == '-' && at[1] == '>')) {
      at += *at == '-';
      k = 0;
      if (++p > 2) return false;
      continue;
    }
    if (k > MAX_RANK) return false;
    s->part[p][k++] = *at;
  }
  return true;
}

static bool has(const Spec *s, u32 part, char c) {
  return strchr(s->part[part], c) != NULL;
}

/* Renames axes by role; false: more axes of a kind than names. */
static bool spec_rename(const Spec *s, Spec *to) {
  static const char *const names[4] = {"ABCDEFGH", "mijhgf", "nqrstu", "klopvw"};
  char of[128] = {0};
  u32 used[4] = {0};
  for (u32 p = 0; p < 3; p++)
    for (u32 i = 0; s->part[p][i]; i++) {
      char c = s->part[p][i];
      bool a = has(s, 0, c), b = has(s, 1, c), o = has(s, 2, c);
      u32 role = a && b && o ? 0 : a && o ? 1 : b && o ? 2 : 3;
      if (!of[(u8)c & 127]) {
        if (!names[role][used[role]]) return false;
        of[(u8)c & 127] = names[role][used[role]++];
      }
      to->part[p][i] = of[(u8)c & 127];
      to->part[p][i + 1] = 0;
    }
  return true;
}

static Val build(Graph *g, Val a, Val b, const Spec *s) {
  Spec named = *s;
  if (!spec_rename(s, &named)) named = *s;
  char text[LETTERS + 16];
  size_t n = 0;
  for (u32 p = 0; p < 3; p++) {
    if (p) n += (size_t)(p == 1 ? (memcpy(text + n, ",", 1), 1) : (memcpy(text + n, "->", 2), 2));
    size_t len = strlen(named.part[p]);
    memcpy(text + n, named.part[p], len);
    n += len;
  }
  text[n] = 0;
  return mk_contract(g, a, b, text);
}

/* ---- transposes ---- */

/* Transposes a constant at once: pass fold has a budget, and leaving the transpose to run time
 * would be worse than before. */
static Val permuted(Graph *g, Val v, const i64 *perm) {
  const Tensor *t = graph_const(g, v);
  u32 rank = t->rank, bytes = dtype_bytes(t->dt);
  i64 dim[MAX_RANK], stride[MAX_RANK], step[MAX_RANK], at[MAX_RANK] = {0};
  i64 all = 1;
  for (u32 i = rank; i--;) {
    stride[i] = all;
    all *= t->dim[i];
  }
  for (u32 i = 0; i < rank; i++) {
    dim[i] = t->dim[perm[i]];
    step[i] = stride[perm[i]];
  }
  Tensor *out = tensor_new(&g->c->work, t->dt, dim, rank);
  u8 *to = (u8 *)(uintptr_t)out->data;
  const u8 *from = t->data;
  for (u64 i = 0, pos = 0; i < t->n; i++, to += bytes) {
    memcpy(to, from + pos * bytes, bytes);
    for (u32 k = rank; k--;) {
      pos += (u64)step[k];
      if (++at[k] < dim[k]) break;
      pos -= (u64)(step[k] * dim[k]);
      at[k] = 0;
    }
  }
  return mk_const(g, out);
}

/* Axis order of a constant operand: shared by all three, summed, its own. */
static bool want_order(const Spec *s, u32 p, char *to) {
  u32 n = 0;
  for (u32 round = 0; round < 3; round++)
    for (const char *c = round == 1 ? s->part[p] : s->part[2]; *c; c++) {
      bool other = has(s, 1 - p, *c), out = has(s, 2, *c);
      u32 role = other && out ? 0 : out ? 2 : 1;
      if (role == round && has(s, p, *c)) to[n++] = *c;
    }
  to[n] = 0;
  return strcmp(to, s->part[p]) != 0;
}

/* contract(transpose(a), b) -> contract(a, b) with another spec */
bool canon_absorb(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Spec s;
  Val in[2] = {n.in[0], n.in[1]};
  bool any = false;
  if (!spec_read(g, &n, &s)) return false;
  for (u32 p = 0; p < 2; p++) {
    const Node *t = graph_def(g, in[p], OP_transpose);
    char was[MAX_RANK + 2], order[MAX_RANK + 2];
    memcpy(was, s.part[p], sizeof was);
    if (t) {
      u32 rank;
      const Dim *perm = node_list(t, AT_perm, &rank);
      for (u32 i = 0; i < rank; i++) s.part[p][perm[i]] = was[i];
      in[p] = t->in[0];
      any = true;
    } else if (graph_const(g, in[p]) && canon_one_use(e, in[p]) && want_order(&s, p, order)) {
      const Tensor *w = graph_const(g, in[p]);
      i64 perm[MAX_RANK];
      if (tensor_bytes(w) > MAX_WEIGHTS || w->dt == DT_str) continue;
      for (u32 i = 0; order[i]; i++) perm[i] = strchr(was, order[i]) - was;
      in[p] = permuted(g, in[p], perm);
      memcpy(s.part[p], order, sizeof order);
      any = true;
    }
  }
  Spec named = s;
  any = any || (spec_rename(&s, &named) && memcmp(&named, &s, sizeof s));
  return any && edit_swap(e, id, build(g, in[0], in[1], &s));
}

/* transpose(contract(a, b)) -> contract(a, b) with another spec */
bool canon_absorb_result(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node t = *graph_node(g, id);
  const Node *c = canon_one_use_def(e, t.in[0], OP_contract);
  Spec s, to;
  u32 rank;
  const Dim *perm = node_list(&t, AT_perm, &rank);
  if (!c || !spec_read(g, c, &s)) return false;
  to = s;
  for (u32 i = 0; i < rank; i++) to.part[2][i] = s.part[2][perm[i]];
  g->loc = c->loc;
  return edit_swap(e, id, build(g, c->in[0], c->in[1], &to));
}

/* ---- reshapes ---- */

/* The axis of `one` that equals `n` axes of `many`, the others being equal; -1: none. */
static i64 split_axis(const Type *one, const Type *many, u32 n) {
  if (many->rank != one->rank + n - 1) return -1;
  u32 at = 0;
  while (at < one->rank && one->dim[at] == many->dim[at]) at++;
  if (at == one->rank) return -1;
  for (u32 i = at + 1; i < one->rank; i++)
    if (one->dim[i] != many->dim[i + n - 1]) return -1;
  return at;
}

static char fresh(const Spec *s, const char *taken) {
  for (int c = 'a'; c <= 'z'; c++)
    if (!has(s, 0, (char)c) && !has(s, 1, (char)c) && !has(s, 2, (char)c) && !strchr(taken, c))
      return (char)c;
  return 0;
}

static bool widen(char *part, char c, const char *with) {
  char *at = strchr(part, c);
  size_t n = strlen(with), len = strlen(part);
  if (len + n > MAX_RANK) return false;
  memmove(at + n, at + 1, strlen(at + 1) + 1);
  memcpy(at, with, n);
  return true;
}

/* reshape(contract(reshape(x), w)) -> contract(x, w) if the first joins axes and the second splits
 * them again */
bool canon_unflatten(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node r = *graph_node(g, id);
  const Node *at = canon_one_use_def(e, r.in[0], OP_contract);
  Type want = *graph_type(g, r.out[0]);
  Spec s;
  if (!at || !spec_read(g, at, &s) || want.rank <= graph_type(g, r.in[0])->rank) return false;
  Node c = *at;
  Type have = *graph_type(g, r.in[0]);
  u32 n = want.rank - have.rank + 1;
  i64 axis = split_axis(&have, &want, n);
  char with[MAX_RANK + 1] = {0}, merged;
  if (axis < 0 || n > MAX_RANK) return false;
  merged = s.part[2][axis];
  for (u32 i = 0; i < n; i++)
    if (!(with[i] = fresh(&s, with))) return false;
  Val in[2];
  for (u32 p = 0; p < 2; p++) {
    in[p] = c.in[p];
    if (!has(&s, p, merged)) continue;
    const Node *x = graph_def(g, c.in[p], OP_reshape);
    if (!x) return false;
    const Type *from = graph_type(g, x->in[0]);
    i64 k = split_axis(graph_type(g, c.in[p]), from, n);
    if (k < 0 || s.part[p][k] != merged) return false;
    if (memcmp(from->dim + k, want.dim + axis, n * sizeof(Dim))) return false;
    in[p] = x->in[0];
    if (!widen(s.part[p], merged, with)) return false;
  }
  if (!widen(s.part[2], merged, with)) return false;
  g->loc = c.loc;
  return edit_swap(e, id, build(g, in[0], in[1], &s));
}

/* ---- factors ---- */

/* v without its constant factor, which may be below views with one use; 0: no factor. */
static Val unscaled(GraphEdit *e, Val v, u32 depth, double *by) {
  Graph *g = e->g;
  NodeId def = graph_val(g, v)->def;
  if (!def || !depth || !canon_one_use(e, v)) return 0;
  Node n = *graph_node(g, def);
  if (n.op == OP_reshape || n.op == OP_transpose) {
    Val x = unscaled(e, n.in[0], depth - 1, by);
    return x ? mk_node(g, n.op, &x, 1, n.attr, n.nattr) : 0;
  }
  if (n.op != OP_mul && n.op != OP_div) return 0;
  if (!canon_scalar(g, n.in[1], by) || !canon_in_range(g, n.in[1], 1e-6, 1e6)) return 0;
  if (n.op == OP_div) *by = 1 / *by;
  return n.in[0];
}

/* contract(mul(a, k), b) -> mul(contract(a, b), k) */
bool canon_scale_out(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  if (!canon_wide_float(g, n.out[0])) return false;
  for (u32 p = 0; p < 2; p++) {
    double by;
    Val x = unscaled(e, n.in[p], 4, &by);
    if (!x || !type_equal(graph_type(g, x), graph_type(g, n.in[p]))) continue;
    Val in[2] = {p ? n.in[0] : x, p ? x : n.in[1]};
    Val v = mk_node(g, OP_contract, in, 2, n.attr, n.nattr);
    return edit_swap(e, id, mk_mul(g, v, mk_like(g, v, by)));
  }
  return false;
}

/* A constant k that broadcasts against part `from`, rearranged for operand p, which must have its
 * axes; 0: not possible. */
static Val against(Graph *g, Val k, const Spec *s, u32 from, u32 p) {
  Type t = *graph_type(g, k);
  i64 perm[MAX_RANK];
  Dim dim[MAX_RANK], back[MAX_RANK];
  u32 n = 0, own = (u32)strlen(s->part[p]), rank = (u32)strlen(s->part[from]);
  if (type_count(g->dims, &t) == 1) return mk_reshape(g, k, NULL, 0);
  for (u32 i = 0; i < own; i++) back[i] = 1;
  for (u32 i = 0; i < t.rank; i++) /* kept: axes along which k varies */
    if (t.dim[i] != 1) {
      char c = s->part[from][rank - t.rank + i];
      if (!has(s, p, c)) return 0;
      dim[n++] = t.dim[i];
      back[strchr(s->part[p], c) - s->part[p]] = t.dim[i];
    }
  Val v = mk_reshape(g, k, dim, n);
  u32 m = 0;
  for (u32 i = 0; i < own; i++) { /* their order in p */
    if (back[i] == 1) continue;
    u32 place = 0;
    for (u32 j = 0; j < t.rank; j++) {
      if (t.dim[j] == 1) continue;
      if (s->part[from][rank - t.rank + j] == s->part[p][i]) perm[m] = place;
      place++;
    }
    m++;
  }
  return mk_reshape(g, mk_transpose(g, v, perm), back, own);
}

/* mul(contract(x, w), k) -> contract(x, w * k) for constant weights, also after a bias */
bool canon_scale_in(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Val y, k, x, bias = 0;
  if (!canon_split(g, graph_node(g, id), &y, &k) || !canon_wide_float(g, y)) return false;
  if (!canon_in_range(g, k, 0, 1e15) ||
      !type_equal(graph_type(g, y), graph_type(g, graph_node(g, id)->out[0])))
    return false;
  const Node *sum = canon_one_use_def(e, y, OP_add), *at;
  if (sum && canon_split(g, sum, &x, &bias)) y = x;
  at = canon_one_use_def(e, y, OP_contract);
  Spec s;
  if (!at || !spec_read(g, at, &s)) return false;
  Node c = *at;
  for (u32 p = 0; p < 2; p++) {
    if (!canon_own_const(e, c.in[p])) continue;
    Val by = against(g, k, &s, 2, p);
    if (!by) continue;
    Val w = canon_scaled(g, c.in[p], by), in[2] = {p ? c.in[0] : w, p ? w : c.in[1]};
    if (!w) continue;
    Loc loc = g->loc;
    g->loc = c.loc;
    Val v = mk_node(g, OP_contract, in, 2, c.attr, c.nattr);
    g->loc = loc;
    if (bias) v = mk_add(g, v, mk_mul(g, bias, k));
    return edit_swap(e, id, v);
  }
  return false;
}

/* ---- scale and bias before a contraction ---- */

/* contract(mul(x, k), w) -> contract(x, w * k) */
static bool scale_before(GraphEdit *e, NodeId id, const Spec *s, u32 p) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *m = canon_one_use_def(e, n.in[p], OP_mul);
  Val x, k;
  if (!m || !canon_split(g, m, &x, &k) || !canon_in_range(g, k, 0, 1e15)) return false;
  if (!type_equal(graph_type(g, x), graph_type(g, n.in[p]))) return false;
  Val by = against(g, k, s, p, 1 - p);
  if (!by) return false;
  Val w = canon_scaled(g, n.in[1 - p], by);
  return w && edit_swap(e, id, build(g, p ? w : x, p ? x : w, s));
}

/* contract(add(x, b), w) -> add(contract(x, w), contract(b, w)) if b varies only along summed
 * axes */
static bool bias_before(GraphEdit *e, NodeId id, const Spec *s, u32 p) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  const Node *sum = canon_one_use_def(e, n.in[p], OP_add);
  Val x, b;
  if (!sum || !canon_split(g, sum, &x, &b) || !canon_in_range(g, b, 0, 1e15)) return false;
  Type t = *graph_type(g, b), full = *graph_type(g, n.in[p]), out = *graph_type(g, n.out[0]);
  if (!type_equal(graph_type(g, x), &full)) return false;
  Dim dim[MAX_RANK], own[MAX_RANK], place[MAX_RANK];
  Spec sb = {0};
  u32 rank = 0;
  for (u32 i = 0; i < full.rank; i++) {
    u32 lead = full.rank - t.rank;
    Dim d = i < lead ? 1 : t.dim[i - lead];
    char c = s->part[p][i];
    bool reduced = !has(s, 2, c);
    if ((!reduced && d != 1) || (reduced && !dim_is_const(full.dim[i]))) return false;
    if (!reduced) continue;
    own[rank] = d;
    dim[rank] = full.dim[i];
    sb.part[0][rank++] = c;
  }
  u32 left = 0;
  for (u32 i = 0; s->part[2][i]; i++) {
    bool w = has(s, 1 - p, s->part[2][i]) && !has(s, p, s->part[2][i]);
    if (!w && has(s, 1 - p, s->part[2][i])) return false; /* a batch of matrices */
    place[i] = w ? out.dim[i] : 1;
    if (w) sb.part[2][left++] = s->part[2][i];
  }
  memcpy(sb.part[1], s->part[1 - p], sizeof sb.part[1]);
  b = mk_broadcast(g, mk_reshape(g, b, own, rank), dim, rank);
  Val moved = mk_reshape(g, canon_eval_const(g, build(g, b, n.in[1 - p], &sb)), place, out.rank);
  Val v = build(g, p ? n.in[0] : x, p ? x : n.in[1], s);
  return edit_swap(e, id, mk_add(g, v, moved));
}

/* Moves constants from before a contraction with constant weights. */
bool canon_input(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Spec s;
  if (!canon_wide_float(g, n.out[0]) || !spec_read(g, &n, &s)) return false;
  for (u32 p = 0; p < 2; p++) {
    if (!canon_own_const(e, n.in[1 - p]) || graph_const(g, n.in[p])) continue;
    if (scale_before(e, id, &s, p) || bias_before(e, id, &s, p)) return true;
  }
  return false;
}

/* ---- images ---- */

/* contract(x, w), "Akij,kn->Anij" -> a convolution of x as [A, k, i * j] with a kernel of 1 */
bool canon_pointwise(GraphEdit *e, NodeId id) {
  Graph *g = e->g;
  Node n = *graph_node(g, id);
  Type x = *graph_type(g, n.in[0]), out = *graph_type(g, n.out[0]);
  Spec s;
  if (!canon_wide_float(g, n.out[0]) || !spec_read(g, &n, &s)) return false;
  const char *a = s.part[0], *w = s.part[1], *o = s.part[2];
  if (x.rank < 3 || out.rank != x.rank || strlen(w) != 2 || !graph_const(g, n.in[1])) return false;
  if (w[0] != a[1] || w[1] != o[1] || has(&s, 2, a[1]) || has(&s, 0, o[1])) return false;
  for (u32 i = 0; i < x.rank; i++)
    if (i != 1 && a[i] != o[i]) return false;
  const Type *tw = graph_type(g, n.in[1]);
  Dim area = dim_product(g->dims, x.dim + 2, x.rank - 2), one = 1, none = 0;
  Dim xs[3] = {x.dim[0], x.dim[1], area}, ws[3] = {tw->dim[1], tw->dim[0], 1};
  Val kernel = mk_reshape(g, permuted(g, n.in[1], (const i64[]){1, 0}), ws, 3);
  Val v = mk_conv(g, mk_reshape(g, n.in[0], xs, 3), kernel, 1, &one, &one, &none, &none);
  return edit_swap(e, id, mk_reshape(g, v, out.dim, out.rank));
}
