/* image.h: image files, decoded to pixels. */
#ifndef INGOT_IMAGE_H
#define INGOT_IMAGE_H

#include "base/base.h"

typedef struct Image Image;
typedef struct ImageFile ImageFile; /* a file being read */

/* RGB, three bytes per pixel, rows top to bottom. */
struct Image {
  u32 width, height;
  u8 *at;
};

struct ImageFile {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *at;
  size_t n;
};

enum { IMAGE_SIDE = 1 << 16, IMAGE_PIXELS = 1 << 27 };

_Noreturn void image_bad(const ImageFile *p, const char *why);
_Noreturn void image_refuse(const ImageFile *p, const char *what);
Image image_new(const ImageFile *p, u64 width, u64 height); /* checks the size; zeroed pixels */
u32 image_be(const ImageFile *p, size_t at, u32 n);         /* n bytes, bounds-checked */

/* image.c */
u8 image_grey(const u8 *rgb); /* luma of a pixel */
Image image_decode(Ctx *c, Arena *a, const u8 *at, size_t n, Loc loc);
/* image_png.c */
Image image_png(const ImageFile *p);
/* image_libs.c */
Image image_jpeg(const ImageFile *p);
Image image_jpeg2000(const ImageFile *p);
Image image_webp(const ImageFile *p);

#endif
