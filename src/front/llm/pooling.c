/* pooling.c: vectors and scores of texts.
 *
 * In: the vectors of all tokens. Out: the scores of a classification head; else the vector that
 * modules.json (sentence-transformers) or the pooling type of GGUF defines; else the vectors
 * themselves. GGUF does not say whether vectors are normalized; pooled ones are, as in llama.cpp.
 */
#include "front/compose/compose.h"
#include "front/llm/lm_hparams.h"
#include "io/safetensors.h"

#include <string.h>

typedef enum Pooling { PO_none, PO_mean, PO_cls, PO_last, PO_max } Pooling;

typedef struct Pool {
  LmFile *f;
  Graph *g;
} Pool;

static const char *join(LmFile *f, const char *a, const char *b) {
  return str_text(f->c, str_fmt(f->c, "%s%s", a, b));
}

/* x [in] times the matrix NAME.weight [out, in], plus NAME.bias if there is one. */
static Val linear(Pool *p, Val x, const char *name) {
  Graph *g = p->g;
  LmFile *f = p->f;
  const char *matrix = join(f, name, ".weight"), *bias = join(f, name, ".bias");
  const StoredTensor *t = lm_require_tensor(f, matrix), *b = lm_tensor(f, bias);
  i64 in = val_dim(g, x, 0);
  if (t->rank != 2 || t->dim[1] != in || (b && (b->rank != 1 || b->dim[0] != t->dim[0])))
    fail(f->c, ERR_input, f->loc, "tensor '%s': expected a matrix with rows of %lld elements",
         show(f->c, str_of(f->c, matrix)), (long long)in);
  Val w = mk_cast(g, lm_weight(g, f, matrix), DT_f32);
  Val y = mk_squeeze(g, mk_contract(g, mk_unsqueeze(g, x, 0), w, "tk,nk->tn"), 0);
  return b ? mk_add(g, y, mk_cast(g, lm_weight(g, f, bias), DT_f32)) : y;
}

static Val pool(Graph *g, Val x, Pooling how) {
  i64 axis = 0;
  Dim n = val_dim(g, x, 0);
  switch (how) {
  case PO_mean: return mk_mean(g, x, &axis, 1, false);
  case PO_max: return mk_reduce(g, OP_reduce_max, x, &axis, 1, false);
  case PO_last: return mk_squeeze(g, mk_slice_axis(g, x, 0, dim_sub(g->dims, n, 1), 1), 0);
  case PO_cls: return mk_squeeze(g, mk_slice_axis(g, x, 0, 0, 1), 0);
  case PO_none: break;
  }
  return x;
}

static Val l2_normalize(Graph *g, Val x) {
  i64 axis = 0;
  Val norm = mk_sqrt(g, mk_reduce(g, OP_reduce_sum, mk_mul(g, x, x), &axis, 1, true));
  return mk_div(g, x, mk_max(g, norm, mk_like(g, norm, 1e-12)));
}

/* ---- classification heads ---- */

typedef enum HeadAct { HA_none, HA_tanh, HA_relu, HA_gelu } HeadAct;

/* dense, an activation, perhaps a norm, and out. In safetensors, '+' stands for the prefix of the
 * encoder. */
static const struct Head {
  const char *dense, *norm, *out;
  HeadAct act;
} heads[] = {{"classifier.dense", NULL, "classifier.out_proj", HA_tanh},
             {"pre_classifier", NULL, "classifier", HA_relu},
             {"head.dense", "head.norm", "classifier", HA_gelu},
             {"+pooler.dense", NULL, "classifier", HA_tanh},
             {"cls", "cls.norm", "cls.output", HA_gelu},
             {"cls", NULL, "cls.output", HA_tanh},
             {NULL, NULL, "score", HA_none}};

static const char *head_name(LmFile *f, const char *name, const char *end) {
  return join(f, *name == '+' ? join(f, f->root, name + 1) : name, end);
}

static const struct Head *find_head(LmFile *f) {
  for (u32 i = 0; i < sizeof heads / sizeof *heads; i++) {
    const char *part[] = {heads[i].dense, heads[i].norm, heads[i].out};
    bool all = true;
    for (u32 k = 0; k < 3; k++)
      if (part[k]) all &= lm_tensor(f, head_name(f, part[k], ".weight")) != NULL;
    if (all) return &heads[i];
  }
  return NULL;
}

bool lm_has_head(LmFile *f) {
  return find_head(f) != NULL;
}

static Val classify(Pool *p, const struct Head *h, Val x) {
  Graph *g = p->g;
  LmFile *f = p->f;
  Pooling how = h->dense ? PO_cls : PO_last;
  FileSpan given;
  if (h->norm && !f->gguf && lm_string(f, "classifier_pooling", &given)) {
    Str name = str_intern(f->c, given.at, given.n);
    if (str_is(f->c, name, "mean"))
      how = PO_mean;
    else if (!str_is(f->c, name, "cls"))
      fail(f->c, ERR_unsupported, f->loc, "'classifier_pooling' is '%s', expected cls or mean",
           show(f->c, name));
  }
  x = pool(g, x, how);
  if (h->dense) x = linear(p, x, head_name(f, h->dense, ""));
  if (h->act == HA_tanh) x = mk_tanh(g, x);
  if (h->act == HA_relu) x = compose_relu(g, x);
  if (h->act == HA_gelu) x = compose_gelu(g, x, false);
  if (h->norm) {
    i64 axis = 0;
    double eps = 1e-5;
    lm_either_float(f, ".attention.layer_norm_epsilon", "norm_eps", &eps);
    Val w = mk_cast(g, lm_weight(g, f, join(f, h->norm, ".weight")), DT_f32), b = 0;
    if (lm_tensor(f, join(f, h->norm, ".bias")))
      b = mk_cast(g, lm_weight(g, f, join(f, h->norm, ".bias")), DT_f32);
    x = compose_affine(g, compose_normalize(g, x, &axis, 1, eps, NULL, NULL), w, b);
  }
  return linear(p, x, head_name(f, h->out, ""));
}

/* ---- modules of sentence-transformers ---- */

static const struct {
  const char *key;
  Pooling how;
} poolings[] = {
    {"pooling_mode_mean_tokens", PO_mean},         {"pooling_mode_cls_token", PO_cls},
    {"pooling_mode_max_tokens", PO_max},           {"pooling_mode_mean_sqrt_len_tokens", PO_none},
    {"pooling_mode_weightedmean_tokens", PO_none}, {"pooling_mode_lasttoken", PO_last}};

static Pooling read_pooling(LmFile *f, const JsonDoc *d) {
  Ctx *c = f->c;
  Pooling how = PO_none;
  for (u32 i = 0; i < sizeof poolings / sizeof *poolings; i++) {
    if (!json_bool(d, d->root, poolings[i].key, false)) continue;
    if (how != PO_none || poolings[i].how == PO_none)
      fail(c, ERR_unsupported, d->loc,
           "%s, or its combination with another pooling mode, is not supported", poolings[i].key);
    how = poolings[i].how;
  }
  if (how == PO_none) fail(c, ERR_input, d->loc, "no pooling mode is enabled");
  return how;
}

/* A Dense module; a separate file has its matrix and bias. */
static Val dense(Pool *p, Val x, const JsonDoc *d, const char *folder) {
  LmFile *f = p->f;
  Ctx *c = f->c;
  const Json *act = json_get(d->root, "activation_function");
  bool plain = !act || json_is(act, "torch.nn.modules.linear.Identity");
  if (!plain && !json_is(act, "torch.nn.modules.activation.Tanh"))
    json_fail(d, act, ERR_unsupported, "this activation of a Dense module is not supported");
  Str name = str_fmt(c, "%s/model.safetensors", folder);
  File file = file_read_beneath(c, f->path, name, f->loc);
  Loc loc = {.file = name, .index = -1};
  StoredTensors v = safetensors_read(c, file.at, file.n, loc);
  for (u32 i = 0; i < v.n; i++) {
    v.at[i].name = str_fmt(c, "%s/%s", folder, str_text(c, v.at[i].name));
    *vec_push(&c->work, &f->tensor) = v.at[i];
    *map_put(&f->by_name, v.at[i].name) = f->tensor.n;
  }
  x = linear(p, x, join(f, folder, "/linear"));
  return plain ? x : mk_tanh(p->g, x);
}

static Val apply_modules(Pool *p, const JsonDoc *d, Val x) {
  LmFile *f = p->f;
  Ctx *c = f->c;
  bool pooled = false;
  if (d->root->kind != JS_array) json_fail(d, d->root, ERR_input, "expected a list of modules");
  for (u32 i = 0; i < d->root->n; i++) {
    const Json *m = &d->root->at[i], *type = json_require(d, m, "type", JS_string);
    const char *name = str_text(c, json_str(c, type)), *dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
    if (i == 0 && !strcmp(name, "Transformer")) continue;
    const char *folder = str_text(c, json_str(c, json_require(d, m, "path", JS_string)));
    bool pools = !strcmp(name, "Pooling") && !pooled;
    if (!strcmp(name, "Normalize") && pooled) {
      x = l2_normalize(p->g, x);
      continue;
    }
    if (!pools && !(pooled && !strcmp(name, "Dense")))
      json_fail(d, type, ERR_unsupported, "module '%s' is not supported here",
                show(c, json_str(c, type)));
    const JsonDoc *config = lm_named_json(f, str_fmt(c, "%s/config.json", folder));
    x = pools ? pool(p->g, x, read_pooling(f, config)) : dense(p, x, config, folder);
    pooled = true;
  }
  return x;
}

/* ---- entry point ---- */

Val lm_pool(LmFile *f, Graph *g, Val x) {
  static const char *const more[] = {"dense_2", "dense_3"}; /* GGUF: Dense modules */
  Pool p = {f, g};
  const struct Head *h = find_head(f);
  const JsonDoc *modules = f->gguf ? NULL : lm_sibling_json(f, "modules.json");
  i64 type = 0;
  g->loc = f->loc;
  if (h) return classify(&p, h, x);
  if (modules) return apply_modules(&p, modules, x);
  if (!f->gguf || !lm_int(f, ".pooling_type", 0, 3, &type) || !type) return x;
  x = pool(g, x, (Pooling)type);
  for (u32 i = 0; i < 2; i++)
    if (lm_tensor(f, join(f, more[i], ".weight"))) x = linear(&p, x, more[i]);
  return l2_normalize(g, x);
}
