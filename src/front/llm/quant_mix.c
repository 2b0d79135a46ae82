/* quant_mix.c: chooses the type of each tensor when a language model is quantized.
 *
 * In: a mixture of quant_mixes.def, and name, shape and layer of a tensor. Out: its type. Two rules
 * of all mixtures are here. The output matrix gets more bits. Rows that are not a multiple of the
 * quant group get another type.
 */
#include "front/llm/lm_requant.h"

#include <string.h>

typedef enum MixCond { LW_all, LW_first, LW_part, LW_more, LW_shared, LW_layers } MixCond;

typedef struct MixRule {
  const char *mixture, *part;
  MixCond when;
  i64 n;
  QBlockKind kind;
} MixRule;

#define MIXTURE(name, number, kind)
#define RULE(mixture, part, when, n, kind)
#define INSTEAD(kind, other)
#define LEFT(text)

static const LmQuantMix mixtures[] = {
#undef MIXTURE
#define MIXTURE(name, number, kind) {name, number, BK_##kind},
#include "front/llm/quant_mixes.def"
#undef MIXTURE
#define MIXTURE(name, number, kind)
};

static const MixRule rules[] = {
#undef RULE
#define RULE(mixture, part, when, n, kind) {mixture, part, LW_##when, n, BK_##kind},
#include "front/llm/quant_mixes.def"
#undef RULE
#define RULE(mixture, part, when, n, kind)
};

static const QBlockKind instead[][2] = {
#undef INSTEAD
#define INSTEAD(kind, other) {BK_##kind, BK_##other},
#include "front/llm/quant_mixes.def"
#undef INSTEAD
#define INSTEAD(kind, other)
};

static const char *const left[] = {
#undef LEFT
#define LEFT(text) text,
#include "front/llm/quant_mixes.def"
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

const LmQuantMix *lm_quant_mix(Ctx *c, const char *name) {
  Suggestion near = suggest_new(name);
  StrBuf all = sb_new(&c->scratch);
  for (u32 i = 0; i < COUNT(mixtures); i++) {
    if (!strcmp(name, mixtures[i].name)) return &mixtures[i];
    suggest_try(&near, mixtures[i].name);
    sb_fmt(&all, "%s%s", i ? ", " : "", mixtures[i].name);
  }
  fail(c, ERR_usage, LOC_NONE, "cannot quantize a language model to '%s'%s; supported types are %s",
       show(c, str_of(c, name)), suggest_text(c, &near), sb_cstr(&all));
}

static bool is_matrix(const char *name, const StoredTensor *t) {
  u32 outer = 0;
  while (outer + 1 < t->rank && t->dim[outer] == 1) outer++;
  if (t->rank - outer < 2 || !ends_with(name, "weight")) return false;
  for (u32 i = 0; i < COUNT(left); i++)
    if (strstr(name, left[i])) return false;
  return true;
}

/* Layer number of "blk.3.attn_q.weight"; 0: the name has none. */
static i64 layer_of(const char *name) {
  i64 n = 0;
  if (strncmp(name, "blk.", 4)) return 0;
  for (name += 4; *name >= '0' && *name <= '9' && n < LM_LAYERS; name++) n = n * 10 + (*name - '0');
  return n;
}

static bool rule_applies(const MixRule *r, i64 layer, const LmSizes *z) {
  i64 n = z->layers;
  switch (r->when) {
  case LW_all: return true;
  case LW_first: return layer < r->n;
  case LW_part: return layer < n / r->n;
  case LW_more: return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
  case LW_shared: return z->shared >= r->n;
  case LW_layers: return n == r->n && z->shared > 1;
  }
  return false;
}

static QBlockKind type_by_rule(const LmQuantMix *m, const char *name, const LmSizes *z) {
  for (u32 i = 0; i < COUNT(rules); i++)
    if (!strcmp(rules[i].mixture, m->name) && strstr(name, rules[i].part) &&
        rule_applies(&rules[i], layer_of(name), z))
      return rules[i].kind;
  return m->kind;
}

QBlockKind lm_quant_mix_type(const LmQuantMix *m, const char *name, const StoredTensor *t,
                             const LmSizes *z) {
  QBlockKind k = m->kind;
  i64 row = t->rank ? t->dim[t->rank - 1] : 0;
  if (!is_matrix(name, t) ||
      !dtype_is_float(qblock_is_plain(t->kind) ? qblock_info[t->kind].plain : DT_f32))
    return t->kind;
  if (qblock_is_plain(k)) return k;
  if (!strcmp(name, z->tied ? "token_embd.weight" : "output.weight"))
    k = row % qblock_info[k].elems || k == BK_Q8_0 ? BK_Q8_0 : BK_Q6_K;
  else
    k = type_by_rule(m, name, z);
  for (u32 i = 0; row % qblock_info[k].elems && i < COUNT(instead); i++)
    if (k == instead[i][0]) {
      k = instead[i][1];
      break;
    }
  return row % qblock_info[k].elems ? BK_F16 : k;
}
