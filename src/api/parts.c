/* parts.c: compiles one large C file as several compilers side by side.
 *
 * In: a file that api_emit made for PARTS_LIMIT parts (back/c/csplit.c), and how much code it has.
 * Out: object files, one for each part. How many there are depends on the code alone, not on the
 * machine, so that the same model gives the same product everywhere; how many are compiled at a
 * time is up to spawn_parallel.
 */
#include "api/api_internal.h"

/* gcc takes a second or more for so much; headers, and looking for what belongs to a part, cost it
 * a third of that once more. */
enum { PART_BYTES = 32 << 10 };

u32 parts_wanted(u64 code_bytes) {
  u64 n = code_bytes / PART_BYTES;
  return n < 2 ? 1 : n > PARTS_LIMIT ? PARTS_LIMIT : (u32)n;
}

ArgVec parts_compile(Ctx *c, const TempDir *f, const ArgVec *begin, const char *source,
                     const char *name, u32 n) {
  StrBuf upper = sb_new(&c->keep);
  ArgVec objects = {0}, *job = NEWS(&c->keep, ArgVec, n);
  sb_upper(&upper, name);
  for (u32 i = 0; i < n; i++) {
    ArgVec *w = &job[i];
    const char *object = str_text(c, str_fmt(c, "%s.%u.o", source, i));
    for (u32 k = 0; k < begin->n; k++) *vec_push(&c->keep, w) = begin->at[k];
    if (n > 1) {
      *vec_push(&c->keep, w) = str_text(c, str_fmt(c, "-D%s_PARTS=%u", sb_cstr(&upper), n));
      *vec_push(&c->keep, w) = str_text(c, str_fmt(c, "-D%s_PART=%u", sb_cstr(&upper), i));
    }
    argv_add(c, w, "-c -o");
    *vec_push(&c->keep, w) = object;
    *vec_push(&c->keep, w) = source;
    *vec_push(&c->keep, w) = NULL;
    *vec_push(&c->keep, &objects) = object;
  }
  spawn_parallel(c, f, "C compiler", job, n);
  return objects;
}
