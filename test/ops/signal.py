"""DFT and STFT of many lengths, Det, Inverse, Unique, NonMaxSuppression."""
import numpy as np


def transforms(Case, f):
    for n in (1, 2, 3, 7, 16, 48, 49, 53, 60, 97, 210, 360, 1024):
        for half in (0, 1):
            yield Case(f"dft_{n}_{half}", "DFT", ["x"], ["y"], {"x": f(2, n, 1)}, attrs={"onesided": half}, judge="onnx", atol=1e-4)
        yield Case(f"idft_{n}", "DFT", ["x"], ["y"], {"x": f(2, n, 2)}, attrs={"inverse": 1}, judge="onnx")
        if n > 1:
            yield Case(f"irfft_{n}", "DFT", ["x", "l"], ["y"], {"x": f(2, n // 2 + 1, 2)}, {"l": np.array(n)},
                       {"inverse": 1, "onesided": 1}, judge="onnx")
    yield Case("dft_axis", "DFT", ["x", "l", "a"], ["y"], {"x": f(2, 3, 8, 5, 1)}, {"l": np.array(6), "a": np.array(-3)}, judge="onnx")
    yield Case("stft_window", "STFT", ["x", "s", "w"], ["y"], {"x": f(2, 100, 1)}, {"s": np.array(7), "w": f(16)}, judge="onnx")
    yield Case("stft_length", "STFT", ["x", "s", "", "l"], ["y"], {"x": f(2, 100, 1)}, {"s": np.array(7), "l": np.array(20)},
               {"onesided": 0}, judge="onnx")


def unique(Case, rng):
    for order in (0, 1):
        for axis in (None, 0, 1, -1):
            for dtype in (np.float32, np.int64, np.int8):
                x = rng.integers(0, 9, (7, 6)) if axis is None else rng.integers(0, 2, (7, 3))
                x = (x.T if axis in (1, -1) else x).astype(dtype)
                attrs = {"sorted": order} | ({} if axis is None else {"axis": axis})
                name = f"unique_{order}_{axis}_{dtype.__name__}".replace("-", "m")
                yield Case(name, "Unique", ["x"], ["y", "i", "v", "c"], {"x": np.ascontiguousarray(x)}, attrs=attrs)
    x = np.array([3, np.nan, 1, np.nan, 3, -np.inf, 1], np.float32)
    yield Case("unique_nan", "Unique", ["x"], ["y", "i", "v", "c"], {"x": x}, judge="onnx")


def boxes(Case, f, rng):
    for centre in (0, 1):
        for least in (None, 0.3):
            for most in (3, 100):
                for known in (True, False):
                    data = {"b": np.abs(f(2, 30, 4)), "s": rng.random((2, 3, 30)).astype(np.float32).round(1)}
                    init = {"i": np.array([0.3], np.float32)}
                    (init if known else data)["m"] = np.array([most])
                    names = ["b", "s", "m", "i"]
                    if least:
                        init["t"] = np.array([least], np.float32)
                        names.append("t")
                    yield Case(f"nms_{centre}_{least}_{most}_{known}", "NonMaxSuppression", names, ["y"], data, init,
                               {"center_point_box": centre})


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    yield from transforms(Case, f)
    yield from unique(Case, rng)
    yield from boxes(Case, f, rng)
    for n in (1, 2, 5):
        yield Case(f"det_{n}", "Det", ["x"], ["y"], {"x": f(3, 2, n, n)})
        yield Case(f"inverse_{n}", "Inverse", ["x"], ["y"], {"x": f(3, 2, n, n)}, domain="com.microsoft", rtol=1e-3)
    x = f(4, 4)
    x[2] = x[1]
    yield Case("det_singular", "Det", ["x"], ["y"], {"x": x})
