"""Indices of a run: what is out of range is refused, by every engine, before anything is done with it; what cannot be is not tested."""
import numpy as np

OUT = "is out of range"


def node(M, f):
    i64 = np.int64

    def both(name, op, inputs, data, index, right, wrong, said=None, **attrs):
        yield M(name, op, inputs, ["y"], data | {index: np.array(right, i64)}, attrs=attrs)
        for k, w in enumerate(wrong):
            yield M(f"{name}_out{k}", op, inputs, ["y"], data | {index: np.array(w, i64)}, attrs=attrs, refuse=said or f"'{index}' {OUT}")
    x = {"x": f(5, 4)}
    yield from both("gather", "Gather", ["x", "i"], x, "i", [[0, -5], [4, 2]], ([[0, 5], [0, 0]], [[0, 0], [-6, 0]], [[1 << 40, 0], [0, 0]]))
    yield from both("gather_columns", "Gather", ["x", "i"], x, "i", [3, -4], ([4, 0], [0, -5]), axis=1)
    yield from both("gather_elements", "GatherElements", ["x", "i"], x, "i", [[0, 3, -4, 1]], ([[0, 4, 0, 0]], [[0, 0, 0, -5]]), axis=1)
    yield from both("gather_nd", "GatherND", ["x", "i"], x, "i", [[4, 3], [-5, -4]], ([[4, 4], [0, 0]], [[5, 0], [0, 0]], [[0, 0], [0, -5]]))
    yield from both("gather_nd_batch", "GatherND", ["x", "i"], {"x": f(2, 3, 4)}, "i", [[[2], [0]], [[-3], [1]]], ([[[3], [0]], [[0], [0]]],),
                    batch_dims=1)
    u = x | {"u": f(2, 4)}
    yield from both("scatter_elements", "ScatterElements", ["x", "i", "u"], u, "i", [[0, 1, 2, 3], [-1, -2, -3, 4]],
                    ([[0, 1, 2, 5], [0, 0, 0, 0]], [[0, 1, 2, -6], [0, 0, 0, 0]]))
    yield from both("scatter_nd", "ScatterND", ["x", "i", "u"], u, "i", [[4], [-5]], ([[5], [0]], [[0], [-6]]))
    scores = {"x": f(3, 4)}
    yield from both("loss", "NegativeLogLikelihoodLoss", ["x", "i"], scores, "i", [0, 3, 2], ([0, 4, 0],))
    yield from both("loss_ignores", "NegativeLogLikelihoodLoss", ["x", "i"], scores, "i", [0, 100, 2], ([0, 99, 0],), OUT, ignore_index=100)
    small = np.array([0, -5, 4], np.int32)
    yield M("narrow", "Gather", ["x", "i"], ["y"], x | {"i": small})
    yield M("narrow_out", "Gather", ["x", "i"], ["y"], x | {"i": small + 1}, refuse=OUT)
    yield M("nothing", "Gather", ["x", "i"], ["y"], x | {"i": np.zeros((0,), i64)})


PROVED = {
    "argmax": "g (float[3,4] x, float[4] t) => (float[3] y) { i = ArgMax <axis=1, keepdims=0> (x)  y = Gather(t, i) }",
    "nonzero": "g (float[3,4] x) => (float[n] y) { p = NonZero(x)  i = Transpose(p)  y = GatherND(x, i) }",
    "topk": """g (float[3,4] x) => (float[3,2] y) { k = Constant <value = int64[1] {2}>()  v, i = TopK(x, k)  y = GatherElements <axis=1> (x, i) }""",
    "arithmetic": """g (int64[6] x, float[9] t) => (float[6] y) { k = Constant <value = int64 {4}>()  m = Mod(x, k)  a = Add(m, m)
        y = Gather(t, a) }""",
    "clamped": """g (int64[6] x, float[9] t) => (float[6] y) { l = Constant <value = int64 {-9}>()  h = Constant <value = int64 {8}>()
        i = Clip(x, l, h)  y = Gather(t, i) }""",
    "loop": """g (float[4,3] x) => (float[4,3] y) { n = Constant <value = int64 {4}>()  c = Constant <value = bool {1}>()
        y = Loop(n, c) <body = b (int64 i, bool k) => (bool k2, float[3] r) { k2 = Identity(k)  r = Gather(x, i) }> }""",
}


def cases(M, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    yield from node(M, f)
    for name, text in PROVED.items():
        inputs = {"arithmetic": {"x": np.arange(-3, 3), "t": f(9)}, "clamped": {"x": np.arange(-3, 3), "t": f(9)},
                  "argmax": {"x": f(3, 4), "t": f(4)}, "loop": {"x": f(4, 3)}}
        yield M("proved_" + name, None, [], [], inputs.get(name, {"x": f(3, 4)}), text=text, without="within")
    inside = """g (float[4,3] x, int64[4] p) => (float[4,3] y) { n = Constant <value = int64 {4}>()  c = Constant <value = bool {1}>()
        y = Loop(n, c) <body = b (int64 i, bool k) => (bool k2, float[3] r) { k2 = Identity(k)  j = Gather(p, i)  r = Gather(x, j) }> }"""
    yield M("loop", None, [], [], {"x": f(4, 3), "p": np.array([3, -4, 0, 1])}, text=inside)
    yield M("loop_out", None, [], [], {"x": f(4, 3), "p": np.array([3, -4, 0, 4])}, text=inside, refuse=OUT)
    branch = """g (bool c, float[4,3] x, int64[2] p) => (float[2,3] y) { y = If(c) <then_branch = a () => (float[2,3] s) { s = Gather(x, p) },
        else_branch = b () => (float[2,3] t) { z = Constant <value = int64[2] {0, 1}>()  t = Gather(x, z) }> }"""
    yield M("branch_not_taken", None, [], [], {"c": np.array(False), "x": f(4, 3), "p": np.array([9, 9])}, text=branch)
    yield M("branch_out", None, [], [], {"c": np.array(True), "x": f(4, 3), "p": np.array([9, 9])}, text=branch, refuse=OUT)
    late = """g (float[3,6] x) => (float[K] v, int64[K] i) { most = Constant <value = int64[1] {%d}>()  zero = Constant <value = float {0}>()
        m = Greater(x, zero)  at = NonZero(m)  t = Transpose(at)  p = GatherND(x, t)  s = Shape(p)  c = Concat <axis = 0> (s, most)
        k = %s <keepdims = 1> (c)  v, i = TopK(p, k) }"""
    for most in (0, 1, 4, 30):
        yield M(f"topk_late_{most}", None, [], [], {"x": f(3, 6)}, text=late % (most, "ReduceMin"))
    yield M("topk_late_out", None, [], [], {"x": f(3, 6)}, text=late % (18, "ReduceMax"), refuse="k is not in the range of the axis")
