"""Gradient, against differences of the function itself."""
import numpy as np
import onnx.parser
from onnx.reference import ReferenceEvaluator

# a is [2,3], b is [3]; both positive, below 1
BODIES = {
    "arithmetic": "p = Mul (a, b) q = Div (a, b) r = Sub (p, q) y = Add (r, a)",
    "power": "p = Pow (a, b) q = Sqrt (a) y = Div (p, q)",
    "functions": "p = Exp (a) q = Log (b) r = Tanh (a) s = Sigmoid (b) t = Mul (p, q) u = Mul (r, s) y = Add (t, u)",
    "circle": "p = Sin (a) q = Cos (b) r = Tan (a) s = Asin (b) t = Acos (a) u = Atan (b) v = Mul (p, q) w = Mul (r, s) z = Mul (t, u) y = Sum (v, w, z)",
    "hyperbolic": "p = Sinh (a) q = Cosh (b) r = Asinh (a) s = Atanh (b) t = Mul (p, q) u = Mul (r, s) y = Add (t, u)",
    "corners": "p = Max (a, b) q = Min (a, b) r = Abs (p) s = Relu (q) t = Floor (a) y = Sum (r, s, t)",
    "choice": "c = Less (a, b) y = Where (c, a, b)",
    "sums": "p = ReduceSum <keepdims = 0> (a) q = ReduceMean <axes = [0], keepdims = 0> (a) r = ReduceMax <axes = [1]> (a) s = Mul (q, b) t = Mul (r, s) y = Mul (t, p)",
    "softmax": "p = Softmax <axis = 1> (a) q = LogSoftmax <axis = 0> (b) r = Mul (p, q) y = Mul (r, r)",
    "product": "p = Transpose (a) q = MatMul (a, p) r = MatMul (q, q) s = Gemm <transB = 1> (r, p) t = Mul (s, b) y = Tanh (t)",
    "moves": "p = Concat <axis = 0> (a, a) q = Transpose (p) one = Constant <value_ints = [1]> () end = Constant <value_ints = [9]> ()"
             " step = Constant <value_ints = [2]> () r = Slice (q, one, end, one, step) s = Flatten <axis = 0> (r) y = Mul (s, s)",
    "rows": "i = Constant <value_ints = [2, 0, 2, -1]> () p = Gather <axis = 1> (a, i) q = Mul (p, p) ax = Constant <value = int64 {1}> () r = CumSum (q, ax) y = Mul (r, p)",
    "padded": "h = Constant <value_ints = [0, 1, 1, 0]> () p = Pad (a, h) y = Mul (p, p)",
    "unused": "y = Mul (a, a)",
}


def cases(Case, rng):
    for name, body in BODIES.items():
        lines = body.replace(") ", ")\n")
        head = "g (double[2,3] a, double[3] b) => "
        opset = 13 if "ReduceMean" not in body else 12
        sets = f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.preview.training" : 1]>'
        data = {"a": rng.uniform(.1, .9, (2, 3)), "b": rng.uniform(.1, .9, 3)}
        if opset == 12:
            lines = lines.replace("ReduceSum <keepdims = 0>", "ReduceSum <axes = [0, 1], keepdims = 0>")
        plain = ReferenceEvaluator(onnx.parser.parse_model(f"{sets}\n{head} (double y) {{ {lines} }}"))
        expect = []
        for x in data:
            slope = np.zeros_like(data[x])
            for at in np.ndindex(slope.shape):
                ends = []
                for h in (1e-5, -1e-5):
                    moved = {k: v.copy() for k, v in data.items()}
                    moved[x][at] += h
                    ends.append(np.sum(plain.run(None, moved)[0]))
                slope[at] = (ends[0] - ends[1]) / 2e-5
            expect.append(slope)
        text = (f"{head} (double[2,3] da, double[3] db) {{ {lines}\n"
                'da, db = ai.onnx.preview.training.Gradient <xs = ["a", "b"], y = "y"> (a, b) }')
        yield Case(name, "", [], [], data, text=text, opset=opset, expect=expect, rtol=1e-6, atol=1e-7)
    text = ("g (double[2,3] a) => (double[2,3] da) { y = Erf (a)\n"
            'da = ai.onnx.preview.training.Gradient <xs = ["a"], y = "y"> (a) }')
    a = rng.uniform(-2, 2, (2, 3))  # the reference's Erf is in single precision
    yield Case("erf", "", [], [], {"a": a}, text=text, opset=13, expect=[2 / np.sqrt(np.pi) * np.exp(-a * a)], rtol=1e-12)
