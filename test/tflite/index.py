"""Operators with indices: gathers, scatters, places of extremes, running sums, detections."""
import numpy as np
from flatbuffers import flexbuffers
from tflitefile import Net, Q
from .maths import floats, ints
from .shapes import both, moved

CODES = {"i32": 2, "i64": 4}


def gathers(Case, rng):
    for kind, x in both(rng, (3, 4, 5)):
        q = Q(0.05, -3) if kind == "i8" else None
        for tag, index, axis, batch in (("first", [2, 0, 2], 0, 0), ("last", [[4, 1], [0, 3]], -1, 0), ("middle", [3, 0], 1, 0), ("batch", [[3, 0], [1, 1], [2, 0]], 1, 1)):
            net = Net()
            index = np.array(index, np.int32)
            net.result(net.op("GATHER", [net.input(kind, x.shape, q), net.input("i32", index.shape)], [(kind, q)], "Gather", axis=axis, batch_dims=batch, version=5))
            yield Case(f"gather_{tag}_{kind}", net, [[x, index]], rtol=0, atol=0, compiled=tag == "middle")
        for tag, index in (("rows", [[2], [0]]), ("points", [[0, 1, 2], [2, 3, 4], [1, 0, 0]]), ("pairs", [[[0, 1]], [[2, 3]]])):
            net = Net()
            index = np.array(index, np.int32)
            net.result(net.op("GATHER_ND", [net.input(kind, x.shape, q), net.input("i32", index.shape)], [(kind, q)], "GatherNd"))
            yield Case(f"gather_nd_{tag}_{kind}", net, [[x, index]], rtol=0, atol=0)
    net = Net()
    x = floats(rng, (6, 3))
    net.result(net.op("GATHER", [net.const(x), net.input("i64", (2, 2))], ["f32"], "Gather", axis=0))
    yield Case("gather_weights", net, [[np.array([[5, 0], [3, 3]], np.int64)]], rtol=0, atol=0)
    for kind, table in (("f32", floats(rng, (6, 3, 2))), ("i8", ints(rng, "i8", (6, 4)))):
        net = Net()
        q = Q(0.1, 0) if kind == "i8" else None
        net.result(net.op("EMBEDDING_LOOKUP", [net.input("i32", (3,)), net.const(table, q)], [(kind, q)]))
        yield Case(f"embedding_lookup_{kind}", net, [[np.array([5, 0, 2], np.int32)]], rtol=0, atol=0)
    net = Net()
    net.result(net.op("EMBEDDING_LOOKUP", [net.input("i32", (3,)), net.const(ints(rng, "i8", (6, 4)), Q(0.1, 0))], ["f32"]))
    yield Case("embedding_lookup_hybrid", net, [[np.array([5, 0, 2], np.int32)]], rtol=1e-6)


def scatters(Case, rng):
    for tag, index, shape, update in (("rows", [[2], [0]], (4, 3), (2, 3)), ("points", [[0, 1], [3, 2], [0, 1]], (4, 3), (3,))):
        for kind in ("f32", "i32", "i8"):
            net = Net()
            u = floats(rng, update) if kind == "f32" else ints(rng, kind, update, -60, 60)
            index_a = np.array(index, np.int32)
            net.result(net.op("SCATTER_ND", [net.input("i32", index_a.shape), net.input(kind, update), net.shape_of(shape)], [kind], "ScatterNd"))
            yield Case(f"scatter_nd_{tag}_{kind}", net, [[index_a, u]])
    for kind, x in both(rng, (5, 6)):
        q = Q(0.05, -3) if kind == "i8" else None
        for at in ([1, 2], [4, 5], [-3, 0]):
            net = Net()
            u = x[:2, :3] * 2 if kind == "f32" else x[:2, :3]
            net.result(net.op("DYNAMIC_UPDATE_SLICE", [net.input(kind, x.shape, q), net.input(kind, u.shape, q), net.input("i32", (2,))], [(kind, q)]))
            yield Case(f"dynamic_update_slice_{at[0] % 256}_{kind}", net, [[x, np.ascontiguousarray(u), np.array(at, np.int32)]], rtol=0, atol=0)


def extremes(Case, rng):
    for op in ("ARG_MAX", "ARG_MIN"):
        for kind in ("f32", "i8", "i32", "u8"):
            for axis in (1, -1):
                net = Net()
                x = rng.integers(0, 9, (3, 4, 5)).astype({"f32": np.float32, "i8": np.int8, "i32": np.int32, "u8": np.uint8}[kind])
                to = "i32" if axis == 1 else "i64"
                q = Q(0.1, 3) if kind in ("i8", "u8") else None
                net.result(net.op(op, [net.input(kind, x.shape, q), net.const(np.array(axis, np.int32))], [to], op.title().replace("_", ""), output_type=CODES[to]))
                yield Case(f"{op.lower()}_{axis % 3}_{kind}", net, [[x]])
    for kind in ("f32", "i8", "i32"):
        net = Net()
        x = floats(rng, (3, 9)) if kind == "f32" else ints(rng, kind, (3, 9), -5, 5)
        q = Q(0.1, 3) if kind == "i8" else None
        net.result(*net.op("TOPK_V2", [net.input(kind, x.shape, q), net.const(np.array(4, np.int32))], [(kind, q), "i32"], "TopKV2"))
        yield Case(f"topk_{kind}", net, [[x]], rtol=0, atol=0)
    for kind in ("f32", "i32", "bool", "i8"):
        net = Net()
        on, off = {"f32": (2.5, -1.5), "i32": (7, -7), "bool": (True, False), "i8": (3, -3)}[kind]
        t = {"f32": np.float32, "i32": np.int32, "bool": np.bool_, "i8": np.int8}[kind]
        for axis in (-1, 0):
            net = Net()
            ins = [net.input("i32", (2, 3)), net.const(np.array(5, np.int32)), net.const(np.array(on, t)), net.const(np.array(off, t))]
            net.result(net.op("ONE_HOT", ins, [kind], "OneHot", axis=axis))
            yield Case(f"one_hot_{axis % 3}_{kind}", net, [[np.array([[0, 4, 7], [-1, 2, 2]], np.int32)]])
    net = Net()
    net.result(net.op("WHERE", [net.input("bool", (3, 4))], ["i64"], "Where"))
    yield Case("where", net, [[rng.random((3, 4)) < 0.5]])
    for tag, exclusive, reverse in (("plain", False, False), ("exclusive", True, False), ("reverse", False, True), ("both", True, True)):
        for kind in ("f32", "i32"):
            net = Net()
            x = floats(rng, (3, 4, 2)) if kind == "f32" else ints(rng, kind, (3, 4, 2), -9, 9)
            net.result(net.op("CUMSUM", [net.input(kind, x.shape), net.const(np.array(1, np.int32))], [kind], "Cumsum", exclusive=exclusive, reverse=reverse))
            yield Case(f"cumsum_{tag}_{kind}", net, [[x]])
    net = Net()
    x = floats(rng, (2, 4, 8))
    net.result(net.op("RFFT2D", [net.input("f32", x.shape), net.shape_of([4, 8])], ["resource"], "Rfft2d"))
    yield Case("rfft2d", net, [[x]], refuse="RFFT2D")


def detections(Case, rng):
    n, classes = 40, 3
    cy, cx = rng.uniform(0.1, 0.9, (2, n))
    anchors = np.stack([cy, cx, rng.uniform(0.1, 0.3, n), rng.uniform(0.1, 0.3, n)], 1).astype(np.float32)
    boxes = rng.normal(0, 1, (1, n, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (1, n, classes + 1)).astype(np.float32)
    base = {"max_detections": 10, "max_classes_per_detection": 1, "detections_per_class": 8, "use_regular_nms": False, "nms_score_threshold": 0.3,
            "nms_iou_threshold": 0.4, "num_classes": classes, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
    for tag, more in (("fast", {}), ("regular", {"use_regular_nms": True}), ("two", {"max_classes_per_detection": 2}), ("few", {"nms_score_threshold": 0.93, "use_regular_nms": True})):
        for kind in ("f32", "u8"):
            net = Net()
            if kind == "f32":
                data, qs = [boxes, scores], (None, None, None)
                table = net.const(anchors)
            else:
                qs = Q(0.03, 128), Q(1 / 256, 0), Q(1 / 256, 0)
                data = [np.clip(np.round(boxes / 0.03) + 128, 0, 255).astype(np.uint8), np.clip(np.round(scores * 256), 0, 255).astype(np.uint8)]
                table = net.const(np.clip(np.round(anchors * 256), 0, 255).astype(np.uint8), qs[2])
            ins = [net.input(kind, data[0].shape, qs[0]), net.input(kind, data[1].shape, qs[1]), table]
            net.result(*net.op("TFLite_Detection_PostProcess", ins, ["f32"] * 4, custom=bytes(flexbuffers.Dumps({**base, **more}))))
            yield Case(f"detection_{tag}_{kind}", net, [data])


def cases(Case, rng):
    for part in (gathers, scatters, extremes, detections):
        yield from part(Case, rng)
