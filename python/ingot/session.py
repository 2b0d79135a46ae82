"""ONNX Runtime's spelling: a program that says `import onnxruntime as ort` says `import ingot as ort` instead.

In: what InferenceSession of ONNX Runtime takes. Out: what it gives. Options that say how ONNX Runtime works (graph optimization,
arenas, execution modes) are taken and change nothing; intra_op_num_threads and enable_profiling are obeyed. Everything runs on the CPU.
"""
from __future__ import annotations

import enum
import os
import warnings
from typing import Any, Mapping, Sequence

import numpy as np

from ._lib import Usage
from ._net import Net, Port, Source
from ._ort import IOBinding, ModelMetadata, OrtValue, Trace, metadata
from ._types import ORT

PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Options of a session. intra_op_num_threads (0: number of processors), add_free_dimension_override_by_name, enable_profiling and
    profile_file_prefix have an effect."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.optimized_model_filepath = ""
        self.use_deterministic_compute = True
        self._entries: dict[str, str] = {}
        self._dims: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        self._dims[name] = value


class RunOptions:
    """Accepted and ignored."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False


def type_text(port: Port) -> str:
    """Returns a type as ONNX Runtime writes it: tensor(float), seq(tensor(int64)); other types as ingot writes them."""
    if port.dtype:
        return f"tensor({ORT.get(port.dtype, port.dtype)})"
    words, out, close = port.type, "", ""
    for ours, theirs in (("optional ", "optional("), ("sequence of ", "seq(")):
        if words.startswith(ours):
            words, out, close = words[len(ours):], out + theirs, close + ")"
    kind = words.split("[")[0]
    return f"{out}tensor({ORT[kind]}){close}" if kind in ORT else port.type


class NodeArg:
    """An input or output of a session."""

    def __init__(self, port: Port) -> None:
        self.name, self.type = port.name, type_text(port)
        self.shape: list[Any] = list(port.shape or ())  # like ONNX Runtime, also for an unknown rank

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def processors() -> int:
    return min(64, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class InferenceSession:
    """A session with the interface of ONNX Runtime; also accepts options of ingot.compile by name."""

    def __init__(self, path_or_bytes: Source, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Any] | None = None, **options: Any) -> None:
        self._told = sess_options or SessionOptions()
        for p in providers or ():
            name = p[0] if isinstance(p, (tuple, list)) else p
            if name != PROVIDER:
                warnings.warn(f"{name} is not among the providers of ingot, which has {PROVIDER} only", stacklevel=2)
        options.setdefault("threads", self._told.intra_op_num_threads or processors())
        if self._told._dims:
            options.setdefault("dims", self._told._dims)
        self._trace = Trace() if self._told.enable_profiling else None
        start = self._trace.now() if self._trace else 0
        self.net = Net(path_or_bytes, **options)
        if self._trace:
            self._trace.add("session_initialization", start)

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(p) for p in self.net.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(p) for p in self.net.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        pass

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {}}

    def get_session_options(self) -> SessionOptions:
        return self._told

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[np.ndarray]:
        """Runs the model. Returns results in the order of output_names; None: all."""
        known = [p.name for p in self.net.outputs]
        for name in output_names or ():
            if name not in known:
                raise Usage(f"the model has no output '{name}'; outputs are {', '.join(known)}")
        if not isinstance(input_feed, Mapping):
            raise Usage(f"expected a dict of inputs by name, found {type(input_feed).__name__}")
        missing = [p.name for p in self.net.inputs if p.name not in input_feed and not p.type.startswith("optional ")]
        if missing and not self.net._options.get("state") and not self.net._options.get("freeze"):
            raise Usage(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        return self._run(list(output_names or known), input_feed, None)

    def _run(self, names: list[str], feeds: Mapping[str, Any], out: Mapping[str, Any] | None) -> list[Any]:
        start = self._trace.now() if self._trace else 0
        results = self.net.run({name: x.numpy() if isinstance(x, OrtValue) else x for name, x in feeds.items()}, out)
        if self._trace:
            self._trace.add("model_run", start, engine=self.net.last_engine)
        return [results[name] for name in names]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Any = None) -> list[OrtValue]:
        return [OrtValue(x) for x in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Runs on the bound arrays; iobinding has the results."""
        out = {name: x for name, x in iobinding._outputs.items() if x is not None}
        iobinding._results = self._run(list(iobinding._outputs), iobinding._inputs, out)

    def get_modelmeta(self) -> ModelMetadata:
        return metadata(self.net._source)

    def get_profiling_start_time_ns(self) -> int:
        return self._trace.start_ns if self._trace else 0

    def end_profiling(self) -> str:
        """Writes the trace and returns its path, or "" without profiling."""
        trace, self._trace = self._trace, None
        return trace.write(self._told.profile_file_prefix) if trace else ""


def get_available_providers() -> list[str]:
    return [PROVIDER]


def get_all_providers() -> list[str]:
    return [PROVIDER]


def get_device() -> str:
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted and ignored: ingot prints nothing."""
