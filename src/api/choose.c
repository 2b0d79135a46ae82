/* choose.c: of several programs for a model the one that suits best.
 *
 * In: a model that is to be optimised for memory or size, or that has to fit into so many bytes.
 * Out: its program, and a warning that says what was given up for it. Which kernels need less
 * cannot be told one by one, nor what a plan makes of bands of rows: several programs are made and
 * measured. For a budget they are tried in the order of the time they take, and the first that fits
 * is taken; if none does, the smallest is described in the refusal.
 */
#include "api/own.h"

/* Programs with bands that are made for a budget, each for less than the one before. Bands that
 * save less than one part in SAVES of the arena are not worth it. */
enum { TRIES = 4, SAVES = 16, SHOWN = 3 };

typedef struct Tried {
  Ingot m; /* as it is with this program */
  Make how;
  u64 arena, stack, ports, weights; /* bytes; ports: inputs and outputs */
  double ns;                        /* of a run, roughly */
} Tried;

static u64 constants(const Prog *p) {
  u64 n = 0;
  for (BufId b = 1; b < p->buf.n; b++)
    if (p->buf.at[b].data) n += tensor_bytes(p->buf.at[b].data);
  return n;
}

static EmitOptions options(const Ingot *m, const Target *target) {
  return (EmitOptions){.name = "model",
                       .version = "",
                       .source = "",
                       .options = "",
                       .target = target,
                       .openmp = m->openmp,
                       .weights = WM_literal};
}

static void find_stack(Ctx *c, void *arg) {
  Tried *t = arg;
  (void)c;
  EmitOptions o = options(&t->m, t->how.target);
  EmitFacts f = emit_facts(t->m.p, &o);
  t->arena = f.arena_bytes;
  t->stack = f.stack_bytes;
  t->ports = f.input_bytes + f.output_bytes;
}

/* Makes a program. again: one has been made before. */
static Tried try(Ingot *m, Make how, bool again) {
  const char *why;
  if (again) api_import_again(m);
  api_make(m, NULL, &how);
  Tried t = {.m = *m, .how = how, .arena = m->p->arena_bytes};
  t.weights = constants(m->p);
  t.ns = prog_time(m->p);
  if (m->p->planned && m->ram) ctx_try(m->c, find_stack, &t, &why);
  return t;
}

static u64 total(const Tried *t) {
  return t->arena + t->stack + t->ports;
}

/* ---- what is said ---- */

/* What was given up for less memory than the program that is made for time. */
static void say_trade(const Tried *fast, const Tried *got) {
  Ctx *c = got->m.c;
  Text t = text_new(&c->scratch);
  if (got->how.target != fast->how.target) text_puts(&t, ", no vectors: many times slower");
  if (!got->m.bands && got->how.target == fast->how.target)
    text_puts(&t, ", kernels that take less memory");
  double more = fast->ns > 0 ? got->ns / fast->ns : 1;
  if (got->how.target == fast->how.target && more >= 1.005)
    text_fmt(&t, ", about %.0f %% more time by estimate", (more - 1) * 100);
  if (got->m.bands) text_fmt(&t, ", bands of rows: %s", got->m.bands);
  warn(c, LOC_NONE, "for %s: arena %llu bytes instead of %llu%s", got->how.target->name,
       (unsigned long long)got->arena, (unsigned long long)fast->arena, text_cstr(&t));
}

/* The largest of what is alive when most bytes are, and in which kernel that is. */
static const char *peak_of(Ctx *c, Prog *p) {
  Text t = text_new(&c->scratch);
  prog_names(p);
  PlanReport r = plan_report(p, &c->scratch);
  for (u32 i = 0; i < r.npeak && i < SHOWN; i++) {
    const Buf *b = prog_buf(p, r.peak[i]);
    text_fmt(&t, "%s%s %s[", i ? ", " : "", show(c, b->name), dtype_info[b->dt].name);
    for (u32 k = 0; k < b->rank; k++) {
      i64 lo, hi;
      dim_bounds(p->dims, b->dim[k], &lo, &hi);
      text_fmt(&t, "%s%lld", k ? "," : "", (long long)hi);
    }
    text_fmt(&t, "] %llu bytes", (unsigned long long)r.peak_bytes[i]);
  }
  if (r.npeak > SHOWN) text_fmt(&t, " and %u more", r.npeak - SHOWN);
  if (r.peak_kernel) text_fmt(&t, ", in the kernel '%s'", show(c, r.peak_kernel));
  return text_cstr(&t);
}

static bool has_floats(const Prog *p) {
  for (BufId b = 1; b < p->buf.n; b++)
    if (p->buf.at[b].space == BS_temp && p->buf.at[b].dt == DT_f32) return true;
  return false;
}

static _Noreturn void refuse(Ingot *m, const Tried *least) {
  Ctx *c = m->c;
  unsigned long long need = total(least), over = need - m->ram;
  bool ports = least->ports > m->ram;
  if (!least->m.p->planned)
    fail(c, ERR_unsupported, LOC_NONE,
         "some size has no upper bound, so that no memory is enough "
         "for certain; --max-shapes sets one");
  fail(
      c, ERR_unsupported, LOC_NONE,
      "needs %llu bytes at least, %llu more than the %llu of --ram: arena %llu, stack %llu, inputs "
      "and outputs %llu; needed at the same time: %s; what helps: %s%s%s",
      need, over, (unsigned long long)m->ram, (unsigned long long)least->arena,
      (unsigned long long)least->stack, (unsigned long long)least->ports, peak_of(c, least->m.p),
      ports ? "smaller inputs and outputs, which alone are too large" : "a smaller input",
      has_floats(least->m.p) ? ", a model quantised to int8, whose values take a quarter" : "",
      m->threads > 1 ? ", fewer threads" : "");
}

/* ---- the choice ---- */

static Tried choose_size(Ingot *m, const Target *target) {
  const Make way[] = {{target, AIM_time, 0},
                      {target, AIM_ram, 0},
                      {target, AIM_size, 0},
                      {target_scalar(), AIM_size, 0}};
  Tried best = {.how = {.target = target}};
  u64 least = UINT64_MAX;
  for (u32 i = 0; i < (target->lanes > 1 ? sizeof way / sizeof *way : 1); i++) {
    Tried t = try(m, way[i], i > 0);
    EmitOptions o = options(m, target);
    u64 cost = m->p->planned ? emit_size(m->p, &o) : 0;
    /* plain loops, which are many times slower, must save a quarter */
    if (cost >= (way[i].target != target ? least - least / 4 : least)) continue;
    best = t;
    least = cost;
    if (!m->p->planned) break;
  }
  return best;
}

/* An arena that is smaller because weights are larger is no gain. */
static u64 ram_cost(const Tried *t, const Tried *fast) {
  return t->arena + (t->weights > fast->weights ? t->weights - fast->weights : 0);
}

static Tried choose_ram(Ingot *m, const Target *target) {
  Tried fast = try(m, (Make){target, AIM_time, 0}, false), best = fast;
  if (!fast.m.p->planned) return fast;
  Tried t = try(m, (Make){target, AIM_ram, 0}, true);
  if (ram_cost(&t, &fast) < ram_cost(&best, &fast)) best = t;
  t = try(m, (Make){target, AIM_ram, BAND_NEAR}, true);
  u64 most = ram_cost(&best, &fast);
  if (ram_cost(&t, &fast) <= most - most / SAVES) best = t;
  Tried plain = best;
  if (target->lanes > 1) plain = try(m, (Make){target_scalar(), AIM_ram, BAND_NEAR}, true);
  if (best.arena == fast.arena)
    warn(m->c, LOC_NONE,
         "for %s: no program was found with a smaller arena than the fastest, %llu bytes",
         target->name, (unsigned long long)best.arena);
  else
    say_trade(&fast, &best);
  if (plain.arena < best.arena - best.arena / 4)
    warn(m->c, LOC_NONE,
         "plain C, many times slower, would need an arena of %llu bytes: --march scalar",
         (unsigned long long)plain.arena);
  return best;
}

typedef struct Fit {
  Tried fast, least; /* the first that was made, and the smallest */
  bool any;
} Fit;

static bool fits(Ingot *m, Fit *f, Make how) {
  Tried t = try(m, how, f->any);
  if (!f->any) f->fast = t;
  if (!f->any || total(&t) < total(&f->least)) f->least = t;
  f->any = true;
  if (!t.m.p->planned) refuse(m, &t);
  return total(&t) <= m->ram;
}

/* For one target, programs in the order of the time they take; true: f->least fits. */
static bool choose_fit(Ingot *m, const Target *target, Fit *f) {
  if (fits(m, f, (Make){target, AIM_time, 0})) return true;
  if (fits(m, f, (Make){target, AIM_ram, 0})) return true;
  u64 others = f->least.stack + f->least.ports, want = m->ram > others ? m->ram - others : 0;
  for (u32 i = 0; i < TRIES && want > BAND_NEAR; i++) {
    if (fits(m, f, (Make){target, AIM_ram, want})) return true;
    u64 over = total(&f->least) - m->ram + want / SAVES; /* what band.c did not foresee */
    want = want > over ? want - over : 0;
  }
  return fits(m, f, (Make){target, AIM_ram, BAND_NEAR}) ||
         fits(m, f, (Make){target, AIM_ram, BAND_LEAST});
}

static void choose_budget(Ingot *m, const Target *target) {
  Fit f = {.any = false};
  if (m->aim == AIM_time) {
    bool ok = choose_fit(m, target, &f);
    if (!ok && target->lanes > 1) ok = choose_fit(m, target_scalar(), &f);
    if (!ok) refuse(m, &f.least);
    if (f.least.arena < f.fast.arena) say_trade(&f.fast, &f.least);
  } else {
    f.least = m->aim == AIM_ram ? choose_ram(m, target) : choose_size(m, target);
    if (!f.least.m.p->planned || total(&f.least) > m->ram) refuse(m, &f.least);
  }
  *m = f.least.m;
}

void api_choose(Ingot *m, const Target *target) {
  if (m->ram)
    choose_budget(m, target);
  else if (m->aim == AIM_size)
    *m = choose_size(m, target).m;
  else
    *m = choose_ram(m, target).m;
}
