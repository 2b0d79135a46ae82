/* emit.c: the model as C text. */
#include "api/own.h"

#include <string.h>

typedef struct EmitArg {
  Ingot *m;
  const IngotC *o;
  Text source, header;
} EmitArg;

static bool is_identifier(const char *s) {
  if (!(*s == '_' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'))) return false;
  for (; *s; s++)
    if (!(*s == '_' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9'))) return false;
  return true;
}

static WeightMode weight_mode(Ctx *c, const char *s) {
  static const char *const names[] = {"auto", "literal", "text", "file", "pointer"};
  for (u32 i = 0; i < sizeof names / sizeof *names; i++)
    if (!s || !strcmp(s, names[i])) return (WeightMode)i;
  fail(c, ERR_usage, LOC_NONE, "no weights '%s'; there are auto, literal, text, file, pointer", s);
}

void api_emit(Ingot *m, const IngotC *ic, bool caller, Text *source, Text *header) {
  Ctx *c = m->c;
  const char *name = ic->name;
  if (!is_identifier(name)) fail(c, ERR_usage, LOC_NONE, "'%s' cannot be the prefix of C names", name);
  if (!m->p || m->g) api_passes(m, NULL);
  EmitOptions o = {.name = name,
                   .version = INGOT_VERSION,
                   .source = str_text(c, m->g && m->g->name ? m->g->name : m->p->name),
                   .options = "",
                   .hash = hash_bytes(m->bytes.at, m->bytes.n),
                   .caller = caller,
                   .weights = weight_mode(c, ic->weights),
                   .literal_bytes = ic->literal_bytes ? ic->literal_bytes : 256 << 10};
  m->blob = text_new(&c->keep);
  emit_c(m->p, &o, source, header, &m->blob);
}

static void do_emit(Ctx *c, void *arg) {
  EmitArg *a = arg;
  a->source = text_new(&c->keep);
  a->header = text_new(&c->keep);
  api_emit(a->m, a->o, false, &a->source, &a->header);
}

IngotStatus ingot_emit_c(Ingot *m, const IngotC *o, const char **source, size_t *nsource, const char **header,
                         size_t *nheader) {
  EmitArg a = {.m = m, .o = o};
  IngotStatus s = api_call(m, do_emit, &a);
  if (s) return s;
  *source = a.source.at;
  *nsource = a.source.n;
  *header = a.header.at;
  *nheader = a.header.n;
  return s;
}

IngotStatus ingot_emit_weights(Ingot *m, const void **data, size_t *n) {
  *data = m->blob.at;
  *n = m->blob.n;
  return (IngotStatus)m->status;
}
