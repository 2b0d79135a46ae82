/* compile_parts.c: compiles one large C file as several compilation units in parallel.
 *
 * In: a file that api_emit made for PARTS_LIMIT parts (back/c/csplit.c), and its code size. Out:
 * object files, one per part. The number of parts depends on the code only, not on the machine, so
 * that the same model gives the same product everywhere. spawn_parallel decides how many run at a
 * time.
 */
#include "host/host.h"

/* gcc needs 1 s or more for this much code. Headers and selecting a part cost another third. */
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
    const char *object = fmt_text(c, "%s.%u.o", source, i);
    argv_put_list(c, w, begin->at);
    if (n > 1) argv_fmt(c, w, "-D%s_PARTS=%u", sb_cstr(&upper), n);
    if (n > 1) argv_fmt(c, w, "-D%s_PART=%u", sb_cstr(&upper), i);
    argv_put(c, w, "-c", "-o", object, source);
    argv_put(c, &objects, object);
  }
  spawn_parallel(c, f, "C compiler", job, n);
  return objects;
}
