/* cpu.c: what /proc/cpuinfo says about the CPU.
 */
#include "host/host.h"

#include <stdio.h>
#include <string.h>

const char *cpu_field(Ctx *c, const char *const *key) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[8192];
  const char *found = NULL;
  while (f && !found && fgets(line, sizeof line, f))
    for (u32 i = 0; key[i]; i++) {
      const char *colon = strchr(line, ':');
      if (strncmp(line, key[i], strlen(key[i])) || !colon) continue;
      colon += 1 + (colon[1] == ' ');
      found = str_text(c, str_intern(c, colon, strcspn(colon, "\n")));
    }
  if (f) fclose(f);
  return found && *found ? found : NULL;
}

const char *cpu_name(Ctx *c) {
  const char *name = cpu_field(c, (const char *const[]){"model name", "CPU part", NULL});
  return name ? name : "unknown";
}
