"""Shapes that are numbers of a run: slices, sizes and ranges whose ends a node computes, up to a bound that follows from extents."""
import numpy as np

# the shape of what was found, through the test for -1 that torch writes around every expand
EXPAND = """g (float[3,4] x, float[1,%s] y) => (float[m,n] z) { p = NonZero(x)  t = Transpose(p)  s = Shape(t)  k = Shape(s)
  one = ConstantOfShape <value = int64[1] {1}> (k)  minus = Constant <value = int64 {-1}>()  none = Mul(one, minus)
  is = %s  target = Where(is, one, s)  z = Expand(y, target) }"""
# a bag of rows from each offset to the next, as torch writes EmbeddingBag
BAG = """g (int64[8] x, int64[N] o, float[10,4] w) => (float[n,4] y) { go = Constant <value = bool {1}>()  a0 = Constant <value = int64[1] {0}>()
  a1 = Constant <value = int64[1] {1}>()  far = Constant <value = int64[1] {9223372036854775807}>()  zero = Constant <value = int64 {0}>()
  s = Shape(x)  c = Concat <axis = 0> (o, s)  e = Slice(c, a1, far, a0, a1)  es = Shape(e)  n = Gather(es, zero)
  y = Loop(n, go) <body = b (int64 i, bool k) => (bool k2, float[4] r) { k2 = Identity(k)  f = Gather(c, i)  f1 = Unsqueeze(f, a0)
    t = Gather(e, i)  t1 = Unsqueeze(t, a0)  part = Slice(x, f1, t1, a0)  rows = Gather(w, part)
    r = ReduceSum <keepdims = 0> (rows, a0) }> }"""
SLICE = """g (float[7,5] x, int64[%d] from, int64[%d] to) => (float[a,b] y) { axes = Constant <value = int64[%d] {%s}>()
  steps = Constant <value = int64[%d] {%s}>()  y = Slice(x, from, to, axes, steps) }"""
SIZES = """g (float[3] x, int64 k) => (float[a,3] y, float[b] z, int64[c] r, float[d,3] e) { six = Constant <value = int64 {6}>()
  zero = Constant <value = int64 {0}>()  two = Constant <value = int64 {2}>()  a0 = Constant <value = int64[1] {0}>()  three = Constant <value = int64[1] {3}>()
  n = Min(k, six)  m = Max(n, zero)  m1 = Unsqueeze(m, a0)  shape = Concat <axis = 0> (m1, three)  y = Expand(x, shape)
  z = ConstantOfShape <value = float[1] {2}> (m1)  r = Range(zero, n, two)  flat = ConstantOfShape <value = float[1] {1}> (shape)
  e = Reshape(flat, shape) }"""

# a size from a float that is clamped, as detectors compute them from their boxes
RESIZE = """g (float[1,2,5,4] x, float k) => (float[a,b,c,d] y) { lo = Constant <value = float {1}>()  hi = Constant <value = float {9}>()
  a0 = Constant <value = int64[1] {0}>()  a2 = Constant <value = int64[1] {2}>()  t = Clip(k, lo, hi)  up = Ceil(t)  i = Cast <to = 7> (up)
  i1 = Unsqueeze(i, a0)  s = Shape(x)  front = Slice(s, a0, a2)  size = Concat <axis = 0> (front, i1, i1)
  y = Resize <mode = "%s", coordinate_transformation_mode = "%s", nearest_mode = "%s"> (x, , , size) }"""


def cases(M, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    some = np.array([[1, 0, 0, 2], [0, 0, 3, 0], [0, 0, 0, 4]], np.float32)
    for asked, text in {"equal": "Equal(s, none)", "less": "Less(s, none)", "most": "LessOrEqual(s, none)"}.items():
        yield M(f"expand_{asked}", None, [], [], {"x": some, "y": f(1, 2)}, text=EXPAND % ("2", text), compiled=asked == "equal")
    for k, o in enumerate(([0, 4], [0, 3, 4], [0, 0, 8, 2], [5])):
        yield M(f"bag_{k}", None, [], [], {"x": np.array([1, 2, 4, 5, 4, 3, 2, 9]), "o": np.array(o), "w": f(10, 4)}, text=BAG, compiled=k == 1)
    for k, (start, end) in enumerate(((1, 4), (-3, 99), (5, 2), (-99, -2), (7, 8), (0, -7))):
        yield M(f"slice_{k}", None, [], [], {"x": f(7, 5), "from": np.array([start]), "to": np.array([end])}, text=SLICE % (1, 1, 1, "0", 1, "1"))
        yield M(f"slice_steps_{k}", None, [], [], {"x": f(7, 5), "from": np.array([start, 0]), "to": np.array([end, 4])},
                text=SLICE % (2, 2, 2, "0, -1", 2, "2, 3"))
    for k in (-2, 0, 3, 6, 40):
        yield M(f"sizes_{k}", None, [], [], {"x": f(3), "k": np.array(k)}, text=SIZES, compiled=k == 3)
    for mode in ("linear", "cubic", "nearest"):
        for coord in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            k = 6.2 if coord == "half_pixel" else 2.5
            yield M(f"resize_{mode}_{coord}", None, [], [], {"x": f(1, 2, 5, 4), "k": np.array(k, np.float32)},
                    text=RESIZE % (mode, coord, "floor" if coord == "asymmetric" else "round_prefer_ceil"), compiled=mode == "cubic" and k > 6)
    yield M("resize_to_one", None, [], [], {"x": f(1, 2, 5, 4), "k": np.array(-3, np.float32)}, text=RESIZE % ("linear", "pytorch_half_pixel", "floor"))
