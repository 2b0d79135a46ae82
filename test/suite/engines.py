"""All engines give the same bits and refuse the same inputs: random graphs of every operator, and the official suite.

Passes that may change the last bits are left out: engines that read programs run what `ingot opt --precise` prints without them.
NaN equals NaN, because the CPU chooses the payload.
"""
import os
import shutil
from lib import npy, pick, randop
from lib.core import ENGINES, Fail, Skip, Test, explain, run, tail

LIMIT = 60
SEEDS, COUNT = 3, 12  # graphs per operator, results per graph


def is_nan(a, i):
    return a.kind[0] == "f" and a.data[i] != a.data[i]


def same(x, y):
    if (x.kind, x.shape) != (y.kind, y.shape):
        return f"{x.kind}{list(x.shape)} and {y.kind}{list(y.shape)}"
    if npy.encode(x) == npy.encode(y):
        return None
    for i in range(len(x.data)):
        pair = [npy.encode(npy.Array(a.kind, (), [a.data[i]])) for a in (x, y)]
        if pair[0] != pair[1] and not (is_nan(x, i) and is_nan(y, i)):
            return f"element {i}: {x.data[i]!r} and {y.data[i]!r}"
    return None


def inexact(env):
    got = run([env.ingot, "passes"], LIMIT)
    return ",".join(x.split()[0] for x in got.out.decode().splitlines() if "last bits may change" in x)


def program(env, model, args, folder):
    path = os.path.join(folder, "prog.ing")
    skip = env.once("inexact passes", lambda: inexact(env))
    got = run([env.ingot, "opt", model, *args, "--quiet", "--check", "--precise", f"--skip={skip}", "--output", path], LIMIT)
    if got.rc == 3:
        raise Skip(f"refused: {tail(got.text(), 1)}")
    if got.rc or got.timed_out:
        raise Fail(f"opt: {explain(got)}: {tail(got.text(), 4)}")
    return path


def execute(env, model, args, folder, engine, many, flat):
    """Outputs by name: arrays from an archive, or bytes of .pb files if an archive cannot hold them."""
    if engine != "ref" and flat:  # a program does not know which tensors are sequences or strings of the model
        model = program(env, model, args, folder)
    out = os.path.join(folder, engine + ("" if many else ".npz"))
    if many:
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
    got = run([env.ingot, "run", model, *args, "--quiet", "--engine", engine, "--output", out], LIMIT)
    if got.rc == 3:
        raise Skip(f"{engine}: refused: {tail(got.text(), 1)}")
    if got.rc or got.timed_out:
        raise Fail(f"{engine}: {explain(got)}: {tail(got.text(), 4)}")
    if not many:
        return npy.load_npz(out)
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            found[name] = f.read()
    return found


def compare(env, model, args, folder, many, flat=True):
    first = execute(env, model, args, folder, ENGINES[0], many, flat)
    if not first:
        raise Fail("no outputs were written")
    for engine in ENGINES[1:]:
        other = execute(env, model, args, folder, engine, many, flat)
        if first.keys() != other.keys():
            raise Fail(f"{engine} writes other outputs than {ENGINES[0]}")
        for name in first:
            where = same(first[name], other[name]) if not many else first[name] != other[name] and "the files differ"
            if where:
                raise Fail(f"{name}: {ENGINES[0]} and {engine} differ: {where}")


def random_graph(env, op, seed):
    env.need_ingot()
    folder = env.scratch("engines", f"{op}{seed}")
    g = randop.graph(f"{op}{seed}", op, COUNT)
    model = os.path.join(folder, "graph.ing")
    with open(model, "w") as f:
        f.write(g.text())
    args = []
    for name, a in g.inputs.items():
        npy.save(os.path.join(folder, name + ".npy"), a)
        args += ["--input", f"{name}=@{os.path.join(folder, name)}.npy"]
    compare(env, model, args, folder, False)


# Nodes whose symbolic extents do not match: type and shape of each operand at run time, and the node.
MISFITS = {
    "map": (["f32 2", "f32 3"], "f32[n]", "add(%x, %y)", "n", "m"),
    "map_late": (["f32 1", "f32 3"], "f32[n]", "add(%x, %y)", "n", "m"),
    "broadcast": (["f32 2"], "f32[4]", "broadcast(%x) {shape = [4]}", "n"),
    "contract": (["f32 2,3", "f32 4,2"], "f32[2,2]", 'contract(%x, %y) {spec = "ik,kj->ij"}', "2,n", "m,2"),
    "conv": (["f32 1,1,2", "f32 1,1,3"], "f32[1,1,n-2]", "conv(%x, %y) {group = 1, stride = [1], dilation = [1], "
             "pad_lo = [0], pad_hi = [0]}", "1,1,n", "1,1,3"),
    "pool": (["f32 2"], "f32[n-2]", "pool_max(%x) {window = [3], stride = [1], dilation = [1], pad_lo = [0], "
             "pad_hi = [0]}", "n"),
    "reshape": (["f32 2,2"], "f32[6]", "reshape(%x) {shape = [6]}", "n,2"),
    "reshape_less": (["f32 4,2"], "f32[6]", "reshape(%x) {shape = [6]}", "n,2"),
    "slice": (["f32 2"], "f32[3]", "slice(%x) {start = [0], step = [1], size = [3]}", "n"),
    "slice_back": (["f32 2"], "f32[1]", "slice(%x) {start = [4], step = [-1], size = [1]}", "n"),
    "concat": (["f32 2,1", "f32 3,1"], "f32[n,2]", "concat(%x, %y) {axis = 1}", "n,1", "m,1"),
    "pad": (["f32 0", "f32 "], "f32[2*n+1]", "pad(%x, %y) {lo = [1], hi = [1], interior = [1]}", "n", ""),
    "gather": (["f32 0", "i64 1"], "f32[1]", "gather(%x, %y) {axis = 0}", "n", "1"),
    "gather_elems": (["f32 1,1", "i64 2,1"], "f32[m,1]", "gather_elems(%x, %y) {axis = 1}", "n,1", "m,1"),
    "gather_nd": (["f32 2,2", "i64 3,1"], "f32[m]", "gather_nd(%x, %y) {batch = 1}", "n,2", "m,1"),
    "scatter_elems": (["f32 4", "i64 2", "f32 3"], "f32[4]", 'scatter_elems(%x, %y, %z) {axis = 0, reduce = "add"}',
                      "4", "n", "m"),
    "scatter_nd": (["f32 4", "i64 2,1", "f32 3"], "f32[4]", 'scatter_nd(%x, %y, %z) {reduce = "add"}', "4", "n,1", "m"),
    "argmax": (["f32 2,0"], "i64[2]", "argmax(%x) {axis = 1, keep = 0, last = 0}", "2,n"),
    "topk": (["f32 2", "f32 3"], "f32[m], %i: i64[m]", "topk(%x) {axis = 0, k = [m], largest = 1}", "n", "m"),
}


def misfit(env, name):
    env.need_ingot()
    folder = env.scratch("engines", "misfit_" + name)
    operands, result, node, *types = MISFITS[name]
    params, args = [], []
    for v, operand, dims in zip("xyz", operands, types):
        kind, shape = operand.split(" ")
        shape = tuple(int(d) for d in shape.split(",") if d)
        path = os.path.join(folder, v + ".npy")
        npy.save(path, npy.Array(kind, shape, [0] * npy.count(shape)))
        params.append(f'%{v} "{v}": {kind}[{dims}]')
        args += ["--input", f"{v}=@{path}"]
    model = os.path.join(folder, "graph.ing")
    with open(model, "w") as f:
        syms = "".join(f" sym {s} in 0..9" for s in "nm" if any(s in t for t in types))
        f.write(f'graph{syms} ({", ".join(params)}) {{\n  %r: {result} = {node}\n  return %r "r"\n}}\n')
    for engine in ENGINES:
        got = run([env.ingot, "run", model, *args, "--quiet", "--engine", engine], LIMIT)
        if got.rc != 4:
            raise Fail(f"{engine}: {explain(got)}, expected exit 4: {tail(got.text(), 4)}")


NANS = """graph (%x: f32[4]) {
  %zero: f32[] = const {0}
  %a: f32[4] = mul(%x, %zero)
  %b: f32[4] = div(%a, %zero)
  %c: f32[4] = neg(%b)
  %d: f32[4] = add(%b, %c)
  %e: f32[4] = sqrt(%c)
  %f: f32[4] = max(%d, %e)
  return %b, %c, %d, %e, %f
}
"""


def nans(env):
    """The compiler chooses the signs of NaN, differently at each level: the self-test accepts both."""
    folder = env.scratch("engines", "nans")
    model, made = os.path.join(folder, "nans.ing"), os.path.join(folder, "nans")
    with open(model, "w") as f:
        f.write(NANS)
    for cc, level in (("gcc", "0"), ("gcc", "3"), ("clang", "2"), ("tcc", "0")):
        if not shutil.which(cc):
            continue
        got = run([env.need_ingot(), "build", model, "--selftest", "--march", "scalar", "--cc", cc, "-O", level, "-o", made], LIMIT)
        got = got if got.rc else run([made, "--selftest"], LIMIT)
        if got.rc or b"passed" not in got.out:
            raise Fail(f"{cc} -O{level}: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")
    got = run([env.ingot, "verify", model, "--engine", "c", "--rtol", "0", "--atol", "0"], LIMIT)
    if got.rc:
        raise Fail(f"verify: {explain(got)}: {tail(got.out.decode() + got.text(), 8)}")


def official(env, case):
    env.need_ingot()
    compare(env, case["model"], ["--data", case["data"]], env.scratch("engines", case["name"]), True, case["flat"])


def tests(env):
    out = [Test(f"engines/{op}-{seed}", lambda o=op, s=seed: random_graph(env, o, s))
           for op in randop.OPS for seed in range(SEEDS)]
    out.append(Test("engines/nans", lambda: nans(env), cost=2))
    out += [Test(f"engines/misfit_{name}", lambda n=name: misfit(env, n)) for name in MISFITS]
    return out + [Test("engines/" + c["name"], lambda c=c: official(env, c)) for c in pick.per_operator(env)]
