/* image.c: reads images. Detects the format; decodes BMP, PNM and TIFF.
 *
 * In: the bytes of a file. Out: RGB pixels; alpha is dropped. Uncompressed BMP, PNM and TIFF are
 * decoded here, PNG in image_png.c. JPEG, JPEG 2000 and WebP need external libraries (build with
 * IMAGES=1, image_libs.c).
 */
#include "io/image.h"

#include <string.h>

_Noreturn void image_bad(const ImageFile *p, const char *why) {
  fail(p->c, ERR_input, p->loc, "%s", why);
}

_Noreturn void image_refuse(const ImageFile *p, const char *what) {
  fail(p->c, ERR_unsupported, p->loc, "%s is not supported", what);
}

/* ITU-R 601 luma, 16 fraction bits */
u8 image_grey(const u8 *rgb) {
  return (u8)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

Image image_new(const ImageFile *p, u64 width, u64 height) {
  if (!width || !height || width > IMAGE_SIDE || height > IMAGE_SIDE ||
      width * height > IMAGE_PIXELS)
    image_bad(p, "the image is empty or too large");
  return (Image){(u32)width, (u32)height, arena_alloc(p->a, (size_t)(width * height * 3))};
}

static void need(const ImageFile *p, size_t at, size_t n) {
  if (at > p->n || n > p->n - at) image_bad(p, "the image file is truncated");
}

u32 image_be(const ImageFile *p, size_t at, u32 n) {
  u32 x = 0;
  need(p, at, n);
  for (u32 i = 0; i < n; i++) x = x << 8 | p->at[at + i];
  return x;
}

static u32 image_le(const ImageFile *p, size_t at, u32 n) {
  u32 x = 0;
  need(p, at, n);
  for (u32 i = n; i > 0; i--) x = x << 8 | p->at[at + i - 1];
  return x;
}

/* ---- BMP: rows bottom to top, BGR, padded to four bytes ---- */

static Image read_bmp(const ImageFile *p) {
  u32 data = image_le(p, 10, 4), head = image_le(p, 14, 4), bits = image_le(p, 28, 2),
      packed = image_le(p, 30, 4), colors = image_le(p, 46, 4);
  i32 height = (i32)image_le(p, 22, 4);
  if (head < 40 || (packed && packed != 3))
    image_refuse(p, "compressed BMP, or BMP with an old header");
  if (bits != 8 && bits != 24 && bits != 32)
    image_refuse(p, "BMP with other than 8, 24 or 32 bits");
  Image m = image_new(p, image_le(p, 18, 4), height < 0 ? -(u64)(i64)height : (u64)height);
  size_t row = ((size_t)m.width * bits / 8 + 3) / 4 * 4, table = 14 + (size_t)head;
  need(p, data, row * m.height);
  for (u32 y = 0; y < m.height; y++) {
    const u8 *from = p->at + data + row * (height < 0 ? y : m.height - 1 - y);
    u8 *to = m.at + (size_t)y * m.width * 3;
    for (u32 x = 0; x < m.width; x++, to += 3) {
      const u8 *bgr = from + (size_t)x * (bits / 8);
      if (bits == 8) {
        if (*bgr >= (colors ? colors : 256)) image_bad(p, "a palette index is out of range");
        need(p, table + 4 * (size_t)*bgr, 4);
        bgr = p->at + table + 4 * (size_t)*bgr;
      }
      to[0] = bgr[2];
      to[1] = bgr[1];
      to[2] = bgr[0];
    }
  }
  return m;
}

/* ---- PNM: P5 grey and P6 RGB, sizes in decimal ---- */

static u32 pnm_number(const ImageFile *p, size_t *at) {
  u32 x = 0, digits = 0;
  for (;;) { /* skip blanks and comments */
    u32 ch = image_be(p, *at, 1);
    if (ch == '#')
      while (image_be(p, *at, 1) != '\n') (*at)++;
    else if (ch != ' ' && (ch < '\t' || ch > '\r'))
      break;
    (*at)++;
  }
  for (; *at < p->n && p->at[*at] >= '0' && p->at[*at] <= '9' && digits < 7; digits++)
    x = x * 10 + (u32)(p->at[(*at)++] - '0');
  if (!digits) image_bad(p, "expected a number in the PNM header");
  return x;
}

static Image read_pnm(const ImageFile *p) {
  size_t at = 2;
  u32 planes = p->at[1] == '6' ? 3 : 1, width = pnm_number(p, &at), height = pnm_number(p, &at);
  if (pnm_number(p, &at) != 255) image_refuse(p, "PNM with other than 255 levels");
  at++;
  Image m = image_new(p, width, height);
  size_t n = (size_t)width * height;
  need(p, at, n * planes);
  for (size_t i = 0; i < n * 3; i++) m.at[i] = p->at[at + (planes == 3 ? i : i / 3)];
  return m;
}

/* ---- TIFF: uncompressed strips, 8 bits, interleaved planes ---- */

typedef struct Tiff {
  const ImageFile *p;
  bool big;
  size_t entry; /* entry of the first directory */
  u32 entries;
} Tiff;

static u32 tiff_read(const Tiff *t, size_t at, u32 n) {
  return t->big ? image_be(t->p, at, n) : image_le(t->p, at, n);
}

/* Value i of a tag, or `otherwise` if the tag is absent. */
static u32 tiff_tag(const Tiff *t, u32 tag, u32 i, u32 otherwise, u32 *count) {
  for (u32 k = 0; k < t->entries; k++) {
    size_t at = t->entry + 12 * (size_t)k;
    if (tiff_read(t, at, 2) != tag) continue;
    u32 type = tiff_read(t, at + 2, 2), n = tiff_read(t, at + 4, 4), size = type == 3 ? 2 : 4;
    if (type != 3 && type != 4) image_bad(t->p, "a TIFF tag has another type than SHORT and LONG");
    if (count) *count = n;
    if (i >= n) return otherwise;
    size_t from = n > 4 / size ? tiff_read(t, at + 8, 4) : at + 8;
    return tiff_read(t, from + (size_t)i * size, size);
  }
  if (count) *count = 0;
  return otherwise;
}

static Image read_tiff(const ImageFile *p) {
  Tiff t = {.p = p, .big = p->at[0] == 'M'};
  size_t directory = tiff_read(&t, 4, 4);
  t.entries = tiff_read(&t, directory, 2);
  t.entry = directory + 2;
  u32 planes = tiff_tag(&t, 277, 0, 1, NULL), kind = tiff_tag(&t, 262, 0, 0, NULL), strips;
  if (tiff_tag(&t, 259, 0, 1, NULL) != 1) image_refuse(p, "TIFF with compression");
  if (tiff_tag(&t, 258, 0, 1, NULL) != 8 || tiff_tag(&t, 284, 0, 1, NULL) != 1 ||
      (kind == 2 ? planes != 3 && planes != 4 : kind != 1 || planes != 1))
    image_refuse(p, "TIFF other than 8 bits of grey or RGB");
  Image m = image_new(p, tiff_tag(&t, 256, 0, 0, NULL), tiff_tag(&t, 257, 0, 0, NULL));
  u32 rows = tiff_tag(&t, 278, 0, m.height, NULL);
  tiff_tag(&t, 273, 0, 0, &strips);
  size_t line = (size_t)m.width * planes;
  for (u32 y = 0; y < m.height; y++) {
    u32 strip = rows ? y / rows : strips;
    if (strip >= strips) image_bad(p, "the TIFF has fewer rows than its header says");
    size_t at = tiff_tag(&t, 273, strip, 0, NULL) + line * (y % rows);
    need(p, at, line);
    for (u32 x = 0; x < m.width; x++)
      for (u32 k = 0; k < 3; k++)
        m.at[((size_t)y * m.width + x) * 3 + k] =
            p->at[at + (size_t)x * planes + (planes > 1 ? k : 0)];
  }
  return m;
}

static bool starts(const ImageFile *p, size_t at, const char *text, size_t n) {
  return p->n >= at + n && !memcmp(p->at + at, text, n);
}

Image image_decode(Ctx *c, Arena *a, const u8 *at, size_t n, Loc loc) {
  ImageFile p = {c, a, loc, at, n};
  if (starts(&p, 0, "\x89PNG\r\n\x1a\n", 8)) return image_png(&p);
  if (starts(&p, 0, "BM", 2)) return read_bmp(&p);
  if (starts(&p, 0, "P5", 2) || starts(&p, 0, "P6", 2)) return read_pnm(&p);
  if (starts(&p, 0, "II*\0", 4) || starts(&p, 0, "MM\0*", 4)) return read_tiff(&p);
  if (starts(&p, 0, "\xff\xd8\xff", 3)) return image_jpeg(&p);
  if (starts(&p, 0, "RIFF", 4) && starts(&p, 8, "WEBP", 4)) return image_webp(&p);
  if (starts(&p, 4, "jP  \r\n\x87\n", 8) || starts(&p, 0, "\xff\x4f\xff\x51", 4))
    return image_jpeg2000(&p);
  image_refuse(&p, "this image format");
}
