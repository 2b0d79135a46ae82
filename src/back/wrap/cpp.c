/* cpp.c: a C++ header around the header of a generated file.
 *
 * In: the program, its name, the parameters of NAME_run. Out: NAME.hpp for C++17: a namespace NAME
 * with View, a non-owning array, and Net, which owns an arena and passes it to the C functions.
 * Nets are independent. The sizes of views are checked before the call. Without exceptions only
 * try_run exists. */
#include "back/wrap/wrap.h"
#include "ir/lexer.h"

#include <inttypes.h>
#include <string.h>

static const char view_text[] =
    "/* Non-owning view of an array, std::array, std::vector or std::span. "
    "*/\n"
    "template <class T> class View {\n"
    " public:\n"
    "  constexpr View(T *data, std::size_t size) noexcept : data_(data), size_(size) {}\n"
    "  template <std::size_t N> constexpr View(T (&array)[N]) noexcept : data_(array), size_(N) "
    "{}\n"
    "  template <class C, class = decltype(static_cast<T *>(std::declval<C &>().data()))>\n"
    "  constexpr View(C &&from) noexcept : data_(from.data()), size_(from.size()) {}\n"
    "  constexpr T *data() const noexcept { return data_; }\n"
    "  constexpr std::size_t size() const noexcept { return size_; }\n"
    "  constexpr T *begin() const noexcept { return data_; }\n"
    "  constexpr T *end() const noexcept { return data_ + size_; }\n"
    "  constexpr T &operator[](std::size_t i) const { return data_[i]; }\n\n"
    " private:\n"
    "  T *data_;\n"
    "  std::size_t size_;\n"
    "};\n\n";

/* ---- parameters ---- */

/* Parameter declarations; arrays are views. */
static void put_params(StrBuf *t, const Prog *p, const EmitFacts *f) {
  bool first = true;
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind == PK_weights) continue;
    sb_puts(t, first ? "" : ", ");
    first = false;
    switch (x->kind) {
    case PK_weights: break;
    case PK_size: sb_fmt(t, "std::int64_t %s", x->name); break;
    case PK_seed: sb_puts(t, "std::uint64_t seed"); break;
    case PK_in: sb_fmt(t, "View<const %s> %s", x->type, x->name); break;
    case PK_out: sb_fmt(t, "View<%s> %s", x->type, x->name); break;
    case PK_shape: sb_fmt(t, "std::array<std::int64_t, %u> &%s", param_buf(p, x)->rank, x->name);
    }
  }
}

static void put_args(StrBuf *t, const EmitFacts *f, bool views) {
  bool first = true;
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    const char *data = views ? "" : ".data()";
    if (views && x->kind == PK_weights) continue;
    sb_puts(t, views && first ? "" : ", ");
    first = false;
    bool array = x->kind == PK_in || x->kind == PK_out || x->kind == PK_shape;
    sb_fmt(t, "%s%s", x->kind == PK_weights ? "weights_" : x->name, array ? data : "");
  }
}

/* ---- sizes ---- */

/* Writes misfit, which returns an error text for the first view that is too small, or nullptr. */
static void put_fits(StrBuf *t, const Prog *p, const EmitFacts *f) {
  static const SizeSyntax sizes = {"std::size_t{1}", "u", "size"};
  sb_puts(t, "  static const char *misfit(");
  put_params(t, p, f);
  sb_puts(t, ") noexcept {\n");
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind == PK_size) {
      const SymInfo *s = dim_syminfo(p->dims, x->i);
      sb_fmt(t, "    if (%s < %" PRId64 " || %s > %" PRId64 ") return \"%s is out of bounds\";\n",
             x->name, s->lo, x->name, s->hi, x->name);
    }
    if (x->kind == PK_seed || x->kind == PK_shape) sb_fmt(t, "    (void)%s;\n", x->name);
  }
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind != PK_in && x->kind != PK_out) continue;
    sb_fmt(t, "    if (%s.size() < ", x->name);
    put_elements(t, p, f, param_buf(p, x), &sizes);
    sb_fmt(t, ") return \"%s has too few elements\";\n", x->name);
  }
  sb_puts(t, "    return nullptr;\n  }\n");
}

/* ---- Net ---- */

/* Owns the arena; stops threads before freeing it. ${name}, ${NAME}: the name, and in capitals. */
static const char owner_text[] =
    "  struct Free {\n"
    "    void operator()(unsigned char *arena) const noexcept {\n"
    "%s"
    "      ::operator delete(arena, std::align_val_t{${NAME}_ARENA_ALIGN});\n"
    "    }\n"
    "  };\n"
    "  static unsigned char *take(std::size_t bytes) {\n"
    "    void *memory = ::operator new(bytes, std::align_val_t{${NAME}_ARENA_ALIGN});\n"
    "    return static_cast<unsigned char *>(std::memset(memory, 0, bytes));\n"
    "  }\n"
    "  static constexpr std::size_t size(std::int64_t n) noexcept {\n"
    "    return n > 0 ? static_cast<std::size_t>(n) : 0;\n"
    "  }\n";

static void put_construction(StrBuf *t, const CppOptions *o, bool state) {
  const char *threads = o->threads ? "int threads = ${NAME}_THREADS" : "";
  sb_fmt(t, "  explicit Net(%s%s%s)", o->given ? "const void *weights" : "",
         o->given && o->threads ? ", " : "", threads);
  sb_puts(t, " : arena_(take(${NAME}_ARENA_BYTES))");
  sb_puts(t, o->given ? ", weights_(weights) {\n" : " {\n");
  if (state) sb_puts(t, "    ${name}_reset(arena_.get());\n");
  if (o->threads) sb_puts(t, "    ${name}_threads_start(arena_.get(), threads);\n");
  sb_puts(t, "  }\n");
}

static void put_run(StrBuf *t, const Prog *p, const EmitFacts *f) {
  sb_puts(t, "  /* Returns the status of ${name}_run; -1: a view is too small or a size is out of "
             "bounds. */\n"
             "  int try_run(");
  put_params(t, p, f);
  sb_puts(t, ") noexcept {\n    if (misfit(");
  put_args(t, f, true);
  sb_puts(t, ")) return -1;\n    return ${name}_run(arena_.get()");
  put_args(t, f, false);
  sb_puts(t, ");\n  }\n#if defined(__cpp_exceptions)\n  /* Throws std::invalid_argument or "
             "std::runtime_error on failure. */\n"
             "  void run(");
  put_params(t, p, f);
  sb_puts(t, ") {\n    if (const char *why = misfit(");
  put_args(t, f, true);
  sb_puts(t, "))\n      throw std::invalid_argument(std::string(\"${name}: \") + why);\n"
             "    if (int status = ${name}_run(arena_.get()");
  put_args(t, f, false);
  sb_puts(
      t,
      "))\n      throw std::runtime_error(std::string(\"${name}: \") + ${name}_why(status));\n  }\n"
      "#endif\n");
}

static void put_net(StrBuf *t, const Prog *p, const CppOptions *o, const EmitFacts *f) {
  bool state = prog_has_state(p);
  sb_fmt(t,
         "/* The model with its own memory%s. Parameters of run are those of ${name}_run, see\n"
         " * its header: arrays as views, sizes checked. */\nclass Net {\n public:\n",
         state ? ", including its state" : "");
  put_construction(t, o, state);
  put_run(t, p, f);
  if (state) sb_puts(t, "  void reset() noexcept { ${name}_reset(arena_.get()); }\n");
  if (o->selftest)
    sb_fmt(t,
           "  /* Does this build compute the same bits as ingot? */\n"
           "  bool selftest() const {\n"
           "    std::unique_ptr<unsigned char, Plain> memory(take(${NAME}_SELFTEST_BYTES));\n"
           "    return ${name}_selftest(memory.get()%s) == 0;\n  }\n",
           o->given ? ", weights_" : "");
  sb_puts(t, "  static const char *why(int status) noexcept { return ${name}_why(status); }\n"
             "  static const char *target() noexcept { return ${name}_target(); }\n\n private:\n");
  sb_fmt(t, owner_text, o->threads ? "      ${name}_threads_stop(arena);\n" : "");
  if (o->selftest)
    sb_puts(
        t,
        "  struct Plain {\n    void operator()(unsigned char *memory) const noexcept {\n"
        "      ::operator delete(memory, std::align_val_t{${NAME}_ARENA_ALIGN});\n    }\n  };\n");
  put_fits(t, p, f);
  sb_puts(t, "  std::unique_ptr<unsigned char, Free> arena_;\n");
  if (o->given) sb_puts(t, "  const void *weights_;\n");
  sb_puts(t, "};\n");
}

void emit_cpp(const Prog *p, const CppOptions *o, const EmitFacts *facts, StrBuf *to) {
  Ctx *c = p->c;
  StrBuf t = sb_new(&c->keep), upper = sb_new(&c->keep);
  const char *space = o->name;
  if (is_reserved_name(c, "cpp", space)) space = fmt_text(c, "%s_", space);
  sb_upper(&upper, o->name);
  sb_fmt(&t,
         "/* %s for C++, generated by ingot %s. */\n#ifndef INGOT_${NAME}_HPP\n#define "
         "INGOT_${NAME}_HPP\n\n"
         "#include \"%s\"\n\n#include <array>\n#include <cstddef>\n#include <cstdint>\n"
         "#include <cstring>\n#include <memory>\n#include <new>\n#include <stdexcept>\n"
         "#include <string>\n#include <utility>\n\nnamespace %s {\n\n",
         o->name, o->version, o->header, space);
  sb_puts(&t, view_text);
  put_net(&t, p, o, facts);
  sb_fmt(&t, "\n} /* namespace %s */\n\n#endif\n", space);
  const TemplateVar vars[] = {{"name", o->name}, {"NAME", sb_cstr(&upper)}, {0}};
  sb_subst(c, to, t.at, t.n, vars);
}
