/* image_libs.c: JPEG, JPEG 2000 and WebP with libjpeg, OpenJPEG and libwebp (IMAGES=1).
 *
 * In: a file. Out: RGB. The libraries allocate and free their own memory. Their errors become ours.
 * Without IMAGES the formats are refused.
 */
#include "io/image.h"

#ifndef INGOT_IMAGES

Image image_jpeg(const ImageFile *p) {
  image_refuse(p, "JPEG (in a build without IMAGES=1)");
}
Image image_jpeg2000(const ImageFile *p) {
  image_refuse(p, "JPEG 2000 (in a build without IMAGES=1)");
}
Image image_webp(const ImageFile *p) {
  image_refuse(p, "WebP (in a build without IMAGES=1)");
}

#else

#include <openjpeg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <webp/decode.h>
#include <jpeglib.h>

/* ---- JPEG ---- */

typedef struct JpegError {
  struct jpeg_error_mgr base; /* first member: libjpeg passes a pointer to it */
  jmp_buf door;
} JpegError;

static void jpeg_error_exit(j_common_ptr j) {
  longjmp(((JpegError *)j->err)->door, 1);
}

static void jpeg_quiet(j_common_ptr j) {
  (void)j;
}

/* Reads the size, then the pixels into our memory. */
static bool jpeg_read(const ImageFile *p, Image *m) {
  struct jpeg_decompress_struct d;
  JpegError e;
  d.err = jpeg_std_error(&e.base);
  e.base.error_exit = jpeg_error_exit;
  e.base.output_message = jpeg_quiet;
  bool good = false;
  if (!setjmp(e.door)) {
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, p->at, (unsigned long)p->n);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    if (!m->at) {
      m->width = d.image_width;
      m->height = d.image_height;
    } else {
      jpeg_start_decompress(&d);
      while (d.output_scanline < d.output_height && d.output_height == m->height &&
             d.output_width == m->width) {
        JSAMPROW row = m->at + (size_t)d.output_scanline * m->width * 3;
        jpeg_read_scanlines(&d, &row, 1);
      }
    }
    good = true;
  }
  jpeg_destroy_decompress(&d);
  return good;
}

Image image_jpeg(const ImageFile *p) {
  Image m = {0};
  if (jpeg_read(p, &m)) {
    m = image_new(p, m.width, m.height);
    if (jpeg_read(p, &m)) return m;
  }
  image_bad(p, "the JPEG file is damaged");
}

/* ---- WebP ---- */

Image image_webp(const ImageFile *p) {
  int width, height;
  if (!WebPGetInfo(p->at, p->n, &width, &height)) image_bad(p, "the WebP file is damaged");
  Image m = image_new(p, (u64)width, (u64)height);
  if (!WebPDecodeRGBInto(p->at, p->n, m.at, (size_t)width * (size_t)height * 3, width * 3))
    image_bad(p, "the WebP file is damaged");
  return m;
}

/* ---- JPEG 2000 ---- */

typedef struct ImageSource {
  const ImageFile *p;
  size_t at;
} ImageSource;

static OPJ_SIZE_T opj_read(void *to, OPJ_SIZE_T n, void *user) {
  ImageSource *s = user;
  size_t left = s->p->n - s->at;
  if (!left) return (OPJ_SIZE_T)-1;
  if (n > left) n = left;
  memcpy(to, s->p->at + s->at, n);
  s->at += n;
  return n;
}

static OPJ_OFF_T opj_skip(OPJ_OFF_T n, void *user) {
  ImageSource *s = user;
  if (n < 0 || (size_t)n > s->p->n - s->at) return -1;
  s->at += (size_t)n;
  return n;
}

static OPJ_BOOL opj_seek(OPJ_OFF_T at, void *user) {
  ImageSource *s = user;
  if (at < 0 || (size_t)at > s->p->n) return OPJ_FALSE;
  s->at = (size_t)at;
  return OPJ_TRUE;
}

static bool opj_plain(const opj_image_t *im) {
  if (im->numcomps != 1 && im->numcomps != 3 && im->numcomps != 4) return false;
  for (u32 i = 0; i < im->numcomps; i++) {
    const opj_image_comp_t *c = &im->comps[i];
    if (c->w != im->comps[0].w || c->h != im->comps[0].h || c->prec != 8 || c->sgnd || !c->data)
      return false;
  }
  return im->comps[0].w && im->comps[0].h && im->comps[0].w <= IMAGE_SIDE &&
         im->comps[0].h <= IMAGE_SIDE && (u64)im->comps[0].w * im->comps[0].h <= IMAGE_PIXELS;
}

typedef struct OpjCopy {
  const ImageFile *p;
  const opj_image_t *im;
  Image m;
} OpjCopy;

static void opj_copy(Ctx *c, void *arg) {
  OpjCopy *k = arg;
  (void)c;
  k->m = image_new(k->p, k->im->comps[0].w, k->im->comps[0].h);
  for (size_t i = 0; i < (size_t)k->m.width * k->m.height * 3; i++)
    k->m.at[i] = (u8)k->im->comps[k->im->numcomps > 1 ? i % 3 : 0].data[i / 3];
}

Image image_jpeg2000(const ImageFile *p) {
  bool raw = p->at[0] == 0xff;
  ImageSource s = {p, 0};
  opj_dparameters_t o;
  opj_set_default_decoder_parameters(&o);
  opj_codec_t *codec = opj_create_decompress(raw ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
  opj_image_t *im = NULL;
  opj_stream_set_user_data(stream, &s, NULL);
  opj_stream_set_user_data_length(stream, p->n);
  opj_stream_set_read_function(stream, opj_read);
  opj_stream_set_skip_function(stream, opj_skip);
  opj_stream_set_seek_function(stream, opj_seek);
  bool good = opj_setup_decoder(codec, &o) && opj_read_header(stream, codec, &im) &&
              (u64)im->x1 * im->y1 <= IMAGE_PIXELS && opj_decode(codec, stream, im) &&
              opj_end_decompress(codec, stream);
  bool plain = good && opj_plain(im);
  OpjCopy copy = {.p = p, .im = im};
  Err err = plain ? ctx_protect(p->c, opj_copy, &copy) : ERR_ok;
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(im);
  if (!good) image_bad(p, "the JPEG 2000 file is damaged");
  if (!plain) image_refuse(p, "JPEG 2000 other than 8 bits of grey or RGB");
  if (err) longjmp(*p->c->door, (int)err);
  return copy.m;
}

#endif
