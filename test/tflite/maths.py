"""Elementwise operators: functions of one operand, arithmetic, comparisons, logic, activations, changes of type."""
import numpy as np
from tflitefile import NONE, RELU, RELU6, RELU_N1, Net, Q

INT = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u32": np.uint32}

# Why results are steps apart, and how many of them at most.
WIDE = {"steps": 1, "share": 0.03, "why": "sums are multiplied by their scale in f32, which has 24 bits, not 31"}
FUNCTION = {"steps": 1, "share": 0.03, "why": "the function is computed in f32 here, in fixed point there"}
TABLE = {"steps": 3, "share": 0.5, "why": "the function is exact here, read off a table of 512 places there"}


def ints(rng, kind, shape, lo=None, hi=None):
    limits = np.iinfo(INT[kind])
    return rng.integers(limits.min if lo is None else lo, limits.max if hi is None else hi, shape, INT[kind], endpoint=True)


def floats(rng, shape, lo=-4.0, hi=4.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def single(Case, name, op, data, out, qin=None, options=None, kinds=None, compiled=False, rtol=1e-4, atol=1e-5, steps=0, share=0.0, why="", refuse="", kernels="ref", **fields):
    """One operator whose operands are all inputs."""
    net = Net()
    qin = qin if isinstance(qin, list) else [qin] * len(data)
    xs = [net.input({v: k for k, v in INT.items()}.get(x.dtype.type, {"float32": "f32", "bool": "bool", "float16": "f16"}.get(x.dtype.name)), x.shape, q)
          for x, q in zip(data, qin)]
    y = net.op(op, xs, [out], options, **fields)
    net.result(y)
    return Case(name, net, [data], rtol, atol, steps, share, why, compiled=compiled, refuse=refuse, kernels=kernels)


def unary_float(Case, rng):
    spans = {"LOG": (0.01, 5), "SQRT": (0, 5), "RSQRT": (0.05, 5), "EXP": (-5, 5)}
    for op in ("ABS", "CEIL", "COS", "EXP", "FLOOR", "LOG", "NEG", "ROUND", "RSQRT", "SIN", "SQRT", "SQUARE", "ELU", "HARD_SWISH", "LOGISTIC",
               "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "TANH"):
        x = floats(rng, (3, 37), *spans.get(op, (-7.0, 7.0)))
        x[0, :6] = (0.5, 1.5, 2.5, 1.0, 2.0, 3.0)
        yield single(Case, f"{op.lower()}_f32", op, [x], "f32", compiled=op in ("ROUND", "HARD_SWISH"))
    for approximate in (False, True):
        yield single(Case, f"gelu_{'tanh' if approximate else 'erf'}_f32", "GELU", [floats(rng, (2, 19))], "f32", options="Gelu", approximate=approximate)
    yield single(Case, "sign_f32", "SIGN", [floats(rng, (2, 19))], "f32", options="Sign")
    yield single(Case, "leaky_relu_f32", "LEAKY_RELU", [floats(rng, (2, 19))], "f32", options="LeakyRelu", alpha=0.17)
    yield single(Case, "prelu_f32", "PRELU", [floats(rng, (2, 4, 5)), floats(rng, (4, 1))], "f32")
    yield single(Case, "round_halves", "ROUND", [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997], np.float32)], "f32")


def unary_int(Case, rng):
    """Quantized; the table of each is computed by the reference with double or float functions, or in fixed point."""
    fixed = {"LOGISTIC": {"i8": Q(1 / 256, -128), "i16": Q(1 / 32768), "u8": Q(1 / 256, 0)},
             "TANH": {"i8": Q(1 / 128), "i16": Q(1 / 32768), "u8": Q(1 / 128, 128)}}
    for kind in ("i8", "i16", "u8"):
        zero = {"i8": -3, "i16": 0, "u8": 130}[kind]
        s = 0.05 if kind != "i16" else 0.0003
        x = ints(rng, kind, (2, 200))
        for op in ("LOGISTIC", "TANH"):
            yield single(Case, f"{op.lower()}_{kind}", op, [x], (kind, fixed[op][kind]), Q(s, zero), **(TABLE if kind == "i16" else {}))
            if kind == "i16":
                yield single(Case, f"{op.lower()}_i16_power", op, [x], (kind, fixed[op][kind]), Q(8 / 32768), **TABLE)
        for op in ("RELU", "RELU6"):
            yield single(Case, f"{op.lower()}_{kind}", op, [x], (kind, Q(s * 0.7, zero + (9 if kind != "i16" else 0))), Q(s, zero), compiled=op == "RELU6")
        yield single(Case, f"leaky_relu_{kind}", "LEAKY_RELU", [x], (kind, Q(s * 0.8, zero)), Q(s, zero), options="LeakyRelu", alpha=0.3)
    for kind in ("i8", "u8"):
        zero = {"i8": -3, "u8": 130}[kind]
        x = ints(rng, kind, (2, 200))
        yield single(Case, f"relu_n1_{kind}", "RELU_N1_TO_1", [x], (kind, Q(0.02, zero)), Q(0.05, zero))
        yield single(Case, f"hard_swish_{kind}", "HARD_SWISH", [x], (kind, Q(0.03, zero)), Q(0.05, zero), compiled=True, **FUNCTION)
        yield single(Case, f"prelu_{kind}", "PRELU", [ints(rng, kind, (2, 4, 5)), ints(rng, kind, (4, 1))], (kind, Q(0.06, zero)), [Q(0.05, zero), Q(0.01, zero + 4)])
    for kind in ("i8", "i16"):
        zero = -7 if kind == "i8" else 0
        x = ints(rng, kind, (2, 100))
        s = 0.05 if kind == "i8" else 0.0003
        yield single(Case, f"abs_{kind}", "ABS", [x], (kind, Q(s * 0.9, zero)), Q(s, zero), options="Abs")
        yield single(Case, f"exp_{kind}", "EXP", [x], (kind, Q(s * 4, zero)), Q(s / 3, zero), options="Exp", **(TABLE if kind == "i16" else {}))
    yield single(Case, "log_i8", "LOG", [ints(rng, "i8", (2, 100))], ("i8", Q(0.03, 5)), Q(0.05, -129 + 1))
    yield single(Case, "rsqrt_i8", "RSQRT", [ints(rng, "i8", (2, 100), -127)], ("i8", Q(0.02, -128)), Q(0.05, -128))
    yield single(Case, "elu_i8", "ELU", [ints(rng, "i8", (2, 100))], ("i8", Q(0.04, -90)), Q(0.05, 3))
    yield single(Case, "gelu_i8", "GELU", [ints(rng, "i8", (2, 100))], ("i8", Q(0.04, -90)), Q(0.05, 3), options="Gelu", approximate=True, **FUNCTION)
    yield single(Case, "abs_i32", "ABS", [ints(rng, "i32", (2, 9), -50, 50)], "i32", options="Abs")
    yield single(Case, "neg_i32", "NEG", [ints(rng, "i32", (2, 9), -50, 50)], "i32", options="Neg")
    yield single(Case, "neg_i64", "NEG", [ints(rng, "i64", (2, 9), -50, 50)], "i64", options="Neg")
    yield single(Case, "sign_i32", "SIGN", [ints(rng, "i32", (2, 9), -2, 2)], "i32", options="Sign")


def binary(Case, rng):
    a, b = floats(rng, (2, 3, 5)), floats(rng, (3, 1))
    for op, options in (("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("DIV", "Div")):
        yield single(Case, f"{op.lower()}_f32", op, [a, b], "f32", options=options, fused_activation_function=NONE, compiled=True)
        yield single(Case, f"{op.lower()}_f32_relu6", op, [a, b], "f32", options=options, fused_activation_function=RELU6)
        yield single(Case, f"{op.lower()}_i32", op, [ints(rng, "i32", (4, 3), -90, 90), ints(rng, "i32", (3,), 1, 9)], "i32", options=options,
                     fused_activation_function=NONE)
    yield single(Case, "add_f32_n1", "ADD", [a, b], "f32", options="Add", fused_activation_function=RELU_N1)
    yield single(Case, "add_scalar", "ADD", [a, np.array(1.5, np.float32)], "f32", options="Add")
    yield single(Case, "add_5d", "ADD", [floats(rng, (2, 1, 3, 1, 2)), floats(rng, (1, 4, 1, 5, 2))], "f32", options="Add")
    yield single(Case, "add_i64", "ADD", [ints(rng, "i64", (4, 3), -90, 90), ints(rng, "i64", (3,), 1, 9)], "i64", options="Add")
    for op, options in (("MAXIMUM", "MaximumMinimum"), ("MINIMUM", "MaximumMinimum"), ("SQUARED_DIFFERENCE", "SquaredDifference"), ("POW", "Pow"),
                        ("FLOOR_DIV", "FloorDiv"), ("FLOOR_MOD", "FloorMod")):
        p = np.abs(a) + np.float32(0.1) if op == "POW" else a
        yield single(Case, f"{op.lower()}_f32", op, [p, b], "f32", options=options)
        yield single(Case, f"{op.lower()}_i32", op, [ints(rng, "i32", (4, 3), -20, 20), ints(rng, "i32", (3,), 1, 4)], "i32", options=options)
    yield single(Case, "floor_mod_signs", "FLOOR_MOD", [np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)], "i32", options="FloorMod")
    yield single(Case, "floor_div_signs", "FLOOR_DIV", [np.array([7, -7, 7, -7], np.int32), np.array([3, 3, -3, -3], np.int32)], "i32", options="FloorDiv")
    for kind in ("i8", "i16", "u8"):
        zs = {"i8": (-5, 12, 3), "i16": (0, 0, 0), "u8": (120, 140, 131)}[kind]
        k = 1.0 if kind != "i16" else 1 / 256
        x, y = ints(rng, kind, (2, 3, 40)), ints(rng, kind, (3, 1))
        for act, tag in ((NONE, ""), (RELU, "_relu"), (RELU6, "_relu6")):
            yield single(Case, f"add_{kind}{tag}", "ADD", [x, y], (kind, Q(0.08 * k, zs[2])), [Q(0.05 * k, zs[0]), Q(0.03 * k, zs[1])], options="Add",
                         fused_activation_function=act, compiled=not tag)
            yield single(Case, f"sub_{kind}{tag}", "SUB", [x, y], (kind, Q(0.08 * k, zs[2])), [Q(0.05 * k, zs[0]), Q(0.03 * k, zs[1])], options="Sub",
                         fused_activation_function=act)
            yield single(Case, f"mul_{kind}{tag}", "MUL", [x, y], (kind, Q(0.1 * k, zs[2])), [Q(0.05 * k, zs[0]), Q(0.03 * k, zs[1])], options="Mul",
                         fused_activation_function=act, compiled=not tag)
        if kind != "i16":
            yield single(Case, f"maximum_{kind}", "MAXIMUM", [x, y], (kind, Q(0.05, 0)), Q(0.05, 0), options="MaximumMinimum")
            yield single(Case, f"minimum_{kind}", "MINIMUM", [x, y], (kind, Q(0.05, 0)), Q(0.05, 0), options="MaximumMinimum")
    yield single(Case, "div_u8", "DIV", [ints(rng, "u8", (2, 50), 128), ints(rng, "u8", (2, 50), 140, 255)], ("u8", Q(0.04, 128)), [Q(0.02, 127), Q(0.03, 127)], options="Div")
    yield single(Case, "squared_difference_i8", "SQUARED_DIFFERENCE", [ints(rng, "i8", (2, 50)), ints(rng, "i8", (1, 50))], ("i8", Q(0.2, -120)),
                 [Q(0.05, -5), Q(0.03, 7)], options="SquaredDifference")
    net = Net()
    data = [floats(rng, (3, 4)) for _ in range(4)]
    net.result(net.op("ADD_N", [net.input("f32", (3, 4)) for _ in data], ["f32"], "AddN"))
    yield Case("add_n_f32", net, [data])
    for op in ("BITWISE_XOR", "RIGHT_SHIFT"):
        for kind in ("i8", "i32", "u32"):
            x, y = ints(rng, kind, (3, 4)), ints(rng, kind, (1, 4), 0, 7)
            yield single(Case, f"{op.lower()}_{kind}", op, [x, y], kind, options="BitwiseXor" if op[0] == "B" else "RightShift")
    yield single(Case, "atan2_f32", "ATAN2", [a, floats(rng, a.shape)], "f32", options="ATan2")
    for op in ("SignalFramer", "FlexErf"):  # custom operators
        yield single(Case, f"{op.lower()}_refused", op, [a, a], "f32", refuse=f"operator {op} is not supported")
    x = ints(rng, "i32", (3, 8))
    yield single(Case, "bitcast", "BITCAST", [x], "f32", options="Bitcast", rtol=0)
    # Operands that are weights of the file, scalars among them.
    for op, options in (("ADD", "Add"), ("MUL", "Mul")):
        net = Net()
        x = ints(rng, "i8", (1, 4, 4, 8))
        k = net.const(ints(rng, "i8", (8,)), Q(0.02, 0))
        net.result(net.op(op, [net.input("i8", x.shape, Q(0.05, 3)), k], [("i8", Q(0.07, -4))], options))
        yield Case(f"{op.lower()}_i8_weights", net, [[x]])


def compare(Case, rng):
    for op, options in (("EQUAL", "Equal"), ("NOT_EQUAL", "NotEqual"), ("GREATER", "Greater"), ("GREATER_EQUAL", "GreaterEqual"), ("LESS", "Less"),
                        ("LESS_EQUAL", "LessEqual")):
        x, y = rng.integers(-2, 3, (4, 5)).astype(np.float32), rng.integers(-2, 3, (1, 5)).astype(np.float32)
        yield single(Case, f"{op.lower()}_f32", op, [x, y], "bool", options=options)
        yield single(Case, f"{op.lower()}_i32", op, [x.astype(np.int32), y.astype(np.int32)], "bool", options=options)
        yield single(Case, f"{op.lower()}_i8", op, [ints(rng, "i8", (4, 90)), ints(rng, "i8", (1, 90))], "bool", [Q(0.05, -5), Q(0.03, 7)], options=options)
    p, q = rng.random((4, 5)) < 0.5, rng.random((1, 5)) < 0.5
    yield single(Case, "logical_and", "LOGICAL_AND", [p, q], "bool", options="LogicalAnd")
    yield single(Case, "logical_or", "LOGICAL_OR", [p, q], "bool", options="LogicalOr")
    yield single(Case, "logical_not", "LOGICAL_NOT", [p], "bool", options="LogicalNot")
    x, y = floats(rng, (4, 5)), floats(rng, (4, 5))
    yield single(Case, "select", "SELECT", [p, x, y], "f32", options="Select")
    yield single(Case, "select_vector", "SELECT", [p[:, 0].copy(), x, y], "f32", options="Select")
    yield single(Case, "select_v2", "SELECT_V2", [p[:, :1].copy(), x, y[:1].copy()], "f32", options="SelectV2")
    yield single(Case, "select_v2_i8", "SELECT_V2", [p, ints(rng, "i8", (4, 5)), ints(rng, "i8", (1, 5))], ("i8", Q(0.1, 3)), [None, Q(0.1, 3), Q(0.1, 3)], options="SelectV2")


def types(Case, rng):
    edges = np.float32([0.49999997, -0.49999997, 0.5, -0.5, 1.5, -1.5, 2.5, 2.4999998, 0, 126.5])
    net = Net()
    net.result(net.op("QUANTIZE", [net.input("f32", edges.shape)], [("i8", Q(1.0, 0))]))
    yield Case("quantize_edges", net, [[edges]])
    x = floats(rng, (3, 50), -9, 9)
    for kind, zero, s in (("i8", -3, 0.07), ("u8", 128, 0.07), ("i16", 0, 0.0004), ("i16", 5, 0.0004)):
        net = Net()
        net.result(net.op("QUANTIZE", [net.input("f32", x.shape)], [(kind, Q(s, zero))]))
        yield Case(f"quantize_{kind}_{zero % 256}", net, [[x]], compiled=True)
        if kind == "i16" and zero:
            continue
        q = ints(rng, kind, (3, 50))
        net = Net()
        net.result(net.op("DEQUANTIZE", [net.input(kind, q.shape, Q(s, zero))], ["f32"]))
        yield Case(f"dequantize_{kind}_{zero % 256}", net, [[q]])
    for a, qa, b, qb in (("i8", Q(0.05, -3), "i8", Q(0.07, 9)), ("i8", Q(0.05, -3), "u8", Q(0.05, 125)), ("u8", Q(0.05, 125), "i8", Q(0.02, -3)),
                         ("i8", Q(0.05, -3), "i16", Q(0.001)), ("i16", Q(0.001), "i8", Q(0.2, 4)), ("i16", Q(0.001), "i16", Q(0.002)),
                         ("i16", Q(0.001), "i32", Q(0.00001)), ("u8", Q(0.05, 3), "u8", Q(0.07, 9))):
        net = Net()
        x8 = ints(rng, a, (3, 60))
        net.result(net.op("QUANTIZE", [net.input(a, x8.shape, qa)], [(b, qb)]))
        yield Case(f"requantize_{a}_{b}_{qb.zero % 256}", net, [[x8]])
    net = Net()
    w = ints(rng, "i8", (4, 6))
    net.result(net.op("ADD", [net.input("f32", (4, 6)), net.op("DEQUANTIZE", [net.const(w, Q([0.1, 0.2, 0.3, 0.4], 0, 0))], ["f32"])], ["f32"], "Add"))
    yield Case("dequantize_channels", net, [[floats(rng, (4, 6))]])
    net = Net()
    h = floats(rng, (4, 6)).astype(np.float16)
    net.result(net.op("ADD", [net.input("f32", (4, 6)), net.op("DEQUANTIZE", [net.const(h)], ["f32"])], ["f32"], "Add"))
    yield Case("dequantize_f16", net, [[floats(rng, (4, 6))]])
    names = {"f32": "FLOAT32", "i32": "INT32", "i64": "INT64", "i8": "INT8", "u8": "UINT8", "bool": "BOOL", "i16": "INT16"}
    from ai_edge_litert.schema_py_generated import TensorType
    for a, b in (("f32", "i32"), ("f32", "u8"), ("f32", "i8"), ("i32", "f32"), ("i8", "f32"), ("bool", "f32"), ("f32", "bool"), ("i64", "i32"), ("i32", "i64"),
                 ("i32", "i8"), ("u8", "f32"), ("i16", "f32")):
        v = np.maximum(floats(rng, (3, 9), -50, 100), 0) if a == "f32" else rng.random((3, 9)) < 0.5 if a == "bool" else ints(rng, a, (3, 9), 0, 100)
        yield single(Case, f"cast_{a}_{b}", "CAST", [v], b, options="Cast", in_data_type=getattr(TensorType, names[a]), out_data_type=getattr(TensorType, names[b]))


def cases(Case, rng):
    for part in (unary_float, unary_int, binary, compare, types):
        yield from part(Case, rng)
