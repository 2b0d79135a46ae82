/* The sampler. Without arguments: greedy, ties, stop strings.
 *
 * `sample FILE` reads cases, each one line: temperature top_k top_p min_p repeat frequency presence
 * window seed draws n npast, then n logits and npast ids; prints the tokens drawn, a line for each.
 */
#include "chat/sample.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static int convert(const char *path) {
  static float logit[MOST];
  static u32 past[MOST];
  static Candidate work[MOST];
  FILE *f = fopen(path, "r");
  TokenSampler s;
  unsigned long long seed;
  unsigned draws, n, npast;
  if (!f) return 1;
  while (fscanf(f, "%f %u %f %f %f %f %f %u %llu %u %u %u", &s.temperature, &s.top_k, &s.top_p,
                &s.min_p, &s.repeat, &s.frequency, &s.presence, &s.window, &seed, &draws, &n,
                &npast) == 12) {
    s.state = seed;
    if (n > MOST || npast > MOST) return 1;
    for (u32 i = 0; i < n; i++)
      if (fscanf(f, "%f", &logit[i]) != 1) return 1;
    for (u32 i = 0; i < npast; i++)
      if (fscanf(f, "%u", &past[i]) != 1) return 1;
    for (u32 i = 0; i < draws; i++) printf("%u ", sample_next(&s, logit, n, past, npast, work));
    printf("\n");
  }
  fclose(f);
  return 0;
}

/* Whatever the pieces are, what comes out is the text up to the first stop string. */
static void check_stops(void) {
  static const char *const stop[] = {"\n\nUser:", "END", "ab", "pqrX", "q"};
  static const size_t length[] = {7, 3, 2, 4, 1};
  static const char *const text[] = {
      "hello END x", "a a EN\n\nUser: y", "no stop EN", "aab", "\n\n\nUser:", "ENEND", "1 pq",
      "pqrX"};
  static const char *const want[] = {"hello ", "a a EN", "no stop EN", "a", "\n", "EN", "1 p", "p"};
  for (int t = 0; t < 8; t++)
    for (size_t step = 1; step < 6; step++) {
      u8 held[64], to[64];
      char out[64];
      size_t n = strlen(text[t]), at = 0;
      StopStrings s = {.text = stop, .length = length, .n = 5, .held = held};
      CHECK(stops_buffer_bytes(&s, 5) == 12);
      for (size_t i = 0; i < n; i += step) {
        size_t k = n - i < step ? n - i : step;
        k = stop_strings_put(&s, (const u8 *)text[t] + i, k, to);
        memcpy(out + at, to, k);
        at += k;
      }
      size_t k = stops_end(&s, to);
      memcpy(out + at, to, k);
      at += k;
      CHECK(at == strlen(want[t]) && !memcmp(out, want[t], at) && s.stopped == (t != 2));
    }
}

static void check_greedy(void) {
  float z[] = {1, 3, 3, -1, 0};
  u32 past[] = {1, 1, 4};
  Candidate work[5];
  TokenSampler s = {.temperature = 0, .top_p = 1};
  CHECK(sample_next(&s, z, 5, NULL, 0, work) == 1);
  s.repeat = 2;
  CHECK(sample_next(&s, z, 5, past, 3, work) == 2);
  s.repeat = 1, s.frequency = 1.5f;
  CHECK(sample_next(&s, z, 5, past, 3, work) == 2);
  s.window = 1;
  CHECK(sample_next(&s, z, 5, past, 3, work) == 1);
  float odd[] = {0.0f / 1, (float)__builtin_nanf(""), -(float)__builtin_inff()};
  TokenSampler t = {.temperature = 1, .top_p = 1, .state = 5};
  for (int i = 0; i < 100; i++) CHECK(sample_next(&t, odd, 3, NULL, 0, work) == 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return convert(argv[1]);
  check_greedy();
  check_stops();
  return check_end();
}
