/* ops.c: the table of ONNX operators, made from onnx_ops.def. */
#include "onnx/own.h"

enum { LISTS = 256 }; /* added to the number of inputs: sequences and optionals are taken */

const OpRow op_rows[] = {
#define ON(domain, name, since, until, build, arg, most)                                           \
  {#domain, #name, since, until, build, arg, (most)&255, ((most)&LISTS) != 0},
#include "onnx/onnx_ops.def"
#undef ON
};
const u32 op_row_count = sizeof op_rows / sizeof *op_rows;

static const struct {
  const char *domain, *key;
} domains[] = {
    {"", "ai"},
    {"ai.onnx", "ai"},
    {"ai.onnx.ml", "ml"},
    {"com.microsoft", "ms"},
    {"ai.onnx.preview", "preview"},
    {"ai.onnx.preview.training", "training"},
};

const char *domain_key(Ctx *c, Str domain) {
  for (u32 i = 0; i < sizeof domains / sizeof *domains; i++)
    if (str_is(c, domain, domains[i].domain)) return domains[i].key;
  return NULL;
}

u32 onnx_op_count(void) {
  return op_row_count;
}

OnnxOpInfo onnx_op_at(u32 i) {
  const OpRow *r = &op_rows[i];
  const char *domain = r->domain;
  for (u32 k = 1; k < sizeof domains / sizeof *domains; k++)
    if (!__builtin_strcmp(domains[k].key, domain)) {
      domain = domains[k].domain;
      break;
    }
  return (OnnxOpInfo){domain, r->name, r->since, r->until};
}
