/* lang_eval.c: interprets statements and simple expressions.
 *
 * In: a checked AST. Out: what the program prints. Each node returns a value. break, continue and
 * return set `flow`, which is tested after each statement. The nesting depth of nodes and calls is
 * bounded, so that programs cannot exhaust the stack.
 */
#include "lang/run/dry.h"
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

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

static const LangValue null = {.kind = KD_null};

static LangValue *slot_of(Eval *ev, const VarRef *p) {
  Locals *l = p->kind == VR_global ? ev->file[p->file] : ev->local;
  return l && p->slot < l->n ? &l->at[p->slot] : NULL;
}

LangValue *eval_variable(Eval *ev, const Ast *name) {
  for (u32 i = 0; i < name->nplace; i++) {
    if (name->place[i].kind == VR_self) return NULL;
    LangValue *d = slot_of(ev, &name->place[i]);
    if (d && d->kind != KD_none) return d;
  }
  return NULL;
}

static LangValue eval_name(Eval *ev, const Ast *n) {
  for (u32 i = 0; i < n->nplace; i++) {
    if (n->place[i].kind == VR_self) {
      ev->local->self->box.refs++;
      return (LangValue){KD_fn, .u = {.fn = ev->local->self}};
    }
    LangValue *d = slot_of(ev, &n->place[i]);
    if (d && d->kind != KD_none) {
      if (ev->dry) dry_require_known(ev, n, d);
      return value_retain(d);
    }
  }
  eval_fail(ev, n, "Undefined variable: %s", str_text(ev->c, n->name));
}

/* Takes v. */
static LangValue define(Eval *ev, u32 slot, LangValue v) {
  LangValue old = ev->local->at[slot];
  ev->local->at[slot] = v;
  value_drop(ev, &old);
  return value_retain(&v);
}

static LangValue eval_let(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  return ev->flow == FLOW_next ? define(ev, n->slot, v) : v; /* no value after a break */
}

static LangValue eval_set(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->b);
  if (ev->flow != FLOW_next) return v;
  if (!is_lvalue(n->a)) eval_fail(ev, n->a, "Invalid assignment target");
  LangValue *to = eval_lvalue(ev, n->a);
  LangValue old = *to;
  *to = value_retain(&v);
  value_drop(ev, &old);
  return v;
}

/* ---- blocks and control ---- */

void eval_hoist(Eval *ev, const Ast *block) {
  for (u32 i = 0; i < block->nkid; i++) {
    Ast *n = block->kid[i];
    if (n->kind != AST_fn || !n->name || ev->local->at[n->slot].kind != KD_none) continue;
    LangValue f = define(ev, n->slot, eval_closure(ev, n));
    value_drop(ev, &f);
  }
}

LangValue eval_block(Eval *ev, const Ast *n) {
  LangValue v = null;
  for (u32 i = 0; i < n->nkid && ev->flow == FLOW_next; i++) {
    value_drop(ev, &v);
    v = eval_node(ev, n->kid[i]);
  }
  return v;
}

static bool eval_condition(Eval *ev, Ast *n) {
  LangValue c = eval_node(ev, n);
  if (value_is_unknown(ev, &c)) dry_refuse(ev, n, "a choice");
  bool yes = value_is_true(&c);
  value_drop(ev, &c);
  return yes;
}

static LangValue eval_if(Eval *ev, const Ast *n) {
  LangValue c = eval_node(ev, n->a);
  bool yes = value_is_true(&c), open = value_is_unknown(ev, &c);
  value_drop(ev, &c);
  if (open && ev->flow == FLOW_next) return dry_if(ev, n);
  if (yes) return eval_block(ev, n->b);
  if (!n->c) return null;
  return n->c->kind == AST_if ? eval_node(ev, n->c) : eval_block(ev, n->c);
}

void eval_check_stop(Eval *ev, const Ast *at) {
  if (ev->o->stop && *ev->o->stop) eval_fail(ev, at, "stopped");
}

/* After an iteration: true if the loop continues. */
static bool loop_continues(Eval *ev, const Ast *loop) {
  eval_check_stop(ev, loop);
  if (ev->dry) return dry_loop_next(ev, ev->dry->loop);
  if (ev->flow == FLOW_return) return false;
  bool end = ev->flow == FLOW_break;
  ev->flow = FLOW_next;
  return !end;
}

static LangValue eval_while(Eval *ev, Ast *n) {
  LangValue v = null;
  if (ev->dry) return dry_while(ev, n);
  HotIter hot = hot_begin(ev, n);
  while (!hot_run(ev, &hot, n, &v) && eval_condition(ev, n->a)) {
    value_drop(ev, &v);
    v = eval_block(ev, n->b);
    if (!loop_continues(ev, n)) break;
  }
  return v;
}

static void clear_scope(Eval *ev, const Ast *scope) {
  for (u32 i = 0; i < scope->nslot; i++) value_drop(ev, &ev->local->at[scope->slot + i]);
}

/* One iteration with the variable set to v, which is taken. *last is the value of the loop. */
static bool iterate_once(Eval *ev, const Ast *n, LangValue v, LangValue *last) {
  LangValue x = define(ev, n->slot, v);
  value_drop(ev, &x);
  value_drop(ev, last);
  *last = eval_block(ev, n->b);
  return loop_continues(ev, n);
}

/* Runs the iterations from t->at on, interpreted or compiled. */
static void iterate(Eval *ev, Ast *n, HotIter *t, LangValue *last) {
  DryLoop dry;
  bool on = true;
  clear_scope(ev, n);
  if (ev->dry) dry_loop_begin(ev, n, &dry);
  while (on && t->at < t->end && !hot_run(ev, t, n, last)) {
    LangValue v = t->over ? value_retain(&t->over->at[t->at]) : value_int(t->at);
    t->at++;
    on = iterate_once(ev, n, v, last);
    if (!on || !ev->dry || !dry_loop_is_idle(ev, &dry)) continue;
    dry_unknown_loop(ev, n, t->over ? dry_any_element(ev, t->over) : value_unknown(ev, KD_int));
    break;
  }
  if (ev->dry) dry_loop_end(ev, &dry);
  clear_scope(ev, n);
}

static LangValue eval_for(Eval *ev, Ast *n) {
  LangValue last = null, over = null;
  HotIter hot = hot_begin(ev, n);
  if (n->a->kind == AST_range && !n->a->to) { /* a range is not materialized */
    if (!eval_bounds(ev, n->a, &hot.at, &hot.end)) {
      clear_scope(ev, n);
      dry_unknown_loop(ev, n, value_unknown(ev, KD_int));
      clear_scope(ev, n);
      return last;
    }
  } else {
    over = eval_node(ev, n->a);
    if (ev->flow != FLOW_next) return over;
    if (over.kind != KD_array)
      eval_fail(ev, n->a, "Cannot iterate over type %s", value_kind_name(&over));
    if (value_is_unknown(ev, &over)) {
      clear_scope(ev, n);
      dry_unknown_loop(ev, n, dry_any_element(ev, over.u.list));
      clear_scope(ev, n);
      value_drop(ev, &over);
      return last;
    }
    hot.over = over.u.list;
    hot.end = (i64)over.u.list->n;
  }
  iterate(ev, n, &hot, &last);
  value_drop(ev, &over);
  return last;
}

static LangValue eval_return(Eval *ev, const Ast *n) {
  LangValue v = n->a ? eval_node(ev, n->a) : null;
  if (ev->flow != FLOW_next) return v;
  ev->result = v;
  ev->flow = FLOW_return;
  return null;
}

static LangValue eval_list(Eval *ev, const Ast *n) {
  LangValue l = value_list(ev, n->kind == AST_array ? KD_array : KD_tuple, n->nkid);
  for (u32 i = 0; i < n->nkid; i++) l.u.list->at[i] = eval_node(ev, n->kid[i]);
  return l;
}

static LangValue eval_repeat(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a), times = eval_node(ev, n->b);
  if (ev->flow != FLOW_next) return v;
  if (value_is_unknown(ev, &times)) dry_refuse(ev, n, "a length");
  return value_repeat(ev, n, v, &times);
}

static bool pattern_matches(Eval *ev, const Ast *pattern, const LangValue *v) {
  if (!pattern || pattern->kind == AST_name) return true;
  /* value of a one-element tensor; parameters are tensors while they are differentiated */
  LangValue number;
  if (v->kind == KD_tensor && v->u.lazy->n == 1 && pattern->kind == AST_float) {
    number = value_float(lazy_data(ev, v->u.lazy)[0]);
    v = &number;
  }
  switch (pattern->kind) {
  case AST_int: return v->kind == KD_int && v->u.i == pattern->i;
  case AST_float: return v->kind == KD_float && fabs(v->u.f - pattern->f) < 0x1p-52;
  case AST_bool: return v->kind == KD_bool && v->u.i == pattern->i;
  default:
    return v->kind == KD_string && v->u.text->n == str_len(ev->c, pattern->name) &&
           !memcmp(v->u.text->at, str_text(ev->c, pattern->name), v->u.text->n);
  }
}

static LangValue eval_match(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  if (ev->flow != FLOW_next) return v;
  if (value_is_unknown(ev, &v)) return dry_match(ev, n, v);
  for (u32 i = 0; i < n->nkid; i++) {
    const Ast *arm = n->kid[i];
    if (!pattern_matches(ev, arm->a, &v)) continue;
    clear_scope(ev, arm);
    if (arm->a && arm->a->kind == AST_name) {
      LangValue x = define(ev, arm->a->slot, v);
      value_drop(ev, &x);
    } else {
      value_drop(ev, &v);
    }
    LangValue r = arm->b->kind == AST_block ? eval_block(ev, arm->b) : eval_node(ev, arm->b);
    clear_scope(ev, arm);
    return r;
  }
  eval_fail(ev, n, "Non-exhaustive match: value %s didn't match any pattern", value_kind_name(&v));
}

static LangValue eval_item(Eval *ev, const Ast *n) {
  LangValue v = eval_node(ev, n->a);
  if (ev->flow != FLOW_next) return v;
  return value_item(ev, n, v, n->i);
}

static LangValue eval_operands(Eval *ev, const Ast *n) {
  if (n->op == TOK_and || n->op == TOK_or) {
    LangValue c = eval_node(ev, n->a), d;
    bool first = value_is_true(&c), open = value_is_unknown(ev, &c);
    value_drop(ev, &c);
    if (!open && first == (n->op == TOK_or)) return value_bool(first);
    d = eval_node(ev, n->b);
    bool second = value_is_true(&d);
    open |= value_is_unknown(ev, &d);
    value_drop(ev, &d);
    return open ? value_unknown(ev, KD_bool) : value_bool(second);
  }
  LangValue x = eval_node(ev, n->a), y = eval_node(ev, n->b);
  if (ev->dry) {
    dry_require_known(ev, n->a, &x);
    dry_require_known(ev, n->b, &y);
  }
  LangValue r = ev->flow == FLOW_next ? eval_binary(ev, n, &x, &y) : null;
  value_drop(ev, &x);
  value_drop(ev, &y);
  return r;
}

static LangValue eval_by_kind(Eval *ev, Ast *n) {
  switch (n->kind) {
  case AST_int: return value_int(n->i);
  case AST_float: return value_float(n->f);
  case AST_bool: return value_bool(n->i);
  case AST_string: return value_string(ev, str_text(ev->c, n->name), str_len(ev->c, n->name));
  case AST_name: return eval_name(ev, n);
  case AST_array:
  case AST_tuple: return eval_list(ev, n);
  case AST_repeat: return eval_repeat(ev, n);
  case AST_range: return eval_range(ev, n);
  case AST_unary: return eval_unary(ev, n);
  case AST_binary: return eval_operands(ev, n);
  case AST_cast: return eval_cast(ev, n);
  case AST_index: return eval_index(ev, n);
  case AST_item: return eval_item(ev, n);
  case AST_match: return eval_match(ev, n);
  case AST_call: return eval_call(ev, n);
  case AST_named: return eval_node(ev, n->a);
  case AST_let: return eval_let(ev, n);
  case AST_set: return eval_set(ev, n);
  case AST_if: return eval_if(ev, n);
  case AST_while: return eval_while(ev, n);
  case AST_for: return eval_for(ev, n);
  case AST_return: return eval_return(ev, n);
  case AST_block: return eval_block(ev, n);
  case AST_break: ev->flow = FLOW_break; return null;
  case AST_continue: ev->flow = FLOW_continue; return null;
  case AST_model: return define(ev, n->slot, model_class(ev, n));
  case AST_struct: return null;
  case AST_record: return eval_record(ev, n);
  case AST_member: return n->nplace ? eval_name(ev, n) : eval_member(ev, n);
  case AST_import:
    return define(ev, n->slot, n->module ? eval_module(ev, n->module) : net_import(ev, n));
  case AST_fn: return n->name ? define(ev, n->slot, eval_closure(ev, n)) : eval_closure(ev, n);
  default: eval_fail(ev, n, "this is not supported yet");
  }
}

LangValue eval_node(Eval *ev, Ast *n) {
  if (++ev->depth > EVAL_DEPTH)
    eval_fail(ev, ev->local->call ? ev->local->call : n, "calls are nested too deeply");
  LangValue d = eval_by_kind(ev, n);
  ev->depth--;
  if (n->to && ev->flow == FLOW_next) value_convert(ev, n, &d, n->to);
  return d;
}
