/* A front end as docs/adding.md describes it, for a toy format: lines of text.
 *
 *   net                  the mark
 *   input NAME n COLS    f32[n,COLS], n open
 *   dense ROWS NUMBERS   ROWS * COLS weights, then ROWS biases
 *   silu | softmax
 * The graph is run by ref, and by a session, which gets it as text. */
#include "check.h"
#include "front/compose/compose.h"
#include "front/reader.h"
#include "ingot.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Cursor {
  Ctx *c;
  const u8 *at, *end;
  Loc loc;
} Cursor;

static Str word(Cursor *k) {
  while (k->at < k->end && (*k->at == ' ' || *k->at == '\n')) k->loc.line += *k->at++ == '\n';
  const u8 *from = k->at;
  while (k->at < k->end && *k->at != ' ' && *k->at != '\n') k->at++;
  return str_intern(k->c, (const char *)from, (size_t)(k->at - from));
}

static double number(Cursor *k) {
  const char *text = str_text(k->c, word(k));
  char *end;
  double x = strtod(text, &end);
  if (!*text || *end) fail(k->c, ERR_input, k->loc, "expected a number, found '%s'", text);
  return x;
}

static i64 extent(Cursor *k) {
  double x = number(k);
  if (!(x >= 1 && x <= 4096)) fail(k->c, ERR_input, k->loc, "extent %g", x);
  return (i64)x;
}

static bool sniff(const u8 *at, size_t n) {
  return n > 3 && !memcmp(at, "net", 3);
}

static Model *read(Ctx *c, const Source *s) {
  Cursor k = {c, s->at + 3, s->at + s->n, {.file = s->file, .index = -1, .line = 1}};
  Model *m = NEW(&c->work, Model);
  DeclValue *v = NEWS(&c->work, DeclValue, 2);
  if (!str_is(c, word(&k), "input")) fail(c, ERR_input, k.loc, "expected an input");
  v[0].name = word(&k);
  v[0].type = (DeclType){.kind = OT_tensor, .dt = DT_f32, .has_shape = true};
  *vec_push(&c->work, &v[0].type.dims) = (DeclDim){.kind = OD_param, .param = word(&k)};
  *vec_push(&c->work, &v[0].type.dims) = (DeclDim){.kind = OD_value, .value = extent(&k)};
  v[1].name = str_of(c, "y");
  *m = (Model){.ninput = 1, .output = &v[1], .noutput = 1};
  m->input = arena_copy(&c->work, &v, sizeof v);
  m->own = arena_copy(&c->work, &k, sizeof k); /* where the layers begin */
  return m;
}

static Val constant(Graph *g, Cursor *k, const i64 *dim, u32 rank) {
  Tensor *t = tensor_new(&g->c->work, DT_f32, dim, rank);
  for (u64 i = 0; i < t->n; i++) tensor_set(t, i, (Scalar){.f = (double)(float)number(k)});
  return mk_const(g, t);
}

static Val layer(Graph *g, Cursor *k, Str op, Val x) {
  i64 dim[2] = {0, val_dim(g, x, 1)}, last = 1;
  if (str_is(g->c, op, "dense")) {
    dim[0] = extent(k);
    Val w = constant(g, k, dim, 2);
    return mk_add(g, mk_contract(g, x, w, "nk,mk->nm"), constant(g, k, dim, 1));
  }
  if (str_is(g->c, op, "silu")) return compose_silu(g, x, 1);
  if (str_is(g->c, op, "softmax")) return compose_softmax(g, x, &last, 1);
  fail(g->c, ERR_unsupported, g->loc, "layer '%s' is not known", show(g->c, op));
}

static Graph *import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o) {
  Cursor k = *(const Cursor *)m->own;
  Graph *g = graph_new(c);
  const DeclDim *d = m->input[0]->type.dims.at;
  Dim dim[2] = {dim_of_sym(g->dims, dim_sym(g->dims, SY_input, d[0].param, 1, 64)), d[1].value};
  (void)s, (void)o;
  g->eager = true;
  Val x = graph_param(g, 1, type_tensor(&c->work, DT_f32, dim, 2), m->input[0]->name);
  for (Str op = word(&k); op; op = word(&k)) {
    g->loc = k.loc;
    g->loc.op = op;
    x = layer(g, &k, op, x);
  }
  g->eager = false;
  graph_result(g, x, m->output[0].name);
  return g;
}

static const Reader reader = {.name = "net", .sniff = sniff, .read = read, .import = import};

typedef struct Job {
  const char *text;
  StrBuf graph; /* made of it */
  double y[4];  /* [n, 2] */
} Job;

static void build(Ctx *c, void *arg) {
  Job *j = arg;
  Source s = {.at = (const u8 *)j->text, .n = strlen(j->text), .file = str_of(c, "toy")};
  CHECK(reader.sniff(s.at, s.n));
  const Model *m = reader.read(c, &s);
  CHECK(model_has_input(c, m, str_of(c, "x")));
  CHECK(!strcmp(decl_type_string(c, 0, &m->input[0]->type), "f32[n,3]"));
  Graph *g = reader.import(c, &s, m, &(ImportOptions){0});
  graph_check(g);
  Tensor *out, *in = tensor_new(&c->keep, DT_f32, (const i64[]){2, 3}, 2);
  for (u64 i = 0; i < 6; i++) tensor_set(in, i, (Scalar){.f = (double)i});
  ref_run(g, &(RefOptions){0}, &in, &out, &c->keep);
  for (u64 i = 0; i < 4; i++) j->y[i] = tensor_get(out, i).f;
  j->graph = sb_new(&c->keep);
  graph_print(g, &j->graph, NULL);
}

static Err result(const char *text, Job *j) {
  Ctx *c = ctx_new(NULL, NULL);
  *j = (Job){.text = text};
  Err e = ctx_protect(c, build, j);
  if (!e) {
    const float x[6] = {0, 1, 2, 3, 4, 5};
    Ingot *m = ingot_new(NULL);
    IngotTensor in = {"x", "f32", 2, (const i64[]){2, 3}, x, sizeof x};
    CHECK(!ingot_open_bytes(m, j->graph.at, j->graph.n, "toy") && !ingot_input(m, &in) &&
          !ingot_run(m, "interp", 0));
    const float *y = ingot_output(m, 0).data;
    for (u32 i = 0; y && i < 4; i++) CHECK(fabs(y[i] - j->y[i]) < 1e-6);
    ingot_free(m);
  }
  ctx_free(c);
  return e;
}

int main(void) {
  Job j;
  CHECK(!result("net\ninput x n 3\ndense 2 1 0 0 0 1 0 0.5 -9\n", &j));
  CHECK(j.y[0] == 0.5 && j.y[1] == -8 && j.y[2] == 3.5 && j.y[3] == -5);
  CHECK(!result("net\ninput x n 3\ndense 2 1 0 0 0 1 0 0 0\nsilu\nsoftmax\n", &j) &&
        fabs(j.y[0] + j.y[1] - 1) < 1e-6 && j.y[0] < j.y[1]);
  CHECK(result("net\ninput x n 3\ndense 2 1 0\n", &j) == ERR_input); /* too few */
  CHECK(result("net\ninput x n 3\nsort\n", &j) == ERR_unsupported);
  return check_end();
}
