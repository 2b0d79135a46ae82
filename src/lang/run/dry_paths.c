/* dry_paths.c: control flow in a dry run; see dry.h.
 *
 * In: an unknown condition. Out: the joined state after all branches. Each branch is evaluated from
 * the same state, then variables are joined; values that differ become unknown. A path that fails
 * is ignored. The state of a path that ends an iteration, a loop or a call is saved and joined at
 * its target. A path is a range of instructions. Objects are not rolled back: only the shapes in
 * layers and optimizers matter here, and these do not change.
 */
#include "lang/run/lang_code.h"

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

/* Visits every register with its place in the state. */
static u32 for_each_slot(Eval *ev, SlotFn *fn, LangValue *kept) {
  u32 n = 0;
  for (u32 i = 0; i < MODULES; i++)
    for (u32 k = 0; ev->file[i] && k < ev->file[i]->all; k++, n++)
      if (fn) fn(ev, &ev->file[i]->at[k], &kept[n]);
  for (Frame *f = ev->frame; f != ev->root; f = f->outer) {
    if (!f->self) continue; /* a file */
    for (u32 k = 0; k < f->code->nreg; k++, n++)
      if (fn) fn(ev, &f->r[k], &kept[n]);
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
  for (const Frame *f = ev->frame; ev->dry->ways && f != ev->root; f = f->outer)
    n += f->self && f->self->fn == fn;
  /* ends this path */
  if (n >= MAX_ITERATIONS) eval_fail(ev, at, "calls are nested too deeply");
}

typedef struct DryPath {
  Eval *ev;
  Frame *f;
  u32 at, stop;
  Flow flow;
} DryPath;

static void run_path(Ctx *c, void *arg) {
  DryPath *w = arg;
  (void)c;
  w->flow = run_range(w->ev, w->f, w->at, w->stop);
}

/* Executes a path. False if it fails or leaves. */
static bool eval_path(Eval *ev, Frame *f, u32 at, u32 stop) {
  DryPath w = {.ev = ev, .f = f, .at = at, .stop = stop};
  u32 depth = ev->depth, in_grad = ev->in_grad;
  Locals *regs = ev->regs;
  LangValue *top = ev->top;
  DryCall *call = ev->dry->call;
  DryLoop *loop = ev->dry->loop;
  const char *why;
  count_step(ev, f->code->at[at]);
  ev->dry->ways++;
  Err e = ctx_try(ev->c, run_path, &w, &why);
  ev->dry->ways--;
  if (e && e != ERR_input) fail(ev->c, e, LOC_NONE, "%s", why);
  ev->frame = f;
  ev->regs = regs;
  ev->top = top;
  ev->depth = depth;
  ev->in_grad = in_grad;
  ev->dry->call = call;
  ev->dry->loop = loop;
  if (e) return false;
  path_exits(ev, w.flow);
  return w.flow == FLOW_next;
}

/* If all paths leave, the following code is executed anyway. */
void dry_paths(Eval *ev, Frame *f, const u32 *path, u32 n, u32 join) {
  Mark mark = arena_mark(&ev->dry->a);
  DryState before = save(ev), after = {0};
  for (u32 i = 0; i < n; i++) {
    if (i) for_each_slot(ev, restore_slot, before.at);
    if (!eval_path(ev, f, path[i], join)) continue;
    if (after.at) {
      for_each_slot(ev, join_slot, after.at);
      for_each_slot(ev, drop_saved, after.at);
    }
    after = save(ev);
  }
  if (after.at) {
    for_each_slot(ev, restore_slot, after.at);
    for_each_slot(ev, drop_saved, after.at);
  }
  for_each_slot(ev, drop_saved, before.at);
  arena_rewind(&ev->dry->a, mark);
}

static void loop_begin(Eval *ev, const Ast *n, DryLoop *l) {
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

/* After an iteration that ended so: true if the loop continues. *flow is how the loop ends. */
static bool loop_continues(Eval *ev, DryLoop *l, Flow *flow) {
  bool ends = *flow == FLOW_break || *flow == FLOW_return;
  count_step(ev, l->at);
  if (!ends || l->next.any) { /* may continue on another path */
    if (ends) path_exits(ev, *flow);
    *flow = FLOW_next;
    join_pending(ev, &l->next, ends);
    return true;
  }
  if (*flow == FLOW_return && l->left.any) {
    path_exits(ev, *flow);
    join_pending(ev, &l->left, true);
    *flow = FLOW_next;
  } else if (*flow == FLOW_break) {
    *flow = FLOW_next;
  }
  return false;
}

/* Enough iterations without a new graph. */
static bool is_idle(Eval *ev, DryLoop *l) {
  return ++l->turns >= MAX_ITERATIONS && ++ev->dry->idle >= MAX_IDLE;
}

static void loop_end(Eval *ev, DryLoop *l, Flow flow) {
  if (flow == FLOW_next) join_pending(ev, &l->left, false);
  ev->dry->loop = l->outer;
  for_each_slot(ev, drop_saved, l->before.at);
  arena_rewind(&ev->dry->a, l->mark);
}

/* Continues while the condition is known to hold. If it is unknown, stops when no new graph
 * appears. */
Flow dry_while(Eval *ev, Frame *f, const CodeLoop *loop, const Ast *n) {
  DryLoop l;
  bool open = false;
  u32 idle = 0;
  Flow flow = FLOW_next;
  loop_begin(ev, n, &l);
  while (idle < MAX_ITERATIONS) {
    u32 known = ev->dry->graph.n;
    ev->dry->maybe = false;
    flow = run_test(ev, f, loop->head, loop->body, loop->end);
    bool maybe = ev->dry->maybe, fails = flow == FLOW_end && !maybe;
    if (flow == FLOW_end) flow = FLOW_next;
    if (fails || flow != FLOW_next) break;
    flow = run_range(ev, f, loop->body, loop->next);
    if (!loop_continues(ev, &l, &flow)) break;
    open |= maybe || l.left.any || is_idle(ev, &l);
    if (!open) continue;
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
    widen_loop(ev, &l);
  }
  loop_end(ev, &l, flow);
  return flow;
}

/* An unknown number of iterations with the variable at *value. */
static void unknown_loop(Eval *ev, Frame *f, LangValue *var, LangValue value, u32 body, u32 next) {
  DryLoop l;
  loop_begin(ev, f->code->at[body], &l);
  for (u32 idle = 0; idle < MAX_ITERATIONS;) {
    u32 known = ev->dry->graph.n;
    LangValue old = *var;
    *var = value_retain(&value);
    value_drop(ev, &old);
    bool on = eval_path(ev, f, body, next);
    join_pending(ev, &l.next, !on);
    widen_loop(ev, &l);
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
  }
  value_drop(ev, &value);
  loop_end(ev, &l, FLOW_next);
}

Flow dry_for(Eval *ev, Frame *f, LangValue *at, LangValue *var, u32 body, u32 next) {
  const ListObj *over = at[1].kind == KD_array ? at[1].u.list : NULL;
  LangValue open = value_unknown(ev, KD_int); /* refused outside of a dry run */
  Flow flow = FLOW_next;
  bool on = true;
  if (over ? value_is_unknown(ev, &at[1]) : at[0].open || at[1].open) {
    unknown_loop(ev, f, var, over ? dry_any_element(ev, over) : open, body, next);
    return FLOW_next;
  }
  DryLoop l;
  i64 i = over ? 0 : at[0].u.i, end = over ? (i64)over->n : at[1].u.i;
  loop_begin(ev, f->code->at[body], &l);
  while (on && i < end) {
    LangValue old = *var;
    *var = over ? value_retain(&over->at[i]) : value_int(i);
    value_drop(ev, &old);
    i++;
    flow = run_range(ev, f, body, next);
    on = loop_continues(ev, &l, &flow);
    if (!on || !is_idle(ev, &l)) continue;
    unknown_loop(ev, f, var, over ? dry_any_element(ev, over) : open, body, next);
    break;
  }
  loop_end(ev, &l, flow);
  return flow;
}
