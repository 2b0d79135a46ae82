/* sample.h: samples the next token, and stops at stop strings.
 *
 * C99 without heap, like tokenizer.h: also part of generated C. The same logits, settings and seed
 * give the same token on every machine. exp is ingot's own, sums are double in a fixed order, the
 * generator is SplitMix64, and a draw uses the upper 53 bits of one number.
 *
 * Order: penalties, top-k, top-p, min-p, temperature, draw.
 */
#ifndef INGOT_SAMPLE_H
#define INGOT_SAMPLE_H

#include "base/base.h"

#ifndef TEXT_FN
#define TEXT_FN
#endif

typedef struct TokenSampler TokenSampler; /* settings and generator state */
typedef struct Candidate Candidate;       /* a token and its logit */
/* strings that end an answer, independent of token boundaries */
typedef struct StopStrings StopStrings;

struct TokenSampler {
  float temperature; /* <= 0: greedy; the lowest id of equal logits */
  u32 top_k;         /* 0: off */
  float top_p;       /* >= 1: off */
  float min_p;       /* minimum probability relative to the best token; 0: off */
  float repeat;      /* repetition penalty: z < 0 ? z * repeat : z / repeat; 0, 1: off */
  float frequency;   /* z -= frequency * count */
  float presence;    /* z -= presence, if it occurs */
  u32 window;        /* tokens that penalties consider; 0: all */
  u64 state;         /* starts as the seed */
};

struct Candidate {
  float z;
  u32 id;
};

/* past: tokens so far. work: n elements, n >= 1. A NaN logit is never chosen. */
TEXT_FN u32 sample_next(TokenSampler *s, const float *logit, u32 n, const u32 *past, size_t npast,
                        Candidate *work);

struct StopStrings {
  const char *const *text;
  const size_t *length;
  u32 n;
  u8 *held; /* bytes that may start a stop string */
  size_t nheld;
  bool stopped;
};

/* Required size of held and of `to` in stop_strings_put, for pieces of at most `piece` bytes. */
TEXT_FN size_t stops_buffer_bytes(const StopStrings *s, size_t piece);
/* Takes a piece of text and writes the bytes that precede any stop string. The answer ends before
 * the stop string that is complete first, even if a longer one starts earlier. */
TEXT_FN size_t stop_strings_put(StopStrings *s, const u8 *piece, size_t n, u8 *to);
/* At the end of the answer: writes the held bytes. */
TEXT_FN size_t stops_end(StopStrings *s, u8 *to);

#endif
