/* Every I/O call of a compilation fails in turn, once and from then on, with several errors: a
 * model with external data, an array, a graph with a side file, outputs written to a file.
 *
 * Each time: status INGOT_SYSTEM, or success where a call does no harm (closing what was read,
 * syncing a folder, mapping); the message names the reason; no descriptor, mapping or temporary is
 * left; the output is whole or absent. Calls that are interrupted or short are repeated.
 */
#include "api/api_internal.h"
#include "hooks.h"
#include "pbuild.h"
#include <dirent.h>
#include <unistd.h>

static void save(const char *path, const void *at, size_t n) {
  FILE *f = fopen(path, "wb");
  if (!CHECK(f)) return;
  CHECK(fwrite(at, 1, n, f) == n);
  CHECK(fclose(f) == 0);
}

static StrBuf value(Arena *a, const char *name) {
  StrBuf dim = sb_new(a), shape = sb_new(a), tensor = sb_new(a), type = sb_new(a), v = sb_new(a);
  pb_int(&dim, 1, 4);
  pb_message(&shape, 1, &dim);
  pb_int(&tensor, 1, 1);
  pb_message(&tensor, 2, &shape);
  pb_message(&type, 1, &tensor);
  pb_text(&v, 1, name);
  pb_message(&v, 2, &type);
  return v;
}

/* y = x + w, the weights being the second to fifth number of w.bin */
static void write_model(Ctx *c, void *arg) {
  Arena *a = &c->work;
  (void)arg;
  static const char *const key[] = {"location", "offset", "length"}, *const set[] = {"sub/w.bin",
                                                                                     "4", "16"};
  StrBuf w = sb_new(a), node = sb_new(a), graph = sb_new(a), opset = sb_new(a), model = sb_new(a);
  pb_int(&w, 1, 4);
  pb_int(&w, 2, 1);
  pb_text(&w, 8, "w");
  for (int i = 0; i < 3; i++) {
    StrBuf pair = sb_new(a);
    pb_text(&pair, 1, key[i]);
    pb_text(&pair, 2, set[i]);
    pb_message(&w, 13, &pair);
  }
  pb_int(&w, 14, 1);
  pb_text(&node, 1, "x");
  pb_text(&node, 1, "w");
  pb_text(&node, 2, "y");
  pb_text(&node, 4, "Add");
  StrBuf x = value(a, "x"), y = value(a, "y");
  pb_message(&graph, 1, &node);
  pb_text(&graph, 2, "g");
  pb_message(&graph, 5, &w);
  pb_message(&graph, 11, &x);
  pb_message(&graph, 12, &y);
  pb_int(&opset, 2, 17);
  pb_int(&model, 1, 8);
  pb_message(&model, 7, &graph);
  pb_message(&model, 8, &opset);
  save("model.onnx", model.at, model.n);
}

static void write_files(void) {
  static const float w[] = {9, 1, 2, 3, 4, 9}, x[] = {10, 20, 30, 40};
  char npy[128 + sizeof x];
  memset(npy, ' ', 128);
  memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
  const char *head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";
  memcpy(npy + 10, head, strlen(head));
  npy[127] = '\n';
  memcpy(npy + 128, x, sizeof x);
  save("x.npy", npy, sizeof npy);
  save("sub/w.bin", w, sizeof w);
  const char *text =
      "graph (%x \"x\": f32[4]) {\n  %w: f32[4] = const @side(4, 16)\n  %y: f32[4] = add(%x, %w)\n"
      "  return %y \"y\"\n}\n";
  save("graph.ing", text, strlen(text));
  save("graph.ing.bin", w, sizeof w);
  Ctx *c = ctx_new(NULL, NULL);
  CHECK(ctx_protect(c, write_model, NULL) == ERR_ok);
  ctx_free(c);
}

static IngotStatus compile(Ingot *m, const char *path) {
  IngotStatus s = ingot_open(m, path);
  if (!s) s = ingot_input_spec(m, "x=@x.npy");
  if (!s) s = ingot_import(m, 0);
  if (!s) s = ingot_run(m, "interp", 0);
  if (!s) s = ingot_write_outputs(m, "out.npz");
  if (s) return s;
  static const float want[] = {11, 22, 33, 44};
  IngotTensor y = ingot_output(m, 0);
  CHECK(y.bytes == sizeof want && !memcmp(y.data, want, sizeof want));
  return s;
}

static int entries(void) {
  DIR *d = opendir(".");
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += strcmp(e->d_name, "out.npz") != 0;
  if (d) closedir(d);
  return n;
}

static long file_size(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return -1;
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  fclose(f);
  return n;
}

static bool says(const Ingot *m, const char *what) {
  for (uint32_t i = 0; i < ingot_message_count(m); i++)
    if (strstr(ingot_message(m, i, NULL), what)) return true;
  return false;
}

/* Returns whether the fault struck. */
static bool once(const char *path, TestIo *t, long whole) {
  int before = entries();
  unlink("out.npz");
  Ingot *m = ingot_new(NULL);
  m->c->io = test_io(t);
  IngotStatus s = compile(m, path);
  bool struck = t->fault.hits > 0;
  if (!CHECK(s == INGOT_OK || (struck && s == INGOT_SYSTEM)) ||
      (s && !CHECK(says(m, strerror(t->err)))))
    fprintf(stderr, "%s: call %ld%s: status %d: %s\n", path, t->fault.at, t->fault.on ? " on" : "",
            s, ingot_message_count(m) ? ingot_message(m, 0, NULL) : "");
  ingot_free(m);
  CHECK(t->fds == 0 && t->maps == 0 && entries() == before);
  long n = file_size("out.npz");
  CHECK(n == (s ? -1 : whole) || n == whole);
  return struck;
}

static void sweep(const char *path) {
  static const int errors[] = {EIO, ENOSPC, EMFILE};
  TestIo plain = {0};
  unlink("out.npz");
  Ingot *m = ingot_new(NULL);
  if (!CHECK(compile(m, path) == INGOT_OK))
    fprintf(stderr, "%s: %s\n", path, ingot_message(m, 0, NULL));
  ingot_free(m);
  long whole = file_size("out.npz");
  for (int no_map = 0; no_map < 2; no_map++) {
    TestIo slow = {.no_map = no_map, .step = 7, .signals = true};
    once(path, &slow, whole);
    for (int on = 0; on < 2; on++)
      for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (long k = 1;; k++) {
          TestIo t = {.fault = {.at = k, .on = on}, .err = errors[e], .no_map = no_map};
          if (!once(path, &t, whole)) break;
        }
  }
  once(path, &plain, whole);
}

int main(void) {
  char dir[256], cmd[300];
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%s/ingot-unit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!CHECK(mkdtemp(dir)) || !CHECK(chdir(dir) == 0) || !CHECK(system("mkdir sub") == 0))
    return check_end();
  write_files();
  sweep("model.onnx");
  sweep("graph.ing");
  snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
  CHECK(chdir("/") == 0 && system(cmd) == 0);
  return check_end();
}
