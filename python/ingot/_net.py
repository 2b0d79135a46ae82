"""A model as a callable object: ingot.compile.

In: an ONNX file, its bytes or a ModelProto, and options. Out: a Net. If all shapes are known, it is compiled at once. Otherwise each call
with new shapes compiles a program; the last few are kept. With bounds (max_shapes) one program serves all shapes within them. A new shape
runs on engine vm while a thread compiles its C, unless the C is in the cache. One Net runs one call at a time; two Nets share nothing.
The logger "ingot" reports what is compiled."""
from __future__ import annotations

import ctypes
import logging
import operator
import os
import shutil
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Union

import numpy as np

from . import _background
from ._lib import Error, Model, PortInfo, Unsupported, Usage, library, said
from ._program import Program, describe, rows_of, stored, strings_of
from ._types import DTYPES, as_array

LOG = logging.getLogger("ingot")
Source = Union[str, "os.PathLike[str]", bytes, Any]
SMALL = 4096  # maximum elements of arrays that may determine shapes; their contents are passed before import
KEPT = 8      # programs kept by one Net


class Port(NamedTuple):
    """An input or output. `shape` has numbers, names of open dimensions and None for unnamed ones; it is None if the rank is open."""
    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None
    type: str


def _version(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Returns a key that changes with the file; None: unknown, or not a file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def default_engine() -> str:
    """Returns c if there is a C compiler, else jit if there is LLVM, else vm."""
    words = os.environ.get("CC", "cc").split()
    return "c" if words and shutil.which(words[0]) else "jit" if library().ingot_llvm() else "vm"


def _value(x: Any) -> str:
    """Returns a value as text for ingot_freeze."""
    if isinstance(x, str):
        return x
    return str(np.asarray(x).tolist()).replace("True", "true").replace("False", "false")


def _number(option: str, name: str, n: Any) -> int:
    """Converts the value given for a dimension to an int; refuses text."""
    try:
        return operator.index(n)
    except TypeError:
        raise Usage(f"{option}: '{name}' is {_shown(n)}: expected an integer") from None


def _shape(name: str, extents: Sequence[int] | int, option: str = "shapes") -> str:
    if option == "max_shapes" and hasattr(extents, "__index__"):  # maximum of a dimension
        return f"{name}={_number(option, name, extents)}"
    if isinstance(extents, (str, bytes)) or not hasattr(extents, "__iter__"):
        raise Usage(f"{option}: '{name}' is {_shown(extents)}: expected a list of integers")
    return f"{name}:{'x'.join(str(_number(option, name, n)) for n in extents)}"


def _shown(x: Any) -> str:
    """Describes a value in a message: its type and the start of its text."""
    text = repr(x)
    return f"{type(x).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def _array(name: str, x: Any, port: Port | None) -> np.ndarray:
    """Converts an input to a numeric array; refuses text and None, which NumPy would convert."""
    out, why = None, ""
    if x is not None and not isinstance(x, (str, bytes)):
        try:
            out = as_array(x, DTYPES.get(port.dtype) if port and port.dtype else None)
        except (TypeError, ValueError, OverflowError) as e:
            why = f" ({e})"
    if out is None or (port and out.dtype.kind in "USOmM"):
        found = f"an array of {out.dtype}" if out is not None else _shown(x)
        raise Usage(f"input '{name}'{' is ' + port.type if port else ''}: expected an array of numbers; found {found}{why}")
    return out


TEXTS, TABLES = ("march", "engine", "optimize_for", "grad", "train", "kv_cache", "date"), ("dims", "shapes", "max_shapes", "freeze")


def check_options(who: str, options: Mapping[str, Any]) -> None:
    """Refuses options of another type than the function declares."""
    for name, x in options.items():
        if name in TEXTS and not isinstance(x, (str, type(None))):
            raise Usage(f"{who}: '{name}' is {_shown(x)}: expected a str")
        if name in TABLES and not isinstance(x, (Mapping, type(None))):
            raise Usage(f"{who}: '{name}' is {_shown(x)}: expected a dict")
        if name == "state" and not isinstance(x, (str, Mapping, type(None))):
            raise Usage(f"{who}: '{name}' is {_shown(x)}: expected a str or a dict")
        if name == "cache" and not isinstance(x, (bool, str, os.PathLike, type(None))):
            raise Usage(f"{who}: '{name}' is {_shown(x)}: expected a bool or a path")
        if name in ("context", "threads") and x is not None:
            _number(who, name, x)


def check_model(who: str, model: Any) -> None:
    if not isinstance(model, (str, bytes, bytearray, memoryview, os.PathLike)):
        raise Usage(f"{who}: the model is {_shown(model)}: expected a path, the bytes of a file or a ModelProto")


class Net:
    """See ingot.compile."""

    def __init__(self, model: Source, **options: Any) -> None:
        source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
        check_model("compile", source)
        check_options("compile", options)
        self._source = bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else os.fspath(source)
        self._options = options
        self.engine: str = options.get("engine") or default_engine()
        self.seed = 0
        self._lock = threading.RLock()
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._only: Program | None = None  # the program, if all shapes are known or bounded
        self._last: Program | None = None
        self._pid = os.getpid()
        self._version = None if isinstance(self._source, bytes) else _version(self._source)
        _NETS.add(self)
        with self._lock:
            self._begin()

    # ---- making programs ----

    def _open(self, guard: Any = None) -> Model:
        o, m = self._options, Model(self._source, guard=guard)
        if not isinstance(self._source, bytes) and _version(self._source) != self._version:
            raise Usage(f"{os.fspath(self._source)} has changed since the first compilation; open the model again")
        if not library().ingot_find_engine(self.engine.encode()):
            m.call("ready", self.engine.encode())  # refuses the name
        keep = o.get("cache", True)
        if self.engine == "c" and keep is not False:
            m.call("keep_code", None if keep is True else os.fsencode(keep))
        graph = self.engine in ("ref", "ref64")
        march = o.get("march") or (None if graph else "native")
        if march:
            m.call("set_target", march.encode())
        if o.get("threads", 1) != 1:
            m.call("set_threads", operator.index(o["threads"]), None, 0)
        if o.get("precise"):
            m.call("set_precise")
        for key, function in (("optimize_for", "optimize_for"), ("ram", "set_ram"), ("grad", "set_grad"), ("train", "set_train")):
            if o.get(key):
                m.call(function, str(o[key]).encode())
        state = o.get("state")
        for spec in [state] if isinstance(state, str) else [f"{a}={b}" for a, b in (state or {}).items()]:
            m.call("set_state", spec.encode())
        for name, n in (o.get("dims") or {}).items():
            m.call("set_dim", f"{name}={_number('dims', name, n)}".encode())
        for is_max, key in enumerate(("shapes", "max_shapes")):
            for name, extents in (o.get(key) or {}).items():
                m.call("set_shape", _shape(name, extents, key).encode(), is_max)
        for name, x in (o.get("freeze") or {}).items():
            m.call("freeze", f"{name}={_value(x)}".encode())
        return m

    def _begin(self) -> None:
        m = self._open()
        self.inputs, self.outputs = self._declared(m, False), self._declared(m, True)
        open_ones = [p for p in self.inputs if p.shape is None or any(not isinstance(n, int) for n in p.shape)]
        texts = any(p.dtype == "str" for p in self.inputs)
        o = self._options
        told = any(o.get(k) for k in ("dims", "shapes", "max_shapes", "state", "train"))
        if o.get("lazy") or ((open_ones or texts) and not told):
            return
        try:
            self._only = self._last = self._timed(lambda: Program(m, self.engine, {}, {}), "")
        except Unsupported:
            # contents of integer inputs may determine shapes, so the first call compiles
            if told or not any(p.dtype and p.dtype[0] in "iu" for p in self.inputs):
                raise
        else:
            if not self.inputs:
                self.inputs = [Port(name, kind, shape, kind) for name, kind, shape in self._only.inputs]
                self.outputs = [Port(name, kind, shape, kind) for name, kind, shape in self._only.outputs]

    @staticmethod
    def _declared(m: Model, is_output: bool) -> list[Port]:
        out: list[Port] = []
        while True:
            d = PortInfo()
            m.call("declared", is_output, len(out), ctypes.byref(d))
            if not d.name:
                return out
            shape = tuple(d.dim[k] if d.dim[k] >= 0 else said(d.symbol[k]) or None for k in range(d.rank)) if d.has_shape else None
            out.append(Port(said(d.name), said(d.dtype) or None, shape, said(d.type)))

    def _timed(self, make: Callable[[], Program], shapes: str) -> Program:
        start = time.perf_counter()
        out = make()
        how = "code from the cache" if out.from_cache else "compiled" if out.engine in ("c", "jit") else "ready"
        LOG.info("%s%s: engine %s, %s in %.2f s", self._name(), shapes, out.engine, how, time.perf_counter() - start)
        return out

    def _told(self, feeds: Mapping[str, np.ndarray], texts: Mapping[str, int], dims: Sequence[str]) -> tuple[list[tuple[Any, ...]], dict[str, np.ndarray]]:
        """Returns the calls of the library and the arrays that a model needs before import. They contain copies, so a thread may use them later."""
        calls: list[tuple[Any, ...]] = [("set_dim", spec.encode()) for spec in (*dims, *(f"{name}.bytes={width}" for name, width in texts.items()))]
        given: dict[str, np.ndarray] = {}
        for name, x in feeds.items():
            if name in texts:
                if x.ndim > 1:
                    calls.append(("set_shape", _shape(name, x.shape[:-1]).encode(), 0))
            elif x.size <= SMALL or x.dtype.kind in "iub" or set(name) & set(",[]:="):
                given[name] = stored(x).copy()
                record = describe(name, x)
                record.data = given[name].__array_interface__["data"][0]
                calls.append(("input", ctypes.byref(record)))
            else:
                calls.append(("set_shape", _shape(name, x.shape).encode(), 0))
        return calls, given

    def _make(self, calls: Sequence[tuple[Any, ...]], texts: Mapping[str, int], given: Mapping[str, np.ndarray], interim: str | None = None,
              guard: Any = None) -> Program:
        m = self._open(guard)
        for function, *arguments in calls:
            m.call(function, *arguments)
        return Program(m, self.engine, texts, given, interim)

    def _program(self, feeds: Mapping[str, np.ndarray], texts: Mapping[str, int], dims: Sequence[str]) -> Program:
        self._here()
        if self._only is not None:
            return self._only
        key: Any = tuple((name, x.dtype, x.shape) for name, x in feeds.items()) + tuple(dims)
        found = self._programs.get(key)
        while found is not None and not found.fits(feeds):
            key = (key, tuple(sorted((name, feeds[name].tobytes()) for name in found.decides)))
            found = self._programs.get(key)
        if found is None:
            with self._lock:
                found = self._new(key, feeds, texts, dims)
                while len(self._programs) > KEPT:
                    self._programs.popitem(last=False)
        self._last = found
        return found

    def _new(self, key: Any, feeds: Mapping[str, np.ndarray], texts: Mapping[str, int], dims: Sequence[str]) -> Program:
        """Makes a program for new shapes: with engine c if its code is in the cache, else with vm while a thread compiles. The caller holds
        the lock. The program is stored before the thread can look for it."""
        calls, given = self._told(feeds, texts, dims)
        shapes = "".join(f" {name}{list(x.shape)}" for name, x in feeds.items())
        later = self._options.get("background", not self._options.get("engine")) and self.engine == "c" and not self._options.get("state")
        out = self._timed(lambda: self._make(calls, texts, given, "vm" if later else None), shapes)
        self._programs[key] = out
        if later and out.engine != "c":
            LOG.info("%s%s: engine vm runs while the C compiles in the background", self._name(), shapes)
            this = weakref.ref(self)

            def work(guard: Any) -> None:
                net = this()
                if net is None or net._programs.get(key) is not out:
                    return
                made = net._timed(lambda: net._make(calls, texts, given, None, guard), shapes)
                with net._lock:
                    if net._programs.get(key) is out:
                        net._programs[key] = made
                        net._last = made if net._last is out else net._last
            out.compiling = _background.submit(work)
        return out

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until no C compiles in the background; returns False after a timeout."""
        end = None if timeout is None else time.monotonic() + timeout
        return all(p.compiling.wait(None if end is None else max(0.0, end - time.monotonic())) for p in self._all() if p.compiling)

    def _name(self) -> str:
        return "model of bytes" if isinstance(self._source, bytes) else str(self._source)

    def _here(self) -> None:
        """Drops what the parent process compiled, after a fork."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid == os.getpid():
                return
            kept = [key for key in ("state", "train") if self._options.get(key)]
            if kept and self._last:
                warnings.warn(f"{self!r}: after a fork its {kept[0]} starts from the beginning", RuntimeWarning, stacklevel=5)
            self._abandon()
            self._programs.clear()
            self._only = self._last = None
            self._begin()
            self._pid = os.getpid()

    def _abandon(self) -> None:
        for p in (*self._programs.values(), *([self._only] if self._only else [])):
            p.abandon()

    # ---- calling ----

    def _feeds(self, given: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, int], list[str]]:
        """Returns arrays by parameter name, widths of strings, and lengths of sequences."""
        feeds: dict[str, np.ndarray] = {}
        texts: dict[str, int] = {}
        dims: list[str] = []
        ports = {p.name: p for p in self.inputs}
        for name, x in given.items():
            port = ports.get(name)
            if port is None or port.dtype is not None:
                if port is not None and port.dtype == "str":
                    long = max((len(s if isinstance(s, bytes) else str(s).encode()) for s in np.asarray(x, object).reshape(-1)), default=0)
                    texts[name] = 1 << max(3, long.bit_length())
                    feeds[name] = rows_of(x, texts[name])
                else:
                    feeds[name] = _array(name, x, port)
            elif port.type.startswith("optional ") and x is None:
                dims.append(f"{name}.has=0")
            elif port.type.startswith(("sequence of ", "optional sequence of ")):
                dims.append(f"{name}={len(x)}")
                feeds.update({f"{name}.{i}": _array(f"{name}.{i}", e, None) for i, e in enumerate(x)})
            elif port.type.startswith("map to "):
                feeds.update({f"{name}.keys": as_array(list(x), None), f"{name}.values": as_array(list(x.values()), None)})
            else:
                feeds[name] = _array(name, x, None)
        return feeds, texts, dims

    def _run(self, given: Mapping[str, Any], outs: Mapping[str, np.ndarray] | None) -> tuple[Program, list[np.ndarray]]:
        feeds, texts, dims = self._feeds(given)
        program = self._program(feeds, texts, dims)
        names = {name for name, _, _ in program.inputs}
        for name in feeds:
            if name not in names and name not in (self._options.get("freeze") or {}):
                raise Usage(f"the model has no input '{name}'; inputs are {', '.join(sorted(names)) or 'none'}")
        lacking = [name for name, _, _ in program.inputs if name not in feeds and not self._options.get("train")]
        if lacking:
            raise Usage(f"input '{lacking[0]}' is not given")
        if outs:
            for name in outs:
                if name not in {n for n, _, _ in program.outputs}:
                    raise Usage(f"output '{name}' does not exist or cannot be written into an array")
        results = program(feeds, [(outs or {}).get(name) for name, _, _ in program.outputs], self.seed)
        return program, results

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Runs the model: arrays by input name, results by output name. out: arrays to write results into."""
        program, results = self._run(feeds, {k: as_out(v) for k, v in (out or {}).items()} or None)
        return _assemble(self.outputs, {name: x for (name, _, _), x in zip(program.outputs, results)})

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Runs the model: arrays in the order of the inputs, or by name. Returns the result, or a tuple of results. out: an array, or one per
        result."""
        order = [name for name, _, _ in self._only.inputs] if self._only else [p.name for p in self.inputs]
        if len(arrays) > len(order):
            raise Usage(f"{len(arrays)} arrays are given, expected {len(order)} inputs: {', '.join(order)}")
        given = dict(zip(order, arrays))
        for name, x in named.items():
            if name in given:
                raise Usage(f"input '{name}' is given twice")
            given[name] = x
        outs = None
        if out is not None:
            several = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(several) > len(self.outputs):
                raise Usage(f"{len(several)} arrays are given for results, expected {len(self.outputs)}")
            outs = {p.name: as_out(x) for p, x in zip(self.outputs, several)}
        program, results = self._run(given, outs)
        whole = _assemble(self.outputs, {name: x for (name, _, _), x in zip(program.outputs, results)})
        if outs is not None:
            for p, x in zip(self.outputs, several):  # return the given object if the result fills it
                if np.shape(whole[p.name]) == outs[p.name].shape:
                    whole[p.name] = x
        values = tuple(whole.values())
        return values[0] if len(values) == 1 else values

    def reset(self) -> None:
        """Restores the state before the first call."""
        for p in self._all():
            p.reset()

    # ---- properties ----

    def _all(self) -> list[Program]:
        self._here()
        return [self._only] if self._only else list(self._programs.values())

    def _some(self) -> Program:
        self._here()
        if self._last is None:
            raise Usage("shapes are open: give sizes (dims, shapes or max_shapes), or call the model first")
        return self._last

    @property
    def last_engine(self) -> str:
        """The engine of the last call; vm while the C of a new shape compiles."""
        return self._last.engine if self._last else self.engine

    @property
    def c_source(self) -> str:
        """The model as C; with open shapes, for the shapes of the last call."""
        return self._some().emit_c("model")[0]

    @property
    def c_header(self) -> str:
        return self._some().emit_c("model")[1]

    def write_c(self, path: str | os.PathLike[str]) -> None:
        """Writes FILE.c, FILE.h and, if the weights are not in the C, FILE.bin."""
        stem = os.path.splitext(os.fspath(path))[0]
        self._some().write_c(os.path.basename(stem), stem + ".c", stem + ".h", stem + ".bin")

    @property
    def arena_bytes(self) -> int:
        """Memory of a run without its arrays: NAME_ARENA_BYTES of the C."""
        return int(self._some().memory().arena)

    @property
    def weight_bytes(self) -> int:
        return int(self._some().memory().weights)

    @property
    def warnings(self) -> list[str]:
        return [text for p in self._all() for is_warning, text in p.model.messages() if is_warning]

    def __repr__(self) -> str:
        what = repr(self._source) if isinstance(self._source, str) else self._name()
        return f"<ingot.Net {what}, engine {self.engine}: {', '.join(p.name for p in self.inputs)} -> {', '.join(p.name for p in self.outputs)}>"

    def __reduce__(self) -> Any:
        """Pickles the path or the bytes of the model; unpickling compiles it again."""
        return _again, (self._source, self._options)


def _again(source: str | bytes, options: dict[str, Any]) -> Net:
    return Net(source, **options)


def as_out(x: Any) -> np.ndarray:
    """Returns the array that results are written into: the given one, or the memory of a tensor."""
    if not isinstance(x, np.ndarray) and not hasattr(x, "__dlpack__"):
        raise Usage(f"out: expected an array, found {type(x).__name__}")
    if isinstance(x, np.ndarray):
        return x
    from ._types import from_dlpack
    return from_dlpack(x)


def _assemble(ports: Sequence[Port], flat: dict[str, np.ndarray]) -> dict[str, Any]:
    """Builds the declared outputs (strings, sequences, optionals, maps) from the tensors of a program."""
    out: dict[str, Any] = {}
    for p in ports:
        if p.dtype == "str" and p.name in flat:
            out[p.name] = strings_of(flat.pop(p.name))
        elif p.dtype is not None:
            if p.name in flat:
                out[p.name] = flat.pop(p.name)
        elif p.type.startswith("sequence of map") and f"{p.name}.keys" in flat:
            keys, values = flat.pop(f"{p.name}.keys"), flat.pop(p.name)
            keys = strings_of(keys) if keys.ndim == 2 else keys
            out[p.name] = [dict(zip(keys.tolist(), row.tolist())) for row in values]
        elif p.type.startswith("sequence of ") and f"{p.name}.count" in flat:
            out[p.name] = list(flat.pop(p.name)[:int(flat.pop(f"{p.name}.count"))])
        elif p.type.startswith("optional ") and f"{p.name}.has" in flat:
            x = flat.pop(p.name)
            out[p.name] = x if bool(flat.pop(f"{p.name}.has")) else None
        elif p.name in flat:
            out[p.name] = flat.pop(p.name)
        elif p.type.startswith(("sequence of ", "optional sequence of ")):
            names = [name for name in flat if name.startswith(p.name + ".") and name[len(p.name) + 1:].isdigit()]
            out[p.name] = [flat.pop(name) for name in sorted(names, key=lambda name: int(name.rsplit(".", 1)[1]))]
    return {**out, **flat}  # also outputs added by `grad`


def compile(model: Source, *, march: str | None = None, threads: int = 1, engine: str | None = None,
            dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
            max_shapes: Mapping[str, Sequence[int] | int] | None = None, state: str | Mapping[str, str] | None = None,
            freeze: Mapping[str, Any] | None = None, precise: bool = False, optimize_for: str | None = None,
            ram: str | int | None = None, grad: str | None = None, train: str | None = None, lazy: bool = False,
            cache: bool | str | os.PathLike[str] = True, background: bool | None = None) -> Net:
    """Compiles a model and returns it as a function of arrays.

    model: a path, the bytes of a file, or a ModelProto. engine: "c" (default with a C compiler), "jit" (LLVM), "vm", ...
    dims, shapes: sizes of open dimensions, by name or by input. max_shapes: bounds of open dimensions; one program serves all shapes
    within them. lazy: compile in the first call. cache: reuse compiled C in ~/.cache/ingot, or in this folder. background: run a new
    shape on engine vm while its C compiles (default unless engine is given). Other options are those of `ingot run`; grad and train:
    docs/training.md.
    """
    options = {"march": march, "threads": threads, "engine": engine, "dims": dims, "shapes": shapes, "max_shapes": max_shapes, "state": state,
               "freeze": freeze, "precise": precise, "optimize_for": optimize_for, "ram": ram, "grad": grad, "train": train,
               "lazy": lazy or None, "cache": None if cache is True else cache, "background": background}
    return Net(model, **{k: v for k, v in options.items() if v is not None})


_NETS: weakref.WeakSet[Net] = weakref.WeakSet()
_CACHED: dict[Any, Net] = {}
_CACHE_LOCK = threading.Lock()


def _forked() -> None:
    """Replaces locks and threads in a child process, in which the other threads do not exist."""
    global _CACHE_LOCK
    _CACHE_LOCK = threading.Lock()
    _background.forked()
    for net in _NETS:
        net._lock = threading.RLock()
        net._abandon()


os.register_at_fork(after_in_child=_forked)


def cached(model: Source, **options: Any) -> Net:
    """Returns the same Net for the same model and options in this process; workers of a cluster call it for every batch."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, bytes):
        path = os.path.abspath(os.fspath(model))
        identity: Any = (path, _version(path))
    else:
        identity = model
    key = (identity, repr(sorted(options.items())), os.getpid())
    with _CACHE_LOCK:
        if key not in _CACHED:
            _CACHED[key] = compile(model, **options)
        return _CACHED[key]


__all__ = ["Error", "Net", "Port", "cached", "compile", "default_engine"]
