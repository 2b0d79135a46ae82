/* sample.h: the next token from logits, and the end of an answer.
 *
 * Plain C99 without heap, as tokenizer.h: it stands in generated C too. The same logits, settings
 * and seed give the same token on every machine and build: exp is ingot's own, sums are double and
 * in a fixed order, the generator is SplitMix64, and a draw takes the upper 53 bits of one number.
 *
 * Order of the steps: penalties, top-k, top-p, min-p, temperature, draw.
 */
#ifndef INGOT_SAMPLE_H
#define INGOT_SAMPLE_H

#include "base/base.h"

#ifndef TEXT_FN
#define TEXT_FN
#endif

typedef struct TokenSampler TokenSampler; /* settings and the state of the generator */
typedef struct Candidate Candidate;       /* a token that may be next */
typedef struct StopStrings StopStrings;   /* strings that end an answer, wherever tokens begin */

struct TokenSampler {
  float temperature; /* 0 or less: the largest logit, of equal ones the lowest id */
  u32 top_k;         /* 0: all */
  float top_p;       /* 1 or more: all */
  float min_p;       /* 0: all; else those with at least that part of the best one's probability */
  float repeat;      /* of tokens in the window: z < 0 ? z * repeat : z / repeat; 0, 1: off */
  float frequency;   /* z -= frequency * count */
  float presence;    /* z -= presence, if it is there */
  u32 window;        /* tokens that penalties look back on; 0: all that are given */
  u64 state;         /* the seed to begin with */
};

struct Candidate {
  float z;
  u32 id;
};

/* past: tokens so far, the last one at the end. work: n elements. n is at least 1. A logit that is
 * no number is never chosen. */
TEXT_FN u32 sample_next(TokenSampler *s, const float *logit, u32 n, const u32 *past, size_t npast,
                        Candidate *work);

struct StopStrings {
  const char *const *text;
  const size_t *length;
  u32 n;
  u8 *held; /* bytes that may be the beginning of one of them */
  size_t nheld;
  bool stopped;
};

/* Bytes that must fit into held and into `to` of stops_put, for pieces of at most `piece` bytes. */
TEXT_FN size_t stops_buffer_bytes(const StopStrings *s, size_t piece);
/* Takes a piece of text; writes what is certain to stand before any of the strings. The answer ends
 * in front of the one that is complete first, whatever longer one may begin before it. */
TEXT_FN size_t stops_put(StopStrings *s, const u8 *piece, size_t n, u8 *to);
/* At the end of the answer: what was held back. */
TEXT_FN size_t stops_end(StopStrings *s, u8 *to);

#endif
