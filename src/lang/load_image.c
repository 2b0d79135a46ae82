/* load_image.c: pictures from files, as tensors. Formats are told by their first bytes. */
#include "io/image.h"
#include "lang/lang_object.h"

/* load_image("x.png"): a grey picture as a row, which a dense layer takes; load_image("x.png", 3)
 * and 1: in channels, which a convolution takes. Black is 0, white 1. */
void bi_load_image(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  Ctx *c = ev->c;
  i64 channels = n > 1 ? arg_int(ev, &arg[1]) : 1;
  if (arg[0].kind != KD_string) ARG_BAD(ev, "load_image() takes the path of a picture");
  if (channels != 1 && channels != 3)
    ARG_BAD(ev, "load_image(): a picture has 1 channel or 3, not %lld", (long long)channels);
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
