/* native_program.c: translates a whole program to one C file.
 *
 * In: a checked program with its modules. Out: C that prints what `ingot run` prints, bit for bit.
 * Unsupported constructs are refused with their position. Tensor computations are Graphs, which a
 * dry run finds (dry.h) and native_graphs.c compiles like networks. tools/script_all.c has the
 * values and functions of src/lang.
 *
 * Register code is printed as C and not lowered to Prog: Prog has loops over buffers of known
 * shape, but no values with dynamic size, sharing or kind. Tensor code is never generated here.
 */
#include "lang/run/native.h"

#include <string.h>

extern const unsigned char script_text[];
extern const size_t script_text_size;

void native_emit(NativeGen *p, const char *fmt, ...) {
  va_list args;
  for (u32 i = 0; i <= p->deep; i++) sb_puts(p->out, "  ");
  va_start(args, fmt);
  sb_vfmt(p->out, fmt, args);
  va_end(args);
  sb_puts(p->out, "\n");
}

const char *native_quoted(NativeGen *p, Str s) {
  StrBuf t = sb_new(p->a);
  emit_string(&t, str_text(p->c, s), str_len(p->c, s));
  return sb_cstr(&t);
}

/* ---- tables; numbers begin with 0 ---- */

u32 native_loc(NativeGen *p, const Ast *n) {
  u32 *at = map_put(&p->place_at, (u64)n->file << 32 | n->at);
  if (!*at) {
    *vec_push(p->a, &p->place) = n;
    *at = p->place.n;
  }
  return *at - 1;
}

u32 native_string(NativeGen *p, Str s) {
  u32 *at = map_put(&p->string_at, s);
  if (!*at) {
    *vec_push(p->a, &p->string) = s;
    *at = p->string.n;
  }
  return *at - 1;
}

u32 native_struct(NativeGen *p, const StructInfo *s) {
  u32 *at = map_put(&p->struct_at, (u64)s->file << 32 | s->name);
  if (*at) return *at - 1;
  *vec_push(p->a, &p->structs) = s;
  *at = p->structs.n;
  sb_fmt(&p->tables, "static const StructInfo struct_%u = {\"%s\", %u, (const char *const[]){",
         p->structs.n - 1, s->text, s->n);
  for (u32 i = 0; i < s->n; i++)
    sb_fmt(&p->tables, "%s\"%s\"", i ? ", " : "", str_text(p->c, s->field[i]));
  sb_puts(&p->tables, "}};\n");
  return p->structs.n - 1;
}

/* Writes rank, extents and symbol names of a tensor type. */
static void put_extents(NativeGen *p, const LangType *t) {
  sb_fmt(&p->tables, ", .shaped = true, .rank = %u, .dim = (const i64[]){", t->rank);
  for (u32 i = 0; i < t->rank; i++) sb_fmt(&p->tables, "%lld, ", (long long)t->dim[i]);
  sb_puts(&p->tables, "0}");
  if (!t->name) return;
  sb_puts(&p->tables, ", .name = (const char *const[]){");
  for (u32 i = 0; i < t->rank; i++)
    sb_fmt(&p->tables, "%s, ", t->name[i] ? native_quoted(p, t->name[i]) : "NULL");
  sb_puts(&p->tables, "NULL}");
}

u32 native_type(NativeGen *p, const LangType *t) {
  static const char *const kinds[KD_COUNT] = {
#define KIND(name, text) "KD_" #name,
#include "lang/syntax/kinds.def"
#undef KIND
  };
  u32 *known = map_get(&p->type_at, (u64)(uintptr_t)t);
  if (known) return *known - 1;
  if (t->kind == KD_tensor || t->kind == KD_object) p->tensors = true;
  u32 elem = t->kind == KD_array ? native_type(p, t->elem) : 0;
  u32 of = t->kind == KD_struct ? native_struct(p, t->of) : 0;
  StrBuf items = sb_new(p->a);
  for (u32 i = 0; t->kind == KD_tuple && i < t->n; i++)
    sb_fmt(&items, "%s&type_%u", i ? ", " : "", native_type(p, t->item[i]));
  *vec_push(p->a, &p->type) = t;
  *map_put(&p->type_at, (u64)(uintptr_t)t) = p->type.n;
  sb_fmt(&p->tables, "static const LangType type_%u = {%s, ", p->type.n - 1, kinds[t->kind]);
  const char *text = lang_type_text(p->c, t);
  emit_string(&p->tables, text, strlen(text));
  if (t->kind == KD_array) sb_fmt(&p->tables, ", .elem = &type_%u", elem);
  if (t->kind == KD_tuple)
    sb_fmt(&p->tables, ", .item = (const LangType *const[]){%s}, .n = %u", sb_cstr(&items), t->n);
  if (t->kind == KD_struct) sb_fmt(&p->tables, ", .of = &struct_%u", of);
  if (t->kind == KD_tensor && t->shaped) put_extents(p, t);
  sb_puts(&p->tables, "};\n");
  return p->type.n - 1;
}

u32 native_fn(NativeGen *p, LangFn *f) {
  u32 *at = map_put(&p->fn_at, (u64)(uintptr_t)f);
  if (!*at) {
    *vec_push(p->a, &p->fn) = f;
    *at = p->fn.n;
  }
  return *at - 1;
}

static void put_function(NativeGen *p, Eval *ev, u32 number) {
  LangFn *f = p->fn.at[number];
  const RegCode *code = code_of_fn(ev, f);
  sb_fmt(p->out,
         "\n/* %s */\nstatic LangValue f%u(ClosureObj *self, LangValue *arg, const int *at) {\n",
         f->ast->name ? str_text(p->c, f->ast->name) : "a function without a name", number);
  native_emit(p, "LangValue r;");
  for (u32 i = 0; i < code->nvar; i++)
    if (i < code->nparam)
      native_emit(p, "LangValue v%u = arg[%u];", i, i);
    else
      native_emit(p, "LangValue v%u = {.kind = KD_none};", i);
  for (u32 i = 0; i < f->capture.n; i++)
    native_emit(p, "v%u = share(self->with[%u]);", f->capture.at[i].slot, i);
  native_emit(p, "(void)self, (void)arg, (void)at;");
  native_code(p, code);
  sb_puts(p->out, "out:\n");
  for (u32 i = 0; i < code->nvar; i++) native_emit(p, "drop(v%u);", i);
  native_emit(p, code->floats ? "return promoted(r);" : "return r;");
  sb_puts(p->out, "}\n");
}

static void put_shape(NativeGen *p, u32 number, StrBuf *out) {
  const LangFn *f = p->fn.at[number];
  StrBuf params = sb_new(p->a);
  for (u32 i = 0; i < f->ast->nkid; i++) {
    const LangType *t = f->self.item[i];
    if (t->kind == KD_any || t->kind == KD_none)
      sb_puts(&params, "NULL, ");
    else
      sb_fmt(&params, "&type_%u, ", native_type(p, t));
  }
  sb_fmt(out, "static LangFn fn_%u = {f%u, %u, (const LangType *const[]){%sNULL}, %u};\n", number,
         number, f->ast->nkid, sb_cstr(&params), f->capture.n);
}

static void put_file(NativeGen *p, Eval *ev, const Script *s) {
  sb_fmt(p->out, "\n/* the statements of %s */\nstatic void file_%u(void) {\n",
         s->number ? "a module" : "the program", s->number);
  native_code(p, code_of_file(ev, s, 0, false));
  sb_puts(p->out, "out:;\n}\n");
}

static void put_places(NativeGen *p, StrBuf *out) {
  sb_puts(out, "const Place script_place[] = {\n");
  for (u32 i = 0; i < p->place.n; i++) {
    const Ast *n = p->place.at[i];
    const char *all = script_place(p->s->all->at[n->file], n->at, "\001", NULL);
    const char *line = strchr(all, '\001') + 1; /* file names never contain \001 */
    sb_puts(out, "  {");
    emit_string(out, all, (size_t)(line - all - 3)); /* without ": " */
    sb_puts(out, ", ");
    emit_string(out, line, strlen(line));
    sb_puts(out, "},\n");
  }
  sb_puts(out, "  {\"\", \"\"}};\n");
  sb_fmt(out, "const uint32_t script_nplace = %u;\nconst uint64_t script_seed = 0;\n",
         p->place.n + 1);
}

static void put_main(NativeGen *p, const Ast *main, StrBuf *out) {
  sb_puts(out, "\nstatic void script_main(void) {\n");
  for (u32 i = 0; i < p->string.n; i++)
    sb_fmt(out, "  strings[%u] = value_string(&eval, %s, %zu);\n", i,
           native_quoted(p, p->string.at[i]), (size_t)str_len(p->c, p->string.at[i]));
  sb_puts(out, "  file_0();\n");
  if (main)
    sb_fmt(out, "  static const int at[] = {%u};\n  drop(call(share(g0[%u]), NULL, 0, at));\n",
           native_loc(p, main), main->slot);
  for (u32 i = 0; i < p->s->all->n; i++)
    for (u32 k = 0; k < p->s->all->at[i]->main->nslot; k++) sb_fmt(out, "  drop(g%u[%u]);\n", i, k);
  for (u32 i = 0; i < p->string.n; i++) sb_fmt(out, "  drop(strings[%u]);\n", i);
  sb_puts(out, "}\n");
}

bool native_program(Eval *ev, const Ast *main, const StrBuf *graphs, StrBuf *out) {
  Script *s = ev->s;
  Ctx *c = s->c;
  NativeGen p = {.c = c, .a = &c->work, .s = s, .typed = !graphs};
  StrBuf shapes = sb_new(p.a), end = sb_new(p.a), places = sb_new(p.a);
  p.tables = sb_new(p.a);
  p.bodies = sb_new(p.a);
  p.out = &p.bodies;
  p.fn_at = map_new(p.a);
  p.string_at = map_new(p.a);
  p.place_at = map_new(p.a);
  p.type_at = map_new(p.a);
  p.struct_at = map_new(p.a);
  for (u32 i = s->all->n; i-- > 0;) put_file(&p, ev, s->all->at[i]);
  for (u32 i = 0; i < p.fn.n; i++) put_function(&p, ev, i);
  for (u32 i = 0; i < p.fn.n; i++) put_shape(&p, i, &shapes);
  diag_raise(c);
  if (p.tensors && !graphs) return false;
  put_main(&p, main, &end);
  put_places(&p, &places);
  sb_fmt(out, "#define SCRIPT_TENSORS %d\n", p.tensors);
  sb_put(out, script_text, script_text_size);
  if (graphs)
    sb_put(out, graphs->at, graphs->n);
  else
    native_graphs(NULL, out);
  sb_puts(out, "\n/* ---- the program ---- */\n\n");
  sb_put(out, places.at, places.n);
  for (u32 i = 0; i < s->all->n; i++)
    sb_fmt(out, "static LangValue g%u[%u];\nstatic void file_%u(void);\n", i,
           s->all->at[i]->main->nslot + 1, i);
  sb_fmt(out, "static LangValue strings[%u];\nstatic char ran[%u];\n", p.string.n + 1, s->all->n);
  sb_put(out, p.tables.at, p.tables.n);
  for (u32 i = 0; i < p.fn.n; i++) sb_fmt(out, "static Code f%u;\n", i);
  sb_put(out, shapes.at, shapes.n);
  sb_put(out, p.bodies.at, p.bodies.n);
  sb_put(out, end.at, end.n);
  return true;
}
