/* segment.h: windows that mostly stand outside of what they slide over. */
#ifndef INGOT_SEGMENT_H
#define INGOT_SEGMENT_H

#include "ir/target.h"
#include "pass/lower/form.h"

/* A window along one dimension: place o and position k meet element o * stride + k * dilation -
 * pad, over `input_dilation` where elements stand so far apart. */
typedef struct WindowDim {
  i64 places, size, extent;
  i64 stride, dilation, pad, input_dilation;
} WindowDim;

/* Places lo..hi that meet something at positions from..to, and nothing at the others. */
typedef struct Segment {
  i64 lo, hi, from, to;
} Segment;

enum { MOST_SEGMENTS = 9 };

/* Those of a convolution, one for each dimension from 2 on; their number. */
u32 conv_windows(Graph *g, const Node *n, WindowDim *s);
/* Segments of all places, in order; 0: there are more, or a place meets nothing at all. */
u32 window_segments(const WindowDim *s, Segment *out);
/* Places where every position meets something; false: there are none. */
bool window_interior(const WindowDim *s, Segment *out);
/* Fraction of taps (positions of all windows) that meet an element; 1 also where there are too many
 * segments. */
double windows_hit_ratio(const WindowDim *s, u32 n);
/* Is it worth while to go through segments instead of reading zeros? */
bool windows_are_sparse(const Target *t, const WindowDim *s, u32 n);

/* The windows of a convolution that may leave its operand, and their number; *dim: that dimension
 * of in[0] is the first they slide over. 0: none. */
u32 form_windows(Prog *p, const Form *f, WindowDim *s, u32 *dim);
/* Places of the axis that the result of a fold without weights is contiguous along, where no
 * position of its window leaves the operand there; false: none. */
bool form_windows_interior(Prog *p, const Form *f, u32 *axis, Segment *in);
/* The part of such a form at places from..to: none of them needs a guard. */
Form form_interior(const Form *f, u32 axis, i64 from, i64 to);
/* Its part at one place, where the window meets what it meets there; false: that is nothing. */
bool form_place(Prog *p, const Form *f, i64 place, Form *part);
/* The part of a form that has these segments of its windows: nothing in it falls outside. */
Form form_segment(const Form *f, u32 dim, u32 n, const Segment *at);

#endif
