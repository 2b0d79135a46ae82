/* board.c: a simulated Cortex-M4 (qemu-system-arm -M mps2-an386, semihosting) without a C library.
 *
 * Calls start(), which is main or app_main by -DSTART; what is printed with %g comes out as the
 * bits of a float, in hex, one a line.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "stdio.h"

extern uint32_t stack_top[];
void reset(void);
int START(void);
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int x, size_t n);

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {
    stack_top, (const void *)(uintptr_t)reset};

void *memcpy(void *to, const void *from, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  volatile char *t = to;
  if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, n);
  while (n--) t[n] = ((const char *)from)[n];
  return to;
}

void *memset(void *to, int x, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile char *)to)[i] = (char)x;
  return to;
}

static void ask(uint32_t what, const void *of) {
  __asm__ volatile("mov r0, %0\n mov r1, %1\n bkpt #0xab"
                   :
                   : "r"(what), "r"(of)
                   : "r0", "r1", "memory");
}

int puts(const char *text) {
  ask(4, text);
  ask(4, "\n");
  return 0;
}

int printf(const char *form, ...) {
  union {
    float f;
    uint32_t u;
  } x;
  char text[10] = {0};
  va_list args;
  (void)form;
  va_start(args, form);
  x.f = (float)va_arg(args, double);
  va_end(args);
  for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[x.u >> (28 - 4 * i) & 15];
  return puts(text);
}

void reset(void) {
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* floating-point unit on */
  __asm__ volatile("dsb\n isb");
  uint32_t block[2] = {0x20026, (uint32_t)START()};
  ask(0x20, block);
  for (;;) continue;
}
