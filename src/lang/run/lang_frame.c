/* lang_frame.c: calls, variables and lvalues of running register code; see lang_code.h.
 *
 * Registers are in segments of a stack, which begins with those of the running file. A callee's
 * first registers are the temps that hold its arguments, unless the segment is full or the caller
 * is not register code; then the arguments move.
 */
#include "lang/run/lang_code.h"
#include "lang/run/lang_object.h"

#include <string.h>

enum { SEGMENT = 1 << 12, AFTER_FILE = 512 }; /* registers, at least */
enum { MAX_REGISTERS = 1 << 22 };             /* of calls: 64 MiB */
/* Nested executions of C functions count as this many calls. */
enum { C_CALLS = 3 };

BuiltinFn *const builtin_fn[] = {
#define BI(name, sig, args, shape, fn) bi_##fn,
#include "lang/syntax/builtins.def"
#undef BI
};

const char *eval_message(Eval *ev, const Ast *at, const char *what) {
  return at ? script_place(ev->s->all->at[at->file], at->at, what, NULL) : what;
}

_Noreturn void eval_fail(Eval *ev, const Ast *at, const char *fmt, ...) {
  StrBuf t = sb_new(&ev->c->keep);
  va_list args;
  va_start(args, fmt);
  sb_vfmt(&t, fmt, args);
  va_end(args);
  fail(ev->c, ERR_input, LOC_NONE, "%s", eval_message(ev, at, sb_cstr(&t)));
}

void eval_check_file(Eval *ev, const char *path) {
  if (!ev->o->no_files) return;
  Str why =
      str_fmt(ev->c, "cannot open '%s': the program runs without file access; --files allows it",
              show_text(ev->c, str_of(ev->c, path)));
  fail(ev->c, ERR_usage, LOC_NONE, "%s", eval_message(ev, ev->at, str_text(ev->c, why)));
}

void heap_free_all(Eval *ev) {
  while (ev->all) {
    HeapObj *b = ev->all;
    if (b->kind == KD_tensor) lazy_free_data(ev, (LazyTensor *)b);
    heap_unlink(ev, b);
    ev->c->alloc.resize(ev->c->alloc.user, b, b->bytes, 0);
  }
}

const char *builtin_name(const Eval *ev) {
  const Ast *n = ev->at;
  return n && n->kind == AST_call && n->builtin ? builtin_info[n->builtin - 1].name : "operator";
}

/* ---- frames ---- */

/* The next frame, without registers. */
static Frame *next_frame(Eval *ev, const Ast *at, const RegCode *code, ClosureObj *self) {
  Frame *outer = ev->frame, *f = outer->next;
  if (!f) f = outer->next = NEW(&ev->c->keep, Frame);
  f->outer = outer;
  f->top = ev->top;
  f->regs = ev->regs;
  f->code = code;
  f->self = self;
  f->call = at;
  f->size.n = 0;
  f->careful = ev->careful || ev->in_grad || ev->dims;
  return f;
}

static Locals *segment_new(Eval *ev, u32 room) {
  Locals *l = arena_alloc(&ev->c->keep, sizeof *l + (size_t)room * sizeof *l->at);
  l->end = l->at + room;
  return l;
}

/* Room for n registers in another segment. */
static LangValue *other_segment(Eval *ev, const Ast *at, u32 n) {
  Locals **next = ev->regs ? &ev->regs->next : &ev->segments;
  if (!*next || (*next)->end - (*next)->at < (i64)n) {
    u32 room = n > SEGMENT ? n : SEGMENT;
    if (room > MAX_REGISTERS - ev->nreg) eval_fail(ev, at, "calls are nested too deeply");
    ev->nreg += room;
    Locals *more = segment_new(ev, room);
    more->next = *next;
    *next = more;
    if (!ev->segments) ev->segments = more;
  }
  ev->regs = *next;
  return ev->regs->at;
}

static bool fits(const Eval *ev, const LangValue *at, u32 n) {
  return ev->regs && at >= ev->regs->at && at < ev->regs->end && ev->regs->end - at >= (i64)n;
}

static void convert_arguments(Eval *ev, Frame *f) {
  const RegCode *code = f->code;
  for (u32 i = 0; i < code->nparam; i++) {
    const LangType *t = code->param[i];
    LangValue *d = &f->r[i];
    if (code->quick[i] == KD_none || (d->kind == code->quick[i] && !d->open)) continue;
    value_convert(ev, f->call->kind == AST_call && i < f->call->nkid ? f->call->kid[i] : f->call, d,
                  t);
  }
}

Frame *frame_push(Eval *ev, const Ast *at, ClosureObj *fn, LangValue *arg, u32 n) {
  const RegCode *code = code_of_fn(ev, fn->fn);
  if (n != code->nparam)
    eval_fail(ev, at, "Wrong number of arguments: expected %u, got %u", code->nparam, n);
  if (++ev->depth > EVAL_DEPTH) eval_fail(ev, at, "calls are nested too deeply");
  Frame *f = next_frame(ev, at, code, fn);
  f->r = arg;
  if (!fits(ev, arg, code->nreg)) {
    f->r = fits(ev, ev->top, code->nreg) ? ev->top : other_segment(ev, at, code->nreg);
    for (u32 i = 0; i < n; i++) {
      f->r[i] = arg[i];
      arg[i].kind = KD_none;
    }
  }
  ev->top = f->r + code->nreg;
  for (u32 i = n; i < code->nslot; i++) f->r[i].kind = KD_none;
  for (u32 i = 0; i < fn->n; i++)
    if (fn->with[i].kind != KD_none) f->r[fn->fn->capture.at[i].slot] = value_retain(&fn->with[i]);
  ev->frame = f;
  convert_arguments(ev, f);
  return f;
}

LangValue frame_result(Eval *ev, const Frame *f, LangValue v) {
  if (!f->code->floats || v.kind != KD_int) return v;
  return v.open ? value_unknown(ev, KD_float) : value_float((double)v.u.i);
}

LangValue call_fn(Eval *ev, const Ast *at, ClosureObj *f, LangValue *arg, u32 n) {
  eval_check_stop(ev, at);
  if (f->grad_of) return call_grad(ev, at, f->grad_of, arg, n);
  if (ev->dry) dry_check_recursion(ev, at, f->fn);
  Frame *frame = frame_push(ev, at, f, arg, n);
  ev->depth += C_CALLS;
  DryCall dry;
  if (ev->dry) dry_call_begin(ev, &dry);
  run_range(ev, frame, 0, frame->code->n);
  LangValue v = ev->result;
  ev->result.kind = KD_none;
  if (ev->dry) v = dry_call_end(ev, &dry, v);
  v = frame_result(ev, frame, v);
  ev->depth -= C_CALLS;
  frame_pop(ev, frame);
  return v;
}

Locals *file_variables(Eval *ev, const RegCode *code, const Locals *old) {
  Locals *l = segment_new(ev, code->nreg + AFTER_FILE);
  l->n = code->nslot;
  l->all = code->nreg;
  l->next = ev->segments;
  if (old) memcpy(l->at, old->at, (old->n < l->n ? old->n : l->n) * sizeof *l->at);
  return l;
}

LangValue run_file(Eval *ev, const RegCode *code) {
  Frame *f = next_frame(ev, NULL, code, NULL);
  ev->regs = ev->file[code->file];
  f->r = ev->regs->at;
  ev->top = f->r + code->nreg;
  ev->frame = f;
  ev->depth += C_CALLS;
  run_range(ev, f, 0, code->n);
  ev->depth -= C_CALLS;
  ev->top = f->top;
  ev->regs = f->regs;
  ev->frame = f->outer;
  LangValue v = ev->result;
  ev->result.kind = KD_none;
  return v;
}

void registers_clear(Eval *ev) {
  for (Locals *s = ev->segments; s; s = s->next)
    memset(s->at, 0, (size_t)(s->end - s->at) * sizeof *s->at);
  ev->frame = ev->root;
  ev->regs = NULL;
  ev->top = NULL;
}

/* ---- variables ---- */

SymbolSizes *call_sizes(Eval *ev) {
  return &ev->frame->size;
}

LangValue *variable_find(Eval *ev, const VarRef *place, u32 n) {
  for (u32 i = 0; i < n; i++) {
    const VarRef *p = &place[i];
    if (p->kind == VR_self) return NULL;
    LangValue *d = NULL;
    Locals *file = p->kind == VR_global ? ev->file[p->file] : NULL;
    if (p->kind == VR_local)
      d = &ev->frame->r[p->slot];
    else if (file && p->slot < file->n)
      d = &file->at[p->slot];
    if (d && d->kind != KD_none) return d;
  }
  return NULL;
}

LangValue variable_value(Eval *ev, const Ast *n) {
  const LangValue *d = variable_find(ev, n->place, n->nplace);
  for (u32 i = 0; !d && i < n->nplace; i++) {
    if (n->place[i].kind != VR_self) continue;
    ev->frame->self->box.refs++;
    return (LangValue){KD_fn, .u = {.fn = ev->frame->self}};
  }
  if (!d) eval_fail(ev, n, "Undefined variable: %s", str_text(ev->c, n->name));
  if (ev->dry) dry_require_known(ev, n, d);
  return value_retain(d);
}

LangValue closure_new(Eval *ev, const Ast *n) {
  LangFn *f = n->fn;
  ClosureObj *b = heap_new(ev, KD_fn, sizeof *b + f->capture.n * sizeof *b->with);
  b->fn = f;
  b->n = f->capture.n;
  for (u32 i = 0; i < b->n; i++) {
    const Capture *c = &f->capture.at[i];
    const LangValue *d = variable_find(ev, c->from, c->nfrom);
    if (d) b->with[i] = value_retain(d);
    if (!d && c->nfrom && c->from[0].kind == VR_self && ev->frame->self) {
      b->with[i] = (LangValue){KD_fn, .u = {.fn = ev->frame->self}};
      ev->frame->self->box.refs++;
    }
  }
  return (LangValue){KD_fn, .u = {.fn = b}};
}

/* ---- fields and lvalues; shared lists on the path are copied ---- */

LangValue *value_field(const LangValue *d, const Ast *n) {
  if (d->kind != KD_struct) return NULL;
  u32 i = struct_field(d->u.list->of, n->name);
  return i < d->u.list->n ? &d->u.list->at[i] : NULL;
}

LangValue *value_need_field(Eval *ev, const Ast *n, const LangValue *d) {
  LangValue *x = value_field(d, n);
  if (!x) eval_fail(ev, n, "%s has no field '%s'", value_kind_name(d), str_text(ev->c, n->name));
  return x;
}

/* Any element may change: marks all as unknown. */
static void open_all(Eval *ev, ListObj *l) {
  for (u64 i = 0; i < l->n; i++) {
    LangValue *d = &l->at[i];
    if (d->kind == KD_int || d->kind == KD_float || d->kind == KD_bool)
      *d = value_unknown(ev, d->kind);
  }
}

static LangValue *inside(Eval *ev, const Ast *n, LangValue *in, LangValue **index) {
  if (n->kind == AST_member) {
    value_need_field(ev, n, in);
    list_make_unique(ev, in);
    return value_field(in, n);
  }
  LangValue *i = (*index)++;
  LangValue *to;
  if (in->kind == KD_array && value_is_unknown(ev, i)) {
    ListObj *l = list_make_unique(ev, in);
    open_all(ev, l);
    if (!l->n) dry_refuse(ev, n->b, "an index");
    to = &l->at[0];
  } else {
    to = value_element(ev, n, in, i);
  }
  value_drop(ev, i);
  return to;
}

bool is_lvalue(const Ast *n) {
  while (n->kind == AST_index || (n->kind == AST_member && !n->nplace)) n = n->a;
  return n->kind == AST_name;
}

static LangValue *place_at(Eval *ev, const Ast *n, LangValue **index) {
  if (n->kind == AST_index || n->kind == AST_member)
    return inside(ev, n, place_at(ev, n->a, index), index);
  LangValue *to = variable_find(ev, n->place, n->nplace);
  if (!to) eval_fail(ev, n, "Cannot assign to undefined variable: %s", str_text(ev->c, n->name));
  return to;
}

LangValue *lvalue_place(Eval *ev, const Ast *n, LangValue *index) {
  return place_at(ev, n, &index);
}

void bi_push(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  (void)arg, (void)n, (void)out;
  ARG_BAD(ev, "push() has no variable"); /* the instruction `push` handles it */
}

void bi_pop(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  bi_push(ev, arg, n, out);
}
