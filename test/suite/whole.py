"""Whole models through generated C compared with ONNX Runtime: the main use of ingot, with its limits.

sense: two MobileNets, 388 nodes: one entry, no allocation, little memory and code. bert: one program for all lengths up to a
bound. yolo: a detector whose number of results depends on the image. silero: state in the arena for 100 steps, and again after a
reset.
test/make/mkwhole.py writes models, inputs and expected outputs.
"""
import os
import shutil
import struct
from lib import cfile, npy
from lib.core import Fail, Skip, Test, explain, run, tail, want

LIMIT = 120
MOST_ARENA, MOST_CODE, MOST_OFF = 3200000, 150 * 1024, 1e-6


class Work:
    def __init__(self, env, name):
        env.need_ingot()
        if not shutil.which("gcc"):
            raise Skip("gcc is not installed")
        self.made = os.path.join(env.build, "whole")
        models = os.path.join(env.build, "models")
        env.once("whole", lambda: env.generated(self.made, ["make/mkwhole.py", "../bench/mksense.py", "../bench/mkbert.py", "../bench/mkyolo.py"],
                                                lambda: env.script("mkwhole.py", models, self.made)))
        self.env, self.name, self.dir = env, name, env.scratch("whole", name)
        self.model = os.path.join(self.made, name + ".onnx")
        self.inputs, self.expected = {}, {}
        for kind, into in (("inputs", self.inputs), ("expected", self.expected)):
            path = os.path.join(self.made, name, kind + ".npz")
            if not os.path.exists(path):
                raise Skip(f"the model of {name} could not be had (see build/setup.log)")
            for key, raw in npy.load_npz_raw(path).items():
                case, _, what = key.partition("/")
                into.setdefault(case, {})[what] = raw

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, *cmd, code=0):
        got = run(list(cmd), LIMIT, cwd=self.dir)
        if got.rc != code:
            raise Fail(f"{' '.join(cmd)}: {explain(got)}, expected {code}: {tail(got.out.decode() + got.text(), 6)}")
        return got

    def build(self, out, *args, model=None):
        self.start(self.env.ingot, "build", model or self.model, "--cc", "gcc", "-O2", "--quiet", "-o", out, *args)

    def feed(self, arrays):
        """in.npz with these arrays, as the program reads it."""
        npy.save_npz_raw(self.path("in.npz"), arrays)


def furthest(have, expected, what):
    """The largest difference; type and shape must be equal."""
    a, b = npy.decode(have), npy.decode(expected)
    want((a.kind, a.shape) == (b.kind, b.shape), f"{what} is {a.kind}{list(a.shape)}, expected {b.kind}{list(b.shape)}")
    want(all(x == x for x in a.data), f"{what} has NaN")
    far = max((abs(x - y) for x, y in zip(a.data, b.data)), default=0)
    want(far == 0 or a.kind[0] == "f", f"{what}: whole numbers differ")
    return far, max((abs(y) for y in b.data), default=0)


def run_cases(w, program, off):
    """Every case through one program; off(largest value): the allowed difference."""
    for case, given in w.inputs.items():
        w.feed(given)
        w.start(program, "--inputs", "in.npz", "--output", "out.npz")
        out = npy.load_npz_raw(w.path("out.npz"))
        want(out.keys() == w.expected[case].keys(), f"outputs {' '.join(out)}")
        for name, expected in w.expected[case].items():
            far, large = furthest(out[name], expected, f"{case}: {name}")
            want(far <= off(large), f"{case}: {name} is {far:.3g} off, at most {off(large):.3g} is allowed")


def sense(w):
    w.build("sense.o", "--weights", "file")
    with open(w.path("sense.h")) as f:
        header = f.read()
    arena = cfile.macro(header, "SENSE_ARENA_BYTES")
    want(arena <= MOST_ARENA, f"an arena of {arena} bytes, at most {MOST_ARENA}")
    cfile.check_symbols(w.path("sense.o"), ("__cpu_", "_GLOBAL_OFFSET_TABLE_"))  # the CPU check
    cfile.check_data(w.path("sense.o"))
    rows = [line.split() for line in cfile.cc(["readelf", "-sW", w.path("sense.o")], "readelf").splitlines()]
    seen = [r[7] for r in rows if r[3:6] == ["FUNC", "GLOBAL", "DEFAULT"]]  # kernels are hidden if parts were compiled separately
    want(sorted(seen) == ["sense_run", "sense_target", "sense_why"], f"external functions: {' '.join(seen)}")
    code = sum(int(line.split()[1]) for line in cfile.cc(["size", "-A", w.path("sense.o")], "size").splitlines() if line.startswith(".text"))
    want(0 < code <= MOST_CODE, f"{code} bytes of code, at most {MOST_CODE}")
    w.build("sense", "--weights", "file")
    run_cases(w, "./sense", lambda large: MOST_OFF)


def bert(w):
    w.build("bert", "--max-shapes", "input_ids:1x512,attention_mask:1x512")
    want(sorted(w.inputs, key=int) == ["1", "7", "128", "512"], f"lengths {' '.join(w.inputs)}")
    run_cases(w, "./bert", lambda large: 1e-5 * max(1, large))
    long = npy.encode(npy.Array("i64", (1, 513), [1] * 513))
    w.feed({"input_ids": long, "attention_mask": long})
    w.start("./bert", "--inputs", "in.npz", code=4)


def yolo(w):
    w.build("yolo")
    counts = {npy.decode(e["class"]).shape[0] for e in w.expected.values()}
    want(len(counts) > 1 and 0 not in counts, f"boxes found: {counts}")
    run_cases(w, "./yolo", lambda large: 1e-5 * max(1, large))


STEPPER = """#include "net.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static float x[NET_INPUT0_ELEMENTS], y[NET_OUTPUT0_ELEMENTS];
  void *arena = aligned_alloc(NET_ARENA_ALIGN, (NET_ARENA_BYTES + 63) / 64 * 64);
  net_reset(arena);
  for (int step = 0; fread(x, sizeof x, 1, stdin) == 1; step++) {
    if (step == %d) net_reset(arena);
    if (net_run(arena, x, y)) return 9;
    fwrite(y, sizeof y, 1, stdout);
  }
  free(arena);
  return 0;
}
"""


def silero(w):
    """One stream after the other, then the first again: the program holds the state, not the caller."""
    model = os.path.join(w.env.build, "models", "silero_vad_v6.onnx")
    w.build("net.o", "--shapes", "input:1x576", "--state", "h=hn", "--state", "c=cn", "--name", "net", model=model)
    for case, given in w.inputs.items():
        chunks, expected = npy.decode(given["input"]), npy.decode(w.expected[case]["speech_probs"])
        steps = chunks.shape[0]
        with open(w.path("main.c"), "w") as f:
            f.write(STEPPER % steps)
        cfile.cc(["gcc", "-O1", "-I", w.dir, "-o", w.path("main"), w.path("main.c"), w.path("net.o"), "-lm"], "compiling")
        raw = struct.pack(f"<{len(chunks.data)}f", *chunks.data)
        got = run([w.path("main")], LIMIT, stdin=raw + raw)
        want(got.rc == 0 and len(got.out) == 8 * steps, f"{explain(got)}, {len(got.out)} bytes")
        want(got.out[:4 * steps] == got.out[4 * steps:], "other bits after a reset")
        have = struct.unpack(f"<{steps}f", got.out[:4 * steps])
        far = max(abs(x - y) for x, y in zip(have, expected.data))
        want(steps == 100 and far <= 1e-5, f"{case}: {far:.3g} off after {steps} steps")


CASES = (sense, bert, yolo, silero)


def tests(env):
    return [Test(f"whole/{fn.__name__}", lambda fn=fn: fn(Work(env, fn.__name__)), cost=8) for fn in CASES]
