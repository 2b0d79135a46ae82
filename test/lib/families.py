"""Families of models that grow with n, for which time and memory may grow only linearly. One function is one family."""
from lib.onnxfile import BOOL, INT64, Graph, model


def conv_relu(n):
    g = Graph()
    x = g.input([1, 8, 8, 8])
    for _ in range(n // 2):
        x = g.node("Relu", [g.node("Conv", [x, g.weight(8, 8, 3, 3), g.weight(8)], pads=[1, 1, 1, 1])])
    g.output(x, [1, 8, 8, 8])
    return g


def pointwise(n):
    g = Graph()
    x = g.input([1, 8, 4, 4])
    for _ in range(n):
        x = g.node("Conv", [x, g.weight(8, 8, 1, 1)])
    g.output(x, [1, 8, 4, 4])
    return g


def depthwise(n):
    g = Graph()
    x = g.input([1, 8, 6, 6])
    for _ in range(n // 2):
        x = g.node("Conv", [x, g.weight(8, 1, 3, 3)], pads=[1, 1, 1, 1], group=8)
        x = g.node("Conv", [x, g.weight(8, 8, 1, 1)])
    g.output(x, [1, 8, 6, 6])
    return g


def transposed(n):
    g = Graph()
    x = g.input([1, 4, 6, 6])
    for _ in range(n):
        x = g.node("ConvTranspose", [x, g.weight(4, 4, 3, 3)], pads=[1, 1, 1, 1])
    g.output(x, [1, 4, 6, 6])
    return g


def residual(n):
    g = Graph()
    x = g.input([1, 8, 6, 6])
    for _ in range(n // 3):
        y = g.node("Relu", [g.node("Conv", [x, g.weight(8, 8, 3, 3)], pads=[1, 1, 1, 1])])
        x = g.node("Add", [x, y])
    g.output(x, [1, 8, 6, 6])
    return g


def ifs(n):
    g = Graph()
    x, c = g.input([4]), g.input([], BOOL)
    for i in range(n):
        a, b = Graph(f"a{i}_"), Graph(f"b{i}_")
        a.output(a.node("Add", [x, x]), [4])
        b.output(b.node("Mul", [x, x]), [4])
        x = g.node("If", [c], then_branch=a, else_branch=b)
    g.output(x, [4])
    return g


def wide_ifs(n):
    """Every branch uses the same outer values."""
    g = Graph()
    x, c = g.input([4]), g.input([], BOOL)
    far = [g.node("Exp", [x]) for _ in range(8)]
    sums = []
    for i in range(n):
        a, b = Graph(f"a{i}_"), Graph(f"b{i}_")
        a.output(a.node("Add", [far[i % 8], far[(i + 1) % 8]]), [4])
        b.output(b.node("Mul", [far[i % 8], x]), [4])
        sums.append(g.node("If", [c], then_branch=a, else_branch=b))
    while len(sums) > 1:
        sums = [g.node("Add", sums[i:i + 2]) if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
    g.output(sums[0], [4])
    return g


def matmul_softmax(n):
    g = Graph()
    x = g.input([4, 4])
    for _ in range(n // 2):
        x = g.node("Softmax", [g.node("MatMul", [x, g.weight(4, 4)])], axis=-1)
    g.output(x, [4, 4])
    return g


def softmax(n):
    g = Graph()
    x = g.input([4, 8])
    for _ in range(n):
        x = g.node("Softmax", [x], axis=-1)
    g.output(x, [4, 8])
    return g


def turned(n):
    g = Graph()
    x = g.input([4, 4])
    for _ in range(n // 2):
        x = g.node("Transpose", [g.node("Softmax", [x], axis=-1)], perm=[1, 0])
    g.output(x, [4, 4])
    return g


def joined_convs(n):
    g = Graph()
    x = g.input([1, 4, 4, 4])
    parts = [g.node("Conv", [x, g.weight(4, 4, 1, 1)]) for _ in range(n)]
    g.output(g.node("Concat", parts, axis=1), [1, 4 * n, 4, 4])
    return g


def gemm(n):
    g = Graph()
    x = g.input([1, 8])
    for _ in range(n // 2):
        x = g.node("Relu", [g.node("Gemm", [x, g.weight(8, 8), g.weight(8)])])
    g.output(x, [1, 8])
    return g


def layer_norm(n):
    g = Graph()
    x = g.input([2, 8])
    for _ in range(n):
        x = g.node("LayerNormalization", [x, g.weight(8), g.weight(8)])
    g.output(x, [2, 8])
    return g


def batch_norm(n):
    g = Graph()
    x = g.input([1, 4, 4, 4])
    for _ in range(n // 2):
        x = g.node("BatchNormalization", [x] + [g.const([4], [0.5, 0.75, 1.0, 1.5]) for _ in range(4)])
        x = g.node("Relu", [x])
    g.output(x, [1, 4, 4, 4])
    return g


def cells(n):
    """LSTM cells as exporters write them out."""
    g = Graph()
    h, c = g.input([1, 4]), g.input([1, 4])
    w, r = g.weight(4, 16), g.weight(4, 16)
    x = g.input([1, 4])
    cut = [g.ints(4 * i) for i in range(5)]
    axis = g.ints(1)
    for _ in range(n // 14):
        s = g.node("Add", [g.node("MatMul", [x, w]), g.node("MatMul", [h, r])])
        i, f, o, z = [g.node("Slice", [s, cut[k], cut[k + 1], axis]) for k in range(4)]
        i, f, o = [g.node("Sigmoid", [v]) for v in (i, f, o)]
        c = g.node("Add", [g.node("Mul", [f, c]), g.node("Mul", [i, g.node("Tanh", [z])])])
        h = g.node("Mul", [o, g.node("Tanh", [c])])
    g.output(h, [1, 4])
    return g


def lstm(n):
    g = Graph()
    x = g.input([3, 1, 4])
    shape = g.ints(3, 1, 4)
    for _ in range(n // 2):
        y, _, _ = g.node("LSTM", [x, g.weight(1, 16, 4), g.weight(1, 16, 4)], 3, hidden_size=4)
        x = g.node("Reshape", [y, shape])
    g.output(x, [3, 1, 4])
    return g


def slice_pad(n):
    g = Graph()
    x = g.input([4, 8])
    one, seven, axis, pads = g.ints(1), g.ints(7), g.ints(1), g.ints(0, 1, 0, 1)
    for _ in range(n // 3):
        x = g.node("Tanh", [g.node("Pad", [g.node("Slice", [x, one, seven, axis]), pads])])
    g.output(x, [4, 8])
    return g


def gather(n):
    g = Graph()
    x, i = g.input([6, 4]), g.input([6], INT64)
    for _ in range(n // 2):
        x = g.node("Tanh", [g.node("Gather", [x, i], axis=0)])
    g.output(x, [6, 4])
    return g


def embeddings(n):
    """Sum of rows of n tables."""
    g = Graph()
    i = g.input([2], INT64)
    x = g.node("Gather", [g.weight(4, 4), i], axis=0)
    for _ in range(n // 2):
        x = g.node("Add", [x, g.node("Gather", [g.weight(4, 4), i], axis=0)])
    g.output(x, [2, 4])
    return g


def reduce_mean(n):
    g = Graph()
    x = g.input([4, 8])
    for _ in range(n // 2):
        x = g.node("Sub", [x, g.node("ReduceMean", [x], axes=[1], keepdims=1)])
    g.output(x, [4, 8])
    return g


def resize(n):
    g = Graph()
    x = g.input([1, 2, 4, 4])
    up, down = g.const([4], [1, 1, 2, 2]), g.const([4], [1, 1, 0.5, 0.5])
    for _ in range(n // 2):
        x = g.node("Resize", [g.node("Resize", [x, "", up], mode="linear"), "", down], mode="nearest")
    g.output(x, [1, 2, 4, 4])
    return g


def pools(n):
    g = Graph()
    x = g.input([1, 8, 6, 6])
    for _ in range(n // 2):
        x = g.node("MaxPool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        x = g.node("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    g.output(x, [1, 8, 6, 6])
    return g


def elementwise(n):
    g = Graph()
    x = g.input([64])
    ops = ["Tanh", "Exp", "Neg", "Abs", "Sigmoid", "Sqrt"]
    for i in range(n):
        x = g.node(ops[i % 6], [x])
    g.output(x, [64])
    return g


def diamonds(n):
    """Every value has two users, so that computing one in place doubles the later work."""
    g = Graph()
    x = g.input([16])
    for _ in range(n // 3):
        x = g.node("Add", [g.node("Tanh", [x]), g.node("Neg", [x])])
    g.output(x, [16])
    return g


def fan_out(n):
    """One value used n times."""
    g = Graph()
    x = g.node("Exp", [g.input([16])])
    parts = [g.node("Mul", [x, g.weight(16)]) for _ in range(n // 2)]
    total = parts[0]
    for p in parts[1:]:
        total = g.node("Add", [total, p])
    g.output(total, [16])
    return g


def many_inputs(n):
    g = Graph()
    total = g.input([4])
    for _ in range(n):
        total = g.node("Add", [total, g.input([4])])
    g.output(total, [4])
    return g


def one_sum(n):
    """One node with n operands."""
    g = Graph()
    g.output(g.node("Sum", [g.input([4]) for _ in range(n)]), [4])
    return g


def many_outputs(n):
    g = Graph()
    x = g.input([4])
    for _ in range(n):
        g.output(g.node("Mul", [x, g.weight(4)]), [4])
    return g


def one_split(n):
    """One node with n results."""
    g = Graph()
    x = g.input([n, 4])
    parts = g.node("Split", [x, g.ints(*[1] * n)], n, axis=0)
    g.output(g.node("Concat", [g.node("Exp", [p]) for p in parts], axis=1), [1, 4 * n])
    return g


def concat_chain(n):
    """DenseNet: each step concatenates all earlier results."""
    g = Graph()
    x = g.input([1, 4, 2, 2])
    for _ in range(n // 2):
        y = g.node("Conv", [x, g.weight(4, 4, 1, 1)])
        x = g.node("Slice", [g.node("Concat", [x, y], axis=1), g.ints(2), g.ints(6), g.ints(1)])
    g.output(x, [1, 4, 2, 2])
    return g


def concat_tree(n):
    g = Graph()
    parts = [g.node("Exp", [g.input([1, 2])]) for _ in range(n // 2)]
    while len(parts) > 1:
        parts = [g.node("Concat", parts[i:i + 2], axis=1) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    g.output(parts[0], [1, 2 * (n // 2)])
    return g


def shapes(n):
    """Targets of Reshape computed from shapes, node by node."""
    g = Graph()
    x = g.input([2, 8])
    for _ in range(n // 8):
        s = g.node("Shape", [x])
        a = g.node("Gather", [s, g.const([], [0], INT64)], axis=0)
        b = g.node("Gather", [s, g.const([], [1], INT64)], axis=0)
        a, b = [g.node("Unsqueeze", [g.node("Mul", [v, g.const([], [1], INT64)]), g.ints(0)]) for v in (a, b)]
        x = g.node("Tanh", [g.node("Reshape", [x, g.node("Concat", [b, a], axis=0)])])
    g.output(x, ["p", "q"])
    return g


def symbols(n):
    """Reshape targets computed from shapes with an open extent."""
    g = Graph()
    x = g.input(["rows", 8])
    for _ in range(n // 6):
        s = g.node("Shape", [x])
        a = g.node("Slice", [s, g.ints(0), g.ints(1), g.ints(0)])
        b = g.node("Slice", [s, g.ints(1), g.ints(2), g.ints(0)])
        x = g.node("Tanh", [g.node("Reshape", [x, g.node("Concat", [a, b], axis=0)])])
    g.output(x, ["p", "q"])
    return g


def transposes(n):
    """Transposes and reshapes that do not cancel."""
    g = Graph()
    x = g.input([4, 6])
    to, back = g.ints(3, 8), g.ints(4, 6)
    for _ in range(n // 4):
        x = g.node("Reshape", [g.node("Transpose", [x], perm=[1, 0]), to])
        x = g.node("Reshape", [g.node("Transpose", [x], perm=[1, 0]), back])
    g.output(x, [4, 6])
    return g


def attention(n):
    g = Graph()
    x = g.input([1, 4, 8])
    split, join = g.ints(1, 4, 2, 4), g.ints(1, 4, 8)
    for _ in range(n // 14):
        q, k, v = [g.node("Transpose", [g.node("Reshape", [g.node("MatMul", [x, g.weight(8, 8)]), split])], perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
        p = g.node("Softmax", [g.node("MatMul", [q, k])], axis=-1)
        y = g.node("Reshape", [g.node("Transpose", [g.node("MatMul", [p, v])], perm=[0, 2, 1, 3]), join])
        x = g.node("Add", [x, y])
    g.output(x, [1, 4, 8])
    return g


def quantized(n):
    g = Graph()
    x = g.input([4, 8])
    scale, zero = g.const([], [0.05]), g.node("Cast", [g.const([], [3.0])], to=2)
    for _ in range(n // 3):
        q = g.node("QuantizeLinear", [x, scale, zero])
        x = g.node("Relu", [g.node("DequantizeLinear", [q, scale, zero])])
    g.output(x, [4, 8])
    return g


def top_k(n):
    g = Graph()
    x = g.input([2, 8])
    k = g.ints(8)
    for _ in range(n // 2):
        x = g.node("Tanh", [g.node("TopK", [x, k], 2)[0]])
    g.output(x, [2, 8])
    return g


def cum_sum(n):
    g = Graph()
    x = g.input([2, 8])
    axis = g.const([], [1], INT64)
    for _ in range(n // 2):
        x = g.node("Tanh", [g.node("CumSum", [x, axis])])
    g.output(x, [2, 8])
    return g


def loops(n):
    g = Graph()
    x = g.input([4])
    trips, go = g.const([], [3], INT64), g.node("Cast", [g.const([], [1.0])], to=9)
    for i in range(n // 3):
        b = Graph(f"l{i}_")
        b.input([], INT64)
        c, y = b.input([], BOOL), b.input([4])
        b.output(b.node("Identity", [c]), [], BOOL)
        b.output(b.node("Tanh", [y]), [4])
        x = g.node("Loop", [trips, go, x], body=b)
    g.output(x, [4])
    return g


def nonzero(n):
    """Every extent is a new data-dependent symbol."""
    g = Graph()
    x = g.input([4, 4])
    sums = []
    for _ in range(n // 3):
        i = g.node("NonZero", [g.node("Floor", [g.node("Mul", [x, g.weight(4, 4)])])])
        sums.append(g.node("ReduceSum", [i], keepdims=0))
    total = sums[0]
    for s in sums[1:]:
        total = g.node("Add", [total, s])
    g.output(total, [], INT64)
    return g


def dead(n):
    """Only nodes that no result needs."""
    g = Graph()
    x = g.input([4])
    y = x
    for _ in range(n):
        y = g.node("Mul", [y, g.weight(4)])
    g.output(g.node("Exp", [x]), [4])
    return g


def constants(n):
    """Only constants, all folded at compile time."""
    g = Graph()
    x = g.input([4])
    y = g.weight(4)
    for _ in range(n):
        y = g.node("Add", [y, g.weight(4)])
    g.output(g.node("Add", [x, y]), [4])
    return g


def equal(n):
    """The same computation n times."""
    g = Graph()
    x = g.input([4])
    parts = [g.node("Exp", [g.node("Neg", [x])]) for _ in range(n // 3)]
    total = parts[0]
    for p in parts[1:]:
        total = g.node("Max", [total, p])
    g.output(total, [4])
    return g


FAMILIES = {f.__name__: f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__}


def write(name, n, path):
    with open(path, "wb") as f:
        f.write(model(FAMILIES[name](n)))
