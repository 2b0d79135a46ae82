/* base.h: contexts, memory, strings, maps, diagnostics, files. Knows nothing about tensors.
 *
 * One Ctx is one compilation: allocator, I/O table, three arenas, interned strings, diagnostics.
 * Two contexts share nothing, so two threads may compile at once.
 * Arenas own all memory; nothing is freed piecemeal.
 * Errors leave through fail(), which jumps to the nearest ctx_protect(). */
#ifndef INGOT_BASE_H
#define INGOT_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

typedef struct Ctx Ctx;                     /* one compilation */
typedef struct Arena Arena;                 /* memory released as a whole */
typedef struct Mark Mark;                   /* a point an arena can be rewound to */
typedef u32 Str;                            /* interned byte string; 0 is the empty string */
typedef struct Map Map;                     /* hash map: 64-bit key or byte string -> u32 */
typedef struct StrBuf StrBuf;               /* growable output text */
typedef struct Loc Loc;                     /* location in the input */
typedef struct Diag Diag;                   /* one recorded message */
typedef struct ProtectedCall ProtectedCall; /* an active protected call */
typedef struct Alloc Alloc;                 /* allocator hook */
typedef struct Io Io;                       /* I/O hook */
typedef struct Sink Sink;
typedef struct Chunk Chunk; /* a piece of something larger */
typedef struct File File;   /* a whole file, read-only, mapped or read */
typedef struct Guard Guard; /* resources that must not outlive the process */

/* Error codes are the exit codes of the command line. */
typedef enum Err {
  ERR_ok = 0,
  ERR_mismatch = 1,    /* results differ */
  ERR_usage = 2,       /* invalid request of the caller */
  ERR_unsupported = 3, /* valid, but not supported by ingot */
  ERR_input = 4,       /* invalid file */
  ERR_system = 5,      /* out of memory, missing file, disk full */
} Err;

/* ---- hooks: tests replace them to fail the n-th call ---- */

/* realloc with the old size as an argument; size 0 frees and returns NULL. */
struct Alloc {
  void *(*resize)(void *user, void *p, size_t old, size_t size);
  void *user;
};

/* Each returns -1 and sets errno on failure, as the POSIX function of that name. */
struct Io {
  int (*open)(void *user, int dirfd, const char *path, int flags, int mode);
  int (*close)(void *user, int fd);
  i64 (*read)(void *user, int fd, void *to, size_t n);
  i64 (*write)(void *user, int fd, const void *from, size_t n);
  int (*fsync)(void *user, int fd);
  int (*rename)(void *user, int fromdir, const char *from, int todir, const char *to);
  int (*unlink)(void *user, int dirfd, const char *path);
  void *(*map)(void *user, int fd, size_t n); /* read-only; NULL on failure */
  void (*unmap)(void *user, void *p, size_t n);
  void *user;
};

struct Arena {
  Ctx *c;
  struct Block *block; /* newest first */
  size_t used;         /* bytes allocated, for reports */
};

struct Mark {
  struct Block *block;
  size_t at, used;
};

/* Location in a model or text; every field may be absent (0 / -1). */
struct Loc {
  Str file;
  Str node;  /* node name */
  Str op;    /* operator name as the input spells it */
  i32 index; /* node index in its graph; -1: none */
  i32 line;  /* line of a text form; 0: none */
};
#define LOC_NONE ((Loc){0, 0, 0, -1, 0})

typedef enum Level { LV_error, LV_warning } Level;

struct Diag {
  Level level;
  Err code;
  Loc loc;
  const char *text; /* in c->keep; starts with the location */
  u32 borrowed; /* length of the prefix that shows Ctx.here instead of the message's own location */
  u32 file;     /* length of the prefix that shows the file */
  Diag *next;
};

/* Growable array in an arena: VEC(Node) nodes; vec_push(a, &nodes) returns the new slot, zeroed. */
#define VEC(T)                                                                                     \
  struct {                                                                                         \
    T *at;                                                                                         \
    u32 n, cap;                                                                                    \
  }
typedef VEC(u32) U32Vec;
#define vec_push(a, v)                                                                             \
  (vec_grow((a), (void **)&(v)->at, &(v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n - 1])

struct Map {
  Arena *a;
  struct MapSlot *slot;
  u32 n, cap;
};

/* Grows in the arena; failure leaves through fail(). Not NUL-terminated until sb_cstr. */
struct StrBuf {
  Arena *a;
  char *at;
  size_t n, cap;
  bool brief; /* abbreviate long constants (literal.c) */
};

struct File {
  const u8 *at;
  size_t n;
  bool mapped;
};

struct Ctx {
  Alloc alloc;
  Io io;
  Arena keep;    /* strings, diagnostics, results: until ctx_free */
  Arena work;    /* graph and program */
  Arena scratch; /* emptied by the pipeline runner after every pass */
  struct StrTab *strs;
  Diag *diags, **diags_end;
  u32 nerrors, nwarnings;
  Err code; /* code of the first error */
  jmp_buf *door;
  Loc here;                    /* default location, for messages without their own */
  const char *pass;            /* name of the running pass, for bug reports */
  struct MappedFile *files;    /* files read and still mapped; released by ctx_free */
  Guard *guard;                /* may be shared with other contexts; NULL: none */
  struct PlannedFile *planned; /* files that will be written */
};

struct ProtectedCall {
  Ctx *c;
  jmp_buf here, *outer;
  bool passed; /* reached the end without a failure */
};

/* ctx.c */
/* NULL arguments: system defaults. NULL result: out of memory. */
Ctx *ctx_new(const Alloc *alloc, const Io *io);
void ctx_free(Ctx *c);
/* Runs fn(c, arg); returns ERR_ok or the code of the failure. Nests. */
Err ctx_protect(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg);
/* The parts of ctx_protect before and after setjmp(d->here). */
void ctx_protect_begin(Ctx *c, ProtectedCall *d);
Err ctx_protect_end(const ProtectedCall *d);
/* ctx_protect that discards the diagnostics of a failure and returns its cause in *why, so that the
 * caller can report it differently. ERR_system is passed on. */
Err ctx_try(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg, const char **why);
const Alloc *alloc_system(void);
const Io *io_system(void);

/* arena.c: memory is zeroed and 16-byte aligned; exhaustion leaves through fail(ERR_system). */
void *arena_alloc(Arena *a, size_t n);
void *arena_array(Arena *a, size_t n, size_t size); /* checked n * size */
void *arena_copy(Arena *a, const void *from, size_t n);
/* Resizes p from n to `more` bytes; the new tail is not zeroed. p becomes invalid. */
void *arena_extend(Arena *a, void *p, size_t n, size_t more);
Mark arena_mark(Arena *a);
void arena_rewind(Arena *a, Mark m);
void arena_clear(Arena *a);
/* Appends one element of `size` bytes, reallocating *at if needed. */
void vec_grow(Arena *a, void **at, u32 *n, u32 *cap, size_t size);
#define NEW(a, T)     ((T *)arena_alloc((a), sizeof(T)))
#define NEWS(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

/* str.c */
Str str_intern(Ctx *c, const void *at, size_t n);
Str str_of(Ctx *c, const char *cstr);
Str str_fmt(Ctx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* str_text of the result of str_fmt. */
const char *fmt_text(Ctx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const Ctx *c, Str s); /* NUL-terminated; may contain other NULs */
size_t str_len(const Ctx *c, Str s);
bool str_is(const Ctx *c, Str s, const char *cstr);
bool ends_with(const char *s, const char *end);
size_t utf8_bytes(const char *at, size_t n); /* length of the first character; 0: malformed */
bool utf8_valid(const char *at, size_t n);
/* Length of a leading byte order mark: 3, or 0. */
size_t utf8_bom(const void *at, size_t n);
StrBuf sb_new(Arena *a);
void sb_put(StrBuf *t, const void *at, size_t n);
void sb_rune(StrBuf *t, u32 x); /* a character in UTF-8 */
void sb_puts(StrBuf *t, const char *cstr);
void sb_upper(StrBuf *t, const char *s); /* in capitals */
void sb_fmt(StrBuf *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_vfmt(StrBuf *t, const char *fmt, va_list args);
/* Templates: ${name} stands for a text; $${ writes ${. */
typedef struct TemplateVar {
  const char *name, *text;
} TemplateVar;
typedef void PutVar(void *data, StrBuf *t, const char *name, size_t n);
void sb_expand(StrBuf *t, const char *at, size_t n, PutVar *put, void *data);
/* Values from a table that ends with a NULL name; another name is a bug. */
void sb_subst(Ctx *c, StrBuf *t, const char *at, size_t n, const TemplateVar *vars);
/* JSON string in UTF-8; invalid bytes are shown as \xHH. sb_json_html also escapes `</script>`. */
void sb_json(StrBuf *t, const char *at, size_t n);
void sb_json_html(StrBuf *t, const char *at, size_t n);
/* Escapes the first character of n >= 1 bytes into `to`; returns the bytes consumed. */
enum { JSON_CHAR = 8 };
size_t json_char(const char *at, size_t n, bool page, char to[JSON_CHAR]);
/* "..." with \" \\ \n \xHH escapes; pure ASCII. */
void sb_quote(StrBuf *t, const char *at, size_t n);
/* Reads what sb_quote wrote, from the opening quote; also accepts UTF-8. Returns bytes consumed, 0
 * if malformed. */
size_t sb_unquote(StrBuf *t, const char *at, size_t n);
const char *sb_cstr(StrBuf *t);

/* map.c: hash map. Keys are 64-bit numbers or byte strings, one kind per map. A slot is valid until
 * the next put. */
Map map_new(Arena *a);
Map map_copy(Arena *a, const Map *m); /* keys are shared */
u32 *map_get(const Map *m, u64 key);  /* NULL when absent */
u32 *map_put(Map *m, u64 key);        /* slot, zero when new */
u32 *map_get_bytes(const Map *m, const void *key, size_t n);
u32 *map_put_bytes(Map *m, const void *key, size_t n); /* the key is copied */
double time_ms(void);                                  /* monotonic clock */
u64 hash_bytes(const void *at, size_t n);              /* the same on every machine */
u64 hash_pieces(const Chunk *piece, u32 n);            /* hash of the concatenation */

/* digest.c: for names of cached code. Finding a second input with a given digest is
 * infeasible. */
enum { DIGEST_DIGITS = 32 };
typedef struct Digest {
  char digit[DIGEST_DIGITS + 1]; /* hexadecimal, and a zero */
} Digest;
Digest digest_bytes(const void *at, size_t n);

/* diag.c */
_Noreturn void fail(Ctx *c, Err code, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag(Ctx *c, Err code, Loc loc, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void warn(Ctx *c, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Internal compiler error: names the pass that just ran. Code ERR_system. */
_Noreturn void internal_error(Ctx *c, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The first error from `from` on, without the file; if others wrap it, the last of these, which
 * shows the context. */
const char *diag_cause(const Diag *from);
void diag_raise(Ctx *c); /* fails if an error was recorded */
typedef struct DiagMark {
  Diag **end;
  u32 nerrors, nwarnings;
  Err code;
} DiagMark;
DiagMark diag_mark(const Ctx *c);     /* current position in the diagnostics */
void diag_rewind(Ctx *c, DiagMark s); /* discards diagnostics since the mark */
/* Printable form of model bytes: at most 64 characters, escapes, pure ASCII. In c->scratch. */
const char *show(Ctx *c, Str s);
const char *show_text(Ctx *c, Str s); /* show for messages: longer */

/* suggestion.c: the candidate closest to a misspelt word; NULL: none is close. */
typedef struct Suggestion {
  const char *word, *name;
  u32 typos;
} Suggestion;
Suggestion suggest_new(const char *word);
void suggest_try(Suggestion *n, const char *name);
/* "; did you mean 'NAME'?", or "". */
const char *suggest_text(Ctx *c, const Suggestion *n);
/* Index of the row with the name `word`, in n rows of `size` bytes that start with their name.
 * Fails if there is none: "no WHAT 'WORD'; expected one of ...". */
u32 row_named(Ctx *c, const char *what, const char *word, const void *row, u32 n, size_t size);
bool glob_match(const char *form, const char *name); /* * matches any text, ? any byte */

/* guard.c */
/* doing (or NULL): called with a description of the current wait, and with NULL after it. NULL
 * result: out of memory. */
Guard *guard_new(void (*doing)(void *user, const char *what), void *user);
void guard_free(Guard *g);
/* Called from another thread before the process ends; guarded operations block afterwards. */
void guard_end(Guard *g);
/* Enclose creating and registering a resource, or unregistering it. Nothing may fail in between. */
void guard_enter(const Ctx *c);
void guard_leave(const Ctx *c);
/* Registers a path or a process id; path is not copied. */
void guard_put(const Ctx *c, const char *path, long pid);
void guard_drop(const Ctx *c, const char *path, long pid);
void guard_log(const Ctx *c, const char *what);

/* temp.c */
void dir_remove(const char *path); /* removes a folder and the files in it */
#define TEMP_MARK 32 /* as in mark.h, which is compiled into programs of `ingot build` */
/* The process part of temporary names, after ingot- or .ingot-tmp-. */
void temp_mark(char to[TEMP_MARK]);
/* Removes from a folder the user's temporary files whose process has ended; with `folders`, also
 * such folders. Returns the number removed. */
u32 temps_collect(const char *folder, bool folders);

/* size.c: checked arithmetic for all sizes that come from files. */
bool size_mul(u64 a, u64 b, u64 *out);
bool size_add(u64 a, u64 b, u64 *out);
bool size_align(u64 a, u64 align, u64 *out); /* rounds up; align is a power of two */

/* file.c */
Loc loc_of_file(Ctx *c, const char *path);
/* Reads a whole file, mapped if possible; "-" is standard input. ERR_input for a directory,
 * otherwise ERR_system.
 *
 * A file that was read is never overwritten: reads record device and inode, and writes (also
 * planned ones) to the same file fail with ERR_usage. */
File file_read(Ctx *c, const char *path);
/* file_read for a file that ingot generated and may overwrite. */
File file_read_own(Ctx *c, const char *path);
/* Protects the files that another context has read from writes of this one. */
void files_protect(Ctx *c, const Ctx *other);
/* Opens a file named by a model. It must be a regular file with one hard link in the directory of
 * model_path, without "..". Symbolic links are refused, except those of the Hugging Face cache:
 * from snapshots/REV to ../../blobs/NAME in the same folder. ERR_input; ERR_system for system
 * errors. Each file is mapped once. */
File file_read_beneath(Ctx *c, const char *model_path, Str name, Loc loc);
/* Writes a temporary file in the same directory, syncs and renames it: the file appears whole or
 * not at all. "-" is standard output; devices and pipes are written directly. ERR_usage for a
 * directory. */
void file_write(Ctx *c, const char *path, const void *at, size_t n);
/* Files that belong together: all temporaries are written before the first rename. */
struct Chunk {
  const void *at;
  size_t n;
  /* NULL: writes the bytes; otherwise writes what it generates from them. If it fails, no file
   * appears. */
  void (*make)(const void *at, size_t n, Sink *to);
};
/* Receives generated bytes in sequence. */
struct Sink {
  void (*put)(Sink *to, const void *at, size_t n);
};
typedef struct FileOut {
  const char *path;
  const void *at;
  size_t n;
  bool update;        /* may replace a file that was read, because it extends it */
  const Chunk *piece; /* n pieces, instead of at */
  bool transient;     /* temporary: not synced to disk */
  bool cached;        /* cache file: private to the user, regardless of umask */
  bool program;       /* executable; devices and pipes keep their mode */
} FileOut;
/* Creates missing folders. */
void files_write(Ctx *c, const FileOut *f, u32 n);
/* Fails if files_write would foreseeably fail, and later if one of these files is read. */
void files_plan(Ctx *c, const char *const *path, u32 n);
/* Allows replacing the file although it was read. */
void file_release(Ctx *c, const char *path);
/* Does the path exist and is neither a file nor a folder, such as a device or pipe? */
bool file_is_device(const char *path);
/* Creates all folders before the last slash of the path, which is changed meanwhile and restored.
 * Returns errno, or 0. */
int folders_make(char *path, unsigned mode);

#endif
