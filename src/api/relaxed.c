/* relaxed.c: the text of a model for a compiler that may take sums in any order.
 *
 * In: C text, or a line of flags. Out: the same text, in which one thing is kept from such a
 * compiler: adding 1.5 * 2^23 (2^52 in double) rounds a number to a whole one, and subtracting it
 * again must not cancel that. Method: what a constant 0x1.8pN is subtracted from, a name or an
 * expression in parentheses, stands in IG_KEEP, by which gcc 12 and clang 14 are told.
 */
#include "api/product.h"

#include <ctype.h>
#include <string.h>

const char relaxed_flags[] = "-fassociative-math -fno-signed-zeros -fno-trapping-math";

static const char head[] = "#if defined(__clang__)\n"
                           "#define IG_KEEP(x) __arithmetic_fence(x)\n"
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
    const char *begin = operand(from, at);
    text_put(&t, from, (size_t)(begin - from));
    text_fmt(&t, "IG_KEEP(%.*s)", (int)(at - begin), begin);
    text_puts(&t, " -");
    at += 2;
  }
  text_puts(&t, from);
  return t;
}
