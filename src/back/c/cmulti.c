/* cmulti.c: a file with several bodies, for CPUs that differ.
 *
 * In: programs of one model, each made for another target. Out: one C file with the interface of
 * any other. The text of each program is what emit.c would write, with the name of its body behind
 * every name of its own; gcc and clang are told by pragmas what its functions may use, so that the
 * file needs no flags. What callers know are functions that go to the body this CPU runs: the last
 * one whose features it has. The compiler's library found those out before the program began, and
 * asking it is a load and a test: nothing is stored here. Weights with the same bytes are written
 * once.
 *
 * A body in which sums of products of bytes occur is there twice, if some CPUs of its target have
 * an instruction for them: macros of the compiler, by which cint8.c chooses it, say what the flags
 * are and not what a function may use, so each body has macros of its own in their place.
 *
 * All bodies keep their state at the same places, and a CPU always takes the same one.
 */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

enum { BODIES = 16 };

/* A body of the file. */
typedef struct Part {
  Made *made;
  const char *name;
  const char *features; /* separated by commas; "": no more than the flags give */
  bool dot4;            /* the second of two from one program */
} Part;

typedef struct Multi {
  Ctx *c;
  const EmitOptions *o;
  Pool pool;
  u32 nmade, npart;
  Made made[BODIES];
  Part part[2 * BODIES];
} Multi;

/* ---- names ---- */

static bool begins(const char *word, size_t n, const char *with) {
  size_t k = strlen(with);
  return n >= k && !memcmp(word, with, k);
}

/* NAME_run, NAME_k12: functions of a program. */
static bool is_function(const char *word, size_t n, const char *name) {
  static const char *const rest[] = {"run",   "body",          "why",          "selftest",
                                     "reset", "threads_start", "threads_stop", "kernel_name"};
  size_t k = strlen(name);
  if (!begins(word, n, name) || n <= k + 1 || word[k] != '_') return false;
  word += k + 1;
  n -= k + 1;
  for (u32 i = 0; i < sizeof rest / sizeof *rest; i++)
    if (strlen(rest[i]) == n && begins(word, n, rest[i])) return true;
  return n > 1 && (*word == 'k' || *word == 'p') && is_digit(word[1]);
}

static void put_word(Text *t, const Part *part, const char *name, const char *word, size_t n) {
  bool above = *part->features != 0;
  bool feature = above && (begins(word, n, "__AVX") || begins(word, n, "__FMA"));
  bool own = begins(word, n, "ig_") || begins(word, n, "IG_") || begins(word, n, "im_") ||
             begins(word, n, "imk_") || is_function(word, n, name);
  if (feature) text_puts(t, "IG");
  text_put(t, word, n);
  if (feature || own) text_fmt(t, "_%s", part->name);
}

/* How much of the text is one thing: a comment, a literal, a word or a character. */
static size_t piece(const char *s, size_t n) {
  size_t k = 1;
  if (is_digit(*s) || is_letter(*s)) {
    bool number = is_digit(*s);
    while (k < n && (is_digit(s[k]) || is_letter(s[k]) || (number && s[k] == '.'))) k++;
  } else if (*s == '"' || *s == '\'') {
    while (k < n && s[k] != *s) k += s[k] == '\\' ? 2 : 1;
    k++;
  } else if (n > 1 && *s == '/' && s[1] == '*') {
    for (k = 4; k < n && (s[k - 2] != '*' || s[k - 1] != '/');) k++;
  }
  return k < n ? k : n;
}

static void put_renamed(Text *t, const Part *part, const char *name, const Text *text) {
  for (size_t i = 0, k; i < text->n; i += k) {
    k = piece(text->at + i, text->n - i);
    if (is_letter(text->at[i]))
      put_word(t, part, name, text->at + i, k);
    else
      text_put(t, text->at + i, k);
  }
}

/* ---- features ---- */

/* The next of a list separated by commas; its length, 0 at the end. */
static size_t feature(const char **list) {
  *list += **list == ',';
  return strcspn(*list, ",");
}

/* The macro by which a text asks for the instruction; features of its target it need not ask for.
 */
static void put_dot4(Text *t, const Part *part) {
  text_puts(t, "#define IG__");
  for (const char *s = part->made->e->o->target->dot4; *s; s++)
    text_fmt(t, "%c", *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
  text_fmt(t, "___%s 1\n", part->name);
}

/* Bodies that this compiler takes: IG_HAS_avx2. __builtin_cpu_supports knows AVX-VNNI in gcc. */
static void put_has(Multi *m, Text *t) {
  for (u32 i = 1; i < m->npart; i++) {
    const Part *part = &m->part[i];
    const Target *target = part->made->e->o->target;
    text_fmt(t,
             "#if defined(__GNUC__) && !defined(__TINYC__) && !defined(INGOT_PORTABLE) && \\\n"
             "    %s%s\n#define IG_HAS_%s 1\n#else\n#define IG_HAS_%s 0\n#endif\n",
             *part->features ? "defined(__x86_64__)" : target->guard,
             part->dot4 && !strcmp(target->dot4, "avxvnni")
                 ? " && !defined(__clang__) && __GNUC__ >= 12"
                 : "",
             part->name, part->name);
  }
}

/* Inside a region of a target they would be taken for that target alone. */
static void put_includes(Multi *m, Text *t) {
  bool any = false;
  for (u32 i = 0; i < m->nmade; i++) any = any || m->made[i].e->intrinsics;
  if (any) put_intrinsics(t);
}

/* ---- weights ---- */

static void mark_weights(Multi *m) {
  for (u32 i = 0; i < m->nmade; i++) {
    Emit *e = m->made[i].e;
    for (BufId b = 1; b < e->p->buf.n; b++) {
      const Buf *x = prog_buf(e->p, b);
      if (x->space == BS_const && !x->alias && e->used[b])
        m->pool.w.at[e->weight[b]].users |= (u64)1 << i;
    }
  }
}

static u64 pool_bytes_used(const Multi *m) {
  u64 n = 0;
  for (u32 i = 0; i < m->pool.w.n; i++)
    if (m->pool.w.at[i].users) n += tensor_bytes(m->pool.w.at[i].data);
  return n;
}

static void put_pool(Multi *m, Text *t) {
  Emit *e = m->made[0].e;
  put_weights_head(e, t);
  for (u32 i = 0; !e->blob && i < m->pool.w.n; i++) {
    const Weight *w = &m->pool.w.at[i];
    if (!w->users) continue;
    bool some = !(w->users & 1), first = true;
    if (some) text_puts(t, "#if ");
    for (u32 k = 1; some && k < m->nmade; k++)
      if (w->users >> k & 1) {
        text_fmt(t, "%sIG_HAS_%s", first ? "" : " || ", m->made[k].e->o->target->name);
        first = false;
      }
    if (some) text_puts(t, "\n");
    put_weight(e, t, w->data, i, w->name);
    if (some) text_puts(t, "#endif\n");
  }
}

/* ---- bodies ---- */

static void put_part(Multi *m, Text *t, const Part *part) {
  Text own = text_new(&m->c->keep);
  bool above = part != &m->part[0];
  text_fmt(t, "\n/* ---- the body %s ---- */\n\n", part->name);
  if (above) text_fmt(t, "#if IG_HAS_%s\n", part->name);
  if (*part->features) put_target_push(t, part->features);
  if (part->dot4) put_dot4(t, part);
  put_support(part->made->e, &own);
  put_functions(part->made, &own);
  put_renamed(t, part, m->o->name, &own);
  if (*part->features) put_target_pop(t);
  if (above) text_puts(t, "#endif\n");
}

static void put_choice(Multi *m, Text *t) {
  const char *up = text_cstr(&m->made[0].upper);
  text_fmt(t,
           "\n/* ---- which body ---- */\n\n"
           "/* -D%s_BODY=%s, say, takes that one without asking what the CPU is. */\nenum {",
           up, m->part[m->npart - 1].name);
  for (u32 i = 0; i < m->npart; i++) text_fmt(t, "%sig_body_%s", i ? ", " : " ", m->part[i].name);
  text_fmt(t,
           " };\n#define IG_JOIN2(a, b) a##b\n#define IG_JOIN(a, b) IG_JOIN2(a, b)\n\n"
           "static int ig_body(void) {\n#ifdef %s_BODY\n  return IG_JOIN(ig_body_, %s_BODY);\n"
           "#else\n",
           up, up);
  for (u32 i = m->npart - 1; i; i--) {
    const char *s = m->part[i].features;
    text_fmt(t, "#if IG_HAS_%s\n  ", m->part[i].name);
    for (size_t n, first = 1; (n = feature(&s)); s += n, first = 0)
      text_fmt(t, "%s__builtin_cpu_supports(\"%.*s\")", first ? "if (" : " &&\n      ", (int)n, s);
    text_fmt(t, "%sreturn ig_body_%s;\n#endif\n", *m->part[i].features ? ")\n    " : "",
             m->part[i].name);
  }
  text_fmt(t, "  return ig_body_%s;\n#endif\n}\n", m->part[0].name);
}

/* A function that callers know: type with a blank or star behind it. */
static void put_way(Multi *m, Text *t, const char *type, const char *function, const char *params,
                    const char *args) {
  const char *name = m->o->name;
  bool returns = strcmp(type, "void ") != 0;
  text_fmt(t, "\n%s%s_%s(%s) {\n  switch (ig_body()) {\n", type, name, function, params);
  for (u32 i = m->npart; i-- > 0;) {
    const Part *part = &m->part[i];
    if (i) text_fmt(t, "#if IG_HAS_%s\n  case ig_body_%s:\n", part->name, part->name);
    if (!i) text_puts(t, "  default:\n");
    text_fmt(t, "    %s%s_%s_%s(%s);\n", returns ? "return " : "", name, function, part->name,
             args);
    if (!returns) text_puts(t, "    break;\n");
    if (i) text_puts(t, "#endif\n");
  }
  text_puts(t, "  }\n}\n");
}

/* NAME_target: of a body that is there twice, the target that gives the same bits. */
static void put_name(Multi *m, Text *t) {
  const Emit *first = m->made[0].e;
  text_fmt(t, "\nconst char *%s_target(void) {\n  switch (ig_body()) {\n", m->o->name);
  for (u32 i = m->npart - 1; i; i--)
    text_fmt(t, "  case ig_body_%s: return \"%s\";\n", m->part[i].name,
             m->part[i].made->e->o->target->name);
  text_puts(t, "  default: break;\n  }\n");
  if (is_gated(first))
    text_fmt(t, "#if !IG_VECTORS_%s\n  return \"%s-loops\";\n#endif\n", m->part[0].name,
             m->part[0].name);
  text_fmt(t, "  return \"%s\";\n}\n", m->part[0].name);
}

static void put_ways(Multi *m, Text *t) {
  Made *f = &m->made[0];
  Text params = text_new(&m->c->keep), args = text_new(&m->c->keep);
  bool pointer = m->o->weights == WM_pointer;
  text_fmt(&params, "void *arena%s", text_cstr(&f->params));
  text_fmt(&args, "arena%s", text_cstr(&f->args));
  put_way(m, t, "int ", "run", text_cstr(&params), text_cstr(&args));
  put_way(m, t, "const char *", "why", "int status", "status");
  put_name(m, t);
  if (m->o->profile) put_way(m, t, "const char *", "kernel_name", "int kernel", "kernel");
  if (f->e->p->threads > 1 && !m->o->openmp) {
    put_way(m, t, "int ", "threads_start", "void *arena, int threads", "arena, threads");
    put_way(m, t, "void ", "threads_stop", "void *arena", "arena");
  }
  if (f->e->o->selftest)
    put_way(m, t, "int ", "selftest",
            pointer ? "void *memory, const void *weight_file" : "void *memory",
            pointer ? "memory, weight_file" : "memory");
  if (f->e->state) put_way(m, t, "void ", "reset", "void *arena", "arena");
}

/* ---- the file ---- */

/* A caller must not notice which body runs. */
static void check_alike(Multi *m) {
  for (u32 i = 1; i < m->nmade; i++) {
    Prog *p = m->made[0].e->p, *q = m->made[i].e->p;
    const char *name = m->made[i].e->o->target->name;
    if (strcmp(text_cstr(&m->made[0].params), text_cstr(&m->made[i].params)) != 0)
      fail(m->c, ERR_unsupported, LOC_NONE, "the body %s takes other arguments than the others",
           name);
    BufId b = 1, d = 1;
    for (;; b++, d++) {
      while (b < p->buf.n && prog_buf(p, b)->space != BS_state) b++;
      while (d < q->buf.n && prog_buf(q, d)->space != BS_state) d++;
      if (b >= p->buf.n && d >= q->buf.n) break;
      if (b >= p->buf.n || d >= q->buf.n || prog_buf(p, b)->offset != prog_buf(q, d)->offset)
        fail(m->c, ERR_unsupported, LOC_NONE, "the body %s keeps its state at other places", name);
    }
  }
}

static EmitFacts most(Multi *m) {
  EmitFacts all = {.feature = ""};
  const Prog *p = m->made[0].e->p;
  for (u32 i = 0; i < m->nmade; i++) {
    EmitFacts f = made_facts(&m->made[i]);
    if (f.arena_bytes > all.arena_bytes) all.arena_bytes = f.arena_bytes;
    if (f.selftest_bytes > all.selftest_bytes) all.selftest_bytes = f.selftest_bytes;
    if (f.stack_bytes > all.stack_bytes) all.stack_bytes = f.stack_bytes;
    all.kernels += f.kernels;
    if (f.nprofile > all.most_profile) all.most_profile = f.nprofile;
    if (!i || target_is_here(m->made[i].e->o->target)) {
      all.profile = f.profile;
      all.nprofile = f.nprofile;
    }
    all.code_bytes += f.code_bytes;
    all.input_bytes = f.input_bytes; /* they are the same for all */
    all.output_bytes = f.output_bytes;
  }
  /* of the function in front: the arguments once more, and what is asked of the CPU */
  all.stack_bytes += 16 * (p->in.n + 2 * (u64)p->out.n + dim_nsyms(p->dims) + 32);
  all.weight_bytes = m->made[0].e->blob ? m->made[0].e->blob_bytes : pool_bytes_used(m);
  return all;
}

/* One form for all bodies. */
static WeightMode weight_form(const EmitBody *body, u32 n, const EmitOptions *o) {
  u64 bytes = 0;
  if (o->weights != WM_auto) return o->weights;
  for (u32 i = 0; i < n; i++)
    for (BufId b = 1; b < body[i].p->buf.n; b++) {
      const Buf *x = prog_buf(body[i].p, b);
      if (x->space == BS_const && !x->alias) bytes += tensor_bytes(x->data);
    }
  return bytes > o->literal_bytes ? WM_text : WM_literal;
}

static void add_part(Multi *m, Made *made, bool dot4) {
  const Target *t = made->e->o->target;
  Part part = {.made = made, .name = dot4 ? NULL : t->name, .features = t->features, .dot4 = dot4};
  if (dot4) {
    part.features = str_text(m->c, str_fmt(m->c, "%s,%s", t->features, t->dot4));
    part.name = t->dot4;
  }
  if (!m->npart) part.features = "";
  m->part[m->npart++] = part;
}

/* In front of all bodies. */
static void put_head(Multi *m, Text *t) {
  Emit *threaded = m->made[0].e;
  for (u32 i = 0; i < m->nmade; i++)
    if (m->made[i].e->nshared) threaded = m->made[i].e;
  put_prelude(m->made[0].e, t);
  put_thread_headers(threaded, t);
  put_has(m, t);
  put_quiet(t);
  put_includes(m, t);
  put_split(m->made[0].e, t, text_cstr(&m->made[0].upper));
  put_part_begin(m->made[0].e, t, 0);
  put_pool(m, t);
  put_part_end(m->made[0].e, t);
}

EmitFacts emit_bodies(const EmitBody *body, u32 n, const EmitOptions *o, Text *c_text, Text *h_text,
                      Blob *blob) {
  Ctx *c = body[0].p->c;
  EmitOptions *each = NEWS(&c->keep, EmitOptions, n);
  Multi *m = NEW(&c->keep, Multi);
  Prog *progs[BODIES];
  if (!n || n > BODIES)
    fail(c, ERR_unsupported, LOC_NONE, "%u bodies; there are 1 to %d", n, BODIES);
  *m = (Multi){.c = c, .o = o, .pool = {.at = map_new(&c->keep)}};
  for (u32 i = 0; i < n; i++) {
    each[i] = *o;
    each[i].target = body[i].target;
    each[i].selftest = body[i].selftest;
    each[i].weights = weight_form(body, n, o);
    progs[i] = body[i].p;
  }
  if (n == 1) return emit_c(body[0].p, &each[0], c_text, h_text, blob);
  bool apart = o->weights == WM_file || o->weights == WM_pointer;
  if (apart) begin_blob(blob);
  for (u32 i = 0; i < n; i++) {
    Made *f = &m->made[m->nmade++];
    *f = made_begin(body[i].p, &each[i], &m->pool, i);
    made_entry(f, blob);
    add_part(m, f, false);
    if (i && f->e->dot4 && *body[i].target->dot4) add_part(m, f, true);
  }
  if (apart) end_blob(m->made[0].e, blob);
  check_alike(m);
  mark_weights(m);
  EmitFacts facts = most(m);
  Made *first = &m->made[0];
  put_banner(first->e, h_text, ".h");
  put_declarations(first, h_text, &facts);
  put_banner(first->e, c_text, ".c");
  put_declarations(first, c_text, &facts);
  put_head(m, c_text);
  for (u32 i = 0; i < m->npart; i++) put_part(m, c_text, &m->part[i]);
  put_part_begin(first->e, c_text, 0);
  put_choice(m, c_text);
  put_ways(m, c_text);
  if (o->caller) put_caller(first->e, c_text, progs, n, facts.arena_bytes);
  put_part_end(first->e, c_text);
  put_end(c_text);
  return facts;
}
