"""ONNX Runtime as the judge: the one place where tests make a session of it.

Its sums of products of bytes, u8 by s8, saturate at 16 bits on a CPU without VNNI, and a judge may not depend on the machine it sits on.
A session option makes them exact, but only for constant weights and where graphs are optimised; elsewhere tests take s8 from -64 to
64, of which two products always fit. With activations in s8, where nothing saturates, that option leads to operators it does not have.
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
    """model: a path, or the bytes of one. threads 0: as many as ONNX Runtime likes."""
    try:
        return start(model, optimise, threads, True)
    except Missing:
        return start(model, optimise, threads, False)
