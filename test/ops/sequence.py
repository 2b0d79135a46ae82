"""Sequences whose positions and lengths are only known at run time, in If, Loop and SequenceMap."""
import numpy as np

AT = """g (float[2,3] a, float[2,3] b, float[2,3] c, int64 p) => (float[2,3] y, int64 n) {
  s = SequenceConstruct (a, b, c)
  y = SequenceAt (s, p)
  n = SequenceLength (s)
}"""
INSERT = """g (float[2,3] a, float[2,3] b, float[2,3] c, int64 p) => (float[6,3] y, float[2,3,3] z, float[2,3] w) {
  s = SequenceConstruct (a, b)
  t = SequenceInsert (s, c, p)
  y = ConcatFromSequence <axis = 0> (t)
  z = ConcatFromSequence <axis = -1, new_axis = 1> (t)
  last = Constant <value = int64 {-1}> ()
  w = SequenceAt (t, last)
}"""
ERASE = """g (float[2,3] a, float[2,3] b, float[2,3] c, int64 p) => (float[2,6] y, int64 n) {
  s = SequenceConstruct (a, b, c)
  t = SequenceErase (s, p)
  y = ConcatFromSequence <axis = 1> (t)
  n = SequenceLength (t)
}"""
# stops at the iteration p, known at run time only: 40 is no more than a bound
APPEND = """g (float[2,3] a, int64 p) => (float[M,2,3] y, float[K,3] z, int64 n, float[2,3] last) {
  most = Constant <value = int64 {40}> ()
  go = Constant <value = bool {1}> ()
  none = SequenceEmpty ()
  s, end = Loop (most, go, none, a) <body = body (int64 i, bool more, seq(float[2,3]) s, float[2,3] x) => (bool on, seq(float[2,3]) t, float[2,3] y) {
    k = Cast <to = 1> (i)
    y = Add (x, k)
    t = SequenceInsert (s, y)
    on = Less (i, p)
  }>
  y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
  z = ConcatFromSequence <axis = 0> (s)
  n = SequenceLength (s)
  one = Constant <value = int64 {-1}> ()
  last = SequenceAt (s, one)
}"""
# only every other element is kept; insertion in front
SOME = """g (float[3] a, int64 p) => (float[M,3] y, int64 n) {
  most = Constant <value = int64 {20}> ()
  none = SequenceConstruct (a)
  s = Loop (most, , none) <body = body (int64 i, bool more, seq(float[3]) s) => (bool on, seq(float[3]) t) {
    on = Identity (more)
    r = Mod (i, p)
    zero = Constant <value = int64 {0}> ()
    take = Equal (r, zero)
    t = If (take) <then_branch = yes () => (seq(float[3]) u) {
      k = Cast <to = 1> (i)
      x = Add (a, k)
      front = Constant <value = int64 {0}> ()
      u = SequenceInsert (s, x, front)
    }, else_branch = no () => (seq(float[3]) v) {
      v = Identity (s)
    }>
  }>
  y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
  n = SequenceLength (s)
}"""
BRANCHES = """g (float[3] a, float[3] b, bool c) => (float[M] y, int64 n) {
  s = If (c) <then_branch = yes () => (seq(float[3]) u) {
    u = SequenceConstruct (a, b, a)
  }, else_branch = no () => (seq(float[3]) v) {
    v = SequenceConstruct (b)
  }>
  t = SequenceMap (s, b) <body = body (float[3] x, float[3] z) => (float[3] w) {
    w = Mul (x, z)
  }>
  y = ConcatFromSequence <axis = 0> (t)
  n = SequenceLength (t)
}"""
# a sequence whose length is a number of the run is a result
OPEN = """g (float[2] x, int64 n) => (seq(float[2]) y) { four = Constant <value = int64 {4}> ()  go = Constant <value = bool {1}> ()
  m = Min (n, four)  e = SequenceEmpty ()
  y = Loop (m, go, e) <body = b (int64 i, bool k, seq(float[2]) s) => (bool k2, seq(float[2]) t) {
    k2 = Identity (k)  f = Cast <to = 1> (i)  r = Add (x, f)  t = SequenceInsert (s, r) }> }"""
ELEMENTS = """g (seq(float[M]) s, int64 p) => (seq(float[M]) t, seq(float[1,M]) u) {
  t = SequenceMap (s) <body = body (float[M] x) => (float[M] y) {
    y = Neg (x)
  }>
  parts = SequenceMap (s) <body = two (float[M] x) => (float[1,M] y) {
    zero = Constant <value = int64[1] {0}> ()
    y = Unsqueeze (x, zero)
  }>
  u = SequenceErase (parts, p)
}"""

# a few iterations at most, and the end known at run time only
BRIEF = APPEND.replace("{40}", "{6}")
# the first element above p, if there is one; the sequence is captured, and so is the bound
FIRST = """g (float[3] a, float[3] b, float[3] c, float p) => (bool found, float[3] y) {
  s = SequenceConstruct (a, b, c)
  n = Constant <value = int64 {20}> ()
  go = Constant <value = bool {1}> ()
  none = Optional <type = float[3]> ()
  z = Sub (a, a)
  o, k = Loop (n, go, none, z) <body = body (int64 i, bool more, optional(float[3]) x, float[3] t) => (bool on, optional(float[3]) w, float[3] u) {
    three = Constant <value = int64 {3}> ()
    one = Constant <value = int64 {1}> ()
    at = Mod (i, three)
    e = SequenceAt (s, at)
    m = ReduceMax <keepdims = 0> (e)
    hit = Greater (m, p)
    had = OptionalHasElement (x)
    stay = Not (hit)
    low = Less (i, n)
    on = And (stay, low)
    w = If (hit) <then_branch = yes () => (optional(float[3]) q) { q = Optional (e) }, else_branch = no () => (optional(float[3]) r) { r = Identity (x) }>
    u = Add (t, e)
  }>
  found = OptionalHasElement (o)
  y = If (found) <then_branch = yes2 () => (float[3] v) { v = OptionalGetElement (o) }, else_branch = no2 () => (float[3] v2) { v2 = Identity (k) }>
}"""
# loops in a loop, with a sequence from outside that both grow
NESTED = """g (float[2] a, int64 p) => (float[M,2] y, int64 n) {
  most = Constant <value = int64 {20}> ()
  go = Constant <value = bool {1}> ()
  none = SequenceEmpty ()
  s = Loop (most, go, none) <body = body (int64 i, bool more, seq(float[2]) s) => (bool on, seq(float[2]) t) {
    three = Constant <value = int64 {3}> ()
    yes = Constant <value = bool {1}> ()
    t = Loop (three, yes, s) <body = inner (int64 j, bool more2, seq(float[2]) u) => (bool on2, seq(float[2]) v) {
      k = Add (i, j)
      f = Cast <to = 1> (k)
      x = Add (a, f)
      v = SequenceInsert (u, x)
      on2 = Less (k, p)
    }>
    on = Less (i, p)
  }>
  y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
  n = SequenceLength (s)
}"""


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def case(name, text, data, **more):
        return Case(name, "", [], [], data, text=text, **more)
    abc = {"a": f(2, 3), "b": f(2, 3), "c": f(2, 3)}
    for p in (0, 2, -1, -3):
        yield case(f"at_{p}", AT, {**abc, "p": np.array(p)})
        yield case(f"erase_{p}", ERASE, {**abc, "p": np.array(p)})
    for p in (0, 1, 2, -1, -2):
        yield case(f"insert_{p}", INSERT, {**abc, "p": np.array(p)})
    for k, p in enumerate((3, -4)):
        yield case(f"at_out{k}", AT, {**abc, "p": np.array(p)}, refuse="outside of its sequence")
        yield case(f"erase_out{k}", ERASE, {**abc, "p": np.array(p)}, refuse="outside of its sequence")
        yield case(f"insert_out{k}", INSERT, {**abc, "p": np.array(p)}, refuse="outside of its sequence")
    for p in (0, 5, 100):
        yield case(f"append_{p}", APPEND, {"a": f(2, 3), "p": np.array(p)})
    for p in (0, 3, 100):
        yield case(f"brief_{p}", BRIEF, {"a": f(2, 3), "p": np.array(p)})
    for p in (0, 3):
        a, rows = f(2), []
        for i in range(20):
            for j in range(3):
                rows.append(a + np.float32(i + j))
                if i + j >= p:
                    break
            if i >= p:
                break
        yield case(f"nested_{p}", NESTED, {"a": a, "p": np.array(p)}, expect=[np.array(rows), np.array(len(rows))])
    for k, p in enumerate((-9, 0.5, 9)):
        x = [np.array([0, -1, 0], np.float32), np.array([1, 0, -1], np.float32), np.array([0, 0, 2], np.float32)]
        sums, hit = np.zeros(3, np.float32), None
        for i in range(20):
            sums = sums + x[i % 3]
            if x[i % 3].max() > p:
                hit = x[i % 3]
                break
        yield case(f"first_{k}", FIRST, {"a": x[0], "b": x[1], "c": x[2], "p": np.array(p, np.float32)},
                   expect=[np.array(hit is not None), sums if hit is None else hit])
    for p in (1, 3):
        yield case(f"some_{p}", SOME, {"a": f(3), "p": np.array(p)})
    for c in (True, False):
        yield case(f"branches_{int(c)}", BRANCHES, {"a": f(3), "b": f(3), "c": np.array(c)})
    yield case("open", OPEN, {"x": f(2), "n": np.array(3)})
    yield case("elements", ELEMENTS, {"s": [f(2), f(4), f(3)], "p": np.array(1)})
