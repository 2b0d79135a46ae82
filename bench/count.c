/* count.c: a plugin of QEMU that counts executed instructions between two addresses.
 *
 * In: -plugin count.so,from=ADDRESS,to=ADDRESS,out=FILE. Out: FILE, one line "address count" for
 * every instruction that ran after `from` and before `to` of the last time. Exact, since every
 * instruction has a counter that translated code increments; code lies in the first 4 MB. The few
 * functions of the plugin interface, version 1, are declared here: Debian does not package its
 * header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Insn Insn;
typedef struct Block Block;
enum { NO_REGISTERS = 0, ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const Block *b);
Insn *qemu_plugin_tb_get_insn(const Block *b, size_t i);
uint64_t qemu_plugin_insn_vaddr(const Insn *n);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*fn)(uint64_t id, Block *b));
void qemu_plugin_register_vcpu_insn_exec_cb(Insn *n, void (*fn)(unsigned cpu, void *user),
                                            int flags, void *user);
void qemu_plugin_register_vcpu_insn_exec_inline(Insn *n, int op, void *to, uint64_t by);

int qemu_plugin_version = 1;
enum { HALVES = 1 << 21 };
static uint64_t count[HALVES], from, to;
static char path[4096];

static void begin(unsigned cpu, void *user) {
  (void)cpu;
  (void)user;
  memset(count, 0, sizeof count);
}

static void end(unsigned cpu, void *user) {
  (void)cpu;
  (void)user;
  FILE *f = fopen(path, "w");
  for (uint64_t i = 0; f && i < HALVES; i++)
    if (count[i]) fprintf(f, "%" PRIx64 " %" PRIu64 "\n", 2 * i, count[i]);
  if (f) fclose(f);
}

static void translated(uint64_t id, Block *b) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(b); i++) {
    Insn *n = qemu_plugin_tb_get_insn(b, i);
    uint64_t at = qemu_plugin_insn_vaddr(n);
    if (at == from || at == to)
      qemu_plugin_register_vcpu_insn_exec_cb(n, at == from ? begin : end, NO_REGISTERS, NULL);
    else if (at / 2 < HALVES)
      qemu_plugin_register_vcpu_insn_exec_inline(n, ADD_U64, &count[at / 2], 1);
  }
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    if (!strncmp(argv[i], "from=", 5)) from = strtoull(argv[i] + 5, NULL, 0);
    if (!strncmp(argv[i], "to=", 3)) to = strtoull(argv[i] + 3, NULL, 0);
    if (!strncmp(argv[i], "out=", 4)) snprintf(path, sizeof path, "%s", argv[i] + 4);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  return 0;
}
