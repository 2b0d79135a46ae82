/* target.c: the table of targets, and detection of the host. */
#include "ir/target.h"

#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* A row is a base and differences: later initializers override earlier ones. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

const Target target_table[] = {
#define TARGET(label, ...) {__VA_ARGS__, .name = label},
#include "ir/target.def"
};

static const Target loops_table[] = {
#define TARGET(label, ...)                                                                         \
  {__VA_ARGS__,  .name = label "-loops", .fma = false,   .has = 0,                                 \
   .guard = "0", .cflags = "",           .features = "", .loops = true},
#include "ir/target.def"
};

static const Target warp = {
#define GPU(label, ...) __VA_ARGS__, .name = label
#include "ir/target.def"
};

const Figures figures = {
#define FIGURE(name, value, what, how) .name = value,
#include "ir/target.def"
#define FIGURE(name, value, what, how) .name = value,
#include "ir/compiler.def"
};

const char target_multi[] =
#define MULTI(names) names
#include "ir/target.def"
    ;

const u32 target_count = sizeof target_table / sizeof *target_table;

const Target *target_find(const char *name) {
  for (u32 i = 0; i < target_count; i++)
    if (!strcmp(target_table[i].name, name)) return &target_table[i];
  for (u32 i = 1; i < target_count; i++)
    if (!strcmp(loops_table[i].name, name)) return &loops_table[i];
  return strcmp(warp.name, name) ? NULL : target_warp();
}

const Target *target_warp(void) {
  return &warp;
}

const Target *target_scalar(void) {
  return &target_table[0];
}

/* The first n characters of name. */
static bool cpu_has(const char *name, size_t n) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  __builtin_cpu_init();
#define X86(feature) __builtin_cpu_supports(feature)
#else
#define X86(feature) false
#endif
#if defined(__linux__) && defined(__x86_64__)
#define TILES (syscall(SYS_arch_prctl, 0x1023, 18L) == 0) /* ARCH_REQ_XCOMP_PERM, tile data */
#else
#define TILES false
#endif
#if defined(__aarch64__)
#define ARM64 true
#else
#define ARM64 false
#endif
#if defined(__aarch64__) && defined(__linux__)
#define HWCAP(word, bit) (getauxval(word) >> (bit)&1)
#else
#define HWCAP(word, bit) false
#endif
#if defined(__arm__) && defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#define ARM32 true
#else
#define ARM32 false
#endif
#define CPU_FEATURE(feature, test)                                                                 \
  if (n == sizeof feature - 1 && !memcmp(name, feature, n)) return test;
#include "ir/target.def"
  return false;
}

bool target_is_here(const Target *t) {
  if (t->loops) return true;
  for (const char *s = t->needs; *s; s += strcspn(s, ","), s += *s == ',')
    if (!cpu_has(s, strcspn(s, ","))) return false;
  return true;
}

bool target_has_dot_i8x4(const Target *t) {
  return cpu_has(t->dot_i8x4, strlen(t->dot_i8x4));
}

const Target *target_native(void) {
  u32 i = target_count - 1;
  while (target_table[i].micro || target_table[i].named || !target_is_here(&target_table[i])) i--;
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
