/* fit_c.c: a training as C: the step and the model in one file, for devices that learn.
 *
 * In: a model that is open, loss and optimizer, the size of a batch. Out: a C file with two
 * entries, the step and the model as it is used, which share the weights in the arena, and around
 * them NAME_train, NAME_run, NAME_reset, NAME_save and NAME_load. What is kept lies at the
 * beginning of the arena, so that saving and loading is one copy.
 */
#include "api/fit.h"

#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const char *c_type(Ctx *c, DType dt) {
  static const char *const name[DT_COUNT] = {
      [DT_f64] = "double",   [DT_f32] = "float",  [DT_i64] = "int64_t",  [DT_i32] = "int32_t",
      [DT_i16] = "int16_t",  [DT_i8] = "int8_t",  [DT_u64] = "uint64_t", [DT_u32] = "uint32_t",
      [DT_u16] = "uint16_t", [DT_u8] = "uint8_t", [DT_bool] = "uint8_t"};
  if (!name[dt])
    fail(c, ERR_unsupported, LOC_NONE, "--emit: an input or output of %s", dtype_info[dt].name);
  return name[dt];
}

static bool is_random(const Prog *p) {
  for (ExprId e = 1; e < p->nexpr; e++)
    if (prog_expr(p, e)->kind == EX_random) return true;
  return false;
}

/* Parameters and arguments of a call, and for the step only those that callers of NAME_train see.
 */
typedef struct CallText {
  Text params, args;
} CallText;

static CallText call_text(Ingot *m, bool step) {
  const Prog *p = m->p;
  Ctx *c = m->c;
  CallText t = {text_new(&c->keep), text_new(&c->keep)};
  if (is_random(p)) {
    text_puts(&t.params, ", uint64_t seed");
    text_puts(&t.args, ", seed");
  }
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    if (step && str_is(c, b->name, "rate")) {
      text_puts(&t.args, ", &rate");
      continue;
    }
    text_fmt(&t.params, ", const %s *in%u", c_type(c, b->dt), i);
    text_fmt(&t.args, ", in%u", i);
  }
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    if (step && !str_is(c, b->name, "loss")) {
      text_puts(&t.args, ", &right");
      continue;
    }
    const char *name = step ? "loss" : str_text(c, str_fmt(c, "out%u", i));
    text_fmt(&t.params, ", %s *%s", c_type(c, b->dt), name);
    text_fmt(&t.args, ", %s", name);
  }
  return t;
}

static u64 kept_bytes(Prog *p) {
  u64 end = 0, bytes;
  Sym sym;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->space == BS_state && !x->alias && mem_bytes(p, b, &bytes, &sym) &&
        x->offset + bytes > end)
      end = x->offset + bytes;
  }
  return end;
}

static const char declarations[] =
    "\n/* ---- training ---- */\n\n"
    "/* One step with the rate `_RATE: weights in the arena change; loss: before that. The first\n"
    " * call, and every one to begin anew, comes behind $_reset. $_step_run takes another rate. "
    "*/\n"
    "int $_train(void *arena^);\n"
    "/* The model with the weights that are in the arena. */\n"
    "int $_run(void *arena~);\n"
    "/* Weights as the file has them, no moments. */\n"
    "void $_reset(void *arena);\n"
    "/* All that was learnt, `_STATE_BYTES, out of the arena and back: weights, running means and\n"
    " * the moments of the optimizer. */\n"
    "void $_save(const void *arena, void *to);\n"
    "void $_load(void *arena, const void *from);\n";

static const char *fill(Ctx *c, const char *text, const char *const *by) {
  Text t = text_new(&c->keep);
  text_fill(&t, text, strlen(text), "$`^~", by);
  return text_cstr(&t);
}

enum { STACK_AROUND = 256 };

static const EmitMore *more_text(Ingot *m, const char *name) {
  Ctx *c = m->c;
  Ingot *model = api_entry(m, 1);
  Text upper = text_new(&c->keep), macros = text_new(&c->keep), code = text_new(&c->keep);
  CallText train = call_text(m, true), run = call_text(model, false);
  u64 kept = kept_bytes(m->p), more = kept_bytes(model->p);
  bool right = m->p->out.n > 1;
  text_upper(&upper, name);
  const char *by[] = {name, text_cstr(&upper), text_cstr(&train.params), text_cstr(&run.params)};
  text_fmt(&macros, "#define %s_STATE_BYTES %llu\n#define %s_RATE %.9gf\n", by[1],
           (unsigned long long)(kept > more ? kept : more), by[1], m->told.rate);
  text_puts(&code, fill(c, "\nint $_train(void *arena^) {\n  const float rate = `_RATE;\n", by));
  if (right) text_puts(&code, "  int64_t right;\n");
  text_fmt(&code, "  return %s_step_run(arena%s);\n}\n", name, text_cstr(&train.args));
  text_puts(&code, fill(c, "\nint $_run(void *arena~) {\n", by));
  text_fmt(&code, "  return %s_model_run(arena%s);\n}\n", name, text_cstr(&run.args));
  text_puts(&code, fill(c,
                        "\nvoid $_reset(void *arena) {\n  $_step_reset(arena);\n}\n"
                        "\nvoid $_save(const void *arena, void *to) {\n"
                        "  memcpy(to, arena, `_STATE_BYTES);\n}\n"
                        "\nvoid $_load(void *arena, const void *from) {\n"
                        "  memcpy(arena, from, `_STATE_BYTES);\n}\n",
                        by));
  EmitMore *to = NEW(&c->keep, EmitMore);
  *to = (EmitMore){.macros = text_cstr(&macros),
                   .declarations = fill(c, declarations, by),
                   .code = text_cstr(&code),
                   .stack_around = STACK_AROUND};
  return to;
}

/* ---- the two programs ---- */

static Ingot *part_of(const Ingot *of, const char *spec, TrainPart part, const char *entry) {
  Ctx *c = of->c;
  Ingot *m = NEW(&c->keep, Ingot);
  *m = *of;
  m->run = (LastRun){.once = {.c = c}};
  m->told.train = spec;
  m->told.part = part;
  m->together.entry = entry;
  return m;
}

/* Every input of an open first axis has so many rows. */
static void bind_batch(Ingot *m, u64 batch) {
  for (u32 i = 0; i < m->opened.model->ninput; i++) {
    const DeclValue *in = m->opened.model->input[i];
    const DeclDim *d = in->type.has_shape && in->type.dims.n ? &in->type.dims.at[0] : NULL;
    bool said = false;
    for (u32 k = 0; d && k < m->told.dim.n; k++)
      said |= (m->told.dim.at[k].symbol && m->told.dim.at[k].symbol == d->param) ||
              (m->told.dim.at[k].input == in->name && !m->told.dim.at[k].axis);
    if (d && d->kind != OD_value && !said)
      *vec_push(&m->c->keep, &m->told.dim) =
          (BindDim){.input = in->name, .axis = 0, .value = (i64)batch};
  }
}

static const char *spec_of(Ctx *c, const IngotTrain *o, bool recompute) {
  Text t = text_new(&c->keep);
  text_fmt(&t, "loss=%s,optimizer=%s,rate=%.9g", o->loss ? o->loss : "cross_entropy",
           o->optimizer ? o->optimizer : "adam", o->rate ? o->rate : 1e-3);
  if (o->clip > 0) text_fmt(&t, ",clip=%.17g", o->clip);
  for (u32 i = 0; i < o->nfreeze; i++) text_fmt(&t, ",freeze=%s", o->freeze[i]);
  if (recompute) text_puts(&t, ",recompute=1");
  if (o->more && *o->more) text_fmt(&t, ",%s", o->more);
  return text_cstr(&t);
}

static Ingot *both(Ingot *m, const IngotTrain *o, bool recompute) {
  const char *spec = spec_of(m->c, o, recompute);
  Ingot *step = part_of(m, spec, TP_step, "step");
  *vec_push(&m->c->keep, &step->together.also) = part_of(m, spec, TP_infer, "model");
  step->together.shares = true;
  step->compiled.more = more_text;
  return step;
}

static void emit_training(Ingot *m, const IngotTrain *o, const IngotC *ic, const char *source,
                          const char *header, const char *weights, uint64_t *ram) {
  Ctx *c = m->c;
  api_need(c, o, "what is wished of the training");
  api_need(c, ram, "the place of the RAM");
  if (!m->opened.source.at) fail(c, ERR_usage, LOC_NONE, "no model is open");
  if (!m->opened.model)
    fail(c, ERR_unsupported, LOC_NONE, "is %s, which has no weights by name: expected ONNX",
         m->opened.reader ? m->opened.reader->name : "a graph in text form");
  bind_batch(m, o->batch ? o->batch : 1);
  Text s = text_new(&c->keep), h = text_new(&c->keep);
  ram[1] = 0;
  if (o->recompute) {
    EmitFacts whole = api_emit(both(m, o, false), ic, false, &s, &h);
    ram[1] = ram_bytes(&whole);
  }
  EmitFacts facts = api_write_c(both(m, o, o->recompute != 0), ic, source, header, weights);
  ram[0] = ram_bytes(&facts);
}

IngotStatus ingot_train_c(Ingot *m, const IngotTrain *o, const IngotC *c, const char *source,
                          const char *header, const char *weights, uint64_t ram[2]) {
  API_CALL(m, emit_training(m, o, c, source, header, weights, ram));
}
