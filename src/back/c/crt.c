/* crt.c: support code of a generated file: suffixes of names, snippets of crt.def, and functions of
 * ir/mathlib*.h. */
#include "back/c/c.h"

#include <string.h>

static const struct {
  const char *name, *needs, *text;
} snippets[] = {
#define RT(name, needs, text) {#name, needs, text},
#include "back/c/crt.def"
#undef RT
};

void c_need(Emit *e, RtSnippet n) {
  if (e->variant->need[n]) return;
  e->variant->need[n] = true;
  for (const char *s = snippets[n].needs; *s;) {
    size_t len = strcspn(s, " ");
    for (u32 i = 0; i < RT_COUNT; i++)
      if (strlen(snippets[i].name) == len && !memcmp(snippets[i].name, s, len))
        c_need(e, (RtSnippet)i);
    s += len + (s[len] == ' ');
  }
}

void put_template_text(Emit *e, StrBuf *t, const char *text) {
  sb_subst(e->c, t, text, strlen(text), e->vars);
}

void put_template(Emit *e, StrBuf *t, const char *fmt, ...) {
  Mark m = arena_mark(&e->c->scratch);
  StrBuf own = sb_new(&e->c->scratch);
  va_list args;
  put_template_text(e, &own, fmt);
  va_start(args, fmt);
  sb_vfmt(t, sb_cstr(&own), args);
  va_end(args);
  if (t->a != &e->c->scratch) arena_rewind(&e->c->scratch, m);
}

void put_runtime(Emit *e, StrBuf *out) {
  for (u32 i = 0; i < RT_COUNT; i++)
    if (e->variant->need[i]) put_template_text(e, out, snippets[i].text);
}

MathMode math_part(const Emit *e, Op op, DType dt) {
  return scalar_math_mode(e->p->math, op, dt);
}

const char *math_name(Ctx *c, Op op, MathMode part) {
  static const char *const suffix[] = {
      [MM_f] = "f", [MM_d] = "", [MM_q] = "q", [MM_u] = "u", [MM_s] = "s"};
  return str_text(c, str_fmt(c, "%s%s", op == OP_round ? "rint" : op_info[op].name, suffix[part]));
}

/* Functions with a target attribute need no test of the flags. */
static const char *fma_test(Emit *e) {
  const char *test = feature_test(e, "FMA");
  if (e->variant->vectors_only || strcmp(test, "1") != 0) return test;
  return has_vector_guard(e) ? str_text(e->c, str_fmt(e->c, "IG_VECTORS%s", e->vars[TV_sfx].text))
                             : MATHLIB_FMA;
}

void put_math(Emit *e, StrBuf *out) {
  StrBuf names = sb_new(&e->c->scratch);
  for (u32 op = 0; op < OP_SCALARS; op++)
    for (u32 part = 0; part < MM_COUNT; part++)
      if (e->variant->math[op][part] ||
          (part == MM_q && e->variant->math[op][MM_u] && has_fallback(e)))
        sb_fmt(&names, "%s ", math_name(e->c, (Op)op, (MathMode)part));
  if (names.n) mathlib_write(out, sb_cstr(&names), e->vars[TV_sfx].text, fma_test(e));
}

/* Keeps letters, digits and some marks; others could end the comment or control a terminal. */
enum { COMMENT_NAME = 200, COMMENT_LINE = 90 };

static void put_safe(StrBuf *t, const char *text, size_t max, size_t line) {
  size_t column = 0;
  for (size_t i = 0; i < max; i++, column++) {
    char ch = text[i];
    bool fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
                (ch && strchr(" _.:-,()[]+=", ch)) || (ch == '/' && (i == 0 || text[i - 1] != '*'));
    if (ch == '/' && i + 1 < max && (text[i + 1] == '*' || text[i + 1] == '/')) fine = false;
    if (line && ch == ' ' && column > line) {
      sb_puts(t, "\n *");
      column = 0;
    }
    sb_put(t, fine ? &ch : "_", 1);
  }
}

void put_comment(StrBuf *t, const char *text, size_t n) {
  put_safe(t, text, n < COMMENT_NAME ? n : COMMENT_NAME, 0);
}

void put_trailing_comment(Emit *e, StrBuf *t, Str name) {
  sb_puts(t, "/* ");
  put_comment(t, str_text(e->c, name), str_len(e->c, name));
  sb_puts(t, " */\n");
}

void put_label(StrBuf *t, const char *text, size_t n) {
  put_safe(t, text, n, COMMENT_LINE);
}

/* C99 guarantees 4095 characters per line; a character may become four. */
Str c_short_text(Ctx *c, Str s) {
  enum { MOST = 800, KEPT = 700 };
  if (str_len(c, s) <= MOST) return s;
  StrBuf t = sb_new(&c->scratch);
  sb_put(&t, str_text(c, s), KEPT);
  sb_fmt(&t, "...%016llx", (unsigned long long)hash_bytes(str_text(c, s), str_len(c, s)));
  return str_intern(c, t.at, t.n);
}

/* Three octal digits cannot absorb the next character; escaping '?' avoids trigraphs. */
void emit_string(StrBuf *t, const char *text, size_t n) {
  sb_puts(t, "\"");
  for (size_t i = 0; i < n; i++) {
    u8 ch = (u8)text[i];
    bool fine = ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\' && ch != '?';
    sb_fmt(t, fine ? "%c" : "\\%03o", ch);
  }
  sb_puts(t, "\"");
}
