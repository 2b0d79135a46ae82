/* preset.c: named sets of options for build.
 *
 * One table row each. Explicit options override a row. --presets lists the rows, --verbose prints
 * the selected one.
 */
#include "driver/build/build_product.h"

#include <string.h>

static const Preset presets[] = {
    {"balanced", "2", false, false, false, AIM_time, "the default: compiles fast, for this CPU"},
    {"max", "3", true, true, false, AIM_time, "the fastest code; compiles slowly"},
    {"dev", "1", false, false, true, AIM_time, "compiles fastest, with debug information"},
    {"size", "s", true, true, false, AIM_size, "the smallest code and weights"},
};
enum { NPRESETS = sizeof presets / sizeof *presets };

const Preset *preset_named(const char *name) {
  for (u32 i = 0; name && i < NPRESETS; i++)
    if (!strcmp(presets[i].name, name)) return &presets[i];
  return name ? NULL : &presets[0];
}

const Preset *preset_find(Ctx *c, const char *name) {
  return &presets[name ? row_named(c, "preset", name, presets, NPRESETS, sizeof *presets) : 0];
}

void preset_text(const Preset *p, StrBuf *t) {
  sb_fmt(t, "-O%s, --march native", p->optimize);
  if (p->lto) sb_puts(t, ", --lto");
  if (p->strip) sb_puts(t, ", no symbols (-s)");
  if (p->debug) sb_puts(t, ", -g");
  if (p->aim == AIM_size) sb_puts(t, ", --optimize-for size");
}

static void list(Ingot *m, bool json, StrBuf *t) {
  for (u32 i = 0; i < NPRESETS; i++) {
    const Preset *p = &presets[i];
    StrBuf sets = sb_new(&m->c->keep);
    preset_text(p, &sets);
    if (!json) {
      sb_fmt(t, "%-9s %-62s %s\n", p->name, sb_cstr(&sets), p->what);
      continue;
    }
    sb_fmt(t, "%s{\"name\": \"%s\", \"sets\": ", i ? ",\n " : "[", p->name);
    sb_json(t, sets.at, sets.n);
    sb_puts(t, ", \"what\": ");
    sb_json(t, p->what, strlen(p->what));
    sb_puts(t, "}");
  }
  if (json) sb_puts(t, "]\n");
}

IngotStatus ingot_presets(Ingot *m, int json, const char **text, size_t *n) {
  return api_call_text(m, list, json, text, n);
}
