/* image_png.c: PNG, through inflate.h.
 *
 * In: a file. Out: RGB. All color types with 8 bits; grey and palettes also with fewer; of 16 bits
 * the high byte. Interlaced files are refused. Checksums are not verified.
 */
#include "io/data.h"
#include "io/image.h"

#include <stdlib.h>
#include <string.h>

typedef struct Png {
  const ImageFile *p;
  u32 width, height, bits, kind, planes;
  const u8 *palette;
  u32 colors;
  StrBuf body; /* bytes of all IDAT chunks */
} Png;

static void read_head(Png *g, size_t at) {
  static const u8 planes[] = {1, 0, 3, 1, 2, 0, 4};
  const ImageFile *p = g->p;
  g->width = image_be(p, at, 4);
  g->height = image_be(p, at + 4, 4);
  g->bits = image_be(p, at + 8, 1);
  g->kind = image_be(p, at + 9, 1);
  if (image_be(p, at + 10, 2)) image_bad(p, "unknown PNG compression or filter method");
  if (image_be(p, at + 12, 1)) image_refuse(p, "interlaced PNG");
  g->planes = g->kind <= 6 ? planes[g->kind] : 0;
  bool few = g->kind == 0 || g->kind == 3;
  bool fits = g->bits == 8 || (g->bits == 16 && g->kind != 3) ||
              (few && (g->bits == 1 || g->bits == 2 || g->bits == 4));
  if (!g->planes || !fits) image_bad(p, "invalid PNG color type or bit depth");
}

static void read_chunks(Png *g) {
  const ImageFile *p = g->p;
  for (size_t at = 8;;) {
    u32 n = image_be(p, at, 4);
    image_be(p, at + 4, 4);
    const u8 *name = p->at + at + 4;
    at += 8;
    if (n > p->n - at) image_bad(p, "the image file is truncated");
    if (!memcmp(name, "IHDR", 4)) read_head(g, at);
    if (!memcmp(name, "IDAT", 4)) sb_put(&g->body, p->at + at, n);
    if (!memcmp(name, "PLTE", 4)) g->palette = p->at + at, g->colors = n / 3;
    if (!memcmp(name, "IEND", 4)) break;
    at += (size_t)n + 4;
  }
  if (!g->width) image_bad(p, "the PNG has no header chunk");
}

static u8 nearest(u8 left, u8 up, u8 corner) { /* Paeth predictor */
  i32 guess = left + up - corner, a = abs(guess - left), b = abs(guess - up),
      c = abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Undoes the filter of one row. step: bytes per pixel. */
static void unfilter(const Png *g, u32 filter, u8 *row, const u8 *above, size_t n, u32 step) {
  if (filter > 4) image_bad(g->p, "unknown PNG row filter");
  for (size_t i = 0; i < n; i++) {
    u8 left = i >= step ? row[i - step] : 0, up = above ? above[i] : 0,
       corner = above && i >= step ? above[i - step] : 0;
    u8 add[] = {0, left, up, (u8)((left + up) / 2), nearest(left, up, corner)};
    row[i] = (u8)(row[i] + add[filter]);
  }
}

/* Sample i of a row as 8 bits; palette indices unscaled. */
static u32 sample(const Png *g, const u8 *row, size_t i) {
  if (g->bits == 16) return row[i * 2];
  if (g->bits == 8) return row[i];
  u32 per = 8 / g->bits, most = (1u << g->bits) - 1;
  u32 x = row[i / per] >> (8 - g->bits * (u32)(i % per + 1)) & most;
  return g->kind == 3 ? x : x * 255 / most;
}

static void put_pixel(const Png *g, const u8 *row, u32 x, u8 *rgb) {
  if (g->kind == 3) {
    u32 at = sample(g, row, x);
    if (at >= g->colors) image_bad(g->p, "a palette index is out of range");
    memcpy(rgb, g->palette + 3 * (size_t)at, 3);
    return;
  }
  for (u32 k = 0; k < 3; k++)
    rgb[k] = (u8)sample(g, row, (size_t)x * g->planes + (g->planes >= 3 ? k : 0));
}

Image image_png(const ImageFile *p) {
  Png g = {.p = p, .body = sb_new(p->a)};
  read_chunks(&g);
  Image m = image_new(p, g.width, g.height);
  size_t line = ((size_t)g.width * g.planes * g.bits + 7) / 8, total = (line + 1) * g.height;
  u32 step = (g.planes * g.bits + 7) / 8;
  u8 *raw = arena_alloc(p->a, total);
  if (g.body.n < 6)
    image_bad(p, "the PNG has no image data"); /* a zlib header of 2 bytes, a checksum of 4 */
  const char *why = inflate((const u8 *)g.body.at + 2, g.body.n - 6, raw, total);
  if (why) image_bad(p, why);
  const u8 *above = NULL;
  for (u32 y = 0; y < g.height; y++) {
    u8 *row = raw + (line + 1) * y + 1;
    unfilter(&g, row[-1], row, above, line, step);
    for (u32 x = 0; x < g.width; x++) put_pixel(&g, row, x, m.at + ((size_t)y * g.width + x) * 3);
    above = row;
  }
  return m;
}
