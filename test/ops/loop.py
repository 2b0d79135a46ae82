"""Loops whose condition counts: how often they run, and how many rows their results have at most, follows from the condition."""
import numpy as np

# Comparison in the condition, as exporters write it: the counter c carried from 0 in steps, n invariant, i the number of the iteration.
# Each line: name, step, type of the counter, condition in front of the loop, condition in the body (of the next counter d).
FORMS = [
    ("less", 1, "int64", "go = Less(c0, n)", "k2 = Less(d, n)"),
    ("less_equal", 1, "int64", "go = LessOrEqual(c0, n)", "k2 = LessOrEqual(d, n)"),
    ("turned", 1, "int64", "go = Greater(n, c0)", "k2 = Greater(n, d)"),
    ("not", 1, "int64", "ge = GreaterOrEqual(c0, n)  go = Not(ge)", "ge2 = GreaterOrEqual(d, n)  k2 = Not(ge2)"),
    ("steps", 3, "int64", "go = Less(c0, n)", "k2 = Less(d, n)"),
    ("steps_equal", 3, "int64", "go = LessOrEqual(c0, n)", "k2 = LessOrEqual(d, n)"),
    ("before", 1, "int64", "go = Less(c0, n)", "k2 = Less(c, n)"),
    ("always_once", 1, "int64", "go = Constant <value = bool {1}>()", "k2 = Less(d, n)"),
    ("own_counter", 1, "int64", "go = Less(c0, n)", "j = Add(i, one)  k2 = Less(j, n)"),
    ("and", 1, "int64", "l = Less(c0, n)  go = And(l, l)", "p = Less(i, n)  q = Less(d, n)  k2 = And(p, q)"),
    ("and_before", 1, "int64", "go = Less(c0, n)", "p = Less(d, n)  k2 = And(k, p)"),
    ("float", 1, "int32", "f = Cast <to = 1> (c0)  m = Cast <to = 1> (n)  go = Less(f, m)", "f2 = Cast <to = 1> (d)  m2 = Cast <to = 1> (n)  k2 = Less(f2, m2)"),
    ("narrow", 1, "int32", "m = Cast <to = 6> (n)  go = Less(c0, m)", "k2 = Less(d, m)"),
    ("sum", 1, "int64", "s = Add(c0, one)  go = LessOrEqual(s, n)", "s2 = Add(d, one)  k2 = LessOrEqual(s2, n)"),
]
BODY = """g (float[%(rows)s,3] x%(more)s) => (float[m,3] y, float[3] z, %(type)s last) {
  one = Constant <value = int64 {1}>()  c0 = Constant <value = %(type)s {%(start)d}>()  by = Constant <value = %(type)s {%(step)d}>()
  axes = Constant <value = int64[1] {0}>()  rowmax = Constant <value = int64 {4}>()  z0 = Constant <value = float[3] {0, 0, 0}>()
  w0 = Constant <value = float[3] {1, 2, -1}>()
  %(bound)s  %(first)s
  last, z, w, y = Loop(%(trip)s, go, c0, z0, w0) <body = b (int64 i, bool k, %(type)s c, float[3] a, float[3] w1) => (bool k2, %(type)s d, float[3] a2, float[3] w2, float[3] r) {
    d = Add(c, by)  row = Min(i, rowmax)  g = Gather(x, row)  h = Mul(g, w1)  a2 = Add(a, h)  w2 = Identity(w1)  r = Add(a2, g)  %(next)s }> }"""

# results collected with Concat, as scripts do; what is appended is 2 wide
APPENDS = """g (float[5,3] x, int64 n) => (float[a,b] y, float[5,3] z) { six = Constant <value = int64 {6}>()  go = Constant <value = bool {1}>()  two = Constant <value = int64[2] {0, 2}>()
  m = Min(n, six)  y, z = Loop(m, go, x, x) <body = b (int64 i, bool k, float[p,q] c, float[5,3] v) => (bool k2, float[s,t] d, float[5,3] w) {
    k2 = Identity(k)  f = Cast <to = 1> (i)  w = Add(v, f)  part = Gather <axis = %(axis)d> (w, two)  d = Concat <axis = %(axis)d> (c, part) }> }"""


# counters without a sign: they wrap at 0, where what is tested ends with others
UNSIGNED = """g (%(type)s x) => (%(type)s z, %(type)s[n] y) { most = Constant <value = int64 {12}>()  go = Constant <value = bool {1}>()
  z, y = Loop(most, go, x) <body = b (int64 i, bool k, %(type)s c) => (bool k2, %(type)s d, %(type)s r) {
    by = Constant <value = %(type)s {%(by)d}>()  none = Constant <value = %(type)s {0}>()  d = Sub(c, by)  k2 = Greater(d, none)  r = Identity(c) }> }"""

# what is tested is a number less such a counter, which has wrapped long before: 5 - 65535 is small
TURNED = """g (int64 x) => (int64[n] y) { most = Constant <value = int64 {40}>()  go = Constant <value = bool {1}>()  c0 = Constant <value = %(type)s {3}>()
  z, y = Loop(most, go, c0) <body = b (int64 i, bool k, %(type)s c) => (bool k2, %(type)s d, int64 r) {
    by = Constant <value = %(type)s {2}>()  five = Constant <value = int64 {5}>()  most2 = Constant <value = int64 {50}>()
    d = Sub(c, by)  w = Cast <to = 7> (c)  t = Sub(five, w)  k2 = Less(t, most2)  r = Add(w, x) }> }"""

# the same, upwards: the largest number of the type bounds the rows
UPWARDS = """g (%(type)s limit) => (%(type)s[n] y) { zero = Constant <value = %(type)s {0}>()  by = Constant <value = %(type)s {1}>()  go = Less(zero, limit)
  z, y = Loop(, go, zero) <body = b (int64 i, bool k, %(type)s c) => (bool k2, %(type)s d, %(type)s r) {
    d = Add(c, by)  k2 = Less(d, limit)  r = Identity(c) }> }"""

# a count that a narrow type rounds up: 101 is 104 there, and so many rows there are
ROUNDED = """g (float x) => (float[n] y) { low = Constant <value = float {0}>()  high = Constant <value = float {101}>()  go = Constant <value = bool {1}>()
  c = Clip(x, low, high)  q = Cast <to = 17> (c)  f = Cast <to = 1> (q)  t = Cast <to = 7> (f)
  y = Loop(t, go) <body = b (int64 i, bool k) => (bool k2, float r) { k2 = Identity(k)  r = Cast <to = 1> (i) }> }"""
# the least of nothing is infinite, whatever bounds the elements have
EMPTY = """g (float[8] x) => (float[n] y) { low = Constant <value = float {0}>()  high = Constant <value = float {9}>()  one = Constant <value = float {1}>()
  go = Constant <value = bool {1}>()  five = Constant <value = int64 {5}>()  c = Clip(x, low, high)  m = Greater(x, one)  p = Compress <axis = 0> (c, m)
  r = ReduceMin <keepdims = 0> (p)  big = Greater(r, high)  t = Cast <to = 7> (big)  u = Mul(t, five)
  y = Loop(u, go) <body = b (int64 i, bool k) => (bool k2, float s) { k2 = Identity(k)  s = Cast <to = 1> (i) }> }"""

# what is compared is small again, but was rounded before: 2^24 + 51 is 2^24 + 52 as f32
FAR = """g (int64 x) => (int64[n] y) { most = Constant <value = int64 {90}>()  go = Constant <value = bool {1}>()  by = Constant <value = int64 {%(by)d}>()  c0 = Constant <value = int64 {%(far)d}>()
  z, y = Loop(most, go, c0) <body = b (int64 i, bool k, int64 c) => (bool k2, int64 d, int64 r) {
    far = Constant <value = float {%(far)d}>()  end = Constant <value = float {%(end)d}>()
    d = Add(c, by)  f = Cast <to = 1> (c)  t = %(form)s  k2 = Less(t, end)  r = Add(i, x) }> }"""


# x[i + 1 : i + w], whose length is w - 1 but where the axis ends
SLICED = """g (float[4,3] x, int64 n, int64[1] start) => (float[3] y) { one = Constant <value_ints = [1]>()  zero = Constant <value_ints = [0]>()  w = Constant <value_ints = [%d]>()
  go = Constant <value = bool {1}>()  a0 = Constant <value = float[3] {0, 0, 0}>()
  y = Loop(n, go, a0) <body = b (int64 it, bool k, float[3] a) => (bool k2, float[3] d) { k2 = Identity(k)  u = Unsqueeze(it, zero)  i = Add(u, start)
    p = Add(i, one)  q = Add(w, i)  s = Slice(x, p, q)  t = %s(s, zero)  d = Add(a, t) }> }"""

# EmbeddingBag as torch exports it: limits of a slice are slices themselves, of a list of offsets
BAGS = """g (float[8,3] x, int64[N] offsets) => (float[n,3] y) { one = Constant <value_ints = [1]>()  two = Constant <value_ints = [2]>()  zero = Constant <value_ints = [0]>()
  unit = Constant <value = int64 {1}>()  i0 = Constant <value = int64 {0}>()  flat = Constant <value_ints = [-1]>()  size = Constant <value_ints = [8]>()  most = Constant <value = int64 {9223372036854775807}>()
  bags = Size(offsets)  ends = Concat <axis = 0> (offsets, size)  go = Less(i0, bags)  l0 = SequenceEmpty()  i9, l9 = Loop(most, go, i0, l0) <body = b (int64 it, bool k, int64 i, seq(float[1,3]) l) => (bool k2, int64 i2, seq(float[1,3]) l2) {
    j = Reshape(i, flat)  j1 = Add(j, one)  j2 = Add(j, two)  start = Slice(ends, j, j1)  end = Slice(ends, j1, j2)  same = Equal(start, end)
    row = If(same) <then_branch = t () => (float[1,3] r0) { r0 = Constant <value = float[1,3] {0, 0, 0}>() },
                    else_branch = e () => (float[1,3] r1) { rows = Slice(x, start, end)  r1 = %s(rows, zero) }>
    l2 = SequenceInsert(l, row)  i2 = Add(i, unit)  k2 = Less(i2, bags) }>
  y = ConcatFromSequence <axis = 0> (l9) }"""

# a list to which only some iterations append
SOME = """g (int64[8] x, int64 n) => (int64[m] y) { most = Constant <value = int64 {8}>()  go = Constant <value = bool {1}>()  none = Shape <start = 0, end = 0> (x)
  flat = Constant <value_ints = [-1]>()  two = Constant <value = int64 {2}>()  m0 = Min(n, most)
  y = Loop(m0, go, none) <body = b (int64 i, bool k, int64[p] c) => (bool k2, int64[q] d) { k2 = Identity(k)  v = Gather(x, i)  same = %s(v, two)
    d = If(same) <then_branch = t () => (int64[p] r0) { r0 = Identity(c) },
                  else_branch = e () => (int64[s] r1) { j = Reshape(i, flat)  r1 = Concat <axis = 0> (c, j) }> }> }"""

# EmbeddingBag with padding_idx 2 as torch exports it: an inner loop lists the places of other indices
PADDED = """g (float[10,3] w, int64[8] x, int64[3] offsets) => (float[n,3] y) { flat = Constant <value_ints = [-1]>()  pad = Constant <value = int64 {2}>()
  i0 = Constant <value = int64 {0}>()  i1 = Constant <value = int64 {1}>()  ten = Constant <value = int64 {10}>()  most = Constant <value = int64 {9223372036854775807}>()  axis = Constant <value_ints = [0]>()
  rows = Gather(w, x)  l0 = SequenceEmpty()  bags = Size(offsets)  size = Constant <value_ints = [8]>()  ends = Concat <axis = 0> (offsets, size)  go = Less(i0, bags)
  i9, l9 = Loop(most, go, i0, l0) <body = b (int64 it, bool k, int64 i, seq(float[1,3]) l) => (bool k2, int64 i2, seq(float[1,3]) l2) {
    start = Gather(ends, i)  i2 = Add(i, i1)  end = Gather(ends, i2)  none = Shape <start = 0, end = 0> (x)  more = Less(start, end)
    j9, at = Loop(most, more, start, none) <body = c (int64 it2, bool m, int64 j, int64[p] a) => (bool m2, int64 j2, int64[q] a2) {
      v = Gather(x, j)  low = Less(v, i0)
      u = If(low) <then_branch = t () => (int64 u0) { u0 = Add(v, ten) }, else_branch = e () => (int64 u1) { u1 = Identity(v) }>
      same = Equal(u, pad)  other = Not(same)
      a2 = If(other) <then_branch = t2 () => (int64[s] a3) { jj = Reshape(j, flat)  a3 = Concat <axis = 0> (a, jj) }, else_branch = e2 () => (int64[p] a4) { a4 = Identity(a) }>
      j2 = Add(j, i1)  m2 = Less(j2, end) }>
    count = Size(at)  empty = Equal(count, i0)
    row = If(empty) <then_branch = t3 () => (float[1,3] r0) { r0 = Constant <value = float[1,3] {0, 0, 0}>() },
                     else_branch = e3 () => (float[1,3] r1) { some = Gather(rows, at)  r1 = %s(some, axis) }>
    l2 = SequenceInsert(l, row)  k2 = Less(i2, bags) }>
  y = ConcatFromSequence <axis = 0> (l9) }"""

# with include_last_offset, the last offset ends the last bag; the other indices stay
LAST = PADDED.replace("bags = Size(offsets)  size = Constant <value_ints = [8]>()  ends = Concat <axis = 0> (offsets, size)",
                      "count = Size(offsets)  bags = Sub(count, i1)  ends = Identity(offsets)").replace("count = Size(at)  empty = Equal(count", "left = Size(at)  empty = Equal(left")

# limits of a slice that are slices again: one element each, or the run fails
LIMITS = """g (int64[4] x, float[10,2] v, int64 n) => (float[1,2] y) { one = Constant <value_ints = [1]>()  two = Constant <value_ints = [2]>()  zero = Constant <value_ints = [0]>()
  go = Constant <value = bool {1}>()  i0 = Constant <value_ints = [0]>()  a0 = Constant <value = float[1,2] {0, 0}>()
  k, y = Loop(n, go, i0, a0) <body = b (int64 it, bool c, int64[1] i, float[1,2] a) => (bool c2, int64[1] i2, float[1,2] d) { c2 = Identity(c)  i2 = Add(i, one)  p = Add(i, two)
    b = Slice(x, i, i2)  e = Slice(x, i2, p)  s = Slice(v, b, e)  q = ReduceSum(s, zero)  d = Add(a, q) }> }"""

# two sequences for one Scan, of which one has an open length
SCANS = """g (float[%s,3] x, float[%s,3] v) => (float[3] y, float[n,3] z) { a0 = Constant <value = float[3] {0, 0, 0}>()
  y, z = Scan <num_scan_inputs = 2, body = b (float[3] a, float[3] p, float[3] q) => (float[3] d, float[3] r) { s = Mul(p, q)  d = Add(a, s)  r = Identity(d) }> (a0, x, v) }"""


def graph(step, kind, first, following, bound, rows=5, trip='""', start=0, more=""):
    return BODY % {"rows": rows, "more": more, "type": kind, "start": start, "step": step, "bound": bound, "first": first,
                   "trip": trip.replace('""', ""), "next": following}


def cases(M, rng):
    x = rng.standard_normal((5, 3)).astype(np.float32)
    shape = "zero = Constant <value = int64 {0}>()  sh = Shape(x)  n = Gather(sh, zero)"
    for name, step, kind, first, following in FORMS:
        number = "n = Constant <value = int64 {7}>()"
        yield M(name, None, [], [], {"x": x}, text=graph(step, kind, first, following, number))
    down = ("go = Greater(c0, n)", "k2 = Greater(d, n)")
    for n, step in ((3, -1), (0, -2), (7, -1), (-2, -3)):
        number = f"n = Constant <value = int64 {{{n}}}>()"
        yield M(f"down{step}_{n}", None, [], [], {"x": x}, text=graph(step, "int64", *down, number, start=6))
    for n, step in ((2, -1), (7, -1), (-4, -3)):
        yield M(f"down{step}_to_{n}", None, [], [], {"x": x, "limit": np.array(n)}, text=graph(step, "int64", *down, "n = Identity(limit)", start=6, more=", int64 limit"))
    for kind, by, start in (("uint8", 1, 9), ("uint8", 2, 5), ("uint32", 2, 5), ("uint32", 3, 9)):
        yield M(f"{kind}_down_{by}", None, [], [], {"x": np.array(start, kind)}, text=UNSIGNED % {"type": kind, "by": by})
    for kind in ("uint8", "uint32"):
        yield M(f"{kind}_turned", None, [], [], {"x": np.array(0, np.int64)}, text=TURNED % {"type": kind})
    for kind, n in (("uint8", 0), ("uint8", 7), ("uint8", 255), ("uint16", 300)):
        yield M(f"{kind}_up_{n}", None, [], [], {"limit": np.array(n, kind)}, text=UPWARDS % {"type": kind}, compiled=n in (255, 300))
    yield M("rounded", None, [], [], {"x": np.array(101, np.float32)}, text=ROUNDED, compiled=True)
    yield M("of_nothing", None, [], [], {"x": np.zeros(8, np.float32)}, text=EMPTY, compiled=True)
    for end in (50, 52):
        yield M(f"far_up_{end}", None, [], [], {"x": np.array(3)}, text=FAR % {"by": 1, "far": 2**24, "end": end, "form": "Sub(f, far)"})
        yield M(f"far_down_{end}", None, [], [], {"x": np.array(3)}, text=FAR % {"by": -1, "far": -2**24, "end": end, "form": "Sub(far, f)"})
    for trip in (0, 3, 9):
        number = f"n = Constant <value = int64 {{5}}>()  t = Constant <value = int64 {{{trip}}}>()"
        yield M(f"trip_{trip}", None, [], [], {"x": x}, text=graph(1, "int64", "go = Less(c0, n)", "k2 = Less(d, n)", number, trip="t"))
    for name, step, kind, first, following in FORMS:
        yield M(f"shape_{name}", None, [], [], {"x": x}, text=graph(step, kind, first, following, shape, rows="N"))
    # a number of the run that is bounded by an extent, and an end that depends on data
    run = "f0 = Constant <value = float {0}>()  big = Greater(x, f0)  at = NonZero(big)  sh = Shape(at)  n = Gather(sh, one)"
    for name in ("less", "less_equal", "steps", "and"):
        _, step, kind, first, following = next(f for f in FORMS if f[0] == name)
        yield M(f"run_{name}", None, [], [], {"x": x}, text=graph(step, kind, first, following, run))
    clip = "eight = Constant <value = int64 {8}>()  n = Min(limit, eight)"
    for name, step, kind, first, following in FORMS:
        for q in (-3, 0, 5) if name in ("less", "float", "narrow") else (0, 5):
            yield M(f"scalar_{name}_{q}", None, [], [], {"x": x, "limit": np.array(q)}, compiled=q == 5 and name in ("and", "float", "steps_equal"),
                    text=graph(step, kind, first, following, clip, more=", int64 limit"))
    until = ("go = Less(c0, n)", "p = Less(d, n)  f3 = Constant <value = float {1.5}>()  s = ReduceSum <keepdims = 0> (a2)  e = Abs(s)  q = Less(e, f3)  k2 = And(p, q)")
    for n in (2, 9):
        number = f"n = Constant <value = int64 {{{n}}}>()"
        yield M(f"until_{n}", None, [], [], {"x": x}, text=graph(1, "int64", *until, number))
    for axis in (0, 1):
        for n in (0, 3):
            yield M(f"appends_{axis}_{n}", None, [], [], {"x": x, "n": np.array(n)}, text=APPENDS % {"axis": axis}, compiled=n == 3)
    for w, n, start in ((2, 3, 0), (2, 5, 0), (3, 4, 0), (3, 3, -3), (2, 2, -6), (3, 6, -7)):
        yield M(f"sliced_{w}_{n}_{-start}", None, [], [], {"x": x[:4], "n": np.array(n), "start": np.array([start])}, text=SLICED % (w, "ReduceSum <keepdims = 0>"), compiled=n == 5)
    yield M("sliced_squeeze", None, [], [], {"x": x[:4], "n": np.array(3), "start": np.array([0])}, text=SLICED % (2, "Squeeze"), compiled=True)
    yield M("sliced_too_far", None, [], [], {"x": x[:4], "n": np.array(4), "start": np.array([0])}, text=SLICED % (2, "Squeeze"), refuse="Squeeze")
    rows = rng.standard_normal((8, 3)).astype(np.float32)
    for how in ("ReduceSum", "ReduceMean", "ReduceMax"):
        yield M(f"bags_{how}", None, [], [], {"x": rows, "offsets": np.array([0, 2, 2, 5])}, text=BAGS % how, compiled=how == "ReduceSum", opset=18)
        padded = {"w": np.concatenate([rows, rows[:2]]), "x": np.array([1, 2, 4, -8, 2, 3, 2, 9])}
        yield M(f"padded_{how}", None, [], [], padded | {"offsets": np.array([0, 4, 5])}, text=PADDED % how, compiled=how == "ReduceSum", opset=18)
        yield M(f"padded_last_{how}", None, [], [], padded | {"offsets": np.array([0, 4, 7])}, text=LAST % how, compiled=how == "ReduceSum", opset=18)
    yield M("padded_too_far", None, [], [], padded | {"offsets": np.array([0, -20, 5])}, text=PADDED % how, refuse="Gather", opset=18)
    for n in (0, 3, 8):
        for how in ("Equal", "Less"):
            yield M(f"some_{how}_{n}", None, [], [], {"x": np.array([1, 2, 3, 2, 5, 6, 2, 8]), "n": np.array(n)}, text=SOME % how, compiled=n == 8, opset=18)
    for a, c in (("N", "M"), ("5", "M"), ("N", "5")):
        yield M(f"scans_{a}_{c}", None, [], [], {"x": x, "v": rows[:5]}, text=SCANS % (a, c))
    data = {"x": np.array([0, 2, 3, 7]), "v": rng.standard_normal((10, 2)).astype(np.float32)}
    yield M("limits", None, [], [], data | {"n": np.array(3)}, text=LIMITS, compiled=True)
    yield M("limits_too_far", None, [], [], data | {"n": np.array(4)}, text=LIMITS, refuse="a slice of fixed length leaves its axis")
