/* cache_folder.c: the folder for files that ingot keeps between processes.
 *
 * In: the name of a file. Out: its path, in a folder that only the effective user can write to.
 * Code and profiles are read from there, so a file or folder that another user may have written is
 * not used.
 */
#include "host/host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 or an errno. */
static int make_private(Ctx *c, const char *folder) {
  const char *slashed = str_text(c, str_fmt(c, "%s/", folder));
  return folders_make(arena_copy(&c->keep, slashed, strlen(slashed) + 1), 0700);
}

/* NULL: only the effective user can write to the file or folder. */
static const char *others_may_write(const struct stat *st) {
  if (st->st_uid != geteuid()) return "belongs to another user";
  return st->st_mode & (S_IWGRP | S_IWOTH) ? "can be written by other users" : NULL;
}

/* Can other users rename files in the folder? The sticky bit and private groups prevent it. */
static bool others_may_rename(const struct stat *st) {
  bool group = st->st_mode & S_IWGRP && st->st_gid != getegid() && st->st_gid != 0;
  if (st->st_uid != geteuid() && st->st_uid != 0) return true;
  return !(st->st_mode & S_ISVTX) && (st->st_mode & S_IWOTH || group);
}

/* NULL: only the effective user can write to the folder or replace it, or it does not exist. */
static const char *folder_fault(const char *folder) {
  struct stat st;
  if (stat(folder, &st)) return errno == ENOENT ? NULL : "cannot be read";
  if (!S_ISDIR(st.st_mode)) return "is not a folder";
  const char *why = others_may_write(&st);
  char *real = realpath(folder, NULL), *slash = real ? strrchr(real, '/') : NULL;
  for (; !why && slash; slash = strrchr(real, '/')) {
    slash[slash == real] = 0;
    if (stat(real, &st) || others_may_rename(&st))
      why = "is in a folder that other users can write to";
    if (slash == real) break;
  }
  free(real);
  return why;
}

/* Parent folder of a path, "." without a slash. false: too long. */
static bool folder_of(const char *path, char *to, size_t room) {
  const char *slash = strrchr(path, '/');
  const char *from = slash ? path : ".";
  int n = slash ? (int)(slash - path) + (slash == path) : 1;
  return snprintf(to, room, "%.*s", n, from) < (int)room;
}

/* NULL: the file is trusted. */
static const char *cache_fault(const char *path) {
  char folder[PATH_MAX];
  struct stat st;
  if (!folder_of(path, folder, sizeof folder)) return "has a path that is too long";
  if (folder_fault(folder)) return "lies in a folder that other users can write to";
  if (lstat(path, &st)) return "cannot be read";
  return S_ISREG(st.st_mode) ? others_may_write(&st) : "is not a regular file";
}

bool cache_check_file(Ctx *c, const char *path) {
  struct stat st;
  if (lstat(path, &st)) return false;
  const char *why = cache_fault(path);
  if (!why) return true;
  warn(c, LOC_NONE, "%s %s: it is ignored and replaced", path, why);
  unlink(path);
  return false;
}

static void warn_once(Ctx *c, Str text) {
  for (const Diag *d = c->diags; d; d = d->next)
    if (strstr(d->text, str_text(c, text))) return;
  warn(c, LOC_NONE, "%s", str_text(c, text));
}

bool cache_folder_trusted(Ctx *c, const char *folder) {
  const char *why = folder_fault(folder);
  if (!why) return true;
  warn_once(
      c, str_fmt(c, "%s %s, so it is not used: chown it to yourself, chmod go-w it", folder, why));
  return false;
}

const char *temp_folder(void) {
  const char *tmp = getenv("TMPDIR");
  return tmp && *tmp == '/' ? tmp : "/tmp";
}

const char *cache_file(Ctx *c, const char *name, const char *who) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  Str dir = 0;
  if (base && *base == '/')
    dir = str_of(c, base);
  else if (home && *home == '/')
    dir = str_fmt(c, "%s/.cache", home);
  else
    fail(c, ERR_usage, LOC_NONE, "%s: neither XDG_CACHE_HOME nor HOME is set: name a file", who);
  const char *folder = str_text(c, str_fmt(c, "%s/ingot", str_text(c, dir)));
  const char *path = str_text(c, str_fmt(c, "%s/%s", folder, name));
  int err = make_private(c, folder);
  if (!err && access(path, F_OK) && access(folder, W_OK)) err = errno;
  if (err || !cache_folder_trusted(c, folder)) {
    const char *instead =
        str_text(c, str_fmt(c, "%s/ingot-%lu", temp_folder(), (unsigned long)geteuid()));
    if (err)
      warn_once(c,
                str_fmt(c, "%s cannot be written (%s): using %s", folder, strerror(err), instead));
    folder = instead;
    err = make_private(c, folder);
    struct stat st; /* a link in a world-writable folder may change at any time */
    if (err || lstat(folder, &st) || !S_ISDIR(st.st_mode) || !cache_folder_trusted(c, folder))
      fail(c, ERR_system, LOC_NONE,
           "%s: %s is not a folder that only this user can write to: set XDG_CACHE_HOME to one",
           who, folder);
  }
  return str_text(c, str_fmt(c, "%s/%s", folder, name));
}
