/* image.h: pictures in files, as pixels. */
#ifndef INGOT_IMAGE_H
#define INGOT_IMAGE_H

#include "base/base.h"

typedef struct Image Image;
typedef struct Picture Picture; /* bytes of a file being read */

/* RGB, three bytes a pixel, row by row from the top. */
struct Image {
  u32 width, height;
  u8 *at;
};

struct Picture {
  Ctx *c;
  Arena *a;
  Loc loc;
  const u8 *at;
  size_t n;
};

enum { IMAGE_SIDE = 1 << 16, IMAGE_PIXELS = 1 << 27 };

_Noreturn void image_bad(const Picture *p, const char *why);
_Noreturn void image_refuse(const Picture *p, const char *what);
Image image_new(const Picture *p, u64 width, u64 height); /* checked; pixels zeroed */
u32 image_be(const Picture *p, size_t at, u32 n);         /* n bytes, checked */
u32 image_le(const Picture *p, size_t at, u32 n);

/* image.c */
u8 image_grey(const u8 *rgb); /* of a pixel */
Image image_decode(Ctx *c, Arena *a, const u8 *at, size_t n, Loc loc);
/* image_png.c */
Image image_png(const Picture *p);
/* image_libs.c */
Image image_jpeg(const Picture *p);
Image image_jpeg2000(const Picture *p);
Image image_webp(const Picture *p);

#endif
