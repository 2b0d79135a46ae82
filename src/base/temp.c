/* temp.c: names of temporary files and folders, and removal of those that killed runs left.
 *
 * In: a folder. Out: it without the temporaries of processes that are gone. A name holds the
 * process and a hash of the machine and its PID namespace, so that a live process of another
 * container or machine that shares the folder is never taken for a dead one.
 */
#include "base/own.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static u32 machine_hash(void) {
  struct utsname u;
  struct stat ns;
  char text[sizeof u.nodename + 32] = "";
  u64 pids = stat("/proc/self/ns/pid", &ns) ? 0 : (u64)ns.st_ino;
  snprintf(text, sizeof text, "%s %llu", uname(&u) ? "" : u.nodename, (unsigned long long)pids);
  return (u32)hash_bytes(text, strlen(text));
}

void temp_mark(char to[TEMP_MARK]) {
  snprintf(to, TEMP_MARK, "%ld-%08x", (long)getpid(), machine_hash());
}

/* .ingot-tmp-PID-MACHINE-..., a file, or ingot-PID-MACHINE-..., a folder: of a process that is
 * gone.
 */
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

void folder_empty(const char *path) {
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(dirfd(d), e->d_name, 0);
  if (d) closedir(d);
  rmdir(path);
}

u32 temps_collect(const char *folder) {
  u32 machine = machine_hash(), count = 0;
  char path[4096];
  struct stat st;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (!is_stale(e->d_name, machine) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
        st.st_uid != geteuid())
      continue;
    if (S_ISREG(st.st_mode)) count += !unlinkat(dirfd(d), e->d_name, 0);
    if (!S_ISDIR(st.st_mode) ||
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
      continue;
    folder_empty(path);
    count++;
  }
  if (d) closedir(d);
  return count;
}
