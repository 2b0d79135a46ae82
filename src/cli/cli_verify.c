/* verify: engines against each other, or against stored outputs.
 *
 * In: a model, and inputs or a seed to make them up. Out: per engine and output the largest
 * differences. The reference evaluator is the judge; bytecode and compiled C must agree with
 * each other to the bit. ONNX Runtime takes part when Python has it. Every engine works on its own
 * copy of the model, so that one that refuses does not end the others. Products with weights in
 * blocks round what they multiply to 8 bits, unless --precise is given: that is part of what such a
 * program means, so the judge does it too (ingot_round_blocks), and only the rest is compared.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, MOST_SIDES = 16 };

typedef struct Side {
  const char *engine;
  unsigned flags; /* of the engine */
  Ingot *m;
  IngotStatus status;
} Side;

typedef struct Table { /* of comparisons, as it is printed */
  int wide;            /* columns of names */
  int rows;            /* so far */
  Side exact;          /* the judge in double, once a derivative has asked for it */
  int empty;           /* rows that compare nothing: no element is a number on both sides */
} Table;

/* Such rows pass, and prove nothing. */
static void warn_empty(const Args *a, int empty, int rows) {
  if (empty && !a->quiet)
    fprintf(
        stderr,
        "ingot: warning: %d of %d comparisons say nothing: no element is a finite number on both "
        "sides\n",
        empty, rows);
}

/* Of an output that is NaN, or infinite, throughout. */
static void warn_output(const Args *a, const IngotDiff *d) {
  if (!a->quiet)
    fprintf(stderr, "ingot: warning: output '%s': %s\n", d->name,
            *d->why ? d->why : "no element is a finite number on both sides");
}

/* ---- with stored outputs ---- */

static int widest(int least, const char *name) {
  int n = name_width(name);
  return n > least ? n : least;
}

static void stored_table(const IngotDiff *d, uint32_t n) {
  int wide = 32;
  for (uint32_t i = 0; i < n; i++) wide = widest(wide, d[i].name);
  printf("%-*s %12s %12s %12s %9s %9s\n", wide, "output", "max abs", "max rel", "max ULP", "atol",
         "rtol");
  for (uint32_t i = 0; i < n; i++) {
    print_name(d[i].name, wide);
    printf(" %12.4g %12.4g %12llu %9.2g %9.2g  %s%s%s\n", d[i].max_abs, d[i].max_rel,
           (unsigned long long)d[i].max_ulp, d[i].atol, d[i].rtol, verdict(d[i].ok),
           *d[i].why ? ": " : "", d[i].why);
  }
}

static int verify_stored(const Args *a) {
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotDiff *diff = calloc(MOST, sizeof *diff);
  uint32_t n = 0;
  IngotStatus s = diff ? prepare(m, a) : INGOT_SYSTEM;
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
  return finish(m, a, s);
}

/* ---- between engines ---- */

static void run_side(Side *s, const Args *a) {
  s->m = new_model();
  s->status = s->m ? prepare(s->m, a) : INGOT_SYSTEM;
  if (!s->status && s->flags & INGOT_JUDGE) s->status = ingot_round_blocks(s->m);
  if (!s->status) s->status = run_steps(s->m, a, s->engine);
}

/* The last line of what it said. */
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
           (unsigned long long)d->max_ulp, d->cosine, d->atol, d->rtol, verdict(d->ok),
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

/* Terms of a derivative that is 0 cancel, and only their rounding is left, of which no fraction is
 * allowed: so much as the judge itself departs from the same formulas in double, some times over.
 * Where they have cancelled to the bit, the derivative of the loss by itself, 1, is all whose
 * rounding there is. */
double grad_atol(Ingot *m, const IngotTensor *want, const IngotTensor *truth) {
  double few = 8, eps = !strcmp(want->dtype, "f64") ? 0x1p-52 : 0x1p-23;
  IngotDiff d;
  if (ingot_diff(m, truth, want, 0, 0, &d) || !isfinite(d.max_abs)) return 0;
  return is_zero(want) ? few * (d.max_abs + eps) : few * d.max_abs;
}

/* How far output i, a derivative, may be from what `to` computed, absolutely. */
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

/* All outputs of one side against those of the other; returns whether they agree. */
static int compare_sides(const Args *a, const Side *s, const Side *to, double rtol, double atol,
                         Table *t) {
  int ok = 1;
  for (uint32_t i = 0; i < ingot_output_count(to->m); i++) {
    IngotTensor have = ingot_output(s->m, i), want = ingot_output(to->m, i);
    IngotDiff d;
    if (ingot_diff(to->m, &have, &want, rtol, atol, &d)) return 0;
    if (!d.ok && atol < 0 && a->grad && is_grad(want.name)) {
      double most = output_atol(a, to, &t->exact, i);
      if (most > d.atol && ingot_diff(to->m, &have, &want, rtol, most, &d)) return 0;
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
    fprintf(stderr, "ingot: engine %s %s: %s\n", s->engine, other ? "is left out" : "failed",
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

/* Would anything run Python? */
static int uses_python(const Args *a) {
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  return e ? (e->flags & INGOT_FILE) != 0 : !a->data;
}

/* Engines that run whole files have no inner values. */
static int check_parts(const Args *a) {
  const IngotEngine *e = a->engine ? ingot_find_engine(a->engine) : NULL;
  int whole = a->python || (e && e->flags & INGOT_FILE);
  if (!whole || !(a->per_node || a->bisect || a->html)) return 0;
  return refuse(a, "--per-node, --bisect and --html run parts of the model, ONNX Runtime whole "
                   "files: expected another engine, or its outputs alone (--python PATH)");
}

/* Before work that takes long: a Python that is named and does not help. */
static int check_python(const Args *a) {
  if (!a->python) return 0;
  if (!uses_python(a))
    return refuse(a, "--python is for ONNX Runtime, which is not among the engines here: leave "
                     "--engine out, or take onnxruntime");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_set_python(m, a->python);
  if (!s) s = ingot_check_python(m);
  return finish(m, a, s);
}

/* Before anything is read: a name that no engine has. */
static int check_engine(const Args *a) {
  if (!a->engine || ingot_find_engine(a->engine)) return 0;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  return finish(m, a, ingot_run(m, a->engine, a->seed));
}

int verb_verify(const Args *given) {
  Args own = *given;
  const Args *a = &own;
  if (a->library && a->engine && strcmp(a->engine, "c"))
    return refuse(a, "--library is the compiled model: it needs --engine c");
  if (a->library && (a->per_node || a->html || a->bisect))
    return refuse(a, "--library is the whole model: --per-node and --bisect compile parts of it");
  if (a->steps > 1 && (a->per_node || a->html || a->bisect))
    return refuse(a, "--steps: --per-node and --bisect look into a single run");
  if (a->html && (a->data || a->bisect))
    return refuse(a, "--html shows the error of every value: neither --data nor --bisect");
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
  own.quiet = 1; /* the page tells of the same run */
  int page = verify_nodes(a);
  return page > result ? page : result;
}
