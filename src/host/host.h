/* host.h: the machine that ingot runs on: programs that it starts, the C compiler, temporary and
 * cache folders, shared objects, the CPU.
 *
 * Functions here know files and programs, not models.
 */
#ifndef INGOT_HOST_H
#define INGOT_HOST_H

#include "base/base.h"

/* cache_folder.c: $XDG_CACHE_HOME/ingot/NAME or ~/.cache/ingot/NAME; creates the folder with mode
 * 0700. Falls back to $TMPDIR/ingot-UID/NAME, with a warning, if other users can write to that
 * folder. who: the option that needs it, for messages. */
const char *cache_file(Ctx *c, const char *name, const char *who);
const char *temp_folder(void); /* $TMPDIR or /tmp */
/* false: the cache file does not exist. Removes, with a warning, a file that is not regular, or
 * that other users own or can write (it or its folder). */
bool cache_check_file(Ctx *c, const char *path);
bool cache_folder_trusted(Ctx *c, const char *folder); /* warns if not */

/* spawn.c */
typedef struct TempDir {
  char path[200];                                   /* "": none */
  const Ctx *c;                                     /* context whose guard owns the folder */
  void (*on_command)(void *user, const char *line); /* receives every command; may be NULL */
  void *user;
} TempDir;
typedef VEC(const char *) ArgVec; /* argument vector; argv_* keep a NULL after the last word */
void tempdir_make(Ctx *c, TempDir *f);
void tempdir_remove(TempDir *f); /* with its files */
/* Runs fn, removes the folder, and propagates a failure of fn. */
void tempdir_protect(Ctx *c, TempDir *f, void (*fn)(Ctx *c, void *arg), void *arg);
const char *tempdir_file(Ctx *c, const TempDir *f, const char *name);
/* Runs a program and returns its exit code. Its output goes to the file "log" of the folder. */
enum { SPAWN_KILLED = 128 }; /* plus the signal number, as in shells */
int spawn_status(Ctx *c, const TempDir *f, const char *what, const char *const *argv);
/* Runs a program and returns its output. */
const char *spawn_text(Ctx *c, const TempDir *f, const char *what, const char *const *argv,
                       int *status);
_Noreturn void spawn_fail(Ctx *c, const TempDir *f, const char *what, const char *program,
                          int status); /* fails with the log */
void spawn_run(Ctx *c, const TempDir *f, const char *what,
               const char *const *argv); /* fails unless it exits with 0 */
enum { SPAWN_MAX = 16 };
/* Runs up to SPAWN_MAX programs, one per processor at a time; fails unless all exit with 0. */
void spawn_parallel(Ctx *c, const TempDir *f, const char *what, const ArgVec *job, u32 n);
bool spawn_exists(Ctx *c, const char *program);
const char *spawn_resolve(Ctx *c, const char *program);          /* path without symbolic links */
void spawn_check(Ctx *c, const char *what, const char *program); /* fails if it is missing */
void argv_add(Ctx *c, ArgVec *w, const char *text);              /* words, separated by blanks */
/* Appends words unchanged. */
#define argv_put(c, w, ...) argv_put_list(c, w, (const char *const[]){__VA_ARGS__, NULL})
void argv_put_list(Ctx *c, ArgVec *w,
                   const char *const *word); /* NULL after the last; may be NULL */
void argv_fmt(Ctx *c, ArgVec *w, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void argv_compiler(Ctx *c, ArgVec *w, const char *cc); /* cc, else $CC, else "cc" */
bool compiler_exists(Ctx *c, const char *cc);
void compiler_need(Ctx *c, const char *cc); /* fails if it is missing */

/* cache_key.c */
void cache_key_add_self(Ctx *c, StrBuf *t); /* identity of this ingot, for cache keys */
void cache_key_add_file(Ctx *c, StrBuf *t, const char *path); /* path, size and time */
void cache_key_add_content(Ctx *c, StrBuf *t, const char *path);

/* compile_parts.c: compiles a C file made for PARTS_LIMIT parts */
enum { PARTS_LIMIT = 16 };
u32 parts_wanted(u64 code_bytes); /* 1: one compilation unit */
/* begin: the compiler and its flags. The objects lie next to the source. */
ArgVec parts_compile(Ctx *c, const TempDir *f, const ArgVec *begin, const char *source,
                     const char *name, u32 n);

/* toolchain.c */
typedef enum CompilerKind { CK_gcc, CK_clang, CK_tcc, CK_other } CompilerKind;
typedef struct ExternalTool {
  const char *name, *package; /* package: in Debian */
  const char *use;
  const char *flag; /* prints the version */
  bool suffixed;    /* the name may end in a version number */
} ExternalTool;
extern const ExternalTool tool_table[];
extern const u32 tool_count;
const char *tool_find(Ctx *c, const char *name);                        /* command name, or NULL */
_Noreturn void tool_missing(Ctx *c, const char *name, const char *why); /* fails */
/* Version line; NULL: the tool does not start. */
const char *tool_version(Ctx *c, const TempDir *f, const ExternalTool *t, const char *program);
/* Version line of the compiler w, from argv_compiler. */
const char *compiler_version(Ctx *c, const TempDir *f, const ArgVec *w);
CompilerKind compiler_kind(Ctx *c, const TempDir *f, const ArgVec *w);
/* Can it build a small program with these flags? */
bool compiler_accepts(Ctx *c, const TempDir *f, const ArgVec *w, const char *flags);
const char *compiler_cpu(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind,
                         const char *march); /* CPU that -march= selects; NULL: unknown */
/* Flags for LTO with gcc or clang; NULL: unsupported. */
const char *compiler_lto(Ctx *c, const TempDir *f, const ArgVec *w, CompilerKind kind);
/* llvm-profdata of that clang, or any; NULL: not found */
const char *compiler_profdata(Ctx *c, const TempDir *f, const ArgVec *w);

/* cpu.c */
/* The value of the first line of /proc/cpuinfo that begins with one of the keys; NULL: none. */
const char *cpu_field(Ctx *c, const char *const *key);
const char *cpu_name(Ctx *c); /* "unknown" without /proc/cpuinfo */

/* library_file.c */
void library_check(Ctx *c, const char *path);       /* refuses a truncated file */
bool library_is_complete(Ctx *c, const char *path); /* made by ingot? */

#endif
