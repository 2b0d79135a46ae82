/* match.h: each matcher finds its operands in a graph spelled as an exporter would, after canon;
 * and does not take what only looks like it. */
#include "check.h"
#include "pass/graph/match.h"
#include "pass/pass.h"
#include <math.h>
#include <string.h>

typedef struct Case {
  const char *text;
  void (*look)(Graph *g, Val out);
} Case;

static Val param(Graph *g, u32 i) {
  return g->blk.at[1].param.at[i];
}

static void softmax(Graph *g, Val out) {
  Softmax m;
  CHECK(match_softmax(g, out, &m));
  CHECK(m.x == param(g, 0) && m.top && !m.log && !m.hides);
  CHECK(m.naxes == 1 && m.axes[0] == 1);
}

static void softmax_bare(Graph *g, Val out) {
  Softmax m;
  CHECK(match_softmax(g, out, &m));
  CHECK(m.x == param(g, 0) && !m.top && !m.log);
}

static void no_softmax(Graph *g, Val out) {
  Softmax m;
  CHECK(!match_softmax(g, out, &m));
  CHECK(!match_name(g, out));
}

static void layer_norm(Graph *g, Val out) {
  Norm m;
  CHECK(match_norm(g, out, &m));
  CHECK(m.centred && m.x == param(g, 0) && m.scale == param(g, 1) && m.bias == param(g, 2));
  CHECK(fabs(m.eps - 1e-5) < 1e-9 && m.naxes == 1 && m.axes[0] == 1);
}

static void rms_norm(Graph *g, Val out) {
  Norm m;
  CHECK(match_norm(g, out, &m));
  CHECK(!m.centred && m.x == param(g, 0) && m.scale == param(g, 1) && !m.bias);
}

static void attention(Graph *g, Val out) {
  Attention m;
  CHECK(match_attention(g, out, &m));
  CHECK(m.q == param(g, 0) && m.k == param(g, 1) && m.v == param(g, 2));
  CHECK(m.nmask == 2 && m.mask[0].kind == MASK_keep && m.mask[0].v == param(g, 4));
  CHECK(m.mask[0].low == -1000 && m.mask[1].kind == MASK_add && m.mask[1].v == param(g, 3));
  CHECK(m.scale == 0.5 && m.cap == 0 && m.vpos == 1 && m.qpos == 0);
}

static void gelu(Graph *g, Val out) {
  Val x;
  double by;
  CHECK(match_act(g, out, &x, &by) == ACT_gelu);
  CHECK(x == param(g, 0) && by == 1);
}

static const Case cases[] = {
    {"graph (%x: f32[2,5]) {\n"
     "%m: f32[2,1] = reduce_max(%x) {axes=[1], keep=1}\n"
     "%d: f32[2,5] = sub(%x, %m)\n%e: f32[2,5] = exp(%d)\n"
     "%s: f32[2,1] = reduce_sum(%e) {axes=[1], keep=1}\n"
     "%y: f32[2,5] = div(%e, %s)\nreturn %y\n}\n",
     softmax},
    {"graph (%x: f32[2,5]) {\n%e: f32[2,5] = exp(%x)\n"
     "%s: f32[2,1] = reduce_sum(%e) {axes=[1], keep=1}\n"
     "%y: f32[2,5] = div(%e, %s)\nreturn %y\n}\n",
     softmax_bare},
    /* the largest of another axis, the sum of something else */
    {"graph (%x: f32[2,2]) {\n"
     "%m: f32[1,2] = reduce_max(%x) {axes=[0], keep=1}\n"
     "%e: f32[2,2] = exp(%x)\n%t: f32[2,2] = exp(%e)\n"
     "%s: f32[2,1] = reduce_sum(%t) {axes=[1], keep=1}\n%u: f32[2,1] = add(%s, %s)\n"
     "%v: f32[2,2] = add(%u, %m)\n%y: f32[2,2] = div(%e, %v)\nreturn %y\n}\n",
     no_softmax},
    {"graph (%x: f32[2,6], %w: f32[6], %b: f32[6]) {\n"
     "%n: f32[] = const {6}\n%k: f32[] = const {1e-05}\n"
     "%s: f32[2,1] = reduce_sum(%x) {axes=[1], keep=1}\n%m: f32[2,1] = div(%s, %n)\n"
     "%d: f32[2,6] = sub(%x, %m)\n%q: f32[2,6] = mul(%d, %d)\n"
     "%t: f32[2,1] = reduce_sum(%q) {axes=[1], keep=1}\n%v: f32[2,1] = div(%t, %n)\n"
     "%a: f32[2,1] = add(%k, %v)\n%r: f32[2,1] = sqrt(%a)\n%o: f32[2,6] = div(%d, %r)\n"
     "%p: f32[2,6] = mul(%w, %o)\n%y: f32[2,6] = add(%b, %p)\nreturn %y\n}\n",
     layer_norm},
    {"graph (%x: f32[2,8], %w: f32[8]) {\n"
     "%n: f32[] = const {8}\n%k: f32[] = const {1e-05}\n%two: f32[] = const {2}\n"
     "%q: f32[2,8] = pow(%x, %two)\n"
     "%t: f32[2,1] = reduce_sum(%q) {axes=[1], keep=1}\n%v: f32[2,1] = div(%t, %n)\n"
     "%a: f32[2,1] = add(%v, %k)\n%r: f32[2,1] = sqrt(%a)\n%o: f32[2,8] = div(%x, %r)\n"
     "%y: f32[2,8] = mul(%o, %w)\nreturn %y\n}\n",
     rms_norm},
    {"graph (%q: f32[2,3,4], %k: f32[2,5,4], %v: f32[2,5,4], %a: f32[3,5], %c: bool[3,5]) {\n"
     "%t: f32[2,4,5] = transpose(%k) {perm=[0,2,1]}\n"
     "%h: f32[] = const {0.5}\n%low: f32[] = const {-1000}\n%p: f32[2,3,4] = mul(%q, %h)\n"
     "%s: f32[2,3,5] = contract(%p, %t) {spec=\"bmk,bkn->bmn\"}\n"
     "%f: f32[2,3,5] = select(%c, %s, %low)\n%g: f32[2,3,5] = add(%f, %a)\n"
     "%m: f32[2,3,1] = reduce_max(%g) {axes=[2], keep=1}\n%d: f32[2,3,5] = sub(%g, %m)\n"
     "%e: f32[2,3,5] = exp(%d)\n%z: f32[2,3,1] = reduce_sum(%e) {axes=[2], keep=1}\n"
     "%o: f32[2,3,5] = div(%e, %z)\n"
     "%y: f32[2,3,4] = contract(%o, %v) {spec=\"bmk,bkn->bmn\"}\nreturn %y\n}\n",
     attention},
    {"graph (%x: f32[7]) {\n%r: f32[] = const {1.4142135}\n%one: f32[] = const {1}\n"
     "%h: f32[] = const {0.5}\n%a: f32[7] = div(%x, %r)\n%b: f32[7] = erf(%a)\n"
     "%c: f32[7] = add(%one, %b)\n%d: f32[7] = mul(%h, %c)\n%y: f32[7] = mul(%d, %x)\n"
     "return %y\n}\n",
     gelu},
};

static void run(Ctx *c, void *arg) {
  const Case *k = arg;
  Graph *g = graph_parse(c, k->text, strlen(k->text), str_of(c, "case"), NULL, 0);
  fold(g);
  simplify(g);
  canon(g);
  k->look(g, g->blk.at[1].ret.at[0]);
}

int main(void) {
  for (u32 i = 0; i < sizeof cases / sizeof *cases; i++) {
    Ctx *c = ctx_new(NULL, NULL);
    CHECK(c && ctx_protect(c, run, (void *)(uintptr_t)&cases[i]) == ERR_ok);
    ctx_free(c);
  }
  return check_end();
}
