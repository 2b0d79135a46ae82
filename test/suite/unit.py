"""The C programs of test/unit, in the ordinary build and under ASan and UBSan. Exit code 0 is a pass."""
import os
import re
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

CHECK = "* !*-asan"

LIMIT = 120


def check(env, build, name):
    if build == "build-asan":
        env.make("asan")
    path = os.path.join(ROOT, build, "unit", name)
    if not os.path.exists(path):
        raise Skip(f"{build}/unit is not built")
    got = run([path], LIMIT, cwd=ROOT, merge=True)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'))}")


NULLS = r"""#include "ingot.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static _Alignas(64) unsigned char zero[16][4096]; /* an empty text, a struct of zeros, a place for an answer */
static const char graph[] = "graph g (%1 \"x\": f32[2]) {\n  %2 \"y\": f32[2] = exp(%1)\n  return %2 \"y\"\n}\n";
/* state: 0 fresh, 1 opened, 2 after a run */
static Ingot *model(int state) {
  Ingot *m = ingot_new(NULL);
  if (state > 0) ingot_open_bytes(m, graph, sizeof graph - 1, "g");
  if (state > 1) ingot_run(m, "vm", 0);
  return m;
}
static int bad;
static void try(const char *name, int (*call)(Ingot *m, int null, int n), int null, int n, int state) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    alarm(20);
    Ingot *m = state < 0 ? NULL : model(state);
    int s = call(m, null, n);
    ingot_free(m);
    _exit(state < 0 && s != 2 ? 101 : 0);
  }
  if (waitpid(child, &status, 0) != child || !status) return;
  bad++;
  printf("%s: NULL argument %d, numbers %d, state %d: %s %d\n", name, null, n, state, WIFSIGNALED(status) ? "signal" : "status",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}
#define PLACE(k) (null == (k) || null == 99 ? NULL : (void *)zero[k])
CALLS
int main(void) {
TRIES
  return bad > 0;
}
"""


def nulls(env):
    """Every function of ingot.h with NULL for each pointer in turn and for all, with zeroed structs, before and after a model is
    open: no crash."""
    with open(os.path.join(ROOT, "src", "ingot.h"), encoding="utf-8") as f:
        text = re.sub(r"^#.*$", "", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S), flags=re.M)
    calls, tries = "", ""
    for result, name, given in re.findall(r"^((?:const )?\w+ \*?)(ingot_\w+)\(((?:[^()]|\([^()]*\))*)\);", text, re.M):
        args, pointers = [], 0
        for k, one in enumerate(" ".join(given.split()).split(", ") if "(*" not in given else ["function *", "void *"]):
            is_pointer = "*" in one or "[" in one
            pointers += is_pointer
            args.append("m" if re.match(r"(const )?Ingot \*m$", one) else "NULL" if one == "function *" or "IngotRepl" in one or "IngotGuard" in one else
                        f"PLACE({k})" if is_pointer else "0.001 * n" if "double" in one else "" if one == "void" else f"({one.rpartition(' ')[0]})n")
        if name in ("ingot_new", "ingot_free"):
            continue
        status = result.strip() == "IngotStatus" and args[0] == "m"
        calls += f"static int call_{name}(Ingot *m, int null, int n) {{\n  (void)m, (void)null, (void)n;\n  "
        calls += f"return (int){name}({', '.join(args)});\n}}\n" if status else f"(void){name}({', '.join(args)});\n  return 2;\n}}\n"
        places = [k for k, a in enumerate(args) if a.startswith("PLACE")]
        for null in (*places, 98, 99):
            tries += "".join(f'  try("{name}", call_{name}, {null}, {n}, {s});\n' for n in (0, 1) for s in (-1, 0, 1, 2))
    folder = env.scratch("unit", "nulls")
    source = os.path.join(folder, "nulls.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(NULLS.replace("CALLS", calls).replace("TRIES", tries))
    env.need_ingot()
    got = run(["cc", "-O0", "-w", "-I", os.path.join(ROOT, "src"), source, os.path.join(ROOT, "build", "objects.a"), "-lm", "-lpthread", "-o", source[:-2]], LIMIT)
    if not got.rc:  # without a C compiler, and with an empty cache
        got = run([source[:-2]], LIMIT, cwd=folder, merge=True, env={"PATH": "/nowhere", "HOME": folder, "XDG_CACHE_HOME": folder, "CC": "", "TMPDIR": folder})
    if got.rc or got.timed_out or calls.count("static int") < 100:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace') + got.text(), 20)}")


def tests(env):
    folder = os.path.join(ROOT, "test", "unit")
    names = sorted(n[:-2] for n in os.listdir(folder) if n.endswith(".c")) if os.path.isdir(folder) else []
    return [Test(f"unit/{name}{mark}", lambda b=build, n=name: check(env, b, n), cost=1)
            for name in names for build, mark in (("build", ""), ("build-asan", "-asan"))] + [Test("unit/null-arguments", lambda: nulls(env), cost=5)]
