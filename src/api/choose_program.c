/* choose_program.c: selects one of several programs for a model.
 *
 * In: a model to be optimized for RAM or size, or with a RAM limit. Out: its program, and a warning
 * that reports the trade-off. Memory cannot be predicted per kernel, nor for row tiling, so several
 * programs are made and measured. With a limit they are tried by increasing time, and the first
 * that fits is used. If none fits, the refusal describes the smallest.
 */
#include "api/api_internal.h"

#include <math.h>

/* TRIES: programs with row tiling tried for a limit. The target of each is lowered by the excess of
 * the previous one plus one part in SAVES. */
enum { TRIES = 4, SAVES = 16, SHOWN = 3 };

/* MORES: further programs whose target is 1, 2, ... parts in MORE above the limit, because the
 * estimate of row_tiling.c differs from the plan in both directions. */
enum { MORE = 24, MORES = 3 };

/* Exchange rate of RAM and time: 1 % less RAM is worth this many % more time. A program with twice
 * the time has to save a sixth. */
static const double RAM_WEIGHT = 4;

typedef struct ProgCandidate {
  Ingot m; /* with this program */
  CompileRequest how;
  u64 arena, stack, ports, weights; /* bytes; ports: inputs and outputs */
  double ns;                        /* estimated time of a run */
} ProgCandidate;

static u64 constants(const Prog *p) {
  u64 n = 0;
  for (BufId b = 1; b < p->buf.n; b++)
    if (p->buf.at[b].data) n += tensor_bytes(p->buf.at[b].data);
  return n;
}

static void find_stack(Ctx *c, void *arg) {
  ProgCandidate *t = arg;
  (void)c;
  EmitOptions o = api_query_options(&t->m, t->how.target);
  EmitFacts f = emit_facts(t->m.p, &o);
  t->arena = f.arena_bytes;
  t->stack = f.stack_bytes;
  t->ports = f.input_bytes + f.output_bytes;
}

/* Makes a program. again: not the first one. */
static ProgCandidate try_program(Ingot *m, CompileRequest how, bool again) {
  const char *why;
  if (again) api_restore_graph(m);
  api_compile(m, NULL, &how);
  ProgCandidate t = {.m = *m, .how = how, .arena = m->p->arena_bytes};
  t.weights = constants(m->p);
  t.ns = prog_time(m->p, NULL);
  if (m->p->planned) ctx_try(m->c, find_stack, &t, &why);
  return t;
}

static u64 total_ram(const ProgCandidate *t) {
  return t->arena + t->stack + t->ports;
}

/* ---- messages ---- */

/* Warns of the speed and size given up for less memory, compared with the fastest program. */
static void warn_tradeoff(const ProgCandidate *fast, const ProgCandidate *got) {
  Ctx *c = got->m.c;
  StrBuf t = sb_new(&c->scratch);
  bool plain = got->how.target != fast->how.target;
  if (got->stack != fast->stack)
    sb_fmt(&t, ", stack %llu instead of %llu", (unsigned long long)got->stack,
           (unsigned long long)fast->stack);
  if (plain)
    sb_fmt(&t, ", without vectors (%s), much slower", got->how.target->name);
  else if (!got->m.facts.tiled)
    sb_puts(&t, ", kernels that need less memory");
  double more = fast->ns > 0 ? got->ns / fast->ns : 1;
  if (!plain && more >= 1.005) sb_fmt(&t, ", estimated %.0f %% more time", (more - 1) * 100);
  if (got->m.facts.tiled) sb_fmt(&t, ", row tiling: %s", got->m.facts.tiled);
  warn(c, LOC_NONE, "for %s: %llu bytes of RAM instead of %llu: arena %llu instead of %llu%s",
       fast->how.target->name, (unsigned long long)total_ram(got),
       (unsigned long long)total_ram(fast), (unsigned long long)got->arena,
       (unsigned long long)fast->arena, sb_cstr(&t));
}

/* The node that computes a buffer; NULL: unknown. */
static const Loc *maker_of(Graph *g, Str name) {
  for (Val v = 1; g && name && v < g->val.n; v++)
    if (graph_val(g, v)->name == name && graph_val(g, v)->def)
      return &graph_node(g, graph_val(g, v)->def)->loc;
  return NULL;
}

/* Prints "of node 3 'conv1' (Conv)", or nothing if unknown. */
static void put_node(Ctx *c, StrBuf *t, const char *before, const Loc *l) {
  if (!l || (!l->node && l->index < 0)) return;
  sb_puts(t, before);
  if (l->index >= 0) sb_fmt(t, " node %d", l->index);
  if (l->node) sb_fmt(t, " '%s'", show(c, l->node));
  if (l->op) sb_fmt(t, " (%s)", show(c, l->op));
}

/* Describes the largest buffers at the memory peak, with their nodes and the kernel. */
static const char *peak_of(const Ingot *m) {
  Ctx *c = m->c;
  Prog *p = m->p;
  StrBuf t = sb_new(&c->scratch);
  PlanReport r = plan_report(p, &c->scratch);
  const Loc **made = NEWS(&c->scratch, const Loc *, r.npeak + 1);
  for (u32 i = 0; i < r.npeak && i < SHOWN; i++)
    made[i] = maker_of(m->g, prog_buf(p, r.peak[i])->name);
  prog_names(p); /* makes names unique */
  for (u32 i = 0; i < r.npeak && i < SHOWN; i++) {
    const Buf *b = prog_buf(p, r.peak[i]);
    i64 lo, hi[MAX_RANK];
    for (u32 k = 0; k < b->rank; k++) dim_bounds(p->dims, b->dim[k], &lo, &hi[k]);
    sb_fmt(&t, "%s%s %s %llu bytes", i ? ", " : "", show(c, b->name),
           shape_text(c, dtype_info[b->dt].name, hi, b->rank), (unsigned long long)r.peak_bytes[i]);
    put_node(c, &t, " of", made[i]);
  }
  if (r.npeak > SHOWN) sb_fmt(&t, " and %u more", r.npeak - SHOWN);
  if (r.peak_kernel) sb_fmt(&t, ", in the kernel '%s'", show(c, r.peak_kernel));
  put_node(c, &t, " of", r.peak_loc);
  return sb_cstr(&t);
}

/* Are most of the live bytes floats, so that quantization would help? False if the weights are
 * already quantized. */
static bool has_floats(const Ingot *m) {
  Prog *p = m->p;
  double floats = 0, all = 0, weights = 0, bytes = 0;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    u64 n;
    Sym sym;
    if (x->space == BS_const && !x->alias && x->data) {
      weights += (double)x->data->n;
      if (dtype_bytes(x->dt) == 1) bytes += (double)x->data->n;
    }
    if (x->space != BS_temp || x->alias || !mem_bytes(p, b, &n, &sym)) continue;
    all += (double)n;
    if (x->dt == DT_f32) floats += (double)n;
  }
  return !(m->g && m->g->scale.n) && 2 * floats > all && 2 * bytes <= weights;
}

static _Noreturn void refuse(Ingot *m, const ProgCandidate *smallest) {
  unsigned long long need = total_ram(smallest), over = need - m->codegen.ram;
  bool ports = smallest->ports > m->codegen.ram;
  if (!smallest->m.p->planned)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "a size has no upper bound, so the memory is not bounded; set one with --max-shapes");
  fail(
      m->c, ERR_unsupported, LOC_NONE,
      "needs %llu bytes in the smallest program that was found, for %s, %llu more than the %llu of "
      "--ram: arena %llu, stack %llu, inputs and outputs %llu; needed at the same time: %s; what "
      "helps: %s%s%s%s%s",
      need, smallest->how.target->name, over, (unsigned long long)m->codegen.ram,
      (unsigned long long)smallest->arena, (unsigned long long)smallest->stack,
      (unsigned long long)smallest->ports, peak_of(&smallest->m),
      ports ? "smaller inputs and outputs, which alone exceed the limit" : "a smaller input",
      has_floats(&smallest->m) ? ", quantization to int8, which needs a quarter of the memory" : "",
      m->codegen.threads > 1 ? ", fewer threads" : "",
      m->machine.variants.n ? ", one target instead of several (possibly --march scalar)" : "",
      need - smallest->stack <= m->codegen.ram
          ? ", a larger --ram: the stack is an upper bound for all compilers and flags (gcc "
            "-fstack-usage prints yours)"
          : "");
}

/* ---- the choice ---- */

static ProgCandidate choose_size(Ingot *m, const Target *target) {
  const CompileRequest way[] = {{target, AIM_time, 0},
                                {target, AIM_ram, 0},
                                {target, AIM_size, 0},
                                {target_scalar(), AIM_size, 0}};
  ProgCandidate best = {.how = {.target = target}};
  u64 smallest = UINT64_MAX;
  u32 ways =
      sizeof way / sizeof *way - (m->machine.variants.n > 0); /* a variant keeps its target */
  for (u32 i = 0; i < (target->lanes > 1 ? ways : 1); i++) {
    ProgCandidate t = try_program(m, way[i], i > 0);
    EmitOptions o = api_query_options(m, way[i].target);
    u64 cost = m->p->planned ? emit_size(m->p, &o) : 0;
    /* scalar code is much slower, so it must save a quarter */
    if (cost >= (way[i].target != target ? smallest - smallest / 4 : smallest)) continue;
    best = t;
    smallest = cost;
    if (!m->p->planned) break;
  }
  return best;
}

/* Lower is better. Less RAM at the cost of larger weights does not count as a gain. */
static double ram_score(const ProgCandidate *t, const ProgCandidate *fast) {
  u64 more = t->weights > fast->weights ? t->weights - fast->weights : 0;
  double slower = t->ns > fast->ns && fast->ns > 0 ? t->ns / fast->ns : 1;
  return log((double)(total_ram(t) + more) + 1) + log(slower) / RAM_WEIGHT;
}

static ProgCandidate choose_ram(Ingot *m, const Target *target) {
  ProgCandidate fast = try_program(m, (CompileRequest){target, AIM_time, 0}, false), best = fast;
  if (!fast.m.p->planned) return fast;
  u64 smallest = fast.arena;
  for (u32 i = 0; i < 6; i++) { /* first without row tiling, then with less and less of it */
    const u64 known[] = {0, TILING_MIN_RAM, TILING_LOW_RAM, fast.arena - fast.arena / 8,
                         fast.arena - fast.arena / 16};
    u64 goal = i < 5 ? known[i] : smallest + smallest / 2;
    if (goal >= fast.arena) continue;
    ProgCandidate t = try_program(m, (CompileRequest){target, AIM_ram, goal}, true);
    if (t.arena < smallest) smallest = t.arena;
    if (total_ram(&t) < total_ram(&fast) && ram_score(&t, &fast) < ram_score(&best, &fast))
      best = t;
  }
  ProgCandidate plain = best;
  if (target->lanes > 1)
    plain = try_program(m, (CompileRequest){target_scalar(), AIM_ram, TILING_LOW_RAM}, true);
  if (total_ram(&best) == total_ram(&fast))
    warn(m->c, LOC_NONE,
         "for %s: no program found that needs less RAM than the fastest, %llu bytes", target->name,
         (unsigned long long)total_ram(&best));
  else
    warn_tradeoff(&fast, &best);
  if (total_ram(&plain) < total_ram(&best) - total_ram(&best) / 4)
    warn(m->c, LOC_NONE, "scalar C, much slower, would need %llu bytes of RAM: --march scalar",
         (unsigned long long)total_ram(&plain));
  return best;
}

typedef struct BudgetSearch {
  ProgCandidate fast, smallest; /* the first program, and the smallest */
  bool any;
} BudgetSearch;

static bool fits(Ingot *m, BudgetSearch *f, CompileRequest how) {
  ProgCandidate t = try_program(m, how, f->any);
  if (!f->any) f->fast = t;
  if (!f->any || total_ram(&t) < total_ram(&f->smallest)) f->smallest = t;
  f->any = true;
  if (!t.m.p->planned) refuse(m, &t);
  return total_ram(&t) <= m->codegen.ram;
}

/* Tries programs for one target by increasing time; true: f->smallest fits. */
static bool choose_fit(Ingot *m, const Target *target, BudgetSearch *f) {
  if (fits(m, f, (CompileRequest){target, AIM_time, 0})) return true;
  if (fits(m, f, (CompileRequest){target, AIM_ram, 0})) return true;
  u64 others = f->smallest.stack + f->smallest.ports,
      want = m->codegen.ram > others ? m->codegen.ram - others : 0;
  for (u32 i = MORES; i > 0 && want > TILING_LOW_RAM; i--)
    if (fits(m, f, (CompileRequest){target, AIM_ram, want + want * i / MORE})) return true;
  for (u32 i = 0; i < TRIES && want > TILING_LOW_RAM; i++) {
    if (fits(m, f, (CompileRequest){target, AIM_ram, want})) return true;
    u64 over = total_ram(&f->smallest) - m->codegen.ram +
               want / SAVES; /* error of the estimate in row_tiling.c */
    want = want > over ? want - over : 0;
  }
  return fits(m, f, (CompileRequest){target, AIM_ram, TILING_LOW_RAM}) ||
         fits(m, f, (CompileRequest){target, AIM_ram, TILING_MIN_RAM});
}

static void choose_budget(Ingot *m, const Target *target) {
  BudgetSearch f = {.any = false};
  if (m->codegen.aim == AIM_time) {
    bool ok = choose_fit(m, target, &f);
    if (!ok && target->lanes > 1 && !m->machine.variants.n) ok = choose_fit(m, target_scalar(), &f);
    for (u32 part = 8; !ok && part <= 16;
         part *= 2) /* as in choose_ram, so that the refusal states the minimum */
      ok = fits(
          m, &f,
          (CompileRequest){f.smallest.how.target, AIM_ram, f.fast.arena - f.fast.arena / part});
    if (!ok) refuse(m, &f.smallest);
    if (total_ram(&f.smallest) < total_ram(&f.fast)) warn_tradeoff(&f.fast, &f.smallest);
  } else {
    f.smallest = m->codegen.aim == AIM_ram ? choose_ram(m, target) : choose_size(m, target);
    if (!f.smallest.m.p->planned || total_ram(&f.smallest) > m->codegen.ram) refuse(m, &f.smallest);
  }
  *m = f.smallest.m;
}

void api_choose_program(Ingot *m, const Target *target) {
  if (m->codegen.ram)
    choose_budget(m, target);
  else if (m->codegen.aim == AIM_size)
    *m = choose_size(m, target).m;
  else
    *m = choose_ram(m, target).m;
}
