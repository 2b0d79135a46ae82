/* cemit.c: a planned program as one C99 file and its header.
 *
 * In: a Prog whose buffers have offsets in the arena, and options. Out: the text of NAME.c and
 * NAME.h. The C file repeats the declarations of the header, so it compiles alone. Order: banner,
 * declarations, support functions, weights, kernels, entry. The output depends only on the
 * input. */
#include "back/c/c.h"
#include "ir/prog/prog_mem.h"
#include "ir/lexer.h"

#include <inttypes.h>
#include <string.h>

/* ---- declarations ---- */

static void put_shape(Emit *e, StrBuf *t, const Buf *b) {
  sb_puts(t, "{");
  for (u32 i = 0; i < b->rank; i++) {
    i64 lo, hi;
    dim_bounds(e->p->dims, b->dim[i], &lo, &hi);
    sb_fmt(t, "%s%" PRId64, i ? ", " : "", hi);
  }
  sb_puts(t, b->rank ? "}" : "1}");
}

u64 buf_elements(Emit *e, BufId id) {
  const Buf *b = prog_buf(e->p, id);
  u64 n, bytes;
  Sym sym;
  i64 max[MAX_RANK], lo;
  if (!mem_stride(e->p, id, &bytes, &sym)) mem_refuse(e->p, id, sym);
  for (u32 i = 0; i < b->rank; i++) dim_bounds(e->p->dims, b->dim[i], &lo, &max[i]);
  return bytes && shape_count(max, b->rank, &n) ? n : 0;
}

u64 buf_bytes(Emit *e, BufId b) {
  return buf_elements(e, b) * dtype_bytes(prog_buf(e->p, b)->dt);
}

/* Scale and zero point of a quantized array. */
static void put_scale_macros(Emit *e, StrBuf *t, const char *what, u32 i, const QuantParams *s) {
  if (!s) return;
  put_template(e, t, "#define ${ENTRY}_%s%u_SCALE ", what, i);
  put_float(t, false, s->scale);
  put_template(e, t, " /* x stands for (x - ${ENTRY}_%s%u_ZERO) * ${ENTRY}_%s%u_SCALE */\n", what,
               i, what, i);
  put_template(e, t, "#define ${ENTRY}_%s%u_ZERO ", what, i);
  sb_fmt(t, s->zero < 0 ? "(%" PRId64 ")\n" : "%" PRId64 "\n", s->zero);
}

static void put_value_macros(Emit *e, StrBuf *t, const char *what, u32 i, BufId id) {
  const Buf *b = prog_buf(e->p, id);
  Str name = c_short_text(e->c, b->name);
  put_template(e, t, "#define ${ENTRY}_%s%u_NAME ", what, i);
  emit_string(t, str_text(e->c, name), str_len(e->c, name));
  put_template(e, t,
               "\n#define ${ENTRY}_%s%u_TYPE \"%s\"\n#define ${ENTRY}_%s%u_RANK %u\n#define "
               "${ENTRY}_%s%u_SHAPE ",
               what, i, dtype_info[b->dt].name, what, i, b->rank, what, i);
  put_shape(e, t, b);
  put_template(e, t, "\n#define ${ENTRY}_%s%u_ELEMENTS %" PRIu64 "\n", what, i,
               buf_elements(e, id));
  put_scale_macros(e, t, what, i, scale_find(e->given->scale, b->name, *what == 'O'));
}

const char *c_linkage(const Emit *e) {
  return e->variant->dispatched ? "static " : "";
}

/* All that NAME_run needs: buffers, and what threads share. */
u64 arena_bytes(const Emit *e) {
  return e->p->arena_bytes + pool_bytes(e);
}

/* Does the entry have a pointer to it? */
static bool is_pointed_at(const Emit *e, BufId b) {
  const Buf *x = prog_buf(e->p, b);
  return e->by_buf.used[b] && (x->space == BS_const && !x->alias ? e->weights.blob : true);
}

/* gcc vectorizes plain loops over exp and similar functions at -O3. For AVX-512 that took up to 450
 * bytes beyond the bound. */
static u64 functions_frame(const Emit *e) {
  enum { SPILLED = 640 };
  for (u32 op = 0; op < OP_SCALARS; op++)
    for (u32 k = 0; k < MM_COUNT; k++)
      if (e->variant->math[op][k]) return SPILLED;
  return 0;
}

/* Upper bound of the stack. With vectors, every scalar and pointer of the entry and of the largest
 * kernel and every operation counts as a 16-byte slot, as if the compiler kept each result. All
 * vectors and the deepest chain of support functions are added. For plain loops see stack_slot() in
 * ckernel.c; pointers take 8 bytes, at calls twice. The constants cover support functions and saved
 * registers. */
static u64 stack_bound(Emit *e) {
  const FrameSizes *z = &e->sizes;
  u64 entry = e->p->in.n + e->p->out.n + dim_nsyms(e->p->dims) + 16;
  u64 frames = z->entry_frame + z->kernel_frame;
  for (BufId b = 1; b < e->p->buf.n; b++) entry += is_pointed_at(e, b);
  if (!e->variant->vec.twice && !e->variant->shared_kernels.n)
    return 512 + 8 * (entry + z->max_params) + z->max_bytes + frames + functions_frame(e);
  if (e->variant->shared_kernels.n) entry += 64 + 2 * e->variant->shared_kernels.args;
  if (checks_cpu(e)) entry += e->p->in.n + 2 * e->p->out.n + dim_nsyms(e->p->dims) + 32;
  /* a quarter more: clang -O0 also keeps masks and copies of vectors */
  return 1024 + 16 * (entry + z->max_values) + frames + frames / 4 + e->variant->vec.quick_frame;
}

u64 ram_bytes(const EmitFacts *f) {
  return f->arena_bytes + f->stack_bytes + f->input_bytes + f->output_bytes;
}

/* Stack and total RAM. clang -O0 passes vectors that the flags do not enable to inlined functions
 * through memory; up to 1.8 times the bound was measured. */
static void put_stack_macros(Emit *e, StrBuf *t, const EmitFacts *facts) {
  bool more = e->variant->dispatched || checks_cpu(e);
  EmitFacts f = *facts;
  for (u32 i = 0; i <= more; i++, f.stack_bytes *= 2) {
    if (more)
      sb_puts(t, i ? "#else /* clang -O0: every inlined function has a frame */\n"
                   : "#if !defined(__clang__) || defined(__OPTIMIZE__)\n");
    put_template(e, t,
                 "#define ${NAME}_STACK_BYTES %" PRIu64 "\n#define ${NAME}_RAM_BYTES %" PRIu64
                 " /* arena, stack, inputs %" PRIu64 ", outputs %" PRIu64 "%s */\n",
                 f.stack_bytes, ram_bytes(&f), f.input_bytes, f.output_bytes,
                 e->next ? " (maximum over the entries)" : "");
  }
  if (more) sb_puts(t, "#endif\n");
}

/* Macros for memory, work and target. */
static void put_fact_macros(Emit *e, StrBuf *t, const EmitFacts *facts) {
  const char *file = e->o->weights_file;
  if (!facts->arena_bytes)
    sb_puts(t, "/* The model needs no arena; 64 since C has no arrays of 0 bytes. */\n");
  put_template(e, t,
               "#define ${NAME}_ARENA_BYTES %" PRIu64
               "\n#define ${NAME}_ARENA_ALIGN 64\n#define ${NAME}_WEIGHT_BYTES %" PRIu64 "\n",
               facts->arena_bytes ? facts->arena_bytes : 1, facts->weight_bytes);
  if (e->o->weights == WM_file && !e->o->linked) {
    put_template(
        e, t, "/* Read from a file when the C file is compiled, see ${NAME}_WEIGHTS_FILE there: ");
    if (file) put_comment(t, file, strlen(file));
    put_template(e, t, file ? " */\n" : "${name}.bin */\n");
  }
  put_stack_macros(e, t, facts);
  for (Emit *x = e->variant->first; x; x = x->next)
    put_template(x, t, "#define ${ENTRY}_MULTIPLY_ADDS %.0f\n", x->given->macs);
  put_template(e, t, "#define ${NAME}_CODE_BYTES %" PRIu64 " /* estimate */\n", facts->code_bytes);
  if (e->p->threads > 1) put_template(e, t, "#define ${NAME}_THREADS %u\n", e->p->threads);
  put_template(e, t, "#define ${NAME}_SELFTEST %d\n", e->given->selftest ? 1 : 0);
  if (e->given->selftest)
    put_template(e, t, "#define ${NAME}_SELFTEST_BYTES %" PRIu64 "\n", facts->selftest_bytes);
  put_template(e, t, "#define ${NAME}_TARGET \"%s\"\n", e->o->march);
}

bool is_argument(const Emit *e, Sym s) {
  const Prog *p = e->p;
  return dim_syminfo(p->dims, s)->kind == SY_input && s < p->nsym_var && p->sym_var[s];
}

/* Macros for arrays and sizes of the caller. */
static void put_interface_macros(Emit *e, StrBuf *t) {
  put_template(e, t, "#define ${ENTRY}_INPUTS %u\n#define ${ENTRY}_OUTPUTS %u\n", e->p->in.n,
               e->p->out.n);
  for (u32 i = 0; i < e->p->in.n; i++) put_value_macros(e, t, "INPUT", i, e->p->in.at[i]);
  for (u32 i = 0; i < e->p->out.n; i++) put_value_macros(e, t, "OUTPUT", i, e->p->out.at[i]);
  for (Sym k = 0; k < dim_nsyms(e->p->dims); k++) {
    const SymInfo *info = dim_syminfo(e->p->dims, k);
    if (!is_argument(e, k)) continue;
    put_template(e, t, "#define ${ENTRY}_SIZE%u_NAME \"", k);
    put_comment(t, str_text(e->c, info->name), str_len(e->c, info->name));
    put_template(e, t, "\"\n#define ${ENTRY}_SIZE%u_MAX %" PRId64 "\n", k, info->hi);
  }
  put_named_macros(e, t);
}

/* Does any program of the variant have state? */
static bool any_state(const Emit *e) {
  for (const Emit *x = e->variant->first; x; x = x->next)
    if (x->state_init.state) return true;
  return false;
}

/* Does a run check the state before it uses it? Only kept sizes can be checked; arrays of fixed
 * size may hold anything. */
static bool checks_state(const Emit *x) {
  for (StmtId i = 1; x->state_init.state && i < x->p->stmt.n; i++) {
    const Stmt *s = prog_stmt(x->p, i);
    if (s->kind == ST_require && ex_reads_state(x->p, s->a)) return true;
  }
  return false;
}

/* The entries, NAME_why and NAME_target. */
static void put_run_declarations(Emit *e, StrBuf *t) {
  bool vectors = e->variant->dispatched || has_vector_guard(e);
  put_statuses(e, t);
  for (Emit *x = e->variant->first; x; x = x->next) put_prototype(x, t);
  put_template(e, t,
               "/* The text of a status. */\nconst char *${name}_why(int status);\n%sconst char "
               "*${name}_target(void);\n",
               vectors ? "/* Name of the variant that runs, as accepted by ingot run --march. It "
                         "ends in -loops if the compiler has\n"
                         " * no such vectors and plain loops replace them. */\n"
                       : "/* Name of the target. */\n");
}

static void put_selftest_declaration(Emit *e, StrBuf *t) {
  if (e->given->selftest) {
    put_template(
        e, t,
        "/* Runs the model on built-in data and compares the output bits with those of ingot: "
        "0 if equal, 3 if\n"
        " * not; otherwise the status of ${entry}_run%s. memory: ${NAME}_SELFTEST_BYTES, "
        "aligned like the arena. */\n"
        "int ${name}_selftest(void *memory%s);\n",
        e->next ? ", or of another entry" : "",
        e->o->weights == WM_pointer ? ", const void *weight_file" : "");
    return;
  }
  sb_puts(t, "/* No self-test: ");
  put_comment(t, e->o->no_selftest, strlen(e->o->no_selftest));
  sb_puts(t, ". */\n");
}

void put_declarations(Emit *e, StrBuf *t, const EmitFacts *facts) {
  put_template(e, t,
               "#ifndef INGOT_${NAME}_H\n#define INGOT_${NAME}_H\n\n#include <stddef.h>\n#include "
               "<stdint.h>\n\n");
  put_fact_macros(e, t, facts);
  for (Emit *x = e->variant->first; x; x = x->next) put_interface_macros(x, t);
  if (e->o->more) sb_puts(t, e->o->more->macros);
  sb_puts(t, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
  put_run_declarations(e, t);
  put_profile_declarations(e, t, facts->max_profile);
  put_thread_declarations(e, t);
  put_selftest_declaration(e, t);
  for (Emit *x = e->variant->first; x; x = x->next)
    if (x->state_init.state)
      put_template(
          x, t,
          "/* %s the state in the arena; call it before the first run and to start over.%s */\n"
          "void ${entry}_reset(void *arena);\n",
          x->state_init.initial ? "Initializes" : "Clears",
          checks_state(x) ? "" : " A run without it\n * uses whatever the arena contains.");
  if (e->o->more) sb_puts(t, e->o->more->declarations);
  sb_puts(t, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- the entry ---- */

void put_run_args(Emit *e, StrBuf *t, const ArgFormats *f) {
  for (Sym s = 0; s < dim_nsyms(e->p->dims); s++) {
    if (!is_argument(e, s)) continue;
    if (f->size)
      sb_fmt(t, f->size, s);
    else
      sb_fmt(t, ", %" PRId64, e->given->selftest->size[s]);
  }
  if (e->random) sb_puts(t, f->seed);
  for (u32 i = 0; i < e->p->in.n; i++)
    sb_fmt(t, f->in, i, c_storage(prog_buf(e->p, e->p->in.at[i])->dt));
  for (u32 i = 0; i < e->p->out.n; i++) {
    sb_fmt(t, f->out, i, c_storage(prog_buf(e->p, e->p->out.at[i])->dt));
    if (e->open_out[i]) sb_fmt(t, f->shape, i);
  }
}

static void put_params(Emit *e) {
  EntryCode *n = &e->entry;
  if (e->o->weights == WM_pointer) {
    sb_puts(&n->params, ", const void *weight_file");
    sb_puts(&n->args, ", weight_file");
  }
  put_run_args(e, &n->params,
               &(ArgFormats){", int64_t n%u", ", uint64_t seed", ", const %2$s *in%1$u",
                             ", %2$s *out%1$u", ", int64_t *out%u_shape"});
  put_run_args(e, &n->args, &(ArgFormats){", n%u", ", seed", ", in%u", ", out%u", ", out%u_shape"});
  sb_cstr(&n->params);
}

/* Does the shape depend on data? */
static bool is_open(Emit *e, const Buf *b) {
  for (u32 i = 0; i < b->rank; i++)
    if (dim_is_data(e->p->dims, b->dim[i])) return true;
  return false;
}

/* Sizes are arguments even if only the extent of a buffer names them. */
static void declare_symbols(Emit *e) {
  Prog *p = e->p;
  bool *used = NEWS(&e->c->scratch, bool, dim_nsyms(p->dims) + 1);
  for (BufId b = 1; b < p->buf.n; b++)
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++)
      dims_mark_used(p->dims, prog_buf(p, b)->dim[i], used);
  for (u32 s = 0; s < dim_nsyms(p->dims); s++) {
    if (used[s] && dim_syminfo(p->dims, s)->kind == SY_input) prog_sym_var(p, s);
    if (s >= p->nsym_var || !p->sym_var[s]) continue;
    const SymInfo *info = dim_syminfo(p->dims, s);
    e->var.at[p->sym_var[s]] = str_text(e->c, str_fmt(e->c, "n%u", s));
    if (info->kind == SY_data)
      put_line(e, "int64_t n%u = 0;", s);
    else
      put_line(e, "if (n%u < %" PRId64 " || n%u > %" PRId64 ") return 2;", s, info->lo, s,
               info->hi);
  }
}

/* Debug mode: one static array per buffer of the arena. */
static void declare_debug_arrays(Emit *e, StrBuf *t) {
  bool *seen = NEWS(&e->c->scratch, bool, e->p->buf.n);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    BufId root = prog_root(e->p, b);
    const Buf *r = prog_buf(e->p, root);
    if (!e->by_buf.used[b] || seen[root] || (r->space != BS_temp && r->space != BS_local)) continue;
    seen[root] = true;
    u64 n = buf_elements(e, root);
    if (r->space == BS_local && e->p->threads > 1) { /* per-thread stride as in the arena */
      Sym sym;
      if (!mem_bytes(e->p, root, &n, &sym)) mem_refuse(e->p, root, sym);
      n /= dtype_bytes(r->dt);
    }
    sb_fmt(t, "  static %s own%u[%" PRIu64 "];\n", c_storage(r->dt), root, n ? n : 1);
  }
}

/* Does the entry declare a pointer to it: in the arena, in the weights file, or a view? */
static bool is_declared(const Emit *e, BufId b) {
  const Buf *x = prog_buf(e->p, b);
  return e->by_buf.used[b] &&
         (prog_is_planned(x) || x->alias || (e->weights.blob && x->space == BS_const));
}

/* Declares pointers; a view may name its root, which is declared before it. */
static void declare_buffers(Emit *e, StrBuf *t) {
  const WeightForm *w = &e->weights;
  bool *seen = NEWS(&e->c->scratch, bool, w->pool ? w->pool->w.n : e->p->buf.n);
  if (e->o->debug) declare_debug_arrays(e, t);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    BufId root = prog_root(e->p, b);
    const Buf *r = prog_buf(e->p, root);
    const char *type = c_storage(x->dt);
    bool weight = x->space == BS_const && !x->alias;
    bool fixed = r->space == BS_in || r->space == BS_const;
    if (!is_declared(e, b) || (weight && seen[w->number[b]])) continue;
    sb_fmt(t, "  %s%s *const ", fixed ? "const " : "", type);
    if (weight) {
      seen[w->number[b]] = true;
      sb_fmt(t, "w%u = (const %s *)(const void *)(weights + %" PRIu64 "); ", w->number[b], type,
             w->place[b]);
    } else if (fixed || r->space == BS_out) {
      StrBuf *outer = e->t;
      sb_fmt(t, "t%u = ", b);
      e->t = t;
      put_buf_name(e, root);
      e->t = outer;
      sb_puts(t, ";\n");
      continue;
    } else {
      sb_fmt(t, "%c%u = (%s *)(void *)", x->space == BS_local ? 's' : 't', b, type);
      if (e->o->debug && r->space != BS_state)
        sb_fmt(t, "own%u; ", root);
      else if (!e->p->arena_bytes)
        sb_puts(t, "arena; "); /* only empty buffers */
      else
        sb_fmt(t, "(a + %" PRIu64 "); ", r->offset);
    }
    put_trailing_comment(e, t, x->name);
  }
}

void put_out_shapes(Emit *e, const char *form, bool open) {
  for (u32 i = 0; i < e->p->out.n; i++) {
    Buf b = *prog_buf(e->p, e->p->out.at[i]);
    for (u32 k = 0; e->open_out[i] == open && k < b.rank; k++) {
      if (!open && dim_is_const(b.dim[k])) continue;
      begin_line(e);
      sb_fmt(e->t, form, i, k);
      put_dim(e, b.dim[k]);
      sb_puts(e->t, ";\n");
    }
  }
}

/* Checks of arena, weights pointer and weights header. */
static void put_entry_checks(Emit *e, StrBuf *t) {
  bool arena = e->p->arena_bytes != 0, given = e->o->weights == WM_pointer;
  if (arena) sb_puts(t, "  unsigned char *const a = arena;\n");
  if (e->weights.blob)
    put_template(e, t,
                 given ? "  const unsigned char *const weights = weight_file;\n"
                       : "  const unsigned char *const weights = ${name}_weights_file;\n");
  sb_puts(t, arena ? "  if (!a || (uintptr_t)a % 64) return 1;\n" : "  (void)arena;\n");
  if (e->weights.blob)
    put_template(e, t, "  if (%s!${name}_weights_fit(weights)) return 4;\n",
                 given ? "!weights || (uintptr_t)weights % 64 || " : "");
}

static void put_entry(Emit *e, Blob *blob) {
  StrBuf *t = &e->entry.text, code = sb_new(&e->c->keep), head = sb_new(&e->c->keep);
  e->indent = 1;
  e->t = &head;
  declare_symbols(e);
  e->t = &code;
  put_body(e, e->p->body, 0);
  e->sizes.entry_frame = e->b.frame;
  e->sizes.code += head.n;
  put_out_shapes(e, "out%u_shape[%u] = ", true);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    BufId root = prog_root(e->p, b); /* weights that only views read also count as used */
    if (e->by_buf.used[b] && prog_buf(e->p, root)->space == BS_const) e->by_buf.used[root] = true;
  }
  if (e->weights.blob) make_blob(e, blob);
  put_entry_checks(e, t);
  declare_buffers(e, t);
  for (u32 i = 0; i < e->p->in.n; i++)
    if (!e->by_buf.used[e->p->in.at[i]]) sb_fmt(t, "  (void)in%u;\n", i);
  for (u32 i = 0; i < e->p->out.n; i++)
    if (!e->by_buf.used[e->p->out.at[i]]) sb_fmt(t, "  (void)out%u;\n", i);
  sb_put(t, head.at, head.n);
  put_profile_begin(e, t);
  sb_put(t, code.at, code.n);
  sb_puts(t, "  return 0;\n");
  put_params(e);
}

/* ---- the file ---- */

/* Comment on the compilers that support the vectors; variants of one file select by themselves. */
static void put_flags(Emit *e, StrBuf *t) {
  const Target *mine = e->o->target;
  if (!has_vector_guard(e) || e->variant->dispatched) return;
  sb_fmt(t, " * Vectors for %s: gcc and clang for %s need no flags", mine->name,
         checks_cpu(e) ? "x86-64" : "that machine");
  if (e->variant->vec.dot_i8x4 && *mine->dot_i8x4)
    sb_fmt(t, " but -m%s where the CPU has it", mine->dot_i8x4);
  sb_puts(t, ".\n * Others get plain loops instead, several times slower, and say so unless "
             "INGOT_PORTABLE is defined.\n");
}

void put_banner(Emit *e, StrBuf *t, const char *suffix) {
  put_template(e, t, "/* ${name}%s: generated by ingot %s from ", suffix, e->o->version);
  put_comment(t, e->o->source, strlen(e->o->source));
  sb_fmt(t, "\n * model %016" PRIx64 ", options: ", e->o->hash);
  put_comment(t, e->o->options, strlen(e->o->options));
  sb_puts(t, *e->o->options ? "\n" : "none\n");
  put_flags(e, t);
  sb_puts(t, !e->variant->shared_kernels.n
                 ? " * C99; no heap, no I/O, no library but memory moves. */\n"
             : e->o->openmp ? " * C99 with __atomic functions and OpenMP; no heap, no I/O. */\n"
                            : " * C99 with __atomic functions and POSIX threads; no heap of its "
                              "own, no I/O. */\n");
}

/* Not every variant uses all functions of the file: disable warnings. */
void put_warning_pragmas(StrBuf *t) {
  sb_puts(t, "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
             "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
             "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n#endif\n\n");
}

/* Tables by variable and by buffer. */
static void begin_tables(Emit *e) {
  Arena *a = &e->c->keep;
  Prog *p = e->p;
  for (u32 i = 0; i < 3; i++) e->hole[i] = prog_add_var(p, DT_f32, 0);
  u32 vars = p->var.n + dim_nsyms(p->dims) + 64; /* symbols become variables where they are used */
  e->var.at = NEWS(a, const char *, vars);
  e->var.n = vars;
  e->by_buf.reg_body = NEWS(a, u32, p->buf.n);
  e->by_buf.reg = NEWS(a, u32, p->buf.n);
  e->by_buf.written = NEWS(a, char, p->buf.n);
  e->by_buf.param = NEWS(a, u32, p->buf.n);
  e->by_buf.used = NEWS(a, bool, p->buf.n);
  e->open_out = NEWS(a, bool, p->out.n + 1);
  for (u32 i = 0; i < p->out.n; i++) e->open_out[i] = is_open(e, prog_buf(p, p->out.at[i]));
  e->by_buf.used[e->state_init.initial] = e->state_init.initial != 0;
}

CpuVariant *variant_begin(Ctx *c) {
  CpuVariant *all = NEW(&c->keep, CpuVariant);
  StrBuf none = sb_new(&c->keep);
  *all = (CpuVariant){.kernels = {.at = map_new(&c->keep), .text = none, .heads = none},
                      .why = {.at = map_new(&c->keep)},
                      .profile = {.at = map_new(&c->keep)},
                      .shared_kernels = {.cases = none, .shares = none},
                      .vec = {.written = map_new(&c->keep), .text = none}};
  return all;
}

static const char *caps_of(Ctx *c, const char *name) {
  StrBuf t = sb_new(&c->keep);
  sb_upper(&t, name);
  return sb_cstr(&t);
}

static Emit *emit_new(CpuVariant *all, const EmitEntry *given, const EmitOptions *o,
                      const char *suffix) {
  Ctx *c = given->p->c;
  Prog *p = prog_extend(given->p);
  StrBuf none = sb_new(&c->keep);
  const char *mine = o->name;
  if (given->name) mine = str_text(c, str_fmt(c, "%s_%s", o->name, given->name));
  mem_need_plan(p);
  prog_check_kernels(p);
  Emit *e = NEW(&c->keep, Emit);
  *e = (Emit){.c = c,
              .variant = all,
              .p = p,
              .o = o,
              .given = given,
              .vars = {[TV_sfx] = {"sfx", suffix},
                       [TV_name] = {"name", o->name},
                       [TV_NAME] = {"NAME", caps_of(c, o->name)},
                       [TV_entry] = {"entry", mine},
                       [TV_ENTRY] = {"ENTRY", caps_of(c, mine)}},
              .state_init.state = has_own_state(p),
              .index = "ptrdiff_t",
              .entry = {none, none, none}};
  e->b.a = &c->keep;
  Emit **at = &all->first;
  while (*at) at = &(*at)->next;
  *at = e;
  all->n++;
  return e;
}

Emit *emit_kernels_begin(CpuVariant *all, const EmitEntry *given, const EmitOptions *o) {
  Emit *e = emit_new(all, given, o, "");
  e->joins = NEWS(&e->c->keep, bool, e->p->buf.n);
  e->cuda = true;
  begin_tables(e);
  return e;
}

Emit *emit_begin(CpuVariant *all, const EmitEntry *given, const EmitOptions *o, WeightPool *pool,
                 const char *suffix, Blob *blob) {
  Emit *e = emit_new(all, given, o, suffix);
  begin_state(e);
  begin_tables(e);
  begin_weights(e, pool);
  if (all->first == e) split_begin(e);
  if (o->ticks)
    put_template(e, &e->variant->kernels.text,
                 "extern void (*${name}_tick)(void *, unsigned), *${name}_user;\n"
                 "void (*${name}_tick)(void *, unsigned), *${name}_user;\n");
  put_entry(e, blob);
  return e;
}

/* Estimate: a compiler emits about one byte per six characters, plus a constant per file. Within a
 * factor of two of gcc -O2 and -Os. */
static u64 code_bytes(const CpuVariant *variant) {
  u64 text = variant->vec.text.n;
  for (const Emit *e = variant->first; e; e = e->next) text += e->sizes.code;
  return 1024 + text / 6;
}

/* Bytes: the larger of a run and the extra functions. */
static u64 stack_with_extra(const EmitOptions *o, u64 run) {
  if (!o->more) return run;
  run += o->more->stack_around;
  return run > o->more->stack_alone ? run : o->more->stack_alone;
}

u64 table_bytes(const EmitOptions *o) {
  return o->more ? o->more->ntable : 0;
}

static void add_entry_facts(EmitFacts *f, Emit *e) {
  u64 in = 0, out = 0, stack = stack_with_extra(e->o, stack_bound(e));
  u64 test = e->given->selftest ? selftest_bytes(e) : 0;
  for (u32 i = 0; i < e->p->in.n; i++) in += buf_bytes(e, e->p->in.at[i]);
  for (u32 i = 0; i < e->p->out.n; i++) out += buf_bytes(e, e->p->out.at[i]);
  if (in + out >= f->input_bytes + f->output_bytes) {
    f->input_bytes = in;
    f->output_bytes = out;
  }
  if (stack > f->stack_bytes) f->stack_bytes = stack;
  if (test > f->selftest_bytes) f->selftest_bytes = test;
}

EmitFacts facts_of(const CpuVariant *variant) {
  const Emit *e = variant->first;
  EmitFacts f = {.arena_bytes = arena_bytes(e),
                 .weight_bytes = e->weights.blob ? e->weights.bytes
                                                 : prog_stored_bytes(e->p) + table_bytes(e->o),
                 .code_bytes = code_bytes(variant),
                 .kernels = variant->kernels.word.n,
                 .profile = variant->profile.kernel.at,
                 .nprofile = variant->profile.kernel.n,
                 .max_profile = variant->profile.kernel.n,
                 .feature = checks_cpu(e) && variant->vec.dot_i8x4 ? e->o->target->dot_i8x4 : ""};
  for (Emit *x = variant->first; x; x = x->next) add_entry_facts(&f, x);
  return f;
}

EmitFacts emit_facts(const Prog *p, const EmitOptions *o) {
  EmitEntry only = {.p = p};
  CpuVariant *variant = variant_begin(p->c);
  emit_begin(variant, &only, o, NULL, "", NULL);
  return facts_of(variant);
}

u64 emit_size(const Prog *p, const EmitOptions *o) {
  EmitEntry only = {.p = p};
  CpuVariant *variant = variant_begin(p->c);
  variant->vectors_only = true;
  emit_begin(variant, &only, o, NULL, "", NULL);
  return prog_stored_bytes(p) + code_bytes(variant);
}

/* Checks of the compiler's mode, and pragmas. */
void put_prelude(Emit *e, StrBuf *t) {
  sb_puts(t, "\n#ifdef __cplusplus\n#error \"this file is C, not C++: compile it with a C compiler "
             "(gcc, not g++) and include its header\"\n#else\n"
             "#ifdef __FAST_MATH__\n#error \"this file needs IEEE arithmetic: compile it without "
             "-ffast-math\"\n#endif\n"
             "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#elif defined(__GNUC__)\n"
             "#pragma GCC optimize(\"fp-contract=off\", \"no-predictive-commoning\")\n#endif\n"
             "#include <float.h>\n#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0\n"
             "#error \"this file needs float arithmetic in float: compile it for SSE, not for "
             "x87\"\n#endif\n\n");
  if (any_state(e)) sb_puts(t, "#include <string.h>\n\n");
}

void put_support(Emit *e, StrBuf *t) {
  put_vector_guard(e, t);
  put_target_region(e, t);
  put_runtime(e, t);
  put_math(e, t);
  put_fma_fallback(e, t);
  put_vectors(e, t);
}

static void put_run(Emit *e, StrBuf *t) {
  const char *params = sb_cstr(&e->entry.params);
  bool shared = e->variant->shared_kernels.n;
  if (shared)
    put_template(e, t, "\nstatic int ${entry}_body${sfx}(ig_job${sfx} *job, void *arena%s) {\n",
                 params);
  else
    put_template(e, t, "\n%sint ${entry}_run${sfx}(void *arena%s) {\n", inner_linkage(e), params);
  if (shared && e->variant->n > 1)
    sb_puts(t, "  (void)job;\n"); /* it may have no parallel kernel */
  sb_put(t, e->entry.text.at, e->entry.text.n);
  sb_puts(t, "}\n");
  put_thread_entry(e, t);
}

/* Kernels, entries, and everything else of the interface that depends on the programs. */
void put_functions(Emit *e, StrBuf *t) {
  const KernelCode *k = &e->variant->kernels;
  put_profile_macro(e, t);
  sb_put(t, k->heads.at, k->heads.n);
  sb_put(t, k->text.at, k->text.n);
  put_part_begin(e, t, 0);
  put_threads(e, t);
  for (Emit *x = e->variant->first; x; x = x->next) put_run(x, t);
  put_thread_start(e, t);
  put_part_end(e, t);
  put_target_region_end(e, t);
  put_part_begin(e, t, 0);
  put_why(e, t);
  put_profile_names(e, t);
  if (!e->variant->dispatched) put_target_name(e, t);
  for (Emit *x = e->variant->first; x; x = x->next)
    if (x->state_init.state) put_reset(x, t);
  if (e->given->selftest) put_selftest(e, t);
  put_part_end(e, t);
}
