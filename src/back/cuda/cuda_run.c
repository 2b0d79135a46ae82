/* cuda_run.c: runs a program on the device.
 *
 * In: a planned program and inputs. Out: outputs. Memory is planned as on a CPU: one arena, which
 * keeps the state, and one block with all constants. The host executes what stands between kernels;
 * where that reads what a kernel wrote, it waits for the device. A run that never does so is
 * recorded as a graph, and later runs with the same sizes replay it. Scratch of the workers has its
 * own memory; the grid of a kernel is as small as that memory needs. */
#include "back/cuda/cuda.h"
#include "ir/prog/prog_mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES ((u64)256 << 20) /* limit of all workers of a kernel */

enum {
  GRID_MAX = 1 << 20,
  ATTRIBUTE_PROGRAMMATIC = 6, /* a kernel starts before the one before it ends: see ig_after */
  CAPTURE_THREAD = 1,
};

struct Cuda {
  Ctx *c;
  Prog *p;
  CudaText *t;
  CudaLib *l;
  void *stream;
  bool has_context;
  CudaUnits units;
  void **module; /* by unit */
  void **fn;     /* by function */
  DevicePtr arena, weights, slots, scratch;
  u64 scratch_bytes;
  DevicePtr *at; /* by buffer: of roots */
  u64 *room;     /* by buffer: bytes of an input or output */
  i64 *key;      /* by symbol: sizes of the recorded run */
  i64 *after;    /* by symbol: sizes at its end */
  u64 key_seed;
  bool key_valid;
  void *exec;       /* the recorded run; NULL: none */
  KernelTime *time; /* by call; NULL: kernels are not timed */
  void *event[2];
};

/* A run. */
typedef struct DeviceRun {
  Cuda *g;
  Ctx *c;
  Prog *p;
  Tensor *const *in;
  Scalar *var;
  i64 *env;
  u64 seed;
  bool waits;     /* the host read from the device or from inputs */
  bool recording; /* launches go into a graph */
  bool launched;  /* a kernel precedes the next one */
  Loc loc;
} DeviceRun;

/* ---- memory ---- */

static DevicePtr device_new(Cuda *g, u64 bytes, const char *what) {
  DevicePtr at = 0;
  size_t free_bytes = 0, all = 0;
  if (!bytes) bytes = CUDA_ALIGN;
  if (!g->l->memory_new(&at, bytes)) return at;
  g->l->memory_info(&free_bytes, &all);
  fail(g->c, ERR_system, LOC_NONE,
       "engine cuda: not enough memory on %s: %s needs %.1f MiB, %.1f of %.1f MiB are free",
       g->l->name, what, (double)bytes / (1 << 20), (double)free_bytes / (1 << 20),
       (double)all / (1 << 20));
}

static void forget_graph(Cuda *g) {
  if (g->exec) g->l->graph_exec_free(g->exec);
  g->exec = NULL;
  g->key_valid = false;
}

/* Memory of an input or output for at least n bytes. */
static void need_room(Cuda *g, BufId b, u64 n) {
  if (g->at[b] && n <= g->room[b]) return;
  forget_graph(g);
  if (g->at[b]) g->l->memory_free(g->at[b]);
  g->at[b] = 0;
  g->at[b] = device_new(g, n, "an input or output");
  g->room[b] = n;
}

static void need_scratch(DeviceRun *r, u64 n) {
  Cuda *g = r->g;
  if (n <= g->scratch_bytes) return;
  cuda_check(r->c, g->l, "run", g->l->stream_wait(g->stream));
  forget_graph(g);
  if (g->scratch) g->l->memory_free(g->scratch);
  g->scratch = 0;
  g->scratch = device_new(g, n, "scratch");
  g->scratch_bytes = n;
}

static void place_weights(Cuda *g) {
  Prog *p = g->p;
  u64 n = 0;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_const || x->alias) continue;
    g->at[b] = n;
    n += (tensor_bytes(x->data) + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
  }
  g->weights = device_new(g, n, "the weights");
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space != BS_const || x->alias) continue;
    g->at[b] += g->weights;
    u64 bytes = tensor_bytes(x->data);
    if (bytes) cuda_check(g->c, g->l, "weights", g->l->copy_in(g->at[b], x->data->data, bytes));
  }
}

static void place_arena(Cuda *g) {
  Prog *p = g->p;
  g->arena = device_new(g, p->arena_bytes, "the arena");
  if (p->arena_bytes)
    cuda_check(g->c, g->l, "arena", g->l->memory_set(g->arena, 0, p->arena_bytes));
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (!prog_is_planned(x)) continue;
    g->at[b] = g->arena + x->offset;
    u64 bytes = x->space == BS_state && x->data ? tensor_bytes(x->data) : 0;
    if (bytes) cuda_check(g->c, g->l, "state", g->l->copy_in(g->at[b], x->data->data, bytes));
  }
}

/* ---- making ---- */

static void make(Ctx *c, void *arg) {
  Cuda *g = arg;
  void *context;
  cuda_check(c, g->l, "context", g->l->context_retain(&context, g->l->device));
  g->has_context = true;
  cuda_check(c, g->l, "context", g->l->context_set(context));
  cuda_check(c, g->l, "stream", g->l->stream_new(&g->stream, 0));
  g->module = NEWS(&c->keep, void *, g->units.n + 1);
  g->fn = NEWS(&c->keep, void *, g->t->fn.n + 1);
  for (u32 i = 0; i < g->units.n; i++)
    cuda_check(c, g->l, "kernels", g->l->module_load(&g->module[i], g->units.at[i].cubin));
  for (u32 i = 0; i < g->t->fn.n; i++) {
    int error = 1;
    for (u32 k = 0; error && k < g->units.n; k++)
      error = g->l->module_function(&g->fn[i], g->module[k], g->t->fn.at[i].name);
    cuda_check(c, g->l, g->t->fn.at[i].name, error);
  }
  g->at = NEWS(&c->keep, DevicePtr, g->p->buf.n);
  g->room = NEWS(&c->keep, u64, g->p->buf.n);
  g->key = NEWS(&c->keep, i64, dim_nsyms(g->p->dims) + 1);
  g->after = NEWS(&c->keep, i64, dim_nsyms(g->p->dims) + 1);
  g->slots = device_new(g, 8 * (u64)g->p->var.n, "variables");
  place_weights(g);
  place_arena(g);
}

Cuda *cuda_make(const Prog *p, const CudaOptions *o) {
  Ctx *c = p->c;
  Cuda *g = NEW(&c->keep, Cuda);
  char chip[16];
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf((Prog *)p, b)->dt == DT_str)
      fail(c, ERR_unsupported, LOC_NONE, "engine cuda does not support strings");
  g->c = c;
  g->l = cuda_need_device(c);
  g->t = cuda_text(p, o->target, "");
  g->p = g->t->p;
  snprintf(chip, sizeof chip, "sm_%d%d", g->l->major, g->l->minor);
  g->units = cuda_compile(c, g->l, g->t, o, chip);
  Err e = ctx_protect(c, make, g);
  if (e) {
    cuda_end(g);
    longjmp(*c->door, (int)e);
  }
  return g;
}

void cuda_end(Cuda *g) {
  if (!g) return;
  const CudaLib *l = g->l;
  forget_graph(g);
  for (BufId b = 1; g->room && b < g->p->buf.n; b++)
    if (g->room[b] && g->at[b]) l->memory_free(g->at[b]);
  DevicePtr block[] = {g->arena, g->weights, g->slots, g->scratch};
  for (u32 i = 0; i < sizeof block / sizeof *block; i++)
    if (block[i]) l->memory_free(block[i]);
  for (u32 i = 0; i < g->units.n; i++) {
    if (g->module && g->module[i]) l->module_unload(g->module[i]);
    free(g->units.at[i].cubin);
    free(g->units.at[i].log);
  }
  for (u32 i = 0; i < 2; i++)
    if (g->event[i]) l->event_free(g->event[i]);
  if (g->stream) l->stream_free(g->stream);
  if (g->has_context) l->context_release(l->device);
  *g = (Cuda){.c = g->c, .l = g->l};
}

/* ---- what stands between kernels ---- */

static void wait_device(DeviceRun *r) {
  r->waits = true;
  cuda_check(r->c, r->g->l, "run", r->g->l->stream_wait(r->g->stream));
}

static Scalar eval(DeviceRun *r, ExprId id);

/* Offset of an element in bytes. */
static u64 place_of(DeviceRun *r, BufId b, const ExprId *idx, u32 n) {
  const Buf *x = prog_buf(r->p, b);
  i64 off = 0;
  for (u32 i = 0; i < n; i++) {
    i64 dim = dim_eval(r->p->dims, x->dim[i], r->env), at = eval(r, idx[i]).i;
    if (at < 0 || at >= dim)
      fail(r->c, ERR_system, r->loc, "engine cuda: index %lld of %s is out of bounds",
           (long long)at, show(r->c, x->name));
    off = off * dim + at;
  }
  return (u64)off * dtype_bytes(x->dt);
}

static Scalar load(DeviceRun *r, const Expr *e) {
  u8 raw[16];
  BufId root = prog_root(r->p, e->ref);
  const Buf *x = prog_buf(r->p, root);
  u64 at = place_of(r, e->ref, e->arg, e->narg);
  u32 pos = 0;
  switch (x->space) {
  case BS_const: return scalar_load(e->dt, (const u8 *)x->data->data + at);
  case BS_in:
    r->waits = true; /* a later run may have another value */
    while (r->p->in.at[pos] != root) pos++;
    return scalar_load(e->dt, (const u8 *)r->in[pos]->data + at);
  default:
    wait_device(r);
    cuda_check(r->c, r->g->l, "copy",
               r->g->l->copy_out(raw, r->g->at[root] + at, dtype_bytes(e->dt)));
    return scalar_load(e->dt, raw);
  }
}

static Scalar apply(DeviceRun *r, const Expr *e, const Scalar *arg) {
  DType from = prog_expr(r->p, e->arg[e->narg - 1])->dt;
  u8 raw[16] = {0};
  if (e->op == OP_cast) return scalar_cast(from, e->dt, arg[0], e->sat);
  if (e->op != OP_bitcast) return scalar_eval_as(r->p->math, e->op, from, arg);
  scalar_store(from, raw, arg[0]);
  return scalar_load(e->dt, raw);
}

static Scalar eval(DeviceRun *r, ExprId id) {
  const Expr *e = prog_expr(r->p, id);
  Scalar arg[3] = {{0}};
  if (e->lanes > 1)
    fail(r->c, ERR_unsupported, r->loc, "engine cuda does not support vectors between kernels");
  switch (e->kind) {
  case EX_const: return e->imm;
  case EX_var: return r->var[e->ref];
  case EX_load: return load(r, e);
  case EX_op:
    for (u32 k = 0; k < e->narg; k++) arg[k] = eval(r, e->arg[k]);
    return apply(r, e, arg);
  case EX_splat: return eval(r, e->arg[0]);
  case EX_random:
    arg[0] = eval(r, e->arg[0]);
    arg[1] = eval(r, e->arg[1]);
    return (Scalar){.f = random_unit(e->dt, (u64)arg[0].i, r->seed, (u64)arg[1].i)};
  default:
    fail(r->c, ERR_unsupported, r->loc, "engine cuda does not support vectors between kernels");
  }
}

static void set_var(DeviceRun *r, VarId v, Scalar x) {
  i32 sym = prog_var(r->p, v)->sym;
  r->var[v] = x;
  if (sym < 0) return;
  const SymInfo *si = dim_syminfo(r->p->dims, (Sym)sym);
  if (x.i < si->lo || x.i > si->hi)
    fail(r->c, ERR_input, r->loc, "%s", show_text(r->c, sym_range_error(r->c, si)));
  r->env[sym] = x.i;
}

static void store(DeviceRun *r, const Stmt *s) {
  u8 raw[16] = {0};
  const Buf *b = prog_buf(r->p, s->buf);
  Scalar x = eval(r, s->a);
  u64 at = place_of(r, s->buf, s->idx, s->nidx);
  scalar_store(b->dt, raw, x);
  wait_device(r);
  cuda_check(r->c, r->g->l, "copy",
             r->g->l->copy_in(r->g->at[prog_root(r->p, s->buf)] + at, raw, dtype_bytes(b->dt)));
}

/* ---- kernels ---- */

/* A value as the argument of a kernel has it: see c_type. */
static void put_arg(DType dt, Scalar x, u8 *raw) {
  float f = (float)x.f;
  if (dt == DT_f64)
    memcpy(raw, &x.f, 8);
  else if (dtype_is_float(dt))
    memcpy(raw, &f, 4);
  else
    memcpy(raw, &x.i, 8); /* little-endian: the low bytes */
}

static Scalar get_arg(DType dt, const u8 *raw) {
  Scalar x = {0};
  float f;
  if (dt == DT_f64) {
    memcpy(&x.f, raw, 8);
  } else if (dtype_is_float(dt)) {
    memcpy(&f, raw, 4);
    x.f = f;
  } else {
    x = scalar_load(
        dtype_info[dt].bits < 8 && dt != DT_bool ? dtype_is_signed(dt) ? DT_i8 : DT_u8 : dt, raw);
  }
  return x;
}

/* Threads of a block and blocks. Blocks are small if there are few workers, so that every
 * multiprocessor has one. */
static void choose_grid(const Cuda *g, u64 threads, u64 most, LaunchConfig *to) {
  unsigned block = CUDA_BLOCK;
  if (threads > most) threads = most;
  while (block > CUDA_WARP && threads / block < (u64)g->l->sms) block /= 2;
  if (threads < block) block = (unsigned)threads;
  u64 grid = (threads + block - 1) / block;
  if (grid * block > most && grid > 1) grid = most / block;
  *to = (LaunchConfig){.grid = {grid < GRID_MAX ? (unsigned)grid : GRID_MAX, 1, 1},
                       .block = {block, 1, 1},
                       .stream = g->stream};
}

static void copy_slots(DeviceRun *r, const CudaCall *k, bool back) {
  Cuda *g = r->g;
  for (u32 i = 0; i < k->takes.var.n; i++) {
    VarId v = k->takes.var.at[i];
    u8 raw[16] = {0};
    if (!k->sets[i]) continue;
    if (back) {
      cuda_check(r->c, g->l, "copy", g->l->copy_out(raw, g->slots + 8 * (u64)v, 8));
      set_var(r, v, get_arg(prog_var(r->p, v)->dt, raw));
    } else {
      put_arg(prog_var(r->p, v)->dt, r->var[v], raw);
      cuda_check(r->c, g->l, "copy", g->l->copy_in(g->slots + 8 * (u64)v, raw, 8));
    }
  }
}

static void add_time(DeviceRun *r, KernelTime *to) {
  Cuda *g = r->g;
  float ms = 0;
  cuda_check(r->c, g->l, "event", g->l->event_record(g->event[1], g->stream));
  cuda_check(r->c, g->l, "event", g->l->event_wait(g->event[1]));
  cuda_check(r->c, g->l, "event", g->l->event_ms(&ms, g->event[0], g->event[1]));
  to->ms += ms;
  to->calls++;
}

static void launch(DeviceRun *r, StmtId id) {
  Cuda *g = r->g;
  const u32 *slot = map_get(&g->t->at, id);
  if (!slot || !*slot) return; /* an empty kernel */
  const CudaCall *k = &g->t->call.at[*slot - 1];
  const CudaFn *fn = &g->t->fn.at[k->fn];
  u64 width = fn->warps ? CUDA_WARP : 1, count = 1, own;
  if (k->count) {
    i64 n = eval(r, k->count).i;
    if (n <= 0) return;
    count = (u64)n;
  }
  own = cuda_worker_scratch(g->t, k);
  LaunchConfig config;
  u64 most = own ? (SCRATCH_BYTES / own ? SCRATCH_BYTES / own : 1) * width : UINT64_MAX;
  choose_grid(g, count * width, most, &config);
  u64 workers = (u64)config.grid[0] * config.block[0] / width, at = 0;
  if (own) need_scratch(r, own * workers);
  u32 n = k->takes.buf.n + k->takes.var.n;
  Mark m = arena_mark(&r->c->scratch);
  void **arg = NEWS(&r->c->scratch, void *, n + 2);
  u64 *value = NEWS(&r->c->scratch, u64, n + 2);
  for (u32 i = 0; i < n + 1; i++) arg[i] = &value[i];
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    BufId root = prog_root(r->p, k->takes.buf.at[i]);
    u64 bytes = 0;
    Sym sym;
    value[i] = g->at[root];
    if (prog_buf(r->p, root)->space != BS_local) continue;
    u32 same = 0; /* views of one scratch have one place */
    while (prog_root(r->p, k->takes.buf.at[same]) != root) same++;
    value[i] = same < i ? value[same] : g->scratch + at;
    if (same == i && mem_stride(r->p, root, &bytes, &sym)) at += bytes * workers;
  }
  for (u32 i = 0; i < k->takes.var.n; i++) {
    VarId v = k->takes.var.at[i];
    if (k->sets[i])
      value[k->takes.buf.n + i] = g->slots + 8 * (u64)v;
    else
      put_arg(prog_var(r->p, v)->dt, r->var[v], (u8 *)&value[k->takes.buf.n + i]);
  }
  value[n] = r->seed;
  if (k->any_set) {
    wait_device(r);
    copy_slots(r, k, false);
  }
  LaunchAttribute attribute = {.id = ATTRIBUTE_PROGRAMMATIC, .value.flag = 1};
  if (r->launched && g->l->major >= 9 && !g->time) {
    config.attribute = &attribute;
    config.nattribute = 1;
  }
  if (g->time) cuda_check(r->c, g->l, "event", g->l->event_record(g->event[0], g->stream));
  cuda_check(r->c, g->l, fn->name, g->l->launch(&config, g->fn[k->fn], arg, NULL));
  r->launched = true;
  if (g->time) add_time(r, &g->time[*slot - 1]);
  arena_rewind(&r->c->scratch, m);
  if (!k->any_set) return;
  wait_device(r);
  copy_slots(r, k, true);
}

static void exec(DeviceRun *r, StmtId first);

static void loop(DeviceRun *r, const Stmt *s) {
  i64 lo = eval(r, s->a).i, hi = eval(r, s->b).i;
  for (i64 i = lo; i < hi; i += s->step) {
    r->var[s->var].i = i;
    exec(r, s->body);
    if (i > INT64_MAX - s->step) break;
  }
}

static void exec(DeviceRun *r, StmtId first) {
  Loc around = r->loc;
  for (StmtId id = first; id; id = prog_stmt(r->p, id)->next) {
    const Stmt *s = prog_stmt(r->p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) r->loc = s->loc;
    switch (s->kind) {
    case ST_for: loop(r, s); break;
    case ST_while:
      while (eval(r, s->a).i) exec(r, s->body);
      break;
    case ST_if: exec(r, eval(r, s->a).i ? s->body : s->other); break;
    case ST_let:
    case ST_set: set_var(r, s->var, eval(r, s->a)); break;
    case ST_store: store(r, s); break;
    case ST_kernel: launch(r, id); break;
    case ST_require:
      if (!eval(r, s->a).i) fail(r->c, ERR_input, r->loc, "%s", show_text(r->c, s->label));
      break;
    case ST_fence:
    case ST_prefetch:
    case ST_COUNT: break;
    }
  }
  r->loc = around;
}

/* ---- a run ---- */

static bool is_recorded(const DeviceRun *r) {
  const Cuda *g = r->g;
  u32 n = dim_nsyms(r->p->dims);
  return g->key_valid && g->key_seed == r->seed &&
         (!n || !memcmp(g->key, r->env, n * sizeof *g->key));
}

static void record(Ctx *c, void *arg) {
  DeviceRun *r = arg;
  Cuda *g = r->g;
  void *graph = NULL;
  cuda_check(c, g->l, "graph", g->l->capture_begin(g->stream, CAPTURE_THREAD));
  r->recording = true;
  exec(r, r->p->body);
  cuda_check(c, g->l, "graph", g->l->capture_end(g->stream, &graph));
  r->recording = false;
  int error = g->l->graph_make(&g->exec, graph, 0);
  g->l->graph_free(graph);
  cuda_check(c, g->l, "graph", error);
}

/* The first run of these sizes launches kernel by kernel, the second records a graph. */
static void run_body(DeviceRun *r) {
  Cuda *g = r->g;
  u32 n = dim_nsyms(r->p->dims);
  if (!is_recorded(r) || g->time) {
    forget_graph(g);
    if (n) memcpy(g->key, r->env, n * sizeof *g->key);
    exec(r, r->p->body);
    if (r->waits) return;
    if (n) memcpy(g->after, r->env, n * sizeof *g->after);
    g->key_seed = r->seed;
    g->key_valid = true;
    return;
  }
  if (!g->exec) {
    Err e = ctx_protect(r->c, record, r);
    if (e && r->recording) {
      void *graph = NULL;
      g->l->capture_end(g->stream, &graph);
      if (graph) g->l->graph_free(graph);
    }
    if (e) longjmp(*r->c->door, (int)e);
  }
  cuda_check(r->c, g->l, "graph", g->l->graph_launch(g->exec, g->stream));
  if (n) memcpy(r->env, g->after, n * sizeof *g->after);
}

static void need_memory(DeviceRun *r) {
  Cuda *g = r->g;
  for (u32 i = 0; i < r->p->in.n; i++) {
    u64 bytes = tensor_bytes(r->in[i]);
    need_room(g, r->p->in.at[i], bytes ? bytes : 1);
  }
  for (u32 i = 0; i < r->p->out.n; i++) {
    BufId b = r->p->out.at[i];
    u64 bytes;
    Sym sym;
    if (!mem_stride(r->p, b, &bytes, &sym)) mem_refuse(r->p, b, sym);
    need_room(g, b, bytes ? bytes : 1);
  }
}

u32 cuda_time_kernels(Cuda *g, KernelTime **times) {
  if (!g->time) {
    for (u32 i = 0; i < 2; i++) cuda_check(g->c, g->l, "event", g->l->event_new(&g->event[i], 0));
    g->time = NEWS(&g->c->keep, KernelTime, g->t->call.n + 1);
    for (u32 i = 0; i < g->t->call.n; i++) g->time[i] = (KernelTime){g->t->call.at[i].id, 0, 0};
  }
  *times = g->time;
  return g->t->call.n;
}

void cuda_run(Cuda *g, u64 seed, Tensor *const *in, Tensor **out, Arena *a) {
  Ctx *c = g->c;
  Prog *p = g->p;
  const CudaLib *l = g->l;
  Mark m = arena_mark(&c->scratch);
  DeviceRun r = {.g = g, .c = c, .p = p, .in = in, .seed = seed, .loc = LOC_NONE};
  r.env = prog_bind(p, in, &c->scratch);
  r.var = NEWS(&c->scratch, Scalar, p->var.n);
  for (VarId v = 1; v < p->var.n; v++)
    if (prog_var(p, v)->sym >= 0) r.var[v].i = r.env[prog_var(p, v)->sym];
  need_memory(&r);
  for (u32 i = 0; i < p->in.n; i++) {
    u64 bytes = tensor_bytes(in[i]);
    if (bytes)
      cuda_check(c, l, "inputs",
                 l->copy_in_async(g->at[p->in.at[i]], in[i]->data, bytes, g->stream));
  }
  run_body(&r);
  cuda_check(c, l, "run", l->stream_wait(g->stream));
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    i64 *dim = NEWS(a, i64, b->rank + 1);
    u64 n;
    for (u32 k = 0; k < b->rank; k++) dim[k] = dim_eval(p->dims, b->dim[k], r.env);
    if (!shape_count(dim, b->rank, &n))
      fail(c, ERR_system, LOC_NONE, "engine cuda: an output is too large");
    u64 bytes = n * dtype_bytes(b->dt);
    u8 *data = arena_array(a, 1, bytes ? bytes : 1);
    if (bytes) cuda_check(c, l, "outputs", l->copy_out(data, g->at[p->out.at[i]], bytes));
    out[i] = tensor_wrap(a, b->dt, dim, b->rank, data);
  }
  if (a != &c->scratch) arena_rewind(&c->scratch, m);
}
