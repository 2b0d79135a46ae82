/* cparam.c: the interface of a generated file for its callers.
 *
 * In: a written program. Out: the parameters of NAME_run with names, its prototype with a comment
 * on each, the enum of statuses, and macros with names. A parameter is named after the input,
 * output or size of the model, in lower-case ASCII letters, digits and single underscores, at most
 * NAME_LENGTH characters. Other characters become underscores. A name without letters becomes in0,
 * out0 or n0. Names reserved by C, C++, Rust, common headers or generated text (reserved.def, kind
 * param) get the suffix _in, _out or _size; duplicates get a number. Function bodies use their own
 * names (c.h), so macros of the includer cannot change them. */
#include "back/c/c.h"
#include "back/status.h"
#include "ir/lexer.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_LENGTH = 48, LINE = 120 };

/* Name and suffix by kind of parameter. */
static const struct {
  const char *word, *suffix;
} kinds[] = {[PK_weights] = {"weight_file", ""}, [PK_size] = {"n", "_size"},
             [PK_seed] = {"seed", ""},           [PK_in] = {"in", "_in"},
             [PK_out] = {"out", "_out"},         [PK_shape] = {"shape", ""}};

static const Buf *port(const Emit *e, const EmitParam *x) {
  return prog_buf(e->p, x->kind == PK_in ? e->p->in.at[x->i] : e->p->out.at[x->i]);
}

static Str model_name(const Emit *e, const EmitParam *x) {
  return x->kind == PK_size ? dim_syminfo(e->p->dims, x->i)->name : port(e, x)->name;
}

/* ---- names ---- */

static void put_word(StrBuf *t, const char *s) {
  bool gap = false;
  for (; *s && t->n < NAME_LENGTH; s++) {
    char ch = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
    bool fine = (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
    if (fine && gap && t->n) sb_puts(t, "_");
    if (fine) sb_put(t, &ch, 1);
    gap = !fine;
  }
}

static bool is_reserved(Emit *e, const char *word) {
  size_t n = strlen(word);
  StrBuf own = sb_new(&e->c->scratch); /* functions of the file */
  put_word(&own, e->o->name);
  return is_reserved_name(e->c, "param", word) || (n > 2 && !strcmp(word + n - 2, "_t")) ||
         (own.n && !strncmp(word, sb_cstr(&own), own.n) && word[own.n] == '_');
}

/* used: names of parameters -> last number tried */
static bool is_used(const Map *used, const char *name) {
  return map_get_bytes(used, name, strlen(name)) != NULL;
}

static const char *shape_of(Emit *e, const char *name) {
  return fmt_text(e->c, "%s_shape", name);
}

/* shaped: the next parameter is its shape. */
static const char *param_name(Emit *e, Map *used, const EmitParam *x, bool shaped) {
  StrBuf t = sb_new(&e->c->keep);
  const char *word = kinds[x->kind].word, *model = str_text(e->c, model_name(e, x));
  put_word(&t, model);
  if (!t.n) {
    sb_fmt(&t, "%s%u", word, x->i);
  } else if (t.at[0] >= '0' && t.at[0] <= '9') {
    t.n = 0;
    sb_fmt(&t, "%s_", word);
    put_word(&t, model);
  }
  if (is_reserved(e, sb_cstr(&t))) sb_puts(&t, kinds[x->kind].suffix);
  size_t n = t.n;
  const u32 *last = map_get_bytes(used, t.at, n);
  u32 k = last && *last ? *last : 1;
  while (is_used(used, sb_cstr(&t)) || (shaped && is_used(used, shape_of(e, t.at)))) {
    t.n = n;
    sb_fmt(&t, "_%u", ++k);
  }
  map_put_bytes(used, t.at, t.n);
  if (t.n != n) *map_put_bytes(used, t.at, n) = k;
  if (shaped) map_put_bytes(used, shape_of(e, t.at), strlen(shape_of(e, t.at)));
  return sb_cstr(&t);
}

EmitParams list_params(Emit *e) {
  EmitParams all = {0};
  Arena *a = &e->c->keep;
  Map used = map_new(&e->c->scratch);
  const char *weights = kinds[PK_weights].word, *seed = kinds[PK_seed].word;
  if (e->o->weights == WM_pointer) {
    *vec_push(a, &all) = (EmitParam){PK_weights, 0, "void", weights};
    map_put_bytes(&used, weights, strlen(weights));
  }
  for (Sym s = 0; s < dim_nsyms(e->p->dims); s++) {
    EmitParam x = {.kind = PK_size, .i = s, .type = "int64_t"};
    if (!is_argument(e, s)) continue;
    x.name = param_name(e, &used, &x, false);
    *vec_push(a, &all) = x;
  }
  if (e->random) {
    *vec_push(a, &all) = (EmitParam){PK_seed, 0, "uint64_t", seed};
    map_put_bytes(&used, seed, strlen(seed));
  }
  for (u32 i = 0; i < e->p->in.n + e->p->out.n; i++) {
    bool out = i >= e->p->in.n;
    u32 k = out ? i - e->p->in.n : i;
    EmitParam x = {.kind = out ? PK_out : PK_in, .i = k};
    bool shaped = out && e->open_out[k];
    x.type = c_storage(port(e, &x)->dt);
    x.name = param_name(e, &used, &x, shaped);
    *vec_push(a, &all) = x;
    if (shaped) *vec_push(a, &all) = (EmitParam){PK_shape, k, "int64_t", shape_of(e, x.name)};
  }
  return all;
}

/* ---- statuses ---- */

void put_statuses(Emit *e, StrBuf *t) {
  static const char *const names[] = {
#define STATUS(name, text) #name,
#include "back/status.def"
#undef STATUS
  };
  put_template(e, t,
               "/* Return values. ${name}_why returns the text of each. */\n"
               "enum ${name}_status {\n");
  for (u32 i = 0; i < STATUS_COUNT; i++) {
    StrBuf upper = sb_new(&e->c->scratch);
    sb_upper(&upper, names[i]);
    put_template(e, t, "  ${NAME}_%s%s = %u, /* %s */\n", i ? "ERR_" : "",
                 i ? sb_cstr(&upper) : "OK", i, status_means[i]);
  }
  /* the CPU's status is added last */
  u32 cpu = checks_cpu(e) ? cpu_status(e) : 0, end = STATUS_COUNT + e->variant->why.text.n;
  if (cpu)
    put_template(e, t,
                 "  ${NAME}_ERR_CPU = %u, /* this CPU lacks instructions that the code needs */\n",
                 cpu);
  if ((cpu ? cpu : end) > STATUS_COUNT)
    put_template(
        e, t, "  ${NAME}_ERR_MODEL = %u, /* and above: a requirement of the model is not met */\n",
        STATUS_COUNT);
  sb_puts(t, "};\n");
}

/* ---- the prototype ---- */

/* "logits": f32[batch,10], at most NAME_OUTPUT0_ELEMENTS elements */
static void put_array_comment(Emit *e, StrBuf *t, const EmitParam *x) {
  const Buf *b = port(e, x);
  bool fixed = true, open = x->kind == PK_out && e->open_out[x->i];
  StrBuf s = sb_new(&e->c->scratch);
  sb_fmt(&s, "%s[", dtype_info[b->dt].name);
  for (u32 k = 0; k < b->rank; k++) {
    fixed = fixed && dim_is_const(b->dim[k]);
    sb_puts(&s, k ? "," : "");
    dim_print(e->p->dims, b->dim[k], &s);
  }
  sb_puts(&s, "]");
  put_comment(t, s.at, s.n);
  if (fixed) {
    u64 n = buf_elements(e, x->kind == PK_in ? e->p->in.at[x->i] : e->p->out.at[x->i]);
    sb_fmt(t, ", %" PRIu64 " element%s", n, n == 1 ? "" : "s");
    return;
  }
  put_template(e, t, ", %s${ENTRY}_%sPUT%u_ELEMENTS elements",
               open ? "known after the run: room for " : "at most ",
               x->kind == PK_in ? "IN" : "OUT", x->i);
}

static void put_param_comment(Emit *e, StrBuf *t, const EmitParam *x, int width) {
  sb_fmt(t, " *   %-*s  ", width, x->name);
  if (x->kind == PK_size || x->kind == PK_in || x->kind == PK_out) {
    sb_fmt(t, "%s '", x->kind == PK_size ? "size" : x->kind == PK_in ? "input" : "output");
    put_comment(t, str_text(e->c, model_name(e, x)), str_len(e->c, model_name(e, x)));
    sb_puts(t, "': ");
  }
  switch (x->kind) {
  case PK_weights:
    put_template(e, t, "${NAME}_WEIGHT_BYTES bytes of weights, aligned to 64 bytes");
    break;
  case PK_size: {
    const SymInfo *s = dim_syminfo(e->p->dims, x->i);
    sb_fmt(t, "%" PRId64 " to %" PRId64, s->lo, s->hi);
    break;
  }
  case PK_seed: sb_puts(t, "seed of random numbers"); break;
  case PK_in:
  case PK_out: put_array_comment(e, t, x); break;
  case PK_shape: sb_fmt(t, "receives %u extents", port(e, x)->rank);
  }
  sb_puts(t, "\n");
}

void put_prototype(Emit *e, StrBuf *t) {
  EmitParams all = list_params(e);
  int width = 5; /* arena */
  for (u32 i = 0; i < all.n; i++)
    if ((int)strlen(all.at[i].name) > width) width = (int)strlen(all.at[i].name);
  put_template(e, t,
               "/* Runs the model once; returns ${NAME}_OK or another enum ${name}_status. Arrays "
               "are dense and "
               "row-major. They must not\n * overlap each other or the arena.\n"
               " *   %-*s  ${NAME}_ARENA_BYTES bytes, must be aligned to 64 bytes "
               "(${NAME}_ARENA_ALIGN), for one "
               "run at a time\n",
               width, "arena");
  for (u32 i = 0; i < all.n; i++) put_param_comment(e, t, &all.at[i], width);
  sb_puts(t, " */\n");
  size_t line = t->n;
  put_template(e, t, "int ${entry}_run(void *arena");
  for (u32 i = 0; i < all.n; i++) {
    const EmitParam *x = &all.at[i];
    bool value = x->kind == PK_size || x->kind == PK_seed;
    StrBuf one = sb_new(&e->c->scratch);
    sb_fmt(&one, "%s%s %s%s", x->kind == PK_in || x->kind == PK_weights ? "const " : "", x->type,
           value ? "" : "*", x->name);
    bool wraps = t->n - line + one.n + 4 > LINE;
    if (wraps) line = t->n + 2;
    sb_fmt(t, wraps ? ",\n    %s" : ", %s", sb_cstr(&one));
  }
  sb_puts(t, ");\n");
}

/* ---- macros ---- */

void put_named_macros(Emit *e, StrBuf *t) {
  EmitParams all = list_params(e);
  for (u32 i = 0; i < all.n; i++) {
    const EmitParam *x = &all.at[i];
    StrBuf upper = sb_new(&e->c->scratch);
    const char *what = x->kind == PK_size ? "SIZE" : x->kind == PK_in ? "INPUT" : "OUTPUT";
    const char *fact = x->kind == PK_size ? "MAX" : "ELEMENTS";
    if (x->kind != PK_size && x->kind != PK_in && x->kind != PK_out) continue;
    sb_upper(&upper, x->name);
    put_template(e, t, "#define ${ENTRY}_%s_%s_%s ${ENTRY}_%s%u_%s\n", what, sb_cstr(&upper), fact,
                 what, x->i, fact);
  }
}
