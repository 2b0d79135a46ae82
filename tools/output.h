/* output.h: writes a file atomically, for programs of `ingot build`.
 *
 * In: a path and bytes. Out: 0, or an errno value with every file unchanged. Method: as
 * src/base/file.c: write to a temporary file in the same folder, sync, rename. Devices and pipes
 * are written directly. A symbolic link stays and its target is replaced. Signals are blocked until
 * the temporary file is gone. A killed process leaves one, which later runs of ingot delete by its
 * name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static int output_write(int fd, const void *at, size_t n) {
  const char *from = at;
  while (n) {
    ssize_t put = write(fd, from, n < 4 << 20 ? n : 4 << 20);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put ? errno : EIO;
    from += put;
    n -= (size_t)put;
  }
  return 0;
}

static int output_temp(const char *path, mode_t mode, const void *at, size_t n) {
  static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  char temp[PATH_MAX + 64], mark[TEMP_MARK];
  int fd = -1;
  const char *slash = strrchr(path, '/');
  if (strlen(path) >= PATH_MAX) return ENAMETOOLONG;
  temp_mark_put(mark);
  int len = snprintf(temp, sizeof temp, "%.*s.ingot-tmp-%s-0-00",
                     slash ? (int)(slash - path) + 1 : 0, path, mark);
  /* a killed process with this PID may have left one */
  for (int i = 0; i < 36 * 36 && fd < 0; i++) {
    temp[len - 2] = digits[i / 36];
    temp[len - 1] = digits[i % 36];
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return errno;
  if (mode) (void)!fchmod(fd, mode & 0777); /* mode of the replaced file */
  int err = output_write(fd, at, n);
  if (!err && fsync(fd) && errno != EINVAL && errno != ENOTSUP) err = errno;
  if (close(fd) && !err && errno != EINTR) err = errno;
  if (!err && rename(temp, path)) err = errno;
  if (err) unlink(temp);
  return err;
}

static int output_file(const char *path, const void *at, size_t n) {
  char real[PATH_MAX];
  struct stat st;
  if (!strcmp(path, "/dev/stdout")) return output_write(1, at, n);
  int is_there = !stat(path, &st);
  if (is_there && !S_ISREG(st.st_mode)) {
    int fd = open(path, O_WRONLY);
    int err = fd < 0 ? errno : output_write(fd, at, n);
    if (fd >= 0 && close(fd) && !err && errno != EINTR) err = errno;
    return err;
  }
  if (is_there && !realpath(path, real)) return errno;
  sigset_t wait, before;
  signal(SIGXFSZ, SIG_IGN); /* a full disk is an error code, not a signal */
  sigemptyset(&wait);
  sigaddset(&wait, SIGINT);
  sigaddset(&wait, SIGTERM);
  sigaddset(&wait, SIGHUP);
  sigprocmask(SIG_BLOCK, &wait, &before);
  int err = output_temp(is_there ? real : path, is_there ? st.st_mode : 0, at, n);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return err;
}
