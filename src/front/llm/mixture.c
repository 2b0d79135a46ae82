/* mixture.c: which type each tensor of a language model gets when it is quantised.
 *
 * In: a name of mixtures.def, and of a tensor its name, sizes and layer. Out: its type. The rules
 * are the table's; the two that hold for all mixtures are here: the matrix that makes logits has
 * more bits, and rows that are no whole number of blocks get another type.
 */
#include "front/llm/requant.h"

#include <string.h>

typedef enum LmWhen { LW_all, LW_first, LW_part, LW_more, LW_shared, LW_layers } LmWhen;

typedef struct MixRule {
  const char *mixture, *part;
  LmWhen when;
  i64 n;
  BlockKind kind;
} MixRule;

#define MIXTURE(name, number, kind)
#define RULE(mixture, part, when, n, kind)
#define INSTEAD(kind, other)
#define LEFT(text)

static const LmMixture mixtures[] = {
#undef MIXTURE
#define MIXTURE(name, number, kind) {name, number, BK_##kind},
#include "front/llm/mixtures.def"
#undef MIXTURE
#define MIXTURE(name, number, kind)
};

static const MixRule rules[] = {
#undef RULE
#define RULE(mixture, part, when, n, kind) {mixture, part, LW_##when, n, BK_##kind},
#include "front/llm/mixtures.def"
#undef RULE
#define RULE(mixture, part, when, n, kind)
};

static const BlockKind instead[][2] = {
#undef INSTEAD
#define INSTEAD(kind, other) {BK_##kind, BK_##other},
#include "front/llm/mixtures.def"
#undef INSTEAD
#define INSTEAD(kind, other)
};

static const char *const left[] = {
#undef LEFT
#define LEFT(text) text,
#include "front/llm/mixtures.def"
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

const LmMixture *lm_mixture(Ctx *c, const char *name) {
  Near near = near_new(name);
  Text all = text_new(&c->scratch);
  for (u32 i = 0; i < COUNT(mixtures); i++) {
    if (!strcmp(name, mixtures[i].name)) return &mixtures[i];
    near_try(&near, mixtures[i].name);
    text_fmt(&all, "%s%s", i ? ", " : "", mixtures[i].name);
  }
  fail(c, ERR_usage, LOC_NONE, "a language model cannot be quantised to '%s'%s; there are %s",
       show(c, str_of(c, name)), near_text(c, &near), text_cstr(&all));
}

static bool is_matrix(const char *name, const Stored *t) {
  u32 outer = 0;
  while (outer + 1 < t->rank && t->dim[outer] == 1) outer++;
  if (t->rank - outer < 2 || !ends_with(name, "weight")) return false;
  for (u32 i = 0; i < COUNT(left); i++)
    if (strstr(name, left[i])) return false;
  return true;
}

/* Of the layer in "blk.3.attn_q.weight"; 0: the name has none. */
static i64 layer_of(const char *name) {
  i64 n = 0;
  if (strncmp(name, "blk.", 4)) return 0;
  for (name += 4; *name >= '0' && *name <= '9' && n < LM_LAYERS; name++) n = n * 10 + (*name - '0');
  return n;
}

static bool holds(const MixRule *r, i64 layer, const LmSizes *z) {
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

static BlockKind by_rule(const LmMixture *m, const char *name, const LmSizes *z) {
  for (u32 i = 0; i < COUNT(rules); i++)
    if (!strcmp(rules[i].mixture, m->name) && strstr(name, rules[i].part) &&
        holds(&rules[i], layer_of(name), z))
      return rules[i].kind;
  return m->kind;
}

BlockKind lm_mixed(const LmMixture *m, const char *name, const Stored *t, const LmSizes *z) {
  BlockKind k = m->kind;
  i64 row = t->rank ? t->dim[t->rank - 1] : 0;
  if (!is_matrix(name, t) ||
      !dtype_is_float(block_is_plain(t->kind) ? block_info[t->kind].plain : DT_f32))
    return t->kind;
  if (block_is_plain(k)) return k;
  if (!strcmp(name, z->tied ? "token_embd.weight" : "output.weight"))
    k = row % block_info[k].elems || k == BK_Q8_0 ? BK_Q8_0 : BK_Q6_K;
  else
    k = by_rule(m, name, z);
  for (u32 i = 0; row % block_info[k].elems && i < COUNT(instead); i++)
    if (k == instead[i][0]) {
      k = instead[i][1];
      break;
    }
  return row % block_info[k].elems ? BK_F16 : k;
}
