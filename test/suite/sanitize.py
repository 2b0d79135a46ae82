"""One official case per operator under ASan and UBSan, on every engine: no finding, no leak. Results are judged elsewhere."""
import os
from lib import pick
from lib.core import ENGINES, ROOT, SANITIZER, Fail, Skip, Test, explain, run

LIMIT = 60


def check(env, case):
    env.need_ingot()
    env.make("asan")
    binary = os.path.join(ROOT, "build-asan", "ingot")
    refused = True
    for engine in ENGINES:
        got = run([binary, "verify", case["model"], "--data", case["data"], "--engine", engine], LIMIT, env=SANITIZER)
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            if word in got.text():
                raise Fail(f"{engine}: " + next(x for x in got.text().splitlines() if word in x))
        if got.timed_out or got.rc not in (0, 1, 3):
            raise Fail(f"{engine}: {explain(got)}: {got.text()[-300:]}")
        refused = refused and got.rc == 3
    if refused:
        raise Skip("refused: an operator is not supported")


def tests(env):
    return [Test(f"sanitize/{c['name']}", lambda c=c: check(env, c)) for c in pick.per_operator(env)]
