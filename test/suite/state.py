"""State from run to run: test/make/mkstate.py wrote models, inputs of 100 steps, and the results of ONNX Runtime.

The library keeps the state (--state auto), as compiled C step by step (test/steps.py), and in `ingot run --steps` on every
engine.
vm, watch and c agree to the bit.
The text of the program shows that nothing is copied: only appended rows are written to a cache, and a ring buffer rotates
without moving data.
Other tests check which names --state auto recognizes.
"""
import json
import os
import re
import shlex
import sys
from lib import npy
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 120
ATOL, RTOL = 2e-5, 1e-4  # a cache of 100 steps is summed in another order than in ONNX Runtime


def start(cmd, what):
    got = run(cmd, LIMIT)
    if got.rc or got.timed_out:
        raise Fail(f"{what}: {explain(got)}: {tail(got.text(), 4)}")
    return got.out.decode()


def near(what, raw, expected):
    a, b = npy.decode(raw), npy.decode(expected)
    if (a.kind, a.shape) != (b.kind, b.shape):
        raise Fail(f"{what} is {a.kind}{list(a.shape)}, expected {b.kind}{list(b.shape)}")
    for i, (x, y) in enumerate(zip(a.data, b.data)):
        if not abs(x - y) <= ATOL + RTOL * abs(y):
            raise Fail(f"{what}: element {i} is {x!r}, expected {y!r}")


def model(case):
    return [os.path.join(case["folder"], "model.onnx"), "--state", "auto", *case["options"]]


def steps(env, case):
    """100 steps of compiled C; a full cache returns a status; a reset restarts."""
    env.need_ingot()
    work = env.scratch("state", case["name"])
    source, library, out = (os.path.join(work, f"model.{x}") for x in ("c", "so", "npz"))
    start([env.ingot, "compile", *model(case), "--caller", "--quiet", "--name", "model", "-o", source], "compile")
    start([*shlex.split(os.environ.get("CC", "cc")), "-std=c99", "-O1", "-w", "-fPIC", "-shared", source, "-o", library], "cc")
    start([sys.executable, os.path.join(ROOT, "test", "steps.py"), library, source[:-1] + "h",
           os.path.join(case["folder"], "inputs.npz"), out, json.dumps(case["sizes"])], "steps")
    have, expected = npy.load_npz_raw(out), npy.load_npz_raw(os.path.join(case["folder"], "expected.npz"))
    for key, want in expected.items():
        near(key, have[key], want)
    for key, raw in have.items():
        if key.startswith("again") and raw != have[key[5:]]:
            raise Fail(f"after a reset, step {key[5:]} gives another result")
    status = npy.decode(have["full"]).data[0]
    if status != (5 if case["name"] == "gpt" else 0):
        raise Fail(f"one step more returns {status}")


def way(env, case):
    """How the program keeps the state."""
    env.need_ingot()
    text = start([env.ingot, "opt", *model(case), "--quiet", "--check"], "opt")
    states = [m for m in re.findall(r'^buf ("[^"]*"|\w+): state', text, re.M) if m not in ("lengths", "heads")]
    if len(states) != len(case["pairs"]):
        raise Fail(f"{len(states)} states, expected {len(case['pairs'])}")
    stores = [line.strip() for line in text.splitlines() if any(line.strip().startswith(s + "[") for s in states)]
    copies = text.count('kernel "copy')
    if case["way"] == "append":
        if copies or re.search(r"in 0\.\.past_length \{", text):
            raise Fail("something walks through the past")
        if len(stores) != len(states) or any(", past_length" not in s.split(" = ")[0] for s in stores):
            raise Fail(f"stores to the cache are {stores}")
    if case["way"] == "ring" and (copies or "buf heads" not in text or len(stores) != 2 * len(states)):
        raise Fail(f"not a ring: {copies} copies, stores {stores}")
    if case["way"] == "update" and (copies or len(stores) != len(states)):
        raise Fail(f"not in place: {copies} copies, stores {stores}")


def engines(env, case):
    env.need_ingot()
    work, found = env.scratch("state", case["name"]), {}
    for e in ("ref", "vm", "watch", "c"):
        out = os.path.join(work, e + ".npz")
        start([env.ingot, "run", *model(case), "--quiet", "--steps", "30", "--seed", "5", "--engine", e, "--output", out], e)
        found[e] = npy.load_npz_raw(out)
    for e in ("watch", "c"):
        if found[e] != found["vm"]:
            raise Fail(f"{e} and vm differ after 30 steps")
    for key, raw in found["ref"].items():
        near(f"ref, {key}", found["vm"][key], raw)


def program(env, case):
    """A program of `ingot build`: --steps continues from the state, with the inputs and the bits of `ingot run`."""
    env.need_ingot()
    work = env.scratch("state", case["name"])
    made, out, expected = (os.path.join(work, x) for x in ("prog", "prog.npz", "run.npz"))
    start([env.ingot, "build", *model(case), "--quiet", "-O1", "-o", made], "build")
    start([made, "--steps", "30", "--seed", "5", "--output", out], "program")
    start([env.ingot, "run", *model(case), "--quiet", "--march", "native", "--steps", "30", "--seed", "5", "--output", expected], "run")
    if npy.load_npz_raw(out) != npy.load_npz_raw(expected):
        raise Fail("the program and `ingot run` differ after 30 steps")
    if json.loads(start([made, "--bench", "0.05"], "--bench"))["n"] < 5:
        raise Fail("--bench does not go on")


NAMES = [  # names that auto accepts, and names that it leaves alone
    ("past_key_values.0.key", "present.0.key", True), ("past_key_values.0.value", "present_key_values.0.value", True),
    ("past_3", "present_3", True), ("past.1.key", "present.1.key", True), ("past_key_0", "present_key_0", True),
    ("past_key_10", "present_key_1", False), ("past", "present", True), ("h_in", "h_out", True), ("h0", "hn", True),
    ("c_0", "c_n", True), ("c", "cn", True), ("state", "stateN", True), ("state_in", "state_out", True),
    ("inputState", "outputState", True), ("cache_last_time", "cache_last_time_next", True),
    ("cached_conv_2", "new_cached_conv_2", True), ("prev_hidden", "new_hidden", True), ("lstm.0.in", "lstm.0.out", True),
    ("image_in", "image_out", False), ("x", "x_out", False), ("h", "h2", False), ("state", "states", False),
    ("past_0", "past_0_out", False), ("in", "out", False), ("channel_0", "channel_n", False), ("state_0", "state_1", False),
]


def names(env):
    env.need_ingot()
    work = env.scratch("state", "names")
    for old, new, taken in NAMES:
        path = os.path.join(work, "pair.ing")
        with open(path, "w") as f:
            f.write(f'graph (%1 "{old}": f32[2]) {{\n  %2: f32[2] = neg(%1)\n  return %2 "{new}"\n}}\n')
        got = run([env.ingot, "opt", path, "--state", "auto", "--stop=none"], LIMIT)
        if taken != (got.rc == 0 and b"next %1" in got.out) or (not taken and got.rc != 2):
            raise Fail(f"{old}, {new}: {explain(got)}: {tail(got.text(), 3)}")
        listed = start([env.ingot, "inspect", path], "inspect")
        if taken != (f"{old} -> {new}" in listed):
            raise Fail(f"inspect, {old} and {new}:\n{listed}")


SIZES = """graph (%1 "h": f32[2,b], %2 "x": f32[b]) {
  %3: f32[2,b] = add(%1, %2)
  return %3 "y", %3 "hn" next %1
}
""".replace("graph", "graph sizes\nsym b in 0..4\n")

SIZES_MAIN = """#include "sizes.h"
#include <stdio.h>
#include <string.h>
_Alignas(SIZES_ARENA_ALIGN) static unsigned char arena[SIZES_ARENA_BYTES];
int main(void) {
  float x[4] = {1, 2, 3, 4}, y[8];
  memset(arena, 0x55, sizeof arena);
  printf("%d ", sizes_run(arena, 2, x, y));
  sizes_reset(arena);
  for (int i = 2; i < 4; i++) printf("%d ", sizes_run(arena, i, x, y));
  printf("%d ", sizes_run(arena, 2, x, y));
  printf("%g ", (double)y[3]);
  sizes_reset(arena);
  printf("%d ", sizes_run(arena, 3, x, y));
  printf("%g\\n", (double)y[5]);
  return 0;
}
"""


def sizes(env):
    """An uninitialized arena, and an extent that changes without a reset, are refused and change nothing."""
    env.need_ingot()
    work = env.scratch("state", "sizes")
    model, source, main, program = (os.path.join(work, x) for x in ("sizes.ing", "sizes.c", "main.c", "main"))
    for path, text in ((model, SIZES), (main, SIZES_MAIN)):
        with open(path, "w") as f:
            f.write(text)
    start([env.ingot, "compile", model, "-o", source], "compile")
    start([*shlex.split(os.environ.get("CC", "cc")), "-O1", "-fsanitize=address,undefined", main, source, "-o", program], "cc")
    got = start([program], "main").split()
    if got != ["5", "0", "5", "0", "4", "0", "3"]:
        raise Fail(f"statuses and values are {got}")


MASK = """graph cache
sym past in 0..15
(%1 "mask": f32[past+1], %2 "past_key": f32[past], %3 "x": f32[1]) {
  %4: f32[past+1] = concat(%2, %3) {axis=0}
  %5: f32[past+1] = mul(%4, %1)
  return %5 "y", %4 "present_key" next %2
}
"""


def mask(env):
    """The shape of an input depends on the length of the state: an array that is valid in the first step is not valid in the
    second."""
    env.need_ingot()
    work = env.scratch("state", "mask")
    model, given = os.path.join(work, "mask.ing"), os.path.join(work, "in.npz")
    with open(model, "w") as f:
        f.write(MASK)
    npy.save_npz(given, {k: npy.Array("f32", (1,), [2.0]) for k in ("mask", "x")})
    for e in ("ref", "vm", "c"):
        for n, code in (1, 0), (2, 4):
            got = run([env.ingot, "run", model, "--inputs", given, "--engine", e, "--steps", str(n)], LIMIT)
            if got.rc != code or (code and b"expected" not in got.err):
                raise Fail(f"{e}, {n} steps: {explain(got)}, expected {code}: {tail(got.text(), 3)}")
    made = os.path.join(work, "prog")
    start([env.ingot, "build", model, "-O1", "--sanitize", "address,undefined", "-o", made], "build")
    for args, code, text in ((["--inputs", given], 0, ""), (["--inputs", given, "--steps", "2"], 4, "'mask': dimension 0 is 1, expected 2"),
                             (["--steps", "16"], 0, "f32[16]"), (["--steps", "17"], 4, "state"), (["--bench", "0.02"], 0, '"n"'),
                             (["--inputs", given, "--bench", "0.02"], 0, '"n"'), (["--steps", "none"], 2, "--steps"),
                             (["--steps", "0"], 2, "--steps"), (["--bench", "x"], 2, "--bench")):
        got = run([made, *args], LIMIT)
        if got.rc != code or text not in got.out.decode() + got.text():
            raise Fail(f"program {' '.join(args)}: {explain(got)}, expected {code} {text}: {tail(got.text(), 3)}")


def tests(env):
    found = [Test("state/names", lambda: names(env)), Test("state/sizes", lambda: sizes(env)),
             Test("state/mask", lambda: mask(env))]
    out = os.path.join(env.build, "state")
    if not env.python:
        def no_python():
            raise Skip("no Python environment (see build/setup.log), so the models cannot be made")
        return found + [Test("state/models", no_python)]
    try:
        models = os.path.join(env.build, "models")
        env.generated(out, ["make/mkstate.py", "make/mksymbolic.py"], lambda: env.script("mkstate.py", out, models))
    except Fail as e:
        def broken(e=e):
            raise e
        return found + [Test("state/models", broken)]
    with open(os.path.join(out, "cases.json"), encoding="ascii") as f:
        cases = json.load(f)
    for c in cases:
        found.append(Test(f"state/{c['name']}-steps", lambda c=c: steps(env, c), cost=5))
        found.append(Test(f"state/{c['name']}-way", lambda c=c: way(env, c)))
        if not c["sizes"]:
            found.append(Test(f"state/{c['name']}-engines", lambda c=c: engines(env, c), cost=5))
            found.append(Test(f"state/{c['name']}-program", lambda c=c: program(env, c), cost=5))
    return found
