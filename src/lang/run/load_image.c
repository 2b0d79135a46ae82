/* load_image.c: loads images as tensors. The first bytes select the format. */
#include "io/image.h"
#include "lang/run/lang_object.h"

/* load_image("x.png"): grey, as one row, for a dense layer. load_image("x.png", 3) or 1: channels,
 * for a convolution. Values are from 0 (black) to 1 (white). */
void bi_load_image(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  Ctx *c = ev->c;
  i64 channels = n > 1 ? arg_int(ev, &arg[1]) : 1;
  if (arg[0].kind != KD_string) ARG_BAD(ev, "load_image() takes the path of an image");
  if (channels != 1 && channels != 3)
    ARG_BAD(ev, "load_image(): expected 1 or 3 channels, got %lld", (long long)channels);
  const char *path = arg[0].u.text->at;
  eval_check_file(ev, path);
  if (dry_load_file(ev, path, out)) return;
  File f = file_read(c, path);
  Mark mark = arena_mark(&ev->stack);
  Image m = image_decode(c, &ev->stack, f.at, f.n, (Loc){.file = str_of(c, path), .index = -1});
  u64 pixels = (u64)m.width * m.height;
  LazyTensor *y = n > 1 ? lazy_new(ev, (const i64[]){1, channels, m.height, m.width}, 4)
                        : lazy_new(ev, (const i64[]){1, (i64)pixels}, 2);
  for (u64 i = 0; i < y->n; i++) {
    const u8 *rgb = m.at + i % pixels * 3;
    y->data[i] = (channels == 1 ? image_grey(rgb) : rgb[i / pixels]) / 255.0;
  }
  arena_rewind(&ev->stack, mark);
  dry_clear_data(ev, y);
  *out = value_tensor(y);
}
