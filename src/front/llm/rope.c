/* rope.c: RoPE frequencies.
 *
 * In: the RoPE keys of a file and its factor tensors. Out: a frequency per pair, and a factor for
 * cosines and sines. Method: powers of the base, in double. Each kind of scaling is a table row
 * with a function that modifies them.
 */
#include "front/llm/lm_hparams.h"

#include <math.h>
#include <string.h>

typedef struct Scaling {
  LmFile *f;
  const LmHparams *s;
  const char *at; /* config.json: path of the object; NULL: none */
  double base, factor;
  double original; /* context length before scaling */
  u32 n;
  double *freq;
  double gain;
  const char *kind; /* NULL: none */
  double fast, slow;
  double reach; /* 0: not determined by the factor */
} Scaling;

static const double two_pi = 6.283185307179586476925;

/* A scaling parameter: under its GGUF key, or as a member of the object. */
static bool scaling_param(Scaling *r, const char *gguf, const char *member, double *out) {
  LmFile *f = r->f;
  if (f->gguf) return gguf && lm_float(f, gguf, out);
  if (!member || !r->at) return false;
  return lm_float(f, str_text(f->c, str_fmt(f->c, "%s.%s", r->at, member)), out);
}

static double positive_param(Scaling *r, const char *gguf, const char *member, double otherwise) {
  double x = otherwise;
  if (scaling_param(r, gguf, member, &x) && (!(x > 0) || !isfinite(x)))
    fail(r->f->c, ERR_input, r->f->loc, "RoPE: %s is %g, expected a positive number",
         r->f->gguf ? gguf : member, x);
  return x;
}

/* ---- kinds ---- */

static void scale_none(Scaling *r) {
  (void)r;
}

static void scale_linear(Scaling *r) {
  for (u32 i = 0; i < r->n; i++) r->freq[i] /= r->factor;
}

static void set_base(Scaling *r, double base) {
  r->base = base;
  for (u32 i = 0; i < r->n; i++) r->freq[i] = pow(base, -2.0 * i / (2.0 * r->n));
}

/* NTK: a larger base for texts that exceed the original context length, or (alpha) for all. A
 * longer context takes the base of its full length, because keys in the cache keep their angles. */
static void scale_dynamic(Scaling *r) {
  double alpha = positive_param(r, NULL, "alpha", 1), d = 2.0 * r->n;
  double length = (double)r->s->context / r->original;
  if (alpha == 1 && length > 1) alpha = r->factor * length - (r->factor - 1);
  if (alpha != 1 && d > 2) set_base(r, r->base * pow(alpha, d / (d - 2)));
}

/* Stretches slow pairs, keeps fast pairs, interpolates those between. GGUF stores the resulting
 * factors as a tensor. */
static void scale_llama3(Scaling *r) {
  double low = positive_param(r, NULL, "low_freq_factor", 1),
         high = positive_param(r, NULL, "high_freq_factor", 4);
  for (u32 i = 0; i < r->n; i++) {
    double wave = two_pi / r->freq[i], part = (r->original / wave - low) / (high - low);
    if (wave > r->original / low)
      r->freq[i] /= r->factor;
    else if (wave >= r->original / high)
      r->freq[i] *= (1 - part) / r->factor + part;
  }
}

/* The pair that makes this many turns over the original context. */
static double correction_dim(const Scaling *r, double turns) {
  return 2 * r->n * log(r->original / (two_pi * turns)) / (2 * log(r->base));
}

static double mscale(double factor, double by) {
  return factor > 1 ? 0.1 * by * log(factor) + 1 : 1;
}

static void scale_yarn(Scaling *r) {
  if (r->base <= 1)
    fail(r->f->c, ERR_input, r->f->loc, "RoPE: yarn scaling does not support a base of %g",
         r->base);
  double all = 0, one = 0;
  r->fast = positive_param(r, ".rope.scaling.yarn_beta_fast", "beta_fast", 32);
  r->slow = positive_param(r, ".rope.scaling.yarn_beta_slow", "beta_slow", 1);
  double lo = fmax(0, floor(correction_dim(r, r->fast))),
         hi = fmin(2 * r->n - 1, ceil(correction_dim(r, r->slow)));
  for (u32 i = 0; i < r->n; i++) {
    double ramp = (i - lo) / fmax(0.001, hi - lo), plain = 1 - fmin(1, fmax(0, ramp));
    r->freq[i] *= plain + (1 - plain) / r->factor;
  }
  if (r->f->gguf) {
    r->gain = mscale(r->factor, 1) * positive_param(r, ".rope.scaling.attn_factor", NULL, 1);
    return;
  }
  r->gain = mscale(r->factor, 1);
  if (scaling_param(r, NULL, "mscale", &one) && scaling_param(r, NULL, "mscale_all_dim", &all) &&
      one && all)
    r->gain = mscale(r->factor, one) / mscale(r->factor, all);
  r->gain = positive_param(r, NULL, "attention_factor", r->gain);
}

static void divide(Scaling *r, const double *by, u32 n, const char *what) {
  LmFile *f = r->f;
  if (n != r->n)
    fail(f->c, ERR_input, f->loc, "'%s' has %u factors, expected one for each of %u pairs", what, n,
         r->n);
  for (u32 i = 0; i < n; i++) {
    if (!(by[i] > 0) || !isfinite(by[i]))
      fail(f->c, ERR_input, f->loc, "'%s' has a factor of %g, expected a positive number", what,
           by[i]);
    r->freq[i] /= by[i];
  }
}

/* Divides by the factors of a tensor; false: it is absent. */
static bool divide_by_tensor(Scaling *r, const char *name) {
  LmFile *f = r->f;
  const StoredTensor *t = lm_tensor(f, name);
  if (!t) return false;
  if (t->rank != 1 || t->kind != BK_F32)
    fail(f->c, ERR_input, f->loc, "'%s' has another type or rank, expected a vector of f32", name);
  float *x = NEWS(&f->c->scratch, float, (size_t)t->dim[0]);
  double *by = NEWS(&f->c->scratch, double, (size_t)t->dim[0]);
  memcpy(x, t->at, (size_t)t->bytes);
  for (i64 i = 0; i < t->dim[0]; i++) by[i] = (double)x[i];
  divide(r, by, (u32)t->dim[0], name);
  return true;
}

static void scale_longrope(Scaling *r) {
  LmFile *f = r->f;
  bool is_long = (double)r->s->context > r->original;
  if (f->gguf) {
    divide_by_tensor(r, is_long ? "rope_factors_long.weight" : "rope_factors_short.weight");
  } else {
    const char *key =
        str_text(f->c, str_fmt(f->c, "%s.%s", r->at, is_long ? "long_factor" : "short_factor"));
    double *by = NEWS(&f->c->scratch, double, r->n + 1);
    LmList l;
    u32 n = 0;
    if (!lm_list(f, key, &l)) fail(f->c, ERR_input, f->loc, "key '%s' is missing", key);
    while (n <= r->n && lm_next_float(&l, &by[n])) n++;
    divide(r, by, n, key);
  }
  double ratio = (double)r->s->longest / r->original;
  if (ratio > 1 && r->original <= 1)
    fail(f->c, ERR_input, f->loc,
         "RoPE: longrope scaling needs an original context length above 1");
  r->gain = ratio > 1 ? sqrt(1 + log(ratio) / log(r->original)) : 1;
  r->gain = positive_param(r, ".rope.scaling.attn_factor", "attention_factor", r->gain);
}

typedef struct ScalingKind {
  const char *name;
  void (*apply)(Scaling *r);
  bool factor;    /* needs a factor */
  bool stretches; /* the file may give the original context length */
} ScalingKind;

static const ScalingKind kinds[] = {
    {"none", scale_none, false, false},
    {"default", scale_none, false, false},
    {"dynamic", scale_dynamic, false, false},
    {"linear", scale_linear, true, true},
    {"llama3", scale_llama3, true, false},
    {"yarn", scale_yarn, true, true},
    {"longrope", scale_longrope, false, false},
    {"su", scale_longrope, false, false}, /* early name of longrope */
};

/* ---- selection ---- */

static bool kind_name(Scaling *r, Str *out) {
  static const char *const keys[] = {"rope_type", "type"};
  LmFile *f = r->f;
  FileSpan t = {0};
  bool found = false;
  if (f->gguf) {
    found = lm_string(f, ".rope.scaling.type", &t);
    double old;
    if (!found && lm_float(f, ".rope.scale_linear", &old)) {
      *out = str_of(f->c, "linear");
      return true;
    }
  }
  for (u32 i = 0; !f->gguf && r->at && !found && i < 2; i++)
    found = lm_string(f, str_text(f->c, str_fmt(f->c, "%s.%s", r->at, keys[i])), &t);
  if (found) *out = str_intern(f->c, t.at, t.n);
  return found;
}

static i64 original_context(Scaling *r) {
  static const char *const key = "original_max_position_embeddings";
  LmFile *f = r->f;
  i64 n;
  const char *inside = str_text(f->c, str_fmt(f->c, "%s.%s", r->at ? r->at : "", key));
  if (lm_either_int(f, ".rope.scaling.original_context_length", inside, 1, DIM_MAX, &n) ||
      lm_either_int(f, NULL, key, 1, DIM_MAX, &n))
    return n;
  return r->s->longest ? r->s->longest : r->s->context;
}

static void apply_scaling(Scaling *r) {
  LmFile *f = r->f;
  Str name;
  if (f->gguf) divide_by_tensor(r, "rope_freqs.weight");
  if (!kind_name(r, &name)) return;
  for (u32 i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!str_is(f->c, name, kinds[i].name)) continue;
    r->factor =
        positive_param(r, ".rope.scaling.factor", "factor",
                       positive_param(r, ".rope.scale_linear", NULL, kinds[i].factor ? 0 : 1));
    if (r->factor == 0)
      fail(f->c, ERR_input, f->loc, "RoPE: %s scaling needs a factor", kinds[i].name);
    r->original = (double)original_context(r);
    r->kind = kinds[i].name;
    if (kinds[i].stretches) r->reach = r->factor * r->original;
    kinds[i].apply(r);
    return;
  }
  fail(f->c, ERR_unsupported, f->loc, "RoPE: scaling '%s' is not supported", show(f->c, name));
}

/* Path of the RoPE object in config.json. Newer files may have one per kind of layer. */
static const char *config_object(LmFile *f, bool local) {
  const char *both = local ? "rope_parameters.sliding_attention" : "rope_parameters.full_attention";
  static const char *const ends[] = {"rope_type", "type", "rope_theta"};
  const char *const at[] = {both, "rope_parameters", "rope_scaling"};
  for (u32 i = 0; i < sizeof at / sizeof *at; i++)
    for (u32 k = 0; k < sizeof ends / sizeof *ends; k++) {
      FileSpan t;
      double x;
      const char *key = str_text(f->c, str_fmt(f->c, "%s.%s", at[i], ends[k]));
      if (k < 2 ? lm_string(f, key, &t) : lm_float(f, key, &x)) return at[i];
    }
  return NULL;
}

static i64 rotary_dims(LmFile *f, const LmHparams *s) {
  static const char *const key = "partial_rotary_factor|rope_parameters.partial_rotary_factor|"
                                 "rope_parameters.full_attention.partial_rotary_factor|rotary_pct|"
                                 "rope_percentage";
  i64 n = s->head;
  double part = s->arch->part != 0 ? s->arch->part : 1;
  lm_either_float(f, NULL, key, &part);
  if (!(part > 0 && part <= 1))
    fail(f->c, ERR_input, f->loc,
         "'partial_rotary_factor' is %g, expected more than 0 and at most 1", part);
  n = (i64)((double)s->head * part);
  lm_either_int(f, ".rope.dimension_count", "rotary_dim", 1, LM_SIZE, &n);
  if (n > s->head || n % 2 || n == 0)
    fail(f->c, ERR_input, f->loc,
         "RoPE cannot rotate %lld elements of a head of size %lld in pairs", (long long)n,
         (long long)s->head);
  return n;
}

LmRope lm_rope(LmFile *f, const LmHparams *s, bool local) {
  Scaling r = {.f = f, .s = s, .gain = 1, .base = 10000};
  if (s->arch->base) r.base = (double)s->arch->base;
  r.n = (u32)rotary_dims(f, s) / 2;
  if (!f->gguf) r.at = config_object(f, local);
  if (local && s->arch->local_base) r.base = (double)s->arch->local_base;
  bool plain = local && !s->arch->local_base;
  lm_either_float(f, local && !plain ? ".rope.freq_base_swa" : ".rope.freq_base",
                  local && !plain ? "rope_local_base_freq|local_rope_theta"
                                  : "rope_theta|rotary_emb_base|global_rope_theta",
                  &r.base);
  bool own = r.at && strstr(r.at, "_attention"); /* separate object for this kind of layer */
  if (!local || own || plain) scaling_param(&r, NULL, "rope_theta", &r.base);
  if (!(r.base > 0) || !isfinite(r.base))
    fail(f->c, ERR_input, f->loc, "RoPE: the base is %g, expected a positive number", r.base);
  r.freq = NEWS(&f->c->work, double, r.n);
  set_base(&r, r.base);
  if (!local || own) apply_scaling(&r);
  return (LmRope){r.n,      r.freq,     r.gain, r.base, r.kind, r.at,
                  r.factor, r.original, r.fast, r.slow, r.reach};
}
