/* cuda_run.c: runs a program on the device.
 *
 * In: a planned program and inputs. Out: outputs. Memory is planned as on a CPU: one arena, which
 * keeps the state, and one block with all constants. Scratch of the workers has its own memory; the
 * grid of a kernel is as small as that memory needs.
 *
 * The host executes what stands between kernels. Buffers that no kernel accesses, such as the
 * position in a KV cache, stay in its memory, and it runs small kernels that only check indices of
 * inputs. Where it reads what a kernel wrote, it waits for the device. Values that are the same
 * during a run, and its seed, are in memory of the device (CudaText.slot). So launches depend on
 * few values, the trace: sizes of inputs, what loops and conditions between kernels see, and what
 * is computed inside them. The second run with a trace is recorded as a graph, and further ones
 * replay it. A run that waited is never recorded. */
#include "back/cuda/cuda.h"
#include "ir/prog/prog_mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES ((u64)256 << 20) /* limit of all workers of a kernel */

enum {
  GRID_MAX = 1 << 20,
  HOST_BYTES = 256,           /* limit of a buffer that the host keeps */
  FUNCTION_SHARED = 8,        /* attribute of a function: limit of its shared memory */
  ATTRIBUTE_PROGRAMMATIC = 6, /* a kernel starts before the one before it ends: see ig_after */
  EDGES_VERSION = 12030,      /* drivers from here on keep that order in graphs */
  CAPTURE_THREAD = 1,
  GRAPHS = 8,           /* recorded runs that are kept */
  NODES_MAX = 1 << 14,  /* maximum nodes of a CUDA graph */
  TRACE_MAX = 1 << 16,  /* values */
  HOST_STEPS = 1 << 14, /* statements of a kernel that runs on the host */
  COUNT_MAX = 1 << 24,  /* bound of iterations for which a grid is sized */
  ROOM_MAX = 1 << 26,   /* bytes of an input or output that are allocated for its bound */
};

typedef VEC(i64) Trace;

typedef struct CudaGraph {
  i64 *trace; /* in malloc'ed memory; NULL: free */
  u32 n, launches;
  void *exec; /* NULL: seen once */
  u64 used;   /* number of the last run with it */
} CudaGraph;

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
  u32 nhost;
  u8 **host;   /* by buffer: of roots that no kernel accesses; NULL: on the device */
  bool *small; /* by call: the host may run it */
  bool *quiet; /* by statement: contains only launches and loops */
  u32 *place;  /* by variable: its number in `slots`; the seed has 0 */
  u64 *shown;  /* by number: value there */
  u32 nslots;
  bool waits; /* the host may read what kernels write */
  CudaGraph graph[GRAPHS];
  u64 runs;
  bool has_edges;   /* programmatic edges in graphs */
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
  Trace trace;
  const Range *range; /* by variable; NULL: not computed yet */
  bool plans;         /* nothing is launched */
  bool recording;     /* launches go into a graph */
  u32 launches;
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

static void forget_graphs(Cuda *g) {
  for (u32 i = 0; i < GRAPHS; i++) {
    if (g->graph[i].exec) g->l->graph_exec_free(g->graph[i].exec);
    free(g->graph[i].trace);
    g->graph[i] = (CudaGraph){0};
  }
}

/* Memory of an input or output for at least n bytes. */
static void need_room(Cuda *g, BufId b, u64 n) {
  if (g->at[b] && n <= g->room[b]) return;
  forget_graphs(g);
  if (g->at[b]) g->l->memory_free(g->at[b]);
  g->at[b] = 0;
  g->at[b] = device_new(g, n, "an input or output");
  g->room[b] = n;
}

static void need_scratch(DeviceRun *r, u64 n) {
  Cuda *g = r->g;
  if (n <= g->scratch_bytes) return;
  cuda_check(r->c, g->l, "run", g->l->stream_wait(g->stream));
  forget_graphs(g);
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
    if (bytes && g->host[b])
      memcpy(g->host[b], x->data->data, bytes);
    else if (bytes)
      cuda_check(g->c, g->l, "state", g->l->copy_in(g->at[b], x->data->data, bytes));
  }
}

/* ---- making ---- */

/* Gives buffers that no kernel accesses memory of the host. */
static void find_host_buffers(Cuda *g) {
  Prog *p = g->p;
  Mark m = arena_mark(&g->c->scratch);
  bool *taken = NEWS(&g->c->scratch, bool, p->buf.n);
  for (u32 i = 0; i < g->t->call.n; i++) {
    const CudaCall *k = &g->t->call.at[i];
    for (u32 n = 0; n < k->takes.buf.n; n++) taken[prog_root(p, k->takes.buf.at[n])] = true;
  }
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    u64 bytes;
    Sym sym;
    if (taken[b] || x->alias || (x->space != BS_state && x->space != BS_temp) ||
        !mem_stride(p, b, &bytes, &sym) || bytes > HOST_BYTES)
      continue;
    g->host[b] = NEWS(&g->c->keep, u8, HOST_BYTES);
    g->nhost++;
  }
  arena_rewind(&g->c->scratch, m);
}

/* Can the host run the kernel? It must store nothing and read only memory of the host. */
static bool is_small(Cuda *g, const CudaCall *k) {
  const Stmt *s;
  Prog *p = g->p;
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    BufId root = prog_root(p, k->takes.buf.at[i]);
    BufSpace space = prog_buf(p, root)->space;
    if (space != BS_in && space != BS_const) return false;
  }
  StmtId body = prog_stmt(p, k->id)->body;
  if (list_runs(p, body, HOST_STEPS) > HOST_STEPS) return false;
  for (StmtVisit w = prog_visit(p, body); (s = prog_next(&w));) {
    if (s->kind != ST_for && s->kind != ST_if && s->kind != ST_let && s->kind != ST_set)
      return false;
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->lanes > 1 || x.e->kind >= EX_hreduce) return false;
  }
  return true;
}

/* Marks statements whose execution without launches does nothing, and finds those that wait. */
static bool mark_quiet(Cuda *g, StmtId first) {
  Prog *p = g->p;
  bool all = true;
  for (StmtId id = first; id; id = prog_stmt(p, id)->next) {
    const Stmt *s = prog_stmt(p, id);
    bool quiet = s->kind == ST_fence || s->kind == ST_prefetch;
    if (s->kind == ST_kernel) {
      const u32 *call = map_get(&g->t->at, id);
      quiet = !call || !*call || !g->t->call.at[*call - 1].any_set;
      g->waits = g->waits || !(quiet || g->small[*call - 1]);
    } else {
      bool body = mark_quiet(g, s->body), other = mark_quiet(g, s->other);
      quiet = quiet || (s->kind == ST_for && body && other);
      if (s->kind == ST_store && !g->host[prog_root(p, s->buf)]) g->waits = true;
      for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) {
        if (x.e->kind != EX_load) continue;
        BufId root = prog_root(p, x.e->ref);
        BufSpace space = prog_buf(p, root)->space;
        if (space != BS_in && space != BS_const && !g->host[root]) g->waits = true;
      }
    }
    g->quiet[id] = quiet;
    all = all && quiet;
  }
  return all;
}

static void number_slots(Cuda *g) {
  g->place = NEWS(&g->c->keep, u32, g->p->var.n);
  g->nslots = 1;
  for (u32 i = 0; i < g->t->call.n; i++) {
    const CudaCall *k = &g->t->call.at[i];
    for (u32 n = 0; n < k->takes.var.n; n++) {
      VarId v = k->takes.var.at[n];
      if ((k->sets[n] || g->t->slot[v]) && !g->place[v]) g->place[v] = g->nslots++;
    }
  }
  g->shown = NEWS(&g->c->keep, u64, g->nslots);
  g->slots = device_new(g, 8 * (u64)g->nslots, "variables");
  cuda_check(g->c, g->l, "variables", g->l->memory_set(g->slots, 0, 8 * (u64)g->nslots));
}

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
    const CudaFn *fn = &g->t->fn.at[i];
    cuda_check(c, g->l, fn->name, g->l->module_function(&g->fn[i], g->module[fn->unit], fn->name));
    if (fn->shared > CUDA_SHARED)
      cuda_check(c, g->l, fn->name,
                 g->l->function_attribute(g->fn[i], FUNCTION_SHARED, (int)fn->shared));
  }
  g->at = NEWS(&c->keep, DevicePtr, g->p->buf.n);
  g->room = NEWS(&c->keep, u64, g->p->buf.n);
  g->host = NEWS(&c->keep, u8 *, g->p->buf.n);
  g->small = NEWS(&c->keep, bool, g->t->call.n + 1);
  g->quiet = NEWS(&c->keep, bool, g->p->stmt.n);
  for (u32 i = 0; i < g->t->call.n; i++)
    g->small[i] = g->t->call.at[i].any_set && is_small(g, &g->t->call.at[i]);
  find_host_buffers(g);
  mark_quiet(g, g->p->body);
  int version = 0;
  g->has_edges = g->l->major >= 9 && !g->l->driver_version(&version) && version >= EDGES_VERSION;
  number_slots(g);
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
  g->t = cuda_text(p, o->target, "", true);
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
  forget_graphs(g);
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

/* ---- statements between kernels ---- */

static void wait_device(DeviceRun *r) {
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
    while (r->p->in.at[pos] != root) pos++;
    return scalar_load(e->dt, (const u8 *)r->in[pos]->data + at);
  default:
    if (r->g->host[root]) return scalar_load(e->dt, r->g->host[root] + at);
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

/* Adds a value that the launches of this run depend on to its trace. */
static void trace(DeviceRun *r, i64 x) {
  if (r->plans && r->trace.n <= TRACE_MAX) *vec_push(&r->c->scratch, &r->trace) = x;
}

static void set_var(DeviceRun *r, VarId v, Scalar x) {
  i32 sym = prog_var(r->p, v)->sym;
  r->var[v] = x;
  if (!r->g->t->slot[v]) {
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    trace(r, (i64)bits);
  }
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
  BufId root = prog_root(r->p, s->buf);
  if (r->g->host[root]) {
    scalar_store(b->dt, r->g->host[root] + at, x);
    return;
  }
  scalar_store(b->dt, raw, x);
  wait_device(r);
  cuda_check(r->c, r->g->l, "copy", r->g->l->copy_in(r->g->at[root] + at, raw, dtype_bytes(b->dt)));
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
      cuda_check(r->c, g->l, "copy", g->l->copy_out(raw, g->slots + 8 * (u64)g->place[v], 8));
      set_var(r, v, get_arg(prog_var(r->p, v)->dt, raw));
    } else {
      put_arg(prog_var(r->p, v)->dt, r->var[v], raw);
      cuda_check(r->c, g->l, "copy", g->l->copy_in(g->slots + 8 * (u64)g->place[v], raw, 8));
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

static void exec(DeviceRun *r, StmtId first);

/* Copies changed values to the device. */
static void show_slots(DeviceRun *r) {
  Cuda *g = r->g;
  bool changed = g->shown[0] != r->seed;
  g->shown[0] = r->seed;
  for (VarId v = 1; v < r->p->var.n; v++) {
    u64 value = 0;
    if (!g->place[v] || !g->t->slot[v]) continue;
    put_arg(prog_var(r->p, v)->dt, r->var[v], (u8 *)&value);
    changed = changed || g->shown[g->place[v]] != value;
    g->shown[g->place[v]] = value;
  }
  if (changed)
    cuda_check(r->c, g->l, "variables",
               g->l->copy_in_async(g->slots, g->shown, 8 * (u64)g->nslots, g->stream));
}

/* Iterations that the workers share, or a bound if a recorded run serves several numbers. */
static u64 count_of(DeviceRun *r, const CudaCall *k) {
  i64 n;
  bool varies = false;
  if (!k->count) return 1;
  for (ExprVisit x = ex_visit(r->p, k->count); ex_next(&x);) {
    i32 sym = x.e->kind == EX_var ? prog_var(r->p, x.e->ref)->sym : -1;
    varies = varies || (x.e->kind == EX_var && r->g->t->slot[x.e->ref] &&
                        (sym < 0 || dim_syminfo(r->p->dims, (Sym)sym)->kind != SY_input));
  }
  if (varies && !r->range) r->range = prog_ranges(r->p, r->env, &r->c->scratch);
  n = varies ? ex_range(r->p, k->count, r->range).hi : eval(r, k->count).i;
  return n <= 0 ? 0 : varies && n > COUNT_MAX ? COUNT_MAX : (u64)n;
}

/* Pointers and values for a kernel. */
static void **args_of(DeviceRun *r, const CudaCall *k, u64 workers) {
  Cuda *g = r->g;
  u64 at = 0;
  u32 n = k->takes.buf.n + k->takes.var.n;
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
    if (k->sets[i] || g->t->slot[v])
      value[k->takes.buf.n + i] = g->slots + 8 * (u64)g->place[v];
    else
      put_arg(prog_var(r->p, v)->dt, r->var[v], (u8 *)&value[k->takes.buf.n + i]);
  }
  value[n] = g->slots;
  return arg;
}

static void launch(DeviceRun *r, StmtId id) {
  Cuda *g = r->g;
  const u32 *slot = map_get(&g->t->at, id);
  if (!slot || !*slot) return; /* an empty kernel */
  const CudaCall *k = &g->t->call.at[*slot - 1];
  const CudaFn *fn = &g->t->fn.at[k->fn];
  if (g->small[*slot - 1]) {
    exec(r, prog_stmt(r->p, id)->body);
    return;
  }
  if (r->plans) return;
  u64 width = fn->warps ? CUDA_WARP : 1, count = count_of(r, k), own = cuda_worker_scratch(g->t, k);
  if (!count) return;
  LaunchConfig config;
  u64 most = own ? (SCRATCH_BYTES / own ? SCRATCH_BYTES / own : 1) * width : UINT64_MAX;
  choose_grid(g, count * width, most, &config);
  if (fn->block) {
    config.grid[0] = count < GRID_MAX ? (unsigned)count : GRID_MAX;
    config.block[0] = fn->block;
    config.shared = fn->shared;
  }
  u64 workers = (u64)config.grid[0] * config.block[0] / width;
  if (own) need_scratch(r, own * workers);
  Mark m = arena_mark(&r->c->scratch);
  void **arg = args_of(r, k, workers);
  if (!r->recording) show_slots(r);
  if (k->any_set) {
    wait_device(r);
    copy_slots(r, k, false);
  }
  LaunchAttribute attribute = {.id = ATTRIBUTE_PROGRAMMATIC, .value.flag = 1};
  if (r->launches++ && g->has_edges && !g->time) {
    config.attribute = &attribute;
    config.nattribute = 1;
  }
  if (g->time) cuda_check(r->c, g->l, "event", g->l->event_record(g->event[0], g->stream));
  cuda_check(r->c, g->l, fn->name, g->l->launch(&config, g->fn[k->fn], arg, NULL));
  if (g->time) add_time(r, &g->time[*slot - 1]);
  arena_rewind(&r->c->scratch, m);
  if (!k->any_set) return;
  wait_device(r);
  copy_slots(r, k, true);
}

static void loop(DeviceRun *r, const Stmt *s, bool quiet) {
  i64 lo = eval(r, s->a).i, hi = eval(r, s->b).i;
  trace(r, lo);
  trace(r, hi);
  if (r->plans && quiet) return;
  for (i64 i = lo; i < hi; i += s->step) {
    r->var[s->var].i = i;
    exec(r, s->body);
    if (i > INT64_MAX - s->step) break;
  }
}

static bool holds(DeviceRun *r, ExprId condition) {
  bool yes = eval(r, condition).i;
  trace(r, yes);
  return yes;
}

static void exec(DeviceRun *r, StmtId first) {
  Loc around = r->loc;
  for (StmtId id = first; id; id = prog_stmt(r->p, id)->next) {
    const Stmt *s = prog_stmt(r->p, id);
    if (s->loc.line || s->loc.index >= 0 || s->loc.node) r->loc = s->loc;
    switch (s->kind) {
    case ST_for: loop(r, s, r->g->quiet[id]); break;
    case ST_while:
      while (holds(r, s->a)) exec(r, s->body);
      break;
    case ST_if: exec(r, holds(r, s->a) ? s->body : s->other); break;
    case ST_let:
    case ST_set: set_var(r, s->var, eval(r, s->a)); break;
    case ST_store: store(r, s); break;
    case ST_kernel: launch(r, id); break;
    case ST_require:
      if (!eval(r, s->a).i) fail(r->c, ERR_input, r->loc, "%s", show_text(r->c, s->label));
      break;
    case ST_fence:
    case ST_prefetch:
    case ST_commit:
    case ST_await:
    case ST_COUNT: break;
    }
  }
  r->loc = around;
}

/* ---- a run ---- */

static void record(Ctx *c, void *arg) {
  DeviceRun *r = arg;
  const CudaLib *l = r->g->l;
  cuda_check(c, l, "graph", l->capture_begin(r->g->stream, CAPTURE_THREAD));
  r->recording = true;
  exec(r, r->p->body);
}

static void *graph_of(DeviceRun *r) {
  const CudaLib *l = r->g->l;
  void *graph = NULL, *graph_exec = NULL;
  int error = 0;
  Err e = ctx_protect(r->c, record, r);
  if (r->recording) error = l->capture_end(r->g->stream, &graph);
  r->recording = false;
  if (!e && !error) error = l->graph_make(&graph_exec, graph, 0);
  if (graph) l->graph_free(graph);
  if (e) longjmp(*r->c->door, (int)e);
  cuda_check(r->c, l, "graph", error);
  return graph_exec;
}

/* Returns the entry of a trace. A new trace replaces the least recently used entry. */
static CudaGraph *find_graph(DeviceRun *r) {
  Cuda *g = r->g;
  CudaGraph *oldest = &g->graph[0];
  g->runs++;
  for (u32 i = 0; i < GRAPHS; i++) {
    CudaGraph *x = &g->graph[i];
    if (x->trace && x->n == r->trace.n && !memcmp(x->trace, r->trace.at, x->n * sizeof *x->trace)) {
      x->used = g->runs;
      return x;
    }
    if (x->used < oldest->used) oldest = x;
  }
  if (oldest->exec) g->l->graph_exec_free(oldest->exec);
  free(oldest->trace);
  *oldest = (CudaGraph){.n = r->trace.n, .used = g->runs};
  oldest->trace = malloc((r->trace.n + 1) * sizeof *oldest->trace);
  if (oldest->trace) memcpy(oldest->trace, r->trace.at, r->trace.n * sizeof *oldest->trace);
  return oldest;
}
/* Copies the buffers of the host to `kept`, or back. */
static void keep_host(Cuda *g, u8 *kept, bool back) {
  u32 n = 0;
  for (BufId b = 1; b < g->p->buf.n; b++)
    if (g->host[b]) {
      u8 *copy = kept + HOST_BYTES * (u64)n++;
      memcpy(back ? g->host[b] : copy, back ? copy : g->host[b], HOST_BYTES);
    }
}

static void plan(Ctx *c, void *arg) {
  DeviceRun *r = arg;
  (void)c;
  r->plans = true;
  for (Sym s = 0; s < dim_nsyms(r->p->dims); s++)
    if (dim_syminfo(r->p->dims, s)->kind == SY_input) trace(r, r->env[s]);
  exec(r, r->p->body);
  r->plans = false;
}

/* The host first runs all but the launches. If this run fails, state stays unchanged. */
static void run_body(DeviceRun *r) {
  Cuda *g = r->g;
  Prog *p = r->p;
  if (g->waits || g->time) {
    exec(r, p->body);
    return;
  }
  u8 *kept = NEWS(&r->c->scratch, u8, HOST_BYTES * (u64)(g->nhost + 1));
  keep_host(g, kept, false);
  Err e = ctx_protect(r->c, plan, r);
  if (e) {
    keep_host(g, kept, true);
    longjmp(*r->c->door, (int)e);
  }
  CudaGraph *x = r->trace.n <= TRACE_MAX ? find_graph(r) : NULL;
  if (!x || !x->exec) keep_host(g, kept, true);
  show_slots(r);
  if (x && !x->exec && x->launches && x->launches <= NODES_MAX) x->exec = graph_of(r);
  if (x && x->exec) {
    cuda_check(r->c, g->l, "graph", g->l->graph_launch(x->exec, g->stream));
    return;
  }
  exec(r, p->body);
  if (x) x->launches = r->launches;
}

static void need_memory(DeviceRun *r) {
  Cuda *g = r->g;
  for (u32 i = 0; i < r->p->in.n; i++) {
    u64 bytes = tensor_bytes(r->in[i]), bound;
    Sym sym;
    if (mem_stride(r->p, r->p->in.at[i], &bound, &sym) && bound <= ROOM_MAX) bytes = bound;
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

static void need_events(Cuda *g) {
  for (u32 i = 0; i < 2; i++)
    if (!g->event[i]) cuda_check(g->c, g->l, "event", g->l->event_new(&g->event[i], 0));
}

static int ascending(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

double cuda_replay_ms(Cuda *g) {
  enum { TIMES = 101 };
  const CudaGraph *last = NULL;
  float ms[TIMES];
  for (u32 i = 0; i < GRAPHS; i++)
    if (g->graph[i].exec && (!last || g->graph[i].used > last->used)) last = &g->graph[i];
  if (!last) return 0;
  need_events(g);
  for (u32 i = 0; i < TIMES; i++) {
    cuda_check(g->c, g->l, "event", g->l->event_record(g->event[0], g->stream));
    cuda_check(g->c, g->l, "graph", g->l->graph_launch(last->exec, g->stream));
    cuda_check(g->c, g->l, "event", g->l->event_record(g->event[1], g->stream));
    cuda_check(g->c, g->l, "event", g->l->event_wait(g->event[1]));
    cuda_check(g->c, g->l, "event", g->l->event_ms(&ms[i], g->event[0], g->event[1]));
  }
  qsort(ms, TIMES, sizeof *ms, ascending);
  return ms[TIMES / 2];
}

u32 cuda_time_kernels(Cuda *g, KernelTime **times) {
  if (!g->time) {
    need_events(g);
    g->time = NEWS(&g->c->keep, KernelTime, g->t->call.n + 1);
    for (u32 i = 0; i < g->t->call.n; i++) g->time[i] = (KernelTime){g->t->call.at[i].id, 0, 0};
  }
  *times = g->time;
  return g->t->call.n;
}

void cuda_set_state(Cuda *g, BufId b, u64 at, const void *from, u64 n) {
  if (g->host[b])
    memcpy(g->host[b] + at, from, n);
  else
    cuda_check(g->c, g->l, "state", g->l->copy_in(g->at[b] + at, from, n));
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
      fail(c, ERR_system, LOC_NONE, "engine cuda: an output has more than 2^40 elements");
    u64 bytes = n * dtype_bytes(b->dt);
    u8 *data = arena_array(a, 1, bytes ? bytes : 1);
    if (bytes) cuda_check(c, l, "outputs", l->copy_out(data, g->at[p->out.at[i]], bytes));
    out[i] = tensor_wrap(a, b->dt, dim, b->rank, data);
  }
  if (a != &c->scratch) arena_rewind(&c->scratch, m);
}
