/* entries.c: several models in one file.
 *
 * In: a model, and others that become entries next to it. Out: their programs, for the same targets
 * and options, sharing one arena. Each of the others is an Ingot with the Ctx of the first, so that
 * all functions apply to it.
 */
#include "api/api_internal.h"

#include <string.h>
#include <strings.h>

u32 api_entry_count(const Ingot *m) {
  return 1 + m->entries.also.n;
}

Ingot *api_entry(Ingot *m, u32 i) {
  return i ? m->entries.also.at[i - 1] : m;
}

Prog *api_program(const Ingot *m, u32 variant) {
  return m->machine.variant_progs ? m->machine.variant_progs[variant] : m->p;
}

/* File name without folder and extensions; characters that C does not allow become '_'. */
static const char *entry_name(Ctx *c, const char *path) {
  const char *slash = strrchr(path, '/'), *s = slash ? slash + 1 : path;
  StrBuf t = sb_new(&c->keep);
  for (; *s && *s != '.'; s++) {
    bool fine = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
    sb_put(&t, fine ? s : "_", 1);
  }
  if (!t.n)
    fail(c, ERR_usage, LOC_NONE, "%s: expected a file name that gives the entry a name in C", path);
  return sb_cstr(&t);
}

/* Macros use the names in upper case, so case is ignored. */
static void check_names(Ingot *m) {
  for (u32 i = 1; i < api_entry_count(m); i++)
    for (u32 k = 0; k < i; k++)
      if (!strcasecmp(api_entry(m, i)->entries.entry, api_entry(m, k)->entries.entry))
        fail(m->c, ERR_usage, LOC_NONE,
             "two models are named '%s': entries are named after their files, which must have "
             "different names",
             api_entry(m, i)->entries.entry);
}

static void add_model(Ingot *m, const char *path, Ingot **more) {
  Ctx *c = m->c;
  api_need(c, more, "a pointer to the model");
  if (!m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  if (m->g || m->p)
    fail(c, ERR_usage, LOC_NONE, "expected all models of one file to be opened before other calls");
  if (!m->opened.source.path)
    fail(c, ERR_usage, LOC_NONE, "several models: expected each to be a file");
  Ingot *x = NEW(&c->keep, Ingot);
  x->c = c;
  x->run.once.c = c;
  *vec_push(&c->keep, &m->entries.also) = x;
  api_open(x, path);
  m->entries.entry = entry_name(c, m->opened.source.path);
  x->entries.entry = entry_name(c, x->opened.source.path);
  check_names(m);
  c->here.file = m->opened.source.file;
  *more = x;
}

IngotStatus ingot_open_also(Ingot *m, const char *path, Ingot **more) {
  if (more) *more = NULL;
  API_CALL(m, add_model(m, path, more));
}

void api_compile_entries(Ingot *m) {
  Ctx *c = m->c;
  u32 n = api_entry_count(m);
  if (n == 1 || m->entries.joined) return;
  if (m->codegen.aim != AIM_time || m->codegen.ram)
    fail(c, ERR_unsupported, LOC_NONE, "--optimize-for and --ram: expected a single model");
  Prog **p = NEWS(&c->keep, Prog *, n);
  for (u32 i = 1; i < n; i++) {
    Ingot *x = api_entry(m, i);
    x->machine.target = m->machine.target;
    x->machine.variants = m->machine.variants;
    x->codegen = m->codegen;
    x->tuning = m->tuning;
    c->here.file = x->opened.source.file;
    api_compile_variants(x);
  }
  c->here.file = m->opened.source.file;
  for (u32 v = 0; v < (m->machine.variant_progs ? m->machine.variants.n : 1); v++) {
    for (u32 i = 0; i < n; i++) p[i] = api_program(api_entry(m, i), v);
    progs_join(p, n, m->entries.share_state);
  }
  m->entries.joined = true;
}
