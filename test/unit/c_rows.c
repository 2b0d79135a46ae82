/* cvop.def: a row that names instructions says so, or generated C would lack the headers that
 * declare them. */
#include "check.h"
#include <stdbool.h>
#include <string.h>

typedef struct Row {
  const char *name, *text;
} Row;

static const Row rows[] = {
#define VH(name, kinds, bits, text) {#name, text},
#include "back/c/cvop.def"
#undef VH
};

/* How names of instructions begin: x86, NEON, WebAssembly. */
static bool has_instruction(const char *text) {
  static const char *const begin[] = {"_mm", "vcvt", "vld1", "vst1", "vfma", "vsqrt", "wasm_"};
  for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
    const char *at = text;
    while ((at = strstr(at, begin[i]))) {
      if (strncmp(at, "wasm_simd128__", 14) != 0) return true; /* a macro */
      at++;
    }
  }
  return false;
}

int main(void) {
  unsigned count = 0;
  CHECK(has_instruction("  return vcvt_f32_f16(x);\n") && has_instruction("_mm_add_ps(a, b)"));
  CHECK(!has_instruction("#if defined(__wasm_simd128__)\n  return a;\n"));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool has = has_instruction(rows[i].text);
    count += has;
    check(!has || strstr(rows[i].text, "${mm}") || strstr(rows[i].text, "${intrinsics}"),
          rows[i].name, __FILE__, __LINE__);
  }
  CHECK(count > 20);
  return check_end();
}
