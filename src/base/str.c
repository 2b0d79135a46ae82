/* Interned byte strings and growable text.
 *
 * A Str is an index into a table in c->keep; equal bytes have the same index, so strings compare as
 * numbers. Indices follow the order of first use and never depend on hashing. Text grows in an
 * arena by doubling. Quoted text is pure ASCII. sb_unquote is the exact inverse of sb_quote and
 * also accepts UTF-8. */
#include "base/base_own.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct StrEntry {
  const char *at; /* NUL-terminated, in c->keep */
  size_t n;
  u64 hash;
} StrEntry;

typedef struct StrTab StrTab;
struct StrTab {
  VEC(StrEntry) list; /* by Str */
  u32 *slot;          /* open addressing: Str + 1, 0 when free */
  u32 cap;            /* power of two */
};

static void rehash(Ctx *c, StrTab *t, u32 cap) {
  u32 *slot = NEWS(&c->keep, u32, cap);
  for (u32 i = 0; i < t->list.n; i++) {
    u32 at = (u32)t->list.at[i].hash & (cap - 1);
    while (slot[at]) at = (at + 1) & (cap - 1);
    slot[at] = i + 1;
  }
  t->slot = slot;
  t->cap = cap;
}

void strs_init(Ctx *c) {
  StrTab *t = NEW(&c->keep, StrTab);
  rehash(c, t, 64);
  c->strs = t;
  str_intern(c, "", 0);
}

Str str_intern(Ctx *c, const void *at, size_t n) {
  StrTab *t = c->strs;
  if (n == 0) at = "";
  u64 hash = hash_bytes(at, n);
  u32 i = (u32)hash & (t->cap - 1);
  for (; t->slot[i]; i = (i + 1) & (t->cap - 1)) {
    const StrEntry *e = &t->list.at[t->slot[i] - 1];
    if (e->hash == hash && e->n == n && memcmp(e->at, at, n) == 0) return t->slot[i] - 1;
  }
  if (n == SIZE_MAX || t->cap > UINT32_MAX / 4)
    fail(c, ERR_system, LOC_NONE, "out of memory (string of %zu bytes)", n);
  /* All allocations come before the table changes. */
  char *copy = arena_alloc(&c->keep, n + 1);
  memcpy(copy, at, n);
  if (t->list.n >= t->cap / 2) {
    rehash(c, t, t->cap * 2);
    i = (u32)hash & (t->cap - 1);
    while (t->slot[i]) i = (i + 1) & (t->cap - 1);
  }
  *vec_push(&c->keep, &t->list) = (StrEntry){copy, n, hash};
  t->slot[i] = t->list.n;
  return t->list.n - 1;
}

Str str_of(Ctx *c, const char *cstr) {
  return cstr ? str_intern(c, cstr, strlen(cstr)) : 0;
}

/* The empty string works before the table exists: ctx_new may run out of memory. */
const char *str_text(const Ctx *c, Str s) {
  return c->strs && s < c->strs->list.n ? c->strs->list.at[s].at : "";
}

size_t str_len(const Ctx *c, Str s) {
  return c->strs && s < c->strs->list.n ? c->strs->list.at[s].n : 0;
}

bool str_is(const Ctx *c, Str s, const char *cstr) {
  size_t n = strlen(cstr);
  return str_len(c, s) == n && memcmp(str_text(c, s), cstr, n) == 0;
}

bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

StrBuf sb_new(Arena *a) {
  return (StrBuf){.a = a};
}

/* Makes room for n more bytes and a NUL. */
static void reserve(StrBuf *t, size_t n) {
  if (n < t->cap - t->n) return;
  u64 need;
  if (!size_add(t->n, n, &need) || !size_add(need, 1, &need) || need > SIZE_MAX / 2)
    fail(t->a->c, ERR_system, LOC_NONE, "out of memory (text of more than %zu bytes)", t->n);
  size_t cap = t->cap < 32 ? 64 : t->cap * 2;
  if (cap < need) cap = (size_t)need;
  t->at = t->cap ? arena_extend(t->a, t->at, t->cap, cap) : arena_alloc(t->a, cap);
  t->cap = cap;
}

void sb_put(StrBuf *t, const void *at, size_t n) {
  if (n == 0) return;
  reserve(t, n);
  memcpy(t->at + t->n, at, n);
  t->n += n;
}

void sb_rune(StrBuf *t, u32 x) {
  static const u8 lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  char b[4];
  u32 n = x < 0x80 ? 1 : x < 0x800 ? 2 : x < 0x10000 ? 3 : 4;
  for (u32 i = n; i-- > 1; x >>= 6) b[i] = (char)(0x80 | (x & 0x3f));
  b[0] = (char)(lead[n] | x);
  sb_put(t, b, n);
}

void sb_puts(StrBuf *t, const char *cstr) {
  sb_put(t, cstr, strlen(cstr));
}

void sb_upper(StrBuf *t, const char *s) {
  for (; *s; s++) sb_put(t, &(char){(char)toupper((unsigned char)*s)}, 1);
}

void sb_vfmt(StrBuf *t, const char *fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  reserve(t, 0);
  int n = vsnprintf(t->at + t->n, t->cap - t->n, fmt, args);
  if (n >= 0 && (size_t)n >= t->cap - t->n) {
    reserve(t, (size_t)n);
    n = vsnprintf(t->at + t->n, t->cap - t->n, fmt, again);
  }
  va_end(again);
  if (n < 0) fail(t->a->c, ERR_system, LOC_NONE, "vsnprintf cannot format a text of the library");
  t->n += (size_t)n;
}

void sb_fmt(StrBuf *t, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  sb_vfmt(t, fmt, args);
  va_end(args);
}

void sb_expand(StrBuf *t, const char *at, size_t n, PutVar *put, void *data) {
  for (const char *end = at + n, *s; at < end; at = s) {
    for (s = at; (s = memchr(s, '$', (size_t)(end - s))) && (end - s < 2 || s[1] != '{');) s++;
    const char *close = s ? memchr(s, '}', (size_t)(end - s)) : NULL;
    if (!close) s = end;
    bool escaped = s > at && s < end && s[-1] == '$';
    sb_put(t, at, (size_t)(s - at) - escaped);
    if (s == end) return;
    if (escaped)
      sb_puts(t, "${"), s += 2;
    else
      put(data, t, s + 2, (size_t)(close - s - 2)), s = close + 1;
  }
}

typedef struct VarTable {
  Ctx *c;
  const TemplateVar *var;
} VarTable;

static void put_var(void *data, StrBuf *t, const char *name, size_t n) {
  const VarTable *table = data;
  for (const TemplateVar *v = table->var; v->name; v++)
    if (strlen(v->name) == n && !memcmp(v->name, name, n)) {
      sb_puts(t, v->text);
      return;
    }
  internal_error(table->c, LOC_NONE, "template: ${%.*s} has no value", (int)n, name);
}

void sb_subst(Ctx *c, StrBuf *t, const char *at, size_t n, const TemplateVar *vars) {
  sb_expand(t, at, n, put_var, &(VarTable){c, vars});
}

const char *sb_cstr(StrBuf *t) {
  reserve(t, 0);
  t->at[t->n] = 0;
  return t->at;
}

static Str formatted(Ctx *c, const char *fmt, va_list args) {
  Mark m = arena_mark(&c->scratch);
  StrBuf t = sb_new(&c->scratch);
  sb_vfmt(&t, fmt, args);
  Str s = str_intern(c, t.at, t.n);
  arena_rewind(&c->scratch, m);
  return s;
}

Str str_fmt(Ctx *c, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  Str s = formatted(c, fmt, args);
  va_end(args);
  return s;
}

const char *fmt_text(Ctx *c, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  Str s = formatted(c, fmt, args);
  va_end(args);
  return str_text(c, s);
}

size_t json_char(const char *at, size_t n, bool page, char to[JSON_CHAR]) {
  u8 b = (u8)at[0];
  size_t k = utf8_bytes(at, n);
  bool line = k == 3 && b == 0xe2 && (u8)at[1] == 0x80 && ((u8)at[2] & 0xfe) == 0xa8;
  if (!k)
    snprintf(to, JSON_CHAR, "\\\\x%02x", b);
  else if (line) /* U+2028, U+2029: line terminators in old JavaScript */
    snprintf(to, JSON_CHAR, "\\u20%02x", (u8)at[2] - 0x80);
  else if (b == '"' || b == '\\')
    snprintf(to, JSON_CHAR, "\\%c", b);
  else if (b < 0x20 || b == 0x7f || (page && strchr("<>&", b)))
    snprintf(to, JSON_CHAR, "\\u%04x", b);
  else
    snprintf(to, JSON_CHAR, "%.*s", (int)k, at);
  return k ? k : 1;
}

static void put_json(StrBuf *t, const char *at, size_t n, bool page) {
  char one[JSON_CHAR];
  sb_puts(t, "\"");
  for (size_t i = 0; i < n;) {
    i += json_char(at + i, n - i, page, one);
    sb_puts(t, one);
  }
  sb_puts(t, "\"");
}

void sb_json(StrBuf *t, const char *at, size_t n) {
  put_json(t, at, n, false);
}

void sb_json_html(StrBuf *t, const char *at, size_t n) {
  put_json(t, at, n, true);
}

/* quoted: '"' { 0x20..0x7e except '"' and '\' | '\"' | '\\' | '\n' | '\x' hex hex } '"' */
void sb_quote(StrBuf *t, const char *at, size_t n) {
  static const char hex[] = "0123456789abcdef";
  sb_put(t, "\"", 1);
  for (size_t i = 0; i < n; i++) {
    u8 b = (u8)at[i];
    if (b == '"' || b == '\\') {
      sb_put(t, (char[]){'\\', (char)b}, 2);
    } else if (b == '\n') {
      sb_put(t, "\\n", 2);
    } else if (b < 0x20 || b > 0x7e) {
      sb_put(t, (char[]){'\\', 'x', hex[b >> 4], hex[b & 15]}, 4);
    } else {
      sb_put(t, &at[i], 1);
    }
  }
  sb_put(t, "\"", 1);
}

static int hex_digit(char ch) {
  if (ch >= '0' && ch <= '9') return ch - '0';
  if (ch >= 'a' && ch <= 'f') return ch - 'a' + 10;
  if (ch >= 'A' && ch <= 'F') return ch - 'A' + 10;
  return -1;
}

/* Well-formed: shortest forms only, no surrogates, at most U+10FFFF */
size_t utf8_bytes(const char *at, size_t n) {
  const u8 *p = (const u8 *)at;
  u8 b = n ? p[0] : 0xff;
  if (b < 0x80) return 1;
  size_t more = b >= 0xc2 && b <= 0xdf   ? 1
                : (b & 0xf0) == 0xe0     ? 2
                : b >= 0xf0 && b <= 0xf4 ? 3
                                         : 0;
  if (!more || more >= n) return 0;
  u8 lo = b == 0xe0   ? 0xa0
          : b == 0xf0 ? 0x90
                      : 0x80,
     hi = b == 0xed   ? 0x9f
          : b == 0xf4 ? 0x8f
                      : 0xbf;
  if (p[1] < lo || p[1] > hi) return 0;
  for (size_t i = 2; i <= more; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  return more + 1;
}

size_t utf8_bom(const void *at, size_t n) {
  return n >= 3 && !memcmp(at, "\xef\xbb\xbf", 3) ? 3 : 0;
}

bool utf8_valid(const char *at, size_t n) {
  for (size_t i = 0, k; i < n; i += k)
    if (!(k = utf8_bytes(at + i, n - i))) return false;
  return true;
}

/* Reads one ASCII byte of quoted text into *out; returns bytes consumed, 0 if malformed. */
static size_t unescape(const char *at, size_t n, char *out) {
  u8 b = (u8)at[0];
  if (b < 0x20 || b >= 0x7f) return 0;
  *out = at[0];
  if (b != '\\') return 1;
  if (n < 2) return 0;
  *out = at[1];
  if (at[1] == '"' || at[1] == '\\') return 2;
  *out = '\n';
  if (at[1] == 'n') return 2;
  if (at[1] != 'x' || n < 4) return 0;
  int hi = hex_digit(at[2]), lo = hex_digit(at[3]);
  if (hi < 0 || lo < 0) return 0;
  *out = (char)(hi << 4 | lo);
  return 4;
}

size_t sb_unquote(StrBuf *t, const char *at, size_t n) {
  size_t start = t->n;
  if (n == 0 || at[0] != '"') return 0;
  for (size_t i = 1; i < n;) {
    if (at[i] == '"') return i + 1;
    char ch;
    size_t wide = utf8_bytes(at + i, n - i);
    size_t used = wide > 1 ? wide : unescape(at + i, n - i, &ch);
    if (used == 0) break;
    sb_put(t, wide > 1 ? at + i : &ch, wide > 1 ? wide : 1);
    i += used;
  }
  t->n = start;
  return 0;
}
