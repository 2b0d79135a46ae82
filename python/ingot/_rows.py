"""Models over rows of tables: what ingot.ray and ingot.spark share.

In: columns of a batch, as arrays whose first axis counts rows. Out: columns of results. The model is compiled once in a process, for any
number of rows up to max_batch where its first dimensions are open; larger batches are cut into pieces. Where the model has a fixed number
of rows, pieces have as many, and the last is filled up with copies of its last row, whose results are dropped.
Every row of a result must belong to the row of the same number: the first axis of all inputs and outputs is that of rows.
"""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, Union

import numpy as np

from ._lib import Usage
from ._net import Net, Source, cached
from ._types import DTYPES

Columns = Union[str, Sequence[str]]


class Rows:
    """Pickled by the path of the model, or by its bytes; compiled where it is used first."""

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

    def net(self) -> tuple[Net, int, bool]:
        """The model, most rows of a piece, whether every piece has as many."""
        plain = cached(self.model, **{**self.options, "lazy": True})
        shapes = {p.name: p.shape for p in plain.inputs}
        rows = {shape[0] for shape in shapes.values() if shape}
        if any(not shape for shape in shapes.values()):
            raise Usage("a model over rows needs inputs with a first dimension: " + ", ".join(f"{p.name}: {p.type}" for p in plain.inputs))
        fixed = {n for n in rows if isinstance(n, int)}
        if fixed:
            if len(fixed) > 1:
                raise Usage(f"inputs have different numbers of rows: {sorted(fixed)}")
            return cached(self.model, **self.options), fixed.pop(), True
        if any(not isinstance(n, int) for shape in shapes.values() for n in shape[1:]):
            return plain, self.max_batch, False  # other dimensions are open too: a program for each shape
        bounds = {name: (self.max_batch, *shape[1:]) for name, shape in shapes.items()}
        return cached(self.model, **{**self.options, "max_shapes": bounds}), self.max_batch, False

    def column(self, name: str, dtype: str | None, table: Mapping[str, Any]) -> np.ndarray:
        """The array of an input: a column, or several beside each other."""
        which = self.inputs.get(name, name)
        for one in [which] if isinstance(which, str) else which:
            if one not in table:
                raise Usage(f"input '{name}' of the model: there is no column '{one}'; columns are {', '.join(table)}")
        parts = [_stack(table[one]) for one in ([which] if isinstance(which, str) else which)]
        x = parts[0] if isinstance(which, str) else np.stack(parts, axis=1)
        wanted = DTYPES.get(dtype or "")
        return x if wanted is None or x.dtype == wanted else x.astype(wanted)

    def predict(self, table: Mapping[str, Any]) -> dict[str, np.ndarray]:
        net, most, is_fixed = self.net()
        feeds = {p.name: self.column(p.name, p.dtype, table) for p in net.inputs}
        for p in net.inputs:  # a column of lists of numbers may be an image: its rows are laid out as the model has them
            rest = (p.shape or ())[1:]
            if feeds[p.name].shape[1:] != rest and all(isinstance(n, int) for n in rest):
                feeds[p.name] = feeds[p.name].reshape(-1, *rest) if feeds[p.name].size else np.empty((0, *rest), feeds[p.name].dtype)
        count = {len(x) for x in feeds.values()}
        if len(count) != 1:
            raise Usage(f"columns have different numbers of rows: {sorted(count)}")
        n, pieces = count.pop(), []
        for start in range(0, n, most):
            piece = {name: x[start:start + most] for name, x in feeds.items()}
            short = most - min(most, n - start) if is_fixed else 0
            if short:
                piece = {name: np.concatenate([x, np.repeat(x[-1:], short, axis=0)]) for name, x in piece.items()}
            pieces.append({name: y[:most - short] for name, y in net.run(piece).items()})
        names = [p.name for p in net.outputs]
        if not pieces:
            return {self.outputs.get(name, name): np.empty((0,), np.float32) for name in names if not self.outputs or name in self.outputs}
        return {self.outputs.get(name, name): np.concatenate([p[name] for p in pieces]) for name in names
                if not self.outputs or name in self.outputs}


def _stack(column: Any) -> np.ndarray:
    x = np.asarray(column)
    if x.dtype != object:
        return x
    return np.stack([np.asarray(row) for row in x]) if len(x) else np.empty((0,), np.float32)
