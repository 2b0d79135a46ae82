/* temp.c: names of temporary files and folders, and removal of stale ones.
 *
 * In: a folder. Out: the folder without temporaries of ended processes. A name holds the process id
 * and a hash of machine and PID namespace. So a live process of another container or machine that
 * shares the folder is never taken for an ended one. */
#include "base/mark.h"
#include "base/base_own.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void temp_mark(char to[TEMP_MARK]) {
  temp_mark_put(to);
}

/* Matches temporaries of ended processes: .ingot-tmp-PID-MACHINE-... (files) or
 * ingot-PID-MACHINE-... (folders). */
static bool is_stale(const char *name, u32 machine) {
  static const char *const begins[] = {".ingot-tmp-", "ingot-"};
  const char *at = NULL;
  char *end;
  for (u32 i = 0; i < sizeof begins / sizeof *begins && !at; i++)
    if (!strncmp(name, begins[i], strlen(begins[i]))) at = name + strlen(begins[i]);
  if (!at || *at < '1' || *at > '9') return false;
  long pid = strtol(at, &end, 10);
  if (*end != '-' || pid > INT32_MAX) return false;
  char mark[16];
  snprintf(mark, sizeof mark, "-%08x-", machine);
  return !strncmp(end, mark, strlen(mark)) && kill((pid_t)pid, 0) && errno == ESRCH;
}

/* Removes a folder of the effective user with the files in it; does not follow links. */
static bool folder_remove_at(int at, const char *name) {
  int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat st;
  DIR *d = fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() ? fdopendir(fd) : NULL;
  if (!d && fd >= 0) close(fd);
  for (struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(fd, e->d_name, 0);
  if (d) closedir(d);
  return d && !unlinkat(at, name, AT_REMOVEDIR);
}

void dir_remove(const char *path) {
  folder_remove_at(AT_FDCWD, path);
}

u32 temps_collect(const char *folder, bool folders) {
  u32 machine = machine_hash(), count = 0;
  struct stat st;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (!is_stale(e->d_name, machine) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
        st.st_uid != geteuid())
      continue;
    if (S_ISREG(st.st_mode)) count += !unlinkat(dirfd(d), e->d_name, 0);
    if (S_ISDIR(st.st_mode) && folders) count += folder_remove_at(dirfd(d), e->d_name);
  }
  if (d) closedir(d);
  return count;
}
