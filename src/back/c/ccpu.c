/* ccpu.c: code that names missing CPU features, or returns a status, instead of ending with SIGILL.
 *
 * In: the name of a program. Out: C texts. A program gets two. The first belongs in a file compiled
 * with the flags of the target: a constant with one bit per feature that the C compiler may use.
 * The second is a file compiled without these flags: a constructor that runs before main, compares
 * the constant with the CPU, names missing features, and ends with exit code 3. Both use one table,
 * so the bits agree. A library gets conditions for the test that its entries make. */
#include "back/c/c.h"

#include <string.h>

/* Feature names of __builtin_cpu_supports; the macros have them in capitals. Older compilers refuse
 * f16c, lzcnt, gfni and avxvnni: every CPU with avx2 has the first two, functions test the others.
 */
static const char *const features[] = {"sse3",         "ssse3",
                                       "sse4.1",       "sse4.2",
                                       "popcnt",       "avx",
                                       "avx2",         "fma",
                                       "bmi",          "bmi2",
                                       "avx512f",      "avx512cd",
                                       "avx512bw",     "avx512dq",
                                       "avx512vl",     "avx512ifma",
                                       "avx512vbmi",   "avx512vbmi2",
                                       "gfni",         "avx512vnni",
                                       "avx512bitalg", "avx512vpopcntdq",
                                       "avxvnni"};
enum { NFEATURES = sizeof features / sizeof *features };

/* ARM features: name in /proc/cpuinfo, macro of the compiler, bit of getauxval. */
static const struct {
  const char *name, *macro, *bit;
} arm[] = {
    {"neon", "defined(__arm__) && defined(__ARM_NEON)", "AT_HWCAP) >> 12"},
    {"asimddp", "defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)", "AT_HWCAP) >> 20"},
    {"i8mm", "defined(__aarch64__) && defined(__ARM_FEATURE_MATMUL_INT8)", "AT_HWCAP2) >> 13"}};
enum { NARM = sizeof arm / sizeof *arm };

static void put_ifdef(StrBuf *t, const char *feature) {
  sb_puts(t, "#ifdef __");
  size_t from = t->n;
  sb_upper(t, feature);
  for (size_t k = from; k < t->n; k++)
    if (t->at[k] == '.') t->at[k] = '_';
  sb_puts(t, "__\n");
}

/* Features that a function reads from leaf 7 of CPUID. */
static const struct {
  const char *name, *bit;
  u32 subleaf;
} read_bits[] = {{"gfni", "c >> 8", 0}, {"avxvnni", "a >> 4", 1}};
enum { NREAD = sizeof read_bits / sizeof *read_bits };

static void put_function(StrBuf *t, u32 i) {
  sb_fmt(t,
         "#include <cpuid.h>\nstatic int ig_has_%s(void) {\n  unsigned a, b, c, d;\n"
         "  return __get_cpuid_count(7, %u, &a, &b, &c, &d) && %s & 1;\n}\n",
         read_bits[i].name, read_bits[i].subleaf, read_bits[i].bit);
}

static void put_test(StrBuf *t, const char *feature) {
  bool own = false;
  for (u32 i = 0; i < NREAD; i++) own = own || !strcmp(feature, read_bits[i].name);
  sb_fmt(t, own ? "ig_has_%s()" : "__builtin_cpu_supports(\"%s\")", feature);
}

void put_flags_test(StrBuf *t) {
  for (u32 i = 0; i < NFEATURES; i++) {
    put_ifdef(t, features[i]);
    sb_puts(t, "  if (!");
    put_test(t, features[i]);
    sb_puts(t, ") return 0;\n#endif\n");
  }
}

void put_flags_helper(StrBuf *t) {
  for (u32 i = 0; i < NREAD; i++) {
    put_ifdef(t, read_bits[i].name);
    put_function(t, i);
    sb_puts(t, "#endif\n");
  }
}

void emit_cpu_needs(StrBuf *t) {
  sb_puts(t, "\nextern const unsigned ingot_cpu_needs;\nconst unsigned ingot_cpu_needs = 0\n");
  for (u32 i = 0; i < NFEATURES; i++) {
    put_ifdef(t, features[i]);
    sb_fmt(t, "  | 1u << %u\n#endif\n", i);
  }
  for (u32 i = 0; i < NARM; i++) sb_fmt(t, "#if %s\n  | 1u << %u\n#endif\n", arm[i].macro, i);
  sb_puts(t, "  ;\n");
}

static void put_check_end(StrBuf *t, const char *program, u32 n, const char *instead) {
  sb_fmt(t,
         "  if (!lacks) return;\n  fputs(\"%s: this CPU lacks\", stderr);\n"
         "  for (unsigned i = 0; i < %u; i++)\n"
         "    if (lacks >> i & 1) fprintf(stderr, \" %%s\", features[i]);\n"
         "  fputs(\", which the program was compiled for; %s\\n\", stderr);\n  _Exit(3);\n}\n",
         program, n, instead);
}

static void emit_arm_check(const char *program, StrBuf *t) {
  sb_puts(t, "#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))\n"
             "#include <sys/auxv.h>\nstatic const char *const features[] = {");
  for (u32 i = 0; i < NARM; i++) sb_fmt(t, "%s\"%s\"", i ? ", " : "", arm[i].name);
  sb_puts(t, "};\n\n__attribute__((constructor(101))) static void check(void) {\n"
             "  unsigned lacks = ingot_cpu_needs;\n");
  for (u32 i = 0; i < NARM; i++)
    sb_fmt(t, "  if (getauxval(%s & 1) lacks &= ~(1u << %u);\n", arm[i].bit, i);
  put_check_end(t, program, NARM, "ingot build --march scalar makes one for every CPU");
}

void emit_cpu_check(const char *program, StrBuf *t) {
  sb_puts(t, "#include <stdio.h>\n#include <stdlib.h>\n\nextern const unsigned ingot_cpu_needs;\n"
             "#if defined(__GNUC__) && !defined(__TINYC__) && defined(__x86_64__)\n");
  for (u32 i = 0; i < NREAD; i++) put_function(t, i);
  sb_puts(t, "static const char *const features[] = {");
  for (u32 i = 0; i < NFEATURES; i++) sb_fmt(t, "%s\"%s\"", i ? ", " : "", features[i]);
  sb_puts(t, "};\n\n__attribute__((constructor(101))) static void check(void) {\n"
             "  unsigned lacks = ingot_cpu_needs;\n  __builtin_cpu_init();\n");
  for (u32 i = 0; i < NFEATURES; i++) {
    sb_puts(t, "  if (");
    put_test(t, features[i]);
    sb_fmt(t, ") lacks &= ~(1u << %u);\n", i);
  }
  put_check_end(t, program, NFEATURES,
                "ingot build --march multi makes one for every x86-64 CPU, --march native one for "
                "the CPU it runs on");
  emit_arm_check(program, t);
  sb_puts(t, "#endif\n");
}
