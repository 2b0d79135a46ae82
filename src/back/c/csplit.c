/* csplit.c: one file that compilers can take in parts, side by side.
 *
 * In: a body whose kernels are being written, and into how many parts. Out: macros around every
 * kernel and around the rest. Compiled as it is the file is what it would be without them. With
 * -DNAME_PART=k only the kernels of part k are compiled, with names that the other parts can link;
 * part 0 also has weights, entry and all that callers know. A kernel goes to the part that has the
 * least text so far; the first begins with what the rest of the file is worth. -DNAME_PARTS=n makes
 * fewer parts of them. Parts are weighed by their text, which only this back end has; lkernel.c
 * of LLVM fills its units likewise, by their expressions.
 */
#include "back/c/c.h"

bool has_parts(const Emit *e) {
  return e->o->split > 1;
}

void split_begin(Emit *e) {
  e->variant->kernels.part_bytes = NEWS(&e->c->keep, u64, e->o->split + 1);
  if (has_parts(e)) e->variant->kernels.part_bytes[0] = (u64)1 << 14;
}

u32 split_choose(Emit *e, u64 bytes) {
  u32 part = 0;
  u64 *has = e->variant->kernels.part_bytes;
  for (u32 i = 1; i < e->o->split; i++)
    if (has[i] < has[part]) part = i;
  has[part] += bytes;
  return part;
}

const char *kernel_linkage(const Emit *e) {
  return has_parts(e) ? "INGOT_KERNEL " : "static ";
}

void put_split(Emit *e, StrBuf *t) {
  if (!has_parts(e)) return;
  put_template(e, t,
               "#ifdef `_PART /* one of 0 to %u: that part of the kernels; 0 has the rest too */\n"
               "#ifndef `_PARTS /* fewer than those */\n#define `_PARTS %u\n#endif\n"
               "#if `_PART < 0 || `_PART >= `_PARTS\n"
               "#error \"`_PART is a number from 0 to `_PARTS - 1\"\n#endif\n"
               "#define INGOT_IN(part) (`_PART == (part) %% `_PARTS)\n"
               "#if defined(__GNUC__) && !defined(__TINYC__)\n"
               "#define INGOT_KERNEL __attribute__((visibility(\"hidden\")))\n"
               "#else\n#define INGOT_KERNEL\n#endif\n"
               "#else\n#define INGOT_IN(part) 1\n#define INGOT_KERNEL static\n#endif\n",
               e->o->split - 1, e->o->split);
  put_warning_pragmas(t);
}

void put_part_begin(const Emit *e, StrBuf *t, u32 part) {
  if (has_parts(e)) sb_fmt(t, "#if INGOT_IN(%u)\n", part);
}

void put_part_end(const Emit *e, StrBuf *t) {
  if (has_parts(e)) sb_puts(t, "#endif\n");
}
