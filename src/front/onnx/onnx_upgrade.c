/* onnx_upgrade.c: upgrades a model to a later ONNX opset.
 *
 * In: a model of opset 13 or later. Out: the same computation in the requested opset, up to 21, or
 * a refusal. In these versions most operators only gained types and optional attributes. A table
 * lists the others: attributes that became inputs, changed defaults, and unsupported cases.
 * Sub-graphs are copied unchanged, so one that needs a change is refused.
 */
#include "front/onnx/onnx_edit.h"

typedef enum UpgradeRule { RH_axes, RH_outputs, RH_roi, RH_refuse } UpgradeRule;

static const struct {
  const char *op;
  i64 since; /* first version that differs */
  UpgradeRule how;
} changes[] = {
    {"ReduceL1", 18, RH_axes},        {"ReduceL2", 18, RH_axes},
    {"ReduceLogSum", 18, RH_axes},    {"ReduceLogSumExp", 18, RH_axes},
    {"ReduceMax", 18, RH_axes},       {"ReduceMean", 18, RH_axes},
    {"ReduceMin", 18, RH_axes},       {"ReduceProd", 18, RH_axes},
    {"ReduceSumSquare", 18, RH_axes}, {"Split", 18, RH_outputs},
    {"RoiAlign", 16, RH_roi},         {"GridSample", 20, RH_refuse},
    {"DFT", 20, RH_refuse},           {"GroupNormalization", 21, RH_refuse},
};

/* The table row that applies to the node; -1: unchanged. */
static int row_of(const Ctx *c, const OnnxNode *n, i64 from, i64 to) {
  if (n->domain && !str_is(c, n->domain, "ai.onnx")) return -1;
  for (u32 i = 0; i < sizeof changes / sizeof *changes; i++)
    if (str_is(c, n->op, changes[i].op) && from < changes[i].since && changes[i].since <= to)
      return (int)i;
  return -1;
}

static bool can_upgrade(const Ctx *c, const OnnxGraph *g, i64 from, i64 to, bool inner) {
  for (u32 i = 0; i < g->nodes.n; i++) {
    const OnnxNode *n = &g->nodes.at[i];
    int row = row_of(c, n, from, to);
    if (row >= 0 && (inner || changes[row].how == RH_refuse)) return false;
    for (u32 k = 0; k < n->attrs.n; k++) {
      const OnnxAttr *a = &n->attrs.at[k];
      if (a->g && !can_upgrade(c, a->g, from, to, true)) return false;
      for (u32 x = 0; x < a->graphs.n; x++)
        if (!can_upgrade(c, a->graphs.at[x], from, to, true)) return false;
    }
  }
  return true;
}

static void axes_to_input(Ctx *c, OnnxGraph *g, OnnxNode *n, Map *taken) {
  const OnnxAttr *a = onnx_attr(c, n, "axes");
  if (!a) return;
  i64 count = a->ints.n;
  Tensor *t = tensor_new(&c->work, DT_i64, &count, 1);
  for (u32 i = 0; i < a->ints.n; i++) tensor_set(t, i, (Scalar){.i = a->ints.at[i]});
  Str name = onnx_fresh_name(c, taken, str_text(c, n->out.at[0]), "_axes");
  onnx_drop_attr(c, n, "axes");
  onnx_node_in(c, n, name);
  onnx_put_init(c, g, name, t);
}

bool onnx_upgrade_opset(Ctx *c, OnnxModel *m, i64 to) {
  i64 from = onnx_opset(c, m, "");
  OnnxGraph *g = m->graph;
  if (from >= to) return true;
  if (from < 13 || to > 21 || !can_upgrade(c, g, from, to, false)) return false;
  Map taken = onnx_names(c, g);
  for (u32 i = 0; i < g->nodes.n; i++) {
    OnnxNode *n = &g->nodes.at[i];
    int row = row_of(c, n, from, to);
    if (row < 0) continue;
    if (changes[row].how == RH_axes) axes_to_input(c, g, n, &taken);
    if (changes[row].how == RH_outputs && (n->in.n < 2 || !n->in.at[1]))
      onnx_set_int(c, n, "num_outputs", n->out.n);
    if (changes[row].how == RH_roi && !onnx_attr(c, n, "coordinate_transformation_mode")) {
      n->edited = true;
      *vec_push(&c->work, &n->attrs) =
          (OnnxAttr){.name = str_of(c, "coordinate_transformation_mode"),
                     .type = OA_string,
                     .s = str_of(c, "output_half_pixel")};
    }
  }
  for (u32 i = 0; i < m->opsets.n; i++)
    if (m->opsets.at[i].version == from &&
        (!m->opsets.at[i].domain || str_is(c, m->opsets.at[i].domain, "ai.onnx")))
      m->opsets.at[i].version = to;
  if (m->ir_version < 10) m->ir_version = 10; /* required by opset 21 */
  return true;
}
