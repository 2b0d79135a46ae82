"""What the unit programs oom and threads find in special builds: every piece of memory asked for by itself and failing
(INGOT_HOSTILE, under ASan and UBSan), and four threads under ThreadSanitizer. And the library keeps no state: no
object file of it has writable static data."""
import os
import re
import shutil
from lib.core import ROOT, SANITIZER, Fail, Skip, Test, explain, run, tail

LIMIT = 300
STRIDE = 149  # allocations between two that fail; `build-hostile/unit/oom 1` takes them all


def program(env, build, name, *args):
    env.make(build)
    got = run([os.path.join(ROOT, "build-" + build, "unit", name), *args], LIMIT, cwd=ROOT, merge=True,
              env={**SANITIZER, "TSAN_OPTIONS": "exitcode=99"})
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode('utf-8', 'replace'), 30)}")


def no_state(env):
    if not shutil.which("size"):
        raise Skip("size (binutils) is not installed")
    library = os.path.join(env.build, "objects.a")
    if not os.path.exists(library):
        raise Skip("build/objects.a is not built")
    got = run(["size", "-A", library], LIMIT)
    if got.rc:
        raise Fail(f"size: {got.text()}")
    file, count = None, 0
    for line in got.out.decode().splitlines():
        m = re.match(r"(\S+)\s+\(ex ", line)
        if m:
            file, count = m[1], count + 1
        m = re.match(r"\.(data|bss|tdata|tbss)(?:\.(?!rel\.ro)\S+)?\s+(\d+)", line)
        if m and int(m[2]):
            raise Fail(f"{file} has {m[2]} bytes of writable static data ({line.split()[0]})")
    if count < 50:
        raise Fail(f"size lists {count} object files")


def tests(env):
    return [Test("faults/oom-hostile", lambda: program(env, "hostile", "oom", str(STRIDE)), cost=60),
            Test("faults/threads-tsan", lambda: program(env, "tsan", "threads"), cost=60),
            Test("faults/no-state", lambda: no_state(env))]
