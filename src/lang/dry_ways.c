/* dry_ways.c: the ways a program may take, in a run that computes no tensors; see dry.h.
 *
 * In: a condition that is not known. Out: the state behind all that it may choose: each way is
 * walked from the state in front, then variables are joined: what differs is open. A way that
 * fails leaves the others' state alone; the state of one that ends a turn, a loop or a call is kept
 * and joined where that ends. What objects hold is not taken back: of a layer or an optimiser only
 * shapes matter here, and those stay.
 */
#include "lang/dry.h"

enum {
  TURNS = 3,           /* of a loop that may end any time, without a new graph; of calls in calls */
  MOST_IDLE = 1000000, /* turns that find no new graph: behind them loops are left */
};

/* A turn, a call or a way: no program keeps the walk for ever, whatever its functions call. */
static void step(Eval *ev, const Ast *at) {
  if (ev->dry->left--) return;
  const char *what = "the program runs too long to be walked before it is compiled";
  fail(ev->c, ERR_unsupported, LOC_NONE, "%s", eval_says(ev, at, what));
}

/* ---- states ---- */

typedef void SlotFn(Eval *ev, Worth *d, Worth *kept);

/* Every variable that there is, with its place in the state. */
static u32 each(Eval *ev, SlotFn *fn, Worth *kept) {
  u32 n = 0;
  for (u32 i = 0; i < MODULES; i++)
    for (u32 k = 0; ev->file[i] && k < ev->file[i]->n; k++, n++)
      if (fn) fn(ev, &ev->file[i]->at[k], &kept[n]);
  for (Locals *l = ev->local; l; l = l->outer) {
    if (!l->self) continue; /* a file */
    for (u32 k = 0; k < l->n; k++, n++)
      if (fn) fn(ev, &l->at[k], &kept[n]);
  }
  return n;
}

static void keep(Eval *ev, Worth *d, Worth *kept) {
  *kept = worth_share(d);
  (void)ev;
}

static void bring_back(Eval *ev, Worth *d, Worth *kept) {
  Worth old = *d;
  *d = worth_share(kept);
  worth_drop(ev, &old);
}

static void merge(Eval *ev, Worth *d, Worth *kept) {
  dry_join(ev, d, kept);
}

static void let_go(Eval *ev, Worth *d, Worth *kept) {
  worth_drop(ev, kept);
  (void)d;
}

static DryState save(Eval *ev) {
  DryState s = {.n = each(ev, NULL, NULL)};
  s.at = arena_array(&ev->dry->a, s.n + 1, sizeof *s.at);
  each(ev, keep, s.at);
  return s;
}

/* ---- joining ---- */

static bool is_number(LangKind k) {
  return k == KD_int || k == KD_float || k == KD_bool;
}

/* Tensors of several shapes, or values of several kinds: only who looks at it is refused. */
static Worth unlike(WorthOpen how) {
  return (Worth){.kind = KD_null, .open = how};
}

void dry_look(Eval *ev, const Ast *at, const Worth *d) {
  if (d->kind == KD_null && d->open)
    dry_refuse(ev, at, d->open == OPEN_kind ? "a kind" : "a shape");
}

/* The one stays, with what optimisers know of it, but its data are not known any more. What follows
 * finds either computed: both are graphs by themselves. */
static void join_tensors(Eval *ev, Worth *d, const Worth *other) {
  Lazy *x = d->u.lazy;
  const Lazy *y = other->u.lazy;
  if (x == y) return;
  bool same = x->rank == y->rank;
  for (u32 i = 0; same && i < x->rank; i++) same = x->dim[i] == y->dim[i];
  if (!same) {
    worth_drop(ev, d);
    *d = unlike(OPEN_shape);
    return;
  }
  lazy_data(ev, other->u.lazy);
  lazy_data(ev, x);
  dry_blank(ev, x);
}

/* An element that is there on one way: on the other something else may come to its place. */
static void open_element(Eval *ev, Worth *d) {
  if (d->kind == KD_array || d->kind == KD_tuple || d->kind == KD_struct) {
    BoxList *l = list_own(ev, d);
    for (u64 i = 0; i < l->n; i++) open_element(ev, &l->at[i]);
  } else if (d->kind == KD_tensor) {
    if (d->u.lazy->data) dry_blank(ev, d->u.lazy);
  } else if (d->kind == KD_string || is_number(d->kind)) {
    LangKind kind = d->kind;
    worth_drop(ev, d);
    *d = worth_unknown(ev, kind);
  }
}

/* Of lists of different lengths the longer one stays, and its length is open. */
static void join_lists(Eval *ev, Worth *d, const Worth *other) {
  if (d->u.list == other->u.list) {
    if (other->open) d->open = OPEN_length;
    return;
  }
  Worth shorter = worth_share(other);
  bool open = d->open || other->open || d->u.list->n != other->u.list->n;
  if (d->u.list->n < other->u.list->n) {
    Worth swap = *d;
    *d = shorter;
    shorter = swap;
  }
  BoxList *l = list_own(ev, d);
  for (u64 i = 0; i < l->n; i++) {
    if (i < shorter.u.list->n)
      dry_join(ev, &l->at[i], &shorter.u.list->at[i]);
    else
      open_element(ev, &l->at[i]);
  }
  d->open = open ? OPEN_length : OPEN_not;
  worth_drop(ev, &shorter);
}

static bool is_nothing(const Worth *d) {
  return d->kind == KD_none || (d->kind == KD_null && !d->open);
}

void dry_join(Eval *ev, Worth *d, const Worth *other) {
  if (is_nothing(other)) return;
  if (is_nothing(d)) {
    worth_drop(ev, d);
    *d = worth_share(other);
    return;
  }
  if (d->kind != other->kind) {
    bool numbers = (d->kind == KD_int || d->kind == KD_float) &&
                   (other->kind == KD_int || other->kind == KD_float);
    bool shapes = other->kind == KD_null && other->open == OPEN_shape;
    worth_drop(ev, d);
    *d = numbers ? worth_unknown(ev, KD_float) : unlike(shapes ? OPEN_shape : OPEN_kind);
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
    if (!d->open && !other->open && worth_equal(ev, d, other)) return;
    LangKind kind = d->kind;
    worth_drop(ev, d);
    *d = worth_unknown(ev, kind);
    return;
  default: return;
  }
}

static void join_result(Eval *ev, Worth *to, Worth v) { /* takes v */
  dry_join(ev, to, &v);
  worth_drop(ev, &v);
}

/* ---- states that wait ---- */

static void gather_one(Eval *ev, Worth *d, Worth *kept) {
  dry_join(ev, kept, d);
}

static DryPend pend_new(Eval *ev) {
  DryPend p = {.s.n = each(ev, NULL, NULL)};
  p.s.at = arena_array(&ev->dry->a, p.s.n + 1, sizeof *p.s.at);
  return p;
}

/* Variables of files that were imported since are not in it. */
static bool is_of_now(Eval *ev, const DryPend *p) {
  return each(ev, NULL, NULL) == p->s.n;
}

static void gather(Eval *ev, DryPend *p) {
  if (!is_of_now(ev, p)) return;
  each(ev, p->any ? gather_one : keep, p->s.at);
  p->any = true;
}

/* alone: what is there now is on no way. */
static void fold_in(Eval *ev, DryPend *p, bool alone) {
  if (!p->any || !is_of_now(ev, p)) return;
  each(ev, alone ? bring_back : merge, p->s.at);
  each(ev, let_go, p->s.at);
  p->any = false;
}

void dry_enter(Eval *ev, DryCall *call) {
  DryRun *d = ev->dry;
  *call = (DryCall){.outer = d->call, .loop = d->loop, .mark = arena_mark(&d->a)};
  call->back = pend_new(ev);
  d->call = call;
  d->loop = NULL;
}

Worth dry_leave(Eval *ev, DryCall *call, Worth v) {
  DryRun *d = ev->dry;
  join_result(ev, &v, call->maybe);
  fold_in(ev, &call->back, false);
  d->call = call->outer;
  d->loop = call->loop;
  arena_rewind(&d->a, call->mark);
  return v;
}

/* A way that may be taken leaves: its state waits where that ends. */
static void leaves(Eval *ev, Flow flow) {
  DryRun *d = ev->dry;
  ev->flow = FLOW_next;
  if (flow == FLOW_return) {
    if (d->call) gather(ev, &d->call->back);
    if (d->call)
      join_result(ev, &d->call->maybe, ev->result);
    else
      worth_drop(ev, &ev->result);
    ev->result.kind = KD_none;
  } else if (d->loop && flow != FLOW_next) {
    gather(ev, flow == FLOW_break ? &d->loop->left : &d->loop->next);
  }
}

void dry_call(Eval *ev, const Ast *at, const LangFn *fn) {
  u32 n = 0;
  step(ev, at);
  for (const Locals *l = ev->local; ev->dry->ways && l; l = l->outer)
    n += l->self && l->self->fn == fn;
  if (n >= TURNS) eval_fail(ev, at, "calls are nested too deeply"); /* which ends that way */
}

/* ---- one way ---- */

typedef struct DryWay {
  Eval *ev;
  Ast *n; /* NULL: nothing is done */
  Worth v;
} DryWay;

static void walk(Ctx *c, void *arg) {
  DryWay *w = arg;
  (void)c;
  w->v.kind = KD_null;
  if (w->n) w->v = w->n->kind == AST_block ? eval_block(w->ev, w->n) : eval_node(w->ev, w->n);
}

/* Walks it; false: it fails, or leaves. *v is its value. */
static bool goes(Eval *ev, Ast *n, Worth *v) {
  DryWay w = {.ev = ev, .n = n};
  Locals *local = ev->local;
  u32 depth = ev->depth, in_grad = ev->in_grad;
  DryCall *call = ev->dry->call;
  DryLoop *loop = ev->dry->loop;
  const char *why;
  step(ev, n);
  ev->dry->ways++;
  Err e = ctx_try(ev->c, walk, &w, &why);
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
  leaves(ev, flow);
  return flow == FLOW_next;
}

/* All of them from the same state; the state and value behind those that go on. */
static Worth walk_all(Eval *ev, Ast *const *way, u32 n) {
  Mark mark = arena_mark(&ev->dry->a);
  DryState before = save(ev), after = {0};
  Worth out = {.kind = KD_none};
  for (u32 i = 0; i < n; i++) {
    Worth v;
    if (i) each(ev, bring_back, before.at);
    if (!goes(ev, way[i], &v)) {
      worth_drop(ev, &v);
      continue;
    }
    join_result(ev, &out, v);
    if (after.at) {
      each(ev, merge, after.at);
      each(ev, let_go, after.at);
    }
    after = save(ev);
  }
  if (after.at) {
    each(ev, bring_back, after.at);
    each(ev, let_go, after.at);
  } else {
    out.kind = KD_null; /* none goes on: what follows is walked all the same */
  }
  each(ev, let_go, before.at);
  arena_rewind(&ev->dry->a, mark);
  return out;
}

Worth dry_if(Eval *ev, const Ast *n) {
  if (!ev->dry) dry_refuse(ev, n->a, "a choice");
  return walk_all(ev, (Ast *const[]){n->b, n->c}, 2);
}

Worth dry_match(Eval *ev, const Ast *n, Worth v) {
  if (!ev->dry) dry_refuse(ev, n->a, "a choice");
  Ast **way = arena_array(&ev->c->keep, n->nkid + 1, sizeof *way);
  for (u32 i = 0; i < n->nkid; i++) {
    const Ast *pattern = n->kid[i]->a;
    way[i] = n->kid[i]->b;
    if (!pattern || pattern->kind != AST_name) continue;
    Worth *var = &ev->local->at[pattern->slot];
    worth_drop(ev, var);
    *var = worth_share(&v);
  }
  worth_drop(ev, &v);
  return walk_all(ev, way, n->nkid);
}

/* ---- loops ---- */

static bool holds(Eval *ev, Ast *n, bool *open) {
  Worth c = eval_node(ev, n);
  bool yes = worth_true(&c);
  *open = worth_open(ev, &c);
  worth_drop(ev, &c);
  return yes || *open;
}

void dry_begin(Eval *ev, const Ast *n, DryLoop *l) {
  *l = (DryLoop){.outer = ev->dry->loop, .at = n, .mark = arena_mark(&ev->dry->a)};
  l->before = save(ev);
  l->next = pend_new(ev);
  l->left = pend_new(ev);
  ev->dry->loop = l;
}

/* What changes from turn to turn is not known behind a loop that nobody knows the end of. */
static void blur(Eval *ev, DryLoop *l) {
  each(ev, merge, l->before.at);
}

bool dry_goes_on(Eval *ev, DryLoop *l) {
  Flow flow = ev->flow;
  bool ends = flow == FLOW_break || flow == FLOW_return;
  step(ev, l->at);
  if (!ends || l->next.any) { /* on another way, if not on this one */
    if (ends) leaves(ev, flow);
    ev->flow = FLOW_next;
    fold_in(ev, &l->next, ends);
    return true;
  }
  if (flow == FLOW_return && l->left.any) {
    leaves(ev, flow);
    fold_in(ev, &l->left, true);
  } else if (flow == FLOW_break) {
    ev->flow = FLOW_next;
  }
  return false;
}

bool dry_is_idle(Eval *ev, DryLoop *l) {
  return ++l->turns >= TURNS && ++ev->dry->idle >= MOST_IDLE;
}

void dry_end(Eval *ev, DryLoop *l) {
  if (ev->flow == FLOW_next) fold_in(ev, &l->left, false);
  ev->dry->loop = l->outer;
  each(ev, let_go, l->before.at);
  arena_rewind(&ev->dry->a, l->mark);
}

/* A loop that is known to go on does so; one that may have ended ends where nothing new comes. */
Worth dry_while(Eval *ev, Ast *n) {
  DryLoop l;
  bool open = false;
  u32 idle = 0;
  Worth v = {.kind = KD_null};
  dry_begin(ev, n, &l);
  while (idle < TURNS) {
    u32 known = ev->dry->graph.n;
    bool maybe;
    if (!holds(ev, n->a, &maybe)) break;
    worth_drop(ev, &v);
    v = eval_block(ev, n->b);
    if (!dry_goes_on(ev, &l)) break;
    open |= maybe || l.left.any || dry_is_idle(ev, &l);
    if (!open) continue;
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
    blur(ev, &l);
  }
  dry_end(ev, &l);
  return v;
}

void dry_turns(Eval *ev, Ast *n, Worth var) {
  DryLoop l;
  dry_begin(ev, n, &l);
  for (u32 idle = 0; idle < TURNS;) {
    u32 known = ev->dry->graph.n;
    Worth old = ev->local->at[n->slot], v;
    ev->local->at[n->slot] = worth_share(&var);
    worth_drop(ev, &old);
    bool on = goes(ev, n->b, &v);
    worth_drop(ev, &v);
    fold_in(ev, &l.next, !on);
    blur(ev, &l);
    idle = ev->dry->graph.n == known ? idle + 1 : 0;
  }
  worth_drop(ev, &var);
  dry_end(ev, &l);
}
