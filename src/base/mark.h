/* mark.h: identifies a process in the names of its temporary files.
 *
 * Out: a hash of machine, boot and PID namespace, and PID-HASH as text. This file is compiled here
 * and into every program of `ingot build` (before tools/output.h), so that ingot can remove
 * temporary files of both. C99 and POSIX only. */
#ifndef INGOT_MARK_H
#define INGOT_MARK_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TEMP_MARK 32

/* The initial PID namespace has one inode number on all hosts, hence the boot identifier. */
static uint32_t machine_hash(void) {
  struct utsname u;
  struct stat ns;
  char boot[40] = "", text[sizeof u.nodename + sizeof boot + 32];
  uint64_t pids = stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    ssize_t n = read(fd, boot, sizeof boot - 1);
    boot[n > 0 ? n : 0] = 0;
    close(fd);
  }
  snprintf(text, sizeof text, "%s %llu %s", uname(&u) ? "" : u.nodename, (unsigned long long)pids,
           boot);
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *p = text; *p; p++) hash = (hash ^ (unsigned char)*p) * 16777619u;
  return hash;
}

static void temp_mark_put(char to[TEMP_MARK]) {
  snprintf(to, TEMP_MARK, "%ld-%08x", (long)getpid(), (unsigned)machine_hash());
}

#endif
