/* build_object.c: ingot build --backend llvm.
 *
 * In: a model after the passes and the options of the build. Out: an object file that LLVM makes,
 * or the code of LLVM as text.
 */
#include "driver/build/build_product.h"

#include <string.h>

/* LLVM name of the machine of a target: TRIPLE,CPU,FEATURES. triple: up to all three given by the
 * user, completed with the features of the target; NULL: from the target. */
static const char *machine_of(Ctx *c, const Target *t, const char *triple) {
  size_t name = strcspn(t->llvm, ","), to = name + (t->llvm[name] == ',');
  to += strcspn(t->llvm + to, ",");
  const char *own = *t->llvm ? t->llvm + to + 1 : t->features, *plus = *t->llvm ? "" : "+";
  StrBuf s = sb_new(&c->keep);
  if (triple)
    sb_puts(&s, triple);
  else
    sb_put(&s, t->llvm, to);
  const char *given = sb_cstr(&s), *cpu = strchr(given, ',');
  const char *features = cpu ? strchr(cpu + 1, ',') : NULL;
  bool some = features && features[1];
  sb_puts(&s, features ? "" : cpu ? "," : ",,");
  for (const char *at = own; *at; some = true) {
    size_t n = strcspn(at, ",");
    sb_fmt(&s, "%s%s%.*s", some ? "," : "", plus, (int)n, at);
    at += n + (at[n] == ',');
  }
  return sb_cstr(&s);
}

static LlvmOptions object_options(Ingot *m, const IngotBuild *o, const char *name) {
  LlvmOptions l = {.target = api_program_target(m), .object = true, .name = name};
  const char *triple = o ? o->triple : NULL;
  bool here = o ? !o->march || !strcmp(o->march, "native") : target_is_here(l.target);
  if (triple || !here) l.machine = machine_of(m->c, l.target, triple);
  return l;
}

void api_check_backend(Ctx *c, const IngotBuild *o) {
  static const char *const only_c = "not supported with --backend llvm";
  if (strcmp(o->backend, "llvm") != 0)
    fail(c, ERR_usage, LOC_NONE, "--backend %s: expected llvm", o->backend);
  if (o->optimize) fail(c, ERR_unsupported, LOC_NONE, "--optimize: %s", only_c);
  if (o->cc && !ends_with(o->output, ".so"))
    fail(c, ERR_unsupported, LOC_NONE, "--cc: only OUT.so needs a C compiler with --backend llvm");
  if (o->sanitize) fail(c, ERR_unsupported, LOC_NONE, "--sanitize: %s", only_c);
  if (o->c.weights) fail(c, ERR_unsupported, LOC_NONE, "--weights: %s", only_c);
  if (o->c.selftest > 0) fail(c, ERR_unsupported, LOC_NONE, "--selftest: %s", only_c);
  if (o->c.caller) fail(c, ERR_unsupported, LOC_NONE, "--caller: %s", only_c);
  if (o->c.profile) fail(c, ERR_unsupported, LOC_NONE, "--profile: %s", only_c);
  if (o->c.debug) fail(c, ERR_unsupported, LOC_NONE, "--debug: %s", only_c);
}

/* Refuses language models and files of several models: their interface has more functions than
 * NAME_run, and only the C back end writes these. */
void api_need_plain(Ingot *m) {
  static const char *const through_c = "leave out --backend llvm";
  Loc loc = {.file = m->opened.source.file, .index = -1};
  if (ingot_is_language_model(m))
    fail(m->c, ERR_unsupported, loc, "--backend llvm: is a language model: %s", through_c);
  if (api_entry_count(m) > 1)
    fail(m->c, ERR_unsupported, LOC_NONE, "--backend llvm: several models in one file: %s",
         through_c);
}

void api_object(Ingot *m, const IngotBuild *o, const char *name, StrBuf *to) {
  LlvmOptions l = object_options(m, o, name);
  if (m->p->threads > 1)
    fail(m->c, ERR_unsupported, LOC_NONE, "--threads: not supported with --backend llvm");
  llvm_object(m->p, &l, to);
}

static void print_llvm(Ingot *m, bool json, StrBuf *out) {
  (void)json;
  api_need_model(m, "code of LLVM");
  api_target_host(m);
  api_run_passes(m, NULL);
  LlvmOptions l = object_options(m, NULL, "model");
  l.object = false;
  llvm_print(m->p, &l, out);
}

IngotStatus ingot_print_llvm(Ingot *m, const char **text, size_t *n) {
  return api_call_text(m, print_llvm, false, text, n);
}
