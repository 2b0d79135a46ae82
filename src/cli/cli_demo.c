/* cli_demo.c: the built-in digit classifier on test images.
 *
 * In: the model and the test images in the binary (see tools/train_digits.py). Out, on stdout: the
 * first images with their predictions, all misclassified images, and the accuracy. Two pixels, one
 * above the other, share a character cell: half blocks with a UTF-8 locale, else ASCII. Color adds
 * grey levels and marks, never information. It is used only on a terminal without NO_COLOR. The
 * exit code is 1 if the accuracy is below that of the training script: then the engine is wrong.
 */
#include "cli/cli.h"
#include "ingot.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define MARGIN "  "
enum { SIDE = 8, PIXELS = SIDE * SIDE, INK = 16, CLASSES = 10, PER_ROW = 8, ENOUGH = 98 };

extern const unsigned char digits_onnx[], digits_test_bin[];
extern const size_t digits_onnx_size, digits_test_bin_size;

typedef struct Digits {
  const unsigned char *pixel; /* [n,8,8] in 0..16 */
  const unsigned char *label; /* [n] in 0..9 */
  float *probability;         /* [n,10] */
  int n;
  double prepared, ran; /* milliseconds */
} Digits;

typedef struct Screen {
  bool utf8, color;
} Screen;

static bool is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);
    if (!value || !*value) continue;
    const char *dot = strchr(value, '.');
    return dot && (strncasecmp(dot + 1, "utf-8", 5) == 0 || strncasecmp(dot + 1, "utf8", 4) == 0);
  }
  return false;
}

static int guess(const Digits *d, int i) {
  const float *p = d->probability + i * CLASSES;
  int best = 0;
  for (int k = 1; k < CLASSES; k++)
    if (p[k] > p[best]) best = k;
  return best;
}

/* Prints one cell of an image: pixel (y, x) above pixel (y + 1, x). */
static void draw_cell(const Screen *s, const unsigned char *at) {
  static const char *const ascii[4] = {" ", "'", ".", "#"};
  static const char *const block[4] = {" ", "\u2580", "\u2584", "\u2588"};
  int top = at[0], low = at[SIDE];
  /* 232..255 are the greys of the 256-color palette, dark to light. */
  if (s->color && s->utf8)
    printf("\033[38;5;%d;48;5;%dm%s", 232 + top * 23 / INK, 232 + low * 23 / INK, block[1]);
  else
    fputs((s->utf8 ? block : ascii)[(top * 2 >= INK) + 2 * (low * 2 >= INK)], stdout);
}

/* Prints up to PER_ROW images side by side, with predictions and, if wrong, labels. */
static void draw_row(const Screen *s, const Digits *d, const int *which, int n) {
  for (int y = 0; y < SIDE; y += 2) {
    for (int i = 0; i < n; i++) {
      const unsigned char *image = d->pixel + which[i] * PIXELS;
      fputs(i ? "  " : MARGIN, stdout);
      for (int x = 0; x < SIDE; x++) draw_cell(s, image + y * SIDE + x);
      if (s->color) fputs("\033[0m", stdout);
    }
    putchar('\n');
  }
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    int digit = guess(d, which[i]);
    bool right = digit == d->label[which[i]];
    double percent = 100.0 * (double)d->probability[which[i] * CLASSES + digit];
    if (!right) wrong = i + 1;
    fputs(i ? "  " : MARGIN, stdout);
    if (s->color) fputs(right ? "\033[32m" : "\033[31m", stdout);
    printf("%d %5.1f%%", digit, percent);
    if (s->color) fputs("\033[0m", stdout);
  }
  for (int i = 0; i < wrong; i++) {
    int truth = d->label[which[i]];
    fputs(i ? "  " : "\n" MARGIN, stdout);
    if (guess(d, which[i]) != truth)
      printf("truth %d ", truth);
    else
      printf("%*s", SIDE, "");
  }
  putchar('\n');
}

/* Returns the number of correct predictions. */
static int draw(const Screen *s, const Digits *d) {
  int which[PER_ROW] = {0}, shown = 0, right = 0;
  for (; shown < PER_ROW && shown < d->n; shown++) which[shown] = shown;
  printf("The first %d of %d digits the model was not trained on:\n\n", shown, d->n);
  draw_row(s, d, which, shown);
  shown = 0;
  for (int i = 0; i < d->n; i++) {
    bool ok = guess(d, i) == d->label[i];
    right += ok;
    if (!ok && shown < PER_ROW) which[shown++] = i;
  }
  if (shown) {
    bool all = shown == d->n - right;
    printf("\n%s it gets wrong:\n\n", all ? "Those" : "The first of those");
    draw_row(s, d, which, shown);
  }
  return right;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Copies the output as f32; engine ref64 returns f64. */
static IngotStatus take(Digits *d, IngotTensor y) {
  size_t n = (size_t)d->n * CLASSES, size = !strcmp(y.dtype, "f64") ? 8 : 4;
  if (!y.data || y.bytes != n * size || (size == 4 && strcmp(y.dtype, "f32") != 0)) {
    fprintf(stderr, "ingot: the output is %s of %llu bytes, expected %d times %d probabilities\n",
            y.dtype, (unsigned long long)y.bytes, d->n, CLASSES);
    return INGOT_MISMATCH;
  }
  if (!(d->probability = malloc(n * sizeof *d->probability))) return INGOT_SYSTEM;
  for (size_t i = 0; i < n; i++)
    d->probability[i] = size == 8 ? (float)((const double *)y.data)[i] : ((const float *)y.data)[i];
  return INGOT_OK;
}

/* Runs all images as one batch. Fills d->probability and the times. */
static IngotStatus predict(Ingot *m, const char *engine, const float *image, Digits *d) {
  const IngotEngine *e = ingot_find_engine(engine);
  unsigned flags = e ? e->flags : 0;
  int64_t dim[4] = {d->n, 1, SIDE, SIDE};
  IngotTensor x = {.name = "image", .dtype = "f32", .rank = 4, .dim = dim, .data = image};
  x.bytes = (uint64_t)d->n * PIXELS * sizeof *image;
  IngotPassOptions pipe = {0};
  double start = now();
  IngotStatus bad = ingot_open_bytes(m, digits_onnx, digits_onnx_size, "digits.onnx");
  if (!bad) bad = ingot_input(m, &x);
  if (!bad) bad = ingot_import(m, 0);
  if (!bad && !(flags & (INGOT_GRAPH | INGOT_FILE))) bad = ingot_passes(m, &pipe);
  d->prepared = now() - start;
  if (bad) return bad;
  start = now();
  if ((bad = ingot_run(m, engine, 0)) != INGOT_OK) return bad;
  d->ran = now() - start;
  return take(d, ingot_output(m, 0));
}

/* Value of `#define DIGITS_key` in a header. */
static long long figure(const char *header, const char *key) {
  char name[64];
  snprintf(name, sizeof name, "#define DIGITS_%s ", key);
  const char *at = strstr(header, name);
  return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* Prints size, memory and multiply-adds of the C for one digit. */
static IngotStatus figures(void) {
  Ingot *m = new_model();
  if (!m) return INGOT_SYSTEM;
  const char *source = "", *header = "";
  size_t n = 0, nh, lines = 0;
  IngotStatus bad = ingot_open_bytes(m, digits_onnx, digits_onnx_size, "digits.onnx");
  if (!bad) bad = ingot_set_dim(m, "batch=1");
  if (!bad) bad = ingot_emit_c(m, &(IngotCodegen){.name = "digits"}, &source, &n, &header, &nh);
  for (size_t i = 0; i < n; i++) lines += source[i] == '\n';
  if (!bad)
    printf("as C, one digit at a time: %zu lines, weights %lld bytes, arena %lld bytes, stack %lld "
           "bytes, %lld multiply-adds\n",
           lines, figure(header, "WEIGHT_BYTES"), figure(header, "ARENA_BYTES"),
           figure(header, "STACK_BYTES"), figure(header, "MULTIPLY_ADDS"));
  ingot_free(m);
  return bad;
}

static IngotStatus show(Ingot *m, const char *engine, Digits *d) {
  float *image = malloc((size_t)d->n * PIXELS * sizeof *image); /* [n,1,8,8] in 0..1 */
  if (!image) return INGOT_SYSTEM;
  for (int i = 0; i < d->n * PIXELS; i++) image[i] = (float)d->pixel[i] / INK;
  IngotStatus bad = predict(m, engine, image, d);
  free(image);
  if (bad) return bad;
  Screen s = {is_utf8(), wants_color(stdout)};
  int right = draw(&s, d);
  printf("\n%d of %d right: %.2f %%\n", right, d->n, 100.0 * right / d->n);
  if (ingot_find_engine(engine)->flags & INGOT_NATIVE) {
    printf("engine %s: %.0f ms for ingot, the C compiler and %d digits\n", engine,
           d->prepared + d->ran, d->n);
    if ((bad = figures()) != INGOT_OK) return bad;
  } else {
    printf("engine %s: %.1f ms to prepare, %.3f ms per digit\n", engine, d->prepared,
           d->ran / d->n);
  }
  return right * 100 < d->n * ENOUGH ? INGOT_MISMATCH : INGOT_OK;
}

int verb_demo(const Args *a) {
  Ingot *m = new_model_or_report();
  if (!m) return INGOT_SYSTEM;
  size_t n = digits_test_bin_size / (PIXELS + 1);
  Digits d = {.pixel = digits_test_bin, .label = digits_test_bin + n * PIXELS, .n = (int)n};
  IngotStatus status = show(m, a->engine ? a->engine : ingot_engine(0)->name, &d);
  print_messages(m, a->quiet);
  ingot_free(m);
  free(d.probability);
  return status;
}
