/* cmath.c: functions of quick.def on vectors.
 *
 * In: an operation of a program with `math fast` or `math fused`, and the current vector width.
 * Out: the name of a function on such vectors; its text goes to the file. Each step is a vector
 * operator or a function of cvop.def. The operations and their order equal the scalar ones, hence
 * the same bits; imk_pow2 rounds once in both. */
#include "back/c/c.h"

#include "ir/math/quick.h"

enum { VALUES = 64 }; /* stack values of a function that is not inlined */

/* Requests the helper function of an operation, if it needs one. */
static void need_operation(Emit *e, QuickOp op) {
  const char *name = op == QO_const ? "imk_all" : quick_function(op);
  if (e->o->target->flushes && quick_call(op)) name = quick_call(op);
  if (!name || !need_vector(e, name, DT_f32, NULL)) return;
  if (op == QO_mad) e->variant->math[OP_fma][MM_f] = true;
  if (op == QO_farsin) e->variant->math[OP_sin][MM_f] = true;
  if (op == QO_farcos) e->variant->math[OP_cos][MM_f] = true;
}

/* Writes a function after the functions it calls. */
static void put_function(Emit *e, const char *name) {
  u32 w = e->b.w;
  StrBuf key = sb_new(e->b.a), suffix = sb_new(e->b.a);
  const char *f = vector_type(e, DT_f32, false), *u = vector_type(e, DT_u32, false);
  Quick q;
  sb_fmt(&key, "%sx%u", name, w);
  if (!is_wanted(e, sb_cstr(&key)) || !quick_find(&q, name)) return;
  for (u32 i = 0; i < q.n; i++)
    if (q.step[i].op == QO_call) put_function(e, q.step[i].text);
  for (u32 op = 0; op < QO_COUNT;
       op++) /* in a fixed order: that of the steps depends on the compiler */
    if (quick_has(&q, (QuickOp)op)) need_operation(e, (QuickOp)op);
  put_template(e, &suffix, "x%u${sfx}", w);
  quick_write(
      &e->variant->vec.text, &q,
      &(QuickForm){"static inline IG_QUICK ", f, u, sb_cstr(&suffix), w, e->o->target->flushes});
}

const char *need_quick(Emit *e, const Expr *x) {
  const char *part = math_name(e->c, x->op, math_part(e, x->op, x->dt));
  StrBuf name = sb_new(e->b.a);
  if (!e->variant->vec.quick_frame)
    sb_puts(&e->variant->vec.text,
            "#ifdef __OPTIMIZE__\n#define IG_QUICK __attribute__((always_inline))\n"
            "#else\n#define IG_QUICK\n#endif\n");
  u64 frame = VALUES * 4 * e->b.w;
  if (frame > e->variant->vec.quick_frame) e->variant->vec.quick_frame = frame;
  put_function(e, part);
  put_template(e, &name, "im_%sx%u${sfx}", part, e->b.w);
  return sb_cstr(&name);
}
