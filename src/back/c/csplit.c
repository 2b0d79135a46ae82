/* csplit.c: one file that compilers can take in parts, side by side.
 *
 * In: a body whose kernels are being written, and into how many parts. Out: macros around every
 * kernel and around the rest. Compiled as it is the file is what it would be without them. With
 * -DNAME_PART=k only the kernels of part k are compiled, with names that the other parts can link;
 * part 0 also has weights, entry and all that callers know. A kernel goes to the part that has the
 * least text so far; the first begins with what the rest of the file is worth. -DNAME_PARTS=n makes
 * fewer parts of them.
 */
#include "back/c/c.h"

bool has_parts(const Emit *e) {
  return e->o->split > 1;
}

void split_begin(Emit *e) {
  e->part_bytes = NEWS(&e->c->keep, u64, e->o->split + 1);
  e->kernel_heads = text_new(&e->c->keep);
  if (has_parts(e)) e->part_bytes[0] = (u64)1 << 14;
}

u32 split_choose(Emit *e, u64 bytes) {
  u32 part = 0;
  for (u32 i = 1; i < e->o->split; i++)
    if (e->part_bytes[i] < e->part_bytes[part]) part = i;
  e->part_bytes[part] += bytes;
  return part;
}

const char *kernel_linkage(const Emit *e) {
  return has_parts(e) ? "INGOT_KERNEL " : "static ";
}

void put_split(const Emit *e, Text *t, const char *upper) {
  if (!has_parts(e)) return;
  text_fmt(t,
           "#ifdef %s_PART /* one of 0 to %u: that part of the kernels; 0 has the rest too */\n"
           "#ifndef %s_PARTS /* fewer than those */\n#define %s_PARTS %u\n#endif\n"
           "#if %s_PART < 0 || %s_PART >= %s_PARTS\n"
           "#error \"%s_PART is a number from 0 to %s_PARTS - 1\"\n#endif\n"
           "#define INGOT_IN(part) (%s_PART == (part) %% %s_PARTS)\n"
           "#if defined(__GNUC__) && !defined(__TINYC__)\n"
           "#define INGOT_KERNEL __attribute__((visibility(\"hidden\")))\n"
           "#else\n#define INGOT_KERNEL\n#endif\n"
           "#else\n#define INGOT_IN(part) 1\n#define INGOT_KERNEL static\n#endif\n",
           upper, e->o->split - 1, upper, upper, e->o->split, upper, upper, upper, upper, upper,
           upper, upper);
  put_quiet(t);
}

void put_part_begin(const Emit *e, Text *t, u32 part) {
  if (has_parts(e)) text_fmt(t, "#if INGOT_IN(%u)\n", part);
}

void put_part_end(const Emit *e, Text *t) {
  if (has_parts(e)) text_puts(t, "#endif\n");
}
