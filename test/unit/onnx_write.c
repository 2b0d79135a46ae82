/* The writer of ONNX models: what nobody changed is written as it was read, byte for byte (every
 * official model, where the package is installed); edits arrive; weights go beside the model and
 * come back. */
#include "front/onnx/onnx_edit.h"
#include "check.h"
#include "pbuild.h"
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static OnnxOut out_new(Ctx *c) {
  return (OnnxOut){.model = sb_new(&c->work), .side = sb_new(&c->work)};
}

/* x -> Relu with a doc string -> y; an initializer w and a field of the model that ingot does not
 * know. */
static StrBuf small(Ctx *c) {
  Arena *a = &c->work;
  StrBuf node = sb_new(a), w = sb_new(a), x = sb_new(a), y = sb_new(a), g = sb_new(a),
         set = sb_new(a), prop = sb_new(a), m = sb_new(a);
  pb_text(&node, 1, "x");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "Relu");
  pb_text(&node, 6, "documented");
  pb_int(&w, 1, 2);
  pb_int(&w, 2, 1);
  pb_text(&w, 8, "w");
  pb_bytes(&w, 9, "\0\0\x80\x3f\0\0\0\x40", 8);
  pb_text(&x, 1, "x");
  pb_text(&y, 1, "y");
  pb_message(&g, 1, &node);
  pb_text(&g, 2, "graph");
  pb_message(&g, 5, &w);
  pb_message(&g, 11, &x);
  pb_message(&g, 12, &y);
  pb_int(&set, 2, 17);
  pb_text(&prop, 1, "key");
  pb_text(&prop, 2, "value");
  pb_int(&m, 1, 8);
  pb_message(&m, 7, &g);
  pb_message(&m, 8, &set);
  pb_message(&m, 14, &prop);
  return m;
}

static bool holds(const StrBuf *t, const char *s) {
  size_t n = strlen(s);
  for (size_t i = 0; i + n <= t->n; i++)
    if (!memcmp(t->at + i, s, n)) return true;
  return false;
}

static void check_edits(Ctx *c, void *arg) {
  (void)arg;
  StrBuf bytes = small(c);
  OnnxModel *from = onnx_read(c, (const u8 *)bytes.at, bytes.n, 0);
  OnnxOut same = out_new(c), out = out_new(c);
  onnx_write(c, from, &same);
  CHECK(same.model.n == bytes.n && !memcmp(same.model.at, bytes.at, bytes.n));

  OnnxModel *m = onnx_copy(c, from);
  OnnxGraph *g = m->graph;
  Map taken = onnx_names(c, g);
  Str y = str_of(c, "y"), mid = onnx_fresh_name(c, &taken, "y", "_mid"), w = str_of(c, "w");
  CHECK(onnx_fresh_name(c, &taken, "y", "_mid") != mid);
  OnnxNode *add = onnx_add_node(c, g, "Add", "", str_of(c, "plus"));
  onnx_node_in(c, add, mid);
  onnx_node_in(c, add, w);
  onnx_node_out(c, add, y);
  onnx_set_int(c, add, "k", -3);
  g->nodes.at[0].out.at[0] = mid;
  g->nodes.at[0].edited = true;
  OnnxNode swap = g->nodes.at[0]; /* in an order in which y is made too early */
  g->nodes.at[0] = g->nodes.at[1];
  g->nodes.at[1] = swap;
  onnx_toposort(c, g);
  Tensor *t = tensor_new(&c->work, DT_i4, (i64[]){3}, 1);
  for (u32 i = 0; i < 3; i++) tensor_set(t, i, (Scalar){.i = (i64)i - 5});
  onnx_put_init(c, g, w, t);
  onnx_require_opset(c, m, "com.microsoft", 1);
  *vec_push(&c->work, &g->outputs) = (DeclValue){.name = mid};
  onnx_write(c, m, &out);
  CHECK(holds(&out.model, "documented") && holds(&out.model, "value"));

  OnnxModel *r = onnx_read(c, (const u8 *)out.model.at, out.model.n, 0);
  CHECK(r->opsets.n == 2 && onnx_opset(c, r, "") == 17 && onnx_opset(c, r, "com.microsoft") == 1);
  CHECK(r->graph->nodes.n == 2 && r->graph->nodes.at[0].out.at[0] == mid);
  CHECK(r->graph->outputs.n == 2 && r->graph->outputs.at[1].name == mid);
  CHECK(onnx_get_int(c, &r->graph->nodes.at[1], "k", 0) == -3);
  CHECK(r->graph->inits.n == 1 &&
        tensor_equal(c, t, onnx_tensor(c, &r->graph->inits.at[0], NULL, LOC_NONE, &c->work)));
  CHECK(from->graph->nodes.n == 1 && from->graph->nodes.at[0].out.at[0] == y); /* a copy it was */
  onnx_drop_init(r->graph, w);
  CHECK(r->graph->inits.n == 0);
}

/* Large tensors beside the model. */
static void check_side(Ctx *c, void *arg) {
  (void)arg;
  char folder[] = "/tmp/ingot-write-XXXXXX", path[64], side[64];
  if (!CHECK(mkdtemp(folder) != NULL)) return;
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  snprintf(side, sizeof side, "%s/m.data", folder);
  StrBuf bytes = small(c);
  OnnxModel *m = onnx_read(c, (const u8 *)bytes.at, bytes.n, 0);
  Tensor *t = tensor_new(&c->work, DT_f32, (i64[]){20, 30}, 2);
  for (u32 i = 0; i < 600; i++) tensor_set(t, i, (Scalar){.f = i});
  Str v = str_of(c, "v"), u = str_of(c, "u");
  onnx_put_init(c, m->graph, v, t);
  onnx_put_init(c, m->graph, u, t);
  OnnxOut out = out_new(c);
  out.side_name = "m.data";
  onnx_write(c, m, &out);
  CHECK(out.side.n == 2432 + 2400); /* each at a multiple of 64; w is too small for it */
  file_write(c, path, out.model.at, out.model.n);
  file_write(c, side, out.side.at, out.side.n);
  OnnxModel *r = onnx_read(c, (const u8 *)out.model.at, out.model.n, 0);
  CHECK(onnx_find_init(r->graph, v)->is_external &&
        !onnx_find_init(r->graph, str_of(c, "w"))->is_external);
  CHECK(tensor_equal(c, t, onnx_tensor(c, onnx_find_init(r->graph, u), path, LOC_NONE, &c->work)));
  OnnxOut in = out_new(c); /* and back into one file */
  in.from = path;
  onnx_write(c, r, &in);
  OnnxModel *whole = onnx_read(c, (const u8 *)in.model.at, in.model.n, 0);
  CHECK(tensor_equal(c, t,
                     onnx_tensor(c, onnx_find_init(whole->graph, v), NULL, LOC_NONE, &c->work)));
  unlink(path);
  unlink(side);
  rmdir(folder);
}

static u32 written;

static void write_file(Ctx *c, void *arg) {
  const char *path = arg;
  File f = file_read(c, path);
  OnnxModel *m = onnx_read(c, f.at, f.n, str_of(c, path));
  for (u32 i = 0; i < m->graph->inits.n; i++)
    if (m->graph->inits.at[i].is_external) return;
  OnnxOut out = out_new(c);
  onnx_write(c, m, &out);
  if (!CHECK(out.model.n == f.n && !memcmp(out.model.at, f.at, f.n)))
    fprintf(stderr, "  %s\n", path);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at) {
  (void)st, (void)at;
  size_t n = strlen(path);
  if (type != FTW_F || n < 5 || strcmp(path + n - 5, ".onnx") != 0) return 0;
  Ctx *c = ctx_new(NULL, NULL);
  char name[4096];
  snprintf(name, sizeof name, "%s", path);
  if (!CHECK(ctx_protect(c, write_file, name) == ERR_ok)) fprintf(stderr, "  %s\n", c->diags->text);
  ctx_free(c);
  written++;
  return 0;
}

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, check_edits, NULL) == ERR_ok);
  CHECK(ctx_protect(c, check_side, NULL) == ERR_ok);
  for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "  %s\n", d->text);
  ctx_free(c);
  nftw("build/venv/lib", visit, 20, FTW_PHYS);
  if (!written) fprintf(stderr, "no official models: build/venv is not there\n");
  return check_end();
}
