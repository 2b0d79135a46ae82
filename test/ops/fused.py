"""com.microsoft: products, activations and normalisations fused by exporters; operators of opset 1 that were never standard."""
import numpy as np


def products(M, f):
    for a in (0, 1):
        for b in (0, 1):
            for batch in (0, 1):
                left = ((5, 2, 3, 4) if a else (4, 2, 3, 5)) if batch else ((2, 3, 5, 4) if a else (2, 3, 4, 5))
                data = {"a": f(*left), "b": f(*((2, 3, 6, 5) if b else (2, 3, 5, 6)))}
                attrs = {"transA": a, "transB": b, "transBatchA": batch, "alpha": 0.5}
                yield M(f"matmul_{a}{b}{batch}", "FusedMatMul", ["a", "b"], ["y"], data, attrs=attrs)
    init = {"w": f(4, 3, 3, 3), "b": f(4)}
    acts = (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4]))
    for name, params in acts:
        attrs = {"activation": name, "pads": [1, 1, 1, 1]} | ({"activation_params": params} if params else {})
        yield M(f"conv_{name}", "FusedConv", ["x", "w", "b"], ["y"], {"x": f(2, 3, 7, 8)}, init, attrs)
    attrs = {"activation": "Relu", "pads": [1, 1, 1, 1]}
    yield M("conv_sum", "FusedConv", ["x", "w", "b", "z"], ["y"], {"x": f(2, 3, 7, 8), "z": f(2, 4, 7, 8)}, init, attrs)
    attrs = {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2}
    yield M("gemm", "FusedGemm", ["a", "b", "c"], ["y"], {"a": f(3, 4)}, {"b": f(5, 4), "c": f(5)}, attrs)


def elementwise(M, f):
    x = {"x": f(2, 5, 8) * 2}
    yield M("gelu", "Gelu", ["x"], ["y"], x)
    yield M("biasgelu", "BiasGelu", ["x", "b"], ["y"], x | {"b": f(8)})
    yield M("fastgelu", "FastGelu", ["x"], ["y"], x)
    yield M("fastgelu_bias", "FastGelu", ["x", "b"], ["y"], x | {"b": f(8)})
    yield M("quickgelu", "QuickGelu", ["x"], ["y"], x)
    yield M("quickgelu_alpha", "QuickGelu", ["x"], ["y"], x, attrs={"alpha": 2.0})


def norms(M, f, rng):
    x = {"x": f(2, 5, 8), "s": f(2, 5, 8)}
    g = {"g": f(8), "b": f(8), "c": f(8)}
    eps = {"epsilon": 1e-5}
    yield M("skip", "SkipLayerNormalization", ["x", "s", "g", "b", "c"], ["y", "", "", "z"], x, g, eps)
    yield M("skip_plain", "SkipLayerNormalization", ["x", "s", "g"], ["y"], x | {"s": f(5, 8)}, {"g": f(8)})
    yield M("skip_rms", "SkipSimplifiedLayerNormalization", ["x", "s", "g", "c"], ["y", "", "", "z"], x, {"g": f(8), "c": f(8)}, eps)
    yield M("rms", "SimplifiedLayerNormalization", ["x", "g"], ["y", "i"], {"x": f(2, 5, 8)}, {"g": f(8)},
            {"axis": -1, "stash_type": 1} | eps, domain="")
    ids = rng.integers(0, 9, (2, 5)).astype(np.int32)
    segment = rng.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    init = {"w": f(9, 8), "p": f(7, 8), "g": f(8), "b": f(8)}
    yield M("embed", "EmbedLayerNormalization", ["i", "t", "w", "p", "s", "g", "b", "m"], ["y", "k", "e"],
            {"i": ids, "t": segment, "m": mask}, init | {"s": f(2, 8)})
    yield M("embed_plain", "EmbedLayerNormalization", ["i", "", "w", "p", "", "g", "b"], ["y", "k"], {"i": ids}, init)
    place = np.array([[1, 2, 3, 4, 5]], np.int32)
    yield M("embed_place", "EmbedLayerNormalization", ["i", "", "w", "p", "", "g", "b", "", "q"], ["y", "k"], {"i": ids, "q": place}, init)


def others(M, f, rng):
    attrs = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}
    yield M("nhwcmaxpool", "NhwcMaxPool", ["x"], ["y"], {"x": rng.integers(0, 255, (2, 7, 8, 3)).astype(np.uint8)}, attrs=attrs)
    for metric in ("euclidean", "sqeuclidean"):
        yield M("cdist_" + metric, "CDist", ["a", "b"], ["y"], {"a": f(4, 3), "b": f(5, 3)}, attrs={"metric": metric})
    yield M("trilu", "Trilu", ["x"], ["y"], {"x": f(4, 5)}, attrs={"upper": 0})
    yield M("trilu_k", "Trilu", ["x", "k"], ["y"], {"x": f(4, 5)}, {"k": np.array(1)})
    for mode in ("constant", "reflect", "edge"):
        init = {"p": np.array([1, 2, 0, 1]), "v": np.array([2.5], np.float32)}
        yield M("pad_" + mode, "Pad", ["x", "p", "v"], ["y"], {"x": f(4, 5)}, init, {"mode": mode})
    yield M("gathernd", "GatherND", ["x", "i"], ["y"], {"x": f(4, 5), "i": np.array([[0, 1], [3, 4]])})
    yield M("range", "Range", ["s", "l"], ["y"], {}, {"s": np.array([2], np.float32), "l": np.array([7], np.float32)})
    yield M("range_step", "Range", ["s", "l", "d"], ["y"], {}, {"s": np.array(2), "l": np.array(9), "d": np.array(3)})
    yield M("expanddims", "ExpandDims", ["x", "a"], ["y"], {"x": f(4, 5)}, {"a": np.array([-1], np.int32)})


def old(M, f):
    plain, image = {"x": f(2, 3)}, {"x": f(2, 3, 4, 5)}
    for op in ("Affine", "ScaledTanh", "ParametricSoftplus"):
        yield M("old_" + op, op, ["x"], ["y"], plain, attrs={"alpha": 2.0, "beta": 0.5}, domain="", opset=7)
    yield M("old_ImageScaler", "ImageScaler", ["x"], ["y"], image, attrs={"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, domain="", opset=7)
    yield M("old_Crop", "Crop", ["x"], ["y"], image, attrs={"border": [1, 0, 1, 2]}, domain="", opset=7)
    yield M("old_Crop_scale", "Crop", ["x"], ["y"], image, attrs={"border": [1, 0, 1, 2], "scale": [2, 3]}, domain="", opset=7)


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def M(*args, **more):
        return Case(*args, **{"domain": "com.microsoft"} | more)
    yield from products(M, f)
    yield from elementwise(M, f)
    yield from norms(M, f, rng)
    yield from others(M, f, rng)
    yield from old(M, f)
