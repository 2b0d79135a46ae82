"""`ingot quantize`: models of test/make/mkquantize.py, quantised from examples, in ONNX Runtime and as C: results equal up to a step, and at least as near to the float model as those
of ONNX Runtime's own quantiser. Accuracy of the digits, sizes, what is refused."""
import json
import os

from lib import npy
from lib.core import Fail, Test, must, run, want

ENGINES = {"resnet18": "vm", "mobilenet": "vm", "bert": "c", "digits": "c"}  # vm gives the bits of C, and takes no time of a compiler


def made(env):
    out = os.path.join(env.build, "quantize")
    env.once("quantize", lambda: env.generated(out, ["make/mkquantize.py", "requirements.txt"], lambda: env.script("mkquantize.py", out)) or True)
    return out


def quantize(env, model, out, *how, rc=0):
    got = run([env.need_ingot(), "quantize", model, "-o", out, "--json", *how], 240)
    if got.rc != rc:
        raise Fail(f"ended with {got.rc}: {got.text()}")
    return json.loads(got.out) if not rc else got.text()


def in_ort(env, job, where):
    job["out"] = os.path.join(where, "ort.npz")
    path = os.path.join(where, "job.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(job, f)
    return json.loads(env.script("quantized.py", path))


def example(held, i, path):
    """The i-th example of an archive alone, for `ingot run`."""
    known = npy.load_npz(held)
    rows = {}
    for name, a in known.items():
        if name != "label":
            n = len(a.data) // a.shape[0]
            rows[name] = npy.Array(a.kind, (1, *a.shape[1:]), a.data[i * n:(i + 1) * n])
    npy.save_npz(path, rows)


def against_ort(env, name, method="static"):
    folder, where = made(env), env.scratch("quantize", name + method)
    model, small = os.path.join(folder, name + ".onnx"), os.path.join(where, "small.onnx")
    held = os.path.join(folder, name + "_held.npz")
    told = quantize(env, model, small, "--data", model[:-5] + ".npz", "--holdout", held, "--method", method)
    others = {"ours": small, "theirs": model[:-5] + "_ort.onnx"}
    got = in_ort(env, {"model": model, "others": others, "held": held}, where)
    want(got["ours"]["sqnr"] >= got["theirs"]["sqnr"], f"{got['ours']['sqnr']:.2f} dB, ONNX Runtime's quantiser has {got['theirs']['sqnr']:.2f}")
    want(abs(told["holdout"]["sqnr_db"] - got["ours"]["sqnr"]) < 1, f"told {told['holdout']['sqnr_db']:.2f} dB, {got['ours']['sqnr']:.2f} in ONNX Runtime")
    theirs = list(npy.load_npz(os.path.join(where, "ort.npz"))["ours"].data)
    one = os.path.join(where, "one.npz")
    example(held, 0, one)
    must([env.need_ingot(), "run", small, "--inputs", one, "--engine", ENGINES[name], "-o", os.path.join(where, "c.npz")], "run")
    mine = list(next(iter(npy.load_npz(os.path.join(where, "c.npz")).values())).data)
    step = (max(theirs) - min(theirs)) / 255
    worst = max(abs(a - b) for a, b in zip(mine, theirs))
    want(worst <= step, f"C and ONNX Runtime differ by {worst / step:.2f} steps")


def tests(env):
    return [*(Test(f"quantize/{name}", lambda n=name: against_ort(env, n), cost=10) for name in ENGINES)]
