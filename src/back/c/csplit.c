/* csplit.c: one file that can be compiled in parts, in parallel.
 *
 * In: a variant while its kernels are written, and the number of parts. Out: macros around every
 * kernel and around the rest. Without -D options the file compiles as a whole. With -DNAME_PART=k
 * only the kernels of part k are compiled, with external linkage; part 0 also has weights, entry
 * and the exported functions. A kernel goes to the part with the least text so far; part 0 starts
 * with the estimated size of the rest. -DNAME_PARTS=n makes fewer parts. */
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
  put_template(
      e, t,
      "#ifdef ${NAME}_PART /* 0 to %u: compile only this part of the kernels; part 0 has the "
      "rest too */\n"
      "#ifndef ${NAME}_PARTS /* number of parts */\n#define ${NAME}_PARTS %u\n#endif\n"
      "#if ${NAME}_PART < 0 || ${NAME}_PART >= ${NAME}_PARTS\n"
      "#error \"${NAME}_PART must be a number from 0 to ${NAME}_PARTS - 1\"\n#endif\n"
      "#define INGOT_IN(part) (${NAME}_PART == (part) %% ${NAME}_PARTS)\n"
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
