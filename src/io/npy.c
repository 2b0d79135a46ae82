/* npy.c: .npy files, one tensor after a header with a Python dictionary.
 *
 * Versions 1 to 3, either byte order, either memory order. The header parser expects the three keys
 * in any order, each once. The result is a row-major native tensor; native bytes are used in place.
 * Structured and object arrays are refused. Strings (S, U) become interned UTF-8.
 */
#include "io/data.h"
#include "io/wire.h"
#include <stdio.h>
#include <string.h>

typedef struct Npy {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *at; /* the header text; then the data */
  size_t n, pos;
  char kind;  /* f i u b c S U V */
  char order; /* < > | = */
  u64 size;   /* number in the type code */
  bool fortran;
  i64 dim[MAX_RANK];
  u32 rank;
  u64 count; /* elements */
  u32 seen;  /* bit per key */
} Npy;

static const u8 magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static _Noreturn void bad(const Npy *p, const char *what) {
  fail(p->c, ERR_input, p->loc, "npy header, character %zu: %s", p->pos, what);
}

static char peek(Npy *p) {
  while (p->pos < p->n && (p->at[p->pos] == ' ' || p->at[p->pos] == '\n')) p->pos++;
  return p->pos < p->n ? (char)p->at[p->pos] : 0;
}

static bool accept(Npy *p, char ch) {
  if (peek(p) != ch || p->pos >= p->n) return false;
  p->pos++;
  return true;
}

static void expect(Npy *p, char ch) {
  char text[] = "expected '?'";
  text[10] = ch;
  if (!accept(p, ch)) bad(p, text);
}

/* A quoted word; headers do not contain escapes. */
static FileSpan word(Npy *p) {
  char quote = peek(p);
  if (quote != '\'' && quote != '"') bad(p, "expected a string");
  size_t start = ++p->pos;
  while (p->pos < p->n && p->at[p->pos] != (u8)quote) p->pos++;
  if (p->pos >= p->n) bad(p, "the string does not end");
  return (FileSpan){p->at + start, p->pos++ - start};
}

static bool is_word(FileSpan s, const char *text) {
  return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

static u64 number(Npy *p, const u8 *at, size_t n, size_t *used) {
  u64 x = 0;
  size_t i = 0;
  for (; i < n && at[i] >= '0' && at[i] <= '9'; i++)
    if (!size_mul(x, 10, &x) || !size_add(x, (u64)(at[i] - '0'), &x))
      bad(p, "expected a number below 2^64");
  if (i == 0) bad(p, "expected a number");
  *used = i;
  return x;
}

/* A type such as '<f4'. */
static void read_descr(Npy *p) {
  if (peek(p) == '[')
    fail(p->c, ERR_unsupported, p->loc, "npy: structured arrays are not supported");
  FileSpan s = word(p);
  size_t i = 0, used = 0;
  p->order = '=';
  if (i < s.n && (s.at[i] == '<' || s.at[i] == '>' || s.at[i] == '|' || s.at[i] == '='))
    p->order = (char)s.at[i++];
  if (i < s.n) p->kind = (char)s.at[i++];
  if (p->kind == 'O')
    fail(p->c, ERR_unsupported, p->loc, "npy: arrays of Python objects are not supported");
  p->size = number(p, s.at + i, s.n - i, &used);
  if (i + used != s.n) bad(p, "expected a type such as '<f4'");
}

static void read_shape(Npy *p) {
  expect(p, '(');
  while (!accept(p, ')')) {
    size_t used = 0;
    peek(p);
    u64 x = number(p, p->at + p->pos, p->n - p->pos, &used);
    p->pos += used;
    accept(p, 'L'); /* long suffix of Python 2 */
    if (p->rank == MAX_RANK)
      fail(p->c, ERR_unsupported, p->loc, "npy: rank above %d is not supported", MAX_RANK);
    if (x > (u64)DIM_MAX) bad(p, "extent too large");
    p->dim[p->rank++] = (i64)x;
    if (!accept(p, ',') && peek(p) != ')') bad(p, "expected ',' or ')'");
  }
}

static void read_bool(Npy *p) {
  peek(p);
  size_t left = p->n - p->pos;
  p->fortran = left >= 4 && memcmp(p->at + p->pos, "True", 4) == 0;
  if (!p->fortran && (left < 5 || memcmp(p->at + p->pos, "False", 5) != 0))
    bad(p, "expected True or False");
  p->pos += p->fortran ? 4 : 5;
}

static void read_header(Npy *p) {
  expect(p, '{');
  while (!accept(p, '}')) {
    FileSpan key = word(p);
    u32 k = is_word(key, "descr")           ? 1
            : is_word(key, "fortran_order") ? 2
            : is_word(key, "shape")         ? 4
                                            : 0;
    if (k == 0 || (p->seen & k)) bad(p, "unknown or repeated key");
    p->seen |= k;
    expect(p, ':');
    if (k == 1)
      read_descr(p);
    else if (k == 2)
      read_bool(p);
    else
      read_shape(p);
    if (!accept(p, ',') && peek(p) != '}') bad(p, "expected ',' or '}'");
  }
  if (p->seen != 7) bad(p, "descr, fortran_order or shape is missing");
  peek(p);
  if (p->pos != p->n) bad(p, "text after the dictionary");
  if (!shape_count(p->dim, p->rank, &p->count))
    fail(p->c, ERR_input, p->loc, "npy: more than 2^40 elements");
}

/* Splits the file: p->at becomes the header text. Returns the data. */
static FileSpan open_file(Npy *p, const u8 *at, size_t n) {
  if (n < 10 || memcmp(at, magic, 6) != 0)
    fail(p->c, ERR_input, p->loc, "not an npy file: no \\x93NUMPY at its start");
  u32 major = at[6], wide = major == 1 ? 2 : 4;
  if (major < 1 || major > 3)
    fail(p->c, ERR_unsupported, p->loc, "npy version %u.%u, expected 1 to 3", major, (u32)at[7]);
  if (n < 8 + wide) fail(p->c, ERR_input, p->loc, "npy: the header is cut off");
  u64 len = 0;
  for (u32 i = 0; i < wide; i++) len |= (u64)at[8 + i] << (8 * i);
  size_t head = 8 + wide;
  if (len > n - head) fail(p->c, ERR_input, p->loc, "npy: the header is cut off");
  p->at = at + head;
  p->n = (size_t)len;
  return (FileSpan){p->at + p->n, n - head - p->n};
}

/* The element type, or DT_none. */
static DType find_dtype(const Npy *p, DType as) {
  static const struct {
    char kind;
    u8 size, dt;
  } row[] = {
      {'f', 8, DT_f64}, {'f', 4, DT_f32},  {'f', 2, DT_f16}, {'i', 8, DT_i64},   {'i', 4, DT_i32},
      {'i', 2, DT_i16}, {'i', 1, DT_i8},   {'u', 8, DT_u64}, {'u', 4, DT_u32},   {'u', 2, DT_u16},
      {'u', 1, DT_u8},  {'b', 1, DT_bool}, {'c', 8, DT_c64}, {'c', 16, DT_c128},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    if (row[i].kind == p->kind && row[i].size == p->size) return (DType)row[i].dt;
  if (p->kind == 'S' || p->kind == 'U') return DT_str;
  bool nameless = as == DT_bf16 || (dtype_bytes(as) == 1 && dtype_is_float(as)) ||
                  (dtype_info[as].bits < 8 && dtype_is_int(as));
  if (p->kind == 'V' && nameless && dtype_bytes(as) == p->size) return as;
  return DT_none;
}

/* Converts column-major elements of `size` bytes to row-major order. */
static const u8 *transpose(const Npy *p, const u8 *from, size_t size) {
  u8 *to = arena_array(p->a, (size_t)p->count, size);
  u64 stride[MAX_RANK], idx[MAX_RANK] = {0}, src = 0, step = 1;
  for (u32 d = 0; d < p->rank; d++) {
    stride[d] = step;
    step *= (u64)p->dim[d]; /* at most count */
  }
  for (u64 i = 0; i < p->count; i++) {
    memcpy(to + i * size, from + src * size, size);
    for (u32 d = p->rank; d-- > 0;) {
      src += stride[d];
      if (++idx[d] < (u64)p->dim[d]) break;
      src -= stride[d] * (u64)p->dim[d];
      idx[d] = 0;
    }
  }
  return to;
}

/* Encodes a UCS-4 character as UTF-8. Returns its length, or 0 if invalid. */
static u32 put_utf8(char *to, u32 ch) {
  if (ch > 0x10ffff || (ch >= 0xd800 && ch < 0xe000)) return 0;
  u32 n = ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
  static const u8 lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (u32 i = n; i-- > 1; ch >>= 6) to[i] = (char)(0x80 | (ch & 0x3f));
  to[0] = (char)(lead[n] | ch);
  return n;
}

static Str read_ucs4(const Npy *p, const u8 *at, size_t n, bool big, StrBuf *t) {
  t->n = 0;
  for (size_t i = 0; i < n; i++, at += 4) {
    u32 ch = big ? (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3]
                 : (u32)at[3] << 24 | (u32)at[2] << 16 | (u32)at[1] << 8 | at[0];
    char utf8[4];
    u32 len = put_utf8(utf8, ch);
    if (len == 0) fail(p->c, ERR_input, p->loc, "npy: invalid character U+%X", ch);
    sb_put(t, utf8, len);
  }
  while (t->n > 0 && t->at[t->n - 1] == 0) t->n--;
  return str_intern(p->c, t->at, t->n);
}

/* Fixed-width strings, NUL-padded. */
static Tensor *read_strings(const Npy *p, const u8 *at, bool big) {
  u64 width = p->kind == 'U' ? 4 * p->size : p->size;
  /* Elements of width 0 take no bytes, so the file size does not bound their number. */
  if (p->size == 0 && p->count > 65536)
    fail(p->c, ERR_unsupported, p->loc, "npy: %llu strings of width 0, expected at most 65536",
         (unsigned long long)p->count);
  Tensor *t = tensor_new(p->a, DT_str, p->dim, p->rank);
  StrBuf text = sb_new(p->a);
  for (u64 i = 0; i < p->count; i++, at += width) {
    Str s;
    if (p->kind == 'U') {
      s = read_ucs4(p, at, (size_t)p->size, big, &text);
    } else {
      size_t len = (size_t)width;
      while (len > 0 && at[len - 1] == 0) len--;
      s = str_intern(p->c, at, len);
    }
    memcpy((u8 *)(uintptr_t)t->data + i * sizeof s, &s, sizeof s);
  }
  return t;
}

/* One byte per element; unused high bits are dropped. */
static Tensor *read_small(const Npy *p, DType dt, const u8 *at) {
  Tensor *t = tensor_new(p->a, dt, p->dim, p->rank);
  u32 bits = dtype_info[dt].bits, sign = dtype_is_signed(dt) ? 1u << (bits - 1) : 0;
  u8 *to = (u8 *)(uintptr_t)t->data;
  for (u64 i = 0; i < p->count; i++) to[i] = (u8)(((at[i] & ((1u << bits) - 1)) ^ sign) - sign);
  return t;
}

Tensor *data_read_npy_as(Ctx *c, const u8 *at, size_t n, DType as, Loc loc, Arena *a) {
  Npy p = {.c = c, .a = a, .loc = loc};
  FileSpan data = open_file(&p, at, n);
  read_header(&p);
  DType dt = find_dtype(&p, as);
  if (dt == DT_none)
    fail(c, ERR_unsupported, loc, "npy: no element type for kind '%c' of %llu bytes%s",
         p.kind > ' ' && p.kind < 127 ? p.kind : '?', (unsigned long long)p.size,
         p.kind == 'V' ? " (numpy does not say what it holds)" : "");
  u64 width = p.size, bytes;
  if ((p.kind == 'U' && !size_mul(p.size, 4, &width)) || !size_mul(p.count, width, &bytes) ||
      bytes != data.n)
    fail(c, ERR_input, loc, "npy: %zu bytes of data, expected %llu elements of %llu bytes", data.n,
         (unsigned long long)p.count, (unsigned long long)width);
  const u8 *elems = data.at;
  if (p.fortran && p.rank > 1 && p.count > 0 && width > 0)
    elems = transpose(&p, elems, (size_t)width);
  bool big = p.order == '>' || (p.order == '=' && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
  if (dt == DT_str) return read_strings(&p, elems, big);
  if (dtype_info[dt].bits < 8 && dt != DT_bool) return read_small(&p, dt, elems);
  return data_from_bytes(a, dt, p.dim, p.rank, elems, big);
}

Tensor *data_read_npy(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a) {
  return data_read_npy_as(c, at, n, DT_none, loc, a);
}

/* ---- writing ---- */

/* Decodes the UTF-8 character at s. Returns its length, or 0 if malformed. */
static u32 get_utf8(const u8 *s, size_t n, u32 *ch) {
  u32 len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
  if (len == 0 || len > n || s[0] > 0xf4) return 0;
  *ch = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
  for (u32 i = 1; i < len; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    *ch = *ch << 6 | (s[i] & 0x3f);
  }
  char back[4];
  return put_utf8(back, *ch) == len ? len : 0; /* reject overlong forms */
}

static Str str_at(const Tensor *t, u64 i) {
  return (Str)tensor_get(t, i).i;
}

/* Length of the longest string in characters; false if one is not UTF-8. */
static bool count_chars(const Ctx *c, const Tensor *t, u64 *most) {
  *most = 1;
  for (u64 i = 0; i < t->n; i++) {
    const u8 *s = (const u8 *)str_text(c, str_at(t, i));
    size_t n = str_len(c, str_at(t, i));
    u64 chars = 0;
    for (u32 len, ch; n > 0; s += len, n -= len, chars++)
      if ((len = get_utf8(s, n, &ch)) == 0) return false;
    if (chars > *most) *most = chars;
  }
  return true;
}

static void put_strings(const Ctx *c, StrBuf *out, const Tensor *t, bool is_utf8, u64 width) {
  static const u8 zero[4] = {0};
  for (u64 i = 0; i < t->n; i++) {
    const u8 *s = (const u8 *)str_text(c, str_at(t, i));
    size_t n = str_len(c, str_at(t, i));
    u64 k = 0;
    if (!is_utf8) sb_put(out, s, n), k = n;
    for (u32 ch = 0; is_utf8 && n > 0; k++) {
      u32 len = get_utf8(s, n, &ch);
      u8 le[4] = {(u8)ch, (u8)(ch >> 8), (u8)(ch >> 16), 0};
      sb_put(out, le, 4);
      s += len, n -= len;
    }
    for (; k < width; k++) sb_put(out, zero, is_utf8 ? 4 : 1);
  }
}

static void put_header(StrBuf *out, const char *descr, const Tensor *t) {
  char head[512];
  size_t n = (size_t)snprintf(head, sizeof head,
                              "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (u32 i = 0; i < t->rank; i++)
    n += (size_t)snprintf(head + n, sizeof head - n, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
  n += (size_t)snprintf(head + n, sizeof head - n, "%s), }", t->rank == 1 ? "," : "");
  /* The data starts at a multiple of 64 bytes. 11 bytes: magic, version, length, newline. */
  while ((n + 11) % 64 != 0) head[n++] = ' ';
  head[n++] = '\n';
  u8 fixed[4] = {1, 0, (u8)n, (u8)(n >> 8)};
  sb_put(out, magic, sizeof magic);
  sb_put(out, fixed, sizeof fixed);
  sb_put(out, head, n);
}

void data_write_npy(Ctx *c, StrBuf *out, const Tensor *t) {
  char descr[32];
  u32 size = dtype_bytes(t->dt);
  const DTypeInfo *info = &dtype_info[t->dt];
  if (t->rank > MAX_RANK)
    fail(c, ERR_unsupported, LOC_NONE, "npy: rank above %d is not supported", MAX_RANK);
  if (t->dt == DT_str) {
    u64 width = 1, bytes;
    bool is_utf8 = count_chars(c, t, &width);
    for (u64 i = 0; i < t->n && !is_utf8; i++)
      if (str_len(c, str_at(t, i)) > width) width = str_len(c, str_at(t, i));
    /* Padding to the longest string can exceed the strings by far. */
    if (!size_mul(width, 4, &bytes) || !size_mul(bytes, t->n, &bytes) || bytes >> 32)
      fail(c, ERR_unsupported, LOC_NONE,
           "npy: strings padded to equal length take more than 4 GiB");
    snprintf(descr, sizeof descr, "%s%llu", is_utf8 ? "<U" : "|S", (unsigned long long)width);
    put_header(out, descr, t);
    put_strings(c, out, t, is_utf8, width);
    return;
  }
  bool nameless =
      t->dt == DT_bf16 || (size == 1 && (info->cls == 'F' || (info->bits < 8 && info->cls != 'B')));
  char kind = nameless           ? 'V'
              : info->cls == 'F' ? 'f'
              : info->cls == 'I' ? 'i'
              : info->cls == 'U' ? 'u'
              : info->cls == 'B' ? 'b'
                                 : 'c';
  char order = size == 1 ? '|' : __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? '>' : '<';
  snprintf(descr, sizeof descr, "%c%c%u", order, kind, size);
  put_header(out, descr, t);
  if (t->n > 0) sb_put(out, t->data, tensor_bytes(t));
}
