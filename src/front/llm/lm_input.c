/* lm_input.c: the input of language models: token ids i32[tokens].
 *
 * In: import options. Out: the declaration of input and result, and the parameters of the graph.
 * The number of tokens is symbolic with a bound, unless the user fixes it (-d tokens=16). With
 * several sequences, each has its own ids and number of tokens, and `rows` selects the tokens whose
 * logits are computed.
 */
#include "front/compose/compose.h"
#include "front/llm/llm.h"

static DeclValue *declared(Ctx *c, const char *name, DType dt) {
  DeclValue *v = NEW(&c->work, DeclValue);
  v->name = str_of(c, name);
  v->type = (DeclType){.kind = OT_tensor, .dt = dt};
  return v;
}

void lm_declare_io(Ctx *c, Model *m, const char *result) {
  DeclValue *ids = declared(c, "ids", DT_i32);
  ids->type.has_shape = true;
  *vec_push(&c->work, &ids->type.dims) = (DeclDim){.kind = OD_param, .param = str_of(c, "tokens")};
  m->input = NEWS(&c->work, const DeclValue *, 1);
  m->input[0] = ids;
  m->ninput = 1;
  m->output = declared(c, result, DT_f32);
  m->noutput = 1;
}

static bool is_tokens(Ctx *c, const BindDim *b) {
  return b->input ? str_is(c, b->input, "ids") && b->axis == 0 && b->rank <= 1
                  : str_is(c, b->symbol, "tokens");
}

static Dim tokens_of(Graph *g, const ImportOptions *o, i64 most, i64 limit) {
  Ctx *c = g->c;
  i64 fixed = 0;
  for (u32 i = 0; i < o->ndim; i++) {
    BindDim *b = &o->dim[i];
    if (!is_tokens(c, b))
      fail(c, ERR_usage, g->loc, "the model has no open dimension '%s', only 'tokens'",
           show(c, b->input ? b->input : b->symbol));
    if (b->value < 1 || b->value > limit)
      fail(c, ERR_usage, g->loc, "tokens per run is %lld, expected 1 to %lld", (long long)b->value,
           (long long)limit);
    b->used = true;
    if (b->bound)
      most = b->value;
    else
      fixed = b->value;
  }
  if (fixed) return fixed;
  if (most > limit) most = limit;
  return dim_of_sym(g->dims, dim_sym(g->dims, SY_input, str_of(c, "tokens"), 1, most));
}

Val lm_input_ids(Graph *g, const ImportOptions *o, i64 most, i64 limit) {
  Ctx *c = g->c;
  for (u32 i = 0; i < o->ninput; i++)
    if (o->input[i].frozen)
      fail(c, ERR_unsupported, g->loc, "input '%s' of a language model cannot be frozen",
           show(c, o->input[i].name));
  Dim tokens = tokens_of(g, o, most, limit);
  return graph_param(g, 1, type_tensor(&c->work, DT_i32, &tokens, 1), str_of(c, "ids"));
}

static void refuse_dims(Graph *g, const ImportOptions *o) {
  for (u32 i = 0; i < o->ndim; i++)
    fail(g->c, ERR_usage, g->loc, "-d is not supported with several sequences: use --chunk");
}

static Dim new_size(Graph *g, Str name, i64 lo, i64 hi) {
  return dim_of_sym(g->dims, dim_sym(g->dims, SY_input, name, lo, hi));
}

static Val i32_input(Graph *g, Dim n, Str name) {
  return graph_param(g, 1, type_tensor(&g->c->work, DT_i32, &n, 1), name);
}

const LmInput *lm_input(Graph *g, const ImportOptions *o, i64 context, bool embeds) {
  Ctx *c = g->c;
  const LmOptions *w = &o->language;
  LmInput *in = NEW(&c->work, LmInput);
  i64 chunk = w->chunk ? w->chunk : LM_CHUNK;
  if (embeds) {
    in->nslot = 1;
    in->ids = lm_input_ids(g, o, context, context);
    in->tokens = in->slot[0].tokens = val_dim(g, in->ids, 0);
    in->slot[0].before = mk_scalar(g, DT_i64, 0);
    return in;
  }
  if (!w->slots) {
    in->nslot = 1;
    in->ids = lm_input_ids(g, o, chunk, context);
    in->tokens = in->slot[0].tokens = val_dim(g, in->ids, 0);
  } else {
    Val ids[LM_SLOTS];
    refuse_dims(g, o);
    in->nslot = w->slots;
    if (chunk > context) chunk = context;
    for (u32 i = 0; i < in->nslot; i++) {
      LmSlot *s = &in->slot[i];
      s->tokens = new_size(g, str_fmt(c, "tokens.%u", i), 0, chunk);
      s->first = in->tokens;
      in->tokens = dim_add(g->dims, in->tokens, s->tokens);
      ids[i] = i32_input(g, s->tokens, str_fmt(c, "ids.%u", i));
    }
    in->ids = in->nslot > 1 ? mk_concat(g, ids, in->nslot, 0) : ids[0];
    Dim rows = new_size(g, str_of(c, "logits"), 1, (i64)in->nslot * LM_SLOT_ROWS);
    in->rows = i32_input(g, rows, str_of(c, "rows"));
  }
  for (u32 i = 0; i < in->nslot; i++) {
    LmSlot *s = &in->slot[i];
    s->past = new_size(g, w->slots ? str_fmt(c, "past.%u", i) : str_of(c, "past"), 0, context - 1);
    s->before = mk_extent(g, s->past, DT_i64);
  }
  return in;
}
