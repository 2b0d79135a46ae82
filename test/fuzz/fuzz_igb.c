/* Bytes -> a file of bytecode, its checksum made right -> the verifier, the loader, the machine. */
#include "hostile.h"

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n) {
  size_t all = (n + 63) / 64 * 64;
  if (!n) return 0;
  u8 *copy = aligned_alloc(64, all);
  if (!copy) return 0;
  memset(copy, 0, all);
  memcpy(copy, at, n);
  hostile_mend(copy, all);
  hostile(copy, all);
  free(copy);
  return 0;
}
