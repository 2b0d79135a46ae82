"""`ingot build -o OUT.wasm`: the results of Node have the bits of every other engine; wrong inputs are refused with a message.

Needs clang, wasm-ld (Debian's lld) and node.
"""
import base64
import json
import os
import pathlib
import random
import shutil
import struct
from lib import npy, onnxfile
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail, want
from suite import targets

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
NODE = os.path.join(ROOT, "test", "js", "run.mjs")
ARRAYS = {"f64": "Float64Array", "f32": "Float32Array", "f16": "Uint16Array", "i64": "BigInt64Array", "i32": "Int32Array", "i16": "Int16Array",
          "i8": "Int8Array", "u64": "BigUint64Array", "u32": "Uint32Array", "u16": "Uint16Array", "u8": "Uint8Array", "bool": "Uint8Array"}

# Every type as input and output; functions of each kind on vectors.
TYPES = """graph (%f "f": f32[37], %d "d": f64[5], %h "h": f16[9], %l "l": i64[6], %i "i": i32[19], %s "s": i16[3], %c "c": i8[33], %u "u": u8[18], %w "w": u16[4], %b "b": bool[21], %z "z": u32[]) {
  %zero: f32[] = const {0}
  %f1: f32[37] = exp(%f)
  %f2: f32[37] = max(%f, %zero)
  %f3: f32[37] = floor(%f)
  %f4: f32[37] = ceil(%f)
  %f5: f32[37] = round(%f)
  %f6: f32[37] = trunc(%f)
  %f7: f32[37] = tanh(%f)
  %f8: f32[37] = sqrt(%f1)
  %f9: f32[37] = min(%f, %f7)
  %d1: f64[5] = sqrt(%d)
  %dz: f64[] = const {0}
  %d2: f64[5] = max(%d, %dz)
  %h1: f16[9] = add(%h, %h)
  %l1: i64[6] = mul(%l, %l)
  %i1: i32[19] = mul(%i, %i)
  %s1: i16[3] = neg(%s)
  %c1: i8[33] = max(%c, %c)
  %u1: u8[18] = add(%u, %u)
  %w1: u16[4] = sub(%w, %w)
  %b1: bool[21] = not(%b)
  %z1: u32[] = add(%z, %z)
  return %f1 "f1", %f2 "f2", %f3 "f3", %f4 "f4", %f5 "f5", %f6 "f6", %f7 "f7", %f8 "f8", %f9 "f9", %d1 "d1", %d2 "d2", %h1 "h1", %l1 "l1", %i1 "i1", %s1 "s1", %c1 "c1", %u1 "u1", %w1 "w1", %b1 "b1", %z1 "z1"
}
"""
COUNTER = """graph (%x "x": f32[3], %h "h": f32[3]) {
  %y: f32[3] = add(%x, %h)
  %t: f32[3] = tanh(%y)
  return %t "t", %y "y"
}
"""
OPEN = """graph sym n in 1..8 sym m in 1..9 (%a "a": f32[n,4], %b "b": f32[4,m]) {
  %y: f32[n,m] = contract(%a, %b) {spec = "nk,km->nm"}
  return %y "y"
}
"""
FOUND = """graph sym k data in 0..12 (%x "x": f32[12]) {
  %zero: f32[] = const {0}
  %m: bool[12] = gt(%x, %zero)
  %y: i64[1,k] = nonzero(%m) sym(k)
  return %y "y"
}
"""


class Work:
    def __init__(self, env, name):
        env.need_ingot()
        for tool, package in (("clang", "clang"), ("wasm-ld", "lld"), ("node", "nodejs")):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed: Debian has it in {package}")
        self.env, self.dir = env, env.scratch("wasm", name)
        shutil.rmtree(self.dir)
        os.makedirs(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *cmd, code=0, text=None, env=None, cwd=None):
        got = run(list(cmd), 120, cwd=cwd or self.dir, env=env)
        if got.rc != code or (text and text not in got.text()):
            raise Fail(f"{' '.join(cmd)}: {explain(got)}, expected {code} {text or ''}: {tail(got.text(), 6)}")
        return got

    def build(self, model, *args, out="net.wasm", env=None):
        if not model.endswith((".onnx", ".ing")):
            with open(self.path("net.ing"), "w") as f:
                f.write(model)
            model = "net.ing"
        self.model = model
        self.run(self.env.ingot, "build", model, "--quiet", "-o", out, *args, env=env)

    def ask(self, *steps, module="net.mjs", wasm=(), cwd=None):
        with open(self.path("ask.json"), "w") as f:
            json.dump(steps, f)
        return json.loads(self.run("node", NODE, self.path(module), self.path("ask.json"), *wasm, cwd=cwd).out)

    def expected(self, arrays, *args, march="simd128", engine="vm"):
        """Raw bytes and shapes of the outputs, by name."""
        npy.save_npz(self.path("in.npz"), arrays)
        self.run(self.env.ingot, "run", self.model, "--quiet", "--inputs", "in.npz", "-o", "out.npz", "--engine", engine, "--march", march, *args)
        return {name: (npy.KINDS[x.kind], x.shape, npy.encode(x)) for name, x in npy.load_npz(self.path("out.npz")).items()}


def raw(a):
    return struct.pack(f"<{len(a.data)}{npy.KINDS[a.kind][1]}", *a.data)


def given(a, **more):
    return {"kind": ARRAYS[a.kind], "base64": base64.b64encode(raw(a)).decode(), **more}


def inputs_of(arrays, **more):
    return {name: given(a, **more) for name, a in arrays.items()}


def same(answer, expected, what):
    want("error" not in answer, f"{what}: {answer.get('error')}")
    want(sorted(answer) == sorted(expected), f"{what}: outputs {sorted(answer)}, expected {sorted(expected)}")
    for name, (_, shape, data) in expected.items():
        bits = base64.b64decode(answer[name]["base64"])
        want(tuple(answer[name]["shape"]) == tuple(shape), f"{what}: {name} has shape {answer[name]['shape']}, expected {shape}")
        want(data.endswith(bits) and len(bits) == len(data) - data.index(b"\n") - 1, f"{what}: {name} has other bits")


def floats(n, seed=0, scale=4.0):
    rng = random.Random(seed)
    return [struct.unpack("<f", struct.pack("<f", rng.uniform(-scale, scale)))[0] for _ in range(n)]


def digits(w):
    image = {"image": npy.Array("f32", (1, 1, 8, 8), [abs(x) / 4 for x in floats(64)])}
    for march, others in (("simd128", (("vm", "simd128"), ("c", "sse2"))), ("scalar", (("c", "scalar"),))):
        w.build(DIGITS, "-d", "batch=1", "--target", "wasm", "--march", march)
        facts, test, answer, listed = w.ask({"facts": True}, {"selftest": True}, {"inputs": inputs_of(image)}, {"inputs": inputs_of(image, list=True)})
        want(facts["target"] == march and facts["imports"] == [], f"facts: {facts}")
        want(facts["inputs"] == [{"name": "image", "type": "f32", "shape": [1, 1, 8, 8]}], f"inputs: {facts}")
        want(test == {"selftest": True}, f"self-test: {test}")
        for engine, target in others:
            same(answer, w.expected(image, "-d", "batch=1", march=target, engine=engine), f"{march} against {engine} {target}")
        want(answer == listed, "a list of numbers gives something else")
    want(os.path.getsize(w.path("net.wasm")) < 30000, "digits takes more than 30000 bytes")


def types(w):
    rng = random.Random(1)
    arrays = {"f": npy.Array("f32", (37,), floats(35) + [float("inf"), -0.0]), "d": npy.Array("f64", (5,), [0.1, 2.0, 3.5, 1e300, -0.0]),
              "h": npy.Array("f16", (9,), [i / 8 for i in range(9)]), "l": npy.Array("i64", (6,), [rng.randrange(-2**62, 2**62) for _ in range(6)]),
              "i": npy.Array("i32", (19,), [rng.randrange(-2**31, 2**31) for _ in range(19)]), "s": npy.Array("i16", (3,), [-32768, 5, 32767]),
              "c": npy.Array("i8", (33,), [i - 16 for i in range(33)]), "u": npy.Array("u8", (18,), [i * 15 for i in range(18)]),
              "w": npy.Array("u16", (4,), [0, 1, 2, 65535]), "b": npy.Array("bool", (21,), [bool(i % 3) for i in range(21)]),
              "z": npy.Array("u32", (), [4000000000])}
    w.build(TYPES)
    answer, = w.ask({"inputs": inputs_of(arrays)})
    same(answer, w.expected(arrays), "types")
    for name, x, words in (("i", [1.5] * 19, "input i: element 0 is 1.5, expected integers"), ("l", [1, 2, 3, 4, 5, "6"], 'input l: element 5 is the string "6", expected integers')):
        answer, = w.ask({"inputs": {**inputs_of(arrays), name: {"plain": x}}})
        want(answer.get("type") == "TypeError" and words in answer["error"], f"{answer}, expected `{words}`")
    odd = (("u", [0] * 17 + [300], "input u: element 17 is 300, expected integers from 0 to 255"), ("u", [-1] * 18, "element 0 is -1, expected integers from 0 to 255"),
           ("c", [128] * 33, "from -128 to 127"), ("b", [2] * 21, "from 0 to 1"), ("l", [2**63] * 6, "from -9223372036854775808 to 9223372036854775807"),
           ("f", [1e300] * 37, "input f: element 0 is 1e+300, expected f32"))
    for (_, _, words), answer in zip(odd, w.ask(*({"inputs": {**inputs_of(arrays), name: {"plain": x}}} for name, x, _ in odd))):
        want(answer.get("type") == "RangeError" and words in answer["error"], f"{answer}, expected `{words}`")


def addresses(w):
    """Files and folders with special characters of URLs; a self-test allocates memory once."""
    image = inputs_of({"image": npy.Array("f32", (1, 1, 8, 8), [abs(x) / 4 for x in floats(64)])})
    w.build(DIGITS, "-d", "batch=1", "--selftest")
    first, = w.ask({"inputs": image})
    for name in ("net#1", "a b?c", "50%25", "x:y", "ß+"):
        w.build(DIGITS, "-d", "batch=1", "--name", "net", out=f"{name}.wasm")
        answer, = w.ask({"inputs": image}, module=f"{name}.mjs")
        want(answer == first, f"{name}: {answer}")
    there = w.path("in#to%20?")
    os.mkdir(there)
    shutil.copy(w.path("net.wasm"), os.path.join(there, "net#1.wasm"))
    for where in ("net#1.wasm", "./net#1.wasm", os.path.join(there, "net#1.wasm"), pathlib.Path(there, "net#1.wasm").as_uri()):
        answer, = w.ask({"inputs": image}, wasm=[where], cwd=there)
        want(answer == first, f"load({where!r}): {answer}")
    got = w.ask({"selftest": True}, {"memory": True}, *[{"selftest": True}] * 20, {"memory": True}, {"inputs": image}, {"selftest": True})
    want(got[0] == got[5] == got[-1] == {"selftest": True} and got[-2] == first, f"self-tests: {got}")
    want(got[1]["bytes"] == got[22]["bytes"] > 0, f"20 self-tests take memory: {got[1]}, {got[22]}")


def halves(w):
    """Lists of numbers for 16-bit floats: rounded to nearest even, never interpreted as bits."""
    x = [1.0, -2.5, 0.1, 1 + 2**-11, 1 + 3 * 2**-11, 65504.0, 65519.0, 65520.0, 2.0**-24, 2.0**-25, 3 * 2.0**-25, -1e-9, 1e-5]
    w.build(f'graph (%h "h": f16[{len(x)}], %g "g": bf16[{len(x)}]) {{\n  %y: f16[{len(x)}] = neg(%h)\n  %z: bf16[{len(x)}] = neg(%g)\n  return %y "y", %z "z"\n}}\n')
    answer, = w.ask({"inputs": {"h": {"plain": x}, "g": {"plain": x}}})
    have = {k: struct.unpack(f"<{len(x)}H", base64.b64decode(answer[k]["base64"])) for k in ("y", "z")}
    half = [struct.unpack("<H", struct.pack("<e", -v))[0] if abs(v) < 65520 else 0xFC00 for v in x]
    want(list(have["y"]) == half, f"f16: {[hex(b) for b in have['y']]}, expected {[hex(b) for b in half]}")
    wide = [struct.unpack("<I", struct.pack("<f", -v))[0] for v in x]  # none of these numbers is rounded twice
    brain = [(b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in wide]
    want(list(have["z"]) == brain, f"bf16: {[hex(b) for b in have['z']]}, expected {[hex(b) for b in brain]}")


def state(w):
    w.build(COUNTER, "--state", "h=y")
    x = [npy.Array("f32", (3,), floats(3, i)) for i in range(3)]
    steps = [{"inputs": {"x": given(a)}} for a in (*x, x[0])]
    answers = w.ask(*steps[:3], {"reset": True}, steps[3])
    want(answers[0] == answers[4] and answers[0] != answers[1], f"reset does not begin anew: {answers}")
    want(all("t" in a and "y" not in a for a in answers[:3]), f"outputs: {answers}")


def open_sizes(w):
    """Extents from shapes, or from the number of elements; mismatches are reported."""
    w.build(OPEN)
    a, b = npy.Array("f32", (3, 4), floats(12)), npy.Array("f32", (4, 5), floats(20, 2))
    expected = w.expected({"a": a, "b": b})
    seen = w.ask({"inputs": {"a": given(a, shape=[3, 4]), "b": given(b, shape=[4, 5])}}, {"inputs": {"a": given(a), "b": given(b)}},
                 {"inputs": {"a": given(a, shape=[4, 3]), "b": given(b)}}, {"inputs": {"a": given(b), "b": given(a, shape=[3, 4])}},
                 {"inputs": {"a": given(npy.Array("f32", (9, 4), floats(36))), "b": given(b)}},
                 {"inputs": {"a": given(npy.Array("f32", (7,), floats(7))), "b": given(b)}}, {"facts": True})
    same(seen[0], expected, "shapes given")
    same(seen[1], expected, "shapes guessed")
    for answer, words in zip(seen[2:6], ("input a: shape [4,3], expected [n,4]", "input b: shape [3,4], expected [4,m]", "n from 0 to 8", "input a: 7 elements, expected [n,4]")):
        want(words in answer.get("error", ""), f"{answer}, expected `{words}`")
    want(seen[6]["inputs"][0]["shape"] == ["n", 4], f"facts: {seen[6]}")


def found_sizes(w):
    """An extent that only the run determines."""
    w.build(FOUND)
    x = {"x": npy.Array("f32", (12,), floats(12))}
    answer, = w.ask({"inputs": inputs_of(x)})
    same(answer, w.expected(x), "nonzero")


def errors(w):
    w.build(DIGITS, "-d", "batch=1")
    image = npy.Array("f32", (64,), [0.0] * 64)
    asked = [({}, "input image is missing"), ({"image": given(image), "imagine": given(image)}, "no input imagine; expected one of: image"),
             ({"image": given(npy.Array("f64", (64,), [0.0] * 64))}, "input image: Float64Array, expected Float32Array"),
             ({"image": given(npy.Array("f32", (63,), [0.0] * 63))}, "input image: 63 elements, expected [1,1,8,8]"),
             ({"image": given(image, shape=[64])}, "input image: shape [64], expected [1,1,8,8]")]
    for (_, words), answer in zip(asked, w.ask(*({"inputs": x} for x, _ in asked))):
        want(words in answer.get("error", ""), f"{answer}, expected `{words}`")
    # Number("abc") is NaN, Number("") and Number(null) are 0: list elements that are not numbers are refused.
    strange = [("abc", "input image: String, expected Float32Array"), ([*[0.0] * 63, "abc"], 'input image: element 63 is the string "abc", expected numbers'),
               ([["", 1.0]], 'input image: element 0 is the string "", expected numbers'), ([1.0, None], "input image: element 1 is null, expected numbers"),
               ([1.0, {}], "input image: element 1 is [object Object], expected numbers"), ({"data": "abc", "shape": [1, 1, 8, 8]}, "input image: String, expected Float32Array")]
    for (_, words), answer in zip(strange, w.ask(*({"inputs": {"image": {"plain": x}}} for x, _ in strange))):
        want(answer.get("type") == "TypeError" and words in answer["error"], f"{answer}, expected `{words}`")


def names(w):
    """Names of a model appear in the text only as strings."""
    g = onnxfile.Graph()
    x = g.input([2], name='a"];throw 1//\\\n\u2028</script>ß')
    g.output(g.node("Neg", [x]), [2])
    with open(w.path("net.onnx"), "wb") as f:
        f.write(onnxfile.model(g))
    w.build("net.onnx")
    facts, = w.ask({"facts": True})
    want(facts["inputs"][0]["name"] == x, f"inputs: {facts}")


def large(w):
    """Weights included by the assembler."""
    g = onnxfile.Graph()
    x = g.input([1, 1100], name="x")
    g.output(g.node("MatMul", [x, g.weight(1100, 1000)]), [1, 1000])
    with open(w.path("net.onnx"), "wb") as f:
        f.write(onnxfile.model(g))
    folder = w.path('say "x\\y"')
    os.mkdir(folder)
    w.build("net.onnx", "--selftest", env={"TMPDIR": folder})
    arrays = {"x": npy.Array("f32", (1, 1100), floats(1100))}
    test, answer = w.ask({"selftest": True}, {"inputs": inputs_of(arrays)})
    want(test == {"selftest": True}, f"self-test: {test}")
    same(answer, w.expected(arrays), "large weights")


def bytes_network(w):
    """int8 products: i32x4.dot_i16x8_s."""
    for march, engine in (("simd128", "vm"), ("sse2", "c")):
        image = {"image": npy.Array("f32", (16, 1, 8, 8), [abs(x) / 4 for x in floats(1024)])}
        npy.save_npz(w.path("data.npz"), image)
        if not os.path.exists(w.path("small.onnx")):
            w.run(w.env.ingot, "quantize", DIGITS, "--data", "data.npz", "-o", "small.onnx", "--quiet")
            w.build("small.onnx", "-d", "batch=16")
        answer, = w.ask({"inputs": inputs_of(image)})
        same(answer, w.expected(image, "-d", "batch=16", march=march, engine=engine), f"bytes against {engine} {march}")


def network(w, net):
    """A network of test/suite/targets.py, by its self-test: the bits of vm, on inputs made by a formula."""
    model, _ = targets.prepare(w.env, net)
    w.build(model, "--selftest")
    test, facts = w.ask({"selftest": True}, {"facts": True})
    want(test == {"selftest": True} and facts["target"] == "simd128", f"self-test: {test}, {facts}")


REFUSED = [(2, "expected wasm", ["--target", "java", "-o", "n.wasm"]), (2, "expected OUT.wasm, found n.o", ["--target", "wasm", "-o", "n.o"]),
           (2, "simd128 (the default) and scalar", ["--march", "avx2", "-o", "n.wasm"]), (3, "--threads", ["--threads", "2", "-o", "n.wasm"]),
           (3, "--backend", ["--backend", "llvm", "-o", "n.wasm"]), (3, "--lto", ["--lto", "-o", "n.wasm"]), (3, "--weights", ["--weights", "file", "-o", "n.wasm"])]


def refused(w):
    for code, words, args in REFUSED:
        w.run(w.env.ingot, "build", DIGITS, "-d", "batch=1", *args, code=code, text=words)
    w.run(w.env.ingot, "build", DIGITS, os.path.join(ROOT, "test", "docs", "tour.onnx"), "-d", "batch=1", "-o", "n.wasm", code=3, text="one model")
    want(not [x for x in os.listdir(w.dir) if x.startswith("n.")], f"files are left: {os.listdir(w.dir)}")


def missing(w):
    """Missing tools are reported with their package before work begins."""
    os.mkdir(w.path("bin"))
    for package in ("clang", "lld"):
        w.run(w.env.ingot, "build", "no-such.onnx", "-o", "n.wasm", code=5, text=f"(Debian package {package})", env={"PATH": w.path("bin")})
        os.symlink(shutil.which("clang"), w.path("bin/clang")) if package == "clang" else None


def tests(env):
    plain = {"digits": digits, "types": types, "halves": halves, "state": state, "open": open_sizes, "found": found_sizes, "errors": errors, "addresses": addresses, "names": names, "large": large,
             "bytes": bytes_network, "refused": refused, "missing": missing}
    out = [Test(f"wasm/{n}", lambda n=n, f=f: f(Work(env, n)), cost=2) for n, f in plain.items()]
    return out + [Test(f"wasm/{n}", lambda n=n: network(Work(env, n), n), cost=5) for n in ("mobile21", "attention", "attention-float16")]
