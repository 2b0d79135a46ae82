/* random.c: random numbers.
 *
 * With a seed: a 64-bit congruential generator makes a 32-byte key for ChaCha with 12 rounds (D. J.
 * Bernstein). Normal numbers by Box-Muller; its second result is not used, for compatibility with
 * earlier programs. Without a seed: a running seed that starts with that of the run.
 */
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

typedef struct ChaCha {
  u32 key[8], out[16];
  u64 block;
  u32 used; /* words of out consumed */
} ChaCha;

static u32 left(u32 x, u32 n) {
  return x << n | x >> (32 - n);
}

static void quarter(u32 *x, u32 a, u32 b, u32 c, u32 d) {
  x[a] += x[b], x[d] = left(x[d] ^ x[a], 16);
  x[c] += x[d], x[b] = left(x[b] ^ x[c], 12);
  x[a] += x[b], x[d] = left(x[d] ^ x[a], 8);
  x[c] += x[d], x[b] = left(x[b] ^ x[c], 7);
}

static void fill(ChaCha *r) {
  u32 in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  memcpy(in + 4, r->key, sizeof r->key);
  in[12] = (u32)r->block;
  in[13] = (u32)(r->block >> 32);
  memcpy(r->out, in, sizeof in);
  for (u32 i = 0; i < 6; i++) { /* columns, then diagonals: two rounds */
    for (u32 k = 0; k < 4; k++) quarter(r->out, k, k + 4, k + 8, k + 12);
    for (u32 k = 0; k < 4; k++)
      quarter(r->out, k, (k + 1) % 4 + 4, (k + 2) % 4 + 8, (k + 3) % 4 + 12);
  }
  for (u32 i = 0; i < 16; i++) r->out[i] += in[i];
  r->block++;
  r->used = 0;
}

static ChaCha start(u64 seed) {
  ChaCha r = {.used = 16};
  for (u32 i = 0; i < 8; i++) {
    seed = seed * 6364136223846793005u + 11634580027462260723u;
    u32 x = (u32)(((seed >> 18) ^ seed) >> 27), turn = (u32)(seed >> 59);
    r.key[i] = x >> turn | x << ((32 - turn) & 31);
  }
  return r;
}

static u32 word(ChaCha *r) {
  if (r->used == 16) fill(r);
  return r->out[r->used++];
}

static double uniform(ChaCha *r) {
  u64 low = word(r), high = word(r);
  return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

static u64 next_seed(Eval *ev) {
  return random_bits(ev->random, ev->serial);
}

static LazyTensor *draw(Eval *ev, const i64 *dim, u32 rank, u64 seed, bool normal) {
  LazyTensor *t = lazy_new(ev, dim, rank);
  ChaCha r = start(seed);
  for (u64 i = 0; i < t->n; i++) {
    double u = uniform(&r);
    if (normal)
      u = sqrt(-2 * number_of(OP_log, u, 0)) * number_of(OP_cos, 2 * M_PI * uniform(&r), 0);
    t->data[i] = u;
  }
  return t;
}

LazyTensor *random_tensor(Eval *ev, const i64 *dim, u32 rank) {
  return draw(ev, dim, rank, next_seed(ev), true);
}

LazyTensor *random_tensor_uniform(Eval *ev, const i64 *dim, u32 rank) {
  return draw(ev, dim, rank, next_seed(ev), false);
}

static LangValue drawn(Eval *ev, const LangValue *shape, u64 seed, bool normal) {
  i64 dim[MAX_RANK];
  u32 rank = arg_shape(ev, shape, dim);
  return value_tensor(draw(ev, dim, rank, seed, normal));
}

void bi_tensor_randn_seeded(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = drawn(ev, &arg[0], (u64)arg_int(ev, &arg[1]), true);
  (void)n;
}

void bi_tensor_randn(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = drawn(ev, &arg[0], next_seed(ev), true);
  (void)n;
}

void bi_tensor_rand(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = drawn(ev, &arg[0], next_seed(ev), false);
  (void)n;
}

void bi_random_normal(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = drawn(ev, &arg[0], n > 1 ? (u64)arg_int(ev, &arg[1]) : next_seed(ev), true);
}

void bi_random_uniform(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  *out = drawn(ev, &arg[0], n > 1 ? (u64)arg_int(ev, &arg[1]) : next_seed(ev), false);
}
