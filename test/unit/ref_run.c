/* Reference evaluator as a whole: symbols of inputs and data, control flow, memory of loops, steps,
 * refusals. */
#include "ir/graph/graph.h"

#include <stdio.h>
#include <string.h>

static int failures;
#define CHECK(x)                                                                                   \
  ((x) ? (void)0 : (void)(failures++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x)))

static Graph *parse(Ctx *c, const char *text) {
  Graph *g = graph_parse(c, text, strlen(text), str_of(c, "text"), NULL, 0);
  graph_check(g);
  return g;
}

/* f32 tensor 0, 1, 2, ... */
static Tensor *ramp(Ctx *c, DType dt, u32 rank, i64 a, i64 b) {
  i64 dim[2] = {a, b};
  Tensor *t = tensor_new(&c->keep, dt, dim, rank);
  for (u64 i = 0; i < t->n; i++)
    tensor_set(t, i, dtype_is_float(dt) ? (Scalar){.f = (double)i} : (Scalar){.i = (i64)i});
  return t;
}

static const char symbols_text[] =
    "graph sym n in 1..8 sym m in 0..\n"
    "(%x \"x\": f32[n,2*m+1], %y \"y\": f32[n], %z \"z\": f32[m]) {\n"
    "  %d: i64[3] = dims {shape = [n,m,n*m], to = i64, rank = 1}\n"
    "  %s: f32[2*m+1] = reduce_sum(%x) {axes = [0], keep = 0}\n"
    "  %t: f32[m] = slice(%s) {start = [m+1], step = [-1], size = [m]}\n"
    "  %u: f32[m] = add(%t, %z)\n"
    "  return %d \"d\", %u \"u\" }";

static void symbols(Ctx *c, void *arg) {
  const i64 *dim = arg;
  Graph *g = parse(c, symbols_text);
  Tensor *in[3] = {ramp(c, DT_f32, 2, dim[0], dim[1]), ramp(c, DT_f32, 1, dim[2], 0),
                   ramp(c, DT_f32, 1, dim[3], 0)};
  Tensor *out[2];
  RefOptions o = {0};
  ref_run(g, &o, in, out, &c->keep);
  CHECK(tensor_get(out[0], 0).i == 2 && tensor_get(out[0], 1).i == 2 &&
        tensor_get(out[0], 2).i == 4);
  /* columns of 2 x 5: 5 7 9 11 13; from 3 downwards, plus 0 and 1 */
  CHECK(out[1]->n == 2 && tensor_get(out[1], 0).f == 11 && tensor_get(out[1], 1).f == 10);
}

static void refusal(void (*fn)(Ctx *, void *), void *arg, Err code, const char *text) {
  Ctx *c = ctx_new(NULL, NULL);
  Err e = ctx_protect(c, fn, arg);
  const char *found = c->diags ? c->diags->text : "";
  if (e != code || !strstr(found, text)) {
    failures++;
    fprintf(stderr, "expected code %d with '%s', found %d with '%s'\n", code, text, e, found);
  }
  ctx_free(c);
}

static void wrong_type(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(c, symbols_text);
  Tensor *in[3] = {ramp(c, DT_f32, 2, 2, 5), ramp(c, DT_i64, 1, 2, 0), ramp(c, DT_f32, 1, 2, 0)};
  Tensor *out[2];
  ref_run(g, &(RefOptions){0}, in, out, &c->keep);
}

static void budget(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(c, "graph () { %a: f32[] = const {1}\n"
                      "%b: f32[1000000] = broadcast(%a) {shape = [1000000]}  return %b }");
  Tensor *out;
  ref_run(g, &(RefOptions){.max_bytes = 1000}, NULL, &out, &c->keep);
}

static void shapes_differ(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(c, "graph sym n in 0.. sym m in 0.. (%x \"x\": f32[n], %y \"y\": f32[m]) {\n"
                      "%b: f32[n] = add(%x, %y)  return %b }");
  Tensor *in[2] = {ramp(c, DT_f32, 1, 2, 0), ramp(c, DT_f32, 1, 3, 0)}, *out;
  ref_run(g, &(RefOptions){0}, in, &out, &c->keep);
}

/* ---- control ---- */

static const char branch_text[] =
    "graph sym u data in 0..6 sym v data in 1..3 (%p \"p\": bool[], %x \"x\": f32[2,3]) {\n"
    "  %k: i64[2,u] = nonzero(%x) sym(u)\n"
    "  %y: f32[2,v] = if(%p) { return %x }\n"
    "  else { %h: f32[2,1] = slice(%x) {start = [0,1], step = [1,1], size = [2,1]}  return %h } "
    "sym(v)\n"
    "  %d: i64[2] = dims {shape = [u,v], to = i64, rank = 1}\n"
    "  return %k, %y, %d }";

static void branch(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(c, branch_text);
  Tensor *in[2] = {tensor_new(&c->keep, DT_bool, NULL, 0), ramp(c, DT_f32, 2, 2, 3)}, *out[3];
  for (i64 p = 0; p < 2; p++) {
    tensor_set(in[0], 0, (Scalar){.i = p});
    ref_run(g, &(RefOptions){0}, in, out, &c->keep);
    CHECK(out[0]->dim[0] == 2 && out[0]->dim[1] == 5);
    CHECK(tensor_get(out[0], 0).i == 0 && tensor_get(out[0], 5).i == 1 &&
          tensor_get(out[0], 9).i == 2);
    CHECK(out[1]->dim[1] == (p ? 3 : 1) && tensor_get(out[1], 1).f == (p ? 1 : 4));
    CHECK(tensor_get(out[2], 0).i == 5 && tensor_get(out[2], 1).i == (p ? 3 : 1));
  }
}

static const char loop_text[] =
    "graph sym u data in 0.. (%n \"n\": i64[], %lim \"lim\": i64[]) {\n"
    "  %t: bool[] = const {true}  %a: f32[1000] = iota {shape = [1000], axis = 0, to = f32}\n"
    "  %z: i64[] = const {0}\n"
    "  %r: f32[1000], %w: i64[], %s: i64[u] = loop(%n, %t, %a, %z) {scans = 1}\n"
    "  (%i: i64[], %c: bool[], %v: f32[1000], %q: i64[]) {\n"
    "    %one: i64[] = const {1}  %k: f32[] = const {1}\n"
    "    %v1: f32[1000] = add(%v, %k)  %v2: f32[1000] = sub(%v1, %k)  %v3: f32[1000] = add(%v2, "
    "%k)\n"
    "    %q1: i64[] = add(%q, %one)  %go: bool[] = lt(%q1, %lim)  %sq: i64[] = mul(%i, %i)\n"
    "    return %go, %v3, %q1, %sq } sym(u)\n"
    "  return %r, %w, %s }";

static void loop(Ctx *c, void *arg) {
  const i64 *want = arg; /* trip, limit, iterations */
  Graph *g = parse(c, loop_text);
  Tensor *in[2], *out[3];
  for (u32 k = 0; k < 2; k++) {
    in[k] = tensor_new(&c->keep, DT_i64, NULL, 0);
    tensor_set(in[k], 0, (Scalar){.i = want[k]});
  }
  size_t before = c->scratch.used;
  ref_run(g, &(RefOptions){0}, in, out, &c->scratch);
  /* 12 KB an iteration if nothing were released */
  CHECK(c->scratch.used - before < 1000000);
  CHECK(tensor_get(out[0], 7).f == 7.0 + (double)want[2]);
  CHECK(tensor_get(out[1], 0).i == want[2]);
  CHECK((i64)out[2]->n == want[2] && out[2]->rank == 1);
  for (i64 k = 0; k < want[2]; k++) CHECK(tensor_get(out[2], (u64)k).i == k * k);
}

/* A body uses constants and loops of the blocks around it; one node alone can be run. */
static void nested(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(c, "graph () { %t: bool[] = const {true}  %three: i64[] = const {3}\n"
                      "%z: i64[] = const {0}\n"
                      "%s: i64[] = loop(%three, %t, %z) {scans = 0}\n"
                      "(%i: i64[], %c: bool[], %a: i64[]) {\n"
                      "  %b: i64[] = loop(%three, %c, %a) {scans = 0}\n"
                      "  (%j: i64[], %d: bool[], %e: i64[]) { %f: i64[] = add(%e, %i)\n"
                      "    %h: i64[] = add(%f, %three)  return %d, %h }\n"
                      "  return %c, %b }\n"
                      "return %s }");
  Tensor *out;
  ref_run(g, &(RefOptions){0}, NULL, &out, &c->work);
  CHECK(tensor_get(out, 0).i == 3 * (0 + 1 + 2) + 9 * 3);
  const GraphRegion *b = &g->region.at[1];
  NodeId last = b->node.at[b->node.n - 1];
  const Node *n = graph_node(g, last);
  Tensor *in[3], *again;
  for (u32 k = 0; k < 3; k++) in[k] = (Tensor *)graph_const(g, n->in[k]);
  ref_node(g, last, in, &again, &c->work);
  CHECK(tensor_equal(c, out, again));
}

/* ---- the two modes, random numbers ---- */

static void wide(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = parse(
      c, "graph (%x \"x\": f32[2]) { %t: f32[] = const {3}  %y: f32[2] = div(%x, %t)\n"
         "%h: f16[2] = cast(%y) {to = f16}  %r: f32[2] = random {shape = [2], seed = 5, to = f32}\n"
         "%i: i32[2] = cast(%x) {to = i32}  return %y, %h, %r, %i }");
  Tensor *in = ramp(c, DT_f32, 1, 2, 0), *a[4], *b[4], *d[4];
  ref_run(g, &(RefOptions){.seed = 9}, &in, a, &c->keep);
  ref_run(g, &(RefOptions){.seed = 9, .wide = true}, &in, b, &c->keep);
  ref_run(g, &(RefOptions){.seed = 8, .wide = true}, &in, d, &c->keep);
  CHECK(a[0]->dt == DT_f32 && b[0]->dt == DT_f64 && b[1]->dt == DT_f64 && b[3]->dt == DT_i32);
  CHECK(tensor_get(a[0], 1).f == (double)(1.0f / 3) && tensor_get(b[0], 1).f == 1.0 / 3);
  CHECK(tensor_get(b[1], 1).f == 1.0 / 3 &&
        tensor_get(a[1], 1).f == scalar_round(DT_f16, 1.0f / 3));
  for (u64 k = 0; k < 2; k++) {
    double x = tensor_get(a[2], k).f;
    CHECK(x >= 0 && x < 1 && x == tensor_get(b[2], k).f && x != tensor_get(d[2], k).f);
  }
  CHECK(tensor_get(a[2], 0).f != tensor_get(a[2], 1).f);
  for (u64 k = 0; k < 100000; k++) CHECK(random_unit(DT_f16, 1, 2, k) < 1);
}

/* Constants may lie at any address. */
static void unaligned(Ctx *c, void *arg) {
  (void)arg;
  Graph *g = graph_new(c);
  u8 *raw = arena_alloc(&c->work, 64);
  float x[4] = {1, 2, 3, 4};
  memcpy(raw + 1, x, sizeof x);
  i64 dim[2] = {2, 2};
  Val v = mk_const(g, tensor_wrap(&c->work, DT_f32, dim, 2, raw + 1));
  Val w =
      mk_map2(g, OP_add, mk_matmul(g, v, v), mk_reduce(g, OP_reduce_sum, v, (i64[]){0}, 1, true));
  *vec_push(&c->work, &g->region.at[1].ret) = w;
  Tensor *out;
  ref_run(g, &(RefOptions){0}, NULL, &out, &c->keep);
  CHECK(tensor_get(out, 0).f == 11 && tensor_get(out, 3).f == 28);
}

/* Every box that is taken meets every other one. */
static void boxes(Ctx *c, void *arg) {
  (void)arg;
  NodeId dear;
  Graph *g = parse(c, "graph (%s: f32[1,2,3000], %b: f32[1,3000,4], %l: f32[], %m: i64[]) {\n"
                      "  %y: i64[1,2,500] = nms(%s, %b, %l, %l, %m) {kind = \"edges\", k = [500]}\n"
                      "  return %y }");
  CHECK(graph_steps(g, &dear) >= 2.0 * 500 * 3000);
}

static void good(void (*fn)(Ctx *, void *), void *arg) {
  refusal(fn, arg, ERR_ok, "");
}

int main(void) {
  good(symbols, (i64[]){2, 5, 2, 2});
  refusal(symbols, (i64[]){2, 4, 2, 2}, ERR_input, "input \"x\"");
  refusal(symbols, (i64[]){2, 5, 3, 2}, ERR_input, "input \"y\"");
  refusal(symbols, (i64[]){9, 5, 9, 2}, ERR_input, "1..8");
  refusal(wrong_type, NULL, ERR_input, "input \"y\": expected f32[n], found i64[2]");
  refusal(budget, NULL, ERR_unsupported, "constant folding budget");
  refusal(shapes_differ, NULL, ERR_input, "do not broadcast");
  good(branch, NULL);
  good(loop, (i64[]){10000, 1000000, 10000});
  good(loop, (i64[]){10000, 17, 17});
  good(loop, (i64[]){0, 1000000, 0});
  good(nested, NULL);
  good(wide, NULL);
  good(unaligned, NULL);
  good(boxes, NULL);
  return failures != 0;
}
