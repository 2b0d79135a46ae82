/* native_stmt.c: statements, variables and lvalues as C; see native.h. */
#include "lang/run/native.h"

static const char *slot_of_file(NativeGen *p, u32 file, u32 slot) {
  return str_text(p->c, str_fmt(p->c, "g%u[%u]", file, slot));
}

const char *native_slot(NativeGen *p, u32 slot) {
  if (!p->in) return slot_of_file(p, p->file, slot);
  return str_text(p->c, str_fmt(p->c, "l%u", slot));
}

static const char *variable(NativeGen *p, const VarRef *v) {
  return v->kind == VR_global ? slot_of_file(p, v->file, v->slot) : native_slot(p, v->slot);
}

const char *native_pointer(NativeGen *p, const VarRef *place, u32 n) {
  StrBuf t = sb_new(p->a);
  if (n > 1) sb_puts(&t, "(");
  for (u32 i = 0; i < n; i++) {
    const char *v = variable(p, &place[i]);
    if (i + 1 < n)
      sb_fmt(&t, "%s.kind ? &%s : ", v, v);
    else
      sb_fmt(&t, "&%s", v);
  }
  sb_puts(&t, n > 1 ? ")" : n ? "" : "(LangValue *)0");
  return sb_cstr(&t);
}

/* Number of places before the name of the function itself, which is not a variable. */
static u32 variables(const Ast *n) {
  u32 i = 0;
  while (i < n->nplace && n->place[i].kind != VR_self) i++;
  return i;
}

/* Indices are evaluated from left to right, then the variable is looked up. */
const char *native_lvalue(NativeGen *p, const Ast *n) {
  VEC(const Ast *) step = {0};
  for (; n->kind != AST_name; n = n->a) *vec_push(p->a, &step) = n;
  Temp *index = NEWS(p->a, Temp, step.n + 1);
  for (u32 i = step.n; i-- > 0;)
    if (step.at[i]->kind == AST_index) index[i] = native_expr(p, step.at[i]->b);
  u32 q = native_temp(p);
  native_emit(p, "LangValue *q%u = assigned(%s, %s, %u);", q,
              native_pointer(p, n->place, variables(n)), native_quoted(p, n->name),
              native_loc(p, n));
  for (u32 i = step.n; i-- > 0;) {
    const Ast *x = step.at[i];
    if (x->kind == AST_index) {
      native_emit(p, "q%u = place_element(q%u, t%u, %u, %u);", q, q, index[i], native_loc(p, x),
                  native_loc(p, x->b));
      native_moved(p, index[i]);
    } else {
      native_emit(p, "q%u = place_field(q%u, %s, %u);", q, q, native_quoted(p, x->name),
                  native_loc(p, x));
    }
  }
  return str_text(p->c, str_fmt(p->c, "q%u", q));
}

void native_clear_scope(NativeGen *p, const Ast *scope) {
  for (u32 i = 0; i < scope->nslot; i++)
    native_emit(p, "forget(&%s);", native_slot(p, scope->slot + i));
}

/* Drops the temps that are live inside the construct being left. */
static void drop_live(NativeGen *p, u32 from) {
  for (u32 i = p->live.n; i-- > from;) native_emit(p, "drop(t%u);", p->live.at[i]);
}

static void jump_out(NativeGen *p, bool breaks) {
  NativeLoop *l = p->loop;
  drop_live(p, l->live);
  if (breaks)
    l->breaks = true;
  else
    l->continues = true;
  native_emit(p, "goto %s%u;", breaks ? "b" : "c", l->number);
}

static void return_stmt(NativeGen *p, const Ast *n) {
  Temp t = n->a ? native_expr(p, n->a) : 0;
  if (t) native_moved(p, t);
  drop_live(p, 0);
  if (t && p->in)
    native_emit(p, "set(&r, t%u);", t);
  else if (t)
    native_emit(p, "drop(t%u);", t);
  else if (p->in)
    native_emit(p, "set(&r, null);");
  native_emit(p, "goto out;");
}

/* ---- loops; the value is that of the last statement in the last iteration, null after a break
 * ---- */

static void loop_body(NativeGen *p, const Ast *n, NativeLoop *l, Temp to) {
  *l = (NativeLoop){.outer = p->loop, .number = ++p->nloop, .live = p->live.n};
  p->loop = l;
  if (to) native_emit(p, "set(&t%u, null);", to);
  Temp t = to ? native_temp(p) : 0;
  if (t) {
    native_emit(p, "LangValue t%u = {.kind = KD_none};", t);
    native_live(p, t);
  }
  native_block(p, n->b, t);
  if (t) {
    native_moved(p, t);
    native_emit(p, "set(&t%u, t%u);", to, t);
  }
  if (l->continues) native_emit(p, "c%u:;", l->number);
  p->loop = l->outer;
}

static void loop_end(NativeGen *p, const NativeLoop *l) {
  p->deep--;
  native_emit(p, "}");
  if (l->breaks) native_emit(p, "b%u:;", l->number);
}

static void loop_while(NativeGen *p, const Ast *n, Temp to) {
  NativeLoop l;
  if (to) native_emit(p, "set(&t%u, null);", to);
  native_emit(p, "for (;;) {");
  p->deep++;
  Temp c = native_expr(p, n->a);
  native_moved(p, c);
  native_emit(p, "if (!holds(t%u)) break;", c);
  loop_body(p, n, &l, to);
  loop_end(p, &l);
}

static void loop_for(NativeGen *p, const Ast *n, Temp to) {
  NativeLoop l;
  if (to) native_emit(p, "set(&t%u, null);", to);
  bool numbers = n->a->kind == AST_range && !n->a->to;
  Temp t = numbers ? native_bounds(p, n->a) : native_expr(p, n->a);
  if (!numbers)
    native_emit(p,
                "if (t%u.kind != KD_array) script_fail(%u, \"Cannot iterate over type %%s\", "
                "value_kind_name(&t%u));",
                t, native_loc(p, n->a), t);
  native_clear_scope(p, n);
  if (numbers)
    native_emit(p, "for (int64_t i%u = lo%u; i%u < hi%u; i%u++) {", t, t, t, t, t);
  else
    native_emit(p, "for (uint64_t i%u = 0; i%u < t%u.u.list->n; i%u++) {", t, t, t, t);
  p->deep++;
  if (numbers)
    native_emit(p, "set(&%s, of_int(i%u));", native_slot(p, n->slot), t);
  else
    native_emit(p, "set(&%s, share(t%u.u.list->at[i%u]));", native_slot(p, n->slot), t, t);
  loop_body(p, n, &l, to);
  loop_end(p, &l);
  native_clear_scope(p, n);
  if (numbers) return;
  native_moved(p, t);
  native_emit(p, "drop(t%u);", t);
}

static void if_stmt(NativeGen *p, const Ast *n, Temp to) {
  Temp c = native_expr(p, n->a);
  native_moved(p, c);
  native_emit(p, "if (holds(t%u)) {", c);
  p->deep++;
  native_block(p, n->b, to);
  p->deep--;
  if (n->c || to) native_emit(p, "} else {");
  p->deep++;
  if (n->c)
    native_stmt(p, n->c, to);
  else if (to)
    native_emit(p, "t%u = null;", to);
  p->deep--;
  native_emit(p, "}");
}

static void define(NativeGen *p, u32 slot, Temp t, Temp to) {
  const char *v = native_slot(p, slot);
  native_moved(p, t);
  native_emit(p, "set(&%s, t%u);", v, t);
  if (to) native_emit(p, "t%u = share(%s);", to, v);
}

static void assign(NativeGen *p, const Ast *n, Temp to) {
  Temp t = native_expr(p, n->b);
  const char *q = native_lvalue(p, n->a);
  native_moved(p, t);
  native_emit(p, to ? "set(%s, share(t%u));" : "set(%s, t%u);", q, t);
  if (to) native_emit(p, "t%u = t%u;", to, t);
}

static void import(NativeGen *p, const Ast *n, Temp to) {
  if (!n->module) {
    p->tensors = true;
    const char *path =
        path_relative_to(p->c, p->s->all->at[n->file]->file, str_text(p->c, n->a->name));
    Temp t = native_temp(p);
    native_emit(p, "LangValue t%u = net_new(%s);", t, native_quoted(p, str_of(p->c, path)));
    native_live(p, t);
    define(p, n->slot, t, to);
    return;
  }
  u32 k = n->module->number;
  native_emit(p, "if (!ran[%u]) ran[%u] = 1, file_%u();", k, k, k);
  if (to) native_emit(p, "t%u = null;", to);
}

/* ---- models: as class.c makes them ---- */

static void add_activation(NativeGen *p, const Ast *n, Temp class) {
  u32 i = 0;
  while (i + 1 < activation_count && !str_is(p->c, n->name, activation_name[i])) i++;
  native_emit(p, "class_plain(t%u, OBJ_activation, %u);", class, i);
}

static void add_layer(NativeGen *p, const Ast *n, Temp class) {
  u32 row = 0, count = 0;
  while (row + 1 < layer_count && !str_is(p->c, n->a->name, layer_info[row].name)) row++;
  const LayerInfo *l = &layer_info[row];
  while (count < n->nkid && n->kid[count]->kind != AST_named) count++;
  if (l->make) {
    Temp *arg = NEWS(p->a, Temp, count + 1);
    for (u32 i = 0; i < count; i++) arg[i] = native_expr(p, n->kid[i]);
    u32 a = native_temp(p);
    native_emit(p, "LangValue a%u[%u];", a, count + 1);
    for (u32 i = 0; i < count; i++) {
      native_emit(p, "a%u[%u] = t%u;", a, i, arg[i]);
      native_moved(p, arg[i]);
    }
    native_emit(p, "class_add(t%u, builtin(bi_%s, \"%s\", a%u, %u, %u));", class,
                native_builtin(l->make), l->make, a, count, native_loc(p, n));
    for (u32 i = 0; i < count; i++) native_emit(p, "drop(a%u[%u]);", a, i);
  } else if (count) {
    add_activation(p, n->kid[0], class);
  } else {
    native_emit(p, "class_plain(t%u, OBJ_flatten, 0);", class);
  }
  if (n->nkid > count) add_activation(p, n->kid[count]->a, class);
}

static void class(NativeGen *p, const Ast *n, Temp to) {
  p->tensors = true;
  Temp t = native_temp(p);
  native_emit(p, "LangValue t%u = class_new(%s, %u);", t, native_quoted(p, n->name), 2 * n->nkid);
  native_live(p, t);
  for (u32 i = 0; i < n->nkid; i++) add_layer(p, n->kid[i], t);
  define(p, n->slot, t, to);
}

static void compute(NativeGen *p, Ast *n, Temp to) {
  Temp t = native_expr(p, n);
  native_moved(p, t);
  if (to)
    native_emit(p, "t%u = t%u;", to, t);
  else
    native_emit(p, "drop(t%u);", t);
}

static void plain(NativeGen *p, Ast *n, Temp to) {
  switch (n->kind) {
  case AST_let: define(p, n->slot, native_expr(p, n->a), to); return;
  case AST_set: assign(p, n, to); return;
  case AST_return: return_stmt(p, n); return;
  case AST_break:
  case AST_continue: jump_out(p, n->kind == AST_break); return;
  case AST_if: if_stmt(p, n, to); return;
  case AST_while: loop_while(p, n, to); return;
  case AST_for: loop_for(p, n, to); return;
  case AST_block: native_block(p, n, to); return;
  case AST_import: import(p, n, to); return;
  case AST_model: class(p, n, to); return;
  case AST_struct:
    if (to) native_emit(p, "t%u = null;", to);
    return;
  case AST_fn:
    if (n->name) {
      define(p, n->slot, native_closure(p, n), to);
      return;
    } /* fall through */
  default: compute(p, n, to);
  }
}

void native_stmt(NativeGen *p, Ast *n, Temp to) {
  plain(p, n, to);
  if (n->kind == AST_if && n->to && to)
    native_emit(p, "becomes(&t%u, &type_%u, %u);", to, native_type(p, n, n->to), native_loc(p, n));
}

void native_block(NativeGen *p, const Ast *n, Temp to) {
  if (!n->nkid && to) native_emit(p, "t%u = null;", to);
  for (u32 i = 0; i < n->nkid; i++) native_stmt(p, n->kid[i], i + 1 == n->nkid ? to : 0);
}
