/* cname.c: names in the generated C.
 *
 * In: labels of kernels and names of the program's variables, which may be any bytes. Out: short
 * unique identifiers that are not reserved by the language or a compiler.
 *
 * Kernels with equal text share one function, independent of loop names and of operands being
 * weights. A kernel is therefore written as a template, in which ${v1} stands for a variable and
 * ${p0} for a parameter. The names are filled in when the function is written. */
#include "back/c/c.h"

#include <string.h>

enum { BASE = 4 };

/* ---- kernels ---- */

const char *kernel_ident(Emit *e, Str label) {
  const char *s = str_text(e->c, label);
  StrBuf t = sb_new(&e->c->keep);
  for (; *s && *s != ' ' && t.n < KERNEL_LABEL_MAX; s++) {
    bool upper = *s >= 'A' && *s <= 'Z';
    if (upper || (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '_')
      sb_fmt(&t, "%c", upper ? *s - 'A' + 'a' : *s);
  }
  return t.n ? sb_cstr(&t) : "kernel";
}

void put_kernel_name(Emit *e, StrBuf *t, const char *prefix, u32 number) {
  put_template(e, t, "${name}_%s%s_%u${sfx}", prefix, e->variant->kernels.word.at[number], number);
}

/* ---- variables ---- */

static bool is_one_of(const char *name, const char *const *list, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (!strcmp(name, list[i])) return true;
  return false;
}

/* The name in the program without its numeric suffix. "" if C cannot use it: too long, not lower
 * case, a keyword or a macro of some compiler. */
static void base_name(Emit *e, VarId v, char base[BASE]) {
  static const char *const words[] = {"if",  "do",  "for", "int", "asm", "sun",
                                      "arm", "sgi", "vax", "job", "to",  "at"};
  const char *s = str_text(e->c, prog_var(e->p, v)->name);
  size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"), digits = strspn(s + n, "_0123456789");
  base[0] = 0;
  if (n >= BASE || s[n + digits]) return;
  memcpy(base, s, n);
  base[n] = 0;
  if (is_one_of(base, words, sizeof words / sizeof *words)) base[0] = 0;
}

static const char *mark(Emit *e, const char *name) {
  if (!e->in_kernel) return name;
  StrBuf t = sb_new(&e->c->scratch);
  sb_fmt(&t, "${v%u}", e->names.mark.n);
  *vec_push(&e->c->scratch, &e->names.mark) = name;
  return sb_cstr(&t);
}

const char *name_loop(Emit *e, VarId v) {
  static const char letters[] = "ijklmnopqr";
  /* names of parameters and, z, of the lane */
  static const char *const taken[] = {"x", "w", "b", "y", "s", "z"};
  char base[BASE];
  base_name(e, v, base);
  if (!*base || is_one_of(base, taken, sizeof taken / sizeof *taken)) {
    base[0] = letters[e->names.scope.n % (sizeof letters - 1)];
    base[1] = 0;
  }
  StrBuf t = sb_new(&e->c->scratch);
  sb_puts(&t, base);
  for (u32 k = 2; is_one_of(sb_cstr(&t), e->names.scope.at, e->names.scope.n); k++) {
    t.n = 0;
    sb_fmt(&t, "%s_%u", base, k);
  }
  *vec_push(&e->c->scratch, &e->names.scope) = sb_cstr(&t);
  return mark(e, sb_cstr(&t));
}

void name_end(Emit *e) {
  e->names.scope.n--;
}

const char *name_let(Emit *e, VarId v) {
  /* with a number these are used elsewhere in the file or by compilers */
  static const char *const own[] = {"a", "h", "i", "j", "m", "n", "q",
                                    "r", "s", "t", "w", "y", "in"};
  char base[BASE];
  base_name(e, v, base);
  bool fine = *base && !is_one_of(base, own, sizeof own / sizeof *own);
  StrBuf t = sb_new(&e->c->scratch);
  sb_fmt(&t, "%s%u", fine ? base : "v", e->b.nlet++);
  return mark(e, sb_cstr(&t));
}

/* ---- templates of kernels ---- */

void put_param_mark(StrBuf *t, u32 number) {
  sb_fmt(t, "${p%u}", number);
}

typedef struct Naming {
  const LocalNames *names;
  const char *const *param;
  size_t written, counted; /* bytes of names, in full and as they count */
} Naming;

static void put_name(void *data, StrBuf *t, const char *mark, size_t n) {
  Naming *x = data;
  bool is_of_param = *mark == 'p';
  u32 number = 0;
  for (size_t i = 1; i < n; i++) number = 10 * number + (u32)(mark[i] - '0');
  const char *name = is_of_param ? x->param[number] : x->names->mark.at[number], *end = name;
  sb_puts(t, name);
  while (*end >= 'a' && *end <= 'z') end++;
  x->counted += 1 + (is_of_param ? n - 1 : *end == '_' ? 0 : strlen(end));
  x->written += strlen(name);
}

u64 put_named(const LocalNames *names, StrBuf *t, const StrBuf *marked, const char *const *param) {
  Naming x = {names, param, 0, 0};
  size_t before = t->n;
  sb_expand(t, marked->at, marked->n, put_name, &x);
  return t->n - before - x.written + x.counted;
}
