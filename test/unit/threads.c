/* Compilations in several threads share nothing: two different models are opened, compiled, printed
 * and run by four threads at once, and give the same texts and the same bits as one after the
 * other. Under ThreadSanitizer any memory they share shows.
 */
#include "check.h"
#include "ingot.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 3, MODELS = 2 };

typedef struct Model {
  const char *path;
  uint64_t hash; /* of everything one compilation gives */
} Model;

static uint64_t mix(uint64_t h, const void *at, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)at)[i]) * 1099511628211u;
  return h;
}

static IngotStatus results(Ingot *m, const char *engine, uint64_t *h) {
  IngotStatus s = ingot_run(m, engine, 7);
  for (uint32_t i = 0; !s && i < ingot_output_count(m); i++) {
    IngotTensor t = ingot_output(m, i);
    *h = mix(*h, t.data, t.bytes);
  }
  return s;
}

/* 0 when something failed */
static uint64_t compile(const char *path) {
  const char *text, *header;
  size_t n, nheader;
  uint64_t h = 14695981039346656037u;
  IngotPassOptions pipe = {.check = 1};
  IngotCodegen o = {.name = "net"};
  Ingot *m = ingot_new(NULL);
  IngotStatus s = ingot_open(m, path);
  if (!s) s = ingot_set_dim(m, "batch=2");
  if (!s) s = ingot_import(m, 0);
  if (!s) s = results(m, "ref", &h);
  if (!s) s = ingot_passes(m, &pipe);
  if (!s) s = results(m, "interp", &h);
  if (!s) s = ingot_print(m, &text, &n, NULL, NULL);
  if (!s) h = mix(h, text, n);
  if (!s) s = ingot_emit_c(m, &o, &text, &n, &header, &nheader);
  if (!s) h = mix(mix(h, text, n), header, nheader);
  if (s) fprintf(stderr, "%s: %s\n", path, ingot_message(m, 0, NULL));
  ingot_free(m);
  return s ? 0 : h;
}

typedef struct Worker {
  pthread_t id;
  const Model *model;
  int first, bad;
} Worker;

static void *work(void *arg) {
  Worker *w = arg;
  for (int i = 0; i < ROUNDS * MODELS; i++) {
    const Model *m = &w->model[(w->first + i) % MODELS];
    w->bad += compile(m->path) != m->hash;
  }
  return NULL;
}

int main(void) {
  Model model[MODELS] = {{"models/digits.onnx", 0}, {"test/docs/tour.onnx", 0}};
  Worker w[THREADS];
  for (int i = 0; i < MODELS; i++) CHECK((model[i].hash = compile(model[i].path)) != 0);
  CHECK(model[0].hash != model[1].hash);
  for (int i = 0; i < THREADS; i++) {
    w[i] = (Worker){.model = model, .first = i};
    CHECK(pthread_create(&w[i].id, NULL, work, &w[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(w[i].id, NULL);
    CHECK(w[i].bad == 0);
  }
  return check_end();
}
