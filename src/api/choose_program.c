/* choose_program.c: of several programs for a model the one that suits best.
 *
 * In: a model that is to be optimised for memory or size, or that has to fit into so many bytes.
 * Out: its program, and a warning that says what was given up for it. Which kernels need less
 * cannot be told one by one, nor what a plan makes of bands of rows: several programs are made and
 * measured. For a budget they are tried in the order of the time they take, and the first that fits
 * is taken; if none does, the smallest is described in the refusal.
 */
#include "api/api_internal.h"

#include <math.h>

/* Programs with bands that are made for a budget, each for less than the one before by one part in
 * SAVES more than it was missed by. */
enum { TRIES = 4, SAVES = 16, SHOWN = 3 };

/* Programs with bands for somewhat more than there is, in parts of MORE: what row_tiling.c foresees
 * is not what the plan comes to, either way. */
enum { MORE = 24, MORES = 3 };

/* How much of its time is worth memory: one part of RAM less in a hundred is worth so many parts
 * in a hundred more time, so that a program of twice the time has to save a sixth. */
static const double RAM_WEIGHT = 4;

typedef struct ProgCandidate {
  Ingot m; /* as it is with this program */
  CompileRequest how;
  u64 arena, stack, ports, weights; /* bytes; ports: inputs and outputs */
  double ns;                        /* of a run, roughly */
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

/* Makes a program. again: one has been made before. */
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

/* ---- what is said ---- */

/* What was given up for less memory than the program that is made for time. */
static void warn_tradeoff(const ProgCandidate *fast, const ProgCandidate *got) {
  Ctx *c = got->m.c;
  StrBuf t = sb_new(&c->scratch);
  bool plain = got->how.target != fast->how.target;
  if (got->stack != fast->stack)
    sb_fmt(&t, ", stack %llu instead of %llu", (unsigned long long)got->stack,
           (unsigned long long)fast->stack);
  if (plain)
    sb_fmt(&t, ", without vectors (%s), many times slower", got->how.target->name);
  else if (!got->m.facts.bands)
    sb_puts(&t, ", kernels that take less memory");
  double more = fast->ns > 0 ? got->ns / fast->ns : 1;
  if (!plain && more >= 1.005)
    sb_fmt(&t, ", about %.0f %% more time by estimate", (more - 1) * 100);
  if (got->m.facts.bands) sb_fmt(&t, ", bands of rows: %s", got->m.facts.bands);
  warn(c, LOC_NONE, "for %s: %llu bytes of RAM instead of %llu: arena %llu instead of %llu%s",
       fast->how.target->name, (unsigned long long)total_ram(got),
       (unsigned long long)total_ram(fast), (unsigned long long)got->arena,
       (unsigned long long)fast->arena, sb_cstr(&t));
}

/* The node that made what a buffer holds; NULL where no name tells it. */
static const Loc *maker_of(Graph *g, Str name) {
  for (Val v = 1; g && name && v < g->val.n; v++)
    if (graph_val(g, v)->name == name && graph_val(g, v)->def)
      return &graph_node(g, graph_val(g, v)->def)->loc;
  return NULL;
}

/* "of node 3 'conv1' (Conv)"; nothing where it is not known. */
static void put_node(Ctx *c, StrBuf *t, const char *before, const Loc *l) {
  if (!l || (!l->node && l->index < 0)) return;
  sb_puts(t, before);
  if (l->index >= 0) sb_fmt(t, " node %d", l->index);
  if (l->node) sb_fmt(t, " '%s'", show(c, l->node));
  if (l->op) sb_fmt(t, " (%s)", show(c, l->op));
}

/* The largest of what is alive when most bytes are, by which nodes of the model it was made, and
 * in which kernel that is. */
static const char *peak_of(const Ingot *m) {
  Ctx *c = m->c;
  Prog *p = m->p;
  StrBuf t = sb_new(&c->scratch);
  PlanReport r = plan_report(p, &c->scratch);
  const Loc **made = NEWS(&c->scratch, const Loc *, r.npeak + 1);
  for (u32 i = 0; i < r.npeak && i < SHOWN; i++)
    made[i] = maker_of(m->g, prog_buf(p, r.peak[i])->name);
  prog_names(p); /* two of one name get others */
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

/* Is most of what is stored while it runs floats, so that bytes in their place would help? Not of a
 * model whose weights are bytes: it is quantised already. */
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

static _Noreturn void refuse(Ingot *m, const ProgCandidate *least) {
  unsigned long long need = total_ram(least), over = need - m->codegen.ram;
  bool ports = least->ports > m->codegen.ram;
  if (!least->m.p->planned)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "some size has no upper bound, so that no memory is enough "
         "for certain; --max-shapes sets one");
  fail(
      m->c, ERR_unsupported, LOC_NONE,
      "needs %llu bytes in the smallest program that was found, for %s, %llu more than the %llu of "
      "--ram: arena %llu, stack %llu, inputs and outputs %llu; needed at the same time: %s; what "
      "helps: %s%s%s%s%s",
      need, least->how.target->name, over, (unsigned long long)m->codegen.ram,
      (unsigned long long)least->arena, (unsigned long long)least->stack,
      (unsigned long long)least->ports, peak_of(&least->m),
      ports ? "smaller inputs and outputs, which alone are too large" : "a smaller input",
      has_floats(&least->m) ? ", a model quantised to int8, whose values take a quarter" : "",
      m->codegen.threads > 1 ? ", fewer threads" : "",
      m->machine.bodies.n ? ", one target in place of several (--march scalar may do)" : "",
      need - least->stack <= m->codegen.ram
          ? ", --ram with more for the stack, a bound for every compiler and flag: what yours "
            "takes, gcc -fstack-usage tells"
          : "");
}

/* ---- the choice ---- */

static ProgCandidate choose_size(Ingot *m, const Target *target) {
  const CompileRequest way[] = {{target, AIM_time, 0},
                                {target, AIM_ram, 0},
                                {target, AIM_size, 0},
                                {target_scalar(), AIM_size, 0}};
  ProgCandidate best = {.how = {.target = target}};
  u64 least = UINT64_MAX;
  u32 ways = sizeof way / sizeof *way - (m->machine.bodies.n > 0); /* a body is for its machine */
  for (u32 i = 0; i < (target->lanes > 1 ? ways : 1); i++) {
    ProgCandidate t = try_program(m, way[i], i > 0);
    EmitOptions o = api_query_options(m, way[i].target);
    u64 cost = m->p->planned ? emit_size(m->p, &o) : 0;
    /* plain loops, which are many times slower, must save a quarter */
    if (cost >= (way[i].target != target ? least - least / 4 : least)) continue;
    best = t;
    least = cost;
    if (!m->p->planned) break;
  }
  return best;
}

/* Less is better. RAM that is less because weights are more is no gain. */
static double ram_score(const ProgCandidate *t, const ProgCandidate *fast) {
  u64 more = t->weights > fast->weights ? t->weights - fast->weights : 0;
  double slower = t->ns > fast->ns && fast->ns > 0 ? t->ns / fast->ns : 1;
  return log((double)(total_ram(t) + more) + 1) + log(slower) / RAM_WEIGHT;
}

static ProgCandidate choose_ram(Ingot *m, const Target *target) {
  ProgCandidate fast = try_program(m, (CompileRequest){target, AIM_time, 0}, false), best = fast;
  if (!fast.m.p->planned) return fast;
  u64 least = fast.arena;
  for (u32 i = 0; i < 6; i++) { /* without bands, with most, with many, with fewer and fewer */
    const u64 known[] = {0, TILING_MIN_RAM, TILING_LOW_RAM, fast.arena - fast.arena / 8,
                         fast.arena - fast.arena / 16};
    u64 bands = i < 5 ? known[i] : least + least / 2;
    if (bands >= fast.arena) continue;
    ProgCandidate t = try_program(m, (CompileRequest){target, AIM_ram, bands}, true);
    if (t.arena < least) least = t.arena;
    if (total_ram(&t) < total_ram(&fast) && ram_score(&t, &fast) < ram_score(&best, &fast))
      best = t;
  }
  ProgCandidate plain = best;
  if (target->lanes > 1)
    plain = try_program(m, (CompileRequest){target_scalar(), AIM_ram, TILING_LOW_RAM}, true);
  if (total_ram(&best) == total_ram(&fast))
    warn(m->c, LOC_NONE,
         "for %s: no program was found that takes less RAM than the fastest, %llu bytes",
         target->name, (unsigned long long)total_ram(&best));
  else
    warn_tradeoff(&fast, &best);
  if (total_ram(&plain) < total_ram(&best) - total_ram(&best) / 4)
    warn(m->c, LOC_NONE, "plain C, many times slower, would need %llu bytes of RAM: --march scalar",
         (unsigned long long)total_ram(&plain));
  return best;
}

typedef struct BudgetSearch {
  ProgCandidate fast, least; /* the first that was made, and the smallest */
  bool any;
} BudgetSearch;

static bool fits(Ingot *m, BudgetSearch *f, CompileRequest how) {
  ProgCandidate t = try_program(m, how, f->any);
  if (!f->any) f->fast = t;
  if (!f->any || total_ram(&t) < total_ram(&f->least)) f->least = t;
  f->any = true;
  if (!t.m.p->planned) refuse(m, &t);
  return total_ram(&t) <= m->codegen.ram;
}

/* For one target, programs in the order of the time they take; true: f->least fits. */
static bool choose_fit(Ingot *m, const Target *target, BudgetSearch *f) {
  if (fits(m, f, (CompileRequest){target, AIM_time, 0})) return true;
  if (fits(m, f, (CompileRequest){target, AIM_ram, 0})) return true;
  u64 others = f->least.stack + f->least.ports,
      want = m->codegen.ram > others ? m->codegen.ram - others : 0;
  for (u32 i = MORES; i > 0 && want > TILING_LOW_RAM; i--)
    if (fits(m, f, (CompileRequest){target, AIM_ram, want + want * i / MORE})) return true;
  for (u32 i = 0; i < TRIES && want > TILING_LOW_RAM; i++) {
    if (fits(m, f, (CompileRequest){target, AIM_ram, want})) return true;
    u64 over = total_ram(&f->least) - m->codegen.ram +
               want / SAVES; /* what row_tiling.c did not foresee */
    want = want > over ? want - over : 0;
  }
  return fits(m, f, (CompileRequest){target, AIM_ram, TILING_LOW_RAM}) ||
         fits(m, f, (CompileRequest){target, AIM_ram, TILING_MIN_RAM});
}

static void choose_budget(Ingot *m, const Target *target) {
  BudgetSearch f = {.any = false};
  if (m->codegen.aim == AIM_time) {
    bool ok = choose_fit(m, target, &f);
    if (!ok && target->lanes > 1 && !m->machine.bodies.n) ok = choose_fit(m, target_scalar(), &f);
    for (u32 part = 8; !ok && part <= 16; part *= 2) /* as choose_ram: the least there is is told */
      ok = fits(m, &f,
                (CompileRequest){f.least.how.target, AIM_ram, f.fast.arena - f.fast.arena / part});
    if (!ok) refuse(m, &f.least);
    if (total_ram(&f.least) < total_ram(&f.fast)) warn_tradeoff(&f.fast, &f.least);
  } else {
    f.least = m->codegen.aim == AIM_ram ? choose_ram(m, target) : choose_size(m, target);
    if (!f.least.m.p->planned || total_ram(&f.least) > m->codegen.ram) refuse(m, &f.least);
  }
  *m = f.least.m;
}

void api_choose_program(Ingot *m, const Target *target) {
  if (m->codegen.ram)
    choose_budget(m, target);
  else if (m->codegen.aim == AIM_size)
    *m = choose_size(m, target).m;
  else
    *m = choose_ram(m, target).m;
}
