/* held.c: answers CPUID as a machine without AVX-512 would.
 *
 * Loaded by LD_PRELOAD into a program in whose libraries bench/held.py replaced cpuid by ud2, which
 * has two bytes too. The signal handler answers as the CPU does, but without AVX-512, VNNI,
 * AVX-IFMA and AMX. XCR0 stays unchanged, because programs use its bits only together with those of
 * CPUID. Any other ud2 stays fatal.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* Bits of leaf 7: of AVX-512 F DQ IFMA PF ER CD BW VL; VBMI VBMI2 VNNI BITALG VPOPCNTDQ; 4VNNIW
 * 4FMAPS VP2INTERSECT AMX-BF16 FP16 AMX-TILE AMX-INT8; and of its second part: AVX-VNNI BF16
 * AMX-FP16 AVX-IFMA; AVX-VNNI-INT8 AVX-NE-CONVERT AMX-COMPLEX AVX-VNNI-INT16 AVX10. */
static const uint32_t no_ebx =
    1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31;
static const uint32_t no_ecx = 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14;
static const uint32_t no_edx =
    1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25;
static const uint32_t no_eax1 = 1u << 4 | 1u << 5 | 1u << 21 | 1u << 23;
static const uint32_t no_edx1 = 1u << 4 | 1u << 5 | 1u << 8 | 1u << 10 | 1u << 19;

static void answer(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *at = (const uint8_t *)(uintptr_t)r[REG_RIP];
  (void)info;
  if (at[0] != 0x0f || at[1] != 0x0b) {
    signal(number, SIG_DFL); /* it comes again, and ends the program */
    return;
  }
  uint32_t leaf = (uint32_t)r[REG_RAX], part = (uint32_t)r[REG_RCX], a, b, c, d;
  __cpuid_count(leaf, part, a, b, c, d);
  if (leaf == 7 && part == 0) b &= ~no_ebx, c &= ~no_ecx, d &= ~no_edx;
  if (leaf == 7 && part == 1) a &= ~no_eax1, d &= ~no_edx1;
  r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
  r[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void) {
  struct sigaction s;
  memset(&s, 0, sizeof s);
  s.sa_sigaction = answer;
  s.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGILL, &s, NULL);
}
