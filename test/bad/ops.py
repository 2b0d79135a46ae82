"""Operators with attributes or operands that are out of range, and small files that ask for enormous results."""
import numpy as np

from .kit import F, I, T, const, floats, h, ints, model, one, val

X4 = {"x": (F, (1, 2, 5, 5))}
X2 = {"x": (F, (2, 3))}
BIG = 1 << 40


def conv(b):
    w = {"w": floats(4, 2, 3, 3)}
    for name, attrs in {
        "stride_zero": {"strides": [0, 1]}, "stride_negative": {"strides": [1, -2]}, "stride_short": {"strides": [1]},
        "dilation_zero": {"dilations": [0, 0]}, "dilation_negative": {"dilations": [-1, 1]},
        "dilation_huge": {"dilations": [1 << 62, 1]},
        "pads_negative": {"pads": [-1, 0, 0, 0]}, "pads_huge": {"pads": [BIG, BIG, BIG, BIG]},
        "pads_int64_max": {"pads": [(1 << 63) - 1] * 4}, "pads_short": {"pads": [1, 1]},
        "group_zero": {"group": 0}, "group_negative": {"group": -1}, "group_not_dividing": {"group": 3},
        "kernel_rank": {"kernel_shape": [3]}, "kernel_differs": {"kernel_shape": [5, 5]},
        "kernel_zero": {"kernel_shape": [0, 0]}, "auto_pad_unknown": {"auto_pad": "SOMEHOW"},
    }.items():
        b.op("conv_" + name, "Conv", X4, consts=w, code=(3, 4, 5) if name == "pads_huge" else 4, **attrs)
    b.op("conv_stride_huge", "Conv", X4, consts=w, level="any", strides=[(1 << 63) - 1] * 2)
    b.op("conv_channels", "Conv", X4, consts={"w": floats(4, 3, 3, 3)})
    b.op("conv_weight_rank", "Conv", X4, consts={"w": floats(4, 18)})
    b.op("conv_input_rank", "Conv", {"x": (F, (5,))}, consts={"w": floats(1, 1, 1)})
    b.op("conv_bias_length", "Conv", X4, consts={**w, "bias": floats(7)})
    b.op("conv_kernel_too_big", "Conv", X4, consts={"w": floats(1, 2, 9, 9)})
    b.op("convtranspose_stride_zero", "ConvTranspose", X4, consts={"w": floats(2, 1, 3, 3)}, strides=[0, 0])
    b.op("convtranspose_huge", "ConvTranspose", X4, consts={"w": floats(2, 1, 3, 3)}, strides=[BIG, BIG], code=(3, 4, 5))
    b.op("convtranspose_shape_short", "ConvTranspose", X4, consts={"w": floats(2, 1, 3, 3)}, output_shape=[9])


def pool(b):
    for name, attrs in {
        "no_kernel": {}, "kernel_zero": {"kernel_shape": [0, 2]}, "kernel_negative": {"kernel_shape": [-2, 2]},
        "kernel_short": {"kernel_shape": [2]}, "kernel_too_big": {"kernel_shape": [9, 9]},
        "stride_zero": {"kernel_shape": [2, 2], "strides": [0, 0]},
        "pads_negative": {"kernel_shape": [2, 2], "pads": [-3, 0, 0, 0]},
        "pads_long": {"kernel_shape": [2, 2], "pads": [0] * 6},
    }.items():
        b.op("maxpool_" + name, "MaxPool", X4, **attrs)
    b.op("averagepool_dilation_zero", "AveragePool", X4, opset=19, kernel_shape=[2, 2], dilations=[0, 1])
    b.op("globalpool_rank_1", "GlobalAveragePool", {"x": (F, (4,))}, code=(3, 4))


def axes(b):
    # Indices out of range: gathers clamp them, scatters skip them (ops.def), so those files are valid to ingot.
    b.op("concat_axis", "Concat", {"x": (F, (2, 3)), "z": (F, (2, 3))}, axis=2)
    b.op("concat_shapes", "Concat", {"x": (F, (2, 3)), "z": (F, (5, 4))}, axis=0)
    b.op("concat_ranks", "Concat", {"x": (F, (2, 3)), "z": (F, (2, 3, 1))}, axis=0)
    b.op("softmax_axis", "Softmax", X2, axis=5)
    b.op("flatten_axis", "Flatten", X2, axis=9)
    b.op("argmax_axis", "ArgMax", X2, axis=-4)
    b.op("gather_axis", "Gather", X2, consts={"i": ints(0)}, axis=2)
    b.op("gather_index", "Gather", X2, consts={"i": ints(2)}, axis=0, level="any")
    b.op("gather_index_min", "Gather", X2, consts={"i": ints(-(1 << 63))}, axis=0, level="any")
    b.op("gathernd_depth", "GatherND", X2, consts={"i": np.zeros((1, 3), np.int64)})
    b.op("gathernd_index", "GatherND", X2, consts={"i": np.array([[0, 0], [1, 7]], np.int64)}, text="index 7 is out of range for extent 3")
    b.op("gathernd_index_below", "GatherND", X2, consts={"i": np.array([[-2, -3], [-3, 0]], np.int64)}, text="index -3 is out of range for extent 2")
    b.op("gatherelements_rank", "GatherElements", X2, consts={"i": ints(0)})
    b.op("scatternd_shape", "ScatterND", X2, consts={"i": np.zeros((1, 2), np.int64), "u": floats(4)})
    b.op("scatternd_index", "ScatterND", X2, consts={"i": np.array([[5, 5]], np.int64), "u": floats(1)}, text="index 5 is out of range for extent 2")
    b.op("scatterelements_index", "ScatterElements", X2, consts={"i": np.array([[9]], np.int64), "u": floats(1, 1)}, level="any")
    b.op("squeeze_axis", "Squeeze", X2, consts={"a": ints(4)})
    b.op("squeeze_not_one", "Squeeze", X2, consts={"a": ints(0)})
    b.op("unsqueeze_axis", "Unsqueeze", X2, consts={"a": ints(8)})
    b.op("unsqueeze_twice", "Unsqueeze", X2, consts={"a": ints(0, 0)})
    b.op("reduce_axis", "ReduceSum", X2, consts={"a": ints(3)})
    b.op("reduce_axis_attr", "ReduceMax", X2, opset=11, axes=[-7])
    b.op("transpose_short", "Transpose", X2, perm=[0])
    b.op("transpose_twice", "Transpose", X2, perm=[1, 1])
    b.op("transpose_range", "Transpose", X2, perm=[0, 5])
    b.op("layernorm_axis", "LayerNormalization", X2, consts={"s": floats(3)}, axis=4)
    b.op("batchnorm_scale", "BatchNormalization", X4, consts={k: floats(n) for k, n in zip("sbmv", (9, 2, 2, 2))})
    b.op("topk_too_many", "TopK", X2, ["y", "i"], consts={"k": ints(9)})
    b.op("topk_negative", "TopK", X2, ["y", "i"], consts={"k": ints(-1)})
    b.op("split_sum", "Split", X2, ["y", "z"], consts={"s": ints(1, 9)}, axis=1)
    b.op("split_negative", "Split", X2, ["y", "z"], consts={"s": ints(-1, 4)}, axis=1)
    b.op("split_count", "Split", X2, ["y", "z"], consts={"s": ints(3)}, axis=1)
    b.op("slice_step_zero", "Slice", X2, consts={"s": ints(0), "e": ints(2), "a": ints(0), "t": ints(0)})
    b.op("slice_axis", "Slice", X2, consts={"s": ints(0), "e": ints(2), "a": ints(6)})
    b.op("slice_axis_twice", "Slice", X2, consts={"s": ints(0, 0), "e": ints(2, 2), "a": ints(0, 0)})
    b.op("slice_lengths", "Slice", X2, consts={"s": ints(0, 0), "e": ints(2)})
    b.op("trilu_rank_1", "Trilu", {"x": (F, (4,))})
    b.op("cumsum_axis", "CumSum", X2, consts={"a": ints(7)})
    b.op("onehot_values", "OneHot", {"x": (I, (2,))}, consts={"d": ints(3), "v": floats(3)})
    b.op("onehot_depth_negative", "OneHot", {"x": (I, (2,))}, consts={"d": ints(-3), "v": floats(2)})


def shapes(b):
    for name, shape in (("size", (7,)), ("two_wildcards", (-1, -1)), ("minus_two", (-2, 3)), ("zero_past_rank", (2, 3, 0)),
                        ("not_divisible", (4, -1)), ("overflow", (BIG, BIG)), ("int64_min", (-(1 << 63), 1))):
        b.op("reshape_" + name, "Reshape", X2, consts={"s": ints(*shape)})
    b.op("reshape_shape_2d", "Reshape", X2, consts={"s": np.array([[6]], np.int64)}, level="any")
    b.op("add_shapes", "Add", {"x": (F, (2, 3)), "z": (F, (4, 5))})
    b.op("matmul_shapes", "MatMul", {"x": (F, (2, 3)), "z": (F, (2, 3))})
    b.op("matmul_scalar", "MatMul", {"x": (F, ()), "z": (F, (3, 2))})
    b.op("gemm_rank", "Gemm", {"x": (F, (2, 3, 4)), "z": (F, (4, 2))})
    b.op("gemm_shapes", "Gemm", {"x": (F, (2, 3)), "z": (F, (4, 2))})
    b.op("expand_shape", "Expand", X2, consts={"s": ints(5, 3)})
    b.op("expand_negative", "Expand", X2, consts={"s": ints(-4, 2, 3)})
    b.op("constantofshape_negative", "ConstantOfShape", {}, consts={"s": ints(2, -3)})
    b.op("constantofshape_two_values", "ConstantOfShape", {}, consts={"s": ints(2)}, value=const("v", floats(2)))
    b.op("tile_negative", "Tile", X2, consts={"r": ints(-1, 2)})
    b.op("tile_short", "Tile", X2, consts={"r": ints(2)})
    b.op("range_step_zero", "Range", {}, consts={"a": np.int64(0), "l": np.int64(5), "d": np.int64(0)})
    b.op("pad_short", "Pad", X2, consts={"p": ints(1, 1)})
    b.op("pad_mode", "Pad", X2, consts={"p": ints(1, 1, 1, 1)}, mode="mirror")
    b.op("pad_reflect_too_far", "Pad", X2, consts={"p": ints(9, 9, 9, 9)}, mode="reflect", level="any")
    b.op("pad_removes_too_much", "Pad", X2, consts={"p": ints(-2, 0, -2, 0)})
    m = one("Resize", X4, consts={"roi": floats(0), "s": np.array([1, 1, 0, 1], np.float32)})
    b.model("resize_scale_zero", m, text="culprit", level="graph")
    b.op("resize_scale_negative", "Resize", X4, consts={"roi": floats(0), "s": np.array([1, 1, -2, 1], np.float32)})
    b.op("resize_scale_nan", "Resize", X4, consts={"roi": floats(0), "s": np.array([1, 1, np.nan, 1], np.float32)})
    b.op("resize_short", "Resize", X4, consts={"roi": floats(0), "s": np.array([1, 1], np.float32)})
    b.op("resize_mode", "Resize", X4, consts={"roi": floats(0), "s": np.ones(4, np.float32)}, mode="best", code=(3, 4))
    b.op("einsum_equation", "Einsum", X2, equation="ij->kk->", code=(3, 4))
    b.op("einsum_rank", "Einsum", X2, equation="ijk->k", code=(3, 4))


def bombs(b):
    """A few bytes that ask for far more than any machine has."""
    many = (3, 4, 5)
    b.op("bomb_expand", "Expand", {"x": (F, (1, 1))}, consts={"s": ints(1 << 24, 1 << 24)}, code=many)
    b.op("bomb_tile", "Tile", X2, consts={"r": ints(1 << 30, 1 << 20)}, code=many)
    b.op("bomb_tile_overflow", "Tile", X2, consts={"r": ints(1 << 62, 1 << 62)}, code=many)
    b.op("bomb_constantofshape", "ConstantOfShape", {}, consts={"s": ints(1 << 22, 1 << 22)}, code=many)
    b.op("bomb_constantofshape_overflow", "ConstantOfShape", {}, consts={"s": ints(1 << 40, 1 << 40)}, code=many)
    b.op("bomb_range", "Range", {}, consts={"a": np.int64(0), "l": np.int64(1 << 50), "d": np.int64(1)}, code=many)
    b.op("bomb_range_float", "Range", {}, consts={"a": np.float32(0), "l": np.float32(1e30), "d": np.float32(1e-30)}, code=many)
    b.op("bomb_range_nan", "Range", {}, consts={"a": np.float32(0), "l": np.float32(np.nan), "d": np.float32(1)}, code=many)
    b.op("bomb_pad", "Pad", X2, consts={"p": ints(0, 0, BIG, BIG)}, code=many)
    b.op("bomb_pad_overflow", "Pad", X2, consts={"p": ints((1 << 63) - 1, 0, (1 << 63) - 1, 0)}, code=many)
    b.op("bomb_resize", "Resize", X4, consts={"roi": floats(0), "s": np.array([1, 1, 1e12, 1e12], np.float32)}, code=many)
    b.op("bomb_resize_sizes", "Resize", X4, consts={"roi": floats(0), "s": floats(0), "z": ints(1, 2, BIG, BIG)}, code=many)
    b.op("bomb_onehot", "OneHot", {"x": (I, (2,))}, consts={"d": np.int64(1 << 50), "v": floats(2)}, code=many)
    doubling = [h.make_node("Concat", [f"v{k}", f"v{k}"], [f"v{k + 1}"], f"n{k}", axis=0) for k in range(60)]
    doubling += [h.make_node("Identity", ["v60"], ["y"])]
    b.model("bomb_doubling", model(doubling, [val("v0")], [val("y", F, None)]), code=many, level="graph")
    consts = [const("v0", floats(2, 3))]
    b.model("bomb_doubling_constant", model(doubling, [], [val("y", F, None)], consts), code=many, level="graph")


def rest(b):
    lstm = {"x": (F, (5, 1, 4))}
    good = {"w": floats(1, 12, 4), "r": floats(1, 12, 3)}
    b.op("lstm_weight_shape", "LSTM", lstm, consts={"w": floats(1, 11, 4), "r": floats(1, 12, 3)}, hidden_size=3)
    b.op("lstm_hidden_zero", "LSTM", lstm, consts=good, hidden_size=0)
    b.op("lstm_hidden_differs", "LSTM", lstm, consts=good, hidden_size=5)
    b.op("lstm_direction", "LSTM", lstm, consts=good, hidden_size=3, direction="sideways")
    b.op("lstm_activation", "LSTM", lstm, consts=good, hidden_size=3, activations=["Sigmoid", "Tanh", "Zigzag"], code=(3, 4))
    b.op("lstm_activation_count", "LSTM", lstm, consts=good, hidden_size=3, activations=["Sigmoid"])
    b.op("gru_input_rank", "GRU", {"x": (F, (5, 4))}, consts={"w": floats(1, 9, 4), "r": floats(1, 9, 3)}, hidden_size=3)
    b.op("dequantize_axis", "DequantizeLinear", {"x": (T.INT8, (2, 3))}, consts={"s": floats(3)}, axis=7)
    b.op("dequantize_length", "DequantizeLinear", {"x": (T.INT8, (2, 3))}, consts={"s": floats(5)}, axis=1)
    b.op("quantize_zero_point_type", "QuantizeLinear", X2, consts={"s": np.float32(1), "z": np.float32(0)})
    b.op("matmulinteger_float", "MatMulInteger", {"x": (F, (2, 3)), "z": (F, (3, 2))})
    b.op("dropout_ratio", "Dropout", X2, consts={"r": np.float32(7)}, level="any")
    b.op("integer_division_by_zero", "Div", {"x": (I, (2, 3))}, consts={"z": np.zeros((2, 3), np.int64)}, level="any")
    b.op("integer_division_overflow", "Div", {}, consts={"a": ints(-(1 << 63)), "z": ints(-1)}, level="any")
    b.op("mod_by_zero", "Mod", {"x": (I, (2, 3))}, consts={"z": np.zeros((2, 3), np.int64)}, level="any")
    b.op("shift_too_far", "BitShift", {}, consts={"a": np.array([1], np.uint32), "z": np.array([77], np.uint32)},
         level="any", direction="LEFT")
    b.op("cast_nan_to_int", "Cast", {}, consts={"a": np.array([np.nan, np.inf, 1e30], np.float32)}, level="any", to=6)


def cases(b):
    for part in (conv, pool, axes, shapes, bombs, rest):
        part(b)
