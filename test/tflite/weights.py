"""Weights in fewer bits than what they meet: bytes and halves of bytes against floats (dynamic range), f16, and packed ones of 4 bits."""
import numpy as np
from tflitefile import NONE, RELU, SAME, Net, Q, S
from .maths import floats, ints


def packed(values):
    """Two numbers of 4 bits in a byte, the first in the lower half."""
    flat = values.reshape(-1).astype(np.int64) & 15
    flat = np.concatenate([flat, np.zeros(flat.size % 2, np.int64)])
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8)


def const4(net, values, q):
    t = net.const(packed(values), q, kind="i4")
    net.graph.tensors[t].shape = list(values.shape)
    return t


def window(net, code, kind, x, w, bias, **more):
    net.result(net.op(code, [net.input("f32", x.shape), w, net.const(bias)], ["f32"], kind, padding=SAME, stride_h=1, stride_w=1, dilation_h_factor=1,
                      dilation_w_factor=1, fused_activation_function=RELU, **more))


def hybrid(Case, rng):
    for tag, scale in (("tensor", 0.02), ("channels", rng.uniform(0.005, 0.02, 6))):
        net, x = Net(), floats(rng, (2, 7, 6, 4), -2, 3)
        window(net, "CONV_2D", "Conv2D", x, net.const(ints(rng, "i8", (6, 3, 3, 4), -127), Q(scale)), floats(rng, (6,)))
        yield Case(f"conv_hybrid_{tag}", net, [[x]], rtol=1e-3, atol=1e-3, compiled=True)
    net, x = Net(), floats(rng, (1, 7, 6, 4), -2, 3)
    w = net.const(ints(rng, "i8", (1, 3, 3, 4), -127), Q(rng.uniform(0.005, 0.02, 4), 0, 3))
    window(net, "DEPTHWISE_CONV_2D", "DepthwiseConv2D", x, w, floats(rng, (4,)), depth_multiplier=1)
    yield Case("depthwise_hybrid", net, [[x]], rtol=1e-3, atol=1e-3)
    for tag, shape, keep, centred, scale in (("rows", (3, 20), False, False, 0.02), ("keep", (2, 3, 20), True, False, 0.02), ("centred", (3, 20), False, True, 0.02),
                                             ("channels", (3, 20), False, False, rng.uniform(0.005, 0.02, 7))):
        net, x = Net(), floats(rng, shape, -1, 3)
        x.reshape(-1, 20)[1] = 0
        w = net.const(ints(rng, "i8", (7, 20), -127), Q(scale))
        net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), w, net.const(floats(rng, (7,)))], ["f32"], "FullyConnected", keep_num_dims=keep,
                          asymmetric_quantize_inputs=centred, fused_activation_function=NONE, version=9))
        yield Case(f"fully_connected_hybrid_{tag}", net, [[x]], compiled=tag == "rows")


def narrow(Case, rng):
    net, x = Net(), ints(rng, "i8", (3, 21))
    w = const4(net, rng.integers(-7, 8, (5, 21)), Q(0.1))
    y = net.op("FULLY_CONNECTED", [net.input("i8", x.shape, Q(0.04, -5)), w, net.const(ints(rng, "i32", (5,), -3000, 3000), Q(0.004))], [("i8", Q(0.6, 3))],
               "FullyConnected", version=7)
    net.result(y)
    yield Case("fully_connected_i4", net, [[x]], compiled=True)
    net, x = Net(), floats(rng, (3, 20))
    net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), const4(net, rng.integers(-7, 8, (5, 20)), Q(0.1)), -1], ["f32"], "FullyConnected",
                      version=9))
    yield Case("fully_connected_hybrid_i4", net, [[x]])


def const_sparse(net, values, order, blocks, csr, width):
    """values stored as few elements. order: levels of the tree, axes first, then blocks; blocks: [(axis, size)]; csr: levels that list their places;
    width: of the numbers in those lists. Written level by level from the definition of the format, not from the reader's."""
    rank, size = values.ndim, list(values.shape)
    for axis, n in blocks:
        size[axis] //= n
    extent = size + [n for _, n in blocks]
    # One axis for each level, in the order of the file.
    split, axes = values, list(range(rank))
    for i, (axis, n) in enumerate(blocks):
        at = axes.index(axis)
        split = split.reshape(split.shape[:at] + (split.shape[at] // n, n) + split.shape[at + 1:])
        axes.insert(at + 1, rank + i)
    tree = split.transpose([axes.index(k) for k in order])
    nodes, levels, vector = [tree], [], {8: S.Uint8VectorT, 16: S.Uint16VectorT, 32: S.Int32VectorT}[width]
    kind = {8: S.SparseIndexVector.Uint8Vector, 16: S.SparseIndexVector.Uint16Vector, 32: S.SparseIndexVector.Int32Vector}[width]
    for i, k in enumerate(order):
        level = S.DimensionMetadataT()
        if i in csr:
            kept = [[j for j in range(extent[k]) if np.any(x[j])] for x in nodes]
            level.format, level.denseSize = S.DimensionType.SPARSE_CSR, 0
            level.arraySegments, level.arrayIndices = vector(), vector()
            level.arraySegmentsType = level.arrayIndicesType = kind
            level.arraySegments.values = [sum(map(len, kept[:j])) for j in range(len(kept) + 1)]
            level.arrayIndices.values = [j for js in kept for j in js]
            nodes = [x[j] for x, js in zip(nodes, kept) for j in js]
        else:
            level.format, level.denseSize = S.DimensionType.DENSE, extent[k]
            nodes = [x[j] for x in nodes for j in range(extent[k])]
        levels.append(level)
    t = net.const(np.array(nodes, values.dtype))
    form = S.SparsityParametersT()
    form.traversalOrder, form.blockMap, form.dimMetadata = list(order), [axis for axis, _ in blocks], levels
    net.graph.tensors[t].shape, net.graph.tensors[t].sparsity = list(values.shape), form
    return t


def sparse(Case, rng):
    """Weights stored as few elements, which DENSIFY writes out."""
    forms = {"rows": ((6, 8), (0, 1), [], {1}, 32), "columns": ((6, 8), (1, 0), [], {1}, 16), "blocks": ((8, 12), (0, 1, 2), [(1, 4)], {1}, 8),
             "squares": ((8, 12), (1, 0, 2, 3), [(0, 4), (1, 2)], {1}, 16), "both": ((6, 8), (0, 1), [], {0, 1}, 32)}
    for tag, (shape, order, blocks, csr, width) in forms.items():
        kept = rng.random([n // dict(blocks).get(i, 1) for i, n in enumerate(shape)]) < 0.3
        for axis, n in blocks:
            kept = kept.repeat(n, axis)
        net, x = Net(), floats(rng, (3, shape[1]))
        w = net.op("DENSIFY", [const_sparse(net, np.where(kept, floats(rng, shape), np.float32(0)), order, blocks, csr, width)], [("f32", None, shape)], "Densify")
        net.result(net.op("FULLY_CONNECTED", [net.input("f32", x.shape), w, -1], ["f32"], "FullyConnected"))
        yield Case(f"densify_{tag}", net, [[x]], compiled=tag == "blocks")
    net, x, shape = Net(), floats(rng, (1, 5, 6, 4)), (8, 1, 1, 4)
    kept = (rng.random((2, 1, 1, 4)) < 0.5).repeat(4, 0)
    w = const_sparse(net, np.where(kept, floats(rng, shape), 0).astype(np.float16), (0, 1, 2, 3, 4), [(0, 4)], {3}, 8)
    w = net.op("DEQUANTIZE", [net.op("DENSIFY", [w], [("f16", None, shape)], "Densify")], [("f32", None, shape)], version=3)
    window(net, "CONV_2D", "Conv2D", x, w, floats(rng, (8,)))
    yield Case("densify_f16", net, [[x]])


def halves(Case, rng):
    net, x = Net(), floats(rng, (1, 6, 5, 3))
    w = net.op("DEQUANTIZE", [net.const(floats(rng, (4, 3, 3, 3), -1, 1).astype(np.float16))], ["f32"], version=3)
    b = net.op("DEQUANTIZE", [net.const(floats(rng, (4,), -1, 1).astype(np.float16))], ["f32"], version=3)
    net.result(net.op("CONV_2D", [net.input("f32", x.shape), w, b], ["f32"], "Conv2D", padding=SAME, stride_h=2, stride_w=1, dilation_h_factor=1,
                      dilation_w_factor=1, fused_activation_function=RELU))
    yield Case("conv_f16_weights", net, [[x]], compiled=True)


def cases(Case, rng):
    for part in (hybrid, narrow, halves, sparse):
        yield from part(Case, rng)
