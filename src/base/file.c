/* Files: read whole (mapped if possible), read confined to a model's folder, written atomically. A
 * file that was read is never overwritten.
 *
 * I/O calls go through c->io, so that tests can make each of them fail; fstat and other queries are
 * called directly. Nothing may call fail() between an open and its close: memory is allocated
 * before, and failures are held as errno values until everything is closed. Truncation of a mapped
 * file by another program is not handled. */
#include "base/base_own.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Errors without an errno value. EX_made: Chunk.make failed and recorded the reason. */
enum { EX_directory = -1, EX_long = -2, EX_notfile = -3, EX_links = -4, EX_made = -5 };

/* Pipes and devices have no size; this limits what is read from them. */
#define STREAM_MAX ((size_t)1 << 31)

static const char *reason(int err) {
  switch (err) {
  case ENOMEM: return "out of memory";
  case EX_directory: return "is a directory";
  case EX_long: return "more than 2 GiB from a pipe or device; use a regular file";
  case EX_notfile: return "not a regular file";
  case EX_links: return "the file has more than one hard link";
  default: return strerror(err); /* thread-local or constant in every supported libc */
  }
}

Loc loc_of_file(Ctx *c, const char *path) {
  Loc loc = LOC_NONE;
  loc.file = str_of(c, path);
  return loc;
}

static int open_retry(Ctx *c, int dirfd, const char *path, int flags, int mode) {
  int fd;
  do fd = c->io.open(c->io.user, dirfd, path, flags | O_CLOEXEC | O_NOCTTY, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

/* Interrupted by a signal, or a non-blocking descriptor: retry. */
static bool try_again(int fd, short events) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  struct pollfd p = {.fd = fd, .events = events};
  return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static void *resize(Ctx *c, MappedFile *r, size_t cap) {
  void *p = c->alloc.resize(c->alloc.user, r->p, r->cap, cap);
  if (p || cap == 0) {
    r->p = p;
    r->cap = cap;
  }
  return p;
}

static void drop(Ctx *c, MappedFile *r) {
  if (r->p && r->cap == 0)
    c->io.unmap(c->io.user, r->p, r->n);
  else if (r->p)
    resize(c, r, 0);
  r->p = NULL;
  r->n = r->cap = 0;
}

void files_free(Ctx *c) {
  for (MappedFile *r = c->files; r; r = r->next) drop(c, r);
  c->files = NULL;
}

/* The newest record if it is empty, so that there is one record per file. */
static MappedFile *idle_record(Ctx *c) {
  if (c->files && !c->files->p && !c->files->path) {
    *c->files = (MappedFile){.next = c->files->next};
    return c->files;
  }
  MappedFile *r = NEW(&c->keep, MappedFile);
  r->next = c->files;
  c->files = r;
  return r;
}

/* Reads to the end; `hint` bytes are expected, at most `max` allowed. Returns 0 or an error. */
static int read_all(Ctx *c, int fd, MappedFile *r, size_t hint, size_t max) {
  for (;;) {
    if (r->n == r->cap) {
      size_t cap = r->cap == 0 ? hint + 1 : r->cap + r->cap / 2;
      if (cap < 65536 && r->cap) cap = 65536;
      if (!resize(c, r, cap)) return ENOMEM;
    }
    i64 got = c->io.read(c->io.user, fd, (u8 *)r->p + r->n, r->cap - r->n);
    if (got == 0) break;
    if (got > 0)
      r->n += (size_t)got;
    else if (!try_again(fd, POLLIN))
      return errno;
    if (r->n > max) return EX_long;
  }
  if (r->n == 0) drop(c, r);
  return 0;
}

/* Fills the record from an open descriptor. Returns 0 or an error. */
static int load(Ctx *c, int fd, const struct stat *st, MappedFile *r) {
  if (S_ISDIR(st->st_mode)) return EX_directory;
  bool regular = S_ISREG(st->st_mode) && st->st_size > 0;
  if (regular && (u64)st->st_size > SIZE_MAX / 2) return EFBIG;
  if (regular && lseek(fd, 0, SEEK_CUR) == 0) {
    r->p = c->io.map(c->io.user, fd, (size_t)st->st_size);
    if (r->p) {
      r->n = (size_t)st->st_size;
      return 0;
    }
  }
  size_t max = S_ISREG(st->st_mode) ? SIZE_MAX / 4 : STREAM_MAX;
  return read_all(c, fd, r, regular ? (size_t)st->st_size : 65535, max);
}

/* ---- files that were read are not overwritten ---- */

static _Noreturn void refuse(Ctx *c, const char *out, const char *in) {
  fail(c, ERR_usage, loc_of_file(c, out),
       "would be replaced by the output, but is read%s%s; choose another output file",
       strcmp(in, out) ? " as " : "", strcmp(in, out) ? show_text(c, str_of(c, in)) : "");
}

static void know(MappedFile *r, const struct stat *st) {
  r->dev = (u64)st->st_dev;
  r->node = (u64)st->st_ino;
  r->size = st->st_size;
  r->sec = st->st_mtim.tv_sec;
  r->nsec = st->st_mtim.tv_nsec;
}

/* Only regular files can be lost. */
static void keep_from_loss(Ctx *c, MappedFile *r, const char *path) {
  for (const PlannedFile *p = c->planned; p; p = p->next)
    if (p->dev == r->dev && p->node == r->node) refuse(c, p->path, path);
  r->path = path;
}

void files_protect(Ctx *c, const Ctx *other) {
  for (const MappedFile *r = other->files; r; r = r->next) {
    const MappedFile *known = c->files;
    while (known && (!known->path || known->dev != r->dev || known->node != r->node))
      known = known->next;
    if (!r->path || known) continue;
    MappedFile *own = NEW(&c->keep, MappedFile);
    *own = (MappedFile){.next = c->files, .dev = r->dev, .node = r->node};
    c->files = own;
    keep_from_loss(c, own, str_text(c, str_of(c, r->path)));
  }
}

static File held(const MappedFile *r) {
  return (File){r->p ? r->p : (const u8 *)"", r->n, r->p && r->cap == 0};
}

static File read_whole(Ctx *c, const char *path, bool own) {
  Loc loc = loc_of_file(c, path);
  MappedFile *r = idle_record(c);
  bool std = strcmp(path, "-") == 0;
  int fd = std ? 0 : open_retry(c, AT_FDCWD, path, O_RDONLY, 0);
  if (fd < 0) fail(c, ERR_system, loc, "cannot open: %s", reason(errno));
  struct stat st;
  int err = fstat(fd, &st) != 0 ? errno : load(c, fd, &st, r);
  if (!std) c->io.close(c->io.user, fd);
  if (err) {
    drop(c, r);
    fail(c, err == EX_directory ? ERR_input : ERR_system, loc, "cannot read: %s", reason(err));
  }
  if (S_ISREG(st.st_mode)) know(r, &st);
  if (S_ISREG(st.st_mode) && !own) keep_from_loss(c, r, str_text(c, loc.file));
  return held(r);
}

File file_read(Ctx *c, const char *path) {
  return read_whole(c, path, false);
}

File file_read_own(Ctx *c, const char *path) {
  return read_whole(c, path, true);
}

/* Why a name from a model is not acceptable, or NULL. */
static const char *bad_name(const char *name, size_t n) {
  if (n == 0) return "the name is empty";
  if (n > 255) return "the name is longer than 255 bytes";
  if (memchr(name, 0, n)) return "the name contains a NUL byte";
  if (!utf8_valid(name, n)) return "the name is not UTF-8";
  if (memchr(name, '\\', n)) return "the name contains a backslash";
  if (name[0] == '/') return "the name is an absolute path";
  if (n > 1 && name[1] == ':' && ((name[0] | 32) >= 'a' && (name[0] | 32) <= 'z'))
    return "the name starts with a drive letter";
  for (const char *p = name; *p;) {
    size_t k = strcspn(p, "/");
    if (k == 2 && p[0] == '.' && p[1] == '.') return "the name contains '..'";
    p += k + (p[k] == '/');
  }
  return NULL;
}

/* Opens component by component, without following links. Returns a descriptor, or -1 and errno. */
static int open_steps(Ctx *c, int dir, const char *name) {
  char part[256];
  int at = dir;
  for (;;) {
    name += strspn(name, "/");
    size_t k = strcspn(name, "/");
    memcpy(part, name, k);
    part[k] = 0;
    if (k == 0) strcpy(part, "."); /* the name ends in '/': a directory, refused by load */
    bool last = name[k] == 0;
    int flags = O_RDONLY | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    int fd = open_retry(c, at, part, flags, 0);
    int err = errno;
    if (at != dir) c->io.close(c->io.user, at);
    errno = err;
    if (fd < 0 || last) return fd;
    at = fd;
    name += k;
  }
}

/* Opens `name` below the directory. O_NONBLOCK: opening a pipe must not block. */
static int open_below(Ctx *c, int dir, const char *name) {
#ifdef SYS_openat2
  if (c->io.open == io_system()->open) {
    struct {
      u64 flags, mode, resolve;
    } how = {O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0, 0x08 | 0x04};
    /* resolve: RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS */
    long fd;
    do fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    if (fd >= 0) return (int)fd;
    /* Old kernels and some sandboxes lack openat2; open_steps is as strict. */
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != E2BIG) return -1;
  }
#endif
  return open_steps(c, dir, name);
}

/* Opens the blob of a link in the Hugging Face cache: from ROOT/snapshots/REV, or a folder below,
 * to ../../blobs/NAME, with as many ".." as lead to ROOT. The link is read once, and the blob is
 * opened below ROOT without following links. Returns -1 with ELOOP for other links. */
static int open_blob(Ctx *c, int dir, const char *name) {
  char part[256], target[512] = "";
  const char *slash = strrchr(name, '/'), *blob = target;
  struct stat above, snapshots;
  int at = dir, root = -1, blobs = -1, fd = -1, err = ELOOP;
  if (slash) {
    memcpy(part, name, (size_t)(slash - name));
    part[slash - name] = 0;
    at = open_below(c, dir, part);
  }
  ssize_t n = at < 0 ? -1 : readlinkat(at, slash ? slash + 1 : name, target, sizeof target - 1);
  while (!strncmp(blob, "../", 3)) blob += 3;
  size_t up = (size_t)(blob - target);
  bool fits = n > 0 && n < (ssize_t)sizeof target - 1 && up >= 6 && up < sizeof part &&
              !strncmp(blob, "blobs/", 6) && blob[6] && blob[6] != '.' && !strchr(blob + 6, '/');
  if (fits) {
    memcpy(part, target, up);
    part[up] = 0; /* "../../": ROOT; without the first component: ROOT/snapshots */
    root = open_retry(c, at, part, O_RDONLY | O_DIRECTORY, 0);
    fits = root >= 0 && !fstatat(at, part + 3, &above, 0) &&
           !fstatat(root, "snapshots", &snapshots, AT_SYMLINK_NOFOLLOW) &&
           above.st_dev == snapshots.st_dev && above.st_ino == snapshots.st_ino;
  }
  if (fits) blobs = open_retry(c, root, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (blobs >= 0) {
    fd = open_retry(c, blobs, blob + 6, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    err = errno;
    c->io.close(c->io.user, blobs);
  }
  if (root >= 0) c->io.close(c->io.user, root);
  if (at >= 0 && at != dir) c->io.close(c->io.user, at);
  errno = err;
  return fd;
}

static bool is_same(const MappedFile *r, const struct stat *st) {
  return r->p && r->dev == (u64)st->st_dev && r->node == (u64)st->st_ino &&
         r->size == st->st_size && r->sec == st->st_mtim.tv_sec && r->nsec == st->st_mtim.tv_nsec;
}

/* Loads the opened file unless it is already held: a model may name one file many times. */
static int load_below(Ctx *c, int fd, MappedFile **out) {
  struct stat st;
  if (fstat(fd, &st) != 0) return errno;
  if (!S_ISREG(st.st_mode)) return EX_notfile;
  if (st.st_nlink != 1) return EX_links;
  MappedFile *r = *out;
  for (MappedFile *o = c->files; o; o = o->next) {
    if (!is_same(o, &st)) continue;
    *out = o;
    return 0;
  }
  know(r, &st);
  return load(c, fd, &st, r);
}

/* Errors caused by the name are ERR_input, all others ERR_system. */
static Err code_of(int err) {
  switch (err) {
  case ENOENT:
  case ENOTDIR:
  case ELOOP:
  case EXDEV:
  case EACCES:
  case EISDIR:
  case ENXIO:
  case ENAMETOOLONG: return ERR_input;
  default: return err < 0 ? ERR_input : ERR_system;
  }
}

static const char *reason_below(int err) {
  if (err == ELOOP || err == EXDEV)
    return "is reached through a symbolic link; only links of the Hugging Face cache, from "
           "snapshots/REV to ../../blobs, are followed";
  return reason(err);
}

/* The directory part of a path, "." if it has none. */
static const char *folder(Ctx *c, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  if (slash == path) return "/";
  char *dir = arena_alloc(&c->scratch, (size_t)(slash - path) + 1);
  memcpy(dir, path, (size_t)(slash - path));
  return dir;
}

File file_read_beneath(Ctx *c, const char *model_path, Str name, Loc loc) {
  const char *shown = show(c, name), *text = str_text(c, name);
  const char *bad = bad_name(text, str_len(c, name));
  if (bad) fail(c, ERR_input, loc, "external data '%s' refused: %s", shown, bad);
  struct stat st;
  if (!model_path) model_path = "-";
  if (!*model_path || strcmp(model_path, "-") == 0 ||
      (stat(model_path, &st) == 0 && !S_ISREG(st.st_mode)))
    fail(c, ERR_input, loc, "external data '%s' refused: the model is not a file in a folder",
         shown);
  const char *dirname = folder(c, model_path);
  bool here = !strchr(model_path, '/');
  const char *path = fmt_text(c, "%s%s%s", here ? "" : dirname, here ? "" : "/", text);
  MappedFile *r = idle_record(c);
  int err = 0;
  int dir = open_retry(c, AT_FDCWD, dirname, O_RDONLY | O_DIRECTORY, 0);
  if (dir < 0) fail(c, ERR_system, loc, "cannot open the model's folder: %s", reason(errno));
  int fd = open_below(c, dir, text);
  if (fd < 0 && (errno == ELOOP || errno == EXDEV)) fd = open_blob(c, dir, text);
  if (fd < 0) err = errno;
  c->io.close(c->io.user, dir);
  MappedFile *got = r;
  if (fd >= 0) {
    err = load_below(c, fd, &got);
    c->io.close(c->io.user, fd);
    if (got != r) c->files = r->next; /* a record per tensor would make the search quadratic */
  }
  if (err) {
    drop(c, r);
    fail(c, code_of(err), loc, "external data '%s': %s", shown, reason_below(err));
  }
  if (got == r) keep_from_loss(c, r, path);
  return held(got);
}

/* Bytes per write call. If a source page is not in memory yet (a mapped file), Linux 6 with ext4
 * caches the rest of the call in 4 KiB pages instead of large ones. A program that maps the file
 * then reads weights up to 10 % slower (measured with bench/llm_least.py). */
enum { WRITE_STEP = 4 << 20 };

/* Returns 0 or an error. */
static int write_all(Ctx *c, int fd, const u8 *at, size_t n) {
  while (n) {
    size_t step = n < WRITE_STEP ? n : WRITE_STEP;
    i64 put = c->io.write(c->io.user, fd, at, step);
    if (put == 0) return EIO;
    if (put < 0) {
      if (!try_again(fd, POLLOUT)) return errno;
      continue;
    }
    at += put;
    n -= (size_t)put;
  }
  return 0;
}

static int sync_file(Ctx *c, int fd) {
  int rc;
  do rc = c->io.fsync(c->io.user, fd);
  while (rc != 0 && errno == EINTR);
  /* File systems without fsync return these errors. */
  return rc == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

static int close_file(Ctx *c, int fd) {
  return c->io.close(c->io.user, fd) == 0 || errno == EINTR ? 0 : errno;
}

typedef struct FdSink {
  Sink sink;
  Ctx *c;
  int fd, err;
} FdSink;

static void put_fd(Sink *to, const void *at, size_t n) {
  FdSink *s = (FdSink *)to;
  if (!s->err) s->err = write_all(s->c, s->fd, at, n);
}

typedef struct PieceMaker {
  const Chunk *piece;
  Sink *to;
} PieceMaker;

static void make_piece(Ctx *c, void *arg) {
  const PieceMaker *m = arg;
  (void)c;
  m->piece->make(m->piece->at, m->piece->n, m->to);
}

static int write_out(Ctx *c, int fd, const FileOut *f) {
  FdSink to = {{put_fd}, c, fd, 0};
  if (!f->piece) put_fd(&to.sink, f->at, f->n);
  for (size_t i = 0; f->piece && i < f->n && !to.err; i++) {
    const Chunk *p = &f->piece[i];
    PieceMaker m = {p, &to.sink};
    if (!p->make)
      put_fd(&to.sink, p->at, p->n);
    else if (ctx_protect(c, make_piece, &m))
      return EX_made;
  }
  return to.err;
}

/* Devices and pipes are written directly. */
static int write_through(Ctx *c, const char *path, const FileOut *f) {
  int fd = open_retry(c, AT_FDCWD, path, O_WRONLY, 0);
  if (fd < 0) return errno;
  int err = write_out(c, fd, f), err2 = close_file(c, fd);
  return err ? err : err2;
}

/* Creates the temporary file; `temp` ends in space for two digits. */
static int create(Ctx *c, char *temp, int mode, int *fd) {
  static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  char *tail = temp + strlen(temp) - 2;
  for (int i = 0; i < 36 * 36; i++) {
    tail[0] = digits[i / 36];
    tail[1] = digits[i % 36];
    *fd = open_retry(c, AT_FDCWD, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (*fd >= 0) return 0;
    if (errno != EEXIST) return errno;
  }
  return EEXIST;
}

/* A file to be written through a temporary. */
typedef struct Aside {
  Loc loc;
  const char *path, *dir; /* dir: NULL if written directly */
  char *temp;
  int mode;      /* mode of the replaced file, which is kept; -1: a new file */
  u64 dev, node; /* device and inode of the replaced file */
  bool std, made;
  bool missing; /* the folder does not exist */
} Aside;

/* Fails if the path visibly cannot hold a file. */
static Aside look(Ctx *c, const char *path) {
  Aside a = {.loc = loc_of_file(c, path), .path = path, .mode = -1};
  struct stat st;
  a.std = strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
  if (!a.std && lstat(path, &st) == 0) {
    /* A link is kept; its destination is written. */
    if (S_ISLNK(st.st_mode)) {
      char *real = arena_alloc(&c->scratch, PATH_MAX);
      if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && !realpath(path, real)))
        fail(c, ERR_system, a.loc, "cannot write: %s", reason(errno));
      if (S_ISREG(st.st_mode)) a.path = real;
    }
    if (S_ISDIR(st.st_mode)) fail(c, ERR_system, a.loc, "cannot write: %s", reason(EX_directory));
    a.mode = (int)(st.st_mode & 0777);
    a.dev = (u64)st.st_dev;
    a.node = (u64)st.st_ino;
  }
  if (a.std || (a.mode >= 0 && !S_ISREG(st.st_mode))) return a;
  if (!*path || path[strlen(path) - 1] == '/')
    fail(c, ERR_system, a.loc, "cannot write: the path ends in '/'; expected the name of a file");
  StrBuf temp = sb_new(&c->scratch);
  const char *up = a.dir = folder(c, a.path);
  while (stat(up, &st) && errno == ENOENT && strcmp(up, ".") && strcmp(up, "/")) up = folder(c, up);
  a.missing = up != a.dir;
  if (stat(up, &st) == 0 && !S_ISDIR(st.st_mode))
    fail(c, ERR_system, a.loc, "cannot write: '%s' is not a directory", show(c, str_of(c, up)));
  if (faccessat(AT_FDCWD, up, W_OK | X_OK, AT_EACCESS) != 0)
    fail(c, ERR_system, a.loc, "cannot write: %s", reason(errno));
  /* Process id and context address distinguish concurrent writers. */
  char mark[TEMP_MARK];
  temp_mark(mark);
  sb_fmt(&temp, "%s/.ingot-tmp-%s-%llx-00", a.dir, mark, (unsigned long long)(uintptr_t)c);
  sb_cstr(&temp);
  a.temp = temp.at;
  return a;
}

static void check_loss(Ctx *c, const Aside *a, const char *path) {
  if (!a->dir || a->mode < 0) return;
  for (const MappedFile *r = c->files; r; r = r->next)
    if (r->path && r->dev == a->dev && r->node == a->node) refuse(c, path, r->path);
}

void files_plan(Ctx *c, const char *const *path, u32 n) {
  Mark m = arena_mark(&c->scratch);
  const char *swept = "";
  for (u32 i = 0; i < n; i++) {
    Aside a = look(c, path[i]);
    check_loss(c, &a, path[i]);
    if (a.dir && strcmp(a.dir, swept)) temps_collect(swept = a.dir, false);
    if (!a.dir || a.mode < 0) continue;
    PlannedFile *p = NEW(&c->keep, PlannedFile);
    *p = (PlannedFile){c->planned, str_text(c, a.loc.file), a.dev, a.node};
    c->planned = p;
  }
  arena_rewind(&c->scratch, m);
}

int folders_make(char *path, unsigned mode) {
  int err = 0;
  for (char *p = path + 1; *p && !err; p++) {
    if (*p != '/') continue;
    *p = 0;
    if (mkdir(path, (mode_t)mode) && errno != EEXIST) err = errno;
    *p = '/';
  }
  return err;
}

void file_release(Ctx *c, const char *path) {
  for (MappedFile *r = c->files; r; r = r->next)
    if (r->path && !strcmp(r->path, path)) r->path = NULL;
}

bool file_is_device(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int put_aside(Ctx *c, Aside *a, const FileOut *f) {
  int fd, err = a->missing ? folders_make(a->temp, 0777) : 0;
  if (err) return err;
  if (f->program && a->mode >= 0) a->mode |= (a->mode & 0444) >> 2;
  guard_enter(c);
  err = create(c, a->temp, f->cached ? 0600 : f->program ? 0777 : 0666, &fd);
  if (!err) guard_put(c, a->temp, 0);
  guard_leave(c);
  if (err) return err;
  a->made = true;
  if (a->mode >= 0) (void)!fchmod(fd, (mode_t)a->mode); /* some file systems have no modes */
  err = write_out(c, fd, f);
  if (!err && !f->transient) err = sync_file(c, fd);
  int err2 = close_file(c, fd);
  return err ? err : err2;
}

static int put_in_place(Ctx *c, Aside *a, const FileOut *f) {
  if (a->std) return write_out(c, 1, f);
  if (!a->dir) return write_through(c, a->path, f);
  guard_enter(c);
  int err = c->io.rename(c->io.user, AT_FDCWD, a->temp, AT_FDCWD, a->path) != 0 ? errno : 0;
  if (!err) guard_drop(c, a->temp, 0);
  guard_leave(c);
  if (err) return err;
  a->made = false;
  if (f->transient) return 0;
  /* The file is in place. Syncing its folder, so that the name survives a power failure, is best
   * effort. */
  int d = open_retry(c, AT_FDCWD, a->dir, O_RDONLY | O_DIRECTORY, 0);
  if (d >= 0) {
    sync_file(c, d);
    close_file(c, d);
  }
  return 0;
}

void files_write(Ctx *c, const FileOut *f, u32 n) {
  Mark m = arena_mark(&c->scratch);
  Aside *a = NEWS(&c->scratch, Aside, n);
  Loc loc = LOC_NONE;
  int err = 0;
  for (u32 i = 0; i < n; i++) {
    a[i] = look(c, f[i].path);
    if (!f[i].update) check_loss(c, &a[i], f[i].path);
  }
  for (u32 i = 0; !err && i < 2 * n; i++) {
    u32 k = i % n;
    loc = a[k].loc;
    err = i >= n ? put_in_place(c, &a[k], &f[k]) : a[k].dir ? put_aside(c, &a[k], &f[k]) : 0;
  }
  guard_enter(c);
  for (u32 i = 0; i < n; i++) {
    if (!a[i].made) continue;
    c->io.unlink(c->io.user, AT_FDCWD, a[i].temp);
    guard_drop(c, a[i].temp, 0);
  }
  guard_leave(c);
  arena_rewind(&c->scratch, m);
  if (err == EX_made) diag_raise(c);
  if (err) fail(c, ERR_system, loc, "cannot write: %s", reason(err));
}

void file_write(Ctx *c, const char *path, const void *at, size_t n) {
  files_write(c, &(FileOut){.path = path, .at = at, .n = n}, 1);
}
