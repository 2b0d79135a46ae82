"""Printer and parser are inverses on real input: what `ingot opt` prints before and after the passes is parsed and printed
again, and must be the same.

One official model per operator, and the small real models.
"""
import os
from lib import pick, tfile
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 60
STAGES = {"import": ["--stop=none"], "passes": []}


def check(env, model, args):
    env.need_ingot()
    got = run([env.ingot, "opt", "--constants=all", model, *args], LIMIT)
    if got.rc == 3:
        raise Skip("refused: the model uses an operator that is not supported")
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.text(), 4)}")
    text = got.out.decode("utf-8", "replace")
    if not text.strip():
        raise Fail("nothing was printed")
    tfile.reprint(env, text)


def tests(env):
    models = {"digits": (os.path.join(ROOT, "models", "digits.onnx"), [])}
    # the length of a sequence depends on data
    models.update((c["name"], (c["model"], [] if c.get("flat", True) else ["--data", c["data"]])) for c in pick.per_operator(env))
    return [Test(f"roundtrip/{name}-{stage}", lambda m=model, a=data + args: check(env, m, a))
            for name, (model, data) in models.items() if os.path.exists(model) for stage, args in STAGES.items()]
