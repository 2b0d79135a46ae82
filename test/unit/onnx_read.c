/* The ONNX reader: wire format, messages, limits; and every official model, where the package is
 * installed. */
#include "front/onnx/onnx.h"
#include "check.h"
#include "pbuild.h"
#include <ftw.h>
#include <string.h>

typedef struct Job {
  const StrBuf *t;
  OnnxModel *m;
  void (*look)(Ctx *c, const OnnxModel *m);
} Job;

static void read(Ctx *c, void *arg) {
  Job *j = arg;
  /* A copy of the exact size, so that the sanitizer sees a read past the end. */
  j->m = onnx_read(c, arena_copy(&c->work, j->t->at, j->t->n), j->t->n, str_of(c, "m.onnx"));
  if (j->look) j->look(c, j->m);
}

/* Code of reading the bytes. expect: what must occur in the message; NULL: there must be none; "":
 * any. */
static Err code(const StrBuf *t, const char *expect, void (*look)(Ctx *, const OnnxModel *)) {
  Ctx *c = ctx_new(NULL, NULL);
  Job j = {.t = t, .look = look};
  Err e = ctx_protect(c, read, &j);
  if (expect && *expect && !CHECK(c->diags && strstr(c->diags->text, expect)))
    fprintf(stderr, "  expected '%s', got '%s'\n", expect,
            c->diags ? c->diags->text : "no message");
  if (!expect && c->diags) fprintf(stderr, "  %s\n", c->diags->text);
  ctx_free(c);
  return e;
}

#define REFUSED(t, expect) CHECK(code((t), (expect), NULL) == ERR_input)
#define BEYOND(t, expect)  CHECK(code((t), (expect), NULL) == ERR_unsupported)
#define READ(t, look)      CHECK(code((t), NULL, (look)) == ERR_ok)

static void look_all(Ctx *c, const OnnxModel *m) {
  CHECK(m->ir_version == 13);
  CHECK(m->opsets.n == 1 && m->opsets.at[0].version == 27);
  const OnnxGraph *g = m->graph;
  CHECK(g->nodes.n == 1 && g->inits.n == 1 && g->inputs.n == 1);
  const OnnxNode *n = &g->nodes.at[0];
  CHECK(str_is(c, n->op, "Conv") && n->in.n == 2 && n->in.at[1] == 0 && n->out.n == 1);
  const OnnxAttr *a = onnx_attr(c, n, "pads");
  CHECK(a && a->type == OA_ints && a->ints.n == 4);
  if (a && a->ints.n == 4)
    CHECK(a->ints.at[0] == 1 && a->ints.at[1] == -2 && a->ints.at[2] == 300 && a->ints.at[3] == 7);
  a = onnx_attr(c, n, "alpha"); /* no type given: inferred */
  CHECK(a && a->type == OA_float && a->f == 0.5f);
  CHECK(onnx_attr(c, n, "beta") == NULL);
  const OnnxTensor *t = &g->inits.at[0];
  CHECK(t->dims.n == 2 && t->dims.at[0] == 2 && t->dims.at[1] == 3 && t->dt == DT_f32 &&
        t->raw.n == 24);
  const DeclType *x = &g->inputs.at[0].type;
  CHECK(x->kind == OT_seq && x->elem->kind == OT_tensor && x->elem->has_shape &&
        x->elem->dims.n == 3);
  CHECK(x->elem->dims.at[0].kind == OD_value && x->elem->dims.at[0].value == 4);
  CHECK(x->elem->dims.at[1].kind == OD_param && str_is(c, x->elem->dims.at[1].param, "batch"));
  CHECK(x->elem->dims.at[2].kind == OD_unknown);
}

static StrBuf type_of_input(Arena *a) {
  StrBuf d0 = sb_new(a), d1 = sb_new(a), d2 = sb_new(a), shape = sb_new(a), tensor = sb_new(a);
  StrBuf type = sb_new(a), seq = sb_new(a), all = sb_new(a);
  pb_int(&d0, 1, 4);
  pb_text(&d1, 2, "batch");
  pb_message(&shape, 1, &d0);
  pb_message(&shape, 1, &d1);
  pb_message(&shape, 1, &d2);
  pb_int(&tensor, 1, 1);
  pb_message(&tensor, 2, &shape);
  pb_message(&type, 1, &tensor);
  pb_message(&seq, 1, &type);
  pb_message(&all, 4, &seq);
  return all;
}

static StrBuf whole_graph(Arena *a) {
  StrBuf attr = sb_new(a), attr2 = sb_new(a), node = sb_new(a), init = sb_new(a), in = sb_new(a),
         g = sb_new(a);
  static const u8 raw[24];
  pb_text(&attr, 1, "pads");
  pb_int(&attr, 8, 1);
  pb_int(&attr, 8, -2); /* unpacked, then packed */
  pb_bytes(&attr, 8, "\xac\x02\x07", 3);
  pb_int(&attr, 20, 7);
  pb_text(&attr2, 1, "alpha");
  pb_float(&attr2, 2, 0.5f);
  pb_text(&node, 1, "x");
  pb_text(&node, 1, "");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "Relu");
  pb_text(&node, 4, "Conv"); /* the last one counts */
  pb_message(&node, 5, &attr);
  pb_message(&node, 5, &attr2);
  pb_int(&node, 1000, 5); /* unknown */
  pb_tag(&node, 50, 3);   /* a group with a group inside */
  pb_tag(&node, 51, 3);
  pb_float(&node, 2, 1);
  pb_tag(&node, 51, 4);
  pb_tag(&node, 50, 4);
  pb_bytes(&init, 1, "\x02\x03", 2);
  pb_int(&init, 2, 1);
  pb_bytes(&init, 9, raw, sizeof raw);
  StrBuf type = type_of_input(a);
  pb_text(&in, 1, "x");
  pb_message(&in, 2, &type);
  pb_message(&g, 1, &node);
  pb_message(&g, 5, &init);
  pb_message(&g, 11, &in);
  return g;
}

static StrBuf whole_model(Arena *a) {
  StrBuf m = sb_new(a), opset = sb_new(a), g = whole_graph(a), empty = sb_new(a);
  pb_int(&m, 1, 13);
  pb_int(&opset, 2, 27);
  pb_message(&m, 8, &opset);
  pb_message(&m, 7, &empty); /* replaced by the next */
  pb_message(&m, 7, &g);
  return m;
}

static void check_model(Arena *a) {
  StrBuf m = whole_model(a);
  READ(&m, look_all);
  /* Every cut of the graph is either refused or gives a model; the sanitizer watches. */
  StrBuf g = whole_graph(a);
  u32 refused = 0;
  for (; g.n > 0; g.n--) {
    m.n = 0;
    pb_message(&m, 7, &g);
    Err e = code(&m, "", NULL);
    CHECK(e == ERR_ok || e == ERR_input);
    refused += e == ERR_input;
  }
  CHECK(refused > 100);
}

static void graph_with(Arena *a, StrBuf *m, u32 field, const char *bytes, size_t n) {
  StrBuf g = sb_new(a);
  pb_bytes(&g, field, bytes, n);
  *m = sb_new(a);
  pb_message(m, 7, &g);
}

static void check_wire(Arena *a) {
  StrBuf m = sb_new(a);
  REFUSED(&m, "not an ONNX model");
  static const struct {
    const char *bytes;
    size_t n;
    const char *expect;
  } bad[] = {
      {"\x08", 1, "byte 5: number runs past"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "more than 10 bytes"},
      {"\x00", 1, "invalid field number"},
      {"\x0f", 1, "invalid wire type"},
      {"\x0a\x05", 2, "byte 5: field 1 claims 5 bytes, 0 remain"},
      {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "claims 18446744073709551615 bytes"},
      {"\x08\x01", 2, "field 1 has wire type 0, expected 2"},
      {"\x83\x03", 2, "group without end"},
      {"\x84\x03", 2, "end of a group that was not begun"},
      {"\x83\x03\x8c\x03", 4, "end of another group"},
      {"\x15\x00\x00", 3, "number runs past"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    graph_with(a, &m, 1, bad[i].bytes, bad[i].n);
    REFUSED(&m, bad[i].expect);
  }
  char deep[200];
  memset(deep, 0x1b, sizeof deep);
  graph_with(a, &m, 1, deep, sizeof deep);
  BEYOND(&m, "groups nested more than 64 deep");
}

static void check_attrs(Arena *a) {
  StrBuf attr = sb_new(a), node = sb_new(a), g = sb_new(a), m = sb_new(a);
  pb_text(&attr, 1, "k");
  pb_int(&attr, 20, 15);
  pb_message(&node, 5, &attr);
  pb_message(&g, 1, &node);
  pb_message(&m, 7, &g);
  REFUSED(&m, "attribute 'k' has type 15");
  attr.n -= 1;
  pb_varint(&attr, 4);
  node.n = g.n = m.n = 0;
  pb_message(&node, 5, &attr);
  pb_message(&g, 1, &node);
  pb_message(&m, 7, &g);
  REFUSED(&m, "lacks the value");
  for (u32 many = 2; many < 40; many += 37) {
    node.n = g.n = m.n = attr.n = 0;
    pb_text(&attr, 1, "same");
    for (u32 i = 0; i < many; i++) pb_message(&node, 5, &attr);
    pb_message(&g, 1, &node);
    pb_message(&m, 7, &g);
    REFUSED(&m, "two attributes 'same'");
  }
}

/* Graphs in attributes of nodes of graphs. */
static void check_depth(Arena *a) {
  StrBuf g = sb_new(a);
  pb_text(&g, 2, "g");
  for (u32 depth = 1; depth < 20; depth++) {
    StrBuf m = sb_new(a), attr = sb_new(a), node = sb_new(a), outer = sb_new(a);
    pb_message(&m, 7, &g);
    if (depth <= ONNX_GRAPH_DEPTH)
      READ(&m, NULL);
    else
      BEYOND(&m, "graphs nested more than 16 deep");
    pb_text(&attr, 1, "body");
    pb_message(&attr, 6, &g);
    pb_message(&node, 5, &attr);
    pb_message(&outer, 1, &node);
    g = outer;
  }
  StrBuf type = sb_new(a);
  for (u32 i = 0; i < 40; i++) {
    StrBuf seq = sb_new(a), outer = sb_new(a);
    pb_message(&seq, 1, &type);
    pb_message(&outer, 4, &seq);
    type = outer;
  }
  StrBuf value = sb_new(a), gr = sb_new(a), m = sb_new(a);
  pb_message(&value, 2, &type);
  pb_message(&gr, 11, &value);
  pb_message(&m, 7, &gr);
  BEYOND(&m, "nested more than 64 deep");
}

/* ---- official models ---- */

static u32 official_read;

static void read_file(Ctx *c, void *arg) {
  const char *path = arg;
  File f = file_read(c, path);
  OnnxModel *m = onnx_read(c, f.at, f.n, str_of(c, path));
  for (u32 i = 0; i < m->graph->inits.n; i++)
    onnx_tensor(c, &m->graph->inits.at[i], path, LOC_NONE, &c->work);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at) {
  (void)st, (void)at;
  size_t n = strlen(path);
  if (type != FTW_F || n < 5 || strcmp(path + n - 5, ".onnx") != 0) return 0;
  Ctx *c = ctx_new(NULL, NULL);
  char name[4096];
  snprintf(name, sizeof name, "%s", path);
  if (!CHECK(ctx_protect(c, read_file, name) == ERR_ok)) fprintf(stderr, "  %s\n", c->diags->text);
  ctx_free(c);
  official_read++;
  return 0;
}

static void build(Ctx *c, void *arg) {
  (void)arg;
  check_model(&c->work);
  check_wire(&c->work);
  check_attrs(&c->work);
  check_depth(&c->work);
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, build, NULL) == ERR_ok);
  ctx_free(c);
  nftw("build/venv/lib", visit, 20, FTW_PHYS);
  if (official_read == 0) fprintf(stderr, "no official models: build/venv is not there\n");
  return check_end();
}
