"""ONNX Runtime as the reference: the only module in which tests create its sessions.

On a CPU without VNNI its u8 x s8 sums saturate at 16 bits, but a reference must not depend on the CPU.
A session option makes the sums exact, but only for constant weights and with graph optimizations.
Other tests use s8 from -64 to 64, of which two products always fit.
With s8 activations nothing saturates, but that option needs operators that do not exist.
"""
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Missing

FATAL = 4
ort.set_default_logger_severity(FATAL)


def start(model, optimise, threads, exact):
    o = ort.SessionOptions()
    o.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    o.log_severity_level = FATAL
    o.intra_op_num_threads = o.inter_op_num_threads = threads
    if not optimise:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def session(model, optimise=True, threads=0):
    """model: a path, or the bytes of a model. threads 0: ONNX Runtime chooses."""
    try:
        return start(model, optimise, threads, True)
    except Missing:
        return start(model, optimise, threads, False)
