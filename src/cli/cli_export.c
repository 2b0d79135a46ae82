/* cli_export.c: writes a model as a source folder for a build system.
 */
#include "cli/cli.h"

#include <string.h>

/* Length of the path without its extension. An extension has letters only: Qwen2.5-0.5B has none.
 */
static size_t without_extension(const char *path, size_t n) {
  size_t dot = n;
  while (dot && ((path[dot - 1] | 32) >= 'a' && (path[dot - 1] | 32) <= 'z')) dot--;
  return dot > 1 && dot < n && path[dot - 1] == '.' ? dot - 1 : n;
}

/* C name from the file or folder name of the model. */
static void name_from(const char *model, char *to, size_t room) {
  size_t end = strlen(model), n = 0;
  while (end && model[end - 1] == '/') end--;
  end = without_extension(model, end);
  size_t from = end;
  while (from && model[from - 1] != '/') from--;
  if (end > from && model[from] >= '0' && model[from] <= '9') to[n++] = 'm';
  for (; from < end && n + 1 < room; from++) {
    char ch = model[from];
    int fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
    to[n++] = fine ? ch : '_';
  }
  to[n] = 0;
  if (strspn(to, "_") == n) snprintf(to, room, "model");
}

int verb_export(const Args *a) {
  char name[256];
  if (!a->project)
    return cli_refuse(
        a, "--project is missing: cmake, make, zephyr, arduino, platformio, esp-idf or rust");
  if (!a->output) return cli_refuse(a, "--output is missing: expected the folder to write");
  name_from(a->model, name, sizeof name);
  IngotExport o = {.kind = a->project, .folder = a->output};
  o.c = a->build.c;
  o.c.name = a->name ? a->name : name;
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  IngotStatus s = ingot_check_export(m, &o);
  if (!s) s = cli_prepare(m, a);
  watch_task("export");
  if (!s) s = ingot_export(m, &o);
  watch_task(NULL);
  if (!s && a->json) {
    json_text("{\"folder\":", a->output);
    json_text(",\"for\":", a->project);
    json_text(",\"name\":", o.c.name);
    s = json_memory(m);
    puts("}");
  }
  return cli_finish(m, a, s);
}
