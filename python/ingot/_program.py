"""One compiled program and the arrays it is called with.

In: an open model with its options. Out: calls on NumPy arrays. Inputs are read in place; results are written into arrays of the caller or
into new ones. Only strings and types narrower than a byte are converted."""
from __future__ import annotations

import ctypes
import threading
from typing import Any, Mapping, Sequence

import numpy as np

from ._lib import Call, Codegen, Memory, Model, OutBuffer, Tensor, Usage, chars, said
from ._types import DTYPES, NAMES, STORED


def describe(name: str, x: np.ndarray) -> Tensor:
    """Returns the ctypes record of an array, which must outlive it."""
    if x.dtype not in NAMES:
        raise Usage(f"input '{name}': arrays of {x.dtype} are not supported")
    dim = (ctypes.c_int64 * x.ndim)(*x.shape)
    return Tensor(chars(name), NAMES[x.dtype].encode(), x.ndim, dim, x.__array_interface__["data"][0], x.nbytes)


def stored(x: np.ndarray) -> np.ndarray:
    """Converts an array to the storage type of the library: integers narrower than a byte become bytes."""
    return x.astype(STORED[x.dtype]) if x.dtype in STORED else x


def rows_of(strings: Any, width: int) -> np.ndarray:
    """Converts strings to zero-padded rows of bytes."""
    flat = [x if isinstance(x, bytes) else str(x).encode() for x in np.asarray(strings, dtype=object).reshape(-1)]
    shape = np.asarray(strings, dtype=object).shape
    return np.array(flat, dtype=f"S{width}").reshape(-1, 1).view(np.uint8).reshape(*shape, width)


def strings_of(rows: np.ndarray) -> np.ndarray:
    out = np.empty(rows.shape[:-1], dtype=object)
    for at in np.ndindex(*out.shape):
        out[at] = rows[at].tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return out


class Program:
    """A model compiled for given shapes. interim: engine to use if code of engine c is not in the cache; None: compile now."""

    def __init__(self, model: Model, engine: str, texts: Mapping[str, int], given: Mapping[str, np.ndarray],
                 interim: str | None = None) -> None:
        self.model, self.texts = model, texts
        self.lock = threading.Lock()
        self.compiling: threading.Event | None = None  # set when the replacement program is ready
        model.call("import", 0)
        self.inputs, self.outputs = model.info(False), model.info(True)
        self.decides = {name: given[name].tobytes() for i, (name, _, _) in enumerate(self.inputs)
                        if name in given and model.lib.ingot_input_decides(model.m, i)}
        self.tensors = (Tensor * len(self.inputs))()
        self.rooms = (OutBuffer * len(self.outputs))()
        self.records: list[Any] = [None] * len(self.inputs)
        self.seen: list[Any] = [None] * len(self.inputs)
        found = ctypes.c_int(0)
        if engine == "c":
            model.call("load_code", ctypes.byref(found))
        self.from_cache = bool(found.value)
        self.engine = interim if interim and not found.value else engine
        self.record = Call(self.engine.encode(), 0, self.tensors, len(self.inputs), self.rooms, len(self.outputs))
        model.call("ready", self.engine.encode())

    def fits(self, feeds: Mapping[str, np.ndarray]) -> bool:
        """Do the contents that determine shapes equal those of this program?"""
        return all(feeds[name].tobytes() == was for name, was in self.decides.items() if name in feeds)

    def _give(self, i: int, name: str, x: np.ndarray) -> np.ndarray:
        if self.seen[i] != (x.dtype, x.shape):
            self.records[i] = describe(name, x)  # owns the shape and name that the record points to
            self.tensors[i], self.seen[i] = self.records[i], (x.dtype, x.shape)
        kept = stored(x)
        self.tensors[i].data = kept.__array_interface__["data"][0]
        return kept

    def _place(self, i: int, out: np.ndarray | None) -> np.ndarray | None:
        """Returns memory for output i: the caller's, or new; None: the size is known only after the run."""
        name, kind, shape = self.outputs[i]
        dtype = DTYPES.get(kind)
        if dtype is None:
            raise Usage(f"output '{name}' is {kind}, which needs the package ml_dtypes")
        if out is not None:
            if out.dtype != dtype or (-1 not in shape and out.shape != shape):
                raise Usage(f"output '{name}' is {kind}{list(shape)}, found an array {out.dtype}{list(out.shape)} for it")
            if not out.flags.c_contiguous or not out.flags.writeable:
                raise Usage(f"output '{name}': expected a writable, contiguous array")
            return None if dtype in STORED else out
        return None if -1 in shape or dtype in STORED else np.empty(shape, dtype)

    def _apart(self, outs: Sequence[np.ndarray | None]) -> None:
        """Refuses one array for two results. The library checks overlaps only for results that it writes itself."""
        given = [(self.outputs[i][0], out) for i, out in enumerate(outs) if out is not None]
        for i, (name, out) in enumerate(given):
            for other, before in given[:i]:
                if np.may_share_memory(out, before):  # contiguous arrays: compare bounds
                    raise Usage(f"the arrays given for outputs '{other}' and '{name}' overlap")

    def _result(self, i: int, place: np.ndarray | None, out: np.ndarray | None) -> np.ndarray:
        if place is not None and -1 not in self.outputs[i][2]:
            return place
        t = self.model.lib.ingot_output(self.model.m, i)
        dtype, shape = DTYPES[said(t.dtype)], tuple(t.dim[k] for k in range(t.rank))
        if place is not None:
            return place.reshape(-1)[:int(np.prod(shape, dtype=np.int64))].reshape(shape)
        raw = ctypes.string_at(t.data, t.bytes) if t.bytes else b""
        x = np.frombuffer(raw, STORED.get(dtype, dtype)).reshape(shape)
        x = x.astype(dtype) if dtype in STORED else x.copy()
        if out is None:
            return x
        if x.size > out.size:
            raise Usage(f"output '{self.outputs[i][0]}' has shape {list(shape)}, found an array of shape {list(out.shape)} for it")
        view = out.reshape(-1)[:x.size].reshape(shape)
        view[...] = x
        return view

    def __call__(self, feeds: Mapping[str, np.ndarray], outs: Sequence[np.ndarray | None], seed: int) -> list[np.ndarray]:
        m = self.model
        with self.lock:
            alive = []
            for i, (name, _, _) in enumerate(self.inputs):
                if name in feeds:
                    alive.append(self._give(i, name, feeds[name]))
                else:
                    self.tensors[i], self.seen[i] = Tensor(), None
            places = [self._place(i, out) for i, out in enumerate(outs)]
            self._apart(outs)
            for room, place in zip(self.rooms, places):
                room.data, room.bytes = (place.__array_interface__["data"][0], place.nbytes) if place is not None else (None, 0)
            self.record.seed = seed
            code = m.lib.ingot_call(m.m, ctypes.byref(self.record))
            if code:
                m.fail(code)
            return [self._result(i, place, outs[i]) for i, place in enumerate(places)]

    def reset(self) -> None:
        with self.lock:
            self.model.call("reset")

    def memory(self) -> Memory:
        out = Memory()
        with self.lock:
            self.model.call("memory", ctypes.byref(out))
        return out

    def emit_c(self, name: str) -> tuple[str, str]:
        with self.lock:
            source, header = self.model.text("emit_c", ctypes.byref(Codegen(name=chars(name))), count=2)
        return source, header

    def write_c(self, name: str, source: str, header: str, weights: str) -> None:
        with self.lock:
            self.model.call("write_c", ctypes.byref(Codegen(name=chars(name))), source.encode(), header.encode(), weights.encode())

    def abandon(self) -> None:
        """Drops a program of another process without ending its threads, which do not exist here."""
        self.model.m = None
