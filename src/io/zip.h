/* zip.h: reads a zip archive in memory (.npz).
 *
 * The central directory is authoritative; local headers are only compared with it. Members are
 * stored or deflated and must match their CRC. All members together must fit in the file, so
 * overlapping members cannot multiply the work. A deflated member may announce at most 1032 times
 * its compressed size, the maximum of deflate. Archives that unpack to more than 256 MB and more
 * than 100 times their size are refused before memory is allocated. Zip64 is read. Encryption,
 * multiple disks and leading bytes are refused. The caller checks for duplicate names. C99 without
 * other ingot code: compiled here, and with tools/runner.c into every program of `ingot build`.
 * `inline` functions are not needed to list names only.
 */
#ifndef INGOT_ZIP_H
#define INGOT_ZIP_H

#include "io/inflate.h"

enum {
  ZIP_LOCAL = 0x04034b50,
  ZIP_CENTRAL = 0x02014b50,
  ZIP_END = 0x06054b50,
  ZIP_END64 = 0x06064b50,
  ZIP_LOC64 = 0x07064b50,
  ZIP_LOCAL_LEN = 30,
  ZIP_CENTRAL_LEN = 46,
  ZIP_END_LEN = 22,
  ZIP_END64_LEN = 56,
  ZIP_LOC64_LEN = 20,
};
/* Limits on the unpacked size of all compressed members of an archive. */
#define ZIP_MAX_BYTES  ((uint64_t)4 << 30)
#define ZIP_BOMB_BYTES ((uint64_t)256 << 20)
#define ZIP_BOMB_RATIO 100

typedef struct Zip {
  const uint8_t *at;
  size_t n;
  const uint8_t *dir; /* the rest of the central directory */
  size_t ndir;
  uint64_t count;    /* remaining members */
  uint64_t inflated; /* bytes so far, at most ZIP_MAX_BYTES */
  uint64_t claimed;  /* bytes of the file that members so far occupy */
  const char *why;   /* the first error */
  bool unsupported;  /* valid, but not supported */
  uint32_t crc[256];
} Zip;

typedef struct ZipMember {
  const uint8_t *name;
  size_t nname;
  uint32_t flags, method, crc;
  uint64_t packed, size, offset;
  const uint8_t *data; /* packed bytes; set by zip_locate */
} ZipMember;

static bool zip_wrong(Zip *z, const char *why) {
  if (!z->why) z->why = why;
  return false;
}

static bool zip_refuse(Zip *z, const char *why) {
  if (!z->why) z->unsupported = true;
  return zip_wrong(z, why);
}

/* Little-endian number of n bytes; the caller checks bounds. */
static uint64_t zip_get(const uint8_t *p, uint32_t n) {
  uint64_t x = 0;
  for (uint32_t i = 0; i < n; i++) x |= (uint64_t)p[i] << (8 * i);
  return x;
}

static void zip_crc_table(uint32_t *table) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t x = i;
    for (uint32_t k = 0; k < 8; k++) x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0);
    table[i] = x;
  }
}

static uint32_t zip_crc(const uint32_t *table, const uint8_t *at, size_t n) {
  uint32_t x = 0xffffffffu;
  for (size_t i = 0; i < n; i++) x = x >> 8 ^ table[(x ^ at[i]) & 255];
  return ~x;
}

/* Position of the end record: the last one whose comment ends with the file. */
static bool zip_find_end(Zip *z, size_t *end) {
  if (z->n < ZIP_END_LEN) return zip_wrong(z, "too short for a zip archive");
  size_t low = z->n - ZIP_END_LEN > 65535 ? z->n - ZIP_END_LEN - 65535 : 0;
  for (size_t p = z->n - ZIP_END_LEN + 1; p-- > low;) {
    if (zip_get(z->at + p, 4) != ZIP_END || zip_get(z->at + p + 20, 2) != z->n - ZIP_END_LEN - p)
      continue;
    *end = p;
    return true;
  }
  return zip_wrong(z, "no end record: not a zip archive, or cut off");
}

/* Finds the central directory. */
static bool zip_open(Zip *z, const uint8_t *file, size_t size) {
  size_t end = 0;
  memset(z, 0, sizeof *z);
  z->at = file;
  z->n = size;
  zip_crc_table(z->crc);
  if (!zip_find_end(z, &end)) return false;
  const uint8_t *e = z->at + end;
  uint64_t n = zip_get(e + 10, 2), bytes = zip_get(e + 12, 4), at = zip_get(e + 16, 4);
  if (zip_get(e + 4, 2) != zip_get(e + 6, 2) || zip_get(e + 8, 2) != n)
    return zip_wrong(z, "archives on several disks are not supported");
  if (end >= ZIP_LOC64_LEN && zip_get(e - ZIP_LOC64_LEN, 4) == ZIP_LOC64) {
    uint64_t p = zip_get(e - ZIP_LOC64_LEN + 8, 8);
    if (p > end - ZIP_LOC64_LEN || end - ZIP_LOC64_LEN - p < ZIP_END64_LEN ||
        zip_get(z->at + p, 4) != ZIP_END64)
      return zip_wrong(z, "no zip64 end record where its locator points");
    n = zip_get(z->at + p + 32, 8);
    bytes = zip_get(z->at + p + 40, 8);
    at = zip_get(z->at + p + 48, 8);
    end = (size_t)p;
  }
  if (at > end || bytes > end - at || n > bytes / ZIP_CENTRAL_LEN)
    return zip_wrong(z, "the central directory lies outside the archive");
  z->dir = z->at + at;
  z->ndir = (size_t)bytes;
  z->count = n;
  return true;
}

/* Zip64 extra field: 64-bit values, in this order, for fields that do not fit in 32 bits. */
static bool zip_read_extra(Zip *z, const uint8_t *at, size_t n, ZipMember *m) {
  uint64_t *field[3] = {&m->size, &m->packed, &m->offset};
  while (n >= 4) {
    size_t id = (size_t)zip_get(at, 2), len = (size_t)zip_get(at + 2, 2);
    at += 4, n -= 4;
    if (len > n) return zip_wrong(z, "an extra field reaches past its record");
    const uint8_t *p = at;
    size_t left = len;
    for (uint32_t i = 0; id == 1 && i < 3; i++) {
      if (*field[i] != 0xffffffffu) continue;
      if (left < 8) return zip_wrong(z, "a zip64 field is missing");
      *field[i] = zip_get(p, 8);
      p += 8, left -= 8;
    }
    at += len, n -= len;
  }
  return true;
}

/* The next member of the central directory. False at the end or after an error. */
static bool zip_next(Zip *z, ZipMember *m) {
  const uint8_t *p = z->dir;
  if (z->why) return false;
  if (!z->count)
    return z->ndir ? zip_wrong(z, "the central directory is longer than its records") : false;
  if (z->ndir < ZIP_CENTRAL_LEN || zip_get(p, 4) != ZIP_CENTRAL)
    return zip_wrong(z, "expected a central record, found something else");
  memset(m, 0, sizeof *m);
  m->flags = (uint32_t)zip_get(p + 8, 2);
  m->method = (uint32_t)zip_get(p + 10, 2);
  m->crc = (uint32_t)zip_get(p + 16, 4);
  m->packed = zip_get(p + 20, 4);
  m->size = zip_get(p + 24, 4);
  m->offset = zip_get(p + 42, 4);
  size_t name = (size_t)zip_get(p + 28, 2), extra = (size_t)zip_get(p + 30, 2),
         note = (size_t)zip_get(p + 32, 2), all = ZIP_CENTRAL_LEN + name + extra + note;
  if (all > z->ndir) return zip_wrong(z, "a central record is cut off");
  m->name = p + ZIP_CENTRAL_LEN;
  m->nname = name;
  if (!zip_read_extra(z, p + ZIP_CENTRAL_LEN + name, extra, m)) return false;
  z->dir += all;
  z->ndir -= all;
  z->count--;
  return true;
}

/* True for NAME.npy. */
static inline bool zip_is_npy(const ZipMember *m) {
  return m->nname >= 4 && !memcmp(m->name + m->nname - 4, ".npy", 4);
}

/* Sets m->data from the local header. */
static bool zip_find(Zip *z, ZipMember *m) {
  if (m->offset > z->n || z->n - m->offset < ZIP_LOCAL_LEN)
    return zip_wrong(z, "a member lies outside the archive");
  const uint8_t *p = z->at + m->offset;
  size_t left = z->n - (size_t)m->offset - ZIP_LOCAL_LEN;
  if (zip_get(p, 4) != ZIP_LOCAL) return zip_wrong(z, "no local header where the directory says");
  size_t name = (size_t)zip_get(p + 26, 2), extra = (size_t)zip_get(p + 28, 2);
  if (name + extra > left || m->packed > left - name - extra)
    return zip_wrong(z, "a member lies outside the archive");
  if (name != m->nname || memcmp(p + ZIP_LOCAL_LEN, m->name, name) != 0 ||
      zip_get(p + 8, 2) != m->method)
    return zip_wrong(z, "a local header contradicts the directory");
  /* no overflow: each is at most the file size */
  z->claimed += ZIP_LOCAL_LEN + name + extra + m->packed;
  if (z->claimed > z->n) return zip_wrong(z, "members overlap");
  m->data = p + ZIP_LOCAL_LEN + name + extra;
  return true;
}

/* Locates a member. True if zip_unpack may be called with memory for its size. */
static inline bool zip_locate(Zip *z, ZipMember *m) {
  if (!zip_find(z, m)) return false;
  if (m->flags & 1) return zip_refuse(z, "it is encrypted");
  if (m->method != 0 && m->method != 8)
    return zip_refuse(z, "it is packed by another method than 0 or 8");
  if (m->method == 0)
    return m->size == m->packed || zip_wrong(z, "a stored member has two different sizes");
  if (m->packed > UINT64_MAX / 1032 || m->size > m->packed * 1032)
    return zip_wrong(z, "a member claims an impossible size");
  if (m->size > ZIP_MAX_BYTES - z->inflated)
    return zip_refuse(z, "more than 4 GiB after unpacking");
  z->inflated += m->size;
  if (z->inflated > ZIP_BOMB_BYTES && z->inflated / ZIP_BOMB_RATIO > z->claimed)
    return zip_refuse(z, "more than 256 MB after unpacking, over 100 times the compressed size; "
                         "expected an archive that is stored, as numpy.savez writes it");
  return true;
}

/* Contents of a located member: in place if stored, else in `to`, which holds m->size bytes. NULL
 * after an error. */
static inline const uint8_t *zip_unpack(Zip *z, const ZipMember *m, uint8_t *to) {
  const uint8_t *at = m->method ? to : m->data;
  const char *why = NULL;
  if (m->method) why = inflate_all(m->data, (size_t)m->packed, to, (size_t)m->size);
  if (!why && zip_crc(z->crc, at, (size_t)m->size) != m->crc) why = "it is damaged: wrong checksum";
  if (!why) return at;
  zip_wrong(z, why);
  return NULL;
}

#endif
