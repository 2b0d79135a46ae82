/* Files of TensorFlow Lite. Alone, it reads options of custom operators (FlexBuffers), whole and
 * damaged; with files, it reads and imports each cut off at every length and with every bit
 * turned: test/suite/tflite.py names them. */
#include "damage.h"
#include "front/tflite/tflite_import.h"

static void import_bytes(Ctx *c, void *arg) {
  Source s = *(const Source *)arg;
  ModelInfo facts = {0};
  if (!lite_sniff(s.at, s.n)) fail(c, ERR_input, LOC_NONE, "no mark");
  Model *m = lite_open(c, &s);
  lite_info(c, m, &facts);
  const LiteGraph *g = ((const LiteModel *)m->own)->graph;
  StrBuf options = sb_new(&c->work);
  for (u32 i = 0; i < g->nop; i++) {
    Loc at = {.op = g->op[i].name, .node = lite_node_name(g, &g->op[i]), .index = (i32)i};
    lite_attributes(c, m, &at, &options);
  }
  lite_import(c, &s, m, &(ImportOptions){0});
}

/* Its end may be padding. */
static bool short_fits(Err e, size_t n, size_t whole) {
  return e == ERR_input || e == ERR_unsupported || (e == ERR_ok && n + 8 > whole);
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
    CHECK(ctx_protect(c, damage, &(Damage){argv[i], import_bytes, short_fits}) == ERR_ok);
    ctx_free(c);
  }
  return check_end();
}
