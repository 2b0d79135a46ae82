"""Block formats (src/ir/quant/qblocks.def): dequantized blocks equal those of the gguf package to the bit, on random and extreme
blocks.

Products with rows of blocks have the same bits on every engine, one row at a time or together, and with any number of threads.
Blocks are random, with small scales.
Skipped without the gguf package.
"""
import os
import random
import re
import struct
import zipfile
from lib import cpu, npy
from lib.core import ROOT, Fail, Skip, Test, explain, run

# kind: elements, bytes, offsets of f16 values
KINDS = {"Q4_0": (32, 18, (0,)), "Q4_1": (32, 20, (0, 2)), "Q5_0": (32, 22, (0,)), "Q5_1": (32, 24, (0, 2)), "Q8_0": (32, 34, (0,)),
         "Q2_K": (256, 84, (80, 82)), "Q3_K": (256, 110, (108,)), "Q4_K": (256, 144, (0, 2)), "Q5_K": (256, 176, (0, 2)),
         "Q6_K": (256, 210, (208,)), "IQ4_NL": (32, 18, (0,)), "IQ4_XS": (256, 136, (0,)), "TQ1_0": (256, 54, (52,)),
         "TQ2_0": (256, 66, (64,)), "MXFP4": (32, 17, ())}
PLAIN = {"F32": 4, "F16": 2, "BF16": 2, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F64": 8}
# One per code path of the kernels: 4, 8, 5, 6, 3 bits; groups of 16; scales in f16, bytes and f32; with offsets
WAYS = ("Q4_1", "Q8_0", "Q5_0", "Q2_K", "Q4_K", "Q6_K", "MXFP4", "Q3_K")
ENDS = (0x00, 0xff)  # of the first rows of weights
ROWS, LENGTH, TOKENS = 37, 512, 13  # not a multiple of lanes or tiles; tokens: tiles of eight, of four, and one more


def case(env, kind):
    """Returns (blocks, floats as the gguf package dequantizes them)."""
    out = env.scratch("blocks", kind)
    got = run([env.need_lm(), os.path.join(ROOT, "test", "make", "blocks.py"), kind, out], 60)
    if got.rc:
        raise Fail(explain(got))
    return [open(os.path.join(out, name), "rb").read() for name in ("in", "out")]


def words(data):
    """Bits of floats; all NaN are equal."""
    return [0x7fc00000 if x & 0x7fffffff > 0x7f800000 else x for x, in struct.iter_unpack("<I", data)]


def same(got, want, what=""):
    got, want = words(got), words(want)
    if len(got) != len(want):
        raise Fail(f"{what}{len(got)} floats, expected {len(want)}")
    wrong = [i for i, (a, b) in enumerate(zip(got, want)) if a != b]
    if wrong:
        raise Fail(f"{what}{len(wrong)} of {len(want)} floats differ, the first is {wrong[0]}: {got[wrong[0]]:#x}, expected {want[wrong[0]]:#x}")


def decode(env, kind):
    data, want = case(env, kind)
    got = run([os.path.join(env.build, "unit", "ir_block"), kind], 20, stdin=data)
    if got.rc:
        raise Fail(explain(got))
    same(got.out, want)


def ingot(env, *args, native=None):
    """native: the target that replaces this machine."""
    got = run([env.need_ingot(), *args], 60, env={"INGOT_NATIVE": native} if native else None)
    if got.rc or got.timed_out:
        raise Fail(f"{' '.join(args)}: {explain(got)}")
    return got.out


def values(env, model, inputs, *options, native=None):
    """Bytes of each output."""
    out = model + ".npz"
    given = [x for name, path in inputs.items() for x in ("--input", f"{name}=@{path}")]
    ingot(env, "run", model, *given, "--quiet", "--output", out, *options, native=native)
    return {name: struct.pack(f"<{len(a.data)}f", *a.data) for name, a in npy.load_npz(out).items()}


def write(path, data):
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def apart(env, kind):
    """`dequantize` on engines gives the bits of the gguf package, or of ref for plain elements."""
    out = env.scratch("blocks", kind)
    if kind in PLAIN:
        elems, size, count = 1, PLAIN[kind], 64
        data, want = random.Random(kind).randbytes(size * count), None
    else:
        data, want = case(env, kind)
        elems, size, _ = KINDS[kind]
        count = len(data) // size
    model = write(os.path.join(out, "apart.ing"), f"graph (%x \"x\": u8[{count},{size}]) {{\n"
                  f"  %y: f32[{count * elems}] = dequantize(%x) {{kind=\"{kind}\"}}\n  return %y \"y\"\n}}\n")
    x = write(os.path.join(out, "x.npy"), npy.encode(npy.Array("u8", (count, size), list(data))))
    for options in (["--engine", "ref"], [], ["--march", "avx2"]):
        got = values(env, model, {"x": x}, *options)["y"]
        want = want or got
        same(got, want, f"{options}: ")


def put_ends(data, at, kind, end):
    """The block at `at` gets the smallest or the largest of all integers, and the largest scales."""
    elems, size, halves = KINDS[kind]
    kept = [data[at + half:at + half + 2] for half in halves]
    data[at:at + size] = bytes([end ^ 0x80 if kind == "Q8_0" else end]) * size  # signed: -128, 127
    for half, value in zip(halves, kept):
        data[at + half:at + half + 2] = value
    if kind == "Q6_K":
        data[at + 192:at + 208] = b"\x80" * 16  # -128


def weights(rng, kind, rows, length):
    elems, size, halves = KINDS[kind]
    data = bytearray(rng.randbytes(rows * length // elems * size))
    for at in range(0, len(data), size):
        for half in halves:
            data[at + half:at + half + 2] = struct.pack("<e", rng.gauss(0, 0.02))
        if kind == "MXFP4":
            data[at] = rng.randrange(118, 125)
        elif at * rows // len(data) < len(ENDS):
            put_ends(data, at, kind, ENDS[at * rows // len(data)])
    return data


def products(rng, kinds, rows=ROWS, length=LENGTH):
    """A graph with a product for each kind, finished by a sum."""
    lines = []
    for k, kind in enumerate(kinds):
        elems, size, _ = KINDS[kind]
        data = ", ".join(map(str, weights(rng, kind, rows, length)))
        lines += [f"  %w{k}: u8[{rows},{length // elems},{size}] = const {{{data}}}",
                  f"  %f{k}: f32[{rows},{length}] = dequantize(%w{k}) {{kind=\"{kind}\"}}",
                  f"  %c{k}: f32[t,{rows}] = contract(%x, %f{k}) {{spec=\"tk,rk->tr\"}}",
                  f"  %y{k}: f32[t,{rows}] = add(%c{k}, %b)"]
    results = ", ".join(f'%y{k} "{kind}"' for k, kind in enumerate(kinds))
    return "\n".join(["graph m", "sym t in 0..16", f'(%x "x": f32[t,{length}], %b "b": f32[t,{rows}]) {{', *lines, f"  return {results}", "}", ""])


class Products:
    """All products on some rows of random inputs."""

    def __init__(self, env, name, kinds, length=LENGTH):
        rng, self.length = random.Random(0), length
        self.env, self.folder = env, env.scratch("blocks", name)
        self.model = write(os.path.join(self.folder, "products.ing"), products(rng, kinds, length=length))
        self.x = [rng.gauss(0, 1) for _ in range(TOKENS * length)]
        self.x[:64] = [0.0] * 32 + [3e38, -3e38] + [1e-45] * 30  # a group of zeros, one of extremes
        self.x[length:3 * length] = [1.0] * length + [-1.0] * length  # the largest values: 127 and -127, or 63 where products are summed in 16 bits
        self.b = [rng.gauss(0, 1) for _ in range(TOKENS * ROWS)]

    def run(self, *options, rows=(0, TOKENS), model=None, native=None):
        first, n = rows
        inputs = {}
        for name, data, length in (("x", self.x, self.length), ("b", self.b, ROWS)):
            array = npy.Array("f32", (n, length), data[first * length:(first + n) * length])
            inputs[name] = write(os.path.join(self.folder, f"{name}.npy"), npy.encode(array))
        return values(self.env, model or self.model, inputs, *options, native=native)


def all_same(got, want, what):
    for kind in want:
        same(got[kind], want[kind], f"{what} {kind}: ")


def exact(env):
    """Engines agree with the reference, with int8 and with f32 activations."""
    p = Products(env, "exact", KINDS)
    parts = os.path.join(p.folder, "parts.ing")
    ingot(env, "opt", p.model, "--stop=dequantize", "--output", parts)
    ints, floats = p.run("--engine", "ref", model=parts), p.run("--engine", "ref")
    all_same(p.run(), ints, "interp")
    all_same(p.run("--engine", "vm"), ints, "vm")
    all_same(p.run("--engine", "c"), ints, "c")
    all_same(p.run("--precise"), floats, "precise")
    near(ints, floats, 0.02)


def vectors(env, march):
    p = Products(env, march, WAYS)
    options = ["--march", march]
    want = p.run(*options)
    all_same(p.run(*options, "--engine", "vm"), want, "vm")
    if cpu.can_run(march):
        all_same(p.run(*options, "--engine", "c"), want, "c")
    all_same(p.run(*options, "--threads", "3", "--threads-grain", "1"), want, "threads")
    parts = [p.run(*options, rows=rows) for rows in ((0, 1), (1, 4), (5, 8))]
    all_same({kind: b"".join(part[kind] for part in parts) for kind in WAYS}, want, "rows")
    near(p.run(*options, "--precise"), p.run("--precise"), 1e-5)


def without_dot_i8x4(env):
    """A CPU that is known to lack a 4-way int8 dot product multiplies by pairs, to the same bits; if the CPU is not known, as
    for text, dot_i8x4 is used."""
    p, texts = Products(env, "pairs", WAYS), {}
    want = p.run("--march", "avx512", "--engine", "vm")
    all_same(p.run("--march", "native", "--engine", "vm", native="avx512"), want, "vm")
    if cpu.can_run("avx512"):
        all_same(p.run("--march", "native", "--engine", "c", native="avx512"), want, "c")
    for march, native in (("avx512", None), ("native", "avx512")):
        made = os.path.join(p.folder, "m.c")
        ingot(env, "compile", p.model, "--march", march, "--quiet", "--output", made, native=native)
        texts[march] = open(made).read()
    if "ig_dot_i8x4" not in texts["avx512"] or "ig_dot_i8x4" in texts["native"]:
        raise Fail("bytes are multiplied by dot_i8x4 where that is slow, or not where it may be fast")


def prefetched(env, march):
    """One row of x reads the weights in the order of memory: only such reads are prefetched."""
    folder = env.scratch("blocks", "prefetched-" + march)
    graph = products(random.Random(0), WAYS[:3], 64).replace("sym t in 0..16\n", "").replace("[t,", "[1,")
    made = os.path.join(folder, "m.c")
    ingot(env, "compile", write(os.path.join(folder, "m.ing"), graph), "--march", march, "--quiet", "--output", made)
    text = open(made).read()
    kernels = [part.split("#else")[0] for part in text.split("static IG_NOINLINE void ") if part.startswith("m_matmul_quant")]
    orders = [[int(at or 0) for at in re.findall(r"= \*\(const ig_i32x\d+u \*\)&w\[[^]]*?(?: \+ (\d+))?\];", k)] for k in kernels]
    if len(orders) != 3 or any(len(at) < 16 or at != sorted(at) for at in orders):
        raise Fail(f"weights are read in the orders {orders}")
    fetched = [len(re.findall(r"IG_PREFETCH\(&w\[", k)) for k in kernels]  # and written by hand
    if fetched != [len(at) for at in orders]:
        raise Fail(f"{fetched} of {[len(at) for at in orders]} vectors are fetched ahead")
    said = ingot(env, "opt", os.path.join(folder, "m.ing"), "--march", march, "--constants=all")
    again = write(os.path.join(folder, "again.ing"), said)
    if ingot(env, "opt", again, "--stop=none", "--constants=all") != said or b"prefetch " not in said:
        raise Fail("what is fetched ahead is not in the text, or not read back")


def careful(env, march):
    """Programs under sanitizers give the bits of the interpreter without a finding."""
    p = Products(env, "careful-" + march, KINDS)
    program, given, made = (os.path.join(p.folder, name) for name in ("prog", "in.npz", "out.npz"))
    if not cpu.can_run(march):
        raise Skip(f"this machine has no {march}")
    expected = p.run("--march", march)  # leaves x and b in the folder
    ingot(env, "build", p.model, "--march", march, "-O", "1", "--sanitize", "address,undefined", "--quiet", "--output", program)
    with zipfile.ZipFile(given, "w") as z:
        for name in "xb":
            z.write(os.path.join(p.folder, f"{name}.npy"), f"{name}.npy")
    got = run([program, "--inputs", given, "--output", made], 60)
    if got.rc or b"runtime error" in got.err:
        raise Fail(explain(got))
    all_same({name: struct.pack(f"<{len(a.data)}f", *a.data) for name, a in npy.load_npz(made).items()}, expected, "careful")


def parts(env):
    """Long rows of weights are unpacked in parts, here with a shorter last part: the buffer fits in L1 for any length."""
    p = Products(env, "parts", ("Q8_0",), 19 * 32)
    options = ["--march", "avx2"]
    want = p.run(*options)
    all_same(p.run(*options, "--engine", "vm"), want, "vm")
    all_same(p.run(*options, "--threads", "3", "--threads-grain", "1"), want, "threads")
    if cpu.can_run("avx2"):
        all_same(p.run(*options, "--engine", "c"), want, "c")
    alone = [p.run(*options, rows=(at, 1))["Q8_0"] for at in range(TOKENS)]
    same(b"".join(alone), want["Q8_0"], "rows one by one")
    said = ingot(env, "opt", p.model, *options).decode()
    units = [int(n) for n in re.findall(r"unpacked\S*: local i32\[(\d+),", said)]
    if not units or max(units) >= 19:
        raise Fail(f"{units} units are unpacked at a time")


def tiles(env):
    """Rows of x in a tile: half as many where two panels share the loads."""
    folder = env.scratch("blocks", "tiles")
    model = write(os.path.join(folder, "m.ing"), products(random.Random(0), ("Q4_K", "Q6_K", "Q8_0"), 64))
    said = ingot(env, "opt", model, "--march", "avx2", "--explain").decode()
    got = dict(re.findall(r"of (Q\w+), (\d+) rows of 8 lanes", said))
    if got != {"Q4_K": "8", "Q6_K": "4", "Q8_0": "4"}:
        raise Fail(f"tiles have {got} rows")


def near(got, want, by):
    """Compares relative to the largest element; leaves out the first row, which has infinite factors."""
    for kind in want:
        g, w = ([x for x, in struct.iter_unpack("<f", data[kind])][ROWS:] for data in (got, want))
        if max(abs(a - b) for a, b in zip(g, w)) > by * max(map(abs, w)):
            raise Fail(f"{kind}: {g[:4]}, expected {w[:4]}")


def tests(env):
    return [Test(f"blocks/product/prefetched/{march}", lambda m=march: prefetched(env, m), 1) for march in ("avx2", "avx512")] + \
        [Test(f"blocks/decode/{kind}", lambda k=kind: decode(env, k), 0.5) for kind in ["BF16", *KINDS]] + \
        [Test(f"blocks/apart/{kind}", lambda k=kind: apart(env, k), 1) for kind in [*PLAIN, *KINDS]] + \
        [Test(f"blocks/product/careful/{march}", lambda m=march: careful(env, m), 20) for march in ("scalar", "avx2", "avx512")] + \
        [Test("blocks/product/without_dot_i8x4", lambda: without_dot_i8x4(env), 5)] + \
        [Test("blocks/product/exact", lambda: exact(env), 4), Test("blocks/product/tiles", lambda: tiles(env), 1), Test("blocks/product/parts", lambda: parts(env), 3)] + \
        [Test(f"blocks/product/{march}", lambda m=march: vectors(env, m), 5) for march in ("sse2", "avx2", "avx512")]
