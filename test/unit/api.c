/* The public interface under misuse: NULL everywhere, zeroed structs, numbers out of range, calls
 * in any order. Nothing may crash; a call answers INGOT_USAGE with a message, or nothing. What is
 * called after what is drawn from a fixed seed. */
#include "check.h"
#include "ingot.h"
#include <math.h>
#include <string.h>

static const char graph[] = "graph (%x \"x\": f32[2,3]) {\n"
                            "  %w: f32[3] = const {1, 2, 3}\n"
                            "  %a \"a\": f32[2,3] = add(%x, %w)\n"
                            "  %y \"y\": f32[2,3] = mul(%a, %a)\n"
                            "  return %y \"y\", %a \"a\"\n}\n";

static uint64_t draw_state = 1;

static uint32_t draw(uint32_t n) {
  draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(draw_state >> 33) % n;
}

static const char *word(void) {
  static const char *const words[] = {NULL,        "",
                                      "x",         "y",
                                      "x=1",       "batch=1",
                                      "x:2x3",     "x=rand",
                                      "x=zeros",   "=",
                                      "auto",      "x=y",
                                      "ram",       "scalar",
                                      "avx2",      "multi",
                                      "interp",    "ref",
                                      "-",         "none",
                                      "/dev/null", "canon",
                                      "/nowhere",  "openmp",
                                      "file",      "x=@",
                                      "pointer",   "x:",
                                      ":",         "lower",
                                      "ref64",     "watch",
                                      "no-such",   "a=b=c",
                                      "literal",   "x=1",
                                      "x=[1,2",    "x=[[1,2,3],[4,5,6]]",
                                      "x=\"a\"",   "x=1e999"};
  return words[draw(sizeof words / sizeof *words)];
}

static double real(void) {
  const double reals[] = {0, -1, 1e-3, 1e300, -INFINITY, INFINITY, NAN, INGOT_TIGHT};
  return reals[draw(8)];
}

/* Text of an answer that is there is there to be read. */
static void look(const char *text, size_t n) {
  size_t zeros = 0;
  for (size_t i = 0; i < n; i++) zeros += !text[i];
  CHECK(zeros <= n);
}

static void look_tensor(IngotTensor t) {
  if (!CHECK(t.name && t.dtype && (t.dim || !t.rank))) return;
  look(t.name, strlen(t.name));
  if (t.data && strcmp(t.dtype, "str") != 0) look(t.data, t.bytes);
}

static IngotTensor some_tensor(void) {
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  static const int64_t dim[2] = {2, 3}, odd[2] = {-1, INT64_MAX};
  IngotTensor t = {"x", "f32", 2, dim, data, sizeof data};
  switch (draw(12)) {
  case 0: t.name = NULL; break;
  case 1: t.dtype = NULL; break;
  case 2: t.dtype = "str"; break;
  case 3: t.rank = 4000000000u; break;
  case 4: t.dim = NULL; break;
  case 5: t.dim = odd; break;
  case 6: t.data = NULL; break;
  case 7: t.bytes = 23; break;
  case 8: t = (IngotTensor){0}; break;
  default: break;
  }
  return t;
}

static IngotCodegen some_c(void) {
  IngotCodegen c = {.name = draw(4) ? "net" : word(), .selftest = (int)draw(3) - 1};
  if (!draw(3)) c.weights = word();
  if (!draw(4)) c.weights_file = word();
  c.debug = !draw(4);
  c.caller = !draw(4);
  return c;
}

static void say_nothing(void *user, const char *line) {
  (void)user;
  look(line, strlen(line));
}

/* ---- one call each; p: NULL instead of the struct or the place of an answer ---- */

static IngotStatus set_up(Ingot *m, int p) {
  IngotTensor t = some_tensor();
  switch (draw(18)) {
  case 0: return ingot_open(m, word());
  case 1: return ingot_open_bytes(m, p ? NULL : graph, draw(2) ? sizeof graph - 1 : 0, word());
  case 2: return ingot_set_dim(m, word());
  case 3: return ingot_set_shape(m, word(), (int)draw(2));
  case 4: return ingot_set_target(m, word());
  case 5: return ingot_set_precise(m);
  case 6: return ingot_optimize_for(m, word());
  case 7: return ingot_set_threads(m, (int)draw(80) - 5, draw(2) ? NULL : word(), (int)draw(9) - 3);
  case 8: return ingot_set_tuned(m, word());
  case 9: return ingot_set_state(m, word());
  case 10: return ingot_input_spec(m, word());
  case 11: return ingot_input_file(m, word());
  case 12: return ingot_set_library(m, word(), word());
  case 13: return ingot_set_python(m, word());
  case 14: return ingot_input(m, p ? NULL : &t);
  case 15: return ingot_reset(m);
  case 16: return ingot_freeze(m, word());
  default: return ingot_import(m, (int)draw(2));
  }
}

static IngotStatus write_out(Ingot *m, int p) {
  const char *paths[2] = {"/dev/null", word()};
  IngotFile files[2] = {{"/dev/null", "x", 1}, {word(), p ? NULL : "x", 1}};
  switch (draw(6)) {
  case 0: return ingot_will_write(m, p ? NULL : paths, draw(3));
  case 1: return ingot_will_write_outputs(m, word());
  case 2: return ingot_write_files(m, p ? NULL : files, draw(2));
  case 3: return ingot_write_file(m, draw(2) ? NULL : "/dev/null", p ? NULL : "x", draw(2));
  case 4: return ingot_write_outputs(m, draw(2) ? NULL : "/nowhere/x.npz");
  default: return ingot_write_inputs(m, draw(2) ? NULL : "/dev/null");
  }
}

static IngotStatus ask_text(Ingot *m, int p) {
  const char *text = "", *more = "";
  size_t n = 0, nmore = 0;
  IngotCodegen c = some_c();
  IngotStatus s = INGOT_OK;
  const void *blob = NULL;
  switch (draw(9)) {
  case 0: s = ingot_explain(m, p ? NULL : &text, &n); break;
  case 1:
    s = ingot_print(m, &text, p ? NULL : &n, draw(2) ? &more : NULL, p ? NULL : &nmore);
    break;
  case 2: s = ingot_inspect(m, (int)draw(2), &text, p ? NULL : &n); break;
  case 3: s = ingot_ops(m, (int)draw(2), p ? NULL : &text, &n); break;
  case 4: s = ingot_pass_list(m, p ? NULL : &text, &n); break;
  case 5: s = ingot_choices(m, &text, p ? NULL : &n); break;
  case 6: s = ingot_emit_weights(m, p ? NULL : &blob, &n), n = 0; break;
  case 7: s = ingot_emit_c(m, &c, p ? NULL : &text, &n, &more, &nmore); break;
  default: s = ingot_emit_c(m, p ? NULL : &(IngotCodegen){0}, &text, &n, &more, &nmore); break;
  }
  look(text, n);
  look(more, nmore);
  return s;
}

static IngotStatus work(Ingot *m, int p) {
  static const char *const engines[] = {NULL, "interp", "ref", "ref64", "watch", "steam"};
  IngotBuild b = {.c = some_c(), .output = word(), .cc = "no-such-compiler", .optimize = word()};
  IngotPassOptions pipe = {
      .start = word(), .stop = word(), .skip = word(), .dump = word(), .check = 1};
  IngotTune tune = {.file = "/dev/null", .cc = "no-such-compiler", .on_progress = say_nothing};
  IngotBench bench;
  IngotMemory memory;
  IngotTensor t = some_tensor(), u = some_tensor();
  IngotDiff diff[2];
  const uint32_t *value = NULL, some[2] = {draw(3), draw(9)};
  uint32_t n = 0;
  switch (draw(14)) {
  case 0: return ingot_passes(m, p ? NULL : &pipe);
  case 1: return ingot_build(m, p ? NULL : draw(2) ? &b : &(IngotBuild){0});
  case 2: return ingot_check_build(m, p ? NULL : draw(2) ? &b : &(IngotBuild){0});
  case 3: return ingot_tune(m, p ? NULL : &tune);
  case 4:
    return ingot_bench(m, engines[draw(6)], draw(2) ? NULL : &b, 1e-3, draw(3), p ? NULL : &bench);
  case 5: return ingot_memory(m, p ? NULL : &memory);
  case 6:
    return ingot_compare(m, word(), real(), real(), p ? NULL : diff, draw(3), draw(2) ? NULL : &n);
  case 7: return ingot_diff(m, p ? NULL : &t, &u, real(), real(), diff);
  case 8: return ingot_diff(m, &t, &u, real(), real(), p ? NULL : diff);
  case 9: return ingot_expose(m);
  case 10: return ingot_expose_some(m, p ? NULL : some, draw(3));
  case 11: return ingot_stored(m, p ? NULL : &value, &n);
  case 12: return ingot_extract_subgraph(m, draw(4), draw(3));
  default: return ingot_run(m, engines[draw(6)], draw(3));
  }
}

/* A failure that the model survives is none for those who go on. */
static IngotStatus call_net(Ingot *m, int p) {
  static const char *const engines[] = {NULL, "interp", "ref", "vm", "steam"};
  static float out[6]; /* ingot_output tells of it behind the call, too */
  const char *engine = engines[draw(5)];
  IngotTensor in[2] = {some_tensor(), some_tensor()};
  IngotOutBuffer room[2] = {{draw(3) ? out : NULL, draw(3) ? sizeof out : 5}, {NULL, 0}};
  IngotCall o = {engine, 1, p ? NULL : in, draw(8) ? 1 : draw(3), p ? NULL : room, draw(3)};
  IngotStatus s = draw(4) ? ingot_call(m, draw(9) ? &o : NULL) : ingot_ready(m, engine);
  return m && s && !ingot_import(m, 0) ? INGOT_MISMATCH : s;
}

static void ask(const Ingot *m) {
  static const uint32_t odd[] = {0, 1, 2, 3, 1000, UINT32_MAX};
  uint32_t i = odd[draw(6)];
  int is_warning;
  const char *text = ingot_message(m, i, draw(2) ? &is_warning : NULL);
  if (text) look(text, strlen(text));
  CHECK(ingot_message_count(m) < 10000 && ingot_input_count(m) < 100 &&
        ingot_output_count(m) < 100);
  look_tensor(ingot_input_info(m, i));
  look_tensor(ingot_output_info(m, i));
  look_tensor(ingot_output(m, i));
  look_tensor(ingot_used_input(m, i));
  CHECK(ingot_input_decides(m, i) == 0);
  text = ingot_hint(m, i);
  if (text) look(text, strlen(text));
  text = ingot_nearest(word(), (const char *const[]){"x", NULL, "canon"}, 3);
  if (text) look(text, strlen(text));
  text = ingot_output_origin(m, i);
  if (CHECK(text)) look(text, strlen(text));
}

/* Calls that each make sense, in an order that need not. */
static IngotStatus good(Ingot *m) {
  static const char *const stops[] = {NULL, "none", "canon", "fuse", "lower", "plan"};
  static const char *const engines[] = {"interp", "ref", "ref64", "watch"};
  static const float x[6] = {1, 2, 3, 4, 5, 6};
  static const int64_t dim[2] = {2, 3};
  const char *text = "", *more = "";
  size_t n = 0, nmore = 0;
  const uint32_t *value = NULL;
  uint32_t count = 0;
  IngotMemory memory;
  IngotBench bench;
  IngotStatus s = INGOT_OK;
  switch (draw(18)) {
  case 0: s = ingot_import(m, (int)draw(2)); break;
  case 1: s = ingot_passes(m, &(IngotPassOptions){.stop = stops[draw(6)]}); break;
  case 2: s = ingot_expose(m); break;
  case 3: s = ingot_extract_subgraph(m, draw(2), draw(2)); break;
  case 4: s = ingot_emit_c(m, &(IngotCodegen){.name = "n"}, &text, &n, &more, &nmore); break;
  case 5: s = ingot_memory(m, &memory); break;
  case 6: s = ingot_print(m, &text, &n, &more, &nmore); break;
  case 7: s = ingot_inspect(m, (int)draw(2), &text, &n); break;
  case 8: s = ingot_explain(m, &text, &n); break;
  case 9: s = ingot_stored(m, &value, &count); break;
  case 10: s = ingot_bench(m, "interp", NULL, 1e-6, 1, &bench); break;
  case 11: s = ingot_reset(m); break;
  case 12: s = ingot_input(m, &(IngotTensor){"x", "f32", 2, dim, x, sizeof x}); break;
  case 13: s = ingot_choices(m, &text, &n); break;
  case 14: s = ingot_set_target(m, draw(2) ? "avx2" : "sse2,avx2"); break;
  case 15: s = ingot_set_state(m, "x=a"); break;
  default: s = ingot_run(m, engines[draw(4)], draw(3)); break;
  }
  look(text, n);
  look(more, nmore);
  return s;
}

static IngotStatus call(Ingot *m) {
  if (draw(8)) return good(m);
  int p = !draw(3);
  switch (draw(8)) {
  case 6: return call_net(m, p);
  case 7: return ingot_declared(m, draw(2), draw(3), p ? NULL : &(IngotPortInfo){0});
  case 0: return set_up(m, p);
  case 1: return write_out(m, p);
  case 2: return ask_text(m, p);
  default: return work(m, p);
  }
}

/* Every function without an object, and with all kinds of them. */
static void without(void) {
  for (int i = 0; i < 4000; i++) {
    CHECK(call(NULL) == INGOT_USAGE);
    ask(NULL);
  }
  ingot_free(NULL);
  CHECK(!ingot_find_engine(NULL) && !ingot_engine(UINT32_MAX));
  char one[INGOT_JSON_CHAR];
  CHECK(!ingot_json_char(NULL, one) && !*one && !ingot_json_char("", one) && !*one);
  CHECK(!ingot_new(&(IngotAlloc){0}));
}

static void sequence(void) {
  Ingot *m = ingot_new(NULL);
  if (!CHECK(m)) return;
  IngotStatus s = INGOT_OK;
  if (draw(8)) s = ingot_open_bytes(m, graph, sizeof graph - 1, "net");
  if (draw(3)) s = s ? s : ingot_import(m, 0);
  for (int i = 0, after = 0; i < 20 && after < 3; i++) {
    uint32_t said = ingot_message_count(m);
    int before = s;
    IngotStatus now = call(m);
    CHECK(now >= INGOT_OK && now <= INGOT_SYSTEM);
    if (now && !before && now != INGOT_MISMATCH) CHECK(ingot_message_count(m) > said);
    if (before) CHECK(now);
    if (now != INGOT_MISMATCH) s = now;
    after += s != INGOT_OK;
    ask(m);
  }
  ingot_free(m);
}

/* What was found by hand. */
static void known(void) {
  Ingot *m = ingot_new(NULL);
  if (!CHECK(m)) return;
  float x[6] = {1, 2, 3, 4, 5, 6};
  const int64_t dim[2] = {2, 3};
  look_tensor(ingot_used_input(m, 0));
  CHECK(!ingot_open_bytes(m, graph, sizeof graph - 1, "net"));
  look_tensor(ingot_used_input(m, 0));
  CHECK(!ingot_input(m, &(IngotTensor){"x", "f32", 2, dim, x, sizeof x}) &&
        !ingot_run(m, "ref", 0));
  CHECK(!memcmp(ingot_used_input(m, 0).data, x, sizeof x) && !ingot_used_input(m, 1).data);
  CHECK(ingot_output(m, 1).data && !ingot_output(m, 2).data);
  CHECK(!ingot_extract_subgraph(m, 0, 1) && !ingot_output(m, 1).data &&
        !ingot_used_input(m, 0).data);
  IngotBench bench;
  CHECK(!ingot_bench(m, "interp", NULL, 1e-3, 0, &bench) && !ingot_output(m, 0).data);
  CHECK(ingot_input(m, &(IngotTensor){"x", "f32", 2, dim, NULL, sizeof x}) == INGOT_USAGE);
  CHECK(strstr(ingot_message(m, 0, NULL), "found NULL"));
  ingot_free(m);
}

/* Runs on memory of the caller: refused ones change nothing, and many take no more than one. */
static void calls(const char *engine) {
  Ingot *m = ingot_new(NULL);
  float x[7] = {0, 1, 2, 3, 4, 5, 6}, y[6], *first = &x[1];
  const int64_t dim[2] = {2, 3}, wrong[2] = {3, 2};
  IngotTensor in = {"", "f32", 2, dim, first, 6 * sizeof *x};
  IngotOutBuffer room[2] = {{y, sizeof y}, {NULL, 0}};
  IngotCall o = {engine, 0, &in, 1, room, 2};
  if (!CHECK(m && !ingot_open_bytes(m, graph, sizeof graph - 1, "net"))) return;
  CHECK(!ingot_ready(m, engine));
  for (int i = 0; i < 100; i++) CHECK(!ingot_call(m, &o));
  CHECK(y[0] == 4 && y[5] == 81 && ingot_output(m, 0).data == y);
  CHECK(((const float *)ingot_output(m, 1).data)[5] == 9);
  in.dim = wrong;
  CHECK(ingot_call(m, &o) == INGOT_BAD_INPUT && !ingot_output(m, 0).data);
  in = (IngotTensor){"", "f64", 2, dim, first, 48};
  CHECK(ingot_call(m, &o) == INGOT_BAD_INPUT);
  in = (IngotTensor){0};
  CHECK(ingot_call(m, &o) == INGOT_USAGE);
  in = (IngotTensor){"", "f32", 2, dim, first, 6 * sizeof *x};
  room[0].bytes = 5;
  CHECK(ingot_call(m, &o) == INGOT_USAGE);
  CHECK(strstr(ingot_message(m, 3, NULL), "output 'y' needs 24 bytes, found memory for 5"));
  room[0] = (IngotOutBuffer){(char *)first + 20, 24};
  CHECK(ingot_call(m, &o) == INGOT_USAGE);
  CHECK(strstr(ingot_message(m, 4, NULL), "the memory for output 'y' overlaps input 'x'"));
  room[0] = room[1] = (IngotOutBuffer){y, sizeof y};
  CHECK(ingot_call(m, &o) == INGOT_USAGE);
  CHECK(strstr(ingot_message(m, 5, NULL), "overlaps that for output 'y'"));
  room[1] = (IngotOutBuffer){NULL, 0};
  first[0] = 2;
  CHECK(!ingot_call(m, &o) && y[0] == 9);
  ingot_free(m);
}

int main(void) {
  known();
  calls("vm");
  calls("interp");
  calls("ref");
  without();
  for (int i = 0; i < 4000; i++) sequence();
  return check_end();
}
