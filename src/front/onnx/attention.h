/* attention.h: what the operators around attention share. All tensors are [batch, heads, length,
 * size]. */
#ifndef INGOT_ATTENTION_H
#define INGOT_ATTENTION_H

#include "front/onnx/builder.h"

/* [batch, length, heads * size] to [batch, heads, length, size]; rank 4 stays. */
Val attn_split(Build *b, Val x, i64 heads);
Val attn_merge(Build *b, Val x); /* back to [batch, length, heads * size] */
/* q . k of each query head with the key head of its group, times scale (0: one over the root of the
 * size). */
Val attn_scores(Build *b, Val q, Val k, double scale);
Val attn_mix(Build *b, Val p, Val v);      /* probabilities times values, likewise */
Val attn_cap(Build *b, Val s, double cap); /* cap * tanh(s / cap); 0: none */
/* Scores where keep is false become -Inf (or `low`). */
Val attn_hide(Build *b, Val s, Val keep, double low);
/* bool [length of q, length of k]: key j may be seen by query i when i + past - left <= j <= i +
 * past + right; -1: no bound on that side, but not on both. */
Val attn_window(Build *b, Val s, Val past, i64 left, i64 right);
/* over the last axis; a row of -Inf gives zeros */
Val attn_softmax(Build *b, Val s);
/* cos, sin: [batch or 1, length, half] against x [batch, heads, length, size]; what is beyond 2 *
 * half stays. */
Val attn_rotate(Build *b, Val x, Val cos, Val sin, bool interleaved);

/* ops_ms_attention.c: from a projection [batch, length, q + k + v] on, with the numbers of the
 * inputs for mask, past and bias; sets both outputs, of type dt. */
void attn_projected(Build *b, Val x, u32 mask, u32 past, u32 bias, DType dt);

#endif
