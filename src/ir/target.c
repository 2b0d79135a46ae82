/* target.c: the table of targets, and detection of the host. */
#include "ir/target.h"

#include <string.h>

/* columns; scalar targets do not use them */
enum { scalar, sse2 = scalar, simd128 = sse2, neon, avx2, avx512 };

static const Costs costs[] = {
#define AT(value, measured) value
#define COST(name, what, how, a, b, c, d)                                                          \
  [sse2].name = a, [neon].name = b, [avx2].name = c, [avx512].name = d,
#include "ir/target.def"
};

const Target target_table[] = {
#define TARGET(name, lanes, regs, block, fma, has, guard, cflags, features, dot4, pairs, cross,    \
               llvm)                                                                               \
  {#name,    lanes, regs,  block, fma,  has,          guard, cflags,                               \
   features, dot4,  pairs, cross, llvm, &costs[name], false},
#include "ir/target.def"
};

static const Target loops_table[] = {
#define TARGET(name, lanes, regs, block, fma, has, guard, cflags, features, dot4, pairs, cross,    \
               llvm)                                                                               \
  {#name "-loops", lanes, regs,  block, false,        0,        "0", "", "",                       \
   dot4,           pairs, cross, llvm,  &costs[name], lanes > 1},
#include "ir/target.def"
};

const Figures figures = {
#define FIGURE(name, value, what, how) .name = value,
#include "ir/target.def"
};

const u32 target_count = sizeof target_table / sizeof *target_table;

const Target *target_find(const char *name) {
  for (u32 i = 0; i < target_count; i++)
    if (!strcmp(target_table[i].name, name)) return &target_table[i];
  for (u32 i = 1; i < target_count; i++)
    if (!strcmp(loops_table[i].name, name)) return &loops_table[i];
  return NULL;
}

const Target *target_scalar(void) {
  return &target_table[0];
}

bool target_is_here(const Target *t) {
  if (t == target_scalar() || t->loops) return true;
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  __builtin_cpu_init();
  bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (t == target_find("avx512"))
    return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return t == target_find("avx2") ? has_avx2
                                  : t == target_find("sse2") && __builtin_cpu_supports("sse2");
#elif defined(__aarch64__)
  return t == target_find("neon");
#else
  return false;
#endif
}

bool target_has_dot_i8x4(const Target *t) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  __builtin_cpu_init();
  return !strcmp(t->dot4, "avx512vnni") && __builtin_cpu_supports("avx512vnni");
#else
  (void)t;
  return false;
#endif
}

const Target *target_native(void) {
  u32 i = target_count - 1;
  while (!target_is_here(&target_table[i])) i--;
  return &target_table[i];
}

const char *target_native_flags(void) {
#if defined(__x86_64__) || defined(__i386__)
  return "-march=native";
#elif defined(__aarch64__)
  return "-mcpu=native";
#else
  return "";
#endif
}
