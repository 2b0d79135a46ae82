/* scalar.c: runs hot numeric loops as bytecode or on the chosen engine.
 *
 * In: a loop being interpreted, before an iteration. Out: the iterations run by compiled code, and
 * how the loop was left. Method: after HOT_ITERATIONS the loop becomes a Prog (scalar_stmt.c),
 * specialized for the current kinds of its variables, and is cached with these kinds. A run copies
 * variables in, and out if nothing failed. A failed run changes nothing, and the interpreter
 * continues. The vm runs the Prog first; a compiling engine takes over once its compile time pays
 * off. Loops with runs too short for the copying are interpreted.
 */
#include "lang/run/scalar.h"

#include <string.h>

/* HOT_INSIDE: iterations of inner loops that also make a loop hot. */
enum { HOT_ITERATIONS = 1000, HOT_INSIDE = 20000, HOT_KINDS = 4, HOT_MAX = 256, HOT_FAILS = 3 };
enum { JIT_ITERATIONS = 2000000, C_ITERATIONS = 4000000 }; /* before code is generated */
/* Cost of a run in iterations: RUN_COST, plus 1 per COPY_PER_ITERATION copied elements. If the cost
 * exceeds the iterations run by SLACK_ITERATIONS, only long executions are compiled. */
enum { RUN_COST = 24, COPY_PER_ITERATION = 8, SLACK_ITERATIONS = 4096 };
/* Extra fuel of a run per copied element, in iterations. */
enum { ELEMENT_FUEL = 8 };

typedef struct HotCode { /* a loop, specialized for the kinds of its variables */
  NumLoop loop;
  const Engine *engine; /* current engine */
  bool tried;           /* the chosen engine was tried */
  u64 turns, cost;
  Tensor **in, **out;
  i64 *ints;
  double *floats;
  void **array; /* by array index */
} HotCode;

struct HotLoop {
  const Ast *n;
  u64 walked, turns;
  /* Iterations to interpret before each run: 0, unless most executions are short. */
  u64 wait;
  u32 runs, failed;
  bool off;
  const char *why; /* why it is off; NULL: runs failed */
  VEC(HotCode *) code;
};

struct HotLoops {
  bool off; /* the engine only interprets */
  u32 made;
  const Engine *vm, *engine;
  /* iterations before compiling to a Prog, and before the engine gets it */
  u64 start, engine_turns;
  u64 total; /* iterations of all loops */
  VEC(HotLoop *) all;
};

static HotLoops *loops_of(Eval *ev) {
  if (ev->hot) return ev->hot;
  HotLoops *h = ev->hot = NEW(&ev->c->keep, HotLoops);
  const char *name = ev->o->engine ? ev->o->engine : "vm";
  bool c = !strcmp(name, "c");
  h->off = !c && strcmp(name, "vm") != 0 && strcmp(name, "jit") != 0;
  h->vm = api_engine(ev->c, "vm", 0);
  h->engine = api_engine(ev->c, name, 0);
  if (ev->o->eager) return h;
  h->start = HOT_ITERATIONS;
  h->engine_turns = c ? C_ITERATIONS : JIT_ITERATIONS;
  return h;
}

HotIter hot_begin(Eval *ev, Ast *n) {
  HotLoops *h = loops_of(ev);
  HotIter t = {.begin = h->total};
  if (h->off || ev->tracing || ev->dry) return t;
  if (!n->hot) {
    HotLoop *l = NEW(&ev->c->keep, HotLoop);
    l->n = n;
    *vec_push(&ev->c->keep, &h->all) = l;
    n->hot = h->all.n;
  }
  HotLoop *l = h->all.at[n->hot - 1];
  if (!l->off) t.loop = l;
  return t;
}

typedef struct CompileJob {
  Eval *ev;
  HotCode *code;
  Ast *n;
  const ListObj *over;
} CompileJob;

static void make_tensors(Ctx *c, HotCode *h) {
  NumLoop *l = &h->loop;
  const Prog *p = l->m->p;
  h->in = NEWS(&c->keep, Tensor *, p->in.n);
  h->out = NEWS(&c->keep, Tensor *, p->out.n);
  h->ints = NEWS(&c->keep, i64, l->nint);
  h->floats = NEWS(&c->keep, double, l->nfloat);
  h->array = NEWS(&c->keep, void *, l->array.n + 1);
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    i64 dim = b->dim[0];
    void *at = i == 0 ? (void *)h->ints : i == 1 ? (void *)h->floats : NULL;
    if (!at) at = h->array[i - 2] = NEWS(&c->keep, i64, (size_t)dim);
    h->in[i] = tensor_wrap(&c->keep, b->dt, &dim, 1, at);
  }
}

static void make(Ctx *c, void *arg) {
  CompileJob *k = arg;
  Ingot *m = k->code->loop.m;
  NumBuild b = {.ev = k->ev, .c = c, .a = &c->keep, .to = &k->code->loop};
  if (k->n->kind == AST_fn)
    num_function(&b, k->n);
  else
    num_loop(&b, k->n, k->over);
  m->p = b.p;
  model_adopt(m, "loop");
  m->compiled.stays = true;
  prog_check(m->p);
  api_compile(m, &(IngotPassOptions){.start = "plan"},
              &(CompileRequest){target_scalar(), AIM_time, 0});
  make_tensors(c, k->code);
  api_vm(m);
}

/* NULL if the loop is not purely numeric and must be interpreted. */
static HotCode *code_new(Eval *ev, HotLoop *l, Ast *n, const ListObj *over) {
  IngotAlloc alloc = {ev->c->alloc.resize, ev->c->alloc.user};
  HotLoops *all = ev->hot;
  l->off = true;
  if (all->made == HOT_MAX || l->code.n == HOT_KINDS) return NULL;
  HotCode *h = NEW(&ev->c->keep, HotCode);
  Ingot *m = h->loop.m = ingot_new(&alloc);
  if (!m) fail(ev->c, ERR_system, LOC_NONE, "out of memory");
  m->c->guard = ev->c->guard;
  CompileJob k = {ev, h, n, over};
  const char *why;
  if (ctx_try(m->c, make, &k, &why)) {
    l->why = str_text(ev->c, str_of(ev->c, why));
    ingot_free(m);
    return NULL;
  }
  l->off = false;
  h->engine = all->vm;
  all->made++;
  *vec_push(&ev->c->keep, &l->code) = h;
  return h;
}

static LangValue *home_of(Eval *ev, const NumVar *v) {
  Locals *l = v->place.kind == VR_global ? ev->file[v->place.file] : ev->local;
  LangValue *d = l && v->place.slot < l->n ? &l->at[v->place.slot] : NULL;
  for (u32 i = 0; d && i < v->ncapture; i++)
    d = d->kind == KD_fn && v->capture[i] < d->u.fn->n ? &d->u.fn->with[v->capture[i]] : NULL;
  return d;
}

static bool list_fits(const NumArray *a, const ListObj *l) {
  NumShape s = num_shape(l);
  return s.kind == a->kind && s.rank == a->rank && s.n <= a->room;
}

/* True if the variables have the kinds that the code was compiled for. */
static bool fits(Eval *ev, const HotCode *h, const ListObj *over) {
  const NumLoop *l = &h->loop;
  if (l->over && (!over || !list_fits(&l->array.at[0], over))) return false;
  for (u32 i = 0; i < l->var.n; i++) {
    const NumVar *v = &l->var.at[i];
    const LangValue *d = v->home ? home_of(ev, v) : NULL;
    if (!v->home || v->entry == KD_any) continue;
    if (!d || d->kind != v->entry) return false;
    if (v->entry == KD_fn && (d->u.fn->fn != v->fn || d->u.fn->grad_of)) return false;
    if (v->entry == KD_array && !list_fits(&l->array.at[v->array - 1], d->u.list)) return false;
  }
  return true;
}

/* Copies elements to position `at`. Returns the position after them. */
static u64 rows_in(HotCode *h, u32 number, const ListObj *l, u64 at) {
  bool floats = h->loop.array.at[number].kind == KD_float;
  double *f = h->array[number];
  i64 *i = h->array[number];
  for (u64 k = 0; k < l->n; k++) {
    if (l->at[k].kind == KD_array)
      at = rows_in(h, number, l->at[k].u.list, at);
    else if (floats)
      f[at++] = l->at[k].u.f;
    else
      i[at++] = l->at[k].u.i;
  }
  return at;
}

static void array_in(HotCode *h, u32 number, const ListObj *l) {
  const NumArray *a = &h->loop.array.at[number];
  const ListObj *row = l;
  for (u32 i = 0; i < a->rank; i++, row = row->at[0].u.list) h->ints[a->length + i] = (i64)row->n;
  u64 n = rows_in(h, number, l, 0);
  h->cost += n / COPY_PER_ITERATION;
  h->ints[IN_fuel] += (i64)n * ELEMENT_FUEL;
}

static void copy_in(Eval *ev, HotCode *h, const ListObj *over) {
  static const LangKind kinds[NUM_KINDS] = {KD_int, KD_float, KD_bool};
  const NumLoop *l = &h->loop;
  if (l->over && over) array_in(h, 0, over);
  for (u32 i = 0; i < l->var.n; i++) {
    const NumVar *v = &l->var.at[i];
    const LangValue *d = v->home ? home_of(ev, v) : NULL;
    if (d && v->entry == KD_array) array_in(h, v->array - 1, d->u.list);
    for (u32 k = 0; d && k < NUM_KINDS; k++) {
      if (!v->as[k] || v->entry != kinds[k]) continue;
      if (v->entry == KD_float)
        h->floats[v->in[k]] = d->u.f;
      else
        h->ints[v->in[k]] = d->u.i;
    }
  }
}

static LangValue number_of_kind(const HotCode *h, LangKind k, u32 at) {
  if (k == KD_float) return value_float(((const double *)h->out[1]->data)[at]);
  if (!num_is_number(k)) return (LangValue){.kind = KD_null};
  return (LangValue){k, .u = {.i = ((const i64 *)h->out[0]->data)[at]}};
}

static u64 rows_out(Eval *ev, LangKind kind, const void *from, LangValue *d, u64 at) {
  const double *f = from;
  const i64 *i = from;
  ListObj *l = list_make_unique(ev, d);
  for (u64 k = 0; k < l->n; k++) {
    if (l->at[k].kind == KD_array)
      at = rows_out(ev, kind, from, &l->at[k], at);
    else
      l->at[k] = kind == KD_float ? value_float(f[at]) : (LangValue){kind, .u = {.i = i[at]}}, at++;
  }
  return at;
}

static void array_out(Eval *ev, const HotCode *h, u32 number, LangValue *d) {
  const NumArray *a = &h->loop.array.at[number];
  const Prog *p = h->loop.m->p;
  u32 at = 0;
  while (p->out.at[at] != a->out) at++;
  rows_out(ev, a->kind, h->out[at]->data, d, 0);
}

static void copy_out(Eval *ev, const HotCode *h) {
  const NumLoop *l = &h->loop;
  for (u32 i = 0; i < l->var.n; i++) {
    const NumVar *v = &l->var.at[i];
    if (v->home && v->array && l->array.at[v->array - 1].out)
      array_out(ev, h, v->array - 1, home_of(ev, v));
    if (!v->home || !v->changed) continue;
    LangKind k = v->entry;
    if (v->tag) k = (LangKind)((const i64 *)h->out[0]->data)[v->out_tag];
    u32 column = k == KD_int ? 0 : k == KD_float ? 1 : 2;
    if (k != KD_none) *home_of(ev, v) = number_of_kind(h, k, v->out[column]);
  }
}

static void run(Ctx *c, void *arg) {
  HotCode *h = arg;
  Ingot *m = h->loop.m;
  arena_clear(&m->run.once);
  m->run.in = h->in;
  m->run.out = h->out;
  m->run.nin = m->p->in.n;
  m->run.nout = m->p->out.n;
  h->engine->run(m, 0);
  (void)c;
}

static void make_code(Ctx *c, void *arg) {
  HotCode *h = arg;
  h->engine->make(h->loop.m);
  (void)c;
}

static bool run_protected(HotCode *h, void (*fn)(Ctx *c, void *arg)) {
  Ctx *c = h->loop.m->c;
  const char *why;
  bool ok = !ctx_try(c, fn, h, &why);
  arena_clear(&c->scratch);
  return ok;
}

/* Switches to the chosen engine once that pays off. If it fails, the vm continues. */
static void choose_engine(const HotLoops *all, HotCode *h) {
  if (h->tried || all->engine == all->vm || h->turns < all->engine_turns) return;
  h->tried = true;
  h->engine = all->engine;
  if (!run_protected(h, make_code)) h->engine = all->vm;
}

/* The first code that fits, or new code. NULL: interpret the loop. */
static HotCode *code_for(Eval *ev, HotLoop *l, Ast *n, const ListObj *over) {
  for (u32 i = 0; i < l->code.n; i++)
    if (fits(ev, l->code.at[i], over)) return l->code.at[i];
  return code_new(ev, l, n, over);
}

static bool give_up(HotIter *t) {
  t->loop = NULL;
  return false;
}

/* Copies the results out. True if the loop ended. */
static bool read_results(Eval *ev, HotIter *t, const HotCode *h, LangValue *value) {
  const i64 *out = h->out[0]->data;
  t->at = out[OUT_at];
  if (out[OUT_value] != KD_none) {
    value_drop(ev, value);
    *value = number_of_kind(h, (LangKind)out[OUT_value], h->loop.value_out);
  }
  if (out[OUT_leave] == EXIT_return) {
    ev->result = number_of_kind(h, h->loop.result, h->loop.result_out);
    ev->flow = FLOW_return;
  }
  return out[OUT_leave] >= EXIT_break || out[OUT_over];
}

bool hot_run(Eval *ev, HotIter *t, Ast *n, LangValue *value) {
  HotLoop *l = t->loop;
  if (!l) return false;
  bool hot = ev->hot->total++ - t->begin >= HOT_INSIDE;
  if ((l->walked++ < ev->hot->start && !hot) || t->walked++ < l->wait) return false;
  if (n->kind == AST_for && (t->end > NUM_END || t->at < -NUM_END)) return give_up(t);
  for (bool end = false; !end;) {
    HotCode *h = code_for(ev, l, n, t->over);
    if (!h || ev->depth + h->loop.depth > EVAL_DEPTH) return give_up(t);
    choose_engine(ev->hot, h);
    h->ints[IN_fuel] = FUEL;
    h->ints[IN_at] = t->at;
    h->ints[IN_end] = t->end;
    u64 cost = h->cost;
    h->cost += RUN_COST;
    copy_in(ev, h, t->over);
    if (!run_protected(h, run)) {
      l->off = ++l->failed == HOT_FAILS;
      return give_up(t);
    }
    u64 turns = (u64)(h->ints[IN_fuel] - ((const i64 *)h->out[0]->data)[OUT_fuel]);
    copy_out(ev, h);
    h->turns += turns;
    l->turns += turns;
    ev->hot->total += turns;
    l->runs++;
    if (h->cost > h->turns + SLACK_ITERATIONS && !ev->o->eager)
      l->wait = HOT_ITERATIONS + (h->cost - cost);
    end = read_results(ev, t, h, value);
    if (!end) eval_check_stop(ev, n);
  }
  return true;
}

/* ---- recursive functions ---- */

/* The counter of the function, or NULL if it is interpreted. */
static HotLoop *counted(Eval *ev, LangFn *fn) {
  HotLoops *h = loops_of(ev);
  Ast *n = fn->ast;
  if (h->off || ev->tracing || ev->dry || n->hot == UINT32_MAX) return NULL;
  if (fn->calls < h->start) {
    fn->calls++;
    return NULL;
  }
  if (!n->hot && !fn_reaches(ev, fn, fn)) {
    n->hot = UINT32_MAX;
    return NULL;
  }
  if (!n->hot) {
    HotLoop *l = NEW(&ev->c->keep, HotLoop);
    l->n = n;
    *vec_push(&ev->c->keep, &h->all) = l;
    n->hot = h->all.n;
  }
  HotLoop *l = h->all.at[n->hot - 1];
  return l->off ? NULL : l;
}

bool hot_call(Eval *ev, LangFn *fn, LangValue *value) {
  HotLoop *l = counted(ev, fn);
  HotCode *h = l ? code_for(ev, l, fn->ast, NULL) : NULL;
  if (!h || ev->depth + h->loop.depth > EVAL_DEPTH) return false;
  choose_engine(ev->hot, h);
  h->ints[IN_fuel] = FUEL;
  h->cost += RUN_COST;
  copy_in(ev, h, NULL);
  if (!run_protected(h, run)) {
    l->off = ++l->failed == HOT_FAILS;
    return false;
  }
  u64 turns = (u64)(h->ints[IN_fuel] - ((const i64 *)h->out[0]->data)[OUT_fuel]);
  h->turns += turns;
  l->turns += turns;
  l->runs++;
  *value = number_of_kind(h, h->loop.result, h->loop.result_out);
  if (h->cost > h->turns + SLACK_ITERATIONS && !ev->o->eager) {
    l->off = true;
    l->why = "calls are short";
  }
  return true;
}

static void report_loop(Eval *ev, const HotLoop *l) {
  const Script *s = ev->s->all->at[l->n->file];
  const char *where =
      str_text(ev->c, str_fmt(ev->c, "%s:%u", str_text(ev->c, s->file), script_line(s, l->n->at)));
  StrBuf t = sb_new(&ev->c->work);
  sb_fmt(&t, "%s: %s", where, l->n->kind == AST_fn ? "function" : "loop");
  if (l->runs)
    sb_fmt(&t, ": %llu iterations in %u runs on %s", (unsigned long long)l->turns, l->runs,
           l->code.at[l->code.n - 1]->engine->info.name);
  if (l->off)
    sb_fmt(&t, "%s interpreted: %s", l->runs ? ", then" : " is", l->why ? l->why : "runs fail");
  ev->o->on_loop(ev->o->user, sb_cstr(&t));
}

void hot_free(Eval *ev) {
  HotLoops *h = ev->hot;
  if (!h) return;
  for (u32 i = 0; i < h->all.n; i++) {
    const HotLoop *l = h->all.at[i];
    if (ev->o->on_loop && (l->runs || l->off)) report_loop(ev, l);
    for (u32 k = 0; k < l->code.n; k++) ingot_free(l->code.at[k]->loop.m);
  }
  ev->hot = NULL;
}
