"""Writes ONNX files without any package, fast for models with many nodes."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = 1, 2, 3, 6, 7, 8, 9, 10, 11  # TensorProto.DataType
SIZES = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q", BOOL: "?", FLOAT16: "e", DOUBLE: "d"}


def varint(x):
    out = bytearray()
    x &= (1 << 64) - 1
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    out.append(x)
    return bytes(out)


def number(field, x):
    return varint(field << 3) + varint(x)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, values, dt=FLOAT):
    return (b"".join(number(1, d) for d in dims) + number(2, dt) + chunk(8, name)
            + chunk(9, struct.pack(f"<{len(values)}{SIZES[dt]}", *values)))


def value(name, dims, dt=FLOAT):
    """ValueInfoProto; a dimension is a number, a name, or None (unknown). Without dims the shape is unknown."""
    shape = b"".join(chunk(1, b"" if d is None else number(1, d) if isinstance(d, int) else chunk(2, d)) for d in dims or ())
    return chunk(1, name) + chunk(2, chunk(1, number(1, dt) + (b"" if dims is None else chunk(2, shape))))


def attribute(name, x):
    head = chunk(1, name)
    if isinstance(x, Graph):
        return head + chunk(6, x.bytes()) + number(20, 5)
    if isinstance(x, bytes):
        return head + chunk(5, x) + number(20, 4)
    if isinstance(x, str):
        return head + chunk(4, x) + number(20, 3)
    if isinstance(x, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", x) + number(20, 1)
    if isinstance(x, int):
        return head + number(3, x) + number(20, 2)
    return head + b"".join(number(8, i) for i in x) + number(20, 7)


class Graph:
    """Nodes, constants, inputs and results; every call that adds one returns its name."""

    def __init__(self, prefix=""):
        self.parts, self.prefix, self.count = [], prefix, 0

    def name(self):
        self.count += 1
        return f"{self.prefix}v{self.count}"

    def node(self, op, ins, outs=1, domain="", **attrs):
        """Returns the name of the result, or a list of several names."""
        names = [self.name() for _ in range(outs)] if isinstance(outs, int) else outs
        self.parts.append(chunk(1, b"".join(chunk(1, i) for i in ins) + b"".join(chunk(2, o) for o in names)
                                + chunk(3, "n_" + names[0]) + chunk(4, op) + (chunk(7, domain) if domain else b"")
                                + b"".join(chunk(5, attribute(k, x)) for k, x in attrs.items())))
        return names[0] if len(names) == 1 else names

    def const(self, dims, values, dt=FLOAT, name=None):
        name = name or self.name()
        self.parts.append(chunk(5, tensor(name, dims, values, dt)))
        return name

    def ints(self, *values):
        return self.const([len(values)], values, INT64)

    def weight(self, *dims):
        """A weight whose numbers differ from those of every other weight."""
        size = 1
        for d in dims:
            size *= d
        return self.const(dims, [((self.count * 31 + i * 7) % 61 - 30) / 64 + self.count / 1e5 for i in range(size)])

    def input(self, dims, dt=FLOAT, name=None):
        name = name or self.name()
        self.parts.append(chunk(11, value(name, dims, dt)))
        return name

    def output(self, name, dims, dt=FLOAT):
        self.parts.append(chunk(12, value(name, dims, dt)))

    def bytes(self):
        return b"".join(self.parts) + chunk(2, "g")


def function(domain, name, ins, outs, nodes, opset=17):
    """FunctionProto; nodes: encoded nodes, from Graph.node."""
    uses = chunk(9, number(2, opset)) + chunk(9, chunk(1, domain) + number(2, 1))
    return (chunk(1, name) + b"".join(chunk(4, i) for i in ins) + b"".join(chunk(5, o) for o in outs)
            + b"".join(chunk(7, n) for n in nodes) + uses + chunk(10, domain))


def model(graph, opset=17, functions=(), domain="f"):
    return (number(1, 8) + chunk(8, chunk(1, "") + number(2, opset))
            + (chunk(8, chunk(1, domain) + number(2, 1)) if functions else b"") + chunk(7, graph.bytes())
            + b"".join(chunk(25, f) for f in functions))
