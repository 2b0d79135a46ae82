"""Operators that move elements, or make tensors of shapes."""
import numpy as np
from tflitefile import Net, Q
from .maths import floats, ints


def moved(Case, name, op, x, more=(), outs=1, options=None, compiled=False, q=None, kind=None, late=False, **fields):
    """An operator that moves elements of x; more: its other operands, constants unless late."""
    net = Net()
    kind = kind or {"float32": "f32", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "bool", "uint8": "u8"}[x.dtype.name]
    q = q or (Q(0.05, -3) if kind == "i8" else Q(0.001) if kind == "i16" else Q(0.05, 130) if kind == "u8" else None)
    ins = [net.input(kind, x.shape, q)]
    data = [x]
    for m in more:
        m = np.asarray(m, np.int32) if isinstance(m, list) else m
        if late:
            ins.append(net.input({"int32": "i32", "int64": "i64", "float32": "f32"}[m.dtype.name], m.shape))
            data.append(m)
        else:
            ins.append(net.const(m, q if m.dtype == x.dtype and q else None))
    ys = net.op(op, ins, [(kind, q)] * outs, options, **fields)
    net.result(*([ys] if outs == 1 else ys))
    return Case(name, net, [data], rtol=0, atol=0, compiled=compiled)


def both(rng, shape):
    yield "f32", floats(rng, shape)
    yield "i8", ints(rng, "i8", shape)


def views(Case, rng):
    for kind, x in both(rng, (2, 3, 4)):
        yield moved(Case, f"reshape_{kind}", "RESHAPE", x, [[6, -1]], options="Reshape", new_shape=[6, -1])
        yield moved(Case, f"expand_dims_{kind}", "EXPAND_DIMS", x, [np.array(1, np.int32)], options="ExpandDims")
        yield moved(Case, f"transpose_{kind}", "TRANSPOSE", x, [[2, 0, 1]], options="Transpose", compiled=True)
        yield moved(Case, f"slice_{kind}", "SLICE", x, [[0, 1, 1], [-1, 2, 2]], options="Slice")
        yield moved(Case, f"reverse_{kind}", "REVERSE_V2", x, [[1]], options="ReverseV2")
        yield moved(Case, f"tile_{kind}", "TILE", x, [[2, 1, 3]], options="Tile")
        yield moved(Case, f"broadcast_to_{kind}", "BROADCAST_TO", x[:, :1].copy(), [[3, 2, 5, 4]], options="BroadcastTo", version=2)
        yield moved(Case, f"pad_{kind}", "PAD", x, [[[1, 0], [0, 2], [3, 1]]], options="Pad")
        yield moved(Case, f"pad_v2_{kind}", "PADV2", x, [[[1, 0], [0, 2], [3, 1]], np.array(5, x.dtype)], options="PadV2")
        for mode in (0, 1):
            yield moved(Case, f"mirror_pad_{mode}_{kind}", "MIRROR_PAD", x, [[[1, 1], [2, 0], [1, 2]]], options="MirrorPad", mode=mode)
        yield moved(Case, f"split_{kind}", "SLICE", x, [[1, 0, 0], [1, 3, -1]], options="Slice")
    yield moved(Case, "reshape_option", "RESHAPE", floats(rng, (2, 3, 4)), options="Reshape", new_shape=[4, 6])
    yield moved(Case, "reshape_scalar", "RESHAPE", floats(rng, (1, 1)), [np.zeros(0, np.int32)], options="Reshape", new_shape=[])
    yield moved(Case, "squeeze_all", "SQUEEZE", floats(rng, (1, 3, 1, 2)), options="Squeeze", squeeze_dims=[])
    yield moved(Case, "squeeze_one", "SQUEEZE", floats(rng, (1, 3, 1, 2)), options="Squeeze", squeeze_dims=[-2])
    yield moved(Case, "expand_dims_last", "EXPAND_DIMS", floats(rng, (2, 3)), [np.array([-1], np.int32)], options="ExpandDims")
    yield moved(Case, "transpose_4", "TRANSPOSE", ints(rng, "i16", (2, 3, 4, 5)), [[0, 3, 1, 2]], options="Transpose")
    yield moved(Case, "transpose_5", "TRANSPOSE", floats(rng, (2, 3, 1, 2, 2)), [[4, 3, 2, 1, 0]], options="Transpose")
    yield moved(Case, "slice_i64", "SLICE", floats(rng, (4, 5)), [np.array([1, 2], np.int64), np.array([2, -1], np.int64)], options="Slice")
    yield moved(Case, "tile_i64", "TILE", floats(rng, (2, 2)), [np.array([2, 2], np.int64)], options="Tile")
    yield moved(Case, "pad_i64", "PAD", floats(rng, (2, 2)), [np.array([[1, 0], [0, 1]], np.int64)], options="Pad")
    yield moved(Case, "pad_u8", "PAD", ints(rng, "u8", (2, 2)), [[[1, 0], [0, 1]]], options="Pad")
    yield moved(Case, "pad_i16", "PAD", ints(rng, "i16", (2, 2)), [[[1, 0], [0, 1]]], options="Pad")
    yield moved(Case, "reverse_two", "REVERSE_V2", floats(rng, (3, 2, 4)), [[0, 1]], options="ReverseV2")


def strided(Case, rng):
    x = floats(rng, (5, 6, 7))
    #       name     begin        end          strides      begin, end, ellipsis, new axis, shrink masks
    rows = (("plain", [1, 0, 2], [4, 6, 7], [1, 2, 3], 0, 0, 0, 0, 0), ("negative", [-1, 4, 6], [0, 0, 0], [-2, -1, -3], 0, 0, 0, 0, 0),
            ("masks", [1, 2, 3], [2, 3, 4], [1, 1, 2], 0b011, 0b110, 0, 0, 0), ("back_masks", [1, 2, 3], [2, 3, 4], [-1, -2, 1], 0b011, 0b011, 0, 0, 0),
            ("shrink", [2, 0, 1], [3, 6, 2], [1, 1, 1], 0, 0, 0, 0, 0b101), ("shrink_negative", [-2, 0, -1], [-1, 6, 0], [1, 1, 1], 0, 0, 0, 0, 0b101),
            ("short", [1], [4], [2], 0, 0, 0, 0, 0), ("beyond", [-99, 3, 0], [99, 99, 99], [1, 1, 1], 0, 0, 0, 0, 0),
            ("new_axis", [0, 1, 0, 0], [0, 4, 6, 7], [1, 1, 1, 1], 0, 0, 0, 0b0001, 0), ("ellipsis", [1, 0, 2], [4, 0, 5], [1, 1, 1], 0, 0, 0b010, 0, 0),
            ("ellipsis_end", [1, 0], [4, 0], [1, 1], 0, 0, 0b10, 0, 0), ("mixed", [2, 0, 0, 1], [3, 0, 0, 5], [1, 1, 1, 2], 0, 0, 0b0010, 0b0100, 0b0001))
    for name, begin, end, step, bm, em, el, nw, sh in rows:
        yield moved(Case, f"strided_slice_{name}", "STRIDED_SLICE", x, [begin, end, step], options="StridedSlice", begin_mask=bm, end_mask=em, ellipsis_mask=el,
                    new_axis_mask=nw, shrink_axis_mask=sh, version=1 if not el | nw else 6, compiled=name in ("negative", "mixed"))
    yield moved(Case, "strided_slice_offset", "STRIDED_SLICE", x, [[1, 2, 3], [2, 3, 3], [1, 1, 1]], options="StridedSlice", offset=True, version=8)
    yield moved(Case, "strided_slice_i8", "STRIDED_SLICE", ints(rng, "i8", (5, 6)), [[0, 1], [5, 6], [2, 2]], options="StridedSlice")
    yield moved(Case, "strided_slice_bool", "STRIDED_SLICE", rng.random((5, 6)) < 0.5, [[0, 1], [5, 6], [2, 2]], options="StridedSlice")


def joins(Case, rng):
    for kind, x in both(rng, (2, 3, 4)):
        q = Q(0.05, -3) if kind == "i8" else None
        for axis in (0, -1):
            net = Net()
            ins = [net.input(kind, x.shape, q), net.input(kind, x.shape, q), net.const(x * 2 if kind == "f32" else x, q)]
            net.result(net.op("CONCATENATION", ins, [(kind, q)], "Concatenation", axis=axis))
            yield Case(f"concatenation_{axis % 3}_{kind}", net, [[x, x[::-1].copy()]], rtol=0, atol=0, compiled=True)
            net = Net()
            net.result(net.op("PACK", [net.input(kind, x.shape, q), net.input(kind, x.shape, q)], [(kind, q)], "Pack", values_count=2, axis=axis))
            yield Case(f"pack_{axis % 3}_{kind}", net, [[x, x[::-1].copy()]], rtol=0, atol=0)
        yield moved(Case, f"unpack_{kind}", "UNPACK", x, outs=3, options="Unpack", num=3, axis=1)
        yield moved(Case, f"unpack_last_{kind}", "UNPACK", x, outs=4, options="Unpack", num=4, axis=-1)
        net = Net()
        axis = net.const(np.array(2, np.int32))
        net.result(*net.op("SPLIT", [axis, net.input(kind, x.shape, q)], [(kind, q)] * 2, "Split", num_splits=2))
        yield Case(f"split_parts_{kind}", net, [[x]], rtol=0, atol=0)
        yield moved(Case, f"split_v_{kind}", "SPLIT_V", x, [[1, -1, 1], np.array(2, np.int32)], outs=3, options="SplitV", num_splits=3)
    # uint8 brings the parts of a concatenation to the scale of the result; others must have it.
    net = Net()
    data = [ints(rng, "u8", (2, 40)), ints(rng, "u8", (2, 40))]
    net.result(net.op("CONCATENATION", [net.input("u8", (2, 40), Q(0.05, 120)), net.input("u8", (2, 40), Q(0.02, 90))], [("u8", Q(0.05, 128))], "Concatenation", axis=1))
    yield Case("concatenation_scales_u8", net, [data])
    # A pack of scalars and of extents, as converters write them around a reshape.
    net = Net()
    x = net.input("f32", (2, 3, 4))
    shape = net.op("SHAPE", [x], ["i32"], "Shape", out_type=2)
    parts = [net.op("STRIDED_SLICE", [shape, net.shape_of([i]), net.shape_of([i + 1]), net.shape_of([1])], ["i32"], "StridedSlice", shrink_axis_mask=1) for i in (0, 2)]
    to = net.op("PACK", [parts[0], net.const(np.array(-1, np.int32)), parts[1]], ["i32"], "Pack", values_count=3)
    net.result(net.op("RESHAPE", [x, to], ["f32"], "Reshape"))
    yield Case("reshape_computed", net, [[floats(rng, (2, 3, 4))]], rtol=0, atol=0)


def made(Case, rng):
    net = Net()
    v = net.input("f32", ())
    net.result(net.op("FILL", [net.shape_of([2, 3]), v], ["f32"], "Fill"))
    yield Case("fill_f32", net, [[np.array(2.5, np.float32)]])
    net = Net()
    net.result(net.op("FILL", [net.const(np.array([2, 3], np.int64)), net.input("i8", (), Q(0.1, 3))], [("i8", Q(0.1, 3))], "Fill"))
    yield Case("fill_i8", net, [[np.array(-7, np.int8)]])
    for kind in ("f32", "i32", "i64"):
        net = Net()
        x = floats(rng, (2, 3)) if kind == "f32" else ints(rng, kind, (2, 3), -9, 9)
        net.result(net.op("ZEROS_LIKE", [net.input(kind, x.shape)], [kind], "ZerosLike"))
        yield Case(f"zeros_like_{kind}", net, [[x]])
    from ai_edge_litert.schema_py_generated import TensorType
    for kind, code in (("i32", TensorType.INT32), ("i64", TensorType.INT64)):
        net = Net()
        net.result(net.op("SHAPE", [net.input("f32", (2, 3, 4))], [kind], "Shape", out_type=code))
        yield Case(f"shape_{kind}", net, [[floats(rng, (2, 3, 4))]])
    net = Net()
    net.result(net.op("RANK", [net.input("f32", (2, 3, 4))], ["i32"], "Rank"))
    yield Case("rank", net, [[floats(rng, (2, 3, 4))]])
    for kind, a in (("f32", np.array([1, 9, 1.5], np.float32)), ("i32", np.array([3, -8, -2], np.int32)), ("i64", np.array([1, 9, 2], np.int64))):
        net = Net()
        x = net.input(kind, (len(np.arange(*a)),))
        r = net.op("RANGE", [net.const(a[i]) for i in range(3)], [kind], "Range")
        net.result(net.op("ADD", [x, r], [kind], "Add"))
        yield Case(f"range_{kind}", net, [[np.ones(len(np.arange(*a)), a.dtype)]])
    net = Net()
    net.result(net.op("BROADCAST_ARGS", [net.input("i32", (3,)), net.const(np.array([2, 1], np.int32))], ["i32"]))
    yield Case("broadcast_args", net, [[np.array([4, 1, 5], np.int32)]])
    net = Net()
    net.result(net.op("BROADCAST_ARGS", [net.input("i64", (2,)), net.const(np.array([7, 2, 1], np.int64))], ["i64"]))
    yield Case("broadcast_args_i64", net, [[np.array([1, 5], np.int64)]])


def blocks(Case, rng):
    for kind, x in both(rng, (2, 4, 6, 8)):
        yield moved(Case, f"space_to_depth_{kind}", "SPACE_TO_DEPTH", x, options="SpaceToDepth", block_size=2)
        yield moved(Case, f"depth_to_space_{kind}", "DEPTH_TO_SPACE", x, options="DepthToSpace", block_size=2)
        yield moved(Case, f"space_to_batch_{kind}", "SPACE_TO_BATCH_ND", x, [[2, 3], [[0, 0], [2, 1]]], options="SpaceToBatchND")
        yield moved(Case, f"batch_to_space_{kind}", "BATCH_TO_SPACE_ND", x, [[2, 1], [[0, 1], [2, 0]]], options="BatchToSpaceND")
    yield moved(Case, "space_to_batch_3", "SPACE_TO_BATCH_ND", floats(rng, (2, 5, 3)), [[2], [[1, 0]]], options="SpaceToBatchND")
    yield moved(Case, "batch_to_space_3", "BATCH_TO_SPACE_ND", floats(rng, (4, 5, 3)), [[2], [[1, 0]]], options="BatchToSpaceND")


def resizes(Case, rng):
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for kind in ("f32", "i8", "u8", "i16"):
            for tag, shape, to, corners, half in (("up", (1, 4, 5, 3), (9, 7), False, False), ("corners", (1, 4, 5, 3), (9, 7), True, False),
                                                  ("half", (2, 4, 5, 3), (8, 10), False, True), ("down", (1, 9, 8, 2), (4, 3), False, False),
                                                  ("half_down", (1, 9, 8, 2), (4, 3), False, True)):
                net = Net()
                q = None if kind == "f32" else Q(0.05, 120 if kind == "u8" else -3 if kind == "i8" else 0)
                x = floats(rng, shape) if kind == "f32" else ints(rng, kind, shape)
                ins = [net.input(kind, shape, q), net.shape_of(to)]
                net.result(net.op(op, ins, [(kind, q)], "ResizeBilinear" if op[7] == "B" else "ResizeNearestNeighbor", align_corners=corners, half_pixel_centers=half,
                                  version=3))
                near = {"steps": 1, "share": 0.05, "why": "f32 numbers half-way between two steps, added up in another order"} if kind == "u8" and op[7] == "B" else {}
                yield Case(f"{op.lower()}_{tag}_{kind}", net, [[x]], **near)


def cases(Case, rng):
    for part in (views, strided, joins, made, blocks, resizes):
        yield from part(Case, rng)
