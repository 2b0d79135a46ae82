/* cli_verify.c: compares engines with each other, or with stored outputs.
 *
 * In: a model, and inputs or a seed. Out: the largest differences per engine and output. The
 * reference evaluator is the reference; bytecode and compiled C must agree bit-exactly. ONNX
 * Runtime takes part if Python has it. Every engine works on its own copy of the model, so that a
 * refusal by one does not affect the others.
 *
 * Unless --precise is given, programs quantize activations that they multiply with quantized
 * weights to int8. This is part of the program's semantics, so the reference does it too
 * (ingot_round_activations).
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, MOST_SIDES = 16 };

typedef struct Side {
  const char *engine;
  unsigned flags; /* flags of the engine */
  Ingot *m;
  IngotStatus status;
} Side;

typedef struct Table { /* table of comparisons */
  int wide;            /* width of the name column */
  int rows;            /* so far */
  Side exact;          /* the reference in double, created for the first gradient */
  int empty;           /* rows without an element that is finite on both sides */
} Table;

/* Warns of rows that pass without proving anything. */
static void warn_empty(const Args *a, int empty, int rows) {
  if (empty && !a->quiet)
    fprintf(stderr,
            "ingot: warning: %d of %d comparisons are empty: no element is finite on both sides\n",
            empty, rows);
}

/* Warns of an output that is NaN or infinite throughout. */
static void warn_output(const Args *a, const IngotDiff *d) {
  if (!a->quiet)
    fprintf(stderr, "ingot: warning: output '%s': %s\n", d->name,
            *d->why ? d->why : "no element is finite on both sides");
}

/* ---- with stored outputs ---- */

static int widest(int min, const char *name) {
  int n = name_width(name);
  return n > min ? n : min;
}

static void stored_table(const IngotDiff *d, uint32_t n) {
  int wide = 32;
  for (uint32_t i = 0; i < n; i++) wide = widest(wide, d[i].name);
  printf("%-*s %12s %12s %12s %9s %9s\n", wide, "output", "max abs", "max rel", "max ULP", "atol",
         "rtol");
  for (uint32_t i = 0; i < n; i++) {
    print_name(d[i].name, wide);
    printf(" %12.4g %12.4g %12llu %9.2g %9.2g  %s%s%s\n", d[i].max_abs, d[i].max_rel,
           (unsigned long long)d[i].max_ulp, d[i].atol, d[i].rtol, cli_verdict(d[i].ok),
           *d[i].why ? ": " : "", d[i].why);
  }
}

static int verify_stored(const Args *a) {
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotDiff *diff = calloc(MOST, sizeof *diff);
  uint32_t n = 0;
  IngotStatus s = diff ? cli_prepare(m, a) : INGOT_SYSTEM;
  if (!s) s = run_steps(m, a, a->engine);
  if (!s) s = ingot_compare(m, a->data, a->rtol, a->atol, diff, MOST, &n);
  if (n && a->json) {
    printf("{\"outputs\":[");
    for (uint32_t i = 0; i < n; i++) {
      if (i) putchar(',');
      json_diff(&diff[i]);
    }
    printf("]}\n");
  } else if (n) {
    stored_table(diff, n);
  }
  int empty = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!isnan(diff[i].cosine)) continue;
    warn_output(a, &diff[i]);
    empty++;
  }
  warn_empty(a, empty, (int)n);
  free(diff);
  return cli_finish(m, a, s);
}

/* ---- between engines ---- */

static void run_side(Side *s, const Args *a) {
  s->m = new_model();
  s->status = s->m ? cli_prepare(s->m, a) : INGOT_SYSTEM;
  if (!s->status && s->flags & INGOT_JUDGE) s->status = ingot_round_activations(s->m);
  if (!s->status) s->status = run_steps(s->m, a, s->engine);
}

static const char *last_message(const Ingot *m) {
  uint32_t n = m ? ingot_message_count(m) : 0;
  int is_warning;
  return n ? ingot_message(m, n - 1, &is_warning) : "out of memory";
}

static void print_row(const Args *a, const char *engine, const char *against, const IngotDiff *d,
                      Table *t) {
  if (a->json) {
    printf("%s{\"engine\":\"%s\",\"against\":\"%s\",\"output\":", t->rows ? "," : "", engine,
           against);
    json_diff(d);
    printf("}");
  } else {
    char pair[32];
    snprintf(pair, sizeof pair, "%s/%s", engine, against);
    printf("%-18s ", pair);
    print_name(d->name, t->wide);
    printf(" %11.4g %11.4g %11llu %12.9f %9.2g %9.2g  %s%s%s\n", d->max_abs, d->max_rel,
           (unsigned long long)d->max_ulp, d->cosine, d->atol, d->rtol, cli_verdict(d->ok),
           *d->why ? ": " : "", d->why);
  }
  t->rows++;
}

static int is_zero(const IngotTensor *t) {
  const unsigned char *at = t->data;
  for (size_t i = 0; i < t->bytes; i++)
    if (at[i]) return 0;
  return 1;
}

/* atol for gradients. If the terms of a gradient cancel, only their rounding error is left, and a
 * relative tolerance is useless. So a multiple of the difference between the reference and the same
 * formulas in double is allowed. If this difference is zero, the rounding error of 1, the gradient
 * of the loss with respect to itself, is used. */
double grad_atol(Ingot *m, const IngotTensor *want, const IngotTensor *truth) {
  double few = 8, eps = !strcmp(want->dtype, "f64") ? 0x1p-52 : 0x1p-23;
  IngotDiff d;
  if (ingot_diff(m, truth, want, 0, 0, &d) || !isfinite(d.max_abs)) return 0;
  return is_zero(want) ? few * (d.max_abs + eps) : few * d.max_abs;
}

/* atol for output i, a gradient, compared with engine `to`. */
static double output_atol(const Args *a, const Side *to, Side *wide, uint32_t i) {
  IngotTensor want = ingot_output(to->m, i);
  if (!wide->m) {
    *wide = (Side){.engine = "ref64", .flags = to->flags};
    run_side(wide, a);
  }
  if (wide->status) return 0;
  IngotTensor truth = ingot_output(wide->m, i);
  return grad_atol(to->m, &want, &truth);
}

static int is_grad(const char *name) {
  size_t n = strlen(name);
  return n > 5 && !strcmp(name + n - 5, ".grad");
}

/* Compares all outputs of two engines; returns whether they agree. */
static int compare_sides(const Args *a, const Side *s, const Side *to, double rtol, double atol,
                         Table *t) {
  int ok = 1;
  for (uint32_t i = 0; i < ingot_output_count(to->m); i++) {
    IngotTensor have = ingot_output(s->m, i), want = ingot_output(to->m, i);
    IngotDiff d;
    if (ingot_diff(to->m, &have, &want, rtol, atol, &d)) return 0;
    if (!d.ok && atol < 0 && a->grad && is_grad(want.name)) {
      double max = output_atol(a, to, &t->exact, i);
      if (max > d.atol && ingot_diff(to->m, &have, &want, rtol, max, &d)) return 0;
    }
    d.name = want.name;
    print_row(a, s->engine, to->engine, &d, t);
    if (isnan(d.cosine) && t->rows <= (int)ingot_output_count(to->m)) warn_output(a, &d);
    t->empty += isnan(d.cosine) != 0;
    ok = ok && d.ok;
  }
  return ok;
}

static int compare_engines(const Args *a, Side *side, int n) {
  int result = 0;
  Table t = {.wide = 24};
  for (uint32_t i = 0; i < ingot_output_count(side[0].m); i++)
    t.wide = widest(t.wide, ingot_output(side[0].m, i).name);
  if (a->json)
    printf("{\"rows\":[");
  else
    printf("%-18s %-*s %11s %11s %11s %12s %9s %9s\n", "engine/against", t.wide, "output",
           "max abs", "max rel", "max ULP", "cosine", "atol", "rtol");
  for (int i = 1; i < n; i++) {
    if (side[i].status) continue;
    if (!compare_sides(a, &side[i], &side[0], a->rtol, a->atol, &t)) result = INGOT_MISMATCH;
    if (i > 1 && side[1].flags & side[i].flags & INGOT_EXACT && !side[1].status &&
        !compare_sides(a, &side[i], &side[1], 0, 0, &t))
      result = INGOT_MISMATCH;
  }
  if (a->json) printf("],\"ok\":%s,\"empty\":%d}\n", result ? "false" : "true", t.empty);
  warn_empty(a, t.empty, t.rows);
  ingot_free(t.exact.m);
  return result;
}

static void add_side(Side *side, int *n, const char *engine) {
  const IngotEngine *e = ingot_find_engine(engine);
  if (*n < MOST_SIDES) side[(*n)++] = (Side){.engine = engine, .flags = e ? e->flags : 0};
}

static int verify_engines(const Args *a) {
  Side side[MOST_SIDES] = {0};
  int n = 0, result = 0;
  const IngotEngine *e;
  add_side(side, &n, engine_with(INGOT_JUDGE));
  if (a->engine) add_side(side, &n, a->engine);
  for (uint32_t i = 0; !a->engine && (e = ingot_engine(i)); i++)
    if (e->flags & INGOT_PEER) add_side(side, &n, e->name);
  for (int i = 0; i < n && !side[0].status; i++) {
    Side *s = &side[i];
    run_side(s, a);
    if (i == 0 || s->status == INGOT_OK) {
      if (i == 0 && s->m) print_messages(s->m, a->quiet);
      if (s->m && s->status) print_hint(s->m, a);
      result = s->status ? (int)s->status : result;
      continue;
    }
    int other = s->flags & INGOT_FILE && !a->python && !a->engine;
    fprintf(stderr, "ingot: engine %s %s: %s\n", s->engine, other ? "is skipped" : "failed",
            last_message(s->m));
    if (!other && !result) result = (int)s->status;
  }
  if (!side[0].status) {
    int differs = compare_engines(a, side, n);
    if (!result) result = differs;
  }
  for (int i = 0; i < n; i++) ingot_free(side[i].m);
  return result;
}

static int uses_python(const Args *a) {
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  return e ? (e->flags & INGOT_FILE) != 0 : !a->data;
}

/* Engines that read whole files cannot expose inner values. */
static int check_parts(const Args *a) {
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  int whole = a->python || (e && e->flags & INGOT_FILE);
  if (!whole || !(a->per_node || a->bisect || a->html)) return 0;
  return cli_refuse(
      a, "--per-node, --bisect and --html run parts of the model, but ONNX Runtime runs whole "
         "files: expected another engine, or a comparison of outputs (--python PATH)");
}

/* Early check of a Python that the user names. */
static int check_python(const Args *a) {
  if (!a->python) return 0;
  if (!uses_python(a))
    return cli_refuse(a, "--python needs engine onnxruntime: leave out --engine, or use --engine "
                         "onnxruntime");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_set_python(m, a->python);
  if (!s) s = ingot_check_python(m);
  return cli_finish(m, a, s);
}

/* Early check of the engine name. */
static int check_engine(const Args *a) {
  if (!a->engine || ingot_find_engine(a->engine)) return 0;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  return cli_finish(m, a, ingot_run(m, a->engine, a->seed));
}

int verb_verify(const Args *given) {
  Args own = *given;
  const Args *a = &own;
  if (a->library && a->engine && strcmp(a->engine, "c"))
    return cli_refuse(a, "--library needs --engine c");
  if (a->library && (a->per_node || a->html || a->bisect))
    return cli_refuse(
        a, "--library is not supported with --per-node and --bisect, which compile parts "
           "of the model");
  if (a->steps > 1 && (a->per_node || a->html || a->bisect))
    return cli_refuse(
        a, "--steps is not supported with --per-node and --bisect, which examine a single run");
  if (a->html && (a->data || a->bisect))
    return cli_refuse(a, "--html is not supported with --data and --bisect");
  if (a->html) own.writes[own.nwrites++] = own.html;
  int bad = check_engine(a);
  if (!bad) bad = check_parts(a);
  if (!bad) bad = check_python(a);
  if (!bad) bad = buffer_stdin_model(&own);
  if (bad) return bad;
  if (a->per_node) return verify_nodes(a);
  if (a->bisect) return verify_bisect(a);
  if (a->data) return verify_stored(a);
  int result = verify_engines(a);
  if (!a->html || result > INGOT_MISMATCH) return result;
  own.quiet = 1; /* the report describes the same run */
  int page = verify_nodes(a);
  return page > result ? page : result;
}
