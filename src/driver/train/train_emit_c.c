/* train_emit_c.c: emits the training loop as C.
 *
 * In: an open model, loss and optimizer, batch size. Out: a C file with two entries, the training
 * step and the model, which share the weights in the arena, and NAME_train, NAME_run, NAME_reset,
 * NAME_save and NAME_load. The state is at the start of the arena, so that saving and loading are
 * one copy.
 */
#include "driver/train/train_loop.h"

#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static const char *c_type(Ctx *c, DType dt) {
  static const char *const name[DT_COUNT] = {
      [DT_f64] = "double",   [DT_f32] = "float",  [DT_i64] = "int64_t",  [DT_i32] = "int32_t",
      [DT_i16] = "int16_t",  [DT_i8] = "int8_t",  [DT_u64] = "uint64_t", [DT_u32] = "uint32_t",
      [DT_u16] = "uint16_t", [DT_u8] = "uint8_t", [DT_bool] = "uint8_t"};
  if (!name[dt])
    fail(c, ERR_unsupported, LOC_NONE, "--emit: inputs and outputs of type %s are not supported",
         dtype_info[dt].name);
  return name[dt];
}

static bool is_random(const Prog *p) {
  for (ExprId e = 1; e < p->nexpr; e++)
    if (prog_expr(p, e)->kind == EX_random) return true;
  return false;
}

/* Parameters and arguments of a call; for the step only those visible in NAME_train. */
typedef struct CallText {
  StrBuf params, args;
} CallText;

static CallText call_text(Ingot *m, bool step) {
  const Prog *p = m->p;
  Ctx *c = m->c;
  CallText t = {sb_new(&c->keep), sb_new(&c->keep)};
  if (is_random(p)) {
    sb_puts(&t.params, ", uint64_t seed");
    sb_puts(&t.args, ", seed");
  }
  for (u32 i = 0; i < p->in.n; i++) {
    const Buf *b = prog_buf(p, p->in.at[i]);
    if (step && str_is(c, b->name, "rate")) {
      sb_puts(&t.args, ", &rate");
      continue;
    }
    sb_fmt(&t.params, ", const %s *in%u", c_type(c, b->dt), i);
    sb_fmt(&t.args, ", in%u", i);
  }
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    if (step && !str_is(c, b->name, "loss")) {
      sb_puts(&t.args, ", &right");
      continue;
    }
    const char *name = step ? "loss" : fmt_text(c, "out%u", i);
    sb_fmt(&t.params, ", %s *%s", c_type(c, b->dt), name);
    sb_fmt(&t.args, ", %s", name);
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
    "/* Runs one training step with learning rate ${NAME}_RATE: updates the weights in the arena; "
    "loss:\n"
    " * before the update. Call ${name}_reset first, and to start over. ${name}_step_run takes "
    "another rate. "
    "*/\n"
    "int ${name}_train(void *arena${train_params});\n"
    "/* Runs the model with the weights in the arena. */\n"
    "int ${name}_run(void *arena${run_params});\n"
    "/* Sets the weights to those of the file, and the moments to zero. */\n"
    "void ${name}_reset(void *arena);\n"
    "/* Copy ${NAME}_STATE_BYTES from and to the arena: weights, running means, optimizer moments. "
    "*/\n"
    "void ${name}_save(const void *arena, void *to);\n"
    "void ${name}_load(void *arena, const void *from);\n";

static const char *fill(Ctx *c, const char *text, const TemplateVar *vars) {
  StrBuf t = sb_new(&c->keep);
  sb_subst(c, &t, text, strlen(text), vars);
  return sb_cstr(&t);
}

enum { STACK_AROUND = 256 };

static const EmitExtra *more_text(Ingot *m, const char *name) {
  Ctx *c = m->c;
  Ingot *model = api_entry(m, 1);
  StrBuf upper = sb_new(&c->keep), macros = sb_new(&c->keep), code = sb_new(&c->keep);
  CallText train = call_text(m, true), run = call_text(model, false);
  u64 kept = kept_bytes(m->p), more = kept_bytes(model->p);
  bool right = m->p->out.n > 1;
  sb_upper(&upper, name);
  const char *caps = sb_cstr(&upper);
  const TemplateVar vars[] = {{"name", name},
                              {"NAME", caps},
                              {"train_params", sb_cstr(&train.params)},
                              {"run_params", sb_cstr(&run.params)},
                              {0}};
  sb_fmt(&macros, "#define %s_STATE_BYTES %llu\n#define %s_RATE %.9gf\n", caps,
         (unsigned long long)(kept > more ? kept : more), caps, m->options.rate);
  sb_puts(
      &code,
      fill(
          c,
          "\nint ${name}_train(void *arena${train_params}) {\n  const float rate = ${NAME}_RATE;\n",
          vars));
  if (right) sb_puts(&code, "  int64_t right;\n");
  sb_fmt(&code, "  return %s_step_run(arena%s);\n}\n", name, sb_cstr(&train.args));
  sb_puts(&code, fill(c, "\nint ${name}_run(void *arena${run_params}) {\n", vars));
  sb_fmt(&code, "  return %s_model_run(arena%s);\n}\n", name, sb_cstr(&run.args));
  sb_puts(&code, fill(c,
                      "\nvoid ${name}_reset(void *arena) {\n  ${name}_step_reset(arena);\n}\n"
                      "\nvoid ${name}_save(const void *arena, void *to) {\n"
                      "  memcpy(to, arena, ${NAME}_STATE_BYTES);\n}\n"
                      "\nvoid ${name}_load(void *arena, const void *from) {\n"
                      "  memcpy(arena, from, ${NAME}_STATE_BYTES);\n}\n",
                      vars));
  EmitExtra *to = NEW(&c->keep, EmitExtra);
  *to = (EmitExtra){.macros = sb_cstr(&macros),
                    .declarations = fill(c, declarations, vars),
                    .code = sb_cstr(&code),
                    .stack_around = STACK_AROUND};
  return to;
}

/* ---- the two programs ---- */

static Ingot *part_of(const Ingot *of, const char *spec, TrainPart part, const char *entry) {
  Ctx *c = of->c;
  Ingot *m = NEW(&c->keep, Ingot);
  *m = *of;
  m->run = (LastRun){.once = {.c = c}};
  m->options.train = spec;
  m->options.part = part;
  m->entries.entry = entry;
  return m;
}

/* Sets the batch size of all inputs with an open first axis. */
static void bind_batch(Ingot *m, u64 batch) {
  for (u32 i = 0; i < m->opened.model->ninput; i++) {
    const DeclValue *in = m->opened.model->input[i];
    const DeclDim *d = in->type.has_shape && in->type.dims.n ? &in->type.dims.at[0] : NULL;
    bool known = false;
    for (u32 k = 0; d && k < m->options.dim.n; k++)
      known |= (m->options.dim.at[k].symbol && m->options.dim.at[k].symbol == d->param) ||
               (m->options.dim.at[k].input == in->name && !m->options.dim.at[k].axis);
    if (d && d->kind != OD_value && !known)
      *vec_push(&m->c->keep, &m->options.dim) =
          (BindDim){.input = in->name, .axis = 0, .value = (i64)batch};
  }
}

static const char *spec_of(Ctx *c, const IngotTrain *o, bool recompute) {
  StrBuf t = sb_new(&c->keep);
  sb_fmt(&t, "loss=%s,optimizer=%s,rate=%.9g", o->loss ? o->loss : "cross_entropy",
         o->optimizer ? o->optimizer : "adam", o->rate ? o->rate : 1e-3);
  if (o->clip > 0) sb_fmt(&t, ",clip=%.17g", o->clip);
  for (u32 i = 0; i < o->nfreeze; i++) sb_fmt(&t, ",freeze=%s", o->freeze[i]);
  if (recompute) sb_puts(&t, ",recompute=1");
  if (o->more && *o->more) sb_fmt(&t, ",%s", o->more);
  return sb_cstr(&t);
}

static Ingot *step_and_model(Ingot *m, const IngotTrain *o, bool recompute) {
  const char *spec = spec_of(m->c, o, recompute);
  Ingot *step = part_of(m, spec, TP_step, "step");
  *vec_push(&m->c->keep, &step->entries.also) = part_of(m, spec, TP_infer, "model");
  step->entries.share_state = true;
  step->compiled.more = more_text;
  return step;
}

static void emit_training(Ingot *m, const IngotTrain *o, const IngotCodegen *ic, const char *source,
                          const char *header, const char *weights, uint64_t *ram) {
  Ctx *c = m->c;
  api_need(c, o, "the training options");
  api_need(c, ram, "a pointer to the RAM");
  if (!m->opened.source.at)
    fail(c, ERR_usage, LOC_NONE, "no model is open: expected ingot_open before this call");
  if (!m->opened.model)
    fail(c, ERR_unsupported, LOC_NONE, "is %s, which has no weights by name: expected ONNX",
         m->opened.reader ? m->opened.reader->name : "a graph in text form");
  bind_batch(m, o->batch ? o->batch : 1);
  StrBuf s = sb_new(&c->keep), h = sb_new(&c->keep);
  ram[1] = 0;
  if (o->recompute) {
    EmitFacts whole = api_emit(step_and_model(m, o, false), ic, false, &s, &h);
    ram[1] = ram_bytes(&whole);
  }
  EmitFacts facts =
      api_write_c(step_and_model(m, o, o->recompute != 0), ic, source, header, weights);
  ram[0] = ram_bytes(&facts);
}

IngotStatus ingot_train_c(Ingot *m, const IngotTrain *o, const IngotCodegen *c, const char *source,
                          const char *header, const char *weights, uint64_t ram[2]) {
  API_CALL(m, emit_training(m, o, c, source, header, weights, ram));
}
