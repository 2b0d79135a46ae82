/* chalf.c: functions of the file that load and store vectors of f16 and bf16.
 *
 * In: the piece being written. Out: text of a function, and its name: ig_load_f16x8(p) makes floats
 * of eight halves, ig_store_f16x8(p, v) rounds to nearest, ties to even, ig_round_f16x8(v) does
 * both and stays in the register. Conversions are instructions where the machine has them (F16C,
 * NEON) and integer arithmetic on the bits elsewhere, the same to the bit but for what a NaN
 * carries.
 */
#include "back/c/c.h"

/* f16 -> f32 of the bits u: the exponent moves into place by a product with 2^112, which also makes
 * numbers of what is below the least normal; what had all bits of the exponent set gets them again.
 */
static const char f16_widen[] = "  %u m = (u & 0x7fff) << 13, f = (%u)((%f)m * 0x1p112f);\n"
                                "  f |= (%u)(m >= 0xf800000) & 0x7f800000;\n"
                                "  return (%f)(f | (u & 0x8000) << 16);\n";

/* f32 -> f16 of the bits u: a normal number rounds by adding half of what is cut off, less one
 * where the last bit kept is 0; one below, by adding 0.5, whose last bit weighs as much as that of
 * the smallest half; what is too large is infinite, and a NaN stays one. */
static const char f16_narrow[] =
    "  %u a = u & 0x7fffffff, n = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;\n"
    "  %u s = (%u)((%f)a + 0.5f) - 0x3f000000, small = (%u)(a < 0x38800000);\n"
    "  %u over = (%u)(a >= 0x47800000), nan = (%u)(a > 0x7f800000);\n"
    "  n = (small & s) | (~small & n);\n"
    "  n = (over & (0x7c00 | (nan & (0x200 | (a >> 13 & 0x3ff))))) | (~over & n);\n"
    "  n |= u >> 16 & 0x8000;\n";

static const char bf16_widen[] = "  return (%f)(u << 16);\n";

static const char bf16_narrow[] =
    "  %u nan = (%u)((u & 0x7fffffff) > 0x7f800000), n = (u + 0x7fff + (u >> 16 & 1)) >> 16;\n"
    "  n = (nan & (u >> 16 | 0x40)) | (~nan & n);\n";

/* Text with %f and %u for the types of floats and of their bits. */
static void put_typed(Text *t, const char *text, const char *f, const char *u) {
  for (const char *s = text; *s; s++) {
    if (*s == '%' && (s[1] == 'f' || s[1] == 'u'))
      text_puts(t, *++s == 'f' ? f : u);
    else
      text_put(t, s, 1);
  }
}

/* Instructions for f16, in front of #else. */
static void put_instructions(Emit *e, Text *t, bool store, const char *f) {
  u32 w = e->b.piece.w;
  if (w == 4) {
    text_fmt(t, "#if defined(__aarch64__)\n");
    if (store)
      text_puts(t, "  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));\n");
    else
      text_fmt(t, "  return (%s)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));\n", f);
    return;
  }
  const char *mm = x86_prefix(w * 32), *si = w == 8 ? "128" : "256";
  text_fmt(t, "#if %s\n", feature_test(e, w == 8 ? "F16C" : "AVX512F"));
  if (store)
    text_fmt(t, "  _mm%s_storeu_si%s((__m%si *)p, %s_cvtps_ph((%s)v, 0));\n", w == 8 ? "" : "256",
             si, si, mm, w == 8 ? "__m256" : "__m512");
  else
    text_fmt(t, "  return (%s)%s_cvtph_ps(_mm%s_loadu_si%s((const __m%si *)p));\n", f, mm,
             w == 8 ? "" : "256", si, si);
}

const char *need_half(Emit *e, DType dt, bool store) {
  Text n = text_new(e->b.a), *t = &e->helper_text;
  u32 w = e->b.piece.w;
  put_own(e, &n, "ig_%s_%sx%u@", store ? "store" : "load", dtype_info[dt].name, w);
  const char *name = text_cstr(&n), *f = vector_type(e, VE_f32, w), *u = vector_type(e, VE_u32, w),
             *h = memory_type(e, VE_u16);
  if (!is_wanted(e, name)) return name;
  bool known = dt == DT_f16 && w >= 4;
  e->intrinsics = e->intrinsics || known;
  if (store)
    text_fmt(t, HELPER "void %s(uint16_t *p, %s v) {\n", name, f);
  else
    text_fmt(t, HELPER "%s %s(const uint16_t *p) {\n", f, name);
  if (known) {
    put_instructions(e, t, store, f);
    text_puts(t, "#else\n");
  }
  if (store) {
    text_fmt(t, "  %s u = (%s)v;\n", u, u);
    put_typed(t, dt == DT_f16 ? f16_narrow : bf16_narrow, f, u);
    text_fmt(t, "  *(%s *)p = __builtin_convertvector(n, %s);\n", h, vector_type(e, VE_u16, w));
  } else {
    text_fmt(t, "  %s u = __builtin_convertvector(*(const %s *)p, %s);\n", u, h, u);
    put_typed(t, dt == DT_f16 ? f16_widen : bf16_widen, f, u);
  }
  text_puts(t, known ? "#endif\n}\n" : "}\n");
  return name;
}

const char *need_half_round(Emit *e, DType dt) {
  Text n = text_new(e->b.a), *t = &e->helper_text;
  u32 w = e->b.piece.w;
  put_own(e, &n, "ig_round_%sx%u@", dtype_info[dt].name, w);
  const char *name = text_cstr(&n), *f = vector_type(e, VE_f32, w), *load = need_half(e, dt, false),
             *store = need_half(e, dt, true);
  if (!is_wanted(e, name)) return name;
  text_fmt(t, HELPER "%s %s(%s v) {\n  uint16_t h[%u];\n  %s(h, v);\n  return %s(h);\n}\n", f, name,
           f, w, store, load);
  return name;
}
