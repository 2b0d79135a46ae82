/* cli_bisect.c: verify --per-node and --bisect.
 *
 * In: a model and an engine. Out (--per-node): a table of all values of the graph, engine vs
 * reference; values that the optimized program does not store have no figures. Out (--bisect): the
 * first value that differs, and the smallest subgraph found that reproduces the difference, as text
 * (.ing) with its inputs (.npz).
 *
 * Method: expose every value as an output, which disables fusion. Among values that differ, blame
 * the first whose node differs when it runs alone on the operands of the reference. Such a node
 * does not merely propagate a difference or round it to the next integer. If there is none, try
 * larger subgraphs that end at the first difference. If no exposed value differs, fusion may be at
 * fault: bisect over subgraphs that end at one value.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Pair {
  Ingot *ref, *other;
  Ingot *wide; /* reference in double, for gradients; else NULL */
  IngotStatus ref_bad, other_bad;
} Pair;

static void pair_free(Pair *p) {
  ingot_free(p->ref);
  ingot_free(p->other);
  ingot_free(p->wide);
  *p = (Pair){0};
}

static const char *engine_of(const Args *a) {
  return a->engine ? a->engine : engine_with(INGOT_NATIVE);
}

/* Quantizes activations as programs do, like cli_verify.c. */
static int is_reference(const char *engine) {
  const IngotEngine *e = ingot_find_engine(engine);
  return e && e->flags & INGOT_JUDGE;
}

static IngotStatus run_side(Ingot **m, const Args *a, const char *engine, int expose) {
  *m = new_model();
  if (!*m) return INGOT_SYSTEM;
  IngotStatus s = cli_prepare(*m, a);
  if (!s && expose) s = ingot_expose(*m);
  if (!s && is_reference(engine)) s = ingot_round_activations(*m);
  return s ? s : run_steps(*m, a, engine);
}

/* Does the default tolerance need the reference in double? It does for gradients: see grad_atol. */
static int wants_wide(const Args *a) {
  return a->grad && a->atol < 0;
}

/* Continues without the reference in double, with default tolerances. */
static void drop_wide(Pair *p) {
  ingot_free(p->wide);
  p->wide = NULL;
}

static void run_wide(Pair *p, const Args *a, int expose) {
  if (wants_wide(a) && run_side(&p->wide, a, "ref64", expose)) drop_wide(p);
}

/* Runs the reference with every value as an output. */
static void run_reference(Pair *p, const Args *a) {
  *p = (Pair){0};
  p->ref_bad = run_side(&p->ref, a, engine_with(INGOT_JUDGE), 1);
  if (p->ref) print_messages(p->ref, a->quiet);
  if (p->ref && p->ref_bad) print_hint(p->ref, a);
  if (!p->ref_bad) run_wide(p, a, 1);
}

/* Runs both engines with every value as an output. */
static void run_exposed(Pair *p, const Args *a) {
  run_reference(p, a);
  if (!p->ref_bad) p->other_bad = run_side(&p->other, a, engine_of(a), 1);
}

/* Compares an array of the engine with value i of the reference. chosen: default tolerances,
 * INGOT_AUTO or INGOT_TIGHT. */
static IngotStatus diff_from(const Pair *p, uint32_t i, const IngotTensor *have, const Args *a,
                             double chosen, IngotDiff *d) {
  IngotTensor want = ingot_output(p->ref, i);
  double rtol = a->rtol < 0 ? chosen : a->rtol, atol = a->atol < 0 ? chosen : a->atol;
  IngotStatus s = ingot_diff(p->ref, have, &want, rtol, atol, d);
  if (s || d->ok || !p->wide) return s;
  IngotTensor truth = ingot_output(p->wide, i);
  atol = grad_atol(p->ref, &want, &truth);
  return atol > d->atol ? ingot_diff(p->ref, have, &want, rtol, atol, d) : s;
}

static IngotStatus diff(const Pair *p, uint32_t i, const Args *a, double chosen, IngotDiff *d) {
  IngotTensor have = ingot_output(p->other, i);
  return diff_from(p, i, &have, a, chosen, d);
}

/* Runs the optimized program unchanged; outputs are only values that it stores anyway. */
static void run_stored(Pair *p, const Args *a) {
  const uint32_t *value = NULL;
  uint32_t n = 0;
  Ingot *plan = new_model();
  run_reference(p, a);
  p->other = new_model();
  p->other_bad = plan && p->other ? cli_prepare(plan, a) : INGOT_SYSTEM;
  if (!p->other_bad) p->other_bad = ingot_stored(plan, &value, &n);
  if (!p->other_bad) p->other_bad = cli_prepare(p->other, a);
  if (!p->other_bad) p->other_bad = ingot_expose_some(p->other, value, n);
  if (!p->other_bad && !p->ref_bad) p->other_bad = run_steps(p->other, a, engine_of(a));
  ingot_free(plan);
}

/* Index of the output of that name; -1: not stored. */
static int64_t place_of(const Ingot *m, const char *name) {
  for (uint32_t i = 0; i < ingot_output_count(m); i++)
    if (!strcmp(ingot_output(m, i).name, name)) return i;
  return -1;
}

/* Widths of the two name columns. */
typedef struct Widths {
  int value, node;
} Widths;

static Widths widths_of(const Ingot *m) {
  Widths w = {28, 32};
  for (uint32_t i = 0; i < ingot_output_count(m); i++) {
    int value = name_width(ingot_output(m, i).name), node = name_width(ingot_output_origin(m, i));
    w.value = value > w.value ? value : w.value;
    w.node = node > w.node ? node : w.node;
  }
  return w;
}

static void print_row(const Args *a, Widths w, const char *name, const char *origin,
                      const IngotDiff *d) {
  if (a->json) {
    json_text("{\"value\":", name);
    json_text(",\"node\":", origin);
    printf(",\"output\":%s", d ? "" : "null");
    if (d) json_diff(d);
    printf("}");
  } else {
    print_name(name, w.value + 1);
    print_name(origin, w.node);
    if (d)
      printf(" %10.3g %10.3g %10llu %11.8f%s%s\n", d->max_abs, d->max_rel,
             (unsigned long long)d->max_ulp, d->cosine,
             d->ok ? (*d->why ? "  " : "") : "  DIFFERS ", d->why);
    else
      printf(" %10s\n", "fused");
  }
}

/* Writes all values of the reference with their errors as an HTML report. */
static IngotStatus fill_page(const Args *a, const Pair *p, IngotValueDiff *value, IngotDiff *diff,
                             uint32_t n, int *differs) {
  IngotStatus s = INGOT_OK;
  for (uint32_t i = 0; i < n && !s; i++) {
    IngotTensor want = ingot_output(p->ref, i);
    int64_t k = place_of(p->other, want.name);
    value[i] = (IngotValueDiff){.value = want.name, .node = ingot_output_origin(p->ref, i)};
    if (k < 0) continue;
    IngotTensor have = ingot_output(p->other, (uint32_t)k);
    s = diff_from(p, i, &have, a, INGOT_AUTO, &diff[i]);
    value[i].diff = &diff[i];
    if (!s && !diff[i].ok) *differs = 1;
  }
  Ingot *m = s ? NULL : new_model();
  if (!s) s = m ? cli_prepare(m, a) : INGOT_SYSTEM;
  if (!s)
    s = write_html_report(m, a,
                          &(IngotReport){.engine = engine_of(a), .value = value, .nvalue = n});
  if (m) print_messages(m, 1);
  ingot_free(m);
  return s;
}

static int show_page(const Args *a, const Pair *p, uint32_t n) {
  IngotValueDiff *value = calloc(n + 1, sizeof *value);
  IngotDiff *diff = calloc(n + 1, sizeof *diff);
  int differs = 0;
  IngotStatus s = value && diff ? fill_page(a, p, value, diff, n, &differs) : INGOT_SYSTEM;
  free(value);
  free(diff);
  return s ? (int)s : differs ? INGOT_MISMATCH : 0;
}

static int print_nodes(const Args *a, const Pair *p, uint32_t n) {
  IngotStatus s = INGOT_OK;
  int result = 0;
  Widths w = widths_of(p->ref);
  if (a->json)
    printf("{\"engine\":\"%s\",\"values\":[", engine_of(a));
  else
    printf("%-*s %-*s %10s %10s %10s %11s\n", w.value, "value", w.node, "node", "max abs",
           "max rel", "max ULP", "cosine");
  for (uint32_t i = 0; i < n && !s; i++) {
    IngotTensor want = ingot_output(p->ref, i);
    int64_t k = place_of(p->other, want.name);
    IngotDiff d;
    if (k >= 0) {
      IngotTensor have = ingot_output(p->other, (uint32_t)k);
      s = diff_from(p, i, &have, a, INGOT_AUTO, &d);
      if (s) break;
      if (!d.ok) result = INGOT_MISMATCH;
    }
    if (a->json && i) printf(",");
    print_row(a, w, want.name, ingot_output_origin(p->ref, i), k >= 0 ? &d : NULL);
  }
  if (a->json) printf("],\"ok\":%s}\n", result ? "false" : "true");
  return s ? (int)s : result;
}

int verify_nodes(const Args *a) {
  Pair p;
  run_stored(&p, a);
  int result = (int)(p.ref_bad ? p.ref_bad : p.other_bad);
  if (result && p.other) print_messages(p.other, a->quiet);
  uint32_t n = result ? 0 : ingot_output_count(p.ref);
  if (!result && a->per_node) result = print_nodes(a, &p, n);
  if (result <= INGOT_MISMATCH && p.other && !p.other_bad && a->html) {
    int page = show_page(a, &p, n);
    result = page > result ? page : result;
  }
  pair_free(&p);
  return result;
}

/* ---- bisect ---- */

/* The reproducer: text, large constants, inputs. */
typedef struct SubgraphFiles {
  char text[4096], weights_path[4096], inputs[4096];
} SubgraphFiles;

typedef struct Bisect {
  const Args *a;
  const SubgraphFiles *files;
  Pair all;    /* the exposed model: ref holds every value */
  Pair part;   /* the last subgraph that was tried */
  IngotDiff d; /* difference of its output */
} Bisect;

/* Sets the inputs of the subgraph to values of the exposed run, by name. */
static IngotStatus feed(const Bisect *h, Ingot *m) {
  IngotStatus s = INGOT_OK;
  for (uint32_t i = 0; i < ingot_input_count(m) && !s; i++) {
    IngotTensor want = ingot_input_info(m, i);
    for (uint32_t k = 0; k < ingot_output_count(h->all.ref); k++) {
      IngotTensor t = ingot_output(h->all.ref, k);
      if (strcmp(t.name, want.name) != 0) continue;
      s = ingot_input(m, &t);
      break;
    }
  }
  return s;
}

static IngotStatus run_part(const Bisect *h, Ingot **m, uint32_t value, uint32_t depth,
                            const char *engine) {
  *m = new_model();
  if (!*m) return INGOT_SYSTEM;
  IngotStatus s = cli_prepare(*m, h->a);
  if (!s) s = ingot_extract_subgraph(*m, value, depth);
  if (!s) s = feed(h, *m);
  if (!s && is_reference(engine)) s = ingot_round_activations(*m);
  if (!s) s = run_steps(*m, h->a, engine);
  return s;
}

/* Does the engine differ at the value, with the nodes up to `depth` steps before it? A failure
 * counts. */
static int mismatches(Bisect *h, uint32_t value, uint32_t depth) {
  pair_free(&h->part);
  h->d = (IngotDiff){.why = "the engine failed"};
  if (run_part(h, &h->part.ref, value, depth, engine_with(INGOT_JUDGE))) return 0;
  if (run_part(h, &h->part.other, value, depth, engine_of(h->a))) return 1;
  if (wants_wide(h->a) && run_part(h, &h->part.wide, value, depth, "ref64")) drop_wide(&h->part);
  /* a single node gets equal operands, so no rounding differs */
  return diff(&h->part, 0, h->a, depth == 1 ? INGOT_TIGHT : INGOT_AUTO, &h->d) || !h->d.ok;
}

/* Does the engine differ on the whole model? */
static int model_mismatches(Bisect *h) {
  int bad = 0;
  pair_free(&h->part);
  if (run_side(&h->part.ref, h->a, engine_with(INGOT_JUDGE), 0)) return 0;
  if (run_side(&h->part.other, h->a, engine_of(h->a), 0)) return 1;
  run_wide(&h->part, h->a, 0);
  for (uint32_t i = 0; i < ingot_output_count(h->part.ref) && !bad; i++)
    bad = diff(&h->part, i, h->a, INGOT_AUTO, &h->d) || !h->d.ok;
  return bad;
}

/* First differing value whose node differs when run alone; else the first differing value, or -1.
 * Almost everything after a difference differs too, so only a limited number is run alone. */
static int64_t find_exposed(const Bisect *hunt) {
  enum { ALONE = 100 };
  Bisect h = *hunt;
  uint32_t n = ingot_output_count(h.all.ref), tried = 0;
  int64_t first = -1, found = -1;
  h.part = (Pair){0};
  for (uint32_t i = 0; i < n && found < 0 && tried < ALONE; i++) {
    IngotDiff d;
    if (!diff(&h.all, i, h.a, INGOT_TIGHT, &d) && d.ok) continue;
    if (first < 0) first = i;
    tried++;
    if (mismatches(&h, i, 1)) found = i;
  }
  pair_free(&h.part);
  return found < 0 ? first : found;
}

/* Index of the value to blame, or -1. */
static int64_t find_first(Bisect *h) {
  enum { SAMPLES = 32 };
  uint32_t n = ingot_output_count(h->all.ref), lo = 0, hi = n;
  int64_t exposed = h->all.other_bad ? -1 : find_exposed(h);
  if (exposed >= 0) return exposed;
  if (!model_mismatches(h)) return -1;
  for (uint32_t i = 0; i < SAMPLES && hi == n; i++) {
    uint32_t at = n - 1 - (uint32_t)((uint64_t)i * n / SAMPLES);
    if (n && mismatches(h, at, 0)) hi = at;
  }
  if (hi == n) return -1;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (mismatches(h, mid, 0))
      hi = mid;
    else
      lo = mid + 1;
  }
  return hi;
}

/* Prints a command that reproduces the difference, with all options that matter. */
static void print_command(const Bisect *h, const char *path, const char *inputs) {
  const Args *a = h->a;
  const char *cc = getenv("CC");
  const IngotEngine *e = ingot_find_engine(engine_of(a));
  int with_cc = cc && *cc && e && e->flags & INGOT_NATIVE;
  if (with_cc) shell_word("CC=", cc, stdout);
  shell_word(with_cc ? " ingot verify " : "ingot verify ", path, stdout);
  shell_word(" --inputs ", inputs, stdout);
  printf(" --engine %s", engine_of(a));
  if (a->march) printf(" --march %s", a->march);
  if (a->tuned) shell_word(" --tuned ", a->tuned, stdout);
  if (a->precise) printf(" --precise");
  if (a->optimize_for) printf(" --optimize-for %s", a->optimize_for);
  if (a->threads) printf(" --threads %llu", a->threads);
  if (a->threads_api) printf(" --threads-api %s", a->threads_api);
  if (a->threads_grain) printf(" --threads-grain %llu", a->threads_grain);
  if (a->seed) printf(" --seed %llu", a->seed);
  if (!*h->d.why) printf(" --rtol %.9g --atol %.9g", h->d.rtol, h->d.atol);
  putchar('\n');
}

static int name_files(SubgraphFiles *t, const char *path) {
  size_t n = strlen(path);
  if (n + 16 > sizeof t->text) return 0;
  int stem = (int)(n > 4 && !strcmp(path + n - 4, ".ing") ? n - 4 : n);
  snprintf(t->text, sizeof t->text, "%s", path);
  snprintf(t->weights_path, sizeof t->weights_path, "%s.bin", path);
  snprintf(t->inputs, sizeof t->inputs, "%.*s.npz", stem, path);
  return 1;
}

static IngotStatus write_part(const Bisect *h) {
  const char *text, *weights = NULL;
  size_t n, nweights = 0;
  Ingot *m = h->part.ref;
  const SubgraphFiles *t = h->files;
  IngotStatus s = ingot_print(m, &text, &n, &weights, &nweights);
  if (!s && nweights) s = ingot_write_file(m, t->weights_path, weights, nweights);
  if (!s) s = ingot_write_inputs(m, t->inputs);
  if (!s) s = ingot_write_file(m, t->text, text, n);
  if (s) {
    fprintf(stderr, "ingot: %s: cannot be written\n", t->text);
    return s;
  }
  printf("wrote %s; show it with: ", t->text);
  print_command(h, t->text, t->inputs);
  return s;
}

static int report(Bisect *h, uint32_t value) {
  const Args *a = h->a;
  IngotTensor t = ingot_output(h->all.ref, value);
  const char *origin = ingot_output_origin(h->all.ref, value);
  uint32_t depth = 1;
  int shown = mismatches(h, value, depth);
  while (!shown && depth < 64)
    shown = mismatches(h, value, depth = depth < 4 ? depth + 1 : depth * 2);
  if (!shown) shown = mismatches(h, value, depth = 0);
  printf("engine %s %s ref first at value %u '%s', %s\n", engine_of(a),
         shown ? "departs from" : "differs from", value, t.name, origin);
  if (!shown) {
    int bad = model_mismatches(h);
    printf("but no node departs on the values that ref computed: rounding, handed on; the results "
           "%s\n",
           bad ? "differ by more than is allowed" : "agree");
    return bad ? INGOT_MISMATCH : INGOT_OK;
  }
  if (depth)
    printf("it is shown by the nodes at most %u before it", depth);
  else
    printf("it is shown by all that leads to it");
  printf(": max abs %g, max rel %g%s%s\n", h->d.max_abs, h->d.max_rel, *h->d.why ? ", " : "",
         h->d.why);
  IngotStatus s = write_part(h);
  return s ? (int)s : INGOT_MISMATCH;
}

/* Can the engine run a trivial model? If not, reports why. */
static IngotStatus try_engine(const Args *a) {
  static const char tiny[] = "graph (%x \"x\": f32[1]) {\n  %y: f32[1] = neg(%x)\n"
                             "  return %y \"y\"\n}\n";
  Args probe = {.verb = a->verb,
                .model = a->model,
                .bytes = tiny,
                .nbytes = sizeof tiny - 1,
                .march = a->march};
  Ingot *m = NULL;
  IngotStatus s = run_side(&m, &probe, engine_of(a), 0);
  if (m && s) print_messages(m, 1);
  ingot_free(m);
  return s;
}

int verify_bisect(const Args *a) {
  Args all = *a;
  SubgraphFiles files;
  Bisect h = {.a = &all, .files = &files};
  int result;
  if (!name_files(&files, a->output ? a->output : "bisect.ing"))
    return cli_refuse(a, "--output: expected a shorter file name");
  all.writes[all.nwrites++] = files.text;
  all.writes[all.nwrites++] = files.weights_path;
  all.writes[all.nwrites++] = files.inputs;
  run_exposed(&h.all, &all);
  result = (int)h.all.ref_bad;
  /* an engine that cannot start is not a mismatch */
  if (!result && h.all.other_bad == INGOT_SYSTEM) result = (int)try_engine(&all);
  if (!result) {
    int64_t first = find_first(&h);
    if (first >= 0)
      result = report(&h, (uint32_t)first);
    else
      printf("engine %s agrees with ref on every value\n", engine_of(a));
  }
  pair_free(&h.part);
  pair_free(&h.all);
  return result;
}
