/* sample.c: see sample.h.
 *
 * Candidates are a heap ordered by logit, then by lower id. Only the candidates that top-k and
 * top-p need are taken from it: O(n + k log n).
 */
#include "chat/sample.h"
#include "ir/math/mathlibd.h"
#include <string.h>

/* ---- penalties ---- */

static void penalize(const TokenSampler *s, Candidate *work, u32 n, const u32 *past, size_t npast) {
  bool repeat = s->repeat > 0 && s->repeat != 1;
  if (!repeat && s->frequency == 0 && s->presence == 0) return;
  size_t from = s->window && npast > s->window ? npast - s->window : 0;
  for (size_t i = from; i < npast; i++) {
    u32 id = past[i], count = 0;
    bool first = id < n;
    for (size_t k = from; k < i && first; k++) first = past[k] != id;
    if (!first) continue;
    for (size_t k = i; k < npast; k++) count += past[k] == id;
    float z = work[id].z;
    if (repeat) z = z <= 0 ? z * s->repeat : z / s->repeat;
    z -= (float)count * s->frequency;
    work[id].z = z - s->presence;
  }
}

static bool better(Candidate a, Candidate b) {
  return a.z != b.z ? a.z > b.z : a.id < b.id;
}

static void sift(Candidate *heap, size_t n, size_t k) {
  Candidate x = heap[k];
  for (size_t kid; (kid = 2 * k + 1) < n; k = kid) {
    if (kid + 1 < n && better(heap[kid + 1], heap[kid])) kid++;
    if (!better(heap[kid], x)) break;
    heap[k] = heap[kid];
  }
  heap[k] = x;
}

/* Moves the best candidate after the other n - 1. */
static Candidate take(Candidate *heap, size_t n) {
  Candidate best = heap[0];
  heap[0] = heap[n - 1];
  heap[n - 1] = best;
  if (n > 1) sift(heap, n - 1, 0);
  return best;
}

/* ---- filters ---- */

/* Candidates left by top-k and top-p, best first, at the end of work. Returns their number. */
static u32 best_ones(const TokenSampler *s, Candidate *work, u32 n) {
  u32 most = s->top_k && s->top_k < n ? s->top_k : n, kept = 0;
  double all = 0, sum = 0;
  for (u32 k = n / 2; k-- > 0;) sift(work, n, k);
  double top = (double)work[0].z;
  /* Top-p needs the sum over all candidates that top-k keeps. */
  if (s->top_p < 1 && most == n)
    for (u32 i = 0; i < n; i++) all += im_exp((double)work[i].z - top);
  if (s->top_p < 1 && most < n) {
    for (u32 i = 0; i < most; i++) all += im_exp((double)take(work, n - i).z - top);
    while (kept < most && (kept == 0 || sum < (double)s->top_p * all))
      sum += im_exp((double)work[n - 1 - kept++].z - top);
    return kept;
  }
  while (kept < most && (kept == 0 || s->top_p >= 1 || sum < (double)s->top_p * all))
    sum += im_exp((double)take(work, n - kept++).z - top);
  return kept;
}

static u64 next_number(u64 *state) {
  u64 z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double weight(const TokenSampler *s, double top, float z) {
  double away = (double)z - top;
  if (s->min_p > 0 && im_exp(away) < (double)s->min_p) return 0;
  return im_exp(away / (double)s->temperature);
}

u32 sample_next(TokenSampler *s, const float *logit, u32 n, const u32 *past, size_t npast,
                Candidate *work) {
  const float lowest = -3.4028235e38f;
  Candidate best = {lowest, 0};
  for (u32 i = 0; i < n; i++) work[i] = (Candidate){logit[i] > lowest ? logit[i] : lowest, i};
  penalize(s, work, n, past, npast);
  for (u32 i = 0; i < n; i++) {
    work[i].z = work[i].z > lowest ? work[i].z : lowest;
    if (i == 0 || better(work[i], best)) best = work[i];
  }
  if (!(s->temperature > 0)) return best.id;
  bool sorted = (s->top_k && s->top_k < n) || s->top_p < 1;
  u32 kept = sorted ? best_ones(s, work, n) : n;
  double sum = 0, at = 0, u = (double)(next_number(&s->state) >> 11) * 0x1p-53;
  for (u32 i = 0; i < kept; i++) sum += weight(s, (double)best.z, work[sorted ? n - 1 - i : i].z);
  u32 last = best.id;
  for (u32 i = 0; i < kept; i++) {
    const Candidate *c = &work[sorted ? n - 1 - i : i];
    double w = weight(s, (double)best.z, c->z);
    if (w == 0) continue;
    at += w;
    last = c->id;
    if (u * sum < at) break;
  }
  return last;
}

/* ---- stop strings ---- */

size_t stops_buffer_bytes(const StopStrings *s, size_t piece) {
  size_t most = 0;
  for (u32 i = 0; i < s->n; i++) most = s->length[i] > most ? s->length[i] : most;
  return most + piece;
}

/* True if held[..end) ends with text[i]. */
static bool stop_ends(const StopStrings *s, size_t end, u32 i) {
  size_t n = s->length[i];
  return n && n <= end && !memcmp(s->held + end - n, s->text[i], n);
}

/* True if held from `at` on is a prefix of text[i]. */
static bool stop_begins(const StopStrings *s, size_t at, u32 i) {
  size_t n = s->nheld - at;
  return n < s->length[i] && !memcmp(s->held + at, s->text[i], n);
}

/* Finds the first complete stop string in the held text, the longest if several end there, and sets
 * `stopped`. If none is complete: the start of a suffix that a stop string may begin with. */
static size_t first_stop(StopStrings *s) {
  size_t at = s->nheld;
  for (size_t end = 1; end <= s->nheld && !s->stopped; end++)
    for (u32 i = 0; i < s->n; i++) {
      if (!stop_ends(s, end, i)) continue;
      at = end - s->length[i] < at ? end - s->length[i] : at;
      s->stopped = true;
    }
  if (s->stopped) return at;
  for (at = 0; at < s->nheld; at++)
    for (u32 i = 0; i < s->n; i++)
      if (stop_begins(s, at, i)) return at;
  return at;
}

size_t stop_strings_put(StopStrings *s, const u8 *piece, size_t n, u8 *to) {
  if (s->stopped) return 0;
  memcpy(s->held + s->nheld, piece, n);
  s->nheld += n;
  size_t at = first_stop(s);
  memcpy(to, s->held, at);
  s->nheld = s->stopped ? 0 : s->nheld - at;
  memmove(s->held, s->held + at, s->nheld);
  return at;
}

size_t stops_end(StopStrings *s, u8 *to) {
  size_t n = s->stopped ? 0 : s->nheld;
  memcpy(to, s->held, n);
  s->nheld = 0;
  return n;
}
