"""--optimize-for: ram never takes more memory than time, and size never more code and weights; on some networks they save much.

The results equal those of the other engines, and are as accurate.
"""
import os
import re

from lib import cpu
from lib.core import ROOT, Fail, Test, explain, must, run, tail
from suite import bytes as quantized
from suite import targets

DIGITS = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
MODELS = {  # model; must ram and size save something?
    "dense32": (lambda env: [targets.prepare(env, "dense32")[0]], True, True),
    "mobile21": (lambda env: [targets.prepare(env, "mobile21")[0]], False, True),
    "bytes": (lambda env: [os.path.join(quantized.folder_of(env), "windows3.onnx")], False, True),
}
VECTORS = {"mobile21"}  # plain loops, which are many times slower, save too little arena


def arena(header):
    with open(header) as f:
        return int(re.search(r"_ARENA_BYTES (\d+)", f.read())[1])


def loaded(path):
    """Bytes of code and constants."""
    return int(must(["size", path], "size").splitlines()[1].split()[0])


def check(env, name):
    find, ram, size = MODELS[name]
    env.need_ingot()
    work, model = env.scratch("aims", name), find(env)
    least, bytes_of = {}, {}
    for aim in ("time", "ram", "size"):
        made = os.path.join(work, aim + ".o")
        must([env.ingot, "build", *model, "--march", "avx2", "--optimize-for", aim, "--quiet", "--no-selftest", "--name", "net", "-o", made], aim)
        least[aim], bytes_of[aim] = arena(made[:-1] + "h"), loaded(made)
        if cpu.can_run("avx2") and aim != "time":
            must([env.ingot, "verify", *model, "--march", "avx2", "--optimize-for", aim, "--quiet"], "verify")
    if least["ram"] > least["time"] or (ram and least["ram"] == least["time"]):
        raise Fail(f"arenas are {least}")
    if bytes_of["size"] > bytes_of["time"] or (size and bytes_of["size"] == bytes_of["time"]):
        raise Fail(f"code and constants are {bytes_of}")
    if name in VECTORS:
        text = must([env.ingot, "compile", *model, "--march", "avx2", "--optimize-for", "ram", "--quiet", "--no-selftest"], "ram")
        if "IG_VECTORS" not in text:
            raise Fail("the program with the smallest arena has no vectors")


def refused(env):
    env.need_ingot()
    for args, text in ((["compile", *DIGITS, "--optimize-for", "speed"], "expected time, ram or size"),
                       (["verify", *DIGITS, "--march", "sse2", "--per-node", "--optimize-for", "ram"], "several programs")):
        got = run([env.ingot, *args], 60)
        if got.rc != 2 or text not in got.text():
            raise Fail(f"{args}: {explain(got)}: {tail(got.text(), 4)}")
    texts = {must([env.ingot, "compile", *DIGITS, "--quiet", "--optimize-for", aim], aim).split("*/", 1)[1] for aim in ("time", "size")}
    if len(texts) != 1:
        raise Fail("without vectors there is one program for time and size, found several")


def tests(env):
    return [*[Test(f"aims/{n}", lambda n=n: check(env, n), cost=8) for n in MODELS], Test("aims/refused", lambda: refused(env))]
