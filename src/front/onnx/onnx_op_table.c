/* onnx_op_table.c: the tables of ONNX operators (onnx_ops.def) and their attributes. */
#include "front/onnx/onnx_import.h"

#include <stdlib.h>
#include <string.h>

enum { LISTS = 256, QUANT = 512 }; /* flags added to the number of inputs: see OpRow */

const OpRow op_rows[] = {
#define ON(domain, name, since, until, build, arg, most)                                           \
  {#domain, #name, since, until, build, arg, (most)&255, ((most)&LISTS) != 0, ((most)&QUANT) != 0},
#include "front/onnx/onnx_ops.def"
#undef ON
};
const u32 op_row_count = sizeof op_rows / sizeof *op_rows;

typedef struct AttrRow {
  const char *domain, *name, *attrs;
} AttrRow;

static const AttrRow attr_rows[] = {
/* sorted */
#define OA(domain, name, attrs) {#domain, #name, attrs},
#include "front/onnx/onnx_attrs.def"
#undef OA
};

static int by_name(const void *key, const void *row) {
  const OpRow *k = key;
  const AttrRow *r = row;
  int order = strcmp(k->domain, r->domain);
  return order ? order : strcmp(k->name, r->name);
}

const char *op_attrs(const OpRow *row) {
  const AttrRow *r =
      bsearch(row, attr_rows, sizeof attr_rows / sizeof *attr_rows, sizeof *attr_rows, by_name);
  return r ? r->attrs : "";
}

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

bool op_quantizes(Ctx *c, const OnnxNode *n) {
  const char *domain = domain_key(c, n->domain);
  for (u32 i = 0; domain && i < op_row_count; i++) {
    const OpRow *r = &op_rows[i];
    if (r->quant && str_is(c, n->op, r->name) && !strcmp(domain, r->domain)) return true;
  }
  return false;
}

bool onnx_op_at(u32 i, ReaderOp *out) {
  if (i >= op_row_count) return false;
  const OpRow *r = &op_rows[i];
  const char *domain = r->domain;
  for (u32 k = 1; k < sizeof domains / sizeof *domains; k++)
    if (!strcmp(domains[k].key, domain)) {
      domain = domains[k].domain;
      break;
    }
  *out = (ReaderOp){domain, r->name, r->since, r->until};
  return true;
}
