/* cint8.c: functions of the file on bytes: sums of products, loads of four, ends of quantised sums.
 *
 * In: the piece being written. Out: text of a function, and its name. What the function computes is
 * what the program says, to the bit, on every machine: instructions are chosen by the macros of the
 * compiler, so one file serves machines with and without them. Sums of products of bytes are exact:
 * where there is no instruction for four of them (vpdpbusd, usdot), even and odd bytes are widened
 * to 16 bits, whose products pmaddwd adds in pairs without loss; pmaddubsw, which saturates, is not
 * used.
 */
#include "back/c/c.h"

const char *need_quad(Emit *e) {
  if (!is_wanted(e, "ig_quad_at")) return "ig_quad_at";
  put_own(e, &e->helper_text,
          "typedef int32_t ig_quad_mem@ __attribute__((aligned(1), may_alias));\n" HELPER
          "int32_t ig_quad_at@(const void *p) {\n"
          "#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__\n"
          "  return *(const ig_quad_mem@ *)p;\n"
          "#else\n"
          "  return (int32_t)__builtin_bswap32((uint32_t)*(const ig_quad_mem@ *)p);\n"
          "#endif\n}\n");
  return "ig_quad_at";
}

/* Even and odd bytes as 16 bits, multiplied and added in pairs. Shifts, not a mask: compilers would
 * mask the number that a is a splat of, outside of the vector registers. */
static void put_pairs(Text *t, const char *mm, const char *si) {
  text_fmt(t,
           "  __m%s lo = %s_madd_epi16(%s_srli_epi16(%s_slli_epi16((__m%s)a, 8), 8),\n"
           "                           %s_srai_epi16(%s_slli_epi16((__m%s)b, 8), 8));\n"
           "  __m%s hi = %s_madd_epi16(%s_srli_epi16((__m%s)a, 8), %s_srai_epi16((__m%s)b, 8));\n",
           si, mm, mm, mm, si, mm, mm, si, si, mm, mm, si, mm, si);
}

const char *need_dot4(Emit *e, const char *loop, const char *type) {
  Text n = text_new(e->b.a), *t = &e->helper_text;
  u32 bits = e->b.piece.w * 32;
  e->b.frame += bits; /* of what it holds, without optimisation: operands and steps */
  put_own(e, &n, "ig_dot4_i32x%u@", e->b.piece.w);
  const char *name = text_cstr(&n);
  if (bits < 128 || bits > 512) return loop;
  if (!is_wanted(e, name)) return name;
  e->intrinsics = e->dot4 = true;
  const char *mm = x86_prefix(bits);
  const char *si = bits == 128 ? "128i" : bits == 256 ? "256i" : "512i";
  text_fmt(t, HELPER "%s %s(%s a, %s b, %s c) {\n", type, name, type, type, type);
  text_fmt(t, "#if %s%s%s\n", feature_test(e, "AVX512VNNI"), bits == 512 ? "" : " && ",
           bits == 512 ? "" : feature_test(e, "AVX512VL"));
  text_fmt(t, "  return (%s)%s_dpbusd_epi32((__m%s)c, (__m%s)a, (__m%s)b);\n", type, mm, si, si,
           si);
  if (bits < 512)
    text_fmt(t,
             "#elif %s\n"
             "  return (%s)%s_dpbusd_avx_epi32((__m%s)c, (__m%s)a, (__m%s)b);\n",
             feature_test(e, "AVXVNNI"), type, mm, si, si, si);
  text_fmt(t, "#elif %s\n",
           feature_test(e, bits == 128   ? "SSE2"
                           : bits == 256 ? "AVX2"
                                         : "AVX512BW"));
  put_pairs(t, mm, si);
  text_fmt(t, "  return c + ((%s)lo + (%s)hi);\n", type, type);
  if (bits == 128)
    text_fmt(t,
             "#elif defined(__ARM_FEATURE_MATMUL_INT8)\n"
             "  return (%s)vusdotq_s32((int32x4_t)c, (uint8x16_t)a, (int8x16_t)b);\n"
             "#elif defined(__ARM_NEON)\n"
             "  int16x8_t lo = vmulq_s16((int16x8_t)(a & 0xff00ff), (int16x8_t)b << 8 >> 8);\n"
             "  int16x8_t hi = vmulq_s16((int16x8_t)((uint16x8_t)a >> 8), (int16x8_t)b >> 8);\n"
             "  return (%s)vpadalq_s16(vpadalq_s16((int32x4_t)c, lo), hi);\n",
             type, type);
  text_fmt(t, "#else\n  return %s(a, b, c);\n#endif\n}\n", loop);
  return name;
}

/* ---- bytes and floats ---- */

const char *need_widen(Emit *e, Elem from) {
  u32 w = e->b.piece.w;
  const char *u = from == VE_u8 ? "u" : "i";
  Text n = text_new(e->b.a), *t = &e->helper_text;
  if (w != 16 && w != 8) return NULL;
  put_own(e, &n, "ig_widen_%s8x%u@", u, w);
  const char *name = text_cstr(&n);
  if (!is_wanted(e, name)) return name;
  const char *type = vector_type(e, from, w), *half = vector_type(e, VE_i16, w),
             *to = vector_type(e, VE_i32, w);
  e->intrinsics = true;
  text_fmt(t, HELPER "%s %s(%s x) {\n", to, name, type);
  text_fmt(t, "#if %s\n  return (%s)", feature_test(e, w == 16 ? "AVX512F" : "AVX2"), to);
  text_fmt(t,
           w == 16 ? "_mm512_cvtep%s8_epi32((__m128i)x);\n"
                   : "_mm256_cvtep%s8_epi32((__m128i){(long long)x, 0});\n",
           u);
  text_fmt(t,
           "#else\n"
           "  return __builtin_convertvector(__builtin_convertvector(x, %s), %s);\n#endif\n}\n",
           half, to);
  return name;
}

ExprId quantised(Emit *e, const Expr *cast, i64 *k) {
  const Expr *x = prog_expr(e->p, cast->arg[0]);
  *k = 0;
  if (!cast->sat || x->dt != DT_f32 || (cast->dt != DT_u8 && cast->dt != DT_i8)) return 0;
  if (e->b.piece.w < 4 || tmp_name(e, cast->arg[0])) return 0;
  if (x->kind == EX_op && x->op == OP_add) {
    const Expr *s = prog_expr(e->p, x->arg[1]);
    const Expr *c = s->kind == EX_splat ? prog_expr(e->p, s->arg[0]) : s;
    if (c->kind != EX_const || !(c->imm.f >= -255 && c->imm.f <= 255)) return 0;
    *k = (i64)c->imm.f;
    if ((double)*k != c->imm.f || tmp_name(e, x->arg[0])) return 0;
    x = prog_expr(e->p, x->arg[0]);
  }
  return x->kind == EX_op && x->op == OP_round ? x->arg[0] : 0;
}

static i64 splat_int(Emit *e, ExprId id) {
  const Expr *s = prog_expr(e->p, id);
  const Expr *c = s->kind == EX_splat ? prog_expr(e->p, s->arg[0]) : s;
  return c->kind == EX_const ? c->imm.i : INT64_MIN;
}

ExprId requantised(Emit *e, const Expr *cast, DType *as, i64 *k) {
  ExprId id = cast->arg[0];
  const Expr *x = prog_expr(e->p, id);
  i64 less = 0;
  if (cast->dt != DT_f32 || e->b.piece.w < 4 || tmp_name(e, id)) return 0;
  if (x->kind == EX_op && x->op == OP_sub && x->dt == DT_i32) {
    less = splat_int(e, x->arg[1]);
    id = x->arg[0];
    x = prog_expr(e->p, id);
    if (tmp_name(e, id)) return 0;
  }
  if (x->kind == EX_op && x->op == OP_cast && x->dt == DT_i32) {
    id = x->arg[0];
    x = prog_expr(e->p, id);
    if (tmp_name(e, id)) return 0;
  }
  if (x->kind != EX_op || x->op != OP_cast) return 0;
  *as = x->dt;
  ExprId y = quantised(e, x, k);
  return y && *k == less ? y : 0;
}

/* What says that the machine has vectors of w floats; never defined for other widths. */
static const char *x86_test(Emit *e, u32 w) {
  return w == 4    ? feature_test(e, "SSE2")
         : w == 8  ? feature_test(e, "AVX2")
         : w == 16 ? feature_test(e, "AVX512F")
                   : "0";
}

/* What is left of x when round(x) + k, saturated, is taken as a number less k: no byte is made of
 * it. NaN becomes 0 less k. The sum with 1.5 * 2^23 rounds to whole numbers, and 0 has no sign. */
const char *need_requantise(Emit *e, DType as) {
  u32 w = e->b.piece.w;
  e->b.frame += w * 64;
  Text n = text_new(e->b.a), *t = &e->helper_text;
  put_own(e, &n, "ig_requantise_%sx%u@", dtype_info[as].name, w);
  const char *name = text_cstr(&n), *select = need_select(e, VE_f32);
  if (!is_wanted(e, name)) return name;
  const char *f = vector_type(e, VE_f32, w), *mm = x86_prefix(w * 32), *has = x86_test(e, w);
  Scalar lo, hi;
  dtype_limits(as, &lo, &hi);
  e->intrinsics = true;
  text_fmt(t, HELPER "%s %s(%s x, int k) {\n", f, name, f);
  text_fmt(t, "  %s lo = (float)(%d - k) - (%s){0}, hi = (float)(%d - k) - (%s){0};\n", f,
           (int)lo.i, f, (int)hi.i, f);
  text_fmt(t, "#if %s\n  %s r = %s_min_ps(%s_max_ps(x, lo), hi);\n", has, f, mm, mm);
  text_fmt(t, "#else\n  %s t = %s(x > lo, x, lo), r = %s(t < hi, t, hi);\n#endif\n", f, select,
           select);
  text_puts(t, "  r = r + 0x1.8p23f - 0x1.8p23f;\n");
  if (lo.i) text_fmt(t, "  r = %s(x == x, r, (float)-k - (%s){0});\n", select, f);
  text_puts(t, "  return r;\n}\n");
  return name;
}

/* round(x) + k, saturated. The bounds are whole numbers, so they may be met before rounding; NaN
 * becomes 0. */
const char *need_quantise(Emit *e, DType to) {
  u32 w = e->b.piece.w;
  e->b.frame += w * 64;
  Text n = text_new(e->b.a), *t = &e->helper_text;
  put_own(e, &n, "ig_quantise_%sx%u@", dtype_info[to].name, w);
  const char *name = text_cstr(&n), *select = need_select(e, VE_f32);
  if (!is_wanted(e, name)) return name;
  const char *f = vector_type(e, VE_f32, w), *i = vector_type(e, VE_i32, w),
             *type = vector_type(e, elem_of(to), w);
  const char *mm = x86_prefix(w * 32), *has = x86_test(e, w);
  Scalar lo, hi;
  dtype_limits(to, &lo, &hi);
  e->intrinsics = true;
  text_fmt(t, HELPER "%s %s(%s x, int k) {\n", type, name, f);
  text_fmt(t, "  %s lo = (float)(%d - k) - (%s){0}, hi = (float)(%d - k) - (%s){0};\n", f,
           (int)lo.i, f, (int)hi.i, f);
  text_fmt(t, "#if %s\n", has);
  if (w == 16 && !lo.i) /* what is too large is large without a sign too, and saturates */
    text_fmt(t,
             "  (void)hi;\n"
             "  return (%s)_mm512_cvtusepi32_epi8(\n"
             "      _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_max_ps(x, lo)), "
             "_mm512_set1_epi32(k)));\n#else\n",
             type);
  else
    text_fmt(t, "  %s r = (%s)%s_cvtps_epi32(%s_min_ps(%s_max_ps(x, lo), hi)) + k;\n#else\n", i, i,
             mm, mm, mm);
  text_fmt(t,
           "  %s t = %s(x > lo, x, lo);\n"
           "  %s r = (%s)(%s(t < hi, t, hi) + 0x1.8p23f) - 0x4b400000 + k;\n",
           f, select, i, i, select);
  bool done = w == 16 && !lo.i;
  if (!done) text_puts(t, "#endif\n");
  if (lo.i) text_fmt(t, "  r &= (%s)(x == x);\n", i);
  const char *pack = to == DT_u8 ? "us" : "s";
  if (w == 16 && !done)
    text_fmt(t, "#if %s\n  return (%s)_mm512_cvtepi32_epi8((__m512i)r);\n#else\n", has, type);
  if (w == 8)
    text_fmt(t,
             "#if %s\n"
             "  __m128i p = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)r),\n"
             "                              _mm256_extracti128_si256((__m256i)r, 1));\n"
             "  return (%s)_mm_cvtsi128_si64(_mm_pack%s_epi16(p, p));\n#else\n",
             has, type, pack);
  text_puts(t, "  return ");
  const char *end = open_convert(e, t, VE_i32, elem_of(to));
  text_fmt(t, "r%s;\n%s}\n", end, w == 16 || w == 8 ? "#endif\n" : "");
  return name;
}
