/* mathlib.c: the text of mathlib*.h, split into parts at their marker comments, for engines that
 * write C.
 *
 * In: names of parts, such as "expf". Out: text to paste, each part once and after the parts it
 * needs; it requires <stdint.h>. Method: the headers are in the binary. Functions, whose names
 * begin with im_ or imk_, get a suffix, and the condition for an FMA instruction is replaced. The
 * headers are scanned at each call; dependencies come before their users, so one pass from the end
 * finds all. A unit test checks the markers, not this file. */
#include "ir/math/quick.h"

#include <string.h>

extern const unsigned char mathlib_h[], mathlibd_h[], mathlibf_h[], mathlibq_h[], mathlibs_h[];
extern const size_t mathlib_h_size, mathlibd_h_size, mathlibf_h_size, mathlibq_h_size,
    mathlibs_h_size;

enum { PARTS_MAX = 192 };

typedef struct LibPart {
  const char *name, *needs, *text; /* not terminated */
  size_t name_len, needs_len, text_len;
  u32 quick; /* 1 + number in quick.def, which replaces the text */
  bool used;
} LibPart;

static const char *find(const char *at, const char *end, const char *what) {
  size_t n = strlen(what);
  for (; (size_t)(end - at) >= n; at++)
    if (!memcmp(at, what, n)) return at;
  return NULL;
}

/* Finds the first part at or after `at`; returns its end, NULL if there is none. */
static const char *next(const char *at, const char *end, LibPart *p) {
  if (!(at = find(at, end, "\n/*@ "))) return NULL;
  const char *head = find(at, end, " needs:"), *text = head ? find(head, end, "*/\n") : NULL;
  const char *tail = text ? find(text, end, "/*@ end */\n") : NULL;
  if (!tail) return NULL;
  *p = (LibPart){.name = at + 5, .needs = head + 7, .text = text + 3};
  p->name_len = (size_t)(head - p->name);
  p->needs_len = (size_t)(text - p->needs);
  p->text_len = (size_t)(tail - p->text);
  return tail;
}

static u32 list(LibPart *out) {
  const unsigned char *file[] = {mathlib_h, mathlibd_h, mathlibf_h, mathlibq_h, mathlibs_h};
  const size_t size[] = {mathlib_h_size, mathlibd_h_size, mathlibf_h_size, mathlibq_h_size,
                         mathlibs_h_size};
  Quick q;
  u32 n = 0;
  for (u32 i = 0; i < sizeof size / sizeof *size; i++) {
    const char *at = (const char *)file[i], *end = at + size[i];
    while (n < PARTS_MAX && (at = next(at, end, &out[n]))) n++;
    for (u32 k = 0; file[i] == mathlibq_h && quick_make(&q, k); k++)
      out[n++] = (LibPart){.name = q.name, .name_len = strlen(q.name), .quick = k + 1};
  }
  return n;
}

static bool is_named(const LibPart *p, const char *name, size_t n) {
  return p->name_len == n && !memcmp(p->name, name, n);
}

const char *mathlib_text(const char *name, size_t *n, const char **needs) {
  LibPart part[PARTS_MAX];
  u32 count = list(part);
  for (u32 i = 0; i < count; i++) {
    if (part[i].quick || !is_named(&part[i], name, strlen(name))) continue;
    *n = part[i].text_len;
    *needs = part[i].needs;
    return part[i].text;
  }
  return NULL;
}

/* Marks the parts named in a list that ends with a star or the end of the string. */
static void mark(LibPart *part, u32 count, const char *names) {
  while (*names == ' ') names++;
  while (*names && *names != '*') {
    size_t n = strcspn(names, " *");
    for (u32 i = 0; i < count; i++)
      if (is_named(&part[i], names, n)) part[i].used = true;
    names += n;
    while (*names == ' ') names++;
  }
}

static void mark_steps(LibPart *part, u32 count, u32 number) {
  Quick q;
  quick_make(&q, number);
  for (u32 i = 0; i < q.n; i++) {
    const char *name = q.step[i].op == QO_call ? q.step[i].text : quick_function(q.step[i].op);
    if (name) mark(part, count, name);
  }
}

static bool is_name_char(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
         ch == '_';
}

static bool begins(const char *s, size_t n, const char *with) {
  return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

static void put_part(StrBuf *t, const LibPart *p, const char *suffix, const char *fma) {
  size_t n;
  for (const char *s = p->text, *end = s + p->text_len; s < end; s += n) {
    size_t left = (size_t)(end - s);
    bool condition = begins(s, left, MATHLIB_FMA);
    for (n = 0; n < left && is_name_char(s[n]);) n++;
    bool function = begins(s, n, "im_") || begins(s, n, "imk_");
    n = condition ? strlen(MATHLIB_FMA) : n ? n : 1;
    if (condition)
      sb_puts(t, fma);
    else
      sb_put(t, s, n);
    if (function) sb_puts(t, suffix);
  }
}

void mathlib_write(StrBuf *t, const char *names, const char *suffix, const char *fma) {
  LibPart part[PARTS_MAX];
  u32 count = list(part);
  mark(part, count, names);
  for (u32 i = count; i-- > 0;)
    if (part[i].used && part[i].quick)
      mark_steps(part, count, part[i].quick - 1);
    else if (part[i].used)
      mark(part, count, part[i].needs);
  for (u32 i = 0; i < count; i++) {
    Quick q;
    if (part[i].used && part[i].quick && quick_make(&q, part[i].quick - 1))
      quick_write(t, &q, &(QuickForm){"static inline ", "float", "uint32_t", suffix, 1, false});
    else if (part[i].used)
      put_part(t, &part[i], suffix, fma);
  }
}
