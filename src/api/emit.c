/* emit.c: the model as C text. */
#include "api/own.h"

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

static void do_emit(Ctx *c, void *arg) {
  EmitArg *a = arg;
  Ingot *m = a->m;
  if (!is_identifier(a->o->name)) fail(c, ERR_usage, LOC_NONE, "'%s' cannot be the prefix of C names", a->o->name);
  api_passes(m, NULL);
  EmitOptions o = {.name = a->o->name,
                   .version = INGOT_VERSION,
                   .source = str_text(c, m->g && m->g->name ? m->g->name : m->p->name),
                   .options = "",
                   .hash = hash_bytes(m->bytes.at, m->bytes.n),
                   .literal_bytes = a->o->literal_bytes ? a->o->literal_bytes : 256 << 10};
  a->source = text_new(&c->keep);
  a->header = text_new(&c->keep);
  emit_c(m->p, &o, &a->source, &a->header);
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
