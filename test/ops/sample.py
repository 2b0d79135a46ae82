"""GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv."""
import numpy as np


def grid_sample(Case, f):
    for mode in ("linear", "nearest", "cubic"):
        for fill in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                attrs = {"mode": mode, "padding_mode": fill, "align_corners": corners}
                name = f"{mode}_{fill}_{corners}"
                yield Case("grid2_" + name, "GridSample", ["x", "g"], ["y"], {"x": f(2, 3, 5, 4), "g": f(2, 4, 3, 2) * 1.2}, attrs=attrs)
                if mode != "cubic":
                    data = {"x": f(1, 2, 3, 4, 5), "g": f(1, 2, 3, 2, 3) * 1.2}
                    yield Case("grid3_" + name, "GridSample", ["x", "g"], ["y"], data, attrs=attrs)


def regions(Case, f):
    rois = np.array([[0, 0, 5, 6], [1.5, 2.5, 7, 9.2], [-3, -2, 4, 5], [2, 3, 2.1, 3.1], [4, 4, 3, 3], [0, 0, 30, 30]], np.float32)
    batch = np.array([0, 1, 1, 0, 0, 1])
    size = {"output_height": 3, "output_width": 2, "spatial_scale": 0.8}
    for ratio in (0, 2):
        for mode in ("avg", "max"):
            for how in ("half_pixel", "output_half_pixel"):
                attrs = {"mode": mode, "coordinate_transformation_mode": how, "sampling_ratio": ratio, **size}
                data = {"x": f(2, 3, 10, 8), "r": rois, "b": batch}
                yield Case(f"align_{ratio}_{mode}_{how}", "RoiAlign", ["x", "r", "b"], ["y"], data, attrs=attrs)
    pooled = {"x": f(2, 3, 10, 8), "r": np.concatenate([batch[:, None].astype(np.float32), rois], 1)}
    yield Case("maxroipool", "MaxRoiPool", ["x", "r"], ["y"], pooled, attrs={"pooled_shape": [3, 2], "spatial_scale": 0.8})


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    yield from grid_sample(Case, f)
    yield from regions(Case, f)
    for corners in (0, 1):
        for size in ([2, 3, 4, 5], [2, 3, 4, 5, 6]):
            n = len(size) - 2
            yield Case(f"affine{n}_{corners}", "AffineGrid", ["t", "s"], ["y"], {"t": f(2, n, n + 1)}, {"s": np.array(size)},
                       {"align_corners": corners})
    for group, offsets, masked in ((1, 1, 0), (2, 1, 1), (1, 2, 1), (2, 2, 0)):
        data = {"x": f(2, 4, 7, 6), "w": f(6, 4 // group, 3, 2), "o": f(2, offsets * 12, 4, 5), "b": f(6)}
        if masked:
            data["m"] = f(2, offsets * 6, 4, 5)
        attrs = {"group": group, "offset_group": offsets, "pads": [1, 0, 1, 1], "strides": [2, 1], "dilations": [1, 2]}
        yield Case(f"deform_{group}_{offsets}", "DeformConv", list(data), ["y"], data, attrs=attrs)
    # Scales are f32, and so is what is computed from them: a product that should be whole is, a place that should be is too.
    for scale, n, coord, near, mode in ((1.8, 5, "asymmetric", "floor", "nearest"), (1.6, 8, "asymmetric", "floor", "nearest"), (0.2, 5, "half_pixel", "floor", "nearest"),
                                        (1.3, 10, "asymmetric", "ceil", "nearest"), (2.9, 7, "half_pixel", "round_prefer_ceil", "nearest"), (0.2, 5, "pytorch_half_pixel", "floor", "linear")):
        attrs = {"coordinate_transformation_mode": coord, "nearest_mode": near, "mode": mode}
        yield Case(f"resize_{scale}_{n}_{coord}_{near}", "Resize", ["x", "", "s"], ["y"], {"x": f(1, 1, 1, n)}, {"s": np.array([1, 1, 1, scale], np.float32)}, attrs=attrs)
    # Products of extents and scales that are not whole: the length of the result is what places are computed from. ONNX Runtime is not asked for results
    # as long as the operand, which it copies.
    for coord in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn", "half_pixel_symmetric", "tf_crop_and_resize"):
        for mode in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "linear", "cubic"):
            for k, scale in enumerate(((1.3, 2.6), (0.7, 0.6), (0.3, 1.7))):
                attrs = {"coordinate_transformation_mode": coord, **({"mode": mode} if mode in ("linear", "cubic") else {"mode": "nearest", "nearest_mode": mode})}
                init = {"r": np.array([0, 0, .1, .2, 1, 1, .9, .8], np.float32), "s": np.array([1, 1, *scale], np.float32)}
                yield Case(f"resize_part_{coord}_{mode}_{k}", "Resize", ["x", "r", "s"], ["y"], {"x": f(1, 1, 5, 7)}, init, attrs=attrs)
    for mode in ("linear", "cubic"):  # test_resize_downsample_scales_*_align_corners of onnx
        attrs = {"coordinate_transformation_mode": "align_corners", "mode": mode}
        yield Case(f"resize_part_onnx_{mode}", "Resize", ["x", "", "s"], ["y"], {"x": f(1, 1, 4, 4)}, {"s": np.array([1, 1, .8, .6], np.float32)}, attrs=attrs)
