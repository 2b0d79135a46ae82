"""One official case per operator under ASan and UBSan on every engine: no finding, no leak. Suite `official` checks the results.

heavy/sanitize.py runs MSan, which needs a separate build.
"""
import os
import shutil
from lib import pick
from lib.core import ENGINES, ROOT, SANITIZER, Fail, Skip, Test, explain, run

LIMIT = 60


def check(env, case, kind):
    env.need_ingot()
    if kind == "msan" and not shutil.which("clang"):
        raise Skip("clang is not installed")
    env.make(kind)
    binary = os.path.join(ROOT, "build-" + kind, "ingot")
    refused = True
    for engine in ENGINES:
        got = run([binary, "verify", case["model"], "--data", case["data"], "--engine", engine], LIMIT, env=SANITIZER)
        for word in ("AddressSanitizer", "LeakSanitizer", "MemorySanitizer", "runtime error:"):
            if word in got.text():
                raise Fail(f"{engine}: " + next(x for x in got.text().splitlines() if word in x))
        if got.timed_out or got.rc not in (0, 1, 3):
            raise Fail(f"{engine}: {explain(got)}: {got.text()[-300:]}")
        refused = refused and got.rc == 3
    if refused:
        raise Skip("refused: an operator is not supported")


def of_kind(env, kind, folder=""):
    return [Test(f"{folder}sanitize/{c['name']}-{kind}", lambda c=c: check(env, c, kind)) for c in pick.per_operator(env)]


def tests(env):
    return of_kind(env, "asan")
