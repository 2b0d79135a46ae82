/* chelper.c: vector functions of a file.
 *
 * In: an operation, its element type, and e->b.w, the number of lanes. Out: the name of a function
 * that is in the file once: a row of cvop.def, or a loop over lanes around scalar code. */
#include "back/c/c.h"

#include <string.h>

/* ---- types ---- */

/* Type that values are computed in: narrow floats as f32, narrow integers and bools as bytes. */
DType elem_of(DType dt) {
  if (dtype_is_float(dt)) return dt == DT_f64 ? dt : DT_f32;
  if (dtype_info[dt].bits >= 8) return dt;
  return dtype_is_signed(dt) ? DT_i8 : DT_u8;
}

DType signed_of(u32 bytes) {
  return bytes == 1 ? DT_i8 : bytes == 2 ? DT_i16 : bytes == 4 ? DT_i32 : DT_i64;
}

DType unsigned_of(u32 bytes) {
  return bytes == 1 ? DT_u8 : bytes == 2 ? DT_u16 : bytes == 4 ? DT_u32 : DT_u64;
}

static u32 log2_of(u32 w) {
  u32 n = 0;
  while (w > 1) w /= 2, n++;
  return n;
}

const char *vector_type(Emit *e, DType k, bool memory) {
  StrBuf t = sb_new(e->b.a);
  e->variant->vec.type[k][log2_of(e->b.w)] = true;
  if (memory) e->variant->vec.memory[k][log2_of(e->b.w)] = true;
  put_template(e, &t, "ig_%sx%u%s@", dtype_info[k].name, e->b.w, memory ? "u" : "");
  return sb_cstr(&t);
}

/* Opens conversions of vectors; the caller closes them with the returned text. Each step changes
 * the size by a factor of two: for larger steps compilers leave the vector registers. */
const char *open_convert(Emit *e, StrBuf *t, DType from, DType to) {
  StrBuf end = sb_new(e->b.a);
  bool bytes = (from == DT_u8 || from == DT_i8) && (to == DT_i32 || to == DT_f32);
  const char *widen = bytes ? need_vector(e, "widen", from, NULL) : NULL;
  if (from == DT_u16 && to == DT_i32) widen = need_vector(e, "widen_u16", from, NULL);
  if (widen) {
    const char *rest = open_convert(e, t, DT_i32, to);
    sb_fmt(t, "%s(", widen);
    sb_fmt(&end, ")%s", rest);
    return sb_cstr(&end);
  }
  while (from != to) {
    bool is_float = dtype_is_float(from), to_float = dtype_is_float(to);
    u32 have = dtype_bytes(from), want = to_float && !is_float && have < 4 ? 4 : dtype_bytes(to);
    DType next = to;
    if (is_float && !to_float)
      next = signed_of(have);
    else if (!is_float && want > 2 * have)
      next = signed_of(2 * have);
    else if (!is_float && want < have / 2)
      next = signed_of(have / 2);
    else if (to_float && !is_float && have < 4)
      next = DT_i32;
    sb_puts(t, "__builtin_convertvector(");
    sb_fmt(&end, ", %s)", vector_type(e, next, false));
    from = next;
  }
  return sb_cstr(&end);
}

/* ---- functions of the file ---- */

/* Must it still be written? If so, the caller appends its text. */
bool is_wanted(Emit *e, const char *name) {
  u32 *slot = map_put_bytes(&e->variant->vec.written, name, strlen(name));
  return !(*slot)++;
}

/* ---- rows of cvop.def ---- */

static const struct VecHelper {
  const char *name, *kinds;
  u32 bits;
  const char *text;
} rows[] = {
#define VH(name, kinds, bits, text) {#name, kinds, bits, text},
#include "back/c/cvop.def"
#undef VH
};

static u32 register_bits(const Emit *e, DType k) {
  return e->b.w * 8 * (dtype_bytes(k) < 4 ? 4 : dtype_bytes(k));
}

static const struct VecHelper *find_row(const Emit *e, const char *name, DType k) {
  char kind = dtype_is_float(k) ? 'F' : dtype_is_signed(k) ? 'I' : 'U';
  for (u32 i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *kinds = rows[i].kinds;
    if (*kinds == 'v' && (!e->o->target->flushes || k == DT_f64)) continue;
    kinds += *kinds == 'v';
    bool fits = *kinds == '*' || *kinds == kind || (*kinds == 'I' && kind == 'U');
    if (fits && !strcmp(rows[i].name, name) &&
        (!rows[i].bits || rows[i].bits == register_bits(e, k)))
      return &rows[i];
  }
  return NULL;
}

/* x86 intrinsics by vector width: prefix, integer type, required features. */
static const struct X86 {
  u32 bits;
  const char *prefix, *type, *feature;
} x86[] = {{128, "_mm", "128i", "SSE2"},
           {256, "_mm256", "256i", "AVX2"},
           {512, "_mm512", "512i", "AVX512F"},
           {0, "", "", ""}};

/* A vector with `times` as many lanes. */
static const char *longer_type(Emit *e, DType k, u32 times) {
  e->b.w *= times;
  const char *t = vector_type(e, k, false);
  e->b.w /= times;
  return t;
}

/* Expands the mark $ and this letter. */
static void put_letter(Emit *e, StrBuf *t, char letter, DType k, const char *loop) {
  u32 bytes = dtype_bytes(k);
  const struct X86 *m = x86;
  Scalar lo, hi;
  while (m->bits && m->bits != register_bits(e, k)) m++;
  dtype_limits(k, &lo, &hi);
  switch (letter) {
  case 'T': sb_puts(t, vector_type(e, k, false)); break;
  case 'W': sb_puts(t, longer_type(e, k, BYTES_JOINED)); break;
  case 'F': sb_puts(t, vector_type(e, DT_f32, false)); break;
  case 'I': sb_puts(t, vector_type(e, DT_i32, false)); break;
  case 'H': sb_puts(t, vector_type(e, DT_i16, false)); break;
  case 'M': sb_puts(t, vector_type(e, signed_of(bytes), false)); break;
  case 'U': sb_puts(t, vector_type(e, unsigned_of(bytes), false)); break;
  case 'e': sb_puts(t, c_type(k)); break;
  case 'd': sb_puts(t, dtype_info[k].name); break;
  case 'k': sb_fmt(t, "%sx%u", dtype_info[k].name, e->b.w); break;
  case 'w': sb_fmt(t, "%u", e->b.w); break;
  case '<': sb_fmt(t, "%d", (int)lo.i); break;
  case '>': sb_fmt(t, "%d", (int)hi.i); break;
  case 'Y': sb_puts(t, m->bits ? "defined(__x86_64__)" : "0"); break;
  case 'X': sb_puts(t, m->bits ? feature_test(e, m->feature) : "0"); break;
  case '!': e->variant->vec.intrinsics = true; break;
  case 'p':
    e->variant->vec.intrinsics = true;
    sb_puts(t, m->prefix);
    break;
  case 's': sb_puts(t, k == DT_f64 ? "pd" : "ps"); break;
  case 'v': sb_puts(t, m->type); break;
  case 'b': sb_puts(t, dtype_is_signed(k) ? "s" : "us"); break;
  case 'x':
    for (u32 i = 0; i < e->b.w; i++) sb_puts(t, i ? ", x" : "x");
    break;
  case 'S': sb_puts(t, need_vector(e, "select", k, NULL)); break;
  case 'Q': sb_puts(t, need_vector(e, "select", DT_f32, NULL)); break;
  case 'J': sb_puts(t, need_vector(e, "narrow", DT_i32, NULL)); break;
  case 'q': sb_puts(t, need_vector(e, "quantise", k, NULL)); break;
  case 'n': sb_puts(t, need_vector(e, "whole", k, NULL)); break;
  case 'L': sb_puts(t, loop); break;
  default: bug(e->c, LOC_NONE, "cvop.def: $%c", letter);
  }
}

static void put_row(Emit *e, StrBuf *t, const char *s, DType k, const char *loop) {
  for (; *s; s++) {
    size_t n = strcspn(s, "$");
    sb_put(t, s, n);
    s += n;
    if (!*s) return;
    const char *end = s + 2;
    if (s[1] == '(') { /* $(FEATURE) */
      end = strchr(s, ')');
      sb_puts(t, feature_test(e, str_text(e->c, str_intern(e->c, s + 2, (size_t)(end - s - 2)))));
      s = end;
    } else if (s[1] == '[') { /* $[Fx] */
      const char *close = open_convert(e, t, s[2] == 'F' ? DT_f32 : DT_i32, k);
      sb_fmt(t, "%c%s", s[3], close);
      s += 4;
    } else if (s[1] == '?') { /* up to $; */
      if (!dtype_is_signed(k)) end = strstr(s, "$;") + 2;
      s = end - 1;
    } else {
      if (s[1] != ';') put_letter(e, t, s[1], k, loop);
      s++;
    }
  }
}

/* NULL: no row of that width. loop: the operation lane by lane, for rows that use $L. */
const char *need_vector(Emit *e, const char *what, DType k, const char *loop) {
  const struct VecHelper *row = find_row(e, what, k);
  StrBuf n = sb_new(e->b.a);
  put_template(e, &n, "ig_%s_%sx%u@", what, dtype_info[k].name, e->b.w);
  const char *name = sb_cstr(&n);
  if (!row || !is_wanted(e, name)) return row ? name : NULL;
  StrBuf t = sb_new(e->b.a);
  put_row(e, &t, row->text, k, loop);
  put_template_text(e, &e->variant->vec.text, sb_cstr(&t));
  return name;
}

/* ---- loops over lanes ---- */

/* The scalar text of an operation, with these names as operands: see e->hole. */
void put_scalar_op(Emit *e, const Expr *x, DType from, const char *const *name) {
  Expr op = *x;
  ExprId arg[3];
  op.lanes = 1;
  op.arg = arg;
  for (u32 i = 0; i < x->narg; i++) {
    Expr v = {.kind = EX_var, .dt = from, .lanes = 1, .ref = e->hole[i]};
    if (x->op == OP_select && i == 0) v.dt = DT_bool;
    e->var.at[e->hole[i]] = name[i];
    arg[i] = ex_new(e->p, &v);
  }
  put_expr(e, ex_new(e->p, &op));
}

/* A loop over lanes around the scalar operation. */
const char *need_loop(Emit *e, const Expr *x, DType from) {
  static const char *const lane[3] = {"a.at[z]", "b.at[z]", "c.at[z]"};
  StrBuf n = sb_new(e->b.a);
  u32 w = e->b.w;
  if (x->op == OP_cast || x->op == OP_bitcast)
    put_template(e, &n, "ig_%s%s_%s_%sx%u@", op_info[x->op].name, x->sat ? "_sat" : "",
                 dtype_info[from].name, dtype_info[x->dt].name, w);
  else
    put_template(e, &n, "ig_%s_lanes_%sx%u@", op_info[x->op].name, dtype_info[from].name, w);
  const char *name = sb_cstr(&n);
  if (!is_wanted(e, name)) return name;
  DType k = elem_of(from), r = elem_of(x->dt);
  StrBuf t = sb_new(e->b.a), *outer = e->t;
  e->t = &t;
  sb_fmt(&t, "static inline %s %s(", vector_type(e, r, false), name);
  for (u32 i = 0; i < x->narg; i++)
    sb_fmt(&t, "%s%s %c0", i ? ", " : "", vector_type(e, k, false), 'a' + i);
  sb_puts(&t, ") {\n");
  for (u32 i = 0; i < x->narg; i++)
    sb_fmt(&t, "  union { %s v; %s at[%u]; } %c = {%c0};\n", vector_type(e, k, false), c_type(k), w,
           'a' + i, 'a' + i);
  sb_fmt(&t, "  union { %s v; %s at[%u]; } r;\n  for (int z = 0; z < %u; z++) r.at[z] = ",
         vector_type(e, r, false), c_type(r), w, w);
  put_scalar_op(e, x, from, lane);
  sb_puts(&t, ";\n  return r.v;\n}\n");
  e->t = outer;
  sb_put(&e->variant->vec.text, t.at, t.n);
  return name;
}

/* Narrow floats, lane by lane: ig_load_f8e5m2x8(p), ig_store_f8e5m2x8(p, v). */
const char *need_narrow(Emit *e, DType dt, bool store) {
  if (dt == DT_f16) return need_vector(e, store ? "store_f16" : "load_f16", DT_f32, NULL);
  StrBuf n = sb_new(e->b.a);
  u32 w = e->b.w;
  put_template(e, &n, "ig_%s_%sx%u@", store ? "store" : "load", dtype_info[dt].name, w);
  const char *name = sb_cstr(&n), *type = vector_type(e, DT_f32, false);
  if (!is_wanted(e, name)) return name;
  StrBuf t = sb_new(e->b.a), *outer = e->t;
  e->t = &t;
  Expr x = {.kind = EX_var, .dt = dt, .lanes = 1, .ref = e->hole[0]};
  if (store) {
    sb_fmt(&t, "static inline void %s(%s *p, %s v) {\n  union { %s v; float at[%u]; } a = {v};\n",
           name, c_storage(dt), type, type, w);
    sb_fmt(&t, "  for (int z = 0; z < %u; z++) p[z] = ", w);
    e->var.at[e->hole[0]] = "a.at[z]";
    put_stored(e, dt, ex_new(e->p, &x));
    sb_puts(&t, ";\n}\n");
  } else { /* convert the bits */
    DType bits = dtype_bytes(dt) == 2 ? DT_u16 : DT_u8;
    static const char *const lane[3] = {"p[z]", NULL, NULL};
    Expr op = {.kind = EX_op, .op = OP_bitcast, .dt = dt, .narg = 1};
    sb_fmt(&t, "static inline %s %s(const %s *p) {\n  union { %s v; float at[%u]; } r;\n", type,
           name, c_storage(dt), type, w);
    sb_fmt(&t, "  for (int z = 0; z < %u; z++) r.at[z] = ", w);
    put_scalar_op(e, &op, bits, lane);
    sb_puts(&t, ";\n  return r.v;\n}\n");
  }
  e->t = outer;
  sb_put(&e->variant->vec.text, t.at, t.n);
  return name;
}
