/* cguard.c: the choice between vectors and loops in a variant.
 *
 * In: a written variant. Out: the macro IG_VECTORS, which selects vectors or loops over lanes;
 * pragmas that tell gcc and clang for x86-64 which features functions may use; and the CPU test
 * before target code runs.
 *
 * The loops compute the same program with the same weights. They round products before adding them,
 * since FMA in software is ten times slower. Their results equal --march NAME-loops, see
 * target.h. */
#include "back/c/c.h"

#include <string.h>

/* Code outside of the region, if the compiler's flags allow more: what every x86-64 CPU has. */
#define BASELINE "no-avx,no-bmi,no-bmi2,no-lzcnt,no-popcnt"

#define GNU "defined(__GNUC__) && !defined(__TINYC__) && !defined(INGOT_PORTABLE)"

bool has_fallback(const Emit *e) {
  return e->o->target->fma && !e->variant->vectors_only;
}

bool has_vector_guard(const Emit *e) {
  bool fused = e->variant->math[OP_fma][MM_f] || e->variant->math[OP_fma][MM_d];
  for (u32 op = 0; op < OP_SCALARS; op++) fused = fused || e->variant->math[op][MM_u];
  return e->variant->vec.twice || (fused && has_fallback(e));
}

/* ---- features ---- */

static char lower(char ch) {
  return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

static bool has_feature(const Target *t, const char *name) {
  for (const char *s = t->features; *s; s += strcspn(s, ","), s += *s == ',') {
    size_t n = 0;
    while (name[n] && s[n] == lower(name[n])) n++;
    if (!name[n] && (!s[n] || s[n] == ',')) return true;
  }
  return false;
}

/* Compiler macros reflect the flags, not the target attribute of a function. Only SSE2 is always
 * true on x86-64. */
const char *feature_test(Emit *e, const char *feature) {
  const Target *t = e->o->target;
  if (has_feature(t, feature)) return "1";
  if (e->variant->vectors_only && *t->features && strcmp(feature, "SSE2") != 0) return "0";
  return str_text(e->c, str_fmt(e->c, "defined(__%s__)", feature));
}

/* ---- vectors or not ---- */

/* The baseline variant uses any vectors of its width: those of the smallest target of every
 * architecture. */
static void put_any_guard(Emit *e, StrBuf *t) {
  const Target *mine = e->o->target;
  bool first = true;
  for (u32 i = 0; i < target_count; i++) {
    const Target *x = &target_table[i];
    bool larger = i && !strcmp(x->arch, x[-1].arch) && x->lanes == x[-1].lanes;
    if (larger || x->lanes != mine->lanes || x->fma < mine->fma || x->flushes != mine->flushes)
      continue;
    sb_fmt(t, "%s(%s)", first ? "" : " || ", x->guard);
    first = false;
  }
  sb_puts(t, ")");
}

bool checks_cpu(const Emit *e) {
  return !e->variant->dispatched && *e->o->target->features && has_vector_guard(e);
}

/* Uses a message, since -Werror turns #warning into an error. */
static void put_message(Emit *e, StrBuf *t) {
  sb_fmt(t,
         "#ifndef INGOT_PORTABLE\n#if defined(__GNUC__) || defined(_MSC_VER)\n#pragma message("
         "\"%s: this compiler has no vectors for %s: it uses plain loops, several times slower; "
         "define INGOT_PORTABLE to silence this message\")\n#else\n#warning \"no vectors for %s: "
         "plain "
         "loops, several times slower; define INGOT_PORTABLE to silence this "
         "message\"\n#endif\n#endif\n",
         e->o->name, e->o->target->name, e->o->target->name);
}

/* One header for each architecture. */
void put_intrinsics(StrBuf *t) {
  const char *word = "if";
  sb_puts(t, "#if " GNU "\n");
  for (u32 i = target_count; i-- > 0;) {
    const Target *x = &target_table[i];
    bool known = !*x->header;
    for (u32 k = i + 1; k < target_count; k++)
      known = known || !strcmp(target_table[k].header, x->header);
    if (known) continue;
    sb_fmt(t, "#%s %s\n#include <%s>\n", word, x->arch, x->header);
    word = "elif";
  }
  sb_puts(t, "#endif\n#endif\n");
}

void put_vector_guard(Emit *e, StrBuf *t) {
  if (!has_vector_guard(e)) return;
  if (e->variant->vectors_only) {
    put_template(e, t, "#define IG_VECTORS${sfx} 1\n");
    return;
  }
  bool always = checks_cpu(e) && e->o->check_cpu;
  sb_fmt(t, "#if " GNU " && \\\n    %s%s", always ? "!defined(__x86_64__) && " : "",
         e->variant->dispatched ? "(" : e->o->target->guard);
  if (e->variant->dispatched) put_any_guard(e, t);
  put_template(e, t, "\n#define IG_VECTORS${sfx} 1\n");
  if (checks_cpu(e))
    put_template(e, t,
                 "#elif " GNU " && \\\n    defined(__x86_64__)\n#define IG_VECTORS${sfx} 1\n"
                 "#define IG_REGION 1 /* functions have a target attribute */\n");
  put_template(e, t, "#else\n#define IG_VECTORS${sfx} 0\n");
  if (!e->variant->dispatched) put_message(e, t);
  sb_puts(t, "#endif\n");
  if (checks_cpu(e)) sb_puts(t, "#ifndef IG_REGION\n#define IG_REGION 0\n#endif\n");
  if (!e->variant->dispatched) put_warning_pragmas(t);
  if (!e->variant->dispatched && e->variant->vec.intrinsics)
    put_intrinsics(t); /* not inside a region */
}

void put_fma_fallback(Emit *e, StrBuf *t) {
  if (!has_vector_guard(e) || !has_fallback(e)) return;
  static const struct {
    MathMode part;
    const char *name, *fused;
  } sums[] = {{MM_f, "ig_mad", "im_fmaf"}, {MM_d, "ig_mad64", "im_fma"}};
  for (u32 i = 0; i < 2; i++)
    if (e->variant->math[OP_fma][sums[i].part])
      put_template(e, t,
                   "#if IG_VECTORS${sfx}\n#define %s${sfx} %s${sfx}\n"
                   "#else\n#define %s${sfx}(a, b, c) ((a) * (b) + (c))\n#endif\n",
                   sums[i].name, sums[i].fused, sums[i].name);
  for (u32 op = 0; op < OP_SCALARS; op++)
    if (e->variant->math[op][MM_u])
      put_template(e, t, "#if !IG_VECTORS${sfx}\n#define im_%s${sfx} im_%s${sfx}\n#endif\n",
                   math_name(e->c, (Op)op, MM_u), math_name(e->c, (Op)op, MM_q));
}

/* ---- regions ---- */

void put_target_push(StrBuf *t, const char *features) {
  sb_fmt(t,
         "#if defined(__clang__)\n"
         "#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = function)\n"
         "#else\n#pragma GCC push_options\n#pragma GCC target(\"%s\")\n#endif\n",
         features, features);
}

void put_target_pop(StrBuf *t) {
  sb_puts(t, "#if defined(__clang__)\n#pragma clang attribute pop\n"
             "#else\n#pragma GCC pop_options\n#endif\n");
}

static bool starts_threads(const Emit *e) {
  return e->p->threads > 1 && !e->o->openmp;
}

const char *inner_linkage(const Emit *e) {
  return checks_cpu(e) ? "IG_ENTRY " : c_linkage(e);
}

void put_target_region(Emit *e, StrBuf *t) {
  const char *target = e->o->target->name;
  if (!checks_cpu(e)) return;
  sb_puts(t, "#if IG_REGION\n");
  put_target_push(t, e->o->target->features);
  for (Emit *x = e->variant->first; x; x = x->next)
    put_template(x, t, "#define ${entry}_run ${entry}_run_%s\n", target);
  if (starts_threads(e))
    put_template(e, t,
                 "#define ${name}_threads_start ${name}_threads_start_%s\n"
                 "#define ${name}_threads_stop ${name}_threads_stop_%s\n",
                 target, target);
  sb_puts(t, "#define IG_ENTRY static\n#else\n#define IG_ENTRY\n#endif\n");
}

/* f16c is not tested: every CPU with avx2 has it, and older compilers do not know the name. Every
 * CPU with matrix registers multiplies int8. */
void put_cpu_test(StrBuf *t, const char *features, const char *gap) {
  bool first = true;
  for (const char *s = features; *s; s += strcspn(s, ","), s += *s == ',') {
    int n = (int)strcspn(s, ",");
    if (!strncmp(s, "f16c", (size_t)n) || !strncmp(s, "amx-int8", (size_t)n)) continue;
    sb_fmt(t,
           !strncmp(s, "amx-tile", (size_t)n) ? "%sIG_TILES_ALLOWED"
                                              : "%s__builtin_cpu_supports(\"%.*s\")",
           first ? "" : gap, n, s);
    first = false;
  }
}

u32 cpu_status(Emit *e) {
  const char *features = e->o->target->features;
  StrBuf lacks = sb_new(&e->c->keep);
  sb_puts(&lacks, "this CPU lacks one of ");
  for (const char *s = features; *s; s++) sb_fmt(&lacks, *s == ',' ? "%c " : "%c", *s);
  return status_add(e, LOC_NONE, str_intern(e->c, lacks.at, lacks.n));
}

void put_target_region_end(Emit *e, StrBuf *t) {
  const char *target = e->o->target->name, *features = e->o->target->features;
  if (!checks_cpu(e)) return;
  sb_puts(t, "\n#if IG_REGION\n");
  put_target_pop(t);
  for (Emit *x = e->variant->first; x; x = x->next) put_template(x, t, "#undef ${entry}_run\n");
  if (starts_threads(e))
    put_template(e, t, "#undef ${name}_threads_start\n#undef ${name}_threads_stop\n");
  put_part_begin(e, t, 0);
  if (e->o->check_cpu) put_flags_helper(t);
  sb_fmt(t,
         "\n/* Call before any code that the CPU may not support. */\n%sstatic int "
         "ig_can_run(void) {\n",
         e->o->check_cpu ? "__attribute__((target(\"" BASELINE "\")))\n" : "");
  if (e->o->check_cpu) put_flags_test(t);
  sb_puts(t, "  return ");
  put_cpu_test(t, features, " &&\n         ");
  sb_puts(t, ";\n}\n");
  if (e->o->check_cpu) put_target_push(t, BASELINE);
  for (Emit *x = e->variant->first; x; x = x->next)
    put_template(x, t,
                 "\nint ${entry}_run(void *arena%s) {\n  return ig_can_run() ? "
                 "${entry}_run_%s(arena%s) : %u;\n}\n",
                 sb_cstr(&x->entry.params), target, sb_cstr(&x->entry.args), cpu_status(e));
  if (starts_threads(e))
    put_template(e, t,
                 "\nint ${name}_threads_start(void *arena, int threads) {\n"
                 "  if (!ig_can_run()) return arena && (uintptr_t)arena %% 64 == 0;\n"
                 "  return ${name}_threads_start_%s(arena, threads);\n}\n"
                 "\nvoid ${name}_threads_stop(void *arena) {\n"
                 "  if (ig_can_run()) ${name}_threads_stop_%s(arena);\n}\n",
                 target, target);
  put_part_end(e, t);
  sb_puts(t, "#endif\n");
}

void put_baseline_end(Emit *e, StrBuf *t) {
  if (!checks_cpu(e) || !e->o->check_cpu) return;
  sb_puts(t, "\n#if IG_REGION\n");
  put_target_pop(t);
  sb_puts(t, "#endif\n");
}

/* ---- name of the target ---- */

void put_target_name(Emit *e, StrBuf *t) {
  put_template(e, t, "\nconst char *${name}_target(void) {\n");
  if (has_vector_guard(e))
    put_template(e, t, "#if !IG_VECTORS${sfx}\n  return \"%s-loops\";\n#endif\n",
                 e->o->target->name);
  sb_fmt(t, "  return \"%s\";\n}\n", e->o->target->name);
}
