/* doctor.c: a report on this machine and its tools.
 *
 * Out: text or JSON: CPU, features, caches, measured peak throughput, compilers and their
 * abilities, other tools and libraries, or the Debian packages of missing ones. The facts come from
 * /proc and /sys of Linux; elsewhere they are "unknown".
 */
#include "driver/bench/bench.h"
#include "driver/build/build_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

typedef struct Doctor {
  Ingot *m;
  bool json;
  StrBuf *out;
  TempDir folder;
  bool begun; /* the innermost list has a member */
} Doctor;

/* ---- the machine ---- */

/* CPU features that kernels or compiler flags depend on. */
static const char *features(Ctx *c) {
  static const char known[] =
      " sse2 ssse3 sse4_1 sse4_2 popcnt abm bmi1 bmi2 f16c fma avx avx2 avx_vnni avx512f avx512dq "
      "avx512bw avx512vl avx512vbmi avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 "
      "asimd asimdhp asimddp sve sve2 i8mm bf16 ";
  const char *at = cpu_field(c, (const char *const[]){"flags", "Features", NULL});
  StrBuf t = sb_new(&c->keep);
  while (at && *at) {
    size_t n = strcspn(at, " ");
    const char *word = fmt_text(c, " %.*s ", (int)n, at);
    if (n && strstr(known, word)) sb_fmt(&t, "%s%.*s", t.n ? " " : "", (int)n, at);
    at += n + (at[n] == ' ');
  }
  return sb_cstr(&t);
}

/* First line of a file in sysfs; "": missing. */
static const char *first_line(Ctx *c, const char *path) {
  FILE *f = fopen(path, "r");
  char line[256] = "";
  if (f && !fgets(line, sizeof line, f)) *line = 0;
  if (f) fclose(f);
  return str_text(c, str_intern(c, line, strcspn(line, "\n")));
}

/* "L1d 32K, L1i 32K, L2 1024K, L3 32768K"; "": unknown. */
static const char *caches(Ctx *c) {
  StrBuf t = sb_new(&c->keep);
  for (u32 i = 0; i < 8; i++) {
    const char *part[3], *const name[] = {"level", "type", "size"};
    for (u32 k = 0; k < 3; k++)
      part[k] =
          first_line(c, fmt_text(c, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", i, name[k]));
    if (!*part[0] || !*part[2]) break;
    const char *kind = *part[1] == 'D' ? "d" : *part[1] == 'I' ? "i" : "";
    sb_fmt(&t, "%sL%s%s %s", t.n ? ", " : "", part[0], kind, part[2]);
  }
  return sb_cstr(&t);
}

static const char *memory(Ctx *c) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages < 1 || page < 1) return "";
  return fmt_text(c, "%.1f GiB", (double)pages * (double)page / (1 << 30));
}

/* ---- writing ---- */

static void comma(Doctor *d) {
  if (d->json && d->begun) sb_puts(d->out, ",\n ");
  d->begun = true;
}

static void json_member(Doctor *d, const char *name, const char *value) {
  comma(d);
  sb_fmt(d->out, "\"%s\": ", name);
  if (value)
    sb_json(d->out, value, strlen(value));
  else
    sb_puts(d->out, "null");
}

/* Prints a line or a JSON member. */
static void put_fact(Doctor *d, const char *name, const char *value) {
  if (d->json)
    json_member(d, name, *value ? value : NULL);
  else
    sb_fmt(d->out, "%-10s %s\n", name, *value ? value : "unknown");
}

static void open_list(Doctor *d, const char *name) {
  comma(d);
  sb_fmt(d->out, d->json ? "\"%s\": [\n  " : "%s\n", name);
  d->begun = false;
}

static void close_list(Doctor *d) {
  if (d->json) sb_puts(d->out, "]");
  d->begun = true;
}

static void open_row(Doctor *d) {
  comma(d);
  if (d->json) sb_puts(d->out, "{");
  d->begun = false;
}

static void close_row(Doctor *d) {
  if (d->json) sb_puts(d->out, "}");
  d->begun = true;
}

/* ---- sections of the report ---- */

static void put_machine(Doctor *d) {
  Ctx *c = d->m->c;
  struct utsname u;
  const char *system = "";
  if (uname(&u) >= 0) system = fmt_text(c, "%s %s %s", u.sysname, u.release, u.machine);
  put_fact(d, "ingot", INGOT_VERSION);
  put_fact(d, "system", system);
  put_fact(d, "cpu", fmt_text(c, "%s, %ld online", cpu_name(c), sysconf(_SC_NPROCESSORS_ONLN)));
  put_fact(d, "features", features(c));
  put_fact(d, "caches", caches(c));
  put_fact(d, "memory", memory(c));
}

static void put_target(Doctor *d) {
  Ctx *c = d->m->c;
  const char *env = getenv("INGOT_NATIVE");
  StrBuf t = sb_new(&c->keep);
  for (u32 i = 0; i < target_count; i++)
    if (target_is_here(&target_table[i]) && &target_table[i] <= api_target_here(c))
      sb_fmt(&t, "%s%s", t.n ? " " : "", target_table[i].name);
  put_fact(d, "native",
           fmt_text(c, "%s%s%s", api_target_here(c)->name,
                    env && *env ? ", from INGOT_NATIVE; compiler flags " : "; compiler flags ",
                    api_target_flags(c)));
  put_fact(d, "targets", sb_cstr(&t));
}

static void put_peak(Doctor *d, u32 threads, MachinePeak p) {
  StrBuf *t = d->out;
  if (d->json) {
    open_row(d);
    sb_fmt(t,
           "\"threads\": %u, \"f32_gflops\": %.1f, \"f64_gflops\": %.1f, \"read_gb_per_s\": "
           "%.1f",
           threads, p.gflops, p.gflops64, p.gbps);
    close_row(d);
    return;
  }
  sb_fmt(t, "  %2u thread%s", threads, threads > 1 ? "s" : " ");
  if (p.gflops > 0)
    sb_fmt(t, " %.1f GFLOP/s of f32, %.1f of f64,", p.gflops, p.gflops64);
  else
    sb_puts(t, " multiply-adds not measured (no C compiler with vectors);");
  sb_fmt(t, " %.1f GB/s read\n", p.gbps);
}

/* Memory bandwidth only, without a compiler. */
static MachinePeak peak_alone(Ctx *c) {
  const size_t n = (size_t)128 << 20;
  Mark mark = arena_mark(&c->keep);
  u8 *at = NEWS(&c->keep, u8, n);
  memset(at, 1, n); /* untouched pages share one zero page */
  MachinePeak p = {.gbps = api_read_bandwidth(at, n) * 1e-9};
  arena_rewind(&c->keep, mark);
  return p;
}

static void put_peaks(Doctor *d) {
  Ctx *c = d->m->c;
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  u32 all = n < 1 ? 1 : n > 64 ? 64 : (u32)n;
  open_list(d, "measured");
  MachinePeak one = {0};
  if (compiler_exists(c, NULL)) one = api_peak(c, &d->folder, NULL, 1);
  put_peak(d, 1, one.gbps > 0 ? one : peak_alone(c));
  if (all > 1 && one.gbps > 0) put_peak(d, all, api_peak(c, &d->folder, NULL, all));
  close_list(d);
}

static void put_flag(Doctor *d, const char *name, const char *text, bool is) {
  if (d->json) {
    comma(d);
    sb_fmt(d->out, "\"%s\": %s", name, is ? "true" : "false");
  } else {
    sb_fmt(d->out, "; %s%s", is ? "" : "no ", text);
  }
}

typedef struct CompilerRow {
  Doctor *d;
  const ArgVec *w;
} CompilerRow;

/* Fails if the compiler is broken. */
static void put_compiler(Ctx *c, void *arg) {
  const CompilerRow *row = arg;
  Doctor *d = row->d;
  const ArgVec *w = row->w;
  const TempDir *f = &d->folder;
  const char *version = compiler_version(c, f, w);
  CompilerKind kind = compiler_kind(c, f, w);
  const char *cpu = compiler_cpu(c, f, w, kind, api_target_flags(c));
  bool drives = kind == CK_gcc || kind == CK_clang;
  bool lto = drives && compiler_lto(c, f, w, kind);
  bool pgo = drives && compiler_accepts(c, f, w, "-fprofile-generate");
  if (pgo && kind == CK_clang && !compiler_profdata(c, f, w)) pgo = false;
  if (d->json) {
    json_member(d, "version", version);
    json_member(d, "native", cpu);
  } else {
    sb_fmt(d->out, "%s", version);
    if (cpu) sb_fmt(d->out, "; native is %s", cpu);
  }
  put_flag(d, "lto", "LTO", lto);
  put_flag(d, "pgo", "PGO", pgo);
}

static void put_compilers(Doctor *d) {
  Ctx *c = d->m->c;
  static const char *const common[] = {"cc", "gcc", "clang", "tcc", "arm-none-eabi-gcc"};
  u32 n = sizeof common / sizeof *common;
  const char **names = NEWS(&c->keep, const char *, target_count + n);
  memcpy(names, common, sizeof common);
  for (u32 i = 0; i < target_count; i++) {
    bool known = !*target_table[i].cross;
    for (u32 k = 0; k < n; k++) known = known || !strcmp(names[k], target_table[i].cross);
    if (!known) names[n++] = target_table[i].cross;
  }
  const char *env = getenv("CC");
  u32 found = 0;
  open_list(d, "compilers");
  for (u32 i = 0; i <= n; i++) {
    const char *name = i ? names[i - 1] : env, *why = NULL;
    ArgVec w = {0};
    if (name) argv_add(c, &w, name);
    if (!w.n || !spawn_exists(c, w.at[0]) || (i && env && !strcmp(env, name))) continue;
    open_row(d);
    if (d->json)
      json_member(d, "name", name);
    else
      sb_fmt(d->out, "  %-22s ", name);
    found++;
    size_t before = d->out->n;
    DiagMark mark = diag_mark(c);
    CompilerRow row = {d, &w};
    if (ctx_protect(c, put_compiler, &row)) {
      d->out->n = before;
      why = "does not work";
      diag_rewind(c, mark);
    }
    if (why && d->json)
      json_member(d, "version", NULL);
    else if (why)
      sb_puts(d->out, why);
    close_row(d);
    if (!d->json) sb_puts(d->out, "\n");
  }
  if (!found && !d->json) sb_puts(d->out, "  none; Debian packages: gcc, clang\n");
  close_list(d);
}

/* found: version or ""; NULL: missing. */
static void tell_tool(Doctor *d, const char *name, const char *found, const char *package,
                      const char *use) {
  open_row(d);
  if (d->json) {
    json_member(d, "name", name);
    json_member(d, "found", found);
    json_member(d, "package", package);
    json_member(d, "use", use);
  } else if (found) {
    sb_fmt(d->out, "  %-14s %s; %s\n", name, found, use);
  } else {
    sb_fmt(d->out, "  %-14s not found: %s; %s\n", name, package, use);
  }
  close_row(d);
}

static void put_tools(Doctor *d) {
  Ctx *c = d->m->c;
  u32 llvm = ingot_llvm();
  open_list(d, "tools");
  for (u32 i = 0; i < tool_count; i++) {
    const ExternalTool *t = &tool_table[i];
    const char *program = tool_find(c, t->name), *version = NULL;
    if (program) version = tool_version(c, &d->folder, t, program);
    if (version && !strcmp(t->name, "perf"))
      version = fmt_text(c, "%s, %s branch records", version,
                         bolt_has_branches(c, &d->folder, program) ? "with" : "without");
    tell_tool(d, t->name, version, fmt_text(c, "package %s", t->package), t->use);
  }
  const char *gpu, *nvrtc;
  cuda_report(c, &gpu, &nvrtc);
  tell_tool(d, "GPU", gpu, "an NVIDIA GPU with its driver", "engine cuda");
  tell_tool(d, "NVRTC", nvrtc, "pip install nvidia-cuda-nvrtc", "engine cuda");
  tell_tool(d, "libLLVM", llvm ? fmt_text(c, "version %u", llvm) : NULL,
            "package libllvm14 to libllvm19", "engine jit, build --backend llvm");
  close_list(d);
}

static void put_python(Doctor *d) {
  static const char question[] = "import onnxruntime\nprint(onnxruntime.__version__)\n";
  Ctx *c = d->m->c;
  const char *python = d->m->python ? d->m->python : "python3", *found = NULL;
  int status = 1;
  if (spawn_exists(c, python))
    found = spawn_text(c, &d->folder, "Python", (const char *const[]){python, "-c", question, NULL},
                       &status);
  if (status) found = NULL;
  if (found) found = str_text(c, str_intern(c, found, strcspn(found, "\n")));
  open_list(d, "python");
  tell_tool(d, "onnxruntime", found, "pip install onnxruntime", "verify compares with it");
  close_list(d);
}

static void examine(Ctx *c, void *arg) {
  Doctor *d = arg;
  tempdir_make(c, &d->folder);
  if (d->json) sb_puts(d->out, "{");
  put_machine(d);
  put_target(d);
  put_peaks(d);
  put_compilers(d);
  put_tools(d);
  put_python(d);
  if (d->json) sb_puts(d->out, "}\n");
}

static void report(Ingot *m, bool json, StrBuf *out) {
  Doctor d = {.m = m, .json = json, .out = out};
  tempdir_protect(m->c, &d.folder, examine, &d);
}

IngotStatus ingot_doctor(Ingot *m, int json, const char **text, size_t *n) {
  return api_call_text(m, report, json, text, n);
}
