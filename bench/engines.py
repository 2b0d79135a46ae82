"""Adapters for the engines of bench/peers.py. Each engine runs in its own process with its best settings for one inference at a time.

    engines.py ENGINE MODEL.onnx INPUTS.npz THREADS

A child answers lines on stdin with lines on stdout, as bench/turns.c describes; its first line is JSON: version, settings, milliseconds to
load and to the first result, names of the outputs. Only answers go to the pipe; output of libraries goes to stderr.
"""
import json
import os
import re
import subprocess
import sys
import time

import numpy as np


class Ort:
    """All optimizations, spinning threads (the default), inputs and outputs bound once."""
    settings = "graph optimization all, threads spin (default), inputs and outputs bound once"
    entries = {}

    def __init__(self, path, feed, threads):
        import onnxruntime as ort
        ort.set_default_logger_severity(3)
        self.version = "onnxruntime " + ort.__version__
        o = ort.SessionOptions()
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
        for key, value in self.entries.items():
            o.add_session_config_entry(key, value)
        self.s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        self.b = self.s.io_binding()
        self.keep = [ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a)) for a in feed.values()]
        for name, v in zip(feed, self.keep):
            self.b.bind_ortvalue_input(name, v)
        self.names = [x.name for x in self.s.get_outputs()]
        for name in self.names:
            self.b.bind_output(name, "cpu")
        self.run()
        # The second run writes into our own arrays, so later runs allocate no outputs.
        self.outs = [ort.OrtValue.ortvalue_from_numpy(a) for a in self.b.copy_outputs_to_cpu()]
        self.b.clear_binding_outputs()
        for name, v in zip(self.names, self.outs):
            self.b.bind_ortvalue_output(name, v)

    def run(self):
        self.s.run_with_iobinding(self.b)

    def outputs(self):
        return dict(zip(self.names, (v.numpy() for v in self.outs)))


class OrtExact(Ort):
    """Ort with int8 products that do not saturate on CPUs without VNNI."""
    settings = Ort.settings + ", session.x64quantprecision 1"
    entries = {"session.x64quantprecision": "1"}


class OpenVino:
    """Latency hint, full precision, static shapes, one stream."""
    settings = "PERFORMANCE_HINT LATENCY, INFERENCE_PRECISION_HINT f32, EXECUTION_MODE PERFORMANCE, one stream, tensors set once"

    def __init__(self, path, feed, threads):
        import openvino as ov
        self.version = "openvino " + ov.__version__.split("-")[0]
        core = ov.Core()
        m = core.read_model(path)
        self.c = core.compile_model(m, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                               "INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "PERFORMANCE"})
        self.r = self.c.create_infer_request()
        self.keep = {k: ov.Tensor(np.ascontiguousarray(a), shared_memory=True) for k, a in feed.items()}
        for k, t in self.keep.items():
            self.r.set_tensor(k, t)
        self.names = [x.get_any_name() for x in m.outputs]
        self.run()

    def run(self):
        self.r.start_async()
        self.r.wait()

    def outputs(self):
        return {k: self.r.get_tensor(k).data for k in self.names}


class Mnn:
    """Converted by MNN's converter with float weights, then run as a module with fixed shapes. The converter is called as a library, because
    its command installs packages to report usage. The session interface overwrites its inputs and is not faster."""
    settings = "optimizeLevel 1, module, shapes fixed, precision high, power high, memory high"

    def __init__(self, path, feed, threads):
        import MNN
        import MNN.expr as F
        import MNN.nn as nn
        self.version = "mnn " + MNN.version()
        flat = convert_mnn(path)
        import onnx
        self.names = [o.name for o in onnx.load(path, load_external_data=False).graph.output]
        manager = nn.create_runtime_manager(({"backend": "CPU", "numThread": threads, "precision": "high", "power": "high", "memory": "high"},))
        self.m = nn.load_module_from_file(flat, list(feed), self.names, runtime_manager=manager, shape_mutable=False)
        self.inputs = []
        for a in feed.values():
            if a.dtype in (np.int64, np.int32):
                self.inputs.append(F.const(a.ravel().tolist(), list(a.shape), F.NCHW, F.int))
            else:
                self.inputs.append(F.const(np.ascontiguousarray(a), list(a.shape), F.NCHW, F.float))
        self.run()

    def run(self):
        self.out = self.m.forward(self.inputs)

    def outputs(self):
        out = self.out if isinstance(self.out, (list, tuple)) else [self.out]
        return {k: np.array(v.read()) for k, v in zip(self.names, out)}


def convert_mnn(path):
    flat = path[:-5] + ".mnn"
    if not os.path.exists(flat) or os.path.getmtime(flat) < os.path.getmtime(path):
        code = "import sys, _tools; _tools.mnnconvert(sys.argv)"
        got = subprocess.run([sys.executable, "-c", code, "-f", "ONNX", "--modelFile", path, "--MNNModel", flat + ".tmp", "--bizCode", "b",
                              "--optimizeLevel", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                             cwd=os.path.dirname(path))  # it leaves a file where it runs
        if got.returncode or not os.path.exists(flat + ".tmp"):
            raise RuntimeError("mnnconvert: " + (got.stdout.strip().splitlines() or ["failed"])[-1])
        os.replace(flat + ".tmp", flat)
    return flat


ENGINES = {"ort": Ort, "ort-exact": OrtExact, "openvino": OpenVino, "mnn": Mnn}


def peak():
    """Peak memory of this program in KiB. getrusage also counts the process before exec."""
    try:
        with open("/proc/self/status") as f:
            return int(re.search(r"VmHWM:\s*(\d+)", f.read()).group(1))
    except (OSError, AttributeError):
        return 0


def serve(engine, model, inputs, threads, answers):
    start = time.perf_counter()
    with np.load(inputs) as z:
        feed = {k: z[k] for k in z.files}
    e = ENGINES[engine](model, feed, threads)
    load = time.perf_counter() - start
    for _ in range(2):
        e.run()
    print(json.dumps({"version": e.version, "settings": e.settings, "start_us": 1e6 * load, "names": e.names,
                      "rss_kb": peak()}), file=answers, flush=True)
    clock, run = time.perf_counter, e.run
    for line in sys.stdin:
        word = line.split()
        if word[0] == "out":
            np.savez(word[1], **e.outputs())
            print(file=answers, flush=True)
            continue
        ms, each = float(word[1]), range(int(word[2]))
        times = []
        at = clock()
        end = at + ms / 1e3
        while at < end or not times:
            for _ in each:
                run()
            to = clock()
            times.append((to - at) * 1e6 / len(each))
            at = to
        print(" ".join(f"{t:.9g}" for t in times), file=answers, flush=True)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), answers)
    except Exception as e:  # the parent needs only the reason
        print(json.dumps({"refused": f"{type(e).__name__}: {e}".splitlines()[0][:300]}), file=answers, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
