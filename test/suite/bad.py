"""Bad and hostile files (test/make/mkbad.py): the right exit code, a message with file and defect, no output, within 2 seconds
of CPU time.

The same again under ASan and UBSan, without a finding or a leak.
A file with a defect in an unsupported operator is refused with exit code 3, because the operator is refused first.
"""
import json
import os
import shutil
from lib.core import ROOT, SANITIZER, Fail, Skip, Test, explain, run, tail

CPU_LIMIT, LIMIT, ASAN_LIMIT = 2, 10, 60  # CPU seconds; seconds of real time; the same under sanitizers
LEAST = 150


def generate(env):
    out = os.path.join(env.build, "bad")
    env.generated(out, ["make/mkbad.py", "bad", "lib/onnxfile.py"], lambda: env.script("mkbad.py", out))
    with open(os.path.join(out, "manifest.json")) as f:
        return json.load(f)


def supported(env):
    """Names of the supported operators."""
    def ask():
        found = json.loads(run([env.ingot, "ops", "--json"], 20).out)
        rows = found if isinstance(found, list) else found.get("operators", found)
        return {r if isinstance(r, str) else r.get("name", r.get("op")) for r in rows}
    return env.once("ops", ask)


def message(row, got):
    """Returns the defect of a message, or None. A report of inspect has node names in it anyway."""
    text = got.text() + got.out.decode("utf-8", "replace")
    if row["file"] not in text and os.path.basename(row["file"]) not in text:
        return "the message does not name the file"
    if row["text"] and row["text"] not in text:
        return f"the message does not mention {row['text']}"
    if len(got.err) > 20000:
        return f"the message has {len(got.err)} bytes"
    if any(ch < 32 and ch not in (9, 10) for ch in got.err):
        return "the message holds control characters of the model"
    return None


def once(env, row, verb, asan):
    where = env.scratch("bad", row["name"] + ("-asan" if asan else ""))
    shutil.rmtree(where)
    os.makedirs(where)
    args = []
    if verb == "run":
        for name in row["inputs"]:
            args += ["--input", name + "=rand"]
        args += ["--output", os.path.join(where, "out.npz")]
    binary = os.path.join(ROOT, "build-asan", "ingot") if asan else env.ingot
    got = run([binary, verb, row["file"], *args], ASAN_LIMIT if asan else LIMIT, env=SANITIZER if asan else None,
              memory=None if asan else 1 << 30, cpu=None if asan else CPU_LIMIT)
    what = f"{verb}{' under sanitizers' if asan else ''}"
    for word in ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:"):  # a failed allocation is a warning
        if word in got.text():
            first = next(x for x in got.text().splitlines() if word in x)
            raise Fail(f"{what}: {first}")
    codes = set(row["codes"]) | ({0} if verb == "inspect" and row["level"] != "file" else set())
    if any(op not in supported(env) for op in row["ops"]):
        codes.add(3)
    if asan:
        codes.add(5)  # the sanitizer's allocator has its own limit
    if got.timed_out or got.rc not in codes:
        expected = " or ".join(map(str, sorted(codes)))
        raise Fail(f"{what}: {explain(got)}, expected exit {expected}: {tail(got.text(), 3)[:500]}")
    if got.rc:
        wrong = message(row if got.rc in row["codes"] else {**row, "text": None}, got)
        if wrong:
            raise Fail(f"{what}: {wrong}: {tail(got.text(), 3)[:500]}")
        if got.out and not (verb == "inspect" and got.rc == 3):  # a report that lists unsupported operators
            raise Fail(f"{what}: refused, but wrote to stdout")
        if os.listdir(where):
            raise Fail(f"{what}: refused, but left {' '.join(os.listdir(where))}")


def check(env, row, asan):
    env.need_ingot()
    if asan:
        env.make("asan")
    for verb in ("inspect", "run"):
        once(env, row, verb, asan)


def tests(env):
    if not env.python:
        def no_python():
            raise Skip("no Python environment (see build/setup.log), so the bad files cannot be generated")
        return [Test("bad/files", no_python)]
    try:
        rows = generate(env)
    except Fail as e:
        def broken(e=e):
            raise e
        return [Test("bad/files", broken)]

    def count():
        if len(rows) < LEAST:
            raise Fail(f"{len(rows)} bad files, expected at least {LEAST}")
    return [Test("bad/count", count)] + [
        Test(f"bad/{row['name']}{'-asan' if asan else ''}", lambda r=row, a=asan: check(env, r, a))
        for row in rows for asan in (False, True)]
