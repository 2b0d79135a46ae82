/* cvariants.c: a file with one variant, or with several for different CPUs.
 *
 * In: the programs of a file, compiled for one or several targets. Out: one C file and its header.
 * cemit.c writes each program; programs for one target form a variant and share kernels. In a file
 * with several variants, names carry the variant's name as suffix. Pragmas tell gcc and clang which
 * features its functions may use, so the file needs no flags. Exported functions dispatch to the
 * last variant whose features the CPU has. The compiler's runtime detects features before main, so
 * the test is a load and a compare; the file stores nothing. Equal weights are written once.
 *
 * If some CPUs of a target have a 4-way int8 dot product and the program uses it, the program is
 * written a second time for a target with that instruction.
 *
 * All variants keep their state at the same offsets, and a CPU always selects the same one. */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_VARIANTS = 16 };

/* One variant of the file. */
typedef struct FileVariant {
  Emit *e;              /* its first program */
  const char *name;     /* part of C names */
  const char *features; /* target features of its functions; "": only those of the flags */
  bool dot_i8x4;        /* copy of a variant with 4-way dot products */
  Target target;
  EmitOptions o;
} FileVariant;

/* Kind of file. */
typedef struct FileKind {
  bool several; /* several variants */
  bool pooled;  /* several programs that share a weight pool */
} FileKind;

typedef struct OutFile {
  Ctx *c;
  const EmitOptions *o;
  WeightPool pool;
  u32 npart;
  FileVariant part[2 * MAX_VARIANTS];
} OutFile;

/* Variants that this compiler supports: IG_HAS_avx2. Only gcc can test for AVX-VNNI. */
static void put_has_macros(OutFile *m, StrBuf *t) {
  for (u32 i = 1; i < m->npart; i++) {
    const FileVariant *part = &m->part[i];
    sb_fmt(t,
           "#if defined(__GNUC__) && !defined(__TINYC__) && !defined(INGOT_PORTABLE) && \\\n"
           "    %s%s\n#define IG_HAS_%s 1\n#else\n#define IG_HAS_%s 0\n#endif\n",
           *part->features ? "defined(__x86_64__)" : part->target.guard,
           part->dot_i8x4 && !strcmp(part->name, "avxvnni")
               ? " && !defined(__clang__) && __GNUC__ >= 12"
               : "",
           part->name, part->name);
  }
}

/* ---- weights ---- */

static void mark_weights(OutFile *m) {
  Weight *w = m->pool.w.at; /* NULL: no weights */
  for (u32 i = 0; w && i < m->npart; i++) {
    for (Emit *e = m->part[i].dot_i8x4 ? NULL : m->part[i].e; e; e = e->next)
      for (BufId b = 1; b < e->p->buf.n; b++) {
        const Buf *x = prog_buf(e->p, b);
        if (x->space == BS_const && !x->alias && e->by_buf.used[b])
          w[e->weights.number[b]].users |= (u64)1 << i;
      }
  }
}

static u64 pool_bytes_used(const OutFile *m) {
  u64 n = 0;
  for (u32 i = 0; i < m->pool.w.n; i++)
    if (m->pool.w.at[i].users) n += tensor_bytes(m->pool.w.at[i].data);
  return n;
}

static void put_pool(OutFile *m, StrBuf *t) {
  Emit *e = m->part[0].e;
  put_weights_head(e, t);
  for (u32 i = 0; !e->weights.blob && i < m->pool.w.n; i++) {
    const Weight *w = &m->pool.w.at[i];
    if (!w->users) continue;
    const char *gap = "#if "; /* used by some variants only */
    for (u32 k = 1; !(w->users & 1) && k < m->npart; k++)
      if (w->users >> k & 1) {
        sb_fmt(t, "%sIG_HAS_%s", gap, m->part[k].name);
        gap = " || ";
      }
    if (!(w->users & 1)) sb_puts(t, "\n");
    put_weight(e, t, w->data, i, w->name);
    if (!(w->users & 1)) sb_puts(t, "#endif\n");
  }
}

/* ---- variants ---- */

/* NAME, or NAME_ENTRY. */
static const char *own_name(const Emit *e) {
  return e->vars[TV_entry].text;
}

static void put_variant(StrBuf *t, FileVariant *part, bool above) {
  sb_fmt(t, "\n/* ---- variant %s ---- */\n\n", part->name);
  if (above) sb_fmt(t, "#if IG_HAS_%s\n", part->name);
  if (*part->features) put_target_push(t, part->features);
  put_support(part->e, t);
  put_functions(part->e, t);
  if (*part->features) put_target_pop(t);
  if (above) sb_puts(t, "#endif\n");
}

static void put_cpu_dispatch(OutFile *m, StrBuf *t) {
  put_template(
      m->part[0].e, t,
      "\n/* ---- CPU dispatch ---- */\n\n"
      "/* -D${NAME}_BODY=NAME selects a variant without testing the CPU, such as %s. */\nenum {",
      m->part[m->npart - 1].name);
  for (u32 i = 0; i < m->npart; i++) sb_fmt(t, "%sig_variant_%s", i ? ", " : " ", m->part[i].name);
  put_template(m->part[0].e, t,
               " };\n#define IG_JOIN2(a, b) a##b\n#define IG_JOIN(a, b) IG_JOIN2(a, b)\n\n"
               "static int ig_variant(void) {\n#ifdef ${NAME}_BODY\n  return IG_JOIN(ig_variant_, "
               "${NAME}_BODY);\n"
               "#else\n");
  for (u32 i = m->npart - 1; i; i--) {
    const FileVariant *part = &m->part[i];
    sb_fmt(t, "#if IG_HAS_%s\n  %s", part->name, *part->features ? "if (" : "");
    put_cpu_test(t, part->features, " &&\n      ");
    sb_fmt(t, "%sreturn ig_variant_%s;\n#endif\n", *part->features ? ")\n    " : "", part->name);
  }
  sb_fmt(t, "  return ig_variant_%s;\n#endif\n}\n", m->part[0].name);
}

/* An exported function: type ends with a blank or star. name: NAME, or NAME_ENTRY. */
static void put_dispatcher(OutFile *m, StrBuf *t, const char *name, const char *type,
                           const char *function, const char *params, const char *args) {
  bool returns = strcmp(type, "void ") != 0;
  sb_fmt(t, "\n%s%s_%s(%s) {\n  switch (ig_variant()) {\n", type, name, function, params);
  for (u32 i = m->npart; i-- > 0;) {
    const FileVariant *part = &m->part[i];
    if (i) sb_fmt(t, "#if IG_HAS_%s\n  case ig_variant_%s:\n", part->name, part->name);
    if (!i) sb_puts(t, "  default:\n");
    sb_fmt(t, "    %s%s_%s_%s(%s);\n", returns ? "return " : "", name, function, part->name, args);
    if (!returns) sb_puts(t, "    break;\n");
    if (i) sb_puts(t, "#endif\n");
  }
  sb_puts(t, "  }\n}\n");
}

/* NAME_target: a copy with dot products has the name of its target, which gives the same bits. */
static void put_name(OutFile *m, StrBuf *t) {
  const char *first = m->part[0].target.name;
  sb_fmt(t, "\nconst char *%s_target(void) {\n  switch (ig_variant()) {\n", m->o->name);
  for (u32 i = m->npart - 1; i; i--)
    sb_fmt(t, "  case ig_variant_%s: return \"%s\";\n", m->part[i].name, m->part[i].target.name);
  sb_puts(t, "  default: break;\n  }\n");
  if (has_vector_guard(m->part[0].e))
    sb_fmt(t, "#if !IG_VECTORS_%s\n  return \"%s-loops\";\n#endif\n", m->part[0].name, first);
  sb_fmt(t, "  return \"%s\";\n}\n", first);
}

static void put_dispatchers(OutFile *m, StrBuf *t) {
  Emit *e = m->part[0].e;
  const char *name = m->o->name;
  bool pointer = m->o->weights == WM_pointer;
  for (Emit *x = e->variant->first; x; x = x->next) {
    Str params = str_fmt(m->c, "void *arena%s", sb_cstr(&x->entry.params));
    Str args = str_fmt(m->c, "arena%s", sb_cstr(&x->entry.args));
    put_dispatcher(m, t, own_name(x), "int ", "run", str_text(m->c, params), str_text(m->c, args));
  }
  put_dispatcher(m, t, name, "const char *", "why", "int status", "status");
  put_name(m, t);
  if (m->o->profile)
    put_dispatcher(m, t, name, "const char *", "kernel_name", "int kernel", "kernel");
  if (e->p->threads > 1 && !m->o->openmp) {
    put_dispatcher(m, t, name, "int ", "threads_start", "void *arena, int threads",
                   "arena, threads");
    put_dispatcher(m, t, name, "void ", "threads_stop", "void *arena", "arena");
  }
  if (e->given->selftest)
    put_dispatcher(m, t, name, "int ", "selftest",
                   pointer ? "void *memory, const void *weight_file" : "void *memory",
                   pointer ? "memory, weight_file" : "memory");
  for (Emit *x = e->variant->first; x; x = x->next)
    if (x->state_init.state)
      put_dispatcher(m, t, own_name(x), "void ", "reset", "void *arena", "arena");
}

/* ---- the file ---- */

/* The next state buffer; p->buf.n: none. */
static BufId next_state(const Prog *p, BufId b) {
  while (b < p->buf.n && prog_buf(p, b)->space != BS_state) b++;
  return b;
}

/* Callers must not notice which variant runs. */
static void check_same_interface(OutFile *m, Emit *first, Emit *other, const char *name) {
  const Prog *p = first->p, *q = other->p;
  if (strcmp(sb_cstr(&first->entry.params), sb_cstr(&other->entry.params)) != 0)
    fail(m->c, ERR_unsupported, LOC_NONE, "variant %s has other arguments than the first variant",
         name);
  for (BufId b = next_state(p, 1), d = next_state(q, 1); b < p->buf.n || d < q->buf.n;
       b = next_state(p, b + 1), d = next_state(q, d + 1))
    if (b >= p->buf.n || d >= q->buf.n || prog_buf(p, b)->offset != prog_buf(q, d)->offset)
      fail(m->c, ERR_unsupported, LOC_NONE,
           "variant %s keeps its state at other offsets than the first variant", name);
}

static u64 larger(u64 a, u64 b) {
  return a > b ? a : b;
}

static EmitFacts facts_of_all(OutFile *m) {
  EmitFacts all = {.feature = ""};
  if (m->npart == 1) all = facts_of(m->part[0].e->variant);
  for (u32 i = 0; m->npart > 1 && i < m->npart; i++) {
    EmitFacts f = facts_of(m->part[i].e->variant);
    if (m->part[i].dot_i8x4) continue;
    all.arena_bytes = larger(all.arena_bytes, f.arena_bytes);
    all.selftest_bytes = larger(all.selftest_bytes, f.selftest_bytes);
    all.stack_bytes = larger(all.stack_bytes, f.stack_bytes);
    all.kernels += f.kernels;
    all.max_profile = (u32)larger(all.max_profile, f.nprofile);
    if (!i || target_is_here(&m->part[i].target)) {
      all.profile = f.profile;
      all.nprofile = f.nprofile;
    }
    all.code_bytes += f.code_bytes;
    all.input_bytes = f.input_bytes; /* equal in all variants */
    all.output_bytes = f.output_bytes;
  }
  /* frame of the dispatcher: the arguments again, and the CPU test */
  u64 max_args = 0;
  for (const Emit *x = m->part[0].e; x; x = x->next)
    max_args = larger(max_args, x->p->in.n + 2 * (u64)x->p->out.n + dim_nsyms(x->p->dims));
  if (m->npart > 1) all.stack_bytes += 16 * (max_args + 32);
  all.params = list_params(m->part[0].e);
  const WeightForm *w = &m->part[0].e->weights;
  if (w->pool) all.weight_bytes = w->blob ? w->bytes : pool_bytes_used(m) + table_bytes(m->o);
  return all;
}

/* One form for all variants. */
static WeightMode weight_form(const EmitVariant *variant, u32 n, const EmitOptions *o) {
  u64 bytes = 0;
  if (o->weights != WM_auto) return o->weights;
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < variant[i].n; k++) bytes += prog_stored_bytes(variant[i].entry[k].p);
  return bytes > o->literal_bytes ? WM_string : WM_literal;
}

static Emit *add_variant(OutFile *m, const EmitVariant *variant, WeightMode weights, FileKind kind,
                         bool dot_i8x4, Blob *blob) {
  u32 number = m->npart++;
  FileVariant *part = &m->part[number];
  const Target *t = variant->target;
  CpuVariant *all = variant_begin(m->c);
  StrBuf name = sb_new(&m->c->keep);
  for (const char *s = dot_i8x4 ? t->dot_i8x4 : t->name; *s; s++)
    sb_fmt(&name, "%c", *s == '-' ? '_' : *s);
  *part = (FileVariant){.name = sb_cstr(&name), .target = *t, .o = *m->o, .dot_i8x4 = dot_i8x4};
  if (dot_i8x4)
    part->target.features = str_text(m->c, str_fmt(m->c, "%s,%s", t->features, t->dot_i8x4));
  part->features = number ? part->target.features : "";
  part->o.target = &part->target;
  part->o.weights = weights;
  all->dispatched = kind.several;
  all->vectors_only = number > 0;
  const char *suffix = kind.several ? str_text(m->c, str_fmt(m->c, "_%s", part->name)) : "";
  for (u32 i = 0; i < variant->n; i++)
    emit_begin(all, &variant->entry[i], &part->o, kind.pooled ? &m->pool : NULL, suffix, blob);
  part->e = all->first;
  return part->e;
}

/* Text before all variants: headers inside a target region would be compiled for that target. */
static void put_head(OutFile *m, StrBuf *t) {
  Emit *first = m->part[0].e, *threaded = first;
  bool intrinsics = false, several = m->npart > 1;
  for (u32 i = 0; i < m->npart; i++) {
    if (m->part[i].e->variant->shared_kernels.n) threaded = m->part[i].e;
    intrinsics = intrinsics || m->part[i].e->variant->vec.intrinsics;
  }
  put_prelude(first, t);
  put_thread_headers(threaded, t);
  if (several) put_has_macros(m, t);
  if (several) put_warning_pragmas(t);
  if (several && intrinsics) put_intrinsics(t);
  put_split(first, t);
  if (!several) put_support(first, t);
  put_part_begin(first, t, 0);
  if (first->weights.pool)
    put_pool(m, t);
  else
    put_weights(first, t);
  put_part_end(first, t);
}

EmitFacts emit_variants(const EmitVariant *variant, u32 n, const EmitOptions *o, StrBuf *c_text,
                        StrBuf *h_text, Blob *blob) {
  Ctx *c = variant[0].entry[0].p->c;
  OutFile *m = NEW(&c->keep, OutFile);
  const Prog *progs[MAX_VARIANTS];
  FileKind kind = {.several = n > 1, .pooled = n > 1 || variant[0].n > 1};
  bool in_blob = o->weights == WM_file || o->weights == WM_pointer;
  if (!n || n > MAX_VARIANTS)
    fail(c, ERR_unsupported, LOC_NONE, "%u variants (--march); 1 to %d are supported", n,
         MAX_VARIANTS);
  *m = (OutFile){.c = c, .o = o, .pool = {.at = map_new(&c->keep)}};
  WeightMode weights = weight_form(variant, n, o);
  if (kind.pooled && in_blob) begin_blob(blob);
  for (u32 i = 0; i < n; i++) {
    progs[i] = variant[i].entry[0].p;
    Emit *e = add_variant(m, &variant[i], weights, kind, false, blob);
    if (i && e->variant->vec.dot_i8x4 && *variant[i].target->dot_i8x4)
      add_variant(m, &variant[i], weights, kind, true, blob);
  }
  Emit *first = m->part[0].e;
  if (kind.pooled && in_blob) end_blob(first, blob);
  if (kind.pooled) mark_weights(m);
  for (u32 i = 1; i < m->npart; i++)
    for (Emit *x = m->part[0].e, *y = m->part[i].e; x && y; x = x->next, y = y->next)
      check_same_interface(m, x, y, m->part[i].name);
  EmitFacts facts = facts_of_all(m);
  put_banner(first, h_text, ".h");
  put_declarations(first, h_text, &facts);
  put_banner(first, c_text, ".c");
  put_declarations(first, c_text, &facts);
  put_head(m, c_text);
  for (u32 i = 0; kind.several && i < m->npart; i++) put_variant(c_text, &m->part[i], i > 0);
  if (!kind.several) put_functions(first, c_text);
  put_part_begin(first, c_text, 0);
  if (kind.several) put_cpu_dispatch(m, c_text);
  if (kind.several) put_dispatchers(m, c_text);
  if (o->caller) put_caller(first, c_text, progs, n, facts.arena_bytes);
  if (o->more) {
    if (o->more->ntable) put_table(first, c_text);
    sb_puts(c_text, o->more->code);
  }
  put_baseline_end(first, c_text);
  put_part_end(first, c_text);
  /* a C++ compiler needs nothing after the declarations */
  sb_puts(c_text, "\n#endif\n");
  return facts;
}
