"""Compares random ONNX models with ONNX Runtime: genonnx.py [--seed N] [--count N] [--ops NAMES] [--engine interp] [--c EVERY]
[--save FOLDER].

A model grows node by node: the script picks an operator, existing values as operands, and attributes that fit them.
ONNX Runtime computes each node at once, so all shapes and values are known; a node that it refuses is dropped.
Then ingot runs the whole model twice: as it is, and with every value as an output.
A value is compared if its operands agree.
Operators whose results jump (Floor, ArgMax) or amplify differences are compared only if their operands are equal to the bit.

Runs with the Python of build/venv.
It prints each failure with the smallest part of the model that still fails, and saves it.
"""
import argparse
import os
import random
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
sys.path.insert(0, os.path.join(ROOT, "test"))
import ingot  # noqa: E402
import ingot.backend  # noqa: E402
import genops_more  # noqa: E402, F401
import oracle  # noqa: E402
from genops import JUMPS, OPS  # noqa: E402

OPSETS = (13, 15, 17, 18, 19, 20, 21, 22, 23)
IR = 10


def ort_run(model, feeds):
    return oracle.session(model.SerializeToString(), optimise=False, threads=1).run(None, feeds)


class Node:
    def __init__(self, op, ins, outs, attrs, graphs):
        self.op, self.ins, self.outs, self.attrs, self.graphs = op, ins, outs, attrs, graphs

    def proto(self):
        return helper.make_node(self.op, self.ins, self.outs, **self.attrs)

    def reads(self):
        inner = [i for g in self.graphs for n in g.node for i in n.input] + [o.name for g in self.graphs for o in g.output]
        return [i for i in self.ins if i] + inner


class Gen:
    """A model under construction; `values` holds the contents of every value."""

    def __init__(self, seed, ops):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.values, self.inputs, self.inits, self.nodes = {}, [], [], []
        self.count = 0
        self.opset = self.r.choice(OPSETS)
        self.whole = self.r.random() < 0.5  # only small whole numbers
        names = ops or [n for n in OPS if self.r.random() < 0.5]
        self.ops = [n for n in names if OPS[n][1] <= self.opset]
        self.sizes = [self.r.choice((1, 2, 3, 4, 5, 7, 8)) for _ in range(3)]

    # ---- values ----

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def data(self, dtype, shape, lo=None, hi=None):
        dtype = np.dtype(dtype)
        if dtype == bool:
            return self.np.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.np.integers(0 if dtype.kind == "u" and lo is None else -9 if lo is None else lo,
                                    10 if hi is None else hi, shape).astype(dtype)
        if lo is not None:
            return self.np.uniform(lo, hi, shape).astype(dtype)
        return (self.np.integers(-8, 9, shape) / 2 if self.whole else self.np.normal(0, 2, shape)).astype(dtype)

    def put(self, x, constant=None):
        """Adds an input or initializer with contents x."""
        name = self.name()
        self.values[name] = x
        constant = self.r.random() < 0.4 if constant is None else constant
        (self.inits if constant else self.inputs).append(name)
        return name

    def const(self, x, dtype=np.int64):
        return self.put(np.array(x, dtype), True)

    def shape(self, lo=0, hi=4):
        return tuple(self.r.choice(self.sizes) if self.r.random() < 0.9 else self.r.choice((1, 6, 9))
                     for _ in range(self.r.randint(lo, hi)))

    def some(self, kinds="f", lo=0, hi=4, where=lambda x: True):
        """Returns a value with one of these numpy kinds and a rank within bounds; adds one if none exists."""
        fits = [n for n, x in self.values.items()
                if isinstance(x, np.ndarray) and x.dtype.kind in kinds and x.dtype != np.float16
                and lo <= x.ndim <= hi and x.size < 5000 and where(x)]
        if fits and self.r.random() < 0.85:
            return self.r.choice(fits[-6:] if self.r.random() < 0.5 else fits)
        dtype = {"f": np.float32, "i": self.r.choice((np.int64, np.int32)), "b": np.bool_,
                 "u": np.uint8}[self.r.choice(kinds)]
        for _ in range(60):
            x = self.data(dtype, self.shape(lo, hi))
            if where(x):
                return self.put(x)
        return None

    def like(self, name):
        """Returns a value that broadcasts with this one."""
        x = self.values[name]
        fits = [n for n, y in self.values.items() if isinstance(y, np.ndarray) and y.dtype == x.dtype and y.ndim <= 4 and
                all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1]))]
        if fits and self.r.random() < 0.7:
            return self.r.choice(fits)
        shape = tuple(d if self.r.random() < 0.7 else 1 for d in x.shape)[self.r.randint(0, x.ndim) if self.r.random() < 0.4 else 0:]
        return self.put(self.data(x.dtype, shape))

    # ---- models ----

    def model(self, nodes, outputs):
        used = {i for n in nodes for i in n.reads()} | set(outputs)
        def info(n):
            x = self.values[n]
            return helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        inputs = [n for n in self.inputs if n in used]
        inits = [n for n in self.inits if n in used]
        graph = helper.make_graph([n.proto() for n in nodes], "g", [info(n) for n in inputs], [info(o) for o in outputs],
                                  [numpy_helper.from_array(self.values[n], n) for n in inits])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR), inputs

    def add(self, name):
        """Adds a node; returns False if nothing fits or ONNX Runtime refuses it."""
        made = OPS[name][0](self, name)
        if not made:
            return False
        ins, attrs, nout = made
        graphs = [a for a in attrs.values() if isinstance(a, onnx.GraphProto)]
        node = Node(name, ins, [self.name() for _ in range(nout)], attrs, graphs)
        needs = [i for i in dict.fromkeys(node.reads()) if i in self.values]
        def info(n):
            x = self.values[n]
            return helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        graph = helper.make_graph([node.proto()], "g", [info(n) for n in needs],
                                  [helper.make_empty_tensor_value_info(o) for o in node.outs])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR)
        try:
            got = ort_run(model, {n: self.values[n] for n in needs})
        except Exception:
            return False
        if any(not isinstance(x, np.ndarray) or x.size > 20000 or x.dtype.kind == "O" for x in got):
            return False
        if any(0 in x.shape for x in got) and ("Pool" in name or "Conv" in name):
            return False  # windows larger than their operand, which ingot refuses
        self.values.update(zip(node.outs, got))
        self.nodes.append(node)
        return True

    def grow(self, n):
        for _ in range(4 * n):
            if len(self.nodes) < n and self.ops:
                self.add(self.r.choice(self.ops))

    def sinks(self):
        read = {i for n in self.nodes for i in n.reads()}
        return [o for n in self.nodes for o in n.outs if o not in read or self.r.random() < 0.1]


# ---- comparison ----

def same_bits(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def close(x, y, op):
    """x is ingot's result."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{list(x.shape)}, expected {y.dtype}{list(y.shape)}"
    if x.dtype.kind not in "fc":
        off = np.abs(x.astype(np.int64) - y.astype(np.int64)).max() if x.size else 0
        return "" if off <= (1 if "Quant" in op or op.startswith("QL") else 0) else f"integers differ by {off}"
    a, b = x.astype(np.float64), y.astype(np.float64)
    bad = np.isnan(a) != np.isnan(b)
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        scale = np.abs(b[np.isfinite(b)]).max() if np.isfinite(b).any() else 0
        small = 1e-5 if x.dtype != np.float16 else 5e-3
        bad |= finite & (np.abs(a - b) > small * scale + 1e-4 * np.abs(b) + 1e-6)
        bad |= ~finite & ~np.isnan(a) & ~np.isnan(b) & (a != b)
    if not bad.any():
        return ""
    i = np.argmax(bad.ravel())
    return f"element {i}: {a.ravel()[i]!r}, expected {b.ravel()[i]!r}"


def judge(g, nodes, engine, results=None):
    """Compares every value. Returns None, "refused: ..." or a description of the first difference."""
    outs = [o for n in nodes for o in n.outs]
    model, inputs = g.model(nodes, outs)
    try:
        rep = ingot.backend.Rep(model, engine=engine, march="scalar")
        got = rep.run({n: g.values[n] for n in inputs})
    except ingot.Unsupported as e:
        return f"refused: {e}"
    except ingot.Error as e:
        return f"fails: {e}"
    have = dict(zip(outs, got))
    tainted, exact = set(), set(g.inputs) | set(g.inits)
    for n in nodes:
        reads = n.reads()
        if any(i in tainted for i in reads):
            tainted.update(n.outs)
            continue
        sure = all(i in exact or i not in g.values for i in reads)
        for o in n.outs:
            why = close(have[o], g.values[o], n.op)
            if same_bits(have[o], g.values[o]):
                exact.add(o)
            elif why and not sure and (n.op in JUMPS or have[o].dtype.kind != "f" or n.graphs):
                tainted.add(o)
            elif why:
                return f"{n.op} {o}: {why}"
    if results is not None:
        results.update({o: have[o] for o in outs if o not in tainted})
    return None


def judge_sinks(g, engine, results):
    """Compares the model as it is, after all passes, with the results of the run that had every value as an output."""
    outs = g.sinks()
    model, inputs = g.model(g.nodes, outs)
    try:
        got = ingot.backend.Rep(model, engine=engine, march="scalar").run({n: g.values[n] for n in inputs})
    except ingot.Unsupported as e:
        return f"refused: {e}"
    except ingot.Error as e:
        return f"fails: {e}"
    for o, x in zip(outs, got):
        op = next(n.op for n in g.nodes if o in n.outs)
        rough = any(n.op in JUMPS for n in g.nodes)
        why = close(x, results[o], op) if o in results else ""
        if why and not rough:
            return f"{engine} {o}: {why}"
        if why and o in results and x.shape != results[o].shape:
            return f"{engine} {o}: {why}"
    return None


def reduce(g, engine, why):
    """Reduces the model: replaces one node after the other by inputs with its results, while the failure stays the same."""
    nodes = list(g.nodes)
    kind = why.split(":")[0].split()[0]
    again = True
    while again:
        again = False
        for n in list(reversed(nodes)):
            rest = [m for m in nodes if m is not n]
            saved = list(g.inputs)
            g.inputs += [o for o in n.outs]
            now = judge(g, rest, engine) if rest else None
            if now and now.split(":")[0].split()[0] == kind:
                nodes, again = rest, True
            else:
                g.inputs = saved
    return nodes


def report(g, seed, engine, why, folder):
    print(f"seed {seed}, opset {g.opset}: {why}")
    nodes = reduce(g, engine, why)
    model, inputs = g.model(nodes, [o for n in nodes for o in n.outs])
    print(onnx.printer.to_text(model.graph)[:1500])
    path = os.path.join(folder, f"{seed}")
    os.makedirs(os.path.join(path, "test_data_set_0"), exist_ok=True)
    onnx.save(model, os.path.join(path, "model.onnx"))
    for i, n in enumerate(inputs):
        onnx.save_tensor(numpy_helper.from_array(g.values[n], n), os.path.join(path, "test_data_set_0", f"input_{i}.pb"))
    for i, o in enumerate(o for n in nodes for o in n.outs):
        onnx.save_tensor(numpy_helper.from_array(g.values[o], o), os.path.join(path, "test_data_set_0", f"output_{i}.pb"))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--count", type=int, default=100)
    args.add_argument("--nodes", type=int, default=8)
    args.add_argument("--ops")
    args.add_argument("--engine", default="interp")
    args.add_argument("--c", type=int, default=0, help="every so many models also as C")
    args.add_argument("--save", default=os.path.join(ROOT, "build", "tmp", "genonnx"))
    args = args.parse_args()
    failures = nodes = refused = 0
    seen, refusals = {}, {}
    for seed in range(args.seed, args.seed + args.count):
        g = Gen(seed, args.ops.split(",") if args.ops else None)
        g.grow(1 + g.r.randrange(args.nodes))
        if not g.nodes:
            continue
        nodes += len(g.nodes)
        for n in g.nodes:
            seen[n.op] = seen.get(n.op, 0) + 1
        results = {}
        engine = "ref"
        why = judge(g, g.nodes, engine, results)
        for e in [args.engine] + (["c"] if args.c and seed % args.c == 0 else []):
            if not why:
                engine, why = e, judge_sinks(g, e, results)
        if why and why.startswith("refused"):
            refused += 1
            refusals[why[:120]] = refusals.get(why[:120], 0) + 1
        elif why:
            failures += 1
            report(g, seed, engine, why, args.save)
        sys.stdout.flush()
    for why, n in sorted(refusals.items(), key=lambda x: -x[1])[:20]:
        print(f"{n} {why}")
    lacking = sorted(set(OPS) - set(seen))
    print(f"{args.count} models, {nodes} nodes of {len(seen)} operators, {refused} refused, {failures} failures"
          + (f"; never: {' '.join(lacking)}" if args.count >= 500 and not args.ops else ""))
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
