/* toolchain.c: finds compilers and tools, and their abilities.
 *
 * In: the command of a compiler, or the name of a tool. Out: its version, its kind, whether it
 * accepts flags. The compiler is asked with a few lines of code, never identified by its name. A
 * missing tool is reported with its Debian package.
 */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>

const ExternalTool tool_table[] = {
    {"llvm-profdata", "llvm", "merges profiles: build --pgo with clang", "merge --version", true},
    {"llvm-bolt", "bolt-16", "optimizes layout: build --bolt", "--version", true},
    {"perf2bolt", "bolt-16", "reads samples: build --bolt", "--version", true},
    {"perf", "linux-perf", "takes samples: build --bolt", "--version", false},
    {"ld.lld", "lld", "links: build --lto with clang", "--version", true},
    {"clang", "clang", "compiles to WebAssembly: build -o OUT.wasm", "--version", true},
    {"wasm-ld", "lld", "links WebAssembly: build -o OUT.wasm", "--version", true},
    {"gcov", "gcc", "names functions that did not run: build --pgo with gcc", "--version", false},
    {"ar", "binutils", "makes archives: build -o OUT.a", "--version", false},
    {"hyperfine", "hyperfine", "repeats measurements of build", "--version", false},
    {"mpirun", "openmpi-bin", "starts programs on several machines (Open MPI)", "--version", false},
};
const u32 tool_count = sizeof tool_table / sizeof *tool_table;

enum { OLDEST = 11, NEWEST = 25 }; /* LLVM versions in tool names */

static const ExternalTool *tool_named(const char *name) {
  for (u32 i = 0; i < tool_count; i++)
    if (!strcmp(tool_table[i].name, name)) return &tool_table[i];
  return NULL;
}

const char *tool_find(Ctx *c, const char *name) {
  const ExternalTool *t = tool_named(name);
  if (spawn_exists(c, name)) return name;
  for (int v = NEWEST; t && t->suffixed && v >= OLDEST; v--) {
    const char *one = str_text(c, str_fmt(c, "%s-%d", name, v));
    if (spawn_exists(c, one)) return one;
  }
  return NULL;
}

void tool_missing(Ctx *c, const char *name, const char *why) {
  const ExternalTool *t = tool_named(name);
  fail(c, ERR_system, LOC_NONE, "%s needs %s, which is not installed (Debian package %s)", why,
       name, t ? t->package : name);
}

static ArgVec argv_append(Ctx *c, const ArgVec *w, const char *more) {
  ArgVec all = {0};
  argv_put_list(c, &all, w->at);
  argv_add(c, &all, more);
  return all;
}

static const char *run_compiler(Ctx *c, const TempDir *f, const ArgVec *w, const char *more,
                                int *status) {
  return spawn_text(c, f, "C compiler", argv_append(c, w, more).at, status);
}

static const char *line_of(Ctx *c, const char *at) {
  size_t n = 0;
  while (at[n] >= 0x20 && at[n] < 0x7f && n < 200) n++;
  return str_text(c, str_intern(c, at, n));
}

const char *compiler_version(Ctx *c, const TempDir *f, const ArgVec *w) {
  int status;
  const char *text = run_compiler(c, f, w, "--version", &status);
  if (status) text = run_compiler(c, f, w, "-v", &status); /* tcc */
  if (status) spawn_fail(c, f, "C compiler", w->at[0], status);
  return line_of(c, text);
}

/* First line with a digit, a point and a digit. */
static const char *version_line(const char *text) {
  for (const char *at = text; *at; at++) {
    bool number = *at >= '0' && *at <= '9' && at[1] == '.' && at[2] >= '0' && at[2] <= '9';
    if (!number) continue;
    while (at > text && at[-1] != '\n') at--;
    return at + strspn(at, " \t");
  }
  return text;
}

const char *tool_version(Ctx *c, const TempDir *f, const ExternalTool *t, const char *program) {
  ArgVec w = {0};
  int status;
  argv_put(c, &w, program);
  argv_add(c, &w, t->flag);
  const char *text = spawn_text(c, f, t->name, w.at, &status);
  return status ? NULL : line_of(c, version_line(text));
}

CompilerKind compiler_kind(Ctx *c, const TempDir *f, const ArgVec *w) {
  static const char text[] = "#if defined(__clang__)\ningot clang\n#elif defined(__TINYC__)\ningot "
                             "tcc\n#elif defined(__GNUC__)\ningot gcc\n#endif\n";
  static const char *const names[] = {"ingot gcc", "ingot clang", "ingot tcc"};
  const char *path = tempdir_file(c, f, "kind.c");
  ArgVec all = argv_append(c, w, "-E -P");
  int status;
  file_write(c, path, text, sizeof text - 1);
  argv_put(c, &all, path);
  const char *answer = spawn_text(c, f, "C compiler", all.at, &status);
  for (u32 i = 0; !status && i < sizeof names / sizeof *names; i++)
    if (strstr(answer, names[i])) return (CompilerKind)i;
  if (status) spawn_fail(c, f, "C compiler", w->at[0], status);
  return CK_other;
}

bool compiler_accepts(Ctx *c, const TempDir *f, const ArgVec *w, const char *flags) {
  static const char text[] = "int main(int n, char **v) { return n > 9 ? v[0][0] : 0; }\n";
  const char *path = tempdir_file(c, f, "takes.c");
  ArgVec all = argv_append(c, w, flags);
  file_write(c, path, text, sizeof text - 1);
  argv_put(c, &all, "-o", tempdir_file(c, f, "takes"), path);
  return !spawn_status(c, f, "C compiler", all.at);
}

/* gcc lists it with its options, clang in the command it would start. */
const char *compiler_cpu(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind,
                         const char *march) {
  static const char mark[] = "\"-target-cpu\" \"";
  int status;
  if (kind != CK_gcc && kind != CK_clang) return NULL;
  ArgVec all = argv_append(c, w, march);
  const char *text = run_compiler(
      c, f, &all, kind == CK_gcc ? "-Q --help=target" : "-### -c -x c /dev/null", &status);
  const char *at = status ? NULL : strstr(text, kind == CK_gcc ? "-march=" : mark);
  if (!at) return NULL;
  at += strlen(kind == CK_gcc ? "-march=" : mark);
  at += strspn(at, " \t");
  return str_text(c, str_intern(c, at, strcspn(at, " \t\n\"")));
}

const char *compiler_lto(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind) {
  static const char *const ways[][2] = {
      [CK_gcc] = {"-flto=auto -flto-partition=one"}, [CK_clang] = {"-flto", "-flto -fuse-ld=lld"}};
  for (u32 i = 0; i < 2; i++)
    if (ways[kind][i] && compiler_accepts(c, f, w, ways[kind][i])) return ways[kind][i];
  return NULL;
}

const char *compiler_profdata(Ctx *c, const TempDir *f, const ArgVec *w) {
  int status;
  const char *text = line_of(c, run_compiler(c, f, w, "-print-prog-name=llvm-profdata", &status));
  if (!status && strchr(text, '/') && spawn_exists(c, text)) return text;
  return tool_find(c, "llvm-profdata");
}
