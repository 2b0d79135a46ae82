/* list_join.c: merges the results of two branches of an If.
 *
 * In: two values, each a tensor or a list. Out: the pairs of tensors that the If node selects from,
 * and the value made of its results. Sequences of equal length stay lists, others become stacks. An
 * optional that only one branch has gets a flag. The traversal runs twice with the same decisions:
 * to collect the pairs, and to build the result.
 */
#include "front/onnx/list.h"

/* Appends following nodes to the region of one branch. */
static void enter_side(BranchJoin *j, u32 side) {
  j->b->g->cur = j->region[side];
}

static Val join_pair(BranchJoin *j, Val x, Val y) {
  Graph *g = j->b->g;
  if (j->out) {
    u32 k = j->next++;
    return j->text.at[k] ? mk_text(g, j->out[k]) : j->out[k];
  }
  const Type *s = on_type(j->b, x), *t = on_type(j->b, y);
  bool text = s->dt == DT_str && t->dt == DT_str;
  if (s->rank != t->rank) j->why = "the ranks of a result differ between the branches";
  if (s->dt != t->dt) {
    j->why = "the element types of a result differ between the branches";
    j->wrong = true;
  }
  if (text) {
    i64 p = string_max_bytes(g, x), q = string_max_bytes(g, y);
    enter_side(j, 0);
    x = mk_bytes(g, x, p > q ? p : q);
    enter_side(j, 1);
    y = mk_bytes(g, y, p > q ? p : q);
  }
  *vec_push(&j->b->c->work, &j->text) = text;
  *vec_push(&j->b->c->work, &j->pair[0]) = x;
  *vec_push(&j->b->c->work, &j->pair[1]) = y;
  return 0;
}

static Val zero_like(BranchJoin *j, Val v, u32 side) {
  Type t = *on_type(j->b, v);
  if (!type_is_static(&t)) {
    j->why = "an optional has a size that is known only if it is present";
    return v;
  }
  enter_side(j, side);
  return zeros_of(j->b, &t);
}

/* Merges v of one branch with nothing of the other. */
static Val join_alone(BranchJoin *j, Val v, u32 side) {
  Import *im = j->b->im;
  if (val_is_list(v)) {
    const List *l = list_at(im, v);
    if (l->stack || l->has) {
      j->why = "an optional sequence has a different form in each branch";
      return 0;
    }
    Val *at = NEWS(&im->c->work, Val, l->n + 1);
    for (u32 i = 0; i < l->n; i++) at[i] = join_alone(j, l->at[i], side);
    return j->out ? list_known(im, l->kind, at, l->n) : 0;
  }
  Val zero = j->out ? 0 : zero_like(j, v, 1 - side);
  return side ? join_pair(j, zero, v) : join_pair(j, v, zero);
}

static Val flag_of(BranchJoin *j, const List *l, u32 side) {
  if (j->out) return 0;
  enter_side(j, side);
  return l->has ? l->has : mk_scalar(j->b->g, DT_bool, l->n);
}

static Val join_optionals(BranchJoin *j, const List *x, const List *y) {
  Import *im = j->b->im;
  if (x->n == y->n && !x->has && !y->has) {
    Val at = x->n ? list_join(j, x->at[0], y->at[0]) : 0;
    return j->out ? list_known(im, TY_opt, &at, x->n) : 0;
  }
  List l = {.kind = TY_opt, .n = 1, .at = NEW(&im->c->work, Val)};
  Val second = flag_of(j, y, 1);
  l.has = join_pair(j, flag_of(j, x, 0), second);
  if (x->n && y->n)
    l.at[0] = list_join(j, x->at[0], y->at[0]);
  else
    l.at[0] = x->n ? join_alone(j, x->at[0], 0) : join_alone(j, y->at[0], 1);
  return j->out ? list_add(im, l) : 0;
}

static Val join_stacks(BranchJoin *j, const List *x, const List *y) {
  Build *b = j->b;
  const List *side[2] = {x, y};
  Val stack[2] = {0}, count[2] = {0};
  if (!j->out) {
    Type t[2];
    Dim room[2] = {list_capacity(b, x), list_capacity(b, y)};
    bool typed[2] = {list_type(b, x, &t[0]), list_type(b, y, &t[1])};
    bool one = typed[0] && typed[1] ? type_equal(&t[0], &t[1]) : typed[0] || typed[1];
    if (!one || !dim_is_const(room[0]) || !dim_is_const(room[1])) {
      j->why =
          "the lengths of a sequence differ between the branches, and its elements differ in type";
      return 0;
    }
    Dim most = room[0] > room[1] ? room[0] : room[1];
    for (u32 i = 0; i < 2; i++) {
      enter_side(j, i);
      if (!typed[i]) { /* empty */
        Dim dim[MAX_RANK];
        Type full = {.dt = t[1 - i].dt, .rank = t[1 - i].rank + 1, .dim = dim};
        dim[0] = most;
        for (u32 k = 1; k < full.rank; k++) dim[k] = t[1 - i].dim[k - 1];
        stack[i] = zeros_of(b, &full);
        count[i] = mk_scalar(b->g, DT_i64, 0);
        continue;
      }
      list_stack(b, side[i], &stack[i], &count[i]);
      stack[i] = stack_fit(b, stack[i], most);
    }
  }
  Val s = join_pair(j, stack[0], stack[1]), n = join_pair(j, count[0], count[1]);
  return j->out ? list_stacked(b->im, s, n) : 0;
}

Val list_join(BranchJoin *j, Val x, Val y) {
  Import *im = j->b->im;
  if (j->why) return 0;
  if (val_is_real(x) && val_is_real(y)) return join_pair(j, x, y);
  const List *p = val_is_list(x) ? list_at(im, x) : NULL,
             *q = val_is_list(y) ? list_at(im, y) : NULL;
  if (!p || !q || p->kind != q->kind) {
    j->why = "a result is a tensor in one branch, a sequence or optional in the other";
    j->wrong = true;
    return 0;
  }
  if (p->kind == TY_opt) return join_optionals(j, p, q);
  bool same = !p->stack && !q->stack && p->n == q->n;
  for (u32 i = 0; same && i < p->n; i++) {
    const Type *s = on_type(j->b, p->at[i]), *t = on_type(j->b, q->at[i]);
    same = s->dt == t->dt && s->rank == t->rank;
  }
  if (!same) return join_stacks(j, p, q);
  Val *at = NEWS(&im->c->work, Val, p->n + 1);
  for (u32 i = 0; i < p->n; i++) at[i] = join_pair(j, p->at[i], q->at[i]);
  return j->out ? list_known(im, TY_seq, at, p->n) : 0;
}
