/* guess_dims.c: guesses missing dimensions, so that a refusal can suggest options that work.
 *
 * In: the dimensions that an import missed. Out: command-line words, if some numbers let the import
 * succeed. Method: try usual image sizes and lengths, also with some dimensions set to 1 (a batch
 * in an unusual position). A dimension that occurs only in inputs that look like state grows from
 * run to run: it gets a bound, and the other dimensions are 1. The number of trials and their time
 * are limited; this runs only after a failure.
 */
#include "api/api_internal.h"

#include <string.h>

enum { TRIALS = 48, TRIAL_MS = 3000, FEW = 4 };
static const i64 side[] = {224, 256, 640, 32, 48, 8}, length[] = {128, 512, 16, 64, 1024, 8};
enum { SIZES = sizeof side / sizeof *side };

typedef struct Guess {
  Ingot *m;
  ImportOptions o;
  const MissingDims *miss;
  BindDim *mine; /* part of o.dim: one per missing dimension */
  bool *grows;   /* parallel to mine: it gets a bound */
  u32 trials;
  double start;
  const char *why; /* why the first trial failed, and its options */
  StrBuf first;
} Guess;

/* ---- trials ---- */

static void try_import(Ctx *c, void *arg) {
  Guess *a = arg;
  a->m->g = a->m->opened.reader->import(c, &a->m->opened.source, a->m->opened.model, &a->o);
  api_bind_state(a->m);
}

static void put_number(const Ctx *c, const BindDim *d, StrBuf *t) {
  sb_puts(t, str_text(c, d->input ? d->input : d->symbol));
  if (d->input) sb_fmt(t, ":%lld", (long long)d->axis);
  sb_fmt(t, "=%lld", (long long)d->value);
}

static void first_failure(Guess *a, const char *why) {
  a->why = why;
  a->first = sb_new(&a->m->c->keep);
  for (u32 i = 0; i < a->miss->n; i++) {
    sb_puts(&a->first, i ? "," : "");
    put_number(a->m->c, &a->mine[i], &a->first);
  }
}

/* Runs a trial; discards its messages and ignores earlier ones. */
static bool works(Guess *a) {
  Ctx *c = a->m->c;
  Loc here = c->here;
  DiagMark before = diag_mark(c);
  const char *why;
  c->nerrors = 0;
  Err e = ctx_try(c, try_import, a, &why);
  if (e && !a->why) first_failure(a, why);
  c->here = here;
  diag_rewind(c, before);
  return !e;
}

static void set_values(Guess *a, u32 size, u32 ones) {
  for (u32 i = 0; i < a->miss->n; i++) {
    BindDim *d = &a->mine[i];
    *d = a->miss->at[i].bind;
    bool one = d->value || (i < FEW ? ones >> i & 1 : ones == UINT32_MAX);
    d->value = one ? 1 : a->miss->at[i].is_side ? side[size] : length[size];
    d->bound = a->grows[i];
    if (d->bound) d->value = length[size];
  }
}

/* ---- growing dimensions ---- */

static bool has_dim(const DeclValue *v, const BindDim *d) {
  if (d->input) return v->name == d->input;
  for (u32 k = 0; k < v->type.dims.n; k++)
    if (v->type.dims.at[k].kind == OD_param && v->type.dims.at[k].param == d->symbol) return true;
  return false;
}

/* First input with the dimension; NULL: none, or one that does not look like state. */
static const DeclValue *state_with(Ingot *m, const BindDim *d) {
  const DeclValue *found = NULL;
  for (u32 i = 0; m->opened.model && i < m->opened.model->ninput; i++) {
    const DeclValue *v = m->opened.model->input[i];
    if (!has_dim(v, d)) continue;
    if (!api_is_state_input(m, v->name)) return NULL;
    if (!found) found = v;
  }
  return found;
}

/* ---- hints ---- */

static void keep_pair(Ingot *m, const char *option, StrBuf *t) {
  for (u32 i = 0; i + 1 < m->options.hint.n; i++)
    if (!strcmp(m->options.hint.at[i], option) && !strcmp(m->options.hint.at[i + 1], sb_cstr(t)))
      return;
  *vec_push(&m->c->keep, &m->options.hint) = option;
  *vec_push(&m->c->keep, &m->options.hint) = sb_cstr(t);
}

static void keep_number(Ingot *m, const BindDim *d) {
  StrBuf t = sb_new(&m->c->keep);
  put_number(m->c, d, &t);
  keep_pair(m, "-d", &t);
}

static Val param_named(const Graph *g, Str name) {
  const GraphRegion *b = &g->region.at[1];
  for (u32 i = 0; i < b->param.n; i++)
    if (g->val.at[b->param.at[i]].name == name) return b->param.at[i];
  return 0;
}

/* A bound is given with the whole shape of an input. Other dimensions of this shape then need their
 * numbers again, or they would be open. */
static void keep_bound(Ingot *m, const DeclValue *v) {
  Val param = param_named(m->g, v->name);
  const Type *type = param ? graph_type(m->g, param) : NULL;
  StrBuf t = sb_new(&m->c->keep);
  sb_fmt(&t, "%s:", str_text(m->c, v->name));
  for (u32 k = 0; type && k < type->rank; k++) {
    const DeclDim *d = k < v->type.dims.n ? &v->type.dims.at[k] : NULL;
    i64 lo, hi;
    dim_bounds(m->g->dims, type->dim[k], &lo, &hi);
    sb_fmt(&t, "%s%lld", k ? "x" : "", (long long)hi);
    if (lo != hi || !d || (d->kind == OD_value && d->value >= 0)) continue;
    bool named = d->kind == OD_param, known = false;
    BindDim b = {.value = hi, .symbol = named ? d->param : 0, .input = named ? 0 : v->name};
    b.axis = named ? 0 : k;
    for (u32 i = 0; i < m->options.dim.n; i++)
      known =
          known || (!m->options.dim.at[i].bound && m->options.dim.at[i].symbol == b.symbol &&
                    m->options.dim.at[i].input == b.input && m->options.dim.at[i].axis == b.axis);
    if (!known) keep_number(m, &b);
  }
  keep_pair(m, "--max-shapes", &t);
}

static bool is_given(const Ingot *m, Str name) {
  for (u32 i = 0; i < m->options.given.n; i++)
    if (m->options.given.at[i].name == name && m->options.given.at[i].kind == IB_data) return true;
  return false;
}

void api_hint_open_dims(Ingot *m) {
  for (u32 i = 0; m->g && i < api_param_count(m); i++) {
    Val v = m->g->region.at[1].param.at[api_graph_index(m, i, false)];
    const Type *t = graph_type(m->g, v);
    for (u32 k = 0; k < t->rank && !is_given(m, api_param_name(m, i)); k++) {
      Sym sym;
      if (!dim_is_sym(m->g->dims, t->dim[k], SY_input, &sym)) continue;
      const SymInfo *info = dim_syminfo(m->g->dims, sym);
      keep_number(m, &(BindDim){.symbol = info->name, .value = info->hi});
    }
  }
}

static void keep_words(Guess *a) {
  Ingot *m = a->m;
  for (u32 i = 0; i < a->miss->n; i++)
    if (!a->grows[i]) keep_number(m, &a->mine[i]);
  for (u32 i = 0; i < a->miss->n; i++)
    if (a->grows[i]) keep_bound(m, state_with(m, &a->mine[i]));
  if (m->runs) api_hint_open_dims(m);
}

static bool try_sizes(Guess *a, u32 size, u32 ones) {
  if (a->trials++ >= TRIALS || time_ms() - a->start > TRIAL_MS) return false;
  set_values(a, size, ones);
  bool fine = works(a);
  if (fine) keep_words(a);
  a->m->g = NULL;
  return fine;
}

void api_guess_dims(Ingot *m, const ImportOptions *asked, const MissingDims *miss) {
  Ctx *c = m->c;
  Guess a = {.m = m, .o = *asked, .miss = miss, .start = time_ms()};
  bool growth = false;
  a.o.missing = NULL;
  a.o.outputs = NULL;
  a.o.frozen = NULL;
  a.o.ndim += miss->n;
  a.o.dim = NEWS(&c->keep, BindDim, a.o.ndim);
  if (asked->ndim) memcpy(a.o.dim, asked->dim, asked->ndim * sizeof *a.o.dim);
  a.mine = a.o.dim + asked->ndim;
  a.grows = NEWS(&c->keep, bool, miss->n + 1);
  u32 masks = miss->n < FEW ? 1u << miss->n : 1u << FEW;
  for (u32 i = 0; i < miss->n; i++) {
    if (miss->at[i].bind.rank) return; /* cannot guess a whole shape */
    a.grows[i] = m->options.state.n && !miss->at[i].bind.value && state_with(m, &miss->at[i].bind);
    growth = growth || a.grows[i];
  }
  if (growth && try_sizes(&a, 0, UINT32_MAX)) return;
  for (u32 i = 0; i < SIZES; i++)
    for (u32 ones = 0; ones < masks; ones++)
      if (try_sizes(&a, i, ones)) return;
  if (a.why && !growth)
    warn(c, LOC_NONE, "none of the usual sizes fits; with -d %s: %s",
         show(c, str_of(c, sb_cstr(&a.first))), a.why);
}

const char *ingot_hint(const Ingot *m, uint32_t i) {
  return m && i < m->options.hint.n ? m->options.hint.at[i] : NULL;
}

const char *ingot_nearest(const char *word, const char *const *name, size_t n) {
  Suggestion near = suggest_new(word);
  for (size_t i = 0; word && name && i < n; i++)
    if (name[i]) suggest_try(&near, name[i]);
  return near.name;
}
