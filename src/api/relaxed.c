/* relaxed.c: the text of a model for a compiler that may take sums in any order.
 *
 * In: C text. Out: the same text, in which one thing is kept from such a compiler: adding
 * 1.5 * 2^23 (2^52 in double) rounds a number to a whole one, and subtracting it again must not
 * cancel that, nor be multiplied out. Method: what a constant 0x1.8pN is subtracted from, a name or
 * an expression in parentheses, stands in IG_KEEP, and so does the difference.
 */
#include "api/product.h"

#include <ctype.h>
#include <string.h>

const char relaxed_flags[] = "-fassociative-math -fno-signed-zeros -fno-trapping-math";

/* gcc has __builtin_assoc_barrier for it, and forgets it when it makes vectors of a loop (12.2). */
static const char head[] =
    "#if defined(__clang__)\n"
    "#define IG_KEEP(x) __arithmetic_fence(x)\n"
    "#elif defined(__SSE2__)\n"
    "#define IG_KEEP(x) \\\n"
    "  __extension__({ __typeof__(x) ig_kept = (x); __asm__(\"\" : \"+x\"(ig_kept)); ig_kept; })\n"
    "#elif defined(__aarch64__)\n"
    "#define IG_KEEP(x) \\\n"
    "  __extension__({ __typeof__(x) ig_kept = (x); __asm__(\"\" : \"+w\"(ig_kept)); ig_kept; })\n"
    "#else\n"
    "#define IG_KEEP(x) __builtin_assoc_barrier(x)\n"
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

Text relaxed_text(Ctx *c, Text *text) {
  const char *from = text_cstr(text);
  Text t = text_new(&c->keep);
  text_puts(&t, head);
  for (const char *at; (at = strstr(from, mark)); from = at) {
    const char *begin = operand(from, at), *end = at + 3;
    end += strspn(end, "0123456789.xpf");
    text_put(&t, from, (size_t)(begin - from));
    text_fmt(&t, "IG_KEEP(IG_KEEP(%.*s)%.*s)", (int)(at - begin), begin, (int)(end - at), at);
    at = end;
  }
  text_puts(&t, from);
  return t;
}
