"""Models over rows of tables: shared by ingot.ray and ingot.spark.

In: columns of a batch, as arrays whose first axis is the rows. Out: columns of results. A process compiles the model once: for up to
max_batch rows if the first dimensions are open, else for the fixed number of rows. Larger batches are split. With a fixed number of rows,
the last part is padded with copies of its last row, and their results are dropped.
Row i of a result must belong to row i of the inputs, so the first axis of all inputs and outputs must be the rows; others are refused."""
from __future__ import annotations

import os
import uuid
from collections import OrderedDict
from typing import Any, Mapping, Sequence, Union

import numpy as np

from ._lib import Usage
from ._net import Net, Source, cached
from ._types import DTYPES, converted

Columns = Union[str, Sequence[str]]
_JOBS: OrderedDict[str, tuple[Net, int, bool]] = OrderedDict()  # nets of this process, by token of Rows
KEPT = 8


class Rows:
    """A model over rows. It is pickled as the path or the bytes of the model and compiled on first use. All copies of one Rows in a process
    share one Net, even if the file changes."""

    def __init__(self, model: Source, inputs: Mapping[str, Columns] | None = None, outputs: Mapping[str, str] | None = None,
                 max_batch: int = 256, ship: bool = False, **options: Any) -> None:
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if ship and not isinstance(model, bytes):
            with open(model, "rb") as f:
                model = f.read()
        self.model: str | bytes = model if isinstance(model, bytes) else os.path.abspath(os.fspath(model))
        self.inputs, self.outputs = dict(inputs or {}), dict(outputs or {})
        self.max_batch, self.options = max_batch, options
        self.token = uuid.uuid4().hex

    def net(self) -> tuple[Net, int, bool]:
        """The Net of this process, from _compiled."""
        found = _JOBS.get(self.token)
        if found is None:
            found = _JOBS[self.token] = self._compiled()
            while len(_JOBS) > KEPT:
                _JOBS.popitem(last=False)
        return found

    def _compiled(self) -> tuple[Net, int, bool]:
        """Returns the Net, the maximum rows of a run, and whether every run has exactly as many."""
        plain = cached(self.model, **{**self.options, "lazy": True})
        shapes = {p.name: p.shape or () for p in plain.inputs}
        rows = {shape[0] for shape in shapes.values() if shape}
        if not all(shapes.values()):
            raise Usage("a model over rows needs inputs with a first dimension: " + ", ".join(f"{p.name}: {p.type}" for p in plain.inputs))
        fixed = {n for n in rows if isinstance(n, int)}
        if fixed:
            if len(fixed) > 1:
                raise Usage(f"inputs have different numbers of rows: {sorted(fixed)}")
            return cached(self.model, **self.options), fixed.pop(), True
        if any(not isinstance(n, int) for shape in shapes.values() for n in shape[1:]):
            return plain, self.max_batch, False  # other dimensions are also open: one program per shape
        bounds = {name: (self.max_batch, *shape[1:]) for name, shape in shapes.items()}
        return cached(self.model, **{**self.options, "max_shapes": bounds}), self.max_batch, False

    def column(self, name: str, dtype: str | None, table: Mapping[str, Any]) -> np.ndarray:
        """Returns the array of an input: a column, or several columns stacked."""
        which = self.inputs.get(name, name)
        for one in [which] if isinstance(which, str) else which:
            if one not in table:
                raise Usage(f"input '{name}' of the model: the table has no column '{one}'; columns are {', '.join(table)}")
        wanted = DTYPES.get(dtype or "")
        try:
            parts = [_stack(table[one]) for one in ([which] if isinstance(which, str) else which)]
            x = parts[0] if isinstance(which, str) else np.stack(parts, axis=1)
            return x if wanted is None else converted(x, wanted)
        except (TypeError, ValueError, OverflowError) as e:
            raise Usage(f"input '{name}' of the model, column {which!r}: {e}") from None

    @staticmethod
    def laid_out(name: str, x: np.ndarray, shape: Sequence[Any] | None) -> np.ndarray:
        """Reshapes flat rows to the shape of the input, and adds or removes axes of extent 1."""
        rest = tuple(shape or ())[1:]
        if x.shape[1:] == rest or any(not isinstance(n, int) for n in rest):
            return x
        is_list = x.ndim in (1, 2) and x.size == len(x) * int(np.prod(rest, dtype=np.int64))
        if not is_list and (not x.ndim or [n for n in x.shape[1:] if n != 1] != [n for n in rest if n != 1]):
            raise Usage(f"input '{name}' of the model has rows of shape {list(rest)}; the column has {len(x) if x.ndim else 'no'} rows of shape {list(x.shape[1:])}")
        return x.reshape(len(x), *rest)

    @staticmethod
    def nothing(net: Net) -> dict[str, np.ndarray]:
        """Returns results for zero rows. Unknown extents are 0."""
        ports = {p.name: (p.dtype, p.shape or (0,)) for p in net.outputs}
        if net._only:
            ports.update({name: (kind, shape) for name, kind, shape in net._only.outputs if name in ports and ports[name][0] != "str"})
        return {name: np.empty((0, *(n if isinstance(n, int) and n > 0 else 0 for n in shape[1:])), DTYPES.get(kind or "", np.dtype(object)))
                for name, (kind, shape) in ports.items()}

    def predict(self, table: Mapping[str, Any]) -> dict[str, np.ndarray]:
        net, most, is_fixed = self.net()
        feeds = {p.name: self.laid_out(p.name, self.column(p.name, p.dtype, table), p.shape) for p in net.inputs}
        count = {len(x) for x in feeds.values()}
        if len(count) != 1:
            raise Usage(f"columns have different numbers of rows: {sorted(count)}")
        n, pieces = count.pop(), []
        for start in range(0, n, most):
            piece = {name: x[start:start + most] for name, x in feeds.items()}
            short = most - min(most, n - start) if is_fixed else 0
            if short:
                piece = {name: np.concatenate([x, np.repeat(x[-1:], short, axis=0)]) for name, x in piece.items()}
            pieces.append(self.checked(net.run(piece), min(most, n - start), short))
        pieces = pieces or [self.nothing(net)]
        return {self.outputs.get(name, name): np.concatenate([p[name] for p in pieces]) for name in self.wanted(net)}

    def wanted(self, net: Net) -> list[str]:
        """Names of the outputs that become columns."""
        names = [p.name for p in net.outputs]
        for name in self.outputs:
            if name not in names:
                raise Usage(f"the model has no output '{name}'; outputs are {', '.join(names)}")
        return [name for name in names if not self.outputs or name in self.outputs]

    def checked(self, results: dict[str, Any], rows: int, short: int) -> dict[str, Any]:
        """Checks that results have `rows` rows and drops the last `short`."""
        for name, y in results.items():
            if (not self.outputs or name in self.outputs) and (not np.ndim(y) or len(y) != rows + short):
                raise Usage(f"output '{name}' has shape {list(np.shape(y))} for {rows + short} rows: expected one row of results per row")
        return {name: y[:rows] for name, y in results.items() if np.ndim(y)}


def _stack(column: Any) -> np.ndarray:
    x = np.asarray(column)
    if x.dtype != object:
        return x
    return np.stack([np.asarray(row) for row in x]) if len(x) else np.empty((0,), np.float32)
