"""More operators for genonnx.py: sampling, recurrent, quantized, with sub-graphs. See genops.py."""
import numpy as np
from onnx import TensorProto, helper
from genops import axis, image, op


# ---- sampling ----

@op("Resize")
def resize(g, name):
    x = image(g, 4, 4)
    if not x:
        return None
    v = g.values[x]
    mode = g.r.choice(("nearest", "linear", "cubic"))
    attrs = {"mode": mode, "coordinate_transformation_mode": g.r.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))}
    if mode == "nearest":
        attrs["nearest_mode"] = g.r.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    if mode == "cubic" and g.r.random() < 0.5:
        attrs["cubic_coeff_a"] = -0.5
    if g.opset >= 18 and mode != "nearest" and g.r.random() < 0.3:
        attrs["antialias"] = 1
    if mode == "cubic" and attrs["coordinate_transformation_mode"] == "pytorch_half_pixel":
        attrs["coordinate_transformation_mode"] = "half_pixel"  # different extents of 1
    if g.r.random() < 0.5:
        scales = [g.r.choice((0.5, 1, 2, 1.5)) for _ in v.shape[2:]]
        return [x, "", g.const([1, 1] + scales, np.float32)], attrs, 1
    return [x, "", "", g.const(list(v.shape[:2]) + [g.r.randint(1, 8) for _ in v.shape[2:]])], attrs, 1


@op("GridSample", since=16)
def grid_sample(g, name):
    x = image(g, 4, 4)
    if not x:
        return None
    v = g.values[x]
    grid = g.data(np.float32, (v.shape[0], g.r.randint(1, 4), g.r.randint(1, 4), 2), -1.2, 1.2)
    modes = ("bilinear", "nearest", "bicubic") if g.opset < 20 else ("linear", "nearest", "cubic")
    return [x, g.put(grid)], {"mode": g.r.choice(modes), "padding_mode": g.r.choice(("zeros", "border", "reflection")),
                              "align_corners": g.r.randint(0, 1)}, 1


@op("RoiAlign", since=16)
def roi_align(g, name):
    x = image(g, 4, 4)
    if not x:
        return None
    v = g.values[x]
    n = g.r.randint(1, 3)
    lo = g.data(np.float32, (n, 2), 0, 3)
    rois = np.concatenate([lo, lo + g.data(np.float32, (n, 2), 0.5, 4)], 1)
    return [x, g.put(rois), g.put(g.data(np.int64, (n,), 0, v.shape[0]))], \
        {"output_height": 2, "output_width": 3, "sampling_ratio": g.r.choice((0, 2)), "mode": "avg", "spatial_scale": g.r.choice((1.0, 0.5)),
         "coordinate_transformation_mode": g.r.choice(("half_pixel", "output_half_pixel"))}, 1


@op("NonMaxSuppression")
def nms(g, name):
    n = g.r.randint(1, 6)
    lo = g.data(np.float32, (1, n, 2), 0, 3)
    boxes = np.concatenate([lo, lo + g.data(np.float32, (1, n, 2), 0.5, 3)], 2)
    return [g.put(boxes), g.put(g.data(np.float32, (1, 2, n), 0, 1)), g.const([g.r.randint(1, 4)]), g.const([0.4], np.float32),
            g.const([0.2], np.float32)], {"center_point_box": g.r.randint(0, 1)}, 1


@op("Det")
def det(g, name):
    n = g.r.randint(1, 4)
    return [g.put(g.data(np.float32, g.shape(0, 1) + (n, n)))], {}, 1


# ---- recurrent ----

@op("LSTM", "GRU", "RNN")
def recurrent(g, name):
    t, b, i, h = g.r.randint(1, 4), g.r.randint(1, 3), g.r.randint(1, 4), g.r.randint(1, 3)
    k = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    way = g.r.choice(("forward", "reverse", "bidirectional"))
    d = 2 if way[0] == "b" else 1
    f = np.float32
    ins = [g.put(g.data(f, (t, b, i))), g.put(g.data(f, (d, k * h, i))), g.put(g.data(f, (d, k * h, h)))]
    if g.r.random() < 0.6:
        ins.append(g.put(g.data(f, (d, 2 * k * h))))
        if g.r.random() < 0.5:
            ins.append(g.put(g.data(np.int32, (b,), 1, t + 1)))
            if g.r.random() < 0.6:
                ins.append(g.put(g.data(f, (d, b, h))))
    attrs = {"hidden_size": h, "direction": way}
    if name == "GRU":
        attrs["linear_before_reset"] = g.r.randint(0, 1)
    return ins, attrs, 3 if name == "LSTM" else 2


# ---- quantized ----

@op("QuantizeLinear")
def quantize(g, name):
    x = g.some("f", 1)
    return [x, g.const(0.1, np.float32), g.const(g.r.choice((0, 5)), g.r.choice((np.uint8, np.int8)))], {}, 1


@op("DequantizeLinear")
def dequantize(g, name):
    x = g.some("u", 1)
    v = g.values[x]
    if g.r.random() < 0.5:
        a = axis(g, v)
        n = v.shape[a]
        return [x, g.put(np.abs(g.data(np.float32, (n,))) + np.float32(0.1), True), g.put(g.data(v.dtype, (n,), 0, 9), True)], {"axis": a}, 1
    return [x, g.const(0.2, np.float32), g.const(3, v.dtype)], {}, 1


@op("DynamicQuantizeLinear")
def dynamic_quantize(g, name):
    return [g.some("f", 1)], {}, 3


@op("MatMulInteger")
def matmul_integer(g, name):
    a = g.some("u", 2, 2)
    k = g.values[a].shape[1]
    return [a, g.put(g.data(np.uint8, (k, 3), 0, 200)), g.const(2, np.uint8), g.const(100, np.uint8)], {}, 1


@op("QLinearMatMul")
def qlinear_matmul(g, name):
    a = g.some("u", 2, 2)
    k = g.values[a].shape[1]
    f = np.float32
    return [a, g.const(0.1, f), g.const(3, np.uint8), g.put(g.data(np.uint8, (k, 3), 0, 200)), g.const(0.05, f), g.const(90, np.uint8),
            g.const(0.3, f), g.const(100, np.uint8)], {}, 1


# ---- control ----

def tensor(name, x):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)


@op("If")
def branch(g, name):
    x = g.some("f")
    v = g.values[x]
    outs = []
    for k, what in enumerate(("Neg", "Abs")):
        out = g.name()
        outs.append(helper.make_graph([helper.make_node(what, [x], [out])], f"b{k}", [], [tensor(out, v)]))
    return [g.put(np.array(g.r.random() < 0.5))], {"then_branch": outs[0], "else_branch": outs[1]}, 1


@op("Loop")
def loop(g, name):
    x = g.some("f", 0, 3, lambda v: v.size < 200)
    v = g.values[x]
    i, c, a, b, s, d = (g.name() for _ in range(6))
    body = helper.make_graph([helper.make_node("Add", [a, x], [b]), helper.make_node("Mul", [b, a], [s]), helper.make_node("Identity", [c], [d])],
                             "body", [helper.make_tensor_value_info(i, TensorProto.INT64, []), helper.make_tensor_value_info(c, TensorProto.BOOL, []),
                                      tensor(a, v)],
                             [helper.make_tensor_value_info(d, TensorProto.BOOL, []), tensor(b, v), tensor(s, v)])
    start = g.put(g.data(v.dtype, v.shape))
    return [g.const(g.r.randint(0, 3)), g.const(True, bool), start], {"body": body}, 2


@op("Scan")
def scan(g, name):
    x = g.some("f", 1, 3, lambda v: v.shape[0] > 0)
    if not x:
        return None
    v = g.values[x]
    a, e, s, o = (g.name() for _ in range(4))
    row = v[0]
    body = helper.make_graph([helper.make_node("Add", [a, e], [s]), helper.make_node("Neg", [s], [o])], "body", [tensor(a, row), tensor(e, row)],
                             [tensor(s, row), tensor(o, row)])
    return [g.put(g.data(v.dtype, row.shape)), x], {"body": body, "num_scan_inputs": 1}, 2
