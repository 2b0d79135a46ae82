/* Engine jit gives the bits of interp: for every model of a list, in one process, since LLVM takes
 * longer to load than most models to compile.
 *
 *   agree [LIST]    lines of LIST: model, inputs or -, target or -; without one, the digit model
 *
 * Prints how many agree and how many an engine does not support. Where there is no LLVM, nothing is
 * compared. */
#include "check.h"
#include "ingot.h"
#include "ir/ir.h"
#include <math.h>
#include <string.h>

static int agreed, refused;

static int same_element(DType dt, const uint8_t *x, const uint8_t *y) {
  if (!memcmp(x, y, dtype_bytes(dt))) return 1;
  if (!dtype_is_float(dt)) return 0;
  return isnan(scalar_load(dt, x).f) && isnan(scalar_load(dt, y).f); /* signs are the compiler's */
}

/* The place where they differ, or -1. */
static long long difference(const IngotTensor *x, const IngotTensor *y) {
  if (strcmp(x->dtype, y->dtype) || x->rank != y->rank || x->bytes != y->bytes) return 0;
  if (x->rank && memcmp(x->dim, y->dim, x->rank * sizeof *x->dim)) return 0;
  DType dt = dtype_from_name(x->dtype, strlen(x->dtype));
  if (dt == DT_str) return -1; /* made of bytes that were compared when they were none */
  for (uint64_t i = 0; i < x->bytes / dtype_bytes(dt); i++) {
    size_t at = (size_t)i * dtype_bytes(dt);
    if (!same_element(dt, (const uint8_t *)x->data + at, (const uint8_t *)y->data + at))
      return (long long)i;
  }
  return -1;
}

static Ingot *start(const char *path, const char *inputs, const char *target, const char *engine,
                    IngotStatus *s) {
  Ingot *m = ingot_new(NULL);
  *s = ingot_open(m, path);
  if (!*s && strcmp(target, "-")) *s = ingot_set_target(m, target);
  if (!*s && strcmp(inputs, "-")) *s = ingot_input_file(m, inputs);
  if (!*s) *s = ingot_run(m, engine, 3);
  return m;
}

static void compare(const char *path, const char *inputs, const char *target) {
  IngotStatus a, b;
  Ingot *x = start(path, inputs, target, "interp", &a), *y = start(path, inputs, target, "jit", &b);
  if (a == INGOT_UNSUPPORTED || b == INGOT_UNSUPPORTED) {
    refused++;
    if (b && !a) printf("refused: %s: %s\n", path, ingot_message(y, 0, NULL));
  } else if (!check(a == b, "jit ends as interp does", path, (int)b)) {
    fprintf(stderr, "%s: interp %d, jit %d: %s\n", path, (int)a, (int)b,
            ingot_message(b ? y : x, 0, NULL));
  } else {
    int same = 1;
    for (uint32_t i = 0; !a && i < ingot_output_count(x); i++) {
      IngotTensor s = ingot_output(x, i), t = ingot_output(y, i);
      long long at = difference(&s, &t);
      if (at < 0) continue;
      fprintf(stderr, "%s %s: output %s differs at %lld\n", path, target, s.name, at);
      same = 0;
    }
    agreed += check(same, "jit gives the bits of interp", path, 0);
  }
  ingot_free(x);
  ingot_free(y);
}

int main(int argc, char **argv) {
  char line[3000], model[1000], inputs[1000], target[100];
  if (!ingot_llvm()) {
    puts("there is no LLVM");
    return 0;
  }
  if (argc < 2) {
    compare("models/digits.onnx", "-", "-");
    compare("models/digits.onnx", "-", "native");
    return check_end();
  }
  FILE *f = fopen(argv[1], "r");
  if (!CHECK(f)) return 1;
  while (fgets(line, sizeof line, f))
    if (CHECK(sscanf(line, "%999s %999s %99s", model, inputs, target) == 3))
      compare(model, inputs, target);
  fclose(f);
  printf("%d agree, %d refused\n", agreed, refused);
  return check_end();
}
