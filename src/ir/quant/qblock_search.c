/* qblock_search.c: quantizes floats to blocks with integer scales: Q2_K to Q6_K.
 *
 * In: 256 floats. Out: a block in which element i of group g is s * v[i] + o, with s = d * sc[g]
 * and o = -(m * mn[g]), or without o. The integers with the smallest error have no closed form, so
 * they are searched. Errors are weighted squares, because large elements matter more in a product.
 * 1. Each group: try grids of several widths over its range. A grid gives integers, these the best
 * s and o (linear least squares), and these a new grid, until the error stops decreasing.
 * 2. The block: d and m from the largest s and o, sc and mn rounded. Then alternate: for each group
 * try the neighbors of sc and mn; fit d and m to all integers by least squares.
 *
 * Sums are over residuals, not elements, to keep precision. Eight groups are stored side by side
 * and summed as vectors in a fixed order, so the bytes do not depend on the machine. */
#include "ir/quant/qblock.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, DEEP = 32, SETS = 2 };

/* Ranges of the integers; qblocks.def has the rest. */
typedef struct SearchedKind {
  QBlockKind kind;
  float lo, hi;       /* range of v */
  float sc_lo, sc_hi; /* range of sc; sc_lo below 0: d and s are signed */
  float mn_hi;        /* 0: no offset */
} SearchedKind;

static const SearchedKind kinds[] = {
    {BK_Q2_K, 0, 3, 0, 15, 15},  {BK_Q3_K, -4, 3, -32, 31, 0},     {BK_Q4_K, 0, 15, 0, 63, 63},
    {BK_Q5_K, 0, 31, 0, 63, 63}, {BK_Q6_K, -32, 31, -128, 127, 0},
};

/* Widths of the first grids: steps in addition to hi - lo. */
static const float wider[] = {-1, -0.7f, -0.4f, -0.2f, 0, 0.2f, 0.4f, 0.7f, 1};
enum { NWIDER = sizeof wider / sizeof *wider, AGAIN = 3, TURNS = 2 };

/* Groups side by side, and the current result. */
typedef struct GroupSet {
  u32 n;                                /* elements per group */
  float x[DEEP][LANES], w[DEEP][LANES]; /* w: weights */
  float s[LANES], o[LANES], err[LANES];
  float sc[LANES], mn[LANES]; /* integers */
} GroupSet;

/* Weighted sums over the residuals r of the integers v. */
typedef struct Residuals {
  float rr[LANES], rv[LANES], r[LANES], vv[LANES], v[LANES], w[LANES];
} Residuals;

static float inverse_of(float s) {
  float y = 1 / s;
  return s == 0 || !isfinite(y) ? 0 : y;
}

/* The integer nearest to t in lo .. hi; NaN gives lo. */
static inline float nearest(float t, float lo, float hi) {
  t = t - lo + 0.5f;
  t = t > 0 ? t : 0;
  t = t < hi - lo + 0.5f ? t : hi - lo + 0.5f;
  return (float)(i32)t + lo;
}

static void residuals(const SearchedKind *k, const GroupSet *g, const float *s, const float *o,
                      Residuals *out) {
  float inverse[LANES];
  Residuals sum = {0};
  for (u32 l = 0; l < LANES; l++) inverse[l] = inverse_of(s[l]);
  for (u32 i = 0; i < g->n; i++)
    for (u32 l = 0; l < LANES; l++) {
      float x = g->x[i][l], w = g->w[i][l];
      float v = nearest((x - o[l]) * inverse[l], k->lo, k->hi);
      float r = x - (s[l] * v + o[l]), wr = w * r, wv = w * v;
      sum.rr[l] += wr * r;
      sum.rv[l] += wr * v;
      sum.r[l] += wr;
      sum.vv[l] += wv * v;
      sum.v[l] += wv;
      sum.w[l] += w;
    }
  *out = sum;
}

/* Only the error of a block with this s and o. */
static void errors(const SearchedKind *k, const GroupSet *g, const float *s, const float *o,
                   float *err) {
  float inverse[LANES], sum[LANES] = {0};
  for (u32 l = 0; l < LANES; l++) inverse[l] = inverse_of(s[l]);
  for (u32 i = 0; i < g->n; i++)
    for (u32 l = 0; l < LANES; l++) {
      float x = g->x[i][l];
      float r = x - (s[l] * nearest((x - o[l]) * inverse[l], k->lo, k->hi) + o[l]);
      sum[l] += g->w[i][l] * r * r;
    }
  memcpy(err, sum, sizeof sum);
}

/* ---- one group ---- */

/* Improves s and o, which gave the residuals, by least squares for their integers; returns the
 * remaining error. */
static float fit(const SearchedKind *k, const Residuals *r, u32 l, float *s, float *o) {
  float ds = 0, dm = 0, det = r->vv[l] * r->w[l] - r->v[l] * r->v[l];
  if (!k->mn_hi || det <= 0) {
    if (r->vv[l] > 0) ds = r->rv[l] / r->vv[l];
  } else {
    ds = (r->rv[l] * r->w[l] - r->r[l] * r->v[l]) / det;
    dm = (r->r[l] * r->vv[l] - r->rv[l] * r->v[l]) / det;
    if (*o + dm > 0) { /* the offset must not be positive: fit s alone */
      dm = -*o;
      ds = (r->rv[l] - dm * r->v[l]) / r->vv[l];
    }
  }
  if (k->sc_lo == 0 && *s + ds < 0) ds = -*s;
  *s += ds;
  *o += dm;
  return r->rr[l] - 2 * ds * r->rv[l] - 2 * dm * r->r[l] + ds * ds * r->vv[l] +
         2 * ds * dm * r->v[l] + dm * dm * r->w[l];
}

/* Minimum and maximum; for signed formats the element of largest magnitude, in both. */
static void range(const SearchedKind *k, const GroupSet *g, float *bottom, float *top) {
  for (u32 l = 0; l < LANES; l++) bottom[l] = top[l] = 0;
  for (u32 i = 0; i < g->n; i++)
    for (u32 l = 0; l < LANES; l++) {
      float x = g->x[i][l];
      if (k->mn_hi) {
        bottom[l] = x < bottom[l] ? x : bottom[l];
        top[l] = i == 0 || x > top[l] ? x : top[l];
      } else if (fabsf(x) > fabsf(top[l])) {
        bottom[l] = top[l] = x;
      }
    }
}

static void search_groups(const SearchedKind *k, GroupSet *g) {
  float bottom[LANES], top[LANES], s[LANES], o[LANES] = {0};
  Residuals r;
  range(k, g, bottom, top);
  for (u32 c = 0; c < NWIDER + AGAIN; c++) {
    for (u32 l = 0; l < LANES; l++) {
      if (c >= NWIDER) {
        s[l] = g->s[l];
        o[l] = g->o[l];
      } else if (k->mn_hi) {
        s[l] = (top[l] - bottom[l]) / (k->hi + wider[c]);
        o[l] = bottom[l];
      } else {
        s[l] = top[l] / (k->lo - wider[c] * 0.5f);
      }
    }
    residuals(k, g, s, o, &r);
    for (u32 l = 0; l < LANES; l++) {
      float err = fit(k, &r, l, &s[l], &o[l]);
      if (c && !(err < g->err[l])) continue;
      g->err[l] = err;
      g->s[l] = s[l];
      g->o[l] = o[l];
    }
  }
}

/* ---- the block ---- */

typedef struct SearchedBlock {
  const SearchedKind *k;
  u32 nset;
  GroupSet set[SETS];
  float d, m; /* as stored */
} SearchedBlock;

static float half(double x) {
  return (float)scalar_round(DT_f16, x);
}

static void first_factors(SearchedBlock *b) {
  const SearchedKind *k = b->k;
  float far = 0, low = 0;
  for (u32 i = 0; i < b->nset; i++)
    for (u32 l = 0; l < LANES; l++) {
      const GroupSet *g = &b->set[i];
      if (fabsf(g->s[l]) > fabsf(far)) far = g->s[l];
      if (-g->o[l] > low) low = -g->o[l];
    }
  b->d = half((double)(far / (k->sc_lo < 0 ? k->sc_lo : k->sc_hi)));
  b->m = k->mn_hi ? half((double)(low / k->mn_hi)) : 0;
  float by_d = inverse_of(b->d), by_m = inverse_of(b->m);
  for (u32 i = 0; i < b->nset; i++)
    for (u32 l = 0; l < LANES; l++) {
      GroupSet *g = &b->set[i];
      g->sc[l] = nearest(g->s[l] * by_d, k->sc_lo, k->sc_hi);
      g->mn[l] = nearest(-g->o[l] * by_m, 0, k->mn_hi);
    }
}

/* Tries the neighbors of each sc and mn; returns the error of all groups. */
static double try_neighbors(SearchedBlock *b) {
  const SearchedKind *k = b->k;
  double all = 0;
  for (u32 i = 0; i < b->nset; i++) {
    GroupSet *g = &b->set[i], was = *g;
    for (u32 l = 0; l < LANES; l++) g->err[l] = INFINITY;
    for (int c = 0; c < (k->mn_hi ? 9 : 3); c++) {
      int sc_step = c % 3 - 1, mn_step = c / 3 - 1;
      float sc[LANES], mn[LANES], s[LANES], o[LANES], err[LANES];
      for (u32 l = 0; l < LANES; l++) {
        sc[l] = nearest(was.sc[l] + (float)sc_step, k->sc_lo, k->sc_hi);
        mn[l] = k->mn_hi ? nearest(was.mn[l] + (float)mn_step, 0, k->mn_hi) : 0;
        s[l] = b->d * sc[l];
        o[l] = -(b->m * mn[l]);
      }
      errors(k, g, s, o, err);
      for (u32 l = 0; l < LANES; l++) {
        if (!(err[l] < g->err[l])) continue;
        g->err[l] = err[l];
        g->sc[l] = sc[l];
        g->mn[l] = mn[l];
      }
    }
    for (u32 l = 0; l < LANES; l++) all += (double)g->err[l];
  }
  return all;
}

/* Fits d and m by least squares for the current integers. */
static void fit_factors(SearchedBlock *b) {
  const SearchedKind *k = b->k;
  double aa = 0, am = 0, mm = 0, ra = 0, rm = 0;
  for (u32 i = 0; i < b->nset; i++) {
    const GroupSet *g = &b->set[i];
    float s[LANES], o[LANES];
    Residuals r;
    for (u32 l = 0; l < LANES; l++) {
      s[l] = b->d * g->sc[l];
      o[l] = -(b->m * g->mn[l]);
    }
    residuals(k, g, s, o, &r);
    for (u32 l = 0; l < LANES; l++) {
      double sc = (double)g->sc[l], mn = (double)g->mn[l];
      aa += sc * sc * (double)r.vv[l];
      am -= sc * mn * (double)r.v[l];
      mm += mn * mn * (double)r.w[l];
      ra += sc * (double)r.rv[l];
      rm -= mn * (double)r.r[l];
    }
  }
  double det = aa * mm - am * am, dd = 0, dm = 0;
  if (k->mn_hi && det > 1e-9 * aa * mm) {
    dd = (ra * mm - rm * am) / det;
    dm = (rm * aa - ra * am) / det;
  } else if (aa > 0) {
    dd = ra / aa;
  }
  b->d = half((double)b->d + dd);
  b->m = half((double)b->m + dm);
}

static void search_block(SearchedBlock *b) {
  SearchedBlock best;
  first_factors(b);
  double min_err = try_neighbors(b);
  best = *b;
  for (u32 t = 0; t < TURNS; t++) {
    fit_factors(b);
    double err = try_neighbors(b);
    if (!(err < min_err) || b->m < 0) break;
    min_err = err;
    best = *b;
  }
  *b = best;
}

/* ---- bytes ---- */

static void load(SearchedBlock *b, const float *x, u32 per) {
  b->nset = QBLOCK_MOST / per / LANES;
  for (u32 i = 0; i < b->nset; i++) {
    GroupSet *g = &b->set[i];
    float mean[LANES] = {0};
    memset(g, 0, sizeof *g);
    g->n = per;
    for (u32 l = 0; l < LANES; l++)
      for (u32 e = 0; e < per; e++) {
        float y = x[(i * LANES + l) * per + e];
        g->x[e][l] = y;
        mean[l] += y * y;
      }
    for (u32 l = 0; l < LANES; l++) mean[l] = sqrtf(mean[l] / (float)per);
    for (u32 e = 0; e < per; e++)
      for (u32 l = 0; l < LANES; l++) g->w[e][l] = mean[l] + fabsf(g->x[e][l]);
  }
}

static void store(const SearchedBlock *b, QBlockKind kind, u8 *to) {
  const QBlockInfo *info = &qblock_info[kind];
  i32 q[QBLOCK_MOST], sc[QBLOCK_GROUPS] = {0}, mn[QBLOCK_GROUPS] = {0};
  for (u32 i = 0; i < b->nset; i++)
    for (u32 l = 0; l < LANES; l++) {
      const GroupSet *g = &b->set[i];
      float s = b->d * g->sc[l], o = -(b->m * g->mn[l]), inverse = inverse_of(s);
      u32 at = i * LANES + l;
      sc[at] = (i32)g->sc[l] + info->scale_less;
      mn[at] = (i32)g->mn[l];
      for (u32 e = 0; e < g->n; e++)
        q[at * g->n + e] =
            (i32)nearest((g->x[e][l] - o) * inverse, b->k->lo, b->k->hi) + info->less;
    }
  qblock_join(kind, (const i32 *const[]){q, sc, mn}, b->d, b->m, to);
}

bool qblock_search(QBlockKind kind, const float *from, size_t n, u8 *to) {
  const SearchedKind *k = kinds, *end = k + sizeof kinds / sizeof *kinds;
  const QBlockInfo *info = &qblock_info[kind];
  SearchedBlock b;
  while (k < end && k->kind != kind) k++;
  if (k == end) return false;
  for (size_t j = 0; j < n; j++, from += info->elems, to += info->bytes) {
    b.k = k;
    load(&b, from, info->per);
    for (u32 i = 0; i < b.nset; i++) search_groups(k, &b.set[i]);
    search_block(&b);
    store(&b, kind, to);
  }
  return true;
}
