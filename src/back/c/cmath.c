/* cmath.c: functions of mathlibq.h on vectors.
 *
 * In: an operation of a program that says `math fast` or `math fused`, and the piece being written.
 * Out: the name of a function of such vectors, whose text goes to the file. Method: the text of the
 * scalar function with vector types for its types and the number of lanes behind its name: the same
 * operations in the same order, hence the same bits. The few parts that no text says for both are
 * here; imk_pow2 rounds once either way. Does not check that a text is fit for it: a compiler does,
 * and the tests.
 */
#include "back/c/c.h"

#include <string.h>

/* Parts in a form of their own. `lane` and `bits` are one element, W is the number of lanes; MIN
 * and MAX are instructions where X86 holds: compilers do not all find them. FMA and others that
 * begin like it say whether the machine has them. */
static const struct Own {
  const char *name;
  Op op; /* scalar function that it calls; OP_cast: none */
  const char *text;
} own[] = {
    {"imk_f32", OP_cast, "static inline float imk_f32@(uint32_t u) {\n  return (float)u;\n}\n"},
    {"imk_u32", OP_cast, "static inline uint32_t imk_u32@(float f) {\n  return (uint32_t)f;\n}\n"},
    {"imk_all", OP_cast, "static inline float imk_all@(lane x) {\n  return x - (float){0};\n}\n"},
    {"imk_mask", OP_cast,
     "static inline uint32_t imk_mask@(int yes) {\n  return (uint32_t)yes;\n}\n"},
    {"imk_lesser", OP_cast,
     "static inline float imk_lesser@(float a, float b) {\n"
     "#if X86\n"
     "  return MIN(a, b);\n"
     "#else\n"
     "  uint32_t m = (uint32_t)(a < b);\n"
     "  return (float)(((uint32_t)a & m) | ((uint32_t)b & ~m));\n"
     "#endif\n}\n"},
    {"imk_larger", OP_cast,
     "static inline float imk_larger@(float a, float b) {\n"
     "#if X86\n"
     "  return MAX(a, b);\n"
     "#else\n"
     "  uint32_t m = (uint32_t)(a > b);\n"
     "  return (float)(((uint32_t)a & m) | ((uint32_t)b & ~m));\n"
     "#endif\n}\n"},
    {"imk_mad", OP_fma,
     "static inline float imk_mad@(float a, float b, float c) {\n"
     "#if X86 && FMA\n"
     "  return MAD(a, b, c);\n"
     "#else\n"
     "  union {\n    float v;\n    lane at[W];\n  } x = {a}, y = {b}, r = {c};\n"
     "  for (unsigned z = 0; z < W; z++) r.at[z] = im_fmaf@(x.at[z], y.at[z], r.at[z]);\n"
     "  return r.v;\n"
     "#endif\n}\n"},
    {"imk_pow2", OP_cast,
     "static inline float imk_pow2@(float p, float t) {\n"
     "#if X86 && AVX512F && AVX512VL\n"
     "  return SCALE(p, t - 0x1.8p23f);\n"
     "#else\n"
     "  uint32_t m = (uint32_t)t - 0x4b3fff02u, h = m >> 1;\n"
     "  return p * (float)(h << 23) * (float)((m - h) << 23);\n"
     "#endif\n}\n"},
#define FAR(name)                                                                                  \
  {                                                                                                \
    "imk_far" #name, OP_##name,                                                                    \
        "static __attribute__((noinline)) float imk_each" #name "@(float x, float y) {\n"          \
        "  union {\n    float v;\n    lane at[W];\n  } a = {x}, r = {y};\n"                        \
        "  for (unsigned z = 0; z < W; z++)\n"                                                     \
        "    if (!(a.at[z] < 0x1p13f && a.at[z] > -0x1p13f)) r.at[z] = im_" #name "f@(a.at[z]);\n" \
        "  return r.v;\n}\n"                                                                       \
        "static inline float imk_far" #name "@(float x, float y) {\n"                              \
        "  union {\n    uint32_t v;\n    bits at[W];\n  } m = {(uint32_t)(x < 0x1p13f) & "         \
        "(uint32_t)(x > -0x1p13f)};\n"                                                             \
        "  bits near = m.at[0];\n"                                                                 \
        "  for (unsigned z = 1; z < W; z++) near &= m.at[z];\n"                                    \
        "  return near ? y : imk_each" #name "@(x, y);\n}\n"                                       \
  }
    FAR(sin),
    FAR(cos),
#undef FAR
};

enum { VALUES = 64 }; /* that such a function keeps on the stack where it is not inlined */

static bool is(const char *word, size_t n, const char *want) {
  return strlen(want) == n && !memcmp(word, want, n);
}

/* A part of mathlibq.h or of ours; functions of mathlibf.h end in f and stay scalar. */
static bool is_part(const char *word, size_t n) {
  return (n > 4 && !memcmp(word, "imk_", 4)) ||
         (n > 3 && !memcmp(word, "im_", 3) && (word[n - 1] == 'q' || word[n - 1] == 'u'));
}

/* Of x86, without type; NULL: the word is none. */
static const char *instruction(const char *word, size_t n) {
  return is(word, n, "MIN")     ? "min"
         : is(word, n, "MAX")   ? "max"
         : is(word, n, "MAD")   ? "fmadd"
         : is(word, n, "SCALE") ? "scalef"
                                : NULL;
}

static void put_word(Emit *e, Text *t, const char *word, size_t n) {
  u32 w = e->b.piece.w;
  if (is(word, n, "float"))
    put_vector_type(e, VE_f32, w);
  else if (is(word, n, "uint32_t"))
    put_vector_type(e, VE_u32, w);
  else if (is(word, n, "int"))
    put_vector_type(e, VE_i32, w);
  else if (is(word, n, "lane"))
    text_puts(t, "float");
  else if (is(word, n, "bits"))
    text_puts(t, "uint32_t");
  else if (is(word, n, "W"))
    text_fmt(t, "%u", w);
  else if (is(word, n, "inline"))
    text_puts(t, "inline IG_QUICK");
  else if (is(word, n, "X86"))
    text_puts(t, w < 4 ? "0" : "defined(__x86_64__)");
  else if (is(word, n, "FMA") || is(word, n, "AVX512F") || is(word, n, "AVX512VL"))
    text_puts(t, feature_test(e, str_text(e->c, str_intern(e->c, word, n))));
  else if (instruction(word, n)) {
    e->intrinsics = true;
    text_fmt(t, "_mm%s_%s_ps", w <= 4 ? "" : w == 8 ? "256" : "512", instruction(word, n));
  } else {
    text_put(t, word, n);
    if (is_part(word, n)) text_fmt(t, "x%u", w);
  }
}

/* The text with every word replaced that means another thing for vectors. */
static void put_translated(Emit *e, const char *text, size_t n) {
  Text t = text_new(e->b.a), *outer = e->t;
  e->t = &t;
  for (size_t i = 0, k; i < n; i += k) {
    k = 1;
    if (is_digit(text[i])) {
      while (i + k < n && (is_digit(text[i + k]) || is_letter(text[i + k]) || text[i + k] == '.'))
        k++;
      text_put(&t, text + i, k);
    } else if (is_letter(text[i])) {
      while (i + k < n && (is_digit(text[i + k]) || is_letter(text[i + k]))) k++;
      put_word(e, &t, text + i, k);
    } else if (text[i] == '/' && text[i + 1] == '*') {
      while (memcmp(text + i + k - 2, "*/", 2) != 0 || k < 4) k++;
      text_put(&t, text + i, k);
    } else if (text[i] == '@') {
      text_puts(&t, e->suffix);
    } else {
      text_put(&t, text + i, 1);
    }
  }
  e->t = outer;
  text_put(&e->helper_text, t.at, t.n);
}

/* One part, after those that it needs. */
static void put_part(Emit *e, const char *name, size_t len, u32 depth) {
  Text id = text_new(e->b.a);
  text_put(&id, name, len);
  const char *part = text_cstr(&id), *needs;
  size_t n;
  Text key = text_new(e->b.a);
  text_fmt(&key, "%sx%u", part, e->b.piece.w);
  if (depth > 16 || !is_wanted(e, text_cstr(&key))) return;
  for (u32 i = 0; i < sizeof own / sizeof *own; i++) {
    if (strcmp(own[i].name, part)) continue;
    if (own[i].op != OP_cast) e->math[own[i].op][MP_f] = true;
    put_translated(e, own[i].text, strlen(own[i].text));
    return;
  }
  const char *text = mathlib_text(part, &n, &needs);
  for (const char *s = needs; *s != '*';) {
    size_t k = strcspn(s, " *");
    if (k) put_part(e, s, k, depth + 1);
    s += k + (s[k] == ' ');
  }
  put_translated(e, text, n);
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
  put_part(e, part, strlen(part), 0);
  put_own(e, &name, "im_%sx%u@", part, e->b.piece.w);
  return text_cstr(&name);
}
