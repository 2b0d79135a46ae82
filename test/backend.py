"""The official test runner (onnx.backend.test), unmodified, over python/ingot/backend.py. Prints its count, and every case that
does not pass with the reason.

Runs with the Python of build/venv: backend.py [--engine interp] [--part K/N] [--real] [--package DIR] [PATTERN]. --package: where the package ingot is, if not in python/. With --real the nine networks as well, as
C. Engine c makes code for this machine, with the compiler $CC.
Exit 1 if a case fails that ingot does not refuse and test/onnx/list.txt does not excuse.
"""
import argparse
import fnmatch
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Cases the runner itself cannot judge.
RUNNER = {"test_loop16_seq_none": "the runner takes the length of a scalar",
          "test_attention_4d_causal_fp16_expanded": "every step rounds to f16, of which the tolerance is one unit"}


def excuses():
    out = []
    with open(os.path.join(ROOT, "test", "onnx", "list.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                pattern, _rule, reason = line.split(None, 2)
                out.append((pattern, reason.strip()))
    return out


def excuse(name, table):
    for pattern, reason in [*table, *RUNNER.items()]:
        if fnmatch.fnmatch(name, pattern):
            return reason
    return None


def complaint(text):
    """The line of a traceback that says what was raised."""
    lines = text.strip().splitlines()
    return next((line for line in lines if line.startswith("ingot.")), lines[-1])


def run(module, engine, pattern, real, part=(0, 1)):
    import onnx.backend.test

    class Tested(module.IngotBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            return super().prepare(model, device, engine=engine, march=None if engine == "c" else "scalar", **kwargs)
    tests = onnx.backend.test.BackendTest(Tested, __name__)
    suite = unittest.TestSuite()
    for name, case in tests.include(pattern).test_cases.items():
        if ("Real" in name) == real:
            found = [test for test in unittest.defaultTestLoader.loadTestsFromTestCase(case) if test.id().endswith("_cpu")]
            suite.addTests(found[part[0]::part[1]])
    with open(os.devnull, "w") as sink:
        result = unittest.TextTestRunner(stream=sink, verbosity=0).run(suite)
    bad = [(case.id().rsplit(".", 1)[-1].removesuffix("_cpu"), complaint(text))
           for case, text in result.failures + result.errors]
    return result.testsRun - len(result.skipped), bad


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--engine", default="interp")
    args.add_argument("--part", default="0/1")
    args.add_argument("--real", action="store_true")
    args.add_argument("--package", default=os.path.join(ROOT, "python"))
    args.add_argument("pattern", nargs="?", default="")
    args = args.parse_args()
    os.environ.setdefault("ONNX_HOME", os.path.join(ROOT, "build", "onnx-home"))
    sys.path.insert(0, args.package)
    import ingot.backend
    import onnx
    assert ingot.__file__.startswith(args.package), ingot.__file__
    count, bad = run(ingot.backend, args.engine, args.pattern + ".*_cpu$", False, [int(n) for n in args.part.split("/")])
    if args.real:
        more, worse = run(ingot.backend, "c", args.pattern + ".*_cpu$", True)
        count, bad = count + more, bad + worse
    table, kinds = excuses(), {"excused": 0, "refused": 0, "wrong": 0}
    for name, text in sorted(bad):
        reason = excuse(name, table)
        kind = "excused" if reason else "refused" if text.startswith("ingot.Unsupported") else "wrong"
        kinds[kind] += 1
        print(f"{kind} {name}: {reason or text[:200]}")
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    print(f"onnx {onnx.__version__}, engine {args.engine}: {count - len(bad)} of {count} pass, {counts}")
    sys.exit(kinds["wrong"] != 0)


main()
