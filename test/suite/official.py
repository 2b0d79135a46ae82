"""The official ONNX test suite (onnx 1.22.0): 1,914 models with inputs and expected outputs, on both engines, and lowered for
vectors.

A case passes if `ingot verify` accepts it on every engine.
If ingot exits with code 3 and names an operator of the model, the case is skipped with that reason.
Anything else is a failure.
At the end, the number of passes is compared with test/onnx/floor.txt, and docs/results/coverage.md with the run.
"""
import fnmatch
import json
import os
import re
import shutil
from lib import coverage
from lib.core import ENGINES, ROOT, Fail, Skip, Test, explain, run, tail

FILES = 1914
LIMIT, LIGHT_LIMIT = 30, 400  # seconds per engine
# Approximate seconds on both engines, so that slow cases start first.
COST = {"light_vgg19": 900, "light_resnet50": 400, "light_densenet121": 380, "light_inception_v2": 300,
        "light_inception_v1": 290, "light_zfnet512": 280, "light_bvlc_alexnet": 200, "light_squeezenet": 120,
        "light_shufflenet": 100}


def rules():
    out = []
    with open(os.path.join(ROOT, "test", "onnx", "list.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                pattern, rule, _reason = line.split(None, 2)
                out.append((pattern, rule))
    return out


def tolerance(name, table):
    """Arguments of `ingot verify` for one case."""
    rtol, atol = "1e-3", "1e-7"
    for pattern, rule in table:
        if fnmatch.fnmatch(name, pattern):
            if rule == "shape":
                rtol = atol = "1e38"  # any finite values agree
            else:
                rtol, atol = re.fullmatch(r"rtol=(\S+),atol=(\S+)", rule).groups()
    return ["--rtol", rtol, "--atol", atol]


def index(env):
    out = os.path.join(env.build, "official")
    env.generated(out, ["make/mkofficial.py", "requirements.txt"], lambda: env.script("mkofficial.py", env.data, out))
    return [json.load(open(os.path.join(out, name))) for name in ("cases.json", "spoiled.json")]


def named(text, ops):
    """The operator of the model that a refusal names, or None."""
    for form in (r"\({}\)", r"\b{}\b"):
        for op in sorted(ops, key=len, reverse=True):
            if re.search(form.format(re.escape(op.split("::")[-1])), text):
                return op
    return None


def numbers(out):
    """Largest ULP distance in the JSON line of `ingot verify --json`."""
    for line in out.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                return max([o.get("max_ulp") or 0 for o in json.loads(line)["outputs"]], default=0)
            except (ValueError, KeyError, TypeError, AttributeError):
                return None
    return None


def check(env, case, table, results):
    env.need_ingot()
    result = {"state": "wrong", "blame": None, "ulp": {}}
    results[case["kind"] + "/" + case["name"]] = result
    limit = LIGHT_LIMIT if case["kind"] == "light" else LIMIT
    args = tolerance(case["name"], table)
    random = args[1] == "1e38"
    refused = None
    ways = [(engine, engine, []) for engine in ENGINES if engine != "interp" or case["kind"] != "light"]
    if case["kind"] != "light":  # the same program for vectors of 8 or of 16 lanes
        ways.append(("interp", "vectors", ["--march", "avx512" if len(case["name"]) % 2 else "avx2"]))
    if case["kind"] != "light" and env.coverage_doc and shutil.which("tcc"):  # compiled.py runs the others
        ways.append(("c", "c", []))
    for engine, way, target in ways:
        got = run([env.ingot, "verify", case["model"], "--data", case["data"], "--engine", engine, *target, *args,
                   "--json"], limit, env={"CC": "tcc"} if way == "c" else None, memory=8 << 30)
        if got.timed_out or got.rc < 0 or got.rc > 3:
            result["state"] = "crash"
            raise Fail(f"{engine}: {explain(got)}: {tail(got.text(), 4)}")
        if got.rc == 3:
            op = named(got.text().replace(case["model"], ""), case["ops"])
            if not op:
                raise Fail(f"{engine}: refused without naming an operator of the model: {tail(got.text(), 4)}")
            refused = refused or op
        elif got.rc:
            raise Fail(f"{engine}: {explain(got)}: {tail(got.out.decode('utf-8', 'replace') + got.text(), 6)}")
        else:
            ulp = numbers(got.out)
            if ulp is None:
                raise Fail(f"{engine}: no line of JSON on stdout")
            result["ulp"][way] = 0 if random else ulp
    result["state"], result["blame"] = ("refused", refused) if refused else ("pass", None)
    if refused:
        raise Skip(f"refused: {refused}")


def spoiled(env, case):
    """verify must fail on data with a wrong value, type or shape."""
    env.need_ingot()
    for engine in ENGINES:
        got = run([env.ingot, "verify", case["model"], "--data", case["data"], "--engine", engine, "--json"], LIMIT)
        if got.rc != 1:
            raise Fail(f"{engine}: {explain(got)} on spoiled data, expected exit 1")


def floor(results):
    with open(os.path.join(ROOT, "test", "onnx", "floor.txt")) as f:
        least = int(f.read())
    passed = sum(r["state"] == "pass" for r in results.values())
    refused = sum(r["state"] == "refused" for r in results.values())
    print(f"official suite: {passed} pass, {refused} refused, {len(results) - passed - refused} wrong or crashed, "
          f"of {len(results)}; floor {least}", flush=True)
    if passed < least:
        raise Fail(f"{passed} cases pass, fewer than the {least} of test/onnx/floor.txt")


def document(env, cases, results):
    own = os.path.join(env.build, "ops", "cases.json")
    text = coverage.document(cases, results, json.load(open(own)) if os.path.exists(own) else [])
    with open(os.path.join(env.build, "coverage.json"), "w") as f:
        json.dump(results, f, indent=1, sort_keys=True)
    path = os.path.join(ROOT, "docs", "results", "coverage.md")
    if env.coverage_doc:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return
    if not os.path.exists(path):
        raise Fail("docs/results/coverage.md is missing; `make coverage-doc` writes it")
    with open(path) as f:
        reason = coverage.differ(f.read(), text)
    if reason:
        raise Fail(f"docs/results/coverage.md is not what this run gives (`make coverage-doc` rewrites it): {reason}")


def tests(env):
    if not env.data:
        def no_data():
            raise Skip("no official test data: the onnx wheel could not be had (see build/setup.log)")
        return [Test("official/suite", no_data)]
    try:
        cases, wrong = index(env)
    except (Fail, Skip) as e:
        def broken(e=e):
            raise e
        return [Test("official/suite", broken)]

    def count():
        if len(cases) < FILES:
            raise Fail(f"{len(cases)} .onnx files in the official data, expected at least {FILES}")
    table, results = rules(), {}

    def complete(fn, *args, light=True):
        if any((light or c["kind"] != "light") and c["kind"] + "/" + c["name"] not in results for c in cases):
            raise Skip("not all official cases were run")
        fn(*args)
    return [Test("official/count", count)] + [
        Test(f"official/{c['kind']}/{c['name']}", lambda c=c: check(env, c, table, results), COST.get(c["name"], 0))
        for c in cases] + [
        Test(f"official/spoiled/{c['name']}", lambda c=c: spoiled(env, c)) for c in wrong] + [
        Test("official/floor", lambda: complete(floor, results), last=True),
        Test("official/coverage", lambda: complete(document, env, cases, results, light=False), last=True)]
