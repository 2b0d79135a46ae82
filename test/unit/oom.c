/* Every allocation of one compilation fails in turn, once and from then on, through the public
 * interface.
 *
 * A compilation here is everything the library does: open, import, describe, print, all passes with
 * their checks and dumps, print, C, run by both engines, report, outputs written to a file. Each
 * time: status INGOT_SYSTEM, a message, nothing leaked, no file; and the library still gives the
 * right answer afterwards. Arenas ask for memory in blocks, so few places fail; a library built
 * with INGOT_HOSTILE asks for each piece by itself, and all of them do. An argument says how many
 * allocations lie between two that fail.
 */
#include "hooks.h"
#include "ingot.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char out_path[64];

typedef struct Case {
  const char *name, *dim;
  char *bytes;
  size_t n;
} Case;

static void dumped(void *user, const char *pass, const char *text, size_t n) {
  (void)pass, (void)text;
  *(size_t *)user += n;
}

static IngotStatus text_steps(Ingot *m, size_t *sum) {
  const char *text, *weights;
  size_t n, nweights;
  IngotPassOptions pipe = {.dump = "all", .check = 1, .on_dump = dumped, .user = sum};
  IngotCodegen o = {.name = "net"};
  IngotStatus s = ingot_print(m, &text, &n, &weights, &nweights);
  if (!s) s = ingot_inspect(m, 0, &text, &n);
  if (!s) s = ingot_inspect(m, 1, &text, &n);
  if (!s) s = ingot_run(m, "ref", 1);
  if (!s) s = ingot_passes(m, &pipe);
  if (!s) s = ingot_print(m, &text, &n, NULL, NULL);
  if (!s) s = ingot_emit_c(m, &o, &text, &n, &weights, &nweights);
  if (!s) s = ingot_ops(m, 1, &text, &n);
  return s;
}

/* The whole compilation; *sum becomes a number that depends on all results. */
static IngotStatus compile(Ingot *m, const Case *k, size_t *sum) {
  IngotStatus s = ingot_open_bytes(m, k->bytes, k->n, k->name);
  if (!s && k->dim) s = ingot_set_dim(m, k->dim);
  if (!s) s = ingot_import(m, 0);
  for (uint32_t i = 0; !s && i < ingot_input_count(m); i++) {
    IngotTensor t = ingot_input_info(m, i);
    CHECK(t.name && (t.rank == 0 || t.dim));
  }
  if (!s) s = text_steps(m, sum);
  if (!s) s = ingot_run(m, "interp", 1);
  for (uint32_t i = 0; !s && i < ingot_output_count(m); i++) {
    IngotTensor t = ingot_output(m, i);
    for (uint64_t b = 0; b < t.bytes; b++) *sum = *sum * 31 + ((const uint8_t *)t.data)[b];
  }
  if (!s) s = ingot_write_outputs(m, out_path);
  return s;
}

static int has_error(const Ingot *m) {
  int warning;
  for (uint32_t i = 0; i < ingot_message_count(m); i++)
    if (*ingot_message(m, i, &warning) && !warning) return 1;
  return 0;
}

/* Returns whether the fault struck. */
static int once(const Case *k, long at, bool on, size_t want) {
  TestAlloc a = {.fault = {.at = at, .on = on}};
  IngotAlloc hook = {test_resize, &a};
  size_t sum = 0;
  Ingot *m = ingot_new(&hook);
  IngotStatus s = m ? compile(m, k, &sum) : INGOT_SYSTEM;
  struct stat st;
  int struck = a.fault.hits > 0;
  if (!CHECK(s == (struck ? INGOT_SYSTEM : INGOT_OK)))
    fprintf(stderr, "%s: allocation %ld%s: status %d: %s\n", k->name, at, on ? " on" : "", s,
            m && ingot_message_count(m) ? ingot_message(m, 0, NULL) : "");
  if (m) CHECK(has_error(m) == struck);
  if (!struck && want) CHECK(sum == want);
  CHECK((stat(out_path, &st) == 0) == !struck);
  unlink(out_path);
  ingot_free(m);
  CHECK(a.blocks == 0 && a.bytes == 0);
  return struck;
}

static void sweep(const Case *k, long stride) {
  TestAlloc a = {0};
  IngotAlloc hook = {test_resize, &a};
  size_t want = 0;
  Ingot *m = ingot_new(&hook);
  if (!CHECK(m && compile(m, k, &want) == INGOT_OK))
    fprintf(stderr, "%s: %s\n", k->name,
            m && ingot_message_count(m) ? ingot_message(m, 0, NULL) : "");
  ingot_free(m);
  unlink(out_path);
  long points = 0;
  for (int on = 0; on < 2; on++)
    for (long at = 1; once(k, at, on, want); at += stride) points++;
  once(k, 0, false, want);
  printf("%s: %ld allocations, %ld failures\n", k->name, a.fault.calls, points);
}

static Case file_case(const char *path, const char *dim) {
  Case k = {path, dim, NULL, 0};
  FILE *f = fopen(path, "rb");
  if (!CHECK(f)) return k;
  k.bytes = malloc(1 << 20);
  k.n = fread(k.bytes, 1, 1 << 20, f);
  fclose(f);
  return k;
}

int main(int argc, char **argv) {
  snprintf(out_path, sizeof out_path, "/tmp/ingot-oom-%ld.npz", (long)getpid());
  long stride = argc > 1 ? atol(argv[1]) : 1;
  Case all[] = {
      file_case("test/exec/lower/loop_if.t", NULL), file_case("test/exec/ops/topk.t", NULL),
      file_case("test/docs/tour.onnx", "batch=2"), file_case("models/digits.onnx", "batch=2")};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (all[i].bytes) sweep(&all[i], stride);
    free(all[i].bytes);
  }
  return check_end();
}
