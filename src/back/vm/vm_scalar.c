/* vm_scalar.c: keeps buffers of one element in registers.
 *
 * In: a Prog. Out: VmBuild.scalar. A temporary or output with one element that no loop over
 * elements stores to becomes a register for the whole run, so a `while` neither loads nor stores
 * its carried values. Outputs are stored at the end. Elements that a row reduces into stay in
 * memory (vm_row.c), as do narrow floats, which memory rounds, and buffers with views. */
#include "back/vm/vm_build.h"

static bool is_scalar(const Buf *buf) {
  bool ours = buf->space == BS_temp || buf->space == BS_local || buf->space == BS_out;
  bool whole =
      !dtype_is_float(buf->dt) || vm_class_bytes(vm_class(buf->dt)) == dtype_bytes(buf->dt);
  if (!ours || !whole || buf->alias || buf->lanes != 1 || buf->dt == DT_str ||
      vm_class(buf->dt) == VC_none)
    return false;
  for (u32 i = 0; i < buf->rank; i++)
    if (buf->dim[i] != 1) return false;
  return true;
}

/* Marks buffers that the list stores to: in a loop over elements, or elsewhere. */
static void see_stores(VmBuild *b, StmtId first, bool inside, bool *stored, bool *looped) {
  for (StmtId id = first; id; id = prog_stmt(b->p, id)->next) {
    const Stmt *s = prog_stmt(b->p, id);
    if (s->kind == ST_store) *(inside ? &looped[s->buf] : &stored[s->buf]) = true;
    see_stores(b, s->body, inside || s->kind == ST_for, stored, looped);
    see_stores(b, s->other, inside, stored, looped);
  }
}

void choose_scalars(VmBuild *b) {
  u32 n = b->p->buf.n;
  bool *stored = NEWS(b->a, bool, n), *looped = NEWS(b->a, bool, n);
  see_stores(b, b->p->body, false, stored, looped);
  for (BufId id = 1; id < n; id++)
    if (prog_buf(b->p, id)->alias) looped[prog_root(b->p, id)] = true;
  for (BufId id = 1; id < n; id++) {
    const Buf *buf = prog_buf(b->p, id);
    if (!is_scalar(buf) || !stored[id] || looped[id] || b->dead[id]) continue;
    u32 r = new_reg(b, vm_class(buf->dt), 1);
    b->reg.at[r].fixed = b->reg.at[r].named = true;
    b->scalar[id].reg = r;
  }
}

void store_scalars(VmBuild *b) {
  for (u32 i = 0; i < b->p->out.n; i++) {
    BufId id = b->p->out.at[i];
    VmAddr at = {.buf = b->buf[id], .dt = prog_buf(b->p, id)->dt, .at = vb_integer(b, 0)};
    if (b->scalar[id].reg) store_to(b, &at, (VmVal){b->scalar[id].reg, b->cur + 1, 1}, 1);
  }
}
