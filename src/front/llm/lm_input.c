/* lm_input.c: the input of language models: token ids i32[tokens].
 *
 * In: import options. Out: the declaration of input and result, and the parameter of the graph. The
 * number of tokens is symbolic with a bound, unless the user fixes it (-d tokens=16).
 */
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
