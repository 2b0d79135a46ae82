/* speedup.c: the table of speed-ups of a PGO build.
 *
 * In: times of programs that ran in turn. Out: a table, as text or JSON, with a command that
 * repeats the measurement. Ratios are taken per round, so that temporary load affects both. A step
 * is faster or slower only if the interquartile range and the best rounds agree. If the load
 * exceeds the number of processors, the table says so.
 */
#include "driver/build/build_product.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIN_SPEEDUP 1.01

typedef struct Speedup {
  double median, ratio; /* median in ms; ratio: baseline / step */
  const char *word;     /* "faster", "slower", "no gain" */
} Speedup;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static Speedup speedup_of(const ProductBuild *b, const PgoStep *s, u32 measure) {
  const PgoStep *base = &b->step.at[0];
  double ms[PGO_ROUNDS], ratio[PGO_ROUNDS], base_min = base->ms[measure][0];
  for (u32 r = 0; r < PGO_ROUNDS; r++) {
    ms[r] = s->ms[measure][r];
    ratio[r] = ms[r] > 0 ? base->ms[measure][r] / ms[r] : 1;
    if (base->ms[measure][r] < base_min) base_min = base->ms[measure][r];
  }
  qsort(ms, PGO_ROUNDS, sizeof *ms, ascending);
  qsort(ratio, PGO_ROUNDS, sizeof *ratio, ascending);
  Speedup g = {ms[PGO_ROUNDS / 2], ratio[PGO_ROUNDS / 2], "no gain"};
  if (ratio[PGO_ROUNDS / 4] > MIN_SPEEDUP && ms[0] < base_min) g.word = "faster";
  if (ratio[PGO_ROUNDS - 1 - PGO_ROUNDS / 4] < 1 / MIN_SPEEDUP && ms[0] > base_min)
    g.word = "slower";
  if (s == base) g.word = "";
  return g;
}

static const char *measure_name(const ProductBuild *b, u32 i) {
  return !b->chats ? "run" : i ? "prefill" : "decode";
}

static void put_quoted(StrBuf *t, const char *word) {
  sb_puts(t, "'");
  for (; *word; word++)
    if (*word == '\'')
      sb_puts(t, "'\\''");
    else
      sb_put(t, word, 1);
  sb_puts(t, "'");
}

static bool is_plain(const char *path) {
  return !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+")];
}

/* Prints a command as one word: hyperfine splits it as a shell does, so a path is quoted twice. */
static void put_run(Ctx *c, StrBuf *t, const char *here, const char *path, const char *with) {
  StrBuf line = sb_new(&c->keep);
  const char *program = str_text(c, str_fmt(c, "%s%s", here, path));
  if (is_plain(program))
    sb_puts(&line, program);
  else
    put_quoted(&line, program);
  sb_fmt(&line, " %s", with);
  put_quoted(t, sb_cstr(&line));
}

/* Writes the command to time: a language model generates 64 tokens, any other program runs for
 * about half a second. */
static void put_command(const ProductBuild *b, StrBuf *t) {
  Ctx *c = b->m->c;
  const char *output = b->o->output;
  if (b->kind != PD_program || !b->measures) return;
  const char *here = strchr(output, '/') ? "" : "./";
  double ms = speedup_of(b, &b->step.at[0], 0).median;
  double steps = ms > 0 ? 500 / ms : 1;
  const char *with = b->chats ? "--prompt hi --max-tokens 64 --temperature 0 --quiet"
                              : str_text(c, str_fmt(c, "--steps %.0f",
                                                    steps < 1     ? 1
                                                    : steps > 1e8 ? 1e8
                                                                  : steps));
  if (b->chats && !api_chat_assets(b->m)->chat.open)
    with = str_text(c, str_fmt(c, "%s --raw", with));
  sb_puts(t, "hyperfine -N --warmup 3 ");
  put_run(c, t, here, pgo_baseline_path(c, output), with);
  sb_puts(t, " ");
  put_run(c, t, here, output, with);
}

static void put_rows(const ProductBuild *b, bool json, StrBuf *t) {
  for (u32 k = 0; k < (b->measures ? b->measures : 1); k++)
    for (u32 i = 0; i < b->step.n; i++) {
      const PgoStep *s = &b->step.at[i];
      Speedup g = speedup_of(b, s, k);
      unsigned long long bytes = s->bytes;
      if (json && b->measures)
        sb_fmt(t,
               "%s\n  {\"measure\": \"%s\", \"step\": \"%s\", \"median_ms\": %.6f, \"ratio\": "
               "%.4f, \"gain\": \"%s\", \"bytes\": %llu}",
               k + i ? "," : "", measure_name(b, k), s->v.step, g.median, g.ratio, g.word, bytes);
      else if (json)
        sb_fmt(t, "%s\n  {\"step\": \"%s\", \"bytes\": %llu}", i ? "," : "", s->v.step, bytes);
      else if (b->measures)
        sb_fmt(t, "%-8s %-10s %12.5g %7.3f %12llu%s%s\n", measure_name(b, k), s->v.step, g.median,
               g.ratio, bytes, *g.word ? "  " : "", g.word);
      else
        sb_fmt(t, "%-8s %-10s %12s %7s %12llu\n", "", s->v.step, "-", "-", bytes);
    }
}

static void put_idle(const ProductBuild *b, StrBuf *t) {
  sb_fmt(t, "profile: %s; %u of %u functions of the model ran", b->from_cache ? "kept" : "made",
         b->nfunction - b->idle.n, b->nfunction);
  for (u32 i = 0; i < b->idle.n; i++)
    sb_fmt(t, "%s%s", i ? ", " : "; without a profile: ", b->idle.at[i]);
  sb_puts(t, "\n");
}

static bool is_busy(const ProductBuild *b) {
  return b->measures && b->load > (double)sysconf(_SC_NPROCESSORS_ONLN) + 0.5;
}

static void put_text(ProductBuild *b, const StrBuf *command, StrBuf *t) {
  const char *unit = b->chats ? "ms/token" : "median ms";
  sb_fmt(t, "%-8s %-10s %12s %7s %12s\n", "measure", "step", unit, "ratio", "bytes");
  put_rows(b, false, t);
  if (b->unmeasured) sb_fmt(t, "not measured: %s\n", b->unmeasured);
  if (is_busy(b))
    sb_fmt(t, "the machine was busy (load %.1f): the table is not reliable\n", b->load);
  if (b->profiled) put_idle(b, t);
  if (b->fast_math.name)
    sb_fmt(
        t,
        "fast-math: output %s differs from the strict build by at most %.3g, %.3g of its value\n",
        b->fast_math.name, b->fast_math.max_abs, b->fast_math.max_rel);
  if (command->n) sb_fmt(t, "again: %.*s\n", (int)command->n, command->at);
}

static void put_json(ProductBuild *b, const StrBuf *command, StrBuf *t) {
  sb_fmt(t, "{\"compiler\": ");
  sb_json(t, b->chain.version, strlen(b->chain.version));
  sb_fmt(t, ", \"target\": \"%s\", \"rounds\": %d, \"load\": %.2f, \"busy\": %s,\n \"steps\": [",
         b->m->machine.target->name, PGO_ROUNDS, b->load, is_busy(b) ? "true" : "false");
  put_rows(b, true, t);
  sb_puts(t, "]");
  if (b->unmeasured) {
    sb_puts(t, ",\n \"not_measured\": ");
    sb_json(t, b->unmeasured, strlen(b->unmeasured));
  }
  if (b->profiled)
    sb_fmt(t, ",\n \"profile\": {\"kept\": %s, \"functions\": %u, \"without\": [",
           b->from_cache ? "true" : "false", b->nfunction);
  for (u32 i = 0; i < b->idle.n; i++) {
    if (i) sb_puts(t, ", ");
    sb_json(t, b->idle.at[i], strlen(b->idle.at[i]));
  }
  if (b->profiled) sb_puts(t, "]}");
  if (b->fast_math.name) {
    sb_puts(t, ",\n \"fast_math\": {\"output\": ");
    sb_json(t, b->fast_math.name, strlen(b->fast_math.name));
    sb_fmt(t, ", \"max_abs\": %.9g, \"max_rel\": %.9g}", b->fast_math.max_abs,
           b->fast_math.max_rel);
  }
  if (command->n) {
    sb_puts(t, ",\n \"again\": ");
    sb_json(t, command->at, command->n);
  }
  sb_puts(t, "}\n");
}

void speedup_report(ProductBuild *b, bool json, StrBuf *t) {
  StrBuf command = sb_new(&b->m->c->keep);
  *t = sb_new(&b->m->c->keep);
  put_command(b, &command);
  if (json)
    put_json(b, &command, t);
  else
    put_text(b, &command, t);
}

static void copy_report(Ingot *m, bool json, StrBuf *out) {
  const StrBuf *t = &m->written.report[json];
  if (t->n) sb_put(out, t->at, t->n);
}

IngotStatus ingot_build_report(Ingot *m, int json, const char **text, size_t *n) {
  return api_call_text(m, copy_report, json, text, n);
}
