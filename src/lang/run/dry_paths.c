/* dry_paths.c: control flow in a dry run; see dry.h.
 *
 * In: an unknown condition. Out: the joined state after all branches. Each branch is evaluated from
 * the same state, then variables are joined; values that differ become unknown. A path that fails
 * is ignored. The state of a path that ends an iteration, a loop or a call is saved and joined at
 * its target. Objects are not rolled back: only the shapes in layers and optimizers matter here,
 * and these do not change.
 */
#include "lang/run/dry.h"

enum {
  /* Iterations of a loop of unknown length without a new graph; recursive calls. */
  MAX_ITERATIONS = 3,
  MAX_IDLE = 1000000, /* iterations without a new graph before loops are left */
};

/* Counts an iteration, call or path against the budget, so that the dry run ends. */
static void count_step(Eval *ev, const Ast *at) {
  if (ev->dry->left--) return;
  const char *what = "the program runs too long: its dry run exceeds the limit";
  fail(ev->c, ERR_unsupported, LOC_NONE, "%s", eval_message(ev, at, what));
}

typedef void SlotFn(Eval *ev, LangValue *d, LangValue *kept);

/* Visits every live variable with its place in the state. */
static u32 for_each_slot(Eval *ev, SlotFn *fn, LangValue *kept) {
  u32 n = 0;
  for (u32 i = 0; i < MODULES; i++)
    for (u32 k = 0; ev->file[i] && k < ev->file[i]->n; k++, n++)
      if (fn) fn(ev, &ev->file[i]->at[k], &kept[n]);
  for (Locals *l = ev->local; l; l = l->outer) {
    if (!l->self) continue; /* top level of a file */
    for (u32 k = 0; k < l->n; k++, n++)
      if (fn) fn(ev, &l->at[k], &kept[n]);
  }
  return n;
}

static void keep(Eval *ev, LangValue *d, LangValue *kept) {
  *kept = value_retain(d);
  (void)ev;
}

static void restore_slot(Eval *ev, LangValue *d, LangValue *kept) {
  LangValue old = *d;
  *d = value_retain(kept);
  value_drop(ev, &old);
}

static void join_slot(Eval *ev, LangValue *d, LangValue *kept) {
  dry_join(ev, d, kept);
}

static void drop_saved(Eval *ev, LangValue *d, LangValue *kept) {
  value_drop(ev, kept);
  (void)d;
}

static DryState save(Eval *ev) {
  DryState s = {.n = for_each_slot(ev, NULL, NULL)};
  s.at = arena_array(&ev->dry->a, s.n + 1, sizeof *s.at);
  for_each_slot(ev, keep, s.at);
  return s;
}

/* ---- joining ---- */

static bool is_number(LangKind k) {
  return k == KD_int || k == KD_float || k == KD_bool;
}

/* A value of several shapes or kinds; only its use is refused. */
static LangValue joined_value(UnknownKind how) {
  return (LangValue){.kind = KD_null, .open = how};
}

void dry_require_known(Eval *ev, const Ast *at, const LangValue *d) {
  if (d->kind == KD_null && d->open) dry_refuse(ev, at, d->open == UNK_kind ? "a kind" : "a shape");
}

/* Keeps d with its optimizer state, but with unknown data. Both tensors must be computed, because
 * later code sees either as a leaf. */
static void join_tensors(Eval *ev, LangValue *d, const LangValue *other) {
  LazyTensor *x = d->u.lazy;
  const LazyTensor *y = other->u.lazy;
  if (x == y) return;
  bool same = x->rank == y->rank;
  for (u32 i = 0; same && i < x->rank; i++) same = x->dim[i] == y->dim[i];
  if (!same) {
    value_drop(ev, d);
    *d = joined_value(UNK_shape);
    return;
  }
  lazy_data(ev, other->u.lazy);
  lazy_data(ev, x);
  dry_clear_data(ev, x);
}

/* Marks an element that exists on one path only as unknown. */
static void open_element(Eval *ev, LangValue *d) {
  if (d->kind == KD_array || d->kind == KD_tuple || d->kind == KD_struct) {
    ListObj *l = list_make_unique(ev, d);
    for (u64 i = 0; i < l->n; i++) open_element(ev, &l->at[i]);
  } else if (d->kind == KD_tensor) {
    if (d->u.lazy->data) dry_clear_data(ev, d->u.lazy);
  } else if (d->kind == KD_string || is_number(d->kind)) {
    LangKind kind = d->kind;
    value_drop(ev, d);
    *d = value_unknown(ev, kind);
  }
}

/* Keeps the longer list; its length becomes unknown. */
static void join_lists(Eval *ev, LangValue *d, const LangValue *other) {
  if (d->u.list == other->u.list) {
    if (other->open) d->open = UNK_length;
    return;
  }
  LangValue shorter = value_retain(other);
  bool open = d->open || other->open || d->u.list->n != other->u.list->n;
  if (d->u.list->n < other->u.list->n) {
    LangValue swap = *d;
    *d = shorter;
    shorter = swap;
  }
  ListObj *l = list_make_unique(ev, d);
  for (u64 i = 0; i < l->n; i++) {
    if (i < shorter.u.list->n)
      dry_join(ev, &l->at[i], &shorter.u.list->at[i]);
    else
      open_element(ev, &l->at[i]);
  }
  d->open = open ? UNK_length : UNK_none;
  value_drop(ev, &shorter);
}

static bool is_nothing(const LangValue *d) {
  return d->kind == KD_none || (d->kind == KD_null && !d->open);
}

void dry_join(Eval *ev, LangValue *d, const LangValue *other) {
  if (is_nothing(other)) return;
  if (is_nothing(d)) {
    value_drop(ev, d);
    *d = value_retain(other);
    return;
  }
  if (d->kind != other->kind) {
    bool numbers = (d->kind == KD_int || d->kind == KD_float) &&
                   (other->kind == KD_int || other->kind == KD_float);
    bool shapes = other->kind == KD_null && other->open == UNK_shape;
    value_drop(ev, d);
    *d = numbers ? value_unknown(ev, KD_float) : joined_value(shapes ? UNK_shape : UNK_kind);
    return;
  }
  switch (d->kind) {
  case KD_array:
  case KD_tuple:
  case KD_struct: join_lists(ev, d, other); return;
  case KD_tensor: join_tensors(ev, d, other); return;
  case KD_int:
  case KD_float:
  case KD_bool:
  case KD_string:
    if (!d->open && !other->open && value_equal(ev, d, other)) return;
    LangKind kind = d->kind;
    value_drop(ev, d);
    *d = value_unknown(ev, kind);
    return;
  default: return;
  }
}

static void join_result(Eval *ev, LangValue *to, LangValue v) { /* takes v */
  dry_join(ev, to, &v);
  value_drop(ev, &v);
}

/* ---- saved states ---- */

static void join_into_saved(Eval *ev, LangValue *d, LangValue *kept) {
  dry_join(ev, kept, d);
}

static DryJoin join_new(Eval *ev) {
  DryJoin p = {.s.n = for_each_slot(ev, NULL, NULL)};
  p.s.at = arena_array(&ev->dry->a, p.s.n + 1, sizeof *p.s.at);
  return p;
}

/* False if files were imported since: their variables are not in the state. */
static bool has_same_slots(Eval *ev, const DryJoin *p) {
  return for_each_slot(ev, NULL, NULL) == p->s.n;
}

static void add_pending(Eval *ev, DryJoin *p) {
  if (!has_same_slots(ev, p)) return;
  for_each_slot(ev, p->any ? join_into_saved : keep, p->s.at);
  p->any = true;
}

/* alone: the current state is unreachable. */
static void join_pending(Eval *ev, DryJoin *p, bool alone) {
  if (!p->any || !has_same_slots(ev, p)) return;
  for_each_slot(ev, alone ? restore_slot : join_slot, p->s.at);
  for_each_slot(ev, drop_saved, p->s.at);
  p->any = false;
}

void dry_call_begin(Eval *ev, DryCall *call) {
  DryRun *d = ev->dry;
  *call = (DryCall){.outer = d->call, .loop = d->loop, .mark = arena_mark(&d->a)};
  call->back = join_new(ev);
  d->call = call;
  d->loop = NULL;
}

LangValue dry_call_end(Eval *ev, DryCall *call, LangValue v) {
  DryRun *d = ev->dry;
  join_result(ev, &v, call->maybe);
  join_pending(ev, &call->back, false);
  d->call = call->outer;
  d->loop = call->loop;
  arena_rewind(&d->a, call->mark);
  return v;
}

/* A conditional path leaves: saves its state for the target. */
static void path_exits(Eval *ev, Flow flow) {
  DryRun *d = ev->dry;
  ev->flow = FLOW_next;
  if (flow == FLOW_return) {
    if (d->call) add_pending(ev, &d->call->back);
    if (d->call)
      join_result(ev, &d->call->maybe, ev->result);
    else
      value_drop(ev, &ev->result);
    ev->result.kind = KD_none;
  } else if (d->loop && flow != FLOW_next) {
    add_pending(ev, flow == FLOW_break ? &d->loop->left : &d->loop->next);
  }
}

void dry_check_recursion(Eval *ev, const Ast *at, const LangFn *fn) {
  u32 n = 0;
  count_step(ev, at);
  for (const Locals *l = ev->local; ev->dry->ways && l; l = l->outer)
    n += l->self && l->self->fn == fn;
  /* ends this path */
  if (n >= MAX_ITERATIONS) eval_fail(ev, at, "calls are nested too deeply");
}

typedef struct DryPath {
  Eval *ev;
  Ast *n; /* NULL: an empty branch */
  LangValue v;
} DryPath;

static void eval_path_body(Ctx *c, void *arg) {
  DryPath *w = arg;
  (void)c;
  w->v.kind = KD_null;
  if (w->n) w->v = w->n->kind == AST_block ? eval_block(w->ev, w->n) : eval_node(w->ev, w->n);
}

/* Evaluates a path. False if it fails or leaves. *v is its value. */
static bool eval_path(Eval *ev, Ast *n, LangValue *v) {
  DryPath w = {.ev = ev, .n = n};
  Locals *local = ev->local;
  u32 depth = ev->depth, in_grad = ev->in_grad;
  DryCall *call = ev->dry->call;
  DryLoop *loop = ev->dry->loop;
  const char *why;
  count_step(ev, n);
  ev->dry->ways++;
  Err e = ctx_try(ev->c, eval_path_body, &w, &why);
  ev->dry->ways--;
  if (e && e != ERR_input) fail(ev->c, e, LOC_NONE, "%s", why);
  ev->local = local;
  ev->depth = depth;
  ev->in_grad = in_grad;
  ev->dry->call = call;
  ev->dry->loop = loop;
  *v = w.v;
  if (e) {
    ev->flow = FLOW_next;
    v->kind = KD_none;
    return false;
  }
  Flow flow = ev->flow;
  path_exits(ev, flow);
  return flow == FLOW_next;
}

/* Evaluates all paths from the same state. Joins the states and values of those that fall
 * through. */
static LangValue eval_all_paths(Eval *ev, Ast *const *way, u32 n) {
  Mark mark = arena_mark(&ev->dry->a);
  DryState before = save(ev), after = {0};
  LangValue out = {.kind = KD_none};
  for (u32 i = 0; i < n; i++) {
    LangValue v;
    if (i) for_each_slot(ev, restore_slot, before.at);
    if (!eval_path(ev, way[i], &v)) {
      value_drop(ev, &v);
      continue;
    }
    join_result(ev, &out, v);
    if (after.at) {
      for_each_slot(ev, join_slot, after.at);
      for_each_slot(ev, drop_saved, after.at);
    }
    after = save(ev);
  }
  if (after.at) {
    for_each_slot(ev, restore_slot, after.at);
    for_each_slot(ev, drop_saved, after.at);
  } else {
    out.kind = KD_null; /* all leave: evaluate the following code anyway */
  }
  for_each_slot(ev, drop_saved, before.at);
  arena_rewind(&ev->dry->a, mark);
  return out;
}

LangValue dry_if(Eval *ev, const Ast *n) {
  if (!ev->dry) dry_refuse(ev, n->a, "a choice");
  return eval_all_paths(ev, (Ast *const[]){n->b, n->c}, 2);
}

LangValue dry_match(Eval *ev, const Ast *n, LangValue v) {
  if (!ev->dry) dry_refuse(ev, n->a, "a choice");
  Ast **way = arena_array(&ev->c->keep, n->nkid + 1, sizeof *way);
  for (u32 i = 0; i < n->nkid; i++) {
    const Ast *pattern = n->kid[i]->a;
    way[i] = n->kid[i]->b;
    if (!pattern || pattern->kind != AST_name) continue;
    LangValue *var = &ev->local->at[pattern->slot];
    value_drop(ev, var);
    *var = value_retain(&v);
  }
  value_drop(ev, &v);
  return eval_all_paths(ev, way, n->nkid);
}

static bool holds(Eval *ev, Ast *n, bool *open) {
  LangValue c = eval_node(ev, n);
  bool yes = value_is_true(&c);
  *open = value_is_unknown(ev, &c);
  value_drop(ev, &c);
  return yes || *open;
}

void dry_loop_begin(Eval *ev, const Ast *n, DryLoop *l) {
  *l = (DryLoop){.outer = ev->dry->loop, .at = n, .mark = arena_mark(&ev->dry->a)};
  l->before = save(ev);
  l->next = join_new(ev);
  l->left = join_new(ev);
  ev->dry->loop = l;
}

/* Variables that change in a loop of unknown length are unknown after it. */
static void widen_loop(Eval *ev, DryLoop *l) {
  for_each_slot(ev, join_slot, l->before.at);
}

bool dry_loop_next(Eval *ev, DryLoop *l) {
  Flow flow = ev->flow;
  bool ends = flow == FLOW_break || flow == FLOW_return;
  count_step(ev, l->at);
  if (!ends || l->next.any) { /* may continue on another path */
    if (ends) path_exits(ev, flow);
    ev->flow = FLOW_next;
    join_pending(ev, &l->next, ends);
    return true;
  }
  if (flow == FLOW_return && l->left.any) {
    path_exits(ev, flow);
    join_pending(ev, &l->left, true);
  } else if (flow == FLOW_break) {
    ev->flow = FLOW_next;
  }
  return false;
}

bool dry_loop_is_idle(Eval *ev, DryLoop *l) {
  return ++l->turns >= MAX_ITERATIONS && ++ev->dry->idle >= MAX_IDLE;
}

void dry_loop_end(Eval *ev, DryLoop *l) {
  if (ev->flow == FLOW_next) join_pending(ev, &l->left, false);
  ev->dry->loop = l->outer;
  for_each_slot(ev, drop_saved, l->before.at);
  arena_rewind(&ev->dry->a, l->mark);
}

/* Continues while the condition is known to hold. If it is unknown, stops when no new graph
 * appears. */
LangValue dry_while(Eval *ev, Ast *n) {
  DryLoop l;
  bool open = false;
  u32 idle = 0;
  LangValue v = {.kind = KD_null};
  dry_loop_begin(ev, n, &l);
  while (idle < MAX_ITERATIONS) {
    u32 known = ev->dry->graph.n;
    bool maybe;
    if (!holds(ev, n->a, &maybe)) break;
    value_drop(ev, &v);
    v = eval_block(ev, n->b);
    if (!dry_loop_next(ev, &l)) break;
    open |= maybe || l.left.any || dry_loop_is_idle(ev, &l);
    if (!open) continue;
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
    widen_loop(ev, &l);
  }
  dry_loop_end(ev, &l);
  return v;
}

void dry_unknown_loop(Eval *ev, Ast *n, LangValue var) {
  DryLoop l;
  dry_loop_begin(ev, n, &l);
  for (u32 idle = 0; idle < MAX_ITERATIONS;) {
    u32 known = ev->dry->graph.n;
    LangValue old = ev->local->at[n->slot], v;
    ev->local->at[n->slot] = value_retain(&var);
    value_drop(ev, &old);
    bool on = eval_path(ev, n->b, &v);
    value_drop(ev, &v);
    join_pending(ev, &l.next, !on);
    widen_loop(ev, &l);
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
  }
  value_drop(ev, &var);
  dry_loop_end(ev, &l);
}
