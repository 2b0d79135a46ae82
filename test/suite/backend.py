"""The unmodified runner of onnx.backend.test on python/ingot/backend.py: only cases excused in test/onnx/list.txt may fail."""
import os
from lib.core import ROOT, Fail, Skip, Test, run, tail

LIMIT = 600


def official(env, engine, pattern):
    library = os.path.join(env.build, "libingot.so")
    if not os.path.exists(library):
        raise Skip("build/libingot.so is not built")
    got = run([env.need_python(), os.path.join(ROOT, "test", "backend.py"), "--engine", engine, pattern], LIMIT, cwd=ROOT,
              env={"INGOT_LIBRARY": library})
    lines = got.out.decode("utf-8", "replace").strip().splitlines()
    if got.rc or got.timed_out:
        raise Fail("\n".join([x for x in lines if x.startswith("wrong")][:10]) or tail(got.text()))
    print(lines[-1], flush=True)


def tests(env):
    some = "" if env.all else "test_[a-g]"  # suite `official` checks the results of all cases
    return [Test("backend/interp", lambda: official(env, "interp", some), cost=20),
            Test("backend/c", lambda: official(env, "c", "test_(conv|matmul|resize|loop|cast_FLOAT)"), cost=30)]
