/* The interpreter and bytecode: results of small programs, refusals, and random programs run by
 * both. */
#include "check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "back/back.h"

typedef struct Job {
  const char *text;
  u64 seed;
  bool vm; /* as bytecode */
  Prog *p;
  Tensor *in[4], *out[4];
} Job;

static void parse(Ctx *c, void *arg) {
  Job *j = arg;
  j->p = prog_parse(c, j->text, strlen(j->text), str_of(c, "test"), NULL, 0);
  prog_check(j->p);
}

static void run(Ctx *c, void *arg) {
  Job *j = arg;
  if (j->vm)
    vm_run(vm_compile(j->p, &c->work), &(VmOptions){.seed = j->seed}, j->in, j->out, &c->work);
  else
    interp_run(j->p, &(InterpOptions){.seed = j->seed}, j->in, j->out, &c->work);
}

/* Deterministic contents that suit the dtype. */
static Tensor *ramp(Ctx *c, DType dt, const i64 *dim, u32 rank) {
  Tensor *t = tensor_new(&c->work, dt, dim, rank);
  for (u64 i = 0; i < t->n; i++) {
    Scalar x = {.i = (i64)(i % 5)};
    if (dtype_is_float(dt)) x.f = scalar_round(dt, (double)(i % 13) * 0.375 - 1.5);
    tensor_set(t, i, x);
  }
  return t;
}

static Err attempt(Ctx *c, Job *j) {
  Err err = ctx_protect(c, parse, j);
  if (err) return err;
  for (u32 i = 0; i < j->p->in.n && i < 4; i++) {
    const Buf *b = prog_buf(j->p, j->p->in.at[i]);
    if (j->in[i]) continue;
    i64 dim[MAX_RANK];
    for (u32 k = 0; k < b->rank; k++) dim[k] = dim_is_const(b->dim[k]) ? b->dim[k] : 4;
    j->in[i] = ramp(c, b->dt, dim, b->rank);
  }
  return ctx_protect(c, run, j);
}

/* The first output must begin with these numbers, by both. */
static void expect(const char *text, u32 n, const double *want) {
  for (int vm = 0; vm < 2; vm++) {
    Ctx *c = ctx_new(NULL, NULL);
    Job j = {.text = text, .vm = vm};
    Err err = attempt(c, &j);
    if (err) fprintf(stderr, "%s: %s\n", text, c->diags ? c->diags->text : "?");
    if (CHECK(err == ERR_ok) && CHECK(j.out[0]->n >= n)) {
      for (u32 i = 0; i < n; i++) {
        Scalar x = tensor_get(j.out[0], i);
        double got = dtype_is_float(j.out[0]->dt) ? x.f : (double)x.i;
        if (!CHECK(got == want[i] || (isnan(got) && isnan(want[i]))))
          fprintf(stderr, "vm %d, element %u: %g, expected %g in\n%s\n", vm, i, got, want[i], text);
      }
    }
    ctx_free(c);
  }
}
#define EXPECT(text, ...)                                                                          \
  expect(text, sizeof(double[]){__VA_ARGS__} / sizeof(double), (double[]){__VA_ARGS__})

/* The interpreter finds every index that leaves its extent, bytecode those that leave the memory.
 */
static void refuse(const char *text, Err code) {
  for (int vm = 0; vm < 2; vm++) {
    Ctx *c = ctx_new(NULL, NULL);
    Job j = {.text = text, .vm = vm};
    Err err = attempt(c, &j);
    if (!CHECK(err == code || (vm && code == ERR_system && err == ERR_ok)))
      fprintf(stderr, "vm %d: %d, expected %d: %s\n", vm, err, code, text);
    ctx_free(c);
  }
}

static void results(void) {
  EXPECT("prog p\nbuf y: out f32[4]\nfor i in 0..4 { y[i] = cast.f32(i) * 2.0 + 1.0 }\n", 1, 3, 5,
         7);
  EXPECT("prog p\nbuf y: out i64[6]\nfor i in 0..6 step 2 { y[i] = i\n y[i + 1] = neg(i) }\n", 0, 0,
         2, -2, 4, -4);
  /* reductions into a variable and into memory, forwards and the other way round */
  EXPECT("prog p\nbuf y: out f32[3]\nlet s: f32 = 1.0\nlet m: f32 = -inf\nlet d: f32 = 2.0\n"
         "for i in 0..5 { set s = s + cast.f32(i)\n set m = max(m, cast.f32(mod(i * 3, 5)))\n"
         "  set d = cast.f32(i) - d }\ny[0] = s\ny[1] = m\ny[2] = d\n",
         11, 4, 0);
  EXPECT("prog p\nbuf y: out i32[2]\ny[1] = 7:i32\nfor i in 0..5 { y[1] = y[1] - cast.i32(i) }\n",
         0, -3);
  /* what one iteration writes the next one reads */
  EXPECT("prog p\nbuf y: out i64[6]\ny[0] = 1\nfor i in 1..6 { y[i] = y[i - 1] * 2 }\n", 1, 2, 4, 8,
         16, 32);
  EXPECT(
      "prog p\nbuf y: out i64[4]\nfor i in 0..4 { y[i] = i }\nfor i in 0..3 { y[i] = y[i + 1] }\n",
      1, 2, 3, 3);
  EXPECT("prog p\nbuf y: out i64[4]\nfor i in 0..4 { let a: i64 = y[i]\n y[i] = a + 1 + i\n"
         "  y[i] = y[i] * 10 + a }\n",
         10, 20, 30, 40);
  /* two views of one memory */
  EXPECT("prog p\nbuf y: out i64[2,3]\nbuf v: temp i64[6] alias y\nfor i in 0..6 { v[i] = i }\n"
         "for i in 0..2 { y[i, 0] = v[i * 3 + 2] }\n",
         2, 1, 2, 5, 4, 5);
  /* indices from data; later stores win */
  EXPECT("prog p\nbuf y: out i64[3]\nbuf k: const i64[4] = {2, 0, 2, 0}\n"
         "for i in 0..4 { y[k[i]] = i }\nfor i in 0..4 { y[k[i]] = y[k[i]] + 10 }\n",
         23, 0, 22);
  /* choice, conditions, while */
  EXPECT("prog p\nbuf y: out i64[4]\nfor i in 0..4 { y[i] = select(i < 2, i, 10 * i) }\n"
         "let n: i64 = 3\nwhile n > 0 { set n = n - 1\n if n == 1 { y[n] = 99 } else { y[n] = y[n] "
         "+ 1 } }\n",
         1, 99, 21, 30);
  /* integers wrap, narrow floats round, unsigned order */
  EXPECT("prog p\nbuf y: out i8[2]\nfor i in 0..2 { y[i] = cast.i8(100) + cast.i8(i * 50) }\n", 100,
         -106);
  EXPECT("prog p\nbuf y: out f16[2]\nfor i in 0..2 { y[i] = cast.f16(2048.0) + "
         "cast.f16(cast.f32(i)) }\n",
         2048, 2048);
  EXPECT("prog p\nbuf y: out bool[2]\nfor i in 0..2 { y[i] = cast.u64(i - 1) > 5:u64 }\n", 1, 0);
  EXPECT("prog p\nbuf y: out u8[3]\nfor i in 0..3 { y[i] = cast.u8.sat(cast.f32(i) * 200.0) }\n", 0,
         200, 255);
  /* vectors and registers */
  EXPECT("prog p\nbuf x: in f32[8]\nbuf r: reg f32x4[2]\nbuf y: out f32[9]\n"
         "for i in 0..2 unroll { r[i] = x[4 * i:4] }\n"
         "y[0:4] = fma(r[0], splat.4(2.0), r[1])\ny[4:4] = shuffle.3.4.0.7(r[0], r[1])\n"
         "y[8] = reduce.add(r[0])\n",
         -3, -1.875, -0.75, 0.375, -0.375, 0, -1.5, 1.125, -3.75);
  EXPECT("prog p\nbuf y: out f32[2]\nlet v: f32x2 = splat.2(1.0)\nfor i in 0..3 { set v = v + v }\n"
         "y[0:2] = v\n",
         8, 8);
  EXPECT("prog p\nbuf y: out u32[1]\ny[0] = bitcast.u32(-2.0)\n", 3221225472.0);
  expect("prog p\nbuf y: out f32[0,3]\nfor i in 0..0 { y[i, 0] = 1.0 }\n", 0, NULL);
}

/* Symbols of inputs are bound by shapes; those of data are set, and buffers follow them. */
static void symbols(void) {
  EXPECT("prog p\nsym n in 1..64\nbuf x: in f32[n]\nbuf y: out i64[2*n+1]\n"
         "for i in 0..2 * n + 1 { y[i] = n }\n",
         4, 4, 4, 4, 4, 4, 4, 4, 4);
  const char *text =
      "prog p\nsym k data in 0..10\nbuf x: in i64[10]\nbuf y: out i64[k,2]\n"
      "let n: i64 = 0\nfor i in 0..10 { if x[i] > 2 { set n = n + 1 } }\nset k = n\n"
      "set n = 0\nfor i in 0..10 { if x[i] > 2 { y[n, 0] = i\n y[n, 1] = k\n set n = n + 1 } }\n"
      "for i in 0..k { y[i, 1] = y[i, 1] * 2 + i }\n";
  EXPECT(text, 3, 8, 4, 9, 8, 10, 9, 11);
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.text = text};
  CHECK(attempt(c, &j) == ERR_ok);
  CHECK(j.out[0]->rank == 2 && j.out[0]->dim[0] == 4 && j.out[0]->dim[1] == 2);
  ctx_free(c);
  c = ctx_new(NULL, NULL);
  j = (Job){.text = "prog p\nsym n in 1..3\nbuf x: in f32[n]\n"};
  CHECK(attempt(c, &j) == ERR_input); /* 4 is beyond the bound */
  j = (Job){.text = "prog p\nsym n in 1..9\nbuf x: in f32[n,2*n]\n"};
  CHECK(attempt(c, &j) == ERR_input);
  j = (Job){.text = "prog p\nsym n in 1..9\nbuf x: in f32[2*n]\nbuf y: out f32[n]\n"};
  CHECK(attempt(c, &j) == ERR_ok && j.out[0]->dim[0] == 2);
  j = (Job){.text = "prog p\nsym n in 1..9\nbuf y: out f32[n]\n"};
  CHECK(attempt(c, &j) == ERR_usage);
  j = (Job){.text = "prog p\nbuf x: in f32[3]\n", .in = {ramp(c, DT_i32, (i64[]){3}, 1)}};
  CHECK(attempt(c, &j) == ERR_input);
  ctx_free(c);
}

static void bounds(void) {
  const char *head =
      "prog p\nsym k data in 0..10\nbuf x: in i64[5]\nbuf y: out i64[5]\nbuf z: out i64[k,3]\n";
  static const char *const body[] = {
      "let n: i64 = 0\nset n = n + 5\ny[n] = 1\n",
      "for i in 0..5 { y[i * x[2]] = 1 }\n",
      "let n: i64 = 0\nset n = n + 6\nfor i in 0..n { y[i] = 1 }\n",
      "let n: i64 = 1\nset n = n - 2\nfor i in 0..5 { y[i] = x[i + n] }\n",
      "for i in 0..5 { y[i] = x[x[i] * 2] }\n",
      "for i in 0..5 { y[x[i] + 1] = i }\n",
      "set k = 2\nfor i in 0..3 { z[i, 0] = 1 }\n",
      "z[0, 0] = 1\n",
  };
  for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
    char text[400];
    snprintf(text, sizeof text, "%s%s", head, body[i]);
    refuse(text, ERR_system);
  }
  refuse("prog p\nsym k data in 0..10\nset k = 11\n", ERR_input); /* its data is to blame */
  refuse("prog p\nsym k data in 1..10\nset k = 0\n", ERR_input);
}

static void numbers(void) {
  const char *text =
      "prog p\nbuf y: out f32[700]\nfor i in 0..700 { y[i] = random.f32(3, i * 2) }\n";
  Ctx *c = ctx_new(NULL, NULL);
  Job a = {.text = text, .seed = 5}, b = {.text = text, .seed = 5, .vm = true};
  CHECK(attempt(c, &a) == ERR_ok && attempt(c, &b) == ERR_ok);
  CHECK(tensor_equal(c, a.out[0], b.out[0]));
  CHECK(tensor_get(a.out[0], 699).f == random_unit(DT_f32, 3, 5, 1398));
  ctx_free(c);
}

/* ---- random programs ---- */

typedef struct Gen {
  StrBuf t;
  u64 seed;
  u32 depth;   /* loops around */
  u32 nvar[4]; /* visible variables by type: v<type>_<number> */
  i64 ext[4];  /* extents of the loops around, whose variables are i0, i1, i2 */
} Gen;

static const char *const gen_type[] = {"f32", "i64", "f64", "u8"};

static u32 pick(Gen *g, u32 n) {
  g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
  return (u32)(g->seed >> 33) % n;
}

static void gen_expr(Gen *g, u32 type, u32 size);

static void gen_loop_var(Gen *g, u32 v, i64 n) {
  sb_fmt(&g->t, g->ext[v] <= n ? "i%u" : "mod(i%u, %lld)", v, (long long)n);
}

/* Mostly linear, mostly in range, not always. */
static void gen_index(Gen *g, i64 n) {
  StrBuf *t = &g->t;
  u32 last = g->depth - 1, v = g->depth ? pick(g, g->depth) : 0;
  switch (g->depth ? pick(g, 16) : 15) {
  default: gen_loop_var(g, last, n); break;
  case 6:
  case 7: gen_loop_var(g, v, n); break;
  case 8:
    gen_loop_var(g, last, n - 1);
    sb_puts(t, " + 1");
    break;
  case 9:
    sb_fmt(t, "%lld - ", (long long)n - 1);
    gen_loop_var(g, v, n);
    break;
  case 10: sb_fmt(t, "i%u * 2 - i%u", last, v); break;
  case 11:
    sb_puts(t, "mod(");
    gen_expr(g, 1, 1);
    sb_fmt(t, ", %lld)", (long long)n);
    break;
  case 14:
  case 15: sb_fmt(t, "%u", pick(g, 5)); break;
  }
}

/* Buffers of every type: x [7,700] (read only), y [7,700], z [700,5], and w, y seen as [980,5]. */
static void gen_element(Gen *g, u32 type, bool store) {
  char b = (store ? "yzw" : "xyzw")[pick(g, store ? 3 : 4)];
  bool wide = b == 'x' || b == 'y';
  sb_fmt(&g->t, "%c%u[", b, type);
  gen_index(g, wide ? 7 : b == 'z' ? 700 : 980);
  sb_puts(&g->t, ", ");
  gen_index(g, wide ? 700 : 5);
  sb_puts(&g->t, "]");
}

static void gen_list(Gen *g, const char *open, u32 t0, const char *sep, u32 t1, u32 size) {
  sb_puts(&g->t, open);
  gen_expr(g, t0, size);
  sb_puts(&g->t, sep);
  gen_expr(g, t1, size);
}

static void gen_leaf(Gen *g, u32 type) {
  u32 k = pick(g, 4);
  bool real = type == 0 || type == 2;
  if (k == 0)
    sb_fmt(&g->t, real ? "%u.5:%s" : "%u:%s", pick(g, 4), gen_type[type]);
  else if (k == 1 && g->nvar[type])
    sb_fmt(&g->t, "v%u_%u", type, pick(g, g->nvar[type]));
  else if (k == 2 && type == 1 && g->depth)
    sb_fmt(&g->t, "i%u", pick(g, g->depth));
  else
    gen_element(g, type, false);
}

static void gen_expr(Gen *g, u32 type, u32 size) {
  static const char *const flt[] = {"max(", "min(", "sub(", "div("};
  static const char *const integer[] = {"max(", "xor(", "mod(", "shr("};
  static const char *const one[] = {"exp(", "neg(", "sqrt(", "floor("};
  bool real = type == 0 || type == 2;
  u32 t = pick(g, 2);
  switch (size ? pick(g, 7) : 0) {
  case 0:
  case 1: gen_leaf(g, type); return;
  case 2:
    sb_fmt(&g->t, "cast.%s(", gen_type[type]);
    gen_expr(g, (type + 1 + pick(g, 3)) % 4, size - 1);
    break;
  case 3:
    gen_list(g, "select(", t, pick(g, 2) ? " < " : " == ", t, size - 1);
    gen_list(g, ", ", type, ", ", type, size - 1);
    break;
  case 4:
    sb_puts(&g->t, real ? one[pick(g, 4)] : "neg(");
    gen_expr(g, type, size - 1);
    break;
  case 5:
    gen_list(g, real ? flt[pick(g, 4)] : integer[pick(g, 4)], type, ", ", type, size - 1);
    break;
  default: gen_list(g, "(", type, pick(g, 2) ? " + " : " * ", type, size - 1);
  }
  sb_puts(&g->t, ")");
}

static void gen_stmts(Gen *g);

static void gen_loop(Gen *g) {
  static const i64 ext[] = {1, 3, 5, 5, 700};
  i64 n = ext[pick(g, g->depth < 2 ? 5 : 4)];
  sb_fmt(&g->t, "for i%u in ", g->depth);
  if (g->depth && pick(g, 3) == 0)
    sb_fmt(&g->t, "max(%u - i%u, 0)..min(div(i%u * 3 + %u, 2), %lld)", pick(g, 4), g->depth - 1,
           g->depth - 1, pick(g, 5), (long long)n);
  else
    sb_fmt(&g->t, "%u..%lld", n > 1 && pick(g, 3) == 0, (long long)n);
  sb_puts(&g->t, pick(g, 5) ? " {\n" : " step 2 {\n");
  g->ext[g->depth++] = n;
  gen_stmts(g);
  g->depth--;
  sb_puts(&g->t, "}\n");
}

/* y = y op x on one element, the pattern of contractions. */
static void gen_update(Gen *g, u32 type) {
  static const char *const op[] = {" + ", " + ", " + ", " * ", " - "};
  size_t from = g->t.n;
  gen_element(g, type, true);
  size_t n = g->t.n - from;
  char element[200];
  if (n >= sizeof element) return;
  memcpy(element, g->t.at + from, n);
  sb_puts(&g->t, " = ");
  if (pick(g, 4)) {
    sb_put(&g->t, element, n);
    sb_puts(&g->t, op[pick(g, 5)]);
    gen_list(g, "", type, " * ", type, 0);
  } else {
    gen_list(g, "max(", type, ", ", type, 1);
    sb_puts(&g->t, ")");
  }
}

static void gen_stmt(Gen *g) {
  StrBuf *t = &g->t;
  u32 type = pick(g, 8) < 4 ? 0 : pick(g, 4);
  switch (pick(g, 9)) {
  case 0:
  case 1:
    gen_element(g, type, true);
    sb_puts(t, " = ");
    gen_expr(g, type, 2);
    break;
  case 2:
  case 3: gen_update(g, type); break;
  case 4:
    sb_fmt(t, "let v%u_%u: %s = ", type, g->nvar[type], gen_type[type]);
    gen_expr(g, type, 2);
    g->nvar[type]++;
    break;
  case 5:
  case 6: {
    if (!g->nvar[type]) return;
    u32 v = pick(g, g->nvar[type]);
    sb_fmt(t, "set v%u_%u = ", type, v);
    if (pick(g, 4)) sb_fmt(t, "v%u_%u%s", type, v, pick(g, 2) ? " + " : " * ");
    gen_expr(g, type, 0);
    break;
  }
  default:
    if (g->depth < 3) {
      gen_loop(g);
    } else {
      sb_puts(t, "if i0 < 2 {\n");
      gen_update(g, type);
      sb_puts(t, "\n}\n");
    }
    return;
  }
  sb_puts(t, "\n");
}

static void gen_stmts(Gen *g) {
  u32 nvar[4];
  memcpy(nvar, g->nvar, sizeof nvar);
  for (u32 n = 1 + pick(g, 4); n; n--) gen_stmt(g);
  memcpy(g->nvar, nvar, sizeof nvar);
}

static const char *gen_prog(Ctx *c, u64 seed) {
  Gen g = {.t = sb_new(&c->work), .seed = seed};
  sb_puts(&g.t, "prog p\n");
  for (u32 i = 0; i < 4; i++) sb_fmt(&g.t, "buf x%u: in %s[7,700]\n", i, gen_type[i]);
  for (u32 i = 0; i < 4; i++) sb_fmt(&g.t, "buf y%u: out %s[7,700]\n", i, gen_type[i]);
  for (u32 i = 0; i < 4; i++) sb_fmt(&g.t, "buf z%u: temp %s[700,5]\n", i, gen_type[i]);
  for (u32 i = 0; i < 4; i++)
    sb_fmt(&g.t, "buf w%u: temp %s[980,5] alias y%u\n", i, gen_type[i], i);
  gen_stmts(&g);
  gen_loop(&g);
  gen_loop(&g);
  /* what is left in z becomes visible */
  for (u32 i = 0; i < 4; i++)
    sb_fmt(&g.t,
           "for i0 in 0..700 {\n  for i1 in 0..5 {\n    y%u[i1, i0] = y%u[i1, i0] + z%u[i0, "
           "i1]\n  }\n}\n",
           i, i, i);
  return sb_cstr(&g.t);
}

static bool same(const Tensor *a, const Tensor *b) {
  for (u64 i = 0; i < a->n; i++) {
    Scalar x = tensor_get(a, i), y = tensor_get(b, i);
    if (x.i != y.i && !(dtype_is_float(a->dt) && isnan(x.f) && isnan(y.f))) return false;
  }
  return true;
}

static void random_programs(u64 first, u64 n) {
  u32 ran = 0, refused = 0;
  for (u64 seed = first; seed < first + n; seed++) {
    Ctx *c = ctx_new(NULL, NULL);
    const char *text = gen_prog(c, seed);
    Job walk = {.text = text}, vm = {.text = text, .vm = true};
    Err e0 = attempt(c, &walk), e1 = attempt(c, &vm);
    bool ok = CHECK(e0 == ERR_ok || e0 == ERR_system || e0 == ERR_input);
    if (ok) ok = CHECK(e0 == e1 || (e0 == ERR_system && e1 == ERR_ok));
    for (u32 i = 0; ok && e0 == ERR_ok && i < 4; i++) ok = CHECK(same(walk.out[i], vm.out[i]));
    if (!ok)
      fprintf(stderr, "seed %llu (%d, %d): %s\n%s\n", (unsigned long long)seed, e0, e1,
              c->diags ? c->diags->text : "", text);
    ran += e0 == ERR_ok;
    refused += e0 != ERR_ok;
    ctx_free(c);
  }
  CHECK(n < 100 || ran > refused);
  if (getenv("VERBOSE")) printf("%u ran, %u refused\n", ran, refused);
}

int main(int argc, char **argv) {
  results();
  symbols();
  bounds();
  numbers();
  u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  random_programs(first, argc > 2 ? strtoull(argv[2], NULL, 10) : 300);
  return check_end();
}
