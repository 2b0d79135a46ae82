/* digest_bytes is BLAKE2b with 16 bytes of output: values of Python's hashlib, around block ends.
 */
#include "hooks.h"

static void expect(const char *expected, size_t n) {
  u8 in[1000];
  for (size_t i = 0; i < sizeof in; i++) in[i] = (u8)(i * 7);
  Digest d = digest_bytes(in, n);
  CHECK(!strcmp(d.digit, expected));
}

int main(void) {
  expect("cae66941d9efbd404e4d88758ea67670", 0);
  expect("7025e075d5e2f6cde3cc051a31f07660", 1);
  expect("40efb3ed1b6eb973c5f774422adb0230", 127);
  expect("06e5bcee475a6bf6d9b8a07c6f4ae80a", 128);
  expect("2ec7e7bf8a8265ffd68aadd70ecd2b7e", 129);
  expect("dbb08d79105462394550aa4d4e10133f", 256);
  expect("6510946411e0caf5e4de75adf990b58d", 257);
  expect("8095a6f38992fefe1c12ac8ec5e70791", 1000);
  return check_end();
}
