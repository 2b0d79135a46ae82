"""ingot: a compiler for neural networks, called from Python.

    import ingot
    net = ingot.compile("model.onnx", march="native", threads=2)
    y = net(x)

`ingot.LLM` and `ingot.Embedder` run language models and text encoders, `ingot.InferenceSession` has the interface of ONNX Runtime,
`ingot.backend` the official backend interface of ONNX, `ingot.ray` and `ingot.spark` run models in clusters. docs/python.md has the rest."""
from ._lib import BadInput, Error, Mismatch, System, Unsupported, Usage
from ._net import Net, Port, cached, compile, default_engine
from ._ort import IOBinding, ModelMetadata, OrtValue
from ._types import from_dlpack
from ._version import __version__
from ._lm import LLM, Embedder
from .session import (ExecutionMode, GraphOptimizationLevel, InferenceSession, NodeArg, RunOptions, SessionOptions, get_all_providers,
                      get_available_providers, get_device, set_default_logger_severity)

__all__ = ["BadInput", "Embedder", "Error", "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "LLM", "Mismatch", "ModelMetadata", "Net", "NodeArg", "OrtValue", "Port",
           "RunOptions", "SessionOptions", "System", "Unsupported", "Usage", "__version__", "cached", "compile", "default_engine",
           "from_dlpack", "get_all_providers", "get_available_providers", "get_device", "set_default_logger_severity"]
