"""Parts of a file other than operators: symbolic extents, outputs that are inputs of other nodes, a constant that two nodes share."""
import numpy as np
from tflitefile import RELU, Net, Q
from .maths import floats, ints


def cases(Case, rng):
    for kind, q, out in (("f32", None, None), ("i8", Q(0.04, -5), Q(0.3, 7))):
        net = Net()
        x = floats(rng, (3, 8)) if kind == "f32" else ints(rng, kind, (3, 8))
        y = floats(rng, (3, 4)) if kind == "f32" else ints(rng, kind, (3, 4))
        w = net.const(floats(rng, (4, 8)) if kind == "f32" else ints(rng, "i8", (4, 8), -127), q and Q(0.01))
        a = net.input(kind, (1, 8), q, signature=(-1, 8))
        b = net.input(kind, (1, 4), q, signature=(-1, 4))
        h = net.op("FULLY_CONNECTED", [a, w, -1], [(kind, out)], "FullyConnected", fused_activation_function=RELU)
        net.result(net.op("ADD", [h, b], [(kind, out)], "Add"), h)
        yield Case(f"open_batch_{kind}", net, [[x, y]], compiled=True)
