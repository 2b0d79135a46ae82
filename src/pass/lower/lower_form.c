/* lower_form.c: a form becomes a kernel.
 *
 * In: a form, the position in its kernel. Out: loops of the family that kernel_choose.c selects.
 * Phases of a dilated operand are lowered one by one. Axes are merged first if all operands are
 * row-major.
 */
#include "pass/lower/lower.h"

static void lower_one(Lower *l, Cursor at, const Form *from) {
  Form merged = *from, *f = &merged;
  /* axes are merged only if all operands are row-major; those of a result with an epilogue keep
   * their number */
  bool whole = (!f->epilogue || (f->reduce && f->nin == 1)) && !layout_of(l, f->out.buf);
  for (u32 i = 0; i < f->nin; i++)
    whole = whole && !is_inlined(l, f->in[i].buf) && !layout_of(l, f->in[i].buf);
  if (f->from.buf) whole = whole && !layout_of(l, f->from.buf);
  if (whole) form_merge(l->p, &l->once, f);
  if (f->epilogue && f->out.buf != from->out.buf) merged = *from;
  KernelChoice r;
  kernel_choose(l, f, &r);
  kernel_write(l, at, f, &r);
}

void lower_form(Lower *l, Cursor at, const Form *f) {
  if (f->body == FB_mmq) {
    lower_mmq(l, at, f);
    return;
  }
  u32 n = form_phases(f);
  for (u32 i = 0; i < n; i++) {
    Form part = form_phase(l->p, f, i);
    lower_one(l, at, &part);
  }
}
