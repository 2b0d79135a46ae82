"""libingot through ctypes: records, functions, errors as exceptions.

Out: `library()`, whose functions are those of ingot.h (calls release the GIL), and `Model`, one Ingot with its messages. The library is
$INGOT_LIBRARY, else the one in this folder (a wheel), else build/libingot.so of the source tree."""
from __future__ import annotations

import ctypes
import functools
import os
import re
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class Error(Exception):
    """An error of the compiler. `code` is the status of ingot.h, `messages` has its errors, `node` is the first ONNX node that they name:
    (number, name, operator), or None."""

    code = 0

    def __init__(self, text: str, code: int = 0, messages: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.code = code or self.code
        self.messages = tuple(messages) or (text,)

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.code, self.messages)

    @property
    def node(self) -> tuple[int, str, str] | None:
        found = re.search(r"node (\d+) '([^']*)' \(([^)]*)\)", self.messages[0])
        return (int(found[1]), found[2], found[3]) if found else None


class Mismatch(Error):
    """Two results differ."""
    code = 1


class Usage(Error, ValueError):
    """The call is invalid: an unknown name or option."""
    code = 2


class Unsupported(Error):
    """The model is valid, but ingot cannot compile it."""
    code = 3


class BadInput(Error, ValueError):
    """A file or an array is invalid."""
    code = 4


class System(Error):
    """Out of memory or disk space, a missing file, or no C compiler."""
    code = 5


for _kind in (Error, Mismatch, Usage, Unsupported, BadInput, System):
    _kind.__module__ = "ingot"  # show the public module name in messages
KINDS = {kind.code: kind for kind in (Mismatch, Usage, Unsupported, BadInput, System)}


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_char_p), ("rank", c_uint32), ("dim", POINTER(c_int64)), ("data", c_void_p),
                ("bytes", c_uint64)]


class OutBuffer(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64)]


class Call(Structure):
    _fields_ = [("engine", c_char_p), ("seed", c_uint64), ("input", POINTER(Tensor)), ("nin", c_uint32), ("out", POINTER(OutBuffer)),
                ("nout", c_uint32)]


class PortInfo(Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("dtype", c_char_p), ("has_shape", c_int), ("rank", c_uint32),
                ("dim", POINTER(c_int64)), ("symbol", POINTER(c_char_p))]


class Codegen(Structure):
    _fields_ = [("name", c_char_p), ("literal_bytes", c_uint64), ("weights", c_char_p), ("weights_file", c_char_p), ("selftest", c_int),
                ("debug", c_int), ("caller", c_int), ("profile", c_int), ("split", c_int), ("cpp", c_char_p)]


class Memory(Structure):
    _fields_ = [("planned", c_int), ("why", c_char_p),
                *((name, c_uint64) for name in ("arena", "lower_bound", "naive", "weights", "stack", "inputs", "outputs", "ram", "code")),
                *((name, c_uint32) for name in ("buffers", "groups", "kernels", "npeak")), ("peak", POINTER(Tensor))]


TEXT, SIZE = POINTER(c_char_p), POINTER(c_size_t)
FUNCTIONS = (
    ("new", c_void_p, c_void_p), ("free", None, c_void_p), ("message_count", c_uint32, c_void_p),
    ("message", c_char_p, c_void_p, c_uint32, POINTER(c_int)), ("open", c_int, c_void_p, c_char_p),
    ("open_bytes", c_int, c_void_p, c_char_p, c_size_t, c_char_p), ("declared", c_int, c_void_p, c_int, c_uint32, POINTER(PortInfo)),
    ("set_dim", c_int, c_void_p, c_char_p), ("set_shape", c_int, c_void_p, c_char_p, c_int), ("set_target", c_int, c_void_p, c_char_p),
    ("set_precise", c_int, c_void_p), ("optimize_for", c_int, c_void_p, c_char_p), ("set_ram", c_int, c_void_p, c_char_p),
    ("set_threads", c_int, c_void_p, c_int, c_char_p, c_int), ("set_state", c_int, c_void_p, c_char_p),
    ("set_grad", c_int, c_void_p, c_char_p), ("set_train", c_int, c_void_p, c_char_p), ("freeze", c_int, c_void_p, c_char_p),
    ("input", c_int, c_void_p, POINTER(Tensor)), ("input_file", c_int, c_void_p, c_char_p), ("import", c_int, c_void_p, c_int),
    ("input_count", c_uint32, c_void_p), ("input_info", Tensor, c_void_p, c_uint32), ("input_decides", c_int, c_void_p, c_uint32),
    ("output_count", c_uint32, c_void_p), ("output_info", Tensor, c_void_p, c_uint32), ("output", Tensor, c_void_p, c_uint32),
    ("ready", c_int, c_void_p, c_char_p), ("call", c_int, c_void_p, POINTER(Call)), ("run", c_int, c_void_p, c_char_p, c_uint64), ("reset", c_int, c_void_p),
    ("write_outputs", c_int, c_void_p, c_char_p), ("memory", c_int, c_void_p, POINTER(Memory)),
    ("emit_c", c_int, c_void_p, POINTER(Codegen), TEXT, SIZE, TEXT, SIZE),
    ("write_c", c_int, c_void_p, POINTER(Codegen), c_char_p, c_char_p, c_char_p),
    ("inspect", c_int, c_void_p, c_int, TEXT, SIZE), ("llvm", c_uint32), ("find_engine", c_void_p, c_char_p), ("keep_code", c_int, c_void_p, c_char_p),
    ("load_code", c_int, c_void_p, POINTER(c_int)), ("guard_new", c_void_p, c_void_p, c_void_p), ("guard_end", None, c_void_p),
    ("set_guard", c_int, c_void_p, c_void_p),
)


def find_library() -> str:
    """Returns the path of libingot."""
    root = os.path.dirname(os.path.dirname(HERE))
    for path in (os.environ.get("INGOT_LIBRARY"), os.path.join(HERE, "libingot.so"), os.path.join(root, "build", "libingot.so")):
        if path and os.path.exists(path):
            return path
    raise ImportError("libingot.so was not found: build it with `make` in the source tree, or set INGOT_LIBRARY to its path")


@functools.lru_cache(maxsize=None)
def library() -> Any:
    lib = ctypes.CDLL(find_library())
    for name, result, *arguments in FUNCTIONS:
        function = getattr(lib, "ingot_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


def said(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace")


def chars(text: str | bytes) -> bytes:
    """Encodes a parameter that ends at its first NUL byte in C."""
    raw = text if isinstance(text, bytes) else text.encode()
    if b"\0" in raw:
        raise ValueError(f"expected a path or name without NUL bytes, found {raw!r}")
    return raw


class Model:
    """A session of ingot.h: a model and everything made from it. Use it from one thread at a time."""

    def __init__(self, source: str | bytes, name: str = "model.onnx", guard: Any = None) -> None:
        self.lib = library()
        self.source = source  # the library does not copy the bytes
        self.m = self.lib.ingot_new(None)
        self.read = 0  # number of messages already reported
        if not self.m:
            raise MemoryError("out of memory for a model")
        if guard:
            self.call("set_guard", guard)
        if isinstance(source, bytes):
            self.call("open_bytes", source, len(source), name.encode())
        else:
            path = os.fsencode(source)
            if b"\0" in path:
                raise Usage(f"expected a path without NUL bytes, found {source!r}")
            self.call("open", path)

    def __del__(self) -> None:
        if getattr(self, "m", None):
            self.lib.ingot_free(self.m)
            self.m = None

    def call(self, function: str, *arguments: Any) -> None:
        """Calls ingot_FUNCTION of this model and raises its errors."""
        call = getattr(self.lib, "ingot_" + function)
        for x, after in zip(arguments, (*call.argtypes[2:], None)):
            if isinstance(x, bytes) and after is not c_size_t:  # bytes passed with a length may contain NUL
                chars(x)
        code = call(self.m, *arguments)
        if code:
            self.fail(code)

    def fail(self, code: int) -> None:
        errors = [text for warning, text in self.messages(self.read) if not warning]
        self.read = self.lib.ingot_message_count(self.m)
        raise KINDS.get(code, Error)("\n".join(errors) or f"status {code}", code, tuple(errors))

    def messages(self, start: int = 0) -> list[tuple[bool, str]]:
        """Returns [(is it a warning?, text)]."""
        out = []
        for i in range(start, self.lib.ingot_message_count(self.m)):
            warning = c_int()
            text = self.lib.ingot_message(self.m, i, ctypes.byref(warning))
            out.append((bool(warning.value), said(text)))
        return out

    def info(self, is_output: bool) -> list[tuple[str, str, tuple[int, ...]]]:
        """Returns [(name, type, shape)] of the inputs or outputs after import; -1: open dimension."""
        which = "output" if is_output else "input"
        count, info = getattr(self.lib, f"ingot_{which}_count"), getattr(self.lib, f"ingot_{which}_info")
        found = [info(self.m, i) for i in range(count(self.m))]
        return [(said(t.name), said(t.dtype), tuple(t.dim[k] for k in range(t.rank))) for t in found]

    def text(self, function: str, *arguments: Any, count: int = 1) -> list[str]:
        """Returns the texts of a function that has `count` of them, each with its length."""
        places = [(c_char_p(), c_size_t()) for _ in range(count)]
        self.call(function, *arguments, *(ctypes.byref(x) for place in places for x in place))
        return [ctypes.string_at(text, n.value).decode("utf-8", "replace") for text, n in places]
