/* Files of TensorFlow Lite. Alone, it reads options of custom operators (FlexBuffers), whole and
 * damaged; with files, it reads and imports each cut off at every length and with every bit
 * turned: test/suite/tflite.py names them. */
#include "check.h"
#include "front/tflite/own.h"

#include <stdlib.h>
#include <string.h>

static void import_bytes(Ctx *c, void *arg) {
  Source s = *(const Source *)arg;
  ModelFacts facts = {0};
  if (!lite_sniff(s.at, s.n)) fail(c, ERR_input, LOC_NONE, "no mark");
  Model *m = lite_open(c, &s);
  lite_facts(c, m, &facts);
  lite_import(c, &s, m, &(ImportOptions){0});
}

/* Memory that ends with the bytes, so that sanitizers see who reads beyond. */
static Err try_bytes(const u8 *at, size_t n) {
  Ctx *c = ctx_new(NULL, NULL);
  u8 *copy = malloc(n ? n : 1);
  Err e = ERR_system;
  if (c && copy) {
    memcpy(copy, at, n);
    e = ctx_protect(c, import_bytes, &(Source){.at = copy, .n = n});
  }
  ctx_free(c);
  free(copy);
  return e;
}

static void damage(Ctx *c, void *path) {
  File f = file_read(c, path);
  u8 *at = arena_copy(&c->work, f.at, f.n);
  u32 accepted = 0;
  CHECK(try_bytes(at, f.n) == ERR_ok);
  for (size_t n = 0; n < f.n; n++) {
    Err e = try_bytes(at, n);
    CHECK(e == ERR_input || e == ERR_unsupported || e == ERR_ok); /* its end may be padding */
    CHECK(e != ERR_ok || n + 8 > f.n);
  }
  for (size_t i = 0; i < 8 * f.n; i++) {
    at[i / 8] ^= (u8)(1u << i % 8);
    Err e = try_bytes(at, f.n);
    CHECK(e == ERR_ok || e == ERR_input || e == ERR_unsupported);
    accepted += e == ERR_ok;
    at[i / 8] ^= (u8)(1u << i % 8);
  }
  printf("%u of %zu accepted\n", accepted, 8 * f.n);
}

/* {"max": 1000, "s": 0.25, "yes": true, "low": -3} */
static const u8 options[] = {109, 97, 120, 0,  115, 0,   121, 101, 115, 0,   108, 111, 119, 0,
                             4,   5,  16,  13, 12,  0,   5,   0,   0,   0,   1,   0,   0,   0,
                             4,   0,  0,   0,  253, 255, 255, 255, 232, 3,   0,   0,   0,   0,
                             128, 62, 1,   0,  0,   0,   6,   6,   14,  106, 20,  38,  1};

static void flex(void) {
  FileSpan s = {options, sizeof options};
  double x = 0;
  CHECK(flex_number(s, "max", &x) && x == 1000);
  CHECK(flex_number(s, "s", &x) && x == 0.25);
  CHECK(flex_number(s, "yes", &x) && x == 1);
  CHECK(flex_number(s, "low", &x) && x == -3);
  CHECK(!flex_number(s, "ma", &x) && !flex_number(s, "maximum", &x) && !flex_number(s, "", &x));
  u8 *copy = malloc(sizeof options);
  for (size_t i = 0; copy && i < 8 * sizeof options; i++) {
    memcpy(copy, options, sizeof options);
    copy[i / 8] ^= (u8)(1u << i % 8);
    for (size_t n = 0; n < sizeof options; n += i ? sizeof options - 1 : 1)
      flex_number((FileSpan){copy + n, sizeof options - n}, "yes", &x);
  }
  free(copy);
}

int main(int argc, char **argv) {
  if (argc == 1) flex();
  for (int i = 1; i < argc; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    CHECK(ctx_protect(c, damage, argv[i]) == ERR_ok);
    ctx_free(c);
  }
  return check_end();
}
