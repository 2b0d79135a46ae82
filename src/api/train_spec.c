/* train_spec.c: turns the model into its training step.
 *
 * In: "loss=cross_entropy,optimizer=adam,clip=1,freeze=conv*" (ingot_set_train). Out: after import,
 * which keeps weights and layers as training needs them, the graph of one step
 * (pass/graph/train.h). Values are words or numbers; `freeze` is repeatable, `output` names the
 * result that is compared with the label (default: the first).
 */
#include "api/api_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct Freeze {
  Ctx *c;
  VEC(const char *) glob;
  VEC(bool) hit; /* parallel: pattern matched a weight */
} Freeze;

static bool trains(void *user, Str name) {
  Freeze *f = user;
  bool stays = false;
  for (u32 i = 0; i < f->glob.n; i++) {
    if (!glob_match(f->glob.at[i], str_text(f->c, name))) continue;
    f->hit.at[i] = stays = true;
  }
  return !stays;
}

#define F32_LIMIT 1e38 /* near the maximum of f32 */

typedef enum TrainKind { TK_word, TK_number } TrainKind;

static const struct {
  const char *key;
  TrainKind kind;
  size_t at;
  double below; /* exclusive maximum; the minimum is 0 */
} keys[] = {
    {"loss", TK_word, offsetof(TrainOptions, loss), 0},
    {"optimizer", TK_word, offsetof(TrainOptions, optimizer), 0},
    {"momentum", TK_number, offsetof(TrainOptions, momentum), F32_LIMIT},
    {"beta1", TK_number, offsetof(TrainOptions, beta1), 1},
    {"beta2", TK_number, offsetof(TrainOptions, beta2), 1},
    {"epsilon", TK_number, offsetof(TrainOptions, epsilon), F32_LIMIT},
    {"decay", TK_number, offsetof(TrainOptions, decay), F32_LIMIT},
    {"clip", TK_number, offsetof(TrainOptions, clip), F32_LIMIT},
    {"clip_value", TK_number, offsetof(TrainOptions, clip_value), F32_LIMIT},
    {"smoothing", TK_number, offsetof(TrainOptions, smoothing), 1},
};
enum { NKEYS = sizeof keys / sizeof *keys };

static u32 output_named(Ingot *m, const char *name) {
  Suggestion near = suggest_new(name);
  for (u32 i = 0; i < m->g->out_name.n; i++) {
    const char *has = str_text(m->c, m->g->out_name.at[i]);
    if (!strcmp(has, name)) return i;
    suggest_try(&near, has);
  }
  fail(m->c, ERR_usage, LOC_NONE, "--train: unknown output '%s'%s", show(m->c, str_of(m->c, name)),
       suggest_text(m->c, &near));
}

static double number_of(Ctx *c, const char *key, const char *value, double below) {
  char *end;
  double x = strtod(value, &end);
  if (!*value || *end || !(x >= 0 && x < below))
    fail(c, ERR_usage, LOC_NONE, "--train: %s=%s: expected a number from 0 to below %g", key,
         show(c, str_of(c, value)), below);
  return x;
}

static u32 whole_of(Ctx *c, const char *key, const char *value, u32 below) {
  double x = number_of(c, key, value, below);
  if (x != (u32)x)
    fail(c, ERR_usage, LOC_NONE, "--train: %s=%s: expected a whole number", key,
         show(c, str_of(c, value)));
  return (u32)x;
}

static void set_one(Ingot *m, TrainOptions *o, Freeze *f, const char *key, const char *value) {
  Ctx *c = m->c;
  Suggestion near = suggest_new(key);
  StrBuf all = sb_new(&c->scratch);
  for (u32 i = 0; i < NKEYS; i++) {
    sb_fmt(&all, "%s, ", keys[i].key);
    suggest_try(&near, keys[i].key);
    if (strcmp(keys[i].key, key) != 0) continue;
    char *field = (char *)o + keys[i].at;
    if (keys[i].kind == TK_word)
      *(const char **)field = value;
    else
      *(double *)field = number_of(c, key, value, keys[i].below);
    return;
  }
  if (!strcmp(key, "axis")) {
    o->axis = whole_of(c, key, value, MAX_RANK);
  } else if (!strcmp(key, "output")) {
    o->output = output_named(m, value);
  } else if (!strcmp(key, "freeze")) {
    *vec_push(&c->keep, &f->glob) = value;
    *vec_push(&c->keep, &f->hit) = false;
  } else if (!strcmp(key, "rate")) {
    m->options.rate = number_of(c, key, value, F32_LIMIT);
  } else if (!strcmp(key, "recompute")) {
    o->recompute = whole_of(c, key, value, 2) != 0;
  } else if (!strcmp(key, "classes")) {
    o->classes = whole_of(c, key, value, 2) != 0;
  } else {
    fail(c, ERR_usage, LOC_NONE,
         "--train: unknown key '%s'; expected %saxis, output, freeze, rate, recompute, classes%s",
         show(c, str_of(c, key)), sb_cstr(&all), suggest_text(c, &near));
  }
}

void api_add_train_step(Ingot *m) {
  const char *spec = m->options.train;
  if (!spec) return;
  if (!m->g) fail(m->c, ERR_usage, LOC_NONE, "--train needs a model, found a program");
  Freeze f = {.c = m->c};
  m->options.rate = DEFAULT_LR;
  TrainOptions o = {.loss = "cross_entropy",
                    .optimizer = "sgd",
                    .momentum = TRAIN_DEFAULT,
                    .beta1 = TRAIN_DEFAULT,
                    .beta2 = TRAIN_DEFAULT,
                    .epsilon = TRAIN_DEFAULT,
                    .decay = TRAIN_DEFAULT,
                    .clip = TRAIN_DEFAULT,
                    .clip_value = TRAIN_DEFAULT,
                    .smoothing = TRAIN_DEFAULT,
                    .axis = TRAIN_DEFAULT,
                    .part = m->options.part,
                    .trains = trains,
                    .user = &f};
  while (*spec) {
    size_t n = strcspn(spec, ","), k = strcspn(spec, "=");
    if (k >= n)
      fail(m->c, ERR_usage, LOC_NONE, "--train: expected KEY=VALUE,...; found '%s'",
           show(m->c, str_of(m->c, spec)));
    const char *key = str_text(m->c, str_intern(m->c, spec, k));
    set_one(m, &o, &f, key, str_text(m->c, str_intern(m->c, spec + k + 1, n - k - 1)));
    spec += n + (spec[n] == ',');
  }
  m->g = train_step(m->g, &o);
  for (u32 i = 0; i < f.glob.n; i++)
    if (!f.hit.at[i])
      fail(m->c, ERR_usage, LOC_NONE, "--train: freeze=%s: no weight has such a name",
           show(m->c, str_of(m->c, f.glob.at[i])));
  m->opened.ports = NULL; /* its outputs differ from those the model declares */
}

Tensor *api_train_default(Ingot *m, u32 i) {
  if (!m->options.train || !str_is(m->c, api_param_name(m, i), "rate")) return NULL;
  Tensor *t = tensor_new(&m->c->keep, DT_f32, NULL, 0);
  tensor_set(t, 0, (Scalar){.f = m->options.rate});
  return t;
}

bool api_takes_input(const Ingot *m, Str name) {
  bool more = m->options.train && (str_is(m->c, name, "label") || str_is(m->c, name, "rate"));
  more = more || m->options.language.slots; /* each sequence has its own inputs */
  return more || model_has_input(m->c, m->opened.model, name);
}

static void set_train(Ingot *m, const char *spec) {
  api_need(m->c, spec, "the training step");
  api_need_unread(m, "--train");
  m->options.train = str_text(m->c, str_of(m->c, spec));
}

IngotStatus ingot_set_train(Ingot *m, const char *spec) {
  API_CALL(m, set_train(m, spec));
}
