/* Writing C leaves the program as it was given: its text, and how much of everything it has. */
#include "check.h"
#include <string.h>
#include "back/back.h"
#include "pass/pass.h"

/* A symbol that only a shape names, loops handed out as one, and registers that are written out. */
static const char nest[] = "prog\nsym n in 1..4\nthreads 2\n"
                           "buf x: in f32[n,8,8]\nbuf y: out f32[n,8,8]\nbuf r: reg f32x8[2]\n"
                           "kernel \"twice\" {\n  for i in 0..n parallel {\n"
                           "    for j in 0..8 step 2 parallel {\n"
                           "      for k in 0..2 unroll {\n"
                           "        r[k] = x[i, j + k, 0:8]\n"
                           "      }\n      for k in 0..2 unroll {\n"
                           "        y[i, j + k, 0:8] = tanh(r[k]) * r[k]\n"
                           "      }\n    }\n  }\n}\n";

typedef struct Size {
  u32 bufs, vars, exprs, stmts, syms;
} Size;

static Size size_of(const Prog *p) {
  return (Size){p->buf.n, p->var.n, p->nexpr, p->stmt.n, p->nsym_var};
}

/* What the inner loop does depends on the outer one, which alone is handed out. */
static const char corner[] = "prog\nthreads 2\nbuf x: in f32[8,8]\nbuf y: out f32[8,8]\n"
                             "kernel \"corner\" {\n  for i in 0..8 parallel {\n"
                             "    for j in i..8 parallel {\n      y[i, j] = x[i, j] + 1.0\n"
                             "    }\n  }\n}\n";

static void emit(Ctx *c, void *arg) {
  const char *text = arg;
  Prog *p = prog_parse(c, text, strlen(text), str_of(c, "test"), NULL, 0);
  StrBuf before = sb_new(&c->keep), after = sb_new(&c->keep);
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep);
  plan(p);
  prog_print(p, &before, NULL);
  Size size = size_of(p);
  EmitOptions o = {.name = "m",
                   .version = "0",
                   .source = "test",
                   .options = "",
                   .march = "avx2",
                   .no_selftest = "",
                   .literal_bytes = 1 << 20};
  EmitEntry entry = {.p = p};
  EmitVariant body = {.entry = &entry, .n = 1};
  for (u32 i = 0; i < target_count; i++)
    if (!strcmp(target_table[i].name, "avx2")) body.target = &target_table[i];
  emit_variants(&body, 1, &o, &source, &header, NULL);
  Size then = size_of(p);
  prog_print(p, &after, NULL);
  bool one = text == corner;
  CHECK(strstr(sb_cstr(&source), one ? "m_share_corner_0" : "m_share_twice_0") != NULL);
  CHECK(!strstr(sb_cstr(&source), "at1") == one);
  CHECK(!memcmp(&size, &then, sizeof size));
  CHECK(!strcmp(sb_cstr(&before), sb_cstr(&after)));
}

/* A size that nothing keeps in its bounds is refused: memory was planned by them. */
static const char loose[] = "prog\nsym u data in 0..4\nbuf x: in i64[1]\nbuf y: out f32[u]\n"
                            "set u = x[0]\nkernel \"fill\" {\n  for i in 0..u {\n"
                            "    y[i] = 1.0\n  }\n}\n";

static void check_loose(Ctx *c, void *arg) {
  Prog *p = prog_parse(c, loose, strlen(loose), str_of(c, "test"), NULL, 0);
  if (arg) bounds(p);
  prog_check_kernels(p);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  for (u32 i = 0; i < 2; i++) {
    Err err = ctx_protect(c, emit, (void *)(i ? corner : nest));
    if (err) fprintf(stderr, "%s\n", c->diags ? c->diags->text : "?");
    CHECK(err == ERR_ok);
  }
  CHECK(ctx_protect(c, check_loose, NULL) == ERR_unsupported);
  CHECK(ctx_protect(c, check_loose, c) == ERR_ok);
  ctx_free(c);
  return check_end();
}
