/* segment.h: convolution windows that mostly lie in padding. */
#ifndef INGOT_SEGMENT_H
#define INGOT_SEGMENT_H

#include "ir/target.h"
#include "pass/form/form.h"

/* A window along one dimension. Position k of the window at output o reads element (o * stride + k
 * * dilation - pad) / input_dilation; it is a zero if that is not an integer. */
typedef struct WindowDim {
  i64 places, size, extent;
  i64 stride, dilation, pad, input_dilation;
} WindowDim;

/* Outputs lo..hi whose window is inside the operand exactly at positions from..to. */
typedef struct Segment {
  i64 lo, hi, from, to;
} Segment;

enum { MAX_SEGMENTS = 9 };

/* Window of each dimension of a convolution, from dimension 2 on; returns their number. */
u32 conv_windows(Graph *g, const Node *n, WindowDim *s);
/* Segments of all outputs, in order; 0: too many, or some window lies entirely in padding. */
u32 window_segments(const WindowDim *s, Segment *out);
/* Fraction of taps (positions of all windows) that read an element; 1 if there are too many
 * segments. */
double windows_hit_ratio(const WindowDim *s, u32 n);
/* Are segments faster than reading zeros? */
bool windows_are_sparse(const Target *t, const WindowDim *s, u32 n);

/* Windows of a convolution that may leave its operand; returns their number, 0: none. *dim: first
 * dimension of in[0] that they slide over. */
u32 form_windows(Prog *p, const Form *f, WindowDim *s, u32 *dim);
/* Interior of a pooling window along the axis along which the result is contiguous; false: none. */
bool form_windows_interior(Prog *p, const Form *f, u32 *axis, Segment *in);
/* Part of such a form at outputs from..to, without bounds checks. */
Form form_interior(const Form *f, u32 axis, i64 from, i64 to);
/* Part of such a form at one output, with the positions that are inside; false: none is. */
bool form_place(Prog *p, const Form *f, i64 place, Form *part);
/* Part of a form with these segments, without bounds checks. */
Form form_segment(const Form *f, u32 dim, u32 n, const Segment *at);

#endif
