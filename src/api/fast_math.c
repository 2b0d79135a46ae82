/* fast_math.c: the text of a model for a compiler that may take sums in any order.
 *
 * In: C text. Out: the same text, in which one thing is kept from such a compiler: adding
 * 1.5 * 2^23 (2^52 in double) rounds a number to a whole one, and subtracting it again must not
 * cancel that, nor be multiplied out. Method: what a constant 0x1.8pN is subtracted from, a name or
 * an expression in parentheses, stands in IG_ARITH_FENCE, and so does the difference.
 */
#include "api/build_product.h"

#include <ctype.h>
#include <string.h>

const char fast_math_flags[] = "-fassociative-math -fno-signed-zeros -fno-trapping-math";

/* gcc has __builtin_assoc_barrier for it, and forgets it when it makes vectors of a loop (12.2). */
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

/* Where the operand that ends at `end` begins. */
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
