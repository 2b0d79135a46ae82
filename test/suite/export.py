"""`ingot opt MODEL -o OUT.onnx`: the optimized graph as ONNX gives the results of the model in ONNX Runtime.

Core operators without an ONNX form are refused by name.
"""
import os
from lib import npy
from lib.core import Skip, Test, must, want
from suite.cli import MODEL, Cli

CHECK = "export/refused"
STEP = 9  # every ninth official case
# ONNX Runtime lacks these for the types of the case, or deviates from the standard.
OTHER = ("test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners",
         "test_convinteger_with_padding", "test_bitshift_left_uint16", "test_bitshift_right_uint16")


def official(env, first):
    if not env.data:
        raise Skip("no official test data: the onnx wheel could not be had (see build/setup.log)")
    node = os.path.join(env.data, "node")
    cases = [os.path.join(node, n) for n in sorted(os.listdir(node)) if n not in OTHER][first::STEP]
    out = os.path.join(env.scratch("export", str(first)), "out.onnx")
    lines = env.script("ortexport.py", env.need_ingot(), out, *cases).splitlines()
    wrong = [x for x in lines if x.startswith("differs")]
    refused = [x for x in lines if x.startswith("refused")]
    want(not wrong, "; ".join(wrong))
    silent = [x for x in refused if "has no ONNX form" not in x and "not written as ONNX" not in x and "not supported" not in x]
    want(not silent, "refused without a name: " + "; ".join(silent))
    same = sum(x.startswith("same") for x in lines)
    want(same > 0.7 * len(lines), f"only {same} of {len(lines)} cases were compared")


def compare(c, model, dims, export_dims=()):
    """Runs generated inputs through the model on vm and through its export in ONNX Runtime."""
    c.run("run", model, *dims, "--seed", "3", "-o", "want.npz")
    c.run("run", "out.onnx", *export_dims, "--seed", "3", "-e", "onnxruntime", "--python", c.env.need_python(), "-o", "have.npz")
    have, expected = (npy.load_npz(c.path(n)) for n in ("have.npz", "want.npz"))
    want(sorted(have) == sorted(expected), f"{sorted(have)}, expected {sorted(expected)}")
    for name, x in expected.items():
        y = have[name]
        want(x.shape == y.shape, f"{name}: {y.shape}, expected {x.shape}")
        floor = 1e-4 * max(1.0, max(map(abs, x.data), default=0.0))
        want(all(abs(a - b) <= floor for a, b in zip(x.data, y.data)), f"{name}: other numbers")


def symbolic(c):
    c.env.need_python()
    c.run("opt", MODEL, "--max-shapes", "batch=8", "-o", "out.onnx")
    for n in (1, 5):
        compare(c, MODEL, ("-d", f"batch={n}"), ("-d", f"batch={n}"))


def again(c):
    """A file may be replaced; names stay; reading it gives the same program."""
    for _ in range(2):
        c.run("opt", MODEL, "-d", "batch=1", "-o", "out.onnx")
    text = c.run("inspect", "out.onnx").out.decode()
    want("image" in text and "probability" in text, "the names of inputs and outputs are lost")
    first, second = (c.run("opt", *m, "--stop=canon").out.count(b"conv(") for m in ((MODEL, "-d", "batch=1"), ("out.onnx",)))
    want(first == second, f"{second} convolutions, expected {first}")


def real(c, name, *dims):
    model = os.path.join(c.env.build, "models", name)
    c.env.need_python()
    if not os.path.exists(model):
        raise Skip("the models of test/models.txt could not be had (see build/setup.log)")
    c.run("opt", model, *dims, "-o", "out.onnx")
    compare(c, model, dims)


# Outputs without a node of their name: extents, an operand that a pad returns.
VALUES = {"dims": """graph sym n in 1..8 sym m in 1..8 (%x "x": f32[n,m]) {
  %a: i64[1] = dims {to=i64, rank=1, shape=[n]}
  %b: i64[2] = dims {to=i64, rank=1, shape=[n,m]}
  %c: i64[1] = dims {to=i64, rank=1, shape=[n]}
  %d: i64[] = dims {to=i64, rank=0, shape=[m]}
  %e: f32[n,m] = neg(%x)
  return %a "a", %b "b", %c "c", %d "d", %a "again", %e "e"
}
""", "pad": """graph (%x "x": f32[2,3]) {
  %z: f32[] = const {0}
  %y: f32[2,3] = pad(%x, %z) {lo=[0,0], hi=[0,0], interior=[0,0]}
  return %y "y"
}
""", "cast": """graph (%x "x": f32[2,3]) {
  %h: f16[2,3] = cast(%x) {to=f16}
  %g: bf16[2,3] = cast(%x) {to=bf16}
  %a: i16[2,3] = cast(%h) {to=i16, sat=1}
  %b: u16[2,3] = cast(%h) {to=u16, sat=1}
  %c: i16[2,3] = cast(%g) {to=i16, sat=1}
  %d: u16[2,3] = cast(%g) {to=u16, sat=1}
  return %a "a", %b "b", %c "c", %d "d"
}
""", "requant": """graph (%x "x": f32[2,3]) {
  %k: f32[] = const {30000}
  %s: f32[2,3] = mul(%x, %k)
  %i: i32[2,3] = cast(%s) {to=i32, sat=1}
  %m: i32[3] = const {2147483647, -1500000001, 1073741824}
  %t: i32[2,1] = const {0, 5}
  %y: i32[2,3] = requant(%i, %m, %t)
  %z: i32[2,3] = requant(%i, %m, %i)
  %l: i32[2,3] = shl(%i, %t)
  %r: i32[2,3] = shr(%i, %t)
  return %y "y", %z "z", %l "l", %r "r"
}
"""}


def values(c, text):
    """onnx.checker accepts the model, and ONNX Runtime gives the numbers of ref."""
    python = c.env.need_python()
    c.save("a.ing", text.encode())
    npy.save_npz(c.path("x.npz"), {"x": npy.Array("f32", (2, 3), [-1e5, -32768.0, 60000.0, 65504.0, 32767.0, -3.0])})
    c.run("opt", "a.ing", "--stop=none", "-o", "out.onnx")
    must([python, "-c", "import onnx; onnx.checker.check_model(onnx.load('out.onnx'), full_check=True)"], "onnx.checker", cwd=c.dir)
    c.run("run", "a.ing", "--engine", "ref", "--inputs", "x.npz", "-o", "want.npz")
    c.run("run", "out.onnx", "--inputs", "x.npz", "-e", "onnxruntime", "--python", python, "-o", "have.npz")
    have, expected = (npy.load_npz(c.path(n)) for n in ("have.npz", "want.npz"))
    for name in expected:
        far = npy.differ(have[name], expected[name])
        want(not far, f"{name} {far}")


def refused(c):
    with open(c.path("a.ing"), "w") as f:
        f.write("""graph (%1 "x": f32[4,3]) {
  %2: f32[4,3] = cumprod(%1) {axis=0, exclusive=0, reverse=0}
  %3: f32[4,3] = random {shape=[4,3], seed=1, to=f32}
  %4: f32[4,3] = add(%2, %3)
  return %4 "y"
}
""")
    got = c.run("opt", "a.ing", "-o", "out.onnx", code=3, text="'cumprod' has no ONNX form")
    want(b"'random' has no ONNX form" in got.err, "the second operator is not named")
    want(not os.path.exists(c.path("out.onnx")), "a file was written")
    c.save("b.ing", b"""graph (%x "x": i32[1,2,4,4]) {
  %y: i32[1,2,2,2] = pool_max(%x) {window=[2,2], stride=[2,2], pad_lo=[0,0], pad_hi=[0,0], dilation=[1,1]}
  return %y "y"
}
""")
    c.run("opt", "b.ing", "-o", "out.onnx", code=3, text="'pool_max' of i32 has no ONNX form")
    c.run("opt", MODEL, "-d", "batch=1", "--stop=plan", "-o", "out.onnx", code=2, text="--stop=canon")
    c.run("opt", MODEL, "-d", "batch=1", "--march", "avx2", "--stop=layout", "-o", "out.onnx", code=2, text="--stop=canon")


def tests(env):
    out = [Test(f"export/official/{i}", lambda i=i: official(env, i)) for i in (0, 4)]
    for name, fn in (("symbolic", symbolic), ("again", again), ("refused", refused)):
        out.append(Test(f"export/{name}", lambda name=name, fn=fn: fn(Cli(env, "export-" + name))))
    for name, text in VALUES.items():
        out.append(Test(f"export/values/{name}", lambda name=name, text=text: values(Cli(env, "export-values-" + name), text)))
    for name, dims in (("basic_pitch", ()), ("magika", ()), ("ppocr_cls", ("-d", "x:2=48", "-d", "x:3=192")),
                       ("silero_vad_op18_ifless", ("-d", "sequence=512")), ("silero_vad_v6", ())):
        out.append(Test(f"export/{name}", lambda name=name, dims=dims: real(Cli(env, "export-" + name), name + ".onnx", *dims)))
    return out
