/* fast_math.c: protects C text against reassociation by the compiler.
 *
 * In: C text. Out: the text with fences. Adding 1.5 * 2^23 (2^52 in double) rounds to an integer; a
 * compiler that may reassociate would cancel the following subtraction. Method: wrap the operand
 * that 0x1.8pN is subtracted from, a name or a parenthesized expression, and the difference in
 * IG_ARITH_FENCE.
 */
#include "driver/build/build_product.h"

#include <ctype.h>
#include <string.h>

const char fast_math_flags[] = "-fassociative-math -fno-signed-zeros -fno-trapping-math";

/* gcc 12.2 ignores __builtin_assoc_barrier when it vectorizes a loop. */
static const char head[] =
    "#if defined(__clang__)\n"
    "#define IG_ARITH_FENCE(x) __arithmetic_fence(x)\n"
    "#elif defined(__SSE2__)\n"
    "#define IG_ARITH_FENCE(x) \\\n"
    "  __extension__({ __typeof__(x) ig_kept = (x); __asm__(\"\" : \"+x\"(ig_kept)); ig_kept; })\n"
    "#elif defined(__aarch64__)\n"
    "#define IG_ARITH_FENCE(x) \\\n"
    "  __extension__({ __typeof__(x) ig_kept = (x); __asm__(\"\" : \"+w\"(ig_kept)); ig_kept; })\n"
    "#else\n"
    "#define IG_ARITH_FENCE(x) __builtin_assoc_barrier(x)\n"
    "#endif\n";
static const char mark[] = " - 0x1.8p";

/* Start of the operand that ends at `end`. */
static const char *operand(const char *from, const char *end) {
  const char *at = end;
  u32 depth = 0;
  if (at > from && at[-1] == ')') {
    do {
      at--;
      depth += *at == ')';
      depth -= *at == '(';
    } while (depth && at > from);
    return at;
  }
  while (at > from && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) at--;
  return at;
}

StrBuf fast_math_source(Ctx *c, StrBuf *text) {
  const char *from = sb_cstr(text);
  StrBuf t = sb_new(&c->keep);
  sb_puts(&t, head);
  for (const char *at; (at = strstr(from, mark)); from = at) {
    const char *begin = operand(from, at), *end = at + 3;
    end += strspn(end, "0123456789.xpf");
    sb_put(&t, from, (size_t)(begin - from));
    sb_fmt(&t, "IG_ARITH_FENCE(IG_ARITH_FENCE(%.*s)%.*s)", (int)(at - begin), begin,
           (int)(end - at), at);
    at = end;
  }
  sb_puts(&t, from);
  return t;
}
