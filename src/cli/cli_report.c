/* cli_report.c: inspect --html; writes the file of --html for other verbs.
 */
#include "cli/cli.h"

IngotStatus write_html_report(Ingot *m, const Args *a, const IngotReport *o) {
  const char *html;
  size_t n;
  watch_task("report");
  IngotStatus s = ingot_report(m, o, &html, &n);
  watch_task(NULL);
  return s ? s : ingot_write_files(m, &(IngotFile){a->html, html, n}, 1);
}

int inspect_html(const Args *a) {
  IngotBuild build = {.cc = a->build.cc, .march = a->march};
  Args all = *a;
  if (a->json) return cli_refuse(a, "expected one of --html and --json, found both");
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  if (a->bench) all.march = NULL; /* passed to the compiler, which knows more CPUs */
  all.writes[all.nwrites++] = a->html;
  IngotStatus s = a->bench ? ingot_check_build(m, &build) : INGOT_OK;
  if (!s) s = cli_prepare(m, &all);
  IngotReport o = {.bench = a->bench ? &build : NULL, .seconds = a->build.seconds, .seed = a->seed};
  if (!s) s = write_html_report(m, a, &o);
  return cli_finish(m, a, s);
}
