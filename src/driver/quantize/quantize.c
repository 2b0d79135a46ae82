/* quantize.c: quantizes a model.
 *
 * In: an open model and options. Out: a file of the same format. One table row per format that can
 * be written; others are refused by name.
 */
#include "driver/quantize/quantize_internal.h"

#include <string.h>

static const struct {
  const char *reader; /* Reader.name */
  const char *ending; /* suffix of its files */
  void (*make)(Ingot *m, const IngotQuantize *o, IngotQuantized *out);
  bool types; /* weight types are given by name */
} makers[] = {
    {"ONNX", ".onnx", api_quantize_onnx, false},
    {"GGUF", ".gguf", api_requantize, true},
    {"safetensors", ".gguf", api_requantize, true},
};

/* Tools identify formats by suffix: refuses the suffix of another format. */
static void check_ending(Ctx *c, const char *path, const char *format, const char *mine) {
  static const char *const known[] = {".onnx", ".gguf", ".safetensors", ".tflite", ".c", ".igb"};
  for (u32 i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i], mine) && ends_with(path, known[i]))
      fail(c, ERR_usage, LOC_NONE,
           "is %s, which is not written as '%s': expected a path that ends in '%s'", format,
           known[i], mine);
}

static void quantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out) {
  Ctx *c = m->c;
  api_need(c, o, "the quantization options");
  api_need(c, out, "a pointer to the result");
  api_need(c, o->output, "the path of the quantized model");
  *out = (IngotQuantized){0};
  if (!m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  for (u32 i = 0; m->opened.reader && i < sizeof makers / sizeof *makers; i++)
    if (!strcmp(makers[i].reader, m->opened.reader->name)) {
      if (o->type && !makers[i].types)
        fail(c, ERR_usage, LOC_NONE, "--type is for language models; use --method for %s",
             makers[i].reader);
      check_ending(c, o->output, makers[i].reader, makers[i].ending);
      makers[i].make(m, o, out);
      return;
    }
  fail(c, ERR_unsupported, LOC_NONE,
       "is %s, which cannot be quantized: expected ONNX, GGUF or safetensors",
       m->opened.reader ? m->opened.reader->name : "a program");
}

IngotStatus ingot_quantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out) {
  API_CALL(m, quantize(m, o, out));
}
