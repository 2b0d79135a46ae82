/* onnx_ops_image.c: ImageDecoder.
 *
 * The size of the result depends on the contents, so the picture must be known at compile time. The
 * compiled model is valid for this picture only.
 */
#include "front/onnx/onnx_builder.h"
#include "io/image.h"

void build_image_decoder(Build *b) {
  const Tensor *t = on_known(b, 0);
  if (t->dt != DT_u8 || t->rank != 1)
    on_bad(b, "the operand is %s of rank %u, expected u8 of rank 1", dtype_info[t->dt].name,
           t->rank);
  u32 format = on_choice(b, "pixel_format", "RGB BGR Grayscale");
  bool bgr = format == 1, grey = format == 2;
  Image m = image_decode(b->c, &b->c->work, t->data, t->n, b->g->loc);
  i64 dim[3] = {m.height, m.width, grey ? 1 : 3};
  Tensor *out = tensor_new(&b->c->work, DT_u8, dim, 3);
  u8 *to = (u8 *)(uintptr_t)out->data;
  for (size_t i = 0; i < (size_t)m.width * m.height; i++) {
    const u8 *rgb = m.at + i * 3;
    if (grey)
      to[i] = image_grey(rgb);
    else
      for (u32 k = 0; k < 3; k++) to[i * 3 + k] = rgb[bgr ? 2 - k : k];
  }
  b->out[0] = mk_const(b->g, out);
}
