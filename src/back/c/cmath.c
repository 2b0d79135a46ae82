/* cmath.c: functions of quick.def on vectors.
 *
 * In: an operation of a program that says `math fast` or `math fused`, and the piece being written.
 * Out: the name of a function of such vectors, whose text goes to the file. Method: the steps of
 * the function, each the operation that the extension has for vectors, or a function that is
 * written here: the same operations in the same order as for one float, hence the same bits;
 * imk_pow2 rounds once either way.
 */
#include "back/c/c.h"

#include "ir/quick.h"

#include <string.h>

enum { VALUES = 64 }; /* that such a function keeps on the stack where it is not inlined */

#define INLINE "static inline IG_QUICK "

/* An instruction of x86 on vectors of the piece. */
static void put_instruction(Emit *e, Text *t, const char *name, const char *args) {
  e->intrinsics = true;
  text_fmt(t, "  return %s_%s_ps(%s);\n", x86_prefix(e->b.piece.w <= 4 ? 128 : e->b.piece.w * 32),
           name, args);
}

/* 0: such vectors are none of x86's. */
static const char *x86(const Emit *e) {
  return e->b.piece.w < 4 ? "0" : "defined(__x86_64__)";
}

static void put_all(Emit *e, Text *t, const char *f) {
  put_own(e, t, INLINE "%s imk_allx%u@(float x) {\n  return x - (%s){0};\n}\n", f, e->b.piece.w, f);
}

/* By the instruction: compilers do not all find it. */
static void put_extreme(Emit *e, Text *t, bool larger, const char *f, const char *u) {
  put_own(e, t, INLINE "%s imk_%sx%u@(%s a, %s b) {\n#if %s\n", f, larger ? "larger" : "lesser",
          e->b.piece.w, f, f, x86(e));
  put_instruction(e, t, larger ? "max" : "min", "a, b");
  text_fmt(t,
           "#else\n  %s m = (%s)(a %s b);\n  return (%s)(((%s)a & m) | ((%s)b & ~m));\n#endif\n}\n",
           u, u, larger ? ">" : "<", f, u, u);
}

static void put_mad(Emit *e, Text *t, const char *f) {
  u32 w = e->b.piece.w;
  e->math[OP_fma][MP_f] = true;
  put_own(e, t, INLINE "%s imk_madx%u@(%s a, %s b, %s c) {\n#if %s && %s\n", f, w, f, f, f, x86(e),
          feature_test(e, "FMA"));
  put_instruction(e, t, "fmadd", "a, b, c");
  put_own(e, t,
          "#else\n  union {\n    %s v;\n    float at[%u];\n  } x = {a}, y = {b}, r = {c};\n"
          "  for (unsigned z = 0; z < %u; z++) r.at[z] = im_fmaf@(x.at[z], y.at[z], r.at[z]);\n"
          "  return r.v;\n#endif\n}\n",
          f, w, w);
}

static void put_pow2(Emit *e, Text *t, const char *f, const char *u) {
  put_own(e, t, INLINE "%s imk_pow2x%u@(%s p, %s t) {\n#if %s && %s && %s\n", f, e->b.piece.w, f, f,
          x86(e), feature_test(e, "AVX512F"), feature_test(e, "AVX512VL"));
  put_instruction(e, t, "scalef", "p, t - 0x1.8p23f");
  text_fmt(t,
           "#else\n  %s m = (%s)t - 0x4b3fff02u, h = m >> 1;\n"
           "  return p * (%s)(h << 23) * (%s)((m - h) << 23);\n#endif\n}\n",
           u, u, f, f);
}

/* Lanes from 2^13 on, which are rare, one by one. */
static void put_far(Emit *e, Text *t, Op op, const char *f, const char *u) {
  const char *name = op_info[op].name;
  u32 w = e->b.piece.w;
  e->math[op][MP_f] = true;
  put_own(e, t,
          "static __attribute__((noinline)) %s imk_each%sx%u@(%s x, %s y) {\n"
          "  union {\n    %s v;\n    float at[%u];\n  } a = {x}, r = {y};\n"
          "  for (unsigned z = 0; z < %u; z++)\n"
          "    if (!(a.at[z] < 0x1p13f && a.at[z] > -0x1p13f)) r.at[z] = im_%sf@(a.at[z]);\n"
          "  return r.v;\n}\n",
          f, name, w, f, f, f, w, w, name);
  put_own(e, t,
          INLINE "%s imk_far%sx%u@(%s x, %s y) {\n"
                 "  union {\n    %s v;\n    uint32_t at[%u];\n"
                 "  } m = {(%s)(x < 0x1p13f) & (%s)(x > -0x1p13f)};\n"
                 "  uint32_t near = m.at[0];\n"
                 "  for (unsigned z = 1; z < %u; z++) near &= m.at[z];\n"
                 "  return near ? y : imk_each%sx%u@(x, y);\n}\n",
          f, name, w, f, f, u, w, u, u, w, name, w);
}

/* The function that an operation is, where it is one. */
static void put_operation(Emit *e, Text *t, QuickOp op, const char *f, const char *u) {
  switch (op) {
  case QO_const: put_all(e, t, f); break;
  case QO_lesser:
  case QO_larger: put_extreme(e, t, op == QO_larger, f, u); break;
  case QO_mad: put_mad(e, t, f); break;
  case QO_pow2: put_pow2(e, t, f, u); break;
  case QO_farsin: put_far(e, t, OP_sin, f, u); break;
  case QO_farcos: put_far(e, t, OP_cos, f, u); break;
  default: break;
  }
}

/* A function, after those that it needs. */
static void put_function(Emit *e, const char *name) {
  u32 w = e->b.piece.w;
  Text key = text_new(e->b.a), suffix = text_new(e->b.a);
  const char *f = vector_type(e, VE_f32, w), *u = vector_type(e, VE_u32, w);
  Quick q;
  text_fmt(&key, "%sx%u", name, w);
  if (!is_wanted(e, text_cstr(&key)) || !quick_find(&q, name)) return;
  for (u32 i = 0; i < q.n; i++)
    if (q.step[i].op == QO_call) put_function(e, q.step[i].text);
  for (u32 op = 0; op < QO_COUNT; op++) { /* not by steps, whose order is the compiler's */
    const char *part = op == QO_const ? "imk_all" : quick_function((QuickOp)op);
    Text id = text_new(e->b.a);
    text_fmt(&id, "%sx%u", part ? part : "", w);
    if (part && quick_has(&q, (QuickOp)op) && is_wanted(e, text_cstr(&id)))
      put_operation(e, &e->helper_text, (QuickOp)op, f, u);
  }
  put_own(e, &suffix, "x%u@", w);
  quick_write(&e->helper_text, &q, &(QuickForm){INLINE, f, u, text_cstr(&suffix), w});
}

const char *need_quick(Emit *e, const Expr *x) {
  const char *part = math_name(e->c, x->op, math_part(e, x->op, x->dt));
  Text name = text_new(e->b.a);
  if (!e->quick_frame)
    text_puts(&e->helper_text,
              "#ifdef __OPTIMIZE__\n#define IG_QUICK __attribute__((always_inline))\n"
              "#else\n#define IG_QUICK\n#endif\n");
  u64 frame = VALUES * 4 * e->b.piece.w;
  if (frame > e->quick_frame) e->quick_frame = frame;
  put_function(e, part);
  put_own(e, &name, "im_%sx%u@", part, e->b.piece.w);
  return text_cstr(&name);
}
