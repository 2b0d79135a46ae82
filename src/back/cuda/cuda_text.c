/* cuda_text.c: the kernels of a program as CUDA C.
 *
 * In: a planned program lowered for a warp. Out: one text with every kernel, and how each is
 * called. Kernels with equal text share a function. Statements and expressions are written by
 * back/c, whose text for a scalar is also the text for a lane; words.def has what differs from C.
 */
#include "back/c/c.h"
#include "back/cuda/cuda.h"
#include "ir/prog/prog_mem.h"

#include <inttypes.h>
#include <string.h>

static const struct {
  const char *name, *text;
} words[] = {
#define WORD(name, text) {#name, text},
#include "back/cuda/words.def"
#undef WORD
};
enum { WORDS = sizeof words / sizeof *words };

/* ---- support functions ---- */

static bool begins(const char *line, const char *with) {
  return !strncmp(line, with, strlen(with));
}

/* Appends functions written for C. The host computes with those of integers too. */
static void put_functions_of_c(StrBuf *to, const char *text) {
  for (const char *line = text, *end; *line; line = end) {
    end = strchr(line, '\n');
    end = end ? end + 1 : line + strlen(line);
    if (begins(line, "static ")) {
      line += strlen("static ");
      bool is_int =
          begins(line, "int64_t") || begins(line, "uint64_t") || begins(line, "ptrdiff_t");
      sb_puts(to, is_int ? "IG_INT " : "IG_FN ");
    }
    sb_put(to, line, (size_t)(end - line));
  }
}

/* Removes the text of a part of mathlib. */
static void drop_part(Ctx *c, StrBuf *t, const char *name) {
  size_t n;
  const char *needs, *text = mathlib_text(name, &n, &needs);
  if (!text) internal_error(c, LOC_NONE, "words.def: mathlib has no %s", name);
  char *at = strstr(t->at, str_text(c, str_intern(c, text, n)));
  if (!at) return;
  memmove(at, at + n, t->n - (size_t)(at - t->at) - n + 1);
  t->n -= n;
}

/* Removes a function of the C runtime for which words.def has an instruction. */
static void drop_function(StrBuf *t, const char *begins) {
  char *at = strstr(t->at, begins), *end = at ? strstr(at, "\n}\n") : NULL;
  if (!end) return;
  end += strlen("\n}\n");
  memmove(at, end, t->n - (size_t)(end - t->at) + 1);
  t->n -= (u64)(end - at);
}

static void put_support_functions(Emit *e, StrBuf *to) {
  Ctx *c = e->c;
  StrBuf t = sb_new(&c->scratch), names = sb_new(&c->scratch);
  sb_puts(to, "#ifdef IG_SHIM\n#include IG_SHIM\n#else\n");
  for (u32 i = 0; i < WORDS; i++) sb_puts(to, words[i].text);
  sb_puts(to, "#endif\n");
  put_runtime(e, &t);
  sb_cstr(&t);
  drop_function(&t, "static float ig_get_f16(");
  for (u32 op = 0; op < OP_SCALARS; op++)
    for (u32 part = 0; part < MM_COUNT; part++)
      if (e->variant->math[op][part]) sb_fmt(&names, "%s ", math_name(c, (Op)op, (MathMode)part));
  if (names.n) mathlib_write(&t, sb_cstr(&names), "", MATHLIB_FMA);
  sb_cstr(&t);
  static const char *const own[] = {"sqrtf", "sqrt", "fmaf", "fma"}; /* words.def has them */
  for (u32 i = 0; i < sizeof own / sizeof *own; i++) drop_part(c, &t, own[i]);
  put_functions_of_c(to, sb_cstr(&t));
}

/* ---- kernels ---- */

/* A kernel being written. */
typedef struct Kernel {
  StmtId id;
  StmtId body;
  KernelParams takes;
  bool *sets;       /* by variable of `takes` */
  const bool *slot; /* see CudaText */
  bool any_set, grid;
  u32 warps;  /* warps of a block; 0: workers are warps or threads */
  u64 shared; /* bytes of a block */
} Kernel;

static bool has_vectors(Prog *p, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->lanes > 1) return true;
  return false;
}

/* Can all indices and counts be computed with 32 bits? */
static bool is_small(Prog *p, const Kernel *k, const Range *range) {
  const Stmt *s;
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    u64 bytes;
    Sym sym;
    if (!mem_stride(p, k->takes.buf.at[i], &bytes, &sym) || bytes > INT32_MAX) return false;
  }
  for (StmtVisit w = prog_visit(p, k->body); (s = prog_next(&w));)
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);) {
      if (x.e->dt != DT_i64 || x.e->lanes > 1) continue;
      if (x.e->kind == EX_const && x.e->imm.i >= INT32_MIN && x.e->imm.i <= INT32_MAX) continue;
      if (x.e->kind == EX_var && range[x.e->ref].lo >= INT32_MIN && range[x.e->ref].hi <= INT32_MAX)
        continue;
      if (x.e->kind == EX_op &&
          (x.e->op == OP_add || x.e->op == OP_sub || x.e->op == OP_mul || x.e->op == OP_div ||
           x.e->op == OP_mod || x.e->op == OP_min || x.e->op == OP_max))
        continue;
      return false;
    }
  ParallelNest nest = prog_parallel_nest(p, k->body);
  double trips = 1;
  for (u32 i = 0; i < nest.n; i++) {
    bool fixed;
    trips *= stmt_trip_count(p, range, prog_stmt(p, nest.at[i]), &fixed);
  }
  return trips < 1 << 30;
}

/* Marks the buffers that a lane stores and another one may load. */
static void find_joins(Emit *e, const Kernel *k) {
  const Stmt *s;
  Prog *p = e->p;
  for (u32 i = 0; i < k->takes.buf.n; i++) e->joins[prog_root(p, k->takes.buf.at[i])] = false;
  StmtId loop = 0; /* in a block, loops are joined by the pass sync */
  for (StmtVisit w = prog_visit(p, k->body); (s = prog_next(&w));) {
    if (s->kind == ST_for && s->flags & LF_team) loop = w.id;
    if (s->kind != ST_store || prog_buf(p, s->buf)->space == BS_reg) continue;
    BufId root = prog_root(p, s->buf);
    const Stmt *r;
    for (StmtVisit v = loop ? prog_visit_one(p, loop) : prog_visit(p, k->body);
         !e->joins[root] && (r = prog_next(&v));)
      for (ExprVisit x = ex_visit_stmt(p, r); ex_next(&x);)
        if (x.e->kind == EX_load && prog_buf(p, x.e->ref)->space != BS_reg &&
            mem_overlap(p, x.e->ref, s->buf))
          e->joins[root] = true;
  }
}

static bool in_slot(const Kernel *k, u32 i) {
  return k->slot && k->slot[k->takes.var.at[i]];
}

static void put_text_params(Emit *e, StrBuf *t, const Kernel *k, bool inner) {
  const char *comma = "";
  for (u32 i = 0; i < k->takes.buf.n; i++, comma = ", ") {
    BufId b = k->takes.buf.at[i];
    const char *type = c_storage(prog_buf(e->p, b)->dt);
    if (!type) c_unsupported(e, dtype_info[prog_buf(e->p, b)->dt].name);
    /* Restricted are constants only: a compiler may read them before ig_after. For a restricted
     * pointer that is written, NVRTC takes a meeting of lanes for no store, and even loads through
     * other pointers as constants. */
    bool fixed = prog_buf(e->p, prog_root(e->p, b))->space == BS_const;
    sb_fmt(t, "%s%s%s *%s", comma, e->by_buf.written[b] ? "" : "const ", type,
           fixed ? "IG_RESTRICT " : "");
    put_param_mark(t, i);
  }
  for (u32 i = 0; i < k->takes.var.n; i++, comma = ", ") {
    const char *type = c_type(prog_var(e->p, k->takes.var.at[i])->dt);
    if (!inner && !k->sets[i] && in_slot(k, i))
      sb_fmt(t, "%sconst %s *p%u", comma, type, i);
    else
      sb_fmt(t, "%s%s %sa%u", comma, type, !k->sets[i] ? "" : inner ? "&" : "*", i);
  }
  if (k->takes.random)
    sb_fmt(t, !inner && k->slot ? "%sconst uint64_t *seed_at" : "%suint64_t seed", comma);
}

/* Values that a kernel loads. */
static void put_slots(Emit *e, StrBuf *t, const Kernel *k) {
  for (u32 i = 0; i < k->takes.var.n; i++)
    if (!k->sets[i] && in_slot(k, i))
      sb_fmt(t, "  const %s a%u = *p%u;\n", c_type(prog_var(e->p, k->takes.var.at[i])->dt), i, i);
  if (k->takes.random && k->slot) sb_puts(t, "  const uint64_t seed = *seed_at;\n");
}

/* Each worker has its own copy of scratch. */
static void put_scratch(Emit *e, StrBuf *t, Kernel *k, bool warps) {
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    BufId b = k->takes.buf.at[i], root = prog_root(e->p, b);
    u64 bytes;
    Sym sym;
    if (prog_buf(e->p, root)->space != BS_local) continue;
    if (!mem_stride(e->p, root, &bytes, &sym)) mem_refuse(e->p, root, sym);
    sb_puts(t, "  ");
    put_param_mark(t, i);
    if (k->warps) { /* views of one buffer have one place */
      u32 same = 0;
      while (prog_root(e->p, k->takes.buf.at[same]) != root) same++;
      if (same < i) {
        sb_fmt(t, " = ");
        put_param_mark(t, same);
        sb_puts(t, ";\n");
        continue;
      }
      sb_fmt(t, " = (%s *)(ig_shared + %" PRIu64 ");\n", c_storage(prog_buf(e->p, b)->dt),
             k->shared);
      k->shared += bytes;
      continue;
    }
    sb_fmt(t, " += (ptrdiff_t)ig_%s() * %" PRIu64 ";\n", warps ? "warp" : "thread",
           bytes / dtype_bytes(prog_buf(e->p, b)->dt));
  }
}

/* The body, by warps if it has vectors. */
static bool put_kernel_body(Emit *e, const Kernel *k, StrBuf *t) {
  bool vectors = has_vectors(e->p, k->body), special = prog_is_special(e->p, k->body),
       warps = false;
  e->t = t;
  e->indent = 1;
  e->in_kernel = true;
  e->shared = k->grid ? k->body : 0;
  e->names = (LocalNames){0};
  e->warps = k->warps;
  find_joins(e, k);
  if (vectors || k->warps) warps = put_mode_body(e, k->body, BM_warp, k->id);
  if (k->warps && !warps)
    fail(e->c, ERR_unsupported, prog_stmt(e->p, k->id)->loc,
         "a kernel with warp loops is too long");
  if (!warps && (!special || vectors || !put_mode_body(e, k->body, BM_thread, k->id)))
    put_mode_body(e, k->body, special ? BM_loops : BM_plain, k->id);
  e->in_kernel = false;
  e->warps = 0;
  return warps;
}

static const char **begin_params(Emit *e, const Kernel *k) {
  const char **outside = NEWS(&e->c->scratch, const char *, k->takes.var.n + 1);
  for (u32 i = 0; i < k->takes.var.n; i++) {
    outside[i] = e->var.at[k->takes.var.at[i]];
    e->var.at[k->takes.var.at[i]] = str_text(e->c, str_fmt(e->c, "a%u", i));
  }
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    e->by_buf.param[k->takes.buf.at[i]] = i + 1;
    e->by_buf.written[k->takes.buf.at[i]] = 0;
  }
  return outside;
}

static const char **name_buffers(Emit *e, const Kernel *k) {
  const char **name = NEWS(&e->c->scratch, const char *, k->takes.buf.n + 1);
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    BufId b = k->takes.buf.at[i];
    char role = prog_buf(e->p, prog_root(e->p, b))->space == BS_local ? 's'
                : e->by_buf.written[b]                                ? 'y'
                                                                      : 'x';
    name[i] = str_text(e->c, str_fmt(e->c, "%c_%u", role, i));
  }
  return name;
}

/* Arguments of the inner function of a kernel that sets variables. */
static void put_inner_args(StrBuf *t, const Kernel *k) {
  const char *comma = "";
  for (u32 i = 0; i < k->takes.buf.n; i++, comma = ", ") {
    sb_puts(t, comma);
    put_param_mark(t, i);
  }
  for (u32 i = 0; i < k->takes.var.n; i++, comma = ", ")
    sb_fmt(t, k->sets[i] ? "%sb%u" : "%sa%u", comma, i);
  if (k->takes.random) sb_fmt(t, "%sseed", comma);
}

/* Text of the function without its name; *inner: text of the function that it calls, or none. */
static bool write_kernel(Emit *e, Kernel *k, StrBuf *text, const char ***names) {
  StrBuf body = sb_new(&e->c->scratch), *outer = e->t;
  FuncBody outer_body = e->b;
  const char **outside = begin_params(e, k);
  bool warps = put_kernel_body(e, k, &body);
  put_text_params(e, text, k, k->any_set);
  sb_puts(text, ") {\n");
  if (warps) sb_puts(text, "  const int lane = ig_lane_id();\n");
  bool early = !k->any_set && strstr(sb_cstr(&body), "ig_after();"); /* LF_after */
  if (!k->any_set) {
    if (!early) sb_puts(text, "  ig_after();\n");
    put_slots(e, text, k);
  }
  put_scratch(e, text, k, warps);
  sb_put(text, body.at, body.n);
  if (early) sb_puts(text, "  ig_after();\n"); /* blocks without work wait too */
  sb_puts(text, "}\n");
  if (k->any_set) { /* all threads compute the same values; the first one stores them */
    sb_puts(text, "IG_KERNEL $${fn}(");
    put_text_params(e, text, k, false);
    sb_puts(text, ") {\n  ig_after();\n");
    put_slots(e, text, k);
    for (u32 i = 0; i < k->takes.var.n; i++)
      if (k->sets[i])
        sb_fmt(text, "  %s b%u = *a%u;\n", c_type(prog_var(e->p, k->takes.var.at[i])->dt), i, i);
    if (warps) sb_puts(text, "  ig_join();\n");
    sb_puts(text, "  $${fn}_body(");
    put_inner_args(text, k);
    sb_puts(text, ");\n");
    for (u32 i = 0; i < k->takes.var.n; i++)
      if (k->sets[i]) sb_fmt(text, "  if (ig_thread() == 0) *a%u = b%u;\n", i, i);
    sb_puts(text, "}\n");
  }
  *names = name_buffers(e, k);
  e->t = outer;
  e->b = outer_body;
  for (u32 i = 0; i < k->takes.var.n; i++) e->var.at[k->takes.var.at[i]] = outside[i];
  for (u32 i = 0; i < k->takes.buf.n; i++) e->by_buf.param[k->takes.buf.at[i]] = 0;
  return warps;
}

static ExprId count_of(Prog *p, StmtId body) {
  ParallelNest nest = prog_parallel_nest(p, body);
  ExprId n = nest.n ? ex_int(p, 1) : 0;
  for (u32 i = 0; i < nest.n; i++)
    n = ex_op2(p, OP_mul, n, loop_trip_expr(p, prog_stmt(p, nest.at[i])));
  return n;
}

static void add_kernel(CudaText *o, Emit *e, StmtId id, const Range *range, const char *prefix,
                       StrBuf *out) {
  Ctx *c = e->c;
  Stmt s = *prog_stmt(e->p, id);
  if (!s.body) return;
  Mark m = arena_mark(&c->scratch);
  Kernel k = {.id = id, .body = s.body, .slot = o->slot};
  k.warps = prog_block_warps(e->p, s.body);
  k.takes = kernel_params(e->p, s.body, 0, &e->marked, &c->keep);
  k.sets = NEWS(&c->keep, bool, k.takes.var.n + 1);
  for (u32 i = 0; i < k.takes.var.n; i++) {
    k.sets[i] = e->marked.sets[k.takes.var.at[i]] == e->marked.n;
    k.any_set = k.any_set || k.sets[i];
  }
  k.grid = prog_parallel_nest(e->p, s.body).n;
  e->index = is_small(e->p, &k, range) ? "int" : "ptrdiff_t";
  StrBuf marked = sb_new(&c->scratch), text = sb_new(&c->scratch);
  const char **names;
  bool warps = write_kernel(e, &k, &marked, &names);
  u32 *slot = map_put_bytes(&e->variant->kernels.at, marked.at, marked.n);
  if (!*slot) {
    const char *name =
        str_text(c, str_fmt(c, "%s%s_%u", *prefix ? "k_" : "", kernel_ident(e, s.label), o->fn.n));
    const TemplateVar mark[] = {{"fn", name}, {NULL, NULL}};
    u64 from = out->n;
    put_named(&e->names, &text, &marked, names);
    sb_fmt(out, "\n/* ");
    put_label(out, str_text(c, s.label), str_len(c, s.label));
    sb_puts(out, " */\n");
    if (k.warps)
      sb_fmt(out, "IG_BLOCK(%u) %s(", k.warps * WARP_LANES, name);
    else
      sb_fmt(out, "%s %s%s(", k.any_set ? "IG_FN void" : "IG_KERNEL", name,
             k.any_set ? "_body" : "");
    sb_subst(c, out, text.at, text.n, mark);
    *vec_push(&c->keep, &o->fn) = (CudaFn){.name = name,
                                           .label = str_text(c, s.label),
                                           .warps = warps,
                                           .block = k.warps * WARP_LANES,
                                           .shared = (u32)k.shared,
                                           .at = from,
                                           .n = out->n - from};
    *slot = o->fn.n;
  }
  *map_put(&o->at, id) = o->call.n + 1;
  *vec_push(&c->keep, &o->call) = (CudaCall){.id = id,
                                             .fn = *slot - 1,
                                             .takes = k.takes,
                                             .sets = k.sets,
                                             .any_set = k.any_set,
                                             .count = count_of(e->p, s.body)};
  arena_rewind(&c->scratch, m);
}

u64 cuda_worker_scratch(const CudaText *t, const CudaCall *k) {
  u64 sum = 0, bytes;
  Sym sym;
  if (t->fn.at[k->fn].block) return 0; /* in shared memory */
  for (u32 i = 0; i < k->takes.buf.n; i++) {
    BufId b = k->takes.buf.at[i];
    if (prog_buf(t->p, b)->space == BS_local && mem_stride(t->p, b, &bytes, &sym)) sum += bytes;
  }
  return sum;
}

/* Variables with one value per run: symbols, and variables that a top-level statement sets once. */
static bool *find_slots(Prog *p) {
  Ctx *c = p->c;
  bool *slot = NEWS(&c->keep, bool, p->var.n);
  u32 *sets = NEWS(&c->scratch, u32, p->var.n);
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    if (s->kind == ST_let || s->kind == ST_set || s->kind == ST_for) sets[s->var]++;
  }
  for (VarId v = 1; v < p->var.n; v++) slot[v] = prog_var(p, v)->sym >= 0 && !sets[v];
  for (StmtId id = p->body; id; id = prog_stmt(p, id)->next) {
    s = prog_stmt(p, id);
    if (s->kind == ST_let || s->kind == ST_set) slot[s->var] = sets[s->var] == 1;
  }
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    for (StmtVisit in = prog_visit(p, s->body); (s = prog_next(&in));)
      if (s->kind == ST_set) slot[s->var] = false;
    w.skip = true;
  }
  return slot;
}

CudaText *cuda_text(const Prog *given, const Target *target, const char *prefix, bool slots) {
  Ctx *c = given->c;
  CudaText *o = NEW(&c->keep, CudaText);
  EmitOptions *options = NEW(&c->keep, EmitOptions);
  EmitEntry *entry = NEW(&c->keep, EmitEntry);
  *options = (EmitOptions){.name = *prefix ? prefix : "ig", .target = target};
  *entry = (EmitEntry){.p = given};
  Emit *e = emit_kernels_begin(variant_begin(c), entry, options);
  const Range *range = prog_ranges(e->p, NULL, &c->keep);
  *o = (CudaText){.p = e->p, .support = sb_new(&c->keep), .kernels = sb_new(&c->keep)};
  o->at = map_new(&c->keep);
  o->emit = e;
  if (slots) o->slot = find_slots(e->p);
  VEC(StmtId) kernel = {0};
  const Stmt *s;
  for (StmtVisit w = prog_visit(e->p, e->p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    if (w.skip) *vec_push(&c->keep, &kernel) = w.id;
  }
  for (u32 i = 0; i < kernel.n; i++) add_kernel(o, e, kernel.at[i], range, prefix, &o->kernels);
  put_support_functions(e, &o->support);
  return o;
}

void cuda_print(const Prog *p, const Target *t, StrBuf *to) {
  const CudaText *text = cuda_text(p, t, "", true);
  sb_put(to, text->support.at, text->support.n);
  sb_put(to, text->kernels.at, text->kernels.n);
}
