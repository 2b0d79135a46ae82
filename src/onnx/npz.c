/* .npz: a zip archive whose members are .npy files.
 *
 * The central directory at the end is believed, each local header only checked against it. Members
 * are stored or deflated, and their CRC must hold. The sizes of all members together must fit in
 * the file, so that overlapping members cannot multiply the work; a deflated member may announce at
 * most 1032 times its compressed size, which is all deflate can do. Zip64 is read; encryption,
 * several disks and bytes in front of the archive are refused. Written archives are stored, dated
 * 1980-01-01, and never zip64.
 */
#include "onnx/data.h"
#include <string.h>

enum {
  SIG_LOCAL = 0x04034b50,
  SIG_CENTRAL = 0x02014b50,
  SIG_END = 0x06054b50,
  SIG_END64 = 0x06064b50,
  SIG_LOC64 = 0x07064b50,
  LEN_LOCAL = 30,
  LEN_CENTRAL = 46,
  LEN_END = 22,
  LEN_END64 = 56,
  LEN_LOC64 = 20,
  DATE_1980 = 0x21,
};

typedef struct Zip {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *at;
  size_t n;
  u64 inflated; /* bytes so far, of NPZ_MAX_BYTES */
  u64 claimed;  /* bytes of the file that members so far say they occupy */
  u32 crc[256];
} Zip;

typedef struct Member {
  Span name;
  u32 flags, method, crc;
  u64 packed, size, offset;
} Member;

static _Noreturn void bad(const Zip *z, const char *what) {
  fail(z->c, ERR_input, z->loc, "npz: %s", what);
}

/* Little-endian number of n bytes at a position the caller has checked. */
static u64 get(const u8 *p, u32 n) {
  u64 x = 0;
  for (u32 i = 0; i < n; i++) x |= (u64)p[i] << (8 * i);
  return x;
}

static void crc_table(u32 *table) {
  for (u32 i = 0; i < 256; i++) {
    u32 x = i;
    for (u32 k = 0; k < 8; k++) x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0);
    table[i] = x;
  }
}

static u32 crc_of(const u32 *table, const u8 *at, size_t n) {
  u32 x = 0xffffffffu;
  for (size_t i = 0; i < n; i++) x = x >> 8 ^ table[(x ^ at[i]) & 255];
  return ~x;
}

/* Position of the end record: the last one whose comment reaches exactly to the end. */
static size_t find_end(const Zip *z) {
  if (z->n < LEN_END) bad(z, "too short for a zip archive");
  size_t low = z->n - LEN_END > 65535 ? z->n - LEN_END - 65535 : 0;
  for (size_t p = z->n - LEN_END + 1; p-- > low;)
    if (get(z->at + p, 4) == SIG_END && get(z->at + p + 20, 2) == z->n - LEN_END - p) return p;
  bad(z, "no end record: not a zip archive, or cut off");
}

/* Where the central directory lies, and how many members it has. */
static Span find_directory(const Zip *z, u64 *count) {
  size_t end = find_end(z);
  const u8 *e = z->at + end;
  u64 n = get(e + 10, 2), size = get(e + 12, 4), at = get(e + 16, 4);
  if (get(e + 4, 2) != get(e + 6, 2) || get(e + 8, 2) != n) bad(z, "an archive on several disks");
  if (end >= LEN_LOC64 && get(e - LEN_LOC64, 4) == SIG_LOC64) {
    u64 p = get(e - LEN_LOC64 + 8, 8);
    if (p > end - LEN_LOC64 || end - LEN_LOC64 - p < LEN_END64 || get(z->at + p, 4) != SIG_END64)
      bad(z, "no zip64 end record where its locator points");
    n = get(z->at + p + 32, 8), size = get(z->at + p + 40, 8), at = get(z->at + p + 48, 8);
    end = (size_t)p;
  }
  if (at > end || size > end - at || n > size / LEN_CENTRAL)
    bad(z, "the central directory lies outside the archive");
  *count = n;
  return (Span){z->at + at, (size_t)size};
}

/* Sizes of 4 GiB and more are in an extra field, in this order, only those that do not fit. */
static void read_extra(const Zip *z, const u8 *at, size_t n, Member *m) {
  u64 *field[3] = {&m->size, &m->packed, &m->offset};
  while (n >= 4) {
    size_t id = (size_t)get(at, 2), len = (size_t)get(at + 2, 2);
    at += 4, n -= 4;
    if (len > n) bad(z, "an extra field reaches past its record");
    const u8 *p = at;
    size_t left = len;
    for (u32 i = 0; id == 1 && i < 3; i++) {
      if (*field[i] != 0xffffffffu) continue;
      if (left < 8) bad(z, "a zip64 field is missing");
      *field[i] = get(p, 8);
      p += 8, left -= 8;
    }
    at += len, n -= len;
  }
}

/* The next record of the central directory, which is cut off the front. */
static Member next_member(const Zip *z, Span *dir) {
  const u8 *p = dir->at;
  if (dir->n < LEN_CENTRAL || get(p, 4) != SIG_CENTRAL)
    bad(z, "no central record where one should be");
  Member m = {.flags = (u32)get(p + 8, 2),
              .method = (u32)get(p + 10, 2),
              .crc = (u32)get(p + 16, 4),
              .packed = get(p + 20, 4),
              .size = get(p + 24, 4),
              .offset = get(p + 42, 4)};
  size_t name = (size_t)get(p + 28, 2), extra = (size_t)get(p + 30, 2),
         note = (size_t)get(p + 32, 2);
  if (name + extra + note > dir->n - LEN_CENTRAL) bad(z, "a central record is cut off");
  m.name = (Span){p + LEN_CENTRAL, name};
  read_extra(z, p + LEN_CENTRAL + name, extra, &m);
  dir->at += LEN_CENTRAL + name + extra + note;
  dir->n -= LEN_CENTRAL + name + extra + note;
  return m;
}

/* The stored bytes of a member, as its local header delimits them. */
static Span locate(Zip *z, const Member *m) {
  if (m->offset > z->n || z->n - m->offset < LEN_LOCAL) bad(z, "a member lies outside the archive");
  const u8 *p = z->at + m->offset;
  size_t left = z->n - (size_t)m->offset - LEN_LOCAL;
  if (get(p, 4) != SIG_LOCAL) bad(z, "no local header where the directory says");
  size_t name = (size_t)get(p + 26, 2), extra = (size_t)get(p + 28, 2);
  if (name + extra > left || m->packed > left - name - extra)
    bad(z, "a member lies outside the archive");
  if (name != m->name.n || memcmp(p + LEN_LOCAL, m->name.at, name) != 0 ||
      get(p + 8, 2) != m->method)
    bad(z, "a local header contradicts the directory");
  if (!size_add(z->claimed, LEN_LOCAL + name + extra + m->packed, &z->claimed) || z->claimed > z->n)
    bad(z, "members overlap");
  return (Span){p + LEN_LOCAL + name + extra, (size_t)m->packed};
}

static Span unpack(Zip *z, const Member *m, Str name) {
  Span s = locate(z, m);
  if (m->flags & 1) fail(z->c, ERR_unsupported, z->loc, "npz: '%s' is encrypted", show(z->c, name));
  if (m->method == 0) {
    if (m->size != m->packed) bad(z, "a stored member with two sizes");
  } else if (m->method == 8) {
    u64 most, total;
    if (!size_mul(m->packed, 1032, &most) || m->size > most)
      bad(z, "a member claims an impossible size");
    if (!size_add(z->inflated, m->size, &total) || total > NPZ_MAX_BYTES)
      fail(z->c, ERR_unsupported, z->loc, "npz: more than %llu bytes after unpacking",
           (unsigned long long)NPZ_MAX_BYTES);
    z->inflated = total;
    u8 *to = arena_array(z->a, (size_t)m->size, 1);
    const char *why = inflate(s.at, s.n, to, (size_t)m->size);
    if (why) fail(z->c, ERR_input, z->loc, "npz: '%s': %s", show(z->c, name), why);
    s = (Span){to, (size_t)m->size};
  } else {
    fail(z->c, ERR_unsupported, z->loc, "npz: '%s' is packed by method %u, expected 0 or 8",
         show(z->c, name), m->method);
  }
  if (crc_of(z->crc, s.at, s.n) != m->crc)
    fail(z->c, ERR_input, z->loc, "npz: '%s' is damaged: wrong checksum", show(z->c, name));
  return s;
}

NamedVec data_read_npz(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a) {
  Zip z = {.c = c, .a = a, .loc = loc, .at = at, .n = n};
  NamedVec out = {0};
  u64 count;
  Map seen = map_new(&c->scratch);
  Span dir = find_directory(&z, &count);
  crc_table(z.crc);
  for (u64 i = 0; i < count; i++) {
    Member m = next_member(&z, &dir);
    if (m.name.n < 4 || memcmp(m.name.at + m.name.n - 4, ".npy", 4) != 0) continue;
    Str name = str_intern(c, m.name.at, m.name.n - 4);
    u32 *slot = map_put(&seen, name);
    if (*slot) fail(c, ERR_input, loc, "npz: two arrays are called '%s'", show(c, name));
    *slot = 1;
    Span data = unpack(&z, &m, name);
    Named *x = vec_push(a, &out);
    x->name = name;
    x->t = data_read_npy(c, data.at, data.n, loc, a);
  }
  if (dir.n != 0) bad(&z, "the central directory is longer than its records");
  return out;
}

/* ---- writing ---- */

static void put(Text *out, u64 x, u32 n) {
  u8 b[8];
  for (u32 i = 0; i < n; i++) b[i] = (u8)(x >> (8 * i));
  text_put(out, b, n);
}

/* What local and central records have in common. */
static void put_record(Text *out, const Member *m) {
  put(out, 20, 2);    /* version needed */
  put(out, 0x800, 2); /* names are UTF-8 */
  put(out, 0, 4);     /* stored; time 0:00 */
  put(out, DATE_1980, 2);
  put(out, m->crc, 4);
  put(out, m->packed, 4);
  put(out, m->size, 4);
  put(out, m->name.n + 4, 2);
  put(out, 0, 2); /* no extra field */
}

static void put_name(Text *out, const Member *m) {
  text_put(out, m->name.at, m->name.n);
  text_puts(out, ".npy");
}

void data_write_npz(Ctx *c, Text *out, const Str *name, Tensor *const *t, u32 n) {
  u32 crc[256];
  size_t start = out->n;
  Member *m = NEWS(&c->scratch, Member, n ? n : 1);
  crc_table(crc);
  if (n > 65534) fail(c, ERR_unsupported, LOC_NONE, "npz: %u arrays, at most 65534 fit", n);
  for (u32 i = 0; i < n; i++) {
    Text body = text_new(&c->scratch);
    data_write_npy(c, &body, t[i]);
    m[i].name = (Span){(const u8 *)str_text(c, name[i]), str_len(c, name[i])};
    m[i].packed = m[i].size = body.n;
    m[i].offset = out->n - start;
    if (m[i].name.n > 65000 || (m[i].size | m[i].offset) >> 32)
      fail(c, ERR_unsupported, LOC_NONE,
           "npz: more than 4 GiB, or a name of more than 65000 bytes");
    m[i].crc = crc_of(crc, (const u8 *)body.at, body.n);
    put(out, SIG_LOCAL, 4);
    put_record(out, &m[i]);
    put_name(out, &m[i]);
    text_put(out, body.at, body.n);
  }
  u64 dir = out->n - start;
  for (u32 i = 0; i < n; i++) {
    put(out, SIG_CENTRAL, 4);
    put(out, 20, 2); /* version made by */
    put_record(out, &m[i]);
    put(out, 0, 2); /* no comment */
    put(out, 0, 8); /* disk, attributes */
    put(out, m[i].offset, 4);
    put_name(out, &m[i]);
  }
  u64 size = out->n - start - dir;
  if ((dir | size) >> 32) fail(c, ERR_unsupported, LOC_NONE, "npz: more than 4 GiB");
  put(out, SIG_END, 4);
  put(out, 0, 4); /* disks */
  put(out, n, 2);
  put(out, n, 2);
  put(out, size, 4);
  put(out, dir, 4);
  put(out, 0, 2); /* no comment */
}
