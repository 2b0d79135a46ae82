/* What bytes are multiplied as: i16 on machines that are known to have no instruction for four
 * bytes, bytes on those that may have one, in the same target.
 *
 * A convolution of bytes goes through the pipeline up to int16; whether a value of i16 is there
 * tells. Tests of text (golden/int16/) cannot say that a machine lacks an instruction.
 */
#include "check.h"
#include "pass/pass.h"
#include <string.h>

static const char *const text =
    "graph (%x: u8[1,4,4,4]) {\n"
    "  %w: i32[4,4,1,1] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}\n"
    "  %1: i32[1,4,4,4] = cast(%x) {to=i32}\n"
    "  %y: i32[1,4,4,4] = conv(%1, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], "
    "pad_hi=[0,0]}\n"
    "  return %y\n"
    "}\n";

typedef struct Machine {
  const char *target;
  bool lacks_dot_i8x4, words;
} Machine;

static void one(Ctx *c, void *arg) {
  const Machine *m = arg;
  PassCtx u = {.c = c, .g = graph_parse(c, text, strlen(text), 0, NULL, 0)};
  PipeOptions o = {.start = "int16",
                   .stop = "int16",
                   .check = true,
                   .target = target_find(m->target),
                   .lacks_dot_i8x4 = m->lacks_dot_i8x4};
  bool words = false;
  pipeline_run(&u, &o);
  for (Val v = 1; v < u.g->val.n; v++) words = words || graph_type(u.g, v)->dt == DT_i16;
  if (!CHECK(words == m->words)) fprintf(stderr, "%s, %d\n", m->target, m->lacks_dot_i8x4);
}

int main(void) {
  Machine machine[] = {{"sse2", false, true},  {"avx2", false, true},  {"avx512", false, false},
                       {"avx512", true, true}, {"neon", false, false}, {"scalar", false, false}};
  for (u32 i = 0; i < sizeof machine / sizeof *machine; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    Err e = ctx_protect(c, one, &machine[i]);
    if (!CHECK(e == ERR_ok)) fprintf(stderr, "%s\n", c->diags ? c->diags->text : "");
    ctx_free(c);
  }
  return check_end();
}
