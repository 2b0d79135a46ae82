/* Text of programs: what is printed reads back as the same program; what makes no sense is refused.
 */
#include "check.h"
#include <string.h>
#include "ir/prog/prog.h"

static const char *const good[] = {
    "prog\n",
    "prog \"a b\"\nsym n in 1..64\nsym k data in 0..\n"
    "buf x: in f32[n,1,8,8]\nbuf w: const f32[2,2] = {1, 2.5, 0.1875, nan}\n"
    "buf \"odd name\": temp i8[3]\nbuf \"for\": temp f64[]\n"
    "buf v: temp f32[8,n,8] alias x\n"
    "buf y: out f32[n,2*n+1]\n"
    "for i in 0..n parallel chunk 8 {\n"
    "  let acc: f32 = 0.0\n"
    "  kernel \"conv1 (Conv)\" {\n"
    "    for j in i..n + 3 step 2 {\n"
    "      set acc = acc + x[i, 0, 0, 0] * w[0, 1]\n"
    "    }\n"
    "  }\n"
    "  if i < 3 {\n    \"odd name\"[1] = -3:i8\n  } else {\n    \"for\"[] = 1.5:f64\n  }\n"
    "  while i >= 3 {\n    set acc = acc - 1.0\n  }\n"
    "  y[i, n] = select(i == 0, max(acc, 0.0), nan)\n"
    "}\n"
    "set k = 3\nrequire k < n else \"k is \\\"large\\\"\"\n",
    "prog v\nbuf x: in f32[16]\nbuf r: reg f32x8[4]\nbuf y: out f32[16]\nbuf h: local i16[32]\n"
    "for i in 0..4 unroll {\n"
    "  r[i] = splat.8(1.5)\n"
    "}\n"
    "let a: f32x8 = x[8:8]\n"
    "let m: i64 = 3\n"
    "r[1 + 2] = fma(a, r[0], shuffle.0.9.1.2.3.4.5.15(r[1], r[2]))\n"
    "y[0:8] = r[3]\n"
    "y[8] = reduce.add(shuffle.0.0.0.0(a))\n"
    "y[9] = random.f32(7, m * (m - (2 - 1)) - -4)\n"
    "h[0:16] = cast.i16.sat(x[0:16])\n"
    "y[10] = bitcast.f32(cast.u32(bits(7fc00001)))\n"
    "y[11] = select(not(m < 3), cast.f32(2:u64), inf)\n",
    "prog plan\nsym n in 1..4\narena 192\nbuf x: in f32[n]\nbuf t: temp f32[n,8] at 64\n"
    "buf v: temp f32[8,n] alias t\nbuf l: local i8[] at 0\n",
    "prog t\nbuf s: const str[2] = {\"a\\n\", \"\"}\nbuf o: out str[1]\n"
    "o[0] = \"b\":str\n",
    "prog z\nbuf e: const f32[0,3] = {}\nbuf b: const bool[2] = {true, false}\n"
    "buf u: const u64[1] = {18446744073709551615}\nbuf h: const f16[2] = {0.1, -inf}\n"
    "for i in 0..10 unroll {\n}\nfor i in 0..10 {\n  for i1 in 0..i {\n  }\n}\n",
};

static const char *const bad[] = {
    "",
    "prog p\nx[0] = 1",
    "prog p\nset k = 1",
    "prog p\nbuf x: in f32[",
    "prog p\nbuf x: in f32[-1]\n",
    "prog p\nbuf x: in f33[1]\n",
    "prog p\nbuf x: in f32x4[1]\n",
    "prog p\nbuf x: in f32x0[1]\n",
    "prog p\nbuf x: in f32[1]\nbuf x: in f32[1]\n",
    "prog p\nbuf x: in f32[1]\nx[0] = 1.0\n",
    "prog p\nbuf x: const f32[1] = {1}\nx[0] = 1.0\n",
    "prog p\nbuf x: const f32[1] = {1}\nbuf v: temp f32[1] alias x\nv[0] = 1.0\n",
    "prog p\nbuf x: const f32[1000000,1000000,1000000] = {1}\n",
    "prog p\nbuf x: const f32[2] = {1}\n",
    "prog p\nbuf x: const f32[2] = {1, 2, 3}\n",
    "prog p\nbuf x: const f32[2] = @side(0, 8)\n",
    "prog p\nbuf x: temp f32[2] alias y\n",
    "prog p\nbuf x: temp f32[2] alias x\n",
    "prog p\nbuf x: temp f32[2]\nbuf y: temp f32[3] alias x\n",
    "prog p\nbuf x: temp f32[2]\nx[0, 0] = 1.0\n",
    "prog p\nbuf x: temp f32[2]\nx[2] = 1.0\n",
    "prog p\nbuf x: temp f32[2]\nx[1:2] = splat.2(1.0)\n",
    "prog p\nbuf x: temp f32[2]\nfor i in 0..3 {\n  x[i] = 1.0\n}\n",
    ("prog p\nbuf x: temp f32[8]\nfor i in 0..3 {\n  for j in 0..3 {\n    x[4*i + j] = 1.0\n  "
     "}\n}\n"),
    "prog p\nbuf x: temp f32[2]\nx[0] = 1\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = 1.0 + 1\n",
    "prog p\nbuf x: temp f32[2]\nx[0:2] = 1.0\n",
    "prog p\nbuf x: temp f32[2]\nx[0.0] = 1.0\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = splat.4(1.0) + splat.8(1.0)\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = shuffle.9(splat.4(1.0))\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = reduce.neg(splat.4(1.0))\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = and(1.0, 2.0)\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = add(1.0)\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = nosuch(1.0)\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = conv(1.0, 2.0)\n",
    "prog p\nbuf x: temp f32[2]\nx[0] = bitcast.f32(1)\n",
    "prog p\nbuf x: temp i8[2]\nx[0] = 128:i8\n",
    "prog p\nbuf r: reg f32[2]\nfor i in 0..2 {\n  r[i] = 1.0\n}\n",
    "prog p\nfor i in 0..2 {\n  set i = 3\n}\n",
    "prog p\nfor i in 0..2 {\n  for i in 0..2 {\n  }\n}\n",
    "prog p\nfor i in 0..2 step 0 {\n}\n",
    "prog p\nfor i in 0..1.5 {\n}\n",
    "prog p\nfor i in i..2 {\n}\n",
    "prog p\nlet a: f32 = 1\n",
    "prog p\nlet a: f32 = a\n",
    "prog p\nif 1 {\n}\n",
    "prog p\nif true {\n  let a: f32 = 1.0\n}\nset a = 2.0\n",
    "prog p\nsym n in 1..4\nset n = 2\n",
    "prog p\nsym n in 4..1\n",
    "prog p\nsym n in 1..4\nsym n in 1..4\n",
    "prog p\nsym n in 1..4\nlet n: i64 = 3\n",
    "prog p\nkernel x {\n}\n",
    "prog p\nrequire true\n",
    "prog p\nrequire 1 else \"no\"\n",
    "prog p\nfor i in 0..2 {\n",
    "prog p\n}\n",
    "prog p\nbuf x: temp f32[8] at 0\n",
    "prog p\narena 64\nbuf x: temp f32[8]\n",
    "prog p\narena 64\nbuf x: temp f32[8] at 1\n",
    "prog p\narena 64\nbuf x: temp f32[17] at 0\n",
    "prog p\narena 64\nbuf x: in f32[8] at 0\n",
    "prog p\narena -1\n",
    "prog p\nlet c: c64 = 1:c64\n",
    "prog p\nlet c: i64 = (1\n",
    "prog p\nlet c: i64 = x[\n",
    "prog p\nlet c: i64 = -\n",
    "prog p\nlet c: i64 = \"\n",
};

static Prog *parsed;
typedef struct Source {
  const char *at;
  size_t n;
  const u8 *weights;
  size_t nweights;
} Source;

static void parse(Ctx *c, void *arg) {
  Source *s = arg;
  parsed = prog_parse(c, s->at, s->n, str_of(c, "test.prog"), s->weights, s->nweights);
}

static Err attempt(Ctx *c, const char *at, size_t n) {
  char *exact = arena_copy(&c->work, at, n); /* so that sanitizers see a read behind the end */
  return ctx_protect(c, parse, &(Source){exact, n, NULL, 0});
}

static void round_trip(const char *text) {
  Ctx *c = ctx_new(NULL, NULL);
  Err err = attempt(c, text, strlen(text));
  if (err) fprintf(stderr, "%s\n", c->diags ? c->diags->text : "?");
  CHECK(err == ERR_ok);
  StrBuf out = sb_new(&c->work);
  prog_print(parsed, &out, NULL);
  static const char version[] = "ingot 2\n";
  const char *got = sb_cstr(&out);
  CHECK(!strncmp(got, version, sizeof version - 1));
  got += sizeof version - 1;
  if (strcmp(got, text)) fprintf(stderr, "wanted:\n%s\ngot:\n%s\n", text, got);
  CHECK(strcmp(got, text) == 0);
  ctx_free(c);
}

/* Every prefix and many single-byte changes: refused or accepted, never worse. */
static void damage(const char *text) {
  size_t n = strlen(text);
  u32 seed = 1;
  for (size_t i = 0; i < n + 300; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    if (i < n) {
      attempt(c, text, i);
    } else {
      char *copy = arena_copy(&c->work, text, n);
      for (u32 k = 0; k < 1 + i % 3; k++) {
        seed = seed * 1664525 + 1013904223;
        copy[(seed >> 8) % n] = "\0(){}[]:.,\"+-*=<09axn \n#"[(seed >> 4) % 24];
      }
      attempt(c, copy, n);
    }
    ctx_free(c);
  }
}

static void deep(const char *open, const char *close, const char *mid, const char *head) {
  Ctx *c = ctx_new(NULL, NULL);
  StrBuf t = sb_new(&c->work);
  sb_puts(&t, head);
  for (u32 i = 0; i < 100000; i++) sb_puts(&t, open);
  sb_puts(&t, mid);
  for (u32 i = 0; i < 100000; i++) sb_puts(&t, close);
  CHECK(attempt(c, t.at, t.n) == ERR_input);
  ctx_free(c);
}

static void weights_file(void) {
  Ctx *c = ctx_new(NULL, NULL);
  StrBuf src = sb_new(&c->work), out = sb_new(&c->work), weights = sb_new(&c->work);
  StrBuf again = sb_new(&c->work), weights2 = sb_new(&c->work);
  sb_puts(&src, "prog s\nbuf a: const i32[2] = {1, 2}\nbuf w: const f32[10,10] = {0.5");
  for (int i = 1; i < 100; i++) sb_fmt(&src, ", %d.25", i);
  sb_puts(&src, "}\nbuf y: out f32[1]\ny[0] = w[9, 9]\n");
  CHECK(attempt(c, src.at, src.n) == ERR_ok);
  prog_print(parsed, &out, &weights);
  CHECK(weights.n == 400);
  CHECK(strstr(sb_cstr(&out), "w: const f32[10,10] = @weights(0, 400)\n") != NULL);
  Source s = {out.at, out.n, (const u8 *)weights.at, weights.n};
  CHECK(ctx_protect(c, parse, &s) == ERR_ok);
  prog_print(parsed, &again, &weights2);
  CHECK(strcmp(sb_cstr(&again), sb_cstr(&out)) == 0);
  CHECK(weights2.n == weights.n && memcmp(weights2.at, weights.at, weights.n) == 0);
  s.nweights = 399;
  CHECK(ctx_protect(c, parse, &s) == ERR_input);
  ctx_free(c);
}

static void lines(void) {
  Ctx *c = ctx_new(NULL, NULL);
  const char *text = "prog p # name\n\nbuf x: temp f32[2]\n# more\nx[0] = 1.0\nx[5] = 1.0\n";
  CHECK(attempt(c, text, strlen(text)) == ERR_input);
  CHECK(c->diags && c->diags->loc.line == 6);
  ctx_free(c);
}

int main(void) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) round_trip(good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    Err err = attempt(c, bad[i], strlen(bad[i]));
    if (err != ERR_input) fprintf(stderr, "accepted (%d): %s\n", err, bad[i]);
    CHECK(err == ERR_input);
    ctx_free(c);
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) damage(good[i]);
  deep("if true {\n", "}\n", "", "prog p\n");
  deep("(", ")", "1", "prog p\nlet a: i64 = ");
  deep("neg(", ")", "1", "prog p\nlet a: i64 = ");
  deep("1 + ", "", "1", "prog p\nlet a: i64 = ");
  deep("x[", "]", "0", "prog p\nbuf x: temp i64[4]\nlet a: i64 = ");
  weights_file();
  lines();
  return check_end();
}
