/* cprofile.c: profiling calls in a generated file.
 *
 * In: the kernels of the entry, one by one while it is written. Out: a call of the macro
 * NAME_PROFILE after each, their names for NAME_kernel_name, and the multiply-adds and bytes of
 * each. The file stores nothing; the caller's function keeps the measurements. A kernel in a loop
 * is counted once; only the caller sees how often it runs. */
#include "back/c/c.h"

#include <string.h>

enum { NAME_CHARS = 500 };

/* The number of the kernel; describes a new one. */
static u32 number_of(Emit *e, StmtId id) {
  u32 *slot = map_put_bytes(&e->variant->profile.at, &id, sizeof id);
  if (*slot) return *slot - 1;
  Stmt s = *prog_stmt(e->p, id);
  u32 chars = str_len(e->c, s.label) < NAME_CHARS ? (u32)str_len(e->c, s.label) : NAME_CHARS;
  if (!e->variant->profile.range) e->variant->profile.range = prog_ranges(e->p, NULL, &e->c->keep);
  KernelWork w = prog_work(e->p, e->variant->profile.range, id, &e->c->scratch);
  *vec_push(&e->c->keep, &e->variant->profile.kernel) =
      (KernelFacts){str_text(e->c, str_intern(e->c, str_text(e->c, s.label), chars)), id, w.macs,
                    w.bytes, w.whole};
  return (*slot = e->variant->profile.kernel.n) - 1;
}

/* ---- text ---- */

void put_profile_call(Emit *e, StmtId kernel) {
  if (e->o->profile) put_line(e, "IG_PROFILE(%u);", number_of(e, kernel));
}

void put_profile_begin(Emit *e, StrBuf *t) {
  if (e->o->profile) sb_puts(t, "  IG_PROFILE(-1);\n");
}

void put_profile_macro(Emit *e, StrBuf *t) {
  if (e->o->profile)
    put_template(
        e, t,
        "#ifndef ${NAME}_PROFILE\n#define ${NAME}_PROFILE(kernel) ${name}_profile(kernel)\n#endif\n"
        "#define IG_PROFILE(kernel) ${NAME}_PROFILE(kernel)\n");
}

void put_profile_declarations(Emit *e, StrBuf *t, u32 kernels) {
  if (e->o->profile)
    put_template(
        e, t,
        "/* Defined by the caller. ${name}_run calls it with -1 at the start and after "
        "every kernel with\n"
        " * its number, 0 to ${NAME}_KERNELS - 1, in the thread that called ${name}_run. A macro "
        "${NAME}_PROFILE(kernel) that is\n"
        " * defined when ${name}.c is compiled replaces it. */\n"
        "#define ${NAME}_KERNELS %u\nvoid ${name}_profile(int kernel);\n"
        "/* Names of the model's values that a kernel computes. */\nconst char "
        "*${name}_kernel_name(int "
        "kernel);\n",
        kernels);
}

void put_profile_names(Emit *e, StrBuf *t) {
  u32 n = e->variant->profile.kernel.n;
  if (!e->o->profile) return;
  const char **line = NEWS(&e->c->scratch, const char *, n + 1);
  for (u32 i = 0; i < n; i++) line[i] = e->variant->profile.kernel.at[i].nodes;
  line[n] = "not a kernel of this model";
  put_template(e, t, "\n%sconst char *${name}_kernel_name${sfx}(int kernel) {\n", c_linkage(e));
  put_string_lookup(t, "kernel", line, n + 1);
}
