/* tflite_ops_resize.c: resizing of images [N, H, W, C].
 *
 * Nearest positions are computed in f32 like TensorFlow Lite. Floats and u8 are interpolated by
 * compose/resize.c. i8 and i16 use positions and weights in units of 2^-10 and integer sums,
 * bit-exact.
 */
#include "front/tflite/tflite_import.h"

#include <math.h>

typedef struct LiteResize {
  i64 out[2];
  bool corners, half;
} LiteResize;

static LiteResize read_resize(LiteNode *b, Val x, u32 field) {
  LiteResize r;
  if (lite_rank(b, x) != 4) lite_bad(b, "the operand has rank %u, expected 4", lite_rank(b, x));
  if (lite_ints(b, 1, r.out, 2) != 2) lite_bad(b, "expected two sizes, height and width");
  r.corners = flat_u8(&b->op->opt, field, 0) != 0;
  r.half = flat_u8(&b->op->opt, field + 1, 0) != 0;
  for (u32 i = 0; i < 2; i++) {
    Dim d = val_dim(b->g, x, 1 + i);
    if (r.out[i] < 1 || r.out[i] > INT16_MAX)
      lite_bad(b, "the requested size is %lld, expected 1 to 32767", (long long)r.out[i]);
    if (!dim_is_const(d)) lite_unsupported(b, "resizing an open extent is not supported");
    if (d < 1 || d > INT16_MAX) lite_bad(b, "an extent is %lld, expected 1 to 32767", (long long)d);
  }
  return r;
}

static Tensor *table(LiteNode *b, DType dt, i64 n) {
  return tensor_new(&b->c->work, dt, &n, 1);
}

void lite_resize_nearest(LiteNode *b) {
  Val x = lite_in(b, 0);
  LiteResize r = read_resize(b, x, 0);
  for (u32 k = 0; k < 2; k++) {
    i64 in = val_dim(b->g, x, 1 + k), out = r.out[k];
    bool ends = r.corners && out > 1;
    float scale = ends ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    Tensor *at = table(b, DT_i64, out);
    for (i64 i = 0; i < out; i++) {
      float place = ((float)i + (r.half ? 0.5f : 0.0f)) * scale;
      i64 p = (i64)(r.corners ? roundf(place) : floorf(place));
      tensor_set(at, (u64)i, (Scalar){.i = p < in - 1 ? p : in - 1});
    }
    x = mk_gather(b->g, x, mk_const(b->g, at), 1 + k);
  }
  lite_set_stored(b, 0, x);
}

/* Both neighbors along an axis, and the weight of the second in units of 2^-10. */
typedef struct LiteTaps {
  Val at[2], weight[2];
} LiteTaps;

enum { RESIZE_ONE = 1 << 10 };

static LiteTaps integer_taps(LiteNode *b, const LiteResize *r, i64 in, u32 k, DType dt) {
  i64 out = r->out[k], scale = (RESIZE_ONE * in + out / 2) / out;
  if (r->corners && out > 1) scale = (RESIZE_ONE * (in - 1) + (out - 1) / 2) / (out - 1);
  Tensor *at[2] = {table(b, DT_i64, out), table(b, DT_i64, out)};
  Tensor *weight[2] = {table(b, dt, out), table(b, dt, out)};
  for (i64 i = 0; i < out; i++) {
    i64 place = i * scale + (r->half ? scale / 2 - RESIZE_ONE / 2 : 0);
    i64 lo = place / RESIZE_ONE, hi = (place + RESIZE_ONE - 1) / RESIZE_ONE;
    lo = lo > 0 ? lo : 0;
    hi = hi < in - 1 ? hi : in - 1;
    i64 w = place - RESIZE_ONE * lo;
    tensor_set(at[0], (u64)i, (Scalar){.i = lo < in - 1 ? lo : in - 1});
    tensor_set(at[1], (u64)i, (Scalar){.i = hi > 0 ? hi : 0});
    tensor_set(weight[0], (u64)i, (Scalar){.i = RESIZE_ONE - w});
    tensor_set(weight[1], (u64)i, (Scalar){.i = w});
  }
  LiteTaps t;
  for (u32 i = 0; i < 2; i++) {
    t.at[i] = mk_const(b->g, at[i]);
    t.weight[i] = mk_expand_tail(b->g, mk_const(b->g, weight[i]), 2 - k);
  }
  return t;
}

static Val bilinear_integer(LiteNode *b, Val x, const LiteResize *r) {
  Graph *g = b->g;
  DType dt = lite_dt(b, x) == DT_i16 ? DT_i64 : DT_i32, as = lite_dt(b, x);
  Val sum = 0;
  i64 in[2] = {val_dim(g, x, 1), val_dim(g, x, 2)};
  for (u32 k = 0; k < 2; k++) {
    LiteTaps t = integer_taps(b, r, in[k], k, dt);
    sum = 0;
    for (u32 i = 0; i < 2; i++) {
      Val part = mk_mul(g, mk_cast(g, mk_gather(g, x, t.at[i], 1 + k), dt), t.weight[i]);
      sum = sum ? mk_add(g, sum, part) : part;
    }
    x = sum;
  }
  double one = (double)RESIZE_ONE * RESIZE_ONE;
  Val zero = mk_like(g, sum, 0), half = mk_like(g, sum, one / 2);
  Val other = mk_neg(g, half);
  sum = mk_add(g, sum, mk_select(g, mk_gt(g, sum, zero), half, other));
  return mk_cast(g, mk_div(g, sum, mk_like(g, sum, one)), as);
}

void lite_resize_bilinear(LiteNode *b) {
  Val x = lite_in(b, 0);
  LiteResize r = read_resize(b, x, 2);
  DType dt = lite_dt(b, x);
  if (dt == DT_i8 || dt == DT_i16) {
    lite_set_stored(b, 0, bilinear_integer(b, x, &r));
    return;
  }
  Resize how = {.mode = RS_linear,
                .coord = r.half      ? RC_half_pixel
                         : r.corners ? RC_align_corners
                                     : RC_asymmetric};
  ResizeAxis axis[2];
  for (u32 k = 0; k < 2; k++) {
    i64 in = val_dim(b->g, x, 1 + k);
    axis[k] = (ResizeAxis){.axis = 1 + k, .in = in, .out = r.out[k]};
    axis[k].scale = (double)r.out[k] / (double)in;
  }
  Val y = compose_resize(b->g, &how, mk_widen(b->g, dt == DT_u8 ? mk_cast(b->g, x, DT_f32) : x),
                         axis, 2);
  if (dt == DT_u8) y = mk_trunc(b->g, mk_addk(b->g, y, 0.5));
  lite_set_stored(b, 0, mk_cast(b->g, y, dt));
}
