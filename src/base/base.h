/* base: what every other folder stands on. Knows nothing about tensors.
 *
 * One Ctx is one compilation: allocator, I/O table, three arenas, interned strings, diagnostics.
 * Two contexts share nothing, so two threads may compile at once. Memory is owned by arenas;
 * nothing is freed piecemeal. Errors leave through one door, fail(), which jumps to the nearest
 * ctx_protect().
 */
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
typedef struct Loc Loc;                     /* where in the input something comes from */
typedef struct Diag Diag;                   /* one recorded message */
typedef struct ProtectedCall ProtectedCall; /* a protected call that is going on */
typedef struct Alloc Alloc;                 /* allocator hook */
typedef struct Io Io;                       /* I/O hook */
typedef struct Sink Sink;
typedef struct Chunk Chunk; /* some bytes of something larger */
typedef struct File File;   /* a whole file, read-only, mapped or read */
typedef struct Guard Guard; /* what must not outlive the process */

/* Error codes are the exit codes of the command line. */
typedef enum Err {
  ERR_ok = 0,
  ERR_mismatch = 1,    /* results differ */
  ERR_usage = 2,       /* the caller asked for something that makes no sense */
  ERR_unsupported = 3, /* valid, but ingot cannot do it */
  ERR_input = 4,       /* the file is wrong */
  ERR_system = 5,      /* no memory, no file, no space */
} Err;

/* ---- hooks: tests replace them to fail the n-th call ---- */

/* Like realloc, but told the old size; size 0 frees and returns NULL. */
struct Alloc {
  void *(*resize)(void *user, void *p, size_t old, size_t size);
  void *user;
};

/* Each returns -1 and sets errno on failure, as the POSIX call of that name. */
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
  size_t used;         /* bytes handed out, for reports */
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
  const char *text; /* in c->keep; location already rendered in front */
  u32 borrowed;     /* bytes in front that tell Ctx.here, not a place of the message's own */
  u32 file;         /* bytes in front that tell the file */
  Diag *next;
};

/* Growable array in an arena: VEC(Node) nodes; vec_push(a, &nodes) returns the new slot, zeroed. */
#define VEC(T)                                                                                     \
  struct {                                                                                         \
    T *at;                                                                                         \
    u32 n, cap;                                                                                    \
  }
#define vec_push(a, v)                                                                             \
  (vec_grow((a), (void **)&(v)->at, &(v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n - 1])

struct Map {
  Arena *a;
  struct MapSlot *slot;
  u32 n, cap;
};

/* Never fails silently: growth is in the arena. Not NUL-terminated until sb_cstr. */
struct StrBuf {
  Arena *a;
  char *at;
  size_t n, cap;
  bool brief; /* for a reader: long constants are written in part (literal.c) */
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
  Err code; /* of the first error */
  jmp_buf *door;
  Loc here;         /* what is being worked on: for messages that know no place of their own */
  const char *pass; /* name of the running pass, for bug reports */
  struct MappedFile *files;    /* those read, and held; released by ctx_free */
  Guard *guard;                /* shared with others; NULL: none */
  struct PlannedFile *planned; /* those that will be written */
};

struct ProtectedCall {
  Ctx *c;
  jmp_buf here, *outer;
  bool passed; /* to the end, nothing failed */
};

/* ctx.c */
/* NULL arguments: the system's; NULL result: no memory. */
Ctx *ctx_new(const Alloc *alloc, const Io *io);
void ctx_free(Ctx *c);
/* Runs fn(c, arg); returns ERR_ok, or the code of the failure that left it. Nests. */
Err ctx_protect(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg);
/* What it does before setjmp(d->here) and behind it. */
void ctx_protect_begin(Ctx *c, ProtectedCall *d);
Err ctx_protect_end(const ProtectedCall *d);
/* The same, but a failure other than ERR_system is taken back: its cause goes to the caller, who
 * says it in his own words. ERR_system leaves. */
Err ctx_try(Ctx *c, void (*fn)(Ctx *c, void *arg), void *arg, const char **why);
const Alloc *alloc_system(void);
const Io *io_system(void);

/* arena.c: memory is zeroed and aligned to 16 bytes; failure leaves through fail(ERR_system). */
void *arena_alloc(Arena *a, size_t n);
void *arena_array(Arena *a, size_t n, size_t size); /* checked n * size */
void *arena_copy(Arena *a, const void *from, size_t n);
/* Room for `more` bytes instead of n; what follows those is not cleared. p is given back. */
void *arena_extend(Arena *a, void *p, size_t n, size_t more);
Mark arena_mark(Arena *a);
void arena_rewind(Arena *a, Mark m);
void arena_clear(Arena *a);
/* Makes room for one more element of `size` bytes and counts it; *at moves. */
void vec_grow(Arena *a, void **at, u32 *n, u32 *cap, size_t size);
#define NEW(a, T)     ((T *)arena_alloc((a), sizeof(T)))
#define NEWS(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

/* str.c */
Str str_intern(Ctx *c, const void *at, size_t n);
Str str_of(Ctx *c, const char *cstr);
Str str_fmt(Ctx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const Ctx *c, Str s); /* NUL-terminated; may hold other NULs inside */
size_t str_len(const Ctx *c, Str s);
bool str_is(const Ctx *c, Str s, const char *cstr);
bool ends_with(const char *s, const char *end);
size_t utf8_bytes(const char *at, size_t n); /* of the first character; 0: not well-formed */
bool utf8_valid(const char *at, size_t n);
size_t utf8_bom(const void *at,
                size_t n); /* bytes of the byte order mark it begins with: 3, or 0 */
StrBuf sb_new(Arena *a);
void sb_put(StrBuf *t, const void *at, size_t n);
void sb_puts(StrBuf *t, const char *cstr);
void sb_upper(StrBuf *t, const char *s); /* in capitals */
void sb_fmt(StrBuf *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_vfmt(StrBuf *t, const char *fmt, va_list args);
/* A template: whatever holds one of the marks has its text in place of it. */
void sb_subst(StrBuf *t, const char *at, size_t n, const char *marks, const char *const *text);
/* "..." of JSON, in UTF-8: characters stay what they are, and bytes that are none are shown as
 * \xHH. page: in an element of HTML, where `</script>` would end it wherever it stands. */
void sb_json(StrBuf *t, const char *at, size_t n);
void sb_json_html(StrBuf *t, const char *at, size_t n);
/* The first character of n bytes, at least one, as it stands there; how many of them it takes. */
enum { JSON_CHAR = 8 };
size_t json_char(const char *at, size_t n, bool page, char to[JSON_CHAR]);
/* "..." with \" \\ \n \xHH escapes; pure ASCII. */
void sb_quote(StrBuf *t, const char *at, size_t n);
/* Reads what sb_quote wrote, or the same with characters of UTF-8 in it, from the opening quote;
 * returns bytes consumed, 0 if malformed. */
size_t sb_unquote(StrBuf *t, const char *at, size_t n);
const char *sb_cstr(StrBuf *t);

/* map.c: one hash map. Keys are 64-bit numbers or byte strings, one kind per map. A slot is good
 * until the next put. */
Map map_new(Arena *a);
Map map_copy(Arena *a, const Map *m); /* keys are shared */
u32 *map_get(const Map *m, u64 key);  /* NULL when absent */
u32 *map_put(Map *m, u64 key);        /* slot, zero when new */
u32 *map_get_bytes(const Map *m, const void *key, size_t n);
u32 *map_put_bytes(Map *m, const void *key, size_t n); /* the key is copied */
double time_ms(void);                                  /* since some moment; never goes back */
u64 hash_bytes(const void *at, size_t n);   /* fixed function: the same on every machine */
u64 hash_pieces(const Chunk *piece, u32 n); /* of their bytes, one behind the other */

/* diag.c */
_Noreturn void fail(Ctx *c, Err code, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag(Ctx *c, Err code, Loc loc, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void warn(Ctx *c, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The compiler is wrong: names the pass that just ran. Code ERR_system. */
_Noreturn void bug(Ctx *c, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The first error from there on, without the file; or the last that wraps it, and so tells the way
 * to it. */
const char *diag_cause(const Diag *from);
void diag_raise(Ctx *c); /* leaves if an error was recorded */
typedef struct DiagMark {
  Diag **end;
  u32 nerrors, nwarnings;
  Err code;
} DiagMark;
DiagMark diag_mark(const Ctx *c);     /* what has been said so far */
void diag_rewind(Ctx *c, DiagMark s); /* takes back what was said since */
/* Printable form of model bytes: at most 64 characters, escapes, pure ASCII. In c->scratch. */
const char *show(Ctx *c, Str s);
const char *show_text(Ctx *c, Str s); /* of a message: longer */

/* suggestion.c: of the names tried, the one that a misspelt word may mean; NULL: none is near. */
typedef struct Suggestion {
  const char *said, *name;
  u32 typos;
} Suggestion;
Suggestion suggest_new(const char *said);
void suggest_try(Suggestion *n, const char *name);
/* "; did you mean 'NAME'?", or "". */
const char *suggest_text(Ctx *c, const Suggestion *n);
/* Which of n rows, of `size` bytes, each of which begins with its name, is called so; a name that
 * none has is refused: "no WHAT 'SAID'; expected one of ...". */
u32 row_named(Ctx *c, const char *what, const char *said, const void *row, u32 n, size_t size);
bool glob_match(const char *form, const char *name); /* * stands for any text, ? for any byte */

/* guard.c */
/* doing (or NULL): called with what is waited for, and NULL afterwards. NULL result: no memory. */
Guard *guard_new(void (*doing)(void *user, const char *what), void *user);
void guard_free(Guard *g);
void guard_end(
    Guard *g); /* from another thread, before the process ends; nobody works on after it */
/* Around making something and entering it, or taking it out. Nothing may fail in between. */
void guard_enter(const Ctx *c);
void guard_leave(const Ctx *c);
void guard_put(const Ctx *c, const char *path,
               long pid); /* one of the two; path stays where it is */
void guard_drop(const Ctx *c, const char *path, long pid);
void guard_say(const Ctx *c, const char *what);

/* temp.c */
void dir_remove(const char *path); /* removes it with the files in it */
#define TEMP_MARK 32               /* as in mark.h, which programs of `ingot build` hold */
void temp_mark(
    char to[TEMP_MARK]); /* what names of temporaries hold, after ingot- or .ingot-tmp- */
/* Removes from a folder the user's temporary files whose process is gone, and their folders if
 * `folders`; returns how many. */
u32 temps_collect(const char *folder, bool folders);

/* size.c: the only place where sizes that come from files are multiplied and added. */
bool size_mul(u64 a, u64 b, u64 *out);
bool size_add(u64 a, u64 b, u64 *out);
bool size_align(u64 a, u64 align, u64 *out); /* rounds up; align is a power of two */

/* file.c */
/* The whole file, mapped if possible; "-" is standard input. ERR_input for a directory, otherwise
 * ERR_system.
 *
 * A file that was read is never written: whoever reads keeps device and number of the file,
 * whoever writes or plans to write compares, and ERR_usage names both. */
File file_read(Ctx *c, const char *path);
/* The same for a file that ingot has made itself and that may be made again. */
File file_read_own(Ctx *c, const char *path);
/* Files that another context has read are not written by this one either. */
void files_protect(Ctx *c, const Ctx *other);
/* The one opener for names that come from a model: confined to the directory of model_path, no
 * "..", regular files with one hard link only, and no symbolic links but those of the Hugging Face
 * cache: from snapshots/REV to ../../blobs/NAME of the same folder. ERR_input; ERR_system when the
 * machine is to blame. One file is held once, however often it is asked for. */
File file_read_beneath(Ctx *c, const char *model_path, Str name, Loc loc);
/* Writes aside in the same directory, syncs, renames: the file appears whole or not at all. "-" is
 * standard output; devices and pipes are written directly. ERR_usage for a directory. */
void file_write(Ctx *c, const char *path, const void *at, size_t n);
/* Files that belong together: all are written aside before the first is renamed. */
struct Chunk {
  const void *at;
  size_t n;
  /* NULL: the bytes themselves; otherwise writes what it makes of them, in parts; if it fails
   * there is no file */
  void (*make)(const void *at, size_t n, Sink *to);
};
/* Where bytes go that are made one after the other. */
struct Sink {
  void (*put)(Sink *to, const void *at, size_t n);
};
typedef struct FileOut {
  const char *path;
  const void *at;
  size_t n;
  bool update;        /* may replace a file that was read: it was read to be added to */
  const Chunk *piece; /* instead of at: n pieces */
  bool transient;     /* soon removed: need not be on the disk */
  bool cached;        /* file of a cache: no other user may read or write it, whatever the umask */
  bool program;       /* executable; devices and pipes keep their mode */
} FileOut;
/* Makes folders that are missing. */
void files_write(Ctx *c, const FileOut *f, u32 n);
/* Before work: fails where files_write can be seen to fail, and from now on where one of these
 * files is read. */
void files_plan(Ctx *c, const char *const *path, u32 n);
/* From now on the file may be replaced although it was read. */
void file_release(Ctx *c, const char *path);
/* Is something there that is neither a file nor a folder: a device, a pipe? */
bool file_is_device(const char *path);

#endif
