/* emit.c: a planned program as one C99 file and its header.
 *
 * In: a Prog whose buffers have places in the arena, and options. Out: the text of NAME.c and
 * NAME.h. The C file carries the declarations of the header too, so it stands alone. Order of the
 * file: what it is, declarations, supporting functions, weights, kernels, the entry. Output depends
 * on nothing but the input.
 */
#include "back/c/c.h"
#include "ir/prog_mem.h"
#include "ir/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* ---- declarations ---- */

static void put_shape(Emit *e, Text *t, const Buf *b) {
  text_puts(t, "{");
  for (u32 i = 0; i < b->rank; i++) {
    i64 lo, hi;
    dim_bounds(e->p->dims, b->dim[i], &lo, &hi);
    text_fmt(t, "%s%" PRId64, i ? ", " : "", hi);
  }
  text_puts(t, b->rank ? "}" : "1}");
}

/* At most. */
static u64 elements(Emit *e, BufId id) {
  const Buf *b = prog_buf(e->p, id);
  u64 n, bytes;
  Sym sym;
  i64 most[MAX_RANK], lo;
  if (!mem_stride(e->p, id, &bytes, &sym)) mem_refuse(e->p, id, sym);
  for (u32 i = 0; i < b->rank; i++) dim_bounds(e->p->dims, b->dim[i], &lo, &most[i]);
  return bytes && shape_count(most, b->rank, &n) ? n : 0;
}

static void put_value_macros(Made *f, Text *t, const char *what, u32 i, BufId id) {
  Emit *e = f->e;
  const Buf *b = prog_buf(e->p, id);
  const char *up = text_cstr(&f->upper);
  Str name = short_text(e->c, b->name);
  text_fmt(t, "#define %s_%s%u_NAME ", up, what, i);
  put_string(t, str_text(e->c, name), str_len(e->c, name));
  text_fmt(t, "\n#define %s_%s%u_TYPE \"%s\"\n#define %s_%s%u_RANK %u\n#define %s_%s%u_SHAPE ", up,
           what, i, dtype_info[b->dt].name, up, what, i, b->rank, up, what, i);
  put_shape(e, t, b);
  text_fmt(t, "\n#define %s_%s%u_ELEMENTS %" PRIu64 "\n", up, what, i, elements(e, id));
}

const char *linkage(const Emit *e) {
  return e->pool ? "static " : "";
}

/* All that NAME_run needs: buffers, and what threads share. */
u64 arena_bytes(const Emit *e) {
  return e->p->arena_bytes + pool_bytes(e);
}

/* Has the entry a pointer to it? */
static bool is_pointed_at(const Emit *e, BufId b) {
  const Buf *x = prog_buf(e->p, b);
  return e->used[b] && (x->space == BS_const && !x->alias ? e->blob : true);
}

/* gcc makes vectors of plain loops over exp and its like at -O3: up to 450 bytes more than the
 * bound without this were seen for AVX-512. */
static u64 functions_frame(const Emit *e) {
  enum { SPILLED = 640 };
  for (u32 op = 0; op < OP_SCALARS; op++)
    for (u32 k = 0; k < MP_COUNT; k++)
      if (e->math[op][k]) return SPILLED;
  return 0;
}

/* With vectors a slot of 16 bytes is taken for every scalar and pointer of the entry and of the
 * largest kernel, and for every operation, as if a compiler kept each result; room for all vectors
 * likewise; and what the deepest chain of supporting functions needs. Of plain loops more is known:
 * see slot() in ckernel.c; pointers take 8 bytes, at calls once more. Constant parts are what
 * supporting functions take, and registers that compilers put aside. */
static u64 stack_bound(Emit *e) {
  u64 entry = e->p->in.n + e->p->out.n + dim_nsyms(e->p->dims) + 16;
  for (BufId b = 1; b < e->p->buf.n; b++) entry += is_pointed_at(e, b);
  if (!e->vectors && !e->nshared)
    return 512 + 8 * (entry + e->kernel_params) + e->kernel_bytes + e->entry_frame +
           e->kernel_frame + functions_frame(e);
  if (e->nshared) entry += 64 + 2 * e->job_args;
  if (is_checked(e)) entry += e->p->in.n + 2 * e->p->out.n + dim_nsyms(e->p->dims) + 32;
  return 1024 + 16 * (entry + e->kernel_size) + e->entry_frame + e->kernel_frame + e->quick_frame;
}

u64 ram_bytes(const EmitFacts *f) {
  return f->arena_bytes + f->stack_bytes + f->input_bytes + f->output_bytes;
}

/* Stack, and with it RAM. clang without optimisation hands vectors that the flags do not name to
 * inlined functions through memory of their own: up to 1.8 times the bound was seen. */
static void put_stack_macros(Emit *e, Text *t, const char *up, const EmitFacts *facts) {
  bool more = e->pool || is_checked(e);
  EmitFacts f = *facts;
  for (u32 i = 0; i <= more; i++, f.stack_bytes *= 2) {
    if (more)
      text_puts(t, i ? "#else /* every inlined function has a frame */\n"
                     : "#if !defined(__clang__) || defined(__OPTIMIZE__)\n");
    text_fmt(t,
             "#define %s_STACK_BYTES %" PRIu64 "\n#define %s_RAM_BYTES %" PRIu64
             " /* arena, stack, inputs %" PRIu64 ", outputs %" PRIu64 " */\n",
             up, f.stack_bytes, up, ram_bytes(&f), f.input_bytes, f.output_bytes);
  }
  if (more) text_puts(t, "#endif\n");
}

/* Memory, work and target, as macros. */
static void put_fact_macros(Emit *e, Text *t, const char *up, const EmitFacts *facts) {
  const char *file = e->o->weights_file;
  if (!facts->arena_bytes) text_puts(t, "/* None is needed, but C has no arrays of 0 bytes. */\n");
  text_fmt(t,
           "#define %s_ARENA_BYTES %" PRIu64
           "\n#define %s_ARENA_ALIGN 64\n#define %s_WEIGHT_BYTES %" PRIu64 "\n",
           up, facts->arena_bytes ? facts->arena_bytes : 1, up, up, facts->weight_bytes);
  if (e->o->weights == WM_file) {
    text_fmt(
        t,
        "/* They come from a file where the C file is compiled, see %s_WEIGHTS_FILE there: ", up);
    if (file) put_comment(t, file, strlen(file));
    text_fmt(t, "%s%s */\n", file ? "" : e->o->name, file ? "" : ".bin");
  }
  put_stack_macros(e, t, up, facts);
  text_fmt(t, "#define %s_MULTIPLY_ADDS %.0f\n", up, e->o->macs);
  text_fmt(t, "#define %s_CODE_BYTES %" PRIu64 " /* roughly; a linker knows */\n", up,
           facts->code_bytes);
  if (e->p->threads > 1) text_fmt(t, "#define %s_THREADS %u\n", up, e->p->threads);
  text_fmt(t, "#define %s_SELFTEST %d\n", up, e->o->selftest ? 1 : 0);
  if (e->o->selftest)
    text_fmt(t, "#define %s_SELFTEST_BYTES %" PRIu64 "\n", up, facts->selftest_bytes);
  text_fmt(t, "#define %s_TARGET \"%s\"\n", up, e->o->march);
}

/* Arrays and sizes that the caller gives or gets, as macros. */
static void put_interface_macros(Made *f, Text *t, const char *up) {
  Emit *e = f->e;
  text_fmt(t, "#define %s_INPUTS %u\n#define %s_OUTPUTS %u\n", up, e->p->in.n, up, e->p->out.n);
  for (u32 i = 0; i < e->p->in.n; i++) put_value_macros(f, t, "INPUT", i, e->p->in.at[i]);
  for (u32 i = 0; i < e->p->out.n; i++) put_value_macros(f, t, "OUTPUT", i, e->p->out.at[i]);
  for (u32 k = 0; k < dim_nsyms(e->p->dims); k++) {
    const SymInfo *info = dim_syminfo(e->p->dims, k);
    if (info->kind != SY_input || k >= e->p->nsym_var || !e->p->sym_var[k]) continue;
    text_fmt(t, "#define %s_SIZE%u_NAME \"", up, k);
    put_comment(t, str_text(e->c, info->name), str_len(e->c, info->name));
    text_fmt(t, "\" /* the argument n%u */\n#define %s_SIZE%u_MAX %" PRId64 "\n", k, up, k,
             info->hi);
  }
}

/* The entry, what its statuses mean, and which body it is. */
static void put_run_declarations(Made *f, Text *t, const char *up) {
  Emit *e = f->e;
  const char *name = e->o->name;
  bool vectors = e->pool || is_gated(e);
  text_fmt(
      t,
      "/* 0: done. 1: arena is NULL or not aligned to %s_ARENA_ALIGN. 2: a size is out of its "
      "bounds.\n"
      "%s%s * Others: see %s_why. Inputs and outputs must not overlap each other or the arena. */\n"
      "int %s_run(void *arena%s);\n"
      "/* What a status means. */\nconst char *%s_why(int status);\n%s",
      up,
      e->o->weights == WM_pointer
          ? " * 4: weight_file is NULL, not aligned to 64 bytes, or belongs to another model.\n"
      : e->blob ? " * 4: the weights belong to another model.\n"
                : "",
      e->state
          ? " * 5: the state is full, of another size, or was never cleared; nothing has changed.\n"
          : "",
      name, name, text_cstr(&f->params), name,
      vectors ? "/* The body that runs, and whose bits it gives: ingot run --march knows the name. "
                "It ends in -loops where the compiler\n"
                " * has no such vectors and plain loops stand in for them. */\n"
              : "/* The body that runs. */\n");
  text_fmt(t, "const char *%s_target(void);\n", name);
}

static void put_selftest_declaration(Emit *e, Text *t, const char *up) {
  const char *name = e->o->name;
  if (e->o->selftest) {
    text_fmt(t,
             "/* Runs the model on built-in data and compares the bits of its outputs: 0 when they "
             "are as computed by ingot, 3\n"
             " * when not; otherwise the status of %s_run. memory: %s_SELFTEST_BYTES, aligned like "
             "the arena. */\n"
             "int %s_selftest(void *memory%s);\n",
             name, up, name, e->o->weights == WM_pointer ? ", const void *weight_file" : "");
    return;
  }
  text_puts(t, "/* No self-test: ");
  put_comment(t, e->o->no_selftest, strlen(e->o->no_selftest));
  text_puts(t, ". */\n");
}

void put_declarations(Made *f, Text *t, const EmitFacts *facts) {
  Emit *e = f->e;
  const char *up = text_cstr(&f->upper);
  text_fmt(t,
           "#ifndef INGOT_%s_H\n#define INGOT_%s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n",
           up, up);
  put_fact_macros(e, t, up, facts);
  put_interface_macros(f, t, up);
  text_puts(t, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  put_run_declarations(f, t, up);
  put_profile_declarations(e, t, up, facts->most_profile);
  put_thread_declarations(e, t);
  put_selftest_declaration(e, t, up);
  if (e->state)
    text_fmt(t,
             "/* Clears the state kept in the arena: before the first run, and to begin anew. */\n"
             "void %s_reset(void *arena);\n",
             e->o->name);
  text_puts(t, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- the entry ---- */

static void put_params(Made *f) {
  Emit *e = f->e;
  Prog *p = e->p;
  Text *t = &f->params;
  if (e->o->weights == WM_pointer) {
    text_puts(t, ", const void *weight_file");
    text_puts(&f->args, ", weight_file");
  }
  for (u32 s = 0; s < dim_nsyms(p->dims); s++) {
    if (dim_syminfo(p->dims, s)->kind != SY_input || s >= p->nsym_var || !p->sym_var[s]) continue;
    text_fmt(t, ", int64_t n%u", s);
    text_fmt(&f->args, ", n%u", s);
  }
  if (e->random) text_puts(t, ", uint64_t seed");
  if (e->random) text_puts(&f->args, ", seed");
  for (u32 i = 0; i < p->in.n; i++) {
    text_fmt(t, ", const %s *in%u", c_storage(prog_buf(p, p->in.at[i])->dt), i);
    text_fmt(&f->args, ", in%u", i);
  }
  for (u32 i = 0; i < p->out.n; i++) {
    text_fmt(t, ", %s *out%u", c_storage(prog_buf(p, p->out.at[i])->dt), i);
    text_fmt(&f->args, ", out%u", i);
    if (!e->open_out[i]) continue;
    text_fmt(t, ", int64_t *out%u_shape", i);
    text_fmt(&f->args, ", out%u_shape", i);
  }
  text_cstr(t);
}

/* Does the shape depend on a symbol that is set while running? */
static bool is_open(Emit *e, const Buf *b) {
  for (u32 i = 0; i < b->rank; i++)
    if (dim_is_data(e->p->dims, b->dim[i])) return true;
  return false;
}

/* Sizes are arguments also where only the extent of a buffer names them. */
static void declare_symbols(Emit *e) {
  Prog *p = e->p;
  bool *used = NEWS(&e->c->scratch, bool, dim_nsyms(p->dims) + 1);
  for (BufId b = 1; b < p->buf.n; b++)
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++) dims_use(p->dims, prog_buf(p, b)->dim[i], used);
  for (u32 s = 0; s < dim_nsyms(p->dims); s++) {
    if (used[s] && dim_syminfo(p->dims, s)->kind == SY_input) prog_sym_var(p, s);
    if (s >= p->nsym_var || !p->sym_var[s]) continue;
    const SymInfo *info = dim_syminfo(p->dims, s);
    Text t = text_new(&e->c->keep);
    text_fmt(&t, "n%u", s);
    e->var[p->sym_var[s]] = text_cstr(&t);
    if (info->kind == SY_data)
      put_line(e, "int64_t n%u = 0;", s);
    else
      put_line(e, "if (n%u < %" PRId64 " || n%u > %" PRId64 ") return 2;", s, info->lo, s,
               info->hi);
  }
}

/* The debug profile: an array for every buffer that would lie in the arena. */
static void declare_own(Emit *e, Text *t) {
  bool *seen = NEWS(&e->c->scratch, bool, e->p->buf.n);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    BufId root = prog_root(e->p, b);
    const Buf *r = prog_buf(e->p, root);
    if (!e->used[b] || seen[root] || (r->space != BS_temp && r->space != BS_local)) continue;
    seen[root] = true;
    u64 n = elements(e, root);
    if (r->space == BS_local && e->p->threads > 1) { /* as far apart as in the arena */
      Sym sym;
      if (!mem_bytes(e->p, root, &n, &sym)) mem_refuse(e->p, root, sym);
      n /= dtype_bytes(r->dt);
    }
    text_fmt(t, "  static %s own%u[%" PRIu64 "];\n", c_storage(r->dt), root, n ? n : 1);
  }
}

/* Pointers into the arena for the buffers that are used. */
static void declare_buffers(Emit *e, Text *t) {
  bool *seen = NEWS(&e->c->scratch, bool, e->pool ? e->pool->w.n : e->p->buf.n);
  if (e->o->debug) declare_own(e, t);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    /* views may name their roots, which come before them */
    if (e->blob && e->used[b] && x->space == BS_const && !x->alias) {
      if (seen[e->weight[b]]) continue;
      seen[e->weight[b]] = true;
      text_fmt(t, "  const %s *const w%u = (const %s *)(const void *)(weights + %" PRIu64 "); /* ",
               c_storage(x->dt), e->weight[b], c_storage(x->dt), e->place[b]);
      put_comment(t, str_text(e->c, x->name), str_len(e->c, x->name));
      text_puts(t, " */\n");
      continue;
    }
    if (!e->used[b] || !(prog_is_planned(x) || x->alias)) continue;
    BufId root = prog_root(e->p, b);
    const Buf *r = prog_buf(e->p, root);
    const char *type = c_storage(x->dt);
    if (r->space == BS_in || r->space == BS_const) {
      text_fmt(t, "  const %s *const t%u = ", type, b);
      Text *outer = e->t;
      e->t = t;
      put_buf_name(e, root);
      e->t = outer;
      text_puts(t, ";\n");
    } else if (r->space == BS_out) {
      text_fmt(t, "  %s *const t%u = ", type, b);
      Text *outer = e->t;
      e->t = t;
      put_buf_name(e, root);
      e->t = outer;
      text_puts(t, ";\n");
    } else {
      text_fmt(t, "  %s *const %c%u = (%s *)(void *)", type, x->space == BS_local ? 's' : 't', b,
               type);
      if (e->o->debug && r->space != BS_state)
        text_fmt(t, "own%u; /* ", root);
      else if (!e->p->arena_bytes)
        text_puts(t, "arena; /* "); /* of nothing but empty buffers */
      else
        text_fmt(t, "(a + %" PRIu64 "); /* ", r->offset);
      put_comment(t, str_text(e->c, x->name), str_len(e->c, x->name));
      text_puts(t, " */\n");
    }
  }
}

/* ---- state ---- */

static void put_reset(Emit *e, Text *t) {
  put_own(e, t, "\n%svoid %s_reset@(void *arena) {\n", linkage(e), e->o->name);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    if (x->space != BS_state) continue;
    text_fmt(t, "  memset((unsigned char *)arena + %" PRIu64 ", 0, %" PRIu64 "); /* ", x->offset,
             elements(e, b) * dtype_bytes(x->dt));
    put_comment(t, str_text(e->c, x->name), str_len(e->c, x->name));
    text_puts(t, " */\n");
  }
  text_puts(t, "}\n");
}

static void put_out_shapes(Emit *e) {
  for (u32 i = 0; i < e->p->out.n; i++) {
    Buf b = *prog_buf(e->p, e->p->out.at[i]);
    for (u32 k = 0; e->open_out[i] && k < b.rank; k++) {
      for (u32 j = 0; j < e->indent; j++) text_puts(e->t, "  ");
      text_fmt(e->t, "out%u_shape[%u] = ", i, k);
      put_dim(e, b.dim[k]);
      text_puts(e->t, ";\n");
    }
  }
}

void made_entry(Made *f, Blob *blob) {
  Emit *e = f->e;
  f->entry = text_new(&e->c->keep);
  Text code = text_new(&e->c->keep), head = text_new(&e->c->keep), buffers = text_new(&e->c->keep);
  e->indent = 1;
  e->t = &head;
  declare_symbols(e);
  e->t = &code;
  put_body(e, e->p->body, 0);
  e->entry_frame = e->b.frame;
  e->code_text += head.n;
  put_out_shapes(e);
  for (BufId b = 1; b < e->p->buf.n;
       b++) { /* weights that only views read are weights all the same */
    BufId root = prog_root(e->p, b);
    if (e->used[b] && prog_buf(e->p, root)->space == BS_const) e->used[root] = true;
  }
  if (e->blob) make_blob(e, blob);
  declare_buffers(e, &buffers);
  bool arena = e->p->arena_bytes != 0;
  if (arena) text_puts(&f->entry, "  unsigned char *const a = arena;\n");
  if (e->o->weights == WM_file)
    text_fmt(&f->entry, "  const unsigned char *const weights = %s_weights_file;\n", e->o->name);
  else if (e->blob)
    text_puts(&f->entry, "  const unsigned char *const weights = weight_file;\n");
  text_puts(&f->entry, arena ? "  if (!a || (uintptr_t)a % 64) return 1;\n" : "  (void)arena;\n");
  if (e->blob)
    text_fmt(&f->entry, "  if (%s!%s_weights_fit(weights)) return 4;\n",
             e->o->weights == WM_pointer ? "!weights || (uintptr_t)weights % 64 || " : "",
             e->o->name);
  text_put(&f->entry, buffers.at, buffers.n);
  for (u32 i = 0; i < e->p->in.n; i++)
    if (!e->used[e->p->in.at[i]]) text_fmt(&f->entry, "  (void)in%u;\n", i);
  for (u32 i = 0; i < e->p->out.n; i++)
    if (!e->used[e->p->out.at[i]]) text_fmt(&f->entry, "  (void)out%u;\n", i);
  text_put(&f->entry, head.at, head.n);
  put_profile_begin(e, &f->entry);
  text_put(&f->entry, code.at, code.n);
  text_puts(&f->entry, "  return 0;\n");
  put_params(f);
}

/* ---- the file ---- */

/* Which compilers take the vectors; those of a file of several bodies ask by themselves. */
static void put_flags(Emit *e, Text *t) {
  const Target *mine = e->o->target;
  if (!is_gated(e) || e->pool) return;
  text_fmt(t, " * Vectors for %s: gcc and clang for %s need no flags", mine->name,
           is_checked(e) ? "x86-64" : "that machine");
  if (e->dot4 && *mine->dot4) text_fmt(t, " but -m%s where the CPU has it", mine->dot4);
  text_puts(t, ".\n * Others get plain loops instead, several times slower, and say so unless "
               "INGOT_PORTABLE is defined.\n");
}

void put_banner(Emit *e, Text *t, const char *suffix) {
  text_fmt(t, "/* %s%s: generated by ingot %s from ", e->o->name, suffix, e->o->version);
  put_comment(t, e->o->source, strlen(e->o->source));
  text_fmt(t, "\n * model %016" PRIx64 ", options: ", e->o->hash);
  put_comment(t, e->o->options, strlen(e->o->options));
  text_puts(t, *e->o->options ? "\n" : "none\n");
  put_flags(e, t);
  text_puts(t, !e->nshared    ? " * C99; no heap, no I/O, no library but memory moves. */\n"
               : e->o->openmp ? " * C99 with __atomic functions and OpenMP; no heap, no I/O. */\n"
                              : " * C99 with __atomic functions and POSIX threads; no heap of its "
                                "own, no I/O. */\n");
}

/* A file of several bodies has functions that not all of them use: no warnings. */
void put_quiet(Text *t) {
  text_puts(t, "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
               "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
               "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n#endif\n\n");
}

Made made_begin(const Prog *given, const EmitOptions *o, Pool *pool, const char *suffix,
                bool above) {
  Ctx *c = given->c;
  Prog *p = prog_extend(given);
  mem_need_plan(p);
  prog_ready(p);
  Emit *e = NEW(&c->keep, Emit);
  *e = (Emit){.c = c,
              .p = p,
              .o = o,
              .pool = pool,
              .suffix = suffix,
              .above = above,
              .state = prog_has_state(p)};
  e->weight = NEWS(&c->keep, u32, p->buf.n);
  for (BufId b = 1; b < p->buf.n; b++)
    e->weight[b] =
        pool && prog_buf(p, b)->space == BS_const && prog_buf(p, b)->data ? pool_add(e, b) : b;
  e->body = text_new(&c->keep);
  split_begin(e);
  if (o->ticks)
    text_fmt(&e->body,
             "extern void (*%s_tick)(void *, unsigned), *%s_user;\n"
             "void (*%s_tick)(void *, unsigned), *%s_user;\n",
             o->name, o->name, o->name, o->name);
  e->kernels = map_new(&c->keep);
  e->why_at = map_new(&c->keep);
  e->profile_at = map_new(&c->keep);
  e->helpers = map_new(&c->keep);
  e->helper_text = text_new(&c->keep);
  e->parts = text_new(&c->keep);
  e->shares = text_new(&c->keep);
  for (u32 i = 0; i < 3; i++) e->hole[i] = prog_add_var(p, DT_f32, 0);
  e->b.a = &c->keep;
  u32 vars = p->var.n + dim_nsyms(p->dims) + 64; /* symbols become variables where they are used */
  e->var = NEWS(&c->keep, const char *, vars);
  e->nvars = vars;
  e->reg_body = NEWS(&c->keep, u32, p->buf.n);
  e->reg = NEWS(&c->keep, u32, p->buf.n);
  e->declared = NEWS(&c->keep, u32, vars);
  e->takes_var = NEWS(&c->keep, u32, vars);
  e->sets_var = NEWS(&c->keep, u32, vars);
  e->takes_buf = NEWS(&c->keep, u32, p->buf.n);
  e->written = NEWS(&c->keep, char, p->buf.n);
  e->param = NEWS(&c->keep, u32, p->buf.n);
  e->used = NEWS(&c->keep, bool, p->buf.n);
  e->open_out = NEWS(&c->keep, bool, p->out.n + 1);
  e->place = NEWS(&c->keep, u64, p->buf.n);
  e->blob = o->weights == WM_file || o->weights == WM_pointer;
  e->text_weights =
      o->weights == WM_text || (o->weights == WM_auto && weights_bytes(e) > o->literal_bytes);
  for (u32 i = 0; i < p->out.n; i++) e->open_out[i] = is_open(e, prog_buf(p, p->out.at[i]));
  Made f = {.e = e,
            .upper = text_new(&c->keep),
            .params = text_new(&c->keep),
            .args = text_new(&c->keep)};
  for (const char *s = o->name; *s; s++) {
    char up = (char)toupper((unsigned char)*s);
    text_put(&f.upper, &up, 1);
  }
  return f;
}

static u64 parameter_bytes(Emit *e, const BufId *at, u32 n) {
  u64 sum = 0;
  for (u32 i = 0; i < n; i++) sum += elements(e, at[i]) * dtype_bytes(prog_buf(e->p, at[i])->dt);
  return sum;
}

/* Of the text a compiler makes about a sixth; and what stands in every file. Half to twice of what
 * gcc makes of it at -O2 or -Os. */
static u64 code_bytes(const Made *f) {
  return 1024 + (f->e->code_text + f->e->helper_text.n) / 6;
}

EmitFacts made_facts(const Made *f) {
  Emit *e = f->e;
  return (EmitFacts){.arena_bytes = arena_bytes(e),
                     .selftest_bytes = e->o->selftest ? selftest_bytes(e) : 0,
                     .stack_bytes = stack_bound(e),
                     .weight_bytes = e->blob ? e->blob_bytes : weights_bytes(e),
                     .input_bytes = parameter_bytes(e, e->p->in.at, e->p->in.n),
                     .output_bytes = parameter_bytes(e, e->p->out.at, e->p->out.n),
                     .code_bytes = code_bytes(f),
                     .kernels = e->nkernels,
                     .profile = e->profile.at,
                     .nprofile = e->profile.n,
                     .most_profile = e->profile.n,
                     .feature = is_checked(e) && e->dot4 ? e->o->target->dot4 : ""};
}

EmitFacts emit_facts(const Prog *p, const EmitOptions *o) {
  Made f = made_begin(p, o, NULL, "", false);
  made_entry(&f, NULL);
  return made_facts(&f);
}

u64 emit_size(const Prog *p, const EmitOptions *o) {
  Made f = made_begin(p, o, NULL, "", true);
  made_entry(&f, NULL);
  return weights_bytes(f.e) + code_bytes(&f);
}

/* What a compiler must be told, and what it must not have been told. */
void put_prelude(Emit *e, Text *t) {
  text_puts(t,
            "\n#ifdef __cplusplus\n#error \"this file is C, not C++: compile it with a C compiler "
            "(gcc, not g++) and include its header\"\n#else\n"
            "#ifdef __FAST_MATH__\n#error \"this file needs IEEE arithmetic: compile it without "
            "-ffast-math\"\n#endif\n"
            "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#elif defined(__GNUC__)\n"
            "#pragma GCC optimize(\"fp-contract=off\", \"no-predictive-commoning\")\n#endif\n"
            "#include <float.h>\n#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0\n"
            "#error \"this file needs float arithmetic in float: compile it for SSE, not for "
            "x87\"\n#endif\n\n");
  if (e->state) text_puts(t, "#include <string.h>\n\n");
}

/* Ends the part that put_prelude opens, which compilers for C++ skip: they have said that it is C.
 */
void put_end(Text *t) {
  text_puts(t, "\n#endif\n");
}

void put_support(Emit *e, Text *t) {
  put_gate(e, t);
  put_region(e, t);
  put_runtime(e, t);
  put_math(e, t);
  put_sums(e, t);
  put_vectors(e, t);
}

/* Kernels, the entry, and whatever else of the interface depends on the program. */
void put_functions(Made *f, Text *t) {
  Emit *e = f->e;
  put_profile_macro(e, t, text_cstr(&f->upper));
  text_put(t, e->kernel_heads.at, e->kernel_heads.n);
  text_put(t, e->body.at, e->body.n);
  put_part_begin(e, t, 0);
  put_threads(e, t);
  put_own(e, t,
          e->nshared ? "\n%sint %s_body@(ig_job@ *job, void *arena%s) {\n"
                     : "\n%sint %s_run@(void *arena%s) {\n",
          e->nshared ? "static " : inner_linkage(e), e->o->name, text_cstr(&f->params));
  text_put(t, f->entry.at, f->entry.n);
  text_puts(t, "}\n");
  put_thread_entry(e, t, text_cstr(&f->params), text_cstr(&f->args));
  put_part_end(e, t);
  put_region_end(f, t);
  put_part_begin(e, t, 0);
  put_why(e, t);
  put_profile_names(e, t);
  if (!e->pool) put_target_name(e, t);
  if (e->state) put_reset(e, t);
  if (e->o->selftest) put_selftest(e, t, text_cstr(&f->upper));
  put_part_end(e, t);
}

EmitFacts emit_c(const Prog *p, const EmitOptions *o, Text *c_text, Text *h_text, Blob *blob) {
  Made f = made_begin(p, o, NULL, "", false);
  made_entry(&f, blob);
  EmitFacts facts = made_facts(&f);
  put_banner(f.e, h_text, ".h");
  put_declarations(&f, h_text, &facts);
  put_banner(f.e, c_text, ".c");
  put_declarations(&f, c_text, &facts);
  put_prelude(f.e, c_text);
  put_thread_headers(f.e, c_text);
  put_split(f.e, c_text, text_cstr(&f.upper));
  put_support(f.e, c_text);
  put_part_begin(f.e, c_text, 0);
  put_weights(f.e, c_text);
  put_part_end(f.e, c_text);
  put_functions(&f, c_text);
  put_part_begin(f.e, c_text, 0);
  if (o->caller) put_caller(f.e, c_text, &p, 1, facts.arena_bytes);
  put_part_end(f.e, c_text);
  put_end(c_text);
  return facts;
}
