/* ccpu.c: programs that name missing CPU features instead of ending with SIGILL.
 *
 * In: the name of a program. Out: two C texts. The first belongs in a file compiled with the flags
 * of the target: a constant with one bit per feature that the C compiler may use. The second is a
 * file compiled without these flags: a constructor that runs before main, compares the constant
 * with the CPU, names missing features, and ends with exit code 3. Both use one table, so the bits
 * agree. */
#include "back/c/c.h"

#include <string.h>

/* Feature names of __builtin_cpu_supports; the macros have them in capitals. Names that older
 * compilers refuse are left out: f16c and lzcnt, which every CPU with avx2 has, and features that
 * only --march NAME of a newer CPU enables (avxvnni, gfni). */
static const char *const features[] = {"sse3",       "ssse3",        "sse4.1",
                                       "sse4.2",     "popcnt",       "avx",
                                       "avx2",       "fma",          "bmi",
                                       "bmi2",       "avx512f",      "avx512cd",
                                       "avx512bw",   "avx512dq",     "avx512vl",
                                       "avx512ifma", "avx512vbmi",   "avx512vbmi2",
                                       "avx512vnni", "avx512bitalg", "avx512vpopcntdq"};
enum { NFEATURES = sizeof features / sizeof *features };

void emit_cpu_needs(StrBuf *t) {
  sb_puts(t, "\nextern const unsigned ingot_cpu_needs;\nconst unsigned ingot_cpu_needs = 0\n");
  for (u32 i = 0; i < NFEATURES; i++) {
    StrBuf upper = sb_new(t->a);
    sb_upper(&upper, features[i]);
    for (size_t k = 0; k < upper.n; k++)
      if (upper.at[k] == '.') upper.at[k] = '_';
    sb_fmt(t, "#ifdef __%s__\n  | 1u << %u\n#endif\n", sb_cstr(&upper), i);
  }
  sb_puts(t, "  ;\n");
}

void emit_cpu_check(const char *program, StrBuf *t) {
  sb_puts(t, "#include <stdio.h>\n#include <stdlib.h>\n\nextern const unsigned ingot_cpu_needs;\n"
             "#if defined(__GNUC__) && !defined(__TINYC__) && defined(__x86_64__)\n"
             "static const char *const features[] = {");
  for (u32 i = 0; i < NFEATURES; i++) sb_fmt(t, "%s\"%s\"", i ? ", " : "", features[i]);
  sb_puts(t, "};\n\n__attribute__((constructor(101))) static void check(void) {\n"
             "  unsigned lacks = ingot_cpu_needs;\n  __builtin_cpu_init();\n");
  for (u32 i = 0; i < NFEATURES; i++)
    sb_fmt(t, "  if (__builtin_cpu_supports(\"%s\")) lacks &= ~(1u << %u);\n", features[i], i);
  sb_fmt(
      t,
      "  if (!lacks) return;\n  fputs(\"%s: this CPU lacks\", stderr);\n"
      "  for (unsigned i = 0; i < %u; i++)\n"
      "    if (lacks >> i & 1) fprintf(stderr, \" %%s\", features[i]);\n"
      "  fputs(\", which the program was compiled for; ingot build --march multi makes one for \"\n"
      "        \"every x86-64 CPU, --march native one for the CPU it runs on\\n\", stderr);\n"
      "  _Exit(3);\n}\n#endif\n",
      program, NFEATURES);
}
