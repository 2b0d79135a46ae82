/* Reading, confined reading, atomic writing, on a real directory. */
#include "hooks.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[256];

/* One call of a file function: what went in, what came out. */
typedef struct Call {
  int what; /* 'r' file_read, 'o' file_read_own, 'b' file_read_beneath, 'w' file_write, 'p'
               files_plan */
  const char *path;
  const char *name; /* of the external file */
  size_t len;       /* of the name, or of the bytes to write */
  const void *bytes;
  File f;
  char text[600]; /* the message */
} Call;

static void perform(Ctx *c, void *arg) {
  Call *k = arg;
  Loc loc = LOC_NONE;
  if (k->what == 'r') k->f = file_read(c, k->path);
  if (k->what == 'o') k->f = file_read_own(c, k->path);
  if (k->what == 'p') files_plan(c, &k->path, 1);
  if (k->what == 'b') k->f = file_read_beneath(c, k->path, str_intern(c, k->name, k->len), loc);
  if (k->what == 'w') file_write(c, k->path, k->bytes, k->len);
}

static Err call_in(Ctx *c, Call *k) {
  Err e = ctx_protect(c, perform, k);
  k->text[0] = 0;
  for (Diag *d = c->diags; d; d = d->next) snprintf(k->text, sizeof k->text, "%s", d->text);
  return e;
}

static bool holds(File f, const char *text) {
  return f.n == strlen(text) && memcmp(f.at, text, f.n) == 0;
}

static bool reads(Ctx *c, const char *path, const char *text) {
  Call k = {.what = 'r', .path = path};
  return call_in(c, &k) == ERR_ok && holds(k.f, text);
}

static Err writes(Ctx *c, const char *path, const char *text) {
  Call k = {.what = 'w', .path = path, .bytes = text, .len = strlen(text)};
  return call_in(c, &k);
}

static bool made(Ctx *c, const char *path, const char *text) {
  Call k = {.what = 'o', .path = path};
  return call_in(c, &k) == ERR_ok && holds(k.f, text);
}

static Err plans(Ctx *c, const char *path) {
  Call k = {.what = 'p', .path = path};
  return call_in(c, &k);
}

static void put(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  if (!CHECK(f)) return;
  fputs(text, f);
  fclose(f);
}

static int entries(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.' || e->d_name[1] == 'i';
  if (d) closedir(d);
  return n;
}

static void read_plain(Ctx *c, TestIo *io) {
  put("plain", "some bytes");
  put("empty", "");
  CHECK(reads(c, "plain", "some bytes"));
  CHECK(reads(c, "empty", ""));
  Call k = {.what = 'r', .path = "plain"};
  CHECK(call_in(c, &k) == ERR_ok && k.f.mapped);
  io->no_map = true;
  CHECK(reads(c, "plain", "some bytes"));
  io->step = 1;
  io->signals = true;
  CHECK(reads(c, "plain", "some bytes"));
  *io = (TestIo){.fds = io->fds, .maps = io->maps};
  k.path = ".";
  CHECK(call_in(c, &k) == ERR_input && !strcmp(k.text, ".: cannot read: is a directory"));
  k.path = "absent";
  CHECK(call_in(c, &k) == ERR_system &&
        !strcmp(k.text, "absent: cannot open: No such file or directory"));
  k.path = "/proc/self/status"; /* says it has no bytes */
  CHECK(call_in(c, &k) == ERR_ok && k.f.n > 100);
  k.path = "";
  CHECK(call_in(c, &k) == ERR_system);
}

/* Standard input: a pipe, a file from its start, a file from its middle. */
static void read_stdin(Ctx *c) {
  int keep = dup(0), p[2];
  size_t n = 200000;
  char *big = malloc(n + 1);
  for (size_t i = 0; i < n; i++) big[i] = (char)('a' + i % 23);
  big[n] = 0;
  CHECK(pipe(p) == 0);
  pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < n; i += 1000)
      if (write(p[1], big + i, 1000) != 1000) _exit(1);
    _exit(0);
  }
  close(p[1]);
  dup2(p[0], 0);
  close(p[0]);
  CHECK(reads(c, "-", big));
  for (int skip = 0; skip < 4; skip += 3) {
    int fd = open("plain", O_RDONLY);
    CHECK(fd >= 0 && lseek(fd, skip, SEEK_SET) == skip);
    dup2(fd, 0);
    close(fd);
    CHECK(reads(c, "-", &"some bytes"[skip]));
  }
  dup2(keep, 0);
  close(keep);
  free(big);
}

static Err beneath_n(Ctx *c, const char *model, const char *name, size_t n, Call *k) {
  *k = (Call){.what = 'b', .path = model, .name = name, .len = n};
  return call_in(c, k);
}

static Err beneath(Ctx *c, const char *model, const char *name) {
  Call k;
  return beneath_n(c, model, name, strlen(name), &k);
}

static void make_tree(void) {
  char path[300];
  mkdir("m", 0777);
  mkdir("m/sub", 0777);
  put("secret", "secret");
  put("m/model.onnx", "model");
  put("m/w", "weights");
  put("m/sub/w", "deeper");
  put("m/hard", "twice");
  put("m/\xc3\xa9", "accent");
  put("m/..w", "dots");
  CHECK(link("m/hard", "m/hard2") == 0);
  CHECK(symlink("w", "m/soft") == 0);
  CHECK(symlink("../secret", "m/out") == 0);
  CHECK(symlink("sub", "m/softdir") == 0);
  CHECK(symlink("..", "m/up") == 0);
  snprintf(path, sizeof path, "%s/secret", dir);
  CHECK(symlink(path, "m/abs") == 0);
  CHECK(symlink("m/model.onnx", "linked.onnx") == 0);
  CHECK(mkfifo("m/pipe", 0666) == 0);
}

/* The cache of Hugging Face: links of a snapshot to blobs, and links that only look like them. */
static void read_blobs(Ctx *c) {
  static const char *const link_of[][2] = {{"h/snapshots/r/deep/w", "../../../blobs/1"},
                                           {"h/snapshots/r/short", "../blobs/1"},
                                           {"h/snapshots/r/far", "../../../blobs/1"},
                                           {"h/snapshots/r/other", "../../other/1"},
                                           {"h/snapshots/r/below", "../../blobs/s/1"},
                                           {"h/snapshots/r/dots", "../../blobs/.."},
                                           {"h/snapshots/r/soft", "../../blobs/soft"},
                                           {"h/snapshots/r/hard", "../../blobs/hard"},
                                           {"h/snapshots/r/gone", "../../blobs/none"},
                                           {"h/snapshots/r/long", "../../blobs/../x"},
                                           {"h/plain/r/w", "../../blobs/1"},
                                           {"h/blobs/soft", "1"},
                                           {"h/snapshots/r/w", "../../blobs/1"}};
  static const char *const folder[] = {
      "h",         "h/blobs",       "h/blobs/s",          "h/snapshots",
      "h/other",   "h/snapshots/r", "h/snapshots/r/deep", "h/plain",
      "h/plain/r", "blobs"};
  Call k;
  bool made = access("h", F_OK) == 0; /* called once for each way to open */
  for (size_t i = 0; !made && i < sizeof folder / sizeof *folder; i++)
    CHECK(!mkdir(folder[i], 0777));
  for (size_t i = 0; !made && i < sizeof link_of / sizeof *link_of; i++)
    CHECK(!symlink(link_of[i][1], link_of[i][0]));
  put("h/blobs/1", "blob");
  put("h/blobs/s/1", "no");
  put("h/other/1", "no");
  put("h/x", "no");
  put("blobs/1", "no");
  put("h/blobs/hard", "no");
  CHECK(made || !link("h/blobs/hard", "h/blobs/hard2"));
  put("h/snapshots/r/m", "model");
  put("h/plain/r/m", "model");
  CHECK(beneath_n(c, "h/snapshots/r/m", "w", 1, &k) == ERR_ok && holds(k.f, "blob"));
  CHECK(beneath_n(c, "h/snapshots/r/m", "deep/w", 6, &k) == ERR_ok && holds(k.f, "blob"));
  CHECK(beneath(c, "h/plain/r/m", "w") == ERR_input);
  for (size_t i = 1; i < 10; i++)
    if (!CHECK(beneath(c, "h/snapshots/r/m", strrchr(link_of[i][0], '/') + 1) == ERR_input))
      fprintf(stderr, "  link '%s'\n", link_of[i][1]);
  put("h/snapshots/r/deep/m", "model");
  CHECK(beneath_n(c, "h/snapshots/r/deep/m", "w", 1, &k) == ERR_ok && holds(k.f, "blob"));
  /* Link texts around and beyond the length of a file name. */
  static const int steps[] = {84, 85, 86, 160};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    char text[512] = "";
    for (int up = 0; up < steps[i]; up++) strcat(text, "../");
    CHECK(!symlink(strcat(text, "blobs/1"), "h/snapshots/r/steps"));
    CHECK(beneath(c, "h/snapshots/r/m", "steps") == ERR_input);
    CHECK(!unlink("h/snapshots/r/steps"));
  }
  /* A link in the place of blobs is not followed. */
  CHECK(!rename("h/blobs", "h/moved") && !symlink("moved", "h/blobs"));
  CHECK(beneath(c, "h/snapshots/r/m", "w") == ERR_input);
  CHECK(!unlink("h/blobs") && !rename("h/moved", "h/blobs"));
}

static void read_beneath(Ctx *c) {
  static const char *const good[][2] = {
      {"w", "weights"},          {"./w", "weights"},     {"sub/w", "deeper"}, {"sub//w", "deeper"},
      {"././sub/./w", "deeper"}, {"\xc3\xa9", "accent"}, {"..w", "dots"}};
  static const char *const bad[] = {"",
                                    "/etc/passwd",
                                    "..",
                                    "../secret",
                                    "sub/../../secret",
                                    "sub/../w",
                                    "w/..",
                                    "./../w",
                                    "a\\b",
                                    "..\\w",
                                    "C:w",
                                    "c:/w",
                                    "soft",
                                    "out",
                                    "abs",
                                    "softdir/w",
                                    "up/secret",
                                    "hard",
                                    "hard2",
                                    "sub",
                                    "sub/",
                                    ".",
                                    "./",
                                    "pipe",
                                    "absent",
                                    "w/x",
                                    "w/",
                                    "sub/absent",
                                    "\xff",
                                    "a\xc0\xafw",
                                    "\xed\xa0\x80",
                                    "\xe2\x82"};
  Call k;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    CHECK(beneath_n(c, "m/model.onnx", good[i][0], strlen(good[i][0]), &k) == ERR_ok);
    CHECK(holds(k.f, good[i][1]));
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (!CHECK(beneath(c, "m/model.onnx", bad[i]) == ERR_input))
      fprintf(stderr, "  name '%s'\n", bad[i]);
  CHECK(beneath_n(c, "m/model.onnx", "w\0x", 3, &k) == ERR_input);
  CHECK(strstr(k.text, "external data 'w\\x00x' refused: the name contains a NUL byte"));
  char longname[300];
  memset(longname, '/', sizeof longname);
  memcpy(longname, "sub", 3);
  longname[254] = 'w';
  CHECK(beneath_n(c, "m/model.onnx", longname, 255, &k) == ERR_ok && holds(k.f, "deeper"));
  longname[254] = '/';
  longname[255] = 'w';
  CHECK(beneath_n(c, "m/model.onnx", longname, 256, &k) == ERR_input);
  /* Where the folder is: the model's own name may be a link, but must be there. */
  CHECK(beneath(c, "-", "secret") == ERR_input && beneath(c, "", "secret") == ERR_input);
  CHECK(beneath(c, NULL, "secret") == ERR_input && beneath(c, "m", "secret") == ERR_input);
  CHECK(beneath(c, "m/pipe", "w") == ERR_input);
  CHECK(beneath(c, "linked.onnx", "secret") == ERR_ok);
  CHECK(beneath(c, "linked.onnx", "w") == ERR_input);
  CHECK(beneath(c, "absent/model.onnx", "w") == ERR_system);
  /* One file is held once, however often and however it is named. */
  Call k2;
  beneath_n(c, "m/model.onnx", "w", 1, &k);
  beneath_n(c, "m/../m/model.onnx", "./w", 3, &k2);
  CHECK(k.f.at && k.f.at == k2.f.at);
}

static void write_plain(Ctx *c, TestIo *io) {
  int before = entries(".");
  CHECK(writes(c, "out", "first") == ERR_ok && made(c, "out", "first"));
  CHECK(writes(c, "out", "") == ERR_ok && made(c, "out", ""));
  io->step = 1;
  io->signals = true;
  CHECK(writes(c, "./out", "second") == ERR_ok && made(c, "out", "second"));
  *io = (TestIo){.fds = io->fds, .maps = io->maps};
  CHECK(chmod("out", 0750) == 0 && writes(c, "out", "third") == ERR_ok);
  struct stat st;
  CHECK(stat("out", &st) == 0 && (st.st_mode & 0777) == 0750);
  CHECK(symlink("out", "outlink") == 0 && writes(c, "outlink", "fourth") == ERR_ok);
  CHECK(lstat("outlink", &st) == 0 && S_ISLNK(st.st_mode) && made(c, "out", "fourth"));
  CHECK(symlink("nowhere/x", "dangling") == 0 && writes(c, "dangling", "x") == ERR_system);
  CHECK(writes(c, ".", "x") == ERR_system && writes(c, "m", "x") == ERR_system);
  CHECK(writes(c, "nowhere/deep/x", "x") == ERR_ok && made(c, "nowhere/deep/x", "x"));
  CHECK(writes(c, "", "x") == ERR_system && writes(c, "nowhere/deep/x/y", "x") == ERR_system);
  CHECK(writes(c, "out/x", "x") == ERR_system && writes(c, "new/", "x") == ERR_system);
  CHECK(writes(c, "/dev/null", "x") == ERR_ok);
  Call k = {.what = 'w', .path = "/dev/full", .bytes = "x", .len = 1};
  if (access("/dev/full", W_OK) == 0)
    CHECK(call_in(c, &k) == ERR_system &&
          !strcmp(k.text, "/dev/full: cannot write: No space left on device"));
  CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
  CHECK(entries(".") == before + 4); /* out, outlink, dangling, nowhere */
  CHECK(!unlink("nowhere/deep/x") && !rmdir("nowhere/deep") && !rmdir("nowhere"));
}

/* What was read is not written, and what will be written is not read, under any name. */
static void write_read(Ctx *c) {
  put("kept", "kept");
  CHECK(link("kept", "kept2") == 0 && symlink("kept", "kept3") == 0);
  CHECK(plans(c, "kept2") == ERR_ok);
  CHECK(made(c, "kept", "kept"));
  Call k = {.what = 'r', .path = "kept3"};
  CHECK(call_in(c, &k) == ERR_usage && strstr(k.text, "kept2: ") &&
        strstr(k.text, "read as kept3"));
  CHECK(writes(c, "kept", "new") == ERR_ok &&
        made(c, "kept", "new")); /* nobody reads the new one */
  CHECK(reads(c, "kept", "new"));
  CHECK(writes(c, "kept", "x") == ERR_usage && writes(c, "kept3", "x") == ERR_usage);
  CHECK(plans(c, "kept3") == ERR_usage && made(c, "kept", "new"));
  CHECK(beneath(c, "m/model.onnx", "w") == ERR_ok);
  CHECK(writes(c, "m/w", "x") == ERR_usage && plans(c, "./m/w") == ERR_usage);
  CHECK(plans(c, "kept/x") == ERR_system && plans(c, ".") == ERR_system);
  CHECK(plans(c, "far/off/x") == ERR_ok && access("far", F_OK) != 0);
  CHECK(plans(c, "absent") == ERR_ok && plans(c, "-") == ERR_ok && plans(c, "/dev/null") == ERR_ok);
  unlink("kept"), unlink("kept2"), unlink("kept3");
}

static void write_stdout(Ctx *c) {
  static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1"};
  for (int i = 0; i < 3; i++) {
    int p[2], keep = dup(1);
    char got[16];
    CHECK(pipe(p) == 0);
    fflush(stdout);
    dup2(p[1], 1);
    close(p[1]);
    CHECK(writes(c, names[i], "hello") == ERR_ok);
    dup2(keep, 1);
    close(keep);
    CHECK(read(p[0], got, sizeof got) == 5 && memcmp(got, "hello", 5) == 0);
    close(p[0]);
  }
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%s/ingot-unit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!CHECK(mkdtemp(dir)) || !CHECK(chdir(dir) == 0)) return check_end();
  make_tree();
  TestAlloc t = {0};
  TestIo io = {0};
  Alloc a = test_alloc(&t);
  Io hook = test_io(&io);
  /* Once with openat2, once with the walk, which is what a hook gets. */
  for (int round = 0; round < 2; round++) {
    Ctx *c = ctx_new(&a, round ? &hook : NULL);
    if (!CHECK(c)) break;
    read_plain(c, &io);
    read_stdin(c);
    read_beneath(c);
    read_blobs(c);
    write_plain(c, &io);
    write_read(c);
    write_stdout(c);
    ctx_free(c);
    unlink("out"), unlink("outlink"), unlink("dangling");
    CHECK(t.blocks == 0 && io.fds == 0 && io.maps == 0);
  }
  char cmd[300];
  snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
  CHECK(chdir("/") == 0 && system(cmd) == 0);
  return check_end();
}
