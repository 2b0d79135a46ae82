/* requant_gguf.c: writes language models as GGUF files with other weight types.
 *
 * In: an open model and a weight type. Out: a file, and a row per tensor. Reader.requantize
 * converts the model; the file is written atomically.
 */
#include "driver/quantize/quantize_internal.h"
#include "front/onnx/onnx_quantize.h"

#include <math.h>

/* Refuses options for ONNX. */
static void refuse_others(Ctx *c, const IngotQuantize *o) {
  const struct {
    const char *name;
    bool given;
  } option[] = {{"--method", o->method},
                {"--data", o->data},
                {"--holdout", o->holdout},
                {"--calibrate", o->calibrate},
                {"--activations", o->activations},
                {"--symmetric", o->symmetric},
                {"--granularity", o->granularity},
                {"--block", o->block},
                {"--bias-correction", o->bias_correction},
                {"--equalize", o->equalize},
                {"--budget", o->budget},
                {"--label", o->label}};
  for (u32 i = 0; i < sizeof option / sizeof *option; i++)
    if (option[i].given)
      fail(c, ERR_usage, LOC_NONE, "%s is for ONNX; use --type for the weights of a language model",
           option[i].name);
}

static IngotLayer layer_of(const Ingot *m, const RequantRow *r) {
  bool same = r->from == r->to;
  return (IngotLayer){.name = str_text(m->c, r->name),
                      .op = r->to,
                      .kept = same,
                      .why = same ? "its type" : NULL,
                      .before = r->before,
                      .after = r->after,
                      .sqnr = quant_sqnr(r->squares, r->errors),
                      .mse = r->elems ? r->errors / (double)r->elems : 0,
                      .max_error = r->most,
                      .alone = (double)NAN};
}

void api_requantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out) {
  Ctx *c = m->c;
  refuse_others(c, o);
  if (!o->type)
    fail(c, ERR_usage, LOC_NONE, "is a language model: expected --type, for example Q4_K_M");
  RequantOptions wish = {o->type, o->exclude, o->nexclude};
  RequantPlan *plan = m->opened.reader->requantize(c, m->opened.model, &wish);
  files_write(c, &(FileOut){.path = o->output, .piece = plan->piece.at, .n = plan->piece.n}, 1);
  IngotLayer *layer = NEWS(&c->keep, IngotLayer, plan->row.n + 1);
  *out = (IngotQuantized){.method = o->type, .layer = layer, .nlayer = plan->row.n};
  for (u32 i = 0; i < plan->row.n; i++) {
    layer[i] = layer_of(m, &plan->row.at[i]);
    out->before += layer[i].before;
    out->after += layer[i].after;
  }
}
