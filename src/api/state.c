/* state.c: pairs outputs with inputs as state, and keeps it for engine ref.
 *
 * In: pairs INPUT=OUTPUT, or "auto". Out: Graph.state, and runs of `ref` with it. "auto" looks at
 * names and types only. An input and an output are a pair if they may be one (graph_state.c) and
 * their names are equal except for
 *
 *   past / present                                 past_key_values.0.key, present.0.key
 *   in / out, input / output, old or prev / new    state_in, state_out; cache, new_cache
 *   nothing / next, nothing or 0 / n               cache, cache_next; state, stateN; h0, hn
 *
 * All but the first require a word for state in the name (`words`): many models map an image_in to
 * an image_out. An ambiguous name is not paired.
 */
#include "api/api_internal.h"

#include <string.h>

/* ---- names ---- */

enum { NAME_WORDS = 16, NAME_BYTES = 200 };

typedef struct Name {
  char text[NAME_BYTES]; /* words in lower case, each ended by NUL */
  const char *word[NAME_WORDS];
  u32 n;
  bool cache;  /* past or present */
  bool marked; /* a word marks it as input or output */
} Name;

static bool is_one_of(const char *w, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(w, *list)) return true;
  return false;
}

static const char *const words[] = {"h",     "c",      "hx",       "cx",     "hidden", "cell",
                                    "state", "states", "cache",    "caches", "cached", "mem",
                                    "mems",  "memory", "memories", "kv",     "lstm",   "gru",
                                    "rnn",   "buffer", NULL};

static bool has_state_word(const Name *m) {
  for (u32 i = 0; i < m->n; i++)
    if (is_one_of(m->word[i], words)) return true;
  return false;
}

static char lower_of(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

static bool is_word(char c) {
  return (c >= '0' && c <= '9') || (lower_of(c) >= 'a' && lower_of(c) <= 'z');
}

/* Splits at characters other than letters and digits, and before upper case letters. */
static bool split(Name *m, const char *s) {
  size_t k = 0;
  *m = (Name){.n = 0};
  if (strlen(s) * 2 + 2 > NAME_BYTES) return false;
  for (size_t i = 0; s[i]; i++) {
    if (!is_word(s[i])) continue;
    bool first = i == 0 || !is_word(s[i - 1]) || (is_upper(s[i]) && !is_upper(s[i - 1]));
    if (first && m->n == NAME_WORDS) return false;
    if (first && m->n) m->text[k++] = 0;
    if (first) m->word[m->n++] = m->text + k;
    m->text[k++] = lower_of(s[i]);
  }
  return true;
}

static void drop(Name *m, u32 i, u32 n) {
  m->n -= n;
  for (; i < m->n; i++) m->word[i] = m->word[i + n];
}

/* Removes the words that distinguish inputs from outputs. */
static void strip(Name *m, bool out) {
  static const char *const ins[] = {"past", "in", "input", "old", "prev", "previous", NULL};
  static const char *const outs[] = {"present", "out", "output", "new", "next", NULL};
  for (u32 i = 0; i < m->n;) {
    if (!is_one_of(m->word[i], out ? outs : ins)) {
      i++;
      continue;
    }
    bool cache = !strcmp(m->word[i], out ? "present" : "past");
    m->marked = true;
    m->cache = m->cache || cache;
    drop(m, i, 1);
    if (cache && i + 1 < m->n && !strcmp(m->word[i], "key") && !strcmp(m->word[i + 1], "values"))
      drop(m, i, 2);
  }
}

/* Removes a last word, or a last letter after h or c; false: not found. */
static bool cut_end(Name *m, const char *end) {
  if (!m->n) return false;
  const char *last = m->word[m->n - 1];
  if (m->n > 1 && !strcmp(last, end)) {
    m->n--;
    return true;
  }
  if ((*last != 'h' && *last != 'c') || strcmp(last + 1, end) != 0) return false;
  m->word[m->n - 1] = *last == 'h' ? "h" : "c";
  return true;
}

static bool same_words(const Name *a, const Name *b) {
  bool same = a->n == b->n;
  for (u32 i = 0; same && i < a->n; i++) same = !strcmp(a->word[i], b->word[i]);
  return same;
}

static bool match(const char *in, const char *out) {
  Name a, b;
  if (!split(&a, in) || !split(&b, out)) return false;
  bool state = has_state_word(&a);
  strip(&a, false);
  strip(&b, true);
  bool last = cut_end(&b, "n");
  if (last) cut_end(&a, "0");
  if (!same_words(&a, &b)) return false;
  if (a.cache && b.cache) return true;
  return (state || has_state_word(&a)) && (b.marked || last) && !a.cache && !b.cache;
}

/* ---- pairs ---- */

static Str in_name(const Graph *g, u32 i) {
  return g->val.at[g->region.at[1].param.at[i]].name;
}

static bool may_pair(Ingot *m, u32 in, u32 out) {
  Graph *g = m->g;
  GrowingAxis how;
  const char *why;
  Val v = g->region.at[1].param.at[in];
  return match(str_text(m->c, in_name(g, in)), str_text(m->c, g->out_name.at[out])) &&
         !graph_pin(g, v) && state_fits(g, v, g->region.at[1].ret.at[out], &how, &why);
}

u32 api_find_state(Ingot *m, StatePair *pair, u32 max) {
  u32 ni = m->g->region.at[1].param.n, nout = m->g->out_name.n, n = 0;
  for (u32 i = 0; i < ni; i++) {
    u32 found = 0, which = 0, back = 0;
    for (u32 k = 0; k < nout; k++)
      if (may_pair(m, i, k)) {
        which = k;
        found++;
      }
    for (u32 k = 0; found == 1 && k < ni; k++) back += may_pair(m, k, which);
    if (found == 1 && back == 1 && n < max) pair[n++] = (StatePair){.in = i, .out = which};
  }
  return n;
}

static StatePair named_pair(Ingot *m, const char *spec) {
  Graph *g = m->g;
  for (const char *eq = strchr(spec, '='); eq; eq = strchr(eq + 1, '=')) {
    Str in = str_intern(m->c, spec, (size_t)(eq - spec)), out = str_of(m->c, eq + 1);
    for (u32 i = 0; i < g->region.at[1].param.n; i++)
      for (u32 k = 0; k < g->out_name.n; k++)
        if (in_name(g, i) == in && g->out_name.at[k] == out) return (StatePair){.in = i, .out = k};
  }
  StrBuf in = sb_new(&m->c->scratch), out = sb_new(&m->c->scratch);
  for (u32 i = 0; i < g->region.at[1].param.n; i++)
    sb_fmt(&in, "%s%s", i ? ", " : "", show(m->c, in_name(g, i)));
  for (u32 k = 0; k < g->out_name.n; k++)
    sb_fmt(&out, "%s%s", k ? ", " : "", show(m->c, g->out_name.at[k]));
  fail(m->c, ERR_usage, LOC_NONE,
       "'%s': expected INPUT=OUTPUT, or auto; inputs are %s; outputs are %s", spec, sb_cstr(&in),
       sb_cstr(&out));
}

void api_bind_state(Ingot *m) {
  Ctx *c = m->c;
  if (!m->options.state.n) return;
  if (!m->g)
    fail(c, ERR_usage, LOC_NONE, "--state: expected a graph; a program declares its own state");
  u32 max = m->g->region.at[1].param.n;
  StatePair *found = NEWS(&c->scratch, StatePair, max + 1);
  for (u32 i = 0; i < m->options.state.n; i++) {
    u32 n = 1;
    if (strcmp(m->options.state.at[i], "auto") != 0)
      found[0] = named_pair(m, m->options.state.at[i]);
    else
      n = api_find_state(m, found, max);
    if (!n)
      fail(c, ERR_usage, LOC_NONE,
           "no input and output are named like a state and have equal types; give INPUT=OUTPUT; "
           "bound a growing cache with --max-shapes instead of -d");
    for (u32 k = 0; k < n; k++) {
      Val v = m->g->region.at[1].param.at[found[k].in];
      if (graph_pin(m->g, v))
        fail(c, ERR_usage, LOC_NONE, "input '%s' decides shapes and cannot be a state",
             show(c, in_name(m->g, found[k].in)));
      *vec_push(&c->work, &m->g->state) = found[k];
    }
  }
  graph_check_state(m->g, ERR_usage);
}

bool api_is_state_input(Ingot *m, Str input) {
  const char *in = str_text(m->c, input);
  const Model *g = m->opened.model;
  for (u32 i = 0; i < m->options.state.n; i++) {
    const char *spec = m->options.state.at[i];
    size_t n = strlen(in);
    if (!strncmp(spec, in, n) && spec[n] == '=') return true;
    for (u32 k = 0; k < g->noutput && !strcmp(spec, "auto"); k++)
      if (match(in, str_text(m->c, g->output[k].name))) return true;
  }
  return false;
}

static void set_state(Ingot *m, const char *spec) {
  Ctx *c = m->c;
  api_need(c, spec, "the names of the state");
  if (m->g || m->p) fail(c, ERR_usage, LOC_NONE, "expected --state before the model is imported");
  *vec_push(&c->keep, &m->options.state) = str_text(c, str_of(c, spec));
}

IngotStatus ingot_set_state(Ingot *m, const char *spec) {
  API_CALL(m, set_state(m, spec));
}

/* ---- positions without state ---- */

/* Number of states at positions up to this one. */
static u32 count_kept(const Graph *g, u32 at, bool out) {
  u32 n = 0;
  for (u32 k = 0; k < g->state.n; k++) n += (out ? g->state.at[k].out : g->state.at[k].in) <= at;
  return n;
}

/* First position with the required number of others before it. */
u32 api_graph_index(const Ingot *m, u32 i, bool out) {
  u32 at = i;
  for (u32 next; (next = i + count_kept(m->g, at, out)) != at;) at = next;
  return at;
}

bool api_has_state(const Ingot *m) {
  return m->p ? prog_has_state(m->p) : m->g && m->g->state.n;
}

/* ---- runs of ref ---- */

/* Initial value of a state; extents that no input determines are 0. */
static Tensor *first_value(Ingot *m, Val v, const i64 *env) {
  const Type *t = graph_type(m->g, v);
  i64 dim[MAX_RANK];
  for (u32 i = 0; i < t->rank; i++) dim[i] = dim_eval(m->g->dims, t->dim[i], env);
  return tensor_new(&m->c->keep, t->dt, dim, t->rank);
}

static i64 *sizes_seen(Ingot *m) {
  Graph *g = m->g;
  i64 *env = NEWS(&m->c->scratch, i64, dim_nsyms(g->dims) + 1);
  for (u32 i = 0; i < api_param_count(m); i++) {
    const Type *t = graph_type(g, g->region.at[1].param.at[api_graph_index(m, i, false)]);
    Sym sym;
    for (u32 k = 0; k < t->rank; k++)
      if (dim_is_sym(g->dims, t->dim[k], SY_input, &sym)) env[sym] = m->run.in[i]->dim[k];
  }
  return env;
}

/* Reports a full state like the other engines. */
static void check_room(Ingot *m) {
  Graph *g = m->g;
  for (u32 k = 0; k < g->state.n; k++) {
    const Type *t = graph_type(g, g->region.at[1].param.at[g->state.at[k].in]);
    GrowingAxis how = state_growth(g, &g->state.at[k]);
    i64 lo, hi;
    if (how.axis == MAX_RANK) continue;
    dim_bounds(g->dims, t->dim[how.axis], &lo, &hi);
    i64 now = m->states.ref_state[k]->dim[how.axis], *env = sizes_seen(m);
    env[how.sym] = now;
    if (now > hi || (how.most && dim_eval(g->dims, how.next, env) > how.most))
      fail(m->c, ERR_input, LOC_NONE, "the state is full: %s cannot grow",
           show(m->c, dim_syminfo(g->dims, how.sym)->name));
  }
}

void api_run_ref(Ingot *m, const RefOptions *o) {
  Ctx *c = m->c;
  Graph *g = m->g;
  const GraphRegion *b = &g->region.at[1];
  Tensor **in = NEWS(&c->keep, Tensor *, b->param.n + 1),
         **out = NEWS(&c->keep, Tensor *, b->ret.n + 1);
  if (!m->states.ref_state) {
    const i64 *env = sizes_seen(m);
    m->states.ref_state = NEWS(&c->keep, Tensor *, g->state.n + 1);
    for (u32 k = 0; k < g->state.n; k++) {
      Tensor *start = g->state.at[k].start;
      m->states.ref_state[k] = start ? start : first_value(m, b->param.at[g->state.at[k].in], env);
    }
  }
  check_room(m);
  for (u32 i = 0; i < api_param_count(m); i++) in[api_graph_index(m, i, false)] = m->run.in[i];
  for (u32 k = 0; k < g->state.n; k++) in[g->state.at[k].in] = m->states.ref_state[k];
  ref_run(g, o, in, out, &c->keep);
  for (u32 k = 0; k < g->state.n; k++) m->states.ref_state[k] = out[g->state.at[k].out];
  for (u32 i = 0; i < m->run.nout; i++) m->run.out[i] = out[api_graph_index(m, i, true)];
}

static void reset(Ingot *m) {
  m->states.ref_state = NULL;
  m->states.interp_state = m->states.vm_state = NULL;
  m->states.fed = 0;
  m->states.jit_arena = NULL;
  api_close_cuda(m);
  api_drop_arena(m);
}

IngotStatus ingot_reset(Ingot *m) {
  API_CALL(m, reset(m));
}
