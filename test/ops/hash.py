"""MurmurHash3 of numbers and strings, as ONNX Runtime computes it."""
import numpy as np


def cases(M, rng):
    wide = rng.integers(-(1 << 62), 1 << 62, (3, 4))
    numbers = {"int32": wide.astype(np.int32), "uint32": wide.astype(np.uint32), "int64": wide, "uint64": wide.astype(np.uint64),
               "float": rng.standard_normal((3, 4)).astype(np.float32), "double": rng.standard_normal((3, 4))}
    for name, x in numbers.items():
        yield M(name, "MurmurHash3", ["x"], ["y"], {"x": x}, domain="com.microsoft", attrs={"positive": 0})
    yield M("positive", "MurmurHash3", ["x"], ["y"], {"x": wide}, domain="com.microsoft", attrs={"seed": 7})
    words = np.array(["", "a", "ab", "abc", "abcd", "abcde", "feature=42", "日本語", "the quick brown fox jumps"], object)
    for seed in (0, -3):
        yield M(f"strings_{seed}", "MurmurHash3", ["x"], ["y"], {"x": words}, domain="com.microsoft", attrs={"seed": seed, "positive": 0},
                compiled=seed == 0)
    yield M("table", "MurmurHash3", ["x"], ["y"], {"x": words.reshape(3, 3)}, domain="com.microsoft")
