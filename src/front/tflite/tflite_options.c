/* tflite_options.c: options of a TensorFlow Lite operator as text, for reports.
 *
 * In: a decoded model and the location of a node. Out: "padding=SAME, stride_w=2" with the names of
 * tflite_options.def. Absent numbers are printed with their defaults. Options of custom operators
 * are not printed, because their names are unknown.
 */
#include "front/tflite/tflite_import.h"

#include <string.h>

static const struct {
  u32 type; /* LiteOp.opt_type */
  const char *fields;
} options[] = {
#define OPTIONS(type, name, fields) {type, fields},
#include "front/tflite/tflite_options.def"
#undef OPTIONS
};

static void put_enum(StrBuf *t, i64 x, const char *const *name, i64 n) {
  if (x >= 0 && x < n)
    sb_puts(t, name[x]);
  else
    sb_fmt(t, "%lld", (long long)x);
}

static void put_list(StrBuf *t, const FlatVec *v) {
  for (u32 i = 0; i < v->n; i++) sb_fmt(t, "%s%lld", i ? "," : "[", (long long)flat_vec_int(v, i));
  sb_puts(t, v->n ? "]" : "[]");
}

/* kind: see tflite_options.def. */
static void put_field(Ctx *c, StrBuf *t, const FlatTable *o, u32 field, char kind, i64 otherwise) {
  static const char *const padding[] = {"SAME", "VALID"}, *const mirror[] = {"REFLECT",
                                                                             "SYMMETRIC"};
  static const char *const act[] = {"NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"};
  FlatVec v;
  DType dt;
  switch (kind) {
  case 'f': sb_fmt(t, "%g", (double)flat_f32(o, field, (float)otherwise)); return;
  case 'b': sb_puts(t, flat_u8(o, field, otherwise) ? "true" : "false"); return;
  case 's': sb_puts(t, show(c, flat_str(o, field))); return;
  case 'p': put_enum(t, flat_i8(o, field, otherwise), padding, 2); return;
  case 'm': put_enum(t, flat_i8(o, field, otherwise), mirror, 2); return;
  case 'a': put_enum(t, flat_i8(o, field, otherwise), act, 6); return;
  case 'e': sb_fmt(t, "%lld", (long long)flat_i8(o, field, otherwise)); return;
  case 't':
    dt = lite_dtype(flat_i8(o, field, otherwise));
    sb_puts(t, dt ? dtype_info[dt].name : "?");
    return;
  case 'v':
    v = flat_vec(o, field, 4);
    put_list(t, &v);
    return;
  default: sb_fmt(t, "%lld", (long long)flat_i32(o, field, otherwise));
  }
}

static void put_options(Ctx *c, StrBuf *t, const FlatTable *o, const char *fields) {
  for (u32 i = 0; *fields; i++) {
    size_t n = strcspn(fields, " "), name = strcspn(fields, ": ");
    char kind = name < n ? fields[name + 1] : 0;
    i64 otherwise = name + 2 < n ? fields[name + 2] - '0' : 0;
    if (kind && (flat_has(o, i) || strchr("ifbpam", kind))) {
      sb_fmt(t, "%s%.*s=", t->n ? ", " : "", (int)name, fields);
      put_field(c, t, o, i, kind, otherwise);
    }
    fields += n + (fields[n] == ' ');
  }
}

/* Only finds nodes of the first sub-graph, the model; others are numbered separately. */
void lite_attributes(Ctx *c, const Model *m, const Loc *at, StrBuf *out) {
  const LiteGraph *g = ((const LiteModel *)m->own)->graph;
  if (at->index < 0 || (u32)at->index >= g->nop) return;
  const LiteOp *op = &g->op[at->index];
  if (op->name != at->op || lite_node_name(g, op) != at->node || !op->opt.f) return;
  for (u32 i = 0; i < sizeof options / sizeof *options; i++)
    if (options[i].type == (u32)op->opt_type) put_options(c, out, &op->opt, options[i].fields);
}
