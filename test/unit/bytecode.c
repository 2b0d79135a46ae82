/* Files of bytecode: what is written is read again and computes the same; every change of a single
 * byte is refused, or harmless where the checksum has been made right again. */
#include "../fuzz/hostile.h"
#include "check.h"
#include "ingot.h"
#include <stdio.h>

/* A product of matrices and a function, of a shape that is open. */
static const char graph[] =
    "graph net\nsym n in 0..3\n(%x \"x\": f32[n,4]) {\n"
    "  %w: f32[4,5] = const {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"
    "  %a: f32[n,5] = contract(%x, %w) {spec=\"mk,kn->mn\"}\n"
    "  %b \"b\": f32[n,5] = tanh(%a)\n"
    "  return %b \"b\"\n}\n";

typedef struct Made {
  u8 *at;
  size_t n;
} Made;

static Made make(void) {
  char path[] = "/tmp/ingot-bytecode-XXXXXX";
  Made f = {0};
  Ingot *m = ingot_new(NULL);
  int fd = mkstemp(path);
  if (!CHECK(fd >= 0)) return f;
  FILE *in = fdopen(fd, "rb");
  IngotStatus s = ingot_open_bytes(m, graph, sizeof graph - 1, "test");
  if (!s) s = ingot_write_vm(m, path);
  if (!CHECK(!s)) fprintf(stderr, "%s\n", ingot_message(m, 0, NULL));
  FILE *made = fopen(path, "rb");
  if (made && !s) {
    fseek(made, 0, SEEK_END);
    f.n = (size_t)ftell(made);
    rewind(made);
    f.at = aligned_alloc(64, f.n);
    if (fread(f.at, 1, f.n, made) != f.n) f.n = 0;
  }
  if (made) fclose(made);
  if (in) fclose(in);
  remove(path);
  ingot_free(m);
  return f;
}

static void every_byte(const Made *f) {
  static const u8 change[] = {0x01, 0x02, 0x10, 0x80, 0xff};
  u8 *copy = aligned_alloc(64, f->n);
  u32 ran = 0;
  for (size_t i = 0; i < f->n; i++)
    for (u32 k = 0; k < sizeof change; k++) {
      Igb g;
      u64 where;
      memcpy(copy, f->at, f->n);
      copy[i] ^= change[k];
      CHECK(igb_open(copy, f->n, &g, &where) != NULL);
      hostile_mend(copy, f->n);
      ran += hostile(copy, f->n);
    }
  CHECK(ran > 0); /* weights, and constants of the code */
  free(copy);
}

static void every_end(const Made *f) {
  Igb g;
  u64 where;
  for (size_t n = 0; n < f->n; n++) CHECK(igb_open(f->at, n, &g, &where) != NULL);
}

int main(void) {
  Made f = make();
  if (!CHECK(f.n)) return check_end();
  CHECK(hostile(f.at, f.n));
  every_end(&f);
  every_byte(&f);
  free(f.at);
  return check_end();
}
