"""Corners of ai.onnx that random models (test/make/genonnx.py) found."""
import numpy as np


def cases(Case, rng):
    x = rng.standard_normal((3, 4)).astype(np.float32)
    for start in (-5, -4, -1, 0, 3, 9):
        for end in (-2**31, -5, -4, 0, 2, 9):
            init = {"s": np.array([start]), "e": np.array([end]), "a": np.array([1]), "k": np.array([-1])}
            yield Case(f"slice_back_{start}_{end}", "Slice", ["x", "s", "e", "a", "k"], ["y"], {"x": x}, init)
