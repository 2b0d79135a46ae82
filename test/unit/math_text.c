/* The parts of mathlib*.h: every part needs exactly the parts whose names occur in it, and they
 * stand above it. The steps of quick.def: each uses steps above it. With arguments, prints the text
 * of the parts named, for test/suite/math.py. */
#include "check.h"
#include "ir/math/quick.h"

#include <ctype.h>
#include <string.h>

static const char *const names[] = {"exp",   "log",   "sin",  "cos",  "tan",  "asin",
                                    "acos",  "atan",  "sinh", "cosh", "tanh", "asinh",
                                    "acosh", "atanh", "erf",  "pow",  "fmod", "floor",
                                    "ceil",  "trunc", "rint", "sqrt", "fma",  "mod"};

static const char *const others[] = {"expq", "exp_p1u",  "exp_nonposu", "logq", "sinq",
                                     "cosq", "gelu_x2q", "gelu_x2u",    "exps", "gelu_x2s",
                                     "sins", "coss",     "tanhs"};

static bool lists(const char *needs, const char *name, size_t n) {
  for (const char *s = needs; *s != '*'; s++)
    if (s[-1] == ' ' && !memcmp(s, name, n) && (s[n] == ' ' || s[n] == '*')) return true;
  return false;
}

/* The part that defines an identifier im_x is x; imk_x is its own part. */
static bool known(const char *id, size_t n, char *part) {
  if (n < 4 || n > 60 || memcmp(id, "im", 2)) return false;
  size_t skip = id[2] == '_' ? 3 : 0;
  memcpy(part, id + skip, n - skip);
  part[n - skip] = 0;
  return skip || !memcmp(id, "imk_", 4);
}

static void check_part(const char *name, int depth) {
  size_t n;
  Quick q;
  if (quick_find(&q, name)) {
    CHECK(q.n <= QUICK_STEPS && q.result == q.n - 1);
    for (u32 i = 0; i < q.n; i++) {
      const QuickStep *s = &q.step[i];
      const char *part = s->op == QO_call ? s->text : quick_function(s->op);
      for (u32 k = 0; k < s->n; k++) CHECK(s->arg[k] < i);
      if (part) check_part(part, depth + 1);
    }
    return;
  }
  const char *needs, *text = mathlib_text(name, &n, &needs);
  if (!CHECK(text && depth < 20)) return;
  for (size_t i = 0; i < n; i++) { /* identifiers outside comments */
    if (text[i] == '/' && text[i + 1] == '*') i = (size_t)(strstr(text + i, "*/") - text);
    if (!isalpha((unsigned char)text[i])) continue;
    size_t len =
        strspn(text + i, "abcdefghijklmnopqrstuvwxyz0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    char part[64];
    if (known(text + i, len, part) && strcmp(part, name) != 0) {
      size_t m;
      const char *more, *other = mathlib_text(part, &m, &more);
      if (!CHECK((other || quick_find(&q, part)) && lists(needs, part, strlen(part))))
        fprintf(stderr, "%s uses %s\n", name, part);
    }
    i += len;
  }
  char list[512] = "", *end;
  size_t len = strcspn(needs, "*");
  if (!CHECK(len < sizeof list)) return;
  memcpy(list, needs, len);
  for (char *s = strtok_r(list, " ", &end); s; s = strtok_r(NULL, " ", &end)) {
    char id[80];
    snprintf(id, sizeof id, "%s%s", strncmp(s, "imk_", 4) ? "im_" : "", s);
    if (!CHECK(strstr(text, id) && strstr(text, id) < text + n))
      fprintf(stderr, "%s: %s unused\n", name, s);
    check_part(s, depth + 1);
  }
}

static void write_out(Ctx *c, void *arg) {
  char **argv = arg;
  StrBuf t = sb_new(&c->scratch), all = sb_new(&c->scratch);
  for (int i = 1; argv[i]; i++) sb_puts(&t, argv[i]), sb_puts(&t, " ");
  mathlib_write(&all, sb_cstr(&t), "", MATHLIB_FMA);
  fwrite(all.at, 1, all.n, stdout);
}

int main(int argc, char **argv) {
  Ctx *c = ctx_new(NULL, NULL);
  if (argc > 1) CHECK(ctx_protect(c, write_out, argv) == ERR_ok);
  for (size_t i = 0; argc == 1 && i < sizeof names / sizeof *names; i++) {
    char f[16];
    snprintf(f, sizeof f, "%sf", names[i]);
    check_part(names[i], 0), check_part(f, 0);
  }
  for (size_t i = 0; argc == 1 && i < sizeof others / sizeof *others; i++) check_part(others[i], 0);
  size_t n;
  const char *needs;
  CHECK(!mathlib_text("imk", &n, &needs) && !mathlib_text("", &n, &needs));
  ctx_free(c);
  return check_end();
}
