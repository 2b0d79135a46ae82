"""The command line, with the built-in digit model: exit codes, streams, and output files that appear whole or not at all.

Needs only the binary.
"""
import glob
import json
import os
import re
import shutil
import struct
from lib import npy
from lib.core import ENGINES, ROOT, Fail, Test, explain, run, tail, want

CHECK = "* !cli/engines !cli/little_memory"

MODEL = os.path.join(ROOT, "models", "digits.onnx")
VERBS = ("run", "verify", "inspect", "ops", "opt")


class Cli:
    def __init__(self, env, name):
        env.need_ingot()
        self.env = env
        self.dir = env.scratch("cli", name)
        shutil.rmtree(self.dir)
        os.makedirs(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def save(self, name, data):
        """Writes a file to the scratch folder; returns its name for commands."""
        with open(self.path(name), "wb") as f:
            f.write(data)
        return name

    def run(self, *args, code=0, text=None, limit=60, **how):
        """Runs ingot in the scratch folder; checks exit code and stderr, and that a failure prints nothing on stdout."""
        got = run([self.env.ingot, *args], limit, cwd=self.dir, **how)
        shown = "ingot " + " ".join(args)
        if got.timed_out or got.rc not in (code if isinstance(code, tuple) else (code,)):
            raise Fail(f"{shown}: {explain(got)}, expected {code}: {tail(got.text(), 4)}")
        if text and text not in got.text():
            raise Fail(f"{shown}: stderr lacks `{text}`: {tail(got.text(), 4)}")
        if got.rc not in (0, 1) and got.out:
            raise Fail(f"{shown}: failed, but wrote to stdout")
        if got.rc > 1 and not got.text():
            raise Fail(f"{shown}: failed without a message")
        return got


def help_texts(c):
    text = c.run("--help").out.decode()
    for verb in VERBS:
        want(verb in text, f"--help does not mention {verb}")
        want("usage" in c.run(verb, "--help").out.decode().lower(), f"{verb} --help lacks a usage line")
    want(c.run("--version").out.decode().strip().startswith("ingot"), "--version does not start with the name")


def usage(c):
    c.run(code=2)
    c.run("frobnicate", code=2, text="frobnicate")
    c.run("run", code=2)
    c.run("run", MODEL, "--no-such-flag", code=2, text="--no-such-flag")
    c.run("run", MODEL, "--engine", "steam", code=2, text="steam")
    c.run("run", MODEL, "--engine", code=2)
    c.run("run", MODEL, "--seed", "many", code=2)
    c.run("run", MODEL, "--input", "nosuch=rand", code=2, text="nosuch")
    c.run("run", MODEL, "--input", "image", code=2)
    c.run("opt", MODEL, "--stop=nosuchpass", code=2, text="nosuchpass")
    for flag in ("--rtol", "--atol"):
        for value in ("nan", "-1", "inf", "-inf", "1e999", "", "1x"):
            c.run("verify", MODEL, f"{flag}={value}", code=2, text="number")
    for value in ("nan", "-1", "0", "inf", "1e6", " 1", "1s"):
        c.run("bench", MODEL, "--seconds", value, code=2, text=f"--seconds {value}: expected a number of seconds")
    for flag, values in (("--seed", ("18446744073709551616",)), ("--steps", ("0", "4000000000")), ("--threads", ("0", "65", "4294967297")),
                         ("--threads-grain", ("0", "9999999999"))):
        for value in (*values, "", "-1", "+1", " 1", "1 ", "1x", "0x", "1.5", "many"):
            c.run("run", MODEL, flag, value, code=2, text=f"{flag} {value}: expected a whole number from ")
    c.run("run", MODEL, "--seed=0xff", "--threads", "64", "--threads-grain", "1000000000")
    c.run("run", MODEL, "--seed=18446744073709551615")
    c.run("run", MODEL, "-o", "out.npyz", code=2, text="expected FILE.npz, FILE.npy")


def texts(c):
    """opt prints everything to --output; options for language models are refused for other models."""
    c.run("opt", MODEL, "-d", "batch=1", "--dump=fuse", "-o", "dump.ing")
    want("prog" in open(c.path("dump.ing")).read()[:200], "opt --dump -o writes no file")
    c.run("opt", MODEL, "-d", "batch=1", "--explain", "-o", "why.txt")
    want(os.path.getsize(c.path("why.txt")) > 0, "opt --explain -o writes no file")
    for skip, times in (("dce", 2), ("fuse", 0)):
        rows = [line.split()[0] for line in c.run("opt", MODEL, "--march=scalar", "--ram=4K", "--time", f"--skip={skip}", "-o", "x.ing").text().splitlines()]
        want(rows.count("fuse") == times and rows.count(skip) == 0, f"--time --skip={skip} with bands shows {rows}")
    for flag in (["--context", "8"], ["--cache", "f32"], ["--chunk", "4"], ["--every-token"]):
        c.run("run", MODEL, "-d", "batch=1", *flag, code=2, text="not a language model")


FAMILIES = re.findall(r'^FAMILY\(\w+, "([^"]+)", -?\d+,\s+"([^"]+)"\)', open(os.path.join(ROOT, "src/ir/prog/families.def")).read(), re.M)


def families(c):
    """Every kernel of every operator has a record with a family, a reason and estimates, with and without vectors."""
    line = re.compile(r"kernel '.*?': (.*), about [0-9.]+ us(, [0-9]+ multiply-adds)?, [0-9]+ bytes$")
    count, seen = 0, set()
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "exec", "ops", "*.t")) + glob.glob(os.path.join(ROOT, "test", "golden", "lower", "*.t"))):
        graph = re.search(r"^graph.*?^}$", open(path).read().split("# expect")[0], re.M | re.S)
        if not graph:
            continue
        with open(c.path("one.ing"), "w") as f:
            f.write(graph[0] + "\n")
        for march in ("scalar", "avx512"):
            for text in c.run("opt", "one.ing", "--march", march, "--explain").out.decode().splitlines():
                if not text.startswith("kernel "):
                    continue
                got = line.match(text)
                want(got, f"{path}: {text}")
                for part in got[1].split("); "):
                    known = [title for title, why in FAMILIES if part.startswith(title + " ") and f"({why}" in part]
                    want(known, f"{path}: no family is called so: {part}")
                    seen.update(known)
                count += 1
    want(count > 200 and len(seen) > 15, f"{count} kernels, families {sorted(seen)}")


def specs(c):
    """Given dimensions must fit the model, also where others are not known."""
    tail_of = ("compile", MODEL, "-o", "x.c")
    for bound in ("image:4x1x8x9", "image:4x2x8x8", "image:4x1x7x8"):
        c.run(*tail_of, "--max-shapes", bound, code=2, text="fixed at")
    c.run(*tail_of, "--max-shapes", "image:0x1x8x8", code=2, text="expected a bound of at least 1")
    c.run(*tail_of, "--max-shapes", "image:4x1x8x8")
    for flags in (["--max-shapes", "imgae:4x1x8x8"], ["-d", "bacth=2"], ["-d", "image:7=2"]):
        c.run(*tail_of, *flags, code=2, text="inputs are image")


def once(c):
    """Every message is printed once."""
    for args, code in ((["bench", MODEL, "--seconds", "0.001"], 0), (["bench", MODEL, "--cc", "no-such-compiler", "--seconds", "0.001"], 5)):
        said = run([c.env.ingot, *args], 60, cwd=c.dir)
        rows = said.err.decode().splitlines()
        want(said.rc == code and rows and len(rows) == len(set(rows)), f"{args}: {rows}")


def lines(c):
    """No line of a report ends with a space."""
    tour, data = os.path.join(ROOT, "test", "docs", "tour.onnx"), os.path.join(ROOT, "test", "docs", "tour.npy")
    with open(c.path("empty.ing"), "w") as f:
        f.write('graph (%x "x": f32[0]) {\n  return %x "y"\n}\n')
    for args in (["inspect", MODEL], ["inspect", tour], ["inspect", "empty.ing"], ["ops"], ["passes"], ["run", MODEL],
                 ["run", tour, "--input", f"x=@{data}"], ["run", "empty.ing"], ["verify", MODEL, "--engine", "interp"],
                 ["verify", MODEL, "--per-node", "--engine", "interp"], ["bench", MODEL, "--engine", "interp", "--seconds", "0.001"],
                 ["opt", tour], ["opt", tour, "--explain"], ["--help"], *([verb, "--help"] for verb in VERBS)):
        for line in c.run(*args).out.decode().splitlines():
            want(line == line.rstrip(), f"{' '.join(args)}: {line!r} ends with a blank")


def work(c):
    """All commands report the same number of multiply-adds, whichever operand the reduction axes are in."""
    with open(c.path("work.ing"), "w") as f:
        f.write('graph sym n in 1..8 (%a "a": f32[n,2], %b "b": f32[3,5]) {\n'
                '  %y: f32[n,2,3] = contract(%a, %b) {spec = "nm,kj->nmk"}\n  return %y "y"\n}\n')
    want(b"\nmultiply-adds 30 (" in c.run("inspect", "work.ing").out, "inspect does not say 30 multiply-adds")
    want(json.loads(c.run("inspect", "work.ing", "--json").out)["multiply_adds"] == 30, "nor does inspect --json")
    c.run("compile", "work.ing", "-o", "work.c")
    want("MULTIPLY_ADDS 240\n" in open(c.path("work.h")).read(), "the header does not say 240 multiply-adds")
    with open(c.path("apart.ing"), "w") as f:
        f.write('graph (%x "x": f32[1,1,4]) {\n  %z: f32[] = const {0}\n  %w: f32[1,1,2] = const {1, 2}\n'
                '  %p: f32[1,1,7] = pad(%x, %z) {lo=[0,0,0], hi=[0,0,0], interior=[0,0,1]}\n'
                '  %y: f32[1,1,6] = conv(%p, %w) {group=1, stride=[1], dilation=[1], pad_lo=[0], pad_hi=[0]}\n  return %y "y"\n}\n')
    want(b"\nmultiply-adds 6\n" in c.run("inspect", "apart.ing").out, "zeros between elements count as multiply-adds")


def engines(c):
    """The help of each verb lists the engines it accepts, and the verb accepts them; the manual describes each."""
    page = open(os.path.join(ROOT, "docs", "ingot.1"), encoding="utf-8").read()
    for verb, flags in (("run", ["--input", image(c)]), ("verify", []), ("bench", ["--seconds", "0.001"]), ("demo", [])):
        text = c.run(verb, "--help").out.decode()
        names = next(x for x in text.splitlines() if "--engine NAME  " in x).split(": ")[-1].split()
        want(len(names) > 1, f"{verb} --help names no engines")
        for name in names:
            want(f".B {name}\n" in page, f"docs/ingot.1 does not describe engine {name}")
            if name not in ("onnxruntime", "cuda"):  # need Python, or a GPU
                c.run(verb, *([] if verb == "demo" else [MODEL, *flags]), "--engine", name)
    c.run("bench", MODEL, "--engine", "ref", code=2, text="expected vm, c")
    with open(c.path("unnamed.ing"), "w") as f:
        f.write("graph (%1: f32[4], %2: f32[4]) {\n  %3: f32[4] = add(%1, %2)\n  return %3\n}\n")
    c.run("bench", "unnamed.ing", "--engine", "c", "--seconds", "0.001")



def reports(c):
    ops = json.loads(c.run("ops", "--json").out)
    want(len(ops) > 20 if isinstance(ops, list) else len(ops.get("operators", ops)) > 20, "ops --json lists too little")
    listed = c.run("ops").out
    want(b"Conv" in listed, "ops does not list Conv")
    want(b"CONV_2D" in listed and not [x for x in listed.splitlines() if x.startswith(b"tflite") and b"opset" in x], "TensorFlow Lite has no opsets")
    report = json.loads(c.run("inspect", MODEL, "--json").out)
    want("image" in json.dumps(report), "inspect --json does not name the input")
    text = c.run("inspect", MODEL).out.decode()
    for word in ("image", "Conv", "ai.onnx 17"):
        want(word in text, f"inspect does not mention {word}")
    with open(MODEL, "rb") as f, open(c.path("strange.onnx"), "wb") as g:
        g.write(f.read().replace(b"\x22\x04Relu", b"\x22\x04Rely"))  # an operator that does not exist
    for flags in ([], ["--json"]):
        got = run([c.env.ingot, "inspect", "strange.onnx", *flags], 20, cwd=c.dir)
        said = (got.out + got.err).decode()
        want(got.rc == 3 and said.count("node 2 'relu1' (Rely)") == 1 and "strange.onnx" in got.text(), f"inspect says {said}")


def image(c, name="x.npy", count=1):
    npy.save(c.path(name), npy.Array("f32", (count, 1, 8, 8), [(i % 17) / 16 for i in range(64 * count)]))
    return f"image=@{name}"


def running(c):
    results = {}
    for engine in ENGINES:
        shown = c.run("run", MODEL, "--input", image(c), "--engine", engine).out.decode()
        want("f32" in shown and "10" in shown, "run does not show type and shape of the output")
        c.run("run", MODEL, "--input", image(c), "--engine", engine, "--output", f"{engine}.npz")
        results[engine] = next(iter(npy.load_npz(c.path(f"{engine}.npz")).values()))
        want(results[engine].shape == (1, 10), f"{engine}: shape {results[engine].shape}")
        want(abs(sum(results[engine].data) - 1) < 1e-4, f"{engine}: probabilities do not sum to 1")
    reason = npy.differ(results["interp"], results["ref"], 1e-4, 1e-6)
    want(not reason, f"engines disagree: {reason}")
    c.run("run", MODEL, "--input", image(c, "x3.npy", 3), "--output", "three.npz")
    want(next(iter(npy.load_npz(c.path("three.npz")).values())).shape == (3, 10), "a batch of 3 is not bound from the array")


def folders(c):
    """Output as a folder of .pb files is valid input of --data and verify."""
    os.makedirs(c.path("set"))
    c.run("run", MODEL, "--input", image(c), "--output", "set/")
    made = os.listdir(c.path("set"))
    want(any(n.startswith("output_0") for n in made), f"no output_0.pb in the folder: {made}")
    raw = struct.pack("<64f", *[(i % 17) / 16 for i in range(64)])
    tensor = b"".join(b"\x08" + bytes([d]) for d in (1, 1, 8, 8)) + b"\x10\x01" + b"\x4a" + b"\x80\x02" + raw
    with open(c.path("set/input_0.pb"), "wb") as f:
        f.write(tensor)
    line = c.run("verify", MODEL, "--data", "set", "--json").out
    out = json.loads(line)["outputs"]
    want(len(out) == 1 and out[0]["ok"] is True, f"verify of our own output: {line}")
    with open(c.path("set/output_0.pb"), "rb") as f:
        data = bytearray(f.read())
    data[-2] ^= 0x40
    with open(c.path("set/output_0.pb"), "wb") as f:
        f.write(data)
    c.run("verify", MODEL, "--data", "set", code=1)
    os.unlink(c.path("set/output_0.pb"))
    c.run("verify", MODEL, "--data", "set", code=(2, 4, 5))


def shapes(c):
    for args in (["-d", "batch:2"], ["--input-dim", "batch=2"], ["--input-dim", "image:0=2"], ["--shapes", "image:2x1x8x8"]):
        c.run("run", MODEL, *args, "--output", "y.npz")
        a = next(iter(npy.load_npz(c.path("y.npz")).values()))
        want(a.shape == (2, 10), f"{' '.join(args)} gives {a.shape}")
    c.run("run", MODEL, "--shapes", "image:2x3x8x8", code=(2, 4))
    c.run("run", MODEL, "--input-dim", "nosuch=2", code=2, text="nosuch")
    c.run("run", MODEL, "-d", "batch:0x", code=2)
    c.run("run", MODEL, "-d", "batch:-1", code=2)


def seeds(c):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        c.run("run", MODEL, "--input", "image=rand", "--seed", seed, "--output", name + ".npz")
    a, b, d = (open(c.path(n + ".npz"), "rb").read() for n in "abc")
    want(a == b, "the same seed gives other bytes")
    want(a != d, "another seed gives the same bytes")


def wrong_arrays(c):
    npy.save(c.path("rank.npy"), npy.Array("f32", (8, 8), [0.0] * 64))
    c.run("run", MODEL, "--input", "image=@rank.npy", code=(2, 4), text="image")
    npy.save(c.path("type.npy"), npy.Array("i64", (1, 1, 8, 8), [0] * 64))
    c.run("run", MODEL, "--input", "image=@type.npy", code=(2, 4), text="image")
    with open(c.path("cut.npy"), "wb") as f:
        f.write(npy.encode(npy.Array("f32", (1, 1, 8, 8), [0.0] * 64))[:-3])
    c.run("run", MODEL, "--input", "image=@cut.npy", code=4, text="cut.npy")
    with open(c.path("text.npy"), "wb") as f:
        f.write(b"not an array")
    c.run("run", MODEL, "--input", "image=@text.npy", code=4, text="text.npy")
    c.run("run", MODEL, "--input", "image=@absent.npy", code=(4, 5), text="absent.npy")
    c.run("run", MODEL, "--inputs", "text.npy", code=2, text="text.npy: expected an .npz archive")
    c.run("run", MODEL, "--data", "nowhere", code=(2, 4, 5), text="nowhere")


def outputs(c):
    """If the output cannot be written, no partial file is left and the old file stays."""
    c.run("run", MODEL, "--output", "/proc/no/such/folder/y.npz", code=(2, 5))
    c.run("run", MODEL, "--output", "/dev/full", code=(2, 5))
    with open(c.path("keep.npz"), "wb") as f:
        f.write(b"old")
    with open(c.path("bad.onnx"), "wb") as f:
        f.write(b"\x08\x08\x3a\x7f")
    c.run("run", "bad.onnx", "--output", "keep.npz", code=4, text="bad.onnx")
    want(open(c.path("keep.npz"), "rb").read() == b"old", "a refused model changed the output file")
    shell = 'ulimit -f 1; exec "$0" run "$1" --shapes image:64x1x8x8 --output limit.npz'
    got = run(["sh", "-c", shell, c.env.ingot, MODEL], 20, cwd=c.dir)
    want(got.rc in (0, 5), f"with a file size limit: {explain(got)}")
    left = sorted(set(os.listdir(c.dir)) - {"keep.npz", "bad.onnx", "limit.npz"})
    want(not left, f"left behind: {left}")


def names(c):
    for name in ("-dash.onnx", "with space.onnx", "\u00e4\u00f6.onnx"):
        shutil.copy(MODEL, c.path(name))
        c.run("inspect", os.path.join(".", name))
    c.run("inspect", "absent.onnx", code=(4, 5), text="absent.onnx")


def streams(c):
    """A closed pipe and a full stdout are system errors, not crashes."""
    got = run(["sh", "-c", '"$0" ops | head -c 1 >/dev/null; "$0" inspect "$1" >/dev/full; echo $?', c.env.ingot, MODEL], 20)
    want(got.out.strip() == b"5", f"full stdout: exit {got.out!r}")
    got = run(["sh", "-c", '"$0" run "$1" >&-; echo $?', c.env.ingot, MODEL], 20)
    want(got.out.strip() in (b"0", b"5"), f"closed stdout: exit {got.out!r}")


def little_memory(c):
    for kib in (8000, 20000, 60000):
        got = run(["sh", "-c", f'ulimit -v {kib}; exec "$0" run "$1" --shapes image:5000x1x8x8', c.env.ingot, MODEL], 60)
        want(got.rc in (0, 5, 127), f"with {kib} KiB of address space: {explain(got)}: {tail(got.text(), 3)}")


def demo(c):
    got = c.run("demo")
    want(b"right" in got.out, "demo does not state the accuracy")


CASES = (help_texts, usage, texts, families, specs, once, engines, lines, work, reports, running, folders, shapes, seeds, wrong_arrays, outputs, names, streams, little_memory, demo)


def tests(env):
    return [Test(f"cli/{fn.__name__}", lambda fn=fn: fn(Cli(env, fn.__name__)), cost=1) for fn in CASES]
